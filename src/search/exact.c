/* Keys in fp64: what every answer is verified by. */
#include "search/exact.h"

gnomon_query gnomon_query_to_f64(const gnomon_search *search, int64_t query, double *f64)
{
    const gnomon_matrix *m = &search->queries;
    const gnomon_metric_row *row = gnomon_metric_row_of(search->options.metric);
    gnomon_query q = {.f64 = f64, .factor = 1, .dtype = m->dtype};
    search->kernels->to_f64(gnomon_row_at(m, query), m->dtype, m->col_stride, m->cols, f64);
    if (row->prepare != NULL) row->prepare(search->kernels, m, query, f64, &q);
    return q;
}

gnomon_query gnomon_query_for(const gnomon_search *search, int64_t query, const gnomon_matrix *base,
                              double *f64)
{
    /* sums of so many squares are below 2^53 */
    const int64_t most = INT64_C(1) << 36;
    const gnomon_matrix *m = &search->queries;
    const bool bytes = (m->dtype == GNOMON_U8 || m->dtype == GNOMON_I8) && base->dtype == m->dtype;
    if (!bytes || !gnomon_metric_row_of(search->options.metric)->bytes || m->col_stride != 1 ||
        base->col_stride != 1 || m->cols > most)
        return gnomon_query_to_f64(search, query, f64);
    return (gnomon_query){.factor = 1, .dtype = m->dtype, .bytes = gnomon_row_at(m, query)};
}

double gnomon_exact_key(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                        int64_t i)
{
    return gnomon_metric_row_of(search->options.metric)->key(search->kernels, query, base, i);
}

void gnomon_exact_keys(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                       const int64_t *rows, int64_t count, double *keys)
{
    const gnomon_metric_row *metric = gnomon_metric_row_of(search->options.metric);
    for (int64_t i = 0; i < count; i += GNOMON_KEYS) {
        const int64_t some = count - i < GNOMON_KEYS ? count - i : GNOMON_KEYS;
        if (metric->keys != NULL) {
            metric->keys(search->kernels, query, base, rows + i, some, keys + i);
            continue;
        }
        for (int64_t j = i; j < i + some; j++)
            keys[j] = metric->key(search->kernels, query, base, rows[j]);
    }
}

/* Terms are not negative, so that the error is the number of roundings' share of the sum, and what
 * underflows. */
double gnomon_least_f32(int64_t cols, double key)
{
    const double d = (double)cols, gamma = 1.01 * (2 * d / 16 + 32) * 0x1p-24;
    return key * key * (1 + gamma) + d * 0x1p-140;
}
