#include "dedup/json_line.h"

#include "base/utf8.h"

#include <string.h>

/* Arrays and objects within each other, at most; a number's characters, so that none is too large
 * for a double or an integer. */
enum { DEEPEST = 64, LONGEST_NUMBER = 18 };

typedef struct scanner {
    const char *line;
    int64_t at, length;
} scanner;

static void skip_space(scanner *s)
{
    while (s->at < s->length && (s->line[s->at] == ' ' || s->line[s->at] == '\t' ||
                                 s->line[s->at] == '\r' || s->line[s->at] == '\n'))
        s->at++;
}

/* Takes the character if it is the next one. */
static bool take(scanner *s, char c)
{
    if (s->at == s->length || s->line[s->at] != c) return false;
    s->at++;
    return true;
}

static uint64_t has_zero(uint64_t v)
{
    return (v - UINT64_C(0x0101010101010101)) & ~v & UINT64_C(0x8080808080808080);
}

/* Bytes from 'at' on, eight at a time, that are ASCII and neither quote, backslash nor control. */
static int64_t plain_bytes(const char *line, int64_t at, int64_t length)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = UINT64_C(0x8080808080808080);
    const int64_t from = at;
    for (; at + 8 <= length; at += 8) {
        uint64_t v;
        memcpy(&v, line + at, 8);
        const uint64_t control = (v - ones * 0x20) & ~v & high;
        if ((control | (v & high) | has_zero(v ^ ones * '"') | has_zero(v ^ ones * '\\')) != 0)
            break;
    }
    return at - from;
}

/* A string from behind its first quote on; its end is the other one. */
static bool string(scanner *s, int64_t *end, bool *escaped)
{
    *escaped = false;
    for (;;) {
        s->at += plain_bytes(s->line, s->at, s->length);
        for (int i = 0; i < 8; i++) { /* one of these stopped it, or the line ends */
            if (s->at == s->length) return false;
            const unsigned char c = (unsigned char)s->line[s->at];
            if (c == '"') {
                *end = s->at++;
                return true;
            }
            if (c < 0x20) return false;
            if (c == '\\') {
                *escaped = true;
                if (s->length - s->at < 2) return false;
                s->at += 2; /* unescape sees what it is */
            } else if (c < 0x80) {
                s->at++;
            } else {
                uint32_t code;
                const size_t n =
                    gnomon_utf8_code(s->line + s->at, (size_t)(s->length - s->at), &code);
                if (n == 0) return false;
                s->at += (int64_t)n;
            }
        }
    }
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The code of "uXXXX" at 'at'; -1: none. */
static int32_t code_of(const char *at, int64_t left)
{
    int32_t code = 0;
    if (left < 5 || at[0] != 'u') return -1;
    for (int i = 1; i < 5; i++) {
        const int digit = hex(at[i]);
        if (digit < 0) return -1;
        code = code << 4 | digit;
    }
    return code;
}

static int64_t put_code(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const int bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = bytes - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00 >> bytes & 0xff) | code);
    return bytes;
}

/* Reads the escape behind a backslash at *at, and goes behind it; -1: none, or NUL. */
static int32_t escape(const char *string, int64_t length, int64_t *at)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (*at >= length) return -1;
    const char *name = string[*at] != '\0' ? strchr(names, string[*at]) : NULL;
    if (name != NULL) {
        ++*at;
        return meant[name - names];
    }
    int32_t code = code_of(string + *at, length - *at);
    if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) return -1;
    *at += 5;
    if (code < 0xd800 || code >= 0xe000) return code;
    if (*at >= length || string[*at] != '\\') return -1;
    const int32_t low = code_of(string + *at + 1, length - *at - 1);
    if (low < 0xdc00 || low >= 0xe000) return -1;
    *at += 6;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

int64_t gnomon_json_unescape(const char *string, int64_t length, char *out)
{
    int64_t made = 0;
    for (int64_t at = 0; at < length;) {
        const char *next = memchr(string + at, '\\', (size_t)(length - at));
        const int64_t plain = (next != NULL ? next - string : length) - at;
        memcpy(out + made, string + at, (size_t)plain);
        made += plain;
        at += plain;
        if (at == length) break;
        at++;
        const int32_t code = escape(string, length, &at);
        if (code < 0) return -1;
        made += put_code((uint32_t)code, out + made);
    }
    return made;
}

/* Whether all escapes of a string that isn't wanted are sound. */
static bool sound(const char *string, int64_t length)
{
    for (int64_t at = 0; at < length;) {
        const char *next = memchr(string + at, '\\', (size_t)(length - at));
        if (next == NULL) return true;
        at = next - string + 1;
        if (escape(string, length, &at) < 0) return false;
    }
    return true;
}

static bool is_digit(const scanner *s)
{
    return s->at < s->length && s->line[s->at] >= '0' && s->line[s->at] <= '9';
}

static bool digits(scanner *s)
{
    if (!is_digit(s)) return false;
    while (is_digit(s))
        s->at++;
    return true;
}

/* A number of few characters, without an exponent. */
static bool number(scanner *s, gnomon_json_kind *kind)
{
    const int64_t from = s->at;
    *kind = GNOMON_JSON_INTEGER;
    (void)take(s, '-');
    if (!take(s, '0') && !digits(s)) return false;
    if (take(s, '.')) {
        *kind = GNOMON_JSON_OTHER;
        if (!digits(s)) return false;
    }
    const bool exponent = s->at < s->length && (s->line[s->at] == 'e' || s->line[s->at] == 'E');
    return !exponent && !is_digit(s) && s->at - from <= LONGEST_NUMBER;
}

static bool word(scanner *s, const char *text, size_t length)
{
    if (s->length - s->at < (int64_t)length || memcmp(s->line + s->at, text, length) != 0)
        return false;
    s->at += (int64_t)length;
    return true;
}

/* A value that is no array or object. */
static bool scalar(scanner *s, gnomon_json_member *m)
{
    m->kind = GNOMON_JSON_OTHER;
    m->escaped = false;
    m->begin = s->at;
    if (take(s, '"')) {
        m->kind = GNOMON_JSON_STRING;
        m->begin = s->at;
        if (!string(s, &m->end, &m->escaped)) return false;
        return !m->escaped || sound(s->line + m->begin, m->end - m->begin);
    }
    const bool good =
        word(s, "true", 4) || word(s, "false", 5) || word(s, "null", 4) || number(s, &m->kind);
    m->end = s->at;
    if (!good || s->at == s->length) return good;
    /* no letter may follow: 'nullx' is for jansson to refuse */
    const char c = s->line[s->at];
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A key and its colon. */
static bool key(scanner *s, int64_t *begin, int64_t *end)
{
    bool escaped;
    skip_space(s);
    if (!take(s, '"')) return false;
    *begin = s->at;
    if (!string(s, end, &escaped) || escaped) return false;
    skip_space(s);
    if (!take(s, ':')) return false;
    skip_space(s);
    return true;
}

/* An array or object whose bracket was taken. */
static bool nested(scanner *s, bool object)
{
    uint64_t objects = object; /* a bit for each that is open, the innermost last */
    int depth = 1;
    bool first = true;
    while (depth > 0) {
        gnomon_json_member ignored;
        int64_t begin, end;
        skip_space(s);
        if (take(s, objects & 1 ? '}' : ']')) {
            objects >>= 1;
            depth--;
            first = false;
            continue;
        }
        if (!first && !take(s, ',')) return false;
        if (objects & 1 && !key(s, &begin, &end)) return false;
        skip_space(s);
        const bool opens = take(s, '{');
        first = opens || take(s, '[');
        if (!first) {
            if (!scalar(s, &ignored)) return false;
            continue;
        }
        if (++depth > DEEPEST) return false;
        objects = objects << 1 | opens;
    }
    return true;
}

bool gnomon_json_scan(const char *line, int64_t length, gnomon_json_member *members, int count)
{
    scanner s = {line, 0, length};
    for (int m = 0; m < count; m++)
        members[m].kind = GNOMON_JSON_ABSENT;
    skip_space(&s);
    if (!take(&s, '{')) return false;
    for (bool first = true;; first = false) {
        gnomon_json_member value = {.kind = GNOMON_JSON_OTHER};
        int64_t begin, end;
        skip_space(&s);
        if (take(&s, '}')) break;
        if (!first && !take(&s, ',')) return false;
        if (!key(&s, &begin, &end)) return false;
        const bool object = take(&s, '{');
        if (object || take(&s, '[')) {
            if (!nested(&s, object)) return false;
        } else if (!scalar(&s, &value)) {
            return false;
        }
        for (int m = 0; m < count; m++) {
            const char *wanted = members[m].key;
            if ((int64_t)strlen(wanted) != end - begin ||
                memcmp(wanted, line + begin, (size_t)(end - begin)) != 0)
                continue;
            value.key = wanted;
            members[m] = value;
        }
    }
    skip_space(&s);
    return s.at == length;
}

int64_t gnomon_json_skip(const char *string, int64_t length, int64_t bytes)
{
    char made[4];
    int64_t at = 0;
    while (bytes > 0) {
        const char *next = memchr(string + at, '\\', (size_t)(length - at));
        const int64_t plain = (next != NULL ? next - string : length) - at;
        if (plain >= bytes) return at + bytes;
        if (next == NULL) return -1;
        bytes -= plain;
        at += plain + 1;
        const int32_t code = escape(string, length, &at);
        if (code < 0) return -1;
        bytes -= put_code((uint32_t)code, made);
    }
    return bytes == 0 ? at : -1;
}

bool gnomon_json_same(const char *string, int64_t length, const char *text, int64_t bytes)
{
    char made[4];
    for (int64_t at = 0, some; at < length; text += some, bytes -= some) {
        const char *from = string + at, *next = memchr(from, '\\', (size_t)(length - at));
        some = next != NULL ? next - from : length - at;
        at += some;
        if (some == 0) {
            at++;
            const int32_t code = escape(string, length, &at);
            if (code < 0) return false;
            some = put_code((uint32_t)code, made);
            from = made;
        }
        if (some > bytes || memcmp(from, text, (size_t)some) != 0) return false;
    }
    return bytes == 0;
}

/* ---- any JSON object ---- */

/* Behind the quote that ends a string, from behind its first one on. */
static bool pass_string(scanner *s, int64_t *end)
{
    while (s->at < s->length) {
        s->at += plain_bytes(s->line, s->at, s->length);
        if (s->at == s->length) return false;
        const char c = s->line[s->at++];
        if (c == '"') {
            *end = s->at - 1;
            return true;
        }
        if (c == '\\') s->at++;
    }
    return false;
}

/* To the comma or bracket behind a value that is no string. */
static bool pass_value(scanner *s)
{
    int64_t end, depth = 0;
    for (; s->at < s->length; s->at++) {
        const char c = s->line[s->at];
        const bool closes = c == '}' || c == ']';
        if (depth == 0 && (closes || c == ',')) return true;
        depth += (c == '{' || c == '[') - closes;
        if (c != '"') continue;
        s->at++;
        if (!pass_string(s, &end)) return false;
        s->at--;
    }
    return false;
}

bool gnomon_json_find(const char *line, int64_t length, const char *wanted, int64_t *begin,
                      int64_t *end)
{
    scanner s = {line, 0, length};
    const int64_t wanted_bytes = (int64_t)strlen(wanted);
    bool found = false;
    if (length >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) s.at = 3;
    skip_space(&s);
    if (!take(&s, '{')) return false;
    for (bool first = true;; first = false) {
        int64_t key_end, value_end;
        skip_space(&s);
        if (take(&s, '}')) return found;
        if (!first && !take(&s, ',')) return false;
        skip_space(&s);
        if (!take(&s, '"')) return false;
        const int64_t key_begin = s.at;
        if (!pass_string(&s, &key_end)) return false;
        skip_space(&s);
        if (!take(&s, ':')) return false;
        skip_space(&s);
        const bool mine =
            gnomon_json_same(line + key_begin, key_end - key_begin, wanted, wanted_bytes);
        const bool text = take(&s, '"');
        const int64_t value = s.at;
        if (text ? !pass_string(&s, &value_end) : !pass_value(&s)) return false;
        if (!mine) continue;
        found = text;
        if (!text) continue;
        *begin = value;
        *end = value_end;
    }
}
