/* project/sparse/scatter.h: adding the columns of a simple operator, each times a nonzero, to the
 * sums of sparse points. Only columns that some point touches are made, group by group. */
#ifndef GNOMON_PROJECT_SCATTER_H
#define GNOMON_PROJECT_SCATTER_H

#include "kernels.h"

typedef struct gnomon_scatter {
    gnomon_context *ctx;
    const gnomon_kernels *kernels;
    const gnomon_simple *a;
    bool f64;
    /* Points (or the blocks of points that have nonzeros): point v's are entries start[v] to
     * stop[v] - 1, columns of a ascending. */
    int64_t points;
    const int64_t *start, *stop;
    const int64_t *col;
    const char *value;
    /* The sums of point v, numbers 'to[v]' of sums and on: rows [row, row + rows) of a. */
    char *sums;
    const int64_t *to;
    int64_t row, rows;
    const int64_t *uneven; /* NULL, or 2 numbers per point: its own row and rows within those;
                              to[v] is where its own first row goes */
    int64_t memory;        /* bytes it may take, beside 16 a nonzero */
    int64_t report_at, report_of; /* progress */
} gnomon_scatter;

/* Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_scatter_run(const gnomon_scatter *s);

#endif
