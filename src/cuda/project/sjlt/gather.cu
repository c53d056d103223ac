/* sjlt's sums from memory: fp32 coordinates whose points are adjacent, each coordinate's points a
 * line. One to eight lanes share a row, four points each, as many as there are points. Lines are
 * read in the order in which rows want them, and meet in the L2 cache; asking for them ahead in the
 * order of memory, or holding blocks back so that they go in step, only costs (measured on an
 * H200).
 *
 * The same launch makes the lists: that takes arithmetic, and the sums wait for memory, so they go
 * well beside each other. It also makes the lines of points that lie otherwise, eight at a time, a
 * sector of memory: those of a few segments, which stay in the L2 cache until they are summed.
 * Blocks draw tickets; those that make a segment's lists and lines have lower ones than those that
 * sum it, which wait until they are done; and those that make lines over a segment's have higher
 * ones than its sums, for which they wait. */
#include "cuda/project/points.cuh"
#include "cuda/project/sjlt/lists.cuh"
#include "cuda/project/sjlt/sum.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum { THREADS = 512, AHEAD = 6 /* turns */ };
enum { PACK_COLS = 2048 /* of a unit: a chunk is a multiple of it */, PACK_POINTS = SJLT_LINE };

/* Few points have few lanes a row. */
template <int LANES, int A_ROWS> struct gather_sizes {
    static constexpr int ROWS = A_ROWS /* a thread's */;
    static constexpr int BLOCKS = ROWS <= 2 ? 2 : 1 /* a multiprocessor's */;
    static constexpr int GROUPS = THREADS / LANES, POINTS = 4 * LANES;
};

/* What the launch's blocks do: in the order of tickets the lists and lines of the first 'ahead'
 * turns, then alternately the sums of a turn and the lists and lines of the one 'ahead' of it. A
 * turn is a segment; where lines are made, it is one of a tile of points, those of the first tile
 * first. Lists are made in the first tile's. */
struct gather_plan {
    uint32_t row_blocks, segments, turns, ahead;
    uint32_t list_units, pack_units, sum_units; /* blocks a turn; none of what stands */
    uint32_t ring;                              /* turns whose lines are kept */
};

/* Whether a ticket is for sums, and of which turn and unit. */
static __device__ __forceinline__ bool unit_of(const gather_plan &p, uint32_t ticket,
                                               uint32_t *turn, uint32_t *unit)
{
    const uint32_t made = p.list_units + p.pack_units;
    if (ticket < p.ahead * made) {
        *turn = ticket / made;
        *unit = ticket % made;
        return false;
    }
    ticket -= p.ahead * made;
    const uint32_t both = p.sum_units + made, rounds = p.turns - p.ahead;
    if (ticket >= rounds * both) {
        ticket -= rounds * both;
        *turn = rounds + ticket / p.sum_units;
        *unit = ticket % p.sum_units;
        return true;
    }
    *turn = ticket / both;
    *unit = ticket % both;
    if (*unit < p.sum_units) return true;
    *unit -= p.sum_units;
    *turn += p.ahead;
    return false;
}

/* Where a turn's lines begin. */
static __device__ __forceinline__ float *lines_of(const sjlt_shape &s, const sjlt_pack_room &pack,
                                                  const gather_plan &p, uint32_t turn)
{
    return pack.to + (turn % p.ring * s.segment_chunks << s.chunk_log2) * pack.width;
}

/* ---- lines of points that lie otherwise ---- */

static __device__ __forceinline__ float4 exchanged(float4 x)
{
    return make_float4(__shfl_xor_sync(~0u, x.x, 1), __shfl_xor_sync(~0u, x.y, 1),
                       __shfl_xor_sync(~0u, x.z, 1), __shfl_xor_sync(~0u, x.w, 1));
}

/* Columns [from, from + PACK_COLS) of the task, WIDTH points, as lines; what is not there is 0. A
 * thread takes a column of all points. */
template <typename T, int WIDTH>
static __device__ __forceinline__ void pack_columns(const gcu_line *lines, int64_t from, float *to)
{
#pragma unroll 2
    for (int c = threadIdx.x; c < PACK_COLS; c += THREADS) {
        float x[WIDTH];
#pragma unroll
        for (int p = 0; p < WIDTH; p++) {
            const gcu_line &l = lines[p];
            const int64_t q = from + c;
            x[p] = 0.0f;
            if (q >= l.low && q < l.high)
                x[p] = (float)*reinterpret_cast<const T *>(l.base + q * l.stride);
        }
        float4 *const line = reinterpret_cast<float4 *>(to + (int64_t)c * WIDTH);
        const float4 low = make_float4(x[0], x[1], x[2], x[3]);
        if constexpr (WIDTH == 4) {
            *line = low;
        } else { /* two lanes write a whole line, one's and then the other's */
            const float4 high = make_float4(x[4], x[5], x[6], x[7]);
            const bool odd = threadIdx.x & 1;
            const float4 got = exchanged(odd ? low : high);
            line[odd ? -1 : 0] = odd ? got : low;
            line[odd ? 1 : 2] = odd ? high : got;
        }
    }
}

template <typename T>
static __device__ __noinline__ void pack_unit(const gcu_points &x, int64_t point, int64_t end,
                                              int64_t from, int64_t width, float *to,
                                              gcu_line *lines)
{
    if (threadIdx.x < PACK_POINTS) lines[threadIdx.x] = gcu_line_of<T>(x, point + threadIdx.x, end);
    __syncthreads();
    if (width == 4)
        pack_columns<T, 4>(lines, from, to);
    else
        pack_columns<T, PACK_POINTS>(lines, from, to);
}

static __device__ __forceinline__ void pack_unit_any(const gcu_points &x, int64_t point,
                                                     int64_t end, int64_t from, int64_t width,
                                                     float *to, gcu_line *lines)
{
    switch (x.dtype) {
    case GNOMON_F32:
        return pack_unit<float>(x, point, end, from, width, to, lines);
    case GNOMON_F16:
        return pack_unit<__half>(x, point, end, from, width, to, lines);
    case GNOMON_BF16:
        return pack_unit<__nv_bfloat16>(x, point, end, from, width, to, lines);
    case GNOMON_I8:
        return pack_unit<int8_t>(x, point, end, from, width, to, lines);
    case GNOMON_U8:
        return pack_unit<uint8_t>(x, point, end, from, width, to, lines);
    case GNOMON_I16:
        return pack_unit<int16_t>(x, point, end, from, width, to, lines);
    default:
        return pack_unit<uint16_t>(x, point, end, from, width, to, lines);
    }
}

/* ---- sums ---- */

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

template <bool BITS32, int LANES, int A_ROWS>
static __device__ __forceinline__ void sum_unit(const sjlt_shape &s, const sjlt_lists &lists,
                                                const sjlt_sum &sum, const gather_plan &plan,
                                                uint32_t turn, uint32_t unit)
{
    using sizes = gather_sizes<LANES, A_ROWS>;
    constexpr int ROWS = sizes::ROWS, GROUPS = sizes::GROUPS;
    const int tid = threadIdx.x, lane = tid % LANES, group = tid / LANES;
    const int64_t row0 = (int64_t)(unit % plan.row_blocks) * (ROWS * GROUPS) + group;
    const uint32_t segment = turn % plan.segments, tile = turn / plan.segments;
    const int64_t chunk0 = segment * s.segment_chunks;
    const int chunks = (int)min(s.segment_chunks, lists.count - chunk0);
    /* lanes without points of their own do what the last one with points does */
    const int64_t own = (int64_t)(tile + unit / plan.row_blocks) * sizes::POINTS + lane * 4;
    const int64_t v = sum.pack.to ? own : min(own, (sum.points - 1) / 4 * 4);
    const int64_t left = sum.pack.to ? 4 : sum.points - v;
    const int64_t q0 = sum.pack.to ? 0 : ((lists.first + chunk0) << s.chunk_log2) - sum.origin;
    gcu_line line;
    if (sum.pack.to) {
        line.base = reinterpret_cast<const char *>(lines_of(s, sum.pack, plan, turn) + lane * 4);
        line.low = 0, line.high = INT64_MAX, line.stride = sum.pack.width * 4;
    } else {
        line = gcu_line_of<float>(sum.x, sum.point + v, sum.point + sum.points);
    }
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

static __device__ __forceinline__ void wait_for(const uint32_t *counter, uint32_t count)
{
    if (threadIdx.x == 0) {
        uint32_t now;
        for (;;) {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                         : "=r"(now)
                         : "l"(counter)
                         : "memory");
            if (now >= count) break;
            __nanosleep(100);
        }
    }
    __syncthreads();
}

static __device__ __forceinline__ void count_one(uint32_t *counter)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(counter, 1u);
}

template <bool BITS32, int LANES, int A_ROWS>
static __global__ void __launch_bounds__(THREADS, gather_sizes<LANES, A_ROWS>::BLOCKS)
    gather_kernel(const __grid_constant__ sjlt_shape s, const __grid_constant__ sjlt_lists lists,
                  const __grid_constant__ sjlt_sum sum, const __grid_constant__ gather_plan plan)
{
    __shared__ sjlt_list_memory memory;
    __shared__ gcu_line lines[PACK_POINTS];
    __shared__ uint32_t drawn;
    const uint32_t made = plan.list_units + plan.pack_units;
    uint32_t *const done = sum.tickets + 1;     /* units of each turn's lists and lines */
    uint32_t *const summed = done + plan.turns; /* and of its sums */
    uint32_t ticket = blockIdx.x, turn, unit;
    if (made) {
        if (threadIdx.x == 0) drawn = atomicAdd(sum.tickets, 1u);
        __syncthreads();
        ticket = drawn;
    }
    const bool sums = unit_of(plan, ticket, &turn, &unit);
    if (!sums) {
        const uint32_t segment = turn % plan.segments;
        const int64_t begin = segment * s.segment_chunks;
        const int64_t end = min(begin + s.segment_chunks, lists.count);
        if (unit >= plan.list_units) {
            const int64_t at = (int64_t)(unit - plan.list_units) * PACK_COLS;
            const int64_t point = turn / plan.segments * sum.pack.width;
            if (turn >= plan.ring) wait_for(summed + turn - plan.ring, plan.sum_units);
            if (at < (end - begin) << s.chunk_log2)
                pack_unit_any(sum.x, sum.point + point, sum.point + sum.points,
                              ((lists.first + begin) << s.chunk_log2) + at - sum.origin,
                              sum.pack.width,
                              lines_of(s, sum.pack, plan, turn) + at * sum.pack.width, lines);
        } else if (turn < plan.segments && unit < sjlt_list_units(lists, end - begin)) {
            sjlt_list_unit_any<BITS32>(s, lists, begin, end, unit, &memory);
        }
        count_one(done + turn);
        return;
    }
    if (made) wait_for(done + turn, made);
    if (plan.list_units && turn >= plan.segments) wait_for(done + turn % plan.segments, made);
    sum_unit<BITS32, LANES, A_ROWS>(s, lists, sum, plan, turn, unit);
    if (plan.ring < plan.turns) count_one(summed + turn);
}

bool sjlt_can_gather(const gcu_points &x)
{
    const int64_t most = (int64_t)1 << 28;
    return x.dtype == GNOMON_F32 && x.row_stride == 1 && x.col_stride % 4 == 0 &&
           x.col_stride < most && x.col_stride > -most &&
           reinterpret_cast<uintptr_t>(x.data) % 16 == 0 &&
           (x.blocks == 1 || (x.n % 4 == 0 && x.block_stride % 4 == 0));
}

template <int LANES, int A_ROWS>
static cudaError_t launch(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                          cudaStream_t stream)
{
    using sizes = gather_sizes<LANES, A_ROWS>;
    const int64_t rows = sizes::ROWS * sizes::GROUPS;
    const uint32_t tiles = (uint32_t)((sum.points + sizes::POINTS - 1) / sizes::POINTS);
    gather_plan p = {};
    p.row_blocks = (uint32_t)((lists.rows + rows - 1) / rows);
    p.segments = p.turns = (uint32_t)((lists.count + s.segment_chunks - 1) / s.segment_chunks);
    p.sum_units = p.row_blocks;
    if (!sum.listed) p.list_units = sjlt_list_units(lists, s.segment_chunks);
    if (sum.pack.to) {
        p.turns *= tiles;
        p.pack_units = (uint32_t)(s.segment_chunks * s.chunk / PACK_COLS);
        p.ring = (uint32_t)sum.pack.ring;
    } else {
        p.sum_units *= tiles;
        p.ring = p.turns;
    }
    const uint32_t made = p.list_units + p.pack_units;
    if (made) {
        p.ahead = sum.pack.to ? AHEAD / 2 : AHEAD;
        if (p.ahead > p.turns) p.ahead = p.turns;
        if (p.ahead > p.ring) p.ahead = p.ring;
        const cudaError_t error = cudaMemsetAsync(
            sum.tickets, 0, (1 + 2 * (size_t)p.turns) * sizeof *sum.tickets, stream);
        if (error != cudaSuccess) return error;
    }
    const uint32_t blocks = p.turns * (p.sum_units + made);
    if (s.bits32)
        gather_kernel<true, LANES, A_ROWS><<<blocks, THREADS, 0, stream>>>(s, lists, sum, p);
    else
        gather_kernel<false, LANES, A_ROWS><<<blocks, THREADS, 0, stream>>>(s, lists, sum, p);
    return cudaGetLastError();
}

cudaError_t sjlt_sum_gather(const sjlt_shape &s, const sjlt_lists &lists, const sjlt_sum &sum,
                            cudaStream_t stream)
{
    /* measured on an H100: lanes without points cost less than fewer rows in flight */
    if (sum.pack.to)
        return sum.pack.width == 4 ? launch<1, 2>(s, lists, sum, stream)
                                   : launch<2, 2>(s, lists, sum, stream);
    const bool one = s.bands == 1, many = s.bands >= 4;
    if (sum.points <= 4)
        return many ? launch<2, 2>(s, lists, sum, stream) : launch<2, 4>(s, lists, sum, stream);
    if (sum.points <= 8 || (sum.points <= 16 && !one))
        return many ? launch<4, 2>(s, lists, sum, stream) : launch<4, 4>(s, lists, sum, stream);
    return many ? launch<8, 2>(s, lists, sum, stream) : launch<8, 4>(s, lists, sum, stream);
}
