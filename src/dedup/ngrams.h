/* dedup/ngrams.h: a text as the set of its n-grams, hashed to 64 bits. */
#ifndef GNOMON_DEDUP_NGRAMS_H
#define GNOMON_DEDUP_NGRAMS_H

#include "base/arithmetic.h"
#include "base/isa.h"
#include "dedup/normal.h"

#include <gnomon/dedup.h>

#include <stdbool.h>
#include <stdint.h>

enum { GNOMON_NGRAM_MOST = 64 };

typedef struct gnomon_ngrams {
    int64_t length;
    bool characters, lower, punctuation; /* lower: ASCII; punctuation: ASCII's belongs to words */
    bool normalizes;
    gnomon_normal normal;
    unsigned char map[256]; /* of a byte: 0 where it is between words, else as what it counts */
    bool weighted;          /* the k-th occurrence of an n-gram is a member of its own */
    bool wide;              /* by AVX-512; see wide/wide.h */
    uint64_t power;         /* of the oldest word in a rolling hash */
} gnomon_ngrams;

void gnomon_ngrams_start(gnomon_ngrams *ngrams, const gnomon_dedup_options *options,
                         gnomon_isa isa);
/* The most n-grams that a text has. */
int64_t gnomon_ngrams_most(const gnomon_ngrams *ngrams, const char *text, int64_t bytes);
/* Writes the distinct n-grams (weighted: all of them), ascending, to set; scratch has room for as
 * many. Returns how many there are. */
int64_t gnomon_ngrams_of(const gnomon_ngrams *ngrams, const char *text, int64_t bytes,
                         uint64_t *set, uint64_t *scratch);
/* A hash of a set, or of bytes. */
uint64_t gnomon_set_hash(const uint64_t *set, int64_t count);
/* Whether a text is of ASCII's white space alone. */
bool gnomon_text_blank(const char *text, int64_t bytes);
/* Offset of the first byte that no UTF-8 character has, -1: there is none. */
int64_t gnomon_utf8_fault(const char *text, int64_t bytes);

#endif
