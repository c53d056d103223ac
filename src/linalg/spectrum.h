/* linalg/spectrum.h: singular values and vectors of small problems, also by their Gram matrices.
 *
 * The symmetric eigenproblem takes half the time of the singular value decomposition, and what it
 * loses is known: eigenvalues are wrong by a few units of 2^-53 of the largest one (backward
 * stability and Weyl's inequality), so a singular value s is by that times (largest / s)^2 / 2. */
#ifndef GNOMON_LINALG_SPECTRUM_H
#define GNOMON_LINALG_SPECTRUM_H

#include <gnomon/base.h>

#include <stdbool.h>

/* gram (n x n, row-major, its upper triangle) = V diag(s)^2 V^T: s, falling, and gram's row i
 * becomes the vector of s[i]. *told: whether it converged and s[n - 1] > span * s[0]; else s and
 * gram hold nothing. Errors: MEMORY, OVERFLOW. */
gnomon_status gnomon_gram_spectrum(gnomon_context *ctx, int64_t n, double span, double *gram,
                                   double *s, bool *told);

/* a (n x n, row-major) = U diag(s) Vt, s falling. *converged: whether LAPACK's iterations did; else
 * s, u and vt hold nothing. Errors: as above. */
gnomon_status gnomon_square_svd(gnomon_context *ctx, int64_t n, const double *a, double *s,
                                double *u, double *vt, bool *converged);

/* The triangle r (n x n, row-major, zeros below) = U diag(s) Vt, s falling: by R^T R where s[n - 1]
 * > span * s[0], with Vt orthogonal to rounding and the columns of U to that times 1 / span^2; else
 * by R itself. *converged false: neither did. Errors: as above. */
gnomon_status gnomon_triangle_svd(gnomon_context *ctx, int64_t n, const double *r, double span,
                                  double *s, double *u, double *vt, bool *converged);

#endif
