/* The list of formats: every row is whole, and what is made of the rows agrees with them. */
#include "io/format.h"
#include "io_text.h"

static bool has_word(const char *words, const char *word, const char *between)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(words, word); at != NULL; at = strstr(at + 1, word))
        if ((at == words || strchr(between, at[-1]) != NULL) &&
            (at[n] == '\0' || strchr(between, at[n]) != NULL))
            return true;
    return false;
}

static void rows_are_whole(void **unused)
{
    (void)unused;
    const gnomon_format *format;
    int count = 0;
    for (; (format = gnomon_format_at(count)) != NULL; count++) {
        assert_ptr_equal(gnomon_format_find(format->name), format);
        assert_true(strlen(format->name) <= 12); /* a column of gnomon info */
        assert_true(strlen(format->about) > 8);
        assert_true(strlen(format->endings) > 1);
        assert_true((format->holds & (GNOMON_HOLDS_DENSE | GNOMON_HOLDS_SPARSE)) != 0);
        assert_non_null(format->open);
        assert_true(format->member == NULL || strlen(format->member) > 1);
        if (format->writes != 0) assert_non_null(format->create);
        assert_true(has_word(gnomon_format_names(), format->name, ", "));
        for (int other = 0; other < count; other++)
            assert_string_not_equal(gnomon_format_at(other)->name, format->name);
    }
    assert_true(count >= 16);
    assert_null(gnomon_format_at(-1));
    assert_null(gnomon_format_find("npyx"));
}

/* No ending stands for two formats, or is hidden by another's. */
static void endings_are_found(void **unused)
{
    (void)unused;
    const gnomon_format *format;
    for (int i = 0; (format = gnomon_format_at(i)) != NULL; i++) {
        for (const char *at = format->endings; *at != '\0'; at += strspn(at, " ")) {
            char name[64];
            const int n = (int)strcspn(at, " ");
            assert_true(*at == '.' || *at == '-');
            snprintf(name, sizeof name, "folder/x%.*s", n, at);
            assert_ptr_equal(gnomon_format_by_ending(name, false), format);
            static const char *const packed[] = {".gz", ".zst"};
            for (int p = 0; p < 2; p++) {
                snprintf(name, sizeof name, "folder/x%.*s%s", n, at, packed[p]);
                assert_ptr_equal(gnomon_format_by_ending(name, true), format);
                assert_null(gnomon_format_by_ending(name, false));
            }
            at += n;
        }
    }
    assert_ptr_equal(gnomon_format_by_ending("X.NPY", false), gnomon_format_find("npy"));
    assert_null(gnomon_format_by_ending(".npy", false)); /* a hidden file of that name */
    assert_null(gnomon_format_by_ending("x.unknown", false));
    assert_string_equal(gnomon_unknown_ending("a.npy/x.unknown"), ".unknown");
    assert_null(gnomon_unknown_ending("x.npy"));
}

static void rows_are_described(void **unused)
{
    (void)unused;
    const gnomon_format *format;
    int i = 0, can_write;
    for (; (format = gnomon_format_at(i)) != NULL; i++) {
        gnomon_format_info info = {.struct_size = sizeof info};
        assert_int_equal(gnomon_format_describe(i, &info), GNOMON_OK);
        assert_string_equal(info.name, gnomon_format_name(i, &can_write));
        assert_int_equal(info.writes != 0, can_write);
        assert_int_equal(info.writes, format->writes);
        assert_string_equal(info.endings, format->endings);
        assert_string_equal(info.about, format->about);
        assert_string_equal(info.member, format->member != NULL ? format->member : "");
        assert_int_equal(info.holds, format->holds);
        assert_int_equal(info.takes, format->takes);
        int holds = -1;
        assert_string_equal(gnomon_format_for("x", format->name, &holds), format->name);
        assert_int_equal(holds, format->holds);
    }
    gnomon_format_info info = {.struct_size = sizeof info};
    assert_int_equal(gnomon_format_describe(i, &info), GNOMON_ERROR_ARGUMENT);
    assert_non_null(strstr(gnomon_last_error(NULL), "allowed are 0 to"));
    assert_int_equal(gnomon_format_describe(-1, &info), GNOMON_ERROR_ARGUMENT);
    assert_int_equal(gnomon_format_describe(0, NULL), GNOMON_ERROR_ARGUMENT);
    /* a caller that knows the first two members alone */
    gnomon_format_info few = {.struct_size = offsetof(gnomon_format_info, about), .about = "kept"};
    assert_int_equal(gnomon_format_describe(0, &few), GNOMON_OK);
    assert_string_equal(few.name, "npy");
    assert_string_equal(few.about, "kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole),
        cmocka_unit_test(endings_are_found),
        cmocka_unit_test(rows_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
