/* linalg/blas.h: OpenBLAS, opened when it is first needed.
 *
 * The library is opened at run time and not linked: it starts threads of its own as soon as it is
 * loaded, which work that never factors anything should not pay for, and a machine without it
 * keeps all the rest. Matrices are row-major, as the library's points are.
 *
 * Every call runs on the calling thread (gnomon_blas_enter), unless another library of the process
 * sets the number of threads in the middle of it. Work is cut into blocks whose
 * shape depends on the problem alone, so that results do not depend on the number of threads. */
#ifndef GNOMON_SVD_BLAS_H
#define GNOMON_SVD_BLAS_H

#include <gnomon/base.h>

#include <stdbool.h>

/* Opens the library. NULL when it is there, else why not; static storage. NULL too where memory has
 * no room for it, which is no lack of the machine's: gnomon_blas_prepare tells. */
const char *gnomon_blas_missing(void);

/* What the library says of itself and its name, one line; "" when it is missing or not opened. */
const char *gnomon_blas_about(void);

/* Before gnomon_blas_enter: the library is there, and has a buffer for each of the context's
 * threads. Errors: UNSUPPORTED, MEMORY. */
gnomon_status gnomon_blas_prepare(gnomon_context *ctx);

/* Between these two the library keeps to one thread a call. They count, over all contexts of the
 * process; the last one restores what was set. */
void gnomon_blas_enter(void);
void gnomon_blas_leave(void);

/* Sizes and leading dimensions of a call are at most this. */
#define GNOMON_BLAS_MAX INT64_C(0x7fffffff)

/* C (m x n) = alpha * op(A) op(B) + beta * C; double when f64, else float. */
void gnomon_blas_gemm(bool f64, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                      double alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                      double beta, void *c, int64_t ldc);

/* The upper triangle of C (n x n, its rows ldc apart) += A^T A, A: rows x n. */
void gnomon_blas_gram(int64_t n, int64_t rows, const double *a, int64_t lda, double *c,
                      int64_t ldc);

/* A = R^T R in place of A's upper triangle (n x n); false when A is not positive definite. */
bool gnomon_blas_cholesky(int64_t n, double *a);

/* B (m x n) = B R^-1, R upper triangular. */
void gnomon_blas_divide(bool f64, int64_t m, int64_t n, const void *r, void *b, int64_t ldb);

/* B (m x n, its rows ldb apart) = R^-1 B, R upper triangular, its rows ldr apart. */
void gnomon_blas_solve(int64_t m, int64_t n, const double *r, int64_t ldr, double *b, int64_t ldb);

/* B (m x n) = B R, R upper triangular. */
void gnomon_blas_triangle(bool f64, int64_t m, int64_t n, const void *r, void *b, int64_t ldb);

/* B (rows x n) = B R^-T, R upper triangular, n x n: each row b becomes R^-1 b. */
void gnomon_blas_divide_rows(int64_t n, int64_t rows, const double *r, double *b);

/* Numbers of workspace that a factorisation of m x n takes. */
int64_t gnomon_blas_qr_work(bool f64, int64_t m, int64_t n);
/* A (m x n, m >= n) = Q R by Householder reflections: Q in place of A, R's upper triangle (n x n,
 * zeros below) into r. work: gnomon_blas_qr_work, tau: n numbers. */
bool gnomon_blas_qr(bool f64, int64_t m, int64_t n, void *a, void *r, void *tau, void *work,
                    int64_t work_count);

/* Numbers of workspace for gnomon_blas_svd. */
int64_t gnomon_blas_svd_work(int64_t n);
/* A (n x n, overwritten) = U diag(s) Vt. index: 8 n ints. By divide and conquer, or by QR steps
 * when that does not converge; false when that does not either. */
bool gnomon_blas_svd(int64_t n, double *a, const double *copy, double *s, double *u, double *vt,
                     double *work, int64_t work_count, int *index);

/* Numbers and ints of workspace for gnomon_blas_eigen. */
void gnomon_blas_eigen_work(int64_t n, int64_t *work_count, int64_t *index_count);
/* The symmetric A (n x n, its upper triangle): eigenvalues into values, rising, and A's row i the
 * vector of values[i]. false when it does not converge. */
bool gnomon_blas_eigen(int64_t n, double *a, double *values, double *work, int64_t work_count,
                       int *index, int64_t index_count);
/* The values alone; A is destroyed, the workspace the same. */
bool gnomon_blas_eigenvalues(int64_t n, double *a, double *values, double *work, int64_t work_count,
                             int *index, int64_t index_count);

#endif
