/* join/settle.h: distances of pairs, with the bits that a search gives them. */
#ifndef GNOMON_JOIN_SETTLE_H
#define GNOMON_JOIN_SETTLE_H

#include "join/join.h"

typedef struct gnomon_settler {
    const gnomon_join_state *join;
    gnomon_search search; /* only what keys in fp64 read of one */
    double *f64;          /* 2 * (cols + 1) a thread; NULL where metrics need none */
} gnomon_settler;

/* For the join's sides in the host's memory. Errors: MEMORY. */
gnomon_status gnomon_settler_open(gnomon_join_state *join, gnomon_settler *settler);
void gnomon_settler_close(gnomon_settler *settler);

/* P's row i made ready for gnomon_settle, in the memory of a worker: of its last call alone. */
gnomon_query gnomon_settler_row(const gnomon_settler *settler, int64_t i, int worker);
/* The distance (IP: the product) of P's row i, made ready, and Q's row j. */
double gnomon_settle(const gnomon_settler *settler, gnomon_query query, int64_t i, int64_t j);

#endif
