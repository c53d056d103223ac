#include "law.h"

#include <math.h>

static const double root_half = 0.70710678118654752440, root_2pi = 2.5066282746310005024;
/* No double's probability reaches so far: P(|N| > 40) < 1e-349. */
enum { FARTHEST = 6 };

static int bias(const format *f)
{
    return (1 << (f->exponent - 1)) - 1;
}

static int highest(const format *f)
{
    return bias(f) + (f->finite ? 1 : 0);
}

double law_largest(const format *f)
{
    return ldexp(2 - ldexp(f->finite ? 2 : 1, -f->mantissa), highest(f));
}

double law_least_normal(const format *f)
{
    return ldexp(1, 1 - bias(f));
}

double law_least_subnormal(const format *f)
{
    return ldexp(1, 1 - bias(f) - f->mantissa);
}

double law_round(const format *f, double g)
{
    int e = 0;
    if (g == 0 || !isfinite(g)) return g;
    frexp(g, &e);
    e = e - 1 > 1 - bias(f) ? e - 1 : 1 - bias(f);
    const double v = ldexp(nearbyint(ldexp(g, f->mantissa - e)), e - f->mantissa);
    return fabs(v) > law_largest(f) ? copysign(INFINITY, g) : v;
}

double law_log_tail(double x)
{
    if (x < 30) return log(erfc(x * root_half));
    /* erfc(z) = exp(-z^2) / (z sqrt(pi)) (1 - 1 / (2 z^2) + 3 / (4 z^4) - ...), z = x / sqrt(2) */
    const double q = 1 / (x * x);
    return -x * x / 2 + log(2 / (x * root_2pi)) + log1p(-q * (1 - 3 * q * (1 - 5 * q)));
}

double law_within(double x)
{
    return erf(x * root_half);
}

/* P(a < N < b), 0 <= a < b, without the cancellation of erf(b) - erf(a) near 1. */
static double between(double a, double b)
{
    return a < 0.5 ? 0.5 * (erf(b * root_half) - erf(a * root_half))
                   : 0.5 * (erfc(a * root_half) - erfc(b * root_half));
}

law law_of(const format *f)
{
    const double most = law_largest(f), step = ldexp(1, highest(f) - f->mantissa);
    const double normal = law_least_normal(f), least = law_least_subnormal(f);
    law l = {0};
    l.log10_overflow = law_log_tail(most + step / 2) / log(10);
    l.underflow = law_within(least / 2);
    l.subnormal = law_within(normal - least / 2);
    l.paper_log10_overflow =
        law_log_tail(ldexp(1 - ldexp(1, -(f->mantissa + 1)), bias(f))) / log(10);
    l.paper_underflow = law_within(least);
    l.paper_not_normal = law_within(normal);
    for (int s = 0; s < 3; s++)
        l.values[s] = 2 * ldexp(s + bias(f), f->mantissa) - 1;
    return l;
}

/* Goes through the values v >= 0 with the interval [a, b] that is rounded to each. Beyond
 * 2^FARTHEST and, of formats with more range, where nothing is left to see, they are left out. */
typedef double (*term)(double v, double a, double b);

static double sum_values(const format *f, term of)
{
    const int lowest = 1 - bias(f) > -60 ? 1 - bias(f) : -60;
    const int top = highest(f) < FARTHEST ? highest(f) : FARTHEST;
    const long count = 1L << f->mantissa;
    double total = 0;
    for (int e = top; e >= lowest; e--) {
        const double step = ldexp(1, e - f->mantissa);
        double binade = 0;
        for (long i = 0; i < count; i++) {
            const double v = ldexp(1, e) + (double)i * step;
            if (v > law_largest(f)) break;
            /* below a power of two the step is half as wide, but for the least normal number */
            const double below = i > 0 || e == 1 - bias(f) ? step / 2 : step / 4;
            binade += of(v, v - below, v + step / 2);
        }
        total += binade;
    }
    const double step = ldexp(1, lowest - f->mantissa);
    for (long i = lowest == 1 - bias(f) ? 1 : count; i < count; i++)
        total += of((double)i * step, ((double)i - 0.5) * step, ((double)i + 0.5) * step);
    const double zero =
        lowest == 1 - bias(f) ? step / 2 : ldexp(1 - ldexp(1, -f->mantissa - 2), lowest);
    return total + of(0, 0, zero);
}

/* The integral of (v^2 - g^2) phi(g) over [a, b], by Gauss and Legendre's rule with 8 points on
 * pieces at most 1/4 wide: the sum of these has no cancellation against 1. Both signs. */
static double excess(double v, double a, double b)
{
    static const double at[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                0.9602898564975363};
    static const double weight[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                    0.1012285362903763};
    const int pieces = (int)ceil((b - a) * 4) > 1 ? (int)ceil((b - a) * 4) : 1;
    const double half = (b - a) / (2 * pieces);
    double total = 0;
    if (a > 40) return 0;
    for (int p = 0; p < pieces; p++)
        for (int i = 0; i < 8; i++) {
            const double offset = (i < 4 ? at[i] : -at[i - 4]) * half;
            const double g = a + (2 * p + 1) * half + offset;
            total += weight[i % 4] * half * (v - g) * (v + g) * exp(-g * g / 2);
        }
    return 2 * total / root_2pi;
}

double law_variance_excess(const format *f)
{
    return sum_values(f, excess);
}

double law_paper_variance_excess(const format *f)
{
    const int lowest = 1 - bias(f) > -60 ? 1 - bias(f) : -60;
    const int top = highest(f) < FARTHEST ? highest(f) : FARTHEST;
    double total = 0;
    for (int e = top; e >= lowest; e--) {
        const double step = ldexp(1, e - f->mantissa);
        for (long i = 0; i < 1L << f->mantissa; i++) {
            const double v = ldexp(1, e) + (double)i * step;
            total += v * v * 2 * between(v - step / 2, v + step / 2);
        }
    }
    return total - 1;
}

static double information(double v, double a, double b)
{
    const double p = v == 0 ? 2 * between(a, b) : between(a, b);
    return p > 0 ? -p * log2(p) * (v == 0 ? 1 : 2) : 0;
}

double law_entropy(const format *f)
{
    return sum_values(f, information);
}
