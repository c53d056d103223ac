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

/* ---- what the plain product and the form BF16 are both held to ---- */

static gnomon_context *ctx;

static inline int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    return 0;
}

static inline int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

/* As check_product. */
typedef void (*product_check)(const gnomon_matrix *a, const gnomon_matrix *b,
                              const gnomon_matrix *c, double alpha, double beta,
                              const double *before, const char *what);

/* Every layout of all three, with types that change too; inner[1] is every third layout's inner
 * size.
 */
static inline void check_layouts(const gnomon_gemm_options *o, const int64_t inner[2],
                                 product_check check)
{
    static const gnomon_dtype in[2] = {GNOMON_F32, GNOMON_F16};
    static const gnomon_dtype out[2] = {GNOMON_F32, GNOMON_F64};
    for (int layout = 0; layout < LAYOUTS * LAYOUTS * LAYOUTS; layout++) {
        const int types = layout % 8;
        const int64_t k = inner[layout % 3 == 0];
        owned a = make_matrix(35, k, in[types & 1], layout % LAYOUTS);
        owned b = make_matrix(k, 37, in[types >> 1 & 1], layout / LAYOUTS % LAYOUTS);
        owned c = make_matrix(35, 37, out[types >> 2], layout / LAYOUTS / LAYOUTS);
        fill(&a.m, layout % 3, 1);
        fill(&b.m, layout % 3, 2);
        fill(&c.m, 0, 3);
        double *before = copy_values(&c.m);
        ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, o));
        check(&a.m, &b.m, &c.m, o->alpha, o->beta, before, "layouts");
        check_sentinels(&a);
        check_sentinels(&b);
        check_sentinels(&c);
        free(before);
        free_matrix(&a);
        free_matrix(&b);
        free_matrix(&c);
    }
}

/* Shapes m, n, k with values of each kind; b is of fp16, of even kinds as 'even' says. */
static inline void check_sizes(const gnomon_gemm_options *o, const int64_t shapes[][3],
                               size_t count, gnomon_dtype even, product_check check)
{
    for (size_t s = 0; s < count; s++) {
        for (int kind = 0; kind < 3; kind++) {
            owned a = make_matrix(shapes[s][0], shapes[s][2], GNOMON_F32, ROW_MAJOR);
            owned b =
                make_matrix(shapes[s][2], shapes[s][1], kind % 2 ? GNOMON_F16 : even, ROW_MAJOR);
            owned c = make_matrix(shapes[s][0], shapes[s][1], GNOMON_F32, ROW_PADDED);
            fill(&a.m, kind, s);
            fill(&b.m, kind, s + 100);
            ASSERT_OK(ctx, gnomon_gemm(ctx, &a.m, &b.m, &c.m, o));
            check(&a.m, &b.m, &c.m, 1, 0, NULL, "sizes");
            check_sentinels(&c);
            free_matrix(&a);
            free_matrix(&b);
            free_matrix(&c);
        }
    }
}

#endif
