/* Handing a job to a device. */
#include "base/context.h"
#include "base/error.h"
#include "base/threads.h"
#include "project/job.h"

static int progress(void *user, int64_t done, int64_t total)
{
    return gnomon_progress(user, "project", done, total) != GNOMON_OK;
}

static void parallel(void *user, int64_t count, void (*task)(void *arg, int64_t task, int worker),
                     void *arg)
{
    gnomon_parallel(user, count, task, arg);
}

/* Whether the text of a failure with this status is about the device, and not about the call's
 * arguments or data. */
static bool about_device(gnomon_status status)
{
    return status == GNOMON_ERROR_DEVICE || status == GNOMON_ERROR_MEMORY;
}

gnomon_status gnomon_job_on_device(gnomon_context *ctx, const gnomon_sketch_job *job, bool adjoint,
                                   bool *done)
{
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_CUDA;
    char why[256] = "";
    void *state = NULL;
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    *done = false;
    if (table && table->supports(state, job, adjoint, why, sizeof why)) {
        const gnomon_device_host host = {ctx, progress, parallel};
        gnomon_sketch_job call = *job;
        call.host = &host;
        *done = true;
        const gnomon_status status =
            (adjoint ? table->adjoint : table->sketch)(state, &call, why, sizeof why);
        if (status == GNOMON_OK) return GNOMON_OK;
        if (status == GNOMON_ERROR_CANCELLED) return status; /* 'progress' left the text */
        GNOMON_FAIL_IF(!about_device(status), ctx, status, "%s", why);
        return gnomon_fail(ctx, status, "%s: %s", table->name, why[0] ? why : "failed");
    }
    GNOMON_FAIL_IF(must && table, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why[0] ? why : "it gave no reason");
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    GNOMON_FAIL_IF(job->x->memory != GNOMON_HOST || job->y->memory != GNOMON_HOST, ctx,
                   GNOMON_ERROR_DEVICE,
                   "x or y lies in a device's memory, and the device did not take the job: %s",
                   table ? why : gnomon_context_cuda_reason(ctx));
    return GNOMON_OK;
}
