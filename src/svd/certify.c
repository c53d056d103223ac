/* What the factors leave, by fresh Gaussian vectors. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "svd/factor.h"
#include "svd/panels.h"

#include <math.h>
#include <string.h>

gnomon_status gnomon_test_vectors(gnomon_factor *f, int64_t first, int64_t count, gnomon_tall *g)
{
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.cols, count, false, "test vectors", g));
    gnomon_matrix transposed = {
        g->data, f->f64 ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, count, g->rows, 1, count};
    GNOMON_TRY(gnomon_operator_block(f->ctx, f->test_vectors, first, 0, &transposed));
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, count, sizeof *norms, "norms", &norms));
    gnomon_tall_norms(f->ctx, g, norms);
    for (int64_t j = 0; j < count; j++)
        f->longest_test_vector = fmax(f->longest_test_vector, norms[j]);
    gnomon_free(f->ctx, norms);
    return GNOMON_OK;
}

static void scale_rows(bool f64, int64_t rows, int64_t cols, const double *s, void *h)
{
    for (int64_t i = 0; s != NULL && i < rows * cols; i++) {
        if (f64)
            ((double *)h)[i] *= s[i / cols];
        else
            ((float *)h)[i] = (float)((double)((float *)h)[i] * s[i / cols]);
    }
}

/* *h = c^T g, to be freed. */
static gnomon_status cross(gnomon_factor *f, const gnomon_tall *c, const gnomon_tall *g, void **h)
{
    GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(c->cols, g->cols), gnomon_tall_size(f->f64),
                            "a product", h));
    return gnomon_tall_cross(f->ctx, c, g, *h);
}

/* e -= b (diag(s) (c^T g)) */
static gnomon_status subtract(gnomon_factor *f, const gnomon_tall *g, const gnomon_tall *b,
                              const double *s, const gnomon_tall *c, const gnomon_tall *e)
{
    void *h = NULL;
    const gnomon_status status = cross(f, c, g, &h);
    if (status == GNOMON_OK) {
        scale_rows(f->f64, c->cols, g->cols, s, h);
        gnomon_tall_multiply(f->ctx, -1.0, b, h, 1.0, e);
    }
    gnomon_free(f->ctx, h);
    return status;
}

gnomon_status gnomon_test_residual(gnomon_factor *f, const gnomon_tall *g, const gnomon_tall *b,
                                   const double *s, const gnomon_tall *c, gnomon_tall *e)
{
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.rows, g->cols, false, "residuals", e));
    GNOMON_TRY(gnomon_row_source_apply(&f->source, g, e));
    return subtract(f, g, b, s, c, e);
}

/* The x with (x e^(1 - x))^(r / 2) = failure, below 1 or above. */
static double share(int64_t r, double failure, bool above)
{
    const double wanted = 2 * log(failure) / (double)r;
    double outer = above ? 2 * (1 - wanted) : 0, inner = 1;
    for (int i = 0; i < 200; i++) {
        const double x = 0.5 * (outer + inner);
        if (log(x) + 1 - x < wanted)
            outer = x;
        else
            inner = x;
    }
    return outer;
}

static double lower_share(int64_t r, double failure)
{
    return share(r, failure, false);
}

/* What the estimate is multiplied by for the bound. */
static double frobenius_factor(int64_t count)
{
    return 1 / sqrt(lower_share(count, GNOMON_FAILURE));
}

void gnomon_frobenius_of(const double *norms, int64_t count, double rounding, double *estimate,
                         double *bound)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += norms[j] * norms[j];
    *estimate = sqrt(sum / (double)count);
    *bound = (*estimate + rounding) * frobenius_factor(count);
}

/* The test vectors count as often as the squares of singular values that spectral allows make up
 * the sum bounded: more the larger the sum, so the bound is where both agree. A spectral of 0 has
 * underflowed, and tells nothing. */
double gnomon_frobenius_bound(double estimate, double spectral, int64_t count, double failure)
{
    double low = estimate, high = estimate / sqrt(lower_share(count, failure));
    for (int i = 0; i < 100 && low < high; i++) {
        const double middle = 0.5 * (low + high), x = (estimate / middle) * (estimate / middle);
        const double share = spectral > 0 ? middle / spectral : 1, times = fmax(1, share * share);
        if (0.5 * (double)count * times * (log(x) + 1 - x) > log(failure))
            low = middle;
        else
            high = middle;
    }
    return high;
}

gnomon_status gnomon_test_frobenius(gnomon_factor *f, const gnomon_tall *e, double *estimate,
                                    double *bound)
{
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, e->cols, sizeof *norms, "norms", &norms));
    gnomon_tall_norms(f->ctx, e, norms);
    gnomon_frobenius_of(norms, e->cols, f->source.center.rounding * f->longest_test_vector,
                        estimate, bound);
    gnomon_free(f->ctx, norms);
    return GNOMON_OK;
}

/* Halko, Martinsson & Tropp's (2011) Lemma 4.1. */
static double spectral_bound(double estimate, double root, int64_t count, double failure)
{
    return estimate * exp((0.5 * log(2 / acos(-1.0)) - log(failure) / (double)count) / root);
}

/* How much longer what is multiplied is than the matrix: of sparse rows less their mean both of
 * them, of others 1. */
static double magnified(const gnomon_factor *f)
{
    const double both = f->source.center.magnitude;
    return both > f->source.norm ? both / f->source.norm : 1;
}

double gnomon_certain_bound(const gnomon_factor *f)
{
    const double all = f->source.norm;
    if (f->options.single_pass) return INFINITY;
    if (!f->of_transpose || all == 0) return all;
    const double root = sqrt((double)f->out->columns);
    const double lost = 8 * ((double)f->source.cols + 64) * root * 0x1p-53 * magnified(f) +
                        (f->f64 ? 0 : 8 * 68 * root * 0x1p-24);
    double left = (1 + lost) * all * all;
    for (int64_t i = 0; i < f->out->rank; i++)
        left -= f->s[i] * f->s[i];
    return fmin(all, sqrt(fmax(left, 0)));
}

void gnomon_bounds_of(gnomon_svd *out, const gnomon_lengths *l, int64_t count, double rounding,
                      double certain)
{
    const double root = 2.0 * l->power + 1;
    const double value = isinf(l->logarithms) ? 0 : exp(l->logarithms / root);
    /* Each of the 2 power + 1 products is off by 'rounding' times what it multiplies: with E's norm
     * b and the root y of the value b^(2 power + 1) <= y^(2 power + 1) + factor (2 power + 1)
     * rounding b^(2 power) to first order, so b <= y + factor (2 power + 1) rounding. */
    const double lost = 2 * root * rounding;
    /* of the sum's failure half is that of the norm it rests on */
    const double half = 0.5 * GNOMON_FAILURE;
    out->spectral_estimate = l->power > 0 ? sqrt(l->ratio) : value;
    out->spectral_bound = fmin(spectral_bound(value, root, count, GNOMON_FAILURE) +
                                   spectral_bound(lost, 1, count, GNOMON_FAILURE),
                               certain);
    const double spectral =
        spectral_bound(value, root, count, half) + spectral_bound(lost, 1, count, half);
    out->residual_bound = fmin(
        gnomon_frobenius_bound(out->residual_estimate + rounding, spectral, count, half), certain);
    out->residual_estimate = fmin(out->residual_estimate, certain);
}

void gnomon_lengths_begin(gnomon_lengths *l, int power)
{
    *l = (gnomon_lengths){.power = power};
}

void gnomon_lengths_add(gnomon_lengths *l, const double *now, const double *before, int64_t count)
{
    double longest = 0;
    l->ratio = 0;
    for (int64_t j = 0; j < count; j++) {
        longest = fmax(longest, now[j]);
        if (before != NULL && before[j] > 0)
            l->ratio = fmax(l->ratio, now[j] / (before[j] / l->longest));
    }
    l->longest = longest;
    l->logarithms += longest > 0 ? log(longest) : -INFINITY;
}

/* All columns of e divided by the longest when that is not zero; norms: their lengths before. */
static gnomon_status normalise(gnomon_factor *f, const gnomon_tall *e, double *norms,
                               double *longest)
{
    *longest = 0;
    gnomon_tall_norms(f->ctx, e, norms);
    for (int64_t j = 0; j < e->cols; j++)
        *longest = norms[j] > *longest ? norms[j] : *longest;
    if (*longest == 0) return GNOMON_OK;
    for (int64_t i = 0; i < e->rows * e->cols; i++) {
        if (e->f64)
            ((double *)e->data)[i] /= *longest;
        else
            ((float *)e->data)[i] = (float)((double)((float *)e->data)[i] / *longest);
    }
    return GNOMON_OK;
}

/* ---- converged values ---- */

/* The count of converged values is that of the leading ones of which what A^T u_i (or A v_i) has
 * beside s_i v_i (s_i u_i) is short enough in all: it ends among [begin, end), of which that is
 * measured. 'before': the sum of squares of those before, or it is measured by some random
 * combinations of them. */
typedef struct window {
    int64_t begin, end;
    double before;
    bool combined;
} window;

enum {
    FEW = 16,      /* before 'begin' at least, else they are measured too */
    COMBINED = 48, /* combinations, */
    SAVED = 16,    /* where they leave out so many vectors more than they are */
    SQUARED = 16   /* squares a task */
};

/* The operator's first row of the combinations' weights, far from all test vectors. */
#define WEIGHTS (INT64_C(1) << 31)

/* What of the sum that is allowed may be known by a bound alone, by one from combinations, or by an
 * estimate. */
#define BOUNDED    0x1p-5
#define RECOMBINED 0x1p-3
#define ESTIMATED  0x1p-2

/* Whether values have converged of which the last is s, by the sum of those squared lengths. */
static bool has_converged(double sum, double s)
{
    return sqrt(0.5 * sum) <= GNOMON_SVD_CONVERGED * s && s > 0;
}

/* The square of a length that is off by so much. */
static double square_within(double length, double off)
{
    const double x = fmax(length + off, 0);
    return x * x;
}

/* What the mean square of combinations is multiplied by for a bound of what they combine. */
static double combined_factor(void)
{
    return 1 / lower_share(COMBINED, 0.25 * GNOMON_FAILURE);
}

/* Begins the window; sums: estimates, which the real ones exceed by 'factor' at most, but that
 * their roots are off. Below the rounding of the products the estimate counts as it is. */
static void begin_window(const gnomon_factor *f, const double *sums, double factor, double off,
                         window *w)
{
    const double u = f->f64 ? 0x1p-53 : 0x1p-24, norm = f->source.norm;
    const double rounding = (double)f->source.cols * u * u * norm * norm;
    int64_t count = 0;
    while (count < w->end && has_converged(sums[count], f->s[count]))
        count++;
    for (int64_t i = 0; i < count; i++) {
        const double bound = factor * square_within(sqrt(sums[i]), off);
        const double s = f->s[gnomon_min(count, w->end - 1)];
        const bool bounded = has_converged(bound / BOUNDED, s);
        if (!bounded && !(bound <= rounding && has_converged(sums[i] / ESTIMATED, s))) break;
        w->begin = i + 1;
        w->before = bounded ? bound : sums[i];
    }
    if (w->begin < FEW) w->begin = 0;
    if (w->begin == 0) w->before = 0;
    int64_t more = 0;
    while (more < count && has_converged(combined_factor() * sums[more] / RECOMBINED,
                                         f->s[gnomon_min(count, w->end - 1)]))
        more++;
    w->combined = !f->source.sparse && more - w->begin >= COMBINED + SAVED;
    if (w->combined) w->begin = more;
}

/* h = U^T E g, but for e's 'scale': u_i^T E g is normal, and its variance is |E^T u_i|^2, which is
 * the squared length that A^T u_i has beside s_i v_i. So the squares of h tell the sums of those as
 * those of E g tell |E|_F, by bounds that all hold at once. sums: room for as many as singular
 * values. */
static window window_of(const gnomon_factor *f, const void *h, int64_t count, double scale,
                        double *sums)
{
    const int64_t rank = f->out->rank;
    const double failure = 0.375 * GNOMON_FAILURE / (double)rank;
    const double least = 1 / share(count, failure, true);
    const double off = f->source.center.rounding * f->longest_test_vector;
    window w = {0};
    double sum = 0;
    for (; w.end < rank; w.end++) {
        for (int64_t j = w.end * count; j < (w.end + 1) * count; j++) {
            const double x = f->f64 ? ((const double *)h)[j] : (double)((const float *)h)[j];
            sum += x * x;
        }
        sums[w.end] = scale * scale / (double)count * sum;
        if (!has_converged(least * square_within(sqrt(sums[w.end]), -off), f->s[w.end])) break;
    }
    begin_window(f, sums, 1 / share(count, failure, false), off, &w);
    return w;
}

/* f->out->converged_values; squares: of the window. */
static void count_converged(gnomon_factor *f, const window *w, const double *squares)
{
    double sum = w->before;
    int64_t count = w->begin;
    for (bool all = true; all && count < w->end; count += all) {
        sum += squares[count];
        all = has_converged(sum, f->s[count]);
    }
    f->out->converged_values = count;
}

/* What is measured beside the test vectors. */
typedef struct beside {
    gnomon_factor *f;
    window *w;
    const gnomon_tall *vectors, *images; /* u and v, or v and u */
    double *squares;                     /* of the window's vectors */
    void *weights;        /* of the combinations: rank x COMBINED; later each row times s_i */
    gnomon_tall combined; /* of vectors; later what is left of their products */
    gnomon_tall products;
    int64_t from; /* the window's first column there */
} beside;

static void square_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const beside *b = arg;
    const bool f64 = b->f->f64;
    const double *s = b->f->s;
    const int64_t first = b->w->begin + task * SQUARED,
                  end = gnomon_min(first + SQUARED, b->w->end);
    const int64_t from = b->from - b->w->begin;
    for (int64_t i = 0; i < b->products.rows; i++) {
        const char *row = gnomon_tall_row(&b->products, i), *own = gnomon_tall_row(b->images, i);
        for (int64_t j = first; j < end; j++) {
            const double x = f64 ? ((const double *)row)[from + j] - s[j] * ((const double *)own)[j]
                                 : (double)((const float *)row)[from + j] -
                                       s[j] * (double)((const float *)own)[j];
            b->squares[j] += x * x;
        }
    }
}

static gnomon_status combine(beside *b)
{
    gnomon_factor *f = b->f;
    if (!b->w->combined) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc_zero(f->ctx, gnomon_times(f->out->rank, COMBINED),
                                 gnomon_tall_size(f->f64), "weights", &b->weights));
    gnomon_matrix transposed = {
        b->weights, f->f64 ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, COMBINED, b->w->begin, 1,
        COMBINED};
    GNOMON_TRY(gnomon_operator_block(f->ctx, f->test_vectors, WEIGHTS, 0, &transposed));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, b->vectors->rows, COMBINED, false, "combinations",
                                &b->combined));
    gnomon_tall_multiply(f->ctx, 1.0, b->vectors, b->weights, 0.0, &b->combined);
    return GNOMON_OK;
}

/* b->w->before, from the combinations' products, which begin at column 'col'. */
static gnomon_status measure_combined(beside *b, int64_t col)
{
    gnomon_factor *f = b->f;
    double norms[COMBINED];
    if (!b->w->combined) return GNOMON_OK;
    gnomon_tall_drop(f->ctx, &b->combined);
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, b->products.rows, COMBINED, false, "combinations",
                                &b->combined));
    gnomon_tall_copy(f->ctx, &b->products, col, COMBINED, &b->combined, 0);
    scale_rows(f->f64, f->out->rank, COMBINED, f->s, b->weights);
    gnomon_tall_multiply(f->ctx, -1.0, b->images, b->weights, 1.0, &b->combined);
    gnomon_tall_norms(f->ctx, &b->combined, norms);
    b->w->before = 0;
    for (int64_t j = 0; j < COMBINED; j++)
        b->w->before += combined_factor() / COMBINED * norms[j] * norms[j];
    return GNOMON_OK;
}

/* out = A^T in or A in ('back'), and in the same pass what is measured. */
static gnomon_status multiply_beside(beside *b, bool back, const gnomon_tall *in,
                                     const gnomon_tall *out)
{
    gnomon_factor *f = b->f;
    const int64_t count = b->w->end - b->w->begin;
    gnomon_tall both = {0};
    GNOMON_TRY(combine(b));
    b->from = in->cols + (b->w->combined ? COMBINED : 0);
    gnomon_status status =
        gnomon_tall_make(f->ctx, f->f64, in->rows, b->from + count, false, "test vectors", &both);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(f->ctx, f->f64, out->rows, both.cols, false, "residuals",
                                  &b->products);
    if (status == GNOMON_OK) {
        gnomon_tall_copy(f->ctx, in, 0, in->cols, &both, 0);
        if (b->w->combined) gnomon_tall_copy(f->ctx, &b->combined, 0, COMBINED, &both, in->cols);
        gnomon_tall_copy(f->ctx, b->vectors, b->w->begin, count, &both, b->from);
        status = back ? gnomon_row_source_adjoint(&f->source, &both, &b->products)
                      : gnomon_row_source_apply(&f->source, &both, &b->products);
    }
    gnomon_tall_drop(f->ctx, &both);
    if (status == GNOMON_OK) {
        gnomon_tall_copy(f->ctx, &b->products, 0, out->cols, out, 0);
        gnomon_parallel(f->ctx, gnomon_ceil_div(count, SQUARED), square_some, b);
        status = measure_combined(b, in->cols);
    }
    return status;
}

/* The same; where combinations have far more than was thought, as one in many does, of the vectors
 * themselves. */
static gnomon_status measure_beside(beside *b, bool back, const gnomon_tall *in,
                                    const gnomon_tall *out)
{
    gnomon_factor *f = b->f;
    window *w = b->w;
    GNOMON_TRY(multiply_beside(b, back, in, out));
    if (!w->combined || has_converged(w->before / ESTIMATED, f->s[w->begin - 1])) return GNOMON_OK;
    *w = (window){.end = w->end};
    gnomon_tall_drop(f->ctx, &b->products);
    memset(b->squares, 0, (size_t)f->out->rank * sizeof *b->squares);
    return multiply_beside(b, back, in, out);
}

/* The same, and the count. */
static gnomon_status product_beside(gnomon_factor *f, bool back, const gnomon_tall *in,
                                    const gnomon_tall *out, window *w)
{
    beside b = {.f = f, .w = w, .vectors = back ? &f->u : &f->v, .images = back ? &f->v : &f->u};
    GNOMON_TRY(
        gnomon_alloc_zero(f->ctx, f->out->rank, sizeof *b.squares, "sums of squares", &b.squares));
    gnomon_status status;
    if (back && f->source.sparse && f->source.norm > 0) {
        const gnomon_misfit misfit = {out, b.images, f->s, b.squares};
        status = gnomon_row_source_misfit(&f->source, in, b.vectors, w->begin, w->end, &misfit);
    } else {
        status = measure_beside(&b, back, in, out);
    }
    if (status == GNOMON_OK) count_converged(f, w, b.squares);
    gnomon_tall_drop(f->ctx, &b.products);
    gnomon_tall_drop(f->ctx, &b.combined);
    gnomon_free(f->ctx, b.weights);
    gnomon_free(f->ctx, b.squares);
    return status;
}

/* out = A^T in or A in ('back'), and, beside it in the same pass, what tells how many values have
 * converged, when it is the singular vectors of that side that are not exact by themselves. */
static gnomon_status product(gnomon_factor *f, bool back, const gnomon_tall *in,
                             const gnomon_tall *out, window *w)
{
    if (back == f->of_transpose && f->out->converged_values < 0) {
        if (w->begin < w->end || w->combined) return product_beside(f, back, in, out, w);
        count_converged(f, w, NULL);
    }
    return back ? gnomon_row_source_adjoint(&f->source, in, out)
                : gnomon_row_source_apply(&f->source, in, out);
}

/* g = E^T e, e's columns being E times fresh test vectors, but for 'scale', where it is the first
 * such product. */
static gnomon_status step_back(gnomon_factor *f, const gnomon_tall *e, double scale,
                               const gnomon_tall *g, window *w)
{
    void *h = NULL;
    double *sums = NULL;
    gnomon_status status = cross(f, &f->u, e, &h);
    if (status == GNOMON_OK)
        status = gnomon_alloc(f->ctx, f->out->rank, sizeof *sums, "sums of squares", &sums);
    if (status == GNOMON_OK) {
        if (f->of_transpose && f->out->converged_values < 0)
            *w = window_of(f, h, e->cols, scale, sums);
        status = product(f, true, e, g, w);
    }
    if (status == GNOMON_OK) {
        scale_rows(f->f64, f->u.cols, e->cols, f->s, h);
        gnomon_tall_multiply(f->ctx, -1.0, &f->v, h, 1.0, g);
    }
    gnomon_free(f->ctx, sums);
    gnomon_free(f->ctx, h);
    return status;
}

/* |E|_2 by power steps from e = E g, and the bounds. norms: room for two times e->cols of them. */
static gnomon_status steps(gnomon_factor *f, gnomon_tall *g, gnomon_tall *e, double *norms)
{
    const int64_t count = e->cols;
    double *now = norms, *before = norms + count, longest;
    window w = {0, f->out->rank, 0, false};
    gnomon_lengths l;
    gnomon_lengths_begin(&l, f->seen.data != NULL ? 0 : f->options.test_power);
    GNOMON_TRY(normalise(f, e, now, &longest));
    gnomon_lengths_add(&l, now, NULL, count);
    for (int i = 0; i < l.power && longest > 0; i++) {
        double *swapped = before;
        before = now;
        now = swapped;
        GNOMON_TRY(step_back(f, e, longest, g, &w));
        GNOMON_TRY(product(f, false, g, e, &w));
        GNOMON_TRY(subtract(f, g, &f->u, f->s, &f->v, e));
        GNOMON_TRY(normalise(f, e, now, &longest));
        gnomon_lengths_add(&l, now, before, count);
    }
    /* Nothing is left of any test vector, and of A nothing but the factors. */
    if (f->out->converged_values < 0 && l.power > 0)
        for (f->out->converged_values = 0;
             f->out->converged_values < f->out->rank && f->s[f->out->converged_values] > 0;)
            f->out->converged_values++;
    const gnomon_centering *c = &f->source.center;
    const double rounding = l.power > 0 ? fmax(c->rounding, c->rounding_adjoint) : c->rounding;
    gnomon_bounds_of(f->out, &l, count, rounding * f->longest_test_vector, gnomon_certain_bound(f));
    return GNOMON_OK;
}

static gnomon_status spectral(gnomon_factor *f, gnomon_tall *g, gnomon_tall *e)
{
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, gnomon_times(2, e->cols), sizeof *norms, "norms", &norms));
    const gnomon_status status = steps(f, g, e, norms);
    gnomon_free(f->ctx, norms);
    return status;
}

static gnomon_status draw_and_test(gnomon_factor *f, gnomon_tall *g, gnomon_tall *e)
{
    GNOMON_TRY(gnomon_test_vectors(f, 0, f->options.test_vectors, g));
    if (f->seen.data != NULL) {
        *e = f->seen; /* still the factorisation's */
        GNOMON_TRY(subtract(f, g, &f->u, f->s, &f->v, e));
    } else {
        GNOMON_TRY(gnomon_test_residual(f, g, &f->u, f->s, &f->v, e));
    }
    GNOMON_TRY(gnomon_test_frobenius(f, e, &f->out->residual_estimate, &f->out->residual_bound));
    return spectral(f, g, e);
}

static gnomon_status measure(gnomon_factor *f)
{
    gnomon_tall scaled;
    GNOMON_TRY(
        gnomon_tall_make(f->ctx, f->f64, f->u.rows, f->u.cols, false, "left vectors", &scaled));
    for (int64_t i = 0; i < scaled.rows * scaled.cols; i++) {
        const double s = f->s[i % scaled.cols];
        if (f->f64)
            ((double *)scaled.data)[i] = ((double *)f->u.data)[i] * s;
        else
            ((float *)scaled.data)[i] = (float)((double)((float *)f->u.data)[i] * s);
    }
    gnomon_status status =
        gnomon_row_source_residual(&f->source, &scaled, &f->v, &f->out->residual);
    gnomon_tall_drop(f->ctx, &scaled);
    return status;
}

gnomon_status gnomon_certify(gnomon_factor *f)
{
    gnomon_status status = GNOMON_OK;
    if (f->options.test_vectors > 0) {
        gnomon_tall g = {0}, e = {0};
        const bool one_pass = f->seen.data != NULL;
        status = draw_and_test(f, &g, &e);
        gnomon_tall_drop(f->ctx, &g);
        if (!one_pass) gnomon_tall_drop(f->ctx, &e);
    }
    if (status == GNOMON_OK && f->options.measure) status = measure(f);
    f->out->certify_seconds += gnomon_lap(&f->clock);
    return status;
}
