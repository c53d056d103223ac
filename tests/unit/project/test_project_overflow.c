/* Sums of finite points that leave their type are refused with the row, by every call, and nothing
 * else is. */
#include "project.h"

enum { N = 21, D = 700, K = 20, SPOILT = 6 };

enum { SKETCH, STREAM, CSR, COO, ADJOINT, CALLS };
static const char *const call_names[] = {"sketch", "stream", "csr", "coo", "adjoint"};

typedef struct arrays {
    int64_t offsets[N + 1], rows[N * D], cols[N * D];
} arrays;

static gnomon_status run_stream(gnomon_context *ctx, const gnomon_operator *op,
                                const gnomon_matrix *x, const gnomon_matrix *y,
                                const gnomon_sketch_options *o)
{
    gnomon_stream *s = NULL;
    gnomon_status status = gnomon_stream_create(ctx, op, x->rows, y->dtype, o, &s);
    const int64_t size = (int64_t)gnomon_dtype_size(x->dtype);
    for (int64_t at = 0; at < x->cols && status == GNOMON_OK; at += 111) {
        gnomon_matrix piece = *x;
        piece.data = (char *)x->data + at * x->col_stride * size;
        piece.cols = x->cols - at < 111 ? x->cols - at : 111;
        status = gnomon_stream_push(s, &piece);
    }
    if (status == GNOMON_OK) status = gnomon_stream_finish(s, y);
    gnomon_stream_destroy(s);
    return status;
}

/* x is row-major, as the sparse calls want it. */
static gnomon_status run_call(gnomon_context *ctx, const gnomon_operator *op, int call,
                              const gnomon_matrix *x, const gnomon_matrix *y,
                              const gnomon_sketch_options *o)
{
    if (call == SKETCH) return gnomon_sketch(ctx, op, x, y, o);
    if (call == STREAM) return run_stream(ctx, op, x, y, o);
    if (call == ADJOINT) return gnomon_adjoint(ctx, op, x, y, o);
    static arrays a;
    for (int64_t i = 0; i < N; i++) {
        a.offsets[i + 1] = (i + 1) * D;
        for (int64_t j = 0; j < D; j++) {
            a.rows[i * D + j] = i;
            a.cols[i * D + j] = j;
        }
    }
    const gnomon_csr csr = {N, D, a.offsets, a.cols, x->data, x->dtype};
    const gnomon_coo coo = {N, D, (int64_t)N * D, a.rows, a.cols, x->data, x->dtype};
    return call == CSR ? gnomon_sketch_csr(ctx, op, &csr, y, o)
                       : gnomon_sketch_coo(ctx, op, &coo, y, o);
}

/* The first row with a number that is none, -1 without. */
static int64_t first_spoilt(const gnomon_matrix *m, const gnomon_matrix *before)
{
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t j = 0; j < m->cols; j++)
            if (!isfinite(element(m, i, j)) && isfinite(element(before, i, j))) return i;
    return -1;
}

/* One call with allow_nonfinite tells what comes of it; the same without is refused with the first
 * row where something came that is no number, or gives the same bits. Returns whether it was. */
static bool check_call(gnomon_context *ctx, const gnomon_operator *op, int call,
                       const gnomon_matrix *x, gnomon_dtype dtype, int layout, double beta,
                       const char *name)
{
    const int64_t width = call == ADJOINT ? D : K;
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    owned y = make_matrix(N, width, dtype, layout), z = make_matrix(N, width, dtype, layout);
    owned before = make_matrix(N, width, dtype, layout);
    fill_random(&before.m, 4);
    /* not of a sum's making, so not reported, if it is read at all */
    set_element(&before.m, 1, 2, NAN);
    copy_matrix(&before.m, &y.m);
    copy_matrix(&before.m, &z.m);
    if (beta == 0) fill_random(&before.m, 4);
    o.beta = beta;
    o.allow_nonfinite = 1;
    ASSERT_OK(ctx, run_call(ctx, op, call, x, &y.m, &o));
    o.allow_nonfinite = 0;
    const gnomon_status status = run_call(ctx, op, call, x, &z.m, &o);
    const int64_t row = first_spoilt(&y.m, &before.m);
    char words[80];
    snprintf(words, sizeof words, "%s: row %lld overflows", call == ADJOINT ? "x" : "y",
             (long long)row);
    if ((status == GNOMON_OK) != (row < 0) ||
        (row >= 0 && (status != GNOMON_ERROR_NONFINITE || !strstr(gnomon_last_error(ctx), words))))
        fail_msg("%s, %s, %s, layout %d, beta %g: row %lld is spoilt; %s: %s", name,
                 call_names[call], gnomon_dtype_name(dtype), layout, beta, (long long)row,
                 gnomon_status_name(status), gnomon_last_error(ctx));
    if (status == GNOMON_OK) assert_same_bits(&y.m, &z.m, name);
    check_sentinels(&z);
    free_matrix(&y);
    free_matrix(&z);
    free_matrix(&before);
    return row >= 0;
}

/* Row SPOILT and one more hold the largest numbers, or parts of them. */
static void overflows_are_refused_with_their_row(void **state)
{
    (void)state;
    static const double parts[] = {1, 1.0 / 16, 1.0 / 1024, 0x1p-30};
    for (int threads = 1; threads <= 2; threads++)
        for (int o = 0; o < OPERATORS; o++) {
            /* little memory: sums leave batch by batch */
            gnomon_context *ctx = make_context(threads, threads == 1 ? 0 : 3 << 20);
            gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
            for (int f64 = 0; f64 < 2; f64++)
                for (int call = 0; call < CALLS; call++) {
                    const int64_t cols = call == ADJOINT ? K : D;
                    const gnomon_dtype dtype = f64 ? GNOMON_F64 : GNOMON_F32;
                    owned x = make_matrix(N, cols, dtype, ROW_MAJOR);
                    bool any = false;
                    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
                        fill_random(&x.m, 5);
                        for (int64_t j = 0; j < cols; j++) {
                            const double v = (f64 ? DBL_MAX : FLT_MAX) * parts[p];
                            set_element(&x.m, SPOILT, j, v);
                            set_element(&x.m, N - 1, j, -v);
                        }
                        const bool refused =
                            check_call(ctx, op, call, &x.m, dtype, (int)(p + (size_t)o) % LAYOUTS,
                                       p % 2 ? 1 : 0, all_operators[o].name);
                        any = any || refused;
                        /* the smallest is far from the edge */
                        if (parts[p] < 0x1p-20) assert_false(refused);
                    }
                    /* a column of very-sparse or countsketch has few nonzeros to be added up */
                    if (call != ADJOINT) assert_true(any);
                    free_matrix(&x);
                }
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
        }
}

/* What is beyond fp32 is within fp64: the output asked for decides. */
static void an_fp64_output_holds_what_fp32_does_not(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(2, 0);
    for (int o = 0; o < OPERATORS; o++) {
        gnomon_operator *op = make_operator(ctx, &all_operators[o], K, D);
        owned x = make_matrix(N, D, GNOMON_F32, ROW_MAJOR);
        owned y = make_matrix(N, K, GNOMON_F64, ROW_MAJOR);
        owned f32_out = make_matrix(N, K, GNOMON_F32, ROW_MAJOR);
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < D; j++)
                set_element(&x.m, i, j, FLT_MAX);
        for (int call = 0; call < ADJOINT; call++) {
            ASSERT_OK(ctx, run_call(ctx, op, call, &x.m, &y.m, NULL));
            ASSERT_FAILS(ctx, run_call(ctx, op, call, &x.m, &f32_out.m, NULL),
                         GNOMON_ERROR_NONFINITE, "y: row 0 overflows");
        }
        free_matrix(&x);
        free_matrix(&y);
        free_matrix(&f32_out);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

/* beta * y alone, where no block writes. */
static void a_scaled_output_can_overflow_too(void **state)
{
    (void)state;
    gnomon_context *ctx = make_context(1, 0);
    gnomon_operator *op = make_operator(ctx, &all_operators[10], 20, 90); /* four blocks */
    owned x = make_matrix(5, 0, GNOMON_F32, ROW_MAJOR);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        owned y = make_matrix(5, 20, GNOMON_F32, layout);
        fill_random(&y.m, 3);
        set_element(&y.m, 4, 0, 3e38);
        set_element(&y.m, 3, 19, -3e38);
        set_element(&y.m, 2, 7, INFINITY);
        gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
        o.col = 7;
        o.beta = 2;
        ASSERT_FAILS(ctx, gnomon_sketch(ctx, op, &x.m, &y.m, &o), GNOMON_ERROR_NONFINITE,
                     "y: row 3 overflows");
        free_matrix(&y);
    }
    free_matrix(&x);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overflows_are_refused_with_their_row),
        cmocka_unit_test(an_fp64_output_holds_what_fp32_does_not),
        cmocka_unit_test(a_scaled_output_can_overflow_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
