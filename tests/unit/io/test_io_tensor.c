/* Arrays of any number of dimensions: written, read back, in both orders, and what is refused. */
#include <gnomon.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static gnomon_context *ctx;
static char folder[] = "/tmp/gnomon-tensor-XXXXXX";
static char path[64];

static int make(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    snprintf(path, sizeof path, "%s/t.npz", folder);
    return gnomon_context_create(NULL, &ctx) == GNOMON_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    remove(path);
    return rmdir(folder);
}

static void expect(gnomon_status got, gnomon_status want)
{
    if (got != want)
        fail_msg("status %s, want %s: %s", gnomon_status_name(got), gnomon_status_name(want),
                 gnomon_last_error(ctx));
}

/* Opens a member as a tensor and reads all of it as doubles. */
static gnomon_data_info read_all(const char *name, double *out)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    gnomon_data_info info = {.struct_size = sizeof info};
    gnomon_reader *reader;
    int64_t got;
    options.tensor = 1;
    expect(gnomon_reader_open(ctx, name, &options, &reader), GNOMON_OK);
    expect(gnomon_reader_info(reader, &info), GNOMON_OK);
    const gnomon_matrix dst = gnomon_matrix_rowmajor(out, GNOMON_F64, info.rows, info.cols);
    expect(gnomon_reader_next(reader, &dst, &got), GNOMON_OK);
    assert_int_equal(got, info.rows);
    gnomon_reader_close(reader);
    return info;
}

static void test_round_trip(void **state)
{
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_I16};
    (void)state;
    if (!GNOMON_WITH_LIBZIP) skip();
    for (int modes = 1; modes <= GNOMON_TENSOR_MODES; modes++) {
        int64_t size[GNOMON_TENSOR_MODES], count = 1;
        for (int n = 0; n < modes; n++)
            count *= size[n] = n % 5 == 2 ? 3 : n % 5 == 4 ? 1 : 2;
        float *f = malloc((size_t)count * sizeof *f);
        double *d = malloc((size_t)count * sizeof *d), *back = malloc((size_t)count * sizeof *d);
        int16_t *s = malloc((size_t)count * sizeof *s);
        for (int64_t i = 0; i < count; i++)
            f[i] = (float)(d[i] = s[i] = (int16_t)(i % 3001 - 1500));
        void *const data[] = {f, d, s};
        gnomon_named_tensor tensors[3] = {{"a", {0}}, {"long_name", {0}}, {"c", {0}}};
        for (int k = 0; k < 3; k++)
            tensors[k].tensor = gnomon_tensor_packed(data[k], types[k], modes, size, 0);
        expect(gnomon_write_npz_tensors(ctx, path, tensors, 3), GNOMON_OK);
        for (int k = 0; k < 3; k++) {
            char name[96];
            snprintf(name, sizeof name, "%s:%s", path, tensors[k].name);
            const gnomon_data_info info = read_all(name, back);
            assert_int_equal(info.dtype, types[k]);
            assert_int_equal(info.dimensions, modes);
            assert_memory_equal(info.shape, size, (size_t)modes * sizeof *size);
            assert_int_equal(info.rows, modes == 1 ? 1 : size[0]);
            assert_false(info.fortran_order);
            assert_memory_equal(back, d, (size_t)count * sizeof *d);
        }
        free(f);
        free(d);
        free(back);
        free(s);
    }
}

/* NumPy's header by hand, and elements 0, 1, 2 ... as they lie. */
static void write_npy(const char *order, const char *shape, int count)
{
    char header[118] = {0};
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%s), }", order,
             shape);
    for (size_t i = strlen(header); i < sizeof header - 1; i++)
        header[i] = ' ';
    header[sizeof header - 1] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, sizeof header, file);
    for (int i = 0; i < count; i++) {
        const float value = (float)i;
        fwrite(&value, sizeof value, 1, file);
    }
    fclose(file);
}

static void test_fortran_order(void **state)
{
    (void)state;
    double back[24];
    write_npy("True", "2, 3, 4", 24);
    gnomon_data_info info = read_all(path, back);
    assert_int_equal(info.dimensions, 3);
    assert_int_equal(info.shape[2], 4);
    assert_true(info.fortran_order);
    assert_int_equal(info.rows, 4);
    assert_int_equal(info.cols, 6);
    for (int i = 0; i < 24; i++)
        assert_true(back[i] == i); /* as they lie */
    gnomon_reader *reader;
    expect(gnomon_reader_open(ctx, path, NULL, &reader), GNOMON_ERROR_UNSUPPORTED);
    write_npy("True", "3, 8", 24);
    info = read_all(path, back);
    assert_int_equal(info.rows, 8);
    assert_true(back[23] == 23 && back[5] == 5);
    /* as points it is read by the first dimension, as ever */
    gnomon_data_info points = {.struct_size = sizeof points};
    expect(gnomon_reader_open(ctx, path, NULL, &reader), GNOMON_OK);
    expect(gnomon_reader_info(reader, &points), GNOMON_OK);
    assert_int_equal(points.rows, 3);
    assert_int_equal(points.dimensions, 2);
    assert_true(points.fortran_order && points.coordinates_contiguous);
    gnomon_reader_close(reader);
}

static void test_hostile(void **state)
{
    static const char *const shapes[] = {
        "4611686018427387904, 4, 4", "3, 3037000500, 3037000500, 7", "2, 3, 5",
        "65536, 65536, 65536, 65536", "9223372036854775807, 9223372036854775807, 0, 3"};
    (void)state;
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    gnomon_reader *reader;
    options.tensor = 1;
    for (int order = 0; order < 2; order++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            write_npy(order ? "True" : "False", shapes[i], 24);
            const gnomon_status status = gnomon_reader_open(ctx, path, &options, &reader);
            if (i == 4) { /* nothing at all, however much of it */
                gnomon_reader_close(reader);
                continue;
            }
            assert_true(status == GNOMON_ERROR_DATA || status == GNOMON_ERROR_TRUNCATED);
            assert_null(reader);
        }
}

static void test_refusals(void **state)
{
    (void)state;
    if (!GNOMON_WITH_LIBZIP) skip();
    float x[12] = {0};
    const int64_t size[] = {2, 3, 2}, huge[] = {INT64_MAX / 2, 3, 4};
    gnomon_named_tensor t = {"x", gnomon_tensor_packed(x, GNOMON_F32, 3, size, 0)};
    const gnomon_named_tensor good = t;
#define REFUSED(status) expect(gnomon_write_npz_tensors(ctx, path, &t, 1), status), t = good
    remove(path);
    t.tensor.modes = 17;
    REFUSED(GNOMON_ERROR_ARGUMENT);
    t.tensor.modes = 0;
    REFUSED(GNOMON_ERROR_ARGUMENT);
    t.tensor.size[1] = -1;
    REFUSED(GNOMON_ERROR_ARGUMENT);
    t.tensor = gnomon_tensor_packed(x, GNOMON_F32, 3, size, 1);
    REFUSED(GNOMON_ERROR_ARGUMENT);
    t.tensor = gnomon_tensor_packed(x, GNOMON_F32, 3, huge, 0);
    REFUSED(GNOMON_ERROR_OVERFLOW);
    t.tensor.dtype = GNOMON_BF16;
    REFUSED(GNOMON_ERROR_DTYPE);
    t.tensor.data = NULL;
    REFUSED(GNOMON_ERROR_ARGUMENT);
    t.name = "";
    REFUSED(GNOMON_ERROR_ARGUMENT);
    assert_int_equal(access(path, F_OK), -1);
    REFUSED(GNOMON_OK);
#undef REFUSED
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_fortran_order),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
