#include "svd/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* CBLAS's numbers, and the Fortran interface of LAPACK: everything by address, the lengths of
 * strings at the end. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112, UPPER = 121, NON_UNIT = 131 };
enum { RIGHT = 142 };

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *,
                         int, float, float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *,
                         int, double, double *, int);
typedef void (*dsyrk_fn)(int, int, int, int, int, double, const double *, int, double, double *,
                         int);
typedef void (*strsm_fn)(int, int, int, int, int, int, int, float, const float *, int, float *,
                         int);
typedef void (*dtrsm_fn)(int, int, int, int, int, int, int, double, const double *, int, double *,
                         int);
typedef void (*dpotrf_fn)(const char *, const int *, double *, const int *, int *, size_t);
typedef void (*gelqf_fn)(const int *, const int *, void *, const int *, void *, void *, const int *,
                         int *);
typedef void (*orglq_fn)(const int *, const int *, const int *, void *, const int *, const void *,
                         void *, const int *, int *);
typedef void (*dgesdd_fn)(const char *, const int *, const int *, double *, const int *, double *,
                          double *, const int *, double *, const int *, double *, const int *,
                          int *, int *, size_t);
typedef void (*dgesvd_fn)(const char *, const char *, const int *, const int *, double *,
                          const int *, double *, double *, const int *, double *, const int *,
                          double *, const int *, int *, size_t, size_t);
typedef void (*dsyevd_fn)(const char *, const char *, const int *, double *, const int *, double *,
                          double *, const int *, int *, const int *, int *, size_t, size_t);
typedef int (*get_threads_fn)(void);
typedef void (*set_threads_fn)(int);

static struct {
    void *library;
    char missing[320]; /* "" when all is there */
    sgemm_fn sgemm;
    dgemm_fn dgemm;
    dsyrk_fn dsyrk;
    strsm_fn strsm;
    dtrsm_fn dtrsm;
    dpotrf_fn dpotrf;
    gelqf_fn gelqf[2]; /* single, double */
    orglq_fn orglq[2];
    dgesdd_fn dgesdd;
    dgesvd_fn dgesvd;
    dsyevd_fn dsyevd;
    get_threads_fn get_threads;
    set_threads_fn set_threads;
} blas;

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside, threads_before;

static void find(void *target, const char *name)
{
    void *symbol = dlsym(blas.library, name);
    if (symbol == NULL && blas.missing[0] == '\0')
        snprintf(blas.missing, sizeof blas.missing,
                 "libopenblas.so.0 lacks %s: a build of OpenBLAS with LAPACK is needed", name);
    memcpy(target, &symbol, sizeof symbol);
}

static void open_library(void)
{
    blas.library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (blas.library == NULL) {
        const char *why = dlerror();
        snprintf(blas.missing, sizeof blas.missing,
                 "OpenBLAS is not there (Debian's package libopenblas0-pthread): %s",
                 why != NULL ? why : "no reason given");
        return;
    }
    find(&blas.sgemm, "cblas_sgemm");
    find(&blas.dgemm, "cblas_dgemm");
    find(&blas.dsyrk, "cblas_dsyrk");
    find(&blas.strsm, "cblas_strsm");
    find(&blas.dtrsm, "cblas_dtrsm");
    find(&blas.dpotrf, "dpotrf_");
    find(&blas.gelqf[0], "sgelqf_");
    find(&blas.gelqf[1], "dgelqf_");
    find(&blas.orglq[0], "sorglq_");
    find(&blas.orglq[1], "dorglq_");
    find(&blas.dgesdd, "dgesdd_");
    find(&blas.dgesvd, "dgesvd_");
    find(&blas.dsyevd, "dsyevd_");
    find(&blas.get_threads, "openblas_get_num_threads");
    find(&blas.set_threads, "openblas_set_num_threads");
}

const char *gnomon_blas_missing(void)
{
    pthread_once(&opened, open_library);
    return blas.missing[0] != '\0' ? blas.missing : NULL;
}

void gnomon_blas_enter(void)
{
    pthread_mutex_lock(&lock);
    if (inside++ == 0) {
        threads_before = blas.get_threads();
        if (threads_before != 1) blas.set_threads(1);
    }
    pthread_mutex_unlock(&lock);
}

void gnomon_blas_leave(void)
{
    pthread_mutex_lock(&lock);
    if (--inside == 0 && threads_before != 1) blas.set_threads(threads_before);
    pthread_mutex_unlock(&lock);
}

void gnomon_blas_gemm(bool wide, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                      int64_t k, double alpha, const void *a, int64_t lda, const void *b,
                      int64_t ldb, double beta, void *c, int64_t ldc)
{
    const int ta = transpose_a ? TRANSPOSE : NO_TRANSPOSE;
    const int tb = transpose_b ? TRANSPOSE : NO_TRANSPOSE;
    if (m == 0 || n == 0) return;
    if (wide)
        blas.dgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta,
                   c, (int)ldc);
    else
        blas.sgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, (float)alpha, a, (int)lda, b,
                   (int)ldb, (float)beta, c, (int)ldc);
}

void gnomon_blas_gram(int64_t n, int64_t rows, const double *a, double *c)
{
    blas.dsyrk(ROW_MAJOR, UPPER, TRANSPOSE, (int)n, (int)rows, 1.0, a, (int)n, 1.0, c, (int)n);
}

bool gnomon_blas_cholesky(int64_t n, double *a)
{
    const int size = (int)n;
    int info = 0;
    /* Fortran sees the transpose: the upper triangle is its lower one. */
    blas.dpotrf("L", &size, a, &size, &info, 1);
    return info == 0;
}

void gnomon_blas_divide(bool wide, int64_t m, int64_t n, const void *r, void *b, int64_t ldb)
{
    if (wide)
        blas.dtrsm(ROW_MAJOR, RIGHT, UPPER, NO_TRANSPOSE, NON_UNIT, (int)m, (int)n, 1.0, r, (int)n,
                   b, (int)ldb);
    else
        blas.strsm(ROW_MAJOR, RIGHT, UPPER, NO_TRANSPOSE, NON_UNIT, (int)m, (int)n, 1.0F, r, (int)n,
                   b, (int)ldb);
}

void gnomon_blas_divide_rows(int64_t n, int64_t rows, const double *r, double *b)
{
    if (rows == 0) return;
    blas.dtrsm(ROW_MAJOR, RIGHT, UPPER, TRANSPOSE, NON_UNIT, (int)rows, (int)n, 1.0, r, (int)n, b,
               (int)n);
}

/* What a workspace query left in the first place. */
static int64_t asked(bool wide, const double *first)
{
    float single;
    memcpy(&single, first, sizeof single);
    return (int64_t)(wide ? *first : (double)single) + 1;
}

/* Row-major A = Q R is Fortran's A^T = R^T Q^T, an LQ factorisation of n x m. */
int64_t gnomon_blas_qr_work(bool wide, int64_t m, int64_t n)
{
    const int rows = (int)n, cols = (int)m, query = -1;
    double one = 0, other = 0, unused = 0;
    int info = 0;
    blas.gelqf[wide](&rows, &cols, &unused, &rows, &unused, &one, &query, &info);
    blas.orglq[wide](&rows, &cols, &rows, &unused, &rows, &unused, &other, &query, &info);
    const int64_t a = asked(wide, &one), b = asked(wide, &other);
    return a > b ? a : b;
}

bool gnomon_blas_qr(bool wide, int64_t m, int64_t n, void *a, void *r, void *tau, void *work,
                    int64_t work_count)
{
    const int rows = (int)n, cols = (int)m, count = (int)work_count;
    const size_t size = wide ? sizeof(double) : sizeof(float);
    int info = 0;
    blas.gelqf[wide](&rows, &cols, a, &rows, tau, work, &count, &info);
    if (info != 0) return false;
    memset(r, 0, (size_t)(n * n) * size);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)r + (size_t)(i * n + i) * size, (const char *)a + (size_t)(i * n + i) * size,
               (size_t)(n - i) * size);
    blas.orglq[wide](&rows, &cols, &rows, a, &rows, tau, work, &count, &info);
    return info == 0;
}

int64_t gnomon_blas_svd_work(int64_t n)
{
    const int size = (int)n, query = -1;
    double one = 0, other = 0, unused = 0;
    int info = 0, index = 0;
    blas.dgesdd("A", &size, &size, &unused, &size, &unused, &unused, &size, &unused, &size, &one,
                &query, &index, &info, 1);
    blas.dgesvd("A", "A", &size, &size, &unused, &size, &unused, &unused, &size, &unused, &size,
                &other, &query, &info, 1, 1);
    return (int64_t)(one > other ? one : other) + 1;
}

bool gnomon_blas_svd(int64_t n, double *a, const double *copy, double *s, double *u, double *vt,
                     double *work, int64_t work_count, int *index)
{
    const int size = (int)n, count = (int)work_count;
    int info = 0;
    /* Fortran factors the transpose: its U is our V^T and the other way round. */
    memcpy(a, copy, (size_t)(n * n) * sizeof *a);
    blas.dgesdd("A", &size, &size, a, &size, s, vt, &size, u, &size, work, &count, index, &info, 1);
    if (info == 0) return true;
    memcpy(a, copy, (size_t)(n * n) * sizeof *a);
    blas.dgesvd("A", "A", &size, &size, a, &size, s, vt, &size, u, &size, work, &count, &info, 1,
                1);
    return info == 0;
}

void gnomon_blas_eigen_work(int64_t n, int64_t *work_count, int64_t *index_count)
{
    const int size = (int)n, query = -1;
    double one = 0, unused = 0;
    int info = 0, index = 0;
    blas.dsyevd("V", "L", &size, &unused, &size, &unused, &one, &query, &index, &query, &info, 1,
                1);
    *work_count = (int64_t)one + 1;
    *index_count = index + 1;
}

bool gnomon_blas_eigen(int64_t n, double *a, double *values, double *work, int64_t work_count,
                       int *index, int64_t index_count)
{
    const int size = (int)n, count = (int)work_count, indices = (int)index_count;
    int info = 0;
    /* Fortran sees the transpose: the upper triangle is its lower one, vectors are its columns. */
    blas.dsyevd("V", "L", &size, a, &size, values, work, &count, index, &indices, &info, 1, 1);
    return info == 0;
}
