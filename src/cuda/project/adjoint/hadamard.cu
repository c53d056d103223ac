/* A level of an adjoint for srht, in one pass over X. The Hadamard matrix of order 2^b is the
 * Kronecker product of those of orders 2^(b - c) and 2^c, so 2^c columns of X are a transform of
 * 2^c elements, to which row a of A adds its element of Z at perm(a) mod 2^c, with the sign
 * (-1)^popcount((perm(a) >> c) & block). Rows that meet in an element add in ascending order: they
 * are put in order of how many rows were there before (their rank), and ranks go one after the
 * other. */
#include "cuda/project/adjoint/adjoint.h"
#include "cuda/project/srht/srht.h"
#include "cuda/project/srht/transform.cuh"

enum {
    MOST_ROWS = 1024,
    MOST_SPAN = 16,        /* blocks of columns that a block of threads does, at most */
    MOST_BLOCKS = 1 << 24, /* of threads in a launch */
    ORDER_THREADS = 1024
};

struct ranked {
    uint64_t *sample; /* perm of the rows */
    uint64_t *entry;  /* the same, by rank */
    uint32_t *row, *start, *taken, *ranks;
};

/* One block of threads: in each turn the first of an element's rows that are left takes it. */
static __global__ void __launch_bounds__(ORDER_THREADS)
    rank_rows(ranked by, uint32_t rows, int log2)
{
    extern __shared__ uint32_t first[];
    __shared__ uint32_t placed;
    const uint32_t t = threadIdx.x, mask = (1u << log2) - 1;
    if (t == 0) placed = 0;
    for (uint32_t i = t; i < rows; i += ORDER_THREADS)
        by.taken[i] = 0;
    uint32_t rank = 0;
    for (;; rank++) {
        for (uint32_t i = t; i <= mask; i += ORDER_THREADS)
            first[i] = 0xFFFFFFFFu;
        __syncthreads();
        const uint32_t before = placed;
        if (t == 0) by.start[rank] = before;
        if (before == rows) break;
        for (uint32_t i = t; i < rows; i += ORDER_THREADS)
            if (!by.taken[i]) atomicMin(&first[(uint32_t)by.sample[i] & mask], i);
        __syncthreads();
        for (uint32_t i = t; i < rows; i += ORDER_THREADS)
            if (!by.taken[i] && first[(uint32_t)by.sample[i] & mask] == i) {
                const uint32_t to = atomicAdd(&placed, 1u);
                by.taken[i] = 1;
                by.entry[to] = by.sample[i];
                by.row[to] = i;
            }
        __syncthreads();
    }
    if (t == 0) *by.ranks = rank;
}

/* POINTS: 1 (a thread's columns are adjacent), or as 'lanes' has them. */
template <int LOG2, int POINTS> struct shape {
    using L = lanes<LOG2, POINTS>;
    static constexpr int lone = POINTS > 1 ? 1 : L::threads < 128 ? 128 / L::threads : 1;
    static constexpr int points = POINTS > 1 ? POINTS : lone;
    static constexpr int block = L::threads * points;
};

/* Where an element lies (14 bits), and its signs in 16 blocks. */
template <int LOG2, int POINTS>
static __device__ __forceinline__ uint32_t code_of(uint64_t sample, uint64_t segment)
{
    return (uint32_t)lanes<LOG2, POINTS>::at((int)(sample & ((1u << LOG2) - 1))) |
           block_signs<LOG2>(sample, segment);
}

static __device__ __forceinline__ float z_of(const gcu_level &l, int64_t v, int64_t a)
{
    if (v >= l.n) return 0.0f;
    const int64_t at = v * l.z_row_stride + (l.a_row + a - l.row) * l.z_col_stride;
    return l.z_dtype == GNOMON_F32 ? static_cast<const float *>(l.z)[at]
                                   : gcu_element<float>(l.z, l.z_dtype, at);
}

template <int LOG2, int POINTS>
static __device__ __forceinline__ void write(const gcu_level &l, int64_t v, int64_t block, int t,
                                             bool exact, const float *x)
{
    using L = lanes<LOG2, POINTS>;
    const int64_t j0 = block << LOG2;
    const float factor = (float)l.factor_most;
    if (exact && v < l.n && j0 >= l.a_col && j0 + (1 << LOG2) <= l.a_col_end) {
        float *const to = static_cast<float *>(l.x) + v * l.x_row_stride +
                          (j0 + L::outer(t, 0, 0) - l.col) * l.x_col_stride;
        if (POINTS > 1) {
            float *at = to;
#pragma unroll
            for (int j = 0; j < 8; j++, at += l.x_col_stride << (LOG2 - 3))
#pragma unroll
                for (int u = 0; u < 4; u++)
                    at[u * l.x_col_stride] = factor * (x[4 * j + u] + 0.0f);
            return;
        }
        if (l.x_col_stride == 1 && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
#pragma unroll
            for (int j = 0; j < 8; j++)
                *reinterpret_cast<float4 *>(to + (j << (LOG2 - 3))) =
                    make_float4(factor * (x[4 * j] + 0.0f), factor * (x[4 * j + 1] + 0.0f),
                                factor * (x[4 * j + 2] + 0.0f), factor * (x[4 * j + 3] + 0.0f));
            return;
        }
    }
    if (v >= l.n) return;
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int u = 0; u < 4; u++) {
            const int64_t column = j0 + L::outer(t, j, u);
            if (column >= l.a_col && column < l.a_col_end)
                gcu_level_write<float>(l, v, column, x[4 * j + u]);
        }
}

/* The rows' codes, and a lone point's elements, lie in shared memory. */
template <int LOG2, int POINTS>
static __global__ void __launch_bounds__(shape<LOG2, POINTS>::block,
                                         1024 / shape<LOG2, POINTS>::block)
    transform_rows(gcu_level l, ranked by, int64_t groups, int span)
{
    using S = shape<LOG2, POINTS>;
    using L = lanes<LOG2, POINTS>;
    extern __shared__ __align__(16) float raw[];
    const int rows = (int)(l.a_row_end - l.a_row);
    uint32_t *const codes = reinterpret_cast<uint32_t *>(raw + L::floats * S::lone);
    const int p = POINTS > 1 ? threadIdx.x % POINTS : threadIdx.x / L::threads;
    const int t = POINTS > 1 ? threadIdx.x / POINTS : threadIdx.x % L::threads;
    float *const shared = raw + p * (POINTS > 1 ? 1 : L::floats);
    float *const held_z = reinterpret_cast<float *>(codes + rows) + p * rows; /* POINTS 1 */
    const int64_t v = blockIdx.x % groups * S::points + p;
    const int64_t low = l.a_col >> LOG2, high = (l.a_col_end - 1) >> LOG2;
    const int64_t first = (low / span + blockIdx.x / groups) * span;
    const uint64_t segment = (uint64_t)first / 16;
    const bool exact =
        l.x_dtype == GNOMON_F32 && l.beta == 0.0 && (double)(float)l.factor_most == l.factor_most;
    for (int e = threadIdx.x; e < rows; e += S::block)
        codes[e] = code_of<LOG2, POINTS>(by.entry[e], segment);
    if (POINTS == 1)
        for (int e = t; e < rows; e += L::threads)
            held_z[e] = z_of(l, v, by.row[e]);
    __syncthreads();
    const int ranks = (int)*by.ranks;
    const int64_t begin = first > low ? first : low;
    const int64_t end = first + span <= high ? first + span : high + 1;
    for (int64_t block = begin; block < end; block++) {
        const int shift = 15 - (int)(block & 15);
        if (POINTS == 1) {
            for (int i = t; i < L::floats / 4; i += L::threads)
                reinterpret_cast<float4 *>(shared)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        } else {
            for (int i = threadIdx.x; i < L::floats / 4; i += L::block)
                reinterpret_cast<float4 *>(raw)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        sync_points<LOG2, POINTS>();
        for (int rank = 0; rank < ranks; rank++) {
            const int stop = (int)by.start[rank + 1];
#pragma unroll 4
            for (int e = (int)by.start[rank] + t; e < stop; e += L::threads) {
                const uint32_t code = codes[e];
                const float z = POINTS == 1 ? held_z[e] : z_of(l, v, by.row[e]);
                shared[(code & 0xFFFFu) * POINTS] +=
                    __uint_as_float(__float_as_uint(z) ^ (code << shift & 0x80000000u));
            }
            sync_points<LOG2, POINTS>();
        }
        if constexpr (L::left > 0) {
            L::rest(shared, t);
            sync_points<LOG2, POINTS>();
        }
        L::middle(shared, t);
        sync_points<LOG2, POINTS>();
        float x[32];
        L::get_outer(x, shared, t);
        sync_points<LOG2, POINTS>();
        levels<32, 0, 5>(x);
        const int64_t words = block << LOG2 >> 5;
        const uint32_t word =
            gcu_call(l.a.stream, 0, (uint64_t)(words + L::sign_word(threadIdx.x % 32, t))).x;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t bits = L::signs_of(word, t, j);
#pragma unroll
            for (int u = 0; u < 4; u++)
                x[4 * j + u] = with_sign(x[4 * j + u], bits, u);
        }
        write<LOG2, POINTS>(l, v, block, t, exact, x);
    }
}

template <int LOG2, int POINTS>
static cudaError_t launch(const gcu_level &l, const ranked &by, int sms, cudaStream_t stream)
{
    using S = shape<LOG2, POINTS>;
    using L = lanes<LOG2, POINTS>;
    const int64_t rows = l.a_row_end - l.a_row;
    const int64_t words = L::floats * S::lone + rows * (POINTS > 1 ? 1 : 1 + S::lone);
    const size_t bytes = (size_t)words * 4;
    const auto kernel = transform_rows<LOG2, POINTS>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    int resident = 1;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, S::block, bytes);
    if (error != cudaSuccess) return error;
    const int64_t slots = (int64_t)sms * (resident < 1 ? 1 : resident);
    const int64_t groups = (l.n + S::points - 1) / S::points;
    const int64_t low = l.a_col >> LOG2, high = (l.a_col_end - 1) >> LOG2;
    /* the span that ends first, a block's codes costing about a span of one */
    int span = MOST_SPAN;
    int64_t best = INT64_MAX, spans = 1;
    for (int s = MOST_SPAN; s > 0; s /= 2) {
        const int64_t count = high / s - low / s + 1;
        const int64_t cost = (groups * count + slots - 1) / slots * (s + 1);
        if (cost < best) best = cost, span = s, spans = count;
    }
    const int64_t most = spans < MOST_BLOCKS ? MOST_BLOCKS / spans : 1;
    for (int64_t group = 0; group < groups; group += most) {
        const int64_t count = groups - group < most ? groups - group : most, v = group * S::points;
        gcu_level some = l;
        some.n = l.n - v < count * S::points ? l.n - v : count * S::points;
        some.z = static_cast<const char *>(l.z) +
                 v * l.z_row_stride * (int64_t)gnomon_dtype_size(l.z_dtype);
        some.x =
            static_cast<char *>(l.x) + v * l.x_row_stride * (int64_t)gnomon_dtype_size(l.x_dtype);
        kernel<<<(unsigned)(count * spans), S::block, bytes, stream>>>(some, by, count, span);
    }
    return cudaGetLastError();
}

static ranked ranked_in(void *work, int64_t rows)
{
    ranked by;
    by.sample = static_cast<uint64_t *>(work);
    by.entry = by.sample + rows;
    by.row = reinterpret_cast<uint32_t *>(by.entry + rows);
    by.taken = by.row + rows;
    by.ranks = by.taken + rows;
    by.start = by.ranks + 1; /* rows + 1 at most */
    return by;
}

/* More rows would take blocks of more elements. */
bool gcu_adjoint_hadamard_supported(const gnomon_simple *a)
{
    return a->rows <= MOST_ROWS;
}

size_t gcu_adjoint_hadamard_bytes(const gnomon_simple *a)
{
    return gcu_adjoint_hadamard_supported(a) ? (size_t)a->rows * 28 + 8 : 0;
}

cudaError_t gcu_adjoint_hadamard(const gcu_level &l, const gnomon_simple *a, void *work, int sms,
                                 cudaStream_t stream)
{
    const int64_t rows = l.a_row_end - l.a_row;
    if (rows <= 0) return gcu_adjoint_dense(l, false, stream);
    const srht_shape s = srht_shape_of(a); /* c is that of the sums: 10 or 11 for so few rows */
    const ranked by = ranked_in(work, rows);
    cudaError_t error = srht_samples(s, l.a_row, rows, by.sample, stream);
    if (error != cudaSuccess) return error;
    rank_rows<<<1, ORDER_THREADS, (size_t)4 << s.log2, stream>>>(by, (uint32_t)rows, s.log2);
    error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    /* adjacent points together where that leaves few lanes idle */
    const bool across = l.x_row_stride == 1 && l.x_col_stride != 1;
    if (s.log2 == 10)
        return across && l.n >= 8 ? launch<10, 16>(l, by, sms, stream)
                                  : launch<10, 1>(l, by, sms, stream);
    return across && l.n >= 4 ? launch<11, 8>(l, by, sms, stream)
                              : launch<11, 1>(l, by, sms, stream);
}
