/* Products of matrices against sums in long double. */
#ifndef TESTS_PRODUCTS_H
#define TESTS_PRODUCTS_H

#include "project.h"

/* Checks c against alpha * a b + beta * before, entry by entry, by the header's bound: terms of
 * unit roundoff, and for each step so much of the largest products of the row and the column. */
static inline void check_within(const gnomon_matrix *a, const gnomon_matrix *b,
                                const gnomon_matrix *c, double alpha, double beta,
                                const double *before, double terms, double lost, const char *what)
{
    const int64_t k = a->cols;
    const double u = 0x1p-24;
    for (int64_t i = 0; i < c->rows; i++) {
        for (int64_t j = 0; j < c->cols; j++) {
            long double sum = 0, size = 0, left = 0, right = 0;
            for (int64_t p = 0; p < k; p++) {
                const long double term = (long double)element(a, i, p) * element(b, p, j);
                sum += term;
                size += fabsl(term);
                left = fmaxl(left, fabsl(element(a, i, p)));
                right = fmaxl(right, fabsl(element(b, p, j)));
            }
            const long double old = beta == 0 ? 0 : (long double)beta * before[i * c->cols + j];
            const long double exact = alpha * sum + old;
            /* the last two terms: products that underflow, sums and scaling in fp64 */
            const long double bound =
                fabs(alpha) *
                    (terms * u * size + (long double)k * (0x1p-150L + lost * left * right)) +
                (c->dtype == GNOMON_F32 ? u * fabsl(exact) + 0x1p-150L : 0) +
                0x1p-45L * (fabs(alpha) * size + fabsl(old));
            const long double found = element(c, i, j);
            if (!(fabsl(found - exact) <= bound))
                fail_msg("%s: (%d, %d) of %d x %d x %d is %.9Lg, not %.9Lg (bound %.3Lg)", what,
                         (int)i, (int)j, (int)c->rows, (int)c->cols, (int)k, found, exact, bound);
        }
    }
}

static inline void check_product(const gnomon_matrix *a, const gnomon_matrix *b,
                                 const gnomon_matrix *c, double alpha, double beta,
                                 const double *before, const char *what)
{
    check_within(a, b, c, alpha, beta, before, a->cols < 64 ? (double)a->cols : 64, 0, what);
}

/* Values from the generator: kind 0 uniform(-1, 1), 1 uniform(0, 1), 2 of every magnitude. */
static inline void fill(const gnomon_matrix *m, int kind, uint64_t seed)
{
    for (int64_t i = 0; i < m->rows; i++) {
        uint64_t state = seed + (uint64_t)i * 1000003u;
        for (int64_t j = 0; j < m->cols; j++) {
            double v = next_uniform(&state);
            if (kind == 1) v = fabs(v);
            if (kind == 2) {
                const double range = m->dtype == GNOMON_F16 ? 14 : 60;
                v = ldexp(v, (int)(range * next_uniform(&state)));
            }
            set_element(m, i, j, v);
        }
    }
}

static inline double *copy_values(const gnomon_matrix *m)
{
    double *values = malloc((size_t)(m->rows * m->cols) * sizeof *values + 8);
    assert_non_null(values);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            values[i * m->cols + j] = element(m, i, j);
    return values;
}

#endif
