/* Counts and ids at addresses that are no multiple of eight are refused, and nothing is written. */
#include <gnomon/join.h>
#include <gnomon/lsh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 6 };

static gnomon_context *open_context(void)
{
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 1;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    return ctx;
}

static void counts_of_a_join(void **state)
{
    (void)state;
    gnomon_context *ctx = open_context();
    static float x[N];
    _Alignas(8) char counts[8 * (N + 1)];
    const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, N, 1);
    for (int side = 0; side < 2; side++) {
        for (int off = 0; off < 8; off++) {
            gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
            gnomon_join_result r = {.struct_size = sizeof r};
            memset(counts, 0, sizeof counts);
            *(side ? &o.q_counts : &o.p_counts) = (int64_t *)(void *)(counts + off);
            const gnomon_status status = gnomon_join(ctx, &p, &p, &o, &r);
            assert_int_equal(status, off == 0 ? GNOMON_OK : GNOMON_ERROR_ARGUMENT);
            if (off == 0) continue;
            assert_string_equal(gnomon_last_error_argument(ctx),
                                side ? "options.q_counts" : "options.p_counts");
            for (size_t i = 0; i < sizeof counts; i++)
                assert_int_equal(counts[i], 0);
        }
    }
    gnomon_context_destroy(ctx);
}

static void ids_to_remove(void **state)
{
    (void)state;
    gnomon_context *ctx = open_context();
    static float x[N];
    _Alignas(8) char ids[8 * 2] = {0};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = 1;
    o.functions.width = 4;
    o.tables = o.coarse = 2;
    const gnomon_matrix points = gnomon_matrix_rowmajor(x, GNOMON_F32, N, 1);
    assert_int_equal(gnomon_lsh_create(ctx, &o, &index), GNOMON_OK);
    assert_int_equal(gnomon_lsh_add(index, &points), GNOMON_OK);
    for (int off = 1; off < 8; off++) {
        assert_int_equal(gnomon_lsh_remove(index, (const int64_t *)(const void *)(ids + off), 1),
                         GNOMON_ERROR_ARGUMENT);
        assert_string_equal(gnomon_last_error_argument(ctx), "ids");
    }
    assert_int_equal(gnomon_lsh_remove(index, (const int64_t *)(const void *)ids, 1), GNOMON_OK);
    gnomon_lsh_destroy(index);
    gnomon_context_destroy(ctx);
}

static void labels_of_clusters(void **state)
{
    (void)state;
    gnomon_context *ctx = open_context();
    _Alignas(8) char room[8 * (N + 1)], other[8 * (N + 1)];
    int64_t *const labels = (int64_t *)(void *)room, *const most = (int64_t *)(void *)other;
    gnomon_clusters *clusters;
    assert_int_equal(gnomon_clusters_create(ctx, N, &clusters), GNOMON_OK);
    for (int off = 1; off < 8; off++) {
        int64_t *const astray = (int64_t *)(void *)(room + off);
        assert_int_equal(gnomon_clusters_label(clusters, astray, NULL), -1);
        assert_int_equal(gnomon_clusters_label(clusters, most, astray), -1);
    }
    assert_int_equal(gnomon_clusters_label(clusters, labels, most), N);
    gnomon_clusters_destroy(clusters);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_a_join),
        cmocka_unit_test(ids_to_remove),
        cmocka_unit_test(labels_of_clusters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
