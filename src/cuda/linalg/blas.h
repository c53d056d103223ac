/* cuda/linalg/blas.h: cuBLAS and cuSOLVER, opened when they are first needed: a machine that has
 * the driver alone keeps all the rest of the plugin. Double precision only; matrices are
 * column-major, as those libraries have them. */
#ifndef GNOMON_CUDA_BLAS_H
#define GNOMON_CUDA_BLAS_H

#include "cuda/runtime/state.h"

#include <cublas_v2.h>
#include <cusolverDn.h>

/* The functions, and a state's handles. */
struct gcu_blas {
    cublasHandle_t cublas;
    cusolverDnHandle_t cusolver;
    cusolverDnParams_t params;
    gesvdjInfo_t jacobi;
    void *page; /* page-locked, GCU_PAGE_BYTES: what the host waits to read */
};

enum { GCU_PAGE_BYTES = 4096 };

/* The state's handles, made at the first call, working on 'stream'. Fails with DEVICE when a
 * library is missing, naming it. */
gnomon_status gcu_blas_open(gcu_state *s, cudaStream_t stream, gcu_blas **out, gcu_why why);
void gcu_blas_close(gcu_state *s);
/* NULL when both are there, else why not; static storage. */
const char *gcu_blas_missing(void);

/* C (m x n) = alpha op(A) op(B) + beta C. */
gnomon_status gcu_gemm64(gcu_blas *b, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                         double alpha, const double *a, int64_t lda, const double *x, int64_t ldx,
                         double beta, double *c, int64_t ldc, gcu_why why);
/* The same for 'count' triples of matrices that lie so many elements apart. */
gnomon_status gcu_gemm64_batched(gcu_blas *b, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                 const double *a, int64_t lda, int64_t a_apart, const double *x,
                                 int64_t ldx, int64_t x_apart, double *c, int64_t ldc,
                                 int64_t c_apart, int count, gcu_why why);
/* X (n x cols) = L^-1 X, L the lower triangle of an n x n matrix. */
gnomon_status gcu_solve_lower(gcu_blas *b, int64_t n, int64_t cols, const double *l, int64_t ldl,
                              double *x, int64_t ldx, gcu_why why);

/* A's lower triangle = L with A = L L^T; *info (device memory) is 0 when A is positive definite.
 * work: gcu_cholesky_work(n) doubles. */
gnomon_status gcu_cholesky_work(gcu_blas *b, int64_t n, int64_t *work, gcu_why why);
gnomon_status gcu_cholesky(gcu_blas *b, int64_t n, double *a, double *work, int64_t work_count,
                           int *info, gcu_why why);

/* Eigenvalues, rising, and in a's columns the vectors of a symmetric matrix whose lower triangle a
 * holds. */
gnomon_status gcu_eigen_work(gcu_blas *b, int64_t n, size_t *device, size_t *host, gcu_why why);
gnomon_status gcu_eigen(gcu_blas *b, int64_t n, double *a, double *values, void *device,
                        size_t device_bytes, void *host, size_t host_bytes, int *info, gcu_why why);

/* A (m x n, m >= n) = Q R by reflections: gcu_reflect leaves R in the upper triangle and the
 * reflections below, gcu_reflect_out turns them into Q. */
gnomon_status gcu_reflect_work(gcu_blas *b, int64_t m, int64_t n, int64_t *work, gcu_why why);
gnomon_status gcu_reflect(gcu_blas *b, int64_t m, int64_t n, double *a, double *tau, double *work,
                          int64_t work_count, int *info, gcu_why why);
gnomon_status gcu_reflect_out(gcu_blas *b, int64_t m, int64_t n, double *a, double *tau,
                              double *work, int64_t work_count, int *info, gcu_why why);

/* A (n x n) = left diag(values) right^T by rotations, values falling; a is overwritten. */
gnomon_status gcu_singular_work(gcu_blas *b, int64_t n, int64_t *work, gcu_why why);
gnomon_status gcu_singular(gcu_blas *b, int64_t n, double *a, double *values, double *left,
                           double *right, double *work, int64_t work_count, int *info, gcu_why why);

#endif
