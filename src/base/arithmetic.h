/* base/arithmetic.h: small functions of integers, for C and the plugin's host code. */
#ifndef GNOMON_BASE_ARITHMETIC_H
#define GNOMON_BASE_ARITHMETIC_H

#include <stdint.h>

static inline int64_t gnomon_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gnomon_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* |a|; a is not INT64_MIN. */
static inline int64_t gnomon_abs(int64_t a)
{
    return a < 0 ? -a : a;
}

/* a / b rounded up; b is positive. Does not overflow. */
static inline int64_t gnomon_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

/* The least multiple of b that is not below a; b is positive. */
static inline int64_t gnomon_round_up(int64_t a, int64_t b)
{
    return gnomon_ceil_div(a, b) * b;
}

/* Of 'count' things in 'parts' parts as equal as can be, where part 'part' begins; it ends where
 * the next one begins. */
static inline int64_t gnomon_part_begin(int64_t count, int64_t part, int64_t parts)
{
    return count / parts * part + gnomon_min(part, count % parts);
}

/* A bijection whose bits depend on all of z's: the finaliser of splitmix64. */
static inline uint64_t gnomon_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

#endif
