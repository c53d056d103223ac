/* Pairs, counts and clusters to files. */
#include "verbs/join/join.h"

#include <stdlib.h>
#include <string.h>

enum { LINES = 4096 };

static const char *format_of(const char *path, const char *format)
{
    const char *name = gnomon_format_for(path, format, NULL);
    return name != NULL ? name : "";
}

static int is_one_of(const char *format, const char *a, const char *b)
{
    return strcmp(format, a) == 0 || strcmp(format, b) == 0;
}

/* Whether a dense file of this name and format can be written. */
static int check_dense(cli_join *j, const char *option, const char *path, const char *format)
{
    const char *const inputs[] = {j->p_path, j->q_path};
    const char *name;
    const int code = cli_output_is(j->app, option, path, format, GNOMON_HOLDS_DENSE, &name);
    if (code >= 0) return code;
    return cli_check_output(j->app, path, name, inputs, j->q_path != NULL ? 2 : 1);
}

static int is_text(const char *format)
{
    return cli_format_is(format, 0, GNOMON_TAKES_DELIMITER);
}

const cli_names *cli_join_p_names(const cli_join *j)
{
    if (j->p_names_path != NULL) return &j->p_names;
    return j->text == CLI_TEXT_FILES ? &j->texts.names : NULL;
}

const cli_names *cli_join_q_names(const cli_join *j)
{
    if (j->q_path == NULL) return cli_join_p_names(j);
    return j->q_names_path != NULL ? &j->q_names : NULL;
}

/* No two of the files that are written are one, and what a checkpoint writes is not read. */
static int check_apart(const cli_join *j)
{
    static const char *const endings[] = {"", ".pairs", ".new"};
    const size_t room = j->checkpoint != NULL ? strlen(j->checkpoint) + sizeof ".pairs" : 1;
    char *kept = malloc(cli_bytes((int64_t)room, 3));
    if (kept == NULL) return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for names");
    cli_file files[11] = {{"P", j->p_path, 0},
                          {"Q", j->q_path, 0},
                          {"--names", j->p_names_path, 0},
                          {"--q-names", j->q_names_path, 0},
                          {"-o", j->output, 1},
                          {"--distances", j->distances, 1},
                          {"--counts", j->counts, 1},
                          {"--clusters", j->clusters, 1}};
    for (int i = 0; i < 3 && j->checkpoint != NULL; i++) {
        char *name = kept + (size_t)i * room;
        strcat(strcpy(name, j->checkpoint), endings[i]);
        files[8 + i] = (cli_file){"--checkpoint", name, 1};
    }
    const int code = cli_check_apart(j->app, files, 11);
    free(kept);
    return code;
}

int cli_join_check_output(cli_join *j)
{
    cli_app *app = j->app;
    if (j->distances != NULL && j->output == NULL) return cli_usage(app, "--distances requires -o");
    if (j->format != NULL && j->output == NULL)
        return cli_usage(app, "--output-format requires -o");
    if (j->values == CLI_SIMILARITY && !cli_metric_is(j->options.metric, GNOMON_METRIC_SIMILARITY))
        return cli_usage(app, "--values similarity requires --metric %s, not %s",
                         cli_metrics_that(GNOMON_METRIC_JOINS | GNOMON_METRIC_SIMILARITY).text,
                         gnomon_metric_name(j->options.metric));
    int code = check_apart(j);
    if (code < 0)
        code = cli_check_told(app, j->output != NULL || j->counts != NULL || j->clusters != NULL ||
                                       j->checkpoint != NULL);
    if (code >= 0) return code;
    const char *format = j->output != NULL ? format_of(j->output, j->format) : "";
    const int sparse = is_one_of(format, "npz", "mtx");
    if (j->distances != NULL && (sparse || is_text(format)))
        return cli_usage(app, "--distances requires an output of i and j alone; %s holds both",
                         j->output);
    if (sparse && j->options.top > 0)
        return cli_usage(app,
                         "-o %s: a sparse matrix has its own order, and --top's pairs come closest "
                         "first: use .csv or .npy",
                         j->output);
    if (sparse) {
        const char *const inputs[] = {j->p_path, j->q_path};
        code = cli_check_output(app, j->output, format, inputs, j->q_path != NULL ? 2 : 1);
    } else if (j->output != NULL) {
        code = check_dense(j, "-o", j->output, j->format);
    }
    if (code < 0 && j->distances != NULL) code = check_dense(j, "--distances", j->distances, NULL);
    if (code < 0 && j->counts != NULL) code = check_dense(j, "--counts", j->counts, NULL);
    if (code < 0 && j->clusters != NULL) code = check_dense(j, "--clusters", j->clusters, NULL);
    const char *const tables[] = {j->output, j->counts, j->clusters};
    int text = 0;
    for (int i = 0; i < 3; i++)
        text |= tables[i] != NULL && is_text(format_of(tables[i], i == 0 ? j->format : NULL));
    if (code < 0 && !text && (j->p_names_path != NULL || j->q_names_path != NULL))
        return cli_usage(app, "%s requires csv or tsv for -o, --counts or --clusters",
                         j->p_names_path != NULL ? "--names" : "--q-names");
    return code;
}

/* ---- pairs ---- */

/* The type of ids as stored: whole numbers, of 32 bits where a format has no more. */
static gnomon_dtype id_type(const char *format)
{
    return cli_format_type(format, GNOMON_I64, GNOMON_I32);
}

gnomon_status cli_pairs_open(cli_pairs *out, const cli_join *j, int64_t rows, int64_t cols)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    out->app = j->app;
    out->path = j->output;
    out->format = format_of(j->output, j->format);
    out->rows = rows;
    out->cols = cols;
    out->sparse = is_one_of(out->format, "npz", "mtx");
    options.format = out->format;
    options.sparse = out->sparse;
    out->similar = j->values == CLI_SIMILARITY;
    out->p_names = cli_join_p_names(j);
    out->q_names = cli_join_q_names(j);
    gnomon_context *ctx = j->app->ctx;
    if (is_text(out->format)) {
        const char *columns[5] = {"i", "j", out->similar ? "similarity" : "distance"};
        int count = 3;
        if (out->p_names != NULL) columns[count++] = "i_name";
        if (out->q_names != NULL) columns[count++] = "j_name";
        return gnomon_table_open(ctx, out->path, out->format, columns, count, &out->table);
    }
    if (out->sparse)
        return gnomon_writer_open(ctx, out->path, rows, cols, GNOMON_F64, &options, &out->writer);
    gnomon_status status =
        gnomon_writer_open(ctx, out->path, -1, 2, id_type(out->format), &options, &out->writer);
    if (status != GNOMON_OK || j->distances == NULL) return status;
    gnomon_write_options plain = GNOMON_WRITE_OPTIONS_INIT;
    const gnomon_dtype type =
        cli_format_type(format_of(j->distances, NULL), GNOMON_F64, GNOMON_F32);
    return gnomon_writer_open(ctx, j->distances, -1, 1, type, &plain, &out->distances);
}

static double value_of(const cli_pairs *out, const gnomon_pair *pair)
{
    return out->similar ? 1 - pair->distance : pair->distance;
}

static gnomon_status write_line(cli_pairs *out, const gnomon_pair *pair)
{
    gnomon_status status = gnomon_table_integer(out->table, pair->i);
    if (status == GNOMON_OK) status = gnomon_table_integer(out->table, pair->j);
    if (status == GNOMON_OK) status = gnomon_table_real(out->table, value_of(out, pair));
    if (status == GNOMON_OK && out->p_names != NULL)
        status = gnomon_table_text(out->table, out->p_names->name[pair->i]);
    if (status == GNOMON_OK && out->q_names != NULL)
        status = gnomon_table_text(out->table, out->q_names->name[pair->j]);
    return status;
}

static gnomon_status write_ids(cli_pairs *out, const gnomon_pair *pairs, int64_t count)
{
    const gnomon_dtype type = id_type(out->format);
    union {
        int64_t i64[LINES][2];
        int32_t i32[LINES][2];
        double reals[LINES][2];
    } ids;
    double distances[LINES];
    for (int64_t at = 0; at < count; at++) {
        if (type == GNOMON_I64) {
            ids.i64[at][0] = pairs[at].i;
            ids.i64[at][1] = pairs[at].j;
        } else {
            /* too large an id is an error of the writer's */
            ids.reals[at][0] = (double)pairs[at].i;
            ids.reals[at][1] = (double)pairs[at].j;
        }
        distances[at] = value_of(out, &pairs[at]);
    }
    const gnomon_matrix piece =
        gnomon_matrix_rowmajor(&ids, type == GNOMON_I64 ? GNOMON_I64 : GNOMON_F64, count, 2);
    gnomon_status status = gnomon_writer_rows(out->writer, &piece);
    if (status != GNOMON_OK || out->distances == NULL) return status;
    const gnomon_matrix column = gnomon_matrix_rowmajor(distances, GNOMON_F64, count, 1);
    return gnomon_writer_rows(out->distances, &column);
}

/* Rows [out->row, end) of the sparse matrix, whose pairs are these. */
static gnomon_status write_rows(cli_pairs *out, const gnomon_pair *pairs, int64_t count,
                                int64_t end)
{
    const int64_t rows = end - out->row;
    if (rows <= 0) return GNOMON_OK;
    int64_t *offsets = calloc((size_t)rows + 1, sizeof *offsets);
    int64_t *columns = malloc(cli_bytes(count, sizeof *columns));
    double *distances = malloc(cli_bytes(count, sizeof *distances));
    gnomon_status status = GNOMON_ERROR_MEMORY;
    if (offsets != NULL && columns != NULL && distances != NULL) {
        for (int64_t at = 0; at < count; at++) {
            offsets[pairs[at].i - out->row + 1]++;
            columns[at] = pairs[at].j;
            distances[at] = value_of(out, &pairs[at]);
        }
        for (int64_t row = 0; row < rows; row++)
            offsets[row + 1] += offsets[row];
        const gnomon_csr csr = {rows, out->cols, offsets, columns, distances, GNOMON_F64};
        status = gnomon_writer_csr(out->writer, &csr);
    }
    out->row = end;
    free(offsets);
    free(columns);
    free(distances);
    return status;
}

static gnomon_status add_rows(cli_pairs *out, const gnomon_join_batch *batch)
{
    if (batch->count > out->pending_room - out->pending_count) {
        const int64_t room = (out->pending_count + batch->count) * 3 / 2 + LINES;
        gnomon_pair *grown = realloc(out->pending, cli_bytes(room, sizeof *grown));
        if (grown == NULL) return GNOMON_ERROR_MEMORY;
        out->pending = grown;
        out->pending_room = room;
    }
    if (batch->count > 0)
        memcpy(out->pending + out->pending_count, batch->pairs,
               (size_t)batch->count * sizeof *out->pending);
    out->pending_count += batch->count;
    int64_t complete = out->pending_count;
    while (complete > 0 && out->pending[complete - 1].i >= batch->rows_done)
        complete--;
    const gnomon_status status = write_rows(out, out->pending, complete, batch->rows_done);
    out->pending_count -= complete;
    memmove(out->pending, out->pending + complete,
            (size_t)out->pending_count * sizeof *out->pending);
    return status;
}

gnomon_status cli_pairs_add(cli_pairs *out, const gnomon_join_batch *batch)
{
    gnomon_status status = GNOMON_OK;
    if (out->sparse) return add_rows(out, batch);
    for (int64_t at = 0; out->table != NULL && at < batch->count && status == GNOMON_OK; at++)
        status = write_line(out, &batch->pairs[at]);
    for (int64_t from = 0; out->table == NULL && from < batch->count && status == GNOMON_OK;
         from += LINES) {
        const int64_t some = batch->count - from < LINES ? batch->count - from : LINES;
        status = write_ids(out, batch->pairs + from, some);
    }
    return status;
}

int cli_pairs_are_open(const cli_pairs *out)
{
    return out->writer != NULL || out->table != NULL;
}

gnomon_status cli_pairs_finish(cli_pairs *out)
{
    gnomon_status status = GNOMON_OK;
    gnomon_table *table = out->table;
    out->table = NULL;
    if (table != NULL) return gnomon_table_finish(table);
    if (out->sparse) status = write_rows(out, out->pending, out->pending_count, out->rows);
    gnomon_writer *writer = out->writer;
    if (status == GNOMON_OK && writer != NULL) {
        out->writer = NULL;
        status = gnomon_writer_finish(writer);
    }
    writer = out->distances;
    if (status == GNOMON_OK && writer != NULL) {
        out->distances = NULL;
        status = gnomon_writer_finish(writer);
    }
    return status;
}

void cli_pairs_drop(cli_pairs *out)
{
    gnomon_table_abort(out->table);
    gnomon_writer_abort(out->writer);
    gnomon_writer_abort(out->distances);
    free(out->pending);
    out->table = NULL;
    out->writer = out->distances = NULL;
    out->pending = NULL;
}

/* ---- counts and clusters ---- */

static gnomon_status write_numbers(cli_app *app, const char *path, const int64_t *numbers,
                                   int64_t rows, int64_t cols)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    gnomon_writer *writer = NULL;
    const char *format = format_of(path, NULL);
    const gnomon_dtype stored = id_type(format);
    gnomon_status status =
        gnomon_writer_open(app->ctx, path, rows, cols, stored, &options, &writer);
    double reals[LINES];
    const int64_t step = LINES / cols;
    for (int64_t row = 0; row < rows && status == GNOMON_OK; row += step) {
        const int64_t some = rows - row < step ? rows - row : step;
        for (int64_t at = 0; at < some * cols; at++)
            reals[at] = (double)numbers[row * cols + at];
        const gnomon_matrix piece =
            stored == GNOMON_I64
                ? gnomon_matrix_rowmajor((void *)(numbers + row * cols), GNOMON_I64, some, cols)
                : gnomon_matrix_rowmajor(reals, GNOMON_F64, some, cols);
        status = gnomon_writer_rows(writer, &piece);
    }
    if (status == GNOMON_OK) return gnomon_writer_finish(writer);
    gnomon_writer_abort(writer);
    return status;
}

/* The same as text: lines of an id and its numbers, then the point's name and, where the last
 * number is a point's, that one's. */
static gnomon_status write_table(const cli_join *j, const char *path, const char *const *columns,
                                 const int64_t *numbers, int cols, int last_is_point)
{
    const cli_names *names = cli_join_p_names(j);
    const char *all[5] = {columns[0], columns[1]};
    int count = 1;
    for (; count <= cols; count++)
        all[count] = columns[count];
    if (names != NULL) all[count++] = "name";
    if (names != NULL && last_is_point) all[count++] = "representative_name";
    gnomon_table *table = NULL;
    gnomon_status status =
        gnomon_table_open(j->app->ctx, path, format_of(path, NULL), all, count, &table);
    for (int64_t i = 0; i < j->p_info.rows && status == GNOMON_OK; i++) {
        const int64_t *line = numbers + i * cols;
        status = gnomon_table_integer(table, i);
        for (int at = 0; at < cols && status == GNOMON_OK; at++)
            status = gnomon_table_integer(table, line[at]);
        if (status == GNOMON_OK && names != NULL) status = gnomon_table_text(table, names->name[i]);
        if (status == GNOMON_OK && names != NULL && last_is_point)
            status = gnomon_table_text(table, names->name[line[cols - 1]]);
    }
    if (status == GNOMON_OK) return gnomon_table_finish(table);
    gnomon_table_abort(table);
    return status;
}

static gnomon_status write_points(const cli_join *j, const char *path, const char *const *columns,
                                  const int64_t *numbers, int cols, int last_is_point)
{
    if (is_text(format_of(path, NULL)))
        return write_table(j, path, columns, numbers, cols, last_is_point);
    return write_numbers(j->app, path, numbers, j->p_info.rows, cols);
}

static int write_clusters(cli_join *j)
{
    const int64_t points = j->p_info.rows;
    int64_t *lines = malloc(cli_bytes(points, 4 * sizeof *lines));
    if (lines == NULL) return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for clusters");
    int64_t *labels = lines + 2 * points, *representatives = lines + 3 * points;
    const int64_t count = gnomon_clusters_label(j->groups, labels, representatives);
    for (int64_t i = 0; i < points; i++) {
        lines[2 * i] = labels[i];
        lines[2 * i + 1] = representatives[labels[i]];
    }
    /* the sizes take the labels' place */
    int64_t *sizes = representatives;
    memset(sizes, 0, (size_t)count * sizeof *sizes);
    for (int64_t i = 0; i < points; i++)
        sizes[labels[i]]++;
    for (int64_t c = 0; c < count; c++) {
        if (sizes[c] < 2) continue;
        j->cluster_count++;
        j->clustered += sizes[c];
    }
    static const char *const columns[] = {"id", "cluster", "representative"};
    const gnomon_status status = write_points(j, j->clusters, columns, lines, 2, 1);
    free(lines);
    return status == GNOMON_OK ? -1 : cli_fail_status(j->app, status);
}

int cli_join_write(cli_join *j)
{
    gnomon_status status = GNOMON_OK;
    static const char *const columns[] = {"id", "pairs"};
    if (cli_pairs_are_open(&j->pairs)) status = cli_pairs_finish(&j->pairs);
    if (status == GNOMON_OK && j->counts != NULL)
        status = write_points(j, j->counts, columns, j->point_counts, 1, 0);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    return j->clusters != NULL ? write_clusters(j) : -1;
}
