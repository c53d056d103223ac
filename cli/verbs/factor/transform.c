/* gnomon transform: new points in the space of a factorisation that gnomon svd wrote, and back. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    cli_input_options input;
    const char *factors, *points;
    const char *output, *output_format;
    int output_dtype, whiten, inverse, large;
} request;

/* The members of the file of factors. */
enum { U, S, VT, MEAN, SCALE, MEMBERS };
static const char *const names[MEMBERS] = {"U", "S", "Vt", "mean", "scale"};

typedef struct member {
    int there, dimensions;
    gnomon_dtype dtype;
    int64_t rows, cols;
    void *data; /* U: not read */
} member;

typedef struct job {
    cli_app *app;
    const request *r;
    member of[MEMBERS];
    int unread; /* exit code of a member that can't be read; -1 */
    gnomon_matrix vt;
    gnomon_svd_transform_options options;
    gnomon_reader *reader;
    gnomon_data_info info;
    gnomon_writer *writer;
    gnomon_dtype stored;
    int64_t in, out; /* columns */
    int64_t chunk, nonzeros;
    void *x, *y;
    int64_t points;
    double read_seconds, transform_seconds, write_seconds;
} job;

static int parse(cli_app *app, request *r, int argc, char **argv)
{
    const cli_option what[] = {
        {.name = "whiten",
         .type = CLI_FLAG,
         .target = &r->whiten,
         .flag = 1,
         .help = "divide each score by its standard deviation S / sqrt(n - 1), n the rows of U; "
                 "with --inverse the scores are multiplied by it"},
        {.name = "inverse",
         .type = CLI_FLAG,
         .target = &r->inverse,
         .flag = 1,
         .help = "from scores (n x K) back to points (n x D)"},
    };
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .value = "OUT",
         .help = "where the scores go; - (default) is standard output"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &r->output_format,
         .flag = 1,
         .value = "FORMAT",
         .help =
             "their format; otherwise by OUT's ending, which must be a format's; npy without one"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = cli_float_types,
         .value = "TYPE",
         .help = "f4 or f8 (default: that of Vt). All sums are in double precision"},
        cli_large_option(&r->large),
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_table(&r->input, input_table);
    for (int i = 0; i < CLI_INPUT_OPTIONS; i++)
        if (strcmp(input_table[i].name, "features") == 0)
            input_table[i].help = "the number of coordinates (otherwise that of the factors)";
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("What", what), CLI_GROUP("Output", output),
                                CLI_GROUP("Input", input_table), CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "FACTORS.npz INPUT -o OUT [--whiten] [options]\n"
                    "FACTORS.npz SCORES -o OUT --inverse [--whiten] [options]",
        .about = "Projects points to the components of a factorisation that gnomon svd wrote: the "
                 "scores are ((x - mean) / scale) V, with the mean after svd --center and the "
                 "scale after svd --standardize. Points may be sparse, and no dense copy is made; "
                 "they stream through, so that a file may be larger than memory. Vt must fit in "
                 "--memory.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "Ten principal components of some points, and the scores of others\n"
                    "gnomon svd points.npy -k 10 --center -o factors.npz\n"
                    "gnomon transform factors.npz more.csv -o scores.npy\n"
                    "The same, scaled to unit variance\n"
                    "gnomon transform factors.npz more.csv --whiten -o scores.npy\n"
                    "The reconstruction of points from scores\n"
                    "gnomon transform factors.npz scores.npy --inverse --whiten -o near.npy\n",
        .min_operands = 2,
        .max_operands = 2,
    };
    const char *operands[2] = {NULL, NULL};
    int count = 0;
    const int code = cli_parse(&verb, argc, argv, operands, &count);
    r->factors = operands[0];
    r->points = operands[1];
    return code;
}

static int check(cli_app *app, const request *r)
{
    const char *const inputs[] = {r->factors, r->points};
    const char *format;
    if (strcmp(r->factors, "-") == 0)
        return cli_usage(app, "the factors can't come from standard input: name a file");
    const cli_file files[] = {
        {"FACTORS", r->factors, 0}, {"INPUT", r->points, 0}, {"-o", r->output, 1}};
    const int code = cli_check_apart(app, files, 3);
    if (code >= 0) return code;
    const int unknown =
        cli_output_is(app, "-o", r->output, r->output_format, GNOMON_HOLDS_DENSE, &format);
    return unknown >= 0 ? unknown : cli_check_output(app, r->output, format, inputs, 2);
}

/* ---- the file of factors ---- */

static void note_member(void *user, const char *name, const gnomon_data_info *info)
{
    job *j = user;
    for (int i = 0; i < MEMBERS; i++)
        if (strcmp(name, names[i]) == 0 && info != NULL)
            j->of[i] = (member){1, info->dimensions, info->dtype, info->rows, info->cols, NULL};
        else if (strcmp(name, names[i]) == 0 && j->unread < 0) /* not as if it were not there */
            j->unread = cli_fail(j->app, CLI_EXIT_DATA, "%s", gnomon_last_error(j->app->ctx));
}

static int bad_member(job *j, int which, const char *why)
{
    return cli_fail(j->app, CLI_EXIT_DATA, "%s: the member %s %s", j->r->factors, names[which],
                    why);
}

/* Refuses what gnomon svd does not write. -1 or an exit code. */
static int check_members(job *j)
{
    const member *m = j->of;
    const int64_t rank = m[VT].rows, cols = m[VT].cols;
    for (int i = S; i <= VT; i++)
        if (!m[i].there)
            return cli_fail(
                j->app, CLI_EXIT_DATA,
                "%s: there is no member %s; the factors are an .npz that gnomon svd wrote",
                j->r->factors, names[i]);
    if (m[VT].dimensions != 2 || (m[VT].dtype != GNOMON_F32 && m[VT].dtype != GNOMON_F64))
        return bad_member(j, VT, "must have two dimensions and the type f4 or f8");
    if (rank < 1 || cols < 1) return bad_member(j, VT, "is empty");
    for (int i = S; i < MEMBERS; i++) {
        const int64_t due = i == S ? rank : cols;
        if (i == VT || !m[i].there) continue;
        if (m[i].dimensions == 1 && m[i].dtype == GNOMON_F64 && m[i].cols == due) continue;
        return cli_fail(j->app, CLI_EXIT_DATA,
                        "%s: the member %s must have one dimension, the type f8 and, beside Vt "
                        "(%lld x %lld), %lld numbers",
                        j->r->factors, names[i], (long long)rank, (long long)cols, (long long)due);
    }
    if (m[U].there && (m[U].dimensions != 2 || m[U].cols != rank || m[U].rows < 1))
        return cli_fail(
            j->app, CLI_EXIT_DATA,
            "%s: the member U must have two dimensions and, beside Vt (%lld x %lld), %lld columns",
            j->r->factors, (long long)rank, (long long)cols, (long long)rank);
    if (j->r->whiten && !m[U].there)
        return cli_fail(j->app, CLI_EXIT_DATA,
                        "%s: there is no member U, whose number of rows --whiten needs",
                        j->r->factors);
    if (j->r->whiten && m[U].rows < 2)
        return bad_member(j, U, "has one row; --whiten divides by the deviation of two at least");
    return -1;
}

/* Reads a member as it is stored. -1 or an exit code. */
static int read_member(job *j, int which)
{
    member *const m = &j->of[which];
    gnomon_reader *reader = NULL;
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s:%s", j->r->factors, names[which]) >= sizeof path)
        return cli_fail(j->app, CLI_EXIT_FILE, "%s: the name is too long", j->r->factors);
    m->data = malloc(cli_bytes(m->rows * m->cols, (int64_t)gnomon_dtype_size(m->dtype)));
    if (m->data == NULL)
        return cli_fail(j->app, CLI_EXIT_MEMORY, "%s: the member %s does not fit in memory",
                        j->r->factors, names[which]);
    gnomon_matrix all = gnomon_matrix_rowmajor(m->data, m->dtype, m->rows, m->cols);
    gnomon_status status = gnomon_reader_open(j->app->ctx, path, NULL, &reader);
    int64_t have = 0, got = 1, row = 0, col = 0;
    while (status == GNOMON_OK && have < m->rows && got > 0) {
        const gnomon_matrix part = gnomon_matrix_rowmajor(
            (char *)m->data + (size_t)(have * m->cols) * gnomon_dtype_size(m->dtype), m->dtype,
            m->rows - have, m->cols);
        status = gnomon_reader_next(reader, &part, &got);
        have += got;
    }
    if (status == GNOMON_OK) status = gnomon_matrix_check_finite(j->app->ctx, &all, &row, &col);
    gnomon_reader_close(reader);
    if (status == GNOMON_ERROR_NONFINITE) return bad_member(j, which, "has NaN or infinity");
    return status == GNOMON_OK ? -1 : cli_fail_status(j->app, status);
}

/* -1 or an exit code. */
static int check_scale(job *j)
{
    const double *scale = j->of[SCALE].data;
    for (int64_t i = 0; scale != NULL && i < j->of[SCALE].cols; i++)
        if (!(scale[i] > 0)) return bad_member(j, SCALE, "has a number that is not positive");
    return -1;
}

/* Reads the factors, lowering *budget by what they take. -1 or an exit code. */
static int load(job *j, int64_t *budget)
{
    static const gnomon_svd_transform_options defaults = GNOMON_SVD_TRANSFORM_OPTIONS_INIT;
    j->unread = -1;
    const gnomon_status status = gnomon_file_describe(j->app->ctx, j->r->factors, note_member, j);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    int code = j->unread >= 0 ? j->unread : check_members(j);
    if (code >= 0) return code;
    const double bytes = (double)j->of[VT].rows * (double)j->of[VT].cols *
                             (double)gnomon_dtype_size(j->of[VT].dtype) +
                         16.0 * (double)j->of[VT].cols;
    if (bytes > 0.5 * (double)*budget)
        return cli_fail(j->app, CLI_EXIT_MEMORY, "%s: Vt needs %s", j->r->factors,
                        cli_memory_words(2 * bytes + (double)CLI_OVERHEAD_BYTES).text);
    *budget -= (int64_t)bytes;
    for (int i = S; i < MEMBERS && code < 0; i++)
        if (j->of[i].there) code = read_member(j, i);
    if (code < 0) code = check_scale(j);
    if (code >= 0) return code;
    j->vt = gnomon_matrix_rowmajor(j->of[VT].data, j->of[VT].dtype, j->of[VT].rows, j->of[VT].cols);
    j->options = defaults;
    j->options.vt = &j->vt;
    j->options.s = j->of[S].data;
    j->options.mean = j->of[MEAN].data;
    j->options.scale = j->of[SCALE].data;
    j->options.rows = j->of[U].rows;
    j->options.whiten = j->r->whiten;
    j->options.inverse = j->r->inverse;
    j->in = j->r->inverse ? j->vt.rows : j->vt.cols;
    j->out = j->r->inverse ? j->vt.cols : j->vt.rows;
    j->stored = j->r->output_dtype != 0 ? (gnomon_dtype)j->r->output_dtype : j->vt.dtype;
    return -1;
}

/* ---- the points ---- */

static int is_sparse(const job *j)
{
    return (j->info.access & GNOMON_ACCESS_SPARSE) != 0 && !j->r->inverse;
}

/* The points of a chunk. -1 or an exit code. */
static int plan(job *j, int64_t budget)
{
    enum { ENOUGH = 64 << 20 };
    const double row = (is_sparse(j) ? 8.0 : 8.0 * (double)j->in) +
                       (double)gnomon_dtype_size(j->stored) * (double)j->out;
    const double fixed = is_sparse(j) ? 8.0 * (double)j->in * (double)(j->out + 1) : 0;
    const double left = 0.5 * ((double)budget - fixed);
    if (row > left)
        return cli_fail(j->app, CLI_EXIT_MEMORY, "one point of %lld coordinates needs %s",
                        (long long)j->in,
                        cli_memory_words(2 * row + fixed + (double)(j->app->memory - budget)).text);
    j->chunk = (int64_t)fmin(left, ENOUGH) / (int64_t)row;
    if (is_sparse(j)) j->chunk = (int64_t)(left / row); /* each chunk costs a pass over Vt */
    j->chunk = cli_max(j->chunk, 1);
    if (j->info.rows >= 0) j->chunk = cli_min(j->chunk, cli_max(j->info.rows, 1));
    j->nonzeros = cli_max((int64_t)(left / 32), 1);
    if (!is_sparse(j)) j->x = malloc(cli_bytes(j->chunk * j->in, 8));
    j->y = malloc(cli_bytes(j->chunk * j->out, (int64_t)gnomon_dtype_size(j->stored)));
    if (j->y != NULL && (j->x != NULL || is_sparse(j))) return -1;
    return cli_fail(j->app, CLI_EXIT_MEMORY, "out of memory for %lld points", (long long)j->chunk);
}

static int fail_points(job *j, gnomon_status status)
{
    int64_t row = -1, col = -1;
    if (cli_error_about(j->app, "options.s"))
        return cli_fail(j->app, CLI_EXIT_DATA, "%s: the member S%s", j->r->factors,
                        cli_error_rest(j->app));
    if (status != GNOMON_ERROR_NONFINITE && status != GNOMON_ERROR_OVERFLOW)
        return cli_fail_status(j->app, status);
    gnomon_last_error_place(j->app->ctx, &row, &col);
    if (status == GNOMON_ERROR_NONFINITE)
        return cli_fail(j->app, CLI_EXIT_DATA,
                        "%s: NaN or infinity in row %lld, column %lld (both counted from 0)",
                        j->r->points, (long long)(j->points + row), (long long)col);
    return cli_fail(j->app, CLI_EXIT_DATA,
                    "%s: what row %lld (counted from 0) becomes is beyond what %s holds%s",
                    j->r->points, (long long)(j->points + row), cli_dtype_name(j->stored),
                    j->stored == GNOMON_F32 ? "; use --output-dtype f8" : "");
}

static void account(double *sum, double *mark)
{
    const double now = cli_seconds();
    *sum += now - *mark;
    *mark = now;
}

/* The next points; *got 0 at the end. -1 or an exit code. */
static int step(job *j, int64_t *got)
{
    gnomon_matrix x = gnomon_matrix_rowmajor(j->x, GNOMON_F64, j->chunk, j->in);
    gnomon_csr csr;
    double mark = cli_seconds();
    gnomon_status status = is_sparse(j)
                               ? gnomon_reader_next_csr(j->reader, j->chunk, j->nonzeros, &csr)
                               : gnomon_reader_next(j->reader, &x, got);
    account(&j->read_seconds, &mark);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    if (is_sparse(j)) *got = csr.rows;
    if (*got == 0) return -1;
    const gnomon_matrix y = gnomon_matrix_rowmajor(j->y, j->stored, *got, j->out);
    x.rows = *got;
    cli_bar_at(j->app, j->points, *got);
    status = is_sparse(j) ? gnomon_svd_transform_csr(j->app->ctx, &csr, &j->options, &y)
                          : gnomon_svd_transform(j->app->ctx, &x, &j->options, &y);
    account(&j->transform_seconds, &mark);
    if (status != GNOMON_OK) return fail_points(j, status);
    status = gnomon_writer_rows(j->writer, &y);
    account(&j->write_seconds, &mark);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    j->points += *got;
    cli_bar_at(j->app, j->points, 0);
    return cli_interrupted() ? cli_fail_status(j->app, GNOMON_ERROR_CANCELLED) : -1;
}

/* Everything between the factors and the closed writer. -1 or an exit code. */
static int transform(job *j, int64_t budget)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    const request *r = j->r;
    cli_input_options input = r->input;
    if (input.features == 0) input.features = j->in;
    int code = cli_open_input(j->app, r->points, &input, &j->reader, &j->info);
    if (code >= 0) return code;
    if (j->info.cols != j->in)
        return cli_fail(j->app, CLI_EXIT_DATA,
                        "%s: the factors are for %s of %lld coordinates, these have %lld",
                        r->points, r->inverse ? "scores" : "points", (long long)j->in,
                        (long long)j->info.cols);
    options.format = r->output_format;
    if (!r->large)
        code = cli_check_room(j->app, r->points, r->output, options.format, j->info.rows, j->out,
                              j->stored);
    if (code < 0) code = plan(j, budget);
    if (code >= 0) return code;
    gnomon_status status = gnomon_writer_open(j->app->ctx, r->output, j->info.rows, j->out,
                                              j->stored, &options, &j->writer);
    if (status != GNOMON_OK) return cli_fail_status(j->app, status);
    cli_bar_begin(j->app, "transforming", j->info.rows);
    for (int64_t got = 1; got > 0 && code < 0;)
        code = step(j, &got);
    cli_bar_clear(j->app);
    if (code >= 0) return code;
    double mark = cli_seconds();
    status = gnomon_writer_finish(j->writer);
    j->writer = NULL;
    account(&j->write_seconds, &mark);
    return status == GNOMON_OK ? -1 : cli_fail_status(j->app, status);
}

static int report(const job *j)
{
    const request *r = j->r;
    return cli_print_report(
        j->app,
        json_pack("{s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:s, s:s, s:s, s:I, "
                  "s:f, s:f, s:f}",
                  "factors", cli_json_name(r->factors), "input", cli_json_name(r->points), "output",
                  cli_json_name(r->output), "format", j->info.format, "points",
                  (json_int_t)j->points, "dimensions", (json_int_t)j->vt.cols, "rank",
                  (json_int_t)j->vt.rows, "centered", j->options.mean != NULL, "standardized",
                  j->options.scale != NULL, "whiten", r->whiten, "inverse", r->inverse, "dtype",
                  cli_dtype_name(j->info.dtype), "output_dtype", cli_dtype_name(j->stored), "held",
                  is_sparse(j) ? "sparse" : "pieces", "chunk_points", (json_int_t)j->chunk,
                  "read_seconds", cli_json_seconds(j->read_seconds), "transform_seconds",
                  cli_json_seconds(j->transform_seconds), "write_seconds",
                  cli_json_seconds(j->write_seconds)));
}

int cli_transform(int argc, char **argv)
{
    cli_app app;
    request r;
    job j;
    memset(&r, 0, sizeof r);
    memset(&j, 0, sizeof j);
    cli_init(&app, "transform");
    cli_input_init(&r.input);
    r.output = "-";
    r.input.text_dtype = GNOMON_F64; /* every digit: few may be left beside a mean */
    int code = parse(&app, &r, argc, argv);
    if (code < 0) code = check(&app, &r);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code >= 0) return code;
    j.app = &app;
    j.r = &r;
    int64_t budget = app.memory - CLI_OVERHEAD_BYTES;
    code = load(&j, &budget);
    if (code < 0) code = transform(&j, budget);
    if (code < 0) {
        cli_say(&app, "gnomon transform: %lld points from %lld to %lld dimensions in %.2f s\n",
                (long long)j.points, (long long)j.in, (long long)j.out,
                cli_seconds() - app.started);
        code = app.json ? report(&j) : CLI_EXIT_DONE;
    }
    gnomon_writer_abort(j.writer);
    gnomon_reader_close(j.reader);
    free(j.x);
    free(j.y);
    for (int i = 0; i < MEMBERS; i++)
        free(j.of[i].data);
    return cli_end(&app, code);
}
