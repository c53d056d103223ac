/* cuda/linalg/tile.cuh: tiles of small products in double precision, 32 x 32 numbers by 64 threads.
 *
 * A library's products of this size take their launches' time, one for each mode; these do all
 * modes' at once. */
#ifndef GNOMON_CUDA_HOSVD_TILE_CUH
#define GNOMON_CUDA_HOSVD_TILE_CUH

#include <cstdint>

enum {
    TILE_SIDE = 32,
    TILE_STEP = 16, /* of the sum, in shared memory at a time */
    TILE_EACH = 4,  /* rows and columns of a thread, 8 apart */
    TILE_APART = TILE_SIDE / TILE_EACH,
    TILE_THREADS = TILE_APART * TILE_APART
};

/* One side of a step: [k][row or column], no two rows of which begin at the same bank. */
typedef double tile_part[TILE_STEP][TILE_SIDE + 1];

/* sum += a^T b, of one step. */
static __device__ __forceinline__ void tile_multiply(const tile_part &a, const tile_part &b,
                                                     double (*sum)[TILE_EACH], int thread)
{
    const int row = thread / TILE_APART, col = thread % TILE_APART;
#pragma unroll
    for (int k = 0; k < TILE_STEP; k++) {
        double x[TILE_EACH], y[TILE_EACH];
#pragma unroll
        for (int i = 0; i < TILE_EACH; i++) {
            x[i] = a[k][row + i * TILE_APART];
            y[i] = b[k][col + i * TILE_APART];
        }
#pragma unroll
        for (int i = 0; i < TILE_EACH; i++)
#pragma unroll
            for (int j = 0; j < TILE_EACH; j++)
                sum[i][j] = fma(x[i], y[j], sum[i][j]);
    }
}

/* A block has so many teams of 64 threads, which share out the steps of one tile's sum. */
enum { TILE_TEAMS = 4, TILE_BLOCK = TILE_TEAMS * TILE_THREADS };

union tile_shared {
    struct {
        tile_part a, b;
    } part[TILE_TEAMS];
    double sum[TILE_TEAMS][TILE_SIDE][TILE_SIDE];
};

/* The pair of tiles that is number 'pair' of a lower triangle, row by row. */
static __device__ __forceinline__ int2 tile_pair(int pair)
{
    int row = 0;
    while ((row + 1) * (row + 2) / 2 <= pair)
        row++;
    return make_int2(row, pair - row * (row + 1) / 2);
}

/* Tile (at.x, at.y) of the sum over lines k in [begin, end) of x(k, i) x(k, j), i and j below n, to
 * 'to' (n x n); on the diagonal's other side too. ALONG: that neighbours in memory are those of k.
 */
template <typename Read>
static __device__ __forceinline__ void tile_gram(tile_shared &shared, const Read &x, int2 at,
                                                 int64_t begin, int64_t end, int n, bool along,
                                                 double *to)
{
    const int team = (int)threadIdx.x / TILE_THREADS, t = (int)threadIdx.x % TILE_THREADS;
    auto &mine = shared.part[team];
    double sum[TILE_EACH][TILE_EACH] = {};
    for (int64_t first = begin; first < end; first += TILE_TEAMS * TILE_STEP) {
#pragma unroll
        for (int e = 0; e < TILE_SIDE * TILE_STEP / TILE_THREADS; e++) {
            const int number = t + e * TILE_THREADS;
            const int step = along ? number % TILE_STEP : number / TILE_SIDE;
            const int column = along ? number / TILE_STEP : number % TILE_SIDE;
            const int64_t k = first + team * TILE_STEP + step;
            const int i = at.x * TILE_SIDE + column, j = at.y * TILE_SIDE + column;
            mine.a[step][column] = k < end && i < n ? x(k, i) : 0.0;
            if (at.x != at.y) mine.b[step][column] = k < end && j < n ? x(k, j) : 0.0;
        }
        __syncthreads();
        tile_multiply(mine.a, at.x == at.y ? mine.a : mine.b, sum, t);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++)
#pragma unroll
        for (int j = 0; j < TILE_EACH; j++)
            shared.sum[team][t / TILE_APART + i * TILE_APART][t % TILE_APART + j * TILE_APART] =
                sum[i][j];
    __syncthreads();
    for (int e = (int)threadIdx.x; e < TILE_SIDE * TILE_SIDE; e += TILE_BLOCK) {
        const int row = e / TILE_SIDE, col = e % TILE_SIDE;
        const int i = at.x * TILE_SIDE + row, j = at.y * TILE_SIDE + col;
        double all = 0;
#pragma unroll
        for (int other = 0; other < TILE_TEAMS; other++)
            all += shared.sum[other][row][col];
        if (i >= n || j >= n) continue;
        to[i * n + j] = all;
        if (at.x != at.y) to[j * n + i] = all;
    }
}

/* Tile 'at' of the product of x (rows x depth) and y (depth x cols), each number to put(i, j, sum);
 * by one team, which is the whole block. */
template <typename X, typename Y, typename Put>
static __device__ __forceinline__ void tile_product(tile_part &a, tile_part &b, const X &x,
                                                    const Y &y, int2 at, int64_t rows, int depth,
                                                    int cols, const Put &put)
{
    const int t = (int)threadIdx.x;
    const int64_t row0 = (int64_t)at.x * TILE_SIDE;
    const int col0 = at.y * TILE_SIDE;
    double sum[TILE_EACH][TILE_EACH] = {};
    for (int first = 0; first < depth; first += TILE_STEP) {
#pragma unroll
        for (int e = 0; e < TILE_SIDE * TILE_STEP / TILE_THREADS; e++) {
            const int number = t + e * TILE_THREADS;
            const int k = number % TILE_STEP, row = number / TILE_STEP;
            const int step = number / TILE_SIDE, col = number % TILE_SIDE;
            a[k][row] = first + k < depth && row0 + row < rows ? x(row0 + row, first + k) : 0.0;
            b[step][col] =
                first + step < depth && col0 + col < cols ? y(first + step, col0 + col) : 0.0;
        }
        __syncthreads();
        tile_multiply(a, b, sum, t);
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TILE_EACH; i++)
#pragma unroll
        for (int j = 0; j < TILE_EACH; j++) {
            const int64_t row = row0 + t / TILE_APART + i * TILE_APART;
            const int col = col0 + t % TILE_APART + j * TILE_APART;
            if (row < rows && col < cols) put(row, col, sum[i][j]);
        }
}

#endif
