/* gnomon/join.h: similarity join: every pair of points within a threshold, or a guaranteed share of
 * them by locality-sensitive hashing.
 *
 * The join of P and Q contains each pair (i, j) with i of P and j of Q. The join of P with itself
 * contains each pair i < j once, and no point paired with itself.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/join.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float points[3 * 2] = {0, 0, 1, 0, 5, 5};
 *         const gnomon_matrix p = gnomon_matrix_rowmajor(points, GNOMON_F32, 3, 2);
 *         gnomon_join_options o = GNOMON_JOIN_OPTIONS_INIT;
 *         gnomon_pairs pairs = {.struct_size = sizeof pairs};
 *         gnomon_context *ctx;
 *         o.threshold = 2;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK)
 *             status = gnomon_join_collect(ctx, &p, NULL, &o, 0, &pairs, NULL);
 *         printf("%d\n", (int)pairs.count); // 1
 *         gnomon_pairs_free(ctx, &pairs);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Distances are those of gnomon/search.h, with the same bits. An exact join has exactly the pairs
 * whose fp64 distance is within the threshold: products in low precision are only a filter, with a
 * bound on their error. Pairs come in the order of (i, j), with the same bits for every number of
 * threads, instruction set, memory limit and division of the data into pieces. They are never all
 * in memory unless the caller collects them: rows of P are processed in bands whose pairs fit,
 * however many there are. docs/reference/join.md explains how. */
#ifndef GNOMON_JOIN_H
#define GNOMON_JOIN_H

#include <gnomon/search.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers pinned. */
typedef enum gnomon_join_method {
    GNOMON_JOIN_AUTO = 0,  /* exact for recall 1; else what a cost model says is faster */
    GNOMON_JOIN_EXACT = 1, /* every pair is decided */
    GNOMON_JOIN_LSH = 2    /* by locality-sensitive hashing: a share of the pairs, none wrong, the
                              same on every device */
} gnomon_join_method;

/* "auto", "exact", "lsh"; "?" for a number that is none. */
GNOMON_API const char *gnomon_join_method_name(gnomon_join_method method);

typedef struct gnomon_pair {
    int64_t i, j;    /* rows of P and Q (of P, i < j, in a self-join) */
    double distance; /* IP: the product */
} gnomon_pair;

/* Some of the pairs, in order: the next ones in the order of (i, j); with options.top all of them
 * in one batch, in the order of (distance, i, j). Whoever gets a batch may read it until it
 * returns. */
typedef struct gnomon_join_batch {
    const gnomon_pair *pairs;
    int64_t count;     /* may be 0: rows without pairs are told too */
    int64_t rows_done; /* all pairs of P's rows before this one have been handed out by now */
} gnomon_join_batch;

/* Takes a batch; nonzero ends the join with CANCELLED. Called from the thread that made the call.
 */
typedef int (*gnomon_join_sink)(void *user, const gnomon_join_batch *batch);

typedef struct gnomon_join_options {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* default L2 */
    double threshold;  /* the largest distance wanted, inclusive; IP: the least product. Finite; not
                          negative but for IP. Default 0: duplicates (COSINE: parallel points whose
                          rounded distance is 0). With top it may be INFINITY (IP: -INFINITY) */
    int64_t top;       /* N > 0: of those within the threshold only the N closest, ties by (i, j).
                          Default 0: all */
    int64_t max_pairs; /* N > 0: end after so many pairs. Default 0: any number. Not with top */
    int64_t first_row; /* only pairs of P's rows from this one on: goes on where an earlier join
                          ended (its rows_done). Default 0 */
    double recall; /* share of the pairs that must be found, in (0, 1]. Default 1: all. Below, an
                      LSH join misses a pair within the threshold with probability (1 - recall) / 20
                      at most, and so finds less than this share in at most one seed of twenty,
                      whatever the points (Markov's inequality) */
    uint64_t seed; /* of the hash functions of an LSH join. Default 0 */
    gnomon_join_method method;    /* default AUTO */
    int64_t *p_counts, *q_counts; /* NULL (default), or room for a count a row, which is added to:
                                     in how many pairs each point is. A self-join counts both ends
                                     in p_counts. Not with top */
    gnomon_join_sink sink;        /* NULL (default): pairs are counted only */
    void *user;                   /* for sink */
    int64_t band_rows; /* N > 0: an LSH join hands out pairs after N of P's rows at most, for
                          callers that keep them as they come. Default 0: as memory has room,
                          all rows at once if it can, which is fastest */
} gnomon_join_options;

#define GNOMON_JOIN_OPTIONS_INIT                                                              \
    {                                                                                         \
        sizeof(gnomon_join_options), GNOMON_L2, 0.0, 0, 0, 0, 1.0, 0, GNOMON_JOIN_AUTO, NULL, \
            NULL, NULL, NULL, 0                                                               \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_join_options_init(gnomon_join_options *options, size_t size);

enum { GNOMON_JOIN_WHY = 256 }; /* bytes of the text, its end included */

/* What came of a join; also after CANCELLED and other failures, as far as it got. */
typedef struct gnomon_join_result {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t pairs;      /* handed out, or counted */
    int64_t rows_done;  /* all pairs of P's rows before it are among them; P's rows when complete */
    int complete;       /* 0: ended by max_pairs, a sink, the progress callback or a failure */
    gnomon_join_method method; /* EXACT or LSH */
    double recall;             /* what is guaranteed; 1 when exact */
    int64_t compared;          /* pairs that some arithmetic or filter compared one by one */
    int64_t verified;          /* pairs computed in fp64 (sets and bits: none need it) */
    int64_t bands;             /* of rows, that were worked on at a time */
    char why[GNOMON_JOIN_WHY]; /* why this method, and what filtered: one line */
} gnomon_join_result;

/* Joins P with Q, or with itself where q is NULL. Both must stay as they are meanwhile. L2, COSINE
 * and IP take dense points of any element type, each of its own; HAMMING takes U8, eight bits an
 * element. Working memory as the context's limit says (it also bounds the pairs held at a time),
 * beside what a few rows take where that is too low. Sides may be empty. options must not be NULL;
 * result may be, else its struct_size must be set. Views may lie in a GPU's memory for a join
 * there, which takes what lies on the host in pieces where it is too large. With LSH the pairs are
 * the same on every device; with AUTO and a recall below 1 the device that does the work decides
 * between an exact join and tables, and which tables, by what they cost it, so that pairs within
 * the guarantee may differ between a CPU and a GPU. Threads: see gnomon_context.
 * Errors:
 *  - ARGUMENT: options; a view
 *  - SHAPE: different dimensions
 *  - NONFINITE: naming side, row and column
 *  - UNSUPPORTED: a magnitude above 2^500; JACCARD with dense points; LSH with IP, recall 1 or no
 *    finite threshold
 *  - DEVICE: a named device or a view in a device's memory, and the device can't be had or declines
 *  - CANCELLED: the sink or the progress callback
 *  - DTYPE, MEMORY */
GNOMON_API gnomon_status gnomon_join(gnomon_context *ctx, const gnomon_matrix *p,
                                     const gnomon_matrix *q, const gnomon_join_options *options,
                                     gnomon_join_result *result);

/* The same of sets, by JACCARD: sparse rows, a member for each entry that is not zero. On a GPU
 * they are joined exactly whatever the recall, when they fit in its memory: about 45 bytes a
 * member, below 2^31 members. Errors: also DATA (a broken view); UNSUPPORTED for other metrics;
 * DEVICE with a named device also for LSH. */
GNOMON_API gnomon_status gnomon_join_csr(gnomon_context *ctx, const gnomon_csr *p,
                                         const gnomon_csr *q, const gnomon_join_options *options,
                                         gnomon_join_result *result);

/* Dense points that are read where they are needed, several times. */
typedef struct gnomon_join_points {
    void *user;
    int64_t rows, cols;
    gnomon_dtype dtype; /* as which they are read */
    /* Writes rows first, first + 1, ... to all rows of 'to', of this dtype and row-major. Called
     * from the thread that made the call; anything but OK ends the join with it. */
    gnomon_status (*read)(void *user, int64_t first, const gnomon_matrix *to);
} gnomon_join_points;

/* The same of points that need not fit in memory: bands of P against pieces of Q, on the CPU and
 * exactly whatever the recall. Errors: also what 'read' returns; UNSUPPORTED for LSH; DEVICE
 * with a named device. */
GNOMON_API gnomon_status gnomon_join_stream(gnomon_context *ctx, const gnomon_join_points *p,
                                            const gnomon_join_points *q,
                                            const gnomon_join_options *options,
                                            gnomon_join_result *result);

/* ---- pairs in memory ---- */

/* Pairs in compressed rows: row i's are entries offsets[i] to offsets[i + 1] of columns and
 * distances, ascending. The arrays are of the context's allocator, freed by gnomon_pairs_free. */
typedef struct gnomon_pairs {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t rows, cols; /* P's rows and Q's (P's) */
    int64_t count;
    int64_t *offsets; /* rows + 1 */
    int64_t *columns; /* count */
    double *distances;
} gnomon_pairs;

/* Frees what a call allocated into pairs, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_pairs_free(gnomon_context *ctx, gnomon_pairs *pairs);

/* A join whose pairs are all kept: options.sink must be NULL and options.top 0. 'both': of a
 * self-join each pair is there twice, as (i, j) and (j, i), a symmetric graph of neighbours as
 * DBSCAN asks for. out->struct_size must be set; the caller owns what *out then points to, for
 * gnomon_pairs_free, and after a failure there is nothing to free. Errors: also ARGUMENT ('both' of
 * two sides), MEMORY for the pairs. */
GNOMON_API gnomon_status gnomon_join_collect(gnomon_context *ctx, const gnomon_matrix *p,
                                             const gnomon_matrix *q,
                                             const gnomon_join_options *options, int both,
                                             gnomon_pairs *out, gnomon_join_result *result);
GNOMON_API gnomon_status gnomon_join_collect_csr(gnomon_context *ctx, const gnomon_csr *p,
                                                 const gnomon_csr *q,
                                                 const gnomon_join_options *options, int both,
                                                 gnomon_pairs *out, gnomon_join_result *result);

/* ---- clusters ---- */

/* Connected components over pairs, gathered as they come: 16 bytes per point. One thread at a time,
 * as the context that it was made by, which must outlive it. */
typedef struct gnomon_clusters gnomon_clusters;

/* Errors: ARGUMENT (points negative), MEMORY. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_clusters_create(gnomon_context *ctx, int64_t points,
                                                gnomon_clusters **out);
/* Points i and j, both in [0, points), are of one cluster. Out of range: ARGUMENT. */
GNOMON_API gnomon_status gnomon_clusters_add(gnomon_clusters *clusters, int64_t i, int64_t j);
/* Writes each point's cluster (numbered from 0, in the order of their first points) and, unless
 * NULL, each cluster's representative, room for 'points' of each: the point with the most pairs in
 * it, the first of those. Returns the number of clusters, -1 when clusters or labels is NULL or an
 * array is not aligned. */
GNOMON_API int64_t gnomon_clusters_label(gnomon_clusters *clusters, int64_t *labels,
                                         int64_t *representatives);
/* NULL is allowed. */
GNOMON_API void gnomon_clusters_destroy(gnomon_clusters *clusters);

#ifdef __cplusplus
}
#endif
#endif
