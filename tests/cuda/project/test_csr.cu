/* Sparse rows on a GPU: the CPU's bits for every simple kind, wherever rows and output lie, and
 * sums of products in fp64; empty, unsorted, repeated and very long rows, columns beyond 2^32,
 * values of all exponents, NaN that passes; what is refused, with the output untouched; little of
 * the GPU's memory; a second run. GNOMON_TEST_REDUCED=1 runs a part, for slow checkers.
 *
 * Exits with 77 where there is no GPU. */
#include "device.h"
#include "draw.cuh"
#include "must.cuh"

#include <gnomon.h>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static gnomon_context *cpu, *gpu, *small;
static int failures, checks;
static bool reduced;

static void check(bool right, const std::string &what, const char *of)
{
    checks++;
    if (right) return;
    failures++;
    if (failures < 60) printf("FAILED: %s: %s\n", of, what.c_str());
}

/* ---- operators ---- */

struct kind {
    const char *name;
    gnomon_kind kind;
    gnomon_dtype precision;
    double density;
    int64_t nonzeros, blocks, wiring;
};

static const kind kinds[] = {
    {"gaussian", GNOMON_GAUSSIAN, (gnomon_dtype)0, 0, 0, 0, 0},
    {"gaussian fp16", GNOMON_GAUSSIAN, GNOMON_F16, 0, 0, 0, 0},
    {"rademacher", GNOMON_RADEMACHER, (gnomon_dtype)0, 0, 0, 0, 0},
    {"achlioptas", GNOMON_ACHLIOPTAS, (gnomon_dtype)0, 0, 0, 0, 0},
    {"very-sparse", GNOMON_VERY_SPARSE, (gnomon_dtype)0, 0, 0, 0, 0},
    {"very-sparse 0.3", GNOMON_VERY_SPARSE, (gnomon_dtype)0, 0.3, 0, 0, 0},
    {"sjlt", GNOMON_SJLT, (gnomon_dtype)0, 0, 0, 0, 0},
    {"sjlt 3", GNOMON_SJLT, (gnomon_dtype)0, 0, 3, 0, 0},
    {"countsketch", GNOMON_SJLT, (gnomon_dtype)0, 0, 1, 0, 0},
    {"srht", GNOMON_SRHT, (gnomon_dtype)0, 0, 0, 0, 0},
    {"blockperm-sjlt", GNOMON_BLOCKPERM_SJLT, (gnomon_dtype)0, 0, 0, 0, 0},
    {"blockperm-sjlt 1 of 4", GNOMON_BLOCKPERM_SJLT, (gnomon_dtype)0, 0, 1, 4, 2},
};

static gnomon_operator *make_operator(const kind &of, int64_t k, int64_t d, uint64_t seed)
{
    gnomon_descriptor wanted = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator *op = nullptr;
    wanted.kind = of.kind;
    wanted.precision = of.precision;
    wanted.density = of.density;
    wanted.nonzeros = of.nonzeros;
    wanted.blocks = of.blocks;
    wanted.wiring = of.wiring;
    wanted.k = k;
    wanted.d = d;
    wanted.seed = seed;
    if (gnomon_operator_create(cpu, &wanted, &op) != GNOMON_OK) {
        printf("%s: %s\n", of.name, gnomon_last_error(cpu));
        exit(1);
    }
    return op;
}

/* ---- rows ---- */

enum values { NORMAL, HUGE_RANGE, SPECIAL };

struct sparse {
    int64_t rows, cols;
    gnomon_dtype dtype;
    std::vector<int64_t> offsets, indices;
    std::vector<char> values;

    int64_t size() const
    {
        return (int64_t)gnomon_dtype_size(dtype);
    }
    gnomon_csr view() const
    {
        gnomon_csr x = {rows, cols, offsets.data(), indices.data(), values.data(), dtype};
        return x;
    }
};

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
    case GNOMON_I8: {
        const int8_t b = (int8_t)std::max(-127.0, std::min(127.0, x * 40));
        memcpy(at, &b, 1);
        break;
    }
    case GNOMON_I64: {
        const int64_t i = (int64_t)(x * 1e6);
        memcpy(at, &i, 8);
        break;
    }
    default: {
        const float f = (float)x;
        memcpy(at, &f, 4);
    }
    }
}

static double get(gnomon_dtype dtype, const char *at)
{
    double x;
    float f;
    __half h;
    int8_t b;
    int64_t i;
    switch (dtype) {
    case GNOMON_F64:
        memcpy(&x, at, 8);
        return x;
    case GNOMON_F16:
        memcpy(&h, at, 2);
        return __half2float(h);
    case GNOMON_I8:
        memcpy(&b, at, 1);
        return b;
    case GNOMON_I64:
        memcpy(&i, at, 8);
        return (double)i;
    default:
        memcpy(&f, at, 4);
        return f;
    }
}

static double number(values what)
{
    switch (what) {
    case HUGE_RANGE:
        return normal() * std::exp2(std::floor(uniform() * 180 - 120));
    case SPECIAL:
        return next_word() % 9   ? normal()
               : next_word() % 2 ? NAN
               : next_word() % 2 ? INFINITY
                                 : -INFINITY;
    default:
        return normal();
    }
}

/* About 'each' nonzeros a row, every fifth row without any; the columns of some rows are given
 * twice. 'full': row 'full' has every column. */
static sparse make_sparse(int64_t rows, int64_t cols, int64_t each, gnomon_dtype dtype, values what,
                          bool sorted, int64_t full = -1)
{
    sparse x = {rows, cols, dtype, {}, {}, {}};
    const int64_t first = (int64_t)(next_word() % 3) * 7; /* offsets need not begin at 0 */
    x.offsets.push_back(first);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t count = i == full    ? cols
                              : i % 5 == 3 ? 0
                                           : (int64_t)(next_word() % (uint64_t)(2 * each + 1));
        const size_t begin = x.indices.size();
        for (int64_t e = 0; e < count; e++) {
            int64_t j = i == full ? e : (int64_t)(next_word() % (uint64_t)cols);
            if (i != full && e > 0 && e % 7 == 6) j = x.indices.back();
            x.indices.push_back(j);
        }
        if (sorted) std::sort(x.indices.begin() + (long)begin, x.indices.end());
        if (!sorted && i == full) std::reverse(x.indices.begin() + (long)begin, x.indices.end());
        x.offsets.push_back(first + (int64_t)x.indices.size());
    }
    x.values.resize(x.indices.size() * (size_t)x.size());
    for (size_t e = 0; e < x.indices.size(); e++)
        put(dtype, x.values.data() + e * (size_t)x.size(), number(what));
    return x;
}

/* A copy in the GPU's memory. */
struct there {
    gnomon_csr view;
    void *memory[3];

    explicit there(const sparse &x) : view(x.view())
    {
        const void *from[] = {x.offsets.data(), x.indices.data(), x.values.data()};
        const size_t bytes[] = {x.offsets.size() * 8, x.indices.size() * 8, x.values.size()};
        for (int i = 0; i < 3; i++) {
            MUST(cudaMalloc(&memory[i], bytes[i] + 16));
            MUST(cudaMemcpy(memory[i], from[i], bytes[i], cudaMemcpyHostToDevice));
        }
        view.offsets = static_cast<const int64_t *>(memory[0]);
        view.indices = static_cast<const int64_t *>(memory[1]);
        view.values = memory[2];
    }
    there(const there &) = delete;
    ~there()
    {
        for (void *m : memory)
            cudaFree(m);
    }
};

/* ---- outputs ---- */

enum layout { ROWS, GAPS, COLUMNS, BACKWARDS, LAYOUTS };

/* An output whose memory is a pattern: what lies between its elements has to stay. */
struct output {
    std::vector<char> memory;
    gnomon_matrix view;
    void *device;

    output(int64_t n, int64_t k, gnomon_dtype dtype, layout lie, bool there, bool numbers)
        : device(nullptr)
    {
        const int64_t size = (int64_t)gnomon_dtype_size(dtype);
        const int64_t pitch = lie == COLUMNS ? n + 2 : lie == ROWS ? k : k + 3;
        const int64_t lines = lie == COLUMNS ? k : n;
        memory.assign((size_t)((pitch * lines + 4) * size), (char)0xFF); /* NaN */
        view = gnomon_matrix_rowmajor(memory.data() + 2 * size, dtype, n, k);
        view.row_stride = lie == COLUMNS ? 1 : pitch;
        view.col_stride = lie == COLUMNS ? pitch : 1;
        if (lie == BACKWARDS && n > 0) {
            view.data = memory.data() + (2 + (n - 1) * pitch) * size;
            view.row_stride = -pitch;
        }
        if (numbers)
            for (int64_t i = 0; i < n; i++)
                for (int64_t r = 0; r < k; r++)
                    put(dtype, at(i, r), (double)((i * 7 + r * 3) % 11) - 5);
        if (!there) return;
        const int64_t skipped = static_cast<char *>(view.data) - memory.data();
        MUST(cudaMalloc(&device, memory.size()));
        MUST(cudaMemcpy(device, memory.data(), memory.size(), cudaMemcpyHostToDevice));
        view.data = static_cast<char *>(device) + skipped;
        view.memory = GNOMON_DEVICE_MEMORY;
    }
    output(const output &) = delete;
    ~output()
    {
        if (device) cudaFree(device);
    }
    char *at(int64_t i, int64_t r)
    {
        const int64_t size = (int64_t)gnomon_dtype_size(view.dtype);
        return static_cast<char *>(view.data) + (i * view.row_stride + r * view.col_stride) * size;
    }
    void fetch()
    {
        if (!device) return;
        MUST(cudaMemcpy(memory.data(), device, memory.size(), cudaMemcpyDeviceToHost));
        view.data = memory.data() + (static_cast<char *>(view.data) - static_cast<char *>(device));
        view.memory = GNOMON_HOST;
        MUST(cudaFree(device));
        device = nullptr;
    }
};

/* All memory, but that any NaN is like any other. */
static bool same(output &a, output &b)
{
    a.fetch();
    b.fetch();
    const size_t size = gnomon_dtype_size(a.view.dtype);
    for (size_t e = 0; e < a.memory.size(); e += size) {
        const char *x = a.memory.data() + e, *y = b.memory.data() + e;
        if (memcmp(x, y, size) == 0) continue;
        if (std::isnan(get(a.view.dtype, x)) && std::isnan(get(a.view.dtype, y))) continue;
        return false;
    }
    return true;
}

static bool untouched(output &y)
{
    y.fetch();
    for (const char c : y.memory)
        if (c != (char)0xFF) return false;
    return true;
}

/* ---- sums of products in fp64 ---- */

static double worst; /* error over bound */

static void check_exact(const gnomon_operator *op, const sparse &x, output &y, double alpha,
                        const char *of)
{
    const int64_t k = y.view.cols, d = x.cols;
    std::vector<double> s((size_t)(k * d));
    const gnomon_matrix block = gnomon_matrix_rowmajor(s.data(), GNOMON_F64, k, d);
    if (gnomon_operator_block(cpu, op, 0, 0, &block) != GNOMON_OK) exit(1);
    const double u = y.view.dtype == GNOMON_F64 ? 0x1p-53 : 0x1p-24;
    for (int64_t i = 0; i < x.rows; i++) {
        const int64_t begin = x.offsets[(size_t)i] - x.offsets[0];
        const int64_t end = x.offsets[(size_t)i + 1] - x.offsets[0];
        for (int64_t r = 0; r < k; r++) {
            double sum = 0, size = 0;
            for (int64_t e = begin; e < end; e++) {
                const double v = get(x.dtype, x.values.data() + e * x.size());
                const double term = alpha * v * s[(size_t)(r * d + x.indices[(size_t)e])];
                sum += term;
                size += std::fabs(term);
            }
            const double bound = (double)(end - begin + 4) * u * size + 1e-44;
            const double off = std::fabs(get(y.view.dtype, y.at(i, r)) - sum) / bound;
            if (off > worst) worst = off;
            if (!(off <= 1)) {
                check(false, "row " + std::to_string(i) + " is off by " + std::to_string(off), of);
                return;
            }
        }
    }
    check(true, "", of);
}

/* ---- one case ---- */

static std::string words(gnomon_context *ctx, gnomon_status status)
{
    return "status " + std::to_string((int)status) + ", " + gnomon_last_error(ctx);
}

/* The sketch of x everywhere against the CPU's. */
static void compare(const gnomon_operator *op, const sparse &x, int64_t k, gnomon_dtype dtype,
                    const gnomon_sketch_options *given, layout lie, const char *of,
                    bool exact = false)
{
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    if (given) o = *given;
    output first(x.rows, k, dtype, lie, false, o.beta != 0);
    const gnomon_csr host = x.view();
    gnomon_status status = gnomon_sketch_csr(cpu, op, &host, &first.view, &o);
    if (status != GNOMON_OK) {
        check(false, "the CPU fails: " + words(cpu, status), of);
        return;
    }
    if (exact) check_exact(op, x, first, o.alpha, of);
    const there device(x);
    for (int place = 0; place < 4; place++) {
        output y(x.rows, k, dtype, lie, place & 1, o.beta != 0);
        o.csr_memory = place & 2 ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
        status = gnomon_sketch_csr(gpu, op, place & 2 ? &device.view : &host, &y.view, &o);
        const std::string where = std::string("rows ") + (place & 2 ? "there" : "here") +
                                  ", output " + (place & 1 ? "there" : "here");
        if (status != GNOMON_OK)
            check(false, where + ": " + words(gpu, status), of);
        else
            check(same(first, y), where + ": other bits than the CPU's", of);
        check(gnomon_context_worked_on(gpu) == GNOMON_DEVICE_PLUGIN, where + ": not there", of);
    }
}

static std::string name(const kind &of, const char *what)
{
    return std::string(of.name) + ", " + what;
}

/* ---- cases ---- */

static void test_kinds()
{
    static const gnomon_dtype types[] = {GNOMON_F32, GNOMON_F64, GNOMON_F16, GNOMON_I8, GNOMON_I64};
    int lie = 0;
    for (const kind &of : kinds)
        for (int t = 0; t < (reduced ? 2 : 5); t++) {
            const int64_t k = t == 0 ? 37 : 9 + (int64_t)(next_word() % 200);
            const int64_t d = k + (int64_t)(next_word() % 3000);
            gnomon_operator *op = make_operator(of, k, d, next_word());
            const int64_t each = t == 1 ? 3 : 40; /* fewer nonzeros than columns, or more */
            const sparse x = make_sparse(61, d, each, types[t], NORMAL, t % 2 == 0);
            compare(op, x, k, t == 3 ? GNOMON_F64 : GNOMON_F32, nullptr, (layout)(lie++ % LAYOUTS),
                    name(of, gnomon_dtype_name(types[t])).c_str(), true);
            compare(op, x, k, GNOMON_F64, nullptr, (layout)(lie++ % LAYOUTS),
                    name(of, "fp64 sums").c_str(), true);
            gnomon_operator_destroy(op);
        }
}

static void test_ranges()
{
    for (const kind &of : kinds) {
        const int64_t k = 70, d = 900;
        gnomon_operator *op = make_operator(of, k, d, next_word());
        gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
        o.alpha = -1.75;
        o.beta = 0.3;
        o.row = 3;
        o.rows = 50;
        o.col = 45;
        for (int e = 2; e <= 60; e += 58) {
            const sparse x = make_sparse(33, d - 97, e, GNOMON_F32, NORMAL, false);
            compare(op, x, 50, GNOMON_F32, &o, GAPS, name(of, "a range").c_str());
            compare(op, x, 50, GNOMON_F64, &o, COLUMNS, name(of, "a range, fp64").c_str());
        }
        gnomon_operator_destroy(op);
    }
}

static void test_values()
{
    for (const kind &of : kinds) {
        gnomon_operator *op = make_operator(of, 130, 1500, next_word());
        gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
        const sparse wide = make_sparse(50, 1500, 50, GNOMON_F32, HUGE_RANGE, true);
        compare(op, wide, 130, GNOMON_F32, nullptr, ROWS, name(of, "all exponents").c_str(), true);
        o.allow_nonfinite = 1;
        for (int64_t each : {4, 50}) {
            const sparse special = make_sparse(50, 1500, each, GNOMON_F32, SPECIAL, false);
            compare(op, special, 130, GNOMON_F32, &o, ROWS, name(of, "NaN and infinity").c_str());
        }
        gnomon_operator_destroy(op);
    }
}

/* One row with all columns, longer than one warp takes. */
static void test_full_row()
{
    const int64_t d = reduced ? 33000 : 70001;
    for (const kind &of : kinds) {
        for (int turn = 0; turn < 2; turn++) {
            const int64_t k = turn ? 1100 : 5 + (int64_t)(next_word() % 60);
            if (reduced && turn) continue;
            gnomon_operator *op = make_operator(of, k, d, next_word());
            const sparse x =
                make_sparse(7, d, 20, turn ? GNOMON_F64 : GNOMON_F32, NORMAL, turn == 0, 4);
            compare(op, x, k, turn ? GNOMON_F64 : GNOMON_F32, nullptr, ROWS,
                    name(of, "a full row").c_str());
            gnomon_operator_destroy(op);
        }
    }
}

/* More sums than a block's shared memory holds, and the widths between. */
static void test_many_rows()
{
    for (const kind &of : kinds)
        for (int64_t k : {1, 4, 31, 33, 1000, 1025, 4097, 70001}) {
            if (reduced && k > 1025) continue;
            if (of.kind == GNOMON_BLOCKPERM_SJLT && k < 8) continue;
            if (of.nonzeros > k) continue;
            gnomon_operator *op = make_operator(of, k, std::max<int64_t>(k, 300), next_word());
            const sparse x = make_sparse(3, std::max<int64_t>(k, 300), k > 5000 ? 3 : 150,
                                         GNOMON_F32, NORMAL, true);
            compare(op, x, k, GNOMON_F32, nullptr, ROWS,
                    name(of, std::to_string(k).c_str()).c_str());
            if (k == 70001)
                compare(op, x, k, GNOMON_F64, nullptr, ROWS, name(of, "70001, fp64").c_str());
            gnomon_operator_destroy(op);
        }
}

static void test_far_columns()
{
    for (const kind &of : kinds)
        for (int shift : {33, 56}) {
            const int64_t d = (int64_t)1 << shift;
            gnomon_operator *op = make_operator(of, 40, d, next_word());
            const sparse x = make_sparse(20, d, 15, GNOMON_F32, NORMAL, false);
            if (of.kind == GNOMON_VERY_SPARSE) {
                output y(20, 40, GNOMON_F32, ROWS, false, false);
                const gnomon_csr view = x.view();
                const gnomon_status status = gnomon_sketch_csr(gpu, op, &view, &y.view, nullptr);
                check(status == GNOMON_ERROR_DEVICE && untouched(y) &&
                          strstr(gnomon_last_error(gpu),
                                 "declined: the nonzeros of very-sparse's columns"),
                      words(gpu, status), name(of, "far columns").c_str());
            } else {
                compare(op, x, 40, GNOMON_F32, nullptr, ROWS, name(of, "far columns").c_str());
            }
            gnomon_operator_destroy(op);
        }
}

static void test_small()
{
    gnomon_operator *op = make_operator(kinds[2], 5, 30, 1);
    for (int64_t rows : {0, 1, 2}) {
        sparse x = {rows, 30, GNOMON_F32, {}, {}, {}};
        x.offsets.assign((size_t)rows + 1, 0); /* no nonzeros */
        for (gnomon_dtype dtype : {GNOMON_F32, GNOMON_F64})
            compare(op, x, 5, dtype, nullptr, ROWS, "empty");
    }
    gnomon_operator_destroy(op);
}

/* Little of the GPU's memory: many batches, and no table. */
static void test_batches()
{
    if (!small) return;
    for (const kind &of : kinds) {
        const int64_t k = 300, d = 20000, n = reduced ? 900 : 40000;
        gnomon_operator *op = make_operator(of, k, d, next_word());
        for (bool sorted : {true, false}) {
            const sparse x = make_sparse(n, d, 30, GNOMON_F16, NORMAL, sorted);
            const gnomon_csr view = x.view();
            output a(n, k, GNOMON_F32, GAPS, false, false), b(n, k, GNOMON_F32, GAPS, false, false);
            output c(n, k, GNOMON_F32, GAPS, true, false),
                again(n, k, GNOMON_F32, GAPS, false, false);
            gnomon_status status = gnomon_sketch_csr(cpu, op, &view, &a.view, nullptr);
            if (status == GNOMON_OK) status = gnomon_sketch_csr(small, op, &view, &b.view, nullptr);
            if (status == GNOMON_OK) status = gnomon_sketch_csr(small, op, &view, &c.view, nullptr);
            if (status == GNOMON_OK)
                status = gnomon_sketch_csr(gpu, op, &view, &again.view, nullptr);
            check(status == GNOMON_OK, words(small, status), name(of, "batches").c_str());
            check(same(a, b), "other bits", name(of, "batches").c_str());
            check(same(a, c), "other bits", name(of, "batches, output there").c_str());
            check(same(a, again), "other bits", name(of, "one batch").c_str());
        }
        gnomon_operator_destroy(op);
    }
}

static int cancel(void *, const char *, int64_t, int64_t)
{
    return 1;
}

static void refuse(const gnomon_operator *op, const sparse &x, bool on_gpu, gnomon_status due,
                   const char *text, const char *of)
{
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &d);
    output y(x.rows, d.k, GNOMON_F32, ROWS, on_gpu, false);
    const there device(x);
    const gnomon_csr view = on_gpu ? device.view : x.view();
    o.csr_memory = on_gpu ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    const gnomon_status status = gnomon_sketch_csr(gpu, op, &view, &y.view, &o);
    check(status == due && strstr(gnomon_last_error(gpu), text), words(gpu, status), of);
    check(untouched(y), "output touched", of);
}

static void test_refused()
{
    gnomon_operator *op = make_operator(kinds[6], 20, 400, 7);
    const sparse good = make_sparse(12, 400, 9, GNOMON_F32, NORMAL, true);
    const int64_t first = good.offsets[0];
    for (bool on_gpu : {false, true}) {
        sparse x = good;
        x.indices[11] = 400;
        refuse(op, x, on_gpu, GNOMON_ERROR_DATA, "x.indices[11] is 400; x has 400 columns",
               "index");
        x.indices[11] = -5;
        refuse(op, x, on_gpu, GNOMON_ERROR_DATA, "x.indices[11] is -5; x has 400 columns", "index");
        x = good;
        x.offsets[6] = first + (int64_t)x.indices.size() + 5;
        refuse(op, x, on_gpu, GNOMON_ERROR_DATA, "x.offsets[7] is ", "offset");
        x.offsets[0] = -1;
        refuse(op, x, on_gpu, GNOMON_ERROR_DATA, "x.offsets[0] is -1; it must not be negative",
               "offset");
        x = good;
        put(GNOMON_F32, x.values.data() + 4 * 17, NAN);
        refuse(op, x, on_gpu, GNOMON_ERROR_NONFINITE, "x.values[17], is NaN or infinite", "NaN");
        int64_t row = -1, col = -1;
        const char *const argument = gnomon_last_error_argument(gpu);
        gnomon_last_error_place(gpu, &row, &col);
        int64_t in = 0;
        while (x.offsets[(size_t)in + 1] - first <= 17)
            in++;
        check(!on_gpu || (row == in && col == x.indices[17]), "names another place", "NaN");
        check(!on_gpu || (argument && strcmp(argument, "x") == 0), "names another argument", "NaN");
    }
    gnomon_operator_destroy(op);

    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_KRONECKER;
    d.k = 20;
    d.d = 400;
    if (gnomon_operator_create(cpu, &d, &op) != GNOMON_OK) exit(1);
    refuse(op, good, false, GNOMON_ERROR_DEVICE, "declined: block and kronecker operators",
           "kronecker");
    refuse(op, good, true, GNOMON_ERROR_DEVICE, "block and kronecker operators", "kronecker");
    gnomon_operator_destroy(op);

    op = make_operator(kinds[6], 20, 400, 7);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    output y(12, 20, GNOMON_F32, ROWS, false, false);
    gnomon_csr view = good.view();
    const there device(good);
    o.csr_memory = GNOMON_DEVICE_MEMORY;
    gnomon_status status = gnomon_sketch_csr(gpu, op, &view, &y.view, &o);
    check(status == GNOMON_ERROR_ARGUMENT, words(gpu, status), "host memory named the GPU's");
    status = gnomon_sketch_csr(cpu, op, &device.view, &y.view, &o);
    check(status == GNOMON_ERROR_DEVICE, words(cpu, status), "a GPU's memory for the CPU");
    o.csr_memory = (gnomon_memory)2;
    status = gnomon_sketch_csr(gpu, op, &view, &y.view, &o);
    check(status == GNOMON_ERROR_ARGUMENT, words(gpu, status), "memory 2");
    const gnomon_coo coo = {12, 400, 0, nullptr, nullptr, nullptr, GNOMON_F32};
    status = gnomon_sketch_coo(gpu, op, &coo, &y.view, nullptr);
    check(status == GNOMON_ERROR_DEVICE, words(gpu, status), "triplets");
    check(untouched(y), "output touched", "refused");
    gnomon_operator_destroy(op);
}

/* On a caller's stream the call returns at once, and the work is done in turn. */
static void test_stream()
{
    gnomon_operator *op = make_operator(kinds[2], 200, 3000, 9);
    const sparse x = make_sparse(500, 3000, 30, GNOMON_F32, NORMAL, false);
    const gnomon_csr view = x.view();
    output a(500, 200, GNOMON_F32, ROWS, false, false), b(500, 200, GNOMON_F32, ROWS, true, false);
    const there device(x);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    gnomon_status status = gnomon_sketch_csr(cpu, op, &view, &a.view, &o);
    o.csr_memory = GNOMON_DEVICE_MEMORY;
    o.allow_nonfinite = 1;
    o.device_stream = stream;
    if (status == GNOMON_OK) status = gnomon_sketch_csr(gpu, op, &device.view, &b.view, &o);
    check(status == GNOMON_OK, words(gpu, status), "a stream");
    MUST(cudaStreamSynchronize(stream));
    check(same(a, b), "other bits", "a stream");
    MUST(cudaStreamDestroy(stream));
    gnomon_operator_destroy(op);
}

static gnomon_context *open(const char *device, gnomon_progress_fn progress = nullptr)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = nullptr;
    o.device = device;
    o.progress = progress;
    return gnomon_context_create(&o, &ctx) == GNOMON_OK ? ctx : nullptr;
}

static void test_cancelled()
{
    gnomon_context *ctx = open(tested_device(), cancel);
    gnomon_operator *op = make_operator(kinds[6], 4000, 5000, 9);
    const sparse x = make_sparse(40000, 5000, 2, GNOMON_F32, NORMAL, true);
    output y(40000, 4000, GNOMON_F32, ROWS, false, false);
    const gnomon_csr view = x.view();
    const gnomon_status status = gnomon_sketch_csr(ctx, op, &view, &y.view, nullptr);
    check(status == GNOMON_ERROR_CANCELLED, words(ctx, status), "cancelled");
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

int main()
{
    const char *given = getenv("GNOMON_TEST_REDUCED");
    reduced = given && *given && strcmp(given, "0") != 0;
    seed();
    cpu = open("cpu");
    gpu = open(tested_device());
    if (!cpu || !gpu) {
        printf("skipped: no GPU\n");
        return 77;
    }
    const struct {
        const char *name;
        void (*run)();
    } tests[] = {{"kinds", test_kinds},         {"ranges", test_ranges},
                 {"values", test_values},       {"full row", test_full_row},
                 {"many rows", test_many_rows}, {"far columns", test_far_columns},
                 {"small", test_small},         {"refused", test_refused},
                 {"stream", test_stream}};
    for (const auto &test : tests) {
        const int before = failures;
        test.run();
        printf("%s: %s\n", test.name, failures == before ? "right" : "WRONG");
        fflush(stdout);
    }
    if (!reduced) test_cancelled();
    gnomon_context_destroy(gpu);
    setenv("GNOMON_CUDA_MEMORY", "40", 1);
    gpu = open(tested_device());
    unsetenv("GNOMON_CUDA_MEMORY");
    small = gpu;
    gpu = open(tested_device());
    test_batches();
    printf("sparse rows: %d checks, %d failures, error over bound at most %.3f\n", checks, failures,
           worst);
    gnomon_context_destroy(small);
    gnomon_context_destroy(gpu);
    gnomon_context_destroy(cpu);
    return failures ? 1 : 0;
}
