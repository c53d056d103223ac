/* Sets that meet in lists: asking, dropping, counting. */
#include "cuda/join/sets.h"
#include "cuda/runtime/grid.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    EACH = 2048, /* places of the line of runs that a block takes */
    AHEAD = 48,  /* steps that one thread looks ahead, and back */
    ANY = -1     /* in every place: a pair that did not meet by a member */
};

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20);
}

/* ---- asking ---- */

static __global__ void cut_kernel(const int64_t *starts, int64_t first, int64_t end, int64_t room,
                                  int64_t *cut)
{
    int64_t last = gcu_line_at(starts, first, end + 1, starts[first] + room);
    if (last == first) last = first + 1;
    cut[0] = last;
    cut[1] = starts[last] - starts[first];
}

cudaError_t gcu_set_cut(const int64_t *starts, int64_t first, int64_t end, int64_t room,
                        int64_t *cut, cudaStream_t stream)
{
    cut_kernel<<<1, 1, 0, stream>>>(starts, first, end, room, cut);
    return cudaGetLastError();
}

/* The first posting of a list, from 'low' on and before 'high', whose set is not before 'set'. */
static __device__ __forceinline__ uint32_t posting_from(const uint64_t *postings, uint32_t low,
                                                        uint32_t high, uint32_t set)
{
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if ((uint32_t)__ldg(postings + middle) < set)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static __global__ void __launch_bounds__(THREADS)
    ask_kernel(gcu_set_sides x, const int64_t *askers, gcu_set_run run)
{
    __shared__ int64_t ends[2];
    const int64_t base = askers[run.first];
    const int64_t from = (int64_t)blockIdx.x * EACH;
    const int64_t to = from + EACH < run.count ? from + EACH : run.count;
    if (blockIdx.x == 0 && threadIdx.x == 0) run.starts[run.count] = 0;
    if (threadIdx.x < 2)
        ends[threadIdx.x] =
            gcu_line_at(askers, run.first, run.end, base + (threadIdx.x == 0 ? from : to - 1));
    __syncthreads();
    for (int64_t at = from + threadIdx.x; at < to; at += THREADS) {
        const int64_t set = gcu_line_at(askers, ends[0], ends[1] + 1, base + at);
        const int64_t place = base + at - askers[set];
        const gcu_set p = x.p[set];
        uint32_t begin, end;
        if (x.all) {
            begin = x.pairing == GCU_SETS_LATER ? p.row + 1 : 0;
            end = (uint32_t)x.q_count;
        } else {
            /* no more are shared than are left from here on, and larger sets need more */
            const int64_t larger = (int64_t)x.bounds.reach[p.size - place] - p.size;
            const int64_t largest = larger < x.bounds.most ? larger : x.bounds.most;
            const uint32_t low = x.bounds.first[x.bounds.low[p.size]];
            uint32_t high = largest < 0 ? 0 : x.bounds.first[largest + 1];
            if (x.pairing == GCU_SETS_PRECEDING && high > (uint32_t)set) high = (uint32_t)set;
            const uint32_t member = x.members[p.start + place];
            const uint32_t last = x.lists[member + 1];
            begin = posting_from(x.postings, x.lists[member], last, low);
            end = posting_from(x.postings, begin, last, high);
        }
        run.set[at] = (uint32_t)set;
        run.place[at] = x.all ? (uint32_t)ANY : (uint32_t)place;
        run.begin[at] = begin;
        run.starts[at] = (int64_t)(end - begin);
    }
}

cudaError_t gcu_set_ask(const gcu_set_sides *x, const int64_t *askers, const gcu_set_run *run,
                        cudaStream_t stream)
{
    const int64_t blocks = run->count > 0 ? (run->count + EACH - 1) / EACH : 1;
    ask_kernel<<<(unsigned)blocks, THREADS, 0, stream>>>(*x, askers, *run);
    return cudaGetLastError();
}

/* ---- dropping ---- */

/* Whether sets of so many members, which share one at places a and b, may share 'least' with that
 * as the first. */
static __device__ __forceinline__ bool may(const uint32_t *p, uint32_t p_size, uint32_t a,
                                           const uint32_t *q, uint32_t q_size, uint32_t b,
                                           uint32_t least)
{
    uint32_t i = a, j = b, shared = 0;
    for (int step = 0; step < AHEAD && i < p_size && j < q_size; step++) {
        const uint32_t u = __ldg(p + i), v = __ldg(q + j);
        shared += u == v;
        i += u <= v;
        j += v <= u;
        if (shared + min(p_size - i, q_size - j) < least) return false;
    }
    for (int step = 0; step < AHEAD && a > 0 && b > 0; step++) {
        const uint32_t u = __ldg(p + a - 1), v = __ldg(q + b - 1);
        if (u == v) return false;
        a -= u > v;
        b -= v > u;
    }
    return true;
}

static __global__ void __launch_bounds__(THREADS)
    candidates_kernel(gcu_set_sides x, gcu_set_run run, int64_t from, int64_t to,
                      gcu_set_pair *pairs, int64_t room, unsigned long long *left)
{
    __shared__ int64_t ends[2];
    const int lane = threadIdx.x % 32;
    const int64_t begin = from + (int64_t)blockIdx.x * EACH;
    const int64_t end = begin + EACH < to ? begin + EACH : to;
    if (threadIdx.x < 2)
        ends[threadIdx.x] =
            gcu_line_at(run.starts, 0, run.count, threadIdx.x == 0 ? begin : end - 1);
    __syncthreads();
    for (int64_t step = begin; step < end; step += THREADS) {
        const int64_t at = step + threadIdx.x;
        gcu_set_pair pair = {};
        bool keep = at < end;
        if (keep) {
            const int64_t asker = gcu_line_at(run.starts, ends[0], ends[1] + 1, at);
            const uint32_t posting = run.begin[asker] + (uint32_t)(at - __ldg(run.starts + asker));
            pair.p = run.set[asker];
            pair.place = run.place[asker];
            if (x.all) {
                pair.q = posting;
            } else {
                const uint32_t place = __ldg(x.places + posting);
                pair.q = (uint32_t)__ldg(x.postings + posting);
                const gcu_set p = x.p[pair.p], q = x.q[pair.q];
                const uint32_t least = __ldg(x.bounds.need + (int64_t)p.size + q.size);
                keep = (x.pairing != GCU_SETS_LATER || q.row > p.row) &&
                       min(p.size - pair.place, q.size - place) >= least &&
                       may(x.members + p.start, p.size, pair.place, x.members + q.start, q.size,
                           place, least);
            }
        }
        const unsigned kept = __ballot_sync(~0u, keep);
        if (kept == 0) continue;
        unsigned long long first = 0;
        if (lane == 0) first = atomicAdd(left, (unsigned long long)__popc(kept));
        first = __shfl_sync(~0u, first, 0) + __popc(kept & ((1u << lane) - 1));
        if (keep && first < (unsigned long long)room) pairs[first] = pair;
    }
}

cudaError_t gcu_set_candidates(const gcu_set_sides *x, const gcu_set_run *run, int64_t from,
                               int64_t count, gcu_set_pair *pairs, int64_t room,
                               unsigned long long *left, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    candidates_kernel<<<(unsigned)((count + EACH - 1) / EACH), THREADS, 0, stream>>>(
        *x, *run, from, from + count, pairs, room, left);
    return cudaGetLastError();
}

/* ---- counting ---- */

/* How many members two sets share, a warp together; 0 where they share less than 'least'. *met: p's
 * place of the first one. */
static __device__ __forceinline__ uint32_t count_shared(const gcu_set &p, const gcu_set &q,
                                                        const uint32_t *members, uint32_t least,
                                                        uint32_t *first_shared)
{
    const int lane = threadIdx.x % 32;
    const bool p_smaller = p.size <= q.size;
    const uint32_t *few = members + (p_smaller ? p.start : q.start);
    const uint32_t *many = members + (p_smaller ? q.start : p.start);
    const uint32_t few_size = p_smaller ? p.size : q.size;
    const uint32_t many_size = p_smaller ? q.size : p.size;
    uint32_t shared = 0, begin = 0;
    *first_shared = UINT32_MAX;
    for (uint32_t from = 0; from < few_size; from += 32) {
        const uint32_t at = from + lane;
        const uint32_t member = at < few_size ? __ldg(few + at) : UINT32_MAX;
        uint32_t low = begin, high = many_size;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (__ldg(many + middle) < member)
                low = middle + 1;
            else
                high = middle;
        }
        const bool same = at < few_size && low < many_size && __ldg(many + low) == member;
        const unsigned hits = __ballot_sync(~0u, same);
        if (hits != 0 && shared == 0) {
            const int first = __ffs((int)hits) - 1;
            const uint32_t other = __shfl_sync(~0u, low, first);
            *first_shared = p_smaller ? from + (uint32_t)first : other;
        }
        shared += (uint32_t)__popc(hits);
        begin = __shfl_sync(~0u, low, 31);
        const uint32_t more = few_size - from > 32 ? few_size - from - 32 : 0;
        if (shared + more < least) return 0;
    }
    return shared;
}

static __global__ void __launch_bounds__(THREADS)
    verify_kernel(gcu_set_sides x, const gcu_set_pair *pairs, int64_t count, uint64_t *keys,
                  uint32_t *counts, int64_t room, unsigned long long *found)
{
    const int lane = threadIdx.x % 32;
    const int64_t warps = (int64_t)gridDim.x * WARPS;
    unsigned long long mine = 0;
    for (int64_t at = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; at < count; at += warps) {
        const gcu_set_pair pair = pairs[at];
        const gcu_set p = x.p[pair.p], q = x.q[pair.q];
        const int64_t size = (int64_t)p.size + q.size;
        uint32_t first_shared;
        const uint32_t least = x.all ? 0 : __ldg(x.bounds.need + size);
        const uint32_t shared = count_shared(p, q, x.members, least, &first_shared);
        if (!x.all && (shared == 0 || first_shared != pair.place)) continue;
        const double apart =
            __ddiv_rn((double)(size - 2 * (int64_t)shared), (double)(size - (int64_t)shared));
        if (!(apart <= x.limit)) continue;
        if (!keys) {
            mine++;
            continue;
        }
        if (lane > 0) continue;
        const unsigned long long to = atomicAdd(found, 1ull);
        if (to >= (unsigned long long)room) continue;
        const bool swapped = x.pairing == GCU_SETS_PRECEDING && q.row < p.row;
        keys[to] = swapped ? (uint64_t)q.row << 32 | p.row : (uint64_t)p.row << 32 | q.row;
        counts[to] = shared;
    }
    if (lane == 0 && mine > 0) atomicAdd(found, mine);
}

cudaError_t gcu_set_verify(const gcu_set_sides *x, const gcu_set_pair *pairs, int64_t count,
                           uint64_t *keys, uint32_t *shared, int64_t room,
                           unsigned long long *found, int sms, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    const int64_t blocks = (count + WARPS - 1) / WARPS, largest = 16 * (int64_t)sms;
    verify_kernel<<<(unsigned)(blocks < largest ? blocks : largest), THREADS, 0, stream>>>(
        *x, pairs, count, keys, shared, room, found);
    return cudaGetLastError();
}

/* ---- out ---- */

static __device__ __forceinline__ int64_t size_of(const gcu_sets &x, int64_t row)
{
    const int64_t size = x.offsets[row + 1] - x.offsets[row];
    return size > 0 ? size : 1;
}

static __global__ void __launch_bounds__(THREADS)
    pairs_kernel(gcu_sets x, int64_t q_first, const uint64_t *keys, const uint32_t *shared,
                 int64_t count, gnomon_pair *out)
{
    GCU_FOR_EACH(at, count)
    {
        const int64_t i = (int64_t)(keys[at] >> 32), j = (int64_t)(uint32_t)keys[at];
        const int64_t size = size_of(x, i) + size_of(x, q_first + j), both = shared[at];
        out[at] = {i, j, __ddiv_rn((double)(size - 2 * both), (double)(size - both))};
    }
}

cudaError_t gcu_set_pairs(const gcu_sets *x, int64_t q_first, const uint64_t *keys,
                          const uint32_t *shared, int64_t count, gnomon_pair *out,
                          cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    pairs_kernel<<<grid_of(count), THREADS, 0, stream>>>(*x, q_first, keys, shared, count, out);
    return cudaGetLastError();
}
