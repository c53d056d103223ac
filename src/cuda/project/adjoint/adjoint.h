/* cuda/project/adjoint/adjoint.h: one level of an adjoint: X = factor * (I_r (x) A)^T Z + beta * X.
 *
 * Folded point v = b * n + i is block 'block' + b of point i. A's row a in block B is row
 * floor(B k / r) + a of Z, provided that it is below floor((B + 1) k / r) and within [row, row +
 * rows); its column j is column B c + j of X, provided that it lies in [col, col + cols). A sum
 * runs over A's rows in ascending order (sjlt: over its bands; srht: hadamard.cu). */
#ifndef GNOMON_CUDA_ADJOINT_H
#define GNOMON_CUDA_ADJOINT_H

#include "cuda/project/entries.cuh"

struct gcu_level {
    gcu_matrix a;
    const void *z;
    gnomon_dtype z_dtype;
    int64_t z_row_stride, z_col_stride, k, r, row, rows;
    void *x;
    gnomon_dtype x_dtype; /* F32 or F64 */
    int64_t x_row_stride, x_col_stride, c, col, cols;
    double factor_most, factor_least, beta;
    int64_t n, block, blocks;
    /* what of A is wanted of any block */
    int64_t a_row, a_row_end, a_col, a_col_end;
};

/* Sets a_row ... a_col_end from the rest. */
void gcu_level_bounds(gcu_level *level);

cudaError_t gcu_adjoint_dense(const gcu_level &level, bool f64, cudaStream_t stream);
cudaError_t gcu_adjoint_sjlt(const gcu_level &level, bool f64, cudaStream_t stream);
/* very-sparse: each chunk's nonzeros are listed by column, in 'work'. */
size_t gcu_adjoint_lists_bytes(const gnomon_simple *a);
cudaError_t gcu_adjoint_lists(const gcu_level &level, const gnomon_simple *a, bool f64, void *work,
                              cudaStream_t stream);

/* The dense kinds in fp32 on Hopper's matrix unit, in tiles of points packed in 'work': at least
 * the bytes of 8, best those of all points and 255. */
size_t gcu_adjoint_tensor_bytes(int64_t rows, int64_t points);
cudaError_t gcu_adjoint_tensor(const gcu_level &level, const gnomon_simple *a, void *work,
                               size_t work_bytes, const gcu_gpu *gpu, cudaStream_t stream);

/* srht in fp32, in one pass over X; 'work' holds the level's rows in their order, and Z's elements
 * of some points: of all of 'points', or fewer. */
size_t gcu_adjoint_hadamard_bytes(int64_t rows, int64_t points);
cudaError_t gcu_adjoint_hadamard(const gcu_level &level, const gnomon_simple *a, void *work,
                                 size_t work_bytes, const gcu_gpu *gpu, cudaStream_t stream);

#ifdef __CUDACC__

/* The block of a folded point; most levels have one, and a division costs more than the rest. */
static __device__ __forceinline__ int64_t gcu_level_block(const gcu_level &l, int64_t v)
{
    return l.blocks == 1 ? (v < l.n ? 0 : 1) : v / l.n;
}

/* Element (folded point, A's row). */
template <typename T>
static __device__ __forceinline__ T gcu_level_z(const gcu_level &l, int64_t v, int64_t a)
{
    const int64_t b = gcu_level_block(l, v), i = v - b * l.n;
    const int64_t h = gcu_mul_div(l.block + b, l.k, l.r) + a;
    if (b >= l.blocks || a < 0 || h >= gcu_mul_div(l.block + b + 1, l.k, l.r) || h < l.row ||
        h >= l.row + l.rows)
        return (T)0;
    return gcu_element<T>(l.z, l.z_dtype, i * l.z_row_stride + (h - l.row) * l.z_col_stride);
}

template <typename T>
static __device__ __forceinline__ void gcu_level_write(const gcu_level &l, int64_t v, int64_t j,
                                                       T sum)
{
    const int64_t b = gcu_level_block(l, v), i = v - b * l.n;
    const int64_t at = (l.block + b) * l.c + j - l.col;
    if (b >= l.blocks || j >= l.c || at < 0 || at >= l.cols) return;
    double factor = l.factor_most;
    if (l.factor_most != l.factor_least) {
        const int64_t first = gcu_mul_div(l.block + b, l.k, l.r);
        const int64_t last = gcu_mul_div(l.block + b + 1, l.k, l.r);
        if (last - first != (l.k + l.r - 1) / l.r) factor = l.factor_least;
    }
    const int64_t to = i * l.x_row_stride + at * l.x_col_stride;
    if (l.x_dtype == GNOMON_F64) {
        double *x = static_cast<double *>(l.x) + to;
        *x = gcu_finished(factor, (double)sum, l.beta, x);
    } else {
        float *x = static_cast<float *>(l.x) + to;
        *x = gcu_finished(factor, (double)sum, l.beta, x);
    }
}

#endif
#endif
