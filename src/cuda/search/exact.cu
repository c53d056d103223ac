/* Keys in fp64 with the bits of src/search/exact.c: sixteen chains of fused multiply-adds,
 * coordinate j in chain j mod 16, whose ends are added by halves. Half a warp takes a pair, a lane
 * a chain; or a thread does, with all chains in registers. Products are never fused with what
 * follows: hence the intrinsics. */
#include "cuda/search/search.h"

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

/* ---- faults, norms, queries in fp64 ---- */

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
    to_f64_kernel(gcu_search_view x, int64_t from, int64_t count, double *f64)
{
    const int64_t all = count * x.cols, jump = (int64_t)gridDim.x * THREADS;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < all; e += jump) {
        const int64_t i = from + e / x.cols, j = e % x.cols;
        double v = element(x.data, x.dtype, i * x.row_stride + j * x.col_stride);
        if (x.inverse) v = __dmul_rn(v, x.inverse[i]);
        f64[e] = v;
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

cudaError_t gcu_search_to_f64(const gcu_search_view *queries, int64_t from, int64_t count,
                              double *f64, cudaStream_t stream)
{
    if (count * queries->cols == 0) return cudaSuccess;
    to_f64_kernel<<<grid_of(count * queries->cols, THREADS), THREADS, 0, stream>>>(*queries, from,
                                                                                   count, f64);
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
    if (sum >= SMALL_SUM || !k.f64) return sqrt(sum);
    /* not a number where coordinates are too large for it */
    const double boosted = __ddiv_rn(sqrt(again()), BOOST);
    return boosted == boosted ? boosted : sqrt(sum);
}

__device__ __forceinline__ bool is_own(const gcu_search_pairs &k, int64_t query, int64_t place)
{
    if (k.exclude < 0) return false;
    return k.exclude + query == gcu_search_id(k, place);
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

/* All of a sum's chains, in registers. */
template <int HALF> __device__ __forceinline__ double join_own_chains(double (&chain)[CHAINS])
{
#pragma unroll
    for (int l = 0; l < HALF; l++)
        chain[l] = __dadd_rn(chain[l], chain[l + HALF]);
    if constexpr (HALF > 1) return join_own_chains<HALF / 2>(chain);
    return chain[0];
}

/* A thread takes two queries and two places, which share what they load. */
template <bool SINGLE, bool PRODUCTS>
__global__ void __launch_bounds__(THREADS, 1)
    all_kernel(gcu_search_pairs k, const double *f64, int64_t query, int64_t queries,
               int64_t places, double *keys)
{
    __shared__ double qs[2 * TILE][STEP + 1], xs[2 * TILE][STEP + 1];
    const int64_t d = k.base.cols;
    const int64_t q0 = (int64_t)blockIdx.y * 2 * TILE, p0 = (int64_t)blockIdx.x * 2 * TILE;
    const int tq = threadIdx.x / TILE, tp = threadIdx.x % TILE;
    double chain[4][CHAINS] = {};
    /* what comes next is on its way while the sums are taken */
    constexpr int ROUNDS = 2 * TILE * STEP / THREADS;
    const int row = threadIdx.x / STEP, column = threadIdx.x % STEP; /* of the first round */
    double next_q[ROUNDS], next_x[ROUNDS], factor[ROUNDS];
#pragma unroll
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t place = p0 + row + round * (THREADS / STEP);
        factor[round] = k.base.inverse && place < places ? k.base.inverse[place] : 1;
    }
    auto load = [&](int64_t from) {
        const int64_t j = from + column;
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int i = row + round * (THREADS / STEP);
            /* adding -0 * 0, or 0 * 0 to what is not negative, changes nothing */
            next_q[round] = -0.0;
            next_x[round] = 0.0;
            if (j < d && q0 + i < queries) next_q[round] = f64[(q0 + i) * d + j];
            if (j < d && p0 + i < places)
                next_x[round] =
                    coordinate<SINGLE>(k.base.data, k.base.dtype,
                                       (p0 + i) * k.base.row_stride + j * k.base.col_stride);
        }
    };
    load(0);
    for (int64_t from = 0; from < d; from += STEP) {
        __syncthreads();
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int i = row + round * (THREADS / STEP);
            qs[i][column] = next_q[round];
            xs[i][column] =
                k.base.inverse ? __dmul_rn(next_x[round], factor[round]) : next_x[round];
        }
        if (from + STEP < d) load(from + STEP);
        __syncthreads();
#pragma unroll
        for (int c = 0; c < STEP; c++) {
#pragma unroll
            for (int pair = 0; pair < 4; pair++) {
                const double q = qs[tq + pair / 2 * TILE][c], x = xs[tp + pair % 2 * TILE][c];
                const double before = chain[pair][c % CHAINS];
                chain[pair][c % CHAINS] =
                    PRODUCTS ? fma(q, x, before) : add_difference(q, x, before);
            }
        }
    }
    double sums[4];
#pragma unroll
    for (int pair = 0; pair < 4; pair++)
        sums[pair] = join_own_chains<CHAINS / 2>(chain[pair]);
        /* not unrolled: with calls in it the chains would lie in memory all along */
#pragma unroll 1
    for (int pair = 0; pair < 4; pair++) {
        const int64_t line = q0 + tq + pair / 2 * TILE, place = p0 + tp + pair % 2 * TILE;
        if (line >= queries || place >= places) continue;
        const int64_t i = query + line;
        const double key = key_of(k, sums[pair], k.queries.inverse ? k.queries.inverse[i] : 1,
                                  k.base.inverse ? k.base.inverse[place] : 1,
                                  [&] { return boosted_alone(k.base, f64 + line * d, place); });
        keys[line * places + place] = is_own(k, i, place) ? nan("") : key;
    }
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

cudaError_t gcu_search_all(const gcu_search_pairs *k, const double *f64, int64_t query,
                           int64_t queries, int64_t places, double *keys, cudaStream_t stream)
{
    const int64_t side = 2 * TILE, most = 65535 * side;
    for (int64_t from = 0; from < queries && places > 0; from += most) {
        const int64_t some = queries - from < most ? queries - from : most;
        const dim3 grid((unsigned)((places + side - 1) / side),
                        (unsigned)((some + side - 1) / side));
        const double *w = f64 + from * k->queries.cols;
        double *to = keys + from * places;
        const bool single = k->base.dtype == GNOMON_F32, products = k->metric == GNOMON_IP;
        const auto kernel = single
                                ? (products ? all_kernel<true, true> : all_kernel<true, false>)
                                : (products ? all_kernel<false, true> : all_kernel<false, false>);
        kernel<<<grid, THREADS, 0, stream>>>(*k, w, query + from, some, places, to);
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

/* ---- few queries: the base is read once for up to NQ of them ---- */

enum { FEW_BYTES = 40960 }; /* of queries in shared memory at most */

/* What the kernels of one call share. */
struct few_call {
    gcu_search_pairs k;
    const double *f64;
    gcu_search_limits limits;
    int64_t query, queries, places;
    gcu_search_found found;
    unsigned *counts;
    unsigned long long *fault;
};

/* The sums of NQ queries' chains, in a few lanes each: those of lane l are query_of(l)'s. The same
 * tree for each as join_chains': two queries go through one exchange, a half of the lanes each. */
template <int NQ> __device__ __forceinline__ double join_many(double *chain, unsigned mask)
{
    const int lane = threadIdx.x % CHAINS;
    int half = CHAINS / 2;
#pragma unroll
    for (int some = NQ / 2; some > 0; some /= 2, half /= 2) {
        const bool upper = (lane & half) != 0;
#pragma unroll
        for (int n = 0; n < some; n++) {
            const double other = __shfl_xor_sync(mask, upper ? chain[n] : chain[n + some], half);
            chain[n] = __dadd_rn(upper ? chain[n + some] : chain[n], other);
        }
    }
#pragma unroll
    for (; half > 0; half /= 2)
        chain[0] = __dadd_rn(chain[0], __shfl_xor_sync(mask, chain[0], half));
    return chain[0];
}

/* The lanes are cut in NQ runs. */
template <int NQ> __device__ __forceinline__ int query_of(int lane)
{
    return lane / (CHAINS / NQ);
}

__device__ __forceinline__ void keep(const few_call &c, int64_t query, int64_t place, double key)
{
    const unsigned long long at = atomicAdd(c.found.count, 1ull);
    if (at >= (unsigned long long)c.found.room) return;
    c.found.pairs[at] = (uint64_t)query << 32 | (uint64_t)place;
    c.found.keys[at] = key;
    const unsigned rank = atomicAdd(&c.counts[query], 1u);
    if (c.found.ranks) c.found.ranks[at] = rank;
}

/* MODE: 0 differences, 1 products, 2 either. */
template <bool SINGLE, int MODE, int NQ>
__global__ void __launch_bounds__(THREADS, NQ == 8 ? 2 : 4) few_kernel(few_call c, bool hold)
{
    extern __shared__ double held[];
    constexpr int ROWS = SINGLE && NQ > 1 ? 2 : 1; /* that share what is loaded of the queries */
    const gcu_search_pairs &k = c.k;
    const bool products = MODE == 2 ? k.metric == GNOMON_IP : MODE == 1;
    const int64_t d = k.base.cols;
    const int lane = threadIdx.x % CHAINS, mine = query_of<NQ>(lane);
    const unsigned mask = half_mask();
    const double *q = c.f64;
    int64_t line[NQ]; /* queries beyond the last are that one again, and keep nothing */
#pragma unroll
    for (int n = 0; n < NQ; n++)
        line[n] = (n < c.queries ? n : c.queries - 1) * d;
    if (hold) {
        for (int64_t e = threadIdx.x; e < c.queries * d; e += THREADS)
            held[e] = c.f64[e];
        __syncthreads();
        q = held;
    }
    const int64_t query = c.query + (mine < c.queries ? mine : 0);
    const double query_factor = k.queries.inverse ? k.queries.inverse[query] : 1;
    const double limit = c.limits.keys[query];
    /* sums above it have keys above the limit, and need no root */
    const double enough = k.metric == GNOMON_L2 ? limit * limit * (1 + 0x1p-40) : INFINITY;
    const bool keeps = mine < c.queries && lane % (CHAINS / NQ) == 0;
    const int64_t jump = (int64_t)gridDim.x * HALVES * ROWS;
    for (int64_t p = ((int64_t)blockIdx.x * HALVES + threadIdx.x / CHAINS) * ROWS; p < c.places;
         p += jump) {
        double chain[ROWS][NQ], factor[ROWS];
        int64_t from[ROWS]; /* beyond the last row that one again */
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int64_t row = p + r < c.places ? p + r : p;
            from[r] = row * k.base.row_stride;
            factor[r] = k.base.inverse ? k.base.inverse[row] : 1;
#pragma unroll
            for (int n = 0; n < NQ; n++)
                chain[r][n] = 0;
        }
#pragma unroll(SINGLE ? 8 : 1)
        for (int64_t j = lane; j < d; j += CHAINS) {
            double x[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                x[r] =
                    coordinate<SINGLE>(k.base.data, k.base.dtype, from[r] + j * k.base.col_stride);
                if (k.base.inverse) x[r] = __dmul_rn(x[r], factor[r]);
            }
#pragma unroll
            for (int n = 0; n < NQ; n++) {
                const double y = q[line[n] + j];
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    chain[r][n] =
                        products ? fma(y, x[r], chain[r][n]) : add_difference(y, x[r], chain[r][n]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const double sum = join_many<NQ>(chain[r], mask);
            if (!(fabs(sum) < INFINITY)) *c.fault = 0;
            double boosted = 0;
            const bool small = k.f64 && k.metric == GNOMON_L2 && sum < SMALL_SUM;
            if (__any_sync(mask, small)) {
#pragma unroll 1
                for (int n = 0; n < NQ && n < c.queries; n++) {
                    double again = 0;
#pragma unroll 1
                    for (int64_t j = lane; j < d; j += CHAINS) {
                        const double x =
                            element(k.base.data, k.base.dtype, from[r] + j * k.base.col_stride);
                        again = add_difference(__dmul_rn(q[n * d + j], BOOST), __dmul_rn(x, BOOST),
                                               again);
                    }
                    again = join_chains(again, mask);
                    if (n == mine) boosted = again;
                }
            }
            if (!keeps || p + r >= c.places || (sum > enough && !small)) continue;
            const double key = key_of(k, sum, query_factor, factor[r], [&] { return boosted; });
            if (gcu_search_is_within(k, c.limits, query, p + r, key) && !is_own(k, query, p + r))
                keep(c, query, p + r, key);
        }
    }
}

template <bool SINGLE, int MODE, int NQ>
static void launch_few(const few_call *c, unsigned grid, cudaStream_t stream)
{
    const int64_t bytes = c->queries * c->k.base.cols * (int64_t)sizeof(double);
    const bool hold = bytes <= FEW_BYTES;
    few_kernel<SINGLE, MODE, NQ><<<grid, THREADS, hold ? (size_t)bytes : 0, stream>>>(*c, hold);
}

template <bool SINGLE, int MODE>
static void launch_few(const few_call *c, unsigned grid, cudaStream_t stream)
{
    if (c->queries == 1)
        launch_few<SINGLE, MODE, 1>(c, grid, stream);
    else if (SINGLE && c->queries <= 4)
        launch_few<SINGLE, MODE, SINGLE ? 4 : 8>(c, grid, stream);
    else
        launch_few<SINGLE, MODE, 8>(c, grid, stream);
}

cudaError_t gcu_search_few(const gcu_search_pairs *k, const double *f64, int64_t query,
                           int64_t queries, int64_t places, gcu_search_limits limits,
                           gcu_search_found found, unsigned *counts, unsigned long long *fault,
                           int sms, cudaStream_t stream)
{
    unsigned grid = grid_of(places, HALVES);
    if (grid > (unsigned)sms * 8) grid = (unsigned)sms * 8;
    for (int64_t q = 0; q < queries && places > 0; q += 8) {
        const few_call c = {*k,
                            f64 + q * k->base.cols,
                            limits,
                            query + q,
                            queries - q < 8 ? queries - q : 8,
                            places,
                            found,
                            counts,
                            fault};
        if (k->base.dtype != GNOMON_F32)
            launch_few<false, 2>(&c, grid, stream);
        else if (k->metric == GNOMON_IP)
            launch_few<true, 1>(&c, grid, stream);
        else
            launch_few<true, 0>(&c, grid, stream);
    }
    return cudaGetLastError();
}

/* ---- candidates of the filter ---- */

/* Keeps or drops a candidate. */
__device__ __forceinline__ void keep_or_drop(const gcu_search_pairs &k,
                                             const gcu_search_limits &limits,
                                             const gcu_search_found &found, int64_t e,
                                             int64_t query, int64_t place, double key,
                                             unsigned *counts)
{
    const bool stays =
        gcu_search_is_within(k, limits, query, place, key) && !is_own(k, query, place);
    found.keys[e] = stays ? key : nan("");
    if (!stays) return;
    const unsigned rank = atomicAdd(&counts[query], 1u);
    if (found.ranks) found.ranks[e] = rank;
}

/* Of F32 alone: half a warp takes as many pairs as it has lanes, and then a lane each of them: so
 * roots, limits and counts cost one instruction for 32 pairs, not for two. */
template <bool PRODUCTS>
__global__ void __launch_bounds__(THREADS, 3)
    verify_many_kernel(gcu_search_pairs k, gcu_search_limits limits, gcu_search_found found,
                       int64_t pairs, unsigned *counts)
{
    const gcu_search_view &qs = k.queries, &xs = k.base;
    const int lane = threadIdx.x % CHAINS;
    const unsigned mask = half_mask();
    const int64_t d = xs.cols, jump = (int64_t)gridDim.x * THREADS;
    const float *const q = static_cast<const float *>(qs.data) + lane * qs.col_stride;
    const float *const x = static_cast<const float *>(xs.data) + lane * xs.col_stride;
    const int64_t own = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    for (int64_t e = own; e - lane < pairs; e += jump) {
        const uint64_t pair = found.pairs[e < pairs ? e : pairs - 1];
        const int64_t query = (int64_t)(pair >> 32), place = (int64_t)(pair & 0xffffffffu);
        const double qf = qs.inverse ? qs.inverse[query] : 1;
        const double xf = xs.inverse ? xs.inverse[place] : 1;
        double chain[CHAINS];
#pragma unroll
        for (int n = 0; n < CHAINS; n++) {
            const float *const a =
                q + (int64_t)__shfl_sync(mask, (uint32_t)query, n, CHAINS) * qs.row_stride;
            const float *const b =
                x + (int64_t)__shfl_sync(mask, (uint32_t)place, n, CHAINS) * xs.row_stride;
            chain[n] = 0;
            if (qs.inverse) {
                const double af = __shfl_sync(mask, qf, n, CHAINS);
                const double bf = __shfl_sync(mask, xf, n, CHAINS);
#pragma unroll 4
                for (int64_t j = 0; j < d - lane; j += CHAINS) {
                    const double y = __dmul_rn((double)a[j * qs.col_stride], af);
                    const double z = __dmul_rn((double)b[j * xs.col_stride], bf);
                    chain[n] = PRODUCTS ? fma(y, z, chain[n]) : add_difference(y, z, chain[n]);
                }
            } else {
#pragma unroll 8
                for (int64_t j = 0; j < d - lane; j += CHAINS) {
                    const double y = (double)a[j * qs.col_stride];
                    const double z = (double)b[j * xs.col_stride];
                    chain[n] = PRODUCTS ? fma(y, z, chain[n]) : add_difference(y, z, chain[n]);
                }
            }
        }
        const double sum = join_many<CHAINS>(chain, mask);
        if (e < pairs)
            keep_or_drop(k, limits, found, e, query, place,
                         key_of(k, sum, qf, xf, [] { return nan(""); }), counts);
    }
}

/* Of other types. */
__global__ void __launch_bounds__(THREADS, 4)
    verify_kernel(gcu_search_pairs k, gcu_search_limits limits, gcu_search_found found,
                  int64_t pairs, unsigned *counts)
{
    const gcu_search_view &qs = k.queries, &xs = k.base;
    const bool products = k.metric == GNOMON_IP;
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
        for (int64_t j = lane; j < d; j += CHAINS) {
            double q = element(qs.data, qs.dtype, q0 + j * qs.col_stride);
            double x = element(xs.data, xs.dtype, x0 + j * xs.col_stride);
            if (qs.inverse) {
                q = __dmul_rn(q, qf);
                x = __dmul_rn(x, xf);
            }
            chain = products ? fma(q, x, chain) : add_difference(q, x, chain);
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
        keep_or_drop(k, limits, found, e, query, place, key, counts);
    }
}

cudaError_t gcu_search_verify(const gcu_search_pairs *k, gcu_search_limits limits,
                              gcu_search_found found, int64_t pairs, unsigned *counts,
                              cudaStream_t stream)
{
    if (pairs == 0) return cudaSuccess;
    if (k->base.dtype != GNOMON_F32 || k->queries.dtype != GNOMON_F32)
        verify_kernel<<<grid_of(pairs, HALVES), THREADS, 0, stream>>>(*k, limits, found, pairs,
                                                                      counts);
    else if (k->metric == GNOMON_IP)
        verify_many_kernel<true>
            <<<grid_of(pairs, THREADS), THREADS, 0, stream>>>(*k, limits, found, pairs, counts);
    else
        verify_many_kernel<false>
            <<<grid_of(pairs, THREADS), THREADS, 0, stream>>>(*k, limits, found, pairs, counts);
    return cudaGetLastError();
}
