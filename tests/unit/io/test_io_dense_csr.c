/* Dense points read as sparse ones: without zeros, in pieces of any size, for every element type.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gnomon.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 300, COLS = 17 };

static double value_at(int64_t i, int64_t j)
{
    return (i * 7 + j * 3) % 4 == 0 && i % 9 != 5 ? (double)((i + j) % 100) : 0;
}

static void write_points(gnomon_context *ctx, const char *path, gnomon_dtype dtype)
{
    static double x[ROWS][COLS];
    gnomon_writer *writer;
    gnomon_write_options o = GNOMON_WRITE_OPTIONS_INIT;
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLS; j++)
            x[i][j] = value_at(i, j);
    const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F64, ROWS, COLS);
    assert_int_equal(gnomon_writer_open(ctx, path, ROWS, COLS, dtype, &o, &writer), GNOMON_OK);
    assert_int_equal(gnomon_writer_rows(writer, &m), GNOMON_OK);
    assert_int_equal(gnomon_writer_finish(writer), GNOMON_OK);
}

static void zeros_are_left_out(void **state)
{
    (void)state;
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16,
                                         GNOMON_U8,  GNOMON_I32, GNOMON_I64};
    static const int64_t pieces[][2] = {
        {1, 1}, {7, 1000}, {1000, 40}, {1000, 1 << 20}, {INT64_MAX / 16, 18}};
    char path[64];
    gnomon_context *ctx;
    snprintf(path, sizeof path, "dense-csr-%d.npy", (int)getpid());
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        write_points(ctx, path, types[t]);
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            gnomon_reader *reader;
            gnomon_csr csr;
            int64_t i = 0;
            assert_int_equal(gnomon_reader_open(ctx, path, NULL, &reader), GNOMON_OK);
            for (;;) {
                assert_int_equal(gnomon_reader_next_csr(reader, pieces[p][0], pieces[p][1], &csr),
                                 GNOMON_OK);
                if (csr.rows == 0) break;
                assert_true(csr.rows <= pieces[p][0]);
                assert_true(csr.rows == 1 || csr.offsets[csr.rows] <= pieces[p][1]);
                assert_int_equal(csr.cols, COLS);
                for (int64_t r = 0; r < csr.rows; r++, i++) {
                    int64_t e = csr.offsets[r];
                    for (int64_t j = 0; j < COLS; j++) {
                        if (value_at(i, j) == 0) continue;
                        assert_true(e < csr.offsets[r + 1]);
                        assert_int_equal(csr.indices[e], j);
                        assert_true((csr.dtype == GNOMON_F32
                                         ? (double)((const float *)csr.values)[e]
                                         : ((const double *)csr.values)[e]) == value_at(i, j));
                        e++;
                    }
                    assert_int_equal(e, csr.offsets[r + 1]);
                }
            }
            assert_int_equal(i, ROWS);
            gnomon_reader_close(reader);
        }
    }
    unlink(path);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zeros_are_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
