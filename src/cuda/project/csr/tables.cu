/* Columns of S, made once for all of x's nonzeros. */
#include "base/arithmetic.h"
#include "cuda/project/csr/csr.h"
#include "cuda/runtime/grid.cuh"

#include <cub/device/device_scan.cuh>

#include <math.h>
#include <stdio.h>

enum { THREADS = 256, WARPS = THREADS / 32 };

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20);
}

/* ---- which ---- */

/* Signs are drawn for 32 columns at a time, so that a table of far more columns than nonzeros pays
 * too. */
static const int64_t columns_a_nonzero_bits = 4;
static const double most_list_entries = 2147483000.0;

static gcu_csr_way way_of(const gnomon_simple *a)
{
    switch (a->kind) {
    case GNOMON_RADEMACHER:
    case GNOMON_SRHT:
        return GCU_CSR_BITS;
    case GNOMON_ACHLIOPTAS:
        return GCU_CSR_HALVES;
    case GNOMON_GAUSSIAN:
        return a->precision == GNOMON_F16 ? GCU_CSR_HALVES : GCU_CSR_FLOATS;
    case GNOMON_VERY_SPARSE:
        return GCU_CSR_LISTS;
    default:
        return GCU_CSR_CODES;
    }
}

static int64_t pow2(int64_t n, int64_t most)
{
    int64_t p = 1;
    while (p < n && p < most)
        p *= 2;
    return p;
}

bool gcu_csr_plan_table(gcu_csr_sketch *s, int64_t cols, int64_t nonzeros, size_t bytes, char *why,
                        size_t why_size)
{
    const gnomon_simple *a = s->a;
    gcu_csr_table *t = &s->table;
    *t = gcu_csr_table{};
    t->way = way_of(a);
    t->first = s->col;
    t->row = s->row;
    t->rows = s->rows;
    const int64_t end = s->col + cols;
    double size = 0;
    bool pays = cols <= nonzeros;
    switch (t->way) {
    case GCU_CSR_BITS:
        t->first = s->col / 32 * 32;
        t->threads = pow2((s->rows + 31) / 32, 32);
        t->width = (s->rows + 32 * t->threads - 1) / (32 * t->threads) * t->threads;
        t->cols = (end - t->first + 31) / 32 * 32;
        size = (double)t->cols * (double)t->width * 4;
        pays = cols / columns_a_nonzero_bits <= nonzeros;
        break;
    case GCU_CSR_HALVES:
    case GCU_CSR_FLOATS:
        t->row = s->row / 4 * 4;
        t->width = (s->row + s->rows - t->row + 3) / 4;
        t->cols = cols;
        size = (double)t->cols * (double)t->width * (t->way == GCU_CSR_HALVES ? 8 : 16);
        break;
    case GCU_CSR_LISTS:
        /* whole chunks, since rows are walked chunk by chunk */
        t->first = s->col / a->chunk * a->chunk;
        t->cols = end - t->first;
        size = (double)t->cols * (double)s->rows * a->fill;
        if (size > most_list_entries || (double)t->cols > most_list_entries ||
            size * 4 + (double)t->cols * 8 > (double)bytes) {
            snprintf(why, why_size,
                     "the nonzeros of very-sparse's columns, about %.3g in %.3g columns, are more "
                     "than the GPU's memory holds",
                     size, (double)t->cols);
            return false;
        }
        return true;
    default:
        t->each = a->column_entries;
        t->each_log2 =
            (t->each & (t->each - 1)) == 0 ? __builtin_ctzll((unsigned long long)t->each) : -1;
        t->cols = cols;
        size = (double)t->cols * (double)t->each * 4;
    }
    if (pays && size <= (double)bytes) return true;
    t->first = s->col;
    t->cols = 0;
    if (t->way == GCU_CSR_CODES) {
        t->way = GCU_CSR_CODES_OF_NONZEROS;
        return true;
    }
    t->way = GCU_CSR_DRAWN;
    t->row = s->row / 4 * 4;
    t->width = (s->row + s->rows - t->row + 3) / 4;
    return true;
}

size_t gcu_csr_table_bytes(const gcu_csr_table *t)
{
    const size_t cols = (size_t)t->cols;
    switch (t->way) {
    case GCU_CSR_BITS:
        return cols * (size_t)t->width * 4;
    case GCU_CSR_HALVES:
        return cols * (size_t)t->width * 8;
    case GCU_CSR_FLOATS:
        return cols * (size_t)t->width * 16;
    case GCU_CSR_CODES:
        return cols * (size_t)t->each * 4;
    default:
        return 0;
    }
}

/* ---- dense kinds ---- */

/* Bit c of word r becomes bit r of word c. */
static __device__ __forceinline__ void transpose_bits(uint32_t w[32])
{
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const uint32_t mask = step == 16  ? 0x0000FFFFu
                              : step == 8 ? 0x00FF00FFu
                              : step == 4 ? 0x0F0F0F0Fu
                              : step == 2 ? 0x33333333u
                                          : 0x55555555u;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            if (k & step) continue;
            const uint32_t t = (w[k] >> step ^ w[k + step]) & mask;
            w[k] ^= t << step;
            w[k + step] ^= t;
        }
    }
}

/* A thread for 32 rows and 32 columns. */
static __global__ void __launch_bounds__(THREADS) sign_kernel(gcu_matrix m, gcu_csr_table t)
{
    uint32_t *to = static_cast<uint32_t *>(t.data);
    GCU_FOR_EACH(at, t.cols / 32 * t.width)
    {
        const int64_t q = at / t.width, word = at % t.width;
        uint32_t w[32];
#pragma unroll
        for (int i = 0; i < 32; i++) {
            const uint64_t row = (uint64_t)(t.row + gcu_csr_bit_row(t, word, i));
            w[i] = gcu_word(gcu_call(m.stream, (uint32_t)(row / 4), (uint64_t)(t.first / 32 + q)),
                            (int)(row & 3));
        }
        transpose_bits(w);
#pragma unroll
        for (int c = 0; c < 32; c++)
            to[(q * 32 + c) * t.width + word] = w[c];
    }
}

/* srht: a thread for 32 rows and one column; hadamard holds the rows' places in H. */
static __global__ void __launch_bounds__(THREADS)
    hadamard_kernel(gcu_matrix m, gcu_csr_table t, uint64_t *hadamard)
{
    GCU_FOR_EACH(i, 32 * t.width)
    {
        const int64_t row = t.row + i;
        hadamard[i] = row < m.rows ? gcu_perm((uint64_t)row, m.order_log2, m.srht_key) : 0;
    }
}

static __global__ void __launch_bounds__(THREADS)
    parity_kernel(gcu_matrix m, gcu_csr_table t, const uint64_t *hadamard)
{
    uint32_t *to = static_cast<uint32_t *>(t.data);
    GCU_FOR_EACH(at, t.cols * t.width)
    {
        const uint64_t j = (uint64_t)(t.first + at / t.width);
        const int64_t word = at % t.width;
        const uint32_t minus = gcu_call(m.stream, 0, j >> 5).x >> (j & 31) & 1;
        uint32_t bits = 0;
        for (int i = 0; i < 32; i++)
            bits |= ((uint32_t)__popcll(hadamard[gcu_csr_bit_row(t, word, i)] & j) & 1u ^ minus)
                    << i;
        to[at] = bits;
    }
}

/* A thread for four rows and one column. */
static __global__ void __launch_bounds__(THREADS) entries_kernel(gcu_matrix m, gcu_csr_table t)
{
    GCU_FOR_EACH(at, t.cols * t.width)
    {
        const int64_t j = t.first + at / t.width, group = t.row / 4 + at % t.width;
        float v[4];
        gcu_entries(m, (uint32_t)group, (uint64_t)j, v);
        if (t.way == GCU_CSR_FLOATS) {
            static_cast<float4 *>(t.data)[at] = make_float4(v[0], v[1], v[2], v[3]);
        } else {
            const __half2 low = __floats2half2_rn(v[0], v[1]), high = __floats2half2_rn(v[2], v[3]);
            uint2 both;
            both.x = *reinterpret_cast<const uint32_t *>(&low);
            both.y = *reinterpret_cast<const uint32_t *>(&high);
            static_cast<uint2 *>(t.data)[at] = both;
        }
    }
}

/* ---- kinds with bands: as many codes a column ---- */

/* Keys of the chunks from 'first' on, where they are fewer than would be worth drawing anew. */
struct keys {
    uint32_t *key; /* NULL: drawn */
    int64_t first, chunks;
};

static const int64_t most_keys = 1 << 20;

static keys keys_of(const gcu_csr_sketch *s, int64_t cols, void *work)
{
    keys k = {};
    k.first = s->col / s->a->chunk;
    k.chunks = cols > 0 ? (s->col + cols - 1) / s->a->chunk - k.first + 1 : 0;
    if (k.chunks <= most_keys / s->a->bands) k.key = static_cast<uint32_t *>(work);
    return k;
}

static __global__ void __launch_bounds__(THREADS) keys_kernel(gcu_matrix m, keys k)
{
    GCU_FOR_EACH(i, k.chunks * m.bands)
    gcu_sjlt_keys(m, k.first + i / m.bands, i % m.bands, k.key + 6 * i);
}

static __device__ __forceinline__ uint32_t code_of(const gcu_matrix &m, const keys &k, int64_t j,
                                                   int64_t chunk, int64_t band, uint4 signs)
{
    uint32_t drawn[6];
    const uint32_t *key = drawn;
    if (k.key)
        key = k.key + 6 * ((chunk - k.first) * m.bands + band);
    else
        gcu_sjlt_keys(m, chunk, band, drawn);
    const int64_t first = gcu_band_first(m, band), rows = gcu_band_first(m, band + 1) - first;
    const uint64_t slot = gcu_perm((uint64_t)(j - chunk * m.chunk), m.chunk_log2, key);
    const uint64_t row = (uint64_t)first + ((slot * (uint64_t)rows) >> m.chunk_log2);
    return (uint32_t)row << 1 | (gcu_word(signs, (int)(band & 3)) >> (j & 31) & 1);
}

static __device__ void codes_of(const gcu_matrix &m, const keys &k, int64_t j, uint32_t *to)
{
    const int64_t chunk = j / m.chunk;
    uint4 signs = {};
    int64_t group = -1;
    if (m.kind != GNOMON_BLOCKPERM_SJLT) {
        for (int64_t band = 0; band < m.bands; band++) {
            if (band / 4 != group)
                signs = gcu_call(m.other, (uint32_t)(group = band / 4), (uint64_t)j >> 5);
            to[band] = code_of(m, k, j, chunk, band, signs);
        }
        return;
    }
    const uint64_t blocks = (uint64_t)1 << m.blocks_log2;
    const uint64_t from =
        gcu_perm((uint64_t)(chunk / m.chunks_a_block), m.blocks_log2, m.wiring_key[0]);
    for (int64_t l = 0; l < m.wiring; l++) {
        const uint64_t block =
            (from + gcu_perm((uint64_t)l, m.blocks_log2, m.wiring_key[1])) & (blocks - 1);
        for (int64_t i = 0; i < m.nonzeros; i++) {
            const int64_t band = (int64_t)block * m.nonzeros + i;
            if (band / 4 != group)
                signs = gcu_call(m.other, (uint32_t)(group = band / 4), (uint64_t)j >> 5);
            to[l * m.nonzeros + i] = code_of(m, k, j, chunk, band, signs);
        }
    }
}

/* Of the table's columns, or of a list of them. */
static __global__ void __launch_bounds__(THREADS)
    codes_kernel(gcu_matrix m, keys k, const int64_t *cols, int64_t first, int64_t count,
                 int64_t each, uint32_t *to)
{
    GCU_FOR_EACH(e, count) codes_of(m, k, first + (cols ? cols[e] : e), to + e * each);
}

static cudaError_t make_codes(const gcu_csr_sketch *s, keys k, const int64_t *cols, int64_t first,
                              int64_t count, int64_t each, uint32_t *to)
{
    if (count == 0) return cudaSuccess;
    if (k.key) keys_kernel<<<grid_of(k.chunks * s->m.bands), THREADS, 0, s->stream>>>(s->m, k);
    codes_kernel<<<grid_of(count), THREADS, 0, s->stream>>>(s->m, k, cols, first, count, each, to);
    return cudaGetLastError();
}

cudaError_t gcu_csr_code_nonzeros(const gcu_csr_sketch *s, const gcu_csr *x, uint32_t *codes,
                                  void *work)
{
    const int64_t width = s->a->cols - s->col; /* where x ends is not known here */
    return make_codes(s, keys_of(s, width, work), x->cols, s->col, x->nonzeros, s->table.each,
                      codes);
}

/* ---- very-sparse ---- */

/* A warp walks one row through one chunk; counts, or writes to where 'next' says. */
template <bool WRITE>
static __global__ void __launch_bounds__(THREADS)
    walk_kernel(gcu_matrix m, gcu_csr_table t, uint32_t *next)
{
    const int lane = threadIdx.x % 32;
    const int64_t first = t.first / m.chunk, chunks = (t.cols + m.chunk - 1) / m.chunk;
    uint32_t *to = static_cast<uint32_t *>(t.data);
    for (int64_t w = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32; w < chunks * t.rows;
         w += gridDim.x * (int64_t)WARPS) {
        const int64_t chunk = w / t.rows, row = t.row + w % t.rows;
        gcu_walk walk = gcu_walk_row(m, row, first + chunk);
        while (gcu_walk_on(m, &walk, lane)) {
            const int64_t j = chunk * m.chunk + walk.col; /* counted from the table's first */
            if (lane >= walk.count || walk.col >= m.chunk || j >= t.cols) continue;
            const uint32_t at = atomicAdd(&next[j], 1u);
            if (WRITE) to[at] = (uint32_t)row << 1 | walk.minus;
        }
    }
}

static size_t scan_bytes(const gcu_csr_table *t)
{
    size_t bytes = 0;
    const uint32_t *from = nullptr;
    cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, (uint32_t *)nullptr, t->cols + 1);
    return bytes;
}

size_t gcu_csr_count_bytes(const gcu_csr_table *t)
{
    return gcu_aligned((size_t)(t->cols + 1) * 4) + gcu_aligned(scan_bytes(t));
}

static unsigned walkers(const gcu_csr_sketch *s)
{
    const int64_t chunks = (s->table.cols + s->a->chunk - 1) / s->a->chunk;
    return gcu_grid(chunks * s->table.rows, WARPS, 1 << 20);
}

cudaError_t gcu_csr_count_lists(const gcu_csr_sketch *s, void *work, size_t work_bytes)
{
    const gcu_csr_table *t = &s->table;
    uint32_t *counts = static_cast<uint32_t *>(work);
    const size_t own = gcu_aligned((size_t)(t->cols + 1) * 4);
    size_t bytes = work_bytes - own;
    cudaError_t error = cudaMemsetAsync(counts, 0, (size_t)(t->cols + 1) * 4, s->stream);
    if (error != cudaSuccess) return error;
    walk_kernel<false><<<walkers(s), THREADS, 0, s->stream>>>(s->m, *t, counts);
    return cub::DeviceScan::ExclusiveSum(static_cast<char *>(work) + own, bytes,
                                         static_cast<const uint32_t *>(counts), t->start,
                                         t->cols + 1, s->stream);
}

/* ---- all ---- */

size_t gcu_csr_fill_bytes(const gcu_csr_sketch *s)
{
    const gcu_csr_table *t = &s->table;
    switch (t->way) {
    case GCU_CSR_BITS:
        return s->a->kind == GNOMON_SRHT ? (size_t)t->width * 32 * 8 : 0;
    case GCU_CSR_LISTS:
        return (size_t)(t->cols + 1) * 4;
    case GCU_CSR_CODES:
    case GCU_CSR_CODES_OF_NONZEROS: {
        const keys k = keys_of(s, t->way == GCU_CSR_CODES ? t->cols : s->a->cols - s->col, nullptr);
        return k.chunks <= most_keys / s->a->bands ? (size_t)(k.chunks * s->a->bands) * 24 : 0;
    }
    default:
        return 0;
    }
}

cudaError_t gcu_csr_fill_table(const gcu_csr_sketch *s, void *work)
{
    const gcu_csr_table *t = &s->table;
    if (t->cols == 0) return cudaSuccess;
    switch (t->way) {
    case GCU_CSR_BITS:
        if (s->a->kind == GNOMON_SRHT) {
            uint64_t *hadamard = static_cast<uint64_t *>(work);
            hadamard_kernel<<<grid_of(32 * t->width), THREADS, 0, s->stream>>>(s->m, *t, hadamard);
            parity_kernel<<<grid_of(t->cols * t->width), THREADS, 0, s->stream>>>(s->m, *t,
                                                                                  hadamard);
        } else {
            sign_kernel<<<grid_of(t->cols / 32 * t->width), THREADS, 0, s->stream>>>(s->m, *t);
        }
        break;
    case GCU_CSR_HALVES:
    case GCU_CSR_FLOATS:
        entries_kernel<<<grid_of(t->cols * t->width), THREADS, 0, s->stream>>>(s->m, *t);
        break;
    case GCU_CSR_CODES:
        return make_codes(s, keys_of(s, t->cols, work), nullptr, s->col, t->cols, t->each,
                          static_cast<uint32_t *>(t->data));
    case GCU_CSR_LISTS: {
        const cudaError_t error = cudaMemcpyAsync(work, t->start, (size_t)(t->cols + 1) * 4,
                                                  cudaMemcpyDeviceToDevice, s->stream);
        if (error != cudaSuccess) return error;
        walk_kernel<true>
            <<<walkers(s), THREADS, 0, s->stream>>>(s->m, *t, static_cast<uint32_t *>(work));
        break;
    }
    default:
        break;
    }
    return cudaGetLastError();
}
