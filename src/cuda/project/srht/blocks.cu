/* srht's transforms. A thread holds 32 elements of a block: it applies five levels to them, trades
 * through shared memory, applies five more, trades, applies the rest; then every row adds its
 * element. The next block's elements are under way meanwhile. */
#include "cuda/project/srht/srht.h"
#include "cuda/runtime/mma.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* Where element i of a block lies: a step of four banks at every 128 elements. */
static __device__ __forceinline__ int place(int i)
{
    return i + (i >> 7 << 2);
}

/* One level of the transform on registers: bit BIT of the register's number. */
template <int COUNT, int BIT> static __device__ __forceinline__ void level(float *v)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if ((i >> BIT & 1) == 0) {
            const float a = v[i], b = v[i | 1 << BIT];
            v[i] = a + b;
            v[i | 1 << BIT] = a - b;
        }
}

template <int COUNT, int FIRST, int END> static __device__ __forceinline__ void levels(float *v)
{
    if constexpr (FIRST < END) {
        level<COUNT, FIRST>(v);
        levels<COUNT, FIRST + 1, END>(v);
    }
}

enum { ACROSS = 8 }; /* points of a block of threads that takes adjacent points */

/* LOG2: c. A point has 2^c / 32 threads; a block of threads at least 128, so perhaps several
 * points. */
template <int LOG2, bool across> struct layout {
    static constexpr int threads = (1 << LOG2) / 32; /* a point's */
    static constexpr int points = across ? ACROSS : threads < 128 ? 128 / threads : 1;
    static constexpr int block = threads * points;
    static constexpr int floats = (1 << LOG2) + (1 << LOG2) / 32;
    static constexpr int staged = (1 << LOG2) + (across ? 4 : 0); /* a point's elements */
};

template <typename T> struct alignas(4 * sizeof(T)) four {
    T x[4];
};

/* One point's coordinates; those outside [low, high) read as 0. */
template <typename T> struct line {
    const T *base;
    int64_t low, high;
    bool vector; /* four from a multiple of 4 on are one aligned load */
};

template <typename T>
static __device__ __forceinline__ line<T> line_of(const gcu_points &x, int64_t v, int64_t end)
{
    line<T> l;
    const bool there = v < end;
    l.base = static_cast<const T *>(x.data) + (there ? v : 0) * x.row_stride;
    l.low = max((int64_t)0, x.first);
    l.high = there ? min(x.block_cols, x.end) : 0;
    l.vector = x.col_stride == 1 && l.low == 0 &&
               reinterpret_cast<uintptr_t>(l.base) % (4 * sizeof(T)) == 0;
    return l;
}

template <int SIZE> static __device__ __forceinline__ void copy_async(uint32_t to, const void *from)
{
    if constexpr (SIZE == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(SIZE)
                     : "memory");
}

/* The same, the bytes from the given number on as zeros. */
template <int SIZE>
static __device__ __forceinline__ void copy_async(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(SIZE),
                 "r"(bytes)
                 : "memory");
}

/* Brings a thread's own elements of the block at column q to its point's stage. */
template <typename T, int LOG2>
static __device__ __forceinline__ void fetch(four<T> *stage, const line<T> &l, int64_t q, int t)
{
    constexpr int threads = (1 << LOG2) / 32;
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(stage + t);
    const int64_t left = l.high - q;
    const int count = left < 1 << LOG2 ? (int)max(left, (int64_t)0) : 1 << LOG2;
    if (l.vector && count == 1 << LOG2) {
        const T *const from = l.base + q + t * 4;
#pragma unroll
        for (int j = 0; j < 8; j++)
            copy_async<sizeof(four<T>)>(to + j * threads * (int)sizeof(four<T>),
                                        from + j * threads * 4);
    } else if (l.vector) {
#pragma unroll 1
        for (int j = 0; j < 8; j++) {
            const int i = (j * threads + t) * 4, have = min(max(count - i, 0), 4);
            copy_async<sizeof(four<T>)>(to + j * threads * (int)sizeof(four<T>),
                                        have > 0 ? l.base + q + i : l.base, have * (int)sizeof(T));
        }
    } else {
#pragma unroll 2
        for (int j = 0; j < 8; j++) {
            const int i = (j * threads + t) * 4;
            if constexpr (sizeof(T) == 4) {
#pragma unroll
                for (int u = 0; u < 4; u++) {
                    const bool have = q + i + u >= l.low && i + u < count;
                    copy_async<4>(to + (j * threads * 4 + u) * 4,
                                  have ? l.base + q + i + u : l.base, have ? 4 : 0);
                }
            } else {
                four<T> e;
#pragma unroll
                for (int u = 0; u < 4; u++)
                    e.x[u] = q + i + u >= l.low && i + u < count ? l.base[q + i + u] : (T)0.0f;
                stage[j * threads + t] = e;
            }
        }
    }
    gcu_copies_commit();
}

/* Brings the blocks at column q of eight adjacent points, all threads together: 32 adjacent bytes
 * of every column, each element to its own point's stage. */
template <int LOG2>
static __device__ __forceinline__ void fetch_across(float *stage, const gcu_points &x, int64_t v,
                                                    int64_t end, int64_t q)
{
    using L = layout<LOG2, true>;
    const int p = threadIdx.x % ACROSS, first = threadIdx.x / ACROSS;
    const int64_t low = max((int64_t)0, x.first), high = min(x.block_cols, x.end);
    const float *from = static_cast<const float *>(x.data) + (v + p) * x.row_stride;
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(stage + p * L::staged + first);
    const bool there = v + p < end;
    if (v + ACROSS <= end && q >= low && q + (1 << LOG2) <= high) {
        from += (q + first) * x.col_stride;
        const int64_t step = L::block / ACROSS * x.col_stride;
#pragma unroll 8
        for (int i = 0; i < 1 << LOG2; i += L::block / ACROSS, from += step)
            copy_async<4>(to + i * 4, from);
        gcu_copies_commit();
        return;
    }
#pragma unroll 1
    for (int i = 0; i < 1 << LOG2; i += L::block / ACROSS) {
        const int64_t at = q + i + first;
        const bool have = there && at >= low && at < high;
        copy_async<4>(to + i * 4, have ? from + at * x.col_stride : x.data, have ? 4 : 0);
    }
    gcu_copies_commit();
}

/* Waits for the threads of one point. */
template <int LOG2> static __device__ __forceinline__ void sync_point()
{
    if constexpr (LOG2 == 10)
        __syncwarp();
    else
        __syncthreads();
}

/* A thread's elements, with their signs; 'word' holds signs of the warp's elements. */
template <typename T, int LOG2>
static __device__ __forceinline__ void load_signed(const four<T> *stage, uint32_t word, int t,
                                                   float *v)
{
    constexpr int threads = (1 << LOG2) / 32;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const uint32_t bits = __shfl_sync(0xFFFFFFFFu, word, j * 4 + (t & 31) / 8) >> (t % 8 * 4);
        const four<T> x = stage[j * threads + t];
#pragma unroll
        for (int u = 0; u < 4; u++)
            v[4 * j + u] =
                __uint_as_float(__float_as_uint((float)x.x[u]) ^ (bits << (31 - u) & 0x80000000u));
    }
}

/* Where the signs lie that a lane holds for 'take'. */
template <int LOG2> static __device__ __forceinline__ int sign_word(int t)
{
    return (t & 31) / 4 * ((1 << LOG2) / 256) + t / 32 * 4 + t % 4;
}

/* Levels in place: element bits 0, 1 and the highest three, then bits 2 to 6, then the rest. */
template <int LOG2> static __device__ __forceinline__ void transform(float *v, float *shared, int t)
{
    constexpr int threads = (1 << LOG2) / 32;
    levels<32, 0, 5>(v);
#pragma unroll
    for (int j = 0; j < 8; j++)
        *reinterpret_cast<float4 *>(shared + place((j * threads + t) * 4)) =
            make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
    sync_point<LOG2>();
    {
        float *const p = shared + place((t >> 2) << 7) + (t & 3);
#pragma unroll
        for (int i = 0; i < 32; i++)
            v[i] = p[4 * i];
        levels<32, 0, 5>(v);
#pragma unroll
        for (int i = 0; i < 32; i++)
            p[4 * i] = v[i];
    }
    sync_point<LOG2>();
    /* left: bits 7 to LOG2 - 4, which is none for 10 */
    constexpr int left = LOG2 - 10, count = 1 << left;
    if constexpr (left > 0) {
        /* the other bits of an element: 0 and 1 (a vector of W), 2 to 6 and above 'left' */
        constexpr int W = left <= 3 ? 4 : 2;
        constexpr int sets = 32 / (count * W);
#pragma unroll
        for (int s = 0; s < sets; s++) {
            const int other = s * threads + t; /* 2^c / (count * W) of them */
            const int low = other & (128 / W - 1), high = other / (128 / W);
            float *const p = shared + place(high << (7 + left)) + low * W;
            float w[W][count];
#pragma unroll
            for (int i = 0; i < count; i++) {
                if constexpr (W == 4) {
                    const float4 x = *reinterpret_cast<const float4 *>(p + i * 132);
                    w[0][i] = x.x, w[1][i] = x.y, w[2][i] = x.z, w[3][i] = x.w;
                } else {
                    const float2 x = *reinterpret_cast<const float2 *>(p + i * 132);
                    w[0][i] = x.x, w[1][i] = x.y;
                }
            }
#pragma unroll
            for (int u = 0; u < W; u++)
                levels<count, 0, left>(w[u]);
#pragma unroll
            for (int i = 0; i < count; i++) {
                if constexpr (W == 4)
                    *reinterpret_cast<float4 *>(p + i * 132) =
                        make_float4(w[0][i], w[1][i], w[2][i], w[3][i]);
                else
                    *reinterpret_cast<float2 *>(p + i * 132) = make_float2(w[0][i], w[1][i]);
            }
        }
        sync_point<LOG2>();
    }
}

/* Row codes: the byte at which the element lies; from bit 16 on the signs (-1)^popcount((sample >>
 * c) & block) of 16 blocks; in bit 0 whether those of the segment's other half are their opposites.
 */
template <int LOG2>
static __device__ __forceinline__ uint32_t code_of(uint64_t sample, int64_t segment)
{
    const uint64_t high = sample >> LOG2;
    uint32_t signs = __popcll((high >> SRHT_SEGMENT_LOG2) & (uint64_t)segment) & 1 ? 0xFFFFu : 0;
    signs ^= high & 1 ? 0xAAAAu : 0;
    signs ^= high & 2 ? 0xCCCCu : 0;
    signs ^= high & 4 ? 0xF0F0u : 0;
    signs ^= high & 8 ? 0xFF00u : 0;
    return (uint32_t)place((int)(sample & ((1u << LOG2) - 1))) * 4 | (uint32_t)(high >> 4 & 1) |
           signs << 16;
}
static_assert(SRHT_SEGMENT_LOG2 == 5, "two halves of 16 blocks");

/* Where a thread's sums go: rows low <= r * threads + t < high of the tile, to 'to' at steps. */
struct store {
    float *to;
    int64_t step; /* elements, from one row of a thread to the next */
    int low, high;
};

template <int ROWS, int THREADS>
static __device__ __forceinline__ void put(const srht_sum &sum, const store &s, int t,
                                           const float *acc)
{
    if (sum.partial) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r * THREADS + t < s.high) s.to[r * s.step] = acc[r];
    } else if (sum.out.beta == 0.0) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r * THREADS + t >= s.low && r * THREADS + t < s.high)
                s.to[r * s.step] = (float)(sum.out.factor_most * ((double)acc[r] + 0.0));
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r * THREADS + t >= s.low && r * THREADS + t < s.high)
                s.to[r * s.step] = (float)(sum.out.factor_most * ((double)acc[r] + 0.0) +
                                           sum.out.beta * (double)s.to[r * s.step]);
    }
}

/* ROWS: a thread's. With more threads at once an SM was slower, spilled registers or not. */
template <typename T, int LOG2, int ROWS, bool across>
static __global__ void __launch_bounds__(layout<LOG2, across>::block,
                                         512 / layout<LOG2, across>::block)
    sum_kernel(srht_sum sum, int row_tiles, int64_t point_blocks, int rounds)
{
    extern __shared__ __align__(16) float raw[];
    using L = layout<LOG2, across>;
    const int t = threadIdx.x % L::threads, slot = threadIdx.x / L::threads;
    float *const shared = raw + slot * L::floats;
    T *const stages = reinterpret_cast<T *>(raw + L::floats * L::points);
    four<T> *const stage = reinterpret_cast<four<T> *>(stages + slot * L::staged);
    const int64_t point_block = blockIdx.x % point_blocks;
    const int64_t tile = blockIdx.x / point_blocks % row_tiles;
    const int64_t segment = blockIdx.x / point_blocks / row_tiles;
    const int64_t row0 = tile * (ROWS * L::threads);
    const int64_t q0 = segment << (SRHT_SEGMENT_LOG2 + LOG2);
    const int64_t all = (sum.x.block_cols - q0 + (1 << LOG2) - 1) >> LOG2;
    const int blocks = (int)(all < 1 << SRHT_SEGMENT_LOG2 ? all : 1 << SRHT_SEGMENT_LOG2);
    const int64_t end = sum.point + sum.points;
    const uint32_t *const sign = sum.sign + (q0 >> 5) + sign_word<LOG2>(t);

    /* many codes lie in shared memory, each written and read by its own thread */
    constexpr bool kept = ROWS <= 16;
    uint32_t few[kept ? ROWS : 1];
    uint32_t *const codes =
        reinterpret_cast<uint32_t *>(stages + L::points * L::staged) + threadIdx.x;
    auto code_at = [&](int r) -> uint32_t & { return kept ? few[r] : codes[r * L::block]; };
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int64_t row = row0 + r * L::threads + t;
        code_at(r) = row < sum.rows ? code_of<LOG2>(sum.sample[row],
                                                    (sum.col + q0) >> (SRHT_SEGMENT_LOG2 + LOG2))
                                    : 0;
    }
    float acc[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        acc[r] = 0.0f;

    /* The rows of this tile that the output has; it begins with row 'first_row' of the output. */
    const int64_t first_row = sum.task_row + row0 - sum.out.row;
    const int64_t most = min(sum.rows - row0, (int64_t)ROWS * L::threads);
    store to;
    to.step = sum.partial ? (int64_t)L::threads : L::threads * sum.out.col_stride;
    to.low = (int)min(max(-first_row, (int64_t)0), most);
    to.high = sum.partial
                  ? (int)most
                  : (int)max(min(min(sum.out.k - sum.out.row, sum.out.rows) - first_row, most),
                             (int64_t)0);

    int64_t v0 = sum.point + point_block * rounds * L::points; /* the first slot's */
    line<T> l = line_of<T>(sum.x, v0 + slot, end);
    auto bring = [&](int u) {
        if constexpr (across)
            fetch_across<LOG2>(stages, sum.x, v0, end, q0 + ((int64_t)u << LOG2));
        else
            fetch<T, LOG2>(stage, l, q0 + ((int64_t)u << LOG2), t);
    };
    bring(0);
    uint32_t word = *sign;
    int u = 0;
    for (int left = rounds * blocks; left > 0; left--) {
        float v[32];
        gcu_copies_wait<0>();
        if constexpr (across) __syncthreads();
        load_signed<T, LOG2>(stage, word, t, v);
        if constexpr (across) __syncthreads();
        const bool last = u + 1 == blocks;
        const int64_t point = v0 + slot;
        const int shift = 15 - (u & 15);
        const bool half = u == 15 || (last && u > 15); /* the next block is in the other half */
        u = last ? 0 : u + 1;
        if (left > 1) {
            if (last) {
                v0 += L::points;
                l = line_of<T>(sum.x, v0 + slot, end);
            }
            bring(u);
            word = sign[(int64_t)u << LOG2 >> 5];
        }
        transform<LOG2>(v, shared, t);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const uint32_t code = code_at(r);
            const float e = *reinterpret_cast<const float *>(
                reinterpret_cast<const char *>(shared) + (code & 0xFFFCu));
            acc[r] += __uint_as_float(__float_as_uint(e) ^ (code << shift & 0x80000000u));
        }
        if (half && blocks > 16) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                code_at(r) ^= (0u - (code_at(r) & 1)) << 16;
        }
        if (last) {
            if (point < end) {
                to.to = sum.partial
                            ? sum.partial + (segment * sum.points + point - sum.point) * sum.rows +
                                  row0 + t
                            : static_cast<float *>(sum.out.y) + point * sum.out.row_stride +
                                  (first_row + t) * sum.out.col_stride;
                put<ROWS, L::threads>(sum, to, t, acc);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                acc[r] = 0.0f;
        }
        sync_point<LOG2>();
    }
}

template <typename T, int LOG2, int ROWS, bool across>
static cudaError_t launch(const srht_sum &sum, int sms, cudaStream_t stream)
{
    using L = layout<LOG2, across>;
    const size_t bytes = (size_t)L::points * (L::floats * sizeof(float) + L::staged * sizeof(T)) +
                         (ROWS <= 16 ? 0 : (size_t)ROWS * L::block * sizeof(uint32_t));
    const auto kernel = sum_kernel<T, LOG2, ROWS, across>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const int64_t tiles = (sum.rows + ROWS * L::threads - 1) / (ROWS * L::threads);
    const int64_t groups = (sum.points + L::points - 1) / L::points;
    int64_t rounds = groups * tiles * sum.segments / ((int64_t)sms * 32);
    rounds = rounds < 1 ? 1 : rounds > 16 ? 16 : rounds;
    const int64_t point_blocks = (groups + rounds - 1) / rounds;
    kernel<<<(unsigned)(point_blocks * tiles * sum.segments), L::block, bytes, stream>>>(
        sum, (int)tiles, point_blocks, (int)rounds);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t choose(const srht_shape &shape, const srht_sum &sum, int sms,
                          cudaStream_t stream)
{
    switch (shape.log2) {
    case 10:
        return sum.rows <= 256 ? launch<T, 10, 8, false>(sum, sms, stream)
                               : launch<T, 10, 32, false>(sum, sms, stream);
    case 11:
        return launch<T, 11, 16, false>(sum, sms, stream);
    case 12:
        return launch<T, 12, 32, false>(sum, sms, stream);
    default:
        return launch<T, 13, 16, false>(sum, sms, stream);
    }
}

bool srht_across_supported(const srht_shape &shape, const gcu_points &x, size_t smem_bytes)
{
    using L = layout<11, true>;
    const size_t bytes = (size_t)L::points * (L::floats + L::staged) * sizeof(float);
    return (shape.log2 == 10 || (shape.log2 == 11 && bytes <= smem_bytes)) &&
           x.dtype == GNOMON_F32 && x.row_stride == 1;
}

cudaError_t srht_sum_blocks(const srht_shape &shape, const srht_sum &sum, int sms,
                            cudaStream_t stream)
{
    if (sum.across && shape.log2 == 11) return launch<float, 11, 16, true>(sum, sms, stream);
    if (sum.across)
        return sum.rows <= 256 ? launch<float, 10, 8, true>(sum, sms, stream)
                               : launch<float, 10, 32, true>(sum, sms, stream);
    switch (sum.x.dtype) {
    case GNOMON_F32:
        return choose<float>(shape, sum, sms, stream);
    case GNOMON_F16:
        return choose<__half>(shape, sum, sms, stream);
    case GNOMON_BF16:
        return choose<__nv_bfloat16>(shape, sum, sms, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
