/* hosvd/slabs.h: a tensor gone through slab by slab: some indices of the outermost mode and all of
 * the others, as a cube.
 *
 * Inside, modes are in the order of falling strides, so that a slab is a piece of memory or of a
 * file; those with one index come last. A slab has a number of indices that depends on the shape
 * alone, so that where the tensor comes from does not show in the result. Passes over slabs are in
 * hosvd/slab_pass.h. */
#ifndef GNOMON_HOSVD_SLABS_H
#define GNOMON_HOSVD_SLABS_H

#include "hosvd/cube.h"
#include "svd/row_source.h"

/* A tensor with gaps, or whose elements step in no order that a matrix has, read as rows. */
typedef struct gnomon_scattered {
    gnomon_context *ctx;
    gnomon_tensor tensor; /* modes in the inner order */
    int64_t row;
} gnomon_scattered;

typedef struct gnomon_slabs {
    gnomon_row_source source; /* its rows: the outermost mode; its columns: all others */
    gnomon_matrix matrix;
    gnomon_scattered scattered;
    gnomon_svd_rows rows;
    int modes;
    int64_t size[GNOMON_TENSOR_MODES];
} gnomon_slabs;

/* Checks the view (its data too, unless streamed) and finds the inner order: inner mode i is x's
 * order[i]. Errors: ARGUMENT, SHAPE, OVERFLOW, UNSUPPORTED. */
gnomon_status gnomon_tensor_check(gnomon_context *ctx, const gnomon_tensor *x, bool streamed,
                                  int order[GNOMON_TENSOR_MODES]);

/* Opens a tensor whose modes are in the inner order, in memory or (rows not NULL) as a stream; it
 * stays where it is, and so must slabs. here: how many indices of the outermost mode these have, on
 * one of several ranks, where gnomon_slabs_begin is next; else all. */
gnomon_status gnomon_slabs_open(gnomon_context *ctx, const gnomon_tensor *x,
                                const gnomon_svd_rows *rows, int64_t here, bool f64,
                                gnomon_slabs *slabs);
/* Before the work, on all ranks, as gnomon_row_ranks_begin: also that all have the same tensor,
 * whose modes have these names. */
gnomon_status gnomon_slabs_begin(gnomon_slabs *slabs, const int *names,
                                 struct gnomon_row_ranks *ranks, gnomon_status status);
/* Indices of a slab, for so many of the outermost mode and so many elements of each. */
int64_t gnomon_slab_rows(int64_t rows, int64_t cols);
/* Opens a cube, which needs no check. */
gnomon_status gnomon_slabs_of_cube(gnomon_context *ctx, const gnomon_cube *cube,
                                   gnomon_slabs *slabs);
void gnomon_slabs_close(gnomon_slabs *slabs);

/* One pass that finds norm, largest and scaling. On NONFINITE source.refuse has told where. */
gnomon_status gnomon_slabs_scan(gnomon_slabs *slabs);

/* Into how many segments passes over them are cut (svd/row_pass.h). */
int64_t gnomon_slabs_segments(const gnomon_slabs *slabs);

/* The tensor itself, or what is here of it, as a cube, when it lies in memory as one; else data is
 * NULL. */
gnomon_cube gnomon_slabs_in_place(const gnomon_slabs *slabs);

#endif
