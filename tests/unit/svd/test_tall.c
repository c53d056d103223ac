/* Matrices of many rows: Gram matrices and divisions by a triangle, against sums written out here.
 */
#include "linalg/blas.h"
#include "linalg/gram.h"
#include "linalg/orth.h"
#include "linalg/tall.h"

#include <gnomon.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gnomon_context *open_context(int threads)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

/* Whole numbers, so that no order of a sum shows. */
static double number(int64_t i)
{
    return (double)((i * 7919 + 13) % 2003 - 1001);
}

static void fill(const gnomon_tall *t)
{
    for (int64_t i = 0; i < t->rows * t->cols; i++) {
        if (t->f64)
            ((double *)t->data)[i] = number(i);
        else
            ((float *)t->data)[i] = (float)number(i);
    }
}

static double entry(const gnomon_tall *t, int64_t i)
{
    return t->f64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

static double *sums_of(const gnomon_tall *t)
{
    double *sums = test_calloc((size_t)(t->cols * t->cols), sizeof *sums);
    for (int64_t row = 0; row < t->rows; row++)
        for (int64_t i = 0; i < t->cols; i++)
            for (int64_t j = 0; j < t->cols; j++)
                sums[i * t->cols + j] += entry(t, row * t->cols + i) * entry(t, row * t->cols + j);
    return sums;
}

/* Of columns that fill tiles or not, one strip or several, and rows of one range or of all. */
static void gram_matrices(void **state)
{
    static const int64_t rows[] = {0, 1, 127, 129, 700, 4500}, cols[] = {1, 15, 16, 17, 70, 300};
    (void)state;
    for (int threads = 1; threads < 4; threads += 2) {
        gnomon_context *ctx = open_context(threads);
        for (int k = 0; k < 2 * 36; k++) {
            gnomon_tall t;
            bool finite = false;
            const int64_t m = rows[k % 6], n = cols[k / 6 % 6];
            if (m * n * n > 30000000) continue;
            assert_int_equal(gnomon_tall_make(ctx, k < 36, m, n, false, "a", &t), GNOMON_OK);
            fill(&t);
            double *sums = sums_of(&t), *found = test_malloc((size_t)(n * n) * sizeof *found);
            assert_int_equal(gnomon_tall_gram(ctx, &t, found, &finite), GNOMON_OK);
            assert_true(finite);
            assert_memory_equal(found, sums, (size_t)(n * n) * sizeof *sums);
            test_free(found);
            test_free(sums);
            gnomon_tall_drop(ctx, &t);
        }
        gnomon_context_destroy(ctx);
    }
}

/* Roundings of rows that are all alike don't add up: a chain of fused multiply-adds over a range's
 * would be wrong by 1e-13. */
static void gram_matrix_of_many_rows(void **state)
{
    enum { ROWS = 400000 };
    (void)state;
    gnomon_context *ctx = open_context(2);
    gnomon_tall t;
    double found = 0;
    bool finite = false;
    assert_int_equal(gnomon_tall_make(ctx, true, ROWS, 1, false, "a", &t), GNOMON_OK);
    for (int64_t i = 0; i < ROWS; i++)
        ((double *)t.data)[i] = 0.1;
    assert_int_equal(gnomon_tall_gram(ctx, &t, &found, &finite), GNOMON_OK);
    assert_true(fabs(found / (ROWS * 0.1 * 0.1) - 1) < 1e-14);
    gnomon_tall_drop(ctx, &t);
    gnomon_context_destroy(ctx);
}

/* A hundred thousand numbers to a place, and more places than are added at once. */
static void gram_matrix_of_many_columns(void **state)
{
    enum { ROWS = 300, COLS = 900 };
    (void)state;
    gnomon_context *ctx = open_context(2);
    gnomon_tall t;
    bool finite = false;
    assert_int_equal(gnomon_tall_make(ctx, false, ROWS, COLS, false, "a", &t), GNOMON_OK);
    fill(&t);
    double *sums = sums_of(&t), *found = test_malloc(COLS * COLS * sizeof *found);
    assert_int_equal(gnomon_tall_gram(ctx, &t, found, &finite), GNOMON_OK);
    assert_memory_equal(found, sums, COLS * COLS * sizeof *sums);
    ((float *)t.data)[ROWS * COLS - 1] = INFINITY;
    assert_int_equal(gnomon_tall_gram(ctx, &t, found, &finite), GNOMON_OK);
    assert_false(finite);
    test_free(found);
    test_free(sums);
    gnomon_tall_drop(ctx, &t);
    gnomon_context_destroy(ctx);
}

/* Rows that lie apart, in two goes. */
static void sums_that_go_on(void **state)
{
    enum { ROWS = 300, COLS = 37, LD = 41, FIRST = 131 };
    static double a[ROWS * LD], found[COLS * COLS];
    (void)state;
    gnomon_context *ctx = open_context(1);
    gnomon_tall t;
    const int64_t count = gnomon_gram_numbers(COLS);
    double *sums = test_calloc((size_t)count, sizeof *sums);
    double *room = test_malloc((size_t)gnomon_gram_room(COLS) * sizeof *room);
    assert_int_equal(gnomon_tall_make(ctx, true, ROWS, COLS, false, "a", &t), GNOMON_OK);
    fill(&t);
    for (int64_t i = 0; i < ROWS; i++)
        memcpy(a + i * LD, gnomon_tall_row(&t, i), COLS * sizeof *a);
    gnomon_gram_add(ctx, false, FIRST, COLS, a, LD, room, sums);
    gnomon_gram_add(ctx, true, ROWS - FIRST, COLS, a + FIRST * LD, LD, room, sums);
    for (int64_t i = 0; i < COLS; i++)
        gnomon_gram_row(COLS, sums, i, found + i * COLS);
    double *expected = sums_of(&t);
    assert_memory_equal(found, expected, sizeof found);
    test_free(expected);
    test_free(room);
    test_free(sums);
    gnomon_tall_drop(ctx, &t);
    gnomon_context_destroy(ctx);
}

/* T R^-1 R is T, whether by the inverse or by division, and an inverse beyond the range is none. */
static void divisions(void **state)
{
    enum { ROWS = 150, COLS = 100 };
    static double r[COLS * COLS];
    (void)state;
    gnomon_context *ctx = open_context(2);
    assert_int_equal(gnomon_blas_prepare(ctx), GNOMON_OK);
    gnomon_blas_enter();
    for (int64_t i = 0; i < COLS; i++)
        for (int64_t j = i; j < COLS; j++)
            r[i * COLS + j] = i == j ? 2 + number(i) * 1e-4 : number(i * COLS + j) * 1e-5;
    for (int way = 0; way < 4; way++) {
        const bool f64 = way % 2 != 0;
        gnomon_tall t;
        bool done = true;
        assert_int_equal(gnomon_tall_make(ctx, f64, ROWS, COLS, false, "a", &t), GNOMON_OK);
        fill(&t);
        if (way < 2)
            assert_int_equal(gnomon_tall_divide(ctx, &t, r), GNOMON_OK);
        else
            assert_int_equal(gnomon_tall_divide_f64(ctx, &t, r, &done), GNOMON_OK);
        assert_true(done);
        for (int64_t i = 0; i < ROWS; i++) {
            for (int64_t j = 0; j < COLS; j++) {
                double sum = 0;
                for (int64_t l = 0; l <= j; l++)
                    sum += entry(&t, i * COLS + l) * r[l * COLS + j];
                assert_true(fabs(sum - number(i * COLS + j)) < (f64 ? 1e-9 : 1e-1));
            }
        }
        if (way == 3) {
            memset(r, 0, sizeof r);
            for (int64_t i = 0; i < COLS; i++)
                r[i * COLS + i] = i == 10 ? 1e-305 : 1;
            assert_int_equal(gnomon_tall_divide_f64(ctx, &t, r, &done), GNOMON_OK);
            assert_false(done);
            r[10 * COLS + 10] = 0;
            assert_int_equal(gnomon_tall_divide_f64(ctx, &t, r, &done), GNOMON_OK);
            assert_false(done);
        }
        gnomon_tall_drop(ctx, &t);
    }
    gnomon_blas_leave();
    gnomon_context_destroy(ctx);
}

/* The least singular value beside the largest number of the diagonal, squared. */
static void least_square(void **state)
{
    enum { N = 37 };
    static double r[N * N], x[N];
    (void)state;
    for (int64_t i = 0; i < N; i++)
        r[i * N + i] = i == 5 ? 3e120 : 4e121 + 1e120 * (double)i;
    const double share = 3e120 / (4e121 + 1e120 * (N - 1));
    assert_true(fabs(gnomon_least_square(N, r, x) / (share * share) - 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gram_matrices),
        cmocka_unit_test(gram_matrix_of_many_rows),
        cmocka_unit_test(gram_matrix_of_many_columns),
        cmocka_unit_test(sums_that_go_on),
        cmocka_unit_test(divisions),
        cmocka_unit_test(least_square),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
