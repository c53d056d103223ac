/* cuda/gemm/hopper_store.cuh: a block's sums into C, or into the parts of splits. */
#ifndef GNOMON_CUDA_GEMM_HOPPER_STORE_CUH
#define GNOMON_CUDA_GEMM_HOPPER_STORE_CUH

#include "cuda/gemm/hopper_shape.cuh"

#ifdef __CUDACC__

/* Sums of a warp's 16 rows and 32 columns, the first of them at (row, col): by way of shared
 * memory, one loop for all kinds of C, since code that is laid out for each register is read from
 * memory anew for each block. */
static __device__ __forceinline__ void gemm_store_any(const gcu_gemm_launch &l, int split,
                                                      const float *sums, uint32_t room, int64_t row,
                                                      int64_t col, int g, int q)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 16; e += 2)
        asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(
                         room + ((g + e % 4 / 2 * 8) * GEMM_PITCH + e / 4 * 8 + 2 * q) * 4),
                     "f"(sums[e]), "f"(sums[e + 1])
                     : "memory");
    __syncwarp();
    const bool by_rows = l.splits > 1 || llabs(l.c_col) <= llabs(l.c_row);
#pragma unroll 1
    for (int e = 0; e < 16; e++) {
        const int r = by_rows ? e : lane % 16, c = by_rows ? lane : 2 * e + lane / 16;
        const int64_t m = row + r, n = col + c;
        const float sum = gcu_load_shared(room + (r * GEMM_PITCH + c) * 4);
        if (m >= l.m || n >= l.n) continue;
        if (l.splits > 1)
            l.parts[(split * l.m + m) * l.n + n] = sum;
        else
            gcu_gemm_put(l, m, n, sum);
    }
    __syncwarp();
}

/* The room for sums on their way begins 'behind' bytes behind the first stage. */
template <int N>
static __device__ __forceinline__ void gemm_store(const gcu_gemm_launch &l, const gemm_item &i,
                                                  float (*total)[32], int64_t row, int q,
                                                  int behind)
{
    const int g = (int)row % 8, warp = (int)threadIdx.x / 32 - 4;
    const uint32_t room = gemm_stages() + behind + warp * (16 * GEMM_PITCH * 4);
    const bool plain = l.splits == 1 && l.c_col == 1 && l.c_row % 2 == 0 &&
                       (uintptr_t)l.c % 8 == 0 && !l.c64 && l.alpha == 1.0 && l.beta == 0.0;
    float *const to = l.c + row * l.c_row + i.col + 2 * q;
    const int64_t down = 8 * l.c_row;
#pragma unroll
    for (int part = 0; part < N / GCU_GEMM_MARK_COLS; part++) {
        const float *sums = total[part / 2] + part % 2 * 16;
        const int64_t col = i.col + part * GCU_GEMM_MARK_COLS;
        if (col >= l.n) break;
        bool odd = false;
#pragma unroll
        for (int e = 0; e < 16; e++)
            odd |= !isfinite(sums[e]);
        if (__any_sync(~0u, odd) && l.splits == 1) {
            const int64_t mark = row / GCU_GEMM_MARK_ROWS;
            if (threadIdx.x % 32 == 0 && mark < l.mark_rows)
                l.marks[mark * l.mark_cols + col / GCU_GEMM_MARK_COLS] = 1;
        } else if (plain && col + GCU_GEMM_MARK_COLS <= l.n) {
#pragma unroll
            for (int e = 0; e < 16; e += 2)
                if (row + e % 4 / 2 * 8 < l.m)
                    *reinterpret_cast<float2 *>(to + e % 4 / 2 * down + part * GCU_GEMM_MARK_COLS +
                                                e / 4 * 8) = make_float2(sums[e], sums[e + 1]);
        } else {
            gemm_store_any(l, i.split, sums, room, row - g, col, g, q);
        }
    }
}

#endif
#endif
