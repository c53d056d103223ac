/* Least squares beside LAPACK's and beside solutions that are known: conditions, operators, ranks,
 * scales, the bounds. */
#include "lstsq_testing.h"

static int make(void **state)
{
    *state = context_of(2);
    return 0;
}

static int drop(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

#define U 0x1p-53

static void solve(gnomon_context *ctx, int64_t n, int64_t d, double *a, double *b,
                  const gnomon_lstsq_options *options, gnomon_lstsq *out)
{
    const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, n, d);
    const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, n, 1);
    *out = (gnomon_lstsq){.struct_size = sizeof *out};
    expect(ctx, gnomon_lstsq_dense(ctx, &view, &right, options, out), GNOMON_OK);
}

/* What must hold of a solution of p, beside LAPACK's y. */
static void check_solution(const problem *p, const gnomon_lstsq *out, const double *y)
{
    const gnomon_lstsq_target *t = &out->target[0];
    const double norm_x = length_of(p->x, p->d), b = length_of(p->b, p->n);
    const double noise = 64 * U * (b + out->norm * t->norm_x);
    const double mine = left_by(p->n, p->d, p->a, p->b, &out->x, 0);
    const gnomon_matrix theirs = gnomon_matrix_rowmajor((void *)(uintptr_t)y, GNOMON_F64, p->d, 1);
    const double best = left_by(p->n, p->d, p->a, p->b, &theirs, 0);
    assert_true(out->converged && t->converged);
    assert_true(t->backward_error <= 1e-15);
    assert_true(fabs(t->residual - mine) <= noise);
    assert_true(fabs(t->norm_b - b) <= 64 * U * b);
    assert_true(mine <= best * (1 + 1e-12) + noise || out->condition > 1e13);
    /* The data themselves hold x but for rounding, which sensitivity multiplies. */
    const double rounding = 64 * U * t->sensitivity * fmax(t->norm_x, norm_x);
    const double error = distance_of(p->d, &out->x, 0, p->x);
    const double lapack = distance_of(p->d, &theirs, 0, p->x);
    assert_true(error <= t->forward_bound + rounding);
    assert_true(error <= 64 * lapack + rounding);
    assert_true(t->backward_bound >= 0.3 * t->backward_error);
    assert_true(out->low > 0 && out->low <= 1.1 && out->high >= 0.95 && out->high < 3);
}

static void test_conditions(void **state)
{
    gnomon_context *ctx = *state;
    static const double conditions[] = {1e2, 1e6, 1e10, 1e14};
    static const double residuals[] = {0, 1e-8, 1};
    enum { N = 1500, D = 24 };
    for (int c = 0; c < 4; c++) {
        for (int r = 0; r < 3; r++) {
            problem p = make_problem(N, D, conditions[c], residuals[r], (uint64_t)(7 * c + r));
            double y[D];
            lapack_solve(N, D, p.a, p.b, 0x1p-52, y);
            for (int way = 0; way < 3; way++) { /* A itself, and sketches of two sizes */
                gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
                gnomon_lstsq out;
                options.sketch_size = way == 0 ? N : way == 1 ? 8 * D : 30 * D;
                options.seed = (uint64_t)way;
                print_message("condition %g, residual %g, k %d\n", conditions[c], residuals[r],
                              (int)options.sketch_size);
                solve(ctx, N, D, p.a, p.b, &options, &out);
                assert_int_equal(out.sketched, way > 0);
                assert_int_equal(out.rank, D);
                check_solution(&p, &out, y);
                if (conditions[c] < 1e12) {
                    assert_true(out.condition * out.high / out.low >= conditions[c] * 0.999);
                    assert_true(out.condition * out.low / out.high <= conditions[c] * 1.001);
                }
                gnomon_lstsq_free(ctx, &out);
            }
            drop_problem(&p);
        }
    }
}

static void test_operators(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 2000, D = 20 };
    problem p = make_problem(N, D, 1e5, 1e-3, 3);
    double y[D];
    lapack_solve(N, D, p.a, p.b, 0x1p-52, y);
    for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_KRONECKER; kind++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
        gnomon_lstsq out;
        descriptor.kind = (gnomon_kind)kind;
        if (kind == GNOMON_BLOCK) descriptor.blocks = 2;
        options.descriptor = &descriptor;
        options.sketch_size = 12 * D;
        print_message("%s\n", gnomon_kind_name(descriptor.kind));
        solve(ctx, N, D, p.a, p.b, &options, &out);
        check_solution(&p, &out, y);
        assert_int_equal(out.descriptor.kind, kind);
        assert_int_equal(out.descriptor.k, 12 * D);
        assert_int_equal(out.descriptor.d, N);
        assert_true(out.iterations > 0 && out.iterations <= 60);
        gnomon_lstsq_free(ctx, &out);
    }
    drop_problem(&p);
}

/* One row, or a few, that hold a direction to themselves. */
static void test_coherent(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 4000, D = 10 };
    uint64_t draws = 5;
    for (int way = 0; way < 3; way++) {
        problem p = make_problem(N, D, 10, 1, 11);
        double y[D];
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < D; j++) {
                double *x = &p.a[i * D + j];
                if (way == 0 && i == 1234) *x *= 1e8;
                if (way == 1 && j == 3) *x = i == 77 ? 1e-4 : 0;
                if (way == 2) *x = i % 400 == 0 && i / 400 == j ? 1 : 1e-9 * draw_normal(&draws);
            }
            p.b[i] = draw_normal(&draws);
        }
        lapack_solve(N, D, p.a, p.b, 0x1p-52, y);
        for (uint64_t seed = 0; seed < 5; seed++) {
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            gnomon_lstsq out;
            options.sketch_size = 80;
            options.seed = seed;
            solve(ctx, N, D, p.a, p.b, &options, &out);
            const gnomon_lstsq_target *t = &out.target[0];
            const double noise = 256 * U * t->sensitivity * t->norm_x;
            assert_true(out.converged);
            assert_int_equal(out.rank, D);
            assert_true(distance_of(D, &out.x, 0, y) <= t->forward_bound + noise);
            assert_true(fit_between(N, D, p.a, &out.x, 0, y) <=
                        t->fit_bound + 64 * U * (t->norm_b + out.norm * t->norm_x));
            gnomon_lstsq_free(ctx, &out);
        }
        drop_problem(&p);
    }
}

/* An operator that never sees the row that a column depends on must not pass for a solution. */
static void test_missed(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 4000, D = 4 };
    problem p = make_problem(N, D, 2, 1, 8);
    int missed = 0;
    for (int i = 0; i < N; i++)
        p.a[i * D + 2] = i == 2222 ? 1 : 0;
    p.b[2222] = 5;
    for (uint64_t seed = 0; seed < 20; seed++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
        gnomon_lstsq out;
        descriptor.kind = GNOMON_VERY_SPARSE;
        descriptor.seed = seed;
        options.descriptor = &descriptor;
        options.sketch_size = 50;
        solve(ctx, N, D, p.a, p.b, &options, &out);
        const double row = at(&out.x, 0, 0) * p.a[2222 * D] + at(&out.x, 1, 0) * p.a[2222 * D + 1] +
                           at(&out.x, 2, 0) + at(&out.x, 3, 0) * p.a[2222 * D + 3];
        if (out.rank < D) {
            missed++;
            assert_false(out.converged);
            assert_true(out.target[0].backward_bound > 1e-4);
        } else if (out.converged) {
            assert_true(fabs(row - 5) <= 1e-9);
        }
        gnomon_lstsq_free(ctx, &out);
    }
    assert_true(missed > 0);
    drop_problem(&p);
}

static void test_rank(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 900, D = 30, RANK = 19 };
    uint64_t draws = 4;
    double *u = draw_orthonormal(N, RANK, &draws), *v = draw_orthonormal(D, RANK, &draws);
    double *a = calloc(N * D, sizeof *a), b[N], y[D];
    for (int i = 0; i < N; i++) {
        for (int l = 0; l < RANK; l++)
            for (int j = 0; j < D; j++)
                a[i * D + j] += u[i * RANK + l] * pow(0.7, l) * v[j * RANK + l];
        b[i] = draw_normal(&draws);
    }
    lapack_solve(N, D, a, b, 1e-12, y);
    for (int way = 0; way < 2; way++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out;
        options.sketch_size = way ? 10 * D : 0;
        solve(ctx, N, D, a, b, &options, &out);
        assert_int_equal(out.rank, RANK);
        assert_true(out.converged);
        assert_true(distance_of(D, &out.x, 0, y) <= 1e-11 * length_of(y, D));
        assert_true(out.target[0].norm_x <= (1 + 1e-11) * length_of(y, D));
        gnomon_lstsq_free(ctx, &out);
    }
    /* a tolerance that takes more for 0, as dgelsd's */
    lapack_solve(N, D, a, b, 0.1, y);
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out;
    options.rcond = 0.1;
    solve(ctx, N, D, a, b, &options, &out);
    assert_int_equal(out.rank, 7); /* 0.7^6 = 0.118, 0.7^7 = 0.082 */
    assert_true(distance_of(D, &out.x, 0, y) <= 1e-11 * length_of(y, D));
    gnomon_lstsq_free(ctx, &out);
    free(u);
    free(v);
    free(a);
}

static void test_zero_and_square(void **state)
{
    gnomon_context *ctx = *state;
    double a[60 * 5] = {0}, b[60];
    gnomon_lstsq out;
    for (int i = 0; i < 60; i++)
        b[i] = i;
    for (int way = 0; way < 2; way++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        options.sketch_size = way ? 20 : 0;
        solve(ctx, 60, 5, a, b, &options, &out);
        assert_int_equal(out.rank, 0);
        assert_true(out.converged && out.norm == 0 && out.target[0].norm_x == 0);
        assert_true(fabs(out.target[0].residual - length_of(b, 60)) <= 1e-12);
        assert_true(out.target[0].fit_bound == 0 && out.target[0].forward_bound == 0);
        for (int j = 0; j < 5; j++)
            assert_true(at(&out.x, j, 0) == 0);
        gnomon_lstsq_free(ctx, &out);
    }
    /* b = 0; one column; a square matrix; one number */
    for (int i = 0; i < 300; i++)
        a[i] = 1 + i % 7 + i % 5 * 10 + (i % 12 == 0);
    memset(b, 0, sizeof b);
    solve(ctx, 60, 5, a, b, NULL, &out);
    assert_true(out.converged && out.target[0].norm_x == 0 && out.target[0].residual == 0);
    gnomon_lstsq_free(ctx, &out);
    b[0] = 3;
    solve(ctx, 60, 1, a, b, NULL, &out);
    double dot = 0, squares = 0;
    for (int i = 0; i < 60; i++) {
        dot += a[i] * b[i];
        squares += a[i] * a[i];
    }
    assert_true(fabs(at(&out.x, 0, 0) - dot / squares) <= 1e-15);
    gnomon_lstsq_free(ctx, &out);
    problem p = make_problem(12, 12 - 1, 10, 0, 2);
    solve(ctx, 11, 11, p.a, p.b, NULL, &out);
    assert_true(out.converged && distance_of(11, &out.x, 0, p.x) <= 1e-11);
    gnomon_lstsq_free(ctx, &out);
    drop_problem(&p);
    a[0] = 4;
    solve(ctx, 1, 1, a, b, NULL, &out);
    assert_true(fabs(at(&out.x, 0, 0) - 0.75) <= 1e-15);
    gnomon_lstsq_free(ctx, &out);
}

static void test_scales(void **state)
{
    gnomon_context *ctx = *state;
    static const int of_a[] = {-1040, -1000, -400, 0, 400, 1010};
    static const int of_b[] = {-1040, -600, 0, 300, 1010};
    enum { N = 600, D = 6 };
    problem p = make_problem(N, D, 20, 0.5, 6);
    double a[N * D], b[N];
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 5; j++) {
            const int shift = of_b[j] - of_a[i];
            for (int l = 0; l < N * D; l++)
                a[l] = ldexp(p.a[l], of_a[i]);
            for (int l = 0; l < N; l++)
                b[l] = ldexp(p.b[l], of_b[j]);
            const gnomon_matrix view = gnomon_matrix_rowmajor(a, GNOMON_F64, N, D);
            const gnomon_matrix right = gnomon_matrix_rowmajor(b, GNOMON_F64, N, 1);
            gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
            gnomon_lstsq out = {.struct_size = sizeof out};
            options.sketch_size = 100;
            gnomon_status status = gnomon_lstsq_dense(ctx, &view, &right, &options, &out);
            if (shift > 1015) {
                expect(ctx, status, GNOMON_ERROR_NONFINITE);
                continue;
            }
            expect(ctx, status, GNOMON_OK);
            assert_true(out.converged);
            /* what is subnormal has lost digits on the way here */
            const double loss = of_a[i] < -1022 || of_b[j] < -1022 ? 1e-5 : 1e-12;
            for (int l = 0; l < D; l++)
                if (shift > -1000)
                    assert_true(fabs(ldexp(at(&out.x, l, 0), -shift) - p.x[l]) <= loss);
            gnomon_lstsq_free(ctx, &out);
        }
    }
    drop_problem(&p);
}

/* Ridge is least squares with lambda I below A. */
static void test_ridge(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 1200, D = 16 };
    static const double lambdas[] = {1e-12, 1e-4, 1, 1e5, 1e200};
    for (int way = 0; way < 2; way++) { /* full rank, and one column twice */
        problem p = make_problem(N, D, 1e9, 1, 9);
        double *more = calloc((N + D) * D, sizeof *more), *b = calloc(N + D, sizeof *b), y[D];
        for (int i = 0; i < N && way; i++)
            p.a[i * D + 1] = p.a[i * D];
        memcpy(more, p.a, sizeof *more * N * D);
        memcpy(b, p.b, sizeof *b * N);
        for (int l = 0; l < 5; l++) {
            for (int k = 0; k < 2; k++) {
                gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
                gnomon_lstsq out;
                for (int j = 0; j < D; j++)
                    more[(N + j) * D + j] = lambdas[l];
                options.damp = lambdas[l];
                options.sketch_size = k ? 12 * D : 0;
                lapack_solve(N + D, D, more, b, 0x1p-52, y);
                solve(ctx, N, D, p.a, p.b, &options, &out);
                const gnomon_lstsq_target *t = &out.target[0];
                const double noise = 64 * U * t->sensitivity * t->norm_x;
                assert_true(out.converged);
                assert_true(distance_of(D, &out.x, 0, y) <= 2 * (t->forward_bound + noise));
                /* lambda 1e-12 leaves x as long as rounding of A makes it */
                const double left = left_by(N, D, p.a, p.b, &out.x, 0);
                assert_true(fabs(t->residual - left) <= 1e-12 + 64 * U * out.norm * t->norm_x);
                gnomon_lstsq_free(ctx, &out);
            }
        }
        drop_problem(&p);
        free(more);
        free(b);
    }
}

/* Few steps, none, or too low a tolerance: the best, and said so. */
static void test_not_reached(void **state)
{
    gnomon_context *ctx = *state;
    enum { N = 3000, D = 20 };
    problem p = make_problem(N, D, 1e3, 1, 10);
    double before = INFINITY;
    for (int64_t steps = 0; steps < 16; steps += 5) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out;
        options.iterations = steps;
        options.sketch_size = 6 * D;
        solve(ctx, N, D, p.a, p.b, &options, &out);
        const gnomon_lstsq_target *t = &out.target[0];
        assert_true(out.iterations == steps && !out.converged && !t->converged);
        assert_true(t->backward_error < before && t->backward_error > 1e-15);
        before = t->backward_error;
        /* the bounds hold of what was not reached too: the residual orthogonal to A is 1 */
        assert_true(t->residual <= (1 + t->suboptimality) * (1 + 1e-12));
        assert_true(distance_of(D, &out.x, 0, p.x) <= t->forward_bound);
        assert_true(fit_between(N, D, p.a, &out.x, 0, p.x) <= t->fit_bound);
        gnomon_lstsq_free(ctx, &out);
    }
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out;
    options.tolerance = 1e-30;
    options.sketch_size = 6 * D;
    solve(ctx, N, D, p.a, p.b, &options, &out);
    assert_false(out.converged);
    assert_true(out.target[0].backward_error <= 1e-16 && out.iterations < 200);
    gnomon_lstsq_free(ctx, &out);
    /* without test vectors no bounds, and the same x but for them */
    options.tolerance = 1e-15;
    options.test_vectors = 0;
    solve(ctx, N, D, p.a, p.b, &options, &out);
    assert_true(out.converged && isnan(out.low) && isnan(out.target[0].fit_bound));
    assert_true(distance_of(D, &out.x, 0, p.x) <= 1e-11);
    gnomon_lstsq_free(ctx, &out);
    drop_problem(&p);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),  cmocka_unit_test(test_operators),
        cmocka_unit_test(test_coherent),    cmocka_unit_test(test_missed),
        cmocka_unit_test(test_rank),        cmocka_unit_test(test_zero_and_square),
        cmocka_unit_test(test_scales),      cmocka_unit_test(test_ridge),
        cmocka_unit_test(test_not_reached),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
