/* sjlt's points of any layout and type as lines of fp32 coordinates, whose points are adjacent. */
#include "cuda/project/sjlt/sjlt.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { TILE = 32 };

template <typename T>
static __global__ void __launch_bounds__(256)
    pack(gcu_points x, int64_t point, int64_t points, int64_t q0, int64_t cols, float *to,
         int64_t width)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t col0 = blockIdx.x * (int64_t)TILE, v0 = blockIdx.y * (int64_t)TILE;
    const bool by_points = x.row_stride == 1;
    for (int j = threadIdx.x / TILE; j < TILE; j += 256 / TILE) {
        const int c = by_points ? j : threadIdx.x % TILE, p = by_points ? threadIdx.x % TILE : j;
        const int64_t v = point + v0 + p;
        const int64_t b = v / x.n, q = q0 + col0 + c;
        tile[c][p] =
            v0 + p < points && col0 + c < cols && q >= 0 ? gcu_load<T>(x, b, v - b * x.n, q) : 0.0f;
    }
    __syncthreads();
    for (int c = threadIdx.x / TILE; c < TILE; c += 256 / TILE) {
        const int p = threadIdx.x % TILE;
        if (col0 + c < cols && v0 + p < width) to[(col0 + c) * width + v0 + p] = tile[c][p];
    }
}

template <typename T>
static cudaError_t launch_pack(const gcu_points &x, int64_t point, int64_t points, int64_t q0,
                               int64_t cols, float *to, int64_t width, cudaStream_t stream)
{
    const dim3 grid((unsigned)((cols + TILE - 1) / TILE), (unsigned)((width + TILE - 1) / TILE));
    pack<T><<<grid, 256, 0, stream>>>(x, point, points, q0, cols, to, width);
    return cudaGetLastError();
}

cudaError_t sjlt_pack(const gcu_points &x, int64_t point, int64_t points, int64_t q0, int64_t cols,
                      float *to, int64_t width, cudaStream_t stream)
{
    switch (x.dtype) {
    case GNOMON_F32:
        return launch_pack<float>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_F16:
        return launch_pack<__half>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_BF16:
        return launch_pack<__nv_bfloat16>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_I8:
        return launch_pack<int8_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_U8:
        return launch_pack<uint8_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_I16:
        return launch_pack<int16_t>(x, point, points, q0, cols, to, width, stream);
    case GNOMON_U16:
        return launch_pack<uint16_t>(x, point, points, q0, cols, to, width, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
