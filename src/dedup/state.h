/* dedup/state.h: a deduplication and its steps. */
#ifndef GNOMON_DEDUP_STATE_H
#define GNOMON_DEDUP_STATE_H

#include "dedup/ngrams.h"
#include "dedup/store.h"

#include <gnomon/dedup.h>

/* Of a document in 'group': its set is empty. */
#define GNOMON_NO_GROUP UINT32_MAX

/* Sets that are distinct are numbered by their first documents. 'sets' holds the documents' sets
 * one after another, or their texts (options.exact). */
struct gnomon_dedup {
    gnomon_context *ctx;
    gnomon_dedup_options options;
    char *work;
    gnomon_ngrams ngrams;
    gnomon_store sets, raw, edges, names;
    int64_t count, room;
    int64_t *ends;     /* of document i's set in sets, in bytes */
    int64_t *raw_ends; /* with keep_raw: in raw */
    int64_t *bytes;    /* of text */
    uint64_t *hashes;  /* of sets */
    uint64_t *numbers; /* sets of a slice of new documents, and scratch for them */
    int64_t number_room;
    int64_t named, named_room; /* the first documents, which signature files named */
    int64_t *name_ends;        /* of those, in names, with a NUL each */
    bool broken, sealed, done; /* after a failed call; no document is added any more; after a run */
    uint32_t *group;           /* of a document: its distinct set */
    uint32_t *firsts;          /* of a distinct set: its first document */
    int64_t distinct;
    int64_t *representatives;
    gnomon_dedup_result result;
};

typedef struct gnomon_set {
    const uint64_t *members; /* ascending */
    int64_t count;
} gnomon_set;

static inline int64_t gnomon_dedup_begin(const gnomon_dedup *d, int64_t document)
{
    return document > 0 ? d->ends[document - 1] : 0;
}

/* Distinct set number s. */
static inline gnomon_set gnomon_dedup_set(const gnomon_dedup *d, int64_t s)
{
    const int64_t begin = gnomon_dedup_begin(d, d->firsts[s]), end = d->ends[d->firsts[s]];
    return (gnomon_set){(const uint64_t *)(const void *)(d->sets.data + begin),
                        (end - begin) / (int64_t)sizeof(uint64_t)};
}

/* dedup.c: room for 'count' more documents. */
gnomon_status gnomon_dedup_grow(gnomon_dedup *d, int64_t count);
/* group.c: finds equal sets, and numbers the distinct ones. */
gnomon_status gnomon_dedup_group(gnomon_dedup *d);
/* plan.c: chooses bands and rows. */
gnomon_status gnomon_dedup_plan(gnomon_dedup *d);
/* bands.c: adds the near pairs of distinct sets that share a band to d->edges. */
gnomon_status gnomon_dedup_bands(gnomon_dedup *d);
/* verify.c */
/* The members that two sets share; -1 where their similarity is below 'similarity'. */
int64_t gnomon_dedup_shared(gnomon_set a, gnomon_set b, double similarity);
double gnomon_dedup_similarity(gnomon_set a, gnomon_set b, int64_t shared);
/* What options ask of a pair: the similarity, or with unverified any above 0. */
bool gnomon_dedup_near(const gnomon_dedup *d, gnomon_set a, gnomon_set b, double *similarity);
/* Adds a pair of distinct sets. */
gnomon_status gnomon_dedup_add_edge(gnomon_dedup *d, int64_t a, int64_t b, double similarity);
/* Pairs of sets, the first one's number above the second's 32 bits: sorts them, drops repetitions,
 * and adds the near ones. room of each array: count. */
typedef struct gnomon_candidates {
    uint64_t *pairs, *scratch;
    double *similarity;
    int64_t count, room;
} gnomon_candidates;
gnomon_status gnomon_candidates_open(gnomon_dedup *d, gnomon_candidates *c);
void gnomon_candidates_close(gnomon_dedup *d, gnomon_candidates *c);
gnomon_status gnomon_candidates_verify(gnomon_dedup *d, gnomon_candidates *c);
static inline gnomon_status gnomon_candidates_add(gnomon_dedup *d, gnomon_candidates *c, uint64_t a,
                                                  uint64_t b)
{
    if (c->count == c->room) GNOMON_TRY(gnomon_candidates_verify(d, c));
    c->pairs[c->count++] = a << 32 | b;
    return GNOMON_OK;
}
/* exact.c: adds all near pairs by the exact join. */
gnomon_status gnomon_dedup_exact(gnomon_dedup *d);
/* clusters.c: sorts the edges, makes clusters and representatives of them, and counts. */
gnomon_status gnomon_dedup_cluster(gnomon_dedup *d);

#endif
