/* cuda/runtime/transfer.h: views between the host and the GPU.
 *
 * Page-locked memory is copied directly. Pageable memory goes through page-locked stages: the
 * context's threads fill one while the others are on their way, so that the link, and not one
 * thread's copying, sets the pace. */
#ifndef GNOMON_CUDA_TRANSFER_H
#define GNOMON_CUDA_TRANSFER_H

#include "cuda/runtime/state.h"

/* Where a view's memory is, by CUDA's own knowledge: */
enum gcu_place {
    GCU_PAGEABLE, /* host memory that CUDA knows nothing of */
    GCU_PINNED,   /* page-locked or managed: CUDA copies it by itself */
    GCU_PEER,  /* of another GPU that has a part of the job: CUDA copies it, kernels can read it */
    GCU_DEVICE /* memory that kernels on the state's GPU may use */
};

/* Fails with ARGUMENT when m->memory says another thing than CUDA, or another GPU owns it. */
gnomon_status gcu_place_of(gcu_state *s, const gnomon_matrix *m, const char *name, gcu_place *place,
                           gcu_why why);

/* How a part of a host view is held on the GPU: the same orientation, without gaps, or with lines
 * that begin at multiples of 16 bytes where they are long. data is not set. */
gnomon_matrix gcu_packed(const gnomon_matrix *host, int64_t rows, int64_t cols);
/* Bytes from the first to the last element of a packed view. */
size_t gcu_packed_bytes(const gnomon_matrix *packed);

/* What a transfer needs of a job: the host's threads, and how much memory stages may take there. */
struct gcu_transfer {
    const gnomon_device_host *host;
    int64_t memory_limit; /* bytes */
};
template <class Job> static inline gcu_transfer gcu_transfer_of(const Job *job)
{
    return {job->host, job->memory_limit};
}

/* Enqueue to = from on stream; the shapes and types are equal, the view on the GPU is packed.
 * Pageable memory has been read when gcu_upload returns, and written when gcu_download does. Page-
 * locked memory is in use until the stream gets there. Errors: MEMORY (no stages), DEVICE. */
gnomon_status gcu_upload(gcu_state *s, gcu_transfer t, const gnomon_matrix *from, gcu_place place,
                         const gnomon_matrix *to, cudaStream_t stream, gcu_why why);
gnomon_status gcu_download(gcu_state *s, gcu_transfer t, const gnomon_matrix *from,
                           const gnomon_matrix *to, gcu_place place, cudaStream_t stream,
                           gcu_why why);
/* The same for 'count' views: one is on its way while the host takes the one before. */
gnomon_status gcu_download_all(gcu_state *s, gcu_transfer t, const gnomon_matrix *from,
                               const gnomon_matrix *to, int count, gcu_place place,
                               cudaStream_t stream, gcu_why why);

/* Enqueues to = from in 32 bits, 2^32 - 1 for what is negative or not below that: half as many
 * bytes go over the link. 'from' lies in the host's memory and has been read when it returns. */
gnomon_status gcu_upload_u32(gcu_state *s, gcu_transfer t, const int64_t *from, int64_t count,
                             uint32_t *to, cudaStream_t stream, gcu_why why);

/* Hands count elements of 'size' bytes each, in the GPU's memory, to 'take' in order, some at a
 * time; they lie in page-locked memory until it returns, while the next ones are on their way.
 * Returns what take ended with, unless OK. */
gnomon_status gcu_download_each(gcu_state *s, gcu_transfer t, const void *from, int64_t count,
                                int64_t size, cudaStream_t stream,
                                gnomon_status (*sink)(void *user, const void *data, int64_t count,
                                                      bool last),
                                void *user, gcu_why why);

void gcu_stages_close(gcu_state *s);

#endif
