/* gnomon info: what is in a file, or what this build and machine offer. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct request {
    cli_input_options input;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **file, int *count)
{
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Input", input_table), CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "[FILE] [--json]",
        .about =
            "Describes the points in a file: format, shape, element type, order, members. Without "
            "a file: the version, the instruction set, threads and devices, the OpenBLAS that "
            "gnomon svd, hosvd and lstsq use, the file formats, and which of them need a library "
            "that is not installed.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "What is in a file\n"
                    "gnomon info points.npy\n"
                    "Raw numbers, whose count follows from the file's size\n"
                    "gnomon info points.raw --shape ?,784 --dtype f4\n"
                    "The library and this machine, for a program to read\n"
                    "gnomon info --json\n",
        .max_operands = 1,
    };
    return cli_parse(&verb, argc, argv, file, count);
}

/* What was found of all plugins: their NAMEs, and the devices of each by index, with the plugin's
 * NAME beside them. Each context takes one device of a plugin into use. */
typedef struct devices {
    json_t *kinds, *names, *addresses;
    char *reason;
} devices;

static void list_kind(devices *d, const char *kind)
{
    enum { MOST = 64 };
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    options.threads = 1;
    for (int i = 0; i < MOST; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%s:%d", kind, i);
        options.device = name;
        if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return;
        json_array_append_new(d->names, json_string(gnomon_context_device_name(ctx)));
        json_array_append_new(d->addresses, json_string(name));
        gnomon_context_destroy(ctx);
    }
}

static devices list_devices(void)
{
    devices d = {json_array(), json_array(), json_array(), NULL};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    const char *kind;
    options.threads = 1;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK) return d;
    d.reason = strdup(gnomon_context_device_reason(ctx)); /* looks for them */
    for (int i = 0; (kind = gnomon_context_device_found(ctx, i)) != NULL; ++i) {
        json_array_append_new(d.kinds, json_string(kind));
        list_kind(&d, kind);
    }
    gnomon_context_destroy(ctx);
    return d;
}

static void free_devices(devices *d)
{
    json_decref(d->kinds);
    json_decref(d->names);
    json_decref(d->addresses);
    free(d->reason);
}

static int machine_words(cli_app *app)
{
    gnomon_format_info format;
    devices d = list_devices();
    printf("gnomon %s\n", gnomon_version());
    printf("instruction set  %s\n", gnomon_context_isa(app->ctx));
    printf("threads          %d\n", gnomon_context_threads(app->ctx));
    printf("devices          cpu");
    for (size_t i = 0; i < json_array_size(d.kinds); ++i)
        printf(", %s", json_string_value(json_array_get(d.kinds, i)));
    putchar('\n');
    printf("plugins          %s\n", d.reason != NULL ? d.reason : "");
    for (size_t i = 0; i < json_array_size(d.names); ++i)
        printf("%-16s %s\n", json_string_value(json_array_get(d.addresses, i)),
               json_string_value(json_array_get(d.names, i)));
    free_devices(&d);
    printf("svd              %s\n",
           gnomon_svd_missing() != NULL ? gnomon_svd_missing() : gnomon_svd_blas());
    printf("operator         specification version %d\n", GNOMON_OPERATOR_VERSION);
    for (int i = 0; cli_format_info(i, &format); ++i) {
        const char *missing = gnomon_format_missing(format.name);
        printf("%-16s %-12s %-22s %s%s\n", i == 0 ? "formats" : "", format.name, format.endings,
               format.about, format.writes != 0 ? "" : " (read only)");
        if (missing != NULL) printf("%-29s missing: %s\n", "", missing);
    }
    return cli_flush_output(app->verb);
}

static int machine_json(cli_app *app)
{
    json_t *formats = json_array(), *out = json_object();
    gnomon_format_info format;
    devices d = list_devices();
    json_t *kinds = json_pack("[s]", "cpu");
    for (int i = 0; cli_format_info(i, &format); ++i) {
        const char *missing = gnomon_format_missing(format.name);
        json_array_append_new(
            formats, json_pack("{s:s, s:b, s:b, s:s, s:s, s:s, s:b, s:b, s:b, s:s*}", "format",
                               format.name, "reads", 1, "writes", format.writes != 0, "about",
                               format.about, "endings", format.endings, "member", format.member,
                               "sparse", (format.holds & GNOMON_HOLDS_SPARSE) != 0, "tensors",
                               (format.holds & GNOMON_HOLDS_TENSOR) != 0, "text",
                               (format.holds & GNOMON_HOLDS_TEXT) != 0, "missing", missing));
    }
    json_array_extend(kinds, d.kinds);
    json_object_set_new(out, "devices", kinds);
    json_object_set_new(out, "device_reason", json_string(d.reason != NULL ? d.reason : ""));
    json_object_set(out, "gpus", d.names);
    free_devices(&d);
    json_object_set_new(out, "svd", json_boolean(gnomon_svd_missing() == NULL));
    if (gnomon_svd_missing() != NULL)
        json_object_set_new(out, "svd_reason", json_string(gnomon_svd_missing()));
    json_object_set_new(out, "blas", json_string(gnomon_svd_blas()));
    if (gnomon_unicode_version() != NULL)
        json_object_set_new(out, "unicode", json_string(gnomon_unicode_version()));
    json_object_set_new(out, "operator_version", json_integer(GNOMON_OPERATOR_VERSION));
    json_object_set_new(out, "formats", formats);
    return cli_print_report(app, out);
}

/* A line about a name, which may hold anything. */
__attribute__((format(printf, 1, 0))) static void print_name(const char *format, const char *name)
{
    char *shown = cli_escape(name);
    printf(format, shown != NULL ? shown : "?");
    free(shown);
}

static int file_words(cli_app *app, const char *path, const gnomon_data_info *info,
                      const json_t *members, int64_t bytes)
{
    print_name("%s\n", path);
    printf("format      %s\n", info->format);
    if (info->member[0] != '\0') print_name("member      %s\n", info->member);
    if (info->rows >= 0)
        printf("points      %lld\n", (long long)info->rows);
    else
        printf("points      known only at the end\n");
    printf("dimensions  %lld\n", (long long)info->cols);
    if (info->dimensions > 2) {
        printf("shape      ");
        for (int i = 0; i < info->dimensions && i < GNOMON_TENSOR_MODES; ++i)
            printf(" %s%lld", i > 0 ? "x " : "", (long long)info->shape[i]);
        putchar('\n');
    }
    printf("dtype       %s\n", cli_dtype_name(info->dtype));
    if ((info->access & GNOMON_ACCESS_SPARSE) != 0) {
        printf("storage     sparse");
        if (info->nonzeros >= 0) printf(", %lld nonzeros", (long long)info->nonzeros);
        putchar('\n');
    } else {
        printf("storage     dense, %s\n", info->coordinates_contiguous
                                              ? "coordinate by coordinate (Fortran order)"
                                              : "point by point (C order)");
    }
    printf("access      %s%s\n",
           (info->access & GNOMON_ACCESS_SEEK) != 0 ? "any point" : "in order only",
           (info->access & GNOMON_ACCESS_COLUMNS) != 0 ? ", any columns" : "");
    if (bytes >= 0) printf("file size   %lld bytes\n", (long long)bytes);
    for (size_t i = 0; i < json_array_size(members); ++i)
        print_name(i == 0 ? "members     %s\n" : "            %s\n",
                   json_string_value(json_array_get(members, i)));
    return cli_flush_output(app->verb);
}

static int file_json(cli_app *app, const char *path, const gnomon_data_info *info, json_t *members,
                     int64_t bytes)
{
    json_t *shape = json_array();
    for (int i = 0; i < info->dimensions && i < GNOMON_TENSOR_MODES; ++i)
        json_array_append_new(shape, json_integer((json_int_t)info->shape[i]));
    json_t *figures = json_pack(
        "{s:o, s:s, s:o, s:I, s:I, s:o, s:s, s:b, s:I, s:s, s:b, s:b, s:I, s:O}", "file",
        cli_json_name(path), "format", info->format, "member", cli_json_name(info->member),
        "points", (json_int_t)info->rows, "dimensions", (json_int_t)info->cols, "shape", shape,
        "dtype", cli_dtype_name(info->dtype), "sparse", (info->access & GNOMON_ACCESS_SPARSE) != 0,
        "nonzeros", (json_int_t)info->nonzeros, "order", info->coordinates_contiguous ? "F" : "C",
        "seek", (info->access & GNOMON_ACCESS_SEEK) != 0, "columns",
        (info->access & GNOMON_ACCESS_COLUMNS) != 0, "bytes", (json_int_t)bytes, "members",
        members);
    return cli_print_report(app, figures);
}

static void read_member(void *user, const char *name)
{
    json_array_append_new(user, cli_json_name(name));
}

/* *size: of the file that path (less a member) names, -1 when it is no plain file. Returns -1, or
 * an exit code. */
static int file_size(cli_app *app, const char *path, const char *member, int64_t *size)
{
    char *copy = cli_input_file(path, member);
    struct stat state;
    *size = -1;
    if (copy == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for a path");
    if (stat(copy, &state) == 0 && S_ISREG(state.st_mode)) *size = state.st_size;
    free(copy);
    return -1;
}

/* Of a file with several members, each that holds points. */
typedef struct listing {
    cli_app *app;
    json_t *list; /* NULL: words */
} listing;

static void tell_member(void *user, const char *name, const gnomon_data_info *info)
{
    const listing *l = user;
    const char *error = info == NULL ? gnomon_last_error(l->app->ctx) : "";
    if (l->list != NULL) {
        json_array_append_new(
            l->list, info != NULL
                         ? json_pack("{s:o, s:I, s:I, s:s}", "member", cli_json_name(name),
                                     "points", (json_int_t)info->rows, "dimensions",
                                     (json_int_t)info->cols, "dtype", cli_dtype_name(info->dtype))
                         : json_pack("{s:o, s:o}", "member", cli_json_name(name), "error",
                                     cli_json_name(error)));
        return;
    }
    char *shown = cli_escape(name), *why = cli_escape(error);
    if (shown != NULL && info != NULL)
        printf("member      %s: %lld points, %lld dimensions, %s\n", shown, (long long)info->rows,
               (long long)info->cols, cli_dtype_name(info->dtype));
    else if (shown != NULL && why != NULL)
        printf("member      %s: no points (%s)\n", shown, why);
    free(shown);
    free(why);
}

static int tell_members(cli_app *app, const char *path)
{
    listing l = {.app = app, .list = app->json ? json_array() : NULL};
    if (!app->json) print_name("%s\n", path);
    const gnomon_status status = gnomon_file_describe(app->ctx, path, tell_member, &l);
    if (status == GNOMON_OK && app->json)
        return cli_print_report(
            app, json_pack("{s:o, s:o}", "file", cli_json_name(path), "members", l.list));
    json_decref(l.list);
    return status == GNOMON_OK ? cli_flush_output(app->verb) : cli_fail_status(app, status);
}

static int tell_file(cli_app *app, const request *r, const char *path)
{
    gnomon_reader *reader = NULL;
    gnomon_data_info info;
    json_t *members = json_array();
    gnomon_status status = GNOMON_OK;
    if (strcmp(path, "-") != 0 && r->input.format == NULL && !r->input.shape_given)
        status = gnomon_file_members(app->ctx, path, read_member, members);
    int code = status == GNOMON_OK ? -1 : cli_fail_status(app, status);
    if (code < 0 && json_array_size(members) > 1) {
        /* Several members and none named can still be one thing: a sparse matrix in an npz. */
        if (gnomon_reader_open(app->ctx, path, NULL, &reader) == GNOMON_ERROR_ARGUMENT)
            code = tell_members(app, path);
        gnomon_reader_close(reader);
        reader = NULL;
    }
    if (code < 0) code = cli_open_input(app, path, &r->input, &reader, &info);
    int64_t bytes = -1;
    if (code < 0) code = file_size(app, path, info.member, &bytes);
    if (code < 0)
        code = app->json ? file_json(app, path, &info, members, bytes)
                         : file_words(app, path, &info, members, bytes);
    json_decref(members);
    gnomon_reader_close(reader);
    return code;
}

int cli_info(int argc, char **argv)
{
    cli_app app;
    request r;
    const char *file = NULL;
    int count = 0;
    memset(&r, 0, sizeof r);
    cli_init(&app, "info");
    cli_input_init(&r.input);
    int code = parse(&app, &r, argc, argv, &file, &count);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0 && count == 0)
        code = app.json ? machine_json(&app) : machine_words(&app);
    else if (code < 0)
        code = tell_file(&app, &r, file);
    return cli_end(&app, code);
}
