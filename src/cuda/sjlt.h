/* cuda/sjlt.h: the parts of the family gcu_sjlt (docs/operators.md, section 4.6).
 *
 * A row's slots in a chunk are consecutive, and the inverse permutation gives their columns, so a
 * row gathers its points' coordinates and nothing is scattered. 'list' kernels make the columns and
 * signs once for all points; a 'sum' kernel adds what the lists name, a segment of chunks at a
 * time, into partial sums; 'join' adds the segments in ascending order.
 *
 * Virtual rows: when there are few rows a chunk, each is cut into 'split' rows with as many times
 * fewer slots (a band of m rows cut so has the slots of one of m * split rows), which join adds.
 *
 * The order of a virtual row's sum: chunks ascending; in a chunk pieces of SJLT_PIECE columns
 * ascending; in a piece the order of the list. Both sum kernels keep it. */
#ifndef GNOMON_CUDA_SJLT_H
#define GNOMON_CUDA_SJLT_H

#include "cuda/family.h"

enum {
    SJLT_PIECE_LOG2 = 12,
    SJLT_PIECE = 1 << SJLT_PIECE_LOG2,
    SJLT_POINTS = 8,         /* points of a block of the sum kernel in shared memory */
    SJLT_WIDE_POINTS = 32,   /* and of the one that gathers from memory */
    SJLT_VIRTUAL_ROWS = 4096 /* split stops here */
};

/* What A alone decides. */
struct sjlt_shape {
    gcu_stream keys, signs;
    int64_t k, cols;
    int64_t bands, chunk, chunks;
    int chunk_log2;
    int64_t split;
    int pairs;              /* of slots in a virtual row's list: 2, 4 or more */
    bool full;              /* every list has all of its slots */
    int64_t segment_chunks; /* chunks a segment */
};

/* The lists of chunks [first, first + count) for the task's virtual rows. An entry is a column
 * of the chunk with the sign above it: 15 + 1 bits, two to a word, or 31 + 1 when wide; all ones is
 * no entry. Pair (or, when wide, entry) p of virtual row r of chunk c is
 * words[((c - first) * list_words + p) * rows + r]. */
struct sjlt_lists {
    uint32_t *words;
    int64_t first, count; /* chunks */
    int64_t row, rows;    /* virtual rows */
    bool wide;
    uint32_t *key;  /* [chunk][band][8], 6 of them used */
    uint32_t *sign; /* [chunk][band][chunk / 32] */
};

/* Sums of one range of points: partial[(segment * rows + virtual row) * width + v - point]. */
struct sjlt_sum {
    gcu_points x;
    int64_t origin; /* the task's first column */
    int64_t point, points, width;
    float *partial;
};

sjlt_shape sjlt_shape_of(const gnomon_simple *a);

static __host__ __device__ __forceinline__ int64_t sjlt_list_words(const sjlt_shape &s, bool wide)
{
    return wide ? 2 * s.pairs : s.pairs;
}

cudaError_t sjlt_make_lists(const sjlt_shape &shape, const sjlt_lists &lists, cudaStream_t stream);

/* Takes lists that are not wide. */
cudaError_t sjlt_sum_shared(const sjlt_shape &shape, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream);
/* Needs fp32 coordinates whose points are adjacent and lines aligned. */
bool sjlt_can_gather(const gcu_points &x);
cudaError_t sjlt_sum_gather(const sjlt_shape &shape, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream);

#endif
