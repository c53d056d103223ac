/* The randomized SVDs that svd.cu does not time: of sparse rows, in double precision, of matrices
 * larger than the GPU's memory, and with every row read once; beside floors measured in the same
 * run and, where a library has one, beside the same algorithm by cuSPARSE or cuBLAS and cuSOLVER.
 *
 * A floor is the time of the products with the matrix alone: what they read and write, by the read
 * bandwidth or the link's; or their operations, by cuBLAS's product of the same shape and type.
 *
 * usage: svd_ways [--json FILE] [--part sparse|wide|streamed|single] [--small] */
#include "bench.cuh"
#include "calls.cuh"

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <cusparse.h>

#include <gnomon.h>

#include <cmath>

static cublasHandle_t blas;
static cusolverDnHandle_t solver;
static cusolverDnParams_t params;
static cusparseHandle_t sparse;
static bench_json json;

/* Of several runs by the host's clock, after one that is not counted. */
template <typename Work> static bench_time timed(Work work, int runs)
{
    std::vector<double> ms;
    for (int run = -1; run < runs; run++) {
        const double before = now_ms();
        work();
        if (run >= 0) ms.push_back(now_ms() - before);
    }
    return bench_summary(ms);
}

static double read_bytes_a_ms(void)
{
    static double rate;
    if (rate > 0) return rate;
    const size_t bytes = (size_t)1 << 31;
    float *data = device<float>(bytes / 4);
    bench_fill(data, bytes / 4, 3);
    rate = (double)bytes / bench_read_ms(data, bytes);
    BENCH_CHECK(cudaFree(data));
    return rate;
}

template <typename T> static gnomon_dtype dtype_of(void)
{
    return sizeof(T) == 8 ? GNOMON_F64 : GNOMON_F32;
}

template <typename T> static const char *name_of(void)
{
    return sizeof(T) == 8 ? "fp64" : "fp32";
}

/* ---- cuBLAS, cuSOLVER and cuSPARSE for both types ---- */

static cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    const float one = 1, zero = 0;
    return cublasSgemm(blas, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc);
}

static cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           const double *a, int lda, const double *b, int ldb, double *c, int ldc)
{
    const double one = 1, zero = 0;
    return cublasDgemm(blas, ta, tb, m, n, k, &one, a, lda, b, ldb, &zero, c, ldc);
}

static void qr_room(int m, int n, float *a, float *tau, int *count)
{
    int one, two;
    MUST(cusolverDnSgeqrf_bufferSize(solver, m, n, a, m, &one));
    MUST(cusolverDnSorgqr_bufferSize(solver, m, n, n, a, m, tau, &two));
    *count = std::max(one, two);
}

static void qr_room(int m, int n, double *a, double *tau, int *count)
{
    int one, two;
    MUST(cusolverDnDgeqrf_bufferSize(solver, m, n, a, m, &one));
    MUST(cusolverDnDorgqr_bufferSize(solver, m, n, n, a, m, tau, &two));
    *count = std::max(one, two);
}

static void qr(int m, int n, float *a, float *tau, float *work, int count, int *info)
{
    MUST(cusolverDnSgeqrf(solver, m, n, a, m, tau, work, count, info));
    MUST(cusolverDnSorgqr(solver, m, n, n, a, m, tau, work, count, info));
}

static void qr(int m, int n, double *a, double *tau, double *work, int count, int *info)
{
    MUST(cusolverDnDgeqrf(solver, m, n, a, m, tau, work, count, info));
    MUST(cusolverDnDorgqr(solver, m, n, n, a, m, tau, work, count, info));
}

static int jacobi_room(int m, int n, float *a, float *s, float *u, float *v, gesvdjInfo_t how)
{
    int count;
    MUST(cusolverDnSgesvdj_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, a, m, s, u, m, v,
                                      n, &count, how));
    return count;
}

static int jacobi_room(int m, int n, double *a, double *s, double *u, double *v, gesvdjInfo_t how)
{
    int count;
    MUST(cusolverDnDgesvdj_bufferSize(solver, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, a, m, s, u, m, v,
                                      n, &count, how));
    return count;
}

static void jacobi(int m, int n, float *a, float *s, float *u, float *v, float *work, int count,
                   int *info, gesvdjInfo_t how)
{
    MUST(cusolverDnSgesvdj(solver, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, a, m, s, u, m, v, n, work,
                           count, info, how));
}

static void jacobi(int m, int n, double *a, double *s, double *u, double *v, double *work,
                   int count, int *info, gesvdjInfo_t how)
{
    MUST(cusolverDnDgesvdj(solver, CUSOLVER_EIG_MODE_VECTOR, 1, m, n, a, m, s, u, m, v, n, work,
                           count, info, how));
}

/* The algorithm with their products, QR and SVD; tall matrices by columns. multiply(transposed, x,
 * y): y = A x or A^T x. */
template <typename T> struct libraries {
    int m, n, s, count, *info;
    T *omega, *y, *z, *b, *u, *v, *sigma, *tau, *work;
    gesvdjInfo_t how;

    libraries(int rows, int cols, int columns) : m(rows), n(cols), s(columns)
    {
        const size_t tall = (size_t)std::max(m, n) * s;
        for (T **one : {&omega, &y, &z, &b, &u})
            *one = device<T>(tall);
        v = device<T>((size_t)s * s);
        sigma = device<T>(s);
        tau = device<T>(s);
        info = device<int>(1);
        std::vector<T> host((size_t)n * s);
        uint64_t i = 0;
        for (T &x : host)
            x = (T)(std::sqrt(-2 * std::log(bench_uniform(5, i))) *
                    std::cos(6.2831853f * bench_uniform(6, i))),
            i++;
        BENCH_CHECK(
            cudaMemcpy(omega, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
        int one, two;
        MUST(cusolverDnCreateGesvdjInfo(&how));
        qr_room(m, s, y, tau, &one);
        qr_room(n, s, z, tau, &two);
        count = std::max(std::max(one, two), jacobi_room(n, s, b, sigma, u, v, how));
        work = device<T>(count);
    }
    ~libraries()
    {
        for (T *one : {omega, y, z, b, u, v, sigma, tau, work})
            BENCH_CHECK(cudaFree(one));
        BENCH_CHECK(cudaFree(info));
        MUST(cusolverDnDestroyGesvdjInfo(how));
    }
    template <typename Multiply> void run(Multiply multiply, int power)
    {
        multiply(false, omega, y);
        for (int i = 0; i < power; i++) {
            qr(m, s, y, tau, work, count, info);
            multiply(true, y, z);
            qr(n, s, z, tau, work, count, info);
            multiply(false, z, y);
        }
        qr(m, s, y, tau, work, count, info);
        multiply(true, y, b);
        jacobi(n, s, b, sigma, u, v, work, count, info, how);
        MUST(gemm(CUBLAS_OP_N, CUBLAS_OP_N, m, s, s, y, m, v, s, z, m));
    }
    /* |A - U S Vt|_F over |A|_F: Q is orthonormal. */
    double residual(double norm, int64_t rank)
    {
        std::vector<T> host(s);
        BENCH_CHECK(cudaMemcpy(host.data(), sigma, s * sizeof(T), cudaMemcpyDeviceToHost));
        double kept = 0;
        for (int64_t i = 0; i < rank; i++)
            kept += (double)host[i] * (double)host[i];
        return std::sqrt(std::max(0.0, norm * norm - kept)) / norm;
    }
};

/* ---- ours ---- */

struct outcome {
    bench_time time;
    double project, power, orthonormalise, small, certify, residual, norm;
    int64_t passes;
};

/* factor(options, svd) once more with a certificate, for its estimate of the residual. */
template <typename Factor>
static outcome ours(gnomon_context *ctx, gnomon_svd_options o, int runs, Factor factor)
{
    outcome out = {};
    const auto must = [&](gnomon_svd *svd) {
        *svd = {};
        svd->struct_size = sizeof *svd;
        if (factor(&o, svd) == GNOMON_OK) return;
        fprintf(stderr, "svd_ways: %s\n", gnomon_last_error(ctx));
        exit(1);
    };
    o.test_vectors = 0;
    out.time = timed(
        [&] {
            gnomon_svd svd;
            must(&svd);
            out.project = 1e3 * svd.project_seconds;
            out.power = 1e3 * svd.power_seconds;
            out.orthonormalise = 1e3 * svd.orthonormalise_seconds;
            out.small = 1e3 * svd.small_seconds;
            out.passes = svd.passes;
            gnomon_svd_free(ctx, &svd);
        },
        runs);
    gnomon_svd svd;
    o.test_vectors = 10;
    must(&svd);
    out.certify = 1e3 * svd.certify_seconds;
    out.norm = svd.norm;
    out.residual = svd.residual_estimate / svd.norm;
    if (gnomon_context_worked_on(ctx) != GNOMON_DEVICE_PLUGIN) {
        fprintf(stderr, "svd_ways: the GPU did not do it\n");
        exit(1);
    }
    gnomon_svd_free(ctx, &svd);
    return out;
}

static gnomon_context *open_context(void)
{
    gnomon_context *ctx;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cuda";
    if (gnomon_context_create(&options, &ctx) == GNOMON_OK) return ctx;
    fprintf(stderr, "svd_ways: %s\n", gnomon_last_error(nullptr));
    exit(1);
}

struct job {
    const char *part, *type, *what;
    int64_t m, n, nonzeros, rank, over;
    int power;
};

static void say(const job &j, const char *who, const bench_time &t, const outcome *o,
                double residual, const char *floor, double floor_ms)
{
    const outcome none = {};
    const outcome *p = o ? o : &none;
    printf("%s %s %-26s %lld x %lld, rank %lld, power %d: %9.2f ms (least %.2f), %s %.2f ms, "
           "ratio %.2f; project %.2f, products %.2f, orth %.2f, small %.2f, certify %.2f; residual "
           "%.6f\n",
           j.part, j.type, who, (long long)j.m, (long long)j.n, (long long)j.rank, j.power,
           t.median_ms, t.least_ms, floor, floor_ms, t.median_ms / floor_ms, p->project, p->power,
           p->orthonormalise, p->small, p->certify, residual);
    fflush(stdout);
    bench_record(&json,
                 "\"part\": \"%s\", \"type\": \"%s\", \"who\": \"%s\", \"what\": \"%s\", \"rows\": "
                 "%lld, \"cols\": %lld, \"nonzeros\": %lld, \"rank\": %lld, \"oversample\": %lld, "
                 "\"power\": %d, \"ms\": %.4f, \"least_ms\": %.4f, \"runs\": %d, \"floor\": "
                 "\"%s\", \"floor_ms\": %.4f, \"project_ms\": %.4f, \"power_ms\": %.4f, "
                 "\"orthonormalise_ms\": %.4f, \"small_ms\": %.4f, \"certify_ms\": %.4f, "
                 "\"passes\": %lld, \"residual\": %.6e",
                 j.part, j.type, who, j.what, (long long)j.m, (long long)j.n, (long long)j.nonzeros,
                 (long long)j.rank, (long long)j.over, j.power, t.median_ms, t.least_ms, t.runs,
                 floor, floor_ms, p->project, p->power, p->orthonormalise, p->small, p->certify,
                 (long long)p->passes, residual);
}

static gnomon_svd_options options_of(const job &j)
{
    gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
    o.rank = j.rank;
    o.oversample = j.over;
    o.power = j.power;
    return o;
}

/* ---- sparse rows ---- */

struct sparse_rows {
    int64_t m, n;
    std::vector<int64_t> offsets, indices;
    std::vector<double> values;
};

/* So many nonzeros a row, from 1/2 to 3/2 of 'each', in columns of which early ones come more
 * often; in some 150 groups of rows that have some columns in common. */
static sparse_rows make_sparse(int64_t m, int64_t n, int64_t each)
{
    sparse_rows a = {m, n, {0}, {}, {}};
    std::vector<int64_t> row;
    for (int64_t i = 0; i < m; i++) {
        const int64_t count =
            each / 2 + (int64_t)((double)each * bench_uniform(11, (uint64_t)i) + 0.5);
        const uint64_t group = bench_mix((uint64_t)i) % 150;
        row.clear();
        for (int64_t e = 0; e < count; e++) {
            const uint64_t at = (uint64_t)(i * 4 * each + e);
            const uint64_t shared = group * 1000 + bench_mix(at) % 100;
            const double u = e % 2 ? bench_uniform(13, at) : bench_uniform(15, shared);
            row.push_back((int64_t)((double)n * u * u) % n);
        }
        std::sort(row.begin(), row.end());
        row.erase(std::unique(row.begin(), row.end()), row.end());
        for (int64_t j : row) {
            a.indices.push_back(j);
            a.values.push_back(0.5f + bench_uniform(17, (uint64_t)(i * n + j)));
        }
        a.offsets.push_back((int64_t)a.indices.size());
    }
    return a;
}

/* On the GPU as cuSPARSE takes it: the rows, and the transpose's. */
template <typename T> struct lists {
    int64_t lines, others, count;
    int *offsets, *others_of;
    T *values;
    cusparseSpMatDescr_t matrix;
    void *work;
    size_t work_bytes;
};

template <typename T> static lists<T> list_room(int64_t lines, int64_t others, int64_t count)
{
    lists<T> l = {
        lines,   others,  count, device<int>(lines + 1), device<int>(count), device<T>(count),
        nullptr, nullptr, 0};
    const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
    MUST(cusparseCreateCsr(&l.matrix, lines, others, count, l.offsets, l.others_of, l.values,
                           CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
    return l;
}

/* y (lines x s) = the matrix times x, both by columns or by rows. */
template <typename T> static void spmm(lists<T> *l, const T *x, T *y, int s, bool by_rows)
{
    const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
    const cusparseOrder_t order = by_rows ? CUSPARSE_ORDER_ROW : CUSPARSE_ORDER_COL;
    const cusparseSpMMAlg_t how = by_rows ? CUSPARSE_SPMM_CSR_ALG2 : CUSPARSE_SPMM_ALG_DEFAULT;
    const T one = 1, zero = 0;
    cusparseDnMatDescr_t in, out;
    size_t bytes = 0;
    MUST(cusparseCreateDnMat(&in, l->others, s, by_rows ? s : l->others, const_cast<T *>(x), type,
                             order));
    MUST(cusparseCreateDnMat(&out, l->lines, s, by_rows ? s : l->lines, y, type, order));
    const cusparseOperation_t as_it_is = CUSPARSE_OPERATION_NON_TRANSPOSE;
    MUST(cusparseSpMM_bufferSize(sparse, as_it_is, as_it_is, &one, l->matrix, in, &zero, out, type,
                                 how, &bytes));
    if (bytes > l->work_bytes) {
        BENCH_CHECK(cudaFree(l->work));
        l->work = device<char>(bytes);
        l->work_bytes = bytes;
    }
    MUST(cusparseSpMM(sparse, as_it_is, as_it_is, &one, l->matrix, in, &zero, out, type, how,
                      l->work));
    MUST(cusparseDestroyDnMat(in));
    MUST(cusparseDestroyDnMat(out));
}

template <typename T> static void drop(lists<T> *l)
{
    MUST(cusparseDestroySpMat(l->matrix));
    for (void *p : {(void *)l->offsets, (void *)l->others_of, (void *)l->values, l->work})
        BENCH_CHECK(cudaFree(p));
}

template <typename T> static void time_sparse(const sparse_rows &a)
{
    const int64_t m = a.m, n = a.n, count = (int64_t)a.values.size();
    const std::vector<T> values(a.values.begin(), a.values.end());
    gnomon_csr csr = {m, n, a.offsets.data(), a.indices.data(), values.data(), dtype_of<T>()};
    gnomon_context *ctx = open_context();
    job j = {"sparse", name_of<T>(), "rows in pageable memory", m, n, count, 100, 10, 2};
    const int64_t s = j.rank + j.over;
    const double products = 2.0 * j.power + 2;
    const double bytes = (double)count * (4 + sizeof(T)) + (double)((m + n) * s) * sizeof(T);
    const double floor_ms = products * bytes / read_bytes_a_ms();
    const char *floor = "lists and dense sides read once a product";
    gnomon_svd_options o = options_of(j);
    const outcome best = ours(ctx, o, 5, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
        return gnomon_svd_csr(ctx, &csr, with, svd);
    });
    say(j, "gnomon", best.time, &best, best.residual, floor, floor_ms);
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_RADEMACHER;
    o.descriptor = &d;
    const outcome signs = ours(ctx, o, 3, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
        return gnomon_svd_csr(ctx, &csr, with, svd);
    });
    say(j, "gnomon, rademacher", signs.time, &signs, signs.residual, floor, floor_ms);
    d.kind = GNOMON_SJLT;
    d.nonzeros = 8;
    const outcome made = ours(ctx, o, 3, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
        return gnomon_svd_csr(ctx, &csr, with, svd);
    });
    say(j, "gnomon, sjlt", made.time, &made, made.residual, floor, floor_ms);
    o.descriptor = nullptr;
    o.single_pass = 1;
    const outcome once = ours(ctx, o, 3, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
        return gnomon_svd_csr(ctx, &csr, with, svd);
    });
    say(j, "gnomon, single pass", once.time, &once, once.residual, floor, floor_ms);
    o.single_pass = 0;
    /* that can't be met: 128 columns, then 256, and a bound of what each leave */
    o.rank = o.oversample = 128;
    o.tolerance = 0.01;
    const outcome reached = ours(ctx, o, 3, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
        return gnomon_svd_csr(ctx, &csr, with, svd);
    });
    say(j, "gnomon, tolerance, 256 columns", reached.time, &reached, reached.residual, floor,
        floor_ms);
    gnomon_context_destroy(ctx);

    /* cuSPARSE: from the host with 32-bit indices, the transpose made there */
    std::vector<int> offsets(a.offsets.begin(), a.offsets.end()),
        indices(a.indices.begin(), a.indices.end());
    lists<T> rows = list_room<T>(m, n, count), columns = list_room<T>(n, m, count);
    const cudaDataType type = sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
    size_t transpose_bytes;
    MUST(cusparseCsr2cscEx2_bufferSize(
        sparse, (int)m, (int)n, (int)count, rows.values, rows.offsets, rows.others_of,
        columns.values, columns.offsets, columns.others_of, type, CUSPARSE_ACTION_NUMERIC,
        CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, &transpose_bytes));
    char *transpose_work = device<char>(transpose_bytes + 8);
    const auto bring = [&] {
        BENCH_CHECK(
            cudaMemcpy(rows.offsets, offsets.data(), offsets.size() * 4, cudaMemcpyHostToDevice));
        BENCH_CHECK(
            cudaMemcpy(rows.others_of, indices.data(), indices.size() * 4, cudaMemcpyHostToDevice));
        BENCH_CHECK(cudaMemcpy(rows.values, values.data(), values.size() * sizeof(T),
                               cudaMemcpyHostToDevice));
        MUST(cusparseCsr2cscEx2(sparse, (int)m, (int)n, (int)count, rows.values, rows.offsets,
                                rows.others_of, columns.values, columns.offsets, columns.others_of,
                                type, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                                CUSPARSE_CSR2CSC_ALG1, transpose_work));
    };
    libraries<T> theirs((int)m, (int)n, (int)s);
    const auto multiply = [&](bool transposed, const T *x, T *y) {
        spmm(transposed ? &columns : &rows, x, y, (int)s, false);
    };
    const bench_time way = timed(bring, 5);
    const bench_time all = timed(
        [&] {
            bring();
            theirs.run(multiply, j.power);
        },
        3);
    outcome p = {};
    p.project = way.median_ms;
    say(j, "cuSPARSE and cuSOLVER", all, &p, theirs.residual(best.norm, j.rank), floor, floor_ms);
    /* one product alone, as either library's layout likes it */
    const double by_columns =
        bench_run([&](int) { multiply(false, theirs.omega, theirs.y); }, 9).median_ms;
    const double by_rows =
        bench_run([&](int) { spmm(&rows, theirs.omega, theirs.y, (int)s, true); }, 9).median_ms;
    const double transposed_rows =
        bench_run([&](int) { spmm(&columns, theirs.y, theirs.z, (int)s, true); }, 9).median_ms;
    printf("sparse %s one product: cuSPARSE by columns %.2f ms, by rows %.2f, transposed by rows "
           "%.2f; ours (mean of all but the first) %.2f; one read %.2f\n",
           name_of<T>(), by_columns, by_rows, transposed_rows, best.power / (products - 1),
           floor_ms / products);
    bench_record(&json,
                 "\"part\": \"sparse products\", \"type\": \"%s\", \"rows\": %lld, \"cols\": %lld, "
                 "\"nonzeros\": %lld, \"columns\": %lld, \"cusparse_by_columns_ms\": %.4f, "
                 "\"cusparse_by_rows_ms\": %.4f, \"cusparse_transpose_by_rows_ms\": %.4f, "
                 "\"ours_mean_ms\": %.4f, \"read_ms\": %.4f",
                 name_of<T>(), (long long)m, (long long)n, (long long)count, (long long)s,
                 by_columns, by_rows, transposed_rows, best.power / (products - 1),
                 floor_ms / products);
    drop(&rows);
    drop(&columns);
    BENCH_CHECK(cudaFree(transpose_work));
}

/* ---- dense matrices ---- */

template <typename T>
static __global__ void fall(const float *l, const float *x, int64_t m, int64_t n, int64_t row,
                            uint64_t seed, T *a)
{
    /* rank 8 above noise */
    for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < m * n;
         e += (int64_t)gridDim.x * blockDim.x) {
        const int64_t i = row + e / n, j = e % n;
        double sum = 0;
        for (int r = 0; r < 8; r++)
            sum += (double)l[i * 8 + r] * (double)x[j * 8 + r] / (1 << r);
        const uint64_t at = (uint64_t)(i * n + j);
        a[e] = (T)(sum + 0.2 * ((double)bench_uniform(seed, at) - 0.5));
    }
}

/* Rows [row, row + m) of a matrix of 'all' rows, in a (device). */
template <typename T> static void fill_rows(int64_t all, int64_t n, int64_t row, int64_t m, T *a)
{
    static float *l, *x;
    static int64_t have, last_n;
    if (have != all || last_n != n) {
        BENCH_CHECK(cudaFree(l));
        BENCH_CHECK(cudaFree(x));
        l = device<float>(all * 8);
        x = device<float>(n * 8);
        bench_fill(l, all * 8, 1);
        bench_fill(x, n * 8, 2);
        have = all;
        last_n = n;
    }
    fall<<<2048, 256>>>(l, x, m, n, row, 7, a);
    BENCH_CHECK(cudaDeviceSynchronize());
}

/* The products' time at cuBLAS's rate, m x n by n x s. */
template <typename T> static double gemm_ms(const T *a, int64_t m, int64_t n, int64_t s)
{
    T *x = device<T>(n * s), *y = device<T>(m * s);
    BENCH_CHECK(
        cudaMemcpy(x, a, (size_t)std::min(n * s, m * n) * sizeof(T), cudaMemcpyDeviceToDevice));
    const double ms = bench_run(
                          [&](int) {
                              MUST(gemm(CUBLAS_OP_N, CUBLAS_OP_N, (int)s, (int)m, (int)n, x, (int)s,
                                        a, (int)n, y, (int)s));
                          },
                          9)
                          .median_ms;
    BENCH_CHECK(cudaFree(x));
    BENCH_CHECK(cudaFree(y));
    return ms;
}

static void time_wide(bool small)
{
    const int64_t n = small ? 2048 : 8192;
    double *a = device<double>(n * n);
    fill_rows(n, n, 0, n, a);
    gnomon_context *ctx = open_context();
    gnomon_matrix matrix = gnomon_matrix_rowmajor(a, GNOMON_F64, n, n);
    matrix.memory = GNOMON_DEVICE_MEMORY;
    for (int power = 0; power <= 2; power += 2) {
        job j = {"wide", "fp64", "on the GPU", n, n, n * n, small ? 64 : 256, 10, power};
        const int64_t s = j.rank + j.over;
        gnomon_matrix u = gnomon_matrix_rowmajor(device<double>(n * j.rank), GNOMON_F64, n, j.rank);
        gnomon_matrix vt =
            gnomon_matrix_rowmajor(device<double>(n * j.rank), GNOMON_F64, j.rank, n);
        u.memory = vt.memory = GNOMON_DEVICE_MEMORY;
        gnomon_svd_options o = options_of(j);
        o.u = &u;
        o.vt = &vt;
        const double floor_ms = (2.0 * power + 2) * gemm_ms(a, n, n, s);
        const char *floor = "products by DGEMM";
        const outcome best = ours(ctx, o, 7, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
            return gnomon_svd_dense(ctx, &matrix, with, svd);
        });
        say(j, "gnomon", best.time, &best, best.residual, floor, floor_ms);
        BENCH_CHECK(cudaFree(u.data));
        BENCH_CHECK(cudaFree(vt.data));
        {
            libraries<double> theirs((int)n, (int)n, (int)s);
            const bench_time t = timed(
                [&] {
                    theirs.run(
                        [&](bool transposed, const double *x, double *y) {
                            MUST(gemm(transposed ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, (int)n,
                                      (int)s, (int)n, a, (int)n, x, (int)n, y, (int)n));
                        },
                        power);
                },
                3);
            say(j, "cuBLAS and cuSOLVER", t, nullptr, theirs.residual(best.norm, j.rank), floor,
                floor_ms);
        }
        double *copy = device<double>(n * n), *left = device<double>(n * n),
               *right = device<double>(n * n), *values = device<double>(n);
        int *info = device<int>(1);
        size_t there, here;
        const cudaDataType d = CUDA_R_64F;
        MUST(cusolverDnXgesvdr_bufferSize(solver, params, 'S', 'S', n, n, j.rank, j.over, power, d,
                                          copy, n, d, values, d, left, n, d, right, n, d, &there,
                                          &here));
        char *work = device<char>(there + 8);
        std::vector<char> host(here + 8);
        std::vector<double> ms;
        for (int run = -1; run < 3; run++) {
            BENCH_CHECK(cudaMemcpy(copy, a, n * n * 8, cudaMemcpyDeviceToDevice));
            const double before = now_ms();
            MUST(cusolverDnXgesvdr(solver, params, 'S', 'S', n, n, j.rank, j.over, power, d, copy,
                                   n, d, values, d, left, n, d, right, n, d, work, there,
                                   host.data(), here, info));
            if (run >= 0) ms.push_back(now_ms() - before);
        }
        std::vector<double> sigma(j.rank);
        double kept = 0;
        BENCH_CHECK(cudaMemcpy(sigma.data(), values, j.rank * 8, cudaMemcpyDeviceToHost));
        for (double one : sigma)
            kept += one * one;
        say(j, "cuSOLVER gesvdr", bench_summary(ms), nullptr,
            std::sqrt(std::max(0.0, best.norm * best.norm - kept)) / best.norm, floor, floor_ms);
        for (void *p : {(void *)copy, (void *)left, (void *)right, (void *)values, (void *)info,
                        (void *)work})
            BENCH_CHECK(cudaFree(p));
    }
    gnomon_context_destroy(ctx);
    BENCH_CHECK(cudaFree(a));
}

/* Larger than the memory that the GPU may use, in page-locked memory of the host. */
template <typename T> static void time_streamed(bool small)
{
    const int64_t n = 8192, m = (small ? 8192 : 262144) / (int64_t)sizeof(T), part = 4096;
    T *a, *there = device<T>(part * n);
    BENCH_CHECK(cudaHostAlloc(&a, (size_t)(m * n) * sizeof(T), 0));
    for (int64_t row = 0; row < m; row += part) {
        const int64_t rows = std::min(part, m - row);
        fill_rows(m, n, row, rows, there);
        BENCH_CHECK(
            cudaMemcpy(a + row * n, there, (size_t)(rows * n) * sizeof(T), cudaMemcpyDeviceToHost));
    }
    const size_t chunk = (size_t)(part * n) * sizeof(T);
    const double link =
        (double)chunk /
        bench_run(
            [&](int run) {
                BENCH_CHECK(cudaMemcpyAsync(there, a + run % (m > part ? m / part : 1) * part * n,
                                            std::min(chunk, (size_t)(m * n) * sizeof(T)),
                                            cudaMemcpyHostToDevice, 0));
            },
            9)
            .median_ms;
    setenv("GNOMON_CUDA_MEMORY", small ? "64" : "1024", 1);
    gnomon_context *ctx = open_context();
    const gnomon_matrix matrix = gnomon_matrix_rowmajor(a, dtype_of<T>(), m, n);
    const double pass_ms = (double)(m * n) * sizeof(T) / link;
    for (int way = 0; way < 3; way++) {
        job j = {"streamed",
                 name_of<T>(),
                 "page-locked, 1 GiB of the GPU's memory",
                 m,
                 n,
                 m * n,
                 small ? 20 : 100,
                 10,
                 way == 2 ? 1 : 0};
        gnomon_svd_options o = options_of(j);
        o.single_pass = way == 0;
        o.dtype = dtype_of<T>();
        /* the look, and two products, two more an iteration */
        const double passes = way == 0 ? 1 : 3.0 + 2.0 * j.power;
        const outcome best = ours(ctx, o, 3, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
            return gnomon_svd_dense(ctx, &matrix, with, svd);
        });
        say(j, way == 0 ? "gnomon, single pass" : "gnomon", best.time, &best, best.residual,
            "its passes over the link", passes * pass_ms);
    }
    gnomon_context_destroy(ctx);
    unsetenv("GNOMON_CUDA_MEMORY");
    BENCH_CHECK(cudaFree(there));
    BENCH_CHECK(cudaFreeHost(a));
}

/* On the GPU as a whole: one pass beside two. */
template <typename T> static void time_single(bool small)
{
    const int64_t n = 8192, m = (small ? 8192 : 262144) / (int64_t)sizeof(T);
    T *a = device<T>(m * n);
    fill_rows(m, n, 0, m, a);
    gnomon_context *ctx = open_context();
    gnomon_matrix matrix = gnomon_matrix_rowmajor(a, dtype_of<T>(), m, n);
    matrix.memory = GNOMON_DEVICE_MEMORY;
    job j = {"single", name_of<T>(), "on the GPU", m, n, m * n, 100, 10, 0};
    const int64_t s = j.rank + j.over;
    const double two = gemm_ms(a, m, n, s) * 2;
    const double three = gemm_ms(a, m, n, s + 2 * s + 1);
    for (int way = 0; way < 2; way++) {
        gnomon_svd_options o = options_of(j);
        o.single_pass = way == 0;
        o.dtype = dtype_of<T>();
        const outcome best = ours(ctx, o, 5, [&](const gnomon_svd_options *with, gnomon_svd *svd) {
            return gnomon_svd_dense(ctx, &matrix, with, svd);
        });
        say(j, way == 0 ? "gnomon, single pass" : "gnomon", best.time, &best, best.residual,
            "products by cuBLAS", way == 0 ? three : two);
    }
    gnomon_context_destroy(ctx);
    BENCH_CHECK(cudaFree(a));
}

int main(int argc, char **argv)
{
    const char *part = "";
    bool small = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--small") == 0) small = true;
        if (strcmp(argv[i], "--part") == 0 && i + 1 < argc) part = argv[i + 1];
    }
    const auto wanted = [&](const char *name) { return !*part || strcmp(part, name) == 0; };
    MUST(cublasCreate(&blas));
    MUST(cusolverDnCreate(&solver));
    MUST(cusolverDnCreateParams(&params));
    MUST(cusparseCreate(&sparse));
    json = bench_open("svd_ways", argc, argv);
    if (wanted("wide")) time_wide(small);
    if (wanted("single")) {
        time_single<float>(small);
        time_single<double>(small);
    }
    if (wanted("sparse")) {
        const sparse_rows a = make_sparse(small ? 60000 : 200000, small ? 20000 : 50000, 100);
        time_sparse<float>(a);
        time_sparse<double>(a);
    }
    if (wanted("streamed")) {
        time_streamed<float>(small);
        time_streamed<double>(small);
    }
    bench_close(&json);
    return 0;
}
