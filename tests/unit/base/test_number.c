/* Numbers as text: against the C library on hard and on random cases, in any locale. */
#include "io/text/number.h"
#include "io/text/powers.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t bits64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double from_bits64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float from_bits32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void reads_as(const char *text, double expected)
{
    double value = 0;
    if (!gnomon_number_parse(text, strlen(text), &value) || bits64(value) != bits64(expected))
        fail_msg("'%.60s' reads as %a, expected %a", text, value, expected);
}

static void refused(const char *text)
{
    double value;
    if (gnomon_number_parse(text, strlen(text), &value)) fail_msg("'%s' was taken", text);
}

static void hard_values(void **unused)
{
    (void)unused;
    reads_as("0", 0.0);
    reads_as("-0", -0.0);
    reads_as("-0.000e999999999999999999999", -0.0);
    reads_as("+1", 1.0);
    reads_as(".5", 0.5);
    reads_as("5.", 5.0);
    reads_as("00000000000000000000000000000000001", 1.0);
    reads_as("0.00000000000000000000000000000000001", 1e-35);
    reads_as("1e400", HUGE_VAL);
    reads_as("-1e400", -HUGE_VAL);
    reads_as("1e-400", 0.0);
    reads_as("1e99999999999999999999999", HUGE_VAL);
    reads_as("1e-99999999999999999999999", 0.0);
    reads_as("1.7976931348623157e308", 0x1.fffffffffffffp+1023);
    reads_as("1.7976931348623158e308", 0x1.fffffffffffffp+1023);
    reads_as("1.7976931348623159e308", HUGE_VAL);
    reads_as("4.9406564584124654e-324", 0x1p-1074);
    reads_as("2.4703282292062327208e-324", 0.0);
    reads_as("2.4703282292062327209e-324", 0x1p-1074);
    reads_as("2.2250738585072011e-308", 0x0.fffffffffffffp-1022);
    reads_as("2.2250738585072014e-308", 0x1p-1022);
    /* halfway between neighbours: to even, and off by the least digit */
    reads_as("9007199254740993", 9007199254740992.0);
    reads_as("9007199254740993.0000000000000000000000000000000000000000001", 9007199254740994.0);
    reads_as("9007199254740995", 9007199254740996.0);
    reads_as("1.00000000000000011102230246251565404236316680908203125", 1.0);
    reads_as("1.00000000000000011102230246251565404236316680908203124", 1.0);
    reads_as("1.00000000000000011102230246251565404236316680908203126", 0x1.0000000000001p+0);
    reads_as("18446744073709551615", 18446744073709551615.0);
    reads_as("18446744073709551616", 18446744073709551616.0);
    reads_as("6929495644600919.5", 6929495644600919.5);
    reads_as("3.518437208883201171875e13", 0x1.0000000000002p+45);
    /* names */
    reads_as("inf", HUGE_VAL);
    reads_as("-Infinity", -HUGE_VAL);
    reads_as("+INF", HUGE_VAL);
    double value = 0;
    assert_true(gnomon_number_parse("NaN", 3, &value) && isnan(value));
    assert_true(gnomon_number_parse("-nan", 4, &value) && isnan(value));
}

static void long_digit_strings(void **unused)
{
    (void)unused;
    enum { LENGTH = 1000000 };
    char *text = malloc(LENGTH + 8);
    assert_non_null(text);
    /* 1 + 2^-53 exactly, then zeros, then a digit that decides */
    const char *half = "1.00000000000000011102230246251565404236316680908203125";
    size_t head = strlen(half);
    memcpy(text, half, head);
    memset(text + head, '0', LENGTH - head);
    text[LENGTH] = '\0';
    reads_as(text, 1.0);
    text[LENGTH - 1] = '1';
    reads_as(text, 0x1.0000000000001p+0);
    /* a million digits before the point and an exponent that takes them back */
    memset(text, '0', LENGTH);
    text[0] = '3';
    memcpy(text + LENGTH - 8, "e-999990", 9);
    reads_as(text, 3e1);
    memset(text, '0', LENGTH);
    text[1] = '.';
    memcpy(text + LENGTH - 9, "7e999990", 9);
    reads_as(text, 7e0);
    free(text);
}

static void what_is_no_number(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"",    "-",    "+",    ".",       "-.",  "e5",    ".e5",
                                      "1e",  "1e+",  "1.e-", "0x10",    "1,5", " 1",    "1 ",
                                      "--1", "+-1",  "1f",   "na",      "in",  "infin", "nan(1)",
                                      "1_0", "1e5.", "1..2", "\xD9\xA1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(bad[i]);
    double value;
    assert_false(gnomon_number_parse("1\0", 2, &value));
    /* the longest beginning that is a number */
    assert_int_equal(gnomon_number_prefix("1.5e,", 5, &value), 3);
    assert_true(value == 1.5);
    assert_int_equal(gnomon_number_prefix("12345", 2, &value), 2);
    assert_true(value == 12);
    assert_int_equal(gnomon_number_prefix("1e5", 2, &value), 1);
    assert_int_equal(gnomon_number_prefix("infinity", 5, &value), 3);
}

static void integers(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        size_t taken;
        int64_t value;
    } cases[] = {
        {"0", 1, 0},
        {"-0", 2, 0},
        {"+7x", 2, 7},
        {"9223372036854775807", 19, INT64_MAX},
        {"9223372036854775808", 0, 0},
        {"-9223372036854775808", 20, INT64_MIN},
        {"-9223372036854775809", 0, 0},
        {"99999999999999999999", 0, 0},
        {"", 0, 0},
        {"-", 0, 0},
        {"x", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 0;
        assert_int_equal(gnomon_integer_prefix(cases[i].text, strlen(cases[i].text), &value),
                         cases[i].taken);
        assert_true(value == cases[i].value);
    }
    char text[GNOMON_NUMBER_TEXT];
    gnomon_number_print_i64(INT64_MIN, text);
    assert_string_equal(text, "-9223372036854775808");
    gnomon_number_print_i64(-7, text);
    assert_string_equal(text, "-7");
    gnomon_number_print_u64(UINT64_MAX, text);
    assert_string_equal(text, "18446744073709551615");
    gnomon_number_print_u64(0, text);
    assert_string_equal(text, "0");
}

static void like_strtod(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        double value = from_bits64(random_bits());
        if (!isfinite(value)) continue;
        char text[800];
        snprintf(text, sizeof text, "%.*e", (int)(random_bits() % 30), value);
        reads_as(text, strtod(text, NULL));
        /* any 19 digits, any exponent */
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)(random_bits() >> (i % 64)),
                 (int)(random_bits() % 700) - 360);
        reads_as(text, strtod(text, NULL));
        if (i % 50 != 0) continue;
        /* exactly halfway to the next double, and one unit of the last digit beside it */
        double next = nextafter(value, 0);
        long double middle = ((long double)value + (long double)next) / 2;
        snprintf(text, sizeof text, "%.770Le", middle);
        reads_as(text, strtod(text, NULL));
        char *last = strchr(text, 'e') - 1;
        *last = (char)(*last == '9' ? '8' : *last + 1);
        reads_as(text, strtod(text, NULL));
    }
}

/* Halfway values whose trailing zeros come with a negative exponent. */
static void halfway_with_zeros(void **unused)
{
    (void)unused;
    static const uint64_t powers[] = {1, 10, 100, 1000};
    for (int i = 0; i < 100000; i++) {
        uint64_t odd = (uint64_t)1 << 53 | random_bits() >> 11 | 1;
        char text[64];
        snprintf(text, sizeof text, "%llue-%d", (unsigned long long)(odd * powers[i % 4]), i % 4);
        reads_as(text, strtod(text, NULL));
    }
}

/* How many significant digits the C library needs to print value so that it reads back. */
static int digits_needed(double value, bool single)
{
    char text[64];
    for (int digits = 1; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            return digits;
    }
    return 17;
}

static int digits_in(const char *text)
{
    char kept[GNOMON_NUMBER_TEXT];
    int count = 0;
    for (; *text != '\0' && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9' && (count > 0 || *text != '0')) kept[count++] = *text;
    while (count > 0 && kept[count - 1] == '0')
        count--;
    return count;
}

static void shortest_f64(void **unused)
{
    (void)unused;
    for (int i = 0; i < 300000; i++) {
        uint64_t bits = random_bits();
        if (i % 5 == 1) bits &= ~(uint64_t)0 << (i % 53);                         /* few bits set */
        if (i % 5 == 2) bits &= ((uint64_t)1 << (1 + i % 52)) - 1;                /* subnormal */
        if (i % 5 == 3) bits = bits64((double)(random_bits() >> (i % 64)) / 100); /* money */
        double value = from_bits64(bits);
        if (!isfinite(value) || value == 0) continue;
        char text[GNOMON_NUMBER_TEXT];
        size_t length = gnomon_number_print_f64(value, text);
        assert_int_equal(length, strlen(text));
        reads_as(text, value);
        assert_true(strtod(text, NULL) == value);
        if (i % 10 != 0) continue;
        int needed = digits_needed(value, false);
        if (digits_in(text) > needed) fail_msg("%a is printed as %s", value, text);
        char near[64];
        snprintf(near, sizeof near, "%.*e", needed - 1, value);
        if (digits_in(text) == needed)
            assert_true(fabs(strtod(text, NULL) - value) <= fabs(strtod(near, NULL) - value));
    }
}

static void shortest_f32(void **unused)
{
    (void)unused;
    for (uint32_t i = 0; i < 400000; i++) {
        float value = from_bits32(i * 10739u);
        if (i % 2 == 1) value = from_bits32((uint32_t)random_bits());
        if (!isfinite(value) || value == 0) continue;
        char text[GNOMON_NUMBER_TEXT];
        gnomon_number_print_f32(value, text);
        double read = 0;
        assert_true(gnomon_number_parse(text, strlen(text), &read));
        if (bits32((float)read) != bits32(value) || strtof(text, NULL) != value)
            fail_msg("%a is printed as %s", (double)value, text);
        if (i % 8 == 0 && digits_in(text) > digits_needed((double)value, true))
            fail_msg("%a is printed as %s", (double)value, text);
    }
}

static void notation(void **unused)
{
    (void)unused;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {100, "100"},
        {123456789, "123456789"},
        {1e15, "1000000000000000"},
        {1e16, "1e+16"},
        {1.25e-5, "0.0000125"},
        {1.25e-6, "1.25e-06"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {2.0 / 3, "0.6666666666666666"},
        {9007199254740993.0, "9007199254740992"},
        {HUGE_VAL, "inf"},
        {-HUGE_VAL, "-inf"},
        {(double)NAN, "nan"},
    };
    char text[GNOMON_NUMBER_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = gnomon_number_print_f64(cases[i].value, text);
        assert_int_equal(length, strlen(cases[i].text));
        assert_string_equal(text, cases[i].text);
    }
    gnomon_number_print_f32(0.1f, text);
    assert_string_equal(text, "0.1");
    gnomon_number_print_f32(0x1p-149f, text);
    assert_string_equal(text, "1e-45");
    gnomon_number_print_f32(0x1.fffffep+127f, text);
    assert_string_equal(text, "3.4028235e+38");
    gnomon_number_print_digits(2.0 / 3, 3, text);
    assert_string_equal(text, "0.667");
    gnomon_number_print_digits(-123456.0, 2, text);
    assert_string_equal(text, "-120000");
    gnomon_number_print_digits(999.96, 4, text);
    assert_string_equal(text, "1000");
    gnomon_number_print_digits(0.1, 17, text);
    assert_string_equal(text, "0.10000000000000001");
    gnomon_number_print_digits(0.0, 5, text);
    assert_string_equal(text, "0");
}

/* 10^q in 128 bits, made by long multiplication and division of 1200-bit numbers. */
static void table_of_powers(void **unused)
{
    (void)unused;
    enum { WORDS = 40, TOP = WORDS * 32 };
    for (int q = POWER_MIN; q <= POWER_MAX; q++) {
        uint32_t big[WORDS] = {0};
        if (q >= 0) {
            big[0] = 1;
            for (int k = 0; k < q; k++) {
                uint64_t carry = 0;
                for (int w = 0; w < WORDS; w++) {
                    carry += (uint64_t)big[w] * 10;
                    big[w] = (uint32_t)carry;
                    carry >>= 32;
                }
            }
        } else {
            /* a floor of floors of quotients is the floor of the whole quotient */
            big[WORDS - 1] = 0x80000000u;
            for (int k = 0; k < -q; k++) {
                uint64_t rest = 0;
                for (int w = WORDS - 1; w >= 0; w--) {
                    rest = rest << 32 | big[w];
                    big[w] = (uint32_t)(rest / 10);
                    rest %= 10;
                }
            }
        }
        int top = TOP - 1;
        while ((big[top / 32] >> (top % 32) & 1) == 0)
            top--;
        uint64_t half[2] = {0, 0};
        for (int b = 0; b < 128; b++) {
            int at = top - b;
            uint64_t bit = at >= 0 ? big[at / 32] >> (at % 32) & 1 : 0;
            half[b / 64] = half[b / 64] << 1 | bit;
        }
        if (half[0] != powers_of_ten[q - POWER_MIN][0] ||
            half[1] != powers_of_ten[q - POWER_MIN][1])
            fail_msg("10^%d is wrong in the table", q);
    }
}

/* A locale whose point is a comma: one of the system's, else one made for this test, as the
 * GNU C library's binary form of LC_NUMERIC. */
static bool use_comma_locale(char folder[64])
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "fr_FR.UTF-8",
                                        "fr_FR.utf8",  "pl_PL.UTF-8", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_NUMERIC, names[i]) != NULL) return true;
#ifdef __GLIBC__
    static const uint32_t header[] = {0x20031115 ^ LC_NUMERIC, 6, 32, 34, 36, 40, 44, 48};
    static const char data[] = ",\0.\0\0\0\0\0,\0\0\0.\0\0\0UTF-8";
    char path[96];
    strcpy(folder, "/tmp/gnomon_locale_XXXXXX");
    if (mkdtemp(folder) == NULL) return false;
    snprintf(path, sizeof path, "%s/comma", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    fwrite(header, sizeof header, 1, file);
    fwrite(data, sizeof data, 1, file);
    fclose(file);
    setenv("LOCPATH", folder, 1);
    bool taken = setlocale(LC_NUMERIC, "comma") != NULL;
    unsetenv("LOCPATH");
    unlink(path);
    snprintf(path, sizeof path, "%s/comma", folder);
    rmdir(path);
    rmdir(folder);
    return taken;
#else
    return false;
#endif
}

static void comma_locale(void **unused)
{
    (void)unused;
    char folder[64] = "";
    if (!use_comma_locale(folder)) {
        print_message("no locale with a decimal comma can be had\n");
        skip();
    }
    char text[GNOMON_NUMBER_TEXT];
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5"); /* the locale does what it is here for */
    reads_as("1.5", 1.5);
    reads_as("1.00000000000000011102230246251565404236316680908203126", 0x1.0000000000001p+0);
    refused("1,5");
    gnomon_number_print_f64(1.5, text);
    assert_string_equal(text, "1.5");
    gnomon_number_print_f32(2.5e-30f, text);
    assert_string_equal(text, "2.5e-30");
    gnomon_number_print_digits(2.0 / 3, 4, text);
    assert_string_equal(text, "0.6667");
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hard_values),  cmocka_unit_test(long_digit_strings),
        cmocka_unit_test(integers),     cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(like_strtod),  cmocka_unit_test(halfway_with_zeros),
        cmocka_unit_test(shortest_f64), cmocka_unit_test(shortest_f32),
        cmocka_unit_test(notation),     cmocka_unit_test(table_of_powers),
        cmocka_unit_test(comma_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
