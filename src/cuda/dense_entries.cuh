/* cuda/dense_entries.cuh: entries of dense operators made as fragments of the matrix instructions'
 * register operand (m16 k16 halves a warp; wgmma's m64 is four warps of it).
 *
 * A warp has 32 rows of S, as two fragments of 16: lane 4 g + q holds, of both, rows g and g + 8,
 * and these four are rows 4 a ... 4 a + 3 of one call of the generator. The columns of a K-block
 * of 128 are ordered (dense_tile.h) so that the 32 values that the lane holds of each row are the
 * row's columns 32 q ... 32 q + 31: every word that the lane draws is used by it, and whole. */
#ifndef GNOMON_CUDA_DENSE_ENTRIES_CUH
#define GNOMON_CUDA_DENSE_ENTRIES_CUH

#include "cuda/random.cuh"

#include <cuda_fp16.h>

/* The round keys, ready as constants of the launch. */
struct gcu_schedule {
    uint32_t key0[10], key1[10];
    uint32_t c3;
};

static inline gcu_schedule gcu_schedule_of(const gnomon_simple *a, uint32_t tag)
{
    gcu_schedule s;
    for (uint32_t i = 0; i < 10; i++) {
        s.key0[i] = a->key0 + i * 0x9E3779B9u;
        s.key1[i] = a->key1 + i * 0xBB67AE85u;
    }
    s.c3 = tag << 24 | a->level << 16;
    return s;
}

static __device__ __forceinline__ uint4 gcu_scheduled(const gcu_schedule &s, uint32_t c0,
                                                      uint32_t c1, uint32_t c2)
{
    uint32_t c3 = s.c3;
#pragma unroll
    for (int i = 0; i < 10; i++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ s.key0[i];
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ s.key1[i];
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* What the entries of a launch are made from. */
struct gcu_entries {
    gcu_schedule calls, tails;
    gcu_gaussian16 gaussian16;
};

enum gcu_dense_kind {
    GCU_DENSE_SIGNS,
    GCU_DENSE_TERNARY,    /* achlioptas */
    GCU_DENSE_GAUSSIAN16, /* fp16-rounded */
    GCU_DENSE_GAUSSIAN32, /* as high + low 2^-11 */
};

/* Bytes of shared memory for a kind's table, and its filling by all threads of the block. */
static __host__ __device__ constexpr int gcu_entries_table_bytes(gcu_dense_kind kind)
{
    return kind == GCU_DENSE_GAUSSIAN16 ? 1 << 16 : kind == GCU_DENSE_TERNARY ? 36 * 32 * 4 : 0;
}

template <gcu_dense_kind KIND>
static __device__ __forceinline__ void gcu_entries_table(const gcu_entries &e, void *table,
                                                         int thread, int threads)
{
    if (KIND == GCU_DENSE_GAUSSIAN16) {
        /* the tail's mark is a bit that no magnitude has */
        const uint32_t *from = reinterpret_cast<const uint32_t *>(e.gaussian16.magnitude);
        uint32_t *to = static_cast<uint32_t *>(table);
        for (int i = thread; i < 1 << 14; i += threads)
            to[i] = i == (1 << 14) - 1 ? (from[i] & 0xFFFFu) | 0x80000000u : from[i];
    }
    if (KIND == GCU_DENSE_TERNARY) {
        /* two digits of achlioptas as two halves; each lane has its own copy, in its own bank */
        uint32_t *to = static_cast<uint32_t *>(table);
        for (int i = thread; i < 36 * 32; i += threads) {
            const int first = i / 32 / 6, second = i / 32 % 6;
            const uint32_t low = first == 0 ? 0x3C00u : first == 1 ? 0xBC00u : 0u;
            const uint32_t high = second == 0 ? 0x3C00u : second == 1 ? 0xBC00u : 0u;
            to[i] = low | high << 16;
        }
    }
}

/* The fragments of one K-block: 'start', then for each of 8 / STEPS turns 'step' for u = 0 ...
 * STEPS - 1 and 'turn'. (Turns are a loop: eight steps in a row would all be made before the first
 * product, and not fit in the registers.) a[t][r] is register r of fragment t; with GAUSSIAN32
 * 'low' has the low halves. */
template <gcu_dense_kind KIND> struct gcu_fragments;

template <> struct gcu_fragments<GCU_DENSE_SIGNS> {
    static constexpr int STEPS = 4;
    uint4 w;
    __device__ __forceinline__ void start(const gcu_entries &e, const void *, uint32_t block,
                                          uint64_t block128, int q)
    {
        w = gcu_scheduled(e.calls, (uint32_t)block128 * 4u + (uint32_t)q,
                          (uint32_t)(block128 >> 30), block);
    }
    static __device__ __forceinline__ uint32_t two(uint32_t word, int m)
    {
        /* (shifted & 0x80008000) | 0x3C003C00 as one instruction */
        uint32_t two;
        asm("lop3.b32 %0, %1, %2, %3, 0xEA;"
            : "=r"(two)
            : "r"(word << (15 - m)), "r"(0x80008000u), "r"(0x3C003C00u));
        return two;
    }
    __device__ __forceinline__ void step(const gcu_entries &, const void *, int u, uint32_t a[2][4],
                                         uint32_t[2][4])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            a[0][2 * h] = two(w.x, 8 + 2 * u + h);
            a[0][2 * h + 1] = two(w.y, 8 + 2 * u + h);
            a[1][2 * h] = two(w.z, 8 + 2 * u + h);
            a[1][2 * h + 1] = two(w.w, 8 + 2 * u + h);
        }
    }
    __device__ __forceinline__ void turn()
    {
        w.x <<= 8, w.y <<= 8, w.z <<= 8, w.w <<= 8;
    }
};

template <> struct gcu_fragments<GCU_DENSE_TERNARY> {
    static constexpr int STEPS = 2;
    uint4 w;
    uint32_t c0, c1, block;
    __device__ __forceinline__ void start(const gcu_entries &, const void *, uint32_t block_,
                                          uint64_t block128, int q)
    {
        block = block_;
        c0 = (uint32_t)block128 * 16u + (uint32_t)q * 4u;
        c1 = (uint32_t)(block128 >> 28);
    }
    static __device__ __forceinline__ uint32_t two(const void *table, uint32_t &word)
    {
        const uint64_t p = (uint64_t)word * 36u;
        word = (uint32_t)p;
        return static_cast<const uint32_t *>(table)[(uint32_t)(p >> 32) * 32u];
    }
    /* table: the lane's own column of it */
    __device__ __forceinline__ void step(const gcu_entries &e, const void *table, int u,
                                         uint32_t a[2][4], uint32_t[2][4])
    {
        if (u == 0) w = gcu_scheduled(e.calls, c0, c1, block);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            a[0][2 * h] = two(table, w.x);
            a[0][2 * h + 1] = two(table, w.y);
            a[1][2 * h] = two(table, w.z);
            a[1][2 * h + 1] = two(table, w.w);
        }
    }
    __device__ __forceinline__ void turn()
    {
        c0++;
    }
};

/* One in 2^15 values: the tail's half instead of a marked one. */
static __device__ __forceinline__ uint32_t gcu_tail_half(const gcu_entries &e, uint32_t t)
{
    int low = 0, high = e.gaussian16.tails - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t <= __ldg(e.gaussian16.tail_last + middle))
            high = middle;
        else
            low = middle + 1;
    }
    return __ldg(e.gaussian16.tail_value + low);
}

template <> struct gcu_fragments<GCU_DENSE_GAUSSIAN16> {
    static constexpr int STEPS = 2;
    uint32_t c0, c1, block;
    __device__ __forceinline__ void start(const gcu_entries &, const void *, uint32_t block_,
                                          uint64_t block128, int q)
    {
        block = block_;
        c0 = (uint32_t)block128 * 64u + (uint32_t)q * 16u;
        c1 = (uint32_t)(block128 >> 26);
    }
    static __device__ __forceinline__ uint32_t two(const void *table, uint32_t w)
    {
        const char *bytes = static_cast<const char *>(table);
        const uint32_t low = *reinterpret_cast<const uint16_t *>(bytes + ((w << 1) & 0xFFFEu));
        const uint32_t high = *reinterpret_cast<const uint16_t *>(bytes + ((w >> 15) & 0xFFFEu));
        return __byte_perm(low, high, 0x5410);
    }
    __device__ __forceinline__ void step(const gcu_entries &e, const void *table, int u,
                                         uint32_t a[2][4], uint32_t[2][4])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t call = c0 + (uint32_t)(2 * u + h);
            const uint4 w = gcu_scheduled(e.calls, call, c1, block);
            uint32_t r[4] = {two(table, w.x), two(table, w.y), two(table, w.z), two(table, w.w)};
            if ((r[0] | r[1] | r[2] | r[3]) & 0x80008000u) {
                /* columns 2 call and 2 call + 1; c1 holds the 32 bits above */
                const uint64_t column = ((uint64_t)c1 << 32 | call) * 2u;
#pragma unroll 1
                for (uint32_t odd = 0; odd < 2; odd++) {
                    const uint32_t mark = odd ? 0x80000000u : 0x8000u;
                    if (!((r[0] | r[1] | r[2] | r[3]) & mark)) continue;
                    const uint4 t = gcu_scheduled(e.tails, (uint32_t)(column | odd),
                                                  (uint32_t)(column >> 32), block);
                    const uint32_t keep = odd ? 0x0000FFFFu : 0xFFFF0000u;
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        if (!(r[i] & mark)) continue;
                        const uint32_t word = i == 0 ? t.x : i == 1 ? t.y : i == 2 ? t.z : t.w;
                        const uint32_t half = gcu_tail_half(e, word);
                        r[i] = (r[i] & keep) | (odd ? half << 16 : half);
                    }
                }
            }
            a[0][2 * h] = r[0] | (w.x & 0x80008000u);
            a[0][2 * h + 1] = r[1] | (w.y & 0x80008000u);
            a[1][2 * h] = r[2] | (w.z & 0x80008000u);
            a[1][2 * h + 1] = r[3] | (w.w & 0x80008000u);
        }
    }
    __device__ __forceinline__ void turn()
    {
        c0 += 2 * STEPS;
    }
};

template <> struct gcu_fragments<GCU_DENSE_GAUSSIAN32> {
    static constexpr int STEPS = 1;
    uint32_t c0, c1, block;
    __device__ __forceinline__ void start(const gcu_entries &, const void *, uint32_t block_,
                                          uint64_t block128, int q)
    {
        block = block_;
        c0 = (uint32_t)block128 * 128u + (uint32_t)q * 32u;
        c1 = (uint32_t)(block128 >> 25);
    }
    static __device__ __forceinline__ void split(float even, float odd, uint32_t &high,
                                                 uint32_t &low)
    {
        const __half2 h = __floats2half2_rn(even, odd);
        const __half2 l =
            __floats2half2_rn((even - __low2float(h)) * 2048.0f, (odd - __high2float(h)) * 2048.0f);
        high = *reinterpret_cast<const uint32_t *>(&h);
        low = *reinterpret_cast<const uint32_t *>(&l);
    }
    __device__ __forceinline__ void step(const gcu_entries &e, const void *, int u,
                                         uint32_t a[2][4], uint32_t low[2][4])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t call = c0 + (uint32_t)(4 * u + 2 * h);
            const uint4 even = gcu_scheduled(e.calls, call, c1, block);
            const uint4 odd = gcu_scheduled(e.calls, call + 1u, c1, block);
            const float2 e0 = gcu_box_muller(even.x, even.y), o0 = gcu_box_muller(odd.x, odd.y);
            split(e0.x, o0.x, a[0][2 * h], low[0][2 * h]);
            split(e0.y, o0.y, a[0][2 * h + 1], low[0][2 * h + 1]);
            const float2 e1 = gcu_box_muller(even.z, even.w), o1 = gcu_box_muller(odd.z, odd.w);
            split(e1.x, o1.x, a[1][2 * h], low[1][2 * h]);
            split(e1.y, o1.y, a[1][2 * h + 1], low[1][2 * h + 1]);
        }
    }
    __device__ __forceinline__ void turn()
    {
        c0 += 4 * STEPS;
    }
};

#endif
