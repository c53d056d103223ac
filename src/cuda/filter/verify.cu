/* Candidates verified in fp64: sorted by (i, j), computed, those beyond the radius dropped. */
#include "base/arithmetic.h"
#include "cuda/filter/exact.cuh"
#include "cuda/filter/filter.h"

#include <cub/device/device_radix_sort.cuh>

enum { THREADS = 256, PART = 1024 /* pairs that a block compacts */ };

/* Bits that hold 0 ... rows - 1. */
static int bits_of(int64_t rows)
{
    int bits = 1;
    while (bits < 32 && (int64_t)1 << bits < rows)
        bits++;
    return bits;
}

/* ---- distances ---- */

struct verification {
    exact_view p, q;
    const double *p_inverse, *q_inverse, *radii;
    double radius;
    gnomon_metric metric;
    bool doubles; /* small sums may have lost digits */
    int64_t cols, above;
    const uint64_t *pairs;
    int64_t count;
    double *distances;
    bool judge; /* NaN for those beyond the radius */
};

/* A half of a warp a pair. */
template <bool FLOATS>
static __global__ void __launch_bounds__(THREADS) distance_kernel(verification s)
{
    const double small_sum = 0x1p-900, boost = 0x1p600;
    const int lane = threadIdx.x % 16;
    const int64_t at = (blockIdx.x * (int64_t)THREADS + threadIdx.x) / 16;
    const bool there = at < s.count;
    const uint64_t pair = s.pairs[there ? at : s.count - 1];
    const int64_t i = (int64_t)(pair >> 32), j = (int64_t)(uint32_t)pair;
    const exact_row p = exact_row_of(s.p, i), q = exact_row_of(s.q, j);
    double distance;
    if (s.metric == GNOMON_L2) {
        double sum = exact_sum<EXACT_DIFFERENCES, FLOATS>(p, 1, q, 1, s.cols, lane);
        distance = __dsqrt_rn(sum);
        if (!FLOATS && s.doubles) {
            const bool small = lane == 0 && !(sum >= small_sum);
            if (__any_sync(~0u, small)) {
                sum = exact_sum<EXACT_DIFFERENCES, FLOATS>(p, boost, q, boost, s.cols, lane);
                /* not a number where coordinates above 2^424 meet their like: differences that
                 * small only stand beside zeros there */
                const double again = __ddiv_rn(__dsqrt_rn(sum), boost);
                if (small && again == again) distance = again;
            }
        }
    } else if (s.metric == GNOMON_HAMMING) {
        distance = exact_bits(p, q, s.cols, lane);
    } else if (s.metric == GNOMON_COSINE) {
        const double a = s.p_inverse[i], b = s.q_inverse[j];
        distance = exact_sum<EXACT_DIFFERENCES, FLOATS>(p, a, q, b, s.cols, lane) / 2;
        if (a == 0 || b == 0) distance = 1;
    } else {
        distance = exact_sum<EXACT_PRODUCTS, FLOATS>(p, 1, q, 1, s.cols, lane);
    }
    if (!there || lane > 0) return;
    if (s.judge) {
        const double radius = s.radii ? s.radii[i] : s.radius;
        const bool near_enough = s.metric == GNOMON_IP ? distance >= radius : distance <= radius;
        if (!near_enough || j - i <= s.above) distance = (double)NAN;
    }
    s.distances[at] = distance;
}

static cudaError_t compute(const gcu_verify *c, const uint64_t *pairs, int64_t count,
                           double *distances, bool judge, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    verification s = {};
    s.p = exact_view_of(c->p);
    s.q = exact_view_of(c->q);
    s.p_inverse = c->p_inverse;
    s.q_inverse = c->q_inverse;
    s.radii = c->radii;
    s.radius = c->radius;
    s.metric = c->metric;
    s.doubles = c->p->dtype == GNOMON_F64 || c->q->dtype == GNOMON_F64;
    s.cols = c->p->cols;
    s.above = c->above;
    s.pairs = pairs;
    s.count = count;
    s.distances = distances;
    s.judge = judge;
    const int64_t blocks = gnomon_ceil_div(count * 16, THREADS);
    if (blocks > INT32_MAX) return cudaErrorInvalidValue;
    const bool floats = c->p->dtype == GNOMON_F32 && c->q->dtype == GNOMON_F32 &&
                        c->p->col_stride == 1 && c->q->col_stride == 1;
    if (floats)
        distance_kernel<true><<<(unsigned)blocks, THREADS, 0, stream>>>(s);
    else
        distance_kernel<false><<<(unsigned)blocks, THREADS, 0, stream>>>(s);
    return cudaGetLastError();
}

cudaError_t gcu_verify_distances(const gcu_verify *verify, const uint64_t *pairs, int64_t count,
                                 double *distances, const gcu_gpu *, cudaStream_t stream)
{
    return compute(verify, pairs, count, distances, false, stream);
}

/* ---- those that stay ---- */

struct staying {
    const uint64_t *from;
    const double *judged; /* NaN: goes */
    int64_t count, parts;
    unsigned long long *starts; /* of parts: how many stay, then where they go */
    uint64_t *pairs;
    double *distances;
    unsigned long long *kept;
};

static __global__ void __launch_bounds__(THREADS) count_kernel(staying s)
{
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int64_t first = blockIdx.x * (int64_t)PART + threadIdx.x;
    int mine = 0;
    for (int e = 0; e < PART / THREADS; e++) {
        const int64_t at = first + e * THREADS;
        if (at < s.count && !isnan(s.judged[at])) mine++;
    }
    mine = __reduce_add_sync(~0u, mine);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) s.starts[blockIdx.x] = (unsigned long long)total;
}

/* Sum of the numbers of lower threads of the block, and of all. */
static __device__ unsigned long long sum_before(unsigned long long mine, unsigned long long *all)
{
    __shared__ unsigned long long warps[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned long long sum = mine;
    for (int step = 1; step < 32; step *= 2) {
        const unsigned long long other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    unsigned long long before = 0;
    *all = 0;
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += warps[w];
        *all += warps[w];
    }
    __syncthreads();
    return before + sum - mine;
}

static __global__ void __launch_bounds__(THREADS) starts_kernel(staying s)
{
    unsigned long long before = 0;
    for (int64_t first = 0; first < s.parts; first += THREADS) {
        const int64_t at = first + threadIdx.x;
        unsigned long long all;
        const unsigned long long start = before + sum_before(at < s.parts ? s.starts[at] : 0, &all);
        if (at < s.parts) s.starts[at] = start;
        before += all;
    }
    if (threadIdx.x == 0) *s.kept = before;
}

static __global__ void __launch_bounds__(THREADS) keep_kernel(staying s)
{
    unsigned long long to = s.starts[blockIdx.x];
    for (int e = 0; e < PART / THREADS; e++) {
        const int64_t at = blockIdx.x * (int64_t)PART + e * THREADS + threadIdx.x;
        const double distance = at < s.count ? s.judged[at] : (double)NAN;
        const bool stays = !isnan(distance);
        unsigned long long all;
        const unsigned long long mine = to + sum_before(stays, &all);
        if (stays) {
            s.pairs[mine] = s.from[at];
            if (s.distances) s.distances[mine] = distance;
        }
        to += all;
    }
}

struct layout {
    uint64_t *other;
    double *judged;
    unsigned long long *starts;
    void *sorting;
    size_t sorting_bytes, all;
};

static layout layout_of(int64_t count, void *work)
{
    layout l = {};
    uint8_t *base = static_cast<uint8_t *>(work);
    const auto carve = [&](size_t bytes) {
        uint8_t *part = base + l.all;
        l.all += gcu_aligned(bytes);
        return part;
    };
    l.other = reinterpret_cast<uint64_t *>(carve((size_t)count * 8));
    l.judged = reinterpret_cast<double *>(carve((size_t)count * 8));
    l.starts =
        reinterpret_cast<unsigned long long *>(carve((size_t)gnomon_ceil_div(count, PART) * 8));
    cub::DeviceRadixSort::SortKeys(nullptr, l.sorting_bytes, l.other, l.other, count);
    l.sorting = carve(l.sorting_bytes);
    return l;
}

size_t gcu_verify_work(int64_t count)
{
    return layout_of(count, nullptr).all;
}

cudaError_t gcu_verify_pairs(const gcu_verify *c, uint64_t *pairs, int64_t count, double *distances,
                             unsigned long long *kept, void *work, size_t work_bytes,
                             const gcu_gpu *, cudaStream_t stream)
{
    if (count == 0) return cudaMemsetAsync(kept, 0, sizeof *kept, stream);
    layout l = layout_of(count, work);
    if (l.all > work_bytes) return cudaErrorInvalidValue;
    cudaError_t error = cub::DeviceRadixSort::SortKeys(l.sorting, l.sorting_bytes, pairs, l.other,
                                                       count, 0, 32 + bits_of(c->p->rows), stream);
    if (error == cudaSuccess) error = compute(c, l.other, count, l.judged, true, stream);
    if (error != cudaSuccess) return error;
    const int64_t parts = gnomon_ceil_div(count, PART);
    const staying s = {l.other, l.judged, count, parts, l.starts, pairs, distances, kept};
    count_kernel<<<(unsigned)parts, THREADS, 0, stream>>>(s);
    starts_kernel<<<1, THREADS, 0, stream>>>(s);
    keep_kernel<<<(unsigned)parts, THREADS, 0, stream>>>(s);
    return cudaGetLastError();
}
