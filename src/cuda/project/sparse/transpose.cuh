/* cuda/project/sparse/transpose.cuh: X's values transposed into lines, fp32 and a coordinate's
 * points side by side, where X itself has none: other strides, other types. Gathering single values
 * from it would waste most of every sector.
 *
 * Of 32 fp32 points a column's 128 bytes are read, written as a line and read again by the walk:
 * three passes over memory where X with lines takes one. Lines of a window of columns that stays in
 * L2 would spare two of them, but L2 takes reads from memory and writes one at the expense of the
 * other (transposing alone takes 1.8 times one read of X then), and a window's end, where all warps
 * wait for all, costs 2 microseconds: on an H200 that was slower than this. */
#ifndef GNOMON_CUDA_VERY_SPARSE_TRANSPOSE_H
#define GNOMON_CUDA_VERY_SPARSE_TRANSPOSE_H

#include "cuda/project/sparse/very_sparse.cuh"

/* Many small blocks: while some load, others store. */
enum { VS_TRANSPOSE_COLS = 128, VS_TRANSPOSE_THREADS = 256, VS_TRANSPOSE_BLOCKS = 8 };

/* In shared memory a point's columns lie side by side, fours of them exchanged so that reading four
 * points' fours has no bank conflicts. */
__device__ __forceinline__ int vs_transpose_at(int p, int four)
{
    return p * VS_TRANSPOSE_COLS + (four ^ (p >> 2 & 7)) * 4;
}

/* A block of threads transposes P points of VS_TRANSPOSE_COLS columns; [column][tile][point of the
 * tile], columns counted from the launch's first chunk. VECTORS: fp32, the columns side by side and
 * aligned. */
template <typename T, int P, bool VECTORS>
__global__ void __launch_bounds__(VS_TRANSPOSE_THREADS, VS_TRANSPOSE_BLOCKS)
    vs_transpose_kernel(const __grid_constant__ vs_task t, float *lines)
{
    __shared__ __align__(16) float tile[P * VS_TRANSPOSE_COLS];
    const int64_t c0 = (int64_t)blockIdx.x * VS_TRANSPOSE_COLS; /* from the launch's first column */
    const int64_t q0 = (int64_t)t.begin * t.chunk + c0;
    int64_t b = 0, i0 = (t.tile + blockIdx.y) * P;
    if (t.x.blocks > 1) { /* a division takes as long as the loads do */
        b = (t.tile + blockIdx.y) / t.tiles_a_block;
        i0 -= b * t.tiles_a_block * P;
    }
    const int points = (int)min(t.x.n - i0, (int64_t)P);
    /* columns of the task that are there */
    const int64_t low = max((int64_t)0, t.x.first - b * t.x.block_cols) - q0;
    const int64_t high = min(t.x.block_cols, t.x.end - b * t.x.block_cols) - q0;
    const T *from = static_cast<const T *>(t.x.data) + b * t.x.block_stride + i0 * t.x.row_stride +
                    q0 * t.x.col_stride;
    if (VECTORS && low <= 0 && high >= VS_TRANSPOSE_COLS) {
        constexpr int FOURS = VS_TRANSPOSE_COLS / 4, LOADS = P * FOURS / VS_TRANSPOSE_THREADS;
        const int four = threadIdx.x % FOURS, first = threadIdx.x / FOURS;
        float4 v[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int p = first + u * (VS_TRANSPOSE_THREADS / FOURS);
            if (p < points)
                v[u] = __ldcs(reinterpret_cast<const float4 *>(from + p * t.x.row_stride) + four);
        }
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const int p = first + u * (VS_TRANSPOSE_THREADS / FOURS);
            if (p < points) *reinterpret_cast<float4 *>(tile + vs_transpose_at(p, four)) = v[u];
        }
    } else {
        /* neighbours in memory to neighbouring threads */
        const bool along = llabs(t.x.row_stride) < llabs(t.x.col_stride);
#pragma unroll 8
        for (int u = threadIdx.x; u < P * VS_TRANSPOSE_COLS; u += VS_TRANSPOSE_THREADS) {
            const int p = along ? u % P : u / VS_TRANSPOSE_COLS;
            const int c = along ? u / P : u % VS_TRANSPOSE_COLS;
            if (p < points && c >= low && c < high)
                tile[vs_transpose_at(p, c / 4) + c % 4] =
                    (float)from[p * t.x.row_stride + c * t.x.col_stride];
        }
    }
    __syncthreads();
    /* four points and four columns per thread; what is not there is not read later */
    constexpr int SIDE = P / 4, TRANSPOSE = VS_TRANSPOSE_THREADS / SIDE * 4;
    const int p = threadIdx.x % SIDE * 4;
    const int64_t width = t.tiles * P;
    const int64_t columns = min((int64_t)(t.end - t.begin) * t.chunk - c0, high);
#pragma unroll
    for (int step = 0; step < VS_TRANSPOSE_COLS; step += TRANSPOSE) {
        const int c = step + threadIdx.x / SIDE * 4;
        if (c >= columns || c >= VS_TRANSPOSE_COLS) break; /* the latter where P is 8 or 16 */
        float4 v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = *reinterpret_cast<const float4 *>(tile + vs_transpose_at(p + k, c / 4));
        float *to = lines + (c0 + c) * width + (int64_t)blockIdx.y * P + p;
        float4 *line = reinterpret_cast<float4 *>(to);
        __stcs(line, make_float4(v[0].x, v[1].x, v[2].x, v[3].x));
        __stcs(line + width / 4, make_float4(v[0].y, v[1].y, v[2].y, v[3].y));
        __stcs(line + width / 2, make_float4(v[0].z, v[1].z, v[2].z, v[3].z));
        __stcs(line + width / 4 * 3, make_float4(v[0].w, v[1].w, v[2].w, v[3].w));
    }
}

#endif
