/* Documents as they come, from wherever. */
#include "dedup/state.h"

#include "base/arithmetic.h"
#include "base/error.h"

#include <inttypes.h>
#include <string.h>

gnomon_status gnomon_dedup_check_room(gnomon_dedup *d, int64_t count)
{
    const int64_t need = d->count + count;
    GNOMON_FAIL_IF(need >= UINT32_MAX, d->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("documents") ": %" PRId64 " in all; there may be 2^32 - 2", need);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_over_texts(gnomon_dedup *d, int64_t count, int64_t each,
                                      gnomon_task_fn fn, void *arg, int64_t *faults)
{
    const int threads = gnomon_context_threads(d->ctx);
    for (int t = 0; t < threads; t++)
        faults[t] = count;
    gnomon_parallel(d->ctx, gnomon_ceil_div(count, each), fn, arg);
    for (int t = 1; t < threads; t++)
        faults[0] = gnomon_min(faults[0], faults[t]);
    GNOMON_FAIL_IF(faults[0] < count, d->ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("documents") ": document %" PRId64 " is not UTF-8",
                   d->count + faults[0]);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_check_name(const gnomon_dedup *d, const char *name, int64_t document)
{
    GNOMON_FAIL_IF(name == NULL, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("names") ": document %" PRId64 " has none", document);
    GNOMON_FAIL_IF(strlen(name) > GNOMON_NAME_MOST, d->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("names") ": that of document %" PRId64 " has more than %d bytes",
                   document, GNOMON_NAME_MOST);
    return GNOMON_OK;
}

void gnomon_dedup_count(gnomon_dedup *d, int64_t bytes)
{
    d->count++;
    if (d->against) return;
    d->fresh = d->count;
    d->result.text_bytes += bytes;
}

gnomon_status gnomon_dedup_append(gnomon_dedup *d, int64_t bytes, uint64_t hash)
{
    const gnomon_document one = {d->sets.size, d->raw.size, d->names.size, bytes, hash};
    gnomon_dedup_count(d, bytes);
    return gnomon_store_append(&d->documents, &one, sizeof one);
}

gnomon_status gnomon_dedup_seal(gnomon_dedup *d)
{
    d->sealed = true;
    GNOMON_TRY(gnomon_store_seal(&d->sets));
    GNOMON_TRY(gnomon_store_seal(&d->names));
    GNOMON_TRY(gnomon_store_seal(&d->raw));
    return gnomon_store_seal(&d->documents);
}
