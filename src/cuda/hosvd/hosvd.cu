/* A tensor's factorisation from beginning to end. */
#include "cuda/hosvd/hosvd.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const double tile = 0x1p26; /* numbers, where a residual is measured */

/* ---- a mode's range ---- */

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

/* Norm, scaling, NaN and infinity, by a pass of its own. */
static gnomon_status scan(gcu_hosvd *h)
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
 * between these bounds nothing is infinite, and what the squares lost by fp32's range is not worth
 * a scaling. */
static bool accept_squares(gcu_hosvd *h, double sum)
{
    const double count = (double)h->whole.rows * (double)h->whole.cols;
    if (!(sum < 0x1p116 && sum >= 0x1p-96 * count)) return false;
    h->job->norm = h->range.norm = sqrt(sum);
    h->unseen = false;
    return true;
}

/* The projection of a mode; whoever reads X first looks at it, and if that does not say enough, the
 * projection is worth nothing. */
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
        status = scan(h);
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

/* ---- ranges that nobody waits for ---- */

/* Whether the modes' ranges can be found without a look at what comes out on the way. */
static bool can_defer(const gcu_hosvd *h)
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

/* Memory for all modes' ranges, in one piece. */
static gnomon_status alloc_tall(gcu_hosvd *h)
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
        status = scan(h);
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

/* h->q and what multiplies of all these modes, by projection of the tensor as it is now. */
static gnomon_status find_ranges(gcu_hosvd *h, const int *modes, int count)
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

/* Whether what came out is what it should be, h->seen being there. */
static bool is_proved(gcu_hosvd *h)
{
    if (!h->deferred) return true;
    bool proved = !h->pending || accept_squares(h, h->seen->squares);
    for (int n = 0; n < h->modes; n++)
        if (h->job->columns[n] > 0)
            proved = proved && h->seen->found[n][0] != GCU_SVD_OVERFLOW &&
                     h->seen->found[n][2] == GCU_SVD_ORTHONORMAL;
    return proved;
}

/* ---- shrinking ---- */

/* A mode that is first or last: by its range or, where it has none, exactly. */
static gnomon_status shrink(gcu_hosvd *h, int mode)
{
    const int64_t size = h->job->size[mode], width = h->width[mode], rank = h->job->rank[mode];
    if (width == 0 && rank < size) return gcu_hosvd_cut(h, mode);
    if (width == 0) return h->place[0] == mode ? gcu_hosvd_rotate(h) : GNOMON_OK;
    const float *by = h->deferred ? h->tall[mode].f32 : h->f32;
    if (!h->deferred)
        GCU_TRY(h->v.why, gcu_svd_to_f32(h->q[mode], size * width, h->f32, h->v.stream));
    return gcu_hosvd_multiply(h, mode, gcu_svd_rows(by, width), width);
}

static gnomon_status range_of(gcu_hosvd *h, int mode)
{
    return h->deferred ? find_ranges(h, &mode, 1) : gcu_hosvd_find_range(h, mode);
}

static gnomon_status one_by_one(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->job->order[i];
        if (h->job->columns[mode] > 0)
            status = range_of(h, mode);
        else if (!h->pending)
            status = scan(h);
        if (status == GNOMON_OK) status = shrink(h, mode);
        if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SHRINK);
        /* it is last now */
        if (status == GNOMON_OK && h->length[mode] > h->job->rank[mode])
            status = gcu_hosvd_cut(h, mode);
        if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SMALL);
    }
    return status;
}

static gnomon_status all_at_once(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    bool more = false;
    int ranged[GNOMON_TENSOR_MODES], count = 0;
    /* the first one first: its unfolding is one that a projection looks at */
    for (int mode = 0; mode < h->modes; mode++)
        if (h->job->columns[mode] > 0) ranged[count++] = mode;
    if (h->deferred)
        status = find_ranges(h, ranged, count);
    else
        for (int i = 0; i < count && status == GNOMON_OK; i++)
            status = gcu_hosvd_find_range(h, ranged[i]);
    if (status == GNOMON_OK && !h->pending) status = scan(h);
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->job->order[i];
        status = shrink(h, mode);
        more = more || h->length[mode] > h->job->rank[mode];
    }
    if (status == GNOMON_OK) status = gcu_svd_lap(&h->v, GCU_SHRINK);
    if (status == GNOMON_OK && more) status = gcu_hosvd_cut_all(h);
    return status == GNOMON_OK ? gcu_svd_lap(&h->v, GCU_SMALL) : status;
}

/* ---- memory, the order of the steps ---- */

int64_t gcu_hosvd_width_of(const gnomon_hosvd_job *job, int n)
{
    const int64_t over = job->tolerance > 0 ? job->oversample : 0;
    const int64_t most = over < job->size[n] - job->rank[n] ? job->rank[n] + over : job->size[n];
    return job->columns[n] > most ? job->columns[n] : most;
}

int64_t gcu_hosvd_small_most(const gnomon_hosvd_job *job)
{
    int64_t most = 1;
    for (int n = 0; n < job->modes; n++) {
        const bool whole =
            job->tolerance > 0 ? job->size[n] <= GCU_HOSVD_SMALL_MOST : job->rank[n] < job->size[n];
        const int64_t side = job->columns[n] > 0 ? job->columns[n]
                             : whole             ? job->size[n]
                                                 : gcu_hosvd_width_of(job, n);
        most = side > most ? side : most;
    }
    return most;
}

static gnomon_status alloc(gcu_hosvd *h)
{
    int64_t most = 1;
    gnomon_status status = gcu_svd_room(&h->e, 1, &h->notes);
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++) {
        const int64_t numbers = h->job->size[n] * gcu_hosvd_width_of(h->job, n);
        most = numbers > most ? numbers : most;
        status = gcu_svd_room(&h->e, numbers, &h->q[n]);
        if (status == GNOMON_OK) status = gcu_svd_room(&h->e, numbers, &h->other[n]);
    }
    if (status == GNOMON_OK) status = gcu_svd_room(&h->e, most, &h->spare);
    if (status == GNOMON_OK) status = gcu_svd_room(&h->e, most, &h->f32);
    if (status == GNOMON_OK) status = gcu_hosvd_alloc(h, gcu_hosvd_small_most(h->job));
    return status == GNOMON_OK && h->deferred ? alloc_tall(h) : status;
}

/* X on the GPU without gaps. */
static gnomon_status bring(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    v->m = h->job->x.rows;
    v->n = h->job->x.cols;
    gnomon_status status = gcu_svd_bring(v, false);
    if (status != GNOMON_OK) return status;
    h->x = static_cast<float *>(v->a.data);
    const bool tight = v->m == 1 ? v->a.col_stride == 1 : v->a.row_stride == v->n;
    if (!tight) {
        status = gcu_svd_room(v, v->m * v->n, &h->x);
        if (status != GNOMON_OK) return status;
        const gnomon_matrix to = gnomon_matrix_rowmajor(h->x, GNOMON_F32, v->m, v->n);
        GCU_TRY(v->why, gcu_copy(&v->a, &to, v->stream));
    }
    h->now = h->x;
    h->whole = gnomon_matrix_rowmajor(h->x, GNOMON_F32, v->m, v->n);
    h->unseen = true;
    return gcu_svd_lap(v, GCU_SCAN);
}

/* As if nothing had been done yet but to bring X. */
static void begin(gcu_hosvd *h, bool deferred)
{
    gnomon_hosvd_job *job = h->job;
    if (h->own) gcu_free(h->now, h->v.stream);
    h->own = h->pending = h->core_squares = false;
    h->deferred = deferred;
    h->now = h->x;
    job->passes = h->range.cholesky = h->range.householder = 0;
    for (int n = 0; n < job->modes; n++) {
        h->place[n] = n;
        h->length[n] = job->size[n];
        h->width[n] = 0;
    }
}

static gnomon_status factor(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    gnomon_status status = GNOMON_OK;
    if (h->job->tolerance > 0) {
        status = scan(h);
        if (status == GNOMON_OK) status = gcu_hosvd_tolerance(h);
    } else {
        status = h->job->sequential ? one_by_one(h) : all_at_once(h);
    }
    if (status == GNOMON_OK) status = gcu_hosvd_orthogonalise_core(h);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_SMALL);
    if (status == GNOMON_OK) status = gcu_hosvd_hand_out(h);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_SMALL) : status;
}

static gnomon_status work(gcu_hosvd *h)
{
    gcu_svd *v = &h->v;
    gnomon_status status = gcu_blas_open(v->s, v->stream, &v->blas, v->why);
    if (status != GNOMON_OK) return status;
    v->seen = static_cast<gcu_svd_stats *>(v->blas->page);
    h->e.blas = v->blas;
    status = gcu_svd_lap(v, GCU_SCAN);
    if (status == GNOMON_OK) status = bring(h);
    begin(h, can_defer(h));
    if (status == GNOMON_OK) status = alloc(h);
    if (status == GNOMON_OK) status = factor(h);
    if (status == GNOMON_OK && !is_proved(h)) {
        begin(h, false);
        status = factor(h);
    }
    if (status == GNOMON_OK && h->seen->large)
        status = gcu_fail(v->why, GNOMON_ERROR_DTYPE,
                          "the core has an element that is more than single precision holds; take "
                          "dtype F64");
    if (status == GNOMON_OK) status = gcu_hosvd_measure(h);
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

void gcu_hosvd_report(gnomon_hosvd_job *job, const gnomon_svd_job *range,
                      const double seconds[GCU_PHASES])
{
    job->cholesky = range->cholesky;
    job->householder = range->householder;
    job->look_seconds = seconds[GCU_SCAN];
    job->project_seconds = seconds[GCU_PROJECT];
    job->power_seconds = seconds[GCU_POWER];
    job->orthonormalise_seconds = seconds[GCU_ORTHONORMALISE];
    job->shrink_seconds = seconds[GCU_SHRINK];
    job->small_seconds = seconds[GCU_SMALL];
    job->measure_seconds = seconds[GCU_CERTIFY];
}

gnomon_status gcu_hosvd_job(gcu_state *s, gnomon_hosvd_job *job, gcu_why why)
{
    if (job->f64) return gcu_hosvd_f64_job(s, job, why);
    gcu_hosvd h = {};
    double seconds[GCU_PHASES], none[GCU_PHASES];
    h.job = job;
    h.modes = job->modes;
    h.options.power = job->power;
    h.range.a = &job->x;
    h.range.options = &h.options;
    h.range.memory_limit = job->memory_limit;
    h.range.host = job->host;
    h.v.s = h.e.s = s;
    h.v.job = h.e.job = &h.range;
    h.v.why = h.e.why = why;
    h.v.stream = h.e.stream = s->stream;
    gnomon_status status = GNOMON_OK;
    h.seen = static_cast<gcu_hosvd_notes *>(calloc(1, sizeof *h.seen));
    if (!h.seen) status = gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for notes");
    if (status == GNOMON_OK) status = work(&h);
    if (h.own) gcu_free(h.now, s->stream);
    status = gcu_svd_close(&h.e, none, status);
    status = gcu_svd_close(&h.v, seconds, status);
    free(h.rising);
    free(h.seen);
    gcu_hosvd_report(job, &h.range, seconds);
    return status;
}

/* ---- what it takes ---- */

static double memory_of(const gnomon_hosvd_job *job)
{
    double count = 1, most = 0, small = (double)gcu_hosvd_small_most(job), shrunk = 0, held = 0;
    for (int n = 0; n < job->modes; n++)
        count *= (double)job->size[n];
    for (int n = 0; n < job->modes; n++) {
        const double size = (double)job->size[n], width = (double)gcu_hosvd_width_of(job, n);
        const double rest = count / size, tall = job->power > 0 && rest > size ? rest : size;
        const bool between = n > 0 && n < job->modes - 1 && !job->sequential;
        double bytes = 26.0 * tall * width + 4.0 * (rest + size) * width;
        if (between && job->columns[n] > 0) bytes += 4.0 * count; /* the unfolding, if it is made */
        most = bytes > most ? bytes : most;
        held += 32.0 * size * width +
                8.0 * (GCU_HOSVD_TALL_CHUNKS + GCU_HOSVD_CORE_CHUNKS + 3) *
                    fmin(width * width, GCU_SVD_JACOBI_MOST * GCU_SVD_JACOBI_MOST);
        shrunk = rest * width > shrunk ? rest * width : shrunk;
    }
    double own = 0;
    if (job->x.memory != GNOMON_DEVICE_MEMORY || job->x.dtype != GNOMON_F32) own = 4.0 * count;
    if (job->x.dtype != GNOMON_F32) own += (double)gnomon_dtype_size(job->x.dtype) * count;
    /* the shrunk tensor and the one that it is made of; where a residual is measured, its tile */
    const double later = 8.0 * shrunk + 4.0 * (count < tile ? count : tile);
    return own + held + (most > later ? most : later) +
           8.0 * (GCU_SVD_CHUNKS + 12) * small * small + 0x1p26;
}

bool gcu_hosvd_supported(gcu_state *s, const gnomon_hosvd_job *job, gcu_why why)
{
    const char *reason = gcu_blas_missing();
    double count = 1;
    for (int n = 0; n < job->modes; n++)
        count *= (double)job->size[n];
    if (!reason && job->modes < 2) reason = "a tensor of one mode is factored on the CPU";
    for (int n = 0; n < job->modes && !reason; n++)
        if (count / (double)job->size[n] > (double)(INT_MAX - 4096))
            reason = "an unfolding has more than 2^31 columns";
    if (!reason && gcu_hosvd_small_most(job) > GCU_HOSVD_SMALL_MOST)
        reason = "a small problem has more than 8192 columns";
    if (reason) {
        gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", reason);
        return false;
    }
    const double needed = job->f64 ? gcu_hosvd_f64_bytes(job) : memory_of(job);
    const double free = (double)gcu_free_memory(s);
    if (needed > free) {
        gcu_fail(why, GNOMON_ERROR_DEVICE,
                 "the tensor and its factors need %.1f GiB of the GPU's memory, %.1f are free; the "
                 "CPU takes data of any size",
                 needed / 0x1p30, free / 0x1p30);
        return false;
    }
    return true;
}
