/* A CUDA runtime of no GPU, so that the plugin's core runs where there is none: the plugin of this
 * folder is made of the real core, this, and one family of kernels that runs on the host
 * (simulated.cu).
 *
 * Work on streams is put off until something waits for it, and then done in an order drawn at
 * random among those that the events allow: a missing wait shows as a wrong result. Device memory
 * is filled with NaN when it is taken and when it is given back, and every copy is held to the
 * allocations it touches. There are SIMULATED_GPUS GPUs: a kernel may touch its own one's memory
 * alone, and an event is recorded on streams of its own GPU. One lock guards all of it. */
#include "simulated.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

struct event {
    int gpu = 0;
    long recorded = 0;
    std::shared_ptr<long> done = std::make_shared<long>(0); /* outlives the event in a queue */
};

struct work_item {
    std::function<void()> run;
    std::shared_ptr<long> waits_for; /* an event, and which of its records */
    long record;
};

struct stream {
    int gpu = 0;
    std::deque<work_item> queue;
};

struct allocation {
    size_t bytes;
    bool device;
    int gpu;
};

static std::vector<stream *> streams;
static std::map<char *, allocation> allocations;
static auto last_found = allocations.end();
static size_t device_bytes[SIMULATED_GPUS],
    device_limit[SIMULATED_GPUS] = {(size_t)1 << 30, (size_t)1 << 30, (size_t)1 << 30};
static thread_local int current;
static int running = -1; /* the GPU whose work is being done */
static std::recursive_mutex everything;
#define LOCK const std::lock_guard<std::recursive_mutex> lock(everything)
static uint64_t dice = 1;

void broken(const char *what)
{
    fprintf(stderr, "simulated CUDA: %s\n", what);
    abort();
}

static uint64_t roll(void)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return dice >> 33;
}

static bool ready(const stream *s)
{
    return !s->queue.empty() &&
           (!s->queue.front().waits_for || *s->queue.front().waits_for >= s->queue.front().record);
}

/* Does one piece of work that may be done; false when there is none. */
static bool step(void)
{
    std::vector<stream *> candidates;
    for (stream *s : streams)
        if (ready(s)) candidates.push_back(s);
    if (candidates.empty()) return false;
    stream *s = candidates[roll() % candidates.size()];
    const work_item item = s->queue.front();
    s->queue.pop_front();
    running = s->gpu;
    if (item.run) item.run();
    running = -1;
    return true;
}

/* The legacy default stream has a number for an address; it is there from its first use on. */
static stream *known(cudaStream_t at)
{
    static stream legacy[SIMULATED_GPUS];
    stream *s = reinterpret_cast<stream *>(at);
    const bool is_legacy = at == cudaStreamLegacy;
    if (is_legacy) {
        s = &legacy[current];
        s->gpu = current;
    }
    if (std::find(streams.begin(), streams.end(), s) != streams.end()) return s;
    if (!is_legacy) broken("an unknown stream");
    streams.push_back(s);
    return s;
}

static cudaError_t put(cudaStream_t at, std::function<void()> run, std::shared_ptr<long> e,
                       long record)
{
    LOCK;
    stream *s = known(at);
    s->queue.push_back({run, e, record});
    if (roll() % 4 == 0) step();
    return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t at, std::function<void()> run)
{
    return put(at, run, nullptr, 0);
}

bool inside(const void *p, size_t bytes, bool device)
{
    LOCK;
    char *at = static_cast<char *>(const_cast<void *>(p));
    auto found = last_found; /* a kernel asks for one element after the other */
    if (found == allocations.end() || at < found->first ||
        at >= found->first + found->second.bytes) {
        found = allocations.upper_bound(at);
        if (found == allocations.begin()) return false;
        last_found = --found;
    }
    if (device && running >= 0 && found->second.gpu != running)
        broken("a kernel in the memory of another GPU");
    return at + bytes <= found->first + found->second.bytes && found->second.device == device;
}

static void *take(size_t bytes, bool device)
{
    char *data = static_cast<char *>(malloc(bytes));
    memset(data, 0xff, bytes);
    allocations[data] = {bytes, device, current};
    if (device) device_bytes[current] += bytes;
    return data;
}

static void give(void *data)
{
    const auto found = allocations.find(static_cast<char *>(data));
    if (found == allocations.end()) broken("memory given back that was not taken");
    if (found->second.device) device_bytes[found->second.gpu] -= found->second.bytes;
    if (found == last_found) last_found = allocations.end();
    memset(data, 0xff, found->second.bytes);
    allocations.erase(found);
    free(data);
}

/* ---- the runtime's calls that the core makes ---- */

extern "C" {

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}
cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device)
{
    current = device;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    *can = device != peer;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int)
{
    if (peer == current) broken("a GPU as its own peer");
    return cudaSuccess;
}
/* A driver context is a GPU's number, plus one. */
static int get_current(void **context)
{
    *context = reinterpret_cast<void *>((intptr_t)current + 1);
    return 0;
}
static int set_current(void *context)
{
    current = (int)(reinterpret_cast<intptr_t>(context) - 1);
    return 0;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **call, unsigned int,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *result)
{
    *call = strcmp(name, "cuCtxGetCurrent") == 0 ? reinterpret_cast<void *>(get_current)
                                                 : reinterpret_cast<void *>(set_current);
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    LOCK;
    const size_t limit = device_limit[current], held = device_bytes[current];
    *free = limit > held ? limit - held : 0;
    *total = limit;
    return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *)
{
    *pool = nullptr;
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc *, size_t)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *)
{
    return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void *value)
{
    *static_cast<uint64_t *>(value) = 0;
    return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void **data, size_t bytes, cudaMemPool_t, cudaStream_t)
{
    LOCK;
    if (device_bytes[current] + bytes > device_limit[current]) return cudaErrorMemoryAllocation;
    *data = take(bytes, true);
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *data, cudaStream_t at)
{
    return enqueue(at, [=] { give(data); });
}
cudaError_t cudaHostAlloc(void **data, size_t bytes, unsigned int)
{
    LOCK;
    *data = take(bytes, false);
    return cudaSuccess;
}
cudaError_t cudaFreeHost(void *data)
{
    LOCK;
    give(data);
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *a, const void *p)
{
    LOCK;
    *a = cudaPointerAttributes();
    const auto found = allocations.upper_bound(static_cast<char *>(const_cast<void *>(p)));
    if (found != allocations.begin()) a->device = std::prev(found)->second.gpu;
    a->type = inside(p, 1, true)    ? cudaMemoryTypeDevice
              : inside(p, 1, false) ? cudaMemoryTypeHost
                                    : cudaMemoryTypeUnregistered;
    a->hostPointer = a->type == cudaMemoryTypeHost ? const_cast<void *>(p) : nullptr;
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *at, unsigned int)
{
    LOCK;
    stream *s = new stream;
    s->gpu = current;
    streams.push_back(s);
    *at = reinterpret_cast<cudaStream_t>(s);
    return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *at)
{
    return cudaStreamCreateWithFlags(at, 0);
}
cudaError_t cudaStreamSynchronize(cudaStream_t at)
{
    LOCK;
    stream *s = known(at);
    while (!s->queue.empty())
        if (!step()) broken("streams that wait for each other");
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t at)
{
    LOCK;
    cudaStreamSynchronize(at);
    streams.erase(std::find(streams.begin(), streams.end(), reinterpret_cast<stream *>(at)));
    delete reinterpret_cast<stream *>(at);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned int)
{
    event *made = new event();
    made->gpu = current;
    *e = reinterpret_cast<cudaEvent_t>(made);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t at)
{
    delete reinterpret_cast<event *>(at);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t at, cudaStream_t s)
{
    LOCK;
    event *e = reinterpret_cast<event *>(at);
    if (known(s)->gpu != e->gpu) broken("an event on a stream of another GPU");
    const long record = ++e->recorded;
    const std::shared_ptr<long> done = e->done;
    return enqueue(s, [=] { *done = record; });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t at, unsigned int)
{
    LOCK;
    event *e = reinterpret_cast<event *>(at);
    return put(s, nullptr, e->done, e->recorded);
}
cudaError_t cudaEventSynchronize(cudaEvent_t at)
{
    LOCK;
    event *e = reinterpret_cast<event *>(at);
    const long record = e->recorded;
    while (*e->done < record)
        if (!step()) broken("an event that never comes");
    return cudaSuccess;
}
/* Whose memory it is; -1: no GPU's. */
static int gpu_of(const void *p)
{
    LOCK;
    auto found = allocations.upper_bound(static_cast<char *>(const_cast<void *>(p)));
    if (found == allocations.begin()) return -1;
    --found;
    return found->second.device ? found->second.gpu : -1;
}
cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t s)
{
    if (!inside(data, bytes, true)) broken("memset outside of device memory");
    return enqueue(s, [=] { memset(data, value, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t s)
{
    const size_t to_bytes = (height - 1) * to_pitch + width;
    const size_t from_bytes = (height - 1) * from_pitch + width;
    const bool up = kind == cudaMemcpyHostToDevice, both = kind == cudaMemcpyDefault;
    if (width > to_pitch || width > from_pitch) broken("a pitch shorter than a line");
    if ((both || up) && !inside(to, to_bytes, true)) broken("a copy outside of device memory");
    if ((both || !up) && !inside(from, from_bytes, true)) broken("a copy outside of device memory");
    return enqueue(s, [=] {
        for (size_t i = 0; i < height; i++)
            memcpy(static_cast<char *>(to) + i * to_pitch,
                   static_cast<const char *>(from) + i * from_pitch, width);
    });
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t s)
{
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, s);
}
/* Between two GPUs, each of which owns its end. */
cudaError_t cudaMemcpyPeerAsync(void *to, int to_gpu, const void *from, int from_gpu, size_t bytes,
                                cudaStream_t s)
{
    const int ends[] = {gpu_of(to), gpu_of(from)};
    if (ends[0] != to_gpu || ends[1] != from_gpu) broken("a copy between other GPUs");
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    LOCK;
    cudaMemcpyAsync(to, from, bytes, kind, cudaStreamLegacy);
    return cudaStreamSynchronize(cudaStreamLegacy);
}

/* The compiler registers device code, of which there is none here. */
void **__cudaRegisterFatBinary(void *)
{
    return nullptr;
}
void __cudaRegisterFatBinaryEnd(void **)
{
}
void __cudaUnregisterFatBinary(void **)
{
}
char __cudaInitModule(void **)
{
    return 1;
}

} /* extern "C" */

/* ---- for tests ---- */

EXPORTED void *simulated_take(size_t bytes, int device)
{
    LOCK;
    return take(bytes, device);
}
EXPORTED void simulated_give(void *data)
{
    LOCK;
    give(data);
}
/* How much device memory each GPU has, and the order of work from here on. */
EXPORTED void simulated_set(size_t limit, uint64_t seed)
{
    LOCK;
    for (size_t &one : device_limit)
        one = limit;
    dice = seed;
}
/* The same of one GPU. */
EXPORTED void simulated_limit(int gpu, size_t limit)
{
    LOCK;
    device_limit[gpu] = limit;
}
/* Bytes of device memory in use; nothing may be left behind. */
EXPORTED size_t simulated_in_use(void)
{
    LOCK;
    size_t bytes = 0;
    for (const size_t one : device_bytes)
        bytes += one;
    return bytes;
}
