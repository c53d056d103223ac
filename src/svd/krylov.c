/* The leading right singular vectors of sparse rows by a block Krylov space of A^T A (Golub &
 * Underwood 1977, Musco & Musco 2015): all blocks are kept and orthonormal, and the Ritz vectors of
 * all of them are taken. As many columns of products as q shifted iterations take are worth more
 * here, since each block profits from all before it, and columns cost a sparse matrix nothing but
 * memory.
 *
 * Iterations of all columns at once do better with values of which more than a block are equal to
 * rounding, and with values that span more than their squares can. A second start in the last
 * blocks shows the first case, the values themselves show the second. Either leaves the work to the
 * iterations. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "project/blocks.h"
#include "svd/center.h"
#include "svd/factor.h"
#include "svd/normal.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = GNOMON_NORMAL,
    SLAB = 512, /* rows of the basis a task */
    RANGES = 16 /* sums over slabs */
};

/* Squared values so many times the least wanted one must come from the first start. */
#define MISSED 2.0
/* A block of which less is left, or that spans more, is orthogonalised twice. */
#define NEAR 0x1p-6

typedef struct krylov {
    gnomon_factor *f;
    const gnomon_kernels *kernels;
    int64_t dims, filled; /* columns of the basis, how many of them are there */
    /* n x BLOCK each: the basis, then the product of its last block, then the other parts' sums, so
     * that what is computed next is where it will stay. */
    gnomon_tall *blocks;
    int64_t made;      /* of the blocks */
    double *projected; /* dims x dims: basis^T A^T A basis, column by column */
    double *places;    /* RANGES x dims x BLOCK */
    void *scratch;     /* BLOCK x BLOCK a worker, or dims x BLOCK; later slabs of Ritz vectors */
    gnomon_normal normal;
    const gnomon_tall *q; /* of the Ritz vectors */
    const void *chosen;   /* filled x q->cols */
} krylov;

static const gnomon_tall *latest(const krylov *k)
{
    return &k->blocks[k->filled / BLOCK - 1];
}

/* Where the product of the latest block goes. */
static gnomon_tall *product(const krylov *k)
{
    return &k->blocks[k->filled / BLOCK];
}

static void *at(const gnomon_tall *t, int64_t row, int64_t col)
{
    return (char *)gnomon_tall_row(t, row) + (size_t)col * gnomon_tall_size(t->f64);
}

/* The blocks up to 'count' of them. */
static gnomon_status make_blocks(krylov *k, int64_t count)
{
    for (; k->made < count; k->made++)
        GNOMON_TRY(gnomon_tall_make(k->f->ctx, k->f->f64, k->f->source.cols, BLOCK, false,
                                    "a basis", &k->blocks[k->made]));
    return GNOMON_OK;
}

/* w = A^T A z; w is followed by the blocks for the sums of the other parts. */
static gnomon_status multiply(krylov *k, const gnomon_tall *z, const gnomon_tall *w)
{
    GNOMON_TRY(gnomon_normal_multiply(&k->normal, z, w));
    k->f->out->power_seconds += gnomon_lap(&k->f->clock);
    return GNOMON_OK;
}

static void cross_range(void *arg, int64_t task, int worker)
{
    const krylov *k = arg;
    const bool f64 = k->f->f64;
    const gnomon_tall *w = product(k);
    const int64_t slabs = gnomon_ceil_div(w->rows, SLAB), numbers = k->filled * BLOCK;
    double *place = k->places + task * numbers;
    char *found = (char *)k->scratch + (size_t)(worker * BLOCK * BLOCK) * gnomon_tall_size(f64);
    memset(place, 0, (size_t)numbers * sizeof *place);
    for (int64_t slab = task * slabs / RANGES; slab < (task + 1) * slabs / RANGES; slab++) {
        const int64_t row = slab * SLAB, rows = gnomon_min(SLAB, w->rows - row);
        for (int64_t b = 0; b < k->filled / BLOCK; b++) {
            double *sums = place + b * BLOCK * BLOCK;
            if (f64)
                k->kernels->cross_f64(rows, at(&k->blocks[b], row, 0), at(w, row, 0),
                                      (double *)(void *)found);
            else
                k->kernels->cross_f32(rows, at(&k->blocks[b], row, 0), at(w, row, 0),
                                      (float *)(void *)found);
            for (int64_t i = 0; i < BLOCK * BLOCK; i++)
                sums[i] += f64 ? ((const double *)(const void *)found)[i]
                               : (double)((const float *)(const void *)found)[i];
        }
    }
}

static void subtract_slab(void *arg, int64_t task, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const gnomon_tall *w = product(k);
    const int64_t row = task * SLAB, rows = gnomon_min(SLAB, w->rows - row);
    for (int64_t b = 0; b < k->filled / BLOCK; b++) {
        const int64_t place = b * BLOCK * BLOCK;
        if (k->f->f64)
            k->kernels->combine_f64(rows, at(&k->blocks[b], row, 0),
                                    (const double *)k->scratch + place, at(w, row, 0));
        else
            k->kernels->combine_f32(rows, at(&k->blocks[b], row, 0),
                                    (const float *)k->scratch + place, at(w, row, 0));
    }
}

/* The products of all blocks with the latest one's product, to k->places. */
static void cross(krylov *k)
{
    const int64_t numbers = k->filled * BLOCK;
    gnomon_parallel(k->f->ctx, RANGES, cross_range, k);
    for (int64_t r = 1; r < RANGES; r++) {
        for (int64_t i = 0; i < numbers; i++)
            k->places[i] += k->places[r * numbers + i];
    }
}

/* The product less its part in the span of the basis, of which k->places has the coefficients. */
static void subtract(krylov *k)
{
    const int64_t numbers = k->filled * BLOCK;
    for (int64_t i = 0; i < numbers; i++)
        k->places[numbers + i] = -k->places[i];
    gnomon_f64_to_type(k->f->f64, numbers, k->places + numbers, k->scratch);
    gnomon_parallel(k->f->ctx, gnomon_ceil_div(k->f->source.cols, SLAB), subtract_slab, k);
}

/* The least share of a column's length that is left of w beside what deflate took out: r is the
 * triangle of what is left. */
static double left(const krylov *k, const double *r)
{
    double least = 1;
    for (int64_t j = 0; j < BLOCK; j++) {
        double rest = 0, taken = 0;
        for (int64_t i = 0; i <= j; i++)
            rest += r[i * BLOCK + j] * r[i * BLOCK + j];
        for (int64_t i = 0; i < k->filled; i++)
            taken += k->places[i * BLOCK + j] * k->places[i * BLOCK + j];
        least = fmin(least, sqrt(rest / (rest + taken)));
    }
    return least;
}

/* The product, of which 'subtract' has taken the part in the basis, becomes the next block,
 * orthonormal to all before: *safe false when it hardly left their span. Rounding leaves 1 / NEAR
 * units in the last place of the span; the Ritz vectors are orthonormalised once more. */
static gnomon_status append(krylov *k, bool *safe)
{
    double span, r[BLOCK * BLOCK];
    for (int round = 0; round < 2; round++) {
        if (round > 0) {
            cross(k);
            subtract(k);
        }
        GNOMON_TRY(gnomon_condition(k->f->ctx, product(k), &span, r, &k->f->orth));
        *safe = span > 0;
        if (!*safe) return GNOMON_OK;
        if (span > NEAR && left(k, r) > NEAR) break;
    }
    k->filled += BLOCK;
    k->f->out->orthonormalise_seconds += gnomon_lap(&k->f->clock);
    return GNOMON_OK;
}

/* A^T A times the latest block, and its products with the basis. */
static gnomon_status extend(krylov *k)
{
    GNOMON_TRY(make_blocks(k, k->filled / BLOCK + GNOMON_PARTS));
    GNOMON_TRY(multiply(k, latest(k), product(k)));
    cross(k);
    const int64_t first = k->filled - BLOCK, dims = k->dims;
    for (int64_t i = 0; i < k->filled; i++) {
        for (int64_t j = 0; j < BLOCK; j++)
            k->projected[i * dims + first + j] = k->projected[(first + j) * dims + i] =
                k->places[i * BLOCK + j];
    }
    return GNOMON_OK;
}

/* A block that begins with rows [row, row + BLOCK) of the operator. */
static gnomon_status start(krylov *k, int64_t row, bool *safe)
{
    GNOMON_TRY(make_blocks(k, k->filled / BLOCK + 1 + GNOMON_PARTS));
    gnomon_tall *z = product(k), swapped = *z;
    gnomon_matrix transposed = {
        z->data, k->f->f64 ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, BLOCK, z->rows, 1, BLOCK};
    GNOMON_TRY(gnomon_operator_block(k->f->ctx, k->f->op, row, 0, &transposed));
    k->f->out->project_seconds += gnomon_lap(&k->f->clock);
    GNOMON_TRY(multiply(k, z, z + 1));
    z[0] = z[1];
    z[1] = swapped;
    if (k->filled > 0) {
        cross(k);
        subtract(k);
    }
    return append(k, safe);
}

/* Blocks until the basis has 'columns', each from the one before. */
static gnomon_status grow(krylov *k, int64_t columns, bool *safe)
{
    for (;;) {
        GNOMON_TRY(extend(k));
        if (k->filled == columns) return GNOMON_OK;
        subtract(k);
        GNOMON_TRY(append(k, safe));
        if (!*safe) return GNOMON_OK;
    }
}

/* The eigenvalues of the projected matrix, falling, and vectors, a row each. */
static gnomon_status solve(krylov *k, double *values, double *vectors)
{
    gnomon_context *ctx = k->f->ctx;
    const int64_t n = k->filled, dims = k->dims;
    int64_t work_count, index_count;
    double *work = NULL;
    int *index = NULL;
    gnomon_blas_eigen_work(n, &work_count, &index_count);
    gnomon_status status = gnomon_alloc(ctx, work_count, sizeof *work, "the small problem", &work);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, index_count, sizeof *index, "the small problem", &index);
    if (status == GNOMON_OK) {
        for (int64_t i = 0; i < n; i++)
            memcpy(vectors + i * n, k->projected + i * dims, (size_t)n * sizeof *vectors);
        if (!gnomon_blas_eigen(n, vectors, values, work, work_count, index, index_count))
            values[n - 1] = (double)NAN;
    }
    gnomon_free(ctx, work);
    gnomon_free(ctx, index);
    return status;
}

/* Whether the wanted values are far enough above rounding for their squares to tell, and the first
 * start has found the vectors. What of them lies in the second's blocks sums to the number that the
 * first one missed: over all vectors of equal values the sum is the same for any basis of theirs.
 * Values near the least wanted one have not converged, and the second start improves them: they
 * don't count. values rise. */
static bool trusted(const krylov *k, int64_t wanted, int64_t first, const double *values,
                    const double *vectors)
{
    const int64_t n = k->filled, rank = k->f->options.rank;
    if (!(values[n - wanted] > (k->f->f64 ? 0x1p-36 : 0x1p-14) * values[n - 1])) return false;
    double missed = 0;
    for (int64_t i = n - rank; i < n; i++) {
        for (int64_t j = first; values[i] > MISSED * values[n - rank] && j < n; j++)
            missed += vectors[i * n + j] * vectors[i * n + j];
    }
    return missed < 0.5;
}

/* The first blocks' rows = those of the Ritz vectors, some blocks each. */
static void combine_slab(void *arg, int64_t task, int worker)
{
    const krylov *k = arg;
    const bool f64 = k->f->f64;
    const size_t size = gnomon_tall_size(f64);
    const int64_t cols = k->q->cols, row = task * SLAB;
    const int64_t rows = gnomon_min(SLAB, k->f->source.cols - row);
    char *sums = (char *)k->scratch + (size_t)(worker * SLAB * cols) * size;
    for (int64_t b = 0; b < k->filled; b += BLOCK)
        gnomon_blas_gemm(f64, false, false, rows, cols, BLOCK, 1.0,
                         at(&k->blocks[b / BLOCK], row, 0), BLOCK,
                         (const char *)k->chosen + (size_t)(b * cols) * size, cols,
                         b > 0 ? 1.0 : 0.0, sums, cols);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t col = 0; col < cols; col += BLOCK)
            memcpy(at(&k->blocks[col / BLOCK], row + i, 0), sums + (size_t)(i * cols + col) * size,
                   (size_t)gnomon_min(BLOCK, cols - col) * size);
    }
}

/* Frees the blocks from 'count' on. */
static void drop_blocks(krylov *k, int64_t count)
{
    while (k->made > count)
        gnomon_tall_drop(k->f->ctx, &k->blocks[--k->made]);
}

static void gather_slab(void *arg, int64_t task, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const size_t size = gnomon_tall_size(k->f->f64);
    const int64_t cols = k->q->cols, end = gnomon_min((task + 1) * SLAB, k->q->rows);
    for (int64_t i = task * SLAB; i < end; i++) {
        for (int64_t col = 0; col < cols; col += BLOCK)
            memcpy(at(k->q, i, col), at(&k->blocks[col / BLOCK], i, 0),
                   (size_t)gnomon_min(BLOCK, cols - col) * size);
    }
}

/* q = the combinations of the basis that 'chosen' has, in place of the first blocks first: there is
 * no room for both. */
static gnomon_status combine(krylov *k, const double *chosen, int64_t cols, gnomon_tall *q)
{
    gnomon_context *ctx = k->f->ctx;
    const bool f64 = k->f->f64;
    const int64_t n = k->f->source.cols, slabs = gnomon_ceil_div(n, SLAB);
    void *m = NULL;
    gnomon_free(ctx, k->scratch);
    k->scratch = NULL;
    q->cols = cols;
    k->q = q;
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(k->filled, cols), gnomon_tall_size(f64), "vectors", &m));
    gnomon_f64_to_type(f64, k->filled * cols, chosen, m);
    k->chosen = m;
    const gnomon_status status =
        gnomon_alloc(ctx, gnomon_times((int64_t)SLAB * gnomon_context_threads(ctx), cols),
                     gnomon_tall_size(f64), "products", &k->scratch);
    if (status == GNOMON_OK) gnomon_parallel(ctx, slabs, combine_slab, k);
    gnomon_free(ctx, m);
    GNOMON_TRY(status);
    drop_blocks(k, gnomon_ceil_div(cols, BLOCK));
    GNOMON_TRY(gnomon_tall_make(ctx, f64, n, cols, false, "the projected matrix", q));
    gnomon_parallel(ctx, slabs, gather_slab, k);
    return GNOMON_OK;
}

/* q = the Ritz vectors of the largest values. */
static gnomon_status take(krylov *k, int64_t first, int64_t cols, gnomon_tall *q, bool *done)
{
    gnomon_context *ctx = k->f->ctx;
    const int64_t n = k->filled;
    double *values = NULL, *vectors = NULL, *chosen = NULL;
    drop_blocks(k, n / BLOCK);
    gnomon_status status = gnomon_alloc(ctx, n, sizeof *values, "squared values", &values);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, n), sizeof *vectors, "vectors", &vectors);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, cols), sizeof *chosen, "vectors", &chosen);
    if (status == GNOMON_OK) status = solve(k, values, vectors);
    *done = status == GNOMON_OK && trusted(k, cols, first, values, vectors);
    for (int64_t i = 0; *done && i < n; i++) {
        for (int64_t j = 0; j < cols; j++)
            chosen[i * cols + j] = vectors[(n - 1 - j) * n + i];
    }
    gnomon_free(ctx, values);
    gnomon_free(ctx, vectors);
    if (*done) status = combine(k, chosen, cols, q);
    gnomon_free(ctx, chosen);
    k->f->out->small_seconds += gnomon_lap(&k->f->clock);
    return status;
}

static gnomon_status allocate(krylov *k)
{
    gnomon_context *ctx = k->f->ctx;
    const bool f64 = k->f->f64;
    const int64_t dims = k->dims;
    GNOMON_TRY(gnomon_alloc_zero(ctx, dims / BLOCK + GNOMON_PARTS, sizeof *k->blocks, "a basis",
                                 &k->blocks));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(dims, dims), sizeof(double), "the small problem",
                                 &k->projected));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times((int64_t)RANGES * BLOCK, dims), sizeof(double),
                            "sums over rows", &k->places));
    const int64_t each = gnomon_max(gnomon_context_threads(ctx) * BLOCK, dims);
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(each, BLOCK), gnomon_tall_size(f64), "products",
                            &k->scratch));
    return gnomon_normal_open(&k->f->source, &k->normal);
}

static void release(krylov *k)
{
    gnomon_context *ctx = k->f->ctx;
    drop_blocks(k, 0);
    gnomon_free(ctx, k->blocks);
    gnomon_free(ctx, k->projected);
    gnomon_free(ctx, k->places);
    gnomon_free(ctx, k->scratch);
    gnomon_normal_close(&k->normal);
}

static bool suits(const gnomon_factor *f, int64_t columns)
{
    const gnomon_row_source *s = &f->source;
    return s->sparse && s->norm != 0 &&
           gnomon_krylov_suits(s->rows, s->cols, columns, f->options.power) &&
           !gnomon_center_is_far(s) && gnomon_factor_krylov_fits(f);
}

static gnomon_status run(krylov *k, int64_t first, int64_t columns, gnomon_tall *q, bool *done)
{
    bool safe = true;
    GNOMON_TRY(allocate(k));
    GNOMON_TRY(start(k, 0, &safe));
    if (safe) GNOMON_TRY(grow(k, first, &safe));
    if (safe) GNOMON_TRY(start(k, BLOCK, &safe));
    if (safe) GNOMON_TRY(grow(k, k->dims, &safe));
    return safe ? take(k, first, columns, q, done) : GNOMON_OK;
}

gnomon_status gnomon_range_krylov(gnomon_factor *f, int64_t columns, gnomon_tall *q, bool *done)
{
    krylov k = {
        .f = f, .kernels = gnomon_context_kernels(f->ctx), .normal = {.source = &f->source}};
    *done = false;
    if (!suits(f, columns)) return GNOMON_OK;
    k.dims = gnomon_krylov_columns(columns, f->options.power);
    const int64_t first = k.dims - (int64_t)GNOMON_KRYLOV_AGAIN * BLOCK;
    const gnomon_status status = run(&k, first, columns, q, done);
    release(&k);
    GNOMON_TRY(status);
    /* They are nearly orthonormal: one step is enough. */
    if (*done) GNOMON_TRY(gnomon_condition(f->ctx, q, NULL, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}
