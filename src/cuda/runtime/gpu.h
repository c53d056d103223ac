/* cuda/runtime/gpu.h: one GPU taken into use: what it can do, and the tables of
 * docs/reference/operators.md, section 4.2. */
#ifndef GNOMON_CUDA_GPU_H
#define GNOMON_CUDA_GPU_H

#include "cuda/runtime/random.cuh"

#include <cuda_runtime.h>

#include <gnomon/base.h>

struct gcu_gpu {
    int device;
    char name[256];
    int sms;
    int major, minor; /* compute capability, or the lower one that GNOMON_CUDA_ARCH forces */
    size_t l2_bytes;
    size_t smem_bytes;         /* a block's, opted in */
    gcu_gaussian16 gaussian16; /* device tables of section 4.2 */
};

/* The number of visible GPUs. */
int gcu_gpu_count(void);
/* Takes GPU number 'device' (among those visible) into *gpu. On failure nothing is held and why
 * says what is wrong. */
gnomon_status gcu_gpu_open(int device, gcu_gpu *gpu, char *why, size_t why_size);
void gcu_gpu_close(gcu_gpu *gpu);

/* Where the next part of a piece of device memory may begin. */
static inline size_t gcu_aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

#endif
