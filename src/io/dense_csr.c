#include "io/dense_csr.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"

enum { BLOCK = 1 << 18 /* coordinates read at a time */ };

/* The type that holds all of a stored type's numbers. */
static gnomon_dtype held_as(gnomon_dtype stored)
{
    return stored == GNOMON_F32 || gnomon_dtype_size(stored) < 4 ? GNOMON_F32 : GNOMON_F64;
}

/* Room for so many more rows of so many entries at most. */
static gnomon_status reserve(gnomon_context *ctx, gnomon_dense_csr *h, int64_t rows,
                             int64_t entries, size_t size)
{
    GNOMON_FAIL_IF(rows < 0 || entries < 0, ctx, GNOMON_ERROR_OVERFLOW,
                   "more sparse points than can be counted");
    if (rows + 1 > h->offset_room) {
        const int64_t room = gnomon_max(rows + 1, 2 * h->offset_room);
        GNOMON_TRY(
            gnomon_grow(ctx, &h->offsets, h->offset_room, room, sizeof *h->offsets, "offsets"));
        h->offset_room = room;
    }
    if (entries > h->entry_room) {
        const int64_t room = gnomon_max(entries, h->entry_room + h->entry_room / 2);
        GNOMON_TRY(
            gnomon_grow(ctx, &h->indices, h->entry_room, room, sizeof *h->indices, "columns"));
        GNOMON_TRY(gnomon_grow(ctx, &h->values, h->entry_room, room, size, "values"));
        h->entry_room = room;
    }
    return GNOMON_OK;
}

#define APPEND(type)                                             \
    do {                                                         \
        const type *from = (const type *)held->block + i * cols; \
        for (int64_t j = 0; j < cols; j++) {                     \
            if (from[j] == 0) continue;                          \
            held->indices[entries] = j;                          \
            ((type *)held->values)[entries++] = from[j];         \
        }                                                        \
    } while (0)

gnomon_status gnomon_dense_csr_next(gnomon_reader *reader, gnomon_dense_csr *held, int64_t max_rows,
                                    int64_t max_nonzeros, gnomon_csr *csr)
{
    gnomon_context *ctx = reader->ctx;
    const int64_t cols = reader->info.cols, width = gnomon_max(cols, 1);
    const gnomon_dtype dtype = held_as(reader->info.dtype);
    const size_t size = gnomon_dtype_size(dtype);
    const int64_t each = gnomon_max(BLOCK / width, 1);
    int64_t rows = 0, entries = 0;
    if (held->block == NULL)
        GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(each, width), size, "points", &held->block));
    GNOMON_TRY(reserve(ctx, held, 0, 1, size));
    held->offsets[0] = 0;
    while (rows < max_rows && (rows == 0 || entries <= max_nonzeros - width)) {
        int64_t got = 0, some = gnomon_min(each, max_rows - rows);
        some = gnomon_max(gnomon_min(some, (max_nonzeros - entries) / width), 1);
        const gnomon_matrix block = gnomon_matrix_rowmajor(held->block, dtype, some, cols);
        GNOMON_TRY(reserve(ctx, held, gnomon_plus(rows, some),
                           gnomon_plus(entries, gnomon_times(some, width)), size));
        GNOMON_TRY(reader->format->next(reader, &block, &got));
        if (got == 0) break;
        for (int64_t i = 0; i < got; i++) {
            if (dtype == GNOMON_F32)
                APPEND(float);
            else
                APPEND(double);
            held->offsets[++rows] = entries;
        }
    }
    *csr = (gnomon_csr){rows, cols, held->offsets, held->indices, held->values, dtype};
    return GNOMON_OK;
}

void gnomon_dense_csr_free(gnomon_context *ctx, gnomon_dense_csr *held)
{
    gnomon_free(ctx, held->block);
    gnomon_free(ctx, held->offsets);
    gnomon_free(ctx, held->indices);
    gnomon_free(ctx, held->values);
}
