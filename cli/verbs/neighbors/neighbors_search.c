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

/* The type that a reader's points are held in. */
static gnomon_dtype held_dtype(const gnomon_data_info *info)
{
    if ((info->access & GNOMON_ACCESS_SPARSE) != 0 && info->dtype != GNOMON_F32) return GNOMON_F64;
    return info->dtype;
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

/* Reads up to 'rows' points to data. */
static gnomon_status read_rows(gnomon_reader *reader, void *data, gnomon_dtype dtype, int64_t rows,
                               int64_t cols, int64_t *got)
{
    gnomon_status status = GNOMON_OK;
    *got = 0;
    while (*got < rows && status == GNOMON_OK) {
        int64_t some = 0;
        const gnomon_matrix part =
            gnomon_matrix_rowmajor((char *)data + *got * cols * (int64_t)gnomon_dtype_size(dtype),
                                   dtype, rows - *got, cols);
        status = gnomon_reader_next(reader, &part, &some);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (some == 0) break;
        *got += some;
    }
    return status;
}

typedef struct plan {
    int64_t queries, rows; /* at a time */
    gnomon_dtype query_dtype, base_dtype;
    void *query_data, *base_data;
} plan;

/* The whole base against a search. */
static int search_base(cli_neighbors *n, plan *p, gnomon_search *search, int64_t group)
{
    const int sparse = n->form != CLI_FORM_DENSE;
    double mark = cli_seconds();
    for (int64_t done = 0;;) {
        gnomon_csr csr = {0};
        int64_t got = 0;
        gnomon_status status;
        if (sparse) {
            status = gnomon_reader_next_csr(n->base, INT64_MAX / 16, MOST_NONZEROS, &csr);
            got = csr.rows;
        } else {
            status =
                read_rows(n->base, p->base_data, p->base_dtype, p->rows, n->base_info.cols, &got);
        }
        account(&n->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(n->app, status);
        if (got == 0) return -1;
        cli_bar_at(n->app, group * cli_max(n->base_info.rows, 0) + done, got);
        const gnomon_matrix base =
            gnomon_matrix_rowmajor(p->base_data, p->base_dtype, got, n->base_info.cols);
        status = sparse ? gnomon_search_add_csr(search, &csr) : gnomon_search_add(search, &base);
        account(&n->search_seconds, &mark);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) return cli_neighbors_fail(n, status);
        done += got;
    }
}

/* One group of queries, read already. */
static int search_group(cli_neighbors *n, plan *p, const gnomon_matrix *dense,
                        const gnomon_csr *csr, int64_t group)
{
    gnomon_search *search = NULL;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options options = n->options;
    if (n->exclude_self) options.exclude = n->answers.queries;
    if (group > 0) {
        const gnomon_status status = gnomon_reader_seek(n->base, 0);
        if (status != GNOMON_OK) return cli_fail_status(n->app, status);
    }
    double mark = cli_seconds();
    gnomon_status status = csr != NULL
                               ? gnomon_search_create_csr(n->app->ctx, csr, &options, &search)
                               : gnomon_search_create(n->app->ctx, dense, &options, &search);
    account(&n->search_seconds, &mark);
    int code =
        status == GNOMON_OK ? search_base(n, p, search, group) : cli_neighbors_fail(n, status);
    mark = cli_seconds();
    if (code < 0) {
        status = gnomon_search_finish(search, &found);
        account(&n->search_seconds, &mark);
        code = status == GNOMON_OK ? cli_neighbors_keep(n, &found) : cli_neighbors_fail(n, status);
    }
    gnomon_neighbors_free(n->app->ctx, &found);
    gnomon_search_destroy(search);
    return code;
}

static int search_sparse(cli_neighbors *n, plan *p)
{
    gnomon_csr queries;
    if (cli_metric_form(n->options.metric) == CLI_FORM_SPARSE &&
        (n->base_info.access & n->queries_info.access & GNOMON_ACCESS_SPARSE) == 0)
        return cli_needs_sparse(n->app, NULL, n->options.metric);
    const gnomon_status status = gnomon_reader_next_csr(
        n->queries, INT64_MAX / 16, (n->app->memory - CLI_OVERHEAD_BYTES) / 64, &queries);
    if (status != GNOMON_OK) return cli_fail_status(n->app, status);
    gnomon_csr rest;
    /* The view lasts until the reader's next call, so what more there is shows in the count. */
    if (n->queries_info.rows >= 0 && queries.rows < n->queries_info.rows)
        return cli_points_too_large(n->app, n->queries_path,
                                    64.0 * fmax(cli_entries(&n->queries_info), 1));
    gnomon_search_options options = n->options;
    if (n->exclude_self) options.exclude = 0;
    n->options = options;
    n->groups = 1;
    n->answers.dimensions = n->base_info.cols;
    int code = search_group(n, p, NULL, &queries, 0);
    if (code < 0 && n->queries_info.rows < 0 &&
        gnomon_reader_next_csr(n->queries, 1, 1, &rest) == GNOMON_OK && rest.rows > 0)
        return cli_points_too_large(n->app, n->queries_path, 2.0 * (double)n->app->memory);
    return code;
}

/* How many queries and base points are held at a time. */
static int make_plan(cli_neighbors *n, plan *p)
{
    const int64_t budget = n->app->memory - CLI_OVERHEAD_BYTES;
    p->query_dtype = held_dtype(&n->queries_info);
    p->base_dtype = held_dtype(&n->base_info);
    const double query = (double)n->queries_info.cols * (double)gnomon_dtype_size(p->query_dtype);
    const double base = (double)n->base_info.cols * (double)gnomon_dtype_size(p->base_dtype);
    const double answer = 16.0 * (double)n->options.k;
    /* What is found stays: 16 bytes each, once while a group is at work and once for good. */
    const double kept = n->queries_info.rows > 0 ? answer * (double)n->queries_info.rows : 0;
    const double rest = (double)budget - kept;
    if (rest < 4 * (base + query + 2 * answer + 1))
        return cli_fail(n->app, CLI_EXIT_MEMORY, "these points and answers need %s",
                        cli_memory_words(kept + 4 * (base + query + 2 * answer) +
                                         (double)CLI_OVERHEAD_BYTES + (1 << 20))
                            .text);
    double queries = rest / 2 / (query + 2 * answer + 1), rows = rest / 2 / (base + 1);
    if (rows * (base + 1) > (double)enough_bytes) rows = (double)enough_bytes / (base + 1);
    if (queries > 0x1p40) queries = 0x1p40;
    p->rows = cli_max((int64_t)rows, 1);
    p->queries = cli_max((int64_t)queries, 1);
    if (n->base_info.rows >= 0) p->rows = cli_min(p->rows, cli_max(n->base_info.rows, 1));
    if (n->queries_info.rows >= 0)
        p->queries = cli_min(p->queries, cli_max(n->queries_info.rows, 1));
    else
        p->queries = cli_min(p->queries, 65536);
    p->query_data = malloc(cli_bytes(p->queries, (int64_t)query));
    p->base_data = malloc(cli_bytes(p->rows, (int64_t)base));
    if (p->query_data != NULL && p->base_data != NULL) return -1;
    return cli_fail(n->app, CLI_EXIT_MEMORY, "out of memory for %lld queries and %lld base points",
                    (long long)p->queries, (long long)p->rows);
}

static int search_dense(cli_neighbors *n, plan *p)
{
    const int64_t total = n->queries_info.rows;
    int code = make_plan(n, p);
    if (code >= 0) return code;
    const int64_t groups = total >= 0 ? (total + p->queries - 1) / p->queries : 1;
    cli_bar_begin(n->app, "searching",
                  n->base_info.rows >= 0 && total >= 0 ? groups * n->base_info.rows : -1);
    for (int64_t group = 0;; group++) {
        double mark = cli_seconds();
        int64_t got = 0;
        const gnomon_status status = read_rows(n->queries, p->query_data, p->query_dtype,
                                               p->queries, n->queries_info.cols, &got);
        account(&n->read_seconds, &mark);
        if (status != GNOMON_OK) return cli_fail_status(n->app, status);
        if (got == 0 && group > 0) return -1;
        if (group > 0 && (n->base_info.access & GNOMON_ACCESS_SEEK) == 0)
            return cli_fail(n->app, CLI_EXIT_MEMORY,
                            "%s can't be read again, and the queries do not fit in --memory %.0fM "
                            "at once",
                            n->base_path, (double)n->app->memory / (1 << 20));
        const gnomon_matrix queries =
            gnomon_matrix_rowmajor(p->query_data, p->query_dtype, got, n->queries_info.cols);
        code = search_group(n, p, &queries, NULL, group);
        n->groups = group + 1;
        if (code >= 0 || got < p->queries) return code;
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

int cli_neighbors_search(cli_neighbors *n)
{
    plan p = {0};
    uint8_t *bitmap = NULL;
    if (n->base_info.rows >= 0 && n->options.k > n->base_info.rows)
        return cli_fail(n->app, CLI_EXIT_USAGE, "-k %lld: %s has %lld points",
                        (long long)n->options.k, n->base_path, (long long)n->base_info.rows);
    n->answers.dimensions = n->base_info.cols;
    int code = cli_neighbors_allow(n, n->base_info.rows, &bitmap);
    n->form = cli_compared_form(n->app, n->options.metric, &n->base_info, &n->queries_info);
    if (code < 0) code = n->form != CLI_FORM_DENSE ? search_sparse(n, &p) : search_dense(n, &p);
    if (code < 0 && n->mask > 0) code = check_mask(n, n->mask, n->answers.base);
    free(p.query_data);
    free(p.base_data);
    free(bitmap);
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
