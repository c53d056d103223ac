/* The product on the CPU. The output is cut into blocks whose sums, in fp64, stay in the outer
 * cache. For each block the inner dimension is walked in steps: the rows of A and columns of B
 * that it needs are packed, 16 a tile, and every tile of rows meets every tile of columns. How
 * the sums of an entry run hangs on the inner dimension alone. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/job.h"
#include "project/blocks.h"
#include "project/fold.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAIN = 64,  /* products that are summed in fp32 */
    SHORT = 128, /* inner sizes for which these are fewer */
    SHORT_CHAIN = 32,
    DEPTH = 128,      /* steps at a time: two tiles of them stay in the first cache */
    BLOCK = 1024,     /* rows or columns of a block, unless the other side has few */
    LONG = 8192,      /* then */
    SUMS = 512 << 10, /* of a block */
    PACKED = 2 << 20, /* bytes of packed tiles, of as many steps as that allows */
    PIECE = 512,      /* steps of a packing task */
    ROW_TILES = 16,   /* of a task: packed, they stay in the second cache */
    COL_TILES = 16,
    SLACK = 4096 /* heads of allocations */
};

typedef struct run {
    const gnomon_kernels *kernels;
    gnomon_fold a, b; /* the rows of A and the columns of B as points */
    const gnomon_matrix *c;
    double alpha, beta;
    int64_t k, chain;
    int64_t rows, cols, depth; /* of a block and its packed tiles, at most */
    float *left, *right;       /* packed tiles, each depth x GNOMON_LANES */
    double *sums;              /* rows x GNOMON_LANES for each tile of columns */
    /* the block at hand, counted in tiles, and the steps at hand */
    int64_t row, row_tiles, col, col_tiles, step, steps;
    int64_t group_rows, group_cols; /* tiles of a task */
} run;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t tiles_of(int64_t lanes)
{
    return lanes / GNOMON_LANES + (lanes % GNOMON_LANES != 0);
}

static void pack_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const run *r = arg;
    const int64_t pieces = (r->steps - 1) / PIECE + 1;
    const int64_t from = task % pieces * PIECE, tile = task / pieces;
    const bool right = tile >= r->row_tiles;
    const int64_t at = right ? tile - r->row_tiles : tile;
    float *out = (right ? r->right : r->left) + (at * r->depth + from) * GNOMON_LANES;
    gnomon_fold_pack(right ? &r->b : &r->a, r->kernels, false, (right ? r->col : r->row) + at,
                     r->step + from, least(PIECE, r->steps - from), out);
}

static double *sums_of(const run *r, int64_t col_tile)
{
    return r->sums + col_tile * r->rows * GNOMON_LANES;
}

static void multiply_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const run *r = arg;
    const int64_t across = (r->row_tiles - 1) / r->group_rows + 1;
    const int64_t row = task % across * r->group_rows, col = task / across * r->group_cols;
    const int64_t row_end = least(row + r->group_rows, r->row_tiles);
    const int64_t cols = least(r->group_cols, r->col_tiles - col);
    const int64_t stride = r->depth * GNOMON_LANES;
    for (int64_t s = 0; s < r->steps; s += DEPTH) {
        for (int64_t t = 0; t < cols; t += 2) {
            for (int64_t i = row; i < row_end; i++) {
                const int64_t rows = least(GNOMON_LANES, r->a.points - (r->row + i) * GNOMON_LANES);
                r->kernels->product(
                    least(DEPTH, r->steps - s), r->chain, r->left + i * stride + s * GNOMON_LANES,
                    rows, r->right + (col + t) * stride + s * GNOMON_LANES, stride,
                    least(2, cols - t), sums_of(r, col + t) + i * GNOMON_LANES * GNOMON_LANES,
                    r->rows * GNOMON_LANES);
            }
        }
    }
}

static void clear_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const run *r = arg;
    memset(sums_of(r, task), 0,
           (size_t)(r->row_tiles * GNOMON_LANES * GNOMON_LANES) * sizeof(double));
}

/* One line of C's elements, whichever way they lie closer. Sums of nothing but zeros may carry
 * either sign: adding +0 makes them one. */
#define DEFINE_STORE(name, type)                                                               \
    static void name(type *to, int64_t step, const double *sums, int64_t apart, int64_t count, \
                     double alpha, double beta)                                                \
    {                                                                                          \
        if (beta == 0 && step == 1 && apart == 1) {                                            \
            for (int64_t i = 0; i < count; i++)                                                \
                to[i] = (type)(alpha * (sums[i] + 0.0));                                       \
        } else if (beta == 0) {                                                                \
            for (int64_t i = 0; i < count; i++)                                                \
                to[i * step] = (type)(alpha * (sums[i * apart] + 0.0));                        \
        } else {                                                                               \
            for (int64_t i = 0; i < count; i++)                                                \
                to[i * step] =                                                                 \
                    (type)(alpha * (sums[i * apart] + 0.0) + beta * (double)to[i * step]);     \
        }                                                                                      \
    }

DEFINE_STORE(store_f32, float)
DEFINE_STORE(store_f64, double)

static void store(const run *r, int64_t row, int64_t col, int64_t step, const double *sums,
                  int64_t apart, int64_t count)
{
    const gnomon_matrix *c = r->c;
    const int64_t at = row * c->row_stride + col * c->col_stride;
    if (c->dtype == GNOMON_F32)
        store_f32((float *)c->data + at, step, sums, apart, count, r->alpha, r->beta);
    else
        store_f64((double *)c->data + at, step, sums, apart, count, r->alpha, r->beta);
}

/* A tile of rows, all columns of the block. */
static void store_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const run *r = arg;
    const gnomon_matrix *c = r->c;
    const int64_t row = (r->row + task) * GNOMON_LANES, rows = least(GNOMON_LANES, c->rows - row);
    const bool by_rows = llabs(c->col_stride) <= llabs(c->row_stride);
    for (int64_t t = 0; t < r->col_tiles; t++) {
        const int64_t col = (r->col + t) * GNOMON_LANES;
        const int64_t cols = least(GNOMON_LANES, c->cols - col);
        const double *sums = sums_of(r, t) + task * GNOMON_LANES * GNOMON_LANES;
        for (int64_t i = 0; by_rows && i < rows; i++)
            store(r, row + i, col, c->col_stride, sums + i * GNOMON_LANES, 1, cols);
        for (int64_t j = 0; !by_rows && j < cols; j++)
            store(r, row, col + j, c->row_stride, sums + j, GNOMON_LANES, rows);
    }
}

static int64_t bytes_of(const run *r)
{
    return r->rows * r->cols * (int64_t)sizeof(double) +
           (r->rows + r->cols) * r->depth * (int64_t)sizeof(float) + SLACK;
}

/* Sizes of blocks: as large as is useful and the memory limit allows. */
static gnomon_status plan(gnomon_context *ctx, const gnomon_gemm_job *job, run *r)
{
    const int64_t m = least(tiles_of(r->a.points), LONG / GNOMON_LANES) * GNOMON_LANES;
    const int64_t n = least(tiles_of(r->b.points), LONG / GNOMON_LANES) * GNOMON_LANES;
    r->rows = least(m, most(BLOCK, SUMS / n / GNOMON_LANES * GNOMON_LANES));
    r->cols = least(n, most(BLOCK, SUMS / r->rows / GNOMON_LANES * GNOMON_LANES));
    r->rows = least(m, most(GNOMON_LANES, SUMS / r->cols / GNOMON_LANES * GNOMON_LANES));
    r->depth = most(1, PACKED / ((r->rows + r->cols) * DEPTH * (int64_t)sizeof(float))) * DEPTH;
    r->depth = least(r->depth, r->k);
    while (bytes_of(r) > job->memory_limit) {
        int64_t *longer = r->rows > r->cols ? &r->rows : &r->cols;
        if (r->depth > DEPTH)
            r->depth = DEPTH;
        else if (*longer > GNOMON_LANES)
            *longer = tiles_of(*longer / 2) * GNOMON_LANES;
        else
            return gnomon_fail(ctx, GNOMON_ERROR_MEMORY,
                               "memory_limit is too low: %" PRId64
                               " bytes are left for a product that needs at least %" PRId64,
                               job->memory_limit, bytes_of(r));
    }
    return GNOMON_OK;
}

/* Tiles of a task: few enough that every thread has several tasks. */
static void choose_groups(run *r, int64_t threads)
{
    r->group_rows = least(ROW_TILES, r->row_tiles);
    r->group_cols = least(COL_TILES, r->col_tiles);
    while (((r->row_tiles - 1) / r->group_rows + 1) * ((r->col_tiles - 1) / r->group_cols + 1) <
           4 * threads) {
        if (r->group_cols > 2)
            r->group_cols = (r->group_cols / 2 + 1) / 2 * 2;
        else if (r->group_rows > 1)
            r->group_rows = (r->group_rows + 1) / 2;
        else
            return;
    }
}

static gnomon_status run_block(gnomon_context *ctx, run *r, int64_t *done, int64_t total)
{
    choose_groups(r, gnomon_context_threads(ctx));
    gnomon_parallel(ctx, r->col_tiles, clear_task, r);
    for (r->step = 0; r->step < r->k; r->step += r->steps) {
        r->steps = least(r->depth, r->k - r->step);
        GNOMON_TRY(gnomon_progress(ctx, "multiply", (*done)++, total));
        gnomon_parallel(ctx, (r->row_tiles + r->col_tiles) * ((r->steps - 1) / PIECE + 1),
                        pack_task, r);
        gnomon_parallel(ctx,
                        ((r->row_tiles - 1) / r->group_rows + 1) *
                            ((r->col_tiles - 1) / r->group_cols + 1),
                        multiply_task, r);
    }
    gnomon_parallel(ctx, r->row_tiles, store_task, r);
    return GNOMON_OK;
}

static gnomon_status run_all(gnomon_context *ctx, run *r)
{
    const int64_t m = tiles_of(r->a.points), n = tiles_of(r->b.points);
    const int64_t rows = r->rows / GNOMON_LANES, cols = r->cols / GNOMON_LANES;
    int64_t done = 0, total;
    if (!gnomon_mul((m - 1) / rows + 1, (n - 1) / cols + 1, &total) ||
        !gnomon_mul(total, (r->k - 1) / r->depth + 1, &total))
        total = INT64_MAX; /* a view without strides can be as large */
    GNOMON_TRY(gnomon_alloc(ctx, r->rows * r->depth, sizeof(float), "packed rows", &r->left));
    GNOMON_TRY(gnomon_alloc(ctx, r->cols * r->depth, sizeof(float), "packed columns", &r->right));
    GNOMON_TRY(gnomon_alloc(ctx, r->rows * r->cols, sizeof(double), "the sums", &r->sums));
    for (r->col = 0; r->col < n; r->col += cols) {
        r->col_tiles = least(cols, n - r->col);
        for (r->row = 0; r->row < m; r->row += rows) {
            r->row_tiles = least(rows, m - r->row);
            GNOMON_TRY(run_block(ctx, r, &done, total));
        }
    }
    return gnomon_progress(ctx, "multiply", total, total);
}

gnomon_status gnomon_gemm_on_cpu(gnomon_context *ctx, const gnomon_gemm_job *job)
{
    gnomon_matrix a = *job->a, b = gnomon_matrix_transposed(job->b), c = *job->c;
    if (a.rows == 0 || b.rows == 0) return GNOMON_OK;
    if (a.cols == 0 || job->alpha == 0) {
        gnomon_scale_view(ctx, job->c, job->beta);
        return GNOMON_OK;
    }
    /* Rows come one at a time, columns 16: C^T = B^T A^T when that wastes less. The same bits. */
    if ((double)b.rows * (double)tiles_of(a.rows) < (double)a.rows * (double)tiles_of(b.rows)) {
        const gnomon_matrix other = a;
        a = b;
        b = other;
        c = gnomon_matrix_transposed(job->c);
    }
    run r = {.kernels = gnomon_context_kernels(ctx),
             .a = gnomon_fold_view(&a, 0),
             .b = gnomon_fold_view(&b, 0),
             .c = &c,
             .alpha = job->alpha,
             .beta = job->beta,
             .k = a.cols,
             .chain = a.cols <= SHORT ? SHORT_CHAIN : CHAIN};
    GNOMON_TRY(plan(ctx, job, &r));
    const gnomon_status status = run_all(ctx, &r);
    gnomon_free(ctx, r.left);
    gnomon_free(ctx, r.right);
    gnomon_free(ctx, r.sums);
    return status;
}
