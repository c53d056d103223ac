/* The report's sequential pipeline (report.h) beside an index with one table of two levels, on one
 * thread: parameters, hashing, the table, and queries of a radius in the query's own bucket.
 *
 * Ours holds no directions: they are made while points are hashed, and the time of 'parameters' is
 * that of gnomon_hasher_create. 'build' is hashing and table: gnomon_lsh_add. Times of queries are
 * with their hashing. Points are uniform in the unit cube, in fp64 for the report's and fp32 for
 * ours; queries are points moved a little. Without files, a grid of n, d, L1 and L2.
 *
 * usage: bench_report [--input FILE [--l1 N --l2 N --width W]] [--rounds N] [--json FILE]
 *        FILE: CSV, which the report's own reader takes, or anything else that gnomon reads, as
 *        .npz with :key */
#include "report.h"

#include <gnomon.h>

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 25, QUERIES = 1000 };

typedef struct size {
    int64_t n, d, l1, l2;
    double width;
} size;

/* from a middle size on, each number by itself */
static const size grid[] = {
    {10000, 64, 4, 8, 2},  {40000, 64, 4, 8, 2},  {160000, 64, 4, 8, 2}, {40000, 16, 4, 8, 2},
    {40000, 256, 4, 8, 2}, {40000, 784, 4, 8, 2}, {40000, 64, 2, 8, 2},  {40000, 64, 16, 8, 2},
    {40000, 64, 4, 2, 2},  {40000, 64, 4, 32, 2},
};

enum { PARAMETERS, HASHING, BUILD, QUERY, STEPS };

static const char *const steps[] = {"parameters", "hashing", "build", "query"};

static gnomon_context *ctx;

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "bench_report: %s: %s\n", what, why);
    exit(1);
}

static void must(gnomon_status status)
{
    if (status != GNOMON_OK) stop("gnomon", gnomon_last_error(ctx));
}

static void *room(int64_t count, size_t each)
{
    void *memory = calloc((size_t)(count ? count : 1), each);
    if (!memory) stop("memory", "too little");
    return memory;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t state = 20250216;

static double uniform(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

/* ---- one round of each ---- */

typedef struct told {
    double seconds[STEPS];
    double found, candidates; /* a query */
    int64_t buckets;
} told;

typedef struct data {
    size s;
    const double *points, *queries;
    const float *points32, *queries32;
    int64_t asked;
    double radius;
} data;

static told run_report(const data *a)
{
    const size *s = &a->s;
    told t = {0};
    int *hash1 = room(s->n * s->l1, sizeof *hash1), *hash2 = room(s->n * s->l2, sizeof *hash2);
    int *key1 = room(s->l1, sizeof *key1), *key2 = room(s->l2, sizeof *key2);
    int64_t *found = room(s->n, sizeof *found);
    double from = now();
    report_function *first = report_parameters(s->d, s->width, s->l1, 1);
    report_function *second = report_parameters(s->d, s->width, s->l2, 2);
    t.seconds[PARAMETERS] = now() - from;
    from = now();
    report_hash_all(a->points, s->n, s->d, first, s->l1, second, s->l2, hash1, hash2);
    t.seconds[HASHING] = now() - from;
    from = now();
    report_map *map = report_map_open(s->l1, s->l2);
    for (int64_t i = 0; i < s->n; i++)
        report_map_add(map, hash1 + i * s->l1, hash2 + i * s->l2, i);
    t.seconds[BUILD] = t.seconds[HASHING] + now() - from;
    from = now();
    for (int64_t i = 0; i < a->asked; i++) {
        const double *x = a->queries + i * s->d;
        for (int64_t j = 0; j < s->l1; j++)
            key1[j] = report_hash(x, &first[j], s->d);
        for (int64_t j = 0; j < s->l2; j++)
            key2[j] = report_hash(x, &second[j], s->d);
        t.found += (double)report_query(map, x, key1, key2, a->points, s->d, a->radius, found);
        const report_bucket *b = report_map_find(map, key1, key2);
        t.candidates += b ? (double)b->count : 0;
    }
    t.seconds[QUERY] = now() - from;
    t.found /= (double)a->asked;
    t.candidates /= (double)a->asked;
    report_map_close(map);
    report_parameters_free(first);
    report_parameters_free(second);
    free(found);
    free(key2);
    free(key1);
    free(hash2);
    free(hash1);
    return t;
}

static told run_ours(const data *a)
{
    const size *s = &a->s;
    told t = {0};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index = NULL;
    gnomon_hasher *hasher = NULL;
    o.metric = GNOMON_L2;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = s->d;
    o.functions.count = s->l1 + s->l2;
    o.functions.width = s->width;
    o.tables = 1;
    o.coarse = s->l1;
    o.fine = s->l2;
    const gnomon_matrix points =
        gnomon_matrix_rowmajor((void *)a->points32, GNOMON_F32, s->n, s->d);
    const gnomon_matrix queries =
        gnomon_matrix_rowmajor((void *)a->queries32, GNOMON_F32, a->asked, s->d);
    int32_t *values = room(s->n * o.functions.count, sizeof *values);
    const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, s->n, o.functions.count);
    double from = now();
    must(gnomon_hasher_create(ctx, &o.functions, &hasher));
    t.seconds[PARAMETERS] = now() - from;
    from = now();
    must(gnomon_hasher_apply(ctx, hasher, &points, &out));
    t.seconds[HASHING] = now() - from;
    o.functions.count = 0;
    must(gnomon_lsh_create(ctx, &o, &index));
    from = now();
    must(gnomon_lsh_add(index, &points));
    t.seconds[BUILD] = now() - from;
    gnomon_search_options search = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_lsh_work work = {.struct_size = sizeof work};
    gnomon_neighbors found = {.struct_size = sizeof found};
    search.metric = GNOMON_L2;
    search.k = 0;
    search.radius = a->radius;
    from = now();
    must(gnomon_lsh_query(ctx, index, &queries, &search, NULL, &found, &work));
    t.seconds[QUERY] = now() - from;
    t.found = (double)found.offsets[a->asked] / (double)a->asked;
    t.candidates = (double)work.candidates / (double)a->asked;
    gnomon_lsh_info info = {.struct_size = sizeof info};
    gnomon_lsh_describe(index, &info);
    t.buckets = info.buckets;
    gnomon_neighbors_free(ctx, &found);
    gnomon_lsh_destroy(index);
    gnomon_hasher_destroy(hasher);
    free(values);
    return t;
}

/* ---- medians ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static json_t *medians(const told *t, int rounds, told *out)
{
    json_t *seconds = json_object();
    *out = t[0];
    for (int step = 0; step < STEPS; step++) {
        double all[MOST_ROUNDS];
        for (int r = 0; r < rounds; r++)
            all[r] = t[r].seconds[step];
        qsort(all, (size_t)rounds, sizeof *all, by_size);
        out->seconds[step] = all[rounds / 2];
        json_object_set_new(seconds, steps[step], json_real(all[rounds / 2]));
    }
    return json_pack("{s:o, s:f, s:f}", "seconds", seconds, "candidates", t->candidates, "found",
                     t->found);
}

static json_t *measure(const data *a, int rounds)
{
    told theirs[MOST_ROUNDS], ours[MOST_ROUNDS], x, y;
    for (int r = 0; r < rounds; r++) {
        theirs[r] = run_report(a);
        ours[r] = run_ours(a);
    }
    json_t *report = medians(theirs, rounds, &x), *gnomon = medians(ours, rounds, &y);
    printf("%8lld %4lld %3lld %3lld", (long long)a->s.n, (long long)a->s.d, (long long)a->s.l1,
           (long long)a->s.l2);
    for (int step = 0; step < STEPS; step++)
        printf("  %9.3f %9.3f", 1e3 * x.seconds[step], 1e3 * y.seconds[step]);
    printf("  %7.2f %7.2f\n", x.candidates, y.candidates);
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:f, s:I, s:o, s:o}", "n", (json_int_t)a->s.n, "d",
                     (json_int_t)a->s.d, "l1", (json_int_t)a->s.l1, "l2", (json_int_t)a->s.l2,
                     "width", a->s.width, "radius", a->radius, "queries", (json_int_t)a->asked,
                     "report", report, "gnomon", gnomon);
}

/* ---- points ---- */

static json_t *measure_points(const size *s, double *points, int rounds)
{
    data a = {.s = *s, .points = points, .asked = s->n < QUERIES ? s->n : QUERIES};
    double *queries = room(a.asked * s->d, sizeof *queries);
    float *points32 = room(s->n * s->d, sizeof *points32);
    float *queries32 = room(a.asked * s->d, sizeof *queries32);
    double square = 0, largest = 0;
    for (int64_t i = 0; i < s->n * s->d; i++) {
        points32[i] = (float)points[i];
        if (fabs(points[i]) > largest) largest = fabs(points[i]);
    }
    for (int64_t i = 0; i < a.asked * s->d; i++) {
        const int64_t from = i / s->d * (s->n / a.asked) * s->d + i % s->d;
        queries32[i] = (float)(points[from] + 0.02 * largest * (uniform() - 0.5));
        queries[i] = (double)queries32[i];
    }
    for (int64_t j = 0; j < s->d; j++)
        square += (queries[j] - points[j]) * (queries[j] - points[j]);
    a.radius = 2 * sqrt(square);
    a.points32 = points32;
    a.queries = queries;
    a.queries32 = queries32;
    json_t *out = measure(&a, rounds);
    free(queries32);
    free(points32);
    free(queries);
    return out;
}

static json_t *measure_grid(int rounds)
{
    json_t *all = json_array();
    for (size_t g = 0; g < sizeof grid / sizeof grid[0]; g++) {
        const size *s = &grid[g];
        double *points = room(s->n * s->d, sizeof *points);
        for (int64_t i = 0; i < s->n * s->d; i++)
            points[i] = (double)(float)uniform();
        json_array_append_new(all, measure_points(s, points, rounds));
        free(points);
    }
    return all;
}

static double *read_points(const char *path, size *s)
{
    const size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".csv") == 0) {
        double *points = report_read_csv(path, &s->n, &s->d);
        if (!points) stop(path, "is not a table of numbers");
        return points;
    }
    gnomon_reader *reader = NULL;
    gnomon_data_info info = {.struct_size = sizeof info};
    int64_t rows = 0;
    must(gnomon_reader_open(ctx, path, NULL, &reader));
    must(gnomon_reader_info(reader, &info));
    if (info.rows < 0) stop(path, "does not tell how many points it has");
    s->n = info.rows;
    s->d = info.cols;
    double *points = room(s->n * s->d, sizeof *points);
    const gnomon_matrix to = gnomon_matrix_rowmajor(points, GNOMON_F64, s->n, s->d);
    must(gnomon_reader_next(reader, &to, &rows));
    if (rows != s->n) stop(path, "ends early");
    gnomon_reader_close(reader);
    return points;
}

static double number(const char *option, const char *text, double least, double most)
{
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most)) stop(option, text);
    return value;
}

int main(int argc, char **argv)
{
    const char *file = NULL, *input = NULL;
    size s = {.l1 = 4, .l2 = 8, .width = 2};
    int rounds = 5;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.threads = 1;
    if (gnomon_context_create(&options, &ctx) != GNOMON_OK)
        stop("context", gnomon_last_error(NULL));
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(option, "--input") == 0 && *value)
            input = value;
        else if (strcmp(option, "--json") == 0 && *value)
            file = value;
        else if (strcmp(option, "--rounds") == 0)
            rounds = (int)number(option, value, 1, MOST_ROUNDS);
        else if (strcmp(option, "--l1") == 0)
            s.l1 = (int64_t)number(option, value, 1, 128);
        else if (strcmp(option, "--l2") == 0)
            s.l2 = (int64_t)number(option, value, 1, 128);
        else if (strcmp(option, "--width") == 0)
            s.width = number(option, value, 1e-30, 1e30);
        else
            stop(option, "usage: bench_report [--input FILE [--l1 N --l2 N --width W]] "
                         "[--rounds N] [--json FILE]");
    }
    double load[1] = {NAN};
    getloadavg(load, 1);
    printf(
        "one thread, %s, load average %.1f, medians of %d rounds; milliseconds, the report's and "
        "ours\n%8s %4s %3s %3s  %19s  %19s  %19s  %19s  %15s\n",
        gnomon_context_isa(ctx), load[0], rounds, "n", "d", "L1", "L2", "parameters", "hashing",
        "build", "1000 queries", "candidates");
    json_t *all;
    if (input) {
        double *points = read_points(input, &s);
        if (s.n == 0) stop(input, "holds no points");
        all = json_array();
        json_array_append_new(all, measure_points(&s, points, rounds));
        free(points);
    } else {
        all = measure_grid(rounds);
    }
    json_t *out = json_pack("{s:s, s:s, s:s, s:i, s:f, s:o}", "program", "report", "version",
                            gnomon_version(), "isa", gnomon_context_isa(ctx), "rounds", rounds,
                            "load", load[0], "cases", all);
    if (!out || (file && json_dump_file(out, file, JSON_INDENT(1) | JSON_REAL_PRECISION(5)) != 0))
        stop(file ? file : "json", "could not be written");
    json_decref(out);
    gnomon_context_destroy(ctx);
    return 0;
}
