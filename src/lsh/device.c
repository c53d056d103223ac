/* Handing hashing to a device. */
#include "base/device.h"
#include "base/context.h"
#include "lsh/families/family.h"
#include "lsh/index.h"
#include "lsh/job.h"

gnomon_lsh_job gnomon_lsh_job_of(gnomon_context *ctx, const gnomon_lsh *index,
                                 const gnomon_points *points, uint64_t *multipliers)
{
    gnomon_key_multipliers(index->depth, multipliers);
    return (gnomon_lsh_job){.hasher = index->hasher,
                            .points = points->dense,
                            .sets = points->sparse,
                            .tables = index->options.tables,
                            .depth = index->depth,
                            .coarse = index->options.coarse,
                            .multipliers = multipliers,
                            .first_id = (uint32_t)index->points,
                            .memory_limit = gnomon_memory_limit(ctx)};
}

static bool takes(gnomon_device_call *call, void *user)
{
    gnomon_lsh_job *job = user;
    if (call->table->lsh == NULL) return gnomon_device_unable(call, "it does not hash");
    const char *unable = gnomon_family_row_of(job->hasher->f.family)->no_device;
    if (unable != NULL) return gnomon_device_unable(call, unable);
    job->same = !call->must || !job->values;
    return call->table->lsh_supports(call->state, job, call->why, sizeof call->why);
}

static gnomon_status run(gnomon_device_call *call, void *user)
{
    gnomon_lsh_job *job = user;
    job->host = &call->host;
    return call->table->lsh(call->state, job, call->why, sizeof call->why);
}

gnomon_status gnomon_lsh_on_device(gnomon_context *ctx, const gnomon_lsh_job *job, bool *done)
{
    const bool there = (job->points && job->points->memory != GNOMON_HOST) ||
                       (job->values && job->values->memory != GNOMON_HOST);
    const gnomon_device_step step = {.phase = "hashing",
                                     .takes = takes,
                                     .run = run,
                                     .calls_back = job->rooms != NULL,
                                     .repeats = job->rooms == NULL,
                                     .there = there ? "points or values" : NULL};
    gnomon_device_call call;
    gnomon_lsh_job theirs = *job;
    return gnomon_device_run(&call, ctx, GNOMON_BY_CONTEXT, &step, &theirs, done);
}
