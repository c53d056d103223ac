/* The keyed permutation of section 3.2: six rounds of an unbalanced Feistel network. */
#include "operator/operator.h"

static uint32_t round_function(uint32_t v, uint32_t key, int width)
{
    if (width == 0) return 0;
    uint32_t t = (v + key) * UINT32_C(0x9E3779B1);
    t ^= t >> 15;
    t *= UINT32_C(0x85EBCA77);
    return t >> (32 - width);
}

static uint64_t low_bits(int bits)
{
    return (UINT64_C(1) << bits) - 1;
}

uint64_t gnomon_perm(uint64_t x, int bits, const uint32_t key[6])
{
    const int right_bits = bits / 2;
    const int left_bits = bits - right_bits;
    uint32_t right = (uint32_t)(x & low_bits(right_bits));
    uint32_t left = (uint32_t)(x >> right_bits);
    for (int i = 0; i < 6; i += 2) {
        left ^= round_function(right, key[i], left_bits);
        right ^= round_function(left, key[i + 1], right_bits);
    }
    return (uint64_t)left << right_bits | right;
}

uint64_t gnomon_perm_inverse(uint64_t x, int bits, const uint32_t key[6])
{
    const int right_bits = bits / 2;
    const int left_bits = bits - right_bits;
    uint32_t right = (uint32_t)(x & low_bits(right_bits));
    uint32_t left = (uint32_t)(x >> right_bits);
    for (int i = 4; i >= 0; i -= 2) {
        right ^= round_function(left, key[i + 1], right_bits);
        left ^= round_function(right, key[i], left_bits);
    }
    return (uint64_t)left << right_bits | right;
}
