/* dedup/device/texts.h: sets of n-grams that a device makes.
 *
 * Texts go there in parts, two of them at a time: while one is at work the caller reads the next.
 * What a part's documents are besides their sets waits here until these are back. Texts that a
 * device does not take, long ones and those that are normalised, become sets here meanwhile. */
#ifndef GNOMON_DEDUP_DEVICE_TEXTS_H
#define GNOMON_DEDUP_DEVICE_TEXTS_H

#include "base/device.h"
#include "dedup/device/job.h"

#include <gnomon/dedup.h>

/* A document whose set is not in its store yet. */
typedef struct gnomon_waiting {
    int64_t bytes, raw_end, name_end;
    int64_t place, count; /* its set in 'numbers'; -1: the device makes it */
    uint64_t hash;
} gnomon_waiting;

typedef struct gnomon_dedup_part {
    gnomon_waiting *documents;
    int64_t count;
    uint64_t *numbers; /* sets, and as much room for scratch behind them */
    int64_t number_room;
} gnomon_dedup_part;

typedef struct gnomon_dedup_device {
    gnomon_device_call call;
    gnomon_dedup_job job;
    void *texts;            /* the device's; NULL: the CPU makes all sets */
    bool asked;             /* whether there is one that does */
    bool used;              /* there was one */
    double offered;         /* bytes of text so far */
    gnomon_dedup_slot slot; /* the next texts' */
    gnomon_dedup_part parts[GNOMON_DEDUP_SLOTS];
    int64_t pushed, taken;
} gnomon_dedup_device;

/* Asks the context's device to make sets: at once where the caller named it, else when so many
 * bytes of text have come that as many more are worth it. Errors: DEVICE, MEMORY. */
gnomon_status gnomon_dedup_offer(gnomon_dedup *d, int64_t bytes);
/* Documents whose offsets and names have been checked. */
gnomon_status gnomon_dedup_add_on_device(gnomon_dedup *d, const gnomon_documents *from);
/* All sets that are still on their way are put into their store, and no more are made there. */
gnomon_status gnomon_dedup_end_on_device(gnomon_dedup *d);
void gnomon_dedup_close_on_device(gnomon_dedup *d);

#endif
