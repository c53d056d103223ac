/* sjlt's lists by themselves, for sums that need them to stand. */
#include "cuda/project/sjlt/lists.cuh"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS)
    lists_kernel(const __grid_constant__ sjlt_shape s, const __grid_constant__ sjlt_lists lists)
{
    __shared__ sjlt_list_memory memory;
    sjlt_list_unit_any<false>(s, lists, 0, lists.count, blockIdx.x, &memory);
}

cudaError_t sjlt_make_lists(const sjlt_shape &s, const sjlt_lists &lists, cudaStream_t stream)
{
    lists_kernel<<<sjlt_list_units(lists, lists.count), THREADS, 0, stream>>>(s, lists);
    return cudaGetLastError();
}
