/* bench/gpu/bench.cuh: what the GPU benchmark programs share: timing, floors, inputs, records.
 *
 * A program prints a table and, with --json FILE, writes one object: the program, the GPU, the
 * versions, the commit (environment variable GNOMON_COMMIT) and a list of flat records. */
#ifndef GNOMON_BENCH_CUDA_H
#define GNOMON_BENCH_CUDA_H

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define BENCH_CHECK(call)                                                 \
    do {                                                                  \
        const cudaError_t bench_error = (call);                           \
        if (bench_error != cudaSuccess) {                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                    cudaGetErrorString(bench_error));                     \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

/* A library's call, whose status is 0 where all is well. */
#define MUST(call)                                                                       \
    do {                                                                                 \
        const int bench_status = (int)(call);                                            \
        if (bench_status != 0) {                                                         \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, bench_status); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

struct bench_time {
    double median_ms, least_ms, most_ms, mean_ms, variance_ms2;
    int runs;
};

static inline bench_time bench_summary(std::vector<double> ms)
{
    bench_time t = {};
    std::sort(ms.begin(), ms.end());
    t.runs = (int)ms.size();
    t.least_ms = ms.front();
    t.most_ms = ms.back();
    t.median_ms = (ms[ms.size() / 2] + ms[(ms.size() - 1) / 2]) / 2;
    for (double one : ms)
        t.mean_ms += one / t.runs;
    for (double one : ms)
        t.variance_ms2 += (one - t.mean_ms) * (one - t.mean_ms) / (t.runs > 1 ? t.runs - 1 : 1);
    return t;
}

/* Times work(run) on a stream by events, each run by itself, after two warm-ups. 'run' lets the
 * work rotate among inputs. Runs end early after about 'seconds', but not before 5. */
template <typename Work>
static bench_time bench_run(Work work, int runs = 25, double seconds = 2.0, cudaStream_t stream = 0)
{
    cudaEvent_t begin, end;
    BENCH_CHECK(cudaEventCreate(&begin));
    BENCH_CHECK(cudaEventCreate(&end));
    std::vector<double> ms;
    double spent = 0.0;
    for (int run = -2; run < runs; run++) {
        BENCH_CHECK(cudaEventRecord(begin, stream));
        work(run < 0 ? 0 : run);
        BENCH_CHECK(cudaGetLastError());
        BENCH_CHECK(cudaEventRecord(end, stream));
        BENCH_CHECK(cudaEventSynchronize(end));
        float one;
        BENCH_CHECK(cudaEventElapsedTime(&one, begin, end));
        if (run >= 0) ms.push_back(one);
        spent += one * 1e-3;
        if (run >= 4 && spent > seconds) break;
    }
    BENCH_CHECK(cudaEventDestroy(begin));
    BENCH_CHECK(cudaEventDestroy(end));
    return bench_summary(ms);
}

/* ---- the floor of what is bound by memory: reading bytes once ---- */

static __global__ void bench_read_kernel(const uint4 *data, size_t count, unsigned *sink)
{
    unsigned x = 0;
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * stride < count; i += 4 * stride) {
        const uint4 a = __ldcs(data + i), b = __ldcs(data + i + stride);
        const uint4 c = __ldcs(data + i + 2 * stride), d = __ldcs(data + i + 3 * stride);
        x ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
        x ^= c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    for (; i < count; i += stride)
        x ^= data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
    if (x == 0x12345678u) atomicAdd(sink, 1u); /* never, in practice: keeps the loads */
}

/* Median time of reading these bytes (16-byte aligned) once. */
static inline double bench_read_ms(const void *data, size_t bytes)
{
    static unsigned *sink;
    if (!sink) {
        BENCH_CHECK(cudaMalloc(&sink, sizeof *sink));
        BENCH_CHECK(cudaMemset(sink, 0, sizeof *sink));
    }
    int device, sms;
    BENCH_CHECK(cudaGetDevice(&device));
    BENCH_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    return bench_run([&](int) {
               bench_read_kernel<<<sms * 8, 256>>>(static_cast<const uint4 *>(data), bytes / 16,
                                                   sink);
           })
        .median_ms;
}

/* ---- inputs ---- */

/* A 64-bit mixer (Steele, Lea and Flood 2014, splitmix64's finaliser), for inputs only. */
static __host__ __device__ inline uint64_t bench_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

/* Uniform in (0, 1). */
static __host__ __device__ inline float bench_uniform(uint64_t seed, uint64_t i)
{
    return ((float)(bench_mix(i ^ bench_mix(seed)) >> 41) + 0.5f) * 0x1p-23f;
}

enum bench_law { BENCH_UNIFORM, BENCH_NORMAL, BENCH_HUGE_RANGE };

static __global__ void bench_fill_kernel(float *x, size_t count, uint64_t seed, bench_law law,
                                         float phi)
{
    const size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        const float u = bench_uniform(seed, 2 * i), v = bench_uniform(seed, 2 * i + 1);
        const float normal = sqrtf(-2.0f * logf(u)) * cospif(2.0f * v);
        x[i] = law == BENCH_UNIFORM  ? u
               : law == BENCH_NORMAL ? normal
                                     : (bench_uniform(seed + 1, i) - 0.5f) * expf(phi * normal);
    }
}

/* uniform(0, 1), normal, or (u - 1/2) exp(phi N). */
static inline void bench_fill(float *x, size_t count, uint64_t seed, bench_law law = BENCH_NORMAL,
                              float phi = 1.0f)
{
    bench_fill_kernel<<<1024, 256>>>(x, count, seed, law, phi);
    BENCH_CHECK(cudaGetLastError());
}

/* ---- records ---- */

struct bench_json {
    FILE *file;
    bool first;
};

/* Looks for --json FILE among the arguments; without it records go nowhere. */
static inline bench_json bench_open(const char *program, int argc, char **argv)
{
    bench_json json = {nullptr, true};
    cudaDeviceProp gpu;
    int device, runtime, driver;
    BENCH_CHECK(cudaGetDevice(&device));
    BENCH_CHECK(cudaGetDeviceProperties(&gpu, device));
    BENCH_CHECK(cudaRuntimeGetVersion(&runtime));
    BENCH_CHECK(cudaDriverGetVersion(&driver));
    printf("%s on %s, %d multiprocessors\n", program, gpu.name, gpu.multiProcessorCount);
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], "--json") != 0) continue;
        json.file = fopen(argv[i + 1], "w");
        if (!json.file) {
            fprintf(stderr, "%s: can't write %s\n", program, argv[i + 1]);
            exit(1);
        }
    }
    if (!json.file) return json;
    const char *commit = getenv("GNOMON_COMMIT");
    fprintf(json.file,
            "{\n  \"program\": \"%s\",\n  \"gpu\": \"%s\",\n  \"multiprocessors\": %d,\n"
            "  \"cuda_runtime\": %d,\n  \"cuda_driver\": %d,\n  \"commit\": \"%s\",\n"
            "  \"results\": [",
            program, gpu.name, gpu.multiProcessorCount, runtime, driver, commit ? commit : "");
    return json;
}

/* Adds a record; format is the inside of a JSON object: "\"kind\": \"%s\", \"ms\": %.4f". */
__attribute__((format(printf, 2, 3))) static inline void bench_record(bench_json *json,
                                                                      const char *format, ...)
{
    if (!json->file) return;
    fprintf(json->file, "%s\n    {", json->first ? "" : ",");
    json->first = false;
    va_list args;
    va_start(args, format);
    vfprintf(json->file, format, args);
    va_end(args);
    fprintf(json->file, "}");
    fflush(json->file);
}

static inline void bench_close(bench_json *json)
{
    if (!json->file) return;
    fprintf(json->file, "\n  ]\n}\n");
    fclose(json->file);
    json->file = nullptr;
}

#endif
