/* The sum of absolute differences. */
#include "metric/metric.h"

#include <math.h>

/* The sum of |q - x|, in sixteen interleaved chains that a fixed tree joins. */
static double absolute_differences(const gnomon_search_kernels *k, const double *q, const void *x,
                                   gnomon_dtype dtype, int64_t col_stride, int64_t d)
{
    enum { PIECE = 256, CHAINS = 16 };
    const int64_t step = col_stride * (int64_t)gnomon_dtype_size(dtype);
    double f64[PIECE], sums[CHAINS] = {0};
    for (int64_t j = 0; j < d; j += PIECE) {
        const int64_t count = d - j < PIECE ? d - j : PIECE;
        k->to_f64((const char *)x + j * step, dtype, col_stride, count, f64);
        int64_t i = 0;
        for (; i + CHAINS <= count; i += CHAINS)
            for (int c = 0; c < CHAINS; c++)
                sums[c] += fabs(q[j + i + c] - f64[i + c]);
        for (int c = 0; i < count; i++, c++)
            sums[c] += fabs(q[j + i] - f64[i]);
    }
    for (int half = CHAINS / 2; half > 0; half /= 2)
        for (int c = 0; c < half; c++)
            sums[c] += sums[c + half];
    return sums[0];
}

static double key(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                  int64_t i)
{
    return absolute_differences(k, query.f64, gnomon_row_at(base, i), base->dtype, base->col_stride,
                                base->cols);
}

/* The same bits: where both rows are zero the dense sums add zero. */
static double sparse(const gnomon_search_kernels *k, const gnomon_sparse_row *query,
                     const gnomon_sparse_row *base)
{
    enum { CHAINS = 16 };
    double sums[CHAINS] = {0};
    int64_t i = 0, j = 0;
    (void)k;
    while (i < query->count || j < base->count) {
        const bool of_query =
            i < query->count && (j == base->count || query->cols[i] <= base->cols[j]);
        const bool of_base =
            j < base->count && (i == query->count || base->cols[j] <= query->cols[i]);
        const int64_t col = of_query ? query->cols[i] : base->cols[j];
        sums[col % CHAINS] +=
            fabs((of_query ? query->values[i] : 0) - (of_base ? base->values[j] : 0));
        i += of_query;
        j += of_base;
    }
    for (int half = CHAINS / 2; half > 0; half /= 2)
        for (int c = 0; c < half; c++)
            sums[c] += sums[c + half];
    return sums[0];
}

const gnomon_metric_row gnomon_metric_row_l1 = {
    .info = {.metric = GNOMON_L1,
             .name = "l1",
             .aliases = "manhattan",
             .about = "",
             .unit = "coordinates",
             .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED},
    .families = {GNOMON_LSH_PSTABLE_L1},
    .verify_cost = {60, 0.1, 0.67},
    .exact_cost = {50, 0, 0.5},
    .key = key,
    .sparse = sparse,
};
