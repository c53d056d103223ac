/* base/memory.h: allocation through the context's allocator, with checked sizes. */
#ifndef GNOMON_BASE_MEMORY_H
#define GNOMON_BASE_MEMORY_H

#include <gnomon/base.h>

#include <stdbool.h>

enum { GNOMON_ALIGN = 64 };

/* *out = a * b (a + b); false when a factor is negative or the result does not fit. */
bool gnomon_mul(int64_t a, int64_t b, int64_t *out);
bool gnomon_add(int64_t a, int64_t b, int64_t *out);
/* a * b (a + b) as the count of an allocation: -1, which every allocation refuses with OVERFLOW,
 * where gnomon_mul (gnomon_add) fails. They nest: -1 stays -1. */
int64_t gnomon_times(int64_t a, int64_t b);
int64_t gnomon_plus(int64_t a, int64_t b);

/* Allocates count * size bytes aligned to GNOMON_ALIGN, not cleared; *out is NULL and
 * the status OK when count is 0. 'what' names the buffer in the error text. Errors:
 * OVERFLOW, MEMORY. Thread-safe except for the error text: call it from the thread that
 * made the library call, not from workers. */
gnomon_status gnomon_alloc(gnomon_context *ctx, int64_t count, size_t size, const char *what,
                           void *out /* really void ** of any type */);
/* So many bytes, or NULL without a text, from any thread: for memory that work can do without. */
void *gnomon_alloc_quietly(gnomon_context *ctx, int64_t bytes);
/* The same as gnomon_alloc, cleared. */
gnomon_status gnomon_alloc_zero(gnomon_context *ctx, int64_t count, size_t size, const char *what,
                                void *out);
/* Grows *pointer from old_count to new_count elements, keeping the old ones. On failure
 * *pointer is as before. */
gnomon_status gnomon_grow(gnomon_context *ctx, void *pointer, int64_t old_count, int64_t new_count,
                          size_t size, const char *what);
/* Room for new_count elements, *room of which are there: the block stays where it has them, else
 * another one takes its place, and what it held is lost. On failure *pointer is NULL, *room 0. */
gnomon_status gnomon_renew(gnomon_context *ctx, void *pointer, int64_t *room, int64_t new_count,
                           size_t size, const char *what);
/* Most of a block will be used soon: the system may give it large pages, whose first use takes less
 * time. A hint, not given for memory of the caller's allocator. */
void gnomon_expect_use(gnomon_context *ctx, void *pointer, int64_t bytes);
/* Frees what gnomon_alloc gave; NULL is allowed. The size is remembered by the block. */
void gnomon_free(gnomon_context *ctx, void *pointer);

/* strdup through the context's allocator. */
gnomon_status gnomon_copy_text(gnomon_context *ctx, const char *text, char **out);

#endif
