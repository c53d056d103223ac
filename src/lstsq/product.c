/* Products with the preconditioned matrix: P y, and H y of P^T A^T A P by one pass. */
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "lstsq/lstsq.h"

void gnomon_solver_scale(const gnomon_solver *s, double *a, int64_t cols)
{
    if (s->columns == NULL) return;
    for (int64_t i = 0; i < s->d; i++) {
        for (int64_t j = 0; j < cols; j++)
            a[i * cols + j] *= s->columns[i];
    }
}

void gnomon_solver_multiply_p(const gnomon_solver *s, const double *y, int64_t cols, double *scaled,
                              double *out)
{
    for (int64_t i = 0; i < s->rank; i++) {
        for (int64_t j = 0; j < cols; j++)
            scaled[i * cols + j] = y[i * cols + j] / s->sigma[i];
    }
    gnomon_blas_gemm(true, false, false, s->d, cols, s->rank, 1.0, s->v, s->d, scaled, cols, 0.0,
                     out, cols);
    gnomon_solver_scale(s, out, cols);
}

gnomon_status gnomon_solver_apply_in(gnomon_solver *s, const double *y, int64_t cols,
                                     double *scratch, double *h)
{
    double *in = scratch, *z = in + s->d * cols;
    const gnomon_sweep sweep = {.in = in, .cols = cols, .z = z};
    gnomon_solver_multiply_p(s, y, cols, h, in);
    GNOMON_TRY(gnomon_sweep_rows(s, &sweep));
    for (int64_t i = 0; i < s->d * cols; i++)
        z[i] += s->lambda * s->lambda * in[i];
    gnomon_solver_scale(s, z, cols);
    gnomon_blas_gemm(true, true, false, s->rank, cols, s->d, 1.0, s->v, s->d, z, cols, 0.0, h,
                     cols);
    for (int64_t i = 0; i < s->rank; i++) {
        for (int64_t j = 0; j < cols; j++)
            h[i * cols + j] /= s->sigma[i];
    }
    return GNOMON_OK;
}

gnomon_status gnomon_solver_apply(gnomon_solver *s, const double *y, int64_t cols, double *h)
{
    double *scratch = NULL;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(gnomon_times(2, s->d), cols), sizeof *scratch,
                            "a product", &scratch));
    gnomon_status status = gnomon_solver_apply_in(s, y, cols, scratch, h);
    gnomon_free(s->ctx, scratch);
    return status;
}
