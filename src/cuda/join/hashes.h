/* cuda/join/hashes.h: what a join by hashing has beside an exact one: a plan, from a sample of the
 * points, and keys of those that are on the GPU. Bands of rows meet by tables then, not by the
 * filter of all pairs. */
#ifndef GNOMON_CUDA_JOIN_HASHES_H
#define GNOMON_CUDA_JOIN_HASHES_H

#include "cuda/join/buckets.h"
#include "cuda/join/join.h"

struct gcu_join_hashes {
    gnomon_join_tables tables;
    int64_t count, stride; /* of tables, 0: the join is exact; of a point's keys */
};

/* Has the core plan a join of P and Q (q NULL: of P with itself), which lie where they say: a
 * sample is taken of either. h->count stays 0 where the join is to be exact. number: eight bytes of
 * device memory to work in. */
gnomon_status gcu_join_hashes_plan(gcu_state *s, gnomon_join_job *job, const gnomon_matrix *p,
                                   const gnomon_matrix *q, gcu_join_hashes *h,
                                   unsigned long long *number, cudaStream_t stream, gcu_why why);

/* Bytes of so many points' keys. */
size_t gcu_join_hashes_key_bytes(const gcu_join_hashes *h, int64_t rows);
/* keys[i * stride + t] of points in the GPU's memory. */
gnomon_status gcu_join_hashes_keys(gcu_state *s, const gnomon_join_job *join,
                                   const gcu_join_hashes *h, const gnomon_matrix *points,
                                   uint32_t *keys, gcu_why why);

/* What gcu_filter does: pairs of rows [row, row + rows) that may be near enough and share a bucket,
 * each once. compared and work, device memory: how many pairs share one, all tables counted;
 * gcu_bucket_work bytes. above: as join/buckets.h has it. */
cudaError_t gcu_join_hashes_band(const gcu_join_hashes *h, const gcu_filter_call *call,
                                 uint32_t *p_keys, uint32_t *q_keys, int64_t above,
                                 gcu_filter_sink sink, unsigned long long *compared, void *work,
                                 const gcu_gpu *gpu, cudaStream_t stream);

#endif
