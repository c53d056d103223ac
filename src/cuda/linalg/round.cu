/* Rounds of Cholesky QR that decide on the GPU: from a Gram matrix to the inverse of its Cholesky
 * factor, or to the identity where the columns are orthonormal already. A library's factorisation
 * takes several launches, and the host would wait for each to decide.
 *
 * One block of threads, 4 x 4 numbers of the lower triangle per thread, in registers. Step k makes
 * row k of the inverse final and takes its part out of all rows below, of what is left of the Gram
 * matrix and of the inverse alike, which share the triangle: what both need of step k is one line,
 * the inverse's row k up to the diagonal and the matrix's column k below it. */
#include "cuda/linalg/small.h"

#include <math.h>

enum {
    MOST = GCU_SVD_ROUND_MOST,
    SIDE = 4,
    TILES = MOST / SIDE,
    THREADS = TILES * (TILES + 1) / 2
};

struct round_line {
    double at[MOST]; /* at k: 1 */
    double pivot;    /* one over its root */
    double square;   /* the pivot itself */
};

/* Which of the triangle's tiles: row by row. */
static __device__ __forceinline__ int2 tile_of(int thread)
{
    int row = (int)((sqrtf(8.0f * (float)thread + 1.0f) - 1.0f) / 2);
    row += (row + 1) * (row + 2) / 2 <= thread;
    row -= row * (row + 1) / 2 > thread;
    return make_int2(row, thread - row * (row + 1) / 2);
}

/* The line that step k needs, of the tiles that hold it. */
static __device__ __forceinline__ void put_line(const double (*x)[SIDE], int row, int col, int k,
                                                int n, round_line *line)
{
    if (k >= n) return;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = row + i, c = col + j;
            if (r == k && c == k) {
                line->square = x[i][j];
                line->pivot = rsqrt(x[i][j]);
                line->at[k] = 1;
            } else if (r == k && c < k) {
                line->at[c] = x[i][j];
            } else if (c == k && r > k) {
                line->at[r] = x[i][j];
            }
        }
}

/* x = the inverse of the Cholesky factor of gram + shift; false when there is none. least and most:
 * of the factor's diagonal. */
static __device__ bool invert(const double *gram, int n, double shift, double (*x)[SIDE],
                              round_line *line, double *least, double *most)
{
    const int2 tile = tile_of((int)threadIdx.x);
    const int row = tile.x * SIDE, col = tile.y * SIDE;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = row + i, c = col + j;
            x[i][j] = r < n && c <= r ? gram[r * n + c] + (r == c ? shift : 0.0) : 0.0;
        }
    *least = INFINITY;
    *most = 0;
    __syncthreads();
    put_line(x, row, col, 0, n, line);
    for (int k = 0; k < n; k++) {
        __syncthreads();
        const round_line *const now = line + k % 2;
        const double pivot = now->pivot, square = now->square;
        if (!(square > 0) || !isfinite(pivot)) return false;
        *least = fmin(*least, square);
        *most = fmax(*most, square);
        if (row + SIDE > k && row < n) {
            double v[SIDE], u[SIDE];
#pragma unroll
            for (int j = 0; j < SIDE; j++)
                v[j] = now->at[col + j] * pivot;
#pragma unroll
            for (int i = 0; i < SIDE; i++)
                u[i] = now->at[row + i] * pivot;
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++) {
                    const int r = row + i, c = col + j;
                    if (r > k)
                        x[i][j] = fma(-u[i], v[j], c == k ? 0.0 : x[i][j]);
                    else if (r == k)
                        x[i][j] = c <= k ? v[j] : 0.0;
                }
        }
        put_line(x, row, col, k + 1, n, line + (k + 1) % 2);
    }
    *least = sqrt(*least);
    *most = sqrt(*most);
    return true;
}

/* |G - I|_F^2 and the trace, by the first 512 threads in a fixed order. */
static __device__ double2 figures(const double *gram, int n)
{
    enum { ADDERS = 512 };
    __shared__ double2 part[ADDERS];
    const int t = (int)threadIdx.x;
    double off = 0, trace = 0;
    if (t < ADDERS) {
        for (int e = t; e < n * n; e += ADDERS) {
            const bool diagonal = e % (n + 1) == 0;
            const double x = gram[e], d = x - (diagonal ? 1.0 : 0.0);
            off = fma(d, d, off);
            if (diagonal) trace += x;
        }
        part[t] = make_double2(off, trace);
    }
    for (int half = ADDERS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) {
            part[t].x += part[t + half].x;
            part[t].y += part[t + half].y;
        }
    }
    __syncthreads();
    return part[0];
}

static __global__ void __launch_bounds__(THREADS)
    round_kernel(const double *gram, int n, double near_enough, double *inverse, int *out)
{
    __shared__ round_line line[2];
    double x[SIDE][SIDE], least, most;
    const int2 tile = tile_of((int)threadIdx.x);
    const double2 seen = figures(gram, n);
    for (int i = (int)threadIdx.x; i < 2 * MOST; i += THREADS)
        line[i / MOST].at[i % MOST] = 0;
    int found = GCU_SVD_SHIFTED;
    if (!isfinite(seen.y))
        found = GCU_SVD_OVERFLOW;
    else if (seen.x <= near_enough * near_enough)
        found = GCU_SVD_ORTHONORMAL;
    else if (invert(gram, n, 0.0, x, line, &least, &most) && least > 0x1p-20 * most &&
             least > 1e-150)
        found = GCU_SVD_SAFE;
    else if (!(seen.y > 1e-290) ||
             !invert(gram, n, 8 * (double)n * 0x1p-53 * seen.y, x, line, &least, &most))
        found = GCU_SVD_DEPENDENT;
    const bool divides = found == GCU_SVD_SAFE || found == GCU_SVD_SHIFTED;
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            const int r = tile.x * SIDE + i, c = tile.y * SIDE + j;
            if (r >= n || c > r) continue;
            const double value = divides ? x[i][j] : r == c ? 1.0 : 0.0;
            /* column-major; nothing above the diagonal */
            inverse[c * n + r] = value;
            if (r != c) inverse[r * n + c] = 0;
        }
    if (threadIdx.x == 0) *out = found;
}

cudaError_t gcu_svd_round(const double *gram, int64_t n, double near_enough, double *inverse,
                          int *found, cudaStream_t stream)
{
    round_kernel<<<1, THREADS, 0, stream>>>(gram, (int)n, near_enough, inverse, found);
    return cudaGetLastError();
}
