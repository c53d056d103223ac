/* Joins on the GPU beside the CPU's, through the library: the same pairs in the same order with the
 * same bits, wherever the points lie and in however many pieces they come; by hashing too, and in
 * bands. Exits with 77 where there is no GPU. GNOMON_TEST_REDUCED=1 runs a part, the argument
 * exact, hashes or sets those alone. */
#include "device.h"
#include "draw.cuh"
#include "must.cuh"

#include <gnomon/join.h>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

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
    p.placed.memory = where == DEVICE ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
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

static gnomon_status call(gnomon_context *ctx, const gnomon_matrix *p, const gnomon_matrix *q,
                          const gnomon_join_options *options, gnomon_join_result *result)
{
    return gnomon_join(ctx, p, q, options, result);
}

static gnomon_status call(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                          const gnomon_join_options *options, gnomon_join_result *result)
{
    return gnomon_join_csr(ctx, p, q, options, result);
}

template <typename Points>
static found join(gnomon_context *ctx, const Points *p, const Points *q,
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
    f.status = call(ctx, p, q, &options, &f.result);
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

static gnomon_context *cpu, *gpu, *small, *medium, *large, *tight;

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
        wrong(c, "in pieces", threshold, want, join(small, &p.placed, q_placed, options, true));
    if (c.recall > 0)
        failed += wrong(c, "in few pieces", threshold, want,
                        join(medium, &p.placed, q_placed, options, true));
    failed +=
        wrong(c, "little room", threshold, want, join(tight, &p.placed, q_placed, options, true));
    /* counting alone */
    gnomon_join_result result = {};
    result.struct_size = sizeof result;
    for (gnomon_context *ctx : {gpu, small})
        if (gnomon_join(ctx, &p.placed, q_placed, &options, &result) != GNOMON_OK ||
            result.pairs != (int64_t)want.pairs.size() || !result.complete) {
            printf("FAILED count: %lld, %zu wanted\n", (long long)result.pairs, want.pairs.size());
            failed++;
        }
    options.band_rows = c.n / 7 + 1;
    for (gnomon_context *ctx : {gpu, small})
        if (c.recall > 0)
            failed += wrong(c, "in bands", threshold, want,
                            join(ctx, &p.placed, q_placed, options, true));
    options.band_rows = 0;
    options.first_row = c.n / 3;
    want = join(cpu, &p.host, q_host, options, true);
    failed +=
        wrong(c, "later rows", threshold, want, join(gpu, &p.placed, q_placed, options, true));
    failed += wrong(c, "later rows in pieces", threshold, want,
                    join(small, &p.placed, q_placed, options, true));
    options.first_row = 0;
    options.max_pairs = (int64_t)want.pairs.size() / 2 + 1;
    want = join(cpu, &p.host, q_host, options, true);
    failed += wrong(c, "some", threshold, want, join(gpu, &p.placed, q_placed, options, true));
    failed += wrong(c, "some in pieces", threshold, want,
                    join(small, &p.placed, q_placed, options, true));
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

/* Where the recall leaves the choice, tables are those that cost least on a GPU: an exact join's
 * pairs, no fewer than guaranteed, and the same ones in pieces. */
static int by_cost()
{
    enum { N = 300000, D = 64 };
    std::vector<float> x((size_t)N * D);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) {
            const size_t at = (size_t)i * D + (size_t)j;
            x[at] =
                (float)(i % 5 == 0 ? 4 * uniform() : x[at - (size_t)(i % 5) * D] + 0.4 * uniform());
        }
    const gnomon_matrix points = {x.data(), GNOMON_F32, GNOMON_HOST, N, D, D, 1};
    const gnomon_matrix *none = nullptr;
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    options.threshold = 1.8;
    const found all = join(gpu, &points, none, options, true);
    options.recall = 0.95;
    const found some = join(gpu, &points, none, options, true);
    const found pieces = join(large, &points, none, options, true);
    size_t at = 0, wrong = 0;
    for (const gnomon_pair &pair : some.pairs) {
        while (at < all.pairs.size() && (all.pairs[at].i < pair.i ||
                                         (all.pairs[at].i == pair.i && all.pairs[at].j < pair.j)))
            at++;
        if (at == all.pairs.size() || memcmp(&all.pairs[at++], &pair, sizeof pair) != 0) wrong++;
    }
    const double share = (double)some.pairs.size() / (double)all.pairs.size();
    const bool good = some.status == GNOMON_OK && wrong == 0 && share >= 0.95 &&
                      some.result.method == GNOMON_JOIN_LSH && same(some, pieces) &&
                      pieces.result.method == GNOMON_JOIN_LSH &&
                      some.result.compared == pieces.result.compared &&
                      strstr(some.result.why, "for this device");
    if (!good || getenv("GNOMON_TEST_VERBOSE"))
        printf(
            "%s by cost: %zu pairs of %zu, %zu wrong, %lld shared a bucket; in pieces %zu, %lld; "
            "%s; %s\n",
            good ? "passed" : "FAILED", some.pairs.size(), all.pairs.size(), wrong,
            (long long)some.result.compared, pieces.pairs.size(), (long long)pieces.result.compared,
            some.result.why, pieces.result.why);
    return !good;
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

/* ---- sets ---- */

enum set_law {
    SKEWED, /* some members common, most rare, every third set much like an earlier one */
    SMALL,  /* few members of a handful: many empty sets and many that are the same */
    LONG,   /* some of thousands of members */
    LAWS_OF_SETS
};
static const char *const set_laws[] = {"skewed", "small", "long"};

struct sets {
    std::vector<int64_t> offsets, indices;
    std::vector<char> values;
    gnomon_csr view;
};

/* Rows with zeros and repetitions, in no order. */
static void make_sets(sets *s, int64_t n, int64_t cols, set_law how, gnomon_dtype dtype)
{
    const int64_t spread = cols > 5000 ? cols / 5000 : 1;
    const int64_t lead = 3; /* entries before the first row's */
    s->offsets.assign(1, lead);
    s->indices.assign((size_t)lead, -1);
    for (int64_t i = 0; i < n; i++) {
        std::vector<int64_t> row;
        if (how != SMALL && i % 3 == 2) {
            const int64_t like = (int64_t)(uniform() * (double)i);
            row.assign(s->indices.begin() + s->offsets[(size_t)like],
                       s->indices.begin() + s->offsets[(size_t)like + 1]);
            for (int turn = (int)(3 * uniform()); turn > 0 && !row.empty(); turn--)
                row[(size_t)(uniform() * (double)row.size())] = (int64_t)(uniform() * (double)cols);
            if (uniform() < 0.2 && !row.empty()) row.pop_back();
            std::rotate(row.begin(), row.begin() + (ptrdiff_t)(uniform() * (double)row.size()),
                        row.end());
        } else {
            const double most = how == SMALL ? 4 : how == LONG && i % 50 == 0 ? 3000 : 24;
            const int64_t size = (int64_t)(uniform() * most);
            while ((int64_t)row.size() < size) {
                const double x =
                    how == SMALL ? 6 * uniform() : uniform() * uniform() * (double)cols;
                row.push_back((int64_t)x / spread * spread);
            }
        }
        s->indices.insert(s->indices.end(), row.begin(), row.end());
        s->offsets.push_back((int64_t)s->indices.size());
    }
    const size_t size = gnomon_dtype_size(dtype), count = s->indices.size() - (size_t)lead;
    s->values.assign(count * size + 8, 0);
    for (size_t e = 0; e < count; e++) {
        const double x = uniform() < 0.05 ? uniform() < 0.5 ? 0.0 : -0.0 : 1 + 3 * uniform();
        if (dtype == GNOMON_F32)
            reinterpret_cast<float *>(s->values.data())[e] = (float)x;
        else if (dtype == GNOMON_F64)
            reinterpret_cast<double *>(s->values.data())[e] = x;
        else
            s->values[e * size] = (char)x; /* the lowest byte of an integer */
    }
    s->view = {n, cols, s->offsets.data(), s->indices.data() + lead, s->values.data(), dtype};
}

struct set_job {
    int64_t n, m, cols; /* m 0: P with itself */
    set_law how;
    gnomon_dtype dtype;
    double threshold;
};

static int wrong_sets(const set_job &c, const char *what, const found &want, const found &got)
{
    if (same(want, got)) return 0;
    printf("FAILED %s: sets, %s, %s, %lld x %lld of %lld, threshold %.17g: %zu pairs (%s), %zu "
           "wanted; rows done %lld, %lld wanted; %lld late\n",
           what, set_laws[c.how], gnomon_dtype_name(c.dtype), (long long)c.n, (long long)c.m,
           (long long)c.cols, c.threshold, got.pairs.size(), gnomon_status_name(got.status),
           want.pairs.size(), (long long)got.result.rows_done, (long long)want.result.rows_done,
           (long long)got.late);
    return 1;
}

static int run_sets(const set_job &c)
{
    sets p, q;
    make_sets(&p, c.n, c.cols, c.how, c.dtype);
    if (c.m) make_sets(&q, c.m, c.cols, c.how, GNOMON_U8);
    const gnomon_csr *a = &p.view, *b = c.m ? &q.view : nullptr;
    gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
    options.metric = GNOMON_JACCARD;
    options.threshold = c.threshold;
    gnomon_context *const little = c.how == LONG ? medium : small;
    found want = join(cpu, a, b, options, true);
    const found all = join(gpu, a, b, options, true);
    int failed = wrong_sets(c, "whole", want, all);
    failed += wrong_sets(c, "little memory", want, join(little, a, b, options, true));
    failed += wrong_sets(c, "little room", want, join(tight, a, b, options, true));
    gnomon_join_result result = {};
    result.struct_size = sizeof result;
    for (gnomon_context *ctx : {gpu, little})
        if (gnomon_join_csr(ctx, a, b, &options, &result) != GNOMON_OK ||
            result.pairs != (int64_t)want.pairs.size() || !result.complete) {
            printf("FAILED count: %lld, %zu wanted\n", (long long)result.pairs, want.pairs.size());
            failed++;
        }
    options.first_row = c.n / 3;
    want = join(cpu, a, b, options, true);
    failed += wrong_sets(c, "later rows", want, join(gpu, a, b, options, true));
    options.first_row = 0;
    options.max_pairs = (int64_t)want.pairs.size() / 2 + 1;
    want = join(cpu, a, b, options, true);
    failed += wrong_sets(c, "some", want, join(gpu, a, b, options, true));
    failed += wrong_sets(c, "some, little memory", want, join(little, a, b, options, true));
    options.top = options.max_pairs;
    options.max_pairs = 0;
    want = join(cpu, a, b, options, false);
    failed += wrong_sets(c, "closest", want, join(gpu, a, b, options, false));
    options.threshold = INFINITY;
    options.top = 50;
    want = join(cpu, a, b, options, false);
    failed += wrong_sets(c, "closest of all", want, join(gpu, a, b, options, false));
    if (getenv("GNOMON_TEST_VERBOSE"))
        printf("sets %-6s %5lld x %5lld of %lld, %.3f: %zu pairs, %lld met, %s: %s\n",
               set_laws[c.how], (long long)c.n, (long long)c.m, (long long)c.cols, c.threshold,
               all.pairs.size(), (long long)all.result.compared, all.result.why,
               failed ? "FAILED" : "passed");
    return failed;
}

static int refused_sets()
{
    int failed = 0;
    for (int which = 0; which < 3; which++) {
        sets p, q;
        make_sets(&p, 300, 500, SKEWED, GNOMON_F64);
        make_sets(&q, 200, 500, SKEWED, GNOMON_F64);
        const size_t at = p.indices.size() / 2;
        if (which == 0)
            p.indices[at] = 500;
        else if (which == 1)
            q.indices[q.indices.size() / 3] = -1;
        else
            reinterpret_cast<double *>(p.values.data())[at] = (double)NAN;
        gnomon_join_options options = GNOMON_JOIN_OPTIONS_INIT;
        options.metric = GNOMON_JACCARD;
        const gnomon_status want = gnomon_join_csr(cpu, &p.view, &q.view, &options, nullptr);
        char text[512];
        snprintf(text, sizeof text, "%s", gnomon_last_error(cpu));
        const gnomon_status got = gnomon_join_csr(gpu, &p.view, &q.view, &options, nullptr);
        if (want != GNOMON_OK && got == want && strcmp(text, gnomon_last_error(gpu)) == 0) continue;
        printf("FAILED: \"%s\", wanted \"%s\"\n", gnomon_last_error(gpu), text);
        failed++;
    }
    return failed;
}

static std::vector<set_job> set_jobs()
{
    std::vector<set_job> jobs;
    /* some of them distances, or next to one */
    for (double t : {0.0, 1.0 / 7, 0.2, nextafter(0.2, 0), 1.0 / 3, 0.5, 0.75, 0.96, 1.0, 3.0}) {
        jobs.push_back({900, 0, 400, SKEWED, GNOMON_U8, t});
        jobs.push_back({500, 700, 900, SKEWED, GNOMON_F32, t});
        jobs.push_back({700, 0, 6, SMALL, GNOMON_I16, t});
        jobs.push_back({300, 500, 6, SMALL, GNOMON_F64, t});
    }
    for (double t : {0.05, 0.25, 0.6}) {
        jobs.push_back({1200, 0, 20000, LONG, GNOMON_U8, t});
        jobs.push_back({400, 300, (int64_t)1 << 40, LONG, GNOMON_F32, t});
        jobs.push_back({2000, 0, (int64_t)1 << 62, SKEWED, GNOMON_I64, t});
    }
    for (int64_t n : {0, 1, 2, 3})
        jobs.push_back({n, 0, 30, SKEWED, GNOMON_U8, 0.5});
    jobs.push_back({0, 5, 30, SKEWED, GNOMON_U8, 0.5});
    return jobs;
}

static gnomon_context *open_context(const char *device, int64_t memory)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    o.device = device;
    if (memory) o.memory_limit = memory;
    return gnomon_context_create(&o, &ctx) == GNOMON_OK ? ctx : nullptr;
}

int main(int argc, char **argv)
{
    gpu = open_context(tested_device(), 0);
    if (!gpu) {
        printf("skipped: %s\n", gnomon_last_error(nullptr));
        return 77;
    }
    seed();
    setenv("GNOMON_CUDA_MEMORY", "4", 1);
    small = open_context(tested_device(), 0);
    setenv("GNOMON_CUDA_MEMORY", "24", 1);
    medium = open_context(tested_device(), 0);
    setenv("GNOMON_CUDA_MEMORY", "96", 1);
    large = open_context(tested_device(), 0);
    unsetenv("GNOMON_CUDA_MEMORY");
    tight = open_context(tested_device(), 1 << 20);
    cpu = open_context("cpu", 0);
    if (!small || !medium || !large || !tight || !cpu) {
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
    const char *only = argc > 1 ? argv[1] : "";
    int failed = strcmp(only, "sets") == 0 ? 0 : refusals(), count = 0;
    if (only[0] == 0 || strcmp(only, "hashes") == 0) failed += by_cost();
    for (size_t at = 0; at < jobs.size(); at += reduced ? 5 : 1) {
        if (only[0] != 0 && strcmp(only, jobs[at].recall > 0 ? "hashes" : "exact") != 0) continue;
        failed += run(jobs[at]);
        count++;
    }
    const std::vector<set_job> more = set_jobs();
    if (only[0] == 0 || strcmp(only, "sets") == 0) failed += refused_sets();
    for (size_t at = 0; at < more.size(); at += reduced ? 5 : 1) {
        if (only[0] != 0 && strcmp(only, "sets") != 0) continue;
        failed += run_sets(more[at]);
        count++;
    }
    printf("%d joins, %d failures\n", count, failed);
    gnomon_context *const all[] = {gpu, small, medium, large, tight, cpu};
    for (gnomon_context *ctx : all)
        gnomon_context_destroy(ctx);
    return failed > 0;
}
