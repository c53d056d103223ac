/* Pairs of sets, compared member by member. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/sort.h"
#include "dedup/state.h"

int64_t gnomon_dedup_shared(gnomon_set a, gnomon_set b, double similarity)
{
    enum { STEPS = 32 };
    const double sum = (double)(a.count + b.count);
    /* less than this is below the similarity, whatever rounding does */
    const int64_t least = (int64_t)(similarity / (1 + similarity) * sum * (1 - 1e-9));
    int64_t i = 0, j = 0, shared = 0;
    for (;;) {
        int64_t steps = gnomon_min(a.count - i, b.count - j);
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
    return gnomon_dedup_similarity(a, b, shared) >= similarity ? shared : -1;
}

double gnomon_dedup_similarity(gnomon_set a, gnomon_set b, int64_t shared)
{
    return (double)shared / (double)(a.count + b.count - shared);
}

bool gnomon_dedup_near(const gnomon_dedup *d, gnomon_set a, gnomon_set b, double *similarity)
{
    const double least = d->options.unverified ? 0 : d->options.similarity;
    const int64_t shared = gnomon_dedup_shared(a, b, least);
    if (shared <= 0) return false;
    *similarity = gnomon_dedup_similarity(a, b, shared);
    return true;
}

gnomon_status gnomon_dedup_add_edge(gnomon_dedup *d, int64_t a, int64_t b, double similarity)
{
    const gnomon_dedup_pair pair = {d->firsts[a], d->firsts[b], similarity};
    return gnomon_store_append(&d->edges, &pair, sizeof pair);
}

/* ---- candidates ---- */

enum { TASK = 512 };

gnomon_status gnomon_candidates_open(gnomon_dedup *d, gnomon_candidates *c)
{
    enum { LEAST = 1 << 14, MOST = 1 << 24 };
    const int64_t bytes = sizeof *c->pairs + sizeof *c->scratch + sizeof *c->similarity;
    int64_t room = gnomon_memory_limit(d->ctx) / 8 / bytes;
    room = gnomon_max(LEAST, gnomon_min(MOST, room));
    *c = (gnomon_candidates){.room = room};
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->pairs, "candidates", &c->pairs));
    GNOMON_TRY(gnomon_alloc(d->ctx, room, sizeof *c->scratch, "candidates", &c->scratch));
    return gnomon_alloc(d->ctx, room, sizeof *c->similarity, "candidates", &c->similarity);
}

void gnomon_candidates_close(gnomon_dedup *d, gnomon_candidates *c)
{
    gnomon_free(d->ctx, c->pairs);
    gnomon_free(d->ctx, c->scratch);
    gnomon_free(d->ctx, c->similarity);
}

typedef struct checking {
    const gnomon_dedup *d;
    gnomon_candidates *c;
} checking;

static void check_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const checking *k = arg;
    const int64_t end = gnomon_min((task + 1) * TASK, k->c->count);
    for (int64_t at = task * TASK; at < end; at++) {
        const uint64_t pair = k->c->pairs[at];
        double similarity;
        const bool near =
            gnomon_dedup_near(k->d, gnomon_dedup_set(k->d, (int64_t)(pair >> 32)),
                              gnomon_dedup_set(k->d, (int64_t)(uint32_t)pair), &similarity);
        k->c->similarity[at] = near ? similarity : -1;
    }
}

gnomon_status gnomon_candidates_verify(gnomon_dedup *d, gnomon_candidates *c)
{
    gnomon_sort_digits(c->pairs, c->scratch, c->count);
    int64_t kept = 0;
    for (int64_t at = 0; at < c->count; at++)
        if (at == 0 || c->pairs[at] != c->pairs[at - 1]) c->pairs[kept++] = c->pairs[at];
    c->count = kept;
    checking k = {d, c};
    gnomon_parallel(d->ctx, gnomon_ceil_div(kept, TASK), check_some, &k);
    d->result.candidates += kept;
    for (int64_t at = 0; at < kept; at++)
        if (c->similarity[at] >= 0)
            GNOMON_TRY(gnomon_dedup_add_edge(d, (int64_t)(c->pairs[at] >> 32),
                                             (int64_t)(uint32_t)c->pairs[at], c->similarity[at]));
    c->count = 0;
    return GNOMON_OK;
}
