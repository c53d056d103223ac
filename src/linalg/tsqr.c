/* QR by Householder reflections of blocks of rows: each block is factored by itself, the triangles
 * stacked are factored in turn, and what comes of that is multiplied back. The blocks depend on the
 * shape alone. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "linalg/orth.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

typedef struct level {
    const gnomon_tall *y;
    int64_t block, count; /* rows of a block but the last, which has up to twice as many */
    void *triangles;      /* count triangles, stacked: a tall matrix */
    void *scratch;
    int64_t work, scratch_numbers; /* a worker's */
    atomic_bool failed;
} level;

static int64_t rows_of(const level *l, int64_t task)
{
    return task + 1 < l->count ? l->block : l->y->rows - task * l->block;
}

static void *scratch_of(const level *l, int worker)
{
    return (char *)l->scratch + (size_t)(worker * l->scratch_numbers) * gnomon_tall_size(l->y->f64);
}

static void factor_block(void *arg, int64_t task, int worker)
{
    level *l = arg;
    const int64_t n = l->y->cols;
    const size_t size = gnomon_tall_size(l->y->f64);
    char *tau = scratch_of(l, worker);
    if (!gnomon_blas_qr(l->y->f64, rows_of(l, task), n, gnomon_tall_row(l->y, task * l->block),
                        (char *)l->triangles + (size_t)(task * n * n) * size, tau,
                        tau + (size_t)n * size, l->work))
        atomic_store(&l->failed, true);
}

static void multiply_back(void *arg, int64_t task, int worker)
{
    const level *l = arg;
    const int64_t n = l->y->cols, rows = rows_of(l, task);
    const size_t size = gnomon_tall_size(l->y->f64);
    void *block = gnomon_tall_row(l->y, task * l->block), *copy = scratch_of(l, worker);
    memcpy(copy, block, (size_t)(rows * n) * size);
    gnomon_blas_gemm(l->y->f64, false, false, rows, n, n, 1.0, copy, n,
                     (const char *)l->triangles + (size_t)(task * n * n) * size, n, 0.0, block, n);
}

static gnomon_status factor(gnomon_context *ctx, level *l, double *r)
{
    const gnomon_tall *y = l->y;
    const int64_t n = y->cols;
    gnomon_parallel(ctx, l->count, factor_block, l);
    GNOMON_FAIL_IF(atomic_load(&l->failed), ctx, GNOMON_ERROR_INTERNAL,
                   "a QR factorisation was refused its arguments");
    if (l->count == 1) {
        for (int64_t i = 0; i < n * n; i++)
            r[i] = y->f64 ? ((const double *)l->triangles)[i]
                          : (double)((const float *)l->triangles)[i];
        return GNOMON_OK;
    }
    const gnomon_tall stack = {l->triangles, l->count * n, n, y->f64};
    GNOMON_TRY(gnomon_tsqr(ctx, &stack, r));
    gnomon_parallel(ctx, l->count, multiply_back, l);
    return GNOMON_OK;
}

gnomon_status gnomon_tsqr(gnomon_context *ctx, const gnomon_tall *y, double *r)
{
    enum { ROWS = 1024 };
    const int64_t n = y->cols;
    const size_t size = gnomon_tall_size(y->f64);
    level l = {.y = y, .block = 4 * n > ROWS ? 4 * n : ROWS};
    atomic_init(&l.failed, false);
    if (n == 0) return GNOMON_OK;
    l.count = y->rows / l.block > 0 ? y->rows / l.block : 1;
    const int64_t most = l.count > 1 ? 2 * l.block : y->rows;
    l.work = gnomon_blas_qr_work(y->f64, most, n);
    l.scratch_numbers = n + (l.work > most * n ? l.work : most * n);
    gnomon_status status = gnomon_alloc(ctx, gnomon_times(gnomon_times(l.count, n), n), size,
                                        "triangles of blocks", &l.triangles);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(l.scratch_numbers, gnomon_context_threads(ctx)),
                              size, "a block of rows", &l.scratch);
    if (status == GNOMON_OK) status = factor(ctx, &l, r);
    gnomon_free(ctx, l.triangles);
    gnomon_free(ctx, l.scratch);
    return status;
}
