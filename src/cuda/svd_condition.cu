/* One round of Cholesky QR of a tall fp32 matrix Y, to halves of Y R^-1 (svd_condition.h).
 *
 * Two passes. The first one leaves Y^T Y in double precision, by the matrix units for doubles: a
 * warp has 32 x 32 numbers of it, whose operands are what its threads read of Y, as they are. The
 * second one multiplies by R^-1 in TF32, both sides cut in two, three products: single precision
 * as Y itself has. */
#include "cuda/grid.cuh"
#include "cuda/svd_invert.cuh"

#include <cuda_fp16.h>

enum {
    BLOCK = 32, /* columns of a warp's tile of the Gram matrix */
    ENTRIES = BLOCK * BLOCK,
    STEP = 8, /* rows of a product of matrix units */
    CHUNKS = 264,
    LEAST = 256, /* rows of a chunk */
    ADD_LINES = 8,
    WARPS = 8 /* that divide */
};

/* ---- the Gram matrix ---- */

struct gram_shape {
    int pairs;  /* of blocks of columns */
    int groups; /* of warps, each of which has all pairs and takes its turn of rows */
    int64_t chunks, each;
};

static gram_shape shape_of(int64_t rows, int64_t cols)
{
    gram_shape s;
    const int blocks = (int)((cols + BLOCK - 1) / BLOCK);
    s.pairs = blocks * (blocks + 1) / 2;
    s.groups = s.pairs == 1 ? 8 : s.pairs == 3 ? 4 : s.pairs == 6 ? 2 : 1;
    const int64_t wanted = (rows + LEAST - 1) / LEAST, most = CHUNKS;
    const int64_t count = wanted < most ? wanted : most;
    s.each = (rows + count - 1) / count;
    s.chunks = (rows + s.each - 1) / s.each;
    return s;
}

/* A warp's tile is 4 x 4 blocks of 8 x 8. Thread 4 g + t reads rows t and t + 4 of a step, and of
 * block b the column that is g there: any order of columns will do, so it is one in which a thread's
 * four are neighbours, as far as they are aligned. */
template <int WIDE> static __device__ __forceinline__ int column_of(int b, int g)
{
    return WIDE == 4 ? 4 * g + b : WIDE == 2 ? b / 2 * 16 + 2 * g + b % 2 : 8 * b + g;
}

/* Four columns of a row from p on, zeros beyond the matrix: 'left' columns. */
template <int WIDE>
static __device__ __forceinline__ void read_row(const float *p, bool there, int g, int left,
                                                float *x)
{
#pragma unroll
    for (int b = 0; b < 4; b += WIDE) {
        const int col = column_of<WIDE>(b, g);
        const bool take = there && col < left;
        if (WIDE == 4) {
            const float4 v = take ? __ldg(reinterpret_cast<const float4 *>(p + col)) : float4{};
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else if (WIDE == 2) {
            const float2 v = take ? __ldg(reinterpret_cast<const float2 *>(p + col)) : float2{};
            x[b] = v.x, x[b + 1] = v.y;
        } else {
            x[b] = take ? __ldg(p + col) : 0.0f;
        }
    }
}

/* sum[i][j][2 h + e], of blocks 2 i + h and j: row g, column 2 t + e of an 8 x 8 block. */
static __device__ __forceinline__ void multiply(const double (*a)[4], const double (*b)[4],
                                                bool diagonal, double (*sum)[4][4])
{
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (diagonal && j > 2 * i + 1) continue; /* above the diagonal */
            double *s = sum[i][j];
#if __CUDA_ARCH__ >= 900
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, "
                         "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+d"(s[0]), "+d"(s[1]), "+d"(s[2]), "+d"(s[3])
                         : "d"(a[0][2 * i]), "d"(a[0][2 * i + 1]), "d"(a[1][2 * i]),
                           "d"(a[1][2 * i + 1]), "d"(b[0][j]), "d"(b[1][j]));
#else
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int k = 0; k < 2; k++)
                    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, "
                                 "{%3}, {%0, %1};"
                                 : "+d"(s[2 * h]), "+d"(s[2 * h + 1])
                                 : "d"(a[k][2 * i + h]), "d"(b[k][j]));
#endif
        }
}

/* Rows [0, rows) of a chunk, in turns of the groups; what comes next is read while the matrix units
 * are at work. */
template <int WIDE, bool DIAGONAL>
static __device__ __forceinline__ void gram_of_rows(const float *from, int rows, int group,
                                                    int groups, int2 pair, int n,
                                                    double (*sum)[4][4])
{
    enum { SIDES = DIAGONAL ? 1 : 2, AHEAD = DIAGONAL ? 2 : 1 /* steps of a turn */ };
    const int first = group * AHEAD * STEP, turn = groups * AHEAD * STEP;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int left[2] = {n - pair.x * BLOCK, n - pair.y * BLOCK};
    const float *p = from + (int64_t)(first + t) * n + pair.x * BLOCK;
    const int beside = (pair.y - pair.x) * BLOCK, four = 4 * n;
    float x[AHEAD][SIDES][2][4];
    const auto read = [&](int row) {
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int side = 0; side < SIDES; side++)
                    read_row<WIDE>(p + (2 * a + h) * four + side * beside,
                                   row + a * STEP + 4 * h + t < rows, g, left[side],
                                   x[a][side][h]);
    };
    read(first);
    for (int row = first; row < rows; row += turn) {
        double now[AHEAD][SIDES][2][4];
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
#pragma unroll
            for (int side = 0; side < SIDES; side++)
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        now[a][side][h][i] = (double)x[a][side][h][i];
        p += (int64_t)turn * n;
        read(row + turn);
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            multiply(now[a][0], now[a][SIDES - 1], DIAGONAL, sum);
    }
}

/* Where a thread's number lies in its tile. */
template <int WIDE> static __device__ __forceinline__ int place_of(int i, int j, int e)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    return column_of<WIDE>(2 * i + e / 2, g) * BLOCK + column_of<WIDE>(j, 2 * t + e % 2);
}

/* parts[chunk][pair] = tiles of the chunk's Gram matrix. The groups' sums are added in order. */
template <int WIDE>
static __global__ void __launch_bounds__(512)
    gram_kernel(const float *from, int64_t rows, int n, gram_shape s, double *parts)
{
    __shared__ double added[6][ENTRIES];
    const int warp = (int)threadIdx.x / 32, number = warp % s.pairs, group = warp / s.pairs;
    const int2 pair = tile_pair(number);
    const int64_t chunk = blockIdx.x, begin = chunk * s.each;
    const int64_t end = begin + s.each < rows ? begin + s.each : rows;
    double sum[2][4][4] = {};
    if (pair.x == pair.y)
        gram_of_rows<WIDE, true>(from + begin * n, (int)(end - begin), group, s.groups, pair, n,
                                 sum);
    else
        gram_of_rows<WIDE, false>(from + begin * n, (int)(end - begin), group, s.groups, pair, n,
                                 sum);
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
                    const int at = place_of<WIDE>(i, j, e);
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
    double sum = 0;
#pragma unroll 8
    for (int64_t chunk = line; chunk < s.chunks; chunk += ADD_LINES)
        sum += from[chunk * s.pairs * ENTRIES];
    some[line][col] = sum;
    __syncthreads();
    if (line > 0) return;
    for (int other = 1; other < ADD_LINES; other++)
        sum += some[other][col];
    const int2 pair = tile_pair(number);
    const int i = pair.x * BLOCK + row, j = pair.y * BLOCK + col;
    if (i < n && j <= i) gram[i * n + j] = sum;
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
    const int found = invert_gram(x, tile, n, 0.0, true, &shared);
    invert_put(x, tile, n, found, inverse);
}

/* ---- the division ---- */

/* x as two numbers of TF32; what is below both is 2^-22 of it. */
static __device__ __forceinline__ void cut(float x, uint32_t *high, uint32_t *low)
{
    *high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
    *low = __float_as_uint(x - __uint_as_float(*high));
}

static __device__ __forceinline__ void multiply(const uint32_t *a, uint32_t b0, uint32_t b1,
                                                float *sum)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Two neighbours of a row. */
static __device__ __forceinline__ float2 read_two(const float *from, int64_t row, int64_t rows,
                                                  int col, int n, bool even)
{
    float2 x = make_float2(0.0f, 0.0f);
    if (row >= rows || col >= n) return x;
    const float *p = from + row * n + col;
    if (even) return __ldg(reinterpret_cast<const float2 *>(p));
    x.x = __ldg(p);
    if (col + 1 < n) x.y = __ldg(p + 1);
    return x;
}

static __device__ __forceinline__ void put_two(__half *to, int64_t row, int64_t rows, int col,
                                               int n, bool even, float x, float y)
{
    if (row >= rows || col >= n) return;
    __half *p = to + row * n + col;
    if (even) {
        *reinterpret_cast<__half2 *>(p) = __floats2half2_rn(x, y);
        return;
    }
    p[0] = __float2half_rn(x);
    if (col + 1 < n) p[1] = __float2half_rn(y);
}

/* A warp divides 16 ROWS rows. The inverse lies in shared memory as the matrix units take it: of
 * eight of k and eight columns, tile_pair's number 'k' of 'column', thread 4 g + t has k 2 t and
 * 2 t + 1 of column g, their high parts and their low ones. */
template <int COLS, int ROWS>
static __global__ void __launch_bounds__(32 * WARPS)
    divide_kernel(const float *from, int64_t rows, int n, const double *inverse, float factor,
                  __half *to)
{
    extern __shared__ uint4 by[];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int blocks = (n + STEP - 1) / STEP, pairs = blocks * (blocks + 1) / 2;
    const bool even = n % 2 == 0;
    for (int i = (int)threadIdx.x; i < 32 * pairs; i += 32 * WARPS) {
        const int2 pair = tile_pair(i / 32);
        const int col = pair.x * STEP + i % 32 / 4, k = pair.y * STEP + i % 4 * 2;
        const auto entry = [&](int at) {
            return at <= col && col < n ? factor * (float)inverse[at * n + col] : 0.0f;
        };
        uint4 x;
        cut(entry(k), &x.x, &x.z);
        cut(entry(k + 1), &x.y, &x.w);
        by[i] = x;
    }
    __syncthreads();
    const int64_t items = (rows + 16 * ROWS - 1) / (16 * ROWS);
    for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < items;
         item += (int64_t)gridDim.x * WARPS) {
        const int64_t row = item * (16 * ROWS) + g;
        float sum[ROWS][COLS][4] = {};
#pragma unroll(COLS <= 4 ? COLS : 2)
        for (int k = 0; k < COLS; k++) {
            if (k >= blocks) break;
            uint32_t high[ROWS][4], low[ROWS][4];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const float2 x =
                        read_two(from, row + 16 * r + 8 * h, rows, k * STEP + 2 * t, n, even);
                    cut(x.x, &high[r][h], &low[r][h]);
                    cut(x.y, &high[r][2 + h], &low[r][2 + h]);
                }
#pragma unroll
            for (int c = 0; c < COLS; c++) {
                if (c < k || c >= blocks) continue;
                const uint4 b = by[(c * (c + 1) / 2 + k) * 32 + lane];
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    multiply(low[r], b.x, b.y, sum[r][c]);
                    multiply(high[r], b.z, b.w, sum[r][c]);
                    multiply(high[r], b.x, b.y, sum[r][c]);
                }
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < COLS; c++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    put_two(to, row + 16 * r + 8 * h, rows, c * STEP + 2 * t, n, even,
                            sum[r][c][2 * h], sum[r][c][2 * h + 1]);
    }
}

template <int COLS, int ROWS>
static cudaError_t divide(const gcu_svd_condition *c, cudaStream_t stream)
{
    const int blocks = (c->cols + STEP - 1) / STEP;
    const int bytes = blocks * (blocks + 1) / 2 * 32 * (int)sizeof(uint4);
    const cudaError_t error = cudaFuncSetAttribute(
        divide_kernel<COLS, ROWS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    divide_kernel<COLS, ROWS><<<gcu_grid(c->rows, 16 * ROWS * WARPS, 1056), 32 * WARPS, bytes, stream>>>(
        c->from, c->rows, c->cols, c->inverse, (float)c->factor, static_cast<__half *>(c->half));
    return cudaGetLastError();
}

/* ---- both ---- */

int64_t gcu_svd_condition_parts(int64_t rows, int64_t cols)
{
    const gram_shape s = shape_of(rows, cols);
    return s.chunks * s.pairs * ENTRIES;
}

cudaError_t gcu_svd_condition_columns(const gcu_svd_condition *c, cudaStream_t stream)
{
    const gram_shape s = shape_of(c->rows, c->cols);
    const unsigned grid = (unsigned)s.chunks, threads = (unsigned)(32 * s.pairs * s.groups);
    if (c->cols % 4 == 0)
        gram_kernel<4><<<grid, threads, 0, stream>>>(c->from, c->rows, c->cols, s, c->parts);
    else if (c->cols % 2 == 0)
        gram_kernel<2><<<grid, threads, 0, stream>>>(c->from, c->rows, c->cols, s, c->parts);
    else
        gram_kernel<1><<<grid, threads, 0, stream>>>(c->from, c->rows, c->cols, s, c->parts);
    add_kernel<<<(unsigned)(s.pairs * BLOCK), BLOCK * ADD_LINES, 0, stream>>>(c->parts, c->cols, s,
                                                                             c->gram);
    const unsigned inverting = (unsigned)invert_threads(c->cols);
    if (inverting <= INVERT_FEW)
        invert_kernel<INVERT_FEW><<<1, inverting, 0, stream>>>(c->gram, c->cols, c->inverse);
    else
        invert_kernel<INVERT_MOST><<<1, inverting, 0, stream>>>(c->gram, c->cols, c->inverse);
    return c->cols <= 32   ? divide<4, 2>(c, stream)
           : c->cols <= 80 ? divide<10, 2>(c, stream)
                           : divide<20, 1>(c, stream);
}
