/* The trial arithmetic for sketches of signs (signs/signs.h) on a GPU: the library's kernel for
 * many points (src/cuda/project/dense/points.cuh) with other fragments and sums, beside that
 * kernel.
 *
 * A coordinate's 24-bit integer is 4096 high + low, both within +-2^11 and so exact in fp16; 4096
 * columns of either add up to less than 2^24, exact in the tensor cores' fp32 sums. The exponents
 * are known only when a point's 4096 columns have been read: cuts_kernel reads them first, in the
 * place of the search for NaN and infinity, which a call without allow_nonfinite makes anyway.
 *
 *   signs [--json FILE] */
#include "bench.cuh"

#include "cuda/project/dense/points_launch.cuh"
#include "cuda/project/family.h"
#include "cuda/runtime/state.h"
#include "operator/kinds/kinds.h"
#include "signs/signs.h"

#include <gnomon.h>

/* ---- the cut of each point's blocks ---- */

struct cut_word {
    int16_t exponent, out;
};

/* The largest, or sum, or least, of a group of warps, each of which has its own here. */
enum cut_what { CUT_MOST, CUT_SUM, CUT_LEAST };

template <int WARPS> __device__ __forceinline__ uint32_t cut_reduce(uint32_t v, cut_what what)
{
    __shared__ uint32_t shared[4];
    v = what == CUT_MOST  ? __reduce_max_sync(~0u, v)
        : what == CUT_SUM ? __reduce_add_sync(~0u, v)
                          : __reduce_min_sync(~0u, v);
    if (WARPS == 1) return v;
    __syncthreads(); /* the last ones have been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    uint32_t all = shared[0];
    for (int i = 1; i < 4; i++)
        all = what == CUT_MOST  ? max(all, shared[i])
              : what == CUT_SUM ? all + shared[i]
                                : min(all, shared[i]);
    return all;
}

/* A block of columns of a point for four warps, or one if there are up to 1024: 32 coordinates a
 * thread, in registers. Rows begin at multiples of 16 bytes. */
template <int WARPS>
static __global__ void __launch_bounds__(128)
    cuts_kernel(const float *x, int64_t row_stride, int64_t cols, int64_t points, cut_word *cuts,
                unsigned long long *first_bad)
{
    constexpr int THREADS = 32 * WARPS, EACH = 32;
    const int64_t segments = (cols + SIGNS_BLOCK - 1) / SIGNS_BLOCK;
    const int64_t item = (int64_t)blockIdx.x * (4 / WARPS) + threadIdx.x / THREADS;
    const int t = threadIdx.x % THREADS;
    if (item >= points * segments) return;
    const int64_t point = item / segments, segment = item % segments;
    const int64_t left = cols - segment * SIGNS_BLOCK;
    const int count = (int)(left < SIGNS_BLOCK ? left : SIGNS_BLOCK);
    const float *from = x + point * row_stride + segment * SIGNS_BLOCK;
    uint32_t bits[EACH];
#pragma unroll
    for (int i = 0; i < EACH / 4; i++) {
        const int at = i * 4 * THREADS + 4 * t;
        uint4 v = make_uint4(0, 0, 0, 0);
        if (at + 4 <= count) {
            v = __ldcs(reinterpret_cast<const uint4 *>(from + at));
        } else {
            if (at < count) v.x = __float_as_uint(from[at]);
            if (at + 1 < count) v.y = __float_as_uint(from[at + 1]);
            if (at + 2 < count) v.z = __float_as_uint(from[at + 2]);
        }
        bits[4 * i] = v.x & 0x7fffffffu;
        bits[4 * i + 1] = v.y & 0x7fffffffu;
        bits[4 * i + 2] = v.z & 0x7fffffffu;
        bits[4 * i + 3] = v.w & 0x7fffffffu;
    }
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        most = max(most, bits[i]);
    most = cut_reduce<WARPS>(most, CUT_MOST);
    int exponent = max((int)((most + 1) >> 23) - 126, (int)SIGNS_LEAST), out = -1;
    uint32_t quarters = 0; /* |x| div 2^(e - 2), 0 to 4, by comparing */
    if (exponent > -124) {
        const uint32_t unit = (uint32_t)(exponent + 125) << 23; /* bits of 2^(e - 2) */
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            quarters += bits[i] >= unit;
            quarters += bits[i] >= unit + (1u << 23);
            quarters += bits[i] >= unit + (3u << 22);
            quarters += bits[i] >= unit + (2u << 23);
        }
    } else { /* powers of two beyond fp32's, in two steps */
        const float power = __uint_as_float((uint32_t)(127 + 2 - exponent - 64) << 23);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            quarters += (uint32_t)(__uint_as_float(bits[i]) * 0x1p64f * power);
    }
    quarters = cut_reduce<WARPS>(quarters, CUT_SUM);
    if (quarters < 8 && most > 0) { /* rare */
        uint32_t at = ~0u, next = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (bits[i] == most) at = min(at, (uint32_t)(i / 4 * 4 * THREADS + 4 * t + i % 4));
        at = cut_reduce<WARPS>(at, CUT_LEAST);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if ((uint32_t)(i / 4 * 4 * THREADS + 4 * t + i % 4) != at) next = max(next, bits[i]);
        next = cut_reduce<WARPS>(next, CUT_MOST);
        exponent = max((int)((next + 1) >> 23) - 126, (int)SIGNS_LEAST);
        out = (int)at;
    }
    if (t != 0) return;
    if (most >= 0x7f800000u) atomicMin(first_bad, (unsigned long long)(point * cols));
    cuts[segment * points + point] = cut_word{(int16_t)exponent, (int16_t)out};
}

/* ---- fragments ---- */

struct exact_scale {
    float scale[2], scale_high[2]; /* 2^(23 - e), and that by 4096; of the thread's two points */
    int exponent[2], out[2];
    bool rare; /* of any of the warp's points */
};

__device__ __forceinline__ void exact_aim(const points_params &p, const cut_word *cuts,
                                          const points_unit &u, int step, int warp, int lane,
                                          exact_scale *s)
{
    const int64_t segment = u.begin / POINTS_SEGMENT + step / (POINTS_SEGMENT / POINTS_STEP);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        int64_t v = u.first + warp * POINTS_WARP_POINTS + (lane >> 2) + 8 * m;
        if (v > p.points - 1) v = p.points - 1;
        const cut_word c = cuts[segment * p.points + v];
        s->exponent[m] = c.exponent;
        s->out[m] = c.out;
        /* of blocks below 2^-104 the coordinates are first multiplied by 2^64 */
        const int power = 23 - c.exponent - (c.exponent < -104 ? 64 : 0);
        s->scale[m] = __uint_as_float((uint32_t)(127 + power) << 23);
        s->scale_high[m] = __uint_as_float((uint32_t)(115 + power) << 23);
    }
    s->rare = __any_sync(~0u, s->out[0] >= 0 || s->out[1] >= 0 || s->exponent[0] < -104 ||
                                  s->exponent[1] < -104);
}

/* What few blocks have: a column left out, or numbers so small that they are scaled up first. */
__device__ __forceinline__ void exact_prepare(float *x, const exact_scale &s, int step, int lane)
{
#pragma unroll
    for (int m = 0; m < 2; m++) {
        const float by = s.exponent[m] < -104 ? 0x1p64f : 1.0f;
        const bool here = s.out[m] >> 6 == step && (s.out[m] >> 2 & 3) == (lane & 3);
        const int of = (s.out[m] >> 5 & 1) * 8 + (s.out[m] >> 4 & 1) * 4 + (s.out[m] & 3);
#pragma unroll
        for (int j = 0; j < 16; j++)
            x[16 * m + j] = here && j == of ? 0.0f : x[16 * m + j] * by;
    }
}

/* The integers' halves; x as points_split has it. */
__device__ __forceinline__ void exact_split(float *x, const exact_scale &s, int step, int lane,
                                            points_fragments *f)
{
    constexpr float magic = 12582912.0f; /* 1.5 2^23: integers are its last bits */
    if (s.rare) exact_prepare(x, s, step % (POINTS_SEGMENT / POINTS_STEP), lane);
#pragma unroll
    for (int m = 0; m < 2; m++) {
        const float scale = s.scale[m], scale_high = s.scale_high[m];
#pragma unroll
        for (int g = 0; g < 2; g++) {
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const float x0 = x[16 * m + 8 * g + c], x1 = x[16 * m + 8 * g + 4 + c];
                const float h0 = __fadd_rn(__fmaf_rn(x0, scale_high, magic), -magic);
                const float h1 = __fadd_rn(__fmaf_rn(x1, scale_high, magic), -magic);
                const float l0 =
                    __fadd_rn(__fmaf_rn(x0, scale, __fmaf_rn(h0, -4096.0f, magic)), -magic);
                const float l1 =
                    __fadd_rn(__fmaf_rn(x1, scale, __fmaf_rn(h1, -4096.0f, magic)), -magic);
                const int at = 4 * (2 * g + (c >> 1)) + 2 * (c & 1) + m;
                f->high[at] = points_pack(h0, h1);
                f->low[at] = points_pack(l0, l1);
            }
        }
    }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
template <int N>
__device__ __forceinline__ void exact_multiply(float *high, float *low, points_fragments &f,
                                               uint32_t tile, int add)
{
    const uint32_t descriptor = gcu_wgmma_descriptor(tile);
#pragma unroll
    for (int j = 0; j < 16; j++) {
        asm volatile("" : "+r"(f.high[j])::"memory");
        asm volatile("" : "+r"(f.low[j])::"memory");
    }
    gcu_wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; step++)
        gcu_wgmma<N>(high, f.high + 4 * step, descriptor + 2 * step, step > 0 ? 1 : add);
#pragma unroll
    for (int step = 0; step < 4; step++)
        gcu_wgmma<N>(low, f.low + 4 * step, descriptor + 2 * step, step > 0 ? 1 : add);
    gcu_wgmma_commit();
}
#endif

/* Adds the coordinates left out to the thread's totals: fp64 ones, 'apart' numbers from each other,
 * or fp32 ones in shared memory. */
template <int N, bool WIDE>
__device__ __noinline__ void exact_add_out(const points_params &p, int64_t pass, int64_t column,
                                           int64_t first, int out0, int out1, int lane,
                                           double *totals, uint32_t narrow, int apart)
{
#pragma unroll 1
    for (int m = 0; m < 2; m++) {
        const int out = m == 0 ? out0 : out1;
        const int64_t v = first + 8 * m;
        if (out < 0) continue;
        const int64_t of = v < p.points ? v : p.points - 1, at = column + out;
        const float x = static_cast<const float *>(p.x.data)[of * p.x.row_stride + at];
#pragma unroll 1
        for (int j = 0; j < N / 8; j++) {
            const int64_t r = p.row_base + pass * N + 8 * j + 2 * (lane & 3);
            const uint4 w = gcu_call(p.stream, (uint32_t)(r >> 2), (p.col + at) >> 5);
            const uint32_t word[2] = {r & 2 ? w.z : w.x, r & 2 ? w.w : w.y};
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float one = word[e] >> (at & 31) & 1 ? -x : x;
                const int to = apart * (4 * j + 2 * m + e);
                if (WIDE)
                    totals[to] += (double)one;
                else
                    points_sts<4>(narrow + 4 * to,
                                  __float_as_uint(gcu_load_shared(narrow + 4 * to) + one));
            }
        }
    }
}

/* The sum of a block, in fp32: 4096 high is exact, so that there is one rounding. */
__device__ __forceinline__ float exact_sum(float high, float low, float unit, float more)
{
    return __fmaf_rn(high, 4096.0f, low) * unit * more;
}

/* ---- the kernel: points_kernel but for scales, products and what becomes of them ---- */

template <int N, bool WIDE>
__global__ void __launch_bounds__(points_shape<N, POINTS_F32, false, true>::threads, 1)
    exact_kernel(const __grid_constant__ points_params p, const cut_word *cuts, double *totals)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    using shape = points_shape<N, POINTS_F32, false, true>;
    extern __shared__ unsigned char shared_memory[];
    const uint32_t base = (gcu_shared_address(shared_memory) + 1023) & ~1023u;
    const uint32_t s_ring = base;
    const uint32_t x_ring = s_ring + POINTS_S_STAGES * shape::s_bytes;
    const uint32_t info = x_ring + p.depth * shape::x_step;
    const uint32_t barriers = info + shape::info_bytes;       /* full, then empty */
    const uint32_t narrow = barriers + 128 + 4 * threadIdx.x; /* fp32 totals */
    unsigned char *generic = shared_memory + (base - gcu_shared_address(shared_memory));
    const int tid = threadIdx.x, lane = tid & 31, group = tid >> 7;
    if (tid == 0) {
        for (int s = 0; s < POINTS_S_STAGES; s++) {
            points_barrier_init(barriers + 8 * s, 1);
            points_barrier_init(barriers + 32 + 8 * s, 4 * shape::consumers);
        }
    }
    __syncthreads();
    if (group == shape::consumers) {
        gcu_registers_dealloc<shape::making>();
        const int warp = (tid >> 5) & 3;
        const uint32_t stage = s_ring + warp * shape::s_bytes;
        const uint32_t full = barriers + 8 * warp, empty = full + 32;
        uint32_t parity = 1;
        int next_warp = 0;
        points_unit u;
        for (int64_t number = blockIdx.x; points_unit_of<shape::block_points>(p, number, &u);
             number += gridDim.x) {
            const uint32_t block = (uint32_t)((p.row_base + u.pass * N) >> 2);
            for (int64_t col = u.begin; col < u.end; col += shape::s_cols) {
                const bool mine = next_warp == warp;
                next_warp = (next_warp + 1) % POINTS_S_STAGES;
                if (!mine) continue;
                points_barrier_wait(empty, parity);
                parity ^= 1;
                points_make_signs<N, shape::s_cols>(p, stage, lane, block, p.col + col);
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                __syncwarp();
                if (lane == 0) points_barrier_arrive(full);
            }
        }
        return;
    }
    gcu_registers_alloc<shape::consuming>();
    constexpr int consuming = 128 * shape::consumers;
    constexpr int segment_steps = POINTS_SEGMENT / POINTS_STEP;
    constexpr int tiles = shape::s_cols / POINTS_STEP;
    const int warp = tid >> 5;
    const uint32_t ring = x_ring + warp * p.depth * shape::x_bytes;
    points_row *rows =
        reinterpret_cast<points_row *>(generic + (info - base)) + warp * POINTS_WARP_POINTS;
    double *const mine = totals + (int64_t)blockIdx.x * consuming * (N / 2) + tid;

    points_cursor ahead;
    ahead.unit = blockIdx.x;
    points_aim<N, POINTS_F32, false, true>(p, &ahead, rows, warp, lane);
    points_unit u = ahead.u;
    int64_t number = blockIdx.x;
    bool more = ahead.more;
    int step = 0, steps = more ? u.steps() : 0;
    int slot = 0, s_slot = 0, warming = p.depth;
    uint32_t s_parity = 0;
    float high[N / 2], low[N / 2];
    exact_scale scale;
    if (more) exact_aim(p, cuts, u, 0, warp, lane, &scale);

    const auto read = [&](points_raw<4, false> *raw) {
        if (p.depth == shape::deep)
            gcu_copies_wait<shape::deep - 1>();
        else
            gcu_copies_wait<shape::shallow - 1>();
        __syncwarp();
        raw->read(ring + slot * shape::x_bytes, lane);
        __syncwarp();
    };
    const auto convert = [&](const points_raw<4, false> &raw, int of, points_fragments *f) {
        float x[32];
#pragma unroll
        for (int j = 0; j < 32; j++)
            x[j] = __uint_as_float(raw.w[j]);
        exact_split(x, scale, of, lane, f);
    };
    points_fragments f;
    while (more) {
        if (ahead.more) {
            points_fetch<4, false>(p, &ahead, rows, ring + slot * shape::x_bytes, lane);
            if (++ahead.step == ahead.steps) {
                ahead.unit += gridDim.x;
                points_aim<N, POINTS_F32, false, true>(p, &ahead, rows, warp, lane);
            }
        }
        gcu_copies_commit();
        slot = slot + 1 == p.depth ? 0 : slot + 1;
        if (warming > 0) {
            if (--warming == 0) {
                points_raw<4, false> raw;
                read(&raw);
                convert(raw, 0, &f);
            }
            continue;
        }
        if (step % tiles == 0) points_barrier_wait(barriers + 8 * s_slot, s_parity);
        exact_multiply<N>(high, low, f, s_ring + s_slot * shape::s_bytes + step % tiles * (N * 128),
                          step % segment_steps != 0);
        points_raw<4, false> raw; /* of the next step, or of nothing */
        if (N < 128) read(&raw);
        gcu_wgmma_wait<0>();
        gcu_wgmma_fence_operands<N / 2>(high);
        gcu_wgmma_fence_operands<N / 2>(low);
#pragma unroll
        for (int j = 0; j < 16; j++) {
            asm volatile("" : "+r"(f.high[j])::"memory");
            asm volatile("" : "+r"(f.low[j])::"memory");
        }
        step++;
        if (step % tiles == 0 || step == steps) {
            __syncwarp();
            if (lane == 0) points_barrier_arrive(barriers + 32 + 8 * s_slot);
            s_slot = (s_slot + 1) % POINTS_S_STAGES;
            s_parity ^= s_slot == 0;
        }
        if (step % segment_steps != 0 && step != steps) {
            if (N >= 128) read(&raw); /* not before: both sums take the registers */
            convert(raw, step, &f);
            continue;
        }
        /* a block of columns ends */
        const int row = warp * POINTS_WARP_POINTS + (lane >> 2);
        const int64_t v[2] = {u.first + row, u.first + row + 8};
        const bool begins = step <= segment_steps, ends = step == steps;
        const int64_t column = u.begin + (int64_t)((step - 1) / segment_steps) * POINTS_SEGMENT;
        const bool some_out = __any_sync(~0u, scale.out[0] >= 0 || scale.out[1] >= 0);
        if (!WIDE) {
            /* 2^(e - 23) as two powers of two */
            float unit[2], more[2];
#pragma unroll
            for (int m = 0; m < 2; m++) {
                const int e = scale.exponent[m] - 23, first = max(e, -100);
                unit[m] = __uint_as_float((uint32_t)(127 + first) << 23);
                more[m] = __uint_as_float((uint32_t)(127 + e - first) << 23);
            }
            const bool kept = !ends || some_out;
            if (begins) {
#pragma unroll
                for (int at = 0; at < N / 2; at++)
                    high[at] = exact_sum(high[at], low[at], unit[at >> 1 & 1], more[at >> 1 & 1]);
            } else {
#pragma unroll
                for (int at = 0; at < N / 2; at++)
                    high[at] = exact_sum(high[at], low[at], unit[at >> 1 & 1], more[at >> 1 & 1]) +
                               gcu_load_shared(narrow + 4 * consuming * at);
            }
            if (kept) {
#pragma unroll
                for (int at = 0; at < N / 2; at++)
                    points_sts<4>(narrow + 4 * consuming * at, __float_as_uint(high[at]));
            }
            if (some_out) {
                exact_add_out<N, false>(p, u.pass, column, v[0], scale.out[0], scale.out[1], lane,
                                        nullptr, narrow, consuming);
#pragma unroll
                for (int at = 0; at < N / 2; at++)
                    high[at] = gcu_load_shared(narrow + 4 * consuming * at);
            }
        } else {
            const double unit[2] = {__hiloint2double((1023 + scale.exponent[0] - 23) << 20, 0),
                                    __hiloint2double((1023 + scale.exponent[1] - 23) << 20, 0)};
            if (begins && ends && !some_out) {
#pragma unroll
                for (int at = 0; at < N / 2; at++)
                    high[at] =
                        (float)(fma((double)high[at], 4096.0, (double)low[at]) * unit[at >> 1 & 1]);
            } else {
                if (begins) {
#pragma unroll
                    for (int at = 0; at < N / 2; at++)
                        mine[consuming * at] =
                            fma((double)high[at], 4096.0, (double)low[at]) * unit[at >> 1 & 1];
                } else {
#pragma unroll
                    for (int at = 0; at < N / 2; at++)
                        mine[consuming * at] +=
                            fma((double)high[at], 4096.0, (double)low[at]) * unit[at >> 1 & 1];
                }
                if (some_out)
                    exact_add_out<N, true>(p, u.pass, column, v[0], scale.out[0], scale.out[1],
                                           lane, mine, 0, consuming);
                if (ends) {
#pragma unroll
                    for (int at = 0; at < N / 2; at++)
                        high[at] = (float)mine[consuming * at];
                }
            }
        }
        if (ends) {
            points_emit<N>(p, u.pass, 0, v, lane, high);
            number += gridDim.x;
            more = points_unit_of<shape::block_points>(p, number, &u);
            step = 0;
            steps = more ? u.steps() : 0;
        }
        if (more) exact_aim(p, cuts, u, step, warp, lane, &scale);
        if (N >= 128) read(&raw);
        convert(raw, step, &f);
    }
#endif
}

template <int N, bool WIDE>
static void exact_start(const gcu_gpu *gpu, points_params p, const cut_word *cuts, double *totals)
{
    using shape = points_shape<N, POINTS_F32, false, true>;
    p.totals = !WIDE; /* of one block too: columns left out are added there */
    p.depth = shape::deep;
    if (shape::shared(p.depth, p.totals, false) > gpu->smem_bytes) p.depth = shape::shallow;
    const size_t bytes = shape::shared(p.depth, p.totals, false);
    p.groups = (p.points + shape::block_points - 1) / shape::block_points;
    const auto kernel = exact_kernel<N, WIDE>;
    BENCH_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
    const int64_t units = p.groups * p.passes;
    const int blocks = units < gpu->sms ? (int)units : gpu->sms;
    kernel<<<blocks, shape::threads, bytes>>>(p, cuts, totals);
    BENCH_CHECK(cudaGetLastError());
}

template <bool WIDE>
static void exact_run(const gcu_gpu *gpu, const points_params &p, int pass, const cut_word *cuts,
                      double *totals)
{
    switch (pass) {
    case 16:
        return exact_start<16, WIDE>(gpu, p, cuts, totals);
    case 32:
        return exact_start<32, WIDE>(gpu, p, cuts, totals);
    case 64:
        return exact_start<64, WIDE>(gpu, p, cuts, totals);
    default:
        return exact_start<128, WIDE>(gpu, p, cuts, totals);
    }
}

/* ---- measurements ---- */

struct shape {
    int64_t n, cols, rows;
    bench_law law;
    double tail; /* one coordinate of each block of 4096 is multiplied by it */
};

/* the last but one: a coordinate is left out in every block */
static const shape shapes[] = {
    {101376, 4096, 64, BENCH_NORMAL, 1},     {101376, 4096, 256, BENCH_NORMAL, 1},
    {101376, 4096, 1024, BENCH_NORMAL, 1},   {1000000, 768, 32, BENCH_NORMAL, 1},
    {1000000, 768, 128, BENCH_NORMAL, 1},    {33792, 32768, 128, BENCH_NORMAL, 1},
    {33792, 20480, 1024, BENCH_UNIFORM, 1},  {101376, 4096, 256, BENCH_NORMAL, 0x1p30},
    {19999, 4100, 131, BENCH_HUGE_RANGE, 1},
};

static __global__ void lengthen(float *x, int64_t n, int64_t cols, float tail)
{
    const int64_t segments = (cols + SIGNS_BLOCK - 1) / SIGNS_BLOCK;
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n * segments;
         i += stride) {
        const int64_t from = i % segments * SIGNS_BLOCK;
        const int64_t count = min((int64_t)SIGNS_BLOCK, cols - from);
        x[i / segments * cols + from + (int64_t)(bench_mix((uint64_t)i) % (uint64_t)count)] *= tail;
    }
}

/* The reference's bits for one point; exact: the sums without rounding, as near as fp64 adds. */
static void reference(const gnomon_simple *a, const float *x, int64_t cols, int64_t rows,
                      float *narrow, float *wide, double *exact)
{
    std::vector<double> t((size_t)rows);
    for (int64_t r = 0; r < rows; r++)
        exact[r] = 0.0;
    for (int64_t from = 0; from < cols; from += SIGNS_BLOCK) {
        const int64_t count = std::min((int64_t)SIGNS_BLOCK, cols - from);
        const signs_cut cut = signs_cut_of(x + from, count, 1, SIGNS_REFINED);
        std::vector<int32_t> q((size_t)count);
        for (int64_t j = 0; j < count; j++)
            q[(size_t)j] = j == cut.out ? 0 : signs_round(x[from + j], cut.exponent);
        for (int64_t r = 0; r < rows; r++) {
            int64_t sum = 0;
            uint32_t word = 0;
            bool out = false;
            double e = 0.0;
            for (int64_t j = 0; j < count; j++) {
                if (j == 0 || (from + j) % 32 == 0)
                    word = gnomon_sign_word(a, GNOMON_TAG_SIGN, r, (from + j) / 32);
                const bool minus = word >> ((from + j) % 32) & 1;
                sum += minus ? -q[(size_t)j] : q[(size_t)j];
                e += minus ? -(double)x[from + j] : (double)x[from + j];
                if (j == cut.out) out = minus;
            }
            const float left = cut.out < 0 ? 0.0f : out ? -x[from + cut.out] : x[from + cut.out];
            const double scaled = (double)sum * signs_unit(cut.exponent);
            t[(size_t)r] += scaled;
            t[(size_t)r] += (double)left;
            narrow[r] = (from == 0 ? 0.0f : narrow[r]) + (float)scaled;
            narrow[r] += left;
            exact[r] += e;
        }
    }
    for (int64_t r = 0; r < rows; r++)
        wide[r] = (float)t[(size_t)r];
}

static double error_of(const std::vector<float> &y, const std::vector<double> &exact)
{
    double wrong = 0.0, all = 0.0;
    for (size_t i = 0; i < y.size(); i++) {
        wrong += (y[i] - exact[i]) * (y[i] - exact[i]);
        all += exact[i] * exact[i];
    }
    return sqrt(wrong / all);
}

static void measure(const shape &s, const gcu_gpu *gpu, bench_json *json)
{
    const size_t all = (size_t)(s.n * s.cols), results = (size_t)(s.n * s.rows);
    const int64_t segments = (s.cols + SIGNS_BLOCK - 1) / SIGNS_BLOCK;
    float *x, *y;
    cut_word *cuts;
    double *totals;
    unsigned long long *bad;
    BENCH_CHECK(cudaMalloc(&x, all * sizeof *x));
    BENCH_CHECK(cudaMalloc(&y, results * sizeof *y));
    BENCH_CHECK(cudaMalloc(&cuts, (size_t)(s.n * segments) * sizeof *cuts));
    BENCH_CHECK(cudaMalloc(&totals, (size_t)gpu->sms * 384 * 64 * sizeof *totals));
    BENCH_CHECK(cudaMalloc(&bad, sizeof *bad));
    BENCH_CHECK(cudaMemset(bad, 0xFF, sizeof *bad));
    bench_fill(x, all, 3, s.law, 3.0f);
    if (s.tail != 1) lengthen<<<1024, 256>>>(x, s.n, s.cols, (float)s.tail);

    gnomon_simple a = {};
    a.kind = GNOMON_RADEMACHER;
    a.key0 = 12345;
    a.rows = s.rows;
    a.cols = s.cols;
    gcu_task t = {};
    t.a = &a;
    t.rows = s.rows;
    t.x.data = x;
    t.x.dtype = GNOMON_F32;
    t.x.row_stride = s.cols;
    t.x.col_stride = 1;
    t.x.block_stride = s.cols;
    t.x.n = s.n;
    t.x.blocks = 1;
    t.x.block_cols = s.cols;
    t.x.end = s.cols;
    t.out = {y, GNOMON_F32, s.rows, 1, s.rows, 1, 0, 0, s.rows, 1.0, 1.0, 0.0, nullptr, true, true};
    t.gpu = gpu;
    t.work_bytes = gcu_dense_points.best_work(&t);
    BENCH_CHECK(cudaMalloc(&t.work, t.work_bytes + 1));

    points_params p = {};
    p.x = t.x;
    p.out = t.out;
    p.kind = POINTS_KIND_SIGN;
    p.stream = gcu_stream_of(&a, GNOMON_TAG_SIGN);
    p.task_rows = s.rows;
    p.total = p.points = s.n;
    p.vector = s.cols % 4 == 0;
    const int pass = points_pass_rows(s.rows, POINTS_F32, true);
    p.passes = (s.rows + pass - 1) / pass;
    p.splits = 1;
    p.unit_cols = segments * POINTS_SEGMENT;
    const gnomon_matrix view = gnomon_matrix_rowmajor(x, GNOMON_F32, s.n, s.cols);

    const auto cut = [&] {
        if (s.cols <= 1024)
            cuts_kernel<1><<<(unsigned)((s.n + 3) / 4), 128>>>(x, s.cols, s.cols, s.n, cuts, bad);
        else
            cuts_kernel<4><<<(unsigned)(s.n * segments), 128>>>(x, s.cols, s.cols, s.n, cuts, bad);
    };
    const auto today = [&] { BENCH_CHECK(gcu_dense_points.run(&t)); };
    const auto narrow = [&] { exact_run<false>(gpu, p, pass, cuts, totals); };
    const auto wide = [&] { exact_run<true>(gpu, p, pass, cuts, totals); };
    const auto search = [&] { BENCH_CHECK(gcu_find_nonfinite(&view, 0, 0, s.cols, bad, 0)); };
    cut();
    BENCH_CHECK(cudaDeviceSynchronize());
    /* in turn, so that all meet the same clock */
    std::vector<double> ms[5];
    for (int round = 0; round < 3; round++) {
        ms[0].push_back(bench_run([&](int) { today(); }, 7, 0.15).median_ms);
        ms[1].push_back(bench_run([&](int) { narrow(); }, 7, 0.15).median_ms);
        ms[2].push_back(bench_run([&](int) { wide(); }, 7, 0.15).median_ms);
        ms[3].push_back(bench_run([&](int) { cut(); }, 7, 0.15).median_ms);
        ms[4].push_back(bench_run([&](int) { search(); }, 7, 0.15).median_ms);
    }
    double median[5];
    for (int i = 0; i < 5; i++)
        median[i] = bench_summary(ms[i]).median_ms;

    /* some points against the reference, and today's kernel on them */
    const int64_t some[] = {0, 1, s.n / 3, s.n / 2 + 5, s.n - 1};
    int64_t wrong[3] = {0, 0, 0};
    double error[3] = {0, 0, 0};
    std::vector<float> mine((size_t)s.rows), want[2], row((size_t)s.cols);
    want[0] = want[1] = mine;
    std::vector<double> truth((size_t)s.rows);
    for (int which = 0; which < 3; which++) {
        BENCH_CHECK(cudaMemset(y, 0xFF, results * sizeof *y));
        which == 0 ? today() : which == 1 ? narrow() : wide();
        for (int64_t i : some) {
            BENCH_CHECK(
                cudaMemcpy(row.data(), x + i * s.cols, (size_t)s.cols * 4, cudaMemcpyDeviceToHost));
            BENCH_CHECK(cudaMemcpy(mine.data(), y + i * s.rows, (size_t)s.rows * 4,
                                   cudaMemcpyDeviceToHost));
            reference(&a, row.data(), s.cols, s.rows, want[0].data(), want[1].data(), truth.data());
            for (int64_t r = 0; which > 0 && r < s.rows; r++)
                wrong[which] += memcmp(&mine[(size_t)r], &want[which - 1][(size_t)r], 4) != 0;
            error[which] = std::max(error[which], error_of(mine, truth));
        }
    }
    static const char *const laws[] = {"uniform", "normal", "huge range"};
    printf("n %7lld cols %5lld rows %4lld %-10s tail %g: today %8.4f ms, trial fp32 %8.4f (%.3f), "
           "fp64 %8.4f (%.3f), cuts %7.4f, search for NaN %7.4f; wrong bits %lld "
           "%lld; error today "
           "%.2e, fp32 %.2e, fp64 %.2e\n",
           (long long)s.n, (long long)s.cols, (long long)s.rows, laws[s.law], s.tail, median[0],
           median[1], median[1] / median[0], median[2], median[2] / median[0], median[3], median[4],
           (long long)wrong[1], (long long)wrong[2], error[0], error[1], error[2]);
    fflush(stdout);
    bench_record(json,
                 "\"n\": %lld, \"cols\": %lld, \"rows\": %lld, \"law\": \"%s\", \"tail\": %g, "
                 "\"today_ms\": %.5f, \"narrow_ms\": %.5f, \"wide_ms\": %.5f, "
                 "\"cuts_ms\": %.5f, "
                 "\"finite_ms\": %.5f, \"narrow_wrong\": %lld, \"wide_wrong\": %lld, "
                 "\"today_error\": %.3e, \"narrow_error\": %.3e, \"wide_error\": %.3e",
                 (long long)s.n, (long long)s.cols, (long long)s.rows, laws[s.law], s.tail,
                 median[0], median[1], median[2], median[3], median[4], (long long)wrong[1],
                 (long long)wrong[2], error[0], error[1], error[2]);
    for (void *q : {(void *)x, (void *)y, (void *)cuts, (void *)totals, (void *)bad, t.work})
        BENCH_CHECK(cudaFree(q));
}

int main(int argc, char **argv)
{
    bench_json json = bench_open("signs", argc, argv);
    gcu_gpu gpu;
    char why[256];
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    if (gpu.major != 9) {
        fprintf(stderr, "signs: the trial's kernel is for GPUs of compute capability 9.0\n");
        return 1;
    }
    for (const shape &s : shapes)
        measure(s, &gpu, &json);
    bench_close(&json);
    gcu_gpu_close(&gpu);
    return 0;
}
