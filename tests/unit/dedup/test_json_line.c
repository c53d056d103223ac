/* The scanner of JSON lines against jansson: what it takes, jansson takes, with the same members;
 * lines that are made at random, and changed at random. */
#include "dedup/json_line.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 1 << 14 };

static uint64_t state = 3;

static int below(int n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)n);
}

static const char *one_of(const char *const *list, int count)
{
    return list[below(count)];
}

static void add(char *line, const char *text)
{
    if (strlen(line) + strlen(text) + 2 < ROOM) strcat(line, text);
}

static void add_string(char *line)
{
    static const char *const parts[] = {"a",
                                        "text",
                                        "plain words that go on and on",
                                        "\\n",
                                        "\\\"",
                                        "\\\\",
                                        "\\u00e4",
                                        "\\ud83d\\ude00",
                                        "\xc3\xa4",
                                        "\xf0\x9f\x98\x80",
                                        "\\/",
                                        "",
                                        "\\u0041",
                                        "\\u20aC",
                                        "\xe2\x82\xac",
                                        " ",
                                        "{[,:]}",
                                        "\x7f",
                                        "\\u0000",
                                        "\\ud800",
                                        "\\udc00",
                                        "\\x",
                                        "\x01",
                                        "\xff"};
    add(line, "\"");
    for (int i = below(5); i > 0; i--)
        add(line, one_of(parts, below(8) == 0 ? 24 : 18));
    add(line, "\"");
}

static void add_value(char *line, int depth)
{
    static const char *const scalars[] = {"true",
                                          "false",
                                          "null",
                                          "0",
                                          "-0",
                                          "17",
                                          "-3.25",
                                          "1e5",
                                          "123456789012345678",
                                          "1234567890123456789012",
                                          "1e999",
                                          "01",
                                          "-",
                                          "1.",
                                          ".5",
                                          "nul",
                                          "truex",
                                          "0.1234567890123456789"};
    static const char *const spaces[] = {"", "", " ", "\t ", "\r"};
    add(line, one_of(spaces, 5));
    const int what = below(depth > 0 ? 6 : 4);
    if (what < 2) {
        add_string(line);
    } else if (what < 4) {
        add(line, one_of(scalars, below(4) == 0 ? 18 : 9));
    } else {
        add(line, what == 4 ? "[" : "{");
        for (int i = below(4), first = 1; i > 0; i--, first = 0) {
            add(line, first ? "" : ",");
            if (what == 5) {
                add_string(line);
                add(line, ":");
            }
            add_value(line, depth - 1);
        }
        add(line, what == 4 ? "]" : "}");
    }
    add(line, one_of(spaces, 5));
}

static void make_line(char *line)
{
    static const char *const keys[] = {"\"text\"", "\"id\"", "\"other\"", "\"te\\u0078t\"", "\"\""};
    line[0] = '\0';
    add(line, "{");
    for (int i = below(5), first = 1; i > 0; i--, first = 0) {
        add(line, first ? "" : ",");
        add(line, one_of(keys, below(10) == 0 ? 5 : 3));
        add(line, ":");
        add_value(line, 3);
    }
    add(line, "}");
}

static void same(const gnomon_json_member *m, const char *line, const json_t *object)
{
    char out[ROOM];
    const json_t *value = json_object_get(object, m->key);
    switch (m->kind) {
    case GNOMON_JSON_ABSENT:
        assert_null(value);
        break;
    case GNOMON_JSON_STRING: {
        assert_true(json_is_string(value));
        const int64_t length = gnomon_json_unescape(line + m->begin, m->end - m->begin, out);
        assert_int_equal(length, json_string_length(value));
        assert_memory_equal(out, json_string_value(value), (size_t)length);
        if (!m->escaped) assert_int_equal(length, m->end - m->begin);
        break;
    }
    case GNOMON_JSON_INTEGER:
        assert_true(json_is_integer(value));
        assert_int_equal(strtoll(line + m->begin, NULL, 10), json_integer_value(value));
        break;
    case GNOMON_JSON_OTHER:
        assert_true(value != NULL && !json_is_string(value) && !json_is_integer(value));
        break;
    }
}

/* In any object that jansson takes the member's string is found, and so is each place in it. */
static void find(const char *line, size_t length, const json_t *object, const char *key)
{
    char out[ROOM];
    int64_t begin = 0, end = 0;
    const json_t *value = json_object_get(object, key);
    const bool found = gnomon_json_find(line, (int64_t)length, key, &begin, &end);
    assert_int_equal(found, json_is_string(value));
    if (!found) return;
    const int64_t bytes = (int64_t)json_string_length(value);
    assert_true(begin > 0 && begin <= end && end < (int64_t)length);
    assert_int_equal(gnomon_json_unescape(line + begin, end - begin, out), bytes);
    assert_memory_equal(out, json_string_value(value), (size_t)bytes);
    int64_t before = 0;
    for (int64_t some = 0; some <= bytes + 1; some++) {
        const int64_t skipped = gnomon_json_skip(line + begin, end - begin, some);
        if (skipped < 0) continue; /* within an escape, or too many */
        assert_true(some <= bytes && skipped >= before && skipped <= end - begin);
        assert_int_equal(gnomon_json_unescape(line + begin, skipped, out), some);
        assert_memory_equal(out, json_string_value(value), (size_t)some);
        before = skipped;
    }
    assert_int_equal(before, end - begin);
}

/* Whether the scanner took it; then jansson must too. */
static int compare(const char *line, size_t length, int *sound)
{
    gnomon_json_member m[] = {{.key = "text"}, {.key = "id"}};
    json_error_t error;
    /* a copy of its own size: a byte read behind it is one too many */
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, line, length);
    const int taken = gnomon_json_scan(copy, (int64_t)length, m, 2);
    json_t *object = json_loadb(copy, length, 0, &error);
    *sound += object != NULL;
    int64_t begin, end;
    if (json_is_object(object)) {
        find(copy, length, object, "text");
        find(copy, length, object, "id");
        find(copy, length, object, "");
    } else {
        (void)gnomon_json_find(copy, (int64_t)length, "text", &begin, &end);
    }
    if (taken) {
        if (object == NULL) fail_msg("jansson refuses %.*s: %s", (int)length, line, error.text);
        same(&m[0], copy, object);
        same(&m[1], copy, object);
    }
    json_decref(object);
    free(copy);
    return taken;
}

static void random_lines(void **unused)
{
    (void)unused;
    enum { LINES = 200000 };
    static char line[ROOM];
    int taken = 0, sound = 0;
    for (int i = 0; i < LINES; i++) {
        make_line(line);
        size_t length = strlen(line);
        for (int changes = below(3) == 0 ? below(3) : 0; changes > 0; changes--) {
            const size_t at = (size_t)below((int)length);
            static const char *const some[] = {"\"", "\\", "{", "}", ",", ":", "1", "\n", "\x80"};
            line[at] = one_of(some, 9)[0];
        }
        if (below(10) == 0) length = (size_t)below((int)length + 1);
        taken += compare(line, length, &sound);
    }
    print_message("%d taken of %d sound ones, of %d lines\n", taken, sound, LINES);
    assert_true(taken > LINES / 5 && taken > sound / 2);
}

static void takes_the_usual(void **unused)
{
    (void)unused;
    static const char *const usual[] = {
        "{\"id\": 1, \"text\": \"a b c\"}",
        "{\"text\":\"a \\\"b\\\" \\u00e9\\n\",\"meta\":{\"url\":\"\\/\",\"t\":[\"a\",1,{}]}}",
        " { \"text\" : \"\xc3\xa4\" , \"score\" : -0.25 } \r",
        "{}",
        "{\"text\": \"first\", \"text\": \"last\", \"id\": null}",
    };
    int sound = 0;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        assert_true(compare(usual[i], strlen(usual[i]), &sound));
    /* deep ones are left to jansson, and don't overflow anything */
    static char deep[ROOM];
    strcpy(deep, "{\"a\":");
    memset(deep + 5, '[', 3000);
    memset(deep + 3005, ']', 3000);
    strcpy(deep + 6005, "}");
    assert_false(compare(deep, strlen(deep), &sound));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_usual),
        cmocka_unit_test(random_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
