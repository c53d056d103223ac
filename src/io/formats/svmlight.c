/* svmlight / libsvm: "label [qid:n] index:value ... # comment", one point per line. Labels and
 * query ids are read over. */
#include "io/arrays/sparse.h"
#include "io/text/lines.h"
#include "io/text/number.h"
#include "io/text/text.h"

#include <math.h>
#include <string.h>

/* ---- reading ---- */

typedef struct svm_reader {
    gnomon_lines lines;
    int64_t base; /* what the first column's index is */
    gnomon_batch batch;
    int64_t row; /* the next point */
} svm_reader;

static bool skipped(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!gnomon_is_blank(line[i])) return line[i] == '#';
    return true;
}

static gnomon_status next_line(svm_reader *svm, const char **line, size_t *length)
{
    do {
        GNOMON_TRY(gnomon_lines_next(&svm->lines, line, length));
    } while (*line != NULL && skipped(*line, *length));
    return GNOMON_OK;
}

/* One number, or several with commas between them (many labels). */
static bool is_label(const char *text, size_t length)
{
    for (;;) {
        double value;
        size_t consumed = gnomon_number_prefix(text, length, &value);
        if (consumed == 0) return false;
        if (consumed == length) return true;
        if (text[consumed] != ',') return false;
        text += consumed + 1;
        length -= consumed + 1;
    }
}

/* Splits "index:value"; the value's text begins at *number. */
static bool is_pair(const char *text, size_t length, int64_t *index, size_t *number, double *value)
{
    size_t consumed = gnomon_integer_prefix(text, length, index);
    *number = consumed + 1;
    return consumed > 0 && consumed < length && text[consumed] == ':' &&
           gnomon_number_parse(text + *number, length - *number, value);
}

typedef enum step { END, PAIR, BAD } step;

/* Walks a line: the label and the query id are passed over at its beginning. */
typedef struct walk {
    const char *p, *end;
    const char *text;      /* the word that is BAD */
    size_t length, number; /* of a pair, the value begins at text + number */
    bool bad_label;
} walk;

static step walk_start(walk *w, const char *line, size_t size)
{
    *w = (walk){.p = line, .end = line + size};
    w->text = gnomon_word(&w->p, w->end, &w->length, '#');
    /* a point of no label at all begins with its first pair */
    if (memchr(w->text, ':', w->length) != NULL) {
        w->p = line;
    } else if (!is_label(w->text, w->length)) {
        w->bad_label = true;
        return BAD;
    }
    const char *back = w->p;
    w->text = gnomon_word(&w->p, w->end, &w->length, '#');
    if (w->length < 4 || memcmp(w->text, "qid:", 4) != 0) w->p = back;
    return PAIR;
}

static step walk_next(walk *w, int64_t *index, double *value)
{
    w->text = gnomon_word(&w->p, w->end, &w->length, '#');
    if (w->length == 0) return END;
    return is_pair(w->text, w->length, index, &w->number, value) ? PAIR : BAD;
}

static gnomon_status bad_word(gnomon_reader *reader, const walk *w)
{
    const svm_reader *svm = reader->state;
    char quoted[GNOMON_QUOTED];
    return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": line %lld: %s is not %s",
                       gnomon_source_name(reader->source), (long long)svm->lines.number,
                       gnomon_quote(w->text, w->length, quoted),
                       w->bad_label ? "a label (a number)" : "index:value");
}

static gnomon_status bad_index(gnomon_reader *reader, int64_t index)
{
    const svm_reader *svm = reader->state;
    const char *name = gnomon_source_name(reader->source);
    long long line = svm->lines.number, first = svm->base;
    if (index < svm->base)
        return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("%s") ": line %lld: index %lld where indices count from %lld",
                           name, line, (long long)index, first);
    return gnomon_fail(
        reader->ctx, GNOMON_ERROR_DATA,
        GNOMON_ARG("%s") ": line %lld: index %lld is outside %lld to %lld, the %lld columns", name,
        line, (long long)index, first, first - 1 + (long long)reader->info.cols,
        (long long)reader->info.cols);
}

/* Reads the next point into the batch; *more is false at the end. */
static gnomon_status read_point(gnomon_reader *reader, bool *more)
{
    svm_reader *svm = reader->state;
    const char *line;
    size_t length;
    GNOMON_TRY(next_line(svm, &line, &length));
    *more = line != NULL;
    if (line == NULL) return GNOMON_OK;
    walk w;
    int64_t index = 0;
    double value = 0;
    for (step s = walk_start(&w, line, length); s != BAD;) {
        s = walk_next(&w, &index, &value);
        if (s == END) return GNOMON_OK;
        if (s == BAD) break;
        if (index < svm->base || index - svm->base >= reader->info.cols)
            return bad_index(reader, index);
        const char *number = w.text + w.number;
        if (gnomon_text_beyond(number, w.length - w.number, value, svm->batch.dtype))
            return gnomon_text_fail_beyond(
                reader, svm->lines.number, 0,
                gnomon_quote(number, w.length - w.number, (char[GNOMON_QUOTED]){0}),
                isinf(value) ? GNOMON_F64 : GNOMON_F32);
        GNOMON_TRY(gnomon_batch_entry(&svm->batch, index - svm->base, value));
    }
    return bad_word(reader, &w);
}

/* The first pass: counts points and entries, finds the least and largest index. */
static gnomon_status survey(gnomon_reader *reader)
{
    svm_reader *svm = reader->state;
    int64_t rows = 0, nonzeros = 0, least = INT64_MAX, largest = -1;
    for (;; rows++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(svm, &line, &length));
        if (line == NULL) break;
        walk w;
        int64_t index = 0;
        double value = 0;
        step s = walk_start(&w, line, length);
        while (s == PAIR && (s = walk_next(&w, &index, &value)) == PAIR) {
            svm->base = 0;
            if (index < 0) return bad_index(reader, index);
            nonzeros++;
            if (index < least) least = index;
            if (index > largest) largest = index;
        }
        if (s == BAD) return bad_word(reader, &w);
    }
    GNOMON_TRY(gnomon_lines_seek(&svm->lines, 0, 0));
    int given = reader->options.svmlight_zero_based;
    svm->base = given != -1 ? !given : least != 0;
    reader->info.rows = rows;
    reader->info.nonzeros = nonzeros;
    if (reader->options.svmlight_cols > 0) return GNOMON_OK; /* indices are checked on reading */
    GNOMON_FAIL_IF(rows == 0, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": no line holds a point", gnomon_source_name(reader->source));
    GNOMON_FAIL_IF(largest == INT64_MAX && svm->base == 0, reader->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("%s") ": index %lld makes more columns than can be counted",
                   gnomon_source_name(reader->source), (long long)largest);
    reader->info.cols = largest < 0 ? 0 : largest - svm->base + 1;
    return GNOMON_OK;
}

static gnomon_status svm_open(gnomon_reader *reader)
{
    const gnomon_read_options *options = &reader->options;
    svm_reader *svm;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *svm, "the reader of svmlight", &svm));
    reader->state = svm;
    GNOMON_TRY(gnomon_text_dtype(reader));
    gnomon_batch_start(&svm->batch, reader->ctx);
    bool known = options->svmlight_cols > 0 && options->svmlight_zero_based != -1;
    if (!known && gnomon_source_get_kind(reader->source) == GNOMON_SOURCE_STREAM)
        GNOMON_TRY(gnomon_source_make_random(reader->source));
    gnomon_lines_start(&svm->lines, reader->source);
    reader->info.cols = options->svmlight_cols;
    reader->info.access = GNOMON_ACCESS_SPARSE;
    if (gnomon_source_get_kind(reader->source) != GNOMON_SOURCE_STREAM)
        reader->info.access |= GNOMON_ACCESS_SEEK;
    svm->base = !options->svmlight_zero_based;
    return known ? GNOMON_OK : survey(reader);
}

static gnomon_status svm_next_csr(gnomon_reader *reader, int64_t max_rows, int64_t max_nonzeros,
                                  gnomon_csr *csr)
{
    svm_reader *svm = reader->state;
    gnomon_batch *batch = &svm->batch;
    gnomon_batch_clear(batch, reader->csr_dtype);
    while (batch->rows < max_rows) {
        bool more;
        GNOMON_TRY(read_point(reader, &more));
        if (!more) break;
        if (batch->rows > 0 && batch->nonzeros > max_nonzeros) {
            gnomon_batch_drop_row(batch);
            gnomon_lines_again(&svm->lines);
            break;
        }
        GNOMON_TRY(gnomon_batch_end_row(batch));
        svm->row++;
        if (batch->nonzeros >= max_nonzeros) break;
    }
    *csr = gnomon_batch_csr(batch, reader->info.cols);
    return GNOMON_OK;
}

static gnomon_status svm_seek(gnomon_reader *reader, int64_t row)
{
    svm_reader *svm = reader->state;
    if (row < svm->row) {
        GNOMON_TRY(gnomon_lines_seek(&svm->lines, 0, 0));
        svm->row = 0;
    }
    for (; svm->row < row; svm->row++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(svm, &line, &length));
        if (line == NULL) return GNOMON_OK;
    }
    return GNOMON_OK;
}

static void svm_close(gnomon_reader *reader)
{
    svm_reader *svm = reader->state;
    if (svm == NULL) return;
    gnomon_lines_free(&svm->lines);
    gnomon_batch_free(&svm->batch);
    gnomon_free(reader->ctx, svm);
    reader->state = NULL;
}

/* Sure when the first line that has pairs is faultless and so are those before it. */
static int svm_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    const char *p = (const char *)head, *end = p + length;
    if (length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        bool cut = stop == NULL && length >= GNOMON_SOURCE_PEEK;
        if (stop == NULL) stop = end;
        if (cut) { /* the last word may lack its end */
            while (stop > p && !gnomon_is_blank(stop[-1]))
                stop--;
            end = stop;
        }
        if (!skipped(p, (size_t)(stop - p))) {
            walk w;
            int64_t index, pairs = 0;
            double value;
            step s = walk_start(&w, p, (size_t)(stop - p));
            while (s == PAIR && (s = walk_next(&w, &index, &value)) == PAIR)
                pairs++;
            if (s == BAD) return GNOMON_SNIFF_NO;
            if (pairs > 0) return GNOMON_SNIFF_YES;
        }
        p = stop + 1;
    }
    return GNOMON_SNIFF_NO;
}

/* ---- writing: label 0, indices from 1 ---- */

static gnomon_status svm_create(gnomon_writer *writer)
{
    GNOMON_FAIL_IF(writer->options.sparse && writer->dtype != GNOMON_F32 &&
                       writer->dtype != GNOMON_F64,
                   writer->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %s, sparse points are written as f32 or f64",
                   gnomon_dtype_name(writer->dtype));
    return GNOMON_OK;
}

/* Writes " col:" to out. */
static size_t pair_head(int64_t col, char *out)
{
    out[0] = ' ';
    size_t length = 1 + gnomon_number_print_u64((uint64_t)col + 1, out + 1);
    out[length++] = ':';
    return length;
}

static gnomon_status svm_put_csr(gnomon_writer *writer, const gnomon_csr *src)
{
    for (int64_t i = 0; i < src->rows; i++) {
        GNOMON_TRY(gnomon_sink_write(writer->sink, "0", 1));
        for (int64_t e = src->offsets[i]; e < src->offsets[i + 1]; e++) {
            int64_t at = e - src->offsets[0];
            char text[3 * GNOMON_NUMBER_TEXT];
            size_t length = pair_head(src->indices[at], text);
            length += gnomon_text_sparse_value(src, writer->dtype, at, text + length);
            GNOMON_TRY(gnomon_sink_write(writer->sink, text, length));
        }
        GNOMON_TRY(gnomon_sink_write(writer->sink, "\n", 1));
    }
    return GNOMON_OK;
}

static gnomon_status put_row(gnomon_writer *writer, const gnomon_text_rows *rows)
{
    GNOMON_TRY(gnomon_sink_write(writer->sink, "0", 1));
    for (int64_t j = 0; j < rows->src->cols; j++) {
        if (!gnomon_text_nonzero(rows, j)) continue;
        char text[3 * GNOMON_NUMBER_TEXT];
        size_t length = pair_head(j, text);
        length += gnomon_text_number(rows, j, 0, text + length);
        GNOMON_TRY(gnomon_sink_write(writer->sink, text, length));
    }
    return gnomon_sink_write(writer->sink, "\n", 1);
}

static gnomon_status svm_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    gnomon_text_rows rows;
    GNOMON_TRY(gnomon_text_rows_start(&rows, writer, src));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < src->rows && status == GNOMON_OK; i++) {
        status = gnomon_text_rows_convert(&rows, i);
        if (status == GNOMON_OK) status = put_row(writer, &rows);
    }
    gnomon_text_rows_free(&rows);
    return status;
}

const gnomon_format gnomon_format_svmlight = {
    .name = "svmlight",
    .about = "sparse text, also known as libsvm",
    .endings = ".svm .svmlight .libsvm",
    .holds = GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TEXT,
    .takes = GNOMON_TAKES_COLUMNS,
    .writes = GNOMON_TEXT_DTYPES,
    .sniff = svm_sniff,
    .open = svm_open,
    .next_csr = svm_next_csr,
    .seek = svm_seek,
    .close = svm_close,
    .create = svm_create,
    .put = svm_put,
    .put_csr = svm_put_csr,
};
