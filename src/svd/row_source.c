#include "svd/row_source.h"

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "points/rows.h"
#include "points/view.h"
#include "svd/center.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    MIN_ROWS = 64,
    MAX_ROWS = 65536,
    PIECE_NUMBERS = 1 << 24,
    LINE = 4096,
    VALUES = 1 << 14 /* that a task converts */
};

/* A power of two, so that blocks of rows never straddle pieces. */
int64_t gnomon_row_source_piece_rows(int64_t cols)
{
    int64_t rows = MAX_ROWS;
    while (rows > MIN_ROWS && rows > PIECE_NUMBERS / cols)
        rows /= 2;
    return rows;
}

/* Whether BLAS can read the view as it lies. */
static bool blas_fits(const gnomon_matrix *m, bool f64)
{
    if (m->dtype != (f64 ? GNOMON_F64 : GNOMON_F32)) return false;
    const bool by_rows =
        m->col_stride == 1 && m->row_stride >= m->cols && m->row_stride <= GNOMON_BLAS_MAX;
    const bool by_cols =
        m->row_stride == 1 && m->col_stride >= m->rows && m->col_stride <= GNOMON_BLAS_MAX;
    return by_rows || by_cols;
}

static gnomon_status open_any(gnomon_context *ctx, const gnomon_matrix *matrix,
                              const gnomon_csr *csr, const gnomon_svd_rows *stream, bool f64,
                              bool may_be_empty, gnomon_row_source *source)
{
    memset(source, 0, sizeof *source);
    source->ctx = ctx;
    source->f64 = f64;
    source->matrix = matrix;
    source->csr = csr;
    source->stream = stream;
    if (matrix != NULL) {
        source->rows = matrix->rows;
        source->cols = matrix->cols;
    } else if (csr != NULL) {
        GNOMON_TRY(gnomon_row_source_check_csr(ctx, csr, "a"));
        source->rows = csr->rows;
        source->cols = csr->cols;
    } else {
        source->rows = stream->rows;
        source->cols = stream->cols;
    }
    GNOMON_FAIL_IF((source->rows == 0 && !may_be_empty) || source->cols == 0, ctx,
                   GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is %" PRId64 " x %" PRId64 "; it must have rows and columns",
                   source->rows, source->cols);
    GNOMON_FAIL_IF(source->rows < 0 && may_be_empty, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rows.rows") " is -1; a rank must know how many rows it has");
    source->sparse = csr != NULL;
    source->stored = csr != NULL ? csr->dtype : (gnomon_dtype)0;
    source->piece_rows = csr != NULL ? MAX_ROWS : gnomon_row_source_piece_rows(source->cols);
    source->direct = matrix != NULL && blas_fits(matrix, f64);
    gnomon_parts_have(source, 0, 1);
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_open(gnomon_context *ctx, const gnomon_matrix *matrix,
                                     const gnomon_csr *csr, const gnomon_svd_rows *stream, bool f64,
                                     gnomon_row_source *source)
{
    return open_any(ctx, matrix, csr, stream, f64, false, source);
}

gnomon_status gnomon_row_source_open_part(gnomon_context *ctx, const gnomon_matrix *matrix,
                                          const gnomon_csr *csr, const gnomon_svd_rows *stream,
                                          bool f64, gnomon_row_source *source)
{
    return open_any(ctx, matrix, csr, stream, f64, true, source);
}

gnomon_status gnomon_row_source_open_sparse(gnomon_context *ctx, const gnomon_svd_sparse_rows *rows,
                                            bool f64, gnomon_row_source *source)
{
    memset(source, 0, sizeof *source);
    source->ctx = ctx;
    source->f64 = f64;
    source->sparse_stream = rows;
    source->rows = rows->rows;
    source->cols = rows->cols;
    source->sparse = true;
    source->stored = rows->dtype;
    source->piece_rows = MAX_ROWS;
    gnomon_parts_have(source, 0, 1);
    GNOMON_FAIL_IF(source->rows == 0 || source->cols == 0, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is %" PRId64 " x %" PRId64 "; it must have rows and columns",
                   source->rows, source->cols);
    return GNOMON_OK;
}

void gnomon_row_source_close(gnomon_row_source *source)
{
    gnomon_free(source->ctx, source->buffer);
    source->buffer = NULL;
    source->buffer_numbers = 0;
    gnomon_center_close(source);
}

/* Any view to the buffer, converted and scaled. */
typedef struct conversion {
    const gnomon_row_source *source;
    int64_t row;
    double *line; /* LINE numbers a worker */
} conversion;

static void store_line(const gnomon_row_source *s, int64_t count, const double *line, int64_t at)
{
    const double factor = ldexp(1.0, -s->exponent);
    if (s->f64) {
        double *out = (double *)s->buffer + at;
        for (int64_t j = 0; j < count; j++)
            out[j] = line[j] * factor;
    } else {
        float *out = (float *)s->buffer + at;
        for (int64_t j = 0; j < count; j++)
            out[j] = (float)(line[j] * factor);
    }
}

static void convert_row(void *arg, int64_t task, int worker)
{
    const conversion *c = arg;
    const int64_t cols = c->source->cols;
    double *line = c->line + (int64_t)worker * LINE;
    for (int64_t col = 0; col < cols; col += LINE) {
        const int64_t count = cols - col < LINE ? cols - col : LINE;
        gnomon_row_as_f64(c->source->matrix, c->row + task, col, count, line);
        store_line(c->source, count, line, task * cols + col);
    }
}

static gnomon_status next_converted(gnomon_row_source *s, gnomon_piece *piece)
{
    conversion c = {.source = s, .row = piece->own};
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times((int64_t)gnomon_context_threads(s->ctx), LINE),
                            sizeof *c.line, "parts of rows", &c.line));
    gnomon_parallel(s->ctx, piece->rows, convert_row, &c);
    gnomon_free(s->ctx, c.line);
    return GNOMON_OK;
}

/* Scales a piece that a stream has filled. */
static void scale_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gnomon_row_source *s = arg;
    const double factor = ldexp(1.0, -s->exponent);
    for (int64_t j = task * s->cols; j < (task + 1) * s->cols; j++) {
        if (s->f64)
            ((double *)s->buffer)[j] *= factor;
        else
            ((float *)s->buffer)[j] = (float)((double)((float *)s->buffer)[j] * factor);
    }
}

void gnomon_row_source_rescale(gnomon_row_source *s, int64_t rows)
{
    gnomon_parallel(s->ctx, rows, scale_row, s);
}

static gnomon_status next_of_stream(gnomon_row_source *s, gnomon_piece *piece)
{
    /* a rank's rows go on elsewhere where a segment ends */
    const int64_t most =
        s->ranks != NULL ? gnomon_min(s->piece_rows, s->rows - s->row) : s->piece_rows;
    GNOMON_TRY(gnomon_row_source_read(s, s->row, most, s->f64 ? GNOMON_F64 : GNOMON_F32, s->buffer,
                                      &piece->rows));
    if (s->exponent != 0) gnomon_row_source_rescale(s, piece->rows);
    return GNOMON_OK;
}

/* The type of sparse rows' values in the work: what the means are to be taken from keeps its
 * digits. */
static gnomon_dtype value_type(const gnomon_row_source *s)
{
    const bool f64 =
        s->f64 || s->standardized || (s->centered && gnomon_dtype_needs_f64(s->stored));
    return f64 ? GNOMON_F64 : GNOMON_F32;
}

/* Values of sparse rows in another type, or scaled. */
typedef struct values_task {
    gnomon_row_source *s;
    const gnomon_csr *a;
    gnomon_dtype dtype;
    int64_t count;
} values_task;

static void convert_values(void *arg, int64_t task, int worker)
{
    (void)worker;
    const values_task *t = arg;
    const gnomon_row_source *s = t->s;
    const double factor = ldexp(1.0, -s->exponent);
    const int64_t end = gnomon_min((task + 1) * VALUES, t->count);
    for (int64_t i = task * VALUES; i < end; i++) {
        const double stored = gnomon_value_as_f64(t->a->values, t->a->dtype, i);
        const double value =
            s->standardized ? gnomon_center_unit(s, t->a->indices[i], stored) : stored * factor;
        if (t->dtype == GNOMON_F64)
            ((double *)s->buffer)[i] = value;
        else
            ((float *)s->buffer)[i] = (float)value;
    }
}

/* The next sparse rows, with values of another type or scale in the buffer. */
static gnomon_status next_sparse(gnomon_row_source *s, gnomon_piece *piece)
{
    const gnomon_dtype dtype = value_type(s);
    gnomon_csr *a = &piece->csr;
    GNOMON_TRY(gnomon_row_source_next_stored(s, piece));
    if (piece->rows == 0 || (a->dtype == dtype && s->exponent == 0 && !s->standardized))
        return GNOMON_OK;
    values_task t = {.s = s, .a = a, .dtype = dtype};
    t.count = a->offsets[a->rows] - a->offsets[0];
    GNOMON_TRY(gnomon_renew(s->ctx, &s->buffer, &s->buffer_numbers, t.count, sizeof(double),
                            "sparse values"));
    gnomon_parallel(s->ctx, gnomon_ceil_div(t.count, VALUES), convert_values, &t);
    a->values = s->buffer;
    a->dtype = dtype;
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_next(gnomon_row_source *s, gnomon_piece *piece)
{
    if (s->sparse) {
        GNOMON_TRY(next_sparse(s, piece));
        if (piece->rows > 0) return GNOMON_OK;
        s->passes++;
        return gnomon_progress(s->ctx, "passes", s->passes, -1);
    }
    memset(piece, 0, sizeof *piece);
    /* Within a pass too the work can be ended. */
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->passes, -1));
    piece->row = s->row;
    piece->own = s->ranks != NULL ? s->own : s->row;
    if (s->stream == NULL) {
        const int64_t rest = s->rows - s->row;
        piece->rows = rest < s->piece_rows ? rest : s->piece_rows;
    }
    const bool buffered = s->centered || !s->direct || s->exponent != 0;
    if (buffered && s->buffer == NULL)
        GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(s->piece_rows, s->cols),
                                gnomon_tall_size(s->f64), "a piece of rows", &s->buffer));
    if (s->centered)
        GNOMON_TRY(gnomon_center_next(s, piece));
    else if (s->stream != NULL)
        GNOMON_TRY(next_of_stream(s, piece));
    else if (piece->rows > 0 && buffered)
        GNOMON_TRY(next_converted(s, piece));
    if (piece->rows == 0) {
        s->passes++;
        return gnomon_progress(s->ctx, "passes", s->passes, -1);
    }
    if (buffered) {
        piece->dense = gnomon_matrix_rowmajor(s->buffer, s->f64 ? GNOMON_F64 : GNOMON_F32,
                                              piece->rows, s->cols);
    } else {
        piece->dense = gnomon_rows(s->matrix, piece->own, piece->rows);
    }
    s->row += piece->rows;
    s->own += piece->rows;
    return GNOMON_OK;
}
