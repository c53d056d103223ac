/* A level of an adjoint for the sparse kinds. sjlt: a column finds its rows by the permutation.
 * very-sparse: a chunk's rows are walked twice, to count each column's nonzeros and to list them;
 * each list is put in ascending order, whatever order it was made in, and columns add theirs. */
#include "cuda/project/adjoint/adjoint.h"

enum { THREADS = 256, POINTS = 8 };

template <typename T>
static __global__ void __launch_bounds__(THREADS) from_bands(gcu_level l, int64_t v_first)
{
    const int64_t j = l.a_col + blockIdx.x * (int64_t)THREADS + threadIdx.x;
    const int64_t v0 = v_first + blockIdx.y * (int64_t)POINTS, points = l.n * l.blocks;
    if (j >= l.a_col_end) return;
    const int64_t chunk = j >> l.a.chunk_log2;
    T sum[POINTS] = {};
    for (int64_t band = 0; band < l.a.bands; band++) {
        const int64_t first = gcu_band_first(l.a, band), end = gcu_band_first(l.a, band + 1);
        if (end <= l.a_row || first >= l.a_row_end) continue;
        uint32_t key[6];
        gcu_sjlt_keys(l.a, chunk, band, key);
        const uint64_t slot = gcu_perm((uint64_t)(j & (l.a.chunk - 1)), l.a.chunk_log2, key);
        const int64_t row = first + (int64_t)((slot * (uint64_t)(end - first)) >> l.a.chunk_log2);
        const uint4 w = gcu_call(l.a.other, (uint32_t)(band / 4), (uint64_t)j >> 5);
        const bool minus = gcu_word(w, (int)(band & 3)) >> (j & 31) & 1;
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            if (v0 + p < points) {
                const T z = gcu_level_z<T>(l, v0 + p, row);
                sum[p] += minus ? -z : z;
            }
    }
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        if (v0 + p < points) gcu_level_write<T>(l, v0 + p, j, sum[p]);
}

template <typename Launch>
static cudaError_t in_batches(int64_t points, int64_t cols, Launch launch)
{
    for (int64_t v = 0; v < points; v += (int64_t)POINTS * 32768) {
        const int64_t count = (points - v + POINTS - 1) / POINTS;
        launch(dim3((unsigned)((cols + THREADS - 1) / THREADS),
                    (unsigned)(count < 32768 ? count : 32768)),
               v);
    }
    return cudaGetLastError();
}

cudaError_t gcu_adjoint_sjlt(const gcu_level &l, bool f64, cudaStream_t stream)
{
    return in_batches(l.n * l.blocks, l.a_col_end - l.a_col, [&](dim3 grid, int64_t v) {
        if (f64)
            from_bands<double><<<grid, THREADS, 0, stream>>>(l, v);
        else
            from_bands<float><<<grid, THREADS, 0, stream>>>(l, v);
    });
}

/* ---- very-sparse ---- */

/* One chunk's nonzeros by column: those of column y are entry[start[y]] ... entry[start[y + 1] -
 * 1], a row doubled, plus 1 for a -1. */
struct by_column {
    unsigned long long *start, *next; /* chunk + 1 of each */
    unsigned long long *entry;
    unsigned long long room;
};

/* A warp walks one row; counts, or writes to where 'next' says. */
template <bool WRITE>
static __global__ void __launch_bounds__(THREADS)
    walk_rows(gcu_level l, int64_t chunk, by_column to)
{
    const int lane = threadIdx.x % 32;
    const int64_t row = l.a_row + blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32;
    if (row >= l.a_row_end) return;
    gcu_walk walk = gcu_walk_row(l.a, row, chunk);
    while (gcu_walk_on(l.a, &walk, lane)) {
        if (lane >= walk.count || walk.col >= l.a.chunk) continue;
        if (WRITE) {
            const unsigned long long at = atomicAdd(&to.next[walk.col], 1ull);
            if (at < to.room) to.entry[at] = 2 * (unsigned long long)row + walk.minus;
        } else {
            atomicAdd(&to.next[walk.col], 1ull);
        }
    }
}

/* Counts to first places, by one block. */
static __global__ void __launch_bounds__(1024) place_lists(by_column to, int64_t cols)
{
    __shared__ unsigned long long total[1024], before;
    const int t = threadIdx.x;
    if (t == 0) before = 0;
    __syncthreads();
    for (int64_t at = 0; at < cols; at += 1024) {
        const unsigned long long count = at + t < cols ? to.next[at + t] : 0;
        total[t] = count;
        __syncthreads();
        for (int d = 1; d < 1024; d *= 2) {
            const unsigned long long other = t >= d ? total[t - d] : 0;
            __syncthreads();
            total[t] += other;
            __syncthreads();
        }
        if (at + t < cols) to.start[at + t] = to.next[at + t] = before + total[t] - count;
        __syncthreads();
        if (t == 1023) before += total[1023];
        __syncthreads();
    }
    if (t == 0) to.start[cols] = before;
}

static __device__ void sift(unsigned long long *list, unsigned long long root,
                            unsigned long long count)
{
    for (;;) {
        unsigned long long child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && list[child] < list[child + 1]) child++;
        if (list[root] >= list[child]) return;
        const unsigned long long t = list[root];
        list[root] = list[child];
        list[child] = t;
        root = child;
    }
}

/* Each column's list ascending (heapsort: nothing bounds its length). */
static __global__ void __launch_bounds__(THREADS) sort_lists(by_column to, int64_t cols)
{
    const int64_t y = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (y >= cols || to.start[cols] > to.room) return;
    unsigned long long *list = to.entry + to.start[y];
    const unsigned long long count = to.start[y + 1] - to.start[y];
    for (unsigned long long i = count / 2; i-- > 0;)
        sift(list, i, count);
    for (unsigned long long end = count; end > 1; end--) {
        const unsigned long long t = list[0];
        list[0] = list[end - 1];
        list[end - 1] = t;
        sift(list, 0, end - 1);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    from_lists(gcu_level l, int64_t chunk, by_column from, int64_t cols, int64_t v_first)
{
    const int64_t y = blockIdx.x * (int64_t)THREADS + threadIdx.x, j = chunk * l.a.chunk + y;
    const int64_t v0 = v_first + blockIdx.y * (int64_t)POINTS, points = l.n * l.blocks;
    if (y >= cols || j < l.a_col || j >= l.a_col_end || from.start[cols] > from.room) return;
    T sum[POINTS] = {};
    for (unsigned long long e = from.start[y]; e < from.start[y + 1]; e++) {
        const unsigned long long entry = from.entry[e];
#pragma unroll
        for (int p = 0; p < POINTS; p++)
            if (v0 + p < points) {
                const T z = gcu_level_z<T>(l, v0 + p, (int64_t)(entry >> 1));
                sum[p] += entry & 1 ? -z : z;
            }
    }
#pragma unroll
    for (int p = 0; p < POINTS; p++)
        if (v0 + p < points) gcu_level_write<T>(l, v0 + p, j, sum[p]);
}

/* What is left to do when a chunk has more nonzeros than there is room for, which some seed may
 * bring about though none is known: every column looks through every row. A warp for a column and
 * 32 points. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    from_rows(gcu_level l, int64_t chunk, by_column from, int64_t cols, int64_t v_first)
{
    if (from.start[cols] <= from.room) return;
    const int lane = threadIdx.x % 32;
    const int64_t points = l.n * l.blocks;
    const int64_t v = v_first + blockIdx.y * (int64_t)POINTS + lane;
    for (int64_t y = blockIdx.x * (int64_t)THREADS + threadIdx.x / 32;
         y < min(cols, (blockIdx.x + 1) * (int64_t)THREADS); y += THREADS / 32) {
        const int64_t j = chunk * l.a.chunk + y;
        if (j < l.a_col || j >= l.a_col_end) continue;
        T sum = 0;
        for (int64_t row = l.a_row; row < l.a_row_end; row++) {
            gcu_walk walk = gcu_walk_row(l.a, row, chunk);
            while (gcu_walk_on(l.a, &walk, lane)) {
                const unsigned here =
                    __ballot_sync(0xFFFFFFFFu, lane < walk.count && walk.col == (uint32_t)y);
                const unsigned minus = __ballot_sync(0xFFFFFFFFu, walk.minus != 0);
                if (!here) continue;
                const T z = v < points ? gcu_level_z<T>(l, v, row) : (T)0;
                sum += here & minus ? -z : z;
            }
        }
        if (lane < POINTS && v < points) gcu_level_write<T>(l, v, j, sum);
    }
}

/* Twelve deviations above the mean, and never more than there are entries. */
static int64_t list_room(const gnomon_simple *a)
{
    const double all = (double)a->rows * (double)a->chunk, mean = all * a->fill;
    const double room = mean + 12.0 * sqrt(mean) + 64.0;
    return (int64_t)(room < all ? room : all);
}

size_t gcu_adjoint_lists_bytes(const gnomon_simple *a)
{
    return (size_t)(2 * (a->chunk + 1) + list_room(a)) * sizeof(unsigned long long);
}

cudaError_t gcu_adjoint_lists(const gcu_level &l, const gnomon_simple *a, bool f64, void *work,
                              cudaStream_t stream)
{
    by_column by;
    by.start = static_cast<unsigned long long *>(work);
    by.next = by.start + a->chunk + 1;
    by.entry = by.next + a->chunk + 1;
    by.room = (unsigned long long)list_room(a);
    const unsigned walkers =
        (unsigned)((l.a_row_end - l.a_row + THREADS / 32 - 1) / (THREADS / 32));
    for (int64_t chunk = l.a_col / a->chunk; chunk * a->chunk < l.a_col_end; chunk++) {
        cudaError_t error = cudaMemsetAsync(by.next, 0, (size_t)(a->chunk + 1) * 8, stream);
        if (error != cudaSuccess) return error;
        walk_rows<false><<<walkers, THREADS, 0, stream>>>(l, chunk, by);
        place_lists<<<1, 1024, 0, stream>>>(by, a->chunk);
        walk_rows<true><<<walkers, THREADS, 0, stream>>>(l, chunk, by);
        sort_lists<<<(unsigned)((a->chunk + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
            by, a->chunk);
        error = in_batches(l.n * l.blocks, a->chunk, [&](dim3 grid, int64_t v) {
            if (f64) {
                from_lists<double><<<grid, THREADS, 0, stream>>>(l, chunk, by, a->chunk, v);
                from_rows<double><<<grid, THREADS, 0, stream>>>(l, chunk, by, a->chunk, v);
            } else {
                from_lists<float><<<grid, THREADS, 0, stream>>>(l, chunk, by, a->chunk, v);
                from_rows<float><<<grid, THREADS, 0, stream>>>(l, chunk, by, a->chunk, v);
            }
        });
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
