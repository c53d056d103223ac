/* One JSON object on standard output. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    return json_pack("{s:s, s:s, s:s, s:s*, s:s, s:i, s:f}", "gnomon", gnomon_version(), "verb",
                     app->verb, "device", device ? gnomon_context_device_kind(app->ctx) : "cpu",
                     "gpu", device ? gnomon_context_device_name(app->ctx) : NULL, "isa",
                     gnomon_context_isa(app->ctx), "threads", gnomon_context_threads(app->ctx),
                     "seconds", cli_json_seconds(cli_seconds() - app->started));
}

json_t *cli_descriptor_json(cli_app *app, const gnomon_operator *op)
{
    char *text = NULL;
    if (gnomon_operator_to_json(app->ctx, op, &text) != GNOMON_OK) return NULL;
    json_t *descriptor = json_loads(text, 0, NULL);
    free(text);
    return descriptor;
}

static void print_real(double value)
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
    printf(plain ? "%s.0" : "%s", text);
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

static void print_value(json_t *value, int indent);

static void print_leaf(const json_t *value)
{
    char *text = cli_json_text(value, JSON_ENCODE_ANY);
    fputs(text != NULL ? text : "null", stdout);
    free(text);
}

static void print_object(json_t *value, int indent)
{
    const char *separator = "\n";
    putchar('{');
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at)) {
        json_t *name = json_string(json_object_iter_key(at));
        printf("%s%*s", separator, indent + 2, "");
        print_leaf(name);
        json_decref(name);
        fputs(": ", stdout);
        print_value(json_object_iter_value(at), indent + 2);
        separator = ",\n";
    }
    printf("\n%*s}", indent, "");
}

static void print_array(const json_t *value, int indent)
{
    size_t count = json_array_size(value);
    /* Numbers stand in one line, objects each in its own. */
    int lines = count > 0 && json_is_object(json_array_get(value, 0));
    putchar('[');
    for (size_t i = 0; i < count; ++i) {
        if (lines)
            printf("%s\n%*s", i > 0 ? "," : "", indent + 2, "");
        else if (i > 0)
            fputs(", ", stdout);
        print_value(json_array_get(value, i), indent + 2);
    }
    if (lines) printf("\n%*s", indent, "");
    putchar(']');
}

static void print_value(json_t *value, int indent)
{
    if (json_is_object(value))
        print_object(value, indent);
    else if (json_is_array(value))
        print_array(value, indent);
    else if (json_is_real(value))
        print_real(json_real_value(value));
    else
        print_leaf(value);
}

int cli_print_report(cli_app *app, json_t *figures)
{
    json_t *object = cli_json_join(run_facts(app), figures);
    if (object == NULL) return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for the report");
    cli_bar_clear(app);
    print_value(object, 0);
    putchar('\n');
    json_decref(object);
    return cli_flush_output(app->verb);
}
