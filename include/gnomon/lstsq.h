/* gnomon/lstsq.h: linear least squares with one or many right-hand sides, preconditioned by a
 * random sketch. Each solution comes with bounds on its error.
 *
 * It finds the x that minimises |A x - b|^2 + damp^2 |x|^2, for A (n x d) with many more rows than
 * columns.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/lstsq.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         double rows[3 * 2] = {1, 0, 0, 1, 1, 1}, right[3] = {1, 2, 3};
 *         const gnomon_matrix a = gnomon_matrix_rowmajor(rows, GNOMON_F64, 3, 2);
 *         const gnomon_matrix b = gnomon_matrix_rowmajor(right, GNOMON_F64, 3, 1);
 *         gnomon_lstsq solved = {.struct_size = sizeof solved};
 *         gnomon_context *ctx;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_lstsq_dense(ctx, &a, &b, NULL, &solved);
 *         const double *x = solved.x.data;
 *         if (status == GNOMON_OK) printf("%.6f %.6f\n", x[0], x[1]); // 1.000000 2.000000
 *         gnomon_lstsq_free(ctx, &solved);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Method: a random operator S with a small multiple of d rows compresses A to the sketch S A. Its
 * singular value decomposition, V and sigma, gives the preconditioner P = V / sigma. A P is so well
 * conditioned that conjugate gradients need the same few iterations whatever A's condition number
 * (Rokhlin & Tygert 2008; Avron, Maymounkov & Toledo 2010; Meng, Saunders & Mahoney 2014). They
 * start from the solution of the sketched problem and are restarted on the residual until the
 * backward error is small, which makes the method as stable as a QR factorisation of A (Epperly,
 * Meier & Nakatsukasa 2024). Columns whose norms differ by 2^11 or more, and some that differ by
 * 2^10, are scaled by powers of two, so that short ones are not lost beside long ones.
 * docs/reference/lstsq.md has the steps and the guarantees.
 *
 * A with fewer rows than columns must be in memory. Then x is the minimum-norm solution, x = A^T y:
 * the sketch is of A^T, and conjugate gradients find the y with (A A^T + damp^2 I) y = b.
 *
 * All arithmetic is fp64, whatever the data's type. OpenBLAS is needed at run time
 * (gnomon_svd_missing). It runs on the CPU.
 *
 * Determinism: as in gnomon/svd.h: on one machine, with one build of OpenBLAS, the bits do not
 * depend on the number of threads, or on whether rows come from memory or piece by piece. */
#ifndef GNOMON_LSTSQ_H
#define GNOMON_LSTSQ_H

#include <gnomon/svd.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_lstsq_options {
    size_t struct_size; /* see gnomon/base.h */
    double damp;        /* >= 0, finite; default 0: no regularisation */
    double tolerance; /* the backward error to reach, relative to |A|_F, in (0, 1); default 1e-15 */
    int64_t
        iterations; /* the largest number of iterations of conjugate gradients, >= 0; default 200 */
    double rcond;   /* in [0, 1): singular values of the sketch (with damp: of the sketch above
                       damp I) up to this times the largest count as 0; default 0 stands for
                       max(d, 16) * 2^-52 */
    int64_t sketch_size; /* rows of the operator, >= min(n, d); 0 (default): chosen from n, d and
                            the number of columns of b; narrow dense A with columns far from
                            dependent are then factored by A^T A. With sketch_size >= max(n, d) A
                            itself is factored, without an operator */
    const gnomon_descriptor *descriptor; /* the operator's kind and parameters; its k and d are
                                            filled in. NULL: sjlt with 8 nonzeros and this seed */
    uint64_t seed;                       /* of the sjlt operator and of the test vectors */
    int64_t test_vectors; /* random Gaussian test vectors for the bounds: 0 (no bounds) ... 100;
                             default 2 */
    gnomon_dtype dtype;   /* of x and the residual, F32 or F64; 0: F64 */
    int keep_residual;    /* 1: *residual of the result is filled */
    const struct gnomon_comm *comm; /* the ranks that share the problem (gnomon/comm.h):
                                       gnomon_lstsq_dense, gnomon_lstsq_stream and
                                       gnomon_lstsq_csr, with at least as many rows as columns. All
                                       make the same call with the same options and the whole b,
                                       each with its own rows of A, one stretch behind the other;
                                       there may be none. gnomon_svd_rank_rows tells which they are,
                                       of sparse rows gnomon_svd_rank_sparse_rows; another number
                                       is SHAPE. Rank 0 has the result, with the same bits for any
                                       number of ranks as without, on processors of one kind; the
                                       others' is empty. NULL (default): this process alone */
} gnomon_lstsq_options;

#define GNOMON_LSTSQ_OPTIONS_INIT                                                              \
    {                                                                                          \
        sizeof(gnomon_lstsq_options), 0.0, 1e-15, 200, 0.0, 0, NULL, 0, 2, (gnomon_dtype)0, 0, \
            NULL                                                                               \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_lstsq_options_init(gnomon_lstsq_options *options, size_t size);

/* The accuracy of one solution x; r = b - A x. With damp > 0 all members except residual refer to
 * the problem with damp I below A and zeros below b. x* is the exact solution of least norm; if
 * singular values were set to 0, that of the problem without them.
 *
 * residual and gradient are computed from the returned x, exact up to rounding; backward_bound
 * follows from them and includes rounding. backward_error is an estimate. fit_bound, suboptimality
 * and forward_bound hold except with the result's probability 'failure', for any A, b and operator.
 * They include the rounding of their inputs, taken as 4 sqrt(t) 2^-53 of the magnitudes for a sum
 * of t terms. Rounding of the data alone changes x by about 2^-53 times sensitivity (also an
 * estimate) times |x|, with any method.
 *
 * With fewer rows than columns and full rank, r is zero up to rounding (or due to damp), and x is
 * the solution if it is A^T y for some y. Then backward_error is the part of r in the range of the
 * nonzero singular values over |A|_F |x| + |b|. backward_bound is the change of A for which r
 * vanishes (Rigal & Gaches 1967; with a rank below n: for which A^T r vanishes, if that is
 * smaller). To both the change for which x = A^T y is added, as the root of the sum of squares: for
 * rank n one change of that size achieves both (Kielbasinski & Schwetlick 1988). gradient is NaN
 * unless the rank is below n, suboptimality is always NaN; 'converged' ignores the second change.
 * With damp these refer to the columns of [A, damp I]. */
typedef struct gnomon_lstsq_target {
    double norm_b, norm_x; /* |b|, |x| */
    double residual;       /* |b - A x| */
    double gradient;       /* |A^T r| / (|A|_F |r|), 0 if r is 0; it is 0 at the solution */
    double backward_bound; /* x solves a problem with A changed by at most this times |A|_F: the
                              lesser of |A^T r| / |r| and |r| / |x| (Stewart 1977) */
    double backward_error; /* the smallest simultaneous change of A and b, relative to their norms
                              (Walden, Karlson & Sun 1995), within a factor of 1.5 and the
                              sketch's distortion (Epperly, Meier & Nakatsukasa 2024); if A's
                              columns were scaled, the change of each is relative to its own norm
                            */
    double fit_bound;      /* |A (x - x*)| <= this; NaN without test vectors, as the next two */
    double suboptimality;  /* |r| <= (1 + this) times the smallest possible; infinite if r is of the
                              size of rounding errors */
    double forward_bound;  /* |x - x*| <= this */
    double sensitivity;    /* the relative change of x over that of A and b: a condition number */
    int converged;         /* whether backward_error, in fp64, is at most the tolerance */
} gnomon_lstsq_target;

typedef struct gnomon_lstsq {
    size_t struct_size;          /* set by the caller; see gnomon/base.h */
    gnomon_matrix x;             /* d x m, one solution per column, row-major */
    gnomon_matrix residual;      /* n x m: b - A x, with keep_residual; else no data */
    gnomon_lstsq_target *target; /* m of them */
    int64_t rows, cols, targets; /* n, d, m */
    double norm;                 /* |A|_F */
    int64_t rank;                /* number of singular values not set to 0 */
    double largest,
        least; /* the largest and the smallest of these, of the sketch (with damp: above damp I) */
    double condition;    /* their ratio, 1 if the rank is 0: an estimate of A's condition number */
    double low, high;    /* the singular values of A P are between these except with probability
                            'failure', so that A's condition number is at most condition * high /
                            low; low is 0 if there is no bound, both are NaN without test vectors */
    double failure;      /* 1e-6 */
    int converged;       /* whether all solutions are */
    int64_t iterations;  /* iterations of conjugate gradients; each reads A once */
    int64_t refinements; /* number of restarts on the recomputed residual */
    int64_t passes;      /* passes over all rows */
    int64_t k;           /* rows of the sketch; n if A itself was factored */
    int sketched;        /* 0: A itself was factored */
    gnomon_descriptor descriptor; /* of the operator, complete, when sketched */
    double check_seconds, sketch_seconds, factor_seconds, iterate_seconds,
        certify_seconds; /* elapsed times */
} gnomon_lstsq;

/* Frees what a call allocated into result, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_lstsq_free(gnomon_context *ctx, gnomon_lstsq *result);

/* Solves for every column of b. a: n x d, b: n x m; both of any element type and any strides.
 * options NULL: the defaults. The caller frees *out by gnomon_lstsq_free. Memory: about 3 k (d + m)
 * + 9 d^2 + 40 d m numbers of 8 bytes (5 k (d + m) for sparse rows). A matrix that can't be used in
 * place takes a piece of 2^24 numbers too. With n < d it is the same for the transpose, and 2 d m
 * more. A tolerance that is not reached is not an error: the best solution found is returned, with
 * converged 0. A and each b are scaled by powers of two, so that any magnitudes are allowed.
 * Errors:
 *  - SHAPE: n, d or m is 0, b does not have n rows
 *  - NONFINITE: naming row and column; or x overflows its type
 *  - UNSUPPORTED: gnomon_svd_missing
 *  - DEVICE: a named device
 *  - INTERNAL: a small factorisation did not converge
 *  - ARGUMENT, DTYPE, OVERFLOW, MEMORY, CANCELLED
 * *out is then cleared. */
GNOMON_API gnomon_status gnomon_lstsq_dense(gnomon_context *ctx, const gnomon_matrix *a,
                                            const gnomon_matrix *b,
                                            const gnomon_lstsq_options *options, gnomon_lstsq *out);
/* The same for sparse rows, without a dense copy; S A is dense. With n < d a transposed copy is
 * made.
 * Errors: also DATA. */
GNOMON_API gnomon_status gnomon_lstsq_csr(gnomon_context *ctx, const gnomon_csr *a,
                                          const gnomon_matrix *b,
                                          const gnomon_lstsq_options *options, gnomon_lstsq *out);
/* The same for rows that come piece by piece and can be read again (rows->rewind): only a piece, b
 * and the sketch are in memory.
 * Errors: also SHAPE (n < d), what the callbacks return. */
GNOMON_API gnomon_status gnomon_lstsq_stream(gnomon_context *ctx, const gnomon_svd_rows *rows,
                                             const gnomon_matrix *b,
                                             const gnomon_lstsq_options *options,
                                             gnomon_lstsq *out);

#ifdef __cplusplus
}
#endif
#endif
