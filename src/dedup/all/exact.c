/* All near pairs, by the exact join of the sets. */
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"

#include <stdio.h>
#include <string.h>

typedef struct taking {
    gnomon_dedup *d;
    gnomon_candidates candidates;
    uint32_t *documents; /* of the join's sets */
    gnomon_status status;
} taking;

static int take(void *user, const gnomon_join_batch *batch)
{
    taking *t = user;
    for (int64_t at = 0; at < batch->count && t->status == GNOMON_OK; at++)
        if ((int64_t)t->documents[batch->pairs[at].i] < t->d->fresh)
            t->status =
                gnomon_candidates_add(t->d, &t->candidates, t->documents[batch->pairs[at].i],
                                      t->documents[batch->pairs[at].j]);
    return t->status != GNOMON_OK;
}

/* Members of 62 bits, which the join's columns are: verification drops what only they share. */
static gnomon_status take_sets(taking *t, int64_t *offsets, int64_t *members)
{
    gnomon_scan scan;
    int64_t count, at = 0, sets = 0;
    gnomon_status status = gnomon_scan_open(&scan, t->d, gnomon_memory_limit(t->d->ctx) / 8);
    offsets[0] = 0;
    while (status == GNOMON_OK) {
        status = gnomon_scan_next(&scan, INT64_MAX, &count);
        if (status != GNOMON_OK || count == 0) break;
        for (int64_t i = 0; i < count; i++) {
            const gnomon_set set = scan.fetch.sets[i];
            for (int64_t e = 0; e < gnomon_set_count(set); e++)
                members[at++] = (int64_t)(set.members[e] >> 2);
            t->documents[sets++] = scan.documents[i];
            offsets[sets] = at;
        }
    }
    gnomon_scan_close(&scan);
    return status;
}

static gnomon_status join(gnomon_dedup *d, taking *t, int64_t *offsets, int64_t *members,
                          uint8_t *values)
{
    gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
    const gnomon_csr sets = {d->distinct, (int64_t)1 << 62, offsets, members, values, GNOMON_U8};
    GNOMON_TRY(take_sets(t, offsets, members));
    memset(values, 1, (size_t)d->result.ngrams);
    o.metric = GNOMON_JACCARD;
    o.threshold = gnomon_similarity_threshold(d->options.similarity);
    o.sink = take;
    o.user = t;
    const gnomon_status status = gnomon_join_csr(d->ctx, &sets, NULL, &o, NULL);
    return t->status != GNOMON_OK ? t->status : status;
}

gnomon_status gnomon_dedup_exact(gnomon_dedup *d)
{
    taking t = {.d = d};
    int64_t *offsets = NULL, *members = NULL;
    uint8_t *values = NULL;
    /* members and values here, and what the join makes of them */
    enum { EACH = 40 };
    GNOMON_TRY(
        gnomon_dedup_check_memory(d, "recall", "the exact join", EACH, "; use a recall below 1"));
    snprintf(d->result.why, sizeof d->result.why, "recall 1: the exact join");
    d->result.recall_bound = 1;
    gnomon_status status = gnomon_candidates_open(d, &t.candidates);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->distinct + 1, sizeof *offsets, "sets", &offsets);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->result.ngrams, sizeof *members, "sets", &members);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->result.ngrams, sizeof *values, "sets", &values);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->distinct, sizeof *t.documents, "sets", &t.documents);
    if (status == GNOMON_OK && d->distinct > 0) status = join(d, &t, offsets, members, values);
    if (status == GNOMON_OK) status = gnomon_candidates_verify(d, &t.candidates);
    gnomon_candidates_close(d, &t.candidates);
    gnomon_free(d->ctx, t.documents);
    gnomon_free(d->ctx, offsets);
    gnomon_free(d->ctx, members);
    gnomon_free(d->ctx, values);
    return status;
}
