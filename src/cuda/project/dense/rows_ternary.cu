/* Dense rows: achlioptas. */
#include "cuda/project/dense/rows_launch.cuh"

cudaError_t gcu_rows_ternary(const gcu_rows_launch &l, int points, bool split, const gcu_gpu *gpu,
                             cudaStream_t stream)
{
    return launch_kind<GCU_DENSE_TERNARY>(l, points, split, gpu, stream);
}
