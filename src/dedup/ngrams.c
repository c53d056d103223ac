#include "dedup/ngrams.h"

#include "base/utf8.h"
#include "dedup/sort.h"

#include <string.h>

/* A word's hash takes eight bytes at a time; an n-gram's is a polynomial of its words' hashes,
 * modulo 2^64, so that it rolls on by two products whatever its length. BASE - 1 is twice an odd
 * number: words that change places alter the sum by a difference of hashes times few twos. */
static const uint64_t BASE = UINT64_C(0x9e3779b97f4a7c17);
static const uint64_t WORD = UINT64_C(0xd6e8feb86659fd93);

void gnomon_ngrams_start(gnomon_ngrams *n, int64_t length, bool characters, bool lower,
                         bool punctuation)
{
    *n = (gnomon_ngrams){.length = length, .characters = characters, .power = 1};
    for (int c = 0; c < 256; c++) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool word = letter || (c >= '0' && c <= '9') || c >= 128;
        const bool space = c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
        if (!(punctuation ? !space : word)) continue;
        n->map[c] = (unsigned char)(lower && c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    for (int64_t i = 0; i < length; i++)
        n->power *= BASE;
}

int64_t gnomon_ngrams_most(const gnomon_ngrams *n, int64_t bytes)
{
    return n->characters ? bytes : bytes / 2 + 1;
}

/* ---- words and characters ---- */

typedef struct cursor {
    const unsigned char *at, *end;
    const unsigned char *map;
} cursor;

static inline bool next_word(cursor *c, uint64_t *out)
{
    const unsigned char *at = c->at, *const end = c->end;
    while (at < end && c->map[*at] == 0)
        at++;
    if (at == end) return false;
    uint64_t hash = 0, eight = 0;
    int have = 0;
    const unsigned char *const begin = at;
    for (unsigned char m; at < end && (m = c->map[*at]) != 0; at++) {
        eight = eight << 8 | m;
        if (++have < 8) continue;
        hash = gnomon_mix64(hash + eight) * WORD;
        eight = 0;
        have = 0;
    }
    c->at = at;
    *out = gnomon_mix64(hash + eight + (uint64_t)(at - begin) * WORD);
    return true;
}

/* A character is one of UTF-8; what is between words is one space, and none at the ends. */
static inline bool next_character(cursor *c, uint64_t *out)
{
    const unsigned char *at = c->at;
    if (at < c->end && c->map[*at] == 0) {
        while (at < c->end && c->map[*at] == 0)
            at++;
        c->at = at;
        if (at == c->end) return false;
        *out = gnomon_mix64(' ' + BASE);
        return true;
    }
    if (at == c->end) return false;
    uint64_t code = c->map[*at++];
    while (at < c->end && (*at & 0xc0) == 0x80)
        code = code << 8 | *at++;
    c->at = at;
    *out = gnomon_mix64(code + BASE);
    return true;
}

static inline int64_t roll(const gnomon_ngrams *n, cursor c, bool characters, uint64_t *set)
{
    uint64_t last[GNOMON_NGRAM_MOST] = {0}, hash = 0, token;
    const int64_t length = n->length;
    int64_t tokens = 0, count = 0, place = 0;
    while (characters ? next_character(&c, &token) : next_word(&c, &token)) {
        hash = hash * BASE + token - last[place] * n->power;
        last[place] = token;
        if (++place == length) place = 0;
        if (++tokens >= length) set[count++] = gnomon_mix64(hash);
    }
    if (tokens > 0 && count == 0) set[count++] = gnomon_mix64(hash + (uint64_t)tokens);
    return count;
}

int64_t gnomon_ngrams_of(const gnomon_ngrams *n, const char *text, int64_t bytes, uint64_t *set,
                         uint64_t *scratch)
{
    cursor c = {(const unsigned char *)text, (const unsigned char *)text + bytes, n->map};
    if (n->characters) /* no space begins a text */
        while (c.at < c.end && c.map[*c.at] == 0)
            c.at++;
    const int64_t count = n->characters ? roll(n, c, true, set) : roll(n, c, false, set);
    gnomon_sort_hashes(set, scratch, count);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (i == 0 || set[i] != set[i - 1]) set[kept++] = set[i];
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

/* ---- UTF-8 ---- */

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
