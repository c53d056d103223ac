/* What programs that time whole calls of libraries share. */
#ifndef GNOMON_BENCH_CUDA_CALLS_H
#define GNOMON_BENCH_CUDA_CALLS_H

#include "bench.cuh"

#include <chrono>

template <typename T> static T *device(size_t count)
{
    T *data;
    BENCH_CHECK(cudaMalloc(&data, count * sizeof(T)));
    return data;
}

/* By the host's clock, when the GPU has done all. */
static double now_ms(void)
{
    BENCH_CHECK(cudaDeviceSynchronize());
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

#endif
