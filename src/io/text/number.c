#include "io/text/number.h"

#include "io/text/powers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 u128;

/* ---- reading ---- */

/* A decimal as its text gave it: digits[0, count) times 10^exponent, where the first
 * 19 significant digits are in mantissa and the rest only counted. */
typedef struct decimal {
    bool negative;
    uint64_t mantissa;
    int64_t exponent;  /* of mantissa's last digit */
    bool cut;          /* a nonzero digit lies beyond the 19 */
    const char *first; /* the first significant digit, and the end of the digits */
    const char *last;
} decimal;

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static bool same_word(const char *text, const char *end, const char *word)
{
    for (; *word != '\0'; text++, word++)
        if (text == end || (*text | 0x20) != *word) return false;
    return true;
}

static size_t named_value(const char *start, const char *p, const char *end, bool negative,
                          double *value)
{
    if (same_word(p, end, "nan")) {
        *value = negative ? -(double)NAN : (double)NAN;
        p += 3;
    } else if (same_word(p, end, "inf")) {
        *value = negative ? -(double)INFINITY : (double)INFINITY;
        p += same_word(p, end, "infinity") ? 8 : 3;
    } else {
        return 0;
    }
    return (size_t)(p - start);
}

/* The nearest double to mantissa * 10^exponent by one or two 64-bit products with a
 * truncated power (Lemire 2021). False when the truncation leaves the rounding open. */
static bool nearest_double(uint64_t mantissa, int64_t exponent, double *value)
{
    if (mantissa == 0 || exponent < POWER_MIN) {
        *value = 0.0;
        return true;
    }
    if (exponent > 308) {
        *value = (double)INFINITY;
        return true;
    }
    int zeros = __builtin_clzll(mantissa);
    uint64_t w = mantissa << zeros;
    const uint64_t *power = powers_of_ten[exponent - POWER_MIN];
    u128 product = (u128)w * power[0];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    if ((high & 0x1FF) == 0x1FF) { /* what the lower half would add could carry up */
        /* of a power that divides a 64-bit number the upper bound is taken, so that what is
           exactly halfway shows as such */
        uint64_t second = power[1] + (exponent < 0 && exponent >= -27);
        uint64_t more = (uint64_t)(((u128)w * second) >> 64);
        low += more;
        if (low < more) high++;
        if (low == UINT64_MAX && (exponent < -27 || exponent > 55)) return false;
    }
    int upper = (int)(high >> 63);
    uint64_t m = high >> (upper + 9); /* 54 bits: 53 and the rounding one */
    int binary = (int)((217706 * exponent) >> 16) + 63 + upper - zeros + 1023;
    if (binary <= 0) { /* subnormal */
        if (binary < -62) {
            *value = 0.0;
            return true;
        }
        m >>= 1 - binary;
        m = (m + (m & 1)) >> 1;
    } else {
        /* Exactly halfway, which only small powers can be: to even. */
        if (low <= 1 && exponent >= -4 && exponent <= 23 && (m & 3) == 1 &&
            m << (upper + 9) == high)
            m &= ~(uint64_t)1;
        m = (m + (m & 1)) >> 1;
        /* the hidden bit, when set, adds one to the exponent field; so does a carry */
        m += (uint64_t)(binary - 1) << 52;
        if (m >= (uint64_t)0x7FF << 52) m = (uint64_t)0x7FF << 52;
    }
    memcpy(value, &m, sizeof m);
    return true;
}

/* Any number of digits, through the C library's exact conversion. Its input is digits and
 * an exponent without a point, which reads the same in every locale. Beyond 800 digits only
 * whether any is nonzero can matter: a halfway value has at most 767. */
static double exact_double(const decimal *d)
{
    enum { KEEP = 800 };
    char text[KEEP + 32];
    int count = 0;
    bool tail = false;
    for (const char *p = d->first; p < d->last; p++) {
        if (*p == '.') continue;
        if (count < KEEP)
            text[count++] = *p;
        else
            tail |= *p != '0';
    }
    /* mantissa's exponent counts from the 19th digit; these are count digits */
    int64_t exponent = d->exponent - (count > 19 ? count - 19 : 0);
    if (tail) {
        text[count++] = '1';
        exponent--;
    }
    if (exponent > 9999) exponent = 9999;
    if (exponent < -9999) exponent = -9999;
    snprintf(text + count, sizeof text - (size_t)count, "e%d", (int)exponent);
    return strtod(text, NULL);
}

static double decimal_value(const decimal *d)
{
    static const double small[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value;
    if (!d->cut && d->mantissa <= (uint64_t)1 << 53 && d->exponent >= -22 && d->exponent <= 22) {
        /* Both are exact doubles, so one rounding is the right one (Clinger 1990). */
        value = (double)d->mantissa;
        value = d->exponent < 0 ? value / small[-d->exponent] : value * small[d->exponent];
    } else {
        double above;
        bool sure = nearest_double(d->mantissa, d->exponent, &value);
        if (sure && d->cut)
            sure = nearest_double(d->mantissa + 1, d->exponent, &above) && above == value;
        if (!sure) value = exact_double(d);
    }
    return d->negative ? -value : value;
}

size_t gnomon_number_prefix(const char *text, size_t length, double *value)
{
    const char *p = text, *end = text + length;
    decimal d = {0};
    if (p < end && (*p == '-' || *p == '+')) d.negative = *p++ == '-';
    if (p < end && !is_digit(*p) && *p != '.') return named_value(text, p, end, d.negative, value);

    const char *digits = p;
    while (p < end && *p == '0')
        p++;
    bool any = p > digits;
    int consumed = 0;
    int64_t beyond = 0; /* integer digits after the 19th */
    d.first = p;
    for (; p < end && is_digit(*p); p++) {
        if (consumed < 19) {
            d.mantissa = d.mantissa * 10 + (uint64_t)(*p - '0');
            consumed++;
        } else {
            beyond++;
            d.cut |= *p != '0';
        }
    }
    any |= p > d.first;
    int64_t behind = 0; /* digits of mantissa that stand behind the point */
    if (p < end && *p == '.') {
        const char *fraction = ++p;
        if (consumed == 0) {
            while (p < end && *p == '0')
                p++;
            behind = p - fraction;
            d.first = p;
        }
        for (; p < end && is_digit(*p); p++) {
            if (consumed < 19) {
                d.mantissa = d.mantissa * 10 + (uint64_t)(*p - '0');
                consumed++;
                behind++;
            } else {
                d.cut |= *p != '0';
            }
        }
        any |= p > fraction;
    }
    if (!any) return 0;
    d.last = p;
    d.exponent = beyond - behind;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const char *e = p + 1;
        bool negative = false;
        if (e < end && (*e == '-' || *e == '+')) negative = *e++ == '-';
        if (e < end && is_digit(*e)) {
            int64_t written = 0;
            for (; e < end && is_digit(*e); e++)
                if (written < (int64_t)1 << 58) written = written * 10 + (*e - '0');
            d.exponent += negative ? -written : written;
            p = e;
        }
    }
    *value = decimal_value(&d);
    return (size_t)(p - text);
}

bool gnomon_number_parse(const char *text, size_t length, double *value)
{
    return length > 0 && gnomon_number_prefix(text, length, value) == length;
}

size_t gnomon_integer_prefix(const char *text, size_t length, int64_t *value)
{
    const char *p = text, *end = text + length;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+')) negative = *p++ == '-';
    const char *digits = p;
    uint64_t limit = negative ? (uint64_t)1 << 63 : INT64_MAX, v = 0;
    for (; p < end && is_digit(*p); p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (limit - digit) / 10) return 0;
        v = v * 10 + digit;
    }
    if (p == digits) return 0;
    *value = negative ? (int64_t)(0 - v) : (int64_t)v;
    return (size_t)(p - text);
}

/* ---- printing ---- */

/* Decimal digits and the exponent of their last one. */
typedef struct digits {
    uint64_t digits;
    int exponent;
} digits;

/* The product's upper part, with the lowest bit set when anything lies below it: enough
 * to compare it with a multiple of 2. */
static uint64_t round_to_odd(u128 power, uint64_t factor)
{
    u128 low = ((u128)(uint64_t)power * factor) >> 64;
    u128 sum = (u128)(uint64_t)(power >> 64) * factor + low;
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/* The shortest decimal inside the rounding interval of c * 2^q, the nearest of those; the
 * interval's lower half is narrower when c is the least of its binade (Giulietti 2020). */
static digits shortest(uint64_t c, int q, bool least)
{
    bool odd = (c & 1) != 0;
    uint64_t middle = 4 * c, right = middle + 2, left = least ? middle - 1 : middle - 2;
    /* floor(log10(2^q)), or of three quarters of it */
    int k = least ? (q * 1262611 - 524031) >> 22 : (q * 1262611) >> 22;
    int h = q + ((-k * 217706) >> 16) + 1;
    const uint64_t *entry = powers_of_ten[-k - POWER_MIN];
    u128 power = ((u128)entry[0] << 64 | entry[1]) + 1;
    uint64_t v = round_to_odd(power, middle << h);
    uint64_t low = round_to_odd(power, left << h) + odd;
    uint64_t high = round_to_odd(power, right << h) - odd;

    uint64_t s = v / 4;
    if (s >= 10) { /* one digit fewer, when exactly one such decimal is inside */
        uint64_t tens = s / 10;
        bool down = low <= 40 * tens, up = 40 * tens + 40 <= high;
        if (down != up) return (digits){tens + up, k + 1};
    }
    bool down = low <= 4 * s, up = 4 * s + 4 <= high;
    if (down != up) return (digits){s + up, k};
    uint64_t half = 4 * s + 2;
    bool round_up = v > half || (v == half && (s & 1) != 0);
    return (digits){s + round_up, k};
}

/* Digits before the point, behind it, or with an exponent. */
static size_t lay_out(digits d, char *out)
{
    char text[GNOMON_NUMBER_TEXT];
    while (d.digits != 0 && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    int count = (int)gnomon_number_print_u64(d.digits, text);
    int leading = count - 1 + d.exponent; /* the exponent of the first digit */
    char *p = out;
    if (leading < -5 || leading > 15) {
        *p++ = text[0];
        if (count > 1) *p++ = '.';
        memcpy(p, text + 1, (size_t)(count - 1));
        p += count - 1;
        p += sprintf(p, "e%c%02d", leading < 0 ? '-' : '+', leading < 0 ? -leading : leading);
    } else if (leading < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > leading; i--)
            *p++ = '0';
        memcpy(p, text, (size_t)count);
        p += count;
    } else {
        for (int i = 0; i < count || i <= leading; i++) {
            if (i == leading + 1) *p++ = '.';
            *p++ = i < count ? text[i] : '0';
        }
    }
    *p = '\0';
    return (size_t)(p - out);
}

/* Sign, zero, infinity and nan; 0 when value is none of those, else the length. *start is
 * where the digits go. */
static size_t special(double value, char *out, char **start)
{
    *start = out;
    if (isnan(value)) return (size_t)(stpcpy(out, "nan") - out);
    if (signbit(value)) *(*start)++ = '-';
    if (isinf(value)) return (size_t)(stpcpy(*start, "inf") - out);
    if (value == 0) return (size_t)(stpcpy(*start, "0") - out);
    return 0;
}

size_t gnomon_number_print_f64(double value, char *out)
{
    char *start;
    size_t length = special(value, out, &start);
    if (length > 0) return length;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t c = bits & (((uint64_t)1 << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7FF);
    digits d = exponent == 0
                   ? shortest(c, -1074, false)
                   : shortest(c | (uint64_t)1 << 52, exponent - 1075, c == 0 && exponent > 1);
    return (size_t)(start - out) + lay_out(d, start);
}

size_t gnomon_number_print_f32(float value, char *out)
{
    char *start;
    size_t length = special((double)value, out, &start);
    if (length > 0) return length;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t c = bits & (((uint32_t)1 << 23) - 1);
    int exponent = (int)(bits >> 23 & 0xFF);
    digits d = exponent == 0
                   ? shortest(c, -149, false)
                   : shortest(c | (uint32_t)1 << 23, exponent - 150, c == 0 && exponent > 1);
    return (size_t)(start - out) + lay_out(d, start);
}

size_t gnomon_number_print_digits(double value, int count, char *out)
{
    char *start;
    size_t length = special(value, out, &start);
    if (length > 0) return length;
    /* "d<point>ddd...e+xx": the point may be any bytes in another locale, so the digits
     * are picked out one by one. */
    char text[64];
    snprintf(text, sizeof text, "%.*e", count - 1, fabs(value));
    digits d = {0, 0};
    const char *p = text;
    for (; *p != 'e'; p++)
        if (is_digit(*p)) d.digits = d.digits * 10 + (uint64_t)(*p - '0');
    d.exponent = atoi(p + 1) - (count - 1);
    return (size_t)(start - out) + lay_out(d, start);
}

size_t gnomon_number_print_u64(uint64_t value, char *out)
{
    char text[20];
    int at = 20;
    do {
        text[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    memcpy(out, text + at, (size_t)(20 - at));
    out[20 - at] = '\0';
    return (size_t)(20 - at);
}

size_t gnomon_number_print_i64(int64_t value, char *out)
{
    if (value >= 0) return gnomon_number_print_u64((uint64_t)value, out);
    out[0] = '-';
    return 1 + gnomon_number_print_u64(0 - (uint64_t)value, out + 1);
}
