/* gemm/coarse.h: products with a few columns in less than single precision, by bf16 matrix units.
 */
#ifndef GNOMON_GEMM_COARSE_H
#define GNOMON_GEMM_COARSE_H

#include <gnomon/matrix.h>

#include <stdbool.h>

/* Whether the context's processor has such units. */
bool gnomon_gemm_has_coarse(gnomon_context *ctx);

/* c = a b, or c += a b with 'onto'. All are F32, in host memory, their sizes not 0; one of a's
 * strides is 1, b and c are row-major. It is the product, but for sums in fp32, of 32 steps each,
 * of up to 256 of those, and of all these in c, of matrices near a and b: each number of a is off
 * by at most 2^-17 of itself, of b by 2^-8; what is below the normal range counts as 0. What is
 * infinite, or above 2^127, may make the sums that it takes part in infinite or NaN; a NaN may
 * count as 0, so that whoever may have one looks for it before. The bits depend on no thread, limit
 * or cut of the lines and columns. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_gemm_coarse(gnomon_context *ctx, const gnomon_matrix *a,
                                 const gnomon_matrix *b, bool onto, const gnomon_matrix *c,
                                 int64_t memory_limit);

#endif
