/* Sums over segments added in ascending order, after what the task carries.
 *
 * A block of threads takes a tile of rows x points, so that sums, which lie points first, are read
 * and a sketch that lies rows first is written in whole lines. */
#include "cuda/project/dense/reduce.h"

enum { THREADS = 256, MOST_POINTS = 32 };

/* Sums of a block: so many where there are many, and one a thread where more would leave
 * multiprocessors without work. */
enum { TILE_MANY = 2048, TILE_FEW = 256, FEW = 1 << 20 };

/* Where a folded point's rows go: rows [low, high) of A, row a to element at + a * col_stride. */
struct place {
    int64_t at, low, high;
    double factor;
};

static __device__ place place_of(const gcu_reduce_args &args, int64_t v)
{
    const gcu_out &out = args.out;
    const int64_t b = v / args.n, i = v % args.n;
    const int64_t first = gcu_mul_div(out.block + b, out.k, out.r);
    const int64_t rows = gcu_mul_div(out.block + b + 1, out.k, out.r) - first;
    const int64_t end = out.row + out.rows - first;
    place p;
    p.at = i * out.row_stride + (first - out.row) * out.col_stride;
    p.low = args.task_row > out.row - first ? args.task_row : out.row - first;
    p.high = rows < end ? rows : end;
    p.factor = rows == (out.k + out.r - 1) / out.r ? out.factor_most : out.factor_least;
    return p;
}

template <typename T>
static __device__ __forceinline__ void put(const gcu_out &out, const place &p, int64_t a,
                                           float total)
{
    T *y = static_cast<T *>(out.y) + p.at + a * out.col_stride;
    *y = gcu_finished(p.factor, (double)total, out.beta, y);
}

/* A tile has 2^points_log2 points. */
template <int TILE>
static __global__ void __launch_bounds__(THREADS)
    reduce(const __grid_constant__ gcu_reduce_args args, int64_t groups, int points_log2)
{
    __shared__ float totals[2 * TILE];
    __shared__ place places[MOST_POINTS];
    const int width = 1 << points_log2, height = TILE >> points_log2, tid = threadIdx.x;
    const int64_t row = blockIdx.x / groups * height, point = blockIdx.x % groups * width;
    const int mine = tid & (width - 1);
    const int64_t v = point + mine, count = args.rows * args.points;
    if (v < args.points) {
#pragma unroll 4
        for (int r = tid >> points_log2; r < height; r += THREADS >> points_log2) {
            const int64_t a = args.row + row + r; /* the first ones may only complete a call */
            if (row + r >= args.rows || a < args.task_row) continue;
            const int64_t at = (row + r) * args.points + v;
            const int64_t of = (a - args.task_row) * args.all_points + args.point + v;
            float total = !args.first       ? args.running[at]
                          : args.out.begins ? 0.0f
                                            : static_cast<const float *>(args.out.carry)[of];
#pragma unroll(TILE == TILE_FEW ? 32 : 4)
            for (int64_t s = 0; s < args.segments; s++)
                total += args.sums[s * count + at];
            if (!args.last)
                args.running[at] = total;
            else if (!args.out.finishes)
                static_cast<float *>(args.out.carry)[of] = total;
            else
                totals[r * (width + 1) + mine] = total;
        }
    }
    if (!args.last || !args.out.finishes) return;
    if (tid < width && v < args.points) places[tid] = place_of(args, args.point + v);
    __syncthreads();
    const bool points_first = llabs(args.out.row_stride) < llabs(args.out.col_stride);
#pragma unroll 4
    for (int at = tid; at < TILE; at += THREADS) {
        const int r = points_first ? at >> points_log2 : at & (height - 1);
        const int i = points_first ? at & (width - 1) : at / height;
        const int64_t a = args.row + row + r;
        if (row + r >= args.rows || point + i >= args.points) continue;
        const place &p = places[i];
        if (a < p.low || a >= p.high) continue;
        const float total = totals[r * (width + 1) + i];
        if (args.out.dtype == GNOMON_F64)
            put<double>(args.out, p, a, total);
        else
            put<float>(args.out, p, a, total);
    }
}

cudaError_t gcu_reduce(const gcu_reduce_args *args, cudaStream_t stream)
{
    int points_log2 = 0;
    while (1 << points_log2 < MOST_POINTS && 1 << points_log2 < args->points)
        points_log2++;
    const int64_t groups = (args->points + (1 << points_log2) - 1) >> points_log2;
    const bool few = args->rows * args->points <= FEW;
    const int64_t height = (few ? TILE_FEW : TILE_MANY) >> points_log2;
    const int64_t blocks = groups * ((args->rows + height - 1) / height);
    if (few)
        reduce<TILE_FEW><<<(unsigned)blocks, THREADS, 0, stream>>>(*args, groups, points_log2);
    else
        reduce<TILE_MANY><<<(unsigned)blocks, THREADS, 0, stream>>>(*args, groups, points_log2);
    return cudaGetLastError();
}
