/* Names and messages as they can be shown. */
#include "cli.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* line_end: stands for one that is to stay, and backslashes stay then; 0: none. */
static char *escape(const char *text, char line_end)
{
    const unsigned char *at = (const unsigned char *)text;
    char *escaped = malloc(4 * strlen(text) + 1);
    char *to = escaped;
    if (escaped == NULL) return NULL;
    while (*at != '\0') {
        const size_t bytes = gnomon_utf8_bytes((const char *)at);
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
