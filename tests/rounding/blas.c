/* OpenBLAS with other rounding: every result of the library's is moved at random, by as much as the
 * error bounds of such a routine allow any implementation. What holds with this holds with other
 * kernels, of this processor or another, and with another BLAS.
 *
 * A number is moved by its own bits, so that the same call gives the same result on any thread.
 * ROUNDING_SEED is the seed; 0 moves nothing. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
/* Of a sum of 'count' terms, relative to the sum of their magnitudes: what a plain loop loses when
 * its partial sums are as large as they can be. */
static double loss(int f64, int64_t count)
{
    return (f64 ? 0x1p-53 : 0x1p-24) * (1 + sqrt((double)count));
}

#define EXPORT __attribute__((visibility("default")))

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static void *library;
static uint64_t seed;

static void open_library(void)
{
    const char *text = getenv("ROUNDING_SEED");
    seed = text != NULL ? strtoull(text, NULL, 10) : 0;
    library = dlopen(OPENBLAS, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) abort();
}

/* The routine of the same name. */
static void find(void *target, const char *name)
{
    pthread_once(&opened, open_library);
    void *symbol = dlsym(library, name);
    if (symbol == NULL) abort();
    memcpy(target, &symbol, sizeof symbol);
}

#define REAL(type, name) \
    type real;           \
    find(&real, #name)

/* In [-1, 1], of a number's digits and place. Its exponent has no part in it: powers of two scale
 * through a BLAS without a trace. */
static double chance(double x, int64_t place)
{
    int exponent;
    uint64_t z;
    x = frexp(x, &exponent);
    memcpy(&z, &x, sizeof z);
    z += (seed + (uint64_t)place * 31) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return seed == 0 ? 0 : (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

static double get(int f64, const void *data, int64_t at)
{
    return f64 ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

/* Moves one number by up to 'by'. */
static void move(int f64, void *data, int64_t at, double by)
{
    const double x = get(f64, data, at), y = x + by * chance(x, at);
    if (f64)
        ((double *)data)[at] = y;
    else
        ((float *)data)[at] = (float)y;
}

/* A's magnitudes. */
static double *magnitudes(int f64, const void *a, int64_t rows, int64_t cols, int64_t ld)
{
    double *out = malloc((size_t)(rows * cols > 0 ? rows * cols : 1) * sizeof *out);
    if (out == NULL) abort();
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            out[i * cols + j] = fabs(get(f64, a, i * ld + j));
    }
    return out;
}

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *,
                         int, float, float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *,
                         int, double, double *, int);

/* |op(A)| |op(B)|, m x n. */
static double *most(int f64, int ta, int tb, int m, int n, int k, const void *a, int lda,
                    const void *b, int ldb)
{
    const int ac = ta == TRANSPOSE ? m : k, bc = tb == TRANSPOSE ? k : n;
    double *p = magnitudes(f64, a, ta == TRANSPOSE ? k : m, ac, lda);
    double *q = magnitudes(f64, b, tb == TRANSPOSE ? n : k, bc, ldb);
    double *out = malloc(((size_t)m * (size_t)n + 1) * sizeof *out);
    if (out == NULL) abort();
    REAL(dgemm_fn, cblas_dgemm);
    real(ROW_MAJOR, ta, tb, m, n, k, 1, p, ac > 0 ? ac : 1, q, bc > 0 ? bc : 1, 0, out, n);
    free(p);
    free(q);
    return out;
}

static void move_product(int f64, int ta, int tb, int m, int n, int k, double alpha, const void *a,
                         int lda, const void *b, int ldb, void *c, int ldc)
{
    double *by = most(f64, ta, tb, m, n, k, a, lda, b, ldb);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            const int64_t at = (int64_t)i * ldc + j;
            move(f64, c, at,
                 loss(f64, k) * fabs(alpha) * by[(int64_t)i * n + j] +
                     loss(f64, 0) * fabs(get(f64, c, at)));
        }
    }
    free(by);
}

/* A triangular system solved for with another triangle, number by number close to the given one. */
static void move_each(int f64, int m, int n, void *b, int ldb)
{
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++)
            move(f64, b, i * ldb + j, loss(f64, n) * fabs(get(f64, b, i * ldb + j)));
    }
}

/* Orthonormal vectors: each number by a share of its vector's length, 1. */
static void move_orthonormal(int64_t n, double *q, int64_t ld)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++)
            move(1, q, j * ld + i, loss(1, n) / sqrt((double)n));
    }
}

/* Values of a factorisation by the largest; they stay in order, and above 0 when they fall. */
static void move_values(int64_t n, double *values, int rising)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(values[i]));
    for (int64_t i = 0; i < n; i++) {
        move(1, values, i, loss(1, n) * largest);
        if (!rising) values[i] = fabs(values[i]);
        if (i > 0)
            values[i] = rising ? fmax(values[i], values[i - 1]) : fmin(values[i], values[i - 1]);
    }
}

EXPORT void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                        int lda, const float *b, int ldb, float beta, float *c, int ldc);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    REAL(sgemm_fn, cblas_sgemm);
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    move_product(0, ta, tb, m, n, k, (double)alpha, a, lda, b, ldb, c, ldc);
}

EXPORT void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha,
                        const double *a, int lda, const double *b, int ldb, double beta, double *c,
                        int ldc);
void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    REAL(dgemm_fn, cblas_dgemm);
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    move_product(1, ta, tb, m, n, k, alpha, a, lda, b, ldb, c, ldc);
}

typedef void (*dsyrk_fn)(int, int, int, int, int, double, const double *, int, double, double *,
                         int);
EXPORT void cblas_dsyrk(int order, int uplo, int trans, int n, int k, double alpha, const double *a,
                        int lda, double beta, double *c, int ldc);
void cblas_dsyrk(int order, int uplo, int trans, int n, int k, double alpha, const double *a,
                 int lda, double beta, double *c, int ldc)
{
    REAL(dsyrk_fn, cblas_dsyrk);
    real(order, uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
    double *by =
        most(1, trans, trans == TRANSPOSE ? NO_TRANSPOSE : TRANSPOSE, n, n, k, a, lda, a, lda);
    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++) /* the upper triangle is all that is asked for */
            move(1, c, (int64_t)i * ldc + j, loss(1, k) * by[(int64_t)i * n + j]);
    }
    free(by);
}

typedef void (*strsm_fn)(int, int, int, int, int, int, int, float, const float *, int, float *,
                         int);
EXPORT void cblas_strsm(int order, int side, int uplo, int ta, int diag, int m, int n, float alpha,
                        const float *a, int lda, float *b, int ldb);
void cblas_strsm(int order, int side, int uplo, int ta, int diag, int m, int n, float alpha,
                 const float *a, int lda, float *b, int ldb)
{
    REAL(strsm_fn, cblas_strsm);
    real(order, side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb);
    move_each(0, m, n, b, ldb);
}

typedef void (*dtrsm_fn)(int, int, int, int, int, int, int, double, const double *, int, double *,
                         int);
EXPORT void cblas_dtrsm(int order, int side, int uplo, int ta, int diag, int m, int n, double alpha,
                        const double *a, int lda, double *b, int ldb);
void cblas_dtrsm(int order, int side, int uplo, int ta, int diag, int m, int n, double alpha,
                 const double *a, int lda, double *b, int ldb)
{
    REAL(dtrsm_fn, cblas_dtrsm);
    real(order, side, uplo, ta, diag, m, n, alpha, a, lda, b, ldb);
    move_each(1, m, n, b, ldb);
}

typedef void (*dpotrf_fn)(const char *, const int *, double *, const int *, int *, size_t);
EXPORT void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info,
                    size_t length);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t length)
{
    REAL(dpotrf_fn, dpotrf_);
    real(uplo, n, a, lda, info, length);
    if (*info == 0) move_each(1, *n, *n, a, *lda);
}

/* L's rows are R's columns: each by its length. */
static void move_triangle(int f64, const int *m, const int *lwork, const int *info, void *a,
                          const int *lda)
{
    if (*lwork == -1 || *info != 0) return;
    for (int64_t i = 0; i < *m; i++) {
        double sum = 0;
        for (int64_t j = 0; j <= i; j++)
            sum = hypot(sum, get(f64, a, j * *lda + i));
        for (int64_t j = 0; j <= i; j++)
            move(f64, a, j * *lda + i, loss(f64, *m) * sum);
    }
}

typedef void (*gelqf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);
EXPORT void sgelqf_(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                    const int *lwork, int *info);
void sgelqf_(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
             const int *lwork, int *info)
{
    REAL(gelqf_fn, sgelqf_);
    real(m, n, a, lda, tau, work, lwork, info);
    move_triangle(0, m, lwork, info, a, lda);
}

EXPORT void dgelqf_(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                    const int *lwork, int *info);
void dgelqf_(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
             const int *lwork, int *info)
{
    REAL(gelqf_fn, dgelqf_);
    real(m, n, a, lda, tau, work, lwork, info);
    move_triangle(1, m, lwork, info, a, lda);
}

typedef void (*orglq_fn)(const int *, const int *, const int *, void *, const int *, const void *,
                         void *, const int *, int *);
EXPORT void sorglq_(const int *m, const int *n, const int *k, void *a, const int *lda,
                    const void *tau, void *work, const int *lwork, int *info);
void sorglq_(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau,
             void *work, const int *lwork, int *info)
{
    REAL(orglq_fn, sorglq_);
    real(m, n, k, a, lda, tau, work, lwork, info);
    if (*lwork != -1 && *info == 0) move_each(0, *n, *m, a, *lda);
}

EXPORT void dorglq_(const int *m, const int *n, const int *k, void *a, const int *lda,
                    const void *tau, void *work, const int *lwork, int *info);
void dorglq_(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau,
             void *work, const int *lwork, int *info)
{
    REAL(orglq_fn, dorglq_);
    real(m, n, k, a, lda, tau, work, lwork, info);
    if (*lwork != -1 && *info == 0) move_each(1, *n, *m, a, *lda);
}

typedef void (*dgesdd_fn)(const char *, const int *, const int *, double *, const int *, double *,
                          double *, const int *, double *, const int *, double *, const int *,
                          int *, int *, size_t);
EXPORT void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda,
                    double *s, double *u, const int *ldu, double *vt, const int *ldvt, double *work,
                    const int *lwork, int *iwork, int *info, size_t length);
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *lwork,
             int *iwork, int *info, size_t length)
{
    REAL(dgesdd_fn, dgesdd_);
    real(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info, length);
    if (*lwork == -1 || *info != 0) return;
    move_values(*m < *n ? *m : *n, s, 0);
    move_orthonormal(*m, u, *ldu);
    move_orthonormal(*n, vt, *ldvt);
}

typedef void (*dgesvd_fn)(const char *, const char *, const int *, const int *, double *,
                          const int *, double *, double *, const int *, double *, const int *,
                          double *, const int *, int *, size_t, size_t);
EXPORT void dgesvd_(const char *ju, const char *jv, const int *m, const int *n, double *a,
                    const int *lda, double *s, double *u, const int *ldu, double *vt,
                    const int *ldvt, double *work, const int *lwork, int *info, size_t lu,
                    size_t lv);
void dgesvd_(const char *ju, const char *jv, const int *m, const int *n, double *a, const int *lda,
             double *s, double *u, const int *ldu, double *vt, const int *ldvt, double *work,
             const int *lwork, int *info, size_t lu, size_t lv)
{
    REAL(dgesvd_fn, dgesvd_);
    real(ju, jv, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, info, lu, lv);
}

typedef void (*dsyevd_fn)(const char *, const char *, const int *, double *, const int *, double *,
                          double *, const int *, int *, const int *, int *, size_t, size_t);
EXPORT void dsyevd_(const char *job, const char *uplo, const int *n, double *a, const int *lda,
                    double *w, double *work, const int *lwork, int *iwork, const int *liwork,
                    int *info, size_t lj, size_t lu);
void dsyevd_(const char *job, const char *uplo, const int *n, double *a, const int *lda, double *w,
             double *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t lj,
             size_t lu)
{
    REAL(dsyevd_fn, dsyevd_);
    real(job, uplo, n, a, lda, w, work, lwork, iwork, liwork, info, lj, lu);
    if (*lwork == -1 || *info != 0) return;
    move_values(*n, w, 1);
    move_orthonormal(*n, a, *lda);
}

/* What the tests compare with stays as it is. */
typedef void (*dgelsd_fn)(const int *, const int *, const int *, double *, const int *, double *,
                          const int *, double *, const double *, int *, double *, const int *,
                          int *, int *);
EXPORT void dgelsd_(const int *m, const int *n, const int *nrhs, double *a, const int *lda,
                    double *b, const int *ldb, double *s, const double *rcond, int *rank,
                    double *work, const int *lwork, int *iwork, int *info);
void dgelsd_(const int *m, const int *n, const int *nrhs, double *a, const int *lda, double *b,
             const int *ldb, double *s, const double *rcond, int *rank, double *work,
             const int *lwork, int *iwork, int *info)
{
    REAL(dgelsd_fn, dgelsd_);
    real(m, n, nrhs, a, lda, b, ldb, s, rcond, rank, work, lwork, iwork, info);
}

typedef int (*get_threads_fn)(void);
EXPORT int openblas_get_num_threads(void);
int openblas_get_num_threads(void)
{
    REAL(get_threads_fn, openblas_get_num_threads);
    return real();
}

typedef void (*set_threads_fn)(int);
EXPORT void openblas_set_num_threads(int count);
void openblas_set_num_threads(int count)
{
    REAL(set_threads_fn, openblas_set_num_threads);
    real(count);
}
