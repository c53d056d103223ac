#include "quality/gamma.h"

#include <math.h>

/* ln(x^a e^-x / Gamma(a)) */
static double log_front(double a, double x)
{
    int sign;
    return a * log(x) - x - lgamma_r(a, &sign);
}

/* ln P(a, x) by the power series, good for x < a + 1. */
static double log_lower_series(double a, double x)
{
    double term = 1.0 / a, sum = term;
    for (double n = a + 1; term > sum * 1e-17; n += 1) {
        term *= x / n;
        sum += term;
    }
    return log_front(a, x) + log(sum);
}

/* ln Q(a, x) by the continued fraction (Lentz's method), good for x >= a + 1. */
static double log_upper_fraction(double a, double x)
{
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (double i = 1; i < 1e7; i += 1) {
        const double an = -i * (i - a);
        b += 2;
        d = an * d + b;
        if (fabs(d) < tiny) d = tiny;
        c = b + an / c;
        if (fabs(c) < tiny) c = tiny;
        d = 1 / d;
        h *= d * c;
        if (fabs(d * c - 1) < 1e-15) break;
    }
    return log_front(a, x) + log(h);
}

/* ln(1 - e^l) for l <= 0 */
static double log_complement(double l)
{
    return l > -0.7 ? log(-expm1(l)) : log1p(-exp(l));
}

double gnomon_chi2_log_below(double k, double x)
{
    const double a = k / 2, t = x / 2;
    return t < a + 1 ? log_lower_series(a, t) : log_complement(log_upper_fraction(a, t));
}

double gnomon_chi2_log_above(double k, double x)
{
    const double a = k / 2, t = x / 2;
    return t < a + 1 ? log_complement(log_lower_series(a, t)) : log_upper_fraction(a, t);
}
