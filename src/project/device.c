/* Handing a job to a device. */
#include "base/context.h"
#include "base/error.h"
#include "base/threads.h"
#include "project/job.h"
#include "project/overflow.h"

static int progress(void *user, int64_t done, int64_t total)
{
    return gnomon_progress(user, "project", done, total) != GNOMON_OK;
}

static void parallel(void *user, int64_t count, void (*task)(void *arg, int64_t task, int worker),
                     void *arg)
{
    gnomon_parallel(user, count, task, arg);
}

gnomon_device_host gnomon_job_host(gnomon_context *ctx)
{
    return (gnomon_device_host){ctx, progress, parallel};
}

gnomon_status gnomon_job_device_failed(gnomon_context *ctx, gnomon_status status, const char *why)
{
    void *state;
    if (status == GNOMON_OK || status == GNOMON_ERROR_CANCELLED)
        return status; /* 'progress' has left the text */
    /* Other failures are about the call's arguments or data, and not about the device. */
    if (status == GNOMON_ERROR_DEVICE || status == GNOMON_ERROR_MEMORY)
        return gnomon_fail(ctx, status, "%s: %s", gnomon_context_plugin(ctx, &state)->name,
                           why[0] ? why : "failed");
    return gnomon_fail(ctx, status, "%s", why);
}

gnomon_status gnomon_job_check_output(gnomon_context *ctx, const gnomon_sketch_job *job,
                                      const gnomon_matrix *out, const char *name)
{
    int64_t row, col;
    gnomon_overflow o;
    gnomon_overflow_none(&o);
    if (!job->check || job->beta != 0 || out->memory != GNOMON_HOST) return GNOMON_OK;
    if (gnomon_matrix_check_finite(ctx, out, &row, &col) == GNOMON_OK) return GNOMON_OK;
    gnomon_overflow_note(&o, row);
    return gnomon_overflow_check(ctx, &o, name, job->wide);
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
        const gnomon_device_host host = gnomon_job_host(ctx);
        gnomon_sketch_job call = *job;
        call.host = &host;
        *done = true;
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CUDA);
        const gnomon_status status =
            (adjoint ? table->adjoint : table->sketch)(state, &call, why, sizeof why);
        GNOMON_TRY(gnomon_job_device_failed(ctx, status, why));
        return gnomon_job_check_output(ctx, job, adjoint ? job->x : job->y, adjoint ? "x" : "y");
    }
    GNOMON_FAIL_IF(must && table, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why[0] ? why : "it gave no reason");
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    GNOMON_FAIL_IF(job->x->memory != GNOMON_HOST || job->y->memory != GNOMON_HOST, ctx,
                   GNOMON_ERROR_DEVICE,
                   "x or y lies in a device's memory, and the device did not take the job: %s",
                   table ? why : gnomon_context_cuda_reason(ctx));
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
