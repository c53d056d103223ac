/* The family of dense operators with many points and few rows: project/dense/points.cuh. */
#include "cuda/project/dense/points_launch.cuh"

#include "base/arithmetic.h"

#include <stdio.h>

namespace
{

/* The type's way to fp16, or -1. */
int type_of(gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_F32:
        return POINTS_F32;
    case GNOMON_F16:
        return POINTS_F16;
    case GNOMON_BF16:
    case GNOMON_I16:
    case GNOMON_U16:
        return POINTS_BF16;
    case GNOMON_I8:
    case GNOMON_U8:
        return POINTS_BYTE;
    default:
        return -1;
    }
}

int kind_of(const gnomon_simple *a)
{
    switch (a->kind) {
    case GNOMON_RADEMACHER:
        return POINTS_KIND_SIGN;
    case GNOMON_ACHLIOPTAS:
        return POINTS_KIND_ACHLIOPTAS;
    case GNOMON_GAUSSIAN:
        return a->precision == GNOMON_F16 ? POINTS_KIND_GAUSSIAN16 : -1;
    default:
        return -1;
    }
}

/* The operators for which this way is the faster one: by their size alone, so that the sums of a
 * point do not depend on how many others there are. Longer ones come with few points. Gaussian
 * values are looked up, which many rows make slow. */
enum { MOST_COLS = 65536, MOST_ENTRIES = 1 << 28 };

bool is_small(const gcu_task *task)
{
    const gnomon_simple *a = task->a;
    const int64_t most = a->kind == GNOMON_GAUSSIAN ? POINTS_GAUSSIAN_ROWS
                         : task->gpu->major == 9    ? 16384
                                                    : 128;
    return a->rows <= most && a->cols <= MOST_COLS && a->rows * a->cols <= MOST_ENTRIES;
}

bool supports(const gcu_task *task, char *why, size_t why_size)
{
    const char *reason = nullptr;
    if (kind_of(task->a) < 0)
        reason = "the kind is none of rademacher, achlioptas and gaussian in fp16";
    else if (type_of(task->x.dtype) < 0)
        reason = "the points' type has more than 16 bits and is not f32";
    else if (task->f64 || task->out.dtype != GNOMON_F32)
        reason = "sums are in fp32 only";
    else if (!is_small(task))
        reason = "the operator has too many rows or columns for points in registers";
    if (reason) snprintf(why, why_size, "%s", reason);
    return !reason;
}

int64_t granule(const gnomon_simple *)
{
    return POINTS_SEGMENT;
}

/* How a task is cut. */
struct cut {
    int type, rows; /* of a pass */
    bool across, hopper;
    int64_t row_base, passes, segments, total;
    int64_t block_points;
};

cut cut_of(const gcu_task *task)
{
    cut c;
    c.type = type_of(task->x.dtype);
    c.hopper = task->gpu->major == 9;
    c.across = task->x.col_stride != 1 && task->x.row_stride == 1;
    c.row_base = task->row & ~(int64_t)3;
    const int64_t rows = task->row + task->rows - c.row_base;
    c.segments = gnomon_ceil_div(task->x.block_cols, POINTS_SEGMENT);
    c.rows = points_pass_rows(rows, c.type, c.hopper);
    if (kind_of(task->a) == POINTS_KIND_GAUSSIAN16 && c.rows > POINTS_GAUSSIAN_ROWS)
        c.rows = POINTS_GAUSSIAN_ROWS;
    c.passes = gnomon_ceil_div(rows, c.rows);
    c.total = task->x.n * task->x.blocks;
    c.block_points = POINTS_GROUP * (c.rows >= POINTS_MANY_ROWS ? 2 : 3);
    return c;
}

/* Bytes of sums of segments a point. */
size_t parts_bytes(const cut &c)
{
    return (size_t)(c.segments * c.passes * c.rows) * sizeof(float);
}

/* Columns a split for which all multiprocessors have work, as multiples of the segment; all of
 * them when there are points enough. Sums of segments do not depend on it. */
int64_t split_segments(const cut &c, int64_t points, int sms)
{
    const int64_t groups = gnomon_ceil_div(points, c.block_points) * c.passes;
    int64_t best = c.segments;
    double least = 1e300;
    for (int64_t each = c.segments;; each = each / 2) {
        const double units = (double)groups * (double)gnomon_ceil_div(c.segments, each);
        const double waves = (double)gnomon_ceil_div((int64_t)units, sms);
        /* leaving the sums of segments for a second kernel costs a little */
        const double time = waves * (double)each * (each == c.segments ? 1.0 : 1.04);
        if (time < least) {
            least = time;
            best = each;
        }
        if (each == 1) return best;
    }
}

/* 16-byte copies: every row (or every coordinate's points) begins at a multiple of 16 bytes. */
bool aligned(const gcu_points &x, bool across)
{
    const int type = type_of(x.dtype);
    const int64_t each = type == POINTS_F32 ? 4 : type == POINTS_BYTE ? 16 : 8;
    if ((uintptr_t)x.data % 16 != 0 || x.block_stride % each != 0) return false;
    if (!across)
        return x.col_stride == 1 && x.row_stride % each == 0 && x.first % each == 0 &&
               (x.blocks == 1 || x.block_cols % each == 0);
    return x.row_stride == 1 && x.col_stride % each == 0 && (x.blocks == 1 || x.n % each == 0);
}

/* Adds the sums of segments in ascending order. */
__global__ void points_add(const __grid_constant__ points_params p, int64_t segments)
{
    const int64_t each = p.task_rows;
    for (int64_t at = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; at < p.points * each;
         at += (int64_t)gridDim.x * blockDim.x) {
        const int64_t v = at / each, a = at % each + p.task_row;
        const float *part = p.parts + v * p.parts_rows + a - p.row_base;
        const int64_t of = p.first_point + v;
        float total = gcu_carried<float>(p.out, a - p.task_row, p.total, of);
        for (int64_t s = 0; s < segments; s++)
            total += part[s * p.points * p.parts_rows];
        if (p.out.finishes)
            points_put(p, points_exit_of(p, of), a, total);
        else
            static_cast<float *>(p.out.carry)[(a - p.task_row) * p.total + of] = total;
    }
}

size_t best_work(const gcu_task *task)
{
    const cut c = cut_of(task);
    const int64_t each = split_segments(c, c.total, task->gpu->sms);
    return each == c.segments ? 0 : (size_t)c.total * parts_bytes(c);
}

size_t least_work(const gcu_task *)
{
    return 0;
}

cudaError_t run(const gcu_task *task)
{
    const cut c = cut_of(task);
    points_params p = {};
    p.x = task->x;
    p.out = task->out;
    p.kind = kind_of(task->a);
    p.stream = gcu_stream_of(task->a, p.kind == POINTS_KIND_SIGN         ? GNOMON_TAG_SIGN
                                      : p.kind == POINTS_KIND_ACHLIOPTAS ? GNOMON_TAG_ACHLIOPTAS
                                                                         : GNOMON_TAG_GAUSSIAN16);
    p.tail = gcu_stream_of(task->a, GNOMON_TAG_GAUSSIAN16_TAIL);
    p.gaussian16 = task->gpu->gaussian16;
    p.task_row = task->row;
    p.task_rows = task->rows;
    p.row_base = c.row_base;
    p.col = (uint64_t)task->col;
    p.total = c.total;
    p.first_point = 0;
    p.points = c.total;
    p.passes = c.passes;
    p.vector = aligned(task->x, c.across);
    p.parts_rows = c.passes * c.rows;
    int64_t each = split_segments(c, c.total, task->gpu->sms);
    if (task->work_bytes < (size_t)c.total * parts_bytes(c)) each = c.segments;
    p.splits = gnomon_ceil_div(c.segments, each);
    p.unit_cols = each * POINTS_SEGMENT;
    p.parts = p.splits > 1 ? static_cast<float *>(task->work) : nullptr;
    if (c.total == 0 || task->rows == 0) return cudaSuccess;
    cudaError_t error = (c.hopper ? points_launch_90 : points_launch_80)(
        task->gpu, &p, c.rows, c.type, c.across, task->stream);
    if (error != cudaSuccess || p.splits == 1) return error;
    const int64_t blocks = gnomon_ceil_div(p.points * p.task_rows, 256);
    points_add<<<(int)(blocks < 4096 ? blocks : 4096), 256, 0, task->stream>>>(p, c.segments);
    return cudaGetLastError();
}

} // namespace

extern const gcu_family gcu_dense_points = {"dense, points", supports,   granule,
                                            best_work,       least_work, run};
