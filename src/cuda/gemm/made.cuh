/* cuda/gemm/made.cuh: entries of an operator as halves, two neighbours of a row at a time. */
#ifndef GNOMON_CUDA_GEMM_MADE_CUH
#define GNOMON_CUDA_GEMM_MADE_CUH

#include "cuda/gemm/split.cuh"
#include "cuda/project/entries.cuh"

enum gcu_gemm_kind {
    GCU_GEMM_HALF_NORMAL, /* gaussian fp16, by its table of magnitudes in shared memory */
    GCU_GEMM_SIGNS,
    GCU_GEMM_ANY_HALF,
    GCU_GEMM_NORMAL /* fp32 */
};

static __device__ __forceinline__ uint32_t gcu_gemm_pair(float low, float high)
{
    return gcu_gemm_bits(__floats2half2_rn(low, high));
}

/* The halves of two neighbours of gaussian fp16 whose word asks for a second try of one. */
static __device__ __noinline__ uint32_t gcu_gemm_tails(gcu_gaussian16 table, gcu_stream tail,
                                                       uint32_t halves, uint32_t w, uint32_t group,
                                                       uint64_t k, int row)
{
    uint32_t low = halves & 0xFFFFu, high = halves >> 16;
    if ((w & 0x7FFFu) == 0x7FFFu)
        low = gcu_gaussian16_tail(table, gcu_word(gcu_call(tail, group, k), row)) | (w & 0x8000u);
    if ((w >> 16 & 0x7FFFu) == 0x7FFFu)
        high = gcu_gaussian16_tail(table, gcu_word(gcu_call(tail, group, k + 1), row)) |
               (w >> 16 & 0x8000u);
    return low | high << 16;
}

/* For COUNT groups of four rows and as many k, which are even: halves k and k + 1 of each row.
 * signs: of rademacher, the words of 32 columns. All that is usual is done for all of them at once,
 * without a branch. */
template <gcu_gemm_kind KIND, int COUNT>
static __device__ __forceinline__ void gcu_gemm_halves(const gcu_matrix &m, const uint16_t *table,
                                                       const uint32_t *group, const uint64_t *k,
                                                       const uint4 *signs, uint32_t (*to)[4])
{
    if constexpr (KIND == GCU_GEMM_HALF_NORMAL) {
        uint4 w[COUNT];
        uint32_t odd = 0;
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            w[i] = gcu_call(m.stream, group[i], k[i] >> 1);
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const uint32_t x = gcu_word(w[i], r);
                const uint32_t low = table[x & 0x7FFFu], high = table[x >> 16 & 0x7FFFu];
                to[i][r] = (low | high << 16) | (x & 0x80008000u);
                odd |= (x & 0x7FFF7FFFu) + 0x00010001u; /* 0x8000 of a half that is 0x7FFF */
            }
        if (odd & 0x80008000u)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    to[i][r] = gcu_gemm_tails(m.gaussian16, m.other, to[i][r], gcu_word(w[i], r),
                                              group[i], k[i], r);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            float x[4], y[4];
            if (KIND == GCU_GEMM_ANY_HALF) {
                gcu_entries(m, group[i], k[i], x);
                gcu_entries(m, group[i], k[i] + 1, y);
            }
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const uint32_t w =
                    KIND == GCU_GEMM_SIGNS ? gcu_word(signs[i], r) >> (k[i] & 31) : 0;
                to[i][r] = KIND == GCU_GEMM_SIGNS ? 0x3C003C00u | (w & 1) << 15 | (w & 2) << 30
                                                  : gcu_gemm_pair(x[r], y[r]);
            }
        }
    }
}

#endif
