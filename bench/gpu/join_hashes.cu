/* bench/gpu/join_hashes.cu: self-joins with a guaranteed recall on the GPU, by hashing, beside
 * exact ones: n points of 128 dimensions in clusters, each with about 10 others near it, whose
 * sizes and order are random. Easy clusters are about nine times as far apart as wide, hard ones
 * twice. The library's call, from points to pairs in the host's memory: of points in the GPU's
 * memory and in page-locked memory of the host, and with pairs counted only; then with the choice
 * left to the library, whose tables are those that cost a GPU least; of easy ones also from
 * page-locked memory with so little of the GPU's memory that points and keys come in pieces. The
 * floor is one read of the points. */
#include "bench.cuh"

#include <gnomon/join.h>

#include <math.h>
#include <time.h>

enum { D = 128, NEAR = 10 };

static __global__ void clusters_kernel(float *x, int64_t n, float spread)
{
    const int64_t clusters = n / NEAR > 0 ? n / NEAR : 1;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < n * D;
         at += (int64_t)gridDim.x * blockDim.x) {
        const uint64_t of = bench_mix((uint64_t)(at / D)) % (uint64_t)clusters * D + at % D;
        float v[2];
        for (int which = 0; which < 2; which++) {
            const uint64_t i = which ? (uint64_t)at : of, seed = which ? 11 : 12;
            v[which] = sqrtf(-2.0f * logf(bench_uniform(seed, 2 * i))) *
                       cospif(2.0f * bench_uniform(seed, 2 * i + 1));
        }
        x[at] = v[0] + spread * v[1];
    }
}

static int keep(void *user, const gnomon_join_batch *batch)
{
    std::vector<gnomon_pair> *all = static_cast<std::vector<gnomon_pair> *>(user);
    all->insert(all->end(), batch->pairs, batch->pairs + batch->count);
    return 0;
}

static double now_ms()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

struct outcome {
    bench_time time;
    gnomon_join_result result;
};

/* Median of calls after one that is not counted. */
static outcome time_call(gnomon_context *ctx, const gnomon_matrix *points,
                         gnomon_join_options options, std::vector<gnomon_pair> *pairs,
                         double seconds)
{
    outcome o = {};
    std::vector<double> ms;
    double spent = 0;
    o.result.struct_size = sizeof o.result;
    options.sink = pairs ? keep : nullptr;
    options.user = pairs;
    for (int run = -1; run < 9 && (run < 1 || (run < 3 && spent < 0.5) || spent < seconds); run++) {
        if (pairs) pairs->clear();
        const double begin = now_ms();
        if (gnomon_join(ctx, points, nullptr, &options, &o.result) != GNOMON_OK) {
            printf("the call: %s\n", gnomon_last_error(ctx));
            exit(1);
        }
        const double one = now_ms() - begin;
        if (run < 0) continue;
        ms.push_back(one);
        spent += one * 1e-3;
    }
    o.time = bench_summary(ms);
    return o;
}

/* Pairs of both lists, which are in the same order; their distances must be the same bits. */
static int64_t common(const std::vector<gnomon_pair> &all, const std::vector<gnomon_pair> &some)
{
    int64_t both = 0;
    size_t a = 0, s = 0;
    while (a < all.size() && s < some.size()) {
        const gnomon_pair x = all[a], y = some[s];
        if (x.i == y.i && x.j == y.j) {
            both += memcmp(&x.distance, &y.distance, 8) == 0;
            a++;
            s++;
        } else if (x.i < y.i || (x.i == y.i && x.j < y.j)) {
            a++;
        } else {
            s++;
        }
    }
    return both;
}

static void time_join(bench_json *json, gnomon_context *ctx, gnomon_context *little,
                      const char *kind, int64_t n, float spread, double threshold, double recall,
                      double seconds)
{
    const size_t bytes = (size_t)(n * D) * 4;
    float *x, *pinned;
    BENCH_CHECK(cudaMalloc(&x, bytes));
    BENCH_CHECK(cudaMallocHost(&pinned, bytes));
    clusters_kernel<<<4096, 256>>>(x, n, spread);
    BENCH_CHECK(cudaMemcpy(pinned, x, bytes, cudaMemcpyDeviceToHost));
    const double read_ms = bench_read_ms(x, bytes);
    const gnomon_matrix there = {x, GNOMON_F32, GNOMON_DEVICE_MEMORY, n, D, D, 1};
    const gnomon_matrix host = {pinned, GNOMON_F32, GNOMON_HOST, n, D, D, 1};
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    options.threshold = threshold;
    options.recall = recall;
    std::vector<gnomon_pair> all, some;
    outcome o[2][3]; /* exact, by hashing; on the GPU, page-locked, counted */
    for (int hashed = 0; hashed < 2; hashed++) {
        options.method = hashed ? GNOMON_JOIN_LSH : GNOMON_JOIN_EXACT;
        o[hashed][0] = time_call(ctx, &there, options, hashed ? &some : &all, seconds);
        o[hashed][1] = time_call(ctx, &host, options, hashed ? &some : &all, seconds);
        o[hashed][2] = time_call(ctx, &there, options, nullptr, seconds);
    }
    std::vector<gnomon_pair> pieces, left;
    outcome in_pieces = {}, counted = {};
    if (little) {
        in_pieces = time_call(little, &host, options, &pieces, seconds);
        counted = time_call(little, &host, options, nullptr, seconds);
        if (pieces.size() != some.size() || common(pieces, some) != (int64_t)some.size())
            printf("FAILED: %zu pairs in pieces, %zu at once\n", pieces.size(), some.size());
    }
    options.method = GNOMON_JOIN_AUTO;
    const outcome by_cost = time_call(ctx, &there, options, &left, seconds);
    const outcome by_cost_host = time_call(ctx, &host, options, &left, seconds);
    const outcome by_cost_count = time_call(ctx, &there, options, nullptr, seconds);
    const int64_t left_both = common(all, left);
    printf(
        "%-5s in pieces of %s MiB in all: %8.1f ms (%.2f times as long), counted %8.1f\n      by "
        "cost: %8.1f ms "
        "(page-locked %8.1f, counted %8.1f), reached %.5f, %lld wrong; shared a bucket %lld; %s: "
        "%s\n",
        kind, getenv("BENCH_LITTLE"), in_pieces.time.median_ms,
        in_pieces.time.median_ms / o[1][1].time.median_ms, counted.time.median_ms,
        by_cost.time.median_ms, by_cost_host.time.median_ms, by_cost_count.time.median_ms,
        (double)left_both / (double)(all.empty() ? 1 : all.size()),
        (long long)((int64_t)left.size() - left_both), (long long)by_cost.result.compared,
        gnomon_join_method_name(by_cost.result.method), by_cost.result.why);
    const int64_t both = common(all, some);
    const double reached = all.empty() ? 1 : (double)both / (double)all.size();
    const gnomon_join_result &r = o[1][0].result;
    printf("%-5s n %lld, threshold %g: %zu pairs; exact %8.1f ms (page-locked %8.1f, counted "
           "%8.1f)\n      recall %.3f: %8.1f ms (page-locked %8.1f, counted %8.1f), %.1f times as "
           "quick (%.1f, %.1f); reached %.5f, %lld wrong; one read %.2f ms\n      shared a bucket "
           "%lld, settled %lld; %s\n",
           kind, (long long)n, threshold, all.size(), o[0][0].time.median_ms,
           o[0][1].time.median_ms, o[0][2].time.median_ms, recall, o[1][0].time.median_ms,
           o[1][1].time.median_ms, o[1][2].time.median_ms,
           o[0][0].time.median_ms / o[1][0].time.median_ms,
           o[0][1].time.median_ms / o[1][1].time.median_ms,
           o[0][2].time.median_ms / o[1][2].time.median_ms, reached,
           (long long)((int64_t)some.size() - both), read_ms, (long long)r.compared,
           (long long)r.verified, r.why);
    bench_record(
        json,
        "\"kind\": \"%s\", \"n\": %lld, \"d\": %d, \"threshold\": %.17g, \"recall\": %.4f, "
        "\"reached\": %.6f, \"pairs\": %zu, \"found\": %zu, \"wrong\": %lld, \"compared\": %lld, "
        "\"verified\": %lld, \"read_ms\": %.4f, \"exact_ms\": %.4f, \"exact_pinned_ms\": %.4f, "
        "\"exact_count_ms\": %.4f, \"ms\": %.4f, \"pinned_ms\": %.4f, \"count_ms\": %.4f, "
        "\"runs\": %d, \"why\": \"%s\", \"pieces_mib\": %s, \"pieces_ms\": %.4f, "
        "\"pieces_count_ms\": %.4f, \"by_cost_ms\": "
        "%.4f, \"by_cost_pinned_ms\": %.4f, \"by_cost_count_ms\": %.4f, \"by_cost_reached\": %.6f, "
        "\"by_cost_wrong\": %lld, \"by_cost\": \"%s\", \"by_cost_why\": \"%s\"",
        kind, (long long)n, (int)D, threshold, recall, reached, all.size(), some.size(),
        (long long)((int64_t)some.size() - both), (long long)r.compared, (long long)r.verified,
        read_ms, o[0][0].time.median_ms, o[0][1].time.median_ms, o[0][2].time.median_ms,
        o[1][0].time.median_ms, o[1][1].time.median_ms, o[1][2].time.median_ms, o[1][0].time.runs,
        r.why, getenv("BENCH_LITTLE"), in_pieces.time.median_ms, counted.time.median_ms,
        by_cost.time.median_ms, by_cost_host.time.median_ms, by_cost_count.time.median_ms,
        (double)left_both / (double)(all.empty() ? 1 : all.size()),
        (long long)((int64_t)left.size() - left_both),
        gnomon_join_method_name(by_cost.result.method), by_cost.result.why);
    BENCH_CHECK(cudaFree(x));
    BENCH_CHECK(cudaFreeHost(pinned));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    bench_json json = bench_open("join_hashes", argc, argv);
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr, *little = nullptr;
    options.device = "cuda";
    setenv("BENCH_LITTLE", "512", 0);
    gnomon_status status = gnomon_context_create(&options, &ctx);
    setenv("GNOMON_CUDA_MEMORY", getenv("BENCH_LITTLE"), 1);
    if (status == GNOMON_OK) status = gnomon_context_create(&options, &little);
    if (status != GNOMON_OK) {
        printf("%s\n", gnomon_last_error(nullptr));
        return 1;
    }
    const double seconds = getenv("BENCH_SECONDS") ? atof(getenv("BENCH_SECONDS")) : 1;
    const int64_t n = getenv("BENCH_N") ? atoll(getenv("BENCH_N")) : 1000000;
    const char *only = getenv("BENCH_ONLY") ? getenv("BENCH_ONLY") : "";
    if (strcmp(only, "hard") != 0)
        time_join(&json, ctx, little, "easy", n, 0.1f, 1.8, 0.95, seconds);
    if (strcmp(only, "easy") != 0)
        time_join(&json, ctx, nullptr, "hard", n, 0.5f, 8.5, 0.95, seconds);
    bench_close(&json);
    gnomon_context_destroy(little);
    gnomon_context_destroy(ctx);
    return 0;
}
