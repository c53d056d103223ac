/* cuda/runtime/others.h: the other GPUs of a host, which have parts of a job. */
#ifndef GNOMON_CUDA_OTHERS_H
#define GNOMON_CUDA_OTHERS_H

#include "cuda/runtime/transfer.h"

/* The thread is on a state's GPU until the end of the block. */
struct gcu_on {
    int back;
    explicit gcu_on(const gcu_state *s) : back(s->gpu.device)
    {
        cudaGetDevice(&back);
        cudaSetDevice(s->gpu.device);
    }
    gcu_on(const gcu_on &) = delete;
    ~gcu_on()
    {
        cudaSetDevice(back);
    }
};

/* A failure with DEVICE or MEMORY, of which 'why' tells, then names the state's GPU; status. */
gnomon_status gcu_name_gpu(gcu_why why, const gcu_state *s, gnomon_status status);
/* The status of a CUDA call on the state's GPU, which a failure names. */
gnomon_status gcu_status_on(gcu_why why, const gcu_state *s, cudaError_t error, const char *what);

#define GCU_TRY_ON(why, s, call)                                                   \
    do {                                                                           \
        const gnomon_status gcu_tried_ = gcu_status_on((why), (s), (call), #call); \
        if (gcu_tried_ != GNOMON_OK) return gcu_tried_;                            \
    } while (0)

/* Whether the states' GPUs reach each other. */
bool gcu_are_together(const gcu_state *s, void *const *others, int count);

/* gcu_upload of a view in the host's memory, of which each of the GPUs (s and 'count' others)
 * brings some over its own link, and from there to the memory of the state's, where 'to' lies: as
 * fast as the links are together. Views that are small, or GPUs that do not reach each other, or
 * have no room for what is on its way: by gcu_upload alone. */
gnomon_status gcu_upload_by_all(gcu_state *s, void *const *others, int count, gcu_transfer t,
                                const gnomon_matrix *from, gcu_place place, const gnomon_matrix *to,
                                cudaStream_t stream, gcu_why why);

#endif
