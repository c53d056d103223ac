/* signs.h: the trial arithmetic for sketches of signs, in plain C: the definition that the kernels
 * of the trial are held to, bit for bit.
 *
 * The columns are cut at multiples of SIGNS_BLOCK. Of a point's coordinates in one block:
 *
 *   e     the least integer >= SIGNS_LEAST for which all round to integers q of magnitude at most
 *         2^23 - 1, as x / 2^(e - 23), to nearest, ties to even;
 *   out   with SIGNS_REFINED: the first of the largest, left out (q = 0) and added as it is, if the
 *         integers |x| div 2^(e - 2) add up to less than 8. Then e is that of the others. So what
 * is rounded off is below (N - 1) 2^-24 sum |x|, N nonzero coordinates: the bound of a chain of
 *         additions in fp32.
 *
 * The block's sum S of v q, v = 0, 1, -1, is an exact integer, below 2^35: no order of additions
 * changes it. t, an fp64 number, begins at 0; for each block in ascending order S 2^(e - 23), which
 * is exact, is added to it, then v x of the one left out, where v is not 0. The sketch is t times
 * alpha and scale, rounded to the output's type. Coordinates that are not finite are left out too,
 * and v x of each is added. */
#ifndef GNOMON_BENCH_SIGNS_H
#define GNOMON_BENCH_SIGNS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SIGNS_BLOCK = 4096, SIGNS_LEAST = -126, SIGNS_MOST = (1 << 23) - 1 };
enum { SIGNS_PLAIN, SIGNS_REFINED };

typedef struct signs_cut {
    int exponent; /* e */
    int out;      /* of the block's columns, -1: none */
    int bad;      /* a coordinate is NaN or infinite */
} signs_cut;

static inline uint32_t signs_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffffu;
}

/* The exponent for a largest magnitude of these bits: adding half a unit of 2^23 carries where the
 * number would round to 2^23. */
static inline int signs_exponent(uint32_t most)
{
    const int e = (int)((most + 1) >> 23) - 126;
    return e > SIGNS_LEAST ? e : SIGNS_LEAST;
}

static inline double signs_unit(int exponent)
{
    return ldexp(1.0, exponent - 23);
}

static inline int32_t signs_round(float x, int exponent)
{
    return (int32_t)nearbyint((double)x * ldexp(1.0, 23 - exponent));
}

static inline signs_cut signs_cut_of(const float *x, int64_t count, int64_t stride, int refined)
{
    signs_cut cut = {SIGNS_LEAST, -1, 0};
    uint32_t most = 0, next = 0;
    int at = -1;
    for (int64_t j = 0; j < count; j++) {
        const uint32_t bits = signs_bits(x[j * stride]);
        if (bits >= 0x7f800000u) {
            cut.bad = 1;
        } else if (bits > most) {
            next = most;
            most = bits;
            at = (int)j;
        } else if (bits > next) {
            next = bits;
        }
    }
    cut.exponent = signs_exponent(most);
    if (!refined || at < 0) return cut;
    const double quarter = ldexp(1.0, 2 - cut.exponent);
    int64_t quarters = 0;
    for (int64_t j = 0; j < count && quarters < 8; j++)
        if (signs_bits(x[j * stride]) < 0x7f800000u)
            quarters += (int64_t)(fabs((double)x[j * stride]) * quarter);
    if (quarters >= 8) return cut;
    cut.out = at;
    cut.exponent = signs_exponent(next);
    return cut;
}

#endif
