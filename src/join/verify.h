/* join/verify.h: distances of pairs, with the bits that a search gives them. */
#ifndef GNOMON_JOIN_VERIFY_H
#define GNOMON_JOIN_VERIFY_H

#include "join/state.h"

typedef struct gnomon_verifier {
    const gnomon_join_state *join;
    gnomon_search search; /* only what keys in fp64 read of one */
    double *f64;          /* 2 * (cols + 1) a thread; NULL where metrics need none */
} gnomon_verifier;

/* For the join's sides in the host's memory. Errors: MEMORY. */
gnomon_status gnomon_verifier_open(gnomon_join_state *join, gnomon_verifier *verifier);
void gnomon_verifier_close(gnomon_verifier *verifier);

/* P's row i made ready for gnomon_verifier_distance, in the memory of a worker: of its last call
 * alone. */
gnomon_query gnomon_verifier_row(const gnomon_verifier *verifier, int64_t i, int worker);
/* The distance (IP: the product) of P's row i, made ready, and Q's row j. */
double gnomon_verifier_distance(const gnomon_verifier *verifier, gnomon_query query, int64_t i,
                                int64_t j);

#endif
