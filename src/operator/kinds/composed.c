/* The kinds that are made of matrices of an inner kind (section 5): block and kronecker. */
#include "base/error.h"
#include "operator/kinds/kinds.h"

#include <inttypes.h>

/* 2^57: cascades are padded to less than twice D with zeta 2, and further with a larger one */
#define PADDED_MAX (INT64_C(1) << (GNOMON_COLS_LOG2_MAX + 1))
#define ROWS_MAX   (INT64_C(1) << GNOMON_ROWS_LOG2_MAX)

static gnomon_status check_block(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->blocks == 0) d->blocks = 1;
    GNOMON_FAIL_IF(d->blocks < 1 || d->blocks > d->k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("blocks") " is %" PRId64
                                        "; it must be at least 1 and at most k, which is "
                                        "%" PRId64,
                   d->blocks, d->k);
    GNOMON_FAIL_IF(gnomon_kind_row_of(d->inner)->needs_equal_blocks && d->k % d->blocks != 0, ctx,
                   GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("blocks") " is %" PRId64
                                        "; with inner %s it must divide k, which is %" PRId64,
                   d->blocks, gnomon_kind_name(d->inner), d->k);
    return GNOMON_OK;
}

static gnomon_status compose_block(gnomon_context *ctx, gnomon_operator *op)
{
    const gnomon_descriptor *d = &op->descriptor;
    op->blocks = d->blocks;
    op->block_cols = (d->d - 1) / d->blocks + 1;
    GNOMON_TRY(gnomon_set_factor(ctx, op, 0, (d->k - 1) / d->blocks + 1, op->block_cols, 0));
    op->scale = op->factor[0].scale;
    return GNOMON_OK;
}

const gnomon_kind_row gnomon_kind_row_block = {
    .info = {.kind = GNOMON_BLOCK,
             .name = "block",
             .about = "block-diagonal",
             .uses = GNOMON_USES_INNER | GNOMON_USES_BLOCKS,
             .flags = GNOMON_KIND_COMPOSED},
    .check = check_block,
    .compose = compose_block,
};

static gnomon_status check_kronecker(gnomon_context *ctx, gnomon_descriptor *d)
{
    if (d->zeta == 0) d->zeta = 2;
    if (d->width == 0) d->width = d->k;
    GNOMON_FAIL_IF(d->zeta < 2, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("zeta") " is %" PRId64 "; it must be at least 2", d->zeta);
    GNOMON_FAIL_IF(d->width < d->k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("width") " is %" PRId64 "; it must be at least k, which is %" PRId64,
                   d->width, d->k);
    return GNOMON_OK;
}

static gnomon_status compose_kronecker(gnomon_context *ctx, gnomon_operator *op)
{
    const gnomon_descriptor *d = &op->descriptor;
    int levels = 0;
    int64_t padded = d->width;
    do {
        GNOMON_FAIL_IF(padded > PADDED_MAX / d->zeta, ctx, GNOMON_ERROR_OVERFLOW,
                       "width %" PRId64 " and zeta %" PRId64 ": %d levels pad d, which is %" PRId64
                       ", to more than 2^57 coordinates; use a smaller width or zeta",
                       d->width, d->zeta, levels + 1, d->d);
        padded *= d->zeta;
        levels++;
    } while (padded < d->d);
    GNOMON_FAIL_IF(levels > 1 && d->width > ROWS_MAX / (levels - 1), ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("width") " is %" PRId64 "; with %d levels it must be at most %" PRId64
                                       ", so that no factor has more than 2^32 rows",
                   d->width, levels, ROWS_MAX / (levels - 1));

    op->levels = levels;
    int64_t repeat = 1;
    for (int t = levels; t >= 1; t--) {
        const int64_t rows = t < levels ? t * d->width : d->k;
        const int64_t cols = t > 1 ? d->zeta * ((t - 1) * d->width) : d->zeta * d->width;
        GNOMON_TRY(gnomon_set_factor(ctx, op, t - 1, rows, cols, (uint32_t)t));
        op->repeat[t - 1] = repeat;
        repeat *= d->zeta;
    }
    op->scale = op->factor[0].scale;
    for (int t = 1; t < levels; t++)
        op->scale *= op->factor[t].scale;
    return GNOMON_OK;
}

const gnomon_kind_row gnomon_kind_row_kronecker = {
    .info = {.kind = GNOMON_KRONECKER,
             .name = "kronecker",
             .about = "a product of I (x) A, not A (x) B",
             .uses = GNOMON_USES_INNER | GNOMON_USES_ZETA | GNOMON_USES_WIDTH,
             .flags = GNOMON_KIND_COMPOSED},
    .check = check_kronecker,
    .compose = compose_kronecker,
};
