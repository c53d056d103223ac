/* search/search.h: a search under way, as the files of this room share it. */
#ifndef GNOMON_SEARCH_SEARCH_H
#define GNOMON_SEARCH_SEARCH_H

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
    gnomon_sets sets;      /* JACCARD */
    int64_t count, cols;
    double limit; /* by radius: the largest key */

    gnomon_nearest *nearest; /* count; k nearest */
    gnomon_ranked *heaps;    /* k a query */
    gnomon_hit *hits;        /* by radius, in any order */
    int64_t hit_count, hit_room;

    gnomon_centre centre;
    bool whole;   /* all base points so far had integer coordinates, centred */
    int64_t base; /* points so far */
    int64_t rows; /* of the base that a scan takes at once; 0: by the work. Tests set it */
    int64_t compared, verified;
    gnomon_device_part device;
};

/* ---- centre.c ---- */
/* Estimates the centre from some of base's points. Errors: MEMORY. */
gnomon_status gnomon_centre_estimate(gnomon_search *search, const gnomon_matrix *base);

/* ---- exact.c: keys in fp64 ---- */
/* The query made ready for the metric; f64 has room for 2 * cols numbers. */
gnomon_query gnomon_query_widen(const gnomon_search *search, int64_t query, double *f64);
/* The key of a query and row i of base. */
double gnomon_exact_key(const gnomon_search *search, gnomon_query query, const gnomon_matrix *base,
                        int64_t i);

/* ---- filter.c: what fp32 can tell ---- */
/* The error of scores at so many steps, as a share of the product of norms; most_steps 0: of 16-bit
 * coordinates, beside what their rounding takes. */
double gnomon_filter_gamma(int64_t steps, int64_t most_steps);
/* What a query is to the filter. */
typedef struct gnomon_filter_query {
    double norm, squares; /* of the centred query */
    double constant;      /* IP: what a score lacks to be the (scaled) product */
    bool whole;           /* all coordinates are integers */
} gnomon_filter_query;
/* Centres a query into out, steps numbers, and sets up its filter's errors. wide: 2 * cols. */
void gnomon_filter_prepare(const gnomon_search *search, int64_t query, int64_t steps,
                           int64_t most_steps, double *f64, float *out, gnomon_filter_query *facts,
                           gnomon_filter *filter);
/* Words of a point in coordinates of so many bits: 32 (fp32), 16 or 8. */
static inline int64_t gnomon_filter_words(int64_t steps, int bits)
{
    return bits == 32 ? steps : bits == 16 ? (steps + 1) / 2 : (steps + 15) / 16 * 4;
}
/* Turns a centred query of so many steps into integers of 16 or 8 bits, at most 'most' large, with
 * what that means for its filter. */
void gnomon_filter_round(const float *centred, int64_t steps, int bits, int most,
                         const gnomon_filter_query *facts, gnomon_filter *filter, uint32_t *out);
/* The least score of any point whose key is at most 'key'. With 'whole': key is that of a point
 * with integer coordinates and a smaller id, so that an equal one no longer matters. */
float gnomon_filter_least(const gnomon_search *search, const gnomon_filter_query *facts, double key,
                          bool whole);
/* A tile's share of the error. squares: of its points' norms; whole: their coordinates are. */
gnomon_blur gnomon_filter_blur(const gnomon_search *search, int64_t steps, int64_t most_steps,
                               const double *squares, int lanes, bool whole);
/* The same of a tile in integer coordinates, of this scale and with squares lost to rounding. */
void gnomon_blur_halve(int64_t steps, float scale, const float *lost, int lanes, gnomon_blur *blur);
/* Drops survivors that k others surely come before; raises 'least'. values: room for 'room'. */
void gnomon_filter_shrink(gnomon_filter *filter, int64_t k, float *values);

/* ---- scan.c ---- */
/* All queries against base's rows, the first of which is point search->base. rows: which,
 * ascending; NULL: all. */
gnomon_status gnomon_scan(gnomon_search *search, const gnomon_matrix *base, const uint32_t *rows,
                          int64_t count);

/* ---- jaccard.c ---- */
/* Refuses a broken view; what its entries are is not looked at. Errors: ARGUMENT, DATA. */
gnomon_status gnomon_csr_check(gnomon_context *ctx, const gnomon_csr *csr, const char *name);
gnomon_status gnomon_sets_make(gnomon_context *ctx, const gnomon_csr *csr, const char *name,
                               int64_t first, gnomon_metric metric, gnomon_sets *sets);
void gnomon_sets_free(gnomon_context *ctx, gnomon_sets *sets);
gnomon_status gnomon_scan_sets(gnomon_search *search, const gnomon_sets *base);
/* Answers of sets that share nothing with a query. */
gnomon_status gnomon_sets_complete(gnomon_search *search);
/* The same where a device has found counts[q] of a query's k, which lie in their order, k places a
 * query. Errors: MEMORY. */
gnomon_status gnomon_sets_fill(gnomon_search *search, int64_t *counts, int64_t *ids,
                               double *distances);

/* ---- device.c ---- */
/* Opens the search on the context's device: search->device.part tells whether it took it, which
 * 'must' demands. name: of the view that lies there, under AUTO. */
gnomon_status gnomon_search_to_device(gnomon_search *search, const char *name, bool must);
/* Whether to ask, under AUTO and with points in host memory. */
bool gnomon_search_worth_device(const gnomon_search *search, const gnomon_matrix *base);
bool gnomon_sets_worth_device(const gnomon_search *search, const gnomon_csr *base);
/* One of base and sets is NULL. */
gnomon_status gnomon_search_add_on_device(gnomon_search *search, const gnomon_matrix *base,
                                          const gnomon_csr *sets);
/* The k nearest in the order of answers, k places a query, and how many each query has. */
gnomon_status gnomon_search_finish_on_device(gnomon_search *search, int64_t *counts, int64_t *ids,
                                             double *distances);
void gnomon_search_close_on_device(gnomon_search *search);

/* ---- search.c ---- */
/* Whether base point id may be an answer. */
static inline bool gnomon_search_allows(const gnomon_search_options *o, int64_t id)
{
    if (o->allowed == NULL) return true;
    return id < o->allowed_bits && (o->allowed[id / 8] >> (id % 8) & 1) != 0;
}
/* Makes room for so many more hits. */
gnomon_status gnomon_hits_reserve(gnomon_search *search, int64_t more);

#endif
