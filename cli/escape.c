/* Names and messages as they can be shown. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of the UTF-8 character at text, 0 when there is none, or a control character. */
static size_t shown_bytes(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = text[0];
    const size_t bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    uint32_t code = bytes == 1 ? first : first & (0x7fu >> bytes);
    if (bytes > 1 && (first < 0xc2 || first > 0xf4)) return 0;
    for (size_t at = 1; at < bytes; ++at) {
        if ((text[at] & 0xc0) != 0x80) return 0;
        code = code << 6 | (text[at] & 0x3f);
    }
    const int control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    const int surrogate = code >= 0xd800 && code < 0xe000;
    return control || surrogate || code < least[bytes] || code > 0x10ffff ? 0 : bytes;
}

/* line_end: stands for one that is to stay, and backslashes stay then; 0: none. */
static char *escape(const char *text, char line_end)
{
    const unsigned char *at = (const unsigned char *)text;
    char *escaped = malloc(4 * strlen(text) + 1);
    char *to = escaped;
    if (escaped == NULL) return NULL;
    while (*at != '\0') {
        const size_t bytes = shown_bytes(at);
        const char *letter = *at == '\t' ? "\\t" : *at == '\n' ? "\\n" : NULL;
        if (*at == '\\' && line_end == '\0') letter = "\\\\";
        if (line_end != 0 && *at == (unsigned char)line_end) {
            *to++ = '\n';
            at++;
            continue;
        }
        if (letter != NULL) {
            memcpy(to, letter, 2);
            to += 2;
        } else if (bytes == 0) {
            to += snprintf(to, 5, "\\x%02x", *at);
        } else {
            memcpy(to, at, bytes);
            to += bytes;
        }
        at += letter != NULL || bytes == 0 ? 1 : bytes;
    }
    *to = '\0';
    return escaped;
}

char *cli_escape(const char *text)
{
    return escape(text, '\0');
}

char *cli_vmessage(const char *format, va_list arguments)
{
    /* the format's own line ends pass as a character that no name in it has */
    char *shown = NULL;
    for (char end = '\1'; end < '\t' && shown == NULL; end++) {
        char *lines = strdup(format), *text = NULL;
        int ends = 0, passed = 0;
        va_list again;
        if (lines == NULL) return NULL;
        for (char *at = lines; (at = strchr(at, '\n')) != NULL; ends++)
            *at = end;
        va_copy(again, arguments);
        if (vasprintf(&text, lines, again) < 0) text = NULL;
        va_end(again);
        free(lines);
        if (text == NULL) return NULL;
        for (const char *at = text; (at = strchr(at, end)) != NULL; at++)
            passed++;
        if (passed == ends || end == '\b') shown = escape(text, end);
        free(text);
    }
    return shown;
}

json_t *cli_json_name(const char *name)
{
    if (name == NULL) return NULL;
    json_t *string = json_string(name);
    if (string != NULL) return string;
    char *escaped = cli_escape(name);
    string = escaped != NULL ? json_string(escaped) : NULL;
    free(escaped);
    return string;
}
