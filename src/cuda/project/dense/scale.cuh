/* cuda/project/dense/scale.cuh: powers of two that bring numbers to where fp16 holds them best. */
#ifndef GNOMON_CUDA_DENSE_SCALE_CUH
#define GNOMON_CUDA_DENSE_SCALE_CUH

/* 2^e, -149 <= e <= 127 */
static __device__ __forceinline__ float gcu_power(int e)
{
    return e >= -126 ? __int_as_float((e + 127) << 23) : __int_as_float(1 << (e + 149));
}

/* s, at most 'end', such that most 2^s lies in [2^top, 2^(top + 1)); 0 of 0. */
static __device__ __forceinline__ int gcu_scale_of(float most, int top, int end)
{
    if (!(most > 0.0f)) return 0;
    const int bits = __float_as_int(most);
    const int e = bits >= 1 << 23 ? (bits >> 23) - 127 : -118 - __clz(bits);
    return min(top - e, end);
}

#endif
