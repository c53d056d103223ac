/* Calls of CUDA that a test can't go on without. */
#ifndef GNOMON_TEST_MUST_H
#define GNOMON_TEST_MUST_H

#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                 \
    do {                                                                           \
        cudaError_t error_ = (call);                                               \
        if (error_ != cudaSuccess) {                                               \
            printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

#endif
