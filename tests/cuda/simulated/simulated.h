/* What the simulated kernels need of the simulated runtime. */
#ifndef TESTS_CUDA_SIMULATED_H
#define TESTS_CUDA_SIMULATED_H

#include <cuda_runtime_api.h>

#include <functional>

enum { SIMULATED_GPUS = 3 };

/* Puts work on a stream. */
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run);
/* Whether these bytes lie in one allocation, of device memory or page-locked. */
bool inside(const void *data, size_t bytes, bool device);
/* Tells what is wrong and ends the program. */
void broken(const char *what);

#endif
