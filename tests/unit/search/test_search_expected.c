/* Many neighbours: limits are expected from a sample of the base, and guessed from scores. Bases in
 * every order, and such as mislead the sample: it then has too many of the nearest, or none; and
 * points all about as far away, whose scores' order is that of their errors. */
#include "search_testing.h"

#include "base/arithmetic.h"
#include "base/isa.h"
#include "search/state.h"

enum { N = 17000, D = 16, Q = 21, SAMPLED = 16, ORDERS = 9 };

typedef enum order { MIXED, SORTED, TURNED, SEEN, UNSEEN, EQUAL, WHOLE, PERIODS, SPHERE } order;

static const char *const names[] = {"mixed", "sorted", "turned",  "seen",  "unseen",
                                    "equal", "whole",  "periods", "sphere"};

/* Whether the sample has row i. */
static bool is_seen(int64_t i)
{
    return i % SAMPLED == (int64_t)(gnomon_mix64((uint64_t)(i / SAMPLED)) % SAMPLED);
}

/* How far from the queries, which lie near the origin. */
static double size_of(order by, int64_t i)
{
    switch (by) {
    case SORTED:
        return 0.1 + (double)i / N;
    case TURNED:
        return 1.1 - (double)i / N;
    case SEEN:
        return is_seen(i) ? 0.2 : 1;
    case UNSEEN:
        return is_seen(i) ? 1 : 0.2;
    case PERIODS:
        return i % SAMPLED == 3 ? 0.1 : 1;
    default:
        return 1;
    }
}

static float *make(order by, int64_t rows, uint64_t seed, bool queries)
{
    float *x = malloc((size_t)rows * D * sizeof *x);
    uint64_t state = seed;
    for (int64_t i = 0; i < rows * D; i++) {
        const double value = draw(&state);
        x[i] = by == EQUAL   ? 0.3F
               : by == WHOLE ? (float)(draw_bits(&state) % 3)
                             : (float)(value * (queries ? 0.05 : size_of(by, i / D)));
    }
    for (int64_t i = 0; i < rows && by == SPHERE; i++) {
        /* at right angles to the queries, which are all about 1/2, and as long as each other */
        float *row = x + i * D;
        double mean = 0, squares = 0;
        for (int j = 0; j < D; j++)
            mean += (double)row[j] / D;
        for (int j = 0; j < D; j++)
            squares += ((double)row[j] - mean) * ((double)row[j] - mean);
        for (int j = 0; j < D; j++)
            row[j] =
                queries ? 0.5F + row[j] * 1e-5F : (float)(((double)row[j] - mean) / sqrt(squares));
    }
    return x;
}

static double apart(gnomon_metric metric, const float *a, const float *b)
{
    double x[D], y[D];
    for (int j = 0; j < D; j++) {
        x[j] = (double)a[j];
        y[j] = (double)b[j];
    }
    if (metric != GNOMON_HAMMING) return distance_of(metric, x, y, D);
    const uint8_t *p = (const uint8_t *)a, *q = (const uint8_t *)b;
    int count = 0;
    for (size_t i = 0; i < D * sizeof *a; i++)
        count += __builtin_popcount(p[i] ^ q[i]);
    return count;
}

static gnomon_matrix matrix_of(gnomon_metric metric, const float *x, int64_t rows)
{
    return metric == GNOMON_HAMMING
               ? gnomon_matrix_rowmajor((void *)x, GNOMON_U8, rows, D * sizeof *x)
               : gnomon_matrix_rowmajor((void *)x, GNOMON_F32, rows, D);
}

static void check_in(gnomon_context *ctx, const char *what, gnomon_metric metric, const float *base,
                     const float *asked, const answer *all, int64_t k, int64_t piece, int64_t adds)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.k = k;
    const gnomon_matrix a = matrix_of(metric, asked, Q);
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search *s;
    expect(ctx, gnomon_search_create(ctx, &a, &o, &s), GNOMON_OK);
    s->rows = piece;
    for (int64_t from = 0; from < N; from += adds) {
        const int64_t rows = N - from < adds ? N - from : adds;
        const gnomon_matrix b = matrix_of(metric, base + from * D, rows);
        expect(ctx, gnomon_search_add(s, &b), GNOMON_OK);
    }
    expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
    assert_int_equal(found.compared, (int64_t)N * Q);
    for (int64_t q = 0; q < Q; q++) {
        for (int64_t i = 0; i < k; i++) {
            const answer right = all[q * N + i];
            if (found.ids[q * k + i] != right.id || found.distances[q * k + i] != right.distance)
                fail_msg("%s, metric %d, k %lld, query %lld, answer %lld: %lld at %a, not %lld at "
                         "%a",
                         what, (int)metric, (long long)k, (long long)q, (long long)i,
                         (long long)found.ids[q * k + i], found.distances[q * k + i],
                         (long long)right.id, right.distance);
        }
    }
    gnomon_search_destroy(s);
    gnomon_neighbors_free(ctx, &found);
}

static void check_order(order by, gnomon_metric metric)
{
    float *base = make(by, N, 1, false), *asked = make(by, Q, 2, true);
    answer *all = malloc(sizeof *all * Q * N);
    answer_sign = metric == GNOMON_IP ? -1 : 1;
    for (int64_t q = 0; q < Q; q++) {
        for (int64_t i = 0; i < N; i++)
            all[q * N + i] = (answer){apart(metric, asked + q * D, base + i * D), i};
        qsort(all + q * N, N, sizeof *all, by_distance);
    }
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        assert_int_equal(setenv("GNOMON_ISA", gnomon_isa_name((gnomon_isa)level), 1), 0);
        for (int threads = 1; threads < 4; threads += 2) {
            gnomon_context *ctx = context_of(threads, 0);
            check_in(ctx, names[by], metric, base, asked, all, 100, 0, N);
            check_in(ctx, names[by], metric, base, asked, all, 300, 5000, N);
            check_in(ctx, names[by], metric, base, asked, all, 900, 0, 16600);
            gnomon_context_destroy(ctx);
        }
    }
    unsetenv("GNOMON_ISA");
    free(base);
    free(asked);
    free(all);
}

static void every_order_has_the_same_answers(void **state)
{
    (void)state;
    for (int by = 0; by < ORDERS; by++)
        check_order((order)by, GNOMON_L2);
}

static void other_metrics(void **state)
{
    (void)state;
    static const gnomon_metric metrics[] = {GNOMON_COSINE, GNOMON_IP, GNOMON_HAMMING};
    for (int m = 0; m < 3; m++) {
        check_order(MIXED, metrics[m]);
        check_order(SEEN, metrics[m]);
        check_order(EQUAL, metrics[m]);
    }
}

/* The first row that can't be taken is named, though the sample has a later one. */
static void the_first_bad_row_is_named(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    float *base = make(MIXED, N, 1, false), *asked = make(MIXED, Q, 2, true);
    int64_t later = 9000;
    while (!is_seen(later))
        later++;
    base[4321 * D + 5] = NAN;
    base[later * D] = NAN;
    const gnomon_matrix b = matrix_of(GNOMON_L2, base, N), a = matrix_of(GNOMON_L2, asked, Q);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    o.k = 200;
    assert_int_equal(gnomon_neighbors_exact(ctx, &b, &a, &o, &found), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "row 4321"));
    free(base);
    free(asked);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_has_the_same_answers),
        cmocka_unit_test(other_metrics),
        cmocka_unit_test(the_first_bad_row_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
