/* cuda/linalg/small.h: factorisations of small matrices in double precision, by one launch each. */
#ifndef GNOMON_CUDA_LINALG_SMALL_H
#define GNOMON_CUDA_LINALG_SMALL_H

#include "cuda/runtime/gpu.h"

/* ---- linalg/round.cu ---- */

enum { GCU_SVD_ROUND_MOST = 128 };
/* What a round makes of a Gram matrix G: */
enum gcu_svd_found {
    GCU_SVD_ORTHONORMAL, /* |G - I|_F is at most near_enough: the inverse is I */
    GCU_SVD_SAFE,        /* the inverse of G's Cholesky factor, which loses nothing that matters */
    GCU_SVD_SHIFTED,     /* that of G + shift I: what it leaves is better conditioned */
    GCU_SVD_DEPENDENT,   /* neither: I */
    GCU_SVD_OVERFLOW     /* G is not finite: I */
};
/* For n <= GCU_SVD_ROUND_MOST; inverse is lower triangular, column-major. *found on the GPU. */
cudaError_t gcu_svd_round(const double *gram, int64_t n, double near_enough, double *inverse,
                          int *found, cudaStream_t stream);

/* ---- linalg/jacobi.cu ---- */

enum { GCU_SVD_JACOBI_MOST = 160, GCU_SVD_JACOBI_COUNT = 16 };
/* The eigenvectors of a symmetric matrix of n <= gcu_svd_jacobi_most() rows as columns of vectors,
 * its eigenvalues, rising, in values. */
struct gcu_svd_problem {
    int n;
    double *gram, *vectors, *values;
};
/* How many rows fit the GPU's shared memory, at most GCU_SVD_JACOBI_MOST. */
int gcu_svd_jacobi_most(const gcu_gpu *gpu);
/* Of several matrices, at most GCU_SVD_JACOBI_COUNT. last: a sweep that has met no square of a
 * cosine above it is the last one; it leaves of two that are far apart the square of that. */
cudaError_t gcu_svd_jacobi(const gcu_svd_problem *problem, int count, cudaStream_t stream,
                           double last = 0);

/* ---- linalg/tridiagonal.cu ---- */

enum { GCU_SVD_TRIDIAGONAL_MOST = 624 };
/* Whether the GPU can, and has the shared memory. */
bool gcu_svd_tridiagonal_supported(const gcu_gpu *gpu, int64_t n);
/* The eigenvalues, rising, and in the columns of vectors (column-major) vectors of length 1 of a
 * symmetric matrix, which are orthogonal as far as the values lie apart; NaN in one that is none.
 * work: gcu_svd_tridiagonal_work(n) doubles. */
int64_t gcu_svd_tridiagonal_work(int64_t n);
cudaError_t gcu_svd_tridiagonal(const double *gram, int64_t n, double *vectors, double *values,
                                double *work, cudaStream_t stream);

#endif
