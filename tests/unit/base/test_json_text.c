/* JSON text when memory runs out: whole or none. jansson's own json_dumps loses keys then. */
#include "base/text_json.h"

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int left = -1; /* allocations that succeed; -1: all */
static int refused;

static void *some(size_t size)
{
    if (left == 0) {
        refused = 1;
        return NULL;
    }
    if (left > 0) left--;
    return malloc(size);
}

static void whole_or_none(void **state)
{
    (void)state;
    json_set_alloc_funcs(some, free);
    json_t *root = json_object();
    for (int i = 0; i < 60; i++) {
        char key[40];
        snprintf(key, sizeof key, "a key that is long enough %d", i);
        json_object_set_new(root, key,
                            i % 3 ? json_integer(i) : json_pack("{s:f}", "half", i / 2.0));
    }
    char *whole = gnomon_json_text(root, JSON_INDENT(2));
    assert_non_null(whole);
    int none = 0, n;
    for (n = 0; n < 10000; n++) {
        left = n;
        refused = 0;
        char *text = gnomon_json_text(root, JSON_INDENT(2));
        left = -1;
        if (text != NULL)
            assert_string_equal(text, whole);
        else
            none++;
        free(text);
        if (!refused) break;
    }
    assert_int_equal(none, n); /* each failure is told */
    assert_null(gnomon_json_text(NULL, 0));
    json_decref(root);
    free(whole);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_or_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
