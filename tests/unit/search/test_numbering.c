/* Members numbered by how often they occur, against counts one by one: tables by member and by
 * hash, few and many members, sets in two lots, any threads. */
#include "search_testing.h"

#include "search/numbering.h"

enum { LOTS = 2 };

typedef struct lots {
    gnomon_sets sets[LOTS];
    int64_t cols;
    int64_t *counts; /* cols */
} lots;

/* Members of a skewed distribution; those of one column are in every set, so that counts reach the
 * number of sets. */
static lots make(int64_t sets, int64_t length, int64_t cols, int64_t spread)
{
    lots l = {.cols = cols, .counts = calloc((size_t)cols, sizeof(int64_t))};
    uint64_t state = 11;
    for (int lot = 0; lot < LOTS; lot++) {
        gnomon_sets *s = &l.sets[lot];
        s->count = sets;
        s->offsets = malloc((size_t)(sets + 1) * sizeof *s->offsets);
        s->members = malloc((size_t)(sets * length + 1) * sizeof *s->members);
        for (int64_t i = 0; i <= sets; i++)
            s->offsets[i] = i * length;
        for (int64_t e = 0; e < sets * length; e++) {
            const double x = draw(&state);
            const int64_t most = spread < cols ? spread : cols;
            const int64_t member =
                e % length == 0 ? cols - 1 : (int64_t)(x * x * x * x * (double)most);
            s->members[e] = member < 0 ? 0 : member < cols ? member : cols - 1;
            l.counts[s->members[e]]++;
        }
    }
    return l;
}

static void free_lots(lots *l)
{
    for (int lot = 0; lot < LOTS; lot++) {
        free(l->sets[lot].offsets);
        free(l->sets[lot].members);
    }
    free(l->counts);
}

/* Every member has its count, and a number that those of fewer, or of as many and smaller, come
 * before. */
static void check(gnomon_context *ctx, const lots *l, bool direct)
{
    gnomon_numbering n;
    const int64_t all = LOTS * l->sets[0].offsets[l->sets[0].count];
    assert_int_equal(gnomon_numbering_open(ctx, l->cols, all, &n), GNOMON_OK);
    assert_int_equal(n.direct, direct);
    for (int lot = 0; lot < LOTS; lot++)
        assert_int_equal(gnomon_numbering_count(ctx, &n, &l->sets[lot]), GNOMON_OK);
    assert_int_equal(gnomon_numbering_close(ctx, &n), GNOMON_OK);
    int64_t *members = malloc((size_t)(n.used + 1) * sizeof *members), used = 0;
    for (int64_t m = 0; m < l->cols; m++) {
        const int64_t number = gnomon_numbering_find(&n, m);
        if (l->counts[m] == 0) {
            assert_int_equal(number, -1);
            continue;
        }
        assert_in_range(number, 0, n.used - 1);
        members[number] = m;
        used++;
    }
    assert_int_equal(used, n.used);
    for (int64_t i = 1; i < used; i++) {
        const int64_t before = members[i - 1], now = members[i];
        assert_true(l->counts[before] < l->counts[now] ||
                    (l->counts[before] == l->counts[now] && before < now));
    }
    free(members);
    gnomon_numbering_free(ctx, &n);
}

static void rarest_first(void **state)
{
    static const struct {
        int64_t sets, length, cols, spread;
        bool direct;
    } cases[] = {{4000, 30, 5000, 5000, true}, /* parts of the members have their counts */
                 {5001, 7, 3, 3, true},        /* counts that are many times the members */
                 {400, 9, 50000, 50000, true}, /* more columns than members */
                 {1, 1, 1, 1, true},
                 {0, 5, 10, 10, true},
                 {300, 20, 1 << 20, 900, false},      /* by hash */
                 {300, 20, 1 << 20, 1 << 20, false}}; /* and the table grows */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lots l = make(cases[i].sets, cases[i].length, cases[i].cols, cases[i].spread);
        for (int threads = 1; threads <= 16; threads = 3 * threads + 1) { /* 1, 4, 13 */
            gnomon_context *ctx = context_of(threads, 0);
            check(ctx, &l, cases[i].direct);
            gnomon_context_destroy(ctx);
        }
        free_lots(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rarest_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
