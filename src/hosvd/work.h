/* hosvd/work.h: the steps between the tensor and the result. Modes are in the inner order
 * (hosvd/slabs.h), numbers those of the scaled tensor, until the result is handed out. */
#ifndef GNOMON_HOSVD_WORK_H
#define GNOMON_HOSVD_WORK_H

#include "hosvd/slabs.h"
#include "linalg/orth.h"

/* One factorisation at work. */
typedef struct gnomon_hosvd_work {
    gnomon_context *ctx;
    gnomon_hosvd_options options; /* defaults filled in */
    gnomon_descriptor
        descriptor; /* of all modes' operators but k, d and the mode's part of the seed */
    bool f64;
    int modes, name[GNOMON_TENSOR_MODES]; /* the caller's number of each mode */
    int64_t size[GNOMON_TENSOR_MODES], rank[GNOMON_TENSOR_MODES]; /* rank: the most allowed */
    int64_t columns[GNOMON_TENSOR_MODES];                         /* of the projection; 0: whole */
    int order[GNOMON_TENSOR_MODES];                               /* in which modes are shrunk */

    gnomon_slabs x;
    gnomon_cube core;    /* the tensor as far as it has shrunk; data NULL: it is still x */
    bool owned;          /* core.data is not the caller's */
    gnomon_slabs shrunk; /* core, when it has data */
    gnomon_tall factor[GNOMON_TENSOR_MODES]; /* data NULL: the identity */

    double norm,
        spent; /* of x; sum of the squares that shrinking has left out, as far as measured */
    gnomon_orth_count orth;
    gnomon_hosvd *out; /* figures go here as they come */
    double clock;
} gnomon_hosvd_work;

/* work.c: the tensor as far as it has shrunk. */
gnomon_slabs *gnomon_hosvd_current(gnomon_hosvd_work *w);
/* Puts cube in the place of what there was. */
gnomon_status gnomon_hosvd_replace(gnomon_hosvd_work *w, const gnomon_cube *cube);
/* Has the tensor as a cube in memory. */
gnomon_status gnomon_hosvd_materialise(gnomon_hosvd_work *w);
/* Fills in columns, for fixed ranks. */
void gnomon_hosvd_columns(gnomon_hosvd_work *w);
/* Fails with NONFINITE, naming an element: rows of the first modes, and columns of the others,
 * whose indices together count so many. */
gnomon_status gnomon_hosvd_name_element(gnomon_hosvd_work *w, int64_t row, int64_t col,
                                        int64_t cols);

/* sketch.c: y[i] (size of modes[i] x count) = the unfolding of modes[i] times the transposed rows
 * [row, row + count) of op[i], for all of the list in one pass. */
gnomon_status gnomon_slabs_sketch(gnomon_slabs *x, const int *modes, int list,
                                  gnomon_operator *const *op, int64_t row, const gnomon_tall *y);

/* passes.c: over all slabs. out = x times the transposed factors of the modes in the list, in their
 * order (empty: a copy). out's sizes are set here; it is allocated, at most 'limit' bytes of it and
 * of what is on the way (0: any). */
gnomon_status gnomon_slabs_shrink(gnomon_slabs *x, const int *modes, int list,
                                  const gnomon_tall *factor, int64_t limit, gnomon_cube *out);
/* *squares = |x - b x_mode q|^2. */
gnomon_status gnomon_slabs_rest(gnomon_slabs *x, int mode, const gnomon_tall *q,
                                const gnomon_cube *b, double *squares);
/* w (size x b's length) = the unfolding of x times that of b, transposed. */
gnomon_status gnomon_slabs_cross(gnomon_slabs *x, int mode, const gnomon_cube *b,
                                 const gnomon_tall *w);
/* The same with f^T x in b's place, which is never stored, for a mode that is not the outermost:
 * slabs hold it as a whole. */
gnomon_status gnomon_slabs_shrunk_cross(gnomon_slabs *x, int mode, const gnomon_tall *f,
                                        const gnomon_tall *w);
/* *squares = |x - core x_0 factor[0] x_1 ...|^2, by one pass. */
gnomon_status gnomon_slabs_residual(gnomon_slabs *x, const gnomon_cube *core,
                                    const gnomon_tall *factor, double *squares);

/* range.c: the mode's operator with so many rows, of the projection of x. */
gnomon_status gnomon_range_operator(gnomon_hosvd_work *w, const gnomon_slabs *x, int mode,
                                    int64_t columns, gnomon_operator **op);
/* One power iteration, A being the mode's unfolding of x: y = A A^T f, where y's columns are
 * orthonormal and were y r, a sketch of A (or the last iteration's), and f is their span in a basis
 * for which the rows of f^T A are of nearly equal lengths, so that no direction is lost against a
 * longer one. r: y's cols x cols. */
gnomon_status gnomon_range_power(gnomon_hosvd_work *w, gnomon_slabs *x, int mode,
                                 const gnomon_tall *y, const double *r);
/* Columns of the mode's unfolding of x. */
int64_t gnomon_range_columns(const gnomon_slabs *x, int mode);

/* fixed.c, tolerance.c: fill factor and shrink the tensor to the core. */
gnomon_status gnomon_hosvd_fixed(gnomon_hosvd_work *w);
gnomon_status gnomon_hosvd_tolerance(gnomon_hosvd_work *w);
/* order.c: in which order modes are shrunk so that it costs least, by columns. */
void gnomon_hosvd_order(gnomon_hosvd_work *w);
/* The same where a mode must lie outermost or innermost when its turn comes, and is innermost then:
 * from the first one on, or the last one and then from the first one on. */
void gnomon_hosvd_order_at_ends(gnomon_hosvd_work *w);

/* device.c: lets the context's device do it if it can, and its gain exceeds the transfer: *done
 * tells whether it did, and has filled in the result. Under CUDA a device that declines is an
 * error. */
gnomon_status gnomon_hosvd_on_device(gnomon_hosvd_work *w, const gnomon_tensor *x, bool streamed,
                                     bool *done);

/* spectrum.c: eigenvalues (falling, squares of the mode's singular values) and vectors (columns of
 * u, length x length) of the mode's unfolding of c or, c NULL, of x slab by slab, for which the
 * mode must not be the outermost. exact: by QR in double precision, not by the Gram matrix, whose
 * roundoff hides what is smaller than 2^-26 of the largest. */
gnomon_status gnomon_mode_spectrum(gnomon_hosvd_work *w, const gnomon_cube *c, int mode, bool exact,
                                   double *values, double *u);
/* truncate.c: cuts the mode to at most 'most' columns, and with budget >= 0 to as few as leave no
 * more than that square. */
gnomon_status gnomon_hosvd_truncate(gnomon_hosvd_work *w, int mode, int64_t most, double budget);
/* Rotates the core to where it is all-orthogonal, fixes the signs, and fills out->values. */
gnomon_status gnomon_hosvd_orthogonalise_core(gnomon_hosvd_work *w);

#endif
