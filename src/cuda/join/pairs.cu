/* Pairs as the library's callers see them. */
#include "cuda/join/join.h"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    pairs_kernel(const uint64_t *pairs, const double *distances, int64_t count, int64_t p_first,
                 int64_t q_first, gnomon_pair *out)
{
    const int64_t at = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (at >= count) return;
    const uint64_t pair = pairs[at];
    out[at] = {p_first + (int64_t)(pair >> 32), q_first + (int64_t)(uint32_t)pair, distances[at]};
}

cudaError_t gcu_join_pairs(const uint64_t *pairs, const double *distances, int64_t count,
                           int64_t p_first, int64_t q_first, gnomon_pair *out, cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    pairs_kernel<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        pairs, distances, count, p_first, q_first, out);
    return cudaGetLastError();
}
