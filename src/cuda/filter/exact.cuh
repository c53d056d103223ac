/* cuda/filter/exact.cuh: what the CPU's search computes in fp64 (src/search/exact.c,
 * src/cpu/search/search.inc), to the last bit: sixteen interleaved chains of fused multiply-adds, a
 * lane each, that a tree joins. */
#ifndef GNOMON_CUDA_FILTER_EXACT_CUH
#define GNOMON_CUDA_FILTER_EXACT_CUH

#include <gnomon/matrix.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

/* A row of a view. */
struct exact_row {
    const char *data;
    int64_t step; /* elements */
    gnomon_dtype dtype;
};

/* The same, as kernels are given it. */
struct exact_view {
    const char *data;
    int64_t row, step; /* strides, in elements */
    gnomon_dtype dtype;
    int size;
};

static inline exact_view exact_view_of(const gnomon_matrix *m)
{
    exact_view v = {static_cast<const char *>(m->data), m->row_stride, m->col_stride, m->dtype,
                    (int)gnomon_dtype_size(m->dtype)};
    return v;
}

#ifdef __CUDACC__

static __device__ __forceinline__ exact_row exact_row_of(const exact_view &v, int64_t i)
{
    return {v.data + i * v.row * v.size, v.step, v.dtype};
}

/* Element 'at' of neighbours in memory, as fp64. */
static __device__ __forceinline__ double exact_load_any(const char *data, gnomon_dtype dtype,
                                                        int64_t at)
{
    switch (dtype) {
    case GNOMON_F32:
        return (double)__ldg(reinterpret_cast<const float *>(data) + at);
    case GNOMON_F64:
        return __ldg(reinterpret_cast<const double *>(data) + at);
    case GNOMON_F16:
        return (double)__half2float(reinterpret_cast<const __half *>(data)[at]);
    case GNOMON_BF16:
        return (double)__bfloat162float(reinterpret_cast<const __nv_bfloat16 *>(data)[at]);
    case GNOMON_I8:
        return (double)reinterpret_cast<const int8_t *>(data)[at];
    case GNOMON_U8:
        return (double)reinterpret_cast<const uint8_t *>(data)[at];
    case GNOMON_I16:
        return (double)reinterpret_cast<const int16_t *>(data)[at];
    case GNOMON_U16:
        return (double)reinterpret_cast<const uint16_t *>(data)[at];
    case GNOMON_I32:
        return (double)reinterpret_cast<const int32_t *>(data)[at];
    case GNOMON_U32:
        return (double)reinterpret_cast<const uint32_t *>(data)[at];
    case GNOMON_I64:
        return __ll2double_rn(reinterpret_cast<const long long *>(data)[at]);
    default:
        return __ull2double_rn(reinterpret_cast<const unsigned long long *>(data)[at]);
    }
}

/* FLOATS: the type is F32 and neighbours lie together. */
template <bool FLOATS>
static __device__ __forceinline__ double exact_load(const exact_row &x, int64_t at)
{
    if (FLOATS) return (double)__ldg(reinterpret_cast<const float *>(x.data) + at);
    return exact_load_any(x.data, x.dtype, at * x.step);
}

static __device__ __forceinline__ unsigned exact_byte(const exact_row &x, int64_t at)
{
    return __ldg(reinterpret_cast<const uint8_t *>(x.data) + at * x.step);
}

/* Bits that differ; in lane 0 of 16. */
static __device__ __forceinline__ double exact_bits(const exact_row &p, const exact_row &q,
                                                    int64_t bytes, int lane)
{
    int sum = 0;
    for (int64_t j = lane; j < bytes; j += 16)
        sum += __popc(exact_byte(p, j) ^ exact_byte(q, j));
#pragma unroll
    for (int half = 8; half > 0; half /= 2)
        sum += __shfl_down_sync(~0u, sum, half, 16);
    return (double)sum;
}

/* The tree over the sixteen lanes of a half of a warp; both halves take part. Lane 0 (16) has the
 * sum. */
static __device__ __forceinline__ double exact_join(double chain)
{
#pragma unroll
    for (int half = 8; half > 0; half /= 2)
        chain = __dadd_rn(chain, __shfl_down_sync(~0u, chain, half, 16));
    return chain;
}

enum exact_kind { EXACT_DIFFERENCES, EXACT_PRODUCTS, EXACT_SQUARES };

/* The sum of (q a - x b)^2, of (q a) (x b) or of (x b)^2, each product rounded. 'lane' of 16; all
 * lanes of the warp must take part. */
template <exact_kind KIND, bool FLOATS>
static __device__ __forceinline__ double exact_sum(const exact_row &q, double a, const exact_row &x,
                                                   double b, int64_t d, int lane)
{
    double chain = 0;
#pragma unroll 8
    for (int64_t j = lane; j < d; j += 16) {
        const double y = __dmul_rn(exact_load<FLOATS>(x, j), b);
        if (KIND == EXACT_SQUARES) {
            chain = __fma_rn(y, y, chain);
            continue;
        }
        const double p = __dmul_rn(exact_load<FLOATS>(q, j), a);
        if (KIND == EXACT_PRODUCTS) {
            chain = __fma_rn(p, y, chain);
        } else {
            const double v = __dsub_rn(p, y);
            chain = __fma_rn(v, v, chain);
        }
    }
    return exact_join(chain);
}

/* 1 / |x|, 0 for a zero vector; in lane 0 of 16. */
template <bool FLOATS>
static __device__ __forceinline__ double exact_inverse(const exact_row &x, int64_t d, int lane)
{
    const double boost = 0x1p600;
    double norm = __dsqrt_rn(exact_sum<EXACT_SQUARES, FLOATS>(x, 1, x, 1, d, lane));
    const bool small = x.dtype == GNOMON_F64 && norm < 0x1p-450;
    if (!FLOATS && __any_sync(~0u, small)) {
        const double again = __dsqrt_rn(exact_sum<EXACT_SQUARES, FLOATS>(x, 1, x, boost, d, lane));
        if (small) norm = __ddiv_rn(again, boost);
    }
    return norm < 0x1p-1000 ? 0 : __ddiv_rn(1, norm);
}

#endif
#endif
