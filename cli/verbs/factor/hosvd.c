/* gnomon hosvd: its options, and the order of its work. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

typedef struct request {
    cli_input_options input;
    gnomon_hosvd_options options;
    cli_sketch_options sketch;
    cli_list ranks;
    int output_dtype;
    int64_t power;
    int ranks_given, tolerance_given;
    const char *output;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **input)
{
    const cli_option what[] = {
        {.name = "ranks",
         .type = CLI_LIST,
         .target = &r->ranks,
         .given = &r->ranks_given,
         .low = 1,
         .value = "R1,R2,...",
         .help = "the core's size, one number per mode; with --tolerance: the largest size"},
        {.name = "tolerance",
         .type = CLI_REAL,
         .target = &r->options.tolerance,
         .given = &r->tolerance_given,
         .reals = CLI_OPEN_UNIT,
         .value = "T",
         .help = "choose the ranks so that |X - X'| <= T |X| (Frobenius norm). Exit with 1 if that "
                 "is not reached"},
        {.name = "sequential",
         .type = CLI_FLAG,
         .target = &r->options.sequential,
         .flag = 1,
         .help = "project each mode of the tensor already compressed in the modes before it "
                 "(sequentially truncated HOSVD): faster, and rarely less accurate"},
        {.name = "measure",
         .type = CLI_FLAG,
         .target = &r->options.measure,
         .flag = 1,
         .help = "measure the error with one more pass even if the norms of tensor and core "
                 "determine it"},
    };
    const cli_option how[] = {
        {.name = "power",
         .type = CLI_INT,
         .target = &r->power,
         .high = 100,
         .value = "Q",
         .help = "power iterations of each mode (default 1); each reads the tensor twice"},
        {.name = "oversample",
         .type = CLI_INT,
         .target = &r->options.oversample,
         .high = (int64_t)1 << 31,
         .value = "S",
         .help = "columns of a mode's projection beyond its rank (default 10)"},
    };
    cli_kinds_help kinds;
    const cli_sketch_words words = {
        .kind = cli_kinds_help_make(&kinds, "the kind of projection: ", GNOMON_GAUSSIAN, 0, ""),
        .seed = "which random operators: 0 (default) to 2^64 - 1; mode n (from 0) takes N + n",
        .density = "very-sparse: the probability of a nonzero (default 1/sqrt(D), D being the "
                   "product of the other modes)",
        .nonzeros = "sjlt: nonzeros per column (default 4, or the columns if less)",
    };
    cli_option op_table[CLI_SKETCH_OPTIONS];
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .value = "OUT",
         .help = "an .npz for the arrays core, factor_0, factor_1 and so on, one factor per mode; "
                 "- is standard output"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = cli_float_types,
         .value = "TYPE",
         .help = "of the work, core and factors: f4 or f8; otherwise f8 for f8 and 32- and 64-bit "
                 "integer data, else f4"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_sketch_table(&r->sketch, &words, op_table);
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("What", what),         CLI_GROUP("How", how),
                                CLI_GROUP("Operator", op_table), CLI_GROUP("Output", output),
                                CLI_GROUP("Input", input_table), CLI_GROUP("Common", common)};
    char formats[CLI_FORMATS_TEXT], about[CLI_FORMATS_TEXT + 512];
    snprintf(about, sizeof about,
             "The Tucker decomposition of a dense tensor, a core and one matrix with orthonormal "
             "columns per mode (randomized HOSVD), and the error that it leaves. The tensor is an "
             "array of 1 to 16 dimensions in C or Fortran order (%s); other formats have two. One "
             "that does not fit in --memory is read piece by piece, as often as needed.",
             cli_formats(formats, GNOMON_HOLDS_TENSOR, 0, 0));
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "TENSOR --ranks R1,R2,... [-o OUT.npz] [--sequential] [--seed N] [options]\n"
                    "TENSOR --tolerance T [--ranks R1,R2,...] [-o OUT.npz] [options]",
        .about = about,
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "A core of 20 x 12 x 12\n"
                    "gnomon hosvd video.npy --ranks 20,12,12 -o parts.npz\n"
                    "The smallest core with a relative error of at most 5 %\n"
                    "gnomon hosvd video.npy --tolerance 0.05 --sequential -o parts.npz\n"
                    "All figures, for a program\n"
                    "gnomon hosvd video.npy --ranks 20,12,12 --measure --json\n",
        .min_operands = 1,
        .max_operands = 1,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, input, &count);
}

static int check(cli_app *app, request *r, const char *input)
{
    if (!r->ranks_given && !r->tolerance_given)
        return cli_usage(app, "one of --ranks and --tolerance is needed");
    int code = cli_sketch_check(app, &r->sketch);
    if (code < 0) code = cli_check_told(app, r->output != NULL);
    if (code >= 0) return code;
    /* A GPU needs other libraries; the call tells what is missing when there is none. */
    const char *missing = gnomon_svd_missing();
    if (missing != NULL && strcmp(app->device, "cpu") == 0)
        return cli_fail(app, CLI_EXIT_USAGE, "%s", missing);
    return cli_check_arrays_output(app, r->output, input);
}

/* What the library made of it; data and memory are the file's and --memory's business. */
static int finish(cli_app *app, const char *path, gnomon_status status)
{
    if (status == GNOMON_OK) return -1;
    const char *text = gnomon_last_error(app->ctx);
    if (status == GNOMON_ERROR_NONFINITE || status == GNOMON_ERROR_SHAPE)
        return cli_fail(app, CLI_EXIT_DATA, "%s: %s", path, text);
    if (status == GNOMON_ERROR_MEMORY)
        return cli_fail(app, CLI_EXIT_MEMORY, "%s: %s (--memory)", path, text);
    return cli_fail_status(app, status);
}

static int check_dimensions(cli_app *app, const char *path, const gnomon_data_info *info)
{
    if (info->dimensions <= GNOMON_TENSOR_MODES) return -1;
    return cli_fail(app, CLI_EXIT_DATA, "%s: has %d dimensions; at most %d are taken", path,
                    info->dimensions, GNOMON_TENSOR_MODES);
}

static gnomon_tensor tensor_of(const gnomon_data_info *info, gnomon_dtype dtype)
{
    return gnomon_tensor_packed(NULL, dtype, info->dimensions, info->shape, info->fortran_order);
}

/* Factors on one of several ranks, with its own slices. */
static int factor_divided(cli_app *app, request *r, const char *path, cli_points *p,
                          cli_rank_rows *rows, gnomon_hosvd *hosvd, cli_hosvd_facts *facts)
{
    const gnomon_dtype dtype = cli_work_dtype(r->output_dtype, &p->info);
    const int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    const double begin = cli_seconds();
    gnomon_tensor tensor = tensor_of(&p->info, dtype);
    gnomon_status status;
    r->options.dtype = dtype;
    r->options.comm = &app->comm;
    r->options.memory = budget > 0 ? budget : 1;
    const int code = cli_rank_rows_hold(rows, path, dtype, budget, p);
    if (code >= 0) return code;
    if (rows->streams) {
        const gnomon_svd_rows stream = cli_rank_rows_stream(rows, dtype);
        status = gnomon_hosvd_stream(app->ctx, &tensor, &stream, &r->options, hosvd);
    } else {
        tensor.data = p->data;
        status = gnomon_hosvd_dense(app->ctx, &tensor, &r->options, hosvd);
    }
    facts->held = rows->streams ? "pieces" : "memory";
    facts->read_seconds = rows->seconds;
    facts->hosvd_seconds = cli_seconds() - begin - rows->seconds;
    return cli_rank_rows_end(app, status, path);
}

/* Reads and factors. -1 or an exit code. */
static int factor(cli_app *app, request *r, const char *path, cli_points *p, gnomon_hosvd *hosvd,
                  cli_hosvd_facts *facts)
{
    const gnomon_data_info *info = &p->info;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    const gnomon_dtype dtype = cli_work_dtype(r->output_dtype, info);
    const double bytes = (double)info->rows * (double)info->cols * (double)gnomon_dtype_size(dtype);
    /* A tensor whose outermost dimension has one index, or of one dimension, is one row. */
    const int can_stream = (info->access & GNOMON_ACCESS_SEEK) != 0 && info->rows > 1;
    const double begin = cli_seconds();
    r->options.dtype = dtype;
    gnomon_tensor tensor = tensor_of(info, dtype);
    if (can_stream && bytes > 0.5 * (double)budget) {
        cli_stream s = {p->reader, 0};
        const gnomon_svd_rows rows = cli_stream_rows(&s, info, dtype);
        facts->held = "pieces";
        r->options.memory = budget > 0 ? budget : 1;
        gnomon_status status = gnomon_hosvd_stream(app->ctx, &tensor, &rows, &r->options, hosvd);
        facts->read_seconds = s.seconds;
        facts->hosvd_seconds = cli_seconds() - begin - s.seconds;
        return finish(app, path, status);
    }
    p->wanted = dtype;
    int code = cli_points_read(app, path, 0, p, &budget);
    if (code >= 0) return code;
    facts->held = "memory";
    facts->read_seconds = cli_seconds() - begin;
    tensor.data = p->data;
    if (info->shape[0] < 0) { /* the end has told */
        const int64_t shape[] = {p->dense.rows, p->dense.cols};
        tensor = gnomon_tensor_packed(p->data, dtype, 2, shape, 0);
    }
    r->options.memory = budget > 0 ? budget : 1;
    gnomon_status status = gnomon_hosvd_dense(app->ctx, &tensor, &r->options, hosvd);
    facts->hosvd_seconds = cli_seconds() - begin - facts->read_seconds;
    return finish(app, path, status);
}

static int write_parts(cli_app *app, const char *path, const gnomon_hosvd *h)
{
    gnomon_named_tensor parts[GNOMON_TENSOR_MODES + 1] = {{"core", h->core}};
    char names[GNOMON_TENSOR_MODES][16];
    for (int n = 0; n < h->modes; ++n) {
        const int64_t shape[] = {h->size[n], h->rank[n]};
        snprintf(names[n], sizeof names[n], "factor_%d", n);
        parts[n + 1].name = names[n];
        parts[n + 1].tensor =
            gnomon_tensor_packed(h->factor[n].data, h->factor[n].dtype, 2, shape, 0);
    }
    gnomon_status status = gnomon_write_npz_tensors(app->ctx, path, parts, h->modes + 1);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

/* Writes and reports. An exit code. */
static int hand_out(cli_app *app, const request *r, cli_hosvd_facts *facts)
{
    const double begin = cli_seconds();
    int code = r->output != NULL ? write_parts(app, r->output, facts->hosvd) : -1;
    facts->write_seconds = cli_seconds() - begin;
    if (code >= 0) return code;
    if (!app->json) cli_hosvd_words(app, facts);
    return cli_factor_end(app, app->json ? cli_hosvd_json(facts) : NULL, facts->hosvd->converged,
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

static int open_tensor(void *user)
{
    opening *o = user;
    const gnomon_data_info *info = &o->p->info;
    int code = cli_open_input(o->app, o->path, &o->r->input, &o->p->reader, &o->p->info);
    if (code < 0) code = check_dimensions(o->app, o->path, info);
    if (code >= 0 || o->app->comm.size == 1) return code;
    code = cli_rank_rows_begin(o->app, o->path, o->p, gnomon_hosvd_rank_rows, &o->rows);
    if (code < 0 && info->rows == 1)
        code = cli_usage(
            o->app, "--comm: ranks share the slices of the outermost dimension, and %s has one",
            o->path);
    return code;
}

static int work(cli_app *app, request *r, const char *path, cli_points *p, gnomon_hosvd *hosvd)
{
    cli_hosvd_facts facts = {.input = path,
                             .output = r->output,
                             .info = &p->info,
                             .hosvd = hosvd,
                             .tolerance = r->options.tolerance};
    opening o = {app, r, path, p, {0}};
    int code = cli_comm_begin(app, open_tensor, &o);
    if (code >= 0) return code;
    cli_bar_begin(app, "passes", -1);
    cli_bar_at(app, 0, 1);
    code = app->comm.size > 1 ? factor_divided(app, r, path, p, &o.rows, hosvd, &facts)
                              : factor(app, r, path, p, hosvd, &facts);
    cli_bar_clear(app);
    cli_rank_rows_drop(&o.rows);
    if (code >= 0) return code;
    return cli_rank_done(app, app->comm.rank == 0 ? hand_out(app, r, &facts) : -1);
}

int cli_hosvd(int argc, char **argv)
{
    static const gnomon_hosvd_options defaults = GNOMON_HOSVD_OPTIONS_INIT;
    cli_app app;
    request r;
    cli_points points;
    gnomon_hosvd hosvd = {.struct_size = sizeof hosvd};
    const char *path = NULL;
    memset(&r, 0, sizeof r);
    memset(&points, 0, sizeof points);
    cli_init(&app, "hosvd");
    cli_input_init(&r.input);
    r.input.tensor = 1;
    r.options = defaults;
    r.power = defaults.power;
    cli_sketch_init(&r.sketch, GNOMON_GAUSSIAN);
    int code = parse(&app, &r, argc, argv, &path);
    if (code < 0) code = check(&app, &r, path);
    if (code >= 0) return code;
    r.options.power = (int)r.power;
    r.options.descriptor = &r.sketch.descriptor;
    if (r.ranks_given) {
        r.options.ranks = r.ranks.value;
        r.options.rank_count = r.ranks.count;
    }
    code = cli_start(&app);
    if (code < 0) code = work(&app, &r, path, &points, &hosvd);
    gnomon_hosvd_free(app.ctx, &hosvd);
    cli_points_drop(&points);
    return cli_end(&app, code);
}
