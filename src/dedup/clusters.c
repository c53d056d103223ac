/* Pairs in order, connected components, and the document of each that is kept. */
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/state.h"

static uint64_t key_of(const gnomon_dedup_pair *p)
{
    return (uint64_t)p->i << 32 | p->j;
}

/* In place, by a byte of (i, j) at a time from the highest (McIlroy, Bostic & McIlroy 1993). */
static void sort_pairs(gnomon_dedup_pair *p, int64_t count, int shift)
{
    enum { FEW = 32, VALUES = 256 };
    if (count <= FEW) {
        for (int64_t i = 1; i < count; i++) {
            const gnomon_dedup_pair x = p[i];
            int64_t at = i;
            for (; at > 0 && key_of(&p[at - 1]) > key_of(&x); at--)
                p[at] = p[at - 1];
            p[at] = x;
        }
        return;
    }
    int64_t next[VALUES] = {0}, ends[VALUES];
    for (int64_t i = 0; i < count; i++)
        next[key_of(&p[i]) >> shift & 255]++;
    for (int64_t v = 0, at = 0; v < VALUES; v++) {
        const int64_t here = next[v];
        next[v] = at;
        ends[v] = at += here;
    }
    for (int64_t v = 0; v < VALUES; v++) {
        while (next[v] < ends[v]) {
            gnomon_dedup_pair x = p[next[v]];
            int64_t to = (int64_t)(key_of(&x) >> shift & 255);
            while (to != v) {
                const gnomon_dedup_pair other = p[next[to]];
                p[next[to]++] = x;
                x = other;
                to = (int64_t)(key_of(&x) >> shift & 255);
            }
            p[next[v]++] = x;
        }
    }
    for (int64_t v = 0; v < VALUES && shift > 0; v++) {
        const int64_t begin = v > 0 ? ends[v - 1] : 0;
        sort_pairs(p + begin, ends[v] - begin, shift - 8);
    }
}

static gnomon_status add_copies(gnomon_dedup *d)
{
    for (int64_t i = 0; i < d->count; i++) {
        if (d->group[i] == GNOMON_NO_GROUP || d->firsts[d->group[i]] == (uint32_t)i) continue;
        const gnomon_dedup_pair pair = {d->firsts[d->group[i]], (uint32_t)i, 1};
        GNOMON_TRY(gnomon_store_append(&d->edges, &pair, sizeof pair));
    }
    return gnomon_store_seal(&d->edges);
}

static void drop_repeated(gnomon_dedup *d)
{
    gnomon_dedup_pair *pairs = (gnomon_dedup_pair *)(void *)d->edges.data;
    const int64_t count = d->edges.size / (int64_t)sizeof *pairs;
    int64_t kept = 0;
    sort_pairs(pairs, count, 56);
    for (int64_t at = 0; at < count; at++) {
        if (kept > 0 && key_of(&pairs[at]) == key_of(&pairs[kept - 1])) continue;
        pairs[kept++] = pairs[at];
        if (pairs[at].similarity < 1)
            d->result.histogram[(int)(pairs[at].similarity * GNOMON_DEDUP_HISTOGRAM)]++;
    }
    d->result.pairs = kept;
}

static bool better(const gnomon_dedup *d, int64_t document, int64_t than)
{
    return d->options.keep == GNOMON_DEDUP_LONGEST && d->bytes[document] > d->bytes[than];
}

static void add_large(gnomon_dedup_result *r, int64_t size)
{
    int at = GNOMON_DEDUP_LARGEST;
    for (; at > 0 && r->largest[at - 1] < size; at--)
        if (at < GNOMON_DEDUP_LARGEST) r->largest[at] = r->largest[at - 1];
    if (at < GNOMON_DEDUP_LARGEST) r->largest[at] = size;
}

/* best and sizes have an entry for each of the clusters. */
static void represent(gnomon_dedup *d, const int64_t *labels, int64_t clusters, int64_t *best,
                      int64_t *sizes)
{
    gnomon_dedup_result *r = &d->result;
    for (int64_t c = 0; c < clusters; c++)
        best[c] = -1;
    for (int64_t i = 0; i < d->count; i++) {
        const int64_t c = labels[i];
        sizes[c]++;
        if (best[c] < 0 || better(d, i, best[c])) best[c] = i;
    }
    for (int64_t i = 0; i < d->count; i++)
        d->representatives[i] = best[labels[i]];
    r->kept = clusters;
    for (int64_t c = 0; c < clusters; c++) {
        r->kept_bytes += d->bytes[best[c]];
        if (sizes[c] < 2) continue;
        r->clusters++;
        r->clustered += sizes[c];
        add_large(r, sizes[c]);
    }
}

static gnomon_status label(gnomon_dedup *d, gnomon_clusters *clusters, int64_t *labels)
{
    const gnomon_dedup_pair *pairs = (const gnomon_dedup_pair *)(const void *)d->edges.data;
    int64_t *best = NULL, *sizes = NULL;
    for (int64_t at = 0; at < d->result.pairs; at++)
        GNOMON_TRY(gnomon_clusters_add(clusters, pairs[at].i, pairs[at].j));
    const int64_t count = gnomon_clusters_label(clusters, labels, NULL);
    gnomon_status status = gnomon_alloc(d->ctx, count, sizeof *best, "clusters", &best);
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(d->ctx, count, sizeof *sizes, "clusters", &sizes);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->count, sizeof *d->representatives, "clusters",
                              &d->representatives);
    if (status == GNOMON_OK) represent(d, labels, count, best, sizes);
    gnomon_free(d->ctx, best);
    gnomon_free(d->ctx, sizes);
    return status;
}

gnomon_status gnomon_dedup_cluster(gnomon_dedup *d)
{
    gnomon_clusters *clusters = NULL;
    int64_t *labels = NULL;
    GNOMON_TRY(add_copies(d));
    drop_repeated(d);
    if (d->count == 0) return GNOMON_OK;
    gnomon_status status = gnomon_clusters_create(d->ctx, d->count, &clusters);
    if (status == GNOMON_OK)
        status = gnomon_alloc(d->ctx, d->count, sizeof *labels, "clusters", &labels);
    if (status == GNOMON_OK) status = label(d, clusters, labels);
    gnomon_free(d->ctx, labels);
    gnomon_clusters_destroy(clusters);
    return status;
}
