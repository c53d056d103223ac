/* base/error.h: how code inside the library reports a failure. */
#ifndef GNOMON_BASE_ERROR_H
#define GNOMON_BASE_ERROR_H

#include <gnomon/base.h>

/* What a format marks. It begins with the argument that the text is about,
 *     GNOMON_ARG("options.k") " is %d; it must be positive"
 *     GNOMON_ARG("%s") ": the file is empty"                   (an argument or a file)
 * or with one that the text does not name, in plain letters:
 *     GNOMON_ABOUT("method") "there is no hashing of this"
 * and numbers of a row and a column, counted from 0, stand behind GNOMON_AT_ROW and GNOMON_AT_COL:
 *     GNOMON_ARG("x") " has NaN in row " GNOMON_AT_ROW "%d"
 * Callers find them by gnomon_last_error_argument and gnomon_last_error_place. */
#define GNOMON_MARK_ARGUMENT "\x01"
#define GNOMON_MARK_END      "\x02"
#define GNOMON_MARK_HIDDEN   "\x03"
#define GNOMON_ARG(name)     GNOMON_MARK_ARGUMENT name GNOMON_MARK_END
#define GNOMON_ABOUT(name)   GNOMON_MARK_ARGUMENT name GNOMON_MARK_HIDDEN
#define GNOMON_AT_ROW        "\x04"
#define GNOMON_AT_COL        "\x05"

/* Stores the formatted text as the context's last error and returns status, so that
 * 'return gnomon_fail(ctx, GNOMON_ERROR_SHAPE, "...", ...)' is one line. The text names
 * the argument, its value and what is allowed; no final full stop, no newline. With
 * ctx NULL the text goes to the thread's own slot. */
gnomon_status gnomon_fail(gnomon_context *ctx, gnomon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the context's last error and returns status unchanged. The argument stays,
 * unless the prefix marks one. */
gnomon_status gnomon_fail_prefix(gnomon_context *ctx, gnomon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names what the last error is about, beside its text. */
void gnomon_fail_about(gnomon_context *ctx, const char *argument, int64_t row, int64_t col);

/* The context's last error becomes the thread's: the context will be gone. */
void gnomon_fail_without(const gnomon_context *ctx);

/* Returns from the calling function when expr is not GNOMON_OK. */
#define GNOMON_TRY(expr)                                                \
    do {                                                                \
        gnomon_status gnomon_try_status_ = (expr);                      \
        if (gnomon_try_status_ != GNOMON_OK) return gnomon_try_status_; \
    } while (0)

/* Returns status with a text when cond holds. */
#define GNOMON_FAIL_IF(cond, ctx, status, ...)                  \
    do {                                                        \
        if (cond) return gnomon_fail(ctx, status, __VA_ARGS__); \
    } while (0)

/* Returns ARGUMENT when a pointer that a call can't do without is NULL; name is the argument's in
 * the public header. For the context itself, ctx is NULL here. */
#define GNOMON_NEED(ctx, pointer, name) \
    GNOMON_FAIL_IF((pointer) == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("%s") " is NULL", name)

#endif
