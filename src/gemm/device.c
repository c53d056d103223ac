/* Handing a product to a device. */
#include "base/device.h"
#include "gemm/job.h"

static bool takes(gnomon_device_call *call, void *job)
{
    if (call->table->gemm == NULL)
        return gnomon_device_unable(call, "it has no products of matrices");
    return call->table->gemm_supports(call->state, job, call->why, sizeof call->why);
}

static gnomon_status run(gnomon_device_call *call, void *job)
{
    gnomon_gemm_job theirs = *(const gnomon_gemm_job *)job;
    theirs.host = &call->host;
    return call->table->gemm(call->state, &theirs, call->why, sizeof call->why);
}

gnomon_status gnomon_gemm_on_device(gnomon_context *ctx, gnomon_where where, gnomon_gemm_job *job,
                                    bool *done)
{
    gnomon_device_step step = {
        .phase = "multiply", .takes = takes, .run = run, .repeats = job->beta == 0.0};
    gnomon_device_call call;
    if (job->a->memory != GNOMON_HOST) step.there = "a";
    if (job->b->memory != GNOMON_HOST) step.there = "b";
    if (job->c->memory != GNOMON_HOST) step.there = "c";
    return gnomon_device_run(&call, ctx, where, &step, job, done);
}
