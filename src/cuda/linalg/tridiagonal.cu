/* Eigenvectors of a symmetric matrix of some hundred rows on Hopper, by the steps of every
 * library's: to a tridiagonal matrix by reflections, its eigenvalues, its vectors, and the
 * reflections of those. A library's reflections wait for each other some ten thousand cycles
 * a row; here a cluster of blocks of threads has the matrix in its shared memory, rows in turn, and
 * meets once per row: what the next reflection needs is sent along with this one's products.
 *
 * Eigenvalues come by bisection, 32 places at once, an eigenvalue a warp; vectors from both ends
 * of the tridiagonal matrix, with the one equation that they miss where it costs least (twisted
 * factorisations, Parlett & Dhillon 1997). Of values very near to each other these are not
 * orthogonal: the caller checks that. */
#include "cuda/linalg/small.h"

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

enum {
    CLUSTER = 16,
    THREADS = 512,
    WARPS = THREADS / 32,
    MOST = GCU_SVD_TRIDIAGONAL_MOST,
    EACH = (MOST + THREADS - 1) / THREADS, /* columns a thread has */
    ROWS = 3,                              /* of the matrix, that a warp has at most */
    CHUNKS = (MOST + 31) / 32              /* of a vector, in a warp */
};

struct tridiagonal {
    int n;
    const double *gram;
    double *reflection; /* row k: the vector, from column k + 1 on */
    double *tau, *d, *e;
    double *front, *back; /* n x n each */
    double *z, *place, *length, *values, *scale;
};

/* ---- to tridiagonal ---- */

static __device__ __forceinline__ double warp_sum(double x)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

/* Shared memory: the rows; then vectors of n. */
struct tridiagonal_shared {
    double *a, *v[2], *w, *y[2], *c[2], *part[2];
};

static __host__ __device__ __forceinline__ int rows_of(int n)
{
    return (n + CLUSTER - 1) / CLUSTER;
}

static size_t shared_bytes(int n)
{
    return ((size_t)rows_of(n) * (size_t)n + 7 * (size_t)n + 2 * WARPS) * sizeof(double);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* In all threads; two calls in turn need two places. */
static __device__ __forceinline__ double block_sum(double x, double *part)
{
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    double sum[4] = {};
#pragma unroll
    for (int w = 0; w < WARPS; w++)
        sum[w % 4] += part[w];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static __device__ __forceinline__ tridiagonal_shared shared_of(double *memory, int n)
{
    tridiagonal_shared s;
    s.a = memory;
    double *at = memory + rows_of(n) * n;
    s.v[0] = at, s.v[1] = at + n, s.w = at + 2 * n;
    s.y[0] = at + 3 * n, s.y[1] = at + 4 * n, s.c[0] = at + 5 * n, s.c[1] = at + 6 * n;
    s.part[0] = at + 7 * n, s.part[1] = s.part[0] + WARPS;
    return s;
}

#endif

static __global__ void __launch_bounds__(THREADS)
    reduce_kernel(const __grid_constant__ tridiagonal p)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ double memory[];
    const cg::cluster_group cluster = cg::this_cluster();
    const int n = p.n, t = (int)threadIdx.x, lane = t % 32, warp = t / 32, rows = rows_of(n);
    const int rank = (int)cluster.block_rank();
    const tridiagonal_shared s = shared_of(memory, n);
    double trace = 0;
    for (int i = t; i < n; i += THREADS)
        trace += fabs(p.gram[i * (n + 1)]);
    trace = block_sum(trace, s.part[0]);
    const int exponent = trace > 0 && isfinite(trace) ? ilogb(trace) : 0;
    for (int l = warp; l < rows; l += WARPS) {
        const int i = l * CLUSTER + rank;
        for (int j = lane; j < n && i < n; j += 32)
            s.a[l * n + j] = scalbn(p.gram[i < j ? i * n + j : j * n + i], -exponent);
    }
    double x[EACH]; /* of column k of what is left, below its diagonal; then of its vector */
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const int j = t + u * THREADS;
        x[u] = j < n ? scalbn(p.gram[j], -exponent) : 0.0;
        if (j >= n) continue;
        s.v[0][j] = s.v[1][j] = s.w[j] = 0;
        if (j == 0 && rank == 0) {
            p.d[0] = x[u];
            *p.scale = scalbn(1.0, exponent);
        }
    }
    double head = scalbn(p.gram[1], -exponent);
    cluster.sync(); /* all are there to be written to */
    /* Row and column k have been taken out; the last two need no reflection. */
    for (int k = 0; k < n - 2; k++) {
        const int first = k + 1;
        double *const v = s.v[k % 2], *const before = s.v[first % 2];
        double *const y = s.y[k % 2], *const c = s.c[k % 2];
        /* the reflection of column k */
        double rest = 0;
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int j = t + u * THREADS;
            if (j <= first || j >= n) continue;
            rest = fma(x[u], x[u], rest);
            v[j] = x[u];
        }
        rest = block_sum(rest, s.part[0]);
        const bool reflects = rest > 0;
        const double length = sqrt(fma(head, head, rest)), most = fabs(head) + length;
        const double top = reflects ? copysign(most, head) : 0.0; /* of the vector */
        const double tau = reflects ? 2 / fma(most, most, rest) : 0.0;
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int j = t + u * THREADS;
            if (j == first) x[u] = top;
            if (!reflects) x[u] = 0;
            if (j >= first && j < n && rank == k % CLUSTER) p.reflection[k * n + j] = x[u];
        }
        if (t == 0 && rank == k % CLUSTER) {
            p.tau[k] = tau;
            p.e[k] = reflects ? -copysign(length, head) : head;
        }
        /* own rows: what the step before takes from them, their products, and column k + 1 */
        const int from = (first - rank + CLUSTER - 1) / CLUSTER; /* that are left */
        double sum[ROWS], vi[ROWS], wi[ROWS], *row[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int l = from + warp + r * WARPS;
            const int i = l * CLUSTER + rank;
            const bool have = l < rows && i < n;
            row[r] = have ? s.a + l * n : nullptr;
            vi[r] = have ? before[i] : 0.0;
            wi[r] = have ? s.w[i] : 0.0;
            sum[r] = 0;
        }
        for (int j = first + lane; j < n; j += 32) {
            const double vj = before[j], wj = s.w[j];
            const double now = j == first ? top : reflects ? v[j] : 0.0;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (!row[r]) continue;
                const double a = fma(-vi[r], wj, fma(-wi[r], vj, row[r][j]));
                row[r][j] = a;
                sum[r] = fma(a, now, sum[r]);
            }
        }
        __syncwarp();
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (!row[r]) continue; /* the same for the whole warp */
            const double product = warp_sum(sum[r]), column = row[r][first];
            const int i = (from + warp + r * WARPS) * CLUSTER + rank;
            if (lane < CLUSTER) {
                *cluster.map_shared_rank(y + i, lane) = product;
                *cluster.map_shared_rank(c + i, lane) = column;
            }
        }
        cluster.sync();
        double both = 0;
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int j = t + u * THREADS;
            if (j >= first && j < n) both = fma(y[j], x[u], both);
        }
        const double share = tau * tau / 2 * block_sum(both, s.part[1]);
        /* column k + 1, which is taken out next */
        const double w0 = fma(-share, top, tau * y[first]);
        const double next = reflects ? v[first + 1] : 0.0;
        head = fma(-top, fma(-share, next, tau * y[first + 1]), fma(-w0, next, c[first + 1]));
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            const int j = t + u * THREADS;
            if (j < first || j >= n) continue;
            const double vj = x[u], wj = fma(-share, vj, tau * y[j]);
            s.w[j] = wj;
            if (!reflects) v[j] = 0;
            x[u] = fma(-top, wj, fma(-w0, vj, c[j]));
            if (j == first && rank == 0) p.d[first] = x[u];
        }
    }
    /* what is left: two rows, and what the last step takes from them */
    __syncthreads();
    if (t == 0 && rank == (n - 1) % CLUSTER) {
        const double *const v = s.v[(n - 3) % 2];
        p.e[n - 2] = head;
        p.d[n - 1] = fma(-2 * v[n - 1], s.w[n - 1], s.a[(n - 1) / CLUSTER * n + n - 1]);
    }
    cluster.sync(); /* no block leaves while others write to it */
#endif
}

/* ---- eigenvalues ---- */

enum { VALUES = 4 /* a block */ };

/* How many eigenvalues lie below x. */
static __device__ __forceinline__ int count_below(const double *d, const double *square, int n,
                                                  double x)
{
    double before = 1, p = d[0] - x;
    int count = p < 0;
    for (int i = 1; i < n; i++) {
        if (p == 0) p = copysign(0x1p-500, before);
        const double next = fma(d[i] - x, p, -square[i - 1] * before);
        count += (next < 0) != (p < 0);
        before = p;
        p = next;
        if (i % 4 == 0) {
            const int high = __double2hiint(fmax(fabs(p), fabs(before))) >> 20 & 0x7ff;
            const double scale = __hiloint2double((2046 - (high ? high : 1)) << 20, 0);
            p *= scale;
            before *= scale;
        }
    }
    return count;
}

static __global__ void __launch_bounds__(32 * VALUES)
    values_kernel(const __grid_constant__ tridiagonal p)
{
    __shared__ double d[MOST], square[MOST];
    __shared__ double reach[32 * VALUES], low_part[32 * VALUES];
    const int n = p.n, t = (int)threadIdx.x, lane = t % 32;
    const int m = (int)blockIdx.x * VALUES + t / 32;
    double high = -INFINITY, low = INFINITY;
    for (int i = t; i < n; i += 32 * VALUES) {
        const double left = i > 0 ? fabs(p.e[i - 1]) : 0.0, right = i < n - 1 ? fabs(p.e[i]) : 0.0;
        d[i] = p.d[i];
        square[i] = i < n - 1 ? p.e[i] * p.e[i] : 0.0;
        high = fmax(high, d[i] + left + right);
        low = fmin(low, d[i] - left - right);
    }
    reach[t] = high;
    low_part[t] = low;
    __syncthreads();
    for (int i = 0; i < 32 * VALUES; i++) {
        high = fmax(high, reach[i]);
        low = fmin(low, low_part[i]);
    }
    if (m >= n) return;
    const double all = fmax(fabs(high), fabs(low)), least = 0x1p-53 * all;
    low -= least;
    high += least;
    while (high - low > 2 * least) {
        const double x = low + (high - low) * (double)(lane + 1) / 33;
        const unsigned above = __ballot_sync(~0u, count_below(d, square, n, x) > m);
        const int hit = above ? __ffs((int)above) - 1 : 32; /* the first place above */
        const double right = hit < 32 ? __shfl_sync(~0u, x, hit & 31) : high;
        const double left = hit > 0 ? __shfl_sync(~0u, x, (hit - 1) & 31) : low;
        if (!(right - left < high - low)) break;
        high = right;
        low = left;
    }
    if (lane == 0) {
        p.place[m] = (low + high) / 2;
        p.values[m] = p.place[m] * *p.scale;
    }
}

/* ---- vectors of the tridiagonal matrix ---- */

/* What a vector may miss its equation by, beside the trace: one that misses it by more is spoilt.
 */
static const double enough = 0x1p-40;

/* One over a pivot, which may be nothing. */
static __device__ __forceinline__ double inverse_of(double pivot)
{
    return 1 / (fabs(pivot) < 0x1p-200 ? copysign(0x1p-200, pivot) : pivot);
}

/* 32 vectors per block: the first warp comes from the front, the second from the back. */
static __global__ void __launch_bounds__(64) vectors_kernel(const __grid_constant__ tridiagonal p)
{
    __shared__ double d[MOST], e[MOST], least_of[2][32], length[2][32];
    __shared__ int place_of[2][32];
    const int n = p.n, lane = (int)threadIdx.x % 32, side = (int)threadIdx.x / 32;
    const int m = (int)blockIdx.x * 32 + lane;
    for (int i = (int)threadIdx.x; i < n; i += 64) {
        d[i] = p.d[i];
        e[i] = i < n - 1 ? p.e[i] : 0.0;
    }
    __syncthreads();
    const bool have = m < n;
    const double value = have ? p.place[m] : 0.0;
    double *const mine = side ? p.back : p.front;
    /* one over each pivot */
    if (have && side == 0) {
        double pivot = d[0] - value;
        for (int i = 0;; i++) {
            const double inverse = inverse_of(pivot);
            mine[i * n + m] = inverse;
            if (i == n - 1) break;
            pivot = fma(-e[i] * e[i], inverse, d[i + 1] - value);
        }
    } else if (have) {
        double pivot = d[n - 1] - value;
        for (int i = n - 1;; i--) {
            const double inverse = inverse_of(pivot);
            mine[i * n + m] = inverse;
            if (i == 0) break;
            pivot = fma(-e[i - 1] * e[i - 1], inverse, d[i - 1] - value);
        }
    }
    __syncthreads();
    /* what the equation is off by that both ends leave out */
    double least = INFINITY;
    int place = 0;
    const int half = (n + 1) / 2, from = side * half, to = side ? n : half;
#pragma unroll 4
    for (int i = from; i < to && have; i++) {
        const double f = i > 0 ? e[i - 1] * e[i - 1] * p.front[(i - 1) * n + m] : 0.0;
        const double b = i < n - 1 ? e[i] * e[i] * p.back[(i + 1) * n + m] : 0.0;
        const double miss = fabs(d[i] - value - f - b);
        if (miss < least) {
            least = miss;
            place = i;
        }
    }
    least_of[side][lane] = least;
    place_of[side][lane] = place;
    __syncthreads();
    const int other = least_of[1][lane] < least_of[0][lane];
    place = place_of[other][lane];
    double z = 1, squares = side == 0 ? 1 : 0;
    if (have && side == 0) {
        p.z[(int64_t)place * n + m] = 1;
#pragma unroll 4
        for (int i = place - 1; i >= 0; i--) {
            z *= -e[i] * p.front[i * n + m];
            p.z[(int64_t)i * n + m] = z;
            squares = fma(z, z, squares);
        }
    } else if (have) {
#pragma unroll 4
        for (int i = place + 1; i < n; i++) {
            z *= -e[i - 1] * p.back[i * n + m];
            p.z[(int64_t)i * n + m] = z;
            squares = fma(z, z, squares);
        }
    }
    length[side][lane] = squares;
    __syncthreads();
    const double inverse = rsqrt(length[0][lane] + length[1][lane]);
    const bool good = least_of[other][lane] * inverse <= enough;
    if (have && side == 0) p.length[m] = good ? inverse : NAN;
}

/* ---- the reflections of those, a vector a warp ---- */

enum { REFLECTED = 4 /* vectors per block */, STAGES = 8 };

static __global__ void __launch_bounds__(32 * REFLECTED)
    reflect_kernel(const __grid_constant__ tridiagonal p, double *vectors)
{
    __shared__ double staged[STAGES][MOST + 1]; /* reflections on their way; tau last */
    const int n = p.n, t = (int)threadIdx.x, lane = t % 32;
    const int m = (int)blockIdx.x * REFLECTED + t / 32;
    const auto bring = [&](int k) {
        double *const to = staged[k % STAGES];
        for (int i = k + 1 + t; i < n && k >= 0; i += 32 * REFLECTED)
            __pipeline_memcpy_async(to + i, p.reflection + (int64_t)k * n + i, sizeof(double));
        if (t == 0 && k >= 0) __pipeline_memcpy_async(to + MOST, p.tau + k, sizeof(double));
        __pipeline_commit();
    };
    for (int k = n - 3; k > n - 3 - (STAGES - 1); k--)
        bring(k);
    double z[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int i = c * 32 + lane;
        z[c] = i < n && m < n ? p.z[(int64_t)i * n + m] * p.length[m] : 0.0;
    }
    for (int k = n - 3; k >= 0; k--) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        bring(k - (STAGES - 1)); /* where the one before this was */
        const double *const v = staged[k % STAGES];
        double sum[4] = {}, own[CHUNKS];
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            const int i = c * 32 + lane;
            own[c] = i < n && i > k ? v[i] : 0.0;
            sum[c % 4] = fma(own[c], z[c], sum[c % 4]);
        }
        const double dot = v[MOST] * warp_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            z[c] = fma(-dot, own[c], z[c]);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int i = c * 32 + lane;
        if (i < n && m < n) vectors[(int64_t)m * n + i] = z[c];
    }
}

/* ---- all of it ---- */

int64_t gcu_svd_tridiagonal_work(int64_t n)
{
    return 4 * n * n + 5 * n + 1;
}

static cudaLaunchConfig_t cluster_of(int n, cudaLaunchAttribute *attribute, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    attribute->id = cudaLaunchAttributeClusterDimension;
    attribute->val.clusterDim.x = CLUSTER;
    attribute->val.clusterDim.y = attribute->val.clusterDim.z = 1;
    config.gridDim = dim3(CLUSTER);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = shared_bytes(n);
    config.stream = stream;
    config.attrs = attribute;
    config.numAttrs = 1;
    return config;
}

static cudaError_t allow(int n)
{
    const cudaError_t error =
        cudaFuncSetAttribute(reduce_kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(reduce_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)shared_bytes(n));
}

bool gcu_svd_tridiagonal_supported(const gcu_gpu *gpu, int64_t n)
{
    if (gpu->major != 9 || n < 3 || n > MOST || shared_bytes((int)n) > gpu->smem_bytes)
        return false;
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = cluster_of((int)n, &attribute, nullptr);
    int clusters = 0;
    return allow((int)n) == cudaSuccess &&
           cudaOccupancyMaxActiveClusters(&clusters, reduce_kernel, &config) == cudaSuccess &&
           clusters > 0;
}

cudaError_t gcu_svd_tridiagonal(const double *gram, int64_t n, double *vectors, double *values,
                                double *work, cudaStream_t stream)
{
    tridiagonal p = {};
    p.n = (int)n;
    p.gram = gram;
    p.reflection = work;
    p.front = work + n * n;
    p.back = p.front + n * n;
    p.z = p.back + n * n;
    p.tau = p.z + n * n;
    p.d = p.tau + n;
    p.e = p.d + n;
    p.place = p.e + n;
    p.length = p.place + n;
    p.scale = p.length + n;
    p.values = values;
    cudaLaunchAttribute attribute;
    const cudaLaunchConfig_t config = cluster_of((int)n, &attribute, stream);
    cudaError_t error = allow((int)n);
    if (error == cudaSuccess) error = cudaLaunchKernelEx(&config, reduce_kernel, p);
    if (error != cudaSuccess) return error;
    values_kernel<<<(unsigned)((n + VALUES - 1) / VALUES), 32 * VALUES, 0, stream>>>(p);
    vectors_kernel<<<(unsigned)((n + 31) / 32), 64, 0, stream>>>(p);
    reflect_kernel<<<(unsigned)((n + REFLECTED - 1) / REFLECTED), 32 * REFLECTED, 0, stream>>>(
        p, vectors);
    return cudaGetLastError();
}
