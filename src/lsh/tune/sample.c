/* Some rows of points, drawn at random or named. */
#include "lsh/tune/tune.h"

#include "base/error.h"
#include "base/memory.h"
#include "operator/philox.h"

#include <string.h>

void gnomon_some_rows_draw(int64_t n, uint64_t seed, int64_t skip, int64_t count, int64_t *rows)
{
    const gnomon_simple key = {.key0 = (uint32_t)seed, .key1 = (uint32_t)(seed >> 32)};
    const gnomon_words a = gnomon_call(&key, GNOMON_TAG_LSH_KEY, 0, 0);
    const gnomon_words b = gnomon_call(&key, GNOMON_TAG_LSH_KEY, 0, 1);
    const uint32_t keys[6] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1]};
    int bits = 0;
    while ((int64_t)1 << bits < n)
        bits++;
    int64_t at = -skip;
    for (uint64_t x = 0; at < count; x++) {
        const int64_t row = (int64_t)gnomon_perm(x, bits, keys);
        if (row >= n) continue;
        if (at >= 0) rows[at] = row;
        at++;
    }
}

static gnomon_status copy_dense(gnomon_context *ctx, const gnomon_matrix *m,
                                gnomon_some_points *out)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    char *to = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(out->count, m->cols), (size_t)size, "a sample", &to));
    out->memory[0] = to;
    out->dense = gnomon_matrix_rowmajor(to, m->dtype, out->count, m->cols);
    for (int64_t i = 0; i < out->count; i++)
        gnomon_row_copy(m, out->rows[i], to + i * m->cols * size);
    out->points.dense = &out->dense;
    return GNOMON_OK;
}

static gnomon_status copy_sparse(gnomon_context *ctx, const gnomon_csr *m, gnomon_some_points *out)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    int64_t *offsets = NULL, *indices = NULL, entries = 0;
    char *values = NULL;
    for (int64_t i = 0; i < out->count; i++)
        entries += m->offsets[out->rows[i] + 1] - m->offsets[out->rows[i]];
    GNOMON_TRY(gnomon_alloc_zero(ctx, out->count + 1, sizeof *offsets, "a sample", &offsets));
    out->memory[0] = offsets;
    GNOMON_TRY(gnomon_alloc(ctx, entries, sizeof *indices, "a sample", &indices));
    out->memory[1] = indices;
    GNOMON_TRY(gnomon_alloc(ctx, entries, (size_t)size, "a sample", &values));
    out->memory[2] = values;
    for (int64_t i = 0; i < out->count; i++) {
        const int64_t from = m->offsets[out->rows[i]] - m->offsets[0];
        const int64_t count = m->offsets[out->rows[i] + 1] - m->offsets[out->rows[i]];
        const int64_t at = offsets[i];
        offsets[i + 1] = at + count;
        if (count == 0) continue;
        memcpy(indices + at, m->indices + from, (size_t)count * sizeof *indices);
        memcpy(values + at * size, (const char *)m->values + from * size, (size_t)(count * size));
    }
    out->sparse = (gnomon_csr){out->count, m->cols, offsets, indices, values, m->dtype};
    out->points.sparse = &out->sparse;
    return GNOMON_OK;
}

gnomon_status gnomon_some_points_draw(gnomon_context *ctx, const gnomon_points *all, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out)
{
    return gnomon_some_points_with(ctx, all, NULL, 0, seed, skip, count, out);
}

gnomon_status gnomon_some_points_with(gnomon_context *ctx, const gnomon_points *all,
                                      const int64_t *rows, int64_t named, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out)
{
    *out = (gnomon_some_points){.count = named + count};
    gnomon_status status = gnomon_alloc(ctx, out->count, sizeof *out->rows, "a sample", &out->rows);
    if (status == GNOMON_OK) {
        if (named > 0) memcpy(out->rows, rows, (size_t)named * sizeof *rows);
        gnomon_some_rows_draw(gnomon_points_rows(all), seed, skip, count, out->rows + named);
        status = all->dense ? copy_dense(ctx, all->dense, out) : copy_sparse(ctx, all->sparse, out);
    }
    if (status != GNOMON_OK) gnomon_some_points_free(ctx, out);
    return status;
}

void gnomon_some_points_free(gnomon_context *ctx, gnomon_some_points *some)
{
    gnomon_free(ctx, some->rows);
    for (int i = 0; i < 3; i++)
        gnomon_free(ctx, some->memory[i]);
    *some = (gnomon_some_points){0};
}
