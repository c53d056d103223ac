/* Keys of bands: the bits of src/dedup/bands.c.
 *
 * A warp takes a set and up to 256 functions at a time, up to eight a lane, whose least values stay
 * in registers; a thread makes the key of a band. Sets whose members, least values and keys don't
 * fit in the GPU's memory, or in a few hundred MiB of it, go there in parts. */
#include "cuda/dedup/dedup.h"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/transfer.h"

#include "base/arithmetic.h"

enum { WARP = 32, WARPS = 8, THREADS = 256, LANES = 8 };

static const double part_most = 512 << 20;

struct keys {
    const uint64_t *members;
    const int64_t *begins, *ends;
    const uint32_t *documents;
    const uint32_t *constants; /* flip, low and high of each function */
    uint32_t *least;           /* functions a set */
    uint64_t *keys;            /* a band's after the other's */
    int64_t count, functions, bands, rows;
};

/* EACH functions a lane, from 'first' on. */
template <int EACH> static __device__ void take_least(const keys &k, int64_t set, int64_t first)
{
    const int64_t lane = threadIdx.x % WARP;
    uint32_t flip[EACH], low[EACH], high[EACH], least[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int64_t f = first + e * WARP + lane < k.functions ? first + e * WARP + lane : 0;
        flip[e] = k.constants[3 * f];
        low[e] = k.constants[3 * f + 1];
        high[e] = k.constants[3 * f + 2];
        least[e] = ~0u;
    }
    for (int64_t m = k.begins[set]; m < k.ends[set]; m++) {
        const uint64_t member = __ldg(k.members + m);
        const uint32_t lower = (uint32_t)member, upper = (uint32_t)(member >> 32);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            uint32_t u = (lower ^ flip[e]) * low[e];
            u = ((u ^ (u >> 15)) + upper) * high[e];
            least[e] = min(least[e], u ^ (u >> 16));
        }
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int64_t f = first + e * WARP + lane;
        if (f < k.functions) k.least[set * k.functions + f] = least[e];
    }
}

static __global__ void __launch_bounds__(WARP *WARPS) least_kernel(keys k)
{
    const int64_t set = (int64_t)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (set >= k.count) return;
    for (int64_t first = 0; first < k.functions; first += WARP * LANES) {
        const int64_t left = k.functions - first;
        if (left > 4 * WARP)
            take_least<LANES>(k, set, first);
        else if (left > 2 * WARP)
            take_least<4>(k, set, first);
        else if (left > WARP)
            take_least<2>(k, set, first);
        else
            take_least<1>(k, set, first);
    }
}

static __global__ void __launch_bounds__(THREADS) keys_kernel(keys k)
{
    GCU_FOR_EACH(at, k.count * k.bands)
    {
        const int64_t band = at / k.count, set = at % k.count;
        const uint32_t *row = k.least + set * k.functions + band * k.rows;
        uint64_t key = 0;
        for (int64_t r = 0; r < k.rows; r++) {
            key = (key ^ row[r]) * 0x9e3779b97f4a7c15ull;
            key ^= key >> 32;
        }
        k.keys[at] = gcu_mix64(key) >> 32 << 32 | k.documents[set];
    }
}

/* A part of a job on the GPU. */
struct part {
    gcu_state *s;
    const gnomon_keys_job *job;
    gcu_why why;
    int64_t first, count, members;
    cudaStream_t stream;
    keys k;
    void *there[6];
};

static double bytes_of(const gnomon_keys_job *job, int64_t count, int64_t members)
{
    const double functions = (double)job->bands * (double)job->rows;
    return 8.0 * (double)members + 12 * functions +
           (double)count * (8 * 2 + 4 + 4 * functions + 8 * (double)job->bands) + 8192;
}

static gnomon_status upload(part *p, const void *from, gnomon_dtype dtype, int64_t count, void *to)
{
    const gnomon_matrix here = gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count);
    gnomon_matrix there = gnomon_matrix_rowmajor(to, dtype, 1, count);
    there.memory = GNOMON_DEVICE_MEMORY;
    return gcu_upload(p->s, gcu_transfer_of(p->job), &here, GCU_PAGEABLE, &there, p->stream,
                      p->why);
}

template <typename T> static gnomon_status take_room(part *p, int at, int64_t count, T **data)
{
    const size_t bytes = (size_t)count * sizeof(T);
    const cudaError_t error = gcu_alloc(p->s, &p->there[at], bytes, p->stream);
    *data = static_cast<T *>(p->there[at]);
    if (error == cudaErrorMemoryAllocation)
        return gcu_fail(p->why, GNOMON_ERROR_MEMORY,
                        "sets need %zu bytes more of the GPU's memory than are free", bytes);
    GCU_TRY(p->why, error);
    return GNOMON_OK;
}

static gnomon_status work(part *p)
{
    const gnomon_keys_job *job = p->job;
    keys *k = &p->k;
    uint64_t *members = nullptr;
    int64_t *bounds = nullptr;
    uint32_t *documents = nullptr, *constants = nullptr;
    const int64_t base = job->begins[p->first];
    k->count = p->count;
    k->bands = job->bands;
    k->rows = job->rows;
    k->functions = job->bands * job->rows;
    gnomon_status status = take_room(p, 0, p->members, &members);
    if (status == GNOMON_OK) status = take_room(p, 1, 2 * p->count, &bounds);
    if (status == GNOMON_OK) status = take_room(p, 2, p->count, &documents);
    if (status == GNOMON_OK) status = take_room(p, 3, 3 * k->functions, &constants);
    if (status == GNOMON_OK) status = take_room(p, 4, p->count * k->functions, &k->least);
    if (status == GNOMON_OK) status = take_room(p, 5, p->count * k->bands, &k->keys);
    if (status == GNOMON_OK)
        status = upload(p, job->members + base, GNOMON_I64, p->members, members);
    if (status == GNOMON_OK)
        status = upload(p, job->begins + p->first, GNOMON_I64, p->count, bounds);
    if (status == GNOMON_OK)
        status = upload(p, job->ends + p->first, GNOMON_I64, p->count, bounds + p->count);
    if (status == GNOMON_OK)
        status = upload(p, job->documents + p->first, GNOMON_I32, p->count, documents);
    if (status == GNOMON_OK)
        status = upload(p, job->constants, GNOMON_I32, 3 * k->functions, constants);
    if (status != GNOMON_OK) return status;
    k->members = members - base;
    k->begins = bounds;
    k->ends = bounds + p->count;
    k->documents = documents;
    k->constants = constants;
    least_kernel<<<(unsigned)((p->count + WARPS - 1) / WARPS), WARP * WARPS, 0, p->stream>>>(*k);
    keys_kernel<<<gcu_grid(p->count * k->bands, THREADS), THREADS, 0, p->stream>>>(*k);
    GCU_TRY(p->why, cudaGetLastError());
    gnomon_matrix there = gnomon_matrix_rowmajor(k->keys, GNOMON_I64, k->bands, p->count);
    gnomon_matrix here =
        gnomon_matrix_rowmajor(job->keys + p->first, GNOMON_I64, k->bands, p->count);
    there.memory = GNOMON_DEVICE_MEMORY;
    here.row_stride = job->stride;
    return gcu_download(p->s, gcu_transfer_of(job), &there, &here, GCU_PAGEABLE, p->stream, p->why);
}

gnomon_status gcu_dedup_keys(gcu_state *s, const gnomon_keys_job *job, gcu_why why)
{
    const double free = (double)gcu_free_memory(s) / 16 * 15;
    const double most = free < part_most ? free : part_most;
    for (int64_t first = 0, count; first < job->count; first += count) {
        count = 0;
        int64_t members = 0;
        while (first + count < job->count) {
            const int64_t more = job->ends[first + count] - job->begins[first];
            const double bytes = bytes_of(job, count + 1, more);
            if (bytes > (count == 0 ? free : most)) break;
            members = more;
            count++;
        }
        if (count == 0)
            return gcu_fail(why, GNOMON_ERROR_MEMORY,
                            "a set needs %.0f bytes of the GPU's memory, %.0f are free",
                            bytes_of(job, 1, job->ends[first] - job->begins[first]), free);
        part p = {s, job, why, first, count, members, s->stream, {}, {}};
        const gnomon_status status = work(&p);
        for (void *data : p.there)
            gcu_free(data, p.stream);
        if (status != GNOMON_OK) return status;
        GCU_TRY(why, cudaStreamSynchronize(p.stream));
    }
    return GNOMON_OK;
}
