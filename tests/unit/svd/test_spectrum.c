/* Singular values and vectors by Gram matrices, beside triangles whose values are known. */
#include "linalg/spectrum.h"
#include "svd_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 70 };

/* q (n x n): orthogonal, by Gram and Schmidt, twice. */
static void orthogonal(int n, uint64_t *state, double q[MOST][MOST])
{
    for (int i = 0; i < n; i++) {
        for (int l = 0; l < n; l++)
            q[i][l] = 2 * draw_uniform(state) - 1;
        for (int again = 0; again < 2; again++) {
            for (int j = 0; j < i; j++) {
                double dot = 0;
                for (int l = 0; l < n; l++)
                    dot += q[i][l] * q[j][l];
                for (int l = 0; l < n; l++)
                    q[i][l] -= dot * q[j][l];
            }
            double sum = 0;
            for (int l = 0; l < n; l++)
                sum += q[i][l] * q[i][l];
            for (int l = 0; l < n; l++)
                q[i][l] /= sqrt(sum);
        }
    }
}

/* r: the triangle of diag(s) q, whose singular values are s, which falls from 'scale' to scale *
 * least, all equal when least is 1. */
static void make(int n, double scale, double least, double *s, double *r)
{
    static double q[MOST][MOST];
    uint64_t state = (uint64_t)n;
    orthogonal(n, &state, q);
    for (int i = 0; i < n; i++) {
        s[i] = scale * pow(least, n > 1 ? (double)i / (n - 1) : 0);
        for (int j = 0; j < n; j++)
            r[i * n + j] = s[i] * q[i][j];
    }
    /* rotations of two rows clear what is below the diagonal */
    for (int j = 0; j < n; j++) {
        for (int i = n - 1; i > j; i--) {
            const double a = r[(i - 1) * n + j], b = r[i * n + j], h = hypot(a, b);
            for (int l = 0; l < n && h > 0; l++) {
                const double x = r[(i - 1) * n + l], y = r[i * n + l];
                r[(i - 1) * n + l] = (a * x + b * y) / h;
                r[i * n + l] = (a * y - b * x) / h;
            }
            r[i * n + j] = 0;
        }
    }
}

/* |x x^T - I| where rows count, |x^T x - I| else, by the largest entry. */
static double off(int n, const double *x, bool rows)
{
    double most = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = i == j ? -1 : 0;
            for (int l = 0; l < n; l++)
                sum += rows ? x[i * n + l] * x[j * n + l] : x[l * n + i] * x[l * n + j];
            most = fmax(most, fabs(sum));
        }
    }
    return most;
}

static void as_known(void **state)
{
    static const int sizes[] = {1, 2, 33, MOST};
    static const double leasts[] = {1, 0.5, 0x1p-9, 0x1p-13, 0x1p-20, 0x1p-40};
    static const double scales[] = {1, 1e-120, 1e120};
    static const double span = 0x1p-14;
    static double r[MOST * MOST], u[MOST * MOST], vt[MOST * MOST], gram[MOST * MOST];
    static double s[MOST], known[MOST];
    gnomon_context *ctx = NULL;
    (void)state;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_blas_prepare(ctx), GNOMON_OK);
    gnomon_blas_enter();
    for (size_t c = 0; c < 4 * 6 * 3; c++) {
        const int n = sizes[c % 4];
        const double least = n > 1 ? leasts[c / 4 % 6] : 1, scale = scales[c / 24];
        const double squared = 64 * 0x1p-53 / fmax(least * least, span * span);
        const double wrong = least > span ? squared : 64 * 0x1p-53 / least;
        bool told, converged;
        make(n, scale, least, known, r);
        assert_int_equal(gnomon_triangle_svd(ctx, n, r, span, s, u, vt, &converged), GNOMON_OK);
        assert_true(converged);
        for (int i = 0; i < n; i++)
            assert_true(fabs(s[i] - known[i]) <= wrong * known[i]);
        assert_true(off(n, vt, true) < 1e-13);
        assert_true(off(n, u, false) < fmax(1e-13, least > span ? squared : 0));
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                double sum = r[i * n + j];
                for (int l = 0; l < n; l++)
                    sum -= u[i * n + l] * s[l] * vt[l * n + j];
                assert_true(fabs(sum) < 1e-13 * scale);
            }
        }
        memset(gram, 0, sizeof gram);
        gnomon_blas_gram(n, n, r, n, gram, n);
        assert_int_equal(gnomon_gram_spectrum(ctx, n, span, gram, s, &told), GNOMON_OK);
        assert_int_equal(told, least > span);
    }
    gnomon_blas_leave();
    gnomon_context_destroy(ctx);
}

/* What has no spectrum to tell is not told, and nothing hangs. */
static void none_to_tell(void **state)
{
    static const double bad[] = {0, NAN, INFINITY, -1};
    gnomon_context *ctx = NULL;
    (void)state;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_blas_prepare(ctx), GNOMON_OK);
    gnomon_blas_enter();
    for (int i = 0; i < 4; i++) {
        double gram[9] = {1, 0, bad[i], 0, 1, 0, bad[i], 0, bad[i]}, s[3];
        bool told = true;
        assert_int_equal(gnomon_gram_spectrum(ctx, 3, 0x1p-14, gram, s, &told), GNOMON_OK);
        assert_false(told);
    }
    gnomon_blas_leave();
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_known),
        cmocka_unit_test(none_to_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
