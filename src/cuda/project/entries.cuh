/* cuda/project/entries.cuh: entries of any simple kind, and elements of any type, chosen at run
 * time: for kernels that take everything. */
#ifndef GNOMON_CUDA_ENTRIES_CUH
#define GNOMON_CUDA_ENTRIES_CUH

#include "cuda/project/family.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* A gnomon_simple as kernels take it. */
struct gcu_matrix {
    gnomon_kind kind;
    gnomon_dtype precision;
    gcu_stream stream, other; /* gaussian fp16: of the tail; kinds with bands: of the signs */
    gcu_gaussian16 gaussian16;
    int64_t rows, cols, chunk, bands;
    int64_t nonzeros, wiring, chunks_a_block; /* blockperm-sjlt */
    int blocks_log2;
    uint32_t wiring_key[2][6];
    int chunk_log2, order_log2;
    uint32_t srht_key[6];
    float jump_scale;
};

/* What kernels for every kind know of one: one row per kind. */
enum gcu_adjoint_way {
    GCU_ADJOINT_DENSE, /* entries by gcu_entries */
    GCU_ADJOINT_BANDS, /* a column finds its rows by the permutations of its bands */
    GCU_ADJOINT_LISTS, /* a chunk's nonzeros are listed by column, from the walks along its rows */
    GCU_ADJOINT_HADAMARD /* transforms of what the rows add */
};

struct gcu_kind {
    gnomon_kind kind;
    gnomon_dtype precision;  /* 0: has none */
    uint32_t tag, other_tag; /* 0: has no other stream */
    bool sparse;             /* walks along rows by gcu_walk_on instead of gcu_entries */
    gcu_adjoint_way adjoint;
};

/* nullptr for a kind without kernels. */
static inline const gcu_kind *gcu_kind_of(const gnomon_simple *a)
{
    static const gcu_kind kinds[] = {
        {GNOMON_GAUSSIAN, GNOMON_F32, GNOMON_TAG_GAUSSIAN, 0, false, GCU_ADJOINT_DENSE},
        {GNOMON_GAUSSIAN, GNOMON_F16, GNOMON_TAG_GAUSSIAN16, GNOMON_TAG_GAUSSIAN16_TAIL, false,
         GCU_ADJOINT_DENSE},
        {GNOMON_RADEMACHER, (gnomon_dtype)0, GNOMON_TAG_SIGN, 0, false, GCU_ADJOINT_DENSE},
        {GNOMON_ACHLIOPTAS, (gnomon_dtype)0, GNOMON_TAG_ACHLIOPTAS, 0, false, GCU_ADJOINT_DENSE},
        {GNOMON_VERY_SPARSE, (gnomon_dtype)0, GNOMON_TAG_VERY_SPARSE, 0, true, GCU_ADJOINT_LISTS},
        {GNOMON_SJLT, (gnomon_dtype)0, GNOMON_TAG_SJLT_KEYS, GNOMON_TAG_SJLT_SIGNS, true,
         GCU_ADJOINT_BANDS},
        {GNOMON_SRHT, (gnomon_dtype)0, GNOMON_TAG_SRHT_SIGNS, 0, false, GCU_ADJOINT_HADAMARD},
        {GNOMON_BLOCKPERM_SJLT, (gnomon_dtype)0, GNOMON_TAG_BLOCKPERM_KEYS,
         GNOMON_TAG_BLOCKPERM_SIGNS, true, GCU_ADJOINT_LISTS},
    };
    for (const gcu_kind &k : kinds)
        if (k.kind == a->kind && (k.precision == 0 || k.precision == a->precision)) return &k;
    return nullptr;
}

static inline gcu_matrix gcu_matrix_of(const gnomon_simple *a, const gcu_gpu *gpu)
{
    const gcu_kind *kind = gcu_kind_of(a);
    gcu_matrix m = {};
    m.kind = a->kind;
    m.precision = a->precision;
    m.stream = gcu_stream_of(a, kind->tag);
    m.other = gcu_stream_of(a, kind->other_tag);
    m.gaussian16 = gpu->gaussian16;
    m.rows = a->rows;
    m.cols = a->cols;
    m.chunk = a->chunk;
    m.bands = a->bands;
    m.chunk_log2 = a->chunk_log2;
    m.order_log2 = a->order_log2;
    m.nonzeros = a->nonzeros;
    m.wiring = a->wiring;
    m.chunks_a_block = a->chunks_a_block;
    m.blocks_log2 = a->blocks_log2;
    for (int i = 0; i < 6; i++) {
        m.srht_key[i] = a->srht_key[i];
        m.wiring_key[0][i] = a->wiring_key[0][i];
        m.wiring_key[1][i] = a->wiring_key[1][i];
    }
    m.jump_scale = a->jump_scale;
    return m;
}

#ifdef __CUDACC__

/* Raw values of rows 4 group ... 4 group + 3 in column j, of every kind but the sparse ones. */
static __device__ __forceinline__ void gcu_entries(const gcu_matrix &m, uint32_t group, uint64_t j,
                                                   float v[4])
{
    if (m.kind == GNOMON_GAUSSIAN && m.precision != GNOMON_F16) {
        const uint4 w = gcu_call(m.stream, group, j);
        const float2 a = gcu_box_muller(w.x, w.y), b = gcu_box_muller(w.z, w.w);
        v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
    } else if (m.kind == GNOMON_GAUSSIAN) {
        const uint4 w = gcu_call(m.stream, group, j >> 1);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t h = gcu_word(w, i) >> (j & 1) * 16 & 0xFFFFu;
            uint16_t bits = m.gaussian16.magnitude[h & 0x7FFFu];
            if ((h & 0x7FFFu) == 0x7FFFu)
                bits = gcu_gaussian16_tail(m.gaussian16, gcu_word(gcu_call(m.other, group, j), i));
            const float x = __half2float(__ushort_as_half(bits));
            v[i] = h >> 15 ? -x : x;
        }
    } else if (m.kind == GNOMON_RADEMACHER) {
        const uint4 w = gcu_call(m.stream, group, j >> 5);
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = gcu_word(w, i) >> (j & 31) & 1 ? -1.0f : 1.0f;
    } else if (m.kind == GNOMON_ACHLIOPTAS) {
        const uint4 w = gcu_call(m.stream, group, j >> 3);
#pragma unroll
        for (int i = 0; i < 4; i++)
            v[i] = (float)gcu_achlioptas_digit(gcu_word(w, i), (int)(j & 7));
    } else if (m.kind == GNOMON_SRHT) {
        const uint32_t minus = gcu_call(m.stream, 0, j >> 5).x >> (j & 31) & 1;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint64_t h = gcu_perm(4 * (uint64_t)group + i, m.order_log2, m.srht_key);
            v[i] = (__popcll(h & j) & 1) != (int)minus ? -1.0f : 1.0f;
        }
    } else { /* sparse kinds don't come here */
        v[0] = v[1] = v[2] = v[3] = 0.0f;
    }
}

/* k and s are at most 2^32, so the products fit but for band = s. */
static __device__ __forceinline__ int64_t gcu_band_first(const gcu_matrix &m, int64_t band)
{
    return band == m.bands ? m.rows
                           : (int64_t)((uint64_t)band * (uint64_t)m.rows / (uint64_t)m.bands);
}

static __device__ __forceinline__ int64_t gcu_band_of(const gcu_matrix &m, int64_t row)
{
    return (int64_t)(((uint64_t)(row + 1) * (uint64_t)m.bands - 1) / (uint64_t)m.rows);
}

static __device__ __forceinline__ void gcu_sjlt_keys(const gcu_matrix &m, int64_t chunk,
                                                     int64_t band, uint32_t key[6])
{
    const uint4 a = gcu_call_general(m.stream, (uint32_t)band, (uint64_t)chunk, 0);
    const uint4 b = gcu_call_general(m.stream, (uint32_t)band, (uint64_t)chunk, 1);
    key[0] = a.x, key[1] = a.y, key[2] = a.z, key[3] = a.w, key[4] = b.x, key[5] = b.y;
}

/* blockperm-sjlt: whether the band's row block meets the chunk's column block. */
static __device__ __forceinline__ bool gcu_blockperm_wired(const gcu_matrix &m, int64_t chunk,
                                                           int64_t band)
{
    const uint64_t column_block = (uint64_t)(chunk / m.chunks_a_block);
    const uint64_t from = gcu_perm(column_block, m.blocks_log2, m.wiring_key[0]);
    const uint64_t by =
        ((uint64_t)(band / m.nonzeros) - from) & (((uint64_t)1 << m.blocks_log2) - 1);
    return gcu_perm_inverse(by, m.blocks_log2, m.wiring_key[1]) < (uint64_t)m.wiring;
}

/* A warp's walk along one row of one chunk of a sparse kind, 32 nonzeros at a time, an entry a
 * lane. */
struct gcu_walk {
    int64_t row, chunk;
    uint32_t key[6];  /* kinds with bands */
    uint32_t at, end; /* kinds with bands: slots; very-sparse: draws so far, unused */
    uint64_t x;       /* very-sparse: one more than the last column */
    bool over;
    uint32_t col, minus; /* this lane's entry; lanes below 'count' have one, unless col is at or
                            beyond the chunk's end */
    int count;
};

static __device__ __forceinline__ gcu_walk gcu_walk_row(const gcu_matrix &m, int64_t row,
                                                        int64_t chunk)
{
    gcu_walk w = {};
    w.row = row;
    w.chunk = chunk;
    if (m.bands == 0) return w;
    const int64_t band = gcu_band_of(m, row), first = gcu_band_first(m, band);
    const int64_t rows = gcu_band_first(m, band + 1) - first;
    if (m.kind == GNOMON_BLOCKPERM_SJLT && !gcu_blockperm_wired(m, chunk, band)) {
        w.over = true;
        return w;
    }
    const int64_t slots = (int64_t)1 << m.chunk_log2;
    w.at = (uint32_t)(((row - first) * slots + rows - 1) / rows);
    w.end = (uint32_t)(((row - first + 1) * slots + rows - 1) / rows);
    gcu_sjlt_keys(m, chunk, band, w.key);
    return w;
}

/* The next entries; false when there are none. All lanes of the warp call it together. */
static __device__ __forceinline__ bool gcu_walk_on(const gcu_matrix &m, gcu_walk *w, int lane)
{
    if (w->over) return false;
    if (m.bands != 0) {
        w->count = (int)min(w->end - w->at, 32u);
        w->over = w->end - w->at <= 32u;
        if (lane < w->count) {
            w->col = (uint32_t)gcu_perm_inverse(w->at + lane, m.chunk_log2, w->key);
            const uint64_t j = (uint64_t)w->chunk * (uint64_t)m.chunk + w->col;
            const int64_t band = gcu_band_of(m, w->row);
            w->minus = gcu_word(gcu_call(m.other, (uint32_t)(band / 4), j >> 5), (int)(band & 3)) >>
                           (j & 31) &
                       1;
        }
        w->at += 32;
        return w->count > 0;
    }
    const uint32_t word = gcu_word(
        gcu_call_general(m.stream, (uint32_t)(w->row >> 2), (uint64_t)w->chunk, w->at + lane),
        (int)(w->row & 3));
    uint64_t past = gcu_advance(word, m.jump_scale);
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const uint64_t before = __shfl_up_sync(0xFFFFFFFFu, past, d);
        if (lane >= d) past += before;
    }
    past += w->x; /* one more than this entry's column */
    w->col = (uint32_t)(past - 1);
    w->minus = word & 1;
    w->count = __popc(__ballot_sync(0xFFFFFFFFu, past <= (uint64_t)m.chunk));
    w->over = w->count < 32;
    w->x = __shfl_sync(0xFFFFFFFFu, past, 31);
    w->at += 32;
    return w->count > 0;
}

/* Element p of an array of this type. */
template <typename T>
static __device__ __forceinline__ T gcu_element(const void *data, gnomon_dtype dtype, int64_t p)
{
    switch (dtype) {
    case GNOMON_F64:
        return (T) static_cast<const double *>(data)[p];
    case GNOMON_F16:
        return (T)__half2float(static_cast<const __half *>(data)[p]);
    case GNOMON_BF16:
        return (T)__bfloat162float(static_cast<const __nv_bfloat16 *>(data)[p]);
    case GNOMON_I8:
        return (T) static_cast<const int8_t *>(data)[p];
    case GNOMON_U8:
        return (T) static_cast<const uint8_t *>(data)[p];
    case GNOMON_I16:
        return (T) static_cast<const int16_t *>(data)[p];
    case GNOMON_U16:
        return (T) static_cast<const uint16_t *>(data)[p];
    case GNOMON_I32:
        return (T) static_cast<const int32_t *>(data)[p];
    case GNOMON_U32:
        return (T) static_cast<const uint32_t *>(data)[p];
    case GNOMON_I64:
        return (T) static_cast<const int64_t *>(data)[p];
    case GNOMON_U64:
        return (T) static_cast<const uint64_t *>(data)[p];
    default:
        return (T) static_cast<const float *>(data)[p];
    }
}

/* gcu_load of any type. */
template <typename T>
static __device__ __forceinline__ T gcu_load_any(const gcu_points &x, int64_t b, int64_t i,
                                                 int64_t q)
{
    const int64_t at = b * x.block_cols + q;
    if (i >= x.n || b >= x.blocks || q < 0 || q >= x.block_cols || at < x.first || at >= x.end)
        return (T)0;
    return gcu_element<T>(x.data, x.dtype,
                          i * x.row_stride + b * x.block_stride + q * x.col_stride);
}

#endif
#endif
