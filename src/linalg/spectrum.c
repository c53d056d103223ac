#include "linalg/spectrum.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"

#include <math.h>
#include <string.h>

static bool is_finite(int64_t n, const double *gram)
{
    bool finite = true;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i; j < n; j++)
            finite = finite && isfinite(gram[i * n + j]);
    return finite;
}

/* From rising to falling. */
static void turn(int64_t n, double *rows, double *values)
{
    for (int64_t i = 0, j = n - 1; i < j; i++, j--) {
        const double value = values[i];
        values[i] = values[j];
        values[j] = value;
        for (int64_t l = 0; l < n; l++) {
            const double x = rows[i * n + l];
            rows[i * n + l] = rows[j * n + l];
            rows[j * n + l] = x;
        }
    }
}

gnomon_status gnomon_gram_spectrum(gnomon_context *ctx, int64_t n, double span, double *gram,
                                   double *s, bool *told)
{
    int64_t work_count, index_count;
    double *work = NULL;
    int *index = NULL;
    *told = false;
    if (n == 0 || !is_finite(n, gram)) return GNOMON_OK;
    gnomon_blas_eigen_work(n, &work_count, &index_count);
    if (work_count > GNOMON_BLAS_MAX || index_count > GNOMON_BLAS_MAX) return GNOMON_OK;
    gnomon_status status = gnomon_alloc(ctx, work_count, sizeof *work, "the small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, index_count, sizeof *index, "the small problem", &index);
    if (status == GNOMON_OK)
        *told = gnomon_blas_eigen(n, gram, s, work, work_count, index, index_count) && s[0] > 0 &&
                s[0] > span * span * s[n - 1];
    gnomon_free(ctx, work);
    gnomon_free(ctx, index);
    if (!*told) return status;
    turn(n, gram, s);
    for (int64_t i = 0; i < n; i++)
        s[i] = sqrt(s[i]);
    return GNOMON_OK;
}

gnomon_status gnomon_square_svd(gnomon_context *ctx, int64_t n, const double *a, double *s,
                                double *u, double *vt, bool *converged)
{
    const int64_t count = gnomon_blas_svd_work(n);
    double *copy = NULL, *work = NULL;
    int *index = NULL;
    *converged = false;
    gnomon_status status =
        gnomon_alloc(ctx, gnomon_times(n, n), sizeof *copy, "the small problem", &copy);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, count, sizeof *work, "the small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(8, n), sizeof *index, "the small problem", &index);
    if (status == GNOMON_OK) *converged = gnomon_blas_svd(n, copy, a, s, u, vt, work, count, index);
    gnomon_free(ctx, copy);
    gnomon_free(ctx, work);
    gnomon_free(ctx, index);
    return status;
}

gnomon_status gnomon_triangle_svd(gnomon_context *ctx, int64_t n, const double *r, double span,
                                  double *s, double *u, double *vt, bool *converged)
{
    memset(vt, 0, (size_t)(n * n) * sizeof *vt);
    gnomon_blas_gram(n, n, r, n, vt, n);
    GNOMON_TRY(gnomon_gram_spectrum(ctx, n, span, vt, s, converged));
    if (!*converged) return gnomon_square_svd(ctx, n, r, s, u, vt, converged);
    gnomon_blas_gemm(true, false, true, n, n, n, 1.0, r, n, vt, n, 0.0, u, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            u[i * n + j] /= s[j];
    return GNOMON_OK;
}
