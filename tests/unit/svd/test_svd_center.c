/* Principal components: the SVD of rows less their mean beside that of a centred copy in fp64. */
#include "base/memory.h"
#include "svd/center.h"
#include "svd/factor.h"
#include "svd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static gnomon_context *make_context(int threads)
{
    gnomon_context *ctx = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = threads;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

static void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

/* The means, summed exactly enough, and a less them, both in fp64. */
static double *centred_copy(int64_t m, int64_t n, const double *a, double *mean)
{
    double *c = malloc((size_t)(m * n) * sizeof *c);
    for (int64_t j = 0; j < n; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += (long double)a[i * n + j];
        mean[j] = (double)(sum / (long double)m);
        for (int64_t i = 0; i < m; i++)
            c[i * n + j] = (double)((long double)a[i * n + j] - sum / (long double)m);
    }
    return c;
}

/* min(m, n) singular values by LAPACK. */
static double *values_of(int64_t m, int64_t n, const double *a)
{
    const int64_t side = m > n ? m : n;
    double *square = calloc((size_t)(side * side), sizeof *square);
    for (int64_t i = 0; i < m; i++)
        memcpy(square + i * side, a + i * n, (size_t)n * sizeof *a);
    double *s = exact_values(side, square);
    free(square);
    return s;
}

enum { ROWS = 150, COLS = 40, RANK = 6 };

/* Rows whose spread falls fast from direction to direction, and whose mean is about 'mean'. */
static double *data_with(int64_t m, int64_t n, double mean, double ratio, uint64_t seed)
{
    double s[COLS];
    for (int64_t i = 0; i < n; i++)
        s[i] = 30 * pow(ratio, (double)i);
    double *a = matrix_with(m, n, s, seed);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            a[i * n + j] += mean * (1 + (double)j / (double)n);
    return a;
}

/* The same numbers as an array of that type, and back as what they became there. */
static void *stored_as(gnomon_dtype dtype, int64_t count, double *a)
{
    void *stored = malloc((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        if (dtype == GNOMON_F64) {
            ((double *)stored)[i] = a[i];
        } else if (dtype == GNOMON_F32) {
            ((float *)stored)[i] = (float)a[i];
            a[i] = (double)((float *)stored)[i];
        } else {
            a[i] = fmin(fmax(rint(a[i]), -32768), 32767);
            ((int16_t *)stored)[i] = (int16_t)a[i];
        }
    }
    return stored;
}

/* Every entry of a, as sparse rows. */
typedef struct csr_of {
    gnomon_csr view;
    int64_t *offsets, *indices;
} csr_of;

static csr_of full_csr(int64_t m, int64_t n, const void *values, gnomon_dtype dtype)
{
    csr_of c = {.offsets = malloc((size_t)(m + 1) * sizeof(int64_t)),
                .indices = malloc((size_t)(m * n) * sizeof(int64_t))};
    for (int64_t i = 0; i <= m; i++)
        c.offsets[i] = i * n;
    for (int64_t i = 0; i < m * n; i++)
        c.indices[i] = i % n;
    c.view = (gnomon_csr){m, n, c.offsets, c.indices, values, dtype};
    return c;
}

static void drop_csr(csr_of *c)
{
    free(c->offsets);
    free(c->indices);
}

/* Against the copy: mean, norm, values, what is left and its bounds. */
static void check(const gnomon_svd *svd, const double *a, double off, const char *what)
{
    const int64_t m = svd->rows, n = svd->cols;
    const bool f64 = svd->u.dtype == GNOMON_F64;
    double *mean = malloc((size_t)n * sizeof *mean);
    double *copy = centred_copy(m, n, a, mean), *s = values_of(m, n, copy);
    const double norm = tail_of(s, 0, m < n ? m : n), left = residual_of(svd, copy);
    const double u = f64 ? 0x1p-53 : 0x1p-24;
    assert_int_equal(svd->centered, 1);
    for (int64_t j = 0; j < n; j++)
        if (!(fabs(svd->mean[j] - mean[j]) <= 0x1p-53 * fabs(mean[j])))
            fail_msg("%s: mean %lld is %.17g, not %.17g", what, (long long)j, svd->mean[j],
                     mean[j]);
    if (!(fabs(svd->norm - norm) <= (64 * u + off) * norm))
        fail_msg("%s: norm %.17g, not %.17g", what, svd->norm, norm);
    for (int64_t i = 0; i < svd->rank; i++)
        if (!(fabs(svd->s[i] - s[i]) <= (64 * u + off) * s[0]))
            fail_msg("%s: value %lld is %.17g, not %.17g", what, (long long)i, svd->s[i], s[i]);
    if (!(left <= svd->residual_bound + 64 * u * norm))
        fail_msg("%s: %g is left, bound %g", what, left, svd->residual_bound);
    if (!isnan(svd->residual) && !(fabs(svd->residual - left) <= 1e-3 * left + 64 * u * norm))
        fail_msg("%s: %g is left, measured %g", what, left, svd->residual);
    if (!(off_orthonormal(svd) <= 64 * u)) fail_msg("%s: not orthonormal", what);
    free(mean);
    free(copy);
    free(s);
}

static gnomon_svd_options options_of(int64_t rank)
{
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    o.rank = rank;
    o.center = 1;
    return o;
}

/* Means of 1e6 beside a spread of 1 too, in each type. */
static void dense_rows(void **unused)
{
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_I16};
    static const double means[] = {0, 3, 1e6};
    (void)unused;
    gnomon_context *ctx = make_context(2);
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < 3; i++) {
            for (int power = 0; power <= 6; power += power == 0 ? 1 : 5) {
                const bool integers = types[t] == GNOMON_I16;
                double *a =
                    data_with(ROWS, COLS, integers ? i : means[i], 0.3, (uint64_t)(9 * t + i));
                for (int64_t j = 0; integers && j < ROWS * COLS; j++)
                    a[j] *= 2000; /* so that rounding to integers is small beside it */
                void *stored = stored_as(types[t], ROWS * COLS, a);
                gnomon_matrix view = gnomon_matrix_rowmajor(stored, types[t], ROWS, COLS);
                gnomon_svd svd = {.struct_size = sizeof svd};
                gnomon_svd_options o = options_of(RANK);
                o.power = power;
                o.measure = 1;
                expect(ctx, gnomon_svd_dense(ctx, &view, &o, &svd), GNOMON_OK);
                check(&svd, a, power == 0 ? 0.05 : power == 1 ? 1e-3 : 1e-6, "dense");
                gnomon_svd_free(ctx, &svd);
                free(a);
                free(stored);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

/* fp64 data with the work in single precision: the means keep the digits that fp32 has not. */
static void means_before_rounding(void **unused)
{
    (void)unused;
    gnomon_context *ctx = make_context(1);
    double *a = data_with(ROWS, COLS, 1e12, 0.3, 5);
    csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    for (int i = 0; i < 2; i++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options o = options_of(RANK);
        o.dtype = GNOMON_F32;
        expect(ctx,
               i == 0 ? gnomon_svd_dense(ctx, &view, &o, &svd)
                      : gnomon_svd_csr(ctx, &sparse.view, &o, &svd),
               GNOMON_OK);
        assert_int_equal(svd.u.dtype, GNOMON_F32);
        /* a sparse row's products are sums of terms of 1e12 in fp64 */
        check(&svd, a, i == 0 ? 1e-4 : 2e-3, "in single precision");
        gnomon_svd_free(ctx, &svd);
    }
    drop_csr(&sparse);
    free(a);
    gnomon_context_destroy(ctx);
}

/* Sparse rows: full ones with a large mean, and such with gaps, out of order and with entries that
 * add up. */
static void sparse_rows(void **unused)
{
    (void)unused;
    gnomon_context *ctx = make_context(2);
    for (int f64 = 0; f64 < 2; f64++) {
        for (int i = 0; i < 3; i++) {
            double *a = data_with(ROWS, COLS, i == 0 ? 0 : i == 1 ? 5 : 1e6, 0.3, (uint64_t)i);
            const gnomon_dtype dtype = f64 ? GNOMON_F64 : GNOMON_F32;
            void *stored = stored_as(dtype, ROWS * COLS, a);
            csr_of sparse = full_csr(ROWS, COLS, stored, dtype);
            for (int single = 0; single < 2; single++) {
                gnomon_svd svd = {.struct_size = sizeof svd};
                gnomon_svd_options o = options_of(RANK);
                o.single_pass = single;
                expect(ctx, gnomon_svd_csr(ctx, &sparse.view, &o, &svd), GNOMON_OK);
                check(&svd, a, single ? 0.05 : 1e-6, "full sparse rows");
                gnomon_svd_free(ctx, &svd);
            }
            drop_csr(&sparse);
            free(a);
            free(stored);
        }
    }
    gnomon_context_destroy(ctx);
}

static void entries_that_add_up(void **unused)
{
    enum { M = 60, N = 25, EACH = 5 };
    (void)unused;
    gnomon_context *ctx = make_context(1);
    uint64_t state = 9;
    double *a = calloc(M * N, sizeof *a), values[M * EACH];
    int64_t offsets[M + 1], indices[M * EACH];
    for (int64_t i = 0; i <= M; i++)
        offsets[i] = i * EACH;
    for (int64_t e = 0; e < M * EACH; e++) {
        indices[e] = (int64_t)(draw_uniform(&state) * (e % EACH == 0 ? 2 : N));
        if (e % EACH == 4) indices[e] = indices[e - 4];
        values[e] = draw_normal(&state) + 2;
        a[e / EACH * N + indices[e]] += values[e];
    }
    const gnomon_csr view = {M, N, offsets, indices, values, GNOMON_F64};
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options o = options_of(N);
    expect(ctx, gnomon_svd_csr(ctx, &view, &o, &svd), GNOMON_OK);
    check(&svd, a, 1e-12, "entries that add up");
    gnomon_svd_free(ctx, &svd);
    free(a);
    gnomon_context_destroy(ctx);
}

/* Columns whose sums cancel, and ones whose sum is beyond the range. */
static void means_are_exact(void **unused)
{
    static const double hard[3][6] = {{1e17, 1, -1e17, 1, 1e17, -1e17},
                                      {1.7e308, 1.7e308, 1.6e308, 1.5e308, 1.7e308, 1.4e308},
                                      {0.1, 0.1, 0.1, 0.1, 0.1, 0.1}};
    static const double want[3] = {2.0 / 6, 1.6e308, 0.1};
    (void)unused;
    gnomon_context *ctx = make_context(1);
    for (int sparse = 0; sparse < 2; sparse++) {
        for (int c = 0; c < 3; c++) {
            double a[12];
            for (int i = 0; i < 6; i++) {
                a[2 * i] = hard[c][i];
                a[2 * i + 1] = c == 1 ? 1e300 * i : i;
            }
            const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, 6, 2);
            csr_of rows = full_csr(6, 2, a, GNOMON_F64);
            gnomon_svd svd = {.struct_size = sizeof svd};
            gnomon_svd_options o = options_of(1);
            expect(ctx,
                   sparse ? gnomon_svd_csr(ctx, &rows.view, &o, &svd)
                          : gnomon_svd_dense(ctx, &view, &o, &svd),
                   GNOMON_OK);
            assert_true(fabs(svd.mean[0] - want[c]) <= 0x1p-52 * want[c]);
            assert_true(isfinite(svd.s[0]) && isfinite(svd.norm));
            gnomon_svd_free(ctx, &svd);
            drop_csr(&rows);
        }
    }
    gnomon_context_destroy(ctx);
}

/* All rows equal, and a single row: nothing is left, not even rounding. */
static void nothing_is_left(void **unused)
{
    (void)unused;
    gnomon_context *ctx = make_context(2);
    double a[40 * COLS];
    for (int64_t i = 0; i < 40 * COLS; i++)
        a[i] = sin((double)(i % COLS)) * 1e3 + 0.1;
    for (int64_t rows = 1; rows <= 40; rows += 39) {
        const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, rows, COLS);
        csr_of sparse = full_csr(rows, COLS, a, GNOMON_F64);
        for (int single = 0; single < 2; single++) {
            for (int from = 0; from < 2; from++) {
                gnomon_svd svd = {.struct_size = sizeof svd};
                gnomon_svd_options o = options_of(1);
                o.single_pass = single;
                expect(ctx,
                       from == 0 ? gnomon_svd_dense(ctx, &view, &o, &svd)
                                 : gnomon_svd_csr(ctx, &sparse.view, &o, &svd),
                       GNOMON_OK);
                for (int64_t j = 0; j < COLS; j++)
                    assert_true(svd.mean[j] == a[j]);
                assert_true(svd.norm == 0 && svd.s[0] == 0 && svd.residual_bound == 0);
                assert_int_equal(svd.numerical_rank, 0);
                gnomon_svd_free(ctx, &svd);
            }
        }
        drop_csr(&sparse);
    }
    gnomon_context_destroy(ctx);
}

/* Rows of a matrix in memory, a few at a time; 'once': they can't be gone back in. */
typedef struct pieces {
    const double *data;
    int64_t rows, cols, at, step;
} pieces;

static gnomon_status pieces_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    pieces *f = user;
    int64_t n = f->rows - f->at < f->step ? f->rows - f->at : f->step;
    if (n > dst->rows) n = dst->rows;
    for (int64_t i = 0; i < n * f->cols; i++) {
        const double x = f->data[f->at * f->cols + i];
        const int64_t to = i / f->cols * dst->row_stride + i % f->cols * dst->col_stride;
        if (dst->dtype == GNOMON_F64)
            ((double *)dst->data)[to] = x;
        else
            ((float *)dst->data)[to] = (float)x;
    }
    f->at += n;
    *got = n;
    return GNOMON_OK;
}

static gnomon_status pieces_rewind(void *user)
{
    ((pieces *)user)->at = 0;
    return GNOMON_OK;
}

static void same_bits(const gnomon_svd *a, const gnomon_svd *b)
{
    const size_t size = gnomon_dtype_size(a->u.dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->mean, b->mean, (size_t)a->cols * sizeof *a->mean);
    assert_memory_equal(a->s, b->s, (size_t)a->rank * sizeof *a->s);
    assert_memory_equal(a->u.data, b->u.data, (size_t)(a->rows * a->rank) * size);
    assert_memory_equal(a->vt.data, b->vt.data, (size_t)(a->cols * a->rank) * size);
    assert_true(a->norm == b->norm && a->residual_bound == b->residual_bound);
}

/* Rows piece by piece, by themselves and beside rows in memory, on one thread and three; read once
 * with their number unknown. */
static void streamed_rows(void **unused)
{
    enum { MANY = 5000 };
    (void)unused;
    gnomon_context *one = make_context(1), *three = make_context(3);
    for (int single = 0; single < 2; single++) {
        for (int f64 = 0; f64 < 2; f64++) {
            double *a = malloc(sizeof *a * MANY * COLS);
            uint64_t state = 17;
            for (int64_t i = 0; i < MANY * COLS; i++)
                a[i] = 2000 + (double)(i / COLS) / 500 +
                       draw_normal(&state) * pow(0.5, (double)(i % COLS));
            const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, MANY, COLS);
            gnomon_svd_options o = options_of(RANK);
            o.single_pass = single;
            o.oversample = 20;
            o.dtype = f64 ? GNOMON_F64 : GNOMON_F32;
            o.test_vectors = 100;
            gnomon_svd svd = {.struct_size = sizeof svd}, other = {.struct_size = sizeof svd};
            expect(one, gnomon_svd_dense(one, &view, &o, &svd), GNOMON_OK);
            double *mean = malloc(COLS * sizeof *mean), *copy = centred_copy(MANY, COLS, a, mean);
            const double left = residual_of(&svd, copy);
            assert_true(left <= svd.residual_bound);
            assert_true(svd.residual_estimate > 0.6 * left && svd.residual_estimate < 1.6 * left);
            double gram[COLS * COLS] = {0};
            for (int64_t i = 0; i < MANY; i++)
                for (int64_t p = 0; p < COLS; p++)
                    for (int64_t q = 0; q < COLS; q++)
                        gram[p * COLS + q] += copy[i * COLS + p] * copy[i * COLS + q];
            double *squares = exact_values(COLS, gram), norm = 0;
            for (int64_t i = 0; i < COLS; i++)
                norm += squares[i];
            assert_true(fabs(svd.norm - sqrt(norm)) <= 1e-6 * svd.norm);
            for (int64_t i = 0; i < RANK; i++)
                assert_true(fabs(svd.s[i] - sqrt(squares[i])) <= (single ? 1e-2 : 1e-5) * svd.s[0]);
            for (int64_t j = 0; j < COLS; j++)
                assert_true(fabs(svd.mean[j] - mean[j]) <= 0x1p-52 * fabs(mean[j]));
            for (int way = 0; way < 3; way++) {
                pieces p = {a, MANY, COLS, 0, way == 0 ? 37 : 1 << 20};
                const gnomon_svd_rows rows = {&p,          single && way == 1 ? -1 : MANY,
                                              COLS,        GNOMON_F64,
                                              pieces_next, single ? NULL : pieces_rewind};
                gnomon_context *ctx = way == 0 ? one : three;
                other.struct_size = sizeof other;
                expect(ctx,
                       way == 2 ? gnomon_svd_dense(ctx, &view, &o, &other)
                                : gnomon_svd_stream(ctx, &rows, &o, &other),
                       GNOMON_OK);
                same_bits(&svd, &other);
                gnomon_svd_free(ctx, &other);
            }
            gnomon_svd_free(one, &svd);
            free(a);
            free(mean);
            free(copy);
            free(squares);
        }
    }
    gnomon_context_destroy(one);
    gnomon_context_destroy(three);
}

/* The smallest rank, of dense rows and of sparse ones with a large mean. */
static void tolerance(void **unused)
{
    static const double tolerances[] = {0.5, 0.1, 1e-3, 1e-6};
    (void)unused;
    gnomon_context *ctx = make_context(2);
    double *a = data_with(ROWS, COLS, 1e4, 0.6, 3), mean[COLS];
    double *copy = centred_copy(ROWS, COLS, a, mean), *s = values_of(ROWS, COLS, copy);
    csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    const double norm = tail_of(s, 0, COLS);
    for (int i = 0; i < 4; i++) {
        int64_t smallest = 1;
        while (tail_of(s, smallest, COLS) > tolerances[i] * norm)
            smallest++;
        for (int from = 0; from < 2; from++) {
            gnomon_svd svd = {.struct_size = sizeof svd};
            gnomon_svd_options o = options_of(0);
            o.tolerance = tolerances[i];
            expect(ctx,
                   from == 0 ? gnomon_svd_dense(ctx, &view, &o, &svd)
                             : gnomon_svd_csr(ctx, &sparse.view, &o, &svd),
                   GNOMON_OK);
            assert_true(svd.converged);
            assert_true(residual_of(&svd, copy) <= tolerances[i] * norm * (1 + 1e-9));
            if (from == 0 || i < 3) assert_int_equal(svd.rank, smallest);
            check(&svd, a, 1e-2, "tolerance");
            gnomon_svd_free(ctx, &svd);
        }
    }
    drop_csr(&sparse);
    free(a);
    free(copy);
    free(s);
    gnomon_context_destroy(ctx);
}

/* Sparse rows of rank 1 less their mean, which is 1e9 times as long: what is left is rounding of
 * what was taken off, and the bounds have it. */
static void bounds_have_the_rounding(void **unused)
{
    (void)unused;
    gnomon_context *ctx = make_context(1);
    double *a = malloc(sizeof *a * ROWS * COLS), mean[COLS];
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++)
            a[i * COLS + j] = ldexp(1 + (double)j, 30) + (double)(i % 7) * (double)(j % 5);
    double *copy = centred_copy(ROWS, COLS, a, mean);
    csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
    for (uint64_t seed = 0; seed < 5; seed++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options o = options_of(1);
        o.seed = seed;
        o.test_vectors = 1000; /* so that the bounds allow for little else */
        o.test_power = (int)seed % 3;
        expect(ctx, gnomon_svd_csr(ctx, &sparse.view, &o, &svd), GNOMON_OK);
        const double left = residual_of(&svd, copy);
        assert_true(left > 0 && left <= svd.residual_bound &&
                    left <= svd.spectral_bound * sqrt(COLS));
        assert_true(svd.residual_bound <= 0.01 * svd.norm); /* it allows for little more */
        gnomon_svd_free(ctx, &svd);
    }
    /* Values of that size are rounding, too. */
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options o = options_of(5);
    expect(ctx, gnomon_svd_csr(ctx, &sparse.view, &o, &svd), GNOMON_OK);
    assert_int_equal(svd.numerical_rank, 1);
    gnomon_svd_free(ctx, &svd);
    gnomon_svd plain = {.rank = 1}, rounded = {.rank = 1};
    gnomon_lengths l = {.power = 1, .logarithms = -40, .ratio = 1, .longest = 1};
    plain.residual_estimate = rounded.residual_estimate = 2;
    gnomon_bounds_of(&plain, &l, 1000, 0, INFINITY);
    gnomon_bounds_of(&rounded, &l, 1000, 0.5, INFINITY);
    assert_true(plain.spectral_bound < 1e-4 && plain.residual_bound < 2.3);
    assert_true(rounded.spectral_bound >= 3 * 0.5 * sqrt(2 / acos(-1.0)));
    assert_true(rounded.residual_bound >= 2.5);
    const double lengths[] = {1, 2, 2, 1};
    double estimate, bound, with;
    gnomon_frobenius_of(lengths, 4, 0, &estimate, &bound);
    gnomon_frobenius_of(lengths, 4, 0.5, &estimate, &with);
    assert_true(fabs(with / bound - (estimate + 0.5) / estimate) < 1e-14);
    drop_csr(&sparse);
    free(a);
    free(copy);
    gnomon_context_destroy(ctx);
}

/* A source of rows less their mean, looked at. */
static gnomon_row_source source_of(gnomon_context *ctx, const gnomon_matrix *matrix,
                                   const gnomon_csr *csr, bool f64)
{
    gnomon_row_source s;
    expect(ctx, gnomon_row_source_open(ctx, matrix, csr, NULL, f64, &s), GNOMON_OK);
    s.centered = true;
    return s;
}

static gnomon_tall tall_of(gnomon_context *ctx, bool f64, int64_t rows, int64_t cols,
                           uint64_t *state)
{
    gnomon_tall t;
    expect(ctx, gnomon_tall_make(ctx, f64, rows, cols, true, "a test", &t), GNOMON_OK);
    for (int64_t i = 0; state != NULL && i < rows * cols; i++) {
        if (f64)
            ((double *)t.data)[i] = draw_normal(state);
        else
            ((float *)t.data)[i] = (float)draw_normal(state);
    }
    return t;
}

static double tall_at(const gnomon_tall *t, int64_t i)
{
    return t->f64 ? ((const double *)t->data)[i] : (double)((const float *)t->data)[i];
}

static double length_of(const gnomon_tall *t)
{
    double sum = 0;
    for (int64_t i = 0; i < t->rows * t->cols; i++)
        sum += tall_at(t, i) * tall_at(t, i);
    return sqrt(sum);
}

/* |y - op(a) w|_F, a less its mean in long double. */
static double error_of(const gnomon_tall *y, const double *a, int64_t m, int64_t n, bool transposed,
                       const gnomon_tall *w)
{
    long double *c = malloc((size_t)(m * n) * sizeof *c), sum = 0;
    for (int64_t j = 0; j < n; j++) {
        long double mean = 0;
        for (int64_t i = 0; i < m; i++)
            mean += (long double)a[i * n + j] / (long double)m;
        for (int64_t i = 0; i < m; i++)
            c[i * n + j] = (long double)a[i * n + j] - mean;
    }
    for (int64_t i = 0; i < y->rows; i++) {
        for (int64_t l = 0; l < y->cols; l++) {
            long double x = -(long double)tall_at(y, i * y->cols + l);
            for (int64_t j = 0; j < w->rows; j++)
                x += c[transposed ? j * n + i : i * n + j] *
                     (long double)tall_at(w, j * w->cols + l);
            sum += x * x;
        }
    }
    free(c);
    return (double)sqrtl(sum);
}

/* Products of sparse rows whose mean is 2^30 times their spread: off by no more than what is said,
 * which is not far more than they are off. And their projection, which both terms of are in. */
static void products_of_sparse_rows(void **unused)
{
    enum { S = 5 };
    (void)unused;
    gnomon_context *ctx = make_context(2);
    for (int f64 = 0; f64 < 2; f64++) {
        uint64_t state = 11;
        double *a = data_with(ROWS, COLS, f64 ? 0x1p30 : 0x1p12, 0.9, 4);
        csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
        gnomon_row_source s = source_of(ctx, NULL, &sparse.view, f64);
        expect(ctx, gnomon_row_source_scan(&s), GNOMON_OK);
        gnomon_tall w = tall_of(ctx, f64, COLS, S, &state), q = tall_of(ctx, f64, ROWS, S, &state);
        gnomon_tall y = tall_of(ctx, f64, ROWS, S, NULL), z = tall_of(ctx, f64, COLS, S, NULL);
        expect(ctx, gnomon_row_source_apply(&s, &w, &y), GNOMON_OK);
        expect(ctx, gnomon_row_source_adjoint(&s, &q, &z), GNOMON_OK);
        const double off = error_of(&y, a, ROWS, COLS, false, &w);
        const double adjoint_off = error_of(&z, a, ROWS, COLS, true, &q);
        const double own = f64 ? 0 : 0x1p-24; /* of a result in single precision */
        assert_true(off <= s.center.rounding * length_of(&w) + own * length_of(&y));
        assert_true(adjoint_off <= s.center.rounding_adjoint * length_of(&q) + own * length_of(&z));
        assert_true(s.center.rounding > 0 && s.center.rounding_adjoint > 0);
        if (f64) assert_true(s.center.rounding * length_of(&w) <= 1e4 * off);

        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        gnomon_operator *op;
        d.kind = GNOMON_GAUSSIAN;
        d.k = S;
        d.d = COLS;
        expect(ctx, gnomon_operator_create(ctx, &d, &op), GNOMON_OK);
        double mean[COLS], sketch[ROWS * S], *copy = centred_copy(ROWS, COLS, a, mean);
        const gnomon_matrix from = gnomon_matrix_rowmajor(copy, GNOMON_F64, ROWS, COLS);
        const gnomon_matrix to = gnomon_matrix_rowmajor(sketch, GNOMON_F64, ROWS, S);
        expect(ctx, gnomon_sketch(ctx, op, &from, &to, NULL), GNOMON_OK);
        expect(ctx, gnomon_row_source_sketch(&s, op, 0, &y), GNOMON_OK);
        for (int64_t i = 0; i < ROWS * S; i++)
            assert_true(fabs(tall_at(&y, i) - sketch[i]) <= (f64 ? 1e-3 : 1e-4));
        gnomon_operator_destroy(op);
        free(copy);
        free(a);
        drop_csr(&sparse);
        gnomon_tall_drop(ctx, &w);
        gnomon_tall_drop(ctx, &q);
        gnomon_tall_drop(ctx, &y);
        gnomon_tall_drop(ctx, &z);
        gnomon_row_source_close(&s);
    }
    gnomon_context_destroy(ctx);
}

/* Rows that are read once, the first of which are far from the others: products in single precision
 * with what is less the first rows' mean are off by no more than what is said. */
static void products_of_rows_read_once(void **unused)
{
    enum { M = 12000, S = 3 };
    (void)unused;
    gnomon_context *ctx = make_context(2);
    uint64_t state = 12;
    double *a = malloc(sizeof *a * M * COLS), *offset = NULL;
    for (int64_t i = 0; i < M * COLS; i++)
        a[i] = draw_normal(&state) + (i / COLS < 2500 ? 1e4 : 0);
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, M, COLS);
    gnomon_row_source s = source_of(ctx, &view, NULL, false);
    s.center.once = true;
    gnomon_tall w = tall_of(ctx, false, COLS, S, &state), y = tall_of(ctx, false, M, S, NULL);
    expect(ctx, gnomon_row_source_apply(&s, &w, &y), GNOMON_OK);
    expect(ctx, gnomon_center_end(&s, &offset), GNOMON_OK);
    double correction[S], squares = 0, mean[COLS];
    gnomon_center_sums(ctx, &w, offset, correction);
    for (int64_t j = 0; j < COLS; j++)
        squares += offset[j] * offset[j];
    gnomon_tall exact = tall_of(ctx, true, M, S, NULL); /* so that the last rounding is not seen */
    for (int64_t i = 0; i < M * S; i++)
        ((double *)exact.data)[i] = tall_at(&y, i) - correction[i % S];
    const double off = error_of(&exact, a, M, COLS, false, &w);
    double *copy = centred_copy(M, COLS, a, mean), norm = 0;
    for (int64_t i = 0; i < M * COLS; i++)
        norm += copy[i] * copy[i];
    assert_true(sqrt(squares) > 1e3 && off > 0);
    assert_true(fabs(s.norm - sqrt(norm)) <= 1e-12 * s.norm);
    assert_true(off <= s.center.rounding * length_of(&w));
    assert_true(s.center.rounding <= 0x1p-24 * 4 * sqrt(COLS) * sqrt(M * squares) * (1 + 1e-12));
    gnomon_free(ctx, offset);
    free(copy);
    free(a);
    gnomon_tall_drop(ctx, &w);
    gnomon_tall_drop(ctx, &y);
    gnomon_tall_drop(ctx, &exact);
    gnomon_row_source_close(&s);
    gnomon_context_destroy(ctx);
}

/* Sparse rows whose mean is 1e9 times their spread: no tolerance is said to be met that isn't. */
static void tolerance_beyond_rounding(void **unused)
{
    static const double tolerances[] = {1e-2, 1e-4, 1e-6};
    (void)unused;
    gnomon_context *ctx = make_context(2);
    double *a = data_with(ROWS, COLS, 3e10, 0.7, 3), mean[COLS];
    double *copy = centred_copy(ROWS, COLS, a, mean), norm = 0;
    csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
    for (int64_t i = 0; i < ROWS * COLS; i++)
        norm += copy[i] * copy[i];
    for (int i = 0; i < 3; i++) {
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options o = options_of(0);
        o.tolerance = tolerances[i];
        expect(ctx, gnomon_svd_csr(ctx, &sparse.view, &o, &svd), GNOMON_OK);
        const double left = residual_of(&svd, copy);
        assert_true(!svd.converged || left <= tolerances[i] * sqrt(norm));
        assert_true(left <= svd.residual_bound);
        gnomon_svd_free(ctx, &svd);
    }
    drop_csr(&sparse);
    free(a);
    free(copy);
    gnomon_context_destroy(ctx);
}

/* Rows less their mean may be beyond the range: the vectors are none the worse. */
static void beyond_the_range(void **unused)
{
    const double a[8] = {1.7e308, 1, -1.7e308, 2, -1.7e308, 3, -1.7e308, 4};
    const gnomon_matrix view = gnomon_matrix_rowmajor((void *)(uintptr_t)a, GNOMON_F64, 4, 2);
    (void)unused;
    gnomon_context *ctx = make_context(1);
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options o = options_of(1);
    expect(ctx, gnomon_svd_dense(ctx, &view, &o, &svd), GNOMON_OK);
    assert_true(svd.mean[0] == -0.85e308);
    assert_true(fabs(at(&svd.vt, 0, 0) - 1) < 1e-12 && fabs(at(&svd.u, 0, 0) - sqrt(0.75)) < 1e-12);
    gnomon_svd_free(ctx, &svd);
    gnomon_context_destroy(ctx);
}

/* What is not finite is named; what the option may be. */
static void refusals(void **unused)
{
    (void)unused;
    gnomon_context *ctx = make_context(2);
    double *a = data_with(ROWS, COLS, 1, 0.5, 1);
    a[77 * COLS + 5] = (double)NAN;
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, ROWS, COLS);
    csr_of sparse = full_csr(ROWS, COLS, a, GNOMON_F64);
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options o = options_of(RANK);
    for (int i = 0; i < 3; i++) {
        o.single_pass = i == 1;
        expect(ctx,
               i < 2 ? gnomon_svd_dense(ctx, &view, &o, &svd)
                     : gnomon_svd_csr(ctx, &sparse.view, &o, &svd),
               GNOMON_ERROR_NONFINITE);
        assert_non_null(strstr(gnomon_last_error(ctx), "row 77, column 5"));
        assert_null(svd.mean);
    }
    o.center = 2;
    expect(ctx, gnomon_svd_dense(ctx, &view, &o, &svd), GNOMON_ERROR_ARGUMENT);
    assert_string_equal(gnomon_last_error_argument(ctx), "center");
    drop_csr(&sparse);
    free(a);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_rows),
        cmocka_unit_test(means_before_rounding),
        cmocka_unit_test(sparse_rows),
        cmocka_unit_test(entries_that_add_up),
        cmocka_unit_test(means_are_exact),
        cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(streamed_rows),
        cmocka_unit_test(tolerance),
        cmocka_unit_test(bounds_have_the_rounding),
        cmocka_unit_test(products_of_sparse_rows),
        cmocka_unit_test(products_of_rows_read_once),
        cmocka_unit_test(tolerance_beyond_rounding),
        cmocka_unit_test(beyond_the_range),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
