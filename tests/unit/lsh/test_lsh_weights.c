/* Consistent weighted sampling: rates are the weighted Jaccard similarity on weights of all kinds,
 * and indexes and joins by it find what they promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gnomon/lsh.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 24, COLS = 400, MOST = 60, COUNT = 3000 };

typedef struct rows {
    int64_t *offsets, *indices;
    double *values;
    gnomon_csr csr;
} rows;

static uint64_t next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static double unit(uint64_t *state)
{
    return ((double)(next(state) >> 11) + 0.5) * 0x1p-53;
}

enum { COUNTS, HEAVY, SCALES, HUGE_RANGE, SINGLES, KINDS };

static double weight_of(int kind, int64_t row, uint64_t *state)
{
    if (kind == COUNTS) return 1 + floor(-2 * log(unit(state)));
    if (kind == HEAVY) return pow(unit(state), -1.5);
    if (kind == SCALES) return unit(state) * pow(4, (double)(row % 4));
    if (kind == HUGE_RANGE) return pow(10, 60 * unit(state) - 30);
    return 0.1 + unit(state);
}

/* Groups of four rows with the same columns, most of them; weights agree in some. */
static rows make_rows(int kind, int64_t n, uint64_t seed)
{
    rows r = {.offsets = calloc((size_t)n + 1, sizeof *r.offsets)};
    r.indices = malloc((size_t)n * MOST * sizeof *r.indices);
    r.values = malloc((size_t)n * MOST * sizeof *r.values);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t group = seed + (uint64_t)(i / 4) * 977, own = seed + (uint64_t)i * 31337 + 5;
        const int64_t size = kind == SINGLES ? 1 : 5 + (int64_t)(next(&group) % 40);
        for (int64_t e = 0, column = 0; e < size; e++) {
            column += 1 + (int64_t)(next(&group) % 9);
            const double common = weight_of(kind, 0, &group), mine = weight_of(kind, i, &own);
            const bool differs = unit(&own) < 0.4, gone = kind != SINGLES && unit(&own) < 0.1;
            if (gone) continue;
            r.indices[at] = column % COLS;
            r.values[at++] = differs ? mine : common;
        }
        r.offsets[i + 1] = at;
    }
    r.csr = (gnomon_csr){n, COLS, r.offsets, r.indices, r.values, GNOMON_F64};
    return r;
}

static void free_rows(rows *r)
{
    free(r->offsets);
    free(r->indices);
    free(r->values);
}

static double similarity(const rows *r, int64_t i, int64_t j)
{
    double a[COLS] = {0}, b[COLS] = {0}, least = 0, most = 0;
    for (int64_t e = r->offsets[i]; e < r->offsets[i + 1]; e++)
        a[r->indices[e]] += r->values[e];
    for (int64_t e = r->offsets[j]; e < r->offsets[j + 1]; e++)
        b[r->indices[e]] += r->values[e];
    for (int c = 0; c < COLS; c++) {
        least += fmin(a[c], b[c]);
        most += fmax(a[c], b[c]);
    }
    return most == 0 ? 1 : least / most;
}

static gnomon_context *context(int threads)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.threads = threads;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static void values_of(gnomon_context *ctx, const gnomon_csr *m, int64_t count, int32_t *v)
{
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_hasher *h;
    f.family = GNOMON_LSH_ICWS;
    f.dim = m->cols;
    f.count = count;
    f.seed = 11;
    assert_int_equal(gnomon_hasher_create(ctx, &f, &h), GNOMON_OK);
    const gnomon_matrix out = gnomon_matrix_rowmajor(v, GNOMON_I32, m->rows, count);
    assert_int_equal(gnomon_hasher_apply_csr(ctx, h, m, &out), GNOMON_OK);
    gnomon_hasher_destroy(h);
}

/* Over all pairs of a group of rows: none is beyond 5.5 standard deviations, and the sum of squares
 * is that of as many normal numbers, for a fixed seed. */
static void rates_are_similarities(void **state)
{
    (void)state;
    gnomon_context *ctx = context(2);
    for (int kind = 0; kind < KINDS; kind++) {
        rows r = make_rows(kind, N, 100 + (uint64_t)kind);
        int32_t *v = malloc(sizeof *v * N * COUNT);
        values_of(ctx, &r.csr, COUNT, v);
        double square = 0;
        int pairs = 0;
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = i + 1; j < i - i % 4 + 4; j++) {
                const double s = similarity(&r, i, j);
                int same = 0;
                for (int64_t f = 0; f < COUNT; f++)
                    same += v[i * COUNT + f] == v[j * COUNT + f];
                const double spread = sqrt(s * (1 - s) / COUNT);
                const double off = (double)same / COUNT - s;
                if (spread == 0 || s < 1e-3 || s > 1 - 1e-3) {
                    assert_true(fabs(off) < 0.01);
                    continue;
                }
                if (fabs(off) > 5.5 * spread)
                    fail_msg("kind %d, rows %d and %d: %g for %g", kind, (int)i, (int)j, off + s,
                             s);
                square += off * off / (spread * spread);
                pairs++;
            }
        /* pairs of a group are not independent: twice the spread of a chi-square */
        if (pairs > 0 && fabs(square - pairs) > 10 * sqrt(2.0 * pairs))
            fail_msg("kind %d: %g for %d pairs", kind, square, pairs);
        free(v);
        free_rows(&r);
    }
    gnomon_context_destroy(ctx);
}

/* Rows' values depend on nothing but their weights. */
static void values_are_the_rows(void **state)
{
    (void)state;
    /* one row in four forms: as it is, unordered, with a zero, a column in two parts */
    const int64_t offsets[] = {0, 3, 6, 10, 14, 14, 15, 16};
    const int64_t indices[] = {2, 5, 9, 9, 2, 5, 1, 2, 5, 9, 9, 2, 5, 9, 3, 3};
    const float values[] = {1.5f, 2,     0.25f,  0.25f, 1.5f, 2,      0, 1.5f,
                            2,    0.25f, 0.125f, 1.5f,  2,    0.125f, 0, 1e-30f};
    const gnomon_csr m = {
        7, (int64_t)1 << 60, (int64_t *)offsets, (int64_t *)indices, (void *)values, GNOMON_F32};
    int32_t one[7 * 129], two[7 * 130];
    gnomon_context *ctx = context(1), *other = context(3);
    values_of(ctx, &m, 129, one);
    values_of(other, &m, 130, two);
    for (int i = 0; i < 7; i++)
        for (int f = 0; f < 129; f++) {
            assert_int_equal(one[i * 129 + f], two[i * 130 + f]);
            if (i < 4) assert_int_equal(one[i * 129 + f], one[f]);
            /* zero rows */
            if (i == 4 || i == 5) assert_int_equal(one[i * 129 + f], -1);
        }
    gnomon_context_destroy(other);
    gnomon_context_destroy(ctx);
}

static void bad_weights_are_refused(void **state)
{
    (void)state;
    gnomon_context *ctx = context(1);
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    o.metric = GNOMON_WEIGHTED_JACCARD;
    o.functions.family = GNOMON_LSH_ICWS;
    o.functions.dim = 10;
    o.tables = o.coarse = 2;
    const int64_t offsets[] = {0, 1, 2}, indices[] = {1, 4};
    const double bad[] = {-1, NAN, INFINITY, 0x1p501};
    for (int i = 0; i < 4; i++) {
        const double values[] = {1, bad[i]};
        const gnomon_csr m = {2,         10, (int64_t *)offsets, (int64_t *)indices, (void *)values,
                              GNOMON_F64};
        gnomon_lsh *index;
        assert_int_equal(gnomon_lsh_create(ctx, &o, &index), GNOMON_OK);
        assert_int_equal(gnomon_lsh_add_csr(index, &m),
                         i == 1 || i == 2 ? GNOMON_ERROR_NONFINITE : GNOMON_ERROR_UNSUPPORTED);
        gnomon_lsh_info info = {.struct_size = sizeof info};
        gnomon_lsh_describe(index, &info);
        assert_int_equal(info.points, 0);
        gnomon_lsh_destroy(index);
    }
    gnomon_context_destroy(ctx);
}

enum { POINTS = 1600, K = 3 };

static double recall_of(gnomon_context *ctx, const gnomon_lsh *index, const gnomon_csr *points)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors truth = {.struct_size = sizeof truth}, found = truth;
    gnomon_csr asked = *points;
    asked.rows = 200;
    o.metric = GNOMON_WEIGHTED_JACCARD;
    o.k = K;
    o.exclude = 0;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, points, &asked, &o, &truth), GNOMON_OK);
    assert_int_equal(gnomon_lsh_query_csr(ctx, index, &asked, &o, NULL, &found, NULL), GNOMON_OK);
    int hits = 0;
    for (int q = 0; q < 200; q++)
        for (int i = 0; i < K; i++)
            for (int j = 0; j < K; j++)
                if (truth.ids[q * K + i] == found.ids[q * K + j]) {
                    hits++;
                    /* distances are exact search's */
                    assert_true(truth.distances[q * K + i] == found.distances[q * K + j]);
                }
    gnomon_neighbors_free(ctx, &truth);
    gnomon_neighbors_free(ctx, &found);
    return (double)hits / (200 * K);
}

static void tuned_indexes_keep_their_recall(void **state)
{
    (void)state;
    gnomon_context *ctx = context(2);
    rows r = make_rows(HEAVY, POINTS, 7);
    gnomon_lsh_guarantee g = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning t = {.struct_size = sizeof t};
    gnomon_lsh *index, *opened;
    g.metric = GNOMON_WEIGHTED_JACCARD;
    g.k = K;
    g.recall = 0.8;
    g.slower = 1;
    g.memory = 1 << 24;
    assert_int_equal(gnomon_lsh_tune_csr(ctx, &g, &r.csr, NULL, &index, &t), GNOMON_OK);
    if (index == NULL) fail_msg("no index: %s", t.reason);
    const double recall = recall_of(ctx, index, &r.csr);
    print_message("recall promised 0.8, told %g, measured %g\n", t.recall, recall);
    assert_true(recall >= 0.8);
    char path[] = "/tmp/gnomon-weights-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(gnomon_lsh_save(ctx, index, path), GNOMON_OK);
    assert_int_equal(gnomon_lsh_check(ctx, path, NULL, NULL), GNOMON_OK);
    assert_int_equal(gnomon_lsh_open(ctx, path, &opened), GNOMON_OK);
    assert_true(recall_of(ctx, opened, &r.csr) == recall);
    gnomon_lsh_destroy(opened);
    /* each byte of the header and of the sections' table is guarded, weights too */
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    unsigned char first[17];
    assert_int_equal(fread(first, 1, 17, file), 17);
    assert_int_equal(first[16], 9); /* sets with weights */
    fclose(file);
    remove(path);
    gnomon_lsh_tuning_free(ctx, &t);
    gnomon_lsh_destroy(index);
    free_rows(&r);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_similarities),
        cmocka_unit_test(values_are_the_rows),
        cmocka_unit_test(bad_weights_are_refused),
        cmocka_unit_test(tuned_indexes_keep_their_recall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
