/* Euclidean distance. */
#include "metric/metric.h"

#include <math.h>

/* Sums of squares below it may have lost digits to underflow, in fp64 data; such are taken again
 * with coordinates multiplied by 2^600, which are then at most 2^150. */
static const double small_sum = 0x1p-900, boost = 0x1p600;

static double key(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                  int64_t i)
{
    const void *x = gnomon_row_at(base, i);
    const int64_t d = base->cols;
    /* an integer that fp64 holds, as are all sums on the way to it in fp64 */
    if (query.bytes != NULL)
        return sqrt((double)k->differences_bytes(query.bytes, x, base->dtype == GNOMON_I8, d));
    const double sum = k->differences(query.f64, x, base->dtype, base->col_stride, d, 1);
    /* fp32's smallest numbers have squares far above */
    if (sum >= small_sum || (base->dtype != GNOMON_F64 && query.dtype != GNOMON_F64))
        return sqrt(sum);
    for (int64_t j = 0; j < d; j++)
        query.f64[d + j] = query.f64[j] * boost;
    /* not a number where coordinates above 2^424 meet their like: differences that small only
     * stand beside zeros there */
    const double boosted =
        sqrt(k->differences(query.f64 + d, x, base->dtype, base->col_stride, d, boost)) / boost;
    return boosted == boosted ? boosted : sqrt(sum);
}

static void keys(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                 const int64_t *rows, int64_t count, double *out)
{
    const float *begin[GNOMON_KEYS];
    const bool together = query.bytes == NULL && gnomon_rows_of_f32(base, rows, count, begin);
    if (together) k->differences_rows(query.f64, begin, count, base->cols, out);
    for (int64_t i = 0; i < count; i++) {
        const bool told = together && (out[i] >= small_sum || query.dtype != GNOMON_F64);
        out[i] = told ? sqrt(out[i]) : key(k, query, base, rows[i]);
    }
}

static double sparse(const gnomon_search_kernels *k, const gnomon_sparse_row *query,
                     const gnomon_sparse_row *base)
{
    const double sum = k->sparse_differences(query, base);
    if (sum >= small_sum) return sqrt(sum);
    gnomon_sparse_row q = *query, x = *base;
    q.factor = x.factor = boost;
    const double boosted = sqrt(k->sparse_differences(&q, &x)) / boost;
    return boosted == boosted ? boosted : sqrt(sum);
}

const gnomon_metric_row gnomon_metric_row_l2 = {
    .info = {.metric = GNOMON_L2,
             .name = "l2",
             .aliases = "euclidean",
             .about = "",
             .unit = "coordinates",
             .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED | GNOMON_METRIC_CODES |
                      GNOMON_METRIC_DEVICE},
    .families = {GNOMON_LSH_PSTABLE, GNOMON_LSH_KMEANS},
    .verify_cost = {60, 0.1, 0.3},
    .exact_cost = {0.8, 0, 0.0145},
    .key = key,
    .keys = keys,
    .sparse = sparse,
    .bytes = true,
    .filtered = true,
};
