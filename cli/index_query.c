/* gnomon index query: neighbours by an index, written as those of gnomon neighbors are. */
#include "index.h"

#include <stdlib.h>
#include <string.h>

typedef struct query {
    cli_neighbors n;
    gnomon_lsh *index;
    gnomon_lsh_info info;
    gnomon_lsh_effort effort;
    int k_given, radius_given, tables_given, probes_given, broad_given, candidates_given,
        verified_given;
    gnomon_lsh_work work;
} query;

static int parse(query *q, int argc, char **argv)
{
    cli_neighbors *n = &q->n;
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    const cli_option what[] = {
        {.letter = 'k',
         .type = CLI_INT,
         .target = &n->options.k,
         .given = &q->k_given,
         .low = 1,
         .value = "K",
         .help = "the K nearest points of each query"},
        {.name = "radius",
         .type = CLI_REAL,
         .target = &n->options.radius,
         .given = &q->radius_given,
         .reals = CLI_FINITE,
         .value = "R",
         .help = "all points found at distance R or less"},
        {.name = "exclude-self",
         .type = CLI_FLAG,
         .target = &n->exclude_self,
         .flag = 1,
         .help = "query i is point i, which is left out of its own answers"},
    };
    const cli_option effort[] = {
        {.name = "tables",
         .type = CLI_INT,
         .target = &q->effort.tables,
         .given = &q->tables_given,
         .value = "L",
         .help = "look into the first L tables only; 0: all"},
        {.name = "probes",
         .type = CLI_INT,
         .target = &q->effort.probes,
         .given = &q->probes_given,
         .high = 1 << 24,
         .value = "N",
         .help = "buckets beside each table's own, over all tables, the likeliest first"},
        {.name = "broad-probes",
         .type = CLI_INT,
         .target = &q->effort.broad,
         .given = &q->broad_given,
         .high = 1 << 24,
         .value = "N",
         .help = "in an index with fine functions: then so many broad buckets"},
        {.name = "candidates",
         .type = CLI_INT,
         .target = &q->effort.candidates,
         .given = &q->candidates_given,
         .value = "N",
         .help = "look at no more points than that; 0: at all that are found"},
        {.name = "verified",
         .type = CLI_INT,
         .target = &q->effort.verified,
         .given = &q->verified_given,
         .value = "N",
         .help = "in an index with codes: candidates whose distances are computed; 0: all"},
    };
    cli_option output[CLI_ANSWER_OPTIONS], input_table[CLI_INPUT_OPTIONS],
        common[CLI_COMMON_OPTIONS];
    cli_answer_table(n, output);
    cli_input_table(&n->queries_input, input_table);
    cli_common_options(n->app, common);
    const cli_group groups[] = {
        CLI_GROUP("What", what), CLI_GROUP("Effort, otherwise the index's own", effort),
        CLI_GROUP("Output", output), CLI_GROUP("Input (how to read QUERIES)", input_table),
        CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = n->app->verb,
        .synopsis = "INDEX QUERIES -k K [-o OUT] [options]\n"
                    "INDEX QUERIES --radius R [-o OUT] [options]",
        .about =
            "For each point of QUERIES the nearest of those points that the index finds near "
            "it, by exact distances; a query for which it finds fewer than K is answered "
            "exactly. The index is mapped into memory, which it need not fit in; what --memory "
            "bounds are queries and answers.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "The five nearest, with distances\n"
                    "gnomon index query given.lsh queries.npy -k 5 -o found.csv\n"
                    "With more effort, and the recall against known neighbours\n"
                    "gnomon neighbors base.npy queries.npy -k 5 -o exact.npy\n"
                    "gnomon index query given.lsh queries.npy -k 5 --probes 200 --ground-truth "
                    "exact.npy\n"
                    "All within a radius\n"
                    "gnomon index query given.lsh queries.npy --radius 25 -o near.npz\n",
        .min_operands = 2,
        .max_operands = 2,
    };
    const int code = cli_parse(&verb, argc, argv, operands, &count);
    n->base_path = operands[0];
    n->queries_path = operands[1];
    return code;
}

static int check(query *q)
{
    cli_neighbors *n = &q->n;
    if (q->k_given == q->radius_given) return cli_usage(n->app, "one of -k and --radius is needed");
    if (q->radius_given && n->options.radius < 0)
        return cli_usage(n->app, "--radius %g: a distance is not negative", n->options.radius);
    if (n->truth != NULL && q->radius_given)
        return cli_usage(n->app, "--ground-truth goes with -k");
    return cli_neighbors_check_output(n);
}

/* The index's own effort, but for what is told. */
static void take_effort(query *q)
{
    gnomon_lsh_effort e = q->info.options.effort;
    if (q->tables_given) e.tables = q->effort.tables;
    if (q->probes_given) e.probes = q->effort.probes;
    if (q->broad_given) e.broad = q->effort.broad;
    if (q->candidates_given) e.candidates = q->effort.candidates;
    if (q->verified_given) e.verified = q->effort.verified;
    q->effort = e;
}

static int search(query *q, const cli_points *p)
{
    cli_neighbors *n = &q->n;
    gnomon_context *ctx = n->app->ctx;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search_options o = n->options;
    if (n->exclude_self) o.exclude = 0;
    q->work.struct_size = sizeof q->work;
    cli_bar_begin(n->app, "searching", -1);
    const double begin = cli_seconds();
    const gnomon_status status =
        p->is_sparse
            ? gnomon_lsh_query_csr(ctx, q->index, &p->sparse, &o, &q->effort, &found, &q->work)
            : gnomon_lsh_query(ctx, q->index, &p->dense, &o, &q->effort, &found, &q->work);
    n->search_seconds = cli_seconds() - begin;
    const int code =
        status == GNOMON_OK ? cli_neighbors_take(n, &found) : cli_neighbors_fail(n, status);
    gnomon_neighbors_free(ctx, &found);
    return code;
}

static int run(query *q, cli_points *p)
{
    cli_neighbors *n = &q->n;
    cli_app *app = n->app;
    const double begin = cli_seconds();
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    int code = cli_index_open(app, n->base_path, &q->index);
    if (code >= 0) return code;
    q->info.struct_size = sizeof q->info;
    gnomon_lsh_describe(q->index, &q->info);
    take_effort(q);
    n->options.metric = q->info.options.metric;
    n->answers.dimensions = q->info.options.functions.dim;
    const int sparse = n->options.metric == GNOMON_JACCARD;
    const int64_t live = q->info.points - q->info.removed;
    if (n->options.k > live)
        return cli_fail(app, CLI_EXIT_USAGE, "-k %lld: %s has %lld points", (long long)n->options.k,
                        n->base_path, (long long)live);
    code = cli_open_input(app, n->queries_path, &n->queries_input, &p->reader, &p->info);
    if (code < 0)
        code =
            cli_same_width(app, n->base_path, n->answers.dimensions, n->queries_path, p->info.cols);
    if (code < 0) code = cli_index_read(app, n->queries_path, sparse, p, &budget);
    n->read_seconds = cli_seconds() - begin;
    return code < 0 ? search(q, p) : code;
}

static void print_words(const query *q)
{
    const cli_neighbors *n = &q->n;
    const cli_answers *a = &n->answers;
    printf("%lld queries, %lld points, %lld dimensions: ", (long long)a->queries,
           (long long)(q->info.points - q->info.removed), (long long)a->dimensions);
    if (a->k > 0)
        printf("%lld nearest by %s", (long long)a->k, gnomon_metric_name(n->options.metric));
    else
        printf("%lld answers within %g by %s", (long long)a->offsets[a->queries], n->options.radius,
               gnomon_metric_name(n->options.metric));
    const double queries = a->queries > 0 ? (double)a->queries : 1;
    printf(", of %.1f candidates a query, %.1f verified; %lld queries were answered exactly\n",
           (double)q->work.candidates / queries, (double)q->work.verified / queries,
           (long long)q->work.exact);
    if (n->recall >= 0) printf("recall %.6g\n", n->recall);
}

static json_t *query_json(const query *q)
{
    const cli_neighbors *n = &q->n;
    const cli_answers *a = &n->answers;
    json_t *figures = json_pack(
        "{s:s, s:s, s:s*, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
        "index", n->base_path, "queries", n->queries_path, "output", n->output, "metric",
        gnomon_metric_name(n->options.metric), "points",
        (json_int_t)(q->info.points - q->info.removed), "query_points", (json_int_t)a->queries,
        "dimensions", (json_int_t)a->dimensions, "answers",
        (json_int_t)(a->queries > 0 ? a->offsets[a->queries] : 0), "buckets",
        (json_int_t)q->work.buckets, "candidates", (json_int_t)q->work.candidates, "verified",
        (json_int_t)q->work.verified, "exact_queries", (json_int_t)q->work.exact, "read_seconds",
        cli_json_seconds(n->read_seconds), "search_seconds", cli_json_seconds(n->search_seconds),
        "write_seconds", cli_json_seconds(n->write_seconds), "queries_per_second",
        n->search_seconds > 0 ? (double)a->queries / n->search_seconds : 0.0);
    if (figures != NULL && a->k > 0) json_object_set_new(figures, "k", json_integer(a->k));
    if (figures != NULL && a->k == 0)
        json_object_set_new(figures, "radius", json_real(n->options.radius));
    if (figures != NULL && n->recall >= 0)
        json_object_set_new(figures, "recall", json_real(n->recall));
    return figures;
}

static int work(query *q)
{
    cli_neighbors *n = &q->n;
    cli_app *app = n->app;
    cli_points p;
    memset(&p, 0, sizeof p);
    int code = run(q, &p);
    cli_bar_clear(app);
    const double begin = cli_seconds();
    if (code < 0 && n->truth != NULL) code = cli_neighbors_recall(n);
    if (code < 0 && n->output != NULL) code = cli_neighbors_write(n);
    n->write_seconds = cli_seconds() - begin;
    cli_points_drop(&p);
    if (code >= 0) return code;
    if (app->json) return cli_print_report(app, query_json(q));
    if (n->output == NULL || strcmp(n->output, "-") != 0) print_words(q);
    return cli_flush_output(app->verb);
}

int cli_index_query(int argc, char **argv)
{
    static const gnomon_search_options defaults = GNOMON_SEARCH_OPTIONS_INIT;
    static const gnomon_lsh_effort effort = GNOMON_LSH_EFFORT_INIT;
    cli_app app;
    query q;
    memset(&q, 0, sizeof q);
    cli_init(&app, "index query");
    q.n.app = &app;
    q.n.options = defaults;
    q.n.recall = -1;
    q.effort = effort;
    cli_input_init(&q.n.queries_input);
    int code = parse(&q, argc, argv);
    if (code < 0) code = check(&q);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = work(&q);
    gnomon_lsh_destroy(q.index);
    cli_neighbors_drop(&q.n);
    return cli_end(&app, code);
}
