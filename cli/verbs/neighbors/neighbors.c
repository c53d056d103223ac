/* gnomon neighbors: its options, and the order of its work. */
#include "verbs/neighbors/neighbors.h"

#include <stdlib.h>
#include <string.h>

typedef struct given {
    int k, radius, exact, recall, seed, metric, metric_given;
    const char *index;
} given;

static int parse(cli_neighbors *n, given *g, int argc, char **argv, const char **operands,
                 int *count)
{
    const cli_option what[] = {
        {.letter = 'k',
         .type = CLI_INT,
         .target = &n->options.k,
         .given = &g->k,
         .low = 1,
         .value = "K",
         .help = "the K nearest base points of each query"},
        {.name = "radius",
         .alias = "threshold",
         .type = CLI_REAL,
         .target = &n->options.radius,
         .given = &g->radius,
         .reals = CLI_FINITE,
         .value = "R",
         .help = "all base points at distance R or less; with ip: of product R or more"},
        {.name = "metric",
         .type = CLI_CHOICE,
         .target = &g->metric,
         .given = &g->metric_given,
         .value = "METRIC",
         .choices = cli_metrics(0),
         .help = cli_metrics_help(0)},
        {.name = "exact",
         .type = CLI_FLAG,
         .target = &g->exact,
         .flag = 1,
         .help = "the answers of double precision (default)"},
        {.name = "recall",
         .type = CLI_REAL,
         .target = &n->guarantee,
         .given = &g->recall,
         .reals = CLI_OPEN_UNIT,
         .value = "SHARE",
         .help =
             "find at least this share of the answers, with 95 % confidence, by hashing: an index "
             "is tuned and tested first. Exact search is used if no index meets the guarantee or "
             "is faster"},
        {.name = "index",
         .type = CLI_TEXT,
         .target = &g->index,
         .value = "FILE",
         .help = "search an index that gnomon index built; it holds the base points, the metric "
                 "and the search parameters, so only QUERIES are given"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &n->seed,
         .given = &g->seed,
         .value = "N",
         .help = "with --recall: the seed of its hash functions and samples (default 0)"},
        {.name = "exclude-self",
         .type = CLI_FLAG,
         .target = &n->exclude_self,
         .flag = 1,
         .help = "query i is base point i: leave it out of its own answers"},
        {.name = "filter",
         .type = CLI_TEXT,
         .target = &n->filter,
         .value = "FILE",
         .help = "search only the base points whose ids are in this file; or a NumPy array of "
                 "booleans, one per base point"},
    };
    cli_option output[CLI_ANSWER_OPTIONS], input_table[CLI_INPUT_OPTIONS],
        common[CLI_COMMON_OPTIONS];
    cli_answer_table(n, output);
    cli_input_table(&n->base_input, input_table);
    cli_common_options(n->app, common);
    const cli_group groups[] = {CLI_GROUP("What", what), CLI_GROUP("Output", output),
                                CLI_GROUP("Input (how to read BASE and QUERIES)", input_table),
                                CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = n->app->verb,
        .synopsis = "BASE QUERIES -k K [--metric METRIC] [-o OUT] [options]\n"
                    "BASE QUERIES --radius R [--metric METRIC] [-o OUT] [options]\n"
                    "BASE QUERIES -k K --recall SHARE [--seed N] [-o OUT] [options]\n"
                    "QUERIES --index FILE -k K | --radius R [-o OUT] [options]",
        .about = "Finds the nearest neighbours in BASE of each point of QUERIES, exactly: the set, "
                 "the order (by distance, then id) and the distances are those of a computation in "
                 "double precision, whatever the number of threads and the memory. BASE may be "
                 "larger than memory: it is read piece by piece, and again for each group of "
                 "queries if they do not fit in --memory either. Ids count BASE's points from 0; "
                 "distances are not squared.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples =
            "The ten nearest by Euclidean distance, ids and distances\n"
            "gnomon neighbors base.npy queries.npy -k 10 -o ids.npy --distances distances.npy\n"
            "Recall against known neighbours\n"
            "gnomon neighbors base.npy queries.npy -k 5 --ground-truth ids.npy\n"
            "All pairs of one file within an angle, as text\n"
            "gnomon neighbors base.npy base.npy --radius 0.3 --metric cosine --exclude-self -o "
            "pairs.csv\n"
            "As TEXMEX files\n"
            "gnomon neighbors base.npy queries.npy -k 100 -o ids.ivecs --distances "
            "distances.fvecs\n"
            "At least 90 % of the answers, faster where there are many\n"
            "gnomon neighbors base.npy queries.npy -k 5 --recall 0.9\n"
            "With an index that is built once\n"
            "gnomon index build base.npy --tables 8 --functions 4 --width 20 --probes 16 -o "
            "given.lsh\n"
            "gnomon neighbors queries.npy --index given.lsh -k 5 -o found.csv\n"
            "Sets, and all figures for a program\n"
            "gnomon neighbors sparse.mtx sparse.mtx -k 3 --metric jaccard --exclude-self --json\n",
        .min_operands = 1,
        .max_operands = 2,
    };
    return cli_parse(&verb, argc, argv, operands, count);
}

/* What the index fixes. */
static int check_index(cli_neighbors *n, const given *g, int operands)
{
    cli_app *app = n->app;
    if (operands == 2)
        return cli_usage(app, "--index holds the base points: QUERIES alone are named beside it");
    if (g->metric_given) return cli_usage(app, "--metric: the index has its own");
    if (g->exact || g->recall)
        return cli_usage(app, "--index excludes --exact and --recall: how much of the answers it "
                              "finds was fixed when it was built");
    return -1;
}

static int check(cli_neighbors *n, const given *g, int operands)
{
    cli_app *app = n->app;
    if (n->by_index) {
        const int code = check_index(n, g, operands);
        if (code >= 0) return code;
    } else if (operands < 2) {
        return cli_usage(app, "BASE and QUERIES are needed, or QUERIES and --index");
    }
    if (g->k == g->radius)
        return cli_usage(app, "one of -k and %s is needed", cli_option_of("radius"));
    if (g->radius && n->options.radius < 0 &&
        !cli_metric_is(n->options.metric, GNOMON_METRIC_LARGER))
        return cli_usage(app, "%s %g: a distance is not negative", cli_option_of("radius"),
                         n->options.radius);
    if (g->exact && g->recall) return cli_usage(app, "--exact and --recall exclude each other");
    if (app->comm_name != NULL && (g->recall || n->by_index))
        return cli_usage(app, "--comm: several ranks search exactly: leave out --recall and "
                              "--index");
    if (g->seed && !g->recall) return cli_usage(app, "--seed requires --recall");
    if (g->recall && !cli_metric_is(n->options.metric, GNOMON_METRIC_HASHED))
        return cli_usage(app, "--recall: there are no hash functions for %s",
                         gnomon_metric_name(n->options.metric));
    if (g->recall && n->filter != NULL)
        return cli_usage(
            app, "--filter requires --exact: no recall is guaranteed for some of the points");
    if (n->truth != NULL && g->radius) return cli_usage(app, "--ground-truth requires -k");
    if (!n->by_index && strcmp(n->base_path, "-") == 0 && strcmp(n->queries_path, "-") == 0)
        return cli_usage(app, "BASE and QUERIES can't both be standard input");
    return cli_neighbors_check_output(n);
}

static void print_words(const cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    cli_say(n->app, "%lld queries, %lld base points, %lld dimensions: ", (long long)a->queries,
            (long long)a->base, (long long)a->dimensions);
    if (a->k > 0)
        cli_say(n->app, "%lld nearest by %s", (long long)a->k,
                gnomon_metric_name(n->options.metric));
    else
        cli_say(n->app, "%lld answers %s %g by %s", (long long)a->offsets[a->queries],
                cli_metric_is(n->options.metric, GNOMON_METRIC_LARGER) ? "from" : "within",
                n->options.radius, gnomon_metric_name(n->options.metric));
    if (n->guarantee > 0) {
        cli_say(n->app, ".\n");
        cli_neighbors_print_guarantee(n);
    } else {
        cli_say(n->app, ", exactly.\n");
    }
}

static json_t *neighbors_json(const cli_neighbors *n)
{
    const cli_answers *a = &n->answers;
    json_t *figures = json_pack(
        "{s:o, s:o, s:o*, s:s, s:b, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}",
        "base", cli_json_name(n->base_path), "queries", cli_json_name(n->queries_path), "output",
        cli_json_name(n->output), "metric", gnomon_metric_name(n->options.metric), "exact",
        n->index == NULL, "base_points", (json_int_t)a->base, "query_points",
        (json_int_t)a->queries, "dimensions", (json_int_t)a->dimensions, "dtype",
        cli_dtype_name(n->base_info.dtype), "answers", (json_int_t)a->offsets[a->queries],
        "compared", (json_int_t)a->compared, "verified", (json_int_t)a->verified, "query_groups",
        (json_int_t)n->groups, "read_seconds", cli_json_seconds(n->read_seconds), "search_seconds",
        cli_json_seconds(n->search_seconds), "write_seconds", cli_json_seconds(n->write_seconds),
        "queries_per_second", n->search_seconds > 0 ? (double)a->queries / n->search_seconds : 0.0);
    if (figures != NULL && a->why[0] != '\0')
        json_object_set_new(figures, "why", json_string(a->why));
    if (figures != NULL && n->guarantee > 0)
        json_object_set_new(figures, "guarantee", cli_neighbors_guarantee_json(n));
    return figures;
}

/* Recall, output and report, after a search that ended with -1 or an exit code. */
int cli_neighbors_finish(cli_neighbors *n, int code)
{
    cli_app *app = n->app;
    cli_bar_clear(app);
    if (code < 0 && app->comm.rank > 0) return CLI_EXIT_DONE;
    const double begin = cli_seconds();
    if (code < 0 && n->truth != NULL) code = cli_neighbors_recall(n);
    if (code < 0 && n->output != NULL) code = cli_neighbors_write(n);
    n->write_seconds = cli_seconds() - begin;
    if (code >= 0) return code;
    if (app->json) {
        const int64_t k = n->answers.k;
        json_t *figures = n->by_index ? cli_neighbors_index_json(n) : neighbors_json(n);
        if (figures != NULL)
            json_object_set_new(figures, k > 0 ? "k" : "radius",
                                k > 0 ? json_integer(k) : json_real(n->options.radius));
        if (figures != NULL && n->recall >= 0)
            json_object_set_new(figures, "recall", json_real(n->recall));
        return cli_print_report(app, figures);
    }
    if (n->by_index)
        cli_neighbors_print_index(n);
    else
        print_words(n);
    if (n->recall >= 0) cli_say(app, "recall %.6g\n", n->recall);
    return CLI_EXIT_DONE;
}

/* Opens both files; on all ranks. */
static int open_files(void *user)
{
    cli_neighbors *n = user;
    cli_app *app = n->app;
    int code =
        cli_open_queries(app, n->queries_path, &n->queries_input, &n->queries, &n->queries_info);
    if (code < 0) code = cli_open_input(app, n->base_path, &n->base_input, &n->base, &n->base_info);
    if (code < 0)
        code = cli_same_width(app, n->base_path, n->base_info.cols, n->queries_path,
                              n->queries_info.cols);
    const int metric = (int)n->options.metric;
    if (code < 0) code = cli_check_bits(app, metric, n->base_path, &n->base_info);
    if (code < 0) code = cli_check_bits(app, metric, n->queries_path, &n->queries_info);
    if (code < 0) code = cli_neighbors_read_names(n, n->base_info.rows, n->queries_info.rows);
    return code;
}

static int work(cli_neighbors *n)
{
    if (n->by_index) return cli_neighbors_by_index(n);
    const int code = cli_comm_begin(n->app, open_files, n);
    if (code >= 0) return code;
    return n->guarantee > 0 ? cli_neighbors_guarantee(n) : cli_neighbors_search(n);
}

int cli_neighbors_run(int argc, char **argv)
{
    static const gnomon_search_options defaults = GNOMON_SEARCH_OPTIONS_INIT;
    cli_app app;
    cli_neighbors n;
    given g = {0};
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    memset(&n, 0, sizeof n);
    cli_init(&app, "neighbors");
    n.app = &app;
    n.options = defaults;
    n.recall = -1;
    g.metric = GNOMON_L2;
    cli_input_init(&n.base_input);
    int code = parse(&n, &g, argc, argv, operands, &count);
    if (code >= 0) return code;
    n.queries_input = n.base_input;
    n.by_index = g.index != NULL;
    n.base_path = n.by_index ? g.index : operands[0];
    n.queries_path = n.by_index ? operands[0] : operands[1];
    n.options.metric = (gnomon_metric)g.metric;
    code = check(&n, &g, count);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = cli_neighbors_finish(&n, work(&n));
    cli_neighbors_drop(&n);
    return cli_end(&app, code);
}
