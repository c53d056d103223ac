/* Dense rows: gaussian, precision fp16. */
#include "cuda/project/dense/rows_launch.cuh"

cudaError_t gcu_rows_gaussian16(const gcu_rows_launch &l, int points, bool split,
                                const gcu_gpu *gpu, cudaStream_t stream)
{
    return launch_kind<GCU_DENSE_GAUSSIAN16>(l, points, split, gpu, stream);
}
