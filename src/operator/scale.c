/* Section 6: scales, and how full an operator is. */
#include "operator/kinds/kinds.h"

#include <math.h>

/* floor(a b / c) for products beyond 64 bits. */
static int64_t mul_div(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((unsigned __int128)a * (unsigned __int128)b / (unsigned __int128)c);
}

int64_t gnomon_block_first_row(const gnomon_operator *op, int64_t a)
{
    return mul_div(a, op->descriptor.k, op->blocks);
}

int64_t gnomon_block_of_row(const gnomon_operator *op, int64_t row)
{
    /* the largest a with floor(a k / r) <= row, which is the largest with a k / r < row + 1 */
    return (int64_t)((((unsigned __int128)row + 1) * (unsigned __int128)op->blocks - 1) /
                     (unsigned __int128)op->descriptor.k);
}

double gnomon_operator_row_scale(const gnomon_operator *op, int64_t row)
{
    if (op == NULL) return NAN;
    if (row < 0 || row >= op->descriptor.k) return NAN;
    if (op->blocks == 1) return op->scale;
    const int64_t a = gnomon_block_of_row(op, row);
    const int64_t rows = gnomon_block_first_row(op, a + 1) - gnomon_block_first_row(op, a);
    return gnomon_simple_scale(&op->factor[0], rows);
}

/* Share of the k x d entries that lie inside a block: the last blocks may have few columns. */
static double block_share(const gnomon_operator *op)
{
    const int64_t whole = op->descriptor.d / op->block_cols;
    const int64_t rest = op->descriptor.d % op->block_cols;
    double inside = (double)gnomon_block_first_row(op, whole) * (double)op->block_cols;
    if (rest > 0)
        inside +=
            (double)(gnomon_block_first_row(op, whole + 1) - gnomon_block_first_row(op, whole)) *
            (double)rest;
    return inside / (double)op->descriptor.k / (double)op->descriptor.d;
}

double gnomon_operator_fill(const gnomon_operator *op)
{
    if (op == NULL) return NAN;
    double fill = op->factor[0].fill;
    if (op->descriptor.kind == GNOMON_BLOCK) return fill * block_share(op);
    for (int t = 1; t < op->levels; t++) {
        /* an entry is zero when each of its terms is */
        const double term = op->factor[t].fill * fill;
        fill = term < 1.0 ? -expm1((double)op->factor[t - 1].rows * log1p(-term)) : 1.0;
    }
    return fill;
}
