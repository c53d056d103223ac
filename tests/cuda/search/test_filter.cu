/* Checks the filter and the verification of its candidates against the CPU's exact search: the same
 * pairs, the same distances to the last bit. GNOMON_TEST_REDUCED=N runs one case in N, for slow
 * checkers.
 */
#include "cuda/filter/filter.h"
#include "draw.cuh"
#include "must.cuh"

#include <gnomon/base.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#define GNOMON_MUST(ctx, call)                                                 \
    do {                                                                       \
        if ((call) != GNOMON_OK) {                                             \
            printf("%s:%d: %s\n", __FILE__, __LINE__, gnomon_last_error(ctx)); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

enum law {
    NORMAL,
    UNIFORM,
    OFFSET,   /* + 1000 */
    WHOLE,    /* small integers */
    TWINS,    /* each point a few times */
    LARGE,    /* near the largest numbers taken */
    TINY,     /* near the smallest */
    SPREAD,   /* lengths that differ by factors of thousands */
    OUTLIERS, /* some points very far away */
    ZEROS,    /* some points zero */
    LAWS
};
static const char *const laws[] = {"normal", "uniform", "offset", "whole",    "twins",
                                   "large",  "tiny",    "spread", "outliers", "zeros"};

enum layout { ROWS, COLS, GAPS, BACKWARDS, LAYOUTS };

static bool is_float(gnomon_dtype dtype)
{
    return dtype == GNOMON_F64 || dtype == GNOMON_F32 || dtype == GNOMON_F16 ||
           dtype == GNOMON_BF16;
}

static void put(void *data, gnomon_dtype dtype, int64_t at, double x)
{
    switch (dtype) {
    case GNOMON_F32:
        static_cast<float *>(data)[at] = (float)x;
        break;
    case GNOMON_F64:
        static_cast<double *>(data)[at] = x;
        break;
    case GNOMON_F16:
        static_cast<__half *>(data)[at] = __double2half(x);
        break;
    case GNOMON_BF16:
        static_cast<__nv_bfloat16 *>(data)[at] = __float2bfloat16((float)x);
        break;
    case GNOMON_I8:
        static_cast<int8_t *>(data)[at] = (int8_t)x;
        break;
    case GNOMON_U8:
        static_cast<uint8_t *>(data)[at] = (uint8_t)(x < 0 ? -x : x);
        break;
    case GNOMON_I16:
        static_cast<int16_t *>(data)[at] = (int16_t)x;
        break;
    case GNOMON_U16:
        static_cast<uint16_t *>(data)[at] = (uint16_t)(x < 0 ? -x : x);
        break;
    case GNOMON_I32:
        static_cast<int32_t *>(data)[at] = (int32_t)x;
        break;
    case GNOMON_U32:
        static_cast<uint32_t *>(data)[at] = (uint32_t)(x < 0 ? -x : x);
        break;
    case GNOMON_I64:
        static_cast<int64_t *>(data)[at] = (int64_t)x;
        break;
    default:
        static_cast<uint64_t *>(data)[at] = (uint64_t)(x < 0 ? -x : x);
    }
}

/* Points here and on the GPU. */
struct points {
    std::vector<uint8_t> bytes;
    gnomon_matrix host, there;
    void *data;
};

static double value(law how, gnomon_dtype dtype, int64_t row, int64_t, double x)
{
    const bool doubles = dtype == GNOMON_F64, singles = doubles || dtype == GNOMON_F32;
    if (!is_float(dtype)) return floor(x * 20);
    switch (how) {
    case UNIFORM:
        return 0.5 + 0.5 * erf(x * 0.7071067811865476);
    case OFFSET:
        return x + 1000;
    case WHOLE:
        return floor(x * 8);
    case LARGE:
        return doubles ? x * 0x1p490 : singles ? x * 1e30 : x * 1e3;
    case TINY:
        return doubles ? x * 1e-220 : singles ? x * 1e-38 : x * 0x1p-14;
    case SPREAD:
        return x * exp(3 * sin((double)row * 12.9898));
    case OUTLIERS:
        return row % 50 == 7 ? x * (doubles ? 1e80 : singles ? 1e15 : 1e3) : x;
    case ZEROS:
        return row % 9 == 4 ? 0 : x;
    default:
        return x;
    }
}

static points make(int64_t n, int64_t d, gnomon_dtype dtype, law how, layout lies)
{
    points p;
    const int64_t size = (int64_t)gnomon_dtype_size(dtype), gap = lies == GAPS ? 3 : 1;
    const bool by_cols = lies == COLS;
    const int64_t line = (by_cols ? n : d) * gap + (lies == GAPS ? 5 : 0);
    const int64_t elements = line * (by_cols ? d : n) + 1;
    p.bytes.assign((size_t)(elements * size), 0xff);
    int64_t rs = by_cols ? gap : line, cs = by_cols ? line : gap, origin = 0;
    if (lies == BACKWARDS) {
        origin = (n - 1) * rs + (d - 1) * cs;
        rs = -rs;
        cs = -cs;
    }
    /* neighbours: groups of eight around a centre, so that some pairs are near */
    std::vector<double> centre((size_t)d);
    for (int64_t i = 0; i < n; i++) {
        if (i % 8 == 0)
            for (double &c : centre)
                c = normal();
        for (int64_t j = 0; j < d; j++) {
            const double near = how == TWINS && i % 3 ? 0 : 0.3;
            put(p.bytes.data(), dtype, origin + i * rs + j * cs,
                value(how, dtype, i, j, centre[(size_t)j] + near * normal()));
        }
    }
    p.host = {p.bytes.data() + origin * size, dtype, GNOMON_HOST, n, d, rs, cs};
    MUST(cudaMalloc(&p.data, p.bytes.size()));
    MUST(cudaMemcpy(p.data, p.bytes.data(), p.bytes.size(), cudaMemcpyHostToDevice));
    p.there = p.host;
    p.there.data = static_cast<uint8_t *>(p.data) + origin * size;
    p.there.memory = GNOMON_DEVICE_MEMORY;
    return p;
}

struct pair {
    int64_t i, j;
    double distance;
    bool operator<(const pair &o) const
    {
        return i != o.i ? i < o.i : j < o.j;
    }
};

struct job {
    gnomon_metric metric;
    gnomon_dtype p, q;
    int64_t n, m, d;
    law how;
    layout lies;
    bool half;    /* P with itself */
    double share; /* of pairs within the radius, about */
};

static std::vector<pair> search(gnomon_context *ctx, const job &c, const points &p, const points &q,
                                double radius)
{
    gnomon_search_options options = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {};
    found.struct_size = sizeof found;
    options.metric = c.metric;
    options.radius = radius;
    GNOMON_MUST(ctx, gnomon_neighbors_exact(ctx, &q.host, &p.host, &options, &found));
    std::vector<pair> pairs;
    for (int64_t i = 0; i < found.queries; i++)
        for (int64_t at = found.offsets[i]; at < found.offsets[i + 1]; at++)
            if (!c.half || found.ids[at] > i)
                pairs.push_back({i, found.ids[at], found.distances[at]});
    gnomon_neighbors_free(ctx, &found);
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

static void *take(size_t bytes)
{
    void *data;
    MUST(cudaMalloc(&data, bytes + 1));
    MUST(cudaMemset(data, 0xff, bytes + 1));
    return data;
}

struct result {
    std::vector<pair> pairs;
    int64_t survivors;
};

/* In turns of so many rows, with room for so many pairs; radii or one radius. */
static result join(const gcu_gpu *gpu, const job &c, const points &p, const points &q,
                   const double *radii, double radius, int64_t turn, int64_t room)
{
    result r = {};
    std::vector<void *> all;
    const auto more = [&](size_t bytes) {
        all.push_back(take(bytes));
        return all.back();
    };
    gcu_filter_centre filter_centre;
    gcu_filter_points left, right;
    MUST(gcu_filter_estimate_centre(c.metric, &q.there, more(gcu_filter_centre_bytes(8 * c.d)),
                                    &filter_centre, gpu, 0));
    unsigned long long *numbers = static_cast<unsigned long long *>(more(24));
    MUST(cudaMemset(numbers, 0xff, 24));
    MUST(gcu_filter_pack(&filter_centre, &p.there, more(gcu_filter_pack_bytes(c.metric, c.n, c.d)),
                         &left, numbers + 2, gpu, 0));
    if (c.half)
        right = left;
    else
        MUST(gcu_filter_pack(&filter_centre, &q.there,
                             more(gcu_filter_pack_bytes(c.metric, c.m, c.d)), &right, numbers + 2,
                             gpu, 0));
    float *p_limits = static_cast<float *>(more((size_t)left.padded * 4));
    float *q_limits = static_cast<float *>(more((size_t)right.padded * 4));
    MUST(gcu_filter_limits(&filter_centre, &left, &right, radii, radius, p_limits, q_limits,
                           more(gcu_filter_limits_work()), 0));
    uint64_t *pairs = static_cast<uint64_t *>(more((size_t)room * 8));
    double *distances = static_cast<double *>(more((size_t)room * 8));
    const size_t work_bytes = gcu_verify_work(room);
    void *work = more(work_bytes);
    const gcu_verify verify = {c.metric,      &p.there, &q.there, left.inverse,
                               right.inverse, radii,    radius,   INT64_MIN};
    for (int64_t row = 0; row < c.n;) {
        unsigned long long count = 0, kept = 0, fault = 0;
        MUST(cudaMemset(numbers, 0, 16));
        const gcu_filter_call call = {&left, &right, p_limits, q_limits, row, turn, c.half};
        MUST(gcu_filter(&call, {pairs, room, numbers}, gpu, 0));
        MUST(cudaMemcpy(&count, numbers, 8, cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(&fault, numbers + 2, 8, cudaMemcpyDeviceToHost));
        if (fault != ~0ull) printf("a fault was seen where there is none\n");
        if ((int64_t)count > room) {
            turn = std::max<int64_t>(1, std::min(turn, c.n - row) / 2);
            continue;
        }
        MUST(gcu_verify_pairs(&verify, pairs, (int64_t)count, distances, numbers + 1, work,
                              work_bytes, gpu, 0));
        MUST(cudaMemcpy(&kept, numbers + 1, 8, cudaMemcpyDeviceToHost));
        std::vector<uint64_t> words(kept);
        std::vector<double> numbers_of(kept);
        MUST(cudaMemcpy(words.data(), pairs, kept * 8, cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(numbers_of.data(), distances, kept * 8, cudaMemcpyDeviceToHost));
        for (size_t at = 0; at < kept; at++)
            r.pairs.push_back(
                {(int64_t)(words[at] >> 32), (int64_t)(uint32_t)words[at], numbers_of[at]});
        r.survivors += (int64_t)count;
        row += turn;
    }
    for (void *data : all)
        cudaFree(data);
    return r;
}

static int differences(const char *what, const job &c, const std::vector<pair> &expected,
                       const result &got, double radius)
{
    size_t same = 0;
    if (expected.size() == got.pairs.size())
        for (size_t at = 0; at < expected.size(); at++)
            same += expected[at].i == got.pairs[at].i && expected[at].j == got.pairs[at].j &&
                    memcmp(&expected[at].distance, &got.pairs[at].distance, 8) == 0;
    if (same == expected.size() && expected.size() == got.pairs.size()) return 0;
    printf("FAILED %s: %s, types %s %s, %lld x %lld x %lld, %s, layout %d, half %d, radius %.17g: "
           "%zu pairs, %zu expected, %zu the same\n",
           what, gnomon_metric_name(c.metric), gnomon_dtype_name(c.p), gnomon_dtype_name(c.q),
           (long long)c.n, (long long)c.m, (long long)c.d, laws[c.how], (int)c.lies, (int)c.half,
           radius, got.pairs.size(), expected.size(), same);
    return 1;
}

/* The distance of one of the pairs: so many are within it, and one exactly. */
static double radius_of(gnomon_context *ctx, const job &c, const points &p, const points &q)
{
    const double all = c.metric == GNOMON_IP ? -1e300 : 1e300;
    std::vector<double> some;
    points few = p;
    few.host.rows = std::min<int64_t>(p.host.rows, 40);
    for (const pair &x : search(ctx, c, few, q, all))
        if (c.half ? x.j != x.i : true) some.push_back(x.distance);
    if (some.empty()) return 1;
    std::sort(some.begin(), some.end());
    if (c.metric == GNOMON_IP) std::reverse(some.begin(), some.end());
    return some[(size_t)((double)(some.size() - 1) * c.share)];
}

static int run(gnomon_context *ctx, const gcu_gpu *gpu, const job &c, double *most)
{
    points p = make(c.n, c.d, c.p, c.how, c.lies);
    points q = c.half ? p : make(c.m, c.d, c.q, c.how, c.lies);
    const double radius = radius_of(ctx, c, p, q);
    const std::vector<pair> expected = search(ctx, c, p, q, radius);
    const result one = join(gpu, c, p, q, nullptr, radius, c.n, c.n * c.m + 1);
    const result turns = join(gpu, c, p, q, nullptr, radius, 37, c.m + 5);
    std::vector<double> radii((size_t)c.n, radius);
    for (int64_t i = 0; i < c.n; i += 3)
        radii[(size_t)i] = c.metric == GNOMON_IP ? INFINITY : -1;
    double *there = static_cast<double *>(take((size_t)c.n * 8));
    MUST(cudaMemcpy(there, radii.data(), (size_t)c.n * 8, cudaMemcpyHostToDevice));
    const result each = join(gpu, c, p, q, there, 0, c.n, c.n * c.m + 1);
    std::vector<pair> some;
    for (const pair &x : expected)
        if (x.i % 3) some.push_back(x);
    int failed = differences("at once", c, expected, one, radius);
    failed += differences("in turns", c, expected, turns, radius);
    failed += differences("a radius each", c, some, each, radius);
    cudaFree(there);
    cudaFree(p.data);
    if (!c.half) cudaFree(q.data);
    const double pairs = c.half ? 0.5 * (double)c.n * (double)c.n : (double)c.n * (double)c.m;
    const double waste = (double)(one.survivors - (int64_t)one.pairs.size()) / pairs;
    if (getenv("GNOMON_TEST_VERBOSE"))
        printf("%-7s %-4s %-4s %5lld x %5lld x %5lld %-8s layout %d half %d radius %10.4g: %7zu "
               "pairs, "
               "%7lld survivors\n",
               gnomon_metric_name(c.metric), gnomon_dtype_name(c.p), gnomon_dtype_name(c.q),
               (long long)c.n, (long long)c.m, (long long)c.d, laws[c.how], (int)c.lies,
               (int)c.half, radius, expected.size(), (long long)one.survivors);
    /* what such data may cost: else the filter does not see */
    const bool hard = c.how == SPREAD || c.how == OUTLIERS || c.how == ZEROS ||
                      (c.how == OFFSET && (c.p == GNOMON_F16 || c.p == GNOMON_BF16));
    if (!hard && c.d > 1 && c.share < 0.1 && waste > 0.02) {
        printf("FAILED: %s, %s, d %lld: %.1f %% of all pairs pass in vain\n",
               gnomon_metric_name(c.metric), laws[c.how], (long long)c.d, 100 * waste);
        failed++;
    }
    *most = fmax(*most, hard ? 0 : waste);
    return failed;
}

/* Coordinates that are refused are told by their first place. */
static int faults(const gcu_gpu *gpu)
{
    const double bad[] = {NAN, INFINITY, -INFINITY, 0x1p501};
    int failed = 0;
    for (double x : bad) {
        points p = make(300, 70, GNOMON_F64, NORMAL, ROWS);
        double *data = static_cast<double *>(p.data);
        unsigned long long first = 0, *there = static_cast<unsigned long long *>(take(8));
        void *memory = take(gcu_filter_centre_bytes(70)),
             *packed = take(gcu_filter_pack_bytes(GNOMON_L2, 300, 70));
        gcu_filter_centre filter_centre;
        gcu_filter_points out;
        MUST(cudaMemcpy(data + 123 * 70 + 69, &x, 8, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(data + 250 * 70 + 3, &x, 8, cudaMemcpyHostToDevice));
        MUST(gcu_filter_estimate_centre(GNOMON_L2, &p.there, memory, &filter_centre, gpu, 0));
        MUST(gcu_filter_pack(&filter_centre, &p.there, packed, &out, there, gpu, 0));
        MUST(cudaMemcpy(&first, there, 8, cudaMemcpyDeviceToHost));
        if (first != 123 * 70 + 69) {
            printf("FAILED: %g was found at %llu\n", x, first);
            failed++;
        }
        cudaFree(p.data);
        cudaFree(there);
        cudaFree(memory);
        cudaFree(packed);
    }
    return failed;
}

int main(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("no GPU\n");
        return 77;
    }
    gcu_gpu gpu;
    char why[256];
    gnomon_context *ctx = nullptr;
    if (gcu_gpu_open(0, &gpu, why, sizeof why) != GNOMON_OK ||
        gnomon_context_create(nullptr, &ctx) != GNOMON_OK) {
        printf("%s\n", why);
        return 1;
    }
    seed();
    const char *reduced = getenv("GNOMON_TEST_REDUCED");
    const int one_in = reduced && atoi(reduced) > 1 ? atoi(reduced) : reduced ? 5 : 1;
    const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};
    std::vector<job> jobs;
    for (gnomon_metric metric : metrics) {
        for (int how = 0; how < LAWS; how++) {
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 601, 601, 96, (law)how, ROWS, true, 0.01});
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 300, 700, 130, (law)how, ROWS, false, 0.01});
            jobs.push_back(
                {metric, GNOMON_F64, GNOMON_F64, 257, 400, 65, (law)how, ROWS, false, 0.02});
        }
        for (int64_t d : {1, 2, 3, 16, 63, 64, 127, 128, 192, 256, 300, 511, 1000, 4096})
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 400, 500, d, NORMAL, ROWS, false, 0.01});
        for (int64_t n : {1, 2, 127, 128, 129, 255, 256, 257, 511, 1025})
            jobs.push_back({metric, GNOMON_F32, GNOMON_F32, n, n, 32, NORMAL, ROWS, true, 0.02});
        for (int lies = 0; lies < LAYOUTS; lies++) {
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 200, 300, 75, NORMAL, (layout)lies, false, 0.02});
            jobs.push_back(
                {metric, GNOMON_F64, GNOMON_F32, 200, 300, 75, NORMAL, (layout)lies, false, 0.02});
        }
        for (int type = GNOMON_F32; type <= GNOMON_U64; type++) {
            jobs.push_back({metric, (gnomon_dtype)type, (gnomon_dtype)type, 220, 220, 50, NORMAL,
                            ROWS, true, 0.02});
            jobs.push_back(
                {metric, (gnomon_dtype)type, GNOMON_F16, 150, 220, 50, WHOLE, ROWS, false, 0.02});
            jobs.push_back({metric, (gnomon_dtype)type, (gnomon_dtype)type, 220, 220, 50, OFFSET,
                            ROWS, true, 0.02});
        }
        for (double share : {0.0, 0.5, 1.0}) {
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 513, 513, 64, NORMAL, ROWS, true, share});
            jobs.push_back(
                {metric, GNOMON_F32, GNOMON_F32, 300, 513, 200, TWINS, ROWS, false, share});
        }
    }
    for (int64_t d : {1, 3, 8, 16, 31, 64, 200})
        for (bool half : {false, true})
            for (layout lies : {ROWS, COLS, BACKWARDS})
                jobs.push_back({GNOMON_HAMMING, GNOMON_U8, GNOMON_U8, 300, half ? 300 : 411, d,
                                half ? TWINS : NORMAL, lies, half, 0.01});
    int failed = faults(&gpu), at = 0;
    double most = 0;
    for (const job &c : jobs)
        if (at++ % one_in == 0) failed += run(ctx, &gpu, c, &most);
    printf("%zu cases, %d failed; at most %.2f %% of pairs passed in vain\n",
           (jobs.size() + one_in - 1) / one_in, failed, 100 * most);
    gnomon_context_destroy(ctx);
    gcu_gpu_close(&gpu);
    return failed > 0;
}
