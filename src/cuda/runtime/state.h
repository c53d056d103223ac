/* cuda/runtime/state.h: what an opened plugin holds, and how a call begins and ends. */
#ifndef GNOMON_CUDA_STATE_H
#define GNOMON_CUDA_STATE_H

#include "cuda/runtime/gpu.h"

extern "C" {
#include "project/job.h"
}

/* Page-locked memory through which pageable memory goes: see runtime/transfer.h. */
enum { GCU_STAGES = 3 };

struct gcu_stage {
    char *data;
    cudaEvent_t idle; /* recorded behind the last copy from or to data */
};

struct gcu_state {
    gcu_gpu gpu;
    uint64_t
        others; /* GPUs that have parts of the same jobs, a bit each: their memory can be read */
    cudaMemPool_t pool;
    size_t memory_most;   /* bytes a call may take, from GNOMON_CUDA_MEMORY; 0: what is free */
    size_t memory_total;  /* of the GPU */
    size_t memory_free;   /* beyond the pool, when the driver was asked last */
    cudaStream_t stream;  /* in turn with the legacy default stream */
    cudaStream_t in, out; /* copies to and from the GPU */
    gcu_stage stage[GCU_STAGES]; /* made when first needed */
    size_t stage_bytes;
    int next_stage;
    struct gcu_blas *blas; /* linalg/blas.h; made when first needed */
    void *notes; /* a little page-locked memory for what searches read; made when first needed */
};

/* A failed call's reason: one line. */
struct gcu_why {
    char *text;
    size_t size;
};

/* Writes the reason and returns status. */
gnomon_status gcu_fail(gcu_why why, gnomon_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What a failed call is about, beside its reason: an argument, a row and a column. */
static inline void gcu_about(const gnomon_device_host *host, const char *argument, int64_t row,
                             int64_t col)
{
    host->about(host->user, argument, row, col);
}
/* The status of a CUDA call, with what failed and CUDA's own words. */
gnomon_status gcu_status(gcu_why why, cudaError_t error, const char *what);

#define GCU_TRY(why, call)                                                        \
    do {                                                                          \
        const cudaError_t gcu_error_ = (call);                                    \
        if (gcu_error_ != cudaSuccess) return gcu_status(why, gcu_error_, #call); \
    } while (0)

/* The driver context that is current in the calling thread, to be made so again: whichever runtime
 * the caller uses, its current device is that context's. */
struct gcu_scope {
    void *before;
    bool known;
};
gcu_scope gcu_enter(int device);
void gcu_leave(gcu_scope scope);

/* Device memory for work on 'stream', from the state's pool. Frees what the pool keeps, and tries
 * again, before it fails. */
cudaError_t gcu_alloc(gcu_state *s, void **data, size_t bytes, cudaStream_t stream);
void gcu_free(void *data, cudaStream_t stream);
/* Bytes that the pool holds unused. */
size_t gcu_kept_memory(const gcu_state *s);
/* Bytes that can probably be had. Asks the driver, which takes some 14 microseconds. */
size_t gcu_free_memory(gcu_state *s);
/* Whether so many can. Of what the pool holds unused, or is little beside what the driver told of
 * last, it is not asked again. */
bool gcu_can_have(gcu_state *s, size_t bytes);

/* s->stream waits for what a caller's stream has to do so far; NULL: for the legacy default stream,
 * with which it is in turn by itself. */
gnomon_status gcu_wait_for(gcu_state *s, void *stream, gcu_why why);

/* ---- runtime/view.cu, runtime/finite.cu: views in the device's memory ---- */

/* view = beta * view, beta 0 clearing without reading; F32 or F64. */
cudaError_t gcu_scale(const gnomon_matrix *view, double beta, cudaStream_t stream);
/* to = from; the same shape, and the same type or F64 to F32. */
cudaError_t gcu_copy(const gnomon_matrix *from, const gnomon_matrix *to, cudaStream_t stream);
/* Some rows and columns of a view, on either side; without data they have none. */
gnomon_matrix gcu_part(const gnomon_matrix *m, int64_t row, int64_t rows, int64_t col,
                       int64_t cols);

/* Lowers *first (device memory) to (row + i) * cols + col + j for every element (i, j) of the view
 * that is NaN or infinite. */
cudaError_t gcu_find_nonfinite(const gnomon_matrix *view, int64_t row, int64_t col, int64_t cols,
                               unsigned long long *first, cudaStream_t stream);
/* Whether the type has such values at all. */
bool gcu_may_be_nonfinite(gnomon_dtype dtype);

#endif
