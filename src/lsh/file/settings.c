/* An index's settings as JSON. */
#include "lsh/file/file.h"

#include "base/memory.h"
#include "base/text_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = {"gnomon", "metric", "family", "dim",      "width",
                                    "sides",  "seed",   "tables", "broad",    "fine",
                                    "codes",  "memory", "effort", "operator", "centres"};
static const char *const params_names[] = {"tables", "probes", "broad", "candidates", "verified"};
enum {
    KNOWN = sizeof known / sizeof known[0],
    PARAMS = sizeof params_names / sizeof params_names[0]
};

/* --- writing --- */

/* Seeds that a reader of doubles would change are text, as in descriptors. */
static json_t *seed_value(uint64_t seed)
{
    char text[24];
    if (seed < UINT64_C(1) << 53) return json_integer((json_int_t)seed);
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return json_string(text);
}

static gnomon_status operator_value(gnomon_context *ctx, const gnomon_hasher *h, json_t **out)
{
    char *text = NULL;
    json_error_t error;
    bool memory;
    *out = NULL;
    if (!h->op) return GNOMON_OK;
    GNOMON_TRY(gnomon_operator_to_json(ctx, h->op, &text));
    *out = gnomon_json_read(text, strlen(text), 0, &error, &memory);
    free(text);
    GNOMON_FAIL_IF(!*out, ctx, GNOMON_ERROR_MEMORY, "no memory for an index's settings");
    return GNOMON_OK;
}

gnomon_status gnomon_lsh_settings_to_json(gnomon_context *ctx, const gnomon_lsh *index, char **json)
{
    const gnomon_lsh_options *o = &index->options;
    const gnomon_lsh_functions *f = &index->hasher->f;
    json_t *op;
    GNOMON_TRY(operator_value(ctx, index->hasher, &op));
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:I, s:f, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I}, "
        "s:o*}",
        "gnomon", "lsh", "metric", gnomon_metric_name(o->metric), "family",
        gnomon_lsh_family_name(f->family), "dim", (json_int_t)f->dim, "width", f->width, "sides",
        (json_int_t)f->sides, "seed", seed_value(f->seed), "tables", (json_int_t)o->tables, "broad",
        (json_int_t)o->coarse, "fine", (json_int_t)o->fine, "codes", (json_int_t)o->codes, "memory",
        (json_int_t)o->memory, "effort", "tables", (json_int_t)o->search_params.tables, "probes",
        (json_int_t)o->search_params.probes, "broad", (json_int_t)o->search_params.coarse,
        "candidates", (json_int_t)o->search_params.candidates, "verified",
        (json_int_t)o->search_params.rerank, "operator", op);
    if (f->centre_count > 0 &&
        json_object_set_new(root, "centres", json_integer((json_int_t)f->centre_count)) != 0) {
        json_decref(root);
        root = NULL;
    }
    /* 17 digits read back as the same double */
    *json = gnomon_json_text(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    json_decref(root);
    GNOMON_FAIL_IF(!*json, ctx, GNOMON_ERROR_MEMORY, "no memory for an index's settings");
    return GNOMON_OK;
}

/* --- reading --- */

static gnomon_status no_such(gnomon_context *ctx, const char *member, const char *wanted)
{
    return gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("settings") ": \"%s\" must be %s", member,
                       wanted);
}

static gnomon_status read_int(gnomon_context *ctx, const json_t *root, const char *member,
                              int64_t *out)
{
    const json_t *value = json_object_get(root, member);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return no_such(ctx, member, "an integer of at least 0");
    *out = json_integer_value(value);
    return GNOMON_OK;
}

static gnomon_status read_seed(gnomon_context *ctx, const json_t *root, uint64_t *out)
{
    static const char wanted[] = "an integer below 2^53, or the digits of one below 2^64";
    const json_t *value = json_object_get(root, "seed");
    *out = 0;
    if (json_is_integer(value)) {
        const json_int_t seed = json_integer_value(value);
        if (seed < 0 || seed >= (json_int_t)1 << 53) return no_such(ctx, "seed", wanted);
        *out = (uint64_t)seed;
        return GNOMON_OK;
    }
    const char *text = json_string_value(value);
    if (!text || *text == '\0') return no_such(ctx, "seed", wanted);
    for (; *text != '\0'; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(*out, UINT64_C(10), out) ||
            __builtin_add_overflow(*out, (uint64_t)(*text - '0'), out))
            return no_such(ctx, "seed", wanted);
    return GNOMON_OK;
}

static gnomon_status check_members(gnomon_context *ctx, json_t *root)
{
    const char *key;
    json_t *value;
    GNOMON_FAIL_IF(!json_is_object(root), ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": the JSON is no object");
    json_object_foreach(root, key, value)
    {
        bool found = false;
        for (int i = 0; i < KNOWN; i++)
            found = found || strcmp(key, known[i]) == 0;
        GNOMON_FAIL_IF(!found, ctx, GNOMON_ERROR_DATA,
                       GNOMON_ARG("settings") ": there is a member that is none of an index's");
    }
    const char *what = json_string_value(json_object_get(root, "gnomon"));
    if (!what || strcmp(what, "lsh") != 0) return no_such(ctx, "gnomon", "\"lsh\"");
    return GNOMON_OK;
}

static gnomon_status read_names(gnomon_context *ctx, const json_t *root, gnomon_lsh_options *o)
{
    const char *metric = json_string_value(json_object_get(root, "metric"));
    const char *family = json_string_value(json_object_get(root, "family"));
    o->metric = gnomon_metric_from_name(metric);
    if (o->metric == 0) return no_such(ctx, "metric", "the name of a metric");
    o->functions.family = gnomon_lsh_family_from_name(family);
    if (o->functions.family == 0) return no_such(ctx, "family", "the name of a family");
    return GNOMON_OK;
}

static gnomon_status read_params(gnomon_context *ctx, const json_t *root,
                                 gnomon_lsh_search_params *e)
{
    json_t *params = json_object_get(root, "effort");
    if (!json_is_object(params) || json_object_size(params) != PARAMS)
        return no_such(ctx, "effort", "an object of five members");
    int64_t *const to[PARAMS] = {&e->tables, &e->probes, &e->coarse, &e->candidates, &e->rerank};
    for (int i = 0; i < PARAMS; i++)
        GNOMON_TRY(read_int(ctx, params, params_names[i], to[i]));
    return GNOMON_OK;
}

static gnomon_status read_operator(gnomon_context *ctx, const json_t *root, gnomon_lsh_options *o,
                                   gnomon_descriptor *descriptor)
{
    json_t *value = json_object_get(root, "operator");
    gnomon_operator *op = NULL;
    if (!value) return GNOMON_OK;
    char *text = gnomon_json_text(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    GNOMON_FAIL_IF(!text, ctx, GNOMON_ERROR_MEMORY, "no memory for an index's settings");
    const gnomon_status status = gnomon_operator_from_json(ctx, text, strlen(text), &op);
    free(text);
    if (status == GNOMON_ERROR_ARGUMENT || status == GNOMON_ERROR_OVERFLOW) /* the file's fault */
        return gnomon_fail_prefix(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("settings"));
    GNOMON_TRY(status);
    gnomon_operator_describe(op, descriptor);
    gnomon_operator_destroy(op);
    o->functions.descriptor = descriptor;
    return GNOMON_OK;
}

static gnomon_status read_all(gnomon_context *ctx, json_t *root, gnomon_lsh_options *o,
                              gnomon_descriptor *descriptor)
{
    gnomon_lsh_functions *f = &o->functions;
    GNOMON_TRY(check_members(ctx, root));
    GNOMON_TRY(read_names(ctx, root, o));
    GNOMON_TRY(read_int(ctx, root, "dim", &f->dim));
    GNOMON_TRY(read_int(ctx, root, "sides", &f->sides));
    GNOMON_TRY(read_int(ctx, root, "tables", &o->tables));
    GNOMON_TRY(read_int(ctx, root, "broad", &o->coarse));
    GNOMON_TRY(read_int(ctx, root, "fine", &o->fine));
    GNOMON_TRY(read_int(ctx, root, "codes", &o->codes));
    GNOMON_TRY(read_int(ctx, root, "memory", &o->memory));
    GNOMON_TRY(read_seed(ctx, root, &f->seed));
    if (json_object_get(root, "centres") != NULL)
        GNOMON_TRY(read_int(ctx, root, "centres", &f->centre_count));
    const json_t *width = json_object_get(root, "width");
    if (!json_is_number(width)) return no_such(ctx, "width", "a number");
    f->width = json_number_value(width);
    GNOMON_TRY(read_params(ctx, root, &o->search_params));
    return read_operator(ctx, root, o, descriptor);
}

gnomon_status gnomon_lsh_settings_from_json(gnomon_context *ctx, const char *json, size_t length,
                                            gnomon_lsh_options *options,
                                            gnomon_descriptor *descriptor)
{
    json_error_t error;
    *options = (gnomon_lsh_options)GNOMON_LSH_OPTIONS_INIT;
    *descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    bool memory;
    json_t *root = gnomon_json_read(json, length, JSON_REJECT_DUPLICATES, &error, &memory);
    GNOMON_FAIL_IF(memory, ctx, GNOMON_ERROR_MEMORY, "no memory for an index's settings");
    GNOMON_FAIL_IF(!root, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("settings") ": not JSON: line %d, column %d", error.line,
                   error.column);
    const gnomon_status status = read_all(ctx, root, options, descriptor);
    json_decref(root);
    return status;
}
