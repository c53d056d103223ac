/* cuda/project/dense/reduce.h: sums over segments into a task's out. */
#ifndef GNOMON_CUDA_DENSE_REDUCE_H
#define GNOMON_CUDA_DENSE_REDUCE_H

#include "cuda/project/family.h"

/* sums: [segment][rows][points], of A's rows from 'row' and folded points from 'point'. When the
 * segments come in several passes 'running' ([rows][points]) keeps the sums between them; 'first'
 * and 'last' say which pass this is. */
struct gcu_reduce_args {
    const float *sums;
    float *running;
    int64_t segments, row, rows, point, points;
    bool first, last;
    gcu_out out;
    int64_t task_row, n, all_points; /* n: points before folding */
};

cudaError_t gcu_reduce(const gcu_reduce_args *args, cudaStream_t stream);

#endif
