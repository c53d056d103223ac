/* cuda/project/points.cuh: one folded point's coordinates. */
#ifndef GNOMON_CUDA_POINTS_CUH
#define GNOMON_CUDA_POINTS_CUH

#include "cuda/project/family.h"

struct gcu_line {
    const char *base;  /* coordinate 0 */
    int64_t low, high; /* the coordinates that are there; others read as 0 */
    int64_t stride;    /* bytes */
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
    return l;
}

#endif
