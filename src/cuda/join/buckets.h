/* cuda/join/buckets.h: pairs that share a bucket of a hash table and are near enough, on tensor
 * cores.
 *
 * A table's points are put in the order of their keys, so that buckets lie side by side. Tiles of
 * 64 places by 64 are multiplied wherever one of a tile's rows has points to meet there: a small
 * bucket shares its tile with others, a large one takes many, and none takes memory. Products are
 * those of packed points, and a pair passes by their limits (filter/filter.h), so that none within
 * the threshold is lost. Of those that pass only the pairs that have met in no earlier table go on,
 * which their keys tell: so each goes on once, and no set of pairs is kept. */
#ifndef GNOMON_CUDA_BUCKETS_H
#define GNOMON_CUDA_BUCKETS_H

#include "cuda/filter/filter.h"

/* A side: its packed points and limits, and its keys, keys[i * stride + t] of point i in table t,
 * stride being a multiple of four. Device memory. */
struct gcu_bucket_side {
    const gcu_filter_points *points;
    const float *limits;
    uint32_t *keys;
    int64_t stride;
};

/* keys of tables [table, table + tables) from 64-bit ones, whose upper halves they are: from[t * n
 * + i] of table + t. */
cudaError_t gcu_bucket_keys(const uint64_t *from, int64_t n, int64_t table, int64_t tables,
                            uint32_t *keys, int64_t stride, cudaStream_t stream);

struct gcu_bucket_call {
    gcu_bucket_side p, q; /* the same of a self-join, but for the limits */
    bool self;            /* pairs i < j */
    int64_t above;        /* of two sides: pairs with j - i not above it do not meet; INT64_MIN:
                             all do */
    int64_t table;
    int64_t row, end;             /* rows of P that count */
    unsigned long long *compared; /* device memory: grows by how many pairs share a bucket */
    void *work;
};

size_t gcu_bucket_work(int64_t p_rows, int64_t q_rows, bool self);
/* One table: what goes on is added to the sink. */
cudaError_t gcu_bucket_pairs(const gcu_bucket_call *call, gcu_filter_sink sink, const gcu_gpu *gpu,
                             cudaStream_t stream);

/* *most = the largest |x|^2 of the rows, a sum as the CPU has it. most: device memory, any number
 * not above before. */
cudaError_t gcu_bucket_squares(const gnomon_matrix *points, double *most, cudaStream_t stream);

#endif
