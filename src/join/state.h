/* join/state.h: a join under way, as the files of this room share it. */
#ifndef GNOMON_JOIN_STATE_H
#define GNOMON_JOIN_STATE_H

#include "base/context.h"
#include "search/state.h"

#include "join/ranks/ranks.h"

#include <gnomon/join.h>

#include <stdbool.h>

/* One side: dense in memory, dense and read, or sparse. */
typedef struct gnomon_side {
    const char *name;             /* "p" or "q" */
    const gnomon_matrix *dense;   /* in memory */
    const gnomon_join_points *to; /* to be read */
    const gnomon_csr *csr;        /* sets in memory, and */
    gnomon_sets sets;             /* what they are */
    const gnomon_join_rows *from; /* sparse, to be read: csr then has offsets alone */
    int64_t rows, cols;
    gnomon_dtype dtype;
} gnomon_side;

typedef struct gnomon_join_state {
    gnomon_context *ctx;
    gnomon_join_options options;
    gnomon_join_result *result;
    gnomon_join_result *given; /* the caller's, NULL: none; it is told before each callback */
    gnomon_side p, q;          /* of a self-join q is p */
    bool self;
    gnomon_join_ranks *ranks; /* that share it; NULL: none */
    bool sample;              /* of some points, within another join: no progress is told */
    /* out: pairs of the rows from next_row on, which wait until their rows are done */
    int64_t next_row, end_row; /* joined are the rows up to this one; then gnomon_join_more */
    gnomon_pair *pairs, *sorted;
    int64_t count, room, sorted_room;
    int64_t pair_room; /* how many should wait at most */
    int64_t *starts;   /* places of a band's rows in the sorted pairs */
    int64_t starts_room;
    struct gnomon_prefix *prefix; /* of an exact join of sets, when it was made to tell its cost */
    gnomon_pair *heap;            /* options.top places, the farthest on top */
    int64_t heap_count;
    bool full; /* max_pairs have been handed out */
} gnomon_join_state;

/* Tells the caller's result what has been done so far. */
void gnomon_join_tell_result(const gnomon_join_state *join);

/* Adds to result->why: what is said of a join comes from several places. */
void gnomon_join_say(gnomon_join_state *join, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
