/* A level of an adjoint on the matrix unit: achlioptas. */
#include "cuda/project/adjoint/tensor_hopper.cuh"

cudaError_t gcu_tensor_ternary(const gcu_tensor_launch &l, int points, const gcu_gpu *gpu,
                               cudaStream_t stream)
{
    return tensor_launch<GCU_DENSE_TERNARY>(l, points, gpu, stream);
}
