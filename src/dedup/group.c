/* Equal sets, by hash and comparison. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/sort.h"
#include "dedup/state.h"

typedef struct grouping {
    gnomon_dedup *d;
    gnomon_sorter hashes; /* and the documents */
    gnomon_comparer comparer;
    uint64_t *pairs, *scratch; /* of documents of one hash, each with the first that has it */
    double *same;
    int64_t count, room;
    uint64_t *others; /* those of another set than the first, though of its hash */
    int64_t other_count, other_room;
} grouping;

/* Document b's set is that of a, which comes before it. */
static gnomon_status add_copy(gnomon_dedup *d, uint64_t pair)
{
    const int64_t b = (int64_t)(uint32_t)pair;
    d->firsts[b / 64] &= ~(UINT64_C(1) << (b % 64));
    /* of old documents, or a checkpoint has it */
    if ((int64_t)(pair >> 32) >= d->fresh || d->checkpoint.grouped) return GNOMON_OK;
    return gnomon_dedup_add_edge(d, (int64_t)(pair >> 32), b, 1);
}

static gnomon_status compare(grouping *g)
{
    /* in the order of the corpus, so that it is read from the front to the back */
    gnomon_sort_digits(g->pairs, g->scratch, g->count);
    GNOMON_TRY(
        gnomon_comparer_run(&g->comparer, g->pairs, g->count, GNOMON_COMPARE_EQUAL, g->same));
    for (int64_t at = 0; at < g->count; at++) {
        if (g->same[at] > 0) {
            GNOMON_TRY(add_copy(g->d, g->pairs[at]));
            continue;
        }
        if (g->other_count == g->other_room) {
            const int64_t room = 2 * g->other_room + 64;
            GNOMON_TRY(gnomon_grow(g->d->ctx, &g->others, g->other_count, room, sizeof *g->others,
                                   "documents"));
            g->other_room = room;
        }
        g->others[g->other_count++] = g->pairs[at];
    }
    g->count = 0;
    return GNOMON_OK;
}

/* Sets of one hash that aren't equal, which chance does not make: each is compared with the first
 * ones of the others, one by one. */
static gnomon_status group_others(grouping *g)
{
    gnomon_sort_numbers(g->others, g->other_count);
    for (int64_t begin = 0, end; begin < g->other_count; begin = end) {
        int64_t heads = begin; /* others[begin, heads) */
        for (end = begin; end < g->other_count && g->others[end] >> 32 == g->others[begin] >> 32;
             end++) {
            const uint64_t document = (uint32_t)g->others[end];
            double same = -1;
            for (int64_t h = begin; h < heads && same < 0; h++) {
                const uint64_t pair = (uint64_t)(uint32_t)g->others[h] << 32 | document;
                GNOMON_TRY(
                    gnomon_comparer_run(&g->comparer, &pair, 1, GNOMON_COMPARE_EQUAL, &same));
                if (same > 0) GNOMON_TRY(add_copy(g->d, pair));
            }
            if (same < 0) g->others[heads++] = g->others[end];
        }
    }
    return GNOMON_OK;
}

/* Where documents and their hashes are in memory all threads take part. */
typedef struct hashing {
    gnomon_dedup *d;
    const gnomon_document *documents;
    int64_t *places; /* of a task: documents that aren't empty, then the place of the first one's */
    gnomon_record *records;
} hashing;

enum { TASK = 4096 }; /* a multiple of 64: a task has words of bits of its own */
_Static_assert(TASK % 64 == 0, "no two tasks write to one word");

static bool is_empty(const gnomon_dedup *d, const gnomon_document *two)
{
    return (!d->options.exact || d->parts) && two[1].set_end == two[0].set_end;
}

static void count_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const hashing *h = arg;
    const int64_t end = gnomon_min((task + 1) * TASK, h->d->count);
    h->places[task] = 0;
    for (int64_t i = task * TASK; i < end; i++)
        h->places[task] += !is_empty(h->d, h->documents + i);
}

static void hash_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const hashing *h = arg;
    const int64_t end = gnomon_min((task + 1) * TASK, h->d->count);
    gnomon_record *to = h->records + h->places[task];
    for (int64_t i = task * TASK; i < end; i++) {
        if (is_empty(h->d, h->documents + i)) continue;
        gnomon_bit_set(h->d->firsts, i);
        *to++ = (gnomon_record){h->documents[i + 1].hash, (uint64_t)i};
    }
}

static gnomon_status hash_by_threads(grouping *g, bool *done)
{
    gnomon_dedup *d = g->d;
    hashing h = {.d = d};
    const int64_t tasks = gnomon_ceil_div(d->count, TASK);
    int64_t count = 0;
    *done = false;
    if (d->documents.fd >= 0) return GNOMON_OK;
    h.documents = (const gnomon_document *)(const void *)d->documents.data;
    GNOMON_TRY(gnomon_alloc(d->ctx, tasks, sizeof *h.places, "documents", &h.places));
    gnomon_parallel(d->ctx, tasks, count_some, &h);
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t here = h.places[task];
        h.places[task] = count;
        count += here;
    }
    const gnomon_status status = gnomon_sorter_claim(&g->hashes, count, &h.records);
    if (status == GNOMON_OK && h.records != NULL) {
        d->result.empty += d->count - count;
        gnomon_parallel(d->ctx, tasks, hash_some, &h);
        *done = true;
    }
    gnomon_free(d->ctx, h.places);
    return status;
}

/* Hashes of the sets that aren't empty, whose bits are set. */
static gnomon_status add_hashes(grouping *g)
{
    gnomon_dedup *d = g->d;
    bool done;
    GNOMON_TRY(hash_by_threads(g, &done));
    if (done) return GNOMON_OK;
    gnomon_window documents;
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(gnomon_sorter_expect(&g->hashes, d->count));
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    for (int64_t i = 0; i < d->count && status == GNOMON_OK; i++) {
        const gnomon_document *two;
        status = gnomon_dedup_document(&documents, i, &two);
        if (status != GNOMON_OK) break;
        if (is_empty(d, two)) {
            d->result.empty++;
            continue;
        }
        gnomon_bit_set(d->firsts, i);
        status = gnomon_sorter_add(&g->hashes, two[1].hash, (uint64_t)i);
    }
    gnomon_window_end(&documents);
    return status;
}

static gnomon_status group(grouping *g)
{
    enum { LEAST = 1 << 8, MOST = 1 << 22 };
    gnomon_dedup *d = g->d;
    const int64_t each = sizeof *g->pairs + sizeof *g->scratch + sizeof *g->same;
    const gnomon_record *r;
    uint64_t hash = 0, first = 0;
    bool any = false;
    GNOMON_TRY(add_hashes(g));
    GNOMON_TRY(gnomon_sorter_finish(&g->hashes));
    g->room = gnomon_max(LEAST, gnomon_min(MOST, gnomon_memory_limit(d->ctx) / 8 / each));
    g->room = gnomon_min(g->room, gnomon_max(1, g->hashes.count));
    GNOMON_TRY(gnomon_alloc(d->ctx, g->room, sizeof *g->pairs, "documents", &g->pairs));
    GNOMON_TRY(gnomon_alloc(d->ctx, g->room, sizeof *g->scratch, "documents", &g->scratch));
    GNOMON_TRY(gnomon_alloc(d->ctx, g->room, sizeof *g->same, "documents", &g->same));
    GNOMON_TRY(gnomon_comparer_open(d, &g->comparer));
    for (;;) {
        GNOMON_TRY(gnomon_sorter_next(&g->hashes, &r));
        if (r == NULL) break;
        if (!any || r->key != hash) {
            any = true;
            hash = r->key;
            first = r->value;
            continue;
        }
        if (g->count == g->room) GNOMON_TRY(compare(g));
        g->pairs[g->count++] = first << 32 | r->value;
    }
    GNOMON_TRY(compare(g));
    return group_others(g);
}

/* Sets and members that are distinct. */
static gnomon_status count_distinct(gnomon_dedup *d)
{
    gnomon_window documents;
    gnomon_status status = GNOMON_OK;
    d->distinct = d->result.ngrams = 0;
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    for (int64_t i = 0; i < d->count && status == GNOMON_OK; i++) {
        const gnomon_document *two;
        if (!gnomon_bit(d->firsts, i)) continue;
        status = gnomon_dedup_document(&documents, i, &two);
        d->distinct++;
        if (status == GNOMON_OK && !d->options.exact)
            d->result.ngrams += (two[1].set_end - two[0].set_end) / (int64_t)sizeof(uint64_t);
    }
    gnomon_window_end(&documents);
    d->result.distinct = d->distinct;
    return status;
}

gnomon_status gnomon_dedup_group(gnomon_dedup *d)
{
    grouping g = {.d = d};
    GNOMON_TRY(gnomon_alloc_zero(d->ctx, gnomon_dedup_words(d), sizeof *d->firsts, "documents",
                                 &d->firsts));
    gnomon_sorter_start(&g.hashes, d->ctx, d->work, gnomon_memory_limit(d->ctx) / 8);
    gnomon_status status = group(&g);
    gnomon_sorter_end(&g.hashes);
    gnomon_comparer_close(&g.comparer);
    gnomon_free(d->ctx, g.pairs);
    gnomon_free(d->ctx, g.scratch);
    gnomon_free(d->ctx, g.same);
    gnomon_free(d->ctx, g.others);
    return status == GNOMON_OK ? count_distinct(d) : status;
}
