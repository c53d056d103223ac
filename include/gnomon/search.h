/* gnomon/search.h: exact nearest neighbours: for each query the k nearest base points, or all
 * within a radius, in the order of (distance, id).
 *
 * The smallest complete program:
 *
 *     #include <gnomon/search.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[3 * 2] = {0, 0, 1, 0, 5, 5}, point[2] = {0.9f, 0};
 *         const gnomon_matrix base = gnomon_matrix_rowmajor(points, GNOMON_F32, 3, 2);
 *         const gnomon_matrix query = gnomon_matrix_rowmajor(point, GNOMON_F32, 1, 2);
 *         gnomon_search_options o = GNOMON_SEARCH_OPTIONS_INIT;
 *         gnomon_neighbors found = {.struct_size = sizeof found};
 *         gnomon_context *ctx;
 *         o.k = 2;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_neighbors_exact(ctx, &base, &query, &o, &found);
 *         if (status == GNOMON_OK) printf("%d %d\n", (int)found.ids[0], (int)found.ids[1]); // 1 0
 *         gnomon_neighbors_free(ctx, &found);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Exact means: the set and the order are those of the distances below, computed in fp64 for every
 * pair. A single-precision filter with a bound on its error for the given points selects
 * candidates; candidates are verified in fp64. Results have the same bits for every number of
 * threads, instruction set, memory limit and division of the base into pieces; the k nearest are
 * the first k of the k + 1 nearest. docs/reference/search.md explains how.
 *
 * Distances, in fp64, never squared:
 *  - L2: |q - b|, from differences of coordinates.
 *  - COSINE: 1 - cos, in [0, 2], as |q/|q| - b/|b||^2 / 2, so that small angles keep their digits.
 *    The cosine of a zero vector (or one of norm below 2^-1000) with anything is 0: its distance
 *    from every point is 1.
 *  - IP: the inner product; the largest is the nearest. A radius is the smallest product to report.
 *  - HAMMING: the number of bits that differ; points are U8, eight bits per element.
 *  - JACCARD: 1 - |A n B| / |A u B| of sets: sparse rows, whose nonzero columns are the members.
 *    Two empty sets have distance 0, an empty and a nonempty set distance 1.
 *  - WEIGHTED_JACCARD: 1 - sum min(q_j, b_j) / sum max(q_j, b_j) of nonnegative weights, computed
 *    as sum |q_j - b_j| / sum max(q_j, b_j): sparse rows, in which the weights of a repeated column
 *    are added, or dense rows, which are converted to sparse ones. Two empty rows have distance 0,
 *    an empty and a nonempty row distance 1. On the CPU only.
 *  - L1: the sum of |q_j - b_j|, for every pair in fp64, without a filter.
 *
 * Their relative error:
 *  - L2 and COSINE: a few units in 2^-53; IP: the same, relative to |q||b|;
 *  - L1: below (D / 16 + 8) 2^-53;
 *  - WEIGHTED_JACCARD: below (m + 2) 2^-52 with m columns in use;
 *  - HAMMING and JACCARD: only the rounding of the division.
 *
 * L2, COSINE, IP and L1 accept dense points of any element type, which may differ between base and
 * queries; 64-bit integers are rounded to fp64. Magnitudes above 2^500 are refused.
 *
 * A GPU (with a named device; with "auto" if views are in its memory, or the gain on the first base
 * points exceeds the transfer) gives the same answers, bit for bit. Dense queries and base may then
 * be in its memory or in the host's; sparse ones are in host memory. L1 and WEIGHTED_JACCARD run on
 * the CPU only. */
#ifndef GNOMON_SEARCH_H
#define GNOMON_SEARCH_H

#include <gnomon/matrix.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers never change. */
typedef enum gnomon_metric {
    GNOMON_L2 = 1,
    GNOMON_COSINE = 2,
    GNOMON_IP = 3,
    GNOMON_HAMMING = 4,
    GNOMON_JACCARD = 5,
    GNOMON_L1 = 6,
    GNOMON_WEIGHTED_JACCARD = 7
} gnomon_metric;

/* "l2", "cosine", "ip", "hamming", "jaccard", "l1", "weighted-jaccard"; "?" for an unknown number.
 * */
GNOMON_API const char *gnomon_metric_name(gnomon_metric metric);
/* The metric of that name (not of an alias), 0 when there is none. */
GNOMON_API gnomon_metric gnomon_metric_from_name(const char *name);

/* The distance at or below which a pair's similarity is at least 'similarity', for metrics with
 * GNOMON_METRIC_SIMILARITY: 1 - similarity, plus half a unit in the last place, so that a pair of
 * exactly that similarity is included: sets that share 4 members of 5 have the distance 0.2, but 1
 * - 0.8 in double precision is smaller. */
GNOMON_API double gnomon_similarity_threshold(double similarity);

/* The points that a metric applies to. */
enum {
    GNOMON_POINTS_DENSE = 1,
    GNOMON_POINTS_BITS = 2, /* dense and of type U8, eight bits per element */
    GNOMON_POINTS_SPARSE = 4
};

enum {
    GNOMON_METRIC_LARGER = 1,     /* larger values are nearer */
    GNOMON_METRIC_SIMILARITY = 2, /* 1 - distance is a similarity */
    GNOMON_METRIC_JOINS = 4,      /* gnomon_join supports it */
    GNOMON_METRIC_HASHED = 8,     /* there are hash functions for it, so an index can be built */
    GNOMON_METRIC_CODES = 16,     /* points of an index can have codes */
    GNOMON_METRIC_DEVICE = 32,    /* a GPU can search and join by it */
    GNOMON_METRIC_WEIGHTS = 64    /* sparse values are weights, not members of sets */
};

/* A row of the table of metrics. */
typedef struct gnomon_metric_info {
    gnomon_metric metric;
    const char *name;    /* on the command line and in JSON */
    const char *aliases; /* what other libraries call it, "" or names with spaces between */
    const char *about;   /* a remark of a few words, "" for none */
    const char *unit;    /* what a point's columns are */
    unsigned points;     /* GNOMON_POINTS_... */
    unsigned flags;      /* GNOMON_METRIC_... */
} gnomon_metric_info;

/* The metrics, from index 0 on; NULL past the last. Static storage. */
GNOMON_API const gnomon_metric_info *gnomon_metric_at(int index);

typedef struct gnomon_search_options {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* default L2 */
    int64_t k;            /* the number of neighbours; 0 (default): all within radius */
    double radius;        /* inclusive; used if k is 0. Not negative, except for IP */
    const uint8_t
        *filter; /* NULL (default): all points. Else a bitmap: bit i % 8 of byte i / 8 is set if
                    base point i may be an answer. Must stay valid during the search */
    int64_t filter_bits; /* number of ids in the bitmap; points with larger ids are not answers */
    int64_t exclude;     /* -1 (default): none. Else query i is base point exclude + i, which is
                            excluded from its own answers */
    void *device_stream; /* a cudaStream_t of the context's GPU: the call reads views in the GPU's
                            memory behind what this stream has to do so far. Its results are
                            complete on return. NULL (default): behind the legacy default stream */
} gnomon_search_options;

#define GNOMON_SEARCH_OPTIONS_INIT                                                   \
    {                                                                                \
        sizeof(gnomon_search_options), GNOMON_L2, 0, 0.0, NULL, 0, (int64_t)-1, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_search_options_init(gnomon_search_options *options, size_t size);

enum { GNOMON_SEARCH_WHY = 256 }; /* bytes of the text, its end included */

/* Answers. Those of query i are entries offsets[i] to offsets[i + 1] of ids and distances, nearest
 * first. With k neighbours offsets[i] is i * k, so that both are row-major queries x k. The arrays
 * come from the context's allocator; gnomon_neighbors_free frees them. */
typedef struct gnomon_neighbors {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t queries, k; /* k 0: by radius */
    int64_t base;       /* number of base points */
    int64_t *offsets;   /* queries + 1 */
    int64_t *ids;
    double *distances;
    int64_t compared; /* pairs that the filter tested, or that were computed without it */
    int64_t verified; /* pairs computed in fp64 (sets and bits: none need it) */
    char why[GNOMON_SEARCH_WHY]; /* with sparse points by L2, COSINE, IP or L1: the form in which
                                    the last of them were searched, and why; else "" */
} gnomon_neighbors;

/* Frees what a call allocated into neighbors, by the same context, and clears it; NULL is allowed.
 */
GNOMON_API void gnomon_neighbors_free(gnomon_context *ctx, gnomon_neighbors *neighbors);

/* A search in progress: queries, and their answers among the base points so far. One thread at a
 * time may use it and its context. */
typedef struct gnomon_search gnomon_search;

/* Begins a search. queries (n x D) must not change until the search is destroyed. On a GPU they are
 * kept in its memory, with 32 bytes per query and neighbour.
 * Errors:
 *  - ARGUMENT: options; a view
 *  - DTYPE: HAMMING requires U8
 *  - NONFINITE: a query, named by row and column; if queries are in a GPU's memory, the first
 *    gnomon_search_add may return it instead
 *  - UNSUPPORTED: a magnitude above 2^500; JACCARD with dense, HAMMING with sparse points
 *  - DEVICE: with a named device or a view in a device's memory, if the device is not available or
 *    does not support the job; L1
 *  - MEMORY
 * On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_search_create(gnomon_context *ctx, const gnomon_matrix *queries,
                                              const gnomon_search_options *options,
                                              gnomon_search **out);
/* The same for sparse rows; the view is copied. */
GNOMON_API gnomon_status gnomon_search_create_csr(gnomon_context *ctx, const gnomon_csr *queries,
                                                  const gnomon_search_options *options,
                                                  gnomon_search **out);

/* Says that the first base point has this id, 0 unless said: for a search in a part of the base.
 * Before the first gnomon_search_add. options.filter and options.exclude speak of ids as ever.
 * Errors: ARGUMENT: negative; base points have been added. */
GNOMON_API gnomon_status gnomon_search_first_id(gnomon_search *search, int64_t id);

/* Searches the next base points, whose ids follow those before; they may be freed afterwards.
 * Working memory: the context's limit, and 16 bytes per query and neighbour; at least what six
 * queries need. After a failure the search can only be destroyed.
 * Errors:
 *  - SHAPE: other dimensions than the queries
 *  - NONFINITE: naming the base point's id and column; points that the filter excludes may not be
 *    checked
 *  - DATA: a broken sparse view
 *  - DEVICE: an error of the GPU; base is in a GPU's memory and the search runs on the CPU
 *  - DTYPE, UNSUPPORTED, MEMORY, CANCELLED */
GNOMON_API gnomon_status gnomon_search_add(gnomon_search *search, const gnomon_matrix *base);
GNOMON_API gnomon_status gnomon_search_add_csr(gnomon_search *search, const gnomon_csr *base);

/* Returns the answers; after that the search can only be destroyed. out->struct_size must be set.
 * Errors:
 *  - ARGUMENT: a query has fewer than k points that may be its answers
 *  - MEMORY */
GNOMON_API gnomon_status gnomon_search_finish(gnomon_search *search, gnomon_neighbors *out);

/* NULL is allowed. */
GNOMON_API void gnomon_search_destroy(gnomon_search *search);

/* The whole search in one call, with the base (points x D) in memory. out->struct_size must be set;
 * the caller frees *out by gnomon_neighbors_free; after a failure there is nothing to free.
 * Threads: see gnomon_context.
 * Errors: those of gnomon_search_create, _add and _finish. */
GNOMON_API gnomon_status gnomon_neighbors_exact(gnomon_context *ctx, const gnomon_matrix *base,
                                                const gnomon_matrix *queries,
                                                const gnomon_search_options *options,
                                                gnomon_neighbors *out);
GNOMON_API gnomon_status gnomon_neighbors_exact_csr(gnomon_context *ctx, const gnomon_csr *base,
                                                    const gnomon_csr *queries,
                                                    const gnomon_search_options *options,
                                                    gnomon_neighbors *out);

#ifdef __cplusplus
}
#endif
#endif
