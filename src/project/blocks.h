/* project/blocks.h: simple and block operators, as runs of the engine. */
#ifndef GNOMON_PROJECT_BLOCKS_H
#define GNOMON_PROJECT_BLOCKS_H

#include "points/view.h"
#include "project/engine.h"
#include "project/job.h"

/* Which blocks a range of rows and one of columns have in common, and which rows and columns of A
 * that takes. */
typedef struct gnomon_reach {
    int64_t first, last; /* blocks; none when first > last */
    int64_t row, rows, col, cols;
} gnomon_reach;

gnomon_reach gnomon_reach_of(const gnomon_operator *op, int64_t row, int64_t rows, int64_t col,
                             int64_t cols);

/* Sets e up for the job: points are x (sketch) or y (adjoint). */
void gnomon_blocks_engine(gnomon_context *ctx, const gnomon_sketch_job *job, bool adjoint,
                          const gnomon_reach *reach, gnomon_engine *e);

/* Y = alpha X S^T + beta Y and its adjoint, with every check of the data. */
gnomon_status gnomon_blocks_sketch(gnomon_context *ctx, const gnomon_sketch_job *job);
gnomon_status gnomon_blocks_adjoint(gnomon_context *ctx, const gnomon_sketch_job *job);

/* Writes sums that lived on through runs of e to y, and beta * y where no block writes. Errors:
 * NONFINITE. */
gnomon_status gnomon_blocks_store(gnomon_context *ctx, const gnomon_sketch_job *job,
                                  const gnomon_reach *reach, const gnomon_engine *e,
                                  const gnomon_matrix *y);

#endif
