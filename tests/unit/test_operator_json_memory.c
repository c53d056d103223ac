/* A descriptor's text while memory runs out: the whole text, or MEMORY. */
#include "operator_testing.h"

#include <jansson.h>

static int left; /* allocations until they fail; -1: they don't */

static void *scarce(size_t size)
{
    if (left == 0) return NULL;
    if (left > 0) left--;
    return malloc(size);
}

static void no_text_is_cut(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    for (int n = 0; n < VARIANTS; n++) {
        const gnomon_descriptor d = describe_variant(n, 22, 100000);
        gnomon_operator *op = new_operator(ctx, &d);
        char *whole, *text = NULL;
        int failed = 0;
        left = -1;
        assert_int_equal(gnomon_operator_to_json(ctx, op, &whole), GNOMON_OK);
        for (int at = 0; text == NULL; at++) {
            left = at;
            const gnomon_status status = gnomon_operator_to_json(ctx, op, &text);
            left = -1;
            assert_true(status == (text == NULL ? GNOMON_ERROR_MEMORY : GNOMON_OK));
            failed += text == NULL;
            assert_true(at < 1000);
        }
        assert_string_equal(text, whole);
        assert_true(failed > 5);
        free(text);
        free(whole);
        gnomon_operator_destroy(op);
    }
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_text_is_cut)};
    json_set_alloc_funcs(scarce, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
