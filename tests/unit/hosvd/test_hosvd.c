/* HOSVD of tensors whose ranks and spectra are known: accuracy beside LAPACK's, tolerances, scales,
 * degenerate shapes, refusals. */
#include "hosvd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int make(void **state)
{
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = 2;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return -1;
    *state = ctx;
    return 0;
}

static int drop(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

static void expect(gnomon_context *ctx, gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

/* c's numbers as floats, which c then holds too. */
static float *round_to_floats(cube *c)
{
    float *f = as_floats(c->data, cube_count(c));
    for (int64_t i = 0; i < cube_count(c); i++)
        c->data[i] = (double)f[i];
    return f;
}

/* All that must hold of a factorisation of x. */
static void check(const gnomon_hosvd *h, const cube *x, int f64, double slack)
{
    const double u = f64 ? 0x1p-53 : 0x1p-24, norm = cube_norm(x);
    const double residual = hosvd_residual(h, x);
    assert_int_equal(h->modes, x->modes);
    assert_true(hosvd_off(h) <= 64 * u);
    assert_true(fabs(h->norm - norm) <= 1e-12 * norm);
    assert_true(fabs(h->residual - residual) <= 0.01 * residual + slack * u * norm);
    assert_int_equal(h->core.dtype, f64 ? GNOMON_F64 : GNOMON_F32);
    for (int n = 0; n < h->modes; n++) {
        double *values = malloc((size_t)h->rank[n] * sizeof *values);
        cube g = core_as_f64(h);
        for (int64_t j = 0; j < h->rank[n]; j++) {
            double most = 0, value = 0;
            for (int64_t i = 0; i < h->size[n]; i++) {
                const double q = at(&h->factor[n], i, j);
                if (fabs(q) > most) value = q;
                most = fmax(most, fabs(q));
            }
            assert_true(value > 0);
            if (j > 0) assert_true(h->values[n][j] <= h->values[n][j - 1]);
        }
        /* all-orthogonal: the values are those of the core's unfolding, whose basis is the identity
         */
        double *basis = exact_basis(&g, n, h->rank[n], values);
        for (int64_t j = 0; j < h->rank[n]; j++)
            assert_true(fabs(values[j] - h->values[n][j]) <= 4 * sqrt(u) * norm);
        int64_t right = 1;
        for (int k = n + 1; k < h->modes; k++)
            right *= h->rank[k];
        const int64_t count = cube_count(&g), length = h->rank[n];
        for (int64_t p = 0; p < length; p++)
            for (int64_t q = 0; q <= p; q++) {
                double dot = 0;
                for (int64_t l = 0; l < count / length / right; l++)
                    for (int64_t r = 0; r < right; r++)
                        dot += g.data[(l * length + p) * right + r] *
                               g.data[(l * length + q) * right + r];
                const double want = p == q ? h->values[n][p] * h->values[n][p] : 0;
                assert_true(fabs(dot - want) <= 512 * u * norm * norm);
            }
        free(basis);
        free(values);
        free(g.data);
    }
}

static void factor(gnomon_context *ctx, const cube *x, const void *data, gnomon_dtype dtype,
                   const gnomon_hosvd_options *options, gnomon_hosvd *h)
{
    const gnomon_tensor t =
        gnomon_tensor_packed((void *)(uintptr_t)data, dtype, x->modes, x->size, 0);
    expect(ctx, gnomon_hosvd_dense(ctx, &t, options, h), GNOMON_OK);
}

/* Low rank, so that nothing but rounding is left: any number of modes, odd sizes, both ways. */
static void test_algorithm_3(void **state)
{
    static const struct {
        int modes;
        int64_t size[6], rank[6];
    } cases[] = {{3, {67, 41, 53}, {12, 9, 11}},
                 {3, {5, 190, 3}, {4, 7, 3}},
                 {4, {31, 17, 23, 29}, {6, 5, 7, 8}},
                 {6, {9, 7, 8, 6, 5, 10}, {3, 3, 3, 3, 3, 3}},
                 {2, {150, 80}, {9, 9}}};
    gnomon_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int way = 0; way < 8; way++) {
            cube x = algorithm_3(cases[c].modes, cases[c].size, cases[c].rank, 2, c + 1);
            const int f64 = way & 1;
            gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
            gnomon_hosvd h = {.struct_size = sizeof h};
            float *f = f64 ? NULL : round_to_floats(&x);
            options.ranks = cases[c].rank;
            options.rank_count = cases[c].modes;
            options.sequential = way >> 1 & 1;
            options.oversample = way & 4 ? 0 : 5;
            options.seed = c;
            factor(ctx, &x, f64 ? (void *)x.data : f, f64 ? GNOMON_F64 : GNOMON_F32, &options, &h);
            check(&h, &x, f64, 64);
            assert_true(h.residual <= (f64 ? 1e-13 : 3e-6) * h.norm);
            assert_int_equal(h.residual_by, GNOMON_RESIDUAL_MEASURED);
            assert_memory_equal(h.rank, cases[c].rank, (size_t)h.modes * sizeof *h.rank);
            gnomon_hosvd_free(ctx, &h);
            assert_null(h.core.data);
            free(f);
            free(x.data);
        }
    }
}

/* Spectra that fall: nearly as good as by LAPACK, and as well as it where iterations sharpen. */
static void test_beside_lapack(void **state)
{
    static const int64_t size[] = {48, 37, 42}, rank[] = {10, 7, 12};
    gnomon_context *ctx = *state;
    for (int i = 0; i < 3; i++) {
        const double fall = (double[]){0.05, 0.3, 1.2}[i];
        cube x = falling(3, size, fall, 3);
        float *f = round_to_floats(&x);
        const double norm = cube_norm(&x), exact = exact_residual(&x, rank);
        for (int way = 0; way < 8; way++) {
            const int f64 = way & 1, power = way >> 2 & 1;
            gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
            gnomon_hosvd h = {.struct_size = sizeof h};
            options.ranks = rank;
            options.rank_count = 3;
            options.sequential = way >> 1 & 1;
            options.power = power;
            factor(ctx, &x, f64 ? (void *)x.data : f, f64 ? GNOMON_F64 : GNOMON_F32, &options, &h);
            check(&h, &x, f64, 64);
            print_message("fall %g, %s%s, power %d: %.4g of the norm, LAPACK %.4g\n", fall,
                          f64 ? "double" : "single", options.sequential ? ", sequential" : "",
                          power, h.residual / norm, exact / norm);
            assert_true(h.residual <= (power ? 1.01 : 1.25) * exact + (f64 ? 1e-14 : 1e-6) * norm);
            if (exact > 0.1 * norm) assert_int_equal(h.residual_by, GNOMON_RESIDUAL_NORMS);
            gnomon_hosvd_free(ctx, &h);
        }
        free(x.data);
        free(f);
    }
}

static void test_operators(void **state)
{
    static const int64_t size[] = {40, 30, 35}, rank[] = {8, 8, 8};
    gnomon_context *ctx = *state;
    cube x = falling(3, size, 0.4, 8);
    const double exact = exact_residual(&x, rank);
    for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_KRONECKER; kind++) {
        gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        gnomon_hosvd h = {.struct_size = sizeof h};
        d.kind = (gnomon_kind)kind;
        d.seed = 4;
        options.descriptor = &d;
        options.ranks = rank;
        options.rank_count = 3;
        factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
        check(&h, &x, 1, 64);
        assert_true(h.residual <= 1.5 * exact);
        assert_int_equal(h.descriptor.kind, kind);
        gnomon_hosvd_free(ctx, &h);
    }
    free(x.data);
}

static void test_tolerance(void **state)
{
    static const int64_t size[] = {70, 66, 68};
    gnomon_context *ctx = *state;
    cube x = falling(3, size, 0.7, 5);
    const double norm = cube_norm(&x);
    gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h = {.struct_size = sizeof h};
    for (int sequential = 0; sequential < 2; sequential++) {
        options.sequential = sequential;
        /* Down to where squared norms, subtracted, have long lost every digit. */
        for (double tolerance = 0.3; tolerance > 1e-13; tolerance *= 0.01) {
            options.tolerance = tolerance;
            factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
            check(&h, &x, 1, 256);
            print_message("%g: %lld %lld %lld, %.3g\n", tolerance, (long long)h.rank[0],
                          (long long)h.rank[1], (long long)h.rank[2], h.residual / norm);
            assert_true(h.converged);
            assert_true(hosvd_residual(&h, &x) <= tolerance * norm * 1.001);
            /* LAPACK's basis needs about as many: one fewer in each mode is not enough */
            int64_t fewer[3];
            int can = 1;
            for (int n = 0; n < 3; n++) {
                fewer[n] = h.rank[n] - 2;
                can = can && fewer[n] > 0;
            }
            if (can && tolerance > 1e-4) assert_true(exact_residual(&x, fewer) > tolerance * norm);
            gnomon_hosvd_free(ctx, &h);
        }
        options.tolerance = 1e-17;
        factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
        assert_false(h.converged);
        assert_true(hosvd_residual(&h, &x) <= 1e-14 * norm);
        assert_true(h.rank[0] < 60);
        gnomon_hosvd_free(ctx, &h);
        /* out of the ranks' reach */
        options.tolerance = 1e-3;
        options.ranks = (int64_t[]){3, 50, 50};
        options.rank_count = 3;
        factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
        check(&h, &x, 1, 64);
        assert_false(h.converged);
        assert_int_equal(h.rank[0], 3);
        assert_true(h.rank[1] < 20);
        assert_true(h.residual <= 1.05 * exact_residual(&x, (int64_t[]){3, 50, 50}));
        gnomon_hosvd_free(ctx, &h);
        options.ranks = NULL;
        options.rank_count = 0;
    }
    float *f = round_to_floats(&x);
    options.tolerance = 1e-5; /* below the square root of 2^-24 */
    factor(ctx, &x, f, GNOMON_F32, &options, &h);
    check(&h, &x, 0, 64);
    assert_true(h.converged);
    assert_true(hosvd_residual(&h, &x) <= 1.01e-5 * norm);
    gnomon_hosvd_free(ctx, &h);
    options.tolerance = 1e-9;
    factor(ctx, &x, f, GNOMON_F32, &options, &h);
    assert_false(h.converged);
    assert_true(hosvd_residual(&h, &x) <= 2e-6 * norm);
    gnomon_hosvd_free(ctx, &h);
    free(f);
    free(x.data);
}

/* A long mode, which is projected in blocks, with more of them than half as well as fewer. */
/* The smallest ranks that a tolerance allows, to a billionth: a diagonal tensor, whose modes have
 * the squares of its numbers as spectra. What the first mode leaves of the budget is the others'.
 */
static void test_smallest_ranks(void **state)
{
    enum { SIZE = 8 };
    static const int64_t size[] = {SIZE, SIZE, SIZE};
    gnomon_context *ctx = *state;
    for (int modes = 2; modes <= 3; modes++) {
        cube x = cube_of(modes, size);
        double squares = 0;
        for (int i = 0; i < SIZE; i++) {
            const double number = ldexp(1, -i);
            x.data[modes == 2 ? i * SIZE + i : (i * SIZE + i) * SIZE + i] = number;
            squares += number * number;
        }
        for (int rank = 1; rank < SIZE; rank++) {
            double tail = 0;
            for (int i = rank; i < SIZE; i++)
                tail += ldexp(1, -2 * i);
            for (int above = 0; above < 2; above++) {
                gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
                gnomon_hosvd h = {.struct_size = sizeof h};
                options.sequential = 1;
                /* 0.998 of the squared tolerance is spent: the rest is for rounding */
                options.tolerance = sqrt(tail / 0.998 / squares) * (above ? 1 + 1e-9 : 1 - 1e-9);
                factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
                for (int n = 0; n < modes; n++)
                    assert_int_equal(h.rank[n], above ? rank : rank + 1);
                gnomon_hosvd_free(ctx, &h);
            }
        }
        free(x.data);
    }
}

static void test_long_modes(void **state)
{
    static const int64_t size[] = {300, 20, 25};
    gnomon_context *ctx = *state;
    for (int i = 0; i < 4; i++) {
        const int64_t rank[] = {i % 2 ? 190 : 45, 20, 25};
        cube x = algorithm_3(3, size, rank, 0, 6);
        gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_hosvd h = {.struct_size = sizeof h};
        options.tolerance = 1e-9;
        options.power = i / 2;
        options.sequential = i / 2;
        factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
        check(&h, &x, 1, 64);
        assert_true(h.converged);
        assert_int_equal(h.rank[0], rank[0]);
        assert_int_equal(h.columns[0], i % 2 ? 0 : 64);
        gnomon_hosvd_free(ctx, &h);
        free(x.data);
    }
}

static void test_degenerate(void **state)
{
    static const struct {
        int modes;
        int64_t size[16], rank[16];
    } cases[] = {{1, {50}, {1}},
                 {3, {1, 1, 1}, {1, 1, 1}},
                 {3, {1, 40, 1}, {1, 1, 1}},
                 {4, {30, 1, 20, 1}, {5, 1, 5, 1}},
                 {3, {40, 2, 2}, {4, 2, 2}},
                 {3, {60, 30, 20}, {20, 2, 2}}, /* a rank beyond the others' product */
                 {16,
                  {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 2},
                  {1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1, 1, 1, 2, 1}}};
    gnomon_context *ctx = *state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int way = 0; way < 8; way++) {
            cube x = falling(cases[c].modes, cases[c].size, 0.2, c + 20);
            gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
            gnomon_hosvd h = {.struct_size = sizeof h};
            const int zero = way & 1;
            if (zero) memset(x.data, 0, (size_t)cube_count(&x) * sizeof *x.data);
            options.ranks = cases[c].rank;
            options.rank_count = cases[c].modes;
            options.sequential = way >> 1 & 1;
            options.tolerance = way & 4 ? 0.25 : 0;
            options.power = 1;
            options.oversample = 3;
            factor(ctx, &x, x.data, GNOMON_F64, &options, &h);
            assert_true(hosvd_off(&h) <= 1e-14);
            assert_true(fabs(hosvd_residual(&h, &x) - h.residual) <= 1e-6 * h.norm);
            if (zero) {
                assert_true(h.residual == 0 && h.norm == 0 && h.converged);
            } else {
                check(&h, &x, 1, 64);
                if (!(way & 4))
                    assert_memory_equal(h.rank, cases[c].rank, (size_t)h.modes * sizeof *h.rank);
            }
            gnomon_hosvd_free(ctx, &h);
            free(x.data);
        }
    }
}

static void test_scales(void **state)
{
    static const int64_t size[] = {30, 25, 20}, rank[] = {6, 6, 6};
    static const double single[] = {1e-42, 1e-37, 1e-30, 1, 1e30, 1e35};
    static const double f64[] = {1e-300, 1e-150, 1, 1e150, 1e290};
    gnomon_context *ctx = *state;
    cube x = falling(3, size, 0.5, 2);
    const double exact = exact_residual(&x, rank) / cube_norm(&x);
    for (int w = 0; w < 2; w++)
        for (size_t i = 0; i < (w ? sizeof f64 : sizeof single) / sizeof *f64; i++) {
            const double scale = w ? f64[i] : single[i];
            double *d = malloc((size_t)cube_count(&x) * sizeof *d);
            for (int64_t j = 0; j < cube_count(&x); j++)
                d[j] = x.data[j] * scale;
            float *f = as_floats(d, cube_count(&x));
            for (int by_tolerance = 0; by_tolerance < 2; by_tolerance++) {
                gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
                gnomon_hosvd h = {.struct_size = sizeof h};
                options.ranks = rank;
                options.rank_count = 3;
                options.tolerance = by_tolerance ? 0.9 : 0;
                options.power = 1;
                factor(ctx, &x, w ? (void *)d : f, w ? GNOMON_F64 : GNOMON_F32, &options, &h);
                assert_true(hosvd_off(&h) <= 2e-6);
                assert_true(isfinite(h.norm) && isfinite(h.residual) && h.norm > 0);
                if (scale > 1e-40 && !by_tolerance)
                    assert_true(fabs(h.residual / h.norm - exact) <= 0.02 * exact);
                gnomon_hosvd_free(ctx, &h);
            }
            free(d);
            free(f);
        }
    /* a core that single precision can't hold, though the tensor's elements are in it */
    float big[8 * 8 * 8];
    for (int i = 0; i < 512; i++)
        big[i] = 3e38F;
    const gnomon_tensor t = gnomon_tensor_packed(big, GNOMON_F32, 3, (int64_t[]){8, 8, 8}, 0);
    gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h = {.struct_size = sizeof h};
    options.ranks = (int64_t[]){1, 1, 1};
    options.rank_count = 3;
    expect(ctx, gnomon_hosvd_dense(ctx, &t, &options, &h), GNOMON_ERROR_DTYPE);
    assert_non_null(strstr(gnomon_last_error(ctx), "F64"));
    options.dtype = GNOMON_F64;
    expect(ctx, gnomon_hosvd_dense(ctx, &t, &options, &h), GNOMON_OK);
    assert_true(fabs(h.norm / 3e38 / sqrt(512) - 1) <= 1e-6 && h.residual <= 1e-12 * h.norm);
    gnomon_hosvd_free(ctx, &h);
    free(x.data);
}

static void test_refusals(void **state)
{
    gnomon_context *ctx = *state;
    float x[5 * 4 * 3];
    int64_t ranks[] = {2, 2, 2}, huge[] = {(int64_t)1 << 31, (int64_t)1 << 31, 4};
    for (int i = 0; i < 60; i++)
        x[i] = (float)(i * 7 % 11);
    gnomon_tensor t = gnomon_tensor_packed(x, GNOMON_F32, 3, (int64_t[]){5, 4, 3}, 0);
    const gnomon_tensor good = t;
    gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
    const gnomon_hosvd_options none = options;
    gnomon_hosvd h = {.struct_size = sizeof h};
#define REFUSED(status, text)                                       \
    expect(ctx, gnomon_hosvd_dense(ctx, &t, &options, &h), status); \
    if (strstr(gnomon_last_error(ctx), text) == NULL)               \
        fail_msg("%s has no '%s'", gnomon_last_error(ctx), text);   \
    t = good;                                                       \
    options.ranks = ranks;                                          \
    options.rank_count = 3
    REFUSED(GNOMON_ERROR_ARGUMENT, "ranks is NULL");
    options.rank_count = 2;
    REFUSED(GNOMON_ERROR_ARGUMENT, "ranks has 2 ranks, and the tensor has 3 modes");
    options.ranks = (int64_t[]){2, 5, 2};
    REFUSED(GNOMON_ERROR_ARGUMENT, "ranks: the rank of mode 1 is 5; the mode has size 4");
    options.ranks = (int64_t[]){2, 0, 2};
    REFUSED(GNOMON_ERROR_ARGUMENT, "the rank of mode 1 is 0");
    t = gnomon_tensor_packed(x, GNOMON_F32, 3, (int64_t[]){5, 2, 2}, 0);
    options.ranks = (int64_t[]){5, 2, 2};
    REFUSED(GNOMON_ERROR_ARGUMENT, "product is 4");
    t.size[1] = 0;
    REFUSED(GNOMON_ERROR_SHAPE, "mode 1 of x has size 0");
    t.size[1] = -3;
    REFUSED(GNOMON_ERROR_ARGUMENT, "size -3");
    t = gnomon_tensor_packed(x, GNOMON_F32, 3, huge, 0);
    REFUSED(GNOMON_ERROR_UNSUPPORTED, "mode 0");
    huge[0] = huge[1] = huge[2] = INT32_MAX;
    t = gnomon_tensor_packed(x, GNOMON_F32, 3, huge, 0);
    REFUSED(GNOMON_ERROR_OVERFLOW, "product");
    t.stride[0] = INT64_MAX / 2;
    REFUSED(GNOMON_ERROR_ARGUMENT, "stride[0]");
    t.modes = 17;
    REFUSED(GNOMON_ERROR_ARGUMENT, "17 modes");
    t.modes = 0;
    REFUSED(GNOMON_ERROR_ARGUMENT, "0 modes");
    t.data = NULL;
    REFUSED(GNOMON_ERROR_ARGUMENT, "data is NULL");
    t.dtype = (gnomon_dtype)99;
    REFUSED(GNOMON_ERROR_ARGUMENT, "dtype is 99");
    t.memory = GNOMON_DEVICE_MEMORY;
    REFUSED(GNOMON_ERROR_DEVICE, "x lies in a device's memory");
    t.memory = (gnomon_memory)2;
    REFUSED(GNOMON_ERROR_ARGUMENT, "memory is 2");
    options.tolerance = 1;
    REFUSED(GNOMON_ERROR_ARGUMENT, "tolerance is 1");
    options.tolerance = (double)NAN;
    REFUSED(GNOMON_ERROR_ARGUMENT, "tolerance is");
    options = none;
    options.oversample = -1;
    options.tolerance = 0.1;
    REFUSED(GNOMON_ERROR_ARGUMENT, "oversample is -1");
    options = none;
    options.power = 101;
    options.tolerance = 0.1;
    REFUSED(GNOMON_ERROR_ARGUMENT, "power is 101");
    options = none;
    options.tolerance = 0.1;
    options.dtype = GNOMON_F16;
    REFUSED(GNOMON_ERROR_DTYPE, "dtype is 3");
    options.dtype = (gnomon_dtype)0;
    options.tolerance = 0;
    x[1 * 12 + 2 * 3 + 1] = (float)NAN;
    REFUSED(GNOMON_ERROR_NONFINITE, "(1, 2, 1)");
    x[1 * 12 + 2 * 3 + 1] = -INFINITY;
    t = gnomon_tensor_packed(x, GNOMON_F32, 3, (int64_t[]){3, 4, 5}, 1);
    REFUSED(GNOMON_ERROR_NONFINITE, "(1, 2, 1)");
    x[1 * 12 + 2 * 3 + 1] = 1;
    options.memory = 16;
    options.oversample = 0;
    REFUSED(GNOMON_ERROR_MEMORY, "16 are left");
    assert_null(h.core.data);
#undef REFUSED
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_algorithm_3, make, drop),
        cmocka_unit_test_setup_teardown(test_beside_lapack, make, drop),
        cmocka_unit_test_setup_teardown(test_operators, make, drop),
        cmocka_unit_test_setup_teardown(test_tolerance, make, drop),
        cmocka_unit_test_setup_teardown(test_smallest_ranks, make, drop),
        cmocka_unit_test_setup_teardown(test_long_modes, make, drop),
        cmocka_unit_test_setup_teardown(test_degenerate, make, drop),
        cmocka_unit_test_setup_teardown(test_scales, make, drop),
        cmocka_unit_test_setup_teardown(test_refusals, make, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
