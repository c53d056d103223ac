/* The rows of one of several ranks. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

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
    if (r->is_sparse)
        return gnomon_svd_rank_sparse_rows(app->ctx, &app->comm, r->info->rows, r->stretch++,
                                           &r->at, &r->left);
    return r->tells(app->ctx, &app->comm, r->info->rows, r->info->cols, r->stretch++, &r->at,
                    &r->left);
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

int cli_rank_rows_begin(cli_app *app, const char *path, const cli_points *p, cli_rank_rows_fn tells,
                        cli_rank_rows *r)
{
    *r = (cli_rank_rows){.app = app, .tells = tells, .reader = p->reader, .info = &p->info};
    r->is_sparse = (p->info.access & GNOMON_ACCESS_SPARSE) != 0;
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

void cli_rank_rows_drop(cli_rank_rows *r)
{
    free(r->offsets);
    free(r->indices);
    free(r->values);
    r->offsets = r->indices = NULL;
    r->values = NULL;
}

/* Room for so many entries more. */
static int grow(cli_rank_rows *r, int64_t have, int64_t more)
{
    const int64_t size = (int64_t)gnomon_dtype_size(r->sparse.dtype);
    if (more <= r->room - have) return 1;
    const int64_t room = r->room + r->room / 2 > have + more ? r->room + r->room / 2 : have + more;
    int64_t *indices = realloc(r->indices, cli_bytes(room, sizeof *indices));
    if (indices != NULL) r->indices = indices;
    char *values = realloc(r->values, cli_bytes(room, size));
    if (values != NULL) r->values = values;
    if (indices == NULL || values == NULL) return 0;
    r->room = room;
    return 1;
}

/* The rows [r->at, ...) of a stretch, or some of them, behind those that are there. */
static gnomon_status append(cli_rank_rows *r, int *no_room)
{
    gnomon_csr some, *all = &r->sparse;
    const int64_t have = all->rows > 0 ? r->offsets[all->rows] : 0;
    const size_t size = gnomon_dtype_size(all->dtype);
    TRY(gnomon_reader_seek(r->reader, r->at));
    TRY(gnomon_reader_next_csr(r->reader, r->left, INT64_MAX / 16, &some));
    const int64_t count = some.rows > 0 ? some.offsets[some.rows] - some.offsets[0] : 0;
    *no_room = !grow(r, have, count);
    if (*no_room || some.rows == 0) return GNOMON_OK;
    memcpy(r->indices + have, some.indices, (size_t)count * sizeof *r->indices);
    memcpy(r->values + (size_t)have * size, some.values, (size_t)count * size);
    for (int64_t i = 1; i <= some.rows; i++)
        r->offsets[all->rows + i] = have + some.offsets[i] - some.offsets[0];
    all->rows += some.rows;
    r->at += some.rows;
    r->left -= some.rows;
    return cli_interrupted() ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

static int load_sparse(cli_rank_rows *r, const char *path, int64_t budget)
{
    cli_app *app = r->app;
    gnomon_csr first;
    int no_room = 0;
    const double before = cli_seconds();
    gnomon_status status = gnomon_reader_seek(r->reader, 0);
    if (status == GNOMON_OK) status = gnomon_reader_next_csr(r->reader, 1, 1, &first);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    r->sparse = (gnomon_csr){.cols = r->info->cols, .dtype = first.dtype};
    r->offsets = calloc((size_t)r->rows + 1, sizeof *r->offsets);
    no_room = r->offsets == NULL || !grow(r, 0, 1);
    while (!no_room && r->sparse.rows < r->rows) {
        const int64_t had = r->sparse.rows;
        status = next_stretch(r);
        if (status == GNOMON_OK) status = append(r, &no_room);
        if (status != GNOMON_OK) return cli_fail_status(app, status);
        if (!no_room && r->sparse.rows == had)
            return cli_fail(app, CLI_EXIT_DATA, "%s: has become shorter", path);
        /* as one process: half for what the work takes */
        if (24.0 * (double)r->offsets[r->sparse.rows] > 0.5 * (double)budget)
            return cli_points_too_large(app, path, 2.0 * (double)app->memory);
    }
    if (no_room)
        return cli_fail(app, CLI_EXIT_MEMORY, "%s: out of memory for %lld points", path,
                        (long long)r->rows);
    r->sparse.offsets = r->offsets;
    r->sparse.indices = r->indices;
    r->sparse.values = r->values;
    r->seconds += cli_seconds() - before;
    return -1;
}

int cli_rank_rows_hold(cli_rank_rows *r, const char *path, gnomon_dtype dtype, int64_t budget,
                       cli_points *p)
{
    cli_app *app = r->app;
    enum { HELD, STREAMS, SPARSE };
    const double bytes = (double)r->rows * (double)r->info->cols * (double)gnomon_dtype_size(dtype);
    /* all ranks read in the same way: rank 0 has as many rows as any */
    int way = r->is_sparse ? SPARSE : bytes > 0.5 * (double)budget ? STREAMS : HELD, code = -1;
    const gnomon_status status = gnomon_comm_broadcast(app->ctx, &app->comm, &way, sizeof way);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    r->streams = way == STREAMS;
    if ((way == SPARSE) != r->is_sparse)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: has %s rows, unlike the file of rank 0", path,
                        r->is_sparse ? "sparse" : "dense");
    else if (r->is_sparse)
        code = load_sparse(r, path, budget);
    else if (!r->streams)
        code = load(r, path, dtype, p);
    return cli_comm_agree(app, code);
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
