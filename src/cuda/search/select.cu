/* The k nearest of what was found, query by query: a block of threads finds the k-th key by its
 * digits, from the highest down, and among equal keys the k-th id; then takes what is not beyond.
 * The set does not depend on the order in which points come. */
#include "cuda/search/search.h"

enum { THREADS = 256, CHUNK = 2048 /* points that are sorted in shared memory */ };

/* Keys as integers of the same order; -0 counts as 0, and NaN comes last. */
__device__ __forceinline__ unsigned long long rank_of(double key)
{
    if (key != key) return ~0ull;
    const unsigned long long bits = (unsigned long long)__double_as_longlong(__dadd_rn(key, 0.0));
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ __forceinline__ double key_of_rank(unsigned long long rank)
{
    return __longlong_as_double((long long)(rank >> 63 ? rank & ~(1ull << 63) : ~rank));
}

/* ---- selection ---- */

/* The old list and the new points of a query, counted as one. */
struct points {
    const gnomon_ranked *old;
    const double *keys;
    const uint32_t *places;
    int64_t from, olds, all;
};

__device__ __forceinline__ double key_at(const points &v, int64_t e)
{
    return e < v.olds ? v.old[e].key : v.keys[v.from + e - v.olds];
}

__device__ __forceinline__ int64_t id_at(const gcu_search_pairs &p, const points &v, int64_t e)
{
    if (e < v.olds) return v.old[e].id;
    return gcu_search_id(p, v.places ? (int64_t)v.places[v.from + e - v.olds] : e - v.olds);
}

/* The rank-th smallest (from 1) of value(e), e < all, among those where belongs(e): finds digits
 * until those at 'prefix' under 'mask' are all taken; what is left of the rank otherwise. */
struct digits {
    unsigned long long prefix, mask;
    int64_t rank;
};

template <int SIZE, typename Value, typename Belongs>
__device__ digits find_digits(int64_t all, int64_t rank, int shift, unsigned long long prefix,
                              Value value, Belongs belongs)
{
    __shared__ unsigned counts[256];
    __shared__ int64_t found_rank;
    __shared__ int found_digit, found_all;
    digits d = {prefix, shift >= 56 ? 0 : ~0ull << (shift + 8), rank};
    for (;; shift -= 8) {
        for (int i = threadIdx.x; i < 256; i += SIZE)
            counts[i] = 0;
        __syncthreads();
        for (int64_t e = threadIdx.x; e < all; e += SIZE) {
            if (!belongs(e)) continue;
            const unsigned long long v = value(e);
            if ((v & d.mask) == d.prefix) atomicAdd(&counts[v >> shift & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32) { /* a lane sums eight digits */
            int64_t own = 0;
            for (int i = 0; i < 8; i++)
                own += counts[threadIdx.x * 8 + i];
            int64_t before = own;
            for (int step = 1; step < 32; step *= 2) {
                const int64_t other = __shfl_up_sync(~0u, before, step);
                if ((int)threadIdx.x >= step) before += other;
            }
            before -= own;
            if (before < d.rank && before + own >= d.rank) {
                int digit = threadIdx.x * 8;
                while (before + counts[digit] < d.rank)
                    before += counts[digit++];
                found_digit = digit;
                found_rank = d.rank - before;
                found_all = counts[digit] == d.rank - before;
            }
        }
        __syncthreads();
        d.prefix |= (unsigned long long)found_digit << shift;
        d.mask |= 255ull << shift;
        d.rank = found_rank;
        const bool done = found_all || shift == 0;
        if (found_all) d.rank = 0;
        __syncthreads();
        if (done) return d;
    }
}

__device__ __forceinline__ unsigned long long id_value(int64_t id)
{
    return (unsigned long long)id;
}

template <int SIZE>
__global__ void __launch_bounds__(SIZE)
    select_kernel(gcu_search_pairs p, gcu_search_lists from, gcu_search_lists to,
                  gcu_search_news news, gcu_search_limits limits, double *radii)
{
    __shared__ unsigned long long least, most, largest, largest_id;
    __shared__ unsigned long long valid, selected;
    const int64_t q = news.query + blockIdx.x, k = to.k;
    points v;
    v.old = from.points ? from.points + q * k : nullptr;
    v.olds = from.points ? from.counts[q] : 0;
    v.keys = news.keys;
    v.places = news.places;
    v.from = news.places ? (int64_t)news.offsets[q] : (int64_t)blockIdx.x * news.each;
    v.all = v.olds + (news.places ? (int64_t)(news.offsets[q + 1] - news.offsets[q]) : news.each);
    if (threadIdx.x == 0) {
        least = ~0ull;
        most = largest = largest_id = valid = selected = 0;
    }
    __syncthreads();
    unsigned long long low = ~0ull, high = 0, count = 0;
    for (int64_t e = threadIdx.x; e < v.all; e += SIZE) {
        const unsigned long long rank = rank_of(key_at(v, e));
        if (rank == ~0ull) continue;
        low = min(low, rank);
        high = max(high, rank);
        count++;
    }
    for (int half = 16; half > 0; half /= 2) {
        low = min(low, __shfl_xor_sync(~0u, low, half));
        high = max(high, __shfl_xor_sync(~0u, high, half));
        count += __shfl_xor_sync(~0u, count, half);
    }
    if (threadIdx.x % 32 == 0 && count > 0) {
        atomicMin(&least, low);
        atomicMax(&most, high);
        atomicAdd(&valid, count);
    }
    __syncthreads();
    low = least;
    high = most;
    count = valid;
    /* beyond 'prefix' under 'mask' nothing is taken, at it ids up to last, under its mask */
    digits keys = {~0ull, ~0ull, 0}, last = {0, 0, 0};
    if ((int64_t)count > k) {
        int shift = 0;
        if (low != high) shift = (63 - __clzll((long long)(low ^ high))) / 8 * 8;
        const unsigned long long above = shift >= 56 ? 0 : ~0ull << (shift + 8);
        keys = find_digits<SIZE>(
            v.all, k, shift, low & above, [&](int64_t e) { return rank_of(key_at(v, e)); },
            [](int64_t) { return true; });
        if (keys.rank > 0)
            last = find_digits<SIZE>(
                v.all, keys.rank, 56, 0, [&](int64_t e) { return id_value(id_at(p, v, e)); },
                [&](int64_t e) { return rank_of(key_at(v, e)) == keys.prefix; });
    }
    unsigned long long high_id = 0; /* of ids of what has this rank, the largest */
    high = 0;
    for (int64_t e = threadIdx.x; e < v.all; e += SIZE) {
        const double key = key_at(v, e);
        const unsigned long long rank = rank_of(key);
        if (rank == ~0ull || (rank & keys.mask) > keys.prefix) continue;
        const int64_t id = id_at(p, v, e);
        if (last.mask != 0 && rank == keys.prefix && (id_value(id) & last.mask) > last.prefix)
            continue;
        const unsigned long long at = atomicAdd(&selected, 1ull);
        to.points[q * k + (int64_t)at] = {key, id};
        if (rank < high) continue;
        high_id = rank > high ? id_value(id) : max(high_id, id_value(id));
        high = rank;
    }
    const unsigned long long own = high;
    for (int half = 16; half > 0; half /= 2)
        high = max(high, __shfl_xor_sync(~0u, high, half));
    if (threadIdx.x % 32 == 0) atomicMax(&largest, high);
    __syncthreads();
    if (own == largest) atomicMax(&largest_id, high_id);
    __syncthreads();
    if (threadIdx.x > 0) return;
    to.counts[q] = (int64_t)selected;
    if ((int64_t)selected < k) return;
    const double limit = key_of_rank(largest);
    const int64_t largest_at = (int64_t)largest_id;
    if (limits.last && limit == limits.keys[q] && largest_at < limits.last[q])
        limits.last[q] = largest_at;
    if (!(limit < limits.keys[q])) return;
    limits.keys[q] = limit;
    if (limits.last) limits.last[q] = largest_at;
    radii[q] = p.metric == GNOMON_IP ? -limit : limit;
}

cudaError_t gcu_search_select(const gcu_search_pairs *p, const gcu_search_lists *from,
                              const gcu_search_lists *to, const gcu_search_news *news,
                              gcu_search_limits limits, double *radii, cudaStream_t stream)
{
    if (news->queries == 0) return cudaSuccess;
    const unsigned grid = (unsigned)news->queries;
    if (news->typical + to->k > 8192)
        select_kernel<1024><<<grid, 1024, 0, stream>>>(*p, *from, *to, *news, limits, radii);
    else if (news->typical + to->k > 512)
        select_kernel<256><<<grid, 256, 0, stream>>>(*p, *from, *to, *news, limits, radii);
    else
        select_kernel<64><<<grid, 64, 0, stream>>>(*p, *from, *to, *news, limits, radii);
    return cudaGetLastError();
}

/* ---- pairs by query ---- */

__global__ void __launch_bounds__(1024)
    offsets_kernel(const unsigned *counts, int64_t count, unsigned *offsets)
{
    enum { EACH = 8 };
    __shared__ unsigned warps[32];
    __shared__ unsigned all;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) all = 0;
    for (int64_t from = 0; from < count; from += 1024 * EACH) {
        const int64_t first = from + threadIdx.x * EACH;
        unsigned own[EACH], sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            own[i] = first + i < count ? counts[first + i] : 0;
            sum += own[i];
        }
        const unsigned mine = sum;
        for (int step = 1; step < 32; step *= 2) {
            const unsigned other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        __syncthreads(); /* 'all' and 'warps' have been read */
        if (lane == 31) warps[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            unsigned w = warps[lane];
            for (int step = 1; step < 32; step *= 2) {
                const unsigned other = __shfl_up_sync(~0u, w, step);
                if (lane >= step) w += other;
            }
            warps[lane] = w;
        }
        __syncthreads();
        unsigned at = all + (warp > 0 ? warps[warp - 1] : 0) + sum - mine;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            if (first + i < count) offsets[first + i] = at;
            at += own[i];
        }
        __syncthreads();
        if (threadIdx.x == 0) all += warps[31];
    }
    __syncthreads();
    if (threadIdx.x == 0) offsets[count] = all;
}

cudaError_t gcu_search_offsets(const unsigned *counts, int64_t count, unsigned *offsets,
                               cudaStream_t stream)
{
    offsets_kernel<<<1, 1024, 0, stream>>>(counts, count, offsets);
    return cudaGetLastError();
}

static unsigned grid_of(int64_t units)
{
    const int64_t blocks = (units + THREADS - 1) / THREADS, most = 1 << 14;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

__global__ void __launch_bounds__(THREADS)
    scatter_kernel(gcu_search_found found, int64_t pairs, const unsigned *offsets, double *keys,
                   uint32_t *places)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < pairs;
         e += (int64_t)gridDim.x * THREADS) {
        const double key = found.keys[e];
        if (key != key) continue;
        const uint64_t pair = found.pairs[e];
        const uint32_t query = (uint32_t)(pair >> 32);
        const unsigned at = offsets[query] + found.ranks[e];
        keys[at] = key;
        places[at] = (uint32_t)pair;
    }
}

cudaError_t gcu_search_scatter(gcu_search_found found, int64_t pairs, const unsigned *offsets,
                               double *keys, uint32_t *places, cudaStream_t stream)
{
    if (pairs == 0) return cudaSuccess;
    scatter_kernel<<<grid_of(pairs), THREADS, 0, stream>>>(found, pairs, offsets, keys, places);
    return cudaGetLastError();
}

/* ---- sorting: Batcher's bitonic network whose first steps are mirrored, so that what lies beyond
 * the end may be left out ---- */

__device__ __forceinline__ void order(gnomon_ranked *x, int64_t a, int64_t b, int64_t count)
{
    if (b >= count || !gcu_ranked_before(x[b], x[a])) return;
    const gnomon_ranked swap = x[a];
    x[a] = x[b];
    x[b] = swap;
}

/* All steps of merging runs of 'size' from 'step' on, over count points in shared memory. */
__device__ void merge_steps(gnomon_ranked *x, int count, int64_t size, int step)
{
    int pairs = 1;
    while (pairs < count)
        pairs *= 2;
    pairs /= 2;
    for (; step > 0; step /= 2) {
        __syncthreads();
        const bool mirrored = 2 * step == size;
        for (int t = threadIdx.x; t < pairs; t += blockDim.x) {
            const int i = t & (step - 1), block = 2 * (t - i); /* steps are powers of two */
            order(x, block + i, mirrored ? block + size - 1 - i : block + i + step, count);
        }
    }
    __syncthreads();
}

__global__ void __launch_bounds__(512) sort_kernel(gcu_search_lists lists)
{
    __shared__ gnomon_ranked held[CHUNK];
    const int64_t count = lists.counts[blockIdx.x];
    gnomon_ranked *x = lists.points + (int64_t)blockIdx.x * lists.k;
    for (int64_t size = 2;; size *= 2) {
        /* steps across chunks in global memory, those inside chunks in shared memory */
        const int64_t local = size < CHUNK ? size : CHUNK;
        for (int64_t step = size / 2; step >= CHUNK; step /= 2) {
            __syncthreads();
            int64_t pairs = 1;
            while (pairs < count)
                pairs *= 2;
            for (int64_t t = threadIdx.x; t < pairs / 2; t += blockDim.x) {
                const int64_t i = t & (step - 1), block = 2 * (t - i);
                if (2 * step == size)
                    order(x, block + i, block + size - 1 - i, count);
                else
                    order(x, block + i, block + i + step, count);
            }
        }
        if (size < CHUNK && size < count) continue; /* smaller sizes come with CHUNK's, below */
        for (int64_t from = 0; from < count; from += CHUNK) {
            const int64_t some = count - from < CHUNK ? count - from : CHUNK;
            __syncthreads();
            for (int64_t i = threadIdx.x; i < some; i += blockDim.x)
                held[i] = x[from + i];
            if (size <= CHUNK)
                for (int64_t first = 2; first <= size; first *= 2)
                    merge_steps(held, (int)some, first, (int)(first / 2));
            else
                merge_steps(held, (int)some, size, (int)(local / 2));
            for (int64_t i = threadIdx.x; i < some; i += blockDim.x)
                x[from + i] = held[i];
        }
        if (size >= count) return;
    }
}

cudaError_t gcu_search_sort(const gcu_search_lists *lists, int64_t queries, cudaStream_t stream)
{
    if (queries == 0) return cudaSuccess;
    const unsigned threads = lists->k > 128 ? 512 : 64;
    sort_kernel<<<(unsigned)queries, threads, 0, stream>>>(*lists);
    return cudaGetLastError();
}

/* ---- answers ---- */

__global__ void __launch_bounds__(THREADS)
    split_kernel(const gnomon_ranked *points, int64_t count, bool products, int64_t *ids,
                 double *distances)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count;
         e += (int64_t)gridDim.x * THREADS) {
        ids[e] = points[e].id;
        distances[e] = products ? -points[e].key : points[e].key;
    }
}

cudaError_t gcu_search_split(const gnomon_ranked *points, int64_t count, bool products,
                             int64_t *ids, double *distances, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    split_kernel<<<grid_of(count), THREADS, 0, stream>>>(points, count, products, ids, distances);
    return cudaGetLastError();
}

/* ---- by radius ---- */

__global__ void __launch_bounds__(THREADS)
    hits_kernel(gcu_search_pairs p, gcu_search_found found, int64_t pairs, gnomon_hit *hits,
                unsigned long long *count)
{
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < pairs;
         e += (int64_t)gridDim.x * THREADS) {
        const double key = found.keys[e];
        if (key != key) continue;
        const uint64_t pair = found.pairs[e];
        const unsigned long long at = atomicAdd(count, 1ull);
        hits[at] = {(int64_t)(pair >> 32), {key, gcu_search_id(p, (int64_t)(pair & 0xffffffffu))}};
    }
}

cudaError_t gcu_search_hits(const gcu_search_pairs *p, gcu_search_found found, int64_t pairs,
                            gnomon_hit *hits, unsigned long long *count, cudaStream_t stream)
{
    if (pairs == 0) return cudaSuccess;
    hits_kernel<<<grid_of(pairs), THREADS, 0, stream>>>(*p, found, pairs, hits, count);
    return cudaGetLastError();
}

__global__ void __launch_bounds__(THREADS)
    range_kernel(gcu_search_news news, double limit, gcu_search_found found)
{
    const int64_t all = news.queries * news.each;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < all;
         e += (int64_t)gridDim.x * THREADS) {
        const double key = news.keys[e];
        if (!(key <= limit)) continue;
        const unsigned long long at = atomicAdd(found.count, 1ull);
        found.pairs[at] = (uint64_t)(news.query + e / news.each) << 32 | (uint64_t)(e % news.each);
        found.keys[at] = key;
    }
}

__global__ void __launch_bounds__(THREADS)
    within_kernel(gcu_search_pairs p, gcu_search_news news, gcu_search_limits limits,
                  gcu_search_found found, unsigned *counts)
{
    const int64_t all = news.queries * news.each;
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < all;
         e += (int64_t)gridDim.x * THREADS) {
        const double key = news.keys[e];
        const int64_t line = e / news.each, query = news.query + line, place = e - line * news.each;
        if (!gcu_search_is_within(p, limits, query, place, key)) continue;
        const unsigned long long at = atomicAdd(found.count, 1ull);
        found.pairs[at] = (uint64_t)query << 32 | (uint64_t)place;
        found.keys[at] = key;
        found.ranks[at] = atomicAdd(&counts[query], 1u);
    }
}

cudaError_t gcu_search_within(const gcu_search_pairs *p, const gcu_search_news *news,
                              gcu_search_limits limits, gcu_search_found found, unsigned *counts,
                              cudaStream_t stream)
{
    if (news->queries * news->each == 0) return cudaSuccess;
    within_kernel<<<grid_of(news->queries * news->each), THREADS, 0, stream>>>(*p, *news, limits,
                                                                               found, counts);
    return cudaGetLastError();
}

__global__ void __launch_bounds__(THREADS)
    short_kernel(gcu_search_lists lists, int64_t queries, unsigned long long *short_lists)
{
    for (int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x; q < queries;
         q += (int64_t)gridDim.x * THREADS)
        if (lists.counts[q] < lists.k) atomicAdd(short_lists, 1ull);
}

cudaError_t gcu_search_short(const gcu_search_lists *lists, int64_t queries,
                             unsigned long long *short_lists, cudaStream_t stream)
{
    const cudaError_t error = cudaMemsetAsync(short_lists, 0, sizeof *short_lists, stream);
    if (error != cudaSuccess) return error;
    short_kernel<<<grid_of(queries), THREADS, 0, stream>>>(*lists, queries, short_lists);
    return cudaGetLastError();
}

cudaError_t gcu_search_range(const gcu_search_news *news, double limit, gcu_search_found found,
                             cudaStream_t stream)
{
    if (news->queries * news->each == 0) return cudaSuccess;
    range_kernel<<<grid_of(news->queries * news->each), THREADS, 0, stream>>>(*news, limit, found);
    return cudaGetLastError();
}

/* ---- memory ---- */

__global__ void __launch_bounds__(THREADS) fill_kernel(double *values, int64_t count, double value)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * THREADS)
        values[i] = value;
}

cudaError_t gcu_search_fill(double *values, int64_t count, double value, cudaStream_t stream)
{
    if (count > 0) fill_kernel<<<grid_of(count), THREADS, 0, stream>>>(values, count, value);
    return cudaGetLastError();
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    gather_kernel(gnomon_matrix from, const uint32_t *rows, int64_t count, T *to)
{
    const T *x = static_cast<const T *>(from.data);
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < count * from.cols;
         e += (int64_t)gridDim.x * THREADS)
        to[e] = x[(int64_t)rows[e / from.cols] * from.row_stride + e % from.cols * from.col_stride];
}

template <typename T>
static void gather(const gnomon_matrix *from, const uint32_t *rows, int64_t count, void *to,
                   cudaStream_t stream)
{
    gather_kernel<T><<<grid_of(count * from->cols), THREADS, 0, stream>>>(*from, rows, count,
                                                                          static_cast<T *>(to));
}

cudaError_t gcu_search_gather(const gnomon_matrix *from, const uint32_t *rows, int64_t count,
                              void *to, cudaStream_t stream)
{
    if (count * from->cols == 0) return cudaSuccess;
    switch (gnomon_dtype_size(from->dtype)) {
    case 8:
        gather<uint64_t>(from, rows, count, to, stream);
        break;
    case 4:
        gather<uint32_t>(from, rows, count, to, stream);
        break;
    case 2:
        gather<uint16_t>(from, rows, count, to, stream);
        break;
    default:
        gather<uint8_t>(from, rows, count, to, stream);
        break;
    }
    return cudaGetLastError();
}
