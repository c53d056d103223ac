/* Points packed for the filter, what that loses of each, and the limits that follow: see
 * filter/filter.h. */
#include "base/arithmetic.h"
#include "cuda/filter/exact.cuh"
#include "cuda/filter/walk.cuh"

enum {
    THREADS = 256,
    WARPS = THREADS / 32,
    SAMPLE = 256,
    GROUPS = 8,
    TURNS = 8,        /* points that a warp packs */
    MOST_CHUNKS = 128 /* whose means are held in shared memory */
};

static bool is_floats(const gnomon_matrix *m)
{
    return m->dtype == GNOMON_F32 && m->col_stride == 1;
}

/* ---- the centre ---- */

/* The sample: some rows, far apart. */
struct estimate {
    exact_view view;
    int64_t rows, cols, apart; /* row i of the sample is row i * apart */
    bool cosine;
    double *inverse, *largest; /* SAMPLE numbers each */
    unsigned *broken;          /* whether any coordinate is no integer, or too large a one */
    double *mean;
    gcu_filter_facts *facts;
};

static __global__ void __launch_bounds__(THREADS) estimate_inverse(estimate l)
{
    const int64_t i = (blockIdx.x * THREADS + threadIdx.x) / 16;
    const int lane = threadIdx.x % 16;
    const exact_row x = exact_row_of(l.view, i < l.rows ? i * l.apart : 0);
    const double inverse = exact_inverse<false>(x, l.cols, lane);
    if (lane == 0 && i < l.rows) l.inverse[i] = inverse;
}

static __device__ __forceinline__ double sample_at(const estimate &l, int64_t i, int64_t col)
{
    const exact_row x = exact_row_of(l.view, i * l.apart);
    const double v = exact_load<false>(x, col);
    return l.cosine ? v * l.inverse[i] : v;
}

/* 32 columns per block: each warp sums every eighth row, then the eight are added. */
static __global__ void __launch_bounds__(THREADS) estimate_mean(estimate l)
{
    __shared__ double sums[GROUPS][32];
    const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
    const int64_t col = blockIdx.x * 32 + lane;
    double sum = 0;
    bool whole = !l.cosine;
    if (col < l.cols) {
#pragma unroll 4
        for (int64_t i = group; i < l.rows; i += GROUPS) {
            const double x = sample_at(l, i, col);
            whole = whole && x == rint(x) && fabs(x) < 0x1p22;
            sum += x;
        }
    }
    sums[group][lane] = sum;
    if (!__all_sync(~0u, whole) && lane == 0) atomicOr(l.broken, 1u);
    __syncthreads();
    if (group > 0 || col >= l.cols) return;
    for (int g = 1; g < GROUPS; g++)
        sum += sums[g][lane];
    l.mean[col] = sum / (double)l.rows;
}

/* The largest centred coordinate of each row, one row per warp. */
static __global__ void __launch_bounds__(THREADS) estimate_largest(estimate l)
{
    const int64_t i = blockIdx.x * WARPS + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    if (i >= l.rows) return;
    double largest = 0;
    for (int64_t col = lane; col < l.cols; col += 32)
        largest = fmax(largest, fabs(sample_at(l, i, col) - l.mean[col]));
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
        largest = fmax(largest, __shfl_xor_sync(~0u, largest, half));
    if (lane == 0) l.largest[i] = largest;
}

/* The number of that rank among at most THREADS of them, in all threads. */
static __device__ double rank_of(double mine, bool there, int rank, int count)
{
    __shared__ double all[THREADS];
    __shared__ double found;
    __syncthreads();
    all[threadIdx.x] = mine;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (there) {
        int before = 0;
        for (int i = 0; i < count; i++)
            before += all[i] < mine || (all[i] == mine && i < (int)threadIdx.x);
        if (before == rank) found = mine;
    }
    __syncthreads();
    return found;
}

/* Brings a typical row's largest coordinate into [2^5, 2^6): 2^10 times as large ones fit into
 * fp16, and 2^-20 times as small ones keep all their digits. */
static __global__ void __launch_bounds__(THREADS) estimate_facts(estimate l)
{
    const int t = threadIdx.x, count = (int)l.rows;
    const double mine = t < count ? l.largest[t] : 0;
    double typical = rank_of(mine, t < count, count / 2, count);
    if (!(typical > 0)) typical = rank_of(mine, t < count, count - 1, count);
    const bool told = typical > 0 && typical < 0x1p1000;
    int exponent = told ? 5 - ilogb(typical) : 0;
    if (l.cosine) exponent = exponent < 0 ? 0 : exponent > 40 ? 40 : exponent;
    exponent = exponent < -700 ? -700 : exponent > 1000 ? 1000 : exponent;
    const double scale = ldexp(1.0, exponent);
    const bool whole = *l.broken == 0;
    bool plain = abs(exponent) <= 100;
    double squares = 0;
    __syncthreads();
    for (int64_t col = t; col < l.cols; col += THREADS) {
        double mean = (whole ? rint(l.mean[col]) : l.mean[col]) * scale;
        if (fabs(mean) <= 0x1p100)
            mean = (double)(float)mean; /* any centre will do */
        else
            plain = false;
        l.mean[col] = mean;
        squares += mean * mean;
    }
    plain = __syncthreads_and(plain) != 0;
    __shared__ double sums[THREADS];
    sums[t] = squares;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) sums[t] += sums[t + half];
    }
    if (t == 0) {
        l.facts->scale = scale;
        l.facts->squares = sums[0];
        l.facts->plain = plain;
    }
}

/* Bits: 0 and 1, less a half. */
static __global__ void __launch_bounds__(THREADS) bits_facts(estimate l)
{
    const int64_t col = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (col < l.cols) l.mean[col] = 0.5;
    if (col > 0) return;
    l.facts->scale = 1;
    l.facts->squares = (double)l.cols / 4;
}

static int64_t coordinates(gnomon_metric metric, int64_t cols)
{
    return metric == GNOMON_HAMMING ? 8 * cols : cols;
}

size_t gcu_filter_centre_bytes(int64_t cols)
{
    return gcu_aligned((size_t)cols * 8) + gcu_aligned(sizeof(gcu_filter_facts)) +
           2 * gcu_aligned(SAMPLE * 8) + 256;
}

cudaError_t gcu_filter_estimate_centre(gnomon_metric metric, const gnomon_matrix *points,
                                       void *memory, gcu_filter_centre *out, const gcu_gpu *,
                                       cudaStream_t stream)
{
    uint8_t *at = static_cast<uint8_t *>(memory);
    estimate l = {};
    l.view = exact_view_of(points);
    l.rows = points->rows < SAMPLE ? points->rows : (int64_t)SAMPLE;
    l.cols = coordinates(metric, points->cols);
    l.apart = l.rows > 0 ? points->rows / l.rows : 1;
    l.cosine = metric == GNOMON_COSINE;
    l.mean = reinterpret_cast<double *>(at);
    at += gcu_aligned((size_t)l.cols * 8);
    l.facts = reinterpret_cast<gcu_filter_facts *>(at);
    at += gcu_aligned(sizeof(gcu_filter_facts));
    l.inverse = reinterpret_cast<double *>(at);
    at += gcu_aligned(SAMPLE * 8);
    l.largest = reinterpret_cast<double *>(at);
    at += gcu_aligned(SAMPLE * 8);
    l.broken = reinterpret_cast<unsigned *>(at);
    *out = {metric, l.cols, l.mean, l.facts};
    const cudaError_t error = cudaMemsetAsync(memory, 0, gcu_filter_centre_bytes(l.cols), stream);
    if (error != cudaSuccess) return error;
    if (metric == GNOMON_HAMMING) {
        bits_facts<<<(unsigned)gnomon_ceil_div(l.cols + 1, THREADS), THREADS, 0, stream>>>(l);
        return cudaGetLastError();
    }
    if (l.rows > 0 && l.cols > 0) {
        if (l.cosine) estimate_inverse<<<SAMPLE * 16 / THREADS, THREADS, 0, stream>>>(l);
        estimate_mean<<<(unsigned)gnomon_ceil_div(l.cols, 32), THREADS, 0, stream>>>(l);
        estimate_largest<<<SAMPLE / WARPS, THREADS, 0, stream>>>(l);
    }
    estimate_facts<<<1, THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}

/* ---- packing ---- */

struct packing {
    exact_view view;
    gcu_filter_points out;
    const double *mean;
    const gcu_filter_facts *facts;
    gnomon_metric metric;
    unsigned long long *fault;
};

template <bool FLOATS> static __global__ void __launch_bounds__(THREADS) inverse_kernel(packing k)
{
    const int lane = threadIdx.x % 16;
    const int64_t i = (blockIdx.x * (int64_t)THREADS + threadIdx.x) / 16;
    const bool there = i < k.out.rows;
    const exact_row x = exact_row_of(k.view, there ? i : 0);
    const double inverse = exact_inverse<FLOATS>(x, k.out.cols, lane);
    if (lane == 0 && there) k.out.inverse[i] = inverse;
}

static __device__ __forceinline__ double sum_of_warp(double x)
{
#pragma unroll
    for (int half = 16; half > 0; half /= 2)
        x += __shfl_xor_sync(~0u, x, half);
    return x;
}

enum reading { FLOATS, ANY, BITS };

/* A warp packs some points, two coordinates of a chunk a lane; then a lane each takes what is to
 * be told of one: roots in fp64 cost the same for one lane as for all. */
template <reading READ, bool PRODUCTS>
static __device__ __forceinline__ void pack_any(const packing &k, int64_t first)
{
    const int lane = threadIdx.x % 32;
    const gcu_filter_points &o = k.out;
    const bool cosine = k.metric == GNOMON_COSINE;
    const double scale = k.facts->scale;
    double own_packed = 0, own_lost = 0, own_across = 0;
#pragma unroll 2
    for (int turn = 0; turn < TURNS; turn++) {
        const int64_t i = first + turn;
        const bool there = i < o.rows;
        const exact_row x = exact_row_of(k.view, there ? i : 0);
        const double inverse = cosine && there ? o.inverse[i] : 1;
        uint8_t *to = o.halves + i * 128 + (((lane / 4) ^ (int)(i & 7)) << 4) + lane % 4 * 4;
        double packed = 0, lost = 0, across = 0;
#pragma unroll 4
        for (int64_t chunk = 0; chunk < o.chunks; chunk++) {
            __half half[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int64_t col = chunk * GCU_FILTER_CHUNK + lane * 2 + e;
                half[e] = __float2half_rn(0.0f);
                if (!there || col >= o.cols) continue;
                const double given = READ == BITS ? (double)(exact_byte(x, col / 8) >> col % 8 & 1)
                                                  : exact_load<READ == FLOATS>(x, col);
                if (!(fabs(given) <= 0x1p500) && k.fault)
                    atomicMin(k.fault, (unsigned long long)(i * o.cols + col));
                const double m = k.mean[col];
                const double v = (cosine ? __dmul_rn(given, inverse) : given) * scale - m;
                /* rounded twice: what is lost is what counts */
                half[e] = __float2half_rn(fminf(fmaxf((float)v, -65504.0f), 65504.0f));
                const double h = (double)__half2float(half[e]), rest = v - h;
                packed += h * h;
                lost += rest * rest;
                if (PRODUCTS) across += v * m;
            }
            *reinterpret_cast<__half2 *>(to + chunk * o.padded * 128) =
                __halves2half2(half[0], half[1]);
        }
        packed = sum_of_warp(packed);
        lost = sum_of_warp(lost);
        if (PRODUCTS) across = sum_of_warp(across);
        if (lane == turn) {
            own_packed = packed;
            own_lost = lost;
            own_across = across;
        }
    }
    if (lane >= TURNS) return;
    const int64_t i = first + lane;
    const double squares = k.facts->squares, norm = sqrt(own_packed), rest = sqrt(own_lost);
    o.norm[i] = norm;
    /* with what fp64 loses of X itself, which is no longer than both */
    o.error[i] = rest * (1 + 0x1p-20) + (norm + rest + sqrt(squares)) * 0x1p-48 + 0x1p-500;
    o.own[i] = PRODUCTS ? -(own_across + squares / 2) : own_packed / 2;
}

template <reading READ, bool PRODUCTS>
static __global__ void __launch_bounds__(THREADS) pack_kernel(packing k)
{
    const int64_t first = (blockIdx.x * (int64_t)WARPS + threadIdx.x / 32) * TURNS;
    if (first < k.out.padded) pack_any<READ, PRODUCTS>(k, first);
}

/* The sums of TURNS numbers a lane over a warp, that of number lane / 4 in each lane. */
template <typename T> static __device__ __forceinline__ T join_turns(T (&sum)[TURNS])
{
    static_assert(TURNS == 8, "four lanes a sum");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int some = TURNS / 2, half = 16; some > 0; some /= 2, half /= 2) {
        const bool upper = (lane & half) != 0;
#pragma unroll
        for (int n = 0; n < some; n++) {
            const T other = __shfl_xor_sync(~0u, upper ? sum[n] : sum[n + some], half);
            sum[n] = (upper ? sum[n + some] : sum[n]) + other;
        }
    }
    T all = sum[0];
    all += __shfl_xor_sync(~0u, all, 2);
    return all + __shfl_xor_sync(~0u, all, 1);
}

/* L2 of floats, in fp32 where scale and mean allow it: x * scale - mean is rounded once, what fp16
 * loses of that is exact, and so is the square of a half. All of a warp's points go through a chunk
 * together, so that their coordinates are on the way at once. PAIRS: two lie at multiples of eight
 * bytes. */
template <bool PAIRS> static __global__ void __launch_bounds__(THREADS, 4) pack_floats(packing k)
{
    extern __shared__ float2 means[];
    const int lane = threadIdx.x % 32;
    const gcu_filter_points &o = k.out;
    const int64_t first = (blockIdx.x * (int64_t)WARPS + threadIdx.x / 32) * TURNS;
    const bool plain = k.facts->plain;
    if (plain) {
        for (int at = threadIdx.x; at < (int)o.chunks * 32; at += THREADS)
            means[at] = {2 * at < o.cols ? (float)k.mean[2 * at] : 0.0f,
                         2 * at + 1 < o.cols ? (float)k.mean[2 * at + 1] : 0.0f};
        __syncthreads();
    }
    if (first >= o.padded) return;
    if (!plain || first + TURNS > o.rows) {
        pack_any<FLOATS, false>(k, first);
        return;
    }
    const float scale = (float)k.facts->scale;
    const float *const rows = reinterpret_cast<const float *>(k.view.data) + first * k.view.row;
    double packed[TURNS] = {};
    float lost[TURNS] = {};
    for (int chunk = 0; chunk < (int)o.chunks; chunk++) {
        const int col = chunk * GCU_FILTER_CHUNK + lane * 2;
        float2 x[TURNS];
#pragma unroll
        for (int turn = 0; turn < TURNS; turn++) {
            const float *const row = rows + turn * k.view.row + col;
            x[turn] = {0, 0};
            if (PAIRS && col + 1 < o.cols) {
                x[turn] = __ldg(reinterpret_cast<const float2 *>(row));
            } else {
                if (col < o.cols) x[turn].x = __ldg(row);
                if (col + 1 < o.cols) x[turn].y = __ldg(row + 1);
            }
        }
        const float2 m = means[chunk * 32 + lane];
        uint8_t *const to = o.halves + (chunk * o.padded + first) * 128 + lane % 4 * 4;
        bool suspect = false;
#pragma unroll
        for (int turn = 0; turn < TURNS; turn++) {
            suspect = suspect || !(fabsf(x[turn].x) + fabsf(x[turn].y) < INFINITY);
            const float a = fmaf(x[turn].x, scale, -m.x), b = fmaf(x[turn].y, scale, -m.y);
            const __half2 half = __floats2half2_rn(fminf(fmaxf(a, -65504.0f), 65504.0f),
                                                   fminf(fmaxf(b, -65504.0f), 65504.0f));
            const float2 h = __half22float2(half);
            const float left = a - h.x, right = b - h.y;
            lost[turn] = fmaf(left, left, fmaf(right, right, lost[turn]));
            packed[turn] += (double)fmaf(h.x, h.x, h.y * h.y);
            *reinterpret_cast<__half2 *>(to + turn * 128 + ((lane / 4 ^ turn) << 4)) = half;
        }
        if (!suspect || !k.fault) continue;
#pragma unroll 1
        for (int turn = 0; turn < TURNS; turn++)
            for (int e = 0; e < 2; e++)
                if (col + e < o.cols &&
                    !(fabsf(__ldg(rows + turn * k.view.row + col + e)) < INFINITY))
                    atomicMin(k.fault, (unsigned long long)((first + turn) * o.cols + col + e));
    }
    const double squares = join_turns(packed), rest = sqrt((double)join_turns(lost));
    if (lane % 4 > 0) return;
    const int64_t i = first + lane / 4;
    const double norm = sqrt(squares) * (1 + 0x1p-23);
    o.norm[i] = norm;
    /* sums in fp32 of so many squares; coordinates rounded to fp32; squares below its least */
    o.error[i] = rest * (1 + (double)(o.chunks + 8) * 0x1p-22) + (norm + rest) * 0x1p-23 + 0x1p-60;
    o.own[i] = squares / 2 * (1 - 0x1p-23);
}

size_t gcu_filter_pack_bytes(gnomon_metric metric, int64_t rows, int64_t cols)
{
    const int64_t padded = gnomon_ceil_div(rows, GCU_FILTER_PAD) * GCU_FILTER_PAD;
    const int64_t all = coordinates(metric, cols);
    const int64_t chunks = all > 0 ? gnomon_ceil_div(all, GCU_FILTER_CHUNK) : 1;
    return (size_t)(padded * chunks) * 128 + (size_t)padded * 8 * (metric == GNOMON_COSINE ? 4 : 3);
}

cudaError_t gcu_filter_pack(const gcu_filter_centre *centre, const gnomon_matrix *points,
                            void *memory, gcu_filter_points *out, unsigned long long *fault,
                            const gcu_gpu *, cudaStream_t stream)
{
    packing k = {exact_view_of(points), {}, centre->mean, centre->facts, centre->metric, fault};
    gcu_filter_points *o = &k.out;
    o->rows = points->rows;
    o->padded = gnomon_ceil_div(points->rows, GCU_FILTER_PAD) * GCU_FILTER_PAD;
    o->cols = centre->cols;
    o->chunks = o->cols > 0 ? gnomon_ceil_div(o->cols, GCU_FILTER_CHUNK) : 1;
    uint8_t *at = static_cast<uint8_t *>(memory);
    o->halves = at;
    at += (size_t)(o->padded * o->chunks) * 128;
    double **const numbers[] = {&o->norm, &o->error, &o->own, &o->inverse};
    for (int i = 0; i < (centre->metric == GNOMON_COSINE ? 4 : 3); i++) {
        *numbers[i] = reinterpret_cast<double *>(at);
        at += (size_t)o->padded * 8;
    }
    *out = *o;
    if (o->rows == 0) return cudaSuccess;
    const bool floats = is_floats(points);
    if (centre->metric == GNOMON_COSINE) {
        const unsigned blocks = (unsigned)gnomon_ceil_div(o->rows * 16, THREADS);
        if (floats)
            inverse_kernel<true><<<blocks, THREADS, 0, stream>>>(k);
        else
            inverse_kernel<false><<<blocks, THREADS, 0, stream>>>(k);
    }
    const unsigned blocks = (unsigned)gnomon_ceil_div(o->padded, WARPS * TURNS);
    if (centre->metric == GNOMON_HAMMING)
        pack_kernel<BITS, false><<<blocks, THREADS, 0, stream>>>(k);
    else if (floats && centre->metric == GNOMON_L2 && o->chunks <= MOST_CHUNKS)
        ((uintptr_t)points->data % 8 == 0 && points->row_stride % 2 == 0
             ? pack_floats<true>
             : pack_floats<false>)<<<blocks, THREADS, (size_t)o->chunks * 256, stream>>>(k);
    else if (floats && centre->metric == GNOMON_IP)
        pack_kernel<FLOATS, true><<<blocks, THREADS, 0, stream>>>(k);
    else if (floats)
        pack_kernel<FLOATS, false><<<blocks, THREADS, 0, stream>>>(k);
    else if (centre->metric == GNOMON_IP)
        pack_kernel<ANY, true><<<blocks, THREADS, 0, stream>>>(k);
    else
        pack_kernel<ANY, false><<<blocks, THREADS, 0, stream>>>(k);
    return cudaGetLastError();
}

/* ---- limits ---- */

/* Shares of the bounds: 2 x y <= m x^2 + y^2 / m. */
struct shares {
    double distance; /* L2: (R + e) and f */
    double left;     /* IP: |p| and f */
    double right;    /* IP: |q| and e */
    double norms;    /* |p| and |q| */
};

struct limits {
    gcu_filter_points p, q;
    const gcu_filter_facts *facts;
    gnomon_metric metric;
    const double *radii;
    double radius, gamma;
    double *typical; /* see typical_kernel */
    float *p_limits, *q_limits;
};

/* Row i's radius as a distance of packed points, a little more, or as a product. */
static __device__ double reach_of(const limits &k, int64_t i)
{
    const double radius = k.radii ? k.radii[i] : k.radius, scale = k.facts->scale;
    /* products in fp64 may have lost so much to underflow */
    if (k.metric == GNOMON_IP) return (radius - (double)k.p.cols * 0x1p-1074) * scale * scale;
    if (!(radius >= 0)) return -1;
    const double reach = k.metric == GNOMON_COSINE    ? sqrt(2 * radius) * scale
                         : k.metric == GNOMON_HAMMING ? sqrt(radius)
                                                      : radius * scale;
    return reach * (1 + 0x1p-30);
}

static __device__ double share_of(double x, double y)
{
    const double share = y / x;
    return share > 0x1p-20 ? fmin(share, 0x1p20) : 0x1p-20; /* 0 / 0 too */
}

/* Typical numbers, the medians of some rows': a block of threads each. */
enum { NORM, ERROR, OTHER_NORM, OTHER_ERROR, REACH, TYPICAL };

static __global__ void __launch_bounds__(THREADS) typical_kernel(limits k)
{
    const int t = threadIdx.x;
    const int which = (int)blockIdx.x;
    const bool other = which == OTHER_NORM || which == OTHER_ERROR;
    const gcu_filter_points &s = other ? k.q : k.p;
    const int count = (int)min(s.rows, (int64_t)THREADS);
    const int64_t i = t < count ? t * (s.rows / count) : 0;
    const double mine = which == REACH                           ? reach_of(k, i)
                        : which == ERROR || which == OTHER_ERROR ? s.error[i]
                                                                 : s.norm[i];
    const double found = rank_of(mine, t < count, count / 2, count);
    if (t == 0) k.typical[which] = found;
}

static __device__ shares shares_of(const double *typical)
{
    shares s;
    s.distance = share_of(fmax(typical[REACH], 0.0) + typical[ERROR], typical[OTHER_ERROR]);
    s.left = share_of(typical[NORM], typical[OTHER_ERROR]);
    s.right = share_of(typical[OTHER_NORM], typical[ERROR]);
    s.norms = share_of(typical[NORM], typical[OTHER_NORM]);
    return s;
}

/* A limit not above x; what can't be told passes. */
static __device__ float limit_of(double x, double size)
{
    x -= size * 0x1p-30;
    if (!(fabs(x) <= 1e25) || !(size <= 1e30)) return FILTER_ALWAYS;
    return __double2float_rd(x - fabs(x) * 0x1p-22 - 1e-30);
}

static __global__ void __launch_bounds__(THREADS) limits_kernel(limits k)
{
    __shared__ shares m;
    if (threadIdx.x == 0) m = shares_of(k.typical);
    __syncthreads();
    const int64_t at = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    const bool left = at < k.p.padded;
    const gcu_filter_points &s = left ? k.p : k.q;
    const int64_t i = left ? at : at - k.p.padded;
    if (i >= s.padded) return;
    float *to = (left ? k.p_limits : k.q_limits) + i;
    if (i >= s.rows) {
        *to = FILTER_NEVER;
        return;
    }
    const double norm = s.norm[i], error = s.error[i], own = s.own[i], squares = norm * norm;
    if (k.metric == GNOMON_IP) {
        /* |p| f, |q| e, e f and gamma |p||q| */
        const double norms = left ? m.norms : 1 / m.norms;
        double slack = k.gamma * norms * squares + error * error;
        slack += left ? m.left * squares + error * error / m.right
                      : m.right * squares + error * error / m.left;
        const double size = fabs(own) + norm * sqrt(k.facts->squares) + k.facts->squares;
        if (!left) {
            *to = limit_of(own - slack / 2, size);
            return;
        }
        const double product = reach_of(k, i);
        *to = isinf(product) && product > 0
                  ? FILTER_NEVER
                  : limit_of(product + own - slack / 2, size + fabs(product));
        return;
    }
    /* (|p|^2 + |q|^2 - (R + e + f)^2) / 2 and gamma |p||q| */
    const double kept = own - k.gamma * squares / 2;
    if (!left) {
        *to = limit_of(kept - error * error * (1 + 1 / m.distance) / 2, own);
        return;
    }
    double reach = reach_of(k, i);
    if (!(reach >= 0)) {
        *to = FILTER_NEVER;
        return;
    }
    if (k.metric == GNOMON_COSINE && s.inverse[i] == 0) { /* at distance 1 from all */
        *to = reach < 1.4 * k.facts->scale ? FILTER_NEVER : FILTER_ALWAYS;
        return;
    }
    reach += error;
    const double squared = reach * reach * (1 + m.distance);
    *to = limit_of(kept - squared / 2, own + squared);
}

size_t gcu_filter_limits_work(void)
{
    return 256;
}

cudaError_t gcu_filter_limits(const gcu_filter_centre *centre, const gcu_filter_points *p,
                              const gcu_filter_points *q, const double *radii, double radius,
                              float *p_limits, float *q_limits, void *work, cudaStream_t stream)
{
    if (p->rows == 0 || q->rows == 0) return cudaSuccess;
    const double gamma = 1.25 * ((double)p->cols + 64) * 0x1p-23;
    const limits k = {*p,       *q,      centre->facts, centre->metric,
                      radii,    radius,  gamma,         static_cast<double *>(work),
                      p_limits, q_limits};
    typical_kernel<<<TYPICAL, THREADS, 0, stream>>>(k);
    limits_kernel<<<(unsigned)gnomon_ceil_div(p->padded + q->padded, THREADS), THREADS, 0,
                    stream>>>(k);
    return cudaGetLastError();
}
