#include "base/text_json.h"

#include <stdlib.h>

/* Measured first, then written to memory that is there: nothing is allocated between that could
 * fail unseen. */
char *gnomon_json_text(const json_t *value, size_t flags)
{
    const size_t length = value != NULL ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = length > 0 ? malloc(length + 1) : NULL;
    if (text == NULL) return NULL;
    if (json_dumpb(value, text, length, flags) != length) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}
