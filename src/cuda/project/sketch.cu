/* A sketch, wherever its points and its output lie.
 *
 * Points on the host come in pieces: batches of points, and of those ranges of columns when a
 * family can carry sums on from one range to the next. Copies in, kernels and copies out run on
 * streams of their own, three pieces deep. What is written to y waits on the GPU until all points
 * have been scanned for NaN and infinity, or they are scanned beforehand. */
#include "base/arithmetic.h"
#include "cuda/project/job.h"
#include "cuda/project/pieces.h"
#include "cuda/runtime/alloc.h"
#include "cuda/runtime/transfer.h"

#include <inttypes.h>

enum { SLOTS = 3, OUTPUTS = 2 };

static const int64_t piece_bytes = 64 << 20; /* a good millisecond of the link */
static const int64_t enough_points = 1024;   /* whole ones at once: making S anew costs little */
/* So that a line of a piece is long enough for the copy engine: */
static const int64_t rowwise_points = 4096, colwise_points = 65536;

struct plan {
    int64_t batch; /* points */
    int64_t width; /* columns of a piece, at most */
    int slots, outputs;
    size_t slot_bytes, carry_bytes, output_bytes, work_bytes;
    size_t fixed_bytes, needed; /* without work memory; with the least of it */
};

struct run {
    gcu_state *s;
    const gnomon_sketch_job *job;
    gcu_why why;
    cudaStream_t stream;
    gcu_place x_place, y_place;
    bool x_host, y_direct;
    bool keep; /* outputs[0] holds all of y until the end */
    gcu_pieces pieces;
    plan plan;
    void *slot[SLOTS], *carry, *work, *output[OUTPUTS];
    unsigned long long *first_bad; /* device memory */
    cudaEvent_t full[SLOTS], empty[SLOTS], done[OUTPUTS], gone[OUTPUTS], ready;
};

static bool rowwise(const gnomon_matrix *m)
{
    const int64_t rs = m->row_stride < 0 ? -m->row_stride : m->row_stride;
    const int64_t cs = m->col_stride < 0 ? -m->col_stride : m->col_stride;
    return cs <= rs;
}

/* ---- how much at once ---- */

/* Columns [from, from + cols) of the job's points that a piece needs. */
static void columns_of(const run *r, const gcu_piece *piece, int64_t *from, int64_t *cols)
{
    const int64_t begin = gnomon_max(piece->col, r->job->col);
    const int64_t end =
        gnomon_min(piece->col + piece->blocks * piece->cols, r->job->col + r->job->x->cols);
    *from = begin - r->job->col;
    *cols = end > begin ? end - begin : 0;
}

static void size_up(run *r, plan *p)
{
    enum { SCANNED = 4 }; /* the first piece, and the first of a second block, may be short */
    const gnomon_sketch_job *job = r->job;
    const int64_t batches = (job->x->rows + p->batch - 1) / p->batch;
    gcu_piece_call call = {};
    call.y = r->y_direct ? gcu_part(job->y, 0, p->batch, 0, job->y->cols)
                         : gcu_packed(job->y, p->batch, job->y->cols);
    call.gpu = &r->s->gpu;
    gcu_piece piece;
    int pieces = 0;
    size_t least_work = 0;
    p->carry_bytes = p->work_bytes = p->output_bytes = 0;
    for (int64_t at = -1; pieces < SCANNED && gcu_next_piece(&r->pieces, p->width, &at, &piece);
         pieces++) {
        int64_t from, cols;
        columns_of(r, &piece, &from, &cols);
        call.x = r->x_host ? gcu_packed(job->x, p->batch, cols)
                           : gcu_part(job->x, 0, p->batch, from, cols);
        call.x_col = job->col + from;
        const size_t best = gcu_piece_work(&r->pieces, &piece, &call, false);
        const size_t fewest = gcu_piece_work(&r->pieces, &piece, &call, true);
        if (best > p->work_bytes) p->work_bytes = best;
        if (fewest > least_work) least_work = fewest;
        if (!piece.begins || !piece.finishes)
            p->carry_bytes = (size_t)(r->pieces.reach.rows * p->batch) * (job->f64 ? 8 : 4);
    }
    if (p->work_bytes < least_work) p->work_bytes = least_work;
    if (r->x_host) {
        const gnomon_matrix x = gcu_packed(job->x, p->batch, gnomon_min(p->width, job->x->cols));
        p->slots = pieces <= 1 && batches == 1 ? 1 : SLOTS;
        p->slot_bytes = gcu_packed_bytes(&x);
    }
    if (!r->y_direct) {
        const gnomon_matrix y = gcu_packed(job->y, r->keep ? job->y->rows : p->batch, job->y->cols);
        p->outputs = r->keep || batches == 1 ? 1 : OUTPUTS;
        p->output_bytes = gcu_packed_bytes(&y);
    }
    p->fixed_bytes = p->slots * p->slot_bytes + p->outputs * p->output_bytes + p->carry_bytes;
    p->needed = p->fixed_bytes + least_work;
}

/* What would be fastest, given so many bytes of memory or more. */
static void wish(run *r, plan *p, size_t bytes)
{
    const gnomon_matrix *x = r->job->x;
    const int64_t size = (int64_t)gnomon_dtype_size(x->dtype), n = x->rows;
    const int64_t d = r->job->op->descriptor.d;
    *p = plan{};
    p->batch = n;
    p->width = gcu_piece_width(&r->pieces, INT64_MAX / 2);
    if (!r->x_host) return;
    const int64_t piece = gnomon_min(piece_bytes, (int64_t)(bytes / 8));
    const int64_t points = piece / size / gnomon_max(x->cols, 1);
    if (n <= points) return;
    const bool cuts = r->pieces.granule < x->cols && gcu_piece_width(&r->pieces, 1) < d;
    if (!cuts || (rowwise(x) && points >= enough_points)) {
        p->batch = gnomon_min(n, gnomon_max(points, rowwise(x) ? 1 : 256));
    } else {
        p->batch = gnomon_min(n, rowwise(x) ? rowwise_points : colwise_points);
        p->width = gcu_piece_width(&r->pieces, gnomon_max(1, piece / size / p->batch));
    }
    const int64_t batches = (n + p->batch - 1) / p->batch; /* of nearly one size */
    p->batch = gnomon_min(n, ((n + batches - 1) / batches + 31) / 32 * 32);
}

/* Lowers the plan until it needs at most so many bytes. False when it can't be lower. */
static bool shrink(run *r, plan *p, size_t bytes)
{
    const int64_t narrowest = gcu_piece_width(&r->pieces, 1);
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        const int64_t columns = gnomon_min(p->width, r->job->x->cols);
        const bool narrower = r->x_host && narrowest < columns;
        if (narrower && (p->batch == 1 || p->slots * p->slot_bytes > p->needed / 2))
            p->width = gcu_piece_width(&r->pieces, columns / 2);
        else if (p->batch > 1)
            p->batch = (p->batch + 1) / 2;
        else
            return false;
    }
    if (p->work_bytes > bytes - p->fixed_bytes) p->work_bytes = bytes - p->fixed_bytes;
    return true;
}

static bool make_plan(run *r, size_t bytes)
{
    wish(r, &r->plan, bytes);
    return shrink(r, &r->plan, bytes);
}

static void free_all(run *r)
{
    for (int i = 0; i < SLOTS; i++) {
        gcu_free(r->slot[i], r->stream);
        r->slot[i] = nullptr;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        gcu_free(r->output[i], r->stream);
        r->output[i] = nullptr;
    }
    gcu_free(r->carry, r->stream);
    gcu_free(r->work, r->stream);
    r->carry = r->work = nullptr;
}

static cudaError_t alloc_all(run *r)
{
    const plan *p = &r->plan;
    cudaError_t error = gcu_alloc(r->s, &r->work, p->work_bytes, r->stream);
    if (error == cudaSuccess) error = gcu_alloc(r->s, &r->carry, p->carry_bytes, r->stream);
    for (int i = 0; i < p->slots && error == cudaSuccess; i++)
        error = gcu_alloc(r->s, &r->slot[i], p->slot_bytes, r->stream);
    for (int i = 0; i < p->outputs && error == cudaSuccess; i++)
        error = gcu_alloc(r->s, &r->output[i], p->output_bytes, r->stream);
    return error;
}

/* ---- the stream of pieces ---- */

static gnomon_status tell(run *r, int64_t done)
{
    const gnomon_device_host *host = r->job->host;
    const int64_t total = r->job->x->rows;
    if (done >= total) return GNOMON_OK; /* the core tells of the end */
    return host->progress(host->user, done, total) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

/* Points [row, row + rows) of the job's columns [col, col + cols), on the GPU. */
static gnomon_status bring(run *r, int slot, int64_t row, int64_t rows, int64_t col, int64_t cols,
                           gnomon_matrix *x)
{
    const gnomon_matrix part = gcu_part(r->job->x, row, rows, col, cols);
    *x = part;
    if (!r->x_host) return GNOMON_OK;
    *x = gcu_packed(r->job->x, rows, cols);
    x->data = r->slot[slot];
    /* also keeps the host from running far ahead, so that it can tell and be told */
    GCU_TRY(r->why, cudaEventSynchronize(r->empty[slot]));
    const gnomon_status status =
        gcu_upload(r->s, gcu_transfer_of(r->job), &part, r->x_place, x, r->s->in, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->full[slot], r->s->in));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->full[slot], 0));
    return GNOMON_OK;
}

static gnomon_status scan(run *r, const gnomon_matrix *x, int64_t row, int64_t col)
{
    GCU_TRY(r->why, gcu_find_nonfinite(x, row, col, r->job->x->cols, r->first_bad, r->stream));
    return GNOMON_OK;
}

/* Waits until all points have been scanned, those of other devices' parts too; fails with NONFINITE
 * if one was bad. */
static gnomon_status verdict(run *r)
{
    unsigned long long first = 0;
    GCU_TRY(r->why,
            cudaMemcpyAsync(&first, r->first_bad, sizeof first, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    if (first == ~0ull) return r->job->host->checked(r->job->host->user);
    const unsigned long long cols = (unsigned long long)r->job->x->cols;
    first += (unsigned long long)r->job->host->row * cols;
    gcu_about(r->job->host, "x", (int64_t)(first / cols), (int64_t)(first % cols));
    return gcu_fail(r->why, GNOMON_ERROR_NONFINITE,
                    "x: element (%llu, %llu) is NaN or infinite; options.allow_nonfinite lets "
                    "such values pass",
                    first / cols, first % cols);
}

/* The view of y that a batch's kernels write. */
static gnomon_matrix target(const run *r, int64_t row, int64_t rows, int which)
{
    const gnomon_matrix *y = r->job->y;
    if (r->y_direct) return gcu_part(y, row, rows, 0, y->cols);
    gnomon_matrix held = gcu_packed(y, r->keep ? y->rows : r->plan.batch, y->cols);
    held.data = r->output[which];
    return gcu_part(&held, r->keep ? row : 0, rows, 0, y->cols);
}

/* y's old values, which kernels add to. */
static gnomon_status fetch_old(run *r, int64_t row, const gnomon_matrix *to)
{
    const gnomon_matrix from = gcu_part(r->job->y, row, to->rows, 0, to->cols);
    if (r->job->beta == 0.0 || r->y_direct) return GNOMON_OK;
    if (r->y_place != GCU_DEVICE)
        return gcu_upload(r->s, gcu_transfer_of(r->job), &from, r->y_place, to, r->stream, r->why);
    GCU_TRY(r->why, gcu_copy(&from, to, r->stream));
    return GNOMON_OK;
}

/* Hands rows [row, row + rows), held on the GPU, over to y. */
static gnomon_status hand_over(run *r, int64_t row, int64_t rows, int which)
{
    const gnomon_matrix from = target(r, row, rows, which);
    const gnomon_matrix to = gcu_part(r->job->y, row, rows, 0, r->job->y->cols);
    if (r->y_place == GCU_DEVICE) {
        GCU_TRY(r->why, gcu_copy(&from, &to, r->stream));
        return GNOMON_OK;
    }
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->done[which], 0));
    const gnomon_status status =
        gcu_download(r->s, gcu_transfer_of(r->job), &from, &to, r->y_place, r->s->out, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->gone[which], r->s->out));
    return GNOMON_OK;
}

/* Looks at all points, and does nothing else. */
static gnomon_status scan_first(run *r)
{
    const gnomon_matrix *x = r->job->x;
    const int64_t batch = r->plan.batch;
    const int64_t width = gnomon_min(r->plan.width, x->cols);
    int slot = 0;
    for (int64_t row = 0; row < x->rows; row += batch)
        for (int64_t col = 0; col < x->cols; col += width) {
            gnomon_matrix part;
            gnomon_status status = bring(r, slot, row, gnomon_min(batch, x->rows - row), col,
                                         gnomon_min(width, x->cols - col), &part);
            if (status == GNOMON_OK) status = scan(r, &part, row, col);
            if (status != GNOMON_OK) return status;
            GCU_TRY(r->why, cudaEventRecord(r->empty[slot], r->stream));
            slot = (slot + 1) % r->plan.slots;
        }
    return verdict(r);
}

static gnomon_status sketch_batch(run *r, int64_t row, int64_t rows, int which, int *slot,
                                  bool check)
{
    const gnomon_sketch_job *job = r->job;
    gcu_piece_call call = {};
    call.y = target(r, row, rows, which);
    call.carry = r->carry;
    call.work = r->work;
    call.work_bytes = r->plan.work_bytes;
    call.stream = r->stream;
    call.gpu = &r->s->gpu;
    gnomon_status status = fetch_old(r, row, &call.y);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, gcu_scale_unreached(&r->pieces, &call.y, r->stream));
    gcu_piece piece;
    for (int64_t at = -1; gcu_next_piece(&r->pieces, r->plan.width, &at, &piece);) {
        int64_t from, cols;
        columns_of(r, &piece, &from, &cols);
        status = bring(r, *slot, row, rows, from, cols, &call.x);
        if (status == GNOMON_OK && check) status = scan(r, &call.x, row, from);
        if (status != GNOMON_OK) return status;
        call.x_col = job->col + from;
        GCU_TRY(r->why, gcu_run_piece(&r->pieces, &piece, &call));
        if (r->plan.slots) {
            GCU_TRY(r->why, cudaEventRecord(r->empty[*slot], r->stream));
            *slot = (*slot + 1) % r->plan.slots;
        }
        const double part = job->x->cols ? (double)(from + cols) / (double)job->x->cols : 1.0;
        status = tell(r, row + (int64_t)(part * (double)rows));
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

static gnomon_status sketch_batches(run *r, bool check)
{
    const int64_t n = r->job->x->rows;
    int64_t pending = -1, pending_rows = 0;
    int slot = 0, which = 0, pending_which = 0;
    gnomon_status status = GNOMON_OK;
    for (int64_t row = 0; row < n && status == GNOMON_OK; row += r->plan.batch) {
        const int64_t rows = gnomon_min(r->plan.batch, n - row);
        if (r->plan.outputs == OUTPUTS)
            GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->gone[which], 0));
        status = sketch_batch(r, row, rows, which, &slot, check);
        if (status != GNOMON_OK || r->y_direct || check) continue;
        GCU_TRY(r->why, cudaEventRecord(r->done[which], r->stream));
        if (pending >= 0) status = hand_over(r, pending, pending_rows, pending_which);
        pending = row;
        pending_rows = rows;
        pending_which = which;
        if (r->plan.outputs == OUTPUTS) which = 1 - which;
    }
    if (status == GNOMON_OK && pending >= 0)
        status = hand_over(r, pending, pending_rows, pending_which);
    if (status != GNOMON_OK || !check) return status;
    status = verdict(r);
    if (status != GNOMON_OK || r->y_direct) return status;
    GCU_TRY(r->why, cudaEventRecord(r->done[0], r->stream));
    return hand_over(r, 0, n, 0);
}

/* ---- the call ---- */

static cudaError_t make_events(run *r)
{
    cudaEvent_t *const events[] = {r->full, r->empty, r->done, r->gone, &r->ready};
    const int counts[] = {SLOTS, SLOTS, OUTPUTS, OUTPUTS, 1};
    for (int e = 0; e < 5; e++)
        for (int i = 0; i < counts[e]; i++) {
            const cudaError_t error =
                cudaEventCreateWithFlags(&events[e][i], cudaEventDisableTiming);
            if (error != cudaSuccess) return error;
        }
    return cudaSuccess;
}

static void drop_events(run *r)
{
    cudaEvent_t *const events[] = {r->full, r->empty, r->done, r->gone, &r->ready};
    const int counts[] = {SLOTS, SLOTS, OUTPUTS, OUTPUTS, 1};
    for (int e = 0; e < 5; e++)
        for (int i = 0; i < counts[e]; i++)
            if (events[e][i]) cudaEventDestroy(events[e][i]);
}

static gnomon_status work(run *r)
{
    const gnomon_sketch_job *job = r->job;
    const gnomon_matrix *x = job->x, *y = job->y;
    gnomon_status status = gcu_place_of(r->s, x, "x", &r->x_place, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, y, "y", &r->y_place, r->why);
    if (status != GNOMON_OK) return status;
    if (x->rows == 0) return GNOMON_OK;
    r->x_host = r->x_place != GCU_DEVICE;
    bool check = job->check && gcu_may_be_nonfinite(x->dtype) && x->cols > 0;
    void *first = nullptr;
    if (check) {
        GCU_TRY(r->why, gcu_alloc(r->s, &first, sizeof *r->first_bad, r->stream));
        r->first_bad = static_cast<unsigned long long *>(first);
        GCU_TRY(r->why, cudaMemsetAsync(first, 0xff, sizeof *r->first_bad, r->stream));
    }
    if (check && r->x_place >= GCU_PEER) { /* other GPUs' parts must not wait for more */
        status = scan(r, x, 0, 0);
        if (status == GNOMON_OK) status = verdict(r);
        if (status != GNOMON_OK) return status;
        check = false;
    }
    r->y_direct = r->y_place == GCU_DEVICE && !check;
    const gnomon_matrix x_there = r->x_host ? gcu_packed(x, x->rows, x->cols) : *x;
    const gnomon_matrix y_there = r->y_direct ? *y : gcu_packed(y, y->rows, y->cols);
    if (!gcu_pieces_open(&r->pieces, r->s, job, &x_there, &y_there, r->why))
        return GNOMON_ERROR_DEVICE;

    /* All of y waits on the GPU if the pieces are all the columns, and there is room. */
    const gcu_reach *reach = &r->pieces.reach;
    const int64_t blocks = job->op->blocks, c = job->op->block_cols;
    const bool all_columns = blocks == 1 || (reach->first <= job->col / c &&
                                             reach->last >= (job->col + x->cols - 1) / c);
    r->keep = check && all_columns && gcu_packed_bytes(&y_there) < gcu_free_memory(r->s) / 4;
    const bool scan_before = check && !r->keep;
    if (scan_before && r->y_place == GCU_DEVICE) r->y_direct = true;
    status = gcu_alloc_planned(r, "point", make_plan, alloc_all, free_all);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->ready, r->stream));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, r->ready, 0));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->ready, 0));
    if (scan_before) {
        status = scan_first(r);
        if (status != GNOMON_OK) return status;
    }
    return sketch_batches(r, r->keep);
}

gnomon_status gcu_sketch_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.stream = job->stream ? static_cast<cudaStream_t>(job->stream) : s->stream;
    const cudaError_t made = make_events(&r);
    gnomon_status status = made == cudaSuccess ? work(&r) : gcu_status(why, made, "making events");
    const bool runs_on = status == GNOMON_OK && job->stream && !job->check &&
                         r.x_place == GCU_DEVICE && r.y_place == GCU_DEVICE;
    /* Nothing may be on its way from or to the host when its memory is given back. */
    if (!runs_on) {
        cudaError_t error = cudaStreamSynchronize(s->in);
        if (error == cudaSuccess) error = cudaStreamSynchronize(s->out);
        if (status == GNOMON_OK && error != cudaSuccess)
            status = gcu_status(why, error, "transfers");
    }
    free_all(&r);
    gcu_free(r.first_bad, r.stream);
    if (!runs_on) {
        const cudaError_t error = cudaStreamSynchronize(r.stream);
        if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    }
    drop_events(&r);
    return status;
}
