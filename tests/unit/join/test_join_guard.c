/* Pairs in compressed rows: nothing is written behind what was asked of the allocator. */
#include <gnomon/join.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GUARD = 256, MARK = 0xc3 };

static void *guarded(void *user, size_t size, size_t alignment)
{
    (void)user;
    const size_t whole = (size + GUARD + alignment - 1) / alignment * alignment;
    unsigned char *block = aligned_alloc(alignment, whole);
    if (block != NULL) memset(block + size, MARK, whole - size);
    return block;
}

static void check_guard(void *user, void *block, size_t size)
{
    for (size_t i = size; i < size + GUARD; i++)
        *(int *)user += ((unsigned char *)block)[i] != MARK;
    free(block);
}

/* Rows so many that the offsets fill their block to its end: it is made of 64 bytes. */
static void no_byte_behind_the_offsets(void **state)
{
    (void)state;
    int touched = 0;
    const gnomon_allocator allocator = {&touched, guarded, check_guard};
    gnomon_context_options options = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx;
    options.device = "cpu";
    options.threads = 1;
    options.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&options, &ctx), GNOMON_OK);
    float x[24];
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i / 3); /* threes of the same */
    for (int64_t rows = 1; rows < 24; rows++) {
        for (int both = 0; both < 2; both++) {
            const gnomon_matrix p = gnomon_matrix_rowmajor(x, GNOMON_F32, rows, 1);
            const gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
            gnomon_pairs pairs = {.struct_size = sizeof pairs};
            assert_int_equal(gnomon_join_collect(ctx, &p, NULL, &o, both, &pairs, NULL), GNOMON_OK);
            const int64_t due = rows / 3 * 3 + (rows % 3 == 2);
            assert_int_equal(pairs.count, both ? 2 * due : due);
            assert_int_equal(pairs.offsets[0], 0);
            assert_int_equal(pairs.offsets[rows], pairs.count);
            for (int64_t i = 0; i < rows; i++) {
                for (int64_t at = pairs.offsets[i]; at < pairs.offsets[i + 1]; at++) {
                    const int64_t j = pairs.columns[at];
                    assert_true(j / 3 == i / 3 && (both ? j != i : j > i));
                    assert_true(pairs.distances[at] == 0);
                }
            }
            gnomon_pairs_free(ctx, &pairs);
        }
    }
    gnomon_context_destroy(ctx);
    assert_int_equal(touched, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_byte_behind_the_offsets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
