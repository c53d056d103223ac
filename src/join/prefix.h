/* join/prefix.h: sets that share enough meet in the lists of their rarest members.
 *
 * Members are numbered by how often they occur, rarest first, and sets hold them in that order. Two
 * sets that share s members have one in common among the first |A| - s + 1 of A and |B| - s + 1 of
 * B (prefix filter; Chaudhuri, Ganti and Kaushik 2006, Bayardo, Ma and Srikant 2007): only those
 * are in the lists. Sizes alone, and where in their sets the shared members stand, drop most of
 * what meets (Xiao, Wang, Lin and Yu 2008); what is left is counted. Every bound is taken from the
 * distance as fp64 computes it, so that no pair is lost to rounding. */
#ifndef GNOMON_JOIN_PREFIX_H
#define GNOMON_JOIN_PREFIX_H

#include "join/state.h"

typedef struct gnomon_prefix gnomon_prefix;

/* Whether sets can be joined so: a distance below 1, and numbers that fit. */
bool gnomon_prefix_fits(const gnomon_join_state *join);
/* Errors: MEMORY. On failure *out is NULL. */
gnomon_status gnomon_prefix_open(gnomon_join_state *join, gnomon_prefix **out);
void gnomon_prefix_close(gnomon_prefix *prefix);
/* What a join by it costs, in nanoseconds of one thread: places in the lists are counted for rows
 * of a sample. The index itself is made, and not counted. */
double gnomon_prefix_cost(const gnomon_prefix *prefix);
/* Adds the pairs of rows [row, row + count); *fits is cleared when they are more than may wait. */
gnomon_status gnomon_prefix_pairs(gnomon_prefix *prefix, int64_t row, int64_t count, bool *fits);

#endif
