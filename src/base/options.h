/* base/options.h: structs of the public interface whose first member is their size. */
#ifndef GNOMON_BASE_OPTIONS_H
#define GNOMON_BASE_OPTIONS_H

#include <gnomon/base.h>

/* Copies the options that a caller gave over *options, which holds this library's defaults and is
 * 'size' bytes. A caller built with an older header gave fewer members: the rest stay defaults. One
 * built with a newer gave more: what this library does not know is not read. init names the macro
 * to start from. Error: ARGUMENT when given's struct_size cannot be one. */
gnomon_status gnomon_copy_options(gnomon_context *ctx, const void *given, const char *init,
                                  void *options, size_t size);

/* Fills a caller's struct of 'size' bytes with the defaults: what its version has of them, zeros
 * behind. Errors: ARGUMENT (options NULL; a size that can't be one). */
gnomon_status gnomon_fill_options(void *options, size_t size, const void *defaults, size_t known);

/* Defines the public TYPE_init from the macro beside it. */
#define GNOMON_OPTIONS_INIT(type, macro)                                       \
    gnomon_status type##_init(type *options, size_t size)                      \
    {                                                                          \
        const type defaults = macro;                                           \
        return gnomon_fill_options(options, size, &defaults, sizeof defaults); \
    }

/* That out's struct_size, set by the caller, is this library's. Error: ARGUMENT. */
gnomon_status gnomon_check_out(gnomon_context *ctx, size_t struct_size, size_t size);

#endif
