/* A text goes through up to four stages a character at a time: normal form, case folding, normal
 * form, output. A stage of a normal form holds a character with those that may be put in order or
 * composed with it. ASCII goes to the output as it is, but for the last character before another
 * one, with which that may be composed. */
#include "dedup/normal.h"

#include "base/utf8.h"

#include <gnomon/dedup.h>

#include <string.h>

int64_t gnomon_normal_ascii(const char *text, int64_t bytes)
{
    int64_t i = 0;
    for (uint64_t eight; i + 8 <= bytes; i += 8) {
        memcpy(&eight, text + i, 8);
        if ((eight & UINT64_C(0x8080808080808080)) != 0) break;
    }
    while (i < bytes && (unsigned char)text[i] < 0x80)
        i++;
    return i;
}

/* By a character's first byte: U+FDFA, of three bytes, becomes 18 characters and four words, and no
 * other one so many. The test counts all of them. */
int64_t gnomon_normal_most(const char *text, int64_t bytes, bool words)
{
    int64_t two = 0, most = 0;
    for (int64_t i = 0; i < bytes;) {
        const int64_t ascii = gnomon_normal_ascii(text + i, bytes - i);
        two += ascii;
        i += ascii;
        for (; i < bytes && (unsigned char)text[i] >= 0x80; i++) {
            const unsigned char c = (unsigned char)text[i];
            if (c < 0xc0) continue;
            most += c == 0xef ? (words ? 4 : 18) : words ? 2 : 8;
        }
    }
    return most + (words ? two / 2 + 1 : two);
}

#if GNOMON_WITH_UTF8PROC

#include <utf8proc.h>

/* More characters that belong together are put in order in parts. */
enum { HELD = 1024, OUT = 4096, LEFT = 8, LONGEST = 32 };

typedef struct stage {
    int count;
    int32_t held[HELD];
} stage;

typedef struct normalizer {
    const gnomon_normal *normal;
    gnomon_normal_take *take;
    void *user;
    stage first, second;
    int64_t made;
    unsigned char out[LEFT + OUT + 4];
} normalizer;

const char *gnomon_normal_unicode(void)
{
    return utf8proc_unicode_version();
}

static void give(normalizer *n, bool more)
{
    const int64_t taken = n->take(n->user, n->out, n->made, more);
    n->made -= taken;
    memmove(n->out, n->out + taken, (size_t)n->made);
}

static bool is_space(int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
        return true;
    default:
        return false;
    }
}

static void put(normalizer *n, int32_t code)
{
    if (n->made >= OUT) give(n, true);
    if (n->normal->spaces && code >= 0x80 && is_space(code)) code = ' ';
    n->made += utf8proc_encode_char(code, n->out + n->made);
}

/* Canonical order: of the marks between two starters by class, those of one rank as they came. */
static void put_in_order(int32_t *held, int count)
{
    for (int i = 1; i < count; i++) {
        const int32_t code = held[i];
        const int rank = utf8proc_get_property(code)->combining_class;
        int at = i;
        if (rank == 0) continue;
        for (; at > 0 && utf8proc_get_property(held[at - 1])->combining_class > rank; at--)
            held[at] = held[at - 1];
        held[at] = code;
    }
}

static void push(normalizer *n, stage *s, int32_t code);

/* From a stage, or with NULL from the text, to what follows it. */
static void pass_on(normalizer *n, const stage *from, int32_t code)
{
    int32_t folded[LONGEST];
    int last = 0;
    if (from == NULL && n->normal->form != GNOMON_NORMAL_NONE) {
        push(n, &n->first, code);
    } else if (from != &n->second && n->normal->fold) {
        const int64_t count =
            utf8proc_decompose_char(code, folded, LONGEST, UTF8PROC_CASEFOLD, &last);
        for (int64_t i = 0; i < count; i++) {
            if (n->normal->form != GNOMON_NORMAL_NONE)
                push(n, &n->second, folded[i]);
            else
                put(n, folded[i]);
        }
    } else {
        put(n, code);
    }
}

static void flush(normalizer *n, stage *s)
{
    if (s->count == 0) return;
    put_in_order(s->held, s->count);
    const int64_t count =
        s->count > 1
            ? utf8proc_normalize_utf32(s->held, s->count, UTF8PROC_STABLE | UTF8PROC_COMPOSE)
            : s->count;
    s->count = 0;
    for (int64_t i = 0; i < count; i++)
        pass_on(n, s, s->held[i]);
}

/* Whether nothing before a character is put behind it or composed with it: it is no mark, and not
 * one of the letters that compose with those before, Hangul's and Kirat Rai's. */
static bool begins(int32_t code)
{
    if (code < 0x300) return true;
    if ((code >= 0x1160 && code < 0x1200) || (code >= 0x16d40 && code < 0x16d80)) return false;
    const utf8proc_property_t *property = utf8proc_get_property(code);
    return property->combining_class == 0 && property->category != UTF8PROC_CATEGORY_MN &&
           property->category != UTF8PROC_CATEGORY_MC && property->category != UTF8PROC_CATEGORY_ME;
}

static void push(normalizer *n, stage *s, int32_t code)
{
    int32_t parts[LONGEST];
    int last = 0;
    const int how = UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                    (n->normal->form == GNOMON_NORMAL_NFKC ? UTF8PROC_COMPAT : 0);
    const int64_t count =
        code < 0x80 ? 1 : utf8proc_decompose_char(code, parts, LONGEST, how, &last);
    if (code < 0x80) parts[0] = code;
    for (int64_t i = 0; i < count; i++) {
        if (s->count == HELD || begins(parts[i])) flush(n, s);
        s->held[s->count++] = parts[i];
    }
}

/* Of 'count' ASCII characters that follow one another. */
static void put_ascii(normalizer *n, const char *text, int64_t count)
{
    flush(n, &n->first);
    flush(n, &n->second);
    while (count > 0) {
        if (n->made >= OUT) give(n, true);
        const int64_t some = count < OUT - n->made ? count : OUT - n->made;
        memcpy(n->out + n->made, text, (size_t)some);
        n->made += some;
        text += some;
        count -= some;
    }
}

void gnomon_normalize(const gnomon_normal *normal, const char *text, int64_t bytes,
                      gnomon_normal_take *take, void *user)
{
    normalizer n;
    n.normal = normal;
    n.take = take;
    n.user = user;
    n.first.count = n.second.count = 0;
    n.made = 0;
    for (int64_t i = 0; i < bytes;) {
        const int64_t ascii = gnomon_normal_ascii(text + i, bytes - i);
        if (ascii > 1) {
            put_ascii(&n, text + i, ascii - 1);
            i += ascii - 1;
        }
        uint32_t code;
        const size_t length = gnomon_utf8_code(text + i, (size_t)(bytes - i), &code);
        pass_on(&n, NULL, length > 0 ? (int32_t)code : 0xfffd);
        i += length > 0 ? (int64_t)length : 1;
    }
    flush(&n, &n.first);
    flush(&n, &n.second);
    give(&n, false);
}

#else

const char *gnomon_normal_unicode(void)
{
    return NULL;
}

void gnomon_normalize(const gnomon_normal *normal, const char *text, int64_t bytes,
                      gnomon_normal_take *take, void *user)
{
    (void)normal, (void)text, (void)bytes, (void)take, (void)user;
}

#endif
