#include "operator/philox.h"

#include <Random123/philox.h>

gnomon_words gnomon_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t key0,
                           uint32_t key1)
{
    const philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    const philox4x32_key_t key = {{key0, key1}};
    const philox4x32_ctr_t r = philox4x32_R(10, counter, key);
    const gnomon_words words = {{r.v[0], r.v[1], r.v[2], r.v[3]}};
    return words;
}

gnomon_words gnomon_call(const gnomon_simple *a, uint32_t tag, uint32_t block, uint64_t q)
{
    return gnomon_philox((uint32_t)q, (uint32_t)(q >> 32), block, tag << 24 | a->level << 16,
                         a->key0, a->key1);
}

gnomon_words gnomon_call_general(const gnomon_simple *a, uint32_t tag, uint32_t block,
                                 uint64_t index48, uint32_t b)
{
    return gnomon_philox(b, (uint32_t)index48, block,
                         tag << 24 | a->level << 16 | (uint32_t)(index48 >> 32), a->key0, a->key1);
}
