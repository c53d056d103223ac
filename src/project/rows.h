/* project/rows.h: sums that lie point by point, on their way out. */
#ifndef GNOMON_PROJECT_ROWS_H
#define GNOMON_PROJECT_ROWS_H

#include "project/job.h"
#include "project/overflow.h"

/* y = alpha * scale * sums + beta * y; sums: y->rows x y->cols numbers, row-major, double when
 * f64; column 0 of y is the operator's row job->row. overflow (may be NULL) is told
 * of rows that are not finite. */
void gnomon_store_rows(gnomon_context *ctx, const gnomon_sketch_job *job, const void *sums,
                       const gnomon_matrix *y, gnomon_overflow *overflow);

#endif
