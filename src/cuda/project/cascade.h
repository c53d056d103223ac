/* cuda/project/cascade.h: kronecker operators of two levels and more, whole points at a time. */
#ifndef GNOMON_CUDA_CASCADE_H
#define GNOMON_CUDA_CASCADE_H

#include "cuda/project/family.h"

/* The points are one block (x.blocks 1) of op->descriptor.d coordinates; those outside
 * [x.first, x.end) read as 0. 'out' is that of a task with r = 1 which both begins and finishes:
 * rows [out.row, out.row + out.rows) of the operator, factor_most = alpha * op->scale. Levels run
 * through gcu_choose's families. */
struct gcu_cascade_task {
    const gnomon_operator *op; /* host memory */
    gcu_points x;
    gcu_out out;
    bool f64;
    const gcu_gpu *gpu;
    cudaStream_t stream;
    void *work;
    size_t work_bytes;
};

/* As those of a gcu_family. The bits of a point do not depend on the points beside it. */
bool gcu_cascade_supports(const gcu_cascade_task *task, char *why, size_t why_size);
size_t gcu_cascade_best_work(const gcu_cascade_task *task);
size_t gcu_cascade_least_work(const gcu_cascade_task *task);
cudaError_t gcu_cascade(const gcu_cascade_task *task);

#endif
