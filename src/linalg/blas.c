#include "linalg/blas.h"

#include "base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* CBLAS's numbers, and the Fortran interface of LAPACK: everything by address, the lengths of
 * strings at the end. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112, UPPER = 121, NON_UNIT = 131 };
enum { LEFT = 141, RIGHT = 142 };

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *,
                         int, float, float *, int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *,
                         int, double, double *, int);
typedef void (*dsyrk_fn)(int, int, int, int, int, double, const double *, int, double, double *,
                         int);
/* trsm and trmm */
typedef void (*striangle_fn)(int, int, int, int, int, int, int, float, const float *, int, float *,
                             int);
typedef void (*dtriangle_fn)(int, int, int, int, int, int, int, double, const double *, int,
                             double *, int);
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
typedef void *(*buffer_fn)(int);
typedef void (*drop_buffer_fn)(void *);

static struct {
    void *library;
    const char *prefix, *suffix; /* of its symbols; "" for none */
    char missing[320];           /* "" when all is there */
    char about[320];             /* what it says of itself, and its name */
    sgemm_fn sgemm;
    dgemm_fn dgemm;
    dsyrk_fn dsyrk;
    striangle_fn strsm, strmm;
    dtriangle_fn dtrsm, dtrmm;
    dpotrf_fn dpotrf;
    gelqf_fn gelqf[2]; /* single, double */
    orglq_fn orglq[2];
    dgesdd_fn dgesdd;
    dgesvd_fn dgesvd;
    dsyevd_fn dsyevd;
    get_threads_fn get_threads;
    set_threads_fn set_threads;
    buffer_fn buffer; /* these two not every build has */
    drop_buffer_fn drop_buffer;
} blas;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static int buffers; /* that the library has for callers */
static int inside, threads_before;

/* The library that is opened, and what its symbols begin and end with: packages of other systems
 * rename them, so that two builds can be in one process. */
#define DEFAULT_LIBRARY "libopenblas.so.0"

static const char *setting(const char *name, const char *otherwise)
{
    const char *text = secure_getenv(name);
    return text != NULL && text[0] != '\0' ? text : otherwise;
}

static const char *library_name(void)
{
    return setting("GNOMON_BLAS", DEFAULT_LIBRARY);
}

/* False when it is not there. */
static bool look_up(void *target, const char *name)
{
    char whole[128];
    const int length = snprintf(whole, sizeof whole, "%s%s%s", blas.prefix, name, blas.suffix);
    void *symbol = length > 0 && (size_t)length < sizeof whole ? dlsym(blas.library, whole) : NULL;
    memcpy(target, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void find(void *target, const char *name)
{
    if (!look_up(target, name) && blas.missing[0] == '\0')
        snprintf(blas.missing, sizeof blas.missing,
                 "%s lacks %s%s%s: a build of OpenBLAS with LAPACK is needed", library_name(),
                 blas.prefix, name, blas.suffix);
}

/* What the library says of itself. Builds with 64-bit integers are refused: calls here give 32. */
static void describe(void)
{
    const char *(*config)(void);
    const char *text = look_up(&config, "openblas_get_config") ? config() : "OpenBLAS";
    if (strstr(text, "USE64BITINT") != NULL && blas.missing[0] == '\0')
        snprintf(blas.missing, sizeof blas.missing,
                 "%s has 64-bit integers: a build of OpenBLAS with 32-bit integers is needed",
                 library_name());
    snprintf(blas.about, sizeof blas.about, "%.*s (%s)", (int)strcspn(text, "\n"), text,
             library_name());
}

/* OpenBLAS never stops trying to map a buffer that it can't have, so it is asked for one only where
 * there is room. One for each thread of its own as soon as it is loaded, beside that thread's
 * stack, and one for each caller at a time. */
#define CHUNK (INT64_C(1) << 20)
enum { BUFFER_CHUNKS = 129, STACK_CHUNKS = 9, MOST_THREADS = 128 };

/* Whether so many of these are to be had at once. They are mapped one by one, as the library does:
 * a system that promises no more than it has would refuse one large one. */
static bool has_room(int64_t count, int64_t chunks)
{
    void *first = NULL;
    bool all = true;
    while (count > 0 && all) {
        const size_t size = (size_t)(chunks * CHUNK);
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        all = map != MAP_FAILED;
        if (!all) break;
        *(void **)map = first; /* a list of them: one page of each is touched */
        first = map;
        count--;
    }
    while (first != NULL) {
        void *next = *(void **)first;
        munmap(first, (size_t)(chunks * CHUNK));
        first = next;
    }
    return all;
}

/* Threads that the library starts when it is loaded: one less than these. */
static int64_t threads_of_library(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                        "OMP_NUM_THREADS"};
    cpu_set_t set;
    int64_t count = MOST_THREADS;
    if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        const long long asked = text != NULL ? strtoll(text, NULL, 10) : 0;
        if (asked <= 0) continue;
        if (asked < count) count = asked;
        break;
    }
    return count < MOST_THREADS ? count : MOST_THREADS;
}

static void open_library(void)
{
    const int64_t threads = threads_of_library() - 1;
    /* One more for the first caller, and one that the library itself fits in. */
    if (!has_room(threads + 2, BUFFER_CHUNKS + STACK_CHUNKS)) return;
    opened = true;
    blas.prefix = setting("GNOMON_BLAS_PREFIX", "");
    blas.suffix = setting("GNOMON_BLAS_SUFFIX", "");
    blas.library = dlopen(library_name(), RTLD_NOW | RTLD_LOCAL);
    if (blas.library == NULL) {
        const char *why = dlerror();
        snprintf(blas.missing, sizeof blas.missing,
                 "OpenBLAS is not there (Debian's package libopenblas0-pthread, or a path in "
                 "GNOMON_BLAS): %s",
                 why != NULL ? why : "no reason given");
        return;
    }
    find(&blas.sgemm, "cblas_sgemm");
    find(&blas.dgemm, "cblas_dgemm");
    find(&blas.dsyrk, "cblas_dsyrk");
    find(&blas.strsm, "cblas_strsm");
    find(&blas.dtrsm, "cblas_dtrsm");
    find(&blas.strmm, "cblas_strmm");
    find(&blas.dtrmm, "cblas_dtrmm");
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
    look_up(&blas.buffer, "blas_memory_alloc");
    look_up(&blas.drop_buffer, "blas_memory_free");
    describe();
}

const char *gnomon_blas_missing(void)
{
    pthread_mutex_lock(&lock);
    if (!opened) open_library();
    pthread_mutex_unlock(&lock);
    return blas.missing[0] != '\0' ? blas.missing : NULL;
}

const char *gnomon_blas_about(void)
{
    return gnomon_blas_missing() == NULL ? blas.about : "";
}

/* Lets the library have buffers for so many callers while there is room; false when there is none.
 * Its own threads may still be about to take theirs. */
static bool reserve(int callers)
{
    void *tried[MOST_THREADS];
    if (callers > MOST_THREADS) callers = MOST_THREADS;
    if (callers <= buffers) return true;
    if (!has_room(callers + threads_of_library() - 1, BUFFER_CHUNKS)) return false;
    for (int i = 0; i < callers && blas.buffer != NULL && blas.drop_buffer != NULL; i++)
        tried[i] = blas.buffer(0);
    for (int i = 0; i < callers && blas.buffer != NULL && blas.drop_buffer != NULL; i++)
        blas.drop_buffer(tried[i]);
    buffers = callers;
    return true;
}

gnomon_status gnomon_blas_prepare(gnomon_context *ctx)
{
    const int callers = gnomon_context_threads(ctx);
    const char *missing = gnomon_blas_missing();
    GNOMON_FAIL_IF(missing != NULL, ctx, GNOMON_ERROR_UNSUPPORTED, "%s", missing);
    pthread_mutex_lock(&lock);
    const bool ready = opened && reserve(callers);
    pthread_mutex_unlock(&lock);
    GNOMON_FAIL_IF(!ready, ctx, GNOMON_ERROR_MEMORY,
                   "no room for OpenBLAS: it maps about %d MiB for each of %d threads and of %d of "
                   "its own (OPENBLAS_NUM_THREADS lowers these); allow more memory, or fewer "
                   "threads",
                   BUFFER_CHUNKS, callers, (int)threads_of_library() - 1);
    return GNOMON_OK;
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

/* Others may set the number meanwhile, as scikit-learn's threadpoolctl does when it restores what
 * it found: it is looked at before every call, and then only a call that it comes into is cut
 * otherwise. */
static void keep_to_one_thread(void)
{
    if (blas.get_threads() != 1) blas.set_threads(1);
}

void gnomon_blas_gemm(bool f64, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                      double alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                      double beta, void *c, int64_t ldc)
{
    const int ta = transpose_a ? TRANSPOSE : NO_TRANSPOSE;
    const int tb = transpose_b ? TRANSPOSE : NO_TRANSPOSE;
    if (m == 0 || n == 0) return;
    keep_to_one_thread();
    if (f64)
        blas.dgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, alpha, a, (int)lda, b, (int)ldb, beta,
                   c, (int)ldc);
    else
        blas.sgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, (float)alpha, a, (int)lda, b,
                   (int)ldb, (float)beta, c, (int)ldc);
}

void gnomon_blas_gram(int64_t n, int64_t rows, const double *a, int64_t lda, double *c, int64_t ldc)
{
    keep_to_one_thread();
    blas.dsyrk(ROW_MAJOR, UPPER, TRANSPOSE, (int)n, (int)rows, 1.0, a, (int)lda, 1.0, c, (int)ldc);
}

bool gnomon_blas_cholesky(int64_t n, double *a)
{
    const int size = (int)n;
    int info = 0;
    /* Fortran sees the transpose: the upper triangle is its lower one. */
    keep_to_one_thread();
    blas.dpotrf("L", &size, a, &size, &info, 1);
    return info == 0;
}

/* B R^-1 by trsm, or B R by trmm. */
static void by_triangle(dtriangle_fn by_f64, striangle_fn by_f32, bool f64, int64_t m, int64_t n,
                        const void *r, void *b, int64_t ldb)
{
    keep_to_one_thread();
    if (f64)
        by_f64(ROW_MAJOR, RIGHT, UPPER, NO_TRANSPOSE, NON_UNIT, (int)m, (int)n, 1.0, r, (int)n, b,
               (int)ldb);
    else
        by_f32(ROW_MAJOR, RIGHT, UPPER, NO_TRANSPOSE, NON_UNIT, (int)m, (int)n, 1.0F, r, (int)n, b,
               (int)ldb);
}

void gnomon_blas_divide(bool f64, int64_t m, int64_t n, const void *r, void *b, int64_t ldb)
{
    by_triangle(blas.dtrsm, blas.strsm, f64, m, n, r, b, ldb);
}

void gnomon_blas_triangle(bool f64, int64_t m, int64_t n, const void *r, void *b, int64_t ldb)
{
    by_triangle(blas.dtrmm, blas.strmm, f64, m, n, r, b, ldb);
}

void gnomon_blas_divide_rows(int64_t n, int64_t rows, const double *r, double *b)
{
    if (rows == 0) return;
    keep_to_one_thread();
    blas.dtrsm(ROW_MAJOR, RIGHT, UPPER, TRANSPOSE, NON_UNIT, (int)rows, (int)n, 1.0, r, (int)n, b,
               (int)n);
}

void gnomon_blas_solve(int64_t m, int64_t n, const double *r, int64_t ldr, double *b, int64_t ldb)
{
    keep_to_one_thread();
    blas.dtrsm(ROW_MAJOR, LEFT, UPPER, NO_TRANSPOSE, NON_UNIT, (int)m, (int)n, 1.0, r, (int)ldr, b,
               (int)ldb);
}

/* What a workspace query left in the first place. */
static int64_t asked(bool f64, const double *first)
{
    float single;
    memcpy(&single, first, sizeof single);
    return (int64_t)(f64 ? *first : (double)single) + 1;
}

/* Row-major A = Q R is Fortran's A^T = R^T Q^T, an LQ factorisation of n x m. */
int64_t gnomon_blas_qr_work(bool f64, int64_t m, int64_t n)
{
    const int rows = (int)n, cols = (int)m, query = -1;
    double one = 0, other = 0, unused = 0;
    int info = 0;
    blas.gelqf[f64](&rows, &cols, &unused, &rows, &unused, &one, &query, &info);
    blas.orglq[f64](&rows, &cols, &rows, &unused, &rows, &unused, &other, &query, &info);
    const int64_t a = asked(f64, &one), b = asked(f64, &other);
    return a > b ? a : b;
}

bool gnomon_blas_qr(bool f64, int64_t m, int64_t n, void *a, void *r, void *tau, void *work,
                    int64_t work_count)
{
    const int rows = (int)n, cols = (int)m, count = (int)work_count;
    const size_t size = f64 ? sizeof(double) : sizeof(float);
    int info = 0;
    keep_to_one_thread();
    blas.gelqf[f64](&rows, &cols, a, &rows, tau, work, &count, &info);
    if (info != 0) return false;
    memset(r, 0, (size_t)(n * n) * size);
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)r + (size_t)(i * n + i) * size, (const char *)a + (size_t)(i * n + i) * size,
               (size_t)(n - i) * size);
    keep_to_one_thread();
    blas.orglq[f64](&rows, &cols, &rows, a, &rows, tau, work, &count, &info);
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
    keep_to_one_thread();
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

static bool eigen(const char *job, int64_t n, double *a, double *values, double *work,
                  int64_t work_count, int *index, int64_t index_count)
{
    const int size = (int)n, count = (int)work_count, indices = (int)index_count;
    int info = 0;
    /* Fortran sees the transpose: the upper triangle is its lower one, vectors are its columns. */
    keep_to_one_thread();
    blas.dsyevd(job, "L", &size, a, &size, values, work, &count, index, &indices, &info, 1, 1);
    return info == 0;
}

bool gnomon_blas_eigen(int64_t n, double *a, double *values, double *work, int64_t work_count,
                       int *index, int64_t index_count)
{
    return eigen("V", n, a, values, work, work_count, index, index_count);
}

bool gnomon_blas_eigenvalues(int64_t n, double *a, double *values, double *work, int64_t work_count,
                             int *index, int64_t index_count)
{
    return eigen("N", n, a, values, work, work_count, index, index_count);
}
