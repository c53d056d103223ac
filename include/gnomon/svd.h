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
 * Method: A (m x n, the points) is projected by a random operator, A S^T. The range of the product
 * approximates the span of the leading left singular vectors, power iterations improve it, and the
 * factors follow from a small problem (Halko, Martinsson & Tropp 2011). The operator is one of
 * gnomon/operator.h and is never stored. docs/reference/svd.md has the algorithm, the error bounds,
 * and measurements.
 *
 * OpenBLAS is needed at run time: gnomon_svd_missing says whether it was found. A GPU needs cuBLAS
 * and cuSOLVER at run time instead. It supports everything except rows whose number is unknown in
 * advance. It is used with a named device; with "auto" if the matrix is already in its memory or,
 * in single precision, if the gain exceeds the transfer (from 5e10 multiplications and additions
 * on).
 *
 * Determinism: on one machine, with one build of OpenBLAS, the bits do not depend on the number of
 * threads, or on whether rows come from memory or piece by piece: the shape alone determines the
 * blocks, and each block is one call of OpenBLAS on one thread. OpenBLAS chooses its kernels by the
 * processor, so the last bits may differ on another machine, and for another layout of the same
 * matrix. At the level amx F32 data with 128 columns or more is multiplied by bf16 slices
 * (docs/reference/svd.md). During such a call OpenBLAS is set to one
 * thread for the whole process. A GPU uses the same operator and gives the same bits on the same
 * model with the same libraries; they differ from the CPU's within the rounding of single
 * precision. */
#ifndef GNOMON_SVD_H
#define GNOMON_SVD_H

#include <gnomon/operator.h>

struct gnomon_comm; /* gnomon/comm.h */

#ifdef __cplusplus
extern "C" {
#endif

/* NULL if factorisations are available, else the reason, one line; static storage. The first call,
 * or factorisation, opens libopenblas.so.0, or the library that the environment variable
 * GNOMON_BLAS names, a path or a name for dlopen, whose symbols begin with GNOMON_BLAS_PREFIX and
 * end with GNOMON_BLAS_SUFFIX ("scipy_" and "" in PyPI's scipy-openblas32). It must be OpenBLAS
 * with LAPACK and 32-bit integers. */
GNOMON_API const char *gnomon_svd_missing(void);
/* Which BLAS that is: its version, build and kernels, and the name it was opened by, one line; ""
 * when it is missing. Static storage. */
GNOMON_API const char *gnomon_svd_blas(void);

typedef struct gnomon_svd_options {
    size_t struct_size; /* see gnomon/base.h */
    int64_t rank;       /* number of singular values: 1 ... min(m, n). With a tolerance: the largest
                           number; 0 (default) stands for min(m, n) */
    double tolerance; /* 0 (default): fixed rank. Else in (0, 1): the smallest rank found for which
                         |A - U S Vt|_F <= tolerance * |A|_F; if it can't be reached, 'rank' of
                         them, without those that are zero up to rounding */
    int64_t oversample; /* columns beyond rank, >= 0; default 10; with single_pass rank + 1 is a
                           better choice. rank + oversample is limited to min(m, n) */
    int power; /* power iterations, 0 ... 100; -1 (default): 6, with a tolerance 2. They take 2
                  power + 2 passes; on the CPU with a fixed rank and power >= 2 they are shifted,
                  and take one pass less; of sparse rows with rank + oversample >= 64 a Krylov space
                  of about the same accuracy replaces them where it suits the matrix, and takes
                  (rank + oversample) (1 + 0.3 power) / 32 + 5 passes. With a tolerance on the CPU
                  iterations continue until the rank has converged; with power 0, and for tolerances
                  near rounding, the factors are built by blocks with 'power' iterations each
                  (docs/reference/svd.md) */
    int64_t
        block; /* with a tolerance: columns of the first projection, or of each block; 0: 32. On a
                  GPU: columns of the first projection, doubled until they are enough; 0: 128 */
    int single_pass;    /* 1: read every row once (power, block and tolerance do not apply) */
    gnomon_dtype dtype; /* F32 or F64: the type of the computation, U and Vt; 0: F64 for F64 data
                           and 32- and 64-bit integers, else F32 */
    const gnomon_descriptor
        *descriptor;      /* the operator's kind and parameters; its k and d are filled in. NULL:
                             gaussian with this seed; but sjlt with 8 nonzeros per column for a
                             fixed rank on the CPU with power >= 2 and rank + oversample >= 64 */
    uint64_t seed;        /* of that operator, and of the test vectors of the error */
    int64_t test_vectors; /* random Gaussian test vectors for the error bounds: 1 ... 1000; default
                             10; 0: no certificate */
    int test_power; /* power iterations of the certificate, two passes each: 0 ... 100; default 1.
                       Each tightens the spectral bound */
    int measure;    /* 1: also the exact residual, by one more pass (not with single_pass) */
    const gnomon_matrix *u,
        *vt; /* NULL, or the memory for U and Vt: views of the computation's type with at least rank
                columns (u) and rows (vt), in host memory, or the GPU's if the job runs there;
                columns and rows beyond the rank found are not written */
    int center; /* 0 (default), or 1: factor A - 1 mean^T, the rows minus the mean of each column:
                   principal component analysis (see gnomon_svd) */
    int standardize; /* 0 (default), or 1: also divide each column of A - 1 mean^T by its standard
                        deviation (see gnomon_svd); implies center. Not with single_pass */
    void *device_stream; /* a cudaStream_t of the context's GPU: the call reads views in the GPU's
                            memory behind what this stream has to do so far. Its results are
                            complete on return. NULL (default): behind the legacy default stream */
    const struct gnomon_comm *comm; /* the ranks that share a factorisation (gnomon/comm.h):
                                       gnomon_svd_dense, gnomon_svd_stream and gnomon_svd_csr. All
                                       make the same call with the same options, each with its own
                                       rows, one stretch behind the other; there may be none.
                                       gnomon_svd_rank_rows tells which they are, of sparse rows
                                       gnomon_svd_rank_sparse_rows; another number is SHAPE. Rank 0
                                       has the result, with the same bits for any number of ranks
                                       as without, on processors of one kind; the others' is empty.
                                       Rank 0 holds U and what it takes; the others hold their part
                                       of it. The CPU does the work: a matrix in a GPU's memory is
                                       DEVICE. single_pass, and gnomon_svd_csr_stream, are
                                       UNSUPPORTED. NULL (default): this process alone */
} gnomon_svd_options;

#define GNOMON_SVD_OPTIONS_INIT                                                               \
    {                                                                                         \
        sizeof(gnomon_svd_options), 0, 0.0, 10, -1, 0, 0, (gnomon_dtype)0, NULL, 0, 10, 1, 0, \
            NULL, NULL, 0, 0, NULL, NULL                                                      \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_svd_options_init(gnomon_svd_options *options, size_t size);

/* A factorisation A ~ U diag(S) Vt with its error bounds. u.data, s, vt.data and mean come from the
 * context's allocator; gnomon_svd_free frees them. With options.u and options.vt, u and vt are in
 * the caller's memory.
 *
 * Columns of U and rows of Vt are orthonormal to a few units in the last place of their type; S is
 * in decreasing order. Signs: in each row of Vt the (first) entry of largest magnitude is not
 * negative.
 *
 * The certificate measures E = A - U S Vt by r random standard normal vectors g that are
 * independent of the factors:
 *  - residual_estimate = sqrt(mean |E g|^2): its square is an unbiased estimate of |E|_F^2 with a
 *    relative standard deviation of at most sqrt(2 / r), for any E.
 *  - residual_bound: |E|_F is at most this except with probability 'failure', for any E, since
 *    P(sum |E g|^2 <= x r |E|_F^2) <= (x e^(1 - x))^(r c / 2) for x < 1 (Chernoff), where
 *    c = |E|_F^2 / |E|_2^2 has a lower bound by the next two.
 *  - spectral_estimate = max sqrt(|(E E^T)^q E g| / |(E E^T)^(q - 1) E g|), q = test_power: never
 *    above |E|_2 (power method); for q = 0: max |E g|.
 *  - spectral_bound: |E|_2 is at most this except with probability 'failure': a factor times
 *    max |(E E^T)^q E g|^(1 / (2 q + 1)) (Halko, Martinsson & Tropp 2011, Lemma 4.1 (equation 4.3),
 *    applied to (E E^T)^q E).
 * Neither bound exceeds |A|_F, except with single_pass, whose factors are not a projection of A.
 * With power > 1 or a tolerance on the CPU both are at most sqrt(|A|_F^2 - sum s_i^2), plus an
 * allowance for rounding. The products use the factors that are returned, so the certificate does
 * not depend on their orthonormality; squared norms are not subtracted, so it is valid far below
 * the square root of the unit roundoff. Rounding adds at most about sqrt(n) * u * |A|, u = 2^-24 or
 * 2^-53.
 *
 * Centred, with options.center, every A here is A - 1 mean^T: norm, residuals, bounds, tolerance.
 * Rows of Vt are the principal components, U diag(S) the scores, s_i^2 / (rows - 1) the variance
 * along component i, and norm^2 / (rows - 1) the sum of all variances: scikit-learn's PCA. No
 * centred copy is made. From dense rows the mean is subtracted in fp64, piece by piece, before they
 * are rounded to the computation's type, so that a mean of 10^6 with deviations of 1 loses no
 * digits. Sparse rows stay sparse: the mean's part is subtracted from each product, in fp64 sums.
 * Bounds and tolerance include the rounding of these sums, (c + 4) 2^-53 (|A|_F + |1 mean^T|_F) per
 * unit of the other factor, with c nonzeros in a row or column. The mean of the stored numbers is
 * summed in double-double arithmetic (Ogita, Rump & Oishi 2005): its error is within one unit in
 * the last place unless |mean| is below 2^-50 of the mean magnitude. It takes one more pass. With
 * single_pass there is no further pass: the mean of the first rows is subtracted, and at the end
 * the difference to the mean of all rows is subtracted from the sketches (squares by Chan, Golub &
 * LeVeque 1983); residual_bound includes the rounding of that. A GPU subtracts the same mean; the
 * CPU is used for streams that are read once, and for sparse rows in single precision if |A|_F + |1
 * mean^T|_F is above 8 |A - 1 mean^T|_F.
 *
 * Standardized, with options.standardize, every A here is (A - 1 mean^T) diag(scale)^-1: scale_j is
 * column j's standard deviation with rows - 1 in the denominator, sqrt(sum over i of (a_ij -
 * mean_j)^2 / (rows - 1)), so that s_i^2 / (rows - 1) are the leading eigenvalues of the
 * correlation matrix and norm^2 / (rows - 1) is the number of columns whose numbers are not all
 * equal. A constant column has scale 1 and becomes 0, as does a single row. The squares about the
 * mean are summed in a separate pass, in double-double arithmetic, without intermediate overflow or
 * underflow (Blue 1978). Dense rows are divided in fp64 before they are rounded to the
 * computation's type. Sparse rows stay sparse: their values are divided in fp64, piece by piece,
 * and the products of mean_j / scale_j are subtracted, with the bounds above and c + 6 in place of
 * c + 4. This runs on the CPU only: with a named device it is an error.
 *
 * Explained variance: explained_ratio[i] is s_i^2 / norm^2, the share of component i in |A|_F^2;
 * with center it is the share of the total variance (PCA.explained_variance_ratio_ of
 * scikit-learn). Without center it is a ratio of squares about 0, while scikit-learn's TruncatedSVD
 * divides the variance of the scores by the variance of A.
 *
 * Convergence: up to rounding the s_i never exceed A's singular values. The leading j have
 * converged when sum over i <= j of (|A v_i - s_i u_i|^2 + |A^T u_i - s_i v_i|^2) / 2 is at most
 * the square of GNOMON_SVD_CONVERGED * s_j: then A has j singular values, counted with
 * multiplicity, within that distance of s_1 ... s_j (Kahan; Cao, Xie & Li 1996). This needs test
 * vectors and test_power, and hardly ever a further pass. Sums of leading vectors that are far
 * below what is allowed are bounded and not measured; the bounds fail in one of a million runs, and
 * may cost the count a few values at its end (docs/reference/svd.md). */
#define GNOMON_SVD_CONVERGED 0.01
typedef struct gnomon_svd {
    size_t struct_size;    /* set by the caller; see gnomon/base.h */
    int given_u, given_vt; /* 1: u, vt are in the caller's memory */
    int64_t rank;
    gnomon_matrix u;  /* m x rank, F32 or F64, row-major */
    double *s;        /* rank, in decreasing order */
    gnomon_matrix vt; /* rank x n, as u */

    int64_t rows, cols;
    double norm;              /* |A|_F */
    double residual_estimate; /* NaN without test vectors; absolute, like the next ones */
    double residual_bound, spectral_estimate, spectral_bound;
    double failure;  /* the probability that a bound fails: 1e-6 */
    double residual; /* |A - U S Vt|_F, measured; with a tolerance always for dense data, and for
                        sparse data if it was computed as sqrt(|A|^2 - sum s_i^2); else NaN */
    int converged;   /* with a tolerance: whether it was met; else 1 */
    int64_t columns; /* of the projection in total */
    int64_t numerical_rank; /* singular values above max(m, n) * u * S[0] */
    int64_t passes; /* passes over all rows, including the certificate's, without those that check
                       the data and compute the mean */
    int64_t cholesky,
        householder; /* orthonormalisations by Cholesky QR, by Householder reflections */
    int power;       /* iterations done; with blocks, per block */
    int single_pass;
    gnomon_descriptor descriptor; /* of the operator, complete */
    double project_seconds, power_seconds, orthonormalise_seconds, small_seconds,
        certify_seconds; /* elapsed times; project includes the pass that checks the data, and on a
                            GPU the transfer */
    int64_t converged_values; /* number of leading singular values that have converged; -1: unknown
                                 (a GPU, single_pass, no test vectors, test_power 0) */
    int centered;             /* options.center */
    double *mean;     /* centered: n numbers, one per column, in A's units; else NULL. Freed by
                         gnomon_svd_free */
    int standardized; /* options.standardize */
    double *scale;    /* standardized: n numbers, the divisor of each column; else NULL. Freed, like
                         the next two, by gnomon_svd_free */
    double *explained_variance; /* centered: rank numbers, s_i^2 / (rows - 1), NaN for one row; else
                                   NULL */
    double *explained_ratio;    /* rank numbers, s_i^2 / norm^2; NaN where norm is 0 */
    double total_variance; /* centered: norm^2 / (rows - 1); NaN for one row, or not centered */
} gnomon_svd;

/* Frees what a call allocated into svd, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_svd_free(gnomon_context *ctx, gnomon_svd *svd);

/* Rows that are read piece by piece, for example from a gnomon_reader. */
typedef struct gnomon_svd_rows {
    void *user;
    int64_t rows, cols; /* rows -1: known at the end only */
    gnomon_dtype dtype; /* as stored */
    /* Writes the next rows, at most dst->rows, to dst (F32 or F64, row-major) and sets *got to
     * their number, 0 at the end. */
    gnomon_status (*next)(void *user, const gnomon_matrix *dst, int64_t *got);
    /* Goes back to the first row; NULL: not possible, so that single_pass is required. */
    gnomon_status (*rewind)(void *user);
} gnomon_svd_rows;

/* Which rows of a dense matrix (rows x cols) a rank has under options.comm, of factorisations and
 * of least squares: *count rows from *first on, the rank's stretch of that number, counted from 0;
 * *count 0: it has no such, nor any after it. Stretches are whole pieces (as of gnomon_svd_stream),
 * at most 32 in all, and dealt out in turn. Not collective.
 * Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_svd_rank_rows(gnomon_context *ctx, const struct gnomon_comm *comm,
                                              int64_t rows, int64_t cols, int64_t stretch,
                                              int64_t *first, int64_t *count);

/* The same of sparse rows, of any number of columns. A stretch is 256 rows; the matrix's last one
 * may have fewer. Of the matrix's stretches 0, 4, 8, ... are the first of four parts, 1, 5, 9, ...
 * the second, and so on. Parts are dealt out in turn: a fifth rank has none. Not collective.
 * Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_svd_rank_sparse_rows(gnomon_context *ctx,
                                                     const struct gnomon_comm *comm, int64_t rows,
                                                     int64_t stretch, int64_t *first,
                                                     int64_t *count);

/* Sparse rows that are read piece by piece, for example by gnomon_reader_next_csr. */
typedef struct gnomon_svd_sparse_rows {
    void *user;
    int64_t rows, cols; /* rows -1: known at the end only */
    gnomon_dtype dtype; /* of the values of all pieces: F32 or F64 */
    /* Sets *csr to the next rows: at most max_rows of them and, unless a single row has more, at
     * most max_nonzeros entries; 0 rows at the end. The view is read before the next call. */
    gnomon_status (*next)(void *user, int64_t max_rows, int64_t max_nonzeros, gnomon_csr *csr);
    /* Goes back to the first row; must not be NULL. */
    gnomon_status (*rewind)(void *user);
} gnomon_svd_sparse_rows;

/* Factors a dense matrix, in host memory or a GPU's, of any element type (F16, BF16 and small
 * integers as F32, 32- and 64-bit integers as F64) and any strides; options must not be NULL, since
 * they hold the rank. The caller frees *out by gnomon_svd_free. Memory: about 2 (m + n) * columns
 * numbers in addition to the result, and a piece of the matrix of 2^24 numbers (at least 64 rows)
 * if it is centred or can't be used in place. A tolerance that is not met is not an error: the best
 * factorisation found is returned, with converged 0.
 * Errors:
 *  - SHAPE: m or n is 0
 *  - NONFINITE: naming row and column
 *  - UNSUPPORTED: gnomon_svd_missing; more than 2^31 - 1 columns
 *  - DEVICE: with a named device, if the GPU is not available or does not support the job: factors
 *    that do not fit in its memory
 *  - INTERNAL: the small problem did not converge
 *  - OVERFLOW: also a standard deviation beyond fp64
 *  - ARGUMENT, DTYPE, MEMORY, CANCELLED
 * *out is then cleared. A host matrix that does not fit in a GPU's memory is transferred block by
 * block, once per pass. */
GNOMON_API gnomon_status gnomon_svd_dense(gnomon_context *ctx, const gnomon_matrix *a,
                                          const gnomon_svd_options *options, gnomon_svd *out);
/* The same for sparse rows, without a dense copy. measure is UNSUPPORTED. A tolerance counts as met
 * if sqrt(|A|^2 - sum s_i^2), with a bound on its rounding, shows it; near rounding, with power 0
 * and on a GPU, if residual_bound with at least 40 test vectors does. A GPU supports up to 2^31
 * nonzeros, which must fit in its memory.
 * Errors: also DATA (a broken view). */
GNOMON_API gnomon_status gnomon_svd_csr(gnomon_context *ctx, const gnomon_csr *a,
                                        const gnomon_svd_options *options, gnomon_svd *out);
/* The same for rows that come piece by piece: only a piece (2^24 numbers, but at least 64 rows; on
 * a GPU two of up to 2^25, but at least 128 rows) and the factors are in memory. A GPU requires
 * that the number of rows is known, and rewind unless single_pass is set; callbacks come from the
 * calling thread.
 * Errors: also what the callbacks return. */
GNOMON_API gnomon_status gnomon_svd_stream(gnomon_context *ctx, const gnomon_svd_rows *rows,
                                           const gnomon_svd_options *options, gnomon_svd *out);

/* gnomon_svd_csr for sparse rows that come piece by piece, as often as there are passes: a piece
 * (2^18 entries, with a memory limit below 128 MiB fewer) and the factors are in memory, with the
 * working memory of gnomon_svd_csr. The bits are those of gnomon_svd_csr, whatever the pieces are.
 * Checking the rows takes one more pass, center two and standardize three. A product A^T Q has four
 * sums of cols numbers for each column of Q; where these take more than an eighth of the memory
 * limit, it takes four passes in place of one. The CPU does the work, with callbacks from the
 * calling thread.
 * Errors: as gnomon_svd_csr, and what the callbacks return; also
 *  - UNSUPPORTED: single_pass
 *  - SHAPE: a pass gives another number of rows than the first one, or than rows.rows
 *  - ARGUMENT: rewind is NULL; a piece is larger than asked for, or its columns or type are not
 *    those of rows
 *  - DATA: a broken piece */
GNOMON_API gnomon_status gnomon_svd_csr_stream(gnomon_context *ctx,
                                               const gnomon_svd_sparse_rows *rows,
                                               const gnomon_svd_options *options, gnomon_svd *out);

/* About how many bytes gnomon_svd_csr_stream takes at most for rows of so many columns, beside a
 * piece and with the result counted in, with the context's threads and under its memory_limit;
 * gnomon_svd_csr takes no more. options as for these, with a fixed rank; with a tolerance it is
 * what options.rank columns take. dtype is the values' type. A context whose memory_limit was set,
 * not left at 0, has sparse rows factored within it on the CPU: where a Krylov space needs more,
 * power iterations are done instead, and where they do, the calls fail with MEMORY before the rows
 * are projected. Two cases take more: singular values that span more than 2^14 in single precision
 * (a copy of U in double precision) and dependent columns (a copy of U). -1: an argument is not
 * valid, or the number does not fit. */
GNOMON_API int64_t gnomon_svd_memory(gnomon_context *ctx, int64_t rows, int64_t cols,
                                     gnomon_dtype dtype, const gnomon_svd_options *options);

/* A factorisation for gnomon_svd_transform: members of gnomon_svd, or of a file that gnomon svd
 * wrote. */
typedef struct gnomon_svd_transform_options {
    size_t struct_size;      /* see gnomon/base.h */
    const gnomon_matrix *vt; /* rank x n, F32 or F64, host memory, any strides; required */
    const double *s;         /* rank singular values; whiten needs them */
    const double *mean;      /* n numbers, or NULL: no mean is subtracted */
    const double *scale;     /* n positive divisors, or NULL: none */
    int64_t rows;            /* of the matrix that was factored; whiten needs it, at least 2 */
    int whiten; /* 1: divide scores by s_i / sqrt(rows - 1), so that those of the factored rows have
                   variance 1 if they were centred. Every s_i must be above max(rows, n) * u * s[0],
                   u = 2^-24 or 2^-53 by vt's type: smaller ones are zero up to rounding. Default 0
                 */
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
 * and strides); those of the factored rows are U diag(S) up to rounding. With inverse x are scores
 * (rows x rank) and y (rows x n) = x Vt diag(scale) + 1 mean^T, the best approximation of the rows;
 * with whiten the scores are multiplied first. y is F32 or F64, with any strides, and must not
 * overlap the inputs; after a failure it is undefined.
 *
 * All arithmetic is in fp64, over columns in ascending order, with one rounding to y's type: an
 * error of at most (n + 3) 2^-53 sum_j |x_j - mean_j| / scale_j |v_j| for each score. The bits of a
 * row do not depend on other rows, threads or the instruction set. It runs on the CPU without
 * OpenBLAS, with about 400 KiB per thread.
 * Errors:
 *  - SHAPE: x's columns, or y's shape, do not fit vt
 *  - NONFINITE: x (naming row and column) or vt
 *  - OVERFLOW: a result is beyond the range of y's type
 *  - ARGUMENT: also a mean or scale that is not finite or positive; whiten with a singular value
 *    that is zero up to rounding
 *  - DTYPE, MEMORY, CANCELLED */
GNOMON_API gnomon_status gnomon_svd_transform(gnomon_context *ctx, const gnomon_matrix *x,
                                              const gnomon_svd_transform_options *options,
                                              const gnomon_matrix *y);
/* The same for sparse rows, without a dense copy; not with inverse. Each sum runs over a row's
 * entries in stored order; the mean's part, which is the same for all rows, is summed in
 * double-double arithmetic. With c entries in a row the error is at most (c + 3) 2^-53 (|x / scale|
 * + |mean / scale|) |v|; the bits differ from those of the same rows stored densely. Each call
 * needs 8 n rank bytes and proportional time in addition to the rows: pass many rows per call.
 * Errors: also DATA (a broken view). */
GNOMON_API gnomon_status gnomon_svd_transform_csr(gnomon_context *ctx, const gnomon_csr *x,
                                                  const gnomon_svd_transform_options *options,
                                                  const gnomon_matrix *y);

#ifdef __cplusplus
}
#endif
#endif
