/* Eigenvectors of small symmetric matrices, several at once, by Jacobi's rotations, n / 2 side by
 * side in the order of a round-robin tournament. A library's solver for one such matrix waits for
 * the host again and again.
 *
 * Several blocks of threads have a problem: each rotates the whole matrix, which lies in its shared
 * memory twice, as it is in this round and as it will be in the next one, and a few columns of the
 * vectors. So no warp waits for another, and a round has one barrier. Of the matrix what is on and
 * above the diagonal is held; to read and write it is what a round's time goes into.
 *
 * To find an angle takes as long, a chain of some thirty operations. So while most threads turn the
 * matrix and the vectors by a round's angles, the threads of a few warps find the next round's:
 * each rotates the few numbers that its next pair comes of by itself. */
#include "cuda/linalg/jacobi.cuh"

enum { MOST_THREADS = 1024, COLUMNS = 16, LEAST_COLUMNS = 4, GRID = 128 };

struct jacobi_list {
    gcu_svd_problem problem[GCU_SVD_JACOBI_COUNT];
    double last;
    int columns; /* of the vectors, that a block of threads has */
};

/* Two rooms of each, of which a round reads one and writes the other. */
struct jacobi_rooms {
    double2 *angles;
    double *matrix, *vectors;
    int *more; /* sweeps by turns: whether another one is needed */
};

/* Whole warps. */
static __host__ __device__ __forceinline__ int finders_of(int pairs)
{
    return (pairs + 31) / 32 * 32;
}

/* The threads that find angles. */
static __device__ __forceinline__ void find_all(const jacobi_matrix &a, const jacobi_limits &limits,
                                                const jacobi_rooms &rooms)
{
    const int t = (int)threadIdx.x, numbers = jacobi_numbers(a);
    const bool mine = t < a.pairs;
    const jacobi_ahead ahead = jacobi_ahead_of(a, mine ? t : 0);
    jacobi_pair own = {};
    if (mine) {
        own = {rooms.matrix[2 * t], rooms.matrix[2 * t + 1], rooms.matrix[a.size + t], 1, 0};
        if (jacobi_find(limits, &own)) rooms.more[0] = 1;
        rooms.angles[t] = make_double2(own.cosine, own.sine);
    }
    __syncthreads();
    int flip = 0;
    for (int sweep = 0; sweep < JACOBI_SWEEPS; sweep++) {
        if (t == 0) rooms.more[1 - sweep % 2] = 0;
        for (int round = 0; round < a.size - 1; round++) {
            if (mine) {
                double *const to = rooms.matrix + (1 - flip) * numbers;
                const jacobi_sources sources = jacobi_load(rooms.matrix + flip * numbers, ahead,
                                                           rooms.angles + flip * JACOBI_PAIRS);
                const double c = own.cosine, s = own.sine;
                const double common_place =
                    fma((c - s) * (c + s), own.x, c * s * (own.aa - own.bb));
                jacobi_step(ahead, sources, &own);
                const bool again = jacobi_find(limits, &own);
                rooms.angles[(1 - flip) * JACOBI_PAIRS + t] = make_double2(own.cosine, own.sine);
                to[2 * t] = own.aa;
                to[2 * t + 1] = own.bb;
                to[ahead.common_place] =
                    common_place; /* what the pair has in common, others write */
                if (again) rooms.more[(round + 2 < a.size ? sweep : sweep + 1) % 2] = 1;
            }
            __syncthreads();
            flip = 1 - flip;
        }
        if (!rooms.more[sweep % 2]) break;
        __syncthreads();
    }
}

/* The others. BLOCKS, VECTORS: numbers that a thread rotates, at most. Returns which of the rooms
 * all ends in. */
template <int BLOCKS, int VECTORS>
static __device__ __forceinline__ int rotate_all(const jacobi_matrix &a, int columns,
                                                 const jacobi_rooms &rooms)
{
    const int finders = finders_of(a.pairs), t = (int)threadIdx.x - finders;
    const int threads = (int)blockDim.x - finders;
    const int numbers = jacobi_numbers(a), room = a.size * columns;
    jacobi_block block[BLOCKS];
    jacobi_way way[BLOCKS];
    jacobi_vector vector[VECTORS];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        block[b] = jacobi_block_of(a, t + b * threads);
        way[b] = jacobi_way_of(a, block[b]);
    }
#pragma unroll
    for (int e = 0; e < VECTORS; e++)
        vector[e] = jacobi_vector_of(a, columns, t + e * threads);
    __syncthreads();
    int flip = 0;
    for (int sweep = 0; sweep < JACOBI_SWEEPS; sweep++) {
        for (int round = 0; round < a.size - 1; round++) {
            const double2 *const angles = rooms.angles + flip * JACOBI_PAIRS;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                if (block[b].i >= 0)
                    jacobi_rotate(a, t + b * threads, block[b], way[b], angles,
                                  rooms.matrix + flip * numbers,
                                  rooms.matrix + (1 - flip) * numbers);
#pragma unroll
            for (int e = 0; e < VECTORS; e++)
                if (vector[e].pair >= 0)
                    jacobi_rotate_vector(vector[e], angles, rooms.vectors + flip * room,
                                         rooms.vectors + (1 - flip) * room);
            __syncthreads();
            flip = 1 - flip;
        }
        if (!rooms.more[sweep % 2]) break;
        __syncthreads();
    }
    return flip;
}

template <int BLOCKS, int VECTORS, int THREADS>
static __global__ void __launch_bounds__(THREADS)
    jacobi_kernel(const __grid_constant__ jacobi_list list)
{
    extern __shared__ double2 angles[]; /* and then the matrix and the vectors */
    __shared__ double trace;
    __shared__ int more[2], ended;
    const gcu_svd_problem p = list.problem[blockIdx.y];
    const int n = p.n, t = (int)threadIdx.x, threads = (int)blockDim.x;
    const int columns = list.columns, column = (int)blockIdx.x * columns;
    if (column >= n) return;
    const jacobi_matrix a = jacobi_matrix_of(n);
    const int numbers = jacobi_numbers(a), room = a.size * columns;
    double *matrix = reinterpret_cast<double *>(angles + 2 * JACOBI_PAIRS);
    double *w = matrix + 2 * numbers;
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
        if (i <= j)
            matrix[jacobi_index(a, i, j)] = j < n ? scalbn(p.gram[i * n + j], -exponent) : 0.0;
    }
    for (int e = t; e < room; e += threads)
        w[e] = e / columns == column + e % columns ? 1.0 : 0.0;
    __syncthreads();
    const jacobi_limits limits = {(float)(JACOBI_NOTHING * scalbn(trace, -exponent)),
                                  (float)list.last};
    const jacobi_rooms rooms = {angles, matrix, w, more};
    if (t < finders_of(a.pairs)) {
        find_all(a, limits, rooms);
    } else {
        const int flip = rotate_all<BLOCKS, VECTORS>(a, columns, rooms);
        if (t == threads - 1) ended = flip;
    }
    __syncthreads();
    matrix += ended * numbers;
    w += ended * room;
    for (int e = t; e < n * columns; e += threads) {
        const int i = e / columns, j = e % columns;
        const double value = matrix[i];
        int rank = 0;
        for (int k = 0; k < n; k++) {
            const double other = matrix[k];
            rank += other < value || (other == value && k < i);
        }
        if (column + j < n) p.vectors[rank * n + column + j] = w[e];
        if (column + j == 0) p.values[rank] = scalbn(value, exponent);
    }
}

static size_t shared_bytes(int n, int columns)
{
    const jacobi_matrix a = jacobi_matrix_of(n);
    return 2 * (JACOBI_PAIRS * sizeof(double2) +
                (size_t)(jacobi_numbers(a) + a.size * columns) * sizeof(double));
}

int gcu_svd_jacobi_most(const gcu_gpu *gpu)
{
    const size_t fixed = 64;
    int most = GCU_SVD_JACOBI_MOST;
    while (most > 0 && shared_bytes(most, LEAST_COLUMNS) + fixed > gpu->smem_bytes)
        most--;
    return most;
}

template <int BLOCKS, int VECTORS, int THREADS>
static cudaError_t launch(const jacobi_list &list, int most, int count, cudaStream_t stream)
{
    const auto kernel = jacobi_kernel<BLOCKS, VECTORS, THREADS>;
    const size_t bytes = shared_bytes(most, list.columns);
    const jacobi_matrix a = jacobi_matrix_of(most);
    const int vectors = (a.pairs * list.columns + VECTORS - 1) / VECTORS;
    const int blocks = (a.blocks + BLOCKS - 1) / BLOCKS;
    const int threads =
        ((vectors > blocks ? vectors : blocks) + 31) / 32 * 32 + finders_of(a.pairs);
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    const dim3 grid((unsigned)((most + list.columns - 1) / list.columns), (unsigned)count);
    kernel<<<grid, (unsigned)threads, bytes, stream>>>(list);
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
    /* as few columns as leave all blocks of threads at work at once; many rows leave no room for
     * more than the least */
    list.columns = most > 88 ? 0 : (most * count + GRID - 1) / GRID;
    if (list.columns < LEAST_COLUMNS) list.columns = LEAST_COLUMNS;
    if (list.columns > COLUMNS) list.columns = COLUMNS;
    /* 64 rows have 496 blocks and at most 512 vectors' numbers, 88 have 946 and 704, 128 have 2016
     * and 256, 160 have 3160 and 320 */
    if (most <= 64) return launch<1, 1, 544>(list, most, count, stream);
    if (most <= 88) return launch<1, 1, MOST_THREADS>(list, most, count, stream);
    return most <= 128 ? launch<3, 1, MOST_THREADS>(list, most, count, stream)
                       : launch<4, 1, MOST_THREADS>(list, most, count, stream);
}
