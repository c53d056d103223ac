/* Every answer and pair of sparse rows against every pair of the same rows in fp64, in either form
 * that the cost model may choose: no mismatch, ties included. How many distances were compared is
 * printed. */
#include "join_testing.h"
#include "sparse_testing.h"

static int64_t compared, as_sparse, as_dense;

static void count_form(const char *why)
{
    assert_non_null(strstr(why, "by the model"));
    if (strncmp(why, "dense", 5) == 0 || strstr(why, "dense copies:") != NULL)
        as_dense++;
    else
        as_sparse++;
}

static answer *all_answers(gnomon_metric metric, const sparse_rows *q, const sparse_rows *b)
{
    const int64_t n = q->csr.rows, m = b->csr.rows;
    answer *all = malloc((size_t)(n * m) * sizeof *all);
    answer_sign = sparse_larger(metric) ? -1 : 1;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++)
            all[i * m + j] =
                (answer){distance_of(metric, q->dense + i * q->d, b->dense + j * b->d, q->d), j};
        qsort(all + i * m, (size_t)m, sizeof *all, by_distance);
    }
    return all;
}

/* The answers to query i that options allow, in order. */
static void compare_query(const gnomon_neighbors *found, const gnomon_search_options *o, int64_t i,
                          const answer *all, int64_t base)
{
    int64_t at = found->offsets[i];
    for (int64_t n = 0; n < base; n++) {
        const answer *want = &all[n];
        if (o->exclude >= 0 && want->id == o->exclude + i) continue;
        if (o->filter != NULL && (o->filter[want->id / 8] >> want->id % 8 & 1) == 0) continue;
        if (o->k > 0 ? at == found->offsets[i] + o->k
                     : !sparse_within(o->metric, want->distance, o->radius))
            break;
        assert_true(at < found->offsets[i + 1]);
        if (found->ids[at] != want->id || found->distances[at] != want->distance)
            fail_msg("%s: query %lld has (%lld, %.17g), want (%lld, %.17g)",
                     gnomon_metric_name(o->metric), (long long)i, (long long)found->ids[at],
                     found->distances[at], (long long)want->id, want->distance);
        at++;
    }
    compared += base;
    assert_int_equal(at, found->offsets[i + 1]);
}

/* mixed: 0: both sides sparse, 1: dense queries, 2: a dense base. */
static void search(gnomon_context *ctx, const sparse_rows *base, const sparse_rows *queries,
                   const gnomon_search_options *o, int mixed, const answer *all)
{
    const gnomon_matrix b =
        gnomon_matrix_rowmajor(base->dense, GNOMON_F64, base->csr.rows, base->d);
    const gnomon_matrix q =
        gnomon_matrix_rowmajor(queries->dense, GNOMON_F64, queries->csr.rows, queries->d);
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_search *s;
    expect(ctx,
           mixed == 1 ? gnomon_search_create(ctx, &q, o, &s)
                      : gnomon_search_create_csr(ctx, &queries->csr, o, &s),
           GNOMON_OK);
    /* in two parts, each of which has a form of its own */
    for (int64_t from = 0, rows; from < base->csr.rows; from += rows) {
        rows = from == 0 ? base->csr.rows / 3 : base->csr.rows - from;
        const gnomon_csr part = sparse_part(&base->csr, from, rows);
        gnomon_matrix dense = b;
        dense.data = base->dense + from * base->d;
        dense.rows = rows;
        expect(ctx, mixed == 2 ? gnomon_search_add(s, &dense) : gnomon_search_add_csr(s, &part),
               GNOMON_OK);
    }
    expect(ctx, gnomon_search_finish(s, &found), GNOMON_OK);
    count_form(found.why);
    for (int64_t i = 0; i < found.queries; i++)
        compare_query(&found, o, i, all + i * base->csr.rows, base->csr.rows);
    gnomon_neighbors_free(ctx, &found);
    gnomon_search_destroy(s);
}

static void searches(gnomon_context *ctx, gnomon_metric metric, const sparse_rows *base,
                     const sparse_rows *queries)
{
    answer *all = all_answers(metric, queries, base);
    uint8_t filter[256];
    for (int i = 0; i < 256; i++)
        filter[i] = (uint8_t)(i * 73 + 5);
    gnomon_search_options k = GNOMON_SEARCH_OPTIONS_INIT;
    k.metric = metric;
    k.k = 7;
    gnomon_search_options radius = k;
    radius.k = 0;
    radius.radius = all[base->csr.rows + 25].distance;
    for (int mixed = 0; mixed < 3; mixed++) {
        for (int how = 0; how < 3; how++) {
            gnomon_search_options *o[] = {&k, &radius};
            for (int n = 0; n < 2; n++) {
                o[n]->exclude = how == 1 ? 0 : -1;
                o[n]->filter = how == 2 ? filter : NULL;
                o[n]->filter_bits = how == 2 ? (int64_t)sizeof filter * 8 : 0;
                search(ctx, base, queries, o[n], mixed, all);
            }
        }
    }
    free(all);
}

static void joins(gnomon_context *ctx, gnomon_metric metric, const sparse_rows *p,
                  const sparse_rows *q, double threshold)
{
    const gnomon_matrix p_dense = gnomon_matrix_rowmajor(p->dense, GNOMON_F64, p->csr.rows, p->d);
    const gnomon_matrix q_dense = gnomon_matrix_rowmajor(q->dense, GNOMON_F64, q->csr.rows, q->d);
    const gnomon_join_side sides[] = {{&p_dense, NULL}, {NULL, &p->csr}};
    const gnomon_join_side others[] = {{&q_dense, NULL}, {NULL, &q->csr}};
    for (int self = 0; self < 2; self++) {
        const sparse_rows *other = self ? p : q;
        gathered want = {0};
        for (int64_t i = 0; i < p->csr.rows; i++)
            for (int64_t j = self ? i + 1 : 0; j < other->csr.rows; j++) {
                const gnomon_pair pair = {
                    i, j, distance_of(metric, p->dense + i * p->d, other->dense + j * p->d, p->d)};
                const gnomon_join_batch batch = {&pair, 1, i};
                if (sparse_within(metric, pair.distance, threshold)) gather(&want, &batch);
                compared++;
            }
        for (int mixed = self ? 3 : 1; mixed < 4; mixed++) {
            gathered got = {0};
            gnomon_join_result r = {.struct_size = sizeof r};
            gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
            o.metric = metric;
            o.threshold = threshold;
            o.sink = gather;
            o.user = &got;
            expect(ctx,
                   gnomon_join_sides(ctx, &sides[mixed & 1], self ? NULL : &others[mixed >> 1], &o,
                                     &r),
                   GNOMON_OK);
            same_pairs(&got, &want, gnomon_metric_name(metric));
            count_form(r.why);
            free(got.pairs);
        }
        free(want.pairs);
    }
}

static void no_mismatch(void **state)
{
    (void)state;
    /* few rows and many columns for one form, many rows and few columns for the other */
    const struct {
        int64_t base, queries, d;
    } sizes[] = {{200, 30, 300}, {700, 120, 24}};
    for (int kind = 0; kind < SPARSE_KINDS; kind++) {
        for (int size = 0; size < 2; size++) {
            gnomon_context *ctx = context_of(1 + size, 0);
            sparse_rows base =
                sparse_make((sparse_kind)kind, sizes[size].base, sizes[size].d, false, 51);
            sparse_rows queries =
                sparse_make((sparse_kind)kind, sizes[size].queries, sizes[size].d, false, 52);
            for (int m = 0; m < SPARSE_METRICS; m++) {
                searches(ctx, sparse_metrics[m], &base, &queries);
                const double t = distance_of(sparse_metrics[m], queries.dense + 9 * base.d,
                                             base.dense + 10 * base.d, base.d);
                joins(ctx, sparse_metrics[m], &queries, &base, t);
            }
            sparse_drop(&base);
            sparse_drop(&queries);
            gnomon_context_destroy(ctx);
        }
    }
    print_message("%lld distances compared, %lld calls through an index, %lld as dense rows\n",
                  (long long)compared, (long long)as_sparse, (long long)as_dense);
    assert_true(as_sparse > 100 && as_dense > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_mismatch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
