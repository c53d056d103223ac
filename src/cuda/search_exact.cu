/* Keys in fp64 with the bits of src/search/exact.c: sixteen chains of fused multiply-adds,
 * coordinate j in chain j mod 16, whose ends are added by halves. Half a warp takes a pair, a lane
 * a chain; or a thread does, with all chains in registers. Products are never fused with what
 * follows: hence the intrinsics. */
#include "cuda/search.h"

#include <cuda_fp16.h>

enum { CHAINS = 16, THREADS = 256, HALVES = THREADS / CHAINS, TILE = 16, STEP = 32 };

#define SMALL_SUM  0x1p-900
#define BOOST      0x1p600
#define LEAST_NORM 0x1p-1000

__device__ __forceinline__ double element(const void *x, gnomon_dtype dtype, int64_t i)
{
    switch (dtype) {
    case GNOMON_F32:
        return (double)static_cast<const float *>(x)[i];
    case GNOMON_F64:
        return static_cast<const double *>(x)[i];
    case GNOMON_F16:
        return (double)__half2float(static_cast<const __half *>(x)[i]);
    case GNOMON_BF16:
        return (double)__uint_as_float((unsigned)static_cast<const uint16_t *>(x)[i] << 16);
    case GNOMON_I8:
        return (double)static_cast<const int8_t *>(x)[i];
    case GNOMON_U8:
        return (double)static_cast<const uint8_t *>(x)[i];
    case GNOMON_I16:
        return (double)static_cast<const int16_t *>(x)[i];
    case GNOMON_U16:
        return (double)static_cast<const uint16_t *>(x)[i];
    case GNOMON_I32:
        return (double)static_cast<const int32_t *>(x)[i];
    case GNOMON_U32:
        return (double)static_cast<const uint32_t *>(x)[i];
    case GNOMON_I64:
        return __ll2double_rn(static_cast<const long long *>(x)[i]);
    default:
        return __ull2double_rn(static_cast<const unsigned long long *>(x)[i]);
    }
}

/* SINGLE: the type is F32, known to the compiler. */
template <bool SINGLE>
__device__ __forceinline__ double coordinate(const void *x, gnomon_dtype dtype, int64_t i)
{
    return element(x, SINGLE ? GNOMON_F32 : dtype, i);
}

__device__ __forceinline__ double add_difference(double q, double x, double sum)
{
    const double v = __dsub_rn(q, x);
    return fma(v, v, sum);
}

/* The sum of a half warp's chains, in all its lanes. */
__device__ __forceinline__ double join_chains(double chain, unsigned mask)
{
#pragma unroll
    for (int half = CHAINS / 2; half > 0; half /= 2)
        chain = __dadd_rn(chain, __shfl_xor_sync(mask, chain, half, CHAINS));
    return chain;
}

__device__ __forceinline__ unsigned half_mask(void)
{
    return 0xffffu << (threadIdx.x & 16);
}

template <bool SINGLE>
__device__ double sum_squares(const gcu_search_view &x, int64_t row, double factor, unsigned mask)
{
    const int64_t at = row * x.row_stride;
    double chain = 0;
    for (int64_t j = threadIdx.x % CHAINS; j < x.cols; j += CHAINS) {
        const double v =
            __dmul_rn(coordinate<SINGLE>(x.data, x.dtype, at + j * x.col_stride), factor);
        chain = fma(v, v, chain);
    }
    return join_chains(chain, mask);
}

/* ---- faults, norms, wide queries ---- */

__global__ void __launch_bounds__(THREADS)
    faults_kernel(gcu_search_view x, int64_t count, unsigned long long *first)
{
    const int64_t jump = (int64_t)gridDim.x * THREADS / 32;
    for (int64_t p = ((int64_t)blockIdx.x * THREADS + threadIdx.x) / 32; p < count; p += jump) {
        const int64_t at = p * x.row_stride;
#pragma unroll 4
        for (int64_t j = threadIdx.x % 32; j < x.cols; j += 32)
            if (!(fabs(element(x.data, x.dtype, at + j * x.col_stride)) <= 0x1p500))
                atomicMin(first, (unsigned long long)(p * x.cols + j));
    }
}

__global__ void __launch_bounds__(THREADS)
    norms_kernel(gcu_search_view x, int64_t count, double *inverse)
{
    const int64_t jump = (int64_t)gridDim.x * HALVES;
    const unsigned mask = half_mask();
    for (int64_t p = (int64_t)blockIdx.x * HALVES + threadIdx.x / CHAINS; p < count; p += jump) {
        double norm = sqrt(x.dtype == GNOMON_F32 ? sum_squares<true>(x, p, 1, mask)
                                                 : sum_squares<false>(x, p, 1, mask));
        if (x.dtype == GNOMON_F64 && norm < 0x1p-450)
            norm = __ddiv_rn(sqrt(sum_squares<false>(x, p, BOOST, mask)), BOOST);
        if (threadIdx.x % CHAINS == 0) inverse[p] = norm < LEAST_NORM ? 0 : __ddiv_rn(1, norm);
    }
}

__global__ void __launch_bounds__(THREADS)
    widen_kernel(gcu_search_view x, int64_t from, int64_t count, double *wide)
{
    const int64_t all = count * x.cols, jump = (int64_t)gridDim.x * THREADS;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < all; e += jump) {
        const int64_t i = from + e / x.cols, j = e % x.cols;
        double v = element(x.data, x.dtype, i * x.row_stride + j * x.col_stride);
        if (x.inverse) v = __dmul_rn(v, x.inverse[i]);
        wide[e] = v;
    }
}

static unsigned grid_of(int64_t units, int64_t each)
{
    const int64_t blocks = (units + each - 1) / each, most = 1 << 16;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

cudaError_t gcu_search_faults(const gcu_search_view *x, int64_t count, unsigned long long *first,
                              cudaStream_t stream)
{
    if (count == 0 || !gcu_may_be_nonfinite(x->dtype)) return cudaSuccess;
    faults_kernel<<<grid_of(count, THREADS / 32), THREADS, 0, stream>>>(*x, count, first);
    return cudaGetLastError();
}

cudaError_t gcu_search_norms(const gcu_search_view *x, int64_t count, double *inverse,
                             cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    norms_kernel<<<grid_of(count, HALVES), THREADS, 0, stream>>>(*x, count, inverse);
    return cudaGetLastError();
}

cudaError_t gcu_search_widen(const gcu_search_view *queries, int64_t from, int64_t count,
                             double *wide, cudaStream_t stream)
{
    if (count * queries->cols == 0) return cudaSuccess;
    widen_kernel<<<grid_of(count * queries->cols, THREADS), THREADS, 0, stream>>>(*queries, from,
                                                                                  count, wide);
    return cudaGetLastError();
}

/* ---- keys ---- */

/* From the sum of squares or products to the key; again: the sum of boosted differences. */
template <typename Again>
__device__ __forceinline__ double key_of(const gcu_search_pairs &k, double sum, double query_factor,
                                         double base_factor, Again again)
{
    if (k.metric == GNOMON_IP) return -sum;
    if (k.metric == GNOMON_COSINE)
        return query_factor == 0 || base_factor == 0 ? 1.0 : __dmul_rn(sum, 0.5);
    if (sum >= SMALL_SUM || !k.wide) return sqrt(sum);
    /* not a number where coordinates are too large for it */
    const double boosted = __ddiv_rn(sqrt(again()), BOOST);
    return boosted == boosted ? boosted : sqrt(sum);
}

__device__ __forceinline__ bool is_own(const gcu_search_pairs &k, int64_t query, int64_t place)
{
    if (k.exclude < 0) return false;
    const int64_t m = k.map ? (int64_t)k.map[place * k.step] : place * k.step;
    return k.exclude + query == k.first + m;
}

/* ---- all pairs, by tiles ---- */

/* Small sums again by one thread, from global memory; rare. */
static __device__ __noinline__ double boosted_alone(const gcu_search_view &base, const double *q,
                                                    int64_t place)
{
    double chain[CHAINS];
    for (int l = 0; l < CHAINS; l++) {
        chain[l] = 0;
        for (int64_t j = l; j < base.cols; j += CHAINS) {
            const double x =
                element(base.data, base.dtype, place * base.row_stride + j * base.col_stride);
            chain[l] = add_difference(__dmul_rn(q[j], BOOST), __dmul_rn(x, BOOST), chain[l]);
        }
    }
    for (int half = CHAINS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            chain[l] = __dadd_rn(chain[l], chain[l + half]);
    return chain[0];
}

template <bool PRODUCTS>
__global__ void __launch_bounds__(THREADS)
    all_kernel(gcu_search_pairs k, const double *wide, int64_t query, int64_t queries,
               int64_t places, double *keys)
{
    __shared__ double qs[TILE][STEP + 1], xs[TILE][STEP + 1];
    const int64_t d = k.base.cols;
    const int64_t q0 = (int64_t)blockIdx.y * TILE, p0 = (int64_t)blockIdx.x * TILE;
    const int tq = threadIdx.x / TILE, tp = threadIdx.x % TILE;
    double chain[CHAINS];
#pragma unroll
    for (int l = 0; l < CHAINS; l++)
        chain[l] = 0;
    for (int64_t from = 0; from < d; from += STEP) {
        __syncthreads();
        for (int e = threadIdx.x; e < TILE * STEP; e += THREADS) {
            const int i = e / STEP, c = e % STEP;
            const int64_t j = from + c;
            /* adding -0 * 0, or 0 * 0 to what is not negative, changes nothing */
            double q = -0.0, x = 0.0;
            if (j < d && q0 + i < queries) q = wide[(q0 + i) * d + j];
            if (j < d && p0 + i < places) {
                x = element(k.base.data, k.base.dtype,
                            (p0 + i) * k.base.row_stride + j * k.base.col_stride);
                if (k.base.inverse) x = __dmul_rn(x, k.base.inverse[p0 + i]);
            }
            qs[i][c] = q;
            xs[i][c] = x;
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < STEP; c++) {
            const double q = qs[tq][c], x = xs[tp][c];
            chain[c % CHAINS] =
                PRODUCTS ? fma(q, x, chain[c % CHAINS]) : add_difference(q, x, chain[c % CHAINS]);
        }
    }
    if (q0 + tq >= queries || p0 + tp >= places) return;
#pragma unroll
    for (int half = CHAINS / 2; half > 0; half /= 2)
#pragma unroll
        for (int l = 0; l < half; l++)
            chain[l] = __dadd_rn(chain[l], chain[l + half]);
    const int64_t place = p0 + tp, i = query + q0 + tq;
    const double key = key_of(k, chain[0], k.queries.inverse ? k.queries.inverse[i] : 1,
                              k.base.inverse ? k.base.inverse[place] : 1,
                              [&] { return boosted_alone(k.base, wide + (q0 + tq) * d, place); });
    keys[(q0 + tq) * places + place] = is_own(k, i, place) ? nan("") : key;
}

/* Bits that differ. */
__global__ void __launch_bounds__(THREADS)
    bits_kernel(gcu_search_pairs k, int64_t query, int64_t queries, int64_t places, double *keys)
{
    __shared__ uint32_t qs[TILE][STEP + 1], xs[TILE][STEP + 1];
    const int64_t d = k.base.cols;
    const int64_t q0 = (int64_t)blockIdx.y * TILE, p0 = (int64_t)blockIdx.x * TILE;
    const int tq = threadIdx.x / TILE, tp = threadIdx.x % TILE;
    int64_t count = 0;
    for (int64_t from = 0; from < d; from += 4 * STEP) {
        __syncthreads();
        for (int e = threadIdx.x; e < TILE * STEP; e += THREADS) {
            const int i = e / STEP, c = e % STEP;
            const uint8_t *q = static_cast<const uint8_t *>(k.queries.data);
            const uint8_t *x = static_cast<const uint8_t *>(k.base.data);
            uint32_t qw = 0, xw = 0;
            for (int b = 0; b < 4; b++) {
                const int64_t j = from + 4 * c + b;
                if (j < d && q0 + i < queries)
                    qw |= (uint32_t)
                              q[(query + q0 + i) * k.queries.row_stride + j * k.queries.col_stride]
                          << (8 * b);
                if (j < d && p0 + i < places)
                    xw |= (uint32_t)x[(p0 + i) * k.base.row_stride + j * k.base.col_stride]
                          << (8 * b);
            }
            qs[i][c] = qw;
            xs[i][c] = xw;
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < STEP; c++)
            count += __popc(qs[tq][c] ^ xs[tp][c]);
    }
    if (q0 + tq >= queries || p0 + tp >= places) return;
    const bool own = is_own(k, query + q0 + tq, p0 + tp);
    keys[(q0 + tq) * places + p0 + tp] = own ? nan("") : (double)count;
}

cudaError_t gcu_search_all(const gcu_search_pairs *k, const double *wide, int64_t query,
                           int64_t queries, int64_t places, double *keys, cudaStream_t stream)
{
    const int64_t most = 65535 * (int64_t)TILE;
    for (int64_t from = 0; from < queries && places > 0; from += most) {
        const int64_t some = queries - from < most ? queries - from : most;
        const dim3 grid((unsigned)((places + TILE - 1) / TILE),
                        (unsigned)((some + TILE - 1) / TILE));
        const double *w = wide + from * k->queries.cols;
        double *to = keys + from * places;
        if (k->metric == GNOMON_IP)
            all_kernel<true><<<grid, THREADS, 0, stream>>>(*k, w, query + from, some, places, to);
        else
            all_kernel<false><<<grid, THREADS, 0, stream>>>(*k, w, query + from, some, places, to);
    }
    return cudaGetLastError();
}

cudaError_t gcu_search_bits(const gcu_search_pairs *k, int64_t query, int64_t queries,
                            int64_t places, double *keys, cudaStream_t stream)
{
    const int64_t most = 65535 * (int64_t)TILE;
    for (int64_t from = 0; from < queries && places > 0; from += most) {
        const int64_t some = queries - from < most ? queries - from : most;
        const dim3 grid((unsigned)((places + TILE - 1) / TILE),
                        (unsigned)((some + TILE - 1) / TILE));
        bits_kernel<<<grid, THREADS, 0, stream>>>(*k, query + from, some, places,
                                                  keys + from * places);
    }
    return cudaGetLastError();
}

/* ---- few queries: the base is read once for NQ of them ---- */

enum { FEW_BYTES = 40960 }; /* of queries in shared memory at most */

__device__ __forceinline__ void keep(const gcu_search_found &found, unsigned *counts, int64_t query,
                                     int64_t place, double key)
{
    const unsigned long long at = atomicAdd(found.count, 1ull);
    if (at >= (unsigned long long)found.room) return;
    found.pairs[at] = (uint64_t)query << 32 | (uint64_t)place;
    found.keys[at] = key;
    atomicAdd(&counts[query], 1u);
}

template <bool SINGLE, bool PRODUCTS, int NQ>
__global__ void __launch_bounds__(THREADS)
    few_kernel(gcu_search_pairs k, const double *wide, int64_t query, int64_t places, bool hold,
               const double *limits, gcu_search_found found, unsigned *counts,
               unsigned long long *fault)
{
    extern __shared__ double held[];
    const int64_t d = k.base.cols;
    const double *q = wide;
    if (hold) {
        for (int64_t e = threadIdx.x; e < NQ * d; e += THREADS)
            held[e] = wide[e];
        __syncthreads();
        q = held;
    }
    const int lane = threadIdx.x % CHAINS;
    const unsigned mask = half_mask();
    const int64_t jump = (int64_t)gridDim.x * HALVES;
    for (int64_t p = (int64_t)blockIdx.x * HALVES + threadIdx.x / CHAINS; p < places; p += jump) {
        const int64_t from = p * k.base.row_stride;
        const double factor = k.base.inverse ? k.base.inverse[p] : 1;
        double chain[NQ];
#pragma unroll
        for (int n = 0; n < NQ; n++)
            chain[n] = 0;
#pragma unroll(SINGLE ? 8 : 1)
        for (int64_t j = lane; j < d; j += CHAINS) {
            double x = coordinate<SINGLE>(k.base.data, k.base.dtype, from + j * k.base.col_stride);
            if (k.base.inverse) x = __dmul_rn(x, factor);
#pragma unroll
            for (int n = 0; n < NQ; n++)
                chain[n] = PRODUCTS ? fma(q[n * d + j], x, chain[n])
                                    : add_difference(q[n * d + j], x, chain[n]);
        }
#pragma unroll
        for (int n = 0; n < NQ; n++) {
            const double sum = join_chains(chain[n], mask);
            const double key =
                key_of(k, sum, k.queries.inverse ? k.queries.inverse[query + n] : 1, factor, [&] {
                    double again = 0;
                    for (int64_t j = lane; j < d; j += CHAINS) {
                        const double x =
                            element(k.base.data, k.base.dtype, from + j * k.base.col_stride);
                        again = add_difference(__dmul_rn(q[n * d + j], BOOST), __dmul_rn(x, BOOST),
                                               again);
                    }
                    return join_chains(again, mask);
                });
            if (lane == 0 && !(fabs(sum) < INFINITY)) *fault = 0;
            if (lane == 0 && key <= limits[query + n] && !is_own(k, query + n, p))
                keep(found, counts, query + n, p, key);
        }
    }
}

struct few_call {
    const gcu_search_pairs *k;
    const double *wide, *limits;
    int64_t query, places;
    gcu_search_found found;
    unsigned *counts;
    unsigned long long *fault;
    unsigned grid;
    cudaStream_t stream;
};

template <bool SINGLE, bool PRODUCTS, int NQ> static void launch_few(const few_call *c, int64_t q)
{
    const int64_t bytes = NQ * c->k->base.cols * (int64_t)sizeof(double);
    const bool hold = bytes <= FEW_BYTES;
    few_kernel<SINGLE, PRODUCTS, NQ><<<c->grid, THREADS, hold ? (size_t)bytes : 0, c->stream>>>(
        *c->k, c->wide + q * c->k->base.cols, c->query + q, c->places, hold, c->limits, c->found,
        c->counts, c->fault);
}

template <bool SINGLE, bool PRODUCTS> static void all_few(const few_call *c, int64_t queries)
{
    for (int64_t q = 0; q < queries;) {
        if (queries - q >= 4) {
            launch_few<SINGLE, PRODUCTS, 4>(c, q);
            q += 4;
        } else {
            launch_few<SINGLE, PRODUCTS, 1>(c, q);
            q++;
        }
    }
}

cudaError_t gcu_search_few(const gcu_search_pairs *k, const double *wide, int64_t query,
                           int64_t queries, int64_t places, const double *limits,
                           gcu_search_found found, unsigned *counts, unsigned long long *fault,
                           int sms, cudaStream_t stream)
{
    if (places == 0) return cudaSuccess;
    unsigned grid = grid_of(places, HALVES);
    if (grid > (unsigned)sms * 8) grid = (unsigned)sms * 8;
    const few_call c = {k, wide, limits, query, places, found, counts, fault, grid, stream};
    const bool single = k->base.dtype == GNOMON_F32, products = k->metric == GNOMON_IP;
    const auto launch = single ? (products ? all_few<true, true> : all_few<true, false>)
                               : (products ? all_few<false, true> : all_few<false, false>);
    launch(&c, queries);
    return cudaGetLastError();
}

/* ---- pairs that passed the sieve ---- */

template <bool SINGLE, bool PRODUCTS>
__global__ void __launch_bounds__(THREADS)
    settle_kernel(gcu_search_pairs k, const double *limits, gcu_search_found found, int64_t pairs,
                  unsigned *counts)
{
    const gcu_search_view &qs = k.queries, &xs = k.base;
    const int lane = threadIdx.x % CHAINS;
    const unsigned mask = half_mask();
    const int64_t d = xs.cols, jump = (int64_t)gridDim.x * HALVES;
    for (int64_t e = (int64_t)blockIdx.x * HALVES + threadIdx.x / CHAINS; e < pairs; e += jump) {
        const uint64_t pair = found.pairs[e];
        const int64_t query = (int64_t)(pair >> 32), place = (int64_t)(pair & 0xffffffffu);
        const int64_t q0 = query * qs.row_stride, x0 = place * xs.row_stride;
        const double qf = qs.inverse ? qs.inverse[query] : 1;
        const double xf = xs.inverse ? xs.inverse[place] : 1;
        double chain = 0;
#pragma unroll(SINGLE ? 8 : 1)
        for (int64_t j = lane; j < d; j += CHAINS) {
            double q = coordinate<SINGLE>(qs.data, qs.dtype, q0 + j * qs.col_stride);
            double x = coordinate<SINGLE>(xs.data, xs.dtype, x0 + j * xs.col_stride);
            if (qs.inverse) {
                q = __dmul_rn(q, qf);
                x = __dmul_rn(x, xf);
            }
            chain = PRODUCTS ? fma(q, x, chain) : add_difference(q, x, chain);
        }
        const double key = key_of(k, join_chains(chain, mask), qf, xf, [&] {
            double again = 0;
            for (int64_t j = lane; j < d; j += CHAINS) {
                const double q = element(qs.data, qs.dtype, q0 + j * qs.col_stride);
                const double x = element(xs.data, xs.dtype, x0 + j * xs.col_stride);
                again = add_difference(__dmul_rn(q, BOOST), __dmul_rn(x, BOOST), again);
            }
            return join_chains(again, mask);
        });
        if (lane > 0) continue;
        const bool stays = key <= limits[query] && !is_own(k, query, place);
        found.keys[e] = stays ? key : nan("");
        if (stays) atomicAdd(&counts[query], 1u);
    }
}

cudaError_t gcu_search_settle(const gcu_search_pairs *k, const double *limits,
                              gcu_search_found found, int64_t pairs, unsigned *counts,
                              cudaStream_t stream)
{
    if (pairs == 0) return cudaSuccess;
    const bool single = k->base.dtype == GNOMON_F32 && k->queries.dtype == GNOMON_F32;
    const bool products = k->metric == GNOMON_IP;
    const auto kernel = single
                            ? (products ? settle_kernel<true, true> : settle_kernel<true, false>)
                            : (products ? settle_kernel<false, true> : settle_kernel<false, false>);
    kernel<<<grid_of(pairs, HALVES), THREADS, 0, stream>>>(*k, limits, found, pairs, counts);
    return cudaGetLastError();
}
