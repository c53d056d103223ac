/* Small texts: an operator's descriptor, a cost model; names of files as they can be shown. */
#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* None comes near to this. */
enum { TEXT_LIMIT = 1 << 16 };

int cli_read_text(cli_app *app, const char *path, char **text, size_t *length)
{
    *text = NULL;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL) return cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
    char *read = malloc(TEXT_LIMIT + 1);
    if (read == NULL) {
        if (file != stdin) fclose(file);
        return cli_fail(app, CLI_EXIT_MEMORY, "out of memory for %s", path);
    }
    *length = fread(read, 1, TEXT_LIMIT + 1, file);
    const int failed = ferror(file) ? errno : 0;
    int code = -1;
    if (file != stdin) fclose(file);
    if (failed != 0)
        code = cli_fail(app, CLI_EXIT_FILE, "%s: %s", path, strerror(failed));
    else if (*length > TEXT_LIMIT)
        code = cli_fail(app, CLI_EXIT_DATA, "%s: too long for a JSON text of gnomon's", path);
    if (code >= 0)
        free(read);
    else
        *text = read;
    return code;
}

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

char *cli_escape(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    char *escaped = malloc(4 * strlen(text) + 1);
    char *to = escaped;
    if (escaped == NULL) return NULL;
    while (*at != '\0') {
        const size_t bytes = shown_bytes(at);
        const char *letter = *at == '\\'   ? "\\\\"
                             : *at == '\t' ? "\\t"
                             : *at == '\n' ? "\\n"
                                           : NULL;
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

json_t *cli_json_name(const char *name)
{
    if (name == NULL) return json_null();
    json_t *string = json_string(name);
    if (string != NULL) return string;
    char *escaped = cli_escape(name);
    string = escaped != NULL ? json_string(escaped) : NULL;
    free(escaped);
    return string;
}
