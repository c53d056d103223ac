/* gaussian, precision fp16: a table of the quantile's fp16 neighbours, and its tail. */
#include "operator/kinds/kinds.h"
#include "operator/philox.h"

#include <math.h>
#include <pthread.h>

enum { TABLE_SIZE = 1 << 15 };

static float table[TABLE_SIZE];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static double ratio(const double *numerator, const double *denominator, double r)
{
    double n = numerator[7];
    double d = denominator[7];
    for (int i = 6; i >= 0; i--) {
        n = n * r + numerator[i];
        d = d * r + denominator[i];
    }
    return n / d;
}

/* The standard normal quantile of 1 - upper, 0 < upper < 1/2; centre is 1/2 - upper, which the
 * caller has exactly. Wichura 1988, algorithm AS 241 (PPND16): relative error about 1e-16. */
static double quantile(double centre, double upper)
{
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};
    if (centre <= 0.425) return centre * ratio(a, b, 0.180625 - centre * centre);
    const double r = sqrt(-log(upper));
    return r <= 5.0 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5.0);
}

/* The fp16 number nearest to x, 0 < x < 65504, as fp32. */
static float nearest_fp16(double x)
{
    int exponent;
    frexp(x, &exponent); /* x in [2^(exponent - 1), 2^exponent) */
    const int quantum = (exponent < -13 ? -13 : exponent) - 11;
    return (float)ldexp(rint(ldexp(x, -quantum)), quantum);
}

static void make_table(void)
{
    for (int v = 0; v < TABLE_SIZE - 1; v++) {
        const double centre = (v + 0.5) * 0x1p-16;
        table[v] = nearest_fp16(quantile(centre, 0.5 - centre));
    }
    table[TABLE_SIZE - 1] = NAN;
}

const float *gnomon_gaussian16_table(void)
{
    pthread_once(&table_once, make_table);
    return table;
}

float gnomon_gaussian16_tail(uint32_t t)
{
    const double upper = (t + 0.5) * 0x1p-48;
    return nearest_fp16(quantile(0.5 - upper, upper));
}

void gnomon_gaussian16_tile(const gnomon_simple *a, uint32_t group, int64_t col, int64_t cols,
                            gnomon_tile out)
{
    const float *magnitude = gnomon_gaussian16_table();
    int64_t c = 0;
    while (c < cols) {
        const uint64_t j = (uint64_t)col + (uint64_t)c;
        const gnomon_words call = gnomon_call(a, GNOMON_TAG_GAUSSIAN16, group, j >> 1);
        const int64_t last = (j & 1) == 0 && c + 1 < cols ? c + 1 : c;
        for (; c <= last; c++) {
            const uint64_t column = (uint64_t)col + (uint64_t)c;
            for (int r = 0; r < 4; r++) {
                const uint32_t h = call.w[r] >> ((column & 1) * 16) & 0xFFFF;
                const uint32_t v = h & 0x7FFF;
                float x;
                if (v < TABLE_SIZE - 1) {
                    x = magnitude[v];
                } else {
                    const gnomon_words tail =
                        gnomon_call(a, GNOMON_TAG_GAUSSIAN16_TAIL, group, column);
                    x = gnomon_gaussian16_tail(tail.w[r]);
                }
                out[r][c] = h >> 15 ? -x : x;
            }
        }
    }
}
