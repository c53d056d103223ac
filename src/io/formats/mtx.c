/* Matrix Market (Boisvert, Pozo & Remington 1996): sparse points as coordinates, dense ones
 * column by column. Both orders make the reader hold all of the matrix. */
#include "io/arrays/sparse.h"
#include "io/text/lines.h"
#include "io/text/number.h"
#include "io/text/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- reading ---- */

typedef enum symmetry { GENERAL, SYMMETRIC, SKEW } symmetry;
typedef enum field { REAL, INTEGER, PATTERN } field;

typedef struct mtx_reader {
    gnomon_lines lines;
    symmetry symmetry;
    field field;
    bool loaded;
    int64_t count;        /* entries or values in the file, as the header tells */
    gnomon_gather gather; /* coordinate */
    double *values;       /* array: in the file's order */
    int64_t beyond_line;  /* the first line whose value F32 can't hold, 0: none */
    char beyond[GNOMON_QUOTED];
    int64_t row; /* array: the next point */
} mtx_reader;

static const gnomon_format mtx_array;

static bool is_word(const char *text, size_t length, const char *expected)
{
    return length == strlen(expected) && strncasecmp(text, expected, length) == 0;
}

/* The next line that is neither blank nor a comment; *line is NULL at the end. */
static gnomon_status next_line(gnomon_lines *lines, const char **line, size_t *length)
{
    for (;;) {
        GNOMON_TRY(gnomon_lines_next(lines, line, length));
        if (*line == NULL) return GNOMON_OK;
        size_t first = 0;
        while (first < *length && gnomon_is_blank((*line)[first]))
            first++;
        if (first < *length && (*line)[first] != '%') return GNOMON_OK;
    }
}

/* Text about a word of the line read last; a word of no length is a missing one. */
static gnomon_status bad_word(gnomon_reader *reader, gnomon_status status, const char *text,
                              size_t length, const char *expected)
{
    const mtx_reader *mtx = reader->state;
    char quoted[GNOMON_QUOTED];
    const char *name = gnomon_source_name(reader->source);
    if (length == 0)
        return gnomon_fail(reader->ctx, status, GNOMON_ARG("%s") ": line %lld ends where %s is due",
                           name, (long long)mtx->lines.number, expected);
    return gnomon_fail(reader->ctx, status, GNOMON_ARG("%s") ": line %lld: %s where %s is due",
                       name, (long long)mtx->lines.number, gnomon_quote(text, length, quoted),
                       expected);
}

static gnomon_status too_few(gnomon_reader *reader, int64_t found)
{
    const mtx_reader *mtx = reader->state;
    return gnomon_fail(
        reader->ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG("%s") ": the file ends after %lld of the %lld values that its header tells of",
        gnomon_source_name(reader->source), (long long)found, (long long)mtx->count);
}

static gnomon_status too_many(gnomon_reader *reader)
{
    const mtx_reader *mtx = reader->state;
    return gnomon_fail(
        reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": line %lld: more than the %lld values that the header tells of",
        gnomon_source_name(reader->source), (long long)mtx->lines.number, (long long)mtx->count);
}

static gnomon_status read_banner(gnomon_reader *reader, bool *array)
{
    mtx_reader *mtx = reader->state;
    const char *line;
    size_t length;
    GNOMON_TRY(gnomon_lines_next(&mtx->lines, &line, &length));
    GNOMON_FAIL_IF(line == NULL, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": the file is empty", gnomon_source_name(reader->source));
    const char *end = line + length, *text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    if (!is_word(text, length, "%%MatrixMarket"))
        return bad_word(reader, GNOMON_ERROR_DATA, text, length, "%%MatrixMarket");
    text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    if (!is_word(text, length, "matrix"))
        return bad_word(reader, GNOMON_ERROR_DATA, text, length, "the word matrix");
    text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    *array = is_word(text, length, "array");
    if (!*array && !is_word(text, length, "coordinate"))
        return bad_word(reader, GNOMON_ERROR_DATA, text, length, "coordinate or array");
    text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    if (is_word(text, length, "integer") || is_word(text, length, "unsigned-integer"))
        mtx->field = INTEGER;
    else if (is_word(text, length, "pattern") && !*array)
        mtx->field = PATTERN;
    else if (is_word(text, length, "complex"))
        return bad_word(reader, GNOMON_ERROR_UNSUPPORTED, text, length,
                        "real, integer or pattern (complex numbers are not read)");
    else if (!is_word(text, length, "real") && !is_word(text, length, "double"))
        return bad_word(reader, GNOMON_ERROR_DATA, text, length,
                        *array ? "real or integer" : "real, integer or pattern");
    text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    if (is_word(text, length, "symmetric"))
        mtx->symmetry = SYMMETRIC;
    else if (is_word(text, length, "skew-symmetric"))
        mtx->symmetry = SKEW;
    else if (!is_word(text, length, "general"))
        return bad_word(reader,
                        is_word(text, length, "hermitian") ? GNOMON_ERROR_UNSUPPORTED
                                                           : GNOMON_ERROR_DATA,
                        text, length, "general, symmetric or skew-symmetric");
    return GNOMON_OK;
}

static gnomon_status size_word(gnomon_reader *reader, const char **line, const char *end,
                               const char *expected, int64_t *size)
{
    size_t length;
    const char *text = gnomon_word(line, end, &length, GNOMON_NO_COMMENT);
    if (length == 0 || gnomon_integer_prefix(text, length, size) != length || *size < 0)
        return bad_word(reader, GNOMON_ERROR_DATA, text, length, expected);
    return GNOMON_OK;
}

static gnomon_status read_sizes(gnomon_reader *reader, bool array)
{
    mtx_reader *mtx = reader->state;
    gnomon_data_info *info = &reader->info;
    const char *line, *name = gnomon_source_name(reader->source);
    size_t length;
    GNOMON_TRY(next_line(&mtx->lines, &line, &length));
    GNOMON_FAIL_IF(line == NULL, reader->ctx, GNOMON_ERROR_TRUNCATED,
                   GNOMON_ARG("%s") ": the file ends before the line of sizes", name);
    const char *end = line + length;
    GNOMON_TRY(size_word(reader, &line, end, "the number of rows", &info->rows));
    GNOMON_TRY(size_word(reader, &line, end, "the number of columns", &info->cols));
    if (!array) GNOMON_TRY(size_word(reader, &line, end, "the number of entries", &mtx->count));
    const char *text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
    if (length > 0) return bad_word(reader, GNOMON_ERROR_DATA, text, length, "the line's end");
    GNOMON_FAIL_IF(mtx->symmetry != GENERAL && info->rows != info->cols, reader->ctx,
                   GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": line %lld: a symmetric matrix of %lld x %lld", name,
                   (long long)mtx->lines.number, (long long)info->rows, (long long)info->cols);
    int64_t least = mtx->field == PATTERN ? 4 : 6; /* bytes of an entry, "1 1 1\n" */
    if (array) {
        least = 2;
        bool fits = gnomon_mul(info->rows, info->cols, &mtx->count);
        GNOMON_FAIL_IF(
            !fits, reader->ctx, GNOMON_ERROR_OVERFLOW,
            GNOMON_ARG("%s") ": line %lld: %lld x %lld values are more than can be counted", name,
            (long long)mtx->lines.number, (long long)info->rows, (long long)info->cols);
        if (mtx->symmetry == SYMMETRIC) mtx->count = (mtx->count - info->rows) / 2 + info->rows;
        if (mtx->symmetry == SKEW) mtx->count = (mtx->count - info->rows) / 2;
    }
    int64_t limit = gnomon_source_limit(reader->source);
    GNOMON_FAIL_IF(
        mtx->count > limit / least + 1, reader->ctx, GNOMON_ERROR_TRUNCATED,
        GNOMON_ARG(
            "%s") ": line %lld tells of %lld values, more than the file's %lld bytes can hold",
        name, (long long)mtx->lines.number, (long long)mtx->count, (long long)limit);
    return GNOMON_OK;
}

static gnomon_status mtx_open(gnomon_reader *reader)
{
    mtx_reader *mtx;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *mtx, "the reader of mtx", &mtx));
    reader->state = mtx;
    gnomon_lines_start(&mtx->lines, reader->source);
    GNOMON_TRY(gnomon_text_dtype(reader));
    gnomon_gather_start(&mtx->gather, reader->ctx);
    bool array = false;
    GNOMON_TRY(read_banner(reader, &array));
    GNOMON_TRY(read_sizes(reader, array));
    if (array) {
        reader->format = &mtx_array;
        reader->info.access = GNOMON_ACCESS_SEEK | GNOMON_ACCESS_COLUMNS;
        reader->info.coordinates_contiguous = 1;
    } else {
        reader->info.access = GNOMON_ACCESS_SEEK | GNOMON_ACCESS_SPARSE | GNOMON_ACCESS_GATHERED;
        reader->info.nonzeros = mtx->symmetry == GENERAL ? mtx->count : -1;
    }
    return GNOMON_OK;
}

/* The line's next word as a value of the matrix's field. */
static gnomon_status value_word(gnomon_reader *reader, const char **line, const char *end,
                                double *value)
{
    mtx_reader *mtx = reader->state;
    size_t length;
    const char *text = gnomon_word(line, end, &length, GNOMON_NO_COMMENT);
    bool good = gnomon_number_parse(text, length, value);
    if (mtx->field == INTEGER)
        for (size_t i = 0; i < length; i++)
            good &= (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+';
    if (!good)
        return bad_word(reader, GNOMON_ERROR_DATA, text, length,
                        mtx->field == INTEGER ? "an integer" : "a number");
    if (gnomon_text_beyond(text, length, *value, GNOMON_F64))
        return gnomon_text_fail_beyond(reader, mtx->lines.number, 0,
                                       gnomon_quote(text, length, (char[GNOMON_QUOTED]){0}),
                                       GNOMON_F64);
    if (mtx->beyond_line == 0 && gnomon_text_beyond(text, length, *value, GNOMON_F32)) {
        mtx->beyond_line = mtx->lines.number;
        gnomon_quote(text, length, mtx->beyond);
    }
    text = gnomon_word(line, end, &length, GNOMON_NO_COMMENT);
    if (length > 0) return bad_word(reader, GNOMON_ERROR_DATA, text, length, "the line's end");
    return GNOMON_OK;
}

static gnomon_status index_word(gnomon_reader *reader, const char **line, const char *end,
                                const char *what, int64_t size, int64_t *index)
{
    const mtx_reader *mtx = reader->state;
    size_t length;
    const char *text = gnomon_word(line, end, &length, GNOMON_NO_COMMENT);
    if (length == 0 || gnomon_integer_prefix(text, length, index) != length)
        return bad_word(reader, GNOMON_ERROR_DATA, text, length, what);
    GNOMON_FAIL_IF(*index < 1 || *index > size, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": line %lld: %s %lld is outside 1 to %lld",
                   gnomon_source_name(reader->source), (long long)mtx->lines.number, what,
                   (long long)*index, (long long)size);
    --*index;
    return GNOMON_OK;
}

static gnomon_status read_entry(gnomon_reader *reader, const char *line, const char *end)
{
    mtx_reader *mtx = reader->state;
    int64_t row = 0, col = 0;
    double value = 1;
    GNOMON_TRY(index_word(reader, &line, end, "row", reader->info.rows, &row));
    GNOMON_TRY(index_word(reader, &line, end, "column", reader->info.cols, &col));
    if (mtx->field != PATTERN) {
        GNOMON_TRY(value_word(reader, &line, end, &value));
    } else {
        size_t length;
        const char *text = gnomon_word(&line, end, &length, GNOMON_NO_COMMENT);
        if (length > 0) return bad_word(reader, GNOMON_ERROR_DATA, text, length, "the line's end");
    }
    GNOMON_FAIL_IF(
        mtx->symmetry == SKEW && row == col && value != 0, reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": line %lld: a skew-symmetric matrix has zeros on its diagonal",
        gnomon_source_name(reader->source), (long long)mtx->lines.number);
    GNOMON_TRY(gnomon_gather_add(&mtx->gather, row, col, value));
    if (mtx->symmetry == GENERAL || row == col) return GNOMON_OK;
    return gnomon_gather_add(&mtx->gather, col, row, mtx->symmetry == SKEW ? -value : value);
}

/* Reads all entries, once. */
static gnomon_status load_entries(gnomon_reader *reader)
{
    mtx_reader *mtx = reader->state;
    if (mtx->loaded) return GNOMON_OK;
    for (int64_t found = 0;; found++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(&mtx->lines, &line, &length));
        if (line == NULL && found < mtx->count) return too_few(reader, found);
        if (line == NULL) break;
        if (found == mtx->count) return too_many(reader);
        GNOMON_TRY(read_entry(reader, line, line + length));
    }
    gnomon_lines_free(&mtx->lines);
    GNOMON_TRY(gnomon_gather_finish(&mtx->gather));
    mtx->loaded = true;
    return GNOMON_OK;
}

/* Whether all of the loaded matrix can be given as dtype. */
static gnomon_status check_range(gnomon_reader *reader, gnomon_dtype dtype)
{
    const mtx_reader *mtx = reader->state;
    if (dtype == GNOMON_F64 || mtx->beyond_line == 0) return GNOMON_OK;
    return gnomon_text_fail_beyond(reader, mtx->beyond_line, 0, mtx->beyond, dtype);
}

static gnomon_status mtx_next_csr(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                                  gnomon_csr *csr)
{
    mtx_reader *mtx = reader->state;
    GNOMON_TRY(load_entries(reader));
    GNOMON_TRY(check_range(reader, reader->csr_dtype));
    return gnomon_gather_next(&mtx->gather, reader, max_rows, max_nonzeros, csr);
}

static gnomon_status mtx_seek(gnomon_reader *reader, int64_t row)
{
    mtx_reader *mtx = reader->state;
    GNOMON_TRY(load_entries(reader));
    gnomon_gather_seek(&mtx->gather, row);
    return GNOMON_OK;
}

/* Reads all values, once. */
static gnomon_status load_values(gnomon_reader *reader)
{
    mtx_reader *mtx = reader->state;
    if (mtx->loaded) return GNOMON_OK;
    int64_t capacity = 0;
    for (int64_t found = 0;; found++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(&mtx->lines, &line, &length));
        if (line == NULL && found < mtx->count) return too_few(reader, found);
        if (line == NULL) break;
        if (found == mtx->count) return too_many(reader);
        if (found == capacity) {
            int64_t wider = capacity + capacity / 2 + 1024;
            if (wider > mtx->count) wider = mtx->count;
            GNOMON_TRY(gnomon_grow(reader->ctx, &mtx->values, capacity, wider, sizeof(double),
                                   "the values of a matrix"));
            capacity = wider;
        }
        GNOMON_TRY(value_word(reader, &line, line + length, &mtx->values[found]));
    }
    gnomon_lines_free(&mtx->lines);
    mtx->loaded = true;
    return GNOMON_OK;
}

static double array_value(const gnomon_reader *reader, int64_t i, int64_t j)
{
    const mtx_reader *mtx = reader->state;
    int64_t n = reader->info.rows;
    if (mtx->symmetry == GENERAL) return mtx->values[j * n + i];
    bool mirrored = i < j;
    int64_t row = mirrored ? j : i, col = mirrored ? i : j;
    /* columns 0 to col - 1 of the lower triangle hold n, n - 1, ... values */
    if (mtx->symmetry == SYMMETRIC) return mtx->values[col * n - col * (col - 1) / 2 + row - col];
    if (row == col) return 0;
    double value = mtx->values[col * (n - 1) - col * (col - 1) / 2 + row - col - 1];
    return mirrored ? -value : value;
}

static gnomon_status array_block(gnomon_reader *reader, int64_t row, int64_t col,
                                 const gnomon_matrix *dst)
{
    GNOMON_TRY(load_values(reader));
    GNOMON_TRY(check_range(reader, dst->dtype));
    for (int64_t j = 0; j < dst->cols; j++)
        for (int64_t i = 0; i < dst->rows; i++) {
            double value = array_value(reader, row + i, col + j);
            int64_t at = i * dst->row_stride + j * dst->col_stride;
            if (dst->dtype == GNOMON_F64)
                ((double *)dst->data)[at] = value;
            else
                ((float *)dst->data)[at] = (float)value;
        }
    return GNOMON_OK;
}

static gnomon_status array_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    mtx_reader *mtx = reader->state;
    gnomon_matrix part = *dst;
    int64_t left = reader->info.rows - mtx->row;
    if (part.rows > left) part.rows = left;
    GNOMON_TRY(array_block(reader, mtx->row, 0, &part));
    mtx->row += part.rows;
    *got = part.rows;
    return GNOMON_OK;
}

static gnomon_status array_seek(gnomon_reader *reader, int64_t row)
{
    mtx_reader *mtx = reader->state;
    mtx->row = row;
    return GNOMON_OK;
}

static void mtx_close(gnomon_reader *reader)
{
    mtx_reader *mtx = reader->state;
    if (mtx == NULL) return;
    gnomon_lines_free(&mtx->lines);
    gnomon_gather_free(&mtx->gather);
    gnomon_free(reader->ctx, mtx->values);
    gnomon_free(reader->ctx, mtx);
    reader->state = NULL;
}

static int mtx_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    const char *text = (const char *)head;
    if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, length -= 3;
    return length >= 14 && strncasecmp(text, "%%MatrixMarket", 14) == 0 ? GNOMON_SNIFF_YES
                                                                        : GNOMON_SNIFF_NO;
}

/* ---- writing ---- */

typedef struct mtx_writer {
    int64_t sizes;    /* sparse: where the line of sizes stands */
    int64_t nonzeros; /* sparse: entries so far */
    void *values;     /* dense: all points so far, row by row, in the stored type */
    int64_t capacity; /* in points */
} mtx_writer;

/* Three numbers of 19 digits fit, so that the line can be filled out at the end. */
enum { SIZES_LINE = 3 * 20 };

static bool is_float(gnomon_dtype dtype)
{
    return dtype == GNOMON_F32 || dtype == GNOMON_F64 || dtype == GNOMON_F16 ||
           dtype == GNOMON_BF16;
}

static bool mtx_revisits(const gnomon_writer *writer)
{
    return writer->options.sparse != 0;
}

static gnomon_status mtx_create(gnomon_writer *writer)
{
    mtx_writer *mtx;
    GNOMON_TRY(gnomon_alloc_zero(writer->ctx, 1, sizeof *mtx, "the writer of mtx", &mtx));
    writer->state = mtx;
    bool sparse = writer->options.sparse != 0;
    GNOMON_FAIL_IF(sparse && writer->dtype != GNOMON_F32 && writer->dtype != GNOMON_F64,
                   writer->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %s, sparse points are written as f32 or f64",
                   gnomon_dtype_name(writer->dtype));
    GNOMON_TRY(gnomon_sink_printf(writer->sink, "%%%%MatrixMarket matrix %s %s general\n",
                                  sparse ? "coordinate" : "array",
                                  is_float(writer->dtype) ? "real" : "integer"));
    if (!sparse) return GNOMON_OK;
    mtx->sizes = gnomon_sink_tell(writer->sink);
    return gnomon_sink_printf(writer->sink, "%*s\n", SIZES_LINE - 1, "");
}

static gnomon_status mtx_put_csr(gnomon_writer *writer, const gnomon_csr *src)
{
    mtx_writer *mtx = writer->state;
    for (int64_t i = 0; i < src->rows; i++) {
        int64_t row = writer->written + i + 1;
        for (int64_t e = src->offsets[i]; e < src->offsets[i + 1]; e++) {
            int64_t at = e - src->offsets[0];
            char text[3 * GNOMON_NUMBER_TEXT];
            size_t length = gnomon_number_print_i64(row, text);
            text[length++] = ' ';
            length += gnomon_number_print_i64(src->indices[at] + 1, text + length);
            text[length++] = ' ';
            length += gnomon_text_sparse_value(src, writer->dtype, at, text + length);
            text[length++] = '\n';
            GNOMON_TRY(gnomon_sink_write(writer->sink, text, length));
            mtx->nonzeros++;
        }
    }
    return GNOMON_OK;
}

static gnomon_status mtx_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    mtx_writer *mtx = writer->state;
    size_t size = gnomon_dtype_size(writer->dtype);
    int64_t rows = writer->written + src->rows, cells;
    if (rows > mtx->capacity) {
        int64_t wider = rows + rows / 2;
        bool fits = gnomon_mul(wider, writer->cols, &cells);
        GNOMON_FAIL_IF(!fits, writer->ctx, GNOMON_ERROR_OVERFLOW,
                       GNOMON_ARG("%s") ": %lld x %lld values are more than memory can count",
                       gnomon_sink_name(writer->sink), (long long)wider, (long long)writer->cols);
        GNOMON_TRY(gnomon_grow(writer->ctx, &mtx->values, writer->written * writer->cols, cells,
                               size, "a matrix to be written column by column"));
        mtx->capacity = wider;
    }
    gnomon_text_rows rows_of;
    GNOMON_TRY(gnomon_text_rows_start(&rows_of, writer, src));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < src->rows && status == GNOMON_OK; i++) {
        status = gnomon_text_rows_convert(&rows_of, i);
        if (status == GNOMON_OK && src->cols > 0)
            memcpy((unsigned char *)mtx->values +
                       (size_t)((writer->written + i) * src->cols) * size,
                   rows_of.row, (size_t)src->cols * size);
    }
    gnomon_text_rows_free(&rows_of);
    return status;
}

static gnomon_status mtx_complete(gnomon_writer *writer)
{
    mtx_writer *mtx = writer->state;
    if (writer->options.sparse) {
        char line[SIZES_LINE + 8];
        int length = snprintf(line, sizeof line, "%" PRId64 " %" PRId64 " %" PRId64,
                              writer->written, writer->cols, mtx->nonzeros);
        return gnomon_sink_write_at(writer->sink, mtx->sizes, line, (size_t)length);
    }
    GNOMON_TRY(gnomon_sink_printf(writer->sink, "%" PRId64 " %" PRId64 "\n", writer->written,
                                  writer->cols));
    for (int64_t j = 0; j < writer->cols; j++)
        for (int64_t i = 0; i < writer->written; i++) {
            char text[GNOMON_NUMBER_TEXT + 1];
            size_t length = gnomon_text_element(mtx->values, writer->dtype, i * writer->cols + j,
                                                writer->options.csv_digits, text);
            text[length++] = '\n';
            GNOMON_TRY(gnomon_sink_write(writer->sink, text, length));
        }
    return GNOMON_OK;
}

static void mtx_discard(gnomon_writer *writer)
{
    mtx_writer *mtx = writer->state;
    if (mtx == NULL) return;
    gnomon_free(writer->ctx, mtx->values);
    gnomon_free(writer->ctx, mtx);
    writer->state = NULL;
}

const gnomon_format gnomon_format_mtx = {
    .name = "mtx",
    .about = "Matrix Market, sparse or dense",
    .endings = ".mtx .mm",
    .holds = GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TEXT,
    .writes = GNOMON_TEXT_DTYPES,
    .sniff = mtx_sniff,
    .open = mtx_open,
    .next_csr = mtx_next_csr,
    .seek = mtx_seek,
    .close = mtx_close,
    .revisits = mtx_revisits,
    .create = mtx_create,
    .put = mtx_put,
    .put_csr = mtx_put_csr,
    .complete = mtx_complete,
    .discard = mtx_discard,
};

static const gnomon_format mtx_array = {
    .name = "mtx",
    .next = array_next,
    .seek = array_seek,
    .block = array_block,
    .close = mtx_close,
};
