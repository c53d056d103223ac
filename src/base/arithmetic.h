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

#endif
