/* What the rows of a caller hold, brought into the form that the kernels of sums read. */
#include "cuda/project/csr/csr.h"
#include "cuda/runtime/grid.cuh"

#include <cub/device/device_radix_sort.cuh>

enum { THREADS = 256 };

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS);
}

/* ---- checks ---- */

static __global__ void begin_kernel(gcu_csr x, gcu_csr_findings *f)
{
    f->bad_offset = f->bad_index = f->nonfinite = ~0ull;
    f->descents = f->breaks = 0;
    f->first = *x.base;
    f->nonzeros = x.offsets[x.rows] - *x.base;
}

static __global__ void __launch_bounds__(THREADS) offsets_kernel(gcu_csr x, gcu_csr_findings *f)
{
    GCU_FOR_EACH(i, x.rows)
    {
        if (i == 0 && x.offsets[0] < 0) atomicMin(&f->bad_offset, 0ull);
        if (x.offsets[i + 1] < x.offsets[i]) atomicMin(&f->bad_offset, (unsigned long long)(i + 1));
    }
}

/* Where a row begins, a step down is none of a row's. */
static __global__ void __launch_bounds__(THREADS) breaks_kernel(gcu_csr x, gcu_csr_findings *f)
{
    if (f->bad_offset != ~0ull) return;
    GCU_FOR_EACH(i, x.rows)
    {
        const int64_t e = x.offsets[i] - f->first;
        if (e > 0 && x.offsets[i + 1] - f->first > e && x.cols[e] < x.cols[e - 1])
            atomicAdd(&f->breaks, 1ull);
    }
}

static __device__ __forceinline__ bool finite(const void *values, gnomon_dtype dtype, int64_t e)
{
    return isfinite(dtype == GNOMON_F64 ? static_cast<const double *>(values)[e]
                                        : (double)gcu_element<float>(values, dtype, e));
}

static __global__ void __launch_bounds__(THREADS)
    entries_kernel(gcu_csr x, int64_t cols, gnomon_dtype dtype, bool values, gcu_csr_findings *f)
{
    if (f->bad_offset != ~0ull) return;
    unsigned long long descents = 0;
    GCU_FOR_EACH(e, f->nonzeros)
    {
        const int64_t j = x.cols[e];
        if (j < 0 || j >= cols) atomicMin(&f->bad_index, (unsigned long long)e);
        descents += e > 0 && j < x.cols[e - 1];
        if (values && !finite(x.values, dtype, e)) atomicMin(&f->nonfinite, (unsigned long long)e);
    }
    for (int d = 16; d; d /= 2)
        descents += __shfl_down_sync(0xFFFFFFFFu, descents, d);
    if (threadIdx.x % 32 == 0 && descents) atomicAdd(&f->descents, descents);
}

cudaError_t gcu_csr_scan(const gcu_csr *x, int64_t cols, gnomon_dtype dtype, bool values,
                         gcu_csr_findings *findings, cudaStream_t stream)
{
    begin_kernel<<<1, 1, 0, stream>>>(*x, findings);
    offsets_kernel<<<grid_of(x->rows), THREADS, 0, stream>>>(*x, findings);
    breaks_kernel<<<grid_of(x->rows), THREADS, 0, stream>>>(*x, findings);
    entries_kernel<<<2048, THREADS, 0, stream>>>(*x, cols, dtype,
                                                 values && gcu_may_be_nonfinite(dtype), findings);
    return cudaGetLastError();
}

/* ---- values ---- */

template <typename V>
static __global__ void __launch_bounds__(THREADS)
    convert_kernel(const void *from, gnomon_dtype dtype, int64_t count, V *to)
{
    GCU_FOR_EACH(e, count) to[e] = gcu_element<V>(from, dtype, e);
}

cudaError_t gcu_csr_convert(const void *from, gnomon_dtype dtype, int64_t count, bool f64, void *to,
                            cudaStream_t stream)
{
    if (count == 0) return cudaSuccess;
    if (f64)
        convert_kernel<<<grid_of(count), THREADS, 0, stream>>>(from, dtype, count,
                                                               static_cast<double *>(to));
    else
        convert_kernel<<<grid_of(count), THREADS, 0, stream>>>(from, dtype, count,
                                                               static_cast<float *>(to));
    return cudaGetLastError();
}

/* ---- order: stably by column, then stably by row ---- */

struct sort_work {
    uint64_t *key;
    uint32_t *place[2], *row[2];
    void *cub;
    size_t cub_bytes;
};

static size_t cub_bytes(int64_t count)
{
    size_t wide = 0, narrow = 0;
    const uint64_t *key = nullptr;
    const uint32_t *row = nullptr;
    cub::DeviceRadixSort::SortPairs(nullptr, wide, key, (uint64_t *)nullptr, row,
                                    (uint32_t *)nullptr, count, 0, 64);
    cub::DeviceRadixSort::SortPairs(nullptr, narrow, row, (uint32_t *)nullptr, row,
                                    (uint32_t *)nullptr, count, 0, 32);
    return wide > narrow ? wide : narrow;
}

size_t gcu_csr_sort_bytes(int64_t nonzeros)
{
    return gcu_aligned((size_t)nonzeros * 8) + 4 * gcu_aligned((size_t)nonzeros * 4) +
           gcu_aligned(cub_bytes(nonzeros));
}

static __global__ void __launch_bounds__(THREADS) number_kernel(int64_t count, uint32_t *place)
{
    GCU_FOR_EACH(e, count) place[e] = (uint32_t)e;
}

static __global__ void __launch_bounds__(THREADS)
    rows_kernel(gcu_csr x, const uint32_t *place, uint32_t *row)
{
    GCU_FOR_EACH(e, x.nonzeros)
    {
        const int64_t at = place[e] + *x.base;
        int64_t low = 0, high = x.rows; /* the last row that begins at or before it */
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (x.offsets[middle] <= at)
                low = middle;
            else
                high = middle;
        }
        row[e] = (uint32_t)low;
    }
}

template <typename V>
static __global__ void __launch_bounds__(THREADS)
    gather_kernel(gcu_csr x, const uint32_t *place, int64_t *cols, V *values)
{
    GCU_FOR_EACH(e, x.nonzeros)
    {
        cols[e] = x.cols[place[e]];
        values[e] = static_cast<const V *>(x.values)[place[e]];
    }
}

cudaError_t gcu_csr_sort(const gcu_csr *x, int64_t width, bool f64, int64_t *cols, void *values,
                         void *work, size_t work_bytes, cudaStream_t stream)
{
    const int64_t count = x->nonzeros;
    char *at = static_cast<char *>(work);
    sort_work w = {};
    w.key = reinterpret_cast<uint64_t *>(at);
    at += gcu_aligned((size_t)count * 8);
    uint32_t **const parts[] = {&w.place[0], &w.place[1], &w.row[0], &w.row[1]};
    for (uint32_t **part : parts) {
        *part = reinterpret_cast<uint32_t *>(at);
        at += gcu_aligned((size_t)count * 4);
    }
    w.cub = at;
    w.cub_bytes = work_bytes - (size_t)(at - static_cast<char *>(work));
    int col_bits = 1, row_bits = 1;
    while (col_bits < 63 && width > (int64_t)1 << col_bits)
        col_bits++;
    while (row_bits < 32 && x->rows > (int64_t)1 << row_bits)
        row_bits++;
    number_kernel<<<grid_of(count), THREADS, 0, stream>>>(count, w.place[0]);
    cudaError_t error = cub::DeviceRadixSort::SortPairs(
        w.cub, w.cub_bytes, reinterpret_cast<const uint64_t *>(x->cols), w.key, w.place[0],
        w.place[1], count, 0, col_bits, stream);
    if (error != cudaSuccess) return error;
    rows_kernel<<<grid_of(count), THREADS, 0, stream>>>(*x, w.place[1], w.row[0]);
    error = cub::DeviceRadixSort::SortPairs(w.cub, w.cub_bytes, w.row[0], w.row[1], w.place[1],
                                            w.place[0], count, 0, row_bits, stream);
    if (error != cudaSuccess) return error;
    if (f64)
        gather_kernel<<<grid_of(count), THREADS, 0, stream>>>(*x, w.place[0], cols,
                                                              static_cast<double *>(values));
    else
        gather_kernel<<<grid_of(count), THREADS, 0, stream>>>(*x, w.place[0], cols,
                                                              static_cast<float *>(values));
    return cudaGetLastError();
}

/* ---- long rows ---- */

static __global__ void __launch_bounds__(THREADS)
    long_kernel(gcu_csr x, uint32_t *rows, unsigned *count)
{
    GCU_FOR_EACH(i, x.rows)
    {
        if (x.offsets[i + 1] - x.offsets[i] > GCU_CSR_LONG)
            rows[atomicAdd(count, 1u)] = (uint32_t)i;
    }
}

cudaError_t gcu_csr_find_long(const gcu_csr *x, uint32_t *rows, unsigned *count,
                              cudaStream_t stream)
{
    const cudaError_t error = cudaMemsetAsync(count, 0, sizeof *count, stream);
    if (error != cudaSuccess) return error;
    long_kernel<<<grid_of(x->rows), THREADS, 0, stream>>>(*x, rows, count);
    return cudaGetLastError();
}
