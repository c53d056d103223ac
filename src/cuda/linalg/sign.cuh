/* cuda/linalg/sign.cuh: vectors of a factorisation with their signs fixed. */
#ifndef GNOMON_CUDA_LINALG_SIGN_CUH
#define GNOMON_CUDA_LINALG_SIGN_CUH

#include <stdint.h>

/* The larger magnitude, and among equal ones the earlier place. */
struct gcu_largest {
    float size;
    int64_t at;
};

static __device__ __forceinline__ gcu_largest gcu_larger(gcu_largest a, gcu_largest b)
{
    return b.size > a.size || (b.size == a.size && b.at < a.at) ? b : a;
}

/* By a block of THREADS: to = the vector's numbers in fp32, times *sign, which makes the first of
 * the largest magnitudes positive. Both have 'step' numbers from one to the next. */
template <int THREADS>
static __device__ __forceinline__ void gcu_sign_vector(const double *from, int64_t count,
                                                       int64_t step, float *to, float *sign)
{
    __shared__ gcu_largest part[THREADS];
    gcu_largest most = {-1.0f, INT64_MAX};
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        most = gcu_larger(most, {fabsf((float)from[i * step]), i});
    part[threadIdx.x] = most;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = gcu_larger(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    const int64_t at = part[0].at;
    const float factor = at < count && (float)from[at * step] < 0 ? -1.0f : 1.0f;
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        to[i * step] = factor * (float)from[i * step];
    if (threadIdx.x == 0) *sign = factor;
}

#endif
