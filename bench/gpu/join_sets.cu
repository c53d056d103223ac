/* bench/gpu/join_sets.cu: exact self-joins of sets by jaccard distance on the GPU, through the
 * library's call, from sparse rows in the host's memory to pairs there, beside the CPU's in the
 * same run on all its cores, whose pairs they must be. A million sets of about 50 members, some
 * common and most rare, a tenth of them copies with a few members changed: the law of
 * bench/cpu/join.py. The floor is one copy of the rows over the link. */
#include "bench.cuh"
#include "rows.cuh"

#include <gnomon/join.h>

#include <math.h>
#include <time.h>

enum { COLS = 2000001 };

static rows make(int64_t n)
{
    rows r = {};
    r.count = n;
    BENCH_CHECK(cudaMallocHost(&r.offsets, (size_t)(n + 1) * 8));
    BENCH_CHECK(cudaMallocHost(&r.indices, (size_t)(n * 60) * 8));
    BENCH_CHECK(cudaMallocHost(&r.values, (size_t)(n * 60)));
    r.offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = 40 + below(21);
        for (int64_t e = 0; e < size; e++)
            r.indices[r.entries + e] =
                draw() < 0.7 ? below(COLS - 1) : (int64_t)(exp(draw() * log(COLS - 1.0)) * draw());
        r.offsets[i + 1] = r.entries += size;
    }
    for (int64_t i = 0; i < n; i++) {
        if (draw() >= 0.1) continue;
        const int64_t j = below(n), a = r.offsets[i + 1] - r.offsets[i];
        const int64_t b = r.offsets[j + 1] - r.offsets[j], same = a < b ? a : b;
        memmove(r.indices + r.offsets[i], r.indices + r.offsets[j], (size_t)same * 8);
        for (int64_t changed = below(8); changed > 0; changed--)
            r.indices[r.offsets[i] + below(same)] = below(COLS - 1);
    }
    memset(r.values, 1, (size_t)r.entries);
    return r;
}

static double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int keep(void *user, const gnomon_join_batch *batch)
{
    std::vector<gnomon_pair> *pairs = static_cast<std::vector<gnomon_pair> *>(user);
    pairs->insert(pairs->end(), batch->pairs, batch->pairs + batch->count);
    return 0;
}

struct timed {
    bench_time time;
    gnomon_join_result result;
    std::vector<gnomon_pair> pairs;
};

/* Median of so many calls after one that is not counted where there are several. */
static timed time_calls(gnomon_context *ctx, const gnomon_csr *sets, double threshold, bool count,
                        int runs)
{
    timed t = {};
    std::vector<double> ms;
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    options.metric = GNOMON_JACCARD;
    options.threshold = threshold;
    options.sink = count ? nullptr : keep;
    options.user = &t.pairs;
    for (int run = runs > 1 ? -1 : 0; run < runs; run++) {
        t.pairs.clear();
        t.result.struct_size = sizeof t.result;
        const double begin = now_ms();
        if (gnomon_join_csr(ctx, sets, nullptr, &options, &t.result) != GNOMON_OK) {
            printf("the call: %s\n", gnomon_last_error(ctx));
            exit(1);
        }
        if (run >= 0) ms.push_back(now_ms() - begin);
    }
    t.time = bench_summary(ms);
    return t;
}

static void time_join(bench_json *json, gnomon_context *gpu, gnomon_context *cpu, const rows *r,
                      double threshold, bool beside)
{
    const size_t bytes = (size_t)(r->count + 1) * 8 + (size_t)r->entries * 9;
    std::vector<int64_t> offsets(r->offsets, r->offsets + r->count + 1);
    std::vector<int64_t> indices(r->indices, r->indices + r->entries);
    std::vector<uint8_t> values(r->values, r->values + r->entries);
    const gnomon_csr locked = {r->count, COLS, r->offsets, r->indices, r->values, GNOMON_U8};
    const gnomon_csr plain = {r->count,       COLS,          offsets.data(),
                              indices.data(), values.data(), GNOMON_U8};
    void *there;
    BENCH_CHECK(cudaMalloc(&there, bytes));
    const bench_time floor = bench_run([&](int) {
        BENCH_CHECK(
            cudaMemcpyAsync(there, r->indices, (size_t)r->entries * 8, cudaMemcpyHostToDevice, 0));
        BENCH_CHECK(
            cudaMemcpyAsync(there, r->values, (size_t)r->entries, cudaMemcpyHostToDevice, 0));
        BENCH_CHECK(cudaMemcpyAsync(there, r->offsets, (size_t)(r->count + 1) * 8,
                                    cudaMemcpyHostToDevice, 0));
    });
    BENCH_CHECK(cudaFree(there));
    const timed call = time_calls(gpu, &plain, threshold, false, 7);
    const timed pinned = time_calls(gpu, &locked, threshold, false, 7);
    const timed count = time_calls(gpu, &locked, threshold, true, 7);
    int64_t wrong =
        call.result.pairs != pinned.result.pairs || call.result.pairs != count.result.pairs;
    double cpu_ms = 0;
    if (beside) {
        const timed theirs = time_calls(cpu, &plain, threshold, false, 1);
        cpu_ms = theirs.time.median_ms;
        if (theirs.pairs.size() != call.pairs.size()) wrong++;
        for (size_t at = 0; at < theirs.pairs.size() && at < call.pairs.size(); at++)
            wrong += memcmp(&theirs.pairs[at], &call.pairs[at], sizeof theirs.pairs[at]) != 0;
    }
    printf("%lld sets, %lld members, distance %.2f: the call %8.2f ms, page-locked %8.2f, counting "
           "%8.2f, the link %6.2f, the CPU (%d threads) %9.1f ms: %lld pairs of %lld that met%s\n",
           (long long)r->count, (long long)r->entries, threshold, call.time.median_ms,
           pinned.time.median_ms, count.time.median_ms, floor.median_ms,
           gnomon_context_threads(cpu), cpu_ms, (long long)call.result.pairs,
           (long long)call.result.compared, wrong ? "  WRONG" : "");
    bench_record(json,
                 "\"sets\": %lld, \"members\": %lld, \"threshold\": %.17g, \"pairs\": %lld, "
                 "\"met\": %lld, \"wrong\": %lld, \"ms\": %.4f, \"least_ms\": %.4f, \"runs\": %d, "
                 "\"pinned_ms\": %.4f, \"count_ms\": %.4f, \"link_ms\": %.4f, \"cpu_ms\": %.2f, "
                 "\"cpu_threads\": %d",
                 (long long)r->count, (long long)r->entries, threshold,
                 (long long)call.result.pairs, (long long)call.result.compared, (long long)wrong,
                 call.time.median_ms, call.time.least_ms, call.time.runs, pinned.time.median_ms,
                 count.time.median_ms, floor.median_ms, cpu_ms, gnomon_context_threads(cpu));
}

static gnomon_context *open_context(const char *device)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    options.device = device;
    if (gnomon_context_create(&options, &ctx) == GNOMON_OK) return ctx;
    fprintf(stderr, "%s\n", gnomon_last_error(nullptr));
    exit(1);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    bench_json json = bench_open("join_sets", argc, argv);
    seed = 5;
    gnomon_context *gpu = open_context("cuda"), *cpu = open_context("cpu");
    const int64_t n = getenv("BENCH_N") ? atoll(getenv("BENCH_N")) : 1000000;
    const rows r = make(n);
    time_join(&json, gpu, cpu, &r, 0.2, true);
    time_join(&json, gpu, cpu, &r, 0.5, getenv("BENCH_CPU") != nullptr);
    time_join(&json, gpu, cpu, &r, 0.8, false);
    bench_close(&json);
    gnomon_context_destroy(gpu);
    gnomon_context_destroy(cpu);
    return 0;
}
