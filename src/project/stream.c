/* Points whose coordinates come in pieces. Sums are kept for all points; columns are handed on in
 * whole units, at whose borders every order of summation may pause: chunks of the kernels,
 * blocks, level-1 blocks of a cascade. What is left of a piece waits in a buffer. */
#include "backend.h"
#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"
#include "project/cascade/cascade.h"
#include "project/rows.h"

#include <inttypes.h>
#include <string.h>

struct gnomon_stream {
    gnomon_context *ctx;
    gnomon_sketch_job job; /* col: where the stream begins */
    int64_t end;           /* the first column that is not to come */
    int64_t points, next;  /* next: the first column that has not come */
    bool failed;
    /* on a device: */
    gnomon_device_call call;
    void *device_stream; /* NULL: on the CPU */
    /* columns [held, next) wait here: element (i, j) is at j * pitch + i */
    char *buffer;
    int64_t held, pitch;
    /* simple and block operators */
    gnomon_reach reach; /* of all columns to come */
    gnomon_engine engine;
    bool keeps_panels;
    gnomon_panels panels; /* of a block, when they are few */
    /* kronecker operators of more than one level */
    gnomon_cascade cascade;
};

static int64_t chunk_of(const gnomon_operator *op)
{
    const gnomon_simple *a = &op->factor[0];
    return gnomon_kernels_for(gnomon_cpu_kernels("portable"), a)->chunk_cols(a);
}

int64_t gnomon_operator_granule(const gnomon_operator *op)
{
    if (!op) return 0;
    if (op->levels > 1) return op->factor[0].cols;
    if (op->blocks > 1) return op->block_cols;
    return gnomon_min(chunk_of(op), op->descriptor.d);
}

/* Columns of the widest unit. */
static int64_t widest_unit(const gnomon_operator *op)
{
    return op->levels > 1 ? op->factor[0].cols : gnomon_min(chunk_of(op), op->block_cols);
}

/* The unit that column col lies in, as far as the stream goes: [*begin, *end). */
static void unit_of(const gnomon_stream *s, int64_t col, int64_t *begin, int64_t *end)
{
    const gnomon_operator *op = s->job.op;
    const int64_t block = op->levels > 1 ? op->factor[0].cols : op->block_cols;
    const int64_t unit = op->levels > 1 ? block : chunk_of(op);
    const int64_t base = col / block * block;
    *begin = base + (col - base) / unit * unit;
    *end = gnomon_min(s->end, gnomon_min(base + block, *begin + unit));
}

static gnomon_status open_blocks(gnomon_stream *s)
{
    gnomon_sketch_job *job = &s->job;
    const gnomon_operator *op = job->op;
    /* Views without data, whose shapes are those of all that is to come. */
    const gnomon_matrix x = {
        .dtype = job->f64 ? GNOMON_F64 : GNOMON_F32, .rows = s->points, .cols = s->end - job->col};
    const gnomon_matrix y = {.dtype = x.dtype, .rows = s->points, .cols = job->rows};
    job->x = &x;
    job->y = &y;
    s->reach = gnomon_reach_of(op, job->row, job->rows, job->col, x.cols);
    if (s->reach.first > s->reach.last || s->points == 0) return GNOMON_OK;
    gnomon_engine *e = &s->engine;
    gnomon_blocks_engine(s->ctx, job, false, &s->reach, e);
    int64_t bytes = e->rows * GNOMON_LANES * (job->f64 ? 8 : 4);
    GNOMON_FAIL_IF(!gnomon_mul(bytes, gnomon_tiles_of(e->out.end), &bytes), s->ctx,
                   GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("n") " is %" PRId64
                                   "; the sums of so many points are more than memory can count",
                   s->points);
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, bytes, 1, "the stream's sums", &e->sums));
    if (op->blocks == 1) return GNOMON_OK;
    gnomon_panels_cut(&s->panels, gnomon_kernels_for(e->kernels, e->a), e->a, e->row, e->rows, 0,
                      e->a->cols, false);
    bytes = gnomon_panels_bytes(&s->panels, job->memory_limit / 8);
    if (bytes == INT64_MAX) return GNOMON_OK;
    GNOMON_TRY(gnomon_panels_open(s->ctx, &s->panels, bytes));
    gnomon_panels_load(s->ctx, &s->panels, 0);
    s->keeps_panels = true;
    e->memory -= bytes;
    return GNOMON_OK;
}

static gnomon_status open_cascade(gnomon_stream *s)
{
    gnomon_sketch_job *job = &s->job;
    if (s->points == 0) return GNOMON_OK;
    GNOMON_TRY(gnomon_cascade_open(&s->cascade, s->ctx, job, s->points, true));
    int64_t first, end;
    gnomon_cascade_blocks(job->op, job->col, s->end - job->col, &first, &end);
    gnomon_cascade_begin(&s->cascade, s->points, first, end);
    return GNOMON_OK;
}

static bool takes_stream(gnomon_device_call *call, void *stream)
{
    const gnomon_stream *s = stream;
    /* a named device says with stream_open what it lacks */
    return call->must ||
           call->table->supports(call->state, &s->job, false, call->why, sizeof call->why);
}

static gnomon_status run_stream(gnomon_device_call *call, void *stream)
{
    gnomon_stream *s = stream;
    return call->table->stream_open(call->state, &s->job, &s->device_stream, call->why,
                                    sizeof call->why);
}

/* Under AUTO a device that declines leaves device_stream NULL. */
static gnomon_status open_device(gnomon_stream *s, gnomon_where where)
{
    static const gnomon_device_step step = {
        .phase = "project", .takes = takes_stream, .run = run_stream};
    gnomon_sketch_job *job = &s->job;
    const gnomon_dtype dtype = job->f64 ? GNOMON_F64 : GNOMON_F32;
    const gnomon_matrix x = gnomon_matrix_rowmajor(NULL, dtype, s->points, s->end - job->col);
    const gnomon_matrix y = gnomon_matrix_rowmajor(NULL, dtype, s->points, job->rows);
    bool done;
    job->x = &x;
    job->y = &y;
    job->host = &s->call.host;
    const gnomon_status status = gnomon_device_run(&s->call, s->ctx, where, &step, s, &done);
    job->x = job->y = NULL;
    return status == GNOMON_ERROR_DEVICE && !s->call.must ? GNOMON_OK : status;
}

static gnomon_status open_cpu(gnomon_stream *s)
{
    const gnomon_status status = s->job.op->levels > 1 ? open_cascade(s) : open_blocks(s);
    s->job.x = s->job.y = NULL;
    return status;
}

gnomon_status gnomon_stream_at(gnomon_context *ctx, gnomon_where where, const gnomon_operator *op,
                               int64_t n, int64_t cols, gnomon_dtype dtype,
                               const gnomon_sketch_options *options, gnomon_stream **out)
{
    gnomon_sketch_job job;
    GNOMON_FAIL_IF(!out, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_TRY(gnomon_job_options(ctx, op, options, "the stream", cols, &job));
    GNOMON_FAIL_IF(n < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("n") " is %" PRId64 "; it must not be negative", n);
    GNOMON_FAIL_IF(dtype != GNOMON_F32 && dtype != GNOMON_F64, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %s; it must be f32 or f64", gnomon_dtype_name(dtype));
    job.f64 = dtype == GNOMON_F64;
    gnomon_stream *s;
    GNOMON_TRY(gnomon_alloc_zero(ctx, 1, sizeof *s, "the stream", &s));
    s->ctx = ctx;
    s->job = job;
    s->points = n;
    s->next = s->held = job.col;
    s->end = cols >= 0 ? job.col + cols : op->descriptor.d;
    s->pitch = gnomon_tiles_of(n) * GNOMON_LANES;
    /* points of which there are none are the CPU's */
    gnomon_status status = n > 0 ? open_device(s, where) : GNOMON_OK;
    if (where == GNOMON_BY_CONTEXT && !s->device_stream) gnomon_context_set_worked(ctx, NULL);
    if (status == GNOMON_OK && !s->device_stream) status = open_cpu(s);
    if (status != GNOMON_OK) {
        gnomon_stream_destroy(s);
        return status;
    }
    *out = s;
    return GNOMON_OK;
}

gnomon_status gnomon_stream_create(gnomon_context *ctx, const gnomon_operator *op, int64_t n,
                                   gnomon_dtype dtype, const gnomon_sketch_options *options,
                                   gnomon_stream **out)
{
    return gnomon_stream_at(ctx, GNOMON_BY_CONTEXT, op, n, -1, dtype, options, out);
}

static void close_device(gnomon_stream *s)
{
    if (s->device_stream) s->call.table->stream_close(s->call.state, s->device_stream);
    s->device_stream = NULL;
}

void gnomon_stream_destroy(gnomon_stream *s)
{
    if (!s) return;
    close_device(s);
    gnomon_panels_close(s->ctx, &s->panels);
    gnomon_free(s->ctx, s->engine.sums);
    if (s->cascade.ctx) gnomon_cascade_close(&s->cascade);
    gnomon_free(s->ctx, s->buffer);
    gnomon_free(s->ctx, s);
}

/* Hands columns [col, col + x->cols) on to the sums, part of one block or whole blocks at a time.
 */
static gnomon_status add_blocks(gnomon_stream *s, const gnomon_matrix *x, int64_t col)
{
    const int64_t c = s->job.op->block_cols, end = col + x->cols;
    for (int64_t from = col, to; from < end; from = to) {
        const int64_t first = from / c;
        int64_t last = first;
        to = gnomon_min(end, (first + 1) * c);
        if (from == first * c && to == (first + 1) * c && end > to) {
            last = end / c - 1;
            if (last < first) last = first;
            to = (last + 1) * c;
        }
        if (last < s->reach.first || first > s->reach.last) continue;
        const gnomon_matrix part = gnomon_columns(x, from - col, to - from);
        gnomon_engine e = s->engine;
        const int64_t base = first * c;
        if (first == last) {
            e.col = from - base;
            e.cols = to - from;
        }
        e.in = gnomon_fold_view(&part, from);
        e.in.block = s->job.op->blocks == 1 ? s->job.op->descriptor.d : c;
        e.in.first = s->reach.first;
        const int64_t least_block = first > s->reach.first ? first : s->reach.first;
        e.in.begin = (least_block - s->reach.first) * s->points;
        e.in.end = (gnomon_min(last, s->reach.last) + 1 - s->reach.first) * s->points;
        if (s->keeps_panels && e.col == 0 && e.cols == c) e.whole = &s->panels;
        GNOMON_TRY(gnomon_engine_sketch(&e));
    }
    return GNOMON_OK;
}

static gnomon_status add(gnomon_stream *s, const gnomon_matrix *x, int64_t col)
{
    if (x->cols == 0 || s->points == 0) return GNOMON_OK;
    if (s->job.op->levels > 1) return gnomon_cascade_push(&s->cascade, x, col);
    return add_blocks(s, x, col);
}

typedef struct copy_job {
    const gnomon_stream *s;
    gnomon_fold in;
    const gnomon_kernels *kernels;
    int64_t col, cols; /* of the piece */
    char *out;         /* where its first column goes */
} copy_job;

/* A tile of points into the buffer, converted. */
static void copy_task(void *arg, int64_t tile, int worker)
{
    enum { STRIP = 32 };
    (void)worker;
    const copy_job *job = arg;
    const bool f64 = job->s->job.f64;
    const int64_t size = f64 ? 8 : 4, line = GNOMON_LANES * size;
    double strip[STRIP * GNOMON_LANES];
    for (int64_t j = 0; j < job->cols; j += STRIP) {
        const int64_t w = gnomon_min(STRIP, job->cols - j);
        gnomon_fold_pack(&job->in, job->kernels, f64, tile, job->col + j, w, strip);
        for (int64_t i = 0; i < w; i++)
            memcpy(job->out + ((j + i) * job->s->pitch + tile * GNOMON_LANES) * size,
                   (const char *)strip + i * line, (size_t)line);
    }
}

/* Puts columns [col, col + cols) of the piece behind what the buffer holds. */
static gnomon_status hold(gnomon_stream *s, const gnomon_matrix *piece, int64_t col, int64_t cols)
{
    const int64_t size = s->job.f64 ? 8 : 4;
    if (cols == 0 || s->points == 0) return GNOMON_OK;
    if (!s->buffer) {
        int64_t count;
        GNOMON_FAIL_IF(!gnomon_mul(s->pitch, widest_unit(s->job.op), &count), s->ctx,
                       GNOMON_ERROR_OVERFLOW,
                       "piece: the columns that wait for the rest of their granule are more "
                       "than memory can count; cut pieces at multiples of %" PRId64,
                       gnomon_operator_granule(s->job.op));
        GNOMON_TRY(gnomon_alloc(s->ctx, count, (size_t)size, "the stream's buffer", &s->buffer));
    }
    copy_job job = {s,
                    gnomon_fold_view(piece, 0),
                    gnomon_context_kernels(s->ctx),
                    col,
                    cols,
                    s->buffer + (s->next + col - s->held) * s->pitch * size};
    gnomon_parallel(s->ctx, gnomon_tiles_of(s->points), copy_task, &job);
    return GNOMON_OK;
}

/* The buffer's columns [held, end) as a view. */
static gnomon_matrix held_columns(const gnomon_stream *s, int64_t end)
{
    return (gnomon_matrix){.data = s->buffer,
                           .dtype = s->job.f64 ? GNOMON_F64 : GNOMON_F32,
                           .rows = s->points,
                           .cols = end - s->held,
                           .row_stride = 1,
                           .col_stride = s->pitch};
}

static gnomon_status add_piece(gnomon_stream *s, const gnomon_matrix *piece)
{
    const int64_t end = s->next + piece->cols;
    int64_t at = s->next, unit, unit_end;
    if (s->held < s->next) { /* the rest of what waits */
        unit_of(s, s->held, &unit, &unit_end);
        at = gnomon_min(unit_end, end);
        GNOMON_TRY(hold(s, piece, 0, at - s->next));
        if (at == unit_end) {
            const gnomon_matrix m = held_columns(s, unit_end);
            GNOMON_TRY(add(s, &m, s->held));
            s->held = unit_end;
        }
    }
    if (at < end) {
        unit_of(s, end - 1, &unit, &unit_end);
        int64_t whole = unit_end == end ? end : unit;
        if (whole < at) whole = at;
        const gnomon_matrix m = gnomon_columns(piece, at - s->next, whole - at);
        GNOMON_TRY(add(s, &m, at));
        s->held = whole;
        GNOMON_TRY(hold(s, piece, whole - s->next, end - whole));
    }
    s->next = end;
    return GNOMON_OK;
}

gnomon_status gnomon_stream_push(gnomon_stream *s, const gnomon_matrix *piece)
{
    GNOMON_FAIL_IF(!s, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("stream") " is NULL");
    gnomon_context *ctx = s->ctx;
    GNOMON_FAIL_IF(s->failed, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("stream") " failed before; it can only be destroyed");
    GNOMON_TRY(gnomon_check_view(ctx, piece, "piece"));
    GNOMON_FAIL_IF(piece->rows != s->points, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("piece") " has %" PRId64 " rows; the stream has %" PRId64 " points",
                   piece->rows, s->points);
    const int64_t left = s->end - s->next;
    GNOMON_FAIL_IF(piece->cols > left, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("piece") " has %" PRId64 " columns; %" PRId64
                                       " of the operator's %" PRId64 " are still to come",
                   piece->cols, left, s->job.op->descriptor.d);
    GNOMON_FAIL_IF(
        !s->job.f64 && gnomon_dtype_needs_f64(piece->dtype), ctx, GNOMON_ERROR_DTYPE,
        GNOMON_ARG("piece.dtype") " is %s, which needs fp64 sums; the stream's dtype is f32",
        gnomon_dtype_name(piece->dtype));
    if (s->job.check) GNOMON_TRY(gnomon_check_points(ctx, piece, "piece"));
    gnomon_status status;
    if (s->device_stream) {
        gnomon_device_call *const call = &s->call;
        const bool first = s->next == s->job.col;
        gnomon_device_again(call);
        status = call->table->stream_push(call->state, s->device_stream, piece, call->why,
                                          sizeof call->why);
        const bool broken = status == GNOMON_ERROR_MEMORY || status == GNOMON_ERROR_DEVICE;
        if (!broken || !first || call->must) {
            s->failed = broken;
            if (status == GNOMON_OK) s->next += piece->cols;
            return gnomon_device_result(call, status);
        }
        /* Nothing has been taken yet: under AUTO the CPU can do it all. */
        close_device(s);
        gnomon_context_set_worked(ctx, NULL);
        status = open_cpu(s);
        if (status != GNOMON_OK) {
            s->failed = true;
            return status;
        }
    }
    status = add_piece(s, piece);
    if (status != GNOMON_OK) s->failed = true;
    return status;
}

gnomon_status gnomon_stream_finish(gnomon_stream *s, const gnomon_matrix *y)
{
    GNOMON_FAIL_IF(!s, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("stream") " is NULL");
    gnomon_context *ctx = s->ctx;
    const gnomon_operator *op = s->job.op;
    GNOMON_FAIL_IF(s->failed, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("stream") " failed before; it can only be destroyed");
    GNOMON_TRY(gnomon_check_output(ctx, y, "y"));
    GNOMON_FAIL_IF(y->rows != s->points || y->cols != s->job.rows, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("y") " is %" PRId64 " x %" PRId64 "; the stream's sketch is %" PRId64
                                   " x %" PRId64,
                   y->rows, y->cols, s->points, s->job.rows);
    GNOMON_FAIL_IF(
        !s->job.f64 && y->dtype == GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
        GNOMON_ARG("y.dtype") " is f64, which needs fp64 sums; the stream's dtype is f32");
    GNOMON_FAIL_IF(s->next != s->end, ctx, GNOMON_ERROR_SHAPE,
                   "the stream has come to column %" PRId64 " of %" PRId64, s->next, s->end);
    if (s->points == 0) return GNOMON_OK;
    if (s->device_stream) {
        gnomon_device_call *const call = &s->call;
        gnomon_device_again(call);
        GNOMON_TRY(
            gnomon_device_result(call, call->table->stream_finish(call->state, s->device_stream, y,
                                                                  call->why, sizeof call->why)));
        return gnomon_job_check_output(ctx, &s->job, y, "y");
    }
    if (op->levels > 1) {
        const gnomon_status status = gnomon_cascade_end(&s->cascade);
        if (status != GNOMON_OK) {
            s->failed = true;
            return status;
        }
        gnomon_overflow o;
        gnomon_overflow_none(&o);
        gnomon_store_rows(ctx, &s->job, s->cascade.root, y, s->job.check ? &o : NULL);
        return gnomon_overflow_check(ctx, &o, "y", s->job.f64);
    }
    return gnomon_blocks_store(ctx, &s->job, &s->reach, &s->engine, y);
}
