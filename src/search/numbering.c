#include "search/numbering.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 4096 }; /* of a task */

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

static gnomon_status count_hashed(gnomon_context *ctx, gnomon_numbering *n, const gnomon_sets *sets)
{
    for (int64_t e = sets->offsets[0]; e < sets->offsets[sets->count]; e++) {
        if (2 * n->used >= n->places) GNOMON_TRY(grow(ctx, n));
        const int64_t at = slot_of(n, sets->members[e]);
        if (n->keys[at] == -1) {
            n->keys[at] = sets->members[e];
            n->used++;
        }
        if (n->counts[at] < UINT32_MAX) n->counts[at]++;
    }
    return GNOMON_OK;
}

/* Parts of the members, one after the other, each with counts of its own; the first part's become
 * those of all. */
typedef struct counting {
    gnomon_numbering *n;
    const gnomon_sets *sets;
    int64_t parts;
    uint32_t *counts; /* of the parts after the first: places each */
} counting;

static void count_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const counting *c = arg;
    const int64_t begin = c->sets->offsets[0], count = c->sets->offsets[c->sets->count] - begin;
    const int64_t end = begin + gnomon_part_begin(count, part + 1, c->parts);
    const int64_t *members = c->sets->members;
    uint32_t *counts = part == 0 ? c->n->counts : c->counts + (part - 1) * c->n->places;
    for (int64_t e = begin + gnomon_part_begin(count, part, c->parts); e < end; e++)
        if (counts[members[e]] < UINT32_MAX) counts[members[e]]++;
}

static void add_counts(void *arg, int64_t task, int worker)
{
    (void)worker;
    const counting *c = arg;
    const int64_t places = c->n->places, end = gnomon_min((task + 1) * PLACES, places);
    for (int64_t at = task * PLACES; at < end; at++) {
        int64_t sum = c->n->counts[at];
        for (int64_t part = 1; part < c->parts; part++)
            sum += c->counts[(part - 1) * places + at];
        c->n->counts[at] = (uint32_t)gnomon_min(sum, UINT32_MAX);
    }
}

static gnomon_status count_direct(gnomon_context *ctx, gnomon_numbering *n, const gnomon_sets *sets)
{
    const int64_t members = sets->offsets[sets->count] - sets->offsets[0];
    counting c = {.n = n, .sets = sets};
    /* a count of a part's own for every third member at most */
    const int64_t most = n->places > 0 ? members / 3 / n->places : 1;
    c.parts = gnomon_max(gnomon_min(gnomon_context_threads(ctx), most), 1);
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(c.parts - 1, n->places), sizeof *c.counts,
                                 "members", &c.counts));
    gnomon_parallel(ctx, c.parts, count_part, &c);
    if (c.parts > 1) gnomon_parallel(ctx, gnomon_ceil_div(n->places, PLACES), add_counts, &c);
    gnomon_free(ctx, c.counts);
    return GNOMON_OK;
}

gnomon_status gnomon_numbering_count(gnomon_context *ctx, gnomon_numbering *n,
                                     const gnomon_sets *sets)
{
    return n->direct ? count_direct(ctx, n, sets) : count_hashed(ctx, n, sets);
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

/* The same by how many members there are of each count, where the table has them ascending. */
static gnomon_status number_by_counting(gnomon_context *ctx, gnomon_numbering *n, int64_t most)
{
    int64_t *numbers; /* of the next member of a count, which begins one place later */
    GNOMON_TRY(gnomon_alloc_zero(ctx, most + 2, sizeof *numbers, "members", &numbers));
    for (int64_t at = 0; at < n->places; at++)
        if (n->counts[at] > 0) numbers[(int64_t)n->counts[at] + 1]++;
    for (int64_t count = 1; count <= most; count++)
        numbers[count + 1] += numbers[count];
    for (int64_t at = 0; at < n->places; at++)
        if (n->counts[at] > 0) n->numbers[at] = (uint32_t)numbers[n->counts[at]]++;
    gnomon_free(ctx, numbers);
    return GNOMON_OK;
}

gnomon_status gnomon_numbering_close(gnomon_context *ctx, gnomon_numbering *n)
{
    const int64_t places = n->places;
    named *all;
    int64_t count = 0, most = 0;
    GNOMON_TRY(gnomon_alloc(ctx, places, sizeof *n->numbers, "members", &n->numbers));
    n->used = 0;
    for (int64_t at = 0; at < places; at++) {
        n->used += n->counts[at] > 0;
        most = gnomon_max(most, n->counts[at]);
    }
    if (n->direct && most / 4 <= n->used) return number_by_counting(ctx, n, most);
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
