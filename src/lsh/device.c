/* Handing hashing to a device. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "lsh/index.h"
#include "lsh/job.h"
#include "project/job.h"

gnomon_lsh_job gnomon_lsh_job_of(gnomon_context *ctx, const gnomon_lsh *index,
                                 const gnomon_points *points, uint64_t *multipliers)
{
    gnomon_key_multipliers(index->depth, multipliers);
    return (gnomon_lsh_job){.hasher = index->hasher,
                            .points = points->dense,
                            .sets = points->sparse,
                            .tables = index->options.tables,
                            .depth = index->depth,
                            .broad = index->options.broad,
                            .multipliers = multipliers,
                            .first_id = (uint32_t)index->points,
                            .memory_limit = gnomon_memory_limit(ctx)};
}

gnomon_status gnomon_lsh_on_device(gnomon_context *ctx, const gnomon_lsh_job *job, bool *done)
{
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_CUDA;
    char why[256] = "it does not hash";
    void *state = NULL;
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    gnomon_lsh_job call = *job;
    call.same = !must || !job->values;
    *done = false;
    if (table && table->lsh && table->lsh_supports(state, &call, why, sizeof why)) {
        const gnomon_device_host host = gnomon_job_host(ctx);
        call.host = &host;
        *done = true;
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CUDA);
        why[0] = 0;
        const gnomon_status status = table->lsh(state, &call, why, sizeof why);
        /* rooms that could not be made have left their own text */
        if (status != GNOMON_OK && !why[0] && job->rooms) return status;
        return gnomon_job_device_failed(ctx, status, why);
    }
    GNOMON_FAIL_IF(must && table, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why[0] ? why : "it gave no reason");
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    GNOMON_FAIL_IF((job->points && job->points->memory != GNOMON_HOST) ||
                       (job->values && job->values->memory != GNOMON_HOST),
                   ctx, GNOMON_ERROR_DEVICE,
                   "points or values lies in a device's memory, and the device did not take the "
                   "job: %s",
                   table ? why : gnomon_context_cuda_reason(ctx));
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
