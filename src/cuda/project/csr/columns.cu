/* Sums by dense columns of S: a thread takes some of S's rows and walks along a row of x, its sums
 * in registers. */
#include "base/arithmetic.h"
#include "cuda/project/csr/csr.h"
#include "cuda/runtime/grid.cuh"

enum {
    THREADS = 128,
    MOST_GRID = 1 << 20,
    AHEAD = 8, /* columns whose entries are on their way */
    FEW = 4    /* rows of a thread where x's row is long, or S has few */
};

/* fma as the CPU's axpy has it. */
static __device__ __forceinline__ float fma_rn(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}
static __device__ __forceinline__ double fma_rn(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}

/* ---- signs as bits ---- */

static __device__ __forceinline__ float signed_by(float v, uint32_t word, int bit)
{
    return __uint_as_float(__float_as_uint(v) ^ (word << (31 - bit) & 0x80000000u));
}
static __device__ __forceinline__ double signed_by(double v, uint32_t word, int bit)
{
    return word >> bit & 1 ? -v : v;
}

/* Lanes side by side that take one row of x: they bring as many of its nonzeros together. */
struct group {
    unsigned mask;
    int lanes, lane;
};

static __device__ __forceinline__ group group_of(int lanes)
{
    group g;
    g.lanes = lanes;
    g.lane = (int)(threadIdx.x % lanes);
    const unsigned first = threadIdx.x % 32 / lanes * lanes;
    g.mask = lanes == 32 ? 0xFFFFFFFFu : ((1u << lanes) - 1) << first;
    return g;
}

/* Hands every nonzero of a row, in order, to 'take' (column, value), and some of value 0 and the
 * row's first column behind them, whose products change no sum: columns first, U at a time, so that
 * loads overlap. */
template <int U, typename V, typename Load, typename Take>
static __device__ __forceinline__ void walk_row(const group &g, const gcu_csr &x, int64_t begin,
                                                int64_t end, Load load, Take take)
{
    for (int64_t some = begin; some < end; some += g.lanes) {
        const int64_t e = some + g.lane;
        const int64_t col = x.cols[e < end ? e : begin];
        const V value = e < end ? static_cast<const V *>(x.values)[e] : (V)0;
        const int count = (int)min((int64_t)g.lanes, end - some);
        for (int i = 0; i < count; i += U) {
            decltype(load(col)) entry[U];
            V v[U];
#pragma unroll
            for (int u = 0; u < U; u++) {
                v[u] = __shfl_sync(g.mask, value, i + u, g.lanes);
                if (i + u >= g.lanes) v[u] = 0; /* fewer lanes than U */
                entry[u] = load(__shfl_sync(g.mask, col, i + u, g.lanes));
            }
#pragma unroll
            for (int u = 0; u < U; u++)
                take(entry[u], v[u]);
        }
    }
}

/* A thread has ROWS of a word's rows. 'words' lanes side by side have one word each, 'parts' times
 * as many take a row of x; blockIdx.y has the other parts of the words, and other words. */
template <typename V, int ROWS>
static __global__ void __launch_bounds__(THREADS)
    bits_kernel(gcu_csr x, gcu_csr_table t, int64_t shift, int parts, const uint32_t *list,
                const unsigned *listed, gcu_csr_out out)
{
    const int words = (int)t.threads, lanes = words * parts;
    const group g = group_of(lanes);
    const int64_t at_once = THREADS / lanes, base = *x.base;
    const int cuts = 32 / ROWS / parts;
    const int64_t word = blockIdx.y / cuts * (int64_t)words + g.lane % words;
    const int low = (int)(blockIdx.y % cuts * parts + g.lane / words) * ROWS;
    const uint32_t *table = static_cast<const uint32_t *>(t.data) + word;
    const int64_t count = list ? (int64_t)*listed : x.rows;
    for (int64_t at = blockIdx.x * at_once + threadIdx.x / lanes; at < count;
         at += gridDim.x * at_once) {
        const int64_t i = list ? (int64_t)list[at] : at;
        const int64_t begin = x.offsets[i] - base, end = x.offsets[i + 1] - base;
        if (!list && end - begin > GCU_CSR_LONG) continue;
        V sum[ROWS] = {};
        walk_row<AHEAD, V>(
            g, x, begin, end,
            [&](int64_t col) { return __ldg(table + (col + shift) * t.width) >> low; },
            [&](uint32_t w, V v) {
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    sum[r] += signed_by(v, w, r);
            });
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = gcu_csr_bit_row(t, word, low + r);
            if (row < t.rows) gcu_csr_emit<V>(out, i, row, sum[r]);
        }
    }
}

template <typename V, int ROWS>
static cudaError_t launch_bits(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out,
                               const uint32_t *list, const unsigned *listed, int64_t most)
{
    const gcu_csr_table *t = &s->table;
    const int parts = (int)gnomon_min(32 / ROWS, 32 / t->threads);
    const dim3 grid(gcu_grid(most, THREADS / (t->threads * parts), MOST_GRID),
                    (unsigned)(t->width / t->threads * (32 / ROWS / parts)));
    bits_kernel<V, ROWS>
        <<<grid, THREADS, 0, s->stream>>>(*x, *t, s->col - t->first, parts, list, listed, *out);
    return cudaGetLastError();
}

template <typename V>
static cudaError_t bits(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out,
                        uint32_t *longs)
{
    const int64_t most = x->nonzeros / GCU_CSR_LONG;
    const int64_t words = s->table.threads; /* a warp takes a row where there are enough */
    cudaError_t error = words == 32   ? launch_bits<V, 32>(s, x, out, nullptr, nullptr, x->rows)
                        : words == 16 ? launch_bits<V, 16>(s, x, out, nullptr, nullptr, x->rows)
                        : words == 8  ? launch_bits<V, 8>(s, x, out, nullptr, nullptr, x->rows)
                                      : launch_bits<V, FEW>(s, x, out, nullptr, nullptr, x->rows);
    if (error != cudaSuccess || most == 0) return error;
    error = gcu_csr_find_long(x, longs + 1, longs, s->stream);
    if (error != cudaSuccess) return error;
    return launch_bits<V, FEW>(s, x, out, longs + 1, longs, most);
}

/* ---- entries, four rows a thread ---- */

template <gcu_csr_way WAY> struct four {
    float v[4];
};
template <> struct four<GCU_CSR_HALVES> {
    uint2 v;
};

template <gcu_csr_way WAY>
static __device__ __forceinline__ four<WAY> entries_of(const gcu_matrix &m, const gcu_csr_table &t,
                                                       int64_t group, int64_t j)
{
    four<WAY> f;
    if constexpr (WAY == GCU_CSR_DRAWN) {
        gcu_entries(m, (uint32_t)(t.row / 4 + group), (uint64_t)(j + t.first), f.v);
    } else if constexpr (WAY == GCU_CSR_FLOATS) {
        const float4 all = __ldg(static_cast<const float4 *>(t.data) + j * t.width + group);
        f.v[0] = all.x, f.v[1] = all.y, f.v[2] = all.z, f.v[3] = all.w;
    } else {
        f.v = __ldg(static_cast<const uint2 *>(t.data) + j * t.width + group);
    }
    return f;
}

template <gcu_csr_way WAY>
static __device__ __forceinline__ void as_floats(const four<WAY> &f, float v[4])
{
    if constexpr (WAY == GCU_CSR_HALVES) {
        const float2 low = __half22float2(*reinterpret_cast<const __half2 *>(&f.v.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2 *>(&f.v.y));
        v[0] = low.x, v[1] = low.y, v[2] = high.x, v[3] = high.y;
    } else {
#pragma unroll
        for (int r = 0; r < 4; r++)
            v[r] = f.v[r];
    }
}

/* 'side' threads side by side take a row of x, blockIdx.y the rows of S beyond theirs. */
template <typename V, gcu_csr_way WAY>
static __global__ void __launch_bounds__(THREADS)
    entries_kernel(gcu_matrix m, gcu_csr x, gcu_csr_table t, int64_t shift, int64_t skipped,
                   int side, gcu_csr_out out)
{
    const group g = group_of(min(side, 32));
    const int64_t at_once = THREADS / side, base = *x.base;
    const int64_t last = t.width - 1;
    const int64_t mine = blockIdx.y * (int64_t)side + threadIdx.x % side;
    const int64_t four_rows = min(mine, last); /* all lanes of a group bring nonzeros */
    for (int64_t i = blockIdx.x * at_once + threadIdx.x / side; i < x.rows;
         i += gridDim.x * at_once) {
        const int64_t begin = x.offsets[i] - base, end = x.offsets[i + 1] - base;
        V sum[4] = {};
        walk_row<WAY == GCU_CSR_DRAWN ? 1 : AHEAD, V>(
            g, x, begin, end,
            [&](int64_t col) { return entries_of<WAY>(m, t, four_rows, col + shift); },
            [&](const four<WAY> &f, V v) {
                float entry[4];
                as_floats<WAY>(f, entry);
#pragma unroll
                for (int r = 0; r < 4; r++)
                    sum[r] = fma_rn(v, (V)entry[r], sum[r]);
            });
        if (mine > last) continue;
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int64_t row = 4 * mine + r - skipped;
            if (row >= 0 && row < t.rows) gcu_csr_emit<V>(out, i, row, sum[r]);
        }
    }
}

template <typename V, gcu_csr_way WAY>
static cudaError_t entries(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out)
{
    const gcu_csr_table *t = &s->table;
    int side = 1; /* threads side by side */
    while (side < t->width && side < THREADS)
        side *= 2;
    const dim3 grid(gcu_grid(x->rows, THREADS / side, MOST_GRID),
                    (unsigned)((t->width + side - 1) / side));
    entries_kernel<V, WAY><<<grid, THREADS, 0, s->stream>>>(s->m, *x, *t, s->col - t->first,
                                                            s->row - t->row, side, *out);
    return cudaGetLastError();
}

template <typename V>
static cudaError_t columns(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out,
                           uint32_t *longs)
{
    switch (s->table.way) {
    case GCU_CSR_BITS:
        return bits<V>(s, x, out, longs);
    case GCU_CSR_HALVES:
        return entries<V, GCU_CSR_HALVES>(s, x, out);
    case GCU_CSR_FLOATS:
        return entries<V, GCU_CSR_FLOATS>(s, x, out);
    default:
        return entries<V, GCU_CSR_DRAWN>(s, x, out);
    }
}

cudaError_t gcu_csr_columns(const gcu_csr_sketch *s, const gcu_csr *x, const gcu_csr_out *out,
                            uint32_t *longs)
{
    return s->f64 ? columns<double>(s, x, out, longs) : columns<float>(s, x, out, longs);
}
