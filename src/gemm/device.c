/* Handing a product to a device. */
#include "base/context.h"
#include "base/error.h"
#include "gemm/job.h"
#include "project/job.h"

gnomon_status gnomon_gemm_on_device(gnomon_context *ctx, const gnomon_gemm_job *job, bool *done)
{
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_CUDA;
    const char *part = NULL;
    char why[256] = "it has no products of matrices";
    void *state = NULL;
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    *done = false;
    if (table && table->gemm && table->gemm_supports(state, job, why, sizeof why)) {
        const gnomon_device_host host = gnomon_job_host(ctx);
        gnomon_gemm_job call = *job;
        call.host = &host;
        *done = true;
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CUDA);
        why[0] = 0;
        return gnomon_job_device_failed(ctx, table->gemm(state, &call, why, sizeof why), why);
    }
    GNOMON_FAIL_IF(must && table, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why[0] ? why : "it gave no reason");
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    if (job->a->memory != GNOMON_HOST) part = "a";
    if (job->b->memory != GNOMON_HOST) part = "b";
    if (job->c->memory != GNOMON_HOST) part = "c";
    GNOMON_FAIL_IF(part, ctx, GNOMON_ERROR_DEVICE,
                   "%s lies in a device's memory, and the device did not take the job: %s", part,
                   table ? why : gnomon_context_cuda_reason(ctx));
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
