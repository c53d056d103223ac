/* csv and tsv: one point per line. Read in one pass, so the number of points is not known
 * before the end. */
#include "io/formats/csv.h"
#include "io/format.h"
#include "io/text/lines.h"
#include "io/text/number.h"
#include "io/text/text.h"

#include <math.h>
#include <string.h>

/* ---- reading ---- */

typedef struct csv_reader {
    gnomon_lines lines;
    char delimiter;
    int64_t start, start_number; /* where the points begin, and the line before them */
    int64_t width_line;          /* the line that decided the number of fields */
    int64_t row;                 /* the next point */
} csv_reader;

/* The next line that is neither blank nor a comment; *line is NULL at the end. */
static gnomon_status next_line(csv_reader *csv, const char **line, size_t *length)
{
    do {
        GNOMON_TRY(gnomon_lines_next(&csv->lines, line, length));
    } while (*line != NULL && gnomon_csv_skipped(*line, *length));
    return GNOMON_OK;
}

/* What the fields of a line are, seen together. */
typedef struct summary {
    int64_t fields;
    bool numbers;     /* all of them */
    bool like_header; /* one is text, or the first alone is empty: an index without a name */
    bool unclosed;    /* a quote is */
} summary;

static summary guess_fields(const char *line, size_t length, char delimiter)
{
    gnomon_csv_fields fields;
    gnomon_csv_start(&fields, line, length, delimiter);
    double value;
    const char *text;
    bool index = false, empty = true, binary = false;
    summary s = {.numbers = true};
    for (;; s.fields++) {
        gnomon_csv_kind kind = gnomon_csv_next(&fields, &value, &text, &length);
        if (kind == GNOMON_CSV_END) break;
        s.numbers &= kind == GNOMON_CSV_NUMBER;
        s.unclosed |= kind == GNOMON_CSV_UNCLOSED;
        s.like_header |= kind == GNOMON_CSV_OTHER || kind == GNOMON_CSV_UNCLOSED;
        index |= kind == GNOMON_CSV_EMPTY && s.fields == 0;
        empty &= kind == GNOMON_CSV_EMPTY;
        binary |= kind != GNOMON_CSV_NUMBER && memchr(text, '\0', length) != NULL;
    }
    /* nothing but delimiters, or what no text holds, is a damaged line */
    s.like_header = (s.like_header || (index && !empty)) && !binary;
    return s;
}

static gnomon_status ragged(gnomon_reader *reader, int64_t fields)
{
    const csv_reader *csv = reader->state;
    return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": line %lld has %lld fields where line %lld has %lld",
                       gnomon_source_name(reader->source), (long long)csv->lines.number,
                       (long long)fields, (long long)csv->width_line, (long long)reader->info.cols);
}

static gnomon_status csv_open(gnomon_reader *reader)
{
    csv_reader *csv;
    GNOMON_TRY(gnomon_alloc_zero(reader->ctx, 1, sizeof *csv, "the reader of csv", &csv));
    reader->state = csv;
    gnomon_lines_start(&csv->lines, reader->source);
    GNOMON_TRY(gnomon_text_dtype(reader));
    reader->info.access =
        gnomon_source_get_kind(reader->source) != GNOMON_SOURCE_STREAM ? GNOMON_ACCESS_SEEK : 0;

    char given = reader->options.csv_delimiter;
    if (given == '\0' && reader->format == &gnomon_format_tsv) given = '\t';
    GNOMON_FAIL_IF(
        given == '\n' || given == '\r' || given == '"' || given == '.' || given == '+' ||
            given == '-' || (given >= '0' && given <= '9'),
        reader->ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("csv_delimiter") " is character %d, which is part of numbers or lines", given);
    const char *line;
    size_t length;
    GNOMON_TRY(next_line(csv, &line, &length));
    GNOMON_FAIL_IF(line == NULL, reader->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") ": no line holds numbers", gnomon_source_name(reader->source));
    csv->delimiter = given != '\0' ? given : gnomon_csv_guess_delimiter(line, length);
    csv->width_line = csv->lines.number;
    summary first = guess_fields(line, length, csv->delimiter);
    reader->info.cols = first.fields;
    if (reader->options.csv_header == 1 ||
        (reader->options.csv_header == -1 && first.like_header)) {
        GNOMON_FAIL_IF(first.unclosed, reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": line %lld: a quote is not closed; names go on one line",
                       gnomon_source_name(reader->source), (long long)csv->lines.number);
        GNOMON_TRY(next_line(csv, &line, &length));
        /* blanks in a lone column's name are no delimiter when the numbers have none */
        if (line != NULL && given == '\0' && csv->delimiter == ' ') {
            csv->delimiter = gnomon_csv_guess_delimiter(line, length);
            if (csv->delimiter != ' ') reader->info.cols = 1;
        }
        if (line != NULL) {
            int64_t fields = guess_fields(line, length, csv->delimiter).fields;
            if (fields != reader->info.cols) return ragged(reader, fields);
        }
    }
    if (line != NULL) gnomon_lines_again(&csv->lines);
    csv->start = gnomon_lines_offset(&csv->lines);
    csv->start_number = csv->lines.number;
    return GNOMON_OK;
}

static gnomon_status bad_field(gnomon_reader *reader, int64_t column, gnomon_csv_kind kind,
                               const char *text, size_t length)
{
    const csv_reader *csv = reader->state;
    char quoted[GNOMON_QUOTED];
    const char *name = gnomon_source_name(reader->source);
    long long line = csv->lines.number;
    if (kind == GNOMON_CSV_EMPTY)
        return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                           GNOMON_ARG("%s") ": line %lld, column %lld: the field is empty", name,
                           line, (long long)column + 1);
    gnomon_quote(text, length, quoted);
    if (kind == GNOMON_CSV_UNCLOSED)
        return gnomon_fail(
            reader->ctx, GNOMON_ERROR_DATA,
            GNOMON_ARG("%s") ": line %lld, column %lld: the quote is never closed: %s", name, line,
            (long long)column + 1, quoted);
    return gnomon_fail(reader->ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("%s") ": line %lld, column %lld: %s is not a number", name, line,
                       (long long)column + 1, quoted);
}

static gnomon_status parse_row(gnomon_reader *reader, const char *line, size_t length,
                               const gnomon_matrix *dst, int64_t row)
{
    const csv_reader *csv = reader->state;
    gnomon_csv_fields fields;
    gnomon_csv_start(&fields, line, length, csv->delimiter);
    const bool single = dst->dtype == GNOMON_F32;
    for (int64_t j = 0;; j++) {
        double value = 0;
        const char *text = NULL;
        gnomon_csv_kind kind = gnomon_csv_next(&fields, &value, &text, &length);
        if (kind == GNOMON_CSV_END && j == reader->info.cols) return GNOMON_OK;
        if (kind == GNOMON_CSV_END || j == reader->info.cols) {
            while (kind != GNOMON_CSV_END) {
                kind = gnomon_csv_next(&fields, &value, &text, &length);
                j++;
            }
            return ragged(reader, j);
        }
        if (kind != GNOMON_CSV_NUMBER) return bad_field(reader, j, kind, text, length);
        if (gnomon_text_beyond(text, length, value, dst->dtype))
            return gnomon_text_fail_beyond(reader, csv->lines.number, j + 1,
                                           gnomon_quote(text, length, (char[GNOMON_QUOTED]){0}),
                                           isinf(value) ? GNOMON_F64 : GNOMON_F32);
        int64_t at = row * dst->row_stride + j * dst->col_stride;
        if (single)
            ((float *)dst->data)[at] = (float)value;
        else
            ((double *)dst->data)[at] = value;
    }
}

static gnomon_status csv_next(gnomon_reader *reader, const gnomon_matrix *dst, int64_t *got)
{
    csv_reader *csv = reader->state;
    for (; *got < dst->rows; ++*got, csv->row++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(csv, &line, &length));
        if (line == NULL) return GNOMON_OK;
        GNOMON_TRY(parse_row(reader, line, length, dst, *got));
    }
    return GNOMON_OK;
}

static gnomon_status csv_seek(gnomon_reader *reader, int64_t row)
{
    csv_reader *csv = reader->state;
    if (row < csv->row) {
        GNOMON_TRY(gnomon_lines_seek(&csv->lines, csv->start, csv->start_number));
        csv->row = 0;
    }
    for (; csv->row < row; csv->row++) {
        const char *line;
        size_t length;
        GNOMON_TRY(next_line(csv, &line, &length));
        if (line == NULL) return GNOMON_OK;
    }
    return GNOMON_OK;
}

static void csv_close(gnomon_reader *reader)
{
    csv_reader *csv = reader->state;
    if (csv == NULL) return;
    gnomon_lines_free(&csv->lines);
    gnomon_free(reader->ctx, csv);
    reader->state = NULL;
}

/* Numbers in the first line, or in the second when the first could be names. */
static int csv_sniff(const unsigned char *head, size_t length, int64_t size)
{
    (void)size;
    const char *p = (const char *)head, *end = p + length;
    if (length >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
    for (int seen = 0; seen < 2 && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        /* a line that the head cuts short can't be judged by its last field */
        if (stop == NULL && length >= GNOMON_SOURCE_PEEK) {
            stop = end;
            while (stop > p && stop[-1] != ',' && stop[-1] != '\t' && stop[-1] != ' ' &&
                   stop[-1] != ';')
                stop--;
            if (stop == p) return GNOMON_SNIFF_NO;
            stop--;
            end = stop;
        } else if (stop == NULL) {
            stop = end;
        }
        size_t line = (size_t)(stop - p);
        if (line > 0 && p[line - 1] == '\r') line--;
        for (size_t i = 0; i < line; i++)
            if ((unsigned char)p[i] < 0x20 && p[i] != '\t') return GNOMON_SNIFF_NO;
        if (!gnomon_csv_skipped(p, line)) {
            if (guess_fields(p, line, gnomon_csv_guess_delimiter(p, line)).numbers)
                return GNOMON_SNIFF_MAYBE;
            seen++;
        }
        p = stop + 1;
    }
    return GNOMON_SNIFF_NO;
}

/* ---- writing ---- */

static gnomon_status csv_create(gnomon_writer *writer)
{
    GNOMON_FAIL_IF(writer->cols == 0, writer->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("cols") " is 0: %s can't hold points without coordinates",
                   writer->format->name);
    return GNOMON_OK;
}

static gnomon_status csv_put(gnomon_writer *writer, const gnomon_matrix *src)
{
    const char delimiter = writer->format == &gnomon_format_tsv ? '\t' : ',';
    gnomon_text_rows rows;
    GNOMON_TRY(gnomon_text_rows_start(&rows, writer, src));
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < src->rows && status == GNOMON_OK; i++) {
        status = gnomon_text_rows_convert(&rows, i);
        for (int64_t j = 0; j < src->cols && status == GNOMON_OK; j++) {
            char text[GNOMON_NUMBER_TEXT + 1];
            size_t length = gnomon_text_number(&rows, j, writer->options.csv_digits, text);
            text[length++] = j + 1 < src->cols ? delimiter : '\n';
            status = gnomon_sink_write(writer->sink, text, length);
        }
    }
    gnomon_text_rows_free(&rows);
    return status;
}

const gnomon_format gnomon_format_csv = {
    .name = "csv",
    .about = "text, one point per line, commas between",
    .endings = ".csv",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TEXT,
    .takes = GNOMON_TAKES_DELIMITER | GNOMON_TAKES_DIGITS,
    .writes = GNOMON_TEXT_DTYPES,
    .sniff = csv_sniff,
    .open = csv_open,
    .next = csv_next,
    .seek = csv_seek,
    .close = csv_close,
    .create = csv_create,
    .put = csv_put,
};

const gnomon_format gnomon_format_tsv = {
    .name = "tsv",
    .about = "text, one point per line, tabs between",
    .endings = ".tsv .tab",
    .holds = GNOMON_HOLDS_DENSE | GNOMON_HOLDS_TEXT,
    .takes = GNOMON_TAKES_DELIMITER | GNOMON_TAKES_DIGITS,
    .writes = GNOMON_TEXT_DTYPES,
    .open = csv_open,
    .next = csv_next,
    .seek = csv_seek,
    .close = csv_close,
    .create = csv_create,
    .put = csv_put,
};
