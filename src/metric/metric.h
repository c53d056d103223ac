/* metric/metric.h: what a metric is to search, joins and hashing: one row a metric, at the end of
 * the metric's file. */
#ifndef GNOMON_METRIC_METRIC_H
#define GNOMON_METRIC_METRIC_H

#include "metric/jaccard.h"
#include "metric/list.h"
#include "points/rows.h"
#include "search_kernels.h"

#include <gnomon/lsh.h>
#include <gnomon/search.h>

#include <stdbool.h>

/* Sets: rows of ascending, distinct members; with weights above 0 where the metric has them. Sparse
 * rows of other metrics: members are columns, weights coordinates. */
typedef struct gnomon_sets {
    int64_t count;
    int64_t *offsets; /* count + 1, the first 0 */
    int64_t *members;
    double *weights; /* as many; NULL: there are none */
    double *factors; /* COSINE: a row's 1 / |x|, 0 of a zero vector; else NULL */
} gnomon_sets;

/* A dense query made ready: its coordinates in fp64, as 'prepare' left them, and behind them room
 * for as many numbers of 'key'. */
typedef struct gnomon_query {
    double *f64;
    double factor; /* 0 for a zero vector under COSINE, else 1 */
    gnomon_dtype dtype;
    const void *bytes; /* not NULL: its coordinates, without f64; base's are of the same type and
                        * adjacent */
} gnomon_query;

/* Rows whose keys are asked for at a time. */
enum { GNOMON_KEYS = 16 };

/* Nanoseconds on one thread, by bench/cpu/lsh_cost.py: start + point * a point's bytes (of sets:
 * members) + dim * its coordinates. */
typedef struct gnomon_metric_cost {
    double start, point, dim;
} gnomon_metric_cost;

typedef struct gnomon_metric_row {
    gnomon_metric_info info;
    gnomon_lsh_family families[GNOMON_METRIC_FAMILIES + 1]; /* the usual one first, then 0 */
    gnomon_metric_cost verify_cost;                         /* of one pair */
    gnomon_metric_cost exact_cost; /* of exact search, a query and base point */

    /* Dense points. Turns the query's cols coordinates in f64 into what 'key' takes; m and i tell
     * which row it is. NULL: nothing to do. */
    void (*prepare)(const gnomon_search_kernels *kernels, const gnomon_matrix *m, int64_t i,
                    double *f64, gnomon_query *query);
    /* The key of a query and row i of base: smaller is nearer. */
    double (*key)(const gnomon_search_kernels *kernels, gnomon_query query,
                  const gnomon_matrix *base, int64_t i);
    /* The same of count rows of base, of which GNOMON_KEYS are asked for at most; NULL: one by one.
     */
    void (*keys)(const gnomon_search_kernels *kernels, gnomon_query query,
                 const gnomon_matrix *base, const int64_t *rows, int64_t count, double *keys);
    /* The same key, to the last bit, of two sparse rows, for metrics whose bound
     * src/search/inverted.c knows; NULL: the metric takes none. */
    double (*sparse)(const gnomon_search_kernels *kernels, const gnomon_sparse_row *query,
                     const gnomon_sparse_row *base);
    bool bytes;    /* 'key' takes a query in bytes */
    bool filtered; /* products in fp32 tell which pairs need a key; else each gets one */

    /* Bits: the distance of row i of a and row j of b, both u8 and equally wide. */
    double (*bits)(const gnomon_matrix *a, int64_t i, const gnomon_matrix *b, int64_t j);

    /* Sets: the distance of a's set i and b's set j. Two that share nothing are at distance 1, or 0
     * where both are empty. */
    double (*sets)(const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j);
    /* The same of two sets that have so many members together, a shared one counted twice. NULL
     * where the counts don't tell. */
    double (*counts)(int64_t size, int64_t shared);
    /* It is 1 less the sum of the smaller weights by that of the larger ones, but for a relative
     * error below (m + 8) 2^-52 with m members: joins drop pairs by sums. */
    bool by_sums;
} gnomon_metric_row;

#define GNOMON_ROW(number, name) extern const gnomon_metric_row gnomon_metric_row_##name;
GNOMON_METRICS(GNOMON_ROW)
#undef GNOMON_ROW

/* The row of a metric, NULL when there is none. */
const gnomon_metric_row *gnomon_metric_row_of(gnomon_metric metric);

/* Of a number that is a metric's. */
static inline bool gnomon_metric_is(gnomon_metric metric, unsigned flag)
{
    return (gnomon_metric_row_of(metric)->info.flags & flag) != 0;
}
static inline bool gnomon_metric_takes(gnomon_metric metric, unsigned points)
{
    return (gnomon_metric_row_of(metric)->info.points & points) != 0;
}

/* Whether distances are those of sets (rows of gnomon_sets), with weights or without. */
static inline bool gnomon_metric_of_sets(gnomon_metric metric)
{
    return gnomon_metric_row_of(metric)->sets != NULL;
}

/* The distance that a key stands for, and the key of a distance. */
static inline double gnomon_metric_turn(gnomon_metric metric, double key)
{
    return gnomon_metric_is(metric, GNOMON_METRIC_LARGER) ? -key : key;
}

/* ---- rows.c ---- */
/* 1 / |x| of row i, 0 for a zero vector. */
double gnomon_inverse_norm(const gnomon_search_kernels *kernels, const gnomon_matrix *m, int64_t i);
/* The same of a sparse row, without its factor. */
double gnomon_sparse_inverse_norm(const gnomon_search_kernels *kernels,
                                  const gnomon_sparse_row *row);
/* Whether the rows are of adjacent fp32 coordinates: then where these rows begin. */
bool gnomon_rows_of_f32(const gnomon_matrix *m, const int64_t *rows, int64_t count,
                        const float **begin);
/* Row i of sparse rows, with its factor. */
gnomon_sparse_row gnomon_sparse_row_at(const gnomon_sets *rows, int64_t i);
/* The metric's 'sparse' of row i of a and row j of b. */
double gnomon_sparse_key(const gnomon_metric_row *metric, const gnomon_search_kernels *kernels,
                         const gnomon_sets *a, int64_t i, const gnomon_sets *b, int64_t j);
/* Whether row i holds NaN or infinity (NONFINITE) or a magnitude above 2^500 (UNSUPPORTED); where.
 */
gnomon_status gnomon_row_fault(const gnomon_matrix *m, int64_t i, int64_t *col);
/* Refuses the first row of m, an argument of this name, that has such a fault. Row 0 of m is the
 * argument's row 'first'. Errors: NONFINITE, UNSUPPORTED, MEMORY. */
gnomon_status gnomon_check_rows(gnomon_context *ctx, const gnomon_matrix *m, const char *name,
                                int64_t first);

#endif
