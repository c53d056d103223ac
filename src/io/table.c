/* Tables of text: what a join or a search found, with names where there are some. */
#include "base/memory.h"
#include "base/utf8.h"
#include "io/format.h"
#include "io/text/number.h"

#include <string.h>
#include <unistd.h>

struct gnomon_table {
    gnomon_context *ctx;
    gnomon_sink *sink;
    bool tabs;     /* tsv */
    bool terminal; /* control characters would act on it */
    int columns, at;
};

static gnomon_status put(gnomon_table *table, const char *text, size_t length)
{
    return gnomon_sink_write(table->sink, text, length);
}

/* Ends a field: the delimiter, or the line's end. */
static gnomon_status end_field(gnomon_table *table)
{
    table->at = (table->at + 1) % table->columns;
    return put(table, table->at == 0 ? "\n" : table->tabs ? "\t" : ",", 1);
}

/* The letter of a backslash escape, 0 for none. */
static char letter_of(unsigned char c)
{
    return c == '\t' ? 't' : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\\' ? '\\' : '\0';
}

static gnomon_status put_escaped(gnomon_table *table, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        const char letter = letter_of(*at);
        const size_t bytes = letter != '\0' ? 0 : gnomon_utf8_bytes((const char *)at);
        if (bytes > 0)
            GNOMON_TRY(put(table, (const char *)at, bytes));
        else if (letter != '\0')
            GNOMON_TRY(put(table, (char[]){'\\', letter}, 2));
        else
            GNOMON_TRY(put(table, (char[]){'\\', 'x', digits[*at >> 4], digits[*at & 15]}, 4));
        at += bytes > 0 ? bytes : 1;
    }
    return GNOMON_OK;
}

/* RFC 4180, section 2: what holds a delimiter, a quote or a line's end stands in quotes. */
static gnomon_status put_quoted(gnomon_table *table, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) return put(table, text, strlen(text));
    GNOMON_TRY(put(table, "\"", 1));
    for (const char *quote; (quote = strchr(text, '"')) != NULL; text = quote + 1) {
        GNOMON_TRY(put(table, text, (size_t)(quote - text) + 1));
        GNOMON_TRY(put(table, "\"", 1));
    }
    GNOMON_TRY(put(table, text, strlen(text)));
    return put(table, "\"", 1);
}

gnomon_status gnomon_table_open(gnomon_context *ctx, const char *path, const char *format,
                                const char *const *columns, int count, gnomon_table **out)
{
    if (out != NULL) *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_NEED(ctx, out, "out");
    GNOMON_FAIL_IF(path == NULL || columns == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   "path or columns is NULL");
    GNOMON_FAIL_IF(count < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("count") " is %d; it must be 1 or more", count);
    const char *name = gnomon_format_for(path, format, NULL);
    GNOMON_FAIL_IF(name == NULL || (strcmp(name, "csv") != 0 && strcmp(name, "tsv") != 0), ctx,
                   GNOMON_ERROR_ARGUMENT, "%s: a table is csv or tsv, not %s", path,
                   name != NULL ? name : "of an unknown format");
    for (int i = 0; i < count; i++)
        GNOMON_FAIL_IF(columns[i] == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("columns[%d]") " is NULL", i);
    gnomon_table *table = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, 1, sizeof *table, "a table", &table));
    *table = (gnomon_table){.ctx = ctx, .tabs = name[0] == 't', .columns = count};
    table->terminal = strcmp(path, "-") == 0 && isatty(STDOUT_FILENO);
    const gnomon_sink_options options = {.overwrite_ok = true};
    gnomon_status status = gnomon_sink_open(ctx, path, &options, &table->sink);
    for (int i = 0; i < count && status == GNOMON_OK; i++)
        status = gnomon_table_text(table, columns[i]);
    if (status != GNOMON_OK) {
        gnomon_table_abort(table);
        return status;
    }
    *out = table;
    return GNOMON_OK;
}

gnomon_status gnomon_table_integer(gnomon_table *table, int64_t value)
{
    GNOMON_NEED(NULL, table, "table");
    char text[GNOMON_NUMBER_TEXT];
    GNOMON_TRY(put(table, text, gnomon_number_print_i64(value, text)));
    return end_field(table);
}

gnomon_status gnomon_table_real(gnomon_table *table, double value)
{
    GNOMON_NEED(NULL, table, "table");
    char text[GNOMON_NUMBER_TEXT];
    GNOMON_TRY(put(table, text, gnomon_number_print_f64(value, text)));
    return end_field(table);
}

gnomon_status gnomon_table_text(gnomon_table *table, const char *text)
{
    GNOMON_NEED(NULL, table, "table");
    GNOMON_NEED(table->ctx, text, "text");
    GNOMON_TRY(table->tabs || table->terminal ? put_escaped(table, text) : put_quoted(table, text));
    return end_field(table);
}

gnomon_status gnomon_table_finish(gnomon_table *table)
{
    GNOMON_NEED(NULL, table, "table");
    gnomon_context *ctx = table->ctx;
    gnomon_sink *sink = table->sink;
    const int at = table->at, columns = table->columns;
    gnomon_free(ctx, table);
    if (at == 0) return gnomon_sink_finish(sink);
    gnomon_sink_abort(sink);
    return gnomon_fail(ctx, GNOMON_ERROR_SHAPE, "the last line has %d fields; it must have %d", at,
                       columns);
}

void gnomon_table_abort(gnomon_table *table)
{
    if (table == NULL) return;
    gnomon_sink_abort(table->sink);
    gnomon_free(table->ctx, table);
}
