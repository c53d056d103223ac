/* The CUDA pipeline of a report (El Kazdam & Faraj 2025), written from its description in its plain
 * form, beside ours on the same GPU: parameters by a kernel and a wait a function, fp64 hashing by
 * a thread a point that runs through all functions, nested ordered maps on the host
 * (bench/papers/report/report.h), queries of a random point's own bucket. Ours: an index with one
 * table of two levels; its queries run on the CPU, on all its threads.
 *
 *   report [--json FILE] */
#include "bench.cuh"

#include "report/report.h"

#include <curand_kernel.h>
#include <gnomon.h>

#include <chrono>

/* ---- the report's kernels ---- */

/* As report_function, with a in the GPU's memory. */
struct HashingFunc {
    double *a;
    double b, w;
};

/* A thread a coordinate; the first one also draws b. */
static __global__ void generateLSHParams(double *d_a, double *d_b, int n, double w,
                                         unsigned long long seed, int funcIndex)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    curandState state;
    curand_init(seed, (unsigned long long)i, 0, &state);
    d_a[(int64_t)funcIndex * n + i] = curand_normal_double(&state);
    if (i == 0) d_b[funcIndex] = curand_uniform_double(&state) * w;
}

static __device__ int hashingComputingCUDA(const double *d_point, const HashingFunc h, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += h.a[i] * d_point[i];
    return (int)floor((sum + h.b) / h.w);
}

/* A thread a point. */
static __global__ void computeHashes(const double *d_points, int *d_hash1, int *d_hash2,
                                     const HashingFunc *first, const HashingFunc *second,
                                     int num_points, int L1, int L2, int D)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_points) return;
    for (int j = 0; j < L1; j++)
        d_hash1[i * L1 + j] = hashingComputingCUDA(d_points + i * D, first[j], D);
    for (int j = 0; j < L2; j++)
        d_hash2[i * L2 + j] = hashingComputingCUDA(d_points + i * D, second[j], D);
}

struct parameters {
    double *a, *b;
    HashingFunc *functions;
};

static parameters generateLSHParamsOnGPU(int n, double w, int numFunctions, uint64_t seed)
{
    parameters p;
    std::vector<double> b((size_t)numFunctions);
    std::vector<HashingFunc> functions((size_t)numFunctions);
    BENCH_CHECK(cudaMalloc(&p.a, (size_t)numFunctions * (size_t)n * sizeof(double)));
    BENCH_CHECK(cudaMalloc(&p.b, (size_t)numFunctions * sizeof(double)));
    const int threads = 256, blocks = (n + threads - 1) / threads;
    for (int f = 0; f < numFunctions; f++) {
        generateLSHParams<<<blocks, threads>>>(p.a, p.b, n, w, seed + (uint64_t)f * 1234, f);
        BENCH_CHECK(cudaDeviceSynchronize());
    }
    BENCH_CHECK(cudaMemcpy(b.data(), p.b, b.size() * sizeof(double), cudaMemcpyDeviceToHost));
    for (int f = 0; f < numFunctions; f++)
        functions[(size_t)f] = {p.a + (int64_t)f * n, b[(size_t)f], w};
    BENCH_CHECK(cudaMalloc(&p.functions, functions.size() * sizeof(HashingFunc)));
    BENCH_CHECK(cudaMemcpy(p.functions, functions.data(), functions.size() * sizeof(HashingFunc),
                           cudaMemcpyHostToDevice));
    return p;
}

static void release(const parameters &p)
{
    BENCH_CHECK(cudaFree(p.a));
    BENCH_CHECK(cudaFree(p.b));
    BENCH_CHECK(cudaFree(p.functions));
}

/* ---- one beside the other ---- */

struct size {
    int64_t n, d, l1, l2;
    double width;
};

static const size sizes[] = {
    {100000, 64, 4, 8, 2},  {400000, 64, 4, 8, 2}, {100000, 16, 4, 8, 2},  {100000, 256, 4, 8, 2},
    {100000, 784, 4, 8, 2}, {100000, 64, 2, 8, 2}, {100000, 64, 16, 8, 2}, {100000, 64, 4, 32, 2},
};

enum { QUERIES = 1000, ROUNDS = 3 };

struct told {
    double parameters, hashing, hashing_moved, table, query, candidates;
};

static double now(void)
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static void must(gnomon_status status, gnomon_context *ctx)
{
    if (status == GNOMON_OK) return;
    fprintf(stderr, "report: %s\n", gnomon_last_error(ctx));
    exit(1);
}

static void hash(const double *d_points, const parameters &first, const parameters &second,
                 const size &s, int64_t n, int *d_hash1, int *d_hash2)
{
    const unsigned blocks = (unsigned)((n + 255) / 256);
    computeHashes<<<blocks, 256>>>(d_points, d_hash1, d_hash2, first.functions, second.functions,
                                   (int)n, (int)s.l1, (int)s.l2, (int)s.d);
    BENCH_CHECK(cudaGetLastError());
}

static told run_report(const size &s, const std::vector<double> &points,
                       const std::vector<double> &queries, double radius)
{
    told t = {};
    double *d_points, *d_queries;
    int *d_hash1, *d_hash2;
    const size_t bytes = points.size() * sizeof(double);
    const size_t bytes1 = (size_t)(s.n * s.l1) * sizeof(int),
                 bytes2 = (size_t)(s.n * s.l2) * sizeof(int);
    std::vector<int> hash1((size_t)(s.n * s.l1)), hash2((size_t)(s.n * s.l2));
    BENCH_CHECK(cudaMalloc(&d_points, bytes));
    BENCH_CHECK(cudaMalloc(&d_queries, queries.size() * sizeof(double)));
    BENCH_CHECK(cudaMalloc(&d_hash1, bytes1));
    BENCH_CHECK(cudaMalloc(&d_hash2, bytes2));
    BENCH_CHECK(cudaDeviceSynchronize());
    double from = now();
    const parameters first = generateLSHParamsOnGPU((int)s.d, s.width, (int)s.l1, 1);
    const parameters second = generateLSHParamsOnGPU((int)s.d, s.width, (int)s.l2, 2);
    t.parameters = now() - from;
    from = now();
    BENCH_CHECK(cudaMemcpy(d_points, points.data(), bytes, cudaMemcpyHostToDevice));
    double inside = now();
    hash(d_points, first, second, s, s.n, d_hash1, d_hash2);
    BENCH_CHECK(cudaDeviceSynchronize());
    t.hashing = now() - inside;
    BENCH_CHECK(cudaMemcpy(hash1.data(), d_hash1, bytes1, cudaMemcpyDeviceToHost));
    BENCH_CHECK(cudaMemcpy(hash2.data(), d_hash2, bytes2, cudaMemcpyDeviceToHost));
    t.hashing_moved = now() - from;
    from = now();
    report_map *map = report_map_open(s.l1, s.l2);
    for (int64_t i = 0; i < s.n; i++)
        report_map_add(map, &hash1[(size_t)(i * s.l1)], &hash2[(size_t)(i * s.l2)], i);
    t.table = now() - from;
    std::vector<int64_t> found((size_t)s.n);
    std::vector<int> key1((size_t)(QUERIES * s.l1)), key2((size_t)(QUERIES * s.l2));
    from = now();
    BENCH_CHECK(cudaMemcpy(d_queries, queries.data(), queries.size() * sizeof(double),
                           cudaMemcpyHostToDevice));
    hash(d_queries, first, second, s, QUERIES, d_hash1, d_hash2);
    BENCH_CHECK(
        cudaMemcpy(key1.data(), d_hash1, key1.size() * sizeof(int), cudaMemcpyDeviceToHost));
    BENCH_CHECK(
        cudaMemcpy(key2.data(), d_hash2, key2.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int64_t q = 0; q < QUERIES; q++) {
        const int *a = &key1[(size_t)(q * s.l1)], *b = &key2[(size_t)(q * s.l2)];
        report_query(map, &queries[(size_t)(q * s.d)], a, b, points.data(), s.d, radius,
                     found.data());
        const report_bucket *bucket = report_map_find(map, a, b);
        t.candidates += bucket ? (double)bucket->count / QUERIES : 0;
    }
    t.query = now() - from;
    report_map_close(map);
    release(first);
    release(second);
    BENCH_CHECK(cudaFree(d_points));
    BENCH_CHECK(cudaFree(d_queries));
    BENCH_CHECK(cudaFree(d_hash1));
    BENCH_CHECK(cudaFree(d_hash2));
    return t;
}

static told run_ours(gnomon_context *gpu, gnomon_context *cpu, const size &s,
                     const std::vector<float> &points, const std::vector<float> &queries,
                     double radius)
{
    told t = {};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_hasher *hasher = nullptr;
    gnomon_lsh *index = nullptr;
    o.metric = GNOMON_L2;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = s.d;
    o.functions.width = s.width;
    o.functions.count = s.l1 + s.l2;
    o.tables = 1;
    o.coarse = s.l1;
    o.fine = s.l2;
    std::vector<int32_t> values((size_t)(s.n * o.functions.count));
    const gnomon_matrix x =
        gnomon_matrix_rowmajor(const_cast<float *>(points.data()), GNOMON_F32, s.n, s.d);
    const gnomon_matrix q =
        gnomon_matrix_rowmajor(const_cast<float *>(queries.data()), GNOMON_F32, QUERIES, s.d);
    const gnomon_matrix v =
        gnomon_matrix_rowmajor(values.data(), GNOMON_I32, s.n, o.functions.count);
    double from = now();
    must(gnomon_hasher_create(gpu, &o.functions, &hasher), gpu);
    t.parameters = now() - from;
    from = now();
    must(gnomon_hasher_apply(gpu, hasher, &x, &v), gpu);
    t.hashing_moved = now() - from;
    gnomon_matrix there = x, values_there = v;
    BENCH_CHECK(cudaMalloc(&there.data, points.size() * 4));
    BENCH_CHECK(cudaMalloc(&values_there.data, values.size() * 4));
    BENCH_CHECK(cudaMemcpy(there.data, points.data(), points.size() * 4, cudaMemcpyHostToDevice));
    there.memory = values_there.memory = GNOMON_DEVICE_MEMORY;
    must(gnomon_hasher_apply(gpu, hasher, &there, &values_there), gpu);
    from = now();
    must(gnomon_hasher_apply(gpu, hasher, &there, &values_there), gpu);
    t.hashing = now() - from;
    BENCH_CHECK(cudaFree(there.data));
    BENCH_CHECK(cudaFree(values_there.data));
    o.functions.count = 0;
    must(gnomon_lsh_create(gpu, &o, &index), gpu);
    from = now();
    must(gnomon_lsh_add(index, &x), gpu);
    t.table = now() - from; /* with the hashing */
    gnomon_search_options search = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_lsh_work work = {};
    gnomon_neighbors found = {};
    work.struct_size = sizeof work;
    found.struct_size = sizeof found;
    search.metric = GNOMON_L2;
    search.k = 0;
    search.radius = radius;
    from = now();
    must(gnomon_lsh_query(cpu, index, &q, &search, nullptr, &found, &work), cpu);
    t.query = now() - from;
    t.candidates = (double)work.candidates / QUERIES;
    gnomon_neighbors_free(cpu, &found);
    gnomon_lsh_destroy(index);
    gnomon_hasher_destroy(hasher);
    return t;
}

static told median(std::vector<told> all)
{
    const auto of = [&](double told::*member) {
        std::vector<double> x;
        for (const told &t : all)
            x.push_back(t.*member);
        std::sort(x.begin(), x.end());
        return x[x.size() / 2];
    };
    return {of(&told::parameters), of(&told::hashing), of(&told::hashing_moved),
            of(&told::table),      of(&told::query),   of(&told::candidates)};
}

int main(int argc, char **argv)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *gpu = nullptr, *cpu = nullptr;
    o.device = "cuda";
    must(gnomon_context_create(&o, &gpu), nullptr);
    o.device = "cpu";
    must(gnomon_context_create(&o, &cpu), nullptr);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    bench_json json = bench_open("report", argc, argv);
    printf("milliseconds, the report's and ours; 'moved': with transfers; table of ours: points on "
           "the "
           "host to an index, hashing and all\n%8s %4s %3s %3s %17s %17s %17s %19s %17s %13s\n",
           "n", "d", "L1", "L2", "parameters", "hashing", "hashing, moved", "table", "1000 queries",
           "candidates");
    for (const size &s : sizes) {
        std::vector<float> x((size_t)(s.n * s.d)), q((size_t)(QUERIES * s.d));
        double square = 0;
        for (size_t i = 0; i < x.size(); i++)
            x[i] = bench_uniform(3, i);
        for (size_t i = 0; i < q.size(); i++) {
            const size_t row = i / (size_t)s.d * (size_t)(s.n / QUERIES);
            q[i] = x[row * (size_t)s.d + i % (size_t)s.d] + 0.02f * (bench_uniform(4, i) - 0.5f);
        }
        for (size_t j = 0; j < (size_t)s.d; j++)
            square += ((double)q[j] - x[j]) * ((double)q[j] - x[j]);
        const std::vector<double> x64(x.begin(), x.end()), q64(q.begin(), q.end());
        std::vector<told> theirs, ours;
        for (int round = 0; round < ROUNDS; round++) {
            theirs.push_back(run_report(s, x64, q64, 2 * std::sqrt(square)));
            ours.push_back(run_ours(gpu, cpu, s, x, q, 2 * std::sqrt(square)));
        }
        const told a = median(theirs), b = median(ours);
        printf("%8lld %4lld %3lld %3lld %8.3f %8.3f %8.3f %8.3f %8.2f %8.2f %9.1f %9.2f %8.2f "
               "%8.2f %6.1f %6.1f\n",
               (long long)s.n, (long long)s.d, (long long)s.l1, (long long)s.l2, a.parameters,
               b.parameters, a.hashing, b.hashing, a.hashing_moved, b.hashing_moved, a.table,
               b.table, a.query, b.query, a.candidates, b.candidates);
        bench_record(&json,
                     "\"n\": %lld, \"d\": %lld, \"l1\": %lld, \"l2\": %lld, \"width\": %g, "
                     "\"report\": {\"parameters_ms\": %.4f, \"hashing_ms\": %.4f, "
                     "\"hashing_moved_ms\": %.4f, "
                     "\"table_ms\": %.4f, \"query_ms\": %.4f, \"candidates\": %.3f}, "
                     "\"gnomon\": {\"parameters_ms\": %.4f, \"hashing_ms\": %.4f, "
                     "\"hashing_moved_ms\": %.4f, "
                     "\"table_ms\": %.4f, \"query_ms\": %.4f, \"candidates\": %.3f}",
                     (long long)s.n, (long long)s.d, (long long)s.l1, (long long)s.l2, s.width,
                     a.parameters, a.hashing, a.hashing_moved, a.table, a.query, a.candidates,
                     b.parameters, b.hashing, b.hashing_moved, b.table, b.query, b.candidates);
    }
    bench_close(&json);
    gnomon_context_destroy(cpu);
    gnomon_context_destroy(gpu);
    return 0;
}
