/* project/sparse/distinct.h: the columns that a batch of sparse points touches. */
#ifndef GNOMON_PROJECT_DISTINCT_H
#define GNOMON_PROJECT_DISTINCT_H

#include <gnomon/base.h>

#include <stdbool.h>

typedef struct gnomon_distinct {
    int64_t *list; /* ascending */
    int64_t count;
    /* A bit for every column from first on, and how many are set before each word; NULL when the
     * columns lie too far apart for that. */
    uint64_t *bits;
    int64_t *before;
    int64_t first, words;
} gnomon_distinct;

/* The columns cols[start[v]] ... cols[stop[v] - 1] of so many points, ascending in each. The bits
 * may take 'bytes'. Errors: MEMORY. */
gnomon_status gnomon_distinct_open(gnomon_context *ctx, gnomon_distinct *d, int64_t points,
                                   const int64_t *start, const int64_t *stop, const int64_t *cols,
                                   int64_t bytes);
void gnomon_distinct_close(gnomon_context *ctx, gnomon_distinct *d);

/* The place of a column that is in the list. */
static inline int64_t gnomon_distinct_rank(const gnomon_distinct *d, int64_t col)
{
    if (d->bits) {
        const int64_t at = col - d->first;
        const uint64_t lower = (UINT64_C(1) << (at & 63)) - 1;
        return d->before[at >> 6] + __builtin_popcountll(d->bits[at >> 6] & lower);
    }
    int64_t lo = 0, hi = d->count;
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (d->list[middle] <= col)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

#endif
