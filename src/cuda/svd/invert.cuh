/* cuda/svd/invert.cuh: from a Gram matrix to the inverse of its Cholesky factor, by one block of
 * threads.
 *
 * A thread has 4 x 4 numbers of the lower triangle in registers, four columns are done at a time:
 * what is left of the Gram matrix and what there is of the inverse share the triangle. A pivot that
 * rounding could have made up is replaced by what rounding leaves: its column is then too short
 * after the division by the factor. */
#ifndef GNOMON_CUDA_SVD_INVERT_CUH
#define GNOMON_CUDA_SVD_INVERT_CUH

#include "cuda/linalg/tile.cuh"
#include "cuda/svd/condition.h"

#include <math.h>

enum {
    INVERT_SIDE = 4,
    INVERT_TILES = GCU_SVD_CONDITION_MOST / INVERT_SIDE,
    INVERT_MOST = (INVERT_TILES * (INVERT_TILES + 1) / 2 + 31) / 32 * 32, /* threads */
    INVERT_FEW = 544 /* for 128 columns: all that they need fits their registers */
};

/* Threads for n columns. */
static inline int64_t invert_threads(int64_t n)
{
    const int64_t tiles = (n + INVERT_SIDE - 1) / INVERT_SIDE;
    return (tiles * (tiles + 1) / 2 + 31) / 32 * 32;
}

/* Lower triangle of 4 x 4: a becomes the inverse of its Cholesky factor. Bits of the pivots that
 * were replaced. apart: see invert_gram. */
static __device__ __forceinline__ int invert_tile(double (*a)[INVERT_SIDE], double least,
                                                  bool apart)
{
    double scale[INVERT_SIDE];
    int replaced = 0;
#pragma unroll
    for (int k = 0; k < INVERT_SIDE; k++) {
        double pivot = a[k][k];
        if (!(pivot > least)) {
            pivot = least;
            replaced |= 1 << k;
        }
        scale[k] = rsqrt(pivot);
#pragma unroll
        for (int i = k + 1; i < INVERT_SIDE; i++)
            a[i][k] = apart && (replaced >> k & 1) ? 0.0 : a[i][k] * scale[k];
#pragma unroll
        for (int j = k + 1; j < INVERT_SIDE; j++)
#pragma unroll
            for (int i = j; i < INVERT_SIDE; i++)
                a[i][j] = fma(-a[i][k], a[j][k], a[i][j]);
    }
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++) {
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
        for (int j = i + 1; j < INVERT_SIDE; j++)
            a[i][j] = 0;
    }
    return replaced;
}

/* x = a b or, transposed, a b^T; from tiles in shared memory and registers. */
static __device__ __forceinline__ void times(const double (*a)[INVERT_SIDE],
                                             const double (*b)[INVERT_SIDE], bool transposed,
                                             double factor, double (*x)[INVERT_SIDE])
{
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
        for (int j = 0; j < INVERT_SIDE; j++) {
            double sum = 0;
#pragma unroll
            for (int k = 0; k < INVERT_SIDE; k++)
                sum = fma(a[i][k], transposed ? b[j][k] : b[k][j], sum);
            x[i][j] = factor * sum;
        }
}

struct invert_shared {
    double corner[INVERT_SIDE][INVERT_SIDE];              /* the inverse's tile on the diagonal */
    double left[GCU_SVD_CONDITION_MOST][INVERT_SIDE];     /* the factor's columns */
    double above[INVERT_TILES][INVERT_SIDE][INVERT_SIDE]; /* the inverse's rows */
    double off[INVERT_MOST / 32], trace[INVERT_MOST / 32];
    int replaced, now; /* pivots of the tile at work */
};

/* x, a tile of the lower triangle, becomes that of the inverse. */
static __device__ void invert(double (*x)[INVERT_SIDE], int2 tile, int tiles, double least,
                              bool apart, invert_shared *s)
{
    const bool there = tile.x < tiles;
    for (int k = 0; k < tiles; k++) {
        if (there && tile.x == k && tile.y == k) {
            s->now = invert_tile(x, least, apart);
            s->replaced |= s->now;
#pragma unroll
            for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
                for (int j = 0; j < INVERT_SIDE; j++)
                    s->corner[i][j] = x[i][j];
        }
        __syncthreads();
        if (there && tile.x == k && tile.y < k) {
            double y[INVERT_SIDE][INVERT_SIDE];
            times(s->corner, x, false, 1.0, y);
#pragma unroll
            for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
                for (int j = 0; j < INVERT_SIDE; j++)
                    s->above[tile.y][i][j] = x[i][j] = y[i][j];
        } else if (there && tile.y == k && tile.x > k) {
            double y[INVERT_SIDE][INVERT_SIDE];
            times(x, s->corner, true, 1.0, y);
#pragma unroll
            for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
                for (int j = 0; j < INVERT_SIDE; j++) {
                    if (apart && (s->now >> j & 1)) y[i][j] = 0;
                    s->left[tile.x * INVERT_SIDE + i][j] = y[i][j];
                }
            times(y, s->corner, false, -1.0, x);
        }
        __syncthreads();
        if (there && tile.x > k && tile.y != k) {
            const double(*left)[INVERT_SIDE] = s->left + tile.x * INVERT_SIDE;
            const double(*other)[INVERT_SIDE] = s->left + tile.y * INVERT_SIDE;
            const double(*above)[INVERT_SIDE] = s->above[tile.y < k ? tile.y : 0];
#pragma unroll
            for (int step = 0; step < INVERT_SIDE; step++) {
                double u[INVERT_SIDE], v[INVERT_SIDE];
#pragma unroll
                for (int i = 0; i < INVERT_SIDE; i++) {
                    u[i] = left[i][step];
                    v[i] = tile.y < k ? above[step][i] : other[i][step];
                }
#pragma unroll
                for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
                    for (int j = 0; j < INVERT_SIDE; j++)
                        x[i][j] = fma(-u[i], v[j], x[i][j]);
            }
        }
    }
}

/* |G - I|_F^2 and the trace of what all threads hold of the lower triangle, in a fixed order. */
static __device__ __forceinline__ double2 figures(const double (*x)[INVERT_SIDE], int2 tile, int n,
                                                  invert_shared *s)
{
    double off = 0, trace = 0;
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
        for (int j = 0; j < INVERT_SIDE; j++) {
            const int r = tile.x * INVERT_SIDE + i, c = tile.y * INVERT_SIDE + j;
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

/* x, this thread's tile of the lower triangle of a Gram matrix G of n columns and of the identity
 * beyond it, becomes that of the inverse of G's Cholesky factor, when the answer is SAFE or
 * SHIFTED; without 'divides' that is not asked for. near_enough: what |G - I|_F ORTHONORMAL is.
 * least: the least pivot, of G's trace. apart: no later column is freed of one whose pivot was
 * replaced; what rounding has left of such a one would be taken for large. */
static __device__ __forceinline__ int invert_gram(double (*x)[INVERT_SIDE], int2 tile, int n,
                                                  double near_enough, bool divides, double least,
                                                  bool apart, invert_shared *s)
{
    if (threadIdx.x == 0) s->replaced = 0;
    const double2 seen = figures(x, tile, n, s);
    if (!isfinite(seen.y)) return GCU_SVD_OVERFLOW;
    if (seen.x <= near_enough * near_enough) return GCU_SVD_ORTHONORMAL;
    if (!(seen.y > 1e-290)) return GCU_SVD_DEPENDENT;
    if (!divides) return GCU_SVD_SAFE;
    invert(x, tile, (n + INVERT_SIDE - 1) / INVERT_SIDE, least * seen.y, apart, s);
    __syncthreads();
    return s->replaced ? GCU_SVD_SHIFTED : GCU_SVD_SAFE;
}

/* inverse (n x n, column-major; nothing above the diagonal is written) = x, or the identity. */
static __device__ __forceinline__ void invert_put(const double (*x)[INVERT_SIDE], int2 tile, int n,
                                                  int found, double *inverse)
{
    const bool inverts = found == GCU_SVD_SAFE || found == GCU_SVD_SHIFTED;
#pragma unroll
    for (int i = 0; i < INVERT_SIDE; i++)
#pragma unroll
        for (int j = 0; j < INVERT_SIDE; j++) {
            const int r = tile.x * INVERT_SIDE + i, c = tile.y * INVERT_SIDE + j;
            if (r >= n || c > r) continue;
            inverse[c * n + r] = inverts ? x[i][j] : r == c ? 1.0 : 0.0;
        }
}

#endif
