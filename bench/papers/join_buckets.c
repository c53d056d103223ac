/* Buckets, and the join by hashes as Ahle and Silvestri write it: L tables of K functions, all
 * pairs of a bucket compared, by products of matrices or one by one. */
#include "join_model.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 1 << 15, DIMENSIONS = 128, TABLES = 6, DIGIT = 11, SAMPLE = 4096 };

static const double width = 4; /* of a function, in thresholds */

/* ---- a bucket ---- */

static float one_after_the_other(const float *x, const float *y, int64_t d)
{
    float sum = 0;
    for (int64_t k = 0; k < d; k++)
        sum += x[k] * y[k];
    return sum;
}

/* Seconds of all b x b pairs of a bucket. way 0: a product; 1: dot products; 2: additions. */
static double bucket_seconds(const float *x, int64_t b, int64_t d, float *sums, int way)
{
    const int64_t least = INT64_C(1) << 24; /* multiplications, or the clock is measured */
    const int64_t times = 1 + least / (b * b * d);
    double best = INFINITY;
    for (int run = 0; run < 3; run++) {
        const double start = now();
        for (int64_t t = 0; t < times; t++) {
            if (way == 0)
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)b, (int)b, (int)d, 1, x,
                            (int)d, x, (int)d, 0, sums, (int)b);
            for (int64_t i = 0; i < b && way == 1; i++)
                for (int64_t j = 0; j < b; j++)
                    sums[i * b + j] = cblas_sdot((int)d, x + i * d, 1, x + j * d, 1);
            for (int64_t i = 0; i < b && way == 2; i++)
                for (int64_t j = 0; j < b; j++)
                    sums[i * b + j] = one_after_the_other(x + i * d, x + j * d, d);
        }
        best = fmin(best, (now() - start) / (double)times);
    }
    return best;
}

json_t *measure_buckets(void)
{
    enum { MOST = 1024 };
    json_t *list = json_array();
    float *x = room_for(MOST * MOST, sizeof *x), *sums = room_for(MOST * MOST, sizeof *sums);
    random_normal(x, MOST * MOST, 2);
    for (int64_t d = 32; d <= 512; d *= 4)
        for (int64_t b = 2; b <= MOST; b *= 2) {
            const double pairs = (double)(b * b);
            const double product = bucket_seconds(x, b, d, sums, 0) / pairs;
            const double dots =
                bucket_seconds(x, b < 256 ? b : 256, d, sums, 1) / fmin(pairs, 65536);
            const double sequence =
                bucket_seconds(x, b < 64 ? b : 64, d, sums, 2) / fmin(pairs, 4096);
            printf("d %-4lld b %-5lld a pair by product %8.2f ns, dot product %8.2f, additions "
                   "%8.2f\n",
                   (long long)d, (long long)b, 1e9 * product, 1e9 * dots, 1e9 * sequence);
            json_array_append_new(list, json_pack("{s:I, s:I, s:f, s:f, s:f}", "d", (json_int_t)d,
                                                  "b", (json_int_t)b, "product", product, "dots",
                                                  dots, "additions", sequence));
        }
    free(x);
    free(sums);
    return list;
}

/* ---- a table ---- */

typedef struct table {
    uint32_t *keys[2];
    int32_t *ids[2];
} table;

/* Points in the order of their keys, 11 bits at a time. */
static void sort_table(table *t)
{
    int from = 0;
    for (int shift = 0; shift < 32; shift += DIGIT, from = 1 - from) {
        int64_t starts[(1 << DIGIT) + 1] = {0};
        const uint32_t mask = (1u << DIGIT) - 1;
        for (int64_t i = 0; i < POINTS; i++)
            starts[(t->keys[from][i] >> shift & mask) + 1]++;
        for (int64_t k = 0; k < 1 << DIGIT; k++)
            starts[k + 1] += starts[k];
        for (int64_t i = 0; i < POINTS; i++) {
            const int64_t to = starts[t->keys[from][i] >> shift & mask]++;
            t->keys[1 - from][to] = t->keys[from][i];
            t->ids[1 - from][to] = t->ids[from][i];
        }
    }
    /* three passes: what is in order lies in the second */
}

static uint32_t key_of(const int32_t *values, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum = (sum + (uint32_t)values[k]) * UINT64_C(0x9e3779b97f4a7c15) ^ sum >> 29;
    return (uint32_t)(sum >> 32);
}

typedef struct work {
    const float *x, *squares;
    float limit;
    float *rows, *row_squares, *tile; /* of a bucket, side by side */
    pair_list found;
} work;

static void gather(work *w, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(w->rows + i * DIMENSIONS, w->x + (int64_t)ids[i] * DIMENSIONS,
               DIMENSIONS * sizeof *w->rows);
        w->row_squares[i] = w->squares[ids[i]];
    }
}

static int64_t join_by_products(work *w, const int32_t *ids, int64_t count)
{
    const int64_t before = w->found.count;
    gather(w, ids, count);
    for (int64_t i = 0; i < count; i += TILE)
        for (int64_t j = i; j < count; j += TILE)
            join_tile(w->rows + i * DIMENSIONS, w->row_squares + i, ids + i,
                      count - i < TILE ? count - i : TILE, w->rows + j * DIMENSIONS,
                      w->row_squares + j, ids + j, count - j < TILE ? count - j : TILE, DIMENSIONS,
                      w->limit, i == j, w->tile, &w->found, NULL);
    return w->found.count - before;
}

static int64_t join_one_by_one(work *w, const int32_t *ids, int64_t count)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = i + 1; j < count; j++) {
            const float *x = w->x + (int64_t)ids[i] * DIMENSIONS;
            const float *y = w->x + (int64_t)ids[j] * DIMENSIONS;
            const float squared =
                w->squares[ids[i]] + w->squares[ids[j]] - 2 * cblas_sdot(DIMENSIONS, x, 1, y, 1);
            found += squared <= w->limit;
        }
    return found;
}

/* Some tables of 'depth' functions: means a table. far: the share of far pairs that should meet. */
static json_t *tables_of(work *w, double r, int64_t depth, double far)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_hasher *h;
    f.family = GNOMON_LSH_PSTABLE;
    f.dim = DIMENSIONS;
    f.count = depth * TABLES;
    f.width = width * r;
    f.seed = 7;
    int32_t *values = room_for(POINTS * f.count, sizeof *values);
    const gnomon_matrix points =
        gnomon_matrix_rowmajor((void *)(uintptr_t)w->x, GNOMON_F32, POINTS, DIMENSIONS);
    const gnomon_matrix out = gnomon_matrix_rowmajor(values, GNOMON_I32, POINTS, f.count);
    double start = now();
    if (gnomon_hasher_create(ctx, &f, &h) != GNOMON_OK ||
        gnomon_hasher_apply(ctx, h, &points, &out) != GNOMON_OK)
        stop("hashing", gnomon_last_error(ctx));
    const double hash = now() - start;
    gnomon_hasher_destroy(h);
    table t;
    for (int side = 0; side < 2; side++) {
        t.keys[side] = room_for(POINTS, sizeof *t.keys[side]);
        t.ids[side] = room_for(POINTS, sizeof *t.ids[side]);
    }
    double sort = 0, gathering = 0, seconds[2] = {0, 0}, candidates = 0;
    int64_t met[2] = {0, 0};
    w->found.count = 0;
    for (int64_t number = 0; number < TABLES; number++) {
        start = now();
        for (int64_t i = 0; i < POINTS; i++) {
            t.keys[0][i] = key_of(values + i * f.count + number * depth, depth);
            t.ids[0][i] = (int32_t)i;
        }
        sort_table(&t);
        sort += now() - start;
        start = now();
        gather(w, t.ids[1], POINTS);
        gathering += now() - start;
        for (int way = 0; way < 2; way++) {
            start = now();
            for (int64_t i = 0, end; i < POINTS; i = end) {
                for (end = i + 1; end < POINTS && t.keys[1][end] == t.keys[1][i];)
                    end++;
                if (end - i < 2) continue;
                if (way == 0) candidates += (double)((end - i) * (end - i - 1) / 2);
                met[way] +=
                    (way == 0 ? join_by_products : join_one_by_one)(w, t.ids[1] + i, end - i);
            }
            seconds[way] += now() - start;
        }
    }
    for (int side = 0; side < 2; side++) {
        free(t.keys[side]);
        free(t.ids[side]);
    }
    free(values);
    printf("  K %-3lld a table: hash %7.2f ms, sort %6.2f, gather %6.2f, by products %8.2f, one by "
           "one "
           "%8.2f, %.0f candidates, %lld and %lld pairs in all\n",
           (long long)depth, 1e3 * hash / TABLES, 1e3 * sort / TABLES, 1e3 * gathering / TABLES,
           1e3 * seconds[0] / TABLES, 1e3 * seconds[1] / TABLES, candidates / TABLES,
           (long long)met[0], (long long)met[1]);
    fflush(stdout);
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "K", (json_int_t)depth, "far",
                     far, "hash", hash / TABLES, "sort", sort / TABLES, "gather",
                     gathering / TABLES, "products", seconds[0] / TABLES, "one_by_one",
                     seconds[1] / TABLES, "candidates", candidates / TABLES, "met",
                     (double)met[0] / TABLES);
}

/* ---- points ---- */

/* Points by twos at the threshold from each other, a little within; all others are about c
 * thresholds apart. Returns the threshold. */
static double planted(float *x, double c)
{
    const double r = sqrt(2.0 * DIMENSIONS / (c * c - 0.5));
    random_normal(x, (int64_t)POINTS * DIMENSIONS, 3);
    for (int64_t i = 0; i < POINTS; i += 2) {
        float *a = x + i * DIMENSIONS, *b = a + DIMENSIONS;
        const double half = 0.4995 * r / sqrt((double)square(b, DIMENSIONS));
        for (int64_t k = 0; k < DIMENSIONS; k++) {
            const float centre = a[k], step = (float)(half * (double)b[k]);
            a[k] = centre - step;
            b[k] = centre + step;
        }
    }
    return r;
}

static double collision(double r, double distance)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    double p;
    f.family = GNOMON_LSH_PSTABLE;
    f.width = width * r;
    if (gnomon_lsh_collision(ctx, &f, distance, &p) != GNOMON_OK)
        stop("collision", gnomon_last_error(ctx));
    return p;
}

/* What a function does to some far pairs. */
static void far_collisions(const float *x, double r, double *p)
{
    for (int64_t s = 0; s < SAMPLE; s++) {
        const float *a = x + s * DIMENSIONS, *b = x + (POINTS - 1 - s) * DIMENSIONS;
        double squared = 0;
        for (int64_t k = 0; k < DIMENSIONS; k++)
            squared += ((double)a[k] - (double)b[k]) * ((double)a[k] - (double)b[k]);
        p[s] = collision(r, sqrt(squared));
    }
}

/* The share of far pairs that 'depth' functions put in one bucket. */
static double far_share(const double *p, int64_t depth)
{
    double sum = 0;
    for (int64_t s = 0; s < SAMPLE; s++)
        sum += pow(p[s], (double)depth);
    return sum / SAMPLE;
}

json_t *measure_hashed(void)
{
    static const double factors[] = {1.5, 2, 3};
    json_t *list = json_array();
    float *x = room_for((int64_t)POINTS * DIMENSIONS, sizeof *x);
    float *squares = room_for(POINTS, sizeof *squares);
    work w = {.x = x, .squares = squares};
    w.rows = room_for((int64_t)POINTS * DIMENSIONS, sizeof *w.rows);
    w.row_squares = room_for(POINTS, sizeof *w.row_squares);
    w.tile = room_for(TILE * TILE, sizeof *w.tile);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        const double r = planted(x, factors[i]);
        double far[SAMPLE];
        far_collisions(x, r, far);
        const double p1 = collision(r, 0.999 * r), p2 = far_share(far, 1);
        gnomon_join_result exact, hashed;
        w.limit = (float)(r * r);
        for (int64_t n = 0; n < POINTS; n++)
            squares[n] = square(x + n * DIMENSIONS, DIMENSIONS);
        printf("c %.3g: p1 %.4f, p2 %.4f\n", factors[i], p1, p2);
        json_t *depths = json_array();
        /* from a thousand far points in a bucket to a fiftieth */
        const int64_t first = (int64_t)ceil(log(POINTS / 1024.0) / -log(p2));
        const int64_t last = (int64_t)ceil(log(POINTS * 50.0) / -log(p2));
        const int64_t step = (last - first) / 9 + 1;
        for (int64_t depth = first; depth <= last; depth += step)
            json_array_append_new(depths, tables_of(&w, r, depth, far_share(far, depth)));
        const double all = gnomon_seconds(x, POINTS, DIMENSIONS, r, 1, &exact);
        const double some = gnomon_seconds(x, POINTS, DIMENSIONS, r, 0.95, &hashed);
        printf("  gnomon exactly %.2f s, %lld pairs; of its own choice %.2f s, %lld pairs: %s\n",
               all, (long long)exact.pairs, some, (long long)hashed.pairs, hashed.why);
        json_array_append_new(
            list,
            json_pack("{s:f, s:i, s:i, s:f, s:f, s:f, s:o, s:f, s:s, s:I, s:f, s:s, s:s, s:I}", "c",
                      factors[i], "n", (int)POINTS, "d", (int)DIMENSIONS, "threshold", r, "p1", p1,
                      "p2", p2, "tables", depths, "exact", all, "exact_why", exact.why, "pairs",
                      (json_int_t)exact.pairs, "recall", some, "recall_method",
                      gnomon_join_method_name(hashed.method), "recall_why", hashed.why,
                      "recall_pairs", (json_int_t)hashed.pairs));
    }
    free(w.rows);
    free(w.row_squares);
    free(w.tile);
    free(w.found.pairs);
    free(squares);
    free(x);
    return list;
}
