/* cuda/project/family.h: the contract between the plugin's core (plugin.cu, transfers, pieces) and
 * the families of kernels, one a way of applying a simple matrix A (src/operator/operator.h).
 *
 * The core gives a family tasks whose points lie in the device's memory. A family cuts A's columns
 * into segments whose length depends on A alone, sums each segment in a fixed order, and adds the
 * segments in ascending order. So the bits depend neither on the number of points in a task, nor on
 * how the columns are cut into tasks, nor on the GPU's size.
 *
 * Folded points: the block operator I_r (x) A applied to n points is A applied to n * r points;
 * folded point v = b * n + i is block b of point i. A simple operator has one block. */
#ifndef GNOMON_CUDA_FAMILY_H
#define GNOMON_CUDA_FAMILY_H

#include "cuda/runtime/gpu.h"

#include <gnomon/matrix.h>

/* Coordinate q of folded point b * n + i is element
 *     data[i * row_stride + b * block_stride + q * col_stride]
 * where 0 <= q < block_cols and first <= b * block_cols + q < end; elsewhere it reads as 0 and is
 * not touched (padding, and columns before a piece that does not begin at a granule). */
struct gcu_points {
    const void *data;
    gnomon_dtype dtype; /* F32 F16 BF16 I8 U8 I16 U16; the generic family takes all */
    int64_t row_stride, col_stride, block_stride; /* elements, any sign */
    int64_t n, blocks;
    int64_t block_cols; /* coordinates of a block in this task */
    int64_t first, end;
};

/* Where sums go. S-row of A's row a in the task's block b, which is block B = block + b of the
 * operator, is floor(B k / r) + a (r = 1: a), provided that it is below floor((B + 1) k / r); its
 * column in y is that less 'row', provided that it lies in [0, rows). There y = factor * sum + beta
 * * y in fp64 arithmetic, as the CPU does (y is not read when beta is 0); factor is factor_most
 * where the block has ceil(k / r) rows, else factor_least.
 *
 * A task that is a piece of the columns: 'carry' holds the sums of the earlier columns (not read
 * when 'begins'); when 'finishes' is set sums go to y, else to carry. carry belongs to the family,
 * element (a - task row, v) at [(a - task row) * n * blocks + v], fp32 (fp64 in f64 tasks);
 * NULL when the task both begins and finishes. */
struct gcu_out {
    void *y;
    gnomon_dtype dtype; /* F32, or F64 in f64 tasks */
    int64_t row_stride, col_stride;
    int64_t k, r;
    int64_t block; /* the operator's block that the task's block 0 is */
    int64_t row, rows;
    double factor_most, factor_least, beta;
    void *carry;
    bool begins, finishes;
};

/* Sums of A's rows [row, row + rows) over its columns [col, col + x.block_cols). col is a multiple
 * of the family's granule for A. */
struct gcu_task {
    const gnomon_simple *a; /* host memory */
    int64_t row, rows, col;
    gcu_points x;
    gcu_out out;
    bool f64; /* sums in fp64 */
    const gcu_gpu *gpu;
    cudaStream_t stream;
    void *work; /* device memory of work_bytes, at least what least_work asked for */
    size_t work_bytes;
};

struct gcu_family {
    const char *name;
    /* Whether run can do the task (work and stream are not set yet). Says why not. Hangs neither on
     * the number of points or blocks, nor on the range of rows or columns: a task cut in two must
     * go to the same family for the same bits. */
    bool (*supports)(const gcu_task *task, char *why, size_t why_size);
    /* A task's columns may begin and end at multiples of this (and end at A's last column). */
    int64_t (*granule)(const gnomon_simple *a);
    /* Bytes of work with which run is fastest, and the fewest with which it works, which may be the
     * larger: a caller takes that then. */
    size_t (*best_work)(const gcu_task *task);
    size_t (*least_work)(const gcu_task *task);
    /* Enqueues the task on its stream; does not wait. The host struct A may be gone once run
     * returns. */
    cudaError_t (*run)(const gcu_task *task);
};

/* Whether the task's sums and sketch are fp32 and its points of a type that gcu_load takes, all of
 * whose values fp32 holds: what every family but the generic one asks for. Says why not. */
bool gcu_sums_in_fp32(const gcu_task *task, char *why, size_t why_size);

/* The family that does a task, chosen by A, the element type and the GPU alone, so that a batch cut
 * in two takes the same one; NULL with the reason when none does (project/families.cu). */
const gcu_family *gcu_choose(const gcu_task *task, char *why, size_t why_size);

/* X = alpha * Y S + beta * X on views in the device's memory, S being rows [row, row + rows) and
 * columns [col, col + x.cols) of op; y of any dtype, x F32 or F64 (project/adjoint/adjoint.cu). The
 * sums run over S's rows in an order fixed by op alone, so points and columns may be cut anywhere.
 * The calls mean what those of a family mean. */
struct gcu_adjoint_task {
    const gnomon_operator *op; /* host memory */
    gnomon_matrix y, x;
    double alpha, beta;
    int64_t row, rows, col;
    bool f64;
    const gcu_gpu *gpu;
    cudaStream_t stream;
    void *work;
    size_t work_bytes;
};

bool gcu_adjoint_supports(const gcu_adjoint_task *task, char *why, size_t why_size);
size_t gcu_adjoint_best_work(const gcu_adjoint_task *task);
size_t gcu_adjoint_least_work(const gcu_adjoint_task *task);
cudaError_t gcu_adjoint(const gcu_adjoint_task *task);

extern const gcu_family gcu_dense_rows;   /* S in the register operand: many rows, few points */
extern const gcu_family gcu_dense_points; /* X in the register operand: many points, few rows */
extern const gcu_family gcu_very_sparse;
extern const gcu_family gcu_sjlt;
extern const gcu_family gcu_srht;
extern const gcu_family gcu_generic; /* every kind, fp64 too; correct, not fast */

/* ---- for kernels ---- */

#ifdef __CUDACC__

/* Element q of folded point (b, i) as fp32; 0 outside. Not for F64 and 32- and 64-bit integers. */
template <typename T>
__device__ __forceinline__ float gcu_load(const gcu_points &x, int64_t b, int64_t i, int64_t q)
{
    const int64_t at = b * x.block_cols + q;
    if (i >= x.n || b >= x.blocks || q >= x.block_cols || at < x.first || at >= x.end) return 0.0f;
    return (float)static_cast<const T *>(
        x.data)[i * x.row_stride + b * x.block_stride + q * x.col_stride];
}

/* What y becomes by a sum. Each operation is rounded by itself, as on the CPU: joined in pairs they
 * would round otherwise, and which the compiler joins differs from kernel to kernel. */
template <typename T>
__device__ __forceinline__ T gcu_finished(double factor, double sum, double beta, const T *y)
{
    const double value = __dmul_rn(factor, __dadd_rn(sum, 0.0));
    return (T)(beta == 0.0 ? value : __dadd_rn(value, __dmul_rn(beta, (double)*y)));
}

/* Hands the total of this task's columns for A's row a and folded point v = b * n + i over to carry
 * or y; T is float, or double in f64 tasks. 'total' is the sum of this task's segments only when
 * the task begins; otherwise the caller must have started its chain from gcu_carried. */
template <typename T>
__device__ __forceinline__ T gcu_carried(const gcu_out &out, int64_t a, int64_t points, int64_t v)
{
    return out.begins ? (T)0 : static_cast<const T *>(out.carry)[a * points + v];
}

__device__ __forceinline__ int64_t gcu_mul_div(int64_t a, int64_t b, int64_t c)
{
    return c == 1 ? a * b : (int64_t)((unsigned __int128)a * (unsigned __int128)b / (uint64_t)c);
}

template <typename T>
__device__ __forceinline__ void gcu_emit(const gcu_out &out, int64_t task_row, int64_t a, int64_t b,
                                         int64_t i, int64_t n, int64_t blocks, T total)
{
    if (!out.finishes) {
        static_cast<T *>(out.carry)[(a - task_row) * n * blocks + b * n + i] = total;
        return;
    }
    const int64_t first = gcu_mul_div(out.block + b, out.k, out.r);
    const int64_t last = gcu_mul_div(out.block + b + 1, out.k, out.r);
    const int64_t at = first + a - out.row;
    if (first + a >= last || at < 0 || at >= out.rows) return;
    const double factor =
        last - first == (out.k + out.r - 1) / out.r ? out.factor_most : out.factor_least;
    const int64_t to = i * out.row_stride + at * out.col_stride;
    if (out.dtype == GNOMON_F64) {
        double *y = static_cast<double *>(out.y) + to;
        *y = gcu_finished(factor, (double)total, out.beta, y);
    } else {
        float *y = static_cast<float *>(out.y) + to;
        *y = gcu_finished(factor, (double)total, out.beta, y);
    }
}

#endif
#endif
