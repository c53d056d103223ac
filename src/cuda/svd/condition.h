/* cuda/svd/condition.h: the columns of a tall fp32 matrix made fit for a product, by one round of
 * Cholesky QR, as halves; nothing waits for the host. Enqueue on stream.
 *
 * One round is enough there. Gram matrix, factor and division are in double precision, so columns
 * that span less than 2^19 come out orthonormal to the rounding of halves. The product needs
 * no more: only their span counts, and what follows it is orthonormalised. What is smaller is
 * rounding of the product that has made the matrix; its columns come out no longer than the others,
 * and have no more digits. A condition that the pivots do not show, as of some triangular matrices,
 * is not seen here: such columns come out long, and only the check of what follows stands for it.
 */
#ifndef GNOMON_CUDA_SVD_CONDITION_H
#define GNOMON_CUDA_SVD_CONDITION_H

#include "cuda/svd/svd.h"

enum { GCU_SVD_CONDITION_MOST = 160 };
/* How many columns fit the GPU's shared memory, at most GCU_SVD_CONDITION_MOST. */
int gcu_svd_condition_most(const gcu_gpu *gpu);

struct gcu_svd_condition {
    int64_t rows;
    int cols;
    const float *from;        /* rows x cols, row-major without gaps */
    double *parts;            /* gcu_svd_condition_parts(rows, cols) */
    double *gram;             /* cols x cols */
    double *inverse;          /* cols x cols */
    void *half;               /* rows x cols halves: the result times a power of two */
    double factor;            /* that power */
    gcu_gemm_packing packing; /* with cols above 0: half is packed so */
};
int64_t gcu_svd_condition_parts(int64_t rows, int64_t cols);
cudaError_t gcu_svd_condition_columns(const gcu_svd_condition *c, const gcu_gpu *gpu,
                                      cudaStream_t stream);

#endif
