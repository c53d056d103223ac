/* A tensor's factorisation in double precision: the steps of hosvd/hosvd.cu by the libraries'
 * products of doubles. Nothing is squared: a mode is cut by reflections of its unfolding and the
 * singular vectors of the triangle that they leave, so what is 10^-8 of the rest counts. */
#include "cuda/hosvd/ranks.cuh"
#include "cuda/svd/f64.h"

#include <math.h>
#include <stdlib.h>

struct cube {
    gnomon_hosvd_job *job;
    gcu_svd v, e; /* the range of one mode, and the clock; small problems, and what stays */
    gnomon_svd_job range;
    gnomon_svd_options options;
    int modes, place[GNOMON_TENSOR_MODES];
    int64_t length[GNOMON_TENSOR_MODES];
    gnomon_matrix whole; /* X without gaps */
    double *x, *now;     /* its numbers; the tensor as far as it has shrunk */
    bool own;
    double *q[GNOMON_TENSOR_MODES];     /* size x width */
    int64_t width[GNOMON_TENSOR_MODES]; /* 0: the identity */
    double *spare, *transposed;         /* as large as the largest of q */
    double *values;                     /* host: of a small problem, falling */
};

/* ---- the tensor as far as it has shrunk ---- */

static int64_t numbers(const cube *h)
{
    int64_t count = 1;
    for (int n = 0; n < h->modes; n++)
        count *= h->length[n];
    return count;
}

static void first_goes_last(cube *h)
{
    const int mode = h->place[0];
    for (int p = 1; p < h->modes; p++)
        h->place[p - 1] = h->place[p];
    h->place[h->modes - 1] = mode;
}

static gnomon_status another(cube *h, int64_t count, double **to)
{
    void *data = nullptr;
    GCU_TRY(h->v.why, gcu_alloc(h->v.s, &data, (size_t)count * sizeof **to, h->v.stream));
    *to = static_cast<double *>(data);
    return GNOMON_OK;
}

static void replace(cube *h, double *by)
{
    if (h->own) gcu_free(h->now, h->v.stream);
    h->now = by;
    h->own = true;
}

/* The first or last mode times f (its length x columns or, transposed, columns x its length); it is
 * last then. */
static gnomon_status multiply(cube *h, int mode, const double *f, bool transposed, int64_t columns)
{
    const int64_t n = h->length[mode], rest = numbers(h) / n;
    const bool first = h->place[0] == mode;
    double *to = nullptr;
    gnomon_status status = another(h, rest * columns, &to);
    if (status != GNOMON_OK) return status;
    status = gcu_svd_times(&h->v, rest, columns, n, 1.0, h->now, first, f, transposed, 0.0, to);
    if (h->now == h->x) h->job->passes++;
    replace(h, to);
    h->length[mode] = columns;
    if (first) first_goes_last(h);
    return status;
}

static gnomon_status rotate(cube *h)
{
    const int64_t count = numbers(h), n = h->length[h->place[0]];
    double *to = nullptr;
    const gnomon_status status = another(h, count, &to);
    if (status != GNOMON_OK) return status;
    const cudaError_t error = gcu_svd_transpose(h->now, n, count / n, to, h->v.stream);
    replace(h, to);
    first_goes_last(h);
    GCU_TRY(h->v.why, error);
    return GNOMON_OK;
}

/* ---- a mode's range ---- */

/* v's matrix becomes the mode's unfolding. */
static gnomon_status set_unfolding(cube *h, int mode)
{
    gcu_svd *v = &h->v;
    int64_t left = 1, right = 1;
    bool before = true;
    for (int p = 0; p < h->modes; p++) {
        if (h->place[p] == mode)
            before = false;
        else
            (before ? left : right) *= h->length[h->place[p]];
    }
    v->m = h->length[mode];
    v->n = left * right;
    v->a = gnomon_matrix_rowmajor(h->now, GNOMON_F64, v->m, v->n);
    if (left == 1) return GNOMON_OK;
    if (right == 1) {
        v->a.row_stride = 1;
        v->a.col_stride = v->m;
        return GNOMON_OK;
    }
    double *to = nullptr;
    const gnomon_status status = gcu_svd_room(v, v->m * v->n, &to);
    if (status != GNOMON_OK) return status;
    /* a double is two neighbours */
    GCU_TRY(v->why, gcu_hosvd_unfold(reinterpret_cast<const float *>(h->now), left, v->m, 2 * right,
                                     reinterpret_cast<float *>(to), v->stream));
    v->a.data = to;
    return GNOMON_OK;
}

/* v->q from so many columns to 'wanted': those that there is no direction for are made up. */
static gnomon_status complete(gcu_svd *v, int64_t wanted)
{
    double *tall = v->tall[0];
    const size_t line = (size_t)v->columns * sizeof *tall;
    GCU_TRY(v->why, cudaMemsetAsync(tall, 0, (size_t)(v->m * wanted) * sizeof *tall, v->stream));
    GCU_TRY(v->why, cudaMemcpy2DAsync(tall, (size_t)wanted * sizeof *tall, v->q, line, line,
                                      (size_t)v->m, cudaMemcpyDeviceToDevice, v->stream));
    v->columns = wanted;
    return gcu_svd_f64_orthonormalise(v, v->m, false, v->q);
}

static gnomon_status find_range(cube *h, int mode)
{
    gcu_svd *v = &h->v;
    const int64_t wanted = h->job->columns[mode], there = h->job->op[mode]->descriptor.k;
    const int held = v->bag.count;
    h->range.op = h->job->op[mode];
    gnomon_status status = set_unfolding(h, mode);
    if (status == GNOMON_OK) status = gcu_svd_f64_alloc(v, wanted);
    v->columns = there;
    if (status == GNOMON_OK) status = gcu_svd_f64_span(v);
    if (status == GNOMON_OK && there < wanted) status = complete(v, wanted);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(h->q[mode], v->q, (size_t)(v->m * wanted) * sizeof *v->q,
                                    cudaMemcpyDeviceToDevice, v->stream));
    h->width[mode] = wanted;
    if (h->now == h->x) h->job->passes += 1 + 2 * h->job->power;
    gcu_svd_free(v, held);
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}

/* ---- cutting ---- */

/* h->values and, as columns of e's kept, the left singular vectors of a mode that is first or last.
 */
static gnomon_status solve(cube *h, int mode)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode], rest = numbers(h) / n, rows = rest > n ? rest : n;
    const bool first = h->place[0] == mode;
    const int held = e->bag.count;
    double *tall = nullptr, *lines = nullptr, *tau = nullptr, *work = nullptr, *rotated = nullptr;
    int64_t count = 0, rotation_work = 0;
    gnomon_status status = gcu_svd_room(e, rows * n, &tall);
    if (status == GNOMON_OK && !first) status = gcu_svd_room(e, rest * n, &lines);
    if (status == GNOMON_OK) status = gcu_reflect_work(e->blas, rows, n, &count, e->why);
    if (status == GNOMON_OK) status = gcu_svd_room(e, n, &tau);
    if (status == GNOMON_OK) status = gcu_svd_room(e, count, &work);
    if (status == GNOMON_OK) status = gcu_singular_work(e->blas, n, &rotation_work, e->why);
    if (status == GNOMON_OK) status = gcu_svd_room(e, rotation_work, &rotated);
    if (status != GNOMON_OK) return status;
    if (!first) GCU_TRY(e->why, gcu_svd_transpose(h->now, rest, n, lines, e->stream));
    GCU_TRY(e->why, cudaMemsetAsync(tall, 0, (size_t)(rows * n) * sizeof *tall, e->stream));
    const size_t line = (size_t)rest * sizeof *tall;
    GCU_TRY(e->why, cudaMemcpy2DAsync(tall, (size_t)rows * sizeof *tall, first ? h->now : lines,
                                      line, line, (size_t)n, cudaMemcpyDeviceToDevice, e->stream));
    status = gcu_reflect(e->blas, rows, n, tall, tau, work, count, e->info, e->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(e->why, gcu_svd_f64_triangle(tall, rows, n, e->gram, e->stream));
    status = gcu_singular(e->blas, n, e->gram, e->values, e->factor, e->kept, rotated,
                          rotation_work, e->info, e->why);
    if (status == GNOMON_OK) status = gcu_svd_read_values(e, n, h->values);
    gcu_svd_free(e, held);
    return status;
}

/* The mode times the leading 'rank' of them, each with the sign that its factor's column is to
 * have.
 */
static gnomon_status change_basis(cube *h, int mode, int64_t rank)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode], size = h->job->size[mode];
    const int held = e->bag.count;
    double *basis = nullptr;
    gnomon_status status = gcu_svd_room(e, n * rank, &basis);
    if (status != GNOMON_OK) return status;
    GCU_TRY(e->why, gcu_svd_transpose(e->kept, rank, n, basis, e->stream));
    if (h->width[mode] > 0)
        status =
            gcu_svd_times(e, size, rank, n, 1.0, h->q[mode], false, basis, false, 0.0, h->spare);
    else
        GCU_TRY(e->why, cudaMemcpyAsync(h->spare, basis, (size_t)(n * rank) * sizeof *basis,
                                        cudaMemcpyDeviceToDevice, e->stream));
    if (status != GNOMON_OK) return status;
    GCU_TRY(e->why, gcu_svd_transpose(h->spare, size, rank, h->transposed, e->stream));
    GCU_TRY(e->why, gcu_svd_f64_signs(h->transposed, rank, size, e->values, e->stream));
    GCU_TRY(e->why, gcu_svd_transpose(h->transposed, rank, size, h->q[mode], e->stream));
    GCU_TRY(e->why, gcu_svd_f64_scale(basis, n, rank, e->values, false, basis, e->stream));
    status = multiply(h, mode, basis, false, rank);
    h->width[mode] = rank;
    gcu_svd_free(e, held);
    return status;
}

/* A mode that is first or last, to its leading 'rank' singular vectors; it is last then. */
static gnomon_status cut(cube *h, int mode, int64_t rank)
{
    const gnomon_status status = solve(h, mode);
    return status == GNOMON_OK ? change_basis(h, mode, rank) : status;
}

/* To the fewest columns, at most 'most', that leave no more than a budget; see hosvd/hosvd.h. */
static gnomon_status cut_to_budget(cube *h, int mode, int64_t most, double budget, double *spent)
{
    const double rounding = 0x1p-51 * h->job->norm, limit = fmax(budget, rounding * rounding);
    const gnomon_status status = solve(h, mode);
    int64_t rank = h->length[mode];
    const int64_t n = rank;
    double tail = 0;
    if (status != GNOMON_OK) return status;
    const auto square = [&](int64_t j) { return h->values[j] * h->values[j]; };
    while (rank > 1 && (rank > most || tail + square(rank - 1) <= limit))
        tail += square(--rank);
    *spent += tail;
    if (rank < n) return change_basis(h, mode, rank);
    return h->place[0] == mode ? rotate(h) : GNOMON_OK;
}

/* ---- ranks that are given ---- */

static gnomon_status shrink(cube *h, int mode)
{
    const int64_t width = h->width[mode];
    if (width > 0) return multiply(h, mode, h->q[mode], false, width);
    if (h->job->rank[mode] < h->job->size[mode]) return cut(h, mode, h->job->rank[mode]);
    return h->place[0] == mode ? rotate(h) : GNOMON_OK;
}

static gnomon_status one_by_one(cube *h)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->job->order[i];
        if (h->job->columns[mode] > 0) status = find_range(h, mode);
        if (status == GNOMON_OK) status = shrink(h, mode);
        if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SHRINK);
        if (status == GNOMON_OK && h->length[mode] > h->job->rank[mode])
            status = cut(h, mode, h->job->rank[mode]);
        if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SMALL);
    }
    return status;
}

static gnomon_status all_at_once(cube *h)
{
    gnomon_status status = GNOMON_OK;
    bool more = false;
    for (int mode = 0; mode < h->modes && status == GNOMON_OK; mode++)
        if (h->job->columns[mode] > 0) status = find_range(h, mode);
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->job->order[i];
        status = shrink(h, mode);
        more = more || h->length[mode] > h->job->rank[mode];
    }
    if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SHRINK);
    for (int i = 0; i < h->modes && more && status == GNOMON_OK; i++)
        status = cut(h, h->place[0], h->job->rank[h->place[0]]);
    return status == GNOMON_OK ? gcu_svd_lap(&h->v, GCU_SMALL) : status;
}

/* ---- ranks for a tolerance ---- */

static gnomon_status shrink_beside(cube *h, int mode, double *rest)
{
    gcu_svd *v = &h->v;
    const int64_t size = h->job->size[mode], width = h->width[mode];
    const int64_t lines = numbers(h) / size;
    const bool first = h->place[0] == mode;
    double *x = h->now, length = 0;
    h->own = false; /* x stays */
    gnomon_status status = multiply(h, mode, h->q[mode], false, width);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SHRINK);
    if (status != GNOMON_OK) return status;
    v->m = first ? size : lines;
    v->n = first ? lines : size;
    v->a = gnomon_matrix_rowmajor(x, GNOMON_F64, v->m, v->n);
    status = first ? gcu_svd_residual(v, h->q[mode], h->now, true, width, &length)
                   : gcu_svd_residual(v, h->now, h->q[mode], true, width, &length);
    if (x == h->x) h->job->passes++;
    *rest = length * length;
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

static gnomon_status by_tolerance(cube *h)
{
    return gcu_hosvd_find_ranks<cube>(h,
                                      {0x1p-53, numbers, find_range, shrink_beside, cut_to_budget});
}

/* ---- the end ---- */

/* To where the core is all-orthogonal; the modes lie as before. */
static gnomon_status orthogonalise_core(cube *h)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[0];
        status = cut(h, mode, h->length[mode]);
        for (int64_t j = 0; j < h->length[mode] && status == GNOMON_OK; j++)
            h->job->values[mode][j] = h->values[j];
    }
    return status == GNOMON_OK ? gcu_svd_lap(&h->v, GCU_SMALL) : status;
}

static gnomon_status hand_out(cube *h)
{
    gcu_svd *v = &h->v;
    gnomon_hosvd_job *job = h->job;
    const int64_t count = numbers(h);
    const int held = v->bag.count;
    double *core = nullptr;
    gcu_hosvd_way way = {};
    gnomon_status status = gcu_svd_room(v, count, &core);
    if (status != GNOMON_OK) return status;
    way.modes = h->modes;
    for (int p = 0; p < h->modes; p++) {
        way.size[p] = h->length[h->place[p]];
        way.step[p] = job->core_step[h->place[p]];
    }
    GCU_TRY(v->why, gcu_hosvd_put(h->now, count, &way, ldexp(1.0, job->exponent), core, v->stream));
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++) {
        const gnomon_matrix to =
            gnomon_matrix_rowmajor(job->factor[n], GNOMON_F64, job->size[n], h->length[n]);
        status = gcu_svd_hand_out(v, &to, h->q[n]);
    }
    const gnomon_matrix to = gnomon_matrix_rowmajor(job->core, GNOMON_F64, 1, count);
    if (status == GNOMON_OK) status = gcu_svd_hand_out(v, &to, core);
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    gcu_svd_free(v, held);
    return status;
}

/* What is left of X; the core is gone then. */
static gnomon_status measure(cube *h)
{
    gcu_svd *v = &h->v;
    gnomon_hosvd_job *job = h->job;
    double core = 0;
    for (int64_t j = 0; j < h->length[0]; j++)
        core += job->values[0][j] * job->values[0][j];
    const double whole = job->norm * job->norm, left = whole - core;
    job->residual_by = GNOMON_RESIDUAL_NORMS;
    job->residual = sqrt(fmax(left, 0.0));
    if (!job->measure && left >= 4096 * 0x1p-53 * whole) return GNOMON_OK;
    job->residual_by = GNOMON_RESIDUAL_MEASURED;
    gnomon_status status = GNOMON_OK;
    while (status == GNOMON_OK && h->place[h->modes - 1] != 0)
        status = rotate(h);
    for (int mode = 1; mode < h->modes && status == GNOMON_OK; mode++)
        status = multiply(h, mode, h->q[mode], true, job->size[mode]);
    if (status != GNOMON_OK) return status;
    v->m = job->size[0];
    v->n = numbers(h) / h->length[0];
    v->a = gnomon_matrix_rowmajor(h->x, GNOMON_F64, v->m, v->n);
    job->passes++;
    return gcu_svd_residual(v, h->q[0], h->now, false, h->length[0], &job->residual);
}

/* ---- from beginning to end ---- */

static gnomon_status alloc(cube *h)
{
    const int64_t small = gcu_hosvd_small_most(h->job);
    int64_t most = 1;
    gnomon_status status = gcu_svd_alloc_small(&h->e, small);
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++) {
        const int64_t count = h->job->size[n] * gcu_hosvd_width_of(h->job, n);
        most = count > most ? count : most;
        status = gcu_svd_room(&h->e, count, &h->q[n]);
    }
    if (status == GNOMON_OK) status = gcu_svd_room(&h->e, most, &h->spare);
    if (status == GNOMON_OK) status = gcu_svd_room(&h->e, most, &h->transposed);
    if (status != GNOMON_OK) return status;
    h->values = static_cast<double *>(calloc((size_t)small, sizeof *h->values));
    return h->values ? GNOMON_OK
                     : gcu_fail(h->e.why, GNOMON_ERROR_MEMORY, "no memory for singular values");
}

/* X on the GPU without gaps, scanned and scaled. */
static gnomon_status bring(cube *h)
{
    gcu_svd *v = &h->v;
    v->m = h->job->x.rows;
    v->n = h->job->x.cols;
    gnomon_status status = gcu_svd_bring(v, false);
    if (status != GNOMON_OK) return status;
    const bool tight = v->m == 1 ? v->a.col_stride == 1 : v->a.row_stride == v->n;
    if (!tight) {
        const gnomon_matrix from = v->a;
        double *to = nullptr;
        status = gcu_svd_room(v, v->m * v->n, &to);
        if (status != GNOMON_OK) return status;
        v->a = gnomon_matrix_rowmajor(to, GNOMON_F64, v->m, v->n);
        GCU_TRY(v->why, gcu_copy(&from, &v->a, v->stream));
    }
    status = gcu_svd_check(v);
    if (status == GNOMON_ERROR_NONFINITE) {
        h->job->bad_row = v->bad_row;
        h->job->bad_col = v->bad_col;
    }
    if (status != GNOMON_OK) return status;
    h->job->norm = h->range.norm;
    h->job->exponent = h->range.exponent;
    h->job->passes = 1;
    h->x = h->now = static_cast<double *>(v->a.data);
    return gcu_svd_lap(v, GCU_SCAN);
}

static gnomon_status work(cube *h)
{
    gcu_svd *v = &h->v;
    gnomon_hosvd_job *job = h->job;
    gnomon_status status = gcu_blas_open(v->s, v->stream, &v->blas, v->why);
    if (status != GNOMON_OK) return status;
    v->seen = h->e.seen = static_cast<gcu_svd_stats *>(v->blas->page);
    h->e.blas = v->blas;
    for (int n = 0; n < h->modes; n++) {
        h->place[n] = n;
        h->length[n] = job->size[n];
    }
    status = gcu_svd_lap(v, GCU_SCAN);
    if (status == GNOMON_OK) status = bring(h);
    if (status == GNOMON_OK) status = alloc(h);
    if (status == GNOMON_OK)
        status = job->tolerance > 0 ? by_tolerance(h)
                 : job->sequential  ? one_by_one(h)
                                    : all_at_once(h);
    if (status == GNOMON_OK) status = job->calls->make_room(job->calls->user, h->length);
    if (status == GNOMON_OK) status = orthogonalise_core(h);
    if (status == GNOMON_OK) status = hand_out(h);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SMALL);
    if (status == GNOMON_OK) status = measure(h);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

gnomon_status gcu_hosvd_f64_job(gcu_state *s, gnomon_hosvd_job *job, gcu_why why)
{
    cube h = {};
    double seconds[GCU_PHASES], none[GCU_PHASES];
    h.job = job;
    h.modes = job->modes;
    h.options.power = job->power;
    h.options.dtype = GNOMON_F64;
    h.range.a = &job->x;
    h.range.options = &h.options;
    h.range.memory_limit = job->memory_limit;
    h.range.others = job->others; /* which bring X over their links, and no more */
    h.range.other_count = job->other_count;
    h.range.host = job->host;
    h.v.s = h.e.s = s;
    h.v.job = h.e.job = &h.range;
    h.v.why = h.e.why = why;
    h.v.stream = h.e.stream = s->stream;
    h.v.f64 = h.e.f64 = true;
    gnomon_status status = work(&h);
    if (h.own) gcu_free(h.now, s->stream);
    status = gcu_svd_close(&h.e, none, status);
    status = gcu_svd_close(&h.v, seconds, status);
    free(h.values);
    gcu_hosvd_report(job, &h.range, seconds);
    return status;
}

double gcu_hosvd_f64_bytes(const gnomon_hosvd_job *job)
{
    double count = 1, most = 0, shrunk = 0, held = 0;
    const double small = (double)gcu_hosvd_small_most(job);
    bool whole = job->tolerance > 0;
    for (int n = 0; n < job->modes; n++)
        count *= (double)job->size[n];
    for (int n = 0; n < job->modes; n++) {
        const double size = (double)job->size[n], width = (double)gcu_hosvd_width_of(job, n);
        const double rest = count / size, tall = rest > size ? rest : size;
        const bool between = n > 0 && n < job->modes - 1 && !job->sequential;
        const double bytes = 8 * ((size + rest) * width + 2 * tall * width) + 12 * rest * width +
                             (between && job->columns[n] > 0 ? 8 * count : 0);
        whole = whole || (job->columns[n] == 0 && job->rank[n] < job->size[n]);
        most = bytes > most ? bytes : most;
        held += 24 * size * width;
        shrunk = rest * width > shrunk ? rest * width : shrunk;
    }
    double own = 0;
    if (job->x.memory != GNOMON_DEVICE_MEMORY || job->x.dtype != GNOMON_F64) own = 8 * count;
    if (job->x.dtype != GNOMON_F64) own += (double)gnomon_dtype_size(job->x.dtype) * count;
    /* the shrunk tensor and the one that it is made of, and where one is cut its copies */
    const double later = 16 * shrunk + (whole ? 24 * count : 24 * shrunk) + 0x1p28;
    return own + held + (most > later ? most : later) +
           8.0 * (GCU_SVD_CHUNKS + 16) * small * small + 0x1p26;
}
