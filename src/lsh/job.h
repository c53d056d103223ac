/* lsh/job.h: hashing as a device is given it: arguments checked. */
#ifndef GNOMON_LSH_JOB_H
#define GNOMON_LSH_JOB_H

#include "backend.h"
#include "lsh/hasher.h"
#include "lsh/table.h"

/* Makes room for a table of so many entries and buckets, and sets its counts and bits; what came
 * out is one of base.h's, its text left in the context. */
typedef struct gnomon_lsh_rooms {
    void *user;
    gnomon_status (*make)(void *user, int64_t table, int64_t entries, int64_t buckets,
                          gnomon_table *out);
} gnomon_lsh_rooms;

/* Points' values, or their keys in every table, or tables of them: one of values, keys and rooms is
 * not NULL. Points are checked but for NaN and infinity, which end the job with NONFINITE. Device
 * code sees the same struct. */
typedef struct gnomon_lsh_job {
    const gnomon_hasher *hasher;
    const gnomon_matrix *points; /* NULL: */
    const gnomon_csr *sets;      /* minhash */
    int64_t first_entry;         /* number of the sets' first entry, for reasons */
    const gnomon_matrix *values; /* I32, n x count */
    uint64_t *keys;              /* keys[t * key_stride + i], as gnomon_lsh_keys makes them */
    int64_t key_stride;          /* n, or of more points whose keys lie there */
    const gnomon_lsh_rooms *rooms;
    int64_t tables, depth,
        coarse;                  /* for keys and tables: functions of a table, coarse ones first */
    const uint64_t *multipliers; /* of the positions 0 ... depth - 1 */
    uint32_t first_id;           /* of point 0 in tables */
    bool same;                   /* decline where a value may differ from the CPU's */
    int64_t memory_limit;        /* bytes of working memory on the host */
    const gnomon_device_host *host; /* set for a device's call */
} gnomon_lsh_job;

/* Keys of an index's points; multipliers has room for GNOMON_LSH_MOST_DEPTH. */
gnomon_lsh_job gnomon_lsh_job_of(gnomon_context *ctx, const gnomon_lsh *index,
                                 const gnomon_points *points, uint64_t *multipliers);

/* Offers the job to the context's device, as base/device.h says. Keys are always the CPU's; values
 * of a device that the caller named may be others where the sums are. */
gnomon_status gnomon_lsh_on_device(gnomon_context *ctx, const gnomon_lsh_job *job, bool *done);

#endif
