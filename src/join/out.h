/* join/out.h: from pairs in any order (out.c) to batches in order (emit.c). */
#ifndef GNOMON_JOIN_OUT_H
#define GNOMON_JOIN_OUT_H

#include "join/state.h"

gnomon_status gnomon_join_out_open(gnomon_join_state *join);
void gnomon_join_out_close(gnomon_join_state *join);
/* Room for 'more' pairs at join->pairs + join->count. */
gnomon_status gnomon_join_reserve(gnomon_join_state *join, int64_t more);
/* All pairs of rows [next_row, end) are in join->pairs (and no others): hands them out. */
gnomon_status gnomon_join_hand_out(gnomon_join_state *join, int64_t end);
/* The same of pairs in the order of (i, j) that come after all those handed out before. */
gnomon_status gnomon_join_hand_ordered(gnomon_join_state *join, const gnomon_pair *pairs,
                                       int64_t count, int64_t end);
/* The same at rank 0 of pairs of any rank, or of one process: counts them and gives them to the
 * sink. */
gnomon_status gnomon_join_emit(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count,
                               int64_t end);
/* Pairs that may be among the closest. */
void gnomon_join_offer(gnomon_join_state *join, const gnomon_pair *pairs, int64_t count);
/* After the last row: the closest pairs, where those are asked for. */
gnomon_status gnomon_join_finish(gnomon_join_state *join);
/* What every pair so far found makes of the threshold: with top it closes in. */
double gnomon_join_threshold(const gnomon_join_state *join);

#endif
