/* The operator: from options, from a saved descriptor, and to one. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_choice cli_kinds_and_auto[] = {{"auto", CLI_OPERATOR_AUTO},
                                         {"gaussian", GNOMON_GAUSSIAN},
                                         {"rademacher", GNOMON_RADEMACHER},
                                         {"achlioptas", GNOMON_ACHLIOPTAS},
                                         {"very-sparse", GNOMON_VERY_SPARSE},
                                         {"sjlt", GNOMON_SJLT},
                                         {"srht", GNOMON_SRHT},
                                         {"block", GNOMON_BLOCK},
                                         {"kronecker", GNOMON_KRONECKER},
                                         {NULL, 0}};
const cli_choice *const cli_kinds = cli_kinds_and_auto + 1;

void cli_operator_init(cli_operator_options *options)
{
    static const gnomon_descriptor empty = GNOMON_DESCRIPTOR_INIT;
    memset(options, 0, sizeof *options);
    options->descriptor = empty;
    options->kind = GNOMON_RADEMACHER;
}

void cli_operator_table(cli_operator_options *o, cli_option table[CLI_OPERATOR_OPTIONS])
{
    static const cli_choice inner[] = {{"gaussian", GNOMON_GAUSSIAN},
                                       {"rademacher", GNOMON_RADEMACHER},
                                       {"achlioptas", GNOMON_ACHLIOPTAS},
                                       {"very-sparse", GNOMON_VERY_SPARSE},
                                       {"sjlt", GNOMON_SJLT},
                                       {NULL, 0}};
    static const cli_choice precisions[] = {
        {"fp32", GNOMON_FP32}, {"fp16", GNOMON_FP16}, {NULL, 0}};
    static const cli_choice scalings[] = {
        {"isometric", GNOMON_ISOMETRIC}, {"none", GNOMON_UNSCALED}, {NULL, 0}};
    const cli_option options[CLI_OPERATOR_OPTIONS] = {
        {.name = "operator",
         .type = CLI_CHOICE,
         .target = &o->kind,
         .given = &o->kind_given,
         .value = "KIND",
         .choices = cli_kinds,
         .help =
             "the kind: gaussian, rademacher (default; random signs, for any data), achlioptas, "
             "very-sparse (for dense data), sjlt, srht, block or kronecker"},
        {.letter = 'k',
         .type = CLI_INT,
         .target = &o->descriptor.k,
         .given = &o->k_given,
         .low = 1,
         .high = (int64_t)1 << 32,
         .value = "K",
         .help = "dimensions to project to, at most those of the points"},
        {.name = "seed",
         .type = CLI_SEED,
         .target = &o->descriptor.seed,
         .given = &o->seed_given,
         .value = "N",
         .help = "which random operator: 0 (default) to 2^64 - 1"},
        {.name = "density",
         .type = CLI_REAL,
         .target = &o->descriptor.density,
         .given = &o->other_given,
         .reals = CLI_DENSITY_RANGE,
         .value = "P",
         .help = "very-sparse: the probability of a nonzero, 2^-30 (9.32e-10) to 1 (default "
                 "1/sqrt(D))"},
        {.name = "nonzeros",
         .type = CLI_INT,
         .target = &o->descriptor.nonzeros,
         .given = &o->other_given,
         .low = 1,
         .value = "S",
         .help = "sjlt: nonzeros a column (default 4, or k if less; 1 is CountSketch)"},
        {.name = "blocks",
         .type = CLI_INT,
         .target = &o->descriptor.blocks,
         .given = &o->other_given,
         .low = 1,
         .value = "R",
         .help = "block: the number of diagonal blocks (default 1)"},
        {.name = "zeta",
         .type = CLI_INT,
         .target = &o->descriptor.zeta,
         .given = &o->other_given,
         .low = 2,
         .value = "Z",
         .help = "kronecker: by how much each level narrows (default 2)"},
        {.name = "width",
         .type = CLI_INT,
         .target = &o->descriptor.width,
         .given = &o->other_given,
         .low = 1,
         .value = "W",
         .help = "kronecker: the cascade's width, at least k (default k)"},
        {.name = "inner",
         .type = CLI_CHOICE,
         .target = &o->inner,
         .given = &o->other_given,
         .value = "KIND",
         .choices = inner,
         .help = "the kind that block and kronecker are made of (default rademacher)"},
        {.name = "precision",
         .type = CLI_CHOICE,
         .target = &o->precision,
         .given = &o->other_given,
         .value = "TYPE",
         .choices = precisions,
         .help = "gaussian: fp32 (default) or fp16 entries"},
        {.name = "scaling",
         .type = CLI_CHOICE,
         .target = &o->scaling,
         .given = &o->other_given,
         .value = "HOW",
         .choices = scalings,
         .help = "isometric (default: squared lengths are kept on average) or none"},
        {.name = "save-operator",
         .type = CLI_TEXT,
         .target = &o->save,
         .value = "FILE",
         .help = "write the operator's descriptor as JSON"},
        {.name = "load-operator",
         .type = CLI_TEXT,
         .target = &o->load,
         .value = "FILE",
         .help = "take the operator of a saved descriptor instead of the options above"},
    };
    memcpy(table, options, sizeof options);
}

int cli_operator_load(cli_app *app, const cli_operator_options *o, gnomon_operator **op)
{
    *op = NULL;
    if (o->kind_given || o->k_given || o->seed_given || o->other_given)
        return cli_usage(app, "--load-operator says everything about the operator: leave out "
                              "--operator, -k, --seed and the like");
    char *text = NULL;
    size_t length = 0;
    int code = cli_read_text(app, o->load, &text, &length);
    if (code >= 0) return code;
    if (gnomon_operator_from_json(app->ctx, text, length, op) != GNOMON_OK)
        /* Values out of range are the file's fault here, not that of the command line. */
        code = cli_fail(app, CLI_EXIT_DATA, "%s: %s", o->load, gnomon_last_error(app->ctx));
    free(text);
    return code;
}

int cli_operator_make(cli_app *app, cli_operator_options *o, gnomon_operator **op)
{
    o->descriptor.kind = (gnomon_kind)o->kind;
    o->descriptor.inner = (gnomon_kind)o->inner;
    o->descriptor.precision = (gnomon_precision)o->precision;
    o->descriptor.scaling = (gnomon_scaling)o->scaling;
    if (o->descriptor.k > o->descriptor.d)
        return cli_usage(app, "-k %lld: must be at most D, the dimensions of the points: %lld",
                         (long long)o->descriptor.k, (long long)o->descriptor.d);
    gnomon_status status = gnomon_operator_create(app->ctx, &o->descriptor, op);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

gnomon_status cli_operator_text(cli_app *app, const gnomon_operator *op, char **text)
{
    char *json = NULL;
    *text = NULL;
    gnomon_status status = gnomon_operator_to_json(app->ctx, op, &json);
    if (status != GNOMON_OK) return status;
    size_t length = strlen(json);
    *text = realloc(json, length + 2);
    if (*text == NULL) {
        free(json);
        return GNOMON_ERROR_MEMORY;
    }
    memcpy(*text + length, "\n", 2);
    return GNOMON_OK;
}

int cli_operator_save(cli_app *app, const cli_operator_options *o, const gnomon_operator *op)
{
    char *text = NULL;
    if (o->save == NULL) return -1;
    gnomon_status status = cli_operator_text(app, op, &text);
    if (status == GNOMON_OK) status = gnomon_write_text(app->ctx, o->save, text, strlen(text));
    free(text);
    return status == GNOMON_OK ? -1 : cli_fail_status(app, status);
}

void cli_operator_words(const gnomon_operator *op, char *buffer, size_t size)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    size_t used = 0;
    gnomon_operator_describe(op, &d);
#define ADD(...)                                                                            \
    do {                                                                                    \
        if (used < size) used += (size_t)snprintf(buffer + used, size - used, __VA_ARGS__); \
    } while (0)
    ADD("%s", gnomon_kind_name(d.kind));
    if (d.kind == GNOMON_BLOCK) ADD(" of %lld", (long long)d.blocks);
    if (d.kind == GNOMON_BLOCK || d.kind == GNOMON_KRONECKER) ADD(" %s", gnomon_kind_name(d.inner));
    if (d.kind == GNOMON_KRONECKER)
        ADD(", zeta %lld, width %lld", (long long)d.zeta, (long long)d.width);
    if (d.precision == GNOMON_FP16) ADD(", fp16");
    if (d.density > 0) ADD(", density %.4g", d.density);
    if (d.nonzeros > 0) ADD(", %lld nonzeros a column", (long long)d.nonzeros);
    if (d.scaling == GNOMON_UNSCALED) ADD(", unscaled");
    ADD(", seed %llu", (unsigned long long)d.seed);
#undef ADD
}
