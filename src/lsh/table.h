/* lsh/table.h: a hash table of points as flat sorted arrays.
 *
 * A point's key has two halves of 32 bits: the upper is made of its 'coarse' values, the lower of
 * its 'fine' ones. Buckets are ascending by key, so that a coarse bucket is a run of fine ones, and
 * its points lie side by side. Different values may share a half, once in 2^32 times: that adds
 * points to a bucket and takes none away. */
#ifndef GNOMON_LSH_TABLE_H
#define GNOMON_LSH_TABLE_H

#include <gnomon/base.h>

#include <stdbool.h>

typedef struct gnomon_table {
    int64_t entries, buckets;
    uint64_t *keys;      /* buckets, ascending, distinct */
    uint32_t *first;     /* buckets + 1: a bucket's first entry */
    uint32_t *ids;       /* entries, ascending in each bucket */
    uint32_t *directory; /* 2^bits + 1: the first bucket whose key's upper bits are not below */
    int bits;            /* 0 ... 32 */
} gnomon_table;

/* A key's place in sums that values enter one by one: position p of a half adds value * multiplier
 * modulo 2^64, and a half is what gnomon_key_half makes of its sum. */
uint64_t gnomon_key_multiplier(int64_t position);
/* Those of the first positions. */
void gnomon_key_multipliers(int64_t count, uint64_t *multipliers);

/* A half's sum: values side by side, with their positions' multipliers. */
static inline uint64_t gnomon_key_sum(const int32_t *values, const uint64_t *multipliers,
                                      int64_t count)
{
    uint64_t sum = 0;
    for (int64_t p = 0; p < count; p++)
        sum += (uint64_t)(int64_t)values[p] * multipliers[p];
    return sum;
}

static inline uint32_t gnomon_key_half(uint64_t sum)
{
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    sum ^= sum >> 32;
    sum *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(sum >> 32);
}

/* The key whose halves have these sums. */
static inline uint64_t gnomon_key_of(uint64_t coarse, uint64_t fine)
{
    return (uint64_t)gnomon_key_half(coarse) << 32 | gnomon_key_half(fine);
}

/* Bits of the directory of so many buckets. */
int gnomon_table_bits(int64_t buckets);
/* Bytes of a table's arrays. */
int64_t gnomon_table_bytes(const gnomon_table *t);

/* For sorting: entries keys with their ids, twice. */
typedef struct gnomon_table_scratch {
    uint64_t *keys[2];
    uint32_t *ids[2];
} gnomon_table_scratch;

/* Sorts keys[0 .. n) with the ids first_id, first_id + 1, ... into keys[0], ids[0] of the scratch,
 * by key, then id. keys may be the scratch's keys[0]. Returns how many keys are distinct. */
int64_t gnomon_table_sort(const uint64_t *keys, int64_t n, uint32_t first_id,
                          gnomon_table_scratch *scratch);

/* Where the directory tells of the first bucket that may have this key. */
static inline const uint32_t *gnomon_table_cell(const gnomon_table *t, uint64_t key)
{
    return t->directory + (t->bits > 0 ? key >> (64 - t->bits) : 0);
}

/* The bucket with this key, -1 when there is none. */
int64_t gnomon_table_find(const gnomon_table *t, uint64_t key);
/* The buckets [*begin, *end) whose upper half this is. */
void gnomon_table_find_coarse(const gnomon_table *t, uint32_t upper, int64_t *begin, int64_t *end);

/* Fills *t, whose arrays have room for 'entries' and 'buckets', from sorted lists. */
void gnomon_table_fill(gnomon_table *t, const uint64_t *keys, const uint32_t *ids);

#endif
