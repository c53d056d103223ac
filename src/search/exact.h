/* search/exact.h: keys in fp64. */
#ifndef GNOMON_SEARCH_EXACT_H
#define GNOMON_SEARCH_EXACT_H

#include "search/state.h"

/* The query made ready for the metric; f64 has room for 2 * cols numbers. */
gnomon_query gnomon_query_to_f64(const gnomon_search *search, int64_t query, double *f64);
/* The same for keys with base's rows alone: bytes that the metric takes as they are stay so. */
gnomon_query gnomon_query_for(const gnomon_search *search, int64_t query, const gnomon_matrix *base,
                              double *f64);
/* The key of a query and row i of base. */
double gnomon_exact_key(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                        int64_t i);
/* The same of count rows. */
void gnomon_exact_keys(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                       const int64_t *rows, int64_t count, double *keys);

/* The product of two vectors of the search's dimension. */
static inline double gnomon_dot(const gnomon_search *search, const double *x, const double *y)
{
    return search->kernels->products(x, y, GNOMON_F64, 1, search->cols, 1);
}

/* The sum of squares in fp32, of differences_f32, above which an L2 key is surely above 'key'; one
 * that is infinite tells nothing. */
double gnomon_least_f32(int64_t cols, double key);

#endif
