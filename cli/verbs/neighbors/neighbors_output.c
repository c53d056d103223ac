/* Answers to files, and against known ones. */
#include "verbs/neighbors/neighbors.h"

#include <stdlib.h>
#include <string.h>

static int ends_with(const char *path, const char *ending)
{
    const size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

static const char *format_of(const cli_neighbors *n)
{
    const char *format = gnomon_format_for(n->output, n->format, NULL);
    return format != NULL ? format : "";
}

static int is_format(const cli_neighbors *n, const char *name)
{
    return strcmp(format_of(n), name) == 0;
}

static int is_text(const cli_neighbors *n)
{
    return cli_format_is(format_of(n), 0, GNOMON_TAKES_DELIMITER);
}

/* Whether the format takes ids and distances together. */
static int holds_both(const cli_neighbors *n)
{
    return is_format(n, "npz") || is_format(n, "hdf5") || is_text(n);
}

void cli_answer_table(cli_neighbors *n, cli_option table[CLI_ANSWER_OPTIONS])
{
    const cli_option options[CLI_ANSWER_OPTIONS] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &n->output,
         .value = "OUT",
         .help = "an .npz (ids, distances; with --radius offsets too), .h5 (neighbors, distances), "
                 ".csv (a line of names, then query, id, distance), or ids alone (.npy, .ivecs); - "
                 "is standard output, where .csv goes without -o, unless --json or --ground-truth "
                 "is given"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &n->format,
         .flag = 1,
         .value = "FORMAT",
         .help = "otherwise by OUT's ending, which must be a format's; npy without one"},
        {.name = "distances",
         .type = CLI_TEXT,
         .target = &n->distances,
         .value = "OUT",
         .help = "with ids alone: a file for the distances, such as .npy or .fvecs"},
        {.name = "names",
         .type = CLI_TEXT,
         .target = &n->names_path,
         .value = "FILE",
         .help = "names of the points, one per line, for an additional column of .csv and .tsv"},
        {.name = "query-names",
         .type = CLI_TEXT,
         .target = &n->query_names_path,
         .value = "FILE",
         .help = "names of the queries"},
        {.name = "ground-truth",
         .type = CLI_TEXT,
         .target = &n->truth,
         .value = "FILE",
         .help = "true ids (queries x K or more, nearest first): report the recall"},
    };
    memcpy(table, options, sizeof options);
}

int cli_neighbors_check_output(cli_neighbors *n)
{
    cli_app *app = n->app;
    const char *const inputs[] = {n->base_path, n->queries_path, n->filter,
                                  n->truth,     n->names_path,   n->query_names_path};
    if (n->distances != NULL && n->output == NULL) return cli_usage(app, "--distances requires -o");
    /* without a place to go the answers are printed, unless figures alone are asked for */
    if (n->output == NULL && n->truth == NULL && !app->json) {
        n->output = "-";
        if (n->format == NULL) n->format = "csv";
    }
    if (n->format != NULL && n->output == NULL)
        return cli_usage(app, "--output-format requires -o");
    if (n->output == NULL && (n->names_path != NULL || n->query_names_path != NULL))
        return cli_usage(app, "%s requires -o",
                         n->names_path != NULL ? "--names" : "--query-names");
    if (n->output == NULL) return -1;
    const char *format, *other;
    int code = cli_output_is(app, "-o", n->output, n->format, GNOMON_HOLDS_DENSE, &format);
    if (code >= 0) return code;
    if (n->options.k == 0 && !is_format(n, "npz") && !is_text(n))
        return cli_usage(app,
                         "-o %s: answers within a radius differ in number: use .npz, .csv or .tsv",
                         n->output);
    if ((n->names_path != NULL || n->query_names_path != NULL) && !is_text(n))
        return cli_usage(app, "%s requires csv or tsv, not %s",
                         n->names_path != NULL ? "--names" : "--query-names", format);
    if (n->distances != NULL && holds_both(n))
        return cli_usage(app, "--distances requires an output of ids alone; %s holds both",
                         n->output);
    if (n->distances != NULL && strcmp(n->distances, "-") != 0 &&
        (strcmp(n->distances, n->output) == 0 || gnomon_same_file(n->distances, n->output)))
        return cli_usage(app, "--distances %s: is also the output", n->distances);
    if (n->distances != NULL && strcmp(n->distances, "-") == 0 && strcmp(n->output, "-") == 0)
        return cli_usage(app, "-o and --distances can't both be standard output");
    code = cli_check_output(app, n->output, format, inputs, 6);
    if (code < 0 && n->distances != NULL)
        code = cli_output_is(app, "--distances", n->distances, NULL, GNOMON_HOLDS_DENSE, &other);
    if (code < 0 && n->distances != NULL)
        code = cli_check_output(app, n->distances, other, inputs, 6);
    return code;
}

int cli_neighbors_read_names(cli_neighbors *n, int64_t points, int64_t queries)
{
    int code = -1;
    if (n->names_path != NULL) code = cli_names_read(n->app, n->names_path, &n->names);
    if (code < 0 && n->query_names_path != NULL)
        code = cli_names_read(n->app, n->query_names_path, &n->query_names);
    return code < 0 ? cli_neighbors_check_names(n, points, queries) : code;
}

int cli_neighbors_check_names(const cli_neighbors *n, int64_t points, int64_t queries)
{
    const int code =
        cli_names_check(n->app, "--names", n->names_path, n->base_path, points, &n->names);
    if (code >= 0) return code;
    return cli_names_check(n->app, "--query-names", n->query_names_path, n->queries_path, queries,
                           &n->query_names);
}

/* Writes a matrix of ids or distances. */
static gnomon_status write_matrix(cli_app *app, const char *path, const char *format,
                                  gnomon_dtype stored, const gnomon_matrix *matrix)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    gnomon_writer *writer = NULL;
    options.format = format;
    gnomon_status status =
        gnomon_writer_open(app->ctx, path, matrix->rows, matrix->cols, stored, &options, &writer);
    if (status != GNOMON_OK) return status;
    status = gnomon_writer_rows(writer, matrix);
    if (status == GNOMON_OK) return gnomon_writer_finish(writer);
    gnomon_writer_abort(writer);
    return status;
}

/* For formats that have 32 bits an id, as .ivecs. */
static int write_i32(cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    const int64_t count = a->offsets[a->queries];
    if (a->base > INT32_MAX)
        return cli_fail(n->app, CLI_EXIT_USAGE, "-o %s: ids up to %lld do not fit 32 bits",
                        n->output, (long long)a->base);
    int32_t *i32 = malloc(cli_bytes(count, sizeof *i32));
    if (i32 == NULL) return cli_fail(n->app, CLI_EXIT_MEMORY, "out of memory for ids");
    for (int64_t i = 0; i < count; i++)
        i32[i] = (int32_t)a->ids[i];
    const gnomon_matrix ids = gnomon_matrix_rowmajor(i32, GNOMON_I32, a->queries, a->k);
    const gnomon_status status = write_matrix(n->app, n->output, n->format, GNOMON_I32, &ids);
    free(i32);
    return status == GNOMON_OK ? -1 : cli_fail_status(n->app, status);
}

/* Lines of query, id and distance. */
static gnomon_status write_lines(cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    const char *columns[5] = {"query", "id", "distance"};
    int count = 3;
    if (n->query_names_path != NULL) columns[count++] = "query_name";
    if (n->names_path != NULL) columns[count++] = "name";
    gnomon_table *table = NULL;
    gnomon_status status =
        gnomon_table_open(n->app->ctx, n->output, n->format, columns, count, &table);
    for (int64_t q = 0; q < a->queries && status == GNOMON_OK; q++) {
        for (int64_t i = a->offsets[q]; i < a->offsets[q + 1] && status == GNOMON_OK; i++) {
            status = gnomon_table_integer(table, q);
            if (status == GNOMON_OK) status = gnomon_table_integer(table, a->ids[i]);
            if (status == GNOMON_OK) status = gnomon_table_real(table, a->distances[i]);
            if (status == GNOMON_OK && n->query_names_path != NULL)
                status = gnomon_table_text(table, n->query_names.name[q]);
            if (status == GNOMON_OK && n->names_path != NULL)
                status = gnomon_table_text(table, n->names.name[a->ids[i]]);
        }
    }
    if (status == GNOMON_OK) return gnomon_table_finish(table);
    gnomon_table_abort(table);
    return status;
}

static gnomon_status write_arrays(cli_neighbors *n)
{
    cli_answers *a = &n->answers;
    const int64_t count = a->offsets[a->queries];
    const int vector = a->k == 0, hdf5 = is_format(n, "hdf5");
    const int64_t rows = vector ? 1 : a->queries, cols = vector ? count : a->k;
    const gnomon_named_array arrays[] = {
        {hdf5 ? "neighbors" : "ids", gnomon_matrix_rowmajor(a->ids, GNOMON_I64, rows, cols),
         vector},
        {"distances", gnomon_matrix_rowmajor(a->distances, GNOMON_F64, rows, cols), vector},
        {"offsets", gnomon_matrix_rowmajor(a->offsets, GNOMON_I64, 1, a->queries + 1), 1},
    };
    return hdf5 ? gnomon_write_hdf5(n->app->ctx, n->output, arrays, 2)
                : gnomon_write_npz(n->app->ctx, n->output, arrays, vector ? 3 : 2);
}

int cli_neighbors_write(cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    gnomon_status status;
    if (is_format(n, "npz") || is_format(n, "hdf5")) {
        status = write_arrays(n);
    } else if (is_text(n)) {
        const int code = cli_neighbors_check_names(n, a->base, a->queries);
        if (code >= 0) return code;
        status = write_lines(n);
    } else if (cli_format_type(format_of(n), GNOMON_I64, GNOMON_I32) == GNOMON_I32) {
        const int code = write_i32(n);
        if (code >= 0) return code;
        status = GNOMON_OK;
    } else {
        const gnomon_matrix ids = gnomon_matrix_rowmajor(a->ids, GNOMON_I64, a->queries, a->k);
        status = write_matrix(n->app, n->output, n->format, GNOMON_I64, &ids);
    }
    if (status == GNOMON_OK && n->distances != NULL) {
        const gnomon_matrix distances =
            gnomon_matrix_rowmajor(a->distances, GNOMON_F64, a->queries, a->k);
        const char *format = gnomon_format_for(n->distances, NULL, NULL);
        status = write_matrix(n->app, n->distances, NULL,
                              cli_format_type(format, GNOMON_F64, GNOMON_F32), &distances);
    }
    return status == GNOMON_OK ? -1 : cli_fail_status(n->app, status);
}

/* ---- recall ---- */

/* The path with the member that holds ids, where none is named; free() it. */
static char *truth_path(const char *path)
{
    const char *member = "";
    if (ends_with(path, ".npz")) member = ":ids";
    if (ends_with(path, ".h5") || ends_with(path, ".hdf5")) member = ":neighbors";
    char *whole = malloc(strlen(path) + strlen(member) + 1);
    if (whole != NULL) strcat(strcpy(whole, path), member);
    return whole;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

int cli_neighbors_recall(cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    cli_app *app = n->app;
    cli_points p;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES, found = 0;
    char *path = truth_path(n->truth);
    if (path == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for a path");
    memset(&p, 0, sizeof p);
    p.wanted = GNOMON_F64; /* ids are below 2^53 */
    int code = cli_points_load(app, path, NULL, 0, &p, &budget);
    if (code < 0 && (p.dense.rows != a->queries || p.dense.cols < a->k))
        code =
            cli_fail(app, CLI_EXIT_DATA,
                     "%s holds %lld x %lld ids; %lld queries with %lld neighbours or more are due",
                     path, (long long)p.dense.rows, (long long)p.dense.cols, (long long)a->queries,
                     (long long)a->k);
    for (int64_t q = 0; q < a->queries && code < 0; q++) {
        double *truth = (double *)p.data + q * p.dense.cols;
        qsort(truth, (size_t)a->k, sizeof *truth, by_value);
        for (int64_t i = 0; i < a->k; i++) {
            const double id = (double)a->ids[q * a->k + i];
            found += bsearch(&id, truth, (size_t)a->k, sizeof *truth, by_value) != NULL;
        }
    }
    if (code < 0)
        n->recall = a->queries > 0 ? (double)found / ((double)a->queries * (double)a->k) : 1;
    cli_points_drop(&p);
    free(path);
    return code;
}
