/* The trial's kernels on a CPU: sketches of fp32 points by rademacher or achlioptas in the
 * arithmetic of signs.h, refined, by one thread. */
#ifndef GNOMON_BENCH_SIGNS_JOB_H
#define GNOMON_BENCH_SIGNS_JOB_H

#include "operator/operator.h"
#include "signs.h"

typedef struct signs_job {
    const gnomon_simple *a;
    const float *x; /* n x a->cols, row-major */
    int64_t n;
    float *y; /* n x a->rows, row-major: the sums times factor */
    double factor;
} signs_job;

/* 0: no memory. */
int signs_sketch_avx2(const signs_job *job);
int signs_sketch_avx512(const signs_job *job);
int signs_sketch_amx(const signs_job *job); /* rademacher; rows a multiple of 32 */

#endif
