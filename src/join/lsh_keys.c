/* Points' keys in every table of an LSH join. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/lsh.h"
#include "lsh/hasher.h"
#include "lsh/table.h"

typedef struct keying {
    const gnomon_join_plan *plan;
    const int32_t *values; /* of points from 'first' on */
    int64_t first;
    uint32_t *keys;
} keying;

static void key_point(void *arg, int64_t i, int worker)
{
    (void)worker;
    const keying *k = arg;
    const gnomon_join_plan *plan = k->plan;
    const int64_t tables = gnomon_plan_tables(plan);
    const int32_t *v = k->values + i * plan->functions.count;
    uint32_t *to = k->keys + (k->first + i) * tables;
    for (int64_t t = 0; t < tables; t++) {
        const int64_t depth = plan->depth + (t >= plan->shallow);
        uint64_t sum = 0;
        for (int64_t p = 0; p < depth; p++)
            sum += (uint64_t)(int64_t)v[p] * gnomon_key_multiplier(p);
        to[t] = gnomon_key_half(sum);
        v += depth;
    }
}

static gnomon_status key_batches(gnomon_join_state *join, const gnomon_join_plan *plan,
                                 const gnomon_hasher *h, const gnomon_points *points,
                                 uint32_t *keys)
{
    const int64_t n = gnomon_points_rows(points), count = plan->functions.count;
    const int64_t batch =
        gnomon_hasher_batch_points(join->ctx, gnomon_hasher_point_bytes(h) + 4 * count, n);
    gnomon_hashes out = {0};
    GNOMON_TRY(
        gnomon_alloc(join->ctx, batch * count, sizeof *out.values, "hash values", &out.values));
    gnomon_status status = GNOMON_OK;
    for (int64_t first = 0; first < n && status == GNOMON_OK; first += batch) {
        const int64_t here = n - first < batch ? n - first : batch;
        status = gnomon_hasher_batch(join->ctx, h, points, first, here, &out);
        if (status != GNOMON_OK) break;
        keying k = {plan, out.values, first, keys};
        gnomon_parallel(join->ctx, here, key_point, &k);
        status = gnomon_progress(join->ctx, "hashing", first + here, n);
    }
    gnomon_free(join->ctx, out.values);
    return status;
}

gnomon_status gnomon_join_keys(gnomon_join_state *join, const gnomon_join_plan *plan,
                               const gnomon_side *side, uint32_t **keys)
{
    const gnomon_points points = {side->dense, side->csr};
    gnomon_hasher *h;
    GNOMON_TRY(gnomon_hasher_create(join->ctx, &plan->functions, &h));
    gnomon_status status = gnomon_alloc(join->ctx, side->rows * gnomon_plan_tables(plan),
                                        sizeof **keys, "keys of points", keys);
    if (status == GNOMON_OK && side->rows > 0) status = key_batches(join, plan, h, &points, *keys);
    gnomon_hasher_destroy(h);
    return status;
}
