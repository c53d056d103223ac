#include "operator/operator.h"

#include <math.h>
#include <string.h>

/* A polynomial for (ln(1 + f) - f + f^2/2) / f^3 on [-0.25, 0.5). */
static const float coefficient[9] = {
    0.3333333432674408f,   -0.25000056624412537f, 0.20000140368938446f,
    -0.16660816967487335f, 0.14268305897712708f,  -0.12639310956001282f,
    0.11680682003498077f,  -0.09561339765787125f, 0.042871978133916855f,
};

float gnomon_neglog(uint32_t h)
{
    float f;
    float e;
    if (h >= UINT32_C(3) << 29) {
        /* near 1 the argument less 1 is formed from the integer, or it would cancel */
        const uint32_t m = UINT32_C(0x7FFFFFFF) - h;
        f = fmaf((float)m, -0x1p-31f, -0x1p-32f);
        e = 0.0f;
    } else {
        const float x = (float)h + 0.5f;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const int32_t b = (int32_t)bits - 0x3F400000;
        /* x >= 0.5, so b >= -2^22: floor(b / 2^23) without shifting a negative number */
        const int32_t exponent = b < 0 ? -1 : b >> 23;
        const uint32_t t_bits = ((uint32_t)b & UINT32_C(0x007FFFFF)) + UINT32_C(0x3F400000);
        float t;
        memcpy(&t, &t_bits, sizeof t);
        f = t - 1.0f;
        e = (float)(exponent - 31);
    }
    float p = coefficient[8];
    for (int i = 7; i >= 0; i--)
        p = fmaf(p, f, coefficient[i]);
    const float g = f * f;
    const float l = fmaf(g, fmaf(p, f, -0.5f), f);
    return -fmaf(e, 0.6931471824645996f, l);
}
