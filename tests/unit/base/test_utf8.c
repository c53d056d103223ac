/* Characters as RFC 3629 has them: every code point, every pair and every triple of bytes. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static size_t encode(uint32_t code, char out[5])
{
    const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint32_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    memset(out, 0, 5);
    for (size_t i = bytes; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[bytes] | code);
    return bytes;
}

static void every_code_point(void **state)
{
    char text[5];
    (void)state;
    for (uint32_t code = 0; code < 0x1fffff; code++) {
        const size_t bytes = encode(code, text);
        const int shown = code >= 0x20 && !(code >= 0x7f && code <= 0x9f) &&
                          !(code >= 0xd800 && code <= 0xdfff) && code <= 0x10ffff;
        if (gnomon_utf8_bytes(text) != (shown ? bytes : 0)) fail_msg("code point %x", code);
    }
}

/* What encodes nothing is not taken for a character: overlong forms, lone bytes, an early end. */
static void every_beginning(void **state)
{
    char text[5] = {0}, good[5];
    (void)state;
    for (uint32_t word = 0; word < 1u << 24; word++) {
        for (int i = 0; i < 3; i++)
            text[i] = (char)(word >> (16 - 8 * i));
        const size_t bytes = gnomon_utf8_bytes(text);
        if (bytes == 0) continue;
        /* then it is what encoding its own code point gives */
        uint32_t code =
            bytes == 1 ? (unsigned char)text[0] : (unsigned char)text[0] & (0x7fu >> bytes);
        for (size_t i = 1; i < bytes; i++)
            code = code << 6 | ((unsigned char)text[i] & 0x3f);
        if (encode(code, good) != bytes || memcmp(good, text, bytes) != 0)
            fail_msg("bytes %06x", word);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_code_point),
                                       cmocka_unit_test(every_beginning)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
