/* cuda/gemm/packed.cuh: where the halves of a packed B lie (gemm/launch.h, gemm/pack.cu), for those
 * who pack it themselves. */
#ifndef GNOMON_CUDA_GEMM_PACKED_CUH
#define GNOMON_CUDA_GEMM_PACKED_CUH

#include "cuda/gemm/launch.h"

/* In a chunk, which is [column][64]: row k of it. */
__device__ __forceinline__ int gcu_gemm_packed_place(bool quads, int k, int column)
{
    const int low = k % 16, at = quads ? low / 2 % 2 * 8 + low / 4 * 2 + low % 2 : low;
    const int part = k / 16 * 2 + at / 8;
    return column * GCU_GEMM_CHUNK + ((part ^ (column & 7)) << 3) + at % 8;
}

#endif
