/* Tuning, building and testing, charged to the queries that an index is for. */
#include "lsh/tune/tune.h"

bool gnomon_lsh_may_pay(const gnomon_lsh_charge *c, double search, double test)
{
    return c->uses == 0 || 2 * (search + test) <= (double)c->uses * c->exact;
}

bool gnomon_lsh_pays(const gnomon_lsh_charge *c, double way, double more)
{
    if (c->uses == 0) return way < c->exact;
    return (double)c->uses * way + more < (double)c->uses * c->exact;
}

double gnomon_lsh_share(const gnomon_lsh_charge *c, double way, double build)
{
    return c->uses > 0 ? way + build / (double)c->uses : way;
}
