/* Products of two fp32 matrices, the second of at most 32 columns and 512 rows, on Hopper: A is
 * read once and C is written, and nothing else takes time. B is cut into halves by every block of
 * threads for itself, into its shared memory, where it stays; blocks of 128 rows of A come one
 * after the other, a warp multiplies 16 rows. A warp whose sums are not all finite computes them
 * again as plain chains. */
#include "cuda/gemm/skinny.cuh"
#include "cuda/runtime/mma.cuh"

namespace
{

enum {
    THREADS = (GEMM_SKINNY_WARPS + 1) * 32,
    MOST_COLUMNS = 32,
    MOST_K = 512,
    MOST_STAGES = 6,
    LEAST_ROWS = 1 << 14 /* fewer keep the others' blocks as busy */
};

struct three {
    gcu_gemm_launch l;
    int items, stages; /* blocks of rows */
};

/* B: [chunk] of high halves, then low ones, in the order of gemm_skinny_place; then the columns'
 * scales. */
template <int N> struct shape {
    static constexpr int halves = N * 2 * GCU_GEMM_CHUNK; /* bytes */
    static constexpr int bytes = 2 * halves + N * 4;      /* of a chunk */
};

template <int N, bool ALONG_M>
__device__ __forceinline__ void cut(const gcu_gemm_launch &l, uint8_t *b)
{
    const float *from = static_cast<const float *>(l.b);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    for (int at = warp; at < (int)l.chunks * N; at += THREADS / 32) {
        const int chunk = at / N, column = at % N;
        const int64_t k = (int64_t)chunk * GCU_GEMM_CHUNK + 2 * lane;
        const bool there = column < l.n;
        const float x = there && k < l.k ? from[k * l.b_row + column * l.b_col] : 0.0f;
        const float y = there && k + 1 < l.k ? from[(k + 1) * l.b_row + column * l.b_col] : 0.0f;
        float largest = fmaxf(fabsf(x), fabsf(y));
#pragma unroll
        for (int step = 1; step < 32; step *= 2)
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
        const gcu_gemm_scale s = gcu_gemm_scale_of(largest);
        uint8_t *const to = b + chunk * shape<N>::bytes;
        uint32_t high, low;
        gcu_gemm_split<true>(x * s.up, y * s.up, &high, &low);
        const int place = gemm_skinny_place<N, ALONG_M>(lane, column);
        reinterpret_cast<uint32_t *>(to)[place] = high;
        reinterpret_cast<uint32_t *>(to + shape<N>::halves)[place] = low;
        if (lane == 0) reinterpret_cast<float *>(to + 2 * shape<N>::halves)[column] = s.down;
    }
}

/* total += a chunk's part of A, x, times that of B. */
template <int N>
__device__ __forceinline__ void multiply_chunk(float *x, const uint8_t *b, int lane,
                                               float (*total)[4])
{
    constexpr int TILES = N / 8;
    const uint4 *const highs = reinterpret_cast<const uint4 *>(b) + lane;
    const uint4 *const lows = reinterpret_cast<const uint4 *>(b + shape<N>::halves) + lane;
    const float2 *const scales =
        reinterpret_cast<const float2 *>(b + 2 * shape<N>::halves) + lane % 4;
    bool more;
    do {
        gcu_gemm_scale scale[2];
        uint32_t high[4][4], low[4][4];
        float sum[TILES][4] = {}, rest[TILES][4] = {};
        gcu_gemm_scales<4>(x, scale);
#pragma unroll
        for (int e = 0; e < 16; e++) /* 4 s + 2 h + r */
            gcu_gemm_split<true>(x[2 * e] * scale[e % 2].up, x[2 * e + 1] * scale[e % 2].up,
                                 &high[e / 4][e % 4], &low[e / 4][e % 4]);
#pragma unroll
        for (int s = 0; s < 4; s++)
#pragma unroll
            for (int two = 0; two < TILES / 2; two++) {
                const int at = (s * (TILES / 2) + two) * 32;
                const uint4 v = highs[at], w = lows[at];
                gcu_mma(rest[2 * two], low[s], v.x, v.y);
                gcu_mma(rest[2 * two + 1], low[s], v.z, v.w);
                gcu_mma(sum[2 * two], high[s], v.x, v.y);
                gcu_mma(sum[2 * two + 1], high[s], v.z, v.w);
                gcu_mma(rest[2 * two], high[s], w.x, w.y);
                gcu_mma(rest[2 * two + 1], high[s], w.z, w.w);
            }
        more = gemm_skinny_small<true>(high, x, scale);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const float2 column = scales[4 * t];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float value =
                    fmaf(rest[t][e], 0x1p-11f, sum[t][e]) * (e % 2 ? column.y : column.x);
                total[t][e] = fmaf(value, scale[e / 2].down, total[t][e]);
            }
        }
        if (more) /* what is left takes the numbers' place */
#pragma unroll
            for (int e = 0; e < 32; e++)
                x[e] = gcu_gemm_rest<true>(x[e], scale[e / 2 % 2]);
    } while (more);
}

template <int TILES>
__device__ __forceinline__ void store(const gcu_gemm_launch &l, float (*total)[4], int64_t row,
                                      int q)
{
    const bool two = l.c_col == 1 && l.c_row % 2 == 0 && (uintptr_t)l.c % 8 == 0 && !l.c64 &&
                     l.alpha == 1.0 && l.beta == 0.0;
    bool odd = false;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            odd |= !isfinite(total[t][e]);
    odd = __any_sync(~0u, odd);
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
            const int64_t i = row + e / 2 * 8, j = 8 * t + 2 * q;
            if (i >= l.m || j >= l.n) continue;
            if (odd) {
                total[t][e] = gemm_skinny_chain(l, i, j);
                if (j + 1 < l.n) total[t][e + 1] = gemm_skinny_chain(l, i, j + 1);
            }
            if (two && j + 1 < l.n) {
                *reinterpret_cast<float2 *>(l.c + i * l.c_row + j) =
                    make_float2(total[t][e], total[t][e + 1]);
            } else {
                gcu_gemm_put(l, i, j, total[t][e]);
                if (j + 1 < l.n) gcu_gemm_put(l, i, j + 1, total[t][e + 1]);
            }
        }
}

template <int N, bool ALONG_M>
__device__ __forceinline__ void multiply_all(const three &a, const uint8_t *b, uint32_t stages,
                                             uint32_t full, uint32_t empty)
{
    constexpr int TILES = N / 8;
    const gcu_gemm_launch &l = a.l;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    /* along k neighbours take rows 4 apart, whose parts lie in other banks */
    const int g = ALONG_M ? lane / 4 : lane / 8 + lane / 4 % 2 * 4, q = lane % 4;
    const gemm_reader<GCU_GEMM_CHUNK, ALONG_M> reader(warp * 16 + g, q);
    int stage = 0;
    uint32_t phase = 0;
    for (int item = blockIdx.x; item < a.items; item += gridDim.x) {
        float total[TILES][4] = {};
        for (int chunk = 0; chunk < (int)l.chunks; chunk++) {
            float x[32];
            gcu_barrier_wait(full + 8 * stage, phase);
            reader.load(x, stages + stage * GEMM_SKINNY_BYTES);
            __syncwarp();
            if (lane == 0) gcu_barrier_arrive(empty + 8 * stage);
            multiply_chunk<N>(x, b + chunk * shape<N>::bytes, lane, total);
            if (++stage == a.stages) stage = 0, phase ^= 1;
        }
        store<TILES>(l, total, (int64_t)item * GEMM_M + warp * 16 + g, q);
    }
}

template <bool ALONG_M>
__device__ __forceinline__ void fetch_all(const three &a, const CUtensorMap *map, uint32_t stages,
                                          uint32_t full, uint32_t empty)
{
    int stage = 0;
    uint32_t phase = 1; /* a stage never used is empty */
    for (int item = blockIdx.x; item < a.items; item += gridDim.x)
        for (int chunk = 0; chunk < (int)a.l.chunks; chunk++) {
            gcu_barrier_wait(empty + 8 * stage, phase);
            gemm_skinny_fetch<ALONG_M>(a.l, map, item * GEMM_M, chunk * GCU_GEMM_CHUNK,
                                       stages + stage * GEMM_SKINNY_BYTES, full + 8 * stage);
            if (++stage == a.stages) stage = 0, phase ^= 1;
        }
}

template <int N, bool ALONG_M>
__global__ void __launch_bounds__(THREADS, 1)
    three_kernel(const __grid_constant__ three a, const __grid_constant__ CUtensorMap map)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * MOST_STAGES];
    const uint32_t full = gcu_shared_address(barriers);
    const uint32_t empty = full + 8 * MOST_STAGES;
    uint8_t *const room = raw + (-(uint32_t)__cvta_generic_to_shared(raw) & 1023u);
    const uint32_t stages = gcu_shared_address(room);
    uint8_t *const b = room + a.stages * GEMM_SKINNY_BYTES;
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, a.stages, 1, GEMM_SKINNY_WARPS);
    cut<N, ALONG_M>(a.l, b);
    __syncthreads();
    if (threadIdx.x < GEMM_SKINNY_WARPS * 32)
        multiply_all<N, ALONG_M>(a, b, stages, full, empty);
    else if (threadIdx.x == GEMM_SKINNY_WARPS * 32)
        fetch_all<ALONG_M>(a, &map, stages, full, empty);
#endif
}

template <int N, bool ALONG_M>
cudaError_t launch(const three &of, const CUtensorMap &map, const gcu_gpu *gpu, cudaStream_t stream)
{
    const auto kernel = three_kernel<N, ALONG_M>;
    const int b = (int)of.l.chunks * shape<N>::bytes, fit = (224 * 1024 - b) / GEMM_SKINNY_BYTES;
    three a = of;
    a.stages = fit < MOST_STAGES ? fit : MOST_STAGES;
    const int bytes = 1024 + a.stages * GEMM_SKINNY_BYTES + b;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    kernel<<<(unsigned)(a.items < gpu->sms ? a.items : gpu->sms), THREADS, bytes, stream>>>(a, map);
    return cudaGetLastError();
}

template <int N>
cudaError_t launch_along(const three &a, const CUtensorMap &map, const gcu_gpu *gpu,
                         cudaStream_t stream)
{
    return a.l.a_col == 1 ? launch<N, false>(a, map, gpu, stream)
                          : launch<N, true>(a, map, gpu, stream);
}

} // namespace

bool gcu_gemm_is_skinny_three(const gcu_gemm_launch &l, int64_t whole_m, int64_t whole_n,
                              const gcu_gpu *gpu)
{
    CUtensorMap map;
    return gpu->major == 9 && whole_n <= MOST_COLUMNS && l.k <= MOST_K && whole_m >= LEAST_ROWS &&
           !l.a_run && gemm_encode(l, &map);
}

cudaError_t gcu_gemm_skinny_three(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    CUtensorMap map;
    if (!gemm_encode(l, &map)) return cudaErrorInvalidValue;
    const three a = {l, (int)((l.m + GEMM_M - 1) / GEMM_M), 0};
    return l.n <= 16 ? launch_along<16>(a, map, gpu, stream)
                     : launch_along<32>(a, map, gpu, stream);
}
