/* gnomon index build and tune: an index by a recall guarantee, or with given settings. */
#include "verbs/index/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ENOUGH_QUERIES = 400 }; /* with fewer, points stand in */

typedef struct build {
    cli_app *app;
    const char *path, *queries_path, *output;
    cli_input_options input;
    int metric, family, slower, inverted;
    gnomon_lsh_guarantee guarantee;
    gnomon_lsh_options options;
    gnomon_rabitq_options coding;
    uint64_t seed;
    int k_given, radius_given, recall_given, family_given, tables_given, functions_given,
        fine_given, width_given, sides_given, centres_given, codes_given, probes_given,
        rerank_given, bits_given;
    float *centres; /* of a family that is trained */
    int64_t points;
    gnomon_data_info info;
    cli_index_file index;
    gnomon_lsh_tuning tuning;
    double read_seconds, build_seconds;
} build;

/* ---- options ---- */

enum { GUARANTEE = 7, SETTINGS = 11 };

/* high 0: no limit */
static cli_option number(const char *name, int64_t *target, int *given, int64_t low, int64_t high,
                         const char *value, const char *help)
{
    return (cli_option){.name = name,
                        .type = CLI_INT,
                        .target = target,
                        .given = given,
                        .low = low,
                        .high = high,
                        .value = value,
                        .help = help};
}

/* The same under another name. */
static cli_option also(const char *alias, cli_option option)
{
    option.alias = alias;
    return option;
}

enum { FAMILIES = 32 };

/* All families, by number. */
static void list_families(cli_choice families[FAMILIES + 1])
{
    int count = 0;
    for (int number = 1; number <= FAMILIES; number++) {
        const char *name = gnomon_lsh_family_name((gnomon_lsh_family)number);
        if (gnomon_lsh_family_from_name(name) != 0) families[count++] = (cli_choice){name, number};
    }
    families[count] = (cli_choice){NULL, 0};
}

/* "hash functions: p-stable (l2), simhash (cosine), cross-polytope (cosine); default ..." */
static const char *families_help(void)
{
    static char help[512];
    const gnomon_metric_info *info;
    gnomon_lsh_family family;
    size_t used = (size_t)snprintf(help, sizeof help, "hash functions:");
    const char *next = " ";
    for (int i = 0; (info = gnomon_metric_at(i)) != NULL; i++)
        for (int f = 0; (family = gnomon_metric_family(info->metric, f)) != 0; f++, next = ", ")
            if (used < sizeof help)
                used += (size_t)snprintf(help + used, sizeof help - used, "%s%s (%s)", next,
                                         gnomon_lsh_family_name(family), info->name);
    if (used < sizeof help)
        snprintf(help + used, sizeof help - used, "; default the metric's first");
    return help;
}

/* Those of a guarantee come first. */
static void make_table(build *b, cli_option table[GUARANTEE + SETTINGS])
{
    static cli_choice families[FAMILIES + 1];
    list_families(families);
    const cli_option options[GUARANTEE + SETTINGS] = {
        {.name = "metric",
         .type = CLI_CHOICE,
         .target = &b->metric,
         .value = "METRIC",
         .choices = cli_metrics(0),
         .help = cli_metrics_help(0)},
        {.name = "recall",
         .type = CLI_REAL,
         .target = &b->guarantee.recall,
         .given = &b->recall_given,
         .reals = CLI_OPEN_UNIT,
         .value = "SHARE",
         .help = "choose and test settings that find at least this share of the answers, with 95 % "
                 "confidence"},
        {.letter = 'k',
         .type = CLI_INT,
         .target = &b->guarantee.k,
         .given = &b->k_given,
         .low = 1,
         .value = "K",
         .help = "with --recall: the answers are the K nearest points"},
        {.name = "radius",
         .alias = "threshold",
         .type = CLI_REAL,
         .target = &b->guarantee.radius,
         .given = &b->radius_given,
         .reals = CLI_POSITIVE,
         .value = "R",
         .help = "with --recall: the answers are all points at distance R or less"},
        {.name = "queries",
         .type = CLI_TEXT,
         .target = &b->queries_path,
         .value = "FILE",
         .help = "with --recall: sample queries for tuning and testing, 400 or more (default: "
                 "points of the index)"},
        {.name = "slower",
         .type = CLI_FLAG,
         .target = &b->slower,
         .flag = 1,
         .help = "with --recall: build the index even if exact search is expected to be faster"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &b->seed,
         .value = "N",
         .help = "the seed of hash functions and samples (default 0)"},
        {.name = "family",
         .type = CLI_CHOICE,
         .target = &b->family,
         .given = &b->family_given,
         .value = "FAMILY",
         .choices = families,
         .help = families_help()},
        also("bands", number("tables", &b->options.tables, &b->tables_given, 1, 4096, "L",
                             "hash tables; with MinHash: bands")),
        also("rows", number("functions", &b->options.coarse, &b->functions_given, 1, 256, "M",
                            "hash functions per table; with MinHash: rows per band")),
        number("fine", &b->options.fine, &b->fine_given, 0, 255, "M",
               "further hash functions, which split each bucket (default 0)"),
        {.name = "width",
         .type = CLI_REAL,
         .target = &b->options.functions.width,
         .given = &b->width_given,
         .reals = CLI_POSITIVE,
         .value = "W",
         .help = "p-stable, p-stable-l1: bucket width, in the points' units"},
        number("sides", &b->options.functions.sides, &b->sides_given, 2, 4096, "S",
               "cross-polytope: directions per function (default 16)"),
        number("centres", &b->options.functions.centre_count, &b->centres_given, 2, 65536, "C",
               "k-means, spherical-k-means: lists that the points are cut into, by the nearest of "
               "so many trained centres (default: the root of the number of points)"),
        number("codes", &b->options.codes, &b->codes_given, 0, 1024, "BYTES",
               "l2, cosine: bytes of a point's code (default 0: none)"),
        number("probes", &b->options.search_params.probes, &b->probes_given, 0, 1 << 24, "N",
               "buckets that a query probes in addition to its own in each table, of k-means lists "
               "in addition to the nearest (default 0)"),
        number("rerank", &b->options.search_params.rerank, &b->rerank_given, 0, 0, "N",
               "with --codes: candidates reranked by exact distances (default 0: all)"),
        number("rabitq", &b->coding.bits, &b->bits_given, 1, 8, "BITS",
               "l2, cosine: codes of so many bits a coordinate (RaBitQ) instead of hash tables"),
    };
    memcpy(table, options, sizeof options);
}

/* Of build and of tune. */
static const cli_verb texts[] = {
    {.synopsis = "POINTS -o OUT --recall SHARE (-k K | --radius R) [options]\n"
                 "POINTS -o OUT --tables L --functions M [--width W] [options]\n"
                 "POINTS -o OUT --family k-means [--centres C] [options]\n"
                 "POINTS -o OUT --rabitq BITS [--metric METRIC] [--seed N]\n"
                 "POINTS -o OUT [options]",
     .about = "Builds an index and writes it, with the points, to one file. With --recall the "
              "settings are chosen for the points, which must fit in --memory, and the index is "
              "tested on sample queries. If no settings meet the guarantee, or exact search is "
              "faster, the command reports that, writes nothing and exits with code 1. With given "
              "settings the points are read piece by piece, and neither they nor the tables need "
              "to fit in memory; sorted runs are kept in TMPDIR, 12 bytes per point and table. "
              "By --family k-means or spherical-k-means the index has inverted lists (IVF): one of "
              "each trained centre, with the points that it is nearest to. It is trained on at "
              "most 32 points a centre, which must fit in --memory: POINTS is read twice. "
              "With --rabitq, too, the points must fit in --memory: the index has a code of each, "
              "and queries are answered exactly, or to a recall that they ask for. "
              "Without any of these, "
              "sparse points get an inverted index, whose answers are exact (l2, cosine, ip, l1); "
              "TMPDIR then holds 28 bytes per nonzero.",
     .examples =
         "At least 90 % of the five nearest, by settings that are chosen and tested\n"
         "gnomon index build base.npy -k 5 --recall 0.9 --slower -o tuned.lsh\n"
         "Given settings\n"
         "gnomon index build base.npy --tables 8 --functions 4 --width 20 --probes 16 -o "
         "given.lsh\n"
         "Inverted lists, of which a query probes eight\n"
         "gnomon index build base.npy --family k-means --centres 64 --probes 7 -o lists.lsh\n"
         "Sets\n"
         "gnomon index build sparse.mtx --metric jaccard --tables 4 --functions 2 -o sets.lsh\n"
         "Codes of four bits a coordinate\n"
         "gnomon index build base.npy --rabitq 4 -o base.rbq\n"
         "An inverted index of sparse points\n"
         "gnomon index build sparse.mtx --metric cosine -o sparse.gnx\n",
     .min_operands = 1,
     .max_operands = 1},
    {.synopsis = "POINTS (-k K | --radius R) [--recall SHARE] [-o OUT] [options]",
     .about =
         "Compares settings for the points and a recall (default 0.9). For each shape and number "
         "of tables it prints the cheapest settings that reach the recall, else those with the "
         "highest recall, with the measured recall and candidates and the cost of a query by the "
         "cost model, in microseconds on one thread. Settings that were built and tested are "
         "marked: '+' meets the guarantee, '-' does not. The exit code is 1 when exact search is "
         "faster.",
     .examples = "The settings and their costs\n"
                 "gnomon index tune base.npy -k 5 --slower\n"
                 "The same for a program\n"
                 "gnomon index tune base.npy -k 5 --recall 0.8 --slower --json\n",
     .min_operands = 1,
     .max_operands = 1},
};

static int parse(build *b, int tune, int argc, char **argv)
{
    int count = 0;
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &b->output,
         .value = "OUT",
         .help = tune ? "write the index that meets the guarantee"
                      : "the index's file; - is standard output"},
    };
    cli_option table[GUARANTEE + SETTINGS], input[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    make_table(b, table);
    cli_input_table(&b->input, input);
    cli_common_options(b->app, common);
    const cli_group what = {"What", table, GUARANTEE}, out = CLI_GROUP("Output", output),
                    settings = {"Settings, without --recall", table + GUARANTEE, SETTINGS},
                    in = CLI_GROUP("Input (how to read POINTS)", input),
                    any = CLI_GROUP("Common", common);
    const cli_group of_build[] = {out, what, settings, in, any}, of_tune[] = {what, out, in, any};
    cli_verb verb = texts[tune];
    verb.name = b->app->verb;
    verb.groups = tune ? of_tune : of_build;
    verb.group_count = tune ? 4 : 5;
    return cli_parse(&verb, argc, argv, &b->path, &count);
}

/* Option 'given' without the one that goes with it, by the names of MinHash where it has that. */
static int needs_also(cli_app *app, const char *given, const char *given_alias, const char *other,
                      const char *other_alias)
{
    const char *name = cli_option_of(given) + strlen("--");
    return cli_usage(app, "--%s needs --%s, too", name,
                     strcmp(name, given_alias) == 0 ? other_alias : other);
}

static int trained(const build *b)
{
    return b->family == GNOMON_LSH_KMEANS || b->family == GNOMON_LSH_SPHERICAL_KMEANS;
}

/* One table of one function; POINTS is read once more to train it. */
static int check_trained(build *b)
{
    cli_app *app = b->app;
    struct stat st;
    const char *name = gnomon_lsh_family_name((gnomon_lsh_family)b->family);
    const gnomon_metric metric = b->family == GNOMON_LSH_KMEANS ? GNOMON_L2 : GNOMON_COSINE;
    if (b->metric != (int)metric)
        return cli_usage(app, "--family %s is for --metric %s, not %s", name,
                         gnomon_metric_name(metric), gnomon_metric_name((gnomon_metric)b->metric));
    if (b->tables_given || b->functions_given || b->fine_given || b->width_given ||
        b->sides_given || b->codes_given || b->rerank_given)
        return cli_usage(app, "--family %s takes no other settings than --centres and --probes",
                         name);
    if (strcmp(b->path, "-") == 0 || (stat(b->path, &st) == 0 && !S_ISREG(st.st_mode)))
        return cli_usage(app, "--family %s reads POINTS twice: %s is no file", name,
                         strcmp(b->path, "-") == 0 ? "standard input" : b->path);
    b->options.tables = b->options.coarse = 1;
    b->tables_given = b->functions_given = 1;
    return -1;
}

static int check(build *b, int tune)
{
    cli_app *app = b->app;
    const char *const inputs[] = {b->path, b->queries_path};
    const int guaranteed = tune || b->recall_given;
    const int told = b->family_given + b->tables_given + b->functions_given + b->fine_given +
                     b->width_given + b->sides_given + b->centres_given + b->codes_given +
                     b->probes_given + b->rerank_given;
    if (!tune && b->output == NULL) return cli_usage(app, "-o OUT is needed");
    if (!tune && app->comm_name != NULL && (guaranteed || told == 0 || b->codes_given))
        return cli_usage(app, "--comm: several ranks build an index of dense points with given "
                              "--tables and --functions or by --family k-means, and without "
                              "--codes");
    if (b->bits_given && (guaranteed || told > 0))
        return cli_usage(app, "--rabitq excludes --recall and all other settings");
    if (guaranteed && told > 0)
        return cli_usage(
            app, "--recall chooses the settings: leave out --tables, --functions and the like");
    if (guaranteed && b->k_given == b->radius_given)
        return cli_usage(app, "with --recall one of -k and %s is needed", cli_option_of("radius"));
    if (!guaranteed && (b->k_given || b->radius_given || b->queries_path != NULL || b->slower))
        return cli_usage(app, "-k, %s, --queries and --slower require --recall",
                         cli_option_of("radius"));
    b->inverted = !guaranteed && !b->bits_given && told == 0 &&
                  cli_metric_form((gnomon_metric)b->metric) == 0;
    if (b->bits_given && b->metric != GNOMON_L2 && b->metric != GNOMON_COSINE)
        return cli_usage(app,
                         "--rabitq: there are no codes for --metric %s; l2 and cosine have them",
                         gnomon_metric_name((gnomon_metric)b->metric));
    const int hashed = !b->inverted && !b->bits_given;
    if (trained(b)) {
        const int code = check_trained(b);
        if (code >= 0) return code;
    } else if (b->centres_given) {
        return cli_usage(app, "--centres needs --family k-means or spherical-k-means");
    }
    if (!guaranteed && hashed && !b->tables_given && !b->functions_given)
        return cli_usage(app, "either --recall, or --tables and --functions are needed");
    if (!guaranteed && hashed && !b->tables_given)
        return needs_also(app, "functions", "rows", "tables", "bands");
    if (!guaranteed && hashed && !b->functions_given)
        return needs_also(app, "tables", "bands", "functions", "rows");
    if (b->queries_path != NULL && strcmp(b->path, "-") == 0 && strcmp(b->queries_path, "-") == 0)
        return cli_usage(app, "POINTS and --queries can't both be standard input");
    for (int i = 0; b->output != NULL && i < 2; i++)
        if (inputs[i] != NULL && gnomon_same_file(b->output, inputs[i]))
            return cli_usage(app, "-o %s: is also an input", b->output);
    if (b->output != NULL && strcmp(b->output, "-") == 0 && app->json)
        return cli_usage(app, "--json and -o - would mix on standard output");
    b->guarantee.metric = b->options.metric = (gnomon_metric)b->metric;
    b->guarantee.seed = b->options.functions.seed = b->seed;
    b->guarantee.slower = b->slower;
    b->coding.metric = (gnomon_metric)b->metric;
    b->coding.seed = b->seed;
    if (!hashed && !guaranteed) return -1;
    if (gnomon_metric_family(b->options.metric, 0) == 0)
        return cli_usage(app,
                         "no hash functions for --metric %s: only sparse points take it, without "
                         "--recall, --tables and --functions",
                         gnomon_metric_name(b->options.metric));
    if (b->family == 0) b->family = (int)gnomon_metric_family(b->options.metric, 0);
    b->options.functions.family = (gnomon_lsh_family)b->family;
    if (!guaranteed && !b->width_given &&
        (b->family == GNOMON_LSH_PSTABLE || b->family == GNOMON_LSH_PSTABLE_L1))
        return cli_usage(app,
                         "--metric %s with p-stable functions needs --width W above 0, or --recall",
                         gnomon_metric_name(b->options.metric));
    return -1;
}

/* ---- as told ---- */

static int train(build *b)
{
    if (!trained(b)) return -1;
    return cli_index_train(b->app, b->path, &b->input, &b->options.functions, &b->centres);
}

/* Opens what writes the index. */
static gnomon_status create(build *b, cli_builder *builder)
{
    gnomon_context *ctx = b->app->ctx;
    if (b->inverted)
        return gnomon_sparse_builder_create(ctx, b->options.metric, b->info.cols, b->output,
                                            &builder->inverted);
    b->options.functions.dim = b->info.cols;
    return gnomon_lsh_builder_create(ctx, &b->options, b->output, &builder->hashed);
}

static int build_told(build *b)
{
    cli_app *app = b->app;
    gnomon_reader *reader = NULL;
    cli_builder builder = {NULL, NULL};
    const double begin = cli_seconds();
    int code = train(b);
    if (code < 0) code = cli_open_input(app, b->path, &b->input, &reader, &b->info);
    if (code < 0) code = cli_check_bits(app, b->metric, b->path, &b->info);
    if (code < 0 && b->inverted && (b->info.access & GNOMON_ACCESS_SPARSE) == 0)
        code = cli_fail(app, CLI_EXIT_USAGE,
                        "%s: for dense points either --recall, or --tables and --functions are "
                        "needed",
                        b->path);
    if (code < 0) {
        int waiting = 0;
        gnomon_status status;
        while ((status = create(b, &builder)) == GNOMON_ERROR_BUSY && code < 0)
            code = cli_index_wait(app, b->output, &waiting);
        if (code < 0 && status != GNOMON_OK) code = cli_fail_status(app, status);
    }
    if (code < 0)
        code = cli_index_add_points(app, b->path, reader, &b->info, b->options.metric,
                                    b->options.codes > 0, &builder, &b->points);
    code = cli_index_complete(app, &builder, code);
    b->build_seconds = cli_seconds() - begin;
    gnomon_reader_close(reader);
    return code;
}

/* ---- by recall ---- */

static int load(build *b, const char *path, const cli_input_options *input, cli_points *p,
                int64_t *budget)
{
    int code = path == b->queries_path ? cli_open_queries(b->app, path, input, &p->reader, &p->info)
                                       : cli_open_input(b->app, path, input, &p->reader, &p->info);
    if (code < 0) code = cli_check_bits(b->app, b->metric, path, &p->info);
    return code < 0 ? cli_index_read(b->app, path, b->options.metric, 0, p, budget) : code;
}

/* Writes the index that was made in memory; waits while another process changes the target. */
static int save(build *b)
{
    gnomon_context *ctx = b->app->ctx;
    int waiting = 0;
    for (;;) {
        const gnomon_status status = b->index.coded != NULL
                                         ? gnomon_rabitq_save(ctx, b->index.coded, b->output)
                                         : gnomon_lsh_save(ctx, b->index.hashed, b->output);
        if (status == GNOMON_OK) return -1;
        if (status != GNOMON_ERROR_BUSY) return cli_fail_status(b->app, status);
        const int code = cli_index_wait(b->app, b->output, &waiting);
        if (code >= 0) return code;
    }
}

/* Codes of points in memory. */
static int build_coded(build *b)
{
    cli_app *app = b->app;
    cli_points points;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    memset(&points, 0, sizeof points);
    int code = load(b, b->path, &b->input, &points, &budget);
    if (code < 0 && points.dense.rows == 0)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: no points to code", b->path);
    const double begin = cli_seconds();
    gnomon_status status = GNOMON_OK;
    if (code < 0) {
        cli_bar_begin(app, "coding", -1);
        status = gnomon_rabitq_create(app->ctx, &b->coding, &points.dense, &b->index.coded);
        if (status == GNOMON_ERROR_NONFINITE || status == GNOMON_ERROR_UNSUPPORTED)
            code = cli_fail(app, CLI_EXIT_DATA, "%s: %s", b->path, gnomon_last_error(app->ctx));
    }
    if (code < 0) code = status == GNOMON_OK ? save(b) : cli_fail_status(app, status);
    b->build_seconds = cli_seconds() - begin;
    b->points = points.dense.rows;
    cli_index_close(&b->index); /* before the points that it refers to */
    cli_points_drop(&points);
    return code;
}

static int64_t rows_of(const cli_points *p)
{
    return p->is_sparse ? p->sparse.rows : p->dense.rows;
}

static int tune(build *b, const cli_points *points, const cli_points *queries, int64_t budget)
{
    cli_app *app = b->app;
    const int asked = b->queries_path != NULL && rows_of(queries) >= ENOUGH_QUERIES;
    if (b->queries_path != NULL && !asked)
        cli_say(app, "gnomon %s: %s has fewer than %d points: points of %s are used instead\n",
                app->verb, b->queries_path, ENOUGH_QUERIES, b->path);
    b->tuning.struct_size = sizeof b->tuning;
    gnomon_status status;
    if (points->is_sparse) {
        status = gnomon_lsh_tune_csr(app->ctx, &b->guarantee, &points->sparse,
                                     asked ? &queries->sparse : NULL, &b->index.hashed, &b->tuning);
    } else {
        const int64_t bytes = points->dense.rows * points->dense.cols *
                              (int64_t)gnomon_dtype_size(points->dense.dtype);
        if (budget / 2 < bytes) b->guarantee.memory = budget > 2 ? budget / 2 : 1;
        status = gnomon_lsh_tune(app->ctx, &b->guarantee, &points->dense,
                                 asked ? &queries->dense : NULL, &b->index.hashed, &b->tuning);
    }
    if (status == GNOMON_ERROR_NONFINITE)
        return cli_fail(app, CLI_EXIT_DATA, "%s: %s",
                        cli_error_about(app, "queries") ? b->queries_path : b->path,
                        gnomon_last_error(app->ctx));
    if (status == GNOMON_OK && b->index.hashed != NULL && b->output != NULL) return save(b);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

/* ---- what came of it ---- */

static void print_trials(const build *b)
{
    const gnomon_lsh_tuning *t = &b->tuning;
    printf("   family          width  tables  functions  more coarse  limit    rerank  recall  "
           "candidates  us per query      MiB\n");
    for (int64_t i = 0; i < t->trial_count; i++) {
        const gnomon_lsh_trial *x = &t->trials[i];
        char rerank[24] = "all", limit[24] = "none", functions[48];
        snprintf(functions, sizeof functions, x->fine > 0 ? "%lld+%lld" : "%lld",
                 (long long)x->functions, (long long)x->fine);
        if (x->limit > 0) snprintf(limit, sizeof limit, "%lld", (long long)x->limit);
        if (x->rerank > 0) snprintf(rerank, sizeof rerank, "%lld", (long long)x->rerank);
        printf("%c  %-14s %6.4g %7lld %10s %5lld %6lld %6s %9s %7.4f %11.1f %11.2f %8.2f\n",
               x->chosen == 2   ? '+'
               : x->chosen == 1 ? '-'
                                : ' ',
               gnomon_lsh_family_name(x->family), x->width, (long long)x->tables, functions,
               (long long)x->probes, (long long)x->coarse, limit, rerank, x->recall, x->candidates,
               x->cost / 1e3, (double)x->bytes / (1 << 20));
    }
    if (t->trial_count > 0)
        printf("exact search: %.2f us per query by the same model\n", t->exact_cost / 1e3);
}

static json_t *trials_json(const build *b)
{
    const gnomon_lsh_tuning *t = &b->tuning;
    json_t *list = json_array();
    for (int64_t i = 0; i < t->trial_count; i++) {
        const gnomon_lsh_trial *x = &t->trials[i];
        json_array_append_new(
            list,
            json_pack(
                "{s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:s}",
                "family", gnomon_lsh_family_name(x->family), "width", x->width, "sides",
                (json_int_t)x->sides, "centres", (json_int_t)x->centres, "tables",
                (json_int_t)x->tables, "functions", (json_int_t)x->functions, "fine",
                (json_int_t)x->fine, "probes", (json_int_t)x->probes, "coarse_probes",
                (json_int_t)x->coarse, "limit", (json_int_t)x->limit, "rerank",
                (json_int_t)x->rerank, "recall", x->recall, "candidates", x->candidates, "cost_us",
                x->cost / 1e3, "index_bytes", (json_int_t)x->bytes, "tested",
                x->chosen == 2   ? "kept"
                : x->chosen == 1 ? "failed"
                                 : "no"));
    }
    return list;
}

static json_t *report_json(build *b, int guaranteed, int none)
{
    const gnomon_lsh_tuning *t = &b->tuning;
    json_t *out = json_pack("{s:o*}", "input", cli_json_name(b->path));
    if (b->output != NULL) json_object_set_new(out, "output", cli_json_name(b->output));
    json_object_set_new(out, "build_seconds", json_real(cli_json_seconds(b->build_seconds)));
    if (guaranteed) {
        json_object_set_new(out, "guarantee",
                            json_pack("{s:f, s:b, s:s, s:f, s:f, s:I, s:f}", "recall",
                                      b->guarantee.recall, "kept", b->index.hashed != NULL,
                                      "reason", t->reason, "tested_recall", t->recall, "bound",
                                      t->bound, "tested", (json_int_t)t->tested, "exact_us",
                                      t->exact_cost / 1e3));
        json_object_set_new(out, "considered", trials_json(b));
    }
    return none ? out : cli_json_join(out, cli_index_json(&b->index));
}

static int report(build *b, int guaranteed, int table)
{
    cli_app *app = b->app;
    const gnomon_lsh_tuning *t = &b->tuning;
    const int none = guaranteed && b->index.hashed == NULL;
    if (b->output != NULL && strcmp(b->output, "-") == 0 && !none) return CLI_EXIT_DONE;
    if (!guaranteed) {
        const int code = cli_index_open(app, b->output, &b->index);
        if (code >= 0) return code;
    }
    if (app->json) {
        const int code = cli_print_report(app, report_json(b, guaranteed, none));
        return code == CLI_EXIT_DONE && none ? CLI_EXIT_NEGATIVE : code;
    }
    cli_bar_clear(app);
    /* tune's table is what it was asked for, build's words are about the file it wrote */
    FILE *stream = table ? stdout : stderr;
    if (table) print_trials(b);
    if (!table && app->quiet) return none ? CLI_EXIT_NEGATIVE : CLI_EXIT_DONE;
    if (none) {
        fprintf(stream, "no index: %s; gnomon neighbors searches exactly\n", t->reason);
    } else {
        cli_index_words(stream, &b->index);
        if (guaranteed)
            fprintf(stream,
                    "tested: recall %.4f over %lld queries, above %.4f with 95 %% confidence\n",
                    t->recall, (long long)t->tested, t->bound);
    }
    const int code = cli_flush_output(app->verb);
    return code == CLI_EXIT_DONE && none ? CLI_EXIT_NEGATIVE : code;
}

static int build_tuned(build *b, int table)
{
    cli_app *app = b->app;
    cli_points points, queries;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    memset(&points, 0, sizeof points);
    memset(&queries, 0, sizeof queries);
    int code = -1;
    if (b->queries_path != NULL) code = load(b, b->queries_path, NULL, &queries, &budget);
    if (code < 0) code = load(b, b->path, &b->input, &points, &budget);
    if (code < 0 && b->queries_path != NULL)
        code = cli_same_width(app, b->path, points.info.cols, b->queries_path, queries.info.cols);
    const double begin = cli_seconds();
    if (code < 0) code = tune(b, &points, &queries, budget);
    b->build_seconds = cli_seconds() - begin;
    if (code < 0) code = report(b, 1, table);
    cli_index_close(&b->index); /* before the points that it refers to */
    if (b->tuning.struct_size > 0) gnomon_lsh_tuning_free(app->ctx, &b->tuning);
    cli_points_drop(&points);
    cli_points_drop(&queries);
    return code;
}

/* ---- by several ranks ---- */

typedef struct piecewise {
    build *b;
    gnomon_reader *reader;
    gnomon_data_info info;
} piecewise;

static gnomon_status read_rows(void *user, int64_t first, const gnomon_matrix *to)
{
    piecewise *p = user;
    const gnomon_status status = gnomon_reader_seek(p->reader, first);
    return status == GNOMON_OK ? cli_read_rows(p->reader, to) : status;
}

static int open_piecewise(void *user)
{
    piecewise *p = user;
    build *b = p->b;
    int code = cli_open_input(b->app, b->path, &b->input, &p->reader, &p->info);
    if (code < 0) code = cli_check_bits(b->app, b->metric, b->path, &p->info);
    if (code < 0) code = cli_check_form(b->app, b->path, &p->info, b->options.metric);
    if (code < 0 && cli_metric_form(b->options.metric) != CLI_FORM_DENSE)
        code = cli_usage(b->app, "--comm: several ranks index dense points; %s takes others",
                         gnomon_metric_name(b->options.metric));
    if (code < 0) code = cli_comm_check_input(b->app, b->path, &p->info);
    return code < 0 ? train(b) : code; /* each the same centres */
}

static int tell_failure(build *b, gnomon_status status)
{
    if (status == GNOMON_ERROR_UNSUPPORTED) /* numbers that are too large */
        return cli_fail(b->app, CLI_EXIT_DATA, "%s: %s", b->path, gnomon_last_error(b->app->ctx));
    return cli_fail_of_file(b->app, status, b->path);
}

/* Waits, with the others, while another process changes the target. */
static int build_ranks(piecewise *p)
{
    build *b = p->b;
    cli_app *app = b->app;
    const gnomon_join_points points = {.user = p,
                                       .rows = p->info.rows,
                                       .cols = p->info.cols,
                                       .dtype = cli_held_dtype(&p->info),
                                       .read = read_rows};
    b->points = points.rows;
    b->options.functions.dim = points.cols;
    int waiting = 0, code = -1;
    gnomon_status status = GNOMON_ERROR_BUSY;
    while (code < 0 && status == GNOMON_ERROR_BUSY) {
        status = gnomon_comm_lsh_build(app->ctx, &app->comm, &b->options, &points, b->output);
        /* the ranks can't speak with each other any more */
        if (status == GNOMON_ERROR_COMM) return cli_fail_status(app, status);
        if (app->comm.rank == 0)
            code = status == GNOMON_ERROR_BUSY ? cli_index_wait(app, b->output, &waiting)
                                               : tell_failure(b, status);
        code = cli_comm_agree(app, code);
    }
    return code;
}

static int build_divided(build *b)
{
    cli_app *app = b->app;
    piecewise p = {.b = b};
    const double begin = cli_seconds();
    int code = cli_comm_begin(app, open_piecewise, &p);
    if (code < 0) {
        cli_bar_begin(app, "indexing", p.info.rows);
        code = build_ranks(&p);
    }
    b->build_seconds = cli_seconds() - begin;
    gnomon_reader_close(p.reader);
    if (code >= 0) return code;
    code = app->comm.rank == 0 ? report(b, 0, 0) : -1;
    cli_index_close(&b->index);
    return cli_rank_done(app, code);
}

static void init(build *b, cli_app *app)
{
    static const gnomon_lsh_guarantee guarantee = GNOMON_LSH_GUARANTEE_INIT;
    static const gnomon_lsh_options options = GNOMON_LSH_OPTIONS_INIT;
    static const gnomon_rabitq_options coding = GNOMON_RABITQ_OPTIONS_INIT;
    memset(b, 0, sizeof *b);
    b->coding = coding;
    b->app = app;
    b->metric = GNOMON_L2;
    b->guarantee = guarantee;
    b->options = options;
    cli_input_init(&b->input);
}

int cli_index_build(int argc, char **argv)
{
    cli_app app;
    build b;
    cli_init(&app, "index build");
    init(&b, &app);
    int code = parse(&b, 0, argc, argv);
    if (code < 0) code = check(&b, 0);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0 && app.comm.size > 1) {
        code = build_divided(&b);
    } else if (code < 0 && b.recall_given) {
        code = build_tuned(&b, 0);
    } else if (code < 0) {
        code = b.bits_given ? build_coded(&b) : build_told(&b);
        if (code < 0) code = report(&b, 0, 0);
        cli_index_close(&b.index);
    }
    free(b.centres);
    return cli_end(&app, code);
}

int cli_index_tune(int argc, char **argv)
{
    cli_app app;
    build b;
    cli_init(&app, "index tune");
    init(&b, &app);
    int code = parse(&b, 1, argc, argv);
    if (code < 0) code = check(&b, 1);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = build_tuned(&b, 1);
    return cli_end(&app, code);
}
