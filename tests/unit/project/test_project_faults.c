/* Everything that can be wrong with a call: arguments, data, memory, a caller that cancels. */
#include "project.h"

typedef struct fixture {
    gnomon_context *ctx;
    gnomon_operator *op;
    owned x, y, before;
} fixture;

static fixture make_fixture(int o)
{
    fixture f = {.ctx = make_context(2, 0)};
    f.op = make_operator(f.ctx, &all_operators[o], 6, 40);
    f.x = make_matrix(5, 40, GNOMON_F32, ROW_MAJOR);
    f.y = make_matrix(5, 6, GNOMON_F32, ROW_MAJOR);
    f.before = make_matrix(5, 6, GNOMON_F32, ROW_MAJOR);
    fill_random(&f.x.m, 1);
    fill_random(&f.y.m, 2);
    copy_matrix(&f.y.m, &f.before.m);
    return f;
}

static void free_fixture(fixture *f)
{
    assert_same_bits(&f->y.m, &f->before.m, "y was touched");
    check_sentinels(&f->y);
    free_matrix(&f->x);
    free_matrix(&f->y);
    free_matrix(&f->before);
    gnomon_operator_destroy(f->op);
    gnomon_context_destroy(f->ctx);
}

static void test_arguments(void **state)
{
    (void)state;
    fixture f = make_fixture(2);
    gnomon_context *ctx = f.ctx;
    gnomon_matrix x = f.x.m, y = f.y.m;
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
#define SKETCH(status, text)  ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, &x, &y, &o), status, text)
#define ADJOINT(status, text) ASSERT_FAILS(ctx, gnomon_adjoint(ctx, f.op, &y, &x, &o), status, text)
    assert_int_equal(gnomon_sketch(NULL, f.op, &x, &y, &o), GNOMON_ERROR_ARGUMENT);
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, NULL, &x, &y, &o), GNOMON_ERROR_ARGUMENT, "op is NULL");
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, NULL, &y, &o), GNOMON_ERROR_ARGUMENT, "x is NULL");
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, &x, NULL, &o), GNOMON_ERROR_ARGUMENT, "y is NULL");
    ASSERT_FAILS(ctx, gnomon_adjoint(ctx, f.op, NULL, &x, &o), GNOMON_ERROR_ARGUMENT, "y is NULL");
    ASSERT_FAILS(ctx, gnomon_adjoint(ctx, f.op, &y, NULL, &o), GNOMON_ERROR_ARGUMENT, "x is NULL");

    o.struct_size = 3;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.struct_size is 3");
    o = (gnomon_sketch_options)GNOMON_SKETCH_OPTIONS_INIT;
    o.alpha = NAN;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.alpha is nan; it must be finite");
    o.alpha = 1;
    o.beta = INFINITY;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.beta is inf; it must be finite");
    o.beta = 0;
    o.row = 6;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.row is 6; the operator has rows 0 to 5");
    o.row = -1;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.row is -1");
    o.row = 4;
    o.rows = 3;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.rows is 3; from row 4 on there are 2");
    o.rows = INT64_MAX;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.rows is 9223372036854775807");
    o.rows = -1;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.rows is -1");
    o.rows = 2;
    SKETCH(GNOMON_ERROR_SHAPE, "y has 6 columns; the operator has 2 rows in the range asked for");
    o.row = o.rows = 0;
    o.col = -2;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.col is -2");
    o.col = 41;
    SKETCH(GNOMON_ERROR_ARGUMENT, "options.col is 41; it must be -1 (all columns) or 0 to 40");
    o.col = 1;
    SKETCH(GNOMON_ERROR_SHAPE,
           "x has 40 columns from options.col = 1 on; the operator has 39 there");
    o.col = -1;
    x.cols = 39;
    SKETCH(GNOMON_ERROR_SHAPE, "x has 39 columns; the operator has 40");
    ADJOINT(GNOMON_ERROR_SHAPE, "x has 39 columns; the operator has 40");
    x.cols = 40;
    x.rows = 4;
    SKETCH(GNOMON_ERROR_SHAPE, "x has 4 rows and y has 5");
    x.rows = 5;
    y.cols = 5;
    SKETCH(GNOMON_ERROR_SHAPE, "y has 5 columns; the operator has 6 rows");
    y.cols = 6;
    y.dtype = GNOMON_F16;
    SKETCH(GNOMON_ERROR_DTYPE, "y.dtype is f16; it must be f32 or f64");
    y.dtype = GNOMON_F32;
    x.dtype = GNOMON_BF16;
    ADJOINT(GNOMON_ERROR_DTYPE, "x.dtype is bf16; it must be f32 or f64");
    x.dtype = (gnomon_dtype)77;
    SKETCH(GNOMON_ERROR_ARGUMENT, "x.dtype is 77");
    x.dtype = GNOMON_F32;
    x.data = NULL;
    SKETCH(GNOMON_ERROR_ARGUMENT, "x.data is NULL");
    x.data = f.x.m.data;
    x.memory = GNOMON_DEVICE_MEMORY;
    SKETCH(GNOMON_ERROR_DEVICE, "lies in a device's memory");
    x.memory = (gnomon_memory)9;
    SKETCH(GNOMON_ERROR_ARGUMENT, "x.memory is 9");
    x.memory = GNOMON_HOST;
    x.row_stride = INT64_MAX / 3;
    SKETCH(GNOMON_ERROR_ARGUMENT, "reaches further than memory can count");
    x.row_stride = 40;
    y.row_stride = 0;
    SKETCH(GNOMON_ERROR_ARGUMENT, "puts several elements in one place");
    y.row_stride = 5;
    SKETCH(GNOMON_ERROR_ARGUMENT, "y: 5 x 6 with strides 5 and 1 puts several elements");
    y.row_stride = 6;
    y.col_stride = 0;
    SKETCH(GNOMON_ERROR_ARGUMENT, "puts several elements in one place");
    free_fixture(&f);
}

static void test_overlap(void **state)
{
    (void)state;
    fixture f = make_fixture(2);
    gnomon_context *ctx = f.ctx;
    float *both = calloc(5 * 60, sizeof *both);
    gnomon_matrix x = {both, GNOMON_F32, GNOMON_HOST, 5, 40, 60, 1};
    gnomon_matrix y = {both + 40, GNOMON_F32, GNOMON_HOST, 5, 6, 60, 1};
    ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL)); /* side by side in one matrix */
    y.data = both + 39;
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL), GNOMON_ERROR_ARGUMENT,
                 "x and y share memory");
    y.data = both + 55;
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL), GNOMON_ERROR_ARGUMENT,
                 "x and y share memory");
    y.data = both + 240 + 40;
    y.row_stride = 6;
    y.rows = x.rows = 2;
    ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL)); /* behind all of it */
    y.data = both;
    ASSERT_FAILS(ctx, gnomon_adjoint(ctx, f.op, &y, &x, NULL), GNOMON_ERROR_ARGUMENT,
                 "x and y share memory");
    /* columns of a column-major matrix */
    x = (gnomon_matrix){both, GNOMON_F32, GNOMON_HOST, 3, 40, 1, 5};
    y = (gnomon_matrix){both + 3, GNOMON_F32, GNOMON_HOST, 2, 6, 1, 5};
    x.rows = 2;
    ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL));
    y.data = both + 1;
    ASSERT_FAILS(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL), GNOMON_ERROR_ARGUMENT,
                 "x and y share memory");
    free(both);
    free_fixture(&f);
}

static void test_nothing_to_do(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        fixture f = make_fixture(o);
        gnomon_context *ctx = f.ctx;
        gnomon_matrix x = f.x.m, y = f.y.m;
        x.rows = y.rows = 0;
        ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL));
        ASSERT_OK(ctx, gnomon_adjoint(ctx, f.op, &y, &x, NULL));
        x.data = y.data = NULL;
        ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &y, NULL));
        /* no columns: y = beta y */
        gnomon_sketch_options opt = GNOMON_SKETCH_OPTIONS_INIT;
        x = f.x.m;
        x.cols = 0;
        opt.col = 40;
        opt.beta = 1;
        ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &f.y.m, &opt));
        assert_same_bits(&f.y.m, &f.before.m, all_operators[o].name);
        opt.beta = 2;
        ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &f.y.m, &opt));
        for (int i = 0; i < 5; i++)
            for (int r = 0; r < 6; r++)
                assert_true(element(&f.y.m, i, r) == 2 * element(&f.before.m, i, r));
        opt.beta = 0;
        ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &x, &f.y.m, &opt));
        for (int i = 0; i < 5; i++)
            for (int r = 0; r < 6; r++)
                assert_true(element(&f.y.m, i, r) == 0);
        copy_matrix(&f.before.m, &f.y.m);
        free_fixture(&f);
    }
}

/* NaN or infinity anywhere is found, named by row and column, and y is as it was: whether it is
 * found while packing or, when sums can't be held back, beforehand. */
static void test_nonfinite(void **state)
{
    (void)state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_BF16};
    enum { N = 50, D = 620, K = 24 };
    for (int o = 0; o < OPERATORS; o++) {
        for (int t = 0; t < 4; t++) {
            gnomon_context *ctx = make_context(2, t == 1 ? 0 : 900000);
            gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
            owned x = make_matrix(N, D, types[t], t % 2 ? COL_MAJOR : ROW_PADDED);
            owned y = make_matrix(N, K, GNOMON_F64, ROW_MAJOR);
            owned before = make_matrix(N, K, GNOMON_F64, ROW_MAJOR);
            fill_random(&x.m, 1);
            fill_random(&y.m, 1);
            copy_matrix(&y.m, &before.m);
            uint64_t random = 5;
            gnomon_status probe = gnomon_sketch(ctx, op, &x.m, &y.m, NULL);
            if (probe == GNOMON_ERROR_MEMORY) { /* a kind that takes more */
                gnomon_context_destroy(ctx);
                ctx = make_context(2, 12 << 20);
            }
            copy_matrix(&before.m, &y.m);
            for (int tries = 0; tries < 6; tries++) {
                const int64_t i = (int64_t)(next_random(&random) % N);
                const int64_t j = tries == 0   ? 0
                                  : tries == 1 ? D - 1
                                               : (int64_t)(next_random(&random) % D);
                const int64_t at = i * x.m.row_stride + j * x.m.col_stride;
                const double was = element(&x.m, i, j);
                const bool infinite = tries % 2;
                if (types[t] == GNOMON_F16)
                    ((uint16_t *)x.m.data)[at] = infinite ? 0xfc00 : 0x7e01;
                else
                    set_element(&x.m, i, j, infinite ? -INFINITY : NAN);
                char text[80];
                snprintf(text, sizeof text, "x: element (%lld, %lld) is NaN or infinite",
                         (long long)i, (long long)j);
                ASSERT_FAILS(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL), GNOMON_ERROR_NONFINITE,
                             text);
                assert_same_bits(&y.m, &before.m, all_operators[o].name);
                gnomon_sketch_options allow = GNOMON_SKETCH_OPTIONS_INIT;
                allow.allow_nonfinite = 1;
                ASSERT_OK(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &allow));
                for (int64_t p = 0; p < N; p++) /* the other points are as ever */
                    for (int64_t r = 0; r < K && p != i; r++)
                        assert_true(isfinite(element(&y.m, p, r)));
                copy_matrix(&before.m, &y.m);
                set_element(&x.m, i, j, was);
            }
            /* and of two, the first in row order */
            set_element(&x.m, 30, 7, -1);
            if (types[t] != GNOMON_F16) {
                set_element(&x.m, 40, 3, NAN);
                set_element(&x.m, 30, 600, NAN);
                ASSERT_FAILS(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, NULL), GNOMON_ERROR_NONFINITE,
                             "element (30, 600)");
                set_element(&x.m, 40, 3, 0);
                set_element(&x.m, 30, 600, 0);
            }
            owned out = make_matrix(N, D, GNOMON_F64, ROW_MAJOR);
            set_element(&y.m, 11, 5, NAN);
            ASSERT_FAILS(ctx, gnomon_adjoint(ctx, op, &y.m, &out.m, NULL), GNOMON_ERROR_NONFINITE,
                         "y: element (11, 5)");
            free_matrix(&out);
            free_matrix(&x);
            free_matrix(&y);
            free_matrix(&before);
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
        }
    }
}

/* An allocator that fails on demand and knows how much is held. */
typedef struct meter {
    int64_t held, peak, calls, fail_at;
} meter;

static void *meter_allocate(void *user, size_t size, size_t alignment)
{
    meter *m = user;
    if (++m->calls == m->fail_at) return NULL;
    m->held += (int64_t)size;
    if (m->held > m->peak) m->peak = m->held;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void meter_release(void *user, void *pointer, size_t size)
{
    meter *m = user;
    m->held -= (int64_t)size;
    free(pointer);
}

static gnomon_context *metered_context(meter *m, gnomon_allocator *allocator, int threads,
                                       int64_t limit)
{
    *allocator = (gnomon_allocator){m, meter_allocate, meter_release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "cpu";
    o.threads = threads;
    o.memory_limit = limit;
    o.allocator = allocator;
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

enum { CSR, COO, SKETCH_CALL, ADJOINT_CALL, STREAM, CALLS };

/* One of the calls, on a given problem. */
static gnomon_status run_call(gnomon_context *ctx, const gnomon_operator *op, int call,
                              const gnomon_matrix *x, const gnomon_matrix *y)
{
    gnomon_status status;
    if (call == SKETCH_CALL) return gnomon_sketch(ctx, op, x, y, NULL);
    if (call == ADJOINT_CALL) return gnomon_adjoint(ctx, op, y, x, NULL);
    if (call == STREAM) {
        gnomon_stream *s = NULL;
        status = gnomon_stream_create(ctx, op, x->rows, GNOMON_F32, NULL, &s);
        if (status != GNOMON_OK) {
            assert_null(s);
            return status;
        }
        gnomon_matrix piece = *x;
        piece.cols = x->cols / 2 + 1;
        status = gnomon_stream_push(s, &piece);
        piece.data = (float *)x->data + piece.cols;
        piece.cols = x->cols - piece.cols;
        if (status == GNOMON_OK) {
            status = gnomon_stream_push(s, &piece);
        } else {
            assert_int_equal(gnomon_stream_push(s, &piece), GNOMON_ERROR_ARGUMENT);
        }
        if (status == GNOMON_OK) status = gnomon_stream_finish(s, y);
        gnomon_stream_destroy(s);
        return status;
    }
    /* every third element of x, backwards */
    const int64_t each = x->cols / 3, all = each * x->rows;
    int64_t *offsets = malloc((size_t)(x->rows + 1) * 8), *rows = malloc((size_t)all * 8);
    int64_t *cols = malloc((size_t)all * 8);
    float *values = malloc((size_t)all * 4);
    for (int64_t i = 0; i <= x->rows; i++)
        offsets[i] = i * each;
    for (int64_t e = 0; e < all; e++) {
        rows[e] = e / each;
        cols[e] = x->cols - 1 - e % each * 3;
        values[e] = (float)element(x, rows[e], cols[e]);
    }
    const gnomon_csr csr = {x->rows, x->cols, offsets, cols, values, GNOMON_F32};
    const gnomon_coo coo = {x->rows, x->cols, all, rows, cols, values, GNOMON_F32};
    status = call == CSR ? gnomon_sketch_csr(ctx, op, &csr, y, NULL)
                         : gnomon_sketch_coo(ctx, op, &coo, y, NULL);
    free(offsets);
    free(rows);
    free(cols);
    free(values);
    return status;
}

/* Fails the first allocation, the second, ...: the call says MEMORY and holds nothing after. */
static void test_failing_allocations(void **state)
{
    (void)state;
    for (int o = 0; o < OPERATORS; o++) {
        for (int call = 0; call < CALLS; call++) {
            meter m = {0};
            gnomon_allocator allocator;
            gnomon_context *ctx = metered_context(&m, &allocator, 2, 0);
            gnomon_operator *op = make_operator(ctx, &all_operators[o], 20, 300);
            owned x = make_matrix(33, 300, GNOMON_F32, 0), y = make_matrix(33, 20, GNOMON_F32, 0);
            fill_random(&x.m, 1);
            fill_random(&y.m, 1);
            const int64_t held = m.held;
            gnomon_status status = GNOMON_ERROR_MEMORY;
            for (int n = 1; status != GNOMON_OK; n++) {
                m.calls = 0;
                m.fail_at = n;
                status = run_call(ctx, op, call, &x.m, &y.m);
                if (status != GNOMON_OK) assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_int_equal(m.held, held);
                assert_true(n < 500);
            }
            free_matrix(&x);
            free_matrix(&y);
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
            assert_int_equal(m.held, 0);
        }
    }
}

/* Working memory stays within the limit, whatever it is, and gnomon_sketch_memory tells it. A
 * stream holds its sums and its buffer beside that. */
static void test_memory_limit(void **state)
{
    (void)state;
    static const int64_t limits[] = {2 << 20, 5 << 20, 16 << 20, 64 << 20};
    enum { N = 150, D = 4500, K = 64 };
    owned x = make_matrix(N, D, GNOMON_F32, 0), y = make_matrix(N, K, GNOMON_F32, 0);
    fill_random(&x.m, 1);
    for (int o = 0; o < OPERATORS; o++) {
        int ran = 0;
        for (int l = 0; l < 4; l++) {
            for (int call = 0; call < STREAM; call++) {
                meter m = {0};
                gnomon_allocator allocator;
                gnomon_context *ctx = metered_context(&m, &allocator, 3, limits[l]);
                gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
                const int64_t held = m.held;
                m.peak = held;
                if (call == ADJOINT_CALL) fill_random(&y.m, 1);
                const int64_t told = gnomon_sketch_memory(ctx, op, N, GNOMON_F32);
                const gnomon_status status = run_call(ctx, op, call, &x.m, &y.m);
                if (status == GNOMON_OK) {
                    ran++;
                    if (m.peak - held > limits[l])
                        fail_msg("%s, call %d: %lld bytes with a limit of %lld",
                                 all_operators[o].name, call, (long long)(m.peak - held),
                                 (long long)limits[l]);
                } else {
                    assert_int_equal(status, GNOMON_ERROR_MEMORY);
                    assert_non_null(strstr(gnomon_last_error(ctx), "memory_limit is too low"));
                }
                if (call == SKETCH_CALL) {
                    assert_int_equal(told == -1, status != GNOMON_OK);
                    if (status == GNOMON_OK) assert_in_range(m.peak - held, 1, told);
                }
                gnomon_operator_destroy(op);
                gnomon_context_destroy(ctx);
                if (call == ADJOINT_CALL) fill_random(&x.m, 1);
            }
        }
        assert_true(ran >= 10); /* 5 MiB is enough for most */
    }
    free_matrix(&x);
    free_matrix(&y);
}

static void test_memory_told(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    gnomon_operator *op = make_operator(ctx, &all_operators[0], 6, 40);
    assert_true(gnomon_sketch_memory(ctx, op, 0, GNOMON_F32) == 0);
    assert_true(gnomon_sketch_memory(ctx, op, -1, GNOMON_F32) == -1);
    assert_non_null(strstr(gnomon_last_error(ctx), "n is -1"));
    assert_true(gnomon_sketch_memory(ctx, op, 1, (gnomon_dtype)0) == -1);
    assert_non_null(strstr(gnomon_last_error(ctx), "dtype is 0"));
    assert_true(gnomon_sketch_memory(ctx, op, INT64_C(1) << 55, GNOMON_F64) <= 1 << 30);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

typedef struct caller {
    int calls, stop_at;
    int64_t last_done, total;
} caller;

static int count_progress(void *user, const char *phase, int64_t done, int64_t total)
{
    caller *c = user;
    assert_string_equal(phase, "project");
    assert_true(done >= 0 && done <= total);
    assert_true(done >= c->last_done);
    c->last_done = done;
    c->total = total;
    return ++c->calls == c->stop_at;
}

static void test_cancel(void **state)
{
    (void)state;
    owned x = make_matrix(40, 300, GNOMON_F32, 0), y = make_matrix(40, 20, GNOMON_F32, 0);
    for (int o = 0; o < OPERATORS; o++) {
        for (int call = 0; call < CALLS; call++) {
            caller c = {.stop_at = 1};
            meter m = {0};
            gnomon_allocator allocator = {&m, meter_allocate, meter_release};
            gnomon_context_options opt = GNOMON_CONTEXT_OPTIONS_INIT;
            opt.device = "cpu";
            opt.threads = 2;
            opt.progress = count_progress;
            opt.progress_user = &c;
            opt.allocator = &allocator;
            gnomon_context *ctx = NULL;
            assert_int_equal(gnomon_context_create(&opt, &ctx), GNOMON_OK);
            gnomon_operator *op = make_operator(ctx, &all_operators[o], 20, 300);
            fill_random(&x.m, 1);
            fill_random(&y.m, 1);
            const int64_t held = m.held;
            const gnomon_status status = run_call(ctx, op, call, &x.m, &y.m);
            if (status != GNOMON_ERROR_CANCELLED)
                fail_msg("%s: call %d came to %s", all_operators[o].name, call,
                         gnomon_status_name(status));
            assert_int_equal(m.held, held);
            c = (caller){.stop_at = -1};
            if (call != STREAM) {
                ASSERT_OK(ctx, run_call(ctx, op, call, &x.m, &y.m));
                assert_true(c.calls >= 1 && c.last_done == 40 && c.total == 40);
            }
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
        }
    }
    free_matrix(&x);
    free_matrix(&y);
}

static void test_stream_faults(void **state)
{
    (void)state;
    fixture f = make_fixture(2);
    gnomon_context *ctx = f.ctx;
    gnomon_stream *s = NULL;
    ASSERT_FAILS(ctx, gnomon_stream_create(ctx, f.op, 5, GNOMON_F32, NULL, NULL),
                 GNOMON_ERROR_ARGUMENT, "out is NULL");
    ASSERT_FAILS(ctx, gnomon_stream_create(ctx, NULL, 5, GNOMON_F32, NULL, &s),
                 GNOMON_ERROR_ARGUMENT, "op is NULL");
    ASSERT_FAILS(ctx, gnomon_stream_create(ctx, f.op, -5, GNOMON_F32, NULL, &s),
                 GNOMON_ERROR_ARGUMENT, "n is -5");
    ASSERT_FAILS(ctx, gnomon_stream_create(ctx, f.op, 5, GNOMON_F16, NULL, &s),
                 GNOMON_ERROR_ARGUMENT, "dtype is f16; it must be f32 or f64");
    ASSERT_FAILS(ctx, gnomon_stream_create(ctx, f.op, INT64_MAX / 2, GNOMON_F32, NULL, &s),
                 GNOMON_ERROR_OVERFLOW, "n is");
    assert_null(s);
    ASSERT_OK(ctx, gnomon_stream_create(ctx, f.op, 5, GNOMON_F32, NULL, &s));
    gnomon_matrix piece = f.x.m;
    piece.cols = 41;
    ASSERT_FAILS(ctx, gnomon_stream_push(s, &piece), GNOMON_ERROR_SHAPE, "piece has 41 columns");
    piece.cols = 30;
    piece.rows = 4;
    ASSERT_FAILS(ctx, gnomon_stream_push(s, &piece), GNOMON_ERROR_SHAPE, "piece has 4 rows");
    piece.rows = 5;
    piece.dtype = GNOMON_I32;
    ASSERT_FAILS(ctx, gnomon_stream_push(s, &piece), GNOMON_ERROR_DTYPE, "piece.dtype is i32");
    piece.dtype = GNOMON_F32;
    const double was = element(&piece, 2, 3);
    set_element(&piece, 2, 3, NAN);
    ASSERT_FAILS(ctx, gnomon_stream_push(s, &piece), GNOMON_ERROR_NONFINITE,
                 "piece: element (2, 3)");
    set_element(&piece, 2, 3, was);
    ASSERT_FAILS(ctx, gnomon_stream_push(s, NULL), GNOMON_ERROR_ARGUMENT, "piece is NULL");
    ASSERT_OK(ctx, gnomon_stream_push(s, &piece)); /* failures left it as it was */
    ASSERT_FAILS(ctx, gnomon_stream_finish(s, &f.y.m), GNOMON_ERROR_SHAPE,
                 "the stream has come to column 30 of 40");
    piece.cols = 10;
    piece.data = (float *)f.x.m.data + 30;
    ASSERT_OK(ctx, gnomon_stream_push(s, &piece));
    gnomon_matrix y = f.y.m;
    y.rows = 4;
    ASSERT_FAILS(ctx, gnomon_stream_finish(s, &y), GNOMON_ERROR_SHAPE,
                 "y is 4 x 6; the stream's sketch is 5 x 6");
    y = f.y.m;
    y.dtype = GNOMON_F64;
    ASSERT_FAILS(ctx, gnomon_stream_finish(s, &y), GNOMON_ERROR_DTYPE, "y.dtype is f64");
    y.dtype = GNOMON_U8;
    ASSERT_FAILS(ctx, gnomon_stream_finish(s, &y), GNOMON_ERROR_DTYPE, "y.dtype is u8");
    owned a = make_matrix(5, 6, GNOMON_F32, 0), b = make_matrix(5, 6, GNOMON_F32, 0);
    ASSERT_OK(ctx, gnomon_stream_finish(s, &a.m));
    ASSERT_OK(ctx, gnomon_sketch(ctx, f.op, &f.x.m, &b.m, NULL));
    assert_same_bits(&a.m, &b.m, "stream after refused pieces");
    gnomon_stream_destroy(s);
    gnomon_stream_destroy(NULL);
    assert_int_equal(gnomon_stream_push(NULL, &piece), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_stream_finish(NULL, &a.m), GNOMON_ERROR_ARGUMENT);
    ASSERT_OK(ctx, gnomon_stream_create(ctx, f.op, 0, GNOMON_F64, NULL, &s));
    a.m.rows = 0;
    piece = f.x.m;
    piece.rows = 0;
    ASSERT_OK(ctx, gnomon_stream_push(s, &piece));
    ASSERT_OK(ctx, gnomon_stream_finish(s, &a.m));
    gnomon_stream_destroy(s);
    assert_true(gnomon_operator_granule(NULL) == 0);
    free_matrix(&a);
    free_matrix(&b);
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),           cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_nothing_to_do),       cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_failing_allocations), cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_memory_told),         cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_stream_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
