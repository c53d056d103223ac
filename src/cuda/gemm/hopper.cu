/* Launches of gemm/hopper.cuh. */
#include "cuda/gemm/hopper.cuh"

#include "base/arithmetic.h"

/* Narrow blocks keep the tensor cores less busy; wide ones may compute columns that are not there.
 */
int gcu_gemm_hopper_columns(const gcu_gemm_launch &l, int64_t whole, gcu_gemm_form form,
                            const gcu_gpu *gpu)
{
    CUtensorMap map;
    if (gpu->major != 9 || !gemm_encode(l, &map)) return 0;
    if (form == GCU_GEMM_TF32 && l.b_dtype != GNOMON_F16) return 0;
    const int64_t cols_256 = gnomon_ceil_div(whole, 256) * 256,
                  cols_128 = gnomon_ceil_div(whole, 128) * 128;
    const int columns = whole <= 64                                             ? 64
                        : form == GCU_GEMM_THREE || cols_128 * 5 < cols_256 * 4 ? 128
                                                                                : 256;
    const int64_t items = gnomon_ceil_div(l.m, GEMM_M) * gnomon_ceil_div(l.n, columns);
    return items > INT32_MAX / 128 ? 0 : columns;
}

template <int N, gcu_gemm_form FORM, int CLUSTER>
static cudaError_t launch_in(const gcu_gemm_launch &l, const CUtensorMap &map, const gcu_gpu *gpu,
                             cudaStream_t stream)
{
    const bool along_m = l.a_col != 1;
    const gemm_into_c c;
    if constexpr (N <= 128 && FORM != GCU_GEMM_FP16)
        if (l.squares)
            return gemm_launch<N, FORM, false, CLUSTER, gemm_into_c, true>(l, map, c, gpu, stream);
    return along_m ? gemm_launch<N, FORM, true, CLUSTER>(l, map, c, gpu, stream)
                   : gemm_launch<N, FORM, false, CLUSTER>(l, map, c, gpu, stream);
}

/* Where one block has all rows, its neighbour in a pair would have none. */
template <int N, gcu_gemm_form FORM>
static cudaError_t launch_along(const gcu_gemm_launch &l, const CUtensorMap &map,
                                const gcu_gpu *gpu, cudaStream_t stream)
{
    if constexpr (N == 64 && FORM != GCU_GEMM_FP16)
        if (l.m <= GEMM_M) return launch_in<N, FORM, 1>(l, map, gpu, stream);
    return launch_in<N, FORM, 2>(l, map, gpu, stream);
}

cudaError_t gcu_gemm_hopper(const gcu_gemm_launch &l, gcu_gemm_form form, int columns,
                            const gcu_gpu *gpu, cudaStream_t stream)
{
    CUtensorMap map;
    if (form == GCU_GEMM_TF32) return gcu_gemm_hopper_tf32(l, columns, gpu, stream);
    if (!gemm_encode(l, &map)) return cudaErrorInvalidValue;
    if (form == GCU_GEMM_THREE)
        return columns == 64 ? launch_along<64, GCU_GEMM_THREE>(l, map, gpu, stream)
                             : launch_along<128, GCU_GEMM_THREE>(l, map, gpu, stream);
    if (form == GCU_GEMM_FP16)
        return columns == 64    ? launch_along<64, GCU_GEMM_FP16>(l, map, gpu, stream)
               : columns == 128 ? launch_along<128, GCU_GEMM_FP16>(l, map, gpu, stream)
                                : launch_along<256, GCU_GEMM_FP16>(l, map, gpu, stream);
    return columns == 64    ? launch_along<64, GCU_GEMM_SCALED>(l, map, gpu, stream)
           : columns == 128 ? launch_along<128, GCU_GEMM_SCALED>(l, map, gpu, stream)
                            : launch_along<256, GCU_GEMM_SCALED>(l, map, gpu, stream);
}
