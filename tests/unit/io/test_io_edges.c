/* Reading at the edges: a file of one point, whose number of points only its size tells; what of a
 * NaN fits in 16 bits. */
#include "io/arrays/convert.h"

#include <gnomon/io.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void one_point_alone(void **state)
{
    (void)state;
    enum { COLS = 5 };
    const float written[COLS] = {1, -2, 3.5f, 0, 1e30f};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    for (size_t bytes = sizeof written - 1; bytes <= sizeof written; bytes++) {
        char path[] = "/tmp/gnomon-edges-XXXXXX";
        const int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, written, bytes) == (ssize_t)bytes);
        close(fd);
        gnomon_read_options read = GNOMON_READ_OPTIONS_INIT;
        gnomon_reader *reader;
        read.format = "raw";
        read.raw_cols = COLS;
        read.raw_dtype = GNOMON_F32;
        const gnomon_status status = gnomon_reader_open(ctx, path, &read, &reader);
        if (bytes < sizeof written) {
            assert_true(status == GNOMON_ERROR_TRUNCATED || status == GNOMON_ERROR_DATA);
        } else {
            float back[COLS];
            int64_t got = 0;
            const gnomon_matrix dst = gnomon_matrix_rowmajor(back, GNOMON_F32, 1, COLS);
            assert_int_equal(status, GNOMON_OK);
            assert_int_equal(gnomon_reader_next(reader, &dst, &got), GNOMON_OK);
            assert_int_equal(got, 1);
            assert_memory_equal(back, written, sizeof written);
        }
        gnomon_reader_close(reader);
        unlink(path);
    }
    gnomon_context_destroy(ctx);
}

static double nan_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    assert_true(isnan(value));
    return value;
}

/* The sign, the quiet bit, and the first bits of the payload. */
static void nan_in_16_bits(void **state)
{
    (void)state;
    static const struct {
        uint64_t from;
        uint16_t f16, bf16;
    } cases[] = {
        {UINT64_C(0x7ff8000000000000), 0x7e00, 0x7fc0},
        {UINT64_C(0xfff8000000000000), 0xfe00, 0xffc0},
        {UINT64_C(0x7fffffffffffffff), 0x7fff, 0x7fff},
        {UINT64_C(0x7ff0000000000001), 0x7e00, 0x7fc0},
        {UINT64_C(0x7ffd540000000000), 0x7f55, 0x7fea},
        {UINT64_C(0xfff2a80000000000), 0xfeaa, 0xffd5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(gnomon_f16_from_f64(nan_of(cases[i].from)), cases[i].f16);
        assert_int_equal(gnomon_bf16_from_f64(nan_of(cases[i].from)), cases[i].bf16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_point_alone),
        cmocka_unit_test(nan_in_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
