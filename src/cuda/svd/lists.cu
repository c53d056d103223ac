/* Lists of a sparse matrix's lines on the GPU: products with them, and how they are cut.
 *
 * A line of a product is summed by the threads that have its columns, in the order of the list, so
 * it depends on nothing but the list: fp32 sums of 64 terms are added in fp64. Lists that are very
 * long are cut into parts, whose sums are added in order. Work in f64 has doubles throughout. */
#include "cuda/runtime/grid.cuh"
#include "cuda/svd/svd.h"

#include <cuda_fp16.h>

enum { THREADS = 256, CHAIN = 64, PART = GCU_SVD_LIST_PART, LONG = GCU_SVD_LIST_LONG };

static unsigned grid_of(int64_t count)
{
    return gcu_grid(count, THREADS, 1 << 20); /* lines differ in length: many short blocks */
}

static __global__ void begin_at_zero_kernel(int64_t *offsets, int64_t count, int64_t first)
{
    GCU_FOR_EACH(i, count) offsets[i] -= first;
}

/* Who comes first gets the first place: the places are no part of a result. */
static __global__ void find_long_kernel(const int64_t *offsets, int64_t lines, gcu_svd_long *of)
{
    GCU_FOR_EACH(i, lines)
    {
        const int64_t count = offsets[i + 1] - offsets[i];
        if (count <= LONG) continue;
        const int parts = (int)((count + PART - 1) / PART);
        const unsigned place = atomicAdd(of->counts, 1u);
        const unsigned first = atomicAdd(of->counts + 1, (unsigned)parts);
        of->line[place] = (uint32_t)i;
        of->first[place] = first;
        for (int p = 0; p < parts; p++)
            of->place[first + p] = place;
    }
}

gnomon_status gcu_svd_lists_find_long(gcu_svd *v, gcu_svd_lists *l, int64_t entries)
{
    gcu_svd_long *const o = &l->many, *there = nullptr;
    const int64_t lines = entries / LONG + 1, parts = entries / PART + lines;
    unsigned counts[2] = {0, 0};
    gnomon_status status = gcu_svd_room(v, 2, &o->counts);
    if (status == GNOMON_OK) status = gcu_svd_room(v, lines, &o->line);
    if (status == GNOMON_OK) status = gcu_svd_room(v, lines, &o->first);
    if (status == GNOMON_OK) status = gcu_svd_room(v, parts, &o->place);
    if (status == GNOMON_OK) status = gcu_svd_room(v, 1, &there);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemsetAsync(o->counts, 0, sizeof counts, v->stream));
    GCU_TRY(v->why, cudaMemcpyAsync(there, o, sizeof *o, cudaMemcpyHostToDevice, v->stream));
    find_long_kernel<<<grid_of(l->lines), THREADS, 0, v->stream>>>(l->offsets, l->lines, there);
    GCU_TRY(v->why, cudaGetLastError());
    GCU_TRY(v->why,
            cudaMemcpyAsync(counts, o->counts, sizeof counts, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    o->lines = counts[0];
    o->parts = counts[1];
    return GNOMON_OK;
}

gnomon_status gcu_svd_lists_begin_at_zero(gcu_svd *v, const gcu_svd_lists *l, int64_t first)
{
    begin_at_zero_kernel<<<grid_of(l->lines + 1), THREADS, 0, v->stream>>>(l->offsets, l->lines + 1,
                                                                           first);
    GCU_TRY(v->why, cudaGetLastError());
    return GNOMON_OK;
}

/* cut[i] = {first line, its first entry} of run i. A line counts as much as an entry. */
static __global__ void cut_kernel(const int64_t *offsets, int64_t lines, double more,
                                  int64_t entries, int count, int64_t *cut)
{
    GCU_FOR_EACH(i, count + 1)
    {
        const double all = (double)(lines + entries);
        const int64_t before = (int64_t)(more + (all - more) * (double)i / (double)count);
        int64_t low = 0, high = i == 0 ? 0 : lines;
        if (i == count) low = lines;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (offsets[middle] + middle < before)
                low = middle + 1;
            else
                high = middle;
        }
        cut[2 * i] = low;
        cut[2 * i + 1] = offsets[low];
    }
}

gnomon_status gcu_svd_lists_cut(gcu_svd *v, const gcu_svd_lists *l, int64_t entries, int64_t more,
                                int count, int64_t *line, int64_t *entry)
{
    int64_t *there = nullptr, cut[2 * (GCU_SVD_SHARES_MOST + 1)];
    const int held = v->bag.count;
    const gnomon_status status = gcu_svd_room(v, 2 * (count + 1), &there);
    if (status != GNOMON_OK) return status;
    cut_kernel<<<1, THREADS, 0, v->stream>>>(l->offsets, l->lines, (double)more, entries, count,
                                             there);
    GCU_TRY(v->why, cudaGetLastError());
    GCU_TRY(v->why, cudaMemcpyAsync(cut, there, (size_t)(2 * (count + 1)) * sizeof *cut,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    for (int i = 0; i <= count; i++) {
        line[i] = cut[2 * i];
        entry[i] = cut[2 * i + 1];
    }
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

/* An entry's multiplications take longer than what a line of the product, and of the other factor,
 * takes over the link between GPUs. */
bool gcu_svd_sparse_is_long(int64_t lines, int64_t entries, int64_t columns)
{
    return (double)entries >= 16.0 * (double)lines && (double)entries * (double)columns >= 0x1p28;
}

/* ---- products ---- */

/* What a value is multiplied with, and what is summed: doubles with doubles, else fp32. */
template <typename T> struct number {
    typedef float type;
};
template <> struct number<double> {
    typedef double type;
};

/* Four neighbours of a line, two, or one. */
template <int WIDTH, typename T> struct columns_of;
template <> struct columns_of<4, float> {
    static __device__ __forceinline__ void load(const float *from, float *x)
    {
        const float4 v = __ldg(reinterpret_cast<const float4 *>(from));
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
    }
};
template <> struct columns_of<4, __half> {
    static __device__ __forceinline__ void load(const __half *from, float *x)
    {
        const uint2 v = __ldg(reinterpret_cast<const uint2 *>(from));
        const float2 low = __half22float2(*reinterpret_cast<const __half2 *>(&v.x));
        const float2 high = __half22float2(*reinterpret_cast<const __half2 *>(&v.y));
        x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
    }
};
template <> struct columns_of<4, double> {
    static __device__ __forceinline__ void load(const double *from, double *x)
    {
        const double2 low = __ldg(reinterpret_cast<const double2 *>(from));
        const double2 high = __ldg(reinterpret_cast<const double2 *>(from) + 1);
        x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
    }
};
template <> struct columns_of<2, float> {
    static __device__ __forceinline__ void load(const float *from, float *x)
    {
        const float2 v = __ldg(reinterpret_cast<const float2 *>(from));
        x[0] = v.x, x[1] = v.y;
    }
};
template <> struct columns_of<2, __half> {
    static __device__ __forceinline__ void load(const __half *from, float *x)
    {
        const float2 v = __half22float2(__ldg(reinterpret_cast<const __half2 *>(from)));
        x[0] = v.x, x[1] = v.y;
    }
};
template <> struct columns_of<2, double> {
    static __device__ __forceinline__ void load(const double *from, double *x)
    {
        const double2 v = __ldg(reinterpret_cast<const double2 *>(from));
        x[0] = v.x, x[1] = v.y;
    }
};
template <> struct columns_of<1, float> {
    static __device__ __forceinline__ void load(const float *from, float *x)
    {
        *x = __ldg(from);
    }
};
template <> struct columns_of<1, __half> {
    static __device__ __forceinline__ void load(const __half *from, float *x)
    {
        *x = __half2float(*from);
    }
};
template <> struct columns_of<1, double> {
    static __device__ __forceinline__ void load(const double *from, double *x)
    {
        *x = __ldg(from);
    }
};

/* Entries [begin, end) of a list. */
template <int WIDTH, typename T>
static __device__ __forceinline__ void sum_list(const gcu_svd_lists &l, int64_t begin, int64_t end,
                                                const T *w, int64_t columns, double *sum)
{
    typedef typename number<T>::type V;
#pragma unroll
    for (int i = 0; i < WIDTH; i++)
        sum[i] = 0;
    for (int64_t chain = begin; chain < end; chain += CHAIN) {
        const int count = (int)min((int64_t)CHAIN, end - chain);
        V some[WIDTH] = {};
#pragma unroll 4
        for (int e = 0; e < count; e++) {
            V x[WIDTH];
            const V value = __ldg(static_cast<const V *>(l.value) + chain + e);
            columns_of<WIDTH, T>::load(w + (int64_t)__ldg(l.other + chain + e) * columns, x);
#pragma unroll
            for (int i = 0; i < WIDTH; i++)
                some[i] = fma(value, x[i], some[i]);
        }
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            sum[i] += (double)some[i];
    }
}

static __device__ __forceinline__ double corrected(const gcu_svd_less &c, int64_t line,
                                                   int64_t column, double sum)
{
    if (!c.of_column) return sum;
    return sum - (c.of_line ? c.of_line[line] * c.of_column[column] : c.of_column[column]);
}

template <int WIDTH, typename T>
static __global__ void __launch_bounds__(THREADS)
    lines_kernel(gcu_svd_lists l, const T *w, int64_t columns, gcu_svd_less less,
                 typename number<T>::type *out)
{
    const int64_t each = columns / WIDTH;
    GCU_FOR_EACH(t, l.lines * each)
    {
        const int64_t line = t / each, column = t % each * WIDTH;
        const int64_t begin = l.offsets[line], end = l.offsets[line + 1];
        double sum[WIDTH];
        if (end - begin > LONG) continue;
        sum_list<WIDTH>(l, begin, end, w + column, columns, sum);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            out[line * columns + column + i] =
                (typename number<T>::type)corrected(less, line, column + i, sum[i]);
    }
}

template <int WIDTH, typename T>
static __global__ void __launch_bounds__(THREADS)
    parts_kernel(gcu_svd_lists l, const T *w, int64_t columns, double *out)
{
    const int64_t each = columns / WIDTH;
    GCU_FOR_EACH(t, l.many.parts * each)
    {
        const int64_t part = t / each, column = t % each * WIDTH;
        const uint32_t place = l.many.place[part], line = l.many.line[place];
        const int64_t begin = l.offsets[line] + (part - l.many.first[place]) * PART;
        const int64_t end = min(begin + PART, l.offsets[line + 1]);
        double sum[WIDTH];
        sum_list<WIDTH>(l, begin, end, w + column, columns, sum);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            out[part * columns + column + i] = sum[i];
    }
}

template <typename V>
static __global__ void __launch_bounds__(THREADS)
    add_parts_kernel(gcu_svd_lists l, const double *part, int64_t columns, gcu_svd_less less,
                     V *out)
{
    GCU_FOR_EACH(t, l.many.lines * columns)
    {
        const int64_t place = t / columns, column = t % columns, line = l.many.line[place];
        const int64_t parts = (l.offsets[line + 1] - l.offsets[line] + PART - 1) / PART;
        double sum = 0;
        for (int64_t p = 0; p < parts; p++)
            sum += part[(l.many.first[place] + p) * columns + column];
        out[line * columns + column] = (V)corrected(less, line, column, sum);
    }
}

template <int WIDTH, typename T>
static gnomon_status multiply(gcu_svd *v, const gcu_svd_lists &l, const T *w, int64_t columns,
                              const gcu_svd_less &less, typename number<T>::type *out)
{
    const int held = v->bag.count;
    if (l.lines > 0)
        lines_kernel<WIDTH><<<grid_of(l.lines * (columns / WIDTH)), THREADS, 0, v->stream>>>(
            l, w, columns, less, out);
    if (l.many.lines > 0) {
        double *part = nullptr;
        const gnomon_status status = gcu_svd_room(v, l.many.parts * columns, &part);
        if (status != GNOMON_OK) return status;
        parts_kernel<WIDTH><<<grid_of(l.many.parts * (columns / WIDTH)), THREADS, 0, v->stream>>>(
            l, w, columns, part);
        add_parts_kernel<<<grid_of(l.many.lines * columns), THREADS, 0, v->stream>>>(
            l, part, columns, less, out);
    }
    GCU_TRY(v->why, cudaGetLastError());
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

template <typename T>
static gnomon_status multiply_any(gcu_svd *v, const gcu_svd_lists &l, const void *w,
                                  int64_t columns, const gcu_svd_less &less, void *out)
{
    const T *from = static_cast<const T *>(w);
    auto *to = static_cast<typename number<T>::type *>(out);
    if (columns % 4 == 0) return multiply<4>(v, l, from, columns, less, to);
    return columns % 2 == 0 ? multiply<2>(v, l, from, columns, less, to)
                            : multiply<1>(v, l, from, columns, less, to);
}

gnomon_status gcu_svd_lists_multiply(gcu_svd *v, const gcu_svd_lists *l, const void *w,
                                     gnomon_dtype dtype, int64_t columns, gcu_svd_less less,
                                     void *out)
{
    if (dtype == GNOMON_F64) return multiply_any<double>(v, *l, w, columns, less, out);
    return dtype == GNOMON_F16 ? multiply_any<__half>(v, *l, w, columns, less, out)
                               : multiply_any<float>(v, *l, w, columns, less, out);
}
