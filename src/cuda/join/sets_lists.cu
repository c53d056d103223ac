/* Sets by size, what their sizes allow, and the lists of their first members. */
#include "cuda/join/sets.h"
#include "cuda/runtime/grid.cuh"
#include "metric/jaccard.h"

enum { THREADS = 256, EACH = 2048 /* members of a block that looks for their sets */ };

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20);
}

/* ---- sets ---- */

static __device__ __forceinline__ gcu_set set_of(const int64_t *offsets, int64_t entries,
                                                 int64_t first, uint32_t row)
{
    const int64_t start = offsets[first + row], size = offsets[first + row + 1] - start;
    /* that of a set without members stands behind all others' */
    return {size > 0 ? start : entries, size > 0 ? (uint32_t)size : 1u, row};
}

static __global__ void __launch_bounds__(THREADS)
    size_kernel(const int64_t *offsets, int64_t first, int64_t count, uint64_t *keys)
{
    GCU_FOR_EACH(i, count)
    {
        const int64_t size = offsets[first + i + 1] - offsets[first + i];
        keys[i] = (uint64_t)(size > 0 ? size : 1) << 32 | (uint64_t)i;
    }
}

static __global__ void __launch_bounds__(THREADS)
    sets_kernel(const int64_t *offsets, int64_t entries, int64_t first, int64_t count,
                const uint64_t *keys, gcu_set *sets)
{
    GCU_FOR_EACH(i, count)
    sets[i] = set_of(offsets, entries, first, keys ? (uint32_t)keys[i] : (uint32_t)i);
}

gnomon_status gcu_set_order(gcu_set_memory *m, const gcu_sets *x, int64_t first, int64_t count,
                            bool by_size, gcu_set *sets)
{
    const int held = m->count;
    uint64_t *keys[2] = {nullptr, nullptr};
    if (by_size) {
        gnomon_status status = gcu_set_room(m, count, &keys[0]);
        if (status == GNOMON_OK) status = gcu_set_room(m, count, &keys[1]);
        if (status != GNOMON_OK) return status;
        size_kernel<<<grid_of(count), THREADS, 0, m->stream>>>(x->offsets, first, count, keys[0]);
        GCU_TRY(m->why, cudaGetLastError());
        status = gcu_set_sort(m, keys, count, 32, 32 + gcu_set_bits(x->most + 2));
        if (status != GNOMON_OK) return status;
    }
    sets_kernel<<<grid_of(count), THREADS, 0, m->stream>>>(x->offsets, x->entries, first, count,
                                                           keys[1], sets);
    GCU_TRY(m->why, cudaGetLastError());
    gcu_set_free(m, held);
    return GNOMON_OK;
}

/* ---- bounds ---- */

static __global__ void __launch_bounds__(THREADS) need_kernel(double limit, gcu_set_bounds b)
{
    GCU_FOR_EACH(size, 2 * b.most + 1)
    {
        b.need[size] = (uint32_t)gnomon_jaccard_shared(limit, size);
        if (size <= b.most) b.low[size] = size > 0 ? (uint32_t)gnomon_jaccard_size(limit, size) : 0;
    }
}

static __global__ void __launch_bounds__(THREADS)
    reach_kernel(const gcu_set *q, int64_t count, gcu_set_bounds b)
{
    GCU_FOR_EACH(size, b.most + 2)
    {
        int64_t low = 0, high = 2 * b.most; /* more is needed of larger sums */
        while (size <= b.most && low < high) {
            const int64_t middle = (low + high + 1) / 2;
            if ((int64_t)b.need[middle] <= size)
                low = middle;
            else
                high = middle - 1;
        }
        if (size <= b.most) b.reach[size] = (uint32_t)low;
        low = 0, high = count;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if ((int64_t)q[middle].size < size)
                low = middle + 1;
            else
                high = middle;
        }
        b.first[size] = (uint32_t)low;
    }
}

gnomon_status gcu_set_make_bounds(gcu_set_memory *m, double limit, const gcu_set *q, int64_t count,
                                  const gcu_set_bounds *bounds)
{
    need_kernel<<<grid_of(2 * bounds->most + 1), THREADS, 0, m->stream>>>(limit, *bounds);
    reach_kernel<<<grid_of(bounds->most + 2), THREADS, 0, m->stream>>>(q, count, *bounds);
    GCU_TRY(m->why, cudaGetLastError());
    return GNOMON_OK;
}

/* ---- first members ---- */

static __global__ void __launch_bounds__(THREADS)
    askers_kernel(gcu_set_sides x, int64_t count, int64_t *lengths)
{
    GCU_FOR_EACH(i, count + 1)
    {
        const uint32_t size = i < count ? x.p[i].size : 0;
        lengths[i] = i == count ? 0 : x.all ? 1 : size - x.bounds.low[size] + 1;
    }
}

gnomon_status gcu_set_askers(gcu_set_memory *m, const gcu_set_sides *x, int64_t count,
                             int64_t *starts)
{
    askers_kernel<<<grid_of(count + 1), THREADS, 0, m->stream>>>(*x, count, starts);
    GCU_TRY(m->why, cudaGetLastError());
    return gcu_set_sum(m, starts, count + 1);
}

/* Those who ask are no smaller where each pair meets once. */
static __global__ void __launch_bounds__(THREADS) listed_kernel(gcu_set_sides x, int64_t *lengths)
{
    GCU_FOR_EACH(i, x.q_count + 1)
    {
        const uint32_t size = i < x.q_count ? x.q[i].size : 0;
        const uint32_t least =
            x.pairing == GCU_SETS_PRECEDING ? x.bounds.need[2 * size] : x.bounds.low[size];
        lengths[i] = i == x.q_count ? 0 : size - least + 1;
    }
}

static __global__ void __launch_bounds__(THREADS)
    list_kernel(gcu_set_sides x, const int64_t *starts, int64_t count, uint64_t *postings,
                uint32_t *places)
{
    __shared__ int64_t ends[2];
    const int64_t begin = (int64_t)blockIdx.x * EACH;
    const int64_t end = begin + EACH < count ? begin + EACH : count;
    if (threadIdx.x < 2)
        ends[threadIdx.x] = gcu_line_at(starts, 0, x.q_count, threadIdx.x == 0 ? begin : end - 1);
    __syncthreads();
    for (int64_t e = begin + threadIdx.x; e < end; e += THREADS) {
        const int64_t set = gcu_line_at(starts, ends[0], ends[1] + 1, e);
        const int64_t place = e - starts[set];
        postings[e] = (uint64_t)x.members[x.q[set].start + place] << 32 | (uint64_t)set;
        places[e] = (uint32_t)place;
    }
}

static __global__ void __launch_bounds__(THREADS)
    begin_kernel(const uint64_t *postings, int64_t count, int64_t lists, uint32_t *begin)
{
    GCU_FOR_EACH(n, lists) begin[n] = (uint32_t)gcu_keys_below(postings, count, (uint64_t)n << 32);
}

gnomon_status gcu_set_make_lists(gcu_set_memory *m, gcu_set_sides *x, int64_t numbers)
{
    int64_t *starts = nullptr, count = 0;
    uint32_t *lists = nullptr, *places[2] = {nullptr, nullptr};
    uint64_t *postings[2] = {nullptr, nullptr};
    /* the numbers' lists, that of sets without members, and its end */
    gnomon_status status = gcu_set_room(m, numbers + 2, &lists);
    if (status == GNOMON_OK) status = gcu_set_room(m, x->q_count + 1, &starts);
    if (status != GNOMON_OK) return status;
    listed_kernel<<<grid_of(x->q_count + 1), THREADS, 0, m->stream>>>(*x, starts);
    GCU_TRY(m->why, cudaGetLastError());
    status = gcu_set_sum(m, starts, x->q_count + 1);
    if (status != GNOMON_OK) return status;
    GCU_TRY(m->why,
            cudaMemcpyAsync(&count, starts + x->q_count, 8, cudaMemcpyDeviceToHost, m->stream));
    GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
    status = gcu_set_room(m, count, &postings[1]);
    if (status == GNOMON_OK) status = gcu_set_room(m, count, &places[1]);
    const int held = m->count;
    if (status == GNOMON_OK) status = gcu_set_room(m, count, &postings[0]);
    if (status == GNOMON_OK) status = gcu_set_room(m, count, &places[0]);
    if (status != GNOMON_OK) return status;
    if (count > 0)
        list_kernel<<<(unsigned)((count + EACH - 1) / EACH), THREADS, 0, m->stream>>>(
            *x, starts, count, postings[0], places[0]);
    GCU_TRY(m->why, cudaGetLastError());
    /* they come in the order of sets, which stays */
    status = gcu_set_sort_pairs(m, postings, places, count, 32, 32 + gcu_set_bits(numbers + 1));
    if (status != GNOMON_OK) return status;
    begin_kernel<<<grid_of(numbers + 2), THREADS, 0, m->stream>>>(postings[1], count, numbers + 2,
                                                                  lists);
    GCU_TRY(m->why, cudaGetLastError());
    gcu_set_free(m, held);
    x->lists = lists;
    x->postings = postings[1];
    x->places = places[1];
    return GNOMON_OK;
}
