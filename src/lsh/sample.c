/* Random rows, and what the share of successes tells. */
#include "lsh/tune.h"

#include "base/error.h"
#include "base/memory.h"
#include "operator/philox.h"

#include <math.h>
#include <string.h>

static gnomon_status choose(gnomon_context *ctx, int64_t n, uint64_t seed, int64_t skip,
                            gnomon_some_points *out)
{
    const gnomon_simple key = {.key0 = (uint32_t)seed, .key1 = (uint32_t)(seed >> 32)};
    const gnomon_words a = gnomon_call(&key, GNOMON_TAG_LSH_KEY, 0, 0);
    const gnomon_words b = gnomon_call(&key, GNOMON_TAG_LSH_KEY, 0, 1);
    const uint32_t keys[6] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1]};
    int bits = 0;
    while ((int64_t)1 << bits < n)
        bits++;
    GNOMON_TRY(gnomon_alloc(ctx, out->count, sizeof *out->rows, "a sample", &out->rows));
    int64_t at = -skip;
    for (uint64_t x = 0; at < out->count; x++) {
        const int64_t row = (int64_t)gnomon_perm(x, bits, keys);
        if (row >= n) continue;
        if (at >= 0) out->rows[at] = row;
        at++;
    }
    return GNOMON_OK;
}

static gnomon_status copy_dense(gnomon_context *ctx, const gnomon_matrix *m,
                                gnomon_some_points *out)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    char *to = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, out->count * m->cols, (size_t)size, "a sample", &to));
    out->memory[0] = to;
    out->dense = gnomon_matrix_rowmajor(to, m->dtype, out->count, m->cols);
    for (int64_t i = 0; i < out->count; i++) {
        const char *from = gnomon_row_at(m, out->rows[i]);
        for (int64_t j = 0; j < m->cols; j++, to += size)
            memcpy(to, from + j * m->col_stride * size, (size_t)size);
    }
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

gnomon_status gnomon_some_points_take(gnomon_context *ctx, const gnomon_points *all, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out)
{
    *out = (gnomon_some_points){.count = count};
    gnomon_status status = choose(ctx, gnomon_points_rows(all), seed, skip, out);
    if (status == GNOMON_OK)
        status = all->dense ? copy_dense(ctx, all->dense, out) : copy_sparse(ctx, all->sparse, out);
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

/* P(X >= hits), by its terms; the largest is taken out of the sum. */
static double upper_tail(int64_t hits, int64_t trials, double p)
{
    int sign;
    double sum = 0;
    for (int64_t x = hits; x <= trials; x++) {
        const double n = (double)trials, i = (double)x;
        sum += exp(lgamma_r(n + 1, &sign) - lgamma_r(i + 1, &sign) - lgamma_r(n - i + 1, &sign) +
                   i * log(p) + (n - i) * log1p(-p));
    }
    return sum;
}

double gnomon_binomial_bound(int64_t hits, int64_t trials, double doubt)
{
    if (hits <= 0 || trials <= 0) return 0;
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (upper_tail(hits, trials, middle) < doubt)
            low = middle;
        else
            high = middle;
    }
    return low;
}
