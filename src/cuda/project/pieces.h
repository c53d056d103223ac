/* cuda/project/pieces.h: a sketch as tasks for a family of kernels: which blocks and rows it
 * reaches, and how its columns are cut. */
#ifndef GNOMON_CUDA_PIECES_H
#define GNOMON_CUDA_PIECES_H

#include "cuda/project/cascade.h"
#include "cuda/runtime/state.h"

/* The job's blocks, those that its rows belong to, and A's rows in them. */
struct gcu_reach {
    int64_t first, last;
    int64_t row, rows;
};

struct gcu_pieces {
    const gnomon_sketch_job *job;
    const gcu_family *family; /* NULL: the cascade */
    gcu_reach reach;
    int64_t granule; /* where columns may be cut: inside a block, or (as wide as it) between two */
};

/* Columns [col, col + blocks * cols) of the operator, one task: A's columns [in_block, in_block +
 * cols) of some blocks; all of a block's when there is more than one. */
struct gcu_piece {
    int64_t col;
    int64_t block, blocks;
    int64_t in_block, cols;
    bool begins, finishes;
};

/* Chooses who does the job; x and y are as the device will see them (data and memory do not
 * matter). False with the reason when none can. */
bool gcu_pieces_open(gcu_pieces *p, const gcu_state *s, const gnomon_sketch_job *job,
                     const gnomon_matrix *x, const gnomon_matrix *y, gcu_why why);

/* The next piece of at most 'width' columns, a width that gcu_piece_width gave; *at is where the
 * last one ended, -1 at first. False when all the columns that the rows reach have come. */
bool gcu_next_piece(const gcu_pieces *p, int64_t width, int64_t *at, gcu_piece *piece);
/* The widest width, at most 'wanted' and at least one granule, at which pieces may be cut. */
int64_t gcu_piece_width(const gcu_pieces *p, int64_t wanted);

/* Work memory for, and running, a piece: x holds its columns from the operator's column x_col on
 * (those outside the view are zeros), y the batch's whole sketch. */
struct gcu_piece_call {
    gnomon_matrix x, y;
    int64_t x_col;
    void *carry;
    void *work;
    size_t work_bytes;
    cudaStream_t stream;
    const gcu_gpu *gpu;
};
size_t gcu_piece_work(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call,
                      bool least);
cudaError_t gcu_run_piece(const gcu_pieces *p, const gcu_piece *piece, const gcu_piece_call *call);

/* y = beta * y for the rows whose blocks have none of the job's columns. */
cudaError_t gcu_scale_unreached(const gcu_pieces *p, const gnomon_matrix *y, cudaStream_t stream);

#endif
