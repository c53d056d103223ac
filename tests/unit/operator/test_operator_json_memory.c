/* A descriptor's text while memory runs out: the whole text, or MEMORY. */
#include "operator_testing.h"

#include <jansson.h>

static int left; /* allocations until one fails; -1: none does */

static void *scarce(size_t size)
{
    if (left >= 0 && left-- == 0) return NULL;
    return malloc(size);
}

static void no_text_is_cut(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    for (int n = 0; n < VARIANTS; n++) {
        const gnomon_descriptor d = describe_variant(n, 22, 100000);
        gnomon_operator *op = new_operator(ctx, &d);
        char *whole, *text;
        int failed = 0, out_of_reach = 0;
        left = -1;
        assert_int_equal(gnomon_operator_to_json(ctx, op, &whole), GNOMON_OK);
        for (int at = 0; !out_of_reach; at++) {
            left = at;
            const gnomon_status status = gnomon_operator_to_json(ctx, op, &text);
            out_of_reach = left >= 0;
            assert_true(status == (text == NULL ? GNOMON_ERROR_MEMORY : GNOMON_OK));
            if (text != NULL) assert_string_equal(text, whole);
            failed += text == NULL;
            free(text);
            assert_true(at < 1000);
        }
        assert_true(failed > 5);
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
