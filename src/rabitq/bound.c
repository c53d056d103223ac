/* How far estimates are off. */
#include "rabitq/rabitq.h"

#include <math.h>

float gnomon_rabitq_above(double x)
{
    const float near = (float)x;
    return (double)near >= x ? near : nextafterf(near, HUGE_VALF);
}

/* The integral of (1 - (z^2 / n))^((n - 3) / 2) from a to b, by Simpson's rule. */
static double integral(double n, double a, double b)
{
    enum { STEPS = 2000 };
    const double h = (b - a) / STEPS, power = (n - 3) / 2;
    double sum = 0;
    for (int i = 0; i <= STEPS; i++) {
        const double z = a + i * h, inside = 1 - z * z / n;
        const double f = inside > 0 ? exp(power * log(inside)) : power > 0 ? 0 : 1;
        sum += f * (i == 0 || i == STEPS ? 1 : i % 2 == 1 ? 4 : 2);
    }
    return sum * h / 3;
}

double gnomon_rabitq_quantile(int64_t n, double failure)
{
    if (failure <= 0 || n < 4) return 1;
    if (failure >= 0.5) return 0;
    /* beyond 40 standard deviations there is nothing that fp64 holds */
    const double d = (double)n, end = fmin(sqrt(d), 40);
    const double all = 2 * integral(d, 0, end);
    double low = 0, high = end;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (integral(d, middle, end) / all > failure)
            low = middle;
        else
            high = middle;
    }
    /* the rule's error lies far below this */
    return fmin(high / sqrt(d) * (1 + 1e-6), 1);
}
