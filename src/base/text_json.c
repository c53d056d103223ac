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

/* Whether jansson's allocator gives anything now. */
static bool has_memory(void)
{
    enum { SOME = 1 << 12 };
    json_malloc_t take;
    json_free_t release;
    json_get_alloc_funcs(&take, &release);
    void *block = take(SOME);
    if (block == NULL) return false;
    release(block);
    return true;
}

/* A text that is at fault is so each time; what an allocation did that failed is not repeated. */
json_t *gnomon_json_read(const char *text, size_t length, size_t flags, json_error_t *error,
                         bool *memory)
{
    json_t *value = json_loadb(text, length, flags, error);
    *memory = false;
    if (value != NULL) return value;
    if (has_memory()) value = json_loadb(text, length, flags, error);
    *memory = value == NULL && (json_error_code(error) == json_error_out_of_memory ||
                                error->text[0] == '\0' || !has_memory());
    return value;
}
