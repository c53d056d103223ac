/* How good the preconditioner is, by vectors that do not depend on it.
 *
 * With E = I - omega H, M = T_q(E / guess), T_q Chebyshev's polynomial, and r Gaussian vectors g,
 * |M| <= a sqrt(2 / pi) max |M g| but with probability a^-r (Halko, Martinsson & Tropp 2011, Lemma
 * 4.1). As |T_q| grows beyond [-1, 1], an eigenvalue of E is at most guess * cosh(acosh(that) / q).
 * The bound is taken at every q up to GNOMON_TEST_STEPS, each allowed so small a part of the
 * failure, and the least of them holds. */
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"

#include <gnomon/operator.h>

#include <math.h>

/* The vectors are drawn where x lives and rotated by V. So the bound depends on the space that V
 * spans and on sigma, and on neither the signs of V's columns nor, where values of sigma are equal,
 * their choice: these are the BLAS's. */
static gnomon_status fill(gnomon_solver *s, const gnomon_operator *op)
{
    gnomon_h_test_vectors *p = &s->test_vectors;
    const int64_t numbers = s->rank * p->count;
    double *drawn = NULL;
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), "test vectors", &p->now));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, numbers, sizeof(double), "test vectors", &p->before));
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(s->d, p->count), sizeof *drawn, "test vectors", &drawn));
    gnomon_matrix out = {drawn, GNOMON_F64, GNOMON_HOST, p->count, s->d, 1, p->count};
    const gnomon_status status = gnomon_operator_block(s->ctx, op, 0, 0, &out);
    if (status == GNOMON_OK)
        gnomon_blas_gemm(true, true, false, s->rank, p->count, s->d, 1.0, s->v, s->d, drawn,
                         p->count, 0.0, p->now, p->count);
    gnomon_free(s->ctx, drawn);
    return status;
}

gnomon_status gnomon_test_vectors_draw(gnomon_solver *s)
{
    gnomon_h_test_vectors *p = &s->test_vectors;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op = NULL;
    p->bound = s->rank > 0 ? INFINITY : 0;
    p->omega = 1;
    if (s->options.test_vectors == 0 || s->rank == 0) return GNOMON_OK;
    p->count = s->options.test_vectors;
    d.kind = GNOMON_GAUSSIAN;
    d.scaling = GNOMON_UNSCALED;
    /* Other numbers than the sketch's, whatever its seed. */
    d.seed = s->wanted.seed ^ UINT64_C(0xd1b54a32d192ed03);
    d.k = (int64_t)1 << 32;
    d.d = (int64_t)1 << 56;
    GNOMON_TRY(gnomon_operator_create(s->ctx, &d, &op));
    gnomon_status status = fill(s, op);
    gnomon_operator_destroy(op);
    /* A Gaussian operator's law: H between (1 + e)^-2 and (1 - e)^-2. The bound holds whatever
     * these two are. */
    const double e = s->out->sketched ? fmin(sqrt((double)s->rank / (double)s->out->k), 0.95) : 0;
    p->omega = (1 - e * e) * (1 - e * e) / (1 + e * e);
    p->guess = fmax(2 * e / (1 + e * e), 1e-8);
    return status;
}

void gnomon_test_vectors_drop(gnomon_solver *s)
{
    gnomon_free(s->ctx, s->test_vectors.now);
    gnomon_free(s->ctx, s->test_vectors.before);
}

void gnomon_test_vectors_step(gnomon_solver *s, const double *h, int64_t cols, int64_t first)
{
    gnomon_h_test_vectors *p = &s->test_vectors;
    const double by = (p->steps > 0 ? 2 : 1) / p->guess;
    double longest = 0;
    for (int64_t j = 0; j < p->count; j++) {
        double sum = 0;
        for (int64_t i = 0; i < s->rank; i++) {
            const int64_t at = i * p->count + j;
            const double e = p->now[at] - p->omega * h[i * cols + first + j];
            const double next = by * e - p->before[at];
            p->before[at] = p->now[at];
            p->now[at] = next;
            sum += next * next;
        }
        longest = sum <= longest ? longest : sum;
    }
    p->steps++;
    const double share = GNOMON_LSTSQ_FAILURE / GNOMON_TEST_STEPS;
    const double most = sqrt(2 / acos(-1.0)) * exp(-log(share) / (double)p->count) * sqrt(longest);
    double bound = INFINITY;
    if (most <= 1)
        bound = p->guess;
    else if (isfinite(most))
        bound = p->guess * cosh(acosh(most) / (double)p->steps);
    if (bound < p->bound) p->bound = bound;
    /* Far outside of the guess the polynomials overflow; no step can mend that. */
    if (!(longest < 1e250)) p->steps = GNOMON_TEST_STEPS;
}

gnomon_status gnomon_test_vectors_estimate(gnomon_solver *s)
{
    gnomon_h_test_vectors *p = &s->test_vectors;
    double *h = NULL;
    if (p->count == 0) return GNOMON_OK;
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(s->rank, p->count), sizeof *h, "test vectors", &h));
    gnomon_status status = GNOMON_OK;
    while (status == GNOMON_OK && p->steps < GNOMON_TEST_STEPS && p->bound > 0.9) {
        status = gnomon_solver_apply(s, p->now, p->count, h);
        if (status == GNOMON_OK) gnomon_test_vectors_step(s, h, p->count, 0);
    }
    gnomon_free(s->ctx, h);
    return status;
}
