/* linalg/orth.h: orthonormal columns.
 *
 * Cholesky QR, twice (Yamamoto, Nakatsukasa, Yanagisawa & Fukaya 2015), the Gram matrices in fp64
 * whatever the columns' type (Yamazaki, Tomov & Dongarra 2015), and each step checked; once for
 * well-conditioned columns of F32, where a second step would gain nothing. Where a Gram
 * matrix is not positive definite, or the second one is not near the identity, the columns go
 * through Householder reflections by blocks of rows instead (TSQR: Demmel, Grigori, Hoemmen &
 * Langou 2012), which takes any columns: dependent ones and zeros as well. */
#ifndef GNOMON_SVD_ORTH_H
#define GNOMON_SVD_ORTH_H

#include "linalg/tall.h"

typedef struct gnomon_orth_count {
    int64_t cholesky, householder; /* how many were done which way */
} gnomon_orth_count;

/* Y = Q in place, Q^T Q = I to a few units in the last place of Y's type, the columns of Q span
 * those of Y; y->rows >= y->cols. r (may be NULL): cols x cols, row-major, upper triangular,
 * Y = Q R. Errors: NONFINITE when Y is not finite, MEMORY, OVERFLOW, INTERNAL. */
gnomon_status gnomon_orthonormalise(gnomon_context *ctx, const gnomon_tall *y, double *r,
                                    gnomon_orth_count *count);

/* The same, and orthogonal to the columns of the count blocks q, which are orthonormal together:
 * Y's part in their span is taken out. Errors: as above. */
gnomon_status gnomon_orthonormalise_against(gnomon_context *ctx, const gnomon_tall *q,
                                            int64_t count, const gnomon_tall *y,
                                            gnomon_orth_count *orth);

/* Only R of Y = Q R, from the Gram matrix, which goes to 'squares' (cols x cols), with Y left as it
 * is. *safe: whether R's diagonal spans less than 1 / span. Y R^-1 is then orthonormal but for
 * about the square of Y's condition times 2^-53. r and errors as above. */
gnomon_status gnomon_triangle(gnomon_context *ctx, const gnomon_tall *y, double span, double *r,
                              double *squares, bool *safe);

/* Only as far as a power iteration needs: one step of Cholesky QR where it is safe, so that no
 * direction is lost against a longer one. *span (may be NULL): how much shorter than
 * the longest the shortest was, 0 when it was not safe. r (may be NULL): cols x cols, row-major,
 * upper triangular, what the columns were divided by when it was safe. */
gnomon_status gnomon_condition(gnomon_context *ctx, const gnomon_tall *y, double *span, double *r,
                               gnomon_orth_count *count);

/* The square of the least singular value of the triangle r, n x n, whose diagonal is positive,
 * divided by the square of its largest entry there; not less than it is, by inverse iterations. */
double gnomon_least_square(int64_t n, const double *r, double *work /* n */);

/* The Householder way by itself. */
gnomon_status gnomon_tsqr(gnomon_context *ctx, const gnomon_tall *y, double *r);

#endif
