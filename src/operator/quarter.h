/* operator/quarter.h: sine and cosine within a quarter turn, of the same bits everywhere. */
#ifndef GNOMON_OPERATOR_QUARTER_H
#define GNOMON_OPERATOR_QUARTER_H

#include <math.h>

/* cos and sin of pi / 4 * z for z in [-1, 1], by the fixed fp32 operations of
 * docs/reference/operators.md, section 4.1. */
static inline void gnomon_quarter(float z, float *cosine, float *sine)
{
    const float y = z * z;
    float c = 3.5297971407999285e-06f;
    c = fmaf(c, y, -0.0003259385994169861f);
    c = fmaf(c, y, 0.015854325145483017f);
    c = fmaf(c, y, -0.3084251284599304f);
    c = fmaf(c, y, 1.0f);
    float s = -3.595429006963968e-05f;
    s = fmaf(s, y, 0.0024900068528950214f);
    s = fmaf(s, y, -0.08074543625116348f);
    s = fmaf(s, y, 0.7853981852531433f);
    *cosine = c;
    *sine = s * z;
}

#endif
