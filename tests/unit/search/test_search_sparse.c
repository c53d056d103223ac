/* Search of sparse rows by l2, cosine, ip and l1 against every pair of the same dense rows in fp64:
 * ids, ties and the bits of distances, whatever the rows, threads, memory and pieces. */
#include "base/arithmetic.h"
#include "base/isa.h"
#include "kernels.h"
#include "sparse_testing.h"

enum { BASE = 300, QUERIES = 40, D = 150 };

/* All pairs of q's and b's rows, a query's sorted. */
static answer *all_answers(gnomon_metric metric, const sparse_rows *q, const sparse_rows *b)
{
    const int64_t n = b->csr.rows, d = b->d;
    answer *all = malloc((size_t)(n * q->csr.rows) * sizeof *all + 1);
    answer_sign = sparse_larger(metric) ? -1 : 1;
    for (int64_t i = 0; i < q->csr.rows; i++) {
        for (int64_t j = 0; j < n; j++)
            all[i * n + j] =
                (answer){distance_of(metric, q->dense + i * d, b->dense + j * d, d), j};
        qsort(all + i * n, (size_t)n, sizeof *all, by_distance);
    }
    return all;
}

static bool may_answer(const gnomon_search_options *o, int64_t query, int64_t id)
{
    if (o->exclude >= 0 && id == o->exclude + query) return false;
    return o->filter == NULL || (id < o->filter_bits && (o->filter[id / 8] >> (id % 8) & 1) != 0);
}

/* What 'all' has of it, answer by answer. */
static void compare(const gnomon_neighbors *found, const gnomon_search_options *o,
                    const answer *all, int64_t base, const char *what)
{
    for (int64_t q = 0; q < found->queries; q++) {
        int64_t at = found->offsets[q];
        const int64_t end = found->offsets[q + 1];
        for (int64_t r = 0; r < base; r++) {
            const answer *want = &all[q * base + r];
            if (!may_answer(o, q, want->id)) continue;
            if (o->k > 0 ? at - found->offsets[q] == o->k
                         : !sparse_within(o->metric, want->distance, o->radius))
                break;
            if (at == end) fail_msg("%s: query %lld has too few", what, (long long)q);
            if (found->ids[at] != want->id ||
                memcmp(&found->distances[at], &want->distance, sizeof want->distance) != 0)
                fail_msg("%s, metric %d, query %lld: %lld at %.17g, want %lld at %.17g", what,
                         (int)o->metric, (long long)q, (long long)found->ids[at],
                         found->distances[at], (long long)want->id, want->distance);
            at++;
        }
        if (at != end) fail_msg("%s: query %lld has too many", what, (long long)q);
    }
}

/* The base comes in pieces of so many rows, 0: at once. */
static void search(gnomon_context *ctx, const sparse_rows *base, const sparse_rows *queries,
                   const gnomon_search_options *o, int64_t piece, const answer *all,
                   const char *what)
{
    gnomon_neighbors found = {.struct_size = sizeof found};
    if (piece == 0) {
        expect(ctx, gnomon_neighbors_exact_csr(ctx, &base->csr, &queries->csr, o, &found),
               GNOMON_OK);
    } else {
        gnomon_search *s;
        expect(ctx, gnomon_search_create_csr(ctx, &queries->csr, o, &s), GNOMON_OK);
        for (int64_t from = 0; from < base->csr.rows; from += piece) {
            const int64_t left = base->csr.rows - from;
            const gnomon_csr part = sparse_part(&base->csr, from, left < piece ? left : piece);
            expect(ctx, gnomon_search_add_csr(s, &part), GNOMON_OK);
        }
        expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
        gnomon_search_destroy(s);
    }
    compare(&found, o, all, base->csr.rows, what);
    gnomon_neighbors_free(ctx, &found);
}

static gnomon_search_options options_of(gnomon_metric metric, int64_t k, double radius)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.metric = metric;
    o.k = k;
    o.radius = radius;
    return o;
}

static void every_way(gnomon_metric metric, sparse_kind kind, bool wide)
{
    static const struct {
        int threads;
        int64_t memory, piece;
        const char *what;
    } ways[] = {{1, 0, 0, "one thread"},
                {3, 0, 0, "three threads"},
                {2, (int64_t)1 << 17, 0, "little memory"},
                {2, 0, 77, "pieces"}};
    sparse_rows base = sparse_make(kind, BASE, D, wide, 11), queries = {0};
    queries = sparse_make(kind, QUERIES, D, wide, 12);
    answer *all = all_answers(metric, &queries, &base);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        gnomon_context *ctx = context_of(ways[w].threads, ways[w].memory);
        for (int64_t k = 1; k <= BASE; k = k == 1 ? 9 : k == 9 ? BASE : BASE + 1) {
            const gnomon_search_options o = options_of(metric, k, 0);
            search(ctx, &base, &queries, &o, ways[w].piece, all, ways[w].what);
        }
        for (int64_t rank = 0; rank < BASE; rank += 60) { /* a radius that falls on a distance */
            const gnomon_search_options o = options_of(metric, 0, all[7 * BASE + rank].distance);
            search(ctx, &base, &queries, &o, ways[w].piece, all, ways[w].what);
        }
        gnomon_context_destroy(ctx);
    }
    free(all);
    sparse_drop(&base);
    sparse_drop(&queries);
}

static void answers_are_those_of_every_pair(void **state)
{
    (void)state;
    for (int m = 0; m < SPARSE_METRICS; m++)
        for (int kind = 0; kind < SPARSE_KINDS; kind++)
            every_way(sparse_metrics[m], (sparse_kind)kind, false);
}

/* One query at a time, which has a way of its own. */
static void single_queries(void **state)
{
    (void)state;
    uint8_t allowed[BASE / 8];
    memset(allowed, 0xb7, sizeof allowed);
    for (int kind = 0; kind < SPARSE_KINDS; kind++) {
        sparse_rows base = sparse_make((sparse_kind)kind, BASE, D, false, 51);
        sparse_rows queries = sparse_make((sparse_kind)kind, QUERIES, D, false, 52);
        for (int m = 0; m < SPARSE_METRICS; m++) {
            answer *all = all_answers(sparse_metrics[m], &queries, &base);
            gnomon_context *ctx = context_of(2, 0);
            for (int64_t q = 0; q < QUERIES; q++) {
                const answer *mine = all + q * BASE;
                sparse_rows one = queries;
                one.csr = sparse_part(&queries.csr, q, 1);
                gnomon_search_options o = options_of(sparse_metrics[m], 1 + q % 5, 0);
                search(ctx, &base, &one, &o, 0, mine, "one query");
                search(ctx, &base, &one, &o, 41, mine, "one query, pieces");
                o.exclude = mine[1].id;
                o.filter = allowed;
                o.filter_bits = 8 * (int64_t)sizeof allowed;
                search(ctx, &base, &one, &o, 0, mine, "one query, the nearest that may be");
                for (int64_t rank = 0; rank < BASE; rank += 90) {
                    o = options_of(sparse_metrics[m], 0, mine[rank].distance);
                    search(ctx, &base, &one, &o, 0, mine, "one query by radius");
                }
            }
            gnomon_context_destroy(ctx);
            free(all);
        }
        sparse_drop(&base);
        sparse_drop(&queries);
    }
}

static void as_many_columns_as_can_be(void **state)
{
    (void)state;
    for (int m = 0; m < SPARSE_METRICS; m++)
        every_way(sparse_metrics[m], SPARSE_TEXT, true);
}

static void filters_and_own_points(void **state)
{
    (void)state;
    sparse_rows base = sparse_make(SPARSE_TEXT, BASE, D, false, 3);
    uint8_t allowed[BASE / 8 - 2];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof allowed; i++)
        allowed[i] = (uint8_t)draw_bits(&seed);
    gnomon_context *ctx = context_of(2, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        answer *all = all_answers(sparse_metrics[m], &base, &base);
        for (int which = 1; which < 4; which++) {
            gnomon_search_options o = options_of(sparse_metrics[m], 6, 0);
            if (which & 1) o.exclude = 0;
            if (which & 2) o.filter = allowed;
            if (which & 2) o.filter_bits = 8 * (int64_t)sizeof allowed - 3;
            search(ctx, &base, &base, &o, 0, all, "the nearest that may be");
            search(ctx, &base, &base, &o, 100, all, "the nearest that may be, in pieces");
            o.k = 0;
            o.radius = all[20 * BASE + 30].distance;
            search(ctx, &base, &base, &o, 64, all, "those near that may be, in pieces");
        }
        free(all);
    }
    gnomon_context_destroy(ctx);
    sparse_drop(&base);
}

/* More rows than scores are kept for at a time: what earlier ones reach decides for later ones. */
static void several_pieces_of_scores(void **state)
{
    (void)state;
    enum { MANY = 70000, COLS = 48, FEW = 6 };
    sparse_rows base = sparse_make(SPARSE_TEXT, MANY, COLS, false, 21);
    sparse_rows queries = sparse_make(SPARSE_TEXT, FEW, COLS, false, 22);
    gnomon_context *ctx = context_of(2, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        answer *all = all_answers(sparse_metrics[m], &queries, &base);
        gnomon_search_options o = options_of(sparse_metrics[m], 50, 0);
        search(ctx, &base, &queries, &o, 0, all, "many rows");
        o.k = 40000; /* more than a piece has */
        search(ctx, &base, &queries, &o, 0, all, "many neighbours of many rows");
        o = options_of(sparse_metrics[m], 0, all[5 * MANY + 1000].distance);
        search(ctx, &base, &queries, &o, 0, all, "many rows by radius");
        free(all);
    }
    gnomon_context_destroy(ctx);
    sparse_drop(&base);
    sparse_drop(&queries);
}

/* Sparse rows against dense ones, either way. */
static void one_side_dense(void **state)
{
    (void)state;
    sparse_rows base = sparse_make(SPARSE_TEXT, BASE, D, false, 31);
    sparse_rows queries = sparse_make(SPARSE_TEXT, QUERIES, D, false, 32);
    const gnomon_matrix base_dense = gnomon_matrix_rowmajor(base.dense, GNOMON_F64, BASE, D);
    const gnomon_matrix queries_dense =
        gnomon_matrix_rowmajor(queries.dense, GNOMON_F64, QUERIES, D);
    gnomon_context *ctx = context_of(2, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        answer *all = all_answers(sparse_metrics[m], &queries, &base);
        const gnomon_search_options o = options_of(sparse_metrics[m], 8, 0);
        for (int dense_base = 0; dense_base < 2; dense_base++) {
            gnomon_neighbors found = {.struct_size = sizeof found};
            gnomon_search *s;
            expect(ctx,
                   dense_base ? gnomon_search_create_csr(ctx, &queries.csr, &o, &s)
                              : gnomon_search_create(ctx, &queries_dense, &o, &s),
                   GNOMON_OK);
            expect(ctx,
                   dense_base ? gnomon_search_add(s, &base_dense)
                              : gnomon_search_add_csr(s, &base.csr),
                   GNOMON_OK);
            expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
            compare(&found, &o, all, BASE, dense_base ? "a dense base" : "dense queries");
            gnomon_neighbors_free(ctx, &found);
            gnomon_search_destroy(s);
        }
        free(all);
    }
    gnomon_context_destroy(ctx);
    sparse_drop(&base);
    sparse_drop(&queries);
}

/* 10^16 - 10^16 + 1 is 1 in this order and 0 in others. */
static void duplicates_add_up_in_their_order(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 4, 5}, columns[] = {2, 2, 0, 2, 2};
    const double values[] = {1e16, -1e16, 3, 1, 1};
    const gnomon_csr rows = {2, 4, offsets, columns, values, GNOMON_F64};
    gnomon_context *ctx = context_of(1, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        const gnomon_metric metric = sparse_metrics[m];
        const double summed[] = {3, 0, 1, 0}, other[] = {0, 0, 1, 0};
        const gnomon_search_options o = options_of(metric, 2, 0);
        gnomon_neighbors found = {.struct_size = sizeof found};
        expect(ctx, gnomon_neighbors_exact_csr(ctx, &rows, &rows, &o, &found), GNOMON_OK);
        const double want = distance_of(metric, summed, other, 4);
        for (int64_t at = 0; at < 2; at++)
            if (found.ids[at] == 1) assert_memory_equal(&found.distances[at], &want, sizeof want);
        gnomon_neighbors_free(ctx, &found);
    }
    gnomon_context_destroy(ctx);
}

static void rows_without_entries(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 0, 1, 2}, columns[] = {1, 3};
    const double values[] = {0, 2}, wants[] = {2, 1, 0, 2};
    const gnomon_csr rows = {3, 4, offsets, columns, values, GNOMON_F64};
    gnomon_context *ctx = context_of(1, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        const gnomon_search_options o = options_of(sparse_metrics[m], 3, 0);
        gnomon_neighbors found = {.struct_size = sizeof found};
        expect(ctx, gnomon_neighbors_exact_csr(ctx, &rows, &rows, &o, &found), GNOMON_OK);
        for (int64_t at = 0; at < 3; at++) { /* the first query is the zero vector */
            const double zeros = sparse_metrics[m] == GNOMON_COSINE ? 1 : 0;
            assert_true(found.distances[at] == (found.ids[at] == 2 ? wants[m] : zeros));
        }
        gnomon_neighbors_free(ctx, &found);
        const gnomon_csr none = {0, 4, NULL, NULL, NULL, GNOMON_F64};
        found.struct_size = sizeof found;
        expect(ctx, gnomon_neighbors_exact_csr(ctx, &rows, &none, &o, &found), GNOMON_OK);
        assert_int_equal(found.queries, 0);
        gnomon_neighbors_free(ctx, &found);
    }
    gnomon_context_destroy(ctx);
}

/* ---- what is refused ---- */

/* Row 2000 of many has the fault, and another row after it. */
static void refused(gnomon_metric metric, int64_t column, double value, gnomon_status want,
                    const char *text)
{
    enum { MANY = 3000, COLS = 16 };
    int64_t offsets[MANY + 1], columns[MANY];
    double values[MANY];
    for (int64_t i = 0; i <= MANY; i++)
        offsets[i] = i;
    for (int64_t i = 0; i < MANY; i++) {
        columns[i] = i % COLS;
        values[i] = 1;
    }
    const gnomon_csr rows = {MANY, COLS, offsets, columns, values, GNOMON_F64};
    const gnomon_csr few = {3, COLS, offsets, columns, values, GNOMON_F64};
    const gnomon_search_options o = options_of(metric, 1, 0);
    for (int threads = 1; threads < 4; threads += 2) {
        gnomon_context *ctx = context_of(threads, 0);
        for (int base = 0; base < 2; base++) {
            gnomon_neighbors found = {.struct_size = sizeof found, .ids = (int64_t *)values};
            columns[2000] = columns[2900] = column;
            values[2000] = values[2900] = value;
            expect(ctx,
                   gnomon_neighbors_exact_csr(ctx, base ? &rows : &few, base ? &few : &rows, &o,
                                              &found),
                   want);
            if (strstr(gnomon_last_error(ctx), text) == NULL ||
                strstr(gnomon_last_error(ctx), "row 2000") == NULL)
                fail_msg("'%s', want '%s' of row 2000", gnomon_last_error(ctx), text);
        }
        gnomon_context_destroy(ctx);
    }
}

static void broken_rows_are_refused(void **state)
{
    (void)state;
    for (int m = 0; m < SPARSE_METRICS; m++) {
        const gnomon_metric metric = sparse_metrics[m];
        refused(metric, 16, 1, GNOMON_ERROR_DATA, "column index 16");
        refused(metric, -1, 1, GNOMON_ERROR_DATA, "column index -1");
        refused(metric, INT64_MAX, 1, GNOMON_ERROR_DATA, "column index 9223372036854775807");
        refused(metric, 3, (double)NAN, GNOMON_ERROR_NONFINITE, "NaN or infinity");
        refused(metric, 3, -INFINITY, GNOMON_ERROR_NONFINITE, "NaN or infinity");
        refused(metric, 3, 0x1.8p500, GNOMON_ERROR_UNSUPPORTED, "magnitude above 2^500");
    }
}

static void broken_views_are_refused(void **state)
{
    (void)state;
    const int64_t falling[] = {0, 2, 1}, fine[] = {0, 1, 2}, negative[] = {-1, 0, 1};
    const int64_t columns[] = {0, 1};
    const double values[] = {1, 2};
    const gnomon_csr good = {2, 4, fine, columns, values, GNOMON_F64};
    const gnomon_csr broken[] = {{2, 4, falling, columns, values, GNOMON_F64},
                                 {2, 4, negative, columns, values, GNOMON_F64},
                                 {2, 5, fine, columns, values, GNOMON_F64}};
    const gnomon_status wants[] = {GNOMON_ERROR_DATA, GNOMON_ERROR_DATA, GNOMON_ERROR_SHAPE};
    gnomon_context *ctx = context_of(1, 0);
    for (int m = 0; m < SPARSE_METRICS; m++) {
        const gnomon_search_options o = options_of(sparse_metrics[m], 1, 0);
        for (int b = 0; b < 3; b++) {
            gnomon_neighbors found = {.struct_size = sizeof found};
            expect(ctx, gnomon_neighbors_exact_csr(ctx, &broken[b], &good, &o, &found), wants[b]);
            expect(ctx, gnomon_neighbors_exact_csr(ctx, &good, &broken[b], &o, &found), wants[b]);
        }
    }
    gnomon_context_destroy(ctx);
}

/* Sums of codes at every level beside fp64, of columns that begin anywhere; nothing is written
 * behind the last vector. */
static void sums_of_codes(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 33 };
    static int8_t codes[COLUMNS][ROWS + 2 * GNOMON_LANES];
    const int8_t *columns[COLUMNS];
    float by[COLUMNS], sums[ROWS + 2 * GNOMON_LANES];
    for (int c = 0; c < COLUMNS; c++) {
        columns[c] = codes[c];
        by[c] = ldexpf((float)(c * 37 % 41 - 20), c % 5 - 8);
        for (int i = 0; i < ROWS; i++)
            codes[c][i] = (int8_t)((i * 83 + c * 29) % 255 - 127);
    }
    for (int level = 0; level < GNOMON_ISA_COUNT; level++) {
        if (!gnomon_isa_available((gnomon_isa)level)) continue;
        const gnomon_search_kernels *kernels =
            gnomon_cpu_kernels(gnomon_isa_name((gnomon_isa)level))->search;
        for (int trial = 0; trial < 60; trial++) {
            const int64_t count = trial * 5 + 1, first = gnomon_min(trial * 7 % 64, ROWS - count);
            const int64_t terms = trial % (COLUMNS + 1);
            for (int i = 0; i < ROWS + 2 * GNOMON_LANES; i++)
                sums[i] = 12345;
            kernels->sum_codes(by, columns, first, terms, count, sums);
            for (int64_t i = 0; i < count; i++) {
                double sum = 0, size = 0;
                for (int64_t t = 0; t < terms; t++) {
                    sum += (double)by[t] * codes[t][first + i];
                    size += fabs((double)by[t] * codes[t][first + i]);
                }
                assert_true(fabs(sums[i] - sum) <= (double)terms * 0x1p-24 * size);
            }
            const int64_t end = (count + GNOMON_LANES - 1) / GNOMON_LANES * GNOMON_LANES;
            assert_true(sums[end] == 12345);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_every_pair),
        cmocka_unit_test(single_queries),
        cmocka_unit_test(as_many_columns_as_can_be),
        cmocka_unit_test(filters_and_own_points),
        cmocka_unit_test(several_pieces_of_scores),
        cmocka_unit_test(one_side_dense),
        cmocka_unit_test(duplicates_add_up_in_their_order),
        cmocka_unit_test(rows_without_entries),
        cmocka_unit_test(broken_rows_are_refused),
        cmocka_unit_test(broken_views_are_refused),
        cmocka_unit_test(sums_of_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
