/* Searches by codes: exact ones against exact search, others against the recall they promise. */
#include "rabitq_testing.h"

#include "meter.h"
#include "refusal.h"

static gnomon_neighbors exact(gnomon_context *ctx, const gnomon_matrix *base,
                              const gnomon_matrix *queries, const gnomon_search_options *o)
{
    gnomon_neighbors found = {.struct_size = sizeof found};
    expect(ctx, gnomon_neighbors_exact(ctx, base, queries, o, &found), GNOMON_OK);
    return found;
}

/* The answers are those of exact search. */
static void same_as_exact(gnomon_context *ctx, const gnomon_rabitq *index,
                          const gnomon_matrix *base, const gnomon_matrix *queries,
                          const gnomon_search_options *o, const char *what)
{
    gnomon_neighbors want = exact(ctx, base, queries, o);
    gnomon_neighbors got = search(ctx, index, queries, o, 1, 0);
    same_answers(&got, &want, what);
    gnomon_neighbors_free(ctx, &got);
    gnomon_neighbors_free(ctx, &want);
}

static void exact_answers(void **state)
{
    (void)state;
    static const int64_t dims[] = {1, 5, 33, 128, 300};
    gnomon_context *ctx = context_of(2, 0);
    for (int like = 0; like < KINDS; like++) {
        for (int d = 0; d < 5; d++) {
            for (int64_t bits = 1; bits <= 8; bits++) {
                if ((like + d + bits) % 5 != 0) continue;
                const gnomon_metric metric = (like + d) % 2 == 0 ? GNOMON_L2 : GNOMON_COSINE;
                const gnomon_dtype dtype = d % 2 == 0 ? GNOMON_F32 : GNOMON_F64;
                const int64_t n = d == 2 ? 1300 : 211;
                char what[100];
                snprintf(what, sizeof what, "%s, %d dimensions, %d bits, %s", kind_names[like],
                         (int)dims[d], (int)bits, gnomon_metric_name(metric));
                const gnomon_matrix base = make_points((kind)like, dtype, n, dims[d], 1);
                const gnomon_matrix queries = make_points((kind)like, dtype, 37, dims[d], 2);
                gnomon_rabitq *index = index_of(ctx, metric, bits, 3, &base);
                const int64_t ks[] = {1, 10, n};
                for (int i = 0; i < 3; i++) {
                    const gnomon_search_options o = wish(metric, ks[i]);
                    gnomon_neighbors want = exact(ctx, &base, &queries, &o);
                    gnomon_neighbors got = search(ctx, index, &queries, &o, 1, 0);
                    same_answers(&got, &want, what);
                    gnomon_neighbors_free(ctx, &got);
                    got = search(ctx, index, &queries, &o, 0.5, n); /* all of them */
                    same_answers(&got, &want, what);
                    gnomon_neighbors_free(ctx, &got);
                    gnomon_neighbors_free(ctx, &want);
                }
                gnomon_rabitq_destroy(index);
                free(base.data);
                free(queries.data);
            }
        }
    }
    gnomon_context_destroy(ctx);
}

/* Queries unlike the points: far away, and huge. */
static void far_queries(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix base = make_points(BELL, GNOMON_F64, 500, 40, 1);
    const gnomon_matrix queries = make_points(BELL, GNOMON_F64, 8, 40, 2);
    static const double by[] = {1e-300, 1e-12, 1e6, 1e18, 1e40, 1e100, 1e140, 0};
    for (int64_t q = 0; q < 8; q++)
        for (int64_t j = 0; j < 40; j++)
            ((double *)queries.data)[q * 40 + j] *= by[q];
    for (int64_t bits = 1; bits <= 8; bits += 3) {
        const gnomon_search_options o = wish(GNOMON_L2, 7);
        gnomon_rabitq *index = index_of(ctx, GNOMON_L2, bits, 3, &base);
        same_as_exact(ctx, index, &base, &queries, &o, "far queries");
        gnomon_rabitq_destroy(index);
    }
    free(base.data);
    free(queries.data);
    gnomon_context_destroy(ctx);
}

static void filters_and_exclusion(void **state)
{
    (void)state;
    enum { N = 900 };
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix base = make_points(CLUSTERS, GNOMON_F32, N, 50, 1);
    uint8_t some[(N + 7) / 8] = {0};
    uint64_t state_bits = 5;
    for (int i = 0; i < N; i++)
        if (draw_bits(&state_bits) % 20 == 0) some[i / 8] |= (uint8_t)(1 << (i % 8));
    for (int64_t bits = 1; bits <= 4; bits++) {
        gnomon_rabitq *index = index_of(ctx, GNOMON_L2, bits, 0, &base);
        for (int way = 0; way < 3; way++) {
            gnomon_search_options o = wish(GNOMON_L2, 9);
            gnomon_matrix queries = base;
            queries.rows = 100;
            queries.data = (float *)base.data + 50 * 50;
            if (way != 1) o.exclude = 50;
            if (way >= 1) {
                o.filter = some;
                o.filter_bits = N - 3;
            }
            same_as_exact(ctx, index, &base, &queries, &o, "a filter");
        }
        gnomon_search_options o = wish(GNOMON_L2, N);
        gnomon_neighbors found = {.struct_size = sizeof found};
        o.exclude = 0;
        expect(ctx, gnomon_rabitq_query(ctx, index, &base, &o, NULL, &found),
               GNOMON_ERROR_ARGUMENT);
        gnomon_rabitq_destroy(index);
    }
    free(base.data);
    gnomon_context_destroy(ctx);
}

static double share(const gnomon_neighbors *found, const gnomon_neighbors *all)
{
    int64_t hits = 0;
    for (int64_t q = 0; q < found->queries; q++)
        for (int64_t i = 0; i < found->k; i++)
            for (int64_t j = 0; j < found->k; j++)
                hits += found->ids[q * found->k + i] == all->ids[q * all->k + j];
    return (double)hits / (double)(found->queries * found->k);
}

/* Over several rotations the recall is not below what was asked for. */
static void recall_is_kept(void **state)
{
    (void)state;
    static const kind some[] = {BELL, CLUSTERS, TAILS, COLUMN, EQUAL, PAIRS, ZEROS};
    static const double recalls[] = {0.5, 0.8, 0.9, 0.99};
    gnomon_context *ctx = context_of(2, 0);
    for (int like = 0; like < 7; like++) {
        const gnomon_matrix base = make_points(some[like], GNOMON_F32, 3000, 96, 1);
        const gnomon_matrix queries = make_points(some[like], GNOMON_F32, 40, 96, 2);
        const gnomon_search_options o = wish(GNOMON_L2, 10);
        gnomon_neighbors want = exact(ctx, &base, &queries, &o);
        for (int r = 0; r < 4; r++) {
            for (int64_t bits = 1; bits <= 5; bits += 2) {
                double mean = 0;
                int64_t verified = 0;
                for (uint64_t seed = 0; seed < 5; seed++) {
                    gnomon_rabitq *index = index_of(ctx, GNOMON_L2, bits, seed, &base);
                    gnomon_neighbors got = search(ctx, index, &queries, &o, recalls[r], 0);
                    mean += share(&got, &want) / 5;
                    verified += got.verified / 5;
                    gnomon_neighbors_free(ctx, &got);
                    gnomon_rabitq_destroy(index);
                }
                if (mean < recalls[r])
                    fail_msg("%s, %d bits: recall %g where %g is asked for", kind_names[some[like]],
                             (int)bits, mean, recalls[r]);
                /* and the bound does exclude */
                if (some[like] == CLUSTERS && (double)verified / 40 > 3000 * 0.5)
                    fail_msg("clusters, %d bits, recall %g: %g points verified", (int)bits,
                             recalls[r], (double)verified / 40);
            }
        }
        gnomon_neighbors_free(ctx, &want);
        free(base.data);
        free(queries.data);
    }
    gnomon_context_destroy(ctx);
}

/* Estimates alone: more bits find more, eight of them nearly all. */
static void codes_alone(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix base = make_points(BELL, GNOMON_F32, 2000, 64, 1);
    const gnomon_matrix queries = make_points(BELL, GNOMON_F32, 50, 64, 2);
    const gnomon_search_options o = wish(GNOMON_L2, 10);
    gnomon_neighbors want = exact(ctx, &base, &queries, &o);
    double before = 0;
    for (int64_t bits = 1; bits <= 8; bits++) {
        gnomon_rabitq_options options = GNOMON_RABITQ_OPTIONS_INIT;
        gnomon_rabitq_params p = GNOMON_RABITQ_PARAMS_INIT;
        gnomon_rabitq_info info = {.struct_size = sizeof info};
        gnomon_rabitq *index;
        options.bits = bits;
        options.codes_only = 1;
        expect(ctx, gnomon_rabitq_create(ctx, &options, &base, &index), GNOMON_OK);
        gnomon_rabitq_describe(index, &info);
        assert_int_equal(info.points, 2000);
        assert_int_equal(info.dim, 64);
        assert_int_equal(info.options.bits, bits);
        assert_int_equal(info.code_bytes, 2000 * (8 * bits + (bits == 1 ? 8 : 12)));
        gnomon_neighbors got = {.struct_size = sizeof got};
        expect(ctx, gnomon_rabitq_query(ctx, index, &queries, &o, &p, &got), GNOMON_ERROR_ARGUMENT);
        expect(ctx, gnomon_rabitq_query(ctx, index, &queries, &o, NULL, &got), GNOMON_OK);
        const double now = share(&got, &want);
        assert_int_equal(got.verified, 0);
        if (now < before - 0.01) fail_msg("%d bits: recall %g after %g", (int)bits, now, before);
        before = now;
        gnomon_neighbors_free(ctx, &got);
        gnomon_rabitq_destroy(index);
    }
    if (before < 0.97) fail_msg("8 bits: recall %g", before);
    gnomon_neighbors_free(ctx, &want);
    free(base.data);
    free(queries.data);
    gnomon_context_destroy(ctx);
}

static void refusals(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    float data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    gnomon_matrix base = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, 3);
    gnomon_rabitq_options o = GNOMON_RABITQ_OPTIONS_INIT;
    gnomon_rabitq *index = NULL;
    static const int64_t bad[] = {0, 9, -1};
    for (int i = 0; i < 3; i++) {
        o.bits = bad[i];
        expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_ERROR_ARGUMENT);
        assert_null(index);
        assert_string_equal(gnomon_last_error_argument(ctx), "options.bits");
    }
    o.bits = 3;
    o.metric = GNOMON_IP;
    expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_ERROR_ARGUMENT);
    o.metric = GNOMON_L2;
    o.codes_only = 2;
    expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_ERROR_ARGUMENT);
    o.codes_only = 0;
    data[7] = NAN;
    expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_ERROR_NONFINITE);
    int64_t row = 0, col = 0;
    gnomon_last_error_place(ctx, &row, &col);
    assert_int_equal(row, 2);
    assert_int_equal(col, 1);
    data[7] = 8;
    base.rows = 0;
    expect(ctx, gnomon_rabitq_create(ctx, &o, &base, &index), GNOMON_ERROR_ARGUMENT);
    base.rows = 4;
    expect(ctx, gnomon_rabitq_create(ctx, NULL, &base, &index), GNOMON_OK);
    gnomon_neighbors found = {.struct_size = sizeof found};
    gnomon_rabitq_params p = GNOMON_RABITQ_PARAMS_INIT;
    gnomon_search_options w = wish(GNOMON_L2, 2);
    static const double recalls[] = {0, -1, 1.5, NAN};
    for (int i = 0; i < 4; i++) {
        p.recall = recalls[i];
        expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, &p, &found), GNOMON_ERROR_ARGUMENT);
    }
    p.rerank = 2; /* recall is not read */
    expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, &p, &found), GNOMON_OK);
    gnomon_neighbors_free(ctx, &found);
    found = (gnomon_neighbors){.struct_size = sizeof found};
    p.recall = 1;
    p.rerank = 1;
    expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, &p, &found), GNOMON_ERROR_ARGUMENT);
    w.k = 5;
    expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, NULL, &found), GNOMON_ERROR_ARGUMENT);
    w.k = 0;
    w.radius = 1;
    expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, NULL, &found), GNOMON_ERROR_ARGUMENT);
    w = wish(GNOMON_COSINE, 2);
    expect(ctx, gnomon_rabitq_query(ctx, index, &base, &w, NULL, &found), GNOMON_ERROR_ARGUMENT);
    w = wish(GNOMON_L2, 2);
    const gnomon_matrix narrow = gnomon_matrix_rowmajor(data, GNOMON_F32, 4, 2);
    expect(ctx, gnomon_rabitq_query(ctx, index, &narrow, &w, NULL, &found), GNOMON_ERROR_SHAPE);
    float out[16];
    gnomon_matrix e = gnomon_matrix_rowmajor(out, GNOMON_F32, 4, 4);
    expect(ctx, gnomon_rabitq_estimate(ctx, index, &narrow, 0, &e, NULL), GNOMON_ERROR_SHAPE);
    expect(ctx, gnomon_rabitq_estimate(ctx, index, &base, 1, &e, &e), GNOMON_ERROR_ARGUMENT);
    expect(ctx, gnomon_rabitq_estimate(ctx, index, &base, 1, &e, NULL), GNOMON_OK);
    e.rows = 3;
    expect(ctx, gnomon_rabitq_estimate(ctx, index, &base, 0, &e, NULL), GNOMON_ERROR_SHAPE);
    gnomon_matrix none = base;
    none.rows = 0;
    expect(ctx, gnomon_rabitq_query(ctx, index, &none, &w, NULL, &found), GNOMON_OK);
    assert_int_equal(found.queries, 0);
    gnomon_neighbors_free(ctx, &found);
    gnomon_rabitq_destroy(index);
    gnomon_rabitq_destroy(NULL);
    gnomon_context_destroy(ctx);
}

/* Every allocation refused in turn: MEMORY, and nothing is left. */
static void no_memory(void **state)
{
    (void)state;
    const gnomon_matrix base = make_points(CLUSTERS, GNOMON_F32, 300, 20, 1);
    const gnomon_matrix queries = make_points(CLUSTERS, GNOMON_F32, 5, 20, 2);
    for (long refused = 0, done = 0; !done; refused++) {
        refusal r = {0};
        const gnomon_allocator allocator = {&r, refusing, releasing};
        gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
        gnomon_context *ctx;
        options.device = "cpu";
        options.threads = 1;
        options.allocator = &allocator;
        r.at = -1;
        assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
        const long held = r.out;
        r.at = r.calls + refused;
        gnomon_rabitq *index = NULL;
        gnomon_neighbors found = {.struct_size = sizeof found};
        const gnomon_search_options o = wish(GNOMON_L2, 4);
        double out[5 * 300];
        const gnomon_matrix e = gnomon_matrix_rowmajor(out, GNOMON_F64, 5, 300);
        gnomon_status status = gnomon_rabitq_create(ctx, NULL, &base, &index);
        if (status == GNOMON_OK)
            status = gnomon_rabitq_query(ctx, index, &queries, &o, NULL, &found);
        if (status == GNOMON_OK) status = gnomon_rabitq_estimate(ctx, index, &queries, 0.1, &e, &e);
        done = r.calls <= r.at;
        expect(ctx, status, done ? GNOMON_OK : GNOMON_ERROR_MEMORY);
        gnomon_neighbors_free(ctx, &found);
        gnomon_rabitq_destroy(index);
        assert_int_equal(r.out, held);
        gnomon_context_destroy(ctx);
        assert_true(refused < 1000);
    }
    free(base.data);
    free(queries.data);
}

/* So far away, by the points' own measure, that squares are beyond fp64. */
static void beyond_the_range(void **state)
{
    (void)state;
    enum { POINTS = 3000, QUERIES = 3, DIM = 5 };
    gnomon_context *ctx = context_of(2, 0);
    const gnomon_matrix base = make_points(BELL, GNOMON_F64, POINTS, DIM, 1);
    const gnomon_matrix queries = make_points(BELL, GNOMON_F64, QUERIES, DIM, 2);
    double *numbers = base.data, *estimates, *bounds;
    estimates = malloc(QUERIES * POINTS * 8);
    bounds = malloc(QUERIES * POINTS * 8);
    const gnomon_matrix e = gnomon_matrix_rowmajor(estimates, GNOMON_F64, QUERIES, POINTS);
    const gnomon_matrix b = gnomon_matrix_rowmajor(bounds, GNOMON_F64, QUERIES, POINTS);
    for (int64_t i = 0; i < POINTS * DIM; i++)
        numbers[i] *= 1e-160;
    numbers = queries.data;
    for (int64_t i = 0; i < QUERIES * DIM; i++)
        numbers[i] *= 3e149;
    gnomon_rabitq_options options = GNOMON_RABITQ_OPTIONS_INIT;
    for (options.codes_only = 0; options.codes_only < 2; options.codes_only++) {
        const gnomon_search_options o = wish(GNOMON_L2, 7);
        gnomon_neighbors want = exact(ctx, &base, &queries, &o);
        gnomon_neighbors got = {.struct_size = sizeof got};
        gnomon_rabitq *index;
        expect(ctx, gnomon_rabitq_create(ctx, &options, &base, &index), GNOMON_OK);
        expect(ctx, gnomon_rabitq_query(ctx, index, &queries, &o, NULL, &got), GNOMON_OK);
        if (!options.codes_only) same_answers(&got, &want, "beyond the range");
        for (int i = 0; i < QUERIES * 7 && options.codes_only; i++)
            assert_true(got.distances[i] > 1e100);
        expect(ctx, gnomon_rabitq_estimate(ctx, index, &queries, 0, &e, &b), GNOMON_OK);
        for (int i = 0; i < QUERIES * POINTS; i++)
            assert_true(estimates[i] > 1e200 && bounds[i] > 1e200);
        gnomon_neighbors_free(ctx, &got);
        gnomon_neighbors_free(ctx, &want);
        gnomon_rabitq_destroy(index);
    }
    free(estimates);
    free(bounds);
    free(base.data);
    free(queries.data);
    gnomon_context_destroy(ctx);
}

/* A search takes no more than the context's limit beside what it gives back. */
static void within_the_limit(int64_t points, int64_t dim, int64_t bits, int64_t k, int64_t limit)
{
    const gnomon_matrix base = make_points(BELL, GNOMON_F32, points, dim, 1);
    const gnomon_matrix queries = make_points(BELL, GNOMON_F32, 40, dim, 2);
    meter m = {0};
    const gnomon_allocator allocator = {&m, meter_allocate, meter_release};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 2;
    options.memory_limit = limit;
    options.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    gnomon_rabitq *index = index_of(ctx, GNOMON_L2, bits, 3, &base);
    const gnomon_search_options o = wish(GNOMON_L2, k);
    const int64_t given = 40 * (k + 1) * 32; /* heaps, and the answers that are made of them */
    const int64_t held = m.held;
    m.peak = 0;
    gnomon_neighbors got = search(ctx, index, &queries, &o, 0.9, 0);
    if (m.peak - held > limit + given)
        fail_msg("%d neighbours in %d dimensions take %g bytes of %g", (int)k, (int)dim,
                 (double)(m.peak - held), (double)(limit + given));
    gnomon_neighbors_free(ctx, &got);
    gnomon_rabitq_destroy(index);
    gnomon_context_destroy(ctx);
    free(base.data);
    free(queries.data);
}

static void memory(void **state)
{
    (void)state;
    within_the_limit(20000, 4, 4, 10, 8 << 20);
    within_the_limit(20000, 4, 4, 1000, 8 << 20);
    /* queries' words, and tiles, are most of it */
    within_the_limit(500, 4096, 1, 1, 7 << 18);
}

/* An allocator that sees what is written behind a block. */
static void *fenced(void *user, size_t size, size_t alignment)
{
    (void)user;
    const size_t all = (size + 64 + alignment - 1) / alignment * alignment;
    unsigned char *data = aligned_alloc(alignment, all);
    if (data != NULL) memset(data + size, 0xa5, all - size);
    return data;
}

static void release_fenced(void *user, void *pointer, size_t size)
{
    const unsigned char *data = pointer;
    int *broken = user;
    for (int i = 0; i < 64 && data != NULL; i++)
        *broken |= data[size + (size_t)i] != 0xa5;
    free(pointer);
}

/* A last batch that is cut into more parts than a whole one. */
static void a_smaller_batch(void **state)
{
    (void)state;
    enum { THREADS = 64, LAST = 62 * THREADS + 1, POINTS = 4200 };
    int broken = 0;
    const gnomon_allocator allocator = {&broken, fenced, release_fenced};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = THREADS;
    options.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    const gnomon_matrix base = make_points(BELL, GNOMON_F32, POINTS, 4, 1);
    const gnomon_matrix queries = make_points(BELL, GNOMON_F32, 4096 + LAST, 4, 2);
    const gnomon_search_options o = wish(GNOMON_L2, 1);
    gnomon_rabitq *index = index_of(ctx, GNOMON_L2, 4, 3, &base);
    same_as_exact(ctx, index, &base, &queries, &o, "two batches");
    gnomon_rabitq_destroy(index);
    gnomon_context_destroy(ctx);
    assert_false(broken);
    free(base.data);
    free(queries.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_answers),
        cmocka_unit_test(far_queries),
        cmocka_unit_test(filters_and_exclusion),
        cmocka_unit_test(recall_is_kept),
        cmocka_unit_test(codes_alone),
        cmocka_unit_test(refusals),
        cmocka_unit_test(no_memory),
        cmocka_unit_test(beyond_the_range),
        cmocka_unit_test(memory),
        cmocka_unit_test(a_smaller_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
