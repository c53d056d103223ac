/* gnomon operator: a block of S, dense or sparse, or the descriptor. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    cli_operator_options op_options;
    int64_t d;
    int d_given;
    cli_range rows, cols;
    const char *output, *output_format;
    int output_given;
    int dtype, sparse, describe;
    int64_t block_rows, block_cols;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv)
{
    static const cli_choice dtypes[] = {{"f4", GNOMON_F32},
                                        {"f8", GNOMON_F64},
                                        {"float32", GNOMON_F32},
                                        {"float64", GNOMON_F64},
                                        {NULL, 0}};
    const cli_option block[] = {
        {.letter = 'D',
         .type = CLI_INT,
         .target = &r->d,
         .given = &r->d_given,
         .low = 1,
         .high = (int64_t)1 << 56,
         .value = "D",
         .help = "dimensions of the points"},
        {.name = "rows",
         .type = CLI_RANGE,
         .target = &r->rows,
         .value = "A:B",
         .help = "rows A to B - 1, counted from 0; either may be left out (default: all)"},
        {.name = "cols",
         .type = CLI_RANGE,
         .target = &r->cols,
         .value = "C:D",
         .help = "columns likewise"},
        {.name = "sparse",
         .type = CLI_FLAG,
         .target = &r->sparse,
         .flag = 1,
         .holds = GNOMON_HOLDS_SPARSE,
         .help = "write the nonzeros alone"},
        {.name = "describe",
         .type = CLI_FLAG,
         .target = &r->describe,
         .flag = 1,
         .help = "print the descriptor as JSON (as --save-operator writes it) instead of entries"},
    };
    const cli_option output[] = {
        {.name = "output",
         .letter = 'o',
         .type = CLI_TEXT,
         .target = &r->output,
         .given = &r->output_given,
         .value = "OUT",
         .help = "where the block goes; - (default) is standard output"},
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &r->output_format,
         .flag = 1,
         .value = "FORMAT",
         .help = "the block's format; otherwise by OUT's ending, which must be a format's; without "
                 "one npy (sparse: mtx)"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->dtype,
         .choices = dtypes,
         .value = "TYPE",
         .help = "f4 (default) or f8"},
    };
    cli_option op_table[CLI_OPERATOR_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_operator_table(&r->op_options, op_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Operator", op_table), CLI_GROUP("Block", block),
                                CLI_GROUP("Output", output), CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "-k K -D D [--operator KIND] [--rows A:B] [--cols C:D] -o OUT [options]\n"
                    "--load-operator F.json [--rows A:B] [--cols C:D] -o OUT [options]\n"
                    "(-k K -D D ... | --load-operator F.json) (--describe | --json)",
        .about = "Writes a block of the random operator S (k x D): the entries that gnomon project "
                 "uses, with the same bits on every machine. A block is computed without the rest "
                 "of the matrix, however large D is. With --json and without -o only facts are "
                 "printed.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "Four rows of five random signs, as text\n"
                    "gnomon operator -k 4 -D 5 --output-format csv\n"
                    "The whole matrix, for a program to multiply by\n"
                    "gnomon operator --operator gaussian -k 64 -D 784 --seed 7 -o s.npy\n"
                    "The nonzeros of a block at column 10^12\n"
                    "gnomon operator --operator very-sparse --density 0.01 -k 64 -D 2000000000000 "
                    "--cols 1000000000000:1000000000500 --sparse --output-format mtx\n"
                    "The descriptor with every default filled in\n"
                    "gnomon operator --operator sjlt -k 64 -D 784 --describe\n",
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, NULL, &count);
}

static int resolve_range(cli_app *app, const char *name, cli_range *range, int64_t size)
{
    if (range->begin < 0) range->begin = 0;
    if (range->end < 0) range->end = size;
    if (range->end <= size && range->begin <= range->end) return -1;
    return cli_usage(app, "--%s %lld:%lld: the operator has %lld", name, (long long)range->begin,
                     (long long)range->end, (long long)size);
}

static int write_dense(cli_app *app, const request *r, const gnomon_operator *op,
                       gnomon_writer *writer)
{
    int64_t size = r->dtype == GNOMON_F64 ? 8 : 4, chunk = 1, row_bytes;
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES;
    if (r->block_rows == 0) return -1;
    if (__builtin_mul_overflow(r->block_cols, size, &row_bytes) || row_bytes > budget)
        return cli_fail(app, CLI_EXIT_MEMORY,
                        "one row of %lld entries does not fit in --memory: ask for fewer columns",
                        (long long)r->block_cols);
    if (row_bytes > 0) chunk = budget / row_bytes;
    /* Kinds make four rows at a time. */
    if (chunk > 4) chunk -= chunk % 4;
    if (chunk > r->block_rows) chunk = r->block_rows;
    void *data = malloc(cli_bytes(chunk, row_bytes));
    if (data == NULL)
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for %lld rows", (long long)chunk);
    int code = -1;
    for (int64_t row = 0; row < r->block_rows && code < 0; row += chunk) {
        int64_t rows = r->block_rows - row < chunk ? r->block_rows - row : chunk;
        gnomon_matrix block =
            gnomon_matrix_rowmajor(data, (gnomon_dtype)r->dtype, rows, r->block_cols);
        cli_bar_at(app, row, rows);
        gnomon_status status =
            gnomon_operator_block(app->ctx, op, r->rows.begin + row, r->cols.begin, &block);
        if (status == GNOMON_OK) status = gnomon_writer_rows(writer, &block);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) code = cli_fail_status(app, status);
    }
    free(data);
    return code;
}

static int write_sparse(cli_app *app, const request *r, const gnomon_operator *op,
                        gnomon_writer *writer)
{
    /* An entry takes an index and a value; twice the expected number leaves room for chance. */
    double row_bytes = 32.0 * gnomon_operator_fill(op) * (double)r->block_cols + 64;
    double fitting = (double)(app->memory - CLI_OVERHEAD_BYTES) / row_bytes;
    if (fitting < 1)
        return cli_fail(
            app, CLI_EXIT_MEMORY,
            "one row's nonzeros in %lld columns do not fit in --memory: ask for fewer columns",
            (long long)r->block_cols);
    int64_t chunk = fitting < (double)r->block_rows ? (int64_t)fitting : r->block_rows;
    if (chunk > 4) chunk -= chunk % 4;
    for (int64_t row = 0; row < r->block_rows; row += chunk) {
        int64_t rows = r->block_rows - row < chunk ? r->block_rows - row : chunk;
        gnomon_csr block;
        cli_bar_at(app, row, rows);
        gnomon_status status =
            gnomon_operator_block_csr(app->ctx, op, r->rows.begin + row, r->cols.begin, rows,
                                      r->block_cols, (gnomon_dtype)r->dtype, &block);
        if (status != GNOMON_OK) return cli_fail_status(app, status);
        status = gnomon_writer_csr(writer, &block);
        gnomon_csr_free(app->ctx, &block);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) return cli_fail_status(app, status);
    }
    return -1;
}

static int write_block(cli_app *app, const request *r, const gnomon_operator *op)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    gnomon_writer *writer = NULL;
    options.format = r->output_format;
    options.sparse = r->sparse;
    gnomon_status status = gnomon_writer_open(app->ctx, r->output, r->block_rows, r->block_cols,
                                              (gnomon_dtype)r->dtype, &options, &writer);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    cli_bar_begin(app, "making entries", r->block_rows);
    int code = r->sparse ? write_sparse(app, r, op, writer) : write_dense(app, r, op, writer);
    if (code < 0) code = cli_operator_save(app, &r->op_options, op);
    if (code >= 0) {
        gnomon_writer_abort(writer);
        return code;
    }
    status = gnomon_writer_finish(writer);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

static int describe(cli_app *app, const gnomon_operator *op)
{
    char *text = NULL;
    gnomon_status status = cli_operator_text(app, op, &text);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    fputs(text, stdout);
    free(text);
    return cli_flush_output(app->verb);
}

static int report(cli_app *app, const request *r, const gnomon_operator *op)
{
    json_t *figures = json_pack("{s:o*, s:f, s:f, s:I}", "descriptor", cli_descriptor_json(app, op),
                                "fill", gnomon_operator_fill(op), "row_scale",
                                gnomon_operator_row_scale(op, r->rows.begin), "granule",
                                (json_int_t)gnomon_operator_granule(op));
    if (figures != NULL && r->output_given)
        json_object_update_new(
            figures,
            json_pack("{s:o, s:b, s:s, s:[I,I], s:[I,I]}", "output", cli_json_name(r->output),
                      "sparse", r->sparse, "output_dtype", cli_dtype_name((gnomon_dtype)r->dtype),
                      "rows", (json_int_t)r->rows.begin, (json_int_t)r->rows.end, "cols",
                      (json_int_t)r->cols.begin, (json_int_t)r->cols.end));
    return cli_print_report(app, figures);
}

static int check(cli_app *app, request *r)
{
    int facts_only = r->describe || (app->json && !r->output_given);
    if (r->op_options.load == NULL && (!r->op_options.k_given || !r->d_given))
        return cli_usage(app, "-k and -D, or --load-operator, are needed");
    if (r->op_options.load != NULL && r->d_given)
        return cli_usage(app, "--load-operator says everything about the operator: leave out -D");
    if (r->describe && app->json)
        return cli_usage(app, "--describe and --json both print JSON: give one");
    if (r->describe && r->output_given)
        return cli_usage(app, "--describe makes no entries: leave out -o (--save-operator FILE "
                              "writes the descriptor to a file)");
    const cli_file files[] = {{"--load-operator", r->op_options.load, 0},
                              {"-o", r->output, 1},
                              {"--save-operator", r->op_options.save, 1}};
    const int code = cli_check_apart(app, files, 3);
    if (code >= 0) return code;
    if (facts_only) return -1;
    if (r->sparse && r->output_format == NULL && strcmp(r->output, "-") == 0)
        r->output_format = "mtx";
    const char *format;
    const int unknown =
        cli_output_is(app, "-o", r->output, r->output_format,
                      r->sparse ? GNOMON_HOLDS_SPARSE : GNOMON_HOLDS_DENSE, &format);
    return unknown >= 0 ? unknown
                        : cli_check_output(app, r->output, format, &r->op_options.load, 1);
}

static int work(cli_app *app, request *r, gnomon_operator **op)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    r->op_options.descriptor.d = r->d;
    int code = r->op_options.load != NULL ? cli_operator_load(app, &r->op_options, op)
                                          : cli_operator_make(app, &r->op_options, op);
    if (code >= 0) return code;
    gnomon_operator_describe(*op, &d);
    code = resolve_range(app, "rows", &r->rows, d.k);
    if (code < 0) code = resolve_range(app, "cols", &r->cols, d.d);
    if (code >= 0) return code;
    r->block_rows = r->rows.end - r->rows.begin;
    r->block_cols = r->cols.end - r->cols.begin;
    if (r->describe || (app->json && !r->output_given)) {
        code = cli_operator_save(app, &r->op_options, *op);
        if (code >= 0) return code;
        return app->json ? report(app, r, *op) : describe(app, *op);
    }
    code = write_block(app, r, *op);
    if (code >= 0) return code;
    return app->json ? report(app, r, *op) : CLI_EXIT_DONE;
}

int cli_operator(int argc, char **argv)
{
    cli_app app;
    request r;
    gnomon_operator *op = NULL;
    memset(&r, 0, sizeof r);
    cli_init(&app, "operator");
    cli_operator_init(&r.op_options);
    r.output = "-";
    r.dtype = GNOMON_F32;
    r.rows = r.cols = (cli_range){-1, -1};
    int code = parse(&app, &r, argc, argv);
    if (code < 0) code = check(&app, &r);
    if (code >= 0) return code;
    code = cli_start(&app);
    if (code < 0) code = work(&app, &r, &op);
    gnomon_operator_destroy(op);
    return cli_end(&app, code);
}
