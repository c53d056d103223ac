/* Hashing of sparse rows: values by the law of their cosine whatever few entries they have, answers
 * with the bits of exact search, recall guarantees on fresh queries, joins, and what is refused. */
#include "join_testing.h"
#include "project.h"
#include "refusal.h"
#include "search/form.h"
#include "sparse_testing.h"

#include <gnomon/lsh.h>

#include <unistd.h>

static gnomon_context *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = make_context(2, 0);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    gnomon_context_destroy(ctx);
    return 0;
}

/* ---- values ---- */

/* Rows of one to three entries, at cosines that are known: the rates at which 20,000 functions
 * agree are within five standard deviations of the law. A sparse direction would miss most of these
 * rows. */
static void law(void **state)
{
    (void)state;
    enum { ROWS = 6, COUNT = 20000 };
    const int64_t d = INT64_C(1) << 40, far = d - 1;
    const int64_t offsets[] = {0, 1, 2, 4, 6, 9, 9};
    const int64_t indices[] = {7, far, 7, far, far, 7, 7, 1000, far};
    const double values[] = {2, 3, 1, 1, -1, 5, 1, 1, 1};
    const gnomon_csr rows = {ROWS, d, offsets, indices, values, GNOMON_F64};
    const double a = 1 / sqrt(2), b = 1 / sqrt(26), c = 1 / sqrt(3);
    const struct {
        int i, j;
        double cosine;
    } pairs[] = {{0, 1, 0},         {0, 2, a},         {1, 2, a}, {0, 3, 5 * b},
                 {1, 3, -b},        {2, 3, 4 * a * b}, {0, 4, c}, {2, 4, 2 * a * c},
                 {3, 4, 4 * b * c}, {0, 5, 0} /* the zero row: as at distance 1 */};
    gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
    gnomon_hasher *h;
    f.family = GNOMON_LSH_SIMHASH;
    f.dim = d;
    f.count = COUNT;
    f.seed = 5;
    ASSERT_OK(ctx, gnomon_hasher_create(ctx, &f, &h));
    int32_t *v = malloc(sizeof *v * ROWS * COUNT);
    assert_non_null(v);
    gnomon_matrix out = {.data = v,
                         .dtype = GNOMON_I32,
                         .rows = ROWS,
                         .cols = COUNT,
                         .row_stride = COUNT,
                         .col_stride = 1};
    ASSERT_OK(ctx, gnomon_hasher_apply_csr(ctx, h, &rows, &out));
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        const double want = 1 - acos(pairs[p].cosine) / acos(-1.0);
        int same = 0;
        for (int i = 0; i < COUNT; i++)
            same += v[pairs[p].i * COUNT + i] == v[pairs[p].j * COUNT + i];
        const double got = (double)same / COUNT;
        if (fabs(got - want) > 5 * sqrt(want * (1 - want) / COUNT))
            fail_msg("rows %d and %d: %.4f, want %.4f", pairs[p].i, pairs[p].j, got, want);
    }
    free(v);
    gnomon_hasher_destroy(h);
}

/* ---- indexes ---- */

enum { N = 400, Q = 40, D = 96, K = 5 };

static gnomon_lsh *make_index(gnomon_metric metric, int64_t d, int64_t codes)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    o.metric = metric;
    o.functions.family = gnomon_metric_family(metric, 0);
    o.functions.dim = d;
    if (metric == GNOMON_L2) o.functions.width = 100;
    o.tables = 4;
    o.coarse = 3;
    o.codes = codes;
    ASSERT_OK(ctx, gnomon_lsh_create(ctx, &o, &index));
    return index;
}

/* The distance that exact search gives base row 'id' as an answer of query q; -1: none. */
static double exact_distance(const gnomon_neighbors *all, int64_t q, int64_t id)
{
    for (int64_t i = all->offsets[q]; i < all->offsets[q + 1]; i++)
        if (all->ids[i] == id) return all->distances[i];
    return -1;
}

/* Points come in two calls; what is found has the bits of exact search, ascends, and is not what
 * was removed; with every bucket probed the answers are exact search's. */
static void answers(void **state)
{
    (void)state;
    static const gnomon_metric metrics[] = {GNOMON_COSINE, GNOMON_L2};
    for (int kind = 0; kind < SPARSE_KINDS; kind++) {
        if (kind == SPARSE_SIGNED) continue; /* scales that fp32 doesn't hold */
        sparse_rows base = sparse_make((sparse_kind)kind, N, D, true, 51);
        sparse_rows asked = sparse_make((sparse_kind)kind, Q, D, true, 52);
        for (int m = 0; m < 2; m++) {
            gnomon_lsh *index = make_index(metrics[m], base.csr.cols, 0);
            const gnomon_csr first = sparse_part(&base.csr, 0, 150);
            const gnomon_csr rest = sparse_part(&base.csr, 150, N - 150);
            const int64_t gone = 17;
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            gnomon_neighbors all = {.struct_size = sizeof all}, found = all, whole = all;
            gnomon_lsh_search_params params = GNOMON_LSH_SEARCH_PARAMS_INIT;
            o.metric = metrics[m];
            o.k = N;
            ASSERT_OK(ctx, gnomon_neighbors_exact_csr(ctx, &base.csr, &asked.csr, &o, &all));
            ASSERT_OK(ctx, gnomon_lsh_add_csr(index, &first));
            ASSERT_OK(ctx, gnomon_lsh_add_csr(index, &rest));
            o.k = K;
            ASSERT_OK(ctx, gnomon_lsh_query_csr(ctx, index, &asked.csr, &o, NULL, &found, NULL));
            for (int64_t q = 0; q < Q; q++)
                for (int64_t i = q * K; i < (q + 1) * K; i++) {
                    const double want = exact_distance(&all, q, found.ids[i]);
                    assert_memory_equal(&found.distances[i], &want, sizeof want);
                    assert_true(i == q * K || found.distances[i] >= found.distances[i - 1]);
                }
            gnomon_neighbors_free(ctx, &found);
            params.probes = 1000;
            o.k = N; /* fewer candidates than k: all are compared */
            ASSERT_OK(ctx, gnomon_lsh_query_csr(ctx, index, &asked.csr, &o, &params, &whole, NULL));
            assert_memory_equal(whole.ids, all.ids, sizeof *all.ids * N * Q);
            assert_memory_equal(whole.distances, all.distances, sizeof *all.distances * N * Q);
            gnomon_neighbors_free(ctx, &whole);
            ASSERT_OK(ctx, gnomon_lsh_remove(index, &gone, 1));
            o.k = N - 1;
            ASSERT_OK(ctx, gnomon_lsh_query_csr(ctx, index, &asked.csr, &o, &params, &whole, NULL));
            for (int64_t i = 0; i < (N - 1) * Q; i++)
                assert_true(whole.ids[i] != gone);
            gnomon_neighbors_free(ctx, &whole);
            gnomon_neighbors_free(ctx, &all);
            gnomon_lsh_destroy(index);
        }
        sparse_drop(&base);
        sparse_drop(&asked);
    }
}

/* An index holds sparse points or dense ones; a file and codes are for dense ones. */
static void refusals(void **state)
{
    (void)state;
    sparse_rows r = sparse_make(SPARSE_TEXT, N, D, false, 53);
    const gnomon_matrix dense = gnomon_matrix_rowmajor(r.dense, GNOMON_F64, N, D);
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_lsh *index = make_index(GNOMON_COSINE, D, 0), *coded = make_index(GNOMON_COSINE, D, 16);
    o.metric = GNOMON_COSINE;
    o.k = 1;
    assert_int_equal(gnomon_lsh_add_csr(coded, &r.csr), GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "points is sparse; an index with codes"));
    ASSERT_OK(ctx, gnomon_lsh_add_csr(index, &r.csr));
    assert_int_equal(gnomon_lsh_add(index, &dense), GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "points is dense; the index holds sparse"));
    assert_int_equal(gnomon_lsh_query(ctx, index, &dense, &o, NULL, &found, NULL),
                     GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "queries is dense; the index holds sparse"));
    assert_int_equal(gnomon_lsh_save(ctx, index, "sparse.lsh"), GNOMON_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gnomon_last_error(ctx), "index holds sparse points"));
    assert_int_equal(access("sparse.lsh", F_OK), -1);
    ASSERT_OK(ctx, gnomon_lsh_add(coded, &dense));
    assert_int_equal(gnomon_lsh_query_csr(ctx, coded, &r.csr, &o, NULL, &found, NULL),
                     GNOMON_ERROR_UNSUPPORTED);
    double *values = (double *)r.csr.values;
    values[3] = 0x1p501;
    gnomon_lsh_info before = {.struct_size = sizeof before}, after = before;
    gnomon_lsh_describe(index, &before);
    assert_int_equal(gnomon_lsh_add_csr(index, &r.csr), GNOMON_ERROR_UNSUPPORTED);
    values[3] = (double)NAN;
    assert_int_equal(gnomon_lsh_add_csr(index, &r.csr), GNOMON_ERROR_NONFINITE);
    gnomon_lsh_describe(index, &after);
    assert_int_equal(after.points, before.points);
    assert_int_equal(after.other_bytes, before.other_bytes);
    gnomon_lsh_destroy(index);
    gnomon_lsh_destroy(coded);
    sparse_drop(&r);
}

/* ---- guarantees ---- */

enum { BASE = 1200, FRESH = 200, COLS = 4000, ENTRIES = 12 };

/* Rows near one of 150 others: entries kept but for one in six, and weights changed. few: of one to
 * three entries each, in 60 columns. */
typedef struct texts {
    int64_t offsets[BASE + FRESH + 1], indices[(BASE + FRESH) * ENTRIES];
    float values[(BASE + FRESH) * ENTRIES];
} texts;

static texts *make_texts(bool few, uint64_t seed)
{
    texts *t = malloc(sizeof *t);
    assert_non_null(t);
    int64_t at = 0;
    for (int i = 0; i < BASE + FRESH; i++) {
        uint64_t centre = 31 + 977 * (next_random(&seed) % 150);
        const int count = few ? 1 + i % 3 : ENTRIES;
        t->offsets[i] = at;
        for (int e = 0; e < count; e++) {
            const uint64_t own = next_random(&centre);
            const bool other = next_random(&seed) % 6 == 0;
            t->indices[at] = (int64_t)((other ? next_random(&seed) : own) % (few ? 60 : COLS));
            t->values[at++] = (float)(1.2 + next_uniform(&centre) + 0.2 * next_uniform(&seed));
        }
    }
    t->offsets[BASE + FRESH] = at;
    return t;
}

static gnomon_csr rows_of(const texts *t, int64_t first, int64_t rows)
{
    const int64_t begin = t->offsets[first];
    return (gnomon_csr){rows,      COLS, t->offsets + first, t->indices + begin, t->values + begin,
                        GNOMON_F32};
}

/* Of ties any answer that is as near counts, for fresh queries by indexes that are asked for even
 * where exact search is quicker. */
static void guarantees(void **state)
{
    (void)state;
    enum { SEEDS = 5 };
    for (int few = 0; few < 2; few++) {
        int64_t hits = 0, trials = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            texts *t = make_texts(few, seed);
            const gnomon_csr base = rows_of(t, 0, BASE), fresh = rows_of(t, BASE, FRESH);
            gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
            gnomon_lsh_tuning told = {.struct_size = sizeof told};
            gnomon_lsh *index;
            p.metric = GNOMON_COSINE;
            p.k = K;
            p.seed = seed;
            p.slower = 1;
            p.memory = INT64_C(1) << 30;
            ASSERT_OK(ctx, gnomon_lsh_tune_csr(ctx, &p, &base, NULL, &index, &told));
            if (index != NULL) {
                gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
                gnomon_neighbors truth = {.struct_size = sizeof truth}, found = truth;
                o.metric = GNOMON_COSINE;
                o.k = K;
                ASSERT_OK(ctx, gnomon_neighbors_exact_csr(ctx, &base, &fresh, &o, &truth));
                ASSERT_OK(ctx, gnomon_lsh_query_csr(ctx, index, &fresh, &o, NULL, &found, NULL));
                for (int64_t q = 0; q < FRESH; q++) {
                    const double last = truth.distances[(q + 1) * K - 1];
                    for (int64_t i = q * K; i < (q + 1) * K; i++)
                        hits += found.distances[i] <= last;
                }
                trials += FRESH * K;
                gnomon_neighbors_free(ctx, &truth);
                gnomon_neighbors_free(ctx, &found);
            }
            gnomon_lsh_destroy(index);
            gnomon_lsh_tuning_free(ctx, &told);
            free(t);
        }
        const double recall = (double)hits / (double)trials;
        print_message("%s: recall %.4f\n", few ? "few entries" : "texts", recall);
        assert_true(trials >= 2 * FRESH * K);
        assert_true(recall >= 0.9);
    }
}

/* What hashing costs is compared with exact search of sparse rows: nothing is tuned for few
 * queries, and of hash functions that there are none of exact search is the answer, with the
 * reason. */
static void choices(void **state)
{
    (void)state;
    texts *t = make_texts(false, 9);
    const gnomon_csr base = rows_of(t, 0, BASE);
    gnomon_lsh_guarantee p = GNOMON_LSH_GUARANTEE_INIT;
    gnomon_lsh_tuning told = {.struct_size = sizeof told};
    gnomon_lsh *index;
    p.metric = GNOMON_COSINE;
    p.uses = 100;
    ASSERT_OK(ctx, gnomon_lsh_tune_csr(ctx, &p, &base, NULL, &index, &told));
    assert_null(index);
    assert_non_null(strstr(told.reason, "expected to end before tuning"));
    gnomon_lsh_tuning_free(ctx, &told);
    told = (gnomon_lsh_tuning){.struct_size = sizeof told};
    p.metric = GNOMON_L1;
    ASSERT_OK(ctx, gnomon_lsh_tune_csr(ctx, &p, &base, NULL, &index, &told));
    assert_null(index);
    assert_non_null(strstr(told.reason, "no hash functions of these sparse points"));
    gnomon_lsh_tuning_free(ctx, &told);
    free(t);
}

/* ---- joins ---- */

static void join_rows(const gnomon_csr *p, gnomon_join_options o, gathered *got, char why[256])
{
    gnomon_join_result r = {.struct_size = sizeof r};
    *got = (gathered){0};
    o.sink = gather;
    o.user = got;
    ASSERT_OK(ctx, gnomon_join_csr(ctx, p, NULL, &o, &r));
    memcpy(why, r.why, sizeof r.why);
    if (o.method == GNOMON_JOIN_LSH) assert_int_equal(r.method, GNOMON_JOIN_LSH);
}

/* Every pair found is one of the exact join's, with its bits; the share found is the guarantee's in
 * 19 of 20 runs, and much more on average. */
static void joins(void **state)
{
    (void)state;
    enum { SEEDS = 20 };
    static const gnomon_metric metrics[] = {GNOMON_COSINE, GNOMON_L2};
    static const double thresholds[] = {0.25, 0.25, 4, 0.9};
    char why[256];
    for (int kind = 0; kind < 4; kind++) {
        const bool few = kind % 2;
        const gnomon_metric metric = metrics[kind / 2];
        texts *t = make_texts(few, 4);
        const gnomon_csr rows = rows_of(t, 0, BASE);
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        gathered want, got;
        int low = 0;
        o.metric = metric;
        o.threshold = thresholds[kind];
        join_rows(&rows, o, &want, why);
        assert_true(want.count > 1000);
        o.method = GNOMON_JOIN_LSH;
        o.recall = 0.95;
        for (o.seed = 0; o.seed < SEEDS; o.seed++) {
            join_rows(&rows, o, &got, why);
            for (int64_t g = 0, w = 0; g < got.count; g++, w++) {
                while (w < want.count && by_row(&want.pairs[w], &got.pairs[g]) < 0)
                    w++;
                assert_true(w < want.count);
                assert_memory_equal(&want.pairs[w], &got.pairs[g], sizeof *want.pairs);
            }
            low += (double)got.count < 0.95 * (double)want.count;
            free(got.pairs);
        }
        assert_true(low <= 1);
        /* so few rows are joined exactly where the cost decides, which is told */
        o.method = GNOMON_JOIN_AUTO;
        join_rows(&rows, o, &got, why);
        assert_non_null(strstr(why, "by the model"));
        assert_non_null(strstr(why, "inverted index"));
        same_pairs(&got, &want, "auto");
        free(got.pairs);
        free(want.pairs);
        free(t);
    }
}

/* A row so short that fp32 products vanish is joined exactly. */
static void short_rows(void **state)
{
    (void)state;
    const int64_t offsets[] = {0, 1, 2, 3}, indices[] = {1, 1, 2};
    const double values[] = {0x1p-200, 1, 1};
    const gnomon_csr rows = {3, 4, offsets, indices, values, GNOMON_F64};
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gathered got;
    char why[256];
    o.metric = GNOMON_COSINE;
    o.threshold = 0.1;
    o.recall = 0.9;
    join_rows(&rows, o, &got, why);
    assert_int_equal(got.count, 1);
    assert_non_null(strstr(why, "single precision does not hold the shortest row"));
    free(got.pairs);
}

/* ---- memory ---- */

typedef gnomon_status step(gnomon_context *own, const gnomon_csr *rows);

static gnomon_status index_step(gnomon_context *own, const gnomon_csr *rows)
{
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_search_options s = GNOMON_SEARCH_OPTIONS_INIT;
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_lsh *index;
    o.metric = s.metric = GNOMON_COSINE;
    o.functions.family = GNOMON_LSH_SIMHASH;
    o.functions.dim = rows->cols;
    o.tables = 2;
    o.coarse = 4;
    s.k = 2;
    gnomon_status status = gnomon_lsh_create(own, &o, &index);
    for (int call = 0; call < 2 && status == GNOMON_OK; call++) {
        status = gnomon_lsh_add_csr(index, rows);
        gnomon_lsh_info info = {.struct_size = sizeof info};
        gnomon_lsh_describe(index, &info);
        assert_int_equal(info.points, (call + (status == GNOMON_OK)) * rows->rows);
    }
    if (status == GNOMON_OK)
        status = gnomon_lsh_query_csr(own, index, rows, &s, NULL, &found, NULL);
    gnomon_neighbors_free(own, &found);
    gnomon_lsh_destroy(index);
    return status;
}

static gnomon_status join_step(gnomon_context *own, const gnomon_csr *rows)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.metric = GNOMON_COSINE;
    o.threshold = 0.2;
    o.recall = 0.9;
    o.method = GNOMON_JOIN_LSH;
    return gnomon_join_csr(own, rows, NULL, &o, NULL);
}

static gnomon_status shared_step(gnomon_context *own, const gnomon_csr *rows)
{
    double shared, heavy;
    return gnomon_sparse_shared(own, rows, rows, &shared, &heavy);
}

/* Every allocation fails in turn: the call then says MEMORY, and nothing is left behind. */
static void memory(void **state)
{
    (void)state;
    static step *const steps[] = {index_step, join_step, shared_step};
    texts *t = make_texts(false, 2);
    const gnomon_csr rows = rows_of(t, 0, 40);
    for (int n = 0; n < 3; n++) {
        gnomon_status status = GNOMON_ERROR_MEMORY;
        for (long at = 0; status != GNOMON_OK; at++) {
            refusal r = {.at = -1};
            const gnomon_allocator counted = {&r, refusing, releasing};
            gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *own;
            o.device = "cpu";
            o.threads = 1;
            o.allocator = &counted;
            ASSERT_OK(NULL, gnomon_context_create(&o, &own));
            r.at = r.calls + at;
            status = steps[n](own, &rows);
            if (status != GNOMON_OK) assert_int_equal(status, GNOMON_ERROR_MEMORY);
            assert_true(at < 2000);
            gnomon_context_destroy(own);
            assert_int_equal(r.out, 0);
        }
    }
    free(t);
}

/* The estimate by columns is the mean over all pairs, without the columns that more than one row of
 * 128 has, 32 of them at most. */
static void shared_columns(void **state)
{
    (void)state;
    enum { P = 300, COUNTED = 40 };
    int64_t offsets[P + 1] = {0}, *indices = malloc(sizeof *indices * P * (COUNTED + 1));
    float *values = malloc(sizeof *values * P * (COUNTED + 1));
    assert_true(indices != NULL && values != NULL);
    int64_t count = 0;
    /* column c in the rows that c + 2 divides, and one that a single row has */
    for (int64_t i = 0; i < P; i++) {
        for (int64_t c = 0; c < COUNTED; c++)
            if (i % (c + 2) == 0) {
                indices[count] = c * 1000003;
                values[count++] = 1;
            }
        if (i == 9) {
            indices[count] = 17;
            values[count++] = 1;
        }
        offsets[i + 1] = count;
    }
    const gnomon_csr rows = {P, INT64_C(1) << 40, offsets, indices, values, GNOMON_F32};
    double want = 1.0 / P / P, want_heavy = 0, shared, heavy;
    for (int64_t c = 0; c < COUNTED; c++) {
        const double share = (double)((P + c + 1) / (c + 2)) / P;
        if (c < 32)
            want_heavy += share;
        else /* the rarest eight of the forty */
            want += share * share;
    }
    ASSERT_OK(ctx, gnomon_sparse_shared(ctx, &rows, &rows, &shared, &heavy));
    assert_true(fabs(shared - want) < 1e-12 && fabs(heavy - want_heavy) < 1e-12);
    free(indices);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(law),        cmocka_unit_test(answers), cmocka_unit_test(refusals),
        cmocka_unit_test(guarantees), cmocka_unit_test(choices), cmocka_unit_test(joins),
        cmocka_unit_test(short_rows), cmocka_unit_test(memory),  cmocka_unit_test(shared_columns),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
