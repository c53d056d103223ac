#include "project/sparse/nonzeros.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/view.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    STRETCH = 1 << 16, /* nonzeros a task */
    STRIP = 64,        /* values per lane, when they are converted */
    SHORT = 16         /* a run that is sorted by insertion */
};

static int64_t tasks_of(int64_t count)
{
    return (count + STRETCH - 1) / STRETCH;
}

typedef struct index_job {
    const int64_t *index;
    int64_t count, limit;
    atomic_int_least64_t bad; /* the first that is out of range */
} index_job;

static void lower(atomic_int_least64_t *to, int64_t value)
{
    int64_t seen = atomic_load(to);
    while (value < seen && !atomic_compare_exchange_weak(to, &seen, value))
        ;
}

static void index_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    index_job *job = arg;
    const int64_t end = gnomon_min(job->count, (task + 1) * STRETCH);
    for (int64_t e = task * STRETCH; e < end; e++) {
        if (job->index[e] >= 0 && job->index[e] < job->limit) continue;
        lower(&job->bad, e);
        return;
    }
}

static gnomon_status check_indices(gnomon_context *ctx, const int64_t *index, int64_t count,
                                   int64_t limit, const char *name, const char *what)
{
    index_job job = {.index = index, .count = count, .limit = limit};
    atomic_init(&job.bad, count);
    gnomon_parallel(ctx, tasks_of(count), index_task, &job);
    const int64_t bad = atomic_load(&job.bad);
    GNOMON_FAIL_IF(bad < count, ctx, GNOMON_ERROR_DATA,
                   GNOMON_ARG("%s") "[%" PRId64 "] is %" PRId64 "; x has %" PRId64 " %s", name, bad,
                   index[bad], limit, what);
    return GNOMON_OK;
}

typedef struct sorted_job {
    const gnomon_csr *x;
    atomic_bool unsorted;
} sorted_job;

enum { FEW_POINTS = 256 };

static void sorted_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    sorted_job *job = arg;
    const gnomon_csr *x = job->x;
    const int64_t end = gnomon_min(x->rows, (task + 1) * FEW_POINTS);
    for (int64_t i = task * FEW_POINTS; i < end && !atomic_load(&job->unsorted); i++) {
        const int64_t stop = x->offsets[i + 1] - x->offsets[0];
        for (int64_t e = x->offsets[i] - x->offsets[0] + 1; e < stop; e++) {
            if (x->indices[e - 1] <= x->indices[e]) continue;
            atomic_store(&job->unsorted, true);
            return;
        }
    }
}

static gnomon_status check_csr(gnomon_context *ctx, gnomon_sparse_points *p)
{
    const gnomon_csr *x = p->csr;
    GNOMON_TRY(gnomon_check_csr(ctx, x, "x"));
    if (x->rows == 0) return GNOMON_OK;
    const int64_t count = x->offsets[x->rows] - x->offsets[0];
    if (count == 0) {
        p->sorted = true;
        return GNOMON_OK;
    }
    GNOMON_TRY(check_indices(ctx, x->indices, count, x->cols, "x.indices", "columns"));
    sorted_job job = {.x = x};
    atomic_init(&job.unsorted, false);
    gnomon_parallel(ctx, (x->rows + FEW_POINTS - 1) / FEW_POINTS, sorted_task, &job);
    p->sorted = !atomic_load(&job.unsorted);
    return GNOMON_OK;
}

gnomon_status gnomon_sparse_check(gnomon_context *ctx, gnomon_sparse_points *p)
{
    p->sorted = false;
    if (p->csr) return check_csr(ctx, p);
    const gnomon_coo *x = p->coo;
    if (x->nonzeros == 0) return GNOMON_OK;
    GNOMON_FAIL_IF(!x->row_indices || !x->col_indices || !x->values, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.%s") " is NULL; %" PRId64 " numbers are due",
                   !x->row_indices   ? "row_indices"
                   : !x->col_indices ? "col_indices"
                                     : "values",
                   x->nonzeros);
    GNOMON_TRY(gnomon_check_aligned(ctx, x->row_indices, sizeof(int64_t), "x", "row_indices"));
    GNOMON_TRY(gnomon_check_aligned(ctx, x->col_indices, sizeof(int64_t), "x", "col_indices"));
    GNOMON_TRY(gnomon_check_aligned(ctx, x->values, gnomon_dtype_size(x->dtype), "x", "values"));
    GNOMON_TRY(check_indices(ctx, x->row_indices, x->nonzeros, x->rows, "x.row_indices", "rows"));
    return check_indices(ctx, x->col_indices, x->nonzeros, x->cols, "x.col_indices", "columns");
}

/* The point that nonzero e of a csr belongs to. */
static int64_t point_of(const gnomon_csr *x, int64_t e)
{
    int64_t lo = 0, hi = x->rows;
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (x->offsets[middle] - x->offsets[0] <= e)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

gnomon_status gnomon_sparse_check_finite(gnomon_context *ctx, const gnomon_sparse_points *p)
{
    gnomon_matrix values = {.rows = 1, .row_stride = 1, .col_stride = 1};
    if (p->csr) {
        const gnomon_csr *x = p->csr;
        if (x->rows == 0) return GNOMON_OK;
        values.cols = x->offsets[x->rows] - x->offsets[0];
        values.data = (void *)(uintptr_t)x->values;
        values.dtype = x->dtype;
    } else {
        values.cols = p->coo->nonzeros;
        values.data = (void *)(uintptr_t)p->coo->values;
        values.dtype = p->coo->dtype;
    }
    int64_t row, e;
    const gnomon_status status = gnomon_matrix_check_finite(ctx, &values, &row, &e);
    if (status != GNOMON_ERROR_NONFINITE) return status;
    const int64_t i = p->csr ? point_of(p->csr, e) : p->coo->row_indices[e];
    const int64_t j = p->csr ? p->csr->indices[e] : p->coo->col_indices[e];
    return gnomon_fail(ctx, GNOMON_ERROR_NONFINITE,
                       "x: element (%" PRId64 ", %" PRId64 "), x.values[%" PRId64
                       "], is NaN or infinite; options.allow_nonfinite lets such values pass",
                       i, j, e);
}

int64_t gnomon_sparse_batch(const gnomon_sparse_points *p, int64_t point, int64_t points,
                            int64_t room, int64_t *counts, int64_t *count)
{
    if (p->csr) {
        const int64_t *offset = p->csr->offsets + point;
        for (int64_t i = 0; i < points; i++)
            counts[i] = offset[i + 1] - offset[i];
    } else {
        const gnomon_coo *x = p->coo;
        memset(counts, 0, (size_t)points * sizeof *counts);
        for (int64_t e = 0; e < x->nonzeros; e++) {
            const int64_t i = x->row_indices[e] - point;
            if (i >= 0 && i < points) counts[i]++;
        }
    }
    int64_t fit = 0;
    *count = 0;
    while (fit < points && counts[fit] <= room - *count)
        *count += counts[fit++];
    if (fit == 0) *count = counts[0];
    return fit;
}

gnomon_status gnomon_nonzeros_open(gnomon_context *ctx, gnomon_nonzeros *z, int64_t points,
                                   int64_t room, bool f64)
{
    *z = (gnomon_nonzeros){.point_room = points, .room = room, .f64 = f64};
    const size_t size = f64 ? 8 : 4;
    gnomon_status status =
        gnomon_alloc(ctx, points + 1, sizeof *z->start, "the points' starts", &z->start);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, room, sizeof *z->col, "the nonzeros' columns", &z->col);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, room, size, "the nonzeros' values", &z->value);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, room, sizeof *z->col, "room to sort", &z->spare_col);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, room, size, "room to sort", &z->spare_value);
    if (status != GNOMON_OK) gnomon_nonzeros_close(ctx, z);
    return status;
}

void gnomon_nonzeros_close(gnomon_context *ctx, gnomon_nonzeros *z)
{
    gnomon_free(ctx, z->start);
    gnomon_free(ctx, z->col);
    gnomon_free(ctx, z->value);
    gnomon_free(ctx, z->spare_col);
    gnomon_free(ctx, z->spare_value);
    *z = (gnomon_nonzeros){0};
}

/* Values from 'first' on of an array of any type, as float or double, through the kernels that
 * pack points: a strip of the array is a lane. */
static void convert(const gnomon_kernels *kernels, gnomon_dtype dtype, const void *values,
                    int64_t first, int64_t count, bool f64, char *out)
{
    const int64_t size = (int64_t)gnomon_dtype_size(dtype);
    double tile[STRIP * GNOMON_LANES];
    for (int64_t done = 0; done < count; done += STRIP * GNOMON_LANES) {
        const void *lane[GNOMON_LANES];
        int64_t valid[GNOMON_LANES];
        for (int l = 0; l < GNOMON_LANES; l++) {
            const int64_t at = done + l * STRIP;
            lane[l] = at < count ? (const char *)values + (first + at) * size : NULL;
            valid[l] = at < count ? gnomon_min(STRIP, count - at) : 0;
        }
        if (f64)
            kernels->pack_f64(lane, valid, dtype, 1, false, STRIP, tile);
        else
            kernels->pack_f32(lane, valid, dtype, 1, false, STRIP, (float *)tile);
        for (int l = 0; l < GNOMON_LANES; l++) {
            for (int64_t j = 0; j < valid[l]; j++) {
                const int64_t to = done + l * STRIP + j, from = j * GNOMON_LANES + l;
                if (f64)
                    ((double *)(void *)out)[to] = tile[from];
                else
                    ((float *)(void *)out)[to] = ((const float *)tile)[from];
            }
        }
    }
}

typedef struct gather_job {
    gnomon_nonzeros *z;
    const gnomon_sparse_points *p;
    const gnomon_kernels *kernels;
    int64_t first; /* csr: the batch's first nonzero */
} gather_job;

static void convert_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gather_job *job = arg;
    const gnomon_csr *x = job->p->csr;
    gnomon_nonzeros *z = job->z;
    const int64_t begin = task * STRETCH, count = gnomon_min(STRETCH, z->count - begin);
    convert(job->kernels, x->dtype, x->values, job->first + begin, count, z->f64,
            z->value + begin * (z->f64 ? 8 : 4));
    for (int64_t e = begin; e < begin + count; e++)
        z->col[e] = x->indices[job->first + e] + job->p->col;
}

/* The coo's nonzeros of the batch, point by point, in the order in which they stand. */
static void gather_coo(const gather_job *job, int64_t point, int64_t points)
{
    enum { PIECE = 1024 };
    const gnomon_coo *x = job->p->coo;
    gnomon_nonzeros *z = job->z;
    double value[PIECE];
    /* start[i] is where point i's next nonzero goes; it ends as the next point's start */
    for (int64_t done = 0; done < x->nonzeros; done += PIECE) {
        const int64_t count = gnomon_min(PIECE, x->nonzeros - done);
        convert(job->kernels, x->dtype, x->values, done, count, z->f64, (char *)value);
        for (int64_t e = 0; e < count; e++) {
            const int64_t i = x->row_indices[done + e] - point;
            if (i < 0 || i >= points) continue;
            const int64_t to = z->start[i]++;
            z->col[to] = x->col_indices[done + e] + job->p->col;
            if (z->f64)
                ((double *)(void *)z->value)[to] = value[e];
            else
                ((float *)(void *)z->value)[to] = ((const float *)value)[e];
        }
    }
    for (int64_t i = points; i > 0; i--)
        z->start[i] = z->start[i - 1];
    z->start[0] = 0;
}

/* A stable merge sort by column of entries [begin, end), with the spare arrays. */
#define DEFINE_SORT(name, type)                                                             \
    static void name(gnomon_nonzeros *z, int64_t begin, int64_t end)                        \
    {                                                                                       \
        int64_t *col = z->col, *col_to = z->spare_col;                                      \
        type *value = (type *)(void *)z->value, *value_to = (type *)(void *)z->spare_value; \
        for (int64_t run = begin; run < end; run += SHORT) {                                \
            for (int64_t i = run + 1; i < gnomon_min(run + SHORT, end); i++) {              \
                const int64_t c = col[i];                                                   \
                const type v = value[i];                                                    \
                int64_t j = i;                                                              \
                for (; j > run && col[j - 1] > c; j--) {                                    \
                    col[j] = col[j - 1];                                                    \
                    value[j] = value[j - 1];                                                \
                }                                                                           \
                col[j] = c;                                                                 \
                value[j] = v;                                                               \
            }                                                                               \
        }                                                                                   \
        for (int64_t width = SHORT; width < end - begin; width *= 2) {                      \
            for (int64_t a = begin; a < end; a += 2 * width) {                              \
                const int64_t middle = gnomon_min(a + width, end),                          \
                              stop = gnomon_min(middle + width, end);                       \
                int64_t i = a, j = middle;                                                  \
                for (int64_t to = a; to < stop; to++) {                                     \
                    const int64_t from =                                                    \
                        i < middle && (j >= stop || col[i] <= col[j]) ? i++ : j++;          \
                    col_to[to] = col[from];                                                 \
                    value_to[to] = value[from];                                             \
                }                                                                           \
            }                                                                               \
            int64_t *const c = col;                                                         \
            col = col_to;                                                                   \
            col_to = c;                                                                     \
            type *const v = value;                                                          \
            value = value_to;                                                               \
            value_to = v;                                                                   \
        }                                                                                   \
        if (col == z->col) return;                                                          \
        memcpy(z->col + begin, col + begin, (size_t)(end - begin) * sizeof *col);           \
        memcpy((type *)(void *)z->value + begin, value + begin,                             \
               (size_t)(end - begin) * sizeof *value);                                      \
    }

DEFINE_SORT(sort_f32, float)
DEFINE_SORT(sort_f64, double)

static void sort_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    gnomon_nonzeros *z = arg;
    const int64_t end = gnomon_min(z->points, (task + 1) * SHORT);
    for (int64_t i = task * SHORT; i < end; i++) {
        bool sorted = true;
        for (int64_t e = z->start[i] + 1; e < z->start[i + 1] && sorted; e++)
            sorted = z->col[e - 1] <= z->col[e];
        if (sorted) continue;
        if (z->f64)
            sort_f64(z, z->start[i], z->start[i + 1]);
        else
            sort_f32(z, z->start[i], z->start[i + 1]);
    }
}

void gnomon_nonzeros_gather(gnomon_context *ctx, const gnomon_kernels *kernels, gnomon_nonzeros *z,
                            const gnomon_sparse_points *p, int64_t point, int64_t points,
                            const int64_t *counts, int64_t count)
{
    z->points = points;
    z->count = count;
    z->start[0] = 0;
    for (int64_t i = 0; i < points; i++)
        z->start[i + 1] = z->start[i] + counts[i];
    gather_job job = {.z = z, .p = p, .kernels = kernels};
    if (p->csr) {
        job.first = p->csr->offsets[point] - p->csr->offsets[0];
        gnomon_parallel(ctx, tasks_of(count), convert_task, &job);
    } else {
        gather_coo(&job, point, points);
    }
    if (!p->sorted) gnomon_parallel(ctx, (points + SHORT - 1) / SHORT, sort_task, z);
}
