/* cuda/search/small_batch.cuh: what the kernels for a few queries share (search/small_batch.h). */
#ifndef GNOMON_CUDA_SEARCH_SMALL_BATCH_CUH
#define GNOMON_CUDA_SEARCH_SMALL_BATCH_CUH

#include "base/arithmetic.h"
#include "cuda/search/small_batch.h"

#include <cuda_fp16.h>

enum {
    BATCH_CHAINS = 16,       /* of a key in fp64: see search/exact.cu */
    BATCH_MOST_GROUPS = 4096 /* of rows that are compared first */
};

struct batch_words {
    unsigned long long fault, base_fault;
    unsigned declined; /* some query has more rows than there is room for */
};

struct batch_call {
    gcu_search_pairs k;
    int64_t rows, cols, padded;
    int query, queries;                  /* of this launch */
    bool vectors;                        /* rows lie at multiples of 16 bytes */
    float share, least;                  /* the bound: a share of it, and what underflow takes */
    float *f32;                          /* all queries' coordinates in fp32, 'padded' each */
    double *inverse;                     /* 1 / |q| */
    float *norms;                        /* |q|, rounded up */
    int64_t groups, group_rows, spacing; /* rows compared first are so far apart */
    float *minima;                       /* of each query and group: the least upper bound */
    float *reach;                        /* of each query: what a lower bound may be at most */
    unsigned *counts;
    gnomon_ranked *found; /* GCU_SMALL_BATCH_ROOM a query */
    batch_words *words;
    bool fresh;
    int64_t *list_counts;
    double *limits, *radii;
};

static __device__ __forceinline__ float batch_float(float x)
{
    return x;
}

static __device__ __forceinline__ float batch_float(__half x)
{
    return __half2float(x);
}

static __device__ __forceinline__ float batch_coordinate(const void *x, gnomon_dtype dtype,
                                                         int64_t i)
{
    switch (dtype) {
    case GNOMON_F32:
        return static_cast<const float *>(x)[i];
    case GNOMON_F16:
        return __half2float(static_cast<const __half *>(x)[i]);
    case GNOMON_BF16:
        return __uint_as_float((unsigned)static_cast<const uint16_t *>(x)[i] << 16);
    case GNOMON_I8:
        return (float)static_cast<const int8_t *>(x)[i];
    case GNOMON_U8:
        return (float)static_cast<const uint8_t *>(x)[i];
    case GNOMON_I16:
        return (float)static_cast<const int16_t *>(x)[i];
    default:
        return (float)static_cast<const uint16_t *>(x)[i];
    }
}

static __device__ __forceinline__ unsigned batch_half_mask(void)
{
    return 0xffffu << (threadIdx.x & 16);
}

/* As search/exact.cu has it. */
static __device__ __forceinline__ double batch_join_chains(double chain, unsigned mask)
{
#pragma unroll
    for (int half = BATCH_CHAINS / 2; half > 0; half /= 2)
        chain = __dadd_rn(chain, __shfl_xor_sync(mask, chain, half, BATCH_CHAINS));
    return chain;
}

/* The kernels of a call are launched while the one before still runs, and wait here for its end. */
static __device__ __forceinline__ void batch_await_predecessor(void)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
}

/* Before a query's first rows are compared; before any query's are. */
static __device__ __forceinline__ void batch_begin_query(const batch_call &c, int query)
{
    c.counts[query] = 0;
    if (!c.fresh) return;
    c.list_counts[query] = 0;
    c.limits[query] = INFINITY;
    c.radii[query] = c.k.metric == GNOMON_IP ? -INFINITY : INFINITY;
}

/* fault: the first coordinate of these queries that is not finite. */
static __device__ __forceinline__ void batch_begin_words(const batch_call &c,
                                                         unsigned long long fault)
{
    if (c.query == 0 || fault < c.words->fault) c.words->fault = fault;
    c.words->base_fault = ~0ull;
    c.words->declined = 0;
}

/* ---- keys in fp64 ---- */

/* The key in fp64 of a query, whose coordinates in fp32 are given, and a row, by a half of a warp,
 * with the bits of search/exact.cu. *broken: the row has NaN or infinity. */
template <typename T>
static __device__ __forceinline__ double batch_key(const batch_call &c, const float *q, int query,
                                                   int64_t row, bool *broken)
{
    const int lane = threadIdx.x % BATCH_CHAINS;
    const unsigned mask = batch_half_mask();
    const T *x = static_cast<const T *>(c.k.base.data) + row * c.k.base.row_stride;
    const bool cosine = c.k.metric == GNOMON_COSINE, products = c.k.metric == GNOMON_IP;
    double factor = 1, inverse = 1, chain = 0;
    *broken = false;
    if (cosine) {
        for (int64_t j = lane; j < c.cols; j += BATCH_CHAINS) {
            const double v = (double)batch_float(x[j]);
            chain = fma(v, v, chain);
        }
        const double norm = sqrt(batch_join_chains(chain, mask));
        *broken = !(norm < INFINITY);
        factor = norm < 0x1p-1000 ? 0 : __ddiv_rn(1, norm);
        inverse = c.inverse[query];
        chain = 0;
    }
#pragma unroll 4
    for (int64_t j = lane; j < c.cols; j += BATCH_CHAINS) {
        double y = (double)q[j], v = (double)batch_float(x[j]);
        if (cosine) {
            y = __dmul_rn(y, inverse);
            v = __dmul_rn(v, factor);
        }
        const double d = __dsub_rn(y, v);
        chain = products ? fma(y, v, chain) : fma(d, d, chain);
    }
    const double sum = batch_join_chains(chain, mask);
    *broken = *broken || !(fabs(sum) < INFINITY);
    if (products) return -sum;
    if (cosine) return inverse == 0 || factor == 0 ? 1.0 : __dmul_rn(sum, 0.5);
    return sqrt(sum);
}

/* ---- launching ---- */

/* 'after': as soon as the kernel before has begun to end. most_shared: of any launch of the kernel,
 * whose threads may launch it side by side. */
template <typename... Types, typename... Values>
static cudaError_t batch_launch(void (*kernel)(Types...), int64_t grid, int threads, size_t shared,
                                int64_t most_shared, bool after, cudaStream_t stream,
                                const Values &...values)
{
    if (shared > 48 << 10) {
        const cudaError_t error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most_shared);
        if (error != cudaSuccess) return error;
    }
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)grid);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = after ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, values...);
}

/* ---- search/small_batch_tensor.cu ---- */

/* How many of so many queries one launch takes; 0: they do not fit. */
int gcu_batch_tensor_queries(int64_t left, int64_t padded, const gcu_gpu *gpu);
/* Rows that are compared first, or all of them. */
cudaError_t gcu_batch_tensor_sample(const batch_call &call, const gcu_gpu *gpu, bool after,
                                    cudaStream_t stream);
cudaError_t gcu_batch_tensor_scan(const batch_call &call, const gcu_gpu *gpu, bool after,
                                  cudaStream_t stream);
/* The keys of what all scans have found of so many queries. */
cudaError_t gcu_batch_tensor_verify(const batch_call &call, int64_t queries, bool after,
                                    cudaStream_t stream);

#endif
