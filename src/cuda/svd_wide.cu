/* The steps of a factorisation that differ in double precision.
 *
 * The columns that end up orthonormal are divided by their triangle once more than those of single
 * precision. The small problem is not squared here: B^T = P R by reflections, the singular values
 * and vectors of the triangle R by cuSOLVER, multiplied back by P and Q. */
#include "cuda/svd_wide.h"

gnomon_status gcu_svd_wide_take(gcu_svd *v, int64_t columns)
{
    const int64_t tall = ((v->m > v->n ? v->m : v->n) + GCU_SVD_CHUNKS) * columns;
    v->columns = columns;
    gnomon_status status = gcu_svd_room(v, v->m * columns, &v->q);
    if (status == GNOMON_OK) status = gcu_svd_room(v, v->n * columns, &v->z64);
    for (double *&one : v->tall)
        if (status == GNOMON_OK) status = gcu_svd_room(v, tall, &one);
    return status == GNOMON_OK ? gcu_svd_take_small(v, columns) : status;
}

gnomon_status gcu_svd_wide_orthonormalise(gcu_svd *v, int64_t rows, bool rough, double *to)
{
    double *tall = v->tall[0];
    gnomon_status status = gcu_svd_orthonormalise(v, &tall, rows, v->columns, rough);
    if (status == GNOMON_OK && !rough) status = gcu_svd_polish(v, &tall, rows, v->columns);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(to, tall, (size_t)(rows * v->columns) * sizeof *to,
                                    cudaMemcpyDeviceToDevice, v->stream));
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}

static gnomon_status multiply(gcu_svd *v, bool transposed, const double *x, double *out)
{
    return gcu_svd_multiply(v, transposed, x, GNOMON_F64, v->columns, out);
}

gnomon_status gcu_svd_wide_range(gcu_svd *v, int64_t columns)
{
    gnomon_status status = gcu_svd_wide_take(v, columns);
    if (status == GNOMON_OK) status = gcu_svd_project(v, columns);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_PROJECT);
    for (int i = 0; i < v->job->options->power && status == GNOMON_OK; i++) {
        status = gcu_svd_wide_orthonormalise(v, v->m, true, v->q);
        if (status == GNOMON_OK) status = multiply(v, true, v->q, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = gcu_svd_wide_orthonormalise(v, v->n, true, v->z64);
        if (status == GNOMON_OK) status = multiply(v, false, v->z64, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = gcu_svd_tell(v);
    }
    if (status == GNOMON_OK) status = gcu_svd_wide_orthonormalise(v, v->m, false, v->q);
    if (status == GNOMON_OK) status = multiply(v, true, v->q, v->z64);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

/* B^T = P R, P in v->tall[0] (column-major), R in v->gram. */
static gnomon_status triangle(gcu_svd *v)
{
    const int64_t n = v->n, s = v->columns;
    double *turned = v->tall[0], *tau = nullptr, *work = nullptr;
    int64_t count = 0;
    const int held = v->bag.count;
    gnomon_status status = gcu_reflect_work(v->blas, n, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, s, &tau);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_turn(v->z64, n, s, turned, v->stream));
    status = gcu_reflect(v->blas, n, s, turned, tau, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_wide_triangle(turned, n, s, v->gram, v->stream));
    status = gcu_reflect_out(v->blas, n, s, turned, tau, work, count, v->info, v->why);
    gcu_svd_give(v, held);
    return status;
}

gnomon_status gcu_svd_wide_small(gcu_svd *v, int64_t *rank)
{
    gnomon_svd_job *job = v->job;
    const int64_t s = v->columns;
    double *left = v->vectors, *right = v->kept; /* of R */
    double *work = nullptr;
    int64_t count = 0;
    gnomon_status status = triangle(v);
    if (status == GNOMON_OK) status = gcu_singular_work(v->blas, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status == GNOMON_OK)
        status =
            gcu_singular(v->blas, s, v->gram, v->values, left, right, work, count, v->info, v->why);
    if (status == GNOMON_OK) status = gcu_svd_read_values(v, s, job->s);
    if (status != GNOMON_OK) return status;
    *rank = job->calls->choose_rank(job->calls->user, job->s, s, job->rest);
    /* B = R^T P^T = right diag left^T P^T */
    status = gcu_gemm64(v->blas, false, false, v->n, *rank, s, 1.0, v->tall[0], v->n, left, s, 0.0,
                        v->z64, v->n, v->why);
    if (status == GNOMON_OK)
        status = gcu_gemm64(v->blas, true, false, *rank, v->m, s, 1.0, right, s, v->q, s, 0.0,
                            v->tall[1], *rank, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_wide_signs(v->z64, *rank, v->n, v->values, v->stream));
    GCU_TRY(v->why, gcu_svd_wide_scale(v->tall[1], v->m, *rank, v->values, false, v->q, v->stream));
    return GNOMON_OK;
}

double gcu_svd_wide_bytes(const gcu_svd *v, int64_t columns)
{
    const double m = (double)v->m, n = (double)v->n, s = (double)columns;
    const double tall = m > n ? m : n;
    return 8 * ((m + n) * s + 2 * tall * s) + 12 * n * s + 8.0 * (GCU_SVD_CHUNKS + 16) * s * s;
}
