/* n-grams against a plain implementation of docs/reference/formats.md, byte by byte: words of any
 * length at any place, across the pieces in which texts are taken. */
#include "dedup/ngrams.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 20000 };

static const uint64_t BASE = UINT64_C(0x9e3779b97f4a7c17), WORD = UINT64_C(0xd6e8feb86659fd93);
static uint64_t state = 7;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)n);
}

static int counts(unsigned char c, bool punctuation)
{
    if (c == 0 || c == ' ' || (c >= 9 && c <= 13)) return 0;
    return punctuation || c >= 128 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

static uint64_t word_hash(const unsigned char *at, int64_t length)
{
    uint64_t hash = 0, eight = 0;
    for (int64_t i = 0; i < length; i++) {
        eight = eight << 8 | at[i];
        if (i % 8 < 7) continue;
        hash = gnomon_mix64(hash + eight) * WORD;
        eight = 0;
    }
    return gnomon_mix64(hash + eight + (uint64_t)length * WORD);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Tokens of a text; then the sums of their hashes, each weighed by a power of BASE. */
static int64_t plainly(const char *text, int64_t bytes, int64_t size, bool characters, bool lower,
                       bool punctuation, bool weighted, uint64_t *set)
{
    static unsigned char low[ROOM];
    static uint64_t tokens[ROOM];
    int64_t count = 0, made = 0;
    for (int64_t i = 0; i < bytes; i++) {
        low[i] = (unsigned char)text[i];
        if (lower && low[i] >= 'A' && low[i] <= 'Z') low[i] += 32;
    }
    for (int64_t i = 0; i < bytes;) {
        int64_t end = i;
        if (!characters) {
            while (end < bytes && counts(low[end], punctuation))
                end++;
            if (end > i) tokens[count++] = word_hash(low + i, end - i);
            i = end + (end == i);
            continue;
        }
        uint64_t code = 0;
        if (!counts(low[i], punctuation)) {
            while (i < bytes && !counts(low[i], punctuation))
                i++;
            if (count == 0 || i == bytes) continue;
            tokens[count++] = gnomon_mix64(' ' + BASE);
            continue;
        }
        for (end = i + 1; end < bytes && (low[end] & 0xc0) == 0x80;)
            end++;
        for (; i < end; i++)
            code = code << 8 | low[i];
        tokens[count++] = gnomon_mix64(code + BASE);
    }
    for (int64_t i = 0; i + size <= count; i++) {
        uint64_t hash = 0;
        for (int64_t t = i; t < i + size; t++)
            hash = hash * BASE + tokens[t];
        set[made++] = gnomon_mix64(hash);
    }
    if (count > 0 && count < size) {
        uint64_t hash = 0;
        for (int64_t t = 0; t < count; t++)
            hash = hash * BASE + tokens[t];
        set[made++] = gnomon_mix64(hash + (uint64_t)count);
    }
    qsort(set, (size_t)made, sizeof *set, by_value);
    uint64_t one = 0;
    for (int64_t i = 0, before = 0; i < made && weighted; i++) {
        before = i > 0 && set[i] == one ? before + 1 : 0;
        one = set[i];
        if (before > 0) set[i] = gnomon_mix64(one + (uint64_t)before * WORD);
    }
    qsort(set, (size_t)made, sizeof *set, by_value);
    int64_t kept = 0;
    for (int64_t i = 0; i < made; i++)
        if (i == 0 || set[i] != set[i - 1]) set[kept++] = set[i];
    return kept;
}

static void same(const char *text, int64_t bytes)
{
    static uint64_t set[ROOM], scratch[ROOM], due[ROOM];
    static const int64_t sizes[] = {1, 2, 3, 7, 64};
    gnomon_ngrams n;
    char *copy = malloc((size_t)bytes + 1); /* of its own size: nothing behind it is read */
    assert_non_null(copy);
    memcpy(copy, text, (size_t)bytes);
    for (int way = 0; way < 8; way++) {
        const bool characters = way & 1, lower = way & 2, punctuation = way & 4;
        const bool weighted = below(2);
        const int64_t size = sizes[below(5)];
        gnomon_dedup_options o = GNOMON_DEDUP_OPTIONS_INIT;
        o.ngram = size;
        o.weighted = weighted;
        o.characters = characters;
        o.lower = lower ? GNOMON_LOWER_ASCII : GNOMON_LOWER_NONE;
        o.punctuation = punctuation ? GNOMON_PUNCTUATION_KEEP : GNOMON_PUNCTUATION_DROP;
        const int64_t wanted =
            plainly(text, bytes, size, characters, lower, punctuation, weighted, due);
        for (int isa = GNOMON_ISA_PORTABLE; isa <= GNOMON_ISA_AVX512; isa++) {
            if (!gnomon_isa_available((gnomon_isa)isa)) continue;
            gnomon_ngrams_start(&n, &o, (gnomon_isa)isa);
            const int64_t count = gnomon_ngrams_of(&n, copy, bytes, set, scratch);
            assert_true(count <= gnomon_ngrams_most(&n, copy, bytes));
            assert_int_equal(count, wanted);
            assert_memory_equal(set, due, (size_t)count * sizeof *set);
        }
    }
    free(copy);
}

static void random_texts(void **unused)
{
    (void)unused;
    static char text[ROOM];
    for (int round = 0; round < 400; round++) {
        const int64_t bytes = round < 100 ? round : below(round % 7 == 0 ? ROOM : 1000);
        const int spaces = 2 + below(round % 3 == 0 ? 5000 : 30);
        for (int64_t i = 0; i < bytes; i++) {
            const int what = below(spaces);
            text[i] = what == 0   ? " \t\n\r\v\f"[below(7) % 7]
                      : what == 1 ? (char)below(256)
                                  : (char)("abcdefghijklmnopqrstuvwxyzABCDEFG0123"[below(37)]);
        }
        same(text, bytes);
    }
}

/* Words that end at, before and behind the end of a piece, of all lengths about eight. */
static void at_the_ends_of_pieces(void **unused)
{
    (void)unused;
    static char text[ROOM];
    for (int length = 1; length < 40; length++)
        for (int before = 4096 - length - 2; before <= 4098; before++) {
            memset(text, 'x', sizeof text);
            for (int i = 3; i < before; i += 9)
                text[i] = ' ';
            text[before - 1] = ' ';
            text[before + length] = '.';
            same(text, before + length + below(20));
        }
    memset(text, 'y', sizeof text);
    for (int bytes = 4080; bytes < 4120; bytes++)
        same(text, bytes);
    same(text, ROOM);
    text[8192] = ' ';
    same(text, ROOM);
}

/* What a normalised text becomes, counted. */
typedef struct counter {
    int64_t characters, words, bytes;
    bool within, keep;
} counter;

static int64_t count_some(void *user, const unsigned char *text, int64_t bytes, bool more)
{
    counter *c = user;
    const int64_t taken = more && bytes > 5 ? bytes - 5 : bytes; /* some of it comes again */
    for (int64_t i = 0; i < taken; i++) {
        const bool word = counts(text[i], c->keep);
        c->characters += (text[i] & 0xc0) != 0x80;
        c->words += word && !c->within;
        c->within = word;
    }
    c->bytes += taken;
    return taken;
}

/* Room for n-grams: no character becomes more than gnomon_normal_most says, whatever is about it.
 */
static void room_of_normal_forms(void **unused)
{
    (void)unused;
    if (gnomon_normal_unicode() == NULL) skip();
    print_message("Unicode %s\n", gnomon_normal_unicode());
    static const char *const about[] = {"", "a", " ", "\xcc\x81"};
    for (uint32_t code = 0x80; code < 0x110000; code++) {
        if (code == 0x20000) code = 0x2f800;
        if (code == 0x2fa20) code = 0xe0000;
        if (code == 0xe0200) code = 0x10fff0;
        if (code >= 0xd800 && code < 0xe000) continue;
        char text[128] = "", one[5] = {0};
        const int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (int i = n - 1, left = (int)code; i > 0; i--, left >>= 6)
            one[i] = (char)(0x80 | (left & 0x3f));
        one[0] = (char)((0xf00 >> n & 0xff) | code >> (6 * (n - 1)));
        for (int way = 0; way < 4; way++) {
            text[0] = '\0';
            for (int i = 0; i < 4; i++)
                strcat(strcat(text, one), about[way]);
            const gnomon_normal normal = {GNOMON_NORMAL_NFKC, true, code % 2 == 0};
            counter c = {.keep = code % 3 == 0};
            const int64_t bytes = (int64_t)strlen(text);
            gnomon_normalize(&normal, text, bytes, count_some, &c);
            if (c.characters > gnomon_normal_most(text, bytes, false) ||
                c.words > gnomon_normal_most(text, bytes, true))
                fail_msg("U+%04X becomes %d characters and %d words", code, (int)c.characters,
                         (int)c.words);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts),
        cmocka_unit_test(at_the_ends_of_pieces),
        cmocka_unit_test(room_of_normal_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
