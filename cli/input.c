/* Opening points to read. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NumPy's short and long names; the short ones count bytes, so u8 is eight of them. */
const cli_choice cli_dtypes[] = {
    {"f2", GNOMON_F16},      {"f4", GNOMON_F32},      {"f8", GNOMON_F64},
    {"i1", GNOMON_I8},       {"u1", GNOMON_U8},       {"i2", GNOMON_I16},
    {"u2", GNOMON_U16},      {"i4", GNOMON_I32},      {"u4", GNOMON_U32},
    {"i8", GNOMON_I64},      {"u8", GNOMON_U64},      {"float16", GNOMON_F16},
    {"float32", GNOMON_F32}, {"float64", GNOMON_F64}, {"bfloat16", GNOMON_BF16},
    {"int8", GNOMON_I8},     {"uint8", GNOMON_U8},    {"int16", GNOMON_I16},
    {"uint16", GNOMON_U16},  {"int32", GNOMON_I32},   {"uint32", GNOMON_U32},
    {"int64", GNOMON_I64},   {"uint64", GNOMON_U64},  {NULL, 0}};

const char *cli_dtype_name(gnomon_dtype dtype)
{
    for (const cli_choice *c = cli_dtypes; c->name != NULL; ++c) {
        if (c->value == (int)dtype && strlen(c->name) > 2) return c->name;
    }
    return "?";
}

void cli_input_init(cli_input_options *in)
{
    memset(in, 0, sizeof *in);
    in->header = -1;
    in->zero_based = -1;
    in->shape.rows = -1;
}

void cli_input_table(cli_input_options *in, cli_option table[CLI_INPUT_OPTIONS])
{
    const cli_option options[CLI_INPUT_OPTIONS] = {
        {.name = "format",
         .type = CLI_FORMAT,
         .target = &in->format,
         .value = "FORMAT",
         .help = "the input's format; otherwise detected from its content, then from its name"},
        {.name = "shape",
         .type = CLI_SHAPE,
         .target = &in->shape,
         .given = &in->shape_given,
         .value = "N,D",
         .takes = GNOMON_TAKES_SHAPE,
         .help = "points and coordinates; ?,D takes N from the file's size"},
        {.name = "dtype",
         .type = CLI_CHOICE,
         .target = &in->dtype,
         .value = "TYPE",
         .choices = cli_dtypes,
         .takes = GNOMON_TAKES_SHAPE,
         .help = "the elements' type: f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8 or float32, uint8, "
                 "bfloat16 ..."},
        {.name = "delimiter",
         .type = CLI_CHAR,
         .target = &in->delimiter,
         .value = "CHAR",
         .takes = GNOMON_TAKES_DELIMITER,
         .help = "the separator of values: one character, or tab, comma, semicolon, space"},
        {.name = "header",
         .type = CLI_FLAG,
         .target = &in->header,
         .flag = 1,
         .takes = GNOMON_TAKES_DELIMITER,
         .help = "the first line holds names (otherwise detected)"},
        {.name = "no-header",
         .type = CLI_FLAG,
         .target = &in->header,
         .flag = 0,
         .takes = GNOMON_TAKES_DELIMITER,
         .help = "the first line holds values"},
        {.name = "features",
         .type = CLI_INT,
         .target = &in->features,
         .low = 1,
         .value = "D",
         .takes = GNOMON_TAKES_COLUMNS,
         .help = "the number of coordinates (otherwise the largest index)"},
        {.name = "zero-based",
         .type = CLI_FLAG,
         .target = &in->zero_based,
         .flag = 1,
         .takes = GNOMON_TAKES_COLUMNS,
         .help = "indices begin at 0 (otherwise detected)"},
        {.name = "one-based",
         .type = CLI_FLAG,
         .target = &in->zero_based,
         .flag = 0,
         .takes = GNOMON_TAKES_COLUMNS,
         .help = "indices begin at 1"},
    };
    memcpy(table, options, sizeof options);
}

int cli_open_input(cli_app *app, const char *path, const cli_input_options *in,
                   gnomon_reader **reader, gnomon_data_info *info)
{
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    *reader = NULL;
    if (in != NULL) {
        options.format = in->format;
        if (options.format == NULL && in->shape_given)
            options.format = cli_format_taking(GNOMON_TAKES_SHAPE);
        if (cli_format_is(options.format, 0, GNOMON_TAKES_SHAPE) && !in->shape_given)
            return cli_usage(app, "raw input needs --shape N,D and --dtype TYPE");
        if (!in->shape_given && in->dtype != 0)
            return cli_usage(app, "--dtype tells of raw input, beside --shape; the output's type "
                                  "is --output-dtype");
        if (in->shape_given && in->dtype == 0)
            return cli_usage(app, "raw input needs --dtype TYPE beside --shape");
        options.raw_rows = in->shape.rows;
        options.raw_cols = in->shape.cols;
        options.raw_dtype = (gnomon_dtype)in->dtype;
        options.csv_header = in->header;
        options.csv_delimiter = in->delimiter;
        options.svmlight_cols = in->features;
        options.svmlight_zero_based = in->zero_based;
        options.text_dtype = (gnomon_dtype)in->text_dtype;
        options.tensor = in->tensor;
    }
    gnomon_status status = gnomon_reader_open(app->ctx, path, &options, reader);
    if (status == GNOMON_OK) {
        memset(info, 0, sizeof *info);
        info->struct_size = sizeof *info;
        status = gnomon_reader_info(*reader, info);
    }
    if (status == GNOMON_OK) return -1;
    gnomon_reader_close(*reader);
    *reader = NULL;
    int code = cli_fail_status(app, status);
    /* What the library can't take from a file is the file's fault, not that of the words. */
    int by_file = status == GNOMON_ERROR_UNSUPPORTED || status == GNOMON_ERROR_DTYPE ||
                  status == GNOMON_ERROR_OVERFLOW;
    return by_file ? CLI_EXIT_DATA : code;
}

int cli_open_queries(cli_app *app, const char *path, const cli_input_options *in,
                     gnomon_reader **reader, gnomon_data_info *info)
{
    static const char chosen[] = "/train", named[] = ":/train", short_name[] = ":train";
    static const char queries[] = ":/test";
    const size_t length = strlen(path), most = sizeof named - 1, least = sizeof short_name - 1;
    gnomon_read_options options = GNOMON_READ_OPTIONS_INIT;
    gnomon_reader *other = NULL;
    int code = cli_open_input(app, path, in, reader, info);
    if (code >= 0 || info->member == NULL || strcmp(info->member, chosen) != 0 ||
        strcmp(path, "-") == 0 || (length > most && strcmp(path + length - most, named) == 0) ||
        (length > least && strcmp(path + length - least, short_name) == 0))
        return code;
    char *test = malloc(length + sizeof queries);
    if (test == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for a path");
    strcat(strcpy(test, path), queries);
    if (gnomon_reader_open(app->ctx, test, &options, &other) == GNOMON_OK) {
        gnomon_reader_close(other);
        gnomon_reader_close(*reader);
        code = cli_open_input(app, test, in, reader, info);
    }
    free(test);
    return code;
}

int cli_same_width(cli_app *app, const char *path, int64_t cols, const char *other,
                   int64_t other_cols)
{
    if (cols == other_cols) return -1;
    return cli_fail(app, CLI_EXIT_DATA, "%s has %lld dimensions and %s %lld: they must be the same",
                    path, (long long)cols, other, (long long)other_cols);
}

int cli_check_bits(cli_app *app, int metric, const char *path, const gnomon_data_info *info)
{
    if (!cli_metric_takes((gnomon_metric)metric, GNOMON_POINTS_BITS) || info->dtype == GNOMON_U8)
        return -1;
    return cli_fail(
        app, CLI_EXIT_USAGE, "--metric %s takes bits, eight in an element of type u8; %s holds %s",
        gnomon_metric_name((gnomon_metric)metric), path, gnomon_dtype_name(info->dtype));
}

char *cli_input_file(const char *path, const char *member)
{
    char *copy = strdup(path);
    const size_t length = strlen(path), suffix = strlen(member) + 1;
    if (copy == NULL || member[0] == '\0' || access(path, F_OK) == 0) return copy;
    if (length > suffix && copy[length - suffix] == ':' &&
        strcmp(copy + length - suffix + 1, member) == 0)
        copy[length - suffix] = '\0';
    return copy;
}

json_t *cli_input_json(const cli_input_options *in)
{
    return json_pack("{s:s?, s:b, s:I, s:I, s:s, s:i, s:i, s:i, s:I, s:i, s:i}", "--format",
                     in->format, "--shape", in->shape_given, "shape rows",
                     (json_int_t)in->shape.rows, "shape columns", (json_int_t)in->shape.cols,
                     "--dtype", in->dtype != 0 ? cli_dtype_name((gnomon_dtype)in->dtype) : "",
                     "--delimiter", in->delimiter, "--header", in->header, "--zero-based",
                     in->zero_based, "--features", (json_int_t)in->features, "type of text",
                     in->text_dtype, "tensor", in->tensor);
}
