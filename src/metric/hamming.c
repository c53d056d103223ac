/* How many bits differ. */
#include "metric/metric.h"

#include <string.h>

static double bits_apart(const gnomon_matrix *a, int64_t i, const gnomon_matrix *b, int64_t j)
{
    const uint8_t *x = gnomon_row_at(a, i), *y = gnomon_row_at(b, j);
    int64_t bits = 0, c = 0;
    if (a->col_stride == 1 && b->col_stride == 1) {
        for (; c + 8 <= a->cols; c += 8) {
            uint64_t u, v;
            memcpy(&u, x + c, sizeof u);
            memcpy(&v, y + c, sizeof v);
            bits += __builtin_popcountll(u ^ v);
        }
    }
    for (; c < a->cols; c++)
        bits += __builtin_popcount((unsigned)(x[c * a->col_stride] ^ y[c * b->col_stride]));
    return (double)bits;
}

const gnomon_metric_row gnomon_metric_row_hamming = {
    .info = {.metric = GNOMON_HAMMING,
             .name = "hamming",
             .aliases = "",
             .about = "bits packed in bytes",
             .unit = "bytes",
             .points = GNOMON_POINTS_BITS,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED | GNOMON_METRIC_DEVICE},
    .families = {GNOMON_LSH_BIT_SAMPLING},
    .verify_cost = {15, 0.5, 0},
    .exact_cost = {0.1, 0.01, 0},
    .bits = bits_apart,
    .filtered = true, /* counts of bits */
};
