/* lsh/tune/tune.h: what the files of tuning share. */
#ifndef GNOMON_LSH_TUNE_H
#define GNOMON_LSH_TUNE_H

#include "lsh/index.h"
#include "lsh/tune/assign.h"
#include "search/form.h"

/* Some rows of points, copied. */
typedef struct gnomon_some_points {
    int64_t count;
    int64_t *rows; /* which */
    gnomon_matrix dense;
    gnomon_csr sparse;
    gnomon_points points; /* a view of one of them */
    void *memory[3];
} gnomon_some_points;

/* 'skip' and on of a random order of [0, n), which the seed determines: 'count' distinct ones. */
void gnomon_some_rows_draw(int64_t n, uint64_t seed, int64_t skip, int64_t count, int64_t *rows);
gnomon_status gnomon_some_points_draw(gnomon_context *ctx, const gnomon_points *all, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out);
/* The same after 'named' rows. */
gnomon_status gnomon_some_points_with(gnomon_context *ctx, const gnomon_points *all,
                                      const int64_t *rows, int64_t named, uint64_t seed,
                                      int64_t skip, int64_t count, gnomon_some_points *out);
void gnomon_some_points_free(gnomon_context *ctx, gnomon_some_points *some);

/* ---- bet.c: a lower bound on the mean of shares in [0, 1], by betting ----
 *
 * Whoever bets that the mean is above m, at odds that are fair when it is m, multiplies his capital
 * by 1 + c (share / m - 1) a query, with any c in [0, 1) chosen beforehand. If the mean is m or
 * less, the capital ever reaches 1 / doubt with a probability of at most 'doubt' (Ville's
 * inequality); so when it does, the mean is above m with confidence 1 - doubt, whatever the law of
 * the shares and however many queries were asked until then (Waudby-Smith & Ramdas 2024). */
typedef struct gnomon_bet {
    double mean, stake, doubt;
    int64_t population; /* that queries are drawn from without repetition; 0: any number */
    double sum;
    int64_t count;
    double capital[5]; /* by stake */
    bool won;
} gnomon_bet;

/* spread: the standard deviation expected of so many shares, known from other queries; a wrong one
 * costs power, never confidence. */
void gnomon_bet_open(gnomon_bet *bet, double mean, double spread, double doubt, int64_t expected,
                     int64_t population);
/* One query's share; whether the bet is won, now or before. */
bool gnomon_bet_on(gnomon_bet *bet, double share);
/* The largest mean that the same bets would have won against. */
double gnomon_bet_bound(const gnomon_bet *bet, const float *shares, int64_t count);

/* ---- build.c ---- */
/* The probability with which the test of this attempt (0, 1, ...) may pass an index that does not
 * meet the guarantee. Over all attempts they add up to 1 - confidence. */
double gnomon_tuning_doubt(double confidence, int attempt);

/* ---- cost.c: nanoseconds on one thread ---- */
typedef struct gnomon_lsh_sizes {
    gnomon_metric metric;
    int64_t dim;
    double point; /* bytes of a point; sets and sparse rows: mean members */
    int64_t points;
    int64_t k;             /* neighbours asked for; 0: by radius */
    bool sparse;           /* rows for a metric that also takes dense ones */
    double shared, heavy;  /* see gnomon_sparse_shared */
    gnomon_form_work work; /* of sparse rows */
    int entry;             /* bytes of an entry that the index copies, with its weight; dense: 0 */
    int row;               /* and of a row */
} gnomon_lsh_sizes;

double gnomon_lsh_verify_cost(const gnomon_lsh_sizes *s);
/* Numbers of lists that an index by trained centres may have, ascending; how many, 0: too few
 * points. */
enum { GNOMON_LSH_LIST_COUNTS = 2 };
int gnomon_lsh_list_counts(const gnomon_lsh_sizes *s, int64_t counts[GNOMON_LSH_LIST_COUNTS]);
double gnomon_lsh_exact_cost(const gnomon_lsh_sizes *s);
/* Of building these tables, which a hasher's values are of. */
double gnomon_lsh_build_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, int64_t tables);
/* Of making codes of all points, and of finding where the k true neighbours of each of so many
 * queries stand in their order. */
double gnomon_lsh_codes_cost(const gnomon_lsh_sizes *s, int64_t queries, int64_t k);
/* Of training: points a centre at most, and rounds. The first rounds, with fewer points, also tell
 * numbers of lists apart, with the lists of so many points. */
enum {
    GNOMON_LSH_TRAINED = 32,
    GNOMON_LSH_ROUNDS = 6,
    GNOMON_LSH_TRAINED_BRIEFLY = 16,
    GNOMON_LSH_BRIEF_ROUNDS = 2,
    GNOMON_LSH_BRIEF_POINTS = 2048
};
/* Points that have been checked, of which the first 'skip' of the seed's order train no centres. */
typedef struct gnomon_lsh_behind {
    const gnomon_matrix *points;
    gnomon_assign *assign;
    uint64_t seed;
    int64_t skip;
} gnomon_lsh_behind;
/* Rounds [from, to) of gnomon_lsh_train's on the others, from 1 on of centres that the rounds
 * before have made. lists: as many numbers as points; before, a centre that may be near, or -1, and
 * afterwards that of each point that the last round has looked at. */
gnomon_status gnomon_lsh_train_behind(gnomon_context *ctx, gnomon_lsh_family family,
                                      const gnomon_lsh_behind *behind, int64_t count, int from,
                                      int to, float *centres, int32_t *lists);

/* Of choosing a number of lists, training centres, and finding all points' lists. */
double gnomon_lsh_lists_cost(const gnomon_lsh_sizes *s);
/* Of trying all shapes on some points. */
double gnomon_lsh_trials_cost(const gnomon_lsh_sizes *s);
/* Of so many candidates of hash functions alone, told apart by codes (0: verified). */
double gnomon_lsh_candidates_cost(const gnomon_lsh_sizes *s, double candidates, int64_t codes);
/* Of probing so many buckets with so many candidates, 'verified' of them. */
double gnomon_lsh_query_cost(const gnomon_lsh_sizes *s, const gnomon_hasher *h, double buckets,
                             double candidates, int64_t codes, double verified);

/* ---- charge.c: whether hashing is expected to end before exact search does ---- */
typedef struct gnomon_lsh_charge {
    int64_t uses; /* queries to answer; 0: not known, only queries are compared */
    double exact; /* of a query */
} gnomon_lsh_charge;

/* Whether to search for an index: 'search' is the cost of that before the model knows of any,
 * 'test' the least that testing one costs. It is not begun when it is more than half of exact
 * search: then at most half of that is lost when no index pays, and an index could have halved it
 * at best. */
bool gnomon_lsh_may_pay(const gnomon_lsh_charge *c, double search, double test);
/* Whether an index of so much a query pays that takes so much more until it answers. */
bool gnomon_lsh_pays(const gnomon_lsh_charge *c, double way, double more);
/* What a query costs with its share of building. */
double gnomon_lsh_share(const gnomon_lsh_charge *c, double way, double build);

#endif
