/* cuda/points.cuh: one folded point's coordinates, four at a time, from any layout and type. */
#ifndef GNOMON_CUDA_POINTS_CUH
#define GNOMON_CUDA_POINTS_CUH

#include "cuda/family.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct gcu_line {
    const char *base;  /* coordinate 0 */
    int64_t low, high; /* the coordinates that are there; others read as 0 */
    int64_t stride;    /* bytes */
    bool vector;       /* four from a multiple of 4 on are one aligned load */
};

/* Folded point v; an empty line when v is not below 'end'. */
template <typename T>
__device__ __forceinline__ gcu_line gcu_line_of(const gcu_points &x, int64_t v, int64_t end)
{
    const int64_t b = v < end ? v / x.n : 0, i = v < end ? v - b * x.n : 0;
    gcu_line l;
    l.base = static_cast<const char *>(x.data) +
             (i * x.row_stride + b * x.block_stride) * (int64_t)sizeof(T);
    l.low = max((int64_t)0, x.first - b * x.block_cols);
    l.high = v < end ? min(x.block_cols, x.end - b * x.block_cols) : 0;
    l.stride = x.col_stride * (int64_t)sizeof(T);
    l.vector = x.col_stride == 1 && reinterpret_cast<uintptr_t>(l.base) % (4 * sizeof(T)) == 0;
    return l;
}

/* Coordinates q ... q + 3, q a multiple of 4. */
template <typename T> __device__ __forceinline__ float4 gcu_load4(const gcu_line &l, int64_t q)
{
    struct alignas(4 * sizeof(T)) four {
        T x[4];
    };
    const char *p = l.base + q * l.stride;
    if (l.vector && q >= l.low && q + 4 <= l.high) {
        const four v = *reinterpret_cast<const four *>(p);
        return make_float4((float)v.x[0], (float)v.x[1], (float)v.x[2], (float)v.x[3]);
    }
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (q >= l.low && q < l.high) v.x = (float)*reinterpret_cast<const T *>(p);
    if (q + 1 >= l.low && q + 1 < l.high) v.y = (float)*reinterpret_cast<const T *>(p + l.stride);
    if (q + 2 >= l.low && q + 2 < l.high)
        v.z = (float)*reinterpret_cast<const T *>(p + 2 * l.stride);
    if (q + 3 >= l.low && q + 3 < l.high)
        v.w = (float)*reinterpret_cast<const T *>(p + 3 * l.stride);
    return v;
}

#endif
