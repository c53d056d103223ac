/* cuda/project/sjlt/lists.cuh: the lists of columns and signs that sjlt's sums follow
 * (project/sjlt/sjlt.h): a block of threads makes those of a unit, SJLT_LIST_ROWS virtual rows of
 * SJLT_LIST_CHUNKS chunks. */
#ifndef GNOMON_CUDA_SJLT_LISTS_CUH
#define GNOMON_CUDA_SJLT_LISTS_CUH

#include "cuda/project/sjlt/sjlt.h"

enum {
    SJLT_LIST_ROWS = 2048,
    SJLT_LIST_CHUNKS = 2,
    SJLT_SIGN_WORDS = 2048, /* kept in shared memory, of all bands and chunks of a unit */
    SJLT_KEYS = 64          /* pairs of a chunk and a band whose keys are kept there */
};

struct sjlt_list_memory {
    uint4 key[SJLT_KEYS][2]; /* six words */
    uint32_t sign[SJLT_SIGN_WORDS];
};

/* Blocks that make the lists of some chunks. */
static __host__ __device__ __forceinline__ uint32_t sjlt_list_units(const sjlt_lists &lists,
                                                                    int64_t chunks)
{
    return (uint32_t)((lists.rows + SJLT_LIST_ROWS - 1) / SJLT_LIST_ROWS) *
           (uint32_t)((chunks + SJLT_LIST_CHUNKS - 1) / SJLT_LIST_CHUNKS);
}

#ifdef __CUDACC__

/* k and s are at most 2^32, so the products fit but for band = s. */
static __device__ __forceinline__ int64_t sjlt_band_first(const sjlt_shape &s, int64_t band)
{
    return band == s.bands ? s.k : (int64_t)((uint64_t)band * (uint64_t)s.k / (uint64_t)s.bands);
}

static __device__ __forceinline__ int64_t sjlt_band_of(const sjlt_shape &s, int64_t virtual_row)
{
    const int64_t row = virtual_row / s.split;
    return (int64_t)(((uint64_t)(row + 1) * (uint64_t)s.bands - 1) / (uint64_t)s.k);
}

/* A virtual row's band and slots. */
struct sjlt_slots {
    int64_t band;
    uint32_t begin, end;
};

static __device__ __forceinline__ sjlt_slots sjlt_slots_of(const sjlt_shape &s, int64_t virtual_row)
{
    sjlt_slots l;
    if (s.full) { /* rows below 2^32, and bands of at most 2^28 */
        const uint32_t row = (uint32_t)virtual_row;
        const uint32_t m = (uint32_t)(s.chunk / (4 * s.steps)), band = row / m;
        l.band = band;
        l.begin = (row - band * m) * (uint32_t)(4 * s.steps);
        l.end = l.begin + (uint32_t)(4 * s.steps);
        return l;
    }
    l.band = sjlt_band_of(s, virtual_row);
    const int64_t first = sjlt_band_first(s, l.band);
    const int64_t m = (sjlt_band_first(s, l.band + 1) - first) * s.split;
    const int64_t r = virtual_row - first * s.split;
    l.begin = (uint32_t)((r * s.chunk + m - 1) / m);
    l.end = (uint32_t)(((r + 1) * s.chunk + m - 1) / m);
    return l;
}

/* A band's keys in a chunk, times the Feistel function's first factor. */
static __device__ __forceinline__ void sjlt_keys_of(const sjlt_shape &s, int64_t chunk,
                                                    int64_t band, uint4 key[2])
{
    const uint4 a = gcu_call_general(s.keys, (uint32_t)band, (uint64_t)chunk, 0);
    const uint4 b = gcu_call_general(s.keys, (uint32_t)band, (uint64_t)chunk, 1);
    key[0] = make_uint4(a.x * 0x9E3779B1u, a.y * 0x9E3779B1u, a.z * 0x9E3779B1u, a.w * 0x9E3779B1u);
    key[1] = make_uint4(b.x * 0x9E3779B1u, b.y * 0x9E3779B1u, 0, 0);
}

static __device__ __forceinline__ uint32_t sjlt_feistel(uint32_t v, uint32_t key, int shift)
{
    uint32_t t = v * 0x9E3779B1u + key;
    t ^= t >> 15;
    return t * 0x85EBCA77u >> shift;
}

/* gcu_perm_inverse of at most 32 bits, two at least, by such keys. */
static __device__ __forceinline__ uint32_t sjlt_column(uint32_t slot, int bits, uint4 k, uint4 l)
{
    const int right_bits = bits / 2, left_bits = bits - right_bits;
    uint32_t right = slot & ((1u << right_bits) - 1), left = slot >> right_bits;
    right ^= sjlt_feistel(left, l.y, 32 - right_bits);
    left ^= sjlt_feistel(right, l.x, 32 - left_bits);
    right ^= sjlt_feistel(left, k.w, 32 - right_bits);
    left ^= sjlt_feistel(right, k.z, 32 - left_bits);
    right ^= sjlt_feistel(left, k.y, 32 - right_bits);
    left ^= sjlt_feistel(right, k.x, 32 - left_bits);
    return left << right_bits | right;
}

/* Ascending, by sorting networks. */
template <int COUNT> static __device__ __forceinline__ void sjlt_sort(uint32_t *e)
{
    static_assert(COUNT == 4 || COUNT == 8, "networks for these");
    auto order = [&](int a, int b) {
        const uint32_t low = min(e[a], e[b]), high = max(e[a], e[b]);
        e[a] = low, e[b] = high;
    };
    if constexpr (COUNT == 4) {
        order(0, 1), order(2, 3), order(0, 2), order(1, 3), order(1, 2);
    } else {
        order(0, 1), order(2, 3), order(4, 5), order(6, 7);
        order(0, 2), order(1, 3), order(4, 6), order(5, 7);
        order(1, 2), order(5, 6), order(0, 4), order(1, 5), order(2, 6), order(3, 7);
        order(2, 4), order(3, 5), order(1, 2), order(3, 4), order(5, 6);
    }
}

template <bool BITS32>
static __device__ __forceinline__ void sjlt_put(const sjlt_lists &lists, int64_t at,
                                                const uint32_t *e)
{
    if (BITS32)
        static_cast<uint4 *>(lists.entries)[at] = make_uint4(e[0], e[1], e[2], e[3]);
    else
        static_cast<uint2 *>(lists.entries)[at] =
            make_uint2((e[0] & 0xFFFFu) | e[1] << 16, (e[2] & 0xFFFFu) | e[3] << 16);
}

/* A band's sign word, where there is no room to keep them. */
static __device__ __noinline__ uint32_t sjlt_sign_word(const sjlt_shape &s, int64_t band,
                                                       uint64_t at)
{
    return gcu_word(gcu_call(s.signs, (uint32_t)(band / 4), at), (int)(band & 3));
}

/* Makes the lists of unit 'unit' among those of chunks [begin, end), counted from the lists' first:
 * of STEPS steps in ascending order, or (STEPS 0) of any number in the order of slots. All threads
 * of the block. */
template <int STEPS, bool BITS32>
static __device__ __forceinline__ void sjlt_list_unit(const sjlt_shape &s, const sjlt_lists &lists,
                                                      int64_t begin, int64_t end, uint32_t unit,
                                                      sjlt_list_memory *memory)
{
    const uint32_t tid = threadIdx.x, threads = blockDim.x;
    const uint32_t parts = (uint32_t)((lists.rows + SJLT_LIST_ROWS - 1) / SJLT_LIST_ROWS);
    const int64_t row0 = (int64_t)(unit % parts) * SJLT_LIST_ROWS;
    const int64_t row_end = min(row0 + SJLT_LIST_ROWS, lists.rows);
    const int64_t c0 = begin + (int64_t)(unit / parts) * SJLT_LIST_CHUNKS;
    const int chunks = (int)min((int64_t)SJLT_LIST_CHUNKS, end - c0);
    const int64_t chunk0 = lists.first + c0;
    const int64_t band0 = sjlt_slots_of(s, lists.row + row0).band;
    const int64_t bands = sjlt_slots_of(s, lists.row + row_end - 1).band + 1 - band0;
    const uint32_t words_log2 = (uint32_t)s.chunk_log2 - 5; /* sign words of a chunk */
    const bool kept =
        bands * chunks <= SJLT_KEYS && bands * chunks << words_log2 <= (int64_t)SJLT_SIGN_WORDS;
    if (kept) {
        const uint32_t quad0 = (uint32_t)(band0 / 4);
        const uint32_t quads = (uint32_t)((band0 + bands + 3) / 4) - quad0;
        for (uint32_t t = tid; t < quads * chunks << words_log2; t += threads) {
            const uint32_t word = t & ((1u << words_log2) - 1);
            const uint32_t c = (t >> words_log2) / quads, quad = quad0 + (t >> words_log2) % quads;
            const uint4 w = gcu_call(s.signs, quad, (uint64_t)(chunk0 + c) << words_log2 | word);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t band = (int64_t)quad * 4 + i - band0;
                if (band >= 0 && band < bands)
                    memory->sign[(c * bands + band) << words_log2 | word] = gcu_word(w, i);
            }
        }
        if (tid < chunks * bands)
            sjlt_keys_of(s, chunk0 + tid / (uint32_t)bands, band0 + tid % (uint32_t)bands,
                         memory->key[tid]);
        __syncthreads();
    }
#pragma unroll 1
    for (int64_t row = row0 + tid; row < row_end; row += threads) {
        const sjlt_slots slots = sjlt_slots_of(s, lists.row + row);
        uint32_t at = (uint32_t)(slots.band - band0); /* of the chunk and band */
#pragma unroll 1
        for (int c = 0; c < chunks; c++, at += (uint32_t)bands) {
            const uint32_t *const sign = memory->sign + ((size_t)at << words_log2);
            uint4 key[2];
            if (kept)
                key[0] = memory->key[at][0], key[1] = memory->key[at][1];
            else
                sjlt_keys_of(s, chunk0 + c, slots.band, key);
            const int64_t to = ((c0 + c) * lists.rows + row) * s.steps;
            constexpr int COUNT = STEPS > 0 ? 4 * STEPS : 4;
#pragma unroll 1
            for (int t = 0; t < (STEPS > 0 ? 1 : s.steps); t++) {
                const uint32_t slot = slots.begin + 4 * t;
                uint32_t y[COUNT], word[COUNT]; /* columns and their sign words */
#pragma unroll
                for (int i = 0; i < COUNT; i++)
                    y[i] = sjlt_column(slot + i & (uint32_t)(s.chunk - 1), s.chunk_log2, key[0],
                                       key[1]);
                if (kept) {
#pragma unroll
                    for (int i = 0; i < COUNT; i++)
                        word[i] = sign[y[i] >> 5];
                } else {
#pragma unroll
                    for (int i = 0; i < COUNT; i++)
                        word[i] = sjlt_sign_word(s, slots.band,
                                                 (uint64_t)(chunk0 + c) << words_log2 | y[i] >> 5);
                }
#pragma unroll
                for (int i = 0; i < COUNT; i++)
                    y[i] = slot + i < slots.end ? y[i] << 1 | (word[i] >> (y[i] & 31) & 1)
                                                : 0xFFFFFFFFu;
                if constexpr (STEPS > 0) sjlt_sort<COUNT>(y);
#pragma unroll
                for (int i = 0; i < COUNT / 4; i++)
                    sjlt_put<BITS32>(lists, to + t + i, y + 4 * i);
            }
        }
    }
}

/* The same, of lists of any length. A call, so that its registers are no burden to what else a
 * kernel does. */
template <bool BITS32>
static __device__ __noinline__ void sjlt_list_unit_any(const sjlt_shape &s, const sjlt_lists &lists,
                                                       int64_t begin, int64_t end, uint32_t unit,
                                                       sjlt_list_memory *memory)
{
    if (s.steps == 1)
        sjlt_list_unit<1, BITS32>(s, lists, begin, end, unit, memory);
    else if (s.steps == 2)
        sjlt_list_unit<2, BITS32>(s, lists, begin, end, unit, memory);
    else
        sjlt_list_unit<0, BITS32>(s, lists, begin, end, unit, memory);
}

#endif
#endif
