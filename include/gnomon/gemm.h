/* gnomon/gemm.h: matrix products in mixed precision, and products with a random operator.
 *
 *     gnomon_gemm:          C = alpha * A B + beta * C    A: m x k, B: k x n, C: m x n
 *     gnomon_gemm_operator: the same with the operator S or its transpose as one factor
 *
 * The smallest complete program:
 *
 *     #include <gnomon/gemm.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         float left[2 * 2] = {1, 2, 3, 4}, right[2 * 2] = {0, 1, 1, 0}, product[2 * 2];
 *         const gnomon_matrix a = gnomon_matrix_rowmajor(left, GNOMON_F32, 2, 2);
 *         const gnomon_matrix b = gnomon_matrix_rowmajor(right, GNOMON_F32, 2, 2);
 *         const gnomon_matrix c = gnomon_matrix_rowmajor(product, GNOMON_F32, 2, 2);
 *         gnomon_context *ctx;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_gemm(ctx, &a, &b, &c, NULL);
 *         printf("%g %g %g %g\n", product[0], product[1], product[2], product[3]); // 2 1 4 3
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Transposes and layouts are expressed by views: exchange rows with cols and row_stride with
 * col_stride.
 *
 * Elements of A and B are F32 or F16, in any combination; those of C are F32 or F64. An fp32 number
 * is, except for its last bits, the sum of two fp16 numbers; so on fp16 matrix units fp32 x fp16
 * needs two products, fp32 x fp32 three and fp16 x fp16 one, with single-precision accuracy (Ootomo
 * & Yokota 2023). docs/reference/gemm.md has the figures.
 *
 * Error bound, entrywise: |C - exact| <= |alpha| * c * u * |A||B| + u * |C|, u = 2^-24 (the last
 * term is the rounding to an F32 C).
 *  - CPU: c = min(k, 64), for every form but BF16. Products and sums are fp32 fused multiply-adds
 * in chains of 64 (32 for k <= 128), the chains are added in fp64, where alpha and beta are applied
 * too. So the error does not grow with k.
 *  - CPU, BF16 at the level amx, k >= 32: c = 68, and k 2^-96 times the largest of A's row times
 * the largest of B's column. Matrix units add the products of 256 steps in fp32, these sums are
 * added in fp64.
 *  - GPU: c = 20 + k / 64 at most (FP16: for values inside its range; TF32: 20 + k / 32). Tensor
 *    cores sum 64 products (TF32: 32), exact except for truncation in the accumulator; these sums
 *    are added in fp32, rounded to nearest. If all terms of a sum have the same sign, truncation is
 *    biased: about 3 u of the sum (TF32: 2 u), whatever its length.
 * Measured errors are no larger than SGEMM's; on a GPU with the exception of sums of one sign,
 * where SGEMM's are smaller until k is about 2^19: docs/reference/gemm.md. A chain that overflows
 * fp32 gives infinity (or NaN), and products below 2^-126 lose bits, as in SGEMM.
 *
 * NaN and infinity propagate as in SGEMM: a row of A (a column of B) that contains one makes its
 * row (column) of C NaN or infinite. With beta 0, C is not read; with alpha 0 or k = 0, A and B are
 * not read and C = beta * C.
 *
 * Determinism: on the CPU the bits of C do not depend on threads, memory limit, layout or, in all
 * forms but BF16, instruction set (BF16 has bits of its own where the level is amx), and those of
 * an entry do not depend on the other rows of A and columns of B. On a GPU they depend only on
 * sizes, types and strides. Devices differ within the bound. */
#ifndef GNOMON_GEMM_H
#define GNOMON_GEMM_H

#include <gnomon/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The representation of an fp32 operand on a GPU's tensor cores, or on a CPU's matrix units; the
 * numbers never change. The number of products follows from the operands' types. On the CPU all
 * forms but BF16 are the same fp32 arithmetic over fp32's whole range. */
typedef enum gnomon_gemm_form {
    GNOMON_GEMM_AUTO = 0, /* the fastest form of the device that meets the error bound for all fp32
                             values: the one to use */
    GNOMON_GEMM_FP16 = 1, /* as two fp16 numbers, hi + lo / 2^11: values of magnitude above 65504
                             become infinite, those below 2^-14 lose bits; else the bound holds */
    GNOMON_GEMM_TF32 = 2, /* as two tf32 numbers: the whole range, at half of FP16's speed */
    GNOMON_GEMM_SCALED = 3, /* as FP16, after an exact scaling by powers of two, block by block:
                              the whole range */
    GNOMON_GEMM_BF16 = 4    /* on a CPU of the level amx: as three bf16 numbers (an fp16 operand: as
                               two), after an exact scaling by powers of two, for its matrix units;
                               an inner size below 32, other CPUs and GPUs: as AUTO */
} gnomon_gemm_form;

typedef struct gnomon_gemm_options {
    size_t struct_size; /* see gnomon/base.h */
    double alpha, beta; /* finite; defaults 1 and 0 */
    gnomon_gemm_form form;
    void *device_stream; /* a cudaStream_t of the context's GPU to run on; NULL (default): the
                            context's own, which synchronises with the legacy default stream. With a
                            stream and all views in the GPU's memory, the call returns once the work
                            is enqueued, and the views must stay valid until the stream has executed
                            it; else the output is complete on return */
} gnomon_gemm_options;

#define GNOMON_GEMM_OPTIONS_INIT                                      \
    {                                                                 \
        sizeof(gnomon_gemm_options), 1.0, 0.0, GNOMON_GEMM_AUTO, NULL \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_gemm_options_init(gnomon_gemm_options *options, size_t size);

/* C = alpha * A B + beta * C. Any sizes, 0 included; any strides, including 0 and negative ones
 * (elements of an output must not overlap). c must not overlap a or b. Device, threads and memory
 * limit are the context's; on the CPU a call needs at most about 5 MiB per thread (9 MiB with one
 * thread), or 1.5 MiB if the inner size is at most 4096 (BF16 at the level amx: 18 MiB
 * and 5.5 MiB). options may be NULL. Threads: see
 * gnomon_context.
 * Errors:
 *  - ARGUMENT, SHAPE, DTYPE: c is untouched
 *  - MEMORY, CANCELLED, DEVICE: c is undefined */
GNOMON_API gnomon_status gnomon_gemm(gnomon_context *ctx, const gnomon_matrix *a,
                                     const gnomon_matrix *b, const gnomon_matrix *c,
                                     const gnomon_gemm_options *options);

/* The position of the operator S (k x D); the numbers never change. */
typedef enum gnomon_gemm_side {
    GNOMON_GEMM_ST_RIGHT = 0, /* C = alpha * A S^T + beta * C   A: m x D, C: m x k */
    GNOMON_GEMM_S_RIGHT = 1,  /* C = alpha * A S   + beta * C   A: m x k, C: m x D */
    GNOMON_GEMM_S_LEFT = 2,   /* C = alpha * S A   + beta * C   A: D x n, C: k x n */
    GNOMON_GEMM_ST_LEFT = 3   /* C = alpha * S^T A + beta * C   A: k x n, C: D x n */
} gnomon_gemm_side;

/* A product with an operator, which is generated on the fly and never stored. Results, types and
 * error bound are those of gnomon_sketch (S^T at the right, S at the left) and gnomon_adjoint (the
 * others), bit for bit: a may have any type, c is F32 or F64. options.form must be AUTO. NaN and
 * infinity propagate, except possibly where an entry of S is 0.
 * Errors: as gnomon_gemm, and those of gnomon_sketch except NONFINITE. */
GNOMON_API gnomon_status gnomon_gemm_operator(gnomon_context *ctx, const gnomon_operator *s,
                                              gnomon_gemm_side side, const gnomon_matrix *a,
                                              const gnomon_matrix *c,
                                              const gnomon_gemm_options *options);

#ifdef __cplusplus
}
#endif
#endif
