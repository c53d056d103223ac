/* dedup/checkpoint.h: a deduplication that can be interrupted. FILE (JSON, replaced as a whole
 * through FILE.new) says what it is and how far it came; the stores are the files FILE.documents,
 * .sets, .texts and .names, and the pairs' runs are in FILE.pairs. One at a time has the lock of
 * FILE.documents. All are read as hostile: checksums bind them to FILE, and each number that leads
 * anywhere is checked. */
#ifndef GNOMON_DEDUP_CHECKPOINT_H
#define GNOMON_DEDUP_CHECKPOINT_H

#include "dedup/store.h"

struct gnomon_dedup;

typedef struct gnomon_checkpoint {
    char *path; /* NULL: there is none */
    char *folder, *identity;
    int64_t restored; /* documents that FILE has: they are passed over when they come again */
    int64_t bands;    /* whose pairs it has */
    bool grouped;     /* it has the pairs of equal sets */
    bool paired;      /* it has all pairs */
    gnomon_window passing;
    double interval;    /* seconds between savings, at least; 0, in tests: none */
    double saved, cost; /* when, and how many seconds it took */
} gnomon_checkpoint;

/* Takes up what options.checkpoint has, or begins it. */
gnomon_status gnomon_checkpoint_open(struct gnomon_dedup *d);
/* Puts on disk how far it came; without a checkpoint nothing. */
gnomon_status gnomon_checkpoint_save(struct gnomon_dedup *d);
/* Whether it is time to: saving takes a tenth of the time at most, as often as every two seconds.
 */
bool gnomon_checkpoint_due(const struct gnomon_dedup *d);
/* The next document, of so many bytes, is there already. */
gnomon_status gnomon_checkpoint_pass(struct gnomon_dedup *d, int64_t bytes);
void gnomon_checkpoint_close(struct gnomon_dedup *d);

#endif
