/* Several modes' tall matrices at once: their columns made orthonormal, turned, signed.
 *
 * Orthonormal by two rounds of Cholesky QR and a look whether that was enough (see svd_orth.cu for
 * the theory); nothing waits for the host, which reads at the end what was found and, where two
 * rounds do not do, begins anew by the way that looks on every step.
 *
 * A round's factor and its inverse are found by one block of threads, 4 x 4 numbers of the lower
 * triangle a thread, in registers, four columns at a time: what is left of the Gram matrix and what
 * there is of the inverse share the triangle. A pivot that rounding could have made up is replaced
 * by what rounding leaves: its column is then too short after the division, and the next round
 * makes it long. */
#include "cuda/hosvd.h"
#include "cuda/hosvd_tile.cuh"

#include <math.h>

enum {
    MOST = GCU_HOSVD_TALL_MOST,
    SIDE = 4,
    TILES = MOST / SIDE,
    ROUND_THREADS = TILES * (TILES + 1) / 2,
    CHUNK_ROWS = TILE_TEAMS * TILE_STEP * 4,
    SIGN_THREADS = 256
};

struct tall_list {
    gcu_hosvd_tall of[GNOMON_TENSOR_MODES];
};

static __host__ __device__ __forceinline__ int tiles_of(int64_t n)
{
    return (int)((n + TILE_SIDE - 1) / TILE_SIDE);
}

static __host__ __device__ __forceinline__ int chunks_of(int64_t rows)
{
    const int64_t wanted = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    return (int)(wanted < GCU_HOSVD_TALL_CHUNKS ? wanted : (int64_t)GCU_HOSVD_TALL_CHUNKS);
}

/* parts = the Gram matrices of chunks of rows. */
template <typename T>
static __global__ void __launch_bounds__(TILE_BLOCK)
    gram_kernel(const __grid_constant__ tall_list l)
{
    __shared__ tile_shared shared;
    const gcu_hosvd_tall p = l.of[blockIdx.y];
    const T *from = sizeof(T) == 4 ? (const T *)p.y : (const T *)p.other;
    const int tiles = tiles_of(p.cols), pairs = tiles * (tiles + 1) / 2;
    const int chunks = chunks_of(p.rows), chunk = (int)blockIdx.x / pairs;
    if (chunk >= chunks) return;
    const int64_t each = (p.rows + chunks - 1) / chunks, begin = chunk * each;
    const int64_t end = begin + each < p.rows ? begin + each : p.rows;
    const int n = p.cols;
    tile_gram(
        shared, [=](int64_t k, int i) { return (double)from[k * n + i]; },
        tile_pair((int)blockIdx.x % pairs), begin, end, n, false, p.parts + (int64_t)chunk * n * n);
}

/* Lower triangle of 4 x 4: a becomes the inverse of its Cholesky factor. Whether a pivot was
 * replaced. */
static __device__ __forceinline__ bool invert_tile(double (*a)[SIDE], double least)
{
    double scale[SIDE];
    bool replaced = false;
#pragma unroll
    for (int k = 0; k < SIDE; k++) {
        double pivot = a[k][k];
        if (!(pivot > least)) {
            pivot = least;
            replaced = true;
        }
        scale[k] = rsqrt(pivot);
#pragma unroll
        for (int i = k + 1; i < SIDE; i++)
            a[i][k] *= scale[k];
#pragma unroll
        for (int j = k + 1; j < SIDE; j++)
#pragma unroll
            for (int i = j; i < SIDE; i++)
                a[i][j] = fma(-a[i][k], a[j][k], a[i][j]);
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
#pragma unroll
        for (int j = 0; j < i; j++) {
            double sum = 0; /* row i of the factor, the inverse's rows above it */
#pragma unroll
            for (int k = j; k < i; k++)
                sum = fma(a[i][k], a[k][j], sum);
            a[i][j] = sum; /* a[i][k] with k > j is read again, a[i][j] is not */
        }
#pragma unroll
        for (int j = 0; j < i; j++)
            a[i][j] *= -scale[i];
        a[i][i] = scale[i];
#pragma unroll
        for (int j = i + 1; j < SIDE; j++)
            a[i][j] = 0;
    }
    return replaced;
}

/* x = a b or, turned, a b^T; from tiles in shared memory and registers. */
static __device__ __forceinline__ void times(const double (*a)[SIDE], const double (*b)[SIDE],
                                             bool turned, double factor, double (*x)[SIDE])
{
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
#pragma unroll
            for (int k = 0; k < SIDE; k++)
                sum = fma(a[i][k], turned ? b[j][k] : b[k][j], sum);
            x[i][j] = factor * sum;
        }
}

struct round_shared {
    double corner[SIDE][SIDE];       /* the inverse's tile on the diagonal */
    double left[MOST][SIDE];         /* the factor's columns */
    double above[TILES][SIDE][SIDE]; /* the inverse's rows */
    double off[ROUND_THREADS / 32 + 1], trace[ROUND_THREADS / 32 + 1];
    int replaced;
};

/* x, a tile of the lower triangle, becomes that of the inverse. */
static __device__ void invert(double (*x)[SIDE], int2 tile, int tiles, double least,
                              round_shared *s)
{
    const bool there = tile.x < tiles;
    for (int k = 0; k < tiles; k++) {
        if (there && tile.x == k && tile.y == k) {
            if (invert_tile(x, least)) s->replaced = 1;
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++)
                    s->corner[i][j] = x[i][j];
        }
        __syncthreads();
        if (there && tile.x == k && tile.y < k) {
            double y[SIDE][SIDE];
            times(s->corner, x, false, 1.0, y);
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++)
                    s->above[tile.y][i][j] = x[i][j] = y[i][j];
        } else if (there && tile.y == k && tile.x > k) {
            double y[SIDE][SIDE];
            times(x, s->corner, true, 1.0, y);
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++)
                    s->left[tile.x * SIDE + i][j] = y[i][j];
            times(y, s->corner, false, -1.0, x);
        }
        __syncthreads();
        if (there && tile.x > k && tile.y != k) {
            const double(*left)[SIDE] = s->left + tile.x * SIDE;
            const double(*other)[SIDE] = s->left + tile.y * SIDE;
            const double(*above)[SIDE] = s->above[tile.y < k ? tile.y : 0];
#pragma unroll
            for (int step = 0; step < SIDE; step++) {
                double u[SIDE], v[SIDE];
#pragma unroll
                for (int i = 0; i < SIDE; i++) {
                    u[i] = left[i][step];
                    v[i] = tile.y < k ? above[step][i] : other[i][step];
                }
#pragma unroll
                for (int i = 0; i < SIDE; i++)
#pragma unroll
                    for (int j = 0; j < SIDE; j++)
                        x[i][j] = fma(-u[i], v[j], x[i][j]);
            }
        }
    }
}

/* |G - I|_F^2 and the trace of what all threads hold of the lower triangle, in a fixed order. */
static __device__ __forceinline__ double2 figures(const double (*x)[SIDE], int2 tile, int n,
                                                  round_shared *s)
{
    double off = 0, trace = 0;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = tile.x * SIDE + i, c = tile.y * SIDE + j;
            if (r >= n || c > r) continue;
            const double d = x[i][j] - (r == c ? 1.0 : 0.0);
            off = fma(r == c ? d : 2 * d, d, off);
            if (r == c) trace += x[i][j];
        }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        off += __shfl_xor_sync(~0u, off, step);
        trace += __shfl_xor_sync(~0u, trace, step);
    }
    if (threadIdx.x % 32 == 0) {
        s->off[threadIdx.x / 32] = off;
        s->trace[threadIdx.x / 32] = trace;
    }
    __syncthreads();
    double2 all = make_double2(0, 0);
    for (int w = 0; w < (int)blockDim.x / 32; w++) {
        all.x += s->off[w];
        all.y += s->trace[w];
    }
    return all;
}

static __global__ void __launch_bounds__((ROUND_THREADS + 31) / 32 * 32)
    round_kernel(const __grid_constant__ tall_list l, int round, bool divides)
{
    __shared__ round_shared shared;
    const gcu_hosvd_tall p = l.of[blockIdx.x];
    const int n = p.cols, chunks = chunks_of(p.rows), tiles = (n + SIDE - 1) / SIDE;
    const int2 tile = tile_pair((int)threadIdx.x);
    double x[SIDE][SIDE];
    if (threadIdx.x == 0) shared.replaced = 0;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = tile.x * SIDE + i, c = tile.y * SIDE + j;
            x[i][j] = r == c ? 1.0 : 0.0; /* beyond the matrix */
            if (r >= n || c > r) continue;
            double sum = 0;
            for (int k = 0; k < chunks; k++)
                sum += p.parts[((int64_t)k * n + r) * n + c];
            x[i][j] = sum;
        }
    const double2 seen = figures(x, tile, n, &shared);
    int found = GCU_SVD_SAFE;
    if (!isfinite(seen.y))
        found = GCU_SVD_OVERFLOW;
    else if (seen.x <= GCU_HOSVD_NEAR * GCU_HOSVD_NEAR)
        found = GCU_SVD_ORTHONORMAL;
    else if (!(seen.y > 1e-290))
        found = GCU_SVD_DEPENDENT;
    const bool inverts = divides && found == GCU_SVD_SAFE;
    if (inverts) {
        invert(x, tile, tiles, 8 * (double)n * 0x1p-53 * seen.y, &shared);
        __syncthreads();
        if (shared.replaced) found = GCU_SVD_SHIFTED;
    }
    if (threadIdx.x == 0) p.found[round] = found;
    if (!divides) return;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = tile.x * SIDE + i, c = tile.y * SIDE + j;
            if (r >= n || c > r) continue;
            p.inverse[c * n + r] = inverts ? x[i][j] : r == c ? 1.0 : 0.0;
        }
}

/* other = y R^-1 or, LAST, tall = other R^-1 and narrow. */
template <bool LAST>
static __global__ void __launch_bounds__(TILE_THREADS)
    divide_kernel(const __grid_constant__ tall_list l)
{
    __shared__ tile_part a, b;
    const gcu_hosvd_tall p = l.of[blockIdx.y];
    const int n = p.cols, across = tiles_of(n);
    const int2 at = make_int2((int)blockIdx.x / across, (int)blockIdx.x % across);
    if (at.x >= tiles_of(p.rows)) return;
    const int depth = (at.y + 1) * TILE_SIDE < n ? (at.y + 1) * TILE_SIDE : n;
    tile_product(
        a, b,
        [=](int64_t row, int k) { return LAST ? p.other[row * n + k] : (double)p.y[row * n + k]; },
        [=](int k, int col) { return k <= col ? p.inverse[k * n + col] : 0.0; }, at, p.rows, depth,
        n,
        [=](int64_t row, int col, double sum) {
            (LAST ? p.tall : p.other)[row * n + col] = sum;
            if (LAST) p.narrow[row * n + col] = (float)sum;
        });
}

/* Blocks that the largest of a list takes. */
template <typename Count> static unsigned most_of(const tall_list &l, int count, Count count_of)
{
    int64_t most = 1;
    for (int i = 0; i < count; i++) {
        const int64_t one = count_of(l.of[i]);
        most = one > most ? one : most;
    }
    return (unsigned)most;
}

int64_t gcu_hosvd_tall_parts(int64_t rows, int64_t cols)
{
    return chunks_of(rows) * cols * cols;
}

cudaError_t gcu_hosvd_orthonormalise(const gcu_hosvd_tall *tall, int count, cudaStream_t stream)
{
    tall_list l = {};
    for (int i = 0; i < count; i++)
        l.of[i] = tall[i];
    const auto pairs = [](const gcu_hosvd_tall &p) {
        const int64_t tiles = tiles_of(p.cols);
        return tiles * (tiles + 1) / 2 * chunks_of(p.rows);
    };
    const auto triangle = [](const gcu_hosvd_tall &p) {
        const int64_t tiles = (p.cols + SIDE - 1) / SIDE;
        return (tiles * (tiles + 1) / 2 + 31) / 32 * 32;
    };
    const auto all = [](const gcu_hosvd_tall &p) {
        return (int64_t)tiles_of(p.rows) * tiles_of(p.cols);
    };
    const dim3 grams(most_of(l, count, pairs), (unsigned)count);
    const dim3 tiles(most_of(l, count, all), (unsigned)count);
    const unsigned threads = most_of(l, count, triangle), blocks = (unsigned)count;
    gram_kernel<float><<<grams, TILE_BLOCK, 0, stream>>>(l);
    round_kernel<<<blocks, threads, 0, stream>>>(l, 0, true);
    divide_kernel<false><<<tiles, TILE_THREADS, 0, stream>>>(l);
    gram_kernel<double><<<grams, TILE_BLOCK, 0, stream>>>(l);
    round_kernel<<<blocks, threads, 0, stream>>>(l, 1, true);
    divide_kernel<true><<<tiles, TILE_THREADS, 0, stream>>>(l);
    for (int i = 0; i < count; i++)
        l.of[i].other = l.of[i].tall; /* what is looked at */
    gram_kernel<double><<<grams, TILE_BLOCK, 0, stream>>>(l);
    round_kernel<<<blocks, threads, 0, stream>>>(l, 2, false);
    return cudaGetLastError();
}

/* ---- another basis ---- */

struct turn_list {
    gcu_hosvd_basis of[GNOMON_TENSOR_MODES];
};

static __global__ void __launch_bounds__(TILE_THREADS)
    basis_kernel(const __grid_constant__ turn_list l)
{
    __shared__ tile_part a, b;
    const gcu_hosvd_basis p = l.of[blockIdx.y];
    const int n = p.n, across = tiles_of(p.rank);
    const int2 at = make_int2((int)blockIdx.x / across, (int)blockIdx.x % across);
    if (at.x >= tiles_of(p.rows)) return;
    tile_product(
        a, b,
        [=](int64_t row, int k) { return p.from     ? p.from[row * n + k]
                                         : row == k ? 1.0
                                                    : 0.0; },
        [=](int k, int col) { return p.vectors[(int64_t)(n - 1 - col) * n + k]; }, at, p.rows, n,
        p.rank, [=](int64_t row, int col, double sum) { p.to[row * p.rank + col] = sum; });
}

cudaError_t gcu_hosvd_change_basis(const gcu_hosvd_basis *basis, int count, cudaStream_t stream)
{
    turn_list l = {};
    int64_t most = 1;
    for (int i = 0; i < count; i++) {
        l.of[i] = basis[i];
        const int64_t tiles = (int64_t)tiles_of(basis[i].rows) * tiles_of(basis[i].rank);
        most = tiles > most ? tiles : most;
    }
    basis_kernel<<<dim3((unsigned)most, (unsigned)count), TILE_THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}

/* ---- the factors as they are handed out ---- */

struct sign_list {
    gcu_hosvd_signed of[GNOMON_TENSOR_MODES];
};

/* The larger magnitude, and among equal ones the earlier place. */
struct largest {
    float size;
    int64_t at;
};

static __device__ __forceinline__ largest larger(largest a, largest b)
{
    return b.size > a.size || (b.size == a.size && b.at < a.at) ? b : a;
}

/* A block a column. */
static __global__ void __launch_bounds__(SIGN_THREADS)
    sign_kernel(const __grid_constant__ sign_list l)
{
    __shared__ largest part[SIGN_THREADS];
    const gcu_hosvd_signed p = l.of[blockIdx.y];
    const int64_t j = blockIdx.x;
    if (j >= p.rank) return;
    largest most = {-1.0f, INT64_MAX};
    for (int64_t i = threadIdx.x; i < p.rows; i += SIGN_THREADS)
        most = larger(most, {fabsf((float)p.from[i * p.rank + j]), i});
    part[threadIdx.x] = most;
    for (int half = SIGN_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            part[threadIdx.x] = larger(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
    const int64_t at = part[0].at;
    const float factor = at < p.rows && (float)p.from[at * p.rank + j] < 0 ? -1.0f : 1.0f;
    for (int64_t i = threadIdx.x; i < p.rows; i += SIGN_THREADS)
        p.to[i * p.rank + j] = factor * (float)p.from[i * p.rank + j];
    if (threadIdx.x == 0) p.sign[j] = factor;
}

cudaError_t gcu_hosvd_sign(const gcu_hosvd_signed *factor, int count, cudaStream_t stream)
{
    sign_list l = {};
    int64_t most = 1;
    for (int i = 0; i < count; i++) {
        l.of[i] = factor[i];
        most = factor[i].rank > most ? factor[i].rank : most;
    }
    sign_kernel<<<dim3((unsigned)most, (unsigned)count), SIGN_THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}
