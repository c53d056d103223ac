/* Beginning and end of a call: reasons, the caller's current device, memory. */
#include "cuda/runtime/state.h"

#include <cuda.h>

#include <stdarg.h>
#include <stdio.h>

gnomon_status gcu_fail(gcu_why why, gnomon_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why.text, why.size, format, args);
    va_end(args);
    return status;
}

gnomon_status gcu_status(gcu_why why, cudaError_t error, const char *what)
{
    cudaGetLastError(); /* an error that is told is not told again by the next call */
    const gnomon_status status =
        error == cudaErrorMemoryAllocation ? GNOMON_ERROR_MEMORY : GNOMON_ERROR_DEVICE;
    return gcu_fail(why, status, "%s (%.80s)", cudaGetErrorString(error), what);
}

typedef CUresult (*get_current_fn)(CUcontext *context);
typedef CUresult (*set_current_fn)(CUcontext context);

/* Asked for once: it is as much work as many a small call. */
static void *driver_call(const char *name)
{
    void *call = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &call, 4000, cudaEnableDefault, &result);
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? call : nullptr;
}

gcu_scope gcu_enter(int device)
{
    gcu_scope scope = {nullptr, false};
    static const get_current_fn get =
        reinterpret_cast<get_current_fn>(driver_call("cuCtxGetCurrent"));
    CUcontext context = nullptr;
    if (get && get(&context) == CUDA_SUCCESS) {
        scope.before = context;
        scope.known = true;
    }
    if (device >= 0) cudaSetDevice(device);
    return scope;
}

void gcu_leave(gcu_scope scope)
{
    static const set_current_fn set =
        reinterpret_cast<set_current_fn>(driver_call("cuCtxSetCurrent"));
    if (scope.known && set) set(static_cast<CUcontext>(scope.before));
}

cudaError_t gcu_alloc(gcu_state *s, void **data, size_t bytes, cudaStream_t stream)
{
    *data = nullptr;
    if (bytes == 0) return cudaSuccess;
    /* a copy of 16 bytes (cp.async) that reads only the first few of them counts as one of all 16
     * to memcheck, and none shall reach beyond its allocation */
    constexpr size_t UNIT = 16;
    if (bytes > SIZE_MAX - UNIT) return cudaErrorMemoryAllocation;
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    cudaError_t error = cudaMallocFromPoolAsync(data, bytes, s->pool, stream);
    if (error != cudaErrorMemoryAllocation) return error;
    cudaGetLastError();
    error = cudaStreamSynchronize(stream);
    if (error == cudaSuccess) error = cudaMemPoolTrimTo(s->pool, 0);
    if (error == cudaSuccess) error = cudaMallocFromPoolAsync(data, bytes, s->pool, stream);
    if (error != cudaSuccess) {
        cudaGetLastError();
        *data = nullptr;
    }
    return error;
}

void gcu_free(void *data, cudaStream_t stream)
{
    if (data) cudaFreeAsync(data, stream);
}

size_t gcu_kept_memory(const gcu_state *s)
{
    uint64_t reserved = 0, used = 0;
    cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrUsedMemCurrent, &used);
    return (size_t)(reserved > used ? reserved - used : 0);
}

size_t gcu_free_memory(gcu_state *s)
{
    size_t free = 0, total = 0;
    s->memory_free = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
    s->memory_free = free;
    free += gcu_kept_memory(s);
    return s->memory_most && s->memory_most < free ? s->memory_most : free;
}

bool gcu_can_have(gcu_state *s, size_t bytes)
{
    if (s->memory_most && bytes > s->memory_most) return false;
    return bytes <= s->memory_free / 8 || bytes <= gcu_kept_memory(s) ||
           bytes <= gcu_free_memory(s);
}

gnomon_status gcu_wait_for(gcu_state *s, void *stream, gcu_why why)
{
    if (!stream || stream == cudaStreamLegacy) return GNOMON_OK;
    cudaEvent_t event;
    GCU_TRY(why, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    cudaError_t error = cudaEventRecord(event, static_cast<cudaStream_t>(stream));
    if (error == cudaSuccess) error = cudaStreamWaitEvent(s->stream, event, 0);
    cudaEventDestroy(event);
    return error == cudaSuccess ? GNOMON_OK : gcu_status(why, error, "waiting for device_stream");
}
