/* The ground of a search: which numbers the sieve's fp32 coordinates are. */
#include "base/error.h"
#include "base/memory.h"
#include "search/search.h"

#include <math.h>

enum { SAMPLE = 512 }; /* points looked at */

/* Adds row i's coordinates to sums; its largest magnitude, and whether all are integers. */
static double look_at(gnomon_search *s, const gnomon_matrix *base, int64_t i, double *wide,
                      double *sums, bool *whole)
{
    double factor = 1, most = 0;
    s->kernels->widen(gnomon_row_at(base, i), base->dtype, base->col_stride, base->cols, wide);
    if (s->options.metric == GNOMON_COSINE) factor = gnomon_inverse_norm(s->kernels, base, i);
    for (int64_t j = 0; j < base->cols; j++) {
        const double x = wide[j] * factor;
        if (!(fabs(x) <= 0x1p500)) return 0; /* refused in its turn */
        if (x != rint(x)) *whole = false;
        most = fmax(most, fabs(x));
    }
    for (int64_t j = 0; j < base->cols; j++)
        sums[j] += wide[j] * factor;
    return most;
}

/* The largest 16-bit coordinate of products that 32 bits hold, or 0 where rounding to it would take
 * more than a thousandth of a typical point, or the products are short or long. */
static int choose_most(const gnomon_search *s, const gnomon_matrix *base, int64_t count,
                       double *wide)
{
    const gnomon_ground *g = &s->ground;
    const double d = (double)s->cols + 2;
    if (s->cols < 16 || s->cols > 4096) return 0;
    const int most = (int)floor(sqrt(0x1p31 / d)) - 1;
    double peak = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i * (base->rows / count);
        double factor = g->scale;
        s->kernels->widen(gnomon_row_at(base, row), base->dtype, base->col_stride, base->cols,
                          wide);
        if (s->options.metric == GNOMON_COSINE) factor = gnomon_inverse_norm(s->kernels, base, row);
        for (int64_t j = 0; j < s->cols; j++) {
            const double c = wide[j] * factor - g->mean64[j];
            peak = fmax(peak, fabs(c));
            squares += c * c;
        }
    }
    if (g->whole && peak <= most) return most;
    const double rounding = peak / most * sqrt(d / 12), typical = sqrt(squares / (double)count);
    return rounding < 1e-3 * typical ? most : 0;
}

gnomon_status gnomon_ground_settle(gnomon_search *s, const gnomon_matrix *base)
{
    gnomon_ground *g = &s->ground;
    if (g->settled || base->rows == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->cols, sizeof *g->mean, "the mean", &g->mean));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->cols, sizeof *g->mean64, "the mean", &g->mean64));
    double *wide;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof *wide, "a base point", &wide));
    const int64_t count = base->rows < SAMPLE ? base->rows : SAMPLE;
    double most = 0;
    bool whole = s->options.metric != GNOMON_COSINE;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, look_at(s, base, i * (base->rows / count), wide, g->mean64, &whole));
    whole = whole && most < 0x1p22;
    int exponent = 0;
    if (!whole && most > 0) frexp(most, &exponent);
    if (exponent < -400) exponent = -400;
    /* Where fp32 is at ease anyway the numbers stay as they are. */
    if (exponent > -20 && exponent < 20) exponent = 0;
    g->scale = ldexp(1, -exponent);
    double squares = 0;
    for (int64_t j = 0; j < s->cols; j++) {
        const double mean = g->mean64[j] * g->scale / (double)count;
        g->mean[j] = (float)(whole ? rint(mean) : mean);
        g->mean64[j] = (double)g->mean[j];
        squares += g->mean64[j] * g->mean64[j];
    }
    g->norm = sqrt(squares);
    g->whole = whole;
    g->settled = true;
    g->most = choose_most(s, base, count, wide);
    gnomon_free(s->ctx, wide);
    return GNOMON_OK;
}
