#include "base/error.h"

#include "base/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Where failures go while there is no context to hold them. */
static _Thread_local char thread_error[GNOMON_ERROR_TEXT];

static char *slot(gnomon_context *ctx)
{
    return ctx ? ctx->error : thread_error;
}

gnomon_status gnomon_fail(gnomon_context *ctx, gnomon_status status, const char *format, ...)
{
    /* An argument may be the old text itself. */
    char text[GNOMON_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(slot(ctx), text, sizeof text);
    return status;
}

gnomon_status gnomon_fail_prefix(gnomon_context *ctx, gnomon_status status, const char *format, ...)
{
    char text[GNOMON_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, ": %s", slot(ctx));
    memcpy(slot(ctx), text, sizeof text);
    return status;
}

const char *gnomon_last_error(const gnomon_context *ctx)
{
    return ctx ? ctx->error : thread_error;
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
        NAME(GNOMON_ERROR_CANCELLED);
        NAME(GNOMON_ERROR_INTERNAL);
#undef NAME
    }
    return "GNOMON_UNKNOWN_STATUS";
}
