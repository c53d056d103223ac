#include "dedup/wide/wide.h"

#include "dedup/device/job.h"
#include "dedup/sort.h"

#include <string.h>

#ifdef __x86_64__

#include <immintrin.h>

#define WIDE __attribute__((target("avx2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")))

typedef __m512i vector;

/* ---- words ---- */

/* A piece of a text: its bytes as they count, of which eight behind the last one may be read; where
 * its words begin and end, in turn; and their tokens, behind those that are still in an n-gram. */
enum { PIECE = 4096, BLOCK = 64, LANES = 8, SOME = 16 };
typedef struct piece {
    unsigned char bytes[PIECE + BLOCK];
    uint32_t places[PIECE + 2 * SOME];
    uint64_t tokens[GNOMON_NGRAM_MOST + PIECE / 2 + LANES];
} piece;

/* Up to 64 bytes as they count, zeros behind them, and a bit for each that belongs to a word. */
WIDE static inline uint64_t map_block(const gnomon_ngrams *n, const unsigned char *text,
                                      int64_t count, unsigned char *out)
{
    const __mmask64 there = count < BLOCK ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0);
    const vector c = _mm512_maskz_loadu_epi8(there, text);
    const __mmask64 upper =
        _mm512_cmple_epu8_mask(_mm512_sub_epi8(c, _mm512_set1_epi8('A')), _mm512_set1_epi8(25));
    uint64_t word;
    if (n->punctuation) {
        const __mmask64 space = _mm512_cmple_epu8_mask(_mm512_sub_epi8(c, _mm512_set1_epi8('\t')),
                                                       _mm512_set1_epi8(4)) |
                                _mm512_cmpeq_epi8_mask(c, _mm512_set1_epi8(' ')) |
                                _mm512_testn_epi8_mask(c, c);
        word = ~(uint64_t)space;
    } else {
        word =
            upper | _mm512_movepi8_mask(c) |
            _mm512_cmple_epu8_mask(_mm512_sub_epi8(c, _mm512_set1_epi8('a')),
                                   _mm512_set1_epi8(25)) |
            _mm512_cmple_epu8_mask(_mm512_sub_epi8(c, _mm512_set1_epi8('0')), _mm512_set1_epi8(9));
    }
    const vector low =
        n->lower ? _mm512_mask_add_epi8(c, upper, c, _mm512_set1_epi8('a' - 'A')) : c;
    _mm512_storeu_si512(out, low);
    return word;
}

/* The places at which words begin and end, the last one at 'count' if it goes on there. Returns how
 * many places there are. */
WIDE static int64_t cut(const gnomon_ngrams *n, const unsigned char *text, int64_t count, piece *p)
{
    const vector first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    uint64_t before = 0;
    int64_t made = 0;
    for (int64_t at = 0; at < count; at += BLOCK) {
        const uint64_t word = map_block(n, text + at, count - at, p->bytes + at);
        uint64_t change = word ^ (word << 1 | before);
        before = word >> 63;
        for (int64_t i = 0; i < BLOCK; i += SOME, change >>= SOME) {
            const __mmask16 bits = (__mmask16)change;
            const vector place = _mm512_add_epi32(first, _mm512_set1_epi32((int)(at + i)));
            _mm512_storeu_si512(p->places + made, _mm512_maskz_compress_epi32(bits, place));
            made += __builtin_popcount(bits);
        }
    }
    memset(p->bytes + gnomon_ceil_div(count, BLOCK) * BLOCK, 0, sizeof(uint64_t));
    if (before != 0) p->places[made++] = (uint32_t)count;
    return made;
}

WIDE static inline vector mix(vector z)
{
    const vector one = _mm512_set1_epi64((long long)UINT64_C(0xbf58476d1ce4e5b9));
    const vector two = _mm512_set1_epi64((long long)UINT64_C(0x94d049bb133111eb));
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 30)), one);
    z = _mm512_mullo_epi64(_mm512_xor_si512(z, _mm512_srli_epi64(z, 27)), two);
    return _mm512_xor_si512(z, _mm512_srli_epi64(z, 31));
}

/* The eight bytes at each place as one number, the first one's weight the largest. */
WIDE static inline vector eights_of(const unsigned char *bytes, vector at)
{
    const vector turn =
        _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    return _mm512_shuffle_epi8(_mm512_i64gather_epi64(at, bytes, 1), turn);
}

/* The tokens of 'count' words, eight at a time. */
WIDE static void hash_words(const piece *p, int64_t count, uint64_t *tokens)
{
    const vector weight = _mm512_set1_epi64((long long)GNOMON_NGRAM_WORD);
    const vector eight = _mm512_set1_epi64(8), bits = _mm512_set1_epi64(64);
    for (int64_t k = 0; k < count; k += LANES) {
        const __mmask8 there =
            (__mmask8)(count - k < LANES ? (1u << (count - k)) - 1 : (1u << LANES) - 1);
        const vector two = _mm512_maskz_loadu_epi64(there, p->places + 2 * k);
        vector at = _mm512_and_si512(two, _mm512_set1_epi64(UINT32_MAX));
        vector left = _mm512_sub_epi64(_mm512_srli_epi64(two, 32), at);
        const vector length = _mm512_mullo_epi64(left, weight);
        vector hash = _mm512_setzero_si512(), now = eights_of(p->bytes, at);
        for (;;) {
            const __mmask8 whole = _mm512_cmpge_epu64_mask(left, eight);
            if (whole == 0) break;
            const vector next = _mm512_mullo_epi64(mix(_mm512_add_epi64(hash, now)), weight);
            hash = _mm512_mask_mov_epi64(hash, whole, next);
            at = _mm512_mask_add_epi64(at, whole, at, eight);
            left = _mm512_mask_sub_epi64(left, whole, left, eight);
            now = eights_of(p->bytes, at);
        }
        /* a shift by 64 leaves 0 */
        const vector last =
            _mm512_srlv_epi64(now, _mm512_sub_epi64(bits, _mm512_slli_epi64(left, 3)));
        hash = mix(_mm512_add_epi64(_mm512_add_epi64(hash, last), length));
        _mm512_storeu_si512(tokens + k, hash);
    }
}

/* The n-grams of 'count' tokens, of which there are enough. */
WIDE static void roll(const gnomon_ngrams *n, const uint64_t *tokens, int64_t count, uint64_t *set)
{
    const vector base = _mm512_set1_epi64((long long)GNOMON_NGRAM_BASE);
    const int64_t made = count - n->length + 1;
    for (int64_t i = 0; i < made; i += LANES) {
        vector hash = _mm512_loadu_si512(tokens + i);
        for (int64_t t = 1; t < n->length; t++)
            hash = _mm512_add_epi64(_mm512_mullo_epi64(hash, base),
                                    _mm512_loadu_si512(tokens + i + t));
        const __mmask8 there =
            (__mmask8)(made - i < LANES ? (1u << (made - i)) - 1 : (1u << LANES) - 1);
        _mm512_mask_storeu_epi64(set + i, there, mix(hash));
    }
}

int64_t gnomon_wide_words(const gnomon_ngrams *n, const char *text, int64_t bytes, uint64_t *set)
{
    piece p;
    int64_t made = 0, held = 0; /* n-grams; tokens at the front of p.tokens */
    for (int64_t at = 0; at < bytes;) {
        const int64_t count = gnomon_min(PIECE, bytes - at);
        const bool more = at + count < bytes;
        int64_t places = cut(n, (const unsigned char *)text + at, count, &p);
        at += count;
        if (more && places > 0 && p.places[places - 1] == count) {
            /* the last word may go on: it comes again */
            if (p.places[places - 2] == 0) return -1;
            at -= count - p.places[places - 2];
            places -= 2;
        }
        hash_words(&p, places / 2, p.tokens + held);
        held += places / 2;
        const int64_t some = gnomon_max(0, held - n->length + 1);
        roll(n, p.tokens, held, set + made);
        made += some;
        memmove(p.tokens, p.tokens + some, (size_t)(held - some) * sizeof *p.tokens);
        held -= some;
    }
    if (made > 0 || held == 0) return made;
    uint64_t hash = 0;
    for (int64_t t = 0; t < held; t++)
        hash = hash * GNOMON_NGRAM_BASE + p.tokens[t];
    set[0] = gnomon_mix64(hash + (uint64_t)held);
    return 1;
}

/* ---- sorting ---- */

/* The lesser numbers of two vectors to a, the greater ones to b. */
WIDE static inline void order(vector *a, vector *b)
{
    const vector least = _mm512_min_epu64(*a, *b);
    *b = _mm512_max_epu64(*a, *b);
    *a = least;
}

/* Eight vectors: the eight columns of their numbers, by 19 comparisons in six steps (Batcher's and
 * others' network; Knuth, The Art of Computer Programming 3, section 5.3.4). */
WIDE static inline void sort_columns(vector v[8])
{
    order(&v[0], &v[2]), order(&v[1], &v[3]), order(&v[4], &v[6]), order(&v[5], &v[7]);
    order(&v[0], &v[4]), order(&v[1], &v[5]), order(&v[2], &v[6]), order(&v[3], &v[7]);
    order(&v[0], &v[1]), order(&v[2], &v[3]), order(&v[4], &v[5]), order(&v[6], &v[7]);
    order(&v[2], &v[4]), order(&v[3], &v[5]);
    order(&v[1], &v[4]), order(&v[3], &v[6]);
    order(&v[1], &v[2]), order(&v[3], &v[4]), order(&v[5], &v[6]);
}

/* Columns become rows. */
WIDE static inline void transpose(vector v[8])
{
    vector two[8], four[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
        two[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
        two[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
    }
    /* two[i]: numbers 2k + i % 2 of rows i and i + 1, k the pair of lanes */
#pragma GCC unroll 8
    for (int h = 0; h < 8; h += 4)
#pragma GCC unroll 2
        for (int i = h; i < h + 2; i++) {
            four[i] = _mm512_shuffle_i64x2(two[i], two[i + 2], 0x88);
            four[i + 2] = _mm512_shuffle_i64x2(two[i], two[i + 2], 0xdd);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0x88);
        v[i + 4] = _mm512_shuffle_i64x2(four[i], four[i + 4], 0xdd);
    }
}

/* Numbers that rise and then fall, or the other way, in one vector, in order. */
WIDE static inline vector order_lanes(vector v)
{
    vector far = _mm512_shuffle_i64x2(v, v, 0x4e);
    v = _mm512_mask_max_epu64(_mm512_min_epu64(v, far), 0xf0, v, far);
    far = _mm512_permutex_epi64(v, 0x4e);
    v = _mm512_mask_max_epu64(_mm512_min_epu64(v, far), 0xcc, v, far);
    far = _mm512_permutex_epi64(v, 0xb1);
    return _mm512_mask_max_epu64(_mm512_min_epu64(v, far), 0xaa, v, far);
}

/* Two ordered halves of 'count' vectors, merged (bitonic, Batcher 1968). */
__attribute__((always_inline)) WIDE static inline void merge(vector *v, int count)
{
    const vector turn = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    vector back[8];
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; i++)
        back[i] = _mm512_permutexvar_epi64(turn, v[count - 1 - i]);
#pragma GCC unroll 8
    for (int i = 0; i < count / 2; i++) {
        v[count / 2 + i] = back[i];
        order(&v[i], &v[count / 2 + i]);
    }
#pragma GCC unroll 4
    for (int step = count / 4; step > 0; step /= 2)
#pragma GCC unroll 8
        for (int i = 0; i < count; i++)
            if ((i & step) == 0) order(&v[i], &v[i + step]);
#pragma GCC unroll 16
    for (int i = 0; i < count; i++)
        v[i] = order_lanes(v[i]);
}

WIDE static inline void load(const uint64_t *a, int64_t count, vector v[8])
{
    const vector most = _mm512_set1_epi64(-1);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const int64_t here = gnomon_max(0, gnomon_min(LANES, count - LANES * i));
        v[i] = _mm512_mask_loadu_epi64(most, (__mmask8)((1u << here) - 1), a + LANES * i);
    }
}

WIDE static inline void store(const vector v[8], int64_t count, uint64_t *a)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const int64_t here = gnomon_max(0, gnomon_min(LANES, count - LANES * i));
        _mm512_mask_storeu_epi64(a + LANES * i, (__mmask8)((1u << here) - 1), v[i]);
    }
}

WIDE static inline void sort_eight(vector v[8])
{
    sort_columns(v);
    transpose(v);
    for (int i = 0; i < 8; i += 2)
        merge(v + i, 2);
    merge(v, 4);
    merge(v + 4, 4);
    merge(v, 8);
}

/* At most 64, and 128. */
WIDE static void sort_64(uint64_t *a, int64_t count)
{
    vector v[8];
    load(a, count, v);
    sort_eight(v);
    store(v, count, a);
}

WIDE static void sort_128(uint64_t *a, int64_t count)
{
    vector v[16];
    load(a, 64, v);
    sort_eight(v);
    load(a + 64, count - 64, v + 8);
    sort_eight(v + 8);
    merge(v, 16);
    store(v, 64, a);
    store(v + 8, count - 64, a + 64);
}

static bool sort_few(uint64_t *a, int64_t count)
{
    if (count > 128) return false;
    if (count > 64)
        sort_128(a, count);
    else if (count > 12)
        sort_64(a, count);
    else
        gnomon_sort_numbers(a, count);
    return true;
}

void gnomon_wide_sort(uint64_t *a, uint64_t *scratch, int64_t count)
{
    enum { EACH = 48, MOST_BITS = 7, DIGITS = 8192 };
    if (sort_few(a, count)) return;
    if (count >= DIGITS) {
        gnomon_sort_digits(a, scratch, count);
        return;
    }
    int bits = 1;
    while (bits < MOST_BITS && (int64_t)EACH << bits < count)
        bits++;
    const int shift = 64 - bits;
    int32_t ends[1 << MOST_BITS] = {0};
    for (int64_t i = 0; i < count; i++)
        ends[a[i] >> shift]++;
    for (int32_t b = 0, at = 0; b < 1 << bits; b++) {
        const int32_t here = ends[b];
        ends[b] = at;
        at += here;
    }
    for (int64_t i = 0; i < count; i++)
        scratch[ends[a[i] >> shift]++] = a[i];
    for (int32_t b = 0, begin = 0; b < 1 << bits; begin = ends[b++])
        if (!sort_few(scratch + begin, ends[b] - begin))
            gnomon_sort_numbers(scratch + begin, ends[b] - begin);
    memcpy(a, scratch, (size_t)count * sizeof *a);
}

#else

int64_t gnomon_wide_words(const gnomon_ngrams *n, const char *text, int64_t bytes, uint64_t *set)
{
    (void)n, (void)text, (void)bytes, (void)set;
    return -1;
}

void gnomon_wide_sort(uint64_t *a, uint64_t *scratch, int64_t count)
{
    gnomon_sort_hashes(a, scratch, count);
}

#endif
