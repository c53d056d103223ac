/* Values and keys of products, bits and least hashes: what src/lsh/hasher.c and keys.c do. */
#include "cuda/lsh/lsh.h"

namespace
{

enum { THREADS = 256, POINTS = 32, TABLES = THREADS / POINTS };

/* The nearest of the directions or their opposites; of equals the first. */
__device__ __forceinline__ int32_t nearest(const float *x, int64_t sides)
{
    int64_t best = 0;
    for (int64_t s = 1; s < sides; s++)
        if (fabsf(x[s]) > fabsf(x[best])) best = s;
    return (int32_t)(2 * best + (x[best] < 0.0f));
}

__device__ __forceinline__ int32_t value_of(const gcu_lsh_source &s, int64_t i, int64_t f)
{
    const float *x = s.products + i * s.f.products + f;
    switch (s.f.family) {
    case GNOMON_LSH_SIMHASH:
        return *x < 0.0f;
    case GNOMON_LSH_CROSS_POLYTOPE:
        return nearest(s.products + i * s.f.products + f * s.f.sides, s.f.sides);
    case GNOMON_LSH_BIT_SAMPLING: {
        const int64_t bit = s.f.bit[f];
        return s.bytes[i * s.row_stride + bit / 8 * s.col_stride] >> (bit % 8) & 1;
    }
    case GNOMON_LSH_MINHASH:
        return (int32_t)s.least[i * s.f.count + f];
    default:
        return gcu_lsh_step(*x, s.f.width, s.f.offset[f]);
    }
}

__global__ void __launch_bounds__(THREADS)
    store(const __grid_constant__ gcu_lsh_source s, int32_t *values, int64_t row_stride,
          int64_t col_stride)
{
    const int64_t all = (int64_t)gridDim.x * THREADS, count = s.f.count;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < s.n * count; at += all)
        values[at / count * row_stride + at % count * col_stride] =
            value_of(s, at / count, at % count);
}

/* A block of threads makes the keys of 32 points in eight tables. */
__global__ void __launch_bounds__(THREADS)
    make(const __grid_constant__ gcu_lsh_source s, const __grid_constant__ gcu_lsh_keys k)
{
    const int64_t groups = (s.n + POINTS - 1) / POINTS;
    const int64_t items = groups * ((k.tables + TABLES - 1) / TABLES);
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t i = item % groups * POINTS + threadIdx.x % POINTS;
        const int64_t t = item / groups * TABLES + threadIdx.x / POINTS;
        if (i >= s.n || t >= k.tables) continue;
        const int64_t f = (k.table + t) * k.depth;
        uint64_t sums[2] = {0, 0};
        for (int64_t p = 0; p < k.coarse; p++)
            sums[0] += (uint64_t)(int64_t)value_of(s, i, f + p) * k.multipliers[p];
        for (int64_t p = k.coarse; p < k.depth; p++)
            sums[1] += (uint64_t)(int64_t)value_of(s, i, f + p) * k.multipliers[p];
        k.keys[t * k.stride + k.first + i] =
            (uint64_t)gcu_lsh_key_half(sums[0]) << 32 | gcu_lsh_key_half(sums[1]);
    }
}

/* A thread takes four functions of one set. */
__global__ void __launch_bounds__(THREADS)
    least_hashes(const int64_t *offsets, const int64_t *indices, const void *values,
                 gnomon_dtype dtype, int64_t n, int64_t count, gcu_stream stream, uint32_t *least)
{
    const int64_t groups = (count + 3) / 4, all = (int64_t)gridDim.x * THREADS;
    for (int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x; at < n * groups; at += all) {
        const int64_t i = at / groups, g = at % groups;
        uint4 lowest = make_uint4(~0u, ~0u, ~0u, ~0u);
        for (int64_t e = offsets[i] - offsets[0]; e < offsets[i + 1] - offsets[0]; e++) {
            if (gcu_element<double>(values, dtype, e) == 0.0) continue;
            const uint4 w = gcu_call(stream, (uint32_t)g, (uint64_t)indices[e]);
            lowest = make_uint4(min(lowest.x, w.x), min(lowest.y, w.y), min(lowest.z, w.z),
                                min(lowest.w, w.w));
        }
        for (int64_t f = 4 * g; f < 4 * g + 4 && f < count; f++)
            least[i * count + f] = gcu_word(lowest, (int)(f & 3));
    }
}

unsigned grid_of(int64_t items)
{
    const int64_t most = 1 << 16;
    return (unsigned)(items < most ? items : most);
}

} // namespace

cudaError_t gcu_lsh_store_values(const gcu_lsh_source *s, const gnomon_matrix *values,
                                 cudaStream_t stream)
{
    if (s->n == 0) return cudaSuccess;
    store<<<grid_of((s->n * s->f.count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        *s, static_cast<int32_t *>(values->data), values->row_stride, values->col_stride);
    return cudaGetLastError();
}

cudaError_t gcu_lsh_make_keys(const gcu_lsh_source *s, const gcu_lsh_keys *k, cudaStream_t stream)
{
    if (s->n == 0) return cudaSuccess;
    const int64_t items = (s->n + POINTS - 1) / POINTS * ((k->tables + TABLES - 1) / TABLES);
    make<<<grid_of(items), THREADS, 0, stream>>>(*s, *k);
    return cudaGetLastError();
}

cudaError_t gcu_lsh_least_hashes(const int64_t *offsets, const int64_t *indices, const void *values,
                                 gnomon_dtype dtype, int64_t n, int64_t count, uint32_t key0,
                                 uint32_t key1, uint32_t *least, cudaStream_t stream)
{
    if (n == 0) return cudaSuccess;
    const gcu_stream key = {key0, key1, (uint32_t)GNOMON_TAG_LSH_MEMBER << 24};
    const int64_t items = n * ((count + 3) / 4);
    least_hashes<<<grid_of((items + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
        offsets, indices, values, dtype, n, count, key, least);
    return cudaGetLastError();
}
