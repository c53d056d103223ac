/* Equal sets, by hash and comparison. */
#include "dedup/state.h"

#include "base/memory.h"
#include "dedup/sort.h"

#include <string.h>

static bool equal(const gnomon_dedup *d, int64_t a, int64_t b)
{
    const int64_t at = gnomon_dedup_begin(d, a), other = gnomon_dedup_begin(d, b);
    const int64_t bytes = d->ends[a] - at;
    return d->hashes[a] == d->hashes[b] && bytes == d->ends[b] - other &&
           (bytes == 0 || memcmp(d->sets.data + at, d->sets.data + other, (size_t)bytes) == 0);
}

static bool is_empty(const gnomon_dedup *d, int64_t document)
{
    return !d->options.exact && d->ends[document] == gnomon_dedup_begin(d, document);
}

/* Documents of one hash's upper half, ascending: group becomes the first document of the same set.
 * heads has room for them all. */
static void group_run(gnomon_dedup *d, const uint64_t *run, int64_t count, uint32_t *heads)
{
    int64_t head_count = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t document = (uint32_t)run[i];
        int64_t h = 0;
        while (h < head_count && !equal(d, heads[h], document))
            h++;
        if (h == head_count) heads[head_count++] = document;
        d->group[document] = heads[h];
    }
}

static gnomon_status group(gnomon_dedup *d, uint64_t *keys, uint64_t *scratch)
{
    int64_t count = 0;
    for (int64_t i = 0; i < d->count; i++) {
        d->group[i] = GNOMON_NO_GROUP;
        if (!is_empty(d, i)) keys[count++] = d->hashes[i] >> 32 << 32 | (uint64_t)i;
    }
    gnomon_sort_digits(keys, scratch, count);
    for (int64_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && keys[end] >> 32 == keys[begin] >> 32;)
            end++;
        group_run(d, keys + begin, end - begin, (uint32_t *)scratch);
    }
    for (int64_t i = 0; i < d->count; i++)
        d->distinct += d->group[i] == (uint32_t)i;
    GNOMON_TRY(gnomon_alloc(d->ctx, d->distinct, sizeof *d->firsts, "documents", &d->firsts));
    /* a set's first document comes before the others, and has the number by then */
    int64_t next = 0;
    for (int64_t i = 0; i < d->count; i++) {
        if (d->group[i] == GNOMON_NO_GROUP) {
            d->result.empty++;
        } else if (d->group[i] == (uint32_t)i) {
            d->firsts[next] = (uint32_t)i;
            d->group[i] = (uint32_t)next++;
        } else {
            d->group[i] = d->group[d->group[i]];
        }
    }
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_group(gnomon_dedup *d)
{
    uint64_t *keys = NULL, *scratch = NULL;
    gnomon_status status = gnomon_alloc(d->ctx, d->count, sizeof *d->group, "groups", &d->group);
    if (status == GNOMON_OK) status = gnomon_alloc(d->ctx, d->count, sizeof *keys, "hashes", &keys);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->count, sizeof *scratch, "hashes", &scratch);
    if (status == GNOMON_OK) status = group(d, keys, scratch);
    gnomon_free(d->ctx, keys);
    gnomon_free(d->ctx, scratch);
    d->result.distinct = d->distinct;
    return status;
}
