/* The device under test: what GNOMON_TEST_DEVICE names, as cuda:all, or one GPU. */
#ifndef TESTS_CUDA_DEVICE_H
#define TESTS_CUDA_DEVICE_H

#include <stdlib.h>

static inline const char *tested_device(void)
{
    const char *named = getenv("GNOMON_TEST_DEVICE");
    return named ? named : "cuda";
}

#endif
