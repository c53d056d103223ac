/* A cut into halves once for all columns of a product, in the way and with the bits of
 * gemm/hopper.cuh, which does so for every 256 columns anew. */
#include "cuda/gemm/presplit.cuh"

enum {
    THREADS = 256,
    /* Columns from which on it pays: halves are written and read again, as much as A itself each,
     * and every 256 columns are spared some of their time. */
    COLUMNS = 4096,
    ROWS = 1024
};

bool gcu_gemm_is_presplit(const gcu_gemm_launch &l, int64_t whole_m, int64_t whole_n, int columns,
                          const gcu_gpu *gpu)
{
    CUtensorMap map;
    return gpu->major == 9 && columns == 256 && whole_n >= COLUMNS && whole_m >= ROWS &&
           gemm_encode_b(l, &map);
}

/* A warp's 16 rows of a chunk: a lane's numbers are those that it is to have in the matrix
 * instructions' operand, x[8 s + 4 h + 2 r + e] of row 8 r + its own and k 16 s + 8 h + 2 q + e. */
template <bool ALONG_K>
static __device__ __forceinline__ void read_a(const gcu_gemm_launch &l, int64_t row, int64_t chunk,
                                              int q, float *x)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t i = row + 8 * r, first = chunk * GCU_GEMM_CHUNK + 2 * q;
        const bool there = i < l.m;
        const float *from = l.a;
        if (there && first < l.k) from += gcu_gemm_place(l, i, first);
#pragma unroll
        for (int p = 0; p < 8; p++) { /* 2 s + h */
            const int64_t left = there ? l.k - first - 8 * p : 0;
            float *to = x + 4 * p + 2 * r;
            if (ALONG_K && left >= 2) {
                const float2 both = *reinterpret_cast<const float2 *>(from + 8 * p);
                to[0] = both.x;
                to[1] = both.y;
            } else {
#pragma unroll
                for (int e = 0; e < 2; e++)
                    to[e] = e < left ? from[(8 * p + e) * (ALONG_K ? 1 : l.a_col)] : 0.0f;
            }
        }
    }
}

/* A warp's halves and scales of its 16 rows. */
static __device__ __forceinline__ void write_halves(const uint32_t (*high)[4],
                                                    const uint32_t (*low)[4],
                                                    const gcu_gemm_scale *scale,
                                                    const presplit_place &to, int lane)
{
#pragma unroll
    for (int s = 0; s < 4; s++) {
        reinterpret_cast<uint4 *>(to.high)[s * 32 + lane] =
            make_uint4(high[s][0], high[s][1], high[s][2], high[s][3]);
        reinterpret_cast<uint4 *>(to.low)[s * 32 + lane] =
            make_uint4(low[s][0], low[s][1], low[s][2], low[s][3]);
    }
    const int g = lane / 4, q = lane % 4;
    if (q < 2) to.scales[8 * q + g] = q ? scale[1].down : scale[0].down;
}

template <bool ALONG_K>
static __global__ void __launch_bounds__(THREADS, 3)
    presplit(const __grid_constant__ gcu_gemm_launch l)
{
    __shared__ unsigned numbers[2];
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, group = warp / 4;
    unsigned *const mixed = l.mixed + l.presplit_blocks, *const count = mixed + 1;
    for (int64_t item = blockIdx.x; item < l.presplit_blocks * l.chunks; item += gridDim.x) {
        const int64_t block = item / l.chunks, chunk = item % l.chunks;
        const int64_t row = block * GCU_GEMM_PRESPLIT_ROWS + warp * 16 + lane / 4;
        presplit_place to = presplit_block(l.presplit + item * PRESPLIT_BYTES, warp);
        float x[32];
        read_a<ALONG_K>(l, row, chunk, lane % 4, x);
        for (;;) {
            gcu_gemm_scale scale[2];
            gcu_gemm_scales<4>(x, scale);
            uint32_t high[4][4], low[4][4];
            gcu_gemm_split_all<false>(x, scale, high, low);
            write_halves(high, low, scale, to, lane);
            const bool small =
                !gcu_gemm_all_large<false>(high) && gcu_gemm_any_small<false>(x, scale);
            /* as gemm/hopper.cuh asks: of the 64 rows of a warpgroup */
            unsigned next = 0;
            if (gemm_any(group, small)) {
                if (threadIdx.x % 128 == 0) {
                    next = atomicAdd(count, 1u) + 1;
                    if (next > l.presplit_rests) next = 0;
                    if (next == 0) l.mixed[block] = *mixed = 1;
                    numbers[group] = next;
                }
                asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
                next = numbers[group];
            }
            if (lane == 0) *to.next = next;
            if (next == 0) break;
#pragma unroll
            for (int e = 0; e < 32; e++)
                x[e] = gcu_gemm_rest<false>(x[e], scale[e / 2 % 2]);
            to = presplit_rest(l.rests, next, warp % 4);
        }
    }
}

int64_t gcu_gemm_presplit_rests(const gcu_gemm_launch &l)
{
    return l.presplit_blocks * 2 * l.chunks / 16 + 64;
}

size_t gcu_gemm_presplit_bytes(const gcu_gemm_launch &l)
{
    return (size_t)l.presplit_blocks * (size_t)l.chunks * PRESPLIT_BYTES;
}

size_t gcu_gemm_rests_bytes(const gcu_gemm_launch &l)
{
    return (size_t)l.presplit_rests * PRESPLIT_REST_BYTES;
}

cudaError_t gcu_gemm_presplit(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream)
{
    cudaError_t error = cudaMemsetAsync(l.marks, 0, (size_t)(l.mark_rows * l.mark_cols), stream);
    if (error == cudaSuccess)
        error =
            cudaMemsetAsync(l.mixed, 0, (size_t)(l.presplit_blocks + 2) * sizeof *l.mixed, stream);
    if (error != cudaSuccess) return error;
    const int64_t items = l.presplit_blocks * l.chunks, most = gpu->sms * 16;
    const unsigned grid = (unsigned)(items < most ? items : most);
    if (l.a_col == 1)
        presplit<true><<<grid, THREADS, 0, stream>>>(l);
    else
        presplit<false><<<grid, THREADS, 0, stream>>>(l);
    error = cudaGetLastError();
    if (error == cudaSuccess) error = gcu_gemm_pack(l, stream);
    return error == cudaSuccess ? gcu_gemm_hopper_presplit(l, gpu, stream) : error;
}
