/* gnomon svd: its options, and the order of its work. */
#include "cli.h"

#include <string.h>

typedef struct request {
    cli_input_options input;
    gnomon_svd_options options;
    cli_sketch_options sketch;
    int output_dtype;
    int64_t power, test_power;
    int rank_given, tolerance_given;
    int power_given, block_given, test_power_given, oversample_given;
    const char *output, *plot;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **input)
{
    const cli_option what[] = {
        {.name = "rank",
         .letter = 'k',
         .type = CLI_INT,
         .target = &r->options.rank,
         .given = &r->rank_given,
         .low = 1,
         .value = "K",
         .help = "number of singular values; with --tolerance: the largest number"},
        {.name = "tolerance",
         .type = CLI_REAL,
         .target = &r->options.tolerance,
         .given = &r->tolerance_given,
         .reals = CLI_OPEN_UNIT,
         .value = "T",
         .help = "choose the rank so that |A - U S Vt| <= T |A| (Frobenius norm). Exit with 1 if "
                 "that is not reached"},
        {.name = "center",
         .type = CLI_FLAG,
         .target = &r->options.center,
         .flag = 1,
         .help = "factor the points less their mean: the rows of Vt are principal components; "
                 "sparse rows stay sparse"},
        {.name = "standardize",
         .type = CLI_FLAG,
         .target = &r->options.standardize,
         .flag = 1,
         .help = "implies --center: also divide each coordinate by its standard deviation (n - 1); "
                 "a constant coordinate becomes 0"},
        {.name = "single-pass",
         .type = CLI_FLAG,
         .target = &r->options.single_pass,
         .flag = 1,
         .help = "read every row once, for a pipe or data that is slow to read; less accurate"},
        {.name = "measure",
         .type = CLI_FLAG,
         .target = &r->options.measure,
         .flag = 1,
         .help = "also compute the residual exactly, with one more pass (dense data)"},
    };
    const cli_option how[] = {
        {.name = "power",
         .type = CLI_INT,
         .target = &r->power,
         .given = &r->power_given,
         .high = 100,
         .value = "Q",
         .help = "power iterations (default 6; with --tolerance as many as the singular values "
                 "need to converge); each reads the data twice; of sparse rows often fewer "
                 "passes, by a Krylov space"},
        {.name = "oversample",
         .type = CLI_INT,
         .target = &r->options.oversample,
         .given = &r->oversample_given,
         .high = (int64_t)1 << 31,
         .value = "P",
         .help = "columns of the projection beyond K (default 10, with --single-pass K + 1)"},
        {.name = "block",
         .type = CLI_INT,
         .target = &r->options.block,
         .given = &r->block_given,
         .low = 1,
         .value = "B",
         .help = "with --tolerance: columns of the first projection (default 32)"},
        {.name = "test-vectors",
         .type = CLI_INT,
         .target = &r->options.test_vectors,
         .high = 1000,
         .value = "R",
         .help = "random test vectors for the error bounds (default 10; 0: no bounds)"},
        {.name = "test-power",
         .type = CLI_INT,
         .target = &r->test_power,
         .given = &r->test_power_given,
         .high = 100,
         .value = "Q",
         .help =
             "power iterations for the bound of the spectral norm, two passes each (default 1)"},
    };
    cli_kinds_help kinds;
    const cli_sketch_words words = {
        .kind = cli_kinds_help_make(&kinds, "the kind of projection: ", (gnomon_kind)0, 0,
                                    " (default: gaussian; on the CPU with -k, 64 columns and two "
                                    "power iterations or more sjlt with 8 nonzeros)"),
        .seed = "which random operator: 0 (default) to 2^64 - 1",
        .density = "very-sparse: the probability of a nonzero (default 1/sqrt(D))",
        .nonzeros = "sjlt: nonzeros per column (default 4, or the columns if fewer)",
    };
    cli_option op_table[CLI_SKETCH_OPTIONS];
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .value = "OUT",
         .help =
             "an .npz for the arrays U (n x K), S (K) and Vt (K x D), with --center also mean (D), "
             "with --standardize also scale (D); gnomon transform reads it; - is standard output"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = cli_float_types,
         .value = "TYPE",
         .help = "the type of U, Vt and the computation, f4 or f8; otherwise f8 for f8 and 32- and "
                 "64-bit integer data and, with --center, text, else f4"},
        {.name = "plot",
         .type = CLI_TEXT,
         .target = &r->plot,
         .value = "OUT",
         .help = "draw the singular values with gnuplot to OUT.svg or OUT.png"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_sketch_table(&r->sketch, &words, op_table);
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("What", what),         CLI_GROUP("How", how),
                                CLI_GROUP("Operator", op_table), CLI_GROUP("Output", output),
                                CLI_GROUP("Input", input_table), CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "INPUT -k K [-o OUT.npz] [--power Q] [--seed N] [options]\n"
                    "INPUT --tolerance T [-k K] [-o OUT.npz] [options]",
        .about = "Computes the leading singular values and vectors of the points (n x D) by random "
                 "projection, A ~ U S Vt, with an estimate of the error and bounds on it that fail "
                 "once in a million runs. Rows may be sparse; data that does not fit in "
                 "--memory is read piece by piece, as often as needed. With --center the mean is "
                 "subtracted first: principal component analysis.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "Twenty singular values, their vectors, and the spectrum as a picture\n"
                    "gnomon svd points.npy -k 20 -o factors.npz --plot spectrum.svg\n"
                    "The rank that reaches a relative error of 20 %\n"
                    "gnomon svd points.npy --tolerance 0.2 -o factors.npz\n"
                    "Ten principal components, and the share of the variance that each explains\n"
                    "gnomon svd points.npy -k 10 --center -o factors.npz\n"
                    "The same of coordinates of different units, each with variance 1\n"
                    "gnomon svd points.npy -k 10 --standardize -o factors.npz\n"
                    "From a pipe, each row read once\n"
                    "gnomon svd - -k 20 --single-pass -o factors.npz < points.npy\n"
                    "All figures, for a program\n"
                    "gnomon svd points.npy -k 20 --measure --json\n",
        .min_operands = 1,
        .max_operands = 1,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, input, &count);
}

static int check(cli_app *app, request *r, const char *input)
{
    if (!r->rank_given && !r->tolerance_given)
        return cli_usage(app, "one of -k and --tolerance is needed");
    if (r->options.single_pass && (r->tolerance_given || r->options.measure || r->power_given ||
                                   r->block_given || r->test_power_given))
        return cli_usage(app, "--single-pass reads every row once: leave out --tolerance, "
                              "--measure, --power, --block and --test-power");
    if (r->options.single_pass && r->options.standardize)
        return cli_usage(app, "--single-pass reads every row once, and --standardize finds the "
                              "standard deviations first: leave out one of them");
    if (r->block_given && !r->tolerance_given)
        return cli_usage(app, "--block requires --tolerance");
    if (app->comm_name != NULL && r->options.single_pass)
        return cli_usage(app, "--comm: several ranks read their rows several times: leave out "
                              "--single-pass");
    int code = cli_sketch_check(app, &r->sketch);
    if (code < 0) code = cli_check_told(app, r->output != NULL || r->plot != NULL);
    if (code >= 0) return code;
    if (r->plot != NULL && !cli_is_picture(r->plot))
        return cli_usage(app, "--plot %s: the name must end in .svg or .png", r->plot);
    const cli_file files[] = {{"A", input, 0}, {"-o", r->output, 1}, {"--plot", r->plot, 1}};
    code = cli_check_apart(app, files, 3);
    if (code >= 0) return code;
    /* A GPU needs other libraries; the call tells what is missing when there is none. */
    const char *missing = gnomon_svd_missing();
    if (missing != NULL && strcmp(app->device, "cpu") == 0)
        return cli_fail(app, CLI_EXIT_USAGE, "%s", missing);
    return cli_check_arrays_output(app, r->output, input);
}

/* What of --memory the library may take, and sparse rows beside it. */
static int64_t room(const cli_app *app)
{
    return app->memory - CLI_OVERHEAD_BYTES / 2;
}

/* Whether sparse rows come piece by piece: 1, 0, or an exit code above. Those that a GPU is to
 * factor are in its memory. */
static int comes_in_pieces(cli_app *app, const request *r, const char *path,
                           const gnomon_data_info *info)
{
    const double budget = (double)room(app);
    const int elsewhere = strcmp(app->device, "auto") != 0 && strcmp(app->device, "cpu") != 0;
    if ((info->access & GNOMON_ACCESS_SEEK) == 0 || info->rows < 1 || info->nonzeros < 0 ||
        elsewhere || r->options.single_pass)
        return 0;
    const double held = 32.0 * (double)info->nonzeros + 16.0 * (double)info->rows;
    if (r->options.tolerance > 0) return held > 0.5 * budget;
    const double bytes =
        (double)gnomon_svd_memory(app->ctx, info->rows, info->cols, info->dtype, &r->options);
    if (bytes < 0) return held > 0.5 * budget; /* the call tells what is wrong */
    if (bytes > budget)
        return cli_fail(app, CLI_EXIT_MEMORY,
                        "%s: the factors of %lld x %lld points, and the work, need %s", path,
                        (long long)info->rows, (long long)info->cols,
                        cli_memory_words(bytes + (double)CLI_OVERHEAD_BYTES / 2).text);
    return bytes + held > budget;
}

/* The type in which dense rows are handed over: means are taken of the numbers as they are stored,
 * whatever the work's type. */
static gnomon_dtype held_type(const request *r, const gnomon_data_info *info)
{
    const gnomon_dtype stored = cli_work_dtype(0, info);
    return r->options.center && stored == GNOMON_F64 ? GNOMON_F64
                                                     : cli_work_dtype(r->output_dtype, info);
}

/* The same on one of several ranks, with its own rows. */
static int factor_divided(cli_app *app, request *r, const char *path, cli_points *p,
                          cli_rank_rows *rows, gnomon_svd *svd, cli_svd_facts *facts)
{
    const gnomon_dtype held = held_type(r, &p->info);
    const double begin = cli_seconds();
    gnomon_status status;
    r->options.dtype = cli_work_dtype(r->output_dtype, &p->info);
    r->options.comm = &app->comm;
    const int code = cli_rank_rows_hold(rows, path, held, app->memory - CLI_OVERHEAD_BYTES, p);
    if (code >= 0) return code;
    if (rows->is_sparse) {
        status = gnomon_svd_csr(app->ctx, &rows->sparse, &r->options, svd);
    } else if (rows->streams) {
        const gnomon_svd_rows stream = cli_rank_rows_stream(rows, held);
        status = gnomon_svd_stream(app->ctx, &stream, &r->options, svd);
    } else {
        status = gnomon_svd_dense(app->ctx, &p->dense, &r->options, svd);
    }
    facts->held = rows->is_sparse ? "sparse" : rows->streams ? "pieces" : "memory";
    facts->read_seconds = rows->seconds;
    facts->svd_seconds = cli_seconds() - begin - rows->seconds;
    return cli_rank_rows_end(app, status, path);
}

/* Reads and factors. -1 or an exit code. */
static int factor(cli_app *app, request *r, const char *path, cli_points *p, gnomon_svd *svd,
                  cli_svd_facts *facts)
{
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    const gnomon_dtype dtype = cli_work_dtype(r->output_dtype, &p->info);
    const int sparse = (p->info.access & GNOMON_ACCESS_SPARSE) != 0;
    const gnomon_dtype held = held_type(r, &p->info);
    const int can_seek = (p->info.access & GNOMON_ACCESS_SEEK) != 0;
    const double bytes = cli_dense_bytes(&p->info, held);
    const int streams = !sparse && (r->options.single_pass ||
                                    (can_seek && bytes >= 0 && bytes > 0.5 * (double)budget));
    const double begin = cli_seconds();
    gnomon_status status;
    r->options.dtype = dtype;
    const int pieces = sparse ? comes_in_pieces(app, r, path, &p->info) : 0;
    if (pieces > 1) return pieces;
    if (streams || pieces) {
        cli_stream s = {p->reader, 0};
        facts->held = "pieces";
        if (sparse) {
            const gnomon_svd_sparse_rows rows = cli_stream_sparse(&s, &p->info);
            status = gnomon_svd_csr_stream(app->ctx, &rows, &r->options, svd);
        } else {
            const gnomon_svd_rows rows = cli_stream_rows(&s, &p->info, held);
            status = gnomon_svd_stream(app->ctx, &rows, &r->options, svd);
        }
        facts->read_seconds = s.seconds;
        facts->svd_seconds = cli_seconds() - begin - s.seconds;
        return cli_fail_of_file(app, status, path);
    }
    p->wanted = held;
    int code = cli_points_read(app, path, 1, p, &budget);
    if (code < 0 && !cli_points_at_end(p))
        code = cli_points_too_large(app, path, 2.0 * (double)app->memory);
    if (code >= 0) return code;
    facts->held = sparse ? "sparse" : "memory";
    facts->read_seconds = cli_seconds() - begin;
    status = sparse ? gnomon_svd_csr(app->ctx, &p->sparse, &r->options, svd)
                    : gnomon_svd_dense(app->ctx, &p->dense, &r->options, svd);
    facts->svd_seconds = cli_seconds() - begin - facts->read_seconds;
    return cli_fail_of_file(app, status, path);
}

static int write_factors(cli_app *app, const char *path, const gnomon_svd *svd)
{
    const gnomon_named_array arrays[] = {
        {"U", svd->u, 0},
        {"S", gnomon_matrix_rowmajor(svd->s, GNOMON_F64, 1, svd->rank), 1},
        {"Vt", svd->vt, 0},
        {"mean", gnomon_matrix_rowmajor(svd->mean, GNOMON_F64, 1, svd->cols), 1},
        {"scale", gnomon_matrix_rowmajor(svd->scale, GNOMON_F64, 1, svd->cols), 1},
    };
    gnomon_status status =
        gnomon_write_npz(app->ctx, path, arrays, 3 + svd->centered + svd->standardized);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

/* Writes and reports. An exit code. */
static int finish(cli_app *app, const request *r, cli_svd_facts *facts)
{
    const double begin = cli_seconds();
    int code = r->output != NULL ? write_factors(app, r->output, facts->svd) : -1;
    facts->write_seconds = cli_seconds() - begin;
    if (code < 0 && r->plot != NULL) code = cli_plot_spectrum(app, r->plot, facts);
    if (code >= 0) return code;
    if (!app->json) cli_svd_words(app, facts);
    return cli_factor_end(app, app->json ? cli_svd_json(app, facts) : NULL, facts->svd->converged,
                          facts->tolerance);
}

/* What all ranks open. */
typedef struct opening {
    cli_app *app;
    request *r;
    const char *path;
    cli_points *p;
    cli_rank_rows rows; /* of one of several ranks */
} opening;

static int open_points(void *user)
{
    opening *o = user;
    int code = cli_open_input(o->app, o->path, &o->r->input, &o->p->reader, &o->p->info);
    if (code < 0 && o->app->comm.size > 1)
        code = cli_rank_rows_begin(o->app, o->path, o->p, gnomon_svd_rank_rows, &o->rows);
    return code;
}

static int work(cli_app *app, request *r, const char *path, cli_points *p, gnomon_svd *svd)
{
    cli_svd_facts facts = {.input = path,
                           .output = r->output,
                           .info = &p->info,
                           .svd = svd,
                           .test_power = r->options.single_pass ? 0 : r->options.test_power,
                           .tolerance = r->options.tolerance};
    opening o = {app, r, path, p, {0}};
    int code = cli_comm_begin(app, open_points, &o);
    if (code >= 0) return code;
    cli_bar_begin(app, "passes", -1);
    cli_bar_at(app, 0, 1);
    code = app->comm.size > 1 ? factor_divided(app, r, path, p, &o.rows, svd, &facts)
                              : factor(app, r, path, p, svd, &facts);
    cli_bar_clear(app);
    cli_rank_rows_drop(&o.rows);
    if (code >= 0) return code;
    return cli_rank_done(app, app->comm.rank == 0 ? finish(app, r, &facts) : -1);
}

int cli_svd(int argc, char **argv)
{
    static const gnomon_svd_options defaults = GNOMON_SVD_OPTIONS_INIT;
    cli_app app;
    request r;
    cli_points points;
    gnomon_svd svd = {.struct_size = sizeof svd};
    const char *path = NULL;
    memset(&r, 0, sizeof r);
    memset(&points, 0, sizeof points);
    cli_init(&app, "svd");
    cli_input_init(&r.input);
    r.options = defaults;
    cli_sketch_init(&r.sketch, GNOMON_GAUSSIAN);
    r.power = defaults.power;
    r.test_power = defaults.test_power;
    int code = parse(&app, &r, argc, argv, &path);
    if (code < 0) code = check(&app, &r, path);
    if (code >= 0) return code;
    if (r.options.standardize) r.options.center = 1;
    /* What no power iteration sharpens wants more columns (Tropp et al. 2017). */
    if (r.options.single_pass && !r.oversample_given) r.options.oversample = r.options.rank + 1;
    if (r.options.center)
        r.input.text_dtype = GNOMON_F64; /* few digits may be left beside a mean */
    r.options.power = (int)r.power;
    r.options.test_power = (int)r.test_power;
    r.options.seed = r.sketch.descriptor.seed;
    if (r.sketch.kind_given) {
        r.options.descriptor = &r.sketch.descriptor;
        r.options.seed = 0;
    }
    app.working = room(&app);
    code = cli_start(&app);
    if (code < 0) code = work(&app, &r, path, &points, &svd);
    gnomon_svd_free(app.ctx, &svd);
    cli_points_drop(&points);
    return cli_end(&app, code);
}
