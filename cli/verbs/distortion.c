/* gnomon distortion: how a sketch changed norms and distances. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    cli_input_options input;
    gnomon_distortion_options options;
    const char *plot;
    int64_t pairs;
    double max_outside;
    int max_outside_given, histogram;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **operands)
{
    const cli_option measure[] = {
        {.name = "eps",
         .type = CLI_REAL,
         .target = &r->options.eps,
         .reals = CLI_OPEN_UNIT,
         .value = "E",
         .help = "report the share of distortions outside +-E (default 0.1)"},
        {.name = "pairs",
         .type = CLI_INT,
         .target = &r->pairs,
         .low = 1,
         .value = "N",
         .help = "measure all pairs if there are at most N, else a random sample of N (default "
                 "1000000)"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &r->options.seed,
         .value = "N",
         .help = "the seed of the sample (default 0)"},
        {.name = "max-outside",
         .type = CLI_REAL,
         .target = &r->max_outside,
         .given = &r->max_outside_given,
         .reals = CLI_CLOSED_UNIT,
         .value = "SHARE",
         .help = "exit with 1 if more than this share of the distances lies outside +-E"},
    };
    const cli_option pictures[] = {
        {.name = "plot",
         .type = CLI_TEXT,
         .target = &r->plot,
         .value = "OUT",
         .help = "draw both histograms with gnuplot to OUT.svg or OUT.png"},
        {.name = "histogram",
         .type = CLI_FLAG,
         .target = &r->histogram,
         .flag = 1,
         .help = "print the distances' histogram as text too"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Measure", measure), CLI_GROUP("Pictures", pictures),
                                CLI_GROUP("Input (how to read ORIGINAL)", input_table),
                                CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "ORIGINAL SKETCH [--pairs N] [--eps E] [--plot OUT.svg|.png] [--json]",
        .about = "Compares points with their sketch: the distortion |Sx|^2/|x|^2 - 1 of squared "
                 "norms and of squared distances between pairs of points, in double precision. "
                 "Both files are held in memory.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "The report in words\n"
                    "gnomon distortion points.npy sketch.npy\n"
                    "How many distances change by more than 30 %, of 100000 pairs, with a picture\n"
                    "gnomon distortion points.npy sketch.npy --eps 0.3 --pairs 100000 --plot "
                    "distortion.svg\n"
                    "A check for a script: at most half of the distances outside 20 %\n"
                    "gnomon distortion points.npy sketch.npy --eps 0.2 --max-outside 0.5\n"
                    "All figures, for a program\n"
                    "gnomon distortion points.npy sketch.npy --json\n",
        .min_operands = 2,
        .max_operands = 2,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, operands, &count);
}

static int fail_measure(cli_app *app, gnomon_status status, const char *const *paths,
                        const cli_points *original, const cli_points *sketch)
{
    const cli_points *files[] = {original, sketch};
    for (int f = 0; f < 2 && status == GNOMON_ERROR_NONFINITE; ++f) {
        int64_t row = 0, col = 0;
        if (!files[f]->is_sparse && gnomon_matrix_check_finite(app->ctx, &files[f]->dense, &row,
                                                               &col) == GNOMON_ERROR_NONFINITE)
            return cli_fail(app, CLI_EXIT_DATA,
                            "%s: NaN or infinity in row %lld, column %lld (both counted from 0)",
                            paths[f], (long long)row, (long long)col);
    }
    return cli_fail_status(app, status);
}

static void print_percent(double share)
{
    printf("  %12.3f %%", 100 * share);
}

static void print_line(const char *name, double norms, double distances)
{
    printf("  %-26s", name);
    print_percent(norms);
    print_percent(distances);
    putchar('\n');
}

static void print_words(const request *r, const cli_points *original, const cli_points *sketch,
                        const gnomon_distortion *norms, const gnomon_distortion *pairs, int all)
{
    static const char *const quantile_names[] = {
        "0.1 % quantile", "1 % quantile",  "5 % quantile",  "25 % quantile",  "median",
        "75 % quantile",  "95 % quantile", "99 % quantile", "99.9 % quantile"};
    char name[64];
    double n = (double)sketch->dense.rows;
    printf("%lld points, %lld dimensions to %lld. Distortion of squared norms and distances:\n",
           (long long)sketch->dense.rows, (long long)original->info.cols,
           (long long)sketch->dense.cols);
    printf("  %-26s  %14s  %14s\n", "", "norms", "distances");
    printf("  %-26s  %14lld  %14lld\n", "measured", (long long)norms->count,
           (long long)pairs->count);
    if (norms->skipped > 0 || pairs->skipped > 0)
        printf("  %-26s  %14lld  %14lld\n", "left out, being zero", (long long)norms->skipped,
               (long long)pairs->skipped);
    print_line("mean", norms->mean, pairs->mean);
    print_line("standard deviation", sqrt(norms->variance), sqrt(pairs->variance));
    print_line("mean size", norms->mean_abs, pairs->mean_abs);
    print_line("least", norms->min, pairs->min);
    for (int i = 0; i < 9; ++i)
        print_line(quantile_names[i], norms->quantile[i], pairs->quantile[i]);
    print_line("most", norms->max, pairs->max);
    snprintf(name, sizeof name, "share outside +-%g %%", 100 * r->options.eps);
    print_line(name, norms->outside, pairs->outside);
    if (norms->count > 0)
        printf("The worst norm is that of point %lld (%+.1f %%)", (long long)norms->worst_i,
               100 * (norms->worst == norms->max ? norms->worst : norms->min));
    if (pairs->count > 0)
        printf(", the worst distance that of points %lld and %lld (%+.1f %%).\n",
               (long long)pairs->worst_i, (long long)pairs->worst_j,
               100 * (pairs->worst == pairs->max ? pairs->worst : pairs->min));
    else if (norms->count > 0)
        printf(".\n");
    if (pairs->count > 0)
        printf("%.2f %% of the squared distances changed by %g %% at most.\n",
               100 * (1 - pairs->outside), 100 * r->options.eps);
    if (!all)
        printf("The distances are a sample (seed %llu) of the %.0f pairs.\n",
               (unsigned long long)r->options.seed, n * (n - 1) / 2);
    if (r->histogram && pairs->count > 0) {
        printf("\nDistortion of squared distances (* marks bars within +-%g %%):\n",
               100 * r->options.eps);
        cli_print_histogram(pairs, r->options.eps);
    }
}

static json_t *distortion_json(const gnomon_distortion *d, int is_pairs)
{
    static const char *const names[] = {"0.001", "0.01", "0.05", "0.25", "0.5",
                                        "0.75",  "0.95", "0.99", "0.999"};
    json_t *quantiles = json_object(), *bins = json_array();
    for (int i = 0; i < 9; ++i)
        json_object_set_new(quantiles, names[i], json_real(d->quantile[i]));
    for (int i = 0; i < 64; ++i)
        json_array_append_new(bins, json_integer(d->histogram[i]));
    json_t *worst_at = json_array();
    json_array_append_new(worst_at, json_integer(d->worst_i));
    if (is_pairs) json_array_append_new(worst_at, json_integer(d->worst_j));
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:{s:f, s:f, s:o}}",
                     "count", (json_int_t)d->count, "skipped", (json_int_t)d->skipped, "mean",
                     d->mean, "variance", d->variance, "mean_abs", d->mean_abs, "min", d->min,
                     "max", d->max, "worst", d->worst, "outside", d->outside, "worst_at", worst_at,
                     "quantiles", quantiles, "histogram", "low", d->histogram_low, "high",
                     d->histogram_high, "counts", bins);
}

static int report(cli_app *app, const request *r, const char *const *paths,
                  const cli_points *original, const cli_points *sketch,
                  const gnomon_distortion *norms, const gnomon_distortion *pairs, int all)
{
    json_t *figures = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:f, s:b, s:I, s:o, s:o}", "original", cli_json_name(paths[0]),
        "sketch", cli_json_name(paths[1]), "points", (json_int_t)sketch->dense.rows, "dimensions",
        (json_int_t)original->info.cols, "k", (json_int_t)sketch->dense.cols, "eps", r->options.eps,
        "all_pairs", all, "sample_seed", (json_int_t)r->options.seed, "norms",
        distortion_json(norms, 0), "distances", distortion_json(pairs, 1));
    return cli_print_report(app, figures);
}

static int measure(cli_app *app, request *r, const char *const *paths, cli_points *original,
                   cli_points *sketch)
{
    gnomon_distortion norms, pairs;
    int all = 0;
    cli_bar_begin(app, "measuring", 1);
    cli_bar_at(app, 0, 1);
    gnomon_status status =
        original->is_sparse
            ? gnomon_measure_distortion_csr(app->ctx, &original->sparse, &sketch->dense,
                                            &r->options, &norms, &pairs, &all)
            : gnomon_measure_distortion(app->ctx, &original->dense, &sketch->dense, &r->options,
                                        &norms, &pairs, &all);
    cli_bar_clear(app);
    if (status != GNOMON_OK) return fail_measure(app, status, paths, original, sketch);
    int code = -1;
    if (r->plot != NULL) code = cli_plot_distortion(app, r->plot, &norms, &pairs, r->options.eps);
    if (code >= 0) return code;
    if (app->json) {
        code = report(app, r, paths, original, sketch, &norms, &pairs, all);
    } else {
        print_words(r, original, sketch, &norms, &pairs, all);
        code = cli_flush_output(app->verb);
    }
    if (code == CLI_EXIT_DONE && r->max_outside_given && pairs.outside > r->max_outside) {
        cli_say(app, "gnomon distortion: %.4g of the distances lie outside, more than %.4g\n",
                pairs.outside, r->max_outside);
        code = CLI_EXIT_NEGATIVE;
    }
    return code;
}

static int work(cli_app *app, request *r, const char *const *paths, cli_points *original,
                cli_points *sketch)
{
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    int code = cli_points_load(app, paths[0], &r->input, 1, original, &budget);
    if (code < 0) code = cli_points_load(app, paths[1], NULL, 0, sketch, &budget);
    if (code >= 0) return code;
    if (!cli_points_at_end(original))
        return cli_points_too_large(app, paths[0], 2.0 * (double)app->memory);
    int64_t rows = original->is_sparse ? original->sparse.rows : original->dense.rows;
    if (rows != sketch->dense.rows)
        return cli_usage(app, "%s has %lld points and %s %lld: they must be the same points",
                         paths[0], (long long)rows, paths[1], (long long)sketch->dense.rows);
    return measure(app, r, paths, original, sketch);
}

int cli_distortion(int argc, char **argv)
{
    static const gnomon_distortion_options defaults = GNOMON_DISTORTION_OPTIONS_INIT;
    cli_app app;
    request r;
    cli_points original, sketch;
    const char *paths[2];
    memset(&r, 0, sizeof r);
    memset(&original, 0, sizeof original);
    memset(&sketch, 0, sizeof sketch);
    cli_init(&app, "distortion");
    cli_input_init(&r.input);
    r.options = defaults;
    r.pairs = defaults.max_pairs;
    int code = parse(&app, &r, argc, argv, paths);
    if (code >= 0) return code;
    r.options.max_pairs = r.pairs;
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
        return cli_usage(&app, "only one of the two can be standard input");
    if (r.plot != NULL) {
        if (!cli_is_picture(r.plot))
            return cli_usage(&app, "--plot %s: the name must end in .svg or .png", r.plot);
        const cli_file files[] = {{"A", paths[0], 0}, {"B", paths[1], 0}, {"--plot", r.plot, 1}};
        code = cli_check_apart(&app, files, 3);
        if (code >= 0) return code;
    }
    code = cli_start(&app);
    if (code < 0) code = work(&app, &r, paths, &original, &sketch);
    cli_points_drop(&original);
    cli_points_drop(&sketch);
    return cli_end(&app, code);
}
