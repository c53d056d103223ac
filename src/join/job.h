/* join/job.h: a join, its arguments checked, as a device is given it. */
#ifndef GNOMON_JOIN_JOB_H
#define GNOMON_JOIN_JOB_H

#include "backend.h"
#include "lsh/hasher.h"

#include <gnomon/join.h>

/* Whether a join is by hashing. */
enum {
    GNOMON_JOIN_NO_HASHING = 0,
    GNOMON_JOIN_MAY_HASH = 1, /* where the device is faster so */
    GNOMON_JOIN_MUST_HASH = 2
};

/* What the steps of a join cost, in nanoseconds. Plans and methods are compared by it. */
typedef struct gnomon_join_costs {
    double product_term, bit, member, function; /* of a point in a hash function: a term of a dense
                                                   product, a bit, a set's member, and all else */
    double start, table;                        /* an LSH join; each of its tables */
    double placing, placing_coordinate;     /* a point's place in a table, and that a coordinate */
    double key_lookup;                      /* a candidate's, at a table's key */
    double verifying, verifying_coordinate; /* a candidate, and that a coordinate */
    double filtering, filtering_coordinate; /* a pair of an exact join, and that a coordinate */
    double filter_coordinates;              /* of so many at most */
    double shared_member;                   /* of two sets */
} gnomon_join_costs;

/* What a plan of hashing is made from. */
typedef struct gnomon_join_sample {
    gnomon_matrix p, q; /* the rows that the job names, of P's and Q's types, on the host */
    double squares[2];  /* L2: the largest squared length of a point of P's and of Q's, with the
                           CPU's bits; negative: the core scans them, they lie on the host */
    gnomon_join_costs costs; /* the device's */
} gnomon_join_sample;

/* A plan: 'shallow' tables of 'depth' functions each, then 'deep' ones of one more, of the hasher's
 * functions in their order; none: the join is to be exact. */
typedef struct gnomon_join_tables {
    const gnomon_hasher *hasher;
    const uint64_t *multipliers; /* of depth + 1 positions */
    int64_t depth, shallow, deep;
} gnomon_join_tables;

/* What the core does for a device in the middle of the work, from the calling thread. */
typedef struct gnomon_join_host {
    void *user;
    /* The next rows of P, [*first, *end), to be joined with Q; none: first is end. They ascend from
     * call to call. Where want_pairs is set all pairs of these are handed over, up to *end, before
     * the next call. */
    void (*rows)(void *user, int64_t *first, int64_t *end);
    /* Plans a join by hashing; *out is good until the join returns. */
    gnomon_status (*plan)(void *user, const gnomon_join_sample *sample, gnomon_join_tables *out);
    /* Refuses points on the host that no join takes. A device that hands over pairs before it has
     * scanned all points calls it first. */
    gnomon_status (*check)(void *user);
    /* Takes pairs that come after all those before in the order of (i, j), within the threshold and
     * with their fp64 distances, bit for bit as src/search/exact.c makes them. With those of a call
     * all pairs of P's rows below 'end' are there, which is the last one's row or more: pairs of
     * one row may be cut anywhere. Returns what the join ends with, unless OK. */
    gnomon_status (*emit)(void *user, int64_t end, const gnomon_pair *pairs, int64_t count);
} gnomon_join_host;

/* Rows of P, those that calls->rows tells, with Q (q NULL: with P's own later rows). metric is L2,
 * COSINE, IP or HAMMING; of JACCARD p_sets and q_sets are P and Q, on the host, their offsets
 * checked and all else as the caller gave it. Views lie on the host or on the device. The device
 * refuses points that no join takes, naming side, row and column. Where want_pairs is 0 it may
 * count by itself and add to 'pairs'; else all go through take. Device code sees the same struct.
 */
typedef struct gnomon_join_job {
    const gnomon_matrix *p, *q;
    const gnomon_csr *p_sets, *q_sets;
    gnomon_metric metric;
    double threshold; /* inclusive; IP: the least product */
    int hashing;      /* GNOMON_JOIN_MUST_HASH and the others; when it may be, rows of a sample: */
    const uint32_t *p_some, *q_some;
    int64_t p_some_count, q_some_count;
    int64_t band_rows; /* by hashing: of P at a time, at most; 0: any number */
    int want_pairs;
    int64_t pair_room;    /* so many pairs may wait on the host, of one row any number */
    int64_t memory_limit; /* bytes of working memory on the host */
    void *device_stream;  /* of gnomon_join_options */
    const gnomon_device_host *host;
    const gnomon_join_host *calls;

    /* ---- results ---- */
    int64_t pairs;              /* counted by the device */
    int64_t compared, verified; /* on the device */
    int hashed;                 /* it was by hashing */
    char why[GNOMON_JOIN_WHY];  /* what filtered: "fp16 products on tensor cores" */
} gnomon_join_job;

#endif
