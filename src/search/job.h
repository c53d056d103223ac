/* search/job.h: a search as a device is given it: arguments checked, defaults filled in. */
#ifndef GNOMON_SEARCH_JOB_H
#define GNOMON_SEARCH_JOB_H

#include "backend.h"
#include "search/ranked.h"

#include <gnomon/search.h>

/* What the core does for a device in the middle of the work, from the calling thread. */
typedef struct gnomon_search_host {
    void *user;
    /* By radius: makes room for so many more hits, which the device fills in, in any order. */
    gnomon_status (*hits)(void *user, int64_t count, gnomon_hit **at);
} gnomon_search_host;

/* Dense points under L2, COSINE, IP or HAMMING, or sets. Lasts as long as the device's search. */
typedef struct gnomon_search_job {
    const gnomon_matrix *queries; /* JACCARD: empty */
    const gnomon_csr *sets; /* JACCARD: the queries, ascending and each member once; else NULL */
    const gnomon_search_options *options;
    double limit;         /* by radius: the largest key */
    int64_t memory_limit; /* bytes of working memory on the host */
    const gnomon_device_host *host;
    const gnomon_search_host *calls;
} gnomon_search_job;

/* The next base points; the first has the id 'first'. */
typedef struct gnomon_search_piece {
    const gnomon_matrix *base;
    const gnomon_csr *sets; /* JACCARD; base is NULL then */
    int64_t first;
    bool faulty; /* result: OK, and nothing done: the sets are not all sound, and the host tells why
                  */
    int64_t compared, verified; /* results, as in gnomon_neighbors */
} gnomon_search_piece;

#endif
