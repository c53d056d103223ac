/* cuda/project/dense/levels.h: two levels of a kronecker operator at once, for fp32 points: what a
 * level hands to the next one stays in registers. The bits are those of one level after the other.
 */
#ifndef GNOMON_CUDA_DENSE_LEVELS_H
#define GNOMON_CUDA_DENSE_LEVELS_H

#include "cuda/project/family.h"

/* (I (x) B) (I (x) A) x: A has 64 rows, B 128; both have 64 zeta columns. */
struct gcu_two_levels {
    const gnomon_simple *a, *b; /* host memory */
    gcu_points x;               /* of blocks of zeta times A's columns */
    gcu_out out;                /* of B, in fp32 */
    const gcu_gpu *gpu;
    cudaStream_t stream;
};

/* Whether there is a kernel; 'x' and 'out' are not looked at beyond type and strides. */
bool gcu_two_levels_supports(const gcu_two_levels *task);
cudaError_t gcu_two_levels_run(const gcu_two_levels *task);

#endif
