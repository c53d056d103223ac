/* project/cascade/cascade.h: kronecker operators of two levels and more.
 *
 * Level t turns block j of a point, c_t numbers, into k_t numbers, which are part j mod zeta of
 * block j div zeta at level t + 1. A 'granule' of depth u is a block of level u with all
 * below it: its levels are worked through one after another, all blocks of all points at once.
 * What it gives goes to a slot, the input of the next level up, which is worked off when it is
 * complete; so blocks come in ascending order and no level is ever held whole. Each number is
 * made by the same sum however the columns come. */
#ifndef GNOMON_PROJECT_CASCADE_H
#define GNOMON_PROJECT_CASCADE_H

#include "project/blocks.h"
#include "project/sparse/nonzeros.h"

typedef struct gnomon_cascade {
    gnomon_context *ctx;
    const gnomon_kernels *kernels;
    const gnomon_operator *op;
    bool f64;
    int64_t size;                        /* bytes of a number */
    int64_t points;                      /* at once, at most */
    int64_t row, rows;                   /* of the last level */
    int depth;                           /* of the largest granule */
    bool pieces;                         /* columns may come in pieces: smaller granules too */
    int64_t span[GNOMON_MAX_LEVELS + 1]; /* blocks of level 1 in a block of level t */
    int64_t first, end; /* blocks of level 1 that ever come; the others are zeros */
    int64_t engine_memory, cache_left;
    char *between[2];                       /* outputs of a granule's odd and even levels */
    char *slot[GNOMON_MAX_LEVELS + 1];      /* points x c_t, for levels above some granule */
    int64_t current[GNOMON_MAX_LEVELS + 1]; /* whose parts the slot gathers; -1: none */
    char *root;                             /* points x rows, unscaled */
    gnomon_panels whole[GNOMON_MAX_LEVELS + 1];
    bool bad;                     /* an input was NaN or infinite */
    int64_t batch;                /* points in the current batch */
    int64_t report_at, report_of; /* progress */
} gnomon_cascade;

static inline int64_t gnomon_cascade_k(const gnomon_cascade *c, int level)
{
    return c->op->factor[level - 1].rows;
}

static inline int64_t gnomon_cascade_c(const gnomon_cascade *c, int level)
{
    return c->op->factor[level - 1].cols;
}

/* The level-1 blocks that columns [col, col + cols) touch. */
void gnomon_cascade_blocks(const gnomon_operator *op, int64_t col, int64_t cols, int64_t *first,
                           int64_t *end);

/* Chooses how many points go at once (out of so many; all when pieces is set) and how deep
 * granules are, and sets c up with buffers for that. Errors: MEMORY. */
gnomon_status gnomon_cascade_open(gnomon_cascade *c, gnomon_context *ctx,
                                  const gnomon_sketch_job *job, int64_t points, bool pieces);
void gnomon_cascade_close(gnomon_cascade *c);

/* Bytes that gnomon_cascade_sketch takes at most, all told, for points whose numbers of a column
 * are row_stride from one another. Errors: MEMORY when it would fail so. */
gnomon_status gnomon_cascade_memory(gnomon_context *ctx, const gnomon_sketch_job *job,
                                    int64_t points, int64_t row_stride, int64_t *bytes);

/* The next points, at most c->points of them: sums are zero, and blocks [first, end) are to come.
 */
void gnomon_cascade_begin(gnomon_cascade *c, int64_t points, int64_t first, int64_t end);
/* Takes columns [col, col + x->cols): whole blocks, but at the ends of what is to come. Errors:
 * MEMORY, CANCELLED. */
gnomon_status gnomon_cascade_push(gnomon_cascade *c, const gnomon_matrix *x, int64_t col);
/* Works off what slots are left: the sums are in c->root. */
gnomon_status gnomon_cascade_end(gnomon_cascade *c);

/* Makes way for block 'block' of a level, and says where it goes: to be called before it is made,
 * in ascending order. */
gnomon_status gnomon_cascade_place(gnomon_cascade *c, int level, int64_t block, gnomon_fold *out);
/* After the block has gone to its place. */
gnomon_status gnomon_cascade_placed(gnomon_cascade *c, int level, int64_t block);

/* Runs a level from in to out, both numbered alike. */
gnomon_status gnomon_cascade_level(gnomon_cascade *c, int level, bool adjoint, int64_t col,
                                   int64_t cols, const gnomon_fold *in, const gnomon_fold *out,
                                   const gnomon_finish *finish);

gnomon_status gnomon_cascade_sketch(gnomon_context *ctx, const gnomon_sketch_job *job);
gnomon_status gnomon_cascade_adjoint(gnomon_context *ctx, const gnomon_sketch_job *job);

/* Adds the points of z, at most c->points of them, whose columns are to come as
 * gnomon_cascade_begin was told; scatter_memory is what their first level may take. Changes z's
 * columns. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_cascade_add_sparse(gnomon_cascade *c, gnomon_nonzeros *z,
                                        int64_t scatter_memory);

#endif
