/* srht's transforms of adjacent points as they lie: lanes are points first, so that a column's
 * elements come from memory together, a row's sums go there together, and signs are one for many
 * lanes. Levels go as in blocks.cu, which makes the bits the same. Two blocks of threads on an SM
 * (one for 2^13 elements) load and compute in turn; calls for what comes next into L2 cost time. */
#include "cuda/project/srht/srht.h"
#include "cuda/project/srht/transform.cuh"

/* Points of a block of threads. */
static constexpr int points_of(int log2)
{
    return log2 == 10 ? 16 : log2 == 11 ? 8 : 4;
}

template <int LOG2> using across = lanes<LOG2, points_of(LOG2)>;

/* The block of elements at column q of this thread's point, with signs; those outside [low, high)
 * as 0. */
template <int LOG2>
static __device__ __forceinline__ void load(const srht_sum &sum, int64_t point, int64_t q, int t,
                                            uint32_t word, float *v)
{
    using L = across<LOG2>;
    const int64_t end = sum.point + sum.points;
    const int64_t low = max((int64_t)0, sum.x.first), high = min(sum.x.block_cols, sum.x.end);
    const int64_t step = sum.x.col_stride;
    const float *from = static_cast<const float *>(sum.x.data) +
                        min(point, end - 1) * sum.x.row_stride + (q + (t << 2)) * step;
    if (q >= low && q + (1 << LOG2) <= high) {
#pragma unroll
        for (int j = 0; j < 8; j++, from += step << (LOG2 - 3))
#pragma unroll
            for (int u = 0; u < 4; u++)
                v[4 * j + u] = from[u * step];
    } else {
#pragma unroll
        for (int j = 0; j < 8; j++, from += step << (LOG2 - 3))
#pragma unroll
            for (int u = 0; u < 4; u++) {
                const int64_t i = q + L::outer(t, j, u);
                v[4 * j + u] = i >= low && i < high ? from[u * step] : 0.0f;
            }
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        const uint32_t bits = L::signs_of(word, t, j);
#pragma unroll
        for (int u = 0; u < 4; u++)
            v[4 * j + u] = with_sign(v[4 * j + u], bits, u);
    }
}

/* Where sums go, and as what. */
struct target {
    float *to; /* of the first row and this thread's point */
    int64_t step;
    int low, high; /* the rows that are wanted */
    bool partial, exact;
    double factor, beta;
};

static __device__ __forceinline__ void put(const target &y, int row, float sum)
{
    if (row < y.low || row >= y.high) return;
    float *const to = y.to + row * y.step;
    if (y.partial)
        *to = sum;
    else if (y.exact) /* the product of two floats is a double, and is rounded once either way */
        *to = (float)y.factor * (sum + 0.0f);
    else
        *to = gcu_finished(y.factor, (double)sum, y.beta, to);
}

/* Row codes: twice where the element lies; from bit 16 on the signs of 16 blocks; in bit 0 whether
 * those of the segment's other half are their opposites. */
template <int LOG2>
static __device__ __forceinline__ uint32_t code_of(uint64_t sample, int64_t segment)
{
    return (uint32_t)across<LOG2>::at((int)(sample & ((1u << LOG2) - 1))) << 1 |
           (uint32_t)(sample >> (LOG2 + 4) & 1) | block_signs<LOG2>(sample, (uint64_t)segment * 2);
}

template <int LOG2>
static __device__ __forceinline__ float signed_element(const float *shared, uint32_t code, int u)
{
    const float e = shared[(code & 0xFFFEu) / 2 * across<LOG2>::points];
    const uint32_t sign = code << (15 - (u & 15)) ^ (u >= 16 ? code << 31 : 0);
    return __uint_as_float(__float_as_uint(e) ^ (sign & 0x80000000u));
}

/* ROWS: a thread's sums; 0: a point is one block of elements, so sums need no place, and any number
 * of rows go. */
template <int LOG2, int ROWS>
static __global__ void __launch_bounds__(across<LOG2>::block, 1024 / across<LOG2>::block)
    sum_across(srht_sum sum, int row_tiles, int64_t point_blocks)
{
    using L = across<LOG2>;
    constexpr int POINTS = L::points;
    extern __shared__ __align__(16) float raw[];
    uint32_t *const codes = reinterpret_cast<uint32_t *>(raw + L::floats);
    const int p = threadIdx.x % POINTS, t = threadIdx.x / POINTS;
    float *const shared = raw + p;
    const int64_t first_group = blockIdx.x % point_blocks;
    const int64_t tile = blockIdx.x / point_blocks % row_tiles;
    const int64_t segment = blockIdx.x / point_blocks / row_tiles;
    const int64_t row0 = ROWS ? tile * (ROWS * L::threads) : 0;
    const int64_t q0 = segment << (SRHT_SEGMENT_LOG2 + LOG2);
    const int64_t all = (sum.x.block_cols - q0 + (1 << LOG2) - 1) >> LOG2;
    const int blocks = ROWS ? (int)min(all, (int64_t)1 << SRHT_SEGMENT_LOG2) : 1;
    const int64_t end = sum.point + sum.points;
    const int64_t groups = (sum.points + POINTS - 1) / POINTS;
    const int rows = (int)min(sum.rows - row0, (int64_t)(ROWS ? ROWS * L::threads : 1 << LOG2));
    for (int r = threadIdx.x; r < (ROWS ? ROWS * L::threads : rows); r += L::block)
        codes[r] = r < rows ? code_of<LOG2>(sum.sample[row0 + r],
                                            (sum.col + q0) >> (SRHT_SEGMENT_LOG2 + LOG2))
                            : 0;
    __syncthreads();

    const int64_t first_row = sum.task_row + row0 - sum.out.row; /* of the output */
    target y;
    y.partial = sum.partial != nullptr;
    y.step = y.partial ? sum.points : sum.out.col_stride;
    y.low = y.partial ? 0 : (int)min(max(-first_row, (int64_t)0), (int64_t)rows);
    y.high =
        y.partial
            ? rows
            : (int)max(min(min(sum.out.k - sum.out.row, sum.out.rows) - first_row, (int64_t)rows),
                       (int64_t)0);
    y.factor = sum.out.factor_most;
    y.beta = sum.out.beta;
    y.exact = y.beta == 0.0 && (double)(float)y.factor == y.factor;

    const uint32_t *const sign = sum.sign + (q0 >> 5) + L::sign_word(threadIdx.x % 32, t);
    for (int64_t group = first_group; group < groups; group += point_blocks) {
        const int64_t point0 = sum.point + group * POINTS, point = point0 + p;
        float acc[ROWS ? ROWS : 1];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            acc[r] = 0.0f;
        for (int u = 0; u < blocks; u++) {
            {
                float v[32];
                load<LOG2>(sum, point, q0 + ((int64_t)u << LOG2), t, sign[(int64_t)u << LOG2 >> 5],
                           v);
                transform<LOG2, POINTS>(v, shared, t);
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                acc[r] += signed_element<LOG2>(shared, codes[r * L::threads + t], u);
            if (ROWS) __syncthreads();
        }
        y.to = y.partial
                   ? sum.partial + (segment * sum.rows + row0) * sum.points + point - sum.point
                   : static_cast<float *>(sum.out.y) + point * sum.out.row_stride +
                         first_row * sum.out.col_stride;
        if (ROWS) {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (point < end) put(y, r * L::threads + t, acc[r]);
        } else {
            if (point < end)
#pragma unroll 4
                for (int r = t; r < y.high; r += L::threads)
                    put(y, r, 0.0f + signed_element<LOG2>(shared, codes[r], 0));
            __syncthreads();
        }
    }
}

template <int LOG2, int ROWS>
static cudaError_t launch(const srht_sum &sum, int sms, cudaStream_t stream)
{
    using L = across<LOG2>;
    const int64_t codes = ROWS ? ROWS * L::threads : sum.rows;
    const size_t bytes = (size_t)(L::floats + codes) * 4;
    const auto kernel = sum_across<LOG2, ROWS>;
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const int64_t tiles = ROWS ? (sum.rows + codes - 1) / codes : 1;
    const int64_t groups = (sum.points + points_of(LOG2) - 1) / points_of(LOG2);
    /* as many blocks as are there at once, in turns of the same length */
    int64_t point_blocks = (int64_t)sms * (1024 / L::block) / (tiles * sum.segments);
    point_blocks = point_blocks < 1 ? 1 : point_blocks > groups ? groups : point_blocks;
    kernel<<<(unsigned)(point_blocks * tiles * sum.segments), L::block, bytes, stream>>>(
        sum, (int)tiles, point_blocks);
    return cudaGetLastError();
}

bool srht_across_supported(const srht_shape &shape, int64_t rows, const gcu_points &x,
                           size_t smem_bytes)
{
    const int points = points_of(shape.log2);
    const size_t bytes =
        ((size_t)points << shape.log2) * 4 + (size_t)(rows < 8192 ? rows : 8192) * 4;
    /* Four points are half a sector of memory a column: where sums are many beside the elements, a
     * copy of the points costs less, as at D = 4096. Fewer points leave most lanes idle. */
    if (shape.log2 == 12 || (shape.log2 == 13 && shape.order_log2 < 15)) return false;
    return x.dtype == GNOMON_F32 && x.row_stride == 1 && x.n * 2 >= points && bytes <= smem_bytes;
}

cudaError_t srht_sum_across(const srht_shape &shape, const srht_sum &sum, int sms,
                            cudaStream_t stream)
{
    const bool single = shape.order_log2 <= shape.log2;
    switch (shape.log2) {
    case 10:
        return single ? launch<10, 0>(sum, sms, stream) : launch<10, 8>(sum, sms, stream);
    case 11:
        return single ? launch<11, 0>(sum, sms, stream) : launch<11, 16>(sum, sms, stream);
    default:
        return launch<13, 16>(sum, sms, stream);
    }
}
