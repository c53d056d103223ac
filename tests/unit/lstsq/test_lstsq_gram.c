/* Narrow matrices, which A^T A preconditions in place of a sketch: the same solutions with the same
 * figures in a step or two, and a sketch where columns are nearly dependent. */
#include "lstsq_testing.h"

enum { N = 210007, D = 20 };

static gnomon_lstsq solve(gnomon_context *ctx, const gnomon_matrix *a, const gnomon_matrix *b,
                          double damp, int64_t sketch_size)
{
    gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
    gnomon_lstsq out = {.struct_size = sizeof out};
    options.damp = damp;
    options.sketch_size = sketch_size;
    expect(ctx, gnomon_lstsq_dense(ctx, a, b, &options, &out), GNOMON_OK);
    return out;
}

static void as_by_a_sketch(void **state)
{
    gnomon_context *ctx = *state;
    for (int way = 0; way < 4; way++) { /* conditions; with damp; columns of many lengths */
        static const double conditions[] = {1e3, 1e9, 10, 10};
        problem p = make_problem(N, D, conditions[way], 1e-2, (uint64_t)way);
        for (int64_t i = 0; i < N * D && way == 3; i++)
            p.a[i] = ldexp(p.a[i], (int)(i % D) - 30);
        for (int64_t j = 0; j < D && way == 3; j++)
            p.x[j] = ldexp(p.x[j], 30 - (int)j);
        const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
        const gnomon_matrix b = gnomon_matrix_rowmajor(p.b, GNOMON_F64, N, 1);
        const double damp = way == 2 ? 0.5 : 0;
        gnomon_lstsq out = solve(ctx, &a, &b, damp, 0), by = solve(ctx, &a, &b, damp, 12 * D);
        const gnomon_lstsq_target *t = &out.target[0], *u = &by.target[0];
        assert_true(out.converged && by.converged && by.sketched);
        assert_int_equal(out.sketched, way == 1);
        assert_int_equal(out.rank, D);
        if (!out.sketched) {
            assert_int_equal(out.k, N);
            assert_true(out.iterations <= 3);
            assert_true(out.high / out.low <= 1.001);
            assert_true(fabs(out.condition - by.condition) <= 0.5 * by.condition);
        }
        assert_true(t->backward_error <= 1e-16 && u->backward_error <= 1e-16);
        const double noise = 1e-12 * u->residual + 0x1p-47 * out.norm * t->norm_x;
        assert_true(fabs(t->residual - u->residual) <= noise);
        double gap = 0;
        for (int64_t j = 0; j < D; j++)
            gap = hypot(gap, at(&out.x, j, 0) - at(&by.x, j, 0));
        assert_true(gap <= t->forward_bound + u->forward_bound);
        if (damp == 0) {
            const double rounding = 0x1p-47 * t->sensitivity * t->norm_x;
            assert_true(distance_of(D, &out.x, 0, p.x) <= t->forward_bound + rounding);
        }
        gnomon_lstsq_free(ctx, &out);
        gnomon_lstsq_free(ctx, &by);
        drop_problem(&p);
    }
}

/* Independent in the rows that are looked at, dependent or zero in the others; the other way
 * round. */
static void columns_that_depend(void **state)
{
    gnomon_context *ctx = *state;
    problem p = make_problem(N, D, 10, 1e-2, 3);
    const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
    const gnomon_matrix b = gnomon_matrix_rowmajor(p.b, GNOMON_F64, N, 1);
    for (int64_t i = 0; i < N; i++)
        p.a[i * D + 7] = p.a[i * D + 9] * (1 + 1e-10 * p.b[i]);
    for (int way = 0; way < 3; way++) {
        for (int64_t i = 0; i < N && way == 1; i++)
            p.a[i * D + 7] = i % 2 == 0 ? 0 : 1e-30; /* short, and nothing like the others */
        for (int64_t i = 0; i < N && way == 2; i++)
            p.a[i * D + 7] = 0;
        gnomon_lstsq out = solve(ctx, &a, &b, 0, 0);
        assert_true(out.converged);
        assert_int_equal(out.sketched, way != 1);
        assert_int_equal(out.rank, way == 2 ? D - 1 : D);
        if (way == 2) assert_true(fabs(at(&out.x, 7, 0)) <= 1e-14);
        gnomon_lstsq_free(ctx, &out);
    }
    drop_problem(&p);
}

static double *streamed;
static int64_t next_row;

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    (void)user;
    int64_t n = N - next_row < 777 ? N - next_row : 777;
    if (n > dst->rows) n = dst->rows;
    memcpy(dst->data, streamed + next_row * D, (size_t)(n * D) * sizeof *streamed);
    next_row += n;
    *got = n;
    return GNOMON_OK;
}

static gnomon_status rewind_rows(void *user)
{
    (void)user;
    next_row = 0;
    return GNOMON_OK;
}

static void same(const gnomon_lstsq *p, const gnomon_lstsq *q)
{
    assert_true(!p->sketched && !q->sketched);
    assert_memory_equal(p->x.data, q->x.data, (size_t)(D * p->targets) * sizeof(double));
    assert_memory_equal(p->target, q->target, (size_t)p->targets * sizeof *p->target);
}

/* Threads, pieces, levels; several right-hand sides; columns one after the other, floats. */
static void of_the_same_bits(void **state)
{
    gnomon_context *ctx = *state, *three = context_of(3);
    setenv("GNOMON_ISA", "portable", 1);
    gnomon_context *portable = context_of(1);
    unsetenv("GNOMON_ISA");
    problem p = make_problem(N, D, 10, 1e-2, 5);
    double *right = malloc(sizeof *right * N * 3), *columns = malloc(sizeof *columns * N * D);
    float *rounded = malloc(sizeof *rounded * N * D);
    for (int64_t i = 0; i < N * 3; i++)
        right[i] = p.b[i / 3] * (double)(1 + i % 3) + (i % 3 == 1 ? p.b[(i + 5) % N] : 0);
    for (int64_t i = 0; i < N * D; i++) {
        p.a[i] = rounded[i] = (float)p.a[i];
        columns[i % D * N + i / D] = p.a[i];
    }
    streamed = p.a;
    const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
    const gnomon_matrix b = gnomon_matrix_rowmajor(right, GNOMON_F64, N, 3);
    const gnomon_matrix by_columns = gnomon_matrix_colmajor(columns, GNOMON_F64, N, D);
    const gnomon_matrix floats = gnomon_matrix_rowmajor(rounded, GNOMON_F32, N, D);
    const gnomon_svd_rows rows = {NULL, N, D, GNOMON_F64, next, rewind_rows};
    gnomon_lstsq want = solve(ctx, &a, &b, 0, 0), got = solve(three, &a, &b, 0, 0);
    same(&want, &got);
    gnomon_lstsq_free(three, &got);
    got = solve(portable, &a, &b, 0, 0);
    same(&want, &got);
    gnomon_lstsq_free(portable, &got);
    got = solve(three, &floats, &b, 0, 0);
    same(&want, &got);
    gnomon_lstsq_free(three, &got);
    expect(three, gnomon_lstsq_stream(three, &rows, &b, NULL, &got), GNOMON_OK);
    same(&want, &got);
    assert_int_equal(want.passes, got.passes);
    gnomon_lstsq_free(three, &got);
    got = solve(three, &by_columns, &b, 0, 0);
    for (int64_t j = 0; j < D * 3; j++)
        assert_true(fabs(at(&want.x, j / 3, j % 3) - at(&got.x, j / 3, j % 3)) <= 1e-12);
    gnomon_lstsq_free(three, &got);
    gnomon_lstsq_free(ctx, &want);
    free(right);
    free(columns);
    free(rounded);
    drop_problem(&p);
    gnomon_context_destroy(three);
    gnomon_context_destroy(portable);
}

/* A sketch of the caller's, or singular values that he names, are what is used. */
static void not_where_a_sketch_is_named(void **state)
{
    gnomon_context *ctx = *state;
    problem p = make_problem(N, D, 10, 1e-2, 6);
    const gnomon_matrix a = gnomon_matrix_rowmajor(p.a, GNOMON_F64, N, D);
    const gnomon_matrix b = gnomon_matrix_rowmajor(p.b, GNOMON_F64, N, 1);
    gnomon_descriptor kind = GNOMON_DESCRIPTOR_INIT;
    kind.kind = GNOMON_SJLT;
    for (int way = 0; way < 2; way++) {
        gnomon_lstsq_options options = GNOMON_LSTSQ_OPTIONS_INIT;
        gnomon_lstsq out = {.struct_size = sizeof out};
        options.descriptor = way ? NULL : &kind;
        options.rcond = way ? 0.2 : 0;
        expect(ctx, gnomon_lstsq_dense(ctx, &a, &b, &options, &out), GNOMON_OK);
        assert_true(out.sketched);
        assert_true(way ? out.rank < D : out.rank == D);
        gnomon_lstsq_free(ctx, &out);
    }
    drop_problem(&p);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_by_a_sketch),
        cmocka_unit_test(columns_that_depend),
        cmocka_unit_test(of_the_same_bits),
        cmocka_unit_test(not_where_a_sketch_is_named),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}
