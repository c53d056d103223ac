/* The end: what the factorisation leaves of X, and the result on its way to the caller. */
#include "cuda/hosvd.h"

#include <math.h>

/* The core, blown up along all modes but X's first, is c: size of that rank x X's columns. */
static gnomon_status blow_up(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    while (status == GNOMON_OK && h->place[h->modes - 1] != 0)
        status = gcu_hosvd_rotate(h);
    for (int mode = 1; mode < h->modes && status == GNOMON_OK; mode++) {
        const int64_t size = h->job->size[mode], rank = h->length[mode];
        GCU_TRY(h->v.why, gcu_svd_narrow(h->q[mode], size * rank, h->narrow, h->v.stream));
        status = gcu_hosvd_multiply(h, mode, gcu_svd_turned(h->narrow, rank), size);
    }
    return status;
}

/* Of the tensor as far as it has shrunk. */
static gnomon_status squares_of(gcu_hosvd *h, double *squares)
{
    gcu_svd *v = &h->v;
    const int64_t count = gcu_hosvd_numbers(h), units = gcu_svd_units(1, count);
    gcu_svd_figures seen, *figures = nullptr;
    const int held = v->bag.count;
    const gnomon_status status = gcu_svd_room(v, units + 1, &figures);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_scan(h->now, 1, count, count, figures + 1, figures, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&seen, figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gcu_svd_give(v, held);
    *squares = seen.squares;
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_measure(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    gnomon_hosvd_job *job = h->job;
    double core = 0;
    gnomon_status status = squares_of(h, &core);
    const double whole = job->norm * job->norm, left = whole - core;
    job->residual_by = GNOMON_RESIDUAL_NORMS;
    if (status != GNOMON_OK) return status;
    if (!job->measure && left >= 4096 * 0x1p-24 * whole) {
        job->residual = sqrt(left);
        return GNOMON_OK;
    }
    job->residual_by = GNOMON_RESIDUAL_MEASURED;
    const gcu_hosvd before = *h;
    h->own = false; /* the core is needed once more */
    status = blow_up(h);
    const int64_t size = job->size[0], rank = h->length[0];
    if (status == GNOMON_OK) {
        v->m = size;
        v->n = gcu_hosvd_numbers(h) / rank;
        v->run = 0;
        v->a = gnomon_matrix_rowmajor(h->x, GNOMON_F32, v->m, v->n);
        GCU_TRY(v->why, gcu_svd_narrow(h->q[0], size * rank, h->narrow, v->stream));
        job->passes++;
        status = gcu_svd_residual(v, h->narrow, h->now, false, rank, &job->residual);
    }
    if (h->own) gcu_give(h->now, v->stream);
    h->now = before.now;
    h->own = before.own;
    for (int n = 0; n < h->modes; n++) {
        h->place[n] = before.place[n];
        h->length[n] = before.length[n];
    }
    return status;
}

/* A factor to the host, its columns' signs to 'sign'. */
static gnomon_status hand_out_factor(gcu_hosvd *h, int mode, float *sign)
{
    gcu_svd *v = &h->v;
    const int64_t size = h->job->size[mode], rank = h->length[mode];
    const gnomon_matrix to = gnomon_matrix_rowmajor(h->job->factor[mode], GNOMON_F32, size, rank);
    GCU_TRY(v->why, gcu_svd_turn(h->q[mode], size, rank, h->spare, v->stream));
    GCU_TRY(v->why, gcu_svd_sign_rows(h->spare, rank, size, h->narrow, sign, v->stream));
    GCU_TRY(v->why, gcu_svd_narrow_signed(h->q[mode], size, rank, sign, h->narrow, v->stream));
    return gcu_svd_hand_out(v, &to, h->narrow);
}

static gnomon_status hand_out_core(gcu_hosvd *h, const gcu_hosvd_way *way)
{
    gcu_svd *v = &h->v;
    const int64_t count = gcu_hosvd_numbers(h);
    const gnomon_matrix to = gnomon_matrix_rowmajor(h->job->core, GNOMON_F32, 1, count);
    int *large = nullptr, seen = 0;
    float *core = nullptr;
    gnomon_status status = gcu_svd_room(v, 1, &large);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &core);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemsetAsync(large, 0, sizeof *large, v->stream));
    GCU_TRY(v->why, gcu_hosvd_put(h->now, count, way, ldexp(1.0, h->job->exponent), core, large,
                                  v->stream));
    GCU_TRY(v->why, cudaMemcpyAsync(&seen, large, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
    status = gcu_svd_hand_out(v, &to, core);
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (status == GNOMON_OK && seen)
        return gcu_fail(v->why, GNOMON_ERROR_DTYPE,
                        "the core has an element that is more than single precision holds; take "
                        "dtype F64");
    return status;
}

gnomon_status gcu_hosvd_hand_out(gcu_hosvd *h)
{
    gcu_hosvd_way way = {};
    gnomon_status status = GNOMON_OK;
    way.modes = h->modes;
    for (int p = 0; p < h->modes && status == GNOMON_OK; p++) {
        const int mode = h->place[p];
        float *sign = nullptr;
        status = gcu_svd_room(&h->v, h->length[mode], &sign);
        way.size[p] = h->length[mode];
        way.step[p] = h->job->core_step[mode];
        way.sign[p] = sign;
        if (status == GNOMON_OK) status = hand_out_factor(h, mode, sign);
    }
    return status == GNOMON_OK ? hand_out_core(h, &way) : status;
}
