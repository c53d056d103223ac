/* devices/devices.h: several devices of one plugin as one.
 *
 * The core sees one device, whose table is made here: a job is divided by points, base points or
 * rows, where the cuts don't change a bit, and every part is the plugin's job on one device, in a
 * thread of its own. What a part asks of the core is done in the thread that made the call, one
 * thing at a time: no callback needs to know of the others. Jobs that are not divided run on the
 * first device.
 */
#ifndef GNOMON_DEVICES_H
#define GNOMON_DEVICES_H

#include "base/device.h"
#include "base/plugin.h"

#include <gnomon/matrix.h>

typedef struct gnomon_devices {
    gnomon_device_table table;     /* what the core sees */
    const gnomon_device_table *of; /* the plugin's */
    int count;
    int index[GNOMON_DEVICES_MOST];
    void *state[GNOMON_DEVICES_MOST];
} gnomon_devices;

/* A part of a job, and the device that has it. host.user is this struct, so it stays where it is
 * until the device has let go of the part. */
typedef struct gnomon_share {
    struct gnomon_crew *crew; /* of the call in progress; NULL: it runs in the calling thread */
    gnomon_devices *devices;
    int device;                       /* the how-manieth */
    void *state;                      /* the device's */
    int64_t first, count;             /* points, queries or sets */
    gnomon_device_host host;          /* for its job */
    const gnomon_device_host *caller; /* the whole job's */

    gnomon_status status;
    char why[256];
    char argument[64]; /* what the device has told with host.about; "": nothing */
    int64_t row, col;
    double done;  /* share of the part */
    bool checked; /* its input is */
    bool ended;
    void *own;                /* a job's */
    void (*asked)(void *arg); /* to be called in the calling thread; NULL: nothing is */
    void *asked_with;
} gnomon_share;

/* The parts of one job. */
typedef struct gnomon_shares {
    int count;
    gnomon_share part[GNOMON_DEVICES_MOST];
} gnomon_shares;

/* Divides 'rows' evenly among as many devices as have work. The rows of a part begin with a
 * multiple of 32, so that lines lie as well as those of the whole. */
void gnomon_shares_by_rows(gnomon_shares *parts, gnomon_devices *devices,
                           const gnomon_device_host *host, int64_t rows);
/* The first device has all of them after all. */
void gnomon_shares_first(gnomon_shares *parts, int64_t rows);
/* One part for each device, all of the same rows. */
void gnomon_shares_alike(gnomon_shares *parts, gnomon_devices *devices,
                         const gnomon_device_host *host, int64_t rows);

/* Runs work on every part, and returns the first part's failure: its status, its reason in why, and
 * what host->about was told. DEVICE and MEMORY name the device. A failure of a device ends the
 * other parts at their next step; one about the data does not, so that the first of those is the
 * same whatever comes first. */
gnomon_status gnomon_shares_run(gnomon_shares *parts,
                                gnomon_status (*work)(gnomon_share *part, void *job), void *job,
                                char *why, size_t why_size);

/* In a part's thread: calls fn in the thread that made the job's call, and returns when it has
 * returned. */
void gnomon_share_ask(gnomon_share *part, void (*fn)(void *arg), void *arg);
/* In a part's thread: waits until another one has called gnomon_share_moved, or ended. 'seen' is
 * what gnomon_share_moves gave before the reason to wait was found. */
uint64_t gnomon_share_moves(gnomon_share *part);
void gnomon_share_wait(gnomon_share *part, uint64_t seen);
void gnomon_share_moved(gnomon_share *part);
/* Whether a device has failed, or the caller asks to stop. */
bool gnomon_share_stopped(gnomon_share *part);
/* Lets the others stop. */
void gnomon_share_stop(gnomon_share *part);

/* Sparse rows [first, first + count), without their data where there is none. */
gnomon_csr gnomon_share_csr(const gnomon_csr *csr, int64_t first, int64_t count);

/* Before parts read memory of other devices: it is as the caller's stream (NULL: every device's
 * default one) left it. */
gnomon_status gnomon_devices_await(gnomon_devices *d, void *stream, char *why, size_t why_size);

/* ---- search.c, join.c: the table's functions ---- */

gnomon_status gnomon_devices_search_open(void *state, const struct gnomon_search_job *job,
                                         void **search, char *why, size_t why_size);
gnomon_status gnomon_devices_search_add(void *state, void *search,
                                        struct gnomon_search_piece *piece, char *why,
                                        size_t why_size);
gnomon_status gnomon_devices_search_finish(void *state, void *search, int64_t *counts, int64_t *ids,
                                           double *distances, char *why, size_t why_size);
void gnomon_devices_search_close(void *state, void *search);
gnomon_status gnomon_devices_join(void *state, struct gnomon_join_job *job, char *why,
                                  size_t why_size);

#endif
