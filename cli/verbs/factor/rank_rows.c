/* The rows of one of several ranks. */
#include "cli.h"

#include <stdlib.h>

#define TRY(call)                                 \
    do {                                          \
        const gnomon_status status_ = (call);     \
        if (status_ != GNOMON_OK) return status_; \
    } while (0)

/* Goes on to the next stretch where one ends; r->left is 0 behind the last. */
static gnomon_status next_stretch(cli_rank_rows *r)
{
    const cli_app *app = r->app;
    if (r->left > 0) return GNOMON_OK;
    return gnomon_svd_rank_rows(app->ctx, &app->comm, r->info->rows, r->info->cols, r->stretch++,
                                &r->at, &r->left);
}

static gnomon_status go_back(void *user)
{
    cli_rank_rows *r = user;
    r->stretch = r->left = 0;
    return GNOMON_OK;
}

static gnomon_status read_some(cli_rank_rows *r, const gnomon_matrix *dst, int64_t *got)
{
    gnomon_matrix part = *dst;
    TRY(next_stretch(r));
    *got = 0;
    if (r->left == 0) return GNOMON_OK;
    part.rows = cli_min(dst->rows, r->left);
    TRY(gnomon_reader_seek(r->reader, r->at));
    TRY(gnomon_reader_next(r->reader, &part, got));
    r->at += *got;
    r->left -= *got;
    return cli_interrupted() ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    cli_rank_rows *r = user;
    const double before = cli_seconds();
    const gnomon_status status = read_some(r, dst, got);
    r->seconds += cli_seconds() - before;
    return status;
}

int cli_rank_rows_begin(cli_app *app, const char *path, const cli_points *p, cli_rank_rows *r)
{
    *r = (cli_rank_rows){.app = app, .reader = p->reader, .info = &p->info};
    if ((p->info.access & GNOMON_ACCESS_SPARSE) != 0)
        return cli_usage(app, "--comm: %s has sparse rows; several ranks take dense ones", path);
    const int code = cli_comm_check_input(app, path, &p->info);
    if (code >= 0 || p->info.rows < 1 || p->info.cols < 1) return code;
    for (;;) {
        if (next_stretch(r) != GNOMON_OK) return cli_fail_status(app, GNOMON_ERROR_ARGUMENT);
        if (r->left == 0) break;
        r->rows += r->left;
        r->left = 0;
    }
    (void)go_back(r);
    return -1;
}

gnomon_svd_rows cli_rank_rows_stream(cli_rank_rows *r, gnomon_dtype dtype)
{
    return (gnomon_svd_rows){r, r->rows, r->info->cols, dtype, next, go_back};
}

static int load(cli_rank_rows *r, const char *path, gnomon_dtype dtype, cli_points *p)
{
    const int64_t row = r->info->cols * (int64_t)gnomon_dtype_size(dtype);
    p->data = malloc(cli_bytes(r->rows > 0 ? r->rows : 1, row));
    if (p->data == NULL)
        return cli_fail(r->app, CLI_EXIT_MEMORY, "%s: out of memory for %lld points", path,
                        (long long)r->rows);
    p->dense = gnomon_matrix_rowmajor(p->data, dtype, r->rows, r->info->cols);
    for (int64_t have = 0; have < r->rows;) {
        int64_t got = 0;
        const gnomon_matrix part = gnomon_matrix_rowmajor(
            (char *)p->data + have * row, dtype, cli_min(r->rows - have, 65536), r->info->cols);
        const gnomon_status status = next(r, &part, &got);
        if (status != GNOMON_OK) return cli_fail_status(r->app, status);
        if (got == 0) return cli_fail(r->app, CLI_EXIT_DATA, "%s: has become shorter", path);
        have += got;
    }
    return -1;
}

int cli_rank_rows_hold(cli_rank_rows *r, const char *path, gnomon_dtype dtype, int64_t budget,
                       cli_points *p)
{
    cli_app *app = r->app;
    const double bytes = (double)r->rows * (double)r->info->cols * (double)gnomon_dtype_size(dtype);
    /* all ranks read in the same way: rank 0 has as many rows as any */
    r->streams = bytes > 0.5 * (double)budget;
    const gnomon_status status =
        gnomon_comm_broadcast(app->ctx, &app->comm, &r->streams, sizeof r->streams);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    return r->streams ? -1 : cli_comm_agree(app, load(r, path, dtype, p));
}

int cli_rank_rows_end(cli_app *app, gnomon_status status, const char *path)
{
    /* the ranks can't speak with each other any more */
    const int lost = status == GNOMON_ERROR_COMM;
    const int tells = lost || app->comm.rank == 0;
    const int code = tells ? cli_fail_of_file(app, status, path) : -1;
    return lost ? code : cli_comm_agree(app, code);
}

int cli_rank_done(cli_app *app, int code)
{
    code = cli_comm_agree(app, code > CLI_EXIT_DONE ? code : -1);
    return code < 0 ? CLI_EXIT_DONE : code;
}
