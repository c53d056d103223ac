/* join/lsh/lsh.h: joins by locality-sensitive hashing (Ahle & Silvestri 2020, section 4).
 *
 * Every point is hashed into some tables, by several functions per table; points of one bucket are
 * compared. A pair is compared in the first table where it meets and skipped in the others, which
 * its keys tell: no set of pairs is kept. */
#ifndef GNOMON_JOIN_LSH_H
#define GNOMON_JOIN_LSH_H

#include "join/lsh/plan.h"

/* Whether the options ask for hashing, and there is anything to join. */
bool gnomon_join_wants_hashes(const gnomon_join_state *join);
/* Whether the options want hashing and there is any of this: one of job.h's. Errors: UNSUPPORTED
 * where there must be and is none. */
gnomon_status gnomon_join_hashing(gnomon_join_state *join, int *hashing);
/* Tells why there is none; UNSUPPORTED where there must be. */
gnomon_status gnomon_join_no_hashing(gnomon_join_state *join, const char *reason);
#define GNOMON_JOIN_NO_TABLES "no tables keep the recall"
/* Whether the plan is to be carried out: it must be, or costs less than an exact join. Puts the
 * reason into the result where it is not. */
bool gnomon_join_plan_pays(gnomon_join_state *join, const gnomon_join_plan *plan);
/* Puts the plan into the result. */
void gnomon_join_tell_plan(gnomon_join_state *join, const gnomon_join_plan *plan);
/* Decides between an LSH join and an exact one, tells why in the result, and does the first; *done
 * stays false when the join is to be exact. Errors: MEMORY, CANCELLED; UNSUPPORTED where the
 * options want an LSH join of what has none. */
gnomon_status gnomon_join_by_hashes(gnomon_join_state *join, bool *done);

#endif
