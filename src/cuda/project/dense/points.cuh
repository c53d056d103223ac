/* cuda/project/dense/points.cuh: a dense operator's product with many points, the points read once.
 *
 * A block of threads takes 64 points for each of its consuming warpgroups and walks the columns.
 * Every consuming warp fetches its own 16 points, 64 coordinates a stage, into a ring in shared
 * memory with cp.async; turns a stage into the fragments of the left operand (fp32 is cut into two
 * fp16 numbers whose sum it is to 22 bits and more, after an exact power of two taken from the
 * largest of the point's 64 coordinates); multiplies them with the operator's values, which four
 * producing warps make into a ring of stages of their own, shared by all points of the block; and
 * adds the 64 columns' products, so scaled, to sums in fp32. Promoting every 64 columns keeps the
 * tensor cores' truncation below fp32's own rounding (Ootomo and Yokota 2023).
 *
 * Columns within 32 are permuted: matrix unit step s = 2 g + (c >> 1) of 64 columns holds, in its
 * word 4 (c & 1) + t, the columns 32 g + 4 t + c and 32 g + 4 t + c + 16. So a thread's loads of
 * points are of four neighbours, and two signs come out of a word of 32 with a shift and one
 * logical operation. */
#ifndef GNOMON_CUDA_DENSE_POINTS_CUH
#define GNOMON_CUDA_DENSE_POINTS_CUH

#include "cuda/project/family.h"
#include "cuda/runtime/mma.cuh"
#include "cuda/runtime/wgmma.cuh"

#include <cuda_fp16.h>

enum { POINTS_KIND_SIGN, POINTS_KIND_ACHLIOPTAS, POINTS_KIND_GAUSSIAN16 };

/* How an element becomes fp16: two numbers, of fp32 or of the 16-bit types that fp16 does not
 * hold; or one, exactly. */
enum { POINTS_F32, POINTS_F16, POINTS_BF16, POINTS_BYTE };

enum {
    POINTS_SEGMENT = 4096, /* columns; the granule */
    POINTS_STEP = 64,      /* columns between promotions */
    POINTS_S_STAGES = 4,   /* one for each producing warp */
    POINTS_WARP_POINTS = 16,
    POINTS_GAUSSIAN_ROWS = 32, /* the most of a pass: the values take registers */
    POINTS_MANY_ROWS = 64, /* from these rows of a pass on a block has two consuming warpgroups */
    POINTS_GROUP = 64      /* points of a warpgroup */
};

struct points_params {
    gcu_points x;
    gcu_out out;
    gcu_stream stream, tail;
    gcu_gaussian16 gaussian16;
    int kind;
    int64_t task_row, task_rows;
    int64_t row_base;    /* of pass 0: task_row or up to three rows before */
    uint64_t col;        /* of the operator */
    int64_t total;       /* folded points of the task */
    int64_t first_point; /* of this launch */
    int64_t points;      /* of this launch */
    int64_t passes, groups, splits;
    int64_t unit_cols; /* columns of a split, a multiple of the segment */
    float *parts;      /* [segment][point of the launch][row - row_base], when splits > 1 */
    int64_t parts_rows;
    bool vector; /* 16-byte copies */
    int depth;   /* stages of a warp's ring of points */
    bool totals; /* sums of segments, in shared memory */
};

template <int N, int TYPE, bool ACROSS, bool HOPPER> struct points_shape {
    static constexpr int rows = N;
    static constexpr int size = TYPE == POINTS_F32 ? 4 : TYPE == POINTS_BYTE ? 1 : 2;
    static constexpr int consumers = N >= POINTS_MANY_ROWS ? 2 : 3; /* warpgroups */
    static constexpr int threads = 128 * (consumers + 1);
    static constexpr int block_points = POINTS_GROUP * consumers;
    /* registers of the threads that make values, and of those that use them */
    static constexpr int making = consumers == 2 ? 40 : 80;
    static constexpr int consuming = consumers == 2 ? 232 : 144;
    static constexpr int s_cols = N >= 64 ? 64 : 4096 / N;
    static constexpr int s_bytes = s_cols * N * 2;
    static constexpr int x_bytes = POINTS_WARP_POINTS * POINTS_STEP * size; /* a warp's stage */
    static constexpr int deep = 12 / size, shallow = 8 / size;
    static constexpr int x_step = 4 * consumers * x_bytes; /* all warps' */
    static constexpr int info_bytes = 4 * consumers * POINTS_WARP_POINTS * 24;
    static constexpr int totals_bytes = consumers * 128 * (N / 2) * 4;
    static constexpr int table_bytes = 2 << 15;
    static size_t shared(int depth, bool totals, bool table)
    {
        return (size_t)1024 + 128 + POINTS_S_STAGES * s_bytes + depth * x_step + info_bytes +
               (totals ? totals_bytes : 0) + (table ? table_bytes : 0);
    }
};

#ifdef __CUDACC__

/* ---- small parts ---- */

__device__ __forceinline__ void points_barrier_init(uint32_t at, int count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory");
}

__device__ __forceinline__ void points_barrier_arrive(uint32_t at)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
}

__device__ __forceinline__ void points_barrier_wait(uint32_t at, uint32_t parity)
{
    uint32_t done = 0;
    while (!done) {
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(at), "r"(parity)
                     : "memory");
#endif
    }
}

__device__ __forceinline__ float4 points_lds128(uint32_t at)
{
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

__device__ __forceinline__ uint2 points_lds64(uint32_t at)
{
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at) : "memory");
    return v;
}

__device__ __forceinline__ uint32_t points_lds16(uint32_t at)
{
    uint16_t v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at) : "memory");
    return v;
}

__device__ __forceinline__ void points_sts128(uint32_t at, uint4 v)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

template <int SIZE> __device__ __forceinline__ void points_sts(uint32_t at, uint32_t v)
{
    if (SIZE == 4)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
    else if (SIZE == 2)
        asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"((uint16_t)v) : "memory");
    else
        asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}

/* ---- the operator's values ---- */

/* Where the 16 bytes of row n, 32-column group g of the stage, chunk c lie: tiles of 64 columns, a
 * row 128 bytes, the chunks of a row exchanged by its number (the layout that wgmma calls 128-byte
 * swizzle). */
template <int N>
__device__ __forceinline__ uint32_t points_s_at(uint32_t stage, int n, int g, int c)
{
    return stage + (g >> 1) * (N * 128) + n * 128 + ((((g & 1) * 4 + c) ^ (n & 7)) << 4);
}

/* The row of a stage that A's row is. PAIRED: such that the sums of two neighbours and those of 16
 * columns on lie in the registers where a left operand has them (levels.cu). */
template <bool PAIRED> __device__ __forceinline__ int points_place(int row)
{
    return PAIRED ? (row & 32) | (row & 3) << 3 | (row & 12) >> 1 | (row & 16) >> 4 | (row & ~63)
                  : row;
}

template <int N, int COLS, bool PAIRED = false>
__device__ __forceinline__ void points_make_signs(const points_params &p, uint32_t stage, int lane,
                                                  uint32_t block, uint64_t col)
{
#pragma unroll 1
    for (int item = lane; item < N / 4 * (COLS / 32); item += 32) {
        const int a = item % (N / 4), g = item / (N / 4);
        const uint4 w = gcu_call(p.stream, block + a, (col >> 5) + g);
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int c =
                    (r + (lane >> 1)) & 3; /* so that a warp's stores meet no bank twice */
                const uint32_t s = gcu_word(w, i) << (3 - c);
                const uint32_t one = 0x3C003C00u, sign = 0x80008000u;
                points_sts128(points_s_at<N>(stage, points_place<PAIRED>(4 * a + i), g, c),
                              make_uint4(((s << 12) & sign) ^ one, ((s << 8) & sign) ^ one,
                                         ((s << 4) & sign) ^ one, (s & sign) ^ one));
            }
        }
    }
}

template <int N, int COLS, bool PAIRED = false>
__device__ __forceinline__ void points_make_achlioptas(const points_params &p, uint32_t stage,
                                                       int lane, uint32_t block, uint64_t col)
{
#pragma unroll 1
    for (int item = lane; item < N / 4 * (COLS / 32); item += 32) {
        const int a = item % (N / 4), g = item / (N / 4);
        uint32_t some[4] = {0, 0, 0, 0}, negative[4] = {0, 0, 0, 0};
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const uint4 w = gcu_call(p.stream, block + a, (col >> 3) + 4 * g + q);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                uint32_t x = gcu_word(w, i);
#pragma unroll
                for (int u = 0; u < 8; u++) {
                    const uint32_t d = __umulhi(x, 6u);
                    x *= 6u;
                    if (d < 2) some[i] |= 1u << (8 * q + u);
                    if (d == 1) negative[i] |= 1u << (8 * q + u);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                const int c = (r + (lane >> 1)) & 3;
                uint32_t v[4];
#pragma unroll
                for (int t = 0; t < 4; t++) {
                    const uint32_t there = (some[i] << (3 - c) << (12 - 4 * t)) & 0x80008000u;
                    const uint32_t sign = (negative[i] << (3 - c) << (12 - 4 * t)) & 0x80008000u;
                    v[t] = ((there >> 15) * 0x3C00u) | sign;
                }
                points_sts128(points_s_at<N>(stage, points_place<PAIRED>(4 * a + i), g, c),
                              make_uint4(v[0], v[1], v[2], v[3]));
            }
        }
    }
}

/* fp16 bits of the value that h stands for; tails are left as 0x7E00 with the sign, and noted. */
__device__ __forceinline__ uint32_t points_gaussian16(uint32_t table, uint32_t h, uint32_t *tails)
{
    const uint32_t magnitude = points_lds16(table + (h & 0x7FFF) * 2);
    *tails |= magnitude == 0x7E00;
    return magnitude | (h & 0x8000);
}

/* One value in 2^15 lies in the tail: those of rows 4 a ... 4 a + 3, chunks c and c + 1. */
template <int N>
__device__ __forceinline__ void points_fill_tails(const points_params &p, uint32_t stage,
                                                  uint32_t block, int a, int g, int c,
                                                  uint64_t first)
{
#pragma unroll 1
    for (int at = 0; at < 64; at++) {
        const int i = at >> 4, chunk = at >> 3 & 1, t = at >> 1 & 3, half = at & 1;
        const uint32_t to = points_s_at<N>(stage, 4 * a + i, g, c + chunk) + 4 * t + 2 * half;
        const uint32_t bits = points_lds16(to);
        if ((bits & 0x7FFF) != 0x7E00) continue;
        const uint4 w = gcu_call(p.tail, block + a, first + chunk + 4 * t + 16 * half);
        points_sts<2>(to, gcu_gaussian16_tail(p.gaussian16, gcu_word(w, i)) | (bits & 0x8000));
    }
}

template <int N, int COLS>
__device__ __forceinline__ void points_make_gaussian16(const points_params &p, uint32_t stage,
                                                       uint32_t table, int lane, uint32_t block,
                                                       uint64_t col)
{
#pragma unroll 1
    for (int item = lane; item < N / 4 * (COLS / 32) * 2; item += 32) {
        const int a = item % (N / 4), g = item / (N / 4) >> 1, c = item / (N / 4) % 2 * 2;
        const uint64_t first = col + 32 * g + c;
        uint4 v[4][2];
        uint32_t tails = 0;
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const uint64_t j = first + 4 * t;
            const uint4 low = gcu_call(p.stream, block + a, j >> 1);
            const uint4 high = gcu_call(p.stream, block + a, (j >> 1) + 8);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const uint32_t w = gcu_word(low, i), z = gcu_word(high, i);
                const uint32_t even = points_gaussian16(table, w & 0xFFFF, &tails) |
                                      points_gaussian16(table, z & 0xFFFF, &tails) << 16;
                const uint32_t odd = points_gaussian16(table, w >> 16, &tails) |
                                     points_gaussian16(table, z >> 16, &tails) << 16;
                (t == 0 ? v[i][0].x : t == 1 ? v[i][0].y : t == 2 ? v[i][0].z : v[i][0].w) = even;
                (t == 0 ? v[i][1].x : t == 1 ? v[i][1].y : t == 2 ? v[i][1].z : v[i][1].w) = odd;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            points_sts128(points_s_at<N>(stage, 4 * a + i, g, c), v[i][0]);
            points_sts128(points_s_at<N>(stage, 4 * a + i, g, c + 1), v[i][1]);
        }
        if (tails) points_fill_tails<N>(p, stage, block, a, g, c, first);
    }
}

/* ---- units of work ---- */

struct points_unit {
    int64_t pass, first; /* first point */
    int64_t begin, end;  /* columns of the task */
    __device__ __forceinline__ int steps() const
    {
        return (int)((end - begin + POINTS_STEP - 1) / POINTS_STEP);
    }
};

template <int POINTS>
__device__ __forceinline__ bool points_unit_of(const points_params &p, int64_t number,
                                               points_unit *u)
{
    if (number >= p.passes * p.groups * p.splits) return false;
    u->pass = number % p.passes;
    const int64_t rest = number / p.passes;
    u->first = p.first_point + rest % p.groups * POINTS;
    u->begin = rest / p.groups * p.unit_cols;
    u->end = u->begin + p.unit_cols < p.x.block_cols ? u->begin + p.unit_cols : p.x.block_cols;
    return true;
}

/* ---- points into the ring ---- */

/* Where an element (16 bytes of them) lies in a warp's stage; exchanged so that neither the copies
 * nor the reads of fragments meet a bank twice. Point 'row' of 16, coordinate q of 64. */
template <int SIZE, bool ACROSS> __device__ __forceinline__ uint32_t points_x_at(int row, int q)
{
    if (!ACROSS) {
        const uint32_t at = (row * 64 + q) * SIZE;
        if (SIZE == 1) return at ^ (((row >> 1) & 3) << 4);
        return at ^ (((row & 1) << 2 | (row & 2) | ((row >> 2) & 1)) << 4);
    }
    const uint32_t at = (q * 16 + row) * SIZE;
    if (SIZE == 1) return at ^ (((q >> 3) & 1) << 4);
    return at ^ (((q >> 2) & 3) << 5);
}

struct points_row {
    const char *data; /* of coordinate 0 */
    int64_t first, end;
};

/* What a warp fetches next. */
struct points_cursor {
    int64_t unit;
    points_unit u;
    int step, steps;
    int whole_from, whole_to; /* steps whose coordinates all 16 points have */
    const char *from;         /* of the lane's first copy of the next step */
    int64_t stride;           /* between its copies, bytes */
    int bytes;                /* of its copies: fewer than 16 beside the last points (across) */
    bool even;                /* so they lie */
    bool more;
};

template <int SIZE, bool ACROSS> struct points_copies {
    static constexpr int each = 16 / SIZE;                   /* elements of a copy */
    static constexpr int lanes = (ACROSS ? 16 : 64) / each;  /* of a row (of a coordinate) */
    static constexpr int apart = 32 / lanes;                 /* rows between a lane's copies */
    static constexpr int count = (ACROSS ? 64 : 16) / apart; /* a lane's */
};

template <int N, int TYPE, bool ACROSS, bool HOPPER>
__device__ __forceinline__ void points_aim(const points_params &p, points_cursor *c,
                                           points_row *rows, int warp, int lane)
{
    using shape = points_shape<N, TYPE, ACROSS, HOPPER>;
    using copies = points_copies<shape::size, ACROSS>;
    c->more = points_unit_of<shape::block_points>(p, c->unit, &c->u);
    if (!c->more) return;
    c->step = 0;
    c->steps = c->u.steps();
    const int64_t last = p.first_point + p.points - 1;
    int64_t v = c->u.first + warp * POINTS_WARP_POINTS + (lane & 15);
    /* sums of points that are not there go nowhere; a copy across begins with its first point */
    if (v > last) v = ACROSS ? last - last % copies::each : last;
    const int64_t b = p.x.blocks == 1 ? 0 : v / p.x.n, i = v - b * p.x.n;
    points_row row;
    row.data = static_cast<const char *>(p.x.data) +
               (i * p.x.row_stride + b * p.x.block_stride) * shape::size;
    const int64_t base = b * p.x.block_cols;
    row.first = p.x.first > base ? p.x.first - base : 0;
    row.end = p.x.end - base < p.x.block_cols ? p.x.end - base : p.x.block_cols;
    int64_t first = row.first, end = row.end;
#pragma unroll
    for (int d = 1; d < 16; d *= 2) {
        const int64_t f = __shfl_xor_sync(~0u, first, d), e = __shfl_xor_sync(~0u, end, d);
        first = first > f ? first : f;
        end = end < e ? end : e;
    }
    first = first > c->u.begin ? first - c->u.begin : 0;
    end = (end < c->u.end ? end : c->u.end) - c->u.begin;
    c->whole_from = p.vector && end > 0 ? (int)((first + POINTS_STEP - 1) / POINTS_STEP) : 0;
    c->whole_to = p.vector && end > 0 ? (int)(end / POINTS_STEP) : 0;
    const int64_t data = (int64_t)row.data, zero = __shfl_sync(~0u, data, 0);
    const int64_t apart = __shfl_sync(~0u, data, 1) - zero;
    if (!ACROSS) {
        c->even = __all_sync(~0u, data == zero + (lane & 15) * apart);
        c->stride = apart * copies::apart;
        c->from =
            reinterpret_cast<const char *>(zero + lane / copies::lanes * apart +
                                           lane % copies::lanes * 16 + c->u.begin * shape::size);
    } else {
        /* a copy's points lie together, by what 'vector' says */
        const int64_t of = __shfl_sync(~0u, v, lane % copies::lanes * copies::each);
        const int64_t left = last + 1 - of;
        c->even = true;
        c->bytes = (int)(left < copies::each ? left : copies::each) * shape::size;
        c->stride = copies::apart * p.x.col_stride * shape::size;
        c->from = reinterpret_cast<const char *>(
                      __shfl_sync(~0u, data, lane % copies::lanes * copies::each)) +
                  (c->u.begin + lane / copies::lanes) * p.x.col_stride * shape::size;
    }
    __syncwarp();
    if (lane < 16) rows[lane] = row;
    __syncwarp();
}

/* Fetches one stage of the warp's points. */
template <int SIZE, bool ACROSS>
__device__ __forceinline__ void points_fetch(const points_params &p, points_cursor *c,
                                             const points_row *rows, uint32_t stage, int lane)
{
    using copies = points_copies<SIZE, ACROSS>;
    const bool whole = c->whole_from <= c->step && c->step < c->whole_to;
    const int64_t q0 = c->u.begin + (int64_t)c->step * POINTS_STEP;
    const char *from = c->from;
    c->from += POINTS_STEP * SIZE * (ACROSS ? p.x.col_stride : 1);
    if (whole && c->even) {
        const int line = lane / copies::lanes, in = lane % copies::lanes * copies::each;
        const uint32_t to =
            ACROSS ? points_x_at<SIZE, ACROSS>(in, line) : points_x_at<SIZE, ACROSS>(line, in);
        const int64_t stride = c->stride;
#pragma unroll
        for (int i = 0; i < copies::count; i++, from += stride) {
            /* the exchange of 16-byte parts is linear in the bits of row and coordinate */
            const uint32_t exchange = (ACROSS ? points_x_at<SIZE, ACROSS>(0, copies::apart * i)
                                              : points_x_at<SIZE, ACROSS>(copies::apart * i, 0)) %
                                      512;
            gcu_copy16(stage + (to ^ exchange) + 512 * i, from, ACROSS ? c->bytes : 16);
        }
        return;
    }
    if (whole) {
#pragma unroll 1
        for (int r = lane / copies::lanes; r < 16; r += copies::apart) {
            const int q = lane % copies::lanes * copies::each;
            gcu_copy16(stage + points_x_at<SIZE, ACROSS>(r, q), rows[r].data + (q0 + q) * SIZE, 16);
        }
        return;
    }
#pragma unroll 1
    for (int at = lane; at < 16 * 64; at += 32) {
        const int r = ACROSS ? at % 16 : at / 64, q = ACROSS ? at / 16 : at % 64;
        const points_row row = rows[r];
        const int64_t j = q0 + q;
        const bool there = j >= row.first && j < row.end;
        const char *one = row.data + (there ? j * p.x.col_stride * SIZE : 0);
        const uint32_t to = stage + points_x_at<SIZE, ACROSS>(r, q);
        if (SIZE == 4)
            gcu_copy4(to, one, there ? 4 : 0);
        else if (SIZE == 2)
            points_sts<SIZE>(to, there ? *reinterpret_cast<const uint16_t *>(one) : 0);
        else
            points_sts<SIZE>(to, there ? *reinterpret_cast<const uint8_t *>(one) : 0);
    }
}

/* ---- fragments ---- */

/* Raw words of a thread's part of a stage: the points of fragment rows lane / 4 and lane / 4 + 8
 * (across: points 2 (lane / 4) and the next), coordinates 32 g + 16 h + 4 t + e. */
template <int SIZE, bool ACROSS> struct points_raw {
    static constexpr int words = 8 * SIZE; /* 32 elements */
    uint32_t w[words];
    __device__ __forceinline__ void read(uint32_t stage, int lane)
    {
        const int row = lane >> 2, t = lane & 3;
        if constexpr (SIZE == 4 && !ACROSS) {
            /* two addresses, the others being so far from one of them */
            const uint32_t even = stage + points_x_at<4, false>(row, 4 * t);
            const uint32_t odd = stage + points_x_at<4, false>(row, 16 + 4 * t);
#pragma unroll
            for (int m = 0; m < 2; m++)
#pragma unroll
                for (int gh = 0; gh < 4; gh++) {
                    const uint32_t apart = 8 * m * 256 + (gh >> 1) * 128;
                    const float4 v = points_lds128((gh & 1 ? odd : even) + apart);
                    w[(m * 4 + gh) * 4 + 0] = __float_as_uint(v.x);
                    w[(m * 4 + gh) * 4 + 1] = __float_as_uint(v.y);
                    w[(m * 4 + gh) * 4 + 2] = __float_as_uint(v.z);
                    w[(m * 4 + gh) * 4 + 3] = __float_as_uint(v.w);
                }
        } else {
#pragma unroll
            for (int gh = 0; gh < 4; gh++) {
                if (!ACROSS) {
#pragma unroll
                    for (int m = 0; m < 2; m++) {
                        const uint32_t at =
                            stage + points_x_at<SIZE, ACROSS>(row + 8 * m, 16 * gh + 4 * t);
                        if (SIZE == 2) {
                            const uint2 v = points_lds64(at);
                            w[(m * 4 + gh) * 2 + 0] = v.x;
                            w[(m * 4 + gh) * 2 + 1] = v.y;
                        } else {
                            w[m * 4 + gh] = gcu_load_shared_word(at);
                        }
                    }
                } else {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const uint32_t at =
                            stage + points_x_at<SIZE, ACROSS>(2 * row, 16 * gh + 4 * t + e);
                        if (SIZE == 4) {
                            const uint2 v = points_lds64(at);
                            w[gh * 4 + e] = v.x;
                            w[16 + gh * 4 + e] = v.y;
                        } else if (SIZE == 2) { /* to the order of the other layout */
                            const uint32_t v = gcu_load_shared_word(at);
                            if (e % 2 == 0) {
                                w[gh * 2 + e / 2] = v;
                            } else {
                                const uint32_t before = w[gh * 2 + e / 2];
                                w[gh * 2 + e / 2] = __byte_perm(before, v, 0x5410);
                                w[8 + gh * 2 + e / 2] = __byte_perm(before, v, 0x7632);
                            }
                        } else {
                            const uint32_t v = points_lds16(at);
                            if (e == 0) {
                                w[gh] = v & 0xFF;
                                w[4 + gh] = v >> 8;
                            } else {
                                w[gh] |= (v & 0xFF) << (8 * e);
                                w[4 + gh] |= (v >> 8) << (8 * e);
                            }
                        }
                    }
                }
            }
        }
    }
};

__device__ __forceinline__ uint32_t points_pack(float low, float high)
{
    const __half2 h = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&h);
}

/* Fragments of 64 columns: register 4 * step + 2 * half + m, half: words 0 ... 3 or 4 ... 7 of the
 * step, m: rows 0 ... 7 or 8 ... 15, that is, the order of wgmma's and mma's left operand. */
struct points_fragments {
    uint32_t high[16], low[16];
    float unscale[2];
};

/* x[m][16 g + 4 ... ]: element (g, h, e) of row m at x[16 m + 8 g + 4 h + e] */
__device__ __forceinline__ void points_split(const float *x, points_fragments *f)
{
#pragma unroll
    for (int m = 0; m < 2; m++) {
        float top[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            top[j] = fmaxf(fabsf(x[16 * m + j]), fabsf(x[16 * m + 8 + j]));
#pragma unroll
        for (int d = 4; d > 0; d /= 2) {
#pragma unroll
            for (int j = 0; j < d; j++)
                top[j] = fmaxf(top[j], top[j + d]);
        }
        float most = top[0];
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        /* the largest goes to [2^14, 2^15); below 2^-113 the scale is 2^127, and nothing is lost */
        const int exponent = max((int)(__float_as_uint(most) >> 23), 14);
        const float scale = __uint_as_float((uint32_t)(268 - exponent) << 23);
        f->unscale[m] =
            exponent == 14 ? 0x1p-127f : __uint_as_float((uint32_t)(exponent - 14) << 23);
#pragma unroll
        for (int g = 0; g < 2; g++) {
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float v0 = x[16 * m + 8 * g + c] * scale,
                            v1 = x[16 * m + 8 * g + 4 + c] * scale;
                const __half2 h = __floats2half2_rn(v0, v1);
                const float2 back = __half22float2(h);
                const int at = 4 * (2 * g + (c >> 1)) + 2 * (c & 1) + m;
                f->high[at] = *reinterpret_cast<const uint32_t *>(&h);
                f->low[at] = points_pack(v0 - back.x, v1 - back.y);
            }
        }
    }
}

template <int TYPE, bool ACROSS, int SIZE>
__device__ __forceinline__ void points_convert(const points_raw<SIZE, ACROSS> &raw,
                                               gnomon_dtype dtype, points_fragments *f)
{
    if constexpr (TYPE == POINTS_F32) {
        float x[32];
#pragma unroll
        for (int j = 0; j < 32; j++)
            x[j] = __uint_as_float(raw.w[j]);
        points_split(x, f);
    } else if constexpr (TYPE == POINTS_BF16) {
        float x[32];
        if (dtype == GNOMON_BF16) {
#pragma unroll
            for (int j = 0; j < 16; j++) {
                x[2 * j] = __uint_as_float(raw.w[j] << 16);
                x[2 * j + 1] = __uint_as_float(raw.w[j] & 0xFFFF0000u);
            }
        } else if (dtype == GNOMON_I16) {
#pragma unroll
            for (int j = 0; j < 16; j++) {
                x[2 * j] = (float)(int16_t)(raw.w[j] & 0xFFFF);
                x[2 * j + 1] = (float)((int32_t)raw.w[j] >> 16);
            }
        } else {
#pragma unroll
            for (int j = 0; j < 16; j++) {
                x[2 * j] = (float)(raw.w[j] & 0xFFFF);
                x[2 * j + 1] = (float)(raw.w[j] >> 16);
            }
        }
        points_split(x, f);
    } else if constexpr (TYPE == POINTS_F16) {
#pragma unroll
        for (int m = 0; m < 2; m++) {
#pragma unroll
            for (int g = 0; g < 2; g++) {
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const uint32_t low = raw.w[8 * m + 4 * g + c / 2];
                    const uint32_t high = raw.w[8 * m + 4 * g + 2 + c / 2];
                    f->high[4 * (2 * g + (c >> 1)) + 2 * (c & 1) + m] =
                        __byte_perm(low, high, c % 2 == 0 ? 0x5410 : 0x7632);
                }
            }
        }
    } else {
        /* 1024 + byte is the fp16 number 0x6400 + byte; signed bytes have 128 added first */
        const uint32_t flip = dtype == GNOMON_I8 ? 0x80808080u : 0;
        const __half2 off =
            dtype == GNOMON_I8 ? __float2half2_rn(1152.0f) : __float2half2_rn(1024.0f);
#pragma unroll
        for (int m = 0; m < 2; m++) {
#pragma unroll
            for (int g = 0; g < 2; g++) {
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const uint32_t low = raw.w[4 * m + 2 * g] ^ flip;
                    const uint32_t high = raw.w[4 * m + 2 * g + 1] ^ flip;
                    const uint32_t both =
                        __byte_perm(__byte_perm(low, high, c | (c + 4) << 4), 0x64646464u, 0x4140);
                    const __half2 h = __hsub2(*reinterpret_cast<const __half2 *>(&both), off);
                    f->high[4 * (2 * g + (c >> 1)) + 2 * (c & 1) + m] =
                        *reinterpret_cast<const uint32_t *>(&h);
                }
            }
        }
    }
}

/* ---- products ---- */

/* A warp's 16 points x 64 columns times a tile of 64 columns x N values. */
template <int N>
__device__ __forceinline__ void points_mma(float *d, const uint32_t *a, uint32_t tile, int lane)
{
#pragma unroll
    for (int step = 0; step < 4; step++) {
#pragma unroll
        for (int pair = 0; pair < N / 16; pair++) {
            const int n = 16 * pair + 8 * (lane >> 4) + (lane & 7),
                      c = 2 * step + ((lane >> 3) & 1);
            uint32_t b[4];
            gcu_load_4_matrices(b, tile + n * 128 + ((c ^ (n & 7)) << 4));
#pragma unroll
            for (int half = 0; half < 2; half++)
                gcu_mma(d + 8 * pair + 4 * half, a + 4 * step, b[2 * half], b[2 * half + 1]);
        }
    }
}

/* part = the fragments times a tile, high halves and low ones: begun here, on Hopper, and there
 * after points_multiplied. */
template <int N, bool TWO, bool HOPPER>
__device__ __forceinline__ void points_multiply(float *part, points_fragments &f, uint32_t tile,
                                                int lane)
{
    if constexpr (HOPPER) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        const uint32_t descriptor = gcu_wgmma_descriptor(tile);
        /* the fragments are made before the fence, not between the products */
#pragma unroll
        for (int j = 0; j < 16; j++) {
            asm volatile("" : "+r"(f.high[j])::"memory");
            if (TWO) asm volatile("" : "+r"(f.low[j])::"memory");
        }
        gcu_wgmma_fence();
#pragma unroll
        for (int step = 0; step < 4; step++)
            gcu_wgmma<N>(part, f.high + 4 * step, descriptor + 2 * step, step > 0);
        if (TWO) {
#pragma unroll
            for (int step = 0; step < 4; step++)
                gcu_wgmma<N>(part, f.low + 4 * step, descriptor + 2 * step, 1);
        }
        gcu_wgmma_commit();
#endif
    } else {
#pragma unroll
        for (int j = 0; j < N / 2; j++)
            part[j] = 0.0f;
        points_mma<N>(part, f.high, tile, lane);
        if (TWO) points_mma<N>(part, f.low, tile, lane);
    }
}

template <int N, bool TWO, bool HOPPER>
__device__ __forceinline__ void points_multiplied(float *part, points_fragments &f)
{
    if constexpr (HOPPER) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
        gcu_wgmma_wait<0>();
        /* neither are sums read before this, nor fragments' registers used otherwise */
        gcu_wgmma_fence_operands<N / 2>(part);
#pragma unroll
        for (int j = 0; j < 16; j++) {
            asm volatile("" : "+r"(f.high[j])::"memory");
            if (TWO) asm volatile("" : "+r"(f.low[j])::"memory");
        }
#endif
    }
}

/* ---- what becomes of the sums ---- */

/* Where a point's row of sums goes: rows [low, high) of A, row a to y[a * col_stride]. */
struct points_exit {
    float *y;
    int64_t low, high;
    float factor, rest; /* whose sum is the factor, to 48 bits */
};

__device__ __forceinline__ points_exit points_exit_of(const points_params &p, int64_t v)
{
    const gcu_out &out = p.out;
    const int64_t b = p.x.blocks == 1 ? 0 : v / p.x.n, i = v - b * p.x.n;
    int64_t first = 0, rows = out.k;
    if (out.r > 1) { /* B + 1 <= r <= k <= 2^32, so the products stay below 2^64 */
        const uint64_t block = (uint64_t)(out.block + b), k = (uint64_t)out.k, r = (uint64_t)out.r;
        first = (int64_t)(block * k / r);
        rows = (block + 1 == r ? out.k : (int64_t)((block + 1) * k / r)) - first;
    }
    points_exit e;
    const double factor = rows == (out.k + out.r - 1) / out.r ? out.factor_most : out.factor_least;
    e.factor = (float)factor;
    e.rest = (float)(factor - (double)e.factor);
    e.low = p.task_row > out.row - first ? p.task_row : out.row - first;
    e.high = p.task_row + p.task_rows < rows ? p.task_row + p.task_rows : rows;
    if (out.row + out.rows - first < e.high) e.high = out.row + out.rows - first;
    e.y = static_cast<float *>(out.y) + i * out.row_stride + (first - out.row) * out.col_stride;
    return e;
}

/* factor * total: the product in fp32 with what its rounding and the factor's left out. */
__device__ __forceinline__ float points_scaled(const points_exit &e, float total)
{
    const float p = __fmul_rn(total, e.factor);
    const float more = __fmaf_rn(total, e.rest, __fmaf_rn(total, e.factor, -p));
    return fabsf(p) < INFINITY ? __fadd_rn(p, more) : p;
}

__device__ __forceinline__ void points_put(const points_params &p, const points_exit &e, int64_t a,
                                           float total)
{
    if (a < e.low || a >= e.high) return;
    float *y = e.y + a * p.out.col_stride;
    *y = p.out.beta == 0.0
             ? points_scaled(e, total)
             : gcu_finished((double)e.factor + (double)e.rest, (double)total, p.out.beta, y);
}

/* The sums of a thread: element 4 j + 2 m + e is row 8 j + 2 (lane & 3) + e of the pass, point
 * v[m]. */
template <int N>
__device__ __forceinline__ void points_emit(const points_params &p, int64_t pass, int64_t segment,
                                            const int64_t *v, int lane, const float *sum)
{
    const int64_t begin = p.row_base + pass * N;
    const int64_t row0 = begin + 2 * (lane & 3);
#pragma unroll 1
    for (int m = 0; m < 2; m++) {
        const bool there = v[m] < p.first_point + p.points;
        if (p.splits > 1) {
            if (!there) continue;
            float *to = p.parts + (segment * p.points + v[m] - p.first_point) * p.parts_rows +
                        row0 - p.row_base;
#pragma unroll
            for (int j = 0; j < N / 8; j++)
                *reinterpret_cast<float2 *>(to + 8 * j) =
                    m == 0 ? make_float2(sum[4 * j], sum[4 * j + 1])
                           : make_float2(sum[4 * j + 2], sum[4 * j + 3]);
        } else if (!p.out.finishes) {
            if (!there) continue;
            float *carry = static_cast<float *>(p.out.carry) + v[m];
#pragma unroll
            for (int j = 0; j < N / 4; j++) {
                const int64_t a = row0 + 8 * (j >> 1) + (j & 1) - p.task_row;
                const int at = 4 * (j >> 1) + (j & 1);
                if (a >= 0 && a < p.task_rows) carry[a * p.total] = m == 0 ? sum[at] : sum[at + 2];
            }
        } else {
            const points_exit e = points_exit_of(p, there ? v[m] : p.first_point + p.points - 1);
            float *const y = e.y + begin;
            const bool straight = p.out.beta == 0.0 && p.out.col_stride == 1 && e.low <= begin &&
                                  begin + N <= e.high && (uintptr_t)y % 16 == 0;
            if (__all_sync(~0u, straight)) {
                /* pairs of lanes exchange halves, for 16-byte stores */
                const int odd = lane & 1;
                float *const to = y + 8 * odd + 2 * (lane & 2);
                const auto store = [&](auto scaled) {
#pragma unroll
                    for (int j = 0; j < N / 8; j += 2) {
                        const float a0 = scaled(m == 0 ? sum[4 * j] : sum[4 * j + 2]);
                        const float a1 = scaled(m == 0 ? sum[4 * j + 1] : sum[4 * j + 3]);
                        const float b0 = scaled(m == 0 ? sum[4 * j + 4] : sum[4 * j + 6]);
                        const float b1 = scaled(m == 0 ? sum[4 * j + 5] : sum[4 * j + 7]);
                        const float c0 = __shfl_xor_sync(~0u, odd ? a0 : b0, 1);
                        const float c1 = __shfl_xor_sync(~0u, odd ? a1 : b1, 1);
                        if (there)
                            *reinterpret_cast<float4 *>(to + 8 * j) =
                                odd ? make_float4(c0, c1, b0, b1) : make_float4(a0, a1, c0, c1);
                    }
                };
                if (__all_sync(~0u, e.factor == 1.0f && e.rest == 0.0f)) /* between levels */
                    store([](float total) { return __fadd_rn(total, 0.0f); });
                else
                    store([&](float total) { return points_scaled(e, total); });
            } else if (there) {
#pragma unroll
                for (int j = 0; j < N / 4; j++) {
                    const int at = 4 * (j >> 1) + (j & 1);
                    points_put(p, e, row0 + 8 * (j >> 1) + (j & 1), m == 0 ? sum[at] : sum[at + 2]);
                }
            }
        }
    }
}

/* ---- the kernel ---- */

template <int N, int TYPE, bool ACROSS, bool HOPPER>
__global__ void __launch_bounds__(points_shape<N, TYPE, ACROSS, HOPPER>::threads, 1)
    points_kernel(const __grid_constant__ points_params p)
{
#if !defined(__CUDA_ARCH_FEAT_SM90_ALL)
    if constexpr (HOPPER)
        __trap();
    else
#endif
    {
        using shape = points_shape<N, TYPE, ACROSS, HOPPER>;
        constexpr int size = shape::size;
        extern __shared__ unsigned char shared_memory[];
        const uint32_t base = (gcu_shared_address(shared_memory) + 1023) & ~1023u;
        const uint32_t s_ring = base;
        const uint32_t x_ring = s_ring + POINTS_S_STAGES * shape::s_bytes;
        const uint32_t info = x_ring + p.depth * shape::x_step;
        const uint32_t barriers = info + shape::info_bytes; /* full, then empty */
        const uint32_t totals = barriers + 128;
        const uint32_t table = totals + (p.totals ? shape::totals_bytes : 0);
        unsigned char *generic = shared_memory + (base - gcu_shared_address(shared_memory));
        const int tid = threadIdx.x, lane = tid & 31, group = tid >> 7;

        if (tid == 0) {
            for (int s = 0; s < POINTS_S_STAGES; s++) {
                points_barrier_init(barriers + 8 * s, 1);
                points_barrier_init(barriers + 32 + 8 * s, 4 * shape::consumers);
            }
        }
        if (p.kind == POINTS_KIND_GAUSSIAN16) {
            const uint4 *from = reinterpret_cast<const uint4 *>(p.gaussian16.magnitude);
            for (int i = tid; i < shape::table_bytes / 16; i += shape::threads)
                points_sts128(table + 16 * i, from[i]);
        }
        __syncthreads();

        if (group == shape::consumers) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
            if constexpr (HOPPER) gcu_registers_dealloc<shape::making>();
#endif
            const int warp = (tid >> 5) & 3;
            const uint32_t stage = s_ring + warp * shape::s_bytes;
            const uint32_t full = barriers + 8 * warp, empty = full + 32;
            uint32_t parity = 1;
            int next_warp = 0;
            points_unit u;
            for (int64_t number = blockIdx.x; points_unit_of<shape::block_points>(p, number, &u);
                 number += gridDim.x) {
                const uint32_t block = (uint32_t)((p.row_base + u.pass * N) >> 2);
                for (int64_t col = u.begin; col < u.end; col += shape::s_cols) {
                    const bool mine = next_warp == warp;
                    next_warp = (next_warp + 1) % POINTS_S_STAGES;
                    if (!mine) continue;
                    points_barrier_wait(empty, parity);
                    parity ^= 1;
                    if (p.kind == POINTS_KIND_SIGN)
                        points_make_signs<N, shape::s_cols>(p, stage, lane, block, p.col + col);
                    else if (p.kind == POINTS_KIND_ACHLIOPTAS)
                        points_make_achlioptas<N, shape::s_cols>(p, stage, lane, block,
                                                                 p.col + col);
                    else if constexpr (N <= POINTS_GAUSSIAN_ROWS)
                        points_make_gaussian16<N, shape::s_cols>(p, stage, table, lane, block,
                                                                 p.col + col);
#if __CUDA_ARCH__ >= 900
                    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
                    __syncwarp();
                    if (lane == 0) points_barrier_arrive(full);
                }
            }
        } else {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
            if constexpr (HOPPER) gcu_registers_alloc<shape::consuming>();
#endif
            constexpr bool two = TYPE == POINTS_F32 || TYPE == POINTS_BF16;
            const int warp = tid >> 5; /* of the consumers */
            const uint32_t ring = x_ring + warp * p.depth * shape::x_bytes;
            points_row *rows =
                reinterpret_cast<points_row *>(generic + (info - base)) + warp * POINTS_WARP_POINTS;
            const uint32_t mine = totals + 4 * tid; /* stride: the consuming threads */
            constexpr int consuming = 128 * shape::consumers;

            points_cursor ahead;
            ahead.unit = blockIdx.x;
            points_aim<N, TYPE, ACROSS, HOPPER>(p, &ahead, rows, warp, lane);
            points_unit u = ahead.u;
            int64_t number = blockIdx.x;
            bool more = ahead.more;
            int step = 0, steps = more ? u.steps() : 0;
            int slot = 0, s_slot = 0, warming = p.depth;
            uint32_t s_parity = 0;
            float master[N / 2];
#pragma unroll
            for (int j = 0; j < N / 2; j++)
                master[j] = 0.0f;

            /* the stage after the last that was read */
            const auto read = [&](points_raw<size, ACROSS> *raw) {
                if (p.depth == shape::deep)
                    gcu_copies_wait<shape::deep - 1>();
                else
                    gcu_copies_wait<shape::shallow - 1>();
                __syncwarp();
                raw->read(ring + slot * shape::x_bytes, lane);
                __syncwarp();
            };
            points_fragments f;
            constexpr int tiles = shape::s_cols / POINTS_STEP;
            while (more) {
                /* into the slot whose stage has become fragments */
                if (ahead.more) {
                    points_fetch<size, ACROSS>(p, &ahead, rows, ring + slot * shape::x_bytes, lane);
                    if (++ahead.step == ahead.steps) {
                        ahead.unit += gridDim.x;
                        points_aim<N, TYPE, ACROSS, HOPPER>(p, &ahead, rows, warp, lane);
                    }
                }
                gcu_copies_commit();
                slot = slot + 1 == p.depth ? 0 : slot + 1;
                if (warming > 0) {
                    if (--warming == 0) {
                        points_raw<size, ACROSS> raw;
                        read(&raw);
                        points_convert<TYPE, ACROSS, size>(raw, p.x.dtype, &f);
                    }
                    continue;
                }

                if (step % tiles == 0) points_barrier_wait(barriers + 8 * s_slot, s_parity);
                float part[N / 2];
                points_multiply<N, two, HOPPER>(
                    part, f, s_ring + s_slot * shape::s_bytes + step % tiles * (N * 128), lane);
                points_raw<size, ACROSS> raw; /* of the next step, or of nothing */
                read(&raw);
                points_multiplied<N, two, HOPPER>(part, f);
                step++;
                if (step % tiles == 0 || step == steps) {
                    __syncwarp();
                    if (lane == 0) points_barrier_arrive(barriers + 32 + 8 * s_slot);
                    s_slot = (s_slot + 1) % POINTS_S_STAGES;
                    s_parity ^= s_slot == 0;
                }
#pragma unroll
                for (int j = 0; j < N / 2; j++)
                    master[j] = two ? fmaf(part[j], f.unscale[(j >> 1) & 1], master[j])
                                    : master[j] + part[j];
                points_convert<TYPE, ACROSS, size>(raw, p.x.dtype, &f);

                constexpr int segment_steps = POINTS_SEGMENT / POINTS_STEP;
                if (step % segment_steps != 0 && step != steps) continue;
                /* a segment ends */
                const int row = warp * POINTS_WARP_POINTS + (ACROSS ? lane >> 2 << 1 : lane >> 2);
                const int64_t v[2] = {u.first + row, u.first + row + (ACROSS ? 1 : 8)};
                if (p.splits == 1) {
                    if (step <= segment_steps) {
                        if (!p.out.begins) {
#pragma unroll
                            for (int j = 0; j < N / 2; j++) {
                                const int64_t a = p.row_base + u.pass * N + 8 * (j >> 2) +
                                                  2 * (lane & 3) + (j & 1);
                                const int64_t of = v[(j >> 1) & 1];
                                if (a >= p.task_row && a < p.task_row + p.task_rows &&
                                    of < p.first_point + p.points)
                                    master[j] +=
                                        gcu_carried<float>(p.out, a - p.task_row, p.total, of);
                            }
                        }
                    } else {
#pragma unroll
                        for (int j = 0; j < N / 2; j++)
                            master[j] += gcu_load_shared(mine + 4 * consuming * j);
                    }
                    if (step != steps) {
#pragma unroll
                        for (int j = 0; j < N / 2; j++)
                            points_sts<4>(mine + 4 * consuming * j, __float_as_uint(master[j]));
                    }
                }
                if (p.splits > 1 || step == steps)
                    points_emit<N>(p, u.pass, u.begin / POINTS_SEGMENT + (step - 1) / segment_steps,
                                   v, lane, master);
#pragma unroll
                for (int j = 0; j < N / 2; j++)
                    master[j] = 0.0f;
                if (step == steps) {
                    number += gridDim.x;
                    more = points_unit_of<shape::block_points>(p, number, &u);
                    step = 0;
                    steps = more ? u.steps() : 0;
                }
            }
        }
    }
}

#endif
#endif
