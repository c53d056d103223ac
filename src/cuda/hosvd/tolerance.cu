/* Ranks for a tolerance in single precision. */
#include "cuda/hosvd/ranks.cuh"

static gnomon_status shrink_beside(gcu_hosvd *h, int mode, double *rest)
{
    gcu_svd *v = &h->v;
    const int64_t size = h->job->size[mode], width = h->width[mode];
    const bool first = h->place[0] == mode;
    const float *x = h->now;
    const int64_t lines = gcu_hosvd_numbers(h) / size;
    double length = 0;
    GCU_TRY(v->why, gcu_svd_to_f32(h->q[mode], size * width, h->f32, v->stream));
    h->own = false; /* x stays */
    gnomon_status status = gcu_hosvd_multiply(h, mode, gcu_svd_rows(h->f32, width), width);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SHRINK);
    if (status != GNOMON_OK) return status;
    v->m = first ? size : lines;
    v->n = first ? lines : size;
    v->run = 0;
    v->a = gnomon_matrix_rowmajor(const_cast<float *>(x), GNOMON_F32, v->m, v->n);
    status = first ? gcu_svd_residual(v, h->f32, h->now, true, width, &length)
                   : gcu_svd_residual(v, h->now, h->f32, true, width, &length);
    if (x == h->x) h->job->passes++;
    *rest = length * length;
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

gnomon_status gcu_hosvd_tolerance(gcu_hosvd *h)
{
    return gcu_hosvd_find_ranks<gcu_hosvd>(h, {0x1p-24, gcu_hosvd_numbers, gcu_hosvd_find_range,
                                               shrink_beside, gcu_hosvd_cut_to_budget});
}
