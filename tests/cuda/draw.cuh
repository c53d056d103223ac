/* Random numbers of a test on the host: splitmix64 (Steele, Lea and Flood 2014), from a seed that
 * is printed: the clock's, or GNOMON_TEST_SEED. */
#ifndef GNOMON_TEST_DRAW_H
#define GNOMON_TEST_DRAW_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t state;

static inline void seed(void)
{
    const char *given = getenv("GNOMON_TEST_SEED");
    state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("GNOMON_TEST_SEED=%llu\n", (unsigned long long)state);
}

static inline uint64_t next_word(void)
{
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

/* Within (0, 1). */
static inline double uniform(void)
{
    return ((double)(next_word() >> 12) + 0.5) * 0x1p-52;
}

static inline double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

#endif
