#include "base/options.h"

#include "base/error.h"

#include <string.h>

gnomon_status gnomon_copy_options(gnomon_context *ctx, const void *given, const char *init,
                                  void *options, size_t size)
{
    size_t given_size;
    memcpy(&given_size, given, sizeof given_size);
    GNOMON_FAIL_IF(given_size < sizeof(size_t), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.struct_size") " is %zu; fill options with %s", given_size,
                   init);
    memcpy(options, given, given_size < size ? given_size : size);
    memcpy(options, &size, sizeof size);
    return GNOMON_OK;
}

gnomon_status gnomon_fill_options(void *options, size_t size, const void *defaults, size_t known)
{
    GNOMON_NEED(NULL, options, "options");
    GNOMON_FAIL_IF(size < sizeof size, NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("size") " is %zu; it must be the size of the struct, at least %zu",
                   size, sizeof size);
    memset(options, 0, size);
    memcpy(options, defaults, size < known ? size : known);
    memcpy(options, &size, sizeof size);
    return GNOMON_OK;
}

gnomon_status gnomon_check_out(gnomon_context *ctx, size_t struct_size, size_t size)
{
    GNOMON_FAIL_IF(struct_size != size, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("out.struct_size") " is %zu; this library's is %zu", struct_size,
                   size);
    return GNOMON_OK;
}
