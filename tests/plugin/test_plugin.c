/* Finding the device plugin: where it is looked for, what it is asked, what is said when
 * it can't be had. */
#include "base/plugin.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <gnomon.h>

static int clear(void **state)
{
    (void)state;
    return unsetenv("GNOMON_PLUGIN_DIR");
}

static void says(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
}

/* auto falls back to the CPU with its reason, cuda fails with its own, cpu never looks. */
static void neither_can_be_had(const char *automatic, const char *part)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    says(gnomon_context_device_reason(ctx), automatic);
    assert_null(gnomon_context_plugin(ctx, 0));
    assert_string_equal(gnomon_context_device_kind(ctx), "");
    gnomon_context_destroy(ctx);

    o.device = "cuda";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_ERROR_DEVICE);
    assert_null(ctx);
    says(gnomon_last_error(NULL), part);

    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    says(gnomon_context_device_reason(ctx), "not loaded");
    assert_null(gnomon_context_plugin(ctx, 0));
    gnomon_context_destroy(ctx);
}

static void can_not_be_had(const char *part)
{
    neither_can_be_had(part, part);
}

static void is_used(const char *part)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    for (int named = 0; named < 2; named++) {
        o.device = named ? "cuda" : "auto";
        gnomon_context *ctx;
        assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
        const gnomon_plugin *plugin = gnomon_context_plugin(ctx, 0);
        assert_non_null(plugin);
        assert_non_null(plugin->state);
        assert_string_equal(plugin->table->name, "test");
        assert_null(gnomon_context_plugin(ctx, 1));
        assert_string_equal(gnomon_context_device_kind(ctx), "cuda");
        says(gnomon_context_device_reason(ctx), part);
        says(gnomon_context_device_name(ctx), "test device");
        gnomon_context_destroy(ctx);
    }
}

static void named_folder(void **state)
{
    (void)state;
    char versions[80];
    snprintf(versions, sizeof versions, "interface version 99, this library needs %d",
             (int)GNOMON_DEVICE_INTERFACE);
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    is_used("good/libgnomon_cuda.so: test device -1");
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/version", 1);
    can_not_be_had(versions);
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/no_entry", 1);
    can_not_be_had("does not export gnomon_plugin_entry");
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/declines", 1);
    can_not_be_had("declined: the test device is out of order");
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/none", 1);
    neither_can_be_had("no libgnomon_NAME.so in " PLUGINS "/none (GNOMON_PLUGIN_DIR)",
                       "no libgnomon_cuda.so in " PLUGINS "/none (GNOMON_PLUGIN_DIR)");
}

static void never_the_current_folder(void **state)
{
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(PLUGINS "/good"), 0);
    neither_can_be_had("no libgnomon_NAME.so in /", "no libgnomon_cuda.so in /");
    setenv("GNOMON_PLUGIN_DIR", ".", 1);
    can_not_be_had("GNOMON_PLUGIN_DIR is \".\", which is not an absolute path");
    assert_int_equal(chdir(before), 0);
}

static void not_a_library(void **state)
{
    (void)state;
    assert_true(mkdir(PLUGINS "/broken", 0755) == 0 || access(PLUGINS "/broken", F_OK) == 0);
    FILE *f = fopen(PLUGINS "/broken/libgnomon_cuda.so", "w");
    assert_non_null(f);
    fputs("no ELF file", f);
    assert_int_equal(fclose(f), 0);
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/broken", 1);
    can_not_be_had("can't be loaded");
}

/* Beside the file that holds the library, which here is the test program itself, and in
 * the folder gnomon/ beside it. */
static void beside_the_library(void **state)
{
    (void)state;
    char folder[PATH_MAX - 64], place[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    assert_true(length > 0);
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    can_not_be_had(folder);

    snprintf(place, sizeof place, "%s/libgnomon_cuda.so", folder);
    unlink(place); /* of an earlier run that was cut off */
    assert_int_equal(symlink(PLUGINS "/good/libgnomon_cuda.so", place), 0);
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    char reason[PATH_MAX];
    snprintf(reason, sizeof reason, "%s", gnomon_context_device_reason(ctx));
    gnomon_context_destroy(ctx);
    assert_int_equal(unlink(place), 0);
    says(reason, place);
    says(reason, "test device");

    snprintf(place, sizeof place, "%s/gnomon", folder);
    assert_true(mkdir(place, 0755) == 0 || access(place, F_OK) == 0);
    snprintf(place, sizeof place, "%s/gnomon/libgnomon_cuda.so", folder);
    unlink(place); /* of an earlier run that was cut off */
    assert_int_equal(symlink(PLUGINS "/version/libgnomon_cuda.so", place), 0);
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    snprintf(reason, sizeof reason, "%s", gnomon_context_device_reason(ctx));
    gnomon_context_destroy(ctx);
    assert_int_equal(unlink(place), 0);
    says(reason, place);
    says(reason, "interface version 99");
}

/* What options.device may say. */
static void specs(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        gnomon_status status;
        const char *said;
    } cases[] = {
        {"cuda:", GNOMON_ERROR_ARGUMENT, "options.device is \"cuda:\"; behind the colon"},
        {"cuda:x", GNOMON_ERROR_ARGUMENT, "behind the colon come indices, 0 or more"},
        {"cuda:-1", GNOMON_ERROR_ARGUMENT, "behind the colon"},
        {"cuda:99999999999", GNOMON_ERROR_ARGUMENT, "behind the colon"},
        {"cuda:1,", GNOMON_ERROR_ARGUMENT, "behind the colon"},
        {"cuda:1;2", GNOMON_ERROR_ARGUMENT, "behind the colon"},
        {"cuda:all,1", GNOMON_ERROR_ARGUMENT, "behind the colon"},
        {"cuda:3,1,3", GNOMON_ERROR_ARGUMENT, "it names device 3 twice"},
        {"cuda:all", GNOMON_ERROR_DEVICE, "declined: it does not tell how many devices it has"},
        {"", GNOMON_ERROR_ARGUMENT, "it must be auto, cpu, or a device's name"},
        {"../cuda", GNOMON_ERROR_ARGUMENT, "it must be auto, cpu, or a device's name"},
        {"Cuda", GNOMON_ERROR_ARGUMENT, "it must be auto, cpu, or a device's name"},
        {"cuda.so", GNOMON_ERROR_ARGUMENT, "it must be auto, cpu, or a device's name"},
        {"cpu:0", GNOMON_ERROR_ARGUMENT, "cpu has no index"},
        {"a_name_that_is_longer_than_there_is_room_for", GNOMON_ERROR_ARGUMENT, "it must be auto"},
        {"metal", GNOMON_ERROR_DEVICE, "no metal device can be had: no libgnomon_metal.so in"}};
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        o.device = cases[i].text;
        assert_int_equal(gnomon_context_create(&o, &ctx), cases[i].status);
        says(gnomon_last_error(NULL), cases[i].said);
        assert_string_equal(gnomon_last_error_argument(NULL), "options.device");
    }
}

/* A context whose device is said, and which device it is. */
static gnomon_context *open_device(const char *spec, const char *kind, const char *name)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.device = spec;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    gnomon_context_device_reason(ctx); /* looks */
    assert_string_equal(gnomon_context_device_kind(ctx), kind);
    assert_string_equal(gnomon_context_device_name(ctx), name);
    return ctx;
}

/* Two plugins in one folder: each by its name, and under auto one after the other. */
static void two_plugins(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/two", 1);
    gnomon_context *one = open_device("cuda:1", "cuda", "test device 1");
    gnomon_context *two = open_device("cuda:2", "cuda", "test device 2"); /* beside the first */
    gnomon_context *other = open_device("second:7", "second", "test device 7");
    gnomon_context *all = open_device("auto", "cuda", "test device -1");
    assert_non_null(gnomon_context_plugin(all, 1));
    assert_string_equal(gnomon_context_plugin(all, 1)->kind, "second");
    assert_null(gnomon_context_plugin(all, 2));
    assert_null(gnomon_context_plugin(two, 1));
    assert_string_equal(gnomon_context_device_found(all, 0), "cuda");
    assert_string_equal(gnomon_context_device_found(all, 1), "second");
    assert_null(gnomon_context_device_found(all, 2));
    assert_null(gnomon_context_device_found(all, -1));
    says(gnomon_context_device_reason(all), "two/libgnomon_cuda.so: test device -1; ");
    says(gnomon_context_device_reason(all), "two/libgnomon_second.so: test device -1");

    /* the first takes two rows, the second three */
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_RADEMACHER;
    d.k = 4;
    d.d = 8;
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(all, &d, &op), GNOMON_OK);
    float x[8] = {0}, y[4] = {0};
    const gnomon_matrix xs = gnomon_matrix_rowmajor(x, GNOMON_F32, 1, 8);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.alpha = 0;
    for (int rows = 3; rows >= 2; rows--) {
        const gnomon_matrix ys = gnomon_matrix_rowmajor(y, GNOMON_F32, 1, rows);
        options.rows = rows;
        assert_int_equal(gnomon_sketch(all, op, &xs, &ys, &options), GNOMON_OK);
        assert_int_equal(gnomon_context_worked_on(all), GNOMON_DEVICE_PLUGIN);
        assert_string_equal(gnomon_context_device_kind(all), rows == 3 ? "second" : "cuda");
    }
    gnomon_matrix ys = gnomon_matrix_rowmajor(y, GNOMON_F32, 1, 4);
    options.rows = 4;
    assert_int_equal(gnomon_sketch(all, op, &xs, &ys, &options), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(all), GNOMON_DEVICE_CPU);
    assert_int_equal(gnomon_sketch(other, op, &xs, &ys, &options), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(other), "second declined: the test device takes three rows");
    gnomon_operator_destroy(op);
    gnomon_context_destroy(one);
    gnomon_context_destroy(two);
    gnomon_context_destroy(other);
    gnomon_context_destroy(all);
}

/* A job in a child of fork on a context of the parent's, whose device is the parent's alone; the
 * child destroys the context, which must not close that device. */
static int in_child(gnomon_context *ctx, const gnomon_operator *op, gnomon_status expected)
{
    float x[8] = {0}, y[2] = {0};
    const gnomon_matrix xs = gnomon_matrix_rowmajor(x, GNOMON_F32, 1, 8),
                        ys = gnomon_matrix_rowmajor(y, GNOMON_F32, 1, 2);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.alpha = 0;
    options.rows = 2;
    if (gnomon_sketch(ctx, op, &xs, &ys, &options) != expected) return 1;
    if (expected == GNOMON_OK && gnomon_context_worked_on(ctx) != GNOMON_DEVICE_CPU) return 2;
    if (expected != GNOMON_OK && !strstr(gnomon_last_error(ctx), "before fork")) return 3;
    if (!strstr(gnomon_context_device_reason(ctx), "before fork")) return 4;
    gnomon_context_destroy(ctx);
    return 0;
}

static void after_fork(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/two", 1);
    for (int named = 0; named < 2; named++) {
        gnomon_context *ctx = open_device(named ? "cuda" : "auto", "cuda", "test device -1");
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        d.kind = GNOMON_RADEMACHER;
        d.k = 4;
        d.d = 8;
        gnomon_operator *op;
        assert_int_equal(gnomon_operator_create(ctx, &d, &op), GNOMON_OK);
        const pid_t child = fork();
        if (child == 0) _exit(in_child(ctx, op, named ? GNOMON_ERROR_DEVICE : GNOMON_OK));
        assert_true(child > 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_non_null(gnomon_context_plugin(ctx, 0)); /* the parent still has it */
        gnomon_operator_destroy(op);
        gnomon_context_destroy(ctx);
    }
}

static int stop(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase;
    *(int64_t *)user = 100 * done + total;
    return 1;
}

/* A job goes to the device with all that it asks for, and what the device says comes back. */
static void jobs_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int64_t reported = 0;
    o.device = "cuda:5";
    o.progress = stop;
    o.progress_user = &reported;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_string_equal(gnomon_context_device_name(ctx), "test device 5");
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_AUTO);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_RADEMACHER;
    d.k = 4;
    d.d = 8;
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(ctx, &d, &op), GNOMON_OK);
    float x[3 * 8] = {0}, y[3 * 2] = {7, 7, 7, 7, 7, 7}, all[3 * 4] = {7};
    gnomon_matrix xs = gnomon_matrix_rowmajor(x, GNOMON_F32, 3, 8);
    const gnomon_matrix ys = gnomon_matrix_rowmajor(y, GNOMON_F32, 3, 2);
    const gnomon_matrix alls = gnomon_matrix_rowmajor(all, GNOMON_F32, 3, 4);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.row = 1;
    options.rows = 2;
    options.alpha = GNOMON_OK;
    options.device_stream = op;
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &ys, &options), GNOMON_OK);
    assert_true(y[0] == 1.0f && y[1] == 1.0f && y[2] == 7.0f);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    options.device_stream = NULL;
    assert_int_equal(gnomon_adjoint(ctx, op, &ys, &xs, &options), GNOMON_OK);
    assert_true(x[0] == 1.0f && x[1] == 0.0f);

    options.alpha = GNOMON_ERROR_MEMORY;
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &ys, &options), GNOMON_ERROR_MEMORY);
    says(gnomon_last_error(ctx), "test: the test device gives status 70");
    options.alpha = GNOMON_ERROR_NONFINITE;
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &ys, &options), GNOMON_ERROR_NONFINITE);
    assert_string_equal(gnomon_last_error(ctx), "the test device gives status 31");
    options.alpha = GNOMON_ERROR_CANCELLED;
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &ys, &options), GNOMON_ERROR_CANCELLED);
    says(gnomon_last_error(ctx), "cancelled");
    assert_int_equal(reported, 102);

    assert_int_equal(gnomon_sketch(ctx, op, &xs, &alls, NULL), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "test declined: the test device takes two rows, no more");
    gnomon_stream *stream;
    assert_int_equal(gnomon_stream_create(ctx, op, 3, GNOMON_F32, NULL, &stream),
                     GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx), "test: the test device has no streams");
    gnomon_context_destroy(ctx);

    /* Under auto what the device declines goes to the CPU, unless only the device has the data. */
    o.device = "auto";
    o.progress = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &alls, NULL), GNOMON_OK);
    assert_true(all[0] != 7.0f);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
    assert_int_equal(gnomon_stream_create(ctx, op, 3, GNOMON_F32, NULL, &stream), GNOMON_OK);
    assert_int_equal(gnomon_stream_push(stream, &xs), GNOMON_OK);
    assert_int_equal(gnomon_stream_finish(stream, &alls), GNOMON_OK);
    gnomon_stream_destroy(stream);
    options = (gnomon_sketch_options)GNOMON_SKETCH_OPTIONS_INIT;
    options.rows = 2; /* of which it says that it can */
    assert_int_equal(gnomon_stream_create(ctx, op, 3, GNOMON_F32, &options, &stream), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
    gnomon_stream_destroy(stream);
    xs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_sketch(ctx, op, &xs, &alls, NULL), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "lies in a device's memory");
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

/* So does a product, and what a device has no entry for. */
static void products_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int64_t reported = 0;
    o.device = "cuda";
    o.progress = stop;
    o.progress_user = &reported;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    float a[3 * 4] = {0}, b[4 * 3] = {0}, c[3 * 3] = {7, 7, 7, 7};
    gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 3, 4);
    gnomon_matrix bs = gnomon_matrix_rowmajor(b, GNOMON_F32, 4, 2);
    gnomon_matrix cs = gnomon_matrix_rowmajor(c, GNOMON_F32, 3, 2);
    gnomon_gemm_options options = GNOMON_GEMM_OPTIONS_INIT;
    options.alpha = GNOMON_OK;
    options.beta = 5;
    options.form = GNOMON_GEMM_TF32;
    options.device_stream = a;
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, &options), GNOMON_OK);
    assert_true(c[0] == 2.0f && c[1] == 5.0f && c[2] == 1.0f && c[3] == 7.0f);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    options.alpha = GNOMON_ERROR_DEVICE;
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, &options), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "test: the test device gives status 90");
    options.alpha = GNOMON_ERROR_CANCELLED;
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, &options), GNOMON_ERROR_CANCELLED);
    assert_int_equal(reported, 102);
    bs.cols = cs.cols = bs.row_stride = cs.row_stride = 3;
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, NULL), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "test declined: the test device takes two columns, no more");
    gnomon_context_destroy(ctx);

    o.device = "auto";
    o.progress = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, NULL), GNOMON_OK);
    assert_true(c[0] == 0.0f);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
    bs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, NULL), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "b lies in a device's memory, and the device did not take the job: the "
                        "test device takes two columns, no more");
    gnomon_context_destroy(ctx);

    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/no_gemm", 1);
    bs.memory = GNOMON_HOST;
    o.device = "cuda";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_gemm(ctx, &as, &bs, &cs, NULL), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx), "test declined: it has no products of matrices");
    gnomon_context_destroy(ctx);
}

/* Sparse rows: in a device's memory they are for the device to read; on the host they are checked
 * before, and under auto few of them stay here. */
static void sparse_points_go_there(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 2, 3, 5, 6}, indices[] = {0, 4, 1, 3, 2, 3};
    const float values[6] = {1, 1, 1, 1, 1, 1};
    const gnomon_csr x = {4, 5, offsets, indices, values, GNOMON_F32};
    float out[8] = {5, 5, 5, 5, 5, 5, 5, 5};
    gnomon_matrix y = gnomon_matrix_rowmajor(out, GNOMON_F32, 4, 2);
    gnomon_descriptor d = {.struct_size = sizeof d, .kind = GNOMON_SJLT, .k = 3, .d = 5};
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx, *cpu;
    gnomon_operator *op;
    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &cpu), GNOMON_OK);
    assert_int_equal(gnomon_operator_create(cpu, &d, &op), GNOMON_OK);
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    o.device = "cuda";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    options.rows = 2;
    options.alpha = 0;
    assert_int_equal(gnomon_sketch_csr(ctx, op, &x, &y, &options), GNOMON_OK);
    assert_true(out[0] == 0 && out[1] == 0 && out[2] == 4); /* one row does not ascend */
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_string_equal(gnomon_context_declined(ctx), "");
    options.csr_memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_sketch_csr(ctx, op, &x, &y, &options), GNOMON_OK);
    assert_true(out[0] == 1 && out[1] == 0);
    options.alpha = GNOMON_ERROR_DATA;
    int64_t row, col;
    assert_int_equal(gnomon_sketch_csr(ctx, op, &x, &y, &options), GNOMON_ERROR_DATA);
    assert_string_equal(gnomon_last_error(ctx), "the test device gives status 30");
    assert_string_equal(gnomon_last_error_argument(ctx), "x");
    gnomon_last_error_place(ctx, &row, &col);
    assert_true(row == 7 && col == 9);
    options.csr_memory = (gnomon_memory)2;
    assert_int_equal(gnomon_sketch_csr(ctx, op, &x, &y, &options), GNOMON_ERROR_ARGUMENT);
    says(gnomon_last_error(ctx), "options.csr_memory is 2");
    options = (gnomon_sketch_options)GNOMON_SKETCH_OPTIONS_INIT;
    y.cols = y.row_stride = 3;
    y.rows = 2;
    const gnomon_csr two = {2, 5, offsets, indices, values, GNOMON_F32};
    assert_int_equal(gnomon_sketch_csr(ctx, op, &two, &y, &options), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx), "test declined: the test device projects sparse "
                                                "rows to two numbers");
    const gnomon_coo coo = {2, 5, 0, NULL, NULL, NULL, GNOMON_F32};
    assert_int_equal(gnomon_sketch_coo(ctx, op, &coo, &y, &options), GNOMON_ERROR_DEVICE);
    gnomon_context_destroy(ctx);

    o.device = "auto";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_sketch_csr(ctx, op, &two, &y, &options), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
    says(gnomon_context_declined(ctx), "takes longer than projecting here");
    options.csr_memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_sketch_csr(ctx, op, &two, &y, &options), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "x lies in a device's memory, and the device did not take the job: the "
                        "test device projects sparse rows to two numbers");
    assert_int_equal(gnomon_sketch_coo(ctx, op, &coo, &y, &options), GNOMON_ERROR_ARGUMENT);
    gnomon_context_destroy(ctx);

    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/no_gemm", 1);
    o.device = "cuda";
    options.csr_memory = GNOMON_HOST;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_sketch_csr(ctx, op, &two, &y, &options), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "declined: it does not project sparse points");
    gnomon_context_destroy(ctx);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(cpu);
}

/* Sets: the device leaves out what shares nothing, and says that a base is not sound. */
static void sets_go_there(gnomon_context *ctx)
{
    const int64_t offsets[] = {0, 2, 3, 5, 6}, indices[] = {0, 4, 1, 2, 9, 3};
    const float values[6] = {1, 1, 1, 1, 1, 1};
    const uint8_t allowed = 0x0e; /* not 0 */
    const gnomon_csr base = {4, 5, offsets, indices, values, GNOMON_F32};
    const gnomon_csr queries = {2, 5, offsets, indices, values, GNOMON_F32};
    gnomon_csr bad = base;
    bad.rows = 3;
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    options.metric = GNOMON_JACCARD;
    options.k = 2;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, &base, &queries, &options, &found), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_true(found.ids[0] == 2 && found.ids[1] == 0 && found.ids[2] == 1 && found.ids[3] == 0);
    assert_true(found.distances[0] == 0.5 && found.distances[1] == 1 && found.distances[3] == 1);
    gnomon_neighbors_free(ctx, &found);
    options.filter = &allowed;
    options.filter_bits = 8;
    options.exclude = 1; /* query 0 is point 1, query 1 is point 2 */
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, &base, &queries, &options, &found), GNOMON_OK);
    assert_true(found.ids[1] == 3 && found.ids[3] == 3);
    gnomon_neighbors_free(ctx, &found);
    options.k = 4;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, &base, &queries, &options, &found),
                     GNOMON_ERROR_ARGUMENT);
    says(gnomon_last_error(ctx), "k is 4, and 2 of base's 4 points may be neighbours of query 0");
    options.k = 1;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, &bad, &queries, &options, &found),
                     GNOMON_ERROR_DATA);
    says(gnomon_last_error(ctx), "base has the column index 9 in row 2");
    const gnomon_csr more = {3, 5, offsets, indices, values, GNOMON_F32};
    gnomon_search *search;
    assert_int_equal(gnomon_search_create_csr(ctx, &more, &options, &search), GNOMON_ERROR_DATA);
    const int64_t short_offsets[] = {0, 1, 2, 3};
    const gnomon_csr three = {3, 5, short_offsets, indices, values, GNOMON_F32};
    assert_int_equal(gnomon_search_create_csr(ctx, &three, &options, &search), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "test declined: the test device takes two queries, no more");
}

/* And a search: what the device finds becomes the answers. */
static void searches_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int64_t reported = 0;
    o.device = "cuda";
    o.progress = stop;
    o.progress_user = &reported;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    float base[8 * 3] = {0}, queries[4 * 3] = {0};
    gnomon_matrix bs = gnomon_matrix_rowmajor(base, GNOMON_F32, 8, 3);
    gnomon_matrix qs = gnomon_matrix_rowmajor(queries, GNOMON_F32, 2, 3);
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    options.k = 2;
    qs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_true(found.ids[1] == 1 && found.ids[3] == 11 && found.distances[3] == 1);
    assert_true(found.compared == 10 && found.verified == 1 && found.base == 8);
    gnomon_neighbors_free(ctx, &found);
    options.k = 3;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found),
                     GNOMON_ERROR_ARGUMENT);
    says(gnomon_last_error(ctx), "k is 3, and 2 of base's 8 points may be neighbours of query 1");

    options.k = 0;
    options.radius = 5;
    gnomon_search *search;
    assert_int_equal(gnomon_search_create(ctx, &qs, &options, &search), GNOMON_OK);
    assert_int_equal(gnomon_search_add(search, &bs), GNOMON_OK);
    bs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_search_add(search, &bs), GNOMON_OK);
    assert_int_equal(gnomon_search_finish(search, &found), GNOMON_OK);
    assert_true(found.offsets[1] == 0 && found.offsets[2] == 6 && found.compared == 28);
    assert_true(found.ids[0] == 2 && found.ids[1] == 10 && found.ids[5] == 8);
    assert_true(found.distances[0] == 3 && found.distances[5] == 5);
    gnomon_neighbors_free(ctx, &found);
    gnomon_search_destroy(search);

    base[0] = GNOMON_ERROR_MEMORY;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_ERROR_MEMORY);
    says(gnomon_last_error(ctx), "test: the test device gives status");
    base[0] = GNOMON_ERROR_NONFINITE;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found),
                     GNOMON_ERROR_NONFINITE);
    says(gnomon_last_error(ctx), "the test device gives status");
    base[0] = GNOMON_ERROR_CANCELLED;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found),
                     GNOMON_ERROR_CANCELLED);
    qs.rows = 3;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "test declined: the test device takes two queries, no more");
    sets_go_there(ctx);
    gnomon_context_destroy(ctx);

    base[0] = 0;
    o.device = "auto";
    o.progress = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "queries lies in a device's memory, and the device did not take");
    qs.memory = GNOMON_HOST;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "base lies in a device's memory, and the device did not take");
    bs.memory = GNOMON_HOST;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
    gnomon_neighbors_free(ctx, &found);
    qs.rows = 2;
    bs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_neighbors_exact(ctx, &bs, &qs, &options, &found), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    gnomon_neighbors_free(ctx, &found);
    assert_int_equal(gnomon_search_create(ctx, &qs, &options, &search), GNOMON_OK);
    bs.memory = GNOMON_HOST;
    assert_int_equal(gnomon_search_add(search, &bs), GNOMON_OK);
    bs.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_search_add(search, &bs), GNOMON_ERROR_DEVICE);
    gnomon_search_destroy(search);
    gnomon_context_destroy(ctx);
}

/* What a device asks of the core for sparse rows, and for rows that are read once. */
static void sparse_rows_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx, *cpu;
    o.device = "cuda";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &cpu), GNOMON_OK);
    const int64_t offsets[] = {0, 2, 2, 3, 5}, indices[] = {0, 4, 2, 1, 3};
    const float values[] = {1, -2, 3, 4, 5};
    const gnomon_csr a = {4, 5, offsets, indices, values, GNOMON_F32};
    const gnomon_kind kinds[] = {GNOMON_GAUSSIAN, GNOMON_SJLT, GNOMON_SRHT, GNOMON_VERY_SPARSE};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        float sketch[4 * 3];
        const gnomon_matrix y = gnomon_matrix_rowmajor(sketch, GNOMON_F32, 4, 3);
        gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
        gnomon_svd svd = {.struct_size = sizeof svd};
        gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
        gnomon_operator *op;
        d.kind = kinds[kind];
        options.descriptor = &d;
        options.rank = 3;
        options.oversample = 0;
        options.single_pass = kind % 2 == 1;
        options.test_vectors = 4;
        assert_int_equal(gnomon_svd_csr(ctx, &a, &options, &svd), GNOMON_OK);
        assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
        assert_int_equal(svd.passes, options.single_pass ? 1 : 2);
        assert_int_equal(gnomon_operator_create(cpu, &svd.descriptor, &op), GNOMON_OK);
        assert_int_equal(gnomon_sketch_csr(cpu, op, &a, &y, NULL), GNOMON_OK);
        for (int i = 0; i < 4 * 3; i++) /* of the rows times 2^-1 */
            assert_true(2 * ((float *)svd.u.data)[i] == sketch[i]);
        assert_true(svd.residual_bound > 6 && svd.norm > 6);
        if (options.single_pass) assert_true(fabs(svd.spectral_estimate - 6) < 1e-12);
        gnomon_operator_destroy(op);
        gnomon_svd_free(ctx, &svd);
    }
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(cpu);
}

/* A device is handed the means of what lies on the host, and room for those of what lies there; it
 * is not asked for sparse rows of which little is left in single precision, nor for rows that are
 * read once. */
static void means_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx, *cpu;
    o.device = "cpu";
    assert_int_equal(gnomon_context_create(&o, &cpu), GNOMON_OK);
    o.device = "cuda";
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    float a[8 * 6] = {0};
    for (int i = 6; i < 8 * 6; i++)
        a[i] = (float)(i / 6);
    gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 8, 6);
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    options.rank = 3;
    options.center = 1;
    for (int there = 0; there < 2; there++) {
        as.memory = there ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
        assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_OK);
        assert_true(svd.centered && svd.mean[0] == (there ? 2 : 3.5) && svd.mean[5] == svd.mean[0]);
        assert_true(svd.norm == 2 * svd.mean[5]);
        gnomon_svd_free(ctx, &svd);
    }
    as.memory = GNOMON_HOST;
    a[17] = (float)NAN;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_NONFINITE);
    says(gnomon_last_error(ctx), "row 2, column 5");

    const int64_t offsets[] = {0, 3, 6, 9, 12}, indices[] = {0, 1, 4, 0, 1, 4, 0, 1, 4, 0, 1, 4};
    float values[] = {1, -2, 3, 4, 5, -6, 7, -8, 9, 10, 11, -12}, sketch[4 * 3];
    const gnomon_csr rows = {4, 5, offsets, indices, values, GNOMON_F32};
    options.oversample = 0;
    options.test_vectors = 4;
    assert_int_equal(gnomon_svd_csr(ctx, &rows, &options, &svd), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_true(svd.mean[0] == 5.5 && svd.mean[1] == 1.5 && svd.mean[2] == 0);
    float dense[4 * 5] = {0};
    for (int e = 0; e < 12; e++)
        dense[e / 3 * 5 + indices[e]] = values[e];
    for (int i = 0; i < 4 * 5; i++)
        dense[i] -= (float)svd.mean[i % 5];
    const gnomon_matrix centred = gnomon_matrix_rowmajor(dense, GNOMON_F32, 4, 5);
    const gnomon_matrix y = gnomon_matrix_rowmajor(sketch, GNOMON_F32, 4, 3);
    gnomon_operator *op;
    assert_int_equal(gnomon_operator_create(cpu, &svd.descriptor, &op), GNOMON_OK);
    assert_int_equal(gnomon_sketch(cpu, op, &centred, &y, NULL), GNOMON_OK);
    for (int i = 0; i < 4 * 3; i++) /* of the rows times 2^-1 */
        assert_true(fabsf(2 * ((float *)svd.u.data)[i] - sketch[i]) < 1e-4F);
    gnomon_operator_destroy(op);
    gnomon_svd_free(ctx, &svd);
    for (int e = 0; e < 12; e++)
        values[e] += 1000;
    assert_int_equal(gnomon_svd_csr(ctx, &rows, &options, &svd), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "takes sums in fp64");
    options.dtype = GNOMON_F64;
    assert_int_equal(gnomon_svd_csr(ctx, &rows, &options, &svd), GNOMON_OK);
    gnomon_svd_free(ctx, &svd);
    gnomon_context_destroy(ctx);
    gnomon_context_destroy(cpu);
}

/* And a factorisation: what the device leaves becomes the result, scaled back. */
static void factorisations_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int64_t reported = 0;
    o.device = "cuda";
    o.progress = stop;
    o.progress_user = &reported;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    float a[8 * 6] = {0}, left[8 * 4], right[4 * 6];
    gnomon_matrix as = gnomon_matrix_rowmajor(a, GNOMON_F32, 8, 6);
    gnomon_matrix u = gnomon_matrix_rowmajor(left, GNOMON_F32, 8, 4);
    const gnomon_matrix vt = gnomon_matrix_rowmajor(right, GNOMON_F32, 4, 6);
    gnomon_svd svd = {.struct_size = sizeof svd};
    gnomon_svd_options options = GNOMON_SVD_OPTIONS_INIT;
    options.rank = 3;
    options.oversample = 2;
    options.measure = 1;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_true(svd.rank == 3 && svd.columns == 5 && svd.passes == 11);
    assert_true(svd.s[0] == 10 && svd.s[2] == 6 && svd.norm == 20 && svd.residual == 14);
    assert_true(svd.cholesky == 4 && svd.householder == 5 && svd.project_seconds == 6);
    assert_true(svd.residual_estimate == 6 && svd.residual_bound > 6);
    assert_true(fabs(svd.spectral_estimate - 6) < 1e-12); /* the root of 3 * 9 */
    assert_true(svd.u.rows == 8 && svd.u.cols == 3 && ((float *)svd.u.data)[23] == 1);
    assert_true(svd.vt.rows == 3 && svd.vt.cols == 6 && ((float *)svd.vt.data)[17] == 2);
    gnomon_svd_free(ctx, &svd);

    for (int i = 0; i < 8 * 4; i++)
        left[i] = 7;
    options.u = &u;
    options.vt = &vt;
    options.test_vectors = 0;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_OK);
    assert_true(svd.u.data == left && svd.vt.data == right);
    assert_true(left[2] == 1 && left[3] == 7 && left[30] == 1 && left[31] == 7 && right[17] == 2);
    assert_true(isnan(svd.residual_estimate));
    gnomon_svd_free(ctx, &svd);
    u.cols = 2;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_SHAPE);
    says(gnomon_last_error(ctx), "options.u is 8 x 2; 8 x 3 may be needed");
    u.cols = 4;
    u.dtype = GNOMON_F64;
    u.row_stride = 2;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_ARGUMENT);
    options.u = options.vt = NULL;

    a[0] = GNOMON_ERROR_MEMORY;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_MEMORY);
    says(gnomon_last_error(ctx), "test: the test device gives status 70");
    a[0] = GNOMON_ERROR_NONFINITE;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_NONFINITE);
    assert_string_equal(gnomon_last_error(ctx), "the test device gives status 31");
    a[0] = GNOMON_ERROR_CANCELLED;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_CANCELLED);
    a[0] = GNOMON_OK;
    options.rank = 2;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx), "test declined: the test device takes rank 3 only");
    assert_null(svd.s);
    gnomon_context_destroy(ctx);

    /* Under auto only what is large goes there, or lies there. */
    o.device = "auto";
    o.progress = NULL;
    options.rank = 3;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    if (gnomon_svd_missing() == NULL) {
        assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_OK);
        assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
        assert_true(svd.norm == 0);
        gnomon_svd_free(ctx, &svd);
    }
    as.memory = GNOMON_DEVICE_MEMORY;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    gnomon_svd_free(ctx, &svd);
    options.rank = 2;
    assert_int_equal(gnomon_svd_dense(ctx, &as, &options, &svd), GNOMON_ERROR_DEVICE);
    assert_string_equal(gnomon_last_error(ctx),
                        "a lies in a device's memory, and the device did not take the job: the "
                        "test device takes rank 3 only");
    gnomon_context_destroy(ctx);
}

/* And a tensor: its modes in the order of falling strides, an operator for each that is projected.
 */
static void tensors_go_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    int64_t reported = 0;
    o.device = "cuda";
    o.progress = stop;
    o.progress_user = &reported;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    float a[7 * 12 * 9] = {0};
    const int64_t size[] = {7, 12, 9}, ranks[] = {3, 4, 9};
    gnomon_tensor x = gnomon_tensor_packed(a, GNOMON_F32, 3, size, 1);
    gnomon_hosvd h = {.struct_size = sizeof h};
    gnomon_hosvd_options options = GNOMON_HOSVD_OPTIONS_INIT;
    options.ranks = ranks;
    options.rank_count = 3;
    options.oversample = 2;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_OK);
    assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
    assert_true(h.modes == 3 && h.passes == 11 && h.cholesky == 4 && h.shrink_seconds == 6);
    assert_true(h.norm == 20 && h.residual == 6 && h.residual_by == GNOMON_RESIDUAL_MEASURED);
    /* inside, mode 2 is the outermost, and all of it is kept; the last one's gain is greater */
    assert_true(h.householder == 2 && h.order[0] == 0 && h.order[1] == 2 && h.order[2] == 1);
    assert_true(h.columns[0] == 5 && h.columns[1] == 6 && h.columns[2] == 0);
    const float *q[3] = {h.factor[0].data, h.factor[1].data, h.factor[2].data};
    assert_true(q[0][0] == 5 && q[0][1] == 108 && q[0][20] == 3);
    assert_true(q[1][0] == 6 && q[1][1] == 63 && q[1][47] == 2);
    assert_true(q[2][0] == 1 && q[2][80] == 1);
    assert_true(h.values[0][0] == 6 && h.values[1][3] == 2 && h.values[2][0] == 18);
    /* core element (i, j, k) is number (k * 4 + j) * 3 + i of theirs */
    const float *core = h.core.data;
    assert_true(core[0] == 0 && core[1] == 12 && core[9] == 3 && core[36] == 1);
    assert_true(core[2 * 36 + 3 * 9 + 8] == 107);
    gnomon_hosvd_free(ctx, &h);

    options.sequential = 1; /* the others' sizes are what is left */
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_OK);
    assert_true(((float *)h.factor[1].data)[1] == 27);
    gnomon_hosvd_free(ctx, &h);

    a[0] = GNOMON_ERROR_MEMORY;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_MEMORY);
    says(gnomon_last_error(ctx), "test: the test device gives status 70");
    a[0] = GNOMON_ERROR_NONFINITE;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_NONFINITE);
    says(gnomon_last_error(ctx), "element (3, 2, 0)");
    a[0] = GNOMON_ERROR_CANCELLED;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_CANCELLED);
    a[0] = GNOMON_OK;
    x.stride[0] = -1;
    x.data = a + 6;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "test declined: the elements lie in memory in no order");
    x = gnomon_tensor_packed(a, GNOMON_F32, 2, size, 0);
    options.rank_count = 2;
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "test declined: the test device takes three modes only");
    assert_null(h.core.data);
    x.memory = GNOMON_DEVICE_MEMORY;
    gnomon_context_destroy(ctx);

    /* Under auto only what is large goes there, or lies there. */
    o.device = "auto";
    o.progress = NULL;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_ERROR_DEVICE);
    says(gnomon_last_error(ctx), "x lies in a device's memory");
    x.memory = GNOMON_HOST;
    if (gnomon_svd_missing() == NULL) {
        assert_int_equal(gnomon_hosvd_dense(ctx, &x, &options, &h), GNOMON_OK);
        assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_CPU);
        gnomon_hosvd_free(ctx, &h);
    }
    gnomon_context_destroy(ctx);
}

/* Hashing: values, the tables of an index's first points, the keys of later ones. */
static void hashing_goes_there(void **state)
{
    (void)state;
    setenv("GNOMON_PLUGIN_DIR", PLUGINS "/good", 1);
    float x[4 * 2] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t v[4 * 4] = {0};
    gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, 4, 2);
    for (int named = 0; named < 2; named++) {
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        const bool must = named;
        o.device = named ? "cuda" : "auto";
        gnomon_context *ctx;
        assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
        gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
        gnomon_hasher *three, *four;
        f.family = GNOMON_LSH_PSTABLE;
        f.dim = 2;
        f.width = 1;
        f.count = 3;
        assert_int_equal(gnomon_hasher_create(ctx, &f, &three), GNOMON_OK);
        f.count = 4;
        assert_int_equal(gnomon_hasher_create(ctx, &f, &four), GNOMON_OK);
        gnomon_matrix values = gnomon_matrix_rowmajor(v, GNOMON_I32, 4, 3);
        assert_int_equal(gnomon_hasher_apply(ctx, three, &points, &values), GNOMON_OK);
        assert_true(v[0] == 77 && v[1] == !must);
        assert_int_equal(gnomon_context_worked_on(ctx), GNOMON_DEVICE_PLUGIN);
        x[0] = GNOMON_ERROR_NONFINITE;
        assert_int_equal(gnomon_hasher_apply(ctx, three, &points, &values), GNOMON_ERROR_NONFINITE);
        says(gnomon_last_error(ctx), "the test device gives status");
        x[0] = 0;
        values.cols = values.row_stride = 4;
        assert_int_equal(gnomon_hasher_apply(ctx, four, &points, &values),
                         must ? GNOMON_ERROR_DEVICE : GNOMON_OK);
        if (must) says(gnomon_last_error(ctx), "test declined: the test device takes three");
        values.memory = GNOMON_DEVICE_MEMORY;
        assert_int_equal(gnomon_hasher_apply(ctx, four, &points, &values), GNOMON_ERROR_DEVICE);
        gnomon_hasher_destroy(four);
        gnomon_hasher_destroy(three);

        gnomon_lsh_options options = GNOMON_LSH_OPTIONS_INIT;
        gnomon_lsh_info info = {.struct_size = sizeof info};
        gnomon_lsh *index;
        f.count = 0;
        options.functions = f;
        options.tables = 1;
        options.coarse = 3;
        assert_int_equal(gnomon_lsh_create(ctx, &options, &index), GNOMON_OK);
        x[0] = GNOMON_ERROR_DEVICE;
        assert_int_equal(gnomon_lsh_add(index, &points), GNOMON_ERROR_DEVICE);
        x[0] = 0;
        for (int64_t times = 1; times <= 2; times++) {
            assert_int_equal(gnomon_lsh_add(index, &points), GNOMON_OK);
            gnomon_lsh_describe(index, &info);
            assert_true(info.points == 4 * times && info.buckets == 1 && info.largest == 4 * times);
        }
        gnomon_lsh_destroy(index);
        gnomon_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(named_folder, clear, clear),
        cmocka_unit_test_setup_teardown(jobs_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(products_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(means_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(factorisations_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(sparse_rows_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(sparse_points_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(tensors_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(searches_go_there, clear, clear),
        cmocka_unit_test_setup_teardown(hashing_goes_there, clear, clear),
        cmocka_unit_test_setup_teardown(never_the_current_folder, clear, clear),
        cmocka_unit_test_setup_teardown(not_a_library, clear, clear),
        cmocka_unit_test_setup_teardown(specs, clear, clear),
        cmocka_unit_test_setup_teardown(two_plugins, clear, clear),
        cmocka_unit_test_setup_teardown(after_fork, clear, clear),
        cmocka_unit_test_setup_teardown(beside_the_library, clear, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
