/* JSON that is read while memory runs out: the whole value, or MEMORY; never a fault of the text.
 */
#include "operator_testing.h"

#include "base/text_json.h"

#include <jansson.h>

static int left; /* allocations until one fails; -1: none does */
static bool ever;

static void *scarce(size_t size)
{
    if (left == 0) {
        if (!ever) left = -2;
        return NULL;
    }
    if (left > 0) left--;
    return malloc(size);
}

static void a_text_is_not_at_fault(void **state)
{
    (void)state;
    static const char text[] =
        "{\"gnomon\": \"lsh\", \"metric\": \"cosine\", \"dim\": 12, \"width\": "
        "0.25, \"effort\": {\"tables\": [1, true, null, \"a\\u00e9\"]}}";
    for (int mode = 0; mode < 2; mode++) {
        int at = 0, failed = 0;
        ever = mode == 1;
        for (;; at++) {
            json_error_t error;
            bool memory;
            left = at;
            json_t *value = gnomon_json_read(text, strlen(text), 0, &error, &memory);
            const bool out_of_reach = left > 0;
            left = -1;
            assert_true(memory == (value == NULL));
            failed += memory;
            if (value != NULL) {
                assert_int_equal(json_object_size(value), 5);
                assert_int_equal(
                    json_array_size(json_object_get(json_object_get(value, "effort"), "tables")),
                    4);
            }
            json_decref(value);
            if (out_of_reach) break;
            assert_true(at < 1000);
        }
        assert_true(at > 20);
        assert_true(ever ? failed > 20 : failed == 0);
    }
}

/* Tokens of every length about those at which jansson's memory for them grows. */
static void long_tokens_are_read_whole(void **state)
{
    (void)state;
    for (int length = 0; length < 70; length++) {
        char word[80], text[160];
        memset(word, 'a', sizeof word);
        word[length] = '\0';
        snprintf(text, sizeof text, "[\"%s\", 18446744073709551.615]", word);
        for (int mode = 0; mode < 2; mode++) {
            ever = mode == 1;
            for (int at = 0, out_of_reach = 0; !out_of_reach; at++) {
                json_error_t error;
                bool memory;
                left = at;
                json_t *value = gnomon_json_read(text, strlen(text), 0, &error, &memory);
                out_of_reach = left > 0;
                left = -1;
                assert_true(memory == (value == NULL));
                assert_true(value != NULL || ever);
                if (value != NULL) {
                    assert_string_equal(json_string_value(json_array_get(value, 0)), word);
                    assert_true(json_real_value(json_array_get(value, 1)) == 18446744073709551.615);
                }
                json_decref(value);
                assert_true(at < 1000);
            }
        }
    }
}

static void one_value_is_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"1", "\"a\"", "{}, {}", "{}], [{}", "", "{}]"};
    json_error_t error;
    bool memory;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *any =
            gnomon_json_read(texts[i], strlen(texts[i]), JSON_DECODE_ANY, &error, &memory);
        assert_true((any != NULL) == (i < 2));
        json_decref(any);
        assert_null(gnomon_json_read(texts[i], strlen(texts[i]), 0, &error, &memory));
        assert_false(memory);
        assert_true(error.text[0] != '\0');
    }
    assert_null(gnomon_json_read("{\n\"a\": ?}", 9, 0, &error, &memory));
    assert_int_equal(error.line, 2);
    assert_int_equal(error.column, 6);
}

static void a_fault_is_one(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{\"a\": 1, \"a\": 2}", "[1, 2", "{\"a\": 1e999}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_error_t error;
        bool memory;
        left = -1;
        assert_null(
            gnomon_json_read(texts[i], strlen(texts[i]), JSON_REJECT_DUPLICATES, &error, &memory));
        assert_false(memory);
        assert_true(error.text[0] != '\0');
    }
}

static void a_descriptor_is_not_at_fault(void **state)
{
    (void)state;
    gnomon_context *ctx = new_context(1);
    const gnomon_descriptor d = describe_variant(0, 22, 100000);
    gnomon_operator *op = new_operator(ctx, &d), *again;
    char *text;
    left = -1;
    assert_int_equal(gnomon_operator_to_json(ctx, op, &text), GNOMON_OK);
    for (int mode = 0; mode < 2; mode++) {
        ever = mode == 1;
        for (int at = 0, out_of_reach = 0; !out_of_reach; at++) {
            left = at;
            const gnomon_status status = gnomon_operator_from_json(ctx, text, strlen(text), &again);
            out_of_reach = left > 0;
            left = -1;
            assert_true(status == GNOMON_OK || status == GNOMON_ERROR_MEMORY);
            if (status == GNOMON_OK) gnomon_operator_destroy(again);
            assert_true(at < 1000);
        }
    }
    free(text);
    gnomon_operator_destroy(op);
    gnomon_context_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_not_at_fault),
        cmocka_unit_test(long_tokens_are_read_whole),
        cmocka_unit_test(one_value_is_read),
        cmocka_unit_test(a_fault_is_one),
        cmocka_unit_test(a_descriptor_is_not_at_fault),
    };
    json_set_alloc_funcs(scarce, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
