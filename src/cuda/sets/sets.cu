/* Sets on their way to the GPU. */
#include "cuda/runtime/grid.cuh"
#include "cuda/sets/sets.h"

enum {
    THREADS = 256,
    EACH = 2048,     /* entries of a block that looks for their rows */
    COUNTED = 32768, /* of one that counts them */
    HELD_BITS = 11,
    HELD = 1 << HELD_BITS
};
static const uint32_t none = UINT32_MAX; /* an entry that is no member */

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20);
}

/* ---- entries ---- */

/* Whether value e is not 0; *bad: it is not finite. */
static __device__ __forceinline__ bool is_there(const void *values, gnomon_dtype dtype, int64_t e,
                                                bool *bad)
{
    switch (dtype) {
    case GNOMON_F32: {
        const uint32_t v = static_cast<const uint32_t *>(values)[e] & 0x7fffffffu;
        *bad = v >= 0x7f800000u;
        return v != 0;
    }
    case GNOMON_F64: {
        const uint64_t v = static_cast<const uint64_t *>(values)[e] & 0x7fffffffffffffffull;
        *bad = v >= 0x7ff0000000000000ull;
        return v != 0;
    }
    case GNOMON_F16:
    case GNOMON_BF16: {
        const unsigned v = static_cast<const uint16_t *>(values)[e] & 0x7fffu;
        *bad = v >= (dtype == GNOMON_F16 ? 0x7c00u : 0x7f80u);
        return v != 0;
    }
    case GNOMON_I8:
    case GNOMON_U8:
        return static_cast<const uint8_t *>(values)[e] != 0;
    case GNOMON_I16:
    case GNOMON_U16:
        return static_cast<const uint16_t *>(values)[e] != 0;
    case GNOMON_I32:
    case GNOMON_U32:
        return static_cast<const uint32_t *>(values)[e] != 0;
    default:
        return static_cast<const uint64_t *>(values)[e] != 0;
    }
}

/* What a side's entries are: as 32-bit numbers, which ids are at first, or whole with their places
 * beside. */
struct entries {
    const int64_t *indices; /* whole; else NULL */
    const void *values;
    gnomon_dtype dtype;
    int64_t count, cols, first; /* of all entries */
    uint32_t *ids;
    uint64_t *keys;
    unsigned *fault;
};

static __global__ void __launch_bounds__(THREADS) read_kernel(entries x)
{
    GCU_FOR_EACH(e, x.count)
    {
        const int64_t index = x.indices ? x.indices[e] : (int64_t)x.ids[x.first + e];
        bool bad = false;
        const bool there = is_there(x.values, x.dtype, e, &bad);
        if (bad || index < 0 || index >= x.cols) {
            *x.fault = 1;
        } else if (x.indices) {
            x.keys[x.first + e] = there ? (uint64_t)index : ~0ull;
            x.ids[x.first + e] = (uint32_t)(x.first + e);
        } else if (!there) {
            x.ids[x.first + e] = none;
        }
    }
}

static __global__ void __launch_bounds__(THREADS)
    shift_kernel(int64_t *offsets, int64_t count, int64_t by)
{
    GCU_FOR_EACH(i, count) offsets[i] += by;
}

/* ---- few of very many possible members: numbered in their order first ---- */

static __global__ void __launch_bounds__(THREADS)
    heads_kernel(const uint64_t *keys, int64_t count, int64_t *heads)
{
    GCU_FOR_EACH(k, count + 1)
    heads[k] = k < count && keys[k] != ~0ull && (k == 0 || keys[k] != keys[k - 1]);
}

/* heads: how many began before. */
static __global__ void __launch_bounds__(THREADS)
    spread_kernel(const uint64_t *keys, const uint32_t *from, const int64_t *heads, int64_t count,
                  uint32_t *ids)
{
    GCU_FOR_EACH(k, count) ids[from[k]] = keys[k] == ~0ull ? none : (uint32_t)(heads[k + 1] - 1);
}

/* ---- by how often they occur ---- */

/* A block first counts by itself those that come first to a place of its table: what is very common
 * is among them, and would make all blocks wait for each other. */
static __global__ void __launch_bounds__(THREADS)
    count_kernel(const uint32_t *ids, int64_t count, unsigned *counts)
{
    __shared__ uint32_t holder[HELD];
    __shared__ unsigned held[HELD];
    const int64_t begin = (int64_t)blockIdx.x * COUNTED;
    const int64_t end = begin + COUNTED < count ? begin + COUNTED : count;
    for (int place = threadIdx.x; place < HELD; place += THREADS) {
        holder[place] = none;
        held[place] = 0;
    }
    __syncthreads();
    for (int64_t e = begin + threadIdx.x; e < end; e += THREADS) {
        const uint32_t id = ids[e];
        if (id == none) continue;
        const uint32_t place = id * 0x9e3779b1u >> (32 - HELD_BITS);
        const uint32_t before = atomicCAS(&holder[place], none, id);
        if (before == none || before == id)
            atomicAdd(&held[place], 1u);
        else
            atomicAdd(counts + id, 1u);
    }
    __syncthreads();
    for (int place = threadIdx.x; place < HELD; place += THREADS)
        if (held[place] > 0) atomicAdd(counts + holder[place], held[place]);
}

static __global__ void __launch_bounds__(THREADS)
    rarity_kernel(const unsigned *counts, int64_t numbers, uint64_t *keys)
{
    GCU_FOR_EACH(id, numbers) keys[id] = (uint64_t)counts[id] << 32 | (uint64_t)id;
}

static __global__ void __launch_bounds__(THREADS)
    rank_kernel(const uint64_t *keys, int64_t numbers, uint32_t *ranks)
{
    GCU_FOR_EACH(k, numbers) ranks[(uint32_t)keys[k]] = (uint32_t)k;
}

/* keys = row << bits | number, ~0 where there is no member. */
static __global__ void __launch_bounds__(THREADS)
    row_kernel(const uint32_t *ids, const uint32_t *ranks, const int64_t *offsets, int64_t rows,
               int64_t count, int bits, uint64_t *keys)
{
    __shared__ int64_t ends[2];
    const int64_t begin = (int64_t)blockIdx.x * EACH;
    const int64_t end = begin + EACH < count ? begin + EACH : count;
    if (threadIdx.x < 2)
        ends[threadIdx.x] = gcu_line_at(offsets, 0, rows, threadIdx.x == 0 ? begin : end - 1);
    __syncthreads();
    for (int64_t e = begin + threadIdx.x; e < end; e += THREADS) {
        const uint32_t id = ids[e];
        const int64_t row = gcu_line_at(offsets, ends[0], ends[1] + 1, e);
        keys[e] = id == none ? ~0ull : (uint64_t)row << bits | (uint64_t)ranks[id];
    }
}

static __global__ void __launch_bounds__(THREADS)
    members_kernel(const uint64_t *keys, int64_t count, int bits, int64_t numbers,
                   uint32_t *members)
{
    const uint64_t mask = ((uint64_t)1 << bits) - 1;
    GCU_FOR_EACH(e, count + 1)
    members[e] = e < count ? (uint32_t)(keys[e] & mask) : (uint32_t)numbers;
}

static __global__ void __launch_bounds__(THREADS)
    offsets_kernel(const uint64_t *keys, int64_t count, int bits, int64_t rows, int64_t *offsets)
{
    GCU_FOR_EACH(i, rows + 1)
    offsets[i] = i < rows ? gcu_keys_below(keys, count, (uint64_t)i << bits) : count;
}

static __global__ void __launch_bounds__(THREADS)
    most_kernel(const int64_t *offsets, int64_t rows, unsigned long long *most)
{
    unsigned long long mine = 0;
    GCU_FOR_EACH(i, rows)
    {
        const unsigned long long size = (unsigned long long)(offsets[i + 1] - offsets[i]);
        if (size > mine) mine = size;
    }
    for (int step = 16; step > 0; step /= 2)
        mine = max(mine, __shfl_xor_sync(~0u, mine, step));
    if (threadIdx.x % 32 == 0 && mine > 0) atomicMax(most, mine);
}

/* ---- the sides ---- */

struct bringing {
    gcu_set_memory *m;
    gcu_transfer transfer;
    const gnomon_csr *side[2];
    int64_t rows, count, cols;
    int64_t *offsets;
    uint32_t *ids;
    uint64_t *keys[2];
    unsigned *fault;
    int64_t numbers;
};

/* Whether members are numbered by sorting them. */
static bool is_thin(int64_t cols, int64_t count)
{
    return cols > 65536 && cols / 2 > count;
}

static gnomon_status upload(bringing *b, const void *from, gnomon_dtype dtype, int64_t count,
                            const char *name, void *to)
{
    gcu_set_memory *m = b->m;
    gnomon_matrix host = gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count);
    gnomon_matrix there = gnomon_matrix_rowmajor(to, dtype, 1, count);
    gcu_place place;
    if (count == 0) return GNOMON_OK;
    there.memory = GNOMON_DEVICE_MEMORY;
    const gnomon_status status = gcu_place_of(m->s, &host, name, &place, m->why);
    if (status != GNOMON_OK) return status;
    return gcu_upload(m->s, b->transfer, &host, place, &there, m->stream, m->why);
}

static gnomon_status bring_side(bringing *b, int which, int64_t first_row, int64_t first)
{
    static const char *const names[2][3] = {{"p.offsets", "p.indices", "p.values"},
                                            {"q.offsets", "q.indices", "q.values"}};
    gcu_set_memory *m = b->m;
    const gnomon_csr *csr = b->side[which];
    const int64_t count = gcu_set_entries(csr);
    const int held = m->count;
    int64_t *indices = nullptr;
    void *values = nullptr;
    if (csr->rows == 0) return GNOMON_OK;
    int64_t *offsets = b->offsets + first_row;
    gnomon_status status = b->keys[0] ? gcu_set_room(m, count, &indices) : GNOMON_OK;
    if (status == GNOMON_OK)
        status = gcu_set_alloc(m, (size_t)count * gnomon_dtype_size(csr->dtype), &values);
    if (status == GNOMON_OK)
        status = upload(b, csr->offsets, GNOMON_I64, csr->rows + 1, names[which][0], offsets);
    if (status == GNOMON_OK)
        status = indices ? upload(b, csr->indices, GNOMON_I64, count, names[which][1], indices)
                         : gcu_upload_u32(m->s, b->transfer, csr->indices, count, b->ids + first,
                                          m->stream, m->why);
    if (status == GNOMON_OK)
        status = upload(b, csr->values, csr->dtype, count, names[which][2], values);
    if (status != GNOMON_OK) return status;
    shift_kernel<<<grid_of(csr->rows + 1), THREADS, 0, m->stream>>>(offsets, csr->rows + 1,
                                                                    first - csr->offsets[0]);
    const entries x = {indices, values, csr->dtype, count,   b->cols,
                       first,   b->ids, b->keys[0], b->fault};
    read_kernel<<<grid_of(count), THREADS, 0, m->stream>>>(x);
    GCU_TRY(m->why, cudaGetLastError());
    gcu_set_free(m, held);
    return GNOMON_OK;
}

/* Of very many possible members: ids become places among those there are. */
static gnomon_status thin_out(bringing *b)
{
    gcu_set_memory *m = b->m;
    const int held = m->count;
    uint32_t *from = nullptr;
    int64_t *heads = nullptr;
    gnomon_status status = gcu_set_room(m, b->count, &from);
    if (status == GNOMON_OK) status = gcu_set_room(m, b->count + 1, &heads);
    if (status != GNOMON_OK) return status;
    uint32_t *const places[2] = {b->ids, from};
    status = gcu_set_sort_pairs(m, b->keys, places, b->count, 0, 64);
    if (status != GNOMON_OK) return status;
    heads_kernel<<<grid_of(b->count + 1), THREADS, 0, m->stream>>>(b->keys[1], b->count, heads);
    status = gcu_set_sum(m, heads, b->count + 1);
    if (status != GNOMON_OK) return status;
    spread_kernel<<<grid_of(b->count), THREADS, 0, m->stream>>>(b->keys[1], from, heads, b->count,
                                                                b->ids);
    GCU_TRY(m->why, cudaGetLastError());
    GCU_TRY(m->why,
            cudaMemcpyAsync(&b->numbers, heads + b->count, 8, cudaMemcpyDeviceToHost, m->stream));
    GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
    gcu_set_free(m, held);
    return GNOMON_OK;
}

/* ids become numbers, and keys[1] rows and numbers in order. */
static gnomon_status number(bringing *b, int bits)
{
    gcu_set_memory *m = b->m;
    const int held = m->count;
    const int64_t numbers = b->numbers;
    unsigned *counts = nullptr;
    uint32_t *ranks = nullptr;
    uint64_t *keys[2] = {nullptr, nullptr};
    gnomon_status status = gcu_set_room(m, numbers, &counts);
    if (status == GNOMON_OK) status = gcu_set_room(m, numbers, &ranks);
    if (status == GNOMON_OK) status = gcu_set_room(m, numbers, &keys[0]);
    if (status == GNOMON_OK) status = gcu_set_room(m, numbers, &keys[1]);
    if (status != GNOMON_OK) return status;
    GCU_TRY(m->why, cudaMemsetAsync(counts, 0, (size_t)numbers * sizeof *counts, m->stream));
    if (b->count > 0)
        count_kernel<<<(unsigned)((b->count + COUNTED - 1) / COUNTED), THREADS, 0, m->stream>>>(
            b->ids, b->count, counts);
    rarity_kernel<<<grid_of(numbers), THREADS, 0, m->stream>>>(counts, numbers, keys[0]);
    GCU_TRY(m->why, cudaGetLastError());
    status = gcu_set_sort(m, keys, numbers, 32, 32 + gcu_set_bits(b->count + 1));
    if (status != GNOMON_OK) return status;
    rank_kernel<<<grid_of(numbers), THREADS, 0, m->stream>>>(keys[1], numbers, ranks);
    if (b->count > 0)
        row_kernel<<<(unsigned)((b->count + EACH - 1) / EACH), THREADS, 0, m->stream>>>(
            b->ids, ranks, b->offsets, b->rows, b->count, bits, b->keys[0]);
    GCU_TRY(m->why, cudaGetLastError());
    gcu_set_free(m, held);
    /* entries that are no members come last */
    return gcu_set_sort(m, b->keys, b->count, 0, bits + gcu_set_bits(b->rows + 1));
}

static gnomon_status finish(bringing *b, int bits, gcu_sets *out)
{
    gcu_set_memory *m = b->m;
    unsigned long long *most = nullptr, size = 0;
    uint64_t last = 0;
    gnomon_status status = gcu_set_unite(m, b->keys[1], b->keys[0], b->count, &out->entries);
    if (status != GNOMON_OK) return status;
    if (out->entries > 0) {
        GCU_TRY(m->why, cudaMemcpyAsync(&last, b->keys[0] + out->entries - 1, 8,
                                        cudaMemcpyDeviceToHost, m->stream));
        GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
        if (last == ~0ull) out->entries--;
    }
    const int held = m->count;
    status = gcu_set_room(m, 1, &most);
    if (status != GNOMON_OK) return status;
    out->rows = b->rows;
    out->numbers = b->numbers;
    GCU_TRY(m->why, cudaMemsetAsync(most, 0, 8, m->stream));
    members_kernel<<<grid_of(out->entries + 1), THREADS, 0, m->stream>>>(
        b->keys[0], out->entries, bits, b->numbers, out->members);
    offsets_kernel<<<grid_of(b->rows + 1), THREADS, 0, m->stream>>>(b->keys[0], out->entries, bits,
                                                                    b->rows, out->offsets);
    most_kernel<<<grid_of(b->rows), THREADS, 0, m->stream>>>(out->offsets, b->rows, most);
    GCU_TRY(m->why, cudaGetLastError());
    GCU_TRY(m->why, cudaMemcpyAsync(&size, most, 8, cudaMemcpyDeviceToHost, m->stream));
    GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
    gcu_set_free(m, held);
    out->most = (int64_t)size;
    return GNOMON_OK;
}

static gnomon_status bring(bringing *b, gcu_sets *out, bool *faulty)
{
    gcu_set_memory *m = b->m;
    const bool thin = is_thin(b->cols, b->count);
    unsigned fault = 0;
    gnomon_status status = gcu_set_room(m, b->rows + 1, &b->offsets);
    if (status == GNOMON_OK) status = gcu_set_room(m, b->count, &b->ids);
    if (status == GNOMON_OK) status = gcu_set_room(m, 1, &b->fault);
    if (status == GNOMON_OK && thin) status = gcu_set_room(m, b->count, &b->keys[0]);
    if (status != GNOMON_OK) return status;
    GCU_TRY(m->why, cudaMemsetAsync(b->fault, 0, sizeof fault, m->stream));
    GCU_TRY(m->why, cudaMemsetAsync(b->offsets, 0, (size_t)(b->rows + 1) * 8, m->stream));
    status = bring_side(b, 0, 0, 0);
    if (status == GNOMON_OK && b->side[1])
        status = bring_side(b, 1, b->side[0]->rows, gcu_set_entries(b->side[0]));
    if (status != GNOMON_OK) return status;
    GCU_TRY(m->why,
            cudaMemcpyAsync(&fault, b->fault, sizeof fault, cudaMemcpyDeviceToHost, m->stream));
    GCU_TRY(m->why, cudaStreamSynchronize(m->stream));
    *faulty = fault != 0;
    if (*faulty) return GNOMON_OK;
    b->numbers = b->cols;
    if (!thin) status = gcu_set_room(m, b->count, &b->keys[0]);
    if (status == GNOMON_OK) status = gcu_set_room(m, b->count, &b->keys[1]);
    if (status == GNOMON_OK && thin) status = thin_out(b);
    const int bits = gcu_set_bits(b->numbers);
    if (status == GNOMON_OK) status = number(b, bits);
    return status == GNOMON_OK ? finish(b, bits, out) : status;
}

double gcu_sets_bytes(const gnomon_csr *p, const gnomon_csr *q)
{
    double count = 0, rows = 1;
    for (const gnomon_csr *csr : {p, q}) {
        if (!csr) continue;
        count += (double)gcu_set_entries(csr);
        rows += (double)csr->rows;
    }
    double numbers = (double)p->cols;
    if (numbers > 65536 && numbers / 2 > count) numbers = count;
    /* entries as they come, or sorted twice with places, and what a sort works in */
    return 34 * count + 24 * rows + 24 * numbers + (1 << 20);
}

gnomon_status gcu_sets_bring(gcu_set_memory *m, gcu_transfer transfer, const gnomon_csr *p,
                             const gnomon_csr *q, gcu_sets *out, bool *faulty)
{
    bringing b = {};
    b.m = m;
    b.transfer = transfer;
    b.side[0] = p;
    b.side[1] = q;
    b.rows = p->rows + (q ? q->rows : 0);
    b.count = gcu_set_entries(p) + (q ? gcu_set_entries(q) : 0);
    b.cols = p->cols;
    *out = gcu_sets{};
    *faulty = false;
    gnomon_status status = gcu_set_room(m, b.rows + 1, &out->offsets);
    if (status == GNOMON_OK) status = gcu_set_room(m, b.count + 1, &out->members);
    const int held = m->count;
    if (status == GNOMON_OK) status = bring(&b, out, faulty);
    gcu_set_free(m, held);
    return status;
}
