/* gemm/pack.h: lines of a factor on their way to the kernels, as fp32 numbers. */
#ifndef GNOMON_GEMM_PACK_H
#define GNOMON_GEMM_PACK_H

#include "project/fold.h"

enum { GNOMON_GEMM_TILES = 32 }; /* that are packed at a time, at most */

/* Steps [step, step + steps) of the points of 'tiles' tiles, from 'tile' on: T[steps][GNOMON_LANES]
 * a tile, tiles depth x GNOMON_LANES numbers apart. */
void gnomon_gemm_columns(const gnomon_fold *f, const gnomon_kernels *kernels, int64_t tile,
                         int64_t tiles, int64_t step, int64_t steps, int64_t depth, float *right);

/* The same steps of rows [row, row + rows) of a, whose col_stride is 1, ld numbers apart. */
void gnomon_gemm_lines(const gnomon_matrix *a, const gnomon_kernels *kernels, int64_t row,
                       int64_t rows, int64_t step, int64_t steps, int64_t ld, float *left);

/* out[j][i] = in[i][j] of GNOMON_LANES x GNOMON_LANES; rows of 'in', ld numbers apart, from 'rows'
 * on are not read and count as 0. */
void gnomon_gemm_turn(const gnomon_kernels *kernels, const float *in, int64_t ld, int64_t rows,
                      float *out);

#endif
