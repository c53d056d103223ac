/* Weighted Jaccard distances against sums in long double over dense rows: search and join, on hard
 * weights, with any number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gnomon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 90, D = 24 };

static double dense[N][D];
static int64_t offsets[N + 1], indices[2 * N * D];
static double values[2 * N * D];
static gnomon_csr points;

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { SMALL, HUGE_RANGE, FULL_COLUMN, EQUAL_ROWS, DATA };

/* Columns descend, and some weights come in two parts: rows are put in order. */
static void make(int how)
{
    uint32_t state = 7u + (uint32_t)how;
    int64_t e = 0;
    memset(dense, 0, sizeof dense);
    for (int i = 0; i < N; i++) {
        for (int c = D - 1; c >= 0; c--) {
            const uint32_t r = draw(&state);
            double w = r % 3 == 0 && i % 11 != 5 ? (double)(r % 1000 + 1) / 16 : 0;
            if (how == HUGE_RANGE && w > 0) w = ldexp(w, (int)(draw(&state) % 900) - 460);
            if (how == FULL_COLUMN && c == 3) w = 2;
            if (how == EQUAL_ROWS) w = c % 2 ? c : 0;
            dense[i][c] = w;
            if (w > 0 && how == SMALL && r % 2) {
                values[e] = w / 2;
                indices[e++] = c;
                values[e] = w / 2;
                indices[e++] = c;
            } else if (w > 0 || r % 5 == 0) {
                values[e] = w;
                indices[e++] = c;
            }
        }
        offsets[i + 1] = e;
    }
    points = (gnomon_csr){N, D, offsets, indices, values, GNOMON_F64};
}

static double reference(int i, int j)
{
    long double least = 0, most = 0;
    for (int c = 0; c < D; c++) {
        least += fminl(dense[i][c], dense[j][c]);
        most += fmaxl(dense[i][c], dense[j][c]);
    }
    return most == 0 ? 0 : (double)(1 - least / most);
}

static gnomon_context *context(int threads)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    o.threads = threads;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static gnomon_search_options by(int64_t k, double radius)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = GNOMON_WEIGHTED_JACCARD;
    o.k = k;
    o.radius = radius;
    return o;
}

static void search_is_that_of_every_pair(void **state)
{
    (void)state;
    for (int how = 0; how < DATA; how++) {
        make(how);
        gnomon_neighbors found[2] = {{.struct_size = sizeof found[0]},
                                     {.struct_size = sizeof found[0]}};
        gnomon_context *ctx[2] = {context(1), context(3)};
        const gnomon_search_options all = by(N, 0), near = by(0, 0.75);
        for (int t = 0; t < 2; t++)
            assert_int_equal(gnomon_neighbors_exact_csr(ctx[t], &points, &points, &all, &found[t]),
                             GNOMON_OK);
        assert_memory_equal(found[0].ids, found[1].ids, N * N * sizeof(int64_t));
        assert_memory_equal(found[0].distances, found[1].distances, N * N * sizeof(double));
        gnomon_neighbors_free(ctx[1], &found[1]);
        found[1].struct_size = sizeof found[1];
        assert_int_equal(gnomon_neighbors_exact_csr(ctx[1], &points, &points, &near, &found[1]),
                         GNOMON_OK);
        for (int q = 0; q < N; q++) {
            char seen[N] = {0};
            int64_t within = 0;
            for (int64_t r = 0; r < N; r++) {
                const int64_t at = q * N + r, id = found[0].ids[at];
                const double distance = found[0].distances[at];
                assert_true(fabs(distance - reference(q, (int)id)) <= 1e-14);
                assert_false(seen[id]);
                seen[id] = 1;
                within += distance <= 0.75;
                if (r == 0) continue;
                const double before = found[0].distances[at - 1];
                assert_true(before < distance || (before == distance && found[0].ids[at - 1] < id));
            }
            assert_int_equal(found[1].offsets[q + 1] - found[1].offsets[q], within);
            assert_memory_equal(found[1].ids + found[1].offsets[q], found[0].ids + q * N,
                                (size_t)within * sizeof(int64_t));
        }
        for (int t = 0; t < 2; t++) {
            gnomon_neighbors_free(ctx[t], &found[t]);
            gnomon_context_destroy(ctx[t]);
        }
    }
}

typedef struct taken {
    int64_t count;
    gnomon_pair pairs[N * N];
} taken;

static int take(void *user, const gnomon_join_batch *batch)
{
    taken *t = user;
    for (int64_t i = 0; i < batch->count; i++)
        t->pairs[t->count++] = batch->pairs[i];
    return 0;
}

static void join_is_that_of_every_pair(void **state)
{
    (void)state;
    static const double thresholds[] = {0, 0.3, 0.8, 1};
    taken *t = malloc(sizeof *t);
    assert_non_null(t);
    for (int how = 0; how < DATA; how++)
        for (int threshold = 0; threshold < 4; threshold++) {
            gnomon_context *ctx = context(2);
            gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
            gnomon_neighbors found = {.struct_size = sizeof found};
            const gnomon_search_options all = by(N, 0);
            int64_t at = 0;
            make(how);
            o.metric = GNOMON_WEIGHTED_JACCARD;
            o.threshold = thresholds[threshold];
            o.sink = take;
            o.user = t;
            t->count = 0;
            assert_int_equal(gnomon_join_csr(ctx, &points, NULL, &o, NULL), GNOMON_OK);
            assert_int_equal(gnomon_neighbors_exact_csr(ctx, &points, &points, &all, &found),
                             GNOMON_OK);
            for (int i = 0; i < N; i++) {
                double row[N];
                for (int r = 0; r < N; r++)
                    row[found.ids[i * N + r]] = found.distances[i * N + r];
                for (int j = i + 1; j < N; j++) {
                    if (row[j] > o.threshold) continue;
                    assert_true(at < t->count);
                    assert_int_equal(t->pairs[at].i, i);
                    assert_int_equal(t->pairs[at].j, j);
                    assert_memory_equal(&t->pairs[at++].distance, &row[j], sizeof(double));
                }
            }
            assert_int_equal(at, t->count);
            gnomon_neighbors_free(ctx, &found);
            gnomon_context_destroy(ctx);
        }
    free(t);
}

/* Searches and joins of dense rows, and of one kind with the other, have the bits of sparse ones.
 */
static void dense_rows_are_as_good(void **state)
{
    (void)state;
    taken *sparse = malloc(sizeof *sparse), *same = malloc(sizeof *same);
    gnomon_context *ctx = context(2);
    assert_non_null(sparse);
    assert_non_null(same);
    for (int how = 0; how < DATA; how++) {
        make(how);
        /* column by column */
        static double columns[D][N];
        for (int i = 0; i < N; i++)
            for (int c = 0; c < D; c++)
                columns[c][i] = dense[i][c];
        gnomon_matrix m = gnomon_matrix_rowmajor(columns, GNOMON_F64, N, D);
        m.row_stride = 1;
        m.col_stride = N;
        const gnomon_search_options o = by(N, 0);
        gnomon_neighbors wanted = {.struct_size = sizeof wanted};
        assert_int_equal(gnomon_neighbors_exact_csr(ctx, &points, &points, &o, &wanted), GNOMON_OK);
        for (int kinds = 1; kinds < 4; kinds++) {
            gnomon_neighbors found = {.struct_size = sizeof found};
            gnomon_search *search;
            assert_int_equal(kinds & 1 ? gnomon_search_create(ctx, &m, &o, &search)
                                       : gnomon_search_create_csr(ctx, &points, &o, &search),
                             GNOMON_OK);
            assert_int_equal(kinds & 2 ? gnomon_search_add(search, &m)
                                       : gnomon_search_add_csr(search, &points),
                             GNOMON_OK);
            assert_int_equal(gnomon_search_finish(search, &found), GNOMON_OK);
            assert_memory_equal(found.ids, wanted.ids, sizeof(int64_t) * N * N);
            assert_memory_equal(found.distances, wanted.distances, sizeof(double) * N * N);
            gnomon_neighbors_free(ctx, &found);
            gnomon_search_destroy(search);
        }
        gnomon_neighbors_free(ctx, &wanted);
        gnomon_join_options j = GNOMON_JOIN_OPTIONS_INIT;
        j.metric = GNOMON_WEIGHTED_JACCARD;
        j.threshold = 0.7;
        j.sink = take;
        j.user = sparse;
        sparse->count = same->count = 0;
        assert_int_equal(gnomon_join_csr(ctx, &points, NULL, &j, NULL), GNOMON_OK);
        j.user = same;
        assert_int_equal(gnomon_join(ctx, &m, NULL, &j, NULL), GNOMON_OK);
        assert_int_equal(same->count, sparse->count);
        assert_memory_equal(same->pairs, sparse->pairs,
                            (size_t)sparse->count * sizeof *sparse->pairs);
    }
    gnomon_context_destroy(ctx);
    free(sparse);
    free(same);
}

static void bad_dense_weights_are_refused_by_row_and_column(void **state)
{
    (void)state;
    static const struct {
        float weight;
        gnomon_status status;
        const char *text;
    } bad[] = {{-2, GNOMON_ERROR_UNSUPPORTED, "the weight -2 in row 2, column 1"},
               {NAN, GNOMON_ERROR_NONFINITE, "NaN or infinity in row 2, column 1"},
               {INFINITY, GNOMON_ERROR_NONFINITE, "NaN or infinity in row 2, column 1"}};
    gnomon_context *ctx = context(1);
    const gnomon_search_options o = by(1, 0);
    gnomon_join_options j = GNOMON_JOIN_OPTIONS_INIT;
    j.metric = GNOMON_WEIGHTED_JACCARD;
    j.threshold = 0.5;
    for (int i = 0; i < 3; i++) {
        float x[3][2] = {{1, 0}, {0, -0.0f}, {3, bad[i].weight}}, sound[2][2] = {{1, 2}, {0, 0}};
        const gnomon_matrix m = gnomon_matrix_rowmajor(x, GNOMON_F32, 3, 2);
        const gnomon_matrix good = gnomon_matrix_rowmajor(sound, GNOMON_F32, 2, 2);
        gnomon_neighbors found = {.struct_size = sizeof found};
        assert_int_equal(gnomon_neighbors_exact(ctx, &good, &m, &o, &found), bad[i].status);
        assert_non_null(strstr(gnomon_last_error(ctx), bad[i].text));
        assert_string_equal(gnomon_last_error_argument(ctx), "queries");
        assert_int_equal(gnomon_neighbors_exact(ctx, &m, &good, &o, &found), bad[i].status);
        assert_non_null(strstr(gnomon_last_error(ctx), bad[i].text));
        assert_string_equal(gnomon_last_error_argument(ctx), "base");
        assert_int_equal(gnomon_join(ctx, &good, &m, &j, NULL), bad[i].status);
        assert_non_null(strstr(gnomon_last_error(ctx), bad[i].text));
    }
    gnomon_context_destroy(ctx);
}

static void negative_weights_are_refused_by_row_and_column(void **state)
{
    (void)state;
    gnomon_context *ctx = context(1);
    gnomon_neighbors found = {.struct_size = sizeof found};
    const gnomon_search_options o = by(1, 0);
    make(SMALL);
    const int64_t at = offsets[4];
    values[at] = -1;
    assert_int_equal(gnomon_neighbors_exact_csr(ctx, &points, &points, &o, &found),
                     GNOMON_ERROR_UNSUPPORTED);
    char expected[80];
    snprintf(expected, sizeof expected, "the weight -1 in row 4, column %d", (int)indices[at]);
    assert_non_null(strstr(gnomon_last_error(ctx), expected));
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_is_that_of_every_pair),
        cmocka_unit_test(join_is_that_of_every_pair),
        cmocka_unit_test(dense_rows_are_as_good),
        cmocka_unit_test(bad_dense_weights_are_refused_by_row_and_column),
        cmocka_unit_test(negative_weights_are_refused_by_row_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
