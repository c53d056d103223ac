/* dedup/ranks/ranks.h: a deduplication whose sets are made by several ranks.
 *
 * All ranks are given the same documents. Slices of these are dealt out; a rank makes the sets of
 * its own and sends them to rank 0, which puts those of all ranks into its stores, in the order of
 * the documents, and does everything else. */
#ifndef GNOMON_DEDUP_RANKS_H
#define GNOMON_DEDUP_RANKS_H

#include "comm/comm.h"

#include <gnomon/dedup.h>

#include <stdbool.h>

enum { GNOMON_RANK_WORKS = 0, GNOMON_RANK_WAITS = 1, GNOMON_RANK_ENDED = 2 };

typedef struct gnomon_dedup_ranks {
    gnomon_comm comm; /* of one rank: nothing of this is used */
    gnomon_message message;
    int64_t slices;   /* so far */
    int64_t given;    /* documents, to gnomon_dedup_add */
    int64_t restored; /* documents that rank 0's checkpoint has */
    bool waiting;     /* for rank 0's answer to what was sent */
    bool lost;        /* the ranks can't speak with each other any more */
    bool over;        /* this rank has said, or heard, its last */
    char *heard;      /* rank 0: of each of the others, one of these: */
    gnomon_comm_failure bad;
    char *body; /* of a message */
    int64_t room;
} gnomon_dedup_ranks;

/* The sets of a slice. */
typedef struct gnomon_slice_sets {
    int64_t count, numbers; /* documents, and members of all */
    const int64_t *counts;  /* members of each */
    const uint64_t *hashes, *sets;
} gnomon_slice_sets;

static inline bool gnomon_dedup_divided(const gnomon_dedup_ranks *ranks)
{
    return ranks->comm.size > 1;
}

/* Takes options->comm: of one rank where it is NULL. Errors: ARGUMENT. */
gnomon_status gnomon_dedup_ranks_take(gnomon_context *ctx, const gnomon_dedup_options *options,
                                      gnomon_comm *comm);
/* The ranks compare how they fare, and what they do; d is NULL where this one has failed. */
gnomon_status gnomon_dedup_ranks_begin(gnomon_context *ctx, const gnomon_comm *comm,
                                       gnomon_dedup *d, gnomon_status status);
/* Who makes the next slice's sets. */
int gnomon_dedup_ranks_owner(gnomon_dedup *d);
/* Sends this rank's slice: document at's members begin at sets[places[at]]. */
gnomon_status gnomon_dedup_ranks_send(gnomon_dedup *d, int64_t count, const int64_t *counts,
                                      const uint64_t *hashes, const uint64_t *sets,
                                      const int64_t *places);
/* Waits for rank 0's answer to what was sent, if that has not come. */
gnomon_status gnomon_dedup_ranks_wait(gnomon_dedup *d);
/* Rank 0: another rank's slice, valid until the next call. */
gnomon_status gnomon_dedup_ranks_receive(gnomon_dedup *d, int from, int64_t count,
                                         gnomon_slice_sets *slice);
/* What rank 0 alone does between two calls that all share. Rank 0: does it, once all others wait
 * for it, and lets them go on. Others: rank 0 has done it. Its failure is that of all. */
gnomon_status gnomon_dedup_ranks_alone(gnomon_dedup *d,
                                       gnomon_status (*work)(gnomon_dedup *d, void *arg),
                                       void *arg);
/* Documents have come to their end. Rank 0: all ranks have been heard. Others: rank 0 has finished,
 * and its result is in d->result. */
gnomon_status gnomon_dedup_ranks_meet(gnomon_dedup *d);
/* Rank 0 tells the others that it has finished. */
gnomon_status gnomon_dedup_ranks_finish(gnomon_dedup *d);
/* A failure becomes that of all ranks. Returns the status. */
gnomon_status gnomon_dedup_ranks_fail(gnomon_dedup *d, gnomon_status status);
void gnomon_dedup_ranks_close(gnomon_dedup *d);

#endif
