/* dedup/json_line.h: members of a JSON object, found without building it.
 *
 * The scanner takes part of JSON, the part that lines of corpora are made of, and only what jansson
 * takes too, with the same values. Whatever it does not take is for jansson to read or to refuse.
 */
#ifndef GNOMON_DEDUP_JSON_LINE_H
#define GNOMON_DEDUP_JSON_LINE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum gnomon_json_kind {
    GNOMON_JSON_ABSENT,
    GNOMON_JSON_STRING,
    GNOMON_JSON_INTEGER,
    GNOMON_JSON_OTHER
} gnomon_json_kind;

/* A member of the object: of several with this key the last one. */
typedef struct gnomon_json_member {
    const char *key; /* set by the caller */
    gnomon_json_kind kind;
    int64_t begin, end; /* of the value in the line; of a string without its quotes */
    bool escaped;       /* a string with backslashes */
} gnomon_json_member;

/* Fills the members of the object that is the line. False: the line is not of that part of JSON. */
bool gnomon_json_scan(const char *line, int64_t length, gnomon_json_member *members, int count);
/* Writes the text of an escaped string, of the bytes [0, length) of 'string' as they stand in JSON,
 * to out, which has room for as many; they may not overlap. The text's bytes; -1: an escape that
 * jansson refuses. */
int64_t gnomon_json_unescape(const char *string, int64_t length, char *out);

/* The string that is the value of a member, of several with this key the last one, in a line that
 * is a JSON object, whatever part of JSON it is of: [*begin, *end) without its quotes. False: there
 * is none, or the line is no object. A mark of UTF-8 may stand before it. */
bool gnomon_json_find(const char *line, int64_t length, const char *key, int64_t *begin,
                      int64_t *end);
/* How many of the bytes [0, length) of 'string', as they stand in JSON, make 'bytes' of its text;
 * -1: there aren't so many, or they end within an escape. */
int64_t gnomon_json_skip(const char *string, int64_t length, int64_t bytes);
/* Whether the bytes [0, length) of 'string', as they stand in JSON, make this text. */
bool gnomon_json_same(const char *string, int64_t length, const char *text, int64_t bytes);

#endif
