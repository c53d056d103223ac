/* gnomon index query: gnomon neighbors by an index, with search parameters told. */
#include "verbs/index/index.h"

#include <string.h>

typedef struct given {
    int k, radius;
} given;

static int parse(cli_neighbors *n, given *g, int argc, char **argv)
{
    cli_search_params *e = &n->search_params;
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    const cli_option what[] = {
        {.letter = 'k',
         .type = CLI_INT,
         .target = &n->options.k,
         .given = &g->k,
         .low = 1,
         .value = "K",
         .help = "the K nearest points of each query"},
        {.name = "radius",
         .alias = "threshold",
         .type = CLI_REAL,
         .target = &n->options.radius,
         .given = &g->radius,
         .reals = CLI_FINITE,
         .value = "R",
         .help = "all points found at distance R or less"},
        {.name = "exclude-self",
         .type = CLI_FLAG,
         .target = &n->exclude_self,
         .flag = 1,
         .help = "query i is point i: leave it out of its own answers"},
    };
    const cli_option params[] = {
        {.name = "tables",
         .alias = "bands",
         .type = CLI_INT,
         .target = &e->value.tables,
         .given = &e->tables,
         .value = "L",
         .help = "search the first L tables only; 0: all"},
        {.name = "probes",
         .type = CLI_INT,
         .target = &e->value.probes,
         .given = &e->probes,
         .high = 1 << 24,
         .value = "N",
         .help = "buckets probed in addition to the query's own, over all tables, the likeliest "
                 "first"},
        {.name = "coarse-probes",
         .type = CLI_INT,
         .target = &e->value.coarse,
         .given = &e->coarse,
         .high = 1 << 24,
         .value = "N",
         .help = "in an index with fine functions: coarse buckets probed after the fine ones"},
        {.name = "candidates",
         .type = CLI_INT,
         .target = &e->value.candidates,
         .given = &e->candidates,
         .value = "N",
         .help = "the most candidates to consider; 0: all that are found"},
        {.name = "rerank",
         .type = CLI_INT,
         .target = &e->value.rerank,
         .given = &e->rerank,
         .value = "N",
         .help = "in an index with codes: candidates reranked by exact distances; 0: all"},
        {.name = "recall",
         .type = CLI_REAL,
         .target = &e->wanted,
         .given = &e->recall,
         .reals = CLI_OPEN_UNIT,
         .value = "SHARE",
         .help = "in an index of RaBitQ codes: each neighbour is found with at least this "
                 "probability, by the law of uniform rotations (default: exact answers)"},
    };
    cli_option output[CLI_ANSWER_OPTIONS], input_table[CLI_INPUT_OPTIONS],
        common[CLI_COMMON_OPTIONS];
    cli_answer_table(n, output);
    cli_input_table(&n->queries_input, input_table);
    cli_common_options(n->app, common);
    const cli_group groups[] = {
        CLI_GROUP("What", what), CLI_GROUP("Search parameters, otherwise the index's own", params),
        CLI_GROUP("Output", output), CLI_GROUP("Input (how to read QUERIES)", input_table),
        CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = n->app->verb,
        .synopsis = "INDEX QUERIES -k K [-o OUT] [options]\n"
                    "INDEX QUERIES --radius R [-o OUT] [options]",
        .about = "For each point of QUERIES, reports the nearest of the candidates that the index "
                 "finds, by exact distances. A query with fewer than K candidates is answered by "
                 "exact search, and all queries of an inverted index are, and those of RaBitQ "
                 "codes without --recall and --rerank. The index is mapped and "
                 "may be larger than memory; --memory bounds "
                 "the memory for queries and answers.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples =
            "The five nearest, with distances\n"
            "gnomon index query given.lsh queries.npy -k 5 -o found.csv\n"
            "More probes, and the recall against known neighbours\n"
            "gnomon neighbors base.npy queries.npy -k 5 -o exact.npy\n"
            "gnomon index query given.lsh queries.npy -k 5 --probes 200 --ground-truth exact.npy\n"
            "By codes, to a recall\n"
            "gnomon index build base.npy --rabitq 4 -o base.rbq\n"
            "gnomon index query base.rbq queries.npy -k 5 --recall 0.9 -o found.csv\n"
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

static int check(cli_neighbors *n, const given *g)
{
    if (g->k == g->radius)
        return cli_usage(n->app, "one of -k and %s is needed", cli_option_of("radius"));
    if (g->radius && n->options.radius < 0)
        return cli_usage(n->app, "%s %g: a distance is not negative", cli_option_of("radius"),
                         n->options.radius);
    if (n->truth != NULL && g->radius) return cli_usage(n->app, "--ground-truth requires -k");
    return cli_neighbors_check_output(n);
}

int cli_index_query(int argc, char **argv)
{
    static const gnomon_search_options defaults = GNOMON_SEARCH_OPTIONS_INIT;
    static const gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
    cli_app app;
    cli_neighbors n;
    given g = {0};
    memset(&n, 0, sizeof n);
    cli_init(&app, "index query");
    n.app = &app;
    n.options = defaults;
    n.recall = -1;
    n.by_index = 1;
    n.search_params.value = params;
    cli_input_init(&n.queries_input);
    int code = parse(&n, &g, argc, argv);
    if (code < 0) code = check(&n, &g);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = cli_neighbors_finish(&n, cli_neighbors_by_index(&n));
    cli_neighbors_drop(&n);
    return cli_end(&app, code);
}
