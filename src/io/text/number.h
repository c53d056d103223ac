/* io/text/number.h: numbers as decimal text, the same in every locale. */
#ifndef GNOMON_IO_NUMBER_H
#define GNOMON_IO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the longest decimal number that text begins with, looking no further than
 * length bytes, and returns how many bytes it took; 0 when no number stands there.
 *
 * A number is [+-] digits [. digits] [e[+-]digits] with a digit on at least one side of
 * the point, or [+-] nan, inf or infinity in any case. No blanks, no hexadecimal, no
 * grouping. The value is the double nearest to the decimal (ties to even) whatever the
 * number of digits; beyond the range it is infinity or zero, with the sign. */
size_t gnomon_number_prefix(const char *text, size_t length, double *value);

/* The same, but all of the text must be the number. */
bool gnomon_number_parse(const char *text, size_t length, double *value);

/* Reads [+-] digits; returns the bytes taken, 0 when there is no digit or the value
 * does not fit. */
size_t gnomon_integer_prefix(const char *text, size_t length, int64_t *value);

/* The bytes that a printed number takes at most, the final NUL counted. */
enum { GNOMON_NUMBER_TEXT = 32 };

/* out has room for GNOMON_NUMBER_TEXT bytes in all of these. */

/* Print the shortest decimal that reads back as the same value, and of those the
 * nearest; "nan" (without sign), "inf", "-inf", "-0". Plain notation for exponents -5
 * to 15, scientific (1.5e-07) otherwise. Return the length; out ends in NUL. */
size_t gnomon_number_print_f64(double value, char *out);
size_t gnomon_number_print_f32(float value, char *out);

/* The same notation with at most digits (1 to 17) significant digits. */
size_t gnomon_number_print_digits(double value, int digits, char *out);

/* Integers, exactly. */
size_t gnomon_number_print_i64(int64_t value, char *out);
size_t gnomon_number_print_u64(uint64_t value, char *out);

#endif
