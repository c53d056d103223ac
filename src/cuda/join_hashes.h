/* cuda/join_hashes.h: what a join by hashing has beside an exact one: a plan, of a look at the
 * points, and their keys. Bands of rows meet by tables then, not by the sieve of all pairs. */
#ifndef GNOMON_CUDA_JOIN_HASHES_H
#define GNOMON_CUDA_JOIN_HASHES_H

#include "cuda/buckets.h"
#include "cuda/join.h"

struct gcu_join_hashes {
    gnomon_join_tables tables;
    int64_t count, stride; /* of tables; of a point's keys */
    bool self;
    uint32_t *p_keys, *q_keys;
    unsigned long long *compared;
    void *work;
};

/* Asks the core for a plan and hashes P's and Q's points (q NULL: P alone), all of them in the
 * GPU's memory. h->count stays 0 where the join is to be exact, and the job's why says the reason;
 * else the job is marked as hashed. What was taken is given back by close, on failure too. */
gnomon_status gcu_join_hashes_open(gcu_state *s, gnomon_join_job *job, const gnomon_matrix *p,
                                   const gnomon_matrix *q, gcu_join_hashes *h, cudaStream_t stream,
                                   gcu_why why);
void gcu_join_hashes_close(gcu_join_hashes *h, cudaStream_t stream);

/* What gcu_sieve does: pairs of rows [row, row + rows) that may be near enough and share a bucket,
 * each once. */
cudaError_t gcu_join_hashes_band(const gcu_join_hashes *h, const gcu_sieve_call *call,
                                 gcu_sieve_sink sink, const gcu_gpu *gpu, cudaStream_t stream);

#endif
