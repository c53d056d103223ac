/* Launches of gemm/hopper.cuh for an fp32 matrix as two TF32 numbers. */
#include "cuda/gemm/hopper.cuh"

template <int N>
static cudaError_t launch(const gcu_gemm_launch &l, const CUtensorMap &map, const gcu_gpu *gpu,
                          cudaStream_t stream)
{
    const gemm_into_c c;
    return l.a_col != 1 ? gemm_launch<N, GCU_GEMM_TF32, true, 2>(l, map, c, gpu, stream)
                        : gemm_launch<N, GCU_GEMM_TF32, false, 2>(l, map, c, gpu, stream);
}

cudaError_t gcu_gemm_hopper_tf32(const gcu_gemm_launch &l, int columns, const gcu_gpu *gpu,
                                 cudaStream_t stream)
{
    CUtensorMap map;
    if (!gemm_encode(l, &map, 32)) return cudaErrorInvalidValue;
    return columns == 64    ? launch<64>(l, map, gpu, stream)
           : columns == 128 ? launch<128>(l, map, gpu, stream)
                            : launch<256>(l, map, gpu, stream);
}
