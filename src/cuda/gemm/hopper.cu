/* Launches of gemm/hopper.cuh. */
#include "cuda/gemm/hopper.cuh"

typedef CUresult (*encode_fn)(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                              void *data, const cuuint64_t *dims, const cuuint64_t *strides,
                              const cuuint32_t *box, const cuuint32_t *steps,
                              CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                              CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);

static encode_fn find_encode_call(void)
{
    void *call = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &call,
                                                               12000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess
               ? reinterpret_cast<encode_fn>(call)
               : nullptr;
}

static encode_fn encode_call(void)
{
    static const encode_fn call = find_encode_call();
    return call;
}

/* A along k: boxes of 32 of k and 128 rows, of one run where k has such. Along m: 32 rows, of one
 * run likewise, and a stage's depth of k. */
bool gemm_encode(const gcu_gemm_launch &l, CUtensorMap *map, int depth)
{
    const encode_fn call = encode_call();
    const bool along_m = l.a_col != 1;
    const int64_t all = along_m ? l.m : l.k, length = l.a_run ? l.a_run : all;
    const int64_t lines = along_m ? l.k : l.m;
    const int64_t stride = along_m ? l.a_col : l.a_row;
    if (!call || (along_m && l.a_row != 1) || stride % 4 != 0 || stride < length ||
        stride >= (int64_t)1 << 37 || (uintptr_t)l.a % 16 != 0 || l.m > INT32_MAX - 256 ||
        l.k > INT32_MAX - 256)
        return false;
    if (l.a_run &&
        (l.a_run_stride % 4 != 0 || l.a_run_stride < l.a_run || l.a_run_stride >= (int64_t)1 << 37))
        return false;
    const cuuint64_t dims[3] = {(cuuint64_t)length, (cuuint64_t)lines, (cuuint64_t)(all / length)};
    const cuuint64_t strides[2] = {(cuuint64_t)stride * 4, (cuuint64_t)l.a_run_stride * 4};
    const cuuint32_t box[3] = {32, along_m ? (cuuint32_t)depth : 128u, 1};
    const cuuint32_t steps[3] = {1, 1, 1};
    return call(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, l.a_run ? 3 : 2, const_cast<float *>(l.a),
                dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Narrow blocks keep the tensor cores less busy; wide ones may compute columns that are not there.
 */
int gcu_gemm_hopper_columns(const gcu_gemm_launch &l, int64_t whole, gcu_gemm_form form,
                            const gcu_gpu *gpu)
{
    CUtensorMap map;
    if (gpu->major != 9 || !gemm_encode(l, &map)) return 0;
    if (form == GCU_GEMM_TF32 && l.b_dtype != GNOMON_F16) return 0;
    const int64_t cols_256 = ceil_div(whole, 256) * 256, cols_128 = ceil_div(whole, 128) * 128;
    const int columns = whole <= 64                                             ? 64
                        : form == GCU_GEMM_THREE || cols_128 * 5 < cols_256 * 4 ? 128
                                                                                : 256;
    const int64_t items = ceil_div(l.m, GEMM_M) * ceil_div(l.n, columns);
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
