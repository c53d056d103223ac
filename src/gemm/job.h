/* gemm/job.h: one product of matrices, its arguments checked. Also what a device plugin is
 * given. */
#ifndef GNOMON_GEMM_JOB_H
#define GNOMON_GEMM_JOB_H

#include "base/device.h"

#include <gnomon/gemm.h>

#include <stdbool.h>

/* c = alpha * a b + beta * c. a and b are F32 or F16, c is F32 or F64, shapes fit, c's elements lie
 * apart from each other and from a and b. Sizes may be 0: with no inner size, or alpha 0, c is
 * scaled by beta (0 clears without reading). Device code sees the same struct. */
typedef struct gnomon_gemm_job {
    const gnomon_matrix *a, *b, *c;
    double alpha, beta;
    gnomon_gemm_form form;
    /* Of the product that this is a part of, when not 0: the parts have the bits of the whole. */
    int64_t whole_rows, whole_cols;
    int64_t memory_limit; /* bytes of working memory on the host */
    void *stream;         /* the caller's (CUDA: a cudaStream_t); NULL: the device's own */
    const gnomon_device_host *host; /* set for a device's call of gemm */
} gnomon_gemm_job;

/* Checks the arguments of a call and fills job. Errors: ARGUMENT, SHAPE, DTYPE. */
gnomon_status gnomon_gemm_check(gnomon_context *ctx, const gnomon_matrix *a, const gnomon_matrix *b,
                                const gnomon_matrix *c, const gnomon_gemm_options *options,
                                gnomon_gemm_job *job);

/* The options alone, with every default filled in. Errors: ARGUMENT. */
gnomon_status gnomon_gemm_read_options(gnomon_context *ctx, const gnomon_gemm_options *options,
                                       gnomon_gemm_options *out);

/* Offers the job to the context's device, as base/device.h says. */
gnomon_status gnomon_gemm_on_device(gnomon_context *ctx, gnomon_where where, gnomon_gemm_job *job,
                                    bool *done);

/* The public gnomon_gemm as a step of a job. */
gnomon_status gnomon_gemm_at(gnomon_context *ctx, gnomon_where where, const gnomon_matrix *a,
                             const gnomon_matrix *b, const gnomon_matrix *c,
                             const gnomon_gemm_options *options);

/* The job on the CPU. Errors: MEMORY, CANCELLED. */
gnomon_status gnomon_gemm_on_cpu(gnomon_context *ctx, const gnomon_gemm_job *job);

#endif
