#include "base/error.h"

#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where failures go while there is no context to hold them. */
static _Thread_local gnomon_error thread_error = {.row = -1, .col = -1};

static gnomon_error *slot(gnomon_context *ctx)
{
    return ctx ? &ctx->error : &thread_error;
}

static const gnomon_error *slot_of(const gnomon_context *ctx)
{
    return ctx ? &ctx->error : &thread_error;
}

/* The number that the text has behind what the format makes up to some place; -1: none. */
static int64_t number_behind(const char *format, va_list args, const char *text)
{
    va_list again;
    va_copy(again, args);
    const int before = vsnprintf(NULL, 0, format, again);
    va_end(again);
    return before < 0 || (size_t)before >= strlen(text) ? -1 : strtoll(text + before, NULL, 10);
}

/* Text, argument, row and column of a format with its marks. */
static void make(gnomon_error *e, const char *format, va_list args)
{
    char plain[GNOMON_ERROR_TEXT];
    size_t used = 0, row = 0, col = 0;
    va_list again;
    *e = (gnomon_error){.row = -1, .col = -1};
    for (const char *c = format; *c && used < sizeof plain - 1; c++) {
        if (*c == GNOMON_MARK_ARGUMENT[0]) continue;
        if (*c == GNOMON_MARK_END[0] || *c == GNOMON_MARK_HIDDEN[0]) {
            plain[used] = 0;
            va_copy(again, args);
            vsnprintf(e->argument, sizeof e->argument, plain, again);
            va_end(again);
            if (*c == GNOMON_MARK_HIDDEN[0]) used = 0;
        } else if (*c == GNOMON_AT_ROW[0]) {
            row = used;
        } else if (*c == GNOMON_AT_COL[0]) {
            col = used;
        } else {
            plain[used++] = *c;
        }
    }
    plain[used] = 0;
    va_copy(again, args);
    vsnprintf(e->text, sizeof e->text, plain, again);
    va_end(again);
    if (col > 0) {
        plain[col] = 0;
        e->col = number_behind(plain, args, e->text);
    }
    if (row > 0) {
        plain[row] = 0;
        e->row = number_behind(plain, args, e->text);
    }
}

gnomon_status gnomon_fail(gnomon_context *ctx, gnomon_status status, const char *format, ...)
{
    gnomon_error e; /* an argument may be the old text itself */
    va_list args;
    va_start(args, format);
    make(&e, format, args);
    va_end(args);
    *slot(ctx) = e;
    return status;
}

gnomon_status gnomon_fail_prefix(gnomon_context *ctx, gnomon_status status, const char *format, ...)
{
    gnomon_error *const old = slot(ctx);
    gnomon_error e;
    va_list args;
    va_start(args, format);
    make(&e, format, args);
    va_end(args);
    const size_t length = strlen(e.text);
    snprintf(e.text + length, sizeof e.text - length, ": %s", old->text);
    if (e.argument[0] == 0) memcpy(e.argument, old->argument, sizeof e.argument);
    e.row = old->row;
    e.col = old->col;
    *old = e;
    return status;
}

void gnomon_fail_about(gnomon_context *ctx, const char *argument, int64_t row, int64_t col)
{
    gnomon_error *const e = slot(ctx);
    snprintf(e->argument, sizeof e->argument, "%s", argument);
    e->row = row;
    e->col = col;
}

void gnomon_fail_without(const gnomon_context *ctx)
{
    thread_error = ctx->error;
}

const char *gnomon_last_error(const gnomon_context *ctx)
{
    return slot_of(ctx)->text;
}

const char *gnomon_last_error_argument(const gnomon_context *ctx)
{
    return slot_of(ctx)->argument;
}

void gnomon_last_error_place(const gnomon_context *ctx, int64_t *row, int64_t *col)
{
    if (row) *row = slot_of(ctx)->row;
    if (col) *col = slot_of(ctx)->col;
}

const char *gnomon_status_name(gnomon_status status)
{
    switch (status) {
#define NAME(status) \
    case status:     \
        return #status
        NAME(GNOMON_OK);
        NAME(GNOMON_ERROR_ARGUMENT);
        NAME(GNOMON_ERROR_SHAPE);
        NAME(GNOMON_ERROR_DTYPE);
        NAME(GNOMON_ERROR_OVERFLOW);
        NAME(GNOMON_ERROR_UNSUPPORTED);
        NAME(GNOMON_ERROR_BUSY);
        NAME(GNOMON_ERROR_DATA);
        NAME(GNOMON_ERROR_NONFINITE);
        NAME(GNOMON_ERROR_TRUNCATED);
        NAME(GNOMON_ERROR_FORMAT);
        NAME(GNOMON_ERROR_IO);
        NAME(GNOMON_ERROR_NOT_FOUND);
        NAME(GNOMON_ERROR_MEMORY);
        NAME(GNOMON_ERROR_DEVICE);
        NAME(GNOMON_ERROR_COMM);
        NAME(GNOMON_ERROR_CANCELLED);
        NAME(GNOMON_ERROR_INTERNAL);
#undef NAME
    }
    return "GNOMON_UNKNOWN_STATUS";
}
