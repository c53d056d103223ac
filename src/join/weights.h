/* join/weights.h: rows of weights that are near enough meet in the lists of their rarest members.
 *
 * With T = 1 less the largest distance, rows x and y whose weights sum up to |x| and |y| are joined
 * when their smaller weights sum up to T / (1 + T) (|x| + |y|) or more, which is at least T |x| and
 * T |y|. Members are numbered by how often they occur, rarest first; a row's prefix ends where the
 * weights of what follows sum up to less than T times its own. Two rows that are joined have a
 * member in common within both prefixes (the prefix filter of Chaudhuri, Ganti and Kaushik 2006,
 * with weights): only those are in the lists, and the weights that follow bound what a pair may
 * still share (Bayardo, Ma and Srikant 2007). What is left is verified by the metric itself, so
 * that distances have its bits; bounds have room for the roundings of all sums. */
#ifndef GNOMON_JOIN_WEIGHTS_H
#define GNOMON_JOIN_WEIGHTS_H

#include "join/state.h"
#include "search/numbering.h"

typedef struct gnomon_weights gnomon_weights;

/* Whether rows can be joined so: a distance below 1, and numbers and memory that fit. */
bool gnomon_weights_fit(const gnomon_join_state *join);
/* By a numbering of both sides' members. Errors: MEMORY. On failure *out is NULL. */
gnomon_status gnomon_weights_open(gnomon_join_state *join, const gnomon_numbering *numbering,
                                  gnomon_weights **out);
void gnomon_weights_close(gnomon_weights *weights);
/* As those of join/prefix.h. */
double gnomon_weights_cost(const gnomon_weights *weights);
gnomon_status gnomon_weights_pairs(gnomon_weights *weights, int64_t row, int64_t count, bool *fits);

#endif
