/* cuda/dedup/dedup.h: texts become sets of hashed n-grams (dedup/ngrams.cu), and these keys of
 * bands (dedup/keys.cu). */
#ifndef GNOMON_CUDA_DEDUP_H
#define GNOMON_CUDA_DEDUP_H

#include "cuda/runtime/state.h"

extern "C" {
#include "dedup/device/job.h"
}

struct gcu_texts;

bool gcu_dedup_supported(gcu_state *s, const gnomon_dedup_job *job, gcu_why why);
gnomon_status gcu_dedup_open(gcu_state *s, const gnomon_dedup_job *job, gcu_texts **out,
                             gcu_why why);
void gcu_dedup_slot(gcu_texts *t, gnomon_dedup_slot *slot);
gnomon_status gcu_dedup_push(gcu_texts *t, int64_t count, int64_t bytes, gcu_why why);
gnomon_status gcu_dedup_take(gcu_texts *t, gnomon_dedup_sets *sets, gcu_why why);
void gcu_dedup_close(gcu_texts *t);

gnomon_status gcu_dedup_keys(gcu_state *s, const gnomon_keys_job *job, gcu_why why);

#ifdef __CUDACC__
/* gnomon_mix64 */
static __device__ __forceinline__ uint64_t gcu_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
#endif

#endif
