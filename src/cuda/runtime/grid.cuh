/* cuda/runtime/grid.cuh: kernels for any number of elements, whose threads step by the whole grid.
 */
#ifndef GNOMON_CUDA_GRID_CUH
#define GNOMON_CUDA_GRID_CUH

#include <cstdint>

/* Blocks for so many elements, 'each' a block; one where there is nothing. */
static inline unsigned gcu_grid(int64_t count, int64_t each, int64_t largest = 1 << 16)
{
    const int64_t blocks = (count + each - 1) / each;
    return (unsigned)(blocks < 1 ? 1 : blocks < largest ? blocks : largest);
}

/* In a kernel of blocks of THREADS, which the file names. */
#define GCU_FOR_EACH(i, count)                                                 \
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < (count); \
         i += (int64_t)gridDim.x * THREADS)

#endif
