/* One round of Cholesky QR of a tall fp32 matrix Y, to halves of Y R^-1 (svd/condition.h).
 *
 * Two passes, both on the matrix units for doubles. The first one leaves Y^T Y: a warp has 32 x 32
 * numbers of it, whose operands are what its threads read of Y, as they are. The second one
 * multiplies by R^-1. It is in double precision too because columns that are nearly dependent come
 * out as small differences of large terms. */
#include "cuda/gemm/packed.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/mma.cuh"
#include "cuda/svd/invert.cuh"

#include <cuda_fp16.h>

enum {
    BLOCK = 32, /* columns of a warp's tile of the Gram matrix */
    ENTRIES = BLOCK * BLOCK,
    STEP = 8, /* rows of a product of matrix units */
    CHUNKS = 264,
    LEAST = 256, /* rows of a chunk */
    ADD_LINES = 8,
    STAGES = 4,
    LINES = 16, /* rows that a warp divides at a time */
    QUAD = 4,   /* warps that divide rows which follow each other */
    QUADS = 2   /* of a block, at most */
};

/* One number to shared memory, a zero where it is beyond the matrix. */
static __device__ __forceinline__ void fetch_one(float *to, const float *from, bool there)
{
    if (there)
        gcu_copy4(gcu_shared_address(to), from);
    else
        *to = 0;
}

/* 'all' numbers from 'from' on to shared memory, zeros beyond 'count' of them; by 'threads'. */
static __device__ __forceinline__ void fetch(float *to, const float *from, int64_t count, int all,
                                             bool aligned, int thread, int threads)
{
    if (aligned) {
        for (int i = 4 * thread; i < all; i += 4 * threads) {
            if (count - i >= 4)
                gcu_copy16(gcu_shared_address(to + i), from + i);
            else
                for (int e = 0; e < 4; e++)
                    fetch_one(to + i + e, from + i + e, i + e < count);
        }
    } else {
        for (int i = thread; i < all; i += threads)
            fetch_one(to + i, from + i, i < count);
    }
}

/* ---- the Gram matrix ---- */

struct gram_shape {
    int pairs;  /* of blocks of columns */
    int groups; /* of warps, each of which has all pairs and takes its turn of rows */
    int stage;  /* rows that are fetched at a time */
    int64_t chunks, each;
};

static gram_shape shape_of(int64_t rows, int64_t cols)
{
    gram_shape s;
    const int blocks = (int)((cols + BLOCK - 1) / BLOCK);
    s.pairs = blocks * (blocks + 1) / 2;
    s.groups = s.pairs == 1 ? 8 : s.pairs == 3 ? 4 : s.pairs == 6 ? 2 : 1;
    s.stage = 2 * STEP * s.groups < 32 ? 32 : 2 * STEP * s.groups;
    const int64_t wanted = (rows + LEAST - 1) / LEAST, most = CHUNKS;
    const int64_t count = wanted < most ? wanted : most;
    s.each = ((rows + count - 1) / count + s.stage - 1) / s.stage * s.stage;
    s.chunks = (rows + s.each - 1) / s.each;
    return s;
}

/* Stages of rows, and then the groups' sums. */
static size_t gram_bytes(const gram_shape &s, int64_t cols)
{
    const size_t stages = (size_t)(STAGES * s.stage * cols) * sizeof(float);
    const size_t sums = s.groups > 1 ? (size_t)s.pairs * ENTRIES * sizeof(double) : 0;
    return stages > sums ? stages : sums;
}

/* A warp's tile is 4 x 4 blocks of 8 x 8. Thread 4 g + t reads rows t and t + 4 of a step, and of
 * block b the column that is g there: neighbours are of two blocks where they can be read at once.
 */
template <bool EVEN> static __device__ __forceinline__ int column_of(int b, int g)
{
    return EVEN ? b / 2 * 16 + 2 * g + b % 2 : 8 * b + g;
}

/* Four columns of a row that begins at p, zeros beyond the matrix: 'left' columns. */
template <bool EVEN>
static __device__ __forceinline__ void read_row(const float *p, int g, int left, double *x)
{
#pragma unroll
    for (int b = 0; b < 4; b += EVEN ? 2 : 1) {
        const int col = column_of<EVEN>(b, g);
        if (EVEN) {
            const float2 v = col < left ? *reinterpret_cast<const float2 *>(p + col) : float2{};
            x[b] = (double)v.x, x[b + 1] = (double)v.y;
        } else {
            x[b] = col < left ? (double)p[col] : 0.0;
        }
    }
}

/* sum[i][j], of blocks 2 i and 2 i + 1 and block j. left: columns that there are on either side. */
static __device__ __forceinline__ void gcu_mma_f64(const double (*a)[4], const double (*b)[4],
                                                   bool diagonal, const int *left,
                                                   double (*sum)[4][4])
{
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (diagonal && j > 2 * i + 1) continue; /* above the diagonal */
            if (16 * i < left[0] && j / 2 * 16 < left[1])
                gcu_mma_f64(sum[i][j], a[0][2 * i], a[0][2 * i + 1], a[1][2 * i], a[1][2 * i + 1],
                            b[0][j], b[1][j]);
        }
}

/* A group's turn of a stage's rows. */
template <bool EVEN, bool DIAGONAL>
static __device__ __forceinline__ void gram_of_stage(const float *rows, const gram_shape &s,
                                                     int group, int2 pair, int n,
                                                     double (*sum)[4][4])
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int left[2] = {n - pair.x * BLOCK, n - pair.y * BLOCK};
    for (int row = group * STEP; row < s.stage; row += s.groups * STEP) {
        const float *p = rows + (row + t) * n;
        double x[2][4], y[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            read_row<EVEN>(p + 4 * h * n + pair.x * BLOCK, g, left[0], x[h]);
            if (!DIAGONAL) read_row<EVEN>(p + 4 * h * n + pair.y * BLOCK, g, left[1], y[h]);
        }
        gcu_mma_f64(x, DIAGONAL ? x : y, DIAGONAL, left, sum);
    }
}

/* Where a thread's number lies in its tile. */
template <bool EVEN> static __device__ __forceinline__ int place_of(int i, int j, int e)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    return column_of<EVEN>(2 * i + e / 2, g) * BLOCK + column_of<EVEN>(j, 2 * t + e % 2);
}

/* parts[chunk][pair] = tiles of the chunk's Gram matrix. The groups' sums are added in order. */
template <bool EVEN>
static __global__ void __launch_bounds__(512)
    gram_kernel(const float *from, int64_t rows, int n, gram_shape s, double *parts)
{
    extern __shared__ double2 room[];
    double(*const added)[ENTRIES] = reinterpret_cast<double(*)[ENTRIES]>(room);
    float *const stages = reinterpret_cast<float *>(room);
    const int warp = (int)threadIdx.x / 32, number = warp % s.pairs, group = warp / s.pairs;
    const int2 pair = tile_pair(number);
    const int64_t chunk = blockIdx.x, begin = chunk * s.each;
    const int64_t end = begin + s.each < rows ? begin + s.each : rows;
    const int64_t rounds = (end - begin + s.stage - 1) / s.stage;
    const int size = s.stage * n;
    const bool aligned = (uintptr_t)from % 16 == 0;
    const auto ask = [&](int64_t round) {
        const int64_t row = begin + round * s.stage;
        if (round < rounds)
            fetch(stages + (int)(round % STAGES) * size, from + row * n, (end - row) * n, size,
                  aligned, (int)threadIdx.x, (int)blockDim.x);
        gcu_copies_commit();
    };
    double sum[2][4][4] = {};
    for (int64_t round = 0; round < STAGES - 1; round++)
        ask(round);
    for (int64_t round = 0; round < rounds; round++) {
        gcu_copies_wait<STAGES - 2>();
        __syncthreads(); /* this stage is there, and no warp uses the one before it */
        ask(round + STAGES - 1);
        const float *const now = stages + (int)(round % STAGES) * size;
        if (pair.x == pair.y)
            gram_of_stage<EVEN, true>(now, s, group, pair, n, sum);
        else
            gram_of_stage<EVEN, false>(now, s, group, pair, n, sum);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    double *to = parts + (chunk * s.pairs + number) * ENTRIES;
    for (int now = 0; now < s.groups; now++) {
        if (now > 0) __syncthreads();
        if (now != group) continue;
        const bool last = now + 1 == s.groups;
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int at = place_of<EVEN>(i, j, e);
                    const double all = now > 0 ? added[number][at] + sum[i][j][e] : sum[i][j][e];
                    (last ? to : added[number])[at] = all;
                }
    }
}

/* gram = the parts, added in order: a block has 32 numbers, ADD_LINES threads each. */
static __global__ void __launch_bounds__(BLOCK *ADD_LINES)
    add_kernel(const double *parts, int n, gram_shape s, double *gram)
{
    __shared__ double some[ADD_LINES][BLOCK];
    const int number = (int)blockIdx.x / BLOCK, row = (int)blockIdx.x % BLOCK;
    const int col = (int)threadIdx.x % BLOCK, line = (int)threadIdx.x / BLOCK;
    const double *from = parts + (int64_t)number * ENTRIES + row * BLOCK + col;
    const int2 pair = tile_pair(number);
    const int i = pair.x * BLOCK + row, j = pair.y * BLOCK + col;
    const bool wanted = i < n && j <= i;
    double sum = 0;
#pragma unroll 8
    for (int64_t chunk = line; wanted && chunk < s.chunks; chunk += ADD_LINES)
        sum += from[chunk * s.pairs * ENTRIES];
    some[line][col] = sum;
    __syncthreads();
    if (line > 0) return;
    for (int other = 1; other < ADD_LINES; other++)
        sum += some[other][col];
    if (wanted) gram[i * n + j] = sum;
}

template <int MOST>
static __global__ void __launch_bounds__(MOST)
    invert_kernel(const double *gram, int n, double *inverse)
{
    __shared__ invert_shared shared;
    const int2 tile = tile_pair((int)threadIdx.x);
    double x[INVERT_SIDE][INVERT_SIDE];
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
        for (int j = 0; j < INVERT_SIDE; j++) {
            const int r = tile.x * INVERT_SIDE + i, c = tile.y * INVERT_SIDE + j;
            x[i][j] = r < n && c <= r ? gram[r * n + c] : r == c ? 1.0 : 0.0;
        }
    const int found = invert_gram(x, tile, n, 0.0, true, 0x1p-38, true, &shared);
    invert_put(x, tile, n, found, inverse);
}

/* ---- the division ---- */

/* The inverse in shared memory as the matrix units take it: for eight of k and eight columns, which
 * are tile_pair's (columns, k), thread 4 g + t has k 2 t and 2 t + 1 of column g. */
static __device__ void read_inverse(const double *inverse, int n, double factor, double2 *by)
{
    const int blocks = (n + STEP - 1) / STEP, all = 32 * (blocks * (blocks + 1) / 2);
    for (int i = (int)threadIdx.x; i < all; i += (int)blockDim.x) {
        const int2 pair = tile_pair(i / 32);
        const int col = pair.x * STEP + i % 32 / 4, k = pair.y * STEP + i % 4 * 2;
        const auto entry = [&](int at) {
            return at <= col && col < n ? factor * inverse[at * n + col] : 0.0;
        };
        by[i] = make_double2(entry(k), entry(k + 1));
    }
}

/* Four warps wait for each other. */
static __device__ __forceinline__ void wait_for_quad(int quad)
{
    asm volatile("bar.sync %0, %1;" ::"r"(quad + 1), "n"(32 * QUAD) : "memory");
}

/* Halves that large are of columns that are rounding; what is infinite remains so. */
static __device__ __forceinline__ __half half_of(double x)
{
    const float y = (float)x;
    return __float2half_rn(isfinite(y) ? fminf(fmaxf(y, -65504.0f), 65504.0f) : y);
}

/* A quad's rows as they are due: as they lie, or as an image of a product's chunk with zeros for
 * the columns that there are not. */
static __device__ __forceinline__ void put_lines(const gcu_svd_condition &c, const __half *from,
                                                 int64_t row, int thread)
{
    const int all = QUAD * LINES * c.cols;
    if (c.packing.cols > 0) {
        uint4 *to = reinterpret_cast<uint4 *>(c.half) + row * c.packing.cols / 8;
        for (int i = thread; i < QUAD * LINES * c.packing.cols / 8; i += 32 * QUAD)
            to[i] = i < all / 8 ? reinterpret_cast<const uint4 *>(from)[i] : uint4{};
        return;
    }
    const int64_t count = (c.rows - row) * c.cols;
    __half *to = static_cast<__half *>(c.half) + row * c.cols;
    if ((uintptr_t)to % 16 == 0 && count >= all) {
        for (int i = thread; i < all / 8; i += 32 * QUAD)
            reinterpret_cast<uint4 *>(to)[i] = reinterpret_cast<const uint4 *>(from)[i];
    } else {
        for (int i = thread; i < all; i += 32 * QUAD)
            if (i < count) to[i] = from[i];
    }
}

/* A quad of warps divides a product's chunk of rows at a time, each warp LINES of them, COLS blocks
 * of eight columns. */
template <int COLS>
static __global__ void __launch_bounds__(32 * QUAD * QUADS, COLS <= 4 ? 3 : 2)
    divide_kernel(const __grid_constant__ gcu_svd_condition c)
{
    extern __shared__ double2 by[];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int warp = (int)threadIdx.x / 32 % QUAD, quad = (int)threadIdx.x / (32 * QUAD);
    const int quads = (int)blockDim.x / (32 * QUAD);
    const int n = c.cols, blocks = (n + STEP - 1) / STEP, pairs = blocks * (blocks + 1) / 2;
    float *all = reinterpret_cast<float *>(by + 32 * pairs) + quad * (QUAD * LINES * n / 2 * 3);
    float *lines = all + warp * LINES * n;
    __half *out = reinterpret_cast<__half *>(all + QUAD * LINES * n);
    const bool aligned = (uintptr_t)c.from % 16 == 0, packed = c.packing.cols > 0;
    const int64_t items = (c.rows + QUAD * LINES - 1) / (QUAD * LINES);
    read_inverse(c.inverse, n, c.factor, by);
    __syncthreads();
    for (int64_t item = (int64_t)blockIdx.x * quads + quad; item < items;
         item += (int64_t)gridDim.x * quads) {
        const int64_t first = item * (QUAD * LINES), row = first + warp * LINES;
        fetch(lines, row < c.rows ? c.from + row * n : c.from, (c.rows - row) * n, LINES * n,
              aligned, lane, 32);
        asm volatile("cp.async.wait_all;" ::: "memory");
        __syncwarp();
        for (int base = 0; base < blocks; base += COLS) {
            double sum[COLS][4] = {};
            const int depth = base + COLS < blocks ? base + COLS : blocks;
            for (int k = 0; k < depth; k++) {
                const int col = k * STEP + 2 * t;
                const float *p = lines + g * n + col, *q = p + STEP * n;
                const bool one = col < n, two = col + 1 < n;
                const double a0 = one ? (double)p[0] : 0.0, a1 = one ? (double)q[0] : 0.0;
                const double a2 = two ? (double)p[1] : 0.0, a3 = two ? (double)q[1] : 0.0;
#pragma unroll
                for (int i = 0; i < COLS; i++) {
                    const int block = base + i;
                    if (block < k || block >= blocks) continue;
                    const double2 b = by[(block * (block + 1) / 2 + k) * 32 + lane];
                    gcu_mma_f64(sum[i], a0, a1, a2, a3, b.x, b.y);
                }
            }
#pragma unroll
            for (int i = 0; i < COLS; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int line = g + e / 2 * 8, col = (base + i) * STEP + 2 * t + e % 2;
                    if (col >= n) continue;
                    const int place =
                        packed ? gcu_gemm_packed_place(c.packing.quads, warp * LINES + line, col)
                               : (warp * LINES + line) * n + col;
                    out[place] = half_of(sum[i][e]);
                }
        }
        wait_for_quad(quad);
        put_lines(c, out, first, (int)threadIdx.x % (32 * QUAD));
        wait_for_quad(quad);
    }
}

static int64_t inverse_bytes(int64_t cols)
{
    const int64_t blocks = (cols + STEP - 1) / STEP;
    return blocks * (blocks + 1) / 2 * 32 * (int64_t)sizeof(double2);
}

static int64_t quad_bytes(int64_t cols)
{
    return QUAD * LINES * cols * (int64_t)(sizeof(float) + sizeof(__half));
}

template <int COLS>
static cudaError_t divide(const gcu_svd_condition *c, const gcu_gpu *gpu, cudaStream_t stream)
{
    const int64_t fixed = inverse_bytes(c->cols), each = quad_bytes(c->cols), most = QUADS;
    const int64_t room = (int64_t)gpu->smem_bytes, fit = (room - fixed) / each;
    const int64_t quads = fit < most ? fit : most, bytes = fixed + quads * each;
    const int64_t registers = COLS <= 4 ? 3 : 2; /* blocks of a multiprocessor that they allow */
    const int64_t beside = room / bytes < registers ? room / bytes : registers;
    const cudaError_t error = cudaFuncSetAttribute(
        divide_kernel<COLS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    divide_kernel<COLS><<<gcu_grid(c->rows, QUAD * LINES * quads, beside * gpu->sms),
                          (unsigned)(32 * QUAD * quads), (size_t)bytes, stream>>>(*c);
    return cudaGetLastError();
}

/* ---- both ---- */

int gcu_svd_condition_most(const gcu_gpu *gpu)
{
    int most = GCU_SVD_CONDITION_MOST;
    while (most > 0 && inverse_bytes(most) + quad_bytes(most) > (int64_t)gpu->smem_bytes)
        most--;
    return most;
}

int64_t gcu_svd_condition_parts(int64_t rows, int64_t cols)
{
    const gram_shape s = shape_of(rows, cols);
    return s.chunks * s.pairs * ENTRIES;
}

cudaError_t gcu_svd_condition_columns(const gcu_svd_condition *c, const gcu_gpu *gpu,
                                      cudaStream_t stream)
{
    const gram_shape s = shape_of(c->rows, c->cols);
    const unsigned grid = (unsigned)s.chunks, threads = (unsigned)(32 * s.pairs * s.groups);
    const unsigned inverting = (unsigned)invert_threads(c->cols);
    const auto gram = c->cols % 2 == 0 ? gram_kernel<true> : gram_kernel<false>;
    const size_t bytes = gram_bytes(s, c->cols);
    const cudaError_t error =
        cudaFuncSetAttribute(gram, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    gram<<<grid, threads, bytes, stream>>>(c->from, c->rows, c->cols, s, c->parts);
    add_kernel<<<(unsigned)(s.pairs * BLOCK), BLOCK * ADD_LINES, 0, stream>>>(c->parts, c->cols, s,
                                                                              c->gram);
    if (inverting <= INVERT_FEW)
        invert_kernel<INVERT_FEW><<<1, inverting, 0, stream>>>(c->gram, c->cols, c->inverse);
    else
        invert_kernel<INVERT_MOST><<<1, inverting, 0, stream>>>(c->gram, c->cols, c->inverse);
    return c->cols <= 32 ? divide<4>(c, gpu, stream) : divide<10>(c, gpu, stream);
}
