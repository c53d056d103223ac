/* A level of an adjoint on the matrix unit: gaussian with entries in fp32. */
#include "cuda/project/adjoint/tensor_hopper.cuh"

cudaError_t gcu_tensor_gaussian32(const gcu_tensor_launch &l, int points, const gcu_gpu *gpu,
                                  cudaStream_t stream)
{
    return tensor_launch<GCU_DENSE_GAUSSIAN32>(l, points, gpu, stream);
}
