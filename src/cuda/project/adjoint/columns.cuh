/* cuda/project/adjoint/columns.cuh: S^T made in the register operand of wgmma (m64 k16), as
 * project/dense/entries.cuh makes S: rows of the fragment are columns of S.
 *
 * A warp has 16 neighbouring columns: lane 4 g + q columns 2 g and 2 g + 1 of them, in the places g
 * and g + 8, and of 16 rows of S rows 4 q ... 4 q + 3, all of one call of the generator. */
#ifndef GNOMON_CUDA_ADJOINT_COLUMNS_CUH
#define GNOMON_CUDA_ADJOINT_COLUMNS_CUH

#include "cuda/project/dense/entries.cuh"

/* The fragments of a warp's columns along the rows: 'start' with the lane's first column and the
 * first call's rows div 4, then 'make' for 0, 1, ... in order, each STEPS times 16 rows. a[u][r] is
 * register r for the rows of step u; with GAUSSIAN32 all is 2^13 times the entries, and 'low' has
 * what the halves in a leave out. All lanes of a warp together. */
template <gcu_dense_kind KIND> struct gcu_column_fragments;

/* What the numbers of fragments are multiples of, so that their low halves keep 2^-37. */
static __host__ __device__ constexpr float gcu_column_scale(gcu_dense_kind kind)
{
    return kind == GCU_DENSE_GAUSSIAN32 ? 0x1p13f : 1.0f;
}

/* Halves of two columns in each of four rows become those of two rows in each of two columns. */
static __device__ __forceinline__ void gcu_turn_pairs(const uint32_t v[4], uint32_t to[4])
{
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        to[i] = __byte_perm(v[i], v[i + 1], 0x5410);
        to[i + 1] = __byte_perm(v[i], v[i + 1], 0x7632);
    }
}

template <> struct gcu_column_fragments<GCU_DENSE_SIGNS> {
    static constexpr int STEPS = 4;
    gcu_column column;
    uint32_t block, half;   /* half: which of a word's halves has the warp's columns */
    uint32_t first, second; /* the warp's bits of rows 4 q and 4 q + 1, and of the next two */
    __device__ __forceinline__ void start(const gcu_entries &e, const void *, uint64_t col,
                                          uint32_t block_, int lane)
    {
        column = gcu_column_of(e.calls, col >> 5);
        half = col & 16 ? 0x7632u : 0x5410u;
        block = block_ + (uint32_t)lane; /* 4 (lane / 4) + lane % 4: the rows of step lane / 4 */
    }
    __device__ __forceinline__ void make(const gcu_entries &e, int number, uint32_t a[STEPS][4],
                                         uint32_t (*)[4], int lane)
    {
        if (number % 2 == 0) { /* a draw for each of eight steps */
            const uint4 w = gcu_scheduled(e.calls, column, block);
            first = __byte_perm(w.x, w.y, half);
            second = __byte_perm(w.z, w.w, half);
            block += 32u;
        }
        const int m = lane / 4 * 2;
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            const int from = 16 * (number % 2) + 4 * u + lane % 4;
            const uint32_t x = __shfl_sync(0xFFFFFFFFu, first, from);
            const uint32_t y = __shfl_sync(0xFFFFFFFFu, second, from);
            a[u][0] = gcu_two_signs(x, m);
            a[u][1] = gcu_two_signs(x, m + 1);
            a[u][2] = gcu_two_signs(y, m);
            a[u][3] = gcu_two_signs(y, m + 1);
        }
    }
};

template <> struct gcu_column_fragments<GCU_DENSE_TERNARY> {
    static constexpr int STEPS = 4;
    gcu_column column;
    uint32_t block, power, table;
    /* 'table' is gcu_entries_table's */
    __device__ __forceinline__ void start(const gcu_entries &e, const void *table_, uint64_t col,
                                          uint32_t block_, int lane)
    {
        column = gcu_column_of(e.calls, col >> 3);
        const int pair = lane / 4 % 4; /* of the word's digits */
        power = pair == 0 ? 1u : pair == 1 ? 36u : pair == 2 ? 1296u : 46656u;
        block = block_ + (uint32_t)(4 * pair + lane % 4);
        table = gcu_shared_address(table_) + 4u * (uint32_t)lane;
    }
    __device__ __forceinline__ uint32_t two(uint32_t word) const
    {
        uint32_t both;
        asm("ld.shared.b32 %0, [%1];"
            : "=r"(both)
            : "r"(table + (__umulhi(word * power, 36u) << 7)));
        return both;
    }
    __device__ __forceinline__ void make(const gcu_entries &e, int, uint32_t a[STEPS][4],
                                         uint32_t (*)[4], int lane)
    {
        const uint4 w = gcu_scheduled(e.calls, column, block); /* of step lane / 4 mod 4 */
        block += 16u;
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            const int from = (lane & 16) + 4 * u + lane % 4;
            uint32_t v[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] = two(__shfl_sync(0xFFFFFFFFu, gcu_word(w, i), from));
            gcu_turn_pairs(v, a[u]);
        }
    }
};

template <> struct gcu_column_fragments<GCU_DENSE_GAUSSIAN16> {
    static constexpr int STEPS = 4;
    using entries = gcu_fragments<GCU_DENSE_GAUSSIAN16, false>;
    gcu_column column;
    uint64_t col;
    uint32_t block, table;
    __device__ __forceinline__ void start(const gcu_entries &e, const void *table_, uint64_t col_,
                                          uint32_t block_, int lane)
    {
        col = col_;
        column = gcu_column_of(e.calls, col >> 1);
        table = gcu_shared_address(table_);
        block = block_ + (uint32_t)(lane % 4);
    }
    __device__ __forceinline__ void make(const gcu_entries &e, int, uint32_t a[STEPS][4],
                                         uint32_t (*)[4], int)
    {
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
            const uint4 w = gcu_scheduled(e.calls, column, block);
            uint32_t v[4], marks;
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] = entries::two(table, gcu_word(w, i));
            /* a mark is NaN, and so is what any sum of products makes of it */
            asm("{.reg .b32 s; .reg .pred x, y;\n"
                "mul.rn.f16x2 s, %1, %2;\n"
                "fma.rn.f16x2 s, %3, %4, s;\n"
                "setp.nan.f16x2 x|y, s, s;\n"
                "or.pred x, x, y;\n"
                "selp.b32 %0, 1, 0, x;}"
                : "=r"(marks)
                : "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]));
            if (marks) {
#pragma unroll 1
                for (uint32_t odd = 0; odd < 2; odd++) {
                    const uint64_t j = col + odd;
                    const uint4 t = gcu_scheduled(
                        e.tails, gcu_row_of(e.tails, (uint32_t)(j >> 32), block), (uint32_t)j);
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (!entries::marked(v[i], odd)) continue;
                        const uint32_t value = gcu_tail_half<false>(e, nullptr, gcu_word(t, i)) |
                                               (v[i] >> (16 * odd) & 0x8000u);
                        v[i] = __byte_perm(v[i], value, odd ? 0x5410 : 0x3254);
                    }
                }
            }
            block += 4u;
            gcu_turn_pairs(v, a[u]);
        }
    }
};

template <> struct gcu_column_fragments<GCU_DENSE_GAUSSIAN32> {
    static constexpr int STEPS = 2;
    gcu_column column[2];
    uint32_t block;
    __device__ __forceinline__ void start(const gcu_entries &e, const void *, uint64_t col,
                                          uint32_t block_, int lane)
    {
        column[0] = gcu_column_of(e.calls, col);
        column[1] = gcu_column_of(e.calls, col + 1);
        block = block_ + (uint32_t)(lane % 4);
    }
    static __device__ __forceinline__ void split(float2 x, uint32_t &high, uint32_t &low)
    {
        constexpr float scale = gcu_column_scale(GCU_DENSE_GAUSSIAN32);
        const float even = x.x * scale, odd = x.y * scale;
        const __half2 h = __floats2half2_rn(even, odd);
        const __half2 l = __floats2half2_rn(even - __low2float(h), odd - __high2float(h));
        high = *reinterpret_cast<const uint32_t *>(&h);
        low = *reinterpret_cast<const uint32_t *>(&l);
    }
    __device__ __forceinline__ void make(const gcu_entries &e, int, uint32_t a[STEPS][4],
                                         uint32_t (*low)[4], int)
    {
#pragma unroll
        for (int u = 0; u < STEPS; u++) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const uint4 w = gcu_scheduled(e.calls, column[c], block);
                split(gcu_box_muller(w.x, w.y), a[u][c], low[u][c]);
                split(gcu_box_muller(w.z, w.w), a[u][2 + c], low[u][2 + c]);
            }
            block += 4u;
        }
    }
};

#endif
