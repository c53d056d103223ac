/* Points' keys in every table. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/index.h"
#include "lsh/job.h"

typedef struct keying {
    gnomon_context *ctx;
    const gnomon_lsh *index;
    const uint64_t *multipliers;
    int64_t n;
    uint64_t *keys;
    /* the batch */
    const int32_t *values;
    int64_t first;
} keying;

static void key_point(void *arg, int64_t i, int worker)
{
    (void)worker;
    const keying *k = arg;
    const gnomon_lsh *index = k->index;
    const int32_t *v = k->values + i * index->hasher->f.count;
    const int64_t coarse = index->options.coarse, fine = index->depth - coarse;
    for (int64_t t = 0; t < index->options.tables; t++, v += index->depth)
        k->keys[t * k->n + k->first + i] =
            gnomon_key_of(gnomon_key_sum(v, k->multipliers, coarse),
                          gnomon_key_sum(v + coarse, k->multipliers + coarse, fine));
}

static void key_batch(void *arg, const int32_t *values, int64_t first, int64_t n)
{
    keying *k = arg;
    k->values = values;
    k->first = first;
    gnomon_parallel(k->ctx, n, key_point, k);
}

gnomon_status gnomon_lsh_keys(gnomon_context *ctx, const gnomon_lsh *index,
                              const gnomon_points *points, uint64_t *keys)
{
    uint64_t multipliers[GNOMON_LSH_MOST_DEPTH];
    gnomon_lsh_job job = gnomon_lsh_job_of(ctx, index, points, multipliers);
    bool done;
    job.keys = keys;
    job.key_stride = gnomon_points_rows(points);
    GNOMON_TRY(gnomon_lsh_on_device(ctx, &job, &done));
    if (done) return GNOMON_OK;
    keying k = {.ctx = ctx,
                .index = index,
                .multipliers = multipliers,
                .n = gnomon_points_rows(points),
                .keys = keys};
    return gnomon_hasher_all(ctx, index->hasher, points, key_batch, &k);
}
