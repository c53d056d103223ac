/* gnomon/hosvd.h: Tucker decomposition by randomized HOSVD: a core and one factor per mode.
 *
 * X (I_1 x ... x I_N) is approximated by G x_1 Q_1 ... x_N Q_N. The columns of Q_n (I_n x J_n) are
 * orthonormal, the core G is J_1 x ... x J_N: the higher-order singular value decomposition (De
 * Lathauwer, De Moor & Vandewalle 2000).
 *
 * The smallest complete program:
 *
 *     #include <gnomon/hosvd.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         double numbers[2 * 3 * 4];
 *         const int64_t size[] = {2, 3, 4}, ranks[] = {1, 1, 1};
 *         const gnomon_tensor x = gnomon_tensor_packed(numbers, GNOMON_F64, 3, size, 0);
 *         gnomon_hosvd_options o = GNOMON_HOSVD_OPTIONS_INIT;
 *         gnomon_hosvd hosvd = {.struct_size = sizeof hosvd};
 *         gnomon_context *ctx;
 *         for (int i = 0; i < 2 * 3 * 4; i++)
 *             numbers[i] = 1;
 *         o.ranks = ranks;
 *         o.rank_count = 3;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_hosvd_dense(ctx, &x, &o, &hosvd);
 *         if (status == GNOMON_OK) printf("%.6f\n", hosvd.norm); // 4.898979
 *         gnomon_hosvd_free(ctx, &hosvd);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Method: the unfolding of mode n is the matrix of I_n rows whose columns are the other modes
 * together. Its range is found by a random operator of gnomon/operator.h, which is never stored
 * (Ootomo & Yokota 2023, algorithm 2). With 'sequential' each mode is projected after the modes
 * before it have shrunk the tensor (Vannieuwenhoven, Vandebril & Meerbergen 2012; Minster, Saibaba
 * & Kilmer 2020). docs/reference/hosvd.md has the steps.
 *
 * OpenBLAS is needed at run time (gnomon_svd_missing). A GPU needs cuBLAS and cuSOLVER instead. It
 * supports tensors in memory, and is used with a named device; with "auto" if the tensor is already
 * in its memory or, in single precision, if the gain exceeds the transfer (from 5e10
 * multiplications and additions on).
 *
 * Determinism is that of gnomon/svd.h: on the CPU of one machine the bits do not depend on threads,
 * on the memory limit, or on whether the tensor is in memory or comes piece by piece; the last bits
 * may differ on another machine. In another memory layout the same tensor is projected by other
 * entries of the operator, and with 'sequential' or a tolerance the order of the modes may differ.
 * */
#ifndef GNOMON_HOSVD_H
#define GNOMON_HOSVD_H

#include <gnomon/svd.h>
#include <gnomon/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_hosvd_options {
    size_t struct_size;   /* see gnomon/base.h */
    const int64_t *ranks; /* J_1 ... J_N, as many as the tensor has modes, each 1 ... min(I_n, the
                             product of the other sizes). With a tolerance: the largest ranks; NULL
                             (default): no limit */
    int rank_count;       /* of ranks */
    double tolerance;     /* 0 (default): fixed ranks. Else in (0, 1): ranks for which |X - X'|_F <=
                             tolerance * |X|_F, where each mode may contribute its share of the
                             squared error */
    int sequential; /* 1: project each mode of the tensor already compressed in the modes before it
                       (faster, and rarely less accurate); 0: project all modes of X */
    int64_t oversample; /* columns of a mode's projection beyond its rank, >= 0; default 10. A mode
                           is not projected if that would take as many columns as its size */
    int power;          /* power iterations of each mode, 0 ... 100; default 1 */
    int measure;        /* 1: measure the residual even if it follows from the norms */
    gnomon_dtype
        dtype; /* F32 or F64: the type of the computation and the result; 0: as for gnomon_svd */
    const gnomon_descriptor
        *descriptor; /* the operators' kind and parameters; k, d are filled in and
         mode n (from 0) adds n to the seed. NULL: gaussian with this seed */
    uint64_t seed;
    int64_t
        memory; /* bytes for intermediate tensors, in addition to input and result; 0: no limit */
    const struct gnomon_comm *comm; /* the ranks that share the tensor (gnomon/comm.h). All make the
                                       same call with the same options. x tells the whole tensor on
                                       each, but its data, or rows, are the rank's own: the slices
                                       of the outermost mode that gnomon_hosvd_rank_rows tells, one
                                       stretch behind the other; there may be none, and then x.data
                                       may be NULL. Rank 0 has the result, with the same bits for
                                       any number of ranks as without, on processors of one kind;
                                       the others' is empty. Rank 0 holds the tensor compressed in
                                       its first mode; the others a part of it, or one like it. On
                                       the CPU. NULL (default): this process alone */
} gnomon_hosvd_options;

#define GNOMON_HOSVD_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(gnomon_hosvd_options), NULL, 0, 0.0, 0, 10, 1, 0, (gnomon_dtype)0, NULL, 0, 0, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_hosvd_options_init(gnomon_hosvd_options *options, size_t size);

/* How the residual was computed. */
typedef enum gnomon_residual {
    GNOMON_RESIDUAL_NORMS = 1,   /* sqrt(|X|^2 - |G|^2): for orthonormal factors; used if the
                                    difference is at least 4096 units of roundoff of |X|^2 */
    GNOMON_RESIDUAL_MEASURED = 2 /* |X - G x_1 Q_1 ... x_N Q_N|_F, by one more pass */
} gnomon_residual;

/* A decomposition with its error. Data of core, factors and values comes from the context's
 * allocator; gnomon_hosvd_free frees it. All arrays over modes are in the tensor's order.
 *
 * Factors are orthonormal to a few units in the last place of their type. The core is
 * all-orthogonal: its slices along a mode are orthogonal to each other and their norms, values[n],
 * decrease. Signs: in each column of a factor the (first) entry of largest magnitude is not
 * negative. */
typedef struct gnomon_hosvd {
    size_t struct_size; /* set by the caller; see gnomon/base.h */
    int modes;
    int64_t size[GNOMON_TENSOR_MODES], rank[GNOMON_TENSOR_MODES];
    gnomon_tensor core;                        /* rank[0] x ... F32 or F64, in C order */
    gnomon_matrix factor[GNOMON_TENSOR_MODES]; /* size[n] x rank[n], row-major */
    double *values[GNOMON_TENSOR_MODES];       /* rank[n] */

    double norm;     /* |X|_F */
    double residual; /* |X - G x_1 Q_1 ... x_N Q_N|_F, absolute */
    gnomon_residual residual_by;
    int converged;                        /* with a tolerance: whether it was met; else 1 */
    int order[GNOMON_TENSOR_MODES];       /* in which the modes were processed */
    int64_t columns[GNOMON_TENSOR_MODES]; /* of each mode's projection; 0: not projected */
    int64_t passes;                       /* passes over all of X */
    int64_t cholesky,
        householder; /* orthonormalisations by Cholesky QR, by Householder reflections */
    int power, sequential;
    gnomon_descriptor
        descriptor; /* of the operators, without k, d and the modes' part of the seed */
    double check_seconds, project_seconds, power_seconds, orthonormalise_seconds, shrink_seconds,
        small_seconds, measure_seconds; /* check: NaN and infinity; shrink: products with factors */
} gnomon_hosvd;

/* Frees what a call allocated into hosvd, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_hosvd_free(gnomon_context *ctx, gnomon_hosvd *hosvd);

/* Factors a dense tensor, in host memory or a GPU's, of any element type (types as for
 * gnomon_svd_dense); options must not be NULL. The result is in host memory. X is used in place if
 * it has the computation's type and is contiguous, with the modes in any order; else pieces of 2^23
 * numbers (at least one index of the outermost mode) are copied. Further memory: the tensor
 * compressed in its first mode, in the computation's type (twice, if that is the outermost mode of
 * more than such a piece), and twice the next ones. A tolerance
 * that is not met is not an error: the best decomposition found is returned, with converged 0.
 * Errors:
 *  - SHAPE: a mode of size 0
 *  - NONFINITE: naming the element
 *  - UNSUPPORTED: gnomon_svd_missing; a mode longer than 2^31 - 1
 *  - DEVICE: with a named device, if the GPU is not available or does not support the job: one
 *    mode, strides that are not those of a matrix, unfoldings of more than 2^31 - 4096 columns,
 *    small problems of more than 8192, a tensor that does not fit in its memory
 *  - ARGUMENT, DTYPE, OVERFLOW, MEMORY, CANCELLED, INTERNAL
 * *out is then cleared. */
GNOMON_API gnomon_status gnomon_hosvd_dense(gnomon_context *ctx, const gnomon_tensor *x,
                                            const gnomon_hosvd_options *options, gnomon_hosvd *out);
/* The same for a tensor that comes piece by piece: x's data is not read, its strides give the
 * order; a row is the slice of one index in the mode of the largest stride, in the order of
 * decreasing strides. rows->rewind is required. On the CPU. Only a piece (2^23 numbers, at least a
 * row) and the compressed tensor are in memory.
 * Errors: also what the callbacks return. */
GNOMON_API gnomon_status gnomon_hosvd_stream(gnomon_context *ctx, const gnomon_tensor *x,
                                             const gnomon_svd_rows *rows,
                                             const gnomon_hosvd_options *options,
                                             gnomon_hosvd *out);

/* Which slices of a tensor one of several ranks has, for options.comm: rows and cols are the size
 * of its outermost mode (that of the largest stride, of those with more than one index) and the
 * product of the others. Slices [*first, *first + *count) are the rank's stretch number 'stretch';
 * *count is 0 behind the last. Slices are dealt out in segments of whole pieces, at most 32 of all,
 * so that a tensor of 2^23 numbers is rank 0's. Not collective.
 * Errors: ARGUMENT. */
GNOMON_API gnomon_status gnomon_hosvd_rank_rows(gnomon_context *ctx, const struct gnomon_comm *comm,
                                                int64_t rows, int64_t cols, int64_t stretch,
                                                int64_t *first, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
