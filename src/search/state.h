/* search/state.h: a search under way, as the files of this room share it. */
#ifndef GNOMON_SEARCH_STATE_H
#define GNOMON_SEARCH_STATE_H

#include "base/context.h"
#include "base/device.h"
#include "kernels.h"
#include "metric/metric.h"
#include "search/job.h"
#include "search/ranked.h"

#include <gnomon/search.h>

/* How dense coordinates become fp32: x * scale - mean for L2 and IP, x / |x| - mean for COSINE.
 * Estimated from some of the first base points. Whatever it is the answers are exact: it only
 * decides how well the filter sees. */
typedef struct gnomon_centre {
    bool estimated;
    double scale;   /* a power of two */
    float *mean;    /* of the scaled points */
    double *mean64; /* the same numbers */
    double norm;    /* of mean */
    bool whole;     /* scale is 1 and the mean's coordinates are integers */
    int bits;       /* of the filter's coordinates: 32 (fp32), or integers of 16 or 8 */
    int most;       /* the largest of those integers */
    /* Of 8 bits, where a sample told: how many times as many points as are asked for are likely to
     * be among the nearest by what is told of them, and how many may be; else 0. */
    double likely, possible;
} gnomon_centre;

/* A search that a device does. */
typedef struct gnomon_device_part {
    gnomon_device_call call;
    void *part; /* NULL: the CPU does it */
    gnomon_search_job job;
    gnomon_search_host calls;
    gnomon_csr sets; /* JACCARD: the search's */
    uint8_t *ones;   /* its values */
} gnomon_device_part;

struct gnomon_search {
    gnomon_context *ctx;
    const gnomon_search_kernels *kernels;
    gnomon_search_options options;
    bool finished;

    gnomon_matrix queries; /* dense */
    gnomon_sets sets;      /* of sets, or sparse rows */
    bool sparse;           /* these are rows for a metric that also takes dense ones */
    bool dense;            /* there are dense queries, beside the sparse rows or without */
    double *copies;        /* the dense queries' coordinates, where they are copies */
    char why[GNOMON_SEARCH_WHY];
    int64_t count, cols;
    double limit; /* by radius: the largest key */

    gnomon_nearest *nearest; /* count; k nearest */
    gnomon_ranked *heaps;    /* k a query */
    gnomon_hit *hits;        /* by radius, in any order */
    int64_t hit_count, hit_room;
    int64_t hit_most; /* 0, or: with more the scan of sparse rows stops, and 'full' is set */
    _Atomic bool full;

    gnomon_centre centre;
    bool whole;    /* all base points so far had integer coordinates, centred */
    int64_t base;  /* the id behind those of the points so far */
    int64_t first; /* the id of the first point */
    int64_t later; /* -1; else query i is searched in ids from later + i + 1 on only. Sparse rows */
    /* A score for each query that its k nearest are expected to reach, in the piece at hand; NULL:
     * nothing is known. NaN afterwards: they did not. */
    float *expected;
    float *reach; /* not NULL: only a score for each query that k points reach is wanted */
    int64_t rows; /* of the base that a scan takes at once; 0: by the work. Tests set it */
    int64_t compared, verified;
    gnomon_device_part device;
};

/* Whether base point id may be an answer. */
static inline bool gnomon_search_allows(const gnomon_search_options *o, int64_t id)
{
    if (o->filter == NULL) return true;
    return id < o->filter_bits && (o->filter[id / 8] >> (id % 8) & 1) != 0;
}

/* gnomon_search_finish, but a query may have fewer than k answers: offsets tell how many. */
gnomon_status gnomon_search_finish_partial(gnomon_search *search, gnomon_neighbors *out);

/* The answers of two parts of the base, a's ids before b's, as those of both: for each query the k
 * nearest of what there is, or all. *out is new; a and b stay. Errors: MEMORY, OVERFLOW. */
gnomon_status gnomon_neighbors_merge(gnomon_search *search, const gnomon_neighbors *a,
                                     const gnomon_neighbors *b, gnomon_neighbors *out);

/* Refuses answers of which a query has fewer than k. Errors: ARGUMENT. */
gnomon_status gnomon_neighbors_check(gnomon_search *search, const gnomon_neighbors *found);

#endif
