/* Several modes' tall matrices at once: their columns made orthonormal, rotated, signed.
 *
 * Orthonormal by two rounds of Cholesky QR and a check whether that was enough (see svd/orth.cu for
 * the theory); nothing waits for the host, which reads at the end what was found and, where two
 * rounds do not do, begins anew by the way that looks on every step. A round's inverse is that of
 * svd/invert.cuh; a column that is too short after the division is made long by the next round. */
#include "cuda/hosvd/hosvd.h"
#include "cuda/linalg/sign.cuh"
#include "cuda/linalg/tile.cuh"
#include "cuda/svd/invert.cuh"

enum { CHUNK_ROWS = TILE_TEAMS * TILE_STEP, SIGN_THREADS = 256 };

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

template <int MOST>
static __global__ void __launch_bounds__(MOST)
    round_kernel(const __grid_constant__ tall_list l, int round, bool divides)
{
    __shared__ invert_shared shared;
    const gcu_hosvd_tall p = l.of[blockIdx.x];
    const int n = p.cols, chunks = chunks_of(p.rows);
    const int2 tile = tile_pair((int)threadIdx.x);
    double x[INVERT_SIDE][INVERT_SIDE];
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
        for (int j = 0; j < INVERT_SIDE; j++) {
            const int r = tile.x * INVERT_SIDE + i, c = tile.y * INVERT_SIDE + j;
            x[i][j] = r == c ? 1.0 : 0.0; /* beyond the matrix */
            if (r >= n || c > r) continue;
            double sum = 0;
            for (int k = 0; k < chunks; k++)
                sum += p.parts[((int64_t)k * n + r) * n + c];
            x[i][j] = sum;
        }
    const int found =
        invert_gram(x, tile, n, GCU_HOSVD_NEAR, divides, 8 * (double)n * 0x1p-53, false, &shared);
    if (threadIdx.x == 0) p.found[round] = found;
    if (divides) invert_put(x, tile, n, found, p.inverse);
}

/* other = y R^-1 or, LAST, tall = other R^-1 and f32. */
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
            if (LAST) p.f32[row * n + col] = (float)sum;
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

static void find_round(const tall_list &l, int count, int round, bool divides, cudaStream_t stream)
{
    const unsigned threads =
        most_of(l, count, [](const gcu_hosvd_tall &p) { return invert_threads(p.cols); });
    if (threads <= INVERT_FEW)
        round_kernel<INVERT_FEW><<<(unsigned)count, threads, 0, stream>>>(l, round, divides);
    else
        round_kernel<INVERT_MOST><<<(unsigned)count, threads, 0, stream>>>(l, round, divides);
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
    const auto all = [](const gcu_hosvd_tall &p) {
        return (int64_t)tiles_of(p.rows) * tiles_of(p.cols);
    };
    const dim3 grams(most_of(l, count, pairs), (unsigned)count);
    const dim3 tiles(most_of(l, count, all), (unsigned)count);
    gram_kernel<float><<<grams, TILE_BLOCK, 0, stream>>>(l);
    find_round(l, count, 0, true, stream);
    divide_kernel<false><<<tiles, TILE_THREADS, 0, stream>>>(l);
    gram_kernel<double><<<grams, TILE_BLOCK, 0, stream>>>(l);
    find_round(l, count, 1, true, stream);
    divide_kernel<true><<<tiles, TILE_THREADS, 0, stream>>>(l);
    for (int i = 0; i < count; i++)
        l.of[i].other = l.of[i].tall; /* what is checked */
    gram_kernel<double><<<grams, TILE_BLOCK, 0, stream>>>(l);
    find_round(l, count, 2, false, stream);
    return cudaGetLastError();
}

/* ---- another basis ---- */

struct basis_list {
    gcu_hosvd_basis of[GNOMON_TENSOR_MODES];
};

static __global__ void __launch_bounds__(TILE_THREADS)
    basis_kernel(const __grid_constant__ basis_list l)
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
    basis_list l = {};
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

/* A block a column. */
static __global__ void __launch_bounds__(SIGN_THREADS)
    sign_kernel(const __grid_constant__ sign_list l)
{
    const gcu_hosvd_signed p = l.of[blockIdx.y];
    const int64_t j = blockIdx.x;
    if (j >= p.rank) return;
    gcu_sign_vector<SIGN_THREADS>(p.from + j, p.rows, p.rank, p.to + j, p.sign + j);
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
