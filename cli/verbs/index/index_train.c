/* Centres of an index's lists, trained on some points of a file. */
#include "verbs/index/index.h"

#include <math.h>
#include <stdlib.h>

enum { EACH = 32 }; /* points a centre, of gnomon_lsh_train */

typedef struct training {
    cli_app *app;
    const char *path;
    const cli_input_options *input;
    gnomon_reader *reader;
    gnomon_data_info info;
    int64_t at; /* the row that comes next */
} training;

/* One row, behind those that were read before. */
static gnomon_status read_one(void *user, int64_t first, const gnomon_matrix *to)
{
    training *t = user;
    gnomon_status status = GNOMON_OK;
    if (t->at < first && (t->info.access & GNOMON_ACCESS_SEEK) != 0) {
        status = gnomon_reader_seek(t->reader, first);
        t->at = first;
    }
    for (; t->at <= first && status == GNOMON_OK; t->at++) /* others lie before it */
        status = cli_read_rows(t->reader, to);
    return status;
}

/* How many points there are in a file that doesn't tell. */
static int count_rows(const training *t, int64_t row, int64_t *rows)
{
    cli_app *app = t->app;
    gnomon_reader *reader = NULL;
    gnomon_data_info info;
    int code = cli_open_input(app, t->path, t->input, &reader, &info);
    if (code >= 0) return code;
    const int64_t most = 65536 / row > 0 ? 65536 / row : 1;
    void *data = malloc(cli_bytes(most, row));
    if (data == NULL) code = cli_fail(app, CLI_EXIT_MEMORY, "out of memory for points");
    const gnomon_matrix to = gnomon_matrix_rowmajor(data, cli_held_dtype(&info), most, info.cols);
    *rows = 0;
    for (int64_t got = 1; code < 0 && got > 0; *rows += got) {
        got = 0;
        const gnomon_status status = gnomon_reader_next(reader, &to, &got);
        if (status != GNOMON_OK || cli_interrupted())
            code = cli_fail_status(app, status != GNOMON_OK ? status : GNOMON_ERROR_CANCELLED);
    }
    free(data);
    gnomon_reader_close(reader);
    return code;
}

/* How many centres for so many points; their sample must fit in memory. */
static int choose_count(const training *t, const gnomon_join_points *points, double row,
                        int64_t *count)
{
    cli_app *app = t->app;
    const double rows = (double)points->rows;
    if (*count == 0) {
        *count = (int64_t)(sqrt(rows) + 0.5);
        *count = *count < 2 ? 2 : *count > 65536 ? 65536 : *count;
    }
    if (points->rows < *count)
        return cli_fail(app, CLI_EXIT_DATA, "%s: %lld points are too few for %lld centres", t->path,
                        (long long)points->rows, (long long)*count);
    const double sample = rows < EACH * (double)*count ? rows : EACH * (double)*count;
    const double bytes = sample * row + (double)*count * (double)points->cols * 4;
    if (bytes > (double)(app->memory - CLI_OVERHEAD_BYTES) / 2)
        return cli_fail(app, CLI_EXIT_MEMORY,
                        "%s: to train %lld centres %.0f bytes of points must be in memory: give "
                        "more --memory or fewer --centres",
                        t->path, (long long)*count, bytes);
    return -1;
}

static int train(training *t, gnomon_lsh_functions *f, float **centres)
{
    cli_app *app = t->app;
    gnomon_join_points points = {.user = t,
                                 .rows = t->info.rows,
                                 .cols = t->info.cols,
                                 .dtype = cli_held_dtype(&t->info),
                                 .read = read_one};
    const double row = (double)points.cols * (double)gnomon_dtype_size(points.dtype);
    if (!(row > 0 && row < (double)app->memory))
        return cli_fail(app, CLI_EXIT_DATA, "%s: points of %lld coordinates can't be trained on",
                        t->path, (long long)points.cols);
    int64_t count = f->centre_count;
    int code = points.rows < 0 ? count_rows(t, (int64_t)row, &points.rows) : -1;
    if (code < 0) code = choose_count(t, &points, row, &count);
    if (code >= 0) return code;
    *centres = malloc(cli_bytes(count, points.cols * 4));
    if (*centres == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for centres");
    cli_bar_begin(app, "training", -1);
    const gnomon_status status =
        gnomon_lsh_train_stream(app->ctx, f->family, &points, count, f->seed, *centres);
    f->centre_count = count;
    f->centres = *centres;
    if (status == GNOMON_OK) return -1;
    int64_t place = -1; /* what is told of a row is the file's fault */
    gnomon_last_error_place(app->ctx, &place, NULL);
    if (place < 0) return cli_fail_of_file(app, status, t->path);
    return cli_fail(app, CLI_EXIT_DATA, "%s: %s", t->path, gnomon_last_error(app->ctx));
}

int cli_index_train(cli_app *app, const char *path, const cli_input_options *input,
                    gnomon_lsh_functions *functions, float **centres)
{
    training t = {.app = app, .path = path, .input = input};
    int code = cli_open_input(app, path, input, &t.reader, &t.info);
    if (code < 0) code = train(&t, functions, centres);
    gnomon_reader_close(t.reader);
    return code;
}
