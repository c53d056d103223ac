/* lsh/hasher.h: hash functions as tables and probes need them: for each point and function its
 * value, and the values that a near point would have most likely instead. */
#ifndef GNOMON_LSH_HASHER_H
#define GNOMON_LSH_HASHER_H

#include "operator/operator.h"

#include <gnomon/lsh.h>

#include <stdbool.h>

/* Tags of docs/reference/operators.md, section 2, for samples that are no part of an operator. */
enum {
    GNOMON_TAG_LSH_OFFSET = 129,
    GNOMON_TAG_LSH_CAUCHY = 130,
    GNOMON_TAG_LSH_BIT = 131,
    GNOMON_TAG_LSH_MEMBER = 132,
    GNOMON_TAG_LSH_KEY = 133,
    GNOMON_TAG_LSH_WEIGHT = 134,
    GNOMON_TAG_LSH_WEIGHT_STEP = 135
};

enum {
    GNOMON_LSH_OTHERS = 3, /* other values per function, at most */
    GNOMON_LSH_MOST_CENTRES = 65536
};

struct gnomon_hasher {
    gnomon_lsh_functions f; /* completed; its descriptor is NULL or 'descriptor' */
    gnomon_descriptor descriptor;
    gnomon_simple key;   /* for gnomon_call with f.seed */
    gnomon_operator *op; /* NULL for families without one */
    double factor;       /* of the operator's products */
    int64_t products; /* numbers a point that the values are made of: floats, or bits, or hashes */
    int others;       /* how many other values a function has */
    float *offset;    /* p-stable: b / w */
    int64_t *bit;     /* bit-sampling */
    float *centres;   /* f.centres, copied */
    const int32_t *known; /* not NULL: the lists of the points that are hashed */
};

static inline int64_t gnomon_hasher_centre_bytes(const gnomon_hasher *h)
{
    return h->f.centre_count * h->f.dim * (int64_t)sizeof *h->centres;
}

/* What functions give points: n x count values; when 'others' is wanted, n x count x
 * hasher->others other values with what each costs, nearest first: a cost is the squared distance
 * of the point from where the value changes (p-stable: in widths), or 1 where all are alike. */
typedef struct gnomon_hashes {
    int32_t *values;
    int32_t *others; /* NULL: not wanted, and costs neither */
    float *costs;
} gnomon_hashes;

/* Points of either form, rows of a caller's view. */
typedef struct gnomon_points {
    const gnomon_matrix *dense; /* NULL: sparse */
    const gnomon_csr *sparse;
} gnomon_points;

int64_t gnomon_points_rows(const gnomon_points *p);
int64_t gnomon_points_cols(const gnomon_points *p);

/* Fails unless the view is sound: of sparse points the offsets and indices too. */
gnomon_status gnomon_points_check(gnomon_context *ctx, const gnomon_points *p, const char *name);

/* Fails unless the points are of a form, type and width that the hasher takes, and sound. */
gnomon_status gnomon_hasher_check(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, const char *name);

/* Queries and tuning are the CPU's, which is noted. Fails when the caller named a device. */
gnomon_status gnomon_lsh_check_device(gnomon_context *ctx);

/* Fails with NONFINITE, naming the first NaN or infinity. */
gnomon_status gnomon_hasher_check_finite(gnomon_context *ctx, const gnomon_points *points,
                                         const char *name);

/* How many of n points to hash at a time when each takes so many bytes. */
int64_t gnomon_hasher_batch_points(gnomon_context *ctx, int64_t point_bytes, int64_t n);

/* How many of the n points from 'first' on go into one batch, one at least, so that what the family
 * takes for their members fits in a quarter of the memory limit. */
int64_t gnomon_hasher_batch_part(gnomon_context *ctx, const gnomon_hasher *h,
                                 const gnomon_points *points, int64_t first, int64_t n);
/* Bytes a point of the working memory that gnomon_hasher_batch takes, beside members. */
int64_t gnomon_hasher_point_bytes(const gnomon_hasher *h);

/* Hashes points [first, first + n) that have passed the checks above. Errors: MEMORY,
 * CANCELLED. */
gnomon_status gnomon_hasher_batch(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, int64_t first, int64_t n,
                                  const gnomon_hashes *out);

/* What becomes of the values, n x count, of points [first, first + n). */
typedef void gnomon_values_sink(void *arg, const int32_t *values, int64_t first, int64_t n);

/* Hashes all points, batch by batch, and tells its progress. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_hasher_all(gnomon_context *ctx, const gnomon_hasher *h,
                                const gnomon_points *points, gnomon_values_sink *sink, void *arg);

/* The numbers of the 'count' centres nearest to each of points [first, first + n), the nearest
 * first: n x count, and their distances (NULL: not wanted), of a family with centres; some points
 * at a time, as the memory limit allows. Errors: those of gnomon_neighbors_exact. */
gnomon_status gnomon_hasher_lists(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, int64_t first, int64_t n,
                                  int64_t count, int32_t *lists, double *distances);

/* p(r) for cross-polytope hashes in 'sides' dimensions of two points whose cosine is rho. */
double gnomon_cross_polytope_collision(int64_t sides, double rho);

/* out[i][j] = entry (row + i, col + j) of the matrix of standard Cauchy numbers, rows x cols. */
void gnomon_cauchy_block(const gnomon_simple *key, int64_t row, int64_t rows, int64_t col,
                         int64_t cols, float *out);

#endif
