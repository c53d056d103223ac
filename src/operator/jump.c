/* c of section 4.5, the fp32 number nearest to -1/ln(1 - p). Some p lie so near to where two fp32
 * numbers are equally near that neither fp64 nor the 64 bits of an x87 number tell them apart: so
 * the logarithm is taken in 113 bits, of which about 110 are right. */
#include "operator/kinds/kinds.h"

#include <float.h>
#include <math.h>

#if LDBL_MANT_DIG == 113
typedef long double quad;
#else
__extension__ typedef __float128 quad;
#endif

/* ln(u), u in (0, 1], by 2 atanh((m - 1) / (m + 1)) of its significand m in [1/sqrt 2, sqrt 2). */
static quad logarithm(quad u)
{
    /* ln 2 as a sum of three doubles */
    static const double ln2[3] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56,
                                  0x1.7b57a079a1934p-111};
    int exponent;
    const double half = frexp((double)u, &exponent);
    if (half < 0x1.6a09e667f3bcdp-1) exponent--;
    const quad m = u * (quad)ldexp(1, -exponent);
    const quad s = (m - 1) / (m + 1), square = s * s;
    quad sum = 0;
    for (int i = 51; i >= 1; i -= 2)
        sum = sum * square + (quad)1 / i;
    quad log2s = 0;
    for (int i = 2; i >= 0; i--)
        log2s += (quad)exponent * ln2[i];
    return log2s + 2 * s * sum;
}

float gnomon_jump_scale(double p)
{
    return p < 1.0 ? (float)(-1 / logarithm(1 - (quad)p)) : 0.0f;
}
