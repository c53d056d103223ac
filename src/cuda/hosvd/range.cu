/* Ranges of modes: by projection of the tensor as it is. */
#include "cuda/hosvd/hosvd.h"

#include <math.h>

/* An unfolding that is made: it takes as much memory as the tensor. */
static gnomon_status unfold(gcu_hosvd *h, int64_t left, int64_t right)
{
    gcu_svd *v = &h->v;
    float *to = nullptr;
    const gnomon_status status = gcu_svd_room(v, v->m * v->n, &to);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_hosvd_unfold(h->now, left, v->m, right, to, v->stream));
    v->a = gnomon_matrix_rowmajor(to, GNOMON_F32, v->m, v->n);
    v->run = 0;
    return GNOMON_OK;
}

/* v's matrix becomes the mode's unfolding. */
static gnomon_status set_unfolding(gcu_hosvd *h, int mode, int64_t columns)
{
    gcu_svd *v = &h->v;
    int64_t left = 1, right = 1;
    bool before = true;
    for (int p = 0; p < h->modes; p++) {
        if (h->place[p] == mode)
            before = false;
        else if (before)
            left *= h->length[h->place[p]];
        else
            right *= h->length[h->place[p]];
    }
    v->m = h->length[mode];
    v->n = left * right;
    v->run = 0;
    v->a = gnomon_matrix_rowmajor(h->now, GNOMON_F32, v->m, v->n);
    if (left == 1) return GNOMON_OK;
    if (right == 1) {
        v->a.row_stride = 1;
        v->a.col_stride = v->m;
        return GNOMON_OK;
    }
    v->a.row_stride = v->run = right;
    v->run_stride = v->m * right;
    const gnomon_dtype entries = gcu_svd_start_dtype(v);
    const bool iterates = h->job->power > 0;
    const bool supported = entries != 0 && gcu_svd_runs_supported(v, false, columns, entries) &&
                           (!iterates || (gcu_svd_runs_supported(v, false, columns, GNOMON_F16) &&
                                          gcu_svd_runs_supported(v, true, columns, GNOMON_F16)));
    return supported ? GNOMON_OK : unfold(h, left, right);
}

/* v->q from so many columns to 'wanted': those that there is no direction for are made up. */
static gnomon_status complete(gcu_svd *v, int64_t wanted)
{
    double *tall = v->tall[0];
    GCU_TRY(v->why, cudaMemsetAsync(tall, 0, (size_t)(v->m * wanted) * sizeof *tall, v->stream));
    GCU_TRY(v->why,
            cudaMemcpy2DAsync(tall, (size_t)wanted * sizeof *tall, v->q,
                              (size_t)v->columns * sizeof *tall, (size_t)v->columns * sizeof *tall,
                              (size_t)v->m, cudaMemcpyDeviceToDevice, v->stream));
    const gnomon_status status = gcu_svd_orthonormalise(v, &tall, v->m, wanted, false);
    v->tall[tall == v->tall[1]] = v->q;
    v->q = tall;
    return status;
}

gnomon_status gcu_hosvd_scan(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    if (!h->unseen) return GNOMON_OK;
    v->a = h->whole;
    v->m = h->whole.rows;
    v->n = h->whole.cols;
    v->run = 0;
    const gnomon_status status = gcu_svd_check(v);
    if (status == GNOMON_ERROR_NONFINITE) {
        h->job->bad_row = v->bad_row;
        h->job->bad_col = v->bad_col;
    }
    if (status != GNOMON_OK) return status;
    h->job->norm = h->range.norm;
    h->job->exponent = h->range.exponent;
    h->job->passes++;
    h->x = h->now = static_cast<float *>(v->a.data);
    h->unseen = false;
    return gcu_svd_lap(v, GCU_SCAN);
}

/* The sum of squares that the projection has left tells all that there is to know of most tensors:
 * between these bounds nothing is infinite, and what the squares lost by fp32's range does not
 * justify a scaling. */
static bool accept_squares(gcu_hosvd *h, double sum)
{
    const double count = (double)h->whole.rows * (double)h->whole.cols;
    if (!(sum < 0x1p116 && sum >= 0x1p-96 * count)) return false;
    h->job->norm = h->range.norm = sqrt(sum);
    h->unseen = false;
    return true;
}

/* The projection of a mode. The first pass over X also sums its squares; where that sum does not
 * suffice, the projection is discarded. */
static gnomon_status project(gcu_hosvd *h, int64_t columns)
{
    gcu_svd *v = &h->v;
    if (!h->unseen) return gcu_svd_begin_span(v);
    if (!gcu_svd_sums_squares(v, columns)) return GNOMON_OK;
    v->squares = &h->notes->squares;
    const gnomon_status status = gcu_svd_begin_span(v);
    v->squares = nullptr;
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(&h->seen->squares, &h->notes->squares, sizeof(double),
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    accept_squares(h, h->seen->squares);
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_find_range(gcu_hosvd *h, int mode)
{
    gcu_svd *v = &h->v;
    const int64_t wanted = h->job->columns[mode], there = h->job->op[mode]->descriptor.k;
    const int held = v->bag.count;
    h->range.op = h->job->op[mode];
    gnomon_status status = set_unfolding(h, mode, there);
    if (status == GNOMON_OK) status = gcu_svd_alloc_columns(v, wanted, h->job->power > 0);
    v->columns = there;
    if (status == GNOMON_OK) status = project(h, there);
    if (status == GNOMON_OK && h->unseen) {
        gcu_svd_free(v, held); /* a scaled copy of X is to stay */
        status = gcu_hosvd_scan(h);
        return status == GNOMON_OK ? gcu_hosvd_find_range(h, mode) : status;
    }
    if (status == GNOMON_OK) status = gcu_svd_end_span(v);
    if (status == GNOMON_OK && there < wanted) status = complete(v, wanted);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(h->q[mode], v->q, (size_t)(v->m * wanted) * sizeof *v->q,
                                    cudaMemcpyDeviceToDevice, v->stream));
    h->width[mode] = wanted;
    if (h->now == h->x) h->job->passes += 1 + 2 * h->job->power;
    gcu_svd_free(v, held);
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}

/* ---- ranges without synchronisation ---- */

bool gcu_hosvd_can_defer(const gcu_hosvd *h)
{
    const gnomon_hosvd_job *job = h->job;
    const int fit = gcu_svd_condition_most(&h->v.s->gpu), most = GCU_HOSVD_TALL_MOST;
    bool any = false;
    for (int n = 0; n < h->modes; n++) {
        if (job->columns[n] == 0) continue;
        any = true;
        if (job->columns[n] > (job->power > 0 && fit < most ? fit : most) ||
            job->op[n]->descriptor.k < job->columns[n] || gcu_svd_entry_dtype(job->op[n]) == 0)
            return false;
    }
    return any;
}

gnomon_status gcu_hosvd_alloc_tall(gcu_hosvd *h)
{
    const gnomon_hosvd_job *job = h->job;
    int64_t all = 0;
    double *at = nullptr;
    const auto numbers = [&](int n) { return job->size[n] * job->columns[n]; };
    const auto small = [&](int n) {
        return gcu_hosvd_tall_parts(job->size[n], job->columns[n]) +
               job->columns[n] * job->columns[n];
    };
    for (int n = 0; n < h->modes; n++) /* one half of a double is y's, one f32's */
        if (job->columns[n] > 0) all += 2 * numbers(n) + small(n);
    const gnomon_status status = gcu_svd_room(&h->e, all, &at);
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++) {
        if (job->columns[n] == 0) continue;
        gcu_hosvd_tall *t = &h->tall[n];
        t->rows = job->size[n];
        t->cols = (int)job->columns[n];
        t->other = at;
        t->y = reinterpret_cast<float *>(at + numbers(n));
        t->f32 = const_cast<float *>(t->y) + numbers(n);
        t->inverse = at + 2 * numbers(n);
        t->parts = t->inverse + job->columns[n] * job->columns[n];
        t->tall = h->q[n];
        t->found = h->notes->found[n];
        at += 2 * numbers(n) + small(n);
    }
    return status;
}

/* Power iterations, in memory of their own. */
static gnomon_status iterate(gcu_svd *v)
{
    const gnomon_status status = gcu_svd_room(v, v->n * v->columns, &v->z);
    return status == GNOMON_OK ? gcu_svd_iterate(v) : status;
}

/* tall[mode].y, by projection of the tensor as it is now and power iterations. */
static gnomon_status project_mode(gcu_hosvd *h, int mode)
{
    gcu_svd *v = &h->v;
    const int64_t columns = h->job->columns[mode];
    int held = v->bag.count;
    h->range.op = h->job->op[mode];
    gnomon_status status = set_unfolding(h, mode, columns);
    const bool first = h->unseen && !h->pending;
    if (status == GNOMON_OK && first && !gcu_svd_sums_squares(v, columns)) {
        gcu_svd_free(v, held); /* a scaled copy of X is to stay */
        status = gcu_hosvd_scan(h);
        held = v->bag.count;
        if (status == GNOMON_OK) status = set_unfolding(h, mode, columns);
    }
    if (status != GNOMON_OK) return status;
    v->squares = h->unseen && first ? &h->notes->squares : nullptr;
    h->pending = h->unseen;
    v->columns = columns;
    v->y = const_cast<float *>(h->tall[mode].y);
    status = gcu_svd_begin_span(v);
    v->squares = nullptr;
    if (status == GNOMON_OK && h->job->power > 0) status = iterate(v);
    h->width[mode] = columns;
    h->range.cholesky++;
    if (h->now == h->x) h->job->passes += 1 + 2 * h->job->power;
    gcu_svd_free(v, held);
    return status;
}

gnomon_status gcu_hosvd_find_ranges(gcu_hosvd *h, const int *modes, int count)
{
    gcu_svd *v = &h->v;
    gcu_hosvd_tall list[GNOMON_TENSOR_MODES] = {};
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < count && status == GNOMON_OK; i++) {
        status = project_mode(h, modes[i]);
        list[i] = h->tall[modes[i]];
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_hosvd_orthonormalise(list, count, v->stream));
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}

bool gcu_hosvd_is_proved(gcu_hosvd *h)
{
    if (!h->deferred) return true;
    bool proved = !h->pending || accept_squares(h, h->seen->squares);
    for (int n = 0; n < h->modes; n++)
        if (h->job->columns[n] > 0)
            proved = proved && h->seen->found[n][0] != GCU_SVD_OVERFLOW &&
                     h->seen->found[n][2] == GCU_SVD_ORTHONORMAL;
    return proved;
}
