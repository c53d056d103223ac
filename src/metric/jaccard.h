/* metric/jaccard.h: the Jaccard distance of two sets by the numbers of their members, and what a
 * limit on it asks of them. A plugin's device code takes the same functions, so that both drop the
 * same pairs: no product here is added to anything, so no compiler fuses the two. */
#ifndef GNOMON_METRIC_JACCARD_H
#define GNOMON_METRIC_JACCARD_H

#include <stdint.h>

#ifdef __CUDACC__
#define GNOMON_HOST_AND_DEVICE static __host__ __device__ __forceinline__
#else
#define GNOMON_HOST_AND_DEVICE static inline
#endif

/* The distance of two sets that have so many members together, a shared one counted twice; 0 of
 * two empty ones. */
GNOMON_HOST_AND_DEVICE double gnomon_jaccard(int64_t size, int64_t shared)
{
    return size == shared ? 0 : (double)(size - 2 * shared) / (double)(size - shared);
}

/* The least number of shared members that brings two sets of so many members together within the
 * limit. */
GNOMON_HOST_AND_DEVICE int64_t gnomon_jaccard_shared(double limit, int64_t size)
{
    const double share = (1 - limit) / (2 - limit);
    int64_t shared = (int64_t)(share * (double)size) - 1;
    if (shared < 1) shared = 1;
    while (shared > 1 && gnomon_jaccard(size, shared - 1) <= limit)
        shared--;
    while (2 * shared <= size && gnomon_jaccard(size, shared) > limit)
        shared++;
    return shared;
}

/* The least size of a set that may be within the limit of one of this size: all of it is shared. */
GNOMON_HOST_AND_DEVICE int64_t gnomon_jaccard_size(double limit, int64_t size)
{
    int64_t other = (int64_t)((1 - limit) * (double)size) - 1;
    if (other < 1) other = 1;
    while (other > 1 && gnomon_jaccard(size + other - 1, other - 1) <= limit)
        other--;
    while (other < size && gnomon_jaccard(size + other, other) > limit)
        other++;
    return other;
}

#endif
