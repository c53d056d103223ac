/* gnomon_matrix_check_finite: every type, any strides, the first in row order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gnomon.h>

static gnomon_context *ctx;

static int setup(void **state)
{
    (void)state;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = 3;
    return gnomon_context_create(&o, &ctx) != GNOMON_OK;
}

static int teardown(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

/* Bit patterns of the floating types: the largest finite number, both infinities, NaNs. */
typedef struct pattern {
    gnomon_dtype dtype;
    uint64_t largest, infinity, quiet, lowest_nan, sign;
} pattern;

static const pattern patterns[] = {
    {GNOMON_F32, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001, UINT64_C(1) << 31},
    {GNOMON_F64, UINT64_C(0x7fefffffffffffff), UINT64_C(0x7ff0000000000000),
     UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff0000000000001), UINT64_C(1) << 63},
    {GNOMON_F16, 0x7bff, 0x7c00, 0x7e00, 0x7c01, 0x8000},
    {GNOMON_BF16, 0x7f7f, 0x7f80, 0x7fc0, 0x7f81, 0x8000},
};

static void put(const gnomon_matrix *m, int64_t i, int64_t j, uint64_t bits)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    unsigned char *p = (unsigned char *)m->data + (i * m->row_stride + j * m->col_stride) * size;
    memcpy(p, &bits, (size_t)size); /* little-endian */
}

static void passes(const gnomon_matrix *m)
{
    int64_t row = -5, col = -5;
    assert_int_equal(gnomon_matrix_check_finite(ctx, m, &row, &col), GNOMON_OK);
    assert_int_equal(row, -5);
    assert_int_equal(col, -5);
}

static void finds(const gnomon_matrix *m, int64_t expected_row, int64_t expected_col)
{
    int64_t row = -5, col = -5;
    assert_int_equal(gnomon_matrix_check_finite(ctx, m, &row, &col), GNOMON_ERROR_NONFINITE);
    assert_int_equal(row, expected_row);
    assert_int_equal(col, expected_col);
    char text[64];
    snprintf(text, sizeof text, "(%lld, %lld)", (long long)row, (long long)col);
    assert_non_null(strstr(gnomon_last_error(ctx), text));
    assert_int_equal(gnomon_matrix_check_finite(ctx, m, NULL, NULL), GNOMON_ERROR_NONFINITE);
}

/* The views of one buffer that the tests go through. */
static gnomon_matrix view(int kind, void *data, gnomon_dtype dtype, int64_t rows, int64_t cols)
{
    gnomon_matrix m = gnomon_matrix_rowmajor(data, dtype, rows, cols);
    const int64_t size = (int64_t)gnomon_dtype_size(dtype);
    switch (kind) {
    case 1:
        return gnomon_matrix_colmajor(data, dtype, rows, cols);
    case 2: /* gaps both ways */
        m.row_stride = cols * 2 + 3;
        m.col_stride = 2;
        return m;
    case 3: /* rows run backwards */
        m.data = (unsigned char *)data + (rows - 1) * cols * size;
        m.row_stride = -cols;
        return m;
    case 4: /* columns run backwards, in column order */
        m = gnomon_matrix_colmajor((unsigned char *)data + (cols - 1) * rows * size, dtype, rows,
                                   cols);
        m.col_stride = -rows;
        return m;
    default:
        return m;
    }
}

static void finds_the_first_in_row_order(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{1, 1},    {1, 9001}, {9001, 1},
                                        {70, 130}, {130, 70}, {5000, 3}};
    for (size_t t = 0; t < sizeof patterns / sizeof *patterns; t++) {
        const pattern *p = &patterns[t];
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            const int64_t rows = shapes[s][0], cols = shapes[s][1];
            for (int kind = 0; kind < 5; kind++) {
                const size_t bytes = (size_t)(rows * (cols * 2 + 3)) * 8;
                void *data = malloc(bytes);
                assert_non_null(data);
                memset(data, 0xff, bytes); /* what lies between the elements is NaN */
                const gnomon_matrix m = view(kind, data, p->dtype, rows, cols);
                for (int64_t i = 0; i < rows; i++)
                    for (int64_t j = 0; j < cols; j++)
                        put(&m, i, j, p->largest | ((i + j) % 2 ? p->sign : 0));
                passes(&m);
                /* from the last to the first: each new one takes over */
                put(&m, rows - 1, cols - 1, p->infinity);
                finds(&m, rows - 1, cols - 1);
                put(&m, rows - 1, 0, p->lowest_nan | p->sign);
                finds(&m, rows - 1, 0);
                put(&m, rows / 2, cols - 1, p->infinity | p->sign);
                finds(&m, rows / 2, rows / 2 == rows - 1 && cols > 1 ? 0 : cols - 1);
                put(&m, rows / 2, cols / 3, p->quiet);
                put(&m, rows / 2, cols / 2, p->quiet);
                if (rows / 2 < rows - 1) finds(&m, rows / 2, cols / 3);
                put(&m, 0, cols - 1, p->quiet);
                put(&m, 0, 0, p->quiet);
                finds(&m, 0, 0);
                free(data);
            }
        }
    }
}

static void each_bad_value_in_each_place(void **state)
{
    (void)state;
    float data[37];
    const gnomon_matrix m = gnomon_matrix_rowmajor(data, GNOMON_F32, 1, 37);
    for (int64_t place = 0; place < 37; place++) {
        for (int which = 0; which < 6; which++) {
            memset(data, 0x01, sizeof data);
            const pattern *p = &patterns[0];
            const uint64_t bad[] = {p->infinity, p->quiet, p->lowest_nan};
            put(&m, 0, place, bad[which / 2] | (which % 2 ? p->sign : 0));
            finds(&m, 0, place);
        }
    }
}

static void stride_zero_and_integers(void **state)
{
    (void)state;
    double one = 1.0;
    gnomon_matrix m = {&one, GNOMON_F64, GNOMON_HOST, 1000, 1000, 0, 0};
    passes(&m);
    one = -1.0 / 0.0;
    finds(&m, 0, 0);
    unsigned char ones[64];
    memset(ones, 0xff, sizeof ones);
    for (int dtype = GNOMON_I8; dtype <= GNOMON_U64; dtype++) {
        m = gnomon_matrix_rowmajor(ones, (gnomon_dtype)dtype, 2, 4);
        passes(&m);
    }
    m = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 0, 12);
    passes(&m);
    m = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 12, 0);
    passes(&m);
}

static void refuses(const gnomon_matrix *m, const char *part)
{
    assert_int_equal(gnomon_matrix_check_finite(ctx, m, NULL, NULL), GNOMON_ERROR_ARGUMENT);
    if (!strstr(gnomon_last_error(ctx), part))
        fail_msg("\"%s\" does not say \"%s\"", gnomon_last_error(ctx), part);
}

static void bad_views(void **state)
{
    (void)state;
    float x[4] = {0};
    refuses(NULL, "m is NULL");
    gnomon_matrix m = gnomon_matrix_rowmajor(x, (gnomon_dtype)0, 2, 2);
    refuses(&m, "m.dtype is 0");
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, -1, 2);
    refuses(&m, "-1 x 2");
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, -2);
    refuses(&m, "2 x -2");
    m = gnomon_matrix_rowmajor(NULL, GNOMON_F32, 2, 2);
    refuses(&m, "m.data is NULL");
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, 2);
    m.memory = GNOMON_DEVICE_MEMORY;
    refuses(&m, "m.memory is 1");
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, INT64_MAX / 2, 3);
    refuses(&m, "strides");
    m = gnomon_matrix_rowmajor(x, GNOMON_F32, 2, 2);
    m.col_stride = INT64_MIN;
    refuses(&m, "strides");
    m = gnomon_matrix_rowmajor(x, GNOMON_F64, 2, INT64_MAX / 8);
    refuses(&m, "strides");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_first_in_row_order),
        cmocka_unit_test(each_bad_value_in_each_place),
        cmocka_unit_test(stride_zero_and_integers),
        cmocka_unit_test(bad_views),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
