/* A tolerance of matrices whose rank is less than their rows, some of which are zero: a block of
 * columns then holds such that are rounding alone, and exactly zero in those rows. */
#include <gnomon/hosvd.h>
#include <gnomon/svd.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* In [-1, 1], by a linear congruence. */
static double next(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (double)(*state >> 11) / 0x1p52 - 1;
}

/* The largest magnitude of Q^T Q - I. */
static double off(const gnomon_matrix *q)
{
    const double *x = q->data;
    double most = 0;
    for (int64_t i = 0; i < q->cols; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = i == j ? -1 : 0;
            for (int64_t r = 0; r < q->rows; r++)
                sum += x[r * q->row_stride + i] * x[r * q->row_stride + j];
            most = fmax(most, fabs(sum));
        }
    return most;
}

static void check_svd(gnomon_context *ctx, int64_t rows, int64_t cols, int64_t zero, int64_t block,
                      int sparse)
{
    uint64_t state = (uint64_t)(rows * 1000 + zero * 10 + block);
    const int64_t count = rows * cols;
    double *x = calloc((size_t)count, sizeof *x), squares = 0, sigmas = 0;
    int64_t *indices = calloc((size_t)count, sizeof *indices);
    int64_t *offsets = calloc((size_t)rows + 1, sizeof *offsets);
    assert_true(x != NULL && indices != NULL && offsets != NULL);
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = i / cols;
        /* zero rows at both ends, and the last other row twice */
        if (row >= zero && row < rows - zero - 1) x[i] = next(&state);
        if (row == rows - zero - 1) x[i] = x[i - cols];
        indices[i] = i % cols;
        squares += x[i] * x[i];
    }
    for (int64_t i = 0; i <= rows; i++)
        offsets[i] = i * cols;
    const gnomon_matrix a = gnomon_matrix_rowmajor(x, GNOMON_F64, rows, cols);
    const gnomon_csr csr = {rows, cols, offsets, indices, x, GNOMON_F64};
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    gnomon_svd out = {.struct_size = sizeof out};
    o.tolerance = 1e-9;
    o.power = 0;
    o.block = block;
    const gnomon_status status =
        sparse ? gnomon_svd_csr(ctx, &csr, &o, &out) : gnomon_svd_dense(ctx, &a, &o, &out);
    if (status != GNOMON_OK) fail_msg("%s", gnomon_last_error(ctx));
    for (int64_t i = 0; i < out.rank; i++)
        sigmas += out.s[i] * out.s[i];
    assert_true(out.rank <= rows - 2 * zero - 1);
    assert_true(off(&out.u) < 1e-12);
    assert_true(fabs(sigmas / squares - 1) < 1e-12);
    assert_true(out.residual_estimate < 1e-9);
    gnomon_svd_free(ctx, &out);
    free(x);
    free(indices);
    free(offsets);
}

static void matrices(void **state)
{
    gnomon_context *ctx = *state;
    for (int sparse = 0; sparse < 2; sparse++)
        for (int64_t zero = 0; zero <= 8; zero += 4) {
            check_svd(ctx, 40, 70, zero, 7, sparse);
            check_svd(ctx, 41, 43, zero, 32, sparse);
        }
}

static void tensors(void **state)
{
    gnomon_context *ctx = *state;
    enum { SIZE = 20, ZERO = 3 };
    static double x[SIZE * SIZE * SIZE];
    uint64_t seed = 5;
    for (int i = 0; i < SIZE * SIZE * SIZE; i++) {
        const int at[] = {i / (SIZE * SIZE), i / SIZE % SIZE, i % SIZE};
        x[i] = at[0] < ZERO || at[1] < ZERO || at[2] < ZERO ? 0 : next(&seed);
    }
    const int64_t size[] = {SIZE, SIZE, SIZE};
    const gnomon_tensor t = gnomon_tensor_packed(x, GNOMON_F64, 3, size, 0);
    for (int sequential = 0; sequential < 2; sequential++) {
        gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
        gnomon_hosvd out = {.struct_size = sizeof out};
        o.tolerance = 1e-9;
        o.sequential = sequential;
        o.oversample = 0;
        if (gnomon_hosvd_dense(ctx, &t, &o, &out) != GNOMON_OK)
            fail_msg("%s", gnomon_last_error(ctx));
        for (int n = 0; n < 3; n++) {
            assert_int_equal(out.rank[n], SIZE - ZERO);
            assert_true(off(&out.factor[n]) < 1e-12);
        }
        assert_true(out.residual <= 1e-9 * out.norm);
        gnomon_hosvd_free(ctx, &out);
    }
}

static int set_up(void **state)
{
    gnomon_context_options settings = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    settings.device = "cpu";
    settings.threads = 2;
    const gnomon_status status = gnomon_context_create(&settings, &ctx);
    *state = ctx;
    return status == GNOMON_OK ? 0 : 1;
}

static int tear_down(void **state)
{
    gnomon_context_destroy(*state);
    return 0;
}

int main(void)
{
    if (gnomon_svd_missing() != NULL) {
        print_message("left out: %s\n", gnomon_svd_missing());
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrices), cmocka_unit_test(tensors)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
