/* What a search refuses, and that nothing is lost when memory is out. */
#include "refusal.h"
#include "search_testing.h"

static gnomon_search_options nearest(int64_t k)
{
    gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
    o.k = k;
    return o;
}

enum { N = 40, D = 5 };

typedef struct data {
    gnomon_context *ctx;
    float base[N * D], queries[8 * D];
    gnomon_matrix b, q;
} data;

static void fill(data *x)
{
    uint64_t random = 3;
    for (int i = 0; i < N * D; i++)
        x->base[i] = (float)draw(&random);
    for (int i = 0; i < 8 * D; i++)
        x->queries[i] = (float)draw(&random);
    x->b = gnomon_matrix_rowmajor(x->base, GNOMON_F32, N, D);
    x->q = gnomon_matrix_rowmajor(x->queries, GNOMON_F32, 8, D);
}

static void refused(data *x, const gnomon_search_options *o, gnomon_status want, const char *text)
{
    gnomon_neighbors out = {.struct_size = sizeof out};
    const gnomon_status got = gnomon_neighbors_exact(x->ctx, &x->b, &x->q, o, &out);
    expect(x->ctx, got, want);
    if (strstr(gnomon_last_error(x->ctx), text) == NULL)
        fail_msg("'%s' does not tell of '%s'", gnomon_last_error(x->ctx), text);
    assert_null(out.ids);
}

static void arguments(void **state)
{
    (void)state;
    data x = {.ctx = context_of(2, 0)};
    fill(&x);
    gnomon_search_options o = nearest(N + 1);
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "k is 41 and base has 40 points");
    o = nearest(-1);
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "k is -1");
    o = nearest(N);
    o.exclude = 0;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "39 of base's 40 points may be neighbours of query 0");
    const uint8_t few[1] = {6};
    o = nearest(3);
    o.filter = few;
    o.filter_bits = 8;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "2 of base's 40 points");
    o.filter_bits = -1;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "filter_bits is -1");
    o = nearest(0);
    o.radius = -0.5;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "radius is -0.5");
    o.radius = (double)NAN;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "radius is");
    o = nearest(1);
    o.exclude = -2;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "exclude is -2");
    o = nearest(1);
    o.metric = (gnomon_metric)9;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "metric is 9");
    o.metric = GNOMON_HAMMING;
    refused(&x, &o, GNOMON_ERROR_DTYPE, "type f32");
    o.metric = GNOMON_JACCARD;
    refused(&x, &o, GNOMON_ERROR_UNSUPPORTED, "jaccard takes sparse points");
    refused(&x, NULL, GNOMON_ERROR_ARGUMENT, "options is NULL");
    o = nearest(1);
    x.q.cols = 4;
    refused(&x, &o, GNOMON_ERROR_SHAPE, "base has 5 dimensions and queries 4");
    x.q.cols = 5;
    x.q.data = NULL;
    refused(&x, &o, GNOMON_ERROR_ARGUMENT, "queries.data is NULL");
    gnomon_context_destroy(x.ctx);
}

static void bad_numbers_are_named(void **state)
{
    (void)state;
    data x = {.ctx = context_of(2, 0)};
    static const gnomon_metric metrics[] = {GNOMON_L2, GNOMON_COSINE, GNOMON_IP};
    static double f64[N * D];
    for (int m = 0; m < 3; m++) {
        for (int few = 0; few < 2; few++) {
            for (int bad = 0; bad < 4; bad++) {
                fill(&x);
                if (few) x.q.rows = 1;
                gnomon_search_options o = nearest(3);
                o.metric = metrics[m];
                const float value = bad & 1 ? INFINITY : (float)NAN;
                if (bad < 2) {
                    x.base[17 * D + 3] = value;
                    x.base[30 * D + 1] = value;
                    refused(&x, &o, GNOMON_ERROR_NONFINITE,
                            "base has NaN or infinity in row 17, column 3");
                } else {
                    x.queries[4] = value;
                    refused(&x, &o, GNOMON_ERROR_NONFINITE,
                            "queries has NaN or infinity in row 0, column 4");
                }
            }
            fill(&x);
            if (few) x.q.rows = 1;
            for (int i = 0; i < N * D; i++)
                f64[i] = (double)x.base[i];
            f64[9 * D] = -1e200;
            x.b = gnomon_matrix_rowmajor(f64, GNOMON_F64, N, D);
            gnomon_search_options o = nearest(3);
            o.metric = metrics[m];
            refused(&x, &o, GNOMON_ERROR_UNSUPPORTED, "magnitude above 2^500 in row 9, column 0");
        }
    }
    gnomon_context_destroy(x.ctx);
}

/* Row numbers count from the first piece on; a point that is not allowed may be anything. */
static void bad_numbers_in_pieces(void **state)
{
    (void)state;
    data x = {.ctx = context_of(1, 0)};
    fill(&x);
    gnomon_search_options o = nearest(2);
    uint8_t allowed[5] = {255, 255, 255, 255, 255};
    for (int hidden = 0; hidden < 2; hidden++) {
        gnomon_search *s;
        if (hidden) {
            o.filter = allowed;
            o.filter_bits = N;
            allowed[25 / 8] = (uint8_t) ~(1 << 25 % 8);
        }
        x.base[25 * D + 2] = (float)NAN;
        expect(x.ctx, gnomon_search_create(x.ctx, &x.q, &o, &s), GNOMON_OK);
        gnomon_matrix part = x.b;
        part.rows = 20;
        expect(x.ctx, gnomon_search_add(s, &part), GNOMON_OK);
        part.data = x.base + 20 * D;
        expect(x.ctx, gnomon_search_add(s, &part), hidden ? GNOMON_OK : GNOMON_ERROR_NONFINITE);
        if (!hidden) assert_non_null(strstr(gnomon_last_error(x.ctx), "row 25, column 2"));
        gnomon_search_destroy(s);
    }
    gnomon_context_destroy(x.ctx);
}

static void sets_refuse_broken_views(void **state)
{
    (void)state;
    gnomon_context *ctx = context_of(1, 0);
    int64_t offsets[] = {0, 2, 3}, indices[] = {0, 4, 2};
    float values[] = {1, 1, 1};
    gnomon_csr csr = {2, 5, offsets, indices, values, GNOMON_F32};
    gnomon_search_options o = nearest(1);
    gnomon_neighbors out = {.struct_size = sizeof out};
    o.metric = GNOMON_JACCARD;
    indices[1] = 5;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_ERROR_DATA);
    indices[1] = -1;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_ERROR_DATA);
    indices[1] = 4;
    values[2] = (float)NAN;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_ERROR_NONFINITE);
    values[2] = 1;
    offsets[1] = 4;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_ERROR_DATA);
    offsets[1] = 2;
    o.metric = GNOMON_HAMMING;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_ERROR_UNSUPPORTED);
    o.metric = GNOMON_JACCARD;
    expect(ctx, gnomon_neighbors_exact_csr(ctx, &csr, &csr, &o, &out), GNOMON_OK);
    assert_int_equal(out.ids[1], 1);
    gnomon_neighbors_free(ctx, &out);
    gnomon_context_destroy(ctx);
}

static void empty_shapes(void **state)
{
    (void)state;
    data x = {.ctx = context_of(2, 0)};
    fill(&x);
    gnomon_search_options o = nearest(0);
    gnomon_neighbors out = {.struct_size = sizeof out};
    x.b.rows = 0; /* a radius, and nothing to find */
    expect(x.ctx, gnomon_neighbors_exact(x.ctx, &x.b, &x.q, &o, &out), GNOMON_OK);
    assert_int_equal(out.offsets[8], 0);
    gnomon_neighbors_free(x.ctx, &out);
    fill(&x);
    x.q.rows = 0;
    o.k = 3;
    expect(x.ctx, gnomon_neighbors_exact(x.ctx, &x.b, &x.q, &o, &out), GNOMON_OK);
    assert_int_equal(out.queries, 0);
    assert_int_equal(out.offsets[0], 0);
    gnomon_neighbors_free(x.ctx, &out);
    fill(&x);
    x.b.cols = x.q.cols = 0; /* no coordinates: all at distance 0 */
    expect(x.ctx, gnomon_neighbors_exact(x.ctx, &x.b, &x.q, &o, &out), GNOMON_OK);
    for (int i = 0; i < 24; i++)
        assert_true(out.ids[i] == i % 3 && out.distances[i] == 0);
    gnomon_neighbors_free(x.ctx, &out);
    gnomon_context_destroy(x.ctx);
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    data x = {0};
    fill(&x);
    uint8_t allowed[5] = {255, 255, 255, 255, 255};
    int64_t offsets[] = {0, 2, 3, 3}, indices[] = {0, 4, 2};
    float values[] = {1, 1, 1};
    const gnomon_csr csr = {3, 5, offsets, indices, values, GNOMON_F32};
    for (int c = 0; c < 8; c++) {
        bool done = false;
        for (int64_t at = 0; !done; at++) {
            refusal count = {.at = -1};
            const gnomon_allocator allocator = {&count, refusing, releasing};
            gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
            options.device = "cpu";
            options.threads = 2;
            options.allocator = &allocator;
            assert_int_equal(gnomon_context_create(&options, &x.ctx), GNOMON_OK);
            count.calls = 0;
            count.at = at;
            const int64_t live = count.out;
            gnomon_search_options o = nearest(c % 2 ? 3 : 0);
            o.radius = 0.5;
            if (c & 2) {
                o.filter = allowed;
                o.filter_bits = N;
            }
            gnomon_neighbors out = {.struct_size = sizeof out};
            gnomon_status status;
            if (c & 4) {
                o.metric = GNOMON_JACCARD;
                status = gnomon_neighbors_exact_csr(x.ctx, &csr, &csr, &o, &out);
            } else {
                status = gnomon_neighbors_exact(x.ctx, &x.b, &x.q, &o, &out);
            }
            if (status == GNOMON_OK)
                done = true;
            else
                assert_int_equal(status, GNOMON_ERROR_MEMORY);
            gnomon_neighbors_free(x.ctx, &out);
            assert_int_equal(count.out, live);
            gnomon_context_destroy(x.ctx);
        }
    }
}

static int cancel(void *user, const char *phase, int64_t done, int64_t total)
{
    (void)phase;
    assert_true(done <= total);
    return ++*(int *)user >= 1;
}

static void a_search_can_be_cancelled(void **state)
{
    (void)state;
    data x;
    fill(&x);
    int calls = 0;
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    options.device = "cpu";
    options.progress = cancel;
    options.progress_user = &calls;
    assert_int_equal(gnomon_context_create(&options, &x.ctx), GNOMON_OK);
    const gnomon_search_options o = nearest(2);
    refused(&x, &o, GNOMON_ERROR_CANCELLED, "cancelled");
    gnomon_context_destroy(x.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(bad_numbers_are_named),
        cmocka_unit_test(bad_numbers_in_pieces),
        cmocka_unit_test(sets_refuse_broken_views),
        cmocka_unit_test(empty_shapes),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_search_can_be_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
