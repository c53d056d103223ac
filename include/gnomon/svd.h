/* gnomon/svd.h: randomized singular value decomposition and principal component analysis: the
 * leading singular values and vectors of a dense, sparse or streamed matrix, with a certificate of
 * the error.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/svd.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         double numbers[3 * 2] = {3, 0, 0, 2, 0, 0};
 *         const gnomon_matrix a = gnomon_matrix_rowmajor(numbers, GNOMON_F64, 3, 2);
 *         gnomon_svd_options o = GNOMON_SVD_OPTIONS_INIT;
 *         gnomon_svd svd = {.struct_size = sizeof svd};
 *         gnomon_context *ctx;
 *         o.rank = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_svd_dense(ctx, &a, &o, &svd);
 *         if (status == GNOMON_OK) printf("%.6f\n", svd.s[0]); // 3.000000
 *         gnomon_svd_free(ctx, &svd);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Method: A (m x n, the points) is projected by a random operator, A S^T. The columns of the
 * product nearly span the leading left singular vectors, and power iterations bring them nearer;
 * the rest is a small problem (Halko, Martinsson & Tropp 2011). The operator is one of
 * gnomon/operator.h and is never stored. docs/reference/svd.md has the steps, the guarantees on the
 * errors, and measurements.
 *
 * OpenBLAS is needed at run time: gnomon_svd_missing says whether it was found. A GPU needs cuBLAS
 * and cuSOLVER at run time instead. It takes everything but rows whose number is not known in
 * advance: always with a named device; with "auto" where the matrix already lies in its memory or,
 * in single precision, the gain exceeds the transfer (from 5e10 multiplications and additions on).
 *
 * Determinism: on one machine, with one build of OpenBLAS, the bits depend neither on the number of
 * threads nor on whether rows come from memory or piece by piece: the shape alone determines the
 * blocks, and each block is one call of OpenBLAS on one thread. OpenBLAS chooses its kernels by the
 * processor, so another machine may give other last bits; so may another layout of the same matrix.
 * While such a call runs, OpenBLAS is set to one thread for the whole process. A GPU uses the same
 * operator and gives the same bits on the same model with the same libraries; they differ from the
 * CPU's within the rounding of single precision. */
#ifndef GNOMON_SVD_H
#define GNOMON_SVD_H

#include <gnomon/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL when factorisations can be had, else why not, one line; static storage. The first call, or
 * factorisation, opens libopenblas.so.0, or the library that the environment variable GNOMON_BLAS
 * names, a path or a name for dlopen, whose symbols begin with GNOMON_BLAS_PREFIX and end with
 * GNOMON_BLAS_SUFFIX ("scipy_" and "" in PyPI's scipy-openblas32). It must be OpenBLAS with LAPACK
 * and 32-bit integers. */
GNOMON_API const char *gnomon_svd_missing(void);
/* Which BLAS that is: its version, build and kernels, and the name it was opened by, one line; ""
 * when it is missing. Static storage. */
GNOMON_API const char *gnomon_svd_blas(void);

typedef struct gnomon_svd_options {
    size_t struct_size; /* see gnomon/base.h */
    int64_t rank;       /* how many singular values: 1 ... min(m, n). With a tolerance: at most so
                           many, and 0 (default) stands for min(m, n) */
    double tolerance; /* 0 (default): fixed rank. Else in (0, 1): the smallest rank found for which
                         |A - U S Vt|_F <= tolerance * |A|_F; where it can't be reached, 'rank' of
                         them, less those that are rounding */
    int64_t oversample; /* columns beyond rank, >= 0; default 10; with single_pass rank + 1 is a
                           better choice. They end at min(m, n) */
    int power;       /* power iterations, 0 ... 100; -1 (default): 6, with a tolerance 2. They take
                        2 power + 2 passes; on the CPU with a rank and from 2 on they are shifted,
                        and take one less. With a tolerance on the CPU they go on until the rank
                        has converged; only 0, and tolerances near rounding, go by blocks with so many
                        iterations each (docs/reference/svd.md) */
    int64_t block;   /* with a tolerance: columns to begin with, or, where it goes by blocks, added
                        at a time; 0: 32. On a GPU: how many to begin with, doubled until they are
                        enough; 0: 128 */
    int single_pass; /* 1: read every row once (power, block and tolerance do not apply) */
    gnomon_dtype dtype; /* F32 or F64: the type of the work and of U and Vt; 0: F64 for F64 data and
                           32- and 64-bit integers, else F32 */
    const gnomon_descriptor *descriptor; /* the operator's kind and parameters; its k and d are
                          filled in. NULL: gaussian with this seed; but where iterations do the
                          work, a rank on the CPU with power >= 2 and rank + oversample >= 64: sjlt
                          with 8 nonzeros per column */
    uint64_t seed;        /* of that operator, and of the test vectors of the error */
    int64_t test_vectors; /* fresh Gaussian vectors that the error is measured by: 1 ... 1000;
                       default 10; 0: no certificate */
    int test_power; /* passes of the certificate beyond the first go in pairs: 0 ... 100 pairs;
                        default 1. Each brings the spectral bound nearer to the estimate */
    int measure;    /* 1: also the exact residual, by one more pass (not with single_pass) */
    const gnomon_matrix *u, *vt; /* NULL, or where U and Vt go: views of the work's type with at
                          least rank columns (u) and rows (vt), in host memory, or the GPU's when
                          the work runs there; what is beyond the rank found is left as it is */
    int center; /* 0 (default), or 1: A - 1 mean^T is factored in A's place, the rows less the mean
                   of each column: principal component analysis (see gnomon_svd) */
    int standardize; /* 0 (default), or 1: each column of A - 1 mean^T is also divided by its
                        standard deviation (see gnomon_svd); center is then 1 too. Not with
                        single_pass */
} gnomon_svd_options;

#define GNOMON_SVD_OPTIONS_INIT                                                               \
    {                                                                                         \
        sizeof(gnomon_svd_options), 0, 0.0, 10, -1, 0, 0, (gnomon_dtype)0, NULL, 0, 10, 1, 0, \
            NULL, NULL, 0, 0                                                                  \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_svd_options_init(gnomon_svd_options *options, size_t size);

/* A factorisation A = U diag(S) Vt and what is known of it. u.data, s, vt.data and mean are of the
 * context's allocator, freed by gnomon_svd_free; but u and vt lie in the caller's memory where
 * options.u and options.vt named it.
 *
 * Columns of U and rows of Vt are orthonormal to a few units in the last place of their type, S
 * falls. Signs: in each row of Vt the entry of largest magnitude (the first such) is not negative.
 *
 * The certificate. With r test vectors g, fresh standard normal vectors that the factors do not
 * depend on, E = A - U S Vt is what is left: residual_estimate = sqrt(mean |E g|^2): unbiased for
 * |E|_F^2, its relative standard deviation at most sqrt(2 / r), for any E; residual_bound: |E|_F is
 * below it but with probability 'failure', for any E, since P(sum |E g|^2 <= x r |E|_F^2) <= (x
 * e^(1 - x))^(r c / 2) for x < 1 (Chernoff), where c = |E|_F^2 / |E|_2^2, and the next bound says
 * how small that can be; spectral_estimate = max sqrt(|(E E^T)^q E g| / |(E E^T)^(q - 1) E g|), q =
 * test_power: never above |E|_2 (power method); for q = 0: max |E g|; spectral_bound: |E|_2 is
 * below it but with probability 'failure': Halko, Martinsson & Tropp 2011, Lemma 4.1
 * (equation 4.3), applied to (E E^T)^q E: a factor of max |(E E^T)^q E g|^(1 / (2 q + 1)). Neither
 * bound is above |A|_F, but with single_pass, whose factors are no projection of A: with power > 1
 * or a tolerance on the CPU both are at most sqrt(|A|_F^2 - sum s_i^2), with an allowance for
 * rounding, whatever the test vectors say. The products are those of the factors as they are
 * returned, so the certificate does not rest on their being orthonormal; no squared norms are
 * subtracted, so it holds far below the square root of the unit roundoff. It is exact but for
 * rounding, whose part is at most about sqrt(n) * u * |A|, u = 2^-24 or 2^-53.
 *
 * Centred, with options.center, every A here is A - 1 mean^T: norm, residuals, bounds, tolerance.
 * Rows of Vt are the principal components, U diag(S) the scores, s_i^2 / (rows - 1) the variance
 * along component i, and norm^2 / (rows - 1) the sum of all variances: scikit-learn's PCA. No
 * centred copy is made.
 * From dense rows the mean is subtracted in fp64, piece by piece, before they are rounded to the
 * work's type, so that a mean of 10^6 beside a spread of 1 costs no digits. Sparse rows stay
 * sparse: the mean's part is subtracted from each product, in fp64 sums; the bounds, and a
 * tolerance, allow for the rounding of these, (c + 4) 2^-53 (|A|_F + |1 mean^T|_F) per unit of the
 * other factor, with c nonzeros in a row or column. The mean is that of the numbers as they are
 * stored, summed in pairs of fp64 numbers (Ogita, Rump & Oishi 2005): within one unit in the last
 * place unless |mean| is below 2^-50 of the mean magnitude. It takes one more pass; with
 * single_pass none: the mean of the first rows is subtracted, and at the end the difference to the
 * mean of all rows is subtracted from the sketches (squares by Chan, Golub & LeVeque 1983);
 * residual_bound allows for the rounding of that. A GPU subtracts the same mean; it leaves to the
 * CPU streams that are read once, and sparse rows in single precision where |A|_F + |1 mean^T|_F is
 * above 8 |A - 1 mean^T|_F.
 *
 * Standardized, with options.standardize, every A here is (A - 1 mean^T) diag(scale)^-1: scale_j is
 * column j's standard deviation with rows - 1 in the denominator, sqrt(sum over i of (a_ij -
 * mean_j)^2 / (rows - 1)), so that s_i^2 / (rows - 1) are the leading eigenvalues of the
 * correlation matrix and norm^2 / (rows - 1) is the number of columns whose numbers are not all
 * equal. A column of equal numbers has scale 1 and is 0 in what is factored; so is all of a single
 * row. The squares are summed by a pass of their own about the mean, in pairs of fp64 numbers,
 * without overflow or underflow on the way (Blue 1978). Dense rows are divided in fp64 before they
 * are rounded to the work's type. Sparse rows stay sparse: their values are divided once (a copy of
 * the values in fp64) and the products are less those of mean_j / scale_j, with the bounds of
 * above, c + 6 in place of c
 * + 4. It is work of the CPU: a named device declines.
 *
 * Explained: explained_ratio[i] is s_i^2 / norm^2, what component i is of |A|_F^2; centred it is
 * the share of the total variance (scikit-learn's PCA.explained_variance_ratio_). scikit-learn's
 * TruncatedSVD, which does not centre A, takes the variance of each score about its mean over the
 * variance of A about its; without center the ratio here is of squares about 0.
 *
 * Converged: the s_i never exceed A's singular values but for rounding. The leading j have
 * converged when sum over i <= j of (|A v_i - s_i u_i|^2 + |A^T u_i - s_i v_i|^2) / 2 is at most
 * the square of GNOMON_SVD_CONVERGED * s_j: then A has j singular values, each counted as often as
 * it occurs, within that of s_1 ... s_j (Kahan; Cao, Xie & Li 1996). It costs no pass, but needs
 * test vectors and test_power. */
#define GNOMON_SVD_CONVERGED 0.01
typedef struct gnomon_svd {
    size_t struct_size;    /* set by the caller; see gnomon/base.h */
    int given_u, given_vt; /* 1: u, vt lie in the caller's memory */
    int64_t rank;
    gnomon_matrix u;  /* m x rank, F32 or F64, row-major */
    double *s;        /* rank, falling */
    gnomon_matrix vt; /* rank x n, as u */

    int64_t rows, cols;
    double norm;              /* |A|_F */
    double residual_estimate; /* NaN without test vectors; absolute, as all of these */
    double residual_bound, spectral_estimate, spectral_bound;
    double failure;  /* the probability by which each bound may fail: 1e-6 */
    double residual; /* |A - U S Vt|_F, measured; with a tolerance always on dense data, and on
                        sparse where it was found as sqrt(|A|^2 - sum s_i^2); NaN when it was not */
    int converged;   /* with a tolerance: whether it was met; else 1 */
    int64_t columns; /* of the projection in all */
    int64_t numerical_rank; /* singular values above max(m, n) * u * S[0] */
    int64_t passes; /* how often all rows were gone through, the certificate's among them; not
                       those that check the data and find the mean */
    int64_t cholesky, householder; /* orthonormalisations done by Cholesky QR, by reflections */
    int power; /* iterations that were done; where a tolerance went by blocks, each */
    int single_pass;
    gnomon_descriptor descriptor; /* of the operator, complete */
    double project_seconds, power_seconds, orthonormalise_seconds, small_seconds,
        certify_seconds; /* where the time went; project: the pass that checks the data too, and on
                            a GPU the way there */
    int64_t converged_values; /* how many leading singular values have converged; -1: not examined
                        (a GPU, single_pass, no test vectors, test_power 0) */
    int centered;             /* options.center */
    double *mean;     /* centered: n numbers, one per column, in A's units; else NULL. Freed by
                         gnomon_svd_free */
    int standardized; /* options.standardize */
    double *scale; /* standardized: n numbers, what each column was divided by; else NULL. Freed, as
                      the next two, by gnomon_svd_free */
    double *explained_variance; /* centered: rank numbers, s_i^2 / (rows - 1), NaN for one row; else
                                   NULL */
    double *explained_ratio;    /* rank numbers, s_i^2 / norm^2; NaN where norm is 0 */
    double total_variance; /* centered: norm^2 / (rows - 1); NaN for one row, or not centered */
} gnomon_svd;

/* Frees what a call allocated into svd, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_svd_free(gnomon_context *ctx, gnomon_svd *svd);

/* Rows that are read piece by piece, as gnomon_reader gives them. */
typedef struct gnomon_svd_rows {
    void *user;
    int64_t rows, cols; /* rows -1: known at the end only */
    gnomon_dtype dtype; /* as stored */
    /* Writes the next rows, at most dst->rows, to dst (F32 or F64, row-major) and tells how many;
     * 0 at the end. */
    gnomon_status (*next)(void *user, const gnomon_matrix *dst, int64_t *got);
    /* Goes back to the first row; NULL: it can't, and single_pass is due. */
    gnomon_status (*rewind)(void *user);
} gnomon_svd_rows;

/* Factors a dense matrix, in host memory or a GPU's, of any element type (F16, BF16 and small
 * integers as F32, 32- and 64-bit integers as F64) and any strides; options must not be NULL, since
 * they hold the rank. The caller owns what *out then points to, for gnomon_svd_free. Memory: about
 * 2 (m + n) * columns numbers beside the result, and a piece of the matrix of 2^24 numbers (64 rows
 * at least) where it can't be used in place, or is centred. A tolerance that is not met is no
 * failure: the best that was found is returned, with converged 0.
 * Errors:
 *  - SHAPE: m or n is 0
 *  - NONFINITE: naming row and column
 *  - UNSUPPORTED: gnomon_svd_missing; more than 2^31 - 1 columns
 *  - DEVICE: a named device, and the GPU can't be had or declines: factors that do not fit its
 *    memory
 *  - INTERNAL: the small problem did not converge
 *  - OVERFLOW: also a standard deviation beyond fp64
 *  - ARGUMENT, DTYPE, MEMORY, CANCELLED
 * *out is then cleared. On a GPU that a matrix of the host's does not fit, its rows go there block
 * by block, as often as it takes, with single_pass once. */
GNOMON_API gnomon_status gnomon_svd_dense(gnomon_context *ctx, const gnomon_matrix *a,
                                          const gnomon_svd_options *options, gnomon_svd *out);
/* The same for sparse rows, without densifying them. measure is UNSUPPORTED. A tolerance is held to
 * be met when sqrt(|A|^2 - sum s_i^2), with a bound of its rounding, says so; near rounding, with
 * power 0 and on a GPU, when residual_bound by at least 40 test vectors does. A GPU takes up to
 * 2^31 nonzeros, which must fit its memory. Errors: also DATA (a broken view). */
GNOMON_API gnomon_status gnomon_svd_csr(gnomon_context *ctx, const gnomon_csr *a,
                                        const gnomon_svd_options *options, gnomon_svd *out);
/* The same for rows that come piece by piece: only a piece (2^24 numbers, but at least 64 rows;
 * where a GPU does the work two of up to 2^25, but at least 128 rows) and the factors are in
 * memory. A GPU takes them when their number is known and they can be had again or are read once;
 * its callbacks come from the calling thread. Errors: also what the callbacks return. */
GNOMON_API gnomon_status gnomon_svd_stream(gnomon_context *ctx, const gnomon_svd_rows *rows,
                                           const gnomon_svd_options *options, gnomon_svd *out);

/* The space of a factorisation: members of gnomon_svd, or of a file that gnomon svd wrote. */
typedef struct gnomon_svd_transform_options {
    size_t struct_size;      /* see gnomon/base.h */
    const gnomon_matrix *vt; /* rank x n, F32 or F64, host memory, any strides; must be given */
    const double *s;         /* rank singular values; whiten needs them */
    const double *mean;      /* n numbers, or NULL: nothing is subtracted */
    const double *scale;     /* n positive numbers, or NULL: nothing is divided by them */
    int64_t rows;            /* of the matrix that was factored; whiten needs it, at least 2 */
    int whiten;  /* 1: scores over s_i / sqrt(rows - 1), so that those of the rows that were
                    factored have variance 1 where they were centred. Every s_i must be above
                    max(rows, n) * u * s[0], u = 2^-24 or 2^-53 by vt's type: what is below
                    is rounding. Default 0 */
    int inverse; /* 1: from scores back to rows. Default 0 */
} gnomon_svd_transform_options;

#define GNOMON_SVD_TRANSFORM_OPTIONS_INIT                                     \
    {                                                                         \
        sizeof(gnomon_svd_transform_options), NULL, NULL, NULL, NULL, 0, 0, 0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_svd_transform_options_init(gnomon_svd_transform_options *options,
                                                           size_t size);

/* y (rows x rank) = (x - 1 mean^T) diag(scale)^-1 V: the scores of new rows x (rows x n, any type
 * and strides) in the space of a factorisation; those of the rows that were factored are U diag(S)
 * but for rounding. With inverse x are scores (rows x rank) and y (rows x n) = x Vt diag(scale) + 1
 * mean^T: the nearest points of that space, where whiten multiplies the scores first. y is F32 or
 * F64, of any strides, and lies apart from what is read; after a failure it holds nothing of use.
 *
 * Differences, quotients and sums are in fp64, a row's over its columns in ascending order, with
 * one rounding to y's type: an error of at most (n + 3) 2^-53 sum_j |x_j - mean_j| / scale_j |v_j|
 * for each score. A row's bits depend on neither the rows beside it, nor threads, nor the
 * instruction set. It needs no OpenBLAS and is work of the CPU, of one context; about 400 KiB a
 * thread. Errors:
 *  - SHAPE: x's columns, or y's shape, do not fit vt
 *  - NONFINITE: x (row and column are told) or vt
 *  - OVERFLOW: a row becomes what y's type does not hold
 *  - ARGUMENT: also a mean or scale that is not finite or positive; whiten by a singular value that
 *    is rounding
 *  - DTYPE, MEMORY, CANCELLED */
GNOMON_API gnomon_status gnomon_svd_transform(gnomon_context *ctx, const gnomon_matrix *x,
                                              const gnomon_svd_transform_options *options,
                                              const gnomon_matrix *y);
/* The same for sparse rows, without densifying them; not with inverse. Each sum runs over a row's
 * entries as they stand; what the mean takes off all rows is summed in pairs of fp64 numbers. With
 * c entries in a row an error is at most (c + 3) 2^-53 (|x / scale| + |mean / scale|) |v|, so that
 * other bits come of the same rows filled out. Takes 8 n rank bytes, and time in proportion, beside
 * the rows: give many at a time. Errors: also DATA (a broken view). */
GNOMON_API gnomon_status gnomon_svd_transform_csr(gnomon_context *ctx, const gnomon_csr *x,
                                                  const gnomon_svd_transform_options *options,
                                                  const gnomon_matrix *y);

#ifdef __cplusplus
}
#endif
#endif
