/* The centre of a search: which numbers the filter's fp32 coordinates are. */
#include "search/centre.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "search/exact.h"
#include "search/filter.h"

#include <math.h>
#include <string.h>

enum { SAMPLE = 512 }; /* points in the sample */

/* Adds row i's coordinates to sums; its largest magnitude, and whether all are integers. */
static double read_row(gnomon_search *s, const gnomon_matrix *base, int64_t i, double *f64,
                       double *sums, bool *whole)
{
    double factor = 1, most = 0;
    s->kernels->to_f64(gnomon_row_at(base, i), base->dtype, base->col_stride, base->cols, f64);
    if (s->options.metric == GNOMON_COSINE) factor = gnomon_inverse_norm(s->kernels, base, i);
    for (int64_t j = 0; j < base->cols; j++) {
        const double x = f64[j] * factor;
        if (!(fabs(x) <= 0x1p500)) return 0; /* refused in its turn */
        /* numbers from 2^51 on may be taken for none wrongly: they are too large for any use of it
         */
        if ((x + 0x1.8p52) - 0x1.8p52 != x) *whole = false;
        most = fabs(x) > most ? fabs(x) : most;
    }
    for (int64_t j = 0; j < base->cols; j++)
        sums[j] += f64[j] * factor;
    return most;
}

/* Row i of points, centred; its largest magnitude. */
static double centred_row(const gnomon_search *s, const gnomon_matrix *points, int64_t i,
                          double *out, double *squares)
{
    const gnomon_centre *g = &s->centre;
    double factor = g->scale, peak = 0;
    s->kernels->to_f64(gnomon_row_at(points, i), points->dtype, points->col_stride, points->cols,
                       out);
    if (s->options.metric == GNOMON_COSINE) factor = gnomon_inverse_norm(s->kernels, points, i);
    for (int64_t j = 0; j < s->cols; j++) {
        out[j] = out[j] * factor - g->mean64[j];
        peak = fabs(out[j]) > peak ? fabs(out[j]) : peak;
    }
    *squares = gnomon_dot(s, out, out);
    return peak;
}

/* How much of a point rounding to integers of at most 'most' takes, at a venture. */
static double rounding(const gnomon_search *s, double peak, int most)
{
    return peak / most * sqrt((double)s->cols / 12);
}

enum { ASKED = 8, WIDTHS = 3 };

/* The score that the k nearest of rows points reach, as the count scores of a sample tell; values:
 * room for them. The nearest of all points may lie farther out than the sample's, where points are
 * rarer: 'beyond' is by which power more of them pass there. */
static double score_of_rank(const double *scores, int64_t count, int64_t rows, int64_t k,
                            float *values, double *rank, double *beyond)
{
    const double in_sample = (double)k * (double)count / (double)rows;
    *rank = fmin(fmax(rint(in_sample), 1), (double)count);
    *beyond = in_sample >= 1 ? 1 : fmin(log((double)rows / (double)k) / log((double)count), 1.5);
    for (int64_t i = 0; i < count; i++)
        values[i] = isnan(scores[i]) ? -INFINITY : (float)scores[i];
    return (double)gnomon_rank_largest(values, count, (int64_t)*rank);
}

/* The score that points within the radius reach. x: the centred query. */
static double score_of_radius(const gnomon_search *s, const double *x, double squares)
{
    const gnomon_centre *g = &s->centre;
    const double limit = s->limit, scale = g->scale;
    if (s->options.metric == GNOMON_IP)
        return -limit * scale * scale - gnomon_dot(s, x, g->mean64) - g->norm * g->norm;
    return (squares -
            (s->options.metric == GNOMON_L2 ? limit * scale * limit * scale : 2 * limit)) /
           2;
}

/* The sample's points: what each task finds of one of them. */
typedef struct sampling {
    const gnomon_search *s;
    const gnomon_matrix *base;
    int64_t count, asked;
    const double *queries; /* centred; asked points, or none: squares and peaks alone */
    double *rows;          /* a worker's */
    double squares[SAMPLE], peaks[SAMPLE], scores[ASKED][SAMPLE];
} sampling;

static void sample_point(void *arg, int64_t i, int worker)
{
    sampling *a = arg;
    const gnomon_search *s = a->s;
    const int64_t cols = s->cols;
    double *point = a->rows + worker * cols;
    a->peaks[i] = centred_row(s, a->base, i * (a->base->rows / a->count), point, &a->squares[i]);
    if (a->asked == 0) return;
    const double bias = s->options.metric == GNOMON_IP ? gnomon_dot(s, s->centre.mean64, point)
                                                       : -a->squares[i] / 2;
    for (int64_t q = 0; q < a->asked; q++)
        a->scores[q][i] = gnomon_dot(s, a->queries + q * cols, point) + bias;
}

static void take_sample(sampling *a)
{
    gnomon_parallel(a->s->ctx, a->count, sample_point, a);
}

/* What a sample of queries and points shows of integers of at most most[i]: out of k points that
 * must pass, how many times as many do that lie up to wide[i] of the error's bound below? By
 * radius: how many of all points? peak: of base's points. f64: room for ASKED points. */
static void estimate_passing(sampling *a, double peak, const int most[WIDTHS],
                             const double wide[WIDTHS], double *f64, double passing[WIDTHS])
{
    const gnomon_search *s = a->s;
    const gnomon_matrix *base = a->base;
    const int64_t count = a->count, cols = s->cols;
    const int64_t asked = a->asked = s->count < ASKED ? s->count : ASKED;
    double norms[SAMPLE], top[ASKED], norm[ASKED], least[ASKED];
    double rank = 1, beyond = 1, squares;
    float values[SAMPLE];
    for (int64_t q = 0; q < asked; q++) {
        top[q] = centred_row(s, &s->queries, q * (s->count / asked), f64 + q * cols, &squares);
        norm[q] = sqrt(squares);
        if (s->options.k == 0) least[q] = score_of_radius(s, f64 + q * cols, squares);
    }
    a->queries = f64;
    take_sample(a);
    for (int64_t i = 0; i < count; i++)
        norms[i] = sqrt(a->squares[i]);
    for (int64_t q = 0; q < asked && s->options.k > 0; q++)
        least[q] =
            score_of_rank(a->scores[q], count, base->rows, s->options.k, values, &rank, &beyond);
    for (int w = 0; w < WIDTHS; w++) {
        passing[w] = 0;
        for (int64_t q = 0; q < asked; q++) {
            const double of_points = norm[q] * rounding(s, peak, most[w]);
            const double of_query = rounding(s, top[q], most[w]);
            for (int64_t i = 0; i < count; i++)
                passing[w] +=
                    a->scores[q][i] + wide[w] * (of_points + of_query * norms[i]) >= least[q];
        }
    }
    for (int w = 0; w < WIDTHS; w++)
        passing[w] = s->options.k > 0 ? pow(passing[w] / ((double)asked * rank), beyond)
                                      : passing[w] / (double)(asked * count) * (double)base->rows;
}

/* The bits that take a query the least time, in nanoseconds on one thread of a Zen 3 at 3 GHz: for
 * the products, for keeping what may pass, and for the exact distances of what is likely to. most:
 * of 16 bits; fine: those let no more pass than fp32 does. */
static int cheapest_bits(gnomon_search *s, sampling *a, double peak, int most, bool fine,
                         double *f64)
{
    const gnomon_matrix *base = a->base;
    const int64_t count = a->count;
    enum { FEW = 16, MANY = 64, LEAST = 64 };
    const double d = (double)s->cols, k = (double)s->options.k;
    const bool few = k > 0 && k < MANY;
    /* by blocks of rows, or one here and one there */
    const double each = k < MANY ? 40 + 0.4 * d : 15 + 0.15 * d, keep = 30;
    /* of few neighbours some times as many are verified, before the limit is near them */
    const double fewest = few ? 3 : 1, early = few ? 2 : 1;
    const double exact = k == 0 ? each : k * (fewest * each + keep);
    const double products = d * (double)base->rows;
    const gnomon_quads *quads = &s->kernels->quads;
    const double of_32 = 0.0217 * products, of_16 = 0.0135 * products;
    const double of_8 =
        (double)quads->product_ns * products + (double)quads->compare_ns * (double)base->rows;
    const int most_of[WIDTHS] = {most, quads->most, quads->most};
    /* of those not likely to pass a limit is guessed; by radius there is none */
    const double likely = k > 0 ? 1.125 : 1.5, wide[WIDTHS] = {1.5, likely, 2};
    double passing[WIDTHS];
    const int unasked = fine ? 16 : 32;
    if (s->count < FEW || count < LEAST) return unasked;
    /* the estimate takes time too */
    const double gain = (fine ? of_16 : of_32) - of_8, asking = ASKED * SAMPLE * d;
    if (k > 0 && k < MANY ? 2 * exact > gain : gain * (double)s->count < 4 * asking) return unasked;
    estimate_passing(a, peak, most_of, wide, f64, passing);
    if (fine && k > 0) passing[0] = 1;
    const double in_32 = of_32 + exact * (k > 0 ? 1 : passing[0]),
                 in_16 = of_16 + exact * passing[0],
                 in_8 = of_8 +
                        (k > 0 ? k * (fmax(fewest, early * passing[1]) * each + passing[2] * keep)
                               : exact * passing[1]);
    const int bits = in_8 < in_16 && in_8 < in_32 ? 8 : in_16 < in_32 ? 16 : 32;
    if (k > 0 && bits == 8) {
        s->centre.likely = passing[1];
        s->centre.possible = passing[2];
    }
    return bits;
}

/* In which coordinates the filter sees: integers of 16 bits whose products 32 bits hold; of 8 bits,
 * which see less but take half the time; or fp32, where the products are short or long, or rounding
 * lets too many points pass. Without a sample that tells how many, 16 bits are taken if rounding
 * takes less than a thousandth of a typical point. */
static void choose_bits(gnomon_search *s, sampling *a, double *f64)
{
    const int64_t count = a->count;
    gnomon_centre *g = &s->centre;
    g->bits = 32;
    if (s->cols < 16 || s->cols > 4096) return;
    const int most = gnomon_filter_most(s->cols);
    double peak = 0, squares = 0;
    take_sample(a);
    for (int64_t i = 0; i < count; i++) {
        peak = fmax(peak, a->peaks[i]);
        squares += a->squares[i];
    }
    const double typical = sqrt(squares / (double)count);
    const bool fine = (g->whole && peak <= most) || rounding(s, peak, most) < 1e-3 * typical;
    g->bits = cheapest_bits(s, a, peak, most, fine, f64);
    g->most = g->bits == 8 ? s->kernels->quads.most : most;
}

gnomon_status gnomon_centre_take(gnomon_search *s, const gnomon_centre *centre)
{
    float *mean;
    double *mean64;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof *mean, "the mean", &mean));
    s->centre.mean = mean;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof *mean64, "the mean", &mean64));
    memcpy(mean, centre->mean, (size_t)s->cols * sizeof *mean);
    memcpy(mean64, centre->mean64, (size_t)s->cols * sizeof *mean64);
    s->centre = *centre;
    s->centre.mean = mean;
    s->centre.mean64 = mean64;
    return GNOMON_OK;
}

gnomon_status gnomon_centre_estimate(gnomon_search *s, const gnomon_matrix *base)
{
    gnomon_centre *g = &s->centre;
    if (g->estimated || base->rows == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->cols, sizeof *g->mean, "the mean", &g->mean));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->cols, sizeof *g->mean64, "the mean", &g->mean64));
    double *f64;
    sampling *a;
    const int64_t rows = ASKED + gnomon_context_threads(s->ctx);
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(rows, s->cols), sizeof *f64, "base points", &f64));
    const gnomon_status status = gnomon_alloc_zero(s->ctx, 1, sizeof *a, "a sample", &a);
    if (status != GNOMON_OK) {
        gnomon_free(s->ctx, f64);
        return status;
    }
    const int64_t count = base->rows < SAMPLE ? base->rows : SAMPLE;
    *a = (sampling){.s = s, .base = base, .count = count, .rows = f64 + ASKED * s->cols};
    double most = 0;
    bool whole = s->options.metric != GNOMON_COSINE;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, read_row(s, base, i * (base->rows / count), f64, g->mean64, &whole));
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
    g->estimated = true;
    choose_bits(s, a, f64);
    gnomon_free(s->ctx, a);
    gnomon_free(s->ctx, f64);
    return GNOMON_OK;
}
