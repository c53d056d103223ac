/* cuda/search/search.h: exact search on the GPU: which kernels there are, and what they share.
 *
 * A group of queries meets base points in pieces that grow: what passes the filter
 * (cuda/filter/filter.h) is computed in fp64, sum by sum as on the CPU, and the k nearest so far
 * say what the next piece may let pass. */
#ifndef GNOMON_CUDA_SEARCH_H
#define GNOMON_CUDA_SEARCH_H

#include "cuda/runtime/state.h"

extern "C" {
#include "search/job.h"
}

/* Points in the GPU's memory. Strides in elements. */
struct gcu_search_view {
    const void *data;
    gnomon_dtype dtype;
    int64_t row_stride, col_stride, cols;
    const double *inverse; /* COSINE: 1 / |x|, 0 for zero vectors; else NULL */
};

/* Whose keys are wanted. Places are rows of 'base'; place p is point first + m, m being p * step
 * or, with a map, map[p * step]. */
struct gcu_search_pairs {
    gnomon_metric metric;
    gcu_search_view queries, base;
    bool f64; /* either side is F64: small sums are taken again, larger */
    int64_t first, step;
    const uint32_t *map;
    int64_t exclude; /* query i is point exclude + i; negative: none is */
};

/* Pairs, query << 32 | place, and their keys. Those beyond 'room' are counted and not kept. */
struct gcu_search_found {
    uint64_t *pairs;
    double *keys;    /* NaN: dropped */
    unsigned *ranks; /* the how-manieth, from 0, of its query's it was to be counted; may be NULL */
    unsigned long long *count;
    int64_t room;
};

/* What a query wants at most: keys up to its limit, and at it ids up to 'last' (NULL: all). */
struct gcu_search_limits {
    double *keys;
    int64_t *last;
};

/* ---- search/exact.cu: keys in fp64, the bits of src/search/exact.c ---- */

/* Lowers *first to row * cols + col for each element of rows [0, count) that is NaN, infinite or
 * above 2^500. */
cudaError_t gcu_search_faults(const gcu_search_view *x, int64_t count, unsigned long long *first,
                              cudaStream_t stream);
/* inverse = 1 / |x| of rows [0, count). */
cudaError_t gcu_search_norms(const gcu_search_view *x, int64_t count, double *inverse,
                             cudaStream_t stream);
/* f64 (count x cols) = queries [from, from + count) in fp64, divided by their norms for COSINE. */
cudaError_t gcu_search_to_f64(const gcu_search_view *queries, int64_t from, int64_t count,
                              double *f64, cudaStream_t stream);
/* keys (queries x places) of queries [query, query + queries), whose coordinates in fp64 are given,
 * and places [0, places); NaN for a query's own point. */
cudaError_t gcu_search_all(const gcu_search_pairs *p, const double *f64, int64_t query,
                           int64_t queries, int64_t places, double *keys, cudaStream_t stream);
/* Bits that differ, likewise. */
cudaError_t gcu_search_bits(const gcu_search_pairs *p, int64_t query, int64_t queries,
                            int64_t places, double *keys, cudaStream_t stream);
/* The same for few queries and many places: finds pairs within the query's limit; counts: one
 * more for each, by query. Sets *fault to 0 where a sum is not finite. */
cudaError_t gcu_search_few(const gcu_search_pairs *p, const double *f64, int64_t query,
                           int64_t queries, int64_t places, gcu_search_limits limits,
                           gcu_search_found found, unsigned *counts, unsigned long long *fault,
                           int sms, cudaStream_t stream);
/* Sets the keys of so many pairs; those beyond the query's limit, and a query's own point, are
 * dropped, others counted by query. */
cudaError_t gcu_search_verify(const gcu_search_pairs *p, gcu_search_limits limits,
                              gcu_search_found found, int64_t pairs, unsigned *counts,
                              cudaStream_t stream);

/* ---- search/select.cu ---- */

/* What is new to queries [query, query + queries): keys[(q - query) * each ...] of places from 0
 * on (places NULL), or keys and places [offsets[q], offsets[q + 1]). */
struct gcu_search_news {
    int64_t query, queries;
    const double *keys;
    const uint32_t *places;
    const unsigned *offsets;
    int64_t each;
    int64_t typical; /* about how many a query's are */
};
/* The k nearest so far of each query, in no order: k places per query. */
struct gcu_search_lists {
    gnomon_ranked *points; /* NULL: empty */
    int64_t *counts;
    int64_t k;
};
/* to = the k nearest of from and news; from->points != to->points. Where a list is full the limits
 * (keys and ids) and radii[q] (a distance, or product) come down to its last point. */
cudaError_t gcu_search_select(const gcu_search_pairs *p, const gcu_search_lists *from,
                              const gcu_search_lists *to, const gcu_search_news *news,
                              gcu_search_limits limits, double *radii, cudaStream_t stream);
/* offsets[i] = the sum of counts before i, count + 1 of them. */
cudaError_t gcu_search_offsets(const unsigned *counts, int64_t count, unsigned *offsets,
                               cudaStream_t stream);
/* Keys and places query by query, from offsets[q] on. */
cudaError_t gcu_search_scatter(gcu_search_found found, int64_t pairs, const unsigned *offsets,
                               double *keys, uint32_t *places, cudaStream_t stream);
/* Lists into the order of answers. */
cudaError_t gcu_search_sort(const gcu_search_lists *lists, int64_t queries, cudaStream_t stream);
/* Ids and distances (products) of points. */
cudaError_t gcu_search_split(const gnomon_ranked *points, int64_t count, bool products,
                             int64_t *ids, double *distances, cudaStream_t stream);
/* Pairs that were not dropped as hits, *count of them, in any order. */
cudaError_t gcu_search_hits(const gcu_search_pairs *p, gcu_search_found found, int64_t pairs,
                            gnomon_hit *hits, unsigned long long *count, cudaStream_t stream);
/* Of dense keys (queries x each): finds those within the queries' limits; counts by query. */
cudaError_t gcu_search_within(const gcu_search_pairs *p, const gcu_search_news *news,
                              gcu_search_limits limits, gcu_search_found found, unsigned *counts,
                              cudaStream_t stream);
/* *short_lists = how many of the lists have fewer than k points. */
cudaError_t gcu_search_short(const gcu_search_lists *lists, int64_t queries,
                             unsigned long long *short_lists, cudaStream_t stream);
/* Of dense keys (queries x each): finds those up to 'limit'. */
cudaError_t gcu_search_range(const gcu_search_news *news, double limit, gcu_search_found found,
                             cudaStream_t stream);
cudaError_t gcu_search_fill(double *values, int64_t count, double value, cudaStream_t stream);
/* Row i of 'to' = row rows[i] of from, element by element; to is row-major without gaps. */
cudaError_t gcu_search_gather(const gnomon_matrix *from, const uint32_t *rows, int64_t count,
                              void *to, cudaStream_t stream);

#ifdef __CUDACC__

/* gnomon_ranked_before. */
static __device__ __forceinline__ bool gcu_ranked_before(const gnomon_ranked &a,
                                                         const gnomon_ranked &b)
{
    return a.key < b.key || (a.key == b.key && a.id < b.id);
}

static __device__ __forceinline__ int64_t gcu_search_id(const gcu_search_pairs &p, int64_t place)
{
    return p.first + (p.map ? (int64_t)p.map[place * p.step] : place * p.step);
}

/* NaN is not within. */
static __device__ __forceinline__ bool gcu_search_is_within(const gcu_search_pairs &p,
                                                            const gcu_search_limits &limits,
                                                            int64_t query, int64_t place,
                                                            double key)
{
    const double limit = limits.keys[query];
    return key < limit ||
           (key == limit && (!limits.last || gcu_search_id(p, place) <= limits.last[query]));
}

#endif

/* ---- search/search.cu ---- */

struct gcu_search;
bool gcu_search_supported(const gcu_state *s, const gnomon_search_job *job, gcu_why why);
gnomon_status gcu_search_open(gcu_state *s, const gnomon_search_job *job, gcu_search **out,
                              gcu_why why);
gnomon_status gcu_search_add(gcu_state *s, gcu_search *search, gnomon_search_piece *piece,
                             gcu_why why);
gnomon_status gcu_search_finish(gcu_state *s, gcu_search *search, int64_t *counts, int64_t *ids,
                                double *distances, gcu_why why);
void gcu_search_close(gcu_state *s, gcu_search *search);

#endif
