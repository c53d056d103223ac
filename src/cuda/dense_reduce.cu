/* Sums over segments added in ascending order, after what the task carries. */
#include "cuda/dense_reduce.h"

enum { THREADS = 256 };

static __global__ void __launch_bounds__(THREADS) reduce(const gcu_reduce_args args)
{
    const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, count = args.rows * args.points;
    if (at >= count) return;
    const int64_t a = args.row + at / args.points, v = args.point + at % args.points;
    if (a < args.task_row) return; /* rows made only to complete a call of four */
    float total = args.first ? gcu_carried<float>(args.out, a - args.task_row, args.all_points, v)
                             : args.running[at];
#pragma unroll 4
    for (int64_t s = 0; s < args.segments; s++)
        total += args.sums[s * count + at];
    if (args.last)
        gcu_emit<float>(args.out, args.task_row, a, v / args.n, v % args.n, args.n,
                        args.all_points / args.n, total);
    else
        args.running[at] = total;
}

cudaError_t gcu_reduce(const gcu_reduce_args *args, cudaStream_t stream)
{
    const int64_t count = args->rows * args->points;
    reduce<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream>>>(*args);
    return cudaGetLastError();
}
