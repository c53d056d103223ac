/* join/lsh.h: joins by locality-sensitive hashing (Ahle & Silvestri 2020, section 4).
 *
 * Every point is hashed into some tables, by several functions a table; points of one bucket are
 * compared. A pair is compared in the first table where it meets and skipped in the others, which
 * its keys tell: no set of pairs is kept. */
#ifndef GNOMON_JOIN_LSH_H
#define GNOMON_JOIN_LSH_H

#include "join/job.h"
#include "join/join.h"

#include <gnomon/lsh.h>

/* At most: tables, functions of a shallow one, and points of each side whose distances a plan looks
 * at. */
enum { GNOMON_JOIN_TABLES = 1024, GNOMON_JOIN_DEPTHS = 64, GNOMON_JOIN_SOME = 256 };

typedef struct gnomon_join_plan {
    gnomon_lsh_functions functions; /* count: of all tables */
    int64_t depth;                  /* functions of a shallow table; a deep one has one more */
    int64_t shallow, deep;          /* how many tables there are of each */
    double near;                    /* the least probability that a function joins a pair at the
                                       threshold */
    double miss;       /* with which probability a pair within the threshold is lost, at most */
    double candidates; /* pairs that will be compared, expected, those of all tables counted */
    double cost, exact_cost; /* by the model: nanoseconds of the device, or of one thread */
    bool by_device;          /* chosen by the device's costs: another may choose other tables */
} gnomon_join_plan;

static inline int64_t gnomon_plan_tables(const gnomon_join_plan *plan)
{
    return plan->shallow + plan->deep;
}

/* ---- lsh_plan.c ---- */
/* Chooses functions and tables that keep the recall, at the least cost as it appears from some of
 * the points; plan->shallow + deep is 0 when no tables do. sample: of a device's, with its costs;
 * NULL: the host has the points and does the work. By whose costs tables are chosen: under LSH by
 * the CPU's always, so that the pairs are the same on every device; under AUTO, where the device
 * decides already whether there are hashes at all, by those of whoever does the work. Else the
 * choice depends on the data and the options alone. Errors: MEMORY. */
gnomon_status gnomon_join_plan_make(gnomon_join_state *join, const gnomon_join_sample *sample,
                                    gnomon_join_plan *plan);
/* The rows of a sample, at most GNOMON_JOIN_SOME; how many. second: Q's. */
int64_t gnomon_join_some(int64_t rows, bool second, uint32_t *some);

/* ---- lsh_keys.c ---- */
/* keys[i * tables + t] of a side's point i in table t. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_join_keys(gnomon_join_state *join, const gnomon_join_plan *plan,
                               const gnomon_side *side, uint32_t **keys);

/* ---- lsh.c ---- */
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
