#include "dedup/ngrams.h"

#include "base/utf8.h"
#include "dedup/device/job.h"
#include "dedup/sort.h"
#include "dedup/wide/wide.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const uint64_t BASE = GNOMON_NGRAM_BASE, WORD = GNOMON_NGRAM_WORD;

void gnomon_ngrams_start(gnomon_ngrams *n, const gnomon_dedup_options *o, gnomon_isa isa)
{
    *n = (gnomon_ngrams){.length = o->ngram,
                         .characters = o->characters != 0,
                         .lower = o->lower != GNOMON_LOWER_NONE,
                         .punctuation = o->punctuation == GNOMON_PUNCTUATION_KEEP,
                         .normal = {o->normalize, o->lower == GNOMON_LOWER_FOLD,
                                    o->punctuation == GNOMON_PUNCTUATION_DROP_ALL},
                         .weighted = o->weighted != 0,
                         .wide = gnomon_wide(isa),
                         .power = 1};
    n->normalizes = n->normal.form != GNOMON_NORMAL_NONE || n->normal.fold || n->normal.spaces;
    for (int c = 0; c < 256; c++) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool word = letter || (c >= '0' && c <= '9') || c >= 128;
        const bool space = c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
        if (!(n->punctuation ? !space : word)) continue;
        n->map[c] = (unsigned char)(n->lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    for (int64_t i = 0; i < n->length; i++)
        n->power *= BASE;
}

int64_t gnomon_ngrams_most(const gnomon_ngrams *n, const char *text, int64_t bytes)
{
    if (n->normalizes) return gnomon_normal_most(text, bytes, !n->characters);
    return n->characters ? bytes : bytes / 2 + 1;
}

/* ---- words ---- */

/* A piece of a text: its bytes as they count, and a bit for each that belongs to a word. Eight
 * bytes behind the last one may be read. */
enum { PIECE = 4096, BITS = 64 };
typedef struct piece {
    unsigned char bytes[PIECE + 8];
    uint64_t words[PIECE / BITS + 1];
} piece;

static void map_some(const gnomon_ngrams *n, const unsigned char *text, int64_t from, int64_t count,
                     piece *p)
{
    for (int64_t i = from; i < count; i++) {
        const unsigned char m = n->map[text[i]];
        p->bytes[i] = m;
        p->words[i / BITS] |= (uint64_t)(m != 0) << i % BITS;
    }
}

#ifdef __SSE2__

/* Whether bytes are in [low, low + count]. */
static inline __m128i in_range(__m128i bytes, char low, char count)
{
    const __m128i from = _mm_sub_epi8(bytes, _mm_set1_epi8(low));
    return _mm_cmpeq_epi8(_mm_min_epu8(from, _mm_set1_epi8(count)), from);
}

/* What the map says, of 16 bytes. */
static inline unsigned map_16(const gnomon_ngrams *n, const unsigned char *text, unsigned char *out)
{
    const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)text);
    const __m128i upper = in_range(c, 'A', 25);
    __m128i word;
    if (n->punctuation) {
        const __m128i space =
            _mm_or_si128(in_range(c, '\t', 4), _mm_cmpeq_epi8(c, _mm_set1_epi8(' ')));
        word = _mm_or_si128(space, _mm_cmpeq_epi8(c, _mm_setzero_si128()));
        word = _mm_xor_si128(word, _mm_set1_epi8(-1));
    } else {
        word = _mm_or_si128(in_range(c, 'a', 25), in_range(c, '0', 9));
        word = _mm_or_si128(_mm_or_si128(word, upper), _mm_cmplt_epi8(c, _mm_setzero_si128()));
    }
    const __m128i lower =
        n->lower ? _mm_and_si128(upper, _mm_set1_epi8('a' - 'A')) : _mm_setzero_si128();
    _mm_storeu_si128((__m128i *)(void *)out, _mm_add_epi8(c, lower));
    return (unsigned)_mm_movemask_epi8(word);
}

static void map_piece(const gnomon_ngrams *n, const unsigned char *text, int64_t count, piece *p)
{
    int64_t at = 0;
    for (; at + BITS <= count; at += BITS) {
        uint64_t bits = 0;
        for (int i = 0; i < BITS; i += 16)
            bits |= (uint64_t)map_16(n, text + at + i, p->bytes + at + i) << i;
        p->words[at / BITS] = bits;
    }
    p->words[at / BITS] = 0;
    for (; at + 16 <= count; at += 16)
        p->words[at / BITS] |= (uint64_t)map_16(n, text + at, p->bytes + at) << at % BITS;
    map_some(n, text, at, count, p);
}
#else
static void map_piece(const gnomon_ngrams *n, const unsigned char *text, int64_t count, piece *p)
{
    memset(p->words, 0, sizeof p->words);
    map_some(n, text, 0, count, p);
}
#endif

/* From bit 'at' on the first that is set (or with 'flip' that isn't) of 'count', or count. */
static inline int64_t find(const uint64_t *bits, int64_t at, int64_t count, uint64_t flip)
{
    if (at >= count) return count;
    int64_t w = at / BITS;
    uint64_t now = (bits[w] ^ flip) & ~UINT64_C(0) << at % BITS;
    while (now == 0) {
        if (++w * BITS >= count) return count;
        now = bits[w] ^ flip;
    }
    return gnomon_min(w * BITS + __builtin_ctzll(now), count);
}

/* Up to eight bytes as one number, the first one's weight the largest; eight may be read. */
static inline uint64_t eight_of(const unsigned char *at, int64_t count)
{
    uint64_t v;
    memcpy(&v, at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return count < 8 ? v >> (64 - 8 * count) : v;
}

/* A word, which may come in parts: all but the last of a multiple of eight bytes. */
typedef struct word {
    uint64_t hash;
    int64_t length;
} word;

static inline void hash_eights(word *w, const unsigned char *at, int64_t count)
{
    for (int64_t i = 0; i + 8 <= count; i += 8)
        w->hash = gnomon_mix64(w->hash + eight_of(at + i, 8)) * WORD;
    w->length += count & -8;
}

static inline uint64_t word_end(word w, const unsigned char *at, int64_t count)
{
    hash_eights(&w, at, count);
    const int64_t rest = count & 7;
    const uint64_t last = rest > 0 ? eight_of(at + (count & -8), rest) : 0;
    return gnomon_mix64(w.hash + last + (uint64_t)(w.length + rest) * WORD);
}

typedef struct roller {
    const gnomon_ngrams *n;
    uint64_t last[GNOMON_NGRAM_MOST];
    uint64_t hash;
    uint64_t *set;
    int64_t tokens, count, place;
    word open;   /* the word that goes on */
    bool within; /* whether one does, of which what 'open' has was taken */
    bool space;  /* between characters: a space, where another one follows */
} roller;

static inline void roll(roller *r, uint64_t token)
{
    r->hash = r->hash * BASE + token - r->last[r->place] * r->n->power;
    r->last[r->place] = token;
    if (++r->place == r->n->length) r->place = 0;
    if (++r->tokens >= r->n->length) r->set[r->count++] = gnomon_mix64(r->hash);
}

/* One piece, of at most PIECE bytes. Of a word that may go on whole eights are taken, and the rest
 * comes again. */
static int64_t roll_piece(roller *r, const unsigned char *text, int64_t count, bool more, piece *p)
{
    map_piece(r->n, text, count, p);
    for (int64_t begin = r->within ? 0 : find(p->words, 0, count, 0); begin < count;) {
        const int64_t end = find(p->words, begin, count, ~UINT64_C(0));
        if (end == count && more) {
            hash_eights(&r->open, p->bytes + begin, end - begin);
            r->within = true;
            return begin + ((end - begin) & -8);
        }
        roll(r, word_end(r->open, p->bytes + begin, end - begin));
        r->open = (word){0};
        r->within = false;
        begin = find(p->words, end, count, 0);
    }
    return count;
}

static int64_t roll_words(roller *r, const unsigned char *text, int64_t bytes, bool more)
{
    piece p;
    int64_t at = 0;
    while (at < bytes) {
        const int64_t count = gnomon_min(PIECE, bytes - at);
        const bool last = at + count == bytes;
        at += roll_piece(r, text + at, count, more || !last, &p);
        if (last && more) return at;
    }
    /* a word that ended with the bytes before */
    if (!more && r->within) roll(r, word_end(r->open, p.bytes, 0));
    return at;
}

/* ---- characters ---- */

/* A character is one of UTF-8; what is between words is one space, and none at the ends. */
static int64_t roll_characters(roller *r, const unsigned char *text, int64_t bytes)
{
    const unsigned char *at = text, *const end = at + bytes, *const map = r->n->map;
    while (at < end) {
        uint64_t code = map[*at++];
        if (code == 0) {
            r->space = r->tokens > 0;
            continue;
        }
        while (at < end && (*at & 0xc0) == 0x80)
            code = code << 8 | *at++;
        if (r->space) roll(r, gnomon_mix64(' ' + BASE));
        r->space = false;
        roll(r, gnomon_mix64(code + BASE));
    }
    return bytes;
}

static int64_t roll_some(void *user, const unsigned char *text, int64_t bytes, bool more)
{
    roller *r = user;
    return r->n->characters ? roll_characters(r, text, bytes) : roll_words(r, text, bytes, more);
}

/* As they come; repeated ones too. */
static int64_t make(const gnomon_ngrams *n, const char *text, int64_t bytes, uint64_t *set)
{
    roller r = {.n = n, .set = set};
    const bool plain = !n->normalizes || gnomon_normal_ascii(text, bytes) == bytes;
    if (plain && n->wide && !n->characters) {
        const int64_t count = gnomon_wide_words(n, text, bytes, set);
        if (count >= 0) return count;
    }
    if (plain)
        roll_some(&r, (const unsigned char *)text, bytes, false);
    else
        gnomon_normalize(&n->normal, text, bytes, roll_some, &r);
    if (r.tokens > 0 && r.count == 0) set[r.count++] = gnomon_mix64(r.hash + (uint64_t)r.tokens);
    return r.count;
}

static void sort(const gnomon_ngrams *n, uint64_t *set, uint64_t *scratch, int64_t count)
{
    if (n->wide)
        gnomon_wide_sort(set, scratch, count);
    else
        gnomon_sort_hashes(set, scratch, count);
}

/* Of equal n-grams, which follow one another, all but the first become others. Whether any did. */
static bool part_repeated(uint64_t *set, int64_t count)
{
    bool any = false;
    for (int64_t begin = 0, end; begin < count; begin = end) {
        const uint64_t one = set[begin];
        for (end = begin + 1; end < count && set[end] == one; end++) {
            set[end] = gnomon_mix64(one + (uint64_t)(end - begin) * WORD);
            any = true;
        }
    }
    return any;
}

int64_t gnomon_ngrams_of(const gnomon_ngrams *n, const char *text, int64_t bytes, uint64_t *set,
                         uint64_t *scratch)
{
    const int64_t count = make(n, text, bytes, set);
    sort(n, set, scratch, count);
    if (n->weighted && part_repeated(set, count)) sort(n, set, scratch, count);
    int64_t kept = 0;
    uint64_t last = count > 0 ? ~set[0] : 0;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t one = set[i];
        set[kept] = one;
        kept += one != last;
        last = one;
    }
    return kept;
}

uint64_t gnomon_set_hash(const uint64_t *set, int64_t count)
{
    uint64_t a = (uint64_t)count * WORD, b = BASE;
    int64_t i = 0;
    for (; i + 2 <= count; i += 2) {
        a = (a ^ set[i]) * BASE;
        a ^= a >> 29;
        b = (b ^ set[i + 1]) * WORD;
        b ^= b >> 31;
    }
    if (i < count) a = (a ^ set[i]) * BASE;
    return gnomon_mix64(gnomon_mix64(a) + b);
}

/* ---- texts ---- */

bool gnomon_text_blank(const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (text[i] != ' ' && (text[i] < '\t' || text[i] > '\r')) return false;
    return true;
}

int64_t gnomon_utf8_fault(const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes;) {
        uint64_t eight;
        uint32_t code;
        if (bytes - i >= 8) {
            memcpy(&eight, text + i, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                i += 8;
                continue;
            }
        }
        const size_t n = gnomon_utf8_code(text + i, (size_t)(bytes - i), &code);
        if (n == 0) return i;
        i += (int64_t)n;
    }
    return -1;
}
