/* hosvd/slab_pass.h: passes over a tensor's slabs, by one process or by several ranks, as those
 * over rows (svd/row_pass.h). A segment's sums are those of its slabs, and the segments are added
 * in ascending order, so that who has which segments changes no bit. */
#ifndef GNOMON_HOSVD_SLAB_PASS_H
#define GNOMON_HOSVD_SLAB_PASS_H

#include "hosvd/slabs.h"
#include "svd/row_pass.h"

typedef struct gnomon_slab_pass gnomon_slab_pass;

/* A slab at work. */
typedef struct gnomon_slab {
    gnomon_cube cube;
    int64_t row, begin, end; /* its first index of the outermost mode; those of its segment */
    int64_t own;             /* that index's number among those that are here */
    int64_t at;              /* where it lies in what this rank has of the pass's cube */
    bool first;              /* of its segment */
} gnomon_slab;

/* What a kind of pass does; a row of the table in slab_pass.c. */
typedef struct gnomon_slab_step {
    gnomon_step_kind kind;
    bool whole; /* the cube goes to every rank as a whole, not by segments */
    /* Fills in what a segment's result is. */
    gnomon_status (*shape)(gnomon_slab_pass *p);
    /* Adds a slab to the result of its segment. */
    gnomon_status (*add)(gnomon_slab_pass *p, const gnomon_slab *slab, void *result);
    /* Unless NULL, on rank 0 and in place of a sum: takes a segment's result. */
    gnomon_status (*take)(gnomon_slab_pass *p, int64_t row, int64_t rows, const void *result,
                          bool own);
} gnomon_slab_step;

struct gnomon_slab_pass {
    gnomon_slabs *x;
    gnomon_step_kind kind;
    /* What it takes, on rank 0 the caller's; the other ranks get it. */
    int mode, list, modes[GNOMON_TENSOR_MODES];
    int64_t row; /* of the operators */
    gnomon_tall
        factor[GNOMON_TENSOR_MODES]; /* by mode, of the list; or how large a projection is */
    gnomon_cube cube;                /* data NULL: none */
    gnomon_operator *op[GNOMON_TENSOR_MODES]; /* by place in the list; or none */
    /* A segment's result: so many numbers that are summed, doubles or (f64 false) of the work's
     * type, and bytes for each index of the outermost mode. */
    int64_t numbers, row_bytes;
    bool sums_f64, rows_in_place;
    void *out; /* on rank 0: of the whole; NULL where 'take' knows */
    const gnomon_slab_step *step;
    gnomon_stream *stream[GNOMON_TENSOR_MODES]; /* of a projection, by place in the list */
};

/* Does the pass. */
gnomon_status gnomon_slab_pass_run(gnomon_slab_pass *p);
/* The part of a rank that serves. */
gnomon_status gnomon_slab_pass_serve(gnomon_slabs *x, const gnomon_row_step *told);

/* The kinds; what they compute is in hosvd/work.h. */
extern const gnomon_slab_step gnomon_step_project, gnomon_step_shrink, gnomon_step_rest,
    gnomon_step_cross, gnomon_step_shrunk_cross, gnomon_step_residual, gnomon_step_gram,
    gnomon_step_triangle;

/* Rows [first, first + count) of f; indices [first, first + count) of c's outermost mode. */
gnomon_tall gnomon_rows_of_tall(const gnomon_tall *f, int64_t first, int64_t count);
gnomon_cube gnomon_part_of_cube(const gnomon_cube *c, int64_t first, int64_t count);

#endif
