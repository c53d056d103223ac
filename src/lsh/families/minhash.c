/* The least hashes of sets. */
#include "base/threads.h"
#include "lsh/hasher.h"
#include "operator/philox.h"
#include "points/rows.h"

typedef struct sets {
    const gnomon_hasher *h;
    const gnomon_csr *points;
    int64_t first;
    uint32_t *products;
} sets;

static void offer(uint32_t least[2], uint32_t hash)
{
    if (hash < least[0]) {
        least[1] = least[0];
        least[0] = hash;
    } else if (hash < least[1] && hash != least[0]) {
        /* a member that stands twice is one member */
        least[1] = hash;
    }
}

static void hash_set(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sets *s = arg;
    const gnomon_csr *m = s->points;
    const int64_t count = s->h->f.count, row = s->first + task;
    uint32_t(*least)[2] = (uint32_t(*)[2])(s->products + task * 2 * count);
    for (int64_t i = 0; i < count; i++)
        least[i][0] = least[i][1] = UINT32_MAX;
    for (int64_t e = m->offsets[row] - m->offsets[0]; e < m->offsets[row + 1] - m->offsets[0];
         e++) {
        if (gnomon_value_as_f64(m->values, m->dtype, e) == 0) continue;
        for (int64_t i = 0; i < count; i += 4) {
            const gnomon_words w = gnomon_call(&s->h->key, GNOMON_TAG_LSH_MEMBER, (uint32_t)(i / 4),
                                               (uint64_t)m->indices[e]);
            for (int64_t j = i; j < i + 4 && j < count; j++)
                offer(least[j], w.w[j - i]);
        }
    }
}

void gnomon_minhash_products(gnomon_context *ctx, const gnomon_hasher *h, const gnomon_csr *points,
                             int64_t first, int64_t n, uint32_t *products)
{
    sets s = {h, points, first, products};
    gnomon_parallel(ctx, n, hash_set, &s);
}
