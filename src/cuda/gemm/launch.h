/* cuda/gemm/launch.h: the parts of a product (gemm/gemm.cu) and what they hand each other. */
#ifndef GNOMON_CUDA_GEMM_LAUNCH_H
#define GNOMON_CUDA_GEMM_LAUNCH_H

#include "cuda/gemm/gemm.h"

enum {
    GCU_GEMM_CHUNK = GCU_GEMM_PACKED_LINE, /* of k, summed in the tensor cores */
    GCU_GEMM_RUN_ROWS = 32,                /* a run of rows has so many, or some times as many */
    GCU_GEMM_SQUARES_EACH = 16,            /* sums of squares of an item */
    GCU_GEMM_MARK_ROWS = 16,
    GCU_GEMM_MARK_COLS = 32,
    GCU_GEMM_PRESPLIT_ROWS = 128 /* of a block of A cut beforehand (gemm/presplit.cu) */
};

/* A is fp32 (a product the other way round has been transposed). B is packed: for each chunk
 * of k and each of 'cols' columns (n rounded up to the tile) 64 halves, 128 bytes, whose 16-byte
 * parts are exchanged by the column (part p stands at p ^ (column & 7)), as the matrix instructions
 * read them; zeros beyond k and n. When B is fp32 a second such image holds 2^11 times what the
 * first one leaves, and 'scales' ([chunk][column]) what both are to be multiplied by. */
struct gcu_gemm_launch {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    int64_t a_run, a_run_stride; /* see gemm/gemm.h */
    const void *b;
    gnomon_dtype b_dtype;
    int64_t b_row, b_col;
    float *c;
    double *c64; /* instead of c, when not NULL */
    int64_t c_row, c_col;
    double alpha, beta;

    uint8_t *packed, *packed_low;
    float *scales;
    int64_t cols, chunks;
    bool quads; /* order of k in the halves, see gemm/pack.cu */
    bool tf32;  /* fp32 numbers instead of halves: lines of 32 of k, two images a chunk */

    /* [16 rows][32 columns] of C that hold sums that are not finite: not written, but marked. */
    uint8_t *marks;
    int64_t mark_rows, mark_cols;

    /* Sums of A's squares: of each item (gemm/hopper.cuh) of a pair of blocks, each block and each
     * of its 8 warps that multiply; NULL: not wanted. */
    double *squares;
    int64_t squares_count;

    /* Chunks in rounds of split_chunks, when there is more than one round their sums go to 'parts'
     * ([round][m][n]). */
    int64_t splits, split_chunks;
    float *parts;

    /* A as halves, where it is cut once for all columns (gemm/presplit.cuh), NULL elsewhere: for
     * each of 'presplit_blocks' of 128 rows and each chunk. What they leave of numbers that are too
     * small for their scale lies in 'rests', of which there are presplit_rests; where these do not
     * suffice a block of rows is 'mixed' and multiplied in the other way (gemm/hopper.cuh). Behind
     * the blocks' marks lies whether one is, and how many rests there are to be. */
    uint8_t *presplit, *rests;
    unsigned *mixed;
    int64_t presplit_blocks, presplit_rests;
};

/* Columns of a block in Hopper's own way, for a product of 'whole' columns; 0 when it does not take
 * it. */
int gcu_gemm_hopper_columns(const gcu_gemm_launch &l, int64_t whole, gcu_gemm_form form,
                            const gcu_gpu *gpu);
cudaError_t gcu_gemm_hopper(const gcu_gemm_launch &l, gcu_gemm_form form, int columns,
                            const gcu_gpu *gpu, cudaStream_t stream);

cudaError_t gcu_gemm_hopper_tf32(const gcu_gemm_launch &l, int columns, const gcu_gpu *gpu,
                                 cudaStream_t stream);

/* Whether a product of 'whole' rows and columns, in blocks of so many columns, is one for which A
 * is cut beforehand, as far as its shape and its operands' places tell. */
bool gcu_gemm_is_presplit(const gcu_gemm_launch &l, int64_t whole_m, int64_t whole_n, int columns,
                          const gcu_gpu *gpu);
/* Rests that there is room for, and bytes of what A becomes, and of these. */
int64_t gcu_gemm_presplit_rests(const gcu_gemm_launch &l);
size_t gcu_gemm_presplit_bytes(const gcu_gemm_launch &l);
size_t gcu_gemm_rests_bytes(const gcu_gemm_launch &l);
/* Cuts A, clears the marks, and multiplies the blocks of rows that are not mixed; packs B for the
 * others, if there are any. */
cudaError_t gcu_gemm_presplit(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream);
cudaError_t gcu_gemm_hopper_presplit(const gcu_gemm_launch &l, const gcu_gpu *gpu,
                                     cudaStream_t stream);

/* fp16 as fp32: [m][k], k contiguous. */
cudaError_t gcu_gemm_to_f32(const gcu_gemm_view *a, int64_t m, int64_t k, float *to, int64_t stride,
                            cudaStream_t stream);
cudaError_t gcu_gemm_pack(const gcu_gemm_launch &l, cudaStream_t stream);
/* The same of an operator's entries, made in place (gemm/made.cu). */
cudaError_t gcu_gemm_make(const gcu_gemm_launch &l, const gnomon_simple *a, const gcu_gpu *gpu,
                          cudaStream_t stream);
cudaError_t gcu_gemm_mma(const gcu_gemm_launch &l, gcu_gemm_form form, const gcu_gpu *gpu,
                         cudaStream_t stream);
/* Adds the parts of splits in order. */
cudaError_t gcu_gemm_add(const gcu_gemm_launch &l, cudaStream_t stream);
/* *to = the sum of l.squares. */
cudaError_t gcu_gemm_add_squares(const gcu_gemm_launch &l, double *to, cudaStream_t stream);
/* What is marked, as a plain fp32 product; NaN where there is no B to read. */
cudaError_t gcu_gemm_redo(const gcu_gemm_launch &l, const gcu_gpu *gpu, cudaStream_t stream);

#ifdef __CUDACC__

/* Where element (i, k) of A lies. */
__device__ __forceinline__ int64_t gcu_gemm_place(const gcu_gemm_launch &l, int64_t i, int64_t k)
{
    if (l.a_run && l.a_col == 1) return i * l.a_row + k / l.a_run * l.a_run_stride + k % l.a_run;
    if (l.a_run) return i / l.a_run * l.a_run_stride + i % l.a_run + k * l.a_col;
    return i * l.a_row + k * l.a_col;
}

__device__ __forceinline__ void gcu_gemm_put(const gcu_gemm_launch &l, int64_t i, int64_t j,
                                             float sum)
{
    const int64_t at = i * l.c_row + j * l.c_col;
    const double value = l.alpha * (double)sum;
    if (l.c64)
        l.c64[at] = l.beta == 0.0 ? value : value + l.beta * l.c64[at];
    else
        l.c[at] = (float)(l.beta == 0.0 ? value : value + l.beta * (double)l.c[at]);
}

#endif
#endif
