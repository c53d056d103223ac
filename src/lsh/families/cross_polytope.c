/* How often cross-polytope hashes agree.
 *
 * With Gaussian directions the two points' products with direction i are (U_i, V_i), pairs of
 * standard normal numbers of correlation rho, independent from one i to the next. The hashes agree
 * when one and the same i has the largest |U_i| and the largest |V_i|, with the same sign:
 *   p = 2 c int int over u, v > 0 of f(u, v) F(u, v)^(c - 1),  F(u, v) = P(|U| < u, |V| < v).
 * Given U = u, V is rho u + sigma z with z standard normal; F is one integral more. */
#include "lsh/families/family.h"

#include <math.h>
#include <string.h>

enum { OUTER = 64, MIDDLE = 48, INNER = 32, MOST_NODES = OUTER };

typedef struct rule {
    int count;
    double node[MOST_NODES], weight[MOST_NODES];
} rule;

/* Gauss and Legendre's rule on [-1, 1]: the roots by Newton's method. */
static void make_rule(int count, rule *r)
{
    r->count = count;
    for (int i = 0; i < count; i++) {
        double x = cos(acos(-1.0) * (i + 0.75) / (count + 0.5)), slope = 1;
        for (int step = 0; step < 8; step++) {
            double before = 1, p = x;
            for (int n = 2; n <= count; n++) {
                const double next = ((2 * n - 1) * x * p - (n - 1) * before) / n;
                before = p;
                p = next;
            }
            slope = count * (x * p - before) / (x * x - 1);
            x -= p / slope;
        }
        r->node[i] = x;
        r->weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

static double density(double x)
{
    return exp(-0.5 * x * x) / sqrt(2 * acos(-1.0));
}

static double normal_below(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5));
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

enum { FAR = 8 }; /* standard deviations beyond which nothing is left */

/* P(|U| < u, |V| < v): up to 'sure' V is inside whenever U is, past 'never' it never is. */
static double both_below(const rule *r, double u, double v, double rho, double sigma)
{
    const double slope = fabs(rho), blur = FAR * sigma;
    const double sure = slope * u <= v - blur ? u : clamp((v - blur) / slope, 0, u);
    const double never = slope * u <= v + blur ? u : clamp((v + blur) / slope, 0, u);
    const double middle = 0.5 * (never + sure), half = 0.5 * (never - sure);
    double sum = 0;
    for (int i = 0; i < r->count && half > 0; i++) {
        const double s = middle + half * r->node[i];
        sum += r->weight[i] * density(s) *
               (normal_below((v - rho * s) / sigma) - normal_below((-v - rho * s) / sigma));
    }
    return erf(sure * sqrt(0.5)) + 2 * half * sum;
}

double gnomon_cross_polytope_collision(int64_t sides, double rho)
{
    const double sigma = sqrt((1 - rho) * (1 + rho)), top = 10;
    if (rho >= 1) return 1;
    if (rho <= -1) return 0;
    rule outer, middle, inner;
    make_rule(OUTER, &outer);
    make_rule(MIDDLE, &middle);
    make_rule(INNER, &inner);
    double sum = 0;
    for (int i = 0; i < OUTER; i++) {
        const double u = top / 2 * (1 + outer.node[i]);
        /* of z such that v > 0 */
        const double low = clamp(-rho * u / sigma, -FAR, FAR), half = 0.5 * (FAR - low);
        double part = 0;
        for (int j = 0; j < MIDDLE; j++) {
            const double z = low + half * (1 + middle.node[j]), v = rho * u + sigma * z;
            part += middle.weight[j] * density(z) *
                    pow(both_below(&inner, u, v, rho, sigma), (double)(sides - 1));
        }
        sum += outer.weight[i] * top / 2 * density(u) * part * half;
    }
    return clamp(2 * (double)sides * sum, 0, 1);
}

static int32_t magnitude_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & INT32_MAX;
}

/* The first of the largest magnitudes; -1 where a number is NaN. The order of magnitudes is that of
 * their bits, of which the compiler compares several at once. */
static int64_t farthest(const float *x, int64_t sides)
{
    int32_t most = 0;
    for (int64_t s = 0; s < sides; s++) {
        const int32_t bits = magnitude_bits(x[s]);
        most = bits > most ? bits : most;
    }
    if (most > 0x7f800000) return -1;
    int64_t s = 0;
    while (magnitude_bits(x[s]) != most)
        s++;
    return s;
}

/* Up to 'room' of the largest magnitudes first, equal ones by direction; returns how many. */
static int order(const float *x, int64_t sides, int room, int64_t *best)
{
    int kept = 0;
    const int64_t alone = room == 1 ? farthest(x, sides) : -1;
    if (alone >= 0) {
        best[0] = alone;
        return 1;
    }
    for (int64_t s = 0; s < sides; s++) {
        const float size = fabsf(x[s]);
        if (kept == room && !(size > fabsf(x[best[kept - 1]]))) continue;
        int place = kept < room ? kept++ : room - 1;
        for (; place > 0 && size > fabsf(x[best[place - 1]]); place--)
            best[place] = best[place - 1];
        best[place] = s;
    }
    return kept;
}

static void hash_directions(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    const float *x = (const float *)b->products + point * b->h->products;
    const int64_t sides = b->h->f.sides;
    for (int64_t i = 0; i < b->h->f.count; i++, at++, x += sides) {
        int64_t best[GNOMON_LSH_OTHERS + 1] = {0};
        const int kept = order(x, sides, b->out->others ? b->h->others + 1 : 1, best);
        b->out->values[at] = (int32_t)(2 * best[0] + (x[best[0]] < 0));
        for (int which = 0; b->out->others && which < b->h->others; which++) {
            /* with fewer directions than that: the opposite of the nearest */
            const int64_t s = which + 1 < kept ? best[which + 1] : best[0];
            const float gap =
                fabsf(x[best[0]]) - (which + 1 < kept ? fabsf(x[s]) : -fabsf(x[best[0]]));
            const bool opposite = which + 1 >= kept;
            gnomon_set_other(b, at, which, (int32_t)(2 * s + ((x[s] < 0) != opposite)), gap * gap);
        }
    }
}

static double collision(const gnomon_lsh_functions *f, double distance)
{
    return gnomon_cross_polytope_collision(f->sides > 0 ? f->sides : 16, 1 - distance);
}

const gnomon_family_row gnomon_family_row_cross_polytope = {
    .family = GNOMON_LSH_CROSS_POLYTOPE,
    .name = "cross-polytope",
    .points = GNOMON_POINTS_DENSE | GNOMON_POINTS_SPARSE,
    .sides = true,
    .directions = true,
    .others = 3,
    .products = 1,
    .most = 2,
    .hash = hash_directions,
    .collision = collision,
};
