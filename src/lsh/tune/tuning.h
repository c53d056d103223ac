/* lsh/tune/tuning.h: a tuning under way, as its files share it. */
#ifndef GNOMON_LSH_TUNING_H
#define GNOMON_LSH_TUNING_H

#include "lsh/tune/tune.h"

enum {
    GNOMON_TUNING_CODES = 64,   /* bytes per point */
    GNOMON_TUNING_CHOICES = 14, /* of how many candidates are verified, all included */
    GNOMON_TUNING_BATCHES = 4,  /* of the test */
    GNOMON_TUNING_ATTEMPTS = 4
};

/* Queries and their true neighbours. */
typedef struct gnomon_asked {
    gnomon_some_points some;
    int64_t *offsets, *ids; /* query q's: ids[offsets[q]] ... */
} gnomon_asked;

/* What ways share that differ in tables and search parameters alone. */
typedef struct gnomon_shape {
    gnomon_lsh_functions functions;
    int64_t depth, fine; /* functions per table; fine 0: one level */
} gnomon_shape;

/* A trial, what it is built of and what that costs, and the standard deviation of a query's share.
 */
typedef struct gnomon_way {
    gnomon_lsh_trial trial;
    gnomon_shape from;
    double spread;
    double build; /* nanoseconds on one thread */
} gnomon_way;

typedef struct gnomon_ways {
    gnomon_way *way;
    int64_t count, room;
} gnomon_ways;

typedef struct gnomon_tuning {
    gnomon_context *ctx;
    gnomon_lsh_guarantee p;
    gnomon_lsh_sizes sizes;
    gnomon_lsh_charge charge;
    const gnomon_points *points, *queries;
    bool self; /* the queries are points, each without itself */
    gnomon_asked asked, tests[GNOMON_TUNING_BATCHES];
    int64_t tested, population; /* queries of the whole test, and those that they are drawn from */
    int64_t first_batch;        /* of the test's first parts, which are one; 0: not known yet */
    float *shares;              /* the test's, 'tested' */
    double near, *far; /* a typical neighbour's distance; ascending distances of random pairs */
    int64_t far_count;
    /* the points that shapes are tried on: all, or neighbours of the asked and a sample */
    gnomon_some_points some;
    const gnomon_points *tried;
    int64_t sampled, *offsets, *ids; /* as a trace's: the asked queries' neighbours among them */
    double scale;
    bool has_codes;
    gnomon_codes codes; /* of all points */
    int64_t verified[GNOMON_TUNING_CHOICES];
    double captured[GNOMON_TUNING_CHOICES]; /* share of neighbours among so many nearest codes */
    gnomon_ways ways;                       /* all that were tried */
    bool balanced;         /* a query's nearest list is not many times as long as the mean */
    gnomon_assign *assign; /* dense points, of lists; or NULL */
    float *centres;        /* that ways with lists point at; or NULL */
    int32_t *lists;        /* a point's; or NULL */
    gnomon_lsh_tuning *out;
} gnomon_tuning;

static inline gnomon_status gnomon_tuning_use_exact(gnomon_tuning *t, const char *reason)
{
    t->out->exact = 1;
    t->out->reason = reason;
    return GNOMON_OK;
}

/* ---- truth.c ---- */
/* Queries [skip, skip + count) of a random order, and their neighbours. typical: the mean distance
 * of the last; may be NULL. */
gnomon_status gnomon_tuning_ask(gnomon_tuning *t, int64_t skip, int64_t count, gnomon_asked *out,
                                double *typical);
void gnomon_asked_free(gnomon_context *ctx, gnomon_asked *asked);
/* Fills far. */
gnomon_status gnomon_tuning_sample_far(gnomon_tuning *t);
/* Makes the codes of all points and fills captured. */
gnomon_status gnomon_tuning_encode(gnomon_tuning *t);

/* ---- ways.c ---- */
/* Adds every shape of hash functions that do not depend on the data, on some points with some of
 * the asked. */
gnomon_status gnomon_tuning_try(gnomon_tuning *t);
/* Adds a way for each step and choice of a trace by an index of this shape, whose hasher makes
 * 'depth' values a table, with these parameters but for what the steps count. */
gnomon_status gnomon_tuning_add_ways(gnomon_tuning *t, const gnomon_shape *from,
                                     const gnomon_hasher *hasher, int64_t depth,
                                     const gnomon_lsh_search_params *params, int64_t bytes,
                                     int64_t queries, const gnomon_lsh_trace *trace,
                                     gnomon_ways *ways);
gnomon_status gnomon_tuning_add_way(gnomon_context *ctx, gnomon_ways *ways, const gnomon_way *way);

/* ---- lists.c ---- */
/* The family of inverted lists that these points and the guarantee allow; 0: none. */
gnomon_lsh_family gnomon_tuning_lists_family(const gnomon_tuning *t);
/* Adds its ways, measured on all points with all of the asked. */
gnomon_status gnomon_tuning_try_lists(gnomon_tuning *t);

/* Queries of a part of the test. */
static inline int64_t gnomon_tuning_batch(const gnomon_tuning *t)
{
    return (t->tested + GNOMON_TUNING_BATCHES - 1) / GNOMON_TUNING_BATCHES;
}

/* ---- build.c ---- */
/* The cheapest way that is expected to meet the guarantee; NULL: there is none. */
const gnomon_way *gnomon_tuning_promised(const gnomon_tuning *t);
/* What a way costs with its share of building. */
double gnomon_tuning_price(const gnomon_tuning *t, const gnomon_way *way);
/* Builds and tests. *out is NULL when it gives up. */
gnomon_status gnomon_tuning_build(gnomon_tuning *t, gnomon_lsh **out);

#endif
