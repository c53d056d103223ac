#include "base/options.h"

#include "base/error.h"

#include <string.h>

/* No struct of the interface is as long in any version: what claims to be was never filled. */
enum { LONGEST = 1 << 16 };

static size_t size_of(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    return size;
}

/* Whether a struct that begins with a size_t can have this size. */
static bool is_size(size_t size)
{
    return size >= sizeof(size_t) && size <= LONGEST && size % _Alignof(size_t) == 0;
}

static size_t lesser(size_t a, size_t b)
{
    return a < b ? a : b;
}

gnomon_status gnomon_copy_options(gnomon_context *ctx, const char *name, const char *type,
                                  const void *given, void *options, size_t size)
{
    GNOMON_NEED(ctx, given, name);
    const size_t given_size = size_of(given);
    GNOMON_FAIL_IF(!is_size(given_size), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.struct_size") " is %zu, which is no size of %s; fill it with "
                                                "its INIT macro or with %s_init",
                   name, given_size, type, type);
    for (size_t at = size; at < given_size; at++)
        GNOMON_FAIL_IF(((const unsigned char *)given)[at] != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("%s") " sets a member of %s that this version of the library "
                                        "does not know (byte %zu of %zu; it knows %zu)",
                       name, type, at, given_size, size);
    memcpy(options, given, lesser(given_size, size));
    memcpy(options, &size, sizeof size);
    return GNOMON_OK;
}

gnomon_status gnomon_complete_options(gnomon_context *ctx, const char *name, const char *type,
                                      void *options, const void *defaults, size_t size)
{
    const size_t given_size = size_of(options);
    GNOMON_FAIL_IF(!is_size(given_size) || given_size > size, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.struct_size") " is %zu; %s, %zu bytes, stands inside another "
                                                "struct: fill that with its INIT macro",
                   name, given_size, type, size);
    memcpy((char *)options + given_size, (const char *)defaults + given_size, size - given_size);
    memcpy(options, &size, sizeof size);
    return GNOMON_OK;
}

gnomon_status gnomon_fill_options(void *options, size_t size, const void *defaults, size_t known)
{
    GNOMON_NEED(NULL, options, "options");
    GNOMON_FAIL_IF(!is_size(size), NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("size") " is %zu; it must be the size of the struct, %zu to %d and a "
                                      "multiple of %zu",
                   size, sizeof size, LONGEST, _Alignof(size_t));
    memset(options, 0, size);
    memcpy(options, defaults, lesser(size, known));
    memcpy(options, &size, sizeof size);
    return GNOMON_OK;
}

gnomon_status gnomon_open_result(gnomon_context *ctx, const char *name, const char *type, void *out)
{
    GNOMON_NEED(ctx, out, name);
    GNOMON_FAIL_IF(!is_size(size_of(out)), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("%s.struct_size") " is %zu, which is no size of %s; set it to "
                                                "sizeof(%s)",
                   name, size_of(out), type, type);
    gnomon_clear_result(out);
    return GNOMON_OK;
}

void gnomon_write_result(void *out, const void *full, size_t size)
{
    const size_t head = sizeof(size_t);
    if (out == NULL || !is_size(size_of(out))) return;
    gnomon_clear_result(out);
    memcpy((char *)out + head, (const char *)full + head, lesser(size_of(out), size) - head);
}

void gnomon_return_result(void *out, void *full, size_t size)
{
    const size_t head = sizeof(size_t);
    gnomon_write_result(out, full, size);
    memset((char *)full + head, 0, lesser(size_of(out), size) - head);
}

bool gnomon_load_result(const void *out, void *full, size_t size)
{
    if (out == NULL || !is_size(size_of(out))) return false;
    memset(full, 0, size);
    memcpy(full, out, lesser(size_of(out), size));
    memcpy(full, &size, sizeof size);
    return true;
}

void gnomon_clear_result(void *out)
{
    const size_t head = sizeof(size_t);
    memset((char *)out + head, 0, size_of(out) - head);
}
