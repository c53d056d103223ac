/* Keys in fp64: what every answer is verified by. */
#include "search/exact.h"

gnomon_query gnomon_query_to_f64(const gnomon_search *search, int64_t query, double *f64)
{
    const gnomon_matrix *m = &search->queries;
    const gnomon_metric_row *row = gnomon_metric_row_of(search->options.metric);
    gnomon_query q = {f64, 1, m->dtype};
    search->kernels->to_f64(gnomon_row_at(m, query), m->dtype, m->col_stride, m->cols, f64);
    if (row->prepare != NULL) row->prepare(search->kernels, m, query, f64, &q);
    return q;
}

double gnomon_exact_key(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                        int64_t i)
{
    return gnomon_metric_row_of(search->options.metric)->key(search->kernels, query, base, i);
}
