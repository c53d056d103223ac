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
#include "svd/factor.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = GNOMON_NORMAL,
    PARTS = 4,    /* ranges of rows of a product: each has its sum to itself */
    SLAB = 1024,  /* rows of the basis a task */
    RANGES = 16,  /* sums over slabs */
    AGAIN = 2,    /* blocks of the second start */
    COLUMNS = 64, /* fewer take the iterations */
    THIN = 4      /* the space is at most such a share of either side */
};

/* How much longer the terms of a centred product may be than their difference. */
#define LONGEST_ROWS 8
/* Squared values so many times the least wanted one must come from the first start. */
#define MISSED 2.0
/* A block of which less is left, or that spans more, is orthogonalised twice. */
#define NEAR 0x1p-6

typedef struct krylov {
    gnomon_factor *f;
    const gnomon_kernels *kernels;
    gnomon_tall basis; /* n x dims, of which 'filled' columns are there */
    int64_t filled;
    gnomon_tall z, w;  /* n x BLOCK: the latest block, and its product */
    gnomon_tall extra; /* n x BLOCK (PARTS - 1): the other parts' sums */
    double *projected; /* dims x dims: basis^T A^T A basis, column by column */
    double *places;    /* RANGES x dims x BLOCK */
    void *scratch;     /* one a worker, dims x BLOCK; and what is subtracted */
    void *less;        /* BLOCK: mean^T z */
    void *values;      /* in the work's type where the pieces have another; else NULL */
    gnomon_piece piece;
    const void *piece_values;
} krylov;

static void *at(const gnomon_tall *t, int64_t row, int64_t col)
{
    return (char *)gnomon_tall_row(t, row) + (size_t)col * gnomon_tall_size(t->f64);
}

static void multiply_part(void *arg, int64_t part, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const gnomon_csr *a = &k->piece.csr;
    const int64_t first = part * a->rows / PARTS, end = (part + 1) * a->rows / PARTS;
    const int64_t skip = a->offsets[first] - a->offsets[0];
    void *sums = part == 0 ? k->w.data : gnomon_tall_row(&k->extra, (part - 1) * k->w.rows);
    if (k->f->f64)
        k->kernels->normal_f64(end - first, a->offsets + first, a->indices + skip,
                               (const double *)k->piece_values + skip, k->less, BLOCK, k->z.data,
                               sums);
    else
        k->kernels->normal_f32(end - first, a->offsets + first, a->indices + skip,
                               (const float *)k->piece_values + skip, k->less, BLOCK, k->z.data,
                               sums);
}

static void add_parts(void *arg, int64_t task, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const int64_t end = gnomon_min((task + 1) * SLAB, k->w.rows);
    for (int64_t part = 0; part < PARTS - 1; part++) {
        const int64_t from = part * k->w.rows;
        for (int64_t i = task * SLAB * BLOCK; i < end * BLOCK; i++) {
            if (k->f->f64)
                ((double *)k->w.data)[i] += ((const double *)k->extra.data)[from * BLOCK + i];
            else
                ((float *)k->w.data)[i] += ((const float *)k->extra.data)[from * BLOCK + i];
        }
    }
}

/* less = mean^T z */
static void sum_mean(void *arg, int64_t task, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const int64_t col = task * GNOMON_LANES;
    const double *mean = k->f->source.center.offset;
    double sums[GNOMON_LANES] = {0};
    for (int64_t i = 0; i < k->z.rows; i++) {
        for (int64_t l = 0; l < GNOMON_LANES; l++)
            sums[l] += mean[i] * (k->f->f64 ? ((const double *)at(&k->z, i, col))[l]
                                            : (double)((const float *)at(&k->z, i, col))[l]);
    }
    for (int64_t l = 0; l < GNOMON_LANES; l++)
        sums[l] = ldexp(sums[l], -k->f->source.exponent);
    gnomon_f64_to_type(k->f->f64, GNOMON_LANES, sums,
                       (char *)k->less + (size_t)col * gnomon_tall_size(k->f->f64));
}

/* The numbers of the piece in the work's type. */
static gnomon_status convert(krylov *k)
{
    const gnomon_csr *a = &k->piece.csr;
    const int64_t count = a->offsets[a->rows] - a->offsets[0];
    k->piece_values = a->values;
    if ((a->dtype == GNOMON_F64) == k->f->f64) return GNOMON_OK;
    gnomon_free(k->f->ctx, k->values);
    k->values = NULL;
    GNOMON_TRY(
        gnomon_alloc(k->f->ctx, count, gnomon_tall_size(k->f->f64), "sparse values", &k->values));
    for (int64_t i = 0; i < count; i++) {
        if (k->f->f64)
            ((double *)k->values)[i] = (double)((const float *)a->values)[i];
        else
            ((float *)k->values)[i] = (float)((const double *)a->values)[i];
    }
    k->piece_values = k->values;
    return GNOMON_OK;
}

/* w = A^T A z, of centred rows with A - 1 mean^T in A's place: what A^T is less there,
 * mean (1^T A z), is rounding alone, since the columns of the centred matrix sum to 0. */
static gnomon_status multiply(krylov *k)
{
    gnomon_row_source *source = &k->f->source;
    const size_t size = gnomon_tall_size(k->f->f64);
    memset(k->less, 0, BLOCK * size);
    if (source->centered) gnomon_parallel(k->f->ctx, BLOCK / GNOMON_LANES, sum_mean, k);
    memset(k->w.data, 0, (size_t)(k->w.rows * BLOCK) * size);
    memset(k->extra.data, 0, (size_t)(k->extra.rows * BLOCK) * size);
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &k->piece));
        if (k->piece.rows == 0) break;
        GNOMON_TRY(convert(k));
        gnomon_parallel(k->f->ctx, PARTS, multiply_part, k);
    }
    gnomon_parallel(k->f->ctx, gnomon_ceil_div(k->w.rows, SLAB), add_parts, k);
    k->f->out->power_seconds += gnomon_lap(&k->f->clock);
    return GNOMON_OK;
}

static void cross_range(void *arg, int64_t task, int worker)
{
    const krylov *k = arg;
    const bool f64 = k->f->f64;
    const int64_t slabs = gnomon_ceil_div(k->w.rows, SLAB), numbers = k->filled * BLOCK;
    double *place = k->places + task * numbers;
    char *product =
        (char *)k->scratch + (size_t)(worker * k->basis.cols * BLOCK) * gnomon_tall_size(f64);
    memset(place, 0, (size_t)numbers * sizeof *place);
    for (int64_t slab = task * slabs / RANGES; slab < (task + 1) * slabs / RANGES; slab++) {
        const int64_t row = slab * SLAB;
        gnomon_blas_gemm(f64, true, false, k->filled, BLOCK, gnomon_min(SLAB, k->w.rows - row), 1.0,
                         at(&k->basis, row, 0), k->basis.cols, at(&k->w, row, 0), BLOCK, 0.0,
                         product, BLOCK);
        for (int64_t i = 0; i < numbers; i++)
            place[i] += f64 ? ((const double *)product)[i] : (double)((const float *)product)[i];
    }
}

static void subtract_slab(void *arg, int64_t task, int worker)
{
    (void)worker;
    const krylov *k = arg;
    const int64_t row = task * SLAB;
    gnomon_blas_gemm(k->f->f64, false, false, gnomon_min(SLAB, k->w.rows - row), BLOCK, k->filled,
                     -1.0, at(&k->basis, row, 0), k->basis.cols, k->scratch, BLOCK, 1.0,
                     at(&k->w, row, 0), BLOCK);
}

/* w -= basis (basis^T w), the product in k->places. */
static void deflate(krylov *k)
{
    const int64_t numbers = k->filled * BLOCK;
    if (k->filled == 0) return;
    gnomon_parallel(k->f->ctx, RANGES, cross_range, k);
    for (int64_t r = 1; r < RANGES; r++) {
        for (int64_t i = 0; i < numbers; i++)
            k->places[i] += k->places[r * numbers + i];
    }
    gnomon_f64_to_type(k->f->f64, numbers, k->places, k->scratch);
    gnomon_parallel(k->f->ctx, gnomon_ceil_div(k->w.rows, SLAB), subtract_slab, k);
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

/* From w, deflated, the next block, orthonormal to all before: *safe false when w hardly left their
 * span. Rounding leaves 1 / NEAR units in the last place of the span; the Ritz vectors are
 * orthonormalised once more. */
static gnomon_status append(krylov *k, bool *safe)
{
    double span, r[BLOCK * BLOCK];
    for (int round = 0; round < 2; round++) {
        if (round > 0) deflate(k);
        GNOMON_TRY(gnomon_condition(k->f->ctx, &k->w, &span, r, &k->f->orth));
        *safe = span > 0;
        if (!*safe) return GNOMON_OK;
        if (span > NEAR && left(k, r) > NEAR) break;
    }
    const gnomon_tall w = k->w;
    k->w = k->z;
    k->z = w;
    gnomon_tall_place(k->f->ctx, &k->z, &k->basis, k->filled);
    k->filled += BLOCK;
    k->f->out->orthonormalise_seconds += gnomon_lap(&k->f->clock);
    return GNOMON_OK;
}

/* w = A^T A z, its products with the basis, and w less its part in the span. */
static gnomon_status extend(krylov *k)
{
    GNOMON_TRY(multiply(k));
    deflate(k);
    const int64_t first = k->filled - BLOCK, dims = k->basis.cols;
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
    gnomon_matrix transposed = {
        k->z.data, k->f->f64 ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, BLOCK, k->z.rows, 1, BLOCK};
    GNOMON_TRY(gnomon_operator_block(k->f->ctx, k->f->op, row, 0, &transposed));
    k->f->out->project_seconds += gnomon_lap(&k->f->clock);
    GNOMON_TRY(multiply(k));
    deflate(k);
    return append(k, safe);
}

/* Blocks until the basis has 'dims' columns, each from the one before. */
static gnomon_status grow(krylov *k, int64_t dims, bool *safe)
{
    for (;;) {
        GNOMON_TRY(extend(k));
        if (k->filled == dims) return GNOMON_OK;
        GNOMON_TRY(append(k, safe));
        if (!*safe) return GNOMON_OK;
    }
}

/* The eigenvalues of the projected matrix, falling, and vectors, a row each. */
static gnomon_status solve(krylov *k, double *values, double *vectors)
{
    gnomon_context *ctx = k->f->ctx;
    const int64_t n = k->filled, dims = k->basis.cols;
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

/* q = the Ritz vectors of the largest values. */
static gnomon_status take(krylov *k, int64_t first, const gnomon_tall *q, bool *done)
{
    gnomon_context *ctx = k->f->ctx;
    const int64_t n = k->filled;
    double *values = NULL, *vectors = NULL, *chosen = NULL;
    void *m = NULL;
    gnomon_status status = gnomon_alloc(ctx, n, sizeof *values, "squared values", &values);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, n), sizeof *vectors, "vectors", &vectors);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_times(n, q->cols), sizeof *chosen, "vectors", &chosen);
    if (status == GNOMON_OK) status = solve(k, values, vectors);
    if (status == GNOMON_OK && trusted(k, q->cols, first, values, vectors)) {
        for (int64_t i = 0; i < n; i++) {
            for (int64_t j = 0; j < q->cols; j++)
                chosen[i * q->cols + j] = vectors[(n - 1 - j) * n + i];
        }
        status =
            gnomon_alloc(ctx, gnomon_times(n, q->cols), gnomon_tall_size(q->f64), "vectors", &m);
        *done = status == GNOMON_OK;
    }
    if (*done) {
        gnomon_f64_to_type(q->f64, n * q->cols, chosen, m);
        gnomon_tall_multiply(ctx, 1.0, &k->basis, m, 0.0, q);
    }
    gnomon_free(ctx, values);
    gnomon_free(ctx, vectors);
    gnomon_free(ctx, chosen);
    gnomon_free(ctx, m);
    k->f->out->small_seconds += gnomon_lap(&k->f->clock);
    return status;
}

static gnomon_status allocate(krylov *k, int64_t dims)
{
    gnomon_context *ctx = k->f->ctx;
    const bool f64 = k->f->f64;
    const int64_t n = k->f->source.cols;
    GNOMON_TRY(gnomon_tall_make(ctx, f64, n, dims, true, "a basis", &k->basis));
    GNOMON_TRY(gnomon_tall_make(ctx, f64, n, BLOCK, false, "a block", &k->z));
    GNOMON_TRY(gnomon_tall_make(ctx, f64, n, BLOCK, false, "a block", &k->w));
    GNOMON_TRY(gnomon_tall_make(ctx, f64, (PARTS - 1) * n, BLOCK, false, "sums", &k->extra));
    GNOMON_TRY(gnomon_alloc_zero(ctx, gnomon_times(dims, dims), sizeof(double), "the small problem",
                                 &k->projected));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times((int64_t)RANGES * BLOCK, dims), sizeof(double),
                            "sums over rows", &k->places));
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_context_threads(ctx) * BLOCK, dims),
                            gnomon_tall_size(f64), "products", &k->scratch));
    return gnomon_alloc(ctx, BLOCK, gnomon_tall_size(f64), "the mean's products", &k->less);
}

static void release(krylov *k)
{
    gnomon_context *ctx = k->f->ctx;
    gnomon_tall_drop(ctx, &k->basis);
    gnomon_tall_drop(ctx, &k->z);
    gnomon_tall_drop(ctx, &k->w);
    gnomon_tall_drop(ctx, &k->extra);
    gnomon_free(ctx, k->projected);
    gnomon_free(ctx, k->places);
    gnomon_free(ctx, k->scratch);
    gnomon_free(ctx, k->less);
    gnomon_free(ctx, k->values);
}

/* Columns of the space: for q iterations of s columns s (1 + 0.3 q), in whole blocks. */
static int64_t dimensions(const gnomon_factor *f, int64_t columns)
{
    return gnomon_ceil_div(columns * (10 + 3 * (int64_t)f->options.power), 10 * BLOCK) * BLOCK;
}

static bool suits(const gnomon_factor *f, int64_t columns)
{
    const gnomon_row_source *s = &f->source;
    if (s->csr == NULL || f->options.power < 2 || columns < COLUMNS || s->norm == 0) return false;
    const int64_t dims = dimensions(f, columns), least = s->rows < s->cols ? s->rows : s->cols;
    /* The basis replaces room that the rows would take. */
    return dims + AGAIN * BLOCK <= least / THIN && s->cols / 2 <= s->rows &&
           (!s->centered || s->center.magnitude <= LONGEST_ROWS * s->norm);
}

static gnomon_status run(krylov *k, const gnomon_tall *q, bool *done)
{
    const int64_t first = dimensions(k->f, q->cols), all = first + AGAIN * BLOCK;
    bool safe = true;
    GNOMON_TRY(allocate(k, all));
    GNOMON_TRY(start(k, 0, &safe));
    if (safe) GNOMON_TRY(grow(k, first, &safe));
    if (safe) GNOMON_TRY(start(k, BLOCK, &safe));
    if (safe) GNOMON_TRY(grow(k, all, &safe));
    return safe ? take(k, first, q, done) : GNOMON_OK;
}

gnomon_status gnomon_range_krylov(gnomon_factor *f, const gnomon_tall *q, bool *done)
{
    krylov k = {.f = f, .kernels = gnomon_context_kernels(f->ctx)};
    *done = false;
    if (!suits(f, q->cols)) return GNOMON_OK;
    const gnomon_status status = run(&k, q, done);
    release(&k);
    GNOMON_TRY(status);
    /* They are nearly orthonormal: one step is enough. */
    if (*done) GNOMON_TRY(gnomon_condition(f->ctx, q, NULL, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    return GNOMON_OK;
}
