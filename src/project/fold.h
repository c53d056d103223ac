/* project/fold.h: dense points as the lanes of tiles.
 *
 * A block operator I_r (x) A applied to n points is A applied to n * r virtual points: block a
 * of point i is virtual point (a - first) * n + i. Virtual points fill the lanes of tiles in that
 * order, 16 a tile, straight from the caller's memory. A simple operator has one block. */
#ifndef GNOMON_PROJECT_FOLD_H
#define GNOMON_PROJECT_FOLD_H

#include "kernels.h"
#include "project/overflow.h"

typedef struct gnomon_fold {
    char *data; /* element (0, 0) of the view */
    gnomon_dtype dtype;
    int64_t size;                   /* bytes an element */
    int64_t row_stride, col_stride; /* elements */
    int64_t col, cols;              /* the view's columns are coordinates col, col + 1, ... */
    int64_t points;                 /* n */
    int64_t first;                  /* block of virtual point 0 */
    int64_t begin, end;             /* the virtual points that are there; the others read as 0 */
    int64_t block;                  /* coordinates a block; 0: block a begins at floor(a k / r) */
    int64_t k, r;
    /* When not NULL: virtual point v's coordinate 'col' is element offset[v] of data, wherever
     * that is; row_stride, points, first, block, k and r do not apply. */
    const int64_t *offset;
} gnomon_fold;

/* What becomes of the sums on their way out: out = factor * sum + beta * out. */
typedef struct gnomon_finish {
    double alpha, beta;
    double scale;              /* of every row, unless blocks have their own: */
    const gnomon_operator *op; /* then the factor of block a is alpha * that of its rows */
    gnomon_overflow *overflow; /* NULL, or told of points whose finite sums can't be written */
} gnomon_finish;

/* A view as points of one block, its columns the coordinates from col on. */
gnomon_fold gnomon_fold_view(const gnomon_matrix *m, int64_t col);

/* First coordinate of block a. */
int64_t gnomon_fold_block(const gnomon_fold *f, int64_t a);

/* Coordinates [q, q + w) of every block into the tile: T[w][GNOMON_LANES], T double when
 * f64. False when an element is NaN or infinite. */
bool gnomon_fold_pack(const gnomon_fold *f, const gnomon_kernels *kernels, bool f64, int64_t tile,
                      int64_t q, int64_t w, void *out);

/* Writes the tile's sums, coordinates [q, q + w) of every block, to the view. */
void gnomon_fold_store(const gnomon_fold *f, bool f64, int64_t tile, int64_t q, int64_t w,
                       const void *sums, const gnomon_finish *finish);

/* view = beta * view, beta 0 clearing without reading. overflow may be NULL. */
void gnomon_scale_view(gnomon_context *ctx, const gnomon_matrix *m, double beta,
                       gnomon_overflow *overflow);

#endif
