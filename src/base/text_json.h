/* base/text_json.h: JSON values as text. */
#ifndef GNOMON_BASE_TEXT_JSON_H
#define GNOMON_BASE_TEXT_JSON_H

#include <jansson.h>
#include <stdbool.h>

/* The value's text, which free() releases; NULL when memory is out. json_dumps is not for this:
 * jansson 2.14 loses an object's key when an allocation fails while it is written, and tells
 * nobody. flags: as json_dumps takes them. */
char *gnomon_json_text(const json_t *value, size_t flags);

/* The object or array of a text, as json_loadb; NULL with *error where the text is none, NULL with
 * *memory set where memory is out. jansson 2.14 tells most failed allocations of a parse as faults
 * of the text, or not at all: a digit of a long number is then lost. */
json_t *gnomon_json_read(const char *text, size_t length, size_t flags, json_error_t *error,
                         bool *memory);

#endif
