/* cuda/gemm/split.cuh: an fp32 number as two fp16 numbers, in registers. */
#ifndef GNOMON_CUDA_GEMM_SPLIT_CUH
#define GNOMON_CUDA_GEMM_SPLIT_CUH

#include <cuda_fp16.h>
#include <stdint.h>

/* The power of two that brings the largest magnitude into [2^14, 2^15), or the largest power there
 * is; and its inverse. Infinity and zero get one too. */
struct gcu_gemm_scale {
    float up, down;
};

__device__ __forceinline__ gcu_gemm_scale gcu_gemm_scale_of(float largest)
{
    const uint32_t exponent = min(__float_as_uint(largest) >> 23, 254u);
    const uint32_t up = min(268u - exponent, 254u);
    gcu_gemm_scale s;
    s.up = __uint_as_float(up << 23);
    s.down = __uint_as_float(up == 254 ? 1u << 22 : (254 - up) << 23);
    return s;
}

/* Least magnitude that is not zero, as 2 |x| - 1 in bits. */
__device__ __forceinline__ uint32_t gcu_gemm_least_of(uint32_t least, float x)
{
    return min(least, (__float_as_uint(x) << 1) - 1);
}

/* Scaled magnitudes from here on lose less than 2^-20 of themselves when the low halves are at the
 * high ones' scale, below 2^-22 when they are at 2^11 times it. */
template <bool APART> __device__ __forceinline__ float gcu_gemm_least()
{
    return APART ? 0x1p-14f : 0x1p-5f;
}

/* Whether the least entry is too small at that scale. */
template <bool APART>
__device__ __forceinline__ bool gcu_gemm_too_small(uint32_t least, gcu_gemm_scale s)
{
    return least != ~0u && __uint_as_float((least + 1) >> 1) * s.up < gcu_gemm_least<APART>();
}

/* Of a thread's 32 numbers x[4 i + 2 r + e] of rows r, whose high halves are these: whether the
 * warp's are all large enough, the usual case, which tells that none is too small. */
template <bool APART> __device__ __forceinline__ bool gcu_gemm_all_large(const uint32_t (*high)[4])
{
    __half2 halves = __float2half2_rn(1.0f);
#pragma unroll
    for (int e = 0; e < 16; e++)
        halves = __hmin2(halves, __habs2(*reinterpret_cast<const __half2 *>(&high[e / 4][e % 4])));
    const float2 least = __half22float2(halves);
    return !__any_sync(~0u, fminf(least.x, least.y) < gcu_gemm_least<APART>());
}

/* Whether one of the thread's is too small for its row's scale. */
template <bool APART>
__device__ __forceinline__ bool gcu_gemm_any_small(const float *x, const gcu_gemm_scale *scale)
{
    bool small = false;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        uint32_t bits = ~0u;
#pragma unroll
        for (int e = 0; e < 16; e++)
            bits = gcu_gemm_least_of(bits, x[e / 2 * 4 + 2 * r + e % 2]);
        small |= gcu_gemm_too_small<APART>(bits, scale[r]);
    }
    return small;
}

__device__ __forceinline__ uint32_t gcu_gemm_bits(__half2 h)
{
    return *reinterpret_cast<uint32_t *>(&h);
}

/* Two scaled numbers as high and low halves; APART: the low ones times 2^11. */
template <bool APART>
__device__ __forceinline__ void gcu_gemm_split(float x, float y, uint32_t *high, uint32_t *low)
{
    const __half2 h = __floats2half2_rn(x, y);
    const float2 f = __half22float2(h);
    float dx = x - f.x, dy = y - f.y;
    if (APART) dx *= 0x1p11f, dy *= 0x1p11f;
    *high = gcu_gemm_bits(h);
    *low = gcu_gemm_bits(__floats2half2_rn(dx, dy));
}

/* The scales of a thread's two rows, of whose 32 numbers, x[4 i + 2 r + e] of row r, three lanes
 * beside it hold the rest. WAYS: comparisons side by side, which take registers. */
template <int WAYS>
__device__ __forceinline__ void gcu_gemm_scales(const float *x, gcu_gemm_scale *scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float some[WAYS] = {};
#pragma unroll
        for (int e = 0; e < 16; e++)
            some[e % WAYS] = fmaxf(some[e % WAYS], fabsf(x[e / 2 * 4 + 2 * r + e % 2]));
        float largest = some[0];
#pragma unroll
        for (int e = 1; e < WAYS; e++)
            largest = fmaxf(largest, some[e]);
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        scale[r] = gcu_gemm_scale_of(largest);
    }
}

/* These numbers as the matrix instructions' operand: e of 4 s + 2 h + r has 2 e and 2 e + 1. */
template <bool APART>
__device__ __forceinline__ void gcu_gemm_split_all(const float *x, const gcu_gemm_scale *scale,
                                                   uint32_t (*high)[4], uint32_t (*low)[4])
{
#pragma unroll
    for (int e = 0; e < 16; e++)
        gcu_gemm_split<APART>(x[2 * e] * scale[e % 2].up, x[2 * e + 1] * scale[e % 2].up,
                              &high[e / 4][e % 4], &low[e / 4][e % 4]);
}

/* What high and low halves leave of an unscaled number that was too small; 0 of others. */
template <bool APART> __device__ __forceinline__ float gcu_gemm_rest(float x, gcu_gemm_scale s)
{
    const float v = x * s.up;
    if (!(fabsf(v) < gcu_gemm_least<APART>())) return 0.0f;
    const float d = v - __half2float(__float2half_rn(v));
    const float low = APART ? __half2float(__float2half_rn(d * 0x1p11f)) * 0x1p-11f
                            : __half2float(__float2half_rn(d));
    return (d - low) * s.down;
}

#endif
