/* Many columns in single precision, some of whose products a matrix unit does where there is one
 * (level amx, emulated in tests/avx512): residuals are those of double precision but for rounding,
 * vectors are orthonormal to the last place, the certificate tells no less than what is left, and
 * the bits are those of any number of threads, whatever the singular values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "svd_testing.h"

#include <cmocka.h>

enum { M = 200, N = 160, RANK = 120, KINDS = 10 };

static double value_of(int kind, int i, uint64_t *draws)
{
    switch (kind) {
    case 0: /* tame: coarse products */
        return fmax(1 - 0.99 * i / RANK, 0.01);
    case 1:
        return pow(10, -15.0 * i / N);
    case 2:
        return pow(1e-4, (double)i / RANK);
    case 3:
        return 1;
    case 4: /* of deficient rank */
        return i < 40 ? pow(0.9, i) : 0;
    case 5:
        return i < 40 ? 1 : 0;
    case 6: /* equal to rounding, and a cliff behind */
        return i < RANK ? 1 + 1e-6 * draw_uniform(draws) : 1e-6;
    case 7: /* the halves of a matrix unit's limit */
        return i == 0 ? 256 : i < RANK ? 1 : 0.5;
    default:
        return 0;
    }
}

static double *make(int kind)
{
    uint64_t draws = 77;
    double s[N];
    if (kind < 9) {
        for (int i = 0; i < N; i++)
            s[i] = value_of(kind, i, &draws);
        return matrix_with(M, N, s, 100 + (uint64_t)kind);
    }
    double *a = malloc((size_t)(M * N) * sizeof *a); /* heavy tails */
    for (int i = 0; i < M * N; i++)
        a[i] = (draw_uniform(&draws) - 0.5) * exp(4 * draw_normal(&draws));
    return a;
}

static gnomon_svd factor_within(int64_t memory, const gnomon_matrix *a, int power, int threads,
                                gnomon_context **ctx)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd svd = {.struct_size = sizeof svd};
    options.threads = threads;
    options.memory_limit = memory;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, ctx), GNOMON_OK);
    o.rank = RANK;
    o.oversample = 10;
    o.power = power;
    o.test_vectors = 10; /* with the vectors as many columns as a matrix unit takes */
    o.test_power = 1;
    o.seed = 3;
    if (gnomon_svd_dense(*ctx, a, &o, &svd) != GNOMON_OK) fail_msg("%s", gnomon_last_error(*ctx));
    return svd;
}

static gnomon_svd factor(const gnomon_matrix *a, int power, int threads, gnomon_context **ctx)
{
    return factor_within(0, a, power, threads, ctx);
}

/* The certificate, beside that in double precision; tiny: what rounding may be. Where all singular
 * values are equal, rounding chooses the vectors, and ten test vectors' estimates of what is left
 * by two choices differ by a twentieth of it (standard deviation). */
static void check_certificate(int kind, int power, const gnomon_svd *ours, const gnomon_svd *best,
                              double rest, double tiny)
{
    if (!(ours->residual_bound + tiny >= rest))
        fail_msg("kind %d, power %d: the residual is %g, its bound %g", kind, power, rest,
                 ours->residual_bound);
    const double apart = kind == 3 ? 0.2 : 0.02;
    if (!(fabs(ours->residual_estimate - best->residual_estimate) <=
          apart * best->residual_estimate + tiny))
        fail_msg("kind %d, power %d: the estimate is %g, in double precision %g", kind, power,
                 ours->residual_estimate, best->residual_estimate);
    /* of values that rounding leaves alone */
    if (kind == 0 && power > 0)
        assert_true(llabs(ours->converged_values - best->converged_values) <= 1);
}

static void check(int kind, int power)
{
    double *a = make(kind), norm = 0;
    float *single = as_floats(a, M * N);
    for (int i = 0; i < M * N; i++) {
        a[i] = (double)single[i];
        norm += a[i] * a[i];
    }
    norm = sqrt(norm);
    const gnomon_matrix narrow = gnomon_matrix_rowmajor(single, GNOMON_F32, M, N);
    const gnomon_matrix wide = gnomon_matrix_rowmajor(a, GNOMON_F64, M, N);
    gnomon_context *ctx[3];
    gnomon_svd ours = factor(&narrow, power, 1, &ctx[0]), more = factor(&narrow, power, 3, &ctx[1]),
               best = factor(&wide, power, 1, &ctx[2]);
    const double rest = residual_of(&ours, a), least = residual_of(&best, a);
    if (rest > 1.001 * least + 0x1p-20 * norm)
        fail_msg("kind %d, power %d: the residual is %g, in double precision %g, of %g", kind,
                 power, rest, least, norm);
    const double off = off_orthonormal(&ours);
    if (kind != 8 && !(off < 5e-7))
        fail_msg("kind %d, power %d: off orthonormal by %g", kind, power, off);
    check_certificate(kind, power, &ours, &best, rest, 0x1p-18 * norm);
    assert_int_equal(ours.rank, more.rank);
    assert_true(ours.residual_bound == more.residual_bound);
    assert_true(ours.spectral_bound == more.spectral_bound);
    assert_int_equal(ours.converged_values, more.converged_values);
    assert_memory_equal(ours.s, more.s, (size_t)ours.rank * sizeof *ours.s);
    assert_memory_equal(ours.u.data, more.u.data, (size_t)(M * ours.rank) * sizeof(float));
    assert_memory_equal(ours.vt.data, more.vt.data, (size_t)(N * ours.rank) * sizeof(float));
    gnomon_svd_free(ctx[0], &ours);
    gnomon_svd_free(ctx[1], &more);
    gnomon_svd_free(ctx[2], &best);
    for (int i = 0; i < 3; i++)
        gnomon_context_destroy(ctx[i]);
    free(a);
    free(single);
}

static void hard_spectra(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int power = 0; power < 3; power += 2)
            check(kind, power);
}

/* What is enough at other levels is enough at all of them. */
static void little_memory(void **state)
{
    (void)state;
    double *a = make(0);
    float *single = as_floats(a, M * N);
    const gnomon_matrix narrow = gnomon_matrix_rowmajor(single, GNOMON_F32, M, N);
    gnomon_context *ctx[2];
    gnomon_svd ours = factor(&narrow, 2, 1, &ctx[0]),
               less = factor_within(100000, &narrow, 2, 3, &ctx[1]);
    assert_true(ours.residual_bound == less.residual_bound);
    assert_memory_equal(ours.vt.data, less.vt.data, (size_t)(N * ours.rank) * sizeof(float));
    gnomon_svd_free(ctx[0], &ours);
    gnomon_svd_free(ctx[1], &less);
    gnomon_context_destroy(ctx[0]);
    gnomon_context_destroy(ctx[1]);
    free(a);
    free(single);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hard_spectra),
                                       cmocka_unit_test(little_memory)};
    if (gnomon_blas_missing() != NULL) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
