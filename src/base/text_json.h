/* base/text_json.h: JSON values as text. */
#ifndef GNOMON_BASE_TEXT_JSON_H
#define GNOMON_BASE_TEXT_JSON_H

#include <jansson.h>

/* The value's text, which free() releases; NULL when memory is out. json_dumps is not for this:
 * jansson 2.14 loses an object's key when an allocation fails while it is written, and tells
 * nobody. flags: as json_dumps takes them. */
char *gnomon_json_text(const json_t *value, size_t flags);

#endif
