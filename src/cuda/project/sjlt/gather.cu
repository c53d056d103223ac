/* sjlt's sums from memory: fp32 coordinates whose points are adjacent, each coordinate's 32 points
 * a line of 128 bytes. Eight lanes share a row, four points each. Lines are read in the order in
 * which rows want them, and meet in the L2 cache; asking for them ahead in the order of memory, or
 * holding blocks back so that they go in step, only costs (measured on an H200).
 *
 * The same launch makes the lists: that takes arithmetic, and the sums wait for memory, so they go
 * well beside each other. Blocks draw tickets; those that make a segment's lists have lower ones
 * than those that sum it, which wait until they are done. */
#include "cuda/project/points.cuh"
#include "cuda/project/sjlt/lists.cuh"
#include "cuda/project/sjlt/sum.cuh"

enum { THREADS = 512, GROUPS = THREADS / 8, ROWS = 4 /* a thread's */ };
enum { BLOCKS = 1 /* a multiprocessor's */, RESIDENT = 128 /* blocks at a time, about */ };

/* What the launch's blocks do: in the order of tickets the lists of the first 'ahead' segments,
 * then alternately the sums of a segment and the lists of the one 'ahead' of it. */
struct gather_plan {
    uint32_t row_blocks, segments, ahead;
    uint32_t list_units, sum_units; /* blocks a segment; no list units when the lists stand */
};

/* Whether a ticket is for sums, and of which segment and unit. */
static __device__ __forceinline__ bool unit_of(const gather_plan &p, uint32_t ticket,
                                               uint32_t *segment, uint32_t *unit)
{
    if (ticket < p.ahead * p.list_units) {
        *segment = ticket / p.list_units;
        *unit = ticket % p.list_units;
        return false;
    }
    ticket -= p.ahead * p.list_units;
    const uint32_t both = p.sum_units + p.list_units, rounds = p.segments - p.ahead;
    if (ticket >= rounds * both) {
        ticket -= rounds * both;
        *segment = rounds + ticket / p.sum_units;
        *unit = ticket % p.sum_units;
        return true;
    }
    *segment = ticket / both;
    *unit = ticket % both;
    if (*unit < p.sum_units) return true;
    *unit -= p.sum_units;
    *segment += p.ahead;
    return false;
}

/* A step's four entries; all ones in the low bits of each that is none. */
template <bool BITS32> struct step;
template <> struct step<false> {
    static constexpr uint32_t NONE = 0xFFFFu;
    uint2 w;
    __device__ __forceinline__ uint32_t operator[](int i) const
    {
        const uint32_t x = i < 2 ? w.x : w.y;
        return i % 2 ? x >> 16 : x & 0xFFFFu;
    }
};
template <> struct step<true> {
    static constexpr uint32_t NONE = 0xFFFFFFFFu;
    uint4 w;
    __device__ __forceinline__ uint32_t operator[](int i) const
    {
        return gcu_word(w, i);
    }
};

/* The entries of a step for coordinates that may not be there. */
template <bool BITS32>
static __device__ __forceinline__ void add_checked(float4 &acc, const step<BITS32> &now,
                                                   const gcu_line &line, int64_t q0, int64_t left)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t e = now[i];
        const int64_t q = q0 + (e >> 1);
        if (e == step<BITS32>::NONE || q < line.low || q >= line.high) continue;
        const float *x = reinterpret_cast<const float *>(line.base + q * line.stride);
        float4 got = make_float4(x[0], 0.0f, 0.0f, 0.0f);
        if (left > 1) got.y = x[1];
        if (left > 2) got.z = x[2];
        if (left > 3) got.w = x[3];
        sjlt_add(acc, e, got);
    }
}

template <bool BITS32>
static __device__ __forceinline__ void sum_unit(const sjlt_shape &s, const sjlt_lists &lists,
                                                const sjlt_sum &sum, const gather_plan &plan,
                                                uint32_t segment, uint32_t unit)
{
    const int tid = threadIdx.x, eighth = tid & 7, group = tid >> 3;
    const int64_t row0 = (int64_t)(unit % plan.row_blocks) * (ROWS * GROUPS) + group;
    /* lanes without points of their own do what the last one with points does */
    const int64_t own = (int64_t)(unit / plan.row_blocks) * SJLT_POINTS + eighth * 4;
    const int64_t v = min(own, (sum.points - 1) / 4 * 4), left = sum.points - v;
    const int64_t chunk0 = segment * s.segment_chunks;
    const int chunks = (int)min(s.segment_chunks, lists.count - chunk0);
    const int64_t q0 = ((lists.first + chunk0) << s.chunk_log2) - sum.origin;
    const gcu_line line = gcu_line_of<float>(sum.x, sum.point + v, sum.point + sum.points);
    const int stride = (int)line.stride;
    /* chunks that all of the warp's points have whole */
    const int64_t low = (line.low - q0 + s.chunk - 1) >> s.chunk_log2;
    const int64_t high = left < 4 ? 0 : (line.high - q0) >> s.chunk_log2;
    const int plain = __reduce_max_sync(0xFFFFFFFFu, (int)max(low, (int64_t)0));
    const int plain_end =
        __reduce_min_sync(0xFFFFFFFFu, (int)max(min(high, (int64_t)chunks), (int64_t)0));

    float4 acc[ROWS];
    int behind[ROWS]; /* a row's first step, counted from row0's */
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        acc[r] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        behind[r] = row0 + r * GROUPS < lists.rows ? r * GROUPS * s.steps : 0;
    }
    const step<BITS32> *entries = static_cast<const step<BITS32> *>(lists.entries) +
                                  (chunk0 * lists.rows + min(row0, lists.rows - 1)) * s.steps;
    /* a step comes while the one before it is summed */
    step<BITS32> coming[ROWS];
    auto lookup = [&](int t) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            coming[r] = entries[behind[r] + t];
    };
    lookup(0);
    const char *base = line.base + q0 * line.stride;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks; chunk++, base += (int64_t)stride << s.chunk_log2) {
#pragma unroll 1
        for (int t = 0; t < s.steps; t++) {
            step<BITS32> now[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                now[r] = coming[r];
            if (t + 1 < s.steps) {
                lookup(t + 1);
            } else if (chunk + 1 < chunks) {
                entries += lists.rows * s.steps;
                lookup(0);
            }
            if (chunk >= plain && chunk < plain_end) {
                float4 got[ROWS][4];
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        const uint32_t e = now[r][i];
                        got[r][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                        if (e != step<BITS32>::NONE)
                            got[r][i] = *reinterpret_cast<const float4 *>(
                                base + (int64_t)(int)(e >> 1) * stride);
                    }
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        sjlt_add(acc[r], now[r][i], got[r][i]);
            } else {
                const gcu_line l = gcu_line_of<float>(sum.x, sum.point + v, sum.point + sum.points);
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    add_checked<BITS32>(acc[r], now[r], l, q0 + chunk * s.chunk, left);
            }
        }
    }
    if (own != v) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * GROUPS;
        if (row < lists.rows)
            *reinterpret_cast<float4 *>(sum.partial + (segment * lists.rows + row) * sum.width +
                                        v) = acc[r];
    }
}

template <bool BITS32>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_kernel(const __grid_constant__ sjlt_shape s, const __grid_constant__ sjlt_lists lists,
                  const __grid_constant__ sjlt_sum sum, const __grid_constant__ gather_plan plan)
{
    __shared__ sjlt_list_memory memory;
    __shared__ uint32_t drawn;
    uint32_t *const done = sum.tickets + 1; /* list units of each segment */
    uint32_t ticket = blockIdx.x, segment, unit;
    if (plan.list_units) {
        if (threadIdx.x == 0) drawn = atomicAdd(sum.tickets, 1u);
        __syncthreads();
        ticket = drawn;
    }
    if (!unit_of(plan, ticket, &segment, &unit)) {
        const int64_t begin = segment * s.segment_chunks;
        const int64_t end = min(begin + s.segment_chunks, lists.count);
        if (unit < sjlt_list_units(lists, end - begin))
            sjlt_list_unit_any<BITS32>(s, lists, begin, end, unit, &memory);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(done + segment, 1u);
        return;
    }
    if (plan.list_units) {
        if (threadIdx.x == 0) {
            uint32_t count;
            for (;;) {
                asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                             : "=r"(count)
                             : "l"(done + segment)
                             : "memory");
                if (count >= plan.list_units) break;
                __nanosleep(100);
            }
        }
        __syncthreads();
    }
    sum_unit<BITS32>(s, lists, sum, plan, segment, unit);
}

bool sjlt_can_gather(const gcu_points &x)
{
    const int64_t most = (int64_t)1 << 28;
    return x.dtype == GNOMON_F32 && x.row_stride == 1 && x.col_stride % 4 == 0 &&
           x.col_stride < most && x.col_stride > -most &&
           reinterpret_cast<uintptr_t>(x.data) % 16 == 0 &&
           (x.blocks == 1 || (x.n % 4 == 0 && x.block_stride % 4 == 0));
}

cudaError_t sjlt_sum_gather(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream)
{
    gather_plan p = {};
    const int64_t tiles = (sum.points + SJLT_POINTS - 1) / SJLT_POINTS;
    p.row_blocks = (uint32_t)((lists.rows + ROWS * GROUPS - 1) / (ROWS * GROUPS));
    p.segments = (uint32_t)((lists.count + s.segment_chunks - 1) / s.segment_chunks);
    p.sum_units = p.row_blocks * (uint32_t)tiles;
    if (!sum.listed) {
        p.list_units = sjlt_list_units(lists, s.segment_chunks);
        p.ahead = 1 + RESIDENT / (p.sum_units + p.list_units);
        if (p.ahead > p.segments) p.ahead = p.segments;
        const cudaError_t error =
            cudaMemsetAsync(sum.tickets, 0, (size_t)(1 + p.segments) * sizeof *sum.tickets, stream);
        if (error != cudaSuccess) return error;
    }
    const uint32_t blocks = p.segments * (p.sum_units + p.list_units);
    if (s.bits32)
        gather_kernel<true><<<blocks, THREADS, 0, stream>>>(s, lists, sum, p);
    else
        gather_kernel<false><<<blocks, THREADS, 0, stream>>>(s, lists, sum, p);
    return cudaGetLastError();
}
