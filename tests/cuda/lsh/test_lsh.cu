/* Hashing on a GPU against the CPU: values and tables bit for bit where they must be, families,
 * kinds of directions, element types, layouts and places; what is refused; the bits of a second
 * run.
 *
 * Exits with 77 where there is no GPU. */
#include "device.h"
#include "draw.cuh"
#include "must.cuh"

#include <gnomon.h>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" int lsh_same_tables(const gnomon_lsh *a, const gnomon_lsh *b); /* lsh_same.c */

static gnomon_context *cpu, *gpu;
static int failures, checks;

static void check(bool right, const char *what, const char *of)
{
    checks++;
    if (right) return;
    failures++;
    printf("FAILED: %s: %s\n", of, what);
}

/* ---- points ---- */

enum layout { ROWS, COLUMNS, GAPS, BACKWARDS };
enum input { NORMAL, HUGE_RANGE, OFFSET, ZEROS, OVERFLOWING };

struct points {
    std::vector<char> memory;
    gnomon_matrix m;
    void *device;
};

static double number(input what)
{
    switch (what) {
    case HUGE_RANGE:
        return normal() * std::exp2(std::floor(uniform() * 60 - 30));
    case OFFSET:
        return 1000 + uniform();
    case ZEROS:
        return next_word() % 4 ? 0 : normal();
    case OVERFLOWING:
        return next_word() % 50 ? normal() : 3e38 * (uniform() - 0.5);
    default:
        return normal();
    }
}

static void put(gnomon_dtype dtype, char *at, double x)
{
    switch (dtype) {
    case GNOMON_F64:
        memcpy(at, &x, 8);
        break;
    case GNOMON_F16: {
        const __half h = __float2half((float)x);
        memcpy(at, &h, 2);
        break;
    }
    case GNOMON_U8: {
        const uint8_t b = (uint8_t)(std::fabs(x) * 50);
        memcpy(at, &b, 1);
        break;
    }
    default: {
        const float f = (float)x;
        memcpy(at, &f, 4);
    }
    }
}

static points make_points(int64_t n, int64_t dim, gnomon_dtype dtype, layout lie, input what)
{
    points p = {};
    const int64_t size = dtype == GNOMON_F64   ? 8
                         : dtype == GNOMON_F16 ? 2
                         : dtype == GNOMON_U8  ? 1
                                               : 4;
    const int64_t pitch = lie == GAPS ? dim + 3 : lie == COLUMNS ? n : dim;
    const int64_t count = lie == COLUMNS ? pitch * dim : pitch * n;
    p.memory.assign((size_t)(count * size), 0);
    for (int64_t i = 0; i < count; i++)
        put(dtype, p.memory.data() + i * size, number(what));
    p.m = gnomon_matrix_rowmajor(p.memory.data(), dtype, n, dim);
    p.m.row_stride = lie == COLUMNS ? 1 : pitch;
    p.m.col_stride = lie == COLUMNS ? pitch : 1;
    if (lie == BACKWARDS && n > 0) {
        p.m.data = p.memory.data() + (n - 1) * pitch * size;
        p.m.row_stride = -pitch;
    }
    return p;
}

/* The same view in the GPU's memory. */
static gnomon_matrix on_gpu(points *p)
{
    gnomon_matrix m = p->m;
    MUST(cudaMalloc(&p->device, p->memory.size() + 16));
    MUST(cudaMemcpy(p->device, p->memory.data(), p->memory.size(), cudaMemcpyHostToDevice));
    m.data = static_cast<char *>(p->device) + (static_cast<char *>(p->m.data) - p->memory.data());
    m.memory = GNOMON_DEVICE_MEMORY;
    return m;
}

/* ---- values ---- */

struct value_case {
    const char *name;
    gnomon_lsh_family family;
    int64_t n, dim, count, sides;
    double width;
    gnomon_dtype dtype;
    layout lie;
    input what;
    gnomon_kind kind; /* of the directions */
    gnomon_dtype precision;
    bool device; /* points and values there */
};

static const value_case values_of[] = {
    {"p-stable", GNOMON_LSH_PSTABLE, 3000, 128, 512, 0, 4, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"p-stable there", GNOMON_LSH_PSTABLE, 3001, 128, 500, 0, 4, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"narrow widths", GNOMON_LSH_PSTABLE, 700, 100, 130, 0, 1e-4, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"far narrower widths", GNOMON_LSH_PSTABLE, 300, 40, 70, 0, 1e-12, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"tiny widths", GNOMON_LSH_PSTABLE, 300, 40, 70, 0, 1e-40, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"wide widths", GNOMON_LSH_PSTABLE, 300, 40, 70, 0, 1e6, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"offset", GNOMON_LSH_PSTABLE, 2000, 300, 96, 0, 3, GNOMON_F32, ROWS, OFFSET, GNOMON_GAUSSIAN,
     GNOMON_F32, true},
    {"huge range", GNOMON_LSH_PSTABLE, 1000, 257, 64, 0, 100, GNOMON_F32, GAPS, HUGE_RANGE,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"overflowing", GNOMON_LSH_PSTABLE, 1000, 64, 64, 0, 1, GNOMON_F32, ROWS, OVERFLOWING,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"zeros", GNOMON_LSH_PSTABLE, 1000, 5, 33, 0, 1, GNOMON_F32, ROWS, ZEROS, GNOMON_GAUSSIAN,
     GNOMON_F32, true},
    {"columns", GNOMON_LSH_PSTABLE, 1111, 70, 40, 0, 2, GNOMON_F32, COLUMNS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"columns on the host", GNOMON_LSH_PSTABLE, 1111, 70, 40, 0, 2, GNOMON_F32, COLUMNS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"backwards", GNOMON_LSH_PSTABLE, 900, 33, 17, 0, 2, GNOMON_F32, BACKWARDS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"fp16 points", GNOMON_LSH_PSTABLE, 900, 130, 128, 0, 2, GNOMON_F16, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"bytes", GNOMON_LSH_PSTABLE, 900, 131, 60, 0, 200, GNOMON_U8, ROWS, NORMAL, GNOMON_GAUSSIAN,
     GNOMON_F32, false},
    {"fp64 points", GNOMON_LSH_PSTABLE, 500, 600, 60, 0, 2, GNOMON_F64, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"fp16 directions", GNOMON_LSH_PSTABLE, 900, 200, 128, 0, 2, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F16, true},
    {"one coordinate", GNOMON_LSH_PSTABLE, 100, 1, 9, 0, 0.5, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"long points", GNOMON_LSH_PSTABLE, 40, 70001, 300, 0, 20, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"many functions", GNOMON_LSH_PSTABLE, 60, 20, 70000, 0, 1, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"simhash", GNOMON_LSH_SIMHASH, 3000, 96, 256, 0, 0, GNOMON_F32, ROWS, NORMAL, GNOMON_GAUSSIAN,
     GNOMON_F32, true},
    {"simhash, zeros", GNOMON_LSH_SIMHASH, 3000, 3, 100, 0, 0, GNOMON_F32, ROWS, ZEROS,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"simhash, huge range", GNOMON_LSH_SIMHASH, 999, 384, 77, 0, 0, GNOMON_F32, ROWS, HUGE_RANGE,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"cross-polytope", GNOMON_LSH_CROSS_POLYTOPE, 1000, 100, 40, 16, 0, GNOMON_F32, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"cross-polytope, 5 sides", GNOMON_LSH_CROSS_POLYTOPE, 500, 300, 11, 5, 0, GNOMON_F32, GAPS,
     NORMAL, GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"bit-sampling", GNOMON_LSH_BIT_SAMPLING, 4000, 32, 300, 0, 0, GNOMON_U8, ROWS, NORMAL,
     GNOMON_GAUSSIAN, GNOMON_F32, false},
    {"bit-sampling, columns", GNOMON_LSH_BIT_SAMPLING, 4000, 32, 30, 0, 0, GNOMON_U8, COLUMNS,
     NORMAL, GNOMON_GAUSSIAN, GNOMON_F32, true},
    {"signs", GNOMON_LSH_PSTABLE, 3000, 128, 64, 0, 2, GNOMON_F32, ROWS, NORMAL, GNOMON_RADEMACHER,
     GNOMON_F32, true},
    {"srht", GNOMON_LSH_SIMHASH, 3000, 128, 64, 0, 0, GNOMON_F32, ROWS, NORMAL, GNOMON_SRHT,
     GNOMON_F32, false},
    {"sjlt", GNOMON_LSH_PSTABLE, 3000, 512, 64, 0, 2, GNOMON_F32, ROWS, NORMAL, GNOMON_SJLT,
     GNOMON_F32, true},
};

static gnomon_hasher *make_hasher(const value_case &c, gnomon_descriptor *d)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_hasher *h = nullptr;
    f.family = c.family;
    f.dim = c.dim;
    f.count = c.count;
    f.width = c.width;
    f.sides = c.sides;
    f.seed = next_word();
    if (c.kind != GNOMON_GAUSSIAN || c.precision != GNOMON_F32) {
        const gnomon_descriptor fresh = GNOMON_DESCRIPTOR_INIT;
        *d = fresh;
        d->kind = c.kind;
        if (c.kind == GNOMON_GAUSSIAN) d->precision = c.precision;
        d->seed = next_word();
        f.descriptor = d;
    }
    if (gnomon_hasher_create(cpu, &f, &h) != GNOMON_OK) {
        printf("%s: %s\n", c.name, gnomon_last_error(cpu));
        exit(1);
    }
    return h;
}

static void check_values(const value_case &c)
{
    gnomon_descriptor d;
    gnomon_hasher *h = make_hasher(c, &d);
    points p = make_points(c.n, c.dim, c.dtype, c.lie, c.what);
    const size_t all = (size_t)(c.n * c.count);
    std::vector<int32_t> right(all), got(all, 0x55555555);
    gnomon_matrix values = gnomon_matrix_rowmajor(right.data(), GNOMON_I32, c.n, c.count);
    gnomon_status status = gnomon_hasher_apply(cpu, h, &p.m, &values);
    check(status == GNOMON_OK, gnomon_last_error(cpu), c.name);
    void *there = nullptr;
    gnomon_matrix x = p.m;
    values.data = got.data();
    if (c.device) {
        x = on_gpu(&p);
        MUST(cudaMalloc(&there, all * 4));
        MUST(cudaMemset(there, 0x55, all * 4));
        values.data = there;
        values.memory = GNOMON_DEVICE_MEMORY;
    }
    status = gnomon_hasher_apply(gpu, h, &x, &values);
    check(status == GNOMON_OK, gnomon_last_error(gpu), c.name);
    if (c.device) MUST(cudaMemcpy(got.data(), there, all * 4, cudaMemcpyDeviceToHost));
    int64_t differ = 0;
    for (size_t i = 0; i < all; i++)
        differ += right[i] != got[i];
    /* other kinds: where the last bits of a product decide */
    const bool same = c.kind == GNOMON_GAUSSIAN || c.family == GNOMON_LSH_BIT_SAMPLING;
    const int64_t most = same ? 0 : (int64_t)(all / 20000 + 1);
    if (differ > most || (differ && !same))
        printf("%s: %lld of %zu values differ\n", c.name, (long long)differ, all);
    check(differ <= most, "values differ", c.name);
    if (c.device) {
        MUST(cudaFree(there));
        MUST(cudaFree(p.device));
    }
    gnomon_hasher_destroy(h);
}

/* ---- tables ---- */

struct table_case {
    const char *name;
    gnomon_metric metric;
    gnomon_lsh_family family;
    int64_t n, dim, tables, coarse, fine;
    double width;
    input what;
    int64_t more; /* points added by a second call */
};

static const table_case tables_of[] = {
    {"one level", GNOMON_L2, GNOMON_LSH_PSTABLE, 50000, 128, 32, 16, 0, 20, NORMAL, 0},
    {"nine functions", GNOMON_L2, GNOMON_LSH_PSTABLE, 20000, 60, 7, 9, 0, 12, NORMAL, 300},
    {"two levels", GNOMON_L2, GNOMON_LSH_PSTABLE, 20000, 64, 5, 4, 6, 8, NORMAL, 0},
    {"two levels, uneven", GNOMON_L2, GNOMON_LSH_PSTABLE, 5001, 64, 9, 13, 21, 30, OFFSET, 1000},
    {"one function", GNOMON_L2, GNOMON_LSH_PSTABLE, 3000, 10, 40, 1, 0, 1, NORMAL, 0},
    {"long tables", GNOMON_L2, GNOMON_LSH_PSTABLE, 3000, 30, 3, 100, 0, 60, NORMAL, 0},
    {"longest tables", GNOMON_L2, GNOMON_LSH_PSTABLE, 3000, 30, 3, 156, 100, 60, NORMAL, 0},
    {"one bucket", GNOMON_L2, GNOMON_LSH_PSTABLE, 3000, 30, 2, 2, 0, 1e9, NORMAL, 0},
    {"zeros", GNOMON_L2, GNOMON_LSH_PSTABLE, 3000, 3, 4, 8, 0, 1, ZEROS, 0},
    {"one point", GNOMON_L2, GNOMON_LSH_PSTABLE, 1, 12, 4, 8, 0, 1, NORMAL, 1},
    {"simhash", GNOMON_COSINE, GNOMON_LSH_SIMHASH, 30000, 100, 8, 20, 0, 0, NORMAL, 0},
    {"cross-polytope", GNOMON_COSINE, GNOMON_LSH_CROSS_POLYTOPE, 5000, 40, 8, 3, 0, 0, NORMAL, 0},
    {"bits", GNOMON_HAMMING, GNOMON_LSH_BIT_SAMPLING, 30000, 32, 8, 12, 4, 0, NORMAL, 500},
};

static void check_tables(const table_case &c)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    const gnomon_dtype dtype = c.metric == GNOMON_HAMMING ? GNOMON_U8 : GNOMON_F32;
    points p = make_points(c.n, c.dim, dtype, ROWS, c.what);
    points q = make_points(c.more, c.dim, dtype, ROWS, c.what);
    o.metric = c.metric;
    o.functions.family = c.family;
    o.functions.dim = c.dim;
    o.functions.width = c.width;
    o.functions.seed = next_word();
    o.tables = c.tables;
    o.coarse = c.coarse;
    o.fine = c.fine;
    gnomon_lsh *index[2] = {};
    gnomon_context *const contexts[2] = {cpu, gpu};
    for (int i = 0; i < 2; i++) {
        gnomon_status status = gnomon_lsh_create(contexts[i], &o, &index[i]);
        if (status == GNOMON_OK) status = gnomon_lsh_add(index[i], &p.m);
        if (status == GNOMON_OK && c.more > 0) status = gnomon_lsh_add(index[i], &q.m);
        check(status == GNOMON_OK, gnomon_last_error(contexts[i]), c.name);
        if (status != GNOMON_OK) return;
    }
    check(lsh_same_tables(index[0], index[1]), "tables differ", c.name);
    for (int i = 0; i < 2; i++)
        gnomon_lsh_destroy(index[i]);
}

static void check_sets(void)
{
    const int64_t n = 20000, dim = 5000;
    std::vector<int64_t> offsets, indices;
    std::vector<float> values;
    offsets.push_back(7); /* views need not begin at 0 */
    for (int64_t i = 0; i < n; i++) {
        const int64_t members = i % 97 == 0 ? 0 : (int64_t)(uniform() * 30);
        for (int64_t e = 0; e < members; e++) {
            indices.push_back((int64_t)(uniform() * (double)dim));
            values.push_back(next_word() % 5 ? 1.0f : 0.0f);
        }
        offsets.push_back(offsets.back() + members);
    }
    const gnomon_csr m = {n, dim, offsets.data(), indices.data(), values.data(), GNOMON_F32};
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    f.family = GNOMON_LSH_MINHASH;
    f.dim = dim;
    f.count = 50;
    f.seed = next_word();
    gnomon_hasher *h = nullptr;
    check(gnomon_hasher_create(cpu, &f, &h) == GNOMON_OK, gnomon_last_error(cpu), "minhash");
    std::vector<int32_t> right((size_t)(n * f.count)), got(right.size(), 0x55555555);
    gnomon_matrix v = gnomon_matrix_rowmajor(right.data(), GNOMON_I32, n, f.count);
    check(gnomon_hasher_apply_csr(cpu, h, &m, &v) == GNOMON_OK, gnomon_last_error(cpu), "minhash");
    v.data = got.data();
    check(gnomon_hasher_apply_csr(gpu, h, &m, &v) == GNOMON_OK, gnomon_last_error(gpu), "minhash");
    check(right == got, "values differ", "minhash");
    gnomon_hasher_destroy(h);

    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = GNOMON_JACCARD;
    o.functions.family = GNOMON_LSH_MINHASH;
    o.functions.dim = dim;
    o.functions.seed = next_word();
    o.tables = 20;
    o.coarse = 2;
    gnomon_lsh *index[2] = {};
    gnomon_context *const contexts[2] = {cpu, gpu};
    for (int i = 0; i < 2; i++) {
        gnomon_status status = gnomon_lsh_create(contexts[i], &o, &index[i]);
        if (status == GNOMON_OK) status = gnomon_lsh_add_csr(index[i], &m);
        check(status == GNOMON_OK, gnomon_last_error(contexts[i]), "minhash tables");
    }
    check(lsh_same_tables(index[0], index[1]), "tables differ", "minhash tables");
    for (int i = 0; i < 2; i++)
        gnomon_lsh_destroy(index[i]);
    values[values.size() / 2] = NAN;
    gnomon_lsh *bad = nullptr;
    check(gnomon_lsh_create(gpu, &o, &bad) == GNOMON_OK, gnomon_last_error(gpu), "NaN in sets");
    check(gnomon_lsh_add_csr(bad, &m) == GNOMON_ERROR_NONFINITE, gnomon_last_error(gpu),
          "NaN in sets");
    gnomon_lsh_destroy(bad);
}

/* What fails, and what an index is afterwards; queries of a table made on the GPU. */
static void check_calls(void)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    points p = make_points(4000, 20, GNOMON_F32, ROWS, NORMAL);
    o.metric = GNOMON_L2;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = 20;
    o.functions.width = 6;
    o.tables = 12;
    o.coarse = 4;
    gnomon_lsh *index = nullptr;
    float *x = reinterpret_cast<float *>(p.memory.data());
    check(gnomon_lsh_create(gpu, &o, &index) == GNOMON_OK, gnomon_last_error(gpu), "calls");
    const float kept = x[777 * 20 + 3];
    x[777 * 20 + 3] = NAN;
    check(gnomon_lsh_add(index, &p.m) == GNOMON_ERROR_NONFINITE, "NaN passes", "calls");
    check(strstr(gnomon_last_error(gpu), "row 777, column 3") != nullptr, gnomon_last_error(gpu),
          "calls");
    x[777 * 20 + 3] = kept;
    check(gnomon_lsh_add(index, &p.m) == GNOMON_OK, gnomon_last_error(gpu), "calls");
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {};
    found.struct_size = sizeof found;
    s.k = 1;
    const gnomon_matrix queries = gnomon_matrix_rowmajor(x, GNOMON_F32, 200, 20);
    check(gnomon_lsh_query(gpu, index, &queries, &s, nullptr, &found, nullptr) ==
              GNOMON_ERROR_DEVICE,
          "queries claim the GPU", "calls");
    check(gnomon_lsh_query(cpu, index, &queries, &s, nullptr, &found, nullptr) == GNOMON_OK,
          gnomon_last_error(cpu), "calls");
    bool right = found.ids != nullptr;
    for (int64_t i = 0; right && i < 200; i++)
        right = found.ids[i] == i && found.distances[i] == 0.0;
    check(right, "points don't find themselves", "calls");
    gnomon_neighbors_free(cpu, &found);
    gnomon_lsh_destroy(index);

    const value_case sparse = {
        "l1",   GNOMON_LSH_PSTABLE_L1, 10,         20,   4, 0, 1, GNOMON_F32, ROWS,
        NORMAL, GNOMON_GAUSSIAN,       GNOMON_F32, false};
    gnomon_hasher *h = make_hasher(sparse, nullptr);
    std::vector<int32_t> got(40);
    gnomon_matrix v = gnomon_matrix_rowmajor(got.data(), GNOMON_I32, 10, 4);
    gnomon_matrix few = p.m;
    few.rows = 10;
    check(gnomon_hasher_apply(gpu, h, &few, &v) == GNOMON_ERROR_DEVICE, "l1 is not declined",
          "calls");
    gnomon_hasher_destroy(h);
}

int main(void)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = tested_device();
    if (gnomon_context_create(&o, &gpu) != GNOMON_OK) {
        printf("no GPU, nothing tested\n");
        return 77;
    }
    o.device = "cpu";
    if (gnomon_context_create(&o, &cpu) != GNOMON_OK) return 1;
    seed();
    for (const value_case &c : values_of)
        check_values(c);
    for (const table_case &c : tables_of)
        check_tables(c);
    check_sets();
    check_calls();
    printf("%d checks, %d failed\n", checks, failures);
    gnomon_context_destroy(gpu);
    gnomon_context_destroy(cpu);
    return failures ? 1 : 0;
}
