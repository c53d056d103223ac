/* join/sparse.h: joins of sparse rows under metrics that also take dense ones: bands of P's rows
 * through an inverted index of Q.
 *
 * Where Q's index takes more than a quarter of the memory limit Q comes in pieces: each band of P
 * goes through the index of every piece, and its pairs are put in order when all are there. */
#ifndef GNOMON_JOIN_SPARSE_H
#define GNOMON_JOIN_SPARSE_H

#include "join/state.h"
#include "search/inverted.h"

typedef struct gnomon_join_index {
    gnomon_inverted index;
    int64_t first, count; /* the rows of Q that it has; count 0: none */
    int64_t pieces;       /* of Q */
} gnomon_join_index;

/* Refuses rows of either side that no join takes, before there are pairs. Errors: DATA, NONFINITE,
 * UNSUPPORTED, MEMORY. Close it whether it fails or not. */
gnomon_status gnomon_join_index_open(gnomon_join_state *join, gnomon_join_index *index);
void gnomon_join_index_close(gnomon_join_state *join, gnomon_join_index *index);
/* How many of P's rows from 'row' on may go through it at a time. */
int64_t gnomon_join_index_rows(const gnomon_join_state *join, const gnomon_join_index *index,
                               int64_t row);
/* Adds the pairs of rows [row, row + count) of P; *fits is cleared when they are more than may
 * wait. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_join_index_pairs(gnomon_join_state *join, gnomon_join_index *index,
                                      int64_t row, int64_t count, bool *fits);

/* A side's sparse rows as dense ones that are copied piece by piece. */
typedef struct gnomon_join_copies {
    gnomon_join_state *join;
    gnomon_side side;
    gnomon_join_points points;
} gnomon_join_copies;

/* The side is one of dense rows from then on, which 'copies' must outlive. Its rows are refused
 * here if no join takes them. Errors: as for gnomon_join_index_open. */
gnomon_status gnomon_join_copy_side(gnomon_join_state *join, gnomon_side *side,
                                    gnomon_join_copies *copies);

#endif
