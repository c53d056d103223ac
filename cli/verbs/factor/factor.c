/* What the verbs that factor a matrix or a tensor share. */
#include "cli.h"

#include <string.h>

const cli_choice cli_float_types[] = {{"f4", GNOMON_F32},
                                      {"f8", GNOMON_F64},
                                      {"float32", GNOMON_F32},
                                      {"float64", GNOMON_F64},
                                      {NULL, 0}};

gnomon_dtype cli_work_dtype(int asked, const gnomon_data_info *info)
{
    if (asked != 0) return (gnomon_dtype)asked;
    switch (info->dtype) {
    case GNOMON_F64:
    case GNOMON_I32:
    case GNOMON_U32:
    case GNOMON_I64:
    case GNOMON_U64:
        return GNOMON_F64;
    default:
        return GNOMON_F32;
    }
}

int cli_fail_of_file(cli_app *app, gnomon_status status, const char *path)
{
    const char *argument = gnomon_last_error_argument(app->ctx);
    if (status == GNOMON_OK) return -1;
    const int of_file = strcmp(argument, "a") == 0 || strcmp(argument, "b") == 0;
    if (status != GNOMON_ERROR_CANCELLED && of_file && cli_error_rest(app)[0] == ' ')
        return cli_fail(app, CLI_EXIT_DATA, "%s%s", path, cli_error_rest(app));
    if (status == GNOMON_ERROR_NONFINITE || status == GNOMON_ERROR_SHAPE)
        return cli_fail(app, CLI_EXIT_DATA, "%s: %s", path, gnomon_last_error(app->ctx));
    return cli_fail_status(app, status);
}

static gnomon_status next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    cli_stream *s = user;
    const double before = cli_seconds();
    gnomon_status status = gnomon_reader_next(s->reader, dst, got);
    s->seconds += cli_seconds() - before;
    return status == GNOMON_OK && cli_interrupted() ? GNOMON_ERROR_CANCELLED : status;
}

static gnomon_status rewind_reader(void *user)
{
    const cli_stream *s = user;
    return gnomon_reader_seek(s->reader, 0);
}

gnomon_svd_rows cli_stream_rows(cli_stream *s, const gnomon_data_info *info, gnomon_dtype dtype)
{
    const int can_seek = (info->access & GNOMON_ACCESS_SEEK) != 0;
    return (gnomon_svd_rows){s,     info->rows, info->cols,
                             dtype, next,       can_seek ? rewind_reader : NULL};
}

static gnomon_status next_sparse(void *user, int64_t max_rows, int64_t max_nonzeros,
                                 gnomon_csr *csr)
{
    cli_stream *s = user;
    const double before = cli_seconds();
    gnomon_status status = gnomon_reader_next_csr(s->reader, max_rows, max_nonzeros, csr);
    s->seconds += cli_seconds() - before;
    return status == GNOMON_OK && cli_interrupted() ? GNOMON_ERROR_CANCELLED : status;
}

gnomon_svd_sparse_rows cli_stream_sparse(cli_stream *s, const gnomon_data_info *info)
{
    return (gnomon_svd_sparse_rows){s,           info->rows,  info->cols,
                                    info->dtype, next_sparse, rewind_reader};
}

void cli_sketch_init(cli_sketch_options *s, gnomon_kind kind)
{
    static const gnomon_descriptor empty = GNOMON_DESCRIPTOR_INIT;
    memset(s, 0, sizeof *s);
    s->descriptor = empty;
    s->kind = kind;
}

void cli_sketch_table(cli_sketch_options *s, const cli_sketch_words *words,
                      cli_option table[CLI_SKETCH_OPTIONS])
{
    const cli_option options[CLI_SKETCH_OPTIONS] = {
        {.name = "operator",
         .type = CLI_CHOICE,
         .target = &s->kind,
         .given = &s->kind_given,
         .value = "KIND",
         .choices = cli_kinds(0, 0),
         .help = words->kind},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &s->descriptor.seed,
         .value = "N",
         .help = words->seed},
        {.name = "density",
         .type = CLI_REAL,
         .target = &s->descriptor.density,
         .given = &s->density_given,
         .reals = CLI_DENSITY_RANGE,
         .value = "P",
         .help = words->density},
        {.name = "nonzeros",
         .type = CLI_INT,
         .target = &s->descriptor.nonzeros,
         .given = &s->nonzeros_given,
         .low = 1,
         .value = "S",
         .help = words->nonzeros},
    };
    memcpy(table, options, sizeof options);
}

int cli_sketch_check(cli_app *app, cli_sketch_options *s)
{
    if (s->density_given && !cli_kind_uses((gnomon_kind)s->kind, GNOMON_USES_DENSITY))
        return cli_usage(app, "--density requires --operator %s",
                         cli_kinds_that_use(GNOMON_USES_DENSITY, " or ").text);
    if (s->nonzeros_given && !cli_kind_uses((gnomon_kind)s->kind, GNOMON_USES_NONZEROS))
        return cli_usage(app, "--nonzeros requires --operator %s",
                         cli_kinds_that_use(GNOMON_USES_NONZEROS, " or ").text);
    s->descriptor.kind = (gnomon_kind)s->kind;
    return -1;
}

int cli_check_arrays_output(cli_app *app, const char *output, const char *input)
{
    const char *const inputs[] = {input};
    if (output == NULL) return -1;
    const size_t length = strlen(output);
    if (strcmp(output, "-") != 0 && (length < 5 || strcmp(output + length - 4, ".npz") != 0))
        return cli_usage(app, "-o %s: several arrays need a name that ends in .npz", output);
    return cli_check_output(app, output, "npz", inputs, 1);
}

double cli_dense_bytes(const gnomon_data_info *info, gnomon_dtype dtype)
{
    if (info->rows < 0) return -1;
    return (double)info->rows * (double)info->cols * (double)gnomon_dtype_size(dtype);
}

int cli_factor_end(cli_app *app, json_t *report, int converged, double tolerance)
{
    const int code = app->json ? cli_print_report(app, report) : CLI_EXIT_DONE;
    if (code != CLI_EXIT_DONE || converged) return code;
    cli_say(app, "gnomon %s: the tolerance %g was not reached; this is the best found\n", app->verb,
            tolerance);
    return CLI_EXIT_NEGATIVE;
}
