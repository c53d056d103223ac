/* Measures the cost model that gnomon_operator_choose goes by, and how good its choices are.
 *
 * 1. Times sketches of every simple kind over a grid of shapes, dense in both layouts and sparse,
 *    and fits the model's six seconds a unit to them: least squares of the relative errors, none
 *    below 0.
 * 2. Lets the model choose for shapes that are not in the grid, times every candidate, and tells
 * how far predictions were off and what the choices cost beside the best.
 *
 * The points lie in the memory of the device that is measured. With -DBENCH_CUDA the program can
 * measure a GPU too, in half a minute; docs/reference/choosing.md tells how.
 *
 * usage: bench_cost [--device cpu|cuda] [--threads N] [--name NAME] --model FILE [--records FILE]
 */
#include "base/context.h"
#include "choose/choose.h"

#include <gnomon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef BENCH_CUDA
#include <cuda_runtime_api.h>
#endif

enum { MOST_RECORDS = 4096, TERMS = 6, LEAST_RUNS = 4, MOST_RUNS = 25 };

typedef struct shape {
    int64_t n, d, k, nonzeros; /* nonzeros of all points; -1: dense */
    gnomon_dtype dtype;
    gnomon_form form;
} shape;

typedef struct record {
    gnomon_descriptor descriptor;
    shape of;
    double seconds, predicted;
} record;

static struct {
    gnomon_context *ctx;
    gnomon_device device;
    gnomon_model model;
    int64_t room;   /* coordinates that x holds */
    double longest; /* seconds; slower sketches are left out */
    double enough;  /* seconds to spend on one sketch's runs */
    void *x, *y;    /* in the device's memory */
    bool on_host;   /* but now in the host's */
    int64_t *offsets, *indices;
    float *values;
    record records[MOST_RECORDS];
    int count;
} bench;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_cost: %s: %s\n", what, why);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *of, int count)
{
    qsort(of, (size_t)count, sizeof *of, ascending);
    return count % 2 ? of[count / 2] : (of[count / 2 - 1] + of[count / 2]) / 2;
}

/* ---- points ---- */

static void *on_device(size_t bytes, const void *content)
{
    void *memory = NULL;
#ifdef BENCH_CUDA
    if (bench.device == GNOMON_DEVICE_PLUGIN) {
        if (cudaMalloc(&memory, bytes) != cudaSuccess) stop("memory", "the GPU has too little");
        if (content && cudaMemcpy(memory, content, bytes, cudaMemcpyHostToDevice) != cudaSuccess)
            stop("memory", "could not be copied to the GPU");
        return memory;
    }
#endif
    memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!memory) stop("memory", "too little");
    if (content) memcpy(memory, content, bytes);
    return memory;
}

static void wait_for_device(void)
{
#ifdef BENCH_CUDA
    if (bench.device == GNOMON_DEVICE_PLUGIN && cudaDeviceSynchronize() != cudaSuccess)
        stop("cuda", cudaGetErrorString(cudaGetLastError()));
#endif
}

/* Small integers in [0, 1) of every type: bits that are finite numbers in fp16, fp32 and fp64. */
static void make_points(void)
{
    const size_t bytes = (size_t)bench.room * sizeof(float);
    uint32_t *x = malloc(bytes);
    uint64_t state = 1;
    if (!x) stop("memory", "too little");
    for (int64_t i = 0; i < bench.room; i++)
        x[i] = (draw(&state) & UINT32_C(0x80ff03ff)) | UINT32_C(0x3e003800);
    bench.x = on_device(bytes, x);
    bench.y = on_device(bytes, NULL);
    free(x);
}

/* Sparse points: n rows with the same number of nonzeros, columns drawn evenly. */
static void make_sparse(int64_t n, int64_t d, int64_t nonzeros)
{
    uint64_t state = 2;
    bench.offsets = malloc((size_t)(n + 1) * sizeof(int64_t));
    bench.indices = malloc((size_t)nonzeros * sizeof(int64_t));
    bench.values = malloc((size_t)nonzeros * sizeof(float));
    if (!bench.offsets || !bench.indices || !bench.values) stop("memory", "too little");
    for (int64_t i = 0; i <= n; i++)
        bench.offsets[i] = nonzeros / n * i;
    for (int64_t i = 0; i < nonzeros; i++) {
        bench.indices[i] =
            (int64_t)(((uint64_t)draw(&state) << 24 | draw(&state) >> 8) % (uint64_t)d);
        bench.values[i] = 1.0f;
    }
}

static void drop_sparse(void)
{
    free(bench.offsets);
    free(bench.indices);
    free(bench.values);
}

/* ---- timing ---- */

static gnomon_status sketch(const gnomon_descriptor *d, const shape *s)
{
    gnomon_operator *op;
    gnomon_status status = gnomon_operator_create(bench.ctx, d, &op);
    if (status != GNOMON_OK) return status;
    const bool f64 = s->dtype == GNOMON_F64;
    gnomon_matrix x = s->form == GNOMON_FORM_COORDINATES
                          ? gnomon_matrix_colmajor(bench.x, s->dtype, s->n, s->d)
                          : gnomon_matrix_rowmajor(bench.x, s->dtype, s->n, s->d);
    gnomon_matrix y =
        s->form == GNOMON_FORM_COORDINATES
            ? gnomon_matrix_colmajor(bench.y, f64 ? GNOMON_F64 : GNOMON_F32, s->n, d->k)
            : gnomon_matrix_rowmajor(bench.y, f64 ? GNOMON_F64 : GNOMON_F32, s->n, d->k);
    if (bench.device == GNOMON_DEVICE_PLUGIN && !bench.on_host)
        x.memory = y.memory = GNOMON_DEVICE_MEMORY;
    if (s->form == GNOMON_FORM_SPARSE) {
        const gnomon_csr csr = {s->n, s->d, bench.offsets, bench.indices, bench.values, GNOMON_F32};
        status = gnomon_sketch_csr(bench.ctx, op, &csr, &y, NULL);
    } else {
        status = gnomon_sketch(bench.ctx, op, &x, &y, NULL);
    }
    wait_for_device();
    gnomon_operator_destroy(op);
    return status;
}

static double once(const gnomon_descriptor *d, const shape *s)
{
    const double start = now();
    if (sketch(d, s) != GNOMON_OK) {
        fprintf(stderr, "bench_cost: %s, n %lld, d %lld, k %lld: %s\n", gnomon_kind_name(d->kind),
                (long long)s->n, (long long)s->d, (long long)d->k, gnomon_last_error(bench.ctx));
        return NAN;
    }
    return now() - start;
}

/* Least seconds of some runs after one that warms up; NaN when it fails, infinite when it takes too
 * long. The least for what disturbs a run only lengthens it. */
static double time_sketch(const gnomon_descriptor *d, const shape *s)
{
    double least = INFINITY, total = 0;
    const double first = once(d, s);
    if (isnan(first)) return NAN;
    if (first > bench.longest && !(once(d, s) <= bench.longest)) return INFINITY;
    for (int runs = 0; runs < LEAST_RUNS || (runs < MOST_RUNS && total < bench.enough); runs++) {
        const double seconds = once(d, s);
        total += seconds;
        least = fmin(least, seconds);
    }
    return least;
}

/* ---- fitting ---- */

static gnomon_descriptor describe(gnomon_kind kind, gnomon_dtype precision, const shape *s)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = kind;
    d.precision = precision;
    d.seed = 1;
    d.k = s->k;
    d.d = s->d;
    return d;
}

static void terms(const gnomon_cost *c, const record *r, double f[TERMS])
{
    gnomon_operator *op;
    if (gnomon_operator_create(bench.ctx, &r->descriptor, &op) != GNOMON_OK)
        stop("operator", gnomon_last_error(bench.ctx));
    const gnomon_work w = gnomon_count(c, &op->factor[0], (double)r->of.n, (double)r->of.nonzeros);
    gnomon_operator_destroy(op);
    const double all[TERMS] = {1, w.made, w.multiplied, w.read, w.written, w.steps};
    memcpy(f, all, sizeof all);
}

/* Least squares with no coefficient below 0, by descent along one coefficient at a time; the
 * columns of f are scaled to unit length. Returns the sum of squared relative errors. */
static double fit(int count, double (*f)[TERMS], double out[TERMS])
{
    double gram[TERMS][TERMS] = {{0}}, right[TERMS] = {0}, length[TERMS], x[TERMS] = {0};
    for (int j = 0; j < TERMS; j++) {
        length[j] = 0;
        for (int i = 0; i < count; i++)
            length[j] += f[i][j] * f[i][j];
        length[j] = sqrt(length[j]);
    }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < TERMS; j++) {
            if (!(length[j] > 0)) continue;
            right[j] += f[i][j] / length[j];
            for (int l = 0; l < TERMS; l++)
                if (length[l] > 0) gram[j][l] += f[i][j] / length[j] * f[i][l] / length[l];
        }
    double moved = 1;
    for (int round = 0; round < 200000 && moved > 0; round++) {
        moved = 0;
        for (int j = 0; j < TERMS; j++) {
            if (!(length[j] > 0)) continue;
            double slope = right[j];
            for (int l = 0; l < TERMS; l++)
                slope -= gram[j][l] * x[l];
            const double next = fmax(0, x[j] + slope / gram[j][j]);
            if (fabs(next - x[j]) > 1e-12 * next) moved = 1;
            x[j] = next;
        }
    }
    double squares = 0;
    for (int i = 0; i < count; i++) {
        double error = -1;
        for (int j = 0; j < TERMS; j++)
            if (length[j] > 0) error += x[j] / length[j] * f[i][j];
        squares += error * error;
    }
    for (int j = 0; j < TERMS; j++)
        out[j] = length[j] > 0 ? x[j] / length[j] : 0;
    return squares;
}

/* Fits c to records [first, bench.count); on a GPU the tiles too. */
static void fit_cost(gnomon_cost *c, int first)
{
    static const int tiles[] = {1, 8, 16, 32, 64, 128, 256};
    static double f[MOST_RECORDS][TERMS];
    const int count = bench.count - first;
    const bool cpu = bench.device == GNOMON_DEVICE_CPU;
    double least = INFINITY;
    gnomon_cost best = *c;
    for (int p = 0; p < 7; p++) {
        for (int r = 0; r < 7; r++) {
            double x[TERMS];
            /* The CPU's kernels take 16 points and any rows. */
            if (cpu && (tiles[p] != 16 || tiles[r] != 1)) continue;
            c->point_tile = tiles[p];
            c->row_tile = tiles[r];
            for (int i = 0; i < count; i++) {
                terms(c, &bench.records[first + i], f[i]);
                for (int j = 0; j < TERMS; j++)
                    f[i][j] /= bench.records[first + i].seconds;
            }
            const double squares = fit(count, f, x);
            if (squares >= least * 0.999) continue;
            least = squares;
            best = *c;
            best.start = x[0];
            best.make = x[1];
            best.multiply = x[2];
            best.read = x[3];
            best.write = x[4];
            best.step = x[5];
        }
    }
    *c = best;
}

static gnomon_load load_of(const shape *s)
{
    return (gnomon_load){.form = s->form,
                         .n = (double)s->n,
                         .nonzeros = (double)s->nonzeros,
                         .element_size = (int)gnomon_dtype_size(s->dtype),
                         .f64 = s->dtype == GNOMON_F64,
                         .host = bench.device == GNOMON_DEVICE_CPU,
                         .threads = gnomon_context_threads(bench.ctx)};
}

static double predict(const gnomon_descriptor *d, const shape *s)
{
    gnomon_operator *op;
    if (gnomon_operator_create(bench.ctx, d, &op) != GNOMON_OK) return NAN;
    const gnomon_load load = load_of(s);
    const double seconds = gnomon_predict(&bench.model, op, &load);
    gnomon_operator_destroy(op);
    return seconds;
}

static void keep(const gnomon_descriptor *d, const shape *s, double seconds)
{
    if (!isfinite(seconds)) return;
    if (bench.count == MOST_RECORDS) stop("records", "too many");
    bench.records[bench.count++] = (record){*d, *s, seconds, NAN};
}

/* Whether a sketch fits in memory and is likely to end in time. */
static bool fits(const gnomon_descriptor *d, const shape *s)
{
    const double work = bench.longest * (bench.device == GNOMON_DEVICE_PLUGIN ? 1e14 : 2e10);
    const double columns = s->nonzeros < 0 ? (double)s->d : fmin((double)s->d, (double)s->nonzeros);
    if (s->nonzeros < 0 && s->n * s->d > bench.room) return false;
    if (s->k > s->d || s->n * s->k * 2 > bench.room) return false;
    gnomon_operator *op;
    if (gnomon_operator_create(bench.ctx, d, &op) != GNOMON_OK) return false;
    const double made = gnomon_operator_fill(op) * (double)s->k * columns;
    gnomon_operator_destroy(op);
    if (d->kind == GNOMON_SRHT && s->nonzeros < 0) return true;
    return made <= work / 10 && made * (double)s->n * columns / (double)s->d <= work;
}

/* What the time of a dense shape grows with, about. */
static double effort(const gnomon_descriptor *d, const shape *s)
{
    const double products = (double)s->n * (double)s->d;
    return d->kind == GNOMON_SRHT || d->kind == GNOMON_SJLT ? products : products * (double)s->k;
}

static void measure_dense(gnomon_kind kind, gnomon_dtype precision, gnomon_form form)
{
    static const int64_t points[] = {1, 16, 256, 4096}, coordinates[] = {256, 4096, 65536, 1 << 20},
                         rows[] = {16, 128, 1024, 8192};
    gnomon_cost c = {.kind = kind, .precision = precision, .form = form, .half = 1, .f64 = 1};
    const int first = bench.count;
    double too_much = INFINITY; /* the least effort that took too long */
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int l = 0; l < 4; l++) {
                const shape s = {points[i], coordinates[j], rows[l], -1, GNOMON_F32, form};
                const gnomon_descriptor d = describe(kind, precision, &s);
                if (!fits(&d, &s) || effort(&d, &s) >= too_much) continue;
                const double seconds = time_sketch(&d, &s);
                if (isinf(seconds)) too_much = effort(&d, &s);
                keep(&d, &s, seconds);
            }
    if (bench.count - first < TERMS) {
        fprintf(stderr, "bench_cost: %s left out: too few sketches of it could be had\n",
                gnomon_kind_name(kind));
        return;
    }
    fit_cost(&c, first);
    gnomon_cost *kept = &bench.model.cost[bench.model.count++];
    *kept = c;
    /* Other element types: the ratio of their times to those of fp32. */
    static const shape others[] = {{256, 4096, 128, -1, GNOMON_F32, GNOMON_FORM_POINTS},
                                   {1024, 4096, 256, -1, GNOMON_F32, GNOMON_FORM_POINTS},
                                   {64, 65536, 64, -1, GNOMON_F32, GNOMON_FORM_POINTS}};
    double half[3], f64[3];
    const double longest = bench.longest;
    bench.longest *= 20; /* fp64 sums may be far slower, and their ratio is wanted */
    for (int i = 0; i < 3; i++) {
        shape s = others[i];
        s.form = form;
        const gnomon_descriptor d = describe(kind, precision, &s);
        const double single = time_sketch(&d, &s);
        s.dtype = GNOMON_F16;
        half[i] = time_sketch(&d, &s) / single;
        s.dtype = GNOMON_F64;
        f64[i] = time_sketch(&d, &s) / single;
    }
    bench.longest = longest;
    const double h = median(half, 3), w = median(f64, 3);
    if (h > 0 && h <= 1000) kept->half = h;
    if (w > 0) kept->f64 = fmin(w, 1000);
}

static void measure_sparse(gnomon_kind kind, gnomon_dtype precision)
{
    static const int64_t points[] = {1, 64, 4096, 32768}, coordinates[] = {4096, 1 << 18, 1 << 24},
                         each[] = {16, 256}, rows[] = {16, 256, 2048};
    gnomon_cost c = {
        .kind = kind, .precision = precision, .form = GNOMON_FORM_SPARSE, .half = 1, .f64 = 1};
    const int first = bench.count;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            for (int e = bench.device == GNOMON_DEVICE_CPU ? 0 : 1; e < 2; e++) {
                const int64_t nonzeros = points[i] * each[e];
                make_sparse(points[i], coordinates[j], nonzeros);
                for (int l = 0; l < 3; l++) {
                    const shape s = {points[i], coordinates[j], rows[l],
                                     nonzeros,  GNOMON_F32,     GNOMON_FORM_SPARSE};
                    const gnomon_descriptor d = describe(kind, precision, &s);
                    if (fits(&d, &s)) keep(&d, &s, time_sketch(&d, &s));
                }
                drop_sparse();
            }
    fit_cost(&c, first);
    bench.model.cost[bench.model.count++] = c;
}

static const struct {
    gnomon_kind kind;
    gnomon_dtype precision;
} simple[] = {{GNOMON_RADEMACHER, 0}, {GNOMON_GAUSSIAN, GNOMON_F32}, {GNOMON_GAUSSIAN, GNOMON_F16},
              {GNOMON_ACHLIOPTAS, 0}, {GNOMON_VERY_SPARSE, 0},       {GNOMON_SJLT, 0},
              {GNOMON_SRHT, 0}};

enum { SIMPLE = sizeof simple / sizeof *simple };

static void measure_model(void)
{
    for (int i = 0; i < SIMPLE; i++) {
        measure_dense(simple[i].kind, simple[i].precision, GNOMON_FORM_POINTS);
        measure_dense(simple[i].kind, simple[i].precision, GNOMON_FORM_COORDINATES);
        if (bench.device == GNOMON_DEVICE_CPU) measure_sparse(simple[i].kind, simple[i].precision);
        fprintf(stderr, "measured %s\n", gnomon_kind_name(simple[i].kind));
    }
    for (int i = 0; i < bench.count; i++)
        bench.records[i].predicted = predict(&bench.records[i].descriptor, &bench.records[i].of);
}

/* ---- writing ---- */

static void write_operator(FILE *out, const gnomon_descriptor *d)
{
    fprintf(out, "{\"operator\": \"%s\"", gnomon_kind_name(d->kind));
    if (d->kind == GNOMON_GAUSSIAN)
        fprintf(out, ", \"precision\": \"%s\"", d->precision == GNOMON_F16 ? "fp16" : "fp32");
    if (d->kind == GNOMON_BLOCK) fprintf(out, ", \"blocks\": %lld", (long long)d->blocks);
    if (d->kind == GNOMON_KRONECKER) fprintf(out, ", \"zeta\": %lld", (long long)d->zeta);
}

static void write_model(const char *path)
{
    static const char *const forms[] = {"points", "coordinates", "sparse"};
    FILE *out = fopen(path, "w");
    if (!out) stop(path, "can't be written");
    fprintf(out,
            "{\"gnomon\": \"model\", \"version\": 1, \"name\": \"%s\", \"device\": \"%s\", "
            "\"threads\": %d,\n \"upload\": %.3g, \"download\": %.3g, \"costs\": [",
            bench.model.name, bench.model.device == GNOMON_DEVICE_PLUGIN ? "cuda" : "cpu",
            bench.model.threads, bench.model.upload, bench.model.download);
    for (int i = 0; i < bench.model.count; i++) {
        const gnomon_cost *c = &bench.model.cost[i];
        const gnomon_descriptor d = {.kind = c->kind, .precision = c->precision};
        fprintf(out, "%s\n  ", i ? "," : "");
        write_operator(out, &d);
        fprintf(out,
                ", \"form\": \"%s\", \"point_tile\": %d, \"row_tile\": %d,\n   \"start\": %.3g, "
                "\"make\": %.3g, \"multiply\": %.3g, \"read\": %.3g, \"write\": %.3g, "
                "\"step\": %.3g, \"half\": %.3g, \"wide\": %.3g}",
                forms[c->form], c->point_tile, c->row_tile, c->start, c->make, c->multiply, c->read,
                c->write, c->step, c->half, c->f64);
    }
    fprintf(out, "\n]}\n");
    if (fclose(out) != 0) stop(path, "can't be written");
}

static void write_shape(FILE *out, const shape *s)
{
    static const char *const forms[] = {"points", "coordinates", "sparse"};
    fprintf(out, "\"form\": \"%s\", \"dtype\": \"%s\", \"n\": %lld, \"d\": %lld", forms[s->form],
            gnomon_dtype_name(s->dtype), (long long)s->n, (long long)s->d);
    if (s->nonzeros >= 0) fprintf(out, ", \"nonzeros\": %lld", (long long)s->nonzeros);
}

static void write_fitted(FILE *out)
{
    fprintf(out, " \"fitted\": [");
    for (int i = 0; i < bench.count; i++) {
        const record *r = &bench.records[i];
        fprintf(out, "%s\n  ", i ? "," : "");
        write_operator(out, &r->descriptor);
        fprintf(out, ", ");
        write_shape(out, &r->of);
        fprintf(out, ", \"k\": %lld, \"seconds\": %.4g, \"predicted\": %.4g}",
                (long long)r->descriptor.k, r->seconds, r->predicted);
    }
    fprintf(out, "\n ],\n");
}

/* ---- choices ---- */

typedef struct question {
    shape of;
    double eps;
    gnomon_assumption assume;
} question;

static void write_choice(FILE *out, const question *q, const gnomon_choice *choice)
{
    double best = INFINITY, taken = NAN;
    fprintf(out, "\n  {");
    write_shape(out, &q->of);
    fprintf(out, ", \"assume\": \"%s\", ",
            q->assume == GNOMON_ASSUME_INCOHERENT ? "spread" : "nothing");
    if (q->of.k > 0)
        fprintf(out, "\"k\": %lld", (long long)q->of.k);
    else
        fprintf(out, "\"eps\": %g", q->eps);
    fprintf(out, ", \"chosen\": %d,\n   \"candidates\": [", choice->chosen);
    for (int i = 0; i < choice->count; i++) {
        const gnomon_candidate *c = &choice->candidate[i];
        double seconds = NAN;
        /* On a GPU, lent by the minute, only those that could be taken. */
        if (c->seconds <= 1.5 * bench.longest && 2 * q->of.n * c->descriptor.k <= bench.room &&
            (c->admitted || bench.device == GNOMON_DEVICE_CPU))
            seconds = time_sketch(&c->descriptor, &q->of);
        fprintf(out, "%s\n    ", i ? "," : "");
        write_operator(out, &c->descriptor);
        fprintf(out, ", \"k\": %lld, \"admitted\": %s", (long long)c->descriptor.k,
                c->admitted ? "true" : "false");
        if (!isnan(c->seconds)) fprintf(out, ", \"predicted\": %.4g", c->seconds);
        if (isfinite(seconds)) fprintf(out, ", \"seconds\": %.4g", seconds);
        fprintf(out, "}");
        if (c->admitted && seconds < best) best = seconds;
        if (i == choice->chosen) taken = seconds;
    }
    fprintf(out, "]");
    if (isfinite(taken))
        fprintf(out, ",\n   \"seconds\": %.4g, \"best\": %.4g, \"regret\": %.4g", taken, best,
                taken / best);
    fprintf(out, "}");
    printf("%-11s n %-6lld d %-8lld %s %-5g %-7s -> %-11s %9.3f ms, predicted %9.3f, regret %.2f\n",
           q->of.form == GNOMON_FORM_POINTS        ? "points"
           : q->of.form == GNOMON_FORM_COORDINATES ? "coordinates"
                                                   : "sparse",
           (long long)q->of.n, (long long)q->of.d, q->of.k > 0 ? "k  " : "eps",
           q->of.k > 0 ? (double)q->of.k : q->eps,
           q->assume == GNOMON_ASSUME_INCOHERENT ? "spread" : "nothing",
           gnomon_kind_name(choice->candidate[choice->chosen].descriptor.kind), 1e3 * taken,
           1e3 * choice->candidate[choice->chosen].seconds, taken / best);
    fflush(stdout);
}

static bool ask(FILE *out, const question *q, bool first)
{
    gnomon_choose_options o = GNOMON_CHOOSE_OPTIONS_INIT;
    gnomon_choice choice;
    choice.struct_size = sizeof choice;
    o.n = q->of.n;
    o.d = q->of.d;
    o.k = q->of.k;
    o.eps = q->eps;
    o.assume = q->assume;
    o.dtype = q->of.dtype;
    o.coordinates_contiguous = q->of.form == GNOMON_FORM_COORDINATES;
    o.nonzeros = q->of.nonzeros;
    o.memory = bench.device == GNOMON_DEVICE_PLUGIN ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    o.model = &bench.model;
    if (q->of.n * q->of.d > bench.room && q->of.nonzeros < 0) return first;
    /* An eps that no k can keep is no question. */
    if (gnomon_operator_choose(bench.ctx, &o, &choice) != GNOMON_OK) return first;
    if (!first) fprintf(out, ",");
    write_choice(out, q, &choice);
    return false;
}

static void test_choices(FILE *out)
{
    static const int64_t shapes[][3] = {
        {1, 100000, 64},     {1, 1000000, 256},   {7, 30000, 500},    {50, 784, 32},
        {50, 500000, 100},   {400, 10000, 64},    {400, 10000, 1000}, {1797, 64, 16},
        {2000, 20000, 256},  {3000, 3000, 700},   {10000, 784, 64},   {20000, 100, 10},
        {64, 4000000, 1024}, {256, 1000000, 256}, {100000, 768, 128}};
    static const double epsilons[] = {0.2, 0.5};
    static const gnomon_assumption assumptions[] = {GNOMON_ASSUME_NOTHING,
                                                    GNOMON_ASSUME_INCOHERENT};
    bool first = true;
    fprintf(out, " \"choices\": [");
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            for (int form = 0; form < 2; form++) {
                question q = {
                    {shapes[i][0], shapes[i][1], shapes[i][2], -1, GNOMON_F32, (gnomon_form)form},
                    0,
                    assumptions[a]};
                first = ask(out, &q, first);
            }
            for (int e = bench.device == GNOMON_DEVICE_CPU ? 0 : 1; e < 2; e++) {
                const question q = {
                    {shapes[i][0], shapes[i][1], 0, -1, GNOMON_F32, GNOMON_FORM_POINTS},
                    epsilons[e],
                    assumptions[a]};
                first = ask(out, &q, first);
            }
            if (bench.device != GNOMON_DEVICE_CPU || shapes[i][1] < 10000) continue;
            question q = {{shapes[i][0], shapes[i][1], shapes[i][2], 100 * shapes[i][0], GNOMON_F32,
                           GNOMON_FORM_SPARSE},
                          0,
                          assumptions[a]};
            make_sparse(q.of.n, q.of.d, q.of.nonzeros);
            first = ask(out, &q, first);
            drop_sparse();
        }
    fprintf(out, "\n ]}\n");
}

/* ---- the command ---- */

/* A GPU's name is that by which the library knows its model. */
static const char *device_name(void)
{
#ifdef BENCH_CUDA
    static struct cudaDeviceProp gpu;
    if (bench.device == GNOMON_DEVICE_PLUGIN) {
        if (cudaGetDeviceProperties(&gpu, 0) != cudaSuccess) stop("cuda", "there is no GPU");
        return gpu.name;
    }
#endif
    return "measured";
}

/* What a sketch of points in host memory takes beyond one of points on the GPU. */
static double beyond(int64_t n, int64_t d, int64_t k)
{
    const shape s = {n, d, k, -1, GNOMON_F32, GNOMON_FORM_POINTS};
    const gnomon_descriptor what = describe(GNOMON_RADEMACHER, 0, &s);
    const double there = time_sketch(&what, &s), longest = bench.longest;
    void *const x = bench.x, *const y = bench.y;
    const size_t in = (size_t)(n * d) * sizeof(float), out = (size_t)(n * k) * sizeof(float);
    bench.x = aligned_alloc(64, (in + 63) / 64 * 64);
    bench.y = aligned_alloc(64, (out + 63) / 64 * 64);
    if (!bench.x || !bench.y) stop("memory", "too little");
    memset(bench.x, 0x3e, in);
    memset(bench.y, 0, out);
    bench.on_host = true;
    bench.longest = 10;
    const double here = time_sketch(&what, &s);
    bench.longest = longest;
    bench.on_host = false;
    free(bench.x);
    free(bench.y);
    bench.x = x;
    bench.y = y;
    if (!isfinite(here - there)) stop("transfers", "could not be measured");
    return fmax(here - there, 0);
}

/* Seconds a byte of points and of sketches that lie in host memory, not pinned. */
static void measure_transfers(void)
{
    const double many = (double)4096 * 16384 * sizeof(float), square = 65536.0 * 256 * 4;
    bench.model.upload = beyond(4096, 16384, 16) / many;
    bench.model.download = fmax(beyond(65536, 256, 256) / square - bench.model.upload, 0);
}

int main(int argc, char **argv)
{
    const char *model = NULL, *records = NULL, *name = NULL;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    bench.device = GNOMON_DEVICE_CPU;
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1];
        if (value == NULL) stop(argv[i], "needs a value");
        if (strcmp(argv[i], "--device") == 0) {
            options.device = value;
            bench.device = strcmp(value, "cpu") == 0 ? GNOMON_DEVICE_CPU : GNOMON_DEVICE_PLUGIN;
        } else if (strcmp(argv[i], "--threads") == 0)
            options.threads = atoi(value);
        else if (strcmp(argv[i], "--name") == 0)
            name = value;
        else if (strcmp(argv[i], "--model") == 0)
            model = value;
        else if (strcmp(argv[i], "--records") == 0)
            records = value;
        else
            stop(argv[i], "usage: bench_cost [--device cpu|cuda] [--threads N] [--name NAME] "
                          "--model FILE [--records FILE]");
    }
    if (model == NULL) stop("--model", "is needed");
#ifndef BENCH_CUDA
    if (bench.device == GNOMON_DEVICE_PLUGIN)
        stop("--device cuda", "this program measures the CPU; build-gpu/gpu/cost measures a GPU");
#endif
    if (name == NULL) name = device_name();
    bench.room = bench.device == GNOMON_DEVICE_PLUGIN ? INT64_C(1) << 28 : INT64_C(1) << 25;
    bench.longest = bench.device == GNOMON_DEVICE_PLUGIN ? 0.02 : 0.2;
    bench.enough = bench.device == GNOMON_DEVICE_PLUGIN ? 0.005 : 0.03;
    if (gnomon_context_create(&options, &bench.ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    snprintf(bench.model.name, sizeof bench.model.name, "%s", name);
    bench.model.device = bench.device;
    bench.model.threads = gnomon_context_threads(bench.ctx);
    make_points();
    if (bench.device == GNOMON_DEVICE_PLUGIN) measure_transfers();
    measure_model();
    write_model(model);
    if (records != NULL) {
        FILE *out = fopen(records, "w");
        if (!out) stop(records, "can't be written");
        fprintf(out,
                "{\"version\": \"%s\", \"model\": \"%s\", \"device\": \"%s\", \"isa\": \"%s\", "
                "\"threads\": %d,\n",
                gnomon_version(), name, bench.device == GNOMON_DEVICE_PLUGIN ? "cuda" : "cpu",
                gnomon_context_isa(bench.ctx), bench.model.threads);
        write_fitted(out);
        test_choices(out);
        if (fclose(out) != 0) stop(records, "can't be written");
    }
    gnomon_context_destroy(bench.ctx);
    return 0;
}
