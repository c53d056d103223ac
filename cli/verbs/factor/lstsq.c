/* gnomon lstsq: its options, and the order of its work. */
#include "cli.h"

#include <string.h>

typedef struct request {
    cli_input_options input;
    gnomon_lstsq_options options;
    cli_sketch_options sketch;
    int output_dtype;
    const char *output, *residual, *format;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **operands)
{
    const cli_option what[] = {
        {.name = "damp",
         .type = CLI_REAL,
         .target = &r->options.damp,
         .reals = CLI_POSITIVE,
         .value = "L",
         .help = "ridge regression: minimises |A x - b|^2 + L^2 |x|^2"},
        {.name = "rcond",
         .type = CLI_REAL,
         .target = &r->options.rcond,
         .reals = CLI_OPEN_UNIT,
         .value = "T",
         .help = "singular values up to T times the largest count as 0, and x is the shortest "
                 "solution (default D * 2^-52)"},
    };
    const cli_option how[] = {
        {.name = "tolerance",
         .type = CLI_REAL,
         .target = &r->options.tolerance,
         .reals = CLI_OPEN_UNIT,
         .value = "T",
         .help = "the backward error to reach, relative to A and b (default 1e-15). Exit with 1 "
                 "when it is not reached"},
        {.name = "iterations",
         .type = CLI_INT,
         .target = &r->options.iterations,
         .value = "N",
         .help = "the largest number of iterations of conjugate gradients (default 200); each "
                 "reads A once"},
        {.name = "test-vectors",
         .type = CLI_INT,
         .target = &r->options.test_vectors,
         .high = 100,
         .value = "R",
         .help = "random test vectors for the error bounds (default 2; 0: no bounds)"},
    };
    cli_kinds_help kinds;
    const cli_sketch_words words = {
        .kind = cli_kinds_help_make(&kinds, "the kind of sketch: ", GNOMON_SJLT, 0, ""),
        .seed = "which random operator: 0 (default) to 2^64 - 1",
        .density = "very-sparse: the probability of a nonzero (default 1/sqrt(rows of A))",
        .nonzeros = "sjlt: nonzeros per column (default 8)",
    };
    cli_option op_table[CLI_SKETCH_OPTIONS + 1] = {
        [CLI_SKETCH_OPTIONS] = {
            .name = "sketch-size",
            .letter = 'k',
            .type = CLI_INT,
            .target = &r->options.sketch_size,
            .low = 1,
            .value = "K",
            .help = "rows of the sketch, at least A's shorter side (default: chosen by a cost "
                    "model, 4 to 256 times that); with the longer side or more, A itself is "
                    "factored"}};
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .value = "OUT",
         .help = "where the solutions go, one per column; - is standard output"},
        {.name = "residual",
         .type = CLI_TEXT,
         .target = &r->residual,
         .value = "OUT",
         .help = "also write the residual b - A x, one row for each row of A"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &r->format,
         .flag = 1,
         .value = "FORMAT",
         .help = "the solutions' format; otherwise by OUT's ending, which must be a format's; npy "
                 "without one"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = cli_float_types,
         .value = "TYPE",
         .help = "the type of the solutions and the residual: f8 (default) or f4; the computation "
                 "is in double precision"},
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_sketch_table(&r->sketch, &words, op_table);
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("What", what),
                                CLI_GROUP("How", how),
                                CLI_GROUP("Operator", op_table),
                                CLI_GROUP("Output", output),
                                CLI_GROUP("Input (how to read A)", input_table),
                                CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "A B [-o OUT] [--damp L] [--tolerance T] [--seed N] [options]",
        .about =
            "Computes the x that minimises |A x - b| for each column b of B. A (n x D, the points) "
            "is dense or sparse; with fewer rows than columns x is the solution of least norm. A "
            "random sketch preconditions the problem, so that few iterations reach the accuracy of "
            "a QR factorisation. Bounds on the error are reported; they fail once in a million "
            "runs. A dense A that does not fit in --memory is read piece by piece, once per "
            "iteration. B may also be one row of as many numbers as A has rows.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples =
            "The coefficients of a linear model\n"
            "gnomon lstsq features.npy targets.npy -o weights.npy\n"
            "The same from text, printed\n"
            "gnomon lstsq features.csv targets.csv -o - --output-format csv\n"
            "Ridge regression, and its residual\n"
            "gnomon lstsq features.npy targets.npy --damp 0.5 -o weights.npy --residual left.npy\n"
            "All figures, for a program\n"
            "gnomon lstsq features.npy targets.npy --json\n",
        .min_operands = 2,
        .max_operands = 2,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, operands, &count);
}

static int check_output(cli_app *app, const request *r, const char *path, const char *given,
                        const char *const *inputs)
{
    if (path == NULL) return -1;
    const char *format;
    const int code = cli_output_is(app, path == r->residual ? "--residual" : "-o", path, given,
                                   GNOMON_HOLDS_DENSE, &format);
    if (code >= 0) return code;
    if (path == r->residual && r->output != NULL && strcmp(path, "-") != 0 &&
        (strcmp(path, r->output) == 0 || gnomon_same_file(path, r->output)))
        return cli_usage(app, "--residual %s: is also the output", path);
    return cli_check_output(app, path, format, inputs, 2);
}

static int check(cli_app *app, request *r, const char *const *inputs)
{
    int code = cli_sketch_check(app, &r->sketch);
    if (code < 0) code = cli_check_told(app, r->output != NULL || r->residual != NULL);
    if (code >= 0) return code;
    if (app->comm_name != NULL && (strcmp(inputs[0], "-") == 0 || strcmp(inputs[1], "-") == 0))
        return cli_usage(app, "--comm: standard input can't be read by all ranks");
    if (strcmp(inputs[0], "-") == 0 && strcmp(inputs[1], "-") == 0)
        return cli_usage(app, "A and B can't both be standard input");
    if (r->output != NULL && r->residual != NULL && strcmp(r->output, "-") == 0 &&
        strcmp(r->residual, "-") == 0)
        return cli_usage(app, "-o and --residual can't both be standard output");
    const char *missing = gnomon_svd_missing();
    if (missing != NULL) return cli_fail(app, CLI_EXIT_USAGE, "%s", missing);
    code = check_output(app, r, r->output, r->format, inputs);
    return code >= 0 ? code : check_output(app, r, r->residual, NULL, inputs);
}

/* A failure of the library's, told with the file whose numbers it is about. */
static int fail(cli_app *app, gnomon_status status, const char *const *inputs)
{
    return cli_fail_of_file(app, status, inputs[cli_error_about(app, "b")]);
}

/* B, or its transpose when it is one row of as many numbers as A has rows: how a vector is read. */
static gnomon_matrix as_columns(const gnomon_matrix *b, int64_t rows)
{
    return b->rows == 1 && b->cols == rows ? gnomon_matrix_transposed(b) : *b;
}

static int solve_stream(cli_app *app, const request *r, const char *const *inputs, cli_points *a,
                        const gnomon_matrix *b, gnomon_lstsq *out, cli_lstsq_facts *facts)
{
    cli_stream s = {a->reader, 0};
    const gnomon_svd_rows rows = cli_stream_rows(&s, &a->info, a->info.dtype);
    const double begin = cli_seconds();
    gnomon_status status = gnomon_lstsq_stream(app->ctx, &rows, b, &r->options, out);
    facts->held = "pieces";
    facts->read_seconds += s.seconds;
    facts->solve_seconds = cli_seconds() - begin - s.seconds;
    return status == GNOMON_OK ? -1 : fail(app, status, inputs);
}

static int same_rows(cli_app *app, const char *const *inputs, int64_t rows,
                     const gnomon_matrix *right)
{
    if (rows < 0 || right->rows == rows) return -1;
    return cli_fail(app, CLI_EXIT_DATA, "%s has %lld rows and %s %lld: they must be the same",
                    inputs[1], (long long)right->rows, inputs[0], (long long)rows);
}

/* The same on one of several ranks, with its own rows of A and all of b. */
static int solve_divided(cli_app *app, request *r, const char *const *inputs, cli_points *a,
                         const gnomon_matrix *right, int64_t budget, cli_rank_rows *rows,
                         gnomon_lstsq *out, cli_lstsq_facts *facts)
{
    const double begin = cli_seconds();
    gnomon_status status;
    r->options.comm = &app->comm;
    const int code = cli_rank_rows_hold(rows, inputs[0], a->info.dtype, budget, a);
    if (code >= 0) return code;
    if (rows->is_sparse) {
        status = gnomon_lstsq_csr(app->ctx, &rows->sparse, right, &r->options, out);
    } else if (rows->streams) {
        const gnomon_svd_rows stream = cli_rank_rows_stream(rows, a->info.dtype);
        status = gnomon_lstsq_stream(app->ctx, &stream, right, &r->options, out);
    } else {
        status = gnomon_lstsq_dense(app->ctx, &a->dense, right, &r->options, out);
    }
    facts->held = rows->is_sparse ? "sparse" : rows->streams ? "pieces" : "memory";
    facts->read_seconds += rows->seconds;
    facts->solve_seconds = cli_seconds() - begin - rows->seconds;
    return cli_rank_rows_end(app, status, inputs[cli_error_about(app, "b")]);
}

/* Reads and solves. -1 or an exit code. */
static int solve(cli_app *app, const request *r, const char *const *inputs, cli_points *a,
                 cli_points *b, gnomon_lstsq *out, cli_lstsq_facts *facts)
{
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    const double begin = cli_seconds();
    int code = cli_points_read(app, inputs[1], 0, b, &budget);
    if (code >= 0) return code;
    const int sparse = (a->info.access & GNOMON_ACCESS_SPARSE) != 0;
    const int can_seek = (a->info.access & GNOMON_ACCESS_SEEK) != 0;
    const double bytes = cli_dense_bytes(&a->info, a->info.dtype);
    facts->read_seconds = cli_seconds() - begin;
    if (!sparse && can_seek && bytes > 0.5 * (double)budget && a->info.rows >= a->info.cols) {
        const gnomon_matrix right = as_columns(&b->dense, a->info.rows);
        code = same_rows(app, inputs, a->info.rows, &right);
        return code >= 0 ? code : solve_stream(app, r, inputs, a, &right, out, facts);
    }
    code = cli_points_read(app, inputs[0], 1, a, &budget);
    if (code < 0 && !cli_points_at_end(a))
        code = cli_points_too_large(app, inputs[0], 2.0 * (double)app->memory);
    if (code >= 0) return code;
    facts->held = sparse ? "sparse" : "memory";
    facts->read_seconds = cli_seconds() - begin;
    const int64_t rows = sparse ? a->sparse.rows : a->dense.rows;
    const gnomon_matrix right = as_columns(&b->dense, rows);
    code = same_rows(app, inputs, rows, &right);
    if (code >= 0) return code;
    gnomon_status status = sparse
                               ? gnomon_lstsq_csr(app->ctx, &a->sparse, &right, &r->options, out)
                               : gnomon_lstsq_dense(app->ctx, &a->dense, &right, &r->options, out);
    facts->solve_seconds = cli_seconds() - begin - facts->read_seconds;
    return status == GNOMON_OK ? -1 : fail(app, status, inputs);
}

static int write_matrix(cli_app *app, const char *path, const char *format,
                        const gnomon_matrix *matrix)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    gnomon_writer *writer = NULL;
    options.format = format;
    gnomon_status status = gnomon_writer_open(app->ctx, path, matrix->rows, matrix->cols,
                                              matrix->dtype, &options, &writer);
    if (status == GNOMON_OK) {
        status = gnomon_writer_rows(writer, matrix);
        if (status == GNOMON_OK)
            status = gnomon_writer_finish(writer);
        else
            gnomon_writer_abort(writer);
    }
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

static int report(cli_app *app, const request *r, const cli_lstsq_facts *facts)
{
    const gnomon_lstsq *out = facts->lstsq;
    if (!app->json) cli_lstsq_words(app, facts);
    return cli_factor_end(app, app->json ? cli_lstsq_json(app, facts) : NULL, out->converged,
                          r->options.tolerance);
}

/* Writes and reports. An exit code. */
static int finish(cli_app *app, const request *r, cli_lstsq_facts *facts)
{
    const gnomon_lstsq *out = facts->lstsq;
    const double begin = cli_seconds();
    int code = r->output != NULL ? write_matrix(app, r->output, r->format, &out->x) : -1;
    if (code < 0 && r->residual != NULL)
        code = write_matrix(app, r->residual, NULL, &out->residual);
    facts->write_seconds = cli_seconds() - begin;
    return code >= 0 ? code : report(app, r, facts);
}

/* What all ranks open. */
typedef struct opening {
    cli_app *app;
    const request *r;
    const char *const *inputs;
    cli_points *a, *b;
    cli_rank_rows rows; /* of one of several ranks, and all of b: */
    gnomon_matrix right;
    int64_t budget; /* what that leaves */
} opening;

/* What one of several ranks reads before the work. */
static int read_right(opening *o)
{
    cli_app *app = o->app;
    int code = cli_rank_rows_begin(app, o->inputs[0], o->a, gnomon_svd_rank_rows, &o->rows);
    o->budget = app->memory - CLI_OVERHEAD_BYTES;
    if (code < 0) code = cli_points_read(app, o->inputs[1], 0, o->b, &o->budget);
    if (code >= 0) return code;
    o->right = as_columns(&o->b->dense, o->a->info.rows);
    return same_rows(app, o->inputs, o->a->info.rows, &o->right);
}

static int open_both(void *user)
{
    opening *o = user;
    cli_input_options as_text;
    cli_input_init(&as_text);
    as_text.text_dtype = GNOMON_F64;
    int code = cli_open_input(o->app, o->inputs[0], &o->r->input, &o->a->reader, &o->a->info);
    if (code < 0) code = cli_open_input(o->app, o->inputs[1], &as_text, &o->b->reader, &o->b->info);
    return code < 0 && o->app->comm.size > 1 ? read_right(o) : code;
}

static int work(cli_app *app, request *r, const char *const *inputs, cli_points *a, cli_points *b,
                gnomon_lstsq *out)
{
    cli_lstsq_facts facts = {.input = inputs[0],
                             .right = inputs[1],
                             .output = r->output,
                             .residual = r->residual,
                             .info = &a->info,
                             .lstsq = out,
                             .damp = r->options.damp,
                             .tolerance = r->options.tolerance};
    opening o = {.app = app, .r = r, .inputs = inputs, .a = a, .b = b};
    int code = cli_comm_begin(app, open_both, &o);
    if (code >= 0) return code;
    cli_bar_begin(app, "passes", -1);
    cli_bar_at(app, 0, 1);
    code = app->comm.size > 1
               ? solve_divided(app, r, inputs, a, &o.right, o.budget, &o.rows, out, &facts)
               : solve(app, r, inputs, a, b, out, &facts);
    cli_bar_clear(app);
    cli_rank_rows_drop(&o.rows);
    if (code >= 0) return code;
    return cli_rank_done(app, app->comm.rank == 0 ? finish(app, r, &facts) : -1);
}

int cli_lstsq(int argc, char **argv)
{
    static const gnomon_lstsq_options defaults = GNOMON_LSTSQ_OPTIONS_INIT;
    cli_app app;
    request r;
    cli_points a, b;
    gnomon_lstsq out = {.struct_size = sizeof out};
    const char *operands[2] = {NULL, NULL};
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    cli_init(&app, "lstsq");
    cli_input_init(&r.input);
    r.input.text_dtype = GNOMON_F64; /* a solution wants every digit */
    r.options = defaults;
    cli_sketch_init(&r.sketch, GNOMON_SJLT);
    int code = parse(&app, &r, argc, argv, operands);
    if (code < 0) code = check(&app, &r, operands);
    if (code >= 0) return code;
    r.options.seed = r.sketch.descriptor.seed;
    /* Without parameters of its own the library's default is the better sjlt. */
    if (r.sketch.kind != GNOMON_SJLT || r.sketch.nonzeros_given)
        r.options.descriptor = &r.sketch.descriptor;
    r.options.dtype = (gnomon_dtype)r.output_dtype;
    r.options.keep_residual = r.residual != NULL;
    code = cli_start(&app);
    if (code < 0) code = work(&app, &r, operands, &a, &b, &out);
    gnomon_lstsq_free(app.ctx, &out);
    cli_points_drop(&a);
    cli_points_drop(&b);
    return cli_end(&app, code);
}
