/* Points' keys in every table of an LSH join. */
#include "join/lsh/keys.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "join/lsh/plan.h"
#include "lsh/hasher.h"
#include "lsh/table.h"

typedef struct keying {
    gnomon_context *ctx;
    const gnomon_join_plan *plan;
    uint64_t multipliers[GNOMON_JOIN_DEPTHS + 1];
    uint32_t *keys;
    /* the batch */
    const int32_t *values;
    int64_t first;
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
        to[t] = gnomon_key_half(gnomon_key_sum(v, k->multipliers, depth));
        v += depth;
    }
}

static void key_batch(void *arg, const int32_t *values, int64_t first, int64_t n)
{
    keying *k = arg;
    k->values = values;
    k->first = first;
    gnomon_parallel(k->ctx, n, key_point, k);
}

gnomon_status gnomon_join_keys(gnomon_join_state *join, const gnomon_join_plan *plan,
                               const gnomon_side *side, uint32_t **keys)
{
    const gnomon_points points = {side->dense, side->csr};
    gnomon_hasher *h;
    GNOMON_TRY(gnomon_hasher_create(join->ctx, &plan->functions, &h));
    gnomon_status status =
        gnomon_alloc(join->ctx, gnomon_times(side->rows, gnomon_plan_tables(plan)), sizeof **keys,
                     "keys of points", keys);
    keying k = {.ctx = join->ctx, .plan = plan, .keys = *keys};
    gnomon_key_multipliers(plan->depth + 1, k.multipliers);
    if (status == GNOMON_OK && side->rows > 0)
        status = gnomon_hasher_all(join->ctx, h, &points, key_batch, &k);
    gnomon_hasher_destroy(h);
    return status;
}
