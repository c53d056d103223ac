/* The family gcu_srht: how a task is cut into batches of points (project/srht/srht.h). */
#include "cuda/project/srht/srht.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdio.h>

#define BATCH_BYTES ((int64_t)1 << 29) /* of partial sums, or of points copied to rows */

srht_shape srht_shape_of(const gnomon_simple *a)
{
    srht_shape s = {};
    s.signs = gcu_stream_of(a, GNOMON_TAG_SRHT_SIGNS);
    s.order_log2 = a->order_log2;
    for (int i = 0; i < 6; i++)
        s.key[i] = a->srht_key[i];
    /* A block costs its levels and one addition a row. */
    s.log2 = a->rows <= 256 || a->order_log2 <= 10    ? 10
             : a->rows <= 1024 || a->order_log2 <= 11 ? 11
             : a->order_log2 == 12                    ? 12
                                                      : 13;
    return s;
}

static __global__ void make_signs(gcu_stream signs, int64_t first, int64_t words, uint32_t *to)
{
    const int64_t q = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (q < words) to[q] = gcu_call(signs, 0, (uint64_t)(first + q)).x;
}

static __global__ void make_samples(srht_shape s, int64_t row, int64_t rows, uint64_t *to)
{
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < rows) to[i] = gcu_perm((uint64_t)(row + i), s.order_log2, s.key);
}

cudaError_t srht_samples(const srht_shape &s, int64_t row, int64_t rows, uint64_t *to,
                         cudaStream_t stream)
{
    make_samples<<<(unsigned)((rows + 255) / 256), 256, 0, stream>>>(s, row, rows, to);
    return cudaGetLastError();
}

/* Adds the segments up: 32 rows of 8 points, read in the order of rows and handed over in that of
 * the points or the rows. */
static __global__ void __launch_bounds__(256) join(srht_sum sum, int64_t first)
{
    __shared__ float tile[32][9]; /* rows x points */
    const int64_t n = sum.x.n, points = sum.points;
    const int64_t row0 = blockIdx.x * (int64_t)32, v0 = first + blockIdx.y * (int64_t)8;
    const bool by_points = !sum.out.finishes || sum.out.col_stride != 1;
    int r = threadIdx.x / 8, p = threadIdx.x % 8;
    if (!sum.out.begins) {
        if (row0 + r < sum.rows && v0 + p < points)
            tile[r][p] =
                static_cast<const float *>(sum.out.carry)[(row0 + r) * n + sum.point + v0 + p];
        __syncthreads();
    }
    if (!sum.across) r = threadIdx.x % 32, p = threadIdx.x / 32;
    float total = sum.out.begins ? 0.0f : tile[r][p];
    if (row0 + r < sum.rows && v0 + p < points) {
        const float *const part = sum.partial + (sum.across ? (row0 + r) * points + v0 + p
                                                            : (v0 + p) * sum.rows + row0 + r);
        const int64_t step = points * sum.rows;
#pragma unroll 8
        for (int64_t s = 0; s < sum.segments; s++)
            total += part[s * step];
    }
    if (by_points != sum.across) {
        tile[r][p] = total;
        __syncthreads();
        r = by_points ? threadIdx.x / 8 : threadIdx.x % 32;
        p = by_points ? threadIdx.x % 8 : threadIdx.x / 32;
        total = tile[r][p];
    }
    if (row0 + r >= sum.rows || v0 + p >= points) return;
    const int64_t point = sum.point + v0 + p;
    if (!sum.out.finishes) {
        static_cast<float *>(sum.out.carry)[(row0 + r) * n + point] = total;
        return;
    }
    const int64_t h = sum.task_row + row0 + r - sum.out.row;
    if (h < 0 || h >= sum.out.rows || h >= sum.out.k - sum.out.row) return;
    float *const y =
        static_cast<float *>(sum.out.y) + point * sum.out.row_stride + h * sum.out.col_stride;
    *y = gcu_finished(sum.out.factor_most, (double)total, sum.out.beta, y);
}

/* ---- points copied to rows: their columns are apart from each other, or they are integers ---- */

enum { TILE = 32, TILE_COLS = 128 };

template <typename T, typename R>
static __global__ void __launch_bounds__(256)
    to_rows(gcu_points x, int64_t point, int64_t points, R *to, int64_t width)
{
    __shared__ R tile[TILE_COLS][TILE + 1];
    const int lane = threadIdx.x % TILE, warp = threadIdx.x / TILE;
    const int64_t q0 = blockIdx.x * (int64_t)TILE_COLS, v0 = blockIdx.y * (int64_t)TILE;
    const int64_t low = max((int64_t)0, x.first), high = min(x.block_cols, x.end);
    const bool by_rows = x.col_stride == 1; /* else lanes are points */
    const T *const data = static_cast<const T *>(x.data) + point * x.row_stride;
    R e[TILE_COLS / 8];
    if (by_rows) {
#pragma unroll
        for (int j = 0; j < TILE_COLS / 8; j++) {
            const int64_t v = v0 + warp + j / 4 * 8, q = q0 + j % 4 * TILE + lane;
            const bool have = v < points && q >= low && q < high;
            e[j] = have ? (R)data[v * x.row_stride + q] : (R)0.0f;
        }
#pragma unroll
        for (int j = 0; j < TILE_COLS / 8; j++) {
            const int64_t v = v0 + warp + j / 4 * 8, q = q0 + j % 4 * TILE + lane;
            if (v < points && q < width) to[v * width + q] = e[j];
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < TILE_COLS / 8; j++) {
        const int64_t v = v0 + lane, q = q0 + j * 8 + warp;
        const bool have = v < points && q >= low && q < high;
        e[j] = have ? (R)data[v * x.row_stride + q * x.col_stride] : (R)0.0f;
    }
#pragma unroll
    for (int j = 0; j < TILE_COLS / 8; j++)
        tile[j * 8 + warp][lane] = e[j];
    __syncthreads();
    for (int p = warp; p < TILE && v0 + p < points; p += 8)
#pragma unroll
        for (int c = lane; c < TILE_COLS; c += TILE)
            if (q0 + c < width) to[(v0 + p) * width + q0 + c] = tile[c][p];
}

template <typename T, typename R>
static cudaError_t launch_to_rows(const gcu_points &x, int64_t point, int64_t points, void *to,
                                  int64_t width, cudaStream_t stream)
{
    const int64_t most = (int64_t)TILE * 32768; /* points a launch */
    for (int64_t v = 0; v < points; v += most) {
        const int64_t count = points - v < most ? points - v : most;
        const dim3 grid((unsigned)((width + TILE_COLS - 1) / TILE_COLS),
                        (unsigned)((count + TILE - 1) / TILE));
        to_rows<T, R><<<grid, 256, 0, stream>>>(x, point + v, count,
                                                static_cast<R *>(to) + v * width, width);
    }
    return cudaGetLastError();
}

static cudaError_t rows_of(const gcu_points &x, int64_t point, int64_t points, void *to,
                           int64_t width, cudaStream_t stream)
{
    switch (x.dtype) {
    case GNOMON_F32:
        return launch_to_rows<float, float>(x, point, points, to, width, stream);
    case GNOMON_F16:
        return launch_to_rows<__half, __half>(x, point, points, to, width, stream);
    case GNOMON_BF16:
        return launch_to_rows<__nv_bfloat16, __nv_bfloat16>(x, point, points, to, width, stream);
    case GNOMON_I8:
        return launch_to_rows<int8_t, float>(x, point, points, to, width, stream);
    case GNOMON_U8:
        return launch_to_rows<uint8_t, float>(x, point, points, to, width, stream);
    case GNOMON_I16:
        return launch_to_rows<int16_t, float>(x, point, points, to, width, stream);
    case GNOMON_U16:
        return launch_to_rows<uint16_t, float>(x, point, points, to, width, stream);
    default:
        return cudaErrorInvalidValue;
    }
}

static bool is_half(gnomon_dtype t)
{
    return t == GNOMON_F16 || t == GNOMON_BF16;
}

/* ---- the task ---- */

struct course {
    srht_shape s;
    int64_t segments, points, width;
    bool across, copied;
    size_t sample_at, sign_at, partial_at, copy_at, bytes;
};

static size_t set_aside(size_t *at, int64_t bytes)
{
    const size_t here = *at;
    *at += (size_t)((bytes + 255) / 256 * 256);
    return here;
}

/* Whether sums go to y as they come: it takes them in the order of rows, or of points. */
static bool is_direct(const course *c, const gcu_task *t)
{
    return c->segments == 1 && t->out.begins && t->out.finishes &&
           (c->across ? t->out.row_stride : t->out.col_stride) == 1;
}

static void lay_out(course *c, const gcu_task *t)
{
    size_t at = 0;
    const bool direct = is_direct(c, t);
    const int64_t all = c->segments << (SRHT_SEGMENT_LOG2 + c->s.log2);
    c->sample_at = set_aside(&at, t->rows * 8);
    /* whole blocks have signs, though the last may reach beyond A's columns */
    c->sign_at =
        set_aside(&at, (c->segments == 1 ? (t->x.block_cols + 8191) / 8192 * 8192 : all) / 8);
    c->partial_at = set_aside(&at, direct ? 0 : c->segments * c->points * t->rows * 4);
    c->copy_at =
        set_aside(&at, c->copied ? c->points * c->width * (is_half(t->x.dtype) ? 2 : 4) : 0);
    c->bytes = at;
}

static course start_course(const gcu_task *t)
{
    course c = {};
    c.s = srht_shape_of(t->a);
    const int64_t cols = (int64_t)1 << (SRHT_SEGMENT_LOG2 + c.s.log2);
    c.segments = (t->x.block_cols + cols - 1) / cols;
    c.across =
        t->x.col_stride != 1 && srht_across_supported(c.s, t->rows, t->x, t->gpu->smem_bytes);
    c.copied =
        !c.across && (t->x.col_stride != 1 || (t->x.dtype != GNOMON_F32 && !is_half(t->x.dtype)));
    c.width = (t->x.block_cols + 15) / 16 * 16;
    c.points = 1;
    lay_out(&c, t);
    return c;
}

static course plan(const gcu_task *t, size_t room)
{
    course c = start_course(t);
    const int64_t all = t->x.n;
    const int64_t most =
        c.segments * t->rows * 4 > c.width * 4 ? c.segments * t->rows * 4 : c.width * 4;
    int64_t points = BATCH_BYTES / most > 32 ? BATCH_BYTES / most / 32 * 32 : 32;
    if (is_direct(&c, t) && !c.copied) points = all;
    if (points > all) points = all;
    for (course d = c; points > 1; points = (points + 1) / 2) {
        d.points = points;
        lay_out(&d, t);
        if (d.bytes <= room) return d;
    }
    return c;
}

static bool supports(const gcu_task *t, char *why, size_t why_size)
{
    if (t->a->kind != GNOMON_SRHT) {
        snprintf(why, why_size, "the kind is not srht");
        return false;
    }
    if (t->x.blocks != 1 || t->out.r != 1) {
        snprintf(why, why_size, "srht is no inner kind");
        return false;
    }
    return gcu_sums_in_fp32(t, why, why_size);
}

static int64_t granule(const gnomon_simple *a)
{
    return (int64_t)1 << (SRHT_SEGMENT_LOG2 + srht_shape_of(a).log2);
}

static size_t best_work(const gcu_task *t)
{
    return plan(t, SIZE_MAX).bytes;
}

static size_t least_work(const gcu_task *t)
{
    return start_course(t).bytes;
}

static cudaError_t run(const gcu_task *t)
{
    const course c = plan(t, t->work_bytes);
    if (c.bytes > t->work_bytes) return cudaErrorMemoryAllocation;
    char *work = static_cast<char *>(t->work);
    uint32_t *sign = reinterpret_cast<uint32_t *>(work + c.sign_at);
    uint64_t *sample = reinterpret_cast<uint64_t *>(work + c.sample_at);
    const int64_t words = (int64_t)(c.partial_at - c.sign_at) / 4;
    make_signs<<<(unsigned)((words + 255) / 256), 256, 0, t->stream>>>(c.s.signs, t->col / 32,
                                                                       words, sign);
    cudaError_t error = srht_samples(c.s, t->row, t->rows, sample, t->stream);
    const int64_t all = t->x.n;
    for (int64_t point = 0; point < all && error == cudaSuccess; point += c.points) {
        srht_sum sum = {};
        sum.x = t->x;
        sum.across = c.across;
        sum.col = t->col;
        sum.sign = sign;
        sum.sample = sample;
        sum.task_row = t->row;
        sum.rows = t->rows;
        sum.point = point;
        sum.points = c.points < all - point ? c.points : all - point;
        sum.segments = c.segments;
        sum.out = t->out;
        const bool direct = is_direct(&c, t);
        sum.partial = direct ? nullptr : reinterpret_cast<float *>(work + c.partial_at);
        if (c.copied) {
            error = rows_of(t->x, point, sum.points, work + c.copy_at, c.width, t->stream);
            if (error != cudaSuccess) return error;
            const int64_t size = is_half(t->x.dtype) ? 2 : 4;
            sum.x.dtype = is_half(t->x.dtype) ? t->x.dtype : GNOMON_F32;
            sum.x.data = work + c.copy_at - point * c.width * size;
            sum.x.row_stride = c.width;
            sum.x.col_stride = 1;
            sum.x.first = 0;
            sum.x.end = t->x.block_cols;
        }
        error = srht_sum_blocks(c.s, sum, t->gpu->sms, t->stream);
        if (error != cudaSuccess || direct) continue;
        for (int64_t v = 0; v < sum.points; v += 8 * 32768) {
            const int64_t tiles = (sum.points - v + 7) / 8;
            const dim3 grid((unsigned)((t->rows + 31) / 32),
                            tiles < 32768 ? (unsigned)tiles : 32768);
            join<<<grid, 256, 0, t->stream>>>(sum, v);
        }
        error = cudaGetLastError();
    }
    return error;
}

const gcu_family gcu_srht = {"srht", supports, granule, best_work, least_work, run};
