#include "io/arrays/sparse.h"

#include <string.h>

/* ---- batches ---- */

void gnomon_batch_start(gnomon_batch *batch, gnomon_context *ctx)
{
    *batch = (gnomon_batch){.ctx = ctx, .dtype = GNOMON_F32};
}

void gnomon_batch_free(gnomon_batch *batch)
{
    gnomon_free(batch->ctx, batch->offsets);
    gnomon_free(batch->ctx, batch->indices);
    gnomon_free(batch->ctx, batch->values);
    gnomon_batch_start(batch, batch->ctx);
}

void gnomon_batch_clear(gnomon_batch *batch, gnomon_dtype dtype)
{
    batch->dtype = dtype == GNOMON_F64 ? GNOMON_F64 : GNOMON_F32;
    batch->rows = batch->nonzeros = 0;
}

gnomon_status gnomon_batch_reserve(gnomon_batch *batch, int64_t count)
{
    int64_t needed, wider;
    if (!gnomon_add(batch->nonzeros, count, &needed) || needed > INT64_MAX / 4)
        return gnomon_fail(batch->ctx, GNOMON_ERROR_OVERFLOW, "more entries than memory can count");
    if (needed <= batch->capacity) return GNOMON_OK;
    wider = needed + needed / 2 + 1024;
    int64_t used = batch->nonzeros;
    /* values first: capacity only grows when both have */
    GNOMON_TRY(
        gnomon_grow(batch->ctx, &batch->values, used, wider, sizeof(double), "sparse values"));
    GNOMON_TRY(
        gnomon_grow(batch->ctx, &batch->indices, used, wider, sizeof(int64_t), "sparse indices"));
    batch->capacity = wider;
    return GNOMON_OK;
}

gnomon_status gnomon_batch_entry(gnomon_batch *batch, int64_t col, double value)
{
    if (batch->nonzeros == batch->capacity) GNOMON_TRY(gnomon_batch_reserve(batch, 1));
    batch->indices[batch->nonzeros] = col;
    if (batch->dtype == GNOMON_F64)
        ((double *)batch->values)[batch->nonzeros] = value;
    else
        ((float *)batch->values)[batch->nonzeros] = (float)value;
    batch->nonzeros++;
    return GNOMON_OK;
}

static gnomon_status row_room(gnomon_batch *batch)
{
    if (batch->offsets != NULL && batch->rows < batch->row_capacity) return GNOMON_OK;
    int64_t wider = batch->rows + batch->rows / 2 + 255;
    GNOMON_TRY(gnomon_grow(batch->ctx, &batch->offsets,
                           batch->offsets != NULL ? batch->rows + 1 : 0, wider + 1, sizeof(int64_t),
                           "sparse offsets"));
    batch->offsets[0] = 0;
    batch->row_capacity = wider;
    return GNOMON_OK;
}

gnomon_status gnomon_batch_end_row(gnomon_batch *batch)
{
    GNOMON_TRY(row_room(batch));
    batch->offsets[++batch->rows] = batch->nonzeros;
    return GNOMON_OK;
}

void gnomon_batch_drop_row(gnomon_batch *batch)
{
    batch->nonzeros = batch->rows > 0 ? batch->offsets[batch->rows] : 0;
}

gnomon_csr gnomon_batch_csr(const gnomon_batch *batch, int64_t cols)
{
    static const int64_t none[1] = {0};
    return (gnomon_csr){.rows = batch->rows,
                        .cols = cols,
                        .offsets = batch->offsets != NULL ? batch->offsets : none,
                        .indices = batch->indices,
                        .values = batch->values,
                        .dtype = batch->dtype};
}

/* ---- gathering ---- */

void gnomon_gather_start(gnomon_gather *gather, gnomon_context *ctx)
{
    *gather = (gnomon_gather){.ctx = ctx, .sorted = true};
    gnomon_batch_start(&gather->batch, ctx);
}

void gnomon_gather_free(gnomon_gather *gather)
{
    if (gather->ctx == NULL) return;
    gnomon_free(gather->ctx, gather->entries);
    gnomon_batch_free(&gather->batch);
    *gather = (gnomon_gather){0};
}

gnomon_status gnomon_gather_add(gnomon_gather *gather, int64_t row, int64_t col, double value)
{
    if (gather->count == gather->capacity) {
        int64_t wider = gather->count + gather->count / 2 + 1024;
        GNOMON_TRY(gnomon_grow(gather->ctx, &gather->entries, gather->count, wider,
                               sizeof(gnomon_entry), "the entries of a sparse matrix"));
        gather->capacity = wider;
    }
    if (gather->count > 0 && row < gather->entries[gather->count - 1].row) gather->sorted = false;
    gather->entries[gather->count++] = (gnomon_entry){row, col, value};
    return GNOMON_OK;
}

enum { DIGIT = 11, BUCKETS = 1 << DIGIT };

/* One stable pass by DIGIT bits of the row. */
static void sort_pass(const gnomon_entry *from, gnomon_entry *to, int64_t count, int shift)
{
    int64_t at[BUCKETS] = {0};
    for (int64_t i = 0; i < count; i++)
        at[from[i].row >> shift & (BUCKETS - 1)]++;
    int64_t sum = 0;
    for (int b = 0; b < BUCKETS; b++) {
        int64_t here = at[b];
        at[b] = sum;
        sum += here;
    }
    for (int64_t i = 0; i < count; i++)
        to[at[from[i].row >> shift & (BUCKETS - 1)]++] = from[i];
}

gnomon_status gnomon_gather_finish(gnomon_gather *gather)
{
    gather->row = gather->at = 0;
    if (gather->sorted) return GNOMON_OK;
    int64_t largest = 0;
    for (int64_t i = 0; i < gather->count; i++)
        if (gather->entries[i].row > largest) largest = gather->entries[i].row;
    gnomon_entry *other;
    GNOMON_TRY(gnomon_alloc(gather->ctx, gather->count, sizeof *other,
                            "sorting the entries of a sparse matrix", &other));
    gnomon_entry *from = gather->entries;
    for (int shift = 0; shift < 63 && largest >> shift > 0; shift += DIGIT) {
        sort_pass(from, other, gather->count, shift);
        gnomon_entry *swap = from;
        from = other;
        other = swap;
    }
    gnomon_free(gather->ctx, other);
    gather->entries = from;
    gather->capacity = gather->count;
    gather->sorted = true;
    return GNOMON_OK;
}

gnomon_status gnomon_gather_next(gnomon_gather *gather, const gnomon_reader *reader,
                                 int64_t max_rows, int64_t max_nonzeros, gnomon_csr *csr)
{
    /* so that a header that claims countless empty points costs little memory */
    enum { MOST_ROWS = 1 << 16 };
    if (max_rows > MOST_ROWS) max_rows = MOST_ROWS;
    gnomon_batch *batch = &gather->batch;
    gnomon_batch_clear(batch, reader->csr_dtype);
    const gnomon_entry *entries = gather->entries;
    while (gather->row < reader->info.rows && batch->rows < max_rows) {
        int64_t stop = gather->at;
        while (stop < gather->count && entries[stop].row == gather->row)
            stop++;
        if (batch->rows > 0 && stop - gather->at > max_nonzeros - batch->nonzeros) break;
        GNOMON_TRY(gnomon_batch_reserve(batch, stop - gather->at));
        for (int64_t i = gather->at; i < stop; i++)
            GNOMON_TRY(gnomon_batch_entry(batch, entries[i].col, entries[i].value));
        GNOMON_TRY(gnomon_batch_end_row(batch));
        gather->at = stop;
        gather->row++;
    }
    *csr = gnomon_batch_csr(batch, reader->info.cols);
    return GNOMON_OK;
}

void gnomon_gather_seek(gnomon_gather *gather, int64_t row)
{
    int64_t low = 0, high = gather->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (gather->entries[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    gather->row = row;
    gather->at = low;
}
