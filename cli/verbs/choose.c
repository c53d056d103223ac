/* --operator auto: the options, the choice, and why. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a sparse file does not tell how many entries it has. */
enum { ENTRIES_A_POINT = 100 };

void cli_choose_table(cli_choose_options *o, cli_option table[CLI_CHOOSE_OPTIONS])
{
    static const cli_choice assumptions[] = {
        {"nothing", GNOMON_ASSUME_NOTHING}, {"incoherent", GNOMON_ASSUME_INCOHERENT}, {NULL, 0}};
    const cli_option options[CLI_CHOOSE_OPTIONS] = {
        {.name = "assume",
         .type = CLI_CHOICE,
         .target = &o->assume,
         .given = &o->assume_given,
         .choices = assumptions,
         .value = "WHAT",
         .help = "with --operator auto: nothing (default; any points), or incoherent (no few "
                 "coordinates hold a point's or a difference's weight; refused where a sample of "
                 "the points says otherwise), which admits sparse kinds and srht"},
        {.name = "model",
         .type = CLI_TEXT,
         .target = &o->model,
         .value = "FILE",
         .help = "with --operator auto: a cost model measured by bench_cost; otherwise that of "
                 "$GNOMON_MODEL, else the one shipped for the device"},
    };
    memcpy(table, options, sizeof options);
}

/* -1 or an exit code; *model stays NULL when no file is named. */
static int load_model(cli_app *app, const cli_choose_options *options, gnomon_model **model)
{
    const char *path = options->model != NULL ? options->model : getenv("GNOMON_MODEL");
    char *text = NULL;
    size_t length = 0;
    if (path == NULL || path[0] == '\0') return -1;
    int code = cli_read_text(app, path, &text, &length);
    if (code >= 0) return code;
    if (gnomon_model_from_json(app->ctx, text, length, model) != GNOMON_OK)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: %s", path, gnomon_last_error(app->ctx));
    free(text);
    return code;
}

/* "12.3 ms" */
static const char *time_words(double seconds, char buffer[32])
{
    const double ms = 1e3 * seconds;
    if (ms < 1)
        snprintf(buffer, 32, "%.2g ms", ms);
    else if (ms < 10000)
        snprintf(buffer, 32, "%.3g ms", ms);
    else
        snprintf(buffer, 32, "%.3g s", seconds);
    return buffer;
}

static const char *candidate_words(const gnomon_candidate *c, char buffer[64])
{
    const gnomon_descriptor *d = &c->descriptor;
    if (d->kind == GNOMON_BLOCK)
        snprintf(buffer, 64, "block of %lld", (long long)d->blocks);
    else if (d->kind == GNOMON_KRONECKER)
        snprintf(buffer, 64, "kronecker, zeta %lld", (long long)d->zeta);
    else
        snprintf(buffer, 64, "%s%s", gnomon_kind_name(d->kind),
                 d->precision == GNOMON_F16 ? " fp16" : "");
    return buffer;
}

/* "12.3 MB" */
static const char *size_words(double bytes, char buffer[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 4; unit++)
        bytes /= 1000;
    snprintf(buffer, 32, bytes >= 100 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
    return buffer;
}

/* The choice, the next best, and what would be faster but is ruled out. The model tells of the
 * sketch alone; reading the points and writing 'bytes' depend on the disk. */
static void tell(cli_app *app, const gnomon_choice *choice, double bytes)
{
    const gnomon_candidate *c = &choice->candidate[choice->chosen], *next = NULL;
    char name[64], time[32], size[32];
    cli_say(app,
            "gnomon project: auto chooses %s, k = %lld: %s expected for the sketch (%s), beside "
            "reading and writing %s; %s\n",
            candidate_words(c, name), (long long)c->descriptor.k, time_words(c->seconds, time),
            choice->model, size_words(bytes, size), c->reason);
    if (choice->note[0] != '\0') cli_say(app, "  %s\n", choice->note);
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *o = &choice->candidate[i];
        if (o == c || isnan(o->seconds)) continue;
        if (o->admitted && (next == NULL || o->seconds < next->seconds)) next = o;
        if (!o->admitted && o->seconds < c->seconds)
            cli_say(app, "  ruled out: %s, k = %lld, %s: %s\n", candidate_words(o, name),
                    (long long)o->descriptor.k, time_words(o->seconds, time), o->reason);
    }
    if (next != NULL)
        cli_say(app, "  next: %s, k = %lld, %s\n", candidate_words(next, name),
                (long long)next->descriptor.k, time_words(next->seconds, time));
}

int cli_choose(cli_app *app, cli_choose_options *options, const cli_bound_options *bound,
               const gnomon_data_info *info, int64_t points, gnomon_dtype dtype,
               cli_operator_options *chosen, gnomon_choice *choice)
{
    gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
    gnomon_model *model = NULL;
    int code = load_model(app, options, &model);
    if (code >= 0) return code;
    o.n = points > 0 ? points : 1;
    o.d = info->cols;
    o.k = chosen->descriptor.k;
    if (bound->eps_given) {
        o.eps = bound->eps;
        o.beta = bound->beta;
        o.delta = bound->delta;
    }
    o.assume = (gnomon_assumption)options->assume;
    o.dtype = dtype;
    o.coordinates_contiguous = info->coordinates_contiguous;
    if ((info->access & GNOMON_ACCESS_SPARSE) != 0)
        o.nonzeros = info->nonzeros >= 0 ? info->nonzeros
                     : info->cols < ENTRIES_A_POINT
                         ? o.n * info->cols
                         : (o.n < INT64_MAX / ENTRIES_A_POINT ? o.n * ENTRIES_A_POINT : INT64_MAX);
    options->nonzeros = o.nonzeros;
    o.scaling = (gnomon_scaling)chosen->scaling;
    o.seed = chosen->descriptor.seed;
    o.model = model;
    choice->struct_size = sizeof *choice;
    const gnomon_status status = gnomon_operator_choose(app->ctx, &o, choice);
    gnomon_model_destroy(model);
    if (status != GNOMON_OK) return cli_fail_status(app, status);
    const gnomon_descriptor *d = &choice->candidate[choice->chosen].descriptor;
    chosen->descriptor = *d;
    chosen->kind = (int)d->kind;
    chosen->inner = (int)d->inner;
    chosen->precision = (int)d->precision;
    chosen->scaling = (int)d->scaling;
    const int f64 = dtype == GNOMON_F64 || dtype == GNOMON_I32 || dtype == GNOMON_U32 ||
                    dtype == GNOMON_I64 || dtype == GNOMON_U64;
    tell(app, choice, (double)o.n * (double)d->k * (f64 ? 8 : 4));
    return -1;
}

json_t *cli_choice_json(const cli_app *app, const cli_choose_options *options,
                        const gnomon_choice *choice)
{
    json_t *list = json_array();
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *c = &choice->candidate[i];
        char name[64];
        json_t *entry =
            json_pack("{s:s, s:I, s:b, s:s}", "operator", candidate_words(c, name), "k",
                      (json_int_t)c->descriptor.k, "admitted", c->admitted, "reason", c->reason);
        if (entry != NULL && !isnan(c->seconds))
            json_object_set_new(entry, "predicted_seconds",
                                json_real(cli_json_seconds(c->seconds)));
        if (json_array_append_new(list, entry) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "device",
                     choice->device == GNOMON_DEVICE_PLUGIN ? gnomon_context_device_kind(app->ctx)
                                                            : "cpu",
                     "model", choice->model, "note", choice->note, "assume",
                     options->assume == GNOMON_ASSUME_INCOHERENT ? "incoherent" : "nothing",
                     "chosen", choice->chosen, "candidates", list);
}
