#include "svd/row_source.h"

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
    INDICES = 1 << 18 /* that a task checks */
};

/* A power of two, so that blocks of rows never straddle pieces. */
static int64_t piece_rows(int64_t cols)
{
    int64_t rows = MAX_ROWS;
    while (rows > MIN_ROWS && rows > PIECE_NUMBERS / cols)
        rows /= 2;
    return rows;
}

/* The first index of a task's that is no column, or -1. */
typedef struct indices {
    const gnomon_csr *a;
    int64_t count, *bad; /* one a task */
} indices;

static void find_bad(void *arg, int64_t task, int worker)
{
    (void)worker;
    const indices *x = arg;
    const int64_t from = task * INDICES;
    const int64_t end = x->count - from < INDICES ? x->count : from + INDICES;
    x->bad[task] = -1;
    for (int64_t i = from; i < end && x->bad[task] < 0; i++)
        if (x->a->indices[i] < 0 || x->a->indices[i] >= x->a->cols) x->bad[task] = i;
}

static gnomon_status check_indices(gnomon_context *ctx, const gnomon_csr *a, int64_t count,
                                   const char *name)
{
    const int64_t tasks = (count + INDICES - 1) / INDICES;
    indices x = {.a = a, .count = count};
    int64_t first = -1;
    GNOMON_TRY(gnomon_alloc(ctx, tasks, sizeof *x.bad, "the check of indices", &x.bad));
    gnomon_parallel(ctx, tasks, find_bad, &x);
    for (int64_t task = 0; task < tasks && first < 0; task++)
        first = x.bad[task];
    gnomon_free(ctx, x.bad);
    GNOMON_FAIL_IF(first >= 0, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s.indices") "[%" PRId64 "] is %" PRId64 "; %s has %" PRId64
                                            " columns",
                   name, first, a->indices[first], name, a->cols);
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_check_csr(gnomon_context *ctx, const gnomon_csr *a,
                                          const char *name)
{
    GNOMON_TRY(gnomon_check_csr(ctx, a, name));
    const int64_t count = a->rows > 0 ? a->offsets[a->rows] - a->offsets[0] : 0;
    return check_indices(ctx, a, count, name);
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

gnomon_status gnomon_row_source_open(gnomon_context *ctx, const gnomon_matrix *matrix,
                                     const gnomon_csr *csr, const gnomon_svd_rows *stream, bool f64,
                                     gnomon_row_source *source)
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
    GNOMON_FAIL_IF(source->rows == 0 || source->cols == 0, ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("a") " is %" PRId64 " x %" PRId64 "; it must have rows and columns",
                   source->rows, source->cols);
    source->piece_rows = csr != NULL ? MAX_ROWS : piece_rows(source->cols);
    source->direct = matrix != NULL && blas_fits(matrix, f64);
    return GNOMON_OK;
}

void gnomon_row_source_close(gnomon_row_source *source)
{
    gnomon_free(source->ctx, source->buffer);
    source->buffer = NULL;
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
    conversion c = {.source = s, .row = piece->row};
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
    GNOMON_TRY(gnomon_row_source_read(s, s->row, s->piece_rows, s->f64 ? GNOMON_F64 : GNOMON_F32,
                                      s->buffer, &piece->rows));
    if (s->exponent != 0) gnomon_row_source_rescale(s, piece->rows);
    return GNOMON_OK;
}

/* The type of a CSR's values in the work: what the means are to be taken from keeps its digits. */
static gnomon_dtype value_type(const gnomon_row_source *s)
{
    const bool f64 =
        s->f64 || s->standardized || (s->centered && gnomon_dtype_needs_f64(s->csr->dtype));
    return f64 ? GNOMON_F64 : GNOMON_F32;
}

static gnomon_status convert_values(gnomon_row_source *s, gnomon_dtype dtype, int64_t count)
{
    const double factor = ldexp(1.0, -s->exponent);
    GNOMON_TRY(gnomon_alloc(s->ctx, count, gnomon_dtype_size(dtype), "sparse values", &s->buffer));
    for (int64_t i = 0; i < count; i++) {
        const double stored = gnomon_value_as_f64(s->csr->values, s->csr->dtype, i);
        const double value =
            s->standardized ? gnomon_center_unit(s, s->csr->indices[i], stored) : stored * factor;
        if (dtype == GNOMON_F64)
            ((double *)s->buffer)[i] = value;
        else
            ((float *)s->buffer)[i] = (float)value;
    }
    return GNOMON_OK;
}

/* The rows from piece->row on; values of another type or scale are made once for all. */
static gnomon_status next_of_csr(gnomon_row_source *s, gnomon_piece *piece)
{
    const gnomon_dtype dtype = value_type(s);
    gnomon_csr all = *s->csr;
    if (all.dtype != dtype || s->exponent != 0 || s->standardized) {
        const int64_t count = all.offsets[all.rows] - all.offsets[0];
        if (s->buffer == NULL) GNOMON_TRY(convert_values(s, dtype, count));
        all.values = s->buffer;
        all.dtype = dtype;
    }
    piece->sparse = true;
    piece->csr = gnomon_csr_rows(&all, piece->row, piece->rows);
    return GNOMON_OK;
}

gnomon_status gnomon_row_source_next(gnomon_row_source *s, gnomon_piece *piece)
{
    memset(piece, 0, sizeof *piece);
    /* Within a pass too the work can be ended. */
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->passes, -1));
    piece->row = s->row;
    if (s->stream == NULL) {
        const int64_t rest = s->rows - s->row;
        piece->rows = rest < s->piece_rows ? rest : s->piece_rows;
    }
    const bool buffered = s->csr == NULL && (s->centered || !s->direct || s->exponent != 0);
    if (buffered && s->buffer == NULL)
        GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(s->piece_rows, s->cols),
                                gnomon_tall_size(s->f64), "a piece of rows", &s->buffer));
    if (s->csr == NULL && s->centered)
        GNOMON_TRY(gnomon_center_next(s, piece));
    else if (s->stream != NULL)
        GNOMON_TRY(next_of_stream(s, piece));
    else if (piece->rows > 0 && s->csr != NULL)
        GNOMON_TRY(next_of_csr(s, piece));
    else if (piece->rows > 0 && buffered)
        GNOMON_TRY(next_converted(s, piece));
    if (piece->rows == 0) {
        s->passes++;
        return gnomon_progress(s->ctx, "passes", s->passes, -1);
    }
    if (buffered) {
        piece->dense = gnomon_matrix_rowmajor(s->buffer, s->f64 ? GNOMON_F64 : GNOMON_F32,
                                              piece->rows, s->cols);
    } else if (!piece->sparse) {
        piece->dense = gnomon_rows(s->matrix, piece->row, piece->rows);
    }
    s->row += piece->rows;
    return GNOMON_OK;
}
