/* cuda/search/found.h: a search under way, and what it finds: search/search.cu and search/sets.cu
 * share it. */
#ifndef GNOMON_CUDA_SEARCH_FOUND_H
#define GNOMON_CUDA_SEARCH_FOUND_H

#include "cuda/filter/filter.h"
#include "cuda/runtime/transfer.h"
#include "cuda/search/search.h"

enum { GCU_SEARCH_PARTS = 40 };

/* What the host reads after each step. */
struct gcu_search_words {
    unsigned long long pairs, hits, fault;
};

struct gcu_search {
    gcu_state *s;
    const gnomon_search_job *job;
    gcu_why why;
    cudaStream_t stream;
    int64_t count, cols, k;
    bool few, bits, direct; /* direct: no filter */
    bool small_batch;       /* by search/small_batch.h where the base allows it */
    bool tensors;           /* there by tensor cores, unless these could not tell */
    bool made;              /* there is what the other ways need */
    bool begun;             /* lists, limits and radii are set up */

    void *parts[GCU_SEARCH_PARTS];
    int held, kept; /* kept: so many stay until the search is closed */

    gnomon_matrix queries; /* in the GPU's memory; JACCARD: none */
    double *query_inverse;
    double *limits, *radii;  /* a query: the largest key (distance, product) wanted */
    gnomon_ranked *lists[2]; /* count x k; [now] is what was found */
    int now;
    int64_t *list_counts, *sample_counts;
    unsigned *counts, *offsets; /* of pairs, by query */
    gcu_search_found found;
    double *sorted_keys;
    uint32_t *sorted_places;
    gnomon_hit *hits;
    double *f64;
    int64_t f64_queries;
    gcu_search_words *words, *seen; /* on the GPU; the state's notes */
    void *batch_work;
    bool answered;    /* finish has only to hand out what lies here, in host memory: */
    int64_t *answers; /* counts, ids, distances */

    gcu_filter_centre centre;
    gcu_filter_points p; /* the queries on the centre, once 'packed' */
    bool packed;
    bool alike; /* of the piece's points the filter lets nearly all pass */
    void *centre_memory, *pack_memory, *limits_work;
    float *p_limits;

    int64_t *last; /* with k nearest, a query: the largest id wanted at the limit */

    int64_t behind; /* points that may be answers, so far */
    int64_t done, total;
    int64_t compared, verified;
};

#define TRY(call)                                       \
    do {                                                \
        const gnomon_status try_status = (call);        \
        if (try_status != GNOMON_OK) return try_status; \
    } while (0)

/* Memory until it is given back, from the end. */
gnomon_status gcu_search_alloc(gcu_search *v, size_t bytes, void **data);
void gcu_search_free(gcu_search *v, int held);
template <typename T>
static inline gnomon_status gcu_search_room(gcu_search *v, int64_t count, T **data)
{
    void *parts = nullptr;
    TRY(gcu_search_alloc(v, (size_t)count * sizeof(T), &parts));
    *data = static_cast<T *>(parts);
    return GNOMON_OK;
}
/* Room for pairs, as much as is of use and to be had. */
gnomon_status gcu_search_alloc_found(gcu_search *v);

/* No points yet: lists, limits and radii. */
gnomon_status gcu_search_begin(gcu_search *v);
/* What queries want at most; of sets the keys alone, for search/sets.cu has its own way with ids.
 */
gcu_search_limits gcu_search_limits_of(const gcu_search *v);
/* No pairs and no hits. */
gnomon_status gcu_search_begin_found(gcu_search *v);
/* Reads the words when the stream is there. */
gnomon_status gcu_search_read_words(gcu_search *v);
/* Copies one or two arrays of so many bytes each, a multiple of eight, to the host's memory. */
gnomon_status gcu_search_bring(gcu_search *v, void *const *from, void *const *to, int count,
                               int64_t bytes);
/* Hands so many pairs over as hits by radius. */
gnomon_status gcu_search_hand_hits(gcu_search *v, const gcu_search_pairs *pairs, int64_t count);
/* Pairs [0, count), by query, whose keys are known and counted, go into the lists; sample: into
 * the other ones, for the limits alone. */
gnomon_status gcu_search_choose(gcu_search *v, const gcu_search_pairs *pairs, int64_t query,
                                int64_t queries, int64_t count, bool sample);
/* So many more pairs have met: CANCELLED when the caller wants no more. */
gnomon_status gcu_search_tell(gcu_search *v, int64_t pairs);

#endif
