/* Points streaming through an operator: see project.h. */
#include "verbs/project/project.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Chunks larger than both of these gain nothing: an operator made anew for so many points
 * costs little beside applying it, while what is read of a small chunk is still in the processors'
 * caches when it is projected, and its pages are few. The kinds of few operations a point are soon
 * done with the making. */
static const int64_t enough_points = 2048, enough_points_fast = 256;
static const int64_t enough_bytes = (int64_t)64 << 20, enough_bytes_fast = (int64_t)24 << 20;
static const int64_t cached_bytes = (int64_t)8 << 20, cached_bytes_thread = (int64_t)1 << 20;
/* A GPU makes the operator anew for every chunk and cuts it into pieces by itself. */
static const int64_t enough_bytes_gpu = (int64_t)512 << 20;

/* Saturates instead of overflowing: such sizes never fit a limit. */
static int64_t product(int64_t a, int64_t b)
{
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) ? INT64_MAX / 4 : cli_min(c, INT64_MAX / 4);
}

static int is_double(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
           dtype == GNOMON_I64 || dtype == GNOMON_U64;
}

void cli_job_types(cli_job *job, gnomon_dtype wanted)
{
    static const gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(job->op, &d);
    job->options = options;
    job->k = d.k;
    job->stored = wanted != 0 ? wanted : is_double(job->info.dtype) ? GNOMON_F64 : GNOMON_F32;
    job->computed = job->stored == GNOMON_F64 ? GNOMON_F64 : GNOMON_F32;
    job->element = job->info.dtype;
}

static int too_little(cli_job *job, int64_t needed)
{
    const double overhead = (double)CLI_OVERHEAD_BYTES;
    double beyond = (double)needed; /* the overhead; where the library's share leaves so much */
    if (beyond > 2 * overhead) beyond = (beyond - overhead / 2) * 4 / 3;
    return cli_fail(job->app, CLI_EXIT_MEMORY,
                    "one point of %lld coordinates needs %s; --memory is %.0fM",
                    (long long)job->info.cols, cli_memory_words(beyond + overhead).text,
                    (double)job->app->memory / (1 << 20));
}

/* Whether there is a GPU that may take the job. */
static int may_use_gpu(const cli_job *job)
{
    if (strcmp(job->app->device, "cpu") == 0) return 0;
    gnomon_context_device_reason(job->app->ctx); /* looks for it */
    return gnomon_context_device_name(job->app->ctx)[0] != '\0';
}

static int is_fast(const cli_job *job)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(job->op, &d);
    return (cli_kind_flags(d.kind) & GNOMON_KIND_FAST) != 0;
}

/* How many points of so many bytes each are enough for a chunk. */
static int64_t enough(const cli_job *job, int64_t bytes)
{
    if (may_use_gpu(job)) return cli_max(enough_points, enough_bytes_gpu / bytes);
    return is_fast(job) ? cli_max(enough_points_fast, enough_bytes_fast / bytes)
                        : cli_max(enough_points, enough_bytes / bytes);
}

/* The same of whole dense points. Where a sample of each chunk is examined (coherence.c), what it
 * says must not depend on threads. */
static int64_t enough_rows(const cli_job *job, int64_t bytes)
{
    const int scans = job->scan.density > 0 || job->scan.carriers > 0;
    if (scans || may_use_gpu(job)) return enough(job, bytes);
    const int64_t threads = gnomon_context_threads(job->app->ctx);
    const int64_t cached = cli_max(cached_bytes, threads * cached_bytes_thread);
    return cli_max(is_fast(job) ? enough_points_fast : enough_points, cached / bytes);
}

static int plan_sparse(cli_job *job, int64_t budget)
{
    int64_t row = product(job->k, (int64_t)gnomon_dtype_size(job->computed)) + 8;
    if (row > budget / 2) return too_little(job, 2 * row);
    job->chunk_points = cli_min(budget / 2 / row, enough(job, row));
    /* An index, a value, and room for the reader's own growth. */
    job->chunk_nonzeros = cli_min(budget / 2 / 32, enough_bytes / 16);
    job->chunk_cols = job->info.cols;
    return -1;
}

static int plan_columns(cli_job *job, int64_t budget)
{
    int64_t element = (int64_t)gnomon_dtype_size(job->element);
    int64_t sum = is_double(job->element) || job->computed == GNOMON_F64 ? 8 : 4;
    int64_t granule = cli_min(gnomon_operator_granule(job->op), job->info.cols);
    int64_t output = (int64_t)gnomon_dtype_size(job->computed);
    /* Accumulators, the result, the granule that a stream may hold, and a granule read. */
    int64_t point = product(job->k, sum + output) + product(granule, sum + element);
    int64_t points = cli_max(job->info.rows, 1);
    if (point > budget) return too_little(job, point);
    job->by_columns = 1;
    job->chunk_points = cli_min(points, budget / point);
    int64_t column = product(job->chunk_points, element);
    int64_t columns = granule + (budget - product(job->chunk_points, point)) / column;
    columns = cli_min(columns, cli_max(granule, enough_bytes / column));
    job->chunk_cols = cli_min(columns - columns % granule, job->info.cols);
    return -1;
}

/* What --memory allows beyond the least is shared: a quarter of it is the library's, for operators
 * that need more than the overhead has room for. */
void cli_job_share(cli_app *app)
{
    app->working = cli_max(CLI_OVERHEAD_BYTES / 2, (app->memory - CLI_OVERHEAD_BYTES) / 4);
}

int cli_job_plan(cli_job *job)
{
    const int64_t whole = job->app->memory - CLI_OVERHEAD_BYTES;
    const int64_t budget = whole - (job->app->working - CLI_OVERHEAD_BYTES / 2);
    int64_t cols = job->info.cols;
    int64_t row = product(cols, (int64_t)gnomon_dtype_size(job->element)) +
                  product(job->k, (int64_t)gnomon_dtype_size(job->computed));
    int can_cut = (job->info.access & GNOMON_ACCESS_COLUMNS) != 0 && job->info.rows > 0;
    if ((job->info.access & GNOMON_ACCESS_SPARSE) != 0) return plan_sparse(job, budget);
    if (can_cut && (job->info.coordinates_contiguous || row > budget))
        return plan_columns(job, budget);
    if (row > budget) return too_little(job, row);
    int64_t points = cli_min(budget / row, enough_rows(job, row));
    if (job->info.rows >= 0) points = cli_min(points, cli_max(job->info.rows, 1));
    job->chunk_points = points;
    job->chunk_cols = cols;
    return -1;
}

/* Adds the time since *mark to *sum and moves the mark. */
static void account(double *sum, double *mark)
{
    double now = cli_seconds();
    *sum += now - *mark;
    *mark = now;
}

/* Tells of a NaN or infinity by its place in the file. */
static int fail_nonfinite(cli_job *job, int64_t row, int64_t col)
{
    return cli_fail(job->app, CLI_EXIT_DATA,
                    "%s: NaN or infinity in row %lld, column %lld (both counted from 0); "
                    "--allow-nonfinite passes it through",
                    job->path, (long long)row, (long long)col);
}

/* Tells of a point whose sketch is beyond what the type holds: row 'row' of the points at work. */
static int fail_overflow(cli_job *job, int64_t row, gnomon_dtype type)
{
    const char *const name = type == GNOMON_F16 ? "f2" : type == GNOMON_F32 ? "f4" : "f8";
    return cli_fail(job->app, CLI_EXIT_DATA,
                    "%s: row %lld (counted from 0): its sketch is beyond what %s holds; %s, or "
                    "--allow-nonfinite",
                    job->path, (long long)(job->points + row), name,
                    type == GNOMON_F16   ? "use --output-dtype f4 or f8"
                    : type == GNOMON_F32 ? "scale the points down, use --output-dtype f8"
                                         : "scale the points down");
}

/* The first of y's rows with a number above 'most' or none at all, -1 when there is none. */
static int64_t first_above(const gnomon_matrix *y, double most)
{
    for (int64_t i = 0; i < y->rows; ++i)
        for (int64_t j = 0; j < y->cols; ++j) {
            int64_t at = i * y->row_stride + j * y->col_stride;
            double v = y->dtype == GNOMON_F64 ? ((const double *)y->data)[at]
                                              : (double)((const float *)y->data)[at];
            if (!(fabs(v) <= most)) return i;
        }
    return -1;
}

/* A failed sketch y of finite points, if that is what it was; y is complete then. */
static int fail_sums(cli_job *job, gnomon_status status, const gnomon_matrix *y)
{
    const int64_t row = first_above(y, y->dtype == GNOMON_F64 ? DBL_MAX : FLT_MAX);
    if (row < 0) return cli_fail_status(job->app, status);
    return fail_overflow(job, row, y->dtype);
}

/* A failed sketch y of x, the part of the file that begins at (row, col). */
static int fail_dense(cli_job *job, gnomon_status status, const gnomon_matrix *x,
                      const gnomon_matrix *y, int64_t row, int64_t col)
{
    int64_t i = 0, j = 0;
    if (status != GNOMON_ERROR_NONFINITE) return cli_fail_status(job->app, status);
    if (gnomon_matrix_check_finite(job->app->ctx, x, &i, &j) == GNOMON_ERROR_NONFINITE)
        return fail_nonfinite(job, row + i, col + j);
    return y != NULL ? fail_sums(job, status, y) : cli_fail_status(job->app, status);
}

static int fail_sparse(cli_job *job, gnomon_status status, const gnomon_csr *x,
                       const gnomon_matrix *y)
{
    if (status != GNOMON_ERROR_NONFINITE) return cli_fail_status(job->app, status);
    for (int64_t i = 0; i < x->rows; ++i) {
        int64_t end = x->offsets[i + 1] - x->offsets[0];
        for (int64_t t = x->offsets[i] - x->offsets[0]; t < end; ++t) {
            double value = x->dtype == GNOMON_F64 ? ((const double *)x->values)[t]
                                                  : (double)((const float *)x->values)[t];
            if (!isfinite(value)) return fail_nonfinite(job, job->points + i, x->indices[t]);
        }
    }
    return fail_sums(job, status, y);
}

/* Writes the sketch of the next points. */
static int write_points(cli_job *job, gnomon_matrix y, int64_t points, double *mark)
{
    y.rows = points;
    if (job->stored == GNOMON_F16 && !job->options.allow_nonfinite) {
        const int64_t row = first_above(&y, nextafter(cli_beyond(GNOMON_F16), 0));
        if (row >= 0) return fail_overflow(job, row, GNOMON_F16);
    }
    gnomon_status status = gnomon_writer_rows(job->writer, &y);
    account(&job->write_seconds, mark);
    if (status != GNOMON_OK) return cli_fail_status(job->app, status);
    job->points += points;
    cli_bar_at(job->app, job->points, 0);
    if (cli_interrupted()) return cli_fail_status(job->app, GNOMON_ERROR_CANCELLED);
    return -1;
}

static int run_rows(cli_job *job, gnomon_matrix x, gnomon_matrix y)
{
    gnomon_context *ctx = job->app->ctx;
    double mark = cli_seconds();
    for (;;) {
        int64_t got = 0;
        x.rows = job->chunk_points;
        gnomon_status status = gnomon_reader_next(job->reader, &x, &got);
        account(&job->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(job->app, status);
        if (got == 0) return -1;
        x.rows = y.rows = got;
        cli_bar_at(job->app, job->points, got);
        int code = cli_scan_dense(job, &x, job->points);
        if (code >= 0) return code;
        status = gnomon_sketch(ctx, job->op, &x, &y, &job->options);
        account(&job->sketch_seconds, &mark);
        if (status != GNOMON_OK) return fail_dense(job, status, &x, &y, job->points, 0);
        code = write_points(job, y, got, &mark);
        if (code >= 0) return code;
    }
}

static int run_sparse(cli_job *job, gnomon_matrix y)
{
    gnomon_context *ctx = job->app->ctx;
    double mark = cli_seconds();
    for (;;) {
        gnomon_csr x;
        gnomon_status status =
            gnomon_reader_next_csr(job->reader, job->chunk_points, job->chunk_nonzeros, &x);
        account(&job->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(job->app, status);
        if (x.rows == 0) return -1;
        y.rows = x.rows;
        cli_bar_at(job->app, job->points, x.rows);
        int code = cli_scan_csr(job, &x, job->points);
        if (code >= 0) return code;
        status = gnomon_sketch_csr(ctx, job->op, &x, &y, &job->options);
        account(&job->sketch_seconds, &mark);
        if (status != GNOMON_OK) return fail_sparse(job, status, &x, &y);
        code = write_points(job, y, x.rows, &mark);
        if (code >= 0) return code;
    }
}

/* ---- pieces of several ranks ---- */

/* The rows of a piece, as many as the file has. */
static int64_t piece_rows(const cli_job *job, int64_t piece)
{
    const int64_t first = product(piece, job->chunk_points);
    return cli_max(cli_min(job->chunk_points, job->info.rows - first), 0);
}

/* Sketches the rows of a file from job->points on into y. */
static int sketch_rows(cli_job *job, int64_t rows, gnomon_matrix y)
{
    gnomon_context *ctx = job->app->ctx;
    const int sparse = (job->info.access & GNOMON_ACCESS_SPARSE) != 0;
    gnomon_status status = gnomon_reader_seek(job->reader, job->points);
    for (int64_t done = 0, got = 0; done < rows && status == GNOMON_OK; done += got) {
        gnomon_csr csr = {0};
        gnomon_matrix x =
            gnomon_matrix_rowmajor(job->chunk, job->element, rows - done, job->info.cols);
        gnomon_matrix part = gnomon_matrix_rowmajor(
            (char *)y.data + done * y.row_stride * (int64_t)gnomon_dtype_size(y.dtype), y.dtype, 0,
            y.cols);
        status = sparse
                     ? gnomon_reader_next_csr(job->reader, rows - done, job->chunk_nonzeros, &csr)
                     : gnomon_reader_next(job->reader, &x, &got);
        account(&job->read_seconds, &job->mark);
        if (status != GNOMON_OK) break;
        if (sparse) got = csr.rows;
        if (got == 0)
            return cli_fail(job->app, CLI_EXIT_DATA, "%s: has fewer rows than its header says",
                            job->path);
        x.rows = part.rows = got;
        int code =
            sparse ? cli_scan_csr(job, &csr, job->points) : cli_scan_dense(job, &x, job->points);
        if (code >= 0) return code;
        status = sparse ? gnomon_sketch_csr(ctx, job->op, &csr, &part, &job->options)
                        : gnomon_sketch(ctx, job->op, &x, &part, &job->options);
        account(&job->sketch_seconds, &job->mark);
        if (status != GNOMON_OK)
            return sparse ? fail_sparse(job, status, &csr, &part)
                          : fail_dense(job, status, &x, &part, job->points, 0);
        job->points += got;
        if (cli_interrupted()) return cli_fail_status(job->app, GNOMON_ERROR_CANCELLED);
    }
    return status == GNOMON_OK ? -1 : cli_fail_status(job->app, status);
}

/* All columns of 'points' points from job->points on, through one stream. */
static int run_pieces(cli_job *job, gnomon_stream *stream, void *buffer, int64_t points,
                      double *mark)
{
    for (int64_t col = 0; col < job->info.cols;) {
        int64_t width = cli_min(job->chunk_cols, job->info.cols - col);
        gnomon_matrix x = job->info.coordinates_contiguous
                              ? gnomon_matrix_colmajor(buffer, job->element, points, width)
                              : gnomon_matrix_rowmajor(buffer, job->element, points, width);
        gnomon_status status = gnomon_reader_block(job->reader, job->points, col, &x);
        account(&job->read_seconds, mark);
        if (status != GNOMON_OK) return cli_fail_status(job->app, status);
        status = gnomon_stream_push(stream, &x);
        account(&job->sketch_seconds, mark);
        if (status != GNOMON_OK) return fail_dense(job, status, &x, NULL, job->points, col);
        col += width;
        double part = (double)col / (double)job->info.cols;
        /* The bar counts points: of those at work a share is done. */
        cli_bar_at(job->app, job->points + (int64_t)(part * (double)points), 0);
        if (cli_interrupted()) return cli_fail_status(job->app, GNOMON_ERROR_CANCELLED);
    }
    return -1;
}

/* Points that come column by column are checked beforehand, as many whole ones as the buffer
 * holds.
 */
static int scan_first(cli_job *job, void *buffer)
{
    int64_t points = job->chunk_points * job->chunk_cols / job->info.cols;
    points = cli_min(cli_min(points, job->chunk_points), 512);
    if (points < 2 || (job->scan.density <= 0 && job->scan.carriers <= 0)) return -1;
    gnomon_matrix x = gnomon_matrix_rowmajor(buffer, job->element, points, job->info.cols);
    const gnomon_status status = gnomon_reader_block(job->reader, 0, 0, &x);
    return status == GNOMON_OK ? cli_scan_dense(job, &x, 0) : cli_fail_status(job->app, status);
}

/* The sketch of the points from job->points on, through one stream. */
static int sketch_columns(cli_job *job, void *buffer, gnomon_matrix y, double *mark)
{
    const gnomon_dtype sums =
        is_double(job->element) || job->computed == GNOMON_F64 ? GNOMON_F64 : GNOMON_F32;
    gnomon_stream *stream = NULL;
    gnomon_status status =
        gnomon_stream_create(job->app->ctx, job->op, y.rows, sums, &job->options, &stream);
    int code = status == GNOMON_OK ? run_pieces(job, stream, buffer, y.rows, mark)
                                   : cli_fail_status(job->app, status);
    if (code < 0) {
        status = gnomon_stream_finish(stream, &y);
        account(&job->sketch_seconds, mark);
        code = status == GNOMON_OK                ? -1
               : status == GNOMON_ERROR_NONFINITE ? fail_sums(job, status, &y)
                                                  : cli_fail_status(job->app, status);
    }
    gnomon_stream_destroy(stream);
    return code;
}

static int run_columns(cli_job *job, void *buffer, gnomon_matrix y)
{
    int code = scan_first(job, buffer);
    if (code >= 0) return code;
    double mark = cli_seconds();
    while (job->points < job->info.rows) {
        y.rows = cli_min(job->chunk_points, job->info.rows - job->points);
        code = sketch_columns(job, buffer, y, &mark);
        if (code < 0) code = write_points(job, y, y.rows, &mark);
        if (code >= 0) return code;
    }
    return -1;
}

/* ---- several ranks ---- */

/* The library tells the other ranks; what went wrong has been told by this one. */
static gnomon_status told(cli_job *job, int code)
{
    if (code < 0) return GNOMON_OK;
    job->code = code;
    return GNOMON_ERROR_CANCELLED;
}

static gnomon_status make_piece(void *user, int64_t piece, const void **data, int64_t *bytes)
{
    cli_job *job = user;
    const int64_t rows = piece_rows(job, piece);
    int code = -1;
    if (rows == 0) return GNOMON_OK; /* bytes is -1: there is none */
    job->points = piece * job->chunk_points;
    job->mark = cli_seconds();
    const gnomon_matrix y = gnomon_matrix_rowmajor(job->sketch, job->computed, rows, job->k);
    if (!job->by_columns) code = sketch_rows(job, rows, y);
    if (job->by_columns && piece == 0) code = scan_first(job, job->chunk);
    if (job->by_columns && code < 0) code = sketch_columns(job, job->chunk, y, &job->mark);
    job->points = piece * job->chunk_points;
    *data = job->sketch;
    *bytes = product(rows, job->k) * (int64_t)gnomon_dtype_size(job->computed);
    return told(job, code);
}

static gnomon_status take_piece(void *user, int64_t piece, const void *data, int64_t bytes)
{
    cli_job *job = user;
    const int64_t rows = piece_rows(job, piece);
    const gnomon_matrix y = gnomon_matrix_rowmajor((void *)data, job->computed, rows, job->k);
    if (bytes != product(rows, job->k) * (int64_t)gnomon_dtype_size(job->computed))
        return told(job, cli_fail(job->app, CLI_EXIT_DATA, "the ranks read different files"));
    job->points = piece * job->chunk_points;
    job->mark = cli_seconds();
    return told(job, write_points(job, y, rows, &job->mark));
}

/* The points of a piece, on all ranks the same: each has threads and memory of its own, and planned
 * for so many. */
static int agree_on_pieces(cli_job *job)
{
    enum { PIECES = 4 }; /* for each rank, where there are rows enough: so all end at about once */
    gnomon_context *ctx = job->app->ctx;
    const int64_t pieces = (int64_t)PIECES * job->app->comm.size, most = job->chunk_points;
    int64_t points = cli_min(most, cli_max((job->info.rows + pieces - 1) / pieces, 1));
    gnomon_status status = gnomon_comm_broadcast(ctx, &job->app->comm, &points, sizeof points);
    for (; status == GNOMON_OK; points /= 2) {
        int lacks_room = points > most;
        status = gnomon_comm_agree(ctx, &job->app->comm, &lacks_room, NULL);
        if (lacks_room == 0) break;
    }
    job->chunk_points = points;
    return status == GNOMON_OK ? -1 : cli_fail_status(job->app, status);
}

/* Pieces of rows, dealt out; rank 0 writes them in order. */
static int run_ranks(cli_job *job)
{
    const int code = agree_on_pieces(job);
    if (code >= 0) return code;
    job->code = -1;
    const gnomon_status status =
        gnomon_comm_deal(job->app->ctx, &job->app->comm, make_piece, take_piece, job);
    if (status != GNOMON_OK && status != GNOMON_ERROR_CANCELLED)
        return cli_fail_status(job->app, status);
    return cli_comm_agree(job->app, job->code);
}

int cli_job_run(cli_job *job)
{
    int sparse = (job->info.access & GNOMON_ACCESS_SPARSE) != 0;
    /* The plan made sure that these products are within the memory limit. */
    size_t x_bytes = 0;
    if (!sparse)
        x_bytes = (size_t)(job->chunk_points * job->chunk_cols) * gnomon_dtype_size(job->element);
    size_t y_bytes = (size_t)(job->chunk_points * job->k) * gnomon_dtype_size(job->computed);
    void *x = sparse ? NULL : malloc(x_bytes);
    void *y = malloc(y_bytes);
    int code;
    if ((x == NULL && !sparse) || y == NULL) {
        code = cli_fail(job->app, CLI_EXIT_MEMORY, "out of memory for a chunk of %zu bytes",
                        x_bytes + y_bytes);
    } else {
        gnomon_matrix chunk =
            gnomon_matrix_rowmajor(x, job->element, job->chunk_points, job->chunk_cols);
        gnomon_matrix sketch = gnomon_matrix_rowmajor(y, job->computed, job->chunk_points, job->k);
        job->chunk = x;
        job->sketch = y;
        code = job->app->comm.size > 1 ? run_ranks(job)
               : sparse                ? run_sparse(job, sketch)
               : job->by_columns       ? run_columns(job, x, sketch)
                                       : run_rows(job, chunk, sketch);
    }
    free(x);
    free(y);
    return code;
}
