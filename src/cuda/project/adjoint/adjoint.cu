/* X = alpha * Y S + beta * X on the device (project/family.h): a simple or block operator is one
 * level, a kronecker operator as many as it has factors, from the last to the first, a batch of
 * points at a time. */
#include "cuda/project/adjoint/adjoint.h"

#include "base/arithmetic.h"

extern "C" {
#include "operator/kinds/kinds.h"
}

#include <stdio.h>

#define WORK_BYTES ((size_t)1 << 30) /* of what lies between levels, at most */

void gcu_level_bounds(gcu_level *l)
{
    const int64_t size = l->a.rows;
    l->a_row = l->r == 1 ? l->row : 0;
    l->a_row_end = l->r == 1 ? l->row + l->rows : size;
    l->a_col = l->blocks == 1 && l->col > l->block * l->c ? l->col - l->block * l->c : 0;
    l->a_col_end = l->c;
    if (l->blocks == 1 && l->col + l->cols < (l->block + 1) * l->c)
        l->a_col_end = l->col + l->cols - l->block * l->c;
}

/* Whether the dense kinds are multiplied by the matrix unit: never by the number of points, on
 * which no bit may depend. */
static bool by_tensor(const gcu_adjoint_task *t)
{
    return !t->f64 && t->gpu->major == 9;
}

static cudaError_t run_level(gcu_level *l, const gnomon_simple *a, const gcu_adjoint_task *t,
                             void *work, size_t work_bytes)
{
    /* the blocks whose columns are wanted */
    l->block = l->col / l->c;
    l->blocks = (l->col + l->cols - 1) / l->c - l->block + 1;
    if (l->block + l->blocks > l->r) l->blocks = l->r - l->block;
    gcu_level_bounds(l);
    switch (gcu_kind_of(a)->adjoint) {
    case GCU_ADJOINT_DENSE:
        return by_tensor(t) ? gcu_adjoint_tensor(*l, a, work, work_bytes, t->gpu, t->stream)
                            : gcu_adjoint_dense(*l, t->f64, t->stream);
    case GCU_ADJOINT_BANDS:
        return gcu_adjoint_sjlt(*l, t->f64, t->stream);
    case GCU_ADJOINT_LISTS:
        return gcu_adjoint_lists(*l, a, t->f64, work, t->stream);
    case GCU_ADJOINT_HADAMARD:
        return t->f64 ? gcu_adjoint_dense(*l, true, t->stream)
                      : gcu_adjoint_hadamard(*l, a, work, work_bytes, t->gpu, t->stream);
    }
    return cudaErrorNotSupported;
}

static int64_t size_of(const gcu_adjoint_task *t)
{
    return t->f64 ? 8 : 4;
}

static bool simple(const gnomon_operator *op)
{
    return op->levels == 1 && op->descriptor.kind != GNOMON_KRONECKER;
}

/* Bytes of a level's own work for so many points, 'more' folded ones in tiles' ends included, of
 * the factor that needs most. srht, which wants to know the task's rows and points, is no factor of
 * others. */
static size_t level_bytes(const gcu_adjoint_task *t, int64_t points, int64_t more)
{
    size_t most = 0;
    for (int i = 0; i < t->op->levels; i++) {
        const gnomon_simple *a = &t->op->factor[i];
        const gcu_adjoint_way way = gcu_kind_of(a)->adjoint;
        const int64_t blocks = simple(t->op) ? t->op->blocks : t->op->repeat[i];
        const int64_t rows = blocks == 1 ? gnomon_min(a->rows, t->rows) : a->rows;
        size_t bytes = 0;
        if (way == GCU_ADJOINT_LISTS) bytes = gcu_adjoint_lists_bytes(a);
        if (way == GCU_ADJOINT_HADAMARD && !t->f64)
            bytes = gcu_adjoint_hadamard_bytes(t->rows, points);
        if (way == GCU_ADJOINT_DENSE && by_tensor(t))
            bytes = gcu_adjoint_tensor_bytes(rows, points * blocks + more);
        if (bytes > most) most = bytes;
    }
    return (most + 255) / 256 * 256;
}

/* Numbers of a point between levels, in each of two buffers. */
static int64_t between(const gnomon_operator *op)
{
    return op->levels > 1 ? op->repeat[0] * op->factor[0].rows : 0;
}

bool gcu_adjoint_supports(const gcu_adjoint_task *t, char *why, size_t why_size)
{
    if (t->x.dtype != GNOMON_F32 && t->x.dtype != GNOMON_F64) {
        snprintf(why, why_size, "an adjoint writes f32 or f64");
        return false;
    }
    if (!gcu_kind_of(&t->op->factor[0])) {
        snprintf(why, why_size, "there are no kernels for this kind");
        return false;
    }
    return true;
}

enum { LEAST_MORE = 7, BEST_MORE = 255 }; /* of tiles of 8 and of 256 points */

static size_t work_of(const gcu_adjoint_task *t, int64_t points, int64_t more)
{
    return level_bytes(t, points, more) + (size_t)(2 * between(t->op) * points * size_of(t));
}

/* The most points for which so many bytes are enough, or half of them, a fourth, ...; one at least.
 */
static int64_t points_in(const gcu_adjoint_task *t, size_t bytes, int64_t more)
{
    int64_t points = gnomon_max(t->x.rows, 1);
    while (points > 1 && work_of(t, points, more) > bytes)
        points = (points + 1) / 2;
    return points;
}

size_t gcu_adjoint_best_work(const gcu_adjoint_task *t)
{
    return work_of(t, points_in(t, WORK_BYTES, BEST_MORE), BEST_MORE);
}

size_t gcu_adjoint_least_work(const gcu_adjoint_task *t)
{
    return work_of(t, 1, LEAST_MORE);
}

static gcu_level first_level(const gcu_adjoint_task *t, int64_t point, int64_t points)
{
    const int64_t size = (int64_t)gnomon_dtype_size(t->x.dtype);
    gcu_level l = {};
    l.x = static_cast<char *>(t->x.data) + point * t->x.row_stride * size;
    l.x_dtype = t->x.dtype;
    l.x_row_stride = t->x.row_stride;
    l.x_col_stride = t->x.col_stride;
    l.col = t->col;
    l.cols = t->x.cols;
    l.factor_most = l.factor_least = t->alpha * t->op->scale;
    l.beta = t->beta;
    l.n = points;
    return l;
}

static void from_y(gcu_level *l, const gcu_adjoint_task *t, int64_t point)
{
    const int64_t size = (int64_t)gnomon_dtype_size(t->y.dtype);
    l->z = static_cast<const char *>(t->y.data) + point * t->y.row_stride * size;
    l->z_dtype = t->y.dtype;
    l->z_row_stride = t->y.row_stride;
    l->z_col_stride = t->y.col_stride;
    l->row = t->row;
    l->rows = t->rows;
}

static cudaError_t run_one(const gcu_adjoint_task *t)
{
    const gnomon_operator *op = t->op;
    const gnomon_simple *a = &op->factor[0];
    gcu_level l = first_level(t, 0, t->x.rows);
    from_y(&l, t, 0);
    l.a = gcu_matrix_of(a, t->gpu);
    l.k = op->descriptor.k;
    l.r = op->blocks;
    l.c = op->blocks == 1 ? op->descriptor.d : op->block_cols;
    if (op->blocks > 1 && op->descriptor.k % op->blocks != 0) {
        l.factor_most = t->alpha * gnomon_simple_scale(a, a->rows);
        l.factor_least = t->alpha * gnomon_simple_scale(a, a->rows - 1);
    }
    return run_level(&l, a, t, t->work, t->work_bytes);
}

static cudaError_t run_batch(const gcu_adjoint_task *t, int64_t point, int64_t points)
{
    const gnomon_operator *op = t->op;
    const int64_t buffer_bytes = between(op) * points * size_of(t);
    const size_t own = (t->work_bytes - (size_t)(2 * buffer_bytes)) / 256 * 256;
    char *buffer[2];
    buffer[0] = static_cast<char *>(t->work) + own;
    buffer[1] = buffer[0] + buffer_bytes;
    for (int i = op->levels - 1; i >= 0; i--) {
        const gnomon_simple *a = &op->factor[i];
        gcu_level l = first_level(t, point, points);
        l.a = gcu_matrix_of(a, t->gpu);
        l.k = op->repeat[i] * a->rows;
        l.r = op->repeat[i];
        l.c = a->cols;
        if (i == op->levels - 1) {
            from_y(&l, t, point);
        } else {
            l.z = buffer[i & 1];
            l.z_dtype = t->f64 ? GNOMON_F64 : GNOMON_F32;
            l.z_row_stride = l.k;
            l.z_col_stride = 1;
            l.row = 0;
            l.rows = l.k;
        }
        if (i > 0) {
            l.x = buffer[(i - 1) & 1];
            l.x_dtype = t->f64 ? GNOMON_F64 : GNOMON_F32;
            l.x_row_stride = l.cols = l.r * l.c;
            l.x_col_stride = 1;
            l.col = 0;
            l.factor_most = l.factor_least = 1.0;
            l.beta = 0.0;
        }
        const cudaError_t error = run_level(&l, a, t, t->work, own);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

cudaError_t gcu_adjoint(const gcu_adjoint_task *t)
{
    if (t->work_bytes < gcu_adjoint_least_work(t)) return cudaErrorMemoryAllocation;
    if (t->x.rows == 0 || t->x.cols == 0) return cudaSuccess;
    if (simple(t->op)) return run_one(t);
    const int64_t most = points_in(t, t->work_bytes, LEAST_MORE);
    for (int64_t point = 0; point < t->x.rows; point += most) {
        const int64_t points = t->x.rows - point < most ? t->x.rows - point : most;
        const cudaError_t error = run_batch(t, point, points);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
