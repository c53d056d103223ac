/* dedup/minhash.h: the least values of a set's members under random functions.
 *
 * Function i of a member x, a 64-bit hash itself, is a 32-bit number: its low half, xored with a
 * random word and multiplied by an odd one, is shifted into itself, its high half is added, and
 * another odd product is taken. */
#ifndef GNOMON_DEDUP_MINHASH_H
#define GNOMON_DEDUP_MINHASH_H

#include "base/isa.h"

#include <stdint.h>

enum { GNOMON_MINHASH_LANES = 8 };

/* The constants of a block of functions. */
typedef struct gnomon_minhash {
    uint32_t flip[GNOMON_MINHASH_LANES], low[GNOMON_MINHASH_LANES], high[GNOMON_MINHASH_LANES];
} gnomon_minhash;

/* Functions [LANES block, LANES (block + 1)) of a seed. */
void gnomon_minhash_block(gnomon_minhash *block, uint64_t seed, int64_t number);
/* Writes the least values of LANES x blocks functions to least. count is positive. */
void gnomon_minhash_set(gnomon_isa isa, const gnomon_minhash *blocks, int64_t block_count,
                        const uint64_t *set, int64_t count, uint32_t *least);

#endif
