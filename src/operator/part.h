/* operator/part.h: a rectangle of an operator cut into pieces that lie in one simple matrix
 * each. Not for kronecker. */
#ifndef GNOMON_OPERATOR_PART_H
#define GNOMON_OPERATOR_PART_H

#include "operator/operator.h"

typedef struct gnomon_part {
    int64_t row, rows;            /* rows of the operator, all of one block */
    int64_t col, cols;            /* the rectangle's columns that the block has, perhaps none */
    int64_t inner_row, inner_col; /* where (row, col) lies in the simple matrix */
    double scale;
} gnomon_part;

/* The part of [row, row + rows) x [col, col + cols) that begins with its first row and has as
 * many rows as are of one block. rows >= 1. */
gnomon_part gnomon_first_part(const gnomon_operator *op, int64_t row, int64_t rows, int64_t col,
                              int64_t cols);

/* Fails unless [row, row + rows) x [col, col + cols) lies in op. */
gnomon_status gnomon_check_block(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                 int64_t rows, int64_t col, int64_t cols);

/* gnomon_operator_block for kronecker; the arguments are checked. */
gnomon_status gnomon_kronecker_block(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                     int64_t col, const gnomon_matrix *out);

#endif
