/* cuda/gemm/gemm.h: products of a single-precision and a half-precision matrix on tensor cores, at
 * single-precision accuracy (after Ootomo and Yokota 2023).
 *
 *     C = alpha * A B + beta * C,        A m x k, B k x n, C m x n fp32
 *
 * A and B are fp32 or fp16, each. All are views in the device's memory with any strides, of either
 * sign; C overlaps neither A nor B. Of two fp16 matrices the smaller one is converted to fp32.
 *
 * What the forms make of an fp32 matrix, and what is lost of an entry x:
 *   SCALED  two fp16 numbers, after an exact power of two taken from the largest of the 64 entries
 *           of its row that are summed together; where entries differ so much that these two
 *           numbers don't hold the smaller ones, more of them. Below 2^-20 of x, whatever its
 *           size and its neighbours'; usually 2^-24.
 *   FP16    two fp16 numbers, without a scale: below 2^-22 of x for 2^-14 <= |x| < 65520, and at
 *           most 2^-36 below that; sums with larger entries are left to the plain chain, see below.
 *   TF32    two TF32 numbers: 2^-22 of x from 2^-103 on, at about half of the others' speed; with
 *           strides that Hopper's own way does not take, and for two fp32 matrices, a fifth.
 *   THREE   for two fp32 matrices: both as SCALED, and three products. Of the one that is packed
 * (the smaller one) below 2^-22 of x for entries above 2^-29 of the largest of the 64 that are
 *           summed together, at most 2^-50 of that one otherwise. SCALED and FP16 mean THREE for
 * two fp32 matrices, and TF32 packs one of them so.
 *
 * Products of fp16 numbers are exact in fp32. Sums are kept by the tensor cores for 64 of k (TF32:
 * 32), which truncates at about 2^-24 of the largest, and then added in fp32, rounded to nearest:
 * so errors are no larger than those of a plain fp32 product, but for sums whose terms all have one
 * sign: what is cut off has it too, and leaves 3 2^-24 of the sum, whatever k. Sums run in an order
 * that depends on m, n, k, the types and strides alone: the same bits on every run and for any
 * number of multiprocessors. Sums that are not finite, because of NaN, infinity or overflow, are
 * computed again as the plain fp32 chain fma(a, b, sum) over k and so end as that does. */
#ifndef GNOMON_CUDA_GEMM_H
#define GNOMON_CUDA_GEMM_H

#include "cuda/runtime/gpu.h"

enum gcu_gemm_form { GCU_GEMM_SCALED, GCU_GEMM_FP16, GCU_GEMM_TF32, GCU_GEMM_THREE };

/* Element (i, j) is data[i * row_stride + j * col_stride]; strides count elements. */
struct gcu_gemm_view {
    const void *data;
    gnomon_dtype dtype; /* F32 or F16 */
    int64_t row_stride, col_stride;
};

struct gcu_gemm {
    gcu_gemm_form form;
    int64_t m, n, k; /* 0 or more; with k = 0 or alpha = 0, A and B are not read */
    gcu_gemm_view a, b;
    float *c;
    double *c64; /* C in fp64 instead, when not NULL: sums of fp32, scaled and added in fp64 */
    int64_t c_row_stride, c_col_stride;
    double alpha, beta; /* with beta 0, C is not read */
    const gcu_gpu *gpu;
    /* Sizes of the product that this is a part of, when not 0: same bits as in the whole. */
    int64_t whole_m, whole_n;
    /* When not 0, A's columns, whose stride is 1, come in runs: element (i, k) is data[i *
     * row_stride + k / a_run * a_run_stride + k % a_run], k and a_run being multiples of 64. Or,
     * where it is not, A's rows, whose stride is 1 then: data[i / a_run * a_run_stride + i % a_run
     * + k * col_stride], m being a multiple of a_run and that of 32. For an fp32 A, on Hopper
     * alone; gcu_gemm_work tells, by 0, where that is not taken. */
    int64_t a_run, a_run_stride;
    /* When not NULL, B is not read but made, as b.dtype: element (k, j) is the raw entry (j, k) of
     * this operator, of a dense kind, rounded to that type; n is at most its rows, and m at least
     * n. Sums that are not finite are then left NaN. */
    const gnomon_simple *b_made;
    /* When not NULL, B, of fp16, is not read: it lies here as gcu_gemm_packing_of says. Sums that
     * are not finite are then left NaN. */
    const void *b_packed;
    /* When not NULL (device memory), gets the sum of the squares of A, where gcu_gemm_sums_squares
     * says so: fp64 sums of fp32 ones of eight. Not finite when A has NaN, infinity or a number
     * above 2^62; what is below 2^-63 is nothing. */
    double *a_squares;
};

/* Bytes of device memory (aligned to 256) that gcu_gemm_run works in; 0 when the call is not one
 * that it takes. */
size_t gcu_gemm_work(const gcu_gemm *g);

/* Whether two products, of which each is a part of the other's whole or that whole itself, are
 * computed in the same way: so that their sums have the same bits wherever their operands lie. */
bool gcu_gemm_alike(const gcu_gemm *g, const gcu_gemm *other);

/* Whether a_squares is taken: on Hopper, of an A that stays A and lies along k, for at most 128
 * columns. */
bool gcu_gemm_sums_squares(const gcu_gemm *g);

/* How B is packed (gemm/packed.cuh): chunks of so many of k, zeros beyond it, 'cols' columns in
 * each, zeros beyond n; in which order of k. False where B is not of fp16, or A not of fp32. */
enum { GCU_GEMM_PACKED_LINE = 64 };
struct gcu_gemm_packing {
    int64_t chunks, cols;
    bool quads;
};
bool gcu_gemm_packing_of(const gcu_gemm *g, gcu_gemm_packing *packing);

/* Enqueues the product on the stream; does not wait. cudaErrorInvalidValue: types that don't go
 * with the form, negative sizes, or less work than gcu_gemm_work asks for. */
cudaError_t gcu_gemm_run(const gcu_gemm *g, void *work, size_t work_bytes, cudaStream_t stream);

#endif
