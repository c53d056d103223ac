/* B packed for products: see gemm/launch.h.
 *
 * Order of k within each 16 halves: as it is, or (quads) with k = 4 q + 2 h + e at half 8 h + 2 q +
 * e, so that the thread that holds halves 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of the other operand
 * reads four neighbours. Of TF32's eight numbers a thread holds q and q + 4: k = 2 q + e stands at
 * q + 4 e, or (quads) k = 4 q + 2 h + e of 16 at 8 h + q + 4 e. */
#include "cuda/gemm/launch.h"
#include "cuda/gemm/split.cuh"

enum { THREADS = 256, COLS = 64, PITCH = COLS + 8 };

/* How B is read: 16 bytes along n or along k, or single numbers. */
enum { ACROSS, ALONG, SINGLY };

static __device__ __forceinline__ float number(float x)
{
    return x;
}
static __device__ __forceinline__ float number(__half x)
{
    return __half2float(x);
}

/* Where element (k, column) of a tile lies: so that the 32 numbers that a warp gathers at once, of
 * four columns and every second eight of k, meet no bank twice. */
template <typename T> static __device__ __forceinline__ int place(int k, int column)
{
    const int skew =
        (sizeof(T) == 4 ? k / 16 * 16 : k / 16 % 2 * 16 + k / 32 * 64) / (int)sizeof(T);
    return k * PITCH + skew + column;
}

template <typename T> struct tile_of {
    static constexpr int size = GCU_GEMM_CHUNK * PITCH + 128 / (int)sizeof(T);
};

template <typename T, int READS>
static __device__ __forceinline__ void read_tile(const gcu_gemm_launch &l, T *tile, int64_t k,
                                                 int64_t j)
{
    constexpr int EACH = READS == SINGLY ? 1 : 16 / (int)sizeof(T);
    const T *b = static_cast<const T *>(l.b);
    const bool along = READS == ALONG || (READS == SINGLY && llabs(l.b_row) < llabs(l.b_col));
#pragma unroll
    for (int i = 0; i < COLS * GCU_GEMM_CHUNK / EACH / THREADS; i++) {
        const int at = (i * THREADS + (int)threadIdx.x) * EACH;
        const int row = along ? at % GCU_GEMM_CHUNK : at / COLS;
        const int col = along ? at / GCU_GEMM_CHUNK : at % COLS;
        const T *from = b + (k + row) * l.b_row + (j + col) * l.b_col;
        union {
            uint4 all;
            T each[16 / sizeof(T)];
        } x;
        x.all = make_uint4(0, 0, 0, 0);
        const int64_t left = READS == ALONG ? l.k - k - row : l.n - j - col;
        if (k + row < l.k && j + col < l.n) {
            if (READS != SINGLY && left >= EACH) {
                x.all = *reinterpret_cast<const uint4 *>(from);
            } else {
#pragma unroll
                for (int e = 0; e < EACH; e++)
                    if (e < left) x.each[e] = from[e];
            }
        }
        if (READS == ACROSS)
            *reinterpret_cast<uint4 *>(tile + place<T>(row, col)) = x.all;
        else
#pragma unroll
            for (int e = 0; e < EACH; e++)
                tile[place<T>(row + e, col)] = x.each[e];
    }
}

/* Part 'part' of the halves of a column. */
template <typename T>
static __device__ __forceinline__ void pack_part(const gcu_gemm_launch &l, const T *tile, int part,
                                                 int column, int64_t chunk, int64_t j)
{
    T x[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int s = part % 2 * 8 + i; /* half of 16 */
        const int k = l.quads ? s % 8 / 2 * 4 + s / 8 * 2 + s % 2 : s;
        x[i] = tile[place<T>(part / 2 * 16 + k, column)];
    }
    const int64_t to = (chunk * l.cols + j) * (2 * GCU_GEMM_CHUNK) + ((part ^ (int)(j & 7)) << 4);
    uint32_t high[4], low[4];
    if (sizeof(T) == 4) {
        float largest = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; i++)
            largest = fmaxf(largest, fabsf(number(x[i])));
#pragma unroll
        for (int step = 1; step < 8; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
        const gcu_gemm_scale s = gcu_gemm_scale_of(largest);
#pragma unroll
        for (int i = 0; i < 4; i++)
            gcu_gemm_split<true>(number(x[2 * i]) * s.up, number(x[2 * i + 1]) * s.up, high + i,
                                 low + i);
        *reinterpret_cast<uint4 *>(l.packed_low + to) = make_uint4(low[0], low[1], low[2], low[3]);
        if (part == 0) l.scales[chunk * l.cols + j] = s.down;
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++)
            high[i] = gcu_gemm_bits(__halves2half2(__half(x[2 * i]), __half(x[2 * i + 1])));
    }
    *reinterpret_cast<uint4 *>(l.packed + to) = make_uint4(high[0], high[1], high[2], high[3]);
}

/* Part 'part' of line 'line' of a column's two. */
static __device__ __forceinline__ void pack_tf32(const gcu_gemm_launch &l, const __half *tile,
                                                 int line, int part, int column, int64_t chunk,
                                                 int64_t j)
{
    float x[4];
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int k = l.quads ? part / 4 * 16 + q * 4 + part / 2 % 2 * 2 + part % 2
                              : part / 2 * 8 + q * 2 + part % 2;
        x[q] = __half2float(tile[place<__half>(line * 32 + k, column)]);
    }
    const int64_t to = ((2 * chunk + line) * l.cols + j) * 128 + ((part ^ (int)(j & 7)) << 4);
    *reinterpret_cast<float4 *>(l.packed + to) = make_float4(x[0], x[1], x[2], x[3]);
}

template <typename T, int READS>
static __global__ void __launch_bounds__(THREADS) pack(const __grid_constant__ gcu_gemm_launch l)
{
    __shared__ __align__(16) T tile[tile_of<T>::size];
    const int t = (int)threadIdx.x;
    if (l.presplit && !l.mixed[l.presplit_blocks]) return; /* nobody reads it */
    const int64_t groups = l.cols / COLS, items = groups * l.chunks;
    const int64_t marks = l.mark_rows * l.mark_cols, all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + t; i < marks && !l.presplit; i += all)
        l.marks[i] = 0;
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t chunk = item / groups, j = item % groups * COLS;
        read_tile<T, READS>(l, tile, chunk * GCU_GEMM_CHUNK, j);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < COLS; i += THREADS / 8) {
            const int column = i + t / 8;
            if constexpr (sizeof(T) == 2) {
                if (l.tf32) {
                    pack_tf32(l, tile, 0, t % 8, column, chunk, j + column);
                    pack_tf32(l, tile, 1, t % 8, column, chunk, j + column);
                    continue;
                }
            }
            pack_part(l, tile, t % 8, column, chunk, j + column);
        }
        __syncthreads();
    }
}

template <typename T> static cudaError_t launch(const gcu_gemm_launch &l, cudaStream_t stream)
{
    /* nobody may read it: see above */
    const int64_t items = l.cols / COLS * l.chunks, most = l.presplit ? 1024 : 1 << 14;
    const unsigned grid = (unsigned)(items < most ? items : most);
    const int64_t each = 16 / (int64_t)sizeof(T);
    const bool whole = (uintptr_t)l.b % 16 == 0;
    if (whole && l.b_col == 1 && l.b_row % each == 0)
        pack<T, ACROSS><<<grid, THREADS, 0, stream>>>(l);
    else if (whole && l.b_row == 1 && l.b_col % each == 0)
        pack<T, ALONG><<<grid, THREADS, 0, stream>>>(l);
    else
        pack<T, SINGLY><<<grid, THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}

cudaError_t gcu_gemm_pack(const gcu_gemm_launch &l, cudaStream_t stream)
{
    return l.b_dtype == GNOMON_F32 ? launch<float>(l, stream) : launch<__half>(l, stream);
}

static __global__ void __launch_bounds__(THREADS)
    to_f32(gcu_gemm_view a, int64_t m, int64_t k, float *to, int64_t stride)
{
    const __half *from = static_cast<const __half *>(a.data);
    const int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < m * k; at += all)
        to[at / k * stride + at % k] =
            __half2float(from[at / k * a.row_stride + at % k * a.col_stride]);
}

cudaError_t gcu_gemm_to_f32(const gcu_gemm_view *a, int64_t m, int64_t k, float *to, int64_t stride,
                            cudaStream_t stream)
{
    const int64_t blocks = (m * k + THREADS - 1) / THREADS, most = 1 << 16;
    to_f32<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream>>>(*a, m, k, to, stride);
    return cudaGetLastError();
}
