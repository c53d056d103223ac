/* Checking a descriptor, filling in its defaults, and setting up the factors that follow from
 * it (docs/reference/operators.md, sections 4 to 6). */
#include "base/error.h"
#include "base/options.h"
#include "operator/kinds/kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_descriptor, GNOMON_DESCRIPTOR_INIT)

#define K_MAX (INT64_C(1) << GNOMON_ROWS_LOG2_MAX)
#define D_MAX (INT64_C(1) << GNOMON_COLS_LOG2_MAX)

static bool is_composed(const gnomon_descriptor *d)
{
    return d->inner != 0;
}

/* The row of the kind whose parameters the descriptor carries. */
static const gnomon_kind_row *value_row(const gnomon_descriptor *d)
{
    return gnomon_kind_row_of(is_composed(d) ? d->inner : d->kind);
}

static gnomon_status unused(gnomon_context *ctx, const gnomon_descriptor *d, const char *member)
{
    const bool composed = (gnomon_kind_row_of(d->kind)->info.uses & GNOMON_USES_INNER) != 0;
    return gnomon_fail(
        ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("%s") " is set, but the operator kind %s%s%s does not use it: leave it out "
                         "(0)",
        member, gnomon_kind_name(d->kind), composed ? " of " : "",
        composed ? gnomon_kind_name(d->inner) : "");
}

static gnomon_status check_unused(gnomon_context *ctx, gnomon_descriptor *d)
{
    unsigned uses = gnomon_kind_row_of(d->kind)->info.uses;
    if ((uses & GNOMON_USES_INNER) == 0 && d->inner != 0) return unused(ctx, d, "inner");
    uses |= value_row(d)->info.uses;
    if ((uses & GNOMON_USES_PRECISION) == 0 && d->precision != 0)
        return unused(ctx, d, "precision");
    const gnomon_parameter_info *p;
    for (int i = 0; (p = gnomon_parameter_at(i)) != NULL; i++) {
        if ((uses & p->uses) != 0) continue;
        /* not true of NaN, which an unused real may not be either */
        const bool unset =
            p->is_real ? *gnomon_parameter_real(p, d) == 0.0 : *gnomon_parameter_count(p, d) == 0;
        if (!unset) return unused(ctx, d, p->name);
    }
    return GNOMON_OK;
}

static gnomon_status check_kinds(gnomon_context *ctx, gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(d->version > GNOMON_OPERATOR_VERSION, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("version") " is %" PRIu32
                                         "; this library knows operators up to version %d",
                   d->version, GNOMON_OPERATOR_VERSION);
    d->version = GNOMON_OPERATOR_VERSION;
    const gnomon_kind_row *row = gnomon_kind_row_of(d->kind);
    GNOMON_FAIL_IF(row == NULL, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("kind") " is %d; it must be the number of %s", (int)d->kind,
                   gnomon_kind_names_with(0).text);
    if ((row->info.uses & GNOMON_USES_INNER) != 0) {
        if (d->inner == 0) d->inner = GNOMON_RADEMACHER;
        const gnomon_kind_row *inner = gnomon_kind_row_of(d->inner);
        GNOMON_FAIL_IF(inner == NULL || (inner->info.flags & GNOMON_KIND_INNER) == 0, ctx,
                       GNOMON_ERROR_ARGUMENT, GNOMON_ARG("inner") " is %d (%s); it must be %s",
                       (int)d->inner, gnomon_kind_name(d->inner),
                       gnomon_kind_names_with(GNOMON_KIND_INNER).text);
    }
    if (d->scaling == 0) d->scaling = GNOMON_ISOMETRIC;
    GNOMON_FAIL_IF(d->scaling != GNOMON_ISOMETRIC && d->scaling != GNOMON_UNSCALED, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("scaling") " is %d; it must be %d (isometric) or %d (none)",
                   (int)d->scaling, GNOMON_ISOMETRIC, GNOMON_UNSCALED);
    return GNOMON_OK;
}

static gnomon_status check_sizes(gnomon_context *ctx, const gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(d->d < 1 || d->d > D_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("d") " is %" PRId64 "; it must be at least 1 and at most 2^56", d->d);
    GNOMON_FAIL_IF(d->k < 1 || d->k > K_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 "; it must be at least 1 and at most 2^32", d->k);
    GNOMON_FAIL_IF(d->k > d->d, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is %" PRId64 "; it must be at most d, which is %" PRId64, d->k,
                   d->d);
    return GNOMON_OK;
}

/* The members that are a kind's own: those of the values first. */
static gnomon_status check_members(gnomon_context *ctx, gnomon_descriptor *d)
{
    const gnomon_kind_row *values = value_row(d), *row = gnomon_kind_row_of(d->kind);
    if (values->check != NULL) GNOMON_TRY(values->check(ctx, d));
    if (row != values && row->check != NULL) return row->check(ctx, d);
    return GNOMON_OK;
}

static double scale_of(const gnomon_kind_row *row, const gnomon_simple *a, int64_t rows,
                       gnomon_scaling scaling)
{
    if (scaling == GNOMON_UNSCALED) return row->unscaled;
    return 1.0 / sqrt(row->column_norm(a, (double)rows));
}

gnomon_status gnomon_set_factor(gnomon_context *ctx, gnomon_operator *op, int number, int64_t rows,
                                int64_t cols, uint32_t level)
{
    const gnomon_descriptor *d = &op->descriptor;
    const gnomon_kind_row *row = value_row(d);
    gnomon_simple *a = &op->factor[number];
    a->kind = row->info.kind;
    a->precision = d->precision;
    a->key0 = (uint32_t)d->seed;
    a->key1 = (uint32_t)(d->seed >> 32);
    a->level = level;
    a->rows = rows;
    a->cols = cols;
    a->fill = 1.0;
    op->repeat[number] = 1;
    if (row->set_up != NULL) GNOMON_TRY(row->set_up(ctx, a, d));
    a->scale = scale_of(row, a, rows, d->scaling);
    a->scale_short = rows > 1 ? scale_of(row, a, rows - 1, d->scaling) : a->scale;
    return GNOMON_OK;
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_operator *op)
{
    gnomon_descriptor *d = &op->descriptor;
    const gnomon_kind_row *row = gnomon_kind_row_of(d->kind);
    op->blocks = 1;
    op->block_cols = d->d;
    op->levels = 1;
    if (row->compose != NULL) return row->compose(ctx, op);
    GNOMON_TRY(gnomon_set_factor(ctx, op, 0, d->k, d->d, 0));
    op->scale = op->factor[0].scale;
    d->density = op->factor[0].density;
    d->nonzeros = op->factor[0].nonzeros;
    return GNOMON_OK;
}

static gnomon_status complete(gnomon_context *ctx, const gnomon_descriptor *descriptor,
                              gnomon_operator *op)
{
    op->descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    GNOMON_TRY(
        GNOMON_COPY_OPTIONS(ctx, "descriptor", gnomon_descriptor, descriptor, &op->descriptor));
    GNOMON_TRY(check_kinds(ctx, &op->descriptor));
    GNOMON_TRY(check_unused(ctx, &op->descriptor));
    GNOMON_TRY(check_sizes(ctx, &op->descriptor));
    GNOMON_TRY(check_members(ctx, &op->descriptor));
    return set_up(ctx, op);
}

gnomon_status gnomon_operator_create(gnomon_context *ctx, const gnomon_descriptor *descriptor,
                                     gnomon_operator **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    GNOMON_NEED(NULL, ctx, "ctx");
    /* The C library's memory, for the operator may outlive its context. */
    gnomon_operator *op = calloc(1, sizeof *op);
    GNOMON_FAIL_IF(op == NULL, ctx, GNOMON_ERROR_MEMORY, "no memory for an operator of %zu bytes",
                   sizeof *op);
    const gnomon_status status = complete(ctx, descriptor, op);
    if (status != GNOMON_OK) {
        free(op);
        return status;
    }
    *out = op;
    return GNOMON_OK;
}

void gnomon_operator_destroy(gnomon_operator *op)
{
    free(op);
}

void gnomon_operator_describe(const gnomon_operator *op, gnomon_descriptor *out)
{
    if (op != NULL) gnomon_write_result(out, &op->descriptor, sizeof op->descriptor);
}
