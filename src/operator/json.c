/* Descriptors to and from JSON (docs/reference/operators.md, section 8). */
#include "base/error.h"
#include "base/text_json.h"
#include "operator/kinds/kinds.h"

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every integer below is exact in a JSON reader that knows only fp64. */
#define EXACT_IN_FP64 (UINT64_C(1) << 53)

/* --- writing --- */

static json_t *seed_value(uint64_t seed)
{
    if (seed < EXACT_IN_FP64) return json_integer((json_int_t)seed);
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, seed);
    return json_string(text);
}

/* A parameter that is set. */
static int set_parameter(json_t *root, const gnomon_parameter_info *p, gnomon_descriptor *d)
{
    const double real = p->is_real ? *gnomon_parameter_real(p, d) : 0.0;
    const int64_t count = p->is_real ? 0 : *gnomon_parameter_count(p, d);
    if (p->is_real) return real != 0.0 ? json_object_set_new(root, p->name, json_real(real)) : 0;
    return count != 0 ? json_object_set_new(root, p->name, json_integer(count)) : 0;
}

static json_t *build(gnomon_descriptor *d)
{
    json_t *root = json_object();
    int failed = root == NULL;
    failed |= json_object_set_new(root, "gnomon", json_string("operator"));
    failed |= json_object_set_new(root, "version", json_integer(d->version));
    failed |= json_object_set_new(root, "kind", json_string(gnomon_kind_name(d->kind)));
    failed |= json_object_set_new(root, "k", json_integer(d->k));
    failed |= json_object_set_new(root, "d", json_integer(d->d));
    failed |= json_object_set_new(root, "seed", seed_value(d->seed));
    failed |= json_object_set_new(
        root, "scaling", json_string(d->scaling == GNOMON_UNSCALED ? "none" : "isometric"));
    if (d->inner != 0)
        failed |= json_object_set_new(root, "inner", json_string(gnomon_kind_name(d->inner)));
    if (d->precision != 0)
        failed |= json_object_set_new(root, "precision",
                                      json_string(d->precision == GNOMON_F16 ? "fp16" : "fp32"));
    for (int i = 0; i < GNOMON_PARAMETERS; i++)
        failed |= set_parameter(root, gnomon_parameter_at(i), d);
    if (failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* The fewest digits from which the number reads back the same. */
static int digits(double x)
{
    for (int n = 1; n < 17; n++) {
        char text[40];
        snprintf(text, sizeof text, "%.*g", n, x);
        if (strtod(text, NULL) == x) return n;
    }
    return 17;
}

gnomon_status gnomon_operator_to_json(gnomon_context *ctx, const gnomon_operator *op, char **json)
{
    GNOMON_FAIL_IF(json == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("json") " is NULL");
    *json = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(op == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("op") " is NULL");
    gnomon_descriptor descriptor = op->descriptor;
    json_t *root = build(&descriptor);
    GNOMON_FAIL_IF(root == NULL, ctx, GNOMON_ERROR_MEMORY, "no memory for a descriptor's text");
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(digits(op->descriptor.density));
    *json = gnomon_json_text(root, flags);
    json_decref(root);
    GNOMON_FAIL_IF(*json == NULL, ctx, GNOMON_ERROR_MEMORY, "no memory for a descriptor's text");
    return GNOMON_OK;
}

/* --- reading --- */

/* Text from the file, cut and cleaned for an error message. */
typedef struct quoted {
    char text[64];
} quoted;

static quoted quote(const char *text)
{
    quoted q;
    snprintf(q.text, sizeof q.text, "%s", text);
    for (char *c = q.text; *c != '\0'; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
    return q;
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction";
    case JSON_NULL:
        return "null";
    default:
        return "true or false";
    }
}

static gnomon_status wrong_type(gnomon_context *ctx, const char *member, const json_t *value,
                                const char *wanted)
{
    return gnomon_fail(ctx, GNOMON_ERROR_DATA, "descriptor: \"%s\" is %s; it must be %s", member,
                       type_name(value), wanted);
}

static gnomon_status read_text(gnomon_context *ctx, const json_t *root, const char *member,
                               const char **out)
{
    const json_t *value = json_object_get(root, member);
    if (value == NULL) return GNOMON_OK;
    if (!json_is_string(value)) return wrong_type(ctx, member, value, "text");
    *out = json_string_value(value);
    return GNOMON_OK;
}

/* An integer of at least 1: 0 is 'the default' in a gnomon_descriptor, but in JSON a default is
 * a member left out. */
static gnomon_status read_count(gnomon_context *ctx, const json_t *root, const char *member,
                                int64_t *out)
{
    const json_t *value = json_object_get(root, member);
    if (value == NULL) return GNOMON_OK;
    if (!json_is_integer(value)) return wrong_type(ctx, member, value, "an integer");
    GNOMON_FAIL_IF(json_integer_value(value) < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"%s\" is %" JSON_INTEGER_FORMAT "; it must be at least 1", member,
                   json_integer_value(value));
    *out = json_integer_value(value);
    return GNOMON_OK;
}

/* A number above 0, for 0 is 'the default' here too. */
static gnomon_status read_real(gnomon_context *ctx, const json_t *root,
                               const gnomon_parameter_info *p, double *out)
{
    const json_t *value = json_object_get(root, p->name);
    if (value == NULL) return GNOMON_OK;
    if (!json_is_number(value)) return wrong_type(ctx, p->name, value, "a number");
    *out = json_number_value(value);
    GNOMON_FAIL_IF(!(*out > 0.0), ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"%s\" is %.17g; it must be %s", p->name, *out, p->range);
    return GNOMON_OK;
}

static bool parse_seed(const char *text, uint64_t *out)
{
    uint64_t seed = 0;
    if (*text == '\0' || (text[0] == '0' && text[1] != '\0')) return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        if (__builtin_mul_overflow(seed, UINT64_C(10), &seed) ||
            __builtin_add_overflow(seed, (uint64_t)(*text - '0'), &seed))
            return false;
    }
    *out = seed;
    return true;
}

static gnomon_status read_seed(gnomon_context *ctx, const json_t *root, uint64_t *out)
{
    const json_t *value = json_object_get(root, "seed");
    if (json_is_string(value)) {
        GNOMON_FAIL_IF(!parse_seed(json_string_value(value), out), ctx, GNOMON_ERROR_ARGUMENT,
                       "descriptor: \"seed\" is \"%s\"; it must be the decimal digits of a number "
                       "below 2^64",
                       quote(json_string_value(value)).text);
        return GNOMON_OK;
    }
    if (!json_is_integer(value))
        return wrong_type(ctx, "seed", value, "an integer, or text when 2^53 or more");
    const json_int_t seed = json_integer_value(value);
    GNOMON_FAIL_IF(seed < 0 || (uint64_t)seed >= EXACT_IN_FP64, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"seed\" is %" JSON_INTEGER_FORMAT
                   "; an integer must be at least 0 and below 2^53, a larger seed is written as "
                   "text",
                   seed);
    *out = (uint64_t)seed;
    return GNOMON_OK;
}

/* The kind that 'member' names, one of those with the flags. */
static gnomon_status read_kind(gnomon_context *ctx, const json_t *root, const char *member,
                               unsigned flags, gnomon_kind *out)
{
    const char *name = NULL;
    GNOMON_TRY(read_text(ctx, root, member, &name));
    if (name == NULL) return GNOMON_OK;
    *out = gnomon_kind_from_name(name);
    GNOMON_FAIL_IF(*out == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"%s\" is \"%s\"; it must be %s", member, quote(name).text,
                   gnomon_kind_names_with(flags).text);
    return GNOMON_OK;
}

/* The number of one of two words: 1 or 2, and 0 when the member is not there. */
static gnomon_status read_choice(gnomon_context *ctx, const json_t *root, const char *member,
                                 const char *first, const char *second, int *out)
{
    const char *word = NULL;
    *out = 0;
    GNOMON_TRY(read_text(ctx, root, member, &word));
    if (word == NULL) return GNOMON_OK;
    *out = strcmp(word, first) == 0 ? 1 : strcmp(word, second) == 0 ? 2 : 0;
    GNOMON_FAIL_IF(*out == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"%s\" is \"%s\"; it must be %s or %s", member, quote(word).text,
                   first, second);
    return GNOMON_OK;
}

static gnomon_status check_members(gnomon_context *ctx, json_t *root)
{
    static const char *const required[] = {"gnomon", "version", "kind", "k", "d", "seed"};
    static const char *const optional[] = {"scaling", "inner", "precision"};
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        bool known = false;
        for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
            known = known || strcmp(key, required[i]) == 0;
        for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++)
            known = known || strcmp(key, optional[i]) == 0;
        for (int i = 0; i < GNOMON_PARAMETERS; i++)
            known = known || strcmp(key, gnomon_parameter_at(i)->name) == 0;
        GNOMON_FAIL_IF(!known, ctx, GNOMON_ERROR_DATA,
                       "descriptor: \"%s\" is no member of an operator's descriptor",
                       quote(key).text);
    }
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++)
        GNOMON_FAIL_IF(json_object_get(root, required[i]) == NULL, ctx, GNOMON_ERROR_DATA,
                       "descriptor: the member \"%s\" is missing", required[i]);
    return GNOMON_OK;
}

static gnomon_status check_head(gnomon_context *ctx, const json_t *root)
{
    const char *what = NULL;
    GNOMON_TRY(read_text(ctx, root, "gnomon", &what));
    GNOMON_FAIL_IF(strcmp(what, "operator") != 0, ctx, GNOMON_ERROR_DATA,
                   "descriptor: \"gnomon\" is \"%s\"; it must be \"operator\"", quote(what).text);
    int64_t version = 0;
    GNOMON_TRY(read_count(ctx, root, "version", &version));
    GNOMON_FAIL_IF(version != GNOMON_OPERATOR_VERSION, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor: \"version\" is %" PRId64 "; this library knows version %d", version,
                   GNOMON_OPERATOR_VERSION);
    return GNOMON_OK;
}

static gnomon_status read_descriptor(gnomon_context *ctx, json_t *root, gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(!json_is_object(root), ctx, GNOMON_ERROR_DATA,
                   "descriptor: the JSON is %s; it must be an object", type_name(root));
    GNOMON_TRY(check_members(ctx, root));
    GNOMON_TRY(check_head(ctx, root));
    d->version = GNOMON_OPERATOR_VERSION;
    int precision, scaling;
    GNOMON_TRY(read_kind(ctx, root, "kind", 0, &d->kind));
    GNOMON_TRY(read_kind(ctx, root, "inner", GNOMON_KIND_INNER, &d->inner));
    GNOMON_TRY(read_count(ctx, root, "k", &d->k));
    GNOMON_TRY(read_count(ctx, root, "d", &d->d));
    GNOMON_TRY(read_seed(ctx, root, &d->seed));
    GNOMON_TRY(read_choice(ctx, root, "scaling", "isometric", "none", &scaling));
    GNOMON_TRY(read_choice(ctx, root, "precision", "fp32", "fp16", &precision));
    d->scaling = (gnomon_scaling)scaling;
    d->precision = precision == 2 ? GNOMON_F16 : precision == 1 ? GNOMON_F32 : (gnomon_dtype)0;
    for (int i = 0; i < GNOMON_PARAMETERS; i++) {
        const gnomon_parameter_info *p = gnomon_parameter_at(i);
        GNOMON_TRY(p->is_real ? read_real(ctx, root, p, gnomon_parameter_real(p, d))
                              : read_count(ctx, root, p->name, gnomon_parameter_count(p, d)));
    }
    return GNOMON_OK;
}

gnomon_status gnomon_operator_from_json(gnomon_context *ctx, const char *json, size_t length,
                                        gnomon_operator **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(json == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("json") " is NULL");
    json_error_t error;
    bool memory;
    json_t *root = gnomon_json_read(json, length, JSON_REJECT_DUPLICATES, &error, &memory);
    GNOMON_FAIL_IF(memory, ctx, GNOMON_ERROR_MEMORY, "no memory to read a descriptor");
    GNOMON_FAIL_IF(root == NULL, ctx, GNOMON_ERROR_DATA,
                   "descriptor: not JSON: line %d, column %d: %s", error.line, error.column,
                   quote(error.text).text);
    gnomon_descriptor descriptor = GNOMON_DESCRIPTOR_INIT;
    const gnomon_status status = read_descriptor(ctx, root, &descriptor);
    json_decref(root);
    GNOMON_TRY(status);
    const gnomon_status created = gnomon_operator_create(ctx, &descriptor, out);
    return created == GNOMON_OK ? created : gnomon_fail_prefix(ctx, created, "descriptor");
}
