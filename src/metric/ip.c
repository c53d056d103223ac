/* The inner product, largest first. */
#include "metric/metric.h"

static double key(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                  int64_t i)
{
    return -k->products(query.f64, gnomon_row_at(base, i), base->dtype, base->col_stride,
                        base->cols, 1);
}

static void keys(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                 const int64_t *rows, int64_t count, double *out)
{
    const float *begin[GNOMON_KEYS];
    if (!gnomon_rows_of_f32(base, rows, count, begin)) {
        for (int64_t i = 0; i < count; i++)
            out[i] = key(k, query, base, rows[i]);
        return;
    }
    k->products_rows(query.f64, begin, count, base->cols, out);
    for (int64_t i = 0; i < count; i++)
        out[i] = -out[i];
}

static double sparse(const gnomon_search_kernels *k, const gnomon_sparse_row *query,
                     const gnomon_sparse_row *base)
{
    return -k->sparse_products(query, base);
}

const gnomon_metric_row gnomon_metric_row_ip = {
    .info = {.metric = GNOMON_IP,
             .name = "ip",
             .aliases = "dot inner_product",
             .about = "largest first",
             .unit = "coordinates",
             .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_DEVICE | GNOMON_METRIC_LARGER},
    .verify_cost = {60, 0.1, 0.3},
    .exact_cost = {0.8, 0, 0.0145},
    .key = key,
    .keys = keys,
    .sparse = sparse,
    .filtered = true,
};
