/* The operator: from options, from a saved descriptor, and to one. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_choice *cli_kinds(unsigned flags, int with_auto)
{
    enum { LISTS = 4, MOST = 30 };
    static cli_choice lists[LISTS][MOST + 2];
    static struct {
        unsigned flags;
        int with_auto;
    } of[LISTS];
    static int made;
    for (int i = 0; i < made; i++)
        if (of[i].flags == flags && of[i].with_auto == with_auto) return lists[i];
    cli_choice *list = lists[made];
    int count = 0;
    if (with_auto) list[count++] = (cli_choice){"auto", CLI_OPERATOR_AUTO};
    const gnomon_kind_info *kind;
    for (int i = 0; (kind = gnomon_kind_at(i)) != NULL && count <= MOST; i++)
        if ((kind->flags & flags) == flags)
            list[count++] = (cli_choice){kind->name, (int)kind->kind};
    list[count] = (cli_choice){NULL, 0};
    of[made].flags = flags;
    of[made].with_auto = with_auto;
    if (made < LISTS - 1) made++;
    return list;
}

static gnomon_kind_info info_of(gnomon_kind kind)
{
    const gnomon_kind_info *info, none = {kind, "?", "", 0, 0};
    for (int i = 0; (info = gnomon_kind_at(i)) != NULL; i++)
        if (info->kind == kind) return *info;
    return none;
}

unsigned cli_kind_flags(gnomon_kind kind)
{
    return info_of(kind).flags;
}

int cli_kind_uses(gnomon_kind kind, unsigned uses)
{
    return (info_of(kind).uses & uses) != 0;
}

const char *cli_kinds_help_make(cli_kinds_help *help, const char *before, gnomon_kind normal,
                                int remarks, const char *after)
{
    const size_t size = sizeof help->text;
    size_t used = (size_t)snprintf(help->text, size, "%s", before);
    for (int i = 0; gnomon_kind_at(i) != NULL; i++) {
        const gnomon_kind_info *kind = gnomon_kind_at(i);
        const char *about = remarks ? kind->about : "";
        const int marked = kind->kind == normal, both = marked && about[0] != '\0';
        const char *next = gnomon_kind_at(i + 1) == NULL   ? ""
                           : gnomon_kind_at(i + 2) == NULL ? " or "
                                                           : ", ";
        if (used < size)
            used += (size_t)snprintf(help->text + used, size - used, "%s%s%s%s%s%s%s", kind->name,
                                     marked || about[0] != '\0' ? " (" : "",
                                     marked ? "default" : "", both ? "; " : "", about,
                                     marked || about[0] != '\0' ? ")" : "", next);
    }
    if (used < size) snprintf(help->text + used, size - used, "%s", after);
    return help->text;
}

cli_kinds_text cli_kinds_that_use(unsigned uses, const char *last)
{
    cli_kinds_text names = {""};
    const gnomon_kind_info *kind;
    size_t used = 0;
    int left = 0;
    for (int i = 0; (kind = gnomon_kind_at(i)) != NULL; i++)
        left += (kind->uses & uses) != 0;
    for (int i = 0; (kind = gnomon_kind_at(i)) != NULL; i++) {
        if ((kind->uses & uses) == 0) continue;
        left--;
        if (used < sizeof names.text)
            used +=
                (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s", kind->name,
                                 left > 1    ? ", "
                                 : left == 1 ? last
                                             : "");
    }
    return names;
}

void cli_operator_init(cli_operator_options *options)
{
    static const gnomon_descriptor empty = GNOMON_DESCRIPTOR_INIT;
    memset(options, 0, sizeof *options);
    options->descriptor = empty;
    options->kind = GNOMON_RADEMACHER;
}

void cli_operator_table(cli_operator_options *o, cli_option table[CLI_OPERATOR_OPTIONS])
{
    static cli_kinds_help kinds;
    static struct {
        char text[256];
    } help[GNOMON_PARAMETERS];
    static const cli_choice precisions[] = {{"fp32", GNOMON_F32}, {"fp16", GNOMON_F16}, {NULL, 0}};
    static const cli_choice scalings[] = {
        {"isometric", GNOMON_ISOMETRIC}, {"none", GNOMON_UNSCALED}, {NULL, 0}};
    const cli_option first[] = {
        {.name = "operator",
         .type = CLI_CHOICE,
         .target = &o->kind,
         .given = &o->kind_given,
         .value = "KIND",
         .choices = cli_kinds(0, 0),
         .help = cli_kinds_help_make(&kinds, "the kind: ", GNOMON_RADEMACHER, 1, "")},
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
    };
    const cli_option last[] = {
        {.name = "inner",
         .type = CLI_CHOICE,
         .target = &o->inner,
         .given = &o->other_given,
         .value = "KIND",
         .choices = cli_kinds(GNOMON_KIND_INNER, 0),
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
         .help = "use the operator of a saved descriptor instead of the options above"},
    };
    _Static_assert(sizeof first + sizeof last + GNOMON_PARAMETERS * sizeof(cli_option) ==
                       CLI_OPERATOR_OPTIONS * sizeof(cli_option),
                   "CLI_OPERATOR_OPTIONS counts them");
    const int before = sizeof first / sizeof *first;
    memcpy(table, first, sizeof first);
    for (int i = 0; i < GNOMON_PARAMETERS; i++) {
        const gnomon_parameter_info *p = gnomon_parameter_at(i);
        snprintf(help[i].text, sizeof help[i].text, "%s: %s",
                 cli_kinds_that_use(p->uses, " and ").text, p->help);
        table[before + i] = (cli_option){.name = p->name,
                                         .type = p->is_real ? CLI_REAL : CLI_INT,
                                         .target = (char *)&o->descriptor + p->offset,
                                         .given = &o->other_given,
                                         .low = p->least,
                                         .value = p->value,
                                         .help = help[i].text};
        if (p->uses == GNOMON_USES_DENSITY) table[before + i].reals = CLI_DENSITY_RANGE;
    }
    memcpy(table + before + GNOMON_PARAMETERS, last, sizeof last);
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
    o->descriptor.precision = (gnomon_dtype)o->precision;
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
    if (d.inner != 0) ADD(" %s", gnomon_kind_name(d.inner));
    if (d.precision == GNOMON_F16) ADD(", fp16");
    for (int i = 0; i < GNOMON_PARAMETERS; i++) {
        const gnomon_parameter_info *p = gnomon_parameter_at(i);
        const void *member = (const char *)&d + p->offset;
        const long long count = p->is_real ? 0 : (long long)*(const int64_t *)member;
        if (p->is_real && *(const double *)member > 0)
            ADD(", %s %.4g", p->name, *(const double *)member);
        if (count == 0 || (d.kind == GNOMON_BLOCK && p->uses == GNOMON_USES_BLOCKS)) continue;
        if (p->unit[0] != '\0')
            ADD(", %lld %s", count, p->unit);
        else
            ADD(", %s %lld", p->name, count);
    }
    if (d.scaling == GNOMON_UNSCALED) ADD(", unscaled");
    ADD(", seed %llu", (unsigned long long)d.seed);
#undef ADD
}
