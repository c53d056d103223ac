/* hosvd/product.h: products of a tensor with a matrix along one mode. Work is cut into strips of
 * the unfolding (hosvd/cube.h), each one call of BLAS; what is summed over strips is summed in
 * double precision, in their order. */
#ifndef GNOMON_HOSVD_PRODUCT_H
#define GNOMON_HOSVD_PRODUCT_H

#include "hosvd/cube.h"

/* out = in x_mode f, of which the unfolding is f times in's or, transposed, f^T times in's; beta:
 * plus that of out. in and out differ in the mode's length only. */
gnomon_status gnomon_mode_product(gnomon_context *ctx, const gnomon_cube *in, int mode,
                                  const gnomon_tall *f, bool transposed, double beta,
                                  const gnomon_cube *out);
/* *squares += |whole - in x_mode f|^2. */
gnomon_status gnomon_mode_difference(gnomon_context *ctx, const gnomon_cube *whole, int mode,
                                     const gnomon_tall *f, const gnomon_cube *in, double *squares);
/* sum (a's length x b's, row-major) += A B^T, of the two unfoldings. */
gnomon_status gnomon_mode_cross(gnomon_context *ctx, const gnomon_cube *a, const gnomon_cube *b,
                                int mode, double *sum);
/* The same with B = F^T A, which is made a strip at a time and never stored; f: length x cols. */
gnomon_status gnomon_mode_shrunk_cross(gnomon_context *ctx, const gnomon_cube *a, int mode,
                                       const gnomon_tall *f, double *sum);
/* The upper triangle of gram (length x length) += A A^T of the unfolding, in double precision. */
gnomon_status gnomon_mode_gram(gnomon_context *ctx, const gnomon_cube *a, int mode, double *gram);

#endif
