/* Numbers as text, against the C library. */
#include "io/text/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(double a, double b)
{
    if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b))) {
        fprintf(stderr, "%a is not %a\n", a, b);
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double value = 0;
    size_t taken = gnomon_number_prefix((const char *)data, size, &value);
    if (taken > size) abort();
    if (taken > 0) {
        char *text = malloc(taken + 1), *end;
        if (text == NULL) return 0;
        memcpy(text, data, taken);
        text[taken] = '\0';
        same(value, strtod(text, &end));
        if (*end != '\0') abort();
        free(text);
    } else if (size > 0 && isdigit(data[0])) {
        abort();
    }
    int64_t integer;
    if (gnomon_integer_prefix((const char *)data, size, &integer) > size) abort();
    if (size < sizeof value) return 0;
    char text[GNOMON_NUMBER_TEXT];
    double back = 0;
    memcpy(&value, data, sizeof value);
    if (gnomon_number_print_f64(value, text) >= sizeof text) abort();
    if (!gnomon_number_parse(text, strlen(text), &back)) abort();
    same(back, value);
    float single, single_back;
    memcpy(&single, data, sizeof single);
    gnomon_number_print_f32(single, text);
    if (!gnomon_number_parse(text, strlen(text), &back)) abort();
    single_back = (float)back;
    same((double)single_back, (double)single);
    if (gnomon_number_print_digits(value, 1 + data[0] % 17, text) >= sizeof text) abort();
    return 0;
}
