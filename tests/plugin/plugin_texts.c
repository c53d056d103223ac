/* A device plugin of no device that makes sets of texts, and keys of their bands, by their
 * definition in docs/reference/formats.md: every hash anew, sorted by the C library. Its slots are
 * small. A text that is FAULT makes the device fail when its slot is taken. */
#include "base/arithmetic.h"
#include "dedup/device/job.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_ROOM = 1 << 17, ROOM = 37, NUMBERS = 1 << 17 };

typedef struct slot {
    char text[TEXT_ROOM];
    uint32_t begins[ROOM], lengths[ROOM], ends[ROOM];
    uint64_t hashes[ROOM], members[NUMBERS];
    int64_t count;
} slot;

typedef struct texts {
    gnomon_dedup_job job;
    unsigned char map[256];
    slot slots[GNOMON_DEDUP_SLOTS];
    int64_t pushed, taken;
    uint64_t tokens[NUMBERS];
} texts;

const gnomon_device_table *gnomon_plugin_entry(void);

static gnomon_status open_device(int device, void **state, char *why, size_t why_size)
{
    static int opened;
    *state = &opened;
    snprintf(why, why_size, "test device %d", device);
    return GNOMON_OK;
}

static void close_device(void *state)
{
    (void)state;
}

static int supports(void *state, const struct gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    (void)state;
    (void)job;
    (void)adjoint;
    snprintf(why, why_size, "the test device takes texts alone");
    return 0;
}

static int texts_supports(void *state, const gnomon_dedup_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device takes no n-grams of 63");
    return job->length != 63;
}

static gnomon_status texts_open(void *state, const gnomon_dedup_job *job, void **out, char *why,
                                size_t why_size)
{
    (void)state;
    texts *t = calloc(1, sizeof *t);
    snprintf(why, why_size, "the test device has no memory");
    if (t == NULL) return GNOMON_ERROR_MEMORY;
    t->job = *job;
    memcpy(t->map, job->map, sizeof t->map);
    *out = t;
    return GNOMON_OK;
}

static void texts_slot(void *state, void *user, gnomon_dedup_slot *out)
{
    (void)state;
    texts *t = user;
    slot *s = &t->slots[t->pushed % GNOMON_DEDUP_SLOTS];
    *out = (gnomon_dedup_slot){s->text, s->begins, s->lengths, TEXT_ROOM, ROOM};
}

static uint64_t hash_word(const unsigned char *bytes, int64_t count)
{
    uint64_t hash = 0, last = 0;
    for (int64_t i = 0; i < count; i++) {
        last = last << 8 | bytes[i];
        if (i % 8 != 7) continue;
        hash = gnomon_mix64(hash + last) * GNOMON_NGRAM_WORD;
        last = 0;
    }
    return gnomon_mix64(hash + last + (uint64_t)count * GNOMON_NGRAM_WORD);
}

static int64_t cut(texts *t, const unsigned char *text, int64_t bytes)
{
    int64_t count = 0;
    bool space = false;
    for (int64_t at = 0; at < bytes;) {
        unsigned char word[TEXT_ROOM];
        int64_t length = 0;
        if (t->map[text[at]] == 0) {
            space = true;
            at++;
            continue;
        }
        if (!t->job.characters) {
            while (at < bytes && t->map[text[at]] != 0)
                word[length++] = t->map[text[at++]];
            t->tokens[count++] = hash_word(word, length);
            continue;
        }
        uint64_t code = t->map[text[at++]];
        while (at < bytes && (text[at] & 0xc0) == 0x80)
            code = code << 8 | text[at++];
        if (space && count > 0) t->tokens[count++] = gnomon_mix64(' ' + GNOMON_NGRAM_BASE);
        space = false;
        t->tokens[count++] = gnomon_mix64(code + GNOMON_NGRAM_BASE);
    }
    return count;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t hash_set(const uint64_t *set, int64_t count)
{
    uint64_t sums[2] = {(uint64_t)count * GNOMON_NGRAM_WORD, GNOMON_NGRAM_BASE};
    for (int64_t i = 0; i < count; i++) {
        uint64_t *sum = &sums[i % 2];
        *sum = (*sum ^ set[i]) * (i % 2 == 0 ? GNOMON_NGRAM_BASE : GNOMON_NGRAM_WORD);
        if (i < count / 2 * 2) *sum ^= *sum >> (i % 2 == 0 ? 29 : 31);
    }
    return gnomon_mix64(gnomon_mix64(sums[0]) + sums[1]);
}

static gnomon_status texts_push(void *state, void *user, int64_t count, int64_t bytes, char *why,
                                size_t why_size)
{
    (void)state;
    (void)bytes;
    texts *t = user;
    slot *s = &t->slots[t->pushed % GNOMON_DEDUP_SLOTS];
    snprintf(why, why_size, "a slot was not taken");
    if (t->pushed - t->taken == GNOMON_DEDUP_SLOTS || count > ROOM || bytes > TEXT_ROOM)
        return GNOMON_ERROR_INTERNAL;
    t->pushed++;
    s->count = count;
    for (int64_t i = 0, all = 0; i < count; i++) {
        const unsigned char *text = (const unsigned char *)s->text + s->begins[i];
        const int64_t tokens = cut(t, text, s->lengths[i]), n = t->job.length;
        uint64_t *set = s->members + all;
        int64_t grams = tokens == 0 ? 0 : tokens < n ? 1 : tokens - n + 1, kept = 0;
        if (text[s->lengths[i]] != 0) return GNOMON_ERROR_INTERNAL;
        for (int64_t g = 0; g < grams; g++) {
            uint64_t hash = 0;
            for (int64_t k = 0; k < gnomon_min(n, tokens); k++)
                hash = hash * GNOMON_NGRAM_BASE + t->tokens[g + k];
            set[g] = gnomon_mix64(tokens < n ? hash + (uint64_t)tokens : hash);
        }
        qsort(set, (size_t)grams, sizeof *set, ascending);
        for (int64_t g = 0; g < grams; g++)
            if (g == 0 || set[g] != set[g - 1]) set[kept++] = set[g];
        s->hashes[i] = hash_set(set, kept);
        s->ends[i] = (uint32_t)(all += kept);
    }
    return GNOMON_OK;
}

static gnomon_status texts_take(void *state, void *user, gnomon_dedup_sets *sets, char *why,
                                size_t why_size)
{
    (void)state;
    texts *t = user;
    const slot *s = &t->slots[t->taken % GNOMON_DEDUP_SLOTS];
    snprintf(why, why_size, "the test device is out of order");
    for (int64_t i = 0; i < s->count; i++)
        if (strcmp(s->text + s->begins[i], "FAULT") == 0) return GNOMON_ERROR_DEVICE;
    if (t->taken == t->pushed) return GNOMON_ERROR_INTERNAL;
    t->taken++;
    *sets = (gnomon_dedup_sets){s->ends, s->hashes, s->members};
    return GNOMON_OK;
}

/* Of bands of 61 rows it has none. */
static gnomon_status make_keys(void *state, const gnomon_keys_job *job, char *why, size_t why_size)
{
    (void)state;
    snprintf(why, why_size, "the test device has no memory for 61 rows");
    if (job->rows == 61) return GNOMON_ERROR_MEMORY;
    for (int64_t s = 0; s < job->count; s++)
        for (int64_t band = 0; band < job->bands; band++) {
            uint64_t key = 0;
            for (int64_t r = 0; r < job->rows; r++) {
                const uint32_t *c = job->constants + 3 * (band * job->rows + r);
                uint32_t least = UINT32_MAX;
                for (int64_t m = job->begins[s]; m < job->ends[s]; m++) {
                    uint32_t u = ((uint32_t)job->members[m] ^ c[0]) * c[1];
                    u = ((u ^ (u >> 15)) + (uint32_t)(job->members[m] >> 32)) * c[2];
                    u ^= u >> 16;
                    if (u < least) least = u;
                }
                key = (key ^ least) * UINT64_C(0x9e3779b97f4a7c15);
                key ^= key >> 32;
            }
            job->keys[band * job->stride + s] =
                gnomon_mix64(key) >> 32 << 32 | (uint64_t)job->documents[s];
        }
    return GNOMON_OK;
}

static void texts_close(void *state, void *user)
{
    (void)state;
    free(user);
}

const gnomon_device_table *gnomon_plugin_entry(void)
{
    static const gnomon_device_table table = {
        .interface_version = GNOMON_DEVICE_INTERFACE,
        .name = "cuda",
        .open = open_device,
        .close = close_device,
        .supports = supports,
        .dedup_supports = texts_supports,
        .dedup_open = texts_open,
        .dedup_slot = texts_slot,
        .dedup_push = texts_push,
        .dedup_take = texts_take,
        .dedup_close = texts_close,
        .dedup_keys = make_keys,
    };
    return &table;
}
