/* Points' keys in every table. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/index.h"
#include "lsh/job.h"

typedef struct keying {
    const gnomon_lsh *index;
    const int32_t *values;
    int64_t first, n;
    uint64_t *keys;
} keying;

static void key_point(void *arg, int64_t i, int worker)
{
    (void)worker;
    const keying *k = arg;
    const gnomon_lsh *index = k->index;
    const int32_t *v = k->values + i * index->hasher->f.count;
    for (int64_t t = 0; t < index->options.tables; t++, v += index->depth) {
        uint64_t sums[2] = {0, 0};
        for (int64_t p = 0; p < index->depth; p++)
            sums[p >= index->options.broad] += (uint64_t)(int64_t)v[p] * gnomon_key_multiplier(p);
        k->keys[t * k->n + k->first + i] =
            (uint64_t)gnomon_key_half(sums[0]) << 32 | gnomon_key_half(sums[1]);
    }
}

gnomon_status gnomon_lsh_keys(gnomon_context *ctx, const gnomon_lsh *index,
                              const gnomon_points *points, uint64_t *keys)
{
    const gnomon_hasher *h = index->hasher;
    const int64_t n = gnomon_points_rows(points), count = h->f.count;
    const int64_t batch =
        gnomon_hasher_batch_points(ctx, gnomon_hasher_point_bytes(h) + 4 * count, n);
    gnomon_hashes out = {0};
    uint64_t multipliers[GNOMON_LSH_MOST_DEPTH];
    gnomon_lsh_job job = gnomon_lsh_job_of(ctx, index, points, multipliers);
    bool done;
    job.keys = keys;
    GNOMON_TRY(gnomon_lsh_on_device(ctx, &job, &done));
    if (done) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(ctx, batch * count, sizeof *out.values, "hash values", &out.values));
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0; first < n && status == GNOMON_OK; first += batch) {
        const int64_t here = n - first < batch ? n - first : batch;
        status = gnomon_hasher_batch(ctx, h, points, first, here, &out);
        if (status != GNOMON_OK) break;
        keying k = {index, out.values, first, n, keys};
        gnomon_parallel(ctx, here, key_point, &k);
        status = gnomon_progress(ctx, "hashing", first + here, n);
    }
    gnomon_free(ctx, out.values);
    return status;
}
