/* base/options.h: structs of the public interface whose first member is their size. The rule stands
 * in gnomon/base.h; nothing else reads a struct_size.
 *
 * A later version of such a struct adds members at its end, never in the padding there, and 0 is
 * what a new member of options does by default. */
#ifndef GNOMON_BASE_OPTIONS_H
#define GNOMON_BASE_OPTIONS_H

#include <gnomon/base.h>

#include <stdbool.h>

/* ---- options: what a caller gives ---- */

/* Copies the struct that a caller gave over *options, which holds this library's defaults and is
 * 'size' bytes: members that the caller's version has not stay as they are. 'name' is the
 * argument's, 'type' the struct's. Errors: ARGUMENT (given is NULL; its struct_size can't be one;
 * a longer one sets a member that this library does not know). */
gnomon_status gnomon_copy_options(gnomon_context *ctx, const char *name, const char *type,
                                  const void *given, void *options, size_t size);
#define GNOMON_COPY_OPTIONS(ctx, name, type, given, options) \
    gnomon_copy_options(ctx, name, #type, (const type *){given}, (type *){options}, sizeof(type))

/* The same for one that stands inside another struct, which holds the caller's in *options: its
 * place has this version's size, so that a longer one is an error too. */
gnomon_status gnomon_complete_options(gnomon_context *ctx, const char *name, const char *type,
                                      void *options, const void *defaults, size_t size);
#define GNOMON_COMPLETE_OPTIONS(ctx, name, type, options, defaults)                        \
    gnomon_complete_options(ctx, name, #type, (type *){options}, (const type *){defaults}, \
                            sizeof(type))

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

/* ---- results: what a caller gets ---- */

/* Checks the struct that a result is to be written to, and clears it but for its struct_size.
 * Error: ARGUMENT (out is NULL; its struct_size can't be one). */
gnomon_status gnomon_open_result(gnomon_context *ctx, const char *name, const char *type,
                                 void *out);
#define GNOMON_OPEN_RESULT(ctx, name, type, out) gnomon_open_result(ctx, name, #type, (type *){out})

/* Writes a result of 'size' bytes to a caller's struct: what its version has of it, zeros behind.
 * Nothing where out is NULL or its struct_size can't be one. */
void gnomon_write_result(void *out, const void *full, size_t size);

/* The same for a result that owns memory: what was written is cleared in *full, which keeps, to be
 * freed, what did not fit. */
void gnomon_return_result(void *out, void *full, size_t size);

/* Reads a result back, to free what it owns: members that the caller's version has not are 0. False
 * when out is NULL or its struct_size can't be one. */
bool gnomon_load_result(const void *out, void *full, size_t size);

/* Clears a caller's struct but for its struct_size, which gnomon_open_result or
 * gnomon_load_result has found good. */
void gnomon_clear_result(void *out);

#endif
