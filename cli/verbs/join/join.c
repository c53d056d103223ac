/* gnomon join: its options, and the order of its work. */
#include "verbs/join/join.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct given {
    int metric, method, top, max_pairs, ngram, char_ngram;
    int recall, seed;
    int64_t characters;
} given;

static int parse(cli_join *j, given *g, int argc, char **argv, const char **operands, int *count)
{
    char similarity[160];
    snprintf(similarity, sizeof similarity,
             "instead: pairs of similarity S or more (1 - distance), with %s",
             cli_metrics_that(GNOMON_METRIC_JOINS | GNOMON_METRIC_SIMILARITY).text);
    const cli_option what[] = {
        {.name = "threshold",
         .alias = "radius",
         .letter = 't',
         .type = CLI_REAL,
         .target = &j->options.threshold,
         .given = &j->threshold_given,
         .reals = CLI_FINITE,
         .value = "T",
         .help = "pairs at distance T or less; with ip: of product T or more. 0: duplicates"},
        {.name = "similarity",
         .type = CLI_REAL,
         .target = &j->similarity,
         .given = &j->similarity_given,
         .reals = CLI_FINITE,
         .value = "S",
         .help = similarity},
        {.name = "metric",
         .type = CLI_CHOICE,
         .target = &g->metric,
         .value = "METRIC",
         .choices = cli_metrics(GNOMON_METRIC_JOINS),
         .help = cli_metrics_help(GNOMON_METRIC_JOINS)},
        {.name = "top",
         .type = CLI_INT,
         .target = &j->options.top,
         .given = &g->top,
         .low = 1,
         .value = "N",
         .help = "the N closest pairs (within T or S if given), closest first"},
        {.name = "max-pairs",
         .type = CLI_INT,
         .target = &j->options.max_pairs,
         .given = &g->max_pairs,
         .low = 1,
         .value = "N",
         .help = "stop after N pairs, and report the row to continue from"},
        {.name = "from-row",
         .type = CLI_INT,
         .target = &j->options.first_row,
         .value = "ROW",
         .help = "only pairs whose first point is ROW or later, to continue an earlier run"},
    };
    static const cli_choice methods[] = {{"auto", GNOMON_JOIN_AUTO},
                                         {"exact", GNOMON_JOIN_EXACT},
                                         {"lsh", GNOMON_JOIN_LSH},
                                         {NULL, 0}};
    const cli_option guarantee[] = {
        {.name = "recall",
         .type = CLI_REAL,
         .target = &j->options.recall,
         .given = &g->recall,
         .reals = CLI_OPEN_UNIT,
         .value = "R",
         .help = "find at least a share R of the pairs, in at least 19 of 20 runs, by hashing if "
                 "that is faster; no wrong pair is reported"},
        {.name = "method",
         .type = CLI_CHOICE,
         .target = &g->method,
         .choices = methods,
         .value = "METHOD",
         .help =
             "with --recall: auto (default, by a cost model; --json reports why), exact or lsh"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &j->options.seed,
         .given = &g->seed,
         .value = "N",
         .help = "with --recall: the seed of the hash functions, 0 (default) to 2^64 - 1"},
    };
    static const cli_choice texts[] = {
        {"lines", CLI_TEXT_LINES}, {"files", CLI_TEXT_FILES}, {NULL, 0}};
    const cli_option text[] = {
        {.name = "text",
         .type = CLI_CHOICE,
         .target = &j->text,
         .value = "WHAT",
         .choices = texts,
         .help = "P is text: the lines of a file, or all files of a folder, compared by the "
                 "Jaccard distance of their n-grams. Without -o pairs go to standard output as "
                 ".tsv; files are named by their paths"},
        {.name = "ngram",
         .type = CLI_INT,
         .target = &j->ngram.length,
         .given = &g->ngram,
         .low = 1,
         .high = 64,
         .value = "N",
         .help = "a text is the set of its n-grams of N words (default 3)"},
        {.name = "char-ngram",
         .type = CLI_INT,
         .target = &g->characters,
         .given = &g->char_ngram,
         .low = 1,
         .high = 64,
         .value = "N",
         .help = "a text is the set of its n-grams of N characters (UTF-8; white space counts as "
                 "one space)"},
    };
    static const cli_choice values[] = {
        {"distance", CLI_DISTANCE}, {"similarity", CLI_SIMILARITY}, {NULL, 0}};
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &j->output,
         .value = "OUT",
         .help = "a .csv or .tsv (a line of names, then i, j, distance), .npz or .mtx (a sparse "
                 "matrix of distances, as scipy.sparse reads it), or i and j alone (.npy, .ivecs); "
                 "- is standard output"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &j->format,
         .flag = 1,
         .value = "FORMAT",
         .help = "otherwise by OUT's ending, which must be a format's; npy without one"},
        {.name = "distances",
         .type = CLI_TEXT,
         .target = &j->distances,
         .value = "OUT",
         .help = "with i and j alone: a file for the distances, such as .npy or .fvecs"},
        {.name = "values",
         .type = CLI_CHOICE,
         .target = &j->values,
         .choices = values,
         .value = "WHAT",
         .help = "distance (default), or similarity (1 - distance) with cosine and jaccard: in a "
                 "sparse matrix the zero distance of equal points would be dropped, the similarity "
                 "1 is kept"},
        {.name = "names",
         .type = CLI_TEXT,
         .target = &j->p_names_path,
         .value = "FILE",
         .help = "names of P's points, one per line, for additional columns of .csv and .tsv"},
        {.name = "q-names",
         .type = CLI_TEXT,
         .target = &j->q_names_path,
         .value = "FILE",
         .help = "names of Q's points"},
        {.name = "count",
         .type = CLI_FLAG,
         .target = &j->count_only,
         .flag = 1,
         .help = "count the pairs only, without -o"},
        {.name = "counts",
         .type = CLI_TEXT,
         .target = &j->counts,
         .value = "OUT",
         .help = "the number of pairs of each point of P: columns id and pairs in .csv and .tsv, "
                 "else one number per row"},
        {.name = "clusters",
         .type = CLI_TEXT,
         .target = &j->clusters,
         .value = "OUT",
         .help = "the clusters (connected components) of the pairs: for each point its cluster's "
                 "number and its representative, the point with the most pairs; .csv and .tsv also "
                 "have the point's id"},
    };
    const cli_option further[] = {
        {.name = "checkpoint",
         .type = CLI_TEXT,
         .target = &j->checkpoint,
         .value = "FILE",
         .help = "keep the progress in FILE and the pairs in FILE.pairs, so that the same command "
                 "continues after an interruption or a full disk"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_table(&j->p_input, input_table);
    cli_common_options(j->app, common);
    const cli_group groups[] = {
        CLI_GROUP("What", what),          CLI_GROUP("Recall guarantee", guarantee),
        CLI_GROUP("Text", text),          CLI_GROUP("Output", output),
        CLI_GROUP("Checkpoint", further), CLI_GROUP("Input (how to read P and Q)", input_table),
        CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = j->app->verb,
        .synopsis = "P [Q] --threshold T | --similarity S [--metric METRIC] [-o OUT] [options]\n"
                    "P [Q] --top N [--metric METRIC] [-o OUT] [options]\n"
                    "P --text lines|files --similarity S [--ngram N] [-o OUT] [options]",
        .about = "Finds all pairs of a point of P and a point of Q within a distance, exactly: the "
                 "pairs and the distances are those of a computation in double precision, whatever "
                 "the number of threads and the memory; or, with --recall, a guaranteed share of "
                 "the pairs. Without Q, P is joined with itself, and each pair is reported once, "
                 "with i < j. Pairs are sorted by (i, j); points count from 0. The memory stays "
                 "within --memory for any number of pairs. P and Q may be larger than memory: they "
                 "are read piece by piece.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "All pairs of one file within a distance, as text\n"
                    "gnomon join points.npy --threshold 0.5 -o pairs.csv\n"
                    "The number of pairs, and clusters of near-duplicates\n"
                    "gnomon join points.npy --threshold 0.1 --clusters clusters.csv\n"
                    "Two files, by angle, as a sparse matrix\n"
                    "gnomon join base.npy queries.npy --metric cosine --threshold 0.2 -o near.npz\n"
                    "The hundred closest pairs\n"
                    "gnomon join points.npy --top 100 -o closest.csv\n"
                    "At least 95 % of the pairs, faster where there are many points\n"
                    "gnomon join points.npy --threshold 0.5 --recall 0.95 -o pairs.npy\n"
                    "Near-duplicate lines of a text\n"
                    "gnomon join notes.txt --text lines --ngram 1 --similarity 0.5\n"
                    "Sets, and all figures for a program\n"
                    "gnomon join sparse.mtx --metric jaccard --similarity 0.7 --json\n",
        .min_operands = 1,
        .max_operands = 2,
    };
    return cli_parse(&verb, argc, argv, operands, count);
}

/* The distance that a similarity stands for. */
static int check_similarity(cli_join *j)
{
    cli_app *app = j->app;
    if (!j->similarity_given) return -1;
    if (j->threshold_given)
        return cli_usage(app, "--similarity and %s exclude each other", cli_option_of("threshold"));
    if (!cli_metric_is(j->options.metric, GNOMON_METRIC_SIMILARITY))
        return cli_usage(app, "--similarity requires --metric %s, not %s",
                         cli_metrics_that(GNOMON_METRIC_JOINS | GNOMON_METRIC_SIMILARITY).text,
                         gnomon_metric_name(j->options.metric));
    if (!(j->similarity >= -1 && j->similarity <= 1))
        return cli_usage(app, "--similarity %g: must be from -1 to 1", j->similarity);
    j->options.threshold = gnomon_similarity_threshold(j->similarity);
    j->threshold_given = 1;
    return -1;
}

static int check(cli_join *j, const given *g)
{
    cli_app *app = j->app;
    const int code = check_similarity(j);
    if (code >= 0) return code;
    if (!j->threshold_given && !g->top)
        return cli_usage(app, "one of --threshold, --similarity and --top is needed");
    if (!j->threshold_given)
        j->options.threshold =
            cli_metric_is(j->options.metric, GNOMON_METRIC_LARGER) ? -INFINITY : INFINITY;
    if (j->threshold_given && j->options.threshold < 0 &&
        !cli_metric_is(j->options.metric, GNOMON_METRIC_LARGER))
        return cli_usage(app, "%s %g: a distance is not negative", cli_option_of("threshold"),
                         j->options.threshold);
    if (g->top && (g->max_pairs || j->counts != NULL || j->clusters != NULL || j->count_only))
        return cli_usage(app, "--top excludes --max-pairs, --count, --counts and --clusters");
    if (j->count_only && j->output != NULL)
        return cli_usage(app, "--count and -o exclude each other");
    if ((g->method != GNOMON_JOIN_AUTO || g->seed) && !g->recall)
        return cli_usage(app, "--method and --seed require --recall");
    if ((g->ngram || g->char_ngram) && j->text == CLI_TEXT_NONE)
        return cli_usage(app, "--ngram and --char-ngram require --text");
    if (g->ngram && g->char_ngram)
        return cli_usage(app, "--ngram and --char-ngram exclude each other");
    if (g->char_ngram) j->ngram = (cli_ngram){g->characters, 1};
    if (j->text != CLI_TEXT_NONE && j->q_path != NULL)
        return cli_usage(app, "--text takes one file or folder: leave out Q");
    if (j->text != CLI_TEXT_NONE && j->options.metric != GNOMON_JACCARD)
        return cli_usage(app, "--text requires --metric jaccard, its default");
    if (j->checkpoint != NULL &&
        (g->top || g->max_pairs || j->options.first_row > 0 || j->text != CLI_TEXT_NONE))
        return cli_usage(app, "--checkpoint excludes --top, --max-pairs, --from-row and --text");
    if (j->checkpoint != NULL &&
        (strcmp(j->p_path, "-") == 0 || (j->q_path != NULL && strcmp(j->q_path, "-") == 0)))
        return cli_usage(app, "--checkpoint: standard input can't be read again");
    if (j->q_names_path != NULL && j->q_path == NULL) return cli_usage(app, "--q-names requires Q");
    if (j->p_names_path != NULL && j->text == CLI_TEXT_FILES)
        return cli_usage(app, "--names: the names of --text files are their paths");
    if (j->text != CLI_TEXT_NONE && j->output == NULL && !j->count_only && !app->json)
        j->output = "-";
    if (j->text != CLI_TEXT_NONE && j->output != NULL && j->format == NULL &&
        strcmp(j->output, "-") == 0)
        j->format = "tsv";
    if (j->clusters != NULL && j->q_path != NULL)
        return cli_usage(app, "--clusters is of one file's points: without Q");
    if (j->q_path != NULL && strcmp(j->p_path, "-") == 0 && strcmp(j->q_path, "-") == 0)
        return cli_usage(app, "P and Q can't both be standard input");
    return cli_join_check_output(j);
}

static int64_t second_rows(const cli_join *j)
{
    return j->q_path != NULL ? j->q_info.rows : j->p_info.rows;
}

/* Of a metric that has one. */
static double similarity_of(const cli_join *j)
{
    return j->similarity_given ? j->similarity : 1 - j->options.threshold;
}

static void print_words(const cli_join *j)
{
    const gnomon_join_result *r = &j->result;
    char how[96] = "exactly", similar[64] = "";
    if (cli_metric_is(j->options.metric, GNOMON_METRIC_SIMILARITY))
        snprintf(similar, sizeof similar, " (similarity %g or more)", similarity_of(j));
    if (r->method == GNOMON_JOIN_LSH)
        snprintf(how, sizeof how, "by hashing: at least %g %% of all, in 19 of 20 runs or more",
                 100 * r->recall);
    cli_say(j->app, "%lld %s", (long long)j->p_info.rows,
            j->text != CLI_TEXT_NONE ? "texts" : "points");
    if (j->q_path != NULL) cli_say(j->app, " and %lld", (long long)second_rows(j));
    if (j->text != CLI_TEXT_NONE)
        cli_say(j->app, ", %lld n-grams: ", (long long)j->texts.member_count);
    else
        cli_say(j->app, ", %lld dimensions: ", (long long)j->p_info.cols);
    if (j->options.top > 0)
        cli_say(j->app, "the %lld closest pairs by %s, %s.\n", (long long)r->pairs,
                gnomon_metric_name(j->options.metric), how);
    else
        cli_say(j->app, "%lld pairs %s %g%s by %s, %s.\n", (long long)r->pairs,
                cli_metric_is(j->options.metric, GNOMON_METRIC_LARGER) ? "from" : "within",
                j->options.threshold, similar, gnomon_metric_name(j->options.metric), how);
    if (j->groups != NULL)
        cli_say(j->app, "%lld clusters of two points or more, with %lld points in them.\n",
                (long long)j->cluster_count, (long long)j->clustered);
    if (!r->complete)
        cli_say(j->app,
                "Ended by --max-pairs: go on with --from-row %lld, whose pairs may come again.\n",
                (long long)r->rows_done);
}

static json_t *join_json(const cli_join *j)
{
    const gnomon_join_result *r = &j->result;
    json_t *figures = json_pack(
        "{s:o, s:o*, s:o*, s:s, s:s, s:f, s:I, s:I, s:I, s:s, s:I, s:b, s:I, s:I, s:I, s:I, s:s, "
        "s:f, s:f, s:f}",
        "p", cli_json_name(j->p_path), "q", cli_json_name(j->q_path), "output",
        cli_json_name(j->output), "metric", gnomon_metric_name(j->options.metric), "method",
        gnomon_join_method_name(r->method), "recall", r->recall, "p_points",
        (json_int_t)j->p_info.rows, "q_points", (json_int_t)second_rows(j), "dimensions",
        (json_int_t)j->p_info.cols, "dtype", cli_dtype_name(j->p_info.dtype), "pairs",
        (json_int_t)r->pairs, "complete", r->complete, "rows_done", (json_int_t)r->rows_done,
        "compared", (json_int_t)r->compared, "verified", (json_int_t)r->verified, "bands",
        (json_int_t)r->bands, "why", r->why, "read_seconds", cli_json_seconds(j->read_seconds),
        "join_seconds", cli_json_seconds(j->join_seconds), "write_seconds",
        cli_json_seconds(j->write_seconds));
    if (figures != NULL && isfinite(j->options.threshold))
        json_object_set_new(figures, "threshold", json_real(j->options.threshold));
    if (figures != NULL && isfinite(j->options.threshold) &&
        cli_metric_is(j->options.metric, GNOMON_METRIC_SIMILARITY))
        json_object_set_new(figures, "similarity", json_real(similarity_of(j)));
    if (figures != NULL && j->options.top > 0)
        json_object_set_new(figures, "top", json_integer(j->options.top));
    if (figures != NULL && j->text != CLI_TEXT_NONE) {
        json_object_set_new(figures, "ngrams", json_integer(j->texts.member_count));
        json_object_set_new(figures, "text_bytes", json_integer(j->texts.bytes));
        json_object_del(figures, "dimensions");
        json_object_del(figures, "dtype");
    }
    if (figures != NULL && j->groups != NULL) {
        json_object_set_new(figures, "clusters", json_integer(j->cluster_count));
        json_object_set_new(figures, "clustered_points", json_integer(j->clustered));
    }
    return figures;
}

static int open_files(void *user)
{
    cli_join *j = user;
    cli_app *app = j->app;
    if (app->comm_name != NULL &&
        (strcmp(j->p_path, "-") == 0 || (j->q_path != NULL && strcmp(j->q_path, "-") == 0)))
        return cli_usage(app, "--comm: each rank reads the points, and standard input can't be "
                              "read by all");
    int code = j->text == CLI_TEXT_NONE
                   ? cli_open_input(app, j->p_path, &j->p_input, &j->p.reader, &j->p_info)
                   : -1;
    if (code < 0 && j->q_path != NULL)
        code = cli_open_input(app, j->q_path, &j->q_input, &j->q.reader, &j->q_info);
    const int metric = (int)j->options.metric;
    if (code < 0 && j->text == CLI_TEXT_NONE)
        code = cli_check_bits(app, metric, j->p_path, &j->p_info);
    if (code < 0 && j->q_path != NULL) code = cli_check_bits(app, metric, j->q_path, &j->q_info);
    return code < 0 ? cli_join_prepare(j) : code;
}

static int work(cli_join *j)
{
    cli_app *app = j->app;
    int code = cli_comm_begin(app, open_files, j);
    if (code < 0) code = cli_join_work(j);
    cli_bar_clear(app);
    if (code >= 0) return code;
    const double begin = cli_seconds();
    code = cli_comm_agree(app, cli_join_write(j));
    j->write_seconds += cli_seconds() - begin;
    if (code >= 0) return code;
    if (app->comm.rank > 0) return CLI_EXIT_DONE;
    cli_checkpoint_remove(&j->kept);
    if (app->json) return cli_print_report(app, join_json(j));
    code = cli_flush_output(app->verb); /* pairs of texts, by name */
    if (code == CLI_EXIT_DONE) print_words(j);
    return code;
}

int cli_join_run(int argc, char **argv)
{
    static const gnomon_join_options defaults = GNOMON_JOIN_OPTIONS_INIT;
    cli_app app;
    cli_join j;
    given g = {0};
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    memset(&j, 0, sizeof j);
    cli_init(&app, "join");
    j.app = &app;
    j.options = defaults;
    j.ngram.length = 3;
    cli_input_init(&j.p_input);
    int code = parse(&j, &g, argc, argv, operands, &count);
    if (code >= 0) return code;
    j.q_input = j.p_input;
    j.p_path = operands[0];
    j.q_path = count > 1 ? operands[1] : NULL;
    if (g.metric == 0) g.metric = j.text != CLI_TEXT_NONE ? GNOMON_JACCARD : GNOMON_L2;
    j.options.metric = (gnomon_metric)g.metric;
    j.options.method = (gnomon_join_method)g.method;
    code = check(&j, &g);
    if (code >= 0) return code;
    /* half for the points, half for the work */
    app.working = (app.memory - CLI_OVERHEAD_BYTES) / 2;
    code = cli_start(&app);
    if (app.comm.rank > 0) /* rank 0 writes */
        j.output = j.distances = j.counts = j.clusters = NULL;
    if (code < 0) code = work(&j);
    cli_pairs_drop(&j.pairs);
    cli_checkpoint_drop(&j.kept);
    gnomon_clusters_destroy(j.groups);
    cli_join_drop_rows(&j);
    cli_points_drop(&j.p);
    cli_points_drop(&j.q);
    cli_texts_drop(&j.texts);
    cli_names_drop(&j.p_names);
    cli_names_drop(&j.q_names);
    free(j.point_counts);
    return cli_end(&app, code);
}
