/* cuda/project/sjlt/sjlt.h: the parts of the family gcu_sjlt (docs/reference/operators.md,
 * section 4.6).
 *
 * A row's slots in a chunk are consecutive, and the inverse permutation gives their columns, so a
 * row gathers its points' coordinates and nothing is scattered. Lists of the columns and signs are
 * made once for all points (project/sjlt/lists.cuh); kernels add what the lists name, a segment of
 * chunks at a time, into partial sums; 'join' (project/sjlt/sjlt.cu) adds the segments in ascending
 * order.
 *
 * Virtual rows: when there are few rows per chunk, each is cut into 'split' rows with as many times
 * fewer slots (a band of m rows cut so has the slots of one of m * split rows), which join adds.
 *
 * The order of a virtual row's sum: chunks ascending; in a chunk the order of the list, which is
 * that of the columns where it has one or two steps, as where a chunk is longer than a stage
 * (SJLT_STAGE columns). All kernels that sum keep it. */
#ifndef GNOMON_CUDA_SJLT_H
#define GNOMON_CUDA_SJLT_H

#include "cuda/project/family.h"

enum {
    SJLT_STAGE_LOG2 = 12, /* columns that the kernel with a stage holds at a time */
    SJLT_STAGE = 1 << SJLT_STAGE_LOG2,
    SJLT_STAGE_POINTS = 4,   /* and points */
    SJLT_POINTS = 32,        /* points of a block that gathers from memory */
    SJLT_LINE = 8,           /* points of a line that is made on the way */
    SJLT_VIRTUAL_ROWS = 4096 /* split stops here */
};

/* What A alone decides. */
struct sjlt_shape {
    gcu_stream keys, signs;
    int64_t k;
    int64_t bands, chunk, chunks;
    int chunk_log2;
    int64_t split;
    int steps;              /* of four entries in a virtual row's list */
    bool full;              /* every list has all of its slots */
    bool bits32;            /* a list's entry takes 32 bits */
    int64_t segment_chunks; /* chunks a segment */
};

/* The lists of chunks [first, first + count) for the task's virtual rows. An entry is twice a
 * column of the chunk plus one where the sign is minus: 16 bits, two to a word, or 32 with bits32;
 * all ones is no entry. They come by four: step t of virtual row r of chunk c is the 8 bytes, or 16
 * with bits32, number ((c - first) * rows + r) * steps + t. */
struct sjlt_lists {
    void *entries;
    int64_t first, count; /* chunks */
    int64_t row, rows;    /* virtual rows */
};

/* Memory for lines of points that lie otherwise: of 'ring' turns, 'width' points each. */
struct sjlt_pack_room {
    float *to; /* NULL: points are taken where they lie */
    int64_t width, ring;
};

/* Sums of one range of points: partial[(segment * rows + virtual row) * width + v - point]. */
struct sjlt_sum {
    gcu_points x;
    int64_t origin; /* the column of A at coordinate 0 */
    int64_t point, points, width;
    float *partial;
    uint32_t *tickets; /* 1 + 2 turns numbers: a turn is a segment, of a tile of points if packed */
    sjlt_pack_room pack;
    bool listed; /* the lists stand already */
};

sjlt_shape sjlt_shape_of(const gnomon_simple *a);

cudaError_t sjlt_make_lists(const sjlt_shape &shape, const sjlt_lists &lists, cudaStream_t stream);

/* Makes the lists, if they do not stand, and the sums, of fp32 coordinates whose points are
 * adjacent and lines aligned; or of any, with sum.pack. */
bool sjlt_can_gather(const gcu_points &x);
cudaError_t sjlt_sum_gather(const sjlt_shape &shape, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream);

/* Sums by lists that stand and have 16-bit entries. fp32 points whose coordinates are adjacent and
 * aligned. */
bool sjlt_can_stage(const gcu_points &x);
cudaError_t sjlt_sum_stage(const sjlt_shape &shape, const sjlt_lists &lists, const sjlt_sum &sum,
                           cudaStream_t stream);

/* The same of few points, of fp16 and bf16 too, where a block's shared memory holds whole chunks.
 * Computed: the lists need not stand. */
bool sjlt_can_hold(const sjlt_shape &shape, const gcu_points &x, const gcu_gpu *gpu);
bool sjlt_held_computes(const sjlt_shape &shape, int64_t points);
cudaError_t sjlt_sum_held(const sjlt_shape &shape, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream);

/* Coordinates [q0, q0 + cols) of points [point, point + points), any type and layout, as fp32:
 * to[(q
 * - q0) * width + v - point], up to 'width' with zeros. */
cudaError_t sjlt_pack(const gcu_points &x, int64_t point, int64_t points, int64_t q0, int64_t cols,
                      float *to, int64_t width, cudaStream_t stream);

#endif
