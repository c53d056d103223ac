/* gnomon dim: the number of dimensions that the known bounds require. */
#include "cli.h"

#include <math.h>
#include <stdio.h>

const char *cli_bound_source(gnomon_bound bound)
{
    switch (bound) {
    case GNOMON_BOUND_ACHLIOPTAS:
        return "Achlioptas 2003: (4 + 2 beta) / (eps^2/2 - eps^3/3) ln n; signs, any data";
    case GNOMON_BOUND_GAUSSIAN_EXACT:
        return "exact chi-square law of gaussian operators, over all pairs";
    case GNOMON_BOUND_DASGUPTA_GUPTA:
        return "Dasgupta and Gupta 2003, as in scikit-learn: 4 / (eps^2/2 - eps^3/3) ln n";
    }
    return "";
}

static int print_words(cli_app *app, const cli_bound_options *b, double delta)
{
    printf("All distances of %lld points within a factor 1 +- %g (squared), failing with\n"
           "probability at most %.4g:\n",
           (long long)b->points, b->eps, delta);
    for (int i = GNOMON_BOUND_ACHLIOPTAS; i <= GNOMON_BOUND_DASGUPTA_GUPTA; ++i) {
        double real;
        int64_t k;
        gnomon_status status =
            gnomon_dim(app->ctx, (gnomon_bound)i, b->points, b->eps, b->beta, b->delta, &real, &k);
        if (status != GNOMON_OK) return cli_fail_status(app, status);
        printf("  k = %-9lld %-16s %s\n", (long long)k, gnomon_bound_name((gnomon_bound)i),
               cli_bound_source((gnomon_bound)i));
    }
    return cli_flush_output(app->verb);
}

static int print_json(cli_app *app, const cli_bound_options *b, double beta, double delta)
{
    json_t *bounds = json_array();
    for (int i = GNOMON_BOUND_ACHLIOPTAS; i <= GNOMON_BOUND_DASGUPTA_GUPTA; ++i) {
        double real;
        int64_t k;
        gnomon_status status =
            gnomon_dim(app->ctx, (gnomon_bound)i, b->points, b->eps, b->beta, b->delta, &real, &k);
        if (status != GNOMON_OK) {
            json_decref(bounds);
            return cli_fail_status(app, status);
        }
        json_array_append_new(bounds, json_pack("{s:s, s:f, s:I, s:s}", "bound",
                                                gnomon_bound_name((gnomon_bound)i), "real", real,
                                                "k", (json_int_t)k, "source",
                                                cli_bound_source((gnomon_bound)i)));
    }
    return cli_print_report(app, json_pack("{s:I, s:f, s:f, s:f, s:o}", "points",
                                           (json_int_t)b->points, "eps", b->eps, "beta", beta,
                                           "delta", delta, "bounds", bounds));
}

int cli_dim(int argc, char **argv)
{
    cli_app app;
    cli_bound_options b = {0};
    int operands = 0;
    cli_init(&app, "dim");
    const cli_option options[] = {
        {.name = "points",
         .type = CLI_INT,
         .target = &b.points,
         .given = &b.points_given,
         .low = 2,
         .value = "N",
         .help = "number of points"},
        {.name = "eps",
         .type = CLI_REAL,
         .target = &b.eps,
         .given = &b.eps_given,
         .reals = CLI_OPEN_UNIT,
         .value = "E",
         .help = "the distortion of squared distances that is allowed, above 0 and below 1"},
        {.name = "delta",
         .type = CLI_REAL,
         .target = &b.delta,
         .given = &b.delta_given,
         .reals = CLI_OPEN_UNIT,
         .value = "D",
         .help = "the probability of failure that is allowed (default 0.05)"},
        {.name = "beta",
         .type = CLI_REAL,
         .target = &b.beta,
         .given = &b.beta_given,
         .reals = CLI_POSITIVE,
         .value = "B",
         .help = "the same probability as delta = N^-B"},
    };
    cli_option common[CLI_COMMON_OPTIONS];
    cli_common_options(&app, common);
    const cli_group groups[] = {CLI_GROUP("Bound", options), CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app.verb,
        .synopsis = "--points N --eps E [--delta D | --beta B] [--json]",
        .about = "Prints the number of dimensions k that each known bound requires, so that a "
                 "random projection of N points keeps every squared distance within a factor 1 +- "
                 "E. The bounds do not depend on the points' own dimension.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "All distances of 60000 points within 20 %, with probability 0.95\n"
                    "gnomon dim --points 60000 --eps 0.2\n"
                    "The same with probability 0.999999\n"
                    "gnomon dim --points 60000 --eps 0.2 --delta 1e-6\n"
                    "The failure given as a power of the number of points, for a program to read\n"
                    "gnomon dim --points 256 --eps 0.2 --beta 0.9 --json\n",
    };
    int code = cli_parse(&verb, argc, argv, NULL, &operands);
    if (code >= 0) return code;
    if (!b.points_given || !b.eps_given) return cli_usage(&app, "--points and --eps are needed");
    if (b.delta_given && b.beta_given)
        return cli_usage(&app, "--delta and --beta both set the probability of failure: give one");
    code = cli_start(&app);
    if (code >= 0) return code;
    double n = (double)b.points;
    double delta = b.beta_given ? pow(n, -b.beta) : b.delta_given ? b.delta : 0.05;
    double beta = b.beta_given ? b.beta : -log(delta) / log(n);
    code = app.json ? print_json(&app, &b, beta, delta) : print_words(&app, &b, delta);
    return cli_end(&app, code);
}
