/* block: each block is a dense kind for its own columns. */
#include "choose/kinds/kinds.h"

static void block_by_eps(const gnomon_asked *a, double exact, double signs, gnomon_candidate *c)
{
    (void)a;
    (void)exact;
    gnomon_choose_say(c, true, signs * (double)c->descriptor.blocks,
                      "Achlioptas 2003 for the rows of one block, any points");
}

static void block_by_rows(const gnomon_asked *a, double k, gnomon_candidate *c)
{
    (void)a;
    gnomon_choose_say(c, false, k,
                      "points with their weight in one block see only 1/%lld of the rows",
                      (long long)c->descriptor.blocks);
}

static void complete(const gnomon_choose_options *o, gnomon_descriptor *d)
{
    if (o->k > 0 && d->blocks > o->k) d->blocks = o->k;
}

const gnomon_choose_row gnomon_choose_block = {
    .kind = GNOMON_BLOCK,
    .candidates = {{.blocks = 4}, {.blocks = 16}},
    .count = 2,
    .complete = complete,
    .by_eps = block_by_eps,
    .by_rows = block_by_rows,
};
