/* dedup/state.h: a deduplication and its steps. */
#ifndef GNOMON_DEDUP_STATE_H
#define GNOMON_DEDUP_STATE_H

#include "base/threads.h"
#include "dedup/checkpoint.h"
#include "dedup/device/texts.h"
#include "dedup/ngrams.h"
#include "dedup/ranks/ranks.h"
#include "dedup/runs.h"

#include <gnomon/dedup.h>

/* ---- fetch.c: documents' sets, read from where they are ---- */

typedef struct gnomon_set {
    const uint64_t *members; /* ascending; options.exact: a text */
    int64_t bytes;
} gnomon_set;

static inline int64_t gnomon_set_count(gnomon_set set)
{
    return set.bytes / (int64_t)sizeof *set.members;
}

/* The sets of some documents: in memory where all are, else read into an arena. */
typedef struct gnomon_fetch {
    gnomon_dedup *d;
    gnomon_window places;
    int64_t most; /* bytes of the arena, but for what must be read at once */
    char *arena;
    gnomon_set *sets;
    int64_t *begins; /* of sets in the file */
    int64_t room, arena_room;
} gnomon_fetch;

void gnomon_fetch_start(gnomon_fetch *fetch, gnomon_dedup *d, int64_t most);
/* Of documents, ascending: the first 'least' ones, and as many more as fit; *taken of them are in
 * fetch->sets until the next call. */
gnomon_status gnomon_fetch_some(gnomon_fetch *fetch, const uint32_t *documents, int64_t count,
                                int64_t least, int64_t *taken);
void gnomon_fetch_end(gnomon_fetch *fetch);

enum { GNOMON_SCAN_MOST = 1 << 14 };

/* The distinct sets in their order, a block at a time. */
typedef struct gnomon_scan {
    gnomon_fetch fetch;
    int64_t next; /* document */
    uint32_t *documents;
    int64_t room;
} gnomon_scan;

gnomon_status gnomon_scan_open(gnomon_scan *scan, gnomon_dedup *d, int64_t bytes);
/* At most 'most' and GNOMON_SCAN_MOST sets, in scan->documents and scan->fetch.sets; *count is 0 at
 * the end. */
gnomon_status gnomon_scan_next(gnomon_scan *scan, int64_t most, int64_t *count);
void gnomon_scan_close(gnomon_scan *scan);

/* ---- documents ---- */

/* Of a document, in the store 'documents', behind a record of zeros: so that document i's set,
 * raw bytes and name begin where record i says, and end where record i + 1 does. */
typedef struct gnomon_document {
    int64_t set_end, raw_end, name_end; /* in sets, raw and names, in bytes */
    int64_t bytes;                      /* of text */
    uint64_t hash;                      /* of the set (options.exact: the text) */
} gnomon_document;

/* Room for documents whose sets are made at once, kept from one call to the next. */
typedef struct gnomon_dedup_slice {
    uint64_t *numbers; /* sets, and behind them scratch for them */
    int64_t number_room;
    int64_t *places, *counts; /* of a document's set, which begins there */
    gnomon_document *records;
    int64_t room;    /* documents */
    uint64_t *small; /* scratch of a worker, which stays in its cache */
    int64_t *faults; /* of a worker: the first document that is no UTF-8, or count */
} gnomon_dedup_slice;

/* A set is known by the first document that has it: 'firsts' has a bit for each of these. In memory
 * are a few bits and bytes of a document; all else is in stores, whose sizes follow the context's
 * memory limit. */
struct gnomon_dedup {
    gnomon_context *ctx;
    gnomon_dedup_options options;
    char *work;
    gnomon_ngrams ngrams;
    gnomon_store sets; /* documents' sets one after another, or their texts (options.exact) */
    gnomon_store raw, names, documents;
    XXH3_state_t *raw_sum; /* GNOMON_RAW_SUM: of the raw bytes of all documents, else NULL */
    gnomon_store pairs, representatives; /* what was found */
    gnomon_sorter edges;  /* (i, j) and the similarity of each pair, repeated ones too */
    int64_t count, fresh; /* documents, and those that are no old corpus's: the first ones */
    bool parts;           /* texts of no byte are equal to none; see parts/parts.c */
    bool against;         /* the old corpus has been added */
    gnomon_dedup_slice slice;
    gnomon_checkpoint checkpoint;
    gnomon_dedup_device device;
    gnomon_dedup_ranks ranks;
    int64_t named;             /* the first documents that have names */
    int64_t name_calls;        /* since the pages of names were let go of */
    bool broken, sealed, done; /* after a failed call; no document is added any more; after a run */
    uint64_t *firsts;
    int64_t distinct;
    gnomon_dedup_result result;
};

/* Words of a bit for each document. */
static inline int64_t gnomon_dedup_words(const gnomon_dedup *d)
{
    return d->count / 64 + 1;
}
static inline bool gnomon_bit(const uint64_t *bits, int64_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}
static inline void gnomon_bit_set(uint64_t *bits, int64_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

enum { GNOMON_NAME_MOST = 1 << 20 };

/* documents.c */
/* One more document of so many bytes of text is there. */
void gnomon_dedup_count(gnomon_dedup *d, int64_t bytes);
static inline int64_t gnomon_dedup_raw_bytes(const gnomon_dedup *d, const gnomon_documents *from,
                                             int64_t i)
{
    if (d->options.keep_raw != GNOMON_RAW_HELD) return 0;
    return from->raw_begins != NULL ? from->raw_ends[i] - from->raw_begins[i]
                                    : from->ends[i] - from->begins[i];
}
/* A document's set (text), raw bytes and name (NULL: none) have been appended. */
gnomon_status gnomon_dedup_append(gnomon_dedup *d, int64_t bytes, uint64_t hash);
/* Whether a caller's documents are sound. */
gnomon_status gnomon_dedup_check_documents(gnomon_dedup *d, const gnomon_documents *from);
/* Whether 'count' more documents are too many. */
gnomon_status gnomon_dedup_check_room(gnomon_dedup *d, int64_t count);
/* Runs tasks of 'each' of the next 'count' documents. faults, one a worker, get the first of those
 * that it finds not to be UTF-8. Errors: DATA, naming the first of all. */
gnomon_status gnomon_dedup_over_texts(gnomon_dedup *d, int64_t count, int64_t each,
                                      gnomon_task_fn fn, void *arg, int64_t *faults);
/* No document is added any more. */
gnomon_status gnomon_dedup_seal(gnomon_dedup *d);
/* A document's name is one that a signature file can hold. */
gnomon_status gnomon_dedup_check_name(const gnomon_dedup *d, const char *name, int64_t document);
/* Record i of documents; [1] is the next one. */
static inline gnomon_status gnomon_dedup_document(gnomon_window *documents, int64_t i,
                                                  const gnomon_document **two)
{
    return gnomon_window_get(documents, i * (int64_t)sizeof **two, 2 * (int64_t)sizeof **two, two);
}
enum { GNOMON_DOCUMENT_WINDOW = 1 << 16 };

/* kept.c */
gnomon_status gnomon_dedup_start_raw(gnomon_dedup *d);
/* Adds the raw bytes of documents [first, first + count) of a call to a sum that isn't NULL. */
void gnomon_dedup_sum_raw(XXH3_state_t *sum, const gnomon_documents *from, int64_t first,
                          int64_t count);
/* Keeps these bytes, or their sum, where they are asked for. */
gnomon_status gnomon_dedup_append_raw(gnomon_dedup *d, const gnomon_documents *from, int64_t first,
                                      int64_t count);

/* group.c: finds equal sets, adds the pairs of them, and marks the first ones. */
gnomon_status gnomon_dedup_group(gnomon_dedup *d);
/* plan.c: chooses bands and rows. */
gnomon_status gnomon_dedup_plan(gnomon_dedup *d);
/* bands.c: adds the near pairs of distinct sets that share a band to d->edges. */
gnomon_status gnomon_dedup_bands(gnomon_dedup *d);
/* verify.c */
/* The members that two sets share; -1 where their similarity (contained: the containment) is below
 * 'similarity'. */
int64_t gnomon_dedup_shared(gnomon_set a, gnomon_set b, double similarity, bool contained);
double gnomon_dedup_similarity(gnomon_set a, gnomon_set b, int64_t shared, bool contained);
/* What options ask of a pair: the similarity, or with unverified any above 0. */
bool gnomon_dedup_near(const gnomon_dedup *d, gnomon_set a, gnomon_set b, double *similarity);
/* Adds a pair of documents a < b. */
gnomon_status gnomon_dedup_add_edge(gnomon_dedup *d, int64_t a, int64_t b, double similarity);

/* Compares pairs of documents, a's number above b's 32 bits. */
typedef enum gnomon_comparison {
    GNOMON_COMPARE_NEAR, /* the similarity, -1 where gnomon_dedup_near says no */
    GNOMON_COMPARE_ALL,  /* the similarity */
    GNOMON_COMPARE_EQUAL /* 1 or -1 */
} gnomon_comparison;
typedef struct gnomon_comparer {
    gnomon_dedup *d;
    gnomon_fetch fetch;
    uint64_t *numbers, *scratch; /* documents of a chunk of pairs, for sorting */
    uint32_t *documents;
    int64_t room; /* pairs of a chunk */
} gnomon_comparer;
gnomon_status gnomon_comparer_open(gnomon_dedup *d, gnomon_comparer *c);
void gnomon_comparer_close(gnomon_comparer *c);
/* Those near each other in the list should be near in the corpus: they are read in parts of it. */
gnomon_status gnomon_comparer_run(gnomon_comparer *c, const uint64_t *pairs, int64_t count,
                                  gnomon_comparison comparison, double *similarity);

/* Candidates: when they are many they are sorted, repetitions dropped, and the near ones added.
 * room of each array: count. */
typedef struct gnomon_candidates {
    uint64_t *pairs, *scratch;
    double *similarity;
    int64_t count, room;
    gnomon_comparer comparer;
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
/* Whether memory has room for 'each' bytes of every n-gram of distinct sets, which 'what' of them
 * takes, as options.'option', which is 1, asks for. Errors: MEMORY, with 'instead' at its end. */
gnomon_status gnomon_dedup_check_memory(const gnomon_dedup *d, const char *option, const char *what,
                                        int64_t each, const char *instead);
/* all/exact.c: adds all near pairs by the exact join. */
gnomon_status gnomon_dedup_exact(gnomon_dedup *d);
/* all/contain.c: adds all near pairs by containment. */
gnomon_status gnomon_dedup_contain(gnomon_dedup *d);
/* clusters.c: sorts the edges, makes clusters and representatives of them, and counts. */
gnomon_status gnomon_dedup_cluster(gnomon_dedup *d);

#endif
