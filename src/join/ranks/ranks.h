/* join/ranks/ranks.h: a join whose rows of P are divided among ranks.
 *
 * P's rows are cut into tiles, dealt out there and back (0 1 2, 2 1 0, ...), so that ranks have
 * about as much to do whether all rows cost the same or, as in a self-join, fewer and fewer. Pairs
 * wait at the rank that found them, within a share of its memory; then they go to rank 0, which
 * hands those of all ranks out in the order of the tiles. So ranks wait for each other only when
 * memory is short, at meetings, which rank 0 calls every ten seconds or so, and at the end. */
#ifndef GNOMON_JOIN_RANKS_H
#define GNOMON_JOIN_RANKS_H

#include "comm/comm.h"

#include <gnomon/join.h>

#include <stdbool.h>

struct gnomon_join_state;

/* Pairs of a tile that wait. */
typedef struct gnomon_join_run {
    int64_t tile;
    int64_t first, count; /* of the pairs that wait; counted only: how many */
    int64_t rows_done;
    bool last; /* the tile ends with them */
} gnomon_join_run;

typedef struct gnomon_join_ranks {
    gnomon_context *ctx;
    gnomon_comm comm;        /* of one rank: nothing of this is used */
    gnomon_comm_failure bad; /* rank 0: what it has heard of */
    gnomon_message message;
    bool begun, finished; /* the ranks have told each other what they do; how it ended */
    bool lost;            /* they can't speak with each other any more */
    bool counted;         /* nobody wants pairs: their number is enough */
    int64_t first_row, rows, tiles;
    int64_t tile;  /* at work here; -1: none yet; tiles: no more */
    int64_t dealt; /* of this rank so far */
    int64_t next;  /* rank 0: the tile whose pairs are to be handed out */
    bool waiting;  /* for the answer to what was sent */
    bool stopped;  /* by rank 0 */
    bool *ended;   /* rank 0: which ranks have said their last word */
    gnomon_pair *pairs;
    int64_t count, room;
    gnomon_join_run *runs;
    int64_t run_count;
    char *body;      /* of a message */
    int64_t meeting; /* the rounds behind which the ranks meet next */
    int64_t later;   /* rank 0: and those of the meeting after it; 0: not known yet */
    double met;      /* rank 0: when they last did */
    int64_t met_at;  /* and behind how many rounds */
} gnomon_join_ranks;

/* Takes options->comm; of one rank where that is NULL. Errors: ARGUMENT. */
gnomon_status gnomon_join_ranks_open(gnomon_context *ctx, const gnomon_join_options *options,
                                     gnomon_join_ranks *ranks);
/* Whether there are several. */
static inline bool gnomon_join_divided(const gnomon_join_ranks *ranks)
{
    return ranks != NULL && ranks->comm.size > 1;
}
/* Before the work: the ranks compare what they are to do. */
gnomon_status gnomon_join_ranks_begin(struct gnomon_join_state *join);
/* Whether there are rows left to join: of [next_row, end_row) or of the next tile, which these
 * become then. For one process that is to the end of P. */
gnomon_status gnomon_join_more(struct gnomon_join_state *join, bool *more);
/* Takes pairs of this rank, in order. */
gnomon_status gnomon_join_ranks_add(struct gnomon_join_state *join, const gnomon_pair *pairs,
                                    int64_t count, int64_t end);
/* After the work: rank 0 hands out, or offers to its heap, what is left at the others. */
gnomon_status gnomon_join_ranks_collect(struct gnomon_join_state *join);
/* How it ended: the first failure of any rank becomes that of all. What the others did is added to
 * rank 0's result. Does nothing the second time. */
gnomon_status gnomon_join_ranks_end(gnomon_join_ranks *ranks, gnomon_join_result *result,
                                    gnomon_status status);
/* The same where the work has not begun; frees all. */
gnomon_status gnomon_join_ranks_close(gnomon_join_ranks *ranks, gnomon_status status);

#endif
