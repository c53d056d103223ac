/* The kernels of project/dense/points.cuh with mma.sync. */
#include "cuda/project/dense/points_launch.cuh"

cudaError_t points_launch_80(const gcu_gpu *gpu, points_params *p, int rows, int type, bool across,
                             cudaStream_t stream)
{
    return points_launch<false>(gpu, p, rows, type, across, stream);
}
