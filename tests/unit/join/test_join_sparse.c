/* Joins of sparse rows by l2, cosine, ip and l1 against every pair of the same dense rows in fp64:
 * the pairs, their order and the bits of distances, whatever the rows, threads and memory. */
#include "join_testing.h"
#include "meter.h"
#include "sparse_testing.h"

enum { P = 260, Q = 190, D = 150, METRICS = SPARSE_METRICS };

/* All pairs within the threshold; 'self': of p's rows, each once. */
static gathered every_pair(gnomon_metric metric, const sparse_rows *p, const sparse_rows *q,
                           bool self, double threshold)
{
    gathered g = {0};
    for (int64_t i = 0; i < p->csr.rows; i++) {
        for (int64_t j = self ? i + 1 : 0; j < q->csr.rows; j++) {
            const gnomon_pair pair = {i, j,
                                      distance_of(metric, p->dense + i * D, q->dense + j * D, D)};
            const gnomon_join_batch batch = {&pair, 1, i};
            if (sparse_within(metric, pair.distance, threshold)) gather(&g, &batch);
        }
    }
    return g;
}

static gnomon_join_options options_of(gnomon_metric metric, double threshold, gathered *got)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.metric = metric;
    o.threshold = threshold;
    o.sink = gather;
    o.user = got;
    return o;
}

static void joined(const sparse_rows *p, const sparse_rows *q, gnomon_join_options o,
                   const gathered *want, int threads, int64_t memory)
{
    gnomon_context *ctx = context_of(threads, memory);
    gathered *got = o.user;
    *got = (gathered){0};
    gnomon_join_result result = {.struct_size = sizeof result};
    expect(ctx, gnomon_join_csr(ctx, &p->csr, q != NULL ? &q->csr : NULL, &o, &result), GNOMON_OK);
    same_pairs(got, want, gnomon_metric_name(o.metric));
    assert_int_equal(result.pairs, want->count);
    assert_int_equal(result.rows_done, p->csr.rows);
    assert_true(result.complete);
    assert_int_equal(result.method, GNOMON_JOIN_EXACT);
    assert_non_null(strstr(result.why, "inverted index"));
    free(got->pairs);
    gnomon_context_destroy(ctx);
}

/* Thresholds that fall on distances: of few pairs, some and all. */
static double threshold_of(gnomon_metric metric, const sparse_rows *p, const sparse_rows *q, int n)
{
    if (n == 3) return metric == GNOMON_IP ? -INFINITY : INFINITY;
    answer *row = malloc((size_t)q->csr.rows * sizeof *row);
    answer_sign = sparse_larger(metric) ? -1 : 1;
    for (int64_t j = 0; j < q->csr.rows; j++)
        row[j] = (answer){distance_of(metric, p->dense + 40 * D, q->dense + j * D, D), j};
    qsort(row, (size_t)q->csr.rows, sizeof *row, by_distance);
    const double found = row[n == 0 ? 1 : n == 1 ? 20 : 100].distance;
    free(row);
    return found;
}

static void pairs_are_those_of_every_pair(void **state)
{
    (void)state;
    for (int kind = 0; kind < SPARSE_KINDS; kind++) {
        sparse_rows p = sparse_make((sparse_kind)kind, P, D, false, 41);
        sparse_rows q = sparse_make((sparse_kind)kind, Q, D, false, 42);
        for (int m = 0; m < METRICS; m++) {
            for (int n = 0; n < 3; n++) {
                for (int self = 0; self < 2; self++) {
                    const sparse_rows *other = self ? &p : &q;
                    const double t = threshold_of(sparse_metrics[m], &p, other, n);
                    gathered want = every_pair(sparse_metrics[m], &p, other, self, t), got;
                    const gnomon_join_options o = options_of(sparse_metrics[m], t, &got);
                    joined(&p, self ? NULL : &q, o, &want, 1, 0);
                    joined(&p, self ? NULL : &q, o, &want, 3, 0);
                    joined(&p, self ? NULL : &q, o, &want, 2, (int64_t)1 << 17);
                    free(want.pairs);
                }
            }
        }
        sparse_drop(&p);
        sparse_drop(&q);
    }
}

static void as_many_columns_as_can_be(void **state)
{
    (void)state;
    sparse_rows p = sparse_make(SPARSE_TEXT, P, D, true, 43);
    sparse_rows q = sparse_make(SPARSE_TEXT, Q, D, true, 44);
    for (int m = 0; m < METRICS; m++) {
        const double t = threshold_of(sparse_metrics[m], &p, &q, 1);
        gathered want = every_pair(sparse_metrics[m], &p, &q, false, t), got;
        joined(&p, &q, options_of(sparse_metrics[m], t, &got), &want, 2, 0);
        free(want.pairs);
    }
    sparse_drop(&p);
    sparse_drop(&q);
}

static bool larger_first;
static int by_distance_then_row(const void *x, const void *y)
{
    const gnomon_pair *a = x, *b = y;
    if (a->distance != b->distance) return (a->distance < b->distance) != larger_first ? -1 : 1;
    return by_row(x, y);
}

/* The closest, with ties at the last; and parts, one after another, by a limit of pairs. */
static void closest_pairs_and_parts(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    for (int kind = SPARSE_TEXT; kind <= SPARSE_ONE_HOT; kind += 2) {
        sparse_rows p = sparse_make((sparse_kind)kind, P, D, false, 45);
        for (int m = 0; m < METRICS; m++) {
            const gnomon_metric metric = sparse_metrics[m];
            const double all = threshold_of(metric, &p, &p, 3);
            gathered want = every_pair(metric, &p, &p, true, all), got = {0};
            larger_first = sparse_larger(metric);
            qsort(want.pairs, (size_t)want.count, sizeof *want.pairs, by_distance_then_row);
            want.count = 333;
            gnomon_join_options o = options_of(metric, all, &got);
            o.top = want.count;
            expect(ctx, gnomon_join_csr(ctx, &p.csr, NULL, &o, NULL), GNOMON_OK);
            same_pairs(&got, &want, "the closest");
            free(want.pairs);
            free(got.pairs);

            const double t = threshold_of(metric, &p, &p, 1);
            want = every_pair(metric, &p, &p, true, t);
            got = (gathered){0};
            o = options_of(metric, t, &got);
            o.max_pairs = want.count / 3 + 1;
            for (int part = 0; part < 400 && o.first_row < P; part++) {
                gnomon_join_result r = {.struct_size = sizeof r};
                const int64_t before = got.count, begin = o.first_row;
                got.rows_done = 0;
                expect(ctx, gnomon_join_csr(ctx, &p.csr, NULL, &o, &r), GNOMON_OK);
                o.first_row = r.rows_done;
                /* what came of rows that are not complete comes again */
                while (got.count > before && got.pairs[got.count - 1].i >= r.rows_done)
                    got.count--;
                if (r.rows_done == begin) o.max_pairs *= 2;
            }
            assert_int_equal(o.first_row, P);
            same_pairs(&got, &want, "parts");
            free(want.pairs);
            free(got.pairs);
        }
        sparse_drop(&p);
    }
    gnomon_context_destroy(ctx);
}

/* The pairs of a join with so much memory, and what it took of it. */
static gathered metered(const sparse_rows *p, const sparse_rows *q, gnomon_join_options o,
                        int64_t limit, gnomon_join_result *result, int64_t *took)
{
    meter m = {0};
    gathered got = {0};
    const gnomon_allocator allocator = {&m, meter_allocate, meter_release};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 2;
    options.memory_limit = limit;
    options.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    const int64_t before = m.held;
    o.user = &got;
    *result = (gnomon_join_result){.struct_size = sizeof *result};
    expect(ctx, gnomon_join_csr(ctx, &p->csr, q != NULL ? &q->csr : NULL, &o, result), GNOMON_OK);
    *took = m.peak - before;
    gnomon_context_destroy(ctx);
    assert_int_equal(m.held, 0);
    return got;
}

/* Q's index comes in pieces where it takes more than its share of the memory limit, and the pairs
 * are the same; of few pairs and of so many that they must wait in several bands. */
static void memory_holds_for_indexes(void **state)
{
    (void)state;
    enum { ROWS = 16000, FEW = 400, LIMIT = 6 << 20 };
    sparse_rows q = sparse_make(SPARSE_TEXT, ROWS, D, true, 46);
    sparse_rows some = sparse_make(SPARSE_TEXT, FEW, D, true, 47);
    for (int m = 0; m < METRICS; m++) {
        for (int self = 0; self < 2; self++) {
            const sparse_rows *p = self ? &q : &some, *other = self ? NULL : &q;
            /* of a self-join of most metrics copies alone are near */
            const double t = self && !sparse_larger(sparse_metrics[m])
                                 ? 0
                                 : threshold_of(sparse_metrics[m], p, &q, 1);
            gathered unused;
            gnomon_join_options o = options_of(sparse_metrics[m], t, &unused);
            gnomon_join_result all, cut;
            int64_t needs, took;
            gathered want = metered(p, other, o, 0, &all, &needs);
            o.band_rows = self && m == 0 ? 1000 : 0;
            gathered got = metered(p, other, o, LIMIT, &cut, &took);
            assert_null(strstr(all.why, "pieces"));
            assert_non_null(strstr(cut.why, "pieces"));
            assert_true(needs > LIMIT);
            if (took > LIMIT) fail_msg("%lld bytes of %d", (long long)took, LIMIT);
            assert_true(want.count > 0);
            same_pairs(&got, &want, gnomon_metric_name(sparse_metrics[m]));
            assert_int_equal(cut.pairs, all.pairs);
            free(want.pairs);
            free(got.pairs);
        }
    }
    sparse_drop(&some);
    sparse_drop(&q);
}

static void no_hashing_by_l1(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1}, columns[] = {1};
    const double values[] = {1};
    const gnomon_csr rows = {1, 4, offsets, columns, values, GNOMON_F64};
    gathered got = {0};
    gnomon_join_options o = options_of(GNOMON_L1, 0, &got);
    gnomon_context *ctx = context_of(1, 0);
    o.recall = 0.9;
    o.method = GNOMON_JOIN_LSH;
    expect(ctx, gnomon_join_csr(ctx, &rows, NULL, &o, NULL), GNOMON_ERROR_UNSUPPORTED);
    gnomon_context_destroy(ctx);
}

static void broken_sides_are_refused(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1, 2}, columns[] = {1, 3}, beyond[] = {1, 4};
    const double values[] = {1, 2}, nan_values[] = {1, (double)NAN}, huge[] = {1, 0x1p501};
    const gnomon_csr good = {2, 4, offsets, columns, values, GNOMON_F64};
    const struct {
        gnomon_csr rows;
        gnomon_status want;
        const char *text;
    } broken[] = {
        {{2, 4, offsets, beyond, values, GNOMON_F64}, GNOMON_ERROR_DATA, "column index 4 in row 1"},
        {{2, 4, offsets, columns, nan_values, GNOMON_F64}, GNOMON_ERROR_NONFINITE, "row 1"},
        {{2, 4, offsets, columns, huge, GNOMON_F64}, GNOMON_ERROR_UNSUPPORTED, "row 1"},
        {{2, 5, offsets, columns, values, GNOMON_F64}, GNOMON_ERROR_SHAPE, "dimensions"}};
    gnomon_context *ctx = context_of(2, 0);
    for (int m = 0; m < METRICS; m++) {
        for (size_t b = 0; b < sizeof broken / sizeof *broken; b++) {
            gathered got = {0};
            const gnomon_join_options o = options_of(sparse_metrics[m], 0, &got);
            expect(ctx, gnomon_join_csr(ctx, &broken[b].rows, &good, &o, NULL), broken[b].want);
            assert_non_null(strstr(gnomon_last_error(ctx), broken[b].text));
            expect(ctx, gnomon_join_csr(ctx, &good, &broken[b].rows, &o, NULL), broken[b].want);
            assert_non_null(strstr(gnomon_last_error(ctx), broken[b].text));
            assert_int_equal(got.count, 0);
        }
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_those_of_every_pair),
        cmocka_unit_test(as_many_columns_as_can_be),
        cmocka_unit_test(closest_pairs_and_parts),
        cmocka_unit_test(memory_holds_for_indexes),
        cmocka_unit_test(no_hashing_by_l1),
        cmocka_unit_test(broken_sides_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
