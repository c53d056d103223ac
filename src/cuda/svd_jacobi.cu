/* Eigenvectors of small symmetric matrices, several at once, each by one block of threads: Jacobi's
 * rotations, n / 2 side by side, in the order of a round-robin tournament. A library's solver for
 * one such matrix waits for the host again and again. */
#include "cuda/svd.h"

enum { THREADS = 1024, PAIRS = GCU_SVD_JACOBI_MOST / 2, SWEEPS = 30 };

/* One that is no larger than this of the trace is nothing: Gram matrices are not more exact, and
 * rotations leave as much. */
static const double nothing = 0x1p-50;
/* A pair is orthogonal when the square of its cosine is no larger. */
static const double orthogonal = 0x1p-100;

/* An even number of rows, and a gap against bank conflicts. */
static __host__ __device__ int even(int n)
{
    return n + n % 2;
}

/* The matrix and its vectors. */
static size_t shared_bytes(int n)
{
    const size_t m = (size_t)even(n);
    return m * (m + 1 + (size_t)n) * sizeof(double);
}

struct jacobi_list {
    gcu_svd_problem problem[GCU_SVD_JACOBI_COUNT];
};

/* The matrix is a (m x m, m + 1 apart), row i of w becomes the vector of a's i-th diagonal number.
 */
static __device__ void rotate(double *a, double *w, int n, double least)
{
    __shared__ double cosine[PAIRS], sine[PAIRS];
    __shared__ int first[PAIRS], second[PAIRS], more;
    const int m = even(n), pairs = m / 2, pitch = m + 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        __syncthreads();
        if (threadIdx.x == 0) more = 0;
        for (int round = 0; round < m - 1; round++) {
            __syncthreads();
            for (int k = threadIdx.x; k < pairs; k += THREADS) {
                const int p = k == 0 ? round : (round + k) % (m - 1);
                const int q = k == 0 ? m - 1 : (round + m - 1 - k) % (m - 1);
                const double x = a[p * pitch + q], aa = a[p * pitch + p], bb = a[q * pitch + q];
                double c = 1, s = 0;
                if (fabs(x) > least && x * x > orthogonal * fabs(aa * bb)) {
                    const double theta = (bb - aa) / (2 * x);
                    const double t =
                        copysign(1.0, theta) / (fabs(theta) + sqrt(fma(theta, theta, 1.0)));
                    c = rsqrt(fma(t, t, 1.0));
                    s = t * c;
                    more = 1;
                }
                cosine[k] = c;
                sine[k] = s;
                first[k] = p;
                second[k] = q;
            }
            __syncthreads();
            for (int e = threadIdx.x; e < pairs * pairs; e += THREADS) {
                const int i = e / pairs, j = e % pairs;
                double *top = a + first[i] * pitch, *low = a + second[i] * pitch;
                const int p = first[j], q = second[j];
                const double ci = cosine[i], si = sine[i], cj = cosine[j], sj = sine[j];
                const double tp = ci * top[p] - si * low[p], tq = ci * top[q] - si * low[q];
                const double lp = si * top[p] + ci * low[p], lq = si * top[q] + ci * low[q];
                top[p] = cj * tp - sj * tq;
                top[q] = sj * tp + cj * tq;
                low[p] = cj * lp - sj * lq;
                low[q] = sj * lp + cj * lq;
            }
            for (int e = threadIdx.x; e < pairs * n; e += THREADS) {
                const int i = e / n, k = e % n;
                if (sine[i] == 0) continue;
                double *top = w + first[i] * n + k, *low = w + second[i] * n + k;
                const double x = *top, y = *low;
                *top = cosine[i] * x - sine[i] * y;
                *low = sine[i] * x + cosine[i] * y;
            }
        }
        __syncthreads();
        if (!more) return;
    }
}

static __global__ void __launch_bounds__(THREADS)
    jacobi_kernel(const __grid_constant__ jacobi_list list)
{
    extern __shared__ double matrix[];
    __shared__ double trace;
    const gcu_svd_problem p = list.problem[blockIdx.x];
    const int n = p.n, m = even(n), pitch = m + 1;
    double *a = matrix, *w = matrix + m * pitch;
    for (int e = threadIdx.x; e < m * m; e += THREADS) {
        const int i = e / m, j = e % m;
        a[i * pitch + j] = i < n && j < n ? p.gram[i * n + j] : 0.0;
    }
    for (int e = threadIdx.x; e < m * n; e += THREADS)
        w[e] = e / n == e % n ? 1.0 : 0.0;
    __syncthreads();
    if (threadIdx.x == 0) {
        trace = 0;
        for (int i = 0; i < n; i++)
            trace += fabs(a[i * (pitch + 1)]);
    }
    __syncthreads();
    rotate(a, w, n, nothing * trace);
    for (int e = threadIdx.x; e < n * n; e += THREADS) {
        const int i = e / n;
        const double value = a[i * (pitch + 1)];
        int rank = 0;
        for (int j = 0; j < n; j++) {
            const double other = a[j * (pitch + 1)];
            rank += other < value || (other == value && j < i);
        }
        p.vectors[rank * n + e % n] = w[e];
        if (e % n == 0) p.values[rank] = value;
    }
}

cudaError_t gcu_svd_jacobi(const gcu_svd_problem *problem, int count, cudaStream_t stream)
{
    jacobi_list list = {};
    size_t bytes = 0;
    for (int i = 0; i < count; i++) {
        list.problem[i] = problem[i];
        const size_t needed = shared_bytes(problem[i].n);
        bytes = needed > bytes ? needed : bytes;
    }
    const cudaError_t error = cudaFuncSetAttribute(
        jacobi_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess) return error;
    jacobi_kernel<<<(unsigned)count, THREADS, bytes, stream>>>(list);
    return cudaGetLastError();
}
