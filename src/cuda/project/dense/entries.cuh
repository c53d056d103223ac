/* cuda/project/dense/entries.cuh: entries of dense operators made as fragments of the matrix
 * instructions' register operand (m16 k16 halves a warp; wgmma's m64 is four warps of it).
 *
 * A warp has 32 rows of S, as two fragments of 16: lane 4 g + q holds, of both, rows g and g + 8,
 * and these four are rows 4 a ... 4 a + 3 of one call of the generator. The columns of a K-block
 * of 128 are ordered (project/dense/tile.h) so that the 32 values that the lane holds of each row
 * are the row's columns 32 q ... 32 q + 31: every word that the lane draws is used by it, and
 * whole. */
#ifndef GNOMON_CUDA_DENSE_ENTRIES_CUH
#define GNOMON_CUDA_DENSE_ENTRIES_CUH

#include "cuda/runtime/random.cuh"
#include "cuda/runtime/shared.cuh"

#include <cuda_fp16.h>

/* The round keys, ready as constants of the launch. */
struct gcu_schedule {
    uint32_t key0[10], key1[10];
    uint32_t c3, first; /* the call's last counter word, and that with the first round's key */
};

static inline gcu_schedule gcu_schedule_of(const gnomon_simple *a, uint32_t tag)
{
    gcu_schedule s;
    for (uint32_t i = 0; i < 10; i++) {
        s.key0[i] = a->key0 + i * 0x9E3779B9u;
        s.key1[i] = a->key1 + i * 0xBB67AE85u;
    }
    s.c3 = tag << 24 | a->level << 16;
    s.first = s.c3 ^ s.key1[0];
    return s;
}

/* What the first two rounds of a call have of its second and third counter words: two of their four
 * products depend on nothing else, so a lane that goes along a row makes them once. */
struct gcu_row {
    uint32_t x0, x2, x3;
};

static __device__ __forceinline__ gcu_row gcu_row_of(const gcu_schedule &s, uint32_t c1,
                                                     uint32_t c2)
{
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint64_t p0 = (uint64_t)0xD2511F53u * ((uint32_t)(p1 >> 32) ^ c1 ^ s.key0[0]);
    const gcu_row row = {(uint32_t)p1 ^ s.key0[1], (uint32_t)(p0 >> 32) ^ s.key1[1], (uint32_t)p0};
    return row;
}

/* The last eight rounds. */
static __device__ __forceinline__ uint4 gcu_later_rounds(const gcu_schedule &s, uint32_t c0,
                                                         uint32_t c1, uint32_t c2, uint32_t c3)
{
#pragma unroll
    for (int i = 2; i < 10; i++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ s.key0[i];
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ s.key1[i];
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    return make_uint4(c0, c1, c2, c3);
}

static __device__ __forceinline__ uint4 gcu_scheduled(const gcu_schedule &s, gcu_row row,
                                                      uint32_t call)
{
    const uint64_t first = (uint64_t)0xD2511F53u * call;
    const uint64_t second = (uint64_t)0xCD9E8D57u * ((uint32_t)(first >> 32) ^ s.first);
    return gcu_later_rounds(s, (uint32_t)(second >> 32) ^ row.x0, (uint32_t)second,
                            (uint32_t)first ^ row.x2, row.x3);
}

/* The same for a lane that goes along a column: what the first and second counter words give. */
struct gcu_column {
    uint32_t c1, x0, x1, x2;
};

static __device__ __forceinline__ gcu_column gcu_column_of(const gcu_schedule &s, uint64_t call)
{
    const uint64_t first = (uint64_t)0xD2511F53u * (uint32_t)call;
    const uint64_t second = (uint64_t)0xCD9E8D57u * ((uint32_t)(first >> 32) ^ s.first);
    const gcu_column column = {(uint32_t)(call >> 32) ^ s.key0[0],
                               (uint32_t)(second >> 32) ^ s.key0[1], (uint32_t)second,
                               (uint32_t)first ^ s.key1[1]};
    return column;
}

static __device__ __forceinline__ uint4 gcu_scheduled(const gcu_schedule &s, gcu_column column,
                                                      uint32_t block)
{
    const uint64_t first = (uint64_t)0xCD9E8D57u * block;
    const uint64_t second = (uint64_t)0xD2511F53u * ((uint32_t)(first >> 32) ^ column.c1);
    return gcu_later_rounds(s, column.x0 ^ (uint32_t)first, column.x1,
                            column.x2 ^ (uint32_t)(second >> 32), (uint32_t)second);
}

/* What the entries of a launch are made from. */
struct gcu_entries {
    gcu_schedule calls, tails;
    gcu_gaussian16 gaussian16;
};

enum gcu_dense_kind {
    GCU_DENSE_SIGNS,
    GCU_DENSE_SIGN_PAIRS, /* the same, of points as sums and differences of two columns */
    GCU_DENSE_TERNARY,    /* achlioptas */
    GCU_DENSE_GAUSSIAN16, /* fp16-rounded */
    GCU_DENSE_GAUSSIAN32, /* as high + low 2^-11 */
};

/* The kind of a simple operator, GCU_DENSE_SIGNS for rademacher; false when it is not dense. */
static inline bool gcu_dense_kind_of(const gnomon_simple *a, gcu_dense_kind *kind)
{
    switch (a->kind) {
    case GNOMON_RADEMACHER:
        *kind = GCU_DENSE_SIGNS;
        return true;
    case GNOMON_ACHLIOPTAS:
        *kind = GCU_DENSE_TERNARY;
        return true;
    case GNOMON_GAUSSIAN:
        *kind = a->precision == GNOMON_F16 ? GCU_DENSE_GAUSSIAN16 : GCU_DENSE_GAUSSIAN32;
        return true;
    default:
        return false;
    }
}

static inline gcu_entries gcu_entries_of(const gnomon_simple *a, const gcu_gaussian16 &gaussian16)
{
    const uint32_t tag = a->kind == GNOMON_RADEMACHER   ? GNOMON_TAG_SIGN
                         : a->kind == GNOMON_ACHLIOPTAS ? GNOMON_TAG_ACHLIOPTAS
                         : a->precision == GNOMON_F16   ? GNOMON_TAG_GAUSSIAN16
                                                        : GNOMON_TAG_GAUSSIAN;
    const gcu_entries e = {gcu_schedule_of(a, tag), gcu_schedule_of(a, GNOMON_TAG_GAUSSIAN16_TAIL),
                           gaussian16};
    return e;
}

/* Bytes of gaussian's magnitudes, fp16, with the signs; the tail's bounds and values lie behind. */
enum { GCU_SIGNED_BYTES = 1 << 17 };

/* Bytes of shared memory for a kind's table, and its filling by all threads of the block. The large
 * table of gaussian, fp16, has the signs and the tail too; achlioptas' has four digits at once. */
static __host__ __device__ constexpr int gcu_entries_table_bytes(gcu_dense_kind kind, bool large)
{
    return kind == GCU_DENSE_GAUSSIAN16 ? (large ? GCU_SIGNED_BYTES + 6 * GCU_TAILS_MOST : 1 << 16)
           : kind == GCU_DENSE_TERNARY  ? (large ? 1296 : 36) * 32 * 4
                                        : 0;
}

/* The upper byte of a digit's half: 1, -1 or 0. */
static __device__ __forceinline__ uint32_t gcu_ternary_byte(int digit)
{
    return digit == 0 ? 0x3Cu : digit == 1 ? 0xBCu : 0u;
}

template <gcu_dense_kind KIND, bool LARGE>
static __device__ __forceinline__ void gcu_entries_table(const gcu_entries &e, void *table,
                                                         int thread, int threads)
{
    if (KIND == GCU_DENSE_GAUSSIAN16) {
        const uint32_t *from = reinterpret_cast<const uint32_t *>(e.gaussian16.magnitude);
        uint32_t *to = static_cast<uint32_t *>(table);
        for (int i = thread; i < 1 << 14; i += threads) {
            to[i] = from[i];
            if (LARGE) to[i + (1 << 14)] = from[i] | 0x80008000u;
        }
        if (LARGE) {
            uint32_t *last = to + GCU_SIGNED_BYTES / 4;
            uint16_t *value = reinterpret_cast<uint16_t *>(last + GCU_TAILS_MOST);
            for (int i = thread; i < e.gaussian16.tails; i += threads) {
                last[i] = e.gaussian16.tail_last[i];
                value[i] = e.gaussian16.tail_value[i];
            }
        }
    }
    if (KIND == GCU_DENSE_TERNARY) {
        /* two digits of achlioptas as two halves, or the upper bytes of four (the lower ones are
         * zero); each lane has its own copy, in its own bank */
        uint32_t *to = static_cast<uint32_t *>(table) + thread % 32;
        for (int first = thread / 32; first < 36; first += threads / 32) {
            const uint32_t d0 = gcu_ternary_byte(first / 6), d1 = gcu_ternary_byte(first % 6);
            if (LARGE) {
#pragma unroll
                for (int next = 0; next < 36; next++)
                    to[(first * 36 + next) * 32] = d0 | d1 << 8 | gcu_ternary_byte(next / 6) << 16 |
                                                   gcu_ternary_byte(next % 6) << 24;
            } else {
                to[first * 32] = d0 << 8 | d1 << 24;
            }
        }
    }
}

/* The fragments of a run of K-blocks whose columns share the call's upper counter word: 'start',
 * then for each K-block 'make' for g = 0 ... 8 / STEPS - 1, or 'skip' for all of them.
 * Words are drawn before they are needed, so that the look-ups of others or the matrix unit hide
 * their long chain of products.
 * a[u][t][r] is register r of fragment t for the K-block's 16 columns STEPS g + u; with GAUSSIAN32
 * 'low' has the low halves. */
template <gcu_dense_kind KIND, bool LARGE> struct gcu_fragments;

/* (x & mask) | set, as one instruction */
static __device__ __forceinline__ uint32_t gcu_masked(uint32_t x, uint32_t mask, uint32_t set)
{
    uint32_t y;
    asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(y) : "r"(x), "r"(mask), "r"(set));
    return y;
}

/* The bits m and m + 16 of a word as two signs of 1. */
static __device__ __forceinline__ uint32_t gcu_two_signs(uint32_t word, int m)
{
    return gcu_masked(word << (15 - m), 0x80008000u, 0x3C003C00u);
}

template <bool LARGE> struct gcu_fragments<GCU_DENSE_SIGNS, LARGE> {
    static constexpr int STEPS = LARGE ? 2 : 1;
    gcu_row row;
    uint32_t call;
    uint4 w;
    __device__ __forceinline__ void start(const gcu_entries &e, uint32_t block, uint64_t block128,
                                          int q)
    {
        row = gcu_row_of(e.calls, (uint32_t)(block128 >> 30), block);
        call = (uint32_t)block128 * 4u + (uint32_t)q;
        w = gcu_scheduled(e.calls, row, call);
    }
    __device__ __forceinline__ void make(const gcu_entries &e, const void *, int g,
                                         uint32_t a[STEPS][2][4], uint32_t (*)[2][4])
    {
#pragma unroll
        for (int i = 0; i < 2 * STEPS; i++) {
            const int m = 8 + (2 * STEPS * g + i) % 8, h = i % 2;
            a[i / 2][0][2 * h] = gcu_two_signs(w.x, m);
            a[i / 2][0][2 * h + 1] = gcu_two_signs(w.y, m);
            a[i / 2][1][2 * h] = gcu_two_signs(w.z, m);
            a[i / 2][1][2 * h + 1] = gcu_two_signs(w.w, m);
        }
        if (g == 4 / STEPS - 1)
            w.x <<= 8, w.y <<= 8, w.z <<= 8, w.w <<= 8; /* the lower bits of each half */
        if (g == 8 / STEPS - 1) {
            call += 4u;
            w = gcu_scheduled(e.calls, row, call);
        }
    }
    __device__ __forceinline__ void skip(const gcu_entries &e)
    {
        call += 4u;
        w = gcu_scheduled(e.calls, row, call);
    }
};

/* Signs two at a time: s x + t y is s (x + y) where the signs agree and s (x - y) where they don't.
 * With x + y and x - y beside each other in the tile (GCU_TILE_SUMS) a row of S has one number for
 * two columns, s, and which of the two it multiplies; that is what the matrix unit's form for
 * sparse operands takes, at twice the rate, and half the numbers are to be made.
 *
 * s and t are the bits i + 8 and i of a half word, i = 0 ... 7: register r of step c has i = c + 4
 * (r div 2). Step c's places of a quad's eight groups of two columns of rows g and g + 8 come
 * together in two lanes: those of even number of i = c, of odd number of i = c + 4, the first two
 * for c = 0, 1 and the last two for c = 2, 3. */
template <bool LARGE> struct gcu_fragments<GCU_DENSE_SIGN_PAIRS, LARGE> {
    gcu_row row;
    uint32_t call;
    uint4 w;
    uint32_t which[2][2];          /* of step c and fragment t, [c % 2][t] */
    uint32_t mine, turn, order[2]; /* how this lane puts places together */
    bool left;                     /* the first two lanes of a quad */
    __device__ __forceinline__ void start(const gcu_entries &e, uint32_t block, uint64_t block128,
                                          int q)
    {
        row = gcu_row_of(e.calls, (uint32_t)(block128 >> 30), block);
        call = (uint32_t)block128 * 4u + (uint32_t)q;
        left = q < 2;
        mine = q % 2 ? 0xF0F0F0F0u : 0x0F0F0F0Fu;
        turn = q % 2 ? 28u : 4u;
        order[0] = q < 2 ? 0x5140u : 0x1504u;
        order[1] = q < 2 ? 0x7362u : 0x3726u;
        draw(e);
    }
    static __device__ __forceinline__ uint32_t select(uint32_t mask, uint32_t a, uint32_t b)
    {
        return (a & mask) | (b & ~mask);
    }
    /* all lanes of the warp together */
    __device__ __forceinline__ void draw(const gcu_entries &e)
    {
        w = gcu_scheduled(e.calls, row, call);
        /* bytes: whether s and t differ, of the lower half words of rows 0 ... 3, and the upper */
        const uint32_t xy = __byte_perm(w.x, w.y, 0x7351) ^ __byte_perm(w.x, w.y, 0x6240);
        const uint32_t zw = __byte_perm(w.z, w.w, 0x7351) ^ __byte_perm(w.z, w.w, 0x6240);
        const uint32_t lower = __byte_perm(xy, zw, 0x5410), upper = __byte_perm(xy, zw, 0x7632);
        /* of a row's byte the lower four bits: lower and upper of c, of c + 1; upper: c + 4, c + 5
         */
        const uint32_t first = select(0x33333333u, lower, upper << 2);  /* c = 0 */
        const uint32_t second = select(0x33333333u, lower >> 2, upper); /* c = 2 */
        const uint32_t of_first = __shfl_xor_sync(0xFFFFFFFFu, first, 1);
        const uint32_t of_second = __shfl_xor_sync(0xFFFFFFFFu, second, 1);
        const uint32_t one = select(mine, first, __funnelshift_l(of_first, of_first, turn));
        const uint32_t two = select(mine, second, __funnelshift_l(of_second, of_second, turn));
        const uint32_t keep = left ? one : two;
        const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, left ? two : one, 2);
#pragma unroll
        for (int t = 0; t < 2; t++) {
            const uint32_t both = __byte_perm(keep, other, order[t]);
            which[0][t] = (both & 0x55555555u) | 0x88888888u;
            which[1][t] = (both >> 1 & 0x55555555u) | 0x88888888u;
        }
    }
    __device__ __forceinline__ void make(const gcu_entries &e, int c, uint32_t a[2][4],
                                         uint32_t places[2])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int m = 8 + c + 4 * h;
            a[0][2 * h] = gcu_two_signs(w.x, m);
            a[0][2 * h + 1] = gcu_two_signs(w.y, m);
            a[1][2 * h] = gcu_two_signs(w.z, m);
            a[1][2 * h + 1] = gcu_two_signs(w.w, m);
        }
        places[0] = which[c % 2][0];
        places[1] = which[c % 2][1];
        if (c == 3) {
            call += 4u;
            draw(e);
        }
    }
};

template <bool LARGE> struct gcu_fragments<GCU_DENSE_TERNARY, LARGE> {
    static constexpr int STEPS = 2;
    gcu_row row;
    uint32_t call;
    uint4 w;
    __device__ __forceinline__ void start(const gcu_entries &e, uint32_t block, uint64_t block128,
                                          int q)
    {
        row = gcu_row_of(e.calls, (uint32_t)(block128 >> 28), block);
        call = (uint32_t)block128 * 16u + (uint32_t)q * 4u;
        w = gcu_scheduled(e.calls, row, call);
    }
    /* The word of the next digits, 6 to their number being 'digits'; 'word' keeps those after. */
    static __device__ __forceinline__ uint32_t look_up(uint32_t table, uint32_t digits,
                                                       uint32_t &word)
    {
        /* both halves by name: the compiler would shift and mask the whole */
        uint32_t at;
        asm("{.reg .b64 p; mul.wide.u32 p, %0, %2; mov.b64 {%0, %1}, p;}"
            : "+r"(word), "=r"(at)
            : "r"(digits));
        uint32_t both;
        asm("ld.shared.b32 %0, [%1];" : "=r"(both) : "r"(table + (at << 7)));
        return both;
    }
    /* table: the lane's own column of it */
    __device__ __forceinline__ void make(const gcu_entries &e, const void *table, int g,
                                         uint32_t a[STEPS][2][4], uint32_t (*)[2][4])
    {
        const uint32_t column = gcu_shared_address(table);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t v = gcu_word(w, i);
#pragma unroll
            for (int u = 0; u < STEPS; u++) {
                uint32_t *to = a[u][i / 2] + i % 2;
                if (LARGE) {
                    const uint32_t four = look_up(column, 1296u, v);
                    to[0] = __byte_perm(four, 0u, 0x1404);
                    to[2] = __byte_perm(four, 0u, 0x3424);
                } else {
                    to[0] = look_up(column, 36u, v);
                    to[2] = look_up(column, 36u, v);
                }
            }
        }
        call += g == 8 / STEPS - 1 ? 13u : 1u;
        w = gcu_scheduled(e.calls, row, call);
    }
    __device__ __forceinline__ void skip(const gcu_entries &e)
    {
        call += 16u;
        w = gcu_scheduled(e.calls, row, call);
    }
};

/* One in 2^15 values: the tail's half instead of a marked one. A large table has what is read for
 * it. */
template <bool LARGE>
static __device__ __forceinline__ uint32_t gcu_tail_half(const gcu_entries &e, const void *table,
                                                         uint32_t t)
{
    gcu_gaussian16 g = e.gaussian16;
    if (LARGE) {
        g.tail_last = static_cast<const uint32_t *>(table) + GCU_SIGNED_BYTES / 4;
        g.tail_value = reinterpret_cast<const uint16_t *>(g.tail_last + GCU_TAILS_MOST);
    }
    return gcu_gaussian16_search(g, t);
}

template <bool LARGE> struct gcu_fragments<GCU_DENSE_GAUSSIAN16, LARGE> {
    static constexpr int STEPS = 1;
    gcu_row row;
    uint32_t call, upper, block; /* upper: the call's, and so that of the column div 2 */
    uint4 w[2];
    __device__ __forceinline__ void start(const gcu_entries &e, uint32_t block_, uint64_t block128,
                                          int q)
    {
        block = block_;
        upper = (uint32_t)(block128 >> 26);
        row = gcu_row_of(e.calls, upper, block);
        call = (uint32_t)block128 * 64u + (uint32_t)q * 16u;
        draw(e);
    }
    __device__ __forceinline__ void draw(const gcu_entries &e)
    {
        w[0] = gcu_scheduled(e.calls, row, call);
        w[1] = gcu_scheduled(e.calls, row, call + 1u);
    }
    /* 'table' in shared memory's addresses: a load adds two, so that the sum is no instruction */
    static __device__ __forceinline__ uint32_t half(uint32_t table, uint32_t at)
    {
        uint16_t bits;
        asm("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(table + at));
        return bits;
    }
    static __device__ __forceinline__ uint32_t two(uint32_t table, uint32_t w)
    {
        const uint32_t mask = LARGE ? 0x1FFFEu : 0xFFFEu;
        const uint32_t both =
            __byte_perm(half(table, w << 1 & mask), half(table, w >> 15 & mask), 0x5410);
        return LARGE ? both : both | (w & 0x80008000u);
    }
    static __device__ __forceinline__ bool marked(uint32_t r, uint32_t odd)
    {
        return (r >> (16 * odd) & 0x7FFFu) == 0x7E00u;
    }
    /* Entries of the tail in place of marks; r[h][i] is of call at + h, row i. One call in 4096. */
    __device__ __forceinline__ void tail(const gcu_entries &e, const void *table, uint32_t at,
                                         uint32_t r[2][4])
    {
#pragma unroll 1
        for (uint32_t n = 0; n < 4; n++) {
            const uint32_t h = n / 2, odd = n % 2;
            uint32_t v[4];
            bool any = false;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                v[i] = h ? r[1][i] : r[0][i];
                any = any || marked(v[i], odd);
            }
            if (!any) continue;
            const uint64_t column = ((uint64_t)upper << 32 | (at + h)) * 2u + odd;
            const uint4 t = gcu_scheduled(
                e.tails, gcu_row_of(e.tails, (uint32_t)(column >> 32), block), (uint32_t)column);
#pragma unroll 1
            for (int i = 0; i < 4; i++) {
                const uint32_t was = i == 0 ? v[0] : i == 1 ? v[1] : i == 2 ? v[2] : v[3];
                if (!marked(was, odd)) continue;
                const uint32_t half =
                    gcu_tail_half<LARGE>(e, table, gcu_word(t, i)) | (was >> (16 * odd) & 0x8000u);
                const uint32_t now = __byte_perm(was, half, odd ? 0x5410 : 0x3254);
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    if (h && i == j) r[1][j] = now;
                    if (!h && i == j) r[0][j] = now;
                }
            }
        }
    }
    __device__ __forceinline__ void make(const gcu_entries &e, const void *table, int g,
                                         uint32_t a[STEPS][2][4], uint32_t (*)[2][4])
    {
        uint32_t r[2][4], marks;
        const uint32_t at = call, halves = gcu_shared_address(table);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                r[h][i] = two(halves, gcu_word(w[h], i));
        call += g == 7 ? 50u : 2u;
        draw(e);
        /* a mark is NaN, and so is what any sum of products makes of it */
        asm("{.reg .b32 s; .reg .pred x, y;\n"
            "mul.rn.f16x2 s, %1, %2;\n"
            "fma.rn.f16x2 s, %3, %4, s;\n"
            "fma.rn.f16x2 s, %5, %6, s;\n"
            "fma.rn.f16x2 s, %7, %8, s;\n"
            "setp.nan.f16x2 x|y, s, s;\n"
            "or.pred x, x, y;\n"
            "selp.b32 %0, 1, 0, x;}"
            : "=r"(marks)
            : "r"(r[0][0]), "r"(r[0][1]), "r"(r[0][2]), "r"(r[0][3]), "r"(r[1][0]), "r"(r[1][1]),
              "r"(r[1][2]), "r"(r[1][3]));
        if (marks) tail(e, table, at, r);
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[0][i / 2][2 * h + i % 2] = r[h][i];
    }
    __device__ __forceinline__ void skip(const gcu_entries &e)
    {
        call += 64u;
        draw(e);
    }
};

template <bool LARGE> struct gcu_fragments<GCU_DENSE_GAUSSIAN32, LARGE> {
    static constexpr int STEPS = 1;
    gcu_row row;
    uint32_t call;
    __device__ __forceinline__ void start(const gcu_entries &e, uint32_t block, uint64_t block128,
                                          int q)
    {
        row = gcu_row_of(e.calls, (uint32_t)(block128 >> 25), block);
        call = (uint32_t)block128 * 128u + (uint32_t)q * 32u;
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
    __device__ __forceinline__ void make(const gcu_entries &e, const void *, int g,
                                         uint32_t a[STEPS][2][4], uint32_t (*low)[2][4])
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint4 even = gcu_scheduled(e.calls, row, call + 2u * h);
            const uint4 odd = gcu_scheduled(e.calls, row, call + 2u * h + 1u);
            const float2 e0 = gcu_box_muller(even.x, even.y), o0 = gcu_box_muller(odd.x, odd.y);
            split(e0.x, o0.x, a[0][0][2 * h], low[0][0][2 * h]);
            split(e0.y, o0.y, a[0][0][2 * h + 1], low[0][0][2 * h + 1]);
            const float2 e1 = gcu_box_muller(even.z, even.w), o1 = gcu_box_muller(odd.z, odd.w);
            split(e1.x, o1.x, a[0][1][2 * h], low[0][1][2 * h]);
            split(e1.y, o1.y, a[0][1][2 * h + 1], low[0][1][2 * h + 1]);
        }
        call += g == 7 ? 100u : 4u;
    }
    __device__ __forceinline__ void skip(const gcu_entries &)
    {
        call += 128u;
    }
};

#endif
