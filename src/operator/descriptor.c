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

#define K_MAX       (INT64_C(1) << 32)
#define D_MAX       (INT64_C(1) << 56)
#define BAND_MAX    (INT64_C(1) << 28)
#define DENSITY_MIN 0x1p-30
/* 2^57: cascades are padded to less than twice D with zeta 2, and further with a larger one */
#define PADDED_MAX (INT64_C(1) << 57)

static bool is_composed(gnomon_kind kind)
{
    return kind == GNOMON_BLOCK || kind == GNOMON_KRONECKER;
}

/* The kind whose parameters the descriptor carries. */
static gnomon_kind value_kind(const gnomon_descriptor *d)
{
    return is_composed(d->kind) ? d->inner : d->kind;
}

static gnomon_status unused(gnomon_context *ctx, const gnomon_descriptor *d, const char *member)
{
    const bool composed = is_composed(d->kind);
    return gnomon_fail(ctx, GNOMON_ERROR_ARGUMENT,
                       "%s is set, but the operator kind %s%s%s does not use it: leave it out "
                       "(0)",
                       member, gnomon_kind_name(d->kind), composed ? " of " : "",
                       composed ? gnomon_kind_name(d->inner) : "");
}

static gnomon_status check_unused(gnomon_context *ctx, const gnomon_descriptor *d)
{
    const gnomon_kind values = value_kind(d);
    if (!is_composed(d->kind) && d->inner != 0) return unused(ctx, d, "inner");
    if (values != GNOMON_GAUSSIAN && d->precision != 0) return unused(ctx, d, "precision");
    /* also true of NaN, which an unused density may not be either */
    if (values != GNOMON_VERY_SPARSE && !(d->density == 0.0)) return unused(ctx, d, "density");
    if (values != GNOMON_SJLT && d->nonzeros != 0) return unused(ctx, d, "nonzeros");
    if (d->kind != GNOMON_BLOCK && d->blocks != 0) return unused(ctx, d, "blocks");
    if (d->kind != GNOMON_KRONECKER && d->zeta != 0) return unused(ctx, d, "zeta");
    if (d->kind != GNOMON_KRONECKER && d->width != 0) return unused(ctx, d, "width");
    return GNOMON_OK;
}

static gnomon_status check_kinds(gnomon_context *ctx, gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(d->version > GNOMON_OPERATOR_VERSION, ctx, GNOMON_ERROR_ARGUMENT,
                   "version is %" PRIu32 "; this library knows operators up to version %d",
                   d->version, GNOMON_OPERATOR_VERSION);
    d->version = GNOMON_OPERATOR_VERSION;
    GNOMON_FAIL_IF((int)d->kind < GNOMON_GAUSSIAN || (int)d->kind > GNOMON_KRONECKER, ctx,
                   GNOMON_ERROR_ARGUMENT, "kind is %d; it must be one of %d to %d", (int)d->kind,
                   GNOMON_GAUSSIAN, GNOMON_KRONECKER);
    if (is_composed(d->kind)) {
        if (d->inner == 0) d->inner = GNOMON_RADEMACHER;
        GNOMON_FAIL_IF((int)d->inner < GNOMON_GAUSSIAN || (int)d->inner > GNOMON_SJLT, ctx,
                       GNOMON_ERROR_ARGUMENT,
                       "inner is %d (%s); it must be gaussian, rademacher, achlioptas, "
                       "very-sparse or sjlt",
                       (int)d->inner, gnomon_kind_name(d->inner));
    }
    if (d->scaling == 0) d->scaling = GNOMON_ISOMETRIC;
    GNOMON_FAIL_IF(d->scaling != GNOMON_ISOMETRIC && d->scaling != GNOMON_UNSCALED, ctx,
                   GNOMON_ERROR_ARGUMENT, "scaling is %d; it must be %d (isometric) or %d (none)",
                   (int)d->scaling, GNOMON_ISOMETRIC, GNOMON_UNSCALED);
    return GNOMON_OK;
}

static gnomon_status check_sizes(gnomon_context *ctx, const gnomon_descriptor *d)
{
    GNOMON_FAIL_IF(d->d < 1 || d->d > D_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   "d is %" PRId64 "; it must be at least 1 and at most 2^56", d->d);
    GNOMON_FAIL_IF(d->k < 1 || d->k > K_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   "k is %" PRId64 "; it must be at least 1 and at most 2^32", d->k);
    GNOMON_FAIL_IF(d->k > d->d, ctx, GNOMON_ERROR_ARGUMENT,
                   "k is %" PRId64 "; it must be at most d, which is %" PRId64, d->k, d->d);
    return GNOMON_OK;
}

/* The members that say how values are drawn. */
static gnomon_status check_values(gnomon_context *ctx, gnomon_descriptor *d)
{
    const gnomon_kind values = value_kind(d);
    if (values == GNOMON_GAUSSIAN) {
        if (d->precision == 0) d->precision = GNOMON_FP32;
        GNOMON_FAIL_IF(d->precision != GNOMON_FP32 && d->precision != GNOMON_FP16, ctx,
                       GNOMON_ERROR_ARGUMENT, "precision is %d; it must be %d (fp32) or %d (fp16)",
                       (int)d->precision, GNOMON_FP32, GNOMON_FP16);
    }
    if (values == GNOMON_VERY_SPARSE && !(d->density == 0.0))
        GNOMON_FAIL_IF(!(d->density >= DENSITY_MIN && d->density <= 1.0), ctx,
                       GNOMON_ERROR_ARGUMENT,
                       "density is %.17g; it must be at least 2^-30 and at most 1", d->density);
    if (values == GNOMON_SJLT)
        GNOMON_FAIL_IF(d->nonzeros < 0 || d->nonzeros > d->k, ctx, GNOMON_ERROR_ARGUMENT,
                       "nonzeros is %" PRId64 "; it must be at least 1 and at most k, which is "
                       "%" PRId64,
                       d->nonzeros, d->k);
    return GNOMON_OK;
}

static gnomon_status check_composition(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->kind == GNOMON_BLOCK) {
        if (d->blocks == 0) d->blocks = 1;
        GNOMON_FAIL_IF(d->blocks < 1 || d->blocks > d->k, ctx, GNOMON_ERROR_ARGUMENT,
                       "blocks is %" PRId64 "; it must be at least 1 and at most k, which is "
                       "%" PRId64,
                       d->blocks, d->k);
        GNOMON_FAIL_IF(d->inner == GNOMON_SJLT && d->k % d->blocks != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       "blocks is %" PRId64 "; with inner sjlt it must divide k, which is "
                       "%" PRId64,
                       d->blocks, d->k);
    }
    if (d->kind == GNOMON_KRONECKER) {
        if (d->zeta == 0) d->zeta = 2;
        if (d->width == 0) d->width = d->k;
        GNOMON_FAIL_IF(d->zeta < 2, ctx, GNOMON_ERROR_ARGUMENT,
                       "zeta is %" PRId64 "; it must be at least 2", d->zeta);
        GNOMON_FAIL_IF(d->width < d->k, ctx, GNOMON_ERROR_ARGUMENT,
                       "width is %" PRId64 "; it must be at least k, which is %" PRId64, d->width,
                       d->k);
    }
    return GNOMON_OK;
}

static int log2_at_least(int64_t n)
{
    int bits = 0;
    while ((INT64_C(1) << bits) < n)
        bits++;
    return bits;
}

static gnomon_status set_very_sparse(gnomon_simple *a, const gnomon_descriptor *d)
{
    a->density = d->density == 0.0 ? 1.0 / sqrt((double)a->cols) : d->density;
    const double p256 = 256.0 * a->density;
    const double pieces = floor(24.0 / p256 + 0.5);
    const double length = 256.0 * (pieces > 1.0 ? pieces : 1.0);
    a->chunk = length < 0x1p22 ? (int64_t)length : INT64_C(1) << 22;
    a->jump_scale = gnomon_jump_scale(a->density);
    return GNOMON_OK;
}

static gnomon_status set_sjlt(gnomon_context *ctx, gnomon_simple *a, const gnomon_descriptor *d)
{
    a->nonzeros = d->nonzeros != 0 ? d->nonzeros : a->rows < 4 ? a->rows : 4;
    GNOMON_FAIL_IF(a->nonzeros > a->rows, ctx, GNOMON_ERROR_ARGUMENT,
                   "nonzeros is %" PRId64 "; it must be at most the %" PRId64
                   " rows of every inner matrix",
                   a->nonzeros, a->rows);
    const int64_t band = (a->rows - 1) / a->nonzeros + 1;
    GNOMON_FAIL_IF(band > BAND_MAX, ctx, GNOMON_ERROR_ARGUMENT,
                   "nonzeros is %" PRId64 "; with %" PRId64 " rows it must be at least %" PRId64
                   ", so that a band has at most 2^28 rows",
                   a->nonzeros, a->rows, (a->rows - 1) / BAND_MAX + 1);
    a->chunk_log2 = log2_at_least(4 * band > 4096 ? 4 * band : 4096);
    a->chunk = INT64_C(1) << a->chunk_log2;
    return GNOMON_OK;
}

static gnomon_status set_factor(gnomon_context *ctx, gnomon_operator *op, int number, int64_t rows,
                                int64_t cols, uint32_t level)
{
    const gnomon_descriptor *d = &op->descriptor;
    gnomon_simple *a = &op->factor[number];
    a->kind = value_kind(d);
    a->precision = d->precision;
    a->key0 = (uint32_t)d->seed;
    a->key1 = (uint32_t)(d->seed >> 32);
    a->level = level;
    a->rows = rows;
    a->cols = cols;
    op->repeat[number] = 1;
    if (a->kind == GNOMON_VERY_SPARSE) GNOMON_TRY(set_very_sparse(a, d));
    if (a->kind == GNOMON_SJLT) GNOMON_TRY(set_sjlt(ctx, a, d));
    if (a->kind == GNOMON_SRHT) {
        a->order_log2 = log2_at_least(cols);
        gnomon_srht_set_keys(a);
    }
    a->scale = gnomon_simple_scale(a, rows, d->scaling);
    return GNOMON_OK;
}

static gnomon_status set_up_cascade(gnomon_context *ctx, gnomon_operator *op)
{
    const gnomon_descriptor *d = &op->descriptor;
    int levels = 0;
    int64_t padded = d->width;
    do {
        GNOMON_FAIL_IF(padded > PADDED_MAX / d->zeta, ctx, GNOMON_ERROR_OVERFLOW,
                       "width %" PRId64 " and zeta %" PRId64 ": %d levels pad d, which is %" PRId64
                       ", to more than 2^57 coordinates; take a smaller width or zeta",
                       d->width, d->zeta, levels + 1, d->d);
        padded *= d->zeta;
        levels++;
    } while (padded < d->d);
    GNOMON_FAIL_IF(levels > 1 && d->width > K_MAX / (levels - 1), ctx, GNOMON_ERROR_OVERFLOW,
                   "width is %" PRId64 "; with %d levels it must be at most %" PRId64
                   ", so that no factor has more than 2^32 rows",
                   d->width, levels, K_MAX / (levels - 1));

    op->levels = levels;
    int64_t repeat = 1;
    for (int t = levels; t >= 1; t--) {
        const int64_t rows = t < levels ? t * d->width : d->k;
        const int64_t cols = t > 1 ? d->zeta * ((t - 1) * d->width) : d->zeta * d->width;
        GNOMON_TRY(set_factor(ctx, op, t - 1, rows, cols, (uint32_t)t));
        op->repeat[t - 1] = repeat;
        repeat *= d->zeta;
    }
    op->scale = op->factor[0].scale;
    for (int t = 1; t < levels; t++)
        op->scale *= op->factor[t].scale;
    return GNOMON_OK;
}

static gnomon_status set_up(gnomon_context *ctx, gnomon_operator *op)
{
    gnomon_descriptor *d = &op->descriptor;
    op->blocks = 1;
    op->block_cols = d->d;
    if (d->kind == GNOMON_KRONECKER) return set_up_cascade(ctx, op);
    op->levels = 1;
    int64_t rows = d->k;
    if (d->kind == GNOMON_BLOCK) {
        op->blocks = d->blocks;
        op->block_cols = (d->d - 1) / d->blocks + 1;
        rows = (d->k - 1) / d->blocks + 1;
    }
    GNOMON_TRY(set_factor(ctx, op, 0, rows, op->block_cols, 0));
    op->scale = op->factor[0].scale;
    if (!is_composed(d->kind)) {
        d->density = op->factor[0].density;
        d->nonzeros = op->factor[0].nonzeros;
    }
    return GNOMON_OK;
}

/* A caller built against a later header has a longer descriptor; that is fine as long as
 * nothing of what this library does not know is set. */
static gnomon_status copy_descriptor(gnomon_context *ctx, const gnomon_descriptor *in,
                                     gnomon_descriptor *out)
{
    GNOMON_FAIL_IF(in == NULL, ctx, GNOMON_ERROR_ARGUMENT, "descriptor is NULL");
    GNOMON_FAIL_IF(in->struct_size < sizeof *out, ctx, GNOMON_ERROR_ARGUMENT,
                   "descriptor.struct_size is %zu; it must be at least %zu: start from "
                   "GNOMON_DESCRIPTOR_INIT",
                   in->struct_size, sizeof *out);
    for (size_t i = sizeof *out; i < in->struct_size; i++)
        GNOMON_FAIL_IF(((const unsigned char *)in)[i] != 0, ctx, GNOMON_ERROR_ARGUMENT,
                       "the descriptor sets a member that this version of the library does not "
                       "know (byte %zu)",
                       i);
    *out = *in;
    out->struct_size = sizeof *out;
    return GNOMON_OK;
}

static gnomon_status complete(gnomon_context *ctx, const gnomon_descriptor *descriptor,
                              gnomon_operator *op)
{
    GNOMON_TRY(copy_descriptor(ctx, descriptor, &op->descriptor));
    GNOMON_TRY(check_kinds(ctx, &op->descriptor));
    GNOMON_TRY(check_unused(ctx, &op->descriptor));
    GNOMON_TRY(check_sizes(ctx, &op->descriptor));
    GNOMON_TRY(check_values(ctx, &op->descriptor));
    GNOMON_TRY(check_composition(ctx, &op->descriptor));
    return set_up(ctx, op);
}

gnomon_status gnomon_operator_create(gnomon_context *ctx, const gnomon_descriptor *descriptor,
                                     gnomon_operator **out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, "out is NULL");
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
    if (op == NULL || out == NULL) return;
    const size_t size = out->struct_size;
    const size_t known = size < sizeof *out ? size : sizeof *out;
    memset(out, 0, size);
    memcpy(out, &op->descriptor, known);
    out->struct_size = size;
}
