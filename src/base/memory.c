#include "base/memory.h"

#include "base/context.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Each block begins with a header of GNOMON_ALIGN bytes that holds its whole size. */
enum { HEADER = GNOMON_ALIGN };

bool gnomon_mul(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool gnomon_add(int64_t a, int64_t b, int64_t *out)
{
    return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

int64_t gnomon_times(int64_t a, int64_t b)
{
    int64_t out;
    return gnomon_mul(a, b, &out) ? out : -1;
}

int64_t gnomon_plus(int64_t a, int64_t b)
{
    int64_t out;
    return gnomon_add(a, b, &out) ? out : -1;
}

static void *acquire(gnomon_context *ctx, size_t size)
{
    if (ctx->custom_allocator)
        return ctx->allocator.allocate(ctx->allocator.user, size, GNOMON_ALIGN);
    return aligned_alloc(GNOMON_ALIGN, size);
}

/* A block of so many bytes with its header, a multiple of GNOMON_ALIGN; NULL: there is no memory.
 */
static void *open_block(gnomon_context *ctx, int64_t whole)
{
    unsigned char *block = acquire(ctx, (size_t)whole);
    if (!block) return NULL;
    memcpy(block, &whole, sizeof whole);
    return block + HEADER;
}

gnomon_status gnomon_alloc(gnomon_context *ctx, int64_t count, size_t size, const char *what,
                           void *out)
{
    void *none = NULL;
    memcpy(out, &none, sizeof none);
    if (count == 0) return GNOMON_OK;
    int64_t bytes, whole;
    GNOMON_FAIL_IF(count < 0, ctx, GNOMON_ERROR_OVERFLOW, "%s: more elements than memory can count",
                   what);
    if (size > INT64_MAX || !gnomon_mul(count, (int64_t)size, &bytes) ||
        !gnomon_add(bytes, HEADER + GNOMON_ALIGN - 1, &whole) || (uint64_t)whole > SIZE_MAX)
        return gnomon_fail(ctx, GNOMON_ERROR_OVERFLOW,
                           "%s: %" PRId64 " elements of %zu bytes is more than memory can count",
                           what, count, size);
    whole = whole / GNOMON_ALIGN * GNOMON_ALIGN; /* aligned_alloc wants a multiple */
    void *block = open_block(ctx, whole);
    GNOMON_FAIL_IF(!block, ctx, GNOMON_ERROR_MEMORY,
                   "%s: no memory for %" PRId64 " elements of %zu bytes", what, count, size);
    memcpy(out, &block, sizeof block);
    return GNOMON_OK;
}

void *gnomon_alloc_quietly(gnomon_context *ctx, int64_t bytes)
{
    int64_t whole;
    if (bytes <= 0 || !gnomon_add(bytes, HEADER + GNOMON_ALIGN - 1, &whole) ||
        (uint64_t)whole > SIZE_MAX)
        return NULL;
    return open_block(ctx, whole / GNOMON_ALIGN * GNOMON_ALIGN);
}

gnomon_status gnomon_alloc_zero(gnomon_context *ctx, int64_t count, size_t size, const char *what,
                                void *out)
{
    GNOMON_TRY(gnomon_alloc(ctx, count, size, what, out));
    void *block;
    memcpy(&block, out, sizeof block);
    if (block) memset(block, 0, (size_t)count * size);
    return GNOMON_OK;
}

gnomon_status gnomon_grow(gnomon_context *ctx, void *pointer, int64_t old_count, int64_t new_count,
                          size_t size, const char *what)
{
    void *old, *grown;
    memcpy(&old, pointer, sizeof old);
    GNOMON_TRY(gnomon_alloc(ctx, new_count, size, what, &grown));
    const int64_t kept = old_count < new_count ? old_count : new_count;
    if (old && grown && kept > 0) memcpy(grown, old, (size_t)kept * size);
    gnomon_free(ctx, old);
    memcpy(pointer, &grown, sizeof grown);
    return GNOMON_OK;
}

gnomon_status gnomon_renew(gnomon_context *ctx, void *pointer, int64_t *room, int64_t new_count,
                           size_t size, const char *what)
{
    void *old;
    if (new_count >= 0 && new_count <= *room) return GNOMON_OK;
    memcpy(&old, pointer, sizeof old);
    gnomon_free(ctx, old); /* first: both need not be there at once */
    *room = 0;
    GNOMON_TRY(gnomon_alloc(ctx, new_count, size, what, pointer));
    *room = new_count;
    return GNOMON_OK;
}

void gnomon_free(gnomon_context *ctx, void *pointer)
{
    if (!pointer) return;
    unsigned char *block = (unsigned char *)pointer - HEADER;
    int64_t whole;
    memcpy(&whole, block, sizeof whole);
    if (ctx->custom_allocator)
        ctx->allocator.release(ctx->allocator.user, block, (size_t)whole);
    else
        free(block);
}

void gnomon_expect_use(gnomon_context *ctx, void *pointer, int64_t bytes)
{
#if defined(MADV_HUGEPAGE)
    const uintptr_t large = (uintptr_t)1 << 21, mask = ~(large - 1);
    const uintptr_t at = (uintptr_t)pointer;
    if (ctx->custom_allocator || pointer == NULL || bytes < (int64_t)(2 * large)) return;
    const uintptr_t begin = (at + large - 1) & mask, end = (at + (uintptr_t)bytes) & mask;
    if (end > begin) (void)madvise((char *)pointer + (begin - at), end - begin, MADV_HUGEPAGE);
#else
    (void)ctx;
    (void)pointer;
    (void)bytes;
#endif
}

gnomon_status gnomon_copy_text(gnomon_context *ctx, const char *text, char **out)
{
    const size_t length = strlen(text) + 1;
    GNOMON_TRY(gnomon_alloc(ctx, (int64_t)length, 1, "a text", out));
    memcpy(*out, text, length);
    return GNOMON_OK;
}
