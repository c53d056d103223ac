/* One read of points before they are hashed: NaN and infinity, lengths, and a copy that tensor
 * copies take. */
#include "cuda/lsh/lsh.h"

namespace
{

enum { THREADS = 256, WARPS = THREADS / 32 };

/* A warp takes a point, or (ACROSS) a thread, where points lie side by side. */
template <bool ACROSS>
__global__ void __launch_bounds__(THREADS)
    load_points(const __grid_constant__ gnomon_matrix x, int64_t row, const double *longest,
                double factor, float *reach, float *to, int64_t stride, unsigned long long *first)
{
    const int64_t unit = ACROSS ? (int64_t)blockIdx.x * THREADS + threadIdx.x
                                : (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    const int64_t all = (int64_t)gridDim.x * (ACROSS ? THREADS : WARPS);
    const int64_t begin = ACROSS ? 0 : threadIdx.x % 32, step = ACROSS ? 1 : 32;
    const bool plain = x.dtype == GNOMON_F32;
    for (int64_t i = unit; i < x.rows; i += all) {
        double square = 0.0;
        for (int64_t j = begin; j < x.cols; j += step) {
            const int64_t at = i * x.row_stride + j * x.col_stride;
            const float v = plain ? static_cast<const float *>(x.data)[at]
                                  : gcu_element<float>(x.data, x.dtype, at);
            square = fma((double)v, (double)v, square);
            if (!isfinite(v)) atomicMin(first, (unsigned long long)((row + i) * x.cols + j));
            if (to) to[i * stride + j] = v;
        }
        if (to)
            for (int64_t j = x.cols + begin; j < stride; j += step)
                to[i * stride + j] = 0.0f;
        if (!ACROSS)
            for (int d = 16; d > 0; d /= 2)
                square += __shfl_xor_sync(~0u, square, d);
        if (ACROSS || threadIdx.x % 32 == 0)
            reach[i] = __double2float_ru(factor * *longest * sqrt(square));
    }
}

/* The same for fp32 rows that 16-byte loads take, which stay where they are. */
__global__ void __launch_bounds__(THREADS)
    scan_rows(const float *x, int64_t n, int64_t cols, int64_t stride, int64_t row,
              const double *longest, double factor, float *reach, unsigned long long *first)
{
    enum { ROWS = 4 }; /* at a time: so that enough loads are on their way */
    const int lane = (int)threadIdx.x % 32;
    const int64_t all = (int64_t)gridDim.x * WARPS * ROWS, whole = cols / 4;
    for (int64_t i = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * ROWS; i < n; i += all) {
        double square[ROWS] = {};
        for (int64_t j = lane; j < whole; j += 32) {
            float4 v[ROWS];
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                v[r] = i + r < n ? reinterpret_cast<const float4 *>(x + (i + r) * stride)[j]
                                 : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                square[r] = fma((double)v[r].x, (double)v[r].x, square[r]);
                square[r] = fma((double)v[r].y, (double)v[r].y, square[r]);
                square[r] = fma((double)v[r].z, (double)v[r].z, square[r]);
                square[r] = fma((double)v[r].w, (double)v[r].w, square[r]);
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float *from = x + (i + r) * stride;
            if (i + r >= n) break;
            for (int64_t j = 4 * whole + lane; j < cols; j += 32)
                square[r] = fma((double)from[j], (double)from[j], square[r]);
            for (int d = 16; d > 0; d /= 2)
                square[r] += __shfl_xor_sync(~0u, square[r], d);
            if (lane == 0) reach[i + r] = __double2float_ru(factor * *longest * sqrt(square[r]));
            if (isfinite(square[r])) continue; /* fp64 holds the squares of all fp32 numbers */
            for (int64_t j = lane; j < cols; j += 32)
                if (!isfinite(from[j]))
                    atomicMin(first, (unsigned long long)((row + i + r) * cols + j));
        }
    }
}

__global__ void __launch_bounds__(THREADS)
    find_longest(const float *directions, int64_t rows, int64_t cols, double *longest)
{
    const int64_t all = (int64_t)gridDim.x * WARPS;
    for (int64_t f = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; f < rows; f += all) {
        double square = 0.0;
        for (int64_t j = threadIdx.x % 32; j < cols; j += 32)
            square =
                fma((double)directions[f * cols + j], (double)directions[f * cols + j], square);
        for (int d = 16; d > 0; d /= 2)
            square += __shfl_xor_sync(~0u, square, d);
        /* numbers that are not negative are in the order of their bits */
        if (threadIdx.x % 32 == 0)
            atomicMax(reinterpret_cast<unsigned long long *>(longest),
                      (unsigned long long)__double_as_longlong(sqrt(square)));
    }
}

unsigned grid_of(int64_t items)
{
    const int64_t most = 1 << 14;
    return (unsigned)(items < most ? items : most);
}

/* How far a sum of D products may be from the CPU's, in units of 2^-24 of the product of lengths,
 * which no sum of magnitudes passes: the CPU's chains of 256 and their sum; and on tensor cores
 * what two fp16 numbers lose of an entry of either side (2^-22), what is cut off each time that 16
 * products and the sum before are added (17 addends, each by at most 2^-24 of the largest, four
 * times for 64 columns; products of low halves, summed apart, are 2^-11 of that), and the sums of
 * 64 columns. See gemm/gemm.h. */
double distance_of(int64_t dim)
{
    const double cpu = (double)(dim < 256 ? dim : 256) + (double)(dim / 256 + 2);
    const double gpu = 4 + 4 + 17 * 4 * 1.01 + (double)(dim / 64 + 2);
    return (cpu + gpu + 4) * 0x1p-24;
}

} // namespace

cudaError_t gcu_lsh_load_points(const gnomon_matrix *x, int64_t row, const double *longest,
                                float *reach, float *to, int64_t stride, unsigned long long *first,
                                cudaStream_t stream)
{
    if (x->rows == 0) return cudaSuccess;
    const double factor = distance_of(x->cols);
    if (!to && x->dtype == GNOMON_F32 && x->col_stride == 1 && x->row_stride % 4 == 0 &&
        (uintptr_t)x->data % 16 == 0) {
        scan_rows<<<grid_of((x->rows + WARPS - 1) / WARPS), THREADS, 0, stream>>>(
            static_cast<const float *>(x->data), x->rows, x->cols, x->row_stride, row, longest,
            factor, reach, first);
        return cudaGetLastError();
    }
    if (x->col_stride != 1 && (x->row_stride == 1 || x->row_stride == -1))
        load_points<true><<<grid_of((x->rows + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
            *x, row, longest, factor, reach, to, stride, first);
    else
        load_points<false><<<grid_of((x->rows + WARPS - 1) / WARPS), THREADS, 0, stream>>>(
            *x, row, longest, factor, reach, to, stride, first);
    return cudaGetLastError();
}

cudaError_t gcu_lsh_longest(const float *directions, int64_t rows, int64_t cols, double *longest,
                            cudaStream_t stream)
{
    cudaError_t error = cudaMemsetAsync(longest, 0, sizeof *longest, stream);
    if (error != cudaSuccess) return error;
    find_longest<<<grid_of((rows + WARPS - 1) / WARPS), THREADS, 0, stream>>>(directions, rows,
                                                                              cols, longest);
    return cudaGetLastError();
}
