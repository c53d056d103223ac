/* Asking the laws (docs/reference/choosing.md): how many rows keep all distances within 1 +- eps,
 * or whether a given number of rows does as well as those of dense kinds. Each kind's own law is in
 * kinds/.
 *
 * Where a law speaks of all pairs, it is a tail bound for one vector and a union bound over the
 * pairs. Variances are those of |Sx|^2 / |x|^2, times k. */
#include "base/error.h"
#include "choose/kinds/kinds.h"

#include <gnomon/quality.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* |x|_4^4 / |x|_2^4 of normal coordinates, times their number */
#define SPREAD 3.0

static gnomon_asked read_options(const gnomon_choose_options *o)
{
    gnomon_asked a = {.o = o, .incoherent = o->assume == GNOMON_ASSUME_INCOHERENT, .weight = 1};
    const double n = o->n < 2 ? 2 : (double)o->n;
    a.pairs = n * (n - 1) / 2;
    a.log_delta = o->beta > 0 ? -o->beta * log(n) : log(o->delta > 0 ? o->delta : 0.05);
    if (a.incoherent) {
        double carriers = (double)o->d;
        if (o->nonzeros >= 0 && o->nonzeros < o->n * carriers)
            carriers = fmax(1, (double)o->nonzeros / (double)o->n);
        a.weight = fmin(1, SPREAD / carriers);
    }
    return a;
}

void gnomon_choose_say(gnomon_candidate *c, bool admitted, double rows, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(c->reason, sizeof c->reason, format, list);
    va_end(list);
    c->admitted = admitted;
    c->descriptor.k = rows > 0 && rows <= GNOMON_MOST_ROWS ? (int64_t)ceil(rows) : 0;
}

static gnomon_status bound(gnomon_context *ctx, const gnomon_asked *a, gnomon_bound which,
                           double *rows)
{
    int64_t k;
    const int64_t n = a->o->n < 2 ? 2 : a->o->n;
    GNOMON_TRY(gnomon_dim(ctx, which, n, a->o->eps, a->o->beta, a->o->delta, NULL, &k));
    *rows = (double)k;
    return GNOMON_OK;
}

double gnomon_chebyshev(const gnomon_asked *a, double variance)
{
    return a->pairs * variance / (exp(a->log_delta) * a->o->eps * a->o->eps);
}

static const gnomon_choose_row *const rows[] = {
#define GNOMON_CHOOSE(name) &gnomon_choose_##name,
#include "choose/kinds/list.h"
#undef GNOMON_CHOOSE
};

const gnomon_choose_row *gnomon_choose_row_at(int index)
{
    return index >= 0 && index < (int)(sizeof rows / sizeof *rows) ? rows[index] : NULL;
}

const gnomon_choose_row *gnomon_choose_row_of(gnomon_kind kind)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i]->kind == kind) return rows[i];
    return NULL;
}

gnomon_status gnomon_law(gnomon_context *ctx, const gnomon_choose_options *o,
                         const gnomon_choose_row *row, gnomon_candidate *candidate)
{
    const gnomon_asked a = read_options(o);
    if (o->k > 0) {
        row->by_rows(&a, (double)o->k, candidate);
        return GNOMON_OK;
    }
    double exact, signs;
    GNOMON_TRY(bound(ctx, &a, GNOMON_BOUND_GAUSSIAN_EXACT, &exact));
    GNOMON_TRY(bound(ctx, &a, GNOMON_BOUND_ACHLIOPTAS, &signs));
    row->by_eps(&a, exact, signs, candidate);
    return GNOMON_OK;
}
