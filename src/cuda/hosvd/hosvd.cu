/* A tensor's factorisation from beginning to end. */
#include "cuda/hosvd/hosvd.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const double tile = 0x1p26; /* numbers, where a residual is measured */

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
    return h->deferred ? gcu_hosvd_find_ranges(h, &mode, 1) : gcu_hosvd_find_range(h, mode);
}

static gnomon_status one_by_one(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->job->order[i];
        if (h->job->columns[mode] > 0)
            status = range_of(h, mode);
        else if (!h->pending)
            status = gcu_hosvd_scan(h);
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
    /* the first one first: its unfolding is one that a projection scans */
    for (int mode = 0; mode < h->modes; mode++)
        if (h->job->columns[mode] > 0) ranged[count++] = mode;
    if (h->deferred)
        status = gcu_hosvd_find_ranges(h, ranged, count);
    else
        for (int i = 0; i < count && status == GNOMON_OK; i++)
            status = gcu_hosvd_find_range(h, ranged[i]);
    if (status == GNOMON_OK && !h->pending) status = gcu_hosvd_scan(h);
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
    return status == GNOMON_OK && h->deferred ? gcu_hosvd_alloc_tall(h) : status;
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
        status = gcu_hosvd_scan(h);
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
    begin(h, gcu_hosvd_can_defer(h));
    if (status == GNOMON_OK) status = alloc(h);
    if (status == GNOMON_OK) status = factor(h);
    if (status == GNOMON_OK && !gcu_hosvd_is_proved(h)) {
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
    h.range.others = job->others; /* which bring X over their links, and no more */
    h.range.other_count = job->other_count;
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
