/* A level of an adjoint for the dense kinds and srht: tiles of A times tiles of Z. */
#include "cuda/project/adjoint/adjoint.h"

enum { COLS = 64, POINTS = 64, ROWS = 32, THREADS = 256 };

static __device__ __forceinline__ void load4(const float *from, float to[4])
{
    const float4 x = *reinterpret_cast<const float4 *>(from);
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

static __device__ __forceinline__ void load4(const double *from, double to[4])
{
    const double2 x = *reinterpret_cast<const double2 *>(from);
    const double2 y = *reinterpret_cast<const double2 *>(from + 2);
    to[0] = x.x, to[1] = x.y, to[2] = y.x, to[3] = y.y;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS) product(gcu_level l, int64_t v_first)
{
    __shared__ __align__(16) T entry[ROWS][COLS];
    __shared__ __align__(16) T value[ROWS][POINTS + 4];
    const int tid = threadIdx.x, tx = tid % 16, ty = tid / 16;
    const int64_t j0 = l.a_col + blockIdx.x * (int64_t)COLS;
    const int64_t v0 = v_first + blockIdx.y * (int64_t)POINTS, points = l.n * l.blocks;
    const bool by_rows = l.z_col_stride == 1;
    const bool hadamard = l.a.kind == GNOMON_SRHT;
    /* srht: perm of the rows, once for all columns */
    __shared__ uint64_t sample[ROWS];
    const uint64_t column = (uint64_t)(j0 + tid % COLS);
    const uint32_t minus =
        hadamard ? gcu_call(l.a.stream, 0, column >> 5).x >> (column & 31) & 1 : 0;
    T sum[4][4] = {};
    for (int64_t a0 = l.a_row & ~(int64_t)3; a0 < l.a_row_end; a0 += ROWS) {
        if (hadamard) {
            if (tid < ROWS)
                sample[tid] = gcu_perm((uint64_t)(a0 + tid), l.a.order_log2, l.a.srht_key);
            __syncthreads();
            for (int a = tid / COLS; a < ROWS; a += THREADS / COLS)
                entry[a][tid % COLS] =
                    ((__popcll(sample[a] & column) ^ minus) & 1) != 0 ? (T)-1 : (T)1;
        }
        for (int e = hadamard ? ROWS * COLS : tid; e < ROWS / 4 * COLS; e += THREADS) {
            const int c = e % COLS, g = e / COLS;
            float four[4];
            gcu_entries(l.a, (uint32_t)((a0 >> 2) + g), (uint64_t)(j0 + c), four);
#pragma unroll
            for (int i = 0; i < 4; i++)
                entry[4 * g + i][c] = (T)four[i];
        }
        for (int e = tid; e < ROWS * POINTS; e += THREADS) {
            const int a = by_rows ? e % ROWS : e / POINTS, p = by_rows ? e / ROWS : e % POINTS;
            value[a][p] = v0 + p < points ? gcu_level_z<T>(l, v0 + p, a0 + a) : (T)0;
        }
        __syncthreads();
#pragma unroll 4
        for (int a = 0; a < ROWS; a++) {
            T s[4], z[4];
            load4(&entry[a][tx * 4], s);
            load4(&value[a][ty * 4], z);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int p = 0; p < 4; p++)
                    sum[i][p] = fma(s[i], z[p], sum[i][p]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int p = 0; p < 4; p++)
            if (v0 + ty * 4 + p < points && j0 + tx * 4 + i < l.a_col_end)
                gcu_level_write<T>(l, v0 + ty * 4 + p, j0 + tx * 4 + i, sum[i][p]);
}

cudaError_t gcu_adjoint_dense(const gcu_level &l, bool f64, cudaStream_t stream)
{
    const int64_t points = l.n * l.blocks;
    const unsigned tiles = (unsigned)((l.a_col_end - l.a_col + COLS - 1) / COLS);
    for (int64_t v = 0; v < points; v += (int64_t)POINTS * 32768) {
        const int64_t count = (points - v + POINTS - 1) / POINTS;
        const dim3 grid(tiles, (unsigned)(count < 32768 ? count : 32768));
        if (f64)
            product<double><<<grid, THREADS, 0, stream>>>(l, v);
        else
            product<float><<<grid, THREADS, 0, stream>>>(l, v);
    }
    return cudaGetLastError();
}
