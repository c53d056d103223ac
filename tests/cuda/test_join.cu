/* Joins on the GPU beside the CPU's, through the library: the same pairs in the same order with the
 * same bits, wherever the points lie and in however many pieces they come; by hashing too, and in
 * bands. Exits with 77 where there is no GPU. GNOMON_TEST_REDUCED=1 runs a part, the argument
 * exact or hashes those alone. */
#include <gnomon/join.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t error_ = (call);                                               \
        if (error_ != cudaSuccess) {                                               \
            printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

static uint64_t state = 1;

static double draw()
{
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return ((double)((z ^ z >> 31) >> 12) + 0.5) * 0x1p-52;
}

static double normal()
{
    return sqrt(-2 * log(draw())) * cos(6.283185307179586 * draw());
}

enum law {
    NORMAL,
    OFFSET,
    TWINS,
    LARGE,
    TINY,
    WHOLE,
    CROWD /* half of all points are one */,
    LAWS,
    BALL /* a tenth of all points are near each other */
};
static const char *const laws[] = {"normal", "offset", "twins", "large", "tiny",
                                   "whole",  "crowd",  "",      "ball"};
enum place { PAGEABLE, PINNED, DEVICE, PLACES };

static double value(law how, bool doubles, int64_t row, double x)
{
    switch (how) {
    case OFFSET:
        return x + 1000;
    case LARGE:
        return doubles ? x * 0x1p480 : x * 1e30;
    case TINY:
        return doubles ? x * 1e-250 : x * 1e-38;
    case WHOLE:
        return floor(8 * x);
    case CROWD:
        return row % 2 ? 0.25 : x;
    default:
        return x;
    }
}

struct points {
    std::vector<char> bytes;
    gnomon_matrix host;
    void *block;
    gnomon_matrix placed;
};

static points make(int64_t n, int64_t d, gnomon_dtype dtype, law how, bool by_cols, place where)
{
    points p;
    const int64_t size = (int64_t)gnomon_dtype_size(dtype);
    const int64_t line = (by_cols ? n : d) + 3;
    p.bytes.assign((size_t)(line * (by_cols ? d : n) * size + 8), (char)0xff);
    p.host = {p.bytes.data(), dtype, GNOMON_HOST, n, d, by_cols ? 1 : line, by_cols ? line : 1};
    std::vector<double> centre((size_t)d + 1);
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            for (double &c : centre)
                c = normal();
        double near = how == TWINS ? i % 2 : 0.4;
        if (how == BALL) {
            near = 0.1;
            if (i % 40 == 0)
                for (double &c : centre)
                    c = 0.5;
            if (i % 40 < 4) near = 0.2;
        }
        for (int64_t j = 0; j < d; j++) {
            const double x =
                value(how, dtype == GNOMON_F64, i, centre[(size_t)j] + near * normal());
            const int64_t at = i * p.host.row_stride + j * p.host.col_stride;
            if (dtype == GNOMON_F64)
                reinterpret_cast<double *>(p.bytes.data())[at] = x;
            else if (dtype == GNOMON_F32)
                reinterpret_cast<float *>(p.bytes.data())[at] = (float)x;
            else
                reinterpret_cast<uint8_t *>(p.bytes.data())[at] = (uint8_t)fabs(20 * x);
        }
    }
    if (where == PAGEABLE)
        p.block = malloc(p.bytes.size());
    else if (where == PINNED)
        MUST(cudaMallocHost(&p.block, p.bytes.size()));
    else
        MUST(cudaMalloc(&p.block, p.bytes.size()));
    MUST(cudaMemcpy(p.block, p.bytes.data(), p.bytes.size(), cudaMemcpyDefault));
    p.placed = p.host;
    p.placed.data = p.block;
    p.placed.memory = where == DEVICE ? GNOMON_CUDA : GNOMON_HOST;
    return p;
}

static void drop(points *p, place where)
{
    if (where == PAGEABLE)
        free(p->block);
    else if (where == PINNED)
        MUST(cudaFreeHost(p->block));
    else
        MUST(cudaFree(p->block));
}

struct found {
    std::vector<gnomon_pair> pairs;
    std::vector<int64_t> p_counts, q_counts;
    int64_t rows_done, late; /* pairs of rows that had been told complete */
    gnomon_join_result result;
    gnomon_status status;
};

static int gather(void *user, const gnomon_join_batch *batch)
{
    found *f = static_cast<found *>(user);
    for (int64_t at = 0; at < batch->count; at++)
        if (batch->pairs[at].i < f->rows_done) f->late++;
    f->pairs.insert(f->pairs.end(), batch->pairs, batch->pairs + batch->count);
    if (batch->rows_done < f->rows_done) f->late++;
    f->rows_done = batch->rows_done;
    return 0;
}

static found join(gnomon_context *ctx, const gnomon_matrix *p, const gnomon_matrix *q,
                  gnomon_join_options options, bool counts)
{
    found f = {};
    f.result.struct_size = sizeof f.result;
    if (counts) {
        f.p_counts.assign((size_t)p->rows + 1, 0);
        f.q_counts.assign((size_t)(q ? q : p)->rows + 1, 0);
        options.p_counts = f.p_counts.data();
        if (q) options.q_counts = f.q_counts.data();
    }
    options.sink = gather;
    options.user = &f;
    f.status = gnomon_join(ctx, p, q, &options, &f.result);
    if (f.status != GNOMON_OK) printf("  (%s)\n", gnomon_last_error(ctx));
    return f;
}

static bool same(const found &a, const found &b)
{
    return a.status == b.status && a.pairs.size() == b.pairs.size() && a.p_counts == b.p_counts &&
           a.q_counts == b.q_counts && a.late == 0 && b.late == 0 &&
           a.result.pairs == b.result.pairs && a.result.complete == b.result.complete &&
           a.result.rows_done == b.result.rows_done &&
           (a.pairs.empty() ||
            memcmp(a.pairs.data(), b.pairs.data(), a.pairs.size() * sizeof a.pairs[0]) == 0);
}

struct job {
    gnomon_metric metric;
    gnomon_dtype p, q;
    int64_t n, m, d; /* m 0: P with itself */
    law how;
    bool by_cols;
    place where;
    double share;      /* of pairs */
    double recall = 0; /* 0: an exact join */
};

static gnomon_context *cpu, *gpu, *small, *medium, *tight;

static double threshold_of(const job &c, const points &p, const points *q)
{
    /* the distance of a pair among some, so that one falls on it */
    gnomon_matrix few = p.host, others = q ? q->host : p.host;
    few.rows = few.rows < 30 ? few.rows : 30;
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors all = {};
    all.struct_size = sizeof all;
    options.metric = c.metric;
    options.k = others.rows;
    if (!q) options.exclude = 0, options.k--;
    if (few.rows == 0 || options.k < 1) return 1;
    if (gnomon_neighbors_exact(cpu, &others, &few, &options, &all) != GNOMON_OK) {
        printf("%s\n", gnomon_last_error(cpu));
        exit(1);
    }
    std::vector<double> distances(all.distances, all.distances + few.rows * options.k);
    gnomon_neighbors_free(cpu, &all);
    std::sort(distances.begin(), distances.end());
    const size_t at = (size_t)(c.share * (double)(distances.size() - 1));
    return c.metric == GNOMON_IP ? distances[distances.size() - 1 - at] : distances[at];
}

static int wrong(const job &c, const char *what, double threshold, const found &want,
                 const found &got)
{
    if (same(want, got)) return 0;
    printf(
        "FAILED %s: %s, %s, types %s %s, %lld x %lld x %lld, place %d, threshold %.17g: %zu pairs "
        "(%s), %zu wanted; rows done %lld, %lld wanted; %lld late\n",
        what, gnomon_metric_name(c.metric), laws[c.how], gnomon_dtype_name(c.p),
        gnomon_dtype_name(c.q), (long long)c.n, (long long)c.m, (long long)c.d, (int)c.where,
        threshold, got.pairs.size(), gnomon_status_name(got.status), want.pairs.size(),
        (long long)got.result.rows_done, (long long)want.result.rows_done, (long long)got.late);
    return 1;
}

static int run(const job &c)
{
    const uint64_t before = state;
    points p = make(c.n, c.d, c.p, c.how, c.by_cols, c.where), q;
    if (c.recall > 0) state = before; /* points of Q are P's */
    if (c.m) q = make(c.m, c.d, c.q, c.how, !c.by_cols, c.where);
    const double threshold = threshold_of(c, p, c.m ? &q : nullptr);
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    options.metric = c.metric;
    options.threshold = threshold;
    gnomon_context *const parts = c.recall > 0 ? medium : small;
    if (c.recall > 0) {
        options.method = GNOMON_JOIN_LSH;
        options.recall = c.recall;
        options.seed = (uint64_t)c.n;
    }
    const gnomon_matrix *q_host = c.m ? &q.host : nullptr, *q_placed = c.m ? &q.placed : nullptr;
    found want = join(cpu, &p.host, q_host, options, true);
    const found all = join(gpu, &p.placed, q_placed, options, true);
    int failed = wrong(c, "whole", threshold, want, all);
    if (c.recall > 0 && want.status != GNOMON_OK) {
        printf("FAILED: there is no such join\n");
        return 1;
    }
    if (c.recall > 0 && (all.result.compared != want.result.compared ||
                         all.result.method != GNOMON_JOIN_LSH || all.result.recall != c.recall)) {
        printf("FAILED: %lld pairs shared a bucket, %lld wanted; method %d\n",
               (long long)all.result.compared, (long long)want.result.compared,
               (int)all.result.method);
        failed++;
    }
    failed +=
        wrong(c, "in pieces", threshold, want, join(parts, &p.placed, q_placed, options, true));
    failed +=
        wrong(c, "little room", threshold, want, join(tight, &p.placed, q_placed, options, true));
    /* counting alone */
    gnomon_join_result result = {};
    result.struct_size = sizeof result;
    for (gnomon_context *ctx : {gpu, parts})
        if (gnomon_join(ctx, &p.placed, q_placed, &options, &result) != GNOMON_OK ||
            result.pairs != (int64_t)want.pairs.size() || !result.complete) {
            printf("FAILED count: %lld, %zu wanted\n", (long long)result.pairs, want.pairs.size());
            failed++;
        }
    options.band_rows = c.n / 7 + 1;
    if (c.recall > 0)
        failed +=
            wrong(c, "in bands", threshold, want, join(gpu, &p.placed, q_placed, options, true));
    options.band_rows = 0;
    options.first_row = c.n / 3;
    want = join(cpu, &p.host, q_host, options, true);
    failed +=
        wrong(c, "later rows", threshold, want, join(gpu, &p.placed, q_placed, options, true));
    failed += wrong(c, "later rows in pieces", threshold, want,
                    join(parts, &p.placed, q_placed, options, true));
    options.first_row = 0;
    options.max_pairs = (int64_t)want.pairs.size() / 2 + 1;
    want = join(cpu, &p.host, q_host, options, true);
    failed += wrong(c, "some", threshold, want, join(gpu, &p.placed, q_placed, options, true));
    failed += wrong(c, "some in pieces", threshold, want,
                    join(parts, &p.placed, q_placed, options, true));
    options.top = options.max_pairs;
    options.max_pairs = 0;
    want = join(cpu, &p.host, q_host, options, false);
    failed += wrong(c, "closest", threshold, want, join(gpu, &p.placed, q_placed, options, false));
    if (c.recall == 0) {
        options.threshold = c.metric == GNOMON_IP ? -INFINITY : INFINITY;
        options.top = 50;
        want = join(cpu, &p.host, q_host, options, false);
        failed += wrong(c, "closest of all", options.threshold, want,
                        join(gpu, &p.placed, q_placed, options, false));
    }
    if (getenv("GNOMON_TEST_VERBOSE"))
        printf("%-7s %-7s %5lld x %5lld x %5lld place %d: %zu pairs, %s: %s\n",
               gnomon_metric_name(c.metric), laws[c.how], (long long)c.n, (long long)c.m,
               (long long)c.d, (int)c.where, all.pairs.size(), all.result.why,
               failed ? "FAILED" : "passed");
    drop(&p, c.where);
    if (c.m) drop(&q, c.where);
    return failed;
}

/* Refused alike, with the same words. */
static int refusals()
{
    int failed = 0;
    const double bad[] = {NAN, INFINITY, 0x1p501};
    for (int which = 0; which < 2; which++) {
        for (double x : bad) {
            points p = make(700, 40, GNOMON_F64, NORMAL, false, PAGEABLE);
            points q = make(600, 40, GNOMON_F64, NORMAL, true, PAGEABLE);
            gnomon_matrix *m = which ? &q.placed : &p.placed;
            static_cast<double *>(m->data)[301 * m->row_stride + 39 * m->col_stride] = x;
            static_cast<double *>(m->data)[400 * m->row_stride + 2 * m->col_stride] = x;
            gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
            const gnomon_status want = gnomon_join(cpu, &p.placed, &q.placed, &options, nullptr);
            char text[512];
            snprintf(text, sizeof text, "%s", gnomon_last_error(cpu));
            for (gnomon_context *ctx : {gpu, small}) {
                const gnomon_status got = gnomon_join(ctx, &p.placed, &q.placed, &options, nullptr);
                if (got == want && strcmp(text, gnomon_last_error(ctx)) == 0) continue;
                printf("FAILED: \"%s\", wanted \"%s\"\n", gnomon_last_error(ctx), text);
                failed++;
            }
            drop(&p, PAGEABLE);
            drop(&q, PAGEABLE);
        }
    }
    return failed;
}

static gnomon_context *open_context(gnomon_device device, int64_t memory)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    o.device = device;
    if (memory) o.memory_limit = memory;
    return gnomon_context_create(&o, &ctx) == GNOMON_OK ? ctx : nullptr;
}

int main(int argc, char **argv)
{
    gpu = open_context(GNOMON_DEVICE_CUDA, 0);
    if (!gpu) {
        printf("skipped: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    setenv("GNOMON_CUDA_MEMORY", "4", 1);
    small = open_context(GNOMON_DEVICE_CUDA, 0);
    setenv("GNOMON_CUDA_MEMORY", "24", 1);
    medium = open_context(GNOMON_DEVICE_CUDA, 0);
    unsetenv("GNOMON_CUDA_MEMORY");
    tight = open_context(GNOMON_DEVICE_CUDA, 1 << 20);
    cpu = open_context(GNOMON_DEVICE_CPU, 0);
    if (!small || !medium || !tight || !cpu) {
        printf("%s\n", gnomon_last_error(nullptr));
        return 1;
    }
    const bool reduced = getenv("GNOMON_TEST_REDUCED") != nullptr;
    const gnomon_dtype f32 = GNOMON_F32, f64 = GNOMON_F64, u8 = GNOMON_U8;
    std::vector<job> jobs;
    for (gnomon_metric metric : {GNOMON_L2, GNOMON_COSINE, GNOMON_IP}) {
        for (int how = 0; how < LAWS; how++) {
            jobs.push_back({metric, f32, f32, 1500, 0, 70, (law)how, false, PAGEABLE, 0.003});
            jobs.push_back({metric, f64, f64, 900, 1100, 33, (law)how, false, PAGEABLE, 0.003});
        }
        for (int where = 0; where < PLACES; where++) {
            jobs.push_back(
                {metric, f32, f64, 800, 1300, 129, NORMAL, where == 1, (place)where, 0.01});
            jobs.push_back({metric, u8, u8, 1300, 0, 50, NORMAL, true, (place)where, 0.01});
        }
        jobs.push_back({metric, f64, f64, 3000, 0, 150, NORMAL, false, PAGEABLE, 0.002});
        jobs.push_back({metric, f64, f64, 3000, 0, 150, NORMAL, false, DEVICE, 0.002});
        jobs.push_back({metric, f32, f32, 40, 3000, 400, NORMAL, false, PAGEABLE, 0.01});
        jobs.push_back({metric, f32, f32, 3000, 40, 400, NORMAL, false, PAGEABLE, 0.01});
        jobs.push_back({metric, f32, f32, 600, 0, 20, NORMAL, false, PAGEABLE, 1.0});
        for (int64_t n : {0, 1, 2, 3})
            jobs.push_back({metric, f32, f32, n, 0, 20, NORMAL, false, PAGEABLE, 1.0});
        jobs.push_back({metric, f32, f32, 0, 5, 20, NORMAL, false, PAGEABLE, 1.0});
        jobs.push_back({metric, f32, f32, 3, 5, 1, NORMAL, false, PAGEABLE, 0.5});
    }
    for (place where : {PAGEABLE, PINNED, DEVICE}) {
        jobs.push_back({GNOMON_HAMMING, u8, u8, 1300, 0, 32, TWINS, false, where, 0.01});
        jobs.push_back({GNOMON_HAMMING, u8, u8, 700, 900, 61, NORMAL, true, where, 0.01});
    }
    /* thresholds within the groups of four points, or a little beyond */
    for (place where : {PAGEABLE, PINNED, DEVICE}) {
        const double recall = where == PINNED ? 0.5 : 0.95;
        const bool by_cols = where == PINNED;
        for (gnomon_metric metric : {GNOMON_L2, GNOMON_COSINE}) {
            jobs.push_back({metric, f32, f32, 2500, 0, 70, NORMAL, by_cols, where, 9e-4, recall});
            jobs.push_back({metric, f64, f64, 900, 1100, 33, TWINS, by_cols, where, 1e-3, recall});
            jobs.push_back({metric, f32, f64, 800, 1300, 300, NORMAL, false, where, 4e-3, recall});
            jobs.push_back({metric, u8, u8, 1300, 0, 50, NORMAL, true, where, 2e-3, recall});
        }
        jobs.push_back({GNOMON_HAMMING, u8, u8, 1300, 0, 32, TWINS, false, where, 1e-3, recall});
        jobs.push_back({GNOMON_HAMMING, u8, u8, 700, 900, 61, NORMAL, true, where, 4e-3, recall});
    }
    for (law how : {OFFSET, LARGE, TINY, WHOLE})
        jobs.push_back({GNOMON_L2, f32, f32, 1500, 0, 40, how, false, PAGEABLE, 1e-3, 0.9});
    jobs.push_back({GNOMON_COSINE, f32, f32, 700, 0, 40, CROWD, false, PAGEABLE, 3e-3, 0.9});
    jobs.push_back({GNOMON_L2, f32, f32, 2200, 0, 20, CROWD, false, PAGEABLE, 3e-3, 0.9});
    jobs.push_back({GNOMON_L2, f32, f32, 5000, 0, 128, BALL, false, DEVICE, 4e-4, 0.95});
    jobs.push_back({GNOMON_L2, f32, f32, 3000, 2000, 20, BALL, false, PAGEABLE, 4e-4, 0.95});
    jobs.push_back({GNOMON_L2, f32, f32, 30, 20, 40, NORMAL, false, PAGEABLE, 0.2, 0.95});
    jobs.push_back({GNOMON_L2, f32, f32, 2, 0, 40, NORMAL, false, PAGEABLE, 1.0, 0.95});
    int failed = refusals(), count = 0;
    const char *only = argc > 1 ? argv[1] : "";
    for (size_t at = 0; at < jobs.size(); at += reduced ? 5 : 1) {
        if (strcmp(only, jobs[at].recall > 0 ? "exact" : "hashes") == 0) continue;
        failed += run(jobs[at]);
        count++;
    }
    printf("%d joins, %d failures\n", count, failed);
    gnomon_context *const all[] = {gpu, small, medium, tight, cpu};
    for (gnomon_context *ctx : all)
        gnomon_context_destroy(ctx);
    return failed > 0;
}
