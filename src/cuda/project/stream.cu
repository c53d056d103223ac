/* A sketch whose columns come in pieces of any width. They gather in one of two buffers until they
 * make a piece for the kernels, which runs while the other buffer fills. */
#include "base/arithmetic.h"
#include "cuda/project/job.h"
#include "cuda/project/pieces.h"
#include "cuda/runtime/transfer.h"

#include <stdlib.h>

enum { BUFFERS = 2 };

static const int64_t piece_bytes = 64 << 20;

struct gcu_sketch_stream {
    gnomon_sketch_job job;
    gnomon_matrix x, sums; /* all columns, and what becomes of them */
    bool open;             /* the first piece has told type and order of all */
    gcu_pieces pieces;
    gcu_piece piece; /* the one that gathers */
    bool more;       /* there is such a one */
    int64_t at, width, next;
    int which;
    void *buffer[BUFFERS], *carry, *work, *sums_data;
    size_t work_bytes;
    cudaEvent_t full, empty[BUFFERS];
};

/* The job's columns that the piece is made of: [begin, end) of the operator's. */
static int64_t begin_of(const gcu_sketch_stream *t)
{
    return gnomon_max(t->piece.col, t->job.col);
}

static int64_t end_of(const gcu_sketch_stream *t)
{
    return gnomon_min(t->piece.col + t->piece.blocks * t->piece.cols, t->job.col + t->x.cols);
}

static void next_piece(gcu_sketch_stream *t)
{
    t->more = gcu_next_piece(&t->pieces, t->width, &t->at, &t->piece);
}

/* The gathered columns of the piece, [from, to) of the operator's. */
static gnomon_matrix gathered(const gcu_sketch_stream *t, int64_t from, int64_t to)
{
    gnomon_matrix m = gcu_packed(&t->x, t->x.rows, gnomon_min(t->width, t->x.cols));
    m.data = static_cast<char *>(t->buffer[t->which]) +
             (from - begin_of(t)) * m.col_stride * (int64_t)gnomon_dtype_size(m.dtype);
    m.cols = to - from;
    return m;
}

/* Memory for a width: what all pieces need of it, and of that what they can do without. */
static size_t size_up(const gcu_state *s, gcu_sketch_stream *t, size_t *buffer, size_t *carry,
                      size_t *spare)
{
    enum { SCANNED = 4 };
    const gnomon_matrix held = gcu_packed(&t->x, t->x.rows, gnomon_min(t->width, t->x.cols));
    gcu_piece_call call = {};
    call.y = t->sums;
    call.gpu = &s->gpu;
    *buffer = gcu_packed_bytes(&held);
    *carry = t->work_bytes = 0;
    size_t least_work = 0;
    int64_t at = -1;
    for (int i = 0; i < SCANNED && gcu_next_piece(&t->pieces, t->width, &at, &t->piece); i++) {
        call.x = gathered(t, begin_of(t), end_of(t));
        call.x_col = begin_of(t);
        const size_t best = gcu_piece_work(&t->pieces, &t->piece, &call, false);
        const size_t fewest = gcu_piece_work(&t->pieces, &t->piece, &call, true);
        t->work_bytes = best > t->work_bytes ? best : t->work_bytes;
        t->work_bytes = fewest > t->work_bytes ? fewest : t->work_bytes;
        least_work = fewest > least_work ? fewest : least_work;
        if (!t->piece.begins || !t->piece.finishes)
            *carry = (size_t)(t->pieces.reach.rows * t->x.rows) * (t->job.f64 ? 8 : 4);
    }
    *spare = t->work_bytes - least_work;
    return BUFFERS * *buffer + *carry + t->work_bytes + gcu_packed_bytes(&t->sums);
}

static void free_all(gcu_state *s, gcu_sketch_stream *t)
{
    void **const all[] = {&t->buffer[0], &t->buffer[1], &t->carry, &t->work, &t->sums_data};
    for (void **one : all) {
        gcu_free(*one, s->stream);
        *one = nullptr;
    }
}

static gnomon_status alloc_memory(gcu_state *s, gcu_sketch_stream *t, gcu_why why)
{
    const int64_t size = (int64_t)gnomon_dtype_size(t->x.dtype);
    const size_t free = gcu_free_memory(s);
    size_t buffer, carry, spare;
    t->width = gcu_piece_width(&t->pieces, gnomon_max(1, piece_bytes / size / t->x.rows));
    for (size_t needed; (needed = size_up(s, t, &buffer, &carry, &spare)) > free;) {
        const int64_t narrower =
            gcu_piece_width(&t->pieces, gnomon_max(1, gnomon_min(t->width, t->x.cols) / 2));
        if (narrower < t->width) {
            t->width = narrower;
            continue;
        }
        /* no narrower: slower, then */
        if (needed - spare > free)
            return gcu_fail(why, GNOMON_ERROR_MEMORY,
                            "a stream of so many points needs %zu bytes of the GPU's memory, %zu "
                            "are free",
                            needed - spare, free);
        t->work_bytes -= needed - free;
        break;
    }
    cudaError_t error = gcu_alloc(s, &t->sums_data, gcu_packed_bytes(&t->sums), s->stream);
    if (error == cudaSuccess) error = gcu_alloc(s, &t->carry, carry, s->stream);
    if (error == cudaSuccess) error = gcu_alloc(s, &t->work, t->work_bytes, s->stream);
    for (int i = 0; i < BUFFERS && error == cudaSuccess; i++)
        error = gcu_alloc(s, &t->buffer[i], buffer, s->stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(s->stream);
    if (error == cudaSuccess) return GNOMON_OK;
    free_all(s, t);
    return gcu_status(why, error, "taking device memory for a stream");
}

gnomon_status gcu_sketch_stream_open(gcu_state *s, const gnomon_sketch_job *job,
                                     gcu_sketch_stream **out, gcu_why why)
{
    (void)s;
    if (job->beta != 0.0)
        return gcu_fail(why, GNOMON_ERROR_DEVICE,
                        "options.beta is %g; a stream on the GPU takes 0 only", job->beta);
    gcu_sketch_stream *t = static_cast<gcu_sketch_stream *>(calloc(1, sizeof *t));
    if (!t) return gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for a stream");
    t->job = *job;
    t->x = *job->x;
    t->sums = gnomon_matrix_rowmajor(nullptr, job->y->dtype, job->y->rows, job->y->cols);
    t->sums.memory = GNOMON_DEVICE_MEMORY;
    t->job.x = &t->x;
    t->job.y = &t->sums;
    t->job.f64 = job->y->dtype == GNOMON_F64;
    t->next = job->col;
    *out = t;
    return GNOMON_OK;
}

void gcu_sketch_stream_close(gcu_state *s, gcu_sketch_stream *t)
{
    free_all(s, t);
    cudaStreamSynchronize(s->stream);
    if (t->full) cudaEventDestroy(t->full);
    for (cudaEvent_t event : t->empty)
        if (event) cudaEventDestroy(event);
    free(t);
}

/* The first piece determines how points are held. */
static gnomon_status begin(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *piece,
                           gcu_why why)
{
    gnomon_matrix like = *piece;
    like.cols = t->x.cols;
    t->x = gcu_packed(&like, t->x.rows, t->x.cols);
    t->job.f64 = t->sums.dtype == GNOMON_F64;
    if (!gcu_pieces_open(&t->pieces, s, &t->job, &t->x, &t->sums, why)) return GNOMON_ERROR_DEVICE;
    const gnomon_status status = alloc_memory(s, t, why);
    if (status != GNOMON_OK) return status;
    t->sums.data = t->sums_data;
    GCU_TRY(why, cudaEventCreateWithFlags(&t->full, cudaEventDisableTiming));
    for (cudaEvent_t &event : t->empty)
        GCU_TRY(why, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GCU_TRY(why, gcu_scale_unreached(&t->pieces, &t->sums, s->stream));
    t->at = -1;
    next_piece(t);
    t->open = true;
    return GNOMON_OK;
}

static gnomon_status run_gathered(gcu_state *s, gcu_sketch_stream *t, gcu_why why)
{
    gcu_piece_call call = {};
    call.x = gathered(t, begin_of(t), end_of(t));
    call.x_col = begin_of(t);
    call.y = t->sums;
    call.carry = t->carry;
    call.work = t->work;
    call.work_bytes = t->work_bytes;
    call.stream = s->stream;
    call.gpu = &s->gpu;
    GCU_TRY(why, cudaEventRecord(t->full, s->in));
    GCU_TRY(why, cudaStreamWaitEvent(s->stream, t->full, 0));
    GCU_TRY(why, gcu_run_piece(&t->pieces, &t->piece, &call));
    GCU_TRY(why, cudaEventRecord(t->empty[t->which], s->stream));
    t->which = (t->which + 1) % BUFFERS;
    GCU_TRY(why, cudaStreamWaitEvent(s->in, t->empty[t->which], 0));
    next_piece(t);
    return GNOMON_OK;
}

/* Columns [from, to) of the operator, out of the piece that begins at t->next. */
static gnomon_status gather(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *piece,
                            int64_t from, int64_t to, gcu_place place, gcu_why why)
{
    const gnomon_matrix held = gathered(t, from, to);
    gnomon_matrix part = *piece;
    part.cols = to - from;
    part.data = static_cast<char *>(piece->data) +
                (from - t->next) * piece->col_stride * (int64_t)gnomon_dtype_size(piece->dtype);
    return gcu_upload(s, gcu_transfer_of(&t->job), &part, place, &held, s->in, why);
}

gnomon_status gcu_sketch_stream_push(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *piece,
                                     gcu_why why)
{
    if (piece->rows == 0 || piece->cols == 0) return GNOMON_OK;
    if (t->open && piece->dtype != t->x.dtype)
        return gcu_fail(why, GNOMON_ERROR_DTYPE,
                        "piece.dtype is %s; the pieces before it were %s, and on the GPU all must "
                        "be of one type",
                        gnomon_dtype_name(piece->dtype), gnomon_dtype_name(t->x.dtype));
    gcu_place place;
    gnomon_status status = gcu_place_of(s, piece, "piece", &place, why);
    if (status == GNOMON_OK && !t->open) status = begin(s, t, piece, why);
    const int64_t end = t->next + piece->cols;
    for (int64_t col = t->next; col < end && status == GNOMON_OK;) {
        const int64_t wanted = t->more ? begin_of(t) : end; /* columns that no row needs */
        if (col < wanted) {
            col = gnomon_min(end, wanted);
            continue;
        }
        const int64_t to = gnomon_min(end, end_of(t));
        status = gather(s, t, piece, col, to, place, why);
        col = to;
        if (status == GNOMON_OK && to == end_of(t)) status = run_gathered(s, t, why);
    }
    const cudaError_t error = cudaStreamSynchronize(s->in);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "transfers");
    if (status == GNOMON_OK) t->next = end;
    return status;
}

/* The sums as F32, in device memory of their own. */
static gnomon_status to_f32(gcu_state *s, const gnomon_matrix *sums, gnomon_matrix *out,
                            gcu_why why)
{
    *out = *sums;
    out->dtype = GNOMON_F32;
    GCU_TRY(why, gcu_alloc(s, &out->data, gcu_packed_bytes(out), s->stream));
    GCU_TRY(why, gcu_copy(sums, out, s->stream));
    return GNOMON_OK;
}

gnomon_status gcu_sketch_stream_finish(gcu_state *s, gcu_sketch_stream *t, const gnomon_matrix *y,
                                       gcu_why why)
{
    gcu_place place;
    gnomon_status status = gcu_place_of(s, y, "y", &place, why);
    if (status != GNOMON_OK || y->rows == 0) return status;
    if (!t->open) { /* there were no columns */
        gnomon_matrix none = *y;
        none.cols = 0;
        none.dtype = t->x.dtype;
        status = begin(s, t, &none, why);
        if (status != GNOMON_OK) return status;
    }
    gnomon_matrix out = t->sums;
    if (y->dtype != t->sums.dtype) status = to_f32(s, &t->sums, &out, why);
    if (status == GNOMON_OK)
        status = gcu_download(s, gcu_transfer_of(&t->job), &out, y, place, s->stream, why);
    if (out.data != t->sums.data) gcu_free(out.data, s->stream);
    const cudaError_t error = cudaStreamSynchronize(s->stream);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    return status;
}
