/* cuda/project/dense/points_launch.cuh: which of the kernels of project/dense/points.cuh there are,
 * and how one is launched. */
#ifndef GNOMON_CUDA_DENSE_POINTS_LAUNCH_CUH
#define GNOMON_CUDA_DENSE_POINTS_LAUNCH_CUH

#include "cuda/project/dense/points.cuh"

/* Rows a pass for so many rows of A. mma.sync holds fewer sums. */
static inline int points_pass_rows(int64_t rows, int type, bool hopper)
{
    if (!hopper) return rows <= 32 ? 32 : 64;
    if (type == POINTS_F32) return rows <= 16 ? 16 : rows <= 32 ? 32 : rows <= 64 ? 64 : 128;
    return rows <= 32 ? 32 : 128;
}

/* Fills in how p's work is cut up (depth, totals, passes, groups, splits ...) and enqueues it. The
 * points and the room for parts (parts NULL: no splitting) are set. */
cudaError_t points_launch_90(const gcu_gpu *gpu, points_params *p, int rows, int type, bool across,
                             cudaStream_t stream);
cudaError_t points_launch_80(const gcu_gpu *gpu, points_params *p, int rows, int type, bool across,
                             cudaStream_t stream);

template <int N, int TYPE, bool ACROSS, bool HOPPER>
cudaError_t points_start(const gcu_gpu *gpu, points_params *p, cudaStream_t stream)
{
    using shape = points_shape<N, TYPE, ACROSS, HOPPER>;
    const bool table = p->kind == POINTS_KIND_GAUSSIAN16;
    p->totals = p->splits == 1 && p->x.block_cols > POINTS_SEGMENT;
    p->depth = shape::deep;
    if (shape::shared(p->depth, p->totals, table) > gpu->smem_bytes) p->depth = shape::shallow;
    const size_t bytes = shape::shared(p->depth, p->totals, table);
    if (bytes > gpu->smem_bytes) return cudaErrorInvalidConfiguration;
    p->groups = (p->points + shape::block_points - 1) / shape::block_points;
    const auto kernel = points_kernel<N, TYPE, ACROSS, HOPPER>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const int64_t units = p->groups * p->passes * p->splits;
    const int blocks = units < gpu->sms ? (int)units : gpu->sms;
    kernel<<<blocks, shape::threads, bytes, stream>>>(*p);
    return cudaGetLastError();
}

template <bool ACROSS, bool HOPPER>
cudaError_t points_choose(const gcu_gpu *gpu, points_params *p, int rows, int type,
                          cudaStream_t stream)
{
    if constexpr (HOPPER) {
        if (type == POINTS_F32) {
            switch (rows) {
            case 16:
                return points_start<16, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream);
            case 32:
                return points_start<32, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream);
            case 64:
                return points_start<64, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream);
            default:
                return points_start<128, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream);
            }
        }
    }
    constexpr int most = HOPPER ? 128 : 64;
    const bool few = rows == 32;
    switch (type) {
    case POINTS_F32:
        if constexpr (HOPPER)
            return cudaErrorInvalidConfiguration;
        else
            return few ? points_start<32, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream)
                       : points_start<most, POINTS_F32, ACROSS, HOPPER>(gpu, p, stream);
    case POINTS_F16:
        return few ? points_start<32, POINTS_F16, ACROSS, HOPPER>(gpu, p, stream)
                   : points_start<most, POINTS_F16, ACROSS, HOPPER>(gpu, p, stream);
    case POINTS_BF16:
        return few ? points_start<32, POINTS_BF16, ACROSS, HOPPER>(gpu, p, stream)
                   : points_start<most, POINTS_BF16, ACROSS, HOPPER>(gpu, p, stream);
    default:
        return few ? points_start<32, POINTS_BYTE, ACROSS, HOPPER>(gpu, p, stream)
                   : points_start<most, POINTS_BYTE, ACROSS, HOPPER>(gpu, p, stream);
    }
}

template <bool HOPPER>
cudaError_t points_launch(const gcu_gpu *gpu, points_params *p, int rows, int type, bool across,
                          cudaStream_t stream)
{
    return across ? points_choose<true, HOPPER>(gpu, p, rows, type, stream)
                  : points_choose<false, HOPPER>(gpu, p, rows, type, stream);
}

#endif
