/* cuda/gemm/skinny.h: products of few columns on Hopper, which take as long as A to be read. */
#ifndef GNOMON_CUDA_GEMM_SKINNY_H
#define GNOMON_CUDA_GEMM_SKINNY_H

#include "cuda/gemm/launch.h"

enum { GCU_GEMM_SKINNY_SQUARES = 8 };

/* ---- gemm/skinny.cu: with an operator of halves, in the form SCALED ---- */

/* Whether a product of 'whole' columns is one for it. */
bool gcu_gemm_is_skinny(const gcu_gemm_launch &l, const gnomon_simple *of, int64_t whole,
                        const gcu_gpu *gpu);
/* Sets l's splits, for so many rows in the whole. */
void gcu_gemm_skinny_split(gcu_gemm_launch *l, int64_t whole_m);
/* C, and into 'squares', when not NULL, the sum of A's squares; l->parts, and l->squares of
 * GCU_GEMM_SKINNY_SQUARES for each block of rows of a split, are its work space. Sums that are not
 * finite are left NaN. */
cudaError_t gcu_gemm_skinny(const gcu_gemm_launch &l, const gnomon_simple *of, double *squares,
                            const gcu_gpu *gpu, cudaStream_t stream);

/* ---- gemm/skinny_three.cu: of two fp32 matrices, in the form THREE, k being small ---- */

/* Whether a product of so many rows and columns in the whole is one for it; it needs no work
 * space. */
bool gcu_gemm_is_skinny_three(const gcu_gemm_launch &l, int64_t whole_m, int64_t whole_n,
                              const gcu_gpu *gpu);
cudaError_t gcu_gemm_skinny_three(const gcu_gemm_launch &l, const gcu_gpu *gpu,
                                  cudaStream_t stream);

#endif
