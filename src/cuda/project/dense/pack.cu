/* Packing of points into tiles (project/dense/tile.h): one pass over the points. */
#include "cuda/project/dense/tile.h"

#include "cuda/project/dense/scale.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { THREADS = 256 };

static __device__ __forceinline__ float as_float(float x)
{
    return x;
}
static __device__ __forceinline__ float as_float(__half x)
{
    return __half2float(x);
}
static __device__ __forceinline__ float as_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
template <typename T> static __device__ __forceinline__ float as_float(T x)
{
    return (float)x;
}

struct pack_args {
    gcu_points x;
    int64_t point, points;
    int64_t col;
    int64_t blocks; /* K-blocks */
    uint8_t *tiles;
    bool points_first; /* consecutive threads take consecutive points */
    gcu_tile_order order;
};

template <typename T, int POINTS, bool SPLIT, bool SCALED>
static __global__ void __launch_bounds__(THREADS) pack(const pack_args args)
{
    constexpr int LD = POINTS + 4; /* keeps the transposing reads below off common banks */
    __shared__ float block[GCU_KBLOCK * LD];
    __shared__ const T *base[POINTS];
    __shared__ int low[POINTS], high[POINTS];
    __shared__ float2 scale[POINTS]; /* two factors of it */
    const int64_t tile = blockIdx.x, group = tile / args.blocks, kblock = tile % args.blocks;
    const int64_t first_col = args.col + kblock * GCU_KBLOCK;
    const int tid = threadIdx.x;
    const gcu_points &x = args.x;
    if (tid < POINTS) {
        const int64_t v = group * POINTS + tid;
        base[tid] = nullptr;
        low[tid] = high[tid] = 0;
        if (v < args.points) {
            const int64_t b = (args.point + v) / x.n, i = (args.point + v) % x.n;
            int64_t from = x.first - b * x.block_cols, to = x.end - b * x.block_cols;
            from = (from > 0 ? from : 0) - first_col;
            to = (to < x.block_cols ? to : x.block_cols) - first_col;
            low[tid] = (int)(from < 0 ? 0 : from > GCU_KBLOCK ? GCU_KBLOCK : from);
            high[tid] = (int)(to < 0 ? 0 : to > GCU_KBLOCK ? GCU_KBLOCK : to);
            base[tid] = static_cast<const T *>(x.data) + i * x.row_stride + b * x.block_stride +
                        first_col * x.col_stride;
        }
    }
    __syncthreads();
    int nonzero = 0;
    const auto load = [&](int p, int c, const T *from, int first, int end) {
        const float value = c >= first && c < end ? as_float(from[c * x.col_stride]) : 0.0f;
        block[c * LD + p] = value;
        nonzero |= value != 0.0f;
    };
    if (args.points_first) {
        const int p = tid % POINTS, first = low[p], end = high[p];
        const T *from = base[p];
#pragma unroll 16
        for (int c = tid / POINTS; c < GCU_KBLOCK; c += THREADS / POINTS)
            load(p, c, from, first, end);
    } else {
        const int c = tid % GCU_KBLOCK;
#pragma unroll 8
        for (int p = tid / GCU_KBLOCK; p < POINTS; p += THREADS / GCU_KBLOCK)
            load(p, c, base[p], low[p], high[p]);
    }
    nonzero = __syncthreads_or(nonzero);

    constexpr int ROWS = gcu_tile_rows(POINTS, SPLIT);
    uint8_t *out = args.tiles + tile * gcu_tile_stride(POINTS, SPLIT);
    float *scales = reinterpret_cast<float *>(out + ROWS * 2 * GCU_KBLOCK);
    if (SCALED) {
        /* THREADS / POINTS threads share a point */
        constexpr int SHARE = THREADS / POINTS < 32 ? THREADS / POINTS : 32;
        if (tid < SHARE * POINTS) {
            const int p = tid / SHARE;
            float most = 0.0f;
            for (int c = tid % SHARE; c < GCU_KBLOCK; c += SHARE) {
                const float a = fabsf(block[c * LD + p]);
                most = a > most && a <= 0x1.fffffep127f ? a : most;
            }
#pragma unroll
            for (int step = SHARE / 2; step > 0; step /= 2)
                most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFu, most, step, SHARE));
            if (tid % SHARE == 0) {
                const int s = gcu_scale_of(most, args.order == GCU_TILE_SUMS ? 13 : 14, 138);
                scale[p] = make_float2(gcu_power(s / 2), gcu_power(s - s / 2));
                scales[p] = gcu_power(-s);
            }
        }
        __syncthreads();
    } else if (tid < POINTS) {
        scales[tid] = 1.0f;
    }
    if (tid < 4) reinterpret_cast<int *>(scales + POINTS)[tid] = nonzero;

    for (int at = tid; at < POINTS * 16; at += THREADS) {
        const int m = at % 16, p = at / 16;
        const float2 factors = SCALED ? scale[p] : make_float2(1.0f, 1.0f);
        __half2 high_part[4], low_part[4];
#pragma unroll
        for (int q = 0; q < 4; q++) {
            int c0 = 32 * q + (args.order == GCU_TILE_SIGNS ? m ^ 8 : 2 * m);
            int c1 = c0 + (args.order == GCU_TILE_SIGNS ? 16 : 1);
            if (args.order == GCU_TILE_SUMS) {
                c0 = 64 * (m % 2) + 32 * (q / 2) + 8 + m / 4 + 4 * (m / 2 % 2) + 16 * (q % 2);
                c1 = c0 - 8;
            }
            float a = block[c0 * LD + p], b = block[c1 * LD + p];
            if (SCALED) { /* exactly but for results below the least fp32 number */
                a = a * factors.x * factors.y;
                b = b * factors.x * factors.y;
            }
            if (args.order == GCU_TILE_SUMS) {
                const float both = a + b;
                b = a - b;
                a = both;
            }
            const __half2 h = __floats2half2_rn(a, b);
            high_part[q] = h;
            if (SPLIT) { /* infinities have no low part */
                const float ra = isfinite(a) ? (a - __low2float(h)) * 2048.0f : 0.0f;
                const float rb = isfinite(b) ? (b - __high2float(h)) * 2048.0f : 0.0f;
                low_part[q] = __floats2half2_rn(ra, rb);
            }
        }
        const int panel = m / 8, chunk = m % 8;
        uint8_t *to = out + panel * (ROWS * 128);
        *reinterpret_cast<uint4 *>(to + p * 128 + ((chunk ^ (p & 7)) * 16)) =
            *reinterpret_cast<uint4 *>(high_part);
        if (SPLIT) {
            const int r = POINTS + p;
            *reinterpret_cast<uint4 *>(to + r * 128 + ((chunk ^ (r & 7)) * 16)) =
                *reinterpret_cast<uint4 *>(low_part);
        }
    }
}

bool gcu_tile_split(gnomon_dtype dtype)
{
    return dtype == GNOMON_F32 || dtype == GNOMON_I16 || dtype == GNOMON_U16;
}

template <typename T, bool SPLIT, bool SCALED>
static cudaError_t launch(const pack_args &args, int points, int64_t tiles, cudaStream_t stream)
{
    const unsigned grid = (unsigned)tiles;
    switch (points) {
    case 8:
        pack<T, 8, SPLIT, SCALED><<<grid, THREADS, 0, stream>>>(args);
        break;
    case 16:
        pack<T, 16, SPLIT, SCALED><<<grid, THREADS, 0, stream>>>(args);
        break;
    default:
        pack<T, 32, SPLIT, SCALED><<<grid, THREADS, 0, stream>>>(args);
        break;
    }
    return cudaGetLastError();
}

cudaError_t gcu_tile_pack(const gcu_points *x, gcu_tile_shape shape, int64_t point, int64_t points,
                          int64_t col, int64_t blocks, void *tiles, cudaStream_t stream)
{
    const int64_t groups = (points + shape.points - 1) / shape.points;
    pack_args args;
    args.x = *x;
    args.point = point;
    args.points = points;
    args.col = col;
    args.blocks = blocks;
    args.tiles = static_cast<uint8_t *>(tiles);
    args.points_first = (x->row_stride < 0 ? -x->row_stride : x->row_stride) <
                        (x->col_stride < 0 ? -x->col_stride : x->col_stride);
    args.order = shape.order;
    const int64_t count = groups * blocks;
    switch (x->dtype) {
    case GNOMON_F32:
        return launch<float, true, true>(args, shape.points, count, stream);
    case GNOMON_F16:
        return launch<__half, false, false>(args, shape.points, count, stream);
    case GNOMON_BF16:
        return launch<__nv_bfloat16, false, true>(args, shape.points, count, stream);
    case GNOMON_I8:
        return launch<int8_t, false, false>(args, shape.points, count, stream);
    case GNOMON_U8:
        return launch<uint8_t, false, false>(args, shape.points, count, stream);
    case GNOMON_I16:
        return launch<int16_t, true, true>(args, shape.points, count, stream);
    case GNOMON_U16:
        return launch<uint16_t, true, true>(args, shape.points, count, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
