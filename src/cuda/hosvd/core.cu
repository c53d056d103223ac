/* A small tensor, its modes where they lie: the Gram matrices of all unfoldings in one launch, and
 * products along any mode that leave its place. */
#include "cuda/hosvd/hosvd.h"
#include "cuda/linalg/tile.cuh"

enum { CHUNK_LINES = 128, SIDE = 64, STEP = 16, EACH = 4, THREADS = 256 };

struct core_list {
    gcu_hosvd_unfolding of[GNOMON_TENSOR_MODES];
    int64_t begin[GNOMON_TENSOR_MODES + 1]; /* of each one's numbers, of all that are added */
    int count;
};

static __host__ __device__ __forceinline__ int chunks_of(int64_t lines)
{
    const int64_t wanted = (lines + CHUNK_LINES - 1) / CHUNK_LINES;
    return (int)(wanted < GCU_HOSVD_CORE_CHUNKS ? wanted : (int64_t)GCU_HOSVD_CORE_CHUNKS);
}

static __global__ void __launch_bounds__(TILE_BLOCK)
    gram_kernel(const float *x, const __grid_constant__ core_list l)
{
    __shared__ tile_shared shared;
    const gcu_hosvd_unfolding p = l.of[blockIdx.y];
    const int n = p.n, tiles = (n + TILE_SIDE - 1) / TILE_SIDE, pairs = tiles * (tiles + 1) / 2;
    const int64_t lines = p.left * p.right;
    const int chunks = chunks_of(lines), chunk = (int)blockIdx.x / pairs;
    if (chunk >= chunks) return;
    const int64_t each = (lines + chunks - 1) / chunks, begin = chunk * each;
    const int64_t end = begin + each < lines ? begin + each : lines;
    const unsigned right = (unsigned)p.right;
    tile_gram(
        shared,
        [=](int64_t k, int i) {
            const unsigned line = (unsigned)k, outer = line / right;
            return (double)x[((int64_t)outer * n + i) * right + (line - outer * right)];
        },
        tile_pair((int)blockIdx.x % pairs), begin, end, n, right > 1,
        p.parts + (int64_t)chunk * n * n);
}

static __global__ void __launch_bounds__(THREADS) add_kernel(const __grid_constant__ core_list l)
{
    const int64_t all = l.begin[l.count];
    for (int64_t e = (int64_t)blockIdx.x * THREADS + threadIdx.x; e < all;
         e += (int64_t)gridDim.x * THREADS) {
        int of = 0;
        while (e >= l.begin[of + 1])
            of++;
        const gcu_hosvd_unfolding &p = l.of[of];
        const int64_t at = e - l.begin[of], square = (int64_t)p.n * p.n;
        const int chunks = chunks_of(p.left * p.right);
        double sum = 0;
        for (int c = 0; c < chunks; c++)
            sum += p.parts[c * square + at];
        p.gram[at] = sum;
    }
}

int64_t gcu_hosvd_core_parts(int64_t lines, int64_t n)
{
    return chunks_of(lines) * n * n;
}

cudaError_t gcu_hosvd_core_grams(const float *x, const gcu_hosvd_unfolding *of, int count,
                                 cudaStream_t stream)
{
    core_list l = {};
    int64_t most = 1;
    l.count = count;
    for (int i = 0; i < count; i++) {
        const int64_t tiles = (of[i].n + TILE_SIDE - 1) / TILE_SIDE;
        const int64_t blocks = tiles * (tiles + 1) / 2 * chunks_of(of[i].left * of[i].right);
        l.of[i] = of[i];
        l.begin[i + 1] = l.begin[i] + (int64_t)of[i].n * of[i].n;
        most = blocks > most ? blocks : most;
    }
    gram_kernel<<<dim3((unsigned)most, (unsigned)count), TILE_BLOCK, 0, stream>>>(x, l);
    const int64_t blocks = (l.begin[count] + THREADS - 1) / THREADS;
    add_kernel<<<(unsigned)blocks, THREADS, 0, stream>>>(l);
    return cudaGetLastError();
}

/* Where line q (of left x right) of the unfolding begins; its numbers are 'right' apart. */
static __device__ __forceinline__ int64_t line_of(unsigned q, unsigned right, int n)
{
    const unsigned outer = q / right;
    return (int64_t)outer * n * right + (q - outer * right);
}

/* A block computes 'rank' numbers 64 at a time of 64 lines. */
static __global__ void __launch_bounds__(THREADS)
    product_kernel(const float *x, const gcu_hosvd_unfolding p, int rank, const double *vectors,
                   float *to)
{
    __shared__ float a[STEP][SIDE + 1], b[STEP][SIDE + 1];
    const int t = (int)threadIdx.x, n = p.n;
    const unsigned right = (unsigned)p.right, lines = (unsigned)(p.left * p.right);
    const unsigned line0 = blockIdx.x * SIDE;
    const int col0 = (int)blockIdx.y * SIDE;
    const bool along = right > 1; /* neighbours in memory are lines */
    const int line = along ? t % 16 : t / 16, col = along ? t / 16 : t % 16;
    float sum[EACH][EACH] = {};
    for (int first = 0; first < n; first += STEP) {
#pragma unroll
        for (int e = 0; e < SIDE * STEP / THREADS; e++) {
            const int number = t + e * THREADS;
            const int step = along ? number / SIDE : number % STEP;
            const unsigned q = (unsigned)(along ? number % SIDE : number / STEP);
            const int k = first + step;
            a[step][q] = k < n && line0 + q < lines
                             ? x[line_of(line0 + q, right, n) + (int64_t)k * right]
                             : 0.0f;
            const int down = first + number % STEP, across = col0 + number / STEP;
            b[number % STEP][number / STEP] =
                down < n && across < rank ? (float)vectors[(int64_t)(n - 1 - across) * n + down]
                                          : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            float u[EACH], v[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                u[i] = a[k][line + 16 * i];
                v[i] = b[k][col + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const unsigned q = line0 + (unsigned)(line + 16 * i);
        if (q >= lines) continue;
        float *out = to + line_of(q, right, rank);
#pragma unroll
        for (int j = 0; j < EACH; j++)
            if (col0 + col + 16 * j < rank) out[(int64_t)(col0 + col + 16 * j) * right] = sum[i][j];
    }
}

cudaError_t gcu_hosvd_core_product(const float *x, const gcu_hosvd_unfolding *of, int rank,
                                   const double *vectors, float *to, cudaStream_t stream)
{
    const int64_t lines = of->left * of->right;
    const dim3 grid((unsigned)((lines + SIDE - 1) / SIDE), (unsigned)((rank + SIDE - 1) / SIDE));
    product_kernel<<<grid, THREADS, 0, stream>>>(x, *of, rank, vectors, to);
    return cudaGetLastError();
}
