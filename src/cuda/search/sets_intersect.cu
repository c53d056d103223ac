/* Sets of the base and of queries, met: see search/sets.h.
 *
 * A bit a member tells whether any query has it, and such members have numbers of their own.
 * Thirty-two queries share a table, a word a number, whose bits tell which of them have it. A warp
 * takes a base set and keeps what any query has; for each table its lanes look up 32 of those at a
 * time, the words are transposed, so that a lane has a bit a member for its query, and counted. */
#include "cuda/runtime/grid.cuh"
#include "cuda/search/sets.h"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    KEPT = 256, /* members of a set that queries have; more are looked up table by table */
    FEW = 8     /* words so few are not transposed */
};

/* ---- tables ---- */

/* A warp a query. */
static __global__ void __launch_bounds__(THREADS) numbers_kernel(gcu_sets_call c)
{
    const int64_t jump = (int64_t)gridDim.x * WARPS;
    for (int64_t q = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; q < c.queries; q += jump)
        for (int64_t e = c.query_offsets[q] + threadIdx.x % 32; e < c.query_offsets[q + 1];
             e += 32) {
            const uint32_t member = c.members[e], bit = 1u << (member % 32);
            if (!(atomicOr(&c.asked[member / 32], bit) & bit))
                c.numbers[member] = atomicAdd(c.count, 1u);
        }
}

static __global__ void __launch_bounds__(THREADS) tables_kernel(gcu_sets_call c)
{
    const int64_t jump = (int64_t)gridDim.x * WARPS;
    for (int64_t q = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; q < c.queries; q += jump)
        for (int64_t e = c.query_offsets[q] + threadIdx.x % 32; e < c.query_offsets[q + 1]; e += 32)
            atomicOr(&c.tables[q / 32 * c.distinct + c.numbers[c.members[e]]], 1u << (q % 32));
}

cudaError_t gcu_sets_tables(const gcu_sets_call *c, cudaStream_t stream)
{
    const size_t words = (size_t)((c->queries + 31) / 32 * c->distinct);
    cudaError_t error = cudaMemsetAsync(c->tables, 0, words * sizeof *c->tables, stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(c->asked, 0, (size_t)(c->possible / 32 + 1) * 4, stream);
    if (error == cudaSuccess) error = cudaMemsetAsync(c->count, 0, sizeof *c->count, stream);
    if (error != cudaSuccess) return error;
    numbers_kernel<<<gcu_grid(c->queries, WARPS), THREADS, 0, stream>>>(*c);
    tables_kernel<<<gcu_grid(c->queries, WARPS), THREADS, 0, stream>>>(*c);
    return cudaGetLastError();
}

/* ---- meeting ---- */

/* How many of the warp's words have bit 'lane' set. */
static __device__ __forceinline__ int count_transposed(uint32_t word, int lane)
{
#pragma unroll
    for (int half = 16; half > 0; half /= 2) {
        /* bits whose number has not 'half' in it */
        const uint32_t low = half == 16  ? 0x0000ffffu
                             : half == 8 ? 0x00ff00ffu
                             : half == 4 ? 0x0f0f0f0fu
                             : half == 2 ? 0x33333333u
                                         : 0x55555555u;
        const uint32_t other = __shfl_xor_sync(~0u, word, half);
        word = lane & half ? (word & ~low) | (other & ~low) >> half
                           : (word & low) | (other & low) << half;
    }
    return __popc(word);
}

static __device__ __forceinline__ int count_words(uint32_t word, int lane)
{
    unsigned who = __ballot_sync(~0u, word != 0);
    if (__popc(who) > FEW) return count_transposed(word, lane);
    int count = 0;
    for (; who; who &= who - 1)
        count += (int)(__shfl_sync(~0u, word, __ffs((int)who) - 1) >> lane & 1);
    return count;
}

static __device__ __forceinline__ bool is_allowed(const gcu_sets_call &c, int64_t row)
{
    if (!c.filter) return true;
    const int64_t bit = c.shift + row;
    return row < c.most && (c.filter[bit / 8] >> (bit % 8) & 1) != 0;
}

/* Whether any query has the member of entry e. */
static __device__ __forceinline__ bool is_asked(const gcu_sets_call &c, uint32_t member)
{
    return (__ldg(c.asked + member / 32) >> (member % 32) & 1) != 0;
}

/* The warp's lanes are queries: those that want the pair keep it. */
static __device__ __forceinline__ void keep(const gcu_sets_call &c, int64_t q, int64_t row,
                                            int64_t place, int64_t size, int64_t shared)
{
    const int lane = threadIdx.x % 32;
    bool stays = false;
    double key = 1;
    if (q < c.queries) {
        size += c.query_offsets[q + 1] - c.query_offsets[q];
        if (size == 0)
            key = 0;
        else if (shared > 0)
            key = __ddiv_rn((double)(size - 2 * shared), (double)(size - shared));
        const int64_t id = c.first + row;
        const double limit = c.limits[q];
        stays = (c.all || key < 1) && key <= limit && !(key == limit && id > c.last[q]) &&
                !(c.exclude >= 0 && id == c.exclude + c.query + q);
    }
    const unsigned all = __ballot_sync(~0u, stays);
    if (all == 0) return;
    unsigned long long at = 0;
    if (lane == 0) at = atomicAdd(c.found.count, (unsigned long long)__popc(all));
    at = __shfl_sync(~0u, at, 0) + (unsigned long long)__popc(all & ((1u << lane) - 1));
    if (!stays) return;
    const unsigned rank = atomicAdd(&c.counts[q], 1u);
    if ((int64_t)at >= c.found.room) return;
    if (c.found.ranks) c.found.ranks[at] = rank;
    c.found.pairs[at] = (uint64_t)(c.query + q) << 32 | (uint64_t)place;
    c.found.keys[at] = key;
}

static __global__ void __launch_bounds__(THREADS)
    intersect_kernel(const __grid_constant__ gcu_sets_call c, int64_t from, int64_t step,
                     int64_t places)
{
    __shared__ uint32_t all_kept[WARPS][KEPT];
    uint32_t *kept = all_kept[threadIdx.x / 32];
    const int lane = threadIdx.x % 32;
    const int64_t groups = (c.queries + 31) / 32, jump = (int64_t)gridDim.x * WARPS;
    for (int64_t place = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; place < places;
         place += jump) {
        const int64_t row = from + place * step;
        if (!is_allowed(c, row)) continue;
        const int64_t begin = c.offsets[row], end = c.offsets[row + 1];
        int64_t count = 0;
        for (int64_t e = begin; e < end; e += 32) {
            uint32_t member = 0;
            bool asked = false;
            if (e + lane < end) {
                member = __ldg(c.members + e + lane);
                asked = is_asked(c, member);
            }
            const unsigned who = __ballot_sync(~0u, asked);
            const int64_t at = count + __popc(who & ((1u << lane) - 1));
            if (asked && at < KEPT) kept[at] = __ldg(c.numbers + member);
            count += __popc(who);
        }
        __syncwarp();
        if (count > 0 || begin == end || c.all)
            for (int64_t group = blockIdx.y; group < groups; group += gridDim.y) {
                const uint32_t *table = c.tables + group * c.distinct;
                int64_t shared = 0;
                if (count <= KEPT) {
                    for (int e = 0; e < count; e += 32)
                        shared +=
                            count_words(e + lane < count ? __ldg(table + kept[e + lane]) : 0, lane);
                } else {
                    for (int64_t e = begin; e < end; e += 32) {
                        uint32_t word = 0;
                        if (e + lane < end) {
                            const uint32_t member = __ldg(c.members + e + lane);
                            if (is_asked(c, member))
                                word = __ldg(table + __ldg(c.numbers + member));
                        }
                        shared += count_words(word, lane);
                    }
                }
                keep(c, group * 32 + lane, row, place, end - begin, shared);
            }
        __syncwarp();
    }
}

cudaError_t gcu_sets_intersect(const gcu_sets_call *c, int64_t from, int64_t step, int64_t places,
                               int sms, cudaStream_t stream)
{
    if (places == 0 || c->queries == 0) return cudaSuccess;
    const int64_t most = (int64_t)sms * 8, blocks = (places + WARPS - 1) / WARPS;
    const int64_t groups = (c->queries + 31) / 32;
    const int64_t across = blocks < most ? blocks : most;
    int64_t apart = (most + across - 1) / across;
    if (apart > groups) apart = groups;
    const dim3 grid((unsigned)across, (unsigned)(apart < 65535 ? apart : 65535));
    intersect_kernel<<<grid, THREADS, 0, stream>>>(*c, from, step, places);
    return cudaGetLastError();
}

/* ---- limits ---- */

/* A full list's last point, a warp a query. */
static __global__ void __launch_bounds__(THREADS)
    last_kernel(gcu_search_lists lists, int64_t queries, double *limits, int64_t *last)
{
    const int lane = threadIdx.x % 32;
    const int64_t jump = (int64_t)gridDim.x * WARPS;
    for (int64_t q = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; q < queries; q += jump) {
        if (lists.counts[q] < lists.k) continue;
        double key = -1;
        int64_t id = -1;
        for (int64_t e = lane; e < lists.k; e += 32) {
            const gnomon_ranked x = lists.points[q * lists.k + e];
            if (x.key > key || (x.key == key && x.id > id)) {
                key = x.key;
                id = x.id;
            }
        }
        for (int half = 16; half > 0; half /= 2) {
            const double other = __shfl_xor_sync(~0u, key, half);
            const int64_t other_id = __shfl_xor_sync(~0u, id, half);
            if (other > key || (other == key && other_id > id)) {
                key = other;
                id = other_id;
            }
        }
        if (lane > 0) continue;
        limits[q] = key;
        last[q] = id;
    }
}

cudaError_t gcu_sets_last(const gcu_search_lists *lists, int64_t queries, double *limits,
                          int64_t *last, cudaStream_t stream)
{
    last_kernel<<<gcu_grid(queries, WARPS), THREADS, 0, stream>>>(*lists, queries, limits, last);
    return cudaGetLastError();
}
