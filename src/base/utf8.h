/* base/utf8.h: characters of texts that others wrote. The command includes it too: what it shows
 * and what tables hold are escaped alike. */
#ifndef GNOMON_BASE_UTF8_H
#define GNOMON_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at text, of which 'left' bytes, at least one, may be read, and its
 * code; 0 where there is none. */
static inline size_t gnomon_utf8_code(const char *text, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)text;
    const size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    *code = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
    if (bytes > 1 && (at[0] < 0xc2 || at[0] > 0xf4 || bytes > left)) return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    const int surrogate = *code >= 0xd800 && *code < 0xe000;
    return surrogate || *code < least[bytes] || *code > 0x10ffff ? 0 : bytes;
}

/* Bytes of the UTF-8 character at text, which ends with a NUL; 0 where there is none or it is a
 * control character. */
static inline size_t gnomon_utf8_bytes(const char *text)
{
    uint32_t code;
    const size_t bytes =
        gnomon_utf8_code(text, 4, &code); /* the NUL ends it: no such byte follows */
    const int control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    return control ? 0 : bytes;
}

#endif
