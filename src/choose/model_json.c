/* Cost models from JSON (docs/reference/choosing.md, "The file"). */
#include "base/error.h"
#include "base/plugin.h"
#include "base/text_json.h"
#include "choose/choose.h"
#include "operator/kinds/kinds.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The number of the word that text is, -1 for none. */
static int word(const char *text, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0) return i;
    return -1;
}

static gnomon_status read_cost(gnomon_context *ctx, json_t *entry, int index, gnomon_cost *c)
{
    static const char *const forms[] = {"points", "coordinates", "sparse"};
    static const char *const precisions[] = {"fp32", "fp16"};
    const char *kind = "", *precision = NULL, *form = "";
    json_error_t error;
    if (json_unpack_ex(entry, &error, JSON_STRICT,
                       "{s:s, s?s, s:s, s:i, s:i, s:F, s:F, s:F, s:F, s:F, s:F, s:F, s:F}",
                       "operator", &kind, "precision", &precision, "form", &form, "point_tile",
                       &c->point_tile, "row_tile", &c->row_tile, "start", &c->start, "make",
                       &c->make, "multiply", &c->multiply, "read", &c->read, "write", &c->write,
                       "step", &c->step, "half", &c->half, "wide", &c->f64) != 0)
        return gnomon_fail(ctx, GNOMON_ERROR_DATA,
                           "model: costs[%d]: %s; its members are operator, precision (gaussian "
                           "alone), form, point_tile, row_tile, start, make, multiply, read, "
                           "write, step, half and wide",
                           index, error.text);
    c->kind = gnomon_kind_from_name(kind);
    c->form = (gnomon_form)word(form, forms, 3);
    GNOMON_FAIL_IF(gnomon_kind_place(c->kind) < 0, ctx, GNOMON_ERROR_DATA,
                   "model: costs[%d]: \"operator\" must be a simple kind's name", index);
    GNOMON_FAIL_IF((int)c->form < 0, ctx, GNOMON_ERROR_DATA,
                   "model: costs[%d]: \"form\" must be points, coordinates or sparse", index);
    const int type = precision != NULL ? word(precision, precisions, 2) : -1;
    c->precision = type == 0 ? GNOMON_F32 : type == 1 ? GNOMON_F16 : (gnomon_dtype)0;
    const bool has_precisions =
        (gnomon_kind_row_of(c->kind)->info.uses & GNOMON_USES_PRECISION) != 0;
    GNOMON_FAIL_IF(has_precisions != (c->precision != 0), ctx, GNOMON_ERROR_DATA,
                   "model: costs[%d]: \"precision\" must be fp32 or fp16 for gaussian, and left "
                   "out for other kinds",
                   index);
    GNOMON_FAIL_IF(c->point_tile < 1 || c->row_tile < 1 || c->point_tile > 1 << 20 ||
                       c->row_tile > 1 << 20,
                   ctx, GNOMON_ERROR_DATA, "model: costs[%d]: tiles must lie in [1, 2^20]", index);
    const double seconds[] = {c->start, c->make, c->multiply, c->read, c->write, c->step};
    for (int i = 0; i < 6; i++)
        GNOMON_FAIL_IF(!(seconds[i] >= 0 && seconds[i] <= 1e6), ctx, GNOMON_ERROR_DATA,
                       "model: costs[%d]: seconds must lie in [0, 1e6]", index);
    GNOMON_FAIL_IF(!(c->half > 0 && c->half <= 1000 && c->f64 > 0 && c->f64 <= 1000), ctx,
                   GNOMON_ERROR_DATA,
                   "model: costs[%d]: \"half\" and \"wide\" must lie in (0, 1000]", index);
    return GNOMON_OK;
}

static gnomon_status read_model(gnomon_context *ctx, json_t *root, gnomon_model *m)
{
    const char *what = "", *name = "", *device = "";
    int version = 0;
    json_t *costs = NULL;
    json_error_t error;
    if (json_unpack_ex(root, &error, JSON_STRICT, "{s:s, s:i, s:s, s:s, s:i, s:F, s:F, s:o}",
                       "gnomon", &what, "version", &version, "name", &name, "device", &device,
                       "threads", &m->threads, "upload", &m->upload, "download", &m->download,
                       "costs", &costs) != 0)
        return gnomon_fail(ctx, GNOMON_ERROR_DATA,
                           "model: %s; a model is an object with the members gnomon, version, "
                           "name, device, threads, upload, download and costs",
                           error.text);
    GNOMON_FAIL_IF(strcmp(what, "model") != 0 || version != 1, ctx, GNOMON_ERROR_DATA,
                   "model: \"gnomon\" must be \"model\" and \"version\" 1");
    GNOMON_FAIL_IF(strlen(name) >= sizeof m->name || name[0] == '\0', ctx, GNOMON_ERROR_DATA,
                   "model: \"name\" must have 1 to %d bytes", (int)sizeof m->name - 1);
    /* devices are plugins, by their names: see gnomon_context_options */
    gnomon_device_spec spec;
    GNOMON_FAIL_IF(gnomon_device_read(device, &spec) != GNOMON_OK || spec.count > 0 || spec.all ||
                       spec.kind == GNOMON_DEVICE_AUTO,
                   ctx, GNOMON_ERROR_DATA,
                   "model: \"device\" must be cpu or a device's name, such as cuda");
    GNOMON_FAIL_IF(m->threads < 1 || m->threads > 4096, ctx, GNOMON_ERROR_DATA,
                   "model: \"threads\" is %d; it must lie in [1, 4096]", m->threads);
    GNOMON_FAIL_IF(!(m->upload >= 0 && m->upload <= 1 && m->download >= 0 && m->download <= 1), ctx,
                   GNOMON_ERROR_DATA, "model: \"upload\" and \"download\" must lie in [0, 1]");
    GNOMON_FAIL_IF(!json_is_array(costs) || json_array_size(costs) < 1 ||
                       json_array_size(costs) > GNOMON_MODEL_COSTS,
                   ctx, GNOMON_ERROR_DATA, "model: \"costs\" must be an array of 1 to %d objects",
                   (int)GNOMON_MODEL_COSTS);
    strcpy(m->name, name);
    m->device = spec.kind;
    if (spec.kind == GNOMON_DEVICE_PLUGIN) strcpy(m->plugin, spec.name);
    m->count = (int)json_array_size(costs);
    for (int i = 0; i < m->count; i++)
        GNOMON_TRY(read_cost(ctx, json_array_get(costs, (size_t)i), i, &m->cost[i]));
    for (int i = 0; i < m->count; i++)
        for (int j = 0; j < i; j++)
            GNOMON_FAIL_IF(
                m->cost[i].kind == m->cost[j].kind && m->cost[i].form == m->cost[j].form &&
                    m->cost[i].precision == m->cost[j].precision,
                ctx, GNOMON_ERROR_DATA, "model: costs[%d] and costs[%d] are of the same", j, i);
    return GNOMON_OK;
}

gnomon_status gnomon_model_from_json(gnomon_context *ctx, const char *json, size_t length,
                                     gnomon_model **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(json == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("json") " is NULL");
    json_error_t error;
    bool memory;
    json_t *root = gnomon_json_read(json, length, JSON_REJECT_DUPLICATES, &error, &memory);
    GNOMON_FAIL_IF(memory, ctx, GNOMON_ERROR_MEMORY, "no memory for a cost model");
    GNOMON_FAIL_IF(root == NULL, ctx, GNOMON_ERROR_DATA, "model: line %d: %s", error.line,
                   error.text);
    gnomon_model *m = calloc(1, sizeof *m);
    gnomon_status status =
        m != NULL ? read_model(ctx, root, m)
                  : gnomon_fail(ctx, GNOMON_ERROR_MEMORY, "no memory for a cost model");
    json_decref(root);
    if (status != GNOMON_OK)
        free(m);
    else
        *out = m;
    return status;
}
