/* cuda/project/dense/rows_launch.cuh: the launches of one kind, for all tiles and both ways. */
#ifndef GNOMON_CUDA_DENSE_ROWS_LAUNCH_CUH
#define GNOMON_CUDA_DENSE_ROWS_LAUNCH_CUH

#include "cuda/project/dense/rows_hopper.cuh"
#include "cuda/project/dense/rows_mma.cuh"

template <gcu_dense_kind KIND, int POINTS, bool SPLIT>
static cudaError_t launch(const gcu_rows_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    if constexpr (KIND != GCU_DENSE_SIGNS || !SPLIT) /* Hopper has these as GCU_DENSE_SIGN_PAIRS */
        if (gpu->major == 9) return launch_hopper<KIND, POINTS, SPLIT>(l, gpu, stream);
    return launch_mma<KIND, POINTS, SPLIT>(l, gpu, stream);
}

template <gcu_dense_kind KIND, bool SPLIT>
static cudaError_t launch_points(const gcu_rows_launch &l, int points, const gcu_gpu *gpu,
                                 cudaStream_t stream)
{
    return points == 8    ? launch<KIND, 8, SPLIT>(l, gpu, stream)
           : points == 16 ? launch<KIND, 16, SPLIT>(l, gpu, stream)
                          : launch<KIND, 32, SPLIT>(l, gpu, stream);
}

template <gcu_dense_kind KIND>
static cudaError_t launch_kind(const gcu_rows_launch &l, int points, bool split, const gcu_gpu *gpu,
                               cudaStream_t stream)
{
    return split ? launch_points<KIND, true>(l, points, gpu, stream)
                 : launch_points<KIND, false>(l, points, gpu, stream);
}

#endif
