#include "dedup/device/keys.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/minhash.h"
#include "dedup/state.h"

/* Seconds on one thread of one function of one member, on the CPU; on a GPU of a byte of members or
 * keys that goes over the link, and of a call. Round figures, which choose as
 * bench/records/gpu/dedup.json measured for few, 112 and 260 functions. */
static const double one_hash = 3e-10, moved_byte = 2e-10, one_call = 1e-3;

bool gnomon_dedup_keys_worth(const gnomon_dedup *d, int64_t bands)
{
    const gnomon_device_call *call = &d->device.call;
    if (!d->device.used || call->table->dedup_keys == NULL || d->distinct == 0) return false;
    const double sets = (double)d->distinct, members = (double)d->result.ngrams;
    const double hashes = members * (double)(bands * d->result.rows);
    const double moved = 8 * (members + sets * (double)bands);
    const double calls = sets / GNOMON_SCAN_MOST;
    return hashes * one_hash / (double)gnomon_context_threads(d->ctx) >
           moved * moved_byte + (calls + 1) * one_call;
}

gnomon_status gnomon_dedup_keys_open(gnomon_dedup *d, gnomon_keys *k, const gnomon_minhash *blocks,
                                     int64_t skipped, int64_t bands)
{
    const int64_t functions = bands * d->result.rows;
    *k = (gnomon_keys){.job = {.bands = bands, .rows = d->result.rows}};
    GNOMON_TRY(gnomon_alloc(d->ctx, gnomon_times(3, functions), sizeof *k->constants,
                            "hash functions", &k->constants));
    GNOMON_TRY(gnomon_alloc(d->ctx, 2 * GNOMON_SCAN_MOST, sizeof *k->bounds, "sets", &k->bounds));
    for (int64_t f = 0; f < functions; f++) {
        const gnomon_minhash *block = &blocks[(skipped + f) / GNOMON_MINHASH_LANES];
        const int64_t lane = (skipped + f) % GNOMON_MINHASH_LANES;
        k->constants[3 * f] = block->flip[lane];
        k->constants[3 * f + 1] = block->low[lane];
        k->constants[3 * f + 2] = block->high[lane];
    }
    k->job.constants = k->constants;
    return GNOMON_OK;
}

void gnomon_dedup_keys_close(gnomon_dedup *d, gnomon_keys *k)
{
    gnomon_free(d->ctx, k->constants);
    gnomon_free(d->ctx, k->bounds);
    *k = (gnomon_keys){0};
}

gnomon_status gnomon_dedup_keys_make(gnomon_dedup *d, gnomon_keys *k, const gnomon_scan *scan,
                                     int64_t count, uint64_t *keys, int64_t stride, bool *done)
{
    gnomon_device_call *call = &d->device.call;
    const gnomon_set *sets = scan->fetch.sets;
    int64_t members = 0;
    *done = false;
    if (count == 0) return GNOMON_OK;
    /* they lie in one array, in their order; other documents' between them go there too */
    for (int64_t s = 0; s < count; s++) {
        k->bounds[s] = sets[s].members - sets[0].members;
        k->bounds[count + s] = k->bounds[s] + gnomon_set_count(sets[s]);
        members += gnomon_set_count(sets[s]);
    }
    if (k->bounds[2 * count - 1] > 2 * members + (1 << 16)) return GNOMON_OK;
    k->job.count = count;
    k->job.members = sets[0].members;
    k->job.begins = k->bounds;
    k->job.ends = k->bounds + count;
    k->job.documents = scan->documents;
    k->job.keys = keys;
    k->job.stride = stride;
    k->job.memory_limit = gnomon_memory_limit(d->ctx);
    k->job.host = &call->host;
    gnomon_device_again(call);
    *done = true;
    return gnomon_device_result(
        call, call->table->dedup_keys(call->state, &k->job, call->why, sizeof call->why));
}
