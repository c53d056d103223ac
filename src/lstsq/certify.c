/* The bounds on a solution, which follow from how good the preconditioner is (test_vectors.c). */
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"
#include "lstsq/underdetermined.h"

#include <math.h>
#include <string.h>

/* Rounds x to float, as it will be returned. */
static void round_to_float(gnomon_solver *s)
{
    for (int64_t i = 0; i < s->d * s->m; i++) {
        const int shift = s->exponent[i % s->m] - s->source.exponent;
        s->x[i] = ldexp((double)(float)ldexp(s->x[i], shift), -shift);
    }
}

/* What rounding may have done: to r, and beside that to A^T r - lambda^2 x; lengths. */
typedef struct loss {
    double r, gradient, length; /* length: of the gradient as it was computed */
} loss;

/* Of the gradient g (d x m), or of it turned: by A's own columns, or by those of A D^-1. */
static loss lost_of(const gnomon_solver *s, const gnomon_state *state, int64_t j, const double *g,
                    bool own)
{
    loss l = {0, 0, 0};
    const double of_product = gnomon_solver_loss((double)s->d);
    double x = state->norm_x[j];
    if (!own && s->columns != NULL) {
        x = 0;
        for (int64_t i = 0; i < s->d; i++)
            x = hypot(x, s->columns[i] * s->x[i * s->m + j]);
    }
    for (int64_t i = 0; i < s->d; i++)
        l.length = hypot(l.length, g[i * s->m + j]);
    l.r = of_product * (s->norm_b[j] + s->norm_of_columns * state->norm_dx[j]);
    l.gradient = gnomon_solver_loss_of_rows(s) * (own ? s->norm : s->norm_of_columns) *
                     sqrt(state->plain[j]) +
                 gnomon_solver_loss(1) * s->lambda * s->lambda * x +
                 of_product * sqrt((double)s->d) * l.length;
    return l;
}

/* Of all solutions: the gradient of A's own columns, and P times c = P^T times the gradient. */
typedef struct turned {
    double *own, *pc; /* d x m; NULL, columns being A's own */
} turned;

static gnomon_status turn_back(gnomon_solver *s, const gnomon_state *state, turned *t)
{
    const int64_t d = s->d, m = s->m;
    double *c = NULL;
    if (s->columns == NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof *c, "a gradient", &t->own));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(d, m), sizeof *c, "a gradient", &t->pc));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(2 * d, m), sizeof *c, "a gradient", &c));
    gnomon_blas_gemm(true, false, false, d, m, d, 1.0, s->v, d, state->g, m, 0.0, t->own, m);
    for (int64_t i = 0; i < d * m; i++)
        t->own[i] /= s->columns[i / m];
    for (int64_t i = 0; i < s->rank * m; i++)
        c[i] = state->g[i] / s->sigma[i / m];
    gnomon_solver_multiply_p(s, c, m, c + d * m, t->pc);
    gnomon_free(s->ctx, c);
    return GNOMON_OK;
}

static void release(gnomon_solver *s, turned *t)
{
    gnomon_free(s->ctx, t->own);
    gnomon_free(s->ctx, t->pc);
}

/* Figures of one solution that need the preconditioner's quality. With r lost by e and the gradient
 * by f, c is lost by at most high |e| + |f| / sigma: P^T A^T is no longer than high. */
static void bound(const gnomon_solver *s, const gnomon_state *state, const double *of_pc, int64_t j,
                  gnomon_lstsq_target *t)
{
    const gnomon_h_test_vectors *p = &s->test_vectors;
    const loss lost = lost_of(s, state, j, state->g, false);
    const double r = sqrt(state->squares[j]);
    double c = 0, pc = 0;
    t->fit_bound = t->suboptimality = t->forward_bound = (double)NAN;
    if (p->count == 0 && s->rank > 0) return;
    if (s->rank == 0) {
        t->fit_bound = t->suboptimality = t->forward_bound = 0;
        return;
    }
    for (int64_t i = 0; i < s->rank; i++) {
        const double x = state->g[i * s->m + j] / s->sigma[i], y = x / s->sigma[i];
        c += x * x;
        pc += y * y;
    }
    c = sqrt(c);
    pc = sqrt(pc);
    if (of_pc != NULL) {
        pc = 0;
        for (int64_t i = 0; i < s->d; i++)
            pc = hypot(pc, of_pc[i * s->m + j]);
    }
    t->fit_bound = t->forward_bound = c > 0 || lost.r > 0 ? INFINITY : 0;
    if (p->bound < 1) {
        const double inverse = p->omega / (1 - p->bound); /* of low, squared */
        const double high = sqrt((1 + p->bound) / p->omega);
        const double more = high * lost.r + lost.gradient / s->sigma[s->rank - 1];
        const double least = s->least;
        t->fit_bound = sqrt(inverse) * (c + more);
        t->forward_bound =
            p->omega * (pc + p->bound / (1 - p->bound) * c / least) + inverse * more / least;
        /* The directions that count are themselves known up to rounding. */
        if (s->rank < s->d)
            t->forward_bound +=
                gnomon_solver_loss((double)s->d) * s->norm / least * (state->norm_x[j] + r / least);
    }
    /* |r|^2 = |r*|^2 + |A (x - x*)|^2 */
    if (s->rank == s->d) t->fit_bound = fmin(t->fit_bound, r + lost.r);
    const double part = r > lost.r ? t->fit_bound / (r - lost.r) : t->fit_bound > 0 ? INFINITY : 0;
    t->suboptimality = part < 1 ? expm1(-0.5 * log1p(-part * part)) : INFINITY;
}

static void describe(const gnomon_solver *s, const gnomon_state *state, const turned *back,
                     int64_t j)
{
    gnomon_lstsq_target *t = &s->out->target[j];
    const int of_b = s->exponent[j], of_x = of_b - s->source.exponent;
    const double r = sqrt(state->squares[j]), x = state->norm_x[j];
    const loss lost = lost_of(s, state, j, back->own != NULL ? back->own : state->g, true);
    t->backward_error = state->error[j];
    t->gradient = gnomon_ratio(gnomon_ratio(lost.length, r), s->norm);
    t->backward_bound = 1; /* 0 for A */
    if (s->norm > 0 && r > lost.r)
        t->backward_bound =
            fmin(1, (lost.length + s->norm * lost.r + lost.gradient) / (r - lost.r) / s->norm);
    if (x > 0 && s->norm > 0)
        t->backward_bound = fmin(t->backward_bound, (r + lost.r) / x / s->norm);
    if (s->norm == 0 || s->norm_b[j] == 0) t->backward_bound = 0;
    bound(s, state, back->pc, j, t);
    const double least = s->rank > 0 ? s->least : INFINITY;
    t->sensitivity = x > 0 ? ((s->norm + s->norm_b[j] / x) + r / x * (s->norm / least)) / least : 1;
    t->norm_b = ldexp(s->norm_b[j], of_b);
    t->norm_x = ldexp(x, of_x);
    t->residual = ldexp(sqrt(state->plain[j]), of_b);
    t->fit_bound = ldexp(t->fit_bound, of_b);
    t->forward_bound = ldexp(t->forward_bound, of_x);
}

static gnomon_status hand_out(gnomon_solver *s, gnomon_dtype dtype)
{
    gnomon_lstsq *out = s->out;
    const int64_t numbers = s->d * s->m;
    const double most = dtype == GNOMON_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
    void *x = NULL;
    for (int64_t i = 0; i < numbers; i++) {
        s->x[i] = ldexp(s->x[i], s->exponent[i % s->m] - s->source.exponent);
        GNOMON_FAIL_IF(!(fabs(s->x[i]) <= most), s->ctx, GNOMON_ERROR_NONFINITE,
                       "the solution is larger than %s can hold; scale a or b",
                       dtype == GNOMON_F32 ? "a float" : "a double");
    }
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, gnomon_dtype_size(dtype), "the solution", &x));
    gnomon_f64_to_type(dtype == GNOMON_F64, numbers, s->x, x);
    out->x = gnomon_matrix_rowmajor(x, dtype, s->d, s->m);
    return GNOMON_OK;
}

gnomon_status gnomon_solver_finish(gnomon_solver *s, gnomon_state *state)
{
    gnomon_lstsq *out = s->out;
    const gnomon_dtype dtype = s->options.dtype != 0 ? s->options.dtype : GNOMON_F64;
    const bool keep = s->options.keep_residual != 0;
    if (s->underdetermined != NULL) return gnomon_underdetermined_finish(s, state);
    GNOMON_TRY(gnomon_test_vectors_estimate(s));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->m, sizeof *out->target, "figures", &out->target));
    out->converged = 1;
    for (int64_t j = 0; j < s->m; j++) {
        out->target[j].converged = state->error[j] <= s->options.tolerance;
        out->converged = out->converged && out->target[j].converged;
    }
    if (keep) {
        int64_t numbers;
        void *data = NULL;
        GNOMON_FAIL_IF(!gnomon_mul(s->n, s->m, &numbers), s->ctx, GNOMON_ERROR_OVERFLOW,
                       "the residual is too large for 63 bits");
        GNOMON_TRY(gnomon_alloc(s->ctx, numbers, gnomon_dtype_size(dtype), "the residual", &data));
        out->residual = gnomon_matrix_rowmajor(data, dtype, s->n, s->m);
    }
    if (dtype == GNOMON_F32) round_to_float(s);
    if (keep || dtype == GNOMON_F32)
        GNOMON_TRY(gnomon_solver_evaluate(s, state, keep ? &out->residual : NULL));
    turned back = {NULL, NULL};
    const gnomon_status status = turn_back(s, state, &back);
    for (int64_t j = 0; j < s->m && status == GNOMON_OK; j++)
        describe(s, state, &back, j);
    release(s, &back);
    GNOMON_TRY(status);
    gnomon_solver_tell(s);
    return hand_out(s, dtype);
}
