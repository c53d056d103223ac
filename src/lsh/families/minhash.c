/* The least hashes of sets. */
#include "base/threads.h"
#include "lsh/families/family.h"
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

static gnomon_status least_hashes(gnomon_context *ctx, const gnomon_hasher *h,
                                  const gnomon_points *points, int64_t first, int64_t n,
                                  void *products)
{
    sets s = {h, points->sparse, first, products};
    gnomon_parallel(ctx, n, hash_set, &s);
    return GNOMON_OK;
}

void gnomon_hash_least(const gnomon_hash_batch *b, int64_t point, int64_t at)
{
    const uint32_t(*least)[2] = (const uint32_t(*)[2])(const void *)((const uint32_t *)b->products +
                                                                     point * b->h->products);
    for (int64_t i = 0; i < b->h->f.count; i++, at++) {
        b->out->values[at] = (int32_t)least[i][0];
        if (b->out->others) gnomon_set_other(b, at, 0, (int32_t)least[i][1], 1);
    }
}

double gnomon_similarity_collision(const gnomon_lsh_functions *f, double distance)
{
    (void)f;
    return 1 - distance;
}

const gnomon_family_row gnomon_family_row_minhash = {
    .family = GNOMON_LSH_MINHASH,
    .name = "minhash",
    .points = GNOMON_POINTS_SPARSE,
    .refusal = "sets as sparse points",
    .any_dim = true,
    .others = 1,
    .products = 2,
    .most = 1,
    .members = 1,
    .project = least_hashes,
    .hash = gnomon_hash_least,
    .collision = gnomon_similarity_collision,
};
