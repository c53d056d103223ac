/* operator/philox.h: one call of the generator, in the two forms of docs/reference/operators.md,
 * section 2. */
#ifndef GNOMON_OPERATOR_PHILOX_H
#define GNOMON_OPERATOR_PHILOX_H

#include "operator/operator.h"

typedef struct gnomon_words {
    uint32_t w[4];
} gnomon_words;

/* philox(c0 .. c3; key0, key1), 10 rounds. */
gnomon_words gnomon_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t key0,
                           uint32_t key1);

/* Column form: q is any 64-bit number. */
gnomon_words gnomon_call(const gnomon_simple *a, uint32_t tag, uint32_t block, uint64_t q);

/* General form: index48 < 2^48. */
gnomon_words gnomon_call_general(const gnomon_simple *a, uint32_t tag, uint32_t block,
                                 uint64_t index48, uint32_t b);

#endif
