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
 * takes tensors in memory: always with a named device; with "auto" where the tensor already lies in
 * its memory or, in single precision, the gain exceeds the transfer (from 5e10 multiplications and
 * additions on).
 *
 * Determinism is that of gnomon/svd.h: on the CPU of one machine the bits depend neither on
 * threads, nor on the memory limit, nor on whether the tensor is in memory or comes piece by piece;
 * another machine may give other last bits. The same tensor in another order of memory is projected
 * by other entries, and with 'sequential' or a tolerance the modes may come in another order. */
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
                             product of the other sizes). With a tolerance: at most so many, and
                             NULL (default) sets no limit */
    int rank_count;       /* of ranks */
    double tolerance;     /* 0 (default): fixed ranks. Else in (0, 1): ranks for which |X - X'|_F <=
                             tolerance * |X|_F, each mode being let leave its part of the square */
    int sequential;       /* 1: project each mode of what the modes before it have left (faster, and
                             hardly ever less accurate); 0: project all modes of X */
    int64_t oversample; /* columns of a mode's projection beyond its rank, >= 0; default 10. A mode
                           whose columns would come to its size is not projected */
    int power;          /* power iterations of each mode, 0 ... 100; default 1 */
    int measure;        /* 1: the residual is measured even where the norms tell it */
    gnomon_dtype dtype; /* F32 or F64: of the work and the result; 0: as for gnomon_svd */
    const gnomon_descriptor
        *descriptor; /* the operators' kind and parameters; k, d are filled in and
         mode n (from 0) adds n to the seed. NULL: gaussian with this seed */
    uint64_t seed;
    int64_t memory; /* bytes that tensors on their way may take beside input and result; 0: any */
} gnomon_hosvd_options;

#define GNOMON_HOSVD_OPTIONS_INIT                                                            \
    {                                                                                        \
        sizeof(gnomon_hosvd_options), NULL, 0, 0.0, 0, 10, 1, 0, (gnomon_dtype)0, NULL, 0, 0 \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_hosvd_options_init(gnomon_hosvd_options *options, size_t size);

/* How the residual was found. */
typedef enum gnomon_residual {
    GNOMON_RESIDUAL_NORMS = 1,   /* sqrt(|X|^2 - |G|^2): holds for orthonormal factors, and is taken
                                    where the difference is at least 4096 roundoffs of |X|^2 */
    GNOMON_RESIDUAL_MEASURED = 2 /* |X - G x_1 Q_1 ... x_N Q_N|_F, by one more pass */
} gnomon_residual;

/* A factorisation and what is known of it. Data of core, factors and values is of the context's
 * allocator, freed by gnomon_hosvd_free. All arrays over modes are in the tensor's order.
 *
 * Factors are orthonormal to a few units in the last place of their type. The core is
 * all-orthogonal: its slices along a mode are orthogonal to each other and their lengths,
 * values[n], fall. Signs: in each column of a factor the entry of largest magnitude (the first
 * such) is not negative. */
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
    int order[GNOMON_TENSOR_MODES];       /* in which the modes were taken */
    int64_t columns[GNOMON_TENSOR_MODES]; /* of each mode's projection; 0: not projected */
    int64_t passes;                       /* how often all of X was gone through */
    int64_t cholesky, householder; /* orthonormalisations done by Cholesky QR, by reflections */
    int power, sequential;
    gnomon_descriptor
        descriptor; /* of the operators, without k, d and the modes' part of the seed */
    double look_seconds, project_seconds, power_seconds, orthonormalise_seconds, shrink_seconds,
        small_seconds, measure_seconds; /* look: NaN and infinity; shrink: products with factors */
} gnomon_hosvd;

/* Frees what a call allocated into hosvd, by the same context, and clears it; NULL is allowed. */
GNOMON_API void gnomon_hosvd_free(gnomon_context *ctx, gnomon_hosvd *hosvd);

/* Factors a dense tensor, in host memory or a GPU's, of any element type (types as for
 * gnomon_svd_dense); options must not be NULL. The result is in host memory. X is used where it
 * lies when it has the work's type and no gaps, the modes in any order; else pieces of 2^23 numbers
 * (at least one index of the outermost mode) are copied. Memory beside that: the tensor shrunk by
 * its first mode, in the work's type, and twice the next ones. A tolerance that is not met is no
 * failure: the best that was found is returned, with converged 0.
 * Errors:
 *  - SHAPE: a mode of size 0
 *  - NONFINITE: naming the element
 *  - UNSUPPORTED: gnomon_svd_missing; a mode longer than 2^31 - 1
 *  - DEVICE: a named device, and the GPU can't be had or declines: one mode, strides that no matrix
 *    has, unfoldings of more than 2^31 - 4096 columns, small problems of more than 8192, a tensor
 *    that does not fit its memory
 *  - ARGUMENT, DTYPE, OVERFLOW, MEMORY, CANCELLED, INTERNAL
 * *out is then cleared. */
GNOMON_API gnomon_status gnomon_hosvd_dense(gnomon_context *ctx, const gnomon_tensor *x,
                                            const gnomon_hosvd_options *options, gnomon_hosvd *out);
/* The same for a tensor that comes piece by piece: x's data is not read, its strides tell the
 * order; a row is all that has one index in the mode of the largest stride, in the order of falling
 * strides. rows->rewind must be there. On the CPU. Only a piece (2^23 numbers, at least a row) and
 * the shrunk tensor are in memory. Errors: also what the callbacks return. */
GNOMON_API gnomon_status gnomon_hosvd_stream(gnomon_context *ctx, const gnomon_tensor *x,
                                             const gnomon_svd_rows *rows,
                                             const gnomon_hosvd_options *options,
                                             gnomon_hosvd *out);

#ifdef __cplusplus
}
#endif
#endif
