/* The lists of columns and signs that sjlt's sums follow (sjlt.h). */
#include "cuda/sjlt.h"

/* k and s are at most 2^32, so the products fit but for band = s. */
static __device__ __forceinline__ int64_t band_first(const sjlt_shape &s, int64_t band)
{
    return band == s.bands ? s.k : (int64_t)((uint64_t)band * (uint64_t)s.k / (uint64_t)s.bands);
}

/* Keys of each band, and sign words of four bands at once. */
static __global__ void prepare(sjlt_shape s, sjlt_lists lists)
{
    const int64_t words = s.chunk / 32, quads = (s.bands + 3) / 4;
    const int64_t count = lists.count * quads * words;
    const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (t < count) {
        const int64_t word = t % words, quad = t / words % quads, c = t / words / quads;
        const uint4 w =
            gcu_call(s.signs, (uint32_t)quad, (uint64_t)((lists.first + c) * words + word));
        for (int i = 0; i < 4 && 4 * quad + i < s.bands; i++)
            lists.sign[(c * s.bands + 4 * quad + i) * words + word] = gcu_word(w, i);
    }
    if (t < lists.count * s.bands) {
        const int64_t band = t % s.bands, c = t / s.bands;
        const uint4 a = gcu_call_general(s.keys, (uint32_t)band, (uint64_t)(lists.first + c), 0);
        const uint4 b = gcu_call_general(s.keys, (uint32_t)band, (uint64_t)(lists.first + c), 1);
        uint4 *to = reinterpret_cast<uint4 *>(lists.key) + 2 * t;
        to[0] = a;
        to[1] = b;
    }
}

/* One entry: the column of a slot, above it the sign. */
static __device__ __forceinline__ uint32_t entry(const sjlt_shape &s, const uint32_t *key,
                                                 const uint32_t *sign, uint32_t slot, int sign_bit)
{
    const uint32_t y = (uint32_t)gcu_perm_inverse(slot, s.chunk_log2, key);
    return y | (sign[y >> 5] >> (y & 31) & 1) << sign_bit;
}

static __device__ __forceinline__ void order(uint32_t &a, uint32_t &b, uint32_t mask)
{
    const bool swap = (b & mask) < (a & mask);
    const uint32_t t = a;
    a = swap ? b : a;
    b = swap ? t : b;
}

/* Ascending columns of 4 or 8 entries, by sorting networks. */
template <int COUNT> static __device__ __forceinline__ void sort(uint32_t *e, uint32_t mask)
{
#define AB(a, b) order(e[a], e[b], mask)
    if constexpr (COUNT == 4) {
        AB(0, 1), AB(2, 3), AB(0, 2), AB(1, 3), AB(1, 2);
    } else {
        AB(0, 1), AB(2, 3), AB(4, 5), AB(6, 7), AB(0, 2), AB(1, 3), AB(4, 6), AB(5, 7);
        AB(1, 2), AB(5, 6), AB(0, 4), AB(1, 5), AB(2, 6), AB(3, 7), AB(2, 4), AB(3, 5);
        AB(1, 2), AB(3, 4), AB(5, 6);
    }
#undef AB
}

/* Lists of at most 2 * PAIRS entries (PAIRS 0: of any number, in the order of slots). A thread
 * makes one virtual row's lists of several chunks: its slots are the same in each. */
template <int PAIRS, bool WIDE>
static __global__ void __launch_bounds__(256) make(sjlt_shape s, sjlt_lists lists)
{
    const int64_t at = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (at >= lists.rows) return;
    const int64_t row = (lists.row + at) / s.split, part = (lists.row + at) % s.split;
    const int64_t band = (int64_t)(((uint64_t)(row + 1) * (uint64_t)s.bands - 1) / (uint64_t)s.k);
    const int64_t first = band_first(s, band), m = (band_first(s, band + 1) - first) * s.split;
    const int64_t r = (row - first) * s.split + part;
    const uint32_t begin = (uint32_t)((r * s.chunk + m - 1) / m);
    const uint32_t end = (uint32_t)(((r + 1) * s.chunk + m - 1) / m);
    const uint32_t none = WIDE ? 0xFFFFFFFFu : 0xFFFFu;
    const int sign_bit = WIDE ? 31 : 15;
    for (int64_t c = blockIdx.y; c < lists.count; c += gridDim.y) {
        uint32_t key[6];
#pragma unroll
        for (int i = 0; i < 6; i++)
            key[i] = lists.key[(c * s.bands + band) * 8 + i];
        const uint32_t *sign = lists.sign + (c * s.bands + band) * (s.chunk / 32);
        uint32_t *to = lists.words + c * sjlt_list_words(s, WIDE) * lists.rows + at;
        if constexpr (PAIRS > 0) {
            uint32_t e[2 * PAIRS];
#pragma unroll
            for (int i = 0; i < 2 * PAIRS; i++)
                e[i] = begin + i < end ? entry(s, key, sign, begin + i, sign_bit) : none;
            sort<2 * PAIRS>(e, none >> 1);
#pragma unroll
            for (int i = 0; i < 2 * PAIRS; i += 2)
                if (WIDE) {
                    to[i * lists.rows] = e[i];
                    to[(i + 1) * lists.rows] = e[i + 1];
                } else {
                    to[i / 2 * lists.rows] = (e[i] & 0xFFFFu) | e[i + 1] << 16;
                }
        } else { /* never wide: such chunks have few slots a row */
            for (int i = 0; i < s.pairs; i++) {
                const uint32_t slot = begin + 2 * i;
                const uint32_t x = slot < end ? entry(s, key, sign, slot, sign_bit) : none;
                const uint32_t y = slot + 1 < end ? entry(s, key, sign, slot + 1, sign_bit) : none;
                to[i * lists.rows] = (x & 0xFFFFu) | y << 16;
            }
        }
    }
}

template <bool WIDE>
static void launch_make(const sjlt_shape &s, const sjlt_lists &lists, dim3 grid,
                        cudaStream_t stream)
{
    if (s.pairs == 2)
        make<2, WIDE><<<grid, 256, 0, stream>>>(s, lists);
    else if (s.pairs == 4)
        make<4, WIDE><<<grid, 256, 0, stream>>>(s, lists);
    else
        make<0, false><<<grid, 256, 0, stream>>>(s, lists);
}

cudaError_t sjlt_make_lists(const sjlt_shape &s, const sjlt_lists &lists, cudaStream_t stream)
{
    const int64_t calls = lists.count * ((s.bands + 3) / 4) * (s.chunk / 32);
    const int64_t keys = lists.count * s.bands;
    const int64_t most = calls > keys ? calls : keys;
    prepare<<<(unsigned)((most + 255) / 256), 256, 0, stream>>>(s, lists);
    const dim3 grid((unsigned)((lists.rows + 255) / 256),
                    (unsigned)((lists.count + 7) / 8 < 32768 ? (lists.count + 7) / 8 : 32768));
    if (lists.wide)
        launch_make<true>(s, lists, grid, stream);
    else
        launch_make<false>(s, lists, grid, stream);
    return cudaGetLastError();
}
