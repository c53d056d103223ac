/* Base points piece by piece against groups of queries that fit in memory. */
#include "verbs/neighbors/neighbors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pieces larger than this gain nothing. */
static const int64_t enough_bytes = (int64_t)128 << 20;
enum { MOST_NONZEROS = 1 << 22 };

static void account(double *sum, double *mark)
{
    const double now = cli_seconds();
    *sum += now - *mark;
    *mark = now;
}

int cli_neighbors_fail(cli_neighbors *n, gnomon_status status)
{
    const int queries = cli_error_about(n->app, "queries"), base = cli_error_about(n->app, "base");
    int64_t row; /* only what is told of a row is the file's fault */
    gnomon_last_error_place(n->app->ctx, &row, NULL);
    if (row >= 0 && (queries || base))
        return cli_fail(n->app, CLI_EXIT_DATA, "%s: %s", queries ? n->queries_path : n->base_path,
                        gnomon_last_error(n->app->ctx));
    return cli_fail_status(n->app, status);
}

int cli_neighbors_keep(cli_neighbors *n, gnomon_neighbors *found)
{
    cli_answers *a = &n->answers;
    const int64_t queries = a->queries + found->queries;
    const int64_t before = a->queries > 0 ? a->offsets[a->queries] : 0;
    const int64_t more = found->offsets[found->queries], answers = before + more;
    int64_t *offsets = realloc(a->offsets, cli_bytes(queries + 1, sizeof *offsets));
    if (offsets != NULL) a->offsets = offsets;
    int64_t *ids = realloc(a->ids, cli_bytes(answers, sizeof *ids));
    if (ids != NULL) a->ids = ids;
    double *distances = realloc(a->distances, cli_bytes(answers, sizeof *distances));
    if (distances != NULL) a->distances = distances;
    if (offsets == NULL || ids == NULL || distances == NULL)
        return cli_fail(n->app, CLI_EXIT_MEMORY, "out of memory for %lld answers",
                        (long long)answers);
    for (int64_t q = 0; q <= found->queries; q++)
        a->offsets[a->queries + q] = before + found->offsets[q];
    if (more > 0) {
        memcpy(a->ids + before, found->ids, (size_t)more * sizeof *ids);
        memcpy(a->distances + before, found->distances, (size_t)more * sizeof *distances);
    }
    a->queries = queries;
    a->k = found->k;
    a->base = found->base;
    a->compared += found->compared;
    a->verified += found->verified;
    memcpy(a->why, found->why, sizeof a->why);
    return -1;
}

/* One file's points, some at a time: dense ones in a buffer, sparse ones in the reader's own. */
typedef struct side {
    const char *path;
    gnomon_reader *reader;
    const gnomon_data_info *info;
    int sparse;
    gnomon_dtype dtype;  /* dense ones are held in */
    int64_t rows;        /* at a time */
    int64_t first, left; /* of several ranks: this one's part, and what is still to be read of it */
    int64_t nonzeros;    /* of sparse ones, at a time */
    void *data;
} side;

/* Points that were read, until the next are. */
typedef struct piece {
    int sparse;
    int64_t rows;
    gnomon_csr csr;
    gnomon_matrix dense;
} piece;

static side side_of(const cli_neighbors *n, const char *path, gnomon_reader *reader,
                    const gnomon_data_info *info)
{
    const cli_form form = cli_points_form(n->app, n->options.metric);
    const int stored = (info->access & GNOMON_ACCESS_SPARSE) != 0;
    return (side){.path = path,
                  .reader = reader,
                  .info = info,
                  .sparse = form == CLI_FORM_ANY || (form == CLI_FORM_SPARSE && stored),
                  .left = INT64_MAX,
                  .dtype = cli_held_dtype(info)};
}

static gnomon_status read_dense(side *s, piece *p)
{
    const int64_t row = s->info->cols * (int64_t)gnomon_dtype_size(s->dtype);
    const int64_t rows = cli_min(s->rows, s->left);
    gnomon_status status = GNOMON_OK;
    while (p->rows < rows && status == GNOMON_OK) {
        int64_t some = 0;
        const gnomon_matrix part = gnomon_matrix_rowmajor((char *)s->data + p->rows * row, s->dtype,
                                                          rows - p->rows, s->info->cols);
        status = gnomon_reader_next(s->reader, &part, &some);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (some == 0) break;
        p->rows += some;
    }
    p->dense = gnomon_matrix_rowmajor(s->data, s->dtype, p->rows, s->info->cols);
    return status;
}

/* The next points; none at the end. */
static gnomon_status read_piece(side *s, piece *p)
{
    *p = (piece){.sparse = s->sparse};
    if (s->left == 0) return GNOMON_OK;
    gnomon_status status;
    if (s->sparse) {
        status = gnomon_reader_next_csr(s->reader, cli_min(s->rows, s->left), s->nonzeros, &p->csr);
        if (status == GNOMON_OK) p->rows = p->csr.rows;
    } else {
        status = read_dense(s, p);
    }
    if (s->left < INT64_MAX) s->left -= p->rows;
    return status;
}

/* The whole base against a search. */
static int search_base(cli_neighbors *n, side *base, gnomon_search *search, int64_t group)
{
    double mark = cli_seconds();
    for (int64_t done = 0;;) {
        piece p;
        gnomon_status status = read_piece(base, &p);
        account(&n->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(n->app, status);
        if (p.rows == 0) return -1;
        cli_bar_at(n->app, group * cli_max(base->info->rows, 0) + done, p.rows);
        status =
            p.sparse ? gnomon_search_add_csr(search, &p.csr) : gnomon_search_add(search, &p.dense);
        account(&n->search_seconds, &mark);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) return cli_neighbors_fail(n, status);
        done += p.rows;
    }
}

/* To the first base point: of all, or of this rank's part, which *base is limited to. */
static gnomon_status rewind_base(cli_neighbors *n, side *base, int64_t group)
{
    const gnomon_comm *comm = &n->app->comm;
    if (comm->size == 1) return group > 0 ? gnomon_reader_seek(n->base, 0) : GNOMON_OK;
    const gnomon_status status =
        gnomon_comm_share(n->app->ctx, comm, base->info->rows, &base->first, &base->left);
    return status == GNOMON_OK ? gnomon_reader_seek(n->base, base->first) : status;
}

/* The answers of all ranks; rank 0 keeps them. */
static int finish_group(cli_neighbors *n, gnomon_search *search, int64_t queries)
{
    cli_app *app = n->app;
    gnomon_neighbors found = {.struct_size = sizeof found};
    double mark = cli_seconds();
    const gnomon_status status = app->comm.size > 1
                                     ? gnomon_comm_neighbors(app->ctx, &app->comm, search, &found)
                                     : gnomon_search_finish(search, &found);
    account(&n->search_seconds, &mark);
    /* the ranks can't speak with each other any more */
    const int lost = status == GNOMON_ERROR_COMM;
    int code = -1;
    if (app->comm.rank > 0) {
        n->answers.queries += queries;
        /* rank 0 tells what became of the whole search */
        if (lost) code = cli_fail_status(app, status);
    } else {
        code = status == GNOMON_OK ? cli_neighbors_keep(n, &found) : cli_neighbors_fail(n, status);
    }
    gnomon_neighbors_free(app->ctx, &found);
    return lost ? code : cli_comm_agree(app, code);
}

/* One group of queries, read already. */
static int search_group(cli_neighbors *n, side *base, const piece *queries, int64_t group)
{
    gnomon_context *ctx = n->app->ctx;
    gnomon_search *search = NULL;
    gnomon_search_options options = n->options;
    if (n->exclude_self) options.exclude = n->answers.queries;
    double mark = cli_seconds();
    gnomon_status status = rewind_base(n, base, group);
    if (status != GNOMON_OK) return cli_comm_agree(n->app, cli_fail_status(n->app, status));
    status = queries->sparse ? gnomon_search_create_csr(ctx, &queries->csr, &options, &search)
                             : gnomon_search_create(ctx, &queries->dense, &options, &search);
    if (status == GNOMON_OK) status = gnomon_search_first_id(search, base->first);
    account(&n->search_seconds, &mark);
    int code =
        status == GNOMON_OK ? search_base(n, base, search, group) : cli_neighbors_fail(n, status);
    code = cli_comm_agree(n->app, code);
    if (code < 0) code = finish_group(n, search, queries->rows);
    gnomon_search_destroy(search);
    return code;
}

/* Bytes of a row: as a dense one, or what a sparse one has beside its nonzeros. */
static double row_bytes(const side *s)
{
    return s->sparse ? 64 : (double)s->info->cols * (double)gnomon_dtype_size(s->dtype) + 1;
}

/* A nonzero of a query, or of a base row, in the reader and in the search. */
enum { NONZERO_BYTES = 48 };

/* How many rows fit in so many bytes, of 'more' each beside their own. */
static void cut(side *s, double bytes, double more)
{
    double rows = bytes / (s->sparse ? 2 : 1) / (row_bytes(s) + more);
    if (rows > 0x1p40) rows = 0x1p40;
    s->rows = cli_max((int64_t)rows, 1);
    s->nonzeros = cli_max((int64_t)(bytes / 2 / NONZERO_BYTES), 1);
}

static int make_room(cli_neighbors *n, side *s)
{
    if (s->info->rows >= 0) s->rows = cli_min(s->rows, cli_max(s->info->rows, 1));
    if (s->sparse) return -1;
    s->data = malloc(cli_bytes(s->rows, s->info->cols * (int64_t)gnomon_dtype_size(s->dtype)));
    if (s->data != NULL) return -1;
    return cli_fail(n->app, CLI_EXIT_MEMORY, "%s: out of memory for %lld points", s->path,
                    (long long)s->rows);
}

/* How many queries and base points are held at a time. */
static int make_plan(cli_neighbors *n, side *queries, side *base)
{
    const int64_t budget = n->app->memory - CLI_OVERHEAD_BYTES;
    /* What readers hold, the second perhaps of the same file. */
    const double gathered = cli_gathered_bytes(base->info) + cli_gathered_bytes(queries->info);
    const double answer = 16.0 * (double)n->options.k;
    /* What is found stays: 16 bytes each, once while a group is at work and once for good. */
    const double kept = n->queries_info.rows > 0 ? answer * (double)n->queries_info.rows : 0;
    const double rest = (double)budget - kept - gathered;
    const double least = 4 * (row_bytes(base) + row_bytes(queries) + 2 * answer);
    if (rest < least)
        return cli_fail(
            n->app, CLI_EXIT_MEMORY, "these points and answers need %s",
            cli_memory_words(kept + gathered + least + (double)CLI_OVERHEAD_BYTES + (1 << 20))
                .text);
    cut(queries, rest / 2, 2 * answer);
    cut(base, fmin(rest / 2, (double)enough_bytes), 0);
    if (base->nonzeros > MOST_NONZEROS) base->nonzeros = MOST_NONZEROS;
    if (queries->info->rows < 0 && !queries->sparse) queries->rows = cli_min(queries->rows, 65536);
    const int code = make_room(n, queries);
    return code >= 0 ? code : make_room(n, base);
}

static int search_groups(cli_neighbors *n, side *queries, side *base)
{
    const int64_t total = queries->info->rows;
    int code = -1;
    const int64_t groups =
        total >= 0 && !queries->sparse ? (total + queries->rows - 1) / queries->rows : 1;
    cli_bar_begin(n->app, "searching",
                  base->info->rows >= 0 && total >= 0 ? groups * base->info->rows : -1);
    for (int64_t group = 0;; group++) {
        double mark = cli_seconds();
        piece p;
        const gnomon_status status = read_piece(queries, &p);
        account(&n->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(n->app, status);
        if (p.rows == 0 && group > 0) return -1;
        if (n->app->comm.size == 1 && group > 0 && (base->info->access & GNOMON_ACCESS_SEEK) == 0)
            return cli_fail(n->app, CLI_EXIT_MEMORY,
                            "%s can't be read again, and the queries do not fit in --memory %.0fM "
                            "at once",
                            base->path, (double)n->app->memory / (1 << 20));
        code = search_group(n, base, &p, group);
        n->groups = group + 1;
        if (code >= 0 || p.rows == 0 || (!p.sparse && p.rows < queries->rows) ||
            n->answers.queries == total)
            return code;
    }
}

static int check_mask(cli_neighbors *n, int64_t count, int64_t points)
{
    if (points < 0 || count == points) return -1;
    return cli_fail(n->app, CLI_EXIT_DATA,
                    "%s: a mask of %lld truth values, and %s has %lld points: --filter takes one "
                    "for each, or ids",
                    n->filter, (long long)count, n->base_path, (long long)points);
}

/* Sets the bits of a mask, a truth value a base point. */
static int allow_mask(cli_neighbors *n, const cli_points *p, int64_t points, uint8_t *bitmap)
{
    const int64_t count = p->dense.rows * p->dense.cols;
    const double *allowed = p->data;
    const int code = check_mask(n, count, points);
    if (code >= 0) return code;
    for (int64_t i = 0; i < count; i++)
        if (allowed[i] != 0) bitmap[i / 8] |= (uint8_t)(1u << (i % 8));
    return -1;
}

int cli_neighbors_allow(cli_neighbors *n, int64_t points, uint8_t **bitmap)
{
    cli_points p;
    cli_app *app = n->app;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES, largest = -1;
    *bitmap = NULL;
    if (n->filter == NULL) return -1;
    memset(&p, 0, sizeof p);
    p.wanted = GNOMON_F64;
    int code = cli_points_load(app, n->filter, NULL, 0, &p, &budget);
    const double *ids = p.data;
    const int64_t count = code < 0 ? p.dense.rows * p.dense.cols : 0;
    const int mask = (p.info.access & GNOMON_ACCESS_BOOLEAN) != 0;
    if (mask) n->mask = count;
    if (mask) largest = count - 1;
    for (int64_t i = 0; i < count && code < 0 && !mask; i++) {
        if (!(ids[i] >= 0 && ids[i] < 0x1p40) || ids[i] != (double)(int64_t)ids[i])
            code = cli_fail(app, CLI_EXIT_DATA, "%s: %g is no id", n->filter, ids[i]);
        else
            largest = cli_max(largest, (int64_t)ids[i]);
    }
    if (code < 0 && points >= 0 && largest >= points && !mask)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: the id %lld is beyond the %lld points of %s",
                        n->filter, (long long)largest, (long long)points, n->base_path);
    if (code < 0) *bitmap = calloc((size_t)(largest / 8 + 1), 1);
    if (code < 0 && *bitmap == NULL)
        code =
            cli_fail(app, CLI_EXIT_MEMORY, "out of memory for ids up to %lld", (long long)largest);
    if (code < 0 && mask) code = allow_mask(n, &p, points, *bitmap);
    for (int64_t i = 0; i < count && code < 0 && !mask; i++)
        (*bitmap)[(int64_t)ids[i] / 8] |= (uint8_t)(1u << ((int64_t)ids[i] % 8));
    n->options.filter = *bitmap;
    n->options.filter_bits = largest + 1;
    cli_points_drop(&p);
    return code;
}

/* A search, both sides of it, and which base points it may find. */
typedef struct task {
    cli_neighbors *n;
    side queries, base;
    uint8_t *bitmap;
} task;

static int prepare(void *user)
{
    task *t = user;
    cli_neighbors *n = t->n;
    int code = cli_comm_check_input(n->app, n->base_path, &n->base_info);
    if (code < 0) code = cli_comm_check_input(n->app, n->queries_path, &n->queries_info);
    if (code >= 0) return code;
    if (n->base_info.rows >= 0 && n->options.k > n->base_info.rows)
        return cli_fail(n->app, CLI_EXIT_USAGE, "-k %lld: %s has %lld points",
                        (long long)n->options.k, n->base_path, (long long)n->base_info.rows);
    n->answers.dimensions = n->base_info.cols;
    t->queries = side_of(n, n->queries_path, n->queries, &n->queries_info);
    t->base = side_of(n, n->base_path, n->base, &n->base_info);
    code = cli_check_form(n->app, n->base_path, &n->base_info, n->options.metric);
    if (code < 0)
        code = cli_check_form(n->app, n->queries_path, &n->queries_info, n->options.metric);
    if (code < 0) code = cli_neighbors_allow(n, n->base_info.rows, &t->bitmap);
    return code >= 0 ? code : make_plan(n, &t->queries, &t->base);
}

int cli_neighbors_search(cli_neighbors *n)
{
    task t = {.n = n};
    int code = cli_comm_begin(n->app, prepare, &t);
    if (code < 0) code = search_groups(n, &t.queries, &t.base);
    if (code < 0 && n->mask > 0 && n->app->comm.rank == 0)
        code = check_mask(n, n->mask, n->answers.base);
    free(t.queries.data);
    free(t.base.data);
    free(t.bitmap);
    return code;
}

void cli_neighbors_drop(cli_neighbors *n)
{
    gnomon_reader_close(n->base);
    gnomon_reader_close(n->queries);
    free(n->answers.offsets);
    free(n->answers.ids);
    free(n->answers.distances);
    cli_names_drop(&n->names);
    cli_names_drop(&n->query_names);
    if (n->tuning.struct_size > 0) gnomon_lsh_tuning_free(n->app->ctx, &n->tuning);
}
