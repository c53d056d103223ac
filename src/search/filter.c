/* What fp32 can tell of a pair, and how surely.
 *
 * P and B are a query and a base point in the coordinates of the centre (scaled, or normalised,
 * less the mean M). The score that stands for the distance is T = P.B - |B|^2 / 2 for L2 and
 * COSINE, whose squared distance is |P|^2 - 2 T, and T = P.B + M.B for IP, the product being T +
 * P.M + M.M.
 *
 * Coordinates p and b in fp32 are within u = 2^-24 of P and B, relatively (and 2^-125 absolutely,
 * for underflow). The product is a chain of fused multiply-adds over each part of at most
 * most_steps coordinates; parts, and then the bias, are added. That makes n = most_steps + parts +
 * 1 roundings at most, each of a partial sum of size at most |p||b| + |bias| (Higham 2002,
 * section 3.1), so that |score - T| <= gamma |P||B| + gamma |B|^2 (+ 16 u |M||B| for IP) + what
 * fp64 and underflow add, gamma = 1.01 (n + 16) u, where the 16 pay for the rounding of the
 * coordinates (2 to 3 u), of the bias (1 u), of the numbers here (a few u) and of the comparisons.
 * Where all coordinates are integers and |P||B| + |bias| is below 2^23 every step is exact, and so
 * is the score.
 *
 * Points X of an inverted list may be taken less another vector V near them, while the query's
 * coordinates stay as they are. With B' = X - V and Q = P + M the score is
 *     P.B' - |B'|^2 / 2 - (V - M).B' = T - (|P|^2 - |Q - V|^2) / 2.
 * Its error is that of B' in the place of B, + 16 u |V - M||B'|. The search for the query's lists
 * tells |Q - V|.
 *
 * The keys that scores stand for are themselves rounded, in fp64: what that may change is part of
 * the error, so that the order of keys is what is decided. */
#include "search/filter.h"
#include "search/exact.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static const double u32 = 0x1p-24, tiny = 0x1p-124;

/* Of fp64 sums over d coordinates. */
static double fine(int64_t d)
{
    return (double)(d + 64) * 0x1p-52;
}

double gnomon_filter_gamma(int64_t steps, int64_t most_steps)
{
    if (most_steps == 0) return 1.01 * 40 * u32;
    const int64_t parts = (steps + most_steps - 1) / most_steps;
    const int64_t chain = steps < most_steps ? steps : most_steps;
    return 1.01 * (double)(chain + parts + 17) * u32;
}

/* A float not below x. */
static float above(double x)
{
    if (!(x < 0x1p120)) return INFINITY;
    return (float)x * (1 + 0x1p-20f) + FLT_MIN;
}

/* A float not above x. */
static float below(double x)
{
    if (!(x > -0x1p120)) return -INFINITY;
    if (x > 0x1p120) return 0x1p120f;
    const float f = (float)x;
    return (double)f <= x ? f : nextafterf(f, -INFINITY);
}

static bool is_ip(const gnomon_search *s)
{
    return s->options.metric == GNOMON_IP;
}

void gnomon_filter_prepare(const gnomon_search *s, int64_t query, int64_t steps, int64_t most_steps,
                           double *f64, float *out, gnomon_filter_query *facts,
                           gnomon_filter *filter)
{
    const gnomon_centre *g = &s->centre;
    const gnomon_query q = gnomon_query_to_f64(s, query, f64);
    double sums[2];
    const bool integers = s->kernels->centre_query(f64, s->cols, g->scale, g->mean64, out, sums);
    const bool whole = g->whole && integers;
    double squares = sums[0];
    const double products = sums[1];
    /* A zero vector under COSINE is at right angles to everything: two coordinates more. */
    for (int64_t j = s->cols; j < steps; j++)
        out[j] = j > s->cols && q.factor == 0 ? 1 : 0;
    if (q.factor == 0) squares += 1;
    const double m = sqrt(squares), d = (double)steps;
    *facts = (gnomon_filter_query){m, squares, products + g->norm * g->norm, whole};
    if (is_ip(s)) facts->constant = products + gnomon_dot(s, g->mean64, g->mean64);
    double floor = d * tiny * (1 + m);
    floor += is_ip(s) ? fine(steps) * (m + g->norm) * g->norm : 4 * fine(steps) * squares;
    const bool sane = m < 0x1p60;
    filter->slack = sane ? above(gnomon_filter_gamma(steps, most_steps) * m) : 0;
    filter->floor = sane ? above(floor) : INFINITY;
    filter->whole = whole && sane ? above(m) : INFINITY;
}

/* The root of the sum of squares that rounding took of so many steps: the sum is one in fp32,
 * rounded, and what underflowed is not in it. */
static double length_lost(int64_t steps, float lost)
{
    return sqrt((double)lost * (1 + (double)steps * 0x1p-22) + (double)steps * 0x1p-124);
}

/* The most that coordinates of one sign add up to where their products are summed in 16 bits. */
static int largest_half(const int8_t *x, int64_t words, int halves)
{
    int most = 0;
    for (int64_t w = 0; w < words; w += halves, x += 4 * halves) {
        int up[4] = {0}, all[4] = {0};
        for (int i = 0; i < halves; i++) {
            for (int c = 0; c < 4; c++) {
                const int v = x[4 * i + c];
                up[c] += v > 0 ? v : 0;
                all[c] += v;
            }
        }
        for (int c = 0; c < 4; c += 2) {
            const int above = up[c] + up[c + 1], below = above - all[c] - all[c + 1];
            most = above > most ? above : most;
            most = below > most ? below : most;
        }
    }
    return most;
}

void gnomon_filter_round(const float *centred, int64_t steps, int bits, int most,
                         const gnomon_search_kernels *kernels, const gnomon_filter_query *facts,
                         gnomon_filter *filter, uint32_t *out)
{
    const gnomon_quads *quads = &kernels->quads;
    const int64_t words = gnomon_filter_words(quads, steps, bits);
    const bool halves = bits == 8 && quads->halves > 0;
    /* points' coordinates are positive there, up to twice the most */
    const int room = halves ? INT16_MAX / (2 * quads->most) : INT_MAX;
    float lost, scale;
    int32_t sum;
    if (halves) most = INT8_MAX;
    bool whole = facts->whole;
    for (;;) {
        memset(out, 0, (size_t)words * sizeof *out);
        scale = kernels->round_row(centred, steps, bits, most, whole, out, &lost, &sum);
        const int half = halves ? largest_half((const int8_t *)out, words, quads->halves) : 0;
        if (half <= room) break;
        most = (int)((int64_t)most * room / half);
        whole = false; /* as they are they would be the same again */
    }
    filter->scale = scale >= 0 ? scale : 0;
    if (bits == 8) filter->start = -quads->shift * sum;
    if (!whole || scale != 1) filter->whole = INFINITY;
    if (!(facts->norm < 0x1p60)) return;
    const double length = length_lost(steps, lost);
    filter->slack = above((double)filter->slack + length);
    filter->norm = above(facts->norm + length);
}

gnomon_blur gnomon_filter_blur(const gnomon_search *s, int64_t steps, int64_t most_steps,
                               const double *squares, int lanes, bool whole)
{
    double most = 0;
    for (int l = 0; l < lanes; l++) {
        if (!(squares[l] < 0x1p120))
            return (gnomon_blur){.blur = INFINITY, .whole = -1}; /* or NaN */
        most = fmax(most, squares[l]);
    }
    const double n = sqrt(most), norm = s->centre.norm;
    double blur = gnomon_filter_gamma(steps, most_steps) * most + (double)steps * tiny * n;
    if (is_ip(s)) blur += (16 * u32 + fine(steps)) * norm * n;
    gnomon_blur b = {.reach = above(n), .blur = above(blur), .whole = -1};
    if (whole && s->centre.whole) {
        const double rest = 0x1p23 - (is_ip(s) ? norm * n : most / 2);
        if (rest > 0) b.whole = n == 0 ? FLT_MAX : below(fmin(rest / n, 0x1p100)) * (1 - 0x1p-20f);
    }
    return b;
}

gnomon_blur gnomon_filter_blur_of_list(const gnomon_search *s, int64_t steps, int64_t most_steps,
                                       const double *squares, int lanes, double length)
{
    gnomon_blur b = gnomon_filter_blur(s, steps, most_steps, squares, lanes, false);
    /* above adds the part of what fp32 takes from the sum */
    b.blur = above((double)b.blur + (16 * u32 + fine(steps)) * length * (double)b.reach);
    return b;
}

gnomon_filter_shift gnomon_filter_shift_of(const gnomon_search *s, const gnomon_filter_query *facts,
                                           double key)
{
    const bool cosine = s->options.metric == GNOMON_COSINE;
    const double squared = cosine ? 2 * key : key * key;
    /* of COSINE V has been rounded to fp32 */
    const double error = fine(s->cols) * (facts->squares + squared) + (cosine ? 16 * u32 : 0);
    const double shift = (facts->squares - squared) / 2;
    if (!(facts->norm < 0x1p60) || !(squared < 0x1p120))
        return (gnomon_filter_shift){-INFINITY, INFINITY};
    return (gnomon_filter_shift){below(shift - error), -below(-shift - error)};
}

float gnomon_filter_least_in_list(float least, gnomon_filter_shift shift)
{
    return least > -INFINITY ? below((double)least - (double)shift.high) : -INFINITY;
}

void gnomon_blur_halve(int64_t steps, float scale, const float *lost, int lanes, gnomon_blur *blur)
{
    float most = 0;
    for (int l = 0; l < lanes; l++)
        if (lost[l] > most) most = lost[l];
    blur->scale = scale;
    blur->fuzz = blur->whole >= 0 && scale == 1 ? 0 : above(length_lost(steps, most));
    if (scale != 1) blur->whole = -1;
    if (!(scale >= 0)) *blur = (gnomon_blur){.blur = INFINITY, .whole = -1, .scale = 0};
}

float gnomon_filter_least(const gnomon_search *s, const gnomon_filter_query *facts, double key,
                          bool whole)
{
    const double scale = s->centre.scale, e = fine(s->cols);
    const bool exact = whole && facts->whole;
    double t, size;
    if (!(facts->norm < 0x1p60)) return -INFINITY;
    if (is_ip(s)) {
        const double product = -key * scale * scale;
        const double norm = s->centre.norm;
        t = product - facts->constant;
        size = fabs(product) + fabs(facts->constant) + norm * (facts->norm + norm);
    } else {
        double squared = 2 * key;
        if (s->options.metric == GNOMON_L2) squared = key * scale * (key * scale);
        if (exact) squared = rint(squared);
        t = (facts->squares - squared) / 2;
        size = facts->squares + squared;
    }
    if (exact && fabs(t) < 0x1p23 && size < 0x1p50) return nextafterf((float)t, INFINITY);
    return below(t - e * size);
}

void gnomon_filter_shrink(gnomon_filter *filter, int64_t k, float reached, bool exactly,
                          float *values)
{
    gnomon_survivor *kept = filter->kept;
    int32_t able = reached > -INFINITY ? 0 : filter->count;
    for (int32_t i = able; i < filter->count; i++) {
        kept[able] = kept[i];
        able += !(kept[able].high < reached);
    }
    filter->count = able;
    if (filter->count <= k) return;
    for (int32_t i = 0; i < filter->count; i++)
        values[i] = kept[i].low;
    const float rank = exactly ? gnomon_rank_largest(values, filter->count, k)
                               : gnomon_rank_about(values, filter->count, k);
    if (!(rank > -INFINITY)) return;
    /* How many of those that are exactly at the rank are still wanted: the first ones, whose ids
     * are smaller. */
    int64_t ties = k;
    for (int32_t i = 0; i < filter->count; i++)
        ties -= kept[i].low > rank;
    int32_t count = 0;
    for (int32_t i = 0; i < filter->count; i++) {
        const gnomon_survivor x = kept[i];
        const bool tie = x.high == rank && x.low == rank;
        kept[count] = x;
        count += !(x.high < rank) & !(tie & (ties <= 0)); /* no branches: there is no order */
        ties -= tie;
    }
    filter->count = count;
    const float least = nextafterf(rank, INFINITY);
    if (least > filter->least) filter->least = least;
}
