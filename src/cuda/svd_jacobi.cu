/* Eigenvectors of small symmetric matrices, several at once, by Jacobi's rotations, n / 2 side by
 * side in the order of a round-robin tournament. A library's solver for one such matrix waits for
 * the host again and again.
 *
 * Several blocks of threads have a problem: each turns the whole matrix, which lies in its shared
 * memory, and a few columns of the vectors. So nobody waits for anybody, and the vectors, which
 * would not fit beside the matrix, cost little. Of the matrix what is above the diagonal is held.
 * While the angles of a round are found, the vectors are turned by those of the round before. */
#include "cuda/svd_jacobi.cuh"

enum { MOST_THREADS = 1024 };

struct jacobi_list {
    gcu_svd_problem problem[GCU_SVD_JACOBI_COUNT];
    double last;
};

/* BLOCKS: that a thread turns, at most. */
template <int BLOCKS>
static __device__ void rotate(const jacobi_matrix &a, double *w, double least, double last,
                              jacobi_angles *angles, int *more)
{
    const int t = (int)threadIdx.x, threads = (int)blockDim.x;
    const int finders = (a.pairs + 31) / 32 * 32; /* whole warps */
    const int lines = a.pairs * JACOBI_COLUMNS;
    jacobi_block block[BLOCKS];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++)
        block[b] = jacobi_block_of(a, t + b * threads);
    int before = -1; /* the round before this one */
    for (int sweep = 0; sweep < JACOBI_SWEEPS; sweep++) {
        int *const mine = more + sweep % 2, *const next = more + 1 - sweep % 2;
        for (int round = 0; round < a.size - 1; round++) {
            jacobi_angles *const now = angles + round % 2, *const old = angles + 1 - round % 2;
            jacobi_pair own = {};
            if (t < finders) {
                if (t < a.pairs && jacobi_find(a, t, round, least, last, now, &own)) *mine = 1;
            } else if (before >= 0) {
                for (int e = t - finders; e < lines; e += threads - finders)
                    jacobi_turn_vectors(a, w, e, before, old);
            }
            before = round;
            __syncthreads();
            if (t == 0 && round == 0) *next = 0;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                if (block[b].i >= 0) jacobi_turn_block(a, block[b], round, now);
            if (t < a.pairs) jacobi_settle(a, t, round, own);
            __syncthreads();
        }
        /* an odd number of rounds: the next one writes where the last one wrote */
        for (int e = t; e < lines; e += threads)
            jacobi_turn_vectors(a, w, e, before, angles + before % 2);
        before = -1;
        if (!*mine) return;
        __syncthreads();
    }
}

template <int BLOCKS>
static __global__ void __launch_bounds__(MOST_THREADS)
    jacobi_kernel(const __grid_constant__ jacobi_list list)
{
    extern __shared__ double matrix[];
    __shared__ jacobi_angles angles[2];
    __shared__ double trace;
    __shared__ int more[2];
    const gcu_svd_problem p = list.problem[blockIdx.y];
    const int n = p.n, t = (int)threadIdx.x, threads = (int)blockDim.x;
    const int column = (int)blockIdx.x * JACOBI_COLUMNS;
    if (column >= n) return;
    const jacobi_matrix a = jacobi_matrix_of(matrix, n);
    double *w = matrix + a.size * a.size;
    if (t < 32) {
        double sum = 0;
        for (int i = t; i < n; i += 32)
            sum += fabs(p.gram[i * (n + 1)]);
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(~0u, sum, step);
        if (t == 0) trace = sum;
    }
    if (t < 2) more[t] = 0;
    __syncthreads();
    /* a power of two that leaves the trace in [1, 2), for the angles are found in fp32 */
    const int exponent = trace > 0 && isfinite(trace) ? ilogb(trace) : 0;
    for (int e = t; e < a.size * a.size; e += threads) {
        const int i = e / a.size, j = e % a.size;
        a.at[e] = i < n && j < n ? scalbn(p.gram[i * n + j], -exponent) : 0.0;
    }
    for (int e = t; e < a.size * JACOBI_COLUMNS; e += threads)
        w[e] = e / JACOBI_COLUMNS == column + e % JACOBI_COLUMNS ? 1.0 : 0.0;
    __syncthreads();
    rotate<BLOCKS>(a, w, JACOBI_NOTHING * scalbn(trace, -exponent), list.last, angles, more);
    __syncthreads();
    for (int e = t; e < n * JACOBI_COLUMNS; e += threads) {
        const int i = e / JACOBI_COLUMNS, j = e % JACOBI_COLUMNS;
        const double value = a.at[i * (a.size + 1)];
        int rank = 0;
        for (int k = 0; k < n; k++) {
            const double other = a.at[k * (a.size + 1)];
            rank += other < value || (other == value && k < i);
        }
        if (column + j < n) p.vectors[rank * n + column + j] = w[e];
        if (column + j == 0) p.values[rank] = scalbn(value, exponent);
    }
}

static size_t shared_bytes(int n)
{
    const size_t size = (size_t)(n + n % 2);
    return size * (size + JACOBI_COLUMNS) * sizeof(double);
}

int gcu_svd_jacobi_most(const gcu_gpu *gpu)
{
    const size_t fixed = 2 * sizeof(jacobi_angles) + 64;
    int most = GCU_SVD_JACOBI_MOST;
    while (most > 0 && shared_bytes(most) + fixed > gpu->smem_bytes)
        most--;
    return most;
}

template <int BLOCKS>
static cudaError_t launch(const jacobi_list &list, int most, int count, int threads,
                          cudaStream_t stream)
{
    const size_t bytes = shared_bytes(most);
    const cudaError_t error = cudaFuncSetAttribute(
        jacobi_kernel<BLOCKS>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const dim3 grid((unsigned)((most + JACOBI_COLUMNS - 1) / JACOBI_COLUMNS), (unsigned)count);
    jacobi_kernel<BLOCKS><<<grid, (unsigned)threads, bytes, stream>>>(list);
    return cudaGetLastError();
}

cudaError_t gcu_svd_jacobi(const gcu_svd_problem *problem, int count, cudaStream_t stream,
                           double last)
{
    jacobi_list list = {};
    list.last = last;
    int most = 1;
    for (int i = 0; i < count; i++) {
        list.problem[i] = problem[i];
        most = problem[i].n > most ? problem[i].n : most;
    }
    /* 24 rows have 66 blocks, 64 have 496, 90 have 990, 128 have 2016, 160 have 3160 */
    if (most <= 24) return launch<1>(list, most, count, 128, stream);
    if (most <= 64) return launch<1>(list, most, count, 512, stream);
    if (most <= 90) return launch<1>(list, most, count, MOST_THREADS, stream);
    return most <= 128 ? launch<2>(list, most, count, MOST_THREADS, stream)
                       : launch<4>(list, most, count, MOST_THREADS, stream);
}
