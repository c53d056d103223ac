/* As stable as a QR factorisation: the backward error of x, by Karlson and Walden's estimate with
 * sums and a triangle in long double, beside that of LAPACK's dgels; columns of any lengths. */
#include "lstsq_testing.h"

#include <stdio.h>

enum { N = 900, D = 24 };

typedef void (*dgels_fn)(const char *, const int *, const int *, const int *, double *, const int *,
                         double *, const int *, double *, const int *, int *, size_t);

/* x by Householder reflections. */
static void qr_solve(int n, int d, const double *a, const double *b, double *x)
{
    static double columns[2 * N * D], right[2 * N], work[1 << 16];
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, "dgels_") : NULL;
    dgels_fn dgels;
    assert_non_null(symbol);
    memcpy(&dgels, &symbol, sizeof dgels);
    const int one = 1, count = 1 << 16;
    int info;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < d; j++)
            columns[j * n + i] = a[i * d + j];
        right[i] = b[i];
    }
    gnomon_blas_enter();
    dgels("N", &n, &d, &one, columns, &n, right, &n, work, &count, &info, 1);
    gnomon_blas_leave();
    assert_int_equal(info, 0);
    memcpy(x, right, (size_t)d * sizeof *x);
    dlclose(library);
}

/* The triangle of a, which is destroyed, rows x D; c (may be NULL) gets Q^T c. */
static void reflect(int rows, long double *a, long double *c)
{
    for (int k = 0; k < D; k++) {
        long double norm = 0, dot;
        for (int i = k; i < rows; i++)
            norm = hypotl(norm, a[i * D + k]);
        if (norm == 0) continue;
        const long double r = a[k * D + k] >= 0 ? -norm : norm;
        static long double v[2 * N + D];
        for (int i = k; i < rows; i++)
            v[i] = a[i * D + k] / norm;
        v[k] -= r / norm;
        const long double scale = 1 / (1 + fabsl(a[k * D + k]) / norm); /* 2 / |v|^2 */
        for (int j = k; j <= D; j++) {
            if (j == D && c == NULL) break;
            dot = 0;
            for (int i = k; i < rows; i++)
                dot += v[i] * (j < D ? a[i * D + j] : c[i]);
            for (int i = k; i < rows; i++) {
                if (j < D)
                    a[i * D + j] -= scale * dot * v[i];
                else
                    c[i] -= scale * dot * v[i];
            }
        }
    }
}

static long double work_a[(2 * N + D) * D], work_b[2 * N + D];

static void load(int n, const double *a, const double *b)
{
    for (int i = 0; i < n * D; i++)
        work_a[i] = (long double)a[i];
    for (int i = 0; i < n; i++)
        work_b[i] = (long double)b[i];
}

/* The solution, to about the square root of what doubles lose. */
static void exact(int n, const double *a, const double *b, long double *x)
{
    load(n, a, b);
    reflect(n, work_a, work_b);
    for (int j = D - 1; j >= 0; j--) {
        x[j] = work_b[j];
        for (int l = j + 1; l < D; l++)
            x[j] -= work_a[j * D + l] * x[l];
        x[j] /= work_a[j * D + j];
    }
}

/* How much A has to change, relative to |A|_F, for x to be the solution. */
static double backward(int n, const double *a, const double *b, const double *x)
{
    long double g[D] = {0}, r = 0, norm = 0, of_x = 0, sum = 0;
    load(n, a, b);
    for (int i = 0; i < n; i++) {
        long double left = work_b[i];
        for (int j = 0; j < D; j++)
            left -= work_a[i * D + j] * (long double)x[j];
        r = hypotl(r, left);
        for (int j = 0; j < D; j++) {
            g[j] += work_a[i * D + j] * left;
            norm = hypotl(norm, work_a[i * D + j]);
        }
    }
    for (int j = 0; j < D; j++)
        of_x = hypotl(of_x, (long double)x[j]);
    if (r == 0) return 0;
    for (int j = 0; j < D; j++)
        for (int l = 0; l < D; l++)
            work_a[(n + j) * D + l] = j == l ? r / of_x : 0;
    reflect(n + D, work_a, NULL);
    for (int j = 0; j < D; j++) { /* R^T y = g */
        for (int l = 0; l < j; l++)
            g[j] -= work_a[l * D + j] * g[l];
        g[j] /= work_a[j * D + j];
        sum = hypotl(sum, g[j]);
    }
    return (double)(sum / of_x / norm);
}

static gnomon_lstsq solve(gnomon_context *ctx, int n, double *a, double *b, double damp)
{
    const gnomon_matrix left = gnomon_matrix_rowmajor(a, GNOMON_F64, n, D);
    const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, n, 1);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out = {.struct_size = sizeof out};
    options.sketch_size = 12 * D;
    options.damp = damp;
    expect(ctx, gnomon_lstsq_dense(ctx, &left, &right, &options, &out), GNOMON_OK);
    return out;
}

/* Within ten times dgels's, of which no less than a fifth of a unit of roundoff is asked. */
static void as_stable(const char *what, int n, const double *a, const double *b,
                      const gnomon_lstsq *out)
{
    double y[D];
    qr_solve(n, D, a, b, y);
    const double ours = backward(n, a, b, out->x.data), theirs = backward(n, a, b, y);
    if (!out->converged || !(ours <= 10 * fmax(theirs, 0x1p-55)))
        fail_msg("%s: backward error %.2g, dgels %.2g, converged %d", what, ours, theirs,
                 out->converged);
    /* what is told of it holds: it is an estimate, and within a factor of that of A alone */
    if (!(out->target[0].backward_bound >= 0.5 * ours))
        fail_msg("%s: backward error %.2g, bound %.2g", what, ours, out->target[0].backward_bound);
}

static void up_to_conditions_of_1e15(void **state)
{
    gnomon_context *ctx = *state;
    char what[64];
    for (int e = 0; e <= 15; e++) {
        for (int of_b = 0; of_b >= -12; of_b -= 3) {
            problem p = make_problem(N, D, pow(10, e), pow(10, of_b), (uint64_t)(e + 20));
            gnomon_lstsq out = solve(ctx, N, p.a, p.b, 0);
            snprintf(what, sizeof what, "condition 1e%d, residual 1e%d", e, of_b);
            as_stable(what, N, p.a, p.b, &out);
            gnomon_lstsq_free(ctx, &out);
            drop_problem(&p);
        }
    }
}

/* Lengths of the columns: one huge, one tiny, a slope, powers of a variable. */
enum { HUGE_ONE, TINY_ONE, SLOPE, POWERS, LENGTHS };

static void fill(int lengths, double *a, double *b)
{
    uint64_t draws = 7 + (uint64_t)lengths;
    for (int i = 0; i < N; i++) {
        const double t = 10.0 * i / N;
        for (int j = 0; j < D; j++) {
            double x = draw_normal(&draws);
            if (lengths == HUGE_ONE && j == 5) x *= 1e14;
            if (lengths == TINY_ONE && j == 5) x *= 1e-40;
            if (lengths == SLOPE) x *= pow(10, j - 12);
            if (lengths == POWERS) x = j < 9 ? pow(t, j) : x * 1e-3;
            a[i * D + j] = x;
        }
        b[i] = sin(t) + 1e-3 * draw_normal(&draws);
    }
}

/* x, and what is told of it, beside the exact one: each coefficient by itself. */
static void of_any_lengths(void **state)
{
    gnomon_context *ctx = *state;
    static double a[2 * N * D], b[2 * N];
    for (int lengths = 0; lengths < LENGTHS; lengths++) {
        for (int with = 0; with < 2; with++) {
            const double damp = with ? (lengths == SLOPE ? 1e-9 : 1e-3) : 0;
            char what[64];
            long double x[D], off = 0, fit = 0, scaled = 0, theirs = 0;
            double y[D];
            fill(lengths, a, b);
            gnomon_lstsq out = solve(ctx, N, a, b, damp);
            const gnomon_lstsq_target *t = &out.target[0];
            memset(a + N * D, 0, D * D * sizeof *a);
            memset(b + N, 0, D * sizeof *b);
            for (int j = 0; j < D; j++)
                a[(N + j) * D + j] = damp;
            const int n = with ? N + D : N;
            snprintf(what, sizeof what, "lengths %d, damp %g", lengths, damp);
            assert_int_equal(out.rank, D);
            as_stable(what, n, a, b, &out);
            exact(n, a, b, x);
            qr_solve(n, D, a, b, y);
            for (int j = 0; j < D; j++) {
                long double norm = 0;
                const long double gap = x[j] - (long double)at(&out.x, j, 0);
                for (int i = 0; i < n; i++)
                    norm = hypotl(norm, (long double)a[i * D + j]);
                off = hypotl(off, gap);
                scaled = fmaxl(scaled, norm * fabsl(gap));
                theirs = fmaxl(theirs, norm * fabsl(x[j] - (long double)y[j]));
            }
            for (int i = 0; i < n; i++) {
                long double sum = 0;
                for (int j = 0; j < D; j++)
                    sum += (long double)a[i * D + j] * (x[j] - (long double)at(&out.x, j, 0));
                fit = hypotl(fit, sum);
            }
            if (!((double)scaled <= 100 * (double)theirs + 1e-14 * t->norm_b))
                fail_msg("%s: column times coefficient off by %Lg, dgels %Lg", what, scaled,
                         theirs);
            if (!((double)off <= t->forward_bound && (double)fit <= t->fit_bound))
                fail_msg("%s: off by %Lg, told %g; fit off by %Lg, told %g", what, off,
                         t->forward_bound, fit, t->fit_bound);
            if (!(t->fit_bound <= 1e-9 * t->norm_b))
                fail_msg("%s: fit off by %Lg, told %g of %g; low %g", what, fit, t->fit_bound,
                         t->norm_b, out.low);
            assert_true(out.condition >= 1 && out.largest >= out.least);
            gnomon_lstsq_free(ctx, &out);
        }
    }
}

/* Singular values are those of A itself, scaled or not; of a huge column and a short one it tells
 * the condition beyond what doubles resolve. */
static void singular_values(void **state)
{
    gnomon_context *ctx = *state;
    static double a[N * D], b[N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++)
            a[i * D + j] = i % D == j ? pow(10, 20 - 2 * j) : 0;
        b[i] = 1 + i % 3;
    }
    gnomon_lstsq out = solve(ctx, N, a, b, 0);
    const double times = sqrt((double)N / D);
    assert_int_equal(out.rank, D);
    assert_true(out.largest > 0.5e20 * times && out.largest < 2e20 * times);
    assert_true(out.least > 0.5e-26 * times && out.least < 2e-26 * times);
    assert_true(out.condition * out.high / out.low >= 1e46);
    assert_true(fabs(out.norm - 1e20 * times) <= 0.02 * out.norm);
    gnomon_lstsq_free(ctx, &out);
}

/* A column of zeros, and columns that depend on each other: the shortest solution is that of A's
 * own columns. */
static void several_solutions(void **state)
{
    gnomon_context *ctx = *state;
    static double a[N * D], b[N];
    double y[D];
    fill(HUGE_ONE, a, b);
    for (int i = 0; i < N; i++)
        a[i * D + 2] = 0;
    gnomon_lstsq out = solve(ctx, N, a, b, 0);
    assert_true(out.converged && out.rank == D - 1);
    assert_true(fabs(at(&out.x, 2, 0)) <= 1e-15 * out.target[0].norm_x);
    gnomon_lstsq_free(ctx, &out);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < D; j++)
            a[i * D + j] /= j == 5 ? 1e9 : 1;
        a[i * D + 2] = a[i * D + 1];
    }
    lapack_solve(N, D, a, b, 1e-13, y);
    out = solve(ctx, N, a, b, 0);
    assert_true(out.converged && out.rank == D - 1);
    assert_true(distance_of(D, &out.x, 0, y) <= 1e-8 * length_of(y, D));
    gnomon_lstsq_free(ctx, &out);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(up_to_conditions_of_1e15),
        cmocka_unit_test(of_any_lengths),
        cmocka_unit_test(singular_values),
        cmocka_unit_test(several_solutions),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
