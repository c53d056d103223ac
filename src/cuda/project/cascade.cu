/* Kronecker operators: each level is a block operator's product over a view of the level before,
 * with no copies between. Level t's output of a point, r_t blocks of k_t numbers, is level t + 1's
 * input of r_t / zeta blocks of zeta k_t numbers as it lies. The first two levels, which have the
 * most numbers, are one kernel where there is one. */
#include "cuda/project/cascade.h"
#include "cuda/project/dense/levels.h"

#include <stdio.h>

namespace
{

/* Blocks [first, end) of level t hold the points' coordinates; all others are zeros and are
 * neither stored nor multiplied. */
struct span {
    int64_t first, end;
    int64_t count() const
    {
        return end - first;
    }
};

span span_of(const gcu_cascade_task *task, int level)
{
    const gnomon_operator *op = task->op;
    const int64_t c = op->factor[0].cols, zeta = op->descriptor.zeta;
    span s = {task->x.first / c, (task->x.end - 1) / c + 1};
    for (int t = 2; t <= level; t++)
        s = {s.first / zeta, (s.end - 1) / zeta + 1};
    return s;
}

bool nothing(const gcu_cascade_task *task)
{
    return task->x.n == 0 || task->out.rows == 0;
}

int64_t type_bytes(gnomon_dtype dtype)
{
    switch (dtype) {
    case GNOMON_I8:
    case GNOMON_U8:
        return 1;
    case GNOMON_F16:
    case GNOMON_BF16:
    case GNOMON_I16:
    case GNOMON_U16:
        return 2;
    case GNOMON_F32:
    case GNOMON_I32:
    case GNOMON_U32:
        return 4;
    default:
        return 8;
    }
}

size_t number_bytes(const gcu_cascade_task *task)
{
    return task->f64 ? sizeof(double) : sizeof(float);
}

/* Points [i, i + n) in blocks of c coordinates, of which those at 'here' are taken. */
gcu_points blocks_of(const gcu_cascade_task *task, span here, int64_t c, int64_t i, int64_t n)
{
    gcu_points x = task->x;
    x.data = static_cast<const char *>(x.data) +
             (i * x.row_stride + here.first * c * x.col_stride) * type_bytes(x.dtype);
    x.block_stride = c * x.col_stride;
    x.first -= here.first * c;
    x.end -= here.first * c;
    x.n = n;
    x.blocks = here.count();
    x.block_cols = c;
    return x;
}

/* Where an inner level's sums go. */
gcu_out sums_of(const gcu_cascade_task *task, int level, char *to)
{
    gcu_out out = {};
    out.y = to;
    out.dtype = task->f64 ? GNOMON_F64 : GNOMON_F32;
    out.r = span_of(task, level).count();
    out.row_stride = out.k = out.rows = out.r * task->op->factor[level - 1].rows;
    out.col_stride = 1;
    out.factor_most = out.factor_least = 1.0;
    out.begins = out.finishes = true;
    return out;
}

/* The first two levels of points [i, i + n) as one. */
gcu_two_levels pair_task(const gcu_cascade_task *task, int64_t i, int64_t n, char *to)
{
    const gnomon_operator *op = task->op;
    gcu_two_levels t = {};
    t.a = &op->factor[0];
    t.b = &op->factor[1];
    t.x = blocks_of(task, span_of(task, 2), t.a->cols * op->descriptor.zeta, i, n);
    t.out = sums_of(task, 2, to);
    t.gpu = task->gpu;
    t.stream = task->stream;
    return t;
}

/* The first level with a task of its own. */
int first_level(const gcu_cascade_task *task)
{
    if (task->op->levels < 3) return 1;
    const gcu_two_levels pair = pair_task(task, 0, task->x.n, nullptr);
    return gcu_two_levels_supports(&pair) ? 3 : 1;
}

/* Bytes of a level's output for n points, to a multiple of 256. */
size_t output_bytes(const gcu_cascade_task *task, int level, int64_t n)
{
    if (level < first_level(task) - 1 || level < 1 || level >= task->op->levels) return 0;
    const size_t numbers =
        (size_t)(n * span_of(task, level).count() * task->op->factor[level - 1].rows);
    return (numbers * number_bytes(task) + 255) & ~(size_t)255;
}

/* Bytes of the two buffers that levels write to in turn: odd levels to the first. */
size_t buffer_bytes(const gcu_cascade_task *task, int64_t n, int parity)
{
    size_t most = 0;
    for (int t = 1 + parity; t < task->op->levels; t += 2) {
        const size_t bytes = output_bytes(task, t, n);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* A level's task for points [i, i + n): from 'in' (the level below's output; unused at level 1) to
 * 'to' (unused at the last). */
gcu_task level_task(const gcu_cascade_task *task, int level, int64_t i, int64_t n, char *in,
                    char *to)
{
    const gnomon_operator *op = task->op;
    const gnomon_simple *a = &op->factor[level - 1];
    const span here = span_of(task, level);
    gcu_task t = {};
    t.a = a;
    t.f64 = task->f64;
    t.gpu = task->gpu;
    t.stream = task->stream;
    if (level == 1) {
        t.x = blocks_of(task, here, a->cols, i, n);
    } else {
        const span below = span_of(task, level - 1);
        const int64_t k = op->factor[level - 2].rows;
        /* coordinates of block here.first that belong to blocks that are not there */
        const int64_t missing = below.first * k - here.first * a->cols;
        t.x.data = in - missing * (int64_t)number_bytes(task);
        t.x.dtype = task->f64 ? GNOMON_F64 : GNOMON_F32;
        t.x.row_stride = below.count() * k;
        t.x.col_stride = 1;
        t.x.block_stride = a->cols;
        t.x.first = missing;
        t.x.end = missing + below.count() * k;
        t.x.n = n;
        t.x.blocks = here.count();
        t.x.block_cols = a->cols;
    }
    if (level == op->levels) {
        t.out = task->out;
        t.out.y = static_cast<char *>(task->out.y) +
                  i * task->out.row_stride * type_bytes(task->out.dtype);
        t.row = task->out.row;
        t.rows = task->out.rows;
    } else {
        t.rows = a->rows;
        t.out = sums_of(task, level, to);
    }
    return t;
}

/* Bytes with which n points go at once: the buffers and what the levels' families want. */
size_t batch_bytes(const gcu_cascade_task *task, int64_t n, bool least)
{
    size_t most = 0;
    char *aligned = reinterpret_cast<char *>((uintptr_t)1 << 40); /* compared, not followed */
    for (int level = first_level(task); level <= task->op->levels; level++) {
        const gcu_task t = level_task(task, level, 0, n, aligned, aligned);
        char why[256];
        const gcu_family *family = gcu_choose(&t, why, sizeof why);
        if (!family) continue;
        size_t bytes = family->least_work(&t);
        const size_t best = least ? 0 : family->best_work(&t);
        if (best > bytes) bytes = best;
        if (bytes > most) most = bytes;
    }
    return buffer_bytes(task, n, 0) + buffer_bytes(task, n, 1) + most;
}

} // namespace

bool gcu_cascade_supports(const gcu_cascade_task *task, char *why, size_t why_size)
{
    if (nothing(task) || task->x.first >= task->x.end) return true;
    char *aligned = reinterpret_cast<char *>((uintptr_t)1 << 40);
    for (int level = first_level(task); level <= task->op->levels; level++) {
        const gcu_task t = level_task(task, level, 0, task->x.n, aligned, aligned);
        if (!gcu_choose(&t, why, why_size)) return false;
    }
    return true;
}

size_t gcu_cascade_best_work(const gcu_cascade_task *task)
{
    return nothing(task) || task->x.first >= task->x.end ? 0 : batch_bytes(task, task->x.n, false);
}

size_t gcu_cascade_least_work(const gcu_cascade_task *task)
{
    return nothing(task) || task->x.first >= task->x.end ? 0 : batch_bytes(task, 1, true);
}

cudaError_t gcu_cascade(const gcu_cascade_task *task)
{
    if (nothing(task) || task->x.first >= task->x.end) return cudaSuccess;
    int64_t batch = task->x.n;
    while (batch > 1 && batch_bytes(task, batch, batch < task->x.n) > task->work_bytes)
        batch = (batch + 1) / 2;
    if (batch_bytes(task, batch, true) > task->work_bytes) return cudaErrorMemoryAllocation;
    char *buffer[2] = {static_cast<char *>(task->work), nullptr};
    buffer[1] = buffer[0] + buffer_bytes(task, batch, 0);
    char *rest = buffer[1] + buffer_bytes(task, batch, 1);
    for (int64_t i = 0; i < task->x.n; i += batch) {
        const int64_t n = task->x.n - i < batch ? task->x.n - i : batch;
        if (first_level(task) > 1) {
            const gcu_two_levels pair = pair_task(task, i, n, buffer[1]);
            const cudaError_t error = gcu_two_levels_run(&pair);
            if (error != cudaSuccess) return error;
        }
        for (int level = first_level(task); level <= task->op->levels; level++) {
            gcu_task t = level_task(task, level, i, n, buffer[level % 2], buffer[(level - 1) % 2]);
            t.work = rest;
            t.work_bytes =
                task->work_bytes - (size_t)(rest - static_cast<const char *>(task->work));
            char why[256];
            const gcu_family *family = gcu_choose(&t, why, sizeof why);
            if (!family) return cudaErrorNotSupported;
            const cudaError_t error = family->run(&t);
            if (error != cudaSuccess) return error;
        }
    }
    return cudaSuccess;
}
