#include "cuda/linalg/blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every function that is used, by its type in the toolkit's headers. */
static struct {
    char missing[320]; /* "" when all is there */
    decltype(&cublasCreate_v2) create;
    decltype(&cublasDestroy_v2) destroy;
    decltype(&cublasSetStream_v2) set_stream;
    decltype(&cublasDgemm_v2) dgemm;
    decltype(&cublasDgemmStridedBatched) dgemm_batched;
    decltype(&cublasDtrsm_v2) dtrsm;
    decltype(&cusolverDnCreate) solver_create;
    decltype(&cusolverDnDestroy) solver_destroy;
    decltype(&cusolverDnSetStream) solver_set_stream;
    decltype(&cusolverDnCreateParams) create_params;
    decltype(&cusolverDnDestroyParams) destroy_params;
    decltype(&cusolverDnDpotrf_bufferSize) potrf_size;
    decltype(&cusolverDnDpotrf) potrf;
    decltype(&cusolverDnXsyevd_bufferSize) syevd_size;
    decltype(&cusolverDnXsyevd) syevd;
    decltype(&cusolverDnDgeqrf_bufferSize) geqrf_size;
    decltype(&cusolverDnDgeqrf) geqrf;
    decltype(&cusolverDnDorgqr_bufferSize) orgqr_size;
    decltype(&cusolverDnDorgqr) orgqr;
    decltype(&cusolverDnCreateGesvdjInfo) create_jacobi;
    decltype(&cusolverDnDestroyGesvdjInfo) destroy_jacobi;
    decltype(&cusolverDnDgesvdj_bufferSize) gesvdj_size;
    decltype(&cusolverDnDgesvdj) gesvdj;
} blas;

static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* By the loader's own search, then where CUDA's installer puts it. */
static void *open_one(const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    char path[128];
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", file);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

template <typename Function>
static void find(void *library, const char *name, const char *symbol_name, Function *target)
{
    void *symbol = dlsym(library, symbol_name);
    if (!symbol && !blas.missing[0])
        snprintf(blas.missing, sizeof blas.missing, "%s lacks %s", name, symbol_name);
    memcpy(target, &symbol, sizeof symbol);
}

static void open_libraries(void)
{
    /* The interfaces are the same; a toolkit has both of one row. */
    static const char *const names[][2] = {{"libcublas.so.13", "libcusolver.so.12"},
                                           {"libcublas.so.12", "libcusolver.so.11"}};
    void *cublas = nullptr, *cusolver = nullptr;
    const char *const *name = names[0];
    for (const auto &row : names) {
        cublas = open_one(row[0]);
        name = row;
        if (cublas) break;
    }
    if (cublas) cusolver = open_one(name[1]);
    if (!cublas || !cusolver) {
        const char *reason = dlerror();
        snprintf(blas.missing, sizeof blas.missing,
                 "%s of the CUDA toolkit is not there (a folder of it in LD_LIBRARY_PATH helps): "
                 "%.160s",
                 cublas ? "cuSOLVER" : "cuBLAS", reason ? reason : "no reason given");
        return;
    }
    find(cublas, name[0], "cublasCreate_v2", &blas.create);
    find(cublas, name[0], "cublasDestroy_v2", &blas.destroy);
    find(cublas, name[0], "cublasSetStream_v2", &blas.set_stream);
    find(cublas, name[0], "cublasDgemm_v2", &blas.dgemm);
    find(cublas, name[0], "cublasDgemmStridedBatched", &blas.dgemm_batched);
    find(cublas, name[0], "cublasDtrsm_v2", &blas.dtrsm);
    find(cusolver, name[1], "cusolverDnCreate", &blas.solver_create);
    find(cusolver, name[1], "cusolverDnDestroy", &blas.solver_destroy);
    find(cusolver, name[1], "cusolverDnSetStream", &blas.solver_set_stream);
    find(cusolver, name[1], "cusolverDnCreateParams", &blas.create_params);
    find(cusolver, name[1], "cusolverDnDestroyParams", &blas.destroy_params);
    find(cusolver, name[1], "cusolverDnDpotrf_bufferSize", &blas.potrf_size);
    find(cusolver, name[1], "cusolverDnDpotrf", &blas.potrf);
    find(cusolver, name[1], "cusolverDnXsyevd_bufferSize", &blas.syevd_size);
    find(cusolver, name[1], "cusolverDnXsyevd", &blas.syevd);
    find(cusolver, name[1], "cusolverDnDgeqrf_bufferSize", &blas.geqrf_size);
    find(cusolver, name[1], "cusolverDnDgeqrf", &blas.geqrf);
    find(cusolver, name[1], "cusolverDnDorgqr_bufferSize", &blas.orgqr_size);
    find(cusolver, name[1], "cusolverDnDorgqr", &blas.orgqr);
    find(cusolver, name[1], "cusolverDnCreateGesvdjInfo", &blas.create_jacobi);
    find(cusolver, name[1], "cusolverDnDestroyGesvdjInfo", &blas.destroy_jacobi);
    find(cusolver, name[1], "cusolverDnDgesvdj_bufferSize", &blas.gesvdj_size);
    find(cusolver, name[1], "cusolverDnDgesvdj", &blas.gesvdj);
}

static gnomon_status told(gcu_why why, int status, const char *call)
{
    if (status == 0) return GNOMON_OK;
    return gcu_fail(why, GNOMON_ERROR_DEVICE, "status %d of %.40s", status, call);
}

#define TOLD(why, call) told(why, (int)blas.call, #call)

/* Of what makes a handle: MEMORY where there is none for it. */
static gnomon_status made(gcu_why why, int status, int full, const char *call)
{
    const gnomon_status as_told = told(why, status, call);
    return as_told != GNOMON_OK && status == full ? GNOMON_ERROR_MEMORY : as_told;
}

const char *gcu_blas_missing(void)
{
    pthread_once(&opened, open_libraries);
    return blas.missing[0] ? blas.missing : nullptr;
}

gnomon_status gcu_blas_open(gcu_state *s, cudaStream_t stream, gcu_blas **out, gcu_why why)
{
    const char *missing = gcu_blas_missing();
    if (missing) return gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", missing);
    gnomon_status status = GNOMON_OK;
    if (!s->blas) {
        s->blas = static_cast<gcu_blas *>(calloc(1, sizeof *s->blas));
        if (!s->blas) return gcu_fail(why, GNOMON_ERROR_MEMORY, "no memory for a handle");
        status = made(why, (int)blas.create(&s->blas->cublas), CUBLAS_STATUS_ALLOC_FAILED,
                      "cublasCreate");
        if (status == GNOMON_OK)
            status = made(why, (int)blas.solver_create(&s->blas->cusolver),
                          CUSOLVER_STATUS_ALLOC_FAILED, "cusolverDnCreate");
        if (status == GNOMON_OK) status = TOLD(why, create_params(&s->blas->params));
        if (status == GNOMON_OK) status = TOLD(why, create_jacobi(&s->blas->jacobi));
        if (status == GNOMON_OK &&
            cudaHostAlloc(&s->blas->page, GCU_PAGE_BYTES, cudaHostAllocDefault) != cudaSuccess)
            status = gcu_fail(why, GNOMON_ERROR_MEMORY, "no page-locked memory");
    }
    if (status == GNOMON_OK) status = TOLD(why, set_stream(s->blas->cublas, stream));
    if (status == GNOMON_OK) status = TOLD(why, solver_set_stream(s->blas->cusolver, stream));
    if (status != GNOMON_OK) gcu_blas_close(s);
    *out = s->blas;
    return status;
}

void gcu_blas_close(gcu_state *s)
{
    if (!s->blas) return;
    if (s->blas->page) cudaFreeHost(s->blas->page);
    if (s->blas->jacobi) blas.destroy_jacobi(s->blas->jacobi);
    if (s->blas->params) blas.destroy_params(s->blas->params);
    if (s->blas->cusolver) blas.solver_destroy(s->blas->cusolver);
    if (s->blas->cublas) blas.destroy(s->blas->cublas);
    free(s->blas);
    s->blas = nullptr;
}

static cublasOperation_t operation(bool transposed)
{
    return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

gnomon_status gcu_gemm64(gcu_blas *b, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                         double alpha, const double *a, int64_t lda, const double *x, int64_t ldx,
                         double beta, double *c, int64_t ldc, gcu_why why)
{
    return TOLD(why, dgemm(b->cublas, operation(ta), operation(tb), (int)m, (int)n, (int)k, &alpha,
                           a, (int)lda, x, (int)ldx, &beta, c, (int)ldc));
}

gnomon_status gcu_gemm64_batched(gcu_blas *b, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                                 const double *a, int64_t lda, int64_t a_apart, const double *x,
                                 int64_t ldx, int64_t x_apart, double *c, int64_t ldc,
                                 int64_t c_apart, int count, gcu_why why)
{
    const double one = 1.0, zero = 0.0;
    return TOLD(why, dgemm_batched(b->cublas, operation(ta), operation(tb), (int)m, (int)n, (int)k,
                                   &one, a, (int)lda, a_apart, x, (int)ldx, x_apart, &zero, c,
                                   (int)ldc, c_apart, count));
}

gnomon_status gcu_solve_lower(gcu_blas *b, int64_t n, int64_t cols, const double *l, int64_t ldl,
                              double *x, int64_t ldx, gcu_why why)
{
    const double one = 1.0;
    return TOLD(why,
                dtrsm(b->cublas, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                      CUBLAS_DIAG_NON_UNIT, (int)n, (int)cols, &one, l, (int)ldl, x, (int)ldx));
}

gnomon_status gcu_cholesky_work(gcu_blas *b, int64_t n, int64_t *work, gcu_why why)
{
    int count = 0;
    const gnomon_status status =
        TOLD(why, potrf_size(b->cusolver, CUBLAS_FILL_MODE_LOWER, (int)n, nullptr, (int)n, &count));
    *work = count;
    return status;
}

gnomon_status gcu_cholesky(gcu_blas *b, int64_t n, double *a, double *work, int64_t work_count,
                           int *info, gcu_why why)
{
    return TOLD(why, potrf(b->cusolver, CUBLAS_FILL_MODE_LOWER, (int)n, a, (int)n, work,
                           (int)work_count, info));
}

gnomon_status gcu_eigen_work(gcu_blas *b, int64_t n, size_t *device, size_t *host, gcu_why why)
{
    return TOLD(why, syevd_size(b->cusolver, b->params, CUSOLVER_EIG_MODE_VECTOR,
                                CUBLAS_FILL_MODE_LOWER, n, CUDA_R_64F, nullptr, n, CUDA_R_64F,
                                nullptr, CUDA_R_64F, device, host));
}

gnomon_status gcu_eigen(gcu_blas *b, int64_t n, double *a, double *values, void *device,
                        size_t device_bytes, void *host, size_t host_bytes, int *info, gcu_why why)
{
    return TOLD(why, syevd(b->cusolver, b->params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                           n, CUDA_R_64F, a, n, CUDA_R_64F, values, CUDA_R_64F, device,
                           device_bytes, host, host_bytes, info));
}

gnomon_status gcu_reflect_work(gcu_blas *b, int64_t m, int64_t n, int64_t *work, gcu_why why)
{
    int one = 0, other = 0;
    gnomon_status status =
        TOLD(why, geqrf_size(b->cusolver, (int)m, (int)n, nullptr, (int)m, &one));
    if (status == GNOMON_OK)
        status = TOLD(
            why, orgqr_size(b->cusolver, (int)m, (int)n, (int)n, nullptr, (int)m, nullptr, &other));
    *work = one > other ? one : other;
    return status;
}

gnomon_status gcu_reflect(gcu_blas *b, int64_t m, int64_t n, double *a, double *tau, double *work,
                          int64_t work_count, int *info, gcu_why why)
{
    return TOLD(why,
                geqrf(b->cusolver, (int)m, (int)n, a, (int)m, tau, work, (int)work_count, info));
}

gnomon_status gcu_reflect_out(gcu_blas *b, int64_t m, int64_t n, double *a, double *tau,
                              double *work, int64_t work_count, int *info, gcu_why why)
{
    return TOLD(why, orgqr(b->cusolver, (int)m, (int)n, (int)n, a, (int)m, tau, work,
                           (int)work_count, info));
}

gnomon_status gcu_singular_work(gcu_blas *b, int64_t n, int64_t *work, gcu_why why)
{
    int count = 0;
    const gnomon_status status = TOLD(
        why, gesvdj_size(b->cusolver, CUSOLVER_EIG_MODE_VECTOR, 0, (int)n, (int)n, nullptr, (int)n,
                         nullptr, nullptr, (int)n, nullptr, (int)n, &count, b->jacobi));
    *work = count;
    return status;
}

gnomon_status gcu_singular(gcu_blas *b, int64_t n, double *a, double *values, double *left,
                           double *right, double *work, int64_t work_count, int *info, gcu_why why)
{
    return TOLD(why,
                gesvdj(b->cusolver, CUSOLVER_EIG_MODE_VECTOR, 0, (int)n, (int)n, a, (int)n, values,
                       left, (int)n, right, (int)n, work, (int)work_count, info, b->jacobi));
}
