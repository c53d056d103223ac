/* The family gcu_generic: every simple kind in fp32 or fp64, from points of any type and strides.
 *
 * Dense kinds (and srht): tiles of A are made in shared memory and multiplied. Sparse kinds: a warp
 * walks one row for 32 points. Either way a segment of columns is summed in ascending order into a
 * partial sum, and 'join' adds segments in ascending order. */
#include "cuda/project/entries.cuh"

#include <stdio.h>

enum { TILE_ROWS = 64, TILE_POINTS = 64, TILE_COLS = 32, THREADS = 256, LANES = 32 };
enum { SEGMENT_COLS = 16384, ROWS_MOST = 65536 };

#define WORK_BYTES ((int64_t)1 << 28) /* of partial sums, about, at most */

struct generic_sum {
    gcu_matrix a;
    gcu_points x;
    int64_t row, rows;     /* of A, this batch */
    int64_t col;           /* of A, at coordinate 0 */
    int64_t point, points; /* folded, this batch */
    int64_t segment_cols, first_segment, segments;
    void *partial; /* [segment][row][point] */
};

template <typename T> static __global__ void __launch_bounds__(THREADS) dense_kernel(generic_sum s)
{
    __shared__ T entry[TILE_COLS][TILE_ROWS];
    __shared__ T value[TILE_COLS][TILE_POINTS + 1];
    const int tid = threadIdx.x;
    const int64_t v0 = blockIdx.x * (int64_t)TILE_POINTS, r0 = blockIdx.y * (int64_t)TILE_ROWS;
    const int64_t segment = blockIdx.z;
    const int64_t begin = (s.first_segment + segment) * s.segment_cols;
    const int64_t end = min(begin + s.segment_cols, s.x.block_cols);
    const int tx = tid % 16, ty = tid / 16; /* 4 points and 4 rows each */
    /* rows may begin anywhere, and calls cover rows 4 g ... 4 g + 3 */
    const int64_t row0 = s.row + r0, first_group = row0 >> 2;
    const int groups = (int)((row0 + TILE_ROWS + 3 >> 2) - first_group); /* 16 or 17 */
    T sum[4][4] = {};
    const bool by_points = s.x.row_stride == 1;
    for (int64_t q0 = begin; q0 < end; q0 += TILE_COLS) {
        for (int e = tid; e < groups * TILE_COLS; e += THREADS) {
            const int c = e % TILE_COLS, g = e / TILE_COLS;
            float four[4];
            gcu_entries(s.a, (uint32_t)(first_group + g), (uint64_t)(s.col + q0 + c), four);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int64_t r = 4 * (first_group + g) + i - row0;
                if (r >= 0 && r < TILE_ROWS) entry[c][r] = (T)four[i];
            }
        }
        for (int e = tid; e < TILE_POINTS * TILE_COLS; e += THREADS) {
            const int c = by_points ? e / TILE_POINTS : e % TILE_COLS;
            const int p = by_points ? e % TILE_POINTS : e / TILE_COLS;
            const int64_t v = s.point + v0 + p;
            value[c][p] = v0 + p < s.points && q0 + c < end
                              ? gcu_load_any<T>(s.x, v / s.x.n, v % s.x.n, q0 + c)
                              : (T)0;
        }
        __syncthreads();
#pragma unroll 4
        for (int c = 0; c < TILE_COLS; c++) {
            T a[4], x[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                a[i] = entry[c][ty * 4 + i];
                x[i] = value[c][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] = fma(a[i], x[j], sum[i][j]);
        }
        __syncthreads();
    }
    T *to = static_cast<T *>(s.partial) + segment * s.rows * s.points;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int64_t r = r0 + ty * 4 + i, v = v0 + tx + 16 * j;
            if (r < s.rows && v < s.points) to[r * s.points + v] = sum[i][j];
        }
}

/* A warp for one row and 32 points, a point per lane. */
template <typename T> static __global__ void __launch_bounds__(THREADS) sparse_kernel(generic_sum s)
{
    const int lane = threadIdx.x % LANES;
    const int64_t r = blockIdx.y * (int64_t)(THREADS / LANES) + threadIdx.x / LANES;
    if (r >= s.rows) return;
    const int64_t at = blockIdx.x * (int64_t)LANES + lane;
    const int64_t segment = blockIdx.z;
    const int64_t begin = (s.first_segment + segment) * s.segment_cols;
    const int64_t end = min(begin + s.segment_cols, s.x.block_cols);
    const int64_t v = s.point + min(at, s.points - 1), b = v / s.x.n, i = v - b * s.x.n;
    T sum = 0;
    for (int64_t q0 = begin; q0 < end; q0 += s.a.chunk) {
        gcu_walk walk = gcu_walk_row(s.a, s.row + r, (s.col + q0) / s.a.chunk);
        while (gcu_walk_on(s.a, &walk, lane)) {
            for (int e = 0; e < walk.count; e++) {
                const uint32_t col = __shfl_sync(0xFFFFFFFFu, walk.col, e);
                const uint32_t minus = __shfl_sync(0xFFFFFFFFu, walk.minus, e);
                if (col >= s.a.chunk || q0 + col >= end) continue;
                const T x = gcu_load_any<T>(s.x, b, i, q0 + col);
                sum += minus ? -x : x;
            }
        }
    }
    if (at < s.points) static_cast<T *>(s.partial)[(segment * s.rows + r) * s.points + at] = sum;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    join(generic_sum s, T *total, bool first, bool last, int64_t task_row, gcu_out out)
{
    const int64_t t = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    const int64_t r = t / s.points, at = t % s.points;
    if (r >= s.rows) return;
    const int64_t n = s.x.n, v = s.point + at, b = v / n, row = s.row + r;
    T sum = first ? gcu_carried<T>(out, row - task_row, n * s.x.blocks, v) : total[t];
    for (int64_t g = 0; g < s.segments; g++)
        sum += static_cast<const T *>(s.partial)[g * s.rows * s.points + t];
    if (last)
        gcu_emit<T>(out, task_row, row, b, v - b * n, n, s.x.blocks, sum);
    else
        total[t] = sum;
}

static bool is_sparse(const gnomon_simple *a)
{
    return gcu_kind_of(a)->sparse;
}

static bool supports(const gcu_task *t, char *why, size_t why_size)
{
    if (!gcu_kind_of(t->a)) {
        snprintf(why, why_size, "there are no kernels for this kind");
        return false;
    }
    return true;
}

static int64_t granule(const gnomon_simple *a)
{
    if (!is_sparse(a)) return SEGMENT_COLS;
    return a->chunk * (a->chunk < 4 * SEGMENT_COLS ? 4 * SEGMENT_COLS / a->chunk : 1);
}

/* How a task goes: batches of rows, of points and of segments. */
struct course {
    int64_t segments, rows, points, window, size;
    size_t bytes;
};

static void lay_out(course *c)
{
    c->bytes = (size_t)((c->window + (c->window < c->segments)) * c->rows * c->points * c->size);
}

static course plan(const gcu_task *t, size_t room)
{
    course c = {};
    const int64_t all = t->x.n * t->x.blocks;
    c.size = t->f64 ? 8 : 4;
    c.segments = (t->x.block_cols + granule(t->a) - 1) / granule(t->a);
    c.rows = t->rows < TILE_ROWS ? t->rows : (int64_t)TILE_ROWS;
    c.points = all < TILE_POINTS ? all : (int64_t)TILE_POINTS;
    c.window = 1;
    lay_out(&c);
    if (room > (size_t)WORK_BYTES) room = (size_t)WORK_BYTES;
    /* more rows, then more segments, then more points */
    for (;;) {
        course d = c;
        if (d.rows < t->rows && d.rows < ROWS_MOST)
            d.rows = d.rows * 2 < t->rows ? d.rows * 2 : t->rows;
        else if (d.window < d.segments && d.window < 64)
            d.window = d.window * 2 < d.segments ? d.window * 2 : d.segments;
        else if (d.points < all)
            d.points = d.points * 2 < all ? d.points * 2 : all;
        else
            return c;
        lay_out(&d);
        if (d.bytes > room) return c;
        c = d;
    }
}

static size_t best_work(const gcu_task *t)
{
    return plan(t, SIZE_MAX).bytes;
}

static size_t least_work(const gcu_task *t)
{
    return plan(t, 0).bytes;
}

template <typename T>
static cudaError_t run_batch(const gcu_task *t, const course &c, generic_sum s)
{
    T *total = static_cast<T *>(t->work) + c.window * c.rows * c.points;
    s.partial = t->work;
    for (int64_t segment = 0; segment < c.segments; segment += c.window) {
        s.first_segment = segment;
        s.segments = c.segments - segment < c.window ? c.segments - segment : c.window;
        if (is_sparse(t->a)) {
            const dim3 grid((unsigned)((s.points + LANES - 1) / LANES),
                            (unsigned)((s.rows + THREADS / LANES - 1) / (THREADS / LANES)),
                            (unsigned)s.segments);
            sparse_kernel<T><<<grid, THREADS, 0, t->stream>>>(s);
        } else {
            const dim3 grid((unsigned)((s.points + TILE_POINTS - 1) / TILE_POINTS),
                            (unsigned)((s.rows + TILE_ROWS - 1) / TILE_ROWS), (unsigned)s.segments);
            dense_kernel<T><<<grid, THREADS, 0, t->stream>>>(s);
        }
        const unsigned blocks = (unsigned)((s.rows * s.points + THREADS - 1) / THREADS);
        join<T><<<blocks, THREADS, 0, t->stream>>>(
            s, total, segment == 0, segment + s.segments == c.segments, t->row, t->out);
    }
    return cudaGetLastError();
}

static cudaError_t run(const gcu_task *t)
{
    const course c = plan(t, t->work_bytes);
    if (c.bytes > t->work_bytes) return cudaErrorMemoryAllocation;
    const int64_t all = t->x.n * t->x.blocks;
    for (int64_t row = 0; row < t->rows; row += c.rows)
        for (int64_t point = 0; point < all; point += c.points) {
            generic_sum s = {};
            s.a = gcu_matrix_of(t->a, t->gpu);
            s.x = t->x;
            s.row = t->row + row;
            s.rows = t->rows - row < c.rows ? t->rows - row : c.rows;
            s.col = t->col;
            s.point = point;
            s.points = all - point < c.points ? all - point : c.points;
            s.segment_cols = granule(t->a);
            const cudaError_t error =
                t->f64 ? run_batch<double>(t, c, s) : run_batch<float>(t, c, s);
            if (error != cudaSuccess) return error;
        }
    return cudaSuccess;
}

const gcu_family gcu_generic = {"generic", supports, granule, best_work, least_work, run};
