/* Keys in fp64: by which every answer is verified. */
#include "search/search.h"

#include <math.h>

/* Sums of squares below it may have lost digits to underflow, in fp64 data; such are taken again
 * with coordinates multiplied by 2^600, which are then at most 2^150. */
static const double small_sum = 0x1p-900, boost = 0x1p600;

/* |x| of norms below it counts as zero for COSINE. */
static const double least_norm = 0x1p-1000;

double gnomon_inverse_norm(const gnomon_search_kernels *kernels, const gnomon_matrix *m, int64_t i)
{
    const void *x = gnomon_row_at(m, i);
    double norm = sqrt(kernels->squares(x, m->dtype, m->col_stride, m->cols, 1));
    if (m->dtype == GNOMON_F64 && norm < 0x1p-450)
        norm = sqrt(kernels->squares(x, m->dtype, m->col_stride, m->cols, boost)) / boost;
    int64_t col;
    if (!(norm <= 0x1p500) && gnomon_row_fault(m, i, &col) != GNOMON_OK) return (double)NAN;
    return norm < least_norm ? 0 : 1 / norm;
}

gnomon_query gnomon_query_widen(const gnomon_search *search, int64_t query, double *f64)
{
    const gnomon_matrix *m = &search->queries;
    gnomon_query q = {f64, 1};
    search->kernels->widen(gnomon_row_at(m, query), m->dtype, m->col_stride, m->cols, f64);
    if (search->options.metric == GNOMON_COSINE) {
        const double factor = gnomon_inverse_norm(search->kernels, m, query);
        for (int64_t j = 0; j < m->cols; j++)
            f64[j] *= factor;
        q.factor = factor == 0 ? 0 : 1;
    } else if (search->options.metric == GNOMON_L2) {
        for (int64_t j = 0; j < m->cols; j++)
            f64[m->cols + j] = f64[j] * boost;
    }
    return q;
}

/* The sum of |q - x|, in sixteen interleaved chains that a fixed tree joins. */
static double absolute_differences(const gnomon_search_kernels *k, const double *q, const void *x,
                                   gnomon_dtype dtype, int64_t col_stride, int64_t d)
{
    enum { PIECE = 256, CHAINS = 16 };
    const int64_t step = col_stride * (int64_t)gnomon_dtype_size(dtype);
    double f64[PIECE], sums[CHAINS] = {0};
    for (int64_t j = 0; j < d; j += PIECE) {
        const int64_t count = d - j < PIECE ? d - j : PIECE;
        k->widen((const char *)x + j * step, dtype, col_stride, count, f64);
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

double gnomon_exact_key(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                        int64_t i)
{
    const gnomon_search_kernels *k = search->kernels;
    const void *x = gnomon_row_at(base, i);
    const int64_t d = search->cols;
    switch (search->options.metric) {
    case GNOMON_L2: {
        const double sum = k->differences(query.f64, x, base->dtype, base->col_stride, d, 1);
        /* fp32's smallest numbers have squares far above */
        if (sum >= small_sum || (base->dtype != GNOMON_F64 && search->queries.dtype != GNOMON_F64))
            return sqrt(sum);
        /* not a number where coordinates above 2^424 meet their like: differences that small only
         * stand beside zeros there */
        const double boosted =
            sqrt(k->differences(query.f64 + d, x, base->dtype, base->col_stride, d, boost)) / boost;
        return boosted == boosted ? boosted : sqrt(sum);
    }
    case GNOMON_COSINE: {
        const double factor = gnomon_inverse_norm(k, base, i);
        if (factor == 0 || query.factor == 0) return 1;
        return k->differences(query.f64, x, base->dtype, base->col_stride, d, factor) / 2;
    }
    case GNOMON_L1:
        return absolute_differences(k, query.f64, x, base->dtype, base->col_stride, d);
    default:
        return -k->products(query.f64, x, base->dtype, base->col_stride, d, 1);
    }
}

gnomon_status gnomon_row_fault(const gnomon_matrix *m, int64_t i, int64_t *col)
{
    enum { PIECE = 256 };
    const gnomon_search_kernels *k = gnomon_cpu_kernels("portable")->search;
    const int64_t step = m->col_stride * (int64_t)gnomon_dtype_size(m->dtype);
    const char *x = gnomon_row_at(m, i);
    double f64[PIECE];
    for (int64_t j = 0; j < m->cols; j += PIECE) {
        const int64_t count = m->cols - j < PIECE ? m->cols - j : PIECE;
        k->widen(x + j * step, m->dtype, m->col_stride, count, f64);
        for (int64_t c = 0; c < count; c++) {
            *col = j + c;
            if (!isfinite(f64[c])) return GNOMON_ERROR_NONFINITE;
            if (fabs(f64[c]) > 0x1p500) return GNOMON_ERROR_UNSUPPORTED;
        }
    }
    return GNOMON_OK;
}
