/* The standard normal law in small binary floating-point formats eXmY (X bits of exponent, Y of
 * mantissa, subnormals, the highest exponent for infinity and NaN), rounded to nearest: after
 * section 3.2 of Ootomo & Yokota 2023. Everything is a sum of exact probabilities, no sample. */
#ifndef GNOMON_BENCH_LAW_H
#define GNOMON_BENCH_LAW_H

#include <stdbool.h>

typedef struct format {
    const char *name;
    int exponent, mantissa; /* X in 2 ... 8, Y in 0 ... 23 */
    bool finite; /* OCP's E4M3: the highest exponent holds numbers too, its last mantissa is NaN */
} format;

double law_largest(const format *f);
double law_least_normal(const format *f);
double law_least_subnormal(const format *f);

/* Rounded to nearest, ties to even; what is beyond the largest number becomes infinite. */
double law_round(const format *f, double g);

/* ln P(|N| > x), also where the probability is below any double; x > 0. */
double law_log_tail(double x);
/* P(|N| < x), with full relative accuracy for the smallest x. */
double law_within(double x);

typedef struct law {
    double log10_overflow; /* rounding gives infinity: beyond the largest number + half a step */
    double underflow;      /* rounding gives 0: at most half the least subnormal number */
    double subnormal;      /* rounding gives a subnormal number or 0 */
    /* The paper's definitions, its two-sided equations: without the rounding */
    double paper_log10_overflow; /* equations 15 and 16, the largest number taken as half of it */
    double paper_underflow, paper_not_normal; /* within the least subnormal, normal number */
    double values[3]; /* different values in (-1, 1), (-2, 2), (-4, 4), zero once */
} law;

law law_of(const format *f);

/* E (round(N))^2 - 1, overflow aside, by summing over all values; relative accuracy about 1e-9
 * however small it is. For Y up to 16, as there are 2^Y values a binade. */
double law_variance_excess(const format *f);
/* The same by the paper's sum, in which every interval reaches half a step to both sides, also
 * at powers of two, where the step below is half as wide; normal numbers only. */
double law_paper_variance_excess(const format *f);
/* The entropy in bits of the rounded number: 2^entropy values equally likely would tell as much. */
double law_entropy(const format *f);

#endif
