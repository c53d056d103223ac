/* Tables of src/lsh/table.h made on the GPU: keys sorted with the points' ids by radix, equal keys
 * run together, the directory over them. A radix sort keeps the order of equal keys: so a sort by
 * lower halves and then one by upper ones sorts by keys, and ids ascend in each bucket. */
#include "cuda/lsh/lsh.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

namespace
{

enum { THREADS = 256 };

/* Halves of keys with the points' numbers. */
__global__ void __launch_bounds__(THREADS)
    split_keys(const uint64_t *keys, int64_t n, int shift, uint32_t *halves, uint32_t *ids)
{
    const int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += all) {
        halves[i] = (uint32_t)(keys[i] >> shift);
        ids[i] = (uint32_t)i;
    }
}

/* Upper halves in the order of ids. */
__global__ void __launch_bounds__(THREADS)
    gather_halves(const uint64_t *keys, int64_t n, const uint32_t *ids, uint32_t *halves)
{
    const int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += all)
        halves[i] = (uint32_t)(keys[ids[i]] >> 32);
}

/* Keys in the order of ids, which become the points'. The lower half is all keys' own when there
 * are sorted upper ones to go by. */
__global__ void __launch_bounds__(THREADS)
    finish_keys(const uint64_t *keys, int64_t n, const uint32_t *upper, const uint32_t *ids,
                uint32_t first_id, uint64_t *sorted, uint32_t *ids_out)
{
    const int64_t all = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += all) {
        const uint32_t id = ids[i];
        sorted[i] = upper ? (uint64_t)upper[i] << 32 | (uint32_t)keys[0] : keys[id];
        ids_out[i] = first_id + id;
    }
}

__device__ __forceinline__ int64_t cell_of(uint64_t key, int bits)
{
    return bits > 0 ? (int64_t)(key >> (64 - bits)) : 0;
}

/* The cells that a bucket is the first for: those after the bucket before's, to its own. */
__global__ void __launch_bounds__(THREADS)
    fill_directory(const uint64_t *keys, int64_t buckets, int bits, uint32_t *directory,
                   uint32_t *first, int64_t entries)
{
    const int64_t cells = (int64_t)1 << bits, all = (int64_t)gridDim.x * THREADS;
    for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b <= buckets; b += all) {
        const int64_t from = b > 0 ? cell_of(keys[b - 1], bits) + 1 : 0;
        const int64_t to = b < buckets ? cell_of(keys[b], bits) : cells;
        for (int64_t cell = from; cell <= to; cell++)
            directory[cell] = (uint32_t)b;
        if (b == buckets) first[b] = (uint32_t)entries;
    }
}

/* Pairs from the first buffers to the second ones, or with ids the other way. */
cudaError_t sort(void *work, size_t *bytes, const gcu_lsh_sorter *s, int from, cudaStream_t stream)
{
    return cub::DeviceRadixSort::SortPairs(work, *bytes, s->halves[0], s->halves[1], s->ids[from],
                                           s->ids[1 - from], s->n, 0, 32, stream);
}

cudaError_t unite(void *work, size_t *bytes, const gcu_lsh_sorter *s, cudaStream_t stream)
{
    return cub::DeviceSelect::UniqueByKey(work, *bytes, s->sorted,
                                          thrust::counting_iterator<uint32_t>(0), s->unique,
                                          s->first, s->buckets, s->n, stream);
}

size_t work_bytes(int64_t n)
{
    gcu_lsh_sorter s = {};
    size_t of_sort = 0, of_union = 0;
    s.n = n;
    sort(nullptr, &of_sort, &s, 0, nullptr);
    unite(nullptr, &of_union, &s, nullptr);
    return of_sort > of_union ? of_sort : of_union;
}

/* As gnomon_table_bits: the directory of so many buckets has at most as many cells, or one. */
size_t directory_bytes(int64_t n)
{
    return (size_t)(n < 1 ? 2 : n + 2) * 4;
}

} // namespace

size_t gcu_lsh_sorter_bytes(int64_t n)
{
    const size_t count = (size_t)n;
    return 2 * gcu_aligned(count * 8) + 4 * gcu_aligned(count * 4) + gcu_aligned((count + 1) * 4) +
           gcu_aligned(directory_bytes(n)) + 256 + gcu_aligned(work_bytes(n));
}

void gcu_lsh_sorter_place(gcu_lsh_sorter *s, int64_t n, bool coarse_only, void *memory)
{
    char *at = static_cast<char *>(memory);
    const auto carve = [&](size_t bytes) {
        void *part = at;
        at += gcu_aligned(bytes);
        return part;
    };
    const size_t count = (size_t)n;
    *s = gcu_lsh_sorter{};
    s->n = n;
    s->coarse_only = coarse_only;
    s->sorted = static_cast<uint64_t *>(carve(count * 8));
    s->unique = static_cast<uint64_t *>(carve(count * 8));
    for (int i = 0; i < 2; i++) {
        s->halves[i] = static_cast<uint32_t *>(carve(count * 4));
        s->ids[i] = static_cast<uint32_t *>(carve(count * 4));
    }
    s->first = static_cast<uint32_t *>(carve((count + 1) * 4));
    s->directory = static_cast<uint32_t *>(carve(directory_bytes(n)));
    s->buckets = static_cast<int64_t *>(carve(8));
    s->work_bytes = work_bytes(n);
    s->work = carve(s->work_bytes);
}

cudaError_t gcu_lsh_sort(const gcu_lsh_sorter *s, const uint64_t *keys, uint32_t first_id,
                         cudaStream_t stream)
{
    const int64_t blocks = (s->n + THREADS - 1) / THREADS;
    const unsigned grid = (unsigned)(blocks < 4096 ? blocks : 4096);
    const bool one = s->coarse_only;
    size_t bytes = s->work_bytes;
    split_keys<<<grid, THREADS, 0, stream>>>(keys, s->n, one ? 32 : 0, s->halves[0], s->ids[0]);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = sort(s->work, &bytes, s, 0, stream);
    if (error == cudaSuccess && !one) {
        gather_halves<<<grid, THREADS, 0, stream>>>(keys, s->n, s->ids[1], s->halves[0]);
        error = cudaGetLastError();
        bytes = s->work_bytes;
        if (error == cudaSuccess) error = sort(s->work, &bytes, s, 1, stream);
    }
    if (error != cudaSuccess) return error;
    finish_keys<<<grid, THREADS, 0, stream>>>(keys, s->n, one ? s->halves[1] : nullptr,
                                              s->ids[one ? 1 : 0], first_id, s->sorted, s->ids[1]);
    error = cudaGetLastError();
    bytes = s->work_bytes;
    return error == cudaSuccess ? unite(s->work, &bytes, s, stream) : error;
}

cudaError_t gcu_lsh_index(const gcu_lsh_sorter *s, int64_t buckets, int bits, cudaStream_t stream)
{
    const int64_t blocks = (buckets + THREADS) / THREADS;
    fill_directory<<<(unsigned)(blocks < 4096 ? blocks : 4096), THREADS, 0, stream>>>(
        s->unique, buckets, bits, s->directory, s->first, s->n);
    return cudaGetLastError();
}
