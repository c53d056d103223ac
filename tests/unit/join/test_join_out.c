/* What comes of a join beside its pairs: counts, the closest, parts, rows read in pieces, clusters;
 * what is refused, and that nothing is lost when memory is out. */
#include "join_testing.h"
#include "refusal.h"

enum { N = 700, D = 64 };

typedef struct data {
    float *values; /* N x D, in clusters near a subspace */
    gnomon_matrix m;
    gathered all; /* pairs within the threshold */
    double threshold;
} data;

static void fill(data *x, gnomon_context *ctx)
{
    uint64_t random = 5;
    x->values = malloc(sizeof *x->values * N * D);
    for (int i = 0; i < N; i++) {
        uint64_t s = (uint64_t)(i % 150);
        double shape[3];
        for (int k = 0; k < 3; k++)
            shape[k] = draw(&s);
        for (int j = 0; j < D; j++) {
            double sum = draw(&random) * 0.01;
            for (int k = 0; k < 3; k++)
                sum += shape[k] * cos((k + 1) * (j + 1.0));
            x->values[i * D + j] = (float)sum;
        }
    }
    x->m = gnomon_matrix_rowmajor(x->values, GNOMON_F32, N, D);
    x->threshold = 0.3;
    x->all = (gathered){0};
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.threshold = x->threshold;
    o.sink = gather;
    o.user = &x->all;
    expect(ctx, gnomon_join(ctx, &x->m, NULL, &o, NULL), GNOMON_OK);
    assert_in_range(x->all.count, 100, 100000);
}

static void drop(data *x)
{
    free(x->values);
    free(x->all.pairs);
}

static void counts(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    data x;
    fill(&x, ctx);
    int64_t p[N] = {0}, q[N] = {0}, want[N] = {0};
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {.struct_size = sizeof result};
    o.threshold = x.threshold;
    o.p_counts = p;
    expect(ctx, gnomon_join(ctx, &x.m, NULL, &o, &result), GNOMON_OK);
    assert_int_equal(result.pairs, x.all.count);
    for (int64_t at = 0; at < x.all.count; at++) {
        want[x.all.pairs[at].i]++;
        want[x.all.pairs[at].j]++;
    }
    assert_memory_equal(p, want, sizeof p);
    /* with itself as another: both orders, and each point with itself */
    memset(p, 0, sizeof p);
    o.q_counts = q;
    expect(ctx, gnomon_join(ctx, &x.m, &x.m, &o, &result), GNOMON_OK);
    assert_int_equal(result.pairs, 2 * x.all.count + N);
    for (int i = 0; i < N; i++)
        assert_true(p[i] == want[i] + 1 && q[i] == want[i] + 1);
    drop(&x);
    gnomon_context_destroy(ctx);
}

static int by_distance_then_row(const void *x, const void *y)
{
    const gnomon_pair *a = x, *b = y;
    if (a->distance != b->distance) return a->distance < b->distance ? -1 : 1;
    return by_row(x, y);
}

static void closest(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    data x;
    fill(&x, ctx);
    const int64_t tops[] = {1, 7, 100, x.all.count, x.all.count + 50};
    qsort(x.all.pairs, (size_t)x.all.count, sizeof *x.all.pairs, by_distance_then_row);
    for (int t = 0; t < 10; t++) {
        gathered got = {0};
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        o.threshold = t < 5 ? x.threshold : (double)INFINITY;
        o.top = tops[t % 5];
        o.sink = gather;
        o.user = &got;
        if (t == 9) o.top = x.all.count;
        expect(ctx, gnomon_join(ctx, &x.m, NULL, &o, NULL), GNOMON_OK);
        gathered want = x.all;
        if (o.top < want.count) want.count = o.top;
        same_pairs(&got, &want, "closest");
        assert_int_equal(got.batches, 1);
        free(got.pairs);
    }
    drop(&x);
    gnomon_context_destroy(ctx);
}

/* Ended early, and gone on with. */
static void parts(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 60000);
    data x;
    fill(&x, ctx);
    gathered got = {0};
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {.struct_size = sizeof result};
    o.threshold = x.threshold;
    o.sink = gather;
    o.user = &got;
    o.max_pairs = 61;
    for (int turn = 0; turn < 1000; turn++) {
        const int64_t before = got.count;
        got.rows_done = 0;
        expect(ctx, gnomon_join(ctx, &x.m, NULL, &o, &result), GNOMON_OK);
        assert_int_equal(result.pairs, got.count - before);
        if (result.complete) break;
        assert_int_equal(result.pairs, 61);
        assert_true(result.rows_done > o.first_row);
        /* those of the row that is not complete come again */
        while (got.count > 0 && got.pairs[got.count - 1].i >= result.rows_done)
            got.count--;
        o.first_row = result.rows_done;
    }
    same_pairs(&got, &x.all, "in parts");
    /* by the sink */
    got.count = got.rows_done = got.batches = 0;
    got.stop_after = 1;
    o = (gnomon_join_options)GNOMON_JOIN_OPTIONS_INIT;
    o.threshold = x.threshold;
    o.sink = gather;
    o.user = &got;
    expect(ctx, gnomon_join(ctx, &x.m, NULL, &o, &result), GNOMON_ERROR_CANCELLED);
    assert_int_equal(result.complete, 0);
    assert_int_equal(result.pairs, got.count);
    free(got.pairs);
    drop(&x);
    gnomon_context_destroy(ctx);
}

static gnomon_status read_rows(void *user, int64_t first, const gnomon_matrix *to)
{
    const float *values = user;
    assert_true(first >= 0 && first + to->rows <= N && to->col_stride == 1);
    for (int64_t i = 0; i < to->rows; i++)
        memcpy((float *)to->data + i * to->row_stride, values + (first + i) * D,
               D * sizeof *values);
    return GNOMON_OK;
}

static void streams(void **state)
{
    (void)state;
    const int64_t limits[] = {0, 400000, 100000, 1};
    for (int l = 0; l < 4; l++) {
        gnomon_context *ctx = context_of(1 + l % 2, limits[l]);
        data x;
        fill(&x, ctx);
        gathered got = {0};
        gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
        const gnomon_join_points points = {x.values, N, D, GNOMON_F32, read_rows};
        o.threshold = x.threshold;
        o.sink = gather;
        o.user = &got;
        expect(ctx, gnomon_join_stream(ctx, &points, NULL, &o, NULL), GNOMON_OK);
        same_pairs(&got, &x.all, "read");
        got.count = got.rows_done = 0;
        expect(ctx, gnomon_join_stream(ctx, &points, &points, &o, NULL), GNOMON_OK);
        assert_int_equal(got.count, 2 * x.all.count + N);
        free(got.pairs);
        drop(&x);
        gnomon_context_destroy(ctx);
    }
}

static void collected(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    data x;
    fill(&x, ctx);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.threshold = x.threshold;
    for (int both = 0; both < 2; both++) {
        gnomon_pairs out = {.struct_size = sizeof out};
        expect(ctx, gnomon_join_collect(ctx, &x.m, NULL, &o, both, &out, NULL), GNOMON_OK);
        assert_int_equal(out.count, (both + 1) * x.all.count);
        int64_t at = 0;
        for (int64_t i = 0; i < out.rows; i++) {
            for (int64_t e = out.offsets[i]; e < out.offsets[i + 1]; e++) {
                if (e > out.offsets[i]) assert_true(out.columns[e - 1] < out.columns[e]);
                if (out.columns[e] < i) continue;
                assert_true(x.all.pairs[at].i == i && x.all.pairs[at].j == out.columns[e] &&
                            x.all.pairs[at].distance == out.distances[e]);
                at++;
            }
        }
        assert_int_equal(at, x.all.count);
        gnomon_pairs_free(ctx, &out);
    }
    drop(&x);
    gnomon_context_destroy(ctx);
}

/* More pairs than a task or a chunk takes; rows of many pairs and of none follow each other. Each
 * pair once, or twice, which several threads place. */
static void collected_in_chunks(void **state)
{
    (void)state;
    enum { MANY = 3000, NEAR = 600 };
    float *at = malloc(MANY * sizeof *at);
    assert_non_null(at);
    for (int i = 0; i < MANY; i++)
        at[i] = i % 7 == 0 || i > MANY - 30 ? 1e6f * (float)(i + 2) : (float)i;
    const gnomon_matrix p = gnomon_matrix_rowmajor(at, GNOMON_F32, MANY, 1);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    o.threshold = NEAR;
    for (int run = 0; run < 6; run++) {
        const int both = run % 2, threads = run < 2 ? 1 : run < 4 ? 3 : 16;
        gnomon_context *ctx = context_of(threads, 0);
        gnomon_pairs out = {.struct_size = sizeof out};
        expect(ctx, gnomon_join_collect(ctx, &p, NULL, &o, both, &out, NULL), GNOMON_OK);
        assert_true(out.count > 1 << 20);
        int64_t next = 0;
        for (int64_t i = 0; i < MANY; i++) {
            assert_int_equal(out.offsets[i], next);
            if (at[i] >= 1e6f) continue;
            for (int64_t j = !both      ? i + 1
                             : i < NEAR ? 0
                                        : i - NEAR;
                 j < MANY && j <= i + NEAR; j++) {
                if (j == i || at[j] >= 1e6f) continue;
                assert_int_equal(out.columns[next], j);
                assert_true(out.distances[next] == (double)(j < i ? i - j : j - i));
                next++;
            }
        }
        assert_int_equal(out.offsets[MANY], next);
        assert_int_equal(out.count, next);
        gnomon_pairs_free(ctx, &out);
        gnomon_context_destroy(ctx);
    }
    free(at);
}

static void clusters(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    gnomon_clusters *c;
    expect(ctx, gnomon_clusters_create(ctx, 9, &c), GNOMON_OK);
    const int64_t pairs[][2] = {{7, 3}, {3, 5}, {1, 8}, {5, 7}, {3, 0}};
    for (int at = 0; at < 5; at++)
        expect(ctx, gnomon_clusters_add(c, pairs[at][0], pairs[at][1]), GNOMON_OK);
    expect(ctx, gnomon_clusters_add(c, 9, 0), GNOMON_ERROR_ARGUMENT);
    int64_t labels[9], representatives[9];
    assert_int_equal(gnomon_clusters_label(c, labels, representatives), 5);
    const int64_t want[] = {0, 1, 2, 0, 3, 0, 4, 0, 1};
    assert_memory_equal(labels, want, sizeof want);
    assert_int_equal(representatives[0], 3); /* in three pairs */
    assert_int_equal(representatives[1], 1); /* the first of two */
    assert_int_equal(representatives[4], 6);
    gnomon_clusters_destroy(c);
    gnomon_clusters_destroy(NULL);
    gnomon_context_destroy(ctx);
}

static void refusals(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    float values[12] = {0}, bad[12] = {0};
    const gnomon_matrix p = gnomon_matrix_rowmajor(values, GNOMON_F32, 4, 3);
    const gnomon_matrix q = gnomon_matrix_rowmajor(bad, GNOMON_F32, 4, 3);
    const gnomon_matrix other = gnomon_matrix_rowmajor(values, GNOMON_F32, 3, 4);
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_join_result result = {.struct_size = sizeof result};
    expect(ctx, gnomon_join(ctx, &p, NULL, NULL, NULL), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_join(ctx, &p, &other, &o, NULL), GNOMON_ERROR_SHAPE);
    bad[7] = (float)NAN;
    expect(ctx, gnomon_join(ctx, &p, &q, &o, NULL), GNOMON_ERROR_NONFINITE);
    assert_non_null(strstr(gnomon_last_error(ctx), "q has NaN or infinity in row 2, column 1"));
    const double thresholds[] = {-1, (double)NAN, (double)INFINITY};
    for (int t = 0; t < 3; t++) {
        o.threshold = thresholds[t];
        expect(ctx, gnomon_join(ctx, &p, NULL, &o, NULL), GNOMON_ERROR_ARGUMENT);
    }
    o.threshold = 0;
    o.top = 2;
    o.max_pairs = 1;
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, NULL), GNOMON_ERROR_ARGUMENT);
    o.top = o.max_pairs = 0;
    o.first_row = 5;
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, NULL), GNOMON_ERROR_ARGUMENT);
    o.first_row = 0;
    o.metric = GNOMON_JACCARD;
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, NULL), GNOMON_ERROR_UNSUPPORTED);
    o.metric = GNOMON_HAMMING;
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, NULL), GNOMON_ERROR_DTYPE);
    /* four equal points, and sides without any */
    o.metric = GNOMON_L2;
    expect(ctx, gnomon_join(ctx, &p, NULL, &o, &result), GNOMON_OK);
    assert_int_equal(result.pairs, 6);
    gnomon_matrix none = p;
    none.rows = 0;
    expect(ctx, gnomon_join(ctx, &none, &p, &o, &result), GNOMON_OK);
    assert_true(result.pairs == 0 && result.complete == 1);
    expect(ctx, gnomon_join(ctx, &p, &none, &o, &result), GNOMON_OK);
    assert_true(result.pairs == 0 && result.complete == 1 && result.rows_done == 4);
    expect(ctx, gnomon_join(ctx, &none, NULL, &o, &result), GNOMON_OK);
    assert_int_equal(result.complete, 1);
    gnomon_context_destroy(ctx);
}

/* ---- memory ---- */

static gnomon_status one_of(gnomon_context *ctx, const data *x, int c)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    gnomon_pairs out = {.struct_size = sizeof out};
    gnomon_status status;
    o.threshold = x->threshold;
    if (c == 0) {
        status = gnomon_join_collect(ctx, &x->m, NULL, &o, 1, &out, NULL);
        gnomon_pairs_free(ctx, &out);
        return status;
    }
    if (c == 1) {
        gnomon_matrix few = x->m;
        few.rows = 30;
        o.top = 5;
        return gnomon_join(ctx, &few, &few, &o, NULL);
    }
    int64_t offsets[] = {0, 2, 4, 4}, indices[] = {0, 4, 4, 0};
    float values[] = {1, 1, 1, 1};
    const gnomon_csr csr = {3, 5, offsets, indices, values, GNOMON_F32};
    o.metric = GNOMON_JACCARD;
    o.threshold = c == 2 ? 0.5 : 1;
    status = gnomon_join_collect_csr(ctx, &csr, NULL, &o, 0, &out, NULL);
    if (status == GNOMON_OK) assert_int_equal(out.count, c == 2 ? 1 : 3);
    gnomon_pairs_free(ctx, &out);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    gnomon_context *plain = context_of(1, 0);
    data x;
    fill(&x, plain);
    gnomon_context_destroy(plain);
    for (int c = 0; c < 4; c++) {
        for (int64_t at = 0;; at++) {
            refusal count = {.at = -1};
            const gnomon_allocator allocator = {&count, refusing, releasing};
            gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
            gnomon_context *ctx;
            options.device = "cpu";
            options.threads = 1;
            options.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
            count.calls = 0;
            count.at = at;
            const int64_t live = count.out;
            const gnomon_status status = one_of(ctx, &x, c);
            const bool done = count.calls <= at;
            expect(ctx, status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
            assert_int_equal(count.out, live);
            gnomon_context_destroy(ctx);
            if (done) break;
            assert_true(at < 200);
        }
    }
    drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(closest),
        cmocka_unit_test(parts),
        cmocka_unit_test(streams),
        cmocka_unit_test(collected),
        cmocka_unit_test(collected_in_chunks),
        cmocka_unit_test(clusters),
        cmocka_unit_test(refusals),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
