/* Dense rows: rademacher. */
#include "cuda/project/dense/rows_launch.cuh"

cudaError_t gcu_rows_signs(const gcu_rows_launch &l, int points, bool split, const gcu_gpu *gpu,
                           cudaStream_t stream)
{
    return launch_kind<GCU_DENSE_SIGNS>(l, points, split, gpu, stream);
}
