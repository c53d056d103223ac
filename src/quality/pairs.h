/* quality/pairs.h: which pairs are measured. */
#ifndef GNOMON_QUALITY_PAIRS_H
#define GNOMON_QUALITY_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gnomon_pairs {
    int64_t points, count;
    bool all; /* every pair i < j once, in order; else a sample with replacement */
    uint64_t seed;
} gnomon_pairs;

/* All pairs of n points when they are at most max_pairs, else a sample of max_pairs. */
gnomon_pairs gnomon_pairs_choose(int64_t n, int64_t max_pairs, uint64_t seed);

/* Pair t in [0, count): i < j. A pure function of the choice and t. */
void gnomon_pairs_get(const gnomon_pairs *pairs, int64_t t, int64_t *i, int64_t *j);

#endif
