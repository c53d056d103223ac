#include "base/text_json.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Where an allocation fails while a token grows beyond 15 bytes, jansson drops the byte, and then
 * stops the program or fails silently. The memory that tokens grow in is kept from one to the next:
 * so the text is read behind a string as long as itself, in an array of both, and once that string
 * is there as a whole, no token grows any more. */
static json_t *read_behind(const char *both, size_t size, size_t string, size_t flags,
                           json_error_t *error)
{
    json_t *array = json_loadb(both, size, flags & ~(size_t)JSON_DECODE_ANY, error);
    json_t *value = NULL;
    if (array != NULL && json_string_length(json_array_get(array, 0)) == string) {
        value = json_array_size(array) == 2 ? json_incref(json_array_get(array, 1)) : NULL;
        const bool any = value != NULL && (flags & JSON_DECODE_ANY) != 0;
        if (!any && !json_is_object(value) && !json_is_array(value)) {
            json_decref(value);
            value = NULL;
            snprintf(error->text, sizeof error->text, "no object, or more than one value");
        }
    }
    json_decref(array);
    return value;
}

/* A text that is at fault is so each time; what an allocation did that failed is not repeated. */
json_t *gnomon_json_read(const char *text, size_t length, size_t flags, json_error_t *error,
                         bool *memory)
{
    enum { AROUND = 8 }; /* brackets, quotes and so on */
    /* memory of tokens grows by powers of two: not just where the string's last quote comes */
    const size_t string = ((length + 2) & (length + 1)) == 0 ? length + 1 : length;
    char *both = length < SIZE_MAX / 4 ? malloc(string + length + AROUND) : NULL;
    *memory = both == NULL;
    if (both == NULL) return NULL;
    char *at = both;
    at = (char *)memcpy(at, "[\"", 2) + 2;
    at = (char *)memset(at, 'x', string) + string;
    at = (char *)memcpy(at, "\",\n", 3) + 3;
    if (length > 0) at = (char *)memcpy(at, text, length) + length;
    *at++ = ']';
    const size_t size = (size_t)(at - both);
    memset(error, 0, sizeof *error);
    json_t *value = read_behind(both, size, string, flags, error);
    if (value == NULL && has_memory()) value = read_behind(both, size, string, flags, error);
    *memory = value == NULL && (json_error_code(error) == json_error_out_of_memory ||
                                error->text[0] == '\0' || !has_memory());
    free(both);
    /* the fault as it is told of the text alone */
    if (value == NULL && !*memory) value = json_loadb(text, length, flags, error);
    return value;
}
