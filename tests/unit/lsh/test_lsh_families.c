/* Families by number and name, and their rows: each is whole, and none stands for another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lsh/families/family.h"

#include <string.h>

enum { NUMBERS = 64 };

static void rows_are_whole(void **state)
{
    (void)state;
    int count = 0;
    for (int number = -1; number < NUMBERS; number++) {
        const gnomon_lsh_family family = (gnomon_lsh_family)number;
        const gnomon_family_row *row = gnomon_family_row_of(family);
        const char *name = gnomon_lsh_family_name(family);
        assert_int_equal(row == NULL, strcmp(name, "?") == 0);
        if (row == NULL) continue;
        count++;
        assert_int_equal(row->family, number);
        assert_string_equal(row->name, name);
        assert_int_equal(gnomon_lsh_family_from_name(name), number);
        /* what depends on the data has neither a law nor probes by other values */
        assert_non_null(row->hash);
        assert_int_equal(row->collision == NULL, row->centres != 0);
        assert_int_equal(row->others == 0, row->centres != 0);
        assert_true(row->others <= GNOMON_LSH_OTHERS);
        /* products are an operator's or the family's own */
        assert_false(row->directions && row->project != NULL);
        assert_int_equal(row->products > 0, row->directions || row->project != NULL);
        /* one that refuses some points says which it takes */
        const unsigned both = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE;
        assert_true(row->points != 0);
        assert_int_equal(row->refusal != NULL, (row->points & both) != both);
        assert_true(row->members <= 0 || (row->points & GNOMON_POINTS_SPARSE) != 0);
        assert_true(row->most > 0 || row->points == GNOMON_POINTS_BITS || row->centres != 0);
    }
    assert_true(count >= 6);
    assert_int_equal(gnomon_lsh_family_from_name("?"), 0);
    assert_int_equal(gnomon_lsh_family_from_name(NULL), 0);
}

/* Each family is some metric's, which takes its points; each metric's families are there. */
static void metrics_have_their_families(void **state)
{
    (void)state;
    const gnomon_metric_info *info;
    int used[NUMBERS] = {0};
    for (int i = 0; (info = gnomon_metric_at(i)) != NULL; i++)
        for (int j = 0; gnomon_metric_family(info->metric, j) != 0; j++) {
            const gnomon_lsh_family family = gnomon_metric_family(info->metric, j);
            const gnomon_family_row *row = gnomon_family_row_of(family);
            assert_non_null(row);
            assert_true((info->points & row->points) != 0);
            assert_true(row->centres == 0 || row->centres == info->metric);
            used[family]++;
        }
    for (int number = 1; number < NUMBERS; number++)
        assert_int_equal(used[number] > 0, gnomon_family_row_of((gnomon_lsh_family)number) != NULL);
}

/* Points at distance 0 have the same values; none has a probability above that. */
static void collisions_fall(void **state)
{
    (void)state;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    for (int number = 1; number < NUMBERS; number++) {
        const gnomon_family_row *row = gnomon_family_row_of((gnomon_lsh_family)number);
        if (row == NULL) continue;
        gnomon_lsh_functions f = GNOMON_LSH_FUNCTIONS_INIT;
        f.family = row->family;
        f.dim = 4;
        if (row->width) f.width = 1;
        double before = 1.0 + 1e-12;
        for (int step = 0; step <= 10; step++) {
            double p;
            if (row->collision == NULL) {
                assert_int_equal(gnomon_lsh_collision(ctx, &f, 1, &p), GNOMON_ERROR_UNSUPPORTED);
                break;
            }
            const double most = gnomon_family_most(row, f.dim);
            const double distance = most < 1e300 ? most * step / 10 : step;
            assert_int_equal(gnomon_lsh_collision(ctx, &f, distance, &p), GNOMON_OK);
            if (step == 0) assert_float_equal(p, 1, 1e-12);
            assert_true(p >= 0 && p <= before);
            before = p;
        }
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(metrics_have_their_families),
        cmocka_unit_test(collisions_fall),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
