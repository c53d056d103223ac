/* A tensor's elements put elsewhere. */
#include "cuda/hosvd/hosvd.h"
#include "cuda/runtime/grid.cuh"

enum { THREADS = 256, TILE = 32 };

template <typename To>
static __global__ void transpose_kernel(const float *from, int64_t rows, int64_t cols,
                                        int64_t pitch, To *to)
{
    __shared__ float tile[TILE][TILE + 1];
    const int64_t across = (cols + TILE - 1) / TILE, tiles = across * ((rows + TILE - 1) / TILE);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * TILE, col = t % across * TILE;
        for (int i = threadIdx.y; i < TILE; i += 8)
            if (row + i < rows && col + threadIdx.x < cols)
                tile[i][threadIdx.x] = from[(row + i) * pitch + col + threadIdx.x];
        __syncthreads();
        for (int i = threadIdx.y; i < TILE; i += 8)
            if (col + i < cols && row + threadIdx.x < rows)
                to[(col + i) * rows + row + threadIdx.x] = (To)tile[threadIdx.x][i];
        __syncthreads();
    }
}

template <typename To>
static cudaError_t transpose(const float *from, int64_t rows, int64_t cols, int64_t pitch, To *to,
                             cudaStream_t stream)
{
    const int64_t tiles = ((rows + TILE - 1) / TILE) * ((cols + TILE - 1) / TILE);
    transpose_kernel<<<gcu_grid(tiles, 1), dim3(TILE, 8), 0, stream>>>(from, rows, cols, pitch, to);
    return cudaGetLastError();
}

cudaError_t gcu_hosvd_transpose(const float *from, int64_t rows, int64_t cols, int64_t pitch,
                                float *to, cudaStream_t stream)
{
    return transpose(from, rows, cols, pitch, to, stream);
}

cudaError_t gcu_hosvd_transpose(const float *from, int64_t rows, int64_t cols, int64_t pitch,
                                double *to, cudaStream_t stream)
{
    return transpose(from, rows, cols, pitch, to, stream);
}

/* right counts T's. */
template <typename T>
static __global__ void unfold_kernel(const T *from, int64_t left, int64_t length, int64_t right,
                                     T *to)
{
    const int64_t line = left * right, count = length * line;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count;
         e += (int64_t)gridDim.x * THREADS) {
        const int64_t i = e / line, at = e % line, l = at / right;
        to[e] = from[(l * length + i) * right + at - l * right];
    }
}

cudaError_t gcu_hosvd_unfold(const float *from, int64_t left, int64_t length, int64_t right,
                             float *to, cudaStream_t stream)
{
    if (right % 4 == 0 && (uintptr_t)from % 16 == 0)
        unfold_kernel<<<gcu_grid(left * length * right / 4, THREADS), THREADS, 0, stream>>>(
            reinterpret_cast<const float4 *>(from), left, length, right / 4,
            reinterpret_cast<float4 *>(to));
    else
        unfold_kernel<<<gcu_grid(left * length * right, THREADS), THREADS, 0, stream>>>(
            from, left, length, right, to);
    return cudaGetLastError();
}

template <typename T>
static __global__ void put_kernel(const T *from, int64_t count,
                                  const __grid_constant__ gcu_hosvd_way way, double factor, T *to,
                                  int *large)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count;
         e += (int64_t)gridDim.x * THREADS) {
        int64_t left = e, at = 0;
        float sign = 1.0f;
        for (int p = way.modes - 1; p >= 0; p--) {
            const int64_t index = left % way.size[p];
            left /= way.size[p];
            at += index * way.step[p];
            if (way.sign[p]) sign *= way.sign[p][index];
        }
        const T value = (T)((double)(sign * from[e]) * factor);
        if (large && !isfinite(value)) *large = 1;
        to[at] = value;
    }
}

cudaError_t gcu_hosvd_put(const float *from, int64_t count, const gcu_hosvd_way *way, double factor,
                          float *to, int *large, cudaStream_t stream)
{
    put_kernel<<<gcu_grid(count, THREADS), THREADS, 0, stream>>>(from, count, *way, factor, to,
                                                                 large);
    return cudaGetLastError();
}

cudaError_t gcu_hosvd_put(const double *from, int64_t count, const gcu_hosvd_way *way,
                          double factor, double *to, cudaStream_t stream)
{
    put_kernel<double>
        <<<gcu_grid(count, THREADS), THREADS, 0, stream>>>(from, count, *way, factor, to, nullptr);
    return cudaGetLastError();
}
