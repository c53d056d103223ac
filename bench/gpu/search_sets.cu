/* Exact search of sets by jaccard distance on the GPU, through the library's call, from sparse rows
 * in the host's memory to answers there, beside the CPU's in the same run on all its cores, to some
 * of the queries, whose answers they must be. The sets have about 50 members, some common and most
 * rare; half of the queries are base sets with some members changed. The floor is one copy of the
 * rows over the link. */
#include "bench.cuh"
#include "rows.cuh"

#include <gnomon/search.h>

#include <math.h>
#include <time.h>

enum { COLS = 2000001, MOST = 60 };

/* Half of them like one of 'like', which may be NULL. */
static rows make(int64_t n, const rows *like)
{
    rows r = {};
    r.count = n;
    BENCH_CHECK(cudaMallocHost(&r.offsets, (size_t)(n + 1) * 8));
    BENCH_CHECK(cudaMallocHost(&r.indices, (size_t)(n * MOST) * 8));
    BENCH_CHECK(cudaMallocHost(&r.values, (size_t)(n * MOST)));
    r.offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t *to = r.indices + r.entries, size = 40 + below(MOST - 39);
        for (int64_t e = 0; e < size; e++)
            to[e] =
                draw() < 0.7 ? below(COLS - 1) : (int64_t)(exp(draw() * log(COLS - 1.0)) * draw());
        if (like && i % 2) {
            const int64_t j = below(like->count), there = like->offsets[j];
            size = like->offsets[j + 1] - there;
            memcpy(to, like->indices + there, (size_t)size * 8);
            for (int64_t changed = below(30); changed > 0; changed--)
                to[below(size)] = below(COLS - 1);
        }
        r.offsets[i + 1] = r.entries += size;
    }
    memset(r.values, 1, (size_t)r.entries);
    return r;
}

static gnomon_csr view(const rows *r)
{
    return {r->count, COLS, r->offsets, r->indices, r->values, GNOMON_U8};
}

static double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Milliseconds of a call. */
static double search(gnomon_context *ctx, const rows *base, const rows *queries, int64_t k,
                     double radius, gnomon_neighbors *out)
{
    const gnomon_csr b = view(base), q = view(queries);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = GNOMON_JACCARD;
    o.k = k;
    o.radius = radius;
    *out = {};
    out->struct_size = sizeof *out;
    const double begin = now_ms();
    if (gnomon_neighbors_exact_csr(ctx, &b, &q, &o, out) == GNOMON_OK) return now_ms() - begin;
    fprintf(stderr, "search: %s\n", gnomon_last_error(ctx));
    exit(1);
}

static void measure(bench_json *json, gnomon_context *gpu, gnomon_context *cpu, const rows *base,
                    const rows *all, int64_t count, int64_t k, double radius)
{
    rows queries = *all;
    queries.count = count;
    queries.entries = all->offsets[count];
    std::vector<double> ms;
    gnomon_neighbors out = {}, want;
    for (int run = -1; run < 7; run++) {
        gnomon_neighbors_free(gpu, &out);
        const double one = search(gpu, base, &queries, k, radius, &out);
        if (run >= 0) ms.push_back(one);
    }
    const bench_time t = bench_summary(ms);
    rows some = queries;
    some.count = count < 200 ? count : 200;
    some.entries = all->offsets[some.count];
    const double cpu_ms = search(cpu, base, &some, k, radius, &want);
    int64_t wrong = 0;
    for (int64_t i = 0; i <= some.count; i++)
        wrong += want.offsets[i] != out.offsets[i];
    for (int64_t e = 0; e < want.offsets[some.count] && wrong == 0; e++)
        wrong += want.ids[e] != out.ids[e] ||
                 memcmp(&want.distances[e], &out.distances[e], sizeof *want.distances) != 0;
    const size_t bytes = (size_t)base->entries * 9 + (size_t)(base->count + 1) * 8;
    void *there;
    BENCH_CHECK(cudaMalloc(&there, bytes));
    const bench_time floor = bench_run([&](int) {
        BENCH_CHECK(cudaMemcpyAsync(there, base->indices, (size_t)base->entries * 8,
                                    cudaMemcpyHostToDevice, 0));
        BENCH_CHECK(
            cudaMemcpyAsync(there, base->values, (size_t)base->entries, cudaMemcpyHostToDevice, 0));
        BENCH_CHECK(cudaMemcpyAsync(there, base->offsets, (size_t)(base->count + 1) * 8,
                                    cudaMemcpyHostToDevice, 0));
    });
    BENCH_CHECK(cudaFree(there));
    printf("%6lld x %8lld sets, k %3lld radius %.2f: %9.2f ms, the link %7.2f, %5.2fx; the CPU (%d "
           "threads), %lld queries: %9.1f ms%s\n",
           (long long)count, (long long)base->count, (long long)k, radius, t.median_ms,
           floor.median_ms, t.median_ms / floor.median_ms, gnomon_context_threads(cpu),
           (long long)some.count, cpu_ms, wrong ? "  WRONG" : "");
    fflush(stdout);
    bench_record(json,
                 "\"queries\": %lld, \"base\": %lld, \"members\": %lld, \"k\": %lld, \"radius\": "
                 "%.3f, \"answers\": %lld, \"wrong\": %lld, \"ms\": %.4f, \"least_ms\": %.4f, "
                 "\"runs\": %d, \"link_ms\": %.4f, \"cpu_queries\": %lld, \"cpu_ms\": %.2f, "
                 "\"cpu_threads\": %d",
                 (long long)count, (long long)base->count, (long long)base->entries, (long long)k,
                 radius, (long long)out.offsets[count], (long long)wrong, t.median_ms, t.least_ms,
                 t.runs, floor.median_ms, (long long)some.count, cpu_ms,
                 gnomon_context_threads(cpu));
    gnomon_neighbors_free(gpu, &out);
    gnomon_neighbors_free(cpu, &want);
}

int main(int argc, char **argv)
{
    gnomon_context *cpu, *gpu;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    bench_json json = bench_open("search_sets", argc, argv);
    seed = 11;
    options.device = "cpu";
    if (gnomon_context_create(&options, &cpu) != GNOMON_OK) return 1;
    options.device = "cuda";
    if (gnomon_context_create(&options, &gpu) != GNOMON_OK) {
        printf("no GPU: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    const rows base = make(1000000, nullptr), queries = make(10000, &base);
    measure(&json, gpu, cpu, &base, &queries, 1, 10, 0);
    measure(&json, gpu, cpu, &base, &queries, 1000, 10, 0);
    measure(&json, gpu, cpu, &base, &queries, 10000, 10, 0);
    measure(&json, gpu, cpu, &base, &queries, 1000, 1000, 0);
    measure(&json, gpu, cpu, &base, &queries, 10000, 0, 0.5);
    bench_close(&json);
    gnomon_context_destroy(cpu);
    gnomon_context_destroy(gpu);
    return 0;
}
