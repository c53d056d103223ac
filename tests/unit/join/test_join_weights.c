/* Joins of weights through the lists of their rarest members: the pairs and the bits of exact
 * search, which looks at every pair, on weights of all kinds, at any threshold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gnomon.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { N = 130, D = 60, MOST_PAIRS = N * N };

static int64_t offsets[N + 1], indices[N * D];
static double values[N * D];

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { ZIPF, COPIES, ONE_HOT, EQUAL_ROWS, NEAR_DENSE, HUGE_RANGE, SMALLEST, SAME_SUMS, KINDS };

/* Some rows are empty; later rows are like earlier ones, but for a few weights. */
static gnomon_csr make(int kind, int64_t rows)
{
    static double x[N][D];
    uint32_t state = 17u + (uint32_t)kind;
    int64_t e = 0;
    memset(x, 0, sizeof x);
    for (int64_t i = 0; i < rows; i++) {
        for (int c = 0; c < D; c++) {
            const double u = (draw(&state) % 4096 + 0.5) / 4096;
            double w = u * (c + 1) < 6 ? u * 3 + 0.1 : 0;
            if (kind == COPIES) w = c % 7 == i % 7 ? (double)(c + 1) : 0;
            if (kind == ONE_HOT) w = c == i % 13 ? (double)(1 + i % 3) : 0;
            if (kind == EQUAL_ROWS) w = 0.1 * c;
            if (kind == NEAR_DENSE) w = u < 0.98 ? 1 + u : 0;
            if (kind == SAME_SUMS) w = (c + i) % 5 == 0 ? 1 : 0;
            if (kind != EQUAL_ROWS && kind != SAME_SUMS && i > 4 && u > 0.2)
                w = x[i - 1 - i % 3][c];
            if (kind == HUGE_RANGE && w > 0 && u < 0.5) w = ldexp(u, (int)(u * 1900) - 480);
            if (kind == SMALLEST && w > 0 && u < 0.5) w = 0x1p-1074 * ceil(u * 9);
            x[i][c] = i % 37 == 36 ? 0 : w;
            if (x[i][c] == 0) continue;
            values[e] = x[i][c];
            indices[e++] = c;
        }
        offsets[i + 1] = e;
    }
    return (gnomon_csr){rows, D, offsets, indices, values, GNOMON_F64};
}

static gnomon_context *context(int threads)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.threads = threads;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

typedef struct pairs {
    int64_t count;
    gnomon_pair at[MOST_PAIRS];
} pairs;

static int take(void *user, const gnomon_join_batch *batch)
{
    pairs *p = user;
    assert_true(p->count + batch->count <= MOST_PAIRS);
    if (batch->count > 0)
        memcpy(p->at + p->count, batch->pairs, (size_t)batch->count * sizeof *batch->pairs);
    p->count += batch->count;
    return 0;
}

static gnomon_join_options within(double threshold, pairs *out)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.metric = GNOMON_WEIGHTED_JACCARD;
    o.threshold = threshold;
    o.sink = take;
    o.user = out;
    out->count = 0;
    return o;
}

/* All distances of P's and Q's rows, by exact search. */
static void all_distances(gnomon_context *ctx, const gnomon_csr *p, const gnomon_csr *q,
                          double *out)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.metric = GNOMON_WEIGHTED_JACCARD;
    o.k = q->rows;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, q, p, &o, &found), GNOMON_OK);
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t r = 0; r < q->rows; r++)
            out[i * q->rows + found.ids[i * q->rows + r]] = found.distances[i * q->rows + r];
    gnomon_neighbors_free(ctx, &found);
}

static void expect(const double *distances, const gnomon_csr *p, const gnomon_csr *q, bool self,
                   double threshold, const pairs *got)
{
    int64_t at = 0;
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = self ? i + 1 : 0; j < q->rows; j++) {
            const double *distance = &distances[i * q->rows + j];
            if (!(*distance <= threshold)) continue;
            assert_true(at < got->count);
            assert_int_equal(got->at[at].i, i);
            assert_int_equal(got->at[at].j, j);
            assert_memory_equal(&got->at[at++].distance, distance, sizeof *distance);
        }
    assert_int_equal(at, got->count);
}

static void every_threshold(const gnomon_csr *p, const gnomon_csr *q)
{
    static double distances[N * N];
    static pairs got;
    gnomon_context *const ctx[] = {context(1), context(3)};
    all_distances(ctx[0], p, q != NULL ? q : p, distances);
    /* thresholds that are a pair's distance, and just less, beside round ones */
    double thresholds[] = {0, 0.1, 0.25, 0.5, 2.0 / 3, 0.8, 0.95, 0.99, 0.9995, 1, 1.5, 0, 0, 0, 0};
    for (int n = 0; n < 2; n++) {
        const double d = distances[(n + 1) * 977 % (p->rows * (q != NULL ? q->rows : p->rows))];
        thresholds[11 + 2 * n] = d;
        thresholds[12 + 2 * n] = d > 0 ? nextafter(d, 0) : 0;
    }
    for (size_t n = 0; n < sizeof thresholds / sizeof *thresholds; n++)
        for (int t = 0; t < 2; t++) {
            const gnomon_join_options o = within(thresholds[n], &got);
            gnomon_join_result result = {.struct_size = sizeof result};
            assert_int_equal(gnomon_join_csr(ctx[t], p, q, &o, &result), GNOMON_OK);
            if (thresholds[n] < 0.99)
                assert_non_null(strstr(result.why, "lists of their rarest members"));
            expect(distances, p, q != NULL ? q : p, q == NULL, thresholds[n], &got);
        }
    for (int t = 0; t < 2; t++)
        gnomon_context_destroy(ctx[t]);
}

static void a_join_with_itself_has_every_pair(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const gnomon_csr p = make(kind, N);
        every_threshold(&p, NULL);
    }
}

static void a_join_of_two_sides_has_every_pair(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const gnomon_csr all = make(kind, N);
        /* P begins in the midst of the arrays, as parts of a view do */
        const gnomon_csr p = {
            50, D, offsets + 70, indices + offsets[70], values + offsets[70], GNOMON_F64};
        const gnomon_csr q = {80, D, offsets, indices, values, GNOMON_F64};
        assert_int_equal(all.rows, N);
        every_threshold(&p, &q);
    }
}

static int by_distance(const void *x, const void *y)
{
    const gnomon_pair *a = x, *b = y;
    if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
    if (a->i != b->i) return a->i < b->i ? -1 : 1;
    return (a->j > b->j) - (a->j < b->j);
}

/* The threshold closes in while rows go by. */
static void top_pairs_are_the_closest(void **state)
{
    (void)state;
    static pairs all, top;
    gnomon_context *ctx = context(2);
    for (int kind = 0; kind < KINDS; kind++) {
        const gnomon_csr p = make(kind, N);
        const gnomon_join_options every = within(0.9, &all);
        gnomon_join_options o = within(0.9, &top);
        assert_int_equal(gnomon_join_csr(ctx, &p, NULL, &every, NULL), GNOMON_OK);
        qsort(all.at, (size_t)all.count, sizeof *all.at, by_distance);
        o.top = 25;
        assert_int_equal(gnomon_join_csr(ctx, &p, NULL, &o, NULL), GNOMON_OK);
        assert_int_equal(top.count, all.count < o.top ? all.count : o.top);
        for (int64_t n = 0; n < top.count; n++) {
            assert_int_equal(top.at[n].i, all.at[n].i);
            assert_int_equal(top.at[n].j, all.at[n].j);
            assert_memory_equal(&top.at[n].distance, &all.at[n].distance, sizeof(double));
        }
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_join_with_itself_has_every_pair),
        cmocka_unit_test(a_join_of_two_sides_has_every_pair),
        cmocka_unit_test(top_pairs_are_the_closest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
