/* cpu/convert.h: half precision to single by integer steps, the same bits everywhere (the
 * hardware's conversion agrees but for the payloads of NaNs). */
#ifndef GNOMON_CPU_CONVERT_H
#define GNOMON_CPU_CONVERT_H

#include <stdint.h>
#include <string.h>

static inline float bits_to_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t body = half & 0x7fffu;
    if (body < 0x0400u) { /* zero and subnormals: a multiple of 2^-24 */
        const float x = (float)body * 0x1p-24f;
        return sign ? -x : x;
    }
    if (body >= 0x7c00u) return bits_to_float(sign | 0x7f800000u | (body & 0x03ffu) << 13);
    return bits_to_float(sign | ((body << 13) + 0x38000000u));
}

#endif
