/* Conversion of elements: every 16-bit float, ties, double rounding, ranges of integers. */
#include "io/arrays/convert.h"
#include "io_text.h"

#include <float.h>

static bool is_nan16(unsigned bits, unsigned infinity)
{
    return (bits & 0x7fffu) > infinity;
}

/* Each pattern gives back itself; each midpoint of neighbours goes to the even one and what lies
 * just beside it to the nearer one, which a detour over float would get wrong. */
static void walk(uint16_t (*from)(double), double (*to)(uint16_t), unsigned infinity, double top)
{
    for (unsigned bits = 0; bits <= 0xffffu; bits++) {
        double value = to((uint16_t)bits);
        if (is_nan16(bits, infinity)) {
            assert_true(isnan(value));
            assert_true(is_nan16(from(value), infinity));
            continue;
        }
        assert_int_equal(from(value), bits);
        unsigned magnitude = bits & 0x7fffu, sign = bits & 0x8000u;
        if (magnitude >= infinity) continue;
        double next = magnitude + 1 == infinity ? copysign(top, value) : to((uint16_t)(bits + 1));
        double middle = (value + next) / 2; /* exact: doubles have bits to spare */
        assert_int_equal(from(middle), sign | (magnitude + (magnitude & 1)));
        assert_int_equal(from(nextafter(middle, 0)), bits);
        assert_int_equal(from(nextafter(middle, next * 2)), bits + 1);
    }
    assert_int_equal(from(INFINITY), infinity);
    assert_int_equal(from(-INFINITY), 0x8000u | infinity);
    assert_int_equal(from(DBL_MAX), infinity);
    assert_int_equal(from(5e-324), 0);
    assert_int_equal(from(-5e-324), 0x8000u);
    assert_true(is_nan16(from(NAN), infinity));
}

static void every_half(void **unused)
{
    (void)unused;
    walk(gnomon_f16_from_f64, gnomon_f64_from_f16, 0x7c00u, 65536.0);
    assert_true(gnomon_f64_from_f16(0x3c00) == 1.0 && gnomon_f64_from_f16(0x0001) == 0x1p-24);
}

static void every_bfloat(void **unused)
{
    (void)unused;
    walk(gnomon_bf16_from_f64, gnomon_f64_from_bf16, 0x7f80u, 0x1p128);
    assert_true(gnomon_f64_from_bf16(0x3f80) == 1.0);
}

static gnomon_status convert_one(const void *src, gnomon_dtype from, void *dst, gnomon_dtype to)
{
    gnomon_matrix a = gnomon_matrix_rowmajor((void *)(uintptr_t)src, from, 1, 1);
    gnomon_matrix b = gnomon_matrix_rowmajor(dst, to, 1, 1);
    return gnomon_convert(ctx, &a, &b, 10, 20, "f");
}

static void once_rounded(void **unused)
{
    (void)unused;
    /* just above the middle of two floats, but on it once rounded to double */
    int64_t i = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
    uint64_t u = (UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1;
    float f;
    expect_ok(convert_one(&i, GNOMON_I64, &f, GNOMON_F32));
    assert_true(f == 0x1p60f + 0x1p37f);
    expect_ok(convert_one(&u, GNOMON_U64, &f, GNOMON_F32));
    assert_true(f == 0x1p63f + 0x1p40f);
    uint16_t h;
    double d = 1.0 + 0x1p-11 + 0x1p-40;
    expect_ok(convert_one(&d, GNOMON_F64, &h, GNOMON_F16));
    assert_int_equal(h, 0x3c01);
}

static void integers(void **unused)
{
    (void)unused;
    static const struct {
        gnomon_dtype dtype;
        double value;
        bool fits;
        int64_t becomes;
    } cases[] = {{GNOMON_I8, 2.5, true, 2},
                 {GNOMON_I8, 3.5, true, 4},
                 {GNOMON_I8, -2.5, true, -2},
                 {GNOMON_I8, 127.4, true, 127},
                 {GNOMON_I8, 127.5, false, 0},
                 {GNOMON_I8, -128.5, true, -128},
                 {GNOMON_I8, -128.6, false, 0},
                 {GNOMON_U8, -0.5, true, 0},
                 {GNOMON_U8, -0.51, false, 0},
                 {GNOMON_U8, 255.4, true, 255},
                 {GNOMON_U8, 255.5, false, 0},
                 {GNOMON_I16, 32767.5, false, 0},
                 {GNOMON_I16, -32768.5, true, -32768},
                 {GNOMON_U16, 65535.4, true, 65535},
                 {GNOMON_U16, 65535.5, false, 0},
                 {GNOMON_I32, 2147483647.4, true, 2147483647},
                 {GNOMON_I32, 2147483647.5, false, 0},
                 {GNOMON_U32, 4294967295.5, false, 0},
                 {GNOMON_U32, 4294967295.0, true, 4294967295},
                 {GNOMON_I64, 0x1p63, false, 0},
                 {GNOMON_I64, -0x1p63, true, INT64_MIN},
                 {GNOMON_U64, 0x1p64, false, 0},
                 {GNOMON_U64, -1, false, 0},
                 {GNOMON_I32, NAN, false, 0},
                 {GNOMON_I64, INFINITY, false, 0},
                 {GNOMON_U8, -INFINITY, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t out = 0;
        gnomon_status status = convert_one(&cases[i].value, GNOMON_F64, &out, cases[i].dtype);
        if (!cases[i].fits) {
            assert_int_equal(status, GNOMON_ERROR_DATA);
            assert_non_null(strstr(gnomon_last_error(ctx), "row 10, column 20"));
            continue;
        }
        expect_ok(status);
        int64_t want = cases[i].becomes;
        assert_memory_equal(&out, &want, gnomon_dtype_size(cases[i].dtype));
    }
}

/* The place named is that of the first misfit, whichever way the loops run. */
static void misfit_place(void **unused)
{
    (void)unused;
    double data[700 * 3] = {0};
    int8_t out[700 * 3];
    data[650 * 3 + 1] = 1000;
    gnomon_matrix src = gnomon_matrix_rowmajor(data, GNOMON_F64, 700, 3);
    gnomon_matrix rows = gnomon_matrix_rowmajor(out, GNOMON_I8, 700, 3);
    gnomon_matrix cols = gnomon_matrix_colmajor(out, GNOMON_I8, 700, 3);
    assert_int_equal(gnomon_convert(ctx, &src, &rows, 5, 7, "f"), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "row 655, column 8"));
    assert_int_equal(gnomon_convert(ctx, &src, &cols, 5, 7, "f"), GNOMON_ERROR_DATA);
    assert_non_null(strstr(gnomon_last_error(ctx), "row 655, column 8"));
}

static void pairs(void **unused)
{
    (void)unused;
    for (int from = GNOMON_F32; from <= GNOMON_U64; from++) {
        for (int to = GNOMON_F32; to <= GNOMON_U64; to++) {
            double one = 1, back = 0;
            uint64_t a = 0, b = 0;
            expect_ok(convert_one(&one, GNOMON_F64, &a, (gnomon_dtype)from));
            gnomon_status status = convert_one(&a, (gnomon_dtype)from, &b, (gnomon_dtype)to);
            if (from != to && from > GNOMON_F64 && to > GNOMON_F64) {
                assert_int_equal(status, GNOMON_ERROR_DTYPE);
                continue;
            }
            expect_ok(status);
            expect_ok(convert_one(&b, (gnomon_dtype)to, &back, GNOMON_F64));
            assert_true(back == 1);
        }
    }
}

static void swapping(void **unused)
{
    (void)unused;
    unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    gnomon_swap_bytes(bytes, 8, 1);
    assert_memory_equal(bytes, ((unsigned char[]){1, 2, 3, 4, 5, 6, 7, 8}), 8);
    gnomon_swap_bytes(bytes, 4, 2);
    assert_memory_equal(bytes, ((unsigned char[]){2, 1, 4, 3, 6, 5, 8, 7}), 8);
    gnomon_swap_bytes(bytes, 2, 4);
    assert_memory_equal(bytes, ((unsigned char[]){3, 4, 1, 2, 7, 8, 5, 6}), 8);
    gnomon_swap_bytes(bytes, 1, 8);
    assert_memory_equal(bytes, ((unsigned char[]){6, 5, 8, 7, 2, 1, 4, 3}), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half),   cmocka_unit_test(every_bfloat),
        cmocka_unit_test(once_rounded), cmocka_unit_test(integers),
        cmocka_unit_test(misfit_place), cmocka_unit_test(pairs),
        cmocka_unit_test(swapping),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
