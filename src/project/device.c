/* Handing a job to a device. */
#include "base/device.h"
#include "base/error.h"
#include "project/job.h"
#include "project/overflow.h"

gnomon_status gnomon_job_check_output(gnomon_context *ctx, const gnomon_sketch_job *job,
                                      const gnomon_matrix *out, const char *name)
{
    int64_t row, col;
    gnomon_overflow o;
    gnomon_overflow_none(&o);
    if (!job->check || job->beta != 0 || out->memory != GNOMON_HOST) return GNOMON_OK;
    if (gnomon_matrix_check_finite(ctx, out, &row, &col) == GNOMON_OK) return GNOMON_OK;
    gnomon_overflow_note(&o, row);
    return gnomon_overflow_check(ctx, &o, name, job->f64);
}

static bool takes_sketch(gnomon_device_call *call, void *job)
{
    return call->table->supports(call->state, job, false, call->why, sizeof call->why);
}

static bool takes_adjoint(gnomon_device_call *call, void *job)
{
    return call->table->supports(call->state, job, true, call->why, sizeof call->why);
}

static gnomon_status run_sketch(gnomon_device_call *call, void *job)
{
    gnomon_sketch_job theirs = *(const gnomon_sketch_job *)job;
    theirs.host = &call->host;
    return call->table->sketch(call->state, &theirs, call->why, sizeof call->why);
}

static gnomon_status run_adjoint(gnomon_device_call *call, void *job)
{
    gnomon_sketch_job theirs = *(const gnomon_sketch_job *)job;
    theirs.host = &call->host;
    return call->table->adjoint(call->state, &theirs, call->why, sizeof call->why);
}

gnomon_status gnomon_job_on_device(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job,
                                   bool adjoint, bool *done)
{
    const bool there = job->x->memory != GNOMON_HOST || job->y->memory != GNOMON_HOST;
    const gnomon_device_step step = {.phase = "project",
                                     .takes = adjoint ? takes_adjoint : takes_sketch,
                                     .run = adjoint ? run_adjoint : run_sketch,
                                     .there = there ? "x or y" : NULL};
    gnomon_device_call call;
    GNOMON_TRY(gnomon_device_run(&call, ctx, where, &step, job, done));
    if (!*done) return GNOMON_OK;
    return gnomon_job_check_output(ctx, job, adjoint ? job->x : job->y, adjoint ? "x" : "y");
}
