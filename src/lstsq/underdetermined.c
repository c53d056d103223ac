/* The shortest solution of A x = b for A with more columns than rows: x = T y with T = A^T and T^T
 * T y = b, by the tall T's preconditioner (Meng, Saunders & Mahoney 2014 precondition from this
 * side too). x is summed up from T times each change of y, never made of y at once: so its rounding
 * is that of x, not of the longer y, and what is left of b is corrected like a residual. */
#include "lstsq/underdetermined.h"

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"

#include <math.h>
#include <string.h>

gnomon_status gnomon_underdetermined_begin(gnomon_solver *s)
{
    gnomon_underdetermined *w = s->underdetermined;
    const int64_t n = s->d, cols = s->n, m = s->m;
    int64_t numbers;
    GNOMON_FAIL_IF(!gnomon_mul(cols, m, &numbers), s->ctx, GNOMON_ERROR_OVERFLOW,
                   "the solution is too large for 63 bits");
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(n, m), sizeof(double), "b", &w->right));
    GNOMON_TRY(
        gnomon_alloc_zero(s->ctx, gnomon_times(n, m), sizeof(double), "changes", &w->change));
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(n, m), sizeof(double), "the residual", &w->left));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, numbers, sizeof(double), "the solution", &w->x));
    GNOMON_TRY(gnomon_alloc(s->ctx, numbers, sizeof(double), "the solution", &w->best));
    s->n = n;
    const gnomon_status status = gnomon_solver_scan_b(s);
    if (status == GNOMON_OK) gnomon_solver_read_b(s, 0, n, w->right);
    s->n = cols;
    GNOMON_TRY(status);
    w->exponent = s->exponent;
    s->exponent = NULL;
    w->view = gnomon_matrix_rowmajor(w->x, GNOMON_F64, cols, m);
    s->b = &w->view;
    return gnomon_alloc_zero(s->ctx, m, sizeof(int), "exponents", &s->exponent);
}

void gnomon_underdetermined_drop(gnomon_solver *s)
{
    gnomon_underdetermined *w = s->underdetermined;
    if (w == NULL) return;
    gnomon_free(s->ctx, w->exponent);
    gnomon_free(s->ctx, w->right);
    gnomon_free(s->ctx, w->change);
    gnomon_free(s->ctx, w->left);
    gnomon_free(s->ctx, w->x);
    gnomon_free(s->ctx, w->best);
}

void gnomon_underdetermined_change(gnomon_solver *s, const double *change)
{
    for (int64_t i = 0; i < s->d * s->m; i++)
        s->underdetermined->change[i] -= change[i];
}

static void copy_column(const gnomon_solver *s, const double *from, double *to, int64_t j)
{
    for (int64_t i = j; i < s->n * s->m; i += s->m)
        to[i] = from[i];
}

void gnomon_underdetermined_keep(gnomon_solver *s, int64_t j)
{
    copy_column(s, s->underdetermined->x, s->underdetermined->best, j);
}

void gnomon_underdetermined_go_back(gnomon_solver *s, int64_t j)
{
    copy_column(s, s->underdetermined->best, s->underdetermined->x, j);
}

double gnomon_underdetermined_error(const gnomon_solver *s, const gnomon_state *state, int64_t j,
                                    double squares)
{
    const double whole = s->norm * state->norm_x[j] + s->norm_b[j];
    return whole > 0 ? sqrt(squares) / whole : 0;
}

static double square(double x)
{
    return x * x;
}

/* x += T times y's change, and what that leaves of b. */
gnomon_status gnomon_underdetermined_evaluate(gnomon_solver *s, gnomon_state *state)
{
    gnomon_underdetermined *w = s->underdetermined;
    const int64_t n = s->d, m = s->m;
    double *r = NULL;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(n, m), sizeof *r, "a residual", &r));
    /* a sweep subtracts, and puts what that leaves in its place */
    const gnomon_sweep sweep = {w->change, m, true, r, state->norm_x, &w->view, NULL};
    const gnomon_status status = gnomon_sweep_rows(s, &sweep);
    memset(w->change, 0, (size_t)(n * m) * sizeof *w->change);
    for (int64_t j = 0; j < m && status == GNOMON_OK; j++) {
        double plain = 0, norm_y = 0;
        for (int64_t i = j; i < n * m; i += m) {
            w->left[i] = w->right[i] - r[i];
            r[i] = w->left[i] - s->lambda * s->lambda * s->x[i];
            plain += square(w->left[i]);
            norm_y += square(s->x[i]);
        }
        state->plain[j] = plain;
        /* with lambda: of [x, lambda y], the shortest solution of [A, lambda I] */
        state->norm_x[j] = sqrt(state->norm_x[j] + square(s->lambda) * norm_y);
        state->transposed[j] = sqrt(norm_y);
        state->squares[j] = 0;
        for (int64_t i = j; i < n * m; i += m)
            state->squares[j] += square(r[i]);
    }
    if (status == GNOMON_OK) {
        gnomon_blas_gemm(true, true, false, n, m, n, 1.0, s->v, n, r, m, 0.0, state->g, m);
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t i = 0; i < s->rank; i++)
                sum += square(state->g[i * m + j]);
            state->error[j] = gnomon_underdetermined_error(s, state, j, sum);
        }
    }
    gnomon_free(s->ctx, r);
    return status;
}

/* squares[j] = |x - T y|^2, and with gradients gradients[j] = |A^T (b - A x)|^2 */
static gnomon_status measure(gnomon_solver *s, double *squares, double *gradients)
{
    double *z = NULL;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(s->d, s->m), sizeof *z, "a product", &z));
    const gnomon_sweep gap = {s->x, s->m, true, z, squares, NULL, NULL};
    const gnomon_sweep gradient = {s->underdetermined->left, s->m, false, z, gradients, NULL, NULL};
    gnomon_status status = gnomon_sweep_rows(s, &gap);
    if (status == GNOMON_OK && s->rank < s->d) status = gnomon_sweep_rows(s, &gradient);
    gnomon_free(s->ctx, z);
    return status;
}

/* With |I - omega H| <= p: |x - x*| <= |x - T y| + |T (y - y*)|, and the square of the latter is at
 * most c^T H^-1 c, c = P^T (b - A x - lambda^2 y) + P^T A (x - T y). */
static void bound(const gnomon_solver *s, const gnomon_state *state, int64_t j, double gap,
                  double lost, gnomon_lstsq_target *t)
{
    const gnomon_h_test_vectors *p = &s->test_vectors;
    double c = 0;
    t->fit_bound = t->suboptimality = t->forward_bound = (double)NAN;
    if (p->count == 0 && s->rank > 0) return;
    for (int64_t i = 0; i < s->rank; i++)
        c += square(state->g[i * s->m + j] / s->sigma[i]);
    c = sqrt(c);
    if (s->rank == 0) {
        t->fit_bound = t->forward_bound = 0;
    } else if (!(p->bound < 1)) {
        t->fit_bound = t->forward_bound = c > 0 || gap > 0 ? INFINITY : 0;
    } else {
        const double high = sqrt((1 + p->bound) / p->omega);
        c += high * gap + lost / s->sigma[s->rank - 1];
        t->forward_bound = gap + sqrt(p->omega / (1 - p->bound)) * c;
        t->fit_bound = high * s->sigma[0] * t->forward_bound;
    }
    /* Then A x* = b. */
    if (s->rank == s->d && s->lambda == 0)
        t->fit_bound = fmin(t->fit_bound, sqrt(state->plain[j]) + lost);
}

/* gap: |x - T y|; gradient: |A^T r|, where A's rank lets r be more than rounding. */
static void describe(const gnomon_solver *s, const gnomon_state *state, int64_t j, double gap,
                     double gradient)
{
    gnomon_lstsq_target *t = &s->out->target[j];
    const int of_b = s->underdetermined->exponent[j], of_x = of_b - s->source.exponent;
    const double x = state->norm_x[j], y = state->transposed[j];
    const double least = s->rank > 0 ? s->sigma[s->rank - 1] : INFINITY;
    /* What rounding may have done to b - A x, a sum over A's columns, and to x - A^T y. */
    const double lost = gnomon_solver_loss_of_rows(s) * s->norm * x +
                        gnomon_solver_loss(1) * (s->norm_b[j] + s->lambda * s->lambda * y);
    const double of_gap = gnomon_solver_loss((double)s->d) * (s->norm * y + x);
    const double of_rows = gnomon_ratio(gnomon_ratio(gap, y), s->norm);
    const double rows_bound = gnomon_ratio(gnomon_ratio(gap + of_gap, y), s->norm);
    t->gradient = (double)NAN;
    t->backward_error = hypot(state->error[j], of_rows);
    t->backward_bound =
        hypot(gnomon_ratio(gnomon_ratio(sqrt(state->squares[j]) + lost, x), s->norm), rows_bound);
    if (s->rank < s->d) {
        t->gradient = gnomon_ratio(gnomon_ratio(gradient, sqrt(state->plain[j])), s->norm);
        const double r = sqrt(state->plain[j]), of_gradient = gnomon_solver_loss((double)s->d);
        if (r > lost)
            t->backward_bound = fmin(t->backward_bound, hypot(t->gradient * (r / (r - lost)) +
                                                                  lost / (r - lost) + of_gradient,
                                                              rows_bound));
    }
    t->backward_bound = fmin(t->backward_bound, 1);
    bound(s, state, j, gap + of_gap, lost, t);
    t->sensitivity = x > 0 ? (2 * s->norm + s->norm_b[j] / x) / least : 1;
    double plain = 0; /* of x alone */
    for (int64_t i = j; i < s->n * s->m; i += s->m)
        plain += square(s->underdetermined->x[i]);
    t->norm_b = ldexp(s->norm_b[j], of_b);
    t->norm_x = ldexp(sqrt(plain), of_x);
    t->residual = ldexp(sqrt(state->plain[j]), of_b);
    t->fit_bound = ldexp(t->fit_bound, of_b);
    t->forward_bound = ldexp(t->forward_bound, of_x);
}

/* to (rows x m, row-major, of the context's allocator) = from, scaled back. */
static gnomon_status hand_out(gnomon_solver *s, const double *from, int64_t rows, int shift,
                              const char *what, gnomon_matrix *to)
{
    const gnomon_dtype dtype = s->options.dtype != 0 ? s->options.dtype : GNOMON_F64;
    const double most = dtype == GNOMON_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
    void *data = NULL;
    GNOMON_TRY(
        gnomon_alloc(s->ctx, gnomon_times(rows, s->m), gnomon_dtype_size(dtype), what, &data));
    *to = gnomon_matrix_rowmajor(data, dtype, rows, s->m);
    for (int64_t i = 0; i < rows * s->m; i++) {
        const double value = ldexp(from[i], s->underdetermined->exponent[i % s->m] - shift);
        GNOMON_FAIL_IF(!(fabs(value) <= most), s->ctx, GNOMON_ERROR_NONFINITE,
                       "%s is larger than %s can hold; scale a or b", what,
                       dtype == GNOMON_F32 ? "a float" : "a double");
        if (dtype == GNOMON_F32)
            ((float *)data)[i] = (float)value;
        else
            ((double *)data)[i] = value;
    }
    return GNOMON_OK;
}

/* Rounds x to float, as it will be returned. */
static void round_to_float(gnomon_solver *s)
{
    for (int64_t i = 0; i < s->n * s->m; i++) {
        const int shift = s->underdetermined->exponent[i % s->m] - s->source.exponent;
        s->underdetermined->x[i] =
            ldexp((double)(float)ldexp(s->underdetermined->x[i], shift), -shift);
    }
}

static gnomon_status finish(gnomon_solver *s, gnomon_state *state, double *squares)
{
    gnomon_lstsq *out = s->out;
    GNOMON_TRY(gnomon_test_vectors_estimate(s));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, s->m, sizeof *out->target, "figures", &out->target));
    out->converged = 1;
    for (int64_t j = 0; j < s->m; j++) {
        out->target[j].converged = state->error[j] <= s->options.tolerance;
        out->converged = out->converged && out->target[j].converged;
    }
    if (s->options.dtype == GNOMON_F32) {
        round_to_float(s);
        GNOMON_TRY(gnomon_underdetermined_evaluate(s, state));
    }
    GNOMON_TRY(measure(s, squares, squares + s->m));
    for (int64_t j = 0; j < s->m; j++)
        describe(s, state, j, sqrt(squares[j]), sqrt(squares[s->m + j]));
    gnomon_solver_tell(s);
    if (s->options.keep_residual)
        GNOMON_TRY(hand_out(s, s->underdetermined->left, s->d, 0, "the residual", &out->residual));
    return hand_out(s, s->underdetermined->x, s->n, s->source.exponent, "the solution", &out->x);
}

gnomon_status gnomon_underdetermined_finish(gnomon_solver *s, gnomon_state *state)
{
    double *squares = NULL;
    GNOMON_TRY(
        gnomon_alloc_zero(s->ctx, gnomon_times(2, s->m), sizeof *squares, "norms", &squares));
    const gnomon_status status = finish(s, state, squares);
    gnomon_free(s->ctx, squares);
    return status;
}

gnomon_status gnomon_underdetermined_transpose(gnomon_context *ctx, const gnomon_csr *a,
                                               gnomon_csr *to)
{
    const size_t size = gnomon_dtype_size(a->dtype);
    const int64_t first = a->offsets[0], count = a->offsets[a->rows] - first;
    int64_t numbers, *offsets = NULL;
    GNOMON_FAIL_IF(!gnomon_mul(count, 2, &numbers) || !gnomon_add(numbers, a->cols, &numbers) ||
                       !gnomon_add(numbers, 2, &numbers),
                   ctx, GNOMON_ERROR_OVERFLOW, "a, transposed, does not fit 63 bits");
    GNOMON_TRY(gnomon_alloc_zero(ctx, numbers, sizeof *offsets, "a, transposed", &offsets));
    int64_t *indices = offsets + a->cols + 2;
    char *values = (char *)(indices + count); /* a value takes 8 bytes at most */
    *to = (gnomon_csr){a->cols, a->rows, offsets, indices, values, a->dtype};
    /* offsets[j + 1] goes from where column j begins to where it ends */
    for (int64_t i = 0; i < count; i++)
        offsets[a->indices[i] + 2]++;
    for (int64_t j = 0; j < a->cols; j++)
        offsets[j + 2] += offsets[j + 1];
    for (int64_t row = 0; row < a->rows; row++) {
        for (int64_t i = a->offsets[row] - first; i < a->offsets[row + 1] - first; i++) {
            const int64_t at = offsets[a->indices[i] + 1]++;
            indices[at] = row;
            memcpy(values + (size_t)at * size, (const char *)a->values + (size_t)i * size, size);
        }
    }
    return GNOMON_OK;
}
