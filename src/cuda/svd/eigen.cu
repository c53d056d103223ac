/* Eigenvectors of a symmetric matrix of some ten to some thousand rows: by rotations, by our own
 * way to a tridiagonal matrix, or by cuSOLVER's, which takes every matrix. */
#include "cuda/svd/svd.h"

#include <math.h>

/* Of fewer rows rotations are as quick. */
static const int64_t least_tridiagonal = 48;
/* |X^T X - I|_F of what the tridiagonal matrix's vectors may be: Newton's steps do the rest. */
static const double far_enough = 0x1p-6, near_enough = 0x1p-50;

gnomon_status gcu_svd_read_values(gcu_svd *v, int64_t n, double *to)
{
    int info = 0;
    GCU_TRY(v->why, cudaMemcpyAsync(to, v->values, (size_t)n * sizeof *to, cudaMemcpyDeviceToHost,
                                    v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&info, v->info, sizeof info, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (info != 0)
        return gcu_fail(v->why, GNOMON_ERROR_INTERNAL,
                        "the singular values of the %lld x %lld problem did not converge",
                        (long long)n, (long long)n);
    return GNOMON_OK;
}

/* v->gram's vectors in v->vectors, its values in v->values; *off = |X^T X - I|_F, X^T X in *gram.
 */
static gnomon_status by_tridiagonal(gcu_svd *v, int64_t n, double *work, double *gram, double *off)
{
    gcu_svd_stats *const seen = static_cast<gcu_svd_stats *>(v->blas->page);
    GCU_TRY(v->why, gcu_svd_tridiagonal(v->gram, n, v->vectors, v->values, work, v->stream));
    const gnomon_status status = gcu_gemm64(v->blas, true, false, n, n, n, 1.0, v->vectors, n,
                                            v->vectors, n, 0.0, gram, n, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_gram_stats(gram, n, v->stats, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(seen, v->stats, sizeof *seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    *off = 0;
    for (double part : seen->off_part)
        *off += part;
    *off = sqrt(*off);
    return GNOMON_OK;
}

/* X = X (3 I - X^T X) / 2, again and again: each squares what X^T X is off by. */
static gnomon_status make_orthogonal(gcu_svd *v, int64_t n, double *gram, double *from, double off)
{
    double *const x = v->vectors;
    for (; off > near_enough; off *= off) {
        GCU_TRY(v->why, cudaMemcpyAsync(from, x, (size_t)(n * n) * sizeof *x,
                                        cudaMemcpyDeviceToDevice, v->stream));
        gnomon_status status =
            gcu_gemm64(v->blas, false, false, n, n, n, -0.5, from, n, gram, n, 1.5, x, n, v->why);
        if (status == GNOMON_OK && off * off > near_enough)
            status =
                gcu_gemm64(v->blas, true, false, n, n, n, 1.0, x, n, x, n, 0.0, gram, n, v->why);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* In the room for a Gram matrix's chunks, which is not in use. */
static gnomon_status try_tridiagonal(gcu_svd *v, int64_t n, bool *done)
{
    double *const work = v->chunks, *const gram = work + gcu_svd_tridiagonal_work(n);
    double off = 0;
    const gnomon_status status = by_tridiagonal(v, n, work, gram, &off);
    *done = status == GNOMON_OK && off <= far_enough;
    return *done ? make_orthogonal(v, n, gram, gram + n * n, off) : status;
}

gnomon_status gcu_svd_eigen(gcu_svd *v, int64_t n, double *rising)
{
    bool done = false;
    if (n >= least_tridiagonal && gcu_svd_tridiagonal_supported(&v->s->gpu, n)) {
        const gnomon_status status = try_tridiagonal(v, n, &done);
        if (status != GNOMON_OK) return status;
    }
    if (!done && n <= gcu_svd_jacobi_most(&v->s->gpu)) {
        const gcu_svd_problem problem = {(int)n, v->gram, v->vectors, v->values};
        GCU_TRY(v->why, gcu_svd_jacobi(&problem, 1, v->stream));
        done = true;
    }
    if (done) {
        GCU_TRY(v->why, cudaMemcpyAsync(rising, v->values, (size_t)n * sizeof *rising,
                                        cudaMemcpyDeviceToHost, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
        return GNOMON_OK;
    }
    GCU_TRY(v->why, cudaMemcpyAsync(v->vectors, v->gram, (size_t)(n * n) * sizeof *v->gram,
                                    cudaMemcpyDeviceToDevice, v->stream));
    const gnomon_status status =
        gcu_eigen(v->blas, n, v->vectors, v->values, v->eigen_device, v->eigen_device_bytes,
                  v->eigen_host, v->eigen_host_bytes, v->info, v->why);
    return status == GNOMON_OK ? gcu_svd_read_values(v, n, rising) : status;
}
