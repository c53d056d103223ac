/* Tensor maps of the first factor of a product. */
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

bool gemm_encode_b(const gcu_gemm_launch &l, CUtensorMap *map)
{
    const encode_fn call = encode_call();
    const bool along_n = l.b_col == 1;
    const int64_t length = along_n ? l.n : l.k, stride = along_n ? l.b_row : l.b_col;
    if (!call || l.b_dtype != GNOMON_F16 || (!along_n && l.b_row != 1) || stride % 8 != 0 ||
        stride < length || stride >= (int64_t)1 << 38 || (uintptr_t)l.b % 16 != 0 ||
        l.n > INT32_MAX - 256 || l.k > INT32_MAX - 256)
        return false;
    const cuuint64_t dims[2] = {(cuuint64_t)length, (cuuint64_t)(along_n ? l.k : l.n)};
    const cuuint64_t strides[1] = {(cuuint64_t)stride * 2};
    const cuuint32_t box[2] = {64, 64}, steps[2] = {1, 1};
    return call(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<void *>(l.b), dims, strides,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
