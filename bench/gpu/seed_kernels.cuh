/* bench/gpu/seed_kernels.cuh: the kernels of the article "Fast Random Projections in CUDA", run as
 * baselines: v1, v2 and v3 of its very sparse projection, and the dense one that it compares with.
 * Y = R A, A is D x b and Y is k x b, both row-major: one line of b values a coordinate.
 *
 * Algorithm and cost are the article's: the same generator (XORWOW, seeded in the kernel with the
 * same subsequences), the same division of work, the same number of draws. What was wrong is right:
 *  - A jump of 0 made a row take a column twice, and column 0 came up too seldom. Here a jump
 *    counts the columns passed over, and the walk starts before column 0.
 *  - -log(u) / p is not quite geometric; -log(u) / -log(1 - p) is.
 *  - The 32-bit index overflowed near D = 2^32; it has 64 bits (a jump 32: p is at least 2^-27).
 *  - 'batch_size', 'my_seed', 'warps_per_block' and the branch-local 'coeff' were undefined, and v1
 *    added to an output that nothing cleared: the launchers below define and clear.
 *  - v2 and v3 had 32 points, one a lane; more points are further tiles of 32 in blockIdx.x. */
#ifndef GNOMON_BENCH_SEED_KERNELS_H
#define GNOMON_BENCH_SEED_KERNELS_H

#include <cuda_runtime.h>
#include <curand_kernel.h>

#include <cmath>
#include <cstdint>

namespace seed
{

struct job {
    const float *a; /* D x b */
    float *y;       /* k x b */
    int64_t d, k;
    int b;
    unsigned long long seed;
    float lambda_inv; /* -1 / log(1 - p) */
};

static inline job make_job(const float *a, float *y, int64_t d, int64_t k, int b,
                           unsigned long long seed, double p)
{
    return {a, y, d, k, b, seed, (float)(-1.0 / std::log1p(-p))};
}

/* Columns passed over before the next nonzero. */
static __device__ __forceinline__ uint32_t draw_jump(curandStateXORWOW_t *state, float lambda_inv)
{
    const float u = curand_uniform(state); /* in (0, 1], at least 2^-33 */
    return (uint32_t)(-logf(u) * lambda_inv);
}

static __device__ __forceinline__ float draw_sign(curandStateXORWOW_t *state)
{
    return curand_uniform(state) > 0.5f ? 1.0f : -1.0f;
}

/* A thread a row. */
static __global__ void kernel_v1(job t)
{
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= t.k) return;
    curandStateXORWOW_t state;
    curand_init(t.seed, row, 0, &state);
    int64_t idx = -1;
    while (true) {
        const uint32_t jump = draw_jump(&state, t.lambda_inv);
        const float coeff = draw_sign(&state);
        idx += 1 + (int64_t)jump;
        if (idx >= t.d) break;
        for (int i = 0; i < t.b; i++)
            t.y[row * t.b + i] += coeff * t.a[idx * t.b + i];
    }
}

/* A warp a row, a lane a point; lane 0 draws. */
template <int warps_per_block> static __global__ void kernel_v2(job t)
{
    const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x, point = blockIdx.x * 32 + lane;
    if (row >= t.k) return; /* a whole warp */
    curandStateXORWOW_t state;
    curand_init(t.seed, row, 0, &state);
    __shared__ int64_t idxs[warps_per_block];
    __shared__ float coeffs[warps_per_block];
    if (lane == 0) idxs[threadIdx.y] = -1;
    float accum = 0.0f;
    while (true) {
        if (lane == 0) {
            idxs[threadIdx.y] += 1 + (int64_t)draw_jump(&state, t.lambda_inv);
            coeffs[threadIdx.y] = draw_sign(&state);
        }
        __syncwarp();
        const int64_t idx = idxs[threadIdx.y];
        const float coeff = coeffs[threadIdx.y];
        if (idx >= t.d) break;
        if (point < t.b) accum += coeff * t.a[idx * t.b + point];
        __syncwarp();
    }
    if (point < t.b) t.y[row * t.b + point] = accum;
}

/* A warp a row, a lane a point; every lane draws, and the warp consumes 32 draws in turn. */
template <int warps_per_block> static __global__ void kernel_v3(job t)
{
    const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x, point = blockIdx.x * 32 + lane;
    if (row >= t.k) return;
    curandStateXORWOW_t state;
    curand_init(t.seed, (unsigned long long)lane * t.k + row, 0, &state);
    __shared__ uint32_t jumps[warps_per_block][32];
    __shared__ float coeffs[warps_per_block][32];
    float accum = 0.0f;
    int64_t idx = -1;
    while (true) {
        jumps[threadIdx.y][lane] = draw_jump(&state, t.lambda_inv);
        coeffs[threadIdx.y][lane] = draw_sign(&state);
        __syncwarp();
        for (int i = 0; i < 32; i++) {
            idx += 1 + (int64_t)jumps[threadIdx.y][i];
            const float coeff = coeffs[threadIdx.y][i];
            if (idx >= t.d) goto end;
            if (point < t.b) accum += coeff * t.a[idx * t.b + point];
        }
        __syncwarp();
    }
end:
    if (point < t.b) t.y[row * t.b + point] = accum;
}

/* The dense baseline, of which the article gives the mapping and the time but no code: a warp a
 * row, a lane a point, every sign drawn on the fly. Each lane draws 32 signs at once and the warp
 * consumes the 1024 in turn. */
template <int warps_per_block> static __global__ void kernel_dense(job t)
{
    const int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x, point = blockIdx.x * 32 + lane;
    if (row >= t.k) return;
    curandStateXORWOW_t state;
    curand_init(t.seed, (unsigned long long)lane * t.k + row, 0, &state);
    float accum = 0.0f;
    for (int64_t first = 0; first < t.d; first += 1024) {
        const unsigned drawn = curand(&state);
        for (int from = 0; from < 32 && first + 32 * from < t.d; from++) {
            const unsigned signs = __shfl_sync(~0u, drawn, from);
            const int64_t idx = first + 32 * from;
            const float *line = t.a + idx * t.b + point;
            const int count = t.d - idx < 32 ? (int)(t.d - idx) : 32;
            if (point >= t.b) continue;
            if (count == 32) {
#pragma unroll
                for (int i = 0; i < 32; i++)
                    accum += (signs >> i & 1 ? -1.0f : 1.0f) * line[(int64_t)i * t.b];
            } else {
                for (int i = 0; i < count; i++)
                    accum += (signs >> i & 1 ? -1.0f : 1.0f) * line[(int64_t)i * t.b];
            }
        }
    }
    if (point < t.b) t.y[row * t.b + point] = accum;
}

enum { WARPS = 8 };

static inline dim3 warp_grid(const job &t)
{
    return dim3((unsigned)((t.b + 31) / 32), (unsigned)((t.k + WARPS - 1) / WARPS));
}

static inline void run_v1(const job &t, cudaStream_t stream = 0)
{
    cudaMemsetAsync(t.y, 0, sizeof(float) * (size_t)t.k * (size_t)t.b, stream);
    kernel_v1<<<(unsigned)((t.k + 127) / 128), 128, 0, stream>>>(t);
}

static inline void run_v2(const job &t, cudaStream_t stream = 0)
{
    kernel_v2<WARPS><<<warp_grid(t), dim3(32, WARPS), 0, stream>>>(t);
}

static inline void run_v3(const job &t, cudaStream_t stream = 0)
{
    kernel_v3<WARPS><<<warp_grid(t), dim3(32, WARPS), 0, stream>>>(t);
}

static inline void run_dense(const job &t, cudaStream_t stream = 0)
{
    kernel_dense<WARPS><<<warp_grid(t), dim3(32, WARPS), 0, stream>>>(t);
}

} // namespace seed

#endif
