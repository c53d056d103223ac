/* dedup/wide/wide.h: n-grams of words, and the order of a set, by AVX-512: the bits of ngrams.c and
 * sort.c. */
#ifndef GNOMON_DEDUP_WIDE_H
#define GNOMON_DEDUP_WIDE_H

#include "base/isa.h"
#include "dedup/ngrams.h"

/* Whether the calls below may be made. */
static inline bool gnomon_wide(gnomon_isa isa)
{
#ifdef __x86_64__
    return isa >= GNOMON_ISA_AVX512 && isa <= GNOMON_ISA_AMX;
#else
    (void)isa;
    return false;
#endif
}

/* Writes the n-grams of words as they come, repeated ones too, to set and returns how many there
 * are. -1: a word is longer than a piece of the text, and set is of no use. */
int64_t gnomon_wide_words(const gnomon_ngrams *ngrams, const char *text, int64_t bytes,
                          uint64_t *set);
/* gnomon_sort_hashes. */
void gnomon_wide_sort(uint64_t *a, uint64_t *scratch, int64_t count);

#endif
