#include "operator/part.h"

#include "base/error.h"
#include "operator/kinds/kinds.h"

#include <inttypes.h>

gnomon_part gnomon_first_part(const gnomon_operator *op, int64_t row, int64_t rows, int64_t col,
                              int64_t cols)
{
    gnomon_part part = {row, rows, col, cols, row, col, op->scale};
    if (op->blocks == 1) return part;

    const int64_t block = gnomon_block_of_row(op, row);
    const int64_t first_row = gnomon_block_first_row(op, block);
    const int64_t end_row = gnomon_block_first_row(op, block + 1);
    if (end_row - row < rows) part.rows = end_row - row;
    part.inner_row = row - first_row;
    part.scale = gnomon_simple_scale(&op->factor[0], end_row - first_row);

    /* block < r and c = ceil(D / r): block * c stays below D + r */
    const int64_t first_col = block * op->block_cols;
    const int64_t end_col = op->descriptor.d - first_col < op->block_cols
                                ? op->descriptor.d
                                : first_col + op->block_cols;
    part.col = col > first_col ? col : first_col;
    const int64_t end = col + cols < end_col ? col + cols : end_col;
    part.cols = end > part.col ? end - part.col : 0;
    part.inner_col = part.col - first_col;
    return part;
}

gnomon_status gnomon_check_block(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                 int64_t rows, int64_t col, int64_t cols)
{
    const gnomon_descriptor *d = &op->descriptor;
    GNOMON_FAIL_IF(rows < 0 || cols < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   "the block is %" PRId64 " x %" PRId64 "; sizes must not be negative", rows,
                   cols);
    GNOMON_FAIL_IF(row < 0 || row > d->k || rows > d->k - row, ctx, GNOMON_ERROR_SHAPE,
                   "%" PRId64 " rows from row %" PRId64 " on; the operator has rows 0 to %" PRId64,
                   rows, row, d->k - 1);
    GNOMON_FAIL_IF(col < 0 || col > d->d || cols > d->d - col, ctx, GNOMON_ERROR_SHAPE,
                   "%" PRId64 " columns from column %" PRId64
                   " on; the operator has columns 0 to %" PRId64,
                   cols, col, d->d - 1);
    return GNOMON_OK;
}
