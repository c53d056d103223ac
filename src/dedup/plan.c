/* Bands and rows: those of the least cost among all that keep the promise. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "dedup/sort.h"
#include "dedup/state.h"

#include <math.h>
#include <stdio.h>

enum { MOST_BANDS = 1024, MOST_ROWS = 64, SAMPLE = 1 << 14 };

/* The cost of a step in nanoseconds, the same on every machine, so that the choice is too. */
static const double HASH = 0.3, KEY = 25, CANDIDATE = 100, MEMBER = 1;

/* Random pairs of distinct sets and their similarities. */
typedef struct sampling {
    gnomon_dedup *d;
    int64_t count;
    uint64_t *pairs;   /* of documents */
    uint64_t *numbers; /* of sets, above the place of theirs; two a pair, and as many as scratch */
    double *similarity;
} sampling;

static void draw(sampling *s)
{
    const uint64_t sets = (uint64_t)s->d->distinct;
    for (int64_t at = 0; at < s->count; at++) {
        const uint64_t random = gnomon_mix64((uint64_t)at * 2 + s->d->options.seed);
        const uint64_t i = (random >> 32) * sets >> 32;
        uint64_t j = (random & UINT32_MAX) * (sets - 1) >> 32;
        j += j >= i;
        s->numbers[2 * at] = i << 32 | (uint64_t)(2 * at);
        s->numbers[2 * at + 1] = j << 32 | (uint64_t)(2 * at + 1);
    }
}

/* Numbers of sets become documents. */
static void find_documents(sampling *s)
{
    const gnomon_dedup *d = s->d;
    int64_t at = 0, sets = 0;
    gnomon_sort_digits(s->numbers, s->numbers + 2 * s->count, 2 * s->count);
    for (int64_t word = 0; at < 2 * s->count; word++) {
        const int64_t here = __builtin_popcountll(d->firsts[word]);
        for (; at < 2 * s->count && (int64_t)(s->numbers[at] >> 32) < sets + here; at++) {
            uint64_t bits = d->firsts[word];
            for (int64_t skip = (int64_t)(s->numbers[at] >> 32) - sets; skip > 0; skip--)
                bits &= bits - 1;
            const uint64_t document = (uint64_t)(word * 64 + __builtin_ctzll(bits));
            const uint32_t place = (uint32_t)s->numbers[at];
            s->pairs[place / 2] |= place % 2 == 0 ? document << 32 : document;
        }
        sets += here;
    }
}

static gnomon_status sample(sampling *s)
{
    gnomon_context *ctx = s->d->ctx;
    gnomon_comparer comparer = {0};
    GNOMON_TRY(gnomon_alloc_zero(ctx, s->count, sizeof *s->pairs, "a sample", &s->pairs));
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(4, s->count), sizeof *s->numbers, "a sample", &s->numbers));
    GNOMON_TRY(gnomon_alloc(ctx, s->count, sizeof *s->similarity, "a sample", &s->similarity));
    draw(s);
    if (s->count > 0) find_documents(s);
    gnomon_status status = gnomon_comparer_open(s->d, &comparer);
    if (status == GNOMON_OK)
        status =
            gnomon_comparer_run(&comparer, s->pairs, s->count, GNOMON_COMPARE_ALL, s->similarity);
    gnomon_comparer_close(&comparer);
    return status;
}

/* Bands that miss a pair of this similarity with probability 'miss' at most; 0: too many. */
static int64_t bands_for(double similarity, int64_t rows, double miss)
{
    const double one = pow(similarity, (double)rows);
    const double bands = one >= 1 ? 1 : ceil(log(miss) / log1p(-one) - 1e-12);
    return bands <= MOST_BANDS ? (int64_t)fmax(bands, 1) : 0;
}

static double cost_of(const gnomon_dedup *d, const sampling *s, int64_t bands, int64_t rows)
{
    const double sets = (double)d->distinct, members = (double)d->result.ngrams;
    double meet = 0;
    for (int64_t at = 0; at < s->count; at++)
        if (s->similarity[at] > 0)
            meet += -expm1((double)bands *
                           log1p(-fmin(pow(s->similarity[at], (double)rows), 1 - 1e-12)));
    const double pairs = s->count > 0 ? meet / (double)s->count * sets * (sets - 1) / 2 : 0;
    return HASH * (double)(bands * rows) * members + KEY * (double)bands * sets +
           pairs * (CANDIDATE + 2 * MEMBER * members / fmax(sets, 1));
}

static void choose(gnomon_dedup *d, const sampling *s)
{
    gnomon_dedup_result *r = &d->result;
    const double miss = (1 - d->options.recall) / 20;
    double least = INFINITY;
    for (int64_t rows = 1; rows <= MOST_ROWS; rows++) {
        const int64_t bands = bands_for(d->options.similarity, rows, miss);
        if (bands == 0) break;
        const double cost = cost_of(d, s, bands, rows);
        if (cost >= least) continue;
        least = cost;
        r->bands = bands;
        r->rows = rows;
    }
    snprintf(r->why, sizeof r->why, "least cost by a model, for %lld sampled pairs",
             (long long)s->count);
}

gnomon_status gnomon_dedup_plan(gnomon_dedup *d)
{
    gnomon_dedup_result *r = &d->result;
    if (d->options.bands > 0) {
        r->bands = d->options.bands;
        r->rows = d->options.rows;
        snprintf(r->why, sizeof r->why, "bands and rows as given");
    } else {
        sampling s = {.d = d, .count = d->distinct < 2 ? 0 : gnomon_min(SAMPLE, d->distinct * 4)};
        const gnomon_status status = sample(&s);
        if (status == GNOMON_OK) choose(d, &s);
        gnomon_free(d->ctx, s.pairs);
        gnomon_free(d->ctx, s.numbers);
        gnomon_free(d->ctx, s.similarity);
        GNOMON_TRY(status);
        GNOMON_FAIL_IF(r->bands == 0, d->ctx, GNOMON_ERROR_UNSUPPORTED,
                       GNOMON_ARG("options.similarity") " is %g: a recall of %g needs more than %d "
                                                        "bands; use a larger similarity, a "
                                                        "smaller recall, or recall 1",
                       d->options.similarity, d->options.recall, MOST_BANDS);
    }
    const double one = pow(d->options.similarity, (double)r->rows);
    r->recall_bound = one >= 1 ? 1 : 1 - 20 * exp((double)r->bands * log1p(-one));
    return GNOMON_OK;
}
