/* Exact search on the GPU against the CPU's, bit for bit: metrics, element types, sizes, strides
 * and places of memory, ties, data far out and of any scale, filters, radii, pieces, prefixes, and
 * what is refused.
 *
 * usage: test_search [PART]      exits with 77 where there is no GPU */
#include "device.h"
#include "draw.cuh"

#include <gnomon.h>

#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

static gnomon_context *cpu, *gpu;
static int failures, checks;

static void wrong(const std::string &name, const char *what)
{
    printf("WRONG %s: %s\n", name.c_str(), what);
    failures++;
}

/* ---- points ---- */

enum layout { ROWS, GAPS, COLUMNS, BACKWARDS };

/* Points in host memory, and the same in the GPU's when they are asked for. */
struct points {
    std::vector<char> bytes;
    gnomon_matrix view;
    void *device = nullptr;
    points() = default;
    points(const points &) = delete;
    points(points &&other) = default;
    ~points()
    {
        if (device) cudaFree(device);
    }
};

static void set(char *at, gnomon_dtype dtype, double x)
{
    switch (dtype) {
    case GNOMON_F32:
        *(float *)at = (float)x;
        break;
    case GNOMON_F64:
        *(double *)at = x;
        break;
    case GNOMON_F16: {
        /* a number of few bits, made by hand */
        const float f = (float)x;
        uint32_t b;
        memcpy(&b, &f, 4);
        const int e = (int)(b >> 23 & 255) - 112;
        uint32_t h = (b >> 16 & 0x8000u);
        if (e >= 31)
            h |= 0x7bffu;
        else if (e > 0)
            h |= (uint32_t)e << 10 | (b >> 13 & 0x3ffu);
        *(uint16_t *)at = (uint16_t)h;
        break;
    }
    case GNOMON_BF16: {
        const float f = (float)x;
        uint32_t b;
        memcpy(&b, &f, 4);
        *(uint16_t *)at = (uint16_t)(b >> 16);
        break;
    }
    case GNOMON_I8:
        *(int8_t *)at = (int8_t)x;
        break;
    case GNOMON_U8:
        *(uint8_t *)at = (uint8_t)std::fabs(x);
        break;
    case GNOMON_I16:
        *(int16_t *)at = (int16_t)x;
        break;
    case GNOMON_U16:
        *(uint16_t *)at = (uint16_t)std::fabs(x);
        break;
    case GNOMON_I32:
        *(int32_t *)at = (int32_t)x;
        break;
    case GNOMON_U32:
        *(uint32_t *)at = (uint32_t)std::fabs(x);
        break;
    case GNOMON_I64:
        *(int64_t *)at = (int64_t)(x * 0x1p40) + 1;
        break;
    default:
        *(uint64_t *)at = (uint64_t)(std::fabs(x) * 0x1p40) + 1;
        break;
    }
}

static points make(int64_t n, int64_t d, gnomon_dtype dtype, layout lie,
                   const std::function<double(int64_t, int64_t)> &value)
{
    points p;
    const int64_t size = (int64_t)gnomon_dtype_size(dtype);
    int64_t rs = d, cs = 1, first = 0;
    if (lie == GAPS) rs = 2 * d + 3, cs = 2;
    if (lie == COLUMNS) rs = 1, cs = n + 1;
    if (lie == BACKWARDS) rs = -d, first = (n > 0 ? n - 1 : 0) * d;
    const int64_t all = (n + 1) * (std::llabs(rs) + 1) + (d + 1) * (cs + 1) + first;
    p.bytes.assign((size_t)(all * size), (char)0x7f);
    p.view = {};
    p.view.data = p.bytes.data() + first * size;
    p.view.dtype = dtype;
    p.view.rows = n;
    p.view.cols = d;
    p.view.row_stride = rs;
    p.view.col_stride = cs;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++)
            set((char *)p.view.data + (i * rs + j * cs) * size, dtype, value(i, j));
    return p;
}

static gnomon_matrix on_gpu(points &p)
{
    if (!p.device && cudaMalloc(&p.device, p.bytes.size() + 1) != cudaSuccess) exit(1);
    cudaMemcpy(p.device, p.bytes.data(), p.bytes.size(), cudaMemcpyHostToDevice);
    gnomon_matrix m = p.view;
    m.data = (char *)p.device + ((char *)p.view.data - p.bytes.data());
    m.memory = GNOMON_DEVICE_MEMORY;
    return m;
}

static points gaussian(int64_t n, int64_t d, gnomon_dtype dtype = GNOMON_F32, layout lie = ROWS,
                       double scale = 1, double offset = 0)
{
    return make(n, d, dtype, lie, [=](int64_t, int64_t) { return offset + scale * normal(); });
}

/* ---- searching ---- */

struct found {
    gnomon_status status = GNOMON_OK;
    std::string text;
    std::vector<int64_t> offsets, ids;
    std::vector<double> distances;
    int64_t compared = 0;
};

/* The base in so many pieces. */
static found search(gnomon_context *ctx, const gnomon_matrix &base, const gnomon_matrix &queries,
                    const gnomon_search_options &o, int64_t pieces = 1)
{
    found f;
    gnomon_search *s = nullptr;
    gnomon_neighbors out = {};
    out.struct_size = sizeof out;
    f.status = gnomon_search_create(ctx, &queries, &o, &s);
    for (int64_t i = 0; i < pieces && f.status == GNOMON_OK; i++) {
        const int64_t from = base.rows * i / pieces, to = base.rows * (i + 1) / pieces;
        gnomon_matrix part = base;
        part.data =
            (char *)base.data + from * base.row_stride * (int64_t)gnomon_dtype_size(base.dtype);
        part.rows = to - from;
        f.status = gnomon_search_add(s, &part);
    }
    if (f.status == GNOMON_OK) f.status = gnomon_search_finish(s, &out);
    if (f.status != GNOMON_OK) f.text = gnomon_last_error(ctx);
    if (f.status == GNOMON_OK) {
        f.offsets.assign(out.offsets, out.offsets + out.queries + 1);
        f.ids.assign(out.ids, out.ids + out.offsets[out.queries]);
        f.distances.assign(out.distances, out.distances + out.offsets[out.queries]);
        f.compared = out.compared;
    }
    gnomon_neighbors_free(ctx, &out);
    gnomon_search_destroy(s);
    return f;
}

static bool same(const std::string &name, const found &a, const found &b)
{
    checks++;
    char text[256];
    if (a.status != b.status || a.text != b.text) {
        snprintf(text, sizeof text, "CPU %d \"%.80s\", GPU %d \"%.80s\"", (int)a.status,
                 a.text.c_str(), (int)b.status, b.text.c_str());
        wrong(name, text);
        return false;
    }
    if (a.status != GNOMON_OK) return true;
    if (a.offsets != b.offsets) {
        wrong(name, "other counts of answers");
        return false;
    }
    int64_t at = -1, differ = 0;
    for (size_t i = 0; i < a.ids.size(); i++)
        if (a.ids[i] != b.ids[i] || memcmp(&a.distances[i], &b.distances[i], sizeof(double))) {
            if (at < 0) at = (int64_t)i;
            differ++;
        }
    if (differ > 0) {
        snprintf(text, sizeof text,
                 "%" PRId64 " of %zu answers differ; the first at %" PRId64 ": CPU %" PRId64
                 " %.17g, GPU %" PRId64 " %.17g",
                 differ, a.ids.size(), at, a.ids[at], a.distances[at], b.ids[at], b.distances[at]);
        wrong(name, text);
        return false;
    }
    if (a.compared != b.compared) wrong(name, "another count of pairs compared");
    return a.compared == b.compared;
}

static gnomon_search_options nearest(gnomon_metric metric, int64_t k)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.k = k;
    return o;
}

static gnomon_search_options range_search(gnomon_metric metric, double radius)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.radius = radius;
    return o;
}

/* Host and device memory, one piece and some. */
static void check(const std::string &name, points &base, points &queries,
                  const gnomon_search_options &o, int64_t pieces = 3)
{
    const found expected = search(cpu, base.view, queries.view, o);
    if (!same(name, expected, search(gpu, base.view, queries.view, o))) return;
    if (pieces > 1)
        same(name + ", pieces", expected, search(gpu, base.view, queries.view, o, pieces));
    const gnomon_matrix b = on_gpu(base), q = on_gpu(queries);
    same(name + ", on the GPU", expected, search(gpu, b, q, o));
}

static const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};

static std::string label(const char *what, gnomon_metric metric)
{
    return std::string(gnomon_metric_name(metric)) + ", " + what;
}

static void sizes(void)
{
    const int64_t shapes[][4] = {/* base, queries, dimensions, k */
                                 {1, 1, 1, 1},       {5, 3, 2, 5},          {1000, 1, 128, 10},
                                 {3000, 7, 31, 4},   {3000, 20, 17, 1},     {7001, 33, 128, 10},
                                 {5000, 300, 65, 7}, {20011, 150, 48, 100}, {4097, 129, 256, 3},
                                 {2000, 40, 961, 5}, {3000, 9, 16, 3000}};
    for (const auto &s : shapes)
        for (gnomon_metric metric : metrics) {
            points base = gaussian(s[0], s[2]), queries = gaussian(s[1], s[2]);
            char what[96];
            snprintf(what, sizeof what, "%d x %d x %d, k %d", (int)s[0], (int)s[1], (int)s[2],
                     (int)s[3]);
            check(label(what, metric), base, queries, nearest(metric, s[3]));
        }
}

static void types_and_layouts(void)
{
    const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_BF16,
                                  GNOMON_I8,  GNOMON_U8,  GNOMON_I16, GNOMON_U16,
                                  GNOMON_I32, GNOMON_U32, GNOMON_I64, GNOMON_U64};
    int turn = 0;
    for (gnomon_dtype type : types)
        for (gnomon_metric metric : metrics) {
            const double scale = type == GNOMON_F32 || type == GNOMON_F64 ? 1 : 20;
            const layout lie = (layout)(turn % 4), other = (layout)(turn / 4 % 4);
            points base = gaussian(3001, 37, type, lie, scale);
            points queries =
                gaussian(turn % 3 == 0 ? 5 : 70, 37, types[(turn * 5) % 12], other, scale);
            turn++;
            check(label(gnomon_dtype_name(type), metric), base, queries, nearest(metric, 9));
        }
}

static void hard_data(void)
{
    const int64_t n = 6000, d = 40, q = 50;
    for (gnomon_metric metric : metrics) {
        {
            points base = gaussian(n, d, GNOMON_F32, ROWS, 1, 1000);
            points queries = gaussian(q, d, GNOMON_F32, ROWS, 1, 1000);
            check(label("offset 1000", metric), base, queries, nearest(metric, 10));
        }
        {
            points base = gaussian(n, d, GNOMON_F32, ROWS, 1e-3, 1e5);
            points queries = gaussian(q, d, GNOMON_F32, ROWS, 1e-3, 1e5);
            check(label("offset beyond fp16 and fp32", metric), base, queries, nearest(metric, 10));
        }
        for (double scale : {1e-30, 1e-38, 1e25, 1e37}) {
            points base = gaussian(n, d, GNOMON_F32, ROWS, scale);
            points queries = gaussian(q, d, GNOMON_F32, ROWS, scale);
            check(label("an extreme scale", metric), base, queries, nearest(metric, 10));
        }
        for (double scale : {1e-300, 1e-160, 1e100, 1e149}) {
            points base = gaussian(2500, d, GNOMON_F64, ROWS, scale);
            points queries = gaussian(q, d, GNOMON_F64, ROWS, scale);
            check(label("an extreme scale in f64", metric), base, queries, nearest(metric, 10));
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS, [](int64_t, int64_t) {
                return (uniform() - 0.5) * std::exp(15 * normal());
            });
            points queries = make(q, d, GNOMON_F32, ROWS, [](int64_t, int64_t) {
                return (uniform() - 0.5) * std::exp(15 * normal());
            });
            check(label("a huge range", metric), base, queries, nearest(metric, 10));
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS,
                               [](int64_t i, int64_t j) { return (double)((i % 7 + j) % 5); });
            points queries = make(q, d, GNOMON_F32, ROWS,
                                  [](int64_t i, int64_t j) { return (double)((i % 7 + j) % 5); });
            check(label("duplicates", metric), base, queries, nearest(metric, 1000));
            check(label("few queries, duplicates", metric), base, queries, nearest(metric, 3));
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.25; });
            points queries = make(q, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.25; });
            check(label("all points equal", metric), base, queries, nearest(metric, 20));
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS,
                               [](int64_t i, int64_t) { return i % 3 == 0 ? 0.0 : normal(); });
            points queries = make(q, d, GNOMON_F32, ROWS,
                                  [](int64_t i, int64_t) { return i % 5 == 0 ? 0.0 : normal(); });
            check(label("zero vectors", metric), base, queries, nearest(metric, 30));
        }
        {
            points base = make(n, d, GNOMON_U8, ROWS,
                               [](int64_t, int64_t) { return std::floor(uniform() * 4); });
            points queries = make(q, d, GNOMON_U8, ROWS,
                                  [](int64_t, int64_t) { return std::floor(uniform() * 4); });
            check(label("ties of bytes", metric), base, queries, nearest(metric, 25));
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS, [n](int64_t i, int64_t) {
                return 10.0 * (double)(i * 20 / n) + 0.1 * normal();
            });
            points queries = make(q, d, GNOMON_F32, ROWS, [q](int64_t i, int64_t) {
                return 10.0 * (double)(i * 20 / q) + 0.1 * normal();
            });
            check(label("clusters in order", metric), base, queries, nearest(metric, 10));
        }
    }
}

/* Many neighbours of many queries, whose limit is guessed from some rows: where these tell of it
 * and where they mislead, and what ties there. */
static void guesses(void)
{
    const int64_t n = 70000, d = 8, q = 4000;
    const auto near_if = [](int64_t i, int64_t step) { return i % step == 0 ? 0.01 : 1.0; };
    for (gnomon_metric metric : metrics) {
        points queries = gaussian(q, d);
        {
            points base = gaussian(n, d);
            gnomon_search_options o = nearest(metric, 64);
            check(label("guessed", metric), base, queries, o, 1);
            o.exclude = 100;
            check(label("guessed, without the query's own", metric), base, queries, o, 1);
            check(label("guessed, 200 of them", metric), base, queries, nearest(metric, 200), 1);
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS,
                               [&](int64_t i, int64_t) { return 3 + near_if(i, 16) * normal(); });
            points close =
                make(q, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 3 + 0.001 * normal(); });
            check(label("guessed too low", metric), base, close, nearest(metric, 64), 1);
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS,
                               [](int64_t i, int64_t j) { return (double)((i % 7 + j) % 5); });
            points few = make(q, d, GNOMON_F32, ROWS,
                              [](int64_t i, int64_t j) { return (double)((i % 7 + j) % 5); });
            check(label("guessed, duplicates", metric), base, few, nearest(metric, 64), 1);
        }
        {
            points base = make(n, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.25; });
            points same_point = make(q, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.25; });
            check(label("guessed, all points equal", metric), base, same_point, nearest(metric, 64),
                  1);
            check(label("all points equal, 5 of many", metric), base, same_point,
                  nearest(metric, 5), 1);
        }
    }
}

static void filters_and_radii(void)
{
    const int64_t n = 5000, d = 24;
    std::vector<uint8_t> some((size_t)n / 8 + 1), few((size_t)n / 8 + 1);
    for (uint8_t &b : some)
        b = (uint8_t)next_word();
    for (int64_t i = 0; i < n; i += 61)
        few[(size_t)i / 8] |= (uint8_t)(1 << i % 8);
    for (gnomon_metric metric : metrics)
        for (int64_t q : {3, 60}) {
            points base = gaussian(n, d), queries = gaussian(q, d);
            gnomon_search_options o = nearest(metric, 8);
            o.filter = some.data();
            o.filter_bits = n;
            check(label("half allowed", metric), base, queries, o);
            o.filter = few.data();
            o.filter_bits = n - 70;
            check(label("few allowed", metric), base, queries, o);
            o.exclude = 122;
            check(label("few allowed, own left out", metric), base, queries, o);
            o.k = 200;
            check(label("fewer than k", metric), base, queries, o);
            o = nearest(metric, 6);
            o.exclude = 0;
            check(label("own left out", metric), base, base, o);
            const double radius = metric == GNOMON_L2 ? 4.5 : metric == GNOMON_IP ? 8 : 0.5;
            o = range_search(metric, radius);
            check(label("radius", metric), base, queries, o);
            o.filter = some.data();
            o.filter_bits = n;
            o.exclude = 5;
            check(label("radius, half allowed", metric), base, queries, o);
            o = range_search(metric, metric == GNOMON_IP ? -1e9 : 1e9);
            check(label("all within the radius", metric), base, queries, o);
            o = range_search(metric, metric == GNOMON_IP ? 1e9 : 0);
            check(label("radius 0", metric), base, base, o);
        }
}

static void prefixes(void)
{
    points base = gaussian(9000, 32), queries = gaussian(24, 32);
    const found most = search(gpu, base.view, queries.view, nearest(GNOMON_L2, 4500));
    for (int64_t k : {1, 2, 77, 1000, 4499}) {
        const found less = search(gpu, base.view, queries.view, nearest(GNOMON_L2, k));
        checks++;
        bool good = most.status == GNOMON_OK && less.status == GNOMON_OK;
        for (int64_t q = 0; q < 24 && good; q++)
            good = std::equal(&less.ids[q * k], &less.ids[q * k] + k, &most.ids[q * 4500]);
        if (!good) wrong("prefix", "the k nearest are not the first of more");
    }
    check("l2, k 4500", base, queries, nearest(GNOMON_L2, 4500));
}

static void bits(void)
{
    for (int64_t bytes : {1, 8, 33})
        for (int64_t q : {1, 70}) {
            points base = make(4000, bytes, GNOMON_U8, ROWS,
                               [](int64_t, int64_t) { return (double)(next_word() & 255); });
            points queries = make(q, bytes, GNOMON_U8, GAPS,
                                  [](int64_t, int64_t) { return (double)(next_word() & 255); });
            check("hamming", base, queries, nearest(GNOMON_HAMMING, 12));
            check("hamming, radius", base, queries,
                  range_search(GNOMON_HAMMING, (double)(bytes * 4 - bytes)));
        }
}

static void refusals(void)
{
    for (gnomon_metric metric : metrics)
        for (int64_t q : {2, 40})
            for (double bad : {(double)NAN, (double)INFINITY, 0x1p501}) {
                points base = gaussian(3000, 20, GNOMON_F64), queries = gaussian(q, 20, GNOMON_F64);
                ((double *)base.view.data)[2222 * 20 + 13] = bad;
                ((double *)base.view.data)[2901 * 20 + 3] = bad;
                check(label("a bad base point", metric), base, queries, nearest(metric, 5), 1);
                ((double *)queries.view.data)[20 + 7] = bad;
                check(label("a bad query", metric), base, queries, nearest(metric, 5), 1);
                points single = gaussian(2600, 20), others = gaussian(q, 20);
                ((float *)single.view.data)[1300 * 20 + 19] = (float)bad;
                check(label("a bad fp32 point", metric), single, others, nearest(metric, 5), 1);
            }
    points base = gaussian(100, 8), queries = gaussian(20, 8), nine = gaussian(10, 9);
    check("k above n", base, queries, nearest(GNOMON_L2, 101), 1);
    check("other dimensions", nine, queries, nearest(GNOMON_L2, 1), 1);
    points none = gaussian(0, 8), flat = gaussian(100, 0), flat_queries = gaussian(20, 0);
    check("no queries", base, none, nearest(GNOMON_L2, 3), 1);
    check("no base, by radius", none, queries, range_search(GNOMON_L2, 1), 1);
    check("no dimensions", flat, flat_queries, nearest(GNOMON_L2, 3));
    check("no dimensions, cosine", flat, flat_queries, nearest(GNOMON_COSINE, 3));
}

/* ---- sets ---- */

struct sets {
    std::vector<int64_t> offsets, indices;
    std::vector<float> values;
    gnomon_csr view;
};

/* Sets of up to 'most' members of 'cols', low ones oftener; with zeros and repetitions, unsorted.
 * Every third one is much like an earlier one, every tenth is empty. */
static sets make_sets(int64_t n, int64_t cols, int64_t most)
{
    sets s;
    const int64_t lead = 2; /* entries before the first row's */
    s.offsets.assign(1, lead);
    for (int64_t i = 0; i < n; i++) {
        const size_t begin = s.indices.size();
        int64_t size = i % 10 == 9 ? 0 : (int64_t)(uniform() * (double)(most + 1));
        if (i % 3 == 2) {
            const int64_t like = (int64_t)(uniform() * (double)i);
            for (int64_t e = s.offsets[(size_t)like]; e < s.offsets[(size_t)like + 1]; e++)
                if (uniform() < 0.9) s.indices.push_back(s.indices[(size_t)(e - lead)]);
            size = (int64_t)(3 * uniform());
        }
        for (; size > 0; size--)
            s.indices.push_back((int64_t)(uniform() * uniform() * (double)cols));
        for (size_t e = begin; e + 1 < s.indices.size(); e++)
            std::swap(s.indices[e],
                      s.indices[begin + (size_t)(next_word() % (s.indices.size() - begin))]);
        s.offsets.push_back((int64_t)s.indices.size() + lead);
    }
    for (size_t e = 0; e < s.indices.size(); e++)
        s.values.push_back(uniform() < 0.05 ? 0 : 1 + (float)uniform());
    s.indices.push_back(0);
    s.values.push_back(0);
    s.view = {n, cols, s.offsets.data(), s.indices.data(), s.values.data(), GNOMON_F32};
    return s;
}

static found search_sets(gnomon_context *ctx, const sets &base, const sets &queries,
                         const gnomon_search_options &o, int64_t pieces = 1)
{
    found f;
    gnomon_search *s = nullptr;
    gnomon_neighbors out = {};
    out.struct_size = sizeof out;
    f.status = gnomon_search_create_csr(ctx, &queries.view, &o, &s);
    for (int64_t i = 0; i < pieces && f.status == GNOMON_OK; i++) {
        const int64_t from = base.view.rows * i / pieces, to = base.view.rows * (i + 1) / pieces;
        const int64_t before = base.offsets[(size_t)from] - base.offsets[0];
        gnomon_csr part = base.view;
        part.rows = to - from;
        part.offsets += from;
        part.indices += before;
        part.values = base.values.data() + before;
        f.status = gnomon_search_add_csr(s, &part);
    }
    if (f.status == GNOMON_OK) f.status = gnomon_search_finish(s, &out);
    if (f.status != GNOMON_OK) f.text = gnomon_last_error(ctx);
    if (f.status == GNOMON_OK) {
        f.offsets.assign(out.offsets, out.offsets + out.queries + 1);
        f.ids.assign(out.ids, out.ids + out.offsets[out.queries]);
        f.distances.assign(out.distances, out.distances + out.offsets[out.queries]);
        f.compared = out.compared;
    }
    gnomon_neighbors_free(ctx, &out);
    gnomon_search_destroy(s);
    return f;
}

static void check_sets(const char *name, const sets &base, const sets &queries,
                       const gnomon_search_options &o)
{
    char what[128];
    snprintf(what, sizeof what, "jaccard, %s, %d x %d, k %d", name, (int)queries.view.rows,
             (int)base.view.rows, (int)o.k);
    const found expected = search_sets(cpu, base, queries, o);
    if (!same(what, expected, search_sets(gpu, base, queries, o))) return;
    same(what + std::string(", pieces"), expected, search_sets(gpu, base, queries, o, 3));
}

static void all_sets(void)
{
    const int64_t shapes[][5] = {/* base, queries, members possible, most in a set, k */
                                 {1, 1, 1, 1, 1},           {50, 3, 5, 4, 50},
                                 {3000, 1, 1000, 30, 10},   {3000, 33, 40, 6, 7},
                                 {20000, 70, 5000, 50, 10}, {5000, 40, 3000000, 20, 25},
                                 {4000, 64, 300, 900, 100}, {6000, 31, 20000, 12, 3000}};
    std::vector<uint8_t> some(20000 / 8);
    for (uint8_t &b : some)
        b = (uint8_t)next_word();
    for (const auto &s : shapes) {
        const sets base = make_sets(s[0], s[2], s[3]), queries = make_sets(s[1], s[2], s[3]);
        gnomon_search_options o = nearest(GNOMON_JACCARD, s[4]);
        check_sets("nearest", base, queries, o);
        o.exclude = 1;
        check_sets("nearest, own left out", base, base.view.rows < 100 ? base : queries, o);
        o.filter = some.data();
        o.filter_bits = s[0] - 5 > 0 ? s[0] - 5 : 0;
        check_sets("nearest, half allowed", base, queries, o);
        for (double radius : {0.0, 0.5, 0.93, 1.0}) {
            o = range_search(GNOMON_JACCARD, radius);
            check_sets("within", base, queries, o);
            o.filter = some.data();
            o.filter_bits = s[0];
            o.exclude = 0;
            check_sets("within, half allowed", base, queries, o);
        }
    }
    sets base = make_sets(3000, 500, 20), queries = make_sets(20, 500, 20),
         none = make_sets(0, 500, 9);
    check_sets("no queries", base, none, nearest(GNOMON_JACCARD, 3));
    check_sets("no base, within", none, queries, range_search(GNOMON_JACCARD, 0.5));
    check_sets("k above n", base, queries, nearest(GNOMON_JACCARD, 3001));
    base.values[777] = NAN;
    check_sets("a bad value", base, queries, nearest(GNOMON_JACCARD, 3));
    base.values[777] = 1;
    base.indices[1234] = 500;
    check_sets("a bad member", base, queries, range_search(GNOMON_JACCARD, 0.5));
}

/* Few queries of a base on the GPU, in pieces too, whatever becomes of the filter there: keys that
 * fp32 can't tell apart, rows out of line, a typed base, pieces that go the other way. */
static void few_on_the_gpu(void)
{
    const int64_t counts[] = {1, 2, 4, 5, 8, 9, 16, 17, 40, 64};
    int turn = 0;
    for (int64_t q : counts)
        for (gnomon_metric metric : metrics) {
            const int64_t n = turn % 3 == 0 ? 40009 : 6000 + 100 * turn, k = 1 + turn * 37 % 128;
            const int64_t d = 1 + (turn * 53 + 7) % 150;
            const gnomon_dtype type = turn % 4 == 1 ? GNOMON_F16 : GNOMON_F32;
            points base = turn % 5 == 2 ? make(n, d, type, turn % 2 ? ROWS : BACKWARDS,
                                               [n](int64_t i, int64_t) {
                                                   return 10.0 * (double)(i * 20 / n) + normal();
                                               })
                                        : gaussian(n, d, type);
            points queries =
                gaussian(q, d, turn % 7 == 3 ? GNOMON_I8 : GNOMON_F32, (layout)(turn % 4), 3);
            const gnomon_matrix b = on_gpu(base), a = on_gpu(queries);
            gnomon_search_options o = nearest(metric, k);
            if (turn % 3 == 1) o.exclude = 3;
            char what[96];
            snprintf(what, sizeof what, "few on the GPU, %d x %d x %d %s, k %d", (int)q, (int)n,
                     (int)d, gnomon_dtype_name(type), (int)k);
            const found expected = search(cpu, base.view, queries.view, o);
            same(label(what, metric), expected, search(gpu, b, a, o));
            same(label(what, metric) + ", pieces", expected, search(gpu, b, a, o, 3));
            turn++;
        }
    for (gnomon_metric metric : metrics)
        for (int64_t d : {128, 960, 20000}) { /* whole 16-byte parts, and queries that are large */
            points base = gaussian(d > 1000 ? 300 : 6000, d), queries = gaussian(5, d);
            check(label("few on the GPU, wide", metric), base, queries, nearest(metric, 10), 1);
        }
    for (gnomon_metric metric : metrics) {
        points base = make(30000, 32, GNOMON_F32, ROWS, [](int64_t i, int64_t j) {
            return i % 3 == 0 ? 1.0 : 1 + 1e-6 * (double)((i * 7 + j) % 11); /* nearly the same */
        });
        points queries = gaussian(6, 32);
        check(label("few on the GPU, hardly apart", metric), base, queries, nearest(metric, 20));
        points far = make(30000, 32, GNOMON_F32, ROWS, [](int64_t i, int64_t) {
            return normal() * (i % 1000 == 5 ? 1e30 : i % 50 == 1 ? 1e-25 : 1);
        });
        check(label("few on the GPU, some far out", metric), far, queries, nearest(metric, 20));
        const gnomon_matrix q = on_gpu(queries);
        gnomon_matrix b = on_gpu(far);
        for (float bad : {NAN, INFINITY}) { /* named as the CPU names them */
            ((float *)far.view.data)[29998 * 32 + 30] = bad;
            b = on_gpu(far);
            same(label("few on the GPU, a bad point", metric),
                 search(cpu, far.view, queries.view, nearest(metric, 20)),
                 search(gpu, b, q, nearest(metric, 20)));
            points broken = gaussian(6, 32);
            ((float *)broken.view.data)[3 * 32 + 17] = bad;
            same(label("few on the GPU, a bad query", metric),
                 search(cpu, far.view, broken.view, nearest(metric, 20)),
                 search(gpu, b, on_gpu(broken), nearest(metric, 20)));
        }
    }
}

/* The base on the GPU, whole and in pieces. */
static void check_there(const std::string &name, points &base, points &queries,
                        const gnomon_search_options &o)
{
    const found expected = search(cpu, base.view, queries.view, o);
    const gnomon_matrix b = on_gpu(base), q = on_gpu(queries);
    if (same(name, expected, search(gpu, b, q, o)))
        same(name + ", pieces", expected, search(gpu, b, q, o, 3));
}

/* Five to 128 queries of a base on the GPU: whatever the tensor cores lose of its points must cost
 * no answer. */
static void by_tensor_cores(void)
{
    const bool reduced = getenv("GNOMON_TEST_REDUCED") != nullptr;
    const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F16, GNOMON_F32, GNOMON_F32};
    const gnomon_dtype query_types[] = {GNOMON_F32, GNOMON_F16, GNOMON_BF16,
                                        GNOMON_I8,  GNOMON_U16, GNOMON_F32};
    int turn = 0;
    for (int64_t d : {1, 7, 64, 100, 129, 300, 1500})
        for (int64_t q : {5, 8, 9, 16, 31, 64, 65, 100, 104, 127, 128}) {
            turn++;
            if (reduced ? turn % 38 != 1 : (d > 128 && turn % 4 != 0)) continue;
            const int64_t n = reduced ? 2100 : turn % 5 == 0 ? 2049 : 1000 + 6000 * (turn % 7);
            for (gnomon_metric metric : metrics) {
                points base = gaussian(n, d, types[turn % 4], turn % 6 == 3 ? BACKWARDS : ROWS);
                points queries = gaussian(q, d, query_types[turn % 6], (layout)(turn % 4),
                                          turn % 6 == 3 || turn % 6 == 4 ? 3 : 1);
                gnomon_search_options o = nearest(metric, turn % 3 == 0 ? 1 : 1 + turn * 7 % 128);
                if (turn % 4 == 1) o.exclude = turn;
                char what[96];
                snprintf(what, sizeof what, "tensor cores, %d x %d x %d, k %d", (int)q, (int)n,
                         (int)d, (int)o.k);
                check_there(label(what, metric), base, queries, o);
            }
        }
    if (reduced) return;
    const int64_t n = 50000, d = 48, q = 40;
    const struct {
        const char *name;
        std::function<double(int64_t, int64_t)> value;
    } hard[] = {
        {"ties", [](int64_t, int64_t) { return std::floor(uniform() * 3); }},
        {"all equal", [](int64_t, int64_t) { return 0.3; }},
        {"seven points", [](int64_t i, int64_t j) { return (double)((i % 7 + j) % 5); }},
        {"clusters",
         [](int64_t i, int64_t j) {
             return std::sin((double)(i / 500 * 48 + j)) + 0.01 * normal();
         }},
        {"tight clusters",
         [](int64_t i, int64_t j) {
             return std::sin((double)(i % 40 * 48 + j)) + 1e-5 * normal();
         }},
        {"offset", [](int64_t, int64_t) { return 1000 + normal(); }},
        {"offsets of two kinds", [](int64_t i, int64_t) { return i % 2 * 1e4 + normal(); }},
        {"huge range",
         [](int64_t, int64_t) { return (uniform() - 0.5) * std::exp(15 * normal()); }},
        {"rows of any size",
         [](int64_t i, int64_t) { return normal() * std::exp((double)(i * 31 % 160) - 80); }},
        {"tiny", [](int64_t, int64_t) { return 1e-25 * normal(); }},
        {"denormal", [](int64_t, int64_t) { return 1e-41 * normal(); }},
        {"large", [](int64_t, int64_t) { return 1e18 * normal(); }},
        {"zero rows", [](int64_t i, int64_t) { return i % 20 == 0 ? 0.0 : normal(); }},
        {"rounded by TF32",
         [](int64_t, int64_t) {
             return 1 + 0x1p-11 * std::floor(4 * uniform()) + 1e-5 * normal();
         }},
    };
    for (const auto &h : hard)
        for (gnomon_metric metric : metrics) {
            points base = make(n, d, GNOMON_F32, ROWS, h.value);
            points queries = make(q, d, GNOMON_F32, ROWS, h.value);
            check_there(label(h.name, metric), base, queries, nearest(metric, 12));
        }
    for (double size : {0.0, 1e-25, 1e18}) /* a point's own row, where fp32 can't tell */
        for (gnomon_metric metric : metrics) {
            const auto value = [=](int64_t i, int64_t j) {
                return std::sin((double)(i * 48 + j)) * (i % 20 == 0 ? size : 1);
            };
            points base = make(3000, d, GNOMON_F32, ROWS, value);
            points queries = make(q, d, GNOMON_F32, ROWS, value);
            gnomon_search_options o = nearest(metric, 12);
            o.exclude = 0;
            check_there(label("excluded rows of any size", metric), base, queries, o);
        }
    for (gnomon_metric metric : metrics) { /* a limit that is known, and a twin of which TF32 keeps
                                              less in a later piece */
        const double low = 1 + 0x1p-11 - 0x1p-20;
        points base = make(n, 64, GNOMON_F32, ROWS, [=](int64_t i, int64_t j) {
            return i == n - 1 ? low : i == 0 ? low * (j % 2 ? 1.01 : 0.99) : normal();
        });
        points queries = make(q, 64, GNOMON_F32, ROWS, [=](int64_t, int64_t) { return low; });
        check_there(label("a twin that TF32 rounds down", metric), base, queries,
                    nearest(metric, 1));
    }
    for (gnomon_metric metric : metrics) { /* a shell around the queries */
        points base = make(n, d, GNOMON_F32, ROWS,
                           [](int64_t i, int64_t j) { return 5 + normal() * (i % 3 + j % 2); });
        points queries =
            make(q, d, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 5 + 1e-4 * normal(); });
        for (int64_t i = 0; i < n; i++) {
            float *x = (float *)base.view.data + i * d;
            double squares = 0;
            for (int64_t j = 0; j < d; j++)
                squares += (x[j] - 5.0) * (x[j] - 5.0);
            for (int64_t j = 0; j < d; j++)
                x[j] = (float)(5 + (x[j] - 5.0) * (1 + 1e-3 * uniform()) / std::sqrt(squares));
        }
        check_there(label("a shell", metric), base, queries, nearest(metric, 12));
        const gnomon_matrix a = on_gpu(queries);
        for (float bad : {NAN, INFINITY, -3e38f}) {
            ((float *)base.view.data)[(n - 3) * d + 5] = bad;
            same(label("a bad point of many", metric),
                 search(cpu, base.view, queries.view, nearest(metric, 12)),
                 search(gpu, on_gpu(base), a, nearest(metric, 12)));
        }
    }
}

/* A device with little memory: pieces and overflow of what is kept. */
static void little_memory(void)
{
    setenv("GNOMON_CUDA_MEMORY", "8", 1);
    gnomon_context *before = gpu;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = tested_device();
    options.memory_limit = 64 << 20;
    if (gnomon_context_create(&options, &gpu) != GNOMON_OK) exit(1);
    points base = gaussian(60000, 64), queries = gaussian(30, 64);
    points equal = make(20000, 16, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.5; });
    points same_queries = make(90, 16, GNOMON_F32, ROWS, [](int64_t, int64_t) { return 0.5; });
    const gnomon_search_options o = nearest(GNOMON_L2, 15);
    same("little memory", search(cpu, base.view, queries.view, o),
         search(gpu, base.view, queries.view, o));
    const gnomon_search_options r = range_search(GNOMON_L2, 9.2);
    same("little memory, radius", search(cpu, base.view, queries.view, r),
         search(gpu, base.view, queries.view, r));
    same("little memory, all equal", search(cpu, equal.view, same_queries.view, o),
         search(gpu, equal.view, same_queries.view, o));
    const sets some = make_sets(60000, 3000, 20), asked = make_sets(90, 3000, 20);
    same("little memory, sets", search_sets(cpu, some, asked, nearest(GNOMON_JACCARD, 12)),
         search_sets(gpu, some, asked, nearest(GNOMON_JACCARD, 12)));
    same("little memory, sets within",
         search_sets(cpu, some, asked, range_search(GNOMON_JACCARD, 0.9)),
         search_sets(gpu, some, asked, range_search(GNOMON_JACCARD, 0.9)));
    gnomon_context_destroy(gpu);
    gpu = before;
    unsetenv("GNOMON_CUDA_MEMORY");
}

int main(int argc, char **argv)
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("no GPU: skipped\n");
        return 77;
    }
    seed();
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    if (gnomon_context_create(&options, &cpu) != GNOMON_OK) return 1;
    options.device = tested_device();
    if (gnomon_context_create(&options, &gpu) != GNOMON_OK) {
        printf("no GPU: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"sizes", sizes},
                 {"types and layouts", types_and_layouts},
                 {"hard data", hard_data},
                 {"guesses", guesses},
                 {"filters and radii", filters_and_radii},
                 {"prefixes", prefixes},
                 {"bits", bits},
                 {"few", few_on_the_gpu},
                 {"tensor cores", by_tensor_cores},
                 {"sets", all_sets},
                 {"refusals", refusals},
                 {"little memory", little_memory}};
    for (const auto &part : parts) {
        if (argc > 1 && strcmp(argv[1], part.name) != 0) continue;
        const int before = checks, bad = failures;
        part.run();
        printf("%-20s %4d checks, %d wrong\n", part.name, checks - before, failures - bad);
    }
    printf("%d checks, %d wrong\n", checks, failures);
    gnomon_context_destroy(cpu);
    gnomon_context_destroy(gpu);
    return failures > 0;
}
