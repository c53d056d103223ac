/* lsh/tune/assign.h: the nearest of some centres, again and again: points are made ready once. */
#ifndef GNOMON_LSH_ASSIGN_H
#define GNOMON_LSH_ASSIGN_H

#include "search/state.h"

typedef struct gnomon_assign gnomon_assign;

/* For points on the host, which have been checked and stay where they are, by L2 or COSINE.
 * Errors: MEMORY. */
gnomon_status gnomon_assign_open(gnomon_context *ctx, gnomon_metric metric,
                                 const gnomon_matrix *points, gnomon_assign **out);
void gnomon_assign_close(gnomon_assign *assign);

/* The nearest of count centres, finite rows of fp32, of so many points, as gnomon_neighbors_exact
 * tells it; rows: which, or NULL: the first. nearest: before, a centre that may be near a point, by
 * which it takes less time, or -1; afterwards the nearest. keys: theirs, or NULL. Errors: MEMORY,
 * CANCELLED. */
gnomon_status gnomon_assign_nearest(gnomon_assign *assign, float *centres, int64_t count,
                                    const int64_t *rows, int64_t points, int32_t *nearest,
                                    double *keys);

#endif
