#include "cuda/filter/exact.cuh"
#include "cuda/join/buckets.h"
#include "cuda/runtime/mma.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace
{

enum {
    SIDE = 64,     /* places of a tile's rows and columns */
    STAGES = 2,    /* chunks on their way */
    THREADS = 128, /* four warps, 32 x 32 pairs each */
    WARPS = THREADS / 32,
    POINT_THREADS = 256,  /* threads of kernels that walk along points */
    OPERAND = SIDE * 128, /* bytes */
    FOUR = 4              /* lanes that compare a pair's keys */
};

/* What a tile's side is, in shared memory. */
struct places {
    uint32_t id[SIDE], key[SIDE];
    float limit[SIDE];
    uint8_t there[SIDE]; /* its point is needed */
};

struct tile {
    uint8_t stage[STAGES][2][OPERAND];
    places row, col;
    uint16_t passed[SIDE * SIDE]; /* row << 8 | column */
    int count;
};

/* A side in the order of a table. */
struct order {
    const uint32_t *keys, *ids;
    int64_t n;
};

struct tiling {
    order p, q;
    bool self;
    int64_t above;
    int64_t row, end;          /* rows that count */
    int64_t groups;            /* of 64 places of P */
    uint8_t *there;            /* of each place of P */
    uint32_t *from, *to;       /* places of Q that a group's rows meet */
    unsigned long long *tiles; /* of a group; then of it and all before */
    unsigned long long *compared;
};

struct pairing {
    tiling t;
    const uint8_t *p_halves, *q_halves;
    int64_t p_padded, q_padded;
    int chunks;
    const float *p_limits, *q_limits;
    const uint32_t *p_keys, *q_keys; /* in all tables */
    int64_t p_stride, q_stride;
    int table;
    gcu_filter_sink sink;
};

/* ---- keys ---- */

/* A thread takes eight tables of a point. */
__global__ void __launch_bounds__(POINT_THREADS)
    keys_kernel(const uint64_t *from, int64_t n, int64_t table, int64_t tables, uint32_t *keys,
                int64_t stride)
{
    const int64_t groups = (tables + 7) / 8, all = (int64_t)gridDim.x * POINT_THREADS;
    for (int64_t at = (int64_t)blockIdx.x * POINT_THREADS + threadIdx.x; at < n * groups;
         at += all) {
        const int64_t i = at % n, t0 = at / n * 8;
        uint32_t *to = keys + i * stride + table + t0;
        for (int t = 0; t < 8 && t0 + t < tables; t++)
            to[t] = (uint32_t)(from[(t0 + t) * n + i] >> 32);
    }
}

__global__ void __launch_bounds__(POINT_THREADS)
    column_kernel(const uint32_t *keys, int64_t n, int64_t stride, int table, uint32_t *to,
                  uint32_t *ids)
{
    const int64_t i = (int64_t)blockIdx.x * POINT_THREADS + threadIdx.x;
    if (i >= n) return;
    to[i] = keys[i * stride + table];
    ids[i] = (uint32_t)i;
}

/* ---- which tiles ---- */

/* The first place from 'from' on whose key is above (or not below) this one. */
template <bool ABOVE>
__device__ __forceinline__ int64_t bound(const order &o, int64_t from, uint32_t key)
{
    int64_t low = from, step = 1;
    const auto before = [&](int64_t at) { return ABOVE ? o.keys[at] <= key : o.keys[at] < key; };
    while (low + step <= o.n && before(low + step - 1)) {
        low += step;
        step *= 2;
    }
    int64_t high = low + step - 1 < o.n ? low + step - 1 : o.n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (before(middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first place of Q whose key is not below: keys are spread evenly, but for large buckets. */
__device__ __forceinline__ int64_t first_of(const order &o, uint32_t key)
{
    int64_t low = 0, high = o.n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (o.keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first place of a bucket whose point is above 'id': in a bucket they ascend. */
__device__ __forceinline__ int64_t behind(const order &o, int64_t begin, int64_t end, int64_t id)
{
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if ((int64_t)o.ids[middle] <= id)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* A block takes a group of places. */
__global__ void __launch_bounds__(SIDE) groups_kernel(const __grid_constant__ tiling t)
{
    __shared__ unsigned from, to;
    const int64_t first = (int64_t)blockIdx.x * SIDE, place = first + threadIdx.x;
    if (threadIdx.x == 0) {
        from = ~0u;
        to = 0;
    }
    __syncthreads();
    unsigned long long count = 0;
    if (place < t.p.n) {
        const uint32_t key = t.p.keys[place], id = t.p.ids[place];
        const bool counts = id >= t.row && id < t.end;
        bool there;
        int64_t begin, end;
        if (t.self) {
            begin = place + 1;
            end = bound<true>(t.p, begin, key);
            /* a column of an earlier row's, too */
            there = end > begin || (place > 0 && t.p.keys[place - 1] == key);
        } else {
            begin = first_of(t.q, key);
            end = bound<true>(t.q, begin, key);
            if (t.above != INT64_MIN) begin = behind(t.q, begin, end, (int64_t)id + t.above);
            there = counts && end > begin;
        }
        t.there[place] = there;
        if (counts && end > begin) {
            count = (unsigned long long)(end - begin);
            atomicMin(&from, (unsigned)begin);
            atomicMax(&to, (unsigned)end);
        }
    }
    for (int d = 16; d > 0; d /= 2)
        count += __shfl_xor_sync(~0u, count, d);
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(t.compared, count);
    __syncthreads();
    if (threadIdx.x > 0) return;
    if (t.self) from = (unsigned)first; /* the first tile's columns are its rows */
    t.from[blockIdx.x] = from;
    t.to[blockIdx.x] = to;
    t.tiles[blockIdx.x] = to == 0 ? 0 : ((unsigned long long)to - from + SIDE - 1) / SIDE;
}

/* ---- tiles ---- */

/* A chunk of the points that are there: eight threads per point. The others' rows hold what was
 * before, and count for nothing. */
__device__ __forceinline__ void fetch(uint32_t to, const uint8_t *halves, int64_t padded, int chunk,
                                      const places &side)
{
    const int part = (int)threadIdx.x % 8;
#pragma unroll
    for (int i = 0; i < SIDE * 8 / THREADS; i++) {
        const int place = i * (THREADS / 8) + (int)threadIdx.x / 8;
        if (!side.there[place]) continue;
        const uint32_t id = side.id[place];
        gcu_copy16(gcu_filter_part(to, place, part),
                   halves + ((int64_t)chunk * padded + id) * 128 + ((part ^ (int)(id & 7)) << 4));
    }
}

/* Rows of a group, by the first 64 threads. */
__device__ __forceinline__ void load_rows(const pairing &m, int64_t group, tile &s)
{
    const int at = (int)threadIdx.x;
    const int64_t place = group * SIDE + at;
    if (at >= SIDE) return;
    const bool any = place < m.t.p.n;
    const uint32_t id = any ? m.t.p.ids[place] : 0;
    s.row.id[at] = id;
    s.row.key[at] = any ? m.t.p.keys[place] : 0;
    s.row.there[at] = any && m.t.there[place];
    s.row.limit[at] = any && id >= m.t.row && id < m.t.end ? m.p_limits[id] : NAN;
}

__device__ __forceinline__ void load_cols(const pairing &m, int64_t first, int64_t to, tile &s)
{
    const int at = (int)threadIdx.x;
    const order &q = m.t.self ? m.t.p : m.t.q;
    const int64_t place = first + at;
    if (at >= SIDE) return;
    const bool any = place < to;
    const uint32_t id = any ? q.ids[place] : 0;
    s.col.id[at] = id;
    s.col.key[at] = any ? q.keys[place] : 0;
    s.col.there[at] = any && (!m.t.self || m.t.there[place]);
    s.col.limit[at] = any ? m.q_limits[id] : NAN;
}

/* Whether two points have met in an earlier table; by four lanes, all of the warp taking part. */
__device__ __forceinline__ bool shared_before(const pairing &m, uint32_t i, uint32_t j, bool there)
{
    const uint32_t *x = m.p_keys + (int64_t)i * m.p_stride;
    const uint32_t *y = m.q_keys + (int64_t)j * m.q_stride;
    const int lane = (int)threadIdx.x % 32;
    bool same = false;
    for (int t0 = 0; t0 < m.table; t0 += 4 * FOUR) {
        const int t = t0 + lane % FOUR * 4;
        if (there && !same && t < m.table) {
            const uint4 a = *reinterpret_cast<const uint4 *>(x + t);
            const uint4 b = *reinterpret_cast<const uint4 *>(y + t);
            const int left = m.table - t;
            same = a.x == b.x || (left > 1 && a.y == b.y) || (left > 2 && a.z == b.z) ||
                   (left > 3 && a.w == b.w);
        }
        const uint32_t four = __ballot_sync(~0u, same) >> (lane & ~(FOUR - 1)) & (1u << FOUR) - 1;
        same = four != 0;
        if (__all_sync(~0u, same || !there)) break;
    }
    return same;
}

/* The pairs that have passed go on, unless they have met before. */
__device__ __forceinline__ void hand_over(const pairing &m, const tile &s)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, count = s.count;
    for (int first = warp * (32 / FOUR); first < count; first += THREADS / FOUR) {
        const int at = first + lane / FOUR;
        const bool there = at < count;
        const int pair = s.passed[there ? at : first];
        const uint32_t i = s.row.id[pair >> 8], j = s.col.id[pair & 255];
        const bool news = !shared_before(m, i, j, there) && there && lane % FOUR == 0;
        const uint32_t all = __ballot_sync(~0u, news);
        if (all == 0) continue;
        unsigned long long to = 0;
        if (lane == 0) to = atomicAdd(m.sink.count, (unsigned long long)__popc(all));
        to = __shfl_sync(~0u, to, 0) + (unsigned)__popc(all & ((1u << lane) - 1));
        if (news && (int64_t)to < m.sink.room) m.sink.pairs[to] = (uint64_t)i << 32 | j;
    }
}

/* A block of threads takes runs of tiles, each group's from left to right. */
__global__ void __launch_bounds__(THREADS) tiles_kernel(const __grid_constant__ pairing m)
{
    extern __shared__ __align__(128) uint8_t shared[];
    tile &s = *reinterpret_cast<tile *>(shared);
    const tiling &t = m.t;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int rows = warp / 2 * 32, cols = warp % 2 * 32;
    const long long all = (long long)t.tiles[t.groups - 1];
    long long run = all / ((long long)gridDim.x * 4);
    run = run < 1 ? 1 : run > 64 ? 64 : run;
    /* whole rows of points fit into the stages, and stay there while only columns change */
    const bool holds = m.chunks <= STAGES;
    for (long long number = (long long)blockIdx.x * run; number < all;
         number += (long long)gridDim.x * run) {
        /* the group of the run's first tile: the first whose end lies beyond */
        int64_t group = 0, above = t.groups - 1;
        while (group < above) {
            const int64_t middle = group + (above - group) / 2;
            if ((long long)t.tiles[middle] > number)
                above = middle;
            else
                group = middle + 1;
        }
        bool fresh = true;
        const long long end = number + run < all ? number + run : all;
        for (long long n = number; n < end; n++) {
            while ((long long)t.tiles[group] <= n) {
                group++;
                fresh = true;
            }
            const long long before = group > 0 ? (long long)t.tiles[group - 1] : 0;
            const int64_t first = (int64_t)t.from[group] + (n - before) * SIDE, to = t.to[group];
            /* of a self-join the first tile's columns are its rows */
            const bool corner = t.self && n == before;
            __syncthreads();
            if (fresh) load_rows(m, group, s);
            load_cols(m, first, to, s);
            if (threadIdx.x == 0) s.count = 0;
            __syncthreads();
            const bool bring = fresh || !holds;
            fresh = false;
            float sum[2][16] = {}; /* [16 rows][4 g + 2 r + x] */
            const auto next = [&](int chunk) {
                if (chunk < m.chunks) {
                    const uint32_t p = gcu_shared_address(s.stage[chunk % STAGES][0]);
                    if (bring) fetch(p, m.p_halves, m.p_padded, chunk, s.row);
                    if (!corner) fetch(p + OPERAND, m.q_halves, m.q_padded, chunk, s.col);
                }
                gcu_copies_commit();
            };
#pragma unroll
            for (int chunk = 0; chunk < STAGES; chunk++)
                next(chunk);
#pragma unroll 1
            for (int chunk = 0; chunk < m.chunks; chunk++) {
                gcu_copies_wait<STAGES - 1>();
                __syncthreads();
                const uint32_t p = gcu_shared_address(s.stage[chunk % STAGES][0]);
                const uint32_t q = corner ? p : p + OPERAND;
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    uint32_t b[2][4]; /* [16 columns] */
#pragma unroll
                    for (int c = 0; c < 2; c++)
                        gcu_load_4_matrices(
                            b[c], gcu_filter_part(q, cols + c * 16 + lane / 16 * 8 + lane % 8,
                                                  2 * k + lane / 8 % 2));
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        uint32_t a[4];
                        gcu_load_4_matrices(
                            a, gcu_filter_part(p, rows + r * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
                        for (int g = 0; g < 4; g++)
                            gcu_mma(sum[r] + 4 * g, a, b[g / 2][g % 2 * 2],
                                    b[g / 2][g % 2 * 2 + 1]);
                    }
                }
                if (chunk + STAGES < m.chunks) __syncthreads(); /* the stage is free */
                next(chunk + STAGES);
            }
            const int64_t row = group * SIDE;
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int e = 0; e < 16; e++) {
                    const int i = rows + r * 16 + lane / 4 + e % 4 / 2 * 8;
                    const int j = cols + e / 4 * 8 + lane % 4 * 2 + e % 2;
                    /* not so where one of them is not to be met: its limit is no number */
                    if (!(sum[r][e] >= s.row.limit[i] + s.col.limit[j])) continue;
                    if (s.row.key[i] != s.col.key[j]) continue;
                    if (t.self ? first + j <= row + i
                               : (int64_t)s.col.id[j] - (int64_t)s.row.id[i] <= t.above)
                        continue;
                    s.passed[atomicAdd(&s.count, 1)] = (uint16_t)(i << 8 | j);
                }
            __syncthreads();
            hand_over(m, s);
        }
    }
}

/* ---- lengths ---- */

/* A half of a warp a point. */
template <bool FLOATS>
__global__ void __launch_bounds__(POINT_THREADS)
    squares_kernel(const __grid_constant__ exact_view x, int64_t n, int64_t cols, double *most)
{
    const int64_t at = ((int64_t)blockIdx.x * POINT_THREADS + threadIdx.x) / 16;
    const int64_t all = (int64_t)gridDim.x * (POINT_THREADS / 16);
    double largest = 0;
    for (int64_t first = at - at % 2; first < n; first += all) {
        const int64_t i = first + at % 2 < n ? first + at % 2 : n - 1;
        const exact_row row = exact_row_of(x, i);
        const double sum =
            exact_sum<EXACT_SQUARES, FLOATS>(row, 1, row, 1, cols, (int)threadIdx.x % 16);
        largest = fmax(largest, sum);
    }
    /* numbers that are not negative are in the order of their bits */
    if (threadIdx.x % 16 == 0 && largest > 0)
        atomicMax(reinterpret_cast<unsigned long long *>(most),
                  (unsigned long long)__double_as_longlong(largest));
}

unsigned grid_of(int64_t items)
{
    const int64_t most = 1 << 16, blocks = (items + POINT_THREADS - 1) / POINT_THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* ---- where everything lies in the work ---- */

struct sorting {
    uint32_t *keys[2], *ids[2];
};

struct layout {
    sorting p, q;
    uint8_t *there;
    uint32_t *from, *to;
    unsigned long long *tiles, *ends;
    void *temporary;
    size_t temporary_bytes, all;
};

layout layout_of(int64_t p_rows, int64_t q_rows, bool self, void *work)
{
    layout l = {};
    uint8_t *base = static_cast<uint8_t *>(work);
    const auto carve = [&](int64_t bytes) {
        uint8_t *part = base + l.all;
        l.all += ((size_t)bytes + 255) / 256 * 256;
        return part;
    };
    const auto sorted = [&](int64_t rows) {
        sorting s;
        for (int i = 0; i < 2; i++) {
            s.keys[i] = reinterpret_cast<uint32_t *>(carve(rows * 4));
            s.ids[i] = reinterpret_cast<uint32_t *>(carve(rows * 4));
        }
        return s;
    };
    const int64_t groups = (p_rows + SIDE - 1) / SIDE;
    l.p = sorted(p_rows);
    if (!self) l.q = sorted(q_rows);
    l.there = carve(p_rows);
    l.from = reinterpret_cast<uint32_t *>(carve(groups * 4));
    l.to = reinterpret_cast<uint32_t *>(carve(groups * 4));
    l.tiles = reinterpret_cast<unsigned long long *>(carve(groups * 8));
    l.ends = reinterpret_cast<unsigned long long *>(carve(groups * 8));
    size_t of_sort = 0, of_sum = 0;
    const int64_t most = self || p_rows > q_rows ? p_rows : q_rows;
    cub::DeviceRadixSort::SortPairs(nullptr, of_sort, l.p.keys[0], l.p.keys[1], l.p.ids[0],
                                    l.p.ids[1], most);
    cub::DeviceScan::InclusiveSum(nullptr, of_sum, l.tiles, l.ends, groups);
    l.temporary_bytes = of_sort > of_sum ? of_sort : of_sum;
    l.temporary = carve((int64_t)l.temporary_bytes);
    return l;
}

cudaError_t sort(const gcu_bucket_side &side, int64_t table, const sorting &s, const layout &l,
                 order *out, cudaStream_t stream)
{
    const int64_t n = side.points->rows;
    size_t bytes = l.temporary_bytes;
    column_kernel<<<(unsigned)((n + POINT_THREADS - 1) / POINT_THREADS), POINT_THREADS, 0,
                    stream>>>(side.keys, n, side.stride, (int)table, s.keys[0], s.ids[0]);
    const cudaError_t error = cudaGetLastError();
    *out = {s.keys[1], s.ids[1], n};
    return error != cudaSuccess
               ? error
               : cub::DeviceRadixSort::SortPairs(l.temporary, bytes, s.keys[0], s.keys[1], s.ids[0],
                                                 s.ids[1], n, 0, 32, stream);
}

} // namespace

cudaError_t gcu_bucket_keys(const uint64_t *from, int64_t n, int64_t table, int64_t tables,
                            uint32_t *keys, int64_t stride, cudaStream_t stream)
{
    if (n == 0 || tables == 0) return cudaSuccess;
    keys_kernel<<<grid_of(n * ((tables + 7) / 8)), POINT_THREADS, 0, stream>>>(
        from, n, table, tables, keys, stride);
    return cudaGetLastError();
}

size_t gcu_bucket_work(int64_t p_rows, int64_t q_rows, bool self)
{
    return layout_of(p_rows, q_rows, self, nullptr).all;
}

cudaError_t gcu_bucket_pairs(const gcu_bucket_call *c, gcu_filter_sink sink, const gcu_gpu *gpu,
                             cudaStream_t stream)
{
    const int64_t n = c->p.points->rows, others = c->q.points->rows;
    if (n == 0 || others == 0) return cudaSuccess;
    const layout l = layout_of(n, others, c->self, c->work);
    pairing m = {};
    tiling &t = m.t;
    cudaError_t error = sort(c->p, c->table, l.p, l, &t.p, stream);
    if (error == cudaSuccess && !c->self) error = sort(c->q, c->table, l.q, l, &t.q, stream);
    if (error != cudaSuccess) return error;
    t.self = c->self;
    t.above = c->above;
    t.row = c->row;
    t.end = c->end;
    t.groups = (n + SIDE - 1) / SIDE;
    t.there = l.there;
    t.from = l.from;
    t.to = l.to;
    t.tiles = l.tiles;
    t.compared = c->compared;
    groups_kernel<<<(unsigned)t.groups, SIDE, 0, stream>>>(t);
    size_t bytes = l.temporary_bytes;
    error = cudaGetLastError();
    if (error == cudaSuccess)
        error =
            cub::DeviceScan::InclusiveSum(l.temporary, bytes, l.tiles, l.ends, t.groups, stream);
    if (error != cudaSuccess) return error;
    t.tiles = l.ends;
    m.p_halves = c->p.points->halves;
    m.q_halves = c->q.points->halves;
    m.p_padded = c->p.points->padded;
    m.q_padded = c->q.points->padded;
    m.chunks = (int)c->p.points->chunks;
    m.p_limits = c->p.limits;
    m.q_limits = c->q.limits;
    m.p_keys = c->p.keys;
    m.q_keys = c->q.keys;
    m.p_stride = c->p.stride;
    m.q_stride = c->q.stride;
    m.table = (int)c->table;
    m.sink = sink;
    const int shared = (int)sizeof(tile);
    error = cudaFuncSetAttribute(tiles_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    int each = 1;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, tiles_kernel, THREADS, shared);
    if (error != cudaSuccess) return error;
    tiles_kernel<<<(unsigned)(gpu->sms * (each > 0 ? each : 1)), THREADS, shared, stream>>>(m);
    return cudaGetLastError();
}

cudaError_t gcu_bucket_squares(const gnomon_matrix *points, double *most, cudaStream_t stream)
{
    if (points->rows == 0) return cudaSuccess;
    const unsigned grid = grid_of(points->rows * 16);
    if (points->dtype == GNOMON_F32 && points->col_stride == 1)
        squares_kernel<true><<<grid, POINT_THREADS, 0, stream>>>(exact_view_of(points),
                                                                 points->rows, points->cols, most);
    else
        squares_kernel<false><<<grid, POINT_THREADS, 0, stream>>>(exact_view_of(points),
                                                                  points->rows, points->cols, most);
    return cudaGetLastError();
}
