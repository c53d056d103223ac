/* dedup/device/job.h: texts that a device makes sets of n-grams of. */
#ifndef GNOMON_DEDUP_DEVICE_JOB_H
#define GNOMON_DEDUP_DEVICE_JOB_H

#include "backend.h"

/* Of the n-grams' hashes, as docs/reference/formats.md defines them. A word's hash takes eight
 * bytes at a time; an n-gram's is a polynomial of its words' hashes, modulo 2^64, so that it rolls
 * on by two products whatever its length. BASE - 1 is twice an odd number: words that change places
 * alter the sum by a difference of hashes times few twos. */
#define GNOMON_NGRAM_BASE UINT64_C(0x9e3779b97f4a7c17)
#define GNOMON_NGRAM_WORD UINT64_C(0xd6e8feb86659fd93)

typedef struct gnomon_dedup_job {
    int64_t length;           /* of an n-gram */
    int characters;           /* of UTF-8, rather than words */
    const unsigned char *map; /* of 256 bytes: 0 where it is between words, else as what it counts;
                                 0 of 0 */
    int64_t longest;          /* bytes of a text, at most */
    int64_t memory_limit;     /* bytes of working memory on the host */
    const gnomon_device_host *host;
} gnomon_dedup_job;

enum { GNOMON_DEDUP_SLOTS = 2 };

/* Where the next texts go: each behind the one before and a byte of 0, text i at text + begins[i].
 */
typedef struct gnomon_dedup_slot {
    char *text;
    uint32_t *begins, *lengths;
    int64_t text_room, room; /* bytes, and texts */
} gnomon_dedup_slot;

/* Sets of a slot's texts, one after another: valid until that slot's next texts are pushed. */
typedef struct gnomon_dedup_sets {
    const uint32_t *ends; /* text i's members end before members[ends[i]] */
    const uint64_t *hashes, *members;
} gnomon_dedup_sets;

/* Sets whose keys of bands a device makes, as src/dedup/bands.c defines them. */
typedef struct gnomon_keys_job {
    int64_t bands, rows;
    const uint32_t *constants; /* of the bands' functions, one after another: flip, low and high, as
                                  src/dedup/minhash.h has them */
    int64_t count;             /* sets, not empty: */
    const uint64_t *members;   /* set s has members[begins[s], ends[s]); ascending offsets */
    const int64_t *begins, *ends;
    const uint32_t *documents; /* in the low half of a key */
    uint64_t *keys;            /* of set s and a band: keys[band * stride + s] */
    int64_t stride;
    int64_t memory_limit; /* bytes of working memory on the host */
    const gnomon_device_host *host;
} gnomon_keys_job;

#endif
