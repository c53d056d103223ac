/* cuda/search/sets.h: exact search of sets on the GPU.
 *
 * Base rows and queries are brought there together (sets/sets.h), as many rows at a time as fit.
 * Rows meet the queries as they come, but every 2^n-th first, then those halfway between, and so
 * on, so that a query's k-th nearest so far soon tells what may still be an answer. Sets that share
 * nothing with a query, at distance 1, are left to the host, who fills up with them. */
#ifndef GNOMON_CUDA_SEARCH_SETS_H
#define GNOMON_CUDA_SEARCH_SETS_H

#include "cuda/search/found.h"
#include "cuda/sets/sets.h"

/* ---- search/sets_intersect.cu ---- */

struct gcu_sets_call {
    const uint32_t *members;
    const int64_t *offsets;       /* of base rows */
    const int64_t *query_offsets; /* of these queries */
    int64_t query, queries;       /* the first of them, and how many */
    int64_t possible;             /* members are below it */
    uint32_t *asked;              /* a bit a member: whether any of the queries has it */
    uint32_t *numbers;            /* of such members */
    unsigned *count;              /* how many have one */
    int64_t distinct;             /* at most so many */
    uint32_t *tables;             /* a word a number, for each 32 queries: who has it */
    int64_t first;                /* id of row 0 */
    int64_t exclude;              /* query i is point exclude + i; negative: none is */
    const uint8_t *filter;        /* NULL: all. Row r: bit 'shift' + r, below 'most' rows */
    int64_t shift, most;
    bool all;             /* those too that share nothing */
    const double *limits; /* of these queries: the largest key that is wanted */
    const int64_t *last;  /* the largest id at that key */
    unsigned *counts;     /* of these queries: one more for each pair found */
    gcu_search_found found;
};

static inline size_t gcu_sets_table_bytes(int64_t queries, int64_t distinct)
{
    return (size_t)((queries + 31) / 32) * (size_t)distinct * sizeof(uint32_t);
}
/* Numbers the queries' members and fills the tables. */
cudaError_t gcu_sets_tables(const gcu_sets_call *call, cudaStream_t stream);
/* Finds pairs of the queries and places [0, places), place p being row from + p * step. */
cudaError_t gcu_sets_intersect(const gcu_sets_call *call, int64_t from, int64_t step,
                               int64_t places, int sms, cudaStream_t stream);
/* The last point, by (key, id), of lists that are full. */
cudaError_t gcu_sets_last(const gcu_search_lists *lists, int64_t queries, double *limits,
                          int64_t *last, cudaStream_t stream);

/* ---- search/sets.cu ---- */

gnomon_status gcu_search_sets_open(gcu_search *v);
gnomon_status gcu_search_sets_add(gcu_search *v, gnomon_search_piece *piece);

#endif
