/* gnomon convert: points from one format to another. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
    cli_input_options input;
    const char *output_format;
    int output_dtype, column_major, sparse, dense, no_compress, large;
    int64_t digits;
} request;

static int parse(cli_app *app, request *r, int argc, char **argv, const char **operands)
{
    static const cli_choice orders[] = {{"C", 0}, {"F", 1}, {NULL, 0}};
    const cli_option output[] = {
        {.name = "output-format",
         .type = CLI_FORMAT,
         .target = &r->output_format,
         .flag = 1,
         .value = "FORMAT",
         .help = "the output's format; otherwise by its ending, else npy"},
        {.name = "output-dtype",
         .type = CLI_CHOICE,
         .target = &r->output_dtype,
         .choices = cli_dtypes,
         .value = "TYPE",
         .help =
             "the elements' type: f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8 or float32, uint8 ... (default: "
             "as in the input, f8 for text). Numbers are rounded to integer types; a number that "
             "does not fit is an error"},
        {.name = "order",
         .type = CLI_CHOICE,
         .target = &r->column_major,
         .choices = orders,
         .value = "ORDER",
         .takes = GNOMON_TAKES_ORDER,
         .help = "C (default, point by point) or F (coordinate by coordinate)"},
        {.name = "sparse",
         .type = CLI_FLAG,
         .target = &r->sparse,
         .flag = 1,
         .holds = GNOMON_HOLDS_SPARSE,
         .help = "write the nonzeros alone (default for sparse input)"},
        {.name = "dense",
         .type = CLI_FLAG,
         .target = &r->dense,
         .flag = 1,
         .help = "write every coordinate, of sparse input too"},
        {.name = "digits",
         .type = CLI_INT,
         .target = &r->digits,
         .low = 1,
         .high = 17,
         .value = "N",
         .takes = GNOMON_TAKES_DIGITS,
         .help = "significant digits (default: the fewest that read back as the same number)"},
        {.name = "no-compress",
         .type = CLI_FLAG,
         .target = &r->no_compress,
         .flag = 1,
         .takes = GNOMON_TAKES_COMPRESS,
         .help = "store instead of compressing"},
        cli_large_option(&r->large),
    };
    cli_option input_table[CLI_INPUT_OPTIONS], common[CLI_COMMON_OPTIONS];
    cli_input_table(&r->input, input_table);
    cli_common_options(app, common);
    const cli_group groups[] = {CLI_GROUP("Output", output), CLI_GROUP("Input", input_table),
                                CLI_GROUP("Common", common)};
    const cli_verb verb = {
        .name = app->verb,
        .synopsis = "INPUT OUTPUT [options]",
        .about =
            "Copies points from one file format to another. The input's format is detected from "
            "its content, then from its name; the output's follows from its name. The output file "
            "appears only when it is complete.",
        .groups = groups,
        .group_count = sizeof groups / sizeof groups[0],
        .examples = "Text to NumPy's format, in single precision\n"
                    "gnomon convert points.csv points4.npy --output-dtype f4\n"
                    "Points as text\n"
                    "gnomon convert points.npy - --output-format csv\n"
                    "Raw numbers of a known shape\n"
                    "gnomon convert points.raw from-raw.npy --shape 100,784 --dtype f4\n"
                    "Dense points as Matrix Market coordinates\n"
                    "gnomon convert points.npy points.mtx --sparse\n",
        .min_operands = 2,
        .max_operands = 2,
    };
    int count = 0;
    return cli_parse(&verb, argc, argv, operands, &count);
}

static int64_t chunk_rows(const cli_app *app, int64_t row_bytes, int64_t rows)
{
    int64_t budget = app->memory - CLI_OVERHEAD_BYTES, cap = (int64_t)64 << 20;
    int64_t chunk = (budget < cap ? budget : cap) / (row_bytes > 0 ? row_bytes : 1);
    if (rows >= 0 && chunk > rows) chunk = rows;
    return chunk > 1 ? chunk : 1;
}

/* Dense points to CSR without their zeros. offsets has rows + 1 places, indices and values
 * rows * cols. */
static void drop_zeros(const gnomon_matrix *x, int64_t *offsets, int64_t *indices, void *values,
                       gnomon_csr *out)
{
    int64_t count = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < x->rows; ++i) {
        for (int64_t j = 0; j < x->cols; ++j) {
            int64_t at = i * x->cols + j;
            if (x->dtype == GNOMON_F64) {
                double value = ((const double *)x->data)[at];
                if (value == 0) continue;
                ((double *)values)[count] = value;
            } else {
                float value = ((const float *)x->data)[at];
                if (value == 0) continue;
                ((float *)values)[count] = value;
            }
            indices[count++] = j;
        }
        offsets[i + 1] = count;
    }
    *out = (gnomon_csr){x->rows, x->cols, offsets, indices, values, x->dtype};
}

/* The type in which points pass from reader to writer: the input's own where the output is
 * of the same type, else one that loses nothing on the way. */
static gnomon_dtype passing_type(const gnomon_data_info *info, gnomon_dtype to, int sparse)
{
    gnomon_dtype from = info->dtype;
    if (!sparse && from == to && (info->access & GNOMON_ACCESS_SPARSE) == 0) return from;
    if (from == GNOMON_F32 || from == GNOMON_F16 || from == GNOMON_BF16 || from == GNOMON_I8 ||
        from == GNOMON_U8 || from == GNOMON_I16 || from == GNOMON_U16)
        return GNOMON_F32;
    return GNOMON_F64;
}

/* The first of so many numbers that is finite and would be infinite as the output's type; count
 * when there is none. */
static int64_t first_beyond(const void *values, gnomon_dtype dtype, int64_t count, gnomon_dtype to)
{
    const double beyond = cli_beyond(to);
    if (dtype == to || !(beyond < HUGE_VAL)) return count;
    for (int64_t i = 0; i < count; ++i) {
        const double value =
            dtype == GNOMON_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
        if (fabs(value) >= beyond && isfinite(value)) return i;
    }
    return count;
}

static int fail_beyond(cli_app *app, const char *output, gnomon_dtype to, int64_t row, int64_t col)
{
    return cli_fail(
        app, CLI_EXIT_DATA,
        "%s: the number in row %lld, column %lld (both counted from 0) is beyond what %s holds",
        output, (long long)row, (long long)col, gnomon_dtype_name(to));
}

static int copy_dense(cli_app *app, gnomon_reader *reader, const gnomon_data_info *info,
                      gnomon_dtype to, int sparse, const char *output, gnomon_writer *writer,
                      int64_t *points)
{
    gnomon_dtype passing = passing_type(info, to, sparse);
    int64_t element = (int64_t)gnomon_dtype_size(passing), row_bytes;
    int64_t bytes_each = sparse ? element * 2 + 8 : element;
    if (__builtin_mul_overflow(info->cols, bytes_each, &row_bytes) ||
        row_bytes > app->memory - CLI_OVERHEAD_BYTES)
        return cli_fail(app, CLI_EXIT_MEMORY,
                        "one point of %lld coordinates does not fit in --memory",
                        (long long)info->cols);
    int64_t chunk = chunk_rows(app, row_bytes, info->rows);
    const int64_t entries = chunk * info->cols;
    void *data = malloc(cli_bytes(entries, element));
    void *values = sparse ? malloc(cli_bytes(entries, element)) : NULL;
    int64_t *indices = sparse ? malloc(cli_bytes(entries, sizeof(int64_t))) : NULL;
    int64_t *offsets = sparse ? malloc(cli_bytes(chunk + 1, sizeof(int64_t))) : NULL;
    int code = -1;
    if (data == NULL || (sparse && (values == NULL || indices == NULL || offsets == NULL)))
        code = cli_fail(app, CLI_EXIT_MEMORY, "out of memory for %lld points", (long long)chunk);
    while (code < 0) {
        gnomon_matrix x = gnomon_matrix_rowmajor(data, passing, chunk, info->cols);
        gnomon_csr csr;
        int64_t got = 0;
        gnomon_status status = gnomon_reader_next(reader, &x, &got);
        if (status == GNOMON_OK && got == 0) break;
        x.rows = got;
        const int64_t count = got * info->cols;
        const int64_t at = status == GNOMON_OK ? first_beyond(data, passing, count, to) : count;
        if (at < count) {
            code = fail_beyond(app, output, to, *points + at / info->cols, at % info->cols);
            break;
        }
        if (status == GNOMON_OK && sparse) {
            drop_zeros(&x, offsets, indices, values, &csr);
            status = gnomon_writer_csr(writer, &csr);
        } else if (status == GNOMON_OK) {
            status = gnomon_writer_rows(writer, &x);
        }
        *points += got;
        cli_bar_at(app, *points, 0);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) code = cli_fail_status(app, status);
    }
    free(data);
    free(values);
    free(indices);
    free(offsets);
    return code;
}

static int copy_sparse(cli_app *app, gnomon_reader *reader, gnomon_dtype to, const char *output,
                       gnomon_writer *writer, int64_t *points)
{
    int64_t entries = (app->memory - CLI_OVERHEAD_BYTES) / 32, cap = (int64_t)4 << 20;
    for (;;) {
        gnomon_csr csr;
        gnomon_status status =
            gnomon_reader_next_csr(reader, cap, entries < cap ? entries : cap, &csr);
        if (status == GNOMON_OK && csr.rows == 0) return -1;
        if (status == GNOMON_OK) {
            const int64_t count = csr.offsets[csr.rows] - csr.offsets[0];
            const int64_t at = first_beyond(csr.values, csr.dtype, count, to);
            int64_t row = 0;
            while (at < count && csr.offsets[row + 1] - csr.offsets[0] <= at)
                row++;
            if (at < count) return fail_beyond(app, output, to, *points + row, csr.indices[at]);
        }
        if (status == GNOMON_OK) status = gnomon_writer_csr(writer, &csr);
        if (status == GNOMON_OK) *points += csr.rows;
        cli_bar_at(app, *points, 0);
        if (status == GNOMON_OK && cli_interrupted()) status = GNOMON_ERROR_CANCELLED;
        if (status != GNOMON_OK) return cli_fail_status(app, status);
    }
}

/* Whether the output holds nonzeros alone. */
static int choose_sparse(const request *r, const gnomon_data_info *info, const char *output)
{
    int holds = 0;
    const char *format = gnomon_format_for(output, r->output_format, &holds);
    if (format == NULL) return r->sparse; /* gnomon_writer_open says why it is none */
    if (r->sparse || r->dense) return r->sparse;
    if ((holds & GNOMON_HOLDS_DENSE) == 0) return 1;
    return (info->access & GNOMON_ACCESS_SPARSE) != 0 && (holds & GNOMON_HOLDS_SPARSE) != 0;
}

/* Nonzeros are as many as the input has; beside them there may be an offset or a line of each row.
 */
static int check_room(cli_app *app, const char *input, const char *output,
                      const gnomon_write_options *options, const gnomon_data_info *info,
                      gnomon_dtype to)
{
    const char *format = gnomon_format_for(output, options->format, NULL);
    if (!options->sparse)
        return cli_check_room(app, input, output, format, info->rows, info->cols, to);
    if (!cli_format_is(format, 0, GNOMON_TAKES_COMPRESS) &&
        !cli_format_is(format, 0, GNOMON_TAKES_COLUMNS))
        return -1;
    return cli_check_room(app, input, output, format, info->rows, 1, GNOMON_I64);
}

static int work(cli_app *app, const request *r, const char *input, const char *output)
{
    gnomon_write_options options = GNOMON_WRITE_OPTIONS_INIT;
    gnomon_reader *reader = NULL;
    gnomon_writer *writer = NULL;
    gnomon_data_info info;
    int64_t points = 0;
    int code = cli_open_input(app, input, &r->input, &reader, &info);
    if (code >= 0) return code;
    gnomon_dtype to = r->output_dtype != 0 ? (gnomon_dtype)r->output_dtype : info.dtype;
    int sparse_input = (info.access & GNOMON_ACCESS_SPARSE) != 0;
    options.format = r->output_format;
    options.coordinates_contiguous = r->column_major;
    options.csv_digits = (int)r->digits;
    options.compress = !r->no_compress;
    options.sparse = choose_sparse(r, &info, output);
    if (!r->large) code = check_room(app, input, output, &options, &info, to);
    if (code >= 0) {
        gnomon_reader_close(reader);
        return code;
    }
    gnomon_status status =
        gnomon_writer_open(app->ctx, output, info.rows, info.cols, to, &options, &writer);
    if (status != GNOMON_OK) {
        code = cli_error_about(app, "dtype")
                   ? cli_usage(app, "--output-dtype%s", cli_error_rest(app))
                   : cli_fail_status(app, status);
        gnomon_reader_close(reader);
        return code;
    }
    cli_bar_begin(app, "converting", info.rows);
    code = options.sparse && sparse_input
               ? copy_sparse(app, reader, to, output, writer, &points)
               : copy_dense(app, reader, &info, to, options.sparse, output, writer, &points);
    if (code >= 0) {
        gnomon_writer_abort(writer);
    } else {
        status = gnomon_writer_finish(writer);
        if (status != GNOMON_OK) code = cli_fail_status(app, status);
    }
    if (code < 0) {
        cli_say(app, "gnomon convert: %lld points of %lld coordinates (%s, %s) to %s\n",
                (long long)points, (long long)info.cols, info.format, cli_dtype_name(info.dtype),
                output);
        code = CLI_EXIT_DONE;
        if (app->json)
            code = cli_print_report(
                app, json_pack("{s:o, s:o, s:s, s:I, s:I, s:s, s:s, s:b}", "input",
                               cli_json_name(input), "output", cli_json_name(output), "format",
                               info.format, "points", (json_int_t)points, "dimensions",
                               (json_int_t)info.cols, "dtype", cli_dtype_name(info.dtype),
                               "output_dtype", cli_dtype_name(to), "sparse", options.sparse));
    }
    gnomon_reader_close(reader);
    return code;
}

int cli_convert(int argc, char **argv)
{
    cli_app app;
    request r;
    const char *operands[2];
    memset(&r, 0, sizeof r);
    cli_init(&app, "convert");
    cli_input_init(&r.input);
    r.input.text_dtype = GNOMON_F64; /* a copy loses nothing that was not asked for */
    int code = parse(&app, &r, argc, argv, operands);
    if (code >= 0) return code;
    if (r.sparse && r.dense) return cli_usage(&app, "--sparse and --dense exclude each other");
    const char *format;
    code = cli_output_is(&app,
                         r.sparse  ? "--sparse: OUT"
                         : r.dense ? "--dense: OUT"
                                   : "OUT",
                         operands[1], r.output_format,
                         r.sparse  ? GNOMON_HOLDS_SPARSE
                         : r.dense ? GNOMON_HOLDS_DENSE
                                   : GNOMON_HOLDS_SPARSE | GNOMON_HOLDS_DENSE,
                         &format);
    gnomon_format_info info;
    char able[CLI_FORMATS_TEXT];
    for (int i = 0; code < 0 && r.column_major && cli_format_info(i, &info); i++)
        if (strcmp(info.name, format) == 0 && (info.takes & GNOMON_TAKES_ORDER) == 0)
            return cli_usage(&app, "--order F: %s can't be stored column-major; %s can", format,
                             cli_formats(able, 0, GNOMON_TAKES_ORDER, 1));
    if (code < 0) code = cli_check_output(&app, operands[1], format, operands, 1);
    if (code < 0) code = cli_start(&app);
    if (code < 0) code = work(&app, &r, operands[0], operands[1]);
    return cli_end(&app, code);
}
