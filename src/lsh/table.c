#include "lsh/table.h"

#include "base/arithmetic.h"

#include <string.h>

uint64_t gnomon_key_multiplier(int64_t position)
{
    return gnomon_mix64(((uint64_t)position + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

void gnomon_key_multipliers(int64_t count, uint64_t *multipliers)
{
    for (int64_t p = 0; p < count; p++)
        multipliers[p] = gnomon_key_multiplier(p);
}

int gnomon_table_bits(int64_t buckets)
{
    int bits = 0;
    while (bits < 32 && (int64_t)2 << bits < buckets)
        bits++;
    return bits;
}

int64_t gnomon_table_bytes(const gnomon_table *t)
{
    return t->buckets * 8 + (t->buckets + 1) * 4 + t->entries * 4 +
           (((int64_t)1 << t->bits) + 1) * 4;
}

enum { DIGIT = 11, DIGITS = 1 << DIGIT, PASSES = 6 };

int64_t gnomon_table_sort(const uint64_t *keys, int64_t n, uint32_t first_id,
                          gnomon_table_scratch *scratch)
{
    int64_t counts[DIGITS];
    int from = 0;
    if (n > 0 && keys != scratch->keys[0]) memcpy(scratch->keys[0], keys, (size_t)n * sizeof *keys);
    for (int64_t i = 0; i < n; i++)
        scratch->ids[0][i] = first_id + (uint32_t)i;
    for (int pass = 0; pass < PASSES; pass++) {
        const int shift = pass * DIGIT;
        const uint64_t *in = scratch->keys[from];
        const uint32_t *in_ids = scratch->ids[from];
        uint64_t *out = scratch->keys[!from];
        uint32_t *out_ids = scratch->ids[!from];
        memset(counts, 0, sizeof counts);
        for (int64_t i = 0; i < n; i++)
            counts[in[i] >> shift & (DIGITS - 1)]++;
        if (n > 0 && counts[in[0] >> shift & (DIGITS - 1)] == n) continue; /* all alike */
        int64_t place = 0;
        for (int d = 0; d < DIGITS; d++) {
            const int64_t here = counts[d];
            counts[d] = place;
            place += here;
        }
        for (int64_t i = 0; i < n; i++) {
            const int64_t to = counts[in[i] >> shift & (DIGITS - 1)]++;
            out[to] = in[i];
            out_ids[to] = in_ids[i];
        }
        from = !from;
    }
    if (from == 1) {
        uint64_t *sorted = scratch->keys[1];
        uint32_t *ids = scratch->ids[1];
        scratch->keys[1] = scratch->keys[0];
        scratch->ids[1] = scratch->ids[0];
        scratch->keys[0] = sorted;
        scratch->ids[0] = ids;
    }
    int64_t distinct = n > 0;
    for (int64_t i = 1; i < n; i++)
        distinct += scratch->keys[0][i] != scratch->keys[0][i - 1];
    return distinct;
}

void gnomon_table_fill(gnomon_table *t, const uint64_t *keys, const uint32_t *ids)
{
    int64_t bucket = -1;
    for (int64_t i = 0; i < t->entries; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            t->keys[++bucket] = keys[i];
            t->first[bucket] = (uint32_t)i;
        }
        t->ids[i] = ids[i];
    }
    t->first[t->buckets] = (uint32_t)t->entries;
    const int64_t cells = (int64_t)1 << t->bits;
    int64_t b = 0;
    for (int64_t cell = 0; cell <= cells; cell++) {
        while (b < t->buckets && t->bits > 0 && (int64_t)(t->keys[b] >> (64 - t->bits)) < cell)
            b++;
        t->directory[cell] = (uint32_t)(cell == cells ? t->buckets : b);
    }
}

/* The first bucket of [low, high) whose key is not below. */
static int64_t not_below(const gnomon_table *t, uint64_t key, int64_t low, int64_t high)
{
    while (high - low > 8) {
        const int64_t middle = low + (high - low) / 2;
        if (t->keys[middle] < key)
            low = middle + 1;
        else
            high = middle + 1;
    }
    while (low < high && t->keys[low] < key)
        low++;
    return low;
}

int64_t gnomon_table_find(const gnomon_table *t, uint64_t key)
{
    const uint32_t *cell = gnomon_table_cell(t, key);
    const int64_t high = cell[1];
    const int64_t b = not_below(t, key, cell[0], high);
    return b < high && t->keys[b] == key ? b : -1;
}

void gnomon_table_find_coarse(const gnomon_table *t, uint32_t upper, int64_t *begin, int64_t *end)
{
    const uint64_t low = (uint64_t)upper << 32, last = low | UINT32_MAX;
    const uint32_t *cell = gnomon_table_cell(t, low);
    const int64_t high = cell[1];
    *begin = not_below(t, low, cell[0], high);
    *end = not_below(t, last, *begin, high);
    if (*end < high && t->keys[*end] == last) ++*end;
}
