/* Blocks, dense and sparse: the same entries whatever the rectangle, layout and threads. */
#include "operator_testing.h"

#include <stdbool.h>

enum { K = 22, D = 700, CHUNKS = 9000 };

/* Columns enough to cross chunks; a cascade has none, and is dear. */
static int64_t columns(int number)
{
    return variants[number].kind == GNOMON_KRONECKER ? D : CHUNKS;
}

static double *whole(gnomon_context *ctx, const gnomon_operator *op, int64_t rows, int64_t cols)
{
    double *data = malloc((size_t)(rows * cols) * sizeof *data);
    assert_non_null(data);
    const gnomon_matrix m = gnomon_matrix_rowmajor(data, GNOMON_F64, rows, cols);
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, &m), GNOMON_OK);
    return data;
}

static void blocks_are_parts_of_the_whole(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(2);
    uint64_t random = 4;
    for (int n = 0; n < VARIANTS; n++) {
        const gnomon_descriptor d = describe_variant(n, K, columns(n));
        const int64_t across = d.d;
        gnomon_operator *op = new_operator(ctx, &d);
        double *all = whole(ctx, op, K, across);
        for (int i = 0; i < 20; i++) {
            const int64_t row = draw(&random, K), col = draw(&random, across);
            const int64_t rows = draw(&random, K - row) + 1;
            const int64_t widest = i % 3 == 0          ? across - col
                                   : across - col < 50 ? across - col
                                                       : 50;
            const int64_t cols = draw(&random, widest) + 1;
            float *data = malloc((size_t)(rows * cols) * sizeof *data);
            assert_non_null(data);
            const gnomon_matrix m = gnomon_matrix_colmajor(data, GNOMON_F32, rows, cols);
            assert_int_equal(gnomon_operator_block(ctx, op, row, col, &m), GNOMON_OK);
            for (int64_t r = 0; r < rows; r++)
                for (int64_t c = 0; c < cols; c++)
                    assert_true(data[r + c * rows] == (float)all[(row + r) * across + col + c]);
            free(data);

            gnomon_csr csr;
            assert_int_equal(
                gnomon_operator_block_csr(ctx, op, row, col, rows, cols, GNOMON_F64, &csr),
                GNOMON_OK);
            assert_int_equal(csr.rows, rows);
            assert_int_equal(csr.cols, cols);
            for (int64_t r = 0; r < rows; r++) {
                int64_t at = csr.offsets[r];
                for (int64_t c = 0; c < cols; c++) {
                    const double value = all[(row + r) * across + col + c];
                    if (value == 0.0) continue;
                    assert_true(at < csr.offsets[r + 1]);
                    assert_int_equal(csr.indices[at], c);
                    assert_true(((const double *)csr.values)[at] == value);
                    at++;
                }
                assert_int_equal(at, csr.offsets[r + 1]);
            }
            gnomon_csr_free(ctx, &csr);
            assert_null(csr.offsets);
        }
        free(all);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

/* A view into a guarded buffer, with gaps and with negative strides. */
static void strides_of_any_sign_and_no_writes_beside(void **state)
{
    (void)state;
    enum { ROWS = 9, COLS = 33, SIZE = 4000 };
    gnomon_context *ctx = new_context(1);
    static const int64_t strides[][2] = {{100, 3}, {3, 100}, {-100, 3}, {100, -3}, {-3, -100}};
    for (int n = 0; n < VARIANTS; n++) {
        const gnomon_descriptor d = describe_variant(n, K, columns(n));
        const int64_t across = d.d;
        gnomon_operator *op = new_operator(ctx, &d);
        double *all = whole(ctx, op, K, across);
        for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
            static double buffer[SIZE];
            static bool inside[SIZE];
            for (int i = 0; i < SIZE; i++) {
                buffer[i] = -77.0;
                inside[i] = false;
            }
            const int64_t rs = strides[s][0], cs = strides[s][1];
            const int64_t origin =
                (rs < 0 ? -rs * (ROWS - 1) : 0) + (cs < 0 ? -cs * (COLS - 1) : 0);
            const gnomon_matrix m = {buffer + origin, GNOMON_F64, GNOMON_HOST, ROWS, COLS, rs, cs};
            assert_int_equal(gnomon_operator_block(ctx, op, 3, 555, &m), GNOMON_OK);
            for (int64_t r = 0; r < ROWS; r++) {
                for (int64_t c = 0; c < COLS; c++) {
                    inside[origin + r * rs + c * cs] = true;
                    assert_true(buffer[origin + r * rs + c * cs] ==
                                all[(3 + r) * across + 555 + c]);
                }
            }
            for (int i = 0; i < SIZE; i++)
                if (!inside[i]) assert_true(buffer[i] == -77.0);
        }
        free(all);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    enum { MANY_COLS = 20000, ROWS = 34 };
    for (int n = 0; n < VARIANTS; n++) {
        /* a dense cascade is dear, and a narrower one has as many tasks */
        const int64_t cols = variants[n].kind == GNOMON_KRONECKER ? 300 : MANY_COLS;
        const int64_t rows = variants[n].kind == GNOMON_KRONECKER ? 12 : ROWS;
        const gnomon_descriptor d = describe_variant(n, rows, cols);
        double *data[2];
        for (int t = 0; t < 2; t++) {
            gnomon_context *ctx = new_context(t == 0 ? 1 : 5);
            gnomon_operator *op = new_operator(ctx, &d);
            data[t] = whole(ctx, op, rows, cols);
            gnomon_operator_destroy(op);
            gnomon_context_destroy(ctx);
        }
        assert_memory_equal(data[0], data[1], (size_t)(rows * cols) * sizeof(double));
        free(data[0]);
        free(data[1]);
    }
}

/* Neighbouring blocks far to the right fit together, up to the last column there can be. */
static void far_columns(void **state)
{
    (void)state;
    enum { ROWS = 4 };
    static const int64_t ends[] = {INT64_C(1000000000000), INT64_C(1) << 53, INT64_C(1) << 56};
    gnomon_context *ctx = new_context(2);
    for (int n = 0; n < VARIANTS; n++) {
        for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
            gnomon_descriptor d = describe_variant(n, ROWS, INT64_C(1) << 56);
            d.nonzeros = d.nonzeros > 2 ? 2 : d.nonzeros;
            d.blocks = d.blocks > 4 ? 4 : d.blocks;
            d.width = 0;
            d.zeta = 0; /* a larger one would pad beyond 2^57 */
            gnomon_operator *op = new_operator(ctx, &d);
            double block[ROWS][20], half[ROWS][10];
            const gnomon_matrix m = gnomon_matrix_rowmajor(block, GNOMON_F64, ROWS, 20);
            const gnomon_matrix h = gnomon_matrix_rowmajor(half, GNOMON_F64, ROWS, 10);
            assert_int_equal(gnomon_operator_block(ctx, op, 0, ends[e] - 20, &m), GNOMON_OK);
            assert_int_equal(gnomon_operator_block(ctx, op, 0, ends[e] - 10, &h), GNOMON_OK);
            for (int i = 0; i < ROWS; i++)
                assert_memory_equal(half[i], block[i] + 10, sizeof half[i]);
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < 20; j++)
                    assert_true(isfinite(block[i][j]));
            gnomon_operator_destroy(op);
        }
    }
    gnomon_context_destroy(ctx);
}

static void check_same_head(gnomon_descriptor small, gnomon_descriptor large)
{
    gnomon_context *ctx = new_context(1);
    gnomon_operator *a = new_operator(ctx, &small);
    gnomon_operator *b = new_operator(ctx, &large);
    double *x = whole(ctx, a, small.k, small.d);
    double *y = whole(ctx, b, large.k, small.d);
    assert_memory_equal(x, y, (size_t)(small.k * small.d) * sizeof *x);
    free(x);
    free(y);
    gnomon_operator_destroy(a);
    gnomon_operator_destroy(b);
    gnomon_context_destroy(ctx);
}

static gnomon_descriptor unscaled(gnomon_kind kind, gnomon_dtype precision, int64_t k, int64_t d)
{
    gnomon_descriptor x = GNOMON_DESCRIPTOR_INIT;
    x.kind = kind;
    x.precision = precision;
    x.scaling = GNOMON_UNSCALED;
    x.seed = 99;
    x.k = k;
    x.d = d;
    x.density = kind == GNOMON_VERY_SPARSE ? 0.03 : 0.0;
    return x;
}

static void rows_can_be_appended(void **state)
{
    (void)state;
    for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_SRHT; kind++) {
        static const gnomon_dtype precisions[] = {(gnomon_dtype)0, GNOMON_F32, GNOMON_F16};
        for (int p = 0; p < (kind == GNOMON_GAUSSIAN ? 3 : 1); p++) {
            gnomon_descriptor small = unscaled((gnomon_kind)kind, precisions[p], 12, 3000);
            gnomon_descriptor large = small;
            large.k = 27;
            if (kind == GNOMON_SJLT) {
                small.nonzeros = 3; /* bands of four rows */
                large.k = 20;
                large.nonzeros = 5;
            }
            check_same_head(small, large);
        }
    }
}

static void columns_can_be_appended(void **state)
{
    (void)state;
    for (int kind = GNOMON_GAUSSIAN; kind < GNOMON_SRHT; kind++) {
        const gnomon_descriptor small = unscaled((gnomon_kind)kind, 0, 13, 700);
        gnomon_descriptor large = small;
        large.d = INT64_C(1) << 50;
        check_same_head(small, large);
    }
}

/* Isometric: the mean squared norm of a column is 1, block by block. */
static void columns_have_unit_norm_on_average(void **state)
{
    (void)state;
    enum { ROWS = 24, COLS = 3000 };
    gnomon_context *ctx = new_context(1);
    for (int n = 0; n < VARIANTS; n++) {
        gnomon_descriptor d = describe_variant(n, ROWS, COLS);
        if (d.kind == GNOMON_KRONECKER) d.width = 0;
        gnomon_operator *op = new_operator(ctx, &d);
        double *all = whole(ctx, op, ROWS, COLS);
        double sum = 0;
        int64_t nonzeros = 0;
        for (int i = 0; i < ROWS * COLS; i++) {
            sum += all[i] * all[i];
            nonzeros += all[i] != 0.0;
        }
        /* six standard deviations: the blocks of a block operator are copies of one matrix, and
         * the columns of a cascade are far from independent */
        const double fill = gnomon_operator_fill(op);
        assert_true(fill > 0.0 && fill <= 1.0);
        const double copies = d.kind == GNOMON_BLOCK ? (double)d.blocks : 1.0;
        const double slack =
            d.kind == GNOMON_KRONECKER ? 0.75 : 6.0 * sqrt(2.0 * copies / (fill * ROWS * COLS));
        if (fabs(sum / COLS - 1.0) >= slack) fail_msg("variant %d: mean %g", n, sum / COLS);
        if (d.kind != GNOMON_KRONECKER)
            assert_true(fabs((double)nonzeros / (ROWS * COLS) - fill) <= slack * fill);
        free(all);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

static void bad_blocks_are_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    const gnomon_descriptor d = describe_variant(2, K, D);
    gnomon_operator *op = new_operator(ctx, &d);
    double data[64];
    gnomon_matrix m = gnomon_matrix_rowmajor(data, GNOMON_F64, 4, 4);
    static const int64_t corners[][2] = {{-1, 0},        {0, -1},        {K - 3, 0},    {0, D - 3},
                                         {INT64_MAX, 0}, {0, INT64_MAX}, {INT64_MIN, 0}};
    gnomon_csr csr;
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        assert_int_equal(gnomon_operator_block(ctx, op, corners[i][0], corners[i][1], &m),
                         GNOMON_ERROR_SHAPE);
        assert_int_equal(gnomon_operator_block_csr(ctx, op, corners[i][0], corners[i][1], 4, 4,
                                                   GNOMON_F64, &csr),
                         GNOMON_ERROR_SHAPE);
        assert_null(csr.offsets);
    }
    assert_int_equal(gnomon_operator_block_csr(ctx, op, 0, 0, -1, 4, GNOMON_F64, &csr),
                     GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_operator_block_csr(ctx, op, 0, 0, 4, 4, GNOMON_F16, &csr),
                     GNOMON_ERROR_DTYPE);
    assert_int_equal(gnomon_operator_block(ctx, NULL, 0, 0, &m), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, NULL), GNOMON_ERROR_ARGUMENT);
    m.dtype = GNOMON_I32;
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, &m), GNOMON_ERROR_DTYPE);
    assert_non_null(strstr(gnomon_last_error(ctx), "i32"));
    m.dtype = GNOMON_F64;
    m.row_stride = 0;
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, &m), GNOMON_ERROR_ARGUMENT);
    m.row_stride = 4;
    m.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_operator_block(ctx, op, 0, 0, &m), GNOMON_ERROR_ARGUMENT);
    m.memory = GNOMON_HOST;

    /* nothing asked for is fine, at the very end too */
    m.rows = 0;
    assert_int_equal(gnomon_operator_block(ctx, op, K, D - 4, &m), GNOMON_OK);
    assert_int_equal(gnomon_operator_block_csr(ctx, op, K, D, 0, 0, GNOMON_F32, &csr), GNOMON_OK);
    assert_int_equal(csr.offsets[0], 0);
    gnomon_csr_free(ctx, &csr);
    gnomon_csr_free(ctx, NULL);
    gnomon_operator_destroy(op);
    gnomon_operator_destroy(NULL);
    gnomon_context_destroy(ctx);
}

typedef struct rationed {
    int left; /* allocations until one fails; -1: none does */
    int64_t live;
} rationed;

static void *rationed_allocate(void *user, size_t size, size_t alignment)
{
    rationed *r = user;
    if (r->left == 0) return NULL;
    if (r->left > 0) r->left--;
    r->live++;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void rationed_release(void *user, void *pointer, size_t size)
{
    (void)size;
    ((rationed *)user)->live--;
    free(pointer);
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    rationed r = {-1, 0};
    const gnomon_allocator allocator = {&r, rationed_allocate, rationed_release};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = 2;
    o.device = "cpu";
    o.allocator = &allocator;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    const int64_t before = r.live;
    for (int n = 0; n < VARIANTS; n++) {
        const gnomon_descriptor d = describe_variant(n, K, columns(n));
        gnomon_operator *op = new_operator(ctx, &d);
        gnomon_status status = GNOMON_ERROR_MEMORY;
        int failures = 0;
        for (int ration = 0; status != GNOMON_OK; ration++) {
            gnomon_csr csr;
            r.left = ration;
            status = gnomon_operator_block_csr(ctx, op, 1, 2, 5, 40, GNOMON_F32, &csr);
            r.left = -1;
            if (status == GNOMON_OK) {
                gnomon_csr_free(ctx, &csr);
            } else {
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
                assert_null(csr.offsets);
                failures++;
            }
            assert_int_equal(r.live, before);
        }
        assert_true(failures >= 2);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
    assert_int_equal(r.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_parts_of_the_whole),
        cmocka_unit_test(strides_of_any_sign_and_no_writes_beside),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(far_columns),
        cmocka_unit_test(rows_can_be_appended),
        cmocka_unit_test(columns_can_be_appended),
        cmocka_unit_test(columns_have_unit_norm_on_average),
        cmocka_unit_test(bad_blocks_are_refused),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
