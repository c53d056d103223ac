/* What operators do to norms and distances: the quality tables of a thesis on Johnson-Lindenstrauss
 * transforms with tensor cores (block operators I_r (x) A of random signs, its distribution (3), or
 * of Achlioptas' sparse signs, its distribution (4)), and what it left open: distances of pairs,
 * and real data.
 *
 * The figure is the thesis' norm difference, | |Sx| / |x| - 1 |: its mean and variance over seeds
 * and points, and the standard deviation of a seed's mean. The thesis does not tell what its random
 * unit vectors are, so several are taken:
 *   normal    independent normal coordinates
 *   positive  independent uniform coordinates in [0, 1)
 *   repeated  one block of uniform coordinates in [-1, 1), repeated: all of a block operator's
 *             blocks see the same
 *
 * usage: bench_quality FILE.json [IMAGES [ROWS]]     IMAGES: real points, any format of gnomon's */
#include <gnomon.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, PAIRS = 20000 };

typedef struct points {
    const char *name;
    int64_t n, d;
    float *x;
    double *norm; /* NULL: norms are no matter */
    int64_t pairs;
    int64_t *first, *second;
    double *distance;
} points;

static gnomon_context *ctx;
static json_t *records;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_quality: %s: %s\n", what, why);
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) stop("memory", "too little");
    return memory;
}

static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double norm_of(const float *x, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++)
        sum += (double)x[j] * (double)x[j];
    return sqrt(sum);
}

static double distance_of(const float *x, const float *y, int64_t d)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++)
        sum += ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
    return sqrt(sum);
}

/* Random points; repeated: with so many coordinates a block. */
static points make_points(const char *name, int64_t n, int64_t d, int64_t block)
{
    points p = {.name = name, .n = n, .d = d};
    uint64_t state = 42;
    p.x = room((size_t)(n * d), sizeof(float));
    p.norm = room((size_t)n, sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        float *x = p.x + i * d;
        for (int64_t j = 0; j < d; j++) {
            const double u = uniform(&state);
            if (strcmp(name, "positive") == 0)
                x[j] = (float)u;
            else if (strcmp(name, "repeated") == 0)
                x[j] = j < block ? (float)(2 * u - 1) : x[j - block];
            else
                x[j] = (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * uniform(&state)));
        }
        p.norm[i] = norm_of(x, d);
    }
    return p;
}

/* All pairs if they are few, else a sample. */
static void make_pairs(points *p)
{
    uint64_t state = 7;
    const int64_t all = p->n * (p->n - 1) / 2;
    p->pairs = all < PAIRS ? all : PAIRS;
    p->first = room((size_t)p->pairs, sizeof *p->first);
    p->second = room((size_t)p->pairs, sizeof *p->second);
    p->distance = room((size_t)p->pairs, sizeof *p->distance);
    int64_t i = 0, j = 1;
    for (int64_t t = 0; t < p->pairs;) {
        if (all > PAIRS) {
            i = (int64_t)(uniform(&state) * (double)p->n);
            j = (int64_t)(uniform(&state) * (double)p->n);
            if (i == j) continue;
        }
        p->first[t] = i;
        p->second[t] = j;
        p->distance[t] = distance_of(p->x + i * p->d, p->x + j * p->d, p->d);
        if (p->distance[t] > 0) t++;
        if (all <= PAIRS && ++j == p->n) {
            i++;
            j = i + 1;
        }
    }
}

static void drop_points(points *p)
{
    free(p->x);
    free(p->norm);
    free(p->first);
    free(p->second);
    free(p->distance);
}

/* ---- a cell of a table ---- */

typedef struct tally {
    double sum, squares, count, seed_sum, seed_squares, seeds;
} tally;

static void add_seed(tally *t, const double *difference, int64_t count)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += difference[i];
        squares += difference[i] * difference[i];
    }
    t->sum += sum;
    t->squares += squares;
    t->count += (double)count;
    t->seed_sum += sum / (double)count;
    t->seed_squares += sum / (double)count * (sum / (double)count);
    t->seeds++;
}

static void record(const char *table, const char *what, const gnomon_descriptor *d, const points *p,
                   const tally *t)
{
    const double mean = t->sum / t->count, seed_mean = t->seed_sum / t->seeds;
    const double spread = sqrt(fmax(0, t->seed_squares / t->seeds - seed_mean * seed_mean) *
                               t->seeds / (t->seeds - 1));
    json_t *r = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:f, s:f, s:f}", "table", table,
                          "of", what, "input", p->name, "operator", gnomon_kind_name(d->kind), "M",
                          (json_int_t)d->k, "N", (json_int_t)d->d, "points", (int)p->n, "seeds",
                          (int)t->seeds, "mean", mean, "variance",
                          t->squares / t->count - mean * mean, "seed_deviation", spread);
    if (d->kind == GNOMON_BLOCK) {
        json_object_set_new(r, "inner", json_string(gnomon_kind_name(d->inner)));
        json_object_set_new(r, "r", json_integer(d->blocks));
    }
    json_array_append_new(records, r);
    printf("%-10s %-9s %-9s %-11s %-10s M %-5lld N %-8lld r %-4lld  %.4f  variance %.5f  +- %.4f\n",
           table, what, p->name, gnomon_kind_name(d->kind),
           d->kind == GNOMON_BLOCK ? gnomon_kind_name(d->inner) : "", (long long)d->k,
           (long long)d->d, (long long)d->blocks, mean, t->squares / t->count - mean * mean,
           spread);
    fflush(stdout);
}

static void measure(const char *table, gnomon_descriptor d, const points *p, int seeds)
{
    const int64_t most = p->n > p->pairs ? p->n : p->pairs;
    float *y = room((size_t)(p->n * d.k), sizeof(float));
    double *difference = room((size_t)most, sizeof(double));
    tally norms = {0}, distances = {0};
    d.d = p->d;
    for (int s = 0; s < seeds; s++) {
        gnomon_operator *op;
        d.seed = (uint64_t)s;
        if (gnomon_operator_create(ctx, &d, &op) != GNOMON_OK)
            stop("operator", gnomon_last_error(ctx));
        const gnomon_matrix x = gnomon_matrix_rowmajor(p->x, GNOMON_F32, p->n, p->d);
        const gnomon_matrix out = gnomon_matrix_rowmajor(y, GNOMON_F32, p->n, d.k);
        if (gnomon_sketch(ctx, op, &x, &out, NULL) != GNOMON_OK)
            stop("sketch", gnomon_last_error(ctx));
        if (s == 0) gnomon_operator_describe(op, &d);
        gnomon_operator_destroy(op);
        int64_t count = 0;
        for (int64_t i = 0; i < p->n; i++)
            if (p->norm[i] > 0)
                difference[count++] = fabs(norm_of(y + i * d.k, d.k) / p->norm[i] - 1);
        add_seed(&norms, difference, count);
        if (p->pairs == 0) continue;
        for (int64_t t = 0; t < p->pairs; t++)
            difference[t] = fabs(distance_of(y + p->first[t] * d.k, y + p->second[t] * d.k, d.k) /
                                     p->distance[t] -
                                 1);
        add_seed(&distances, difference, p->pairs);
    }
    record(table, "norms", &d, p, &norms);
    if (p->pairs > 0) record(table, "distances", &d, p, &distances);
    free(y);
    free(difference);
}

static gnomon_descriptor describe(gnomon_kind kind, gnomon_kind inner, int64_t k, int64_t blocks)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = blocks == 1 ? inner : kind;
    d.inner = blocks == 1 ? 0 : inner;
    d.k = k;
    d.blocks = blocks == 1 ? 0 : blocks;
    return d;
}

/* ---- the tables ---- */

static const gnomon_kind distributions[] = {GNOMON_RADEMACHER, GNOMON_ACHLIOPTAS};
static const char *const inputs[] = {"normal", "positive", "repeated"};

/* M = 1024, N = 2^20: the number of blocks, and both distributions */
static void against_blocks(void)
{
    for (int i = 0; i < 3; i++)
        for (int64_t r = 4; r <= 256; r *= 2) {
            points p = make_points(inputs[i], BATCH, 1 << 20, (1 << 20) / r);
            for (int c = 0; c < 2; c++)
                measure("blocks", describe(GNOMON_BLOCK, distributions[c], 1024, r), &p, 32);
            drop_points(&p);
        }
}

/* M = 1024, two or four blocks: the number of coordinates */
static void against_coordinates(void)
{
    static const int64_t sizes[] = {16384, 40960, 81920, 163840, 245760, 409600, 819200};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 7; j++) {
            points p = make_points(inputs[i], BATCH, sizes[j], 0);
            for (int64_t r = 2; r <= 4; r *= 2)
                measure("size", describe(GNOMON_BLOCK, GNOMON_RADEMACHER, 1024, r), &p, 32);
            drop_points(&p);
        }
}

/* N = 65536: M and blocks beside Achlioptas' whole matrix, and distances */
static void against_achlioptas(void)
{
    static const int64_t blocks[] = {1, 16, 32, 64};
    for (int i = 0; i < 2; i++) {
        points p = make_points(inputs[i], BATCH, 65536, 0);
        make_pairs(&p);
        for (int64_t m = 1024; m <= 8192; m *= 2)
            for (int b = 0; b < 4; b++)
                measure("achlioptas", describe(GNOMON_BLOCK, GNOMON_ACHLIOPTAS, m, blocks[b]), &p,
                        24);
        drop_points(&p);
    }
}

/* Real points: every kind */
static void on_real(const char *path, int64_t rows)
{
    gnomon_reader *reader;
    gnomon_data_info info = {.struct_size = sizeof info};
    points p = {.name = "real"};
    if (gnomon_reader_open(ctx, path, NULL, &reader) != GNOMON_OK ||
        gnomon_reader_info(reader, &info) != GNOMON_OK)
        stop(path, gnomon_last_error(ctx));
    p.n = rows;
    p.d = info.cols;
    p.x = room((size_t)(p.n * p.d), sizeof(float));
    const gnomon_matrix x = gnomon_matrix_rowmajor(p.x, GNOMON_F32, p.n, p.d);
    if (gnomon_reader_next(reader, &x, &p.n) != GNOMON_OK) stop(path, gnomon_last_error(ctx));
    gnomon_reader_close(reader);
    p.norm = room((size_t)p.n, sizeof(double));
    for (int64_t i = 0; i < p.n; i++)
        p.norm[i] = norm_of(p.x + i * p.d, p.d);
    make_pairs(&p);
    for (int64_t k = 16; k <= 256 && k <= p.d; k *= 4) {
        for (int kind = GNOMON_GAUSSIAN; kind <= GNOMON_SRHT; kind++)
            measure("real", describe(0, (gnomon_kind)kind, k, 1), &p, 16);
        for (int64_t r = 4; r <= 16; r *= 4)
            measure("real", describe(GNOMON_BLOCK, GNOMON_RADEMACHER, k, r), &p, 16);
        measure("real", describe(GNOMON_KRONECKER, 0, k, 0), &p, 16);
    }
    drop_points(&p);
}

int main(int argc, char **argv)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    if (argc < 2 || argc > 4) stop("usage", "bench_quality FILE.json [IMAGES [ROWS]]");
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    records = json_array();
    if (argc > 2) on_real(argv[2], argc > 3 ? atoll(argv[3]) : 10000);
    against_achlioptas();
    against_coordinates();
    against_blocks();
    json_t *out = json_pack(
        "{s:s, s:o*, s:o}", "version", gnomon_version(), "images",
        argc > 2 ? json_string(strrchr(argv[2], '/') ? strrchr(argv[2], '/') + 1 : argv[2]) : NULL,
        "results", records);
    if (!out || json_dump_file(out, argv[1], JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0)
        stop(argv[1], "could not be written");
    json_decref(out);
    gnomon_context_destroy(ctx);
    return 0;
}
