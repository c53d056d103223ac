/* Documents as they come, from wherever. */
#include "dedup/state.h"

#include <inttypes.h>
#include <string.h>

gnomon_status gnomon_dedup_check_room(gnomon_dedup *d, int64_t count)
{
    const int64_t need = d->count + count;
    GNOMON_FAIL_IF(need >= UINT32_MAX, d->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("documents") ": %" PRId64 " in all; there may be 2^32 - 2", need);
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
