/* project/sparse/nonzeros.h: a batch of sparse points, each point's nonzeros by ascending column,
 * those of one column in the order in which they stood. That is the order of summation, whatever
 * the batch. */
#ifndef GNOMON_PROJECT_NONZEROS_H
#define GNOMON_PROJECT_NONZEROS_H

#include "kernels.h"

typedef struct gnomon_nonzeros {
    int64_t points, count;
    int64_t *start; /* points + 1 */
    int64_t *col;   /* of the operator */
    char *value;    /* float, or double when f64 */
    int64_t *spare_col;
    char *spare_value;
    int64_t point_room, room;
    bool f64;
} gnomon_nonzeros;

/* Where sparse points come from: one of the two is not NULL. Their columns begin at the
 * operator's column col. */
typedef struct gnomon_sparse_points {
    const gnomon_csr *csr;
    const gnomon_coo *coo;
    int64_t col;
    bool sorted; /* as the batches want it */
} gnomon_sparse_points;

/* Bytes a nonzero and a point take. */
enum { GNOMON_NONZERO_BYTES = 32, GNOMON_POINT_BYTES = 8 };

/* Checks offsets and indices (DATA) and finds out whether every point is sorted. */
gnomon_status gnomon_sparse_check(gnomon_context *ctx, gnomon_sparse_points *p);

/* Fails with NONFINITE, naming the first nonzero that is NaN or infinite. */
gnomon_status gnomon_sparse_check_finite(gnomon_context *ctx, const gnomon_sparse_points *p);

/* How many points from 'point' on, at most 'points' of them, have no more than 'room' nonzeros
 * together, and how many those are. 0 points when the first has more: *count is its number then.
 * counts: room for 'points' numbers. */
int64_t gnomon_sparse_batch(const gnomon_sparse_points *p, int64_t point, int64_t points,
                            int64_t room, int64_t *counts, int64_t *count);

gnomon_status gnomon_nonzeros_open(gnomon_context *ctx, gnomon_nonzeros *z, int64_t points,
                                   int64_t room, bool f64);
void gnomon_nonzeros_close(gnomon_context *ctx, gnomon_nonzeros *z);

/* Takes points [point, point + points), 'count' nonzeros, of which counts tells the points' own. */
void gnomon_nonzeros_gather(gnomon_context *ctx, const gnomon_kernels *kernels, gnomon_nonzeros *z,
                            const gnomon_sparse_points *p, int64_t point, int64_t points,
                            const int64_t *counts, int64_t count);

#endif
