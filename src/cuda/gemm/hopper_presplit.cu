/* Products on Hopper of an A that was cut into halves beforehand (gemm/presplit.cu): as in
 * gemm/hopper.cuh, but a thread finds its part of the matrix instructions' operand as it is to be,
 * and B is read where it lies.
 *
 * Of the 2048 cycles that a chunk of 128 rows and 256 columns takes the matrix units, scaling and
 * cutting A took a warp 250 to 300 instructions, in a row, before its first product: two warpgroups
 * in turns did not hide it, and 32 times, once for every 256 of 8192 columns, is 12 % of the power,
 * by the instructions. Now that is done once, for two passes more over A's bytes. */
#include "cuda/gemm/presplit.cuh"
#include "cuda/runtime/wgmma_rows.cuh"

enum { N = 256, CLUSTER = 2, PIECES = N / GEMM_PIECE, LAST = PIECES - 1 };

struct shape {
    static constexpr int b_bytes = N * 128; /* first, since it is to lie at multiples of 1024 */
    static constexpr int bytes = b_bytes + PRESPLIT_BYTES;
    static constexpr int stage = (bytes + 1023) / 1024 * 1024;
    static constexpr int room = 8 * 16 * GEMM_PITCH * 4; /* see gemm_store_any */
    static constexpr int stages = (224 * 1024 - room) / stage;
    static constexpr int shared = stages * stage + room + 1024;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* To the same place in both blocks of the pair. */
static __device__ __forceinline__ void fetch_for_both(uint32_t to, const CUtensorMap *map, int x,
                                                      int y, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                 : "memory");
}

/* ALONG_N: B's lines are along its columns. */
template <bool ALONG_N>
static __device__ __forceinline__ void fetch_all(const gcu_gemm_launch &l, const gemm_walk &w,
                                                 const CUtensorMap *map, uint32_t stages,
                                                 uint32_t full, uint32_t empty)
{
    const int rank = (int)gcu_cluster_rank();
    int stage = 0;
    uint32_t phase = 1; /* a stage never used is empty */
    for (int number = blockIdx.x / CLUSTER; number < w.items; number += gridDim.x / CLUSTER) {
        const gemm_item i = gemm_item_of<N, CLUSTER>(w, number, rank);
        if (gemm_is_left(l, i.row, false)) continue;
        const uint8_t *a = l.presplit + i.row / GEMM_M * l.chunks * PRESPLIT_BYTES;
        for (int chunk = 0; chunk < (int)l.chunks; chunk++, a += PRESPLIT_BYTES) {
            const uint32_t to = stages + stage * shape::stage, barrier = full + 8 * stage;
            gcu_barrier_wait(empty + 8 * stage, phase);
            gcu_barrier_expect(barrier, shape::bytes);
            gcu_fetch(to + shape::b_bytes, a, PRESPLIT_BYTES, barrier);
#pragma unroll
            for (int p = 0; p < PIECES / CLUSTER; p++) {
                const int piece = rank * (PIECES / CLUSTER) + p;
                const int col = (int)i.col + piece * GEMM_PIECE, k = chunk * GCU_GEMM_CHUNK;
                fetch_for_both(to + piece * (GEMM_PIECE * 128), map, ALONG_N ? col : k,
                               ALONG_N ? k : col, barrier);
            }
            if (++stage == shape::stages) stage = 0, phase ^= 1;
        }
    }
}

template <bool ALONG_N>
static __device__ __forceinline__ void multiply(float *sum, const uint32_t *a, uint32_t b, int step,
                                                int add)
{
    if (ALONG_N)
        gcu_wgmma_rows_64(sum, a, b + step * (16 * 128 / 16), add);
    else
        gcu_wgmma<64>(sum, a, b + 2 * step, add);
}

template <bool ALONG_N>
static __device__ __forceinline__ void multiply_all(const gcu_gemm_launch &l, const gemm_walk &w,
                                                    uint32_t stages, uint32_t full, uint32_t empty)
{
    const int warp = (int)threadIdx.x / 32 - 4, lane = (int)threadIdx.x % 32;
    const int g = lane / 4, q = lane % 4;
    /* shuffled so that the compiler knows it to be the warp's */
    const int group = __shfl_sync(~0u, warp / 4, 0);
    int stage = 0;
    uint32_t phase = 0;
    if (group == 1) gemm_order_signal(0);
    for (int number = blockIdx.x / CLUSTER; number < w.items; number += gridDim.x / CLUSTER) {
        if (gemm_is_left(l, gemm_item_of<N, CLUSTER>(w, number, 0).row, false)) continue;
        float total[PIECES][32];
#pragma unroll
        for (int e = 0; e < N / 2; e++)
            total[e / 32][e % 32] = 0.0f;
#pragma unroll 1
        for (int left = (int)l.chunks; left > 0; left--) {
            const uint32_t b = stages + stage * shape::stage, a = b + shape::b_bytes;
            const uint32_t columns =
                ALONG_N ? gcu_wgmma_descriptor_rows(b) : gcu_wgmma_descriptor(b);
            uint32_t high[4][4], low[4][4];
            float down[2], sum[2][32];
            gcu_barrier_wait(full + 8 * stage, phase);
            const uint32_t mine = a + warp * PRESPLIT_HALVES + lane * 16;
            const uint32_t behind = a + 16 * PRESPLIT_HALVES;
            const uint32_t next = behind + 8 * 64 + warp * 4;
#pragma unroll
            for (int s = 0; s < 4; s++) {
                gemm_load(low[s], mine + 8 * PRESPLIT_HALVES + s * 512);
                gemm_load(high[s], mine + s * 512);
            }
#pragma unroll
            for (int r = 0; r < 2; r++)
                down[r] = gcu_load_shared(behind + (warp * 16 + 8 * r + g) * 4);
            const auto promote = [&](int p) {
                gemm_promote<GCU_GEMM_SCALED, false>(total[p], sum[p % 2], sum[1], down, 0);
                gcu_wgmma_fence_operands<32>(total[p]); /* before what is waited for next */
            };
            for (bool first = true;; first = false) {
                if (first) gemm_order_wait(group);
#pragma unroll
                for (int p = 0; p < PIECES; p++) {
                    const uint32_t from = columns + p * (GEMM_PIECE * 128 / 16);
                    if (p >= 2) {
                        gcu_wgmma_wait<1>();
                        promote(p - 2);
                    }
                    gcu_wgmma_fence();
                    /* small products first, so that they are not cut off */
#pragma unroll
                    for (int s = 0; s < 4; s++)
                        multiply<ALONG_N>(sum[p % 2], low[s], from, s, s > 0);
#pragma unroll
                    for (int s = 0; s < 4; s++)
                        multiply<ALONG_N>(sum[p % 2], high[s], from, s, 1);
                    gcu_wgmma_commit();
                }
                if (first) gemm_order_signal(1 - group);
                gcu_wgmma_wait<1>();
                promote(LAST - 1);
                gcu_wgmma_wait<0>();
                promote(LAST);
                /* what is left of small numbers, which is rare, is read from where it lies */
                const unsigned number = __shfl_sync(~0u, gcu_load_shared_word(next), 0);
                if (number == 0) break;
                const presplit_place rest = presplit_rest(l.rests, number, warp % 4);
#pragma unroll
                for (int s = 0; s < 4; s++) {
                    gemm_load_global(low[s], rest.low + s * 512 + lane * 16);
                    gemm_load_global(high[s], rest.high + s * 512 + lane * 16);
                }
                down[0] = rest.scales[g];
                down[1] = rest.scales[8 + g];
                __syncwarp();
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(next), "r"(*rest.next) : "memory");
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); /* will be copied to */
                __syncwarp();
            }
            __syncwarp();
            if (lane < CLUSTER) gcu_barrier_arrive<CLUSTER>(empty + 8 * stage, (uint32_t)lane);
            if (++stage == shape::stages) stage = 0, phase ^= 1;
        }
        /* found again: there is no register to keep it in */
        const gemm_item i = gemm_item_of<N, CLUSTER>(w, number, gcu_cluster_rank());
        if (gemm_is_taken(l, i.row, false))
            gemm_store<N>(l, i, total, i.row + warp * 16 + g, q, shape::stages * shape::stage);
    }
}

#endif

template <bool ALONG_N>
static __global__ void __launch_bounds__(GEMM_THREADS, 1)
    gemm_presplit(const __grid_constant__ gcu_gemm_launch l, const __grid_constant__ gemm_walk w,
                  const __grid_constant__ CUtensorMap map)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ __align__(8) uint64_t barriers[2 * shape::stages];
    const uint32_t full = gcu_shared_address(barriers);
    const uint32_t empty = full + 8 * shape::stages, stages = gemm_stages();
    if (threadIdx.x == 0) gcu_barriers_init(full, empty, shape::stages, 1, 8 * CLUSTER);
    gcu_cluster_sync();
    if (threadIdx.x < 128) {
        gcu_registers_dealloc<24>();
        if (threadIdx.x == 0) fetch_all<ALONG_N>(l, w, &map, stages, full, empty);
    } else {
        gcu_registers_alloc<240>();
        multiply_all<ALONG_N>(l, w, stages, full, empty);
    }
    /* no block leaves while its neighbour may still write or arrive here */
    __syncwarp();
    gcu_cluster_sync();
#endif
}

cudaError_t gcu_gemm_hopper_presplit(const gcu_gemm_launch &l, const gcu_gpu *gpu,
                                     cudaStream_t stream)
{
    CUtensorMap map;
    if (!gemm_encode_b(l, &map)) return cudaErrorInvalidValue;
    const auto kernel = l.b_col == 1 ? gemm_presplit<true> : gemm_presplit<false>;
    return gemm_launch_on<N, CLUSTER>(kernel, shape::shared, l, map, gpu, stream);
}
