/* search/ranked.h: what has been found: the k nearest of a query, or hits within a radius.
 *
 * A key is a distance that grows with it: the distance itself, minus the inner product for IP. */
#ifndef GNOMON_SEARCH_RANKED_H
#define GNOMON_SEARCH_RANKED_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gnomon_ranked {
    double key;
    int64_t id;
} gnomon_ranked;

/* The order of answers. */
static inline bool gnomon_ranked_before(gnomon_ranked a, gnomon_ranked b)
{
    return a.key < b.key || (a.key == b.key && a.id < b.id);
}

/* The k nearest so far, a heap with the farthest on top. */
typedef struct gnomon_nearest {
    gnomon_ranked *heap; /* k places */
    int64_t k, count;
} gnomon_nearest;

/* The key beyond which a point is none of them. */
static inline double gnomon_nearest_farthest(const gnomon_nearest *nearest)
{
    return nearest->count < nearest->k ? INFINITY : nearest->heap[0].key;
}

void gnomon_nearest_offer(gnomon_nearest *nearest, gnomon_ranked point);

/* Into the order of answers. Heaps of other data are of no use after that. */
void gnomon_ranked_sort(gnomon_ranked *points, int64_t count);

/* Brings the 'most' first in that order into 'out', and tells how many they are: for numbers that
 * lie close, as candidates' do. spare: room for twice count; out: for count. */
int64_t gnomon_ranked_first(const gnomon_ranked *points, int64_t count, int64_t most,
                            uint64_t *spare, gnomon_ranked *out);

/* The rank-th largest of count numbers (rank from 1), none of them NaN; they change places. */
float gnomon_rank_largest(float *values, int64_t count, int64_t rank);
/* A number that 'rank' of them are not below, and few more than that where they are many: faster.
 */
float gnomon_rank_about(float *values, int64_t count, int64_t rank);

typedef struct gnomon_hit {
    int64_t query;
    gnomon_ranked point;
} gnomon_hit;

#endif
