/* gnomon project: its options, and the order of its work. */
#include "verbs/project/project.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    cli_input_options input;
    cli_operator_options op_options;
    cli_bound_options bound;
    cli_choose_options choose;
    gnomon_choice choice;
    int automatic; /* --operator auto */
    const char *output, *output_format;
    int output_dtype;
    int allow_nonfinite, large;
    double bound_real;
} request;

static const cli_choice bounds[] = {{"achlioptas", GNOMON_BOUND_ACHLIOPTAS},
                                    {"gaussian-exact", GNOMON_BOUND_GAUSSIAN_EXACT},
                                    {"dasgupta-gupta", GNOMON_BOUND_DASGUPTA_GUPTA},
                                    {NULL, 0}};

/* Parses the words; -1 to go on. */
static int parse(cli_app *app, request *r, int argc, char **argv, const char **input)
{
    static const cli_choice output_dtypes[] = {{"f2", GNOMON_F16},
                                               {"f4", GNOMON_F32},
                                               {"f8", GNOMON_F64},
                                               {"float16", GNOMON_F16},
                                               {"float32", GNOMON_F32},
                                               {"float64", GNOMON_F64},
                                               {NULL, 0}};
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .value = "OUT",
         .help = "where the sketch goes; - (default) is standard output"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &r->output_format,
         .flag = 1,
         .value = "FORMAT",
         .help = "the sketch's format; otherwise by OUT's ending, which must be a format's; npy "
                 "without one"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = output_dtypes,
         .value = "TYPE",
         .help = "f2, f4 or f8; otherwise f8 for f8 and 32- and 64-bit integer points, else f4. f8 "
                 "also reads text and computes in double precision"},
    };
    const cli_option bound[] = {
        {.name = "eps",
         .type = CLI_REAL,
         .target = &r->bound.eps,
         .given = &r->bound.eps_given,
         .reals = CLI_OPEN_UNIT,
         .value = "E",
         .help = "choose k so that every squared distance stays within a factor 1 +- E"},
        {.name = "delta",
         .type = CLI_REAL,
         .target = &r->bound.delta,
         .given = &r->bound.delta_given,
         .reals = CLI_OPEN_UNIT,
         .value = "D",
         .help = "with --eps: the probability of failure that is allowed (default 0.05)"},
        {.name = "beta",
         .type = CLI_REAL,
         .target = &r->bound.beta,
         .given = &r->bound.beta_given,
         .reals = CLI_POSITIVE,
         .value = "B",
         .help = "with --eps: the same probability as delta = N^-B"},
        {.name = "bound",
         .type = CLI_CHOICE,
         .target = &r->bound.bound,
         .given = &r->bound.bound_given,
         .choices = bounds,
         .value = "BOUND",
         .help = "with --eps: gaussian-exact (default for gaussian), achlioptas (default for all "
                 "others) or dasgupta-gupta; see gnomon dim"},
        {.name = "points",
         .type = CLI_INT,
         .target = &r->bound.points,
         .given = &r->bound.points_given,
         .low = 2,
         .value = "N",
         .help = "with --eps and --operator auto: the number of points, for input whose length is "
                 "unknown before its end"},
    };
    const cli_option checks[] = {
        cli_large_option(&r->large),
        {.name = "allow-nonfinite",
         .type = CLI_FLAG,
         .target = &r->allow_nonfinite,
         .flag = 1,
         .help =
             "accept NaN and infinity, also as the result of overflow, instead of refusing them"},
    };
    cli_option op_table[CLI_OPERATOR_OPTIONS], input_table[CLI_INPUT_OPTIONS];
    cli_option common[CLI_COMMON_OPTIONS];
    cli_option choose[CLI_CHOOSE_OPTIONS];
    cli_choose_table(&r->choose, choose);
    cli_operator_table(&r->op_options, op_table);
    cli_kinds_help kinds;
    op_table[0].choices = cli_kinds(0, 1);
    op_table[0].help =
        cli_kinds_help_make(&kinds, "the kind: ", GNOMON_RADEMACHER, 1,
                            "; or auto: the fastest kind that keeps the distortion asked for");
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Operator", op_table),
                                CLI_GROUP("Choosing k", bound),
                                CLI_GROUP("Choosing the operator", choose),
                                CLI_GROUP("Output", output),
                                CLI_GROUP("Input", input_table),
                                CLI_GROUP("Checks", checks),
                                CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "INPUT -o OUT -k K [--operator KIND] [--seed N] [options]\n"
                    "INPUT -o OUT --eps E [options]\n"
                    "INPUT -o OUT --load-operator F.json [options]",
        .about = "Projects the points of INPUT (n x D) to k dimensions by a random operator that "
                 "approximately preserves lengths and distances: Y = X S'. The operator is never "
                 "stored; the same seed gives the same bits on every machine. Points stream "
                 "through, so that a file may be larger than memory.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples =
            "Random signs to 64 dimensions\n"
            "gnomon project points.npy -k 64 -o sketch.npy\n"
            "A sparse operator with another seed, saved for later points\n"
            "gnomon project points.npy -k 64 --operator very-sparse --seed 7 --save-operator "
            "s.json -o sketch.npy\n"
            "New points with the same operator\n"
            "gnomon project more.csv --load-operator s.json -o more.npy\n"
            "The number of dimensions that keeps every squared distance within 50 %\n"
            "gnomon project points.npy --eps 0.5 -o sketch.npy\n"
            "The same with the fastest operator for points without dominant coordinates\n"
            "gnomon project points.npy --eps 0.5 --operator auto --assume incoherent -o "
            "sketch.npy\n"
            "In a pipe, within 100 MiB\n"
            "gnomon project - -k 16 --memory 100M --output-format csv < points.npy > sketch.csv\n",
        .min_operands = 1,
        .max_operands = 1,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, input, &count);
}

static int check(cli_app *app, request *r, const char *input)
{
    const char *const inputs[] = {input, r->op_options.load};
    const cli_bound_options *b = &r->bound;
    const gnomon_descriptor *d = &r->op_options.descriptor;
    int ways = r->op_options.k_given + b->eps_given + (r->op_options.load != NULL);
    if (ways == 0) return cli_usage(app, "one of -k, --eps and --load-operator is needed");
    if (r->op_options.load != NULL && b->eps_given)
        return cli_usage(app, "--load-operator brings its own k: leave out --eps");
    if (ways > 1 && b->eps_given) return cli_usage(app, "-k and --eps both choose k: give one");
    if (!b->eps_given && (b->delta_given || b->beta_given || b->bound_given))
        return cli_usage(app, "--delta, --beta and --bound require --eps");
    if (!b->eps_given && !r->automatic && b->points_given)
        return cli_usage(app, "--points requires --eps and --operator auto");
    if (!r->automatic && (r->choose.assume_given || r->choose.model != NULL))
        return cli_usage(app, "--assume and --model require --operator auto");
    if (r->automatic && b->bound_given)
        return cli_usage(app, "--operator auto uses each kind's own bound: leave out --bound");
    if (r->automatic && (d->density > 0 || d->nonzeros > 0 || d->blocks > 0 || d->zeta > 0 ||
                         d->width > 0 || r->op_options.inner != 0 || r->op_options.precision != 0))
        return cli_usage(app, "--operator auto sets the kind's parameters itself: leave out "
                              "--density, --nonzeros and the like");
    if (b->delta_given && b->beta_given)
        return cli_usage(app, "--delta and --beta both set the probability of failure: give one");
    if (strcmp(input, "-") == 0 && r->op_options.load != NULL &&
        strcmp(r->op_options.load, "-") == 0)
        return cli_usage(app, "the points and the operator can't both come from standard input");
    if (r->op_options.save != NULL && app->json && strcmp(r->op_options.save, "-") == 0)
        return cli_usage(app, "--json already prints the descriptor");
    const cli_file files[] = {{"IN", input, 0},
                              {"--load-operator", r->op_options.load, 0},
                              {"--model", r->choose.model, 0},
                              {"-o", r->output, 1},
                              {"--save-operator", r->op_options.save, 1}};
    const int code = cli_check_apart(app, files, 5);
    if (code >= 0) return code;
    const char *format;
    const int unknown =
        cli_output_is(app, "-o", r->output, r->output_format, GNOMON_HOLDS_DENSE, &format);
    return unknown >= 0 ? unknown : cli_check_output(app, r->output, format, inputs, 2);
}

/* How many points there will be. -1 or an exit code. */
static int count_points(cli_app *app, const request *r, const gnomon_data_info *info,
                        const char *who, int64_t *n)
{
    *n = r->bound.points_given ? r->bound.points : info->rows;
    if (*n >= 0) return -1;
    return cli_usage(
        app,
        "%s needs the number of points, which is known only at the end of this %s: give "
        "--points N",
        who, info->format);
}

/* --operator auto: fills in the operator. */
static int choose_operator(cli_app *app, request *r, const gnomon_data_info *info)
{
    const gnomon_descriptor *d = &r->op_options.descriptor;
    int64_t n;
    int code = count_points(app, r, info, "--operator auto", &n);
    if (code >= 0) return code;
    if (d->k > d->d)
        return cli_usage(app, "-k %lld: must be at most D, the dimensions of the points: %lld",
                         (long long)d->k, (long long)d->d);
    r->bound.points = n;
    return cli_choose(app, &r->choose, &r->bound, info, n,
                      r->output_dtype == GNOMON_F64 ? GNOMON_F64 : info->dtype, &r->op_options,
                      &r->choice);
}

/* --eps: fills in k. */
static int choose_k(cli_app *app, request *r, const gnomon_data_info *info)
{
    cli_bound_options *b = &r->bound;
    int64_t n;
    int code = count_points(app, r, info, "--eps", &n);
    if (code >= 0) return code;
    if (n < 2) n = 2;
    b->points = n;
    if (!b->bound_given)
        b->bound = r->op_options.kind == GNOMON_GAUSSIAN ? GNOMON_BOUND_GAUSSIAN_EXACT
                                                         : GNOMON_BOUND_ACHLIOPTAS;
    gnomon_status status = gnomon_dim(app->ctx, (gnomon_bound)b->bound, n, b->eps, b->beta,
                                      b->delta, &r->bound_real, &r->op_options.descriptor.k);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    if (r->op_options.descriptor.k > info->cols)
        return cli_usage(app,
                         "--eps %g: the %s bound requires k = %lld to keep %lld points, more than "
                         "their %lld coordinates; use a larger --eps, or -k",
                         b->eps, gnomon_bound_name((gnomon_bound)b->bound),
                         (long long)r->op_options.descriptor.k, (long long)n,
                         (long long)info->cols);
    cli_say(app, "gnomon project: k = %lld by the %s bound for %lld points at eps %g\n",
            (long long)r->op_options.descriptor.k, gnomon_bound_name((gnomon_bound)b->bound),
            (long long)n, b->eps);
    return -1;
}

/* The operator for points of info->cols coordinates. */
static int make_operator(cli_app *app, request *r, const gnomon_data_info *info,
                         gnomon_operator **op)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    int code;
    if (r->op_options.load == NULL) {
        r->op_options.descriptor.d = info->cols;
        if (r->automatic) {
            code = choose_operator(app, r, info);
            if (code >= 0) return code;
        } else if (r->bound.eps_given) {
            code = choose_k(app, r, info);
            if (code >= 0) return code;
        }
        return cli_operator_make(app, &r->op_options, op);
    }
    code = cli_operator_load(app, &r->op_options, op);
    if (code >= 0) return code;
    gnomon_operator_describe(*op, &d);
    if (d.d == info->cols) return -1;
    return cli_usage(app, "%s: the operator is for points of %lld coordinates, these have %lld",
                     r->op_options.load, (long long)d.d, (long long)info->cols);
}

static int report(const request *r, const cli_job *job, const char *input)
{
    cli_app *app = job->app;
    json_t *figures = json_pack(
        "{s:o, s:o, s:s, s:I, s:I, s:I, s:s, s:s, s:o*, s:I, s:I, s:I, s:f, s:f, s:f}", "input",
        cli_json_name(input), "output", cli_json_name(r->output), "format", job->info.format,
        "points", (json_int_t)job->points, "dimensions", (json_int_t)job->info.cols, "k",
        (json_int_t)job->k, "dtype", cli_dtype_name(job->info.dtype), "output_dtype",
        cli_dtype_name(job->stored), "descriptor", cli_descriptor_json(app, job->op), "memory",
        (json_int_t)app->memory, "chunk_points", (json_int_t)job->chunk_points, "chunk_dimensions",
        (json_int_t)job->chunk_cols, "read_seconds", cli_json_seconds(job->read_seconds),
        "sketch_seconds", cli_json_seconds(job->sketch_seconds), "write_seconds",
        cli_json_seconds(job->write_seconds));
    if (figures != NULL && r->automatic)
        json_object_set_new(figures, "choice", cli_choice_json(app, &r->choose, &r->choice));
    json_t *seen = cli_scan_json(&job->scan);
    if (figures != NULL && seen != NULL)
        json_object_set_new(figures, "coherence", seen);
    else
        json_decref(seen);
    if (figures != NULL && r->bound.eps_given && !r->automatic)
        json_object_set_new(figures, "bound",
                            json_pack("{s:s, s:f, s:I, s:I, s:f}", "bound",
                                      gnomon_bound_name((gnomon_bound)r->bound.bound), "real",
                                      r->bound_real, "k", (json_int_t)job->k, "points",
                                      (json_int_t)r->bound.points, "eps", r->bound.eps));
    return cli_print_report(app, figures);
}

/* What the operator, and --assume incoherent where the choice rests on it, take the points for. */
static void scan_for(const request *r, cli_job *job)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(job->op, &d);
    const int any_points = (cli_kind_flags(d.kind) & GNOMON_KIND_ANY_POINTS) != 0;
    if (d.kind == GNOMON_VERY_SPARSE && d.density < 1.0 / 3) job->scan.density = d.density;
    if (!r->automatic || r->choose.assume != GNOMON_ASSUME_INCOHERENT) return;
    if (any_points &&
        (r->op_options.k_given || (d.kind == GNOMON_GAUSSIAN && d.precision == GNOMON_F32)))
        return;
    job->scan.carriers = (double)job->info.cols;
    if (r->choose.nonzeros >= 0 && r->bound.points > 0)
        job->scan.carriers =
            fmin(job->scan.carriers, fmax(1, (double)r->choose.nonzeros / (double)r->bound.points));
}

/* A run, and the points that it is about. */
typedef struct run {
    request *r;
    const char *input;
    cli_job *job;
} run;

/* Opens the points, on all ranks. Rank 0 makes the operator, which is that of all: what is chosen
 * depends on a rank's threads and devices. */
static int prepare(void *user)
{
    const run *all = user;
    cli_job *job = all->job;
    cli_app *app = job->app;
    int code = cli_open_input(app, all->input, &all->r->input, &job->reader, &job->info);
    if (code < 0) code = cli_comm_check_input(app, all->input, &job->info);
    if (code >= 0) return code;
    if (job->info.cols < 1) return cli_fail(app, CLI_EXIT_DATA, "the points have no coordinates");
    if (app->comm.rank > 0) return -1;
    code = make_operator(app, all->r, &job->info, &job->op);
    if (code < 0) scan_for(all->r, job);
    return code;
}

/* What rank 0 tells of its operator, before its descriptor as JSON. */
typedef struct shared {
    double density, carriers;
    int64_t bytes;
} shared;

/* Rank 0's operator, on all ranks. */
static int share_operator(cli_app *app, cli_job *job)
{
    const int first = app->comm.rank == 0;
    shared s = {job->scan.density, job->scan.carriers, 0};
    char *json = NULL;
    gnomon_status status = GNOMON_OK;
    if (app->comm.size == 1) return -1;
    if (first) status = gnomon_operator_to_json(app->ctx, job->op, &json);
    if (first && status == GNOMON_OK) s.bytes = (int64_t)strlen(json);
    if (status == GNOMON_OK) status = gnomon_comm_broadcast(app->ctx, &app->comm, &s, sizeof s);
    if (!first && status == GNOMON_OK) {
        json = malloc((size_t)s.bytes + 1);
        if (json == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for an operator");
    }
    if (status == GNOMON_OK) status = gnomon_comm_broadcast(app->ctx, &app->comm, json, s.bytes);
    if (!first && status == GNOMON_OK) {
        job->scan.density = s.density;
        job->scan.carriers = s.carriers;
        status = gnomon_operator_from_json(app->ctx, json, (size_t)s.bytes, &job->op);
    }
    free(json);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

/* Everything else before the points are read; on all ranks. */
static int plan(void *user)
{
    const run *all = user;
    const request *r = all->r;
    cli_job *job = all->job;
    cli_app *app = job->app;
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    cli_job_types(job, (gnomon_dtype)r->output_dtype);
    job->options.allow_nonfinite = r->allow_nonfinite;
    int code = cli_job_plan(job);
    if (code >= 0 || app->comm.rank > 0) return code;
    options.format = r->output_format;
    if (!r->large)
        code = cli_check_room(app, all->input, r->output, options.format, job->info.rows, job->k,
                              job->stored);
    if (code >= 0) return code;
    gnomon_status status = gnomon_writer_open(app->ctx, r->output, job->info.rows, job->k,
                                              job->stored, &options, &job->writer);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    cli_bar_begin(app, "projecting", job->info.rows);
    return -1;
}

/* The reader, the operator and the writer; rank 0 alone has the last. */
static int work(cli_app *app, request *r, const char *input, cli_job *job)
{
    run all = {r, input, job};
    int code = cli_comm_begin(app, prepare, &all);
    if (code < 0) code = share_operator(app, job);
    if (code < 0) code = cli_comm_begin(app, plan, &all);
    if (code < 0) code = cli_job_run(job);
    if (code >= 0 || app->comm.rank > 0) return code;
    code = cli_operator_save(app, &r->op_options, job->op);
    if (code >= 0) return code;
    double before = cli_seconds();
    gnomon_status status = gnomon_writer_finish(job->writer);
    job->writer = NULL;
    job->write_seconds += cli_seconds() - before;
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

int cli_project(int argc, char **argv)
{
    cli_app app;
    request r;
    cli_job job;
    const char *input = NULL;
    memset(&r, 0, sizeof r);
    memset(&job, 0, sizeof job);
    cli_init(&app, "project");
    cli_input_init(&r.input);
    cli_operator_init(&r.op_options);
    r.output = "-";
    int code = parse(&app, &r, argc, argv, &input);
    r.automatic = r.op_options.kind == CLI_OPERATOR_AUTO;
    if (code < 0) code = check(&app, &r, input);
    if (code >= 0) return code;
    cli_job_share(&app);
    code = cli_start(&app);
    if (code >= 0) return code;
    job.app = &app;
    job.path = input;
    /* Numbers written as text are read in the precision that is computed in. */
    if (r.output_dtype == GNOMON_F64) r.input.text_dtype = GNOMON_F64;
    code = work(&app, &r, input, &job);
    if (code < 0 && app.comm.rank > 0) code = CLI_EXIT_DONE;
    if (code < 0) {
        char words[256];
        cli_operator_words(job.op, words, sizeof words);
        const int device = gnomon_context_worked_on(app.ctx) == GNOMON_DEVICE_PLUGIN;
        cli_say(&app,
                "gnomon project: %lld points from %lld to %lld dimensions (%s) in %.2f s%s%s\n",
                (long long)job.points, (long long)job.info.cols, (long long)job.k, words,
                cli_seconds() - app.started, device ? " on " : "",
                device ? gnomon_context_device_name(app.ctx) : "");
        code = app.json ? report(&r, &job, input) : CLI_EXIT_DONE;
    }
    gnomon_writer_abort(job.writer);
    gnomon_reader_close(job.reader);
    gnomon_operator_destroy(job.op);
    return cli_end(&app, code);
}
