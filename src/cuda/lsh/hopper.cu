/* Hashing on Hopper in one pass: products on tensor cores (gemm/hopper.cuh), whose sums become
 * values and keys where they are, in registers, and are not written.
 *
 * Columns of the product are functions. A table's coarse ones, and its fine ones, begin at
 * multiples of eight columns, and a table lies in one block's columns; the columns between repeat a
 * function and count for nothing. So four threads hold a half of a key, eight columns at a time.
 *
 * A product is no further than reach[i] from the CPU's. Where that much might change a value the
 * point and the table are marked, and done again as a chain of additions in the CPU's order. */
#include "cuda/gemm/hopper.cuh"
#include "cuda/lsh/lsh.h"

namespace
{

enum { N = 128, THREADS = 256, WARPS = THREADS / 32 };

const int64_t values_depth = 16; /* functions of a mark, of values */

/* How tables lie in columns. */
struct grid {
    int64_t count, depth, coarse;      /* functions */
    int64_t table, tables;             /* of the job's; of them */
    int table_columns, coarse_columns; /* columns of a table, of its coarse functions */
    int tile_tables;                   /* tables of 128 columns */
};

__host__ __device__ inline int64_t eights(int64_t count)
{
    return (count + 7) / 8 * 8;
}

/* The table of a column, or -1, its function, and whether it counts. */
__device__ __forceinline__ int64_t function_of(const grid &g, int64_t column, int64_t *position,
                                               bool *counts)
{
    const int64_t tile = column / N, at = column % N,
                  t = tile * g.tile_tables + at / g.table_columns;
    *counts = false;
    *position = 0;
    if (at / g.table_columns >= g.tile_tables || t >= g.tables) return -1;
    int64_t p = at % g.table_columns;
    const bool fine = p >= g.coarse_columns;
    if (fine) p -= g.coarse_columns;
    const int64_t functions = fine ? g.depth - g.coarse : g.coarse;
    *counts = p < functions;
    if (!*counts) p = 0;
    p += fine ? g.coarse : 0;
    if ((g.table + t) * g.depth + p >= g.count) { /* the last 16 values may be fewer */
        *counts = false;
        p = 0;
    }
    *position = p;
    return (g.table + t) * g.depth + p;
}

/* Directions as columns of a product; as quads for the chain: [dim / 4][function] of four
 * neighbours. Offsets and multipliers of columns. */
__global__ void __launch_bounds__(THREADS)
    lay_out(const __grid_constant__ grid g, const float *directions, int64_t dim, int64_t columns,
            const float *offset, float width, const uint64_t *multipliers, float *padded,
            float4 *quads, float *offsets, uint64_t *factors)
{
    const int64_t all = (int64_t)gridDim.x * THREADS;
    const int64_t me = (int64_t)blockIdx.x * THREADS + threadIdx.x, fours = (dim + 3) / 4;
    for (int64_t at = me; at < columns * dim; at += all) {
        int64_t position;
        bool counts;
        const int64_t f = function_of(g, at / dim, &position, &counts);
        padded[at] = f < 0 ? 0.0f : directions[f * dim + at % dim];
    }
    for (int64_t at = me; at < fours * g.count; at += all) {
        const int64_t j = at / g.count * 4, f = at % g.count;
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = j + i < dim ? directions[f * dim + j + i] : 0.0f;
        quads[at] = make_float4(v[0], v[1], v[2], v[3]);
    }
    for (int64_t c = me; c < columns; c += all) {
        int64_t position;
        bool counts;
        const int64_t f = function_of(g, c, &position, &counts);
        offsets[c] = f < 0 || !offset ? 0.5f * width : offset[f] * width;
        if (c < N) factors[c] = counts && multipliers ? multipliers[position] : 0;
    }
}

} // namespace

/* What sums begin with, the offsets, and what becomes of them. A value's steps: the nearest whole
 * number to t = sum / w is had by adding 1.5 2^23, which leaves it in the bits, with a constant
 * that is taken out of a key's sum at its end; one less where t lies below it. */
template <bool SIGNS, bool KEYS> struct gcu_lsh_into_hashes {
    static constexpr float magic = 12582912.0f; /* 1.5 2^23 */
    static constexpr uint32_t magic_bits = 0x4B400000u;
    bool fine, pairs;
    float inverse; /* of the width */
    float near;    /* how close to a whole number t is trusted, of a point without length */
    const float *offsets;
    const uint64_t *factors; /* of 128 columns */
    const float *reach;
    uint64_t *keys; /* of table 'grid.table' and this batch's first point */
    int64_t stride;
    int32_t *values;
    int64_t row_stride, col_stride, count;
    int64_t tables;
    int table_columns, coarse_columns, tile_tables;
    uint32_t *marks; /* [table][words]: a bit a point */
    int64_t words;

    static __device__ __forceinline__ uint64_t *held()
    {
        __shared__ __align__(16) uint64_t factors_held[N];
        return factors_held;
    }

    __device__ __forceinline__ void prepare() const
    {
        if (KEYS && threadIdx.x < N) held()[threadIdx.x] = factors[threadIdx.x];
    }

    template <int COLUMNS>
    __device__ __forceinline__ void begin(const gemm_item &item, float (*total)[32], int q) const
    {
        const float2 *offset = reinterpret_cast<const float2 *>(offsets + item.col) + q;
#pragma unroll
        for (int c = 0; c < COLUMNS / 8; c++) {
            const float2 u = SIGNS ? make_float2(0.0f, 0.0f) : offset[4 * c];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                total[c / 8][c % 8 * 4 + 2 * r] = u.x;
                total[c / 8][c % 8 * 4 + 2 * r + 1] = u.y;
            }
        }
    }

    __device__ __forceinline__ void mark(int64_t table, int64_t i) const
    {
        atomicOr(marks + table * words + i / 32, 1u << (i % 32));
    }

    /* Four threads have half a key's sum between them. */
    __device__ __forceinline__ void finish(uint64_t sum, int64_t table, int half, int64_t i,
                                           bool there, int q) const
    {
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (q != 0 || !there) return;
        const uint32_t key = gcu_lsh_key_half(sum);
        uint64_t *to = keys + table * stride + i;
        if (!fine)
            *to = (uint64_t)key << 32;
        else
            reinterpret_cast<uint32_t *>(to)[1 - half] = key;
    }

    __device__ __forceinline__ void put_values(const uint32_t (*value)[2], int64_t row, int64_t f,
                                               const bool *there) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            int32_t *to = values + (row + 8 * r) * row_stride + f * col_stride;
            if (!there[r] || f >= count) continue;
            if (pairs && f + 1 < count) {
                *reinterpret_cast<int2 *>(to) = make_int2((int)value[r][0], (int)value[r][1]);
            } else {
                to[0] = (int)value[r][0];
                if (f + 1 < count) to[col_stride] = (int)value[r][1];
            }
        }
    }

    template <int COLUMNS, gcu_gemm_form FORM>
    __device__ __forceinline__ void put(const gcu_gemm_launch &l, const gemm_item &item,
                                        float (*total)[32], int64_t row, int q) const
    {
        const ulonglong2 *factor = reinterpret_cast<const ulonglong2 *>(held()) + q;
        const bool there[2] = {row < l.m, row + 8 < l.m};
        float far[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            far[r] = there[r] ? reach[row + 8 * r] : 0.0f;
            if (!SIGNS) far[r] = fmaf(far[r], inverse * 1.05f, near);
        }
        int64_t table = item.col / COLUMNS * tile_tables;
        int end = coarse_columns, half = 0;
        const int last = tile_tables * table_columns;
        uint64_t sum[2] = {0, 0};
        bool odd[2] = {false, false};
#pragma unroll
        for (int c = 0; c < COLUMNS / 8; c++) {
            uint32_t value[2][2];
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float x = total[c / 8][c % 8 * 4 + 2 * r + e];
                    if (SIGNS) {
                        value[r][e] = __float_as_uint(x) >> 31;
                        odd[r] |= !(fabsf(x) > far[r]);
                    } else {
                        const float s = __fmaf_rn(x, inverse, magic), whole = __fsub_rn(s, magic);
                        const float part = __fmaf_rn(x, inverse, -whole);
                        odd[r] |= !(fabsf(part) >= far[r]);
                        value[r][e] =
                            __float_as_uint(s) + (uint32_t)((int32_t)__float_as_uint(part) >> 31);
                        if (!KEYS) value[r][e] -= magic_bits;
                    }
                }
            if (KEYS) {
                const ulonglong2 m = factor[4 * c];
#pragma unroll
                for (int r = 0; r < 2; r++)
                    sum[r] += (uint64_t)value[r][0] * m.x + (uint64_t)value[r][1] * m.y;
                if (!SIGNS) {
                    const uint64_t extra = (uint64_t)magic_bits * (m.x + m.y);
                    sum[0] -= extra;
                    sum[1] -= extra;
                }
            } else {
                put_values(value, row, item.col + 8 * c + 2 * q, there);
            }
            if (8 * c + 8 != end) continue;
            if (end <= last && table < tables) {
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    if (KEYS) finish(sum[r], table, half, row + 8 * r, there[r], q);
                    const uint32_t four = __ballot_sync(~0u, odd[r]) >> (threadIdx.x & 28) & 15;
                    if (four && q == 0 && there[r]) mark(table, row + 8 * r);
                }
            }
            sum[0] = sum[1] = 0;
            odd[0] = odd[1] = false;
            if (fine && half == 0) {
                half = 1;
                end += table_columns - coarse_columns;
            } else {
                half = 0;
                table++;
                end += coarse_columns;
            }
        }
    }
};

namespace
{

/* A marked point and table again. */
struct again {
    grid g;
    gcu_lsh_functions f;
    const float *x;
    int64_t n, x_stride, dim;
    const float4 *quads;
    const uint64_t *multipliers;
    uint64_t *keys;
    int64_t stride;
    int32_t *values;
    int64_t row_stride, col_stride;
    uint32_t *marks;
    int64_t words;
    int run;           /* words that a warp takes at a time */
    int table_columns; /* lanes for the functions of a table: 8, 16 or 32 */
};

enum { TOGETHER = 4 }; /* points that a lane takes at a time */

/* The CPU's products of some points and a function, whose entries are read once for all. */
__device__ __forceinline__ void chains_of(const again &a, const float *const *x, int64_t f,
                                          float *products)
{
    float total[TOGETHER] = {}, sum[TOGETHER] = {};
    const int64_t whole = a.dim / 4;
    const float4 *q = a.quads + f;
#pragma unroll 2
    for (int64_t j = 0; j < whole; j++, q += a.g.count) {
        const float4 v = *q;
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const float4 p = reinterpret_cast<const float4 *>(x[i])[j];
            sum[i] = __fmaf_rn(v.x, p.x, sum[i]);
            sum[i] = __fmaf_rn(v.y, p.y, sum[i]);
            sum[i] = __fmaf_rn(v.z, p.z, sum[i]);
            sum[i] = __fmaf_rn(v.w, p.w, sum[i]);
        }
        if (j % 64 == 63)
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) {
                total[i] = __fadd_rn(total[i], sum[i]);
                sum[i] = 0.0f;
            }
    }
    const float *rest = reinterpret_cast<const float *>(q);
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        for (int64_t j = 4 * whole; j < a.dim; j++)
            sum[i] = __fmaf_rn(rest[j % 4], x[i][j], sum[i]);
        products[i] = __fadd_rn(__fadd_rn(total[i], sum[i]), 0.0f);
    }
}

__device__ __forceinline__ uint64_t total_of(uint64_t sum, int table_columns)
{
    for (int d = table_columns / 2; d > 0; d /= 2)
        sum += __shfl_xor_sync(~0u, sum, d);
    return sum;
}

/* Points point[0 .. count) of table t; lanes in groups of a.table_columns take TOGETHER of them
 * each, some of them twice when they are fewer. */
__device__ __forceinline__ void do_again(const again &a, int64_t t, const int64_t *point, int count,
                                         int lane)
{
    const int group = lane / a.table_columns;
    const float *x[TOGETHER];
    int64_t row[TOGETHER];
    uint64_t coarse[TOGETHER] = {}, fine[TOGETHER] = {};
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        const int which = group * TOGETHER + i;
        row[i] = point[which < count ? which : 0];
        x[i] = a.x + row[i] * a.x_stride;
    }
    for (int64_t p = lane % a.table_columns; p < a.g.depth; p += a.table_columns) {
        const int64_t f = (a.g.table + t) * a.g.depth + p;
        float products[TOGETHER];
        if (f >= a.g.count) continue;
        chains_of(a, x, f, products);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int32_t value = a.f.family == GNOMON_LSH_SIMHASH
                                      ? (int32_t)(products[i] < 0.0f)
                                      : gcu_lsh_step(products[i], a.f.width, a.f.offset[f]);
            if (!a.keys)
                a.values[row[i] * a.row_stride + f * a.col_stride] = value;
            else if (p < a.g.coarse)
                coarse[i] += (uint64_t)(int64_t)value * a.multipliers[p];
            else
                fine[i] += (uint64_t)(int64_t)value * a.multipliers[p];
        }
    }
    if (!a.keys) return;
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
        const uint64_t upper = total_of(coarse[i], a.table_columns),
                       lower = total_of(fine[i], a.table_columns);
        if (lane % a.table_columns == 0)
            a.keys[t * a.stride + row[i]] =
                (uint64_t)gcu_lsh_key_half(upper) << 32 | gcu_lsh_key_half(lower);
    }
}

/* A warp takes some words of a table's marks. */
__global__ void __launch_bounds__(THREADS) do_all_again(const __grid_constant__ again a)
{
    constexpr int MOST = 4 * TOGETHER;
    __shared__ int64_t found[WARPS][MOST];
    const int lane = (int)threadIdx.x % 32, room = 32 / a.table_columns * TOGETHER;
    int64_t *mine = found[threadIdx.x / 32];
    const int64_t words = (a.n + 31) / 32, runs = (words + a.run - 1) / a.run;
    const int64_t all = (int64_t)gridDim.x * WARPS;
    for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < runs * a.g.tables;
         item += all) {
        const int64_t t = item / runs, from = item % runs * a.run;
        uint32_t *at = a.marks + t * a.words + from + lane;
        const uint32_t word = lane < a.run && from + lane < words ? *at : 0;
        int count = 0;
        for (uint32_t lanes = __ballot_sync(~0u, word != 0); lanes; lanes &= lanes - 1) {
            const int which = __ffs((int)lanes) - 1;
            for (uint32_t bits = __shfl_sync(~0u, word, which); bits; bits &= bits - 1) {
                if (lane == 0) mine[count] = (from + which) * 32 + __ffs((int)bits) - 1;
                if (++count < room) continue;
                __syncwarp();
                do_again(a, t, mine, count, lane);
                __syncwarp();
                count = 0;
            }
        }
        __syncwarp();
        if (count > 0) do_again(a, t, mine, count, lane);
        __syncwarp();
        if (word) *at = 0;
    }
}

unsigned grid_of(int64_t items)
{
    const int64_t most = 1 << 14;
    return (unsigned)(items < most ? items : most);
}

/* ---- where everything lies in the work ---- */

struct plan {
    grid g;
    int64_t columns, words;
    gcu_gemm_launch l;
    float *padded, *offsets;
    float4 *quads;
    uint64_t *factors;
    uint32_t *marks;
    size_t bytes;
};

grid grid_of_tables(int64_t count, int64_t table, int64_t tables, int64_t depth, int64_t coarse)
{
    grid g = {};
    g.count = count;
    g.table = table;
    g.tables = depth ? tables : (count + values_depth - 1) / values_depth;
    g.depth = depth ? depth : values_depth;
    g.coarse = depth ? coarse : values_depth;
    g.coarse_columns = (int)eights(g.coarse);
    g.table_columns = g.coarse_columns + (int)eights(g.depth - g.coarse);
    g.tile_tables = g.table_columns <= N ? N / g.table_columns : 0;
    return g;
}

plan plan_of(const gcu_lsh_fused *c)
{
    plan p = {};
    const gcu_lsh_keys &k = c->keys;
    char *work = static_cast<char *>(c->work);
    const auto carve = [&](int64_t bytes) {
        char *part = work + p.bytes;
        p.bytes += ((size_t)bytes + 255) / 256 * 256;
        return static_cast<void *>(part);
    };
    p.g = grid_of_tables(c->f.count, k.table, k.tables, k.depth, k.coarse);
    p.columns = (p.g.tables + p.g.tile_tables - 1) / p.g.tile_tables * N;
    p.words = (c->most + 31) / 32;
    p.padded = static_cast<float *>(carve(p.columns * c->dim * 4));
    p.quads = static_cast<float4 *>(carve((c->dim + 3) / 4 * c->f.count * 16));
    p.offsets = static_cast<float *>(carve(p.columns * 4));
    p.factors = static_cast<uint64_t *>(carve(N * 8));
    p.marks = static_cast<uint32_t *>(carve(p.g.tables * p.words * 4));
    gcu_gemm_launch &l = p.l;
    l.n = l.cols = p.columns;
    l.k = c->dim;
    l.a_col = 1;
    l.b = p.padded;
    l.b_dtype = GNOMON_F32;
    l.b_row = 1;
    l.b_col = c->dim;
    l.chunks = (c->dim + GCU_GEMM_CHUNK - 1) / GCU_GEMM_CHUNK;
    l.quads = true;
    l.splits = 1;
    l.split_chunks = l.chunks;
    l.packed = static_cast<uint8_t *>(carve(l.chunks * l.cols * 2 * GCU_GEMM_CHUNK));
    l.packed_low = static_cast<uint8_t *>(carve(l.chunks * l.cols * 2 * GCU_GEMM_CHUNK));
    l.scales = static_cast<float *>(carve(l.chunks * l.cols * 4));
    return p;
}

cudaError_t set_up(const gcu_lsh_fused *c, const plan &p, cudaStream_t stream)
{
    again a = {};
    a.g = p.g;
    a.f = c->f;
    a.x = c->x;
    a.n = c->n;
    a.x_stride = c->x_stride;
    a.dim = c->dim;
    a.quads = p.quads;
    if (c->keys.tables) {
        a.multipliers = c->keys.multipliers;
        a.keys = c->keys.keys + c->keys.first;
        a.stride = c->keys.stride;
    } else {
        a.values = static_cast<int32_t *>(c->values.data);
        a.row_stride = c->values.row_stride;
        a.col_stride = c->values.col_stride;
    }
    a.marks = p.marks;
    a.words = p.words;
    const int64_t words = (c->n + 31) / 32 * p.g.tables, many = 1 << 18;
    a.run = words > many ? 32 : 1;
    a.table_columns = p.g.depth <= 8 ? 8 : p.g.depth <= 16 ? 16 : 32;
    do_all_again<<<grid_of((words / a.run + WARPS) / WARPS), THREADS, 0, stream>>>(a);
    return cudaGetLastError();
}

} // namespace

bool gcu_lsh_fused_supports(const gcu_gpu *gpu, const gnomon_hasher *h, int64_t depth,
                            int64_t coarse)
{
    const int64_t most_entries = 1 << 26; /* of the directions, which are held five times */
    if (gpu->major != 9 || h->f.count > 1 << 16) return false;
    if (h->f.family == GNOMON_LSH_PSTABLE ? !(h->f.width > 0x1p-100 && h->f.width < 0x1p100)
                                          : h->f.family != GNOMON_LSH_SIMHASH)
        return false;
    return h->f.dim <= most_entries / h->f.count &&
           grid_of_tables(h->f.count, 0, 1, depth, coarse).tile_tables > 0;
}

size_t gcu_lsh_fused_work(const gcu_lsh_fused *c)
{
    return plan_of(c).bytes;
}

cudaError_t gcu_lsh_fused_prepare(const gcu_lsh_fused *c, cudaStream_t stream)
{
    plan p = plan_of(c);
    const int64_t items = (p.columns + c->f.count) * c->dim;
    lay_out<<<grid_of((items + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        p.g, c->directions, c->dim, p.columns, c->f.offset, (float)c->f.width, c->keys.multipliers,
        p.padded, p.quads, p.offsets, p.factors);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaMemsetAsync(p.marks, 0, (size_t)(p.g.tables * p.words) * 4, stream);
    return error == cudaSuccess ? gcu_gemm_pack(p.l, stream) : error;
}

template <bool SIGNS, bool KEYS>
static cudaError_t launch(const gcu_lsh_fused *c, const plan &p, cudaStream_t stream)
{
    gcu_lsh_into_hashes<SIGNS, KEYS> put = {};
    put.fine = p.g.depth > p.g.coarse;
    put.inverse = SIGNS ? 1.0f : (float)(1.0 / c->f.width);
    /* the offset's, the inverse's and the sums' roundings */
    put.near = 0x1p-21f + (float)(c->dim / GCU_GEMM_CHUNK) * 0x1p-23f;
    put.offsets = p.offsets;
    put.factors = p.factors;
    put.reach = c->reach;
    if (KEYS) {
        put.keys = c->keys.keys + c->keys.first;
        put.stride = c->keys.stride;
    } else {
        const gnomon_matrix *v = &c->values;
        put.values = static_cast<int32_t *>(v->data);
        put.row_stride = v->row_stride;
        put.col_stride = v->col_stride;
        put.count = c->f.count;
        put.pairs = v->col_stride == 1 && v->row_stride % 2 == 0 && (uintptr_t)v->data % 8 == 0;
    }
    put.tables = p.g.tables;
    put.table_columns = p.g.table_columns;
    put.coarse_columns = p.g.coarse_columns;
    put.tile_tables = p.g.tile_tables;
    put.marks = p.marks;
    put.words = p.words;
    CUtensorMap map;
    if (!gemm_encode(p.l, &map)) return cudaErrorInvalidValue;
    return gemm_launch<N, GCU_GEMM_THREE, false, 2>(p.l, map, put, c->gpu, stream);
}

cudaError_t gcu_lsh_fused_run(const gcu_lsh_fused *c, cudaStream_t stream)
{
    if (c->n == 0) return cudaSuccess;
    plan p = plan_of(c);
    p.l.m = c->n;
    p.l.a = c->x;
    p.l.a_row = c->x_stride;
    const bool signs = c->f.family == GNOMON_LSH_SIMHASH, keys = c->keys.tables > 0;
    const cudaError_t error =
        signs  ? keys ? launch<true, true>(c, p, stream) : launch<true, false>(c, p, stream)
         : keys ? launch<false, true>(c, p, stream)
               : launch<false, false>(c, p, stream);
    return error == cudaSuccess ? set_up(c, p, stream) : error;
}
