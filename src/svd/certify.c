/* What the factors leave, by fresh Gaussian vectors. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "svd/factor.h"

#include <math.h>

gnomon_status gnomon_probes(gnomon_factor *f, int64_t first, int64_t count, gnomon_tall *g)
{
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->wide, f->source.cols, count, false, "probes", g));
    gnomon_matrix transposed = {
        g->data, f->wide ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, count, g->rows, 1, count};
    return gnomon_operator_block(f->ctx, f->probes, first, 0, &transposed);
}

static void scale_rows(bool wide, int64_t rows, int64_t cols, const double *s, void *h)
{
    for (int64_t i = 0; s != NULL && i < rows * cols; i++) {
        if (wide)
            ((double *)h)[i] *= s[i / cols];
        else
            ((float *)h)[i] = (float)((double)((float *)h)[i] * s[i / cols]);
    }
}

/* e -= b (diag(s) (c^T g)) */
static gnomon_status subtract(gnomon_factor *f, const gnomon_tall *g, const gnomon_tall *b,
                              const double *s, const gnomon_tall *c, const gnomon_tall *e)
{
    void *h = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, c->cols * g->cols, gnomon_tall_size(f->wide), "a product", &h));
    gnomon_status status = gnomon_tall_cross(f->ctx, c, g, h);
    if (status == GNOMON_OK) {
        scale_rows(f->wide, c->cols, g->cols, s, h);
        gnomon_tall_multiply(f->ctx, -1.0, b, h, 1.0, e);
    }
    gnomon_free(f->ctx, h);
    return status;
}

gnomon_status gnomon_probe_residual(gnomon_factor *f, const gnomon_tall *g, const gnomon_tall *b,
                                    const double *s, const gnomon_tall *c, gnomon_tall *e)
{
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->wide, f->source.rows, g->cols, false, "residuals", e));
    GNOMON_TRY(gnomon_feed_apply(&f->source, g, e));
    return subtract(f, g, b, s, c, e);
}

/* The x < 1 with (x e^(1 - x))^(r / 2) = failure. */
static double lower_share(int64_t r, double failure)
{
    const double wanted = 2 * log(failure) / (double)r;
    double low = 0, high = 1;
    for (int i = 0; i < 200; i++) {
        const double x = 0.5 * (low + high);
        if (log(x) + 1 - x < wanted)
            low = x;
        else
            high = x;
    }
    return low;
}

void gnomon_frobenius_of(const double *norms, int64_t count, double *estimate, double *bound)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++)
        sum += norms[j] * norms[j];
    *estimate = sqrt(sum / (double)count);
    *bound = *estimate / sqrt(lower_share(count, GNOMON_FAILURE));
}

/* The probes count as often as the squares of singular values that spectral allows make up the sum
 * bounded: more the larger the sum, so the bound is where both agree. A spectral of 0 has
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

gnomon_status gnomon_probe_frobenius(gnomon_factor *f, const gnomon_tall *e, double *estimate,
                                     double *bound)
{
    double *norms = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, e->cols, sizeof *norms, "norms", &norms));
    gnomon_tall_norms(f->ctx, e, norms);
    gnomon_frobenius_of(norms, e->cols, estimate, bound);
    gnomon_free(f->ctx, norms);
    return GNOMON_OK;
}

/* Halko, Martinsson & Tropp's (2011) Lemma 4.1. */
static double spectral_bound(double estimate, double root, int64_t count, double failure)
{
    return estimate * exp((0.5 * log(2 / acos(-1.0)) - log(failure) / (double)count) / root);
}

void gnomon_bounds_of(gnomon_svd *out, double logarithms, int power, int64_t count)
{
    const double root = 2.0 * power + 1;
    const double estimate = isinf(logarithms) ? 0 : exp(logarithms / root);
    /* of the sum's failure half is that of the norm it rests on */
    const double half = 0.5 * GNOMON_FAILURE;
    out->spectral_estimate = estimate;
    out->spectral_bound = spectral_bound(estimate, root, count, GNOMON_FAILURE);
    out->residual_bound = gnomon_frobenius_bound(
        out->residual_estimate, spectral_bound(estimate, root, count, half), count, half);
}

/* The longest column of e, by which all are divided when that is not zero. */
static gnomon_status normalise(gnomon_factor *f, const gnomon_tall *e, double *longest)
{
    double *norms = NULL;
    *longest = 0;
    GNOMON_TRY(gnomon_alloc(f->ctx, e->cols, sizeof *norms, "norms", &norms));
    gnomon_tall_norms(f->ctx, e, norms);
    for (int64_t j = 0; j < e->cols; j++)
        *longest = norms[j] > *longest ? norms[j] : *longest;
    gnomon_free(f->ctx, norms);
    if (*longest == 0) return GNOMON_OK;
    for (int64_t i = 0; i < e->rows * e->cols; i++) {
        if (e->wide)
            ((double *)e->data)[i] /= *longest;
        else
            ((float *)e->data)[i] = (float)((double)((float *)e->data)[i] / *longest);
    }
    return GNOMON_OK;
}

/* |E|_2 by power steps from e = E g, and the bounds. */
static gnomon_status spectral(gnomon_factor *f, gnomon_tall *g, gnomon_tall *e)
{
    const int power = f->seen.data != NULL ? 0 : f->options.probe_power;
    double longest, sum;
    GNOMON_TRY(normalise(f, e, &longest));
    sum = log(longest);
    for (int i = 0; i < power && longest > 0; i++) {
        GNOMON_TRY(gnomon_feed_adjoint(&f->source, e, g));
        GNOMON_TRY(subtract(f, e, &f->v, f->s, &f->u, g));
        GNOMON_TRY(gnomon_feed_apply(&f->source, g, e));
        GNOMON_TRY(subtract(f, g, &f->u, f->s, &f->v, e));
        GNOMON_TRY(normalise(f, e, &longest));
        sum += log(longest);
    }
    gnomon_bounds_of(f->out, sum, power, e->cols);
    return GNOMON_OK;
}

static gnomon_status probe(gnomon_factor *f, gnomon_tall *g, gnomon_tall *e)
{
    GNOMON_TRY(gnomon_probes(f, 0, f->options.probes, g));
    if (f->seen.data != NULL) {
        *e = f->seen; /* still the factorisation's */
        GNOMON_TRY(subtract(f, g, &f->u, f->s, &f->v, e));
    } else {
        GNOMON_TRY(gnomon_probe_residual(f, g, &f->u, f->s, &f->v, e));
    }
    GNOMON_TRY(gnomon_probe_frobenius(f, e, &f->out->residual_estimate, &f->out->residual_bound));
    return spectral(f, g, e);
}

static gnomon_status measure(gnomon_factor *f)
{
    gnomon_tall scaled;
    GNOMON_TRY(
        gnomon_tall_make(f->ctx, f->wide, f->u.rows, f->u.cols, false, "left vectors", &scaled));
    for (int64_t i = 0; i < scaled.rows * scaled.cols; i++) {
        const double s = f->s[i % scaled.cols];
        if (f->wide)
            ((double *)scaled.data)[i] = ((double *)f->u.data)[i] * s;
        else
            ((float *)scaled.data)[i] = (float)((double)((float *)f->u.data)[i] * s);
    }
    gnomon_status status = gnomon_feed_residual(&f->source, &scaled, &f->v, &f->out->residual);
    gnomon_tall_drop(f->ctx, &scaled);
    return status;
}

gnomon_status gnomon_certify(gnomon_factor *f)
{
    gnomon_status status = GNOMON_OK;
    if (f->options.probes > 0) {
        gnomon_tall g = {0}, e = {0};
        const bool once = f->seen.data != NULL;
        status = probe(f, &g, &e);
        gnomon_tall_drop(f->ctx, &g);
        if (!once) gnomon_tall_drop(f->ctx, &e);
    }
    if (status == GNOMON_OK && f->options.measure) status = measure(f);
    f->out->certify_seconds += gnomon_lap(&f->clock);
    return status;
}
