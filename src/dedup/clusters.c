/* Pairs in order, connected components, and the document of each that is kept. */
#include "base/arithmetic.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"

#include <string.h>

/* Documents that are connected: each points to an earlier one of its cluster, the first to itself.
 * gnomon_clusters of a join keeps 64-bit numbers and sizes, four times the memory. */
typedef struct joining {
    gnomon_dedup *d;
    uint32_t *parents;
    uint64_t *several; /* bits: of a cluster of two or more */
} joining;

static uint32_t root_of(uint32_t *parents, uint32_t i)
{
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

static void connect(joining *j, uint32_t a, uint32_t b)
{
    a = root_of(j->parents, a);
    b = root_of(j->parents, b);
    if (a < b)
        j->parents[b] = a;
    else
        j->parents[a] = b;
}

/* The pairs, each once, in order. */
static gnomon_status take_pairs(joining *j)
{
    gnomon_dedup *d = j->d;
    const gnomon_record *r;
    uint64_t last = 0; /* is no pair: i < j */
    GNOMON_TRY(gnomon_sorter_finish(&d->edges));
    for (;;) {
        gnomon_dedup_pair pair;
        GNOMON_TRY(gnomon_sorter_next(&d->edges, &r));
        if (r == NULL) break;
        if (r->key == last) continue;
        last = r->key;
        pair.i = (uint32_t)(r->key >> 32);
        pair.j = (uint32_t)r->key;
        memcpy(&pair.similarity, &r->value, sizeof pair.similarity);
        if (pair.similarity < 1)
            d->result.histogram[(int)(pair.similarity * GNOMON_DEDUP_HISTOGRAM)]++;
        GNOMON_TRY(gnomon_store_append(&d->pairs, &pair, sizeof pair));
        if (++d->result.pairs % 4096 == 0)
            GNOMON_TRY(gnomon_progress(d->ctx, "clustering", d->result.pairs, d->edges.count));
        connect(j, pair.i, pair.j);
    }
    gnomon_sorter_end(&d->edges);
    return gnomon_store_seal(&d->pairs);
}

static void add_large(gnomon_dedup_result *r, int64_t size)
{
    int at = GNOMON_DEDUP_LARGEST;
    for (; at > 0 && r->largest[at - 1] < size; at--)
        if (at < GNOMON_DEDUP_LARGEST) r->largest[at] = r->largest[at - 1];
    if (at < GNOMON_DEDUP_LARGEST) r->largest[at] = size;
}

/* A cluster's documents by its first one, and their bytes. */
static gnomon_status list_members(joining *j, gnomon_sorter *members)
{
    gnomon_dedup *d = j->d;
    gnomon_window documents;
    gnomon_status status = GNOMON_OK;
    for (int64_t i = 0; i < d->count; i++) {
        const uint32_t root = j->parents[i] = root_of(j->parents, (uint32_t)i);
        if (root == (uint32_t)i) continue;
        gnomon_bit_set(j->several, i);
        gnomon_bit_set(j->several, root);
    }
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    for (int64_t i = 0; i < d->count && status == GNOMON_OK; i++) {
        const gnomon_document *two;
        if (!gnomon_bit(j->several, i)) continue;
        status = gnomon_dedup_document(&documents, i, &two);
        if (status == GNOMON_OK)
            status = gnomon_sorter_add(members, (uint64_t)j->parents[i] << 32 | (uint64_t)i,
                                       (uint64_t)two[1].bytes);
    }
    gnomon_window_end(&documents);
    return status;
}

/* The first document of a cluster comes to point to the one that is kept, or to the first old one:
 * the others point to it. Old ones come after all others. */
static gnomon_status choose(joining *j, gnomon_sorter *members)
{
    gnomon_dedup *d = j->d;
    const gnomon_record *r;
    uint64_t best_bytes = 0;
    uint32_t root = 0, best = 0;
    int64_t size = 0, fresh = 0;
    GNOMON_TRY(gnomon_sorter_finish(members));
    for (bool end = false; !end;) {
        GNOMON_TRY(gnomon_sorter_next(members, &r));
        end = r == NULL;
        if (size > 0 && (end || (uint32_t)(r->key >> 32) != root)) {
            j->parents[root] = best;
            d->result.clusters++;
            d->result.clustered += size;
            add_large(&d->result, size);
            if (best >= d->fresh) d->result.held += fresh;
            size = fresh = 0;
        }
        if (end) break;
        const bool old = (uint32_t)r->key >= d->fresh;
        fresh += !old;
        if (size++ == 0 ||
            (old ? best < d->fresh
                 : d->options.keep == GNOMON_DEDUP_LONGEST && r->value > best_bytes)) {
            root = (uint32_t)(r->key >> 32);
            best = (uint32_t)r->key;
            best_bytes = r->value;
        }
    }
    return GNOMON_OK;
}

static gnomon_status represent(joining *j)
{
    enum { BLOCK = 1024 };
    gnomon_dedup *d = j->d;
    gnomon_window documents;
    gnomon_status status = GNOMON_OK;
    gnomon_window_start(&documents, &d->documents, GNOMON_DOCUMENT_WINDOW);
    for (int64_t first = 0; first < d->fresh && status == GNOMON_OK; first += BLOCK) {
        int64_t best[BLOCK];
        const gnomon_document *document;
        const int64_t count = gnomon_min(BLOCK, d->fresh - first), each = sizeof *document;
        status = gnomon_window_get(&documents, first * each, (count + 1) * each, &document);
        for (int64_t i = 0; i < count && status == GNOMON_OK; i++) {
            best[i] = j->parents[first + i];
            if (best[i] < first + i) best[i] = j->parents[best[i]];
            if (best[i] != first + i) continue;
            d->result.kept++;
            d->result.kept_bytes += document[i + 1].bytes;
        }
        if (status == GNOMON_OK)
            status = gnomon_store_append(&d->representatives, best, count * (int64_t)sizeof *best);
    }
    gnomon_window_end(&documents);
    return status == GNOMON_OK ? gnomon_store_seal(&d->representatives) : status;
}

static gnomon_status cluster(joining *j)
{
    gnomon_dedup *d = j->d;
    gnomon_sorter members;
    GNOMON_TRY(gnomon_alloc(d->ctx, d->count, sizeof *j->parents, "clusters", &j->parents));
    GNOMON_TRY(gnomon_alloc_zero(d->ctx, gnomon_dedup_words(d), sizeof *j->several, "clusters",
                                 &j->several));
    for (int64_t i = 0; i < d->count; i++)
        j->parents[i] = (uint32_t)i;
    GNOMON_TRY(take_pairs(j));
    gnomon_sorter_start(&members, d->ctx, d->work, gnomon_memory_limit(d->ctx) / 8);
    gnomon_status status = list_members(j, &members);
    if (status == GNOMON_OK) status = choose(j, &members);
    gnomon_sorter_end(&members);
    return status == GNOMON_OK ? represent(j) : status;
}

gnomon_status gnomon_dedup_cluster(gnomon_dedup *d)
{
    joining j = {.d = d};
    const gnomon_status status = cluster(&j);
    gnomon_free(d->ctx, j.parents);
    gnomon_free(d->ctx, j.several);
    return status;
}
