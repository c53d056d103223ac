/* Neighbours by hashing: an index tuned to the recall asked for, or exact search where none keeps
 * it. */
#include "verbs/neighbors/neighbors.h"

#include <stdlib.h>
#include <string.h>

/* So many queries are enough to choose and to test by; with fewer, base points stand in. */
enum { ENOUGH_QUERIES = 400 };

/* An index has rows of one layout, and so have its queries: dense ones where one file is dense. */
static cli_form form_of(const cli_neighbors *n)
{
    const cli_form form = cli_points_form(n->app, n->options.metric);
    const int mixed = (n->base_info.access & n->queries_info.access & GNOMON_ACCESS_SPARSE) == 0;
    return form == CLI_FORM_SPARSE && mixed ? CLI_FORM_DENSE : form;
}

static int load(cli_neighbors *n, const char *path, gnomon_reader **reader,
                const gnomon_data_info *info, cli_points *p, int64_t *budget)
{
    p->reader = *reader;
    p->info = *info;
    *reader = NULL; /* dropped with the points */
    int code = cli_check_form(n->app, path, info, n->options.metric);
    if (code >= 0) return code;
    code = cli_points_read(n->app, path, (int)form_of(n), p, budget);
    if (code < 0 && !cli_points_at_end(p))
        code = cli_points_too_large(n->app, path, 2.0 * (double)n->app->memory);
    return code;
}

static gnomon_status tune(cli_neighbors *n, const cli_points *base, const cli_points *queries,
                          int64_t budget)
{
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    p.metric = n->options.metric;
    p.recall = n->guarantee;
    p.k = n->options.k;
    p.radius = n->options.radius;
    p.seed = n->seed;
    n->tuning.struct_size = sizeof n->tuning;
    p.uses = base->is_sparse ? queries->sparse.rows : queries->dense.rows;
    const int own = n->exclude_self;
    if (base->is_sparse) {
        const int enough = !own && queries->sparse.rows >= ENOUGH_QUERIES;
        return gnomon_lsh_tune_csr(n->app->ctx, &p, &base->sparse, enough ? &queries->sparse : NULL,
                                   &n->index, &n->tuning);
    }
    const int64_t bytes =
        base->dense.rows * base->dense.cols * (int64_t)gnomon_dtype_size(base->dense.dtype);
    if (budget / 2 < bytes) p.memory = budget > 2 ? budget / 2 : 1;
    const int enough = !own && queries->dense.rows >= ENOUGH_QUERIES;
    return gnomon_lsh_tune(n->app->ctx, &p, &base->dense, enough ? &queries->dense : NULL,
                           &n->index, &n->tuning);
}

static gnomon_status search(cli_neighbors *n, const cli_points *base, const cli_points *queries,
                            gnomon_neighbors *found)
{
    gnomon_context *ctx = n->app->ctx;
    gnomon_search_options o = n->options;
    if (n->exclude_self) o.exclude = 0;
    if (n->index == NULL)
        return base->is_sparse
                   ? gnomon_neighbors_exact_csr(ctx, &base->sparse, &queries->sparse, &o, found)
                   : gnomon_neighbors_exact(ctx, &base->dense, &queries->dense, &o, found);
    return base->is_sparse
               ? gnomon_lsh_query_csr(ctx, n->index, &queries->sparse, &o, NULL, found, NULL)
               : gnomon_lsh_query(ctx, n->index, &queries->dense, &o, NULL, found, NULL);
}

static int run(cli_neighbors *n, cli_points *base, cli_points *queries)
{
    int64_t budget = n->app->memory - CLI_OVERHEAD_BYTES;
    gnomon_neighbors found = {.struct_size = sizeof found};
    const double start = cli_seconds();
    int code = load(n, n->queries_path, &n->queries, &n->queries_info, queries, &budget);
    if (code < 0) code = load(n, n->base_path, &n->base, &n->base_info, base, &budget);
    if (code >= 0) return code;
    const double read = cli_seconds();
    n->read_seconds = read - start;
    gnomon_status status = tune(n, base, queries, budget);
    const double tuned = cli_seconds();
    n->tune_seconds = tuned - read;
    if (status == GNOMON_OK) status = search(n, base, queries, &found);
    n->search_seconds = cli_seconds() - tuned;
    n->groups = 1;
    code = status == GNOMON_OK ? cli_neighbors_keep(n, &found) : cli_neighbors_fail(n, status);
    gnomon_neighbors_free(n->app->ctx, &found);
    return code;
}

int cli_neighbors_guarantee(cli_neighbors *n)
{
    cli_points base, queries;
    memset(&base, 0, sizeof base);
    memset(&queries, 0, sizeof queries);
    n->answers.dimensions = n->base_info.cols;
    const int code = run(n, &base, &queries);
    if (n->index != NULL) {
        n->index_info.struct_size = sizeof n->index_info;
        gnomon_lsh_describe(n->index, &n->index_info);
        gnomon_lsh_destroy(n->index); /* before the points that it refers to */
    }
    cli_points_drop(&base);
    cli_points_drop(&queries);
    return code;
}

void cli_neighbors_print_guarantee(const cli_neighbors *n)
{
    const gnomon_lsh_tuning *t = &n->tuning;
    const gnomon_lsh_options *o = &n->index_info.options;
    if (n->index == NULL) {
        cli_say(n->app, "searched exactly: %s\n", t->reason);
        return;
    }
    cli_say(n->app, "%s: %lld tables of %lld", gnomon_lsh_family_name(o->functions.family),
            (long long)o->tables, (long long)o->coarse);
    if (o->fine > 0) cli_say(n->app, " + %lld", (long long)o->fine);
    cli_say(n->app, " functions, %lld more buckets per query", (long long)o->search_params.probes);
    if (o->search_params.coarse > 0)
        cli_say(n->app, " and %lld coarse ones, until it has %lld candidates",
                (long long)o->search_params.coarse, (long long)o->search_params.candidates);
    if (o->search_params.rerank > 0)
        cli_say(n->app, ", the nearest %lld by code reranked", (long long)o->search_params.rerank);
    cli_say(n->app, "; the index takes %.1f MiB\n",
            (double)cli_index_bytes(&n->index_info) / (1 << 20));
    cli_say(n->app, "tested: recall %.4f over %lld queries, above %.4f with 95 %% confidence\n",
            t->recall, (long long)t->tested, t->bound);
}

json_t *cli_neighbors_guarantee_json(const cli_neighbors *n)
{
    const gnomon_lsh_tuning *t = &n->tuning;
    const gnomon_lsh_options *o = &n->index_info.options;
    if (n->index == NULL)
        return json_pack("{s:f, s:s, s:f}", "recall", n->guarantee, "reason", t->reason,
                         "tune_seconds", cli_json_seconds(n->tune_seconds));
    return json_pack("{s:f, s:f, s:f, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:f}", "recall",
                     n->guarantee, "tested_recall", t->recall, "bound", t->bound, "tested",
                     (json_int_t)t->tested, "family", gnomon_lsh_family_name(o->functions.family),
                     "tables", (json_int_t)o->tables, "functions", (json_int_t)o->coarse, "fine",
                     (json_int_t)o->fine, "probes", (json_int_t)o->search_params.probes, "rerank",
                     (json_int_t)o->search_params.rerank, "width", o->functions.width,
                     "index_bytes", (json_int_t)cli_index_bytes(&n->index_info), "tune_seconds",
                     cli_json_seconds(n->tune_seconds));
}
