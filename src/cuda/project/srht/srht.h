/* cuda/project/srht/srht.h: the parts of the family gcu_srht (docs/reference/operators.md,
 * section 4.7).
 *
 * The Hadamard matrix of order 2^b is the Kronecker product of those of orders 2^(b - c) and 2^c.
 * So blocks of 2^c columns are transformed one by one, and a sampled row takes from block u the
 * element perm(i) mod 2^c with the sign (-1)^popcount((perm(i) >> c) & u): no padding to a power of
 * two, one read. A row's sum goes block by block in a segment, then segment by segment. */
#ifndef GNOMON_CUDA_SRHT_H
#define GNOMON_CUDA_SRHT_H

#include "cuda/project/family.h"

enum { SRHT_SEGMENT_LOG2 = 5 }; /* blocks a segment */

struct srht_shape {
    gcu_stream signs;
    int log2; /* c */
    int order_log2;
    uint32_t key[6];
};

struct srht_sum {
    gcu_points x;           /* of one block; columns apart from each other only if 'across' */
    bool across;            /* the points are adjacent, not the columns */
    int64_t col;            /* A's column at coordinate 0: the first of a segment */
    const uint32_t *sign;   /* of columns col ..., 32 a word, whole blocks */
    const uint64_t *sample; /* perm of the task's rows */
    int64_t task_row, rows;
    int64_t point, points; /* of this batch */
    int64_t segments;
    /* [segment][point][row], across [segment][row][point]; NULL: one segment, whose sums go to out
     */
    float *partial;
    gcu_out out;
};

srht_shape srht_shape_of(const gnomon_simple *a);
/* Enqueues perm of rows [row, row + rows). */
cudaError_t srht_samples(const srht_shape &shape, int64_t row, int64_t rows, uint64_t *to,
                         cudaStream_t stream);
/* Whether srht_sum_blocks takes adjacent points as they are, with so much shared memory. */
bool srht_across_supported(const srht_shape &shape, int64_t rows, const gcu_points &x,
                           size_t smem_bytes);
cudaError_t srht_sum_across(const srht_shape &shape, const srht_sum &sum, int sms,
                            cudaStream_t stream);
/* F32, F16 and BF16. */
cudaError_t srht_sum_blocks(const srht_shape &shape, const srht_sum &sum, int sms,
                            cudaStream_t stream);

#endif
