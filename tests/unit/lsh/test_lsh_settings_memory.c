/* An index's settings while memory runs out: written and read whole, or MEMORY, and nothing is left
 * behind. Each allocation fails in turn, alone or with all after it, jansson's and the library's.
 */
#include "lsh/file/file.h"

#include <jansson.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static long left = -1; /* allocations until one fails; -1: none does */
static bool ever;      /* all after it fail, too */
static int refused;
static long out; /* of jansson's */

static bool refuses(void)
{
    if (left < 0 || (refused > 0 && !ever)) return false;
    if (left > 0) {
        left--;
        return false;
    }
    refused++;
    return true;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

/* What is linked here; jansson's library has the C library's own. */
void *__wrap_malloc(size_t size)
{
    return refuses() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuses() ? NULL : __real_calloc(count, size);
}

static void *scarce(size_t size)
{
    if (refuses()) return NULL;
    out++;
    return __real_malloc(size);
}

static void released(void *block)
{
    if (block == NULL) return;
    out--;
    free(block);
}

/* An index with everything in its settings that can be: an operator, reals, a seed as text. */
static gnomon_lsh *new_index(gnomon_context *ctx)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    d.kind = GNOMON_VERY_SPARSE;
    d.density = 0.1;
    d.seed = UINT64_MAX;
    o.functions.family = GNOMON_LSH_PSTABLE;
    o.functions.dim = 40;
    o.functions.width = 1.0 / 3;
    o.functions.seed = UINT64_MAX - 1;
    o.functions.descriptor = &d;
    o.tables = 5;
    o.coarse = 3;
    o.codes = 8;
    o.search_params.probes = 7;
    assert_int_equal(gnomon_lsh_create(ctx, &o, &index), GNOMON_OK);
    return index;
}

/* One by centres, which has no operator. */
static gnomon_lsh *new_lists(gnomon_context *ctx)
{
    static const float centres[] = {1, 2, 3, 4};
    gnomon_lsh_options o = GNOMON_LSH_OPTIONS_INIT;
    gnomon_lsh *index;
    o.functions.family = GNOMON_LSH_KMEANS;
    o.functions.dim = 2;
    o.functions.centre_count = 2;
    o.functions.centres = centres;
    o.tables = o.coarse = 1;
    assert_int_equal(gnomon_lsh_create(ctx, &o, &index), GNOMON_OK);
    return index;
}

static void check_writing(gnomon_context *ctx, gnomon_lsh *index, const char *holds)
{
    char *whole, *text;
    int failed = 0;
    assert_int_equal(gnomon_lsh_settings_to_json(ctx, index, &whole), GNOMON_OK);
    assert_non_null(strstr(whole, holds));
    const long before = out;
    for (int at = 0, last = 0; last < 2; at++) {
        left = at;
        refused = 0;
        text = NULL;
        const gnomon_status status = gnomon_lsh_settings_to_json(ctx, index, &text);
        left = -1;
        assert_int_equal(status, text != NULL ? GNOMON_OK : GNOMON_ERROR_MEMORY);
        if (text != NULL) assert_string_equal(text, whole);
        if (text == NULL) assert_non_null(strstr(gnomon_last_error(ctx), "memory"));
        free(text);
        assert_int_equal(out, before);
        failed += text == NULL;
        if (refused) continue;
        last++; /* once more, with those after it */
        ever = !ever;
        at = -1;
    }
    assert_true(failed > 20);
    free(whole);
    gnomon_lsh_destroy(index);
}

static void settings_are_written_whole_or_not(void **state)
{
    (void)state;
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    check_writing(ctx, new_index(ctx), "very-sparse");
    check_writing(ctx, new_lists(ctx), "\"centres\": 2");
    gnomon_context_destroy(ctx);
}

static void settings_are_read_whole_or_not(void **state)
{
    (void)state;
    gnomon_context *ctx = NULL;
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    gnomon_lsh *index = new_index(ctx);
    char *text;
    gnomon_lsh_options whole, o;
    gnomon_descriptor operator_whole, d;
    int failed = 0;
    assert_int_equal(gnomon_lsh_settings_to_json(ctx, index, &text), GNOMON_OK);
    gnomon_lsh_destroy(index);
    assert_int_equal(
        gnomon_lsh_settings_from_json(ctx, text, strlen(text), &whole, &operator_whole), GNOMON_OK);
    assert_true(whole.functions.descriptor == &operator_whole && whole.search_params.probes == 7);
    assert_true(operator_whole.seed == UINT64_MAX && whole.functions.seed == UINT64_MAX - 1);
    const long before = out;
    for (int at = 0, last = 0; last < 2; at++) {
        left = at;
        refused = 0;
        const gnomon_status status = gnomon_lsh_settings_from_json(ctx, text, strlen(text), &o, &d);
        left = -1;
        assert_int_equal(out, before);
        if (status == GNOMON_OK) {
            assert_memory_equal(&d, &operator_whole, sizeof d);
            o.functions.descriptor = &operator_whole;
            assert_memory_equal(&o, &whole, sizeof o);
        } else { /* never that the file is at fault */
            assert_int_equal(status, GNOMON_ERROR_MEMORY);
            assert_non_null(strstr(gnomon_last_error(ctx), "memory"));
            failed++;
        }
        if (refused) continue;
        assert_int_equal(status, GNOMON_OK);
        last++; /* once more, with those after it */
        ever = !ever;
        at = -1;
    }
    assert_true(failed > 20);
    /* what is at fault is the file all the same */
    text[strlen(text) / 2] = '\0';
    assert_int_equal(gnomon_lsh_settings_from_json(ctx, text, strlen(text), &o, &d),
                     GNOMON_ERROR_DATA);
    free(text);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_written_whole_or_not),
        cmocka_unit_test(settings_are_read_whole_or_not),
    };
    json_set_alloc_funcs(scarce, released);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
