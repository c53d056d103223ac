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
 * whose fp64 distance is within the threshold: a filter in low precision, with a bound on its
 * error, selects candidates, which are verified in fp64. Pairs are sorted by (i, j), with the same
 * bits for every number of threads, instruction set, memory limit and division of the data into
 * pieces. They need not fit in memory unless the caller collects them: rows of P are processed in
 * bands whose pairs fit. docs/reference/join.md explains how. */
#ifndef GNOMON_JOIN_H
#define GNOMON_JOIN_H

#include <gnomon/search.h>

struct gnomon_comm; /* gnomon/comm.h */

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers never change. */
typedef enum gnomon_join_method {
    GNOMON_JOIN_AUTO = 0,  /* exact for recall 1; else the faster one by a cost model */
    GNOMON_JOIN_EXACT = 1, /* all pairs */
    GNOMON_JOIN_LSH = 2 /* by locality-sensitive hashing: a share of the pairs, without wrong ones,
                           the same on every device */
} gnomon_join_method;

/* "auto", "exact", "lsh"; "?" for an unknown number. */
GNOMON_API const char *gnomon_join_method_name(gnomon_join_method method);

typedef struct gnomon_pair {
    int64_t i, j;    /* rows of P and Q (of P, i < j, in a self-join) */
    double distance; /* IP: the product */
} gnomon_pair;

/* A batch of pairs: the next ones in the order of (i, j); with options.top all pairs in one batch,
 * in the order of (distance, i, j). It is valid until the sink returns. */
typedef struct gnomon_join_batch {
    const gnomon_pair *pairs;
    int64_t count;     /* may be 0: rows without pairs are reported too */
    int64_t rows_done; /* all pairs of P's rows before this one have been reported */
} gnomon_join_batch;

/* Receives a batch; a nonzero result ends the join with CANCELLED. Called from the thread that made
 * the call.
 */
typedef int (*gnomon_join_sink)(void *user, const gnomon_join_batch *batch);

typedef struct gnomon_join_options {
    size_t struct_size;   /* see gnomon/base.h */
    gnomon_metric metric; /* default L2 */
    double
        threshold; /* the largest distance, inclusive; IP: the smallest product. Finite; not
                      negative except for IP. Default 0: duplicates (COSINE: parallel points whose
                      rounded distance is 0). With top it may be INFINITY (IP: -INFINITY) */
    int64_t top;   /* N > 0: only the N closest of the pairs within the threshold, ties by (i, j).
                      Default 0: all */
    int64_t max_pairs; /* N > 0: end after N pairs. Default 0: no limit. Not with top */
    int64_t first_row; /* only pairs of P's rows from this one on, to continue an earlier join (its
                          rows_done). Default 0 */
    double recall; /* share of the pairs that must be found, in (0, 1]. Default 1: all. Below 1 an
                      LSH join misses a pair within the threshold with probability at most (1 -
                      recall) / 20. By Markov's inequality it finds less than this share for at most
                      one seed in twenty, whatever the points */
    uint64_t seed; /* of the hash functions of an LSH join. Default 0 */
    gnomon_join_method method; /* default AUTO */
    int64_t *p_counts,
        *q_counts; /* NULL (default), or one count per row, to which the number of pairs of each
                      point is added. A self-join counts both points in p_counts. Not with top */
    gnomon_join_sink sink; /* NULL (default): pairs are counted only */
    void *user;            /* for sink */
    int64_t band_rows; /* N > 0: an LSH join reports pairs after at most N of P's rows, for callers
                          that save them as they come. Default 0: as many rows as memory allows,
                          which is fastest */
    void *device_stream; /* a cudaStream_t of the context's GPU: the call reads views in the GPU's
                            memory behind what this stream has to do so far. Its results are
                            complete on return. NULL (default): behind the legacy default stream */
    const struct gnomon_comm *comm; /* the ranks that share the join (gnomon/comm.h). All make the
                                       same call, of the same points and options but for sink,
                                       counts and result. Rank 0 has the pairs, in the same order
                                       and with the same bits as without; what the others' sinks
                                       and counts would receive, it does. Its result has the sums
                                       of compared, verified and bands; the others' are of their
                                       own rows. On the CPU. NULL (default): this process alone */
} gnomon_join_options;

#define GNOMON_JOIN_OPTIONS_INIT                                                              \
    {                                                                                         \
        sizeof(gnomon_join_options), GNOMON_L2, 0.0, 0, 0, 0, 1.0, 0, GNOMON_JOIN_AUTO, NULL, \
            NULL, NULL, NULL, 0, NULL, NULL                                                   \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_join_options_init(gnomon_join_options *options, size_t size);

enum { GNOMON_JOIN_WHY = 256 }; /* bytes of the text, its end included */

/* The outcome of a join; after CANCELLED and other failures, of the part that was done. */
typedef struct gnomon_join_result {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int64_t pairs;      /* reported, or counted */
    int64_t rows_done;  /* all pairs of P's rows before it were reported; P's rows when complete */
    int complete;       /* 0: ended by max_pairs, a sink, the progress callback or a failure */
    gnomon_join_method method; /* EXACT or LSH */
    double recall;             /* the guaranteed share; 1 if exact */
    int64_t compared;          /* pairs that a filter or a distance computation compared */
    int64_t verified;          /* pairs computed in fp64 (sets and bits: none need it) */
    int64_t bands;             /* number of bands of rows */
    char why[GNOMON_JOIN_WHY]; /* the reason for the method, and the filter: one line */
} gnomon_join_result;

/* Joins P with Q, or with itself where q is NULL. Both must not change during the call. L2, COSINE
 * and IP accept dense points of any element type, which may differ; HAMMING requires U8, eight bits
 * per element. Working memory: the context's limit, which also bounds the pairs held at a time, but
 * at least what a few rows need. P and Q may be empty. options must not be NULL; result may be,
 * else its struct_size must be set. For a join on a GPU views may be in its memory; host data that
 * does not fit is transferred in pieces. With LSH the pairs are the same on every device. With AUTO
 * and a recall below 1 the choice between an exact join and hash tables depends on their cost on
 * the device, so the pairs may differ between a CPU and a GPU, within the guarantee. Threads: see
 * gnomon_context.
 * Errors:
 *  - ARGUMENT: options; a view
 *  - SHAPE: different dimensions
 *  - NONFINITE: naming side, row and column
 *  - UNSUPPORTED: a magnitude above 2^500; JACCARD with dense points; LSH with IP, recall 1 or no
 *    finite threshold
 *  - DEVICE: with a named device or a view in a device's memory, if the device is not available or
 *    does not support the job
 *  - CANCELLED: the sink or the progress callback
 *  - DTYPE, MEMORY */
GNOMON_API gnomon_status gnomon_join(gnomon_context *ctx, const gnomon_matrix *p,
                                     const gnomon_matrix *q, const gnomon_join_options *options,
                                     gnomon_join_result *result);

/* The same for sparse rows, with every metric except HAMMING. With JACCARD they are sets, whose
 * members are the nonzero columns. On a GPU sets are joined exactly, whatever the recall, if they
 * fit in its memory: about 45 bytes per member, fewer than 2^31 members. With other metrics sparse
 * rows are joined on the CPU.
 * Errors:
 *  - DATA: a broken view
 *  - UNSUPPORTED: HAMMING
 *  - DEVICE: a named device, for LSH and for metrics other than JACCARD
 *  - those of gnomon_join */
GNOMON_API gnomon_status gnomon_join_csr(gnomon_context *ctx, const gnomon_csr *p,
                                         const gnomon_csr *q, const gnomon_join_options *options,
                                         gnomon_join_result *result);

/* Dense points that are read when they are needed, several times. */
typedef struct gnomon_join_points {
    void *user;
    int64_t rows, cols;
    gnomon_dtype dtype; /* the type in which they are read */
    /* Fills all rows of 'to', of this dtype and row-major, with rows first, first + 1, ... Called
     * from the thread that made the call; a status other than OK ends the join with that status. */
    gnomon_status (*read)(void *user, int64_t first, const gnomon_matrix *to);
} gnomon_join_points;

/* The same for points that need not fit in memory: bands of P are joined with pieces of Q, on the
 * CPU and exactly, whatever the recall.
 * Errors:
 *  - what 'read' returns
 *  - UNSUPPORTED: LSH
 *  - DEVICE: a named device
 *  - those of gnomon_join */
GNOMON_API gnomon_status gnomon_join_stream(gnomon_context *ctx, const gnomon_join_points *p,
                                            const gnomon_join_points *q,
                                            const gnomon_join_options *options,
                                            gnomon_join_result *result);

/* Sparse rows that are read when they are needed, several times. */
typedef struct gnomon_join_rows {
    void *user;
    int64_t rows, cols;
    const int64_t *offsets; /* rows + 1 as in a gnomon_csr: how many entries each row has; they stay
                               in memory */
    /* Sets *to to rows first to first + count, which last until the next call for this side. Called
     * from the thread that made the call; a status other than OK ends the join with that status. */
    gnomon_status (*read)(void *user, int64_t first, int64_t count, gnomon_csr *to);
} gnomon_join_rows;

/* gnomon_join_csr for rows that need not fit in memory: bands of P go through inverted indexes of
 * pieces of Q, on the CPU and exactly, whatever the recall, with the same pairs. Every row is read
 * and checked before there are pairs. Takes L2, COSINE, IP and L1.
 * Errors:
 *  - what 'read' returns
 *  - DATA: offsets that decrease; rows that are not those of the offsets
 *  - UNSUPPORTED: another metric; LSH
 *  - DEVICE: a named device
 *  - those of gnomon_join_csr */
GNOMON_API gnomon_status gnomon_join_stream_csr(gnomon_context *ctx, const gnomon_join_rows *p,
                                                const gnomon_join_rows *q,
                                                const gnomon_join_options *options,
                                                gnomon_join_result *result);

/* ---- one side dense, one sparse ---- */

/* A side of a join: one of the two is NULL. */
typedef struct gnomon_join_side {
    const gnomon_matrix *dense; /* in the host's memory */
    const gnomon_csr *sparse;
} gnomon_join_side;

/* The same for sides of any layout. Of one dense and one sparse side the sparse rows are compared
 * as dense copies, made piece by piece within the memory limit, or the dense rows as sparse ones
 * through an inverted index, whichever a cost model expects to be faster; result->why tells. On the
 * CPU only where the layouts differ, and by hashing only of sparse rows.
 * Errors:
 *  - ARGUMENT: a side without a view, or with two; a view in a device's memory, where the layouts
 *    differ
 *  - DEVICE: a named device, where the layouts differ
 *  - those of gnomon_join and gnomon_join_csr */
GNOMON_API gnomon_status gnomon_join_sides(gnomon_context *ctx, const gnomon_join_side *p,
                                           const gnomon_join_side *q,
                                           const gnomon_join_options *options,
                                           gnomon_join_result *result);

/* ---- pairs in memory ---- */

/* Pairs as compressed rows: those of row i are entries offsets[i] to offsets[i + 1] of columns and
 * distances, ascending. The arrays come from the context's allocator; gnomon_pairs_free frees them.
 * */
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

/* A join that collects all pairs: options.sink must be NULL and options.top 0. With 'both' a
 * self-join stores each pair twice, as (i, j) and (j, i): a symmetric neighbour graph, as for
 * DBSCAN. out->struct_size must be set; the caller frees *out by gnomon_pairs_free; after a failure
 * there is nothing to free.
 * Errors:
 *  - ARGUMENT: 'both' of two sides
 *  - MEMORY: for the pairs
 *  - those of gnomon_join */
GNOMON_API gnomon_status gnomon_join_collect(gnomon_context *ctx, const gnomon_matrix *p,
                                             const gnomon_matrix *q,
                                             const gnomon_join_options *options, int both,
                                             gnomon_pairs *out, gnomon_join_result *result);
GNOMON_API gnomon_status gnomon_join_collect_csr(gnomon_context *ctx, const gnomon_csr *p,
                                                 const gnomon_csr *q,
                                                 const gnomon_join_options *options, int both,
                                                 gnomon_pairs *out, gnomon_join_result *result);
/* The same of sides of any layout; errors also those of gnomon_join_sides. */
GNOMON_API gnomon_status gnomon_join_collect_sides(gnomon_context *ctx, const gnomon_join_side *p,
                                                   const gnomon_join_side *q,
                                                   const gnomon_join_options *options, int both,
                                                   gnomon_pairs *out, gnomon_join_result *result);

/* ---- clusters ---- */

/* The connected components of pairs, updated pair by pair: 16 bytes per point. One thread at a time
 * may use it and its context, which must outlive it. */
typedef struct gnomon_clusters gnomon_clusters;

/* Errors: ARGUMENT (points negative), MEMORY. On failure *out is NULL. */
GNOMON_API gnomon_status gnomon_clusters_create(gnomon_context *ctx, int64_t points,
                                                gnomon_clusters **out);
/* Adds the pair of points i and j, both in [0, points), which are then in one cluster. Out of
 * range: ARGUMENT. */
GNOMON_API gnomon_status gnomon_clusters_add(gnomon_clusters *clusters, int64_t i, int64_t j);
/* Writes each point's cluster (numbered from 0, in the order of their first points) and, unless
 * NULL, each cluster's representative: its point with the most pairs, the first of those. Both
 * arrays have room for 'points' entries. Returns the number of clusters, -1 when clusters or labels
 * is NULL or an array is not aligned. */
GNOMON_API int64_t gnomon_clusters_label(gnomon_clusters *clusters, int64_t *labels,
                                         int64_t *representatives);
/* NULL is allowed. */
GNOMON_API void gnomon_clusters_destroy(gnomon_clusters *clusters);

#ifdef __cplusplus
}
#endif
#endif
