/* The family for dense operators made in the register operand of the matrix instructions: points
 * are packed (project/dense/pack.cu), multiplied segment by segment (rows_*.cu) and the
 * segments added in order (project/dense/reduce.cu). */
#include "cuda/project/dense/rows.cuh"

#include "base/arithmetic.h"
#include "cuda/project/dense/reduce.h"

#include <stdio.h>

static bool supports(const gcu_task *task, char *why, size_t why_size)
{
    gcu_dense_kind kind;
    if (!gcu_dense_kind_of(task->a, &kind)) {
        snprintf(why, why_size, "the operator is not dense");
        return false;
    }
    return gcu_sums_in_fp32(task, why, why_size);
}

/* Columns of a segment: enough segments to fill large GPUs, by the size of A alone. */
static int64_t granule(const gnomon_simple *a)
{
    int64_t length = 1 << 17;
    while (length > 1 << 12 &&
           gnomon_ceil_div(a->rows, 512) * gnomon_ceil_div(a->cols, length) < 3072)
        length /= 2;
    return length;
}

struct plan {
    gcu_dense_kind kind;
    gcu_tile_shape shape;
    int64_t tile_rows;
    int64_t row;               /* the task's, rounded down to a multiple of four */
    int64_t segment, segments; /* columns of one, and how many in all */
    /* of one launch */
    int64_t rows, points, pass; /* segments of a pass */
};

static int64_t folded(const gcu_task *task)
{
    return task->x.n * task->x.blocks;
}

static int64_t tiles_bytes(const gcu_task *task, const plan *p)
{
    const int64_t blocks =
        gnomon_ceil_div(gnomon_min(p->pass * p->segment, task->x.block_cols), GCU_KBLOCK);
    return gnomon_round_up(gnomon_ceil_div(p->points, p->shape.points) * blocks *
                               gcu_tile_stride(p->shape.points, p->shape.split),
                           256);
}

static int64_t sums_bytes(const plan *p)
{
    return gnomon_round_up(p->pass * p->rows * p->points * 4, 256);
}

static int64_t work_of(const gcu_task *task, const plan *p)
{
    return tiles_bytes(task, p) + sums_bytes(p) +
           (p->segments > p->pass ? gnomon_round_up(p->rows * p->points * 4, 256) : 0);
}

static bool fits(const gcu_task *task, const plan *p, int64_t work)
{
    const int64_t groups = gnomon_ceil_div(p->points, p->shape.points);
    const int64_t most = INT32_MAX / 2;
    return work_of(task, p) <= work &&
           gnomon_ceil_div(p->rows, p->tile_rows) <= most / (groups * p->pass) &&
           groups <= most / (p->pass * (p->segment / GCU_KBLOCK)) &&
           p->rows <= (int64_t)most * 256 / p->points;
}

/* The largest launches that fit in the work; the smallest when none does. */
static plan plan_of(const gcu_task *task, int64_t work)
{
    plan p;
    gcu_dense_kind_of(task->a, &p.kind);
    const int64_t points = folded(task);
    p.shape.points = points <= 8 ? 8 : points <= 16 ? 16 : 32;
    p.shape.split = gcu_tile_split(task->x.dtype);
    if (p.kind == GCU_DENSE_SIGNS && p.shape.split && task->gpu->major == 9)
        p.kind = GCU_DENSE_SIGN_PAIRS;
    p.shape.order = p.kind == GCU_DENSE_SIGN_PAIRS ? GCU_TILE_SUMS
                    : p.kind == GCU_DENSE_SIGNS    ? GCU_TILE_SIGNS
                                                   : GCU_TILE_PAIRS;
    p.tile_rows = task->gpu->major == 9
                      ? 128 * gcu_rows_groups(p.kind, p.shape.points, p.shape.split)
                      : (int)GCU_ROWS_MMA_TILE;
    p.segment = granule(task->a);
    p.segments = gnomon_ceil_div(task->x.block_cols, p.segment);
    p.row = task->row - task->row % 4;
    p.rows = task->row + task->rows - p.row;
    p.points = points;
    p.pass = p.segments;
    while (!fits(task, &p, work)) {
        if (p.pass > 1)
            p.pass = gnomon_ceil_div(p.pass, 2);
        else if (p.points > p.shape.points)
            p.points = gnomon_round_up(gnomon_ceil_div(p.points, 2), p.shape.points);
        else if (p.rows > p.tile_rows)
            p.rows = gnomon_round_up(gnomon_ceil_div(p.rows, 2), p.tile_rows);
        else
            break;
    }
    return p;
}

static size_t best_work(const gcu_task *task)
{
    const plan p = plan_of(task, (int64_t)4 << 30);
    return (size_t)work_of(task, &p);
}

static size_t least_work(const gcu_task *task)
{
    const plan p = plan_of(task, 0);
    return (size_t)work_of(task, &p);
}

static gcu_rows_run *run_of(gcu_dense_kind kind)
{
    switch (kind) {
    case GCU_DENSE_SIGNS:
        return gcu_rows_signs;
    case GCU_DENSE_SIGN_PAIRS:
        return gcu_rows_sign_pairs;
    case GCU_DENSE_TERNARY:
        return gcu_rows_ternary;
    case GCU_DENSE_GAUSSIAN16:
        return gcu_rows_gaussian16;
    default:
        return gcu_rows_gaussian32;
    }
}

/* One launch's rows and points: all passes. */
static cudaError_t run_part(const gcu_task *task, const plan *p, int64_t row, int64_t rows,
                            int64_t point, int64_t points)
{
    uint8_t *tiles = static_cast<uint8_t *>(task->work);
    float *sums = reinterpret_cast<float *>(tiles + tiles_bytes(task, p));
    float *running = reinterpret_cast<float *>(reinterpret_cast<uint8_t *>(sums) + sums_bytes(p));
    gcu_rows_launch l;
    l.entries = gcu_entries_of(task->a, task->gpu->gaussian16);
    l.tiles = tiles;
    l.segment_blocks = p->segment / GCU_KBLOCK;
    l.groups = gnomon_ceil_div(points, p->shape.points);
    l.row_tiles = gnomon_ceil_div(rows, p->tile_rows);
    l.row = row;
    l.rows = rows;
    l.points = points;
    l.sums = sums;
    gcu_reduce_args r;
    r.sums = sums;
    r.running = running;
    r.row = row;
    r.rows = rows;
    r.point = point;
    r.points = points;
    r.out = task->out;
    r.task_row = task->row;
    r.n = task->x.n;
    r.all_points = folded(task);
    for (int64_t at = 0; at < p->segments; at += p->pass) {
        const int64_t segments = gnomon_min(p->pass, p->segments - at), col = at * p->segment;
        l.segments = segments;
        l.blocks = gnomon_ceil_div(gnomon_min(segments * p->segment, task->x.block_cols - col),
                                   GCU_KBLOCK);
        l.block128 = (uint64_t)(task->col + col) / GCU_KBLOCK;
        cudaError_t error =
            gcu_tile_pack(&task->x, p->shape, point, points, col, l.blocks, tiles, task->stream);
        if (error == cudaSuccess)
            error = run_of(p->kind)(l, p->shape.points, p->shape.split, task->gpu, task->stream);
        if (error == cudaSuccess) {
            r.segments = segments;
            r.first = at == 0;
            r.last = at + segments == p->segments;
            error = gcu_reduce(&r, task->stream);
        }
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

static cudaError_t run(const gcu_task *task)
{
    const int64_t points = folded(task), end = task->row + task->rows;
    if (points == 0 || task->rows == 0) return cudaSuccess;
    const plan p = plan_of(task, (int64_t)task->work_bytes);
    for (int64_t v = 0; v < points; v += p.points)
        for (int64_t row = p.row; row < end; row += p.rows) {
            const cudaError_t error = run_part(task, &p, row, gnomon_min(p.rows, end - row), v,
                                               gnomon_min(p.points, points - v));
            if (error != cudaSuccess) return error;
        }
    return cudaSuccess;
}

const gcu_family gcu_dense_rows = {"dense rows", supports, granule, best_work, least_work, run};
