/* Pairs of sets, compared member by member. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/sort.h"
#include "dedup/state.h"

#include <string.h>

int64_t gnomon_dedup_shared(gnomon_set a, gnomon_set b, double similarity, bool contained)
{
    enum { STEPS = 32 };
    const double sum = (double)(gnomon_set_count(a) + gnomon_set_count(b));
    const double smaller = (double)gnomon_min(gnomon_set_count(a), gnomon_set_count(b));
    const double due = contained ? similarity * smaller : similarity / (1 + similarity) * sum;
    /* less than this is below the similarity, whatever rounding does */
    const int64_t least = (int64_t)(due * (1 - 1e-9));
    int64_t i = 0, j = 0, shared = 0;
    for (;;) {
        int64_t steps = gnomon_min(gnomon_set_count(a) - i, gnomon_set_count(b) - j);
        if (shared + steps < least) return -1;
        if (steps == 0) break;
        steps = gnomon_min(steps, STEPS);
        for (; steps > 0; steps--) {
            const uint64_t x = a.members[i], y = b.members[j];
            shared += x == y;
            i += x <= y;
            j += y <= x;
        }
    }
    return gnomon_dedup_similarity(a, b, shared, contained) >= similarity ? shared : -1;
}

double gnomon_dedup_similarity(gnomon_set a, gnomon_set b, int64_t shared, bool contained)
{
    if (contained)
        return (double)shared / (double)gnomon_min(gnomon_set_count(a), gnomon_set_count(b));
    return (double)shared / (double)(gnomon_set_count(a) + gnomon_set_count(b) - shared);
}

bool gnomon_dedup_near(const gnomon_dedup *d, gnomon_set a, gnomon_set b, double *similarity)
{
    const double least = d->options.unverified ? 0 : d->options.similarity;
    const bool contained = d->options.containment != 0;
    const int64_t shared = gnomon_dedup_shared(a, b, least, contained);
    if (shared <= 0) return false;
    *similarity = gnomon_dedup_similarity(a, b, shared, contained);
    return true;
}

gnomon_status gnomon_dedup_add_edge(gnomon_dedup *d, int64_t a, int64_t b, double similarity)
{
    uint64_t value;
    memcpy(&value, &similarity, sizeof value);
    return gnomon_sorter_add(&d->edges, (uint64_t)a << 32 | (uint64_t)b, value);
}

/* ---- pairs of documents ---- */

enum { TASK = 512 };

gnomon_status gnomon_comparer_open(gnomon_dedup *d, gnomon_comparer *c)
{
    enum { LEAST = 1 << 8, MOST = 1 << 20 };
    /* of a set: where it is, and its document in the lists */
    enum { PLACE = 44 };
    const int64_t most = gnomon_memory_limit(d->ctx) / 8;
    const int64_t each = 2 * (d->sets.size / gnomon_max(1, d->count) + PLACE);
    *c = (gnomon_comparer){.d = d, .room = gnomon_max(LEAST, gnomon_min(MOST, most / each))};
    gnomon_fetch_start(&c->fetch, d, most);
    if (d->sets.fd < 0 && d->documents.fd < 0) return GNOMON_OK;
    const int64_t room = 2 * c->room;
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->numbers, "documents", &c->numbers));
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->scratch, "documents", &c->scratch));
    return gnomon_alloc(d->ctx, room, sizeof *c->documents, "documents", &c->documents);
}

void gnomon_comparer_close(gnomon_comparer *c)
{
    if (c->d == NULL) return;
    gnomon_fetch_end(&c->fetch);
    gnomon_free(c->d->ctx, c->numbers);
    gnomon_free(c->d->ctx, c->scratch);
    gnomon_free(c->d->ctx, c->documents);
    *c = (gnomon_comparer){0};
}

typedef struct comparing {
    const gnomon_comparer *c;
    const uint64_t *pairs;
    int64_t count, documents; /* 0 documents: all sets are in memory */
    gnomon_comparison comparison;
    double *similarity;
} comparing;

static gnomon_set set_of(const comparing *k, uint32_t document)
{
    const gnomon_dedup *d = k->c->d;
    if (k->documents == 0) {
        const gnomon_document *two =
            (const gnomon_document *)(const void *)d->documents.data + document;
        return (gnomon_set){(const uint64_t *)(const void *)(d->sets.data + two[0].set_end),
                            two[1].set_end - two[0].set_end};
    }
    int64_t low = 0;
    for (int64_t high = k->documents; high - low > 1;) {
        const int64_t middle = (low + high) / 2;
        if (k->c->documents[middle] <= document)
            low = middle;
        else
            high = middle;
    }
    return k->c->fetch.sets[low];
}

static void compare_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const comparing *k = arg;
    const int64_t end = gnomon_min((task + 1) * TASK, k->count);
    for (int64_t at = task * TASK; at < end; at++) {
        const gnomon_set a = set_of(k, (uint32_t)(k->pairs[at] >> 32));
        const gnomon_set b = set_of(k, (uint32_t)k->pairs[at]);
        double similarity = -1;
        if (k->comparison == GNOMON_COMPARE_EQUAL) {
            if (a.bytes == b.bytes &&
                (a.bytes == 0 || memcmp(a.members, b.members, (size_t)a.bytes) == 0))
                similarity = 1;
        } else if (k->comparison == GNOMON_COMPARE_ALL) {
            similarity = gnomon_dedup_similarity(a, b, gnomon_dedup_shared(a, b, 0, false), false);
        } else if (!gnomon_dedup_near(k->c->d, a, b, &similarity)) {
            similarity = -1;
        }
        k->similarity[at] = similarity;
    }
}

/* The documents of the pairs, ascending, and their sets; false: they don't all fit. */
static gnomon_status gather(gnomon_comparer *c, const uint64_t *pairs, int64_t count,
                            int64_t *documents, bool *all)
{
    int64_t kept = 0, taken;
    for (int64_t at = 0; at < count; at++) {
        c->numbers[2 * at] = pairs[at] >> 32;
        c->numbers[2 * at + 1] = (uint32_t)pairs[at];
    }
    gnomon_sort_digits(c->numbers, c->scratch, 2 * count);
    for (int64_t at = 0; at < 2 * count; at++)
        if (at == 0 || c->numbers[at] != c->numbers[at - 1])
            c->documents[kept++] = (uint32_t)c->numbers[at];
    GNOMON_TRY(gnomon_fetch_some(&c->fetch, c->documents, kept, count == 1 ? kept : 1, &taken));
    *documents = kept;
    *all = taken == kept;
    return GNOMON_OK;
}

gnomon_status gnomon_comparer_run(gnomon_comparer *c, const uint64_t *pairs, int64_t count,
                                  gnomon_comparison comparison, double *similarity)
{
    gnomon_context *ctx = c->d->ctx;
    const bool in_memory = c->numbers == NULL;
    for (int64_t at = 0, some; at < count; at += some) {
        comparing k = {c, pairs + at, 0, 0, comparison, similarity + at};
        bool all = in_memory;
        some = in_memory ? count : gnomon_min(c->room, count - at);
        while (!all) {
            GNOMON_TRY(gather(c, pairs + at, some, &k.documents, &all));
            if (!all) some = some / 2;
        }
        k.count = some;
        gnomon_parallel(ctx, gnomon_ceil_div(some, TASK), compare_some, &k);
        GNOMON_TRY(gnomon_progress(ctx, "verifying", at + some, -1));
    }
    return GNOMON_OK;
}

/* ---- candidates ---- */

gnomon_status gnomon_candidates_open(gnomon_dedup *d, gnomon_candidates *c)
{
    enum { LEAST = 1 << 14, MOST = 1 << 24 };
    const int64_t bytes = sizeof *c->pairs + sizeof *c->scratch + sizeof *c->similarity;
    int64_t room = gnomon_memory_limit(d->ctx) / 8 / bytes;
    room = gnomon_max(LEAST, gnomon_min(MOST, room));
    *c = (gnomon_candidates){.room = room};
    GNOMON_TRY(gnomon_comparer_open(d, &c->comparer));
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->pairs, "candidates", &c->pairs));
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->scratch, "candidates", &c->scratch));
    return gnomon_alloc(d->ctx, room, sizeof *c->similarity, "candidates", &c->similarity);
}

void gnomon_candidates_close(gnomon_dedup *d, gnomon_candidates *c)
{
    gnomon_comparer_close(&c->comparer);
    gnomon_free(d->ctx, c->pairs);
    gnomon_free(d->ctx, c->scratch);
    gnomon_free(d->ctx, c->similarity);
}

gnomon_status gnomon_candidates_verify(gnomon_dedup *d, gnomon_candidates *c)
{
    gnomon_sort_digits(c->pairs, c->scratch, c->count);
    int64_t kept = 0;
    for (int64_t at = 0; at < c->count; at++)
        if (at == 0 || c->pairs[at] != c->pairs[at - 1]) c->pairs[kept++] = c->pairs[at];
    GNOMON_TRY(
        gnomon_comparer_run(&c->comparer, c->pairs, kept, GNOMON_COMPARE_NEAR, c->similarity));
    d->result.candidates += kept;
    for (int64_t at = 0; at < kept; at++)
        if (c->similarity[at] >= 0)
            GNOMON_TRY(gnomon_dedup_add_edge(d, (int64_t)(c->pairs[at] >> 32),
                                             (int64_t)(uint32_t)c->pairs[at], c->similarity[at]));
    c->count = 0;
    return GNOMON_OK;
}

/* ---- all pairs ---- */

gnomon_status gnomon_dedup_check_memory(const gnomon_dedup *d, const char *option, const char *what,
                                        int64_t each, const char *instead)
{
    const int64_t limit = gnomon_memory_limit(d->ctx);
    const int64_t need = gnomon_times(d->result.ngrams, each);
    GNOMON_FAIL_IF(need < 0 || need > limit, d->ctx, GNOMON_ERROR_MEMORY,
                   GNOMON_ARG("options.%s") " is 1: for %s of %lld n-grams about %lld bytes of "
                                            "memory are needed, and the limit is %lld%s",
                   option, what, (long long)d->result.ngrams, (long long)need, (long long)limit,
                   instead);
    return GNOMON_OK;
}
