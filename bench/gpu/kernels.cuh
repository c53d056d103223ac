/* bench/gpu/kernels.cuh: what the programs share that call the plugin's kernels themselves: the
 * GPU, operators' context, where sums go. */
#ifndef GNOMON_BENCH_KERNELS_H
#define GNOMON_BENCH_KERNELS_H

#include "cuda/project/family.h"

#include <gnomon.h>

#include <cstdio>
#include <cstdlib>

/* Without a GPU the program ends with 77. */
static inline void bench_open_gpu(gcu_gpu *gpu)
{
    char why[256];
    if (gcu_gpu_open(0, gpu, why, sizeof why) == GNOMON_OK) return;
    fprintf(stderr, "%s\n", why);
    exit(77);
}

/* A context that operators are made in. */
static inline gnomon_context *bench_open_context()
{
    gnomon_context *ctx = nullptr;
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.device = "cpu";
    if (gnomon_context_create(&o, &ctx) != GNOMON_OK) exit(1);
    return ctx;
}

/* All k sums of every point, times 'factor', to y. */
static inline gcu_out bench_sums(float *y, int64_t k, int64_t row_stride, int64_t col_stride,
                                 double factor = 1.0)
{
    gcu_out out = {};
    out.y = y;
    out.dtype = GNOMON_F32;
    out.row_stride = row_stride;
    out.col_stride = col_stride;
    out.k = out.rows = k;
    out.r = 1;
    out.factor_most = out.factor_least = factor;
    out.begins = out.finishes = true;
    return out;
}

#endif
