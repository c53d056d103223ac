/* Answers of a search: nothing is written behind what was asked of the allocator. */
#include <gnomon/search.h>

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

/* As many queries as fill the blocks of offsets, ids and distances, made of 64 bytes, to their
 * ends. */
static void no_byte_behind_the_answers(void **state)
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
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    const gnomon_matrix base = gnomon_matrix_rowmajor(x, GNOMON_F32, 32, 2);
    for (int64_t rows = 1; rows < 33; rows++) {
        for (int64_t k = 0; k < 3; k++) {
            const gnomon_matrix queries = gnomon_matrix_rowmajor(x, GNOMON_F32, rows, 2);
            gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
            gnomon_neighbors found = {.struct_size = sizeof found};
            o.k = k;
            o.radius = 1;
            assert_int_equal(gnomon_neighbors_exact(ctx, &base, &queries, &o, &found), GNOMON_OK);
            assert_int_equal(found.offsets[rows], rows * (k > 0 ? k : 1));
            for (int64_t i = 0; i < rows; i++)
                assert_int_equal(found.ids[found.offsets[i]], i);
            gnomon_neighbors_free(ctx, &found);
        }
    }
    gnomon_context_destroy(ctx);
    assert_int_equal(touched, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_byte_behind_the_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
