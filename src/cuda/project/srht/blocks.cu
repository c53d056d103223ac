/* srht's transforms. A thread holds 32 elements of a block: it applies five levels to them, trades
 * through shared memory, applies five more, trades, applies the rest; then every row adds its
 * element. The next block's elements are under way meanwhile. */
#include "cuda/project/srht/srht.h"
#include "cuda/project/srht/transform.cuh"
#include "cuda/runtime/mma.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

/* LOG2: c. A point has 2^c / 32 threads; a block of threads at least 128, so perhaps several
 * points. */
template <int LOG2> struct layout {
    static constexpr int threads = (1 << LOG2) / 32; /* a point's */
    static constexpr int points = threads < 128 ? 128 / threads : 1;
    static constexpr int block = threads * points;
    static constexpr int floats = lanes<LOG2, 1>::floats;
    static constexpr int staged = 1 << LOG2; /* a point's elements */
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
    const uint32_t to = gcu_shared_address(stage + t);
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

/* A thread's elements, with their signs; 'word' holds signs of the warp's elements. */
template <typename T, int LOG2>
static __device__ __forceinline__ void load_signed(const four<T> *stage, uint32_t word, int t,
                                                   float *v)
{
    constexpr int threads = (1 << LOG2) / 32;
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const uint32_t bits = lanes<LOG2, 1>::signs_of(word, t, j);
        const four<T> x = stage[j * threads + t];
#pragma unroll
        for (int u = 0; u < 4; u++)
            v[4 * j + u] = with_sign((float)x.x[u], bits, u);
    }
}

/* Row codes: the byte at which the element lies; from bit 16 on the signs (-1)^popcount((sample >>
 * c) & block) of 16 blocks; in bit 0 whether those of the segment's other half are their opposites.
 */
template <int LOG2>
static __device__ __forceinline__ uint32_t code_of(uint64_t sample, int64_t segment)
{
    return (uint32_t)place((int)(sample & ((1u << LOG2) - 1))) * 4 |
           (uint32_t)(sample >> (LOG2 + 4) & 1) | block_signs<LOG2>(sample, (uint64_t)segment * 2);
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
                s.to[r * s.step] = gcu_finished(sum.out.factor_most, (double)acc[r], sum.out.beta,
                                                s.to + r * s.step);
    }
}

/* ROWS: a thread's. With more threads at once an SM was slower, spilled registers or not. */
template <typename T, int LOG2, int ROWS>
static __global__ void __launch_bounds__(layout<LOG2>::block, 512 / layout<LOG2>::block)
    sum_kernel(srht_sum sum, int row_tiles, int64_t point_blocks, int rounds)
{
    extern __shared__ __align__(16) float raw[];
    using L = layout<LOG2>;
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
    const uint32_t *const sign =
        sum.sign + (q0 >> 5) + lanes<LOG2, 1>::sign_word(threadIdx.x % 32, t);

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
    auto bring = [&](int u) { fetch<T, LOG2>(stage, l, q0 + ((int64_t)u << LOG2), t); };
    bring(0);
    uint32_t word = *sign;
    int u = 0;
    for (int left = rounds * blocks; left > 0; left--) {
        float v[32];
        gcu_copies_wait<0>();
        load_signed<T, LOG2>(stage, word, t, v);
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
        transform<LOG2, 1>(v, shared, t);
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
        sync_points<LOG2, 1>();
    }
}

template <typename T, int LOG2, int ROWS>
static cudaError_t launch(const srht_sum &sum, int sms, cudaStream_t stream)
{
    using L = layout<LOG2>;
    const size_t bytes = (size_t)L::points * (L::floats * sizeof(float) + L::staged * sizeof(T)) +
                         (ROWS <= 16 ? 0 : (size_t)ROWS * L::block * sizeof(uint32_t));
    const auto kernel = sum_kernel<T, LOG2, ROWS>;
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
        return sum.rows <= 256 ? launch<T, 10, 8>(sum, sms, stream)
                               : launch<T, 10, 32>(sum, sms, stream);
    case 11:
        return launch<T, 11, 16>(sum, sms, stream);
    case 12:
        return launch<T, 12, 32>(sum, sms, stream);
    default:
        return launch<T, 13, 16>(sum, sms, stream);
    }
}

cudaError_t srht_sum_blocks(const srht_shape &shape, const srht_sum &sum, int sms,
                            cudaStream_t stream)
{
    if (sum.across) return srht_sum_across(shape, sum, sms, stream);
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
