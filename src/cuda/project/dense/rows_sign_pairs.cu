/* Dense rows: rademacher of points in two halves, on Hopper. */
#include "cuda/project/dense/rows_hopper.cuh"

cudaError_t gcu_rows_sign_pairs(const gcu_rows_launch &l, int points, bool, const gcu_gpu *gpu,
                                cudaStream_t stream)
{
    return points == 8    ? launch_hopper<GCU_DENSE_SIGN_PAIRS, 8, true>(l, gpu, stream)
           : points == 16 ? launch_hopper<GCU_DENSE_SIGN_PAIRS, 16, true>(l, gpu, stream)
                          : launch_hopper<GCU_DENSE_SIGN_PAIRS, 32, true>(l, gpu, stream);
}
