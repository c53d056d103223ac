/* Improved consistent weighted sampling: one member of a row of weights, and a step of its weight,
 * such that two rows have both in common with probability sum min / sum max (Ioffe, Improved
 * Consistent Sampling, Weighted Minhash and L1 Sketching, ICDM 2010, algorithm 2).
 *
 * For each function and member j of weight S_j > 0, r and c are Gamma(2, 1) and beta is uniform:
 *   t = floor(ln S_j / r + beta),  ln y = r (t - beta),  ln a = ln c - ln y - r,
 * and the member with the least ln a is the sample, together with its t. All of it is fp64 in a
 * fixed order, and so are the logarithms: the same bits everywhere (docs/reference/lsh.md). */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/families/family.h"
#include "lsh/table.h"
#include "operator/philox.h"
#include "points/view.h"
#include "search/jaccard.h"

#include <math.h>

/* ln x of x > 0: 2 atanh(s) of the fraction in [1/2^0.5, 2^0.5), by its series. */
static double natural_log(double x)
{
    static const double odd[] = {1,        1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        exponent--;
    }
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = odd[10];
    for (int i = 9; i >= 0; i--)
        sum = sum * square + odd[i];
    return (double)exponent * 0x1.62e42fefa39efp-1 + 2 * s * sum;
}

/* (word + 1/2) / 2^32 */
static double uniform(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

/* A function's best two members of a row. */
typedef struct best {
    double a[2];
    uint32_t value[2];
} best;

static uint32_t value_of(int64_t member, int64_t t, const uint64_t multipliers[2])
{
    return gnomon_key_half((uint64_t)member * multipliers[0] + (uint64_t)t * multipliers[1]);
}

static void offer(best *b, double a, uint32_t value)
{
    if (a < b->a[0]) {
        b->a[1] = b->a[0];
        b->value[1] = b->value[0];
        b->a[0] = a;
        b->value[0] = value;
    } else if (a < b->a[1]) {
        b->a[1] = a;
        b->value[1] = value;
    }
}

typedef struct sampling {
    const gnomon_hasher *h;
    gnomon_sets sets; /* whose weights have become their logarithms */
    uint64_t multipliers[2];
    uint32_t *products;
} sampling;

enum { FUNCTIONS = 64 }; /* at a time; a multiple of four */

/* Functions [i, i + count), of which the first is a multiple of four, for one member. */
static void sample_member(const sampling *s, int64_t i, int64_t count, int64_t member, double log_s,
                          best *out)
{
    gnomon_words shared = {{0}};
    for (int64_t f = 0; f < count; f++) {
        const uint32_t function = (uint32_t)(i + f);
        const gnomon_words w =
            gnomon_call(&s->h->key, GNOMON_TAG_LSH_WEIGHT, function, (uint64_t)member);
        if (f % 4 == 0)
            shared =
                gnomon_call(&s->h->key, GNOMON_TAG_LSH_WEIGHT_STEP, function / 4, (uint64_t)member);
        const double r = -natural_log(uniform(w.w[0]) * uniform(w.w[1]));
        const double c = -natural_log(uniform(w.w[2]) * uniform(w.w[3]));
        const double beta = uniform(shared.w[f % 4]);
        const double t = floor(log_s / r + beta);
        const double a = natural_log(c) - r * (t - beta) - r;
        if (a < out[f].a[1]) offer(&out[f], a, value_of(member, (int64_t)t, s->multipliers));
    }
}

static void sample_row(void *arg, int64_t row, int worker)
{
    (void)worker;
    const sampling *s = arg;
    const int64_t count = s->h->f.count;
    uint32_t *to = s->products + row * 2 * count;
    best found[FUNCTIONS];
    for (int64_t e = s->sets.offsets[row]; e < s->sets.offsets[row + 1]; e++)
        s->sets.weights[e] = natural_log(s->sets.weights[e]);
    for (int64_t i = 0; i < count; i += FUNCTIONS) {
        const int64_t here = count - i < FUNCTIONS ? count - i : FUNCTIONS;
        for (int64_t f = 0; f < here; f++)
            found[f] = (best){{INFINITY, INFINITY}, {UINT32_MAX, UINT32_MAX}};
        for (int64_t e = s->sets.offsets[row]; e < s->sets.offsets[row + 1]; e++)
            sample_member(s, i, here, s->sets.members[e], s->sets.weights[e], found);
        for (int64_t f = 0; f < here; f++) {
            to[2 * (i + f)] = found[f].value[0];
            to[2 * (i + f) + 1] = found[f].value[1];
        }
    }
}

static gnomon_status sample_rows(gnomon_context *ctx, const gnomon_hasher *h,
                                 const gnomon_points *points, int64_t first, int64_t n,
                                 void *products)
{
    sampling s = {.h = h, .products = products};
    const gnomon_csr part = gnomon_csr_rows(points->sparse, first, n);
    GNOMON_TRY(gnomon_sets_make(ctx, &part, "points", first, GNOMON_WEIGHTED_JACCARD, &s.sets));
    gnomon_key_multipliers(2, s.multipliers);
    gnomon_parallel(ctx, n, sample_row, &s);
    gnomon_sets_free(ctx, &s.sets);
    return GNOMON_OK;
}

const gnomon_family_row gnomon_family_row_icws = {
    .family = GNOMON_LSH_ICWS,
    .name = "icws",
    .points = GNOMON_POINTS_SPARSE,
    .refusal = "weights as sparse points",
    .any_dim = true,
    .others = 1,
    .products = 2,
    .most = 1,
    .members = 16,
    .member_bytes = sizeof(int64_t) + sizeof(double),
    .no_device = "it has no weighted samples, those of icws",
    .project = sample_rows,
    .hash = gnomon_hash_least,
    .collision = gnomon_similarity_collision,
};
