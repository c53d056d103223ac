/* One less the cosine. */
#include "metric/metric.h"

static void prepare(const gnomon_search_kernels *kernels, const gnomon_matrix *m, int64_t i,
                    double *f64, gnomon_query *query)
{
    const double factor = gnomon_inverse_norm(kernels, m, i);
    for (int64_t j = 0; j < m->cols; j++)
        f64[j] *= factor;
    query->factor = factor == 0 ? 0 : 1;
}

static double key(const gnomon_search_kernels *k, gnomon_query query, const gnomon_matrix *base,
                  int64_t i)
{
    const double factor = gnomon_inverse_norm(k, base, i);
    if (factor == 0 || query.factor == 0) return 1;
    return k->differences(query.f64, gnomon_row_at(base, i), base->dtype, base->col_stride,
                          base->cols, factor) /
           2;
}

static double sparse(const gnomon_search_kernels *k, const gnomon_sparse_row *query,
                     const gnomon_sparse_row *base)
{
    if (base->factor == 0 || query->factor == 0) return 1;
    return k->sparse_differences(query, base) / 2;
}

const gnomon_metric_row gnomon_metric_row_cosine = {
    .info = {.metric = GNOMON_COSINE,
             .name = "cosine",
             .aliases = "",
             .about = "1 - cos",
             .unit = "coordinates",
             .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
             .flags = GNOMON_METRIC_JOINS | GNOMON_METRIC_HASHED | GNOMON_METRIC_CODES |
                      GNOMON_METRIC_DEVICE | GNOMON_METRIC_SIMILARITY},
    .families = {GNOMON_LSH_SIMHASH, GNOMON_LSH_CROSS_POLYTOPE, GNOMON_LSH_SPHERICAL_KMEANS},
    .verify_cost = {80, 0.1, 0.4}, /* the norm, then the difference */
    .exact_cost = {1, 0, 0.02},
    .prepare = prepare,
    .key = key,
    .sparse = sparse,
    .filtered = true,
};
