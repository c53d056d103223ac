/* HOSVD: its bits, however many threads there are and wherever the tensor comes from; layouts and
 * types; every allocation refused in turn. */
#include "hosvd_testing.h"
#include "refusal.h"

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

/* Rows of a tensor in memory, handed out a few at a time. */
typedef struct pieces {
    const float *data;
    int64_t rows, cols, at, step, rewinds;
} pieces;

static gnomon_status pieces_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    pieces *f = user;
    int64_t n = f->rows - f->at < f->step ? f->rows - f->at : f->step;
    n = n < dst->rows ? n : dst->rows;
    assert_int_equal(dst->dtype, GNOMON_F32);
    memcpy(dst->data, f->data + f->at * f->cols, (size_t)(n * f->cols) * sizeof *f->data);
    f->at += n;
    *got = n;
    return GNOMON_OK;
}

static gnomon_status pieces_rewind(void *user)
{
    ((pieces *)user)->at = 0;
    ((pieces *)user)->rewinds++;
    return GNOMON_OK;
}

static void same(const gnomon_hosvd *a, const gnomon_hosvd *b)
{
    int64_t count = 1;
    assert_int_equal(a->modes, b->modes);
    for (int n = 0; n < a->modes; n++) {
        assert_int_equal(a->rank[n], b->rank[n]);
        count *= a->rank[n];
        assert_memory_equal(a->factor[n].data, b->factor[n].data,
                            (size_t)(a->size[n] * a->rank[n]) * sizeof(float));
    }
    assert_memory_equal(a->core.data, b->core.data, (size_t)count * sizeof(float));
    assert_true(a->residual == b->residual && a->norm == b->norm);
}

/* Of several slabs, with short lines and long ones, of one thread, of three and of a stream. */
static void test_bits(void **state)
{
    static const struct {
        int modes;
        int64_t size[4], rank[4];
    } cases[] = {{3, {210, 150, 160}, {9, 8, 11}}, {4, {100, 300, 17, 10}, {12, 6, 5, 4}}};
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        int64_t count = 1;
        uint64_t draws = c + 5;
        for (int n = 0; n < cases[c].modes; n++)
            count *= cases[c].size[n];
        float *x = malloc((size_t)count * sizeof *x);
        for (int64_t i = 0; i < count; i++)
            x[i] = (float)(draw_uniform(&draws) + sin(1e-3 * (double)i));
        const gnomon_tensor t =
            gnomon_tensor_packed(x, GNOMON_F32, cases[c].modes, cases[c].size, 0);
        for (int way = 0; way < 4; way++) {
            gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
            gnomon_hosvd one = {.struct_size = sizeof one}, other = one;
            options.ranks = cases[c].rank;
            options.rank_count = cases[c].modes;
            options.sequential = way == 1 || way == 3;
            options.power = way == 2;
            options.tolerance = way == 3 ? 0.3 : 0;
            options.measure = 1;
            options.seed = 11;
            for (int run = 0; run < 3; run++) {
                gnomon_context *ctx = make_context(run == 1 ? 3 : 1);
                pieces source = {.data = x,
                                 .rows = cases[c].size[0],
                                 .cols = count / cases[c].size[0],
                                 .step = 7};
                const gnomon_svd_rows rows = {&source,    source.rows, source.cols,
                                              GNOMON_F32, pieces_next, pieces_rewind};
                gnomon_tensor shape = t;
                shape.data = NULL;
                gnomon_hosvd *h = run == 0 ? &one : &other;
                expect(ctx,
                       run == 2 ? gnomon_hosvd_stream(ctx, &shape, &rows, &options, h)
                                : gnomon_hosvd_dense(ctx, &t, &options, h),
                       GNOMON_OK);
                if (run > 0) same(&one, &other);
                if (run == 2 && way == 0) {
                    assert_int_equal(other.passes, 4); /* look, project, shrink, measure */
                    assert_int_equal(source.rewinds, 3);
                }
                if (run > 0) gnomon_hosvd_free(ctx, &other);
                if (run == 2) gnomon_hosvd_free(ctx, &one);
                gnomon_context_destroy(ctx);
            }
        }
        free(x);
    }
}

/* Any layout and type: the same factors but for rounding. */
static void test_views(void **state)
{
    enum { A = 70, B = 9, C = 33, COUNT = A * B * C };
    static const int64_t size[] = {A, B, C}, rank[] = {4, 3, 5};
    static signed char bytes[COUNT];
    static float f[COUNT], first[COUNT], middle[COUNT], gaps[4 * COUNT];
    static double d[COUNT];
    static int64_t f64[COUNT];
    (void)state;
    gnomon_context *ctx = make_context(2);
    cube x = falling(3, size, 0.5, 31);
    double most = 0;
    for (int i = 0; i < COUNT; i++)
        most = fmax(most, fabs(x.data[i]));
    for (int i = 0; i < COUNT; i++) {
        const int a = i / (B * C), b = i / C % B, c = i % C;
        bytes[i] = (signed char)lrint(x.data[i] / most * 120);
        f[i] = (float)bytes[i];
        d[i] = f64[i] = bytes[i];
        first[a + A * (b + B * c)] = f[i];
        middle[b + B * (c + C * a)] = f[i];
        gaps[2 * (c + 33 * ((B - 1 - b) + B * (2 * a)))] = f[i];
    }
    gnomon_tensor strided = {gaps + 2 * 33 * (B - 1), GNOMON_F32, GNOMON_HOST, 3, {A, B, C},
                             {4 * 33 * B, -2 * 33, 2}};
    const gnomon_tensor views[] = {
        gnomon_tensor_packed(d, GNOMON_F64, 3, size, 0),
        gnomon_tensor_packed(f, GNOMON_F32, 3, size, 0),
        gnomon_tensor_packed(first, GNOMON_F32, 3, size, 1),
        {middle, GNOMON_F32, GNOMON_HOST, 3, {A, B, C}, {B * C, 1, B}},
        gnomon_tensor_packed(bytes, GNOMON_I8, 3, size, 0),
        gnomon_tensor_packed(f64, GNOMON_I64, 3, size, 0),
        strided,
    };
    for (int sequential = 0; sequential < 2; sequential++) {
        gnomon_hosvd exact = {.struct_size = sizeof exact}, h = exact;
        gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
        options.ranks = rank;
        options.rank_count = 3;
        options.power = 3;
        options.sequential = sequential;
        expect(ctx, gnomon_hosvd_dense(ctx, &views[0], &options, &exact), GNOMON_OK);
        for (size_t v = 1; v < sizeof views / sizeof *views; v++) {
            expect(ctx, gnomon_hosvd_dense(ctx, &views[v], &options, &h), GNOMON_OK);
            const double slack =
                views[v].dtype == GNOMON_I64 ? 1e-9 : 5e-3; /* other entries project */
            assert_int_equal(h.core.dtype, slack < 1e-6 ? GNOMON_F64 : GNOMON_F32);
            assert_true(fabs(h.residual - exact.residual) <= 1e-3 * exact.norm);
            /* cut one by one in another order the factors are others */
            if (memcmp(h.order, exact.order, 3 * sizeof(int)) != 0) {
                gnomon_hosvd_free(ctx, &h);
                continue;
            }
            assert_true(fabs(h.residual - exact.residual) <= 1e-5 * exact.norm);
            for (int n = 0; n < 3; n++) {
                assert_int_equal(h.size[n], size[n]);
                for (int64_t i = 0; i < size[n] * rank[n]; i++)
                    assert_true(fabs(number(h.factor[n].data, h.core.dtype, i) -
                                     number(exact.factor[n].data, GNOMON_F64, i)) <= slack);
            }
            for (int64_t i = 0; i < rank[0] * rank[1] * rank[2]; i++)
                assert_true(fabs(number(h.core.data, h.core.dtype, i) -
                                 number(exact.core.data, GNOMON_F64, i)) <= slack * exact.norm);
            gnomon_hosvd_free(ctx, &h);
        }
        gnomon_hosvd_free(ctx, &exact);
    }
    free(x.data);
    gnomon_context_destroy(ctx);
}

static void test_bad_streams(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(1);
    float x[6 * 4 * 5];
    for (int i = 0; i < 120; i++)
        x[i] = (float)(i % 7);
    pieces source = {.data = x, .rows = 6, .cols = 20, .step = 100};
    gnomon_svd_rows rows = {&source, 6, 20, GNOMON_F32, pieces_next, pieces_rewind};
    const gnomon_tensor t = gnomon_tensor_packed(NULL, GNOMON_F32, 3, (int64_t[]){6, 4, 5}, 0);
    gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
    gnomon_hosvd h = {.struct_size = sizeof h};
    options.ranks = (int64_t[]){2, 2, 2};
    options.rank_count = 3;
    rows.cols = 24;
    expect(ctx, gnomon_hosvd_stream(ctx, &t, &rows, &options, &h), GNOMON_ERROR_SHAPE);
    rows.cols = 20;
    rows.rewind = NULL;
    expect(ctx, gnomon_hosvd_stream(ctx, &t, &rows, &options, &h), GNOMON_ERROR_ARGUMENT);
    rows.rewind = pieces_rewind;
    source.rows = 5; /* fewer come than were promised */
    expect(ctx, gnomon_hosvd_stream(ctx, &t, &rows, &options, &h), GNOMON_ERROR_SHAPE);
    source.rows = 6;
    x[3 * 20 + 2 * 5 + 4] = INFINITY;
    source.at = 0;
    expect(ctx, gnomon_hosvd_stream(ctx, &t, &rows, &options, &h), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "(3, 2, 4)"));
    expect(ctx, gnomon_hosvd_stream(ctx, &t, NULL, &options, &h), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);
}

static void test_every_allocation(void **state)
{
    (void)state;
    static const int64_t size[] = {90, 6, 7};
    cube x = falling(3, size, 0.3, 4);
    static int64_t integers[90 * 6 * 7];
    for (int i = 0; i < 90 * 6 * 7; i++)
        integers[i] = (int64_t)(x.data[i] * 1e6);
    for (int way = 0; way < 5; way++) { /* all modes, one by one, tolerance, integers, a stream */
        for (long at = -1, done = 0; !done; at++) {
            refusal r = {.at = -1};
            const gnomon_allocator allocator = {&r, refusing, releasing};
            gnomon_context_options context = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx = NULL;
            context.device = "cpu";
            context.threads = 1;
            context.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&context, &ctx), GNOMON_OK);
            const long before = r.out, start = r.calls;
            if (at >= 0) r.at = start + at;
            float *f = as_floats(x.data, cube_count(&x));
            pieces source = {.data = f, .rows = 90, .cols = 42, .step = 50};
            const gnomon_svd_rows rows = {&source, 90, 42, GNOMON_F32, pieces_next, pieces_rewind};
            const gnomon_dtype dtype = way == 3 ? GNOMON_I64 : way == 4 ? GNOMON_F32 : GNOMON_F64;
            const gnomon_tensor t =
                gnomon_tensor_packed(way == 3 ? (void *)integers : x.data, dtype, 3, size, 0);
            gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
            gnomon_hosvd h = {.struct_size = sizeof h};
            options.ranks = (int64_t[]){3, 2, 2};
            options.rank_count = 3;
            options.oversample = 1;
            options.sequential = way == 1;
            options.power = way < 2;
            options.tolerance = way == 2 ? 0.5 : 0;
            const gnomon_status status = way == 4
                                             ? gnomon_hosvd_stream(ctx, &t, &rows, &options, &h)
                                             : gnomon_hosvd_dense(ctx, &t, &options, &h);
            if (at < 0) expect(ctx, status, GNOMON_OK);
            done = at >= 0 && status == GNOMON_OK;
            if (at >= 0 && !done) {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_null(h.core.data);
                assert_null(h.factor[0].data);
            }
            gnomon_hosvd_free(ctx, &h);
            assert_true(r.out == before);
            gnomon_context_destroy(ctx);
            assert_true(r.out == 0);
            free(f);
        }
    }
    free(x.data);
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_bad_streams),
        cmocka_unit_test(test_every_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
