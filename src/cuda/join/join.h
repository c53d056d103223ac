/* cuda/join/join.h: similarity join on the GPU (join/join.cu), and its own kernels. */
#ifndef GNOMON_CUDA_JOIN_H
#define GNOMON_CUDA_JOIN_H

#include "cuda/runtime/state.h"

extern "C" {
#include "join/job.h"
}

bool gcu_join_supported(gcu_state *s, const gnomon_join_job *job, gcu_why why);
gnomon_status gcu_join_job(gcu_state *s, gnomon_join_job *job, gcu_why why);

/* ---- join/pairs.cu ---- */

/* out = pairs i << 32 | j with their distances, the rows counted from p_first and q_first. */
cudaError_t gcu_join_pairs(const uint64_t *pairs, const double *distances, int64_t count,
                           int64_t p_first, int64_t q_first, gnomon_pair *out, cudaStream_t stream);

#endif
