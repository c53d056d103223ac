/* project/job.h: one application of an operator, its arguments checked. Also what a device
 * plugin is given. */
#ifndef GNOMON_PROJECT_JOB_H
#define GNOMON_PROJECT_JOB_H

#include "base/device.h"
#include "base/dtype.h"
#include "operator/operator.h"

#include <gnomon/project.h>

#include <stdbool.h>

/* Sketch: y = alpha * x S^T + beta * y; adjoint: x = alpha * y S + beta * x; S being rows [row,
 * row + rows) and columns [col, col + x->cols) of op. Device code sees the same struct. */
typedef struct gnomon_sketch_job {
    const gnomon_operator *op;
    const gnomon_matrix *x, *y;
    const gnomon_csr *csr; /* sparse points, x NULL then: a sketch alone. On the host they have been
                              checked; in a device's memory it checks them */
    gnomon_memory csr_memory;
    bool sorted; /* csr on the host: every row's columns ascend */
    double alpha, beta;
    int64_t row, rows, col;
    bool f64;             /* sums in fp64 */
    bool check;           /* NaN and infinity in the input are an error */
    int64_t memory_limit; /* bytes of working memory on the host */
    void *stream;         /* the caller's (CUDA: a cudaStream_t); NULL: the device's own */
    const gnomon_device_host *host; /* set for a device's calls of sketch and adjoint */
} gnomon_sketch_job;

/* What options ask for, with every default filled in; cols is the number of columns that the
 * points have (-1: not known yet, a stream). Errors: ARGUMENT, SHAPE. */
gnomon_status gnomon_job_options(gnomon_context *ctx, const gnomon_operator *op,
                                 const gnomon_sketch_options *options, const char *points,
                                 int64_t cols, gnomon_sketch_job *job);

/* The rest of the checks for dense points, whose names in texts are x and y. Errors: ARGUMENT,
 * SHAPE, DTYPE. */
gnomon_status gnomon_job_views(gnomon_context *ctx, const gnomon_matrix *x, const gnomon_matrix *y,
                               bool adjoint, gnomon_sketch_job *job);

/* Checks an output view: F32 or F64, its elements apart from each other. */
gnomon_status gnomon_check_output(gnomon_context *ctx, const gnomon_matrix *m, const char *name);

/* Checks an input or output view wherever it lies: a device's memory is for the device to judge. */
gnomon_status gnomon_check_anywhere(gnomon_context *ctx, const gnomon_matrix *m, const char *name,
                                    bool output);

/* Whether the memory of two views may overlap. */
bool gnomon_views_overlap(const gnomon_matrix *a, const gnomon_matrix *b);

/* Fails with NONFINITE, naming the first such element of m. 'col' is added to its column. */
gnomon_status gnomon_check_points(gnomon_context *ctx, const gnomon_matrix *m, const char *name);

/* What a device has written: fails with NONFINITE, naming the first row that is not finite, as far
 * as the job asks and the host can tell (an output on the host that was not added to). */
gnomon_status gnomon_job_check_output(gnomon_context *ctx, const gnomon_sketch_job *job,
                                      const gnomon_matrix *out, const char *name);

/* Offers the job to the context's device, as base/device.h says. */
gnomon_status gnomon_job_on_device(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job,
                                   bool adjoint, bool *done);

/* The same for sparse rows, job->csr. */
gnomon_status gnomon_csr_on_device(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job,
                                   bool *done);

/* The public gnomon_sketch, gnomon_sketch_csr and gnomon_stream_create as steps of a job. cols: how
 * many columns come, -1: all from options->col on; then the stream has a partial sketch. */
gnomon_status gnomon_sketch_at(gnomon_context *ctx, gnomon_where where, const gnomon_operator *op,
                               const gnomon_matrix *x, const gnomon_matrix *y,
                               const gnomon_sketch_options *options);
gnomon_status gnomon_sketch_csr_at(gnomon_context *ctx, gnomon_where where,
                                   const gnomon_operator *op, const gnomon_csr *x,
                                   const gnomon_matrix *y, const gnomon_sketch_options *options);
gnomon_status gnomon_stream_at(gnomon_context *ctx, gnomon_where where, const gnomon_operator *op,
                               int64_t n, int64_t cols, gnomon_dtype dtype,
                               const gnomon_sketch_options *options, gnomon_stream **out);

#endif
