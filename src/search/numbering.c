#include "search/numbering.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static int64_t slot_of(const gnomon_numbering *n, int64_t member)
{
    if (n->direct) return member;
    const uint64_t mask = ((uint64_t)1 << (64 - n->shift)) - 1;
    uint64_t at = (uint64_t)member * UINT64_C(0x9e3779b97f4a7c15) >> n->shift;
    while (n->keys[at] != -1 && n->keys[at] != member)
        at = (at + 1) & mask;
    return (int64_t)at;
}

static gnomon_status grow(gnomon_context *ctx, gnomon_numbering *n)
{
    gnomon_numbering grown = {.shift = n->keys == NULL ? 64 - 12 : n->shift - 1};
    const int64_t places = grown.places = (int64_t)1 << (64 - grown.shift);
    gnomon_status status = gnomon_alloc(ctx, places, sizeof *grown.keys, "members", &grown.keys);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(ctx, places, sizeof *grown.counts, "members", &grown.counts);
    if (status != GNOMON_OK) {
        gnomon_free(ctx, grown.keys);
        return status;
    }
    memset(grown.keys, 0xff, (size_t)places * sizeof *grown.keys);
    for (int64_t at = 0; n->keys != NULL && at < n->places; at++) {
        if (n->keys[at] == -1) continue;
        const int64_t to = slot_of(&grown, n->keys[at]);
        grown.keys[to] = n->keys[at];
        grown.counts[to] = n->counts[at];
    }
    grown.used = n->used;
    gnomon_free(ctx, n->keys);
    gnomon_free(ctx, n->counts);
    *n = grown;
    return GNOMON_OK;
}

gnomon_status gnomon_numbering_count(gnomon_context *ctx, gnomon_numbering *n,
                                     const gnomon_sets *sets)
{
    for (int64_t e = sets->offsets[0]; e < sets->offsets[sets->count]; e++) {
        if (!n->direct && 2 * n->used >= n->places) GNOMON_TRY(grow(ctx, n));
        const int64_t at = slot_of(n, sets->members[e]);
        if (n->direct) {
            n->used += n->counts[at] == 0;
        } else if (n->keys[at] == -1) {
            n->keys[at] = sets->members[e];
            n->used++;
        }
        if (n->counts[at] < UINT32_MAX) n->counts[at]++;
    }
    return GNOMON_OK;
}

typedef struct named {
    uint32_t count, slot_high, slot_low;
    int64_t key;
} named;

/* Rarest first; what order members of the same count come in does not matter but must be the same
 * each time. */
static int by_count(const void *x, const void *y)
{
    const named *a = x, *b = y;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

gnomon_status gnomon_numbering_close(gnomon_context *ctx, gnomon_numbering *n)
{
    const int64_t places = n->places;
    named *all;
    int64_t count = 0;
    GNOMON_TRY(gnomon_alloc(ctx, places, sizeof *n->numbers, "members", &n->numbers));
    GNOMON_TRY(gnomon_alloc(ctx, n->used, sizeof *all, "members", &all));
    for (int64_t at = 0; at < places; at++)
        if (n->counts[at] > 0)
            all[count++] = (named){n->counts[at], (uint32_t)(at >> 32), (uint32_t)at,
                                   n->direct ? at : n->keys[at]};
    if (count > 0) qsort(all, (size_t)count, sizeof *all, by_count);
    for (int64_t i = 0; i < count; i++)
        n->numbers[(int64_t)all[i].slot_high << 32 | all[i].slot_low] = (uint32_t)i;
    gnomon_free(ctx, all);
    return GNOMON_OK;
}

gnomon_status gnomon_numbering_open(gnomon_context *ctx, int64_t cols, int64_t members,
                                    gnomon_numbering *n)
{
    *n = (gnomon_numbering){0};
    if (cols >= (1 << 16) && cols / 4 >= members) return grow(ctx, n);
    n->direct = true;
    n->places = cols;
    return gnomon_alloc_zero(ctx, cols, sizeof *n->counts, "members", &n->counts);
}

static int64_t find_sorted(const gnomon_numbering *n, int64_t member)
{
    int64_t low = 0, high = n->used;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (n->keys[middle] < member)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->used && n->keys[low] == member ? (int64_t)n->numbers[low] : -1;
}

int64_t gnomon_numbering_find(const gnomon_numbering *n, int64_t member)
{
    if (n->sorted) return find_sorted(n, member);
    const int64_t at = slot_of(n, member);
    return n->counts[at] > 0 ? (int64_t)n->numbers[at] : -1;
}

static int by_key(const void *x, const void *y)
{
    const named *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

gnomon_status gnomon_numbering_list(gnomon_context *ctx, const gnomon_numbering *n,
                                    int64_t *members, uint32_t *numbers)
{
    named *all;
    int64_t count = 0;
    GNOMON_TRY(gnomon_alloc(ctx, n->used, sizeof *all, "members", &all));
    for (int64_t at = 0; at < n->places; at++)
        if (n->counts[at] > 0)
            all[count++] = (named){n->numbers[at], 0, 0, n->direct ? at : n->keys[at]};
    if (count > 0 && !n->direct) qsort(all, (size_t)count, sizeof *all, by_key);
    for (int64_t i = 0; i < count; i++) {
        members[i] = all[i].key;
        numbers[i] = all[i].count;
    }
    gnomon_free(ctx, all);
    return GNOMON_OK;
}

void gnomon_numbering_free(gnomon_context *ctx, gnomon_numbering *n)
{
    gnomon_free(ctx, n->keys);
    gnomon_free(ctx, n->counts);
    gnomon_free(ctx, n->numbers);
    *n = (gnomon_numbering){0};
}
