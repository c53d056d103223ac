/* Choosing an operator: candidates, each with its law and its cost. */
#include "base/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/options.h"
#include "choose/kinds/kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_choose_options, GNOMON_CHOOSE_OPTIONS_INIT)

enum { MOST_TIMES_LEAST = 2 };

static gnomon_status check(gnomon_context *ctx, const gnomon_choose_options *o)
{
    GNOMON_FAIL_IF(o->n < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("n") " is %" PRId64 "; it must be at least 1", o->n);
    GNOMON_FAIL_IF(o->d < 1 || o->d > INT64_C(1) << 56, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("d") " is %" PRId64 "; it must lie in [1, 2^56]", o->d);
    GNOMON_FAIL_IF(o->k < 0 || o->k > o->d || o->k > INT64_C(1) << 32, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 "; it must lie in [1, %" PRId64
                                   "], or be 0 with eps",
                   o->k, o->d < INT64_C(1) << 32 ? o->d : INT64_C(1) << 32);
    GNOMON_FAIL_IF(
        o->k > 0 && (o->eps != 0 || o->beta != 0 || o->delta != 0), ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("k") " is %" PRId64 " and eps, beta or delta is not 0; give k or eps", o->k);
    GNOMON_FAIL_IF(
        o->assume != 0 && o->assume != GNOMON_ASSUME_NOTHING &&
            o->assume != GNOMON_ASSUME_INCOHERENT,
        ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("assume") " is %d; it must be GNOMON_ASSUME_NOTHING or GNOMON_ASSUME_INCOHERENT",
        (int)o->assume);
    GNOMON_FAIL_IF(o->dtype != 0 && gnomon_dtype_size(o->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("dtype") " is %d; it must be one of the gnomon_dtype values",
                   (int)o->dtype);
    GNOMON_FAIL_IF(o->nonzeros < -1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("nonzeros") " is %" PRId64
                                          "; it must be at least 0, or -1 for dense points",
                   o->nonzeros);
    return GNOMON_OK;
}

static gnomon_load load_of(gnomon_context *ctx, const gnomon_choose_options *o)
{
    const gnomon_dtype dtype = o->dtype != 0 ? o->dtype : GNOMON_F32;
    return (gnomon_load){.form = o->nonzeros >= 0            ? GNOMON_FORM_SPARSE
                                 : o->coordinates_contiguous ? GNOMON_FORM_COORDINATES
                                                             : GNOMON_FORM_POINTS,
                         .n = (double)o->n,
                         .nonzeros = (double)o->nonzeros,
                         .element_size = (int)gnomon_dtype_size(dtype),
                         .f64 = gnomon_dtype_needs_f64(dtype),
                         .host = o->memory == GNOMON_HOST,
                         .threads = gnomon_context_threads(ctx)};
}

/* Where a sketch would run: sparse points always stay on the CPU. */
static gnomon_device device_of(gnomon_context *ctx, const gnomon_choose_options *o)
{
    if (o->nonzeros >= 0 || gnomon_context_device(ctx) == GNOMON_DEVICE_CPU)
        return GNOMON_DEVICE_CPU;
    return gnomon_context_plugin(ctx, 0) != NULL ? GNOMON_DEVICE_PLUGIN : GNOMON_DEVICE_CPU;
}

static void rule_out(gnomon_candidate *c, const char *reason)
{
    c->admitted = 0;
    snprintf(c->reason, sizeof c->reason, "%s", reason);
}

/* Law, operator and cost of one candidate. */
static gnomon_status consider(gnomon_context *ctx, const gnomon_choose_options *o,
                              const gnomon_model *model, const gnomon_load *load,
                              const gnomon_choose_row *row, gnomon_candidate *c)
{
    gnomon_descriptor *d = &c->descriptor;
    c->seconds = NAN;
    GNOMON_TRY(gnomon_law(ctx, o, row, c));
    if (d->k == 0 || d->k > o->d || d->k > INT64_C(1) << 32) {
        char law[sizeof c->reason];
        memcpy(law, c->reason, sizeof law);
        c->admitted = 0;
        if (d->k == 0)
            snprintf(c->reason, sizeof c->reason, "no k is enough (%s)", law);
        else
            snprintf(c->reason, sizeof c->reason,
                     "needs k = %" PRId64 ", of %" PRId64 " at most (%s)", d->k,
                     o->d < INT64_C(1) << 32 ? o->d : INT64_C(1) << 32, law);
        return GNOMON_OK;
    }
    gnomon_operator *op;
    const gnomon_status status = gnomon_operator_create(ctx, d, &op);
    if (status == GNOMON_ERROR_MEMORY) return status;
    if (status != GNOMON_OK) {
        rule_out(c, gnomon_last_error(ctx));
        return GNOMON_OK;
    }
    gnomon_operator_describe(op, d);
    c->seconds = gnomon_predict(model, op, load);
    gnomon_operator_destroy(op);
    if (isnan(c->seconds)) rule_out(c, "the model has no figures for it");
    return GNOMON_OK;
}

/* With eps: a quick kind that takes far more dimensions than another is no bargain for what comes
 * after the sketch. */
static void rule_out_wasteful(gnomon_choice *choice)
{
    const gnomon_candidate *least = NULL;
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *c = &choice->candidate[i];
        if (c->admitted && (least == NULL || c->descriptor.k < least->descriptor.k)) least = c;
    }
    for (int i = 0; least != NULL && i < choice->count; i++) {
        gnomon_candidate *c = &choice->candidate[i];
        if (!c->admitted || c->descriptor.k <= MOST_TIMES_LEAST * least->descriptor.k) continue;
        c->admitted = 0;
        snprintf(c->reason, sizeof c->reason,
                 "needs k = %" PRId64 ", more than %d times the %" PRId64 " of %s", c->descriptor.k,
                 MOST_TIMES_LEAST, least->descriptor.k, gnomon_kind_name(least->descriptor.kind));
    }
}

/* No candidate is admitted. */
static gnomon_status none(gnomon_context *ctx, const gnomon_choose_options *o,
                          const gnomon_choice *choice)
{
    const gnomon_candidate *least = NULL;
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *c = &choice->candidate[i];
        if (c->descriptor.k > 0 && (least == NULL || c->descriptor.k < least->descriptor.k))
            least = c;
    }
    GNOMON_FAIL_IF(o->k > 0 || least == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "model '%s' has no figures for any kind that is admitted", choice->model);
    return gnomon_fail(ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("eps") " is %g: to keep the distances of %" PRId64
                                         " points every kind needs more than their %" PRId64
                                         " coordinates, %s the fewest: k = %" PRId64,
                       o->eps, o->n, o->d, gnomon_kind_name(least->descriptor.kind),
                       least->descriptor.k);
}

static gnomon_status choose(gnomon_context *ctx, const gnomon_choose_options *options,
                            gnomon_choice *choice)
{
    const gnomon_device device = device_of(ctx, options);
    char note[sizeof choice->note] = "";
    const gnomon_model *model = options->model;
    if (model == NULL)
        model = gnomon_model_for(gnomon_shipped_models, device, gnomon_context_device_name(ctx),
                                 note, sizeof note);
    GNOMON_FAIL_IF(model == NULL, ctx, GNOMON_ERROR_UNSUPPORTED,
                   "there is no cost model for this device; measure one and give it");
    const char *there = device == GNOMON_DEVICE_PLUGIN ? gnomon_context_plugin(ctx, 0)->kind : "";
    GNOMON_FAIL_IF(
        model == options->model && (model->device != device || strcmp(model->plugin, there) != 0),
        ctx, GNOMON_ERROR_UNSUPPORTED, "model '%s' is for %s, but the sketch would run on %s",
        model->name, model->device == GNOMON_DEVICE_PLUGIN ? model->plugin : "the cpu",
        device == GNOMON_DEVICE_PLUGIN ? there : "the cpu");
    const gnomon_load load = load_of(ctx, options);
    choice->chosen = -1;
    choice->device = device;
    snprintf(choice->model, sizeof choice->model, "%s", model->name);
    memcpy(choice->note, note, sizeof note);
    const gnomon_choose_row *row;
    for (int r = 0; (row = gnomon_choose_row_at(r)) != NULL; r++) {
        for (int i = 0; i < row->count && choice->count < GNOMON_CANDIDATES; i++) {
            gnomon_candidate *c = &choice->candidate[choice->count++];
            c->descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
            c->descriptor.kind = row->kind;
            c->descriptor.precision = row->candidates[i].precision;
            c->descriptor.blocks = row->candidates[i].blocks;
            c->descriptor.zeta = row->candidates[i].zeta;
            c->descriptor.d = options->d;
            c->descriptor.seed = options->seed;
            c->descriptor.scaling = options->scaling;
            if (row->complete != NULL) row->complete(options, &c->descriptor);
            GNOMON_TRY(consider(ctx, options, model, &load, row, c));
        }
    }
    if (options->k == 0) rule_out_wasteful(choice);
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *c = &choice->candidate[i];
        if (c->admitted &&
            (choice->chosen < 0 || c->seconds < choice->candidate[choice->chosen].seconds))
            choice->chosen = i;
    }
    return choice->chosen >= 0 ? GNOMON_OK : none(ctx, options, choice);
}

gnomon_status gnomon_operator_choose(gnomon_context *ctx, const gnomon_choose_options *given,
                                     gnomon_choice *out)
{
    gnomon_choose_options options = GNOMON_CHOOSE_OPTIONS_INIT;
    gnomon_choice choice = {.struct_size = sizeof choice};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_choose_options, given, &options));
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "choice", gnomon_choice, out));
    GNOMON_TRY(check(ctx, &options));
    GNOMON_TRY(choose(ctx, &options, &choice));
    gnomon_write_result(out, &choice, sizeof choice);
    return GNOMON_OK;
}
