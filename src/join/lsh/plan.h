/* join/lsh/plan.h: how many tables of how many functions keep the recall of a join by hashing. */
#ifndef GNOMON_JOIN_LSH_PLAN_H
#define GNOMON_JOIN_LSH_PLAN_H

#include "join/job.h"
#include "join/state.h"

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

/* Chooses functions and tables that keep the recall, at the least cost as it appears from some of
 * the points; plan->shallow + deep is 0 when no tables do. sample: of a device's, with its costs;
 * NULL: the host has the points and does the work. By whose costs tables are chosen: under LSH by
 * the CPU's always, so that the pairs are the same on every device; under AUTO, where the device
 * decides already whether there are hashes at all, by those of the device that does the work. Else
 * the choice depends on the data and the options alone. Errors: MEMORY. */
gnomon_status gnomon_join_plan_make(gnomon_join_state *join, const gnomon_join_sample *sample,
                                    gnomon_join_plan *plan);
/* The rows of a sample, at most GNOMON_JOIN_SOME; how many. second: Q's. */
int64_t gnomon_join_some(int64_t rows, bool second, uint32_t *some);

#endif
