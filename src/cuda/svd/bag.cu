/* The device memory of a factorisation. */
#include "cuda/svd/svd.h"

gnomon_status gcu_svd_alloc(gcu_svd *v, size_t bytes, void **data)
{
    if (v->bag.count == GCU_BAG_MOST)
        return gcu_fail(v->why, GNOMON_ERROR_INTERNAL, "too many pieces of device memory");
    GCU_TRY(v->why, gcu_alloc(v->s, data, bytes ? bytes : 1, v->stream));
    v->bag.held[v->bag.count++] = *data;
    return GNOMON_OK;
}

void gcu_svd_free(gcu_svd *v, int count)
{
    while (v->bag.count > count)
        gcu_free(v->bag.held[--v->bag.count], v->stream);
}
