/* hosvd/cube.h: tensors of the work's type without gaps, the last mode's elements next to each
 * other, and how a mode's unfolding lies in one.
 *
 * With L the product of the modes before a mode and R that of those after it, the tensor is L x
 * length x R, and the unfolding has the columns (l, r). It is never made: a strip of columns lies
 * in the tensor as a matrix that BLAS can read, or is copied where its lines would be too short. */
#ifndef GNOMON_HOSVD_CUBE_H
#define GNOMON_HOSVD_CUBE_H

#include <gnomon/hosvd.h>

#include "linalg/tall.h"

typedef struct gnomon_cube {
    void *data;
    bool f64; /* double, else float */
    int modes;
    int64_t size[GNOMON_TENSOR_MODES];
} gnomon_cube;

/* Numbers of a cube whose product of sizes is known to fit. */
int64_t gnomon_cube_count(const gnomon_cube *c);
/* Allocates for the sizes that c holds. */
gnomon_status gnomon_cube_make(gnomon_context *ctx, const char *what, gnomon_cube *c);
void gnomon_cube_drop(gnomon_context *ctx, gnomon_cube *c);

/* How the columns of an unfolding are cut. It depends on the shape alone, and cubes that differ in
 * the mode's length only are cut alike. */
typedef struct gnomon_strips {
    int64_t left, right, columns; /* columns = left * right */
    int64_t width;                /* of a strip, at most */
    int64_t per_left;             /* strips that 'right' is cut into; 0: strips run across it */
    int64_t count;
    bool column_major; /* right is 1: a column's elements are next to each other */
    bool gathered;     /* lines are too short, or too long for BLAS: strips are copied */
} gnomon_strips;

/* width: wished for, a few hundred; for copied strips, those of 'length' rows, less where they
 * would be large. */
gnomon_strips gnomon_strips_cut(const gnomon_cube *c, int mode, int64_t width, int64_t length);

/* A strip of an unfolding as a matrix: rows x cols with rows 'stride' apart or, column_major, cols
 * x rows with columns so far apart. */
typedef struct gnomon_sheet {
    void *data;
    int64_t rows, cols, stride;
    bool column_major;
} gnomon_sheet;

/* The sheet as rows x cols, in single precision. */
gnomon_matrix gnomon_sheet_view(const gnomon_sheet *s);

/* Columns of strip 'number': the first, and how many. */
int64_t gnomon_strip_first(const gnomon_strips *s, int64_t number, int64_t *cols);
/* The strip of c's unfolding: in place, or in scratch (length x width numbers), filled with load.
 */
gnomon_sheet gnomon_strip_open(const gnomon_strips *s, int64_t number, const gnomon_cube *c,
                               int mode, void *scratch, bool load);
/* Copies a strip that was opened in scratch to its place in c. */
void gnomon_strip_store(const gnomon_strips *s, int64_t number, const gnomon_cube *c, int mode,
                        const gnomon_sheet *sheet);
/* Copies columns [col, col + cols) of the unfolding to out, cols x length doubles. */
void gnomon_strip_to_f64(const gnomon_strips *s, const gnomon_cube *c, int mode, int64_t col,
                         int64_t cols, double *out);

#endif
