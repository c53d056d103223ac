/* cpu/convert.h: half precision to single by integer steps, the same bits everywhere (the
 * hardware's conversion agrees but for the payloads of NaNs). Without branches, so that loops over
 * it vectorise. */
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

static inline uint32_t float_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t body = half & 0x7fffu;
    const uint32_t tiny = float_to_bits((float)(int32_t)body * 0x1p-24f); /* subnormal */
    const uint32_t normal = (body << 13) + (body >= 0x7c00u ? 0x70000000u : 0x38000000u);
    return bits_to_float(sign | (body < 0x0400u ? tiny : normal));
}

static inline float bfloat_to_float(uint16_t upper)
{
    return bits_to_float((uint32_t)upper << 16);
}

#endif
