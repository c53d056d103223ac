/* base/error.h: how code inside the library reports a failure. */
#ifndef GNOMON_BASE_ERROR_H
#define GNOMON_BASE_ERROR_H

#include <gnomon/base.h>

/* Stores the formatted text as the context's last error and returns status, so that
 * 'return gnomon_fail(ctx, GNOMON_ERROR_SHAPE, "...", ...)' is one line. The text names
 * the argument, its value and what is allowed; no final full stop, no newline. With
 * ctx NULL the text goes to the thread's own slot. */
gnomon_status gnomon_fail(gnomon_context *ctx, gnomon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the context's last error and returns status unchanged. */
gnomon_status gnomon_fail_prefix(gnomon_context *ctx, gnomon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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
    GNOMON_FAIL_IF((pointer) == NULL, ctx, GNOMON_ERROR_ARGUMENT, "%s is NULL", name)

#endif
