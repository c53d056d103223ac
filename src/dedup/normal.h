/* dedup/normal.h: texts in a normal form of Unicode, by utf8proc. */
#ifndef GNOMON_DEDUP_NORMAL_H
#define GNOMON_DEDUP_NORMAL_H

#include <stdbool.h>
#include <stdint.h>

/* What is done to a text, of UTF-8: N(fold(N(text))) with N the normal form and fold the full case
 * folding, then a space for each punctuation mark, symbol, separator and control character. */
typedef struct gnomon_normal {
    int form; /* gnomon_normal_form */
    bool fold, spaces;
} gnomon_normal;

/* The version of Unicode; NULL in a build without utf8proc, where the calls below do nothing. */
const char *gnomon_normal_unicode(void);
/* Receives a part of the result, of whole characters; 'more' follow. Returns how many bytes of it
 * were taken; those left, fewer than eight, come again before the next ones. */
typedef int64_t gnomon_normal_take(void *user, const unsigned char *text, int64_t bytes, bool more);
/* ASCII letters keep their case, which is for the receiver to lower. */
void gnomon_normalize(const gnomon_normal *normal, const char *text, int64_t bytes,
                      gnomon_normal_take *take, void *user);
/* The most characters that a text becomes; with 'words' the most words. */
int64_t gnomon_normal_most(const char *text, int64_t bytes, bool words);
/* Offset of the first byte above 127, or bytes. */
int64_t gnomon_normal_ascii(const char *text, int64_t bytes);

#endif
