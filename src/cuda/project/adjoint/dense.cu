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

/* ---- many points, in fp32 ---- */

enum { WIDE_POINTS = 256, WIDE = 8 /* a thread's columns and points */ };

/* Columns and points of a thread are fours: 'first' of 'lanes', and as many behind all of those. */
static __device__ __forceinline__ int wide_at(int first, int lanes, int i)
{
    return first * 4 + i % 4 + i / 4 * lanes * 4;
}

/* Tiles of COLS columns and WIDE_POINTS points, so that an entry is made once for these. PLAIN: of
 * one block, whose rows are Z's. */
template <bool PLAIN>
static __global__ void __launch_bounds__(THREADS, 2) wide_product(gcu_level l, int64_t v_first)
{
    __shared__ __align__(16) float entry[ROWS][COLS];
    __shared__ __align__(16) float value[ROWS][WIDE_POINTS + 4];
    __shared__ uint64_t sample[ROWS];
    constexpr int LANES = COLS / WIDE;
    const int tid = threadIdx.x, tx = tid % LANES, ty = tid / LANES;
    const int64_t j0 = l.a_col + blockIdx.x * (int64_t)COLS;
    const int64_t v0 = v_first + blockIdx.y * (int64_t)WIDE_POINTS, points = l.n * l.blocks;
    const bool by_rows = l.z_col_stride == 1, hadamard = l.a.kind == GNOMON_SRHT;
    const uint64_t column = (uint64_t)(j0 + tid % COLS);
    const uint32_t minus =
        hadamard ? gcu_call(l.a.stream, 0, column >> 5).x >> (column & 31) & 1 : 0;
    float sum[WIDE][WIDE] = {};
    for (int64_t a0 = l.a_row & ~(int64_t)3; a0 < l.a_row_end; a0 += ROWS) {
        if (hadamard) {
            if (tid < ROWS)
                sample[tid] = gcu_perm((uint64_t)(a0 + tid), l.a.order_log2, l.a.srht_key);
            __syncthreads();
            for (int a = tid / COLS; a < ROWS; a += THREADS / COLS)
                entry[a][tid % COLS] =
                    ((__popcll(sample[a] & column) ^ minus) & 1) != 0 ? -1.0f : 1.0f;
        }
#pragma unroll 1
        for (int e = hadamard ? ROWS * COLS : tid; e < ROWS / 4 * COLS; e += THREADS) {
            const int c = e % COLS, g = e / COLS;
            float four[4];
            gcu_entries(l.a, (uint32_t)((a0 >> 2) + g), (uint64_t)(j0 + c), four);
#pragma unroll
            for (int i = 0; i < 4; i++)
                entry[4 * g + i][c] = four[i];
        }
        if (PLAIN && l.z_dtype == GNOMON_F32) {
            /* a thread's a and p are steps apart: of one point, or of one row */
            const int a = by_rows ? tid % ROWS : tid / WIDE_POINTS;
            const int p = by_rows ? tid / ROWS : tid % WIDE_POINTS;
            constexpr int ROW_STEP = THREADS / WIDE_POINTS, POINT_STEP = THREADS / ROWS;
            const int64_t h = a0 + a - l.row, v = v0 + p;
            const float *from =
                static_cast<const float *>(l.z) + v * l.z_row_stride + h * l.z_col_stride;
            const int64_t step = by_rows ? POINT_STEP * l.z_row_stride : ROW_STEP * l.z_col_stride;
            float *to = &value[a][p];
            const int to_step = by_rows ? POINT_STEP : ROW_STEP * (WIDE_POINTS + 4);
#pragma unroll 8
            for (int i = 0; i < ROWS * WIDE_POINTS / THREADS; i++, from += step, to += to_step) {
                const int64_t h_i = by_rows ? h : h + i * ROW_STEP;
                const int64_t v_i = by_rows ? v + i * POINT_STEP : v;
                *to = v_i < points && h_i >= 0 && h_i < l.rows ? *from : 0.0f;
            }
        } else {
#pragma unroll 1
            for (int e = tid; e < ROWS * WIDE_POINTS; e += THREADS) {
                const int a = by_rows ? e % ROWS : e / WIDE_POINTS;
                const int p = by_rows ? e / ROWS : e % WIDE_POINTS;
                value[a][p] = v0 + p < points ? gcu_level_z<float>(l, v0 + p, a0 + a) : 0.0f;
            }
        }
        __syncthreads();
#pragma unroll 2
        for (int a = 0; a < ROWS; a++) {
            float s[WIDE], z[WIDE];
#pragma unroll
            for (int i = 0; i < WIDE; i += 4) {
                load4(&entry[a][wide_at(tx, LANES, i)], s + i);
                load4(&value[a][wide_at(ty, THREADS / LANES, i)], z + i);
            }
#pragma unroll
            for (int i = 0; i < WIDE; i++)
#pragma unroll
                for (int p = 0; p < WIDE; p++)
                    sum[i][p] = fmaf(s[i], z[p], sum[i][p]);
        }
        __syncthreads();
    }
    /* four neighbours in memory at a time where there are such */
    const int64_t j1 = l.a_col_end;
    const bool whole = PLAIN && l.x_dtype == GNOMON_F32 && l.beta == 0.0 && j0 + COLS <= j1 &&
                       v0 + WIDE_POINTS <= points && reinterpret_cast<uintptr_t>(l.x) % 16 == 0 &&
                       (j0 - l.col) % 4 == 0;
    if (whole && l.x_col_stride == 1 && l.x_row_stride % 4 == 0) {
#pragma unroll
        for (int p = 0; p < WIDE; p++)
#pragma unroll
            for (int i = 0; i < WIDE; i += 4) {
                const int64_t v = v0 + wide_at(ty, THREADS / LANES, p);
                const int64_t j = j0 + wide_at(tx, LANES, i) - l.col;
                float y[4];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    y[e] = (float)(l.factor_most * ((double)sum[i + e][p] + 0.0));
                *reinterpret_cast<float4 *>(static_cast<float *>(l.x) + v * l.x_row_stride + j) =
                    make_float4(y[0], y[1], y[2], y[3]);
            }
        return;
    }
    if (whole && l.x_row_stride == 1 && l.x_col_stride % 4 == 0) {
#pragma unroll
        for (int i = 0; i < WIDE; i++)
#pragma unroll
            for (int p = 0; p < WIDE; p += 4) {
                const int64_t v = v0 + wide_at(ty, THREADS / LANES, p);
                const int64_t j = j0 + wide_at(tx, LANES, i) - l.col;
                float y[4];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    y[e] = (float)(l.factor_most * ((double)sum[i][p + e] + 0.0));
                *reinterpret_cast<float4 *>(static_cast<float *>(l.x) + j * l.x_col_stride + v) =
                    make_float4(y[0], y[1], y[2], y[3]);
            }
        return;
    }
#pragma unroll
    for (int i = 0; i < WIDE; i++)
#pragma unroll
        for (int p = 0; p < WIDE; p++) {
            const int64_t v = v0 + wide_at(ty, THREADS / LANES, p);
            const int64_t j = j0 + wide_at(tx, LANES, i);
            if (v < points && j < j1) gcu_level_write<float>(l, v, j, sum[i][p]);
        }
}

cudaError_t gcu_adjoint_dense(const gcu_level &l, bool f64, cudaStream_t stream)
{
    const int64_t points = l.n * l.blocks;
    const unsigned tiles = (unsigned)((l.a_col_end - l.a_col + COLS - 1) / COLS);
    const bool wide = !f64 && points > POINTS;
    const bool plain = l.blocks == 1 && l.r == 1 && l.factor_most == l.factor_least;
    const int64_t tile = wide ? (int64_t)WIDE_POINTS : (int64_t)POINTS;
    for (int64_t v = 0; v < points; v += tile * 32768) {
        const int64_t count = (points - v + tile - 1) / tile;
        const dim3 grid(tiles, (unsigned)(count < 32768 ? count : 32768));
        if (f64)
            product<double><<<grid, THREADS, 0, stream>>>(l, v);
        else if (wide && plain)
            wide_product<true><<<grid, THREADS, 0, stream>>>(l, v);
        else if (wide)
            wide_product<false><<<grid, THREADS, 0, stream>>>(l, v);
        else
            product<float><<<grid, THREADS, 0, stream>>>(l, v);
    }
    return cudaGetLastError();
}
