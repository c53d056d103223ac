/* A level of an adjoint for srht, in one pass over X. The Hadamard matrix of order 2^b is the
 * Kronecker product of those of orders 2^(b - c) and 2^c, so 2^c columns of X are a transform of
 * 2^c elements, to which row a of A adds its element of Z at perm(a) mod 2^c, with the sign
 * (-1)^popcount((perm(a) >> c) & block). Rows that meet in an element add in ascending order: they
 * are put in order of how many rows were there before (their rank), and ranks go one after the
 * other. Z is copied to that order first, some points at a time. */
#include "cuda/project/adjoint/adjoint.h"
#include "cuda/project/srht/srht.h"
#include "cuda/project/srht/transform.cuh"

enum { ORDER_THREADS = 1024, BANKED = 32 /* ranks whose rows go by banks: a warp's lanes */ };

static const int64_t COPIED_POINTS = 1024; /* whose Z is in order at a time, at most */
static const int64_t MOST_ROWS = INT32_MAX - ORDER_THREADS; /* an int counts beyond them */

struct ranked {
    uint64_t *sample; /* perm of the rows */
    uint64_t *entry;  /* the same, by rank */
    uint32_t *row;    /* of A, less the first, by rank */
    uint32_t *rank, *ranks;
    uint32_t *start;  /* of the ranks, and their end */
    uint32_t *placed; /* rows of a rank that are in their place */
};

/* One block of threads. Rows come some at a time, and in each turn the first of an element's rows
 * that are left takes the element's next rank. Rows of a low rank go by the bank that their element
 * lies in, so that a warp's rows seldom meet in one. */
template <int LOG2, int POINTS>
static __global__ void __launch_bounds__(ORDER_THREADS) rank_rows(ranked by, uint32_t rows)
{
    constexpr uint32_t mask = (1u << LOG2) - 1, none = 0xFFFFFFFFu;
    constexpr int banks = 32 / POINTS;                    /* of a point's elements */
    constexpr int each = 4;                               /* rows of a thread */
    __shared__ uint32_t first[mask + 1], count[mask + 1]; /* of an element's rows */
    __shared__ __align__(16) uint32_t of_bank[BANKED][banks];
    __shared__ uint32_t placed[BANKED][banks], start[BANKED + 1], ranks;
    const uint32_t t = threadIdx.x;
    const auto bank_of = [](uint64_t sample) {
        return lanes<LOG2, POINTS>::at((int)((uint32_t)sample & mask)) % banks;
    };
    for (uint32_t e = t; e <= mask; e += ORDER_THREADS)
        first[e] = none, count[e] = 0;
    for (int i = (int)t; i < BANKED * banks; i += ORDER_THREADS)
        of_bank[i / banks][i % banks] = placed[i / banks][i % banks] = 0;
    for (uint32_t i = t; i <= rows; i += ORDER_THREADS)
        by.start[i] = by.placed[i] = 0;
    if (t == 0) ranks = start[0] = 0;
    for (uint32_t i0 = 0; i0 < rows; i0 += each * ORDER_THREADS) {
        uint64_t sample[each];
        uint32_t left = 0;
#pragma unroll
        for (int u = 0; u < each; u++) {
            const uint32_t i = i0 + u * ORDER_THREADS + t;
            sample[u] = i < rows ? by.sample[i] : 0;
            left |= (uint32_t)(i < rows) << u;
        }
        while (__syncthreads_or((int)left)) {
#pragma unroll
            for (int u = 0; u < each; u++)
                if (left >> u & 1)
                    atomicMin(&first[(uint32_t)sample[u] & mask], i0 + u * ORDER_THREADS + t);
            __syncthreads();
            uint32_t mine = 0;
#pragma unroll
            for (int u = 0; u < each; u++)
                if (left >> u & 1 &&
                    first[(uint32_t)sample[u] & mask] == i0 + u * ORDER_THREADS + t)
                    mine |= 1u << u;
            __syncthreads();
            left &= ~mine;
#pragma unroll
            for (int u = 0; u < each; u++) {
                if (!(mine >> u & 1)) continue;
                const uint32_t e = (uint32_t)sample[u] & mask, rank = count[e]++;
                first[e] = none;
                by.rank[i0 + u * ORDER_THREADS + t] = rank;
                if (rank < BANKED)
                    atomicAdd(&of_bank[rank][bank_of(sample[u])], 1u);
                else
                    atomicAdd(&by.start[rank + 1], 1u);
            }
        }
    }
    uint32_t most = 0;
    for (uint32_t e = t; e <= mask; e += ORDER_THREADS)
        most = max(most, count[e]);
    most = __reduce_max_sync(~0u, most);
    if (t % 32 == 0) atomicMax(&ranks, most);
    __syncthreads();
    if (t < 32) { /* a lane a rank */
        uint32_t sum = 0;
        for (int b = 0; b < banks; b++)
            sum += of_bank[t][(b + t) % banks];
        for (int d = 1; d < 32; d *= 2) {
            const uint32_t below = __shfl_up_sync(~0u, sum, d);
            if ((int)t >= d) sum += below;
        }
        start[t + 1] = sum;
        if (t < ranks) by.start[t + 1] = sum;
        if (t == 31)
            for (uint32_t rank = BANKED; rank < ranks; rank++)
                by.start[rank + 1] = sum += by.start[rank + 1];
        if (t == 0) *by.ranks = ranks;
    }
    __syncthreads();
    for (uint32_t i = t; i < rows; i += ORDER_THREADS) {
        const uint64_t sample = by.sample[i];
        const uint32_t rank = by.rank[i];
        uint32_t to;
        if (rank < BANKED) { /* turn by turn, and in a turn bank by bank */
            const int bank = bank_of(sample);
            const uint32_t turn = atomicAdd(&placed[rank][bank], 1u);
            to = start[rank];
#pragma unroll
            for (int b = 0; b < banks; b++) {
                const uint32_t there = of_bank[rank][b];
                to += min(there, turn) + (b < bank && there > turn);
            }
        } else {
            to = by.start[rank] + atomicAdd(&by.placed[rank], 1u);
        }
        by.entry[to] = sample;
        by.row[to] = i;
    }
}

/* LONE points of adjacent columns, or POINTS adjacent ones as 'lanes' has them, are a block of
 * threads. */
template <int LOG2, int POINTS, int LONE> struct shape {
    using L = lanes<LOG2, POINTS>;
    static constexpr int points = POINTS * LONE;
    static constexpr int block = L::threads * points;
    /* Z of so few rows lies in shared memory; else it is put in order first. */
    static constexpr bool holds_z = POINTS == 1 && LOG2 <= 11;
};

static __device__ __forceinline__ float z_of(const gcu_level &l, const ranked &by, int64_t v,
                                             int64_t e)
{
    const int64_t a = by.row[e] + l.a_row - l.row;
    return v < l.n ? gcu_element<float>(l.z, l.z_dtype, v * l.z_row_stride + a * l.z_col_stride)
                   : 0.0f;
}

/* Elements of Z for 'points' points from v0 on as fp32, POINTS of them beside each other, rows by
 * rank. */
template <int POINTS>
static __global__ void __launch_bounds__(256)
    order_z(gcu_level l, ranked by, int64_t v0, int64_t points, float *to)
{
    const int64_t rows = l.a_row_end - l.a_row;
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < points * rows)
        to[i] = z_of(l, by, v0 + i / POINTS / rows * POINTS + i % POINTS, i / POINTS % rows);
}

/* Waits for the threads that share a point's elements; p is one of LONE such points. */
template <int LOG2, int POINTS, int LONE> static __device__ __forceinline__ void sync_shared(int p)
{
    if constexpr (LONE == 1 || LOG2 == 10)
        sync_points<LOG2, POINTS>();
    else
        asm volatile("bar.sync %0, %1;" ::"r"(p + 1), "n"(lanes<LOG2, POINTS>::threads) : "memory");
}

/* Where an element lies (14 bits), and its signs in 16 blocks. */
template <int LOG2, int POINTS>
static __device__ __forceinline__ uint32_t code_of(uint64_t sample, uint64_t segment)
{
    return (uint32_t)lanes<LOG2, POINTS>::at((int)(sample & ((1u << LOG2) - 1))) |
           block_signs<LOG2>(sample, segment);
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

/* Of a launch: units of a group of points and a block of columns. Adjacent points go block by
 * block, for what lies side by side in memory to be written at a time, lone ones group by group. */
struct course {
    ranked by;
    const float *z;  /* as order_z has it */
    int64_t v0, low; /* the first point, and block of columns */
    int groups, blocks;
};

/* HELD: the rows' codes lie in shared memory. */
template <int LOG2, int POINTS, int LONE, bool HELD>
static __global__ void __launch_bounds__(shape<LOG2, POINTS, LONE>::block,
                                         1024 / shape<LOG2, POINTS, LONE>::block)
    transform_rows(gcu_level l, course c)
{
    using S = shape<LOG2, POINTS, LONE>;
    using L = lanes<LOG2, POINTS>;
    extern __shared__ __align__(16) float raw[];
    __shared__ int start[BANKED + 1];
    const int rows = (int)(l.a_row_end - l.a_row);
    uint32_t *const codes = reinterpret_cast<uint32_t *>(raw + L::floats * LONE);
    const int p = POINTS > 1 ? threadIdx.x % POINTS : threadIdx.x / L::threads;
    const int t = POINTS > 1 ? threadIdx.x / POINTS : threadIdx.x % L::threads;
    float *const shared = raw + p * (POINTS > 1 ? 1 : L::floats);
    const bool exact =
        l.x_dtype == GNOMON_F32 && l.beta == 0.0 && (double)(float)l.factor_most == l.factor_most;
    const int ranks = (int)*c.by.ranks;
    for (int i = threadIdx.x; i <= BANKED && i <= ranks; i += S::block)
        start[i] = (int)c.by.start[i];
    __syncthreads();
    const int64_t units = (int64_t)c.groups * c.blocks;
    int left, group, block, groups_on, blocks_on; /* and from one unit to the next */
    if (POINTS > 1) {
        left = (int)((units - blockIdx.x + gridDim.x - 1) / gridDim.x);
        group = blockIdx.x % c.groups, block = blockIdx.x / c.groups;
        groups_on = gridDim.x % c.groups, blocks_on = gridDim.x / c.groups;
    } else {
        const int64_t begin = units * blockIdx.x / gridDim.x;
        left = (int)(units * (blockIdx.x + 1) / gridDim.x - begin);
        group = (int)(begin / c.blocks), block = (int)(begin % c.blocks);
        groups_on = 0, blocks_on = 1;
    }
    int64_t codes_of = -1; /* segment */
    int z_of_group = -1;   /* what lies in shared memory */
    for (; left > 0; left--, group += groups_on, block += blocks_on) {
        if (POINTS > 1 && group >= c.groups) group -= c.groups, block++;
        if (POINTS == 1 && block >= c.blocks) group++, block = 0;
        const int64_t v = c.v0 + group * S::points + p, column_block = c.low + block;
        const uint64_t segment = (uint64_t)column_block / 16;
        const int shift = 15 - (int)(column_block & 15);
        if (HELD && codes_of != (int64_t)segment) {
            codes_of = (int64_t)segment;
            __syncthreads();
            for (int e = threadIdx.x; e < rows; e += S::block)
                codes[e] = code_of<LOG2, POINTS>(c.by.entry[e], segment);
            __syncthreads();
        }
        const float *z;
        if constexpr (S::holds_z) {
            float *const held = reinterpret_cast<float *>(codes + rows) + p * rows;
            z = held;
            if (z_of_group != group) {
                z_of_group = group;
                for (int e = t; e < rows; e += L::threads)
                    held[e] = z_of(l, c.by, v, e);
            }
        } else {
            z = c.z + (POINTS > 1 ? (int64_t)group * rows * POINTS + p
                                  : (int64_t)(group * LONE + p) * rows);
        }
        const auto start_of = [&](int rank) {
            return rank <= BANKED ? start[rank] : (int)c.by.start[rank];
        };
        const auto code_at = [&](int e) {
            return HELD ? codes[e] : code_of<LOG2, POINTS>(c.by.entry[e], segment);
        };
        const auto element_of = [&](uint32_t code) { return shared + (code & 0xFFFFu) * POINTS; };
        const auto signed_of = [&](uint32_t code, float value) {
            return __uint_as_float(__float_as_uint(value) ^ (code << shift & 0x80000000u));
        };
        /* of each rank the first row's code and element come before the wait for the rank below */
        int e = t, stop = start_of(1);
        uint32_t code = 0;
        float z_of_e = 0.0f;
        if (S::holds_z) sync_shared<LOG2, POINTS, LONE>(p);
        if (e < stop) code = code_at(e), z_of_e = z[(int64_t)e * POINTS];
        if (POINTS == 1) {
            for (int i = t; i < L::floats / 4; i += L::threads)
                reinterpret_cast<float4 *>(shared)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        } else {
            for (int i = threadIdx.x; i < L::floats / 4; i += L::block)
                reinterpret_cast<float4 *>(raw)[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        sync_shared<LOG2, POINTS, LONE>(p);
        for (int rank = 0; rank < ranks; rank++) {
            if (e < stop) {
                if (rank == 0) {
                    *element_of(code) = signed_of(code, z_of_e);
#pragma unroll 8
                    for (e += L::threads; e < stop; e += L::threads) {
                        const uint32_t other = code_at(e);
                        *element_of(other) = signed_of(other, z[(int64_t)e * POINTS]);
                    }
                } else {
                    *element_of(code) += signed_of(code, z_of_e);
#pragma unroll 4
                    for (e += L::threads; e < stop; e += L::threads) {
                        const uint32_t other = code_at(e);
                        *element_of(other) += signed_of(other, z[(int64_t)e * POINTS]);
                    }
                }
            }
            e = stop + t, stop = rank + 1 < ranks ? start_of(rank + 2) : stop;
            if (e < stop) code = code_at(e), z_of_e = z[(int64_t)e * POINTS];
            sync_shared<LOG2, POINTS, LONE>(p);
        }
        if constexpr (L::left > 0) {
            L::rest(shared, t);
            sync_shared<LOG2, POINTS, LONE>(p);
        }
        L::middle(shared, t);
        sync_shared<LOG2, POINTS, LONE>(p);
        float x[32];
        L::get_outer(x, shared, t);
        sync_shared<LOG2, POINTS, LONE>(p);
        levels<32, 0, 5>(x);
        const int64_t words = column_block << LOG2 >> 5;
        const uint32_t word =
            gcu_call(l.a.stream, 0, (uint64_t)(words + L::sign_word(threadIdx.x % 32, t))).x;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t bits = L::signs_of(word, t, j);
#pragma unroll
            for (int u = 0; u < 4; u++)
                x[4 * j + u] = with_sign(x[4 * j + u], bits, u);
        }
        write<LOG2, POINTS>(l, v, column_block, t, exact, x);
    }
}

/* Of shared memory that a launch asks for. */
template <int LOG2, int POINTS, int LONE> static size_t bytes_of(int64_t held_rows)
{
    const int64_t each = shape<LOG2, POINTS, LONE>::holds_z ? 1 + LONE : 1;
    return (size_t)(lanes<LOG2, POINTS>::floats * LONE + held_rows * each) * 4;
}

/* Whether a block may have that, beside what the kernel has of its own, 256 bytes at most. */
template <int LOG2, int POINTS, int LONE> static bool fits(int64_t held_rows, const gcu_gpu *gpu)
{
    return bytes_of<LOG2, POINTS, LONE>(held_rows) + 256 <= gpu->smem_bytes;
}

static int64_t round_points(int64_t points)
{
    return points < COPIED_POINTS ? (points + 15) / 16 * 16 : COPIED_POINTS;
}

/* Of z's points, 'copied' at a time. */
template <int LOG2, int POINTS, int LONE, bool HELD>
static cudaError_t launch(const gcu_level &l, const ranked &by, float *z, int64_t copied, int sms,
                          cudaStream_t stream)
{
    using S = shape<LOG2, POINTS, LONE>;
    const int64_t rows = l.a_row_end - l.a_row;
    const size_t bytes = bytes_of<LOG2, POINTS, LONE>(HELD ? rows : 0);
    const auto kernel = transform_rows<LOG2, POINTS, LONE, HELD>;
    cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    int resident = 1;
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, S::block, bytes);
    if (error != cudaSuccess) return error;
    course c = {};
    c.by = by;
    c.z = z;
    c.low = l.a_col >> LOG2;
    c.blocks = (int)(((l.a_col_end - 1) >> LOG2) - c.low + 1); /* X lies in memory */
    for (; c.v0 < l.n; c.v0 += copied) {
        const int64_t left = l.n - c.v0 < copied ? l.n - c.v0 : copied;
        c.groups = (int)((left + S::points - 1) / S::points);
        const int64_t points = (int64_t)c.groups * S::points;
        if (!S::holds_z)
            order_z<POINTS><<<(unsigned)((points * rows + 255) / 256), 256, 0, stream>>>(
                l, by, c.v0, points, z);
        const int64_t units = (int64_t)c.groups * c.blocks, slots = (int64_t)sms * resident;
        kernel<<<(unsigned)(units < slots ? units : slots), S::block, bytes, stream>>>(l, c);
        error = cudaGetLastError();
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

static ranked ranked_in(void *work, int64_t rows)
{
    ranked by;
    by.sample = static_cast<uint64_t *>(work);
    by.entry = by.sample + rows;
    by.row = reinterpret_cast<uint32_t *>(by.entry + rows);
    by.rank = by.row + rows;
    by.ranks = by.rank + rows;
    by.start = by.ranks + 1;         /* rows + 1 at most */
    by.placed = by.start + rows + 1; /* as many */
    return by;
}

/* Of the rows in their order. */
static size_t ranked_bytes(int64_t rows)
{
    return ((size_t)rows * 32 + 12 + 255) / 256 * 256;
}

size_t gcu_adjoint_hadamard_bytes(int64_t rows, int64_t points)
{
    if (rows > MOST_ROWS) return 0;
    return ranked_bytes(rows) + (size_t)(rows * round_points(points)) * sizeof(float);
}

/* Ranks the rows, then transforms adjacent points together where that leaves few lanes idle, LONE
 * others at a time. */
template <int LOG2, int POINTS, int LONE>
static cudaError_t run(const gcu_level &l, const ranked &by, float *z, int64_t copied,
                       const gcu_gpu *gpu, cudaStream_t stream)
{
    const int64_t rows = l.a_row_end - l.a_row;
    const bool across = l.x_row_stride == 1 && l.x_col_stride != 1 && l.n * 2 >= POINTS &&
                        fits<LOG2, POINTS, 1>(0, gpu);
    if (across)
        rank_rows<LOG2, POINTS><<<1, ORDER_THREADS, 0, stream>>>(by, (uint32_t)rows);
    else
        rank_rows<LOG2, 1><<<1, ORDER_THREADS, 0, stream>>>(by, (uint32_t)rows);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
    if constexpr (LOG2 > 11) { /* fewer elements are those of few rows */
        if (across && !fits<LOG2, POINTS, 1>(rows, gpu))
            return launch<LOG2, POINTS, 1, false>(l, by, z, copied, gpu->sms, stream);
        if (!across && !fits<LOG2, 1, LONE>(rows, gpu))
            return launch<LOG2, 1, 1, false>(l, by, z, copied, gpu->sms, stream);
    }
    return across ? launch<LOG2, POINTS, 1, true>(l, by, z, copied, gpu->sms, stream)
                  : launch<LOG2, 1, LONE, true>(l, by, z, copied, gpu->sms, stream);
}

cudaError_t gcu_adjoint_hadamard(const gcu_level &l, const gnomon_simple *a, void *work,
                                 size_t work_bytes, const gcu_gpu *gpu, cudaStream_t stream)
{
    const int64_t rows = l.a_row_end - l.a_row;
    if (rows <= 0 || rows > MOST_ROWS) return gcu_adjoint_dense(l, false, stream);
    const srht_shape s = srht_shape_of(a);
    const ranked by = ranked_in(work, rows);
    const cudaError_t error = srht_samples(s, l.a_row, rows, by.sample, stream);
    if (error != cudaSuccess) return error;
    float *const z = reinterpret_cast<float *>(static_cast<char *>(work) + ranked_bytes(rows));
    const int64_t room = (int64_t)((work_bytes - ranked_bytes(rows)) / sizeof(float)) / rows;
    const int64_t copied = room < COPIED_POINTS ? room / 16 * 16 : COPIED_POINTS;
    switch (s.log2) {
    case 10:
        return run<10, 16, 4>(l, by, z, copied, gpu, stream);
    case 11:
        return run<11, 8, 2>(l, by, z, copied, gpu, stream);
    default: /* eight adjacent points are a sector a column: four at a time took 2.5 times as long
              */
        return run<12, 8, 8>(l, by, z, copied, gpu, stream);
    }
}
