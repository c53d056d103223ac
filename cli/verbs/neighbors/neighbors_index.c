/* Neighbours by an index's file: gnomon neighbors --index, gnomon index query. */
#include "verbs/neighbors/neighbors.h"

#include <stdlib.h>
#include <string.h>

/* The index's own search parameters, but for what is told. */
static gnomon_lsh_search_params params_of(const cli_neighbors *n)
{
    const cli_search_params *told = &n->search_params;
    gnomon_lsh_search_params e = n->index_info.options.search_params;
    if (told->tables) e.tables = told->value.tables;
    if (told->probes) e.probes = told->value.probes;
    if (told->coarse) e.coarse = told->value.coarse;
    if (told->candidates) e.candidates = told->value.candidates;
    if (told->rerank) e.rerank = told->value.rerank;
    return e;
}

static int64_t live(const cli_neighbors *n)
{
    return n->index_info.points - n->index_info.removed;
}

/* An inverted index is exact: whatever is verified was a candidate. */
static gnomon_status query_inverted(cli_neighbors *n, const gnomon_sparse_index *index,
                                    const cli_points *p, const gnomon_search_options *o,
                                    gnomon_neighbors *found)
{
    gnomon_context *ctx = n->app->ctx;
    const gnomon_status status =
        p->is_sparse ? gnomon_sparse_index_query_csr(ctx, index, &p->sparse, o, found)
                     : gnomon_sparse_index_query(ctx, index, &p->dense, o, found);
    n->work.candidates = n->work.verified = found->verified;
    n->work.exact = found->queries;
    return status;
}

static gnomon_status query_hashed(cli_neighbors *n, const gnomon_lsh *index, const cli_points *p,
                                  const gnomon_search_options *o, gnomon_neighbors *found)
{
    const gnomon_lsh_search_params params = params_of(n);
    return p->is_sparse
               ? gnomon_lsh_query_csr(n->app->ctx, index, &p->sparse, o, &params, found, &n->work)
               : gnomon_lsh_query(n->app->ctx, index, &p->dense, o, &params, found, &n->work);
}

static gnomon_status query_coded(cli_neighbors *n, const gnomon_rabitq *index, const cli_points *p,
                                 const gnomon_search_options *o, gnomon_neighbors *found)
{
    const cli_search_params *told = &n->search_params;
    gnomon_rabitq_params params = GNOMON_RABITQ_PARAMS_INIT;
    if (told->recall) params.recall = told->wanted;
    if (told->rerank) params.rerank = told->value.rerank;
    const gnomon_status status = gnomon_rabitq_query(
        n->app->ctx, index, &p->dense, o, told->recall || told->rerank ? &params : NULL, found);
    n->work.candidates = found->compared;
    n->work.verified = found->verified;
    n->work.exact = told->recall || told->rerank || found->verified == 0 ? 0 : found->queries;
    return status;
}

static int search(cli_neighbors *n, const cli_index_file *index, const cli_points *p)
{
    gnomon_context *ctx = n->app->ctx;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options o = n->options;
    if (n->exclude_self) o.exclude = 0;
    n->work.struct_size = sizeof n->work;
    cli_bar_begin(n->app, "searching", -1);
    const double begin = cli_seconds();
    const gnomon_status status =
        index->inverted != NULL ? query_inverted(n, index->inverted, p, &o, &found)
        : index->coded != NULL  ? query_coded(n, index->coded, p, &o, &found)
                                : query_hashed(n, index->hashed, p, &o, &found);
    n->search_seconds = cli_seconds() - begin;
    const int code =
        status == GNOMON_OK ? cli_neighbors_keep(n, &found) : cli_neighbors_fail(n, status);
    gnomon_neighbors_free(ctx, &found);
    return code;
}

/* Refuses what the index's kind has not. */
static int check_params(const cli_neighbors *n, const cli_index_file *index)
{
    const cli_search_params *told = &n->search_params;
    const int hashing = told->tables || told->probes || told->coarse || told->candidates;
    if (index->inverted != NULL && (hashing || told->rerank || told->recall))
        return cli_fail(n->app, CLI_EXIT_USAGE,
                        "%s is an inverted index, whose answers are exact: it has no search "
                        "parameters",
                        n->base_path);
    if (index->hashed != NULL && told->recall)
        return cli_fail(n->app, CLI_EXIT_USAGE,
                        "--recall: %s has hash tables, whose recall was fixed when it was built",
                        n->base_path);
    if (index->coded == NULL) return -1;
    if (hashing)
        return cli_fail(n->app, CLI_EXIT_USAGE,
                        "%s: %s is an index of codes: it has --recall and --rerank",
                        told->tables   ? cli_option_of("tables")
                        : told->probes ? "--probes"
                        : told->coarse ? "--coarse-probes"
                                       : "--candidates",
                        n->base_path);
    if (told->recall && told->rerank)
        return cli_fail(n->app, CLI_EXIT_USAGE, "--recall and --rerank exclude each other");
    if (n->options.k == 0)
        return cli_fail(n->app, CLI_EXIT_USAGE,
                        "%s: %s is an index of codes: it is searched by -k alone",
                        cli_option_of("radius"), n->base_path);
    if (told->rerank && told->value.rerank < n->options.k)
        return cli_fail(n->app, CLI_EXIT_USAGE, "--rerank %lld: must be at least -k, which is %lld",
                        (long long)told->value.rerank, (long long)n->options.k);
    return -1;
}

/* Reads what is asked, and asks. */
static int run(cli_neighbors *n, const cli_index_file *index, cli_points *p, uint8_t **bitmap)
{
    cli_app *app = n->app;
    const double begin = cli_seconds();
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    cli_index_describe(index, &n->index_info);
    int code = check_params(n, index);
    if (code >= 0) return code;
    n->options.metric = n->index_info.options.metric;
    n->answers.dimensions = n->index_info.options.functions.dim;
    if (n->options.k > live(n))
        return cli_fail(app, CLI_EXIT_USAGE, "-k %lld: %s has %lld points", (long long)n->options.k,
                        n->base_path, (long long)live(n));
    code = cli_open_queries(app, n->queries_path, &n->queries_input, &p->reader, &p->info);
    if (code < 0)
        code =
            cli_same_width(app, n->base_path, n->answers.dimensions, n->queries_path, p->info.cols);
    if (code < 0) code = cli_neighbors_read_names(n, n->index_info.points, p->info.rows);
    if (code < 0)
        code = cli_index_read(app, n->queries_path, n->options.metric, index->inverted != NULL, p,
                              &budget);
    if (code < 0 && index->coded != NULL && p->is_sparse)
        code = cli_fail(app, CLI_EXIT_USAGE, "%s: an index of codes takes dense queries",
                        n->queries_path);
    if (code < 0) code = cli_neighbors_allow(n, n->index_info.points, bitmap);
    n->read_seconds = cli_seconds() - begin;
    return code < 0 ? search(n, index, p) : code;
}

int cli_neighbors_by_index(cli_neighbors *n)
{
    cli_points p;
    cli_index_file index;
    uint8_t *bitmap = NULL;
    memset(&p, 0, sizeof p);
    int code = cli_index_open(n->app, n->base_path, &index);
    if (code < 0) code = run(n, &index, &p, &bitmap);
    cli_points_drop(&p);
    cli_index_close(&index);
    free(bitmap);
    return code;
}

void cli_neighbors_print_index(const cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    const double queries = a->queries > 0 ? (double)a->queries : 1;
    cli_say(n->app, "%lld queries, %lld points, %lld dimensions: ", (long long)a->queries,
            (long long)live(n), (long long)a->dimensions);
    if (a->k > 0)
        cli_say(n->app, "%lld nearest by %s", (long long)a->k,
                gnomon_metric_name(n->options.metric));
    else
        cli_say(n->app, "%lld answers within %g by %s", (long long)a->offsets[a->queries],
                n->options.radius, gnomon_metric_name(n->options.metric));
    cli_say(n->app,
            ", of %.1f candidates per query, %.1f verified; %lld queries were answered exactly\n",
            (double)n->work.candidates / queries, (double)n->work.verified / queries,
            (long long)n->work.exact);
}

json_t *cli_neighbors_index_json(const cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    return json_pack(
        "{s:o, s:o, s:o*, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
        "index", cli_json_name(n->base_path), "queries", cli_json_name(n->queries_path), "output",
        cli_json_name(n->output), "metric", gnomon_metric_name(n->options.metric), "points",
        (json_int_t)live(n), "query_points", (json_int_t)a->queries, "dimensions",
        (json_int_t)a->dimensions, "answers",
        (json_int_t)(a->queries > 0 ? a->offsets[a->queries] : 0), "buckets",
        (json_int_t)n->work.buckets, "candidates", (json_int_t)n->work.candidates, "verified",
        (json_int_t)n->work.verified, "exact_queries", (json_int_t)n->work.exact, "read_seconds",
        cli_json_seconds(n->read_seconds), "search_seconds", cli_json_seconds(n->search_seconds),
        "write_seconds", cli_json_seconds(n->write_seconds), "queries_per_second",
        n->search_seconds > 0 ? (double)a->queries / n->search_seconds : 0.0);
}
