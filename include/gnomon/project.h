/* gnomon/project.h: applies an operator S (k x D) to points.
 *
 *     Sketch:  Y = alpha * X S^T + beta * Y    X: n x D, S: k x D, Y: n x k
 *     Adjoint: X = alpha * Y S   + beta * X    Y: n x k, X: n x D
 *
 * X may be dense, sparse, or come in pieces of columns.
 *
 * The smallest complete program:
 *
 *     #include <gnomon/project.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         static float points[10 * 1000], sketch[10 * 16];
 *         const gnomon_matrix x = gnomon_matrix_rowmajor(points, GNOMON_F32, 10, 1000);
 *         const gnomon_matrix y = gnomon_matrix_rowmajor(sketch, GNOMON_F32, 10, 16);
 *         gnomon_descriptor d = {.struct_size = sizeof d, .kind = GNOMON_SJLT, .k = 16, .d = 1000};
 *         gnomon_context *ctx;
 *         gnomon_operator *op = NULL;
 *         points[0] = 1;
 *         gnomon_status status = gnomon_context_create(NULL, &ctx);
 *         if (status == GNOMON_OK) status = gnomon_operator_create(ctx, &d, &op);
 *         if (status == GNOMON_OK) status = gnomon_sketch(ctx, op, &x, &y, NULL);
 *         float norm = 0;
 *         for (int i = 0; i < 16; i++)
 *             norm += sketch[i] * sketch[i];
 *         printf("%g\n", norm); // 1
 *         gnomon_operator_destroy(op);
 *         gnomon_context_destroy(ctx);
 *         return status;
 *     }
 *
 * Arithmetic is fp64 when either side's elements are F64 (or 32- and 64-bit integers), else fp32;
 * fp16, bf16 and small integers are converted exactly. Sums run along coordinates in an order that
 * the operator alone fixes. Raw values are summed; the row's scale and alpha are applied once at
 * the end. So the bits of Y do not depend on threads, batches, memory limit, layout or instruction
 * set.
 *
 * Error bound, entrywise, of sketch and adjoint (derived in docs/reference/accuracy.md):
 *
 *     |Y - exact| <= g (|alpha| |S||x| + |beta Y|) + t,    g = e / (1 - e),   e = c u + w
 *
 *  - u is 2^-24 for sums in fp32, 2^-53 for fp64.
 *  - w is the rounding of the output: 2^-24 + 2^-50 for F32, 2^-51 for F64.
 *  - c is the largest number of roundings of a term of the raw sum: the row's nonzero terms less 1;
 *    without the "less 1" for gaussian entries; for dense points of many columns about the number
 *    of columns of a chunk plus the number of chunks.
 *  - For kronecker c is the sum over the levels, and |S| is the product of the absolute factors,
 *    |A_l| ... |A_1|. That is larger than the absolute entries: terms that cancel in an entry do
 *    not cancel in the roundings of the cascade.
 *  - t is underflow: twice the output type's smallest positive number and, with gaussian entries,
 *    c |alpha| times the row's scale times that of the sums (for kronecker also times the growth in
 *    the levels above).
 *  - On a GPU gaussian, rademacher and achlioptas in fp32, within block and kronecker too, have
 *    c 30 larger (adjoints: on Hopper). They lose of a coordinate up to 2^-49 of its point's
 *    largest in the same 128 columns, of a gaussian entry up to 2^-36. In place of 2^-49 it is
 *    2^-39 for bf16, adjoints and operators of few rows; for adjoints the largest is that in the
 *    same 128 elements of the vector.
 * 64-bit integers are first rounded to fp64, which the bound does not include.
 * docs/reference/accuracy.md has measured errors. */
#ifndef GNOMON_PROJECT_H
#define GNOMON_PROJECT_H

#include <gnomon/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gnomon_sketch_options {
    size_t struct_size;  /* see gnomon/base.h */
    double alpha, beta;  /* with beta 0 the output is not read (NaN there is harmless) */
    int64_t row, rows;   /* only these rows of S: the output has 'rows' columns; rows 0: all
                            from row on */
    int64_t col;         /* -1 (default): the points hold all D columns. Else they hold columns col,
                            col+1, ... of D, as many as they have: a partial sketch; the sketches of
                            all column ranges add up to that of the whole points */
    int allow_nonfinite; /* 0: NaN or infinity in the input is NONFINITE, naming its row and
                            column, and the output is not touched. So are finite points whose sums
                            or results overflow their type: then the first such row is named, and
                            the output is undefined. (On a GPU overflow is detected if the output is
                            on the host and beta is 0.) */
    void *device_stream; /* a cudaStream_t of the context's GPU to run on; NULL (default): the
                          context's own, which synchronises with the legacy default stream. With a
                          stream, both views in the GPU's memory and allow_nonfinite set, the call
                          returns once the work is enqueued, and the views must stay valid until the
                          stream has executed it; else the output is complete on return */
    gnomon_memory csr_memory; /* gnomon_sketch_csr: where x's three arrays lie; the host's by
                                 default. Those in a GPU's memory are checked there */
} gnomon_sketch_options;

#define GNOMON_SKETCH_OPTIONS_INIT                                              \
    {                                                                           \
        sizeof(gnomon_sketch_options), 1.0, 0.0, 0, 0, -1, 0, NULL, GNOMON_HOST \
    }
/* The same for bindings: see gnomon_context_options_init. */
GNOMON_API gnomon_status gnomon_sketch_options_init(gnomon_sketch_options *options, size_t size);

/* Y = alpha * X S^T + beta * Y for dense points. x: n x w view of any dtype, w = D, or fewer
 * columns with options->col (col + w <= D). y: n x rows, F32 or F64. n may be 0. x and y must not
 * overlap. options may be NULL.
 * Errors:
 *  - NONFINITE: see allow_nonfinite
 *  - SHAPE, DTYPE, ARGUMENT: y is untouched
 *  - MEMORY, CANCELLED, DEVICE: y is undefined */
GNOMON_API gnomon_status gnomon_sketch(gnomon_context *ctx, const gnomon_operator *op,
                                       const gnomon_matrix *x, const gnomon_matrix *y,
                                       const gnomon_sketch_options *options);

/* The same for sparse points, without a dense copy: the work is proportional to the nonzeros of x
 * times the nonzeros of a column of S (plus computing those columns of S). A point's nonzeros are
 * summed by ascending column, repeated entries of a column in stored order; so the bits do not
 * depend on the batch or on the order of a point's columns, and csr and coo give the same. A GPU
 * takes csr of every simple kind, wherever rows and output lie, and gives the CPU's bits; block and
 * kronecker operators and coo are for the CPU. With device "auto" rows and output on the host go to
 * a GPU where that gains more than the transfer costs.
 * Errors:
 *  - DATA: offsets or indices that break the view's rules
 *  - MEMORY: also if one point has more nonzeros than a quarter of memory_limit holds (50 to 130
 *    bytes each)
 *  - DEVICE: a named device that declines, or views in a device's memory that no device takes
 *  - those of gnomon_sketch */
GNOMON_API gnomon_status gnomon_sketch_csr(gnomon_context *ctx, const gnomon_operator *op,
                                           const gnomon_csr *x, const gnomon_matrix *y,
                                           const gnomon_sketch_options *options);
GNOMON_API gnomon_status gnomon_sketch_coo(gnomon_context *ctx, const gnomon_operator *op,
                                           const gnomon_coo *x, const gnomon_matrix *y,
                                           const gnomon_sketch_options *options);

/* X = alpha * Y S + beta * X. y: n x rows (any dtype); x: n x w, F32 or F64: the columns
 * options->col ... col + w - 1. With options->rows only those rows of S are used. */
GNOMON_API gnomon_status gnomon_adjoint(gnomon_context *ctx, const gnomon_operator *op,
                                        const gnomon_matrix *y, const gnomon_matrix *x,
                                        const gnomon_sketch_options *options);

/* A sketch of points whose coordinates come in pieces. The pieces are column ranges, in ascending
 * order and without gaps, of any widths; the result has the same bits as one call of gnomon_sketch
 * on the whole points. In addition to memory_limit it holds n * k sums; at most one granule (or one
 * chunk of the kernels, if shorter) of n points, if pieces do not end at granules; and for
 * kronecker the inputs of one block at every level, about zeta * width * l^2 / 2 numbers per point.
 * The operator and the context must outlive it. On a GPU pieces and output are in host memory too,
 * options.beta must be 0, and all pieces must have one type (DTYPE otherwise). Sums and buffered
 * columns (for srht and kronecker all columns) are in the GPU's memory; with device "auto" a stream
 * whose first piece shows that this memory is too small runs on the CPU. The bits are those of one
 * call on the same device. */
typedef struct gnomon_stream gnomon_stream;

/* dtype F32 or F64: the type of the arithmetic (an F32 stream accepts every type for which
 * gnomon_sketch computes in fp32).
 * Errors: ARGUMENT, OVERFLOW, MEMORY, DEVICE. */
GNOMON_API gnomon_status gnomon_stream_create(gnomon_context *ctx, const gnomon_operator *op,
                                              int64_t n, gnomon_dtype dtype,
                                              const gnomon_sketch_options *options,
                                              gnomon_stream **out);
/* Adds the next columns: piece is n x w. After a failure the stream is unchanged, except for
 * MEMORY, CANCELLED and DEVICE, after which it can only be destroyed. */
GNOMON_API gnomon_status gnomon_stream_push(gnomon_stream *stream, const gnomon_matrix *piece);
/* Writes the sketch to y (n x rows, F32 or F64). SHAPE if fewer than D columns were pushed,
 * NONFINITE if a finite point's sketch overflows. */
GNOMON_API gnomon_status gnomon_stream_finish(gnomon_stream *stream, const gnomon_matrix *y);
GNOMON_API void gnomon_stream_destroy(gnomon_stream *stream);

/* The granule: pieces that end at its multiples need no buffer. It is a chunk of the kernels for
 * simple kinds, a block for block, and a block of the first level for kronecker. 0 for NULL. */
GNOMON_API int64_t gnomon_operator_granule(const gnomon_operator *op);

/* An upper bound in bytes on the working memory of gnomon_sketch on the CPU for n dense points of
 * this element type, in any layout, and an F32 output. It does not apply to sparse points. At most
 * the context's memory_limit; -1, with an error text, if an argument is wrong or memory_limit is
 * below the minimum: one tile of 16 points (16 numbers per column of a chunk and per row of S) and
 * one panel of the operator.
 */
GNOMON_API int64_t gnomon_sketch_memory(gnomon_context *ctx, const gnomon_operator *op, int64_t n,
                                        gnomon_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
