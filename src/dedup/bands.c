/* Bands: keys of rows, sorted; sets of one key are a bucket. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/minhash.h"
#include "dedup/sort.h"
#include "dedup/state.h"

#include <string.h>

enum { TASK = 64, HEADS = 64, BLOCK = 512 };

typedef struct banding {
    gnomon_dedup *d;
    gnomon_isa isa;
    int64_t first, count; /* bands at a time */
    int64_t skipped;      /* functions of the first block that belong to earlier bands */
    gnomon_minhash *blocks;
    int64_t block_count;
    uint32_t *least;   /* block_count x LANES a worker */
    uint64_t *keys;    /* distinct a band: the key above the set's number */
    uint64_t *scratch; /* distinct a worker */
    gnomon_candidates candidates;
    double *near; /* BLOCK x HEADS: similarities with the heads, or negative */
} banding;

static void hash_some(void *arg, int64_t task, int worker)
{
    const banding *b = arg;
    const int64_t rows = b->d->result.rows, sets = b->d->distinct;
    uint32_t *least = b->least + worker * b->block_count * GNOMON_MINHASH_LANES;
    for (int64_t s = task * TASK; s < gnomon_min((task + 1) * TASK, sets); s++) {
        const gnomon_set set = gnomon_dedup_set(b->d, s);
        gnomon_minhash_set(b->isa, b->blocks, b->block_count, set.members, set.count, least);
        const uint32_t *row = least + b->skipped;
        for (int64_t band = 0; band < b->count; band++) {
            uint64_t key = 0;
            for (int64_t r = 0; r < rows; r++)
                key = (key ^ *row++) * UINT64_C(0x9e3779b97f4a7c15), key ^= key >> 32;
            b->keys[band * sets + s] = gnomon_mix64(key) >> 32 << 32 | (uint64_t)s;
        }
    }
}

static void sort_band(void *arg, int64_t task, int worker)
{
    const banding *b = arg;
    const int64_t sets = b->d->distinct;
    gnomon_sort_digits(b->keys + task * sets, b->scratch + worker * sets, sets);
}

/* ---- buckets of many sets ---- */

/* Sets of a bucket meet its heads: sets, at most HEADS, none of which was near a head before it. A
 * block of them meets the heads at once; what is near none of those meets the block's own new
 * heads. */
typedef struct meeting {
    const banding *b;
    const uint64_t *bucket; /* the block's */
    int64_t count, head_count;
    const uint32_t *heads;
} meeting;

static void meet_heads(void *arg, int64_t task, int worker)
{
    (void)worker;
    const meeting *m = arg;
    const gnomon_dedup *d = m->b->d;
    const gnomon_set set = gnomon_dedup_set(d, (int64_t)(uint32_t)m->bucket[task]);
    double *near = m->b->near + task * HEADS;
    for (int64_t h = 0; h < m->head_count; h++)
        if (!gnomon_dedup_near(d, gnomon_dedup_set(d, m->heads[h]), set, &near[h])) near[h] = -1;
}

static gnomon_status meet_block(banding *b, const uint64_t *bucket, int64_t count, uint32_t *heads,
                                int64_t *head_count, int64_t *compared)
{
    gnomon_dedup *d = b->d;
    meeting m = {b, bucket, count, *head_count, heads};
    gnomon_parallel(d->ctx, count, meet_heads, &m);
    for (int64_t at = 0; at < count; at++) {
        const int64_t s = (int64_t)(uint32_t)bucket[at];
        bool any = false;
        for (int64_t h = 0; h < *head_count; h++) {
            double similarity = h < m.head_count ? b->near[at * HEADS + h] : -1;
            if (h >= m.head_count && !gnomon_dedup_near(d, gnomon_dedup_set(d, heads[h]),
                                                        gnomon_dedup_set(d, s), &similarity))
                similarity = -1;
            if (similarity < 0) continue;
            GNOMON_TRY(gnomon_dedup_add_edge(d, heads[h], s, similarity));
            any = true;
        }
        *compared += *head_count;
        if (!any && *head_count < HEADS) heads[(*head_count)++] = (uint32_t)s;
    }
    return gnomon_progress(d->ctx, "verifying", b->first, d->result.bands);
}

static gnomon_status large_bucket(banding *b, const uint64_t *bucket, int64_t count)
{
    uint32_t heads[HEADS];
    int64_t head_count = 0, compared = 0;
    for (int64_t at = 0; at < count; at += BLOCK)
        GNOMON_TRY(meet_block(b, bucket + at, gnomon_min(BLOCK, count - at), heads, &head_count,
                              &compared));
    /* count is below 2^32 */
    const int64_t all = count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
    b->d->result.large++;
    b->d->result.uncompared += all - compared;
    b->d->result.candidates += compared;
    return GNOMON_OK;
}

/* ---- all buckets ---- */

static gnomon_status scan_band(banding *b, const uint64_t *keys)
{
    gnomon_dedup *d = b->d;
    for (int64_t begin = 0, end; begin < d->distinct; begin = end) {
        for (end = begin + 1; end < d->distinct && keys[end] >> 32 == keys[begin] >> 32;)
            end++;
        if (end - begin > d->options.bucket) {
            GNOMON_TRY(large_bucket(b, keys + begin, end - begin));
            continue;
        }
        for (int64_t i = begin; i < end; i++)
            for (int64_t j = i + 1; j < end; j++)
                GNOMON_TRY(
                    gnomon_candidates_add(d, &b->candidates, (uint32_t)keys[i], (uint32_t)keys[j]));
    }
    return GNOMON_OK;
}

static gnomon_status some_bands(banding *b)
{
    gnomon_dedup *d = b->d;
    const int64_t rows = d->result.rows, begin = b->first * rows;
    const int64_t block = begin / GNOMON_MINHASH_LANES;
    b->skipped = begin % GNOMON_MINHASH_LANES;
    b->block_count = gnomon_ceil_div(b->skipped + b->count * rows, GNOMON_MINHASH_LANES);
    for (int64_t k = 0; k < b->block_count; k++)
        gnomon_minhash_block(&b->blocks[k], d->options.seed, block + k);
    double clock = gnomon_seconds();
    gnomon_parallel(d->ctx, gnomon_ceil_div(d->distinct, TASK), hash_some, b);
    gnomon_parallel(d->ctx, b->count, sort_band, b);
    d->result.hash_seconds += gnomon_lap(&clock);
    for (int64_t band = 0; band < b->count; band++)
        GNOMON_TRY(scan_band(b, b->keys + band * d->distinct));
    d->result.verify_seconds += gnomon_lap(&clock);
    return gnomon_progress(d->ctx, "hashing", b->first + b->count, d->result.bands);
}

static gnomon_status all_bands(banding *b)
{
    gnomon_dedup *d = b->d;
    const int64_t threads = gnomon_context_threads(d->ctx), bands = d->result.bands;
    const int64_t fit =
        gnomon_memory_limit(d->ctx) / 4 / (int64_t)sizeof *b->keys / gnomon_max(1, d->distinct);
    const int64_t most = gnomon_max(1, gnomon_min(bands, fit - threads));
    const int64_t blocks = gnomon_ceil_div(most * d->result.rows, GNOMON_MINHASH_LANES) + 1;
    GNOMON_TRY(gnomon_alloc(d->ctx, blocks, sizeof *b->blocks, "hash functions", &b->blocks));
    GNOMON_TRY(gnomon_alloc(d->ctx,
                            gnomon_times(threads, gnomon_times(blocks, GNOMON_MINHASH_LANES)),
                            sizeof *b->least, "signatures", &b->least));
    GNOMON_TRY(
        gnomon_alloc(d->ctx, gnomon_times(most, d->distinct), sizeof *b->keys, "keys", &b->keys));
    GNOMON_TRY(gnomon_alloc(d->ctx, gnomon_times(threads, d->distinct), sizeof *b->scratch, "keys",
                            &b->scratch));
    GNOMON_TRY(gnomon_alloc(d->ctx, BLOCK * HEADS, sizeof *b->near, "buckets", &b->near));
    GNOMON_TRY(gnomon_candidates_open(d, &b->candidates));
    for (b->first = 0; b->first < bands; b->first += b->count) {
        b->count = gnomon_min(most, bands - b->first);
        GNOMON_TRY(some_bands(b));
    }
    double clock = gnomon_seconds();
    GNOMON_TRY(gnomon_candidates_verify(d, &b->candidates));
    d->result.verify_seconds += gnomon_lap(&clock);
    return GNOMON_OK;
}

gnomon_status gnomon_dedup_bands(gnomon_dedup *d)
{
    banding b = {.d = d, .isa = gnomon_context_isa_level(d->ctx)};
    const gnomon_status status = all_bands(&b);
    gnomon_candidates_close(d, &b.candidates);
    gnomon_free(d->ctx, b.blocks);
    gnomon_free(d->ctx, b.least);
    gnomon_free(d->ctx, b.keys);
    gnomon_free(d->ctx, b.scratch);
    gnomon_free(d->ctx, b.near);
    return status;
}
