/* The kernels of project/dense/points.cuh with wgmma. */
#include "cuda/project/dense/points_launch.cuh"

cudaError_t points_launch_90(const gcu_gpu *gpu, points_params *p, int rows, int type, bool across,
                             cudaStream_t stream)
{
    return points_launch<true>(gpu, p, rows, type, across, stream);
}
