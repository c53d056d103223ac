/* How many dimensions a bound asks for. */
#include "base/error.h"
#include "quality/gamma.h"

#include <gnomon/quality.h>

#include <inttypes.h>
#include <math.h>

/* Far above what an operator may have; it keeps the exact law's sums short. */
#define MAX_DIM 0x1p40

const char *gnomon_bound_name(gnomon_bound bound)
{
    switch (bound) {
    case GNOMON_BOUND_ACHLIOPTAS:
        return "achlioptas";
    case GNOMON_BOUND_GAUSSIAN_EXACT:
        return "gaussian-exact";
    case GNOMON_BOUND_DASGUPTA_GUPTA:
        return "dasgupta-gupta";
    }
    return "?";
}

/* ln of the probability that one pair's squared distance leaves 1 +- eps. */
static double log_failure(double k, double eps)
{
    const double below = gnomon_chi2_log_below(k, k * (1 - eps));
    const double above = gnomon_chi2_log_above(k, k * (1 + eps));
    return above + log1p(exp(below - above));
}

/* The smallest k with pairs * failure(k) <= delta: failure falls with k, so doubling and
 * halving find it. 0 when there is none up to MAX_DIM. */
static double exact_dim(double pairs, double eps, double log_delta)
{
    const double target = log_delta - log(pairs);
    double high = 1;
    while (log_failure(high, eps) > target) {
        high *= 2;
        if (high > MAX_DIM) return 0;
    }
    double low = floor(high / 2);
    while (high - low > 1) {
        const double middle = floor((low + high) / 2);
        if (log_failure(middle, eps) > target)
            low = middle;
        else
            high = middle;
    }
    return high;
}

gnomon_status gnomon_dim(gnomon_context *ctx, gnomon_bound bound, int64_t points, double eps,
                         double beta, double delta, double *real, int64_t *k)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(!k, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("k") " is NULL; it must point to the result");
    GNOMON_FAIL_IF(points < 2, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("points") " is %" PRId64 "; it must be at least 2", points);
    GNOMON_FAIL_IF(!(eps > 0 && eps < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("eps") " is %g; it must lie strictly between 0 and 1", eps);
    GNOMON_FAIL_IF(!(beta >= 0) || isinf(beta), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("beta") " is %g; it must be a positive number, or 0 for none", beta);
    GNOMON_FAIL_IF(
        !(delta >= 0 && delta < 1), ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("delta") " is %g; it must lie strictly between 0 and 1, or be 0 for none",
        delta);
    GNOMON_FAIL_IF(
        beta > 0 && delta > 0, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("beta") " is %g and delta is %g; give one of them, they say the same thing",
        beta, delta);

    const double n = (double)points, log_n = log(n);
    if (beta == 0 && delta == 0) delta = 0.05;
    const double log_delta = beta > 0 ? -beta * log_n : log(delta);
    const double exponent = eps * eps / 2 - eps * eps * eps / 3;
    double bound_k = 0;
    switch (bound) {
    case GNOMON_BOUND_ACHLIOPTAS:
        bound_k = (4 + 2 * (-log_delta / log_n)) / exponent * log_n;
        break;
    case GNOMON_BOUND_DASGUPTA_GUPTA:
        bound_k = 4 * log_n / exponent;
        break;
    case GNOMON_BOUND_GAUSSIAN_EXACT:
        bound_k = exact_dim(n * (n - 1) / 2, eps, log_delta);
        break;
    default:
        return gnomon_fail(ctx, GNOMON_ERROR_ARGUMENT,
                           GNOMON_ARG("bound") " is %d; it must be one of the gnomon_bound values",
                           (int)bound);
    }
    GNOMON_FAIL_IF(!(bound_k > 0 && bound_k <= MAX_DIM), ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("eps") " is %g: the %s bound asks for more than 2^40 dimensions", eps,
                   gnomon_bound_name(bound));
    if (real) *real = bound_k;
    *k = (int64_t)ceil(bound_k);
    return GNOMON_OK;
}
