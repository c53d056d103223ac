/* cuda/runtime/alloc.h: the device memory of a job, ever less until it is to be had. */
#ifndef GNOMON_CUDA_ALLOC_H
#define GNOMON_CUDA_ALLOC_H

#include "cuda/runtime/state.h"

/* Plans and allocates what a run (with members s, why and plan.needed) works in. make_plan sets the
 * plan to what is fast, or the most that needs no more than so many bytes; false when it can't be
 * so little, with plan.needed the least for one such 'unit'. alloc allocates all of the plan's
 * memory, free_all whatever part of it was had. */
template <typename Run>
static gnomon_status gcu_alloc_planned(Run *r, const char *unit, bool (*make_plan)(Run *, size_t),
                                       cudaError_t (*alloc)(Run *), void (*free_all)(Run *))
{
    size_t bytes = gcu_free_memory(r->s) / 16 * 15;
    for (;;) {
        if (!make_plan(r, bytes))
            return gcu_fail(r->why, GNOMON_ERROR_MEMORY,
                            "one %s needs %zu bytes of the GPU's memory, %zu are free", unit,
                            r->plan.needed, bytes);
        const cudaError_t error = alloc(r);
        if (error == cudaSuccess) return GNOMON_OK;
        free_all(r);
        if (error != cudaErrorMemoryAllocation)
            return gcu_status(r->why, error, "taking device memory");
        if (r->plan.needed < bytes) bytes = r->plan.needed;
        bytes = bytes / 4 * 3;
    }
}

#endif
