/* very-sparse (Li, Hastie and Church 2006): each row of a chunk is walked by geometric jumps. */
#include "base/error.h"
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

#include <math.h>

/* How far the walk goes on for this word. nl * c is not negative, so the conversion floors. */
static int64_t advance(const gnomon_simple *a, uint32_t word)
{
    return 1 + (int64_t)(gnomon_neglog(word >> 1) * a->jump_scale);
}

static int64_t columns_in_chunk(const gnomon_simple *a, int64_t chunk)
{
    const int64_t left = a->cols - chunk * a->chunk;
    return left < a->chunk ? left : a->chunk;
}

int64_t gnomon_very_sparse_walk(const gnomon_simple *a, int64_t row, int64_t chunk,
                                uint32_t *positions, uint8_t *negative)
{
    const int64_t end = columns_in_chunk(a, chunk);
    int64_t count = 0;
    int64_t x = -1;
    for (uint32_t t = 0;; t++) {
        const gnomon_words call = gnomon_call_general(a, GNOMON_TAG_VERY_SPARSE,
                                                      (uint32_t)(row >> 2), (uint64_t)chunk, t);
        const uint32_t w = call.w[row & 3];
        x += advance(a, w);
        if (x >= end) return count;
        positions[count] = (uint32_t)x;
        negative[count] = w & 1;
        count++;
    }
}

/* Rows 4 group + r for first <= r < last walk together, for they share their calls. */
static void each_in_chunk(const gnomon_simple *a, int64_t group, int first, int last, int64_t chunk,
                          int64_t begin, int64_t end, gnomon_entry_fn fn, void *arg)
{
    int64_t x[4] = {-1, -1, -1, -1};
    int walking = last - first;
    for (uint32_t t = 0; walking > 0; t++) {
        const gnomon_words call =
            gnomon_call_general(a, GNOMON_TAG_VERY_SPARSE, (uint32_t)group, (uint64_t)chunk, t);
        for (int r = first; r < last; r++) {
            if (x[r] >= end) continue;
            x[r] += advance(a, call.w[r]);
            if (x[r] >= end)
                walking--;
            else if (x[r] >= begin)
                fn(arg, 4 * group + r, chunk * a->chunk + x[r], (call.w[r] & 1) != 0);
        }
    }
}

static void each(const gnomon_simple *a, int64_t row, int64_t rows, int64_t col, int64_t cols,
                 gnomon_entry_fn fn, void *arg)
{
    if (rows == 0 || cols == 0) return;
    for (int64_t group = row >> 2; group <= (row + rows - 1) >> 2; group++) {
        const int first = (int)(4 * group < row ? row - 4 * group : 0);
        const int last = (int)(row + rows - 4 * group < 4 ? row + rows - 4 * group : 4);
        for (int64_t chunk = col / a->chunk; chunk <= (col + cols - 1) / a->chunk; chunk++) {
            const int64_t origin = chunk * a->chunk;
            const int64_t begin = col > origin ? col - origin : 0;
            const int64_t end = col + cols - origin < a->chunk ? col + cols - origin : a->chunk;
            each_in_chunk(a, group, first, last, chunk, begin, end, fn, arg);
        }
    }
}

static gnomon_status check(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->density == 0.0) return GNOMON_OK;
    GNOMON_FAIL_IF(!(d->density >= 0x1p-30 && d->density <= 1.0), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("density") " is %.17g; it must be at least 2^-30 and at most 1",
                   d->density);
    return GNOMON_OK;
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    (void)ctx;
    a->density = d->density == 0.0 ? 1.0 / sqrt((double)a->cols) : d->density;
    a->fill = a->density;
    const double p256 = 256.0 * a->density;
    const double pieces = floor(24.0 / p256 + 0.5);
    const double length = 256.0 * (pieces > 1.0 ? pieces : 1.0);
    a->chunk = length < 0x1p22 ? (int64_t)length : INT64_C(1) << 22;
    a->jump_scale = gnomon_jump_scale(a->density);
    return GNOMON_OK;
}

static double column_norm(const gnomon_simple *a, double rows)
{
    return rows * a->density;
}

const gnomon_kind_row gnomon_kind_row_very_sparse = {
    .info = {.kind = GNOMON_VERY_SPARSE,
             .name = "very-sparse",
             .about = "for dense data",
             .uses = GNOMON_USES_DENSITY,
             .flags = GNOMON_KIND_INNER | GNOMON_KIND_FAST},
    .check = check,
    .set_up = set_up,
    .column_norm = column_norm,
    .unscaled = 1.0,
    .each = each,
};
