/* Bands: keys of rows, sorted; sets of one key are a bucket. Where not all keys of some bands fit
 * in memory, those of as many sets as do become sorted runs in a temporary file, which are merged.
 */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "dedup/device/keys.h"
#include "dedup/minhash.h"
#include "dedup/sort.h"
#include "dedup/state.h"

#include <string.h>

enum { TASK = 64, HEADS = 64, BLOCK = 512 };
enum { PART_BITS = 6, PARTS = 1 << PART_BITS, SLICES = 16, MANY = 1 << 15 };

typedef struct banding {
    gnomon_dedup *d;
    gnomon_isa isa;
    int64_t first, count; /* bands at a time */
    int64_t most;         /* the most of them */
    int64_t skipped;      /* functions of the first block that belong to earlier bands */
    gnomon_minhash *blocks;
    int64_t block_count;
    gnomon_keys there;  /* the device's part; constants NULL: it has none */
    uint32_t *least;    /* block_count x LANES a worker */
    int64_t room, held; /* sets whose keys fit in memory, and those that are there */
    uint64_t *keys;     /* room a band: the key above the set's document */
    uint64_t *scratch;  /* room a worker */
    int64_t *places;    /* SLICES x PARTS a worker: how many keys, then where the next one goes */
    const gnomon_scan *at; /* sets that are hashed */
    int64_t scanned;
    gnomon_store runs; /* of all these bands, one chunk of sets after the other */
    int64_t chunks;    /* in runs: all of room sets but the last */
    int64_t key_bytes; /* memory for keys */
    gnomon_candidates candidates;
    gnomon_fetch members, heads;
    double *near; /* BLOCK x HEADS: similarities with the heads, or negative */
} banding;

static void hash_some(void *arg, int64_t task, int worker)
{
    const banding *b = arg;
    const int64_t rows = b->d->result.rows;
    uint32_t *least = b->least + worker * b->block_count * GNOMON_MINHASH_LANES;
    for (int64_t s = task * TASK; s < gnomon_min((task + 1) * TASK, b->scanned); s++) {
        const gnomon_set set = b->at->fetch.sets[s];
        gnomon_minhash_set(b->isa, b->blocks, b->block_count, set.members, gnomon_set_count(set),
                           least);
        const uint32_t *row = least + b->skipped;
        for (int64_t band = 0; band < b->count; band++) {
            uint64_t key = 0;
            for (int64_t r = 0; r < rows; r++)
                key = (key ^ *row++) * UINT64_C(0x9e3779b97f4a7c15), key ^= key >> 32;
            b->keys[band * b->room + b->held + s] =
                gnomon_mix64(key) >> 32 << 32 | (uint64_t)b->at->documents[s];
        }
    }
}

/* Sets of a band stand in their order: it is their keys that are sorted. */
static void sort_band(void *arg, int64_t task, int worker)
{
    const banding *b = arg;
    gnomon_sort_upper(b->keys + task * b->room, b->scratch + worker * b->room, b->held);
}

/* Of fewer bands than threads each is divided into parts by its keys, a slice a task, and the parts
 * are sorted. */
static int part_of(uint64_t key)
{
    return (int)(key >> (64 - PART_BITS));
}

static int64_t slice_begin(const banding *b, int64_t slice)
{
    return b->held * slice / SLICES;
}

static void count_slice(void *arg, int64_t task, int worker)
{
    (void)worker;
    const banding *b = arg;
    const uint64_t *keys = b->keys + task / SLICES * b->room;
    int64_t *counts = b->places + task * PARTS;
    memset(counts, 0, PARTS * sizeof *counts);
    for (int64_t i = slice_begin(b, task % SLICES); i < slice_begin(b, task % SLICES + 1); i++)
        counts[part_of(keys[i])]++;
}

static void move_slice(void *arg, int64_t task, int worker)
{
    (void)worker;
    const banding *b = arg;
    const uint64_t *keys = b->keys + task / SLICES * b->room;
    uint64_t *to = b->scratch + task / SLICES * b->room;
    int64_t *places = b->places + task * PARTS;
    for (int64_t i = slice_begin(b, task % SLICES); i < slice_begin(b, task % SLICES + 1); i++)
        to[places[part_of(keys[i])]++] = keys[i];
}

/* The last slice's place is where a part has come to its end. */
static void sort_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const banding *b = arg;
    const int64_t *ends = b->places + (task / PARTS * SLICES + SLICES - 1) * PARTS;
    const int64_t part = task % PARTS, begin = part > 0 ? ends[part - 1] : 0;
    const int64_t at = task / PARTS * b->room + begin, count = ends[part] - begin;
    gnomon_sort_upper(b->scratch + at, b->keys + at, count);
    if (count > 0) memcpy(b->keys + at, b->scratch + at, (size_t)count * sizeof *b->keys);
}

static void sort_bands(banding *b)
{
    gnomon_context *ctx = b->d->ctx;
    if (b->count >= gnomon_context_threads(ctx) || b->held < MANY) {
        gnomon_parallel(ctx, b->count, sort_band, b);
        return;
    }
    gnomon_parallel(ctx, b->count * SLICES, count_slice, b);
    for (int64_t band = 0; band < b->count; band++) {
        int64_t at = 0;
        for (int64_t part = 0; part < PARTS; part++) {
            for (int64_t slice = 0; slice < SLICES; slice++) {
                int64_t *place = &b->places[(band * SLICES + slice) * PARTS + part];
                const int64_t here = *place;
                *place = at;
                at += here;
            }
        }
    }
    gnomon_parallel(ctx, b->count * SLICES, move_slice, b);
    gnomon_parallel(ctx, b->count * PARTS, sort_part, b);
}

/* ---- buckets of many sets ---- */

/* Sets of a bucket meet its heads: sets, at most HEADS, none of which was near a head before it. A
 * block of them meets the heads at once, which are read in parts; what is near none of those meets
 * the block's own new heads. */
typedef struct bucket {
    uint64_t key;
    uint32_t *documents; /* those that have not met the heads */
    int64_t count, room;
    bool large;
    uint32_t heads[HEADS];
    int64_t head_count, members, compared;
    int64_t old; /* of the members */
} bucket;

typedef struct meeting {
    const banding *b;
    int64_t first, count; /* heads */
} meeting;

static void meet_heads(void *arg, int64_t task, int worker)
{
    (void)worker;
    const meeting *m = arg;
    const gnomon_set set = m->b->members.sets[task];
    double *near = m->b->near + task * HEADS + m->first;
    for (int64_t h = 0; h < m->count; h++)
        if (!gnomon_dedup_near(m->b->d, m->b->heads.sets[h], set, &near[h])) near[h] = -1;
}

/* Members of the bucket, whose sets have been read. */
static gnomon_status meet_block(banding *b, bucket *k, const uint32_t *documents, int64_t count)
{
    gnomon_dedup *d = b->d;
    const int64_t before = k->head_count;
    int64_t places[HEADS]; /* of new heads, in the block */
    meeting m = {.b = b};
    for (m.first = 0; m.first < before; m.first += m.count) {
        GNOMON_TRY(gnomon_fetch_some(&b->heads, k->heads + m.first, before - m.first, 1, &m.count));
        gnomon_parallel(d->ctx, count, meet_heads, &m);
    }
    for (int64_t at = 0; at < count; at++) {
        bool any = false;
        for (int64_t h = 0; h < k->head_count; h++) {
            double similarity = h < before ? b->near[at * HEADS + h] : -1;
            if (h >= before &&
                !gnomon_dedup_near(d, b->members.sets[places[h]], b->members.sets[at], &similarity))
                similarity = -1;
            if (similarity < 0) continue;
            GNOMON_TRY(gnomon_dedup_add_edge(d, k->heads[h], documents[at], similarity));
            any = true;
        }
        k->compared += k->head_count;
        /* pairs of old documents are not looked for */
        if (any || k->head_count == HEADS || documents[at] >= d->fresh) continue;
        places[k->head_count] = at;
        k->heads[k->head_count++] = documents[at];
    }
    return gnomon_progress(d->ctx, "verifying", b->first, d->result.bands);
}

static gnomon_status meet(banding *b, bucket *k)
{
    for (int64_t at = 0, taken; at < k->count; at += taken) {
        GNOMON_TRY(gnomon_fetch_some(&b->members, k->documents + at,
                                     gnomon_min(BLOCK, k->count - at), 1, &taken));
        GNOMON_TRY(meet_block(b, k, k->documents + at, taken));
    }
    k->count = 0;
    return GNOMON_OK;
}

/* ---- all buckets ---- */

static int64_t pairs_of(int64_t n)
{
    return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
}

static gnomon_status end_bucket(banding *b, bucket *k)
{
    gnomon_dedup *d = b->d;
    if (k->large) {
        GNOMON_TRY(meet(b, k));
        /* members are below 2^32 */
        d->result.large++;
        d->result.uncompared += pairs_of(k->members) - pairs_of(k->old) - k->compared;
        d->result.candidates += k->compared;
    }
    for (int64_t i = 0; i < k->count && k->documents[i] < d->fresh; i++)
        for (int64_t j = i + 1; j < k->count; j++)
            GNOMON_TRY(gnomon_candidates_add(d, &b->candidates, k->documents[i], k->documents[j]));
    k->count = k->head_count = k->members = k->old = k->compared = 0;
    k->large = false;
    return GNOMON_OK;
}

static inline gnomon_status add_key(banding *b, bucket *k, uint64_t key)
{
    if (key >> 32 != k->key) {
        if (k->members == 1)
            k->count = k->members = k->old = 0; /* the most of them */
        else
            GNOMON_TRY(end_bucket(b, k));
        k->key = key >> 32;
    }
    if (k->members == b->d->options.bucket) k->large = true;
    if (k->count == k->room) GNOMON_TRY(meet(b, k));
    k->documents[k->count++] = (uint32_t)key;
    k->members++;
    k->old += (int64_t)(uint32_t)key >= b->d->fresh;
    return GNOMON_OK;
}

static gnomon_status scan_merged(banding *b, bucket *k, int64_t band)
{
    gnomon_merge m = {0};
    int64_t *begins = NULL, *ends = NULL;
    gnomon_context *ctx = b->d->ctx;
    gnomon_status status = gnomon_alloc(ctx, b->chunks, sizeof *begins, "runs", &begins);
    if (status == GNOMON_OK) status = gnomon_alloc(ctx, b->chunks, sizeof *ends, "runs", &ends);
    for (int64_t c = 0; c < b->chunks && status == GNOMON_OK; c++) {
        const int64_t sets = gnomon_min(b->room, b->d->distinct - c * b->room);
        const int64_t each = (int64_t)sizeof *b->keys;
        begins[c] = (c * b->room * b->count + band * sets) * each;
        ends[c] = begins[c] + sets * each;
    }
    if (status == GNOMON_OK)
        status = gnomon_merge_open(&m, &b->runs, 1, begins, ends, b->chunks, b->key_bytes);
    while (status == GNOMON_OK) {
        const uint64_t *key;
        status = gnomon_merge_next(&m, &key);
        if (status != GNOMON_OK || key == NULL) break;
        status = add_key(b, k, *key);
    }
    gnomon_merge_close(&m);
    gnomon_free(ctx, begins);
    gnomon_free(ctx, ends);
    return status;
}

static gnomon_status scan_band(banding *b, int64_t band)
{
    bucket k = {.room = gnomon_max(BLOCK, b->d->options.bucket)};
    gnomon_status status =
        gnomon_alloc(b->d->ctx, k.room, sizeof *k.documents, "a bucket", &k.documents);
    if (b->chunks > 0 && status == GNOMON_OK) status = scan_merged(b, &k, band);
    const uint64_t *keys = b->keys + band * b->room;
    for (int64_t at = 0, end; at < b->held && status == GNOMON_OK; at = end) {
        for (end = at + 1; end < b->held && keys[end] >> 32 == keys[at] >> 32;)
            end++;
        if (end == at + 1 && b->chunks == 0) continue; /* the most of them meet none */
        for (int64_t i = at; i < end && status == GNOMON_OK; i++)
            status = add_key(b, &k, keys[i]);
    }
    if (status == GNOMON_OK) status = end_bucket(b, &k);
    gnomon_free(b->d->ctx, k.documents);
    return status;
}

/* ---- keys ---- */

/* The keys in memory become a chunk in the file. */
static gnomon_status write_chunk(banding *b)
{
    for (int64_t band = 0; band < b->count; band++)
        GNOMON_TRY(gnomon_store_append(&b->runs, b->keys + band * b->room,
                                       b->held * (int64_t)sizeof *b->keys));
    b->held = 0;
    b->chunks++;
    return GNOMON_OK;
}

/* The keys of the sets that were scanned. */
static gnomon_status make_keys(banding *b)
{
    bool done = false;
    if (b->there.constants != NULL)
        GNOMON_TRY(gnomon_dedup_keys_make(b->d, &b->there, b->at, b->scanned, b->keys + b->held,
                                          b->room, &done));
    if (!done) gnomon_parallel(b->d->ctx, gnomon_ceil_div(b->scanned, TASK), hash_some, b);
    return GNOMON_OK;
}

static gnomon_status hash_all(banding *b, gnomon_scan *scan)
{
    gnomon_dedup *d = b->d;
    b->at = scan;
    b->held = b->chunks = 0;
    for (;;) {
        GNOMON_TRY(gnomon_scan_next(scan, b->room - b->held, &b->scanned));
        GNOMON_TRY(make_keys(b));
        b->held += b->scanned;
        if (b->held < b->room && b->scanned > 0) continue;
        sort_bands(b);
        /* all in one: they stay where they are */
        if (b->room == d->distinct || b->held == 0) break;
        GNOMON_TRY(write_chunk(b));
        GNOMON_TRY(gnomon_progress(d->ctx, "hashing", b->first, d->result.bands));
    }
    return gnomon_store_seal(&b->runs);
}

/* Keys take memory while sets are hashed, and again when runs are merged. */
static gnomon_status hold_keys(banding *b)
{
    const int64_t threads = gnomon_context_threads(b->d->ctx);
    GNOMON_TRY(
        gnomon_alloc(b->d->ctx, gnomon_times(b->most, b->room), sizeof *b->keys, "keys", &b->keys));
    GNOMON_TRY(gnomon_alloc(b->d->ctx, gnomon_times(threads, b->room), sizeof *b->scratch, "keys",
                            &b->scratch));
    return gnomon_alloc(b->d->ctx, gnomon_times(threads, SLICES * PARTS), sizeof *b->places, "keys",
                        &b->places);
}

static void drop_keys(banding *b)
{
    gnomon_free(b->d->ctx, b->keys);
    gnomon_free(b->d->ctx, b->scratch);
    gnomon_free(b->d->ctx, b->places);
    b->keys = b->scratch = NULL;
    b->places = NULL;
}

/* All pairs of so many bands. */
static gnomon_status save(banding *b, int64_t bands)
{
    GNOMON_TRY(gnomon_candidates_verify(b->d, &b->candidates));
    b->d->checkpoint.bands = bands;
    return gnomon_checkpoint_save(b->d);
}

static gnomon_status some_bands(banding *b)
{
    enum { WRITES = 1 << 18 };
    gnomon_dedup *d = b->d;
    gnomon_scan scan;
    const int64_t rows = d->result.rows, begin = b->first * rows;
    const int64_t block = begin / GNOMON_MINHASH_LANES;
    b->skipped = begin % GNOMON_MINHASH_LANES;
    b->block_count = gnomon_ceil_div(b->skipped + b->count * rows, GNOMON_MINHASH_LANES);
    for (int64_t k = 0; k < b->block_count; k++)
        gnomon_minhash_block(&b->blocks[k], d->options.seed, block + k);
    double clock = gnomon_seconds();
    if (b->keys == NULL) GNOMON_TRY(hold_keys(b));
    gnomon_store_start(&b->runs, d->ctx, d->work, WRITES);
    gnomon_status status = gnomon_scan_open(&scan, d, gnomon_memory_limit(d->ctx) / 16);
    if (status == GNOMON_OK && gnomon_dedup_keys_worth(d, b->count))
        status = gnomon_dedup_keys_open(d, &b->there, b->blocks, b->skipped, b->count);
    if (status == GNOMON_OK) status = hash_all(b, &scan);
    gnomon_dedup_keys_close(d, &b->there);
    gnomon_scan_close(&scan);
    if (b->chunks > 0) drop_keys(b);
    d->result.hash_seconds += gnomon_lap(&clock);
    for (int64_t band = 0; band < b->count && status == GNOMON_OK; band++) {
        status = scan_band(b, band);
        if (status == GNOMON_OK && gnomon_checkpoint_due(d)) status = save(b, b->first + band + 1);
    }
    gnomon_store_free(&b->runs);
    d->result.verify_seconds += gnomon_lap(&clock);
    return status == GNOMON_OK
               ? gnomon_progress(d->ctx, "hashing", b->first + b->count, d->result.bands)
               : status;
}

/* How many bands at a time, and how many sets' keys in memory: all sets' where they fit, with as
 * many bands as do. Else, or if it costs to read the sets again, all bands in runs; fewer where
 * these would be so many that the merge had less than LEAST bytes of each. */
static void divide(banding *b)
{
    enum { LEAST = 1 << 14 };
    const gnomon_dedup *d = b->d;
    const int64_t threads = gnomon_context_threads(d->ctx), each = (int64_t)sizeof *b->keys;
    const int64_t sets = gnomon_max(1, d->distinct), bands = d->result.bands;
    b->key_bytes = gnomon_memory_limit(d->ctx) / 4;
    const int64_t fit = b->key_bytes / each / sets - threads;
    b->room = sets;
    b->most = gnomon_min(bands, fit);
    if (fit >= bands || (fit > 0 && d->sets.fd < 0)) return;
    for (b->most = bands;; b->most = gnomon_ceil_div(b->most, 2)) {
        b->room = gnomon_max(1, b->key_bytes / each / (b->most + threads));
        if (b->most == 1 || gnomon_ceil_div(sets, b->room) <= b->key_bytes / LEAST) break;
    }
    b->room = gnomon_min(b->room, sets);
}

static gnomon_status all_bands(banding *b)
{
    gnomon_dedup *d = b->d;
    const int64_t threads = gnomon_context_threads(d->ctx), bands = d->result.bands;
    divide(b);
    const int64_t blocks = gnomon_ceil_div(b->most * d->result.rows, GNOMON_MINHASH_LANES) + 1;
    GNOMON_TRY(gnomon_alloc(d->ctx, blocks, sizeof *b->blocks, "hash functions", &b->blocks));
    GNOMON_TRY(gnomon_alloc(d->ctx,
                            gnomon_times(threads, gnomon_times(blocks, GNOMON_MINHASH_LANES)),
                            sizeof *b->least, "signatures", &b->least));
    GNOMON_TRY(gnomon_alloc(d->ctx, BLOCK * HEADS, sizeof *b->near, "buckets", &b->near));
    GNOMON_TRY(gnomon_candidates_open(d, &b->candidates));
    gnomon_fetch_start(&b->members, d, gnomon_memory_limit(d->ctx) / 32);
    gnomon_fetch_start(&b->heads, d, gnomon_memory_limit(d->ctx) / 32);
    for (b->first = d->checkpoint.bands; b->first < bands; b->first += b->count) {
        b->count = gnomon_min(b->most, bands - b->first);
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
    gnomon_fetch_end(&b.members);
    gnomon_fetch_end(&b.heads);
    drop_keys(&b);
    gnomon_free(d->ctx, b.blocks);
    gnomon_free(d->ctx, b.least);
    gnomon_free(d->ctx, b.near);
    return status;
}
