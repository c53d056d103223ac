/* Sums by the few nonzeros of S's columns: a warp takes a row of x, its sums in shared memory. */
#include "base/arithmetic.h"
#include "cuda/project/csr/csr.h"
#include "cuda/runtime/grid.cuh"

enum {
    AHEAD = 4,              /* times 32 codes are on their way */
    MOST_WARPS = 8,         /* of a block */
    ENOUGH_SMEM = 48 << 10, /* a block's sums, where a row's are fewer */
    MOST_GRID = 1 << 20,
    SHARES = 64 /* warps that share a long row */
};

struct places {
    int64_t row, rows; /* of S */
    int64_t each;      /* rows of a warp */
    int64_t shift;     /* to be added to x's columns: those of the table */
};

/* What 32 lanes are to add: those that meet in one sum take turns, in the lanes' order. */
struct turns {
    int mine, last;
};

static __device__ __forceinline__ turns take_turns(uint32_t at, bool has)
{
    const int lane = threadIdx.x % 32;
    const uint32_t peers = __match_any_sync(0xFFFFFFFFu, has ? at : 0xFFFFFFFFu - lane);
    turns t;
    t.mine = has ? __popc(peers & ((1u << lane) - 1)) : 0;
    t.last = (int)__reduce_max_sync(0xFFFFFFFFu, (unsigned)t.mine);
    return t;
}

template <typename V>
static __device__ __forceinline__ void add(V *sum, uint32_t at, bool has, V value, const turns &t)
{
    for (int turn = 0; turn <= t.last; turn++) {
        if (has && t.mine == turn) sum[at] += value;
        __syncwarp();
    }
}

/* The nonzero of 32 that entry e belongs to, whose entries end before 'end' in each lane. */
static __device__ __forceinline__ int owner(uint32_t end, uint32_t e)
{
    int low = 0;
#pragma unroll
    for (int d = 16; d; d /= 2) {
        const uint32_t other = __shfl_sync(0xFFFFFFFFu, end, low + d - 1);
        if (other <= e) low += d;
    }
    return low;
}

template <typename V, gcu_csr_way WAY>
static __device__ __forceinline__ void
add_row(const gcu_csr &x, const gcu_csr_table &t, const uint32_t *codes, const places &p,
        uint32_t first, uint32_t rows, int64_t begin, int64_t end, V *sum)
{
    const int lane = threadIdx.x % 32;
    const uint32_t each = (uint32_t)t.each;
    for (int64_t some = begin; some < end; some += 32) {
        const int64_t e = some + lane;
        V value = 0;
        uint64_t from = 0;
        uint32_t count = 0;
        if (e < end) {
            value = static_cast<const V *>(x.values)[e];
            if (WAY == GCU_CSR_CODES_OF_NONZEROS) {
                from = (uint64_t)e * each;
            } else {
                const int64_t j = x.cols[e] + p.shift;
                from = WAY == GCU_CSR_LISTS ? t.start[j] : (uint64_t)j * each;
                if (WAY == GCU_CSR_LISTS) count = t.start[j + 1] - (uint32_t)from;
            }
            if (WAY != GCU_CSR_LISTS) count = each;
        }
        uint32_t stop = count; /* of this lane's codes among all */
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const uint32_t before = __shfl_up_sync(0xFFFFFFFFu, stop, d);
            if (lane >= d) stop += before;
        }
        const uint32_t total = __shfl_sync(0xFFFFFFFFu, stop, 31);
        from -= stop - count; /* of entry 0, so to say */
        for (uint32_t at = 0; at < total; at += 32 * AHEAD) {
            uint32_t code[AHEAD];
            V v[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                const uint32_t entry = at + 32 * u + lane;
                const int of = (WAY == GCU_CSR_LISTS ? owner(stop, entry)
                                : t.each_log2 >= 0   ? (int)(entry >> t.each_log2)
                                                     : (int)(entry / each)) &
                               31;
                const uint64_t base = __shfl_sync(0xFFFFFFFFu, from, of);
                v[u] = __shfl_sync(0xFFFFFFFFu, value, of);
                code[u] = entry < total ? __ldg(codes + (base + entry)) : 0xFFFFFFFFu;
            }
            uint32_t place[AHEAD];
            bool has[AHEAD], any = false;
            turns turn[AHEAD];
#pragma unroll
            for (int u = 0; u < AHEAD; u++) {
                place[u] = (code[u] >> 1) - first;
                has[u] = at + 32 * u + lane < total && place[u] < rows;
                any |= has[u];
            }
            if (!__any_sync(0xFFFFFFFFu, any)) continue;
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                turn[u] = take_turns(place[u], has[u]);
#pragma unroll
            for (int u = 0; u < AHEAD; u++)
                add<V>(sum, place[u], has[u], code[u] & 1 ? -v[u] : v[u], turn[u]);
        }
    }
}

/* Warps take the rows of x, or those that are listed, in turn; blockIdx.y: the rows of S. */
template <typename V, gcu_csr_way WAY>
static __global__ void __launch_bounds__(32 * MOST_WARPS)
    scatter_kernel(gcu_csr x, gcu_csr_table t, const uint32_t *codes, const uint32_t *list,
                   const unsigned *listed, places p, gcu_csr_out out)
{
    extern __shared__ __align__(16) char memory[];
    const int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    V *sum = reinterpret_cast<V *>(memory) + warp * p.each;
    const int64_t skipped = blockIdx.y * p.each;
    const int64_t rows = min(p.each, p.rows - skipped), base = *x.base;
    const int64_t count = list ? (int64_t)*listed : x.rows;
    for (int64_t at = blockIdx.x * (int64_t)warps + warp; at < count;
         at += gridDim.x * (int64_t)warps) {
        const int64_t i = list ? (int64_t)list[at] : at;
        const int64_t begin = x.offsets[i] - base, end = x.offsets[i + 1] - base;
        if (!list && end - begin > GCU_CSR_LONG) continue;
        for (int64_t r = lane; r < rows; r += 32)
            sum[r] = 0;
        __syncwarp();
        add_row<V, WAY>(x, t, codes, p, (uint32_t)(p.row + skipped), (uint32_t)rows, begin, end,
                        sum);
        __syncwarp();
        for (int64_t r = lane; r < rows; r += 32)
            gcu_csr_emit<V>(out, i, skipped + r, sum[r]);
        __syncwarp();
    }
}

template <typename V, gcu_csr_way WAY>
static cudaError_t launch(const gcu_csr_sketch *s, const gcu_csr *x, const uint32_t *codes,
                          const gcu_csr_out *out, const uint32_t *list, const unsigned *listed,
                          int64_t most, bool shared)
{
    const int64_t all = (int64_t)(s->gpu->smem_bytes / sizeof(V)), rows = s->table.rows;
    const int64_t fewest = (rows + all - 1) / all;
    const int64_t slices = shared ? gnomon_max(gnomon_min(rows, SHARES), fewest) : fewest;
    const int64_t each = (rows + slices - 1) / slices;
    int64_t warps = shared ? 1 : ENOUGH_SMEM / (each * (int64_t)sizeof(V));
    warps = gnomon_max(1, gnomon_min(warps, MOST_WARPS));
    const size_t bytes = (size_t)(warps * each) * sizeof(V);
    const auto kernel = scatter_kernel<V, WAY>;
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)s->gpu->smem_bytes);
    if (error != cudaSuccess) return error;
    const places p = {s->table.row, rows, each, s->col - s->table.first};
    const dim3 grid(gcu_grid(most, warps, MOST_GRID), (unsigned)((rows + each - 1) / each));
    kernel<<<grid, (unsigned)(32 * warps), bytes, s->stream>>>(*x, s->table, codes, list, listed, p,
                                                               *out);
    return cudaGetLastError();
}

template <typename V, gcu_csr_way WAY>
static cudaError_t scatter(const gcu_csr_sketch *s, const gcu_csr *x, const uint32_t *codes,
                           const gcu_csr_out *out, uint32_t *longs)
{
    const int64_t most = x->nonzeros / GCU_CSR_LONG;
    cudaError_t error = launch<V, WAY>(s, x, codes, out, nullptr, nullptr, x->rows, false);
    if (error != cudaSuccess || most == 0) return error;
    error = gcu_csr_find_long(x, longs + 1, longs, s->stream);
    if (error != cudaSuccess) return error;
    return launch<V, WAY>(s, x, codes, out, longs + 1, longs, most, true);
}

template <gcu_csr_way WAY>
static cudaError_t scatter_any(const gcu_csr_sketch *s, const gcu_csr *x, const uint32_t *codes,
                               const gcu_csr_out *out, uint32_t *longs)
{
    return s->f64 ? scatter<double, WAY>(s, x, codes, out, longs)
                  : scatter<float, WAY>(s, x, codes, out, longs);
}

cudaError_t gcu_csr_scatter(const gcu_csr_sketch *s, const gcu_csr *x, const uint32_t *codes,
                            const gcu_csr_out *out, uint32_t *longs)
{
    const uint32_t *table = static_cast<const uint32_t *>(s->table.data);
    switch (s->table.way) {
    case GCU_CSR_LISTS:
        return scatter_any<GCU_CSR_LISTS>(s, x, table, out, longs);
    case GCU_CSR_CODES:
        return scatter_any<GCU_CSR_CODES>(s, x, table, out, longs);
    default:
        return scatter_any<GCU_CSR_CODES_OF_NONZEROS>(s, x, codes, out, longs);
    }
}
