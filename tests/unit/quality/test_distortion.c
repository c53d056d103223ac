/* Distortion of norms and pairs against long-double sums written out plainly. */
#include "quality/lengths.h"
#include "quality/pairs.h"
#include "quality/summary.h"

#include <gnomon/quality.h>

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static gnomon_context *ctx;

static int make(void **state)
{
    (void)state;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = 3;
    return gnomon_context_create(&o, &ctx) != GNOMON_OK;
}

static int drop(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

static uint64_t random_state = 88172645463325252u;

static double uniform(void) /* xorshift64, in [-1, 1) */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(int64_t)random_state * 0x1p-63;
}

static double *random_points(int64_t n, int64_t d)
{
    double *x = malloc((size_t)(n * d) * sizeof *x);
    for (int64_t i = 0; i < n * d; i++)
        x[i] = uniform();
    return x;
}

static double squared(const double *x, int64_t d, int64_t i, int64_t j)
{
    long double sum = 0;
    for (int64_t c = 0; c < d; c++) {
        const long double v = (long double)x[i * d + c] - (j < 0 ? 0 : (long double)x[j * d + c]);
        sum += v * v;
    }
    return (double)sum;
}

static void near_to(double got, double want, double absolute)
{
    if (!(fabs(got - want) <= absolute)) fail_msg("got %.17g, want %.17g", got, want);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All figures of a report against the plain list of distortions. */
static void check_report(const gnomon_distortion *r, double *v, int64_t count, double eps)
{
    assert_int_equal(r->count, count);
    double mean = 0, mean_abs = 0, variance = 0, worst = 0, outside = 0;
    for (int64_t i = 0; i < count; i++) {
        mean += v[i] / (double)count;
        mean_abs += fabs(v[i]) / (double)count;
        worst = fmax(worst, fabs(v[i]));
        outside += fabs(v[i]) > eps;
    }
    for (int64_t i = 0; i < count; i++)
        variance += (v[i] - mean) * (v[i] - mean) / (double)(count - 1);
    near_to(r->mean, mean, 1e-13);
    near_to(r->mean_abs, mean_abs, 1e-13);
    near_to(r->variance, variance, 1e-13);
    near_to(r->worst, worst, 1e-13);
    near_to(r->outside, outside / (double)count, 1e-13);
    qsort(v, (size_t)count, sizeof *v, ascending);
    near_to(r->min, v[0], 1e-13);
    near_to(r->max, v[count - 1], 1e-13);
    near_to(r->quantile[4], count % 2 ? v[count / 2] : (v[count / 2 - 1] + v[count / 2]) / 2,
            1e-13);
    assert_true(r->quantile[0] >= r->min && r->quantile[8] <= r->max);
    int64_t binned = 0;
    for (int b = 0; b < 64; b++)
        binned += r->histogram[b];
    assert_int_equal(binned, count);
}

static void test_all_pairs(void **state)
{
    (void)state;
    const int64_t n = 61, d = 5003, k = 37; /* more than one piece of columns */
    double *x = random_points(n, d), *y = random_points(n, k);
    const gnomon_matrix mx = gnomon_matrix_rowmajor(x, GNOMON_F64, n, d);
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, n, k);
    gnomon_distortion norms, pairs;
    gnomon_distortion_options o = GNOMON_DISTORTION_OPTIONS_INIT;
    o.eps = 0.99;
    int all = -1;
    assert_int_equal(gnomon_measure_distortion(ctx, &mx, &my, &o, &norms, &pairs, &all), 0);
    assert_int_equal(all, 1);

    double *v = malloc((size_t)(n * n) * sizeof *v);
    int64_t count = 0, worst_i = -1, worst_j = -1;
    double worst = -1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            v[count] = squared(y, k, i, j) / squared(x, d, i, j) - 1;
            if (fabs(v[count]) > worst) {
                worst = fabs(v[count]);
                worst_i = i;
                worst_j = j;
            }
            count++;
        }
    assert_int_equal(pairs.worst_i, worst_i);
    assert_int_equal(pairs.worst_j, worst_j);
    check_report(&pairs, v, count, o.eps);
    for (int64_t i = 0; i < n; i++)
        v[i] = squared(y, k, i, -1) / squared(x, d, i, -1) - 1;
    assert_int_equal(norms.worst_j, -1);
    check_report(&norms, v, n, o.eps);
    free(v);
    free(x);
    free(y);
}

/* Both layouts, other types and other thread counts give the same bits. */
static void test_views_agree(void **state)
{
    (void)state;
    enum { N = 23, D = 77, K = 9 };
    static uint8_t bytes[N * D];
    static double f64[N * D], transposed[N * D], y[N * K];
    static float f32[N * D];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) {
            bytes[i * D + j] = (uint8_t)(128 + 127 * uniform());
            f64[i * D + j] = f32[i * D + j] = bytes[i * D + j];
            transposed[j * N + i] = bytes[i * D + j];
        }
    for (int i = 0; i < N * K; i++)
        y[i] = 300 * uniform();
    const gnomon_matrix sketch = gnomon_matrix_rowmajor(y, GNOMON_F64, N, K);
    const gnomon_matrix views[] = {
        gnomon_matrix_rowmajor(f64, GNOMON_F64, N, D),
        gnomon_matrix_rowmajor(bytes, GNOMON_U8, N, D),
        gnomon_matrix_rowmajor(f32, GNOMON_F32, N, D),
        gnomon_matrix_colmajor(transposed, GNOMON_F64, N, D),
    };
    gnomon_distortion first, other;
    gnomon_distortion_options o = GNOMON_DISTORTION_OPTIONS_INIT;
    o.max_pairs = 100; /* fewer than N (N - 1) / 2: a sample */
    int all = -1;
    assert_int_equal(gnomon_measure_distortion(ctx, &views[0], &sketch, &o, NULL, &first, &all), 0);
    assert_int_equal(all, 0);
    assert_int_equal(first.count + first.skipped, 100);
    for (size_t v = 1; v < sizeof views / sizeof *views; v++) {
        assert_int_equal(gnomon_measure_distortion(ctx, &views[v], &sketch, &o, NULL, &other, NULL),
                         0);
        assert_memory_equal(&first, &other, sizeof first);
    }
    gnomon_context_options one = GNOMON_CONTEXT_OPTIONS_INIT;
    one.threads = 1;
    gnomon_context *single;
    assert_int_equal(gnomon_context_create(&one, &single), 0);
    assert_int_equal(gnomon_measure_distortion(single, &views[0], &sketch, &o, NULL, &other, NULL),
                     0);
    assert_memory_equal(&first, &other, sizeof first);
    gnomon_context_destroy(single);
    o.seed = 1;
    assert_int_equal(gnomon_measure_distortion(ctx, &views[0], &sketch, &o, NULL, &other, NULL), 0);
    assert_true(memcmp(&first, &other, sizeof first) != 0);
}

/* Half-precision originals: values that both formats hold exactly. */
static void test_halves(void **state)
{
    (void)state;
    uint16_t f16[] = {0x3c00, 0xc000, 0x0001, 0x7bff};  /* 1, -2, 2^-24, 65504 */
    uint16_t bf16[] = {0x3f80, 0xc000, 0x4040, 0x0000}; /* 1, -2, 3, 0 */
    double y[] = {1, 1};
    const gnomon_matrix sketch = gnomon_matrix_rowmajor(y, GNOMON_F64, 2, 1);
    gnomon_distortion norms;
    gnomon_matrix x = gnomon_matrix_rowmajor(f16, GNOMON_F16, 2, 2);
    assert_int_equal(gnomon_measure_distortion(ctx, &x, &sketch, NULL, &norms, NULL, NULL), 0);
    near_to(norms.max, 1.0 / 5 - 1, 1e-16);
    near_to(norms.min, 1 / (65504.0 * 65504 + 0x1p-48) - 1, 1e-16);
    x = gnomon_matrix_rowmajor(bf16, GNOMON_BF16, 2, 2);
    assert_int_equal(gnomon_measure_distortion(ctx, &x, &sketch, NULL, &norms, NULL, NULL), 0);
    near_to(norms.max, 1.0 / 5 - 1, 1e-16);
    near_to(norms.min, 1.0 / 9 - 1, 1e-16);
}

/* A sketch that is the original times a power of two, over the whole range of fp64. */
static void test_range(void **state)
{
    (void)state;
    double x[4] = {0, 0, 0, 0}, y[4];
    const gnomon_matrix mx = gnomon_matrix_rowmajor(x, GNOMON_F64, 2, 2);
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, 2, 2);
    const double sizes[] = {1, 1e150, 1e300, 1e308, 1e-150, 1e-300, 4e-308};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        x[0] = sizes[s];
        x[1] = sizes[s] * 0.75;
        x[2] = sizes[s] * 0.5;
        x[3] = -sizes[s] * 0.125;
        for (int i = 0; i < 4; i++)
            y[i] = x[i] / 2;
        gnomon_distortion norms, pairs;
        assert_int_equal(gnomon_measure_distortion(ctx, &mx, &my, NULL, &norms, &pairs, NULL), 0);
        near_to(norms.mean, -0.75, 1e-12);
        near_to(pairs.mean, -0.75, 1e-12);
    }
}

static void test_zeros_are_skipped(void **state)
{
    (void)state;
    double x[] = {0, 0, 3, 4, 3, 4}, y[] = {0, 5, 5};
    const gnomon_matrix mx = gnomon_matrix_rowmajor(x, GNOMON_F64, 3, 2);
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, 3, 1);
    gnomon_distortion norms, pairs;
    assert_int_equal(gnomon_measure_distortion(ctx, &mx, &my, NULL, &norms, &pairs, NULL), 0);
    assert_int_equal(norms.count, 2);
    assert_int_equal(norms.skipped, 1);
    assert_int_equal(pairs.count, 2);
    assert_int_equal(pairs.skipped, 1); /* the two equal points */
    near_to(norms.worst, 0, 0);
    const gnomon_matrix nothing = gnomon_matrix_rowmajor(NULL, GNOMON_F64, 0, 2);
    assert_int_equal(gnomon_measure_distortion(ctx, &nothing, &nothing, NULL, &norms, &pairs, NULL),
                     0);
    assert_int_equal(norms.count, 0);
    assert_int_equal(pairs.count, 0);
}

static void test_sparse_as_dense(void **state)
{
    (void)state;
    enum { N = 19, D = 1000, K = 8, ROW = 12 };
    static int64_t offsets[N + 1], indices[N * ROW];
    static float values[N * ROW];
    double *dense = calloc(N * D, sizeof *dense), *y = random_points(N, K);
    offsets[0] = 5; /* counted from, not used as a place */
    for (int i = 0; i < N; i++) {
        offsets[i + 1] = offsets[i] + (i == 3 ? 0 : ROW);
        for (int e = 0; i != 3 && e < ROW; e++) {
            const int64_t at = offsets[i] - 5 + e;
            indices[at] = (int64_t)((uniform() + 1) * D / 2);
            if (e == 7) indices[at] = indices[at - 1]; /* a duplicate: adds up */
            values[at] = (float)uniform();
            dense[i * D + indices[at]] += values[at];
        }
    }
    gnomon_csr csr = {N, D, offsets, indices, values, GNOMON_F32};
    const gnomon_matrix mx = gnomon_matrix_rowmajor(dense, GNOMON_F64, N, D);
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, N, K);
    gnomon_distortion norms[2], pairs[2];
    assert_int_equal(gnomon_measure_distortion(ctx, &mx, &my, NULL, norms, pairs, NULL), 0);
    assert_int_equal(
        gnomon_measure_distortion_csr(ctx, &csr, &my, NULL, norms + 1, pairs + 1, NULL), 0);
    assert_int_equal(norms[0].count, norms[1].count);
    assert_int_equal(norms[1].skipped, 1);
    near_to(norms[1].mean, norms[0].mean, 1e-12);
    near_to(pairs[1].worst, pairs[0].worst, 1e-12 * pairs[0].worst);
    near_to(pairs[1].variance, pairs[0].variance, 1e-12 * pairs[0].variance);

    indices[4] = D;
    assert_int_equal(gnomon_measure_distortion_csr(ctx, &csr, &my, NULL, norms, pairs, NULL),
                     GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "column index 1000 in row 0"));
    indices[4] = 0;
    values[ROW] = (float)INFINITY;
    assert_int_equal(gnomon_measure_distortion_csr(ctx, &csr, &my, NULL, norms, pairs, NULL),
                     GNOMON_ERROR_NONFINITE);
    values[ROW] = 1;
    offsets[7] = 0;
    assert_int_equal(gnomon_measure_distortion_csr(ctx, &csr, &my, NULL, norms, pairs, NULL),
                     GNOMON_ERROR_DATA);
    free(dense);
    free(y);
}

static void test_pairs_in_order(void **state)
{
    (void)state;
    for (int64_t n = 0; n < 40; n++) {
        const gnomon_pairs pairs = gnomon_pairs_choose(n, 1000, 0);
        assert_true(pairs.all);
        int64_t t = 0, i, j;
        for (int64_t a = 0; a < n; a++)
            for (int64_t b = a + 1; b < n; b++) {
                gnomon_pairs_get(&pairs, t++, &i, &j);
                assert_int_equal(i, a);
                assert_int_equal(j, b);
            }
        assert_int_equal(pairs.count, t);
    }
    /* many points, where the square root is off by more than one place */
    const int64_t n = INT64_C(3000000019), all = n / 2 * (n - 1) + (n - 1) / 2;
    const gnomon_pairs pairs = gnomon_pairs_choose(n, INT64_MAX, 0);
    assert_true(pairs.all);
    assert_int_equal(pairs.count, all);
    for (int r = 0; r < 10000; r++) {
        int64_t i, j, before_i, before_j;
        const int64_t t = 1 + (int64_t)((uniform() + 1) / 2 * (double)(all - 2));
        gnomon_pairs_get(&pairs, t, &i, &j);
        gnomon_pairs_get(&pairs, t - 1, &before_i, &before_j);
        assert_true(0 <= i && i < j && j < n);
        if (before_j < n - 1) {
            assert_int_equal(i, before_i);
            assert_int_equal(j, before_j + 1);
        } else {
            assert_int_equal(i, before_i + 1);
            assert_int_equal(j, i + 1);
        }
    }
}

/* Sampled pairs: each of the 45 pairs of ten points equally often (chi-square with 44
 * degrees of freedom stays below 95 with probability 1 - 1e-5; the seed is fixed). */
static void test_sample_is_uniform(void **state)
{
    (void)state;
    const gnomon_pairs pairs = {10, 45000, false, 12345};
    int64_t seen[10][10] = {{0}}, i, j;
    for (int64_t t = 0; t < pairs.count; t++) {
        gnomon_pairs_get(&pairs, t, &i, &j);
        assert_true(0 <= i && i < j && j < 10);
        seen[i][j]++;
    }
    double chi = 0;
    for (i = 0; i < 10; i++)
        for (j = i + 1; j < 10; j++)
            chi += ((double)seen[i][j] - 1000) * ((double)seen[i][j] - 1000) / 1000;
    assert_true(chi < 95 && chi > 15);
}

static void refuse(const gnomon_matrix *x, const gnomon_matrix *y,
                   const gnomon_distortion_options *o, gnomon_status want, const char *word)
{
    gnomon_distortion norms, pairs;
    assert_int_equal(gnomon_measure_distortion(ctx, x, y, o, &norms, &pairs, NULL), want);
    if (!strstr(gnomon_last_error(ctx), word))
        fail_msg("'%s' does not say %s", gnomon_last_error(ctx), word);
}

static void test_refused(void **state)
{
    (void)state;
    double x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, y[4] = {1, 2, 3, 4};
    const gnomon_matrix mx = gnomon_matrix_rowmajor(x, GNOMON_F64, 4, 3);
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, 4, 1);
    const gnomon_matrix three = gnomon_matrix_rowmajor(y, GNOMON_F64, 3, 1);
    refuse(&mx, &three, NULL, GNOMON_ERROR_SHAPE, "4 points");
    gnomon_distortion_options o = GNOMON_DISTORTION_OPTIONS_INIT;
    o.eps = 0;
    refuse(&mx, &my, &o, GNOMON_ERROR_ARGUMENT, "eps is 0");
    o.eps = 0.1;
    o.max_pairs = 0;
    refuse(&mx, &my, &o, GNOMON_ERROR_ARGUMENT, "max_pairs is 0");
    o.struct_size = 3;
    refuse(&mx, &my, &o, GNOMON_ERROR_ARGUMENT, "struct_size is 3");
    x[7] = (double)NAN;
    refuse(&mx, &my, NULL, GNOMON_ERROR_NONFINITE,
           "original has NaN or infinity at row 2, column 1");
    x[7] = 0;
    y[3] = (double)INFINITY;
    refuse(&mx, &my, NULL, GNOMON_ERROR_NONFINITE, "sketch has NaN or infinity at row 3, column 0");
}

/* An allocator that fails its n-th call. */
static int64_t calls, fail_at;

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    return calls++ == fail_at
               ? NULL
               : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *p, size_t size)
{
    (void)user;
    (void)size;
    free(p);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    int64_t offsets[] = {0, 2, 3}, indices[] = {1, 0, 2};
    double values[] = {1, 2, 3}, y[] = {1, 2};
    const gnomon_csr csr = {2, 3, offsets, indices, values, GNOMON_F64};
    const gnomon_matrix my = gnomon_matrix_rowmajor(y, GNOMON_F64, 2, 1);
    const gnomon_allocator failing = {NULL, allocate, release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.allocator = &failing;
    o.threads = 1;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        gnomon_context *poor;
        fail_at = -1;
        assert_int_equal(gnomon_context_create(&o, &poor), GNOMON_OK);
        calls = 0;
        fail_at = n;
        gnomon_distortion norms, pairs;
        const gnomon_status s =
            gnomon_measure_distortion_csr(poor, &csr, &my, NULL, &norms, &pairs, NULL);
        done = s == GNOMON_OK;
        if (!done) assert_int_equal(s, GNOMON_ERROR_MEMORY);
        assert_true(done == (calls <= n));
        gnomon_context_destroy(poor);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_views_agree),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_zeros_are_skipped),
        cmocka_unit_test(test_sparse_as_dense),
        cmocka_unit_test(test_pairs_in_order),
        cmocka_unit_test(test_sample_is_uniform),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
