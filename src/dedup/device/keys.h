/* dedup/device/keys.h: keys of bands that a device makes, where it made the texts' sets. */
#ifndef GNOMON_DEDUP_DEVICE_KEYS_H
#define GNOMON_DEDUP_DEVICE_KEYS_H

#include "dedup/minhash.h"
#include "dedup/state.h"

typedef struct gnomon_keys {
    gnomon_keys_job job;
    uint32_t *constants;
    int64_t *bounds;
} gnomon_keys;

/* Whether the device makes the keys of so many bands sooner than the context's threads. */
bool gnomon_dedup_keys_worth(const gnomon_dedup *d, int64_t bands);
/* Of bands whose functions begin at number 'skipped' of the blocks. */
gnomon_status gnomon_dedup_keys_open(gnomon_dedup *d, gnomon_keys *keys,
                                     const gnomon_minhash *blocks, int64_t skipped, int64_t bands);
void gnomon_dedup_keys_close(gnomon_dedup *d, gnomon_keys *keys);
/* Of the first sets of a scan: that of set s and a band at keys[band x stride + s]. *done false
 * with OK: they are the CPU's, as so much that is not theirs lies between them. */
gnomon_status gnomon_dedup_keys_make(gnomon_dedup *d, gnomon_keys *k, const gnomon_scan *scan,
                                     int64_t count, uint64_t *keys, int64_t stride, bool *done);

#endif
