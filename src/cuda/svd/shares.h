/* cuda/svd/shares.h: what the ways of dividing a factorisation's products among GPUs have in
 * common.
 */
#ifndef GNOMON_CUDA_SVD_SHARES_H
#define GNOMON_CUDA_SVD_SHARES_H

#include "cuda/runtime/others.h"
#include "cuda/svd/svd.h"

static inline gcu_svd_share *gcu_svd_share_of(gcu_svd *v, int i)
{
    return &v->shares.of[i];
}

#define GCU_SVD_TRY_ON(v, h, call) GCU_TRY_ON((v)->why, (h)->s, call)

/* One share for each GPU, and its events. */
gnomon_status gcu_svd_shares_begin(gcu_svd *v);
/* What other GPUs do beside single products is work of their own: share->at. */
gnomon_status gcu_svd_shares_aside(gcu_svd *v);
/* That work, or the factorisation itself. */
static inline gcu_svd *gcu_svd_share_at(gcu_svd *v, int i)
{
    return i == 0 ? v : v->shares.of[i].at;
}
/* Nothing is divided after all. */
void gcu_svd_shares_give_up(gcu_svd *v);
/* status; or OK where it tells that there is no memory for it: then nothing is divided, what was
 * taken since the bag held so many is given back, and no reason is left for a later failure. */
gnomon_status gcu_svd_shares_begun(gcu_svd *v, int held, gnomon_status status);

/* Memory on the share's GPU that grows as it is needed. */
template <typename T>
static cudaError_t gcu_svd_share_room(gcu_svd_share *h, T **data, size_t *have, size_t bytes)
{
    if (bytes <= *have) return cudaSuccess;
    void *more = nullptr;
    gcu_free(*data, h->s->stream);
    *data = nullptr;
    *have = 0;
    const cudaError_t error = gcu_alloc(h->s, &more, bytes, h->s->stream);
    if (error == cudaSuccess) *have = bytes;
    *data = static_cast<T *>(more);
    return error;
}

#endif
