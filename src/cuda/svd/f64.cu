/* The steps of a factorisation that differ in double precision.
 *
 * The columns that end up orthonormal are divided by their triangle once more than those of single
 * precision. */
#include "cuda/svd/f64.h"

gnomon_status gcu_svd_f64_alloc(gcu_svd *v, int64_t columns)
{
    const int64_t tall = ((v->m > v->n ? v->m : v->n) + GCU_SVD_CHUNKS) * columns;
    v->columns = columns;
    gnomon_status status = gcu_svd_room(v, v->m * columns, &v->q);
    if (status == GNOMON_OK) status = gcu_svd_room(v, (v->n + GCU_SVD_CHUNKS) * columns, &v->z64);
    for (double *&one : v->tall)
        if (status == GNOMON_OK) status = gcu_svd_room(v, tall, &one);
    return status == GNOMON_OK ? gcu_svd_alloc_small(v, columns) : status;
}

gnomon_status gcu_svd_f64_orthonormalise(gcu_svd *v, int64_t rows, bool rough, double *to)
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

gnomon_status gcu_svd_f64_span(gcu_svd *v)
{
    gnomon_status status = gcu_svd_project(v, v->columns);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_PROJECT);
    for (int i = 0; i < v->job->options->power && status == GNOMON_OK; i++) {
        status = gcu_svd_f64_orthonormalise(v, v->m, true, v->q);
        if (status == GNOMON_OK) status = multiply(v, true, v->q, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = gcu_svd_f64_orthonormalise(v, v->n, true, v->z64);
        if (status == GNOMON_OK) status = multiply(v, false, v->z64, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = gcu_svd_tell(v);
    }
    return status == GNOMON_OK ? gcu_svd_f64_orthonormalise(v, v->m, false, v->q) : status;
}

gnomon_status gcu_svd_f64_range(gcu_svd *v, int64_t columns)
{
    gnomon_status status = gcu_svd_f64_alloc(v, columns);
    if (status == GNOMON_OK) status = gcu_svd_f64_span(v);
    if (status == GNOMON_OK) status = multiply(v, true, v->q, v->z64);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

double gcu_svd_f64_bytes(const gcu_svd *v, int64_t columns)
{
    const double m = (double)v->m, n = (double)v->n, s = (double)columns;
    const double tall = m > n ? m : n;
    return 8 * ((m + n) * s + 2 * tall * s) + 12 * n * s + 8.0 * (GCU_SVD_CHUNKS + 16) * s * s;
}
