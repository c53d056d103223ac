/* cuda/project/sparse/very_sparse.cuh: what the very-sparse kernels share.
 *
 * Four consecutive rows share their Philox calls, so a warp walks four rows: call t of a chunk, in
 * lane t, gives the tth jump of each, and prefix sums over the warp give the columns. All rows of A
 * are resident at once (where they fit) and go through the chunks in the same order, so the part of
 * X that they gather from sits in L2 and is read from memory once. Where rows use X's columns so
 * often that going through a chunk takes long, warps wait for the slowest (vs_wait).
 *
 * The order of a row's sum is the same in every kernel: nonzero number x of a chunk (in column
 * order) goes to partial sum x mod 2; after each VS_CHUNKS chunks, counted from A's first, and at
 * a segment's end, s0 + s1 is added to the row's running sum. */
#ifndef GNOMON_CUDA_VERY_SPARSE_H
#define GNOMON_CUDA_VERY_SPARSE_H

#include "cuda/project/family.h"

enum {
    VS_CHUNKS = 4,
    VS_WARPS = 16, /* of a block */
    VS_BATCH = 8,  /* nonzeros of a row gathered at once */
    VS_FEW = 8,    /* points at most that have a way of their own */
    VS_ROW = 36    /* a row's place in a list: 32, and the banks of four rows differ */
};

/* A nonzero in one word: sign and column in the chunk. */
enum : uint32_t { VS_COLUMN = 0x7FFFFFFFu };

/* The key of each round of Philox, made once: each thread would add them up for each call. */
struct vs_keys {
    uint32_t key[10][2];
    uint32_t c3; /* as gcu_stream has it */
};

struct vs_task {
    vs_keys keys;
    float jump_scale;
    int chunk; /* columns of one: at most 2^22 */
    gcu_points x;
    gcu_out out;
    int64_t row, rows;
    int64_t first_chunk;   /* of A, where the task begins */
    int chunks;            /* of the task */
    int segment_chunks;    /* 0: one segment, its running sum carried from task to task */
    int64_t quad, quads;   /* row / 4 */
    int64_t tile, tiles;   /* of points, of this launch */
    int64_t segments;      /* of the task */
    int64_t walked;        /* segments of this launch */
    int64_t tiles_a_block; /* 0: tiles of folded points */
    uint32_t stride_bytes; /* from a column's line to the next */
    float *partial;        /* [segment][row][tile][point of the tile] */
    /* Columns may be walked in several launches, chunks [begin, end) of the task in this one,
     * to keep warps together or because no more of X is transposed. Of one segment 'partial' then
     * holds the running sums between launches. */
    int begin, end;
    /* [chunk of the launch]: blocks of threads that are through with it, where warps wait for each
     * other; else NULL. */
    unsigned *pace;
    const float *transposed; /* lines of the launch's tiles and columns, or NULL: X has lines */
    int line;                /* floats of a tile's line there: P, or fewer where points are few */
};

/* Point p of a tile of P: false when there is none. */
template <int P>
__device__ __forceinline__ bool vs_locate(const vs_task &t, int64_t tile, int p, int64_t *b,
                                          int64_t *i)
{
    if (t.tiles_a_block) {
        *b = tile / t.tiles_a_block;
        *i = tile % t.tiles_a_block * P + p;
        return *i < t.x.n;
    }
    const int64_t v = tile * P + p;
    *b = v / t.x.n;
    *i = v % t.x.n;
    return *b < t.x.blocks;
}

/* Where a segment's sum lies among the partial sums. */
template <int P>
__device__ __forceinline__ int64_t vs_partial(const vs_task &t, int64_t segment, int64_t row,
                                              int64_t tile, int p)
{
    return ((segment * t.rows + (row - t.row)) * t.tiles + (tile - t.tile)) * P + p;
}

static inline vs_keys vs_keys_of(gcu_stream s)
{
    vs_keys k = {};
    k.c3 = s.c3;
    for (uint32_t r = 0; r < 10; r++) {
        k.key[r][0] = s.key0 + r * 0x9E3779B9u;
        k.key[r][1] = s.key1 + r * 0xBB67AE85u;
    }
    return k;
}

/* gcu_call_general */
__device__ __forceinline__ uint4 vs_call(const vs_keys &k, uint32_t block, uint64_t index48,
                                         uint32_t b)
{
    uint32_t c0 = b, c1 = (uint32_t)index48, c2 = block, c3 = k.c3 | (uint32_t)(index48 >> 32);
#pragma unroll
    for (int r = 0; r < 10; r++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k.key[r][0];
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k.key[r][1];
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
    }
    return make_uint4(c0, c1, c2, c3);
}

/* Inclusive sum over the lanes. */
__device__ __forceinline__ uint32_t vs_scan(uint32_t x)
{
#pragma unroll
    for (int d = 1; d < 32; d *= 2)
        asm("{ .reg .pred p; .reg .u32 r;\n"
            "shfl.sync.up.b32 r|p, %0, %1, 0, -1;\n"
            "@p add.u32 %0, %0, r; }"
            : "+r"(x)
            : "r"(d));
    return x;
}

/* Columns that a row's 32 next nonzeros have; at or beyond the chunk's end once the walk ended.
 * 'next' is the first column that the first of them can have. */
__device__ __forceinline__ uint32_t vs_walk(float jump_scale, uint32_t word, uint32_t next,
                                            int lane)
{
    /* 2^23 + J, rounded down, has J in its low bits; a jump of 2^22 leaves every chunk */
    const float jump = fminf(__fmul_rn(gcu_neglog(word >> 1), jump_scale), 4194304.0f);
    const uint32_t j = __float_as_uint(__fadd_rd(jump, 8388608.0f)) - 0x4B000000u;
    return vs_scan(j) + (next + lane);
}

/* Where a walk goes on after a block's last column; once it ended it stays at the end. */
__device__ __forceinline__ uint32_t vs_next(uint32_t last)
{
    return min((last & VS_COLUMN) + 1, 1u << 22);
}

__device__ __forceinline__ float vs_sign(uint32_t nonzero)
{
    /* one instruction, were it not that it takes one constant */
    uint32_t one = 0x3F800000u, sign;
    asm("mov.b32 %0, %0;" : "+r"(one));
    asm("lop3.b32 %0, %1, 0x80000000, %2, 0xEA;" : "=r"(sign) : "r"(nonzero), "r"(one));
    return __uint_as_float(sign);
}

/* What a draw found: nonzeros of the row with the fewest, with the most and of the lane's own (8
 * lanes a row), and whether some row has more than the 32 of a block. */
struct vs_drawn {
    int least, most, own;
    bool more;
};

/* Draws the block of 32 nonzeros a row that begins with number 'first' (a multiple of 32) into the
 * list, which holds the block before it. A walk that ended goes on beyond every chunk. */
__device__ __forceinline__ vs_drawn vs_draw(const vs_task &t, uint32_t quad, uint64_t chunk,
                                            uint32_t first, int lane, uint32_t (*list)[VS_ROW])
{
    const uint4 words = vs_call(t.keys, quad, chunk, first + lane);
    uint32_t nonzero[4], inside[4];
    __syncwarp(); /* all have gathered the block before */
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const uint32_t next = first ? vs_next(list[r][31]) : 0;
        const uint32_t word = gcu_word(words, r), column = vs_walk(t.jump_scale, word, next, lane);
        nonzero[r] = column + (word << 31);
        inside[r] = __ballot_sync(~0u, column < (uint32_t)t.chunk);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 4; r++)
        list[r][lane] = nonzero[r];
    __syncwarp();
    const uint32_t some = inside[0] | inside[1] | inside[2] | inside[3];
    const uint32_t low = lane & 8 ? inside[1] : inside[0], high = lane & 8 ? inside[3] : inside[2];
    return {__popc(inside[0] & inside[1] & inside[2] & inside[3]), __popc(some),
            __popc(lane & 16 ? high : low), some >> 31 != 0};
}

/* Which of a batch's nonzeros are gathered. */
enum vs_which {
    VS_ALL,
    VS_FIRST, /* of a chunk all of whose columns are there: so many from the first */
    VS_RANGE  /* those in a range of columns */
};

/* A warp's sums for four rows and a tile of 4 * LANES points, gathered from lines: eight lanes a
 * row, 4 points per lane. */
template <int LANES> struct vs_sums {
    static constexpr int PARTS = LANES / 4, LOADS = VS_BATCH * LANES / 8;
    float acc[PARTS][4];

    static __device__ __forceinline__ bool owns(int lane)
    {
        return LANES == 8 || !(lane & 4);
    }

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int s = 0; s < PARTS; s++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                acc[s][c] = 0.0f;
    }

    __device__ __forceinline__ void reduce(float *total)
    {
#pragma unroll
        for (int c = 0; c < 4; c++)
            total[c] +=
                acc[0][c] + (LANES == 8 ? acc[PARTS - 1][c] : __shfl_xor_sync(~0u, acc[0][c], 4));
        clear();
    }

    /* VS_BATCH nonzeros of the lane's row: all, the first 'span', or those in [from, from + span).
     * What is left out loads the line of 'from': predicated loads end in many moves, and one line
     * for all stays in L1. */
    template <vs_which WHICH>
    __device__ __forceinline__ void batch(const uint32_t *nonzeros, int lane, uint32_t from,
                                          int span, const char *lines, uint32_t stride)
    {
        const int offset = LANES == 8 ? 0 : lane >> 2 & 1;
        float4 v[LOADS];
        uint32_t word[LOADS];
        if constexpr (LANES == 8) {
#pragma unroll
            for (int u = 0; u < LOADS; u += 4) {
                const uint4 four = *reinterpret_cast<const uint4 *>(nonzeros + u);
                word[u] = four.x, word[u + 1] = four.y, word[u + 2] = four.z, word[u + 3] = four.w;
            }
        } else {
#pragma unroll
            for (int u = 0; u < LOADS; u++)
                word[u] = nonzeros[2 * u + offset];
        }
        const auto wanted = [&](int u) {
            if (WHICH == VS_FIRST) return u * (8 / LANES) + offset < span;
            return WHICH == VS_ALL || (word[u] & VS_COLUMN) - from < (uint32_t)span;
        };
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            const uint32_t column = wanted(u) ? word[u] & VS_COLUMN : from;
            v[u] = __ldg(reinterpret_cast<const float4 *>(lines + (uint64_t)column * stride));
        }
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            float(&sum)[4] = acc[u % PARTS];
            const float sign = vs_sign(word[u]);
            if (wanted(u)) {
                sum[0] = fmaf(sign, v[u].x, sum[0]);
                sum[1] = fmaf(sign, v[u].y, sum[1]);
                sum[2] = fmaf(sign, v[u].z, sum[2]);
                sum[3] = fmaf(sign, v[u].w, sum[3]);
            }
        }
    }
};

#endif
