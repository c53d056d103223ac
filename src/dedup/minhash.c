#include "dedup/minhash.h"

#include "dedup/ngrams.h"

#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

void gnomon_minhash_block(gnomon_minhash *b, uint64_t seed, int64_t number)
{
    uint64_t state = gnomon_mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) + (uint64_t)number * 4096;
    for (int i = 0; i < GNOMON_MINHASH_LANES; i++) {
        const uint64_t one = gnomon_mix64(++state), two = gnomon_mix64(++state);
        b->flip[i] = (uint32_t)(one >> 32);
        b->low[i] = (uint32_t)one | 1;
        b->high[i] = (uint32_t)(two >> 32) | 1;
    }
}

static void one_block(const gnomon_minhash *b, const uint64_t *set, int64_t count, uint32_t *least)
{
    uint32_t best[GNOMON_MINHASH_LANES];
    for (int i = 0; i < GNOMON_MINHASH_LANES; i++)
        best[i] = UINT32_MAX;
    for (int64_t e = 0; e < count; e++) {
        const uint32_t low = (uint32_t)set[e], high = (uint32_t)(set[e] >> 32);
        for (int i = 0; i < GNOMON_MINHASH_LANES; i++) {
            uint32_t u = (low ^ b->flip[i]) * b->low[i];
            u = ((u ^ (u >> 15)) + high) * b->high[i];
            u ^= u >> 16;
            if (u < best[i]) best[i] = u;
        }
    }
    memcpy(least, best, sizeof best);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static inline __m256i hash8(__m256i flip, __m256i low, __m256i high,
                                                            uint64_t member)
{
    __m256i u = _mm256_xor_si256(_mm256_set1_epi32((int)(uint32_t)member), flip);
    u = _mm256_mullo_epi32(u, low);
    u = _mm256_xor_si256(u, _mm256_srli_epi32(u, 15));
    u = _mm256_add_epi32(u, _mm256_set1_epi32((int)(uint32_t)(member >> 32)));
    u = _mm256_mullo_epi32(u, high);
    return _mm256_xor_si256(u, _mm256_srli_epi32(u, 16));
}

__attribute__((target("avx2"))) static void blocks_avx2(const gnomon_minhash *b, int64_t count,
                                                        const uint64_t *set, int64_t members,
                                                        uint32_t *least)
{
    for (int64_t k = 0; k < count; k++) {
        const __m256i flip = _mm256_loadu_si256((const __m256i *)(const void *)b[k].flip);
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)b[k].low);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)b[k].high);
        __m256i one = _mm256_set1_epi32(-1), two = one;
        int64_t e = 0;
        for (; e + 2 <= members; e += 2) {
            one = _mm256_min_epu32(one, hash8(flip, low, high, set[e]));
            two = _mm256_min_epu32(two, hash8(flip, low, high, set[e + 1]));
        }
        if (e < members) one = _mm256_min_epu32(one, hash8(flip, low, high, set[e]));
        _mm256_storeu_si256((__m256i *)(void *)(least + k * GNOMON_MINHASH_LANES),
                            _mm256_min_epu32(one, two));
    }
}
#endif

void gnomon_minhash_set(gnomon_isa isa, const gnomon_minhash *blocks, int64_t block_count,
                        const uint64_t *set, int64_t count, uint32_t *least)
{
#ifdef __x86_64__
    if (isa >= GNOMON_ISA_AVX2 && isa <= GNOMON_ISA_AMX) {
        blocks_avx2(blocks, block_count, set, count, least);
        return;
    }
#else
    (void)isa;
#endif
    for (int64_t k = 0; k < block_count; k++)
        one_block(&blocks[k], set, count, least + k * GNOMON_MINHASH_LANES);
}
