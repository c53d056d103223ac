/* Metrics by number, by name and in their list: each row is whole, and none stands for another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "metric/metric.h"

#include <string.h>

static void rows_are_whole(void **state)
{
    (void)state;
    int count = 0;
    for (const gnomon_metric_info *info; (info = gnomon_metric_at(count)) != NULL; count++) {
        const gnomon_metric_row *row = gnomon_metric_row_of(info->metric);
        assert_ptr_equal(&row->info, info);
        assert_true(info->name[0] != '\0' && strchr(info->name, ' ') == NULL);
        assert_non_null(info->aliases);
        assert_non_null(info->about);
        assert_true(info->unit[0] != '\0');
        assert_string_equal(gnomon_metric_name(info->metric), info->name);
        assert_int_equal(gnomon_metric_from_name(info->name), info->metric);
        /* what compares two points of each kind that it takes; sparse rows are vectors or sets */
        /* dense rows of weights are taken as sparse ones */
        assert_int_equal(row->key != NULL || row->by_sums,
                         (info->points & GNOMON_POINTS_DENSE) != 0);
        assert_int_equal(row->bits != NULL, (info->points & GNOMON_POINTS_BITS) != 0);
        assert_int_equal(row->sets != NULL || row->sparse != NULL,
                         (info->points & GNOMON_POINTS_SPARSE) != 0);
        assert_true(row->sets == NULL || row->key == NULL);
        assert_true(row->sparse == NULL || row->key != NULL);
        assert_true(row->counts == NULL || row->sets != NULL);
        assert_true(row->verify_cost.start > 0 && row->exact_cost.start > 0);
        /* an index is made by hash functions */
        assert_int_equal(gnomon_metric_family(info->metric, 0) != 0,
                         (info->flags & GNOMON_METRIC_HASHED) != 0);
        assert_int_equal(row->families[GNOMON_METRIC_FAMILIES], 0);
        /* a product has no similarity beside it */
        assert_false((info->flags & GNOMON_METRIC_LARGER) &&
                     (info->flags & GNOMON_METRIC_SIMILARITY));
    }
    assert_true(count >= 6);
    assert_null(gnomon_metric_at(-1));
}

static int has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at != '\0'; at += strspn(at, " ")) {
        const size_t one = strcspn(at, " ");
        if (one == length && strncmp(at, word, one) == 0) return 1;
        at += one;
    }
    return 0;
}

static void names_stand_for_one_metric(void **state)
{
    (void)state;
    const gnomon_metric_info *a, *b;
    for (int i = 0; (a = gnomon_metric_at(i)) != NULL; i++)
        for (int j = 0; (b = gnomon_metric_at(j)) != NULL; j++) {
            assert_false(has_word(b->aliases, a->name));
            if (i != j) {
                assert_string_not_equal(a->name, b->name);
                assert_int_not_equal(a->metric, b->metric);
            }
        }
}

static void numbers_are_pinned(void **state)
{
    (void)state;
    static const char *const names[] = {"?", "l2", "cosine", "ip", "hamming", "jaccard", "l1"};
    for (int number = 0; number < 7; number++)
        assert_string_equal(gnomon_metric_name((gnomon_metric)number), names[number]);
    assert_string_equal(gnomon_metric_name((gnomon_metric)1000), "?");
    assert_int_equal(gnomon_metric_from_name("euclidean"), 0);
    assert_int_equal(gnomon_metric_from_name(NULL), 0);
    assert_int_equal(gnomon_metric_family(GNOMON_COSINE, 0), GNOMON_LSH_SIMHASH);
    assert_int_equal(gnomon_metric_family(GNOMON_COSINE, 1), GNOMON_LSH_CROSS_POLYTOPE);
    assert_int_equal(gnomon_metric_family(GNOMON_COSINE, 2), GNOMON_LSH_SPHERICAL_KMEANS);
    assert_int_equal(gnomon_metric_family(GNOMON_COSINE, 3), 0);
    assert_int_equal(gnomon_metric_family(GNOMON_L2, 1), GNOMON_LSH_KMEANS);
    assert_int_equal(gnomon_metric_family(GNOMON_IP, 0), 0);
    assert_int_equal(gnomon_metric_family(GNOMON_L2, -1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(names_stand_for_one_metric),
        cmocka_unit_test(numbers_are_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
