/* What the parts of bench_join_model share. One thread everywhere: the model's machine has one
 * unit.
 */
#ifndef GNOMON_BENCH_JOIN_MODEL_H
#define GNOMON_BENCH_JOIN_MODEL_H

#include <gnomon.h>

#include <jansson.h>

enum { TILE = 256 };

typedef struct pair_list {
    int64_t count, room;
    gnomon_pair *pairs;
} pair_list;

/* Seconds of a join's steps. */
typedef struct steps {
    double product, look, write;
} steps;

extern gnomon_context *ctx;

_Noreturn void stop(const char *what, const char *why);
/* Seconds of the processor. */
double now(void);
void *room_for(int64_t count, size_t size);
void random_normal(float *x, int64_t count, uint64_t seed);
float square(const float *x, int64_t d);

/* Pairs of p points x with q points y (rows of d numbers; xx, yy their squares) within 'limit'
 * squared, by one SGEMM into 'tile' (p x q, at most TILE each): x's row a and y's row b are points
 * p_ids[a], q_ids[b]. upper: only b > a. t may be NULL. */
void join_tile(const float *x, const float *xx, const int32_t *p_ids, int64_t p, const float *y,
               const float *yy, const int32_t *q_ids, int64_t q, int64_t d, float limit, int upper,
               float *tile, pair_list *out, steps *t);
/* A gnomon join of x with itself: seconds; fills what came of it. */
double gnomon_seconds(const float *x, int64_t n, int64_t d, double threshold, double recall,
                      gnomon_join_result *result);

/* join_buckets.c */
json_t *measure_buckets(void);
json_t *measure_hashed(void);

#endif
