/* svd/normal.h: w = A^T A z of sparse rows, for GNOMON_NORMAL columns: each row is used twice while
 * it lies in the cache. Parts of the rows have their sums to themselves. */
#ifndef GNOMON_SVD_NORMAL_H
#define GNOMON_SVD_NORMAL_H

#include "kernels.h"
#include "svd/row_source.h"

typedef struct gnomon_normal {
    gnomon_row_source *source;
    const gnomon_kernels *kernels;
    void *less;               /* GNOMON_NORMAL: mean^T z */
    void *values;             /* of a piece, in the work's type where it has another; else NULL */
    int64_t values_room;      /* of those */
    gnomon_piece piece;       /* at work */
    const void *piece_values; /* its values in the work's type */
    const gnomon_tall *z, *sums; /* sums: one a part */
    int64_t widths;              /* a task does GNOMON_NORMAL / widths columns */
} gnomon_normal;

gnomon_status gnomon_normal_open(gnomon_row_source *source, gnomon_normal *n);
void gnomon_normal_close(gnomon_normal *n);
/* *w = A^T A z, of centred rows with A - 1 mean^T in A's place: what A^T is less there,
 * mean (1^T A z), is rounding alone, since the columns of the centred matrix sum to 0. w is
 * followed by matrices for the sums of the other parts, GNOMON_PARTS in all. */
gnomon_status gnomon_normal_multiply(gnomon_normal *n, const gnomon_tall *z, const gnomon_tall *w);
/* The part of a rank that serves. */
gnomon_status gnomon_normal_serve(gnomon_row_source *source);

#endif
