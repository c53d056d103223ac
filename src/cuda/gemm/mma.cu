/* Products by mma.sync, for GPUs from Ampere on, and on Hopper for strides that its own way does
 * not take.
 *
 * A block of threads computes 128 rows and 64 columns of C; a warp 32 and 32. Chunks of 64 of k
 * come to shared memory by cp.async, two deep where they fit. Each warp cuts its rows of A into
 * halves in registers. */
#include "cuda/gemm/launch.h"
#include "cuda/gemm/split.cuh"
#include "cuda/runtime/mma.cuh"

namespace
{

enum { THREADS = 256, M = 128, N = 64, PITCH = GCU_GEMM_CHUNK + 8, MATRIX = M * PITCH * 4 };

/* How A is read: 16 bytes along k, or single numbers along k or along m. */
enum { BY_16, ALONG_K, ALONG_M };

struct shape {
    int reads, stages, stage_bytes;
    int64_t tiles, tile_cols;
};

__device__ __forceinline__ void fetch_a(const gcu_gemm_launch &l, int reads, uint32_t to,
                                        int64_t row, int64_t k)
{
    const int t = (int)threadIdx.x;
    if (reads == BY_16) {
#pragma unroll
        for (int i = 0; i < M * GCU_GEMM_CHUNK / 4 / THREADS; i++) {
            const int at = i * THREADS + t, r = at / 16, q = at % 16 * 4;
            const int64_t left = row + r < l.m ? l.k - k - q : 0;
            const int bytes = left <= 0 ? 0 : left < 4 ? (int)left * 4 : 16;
            gcu_copy16(to + r * (PITCH * 4) + q * 4,
                       bytes ? l.a + (row + r) * l.a_row + k + q : l.a, bytes);
        }
        return;
    }
#pragma unroll 8
    for (int i = 0; i < M * GCU_GEMM_CHUNK / THREADS; i++) {
        const int at = i * THREADS + t;
        const int r = reads == ALONG_K ? at / GCU_GEMM_CHUNK : at % M;
        const int q = reads == ALONG_K ? at % GCU_GEMM_CHUNK : at / M;
        const bool there = row + r < l.m && k + q < l.k;
        gcu_copy4(to + r * (PITCH * 4) + q * 4,
                  there ? l.a + (row + r) * l.a_row + (k + q) * l.a_col : l.a, there ? 4 : 0);
    }
}

template <bool BOTH>
__device__ __forceinline__ void fetch_b(const gcu_gemm_launch &l, uint32_t to, int64_t col,
                                        int64_t chunk)
{
    const int t = (int)threadIdx.x;
    const int64_t from = (chunk * l.cols + col) * (2 * GCU_GEMM_CHUNK);
#pragma unroll
    for (int i = 0; i < N * 8 / THREADS; i++) {
        const int at = (i * THREADS + t) * 16;
        gcu_copy16(to + at, l.packed + from + at, 16);
        if (BOTH) gcu_copy16(to + N * 128 + at, l.packed_low + from + at, 16);
    }
    if (BOTH && t < N / 4)
        gcu_copy16(to + 2 * N * 128 + t * 16, l.scales + chunk * l.cols + col + t * 4, 16);
}

__device__ __forceinline__ uint32_t tf32(float x)
{
    uint32_t t;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(t) : "f"(x));
    return t;
}

/* Halves 32 * pair ... + 31 of column 8 * group + ..., as two fragments. */
__device__ __forceinline__ void load_b(uint32_t *b, uint32_t columns, int group, int pair)
{
    const int lane = (int)threadIdx.x % 32, column = 8 * group + lane % 8;
    const uint32_t at = columns + column * 128 + (((4 * pair + lane / 8) ^ (column & 7)) << 4);
    gcu_load_4_matrices(b, at);
}

/* x: the thread's 32 numbers of 16 rows and 64 of k: x[8 * s + 4 * h + 2 * r + e] is row g + 8 r, k
 * 16 s + 8 h + 2 q + e. Adds their products to total[column group][4]. */
template <gcu_gemm_form FORM, bool BOTH>
__device__ __forceinline__ void multiply_rows(float (*total)[4], float *x, uint32_t columns,
                                              uint32_t columns_low, const float2 *scales)
{
    constexpr bool APART = FORM == GCU_GEMM_FP16 || FORM == GCU_GEMM_THREE;
    constexpr bool SCALED = FORM == GCU_GEMM_SCALED || FORM == GCU_GEMM_THREE;
    for (;;) {
        gcu_gemm_scale scale[2] = {{1.0f, 1.0f}, {1.0f, 1.0f}};
        bool more = false;
        if (SCALED) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float largest = 0.0f;
                uint32_t least = ~0u;
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    const float v = x[i / 2 * 4 + 2 * r + i % 2];
                    largest = fmaxf(largest, fabsf(v));
                    least = gcu_gemm_least_of(least, v);
                }
                largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
                largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
                scale[r] = gcu_gemm_scale_of(largest);
                more |= gcu_gemm_too_small<APART>(least, scale[r]);
            }
            more = __any_sync(~0u, more);
        }
        uint32_t high[FORM == GCU_GEMM_TF32 ? 8 : 4][4], low[FORM == GCU_GEMM_TF32 ? 8 : 4][4];
        if (FORM == GCU_GEMM_TF32) {
            /* slots q and q + 4 of 8 of k are a thread's two neighbours */
#pragma unroll
            for (int i = 0; i < 32; i++) {
                const float v = x[i / 4 * 4 + 2 * (i % 2) + i / 2 % 2];
                high[i / 4][i % 4] = tf32(v);
                low[i / 4][i % 4] = tf32(v - __uint_as_float(high[i / 4][i % 4]));
            }
        } else {
#pragma unroll
            for (int i = 0; i < 16; i++) /* 4 s + 2 h + r */
                gcu_gemm_split<APART>(x[2 * i] * scale[i % 2].up, x[2 * i + 1] * scale[i % 2].up,
                                      &high[i / 4][i % 4], &low[i / 4][i % 4]);
        }
        if (SCALED && more)
#pragma unroll
            for (int i = 0; i < 32; i++)
                x[i] = gcu_gemm_rest<APART>(x[i], scale[i / 2 % 2]);
#pragma unroll
        for (int n = 0; n < 4; n++) {
            float sum[4] = {0, 0, 0, 0}, apart[4] = {0, 0, 0, 0};
            uint32_t b[2][4], b_low[2][4];
#pragma unroll
            for (int p = 0; p < 2; p++) {
                load_b(b[p], columns, n, p);
                if (BOTH) load_b(b_low[p], columns_low, n, p);
            }
            if (FORM == GCU_GEMM_TF32) {
#pragma unroll
                for (int part = 1; part >= 0; part--)
#pragma unroll
                    for (int s = 0; s < 8; s++) {
                        const uint32_t pair = b[s / 4][s % 4];
                        const float2 f = __half22float2(*reinterpret_cast<const __half2 *>(&pair));
                        gcu_mma_tf32(sum, part ? low[s] : high[s], __float_as_uint(f.x),
                                     __float_as_uint(f.y));
                        if (!BOTH || part) continue;
                        const uint32_t rest = b_low[s / 4][s % 4];
                        const float2 r = __half22float2(*reinterpret_cast<const __half2 *>(&rest));
                        gcu_mma_tf32(apart, high[s], __float_as_uint(r.x), __float_as_uint(r.y));
                    }
            } else {
                /* the small products first, so that they are not cut off */
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    gcu_mma(APART ? apart : sum, low[s], b[s / 2][s % 2 * 2],
                            b[s / 2][s % 2 * 2 + 1]);
                    if (BOTH)
                        gcu_mma(apart, high[s], b_low[s / 2][s % 2 * 2],
                                b_low[s / 2][s % 2 * 2 + 1]);
                }
#pragma unroll
                for (int s = 0; s < 4; s++)
                    gcu_mma(sum, high[s], b[s / 2][s % 2 * 2], b[s / 2][s % 2 * 2 + 1]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float value = APART || BOTH ? fmaf(apart[i], 0x1p-11f, sum[i]) : sum[i];
                if (BOTH) value *= i % 2 ? scales[n].y : scales[n].x;
                total[n][i] =
                    SCALED ? fmaf(value, scale[i / 2].down, total[n][i]) : total[n][i] + value;
            }
        }
        if (!SCALED || !more) return;
    }
}

template <gcu_gemm_form FORM, bool BOTH>
__global__ void __launch_bounds__(THREADS, 1)
    product(const __grid_constant__ gcu_gemm_launch l, const __grid_constant__ shape s)
{
    extern __shared__ __align__(1024) uint8_t raw[];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int g = lane / 4, q = lane % 4, warp_row = warp / 2 * 32, warp_col = warp % 2 * 32;
    const uint32_t shared = gcu_shared_address(raw);
    for (int64_t tile = blockIdx.x; tile < s.tiles * l.splits; tile += gridDim.x) {
        const int64_t split = tile / s.tiles, row = tile % s.tiles / s.tile_cols * M;
        const int64_t col = tile % s.tile_cols * N;
        const int64_t begin = split * l.split_chunks;
        const int64_t end = min(begin + l.split_chunks, l.chunks);
        const auto fetch = [&](int64_t chunk) {
            if (chunk < end) {
                const uint32_t to = shared + (uint32_t)((chunk - begin) % s.stages) * s.stage_bytes;
                fetch_a(l, s.reads, to, row, chunk * GCU_GEMM_CHUNK);
                fetch_b<BOTH>(l, to + MATRIX, col, chunk);
            }
            gcu_copies_commit();
        };
        float total[2][4][4];
#pragma unroll
        for (int i = 0; i < 32; i++)
            total[i / 16][i / 4 % 4][i % 4] = 0.0f;
        if (s.stages == 2) fetch(begin);
        for (int64_t chunk = begin; chunk < end; chunk++) {
            fetch(chunk + s.stages - 1);
            if (s.stages == 2)
                gcu_copies_wait<1>();
            else
                gcu_copies_wait<0>();
            __syncthreads();
            const int stage = (int)((chunk - begin) % s.stages) * s.stage_bytes;
            const uint32_t columns = shared + stage + MATRIX + warp_col * 128;
            float2 scales[4];
            if (BOTH)
#pragma unroll
                for (int n = 0; n < 4; n++)
                    scales[n] = *reinterpret_cast<const float2 *>(
                        raw + stage + MATRIX + 2 * N * 128 + (warp_col + 8 * n + 2 * q) * 4);
#pragma unroll
            for (int t = 0; t < 2; t++) {
                float x[32];
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    const float2 two = *reinterpret_cast<const float2 *>(
                        raw + stage +
                        ((warp_row + 16 * t + g + i % 2 * 8) * PITCH + i / 2 * 8 + 2 * q) * 4);
                    x[2 * i] = two.x;
                    x[2 * i + 1] = two.y;
                }
                multiply_rows<FORM, BOTH>(total[t], x, columns, columns + N * 128, scales);
            }
            __syncthreads();
        }
#pragma unroll
        for (int t = 0; t < 2; t++) {
            const int64_t i0 = row + warp_row + 16 * t, j0 = col + warp_col;
            bool odd = false;
#pragma unroll
            for (int e = 0; e < 16; e++)
                odd |= !isfinite(total[t][e / 4][e % 4]);
            if (l.splits == 1 && __any_sync(~0u, odd)) {
                if (lane == 0 && i0 < l.m && j0 < l.n)
                    l.marks[i0 / GCU_GEMM_MARK_ROWS * l.mark_cols + j0 / GCU_GEMM_MARK_COLS] = 1;
                continue;
            }
#pragma unroll
            for (int e = 0; e < 16; e++) {
                const int64_t i = i0 + g + e % 4 / 2 * 8, j = j0 + e / 4 * 8 + 2 * q + e % 2;
                if (i >= l.m || j >= l.n) continue;
                const float sum = total[t][e / 4][e % 4];
                if (l.splits == 1)
                    gcu_gemm_put(l, i, j, sum);
                else
                    l.parts[(split * l.m + i) * l.n + j] = sum;
            }
        }
    }
}

template <gcu_gemm_form FORM, bool BOTH>
cudaError_t launch(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    shape s;
    const bool whole = l.a_col == 1 && l.a_row % 4 == 0 && (uintptr_t)l.a % 16 == 0;
    s.reads = whole ? BY_16 : llabs(l.a_col) <= llabs(l.a_row) ? ALONG_K : ALONG_M;
    s.stage_bytes = MATRIX + N * 128 * (BOTH ? 2 : 1) + (BOTH ? 1024 : 0);
    s.stages = 2 * (size_t)s.stage_bytes <= gpu->smem_bytes ? 2 : 1;
    s.tile_cols = (l.n + N - 1) / N;
    s.tiles = (l.m + M - 1) / M * s.tile_cols;
    const int bytes = s.stages * s.stage_bytes;
    const cudaError_t error = cudaFuncSetAttribute(
        product<FORM, BOTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    const int64_t blocks = s.tiles * l.splits, most = INT32_MAX;
    product<FORM, BOTH>
        <<<(unsigned)(blocks < most ? blocks : most), THREADS, bytes, stream>>>(l, s);
    return cudaGetLastError();
}

} // namespace

cudaError_t gcu_gemm_mma(const gcu_gemm_launch &l, gcu_gemm_form form, const gcu_gpu *gpu,
                         cudaStream_t stream)
{
    switch (form) {
    case GCU_GEMM_SCALED:
        return launch<GCU_GEMM_SCALED, false>(l, gpu, stream);
    case GCU_GEMM_FP16:
        return launch<GCU_GEMM_FP16, false>(l, gpu, stream);
    case GCU_GEMM_TF32:
        return l.b_dtype == GNOMON_F32 ? launch<GCU_GEMM_TF32, true>(l, gpu, stream)
                                       : launch<GCU_GEMM_TF32, false>(l, gpu, stream);
    default:
        return launch<GCU_GEMM_THREE, true>(l, gpu, stream);
    }
}
