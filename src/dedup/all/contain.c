/* All pairs by containment: the share of the smaller set's members that the larger one has. MinHash
 * can promise no recall of it, since the Jaccard similarity of a small set and a large one is
 * small; but of a set A of which at least c members are in B every choice of |A| - c + 1 members
 * has one that is (the prefix filter of Chaudhuri, Ganti & Kaushik 2006). Lists of the sets that
 * have a member are looked up for the rarest members of each set. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/sort.h"
#include "dedup/state.h"

#include <math.h>
#include <stdio.h>

enum { TASK = 16, FIRST_BITS = 16, COUNTED = 24 };

typedef struct containing {
    gnomon_dedup *d;
    gnomon_candidates candidates;
    uint32_t *documents, *sizes; /* of the distinct sets */
    /* Of each member of each set the high half of its hash above the set's number, in order: a
     * member's list are the keys of one high half, of which a few may be of other members. */
    uint64_t *keys;
    int64_t key_count;
    int64_t *begins; /* of the keys by their first FIRST_BITS bits */
    /* sets of a block of a scan */
    gnomon_scan scan;
    int64_t first, count; /* number of the first one; how many */
    int64_t *places;      /* of their members in lists */
    uint64_t *lists;      /* of each member: how many keys, COUNTED bits, above where they begin */
    int64_t room;
} containing;

/* Members that the larger set must have of one of so many. */
static int64_t least_of(double similarity, int64_t size)
{
    int64_t least = (int64_t)ceil(similarity * (double)size);
    while (least > 1 && (double)(least - 1) / (double)size >= similarity)
        least--;
    while (least < size && (double)least / (double)size < similarity)
        least++;
    return gnomon_max(1, gnomon_min(least, size));
}

static gnomon_status take_sets(containing *c)
{
    gnomon_scan scan;
    int64_t count, sets = 0;
    gnomon_status status = gnomon_scan_open(&scan, c->d, gnomon_memory_limit(c->d->ctx) / 16);
    while (status == GNOMON_OK) {
        status = gnomon_scan_next(&scan, INT64_MAX, &count);
        if (status != GNOMON_OK || count == 0) break;
        for (int64_t i = 0; i < count; i++, sets++) {
            const gnomon_set set = scan.fetch.sets[i];
            c->documents[sets] = scan.documents[i];
            c->sizes[sets] = (uint32_t)gnomon_min(gnomon_set_count(set), UINT32_MAX);
            for (int64_t m = 0; m < gnomon_set_count(set); m++)
                c->keys[c->key_count++] = set.members[m] >> 32 << 32 | (uint64_t)sets;
        }
    }
    gnomon_scan_close(&scan);
    return status;
}

static void index_keys(containing *c)
{
    int64_t at = 0;
    for (int64_t first = 0; first <= 1 << FIRST_BITS; first++) {
        while (at < c->key_count && (int64_t)(c->keys[at] >> (64 - FIRST_BITS)) < first)
            at++;
        c->begins[first] = at;
    }
}

/* Where the keys of a high half begin. */
static int64_t find(const containing *c, uint64_t high)
{
    int64_t low = c->begins[high >> (32 - FIRST_BITS)];
    int64_t end = c->begins[(high >> (32 - FIRST_BITS)) + 1];
    while (low < end) {
        const int64_t middle = low + (end - low) / 2;
        if (c->keys[middle] >> 32 < high)
            low = middle + 1;
        else
            end = middle;
    }
    return low;
}

/* The lists of a set's members, the shortest first. */
static void look_up(void *arg, int64_t task, int worker)
{
    (void)worker;
    const containing *c = arg;
    for (int64_t s = task * TASK; s < gnomon_min((task + 1) * TASK, c->count); s++) {
        const gnomon_set set = c->scan.fetch.sets[s];
        uint64_t *lists = c->lists + c->places[s];
        for (int64_t m = 0; m < gnomon_set_count(set); m++) {
            const uint64_t high = set.members[m] >> 32;
            const int64_t begin = find(c, high), most = ((int64_t)1 << COUNTED) - 1;
            int64_t end = begin + 1;
            while (end < c->key_count && end - begin < most && c->keys[end] >> 32 == high)
                end++;
            lists[m] = (uint64_t)(end - begin) << (64 - COUNTED) | (uint64_t)begin;
        }
        gnomon_sort_numbers(lists, gnomon_set_count(set));
    }
}

/* Sets at least as large as set 'number' that have one of its rarest members. */
static gnomon_status meet(containing *c, int64_t number, const uint64_t *lists, int64_t size)
{
    gnomon_dedup *d = c->d;
    const int64_t prefix = size - least_of(d->options.similarity, size) + 1;
    const uint64_t one = c->documents[number];
    for (int64_t p = 0; p < prefix; p++) {
        const int64_t begin = (int64_t)(lists[p] & (UINT64_MAX >> COUNTED));
        const uint64_t high = c->keys[begin] >> 32;
        for (int64_t at = begin; at < c->key_count && c->keys[at] >> 32 == high; at++) {
            const int64_t other = (int64_t)(uint32_t)c->keys[at];
            if (other == number || c->sizes[other] < c->sizes[number]) continue;
            if (c->sizes[other] == c->sizes[number] && other < number) continue;
            const uint64_t two = c->documents[other];
            const uint64_t before = gnomon_min(one, two), after = gnomon_max(one, two);
            if ((int64_t)before >= d->fresh) continue; /* of old documents */
            GNOMON_TRY(gnomon_candidates_add(d, &c->candidates, before, after));
        }
    }
    return GNOMON_OK;
}

static gnomon_status meet_block(containing *c)
{
    gnomon_dedup *d = c->d;
    int64_t total = 0;
    for (int64_t s = 0; s < c->count; s++) {
        c->places[s] = total;
        total += gnomon_set_count(c->scan.fetch.sets[s]);
    }
    GNOMON_TRY(gnomon_renew(d->ctx, &c->lists, &c->room, total, sizeof *c->lists, "lists of sets"));
    gnomon_parallel(d->ctx, gnomon_ceil_div(c->count, TASK), look_up, c);
    for (int64_t s = 0; s < c->count; s++)
        GNOMON_TRY(meet(c, c->first + s, c->lists + c->places[s],
                        gnomon_set_count(c->scan.fetch.sets[s])));
    c->first += c->count;
    return gnomon_progress(d->ctx, "verifying", c->first, d->distinct);
}

static gnomon_status meet_all(containing *c)
{
    enum { BLOCK = 1 << 11 };
    const int64_t bytes = gnomon_memory_limit(c->d->ctx) / 16;
    gnomon_status status = gnomon_scan_open(&c->scan, c->d, bytes);
    while (status == GNOMON_OK) {
        status = gnomon_scan_next(&c->scan, BLOCK, &c->count);
        if (status != GNOMON_OK || c->count == 0) break;
        status = meet_block(c);
    }
    gnomon_scan_close(&c->scan);
    return status == GNOMON_OK ? gnomon_candidates_verify(c->d, &c->candidates) : status;
}

static gnomon_status contain(containing *c)
{
    enum { BLOCK = 1 << 11 };
    gnomon_dedup *d = c->d;
    gnomon_context *ctx = d->ctx;
    uint64_t *scratch = NULL;
    GNOMON_TRY(gnomon_candidates_open(d, &c->candidates));
    GNOMON_TRY(gnomon_alloc(ctx, d->distinct, sizeof *c->documents, "sets", &c->documents));
    GNOMON_TRY(gnomon_alloc(ctx, d->distinct, sizeof *c->sizes, "sets", &c->sizes));
    GNOMON_TRY(gnomon_alloc(ctx, d->result.ngrams, sizeof *c->keys, "lists of sets", &c->keys));
    GNOMON_TRY(gnomon_alloc(ctx, (1 << FIRST_BITS) + 1, sizeof *c->begins, "lists", &c->begins));
    GNOMON_TRY(gnomon_alloc(ctx, BLOCK, sizeof *c->places, "lists", &c->places));
    GNOMON_TRY(take_sets(c));
    GNOMON_TRY(gnomon_alloc(ctx, d->result.ngrams, sizeof *scratch, "lists of sets", &scratch));
    gnomon_sort_digits(c->keys, scratch, c->key_count);
    gnomon_free(ctx, scratch);
    index_keys(c);
    return meet_all(c);
}

gnomon_status gnomon_dedup_contain(gnomon_dedup *d)
{
    containing c = {.d = d};
    /* keys, and scratch to sort them */
    enum { EACH = 16 };
    GNOMON_TRY(gnomon_dedup_check_memory(d, "containment", "lists of the sets", EACH, ""));
    snprintf(d->result.why, sizeof d->result.why, "containment: lists of the rarest n-grams");
    d->result.recall_bound = 1;
    const gnomon_status status = d->distinct > 0 ? contain(&c) : GNOMON_OK;
    gnomon_candidates_close(d, &c.candidates);
    gnomon_free(d->ctx, c.documents);
    gnomon_free(d->ctx, c.sizes);
    gnomon_free(d->ctx, c.keys);
    gnomon_free(d->ctx, c.begins);
    gnomon_free(d->ctx, c.places);
    gnomon_free(d->ctx, c.lists);
    return status;
}
