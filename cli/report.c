/* One JSON object on standard output. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory of JSON ---- */

/* Where an allocation fails, jansson loses keys, digits and members silently, or stops the
 * program. So it gets what it asks for from here when memory is out, and the report is not printed.
 */
static _Alignas(max_align_t) unsigned char reserve[1 << 18];
static atomic_size_t reserve_used;
static atomic_bool memory_was_out;

static void *allocate(size_t size)
{
    void *block = malloc(size);
    if (block != NULL) return block;
    atomic_store(&memory_was_out, true);
    if (size > sizeof reserve) return NULL;
    const size_t step =
        (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    const size_t at = atomic_fetch_add(&reserve_used, step);
    return at <= sizeof reserve && step <= sizeof reserve - at ? reserve + at : NULL;
}

static void release(void *block)
{
    if ((uintptr_t)block - (uintptr_t)reserve >= sizeof reserve) free(block);
}

void cli_json_open(void)
{
    json_set_alloc_funcs(allocate, release);
}

/* ---- values ---- */

double cli_json_seconds(double seconds)
{
    return floor(seconds * 1e6 + 0.5) / 1e6;
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_join(json_t *first, json_t *second)
{
    if (first == NULL || second == NULL || json_object_update_missing(first, second) != 0) {
        json_decref(first);
        first = NULL;
    }
    json_decref(second);
    return first;
}

static json_t *run_facts(const cli_app *app)
{
    /* What is no projection runs on the CPU. */
    const int device = gnomon_context_worked_on(app->ctx) == GNOMON_DEVICE_PLUGIN;
    const char *const declined = gnomon_context_declined(app->ctx);
    /* ranks of a tensor are something else */
    const char *const processes = strcmp(app->verb, "hosvd") == 0 ? "processes" : "ranks";
    return json_pack("{s:s, s:s, s:o*, s:s, s:s*, s:s*, s:s, s:i, s:f}", "gnomon", gnomon_version(),
                     "verb", app->verb, processes,
                     app->comm_name != NULL ? json_integer(app->comm.size) : NULL, "device",
                     device ? gnomon_context_device_kind(app->ctx) : "cpu", "gpu",
                     device ? gnomon_context_device_name(app->ctx) : NULL, "device_reason",
                     declined[0] != 0 ? declined : NULL, "isa", gnomon_context_isa(app->ctx),
                     "threads", gnomon_context_threads(app->ctx), "seconds",
                     cli_json_seconds(cli_seconds() - app->started));
}

json_t *cli_descriptor_json(cli_app *app, const gnomon_operator *op)
{
    char *text = NULL;
    if (gnomon_operator_to_json(app->ctx, op, &text) != GNOMON_OK) {
        atomic_store(&memory_was_out, true);
        return NULL;
    }
    json_t *descriptor = json_loads(text, 0, NULL);
    free(text);
    return descriptor;
}

/* ---- text ---- */

/* The report as it is written; NULL: memory is out. */
typedef struct page {
    char *text;
    size_t length, room;
} page;

__attribute__((format(printf, 2, 3))) static void put(page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (p->text == NULL) return;
    if (p->length + (size_t)length >= p->room) {
        p->room = 2 * (p->room + (size_t)length);
        char *more = realloc(p->text, p->room);
        if (more == NULL) free(p->text);
        p->text = more;
        if (more == NULL) return;
    }
    va_start(arguments, format);
    vsnprintf(p->text + p->length, p->room - p->length, format, arguments);
    va_end(arguments);
    p->length += (size_t)length;
}

static void print_real(page *p, double value)
{
    char text[40];
    int length = 0;
    for (int digits = 6; digits <= 17; ++digits) {
        length = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    int plain = 1;
    for (int i = 0; i < length; ++i)
        plain = plain && ((text[i] >= '0' && text[i] <= '9') || text[i] == '-');
    /* A real stays a real for readers that care. */
    put(p, "%s%s", text, plain ? ".0" : "");
}

char *cli_json_text(const json_t *value, size_t flags)
{
    const size_t length = value != NULL ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = length > 0 ? malloc(length + 1) : NULL;
    if (text == NULL) return NULL;
    if (json_dumpb(value, text, length, flags) != length) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static void print_value(page *p, json_t *value, int indent);

static void print_leaf(page *p, const json_t *value)
{
    char *text = cli_json_text(value, JSON_ENCODE_ANY);
    if (text != NULL) put(p, "%s", text);
    if (text == NULL) {
        free(p->text);
        p->text = NULL;
    }
    free(text);
}

static void print_object(page *p, json_t *value, int indent)
{
    const char *separator = "\n";
    put(p, "{");
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at)) {
        json_t *name = json_string(json_object_iter_key(at));
        put(p, "%s%*s", separator, indent + 2, "");
        print_leaf(p, name);
        json_decref(name);
        put(p, ": ");
        print_value(p, json_object_iter_value(at), indent + 2);
        separator = ",\n";
    }
    put(p, "\n%*s}", indent, "");
}

static void print_array(page *p, const json_t *value, int indent)
{
    size_t count = json_array_size(value);
    /* Numbers stand in one line, objects each in its own. */
    int lines = count > 0 && json_is_object(json_array_get(value, 0));
    put(p, "[");
    for (size_t i = 0; i < count; ++i) {
        if (lines)
            put(p, "%s\n%*s", i > 0 ? "," : "", indent + 2, "");
        else if (i > 0)
            put(p, ", ");
        print_value(p, json_array_get(value, i), indent + 2);
    }
    if (lines) put(p, "\n%*s", indent, "");
    put(p, "]");
}

static void print_value(page *p, json_t *value, int indent)
{
    if (json_is_object(value))
        print_object(p, value, indent);
    else if (json_is_array(value))
        print_array(p, value, indent);
    else if (json_is_real(value))
        print_real(p, json_real_value(value));
    else
        print_leaf(p, value);
}

int cli_print_report(cli_app *app, json_t *figures)
{
    json_t *object = cli_json_join(run_facts(app), figures);
    page p = {.room = 1 << 12};
    if (object != NULL) p.text = malloc(p.room);
    if (p.text != NULL) print_value(&p, object, 0);
    json_decref(object);
    if (p.text == NULL || atomic_load(&memory_was_out)) {
        free(p.text);
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for the report");
    }
    cli_bar_clear(app);
    const int code = cli_print_line(app->verb, p.text);
    free(p.text);
    return code;
}
