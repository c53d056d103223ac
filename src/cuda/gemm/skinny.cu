/* Products with few of an operator's rows, up to 32, on Hopper: what the matrix units have to do is
 * nothing beside reading A, and an operator that is written and read again would be as much as a
 * quarter of A or a half. So its entries are made where they are used, and never stored.
 *
 * A block of threads has 128 rows and walks along k, 64 at a time: four warps fetch A's chunks
 * (gemm/hopper.cuh) and make the operator's, and eight multiply, 16 rows each. Rows and splits of k
 * are items, about 264, whatever the GPU; their sums are added in the order of k.
 *
 * The floor of a chunk, in cycles of one of 132 multiprocessors: 32 KB at 4.6 TB/s take 1700. The
 * eight warps issue 350 instructions each to scale A and cut it into halves, 700 for each of the
 * four schedulers with two of them, and the makers 120 for each Philox call of eight entries, one
 * or two a chunk. */
#include "base/arithmetic.h"
#include "cuda/gemm/made.cuh"
#include "cuda/gemm/skinny.cuh"

namespace
{

enum {
    MAKING = 4, /* warps */
    THREADS = (GEMM_SKINNY_WARPS + MAKING) * 32,
    STAGES = 4,
    ITEMS = 264,       /* twice 132 */
    MOST_COLUMNS = 32, /* 64 take as long as when they are packed, and longer where m is large */
    LEAST_CHUNKS = 8,
    TABLE_BYTES = 1 << 16,
    ADD_THREADS = 256,
    ADD_WAYS = 8 /* that share out an element's parts */
};

template <int N> struct shape {
    static constexpr int b_bytes = N * 2 * GCU_GEMM_CHUNK;
    static constexpr int shared = 1024 + STAGES * (GEMM_SKINNY_BYTES + b_bytes);
};

/* Halves k and k + 1 of a column lie as in gemm/launch.h; 16 columns on it is 2048 bytes more. */
template <bool ALONG_M> __device__ __forceinline__ int place(int pair, int column)
{
    const int k = 2 * pair;
    const int part = ALONG_M ? k / 8 : k / 16 * 2 + k % 4 / 2, q = ALONG_M ? k % 8 / 2 : k % 16 / 4;
    return column * (2 * GCU_GEMM_CHUNK) + ((part ^ (column & 7)) << 4) + q * 4;
}

template <int N, gcu_gemm_kind KIND, bool ALONG_M>
__device__ __forceinline__ void make_all(const gemm_skinny_made &a, const CUtensorMap *map,
                                         uint32_t stages, const uint16_t *table, uint32_t there,
                                         uint8_t *b, uint32_t full, uint32_t empty)
{
    constexpr int EACH =
        N * GCU_GEMM_CHUNK / 8 / (MAKING * 32); /* calls, of 4 columns and 2 of k */
    const int t = (int)threadIdx.x - GEMM_SKINNY_WARPS * 32;
    const int group = t % 4, pair = t / 4; /* and further groups of columns */
    int stage = 0, at[4];
    uint32_t phase = 1; /* a stage never used is empty */
    bool ready = KIND != GCU_GEMM_HALF_NORMAL;
#pragma unroll
    for (int r = 0; r < 4; r++)
        at[r] = place<ALONG_M>(pair, 4 * group + r);
    for (int number = blockIdx.x; number < a.items; number += gridDim.x) {
        const gemm_skinny_walk w = gemm_skinny_walk_of(a, number);
        uint64_t k = (uint64_t)w.begin * GCU_GEMM_CHUNK + 2 * pair;
        for (int left = w.chunks; left > 0; left--, k += GCU_GEMM_CHUNK) {
            uint32_t out[EACH][4];
            gcu_barrier_wait(empty + 8 * stage, phase);
            if (t == 0)
                gemm_skinny_fetch<ALONG_M>(a.l, map, (int)w.row, (int)k,
                                           stages + stage * GEMM_SKINNY_BYTES, full + 8 * stage);
            if (!ready) gcu_barrier_wait(there, 0);
            ready = true;
            uint32_t columns[EACH];
            uint64_t at_k[EACH];
            uint4 signs[EACH] = {};
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                columns[e] = (uint32_t)(group + 4 * e);
                at_k[e] = k;
                if (KIND == GCU_GEMM_SIGNS) signs[e] = gcu_call(a.m.stream, columns[e], k >> 5);
            }
            gcu_gemm_halves<KIND, EACH>(a.m, table, columns, at_k, signs, out);
            uint8_t *const to = b + stage * shape<N>::b_bytes;
#pragma unroll
            for (int e = 0; e < EACH; e++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    *reinterpret_cast<uint32_t *>(to + at[r] + e * 2048) = out[e][r];
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (t % 32 == 0) gcu_barrier_arrive(full + 8 * stage);
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
    }
}

/* total += a chunk's part of A, x, times the operator's at b. */
template <int N>
__device__ __forceinline__ void multiply_chunk(float *x, uint32_t b, int group, float *total)
{
    const uint32_t columns = gcu_wgmma_descriptor(b);
    bool more;
    do {
        gcu_gemm_scale scale[2];
        uint32_t high[4][4], low[4][4];
        float sum[N / 2];
        gcu_gemm_scales<4>(x, scale);
#pragma unroll
        for (int e = 0; e < 16; e++) /* 4 s + 2 h + r */
            gcu_gemm_split<false>(x[2 * e] * scale[e % 2].up, x[2 * e + 1] * scale[e % 2].up,
                                  &high[e / 4][e % 4], &low[e / 4][e % 4]);
        gcu_wgmma_fence();
        /* the small products first, so that they are not cut off */
#pragma unroll
        for (int s = 0; s < 4; s++)
            gcu_wgmma<N>(sum, low[s], columns + 2 * s, s > 0);
#pragma unroll
        for (int s = 0; s < 4; s++)
            gcu_wgmma<N>(sum, high[s], columns + 2 * s, 1);
        gcu_wgmma_commit();
        more =
            gemm_any(group, gemm_skinny_small<false>(high, x, scale)); /* while they are at work */
        gcu_wgmma_wait<0>();
        gcu_wgmma_fence_operands<N / 2>(sum);
#pragma unroll
        for (int e = 0; e < N / 2; e++)
            total[e] = fmaf(sum[e], scale[e / 2 % 2].down, total[e]);
        if (more) /* what is left takes the numbers' place */
#pragma unroll
            for (int e = 0; e < 32; e++)
                x[e] = gcu_gemm_rest<false>(x[e], scale[e / 2 % 2]);
    } while (more);
}

template <int N, bool ALONG_M>
__device__ __forceinline__ void multiply_all(const gemm_skinny_made &a, uint32_t stages, uint32_t b,
                                             uint32_t full, uint32_t empty)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    /* along k neighbours take rows 4 apart, whose parts lie in other banks */
    const int g = ALONG_M ? lane / 4 : lane / 8 + lane / 4 % 2 * 4, q = lane % 4;
    const gemm_reader<GCU_GEMM_CHUNK, ALONG_M> reader(warp * 16 + g, q);
    const gcu_gemm_launch &l = a.l;
    int stage = 0;
    uint32_t phase = 0;
    for (int number = blockIdx.x; number < a.items; number += gridDim.x) {
        const gemm_skinny_walk w = gemm_skinny_walk_of(a, number);
        float total[N / 2] = {};
        double squares = 0;
        for (int left = w.chunks; left > 0; left--) {
            float x[32];
            gcu_barrier_wait(full + 8 * stage, phase);
            reader.load(x, stages + stage * GEMM_SKINNY_BYTES);
            if (l.squares) {
                float some[4] = {};
#pragma unroll
                for (int e = 0; e < 32; e++)
                    some[e % 4] = fmaf(x[e], x[e], some[e % 4]);
                squares += (double)((some[0] + some[1]) + (some[2] + some[3]));
            }
            multiply_chunk<N>(x, b + stage * shape<N>::b_bytes, warp / 4, total);
            __syncwarp();
            if (lane == 0) gcu_barrier_arrive(empty + 8 * stage);
            if (++stage == STAGES) stage = 0, phase ^= 1;
        }
        const int64_t row = w.row + warp * 16 + g;
#pragma unroll
        for (int e = 0; e < N / 2; e++) {
            const int64_t i = row + e / 2 % 2 * 8, j = e / 4 * 8 + 2 * q + e % 2;
            if (i < l.m && j < l.n) l.parts[(w.split * l.m + i) * l.n + j] = total[e];
        }
        if (!l.squares) continue;
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            squares += __shfl_xor_sync(~0u, squares, step);
        if (lane == 0) l.squares[(int64_t)number * GCU_GEMM_SKINNY_SQUARES + warp] = squares;
    }
}

template <int N, gcu_gemm_kind KIND, bool ALONG_M>
__global__ void __launch_bounds__(THREADS, 1)
    skinny_kernel(const __grid_constant__ gemm_skinny_made a,
                  const __grid_constant__ CUtensorMap map)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ uint8_t raw[];
    __shared__ __align__(8) uint64_t barriers[2 * STAGES + 1];
    const uint32_t full = gcu_shared_address(barriers);
    const uint32_t empty = full + 8 * STAGES, there = empty + 8 * STAGES;
    uint8_t *const room = raw + (-(uint32_t)__cvta_generic_to_shared(raw) & 1023u);
    const uint32_t stages = gcu_shared_address(room);
    uint8_t *const b = room + STAGES * GEMM_SKINNY_BYTES;
    uint16_t *const table = reinterpret_cast<uint16_t *>(b + STAGES * shape<N>::b_bytes);
    const int warp = (int)threadIdx.x / 32;
    if (threadIdx.x == 0) {
        gcu_barrier_init(there, 1);
        gcu_barriers_init(full, empty, STAGES, 1 + MAKING, GEMM_SKINNY_WARPS);
    }
    __syncthreads();
    if (KIND == GCU_GEMM_HALF_NORMAL && threadIdx.x == 0) {
        gcu_barrier_expect(there, TABLE_BYTES);
        gcu_fetch(gcu_shared_address(table), a.m.gaussian16.magnitude, TABLE_BYTES, there);
    }
    if (warp < GEMM_SKINNY_WARPS) {
        gcu_registers_alloc<200>();
        multiply_all<N, ALONG_M>(a, stages, stages + STAGES * GEMM_SKINNY_BYTES, full, empty);
    } else {
        gcu_registers_dealloc<104>();
        make_all<N, KIND, ALONG_M>(a, &map, stages, table, there, b, full, empty);
    }
#endif
}

/* C = the sums over the splits, in their order; the last block of threads adds the squares. */
__global__ void __launch_bounds__(ADD_THREADS)
    add_kernel(const __grid_constant__ gcu_gemm_launch l, double *squares)
{
    __shared__ float some[ADD_WAYS][ADD_THREADS / ADD_WAYS];
    __shared__ double sums[ADD_THREADS];
    const int t = (int)threadIdx.x;
    if (squares && blockIdx.x == gridDim.x - 1) {
        double sum = 0;
        for (int64_t i = t; i < l.squares_count; i += ADD_THREADS)
            sum += l.squares[i];
        sums[t] = sum;
        for (int half = ADD_THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (t < half) sums[t] += sums[t + half];
        }
        if (t == 0) *squares = sums[0];
        return;
    }
    const int way = t / (ADD_THREADS / ADD_WAYS), column = t % (ADD_THREADS / ADD_WAYS);
    const int64_t all = l.m * l.n, each = (l.splits + ADD_WAYS - 1) / ADD_WAYS;
    const int64_t e = (int64_t)blockIdx.x * (ADD_THREADS / ADD_WAYS) + column;
    const int64_t end = min((way + 1) * each, l.splits);
    float sum = 0.0f;
    if (e < all)
#pragma unroll 8
        for (int64_t s = way * each; s < end; s++)
            sum += l.parts[s * all + e];
    some[way][column] = sum;
    __syncthreads();
    if (way > 0 || e >= all) return;
    for (int i = 1; i < ADD_WAYS; i++)
        sum += some[i][column];
    gcu_gemm_put(l, e / l.n, e % l.n, isfinite(sum) ? sum : __int_as_float(0x7fc00000));
}

template <int N, gcu_gemm_kind KIND, bool ALONG_M>
cudaError_t launch(const gemm_skinny_made &a, const CUtensorMap &map, const gcu_gpu *gpu,
                   cudaStream_t stream)
{
    const auto kernel = skinny_kernel<N, KIND, ALONG_M>;
    const int bytes = shape<N>::shared + (KIND == GCU_GEMM_HALF_NORMAL ? TABLE_BYTES : 0);
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    kernel<<<(unsigned)(a.items < gpu->sms ? a.items : gpu->sms), THREADS, bytes, stream>>>(a, map);
    return cudaGetLastError();
}

template <int N, gcu_gemm_kind KIND>
cudaError_t launch_along(const gemm_skinny_made &a, const CUtensorMap &map, const gcu_gpu *gpu,
                         cudaStream_t stream)
{
    return a.l.a_col == 1 ? launch<N, KIND, false>(a, map, gpu, stream)
                          : launch<N, KIND, true>(a, map, gpu, stream);
}

template <int N>
cudaError_t launch_kind(const gemm_skinny_made &a, const CUtensorMap &map, const gcu_gpu *gpu,
                        cudaStream_t stream)
{
    return a.m.kind == GNOMON_RADEMACHER
               ? launch_along<N, GCU_GEMM_SIGNS>(a, map, gpu, stream)
               : launch_along<N, GCU_GEMM_HALF_NORMAL>(a, map, gpu, stream);
}

} // namespace

bool gcu_gemm_is_skinny(const gcu_gemm_launch &l, const gnomon_simple *of, int64_t whole,
                        const gcu_gpu *gpu)
{
    CUtensorMap map;
    /* others take longer to be made than A to be read */
    const bool quick = of->kind == GNOMON_RADEMACHER ||
                       (of->kind == GNOMON_GAUSSIAN && of->precision == GNOMON_F16);
    return gpu->major == 9 && quick && whole <= MOST_COLUMNS && gemm_encode(l, &map) &&
           gnomon_ceil_div(l.m, GEMM_M) <= INT32_MAX / (4 * ITEMS);
}

void gcu_gemm_skinny_split(gcu_gemm_launch *l, int64_t whole_m)
{
    const int64_t wanted = ITEMS / gnomon_ceil_div(whole_m, GEMM_M),
                  most = l->chunks / LEAST_CHUNKS;
    const int64_t splits = wanted < most ? wanted : most;
    l->split_chunks = splits > 1 ? gnomon_ceil_div(l->chunks, splits) : l->chunks;
    l->splits = gnomon_ceil_div(l->chunks, l->split_chunks);
}

cudaError_t gcu_gemm_skinny(const gcu_gemm_launch &l, const gnomon_simple *of, double *squares,
                            const gcu_gpu *gpu, cudaStream_t stream)
{
    CUtensorMap map;
    if (!gemm_encode(l, &map)) return cudaErrorInvalidValue;
    gemm_skinny_made a = {gcu_matrix_of(of, gpu), l, (int)gnomon_ceil_div(l.m, GEMM_M), 0};
    a.items = a.rows * (int)l.splits;
    const cudaError_t error =
        l.n <= 16 ? launch_kind<16>(a, map, gpu, stream) : launch_kind<32>(a, map, gpu, stream);
    if (error != cudaSuccess) return error;
    const int64_t blocks =
        gnomon_ceil_div(l.m * l.n, ADD_THREADS / ADD_WAYS) + (squares != nullptr);
    add_kernel<<<(unsigned)blocks, ADD_THREADS, 0, stream>>>(l, squares);
    return cudaGetLastError();
}
