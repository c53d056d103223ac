/* One GPU taken into use: what it can do, and the tables of docs/reference/operators.md,
 * section 4.2. */
#include "cuda/runtime/gpu.h"

#include <cuda_fp16.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGNITUDES = 1 << 15 };

/* The largest t, at least 'from', for which the tail's magnitude is still that of 'from'. */
static uint32_t last_of(uint32_t from)
{
    const float value = gnomon_gaussian16_tail(from);
    uint32_t low = from, high = UINT32_MAX;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2 + 1;
        if (gnomon_gaussian16_tail(middle) == value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint16_t half_bits(float x)
{
    const __half h = __float2half_rn(x);
    uint16_t bits;
    memcpy(&bits, &h, sizeof bits);
    return bits;
}

/* Magnitudes fall as t rises, so each has one range of t. Returns how many there are. */
static int list_tails(uint32_t *last, uint16_t *value)
{
    uint32_t from = 0;
    for (int m = 0; m < GCU_TAILS_MOST; m++) {
        value[m] = half_bits(gnomon_gaussian16_tail(from));
        last[m] = last_of(from);
        if (last[m] == UINT32_MAX) return m + 1;
        from = last[m] + 1;
    }
    return 0;
}

static cudaError_t upload_tables(gcu_gpu *gpu)
{
    struct tables {
        uint32_t last[GCU_TAILS_MOST];
        uint16_t value[GCU_TAILS_MOST];
        uint16_t magnitude[MAGNITUDES];
    } *host = static_cast<tables *>(calloc(1, sizeof *host)), *device = nullptr;
    if (!host) return cudaErrorMemoryAllocation;
    const int tails = list_tails(host->last, host->value);
    const float *magnitude = gnomon_gaussian16_table();
    for (int v = 0; v < MAGNITUDES - 1; v++)
        host->magnitude[v] = half_bits(magnitude[v]);
    host->magnitude[MAGNITUDES - 1] = 0x7E00;
    cudaError_t error = cudaMalloc(&device, sizeof *device);
    if (error == cudaSuccess)
        error = cudaMemcpy(device, host, sizeof *device, cudaMemcpyHostToDevice);
    free(host);
    if (error != cudaSuccess) {
        cudaFree(device);
        return error;
    }
    gpu->gaussian16 = {device->magnitude, device->last, device->value, tails};
    return cudaSuccess;
}

int gcu_gpu_count(void)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    cudaGetLastError();
    return 0;
}

gnomon_status gcu_gpu_open(int device, gcu_gpu *gpu, char *why, size_t why_size)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        snprintf(why, why_size, "no usable GPU: %s",
                 error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
        return GNOMON_ERROR_DEVICE;
    }
    if (device < 0 || device >= count) {
        snprintf(why, why_size, "the device index is %d; the visible GPUs are 0 to %d", device,
                 count - 1);
        return GNOMON_ERROR_ARGUMENT;
    }
    cudaDeviceProp properties;
    error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = cudaSetDevice(device);
    if (error != cudaSuccess) {
        snprintf(why, why_size, "GPU %d: %s", device, cudaGetErrorString(error));
        return GNOMON_ERROR_DEVICE;
    }
    if (properties.major < 8) {
        snprintf(why, why_size, "%s has compute capability %d.%d; 8.0 is the least",
                 properties.name, properties.major, properties.minor);
        return GNOMON_ERROR_DEVICE;
    }
    *gpu = gcu_gpu{};
    gpu->device = device;
    snprintf(gpu->name, sizeof gpu->name, "%s", properties.name);
    gpu->sms = properties.multiProcessorCount;
    gpu->major = properties.major;
    gpu->minor = properties.minor;
    gpu->l2_bytes = (size_t)properties.l2CacheSize;
    gpu->smem_bytes = properties.sharedMemPerBlockOptin;
    const char *forced = getenv("GNOMON_CUDA_ARCH");
    if (forced && *forced) {
        if (strcmp(forced, "80") != 0 && strcmp(forced, "90") != 0) {
            snprintf(why, why_size, "GNOMON_CUDA_ARCH is \"%.32s\"; it must be 80 or 90", forced);
            return GNOMON_ERROR_ARGUMENT;
        }
        if (forced[0] == '9' && gpu->major != 9) {
            snprintf(why, why_size, "GNOMON_CUDA_ARCH is 90, and %s has compute capability %d.%d",
                     properties.name, properties.major, properties.minor);
            return GNOMON_ERROR_DEVICE;
        }
        gpu->major = forced[0] - '0';
        gpu->minor = 0;
    }
    error = upload_tables(gpu);
    if (error != cudaSuccess) {
        snprintf(why, why_size, "%s: %s", properties.name, cudaGetErrorString(error));
        return error == cudaErrorMemoryAllocation ? GNOMON_ERROR_MEMORY : GNOMON_ERROR_DEVICE;
    }
    snprintf(why, why_size, "%s, compute capability %d.%d, %.1f GiB", properties.name,
             properties.major, properties.minor, (double)properties.totalGlobalMem / 0x1p30);
    return GNOMON_OK;
}

void gcu_gpu_close(gcu_gpu *gpu)
{
    /* tail_last is the first member of the tables' one allocation */
    cudaFree(const_cast<uint32_t *>(gpu->gaussian16.tail_last));
    *gpu = gcu_gpu{};
}
