/* What nearly orthogonal columns have in common, number by number: svd/f64_small.cu. */
#include "cuda/runtime/grid.cuh"
#include "cuda/svd/f64.h"

enum { THREADS = 256 };

/* A larger share of the lengths' difference is no small angle. */
static const double small_angle = 0x1p-14;
/* F of a larger share of the longer one is not the first order of much. */
static const double small_share = 0x1p-12;

struct two_columns {
    double d, e, x; /* lengths, product */
};

/* Columns i and j, whose product is read above the diagonal. */
static __device__ __forceinline__ two_columns columns_of(const double *gram, int64_t s, int64_t i,
                                                         int64_t j)
{
    return {sqrt(gram[i * (s + 1)]), sqrt(gram[j * (s + 1)]),
            i < j ? gram[i * s + j] : gram[j * s + i]};
}

static __device__ __forceinline__ double root_of(two_columns c)
{
    const double sum = c.d + c.e;
    return sum > 0 ? c.x / sum : 0.0;
}

/* A block's sum in a fixed order, or its least, in thread 0. */
template <typename T> static __device__ T block_total(T x, bool least)
{
    __shared__ T part[THREADS];
    __syncthreads();
    part[threadIdx.x] = x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const T other = part[threadIdx.x + half];
            part[threadIdx.x] = least ? min(part[threadIdx.x], other) : part[threadIdx.x] + other;
        }
    }
    return part[0];
}

static __global__ void __launch_bounds__(THREADS)
    overlaps_kernel(const double *gram, int64_t s, double *angles, double *rotation,
                    gcu_svd_f64_overlap *part)
{
    double off = 0, near = 0, all = 0, cosine = 0;
    const double nothing = 0x1p-53 * sqrt(gram[0]);
    int64_t first = s;
    GCU_FOR_EACH(at, s * s)
    {
        const int64_t i = at / s, j = at % s;
        const two_columns c = columns_of(gram, s, i, j);
        double angle = 0;
        if (!(c.d * c.e > 0)) cosine += 1;
        if (i != j) {
            const double f = root_of(c), gap = c.e - c.d, both = c.d * c.e;
            const double share = both > 0 ? c.x / both : 0.0;
            off = fma(f, f, off);
            cosine = fma(share, share, cosine);
            if (fabs(f) > small_angle * fabs(gap))
                near = fma(f, f, near);
            else if (f != 0)
                angle = f / gap;
            all = fma(angle, angle, all);
            if (fabs(f) > small_share * fmax(c.d, c.e) && fabs(f) > nothing)
                first = min(first, min(i, j));
        }
        angles[at] = angle;
        rotation[at] = i == j ? 1.0 : angle;
    }
    off = block_total(off, false);
    near = block_total(near, false);
    all = block_total(all, false);
    cosine = block_total(cosine, false);
    first = block_total(first, true);
    if (threadIdx.x == 0) part[blockIdx.x] = {off, near, all, cosine, first};
}

cudaError_t gcu_svd_f64_overlaps(const double *gram, int64_t s, double *angles, double *rotation,
                                 gcu_svd_f64_overlap *part, cudaStream_t stream)
{
    overlaps_kernel<<<GCU_SVD_F64_OVERLAP_PARTS, THREADS, 0, stream>>>(gram, s, angles, rotation,
                                                                       part);
    return cudaGetLastError();
}

static __global__ void root_kernel(const double *gram, int64_t s, int64_t first, double *root)
{
    GCU_FOR_EACH(at, s * s)
    {
        const int64_t i = at / s, j = at % s;
        const two_columns c = columns_of(gram, s, i, j);
        const double f = i == j ? c.d : root_of(c);
        const bool square = i >= first && j >= first;
        root[at] = square ? (i == j ? c.d * c.d : c.x) / sqrt(gram[first * (s + 1)]) : f;
    }
}

cudaError_t gcu_svd_f64_root(const double *gram, int64_t s, int64_t first, double *root,
                             cudaStream_t stream)
{
    root_kernel<<<gcu_grid(s * s, THREADS), THREADS, 0, stream>>>(gram, s, first, root);
    return cudaGetLastError();
}

static __global__ void upright_kernel(const double *gram, int64_t s, int64_t k, bool close,
                                      double *to)
{
    GCU_FOR_EACH(at, s * k)
    {
        const int64_t i = at / k, j = at % k;
        const two_columns c = columns_of(gram, s, i, j);
        double value = 0;
        if (i == j)
            value = c.d > 0 ? 1 / c.d : 1.0;
        else if (i < j && close)
            value = -c.x / (c.d * c.e) / c.d;
        to[at] = value;
    }
}

cudaError_t gcu_svd_f64_normalise(const double *gram, int64_t s, int64_t k, bool close, double *to,
                                  cudaStream_t stream)
{
    upright_kernel<<<gcu_grid(s * k, THREADS), THREADS, 0, stream>>>(gram, s, k, close, to);
    return cudaGetLastError();
}
