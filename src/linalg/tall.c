#include "linalg/tall.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum {
    BLOCK = 1024,
    RANGES = 32,   /* sums over rows */
    UNIT = 128,    /* rows of such a range at least */
    STRIP = 64,    /* columns of a strip at least */
    SLICE = 256,   /* rows of a product's task at most, */
    LEAST = 64,    /* and at least */
    PARTS = 32,    /* tasks of a product where there are rows for as many */
    INVERTED = 32, /* columns of an inverse a task */
    LINE = 16      /* columns of a task, a line of a cache */
};

gnomon_status gnomon_tall_make(gnomon_context *ctx, bool f64, int64_t rows, int64_t cols, bool zero,
                               const char *what, gnomon_tall *t)
{
    int64_t count;
    t->data = NULL;
    t->rows = rows;
    t->cols = cols;
    t->f64 = f64;
    GNOMON_FAIL_IF(!gnomon_mul(rows, cols, &count), ctx, GNOMON_ERROR_OVERFLOW,
                   "%s: a product of sizes does not fit 63 bits", what);
    return zero ? gnomon_alloc_zero(ctx, count, gnomon_tall_size(f64), what, &t->data)
                : gnomon_alloc(ctx, count, gnomon_tall_size(f64), what, &t->data);
}

void gnomon_tall_drop(gnomon_context *ctx, gnomon_tall *t)
{
    gnomon_free(ctx, t->data);
    t->data = NULL;
}

void gnomon_f64_to_type(bool f64, int64_t count, const double *from, void *to)
{
    if (f64) {
        memcpy(to, from, (size_t)count * sizeof *from);
        return;
    }
    float *out = to;
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)from[i];
}

static void to_f64(bool f64, int64_t count, const void *from, double *to)
{
    if (f64) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    const float *in = from;
    for (int64_t i = 0; i < count; i++)
        to[i] = (double)in[i];
}

/* Sums over rows: the rows are cut into a few ranges, each task sums one into a place of its own,
 * and the places are added in their order. Where the places would be large there are fewer, and
 * tasks take strips of a's columns. How all is cut depends on the shape alone. */
typedef struct sums {
    const gnomon_tall *a, *b;
    int64_t ranges, units; /* units of 'unit' rows in all */
    int64_t unit, strip;   /* rows, columns of a */
    int64_t numbers, cols; /* a place's, and those of its row */
    double *places;
    void *scratch; /* one a worker */
    size_t scratch_bytes;
} sums;

/* Rows [row, row + rows) of the product's rows [col, end). */
static void add_cross(const sums *s, int64_t row, int64_t rows, int64_t col, int64_t end,
                      void *scratch, double *place)
{
    const gnomon_tall *a = s->a, *b = s->b;
    const char *left = (const char *)gnomon_tall_row(a, row);
    gnomon_blas_gemm(a->f64, true, false, end - col, b->cols, rows, 1.0,
                     left + (size_t)col * gnomon_tall_size(a->f64), a->cols,
                     gnomon_tall_row(b, row), b->cols, 0.0, scratch, b->cols);
    double *to = place + col * b->cols;
    for (int64_t i = 0; i < (end - col) * b->cols; i++)
        to[i] += a->f64 ? ((const double *)scratch)[i] : ((const float *)scratch)[i];
}

static void sum_range(void *arg, int64_t task, int worker)
{
    const sums *s = arg;
    const int64_t range = task % s->ranges, col = task / s->ranges * s->strip;
    const int64_t last = gnomon_min(col + s->strip, s->a->cols);
    double *place = s->places + range * s->numbers;
    char *scratch = (char *)s->scratch + (size_t)worker * s->scratch_bytes;
    const int64_t end = gnomon_min((range + 1) * s->units / s->ranges * s->unit, s->a->rows);
    memset(place + col * s->cols, 0, (size_t)((last - col) * s->cols) * sizeof *place);
    for (int64_t row = range * s->units / s->ranges * s->unit; row < end; row += BLOCK)
        add_cross(s, row, gnomon_min(BLOCK, end - row), col, last, scratch, place);
}

/* The first place += the others, a row of it. */
static void add_places(void *arg, int64_t row, int worker)
{
    (void)worker;
    const sums *s = arg;
    double *to = s->places + row * s->cols;
    for (int64_t r = 1; r < s->ranges; r++) {
        const double *from = to + r * s->numbers;
        for (int64_t j = 0; j < s->cols; j++)
            to[j] += from[j];
    }
}

static void cut_sums(sums *s)
{
    const int64_t rows = s->a->rows, cols = s->a->cols;
    s->unit = rows < RANGES * BLOCK ? UNIT : BLOCK;
    s->units = (rows + s->unit - 1) / s->unit;
    s->ranges = ((int64_t)1 << 22) / (s->numbers > 0 ? s->numbers : 1);
    s->ranges = s->ranges < 2 ? 2 : s->ranges > RANGES ? RANGES : s->ranges;
    if (s->ranges > s->units) s->ranges = s->units > 0 ? s->units : 1;
    const int64_t strips = gnomon_max(gnomon_min(RANGES / s->ranges, cols / STRIP), 1);
    s->strip = gnomon_max((cols + strips - 1) / strips, 1);
}

/* s->places: the sum in the first one, to be freed. */
static gnomon_status sum_rows(gnomon_context *ctx, sums *s)
{
    const gnomon_tall *a = s->a, *b = s->b;
    int64_t total, scratch;
    s->cols = b->cols;
    GNOMON_FAIL_IF(!gnomon_mul(a->cols, s->cols, &s->numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "the columns' product does not fit 63 bits");
    cut_sums(s);
    scratch = s->strip * s->cols;
    s->scratch_bytes = (size_t)scratch * sizeof(double);
    GNOMON_FAIL_IF(!gnomon_mul(s->ranges, s->numbers, &total) ||
                       !gnomon_mul(scratch, gnomon_context_threads(ctx), &scratch),
                   ctx, GNOMON_ERROR_OVERFLOW, "the columns' product does not fit 63 bits");
    GNOMON_TRY(gnomon_alloc(ctx, total, sizeof(double), "sums over rows", &s->places));
    gnomon_status status =
        gnomon_alloc(ctx, scratch, sizeof(double), "a block of rows", &s->scratch);
    if (status != GNOMON_OK) {
        gnomon_free(ctx, s->places);
        return status;
    }
    gnomon_parallel(ctx, s->ranges * ((a->cols + s->strip - 1) / s->strip), sum_range, s);
    gnomon_parallel(ctx, a->cols, add_places, s);
    gnomon_free(ctx, s->scratch);
    return GNOMON_OK;
}

gnomon_status gnomon_tall_cross(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *b,
                                void *c)
{
    sums s = {.a = a, .b = b};
    GNOMON_TRY(sum_rows(ctx, &s));
    gnomon_f64_to_type(a->f64, a->cols * b->cols, s.places, c);
    gnomon_free(ctx, s.places);
    return GNOMON_OK;
}

typedef struct blocks {
    double alpha, beta;
    const gnomon_tall *a, *out;
    const void *m;
    int64_t slice;
    bool inverted; /* m is a triangle's inverse */
    double *scratch;
} blocks;

/* Rows of a task: enough tasks for many threads, and of a size that the shape alone gives. */
static int64_t slice_of(const gnomon_tall *t)
{
    const int64_t rows = gnomon_round_up((t->rows + PARTS - 1) / PARTS, LEAST);
    return gnomon_max(gnomon_min(rows, SLICE), LEAST);
}

static int64_t block_count(const gnomon_tall *t)
{
    return (t->rows + slice_of(t) - 1) / slice_of(t);
}

/* From so many columns on a product with the inverse is two to three times as fast as a division by
 * the triangle. Either errs by the roundoff times |T| |R^-1|. */
enum { INVERTED_COLS = 64 };

static void divide_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const blocks *b = arg;
    const int64_t row = task * b->slice, rows = gnomon_min(b->slice, b->a->rows - row);
    if (b->inverted)
        gnomon_blas_triangle(b->a->f64, rows, b->a->cols, b->m, gnomon_tall_row(b->a, row),
                             b->a->cols);
    else
        gnomon_blas_divide(b->a->f64, rows, b->a->cols, b->m, gnomon_tall_row(b->a, row),
                           b->a->cols);
}

static void divide_block_f64(void *arg, int64_t task, int worker)
{
    const blocks *b = arg;
    const int64_t row = task * b->slice, rows = gnomon_min(b->slice, b->a->rows - row);
    double *in = b->scratch + worker * b->slice * b->a->cols;
    to_f64(b->a->f64, rows * b->a->cols, gnomon_tall_row(b->a, row), in);
    gnomon_blas_triangle(true, rows, b->a->cols, b->m, in, b->a->cols);
    gnomon_f64_to_type(b->a->f64, rows * b->a->cols, in, gnomon_tall_row(b->a, row));
}

/* R^-1, some of its columns a task, the long ones first. */
typedef struct inversion {
    int64_t n;
    double most; /* well inside the type's range */
    const double *r;
    double *inverse;
    atomic_bool beyond;
} inversion;

static void invert_columns(void *arg, int64_t task, int worker)
{
    (void)worker;
    inversion *v = arg;
    const int64_t n = v->n, cols = gnomon_min(INVERTED, n - task * INVERTED);
    const int64_t end = n - task * INVERTED, col = end - cols;
    double *to = v->inverse + col;
    bool beyond = false;
    for (int64_t i = 0; i < n; i++) {
        memset(to + i * n, 0, (size_t)cols * sizeof *to);
        if (i >= col && i < end) to[i * n + i - col] = 1;
    }
    gnomon_blas_solve(end, cols, v->r, n, to, n);
    for (int64_t i = 0; i < end; i++)
        for (int64_t j = 0; j < cols; j++)
            beyond |= !(fabs(to[i * n + j]) < v->most);
    if (beyond) atomic_store_explicit(&v->beyond, true, memory_order_relaxed);
}

/* *inverse: R^-1, to be freed; *there tells whether its numbers are well inside the type's range.
 */
static gnomon_status invert(gnomon_context *ctx, const gnomon_tall *t, const double *r,
                            double **inverse, bool *there)
{
    inversion v = {.n = t->cols, .most = t->f64 ? 1e300 : 1e36, .r = r};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(v.n, v.n), sizeof **inverse, "a triangle", inverse));
    v.inverse = *inverse;
    atomic_init(&v.beyond, false);
    gnomon_parallel(ctx, (v.n + INVERTED - 1) / INVERTED, invert_columns, &v);
    *there = !atomic_load(&v.beyond);
    return GNOMON_OK;
}

/* m: the triangle, or where inverted its inverse. */
static gnomon_status divide_by(gnomon_context *ctx, const gnomon_tall *t, const double *m,
                               bool inverted)
{
    void *converted = NULL;
    blocks b = {.a = t, .slice = slice_of(t), .inverted = inverted};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(t->cols, t->cols), gnomon_tall_size(t->f64),
                            "a triangle", &converted));
    gnomon_f64_to_type(t->f64, t->cols * t->cols, m, converted);
    b.m = converted;
    gnomon_parallel(ctx, block_count(t), divide_block, &b);
    gnomon_free(ctx, converted);
    return GNOMON_OK;
}

gnomon_status gnomon_tall_divide(gnomon_context *ctx, const gnomon_tall *t, const double *r)
{
    double *inverse = NULL;
    bool there = false;
    gnomon_status status = GNOMON_OK;
    if (!t->f64 && t->cols >= INVERTED_COLS) status = invert(ctx, t, r, &inverse, &there);
    if (status == GNOMON_OK) status = divide_by(ctx, t, there ? inverse : r, there);
    gnomon_free(ctx, inverse);
    return status;
}

gnomon_status gnomon_tall_divide_f64(gnomon_context *ctx, const gnomon_tall *t, const double *r,
                                     bool *done)
{
    blocks b = {.a = t, .slice = slice_of(t)};
    double *inverse = NULL;
    gnomon_status status = invert(ctx, t, r, &inverse, done);
    if (status == GNOMON_OK && *done)
        status = gnomon_alloc(ctx, gnomon_times(gnomon_context_threads(ctx) * b.slice, t->cols),
                              sizeof *b.scratch, "blocks of rows", &b.scratch);
    b.m = inverse;
    if (status == GNOMON_OK && *done) gnomon_parallel(ctx, block_count(t), divide_block_f64, &b);
    gnomon_free(ctx, b.scratch);
    gnomon_free(ctx, inverse);
    return status;
}

static void multiply_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const blocks *b = arg;
    const int64_t row = task * b->slice;
    gnomon_blas_gemm(b->a->f64, false, false, gnomon_min(b->slice, b->a->rows - row), b->out->cols,
                     b->a->cols, b->alpha, gnomon_tall_row(b->a, row), b->a->cols, b->m,
                     b->out->cols, b->beta, gnomon_tall_row(b->out, row), b->out->cols);
}

void gnomon_tall_multiply(gnomon_context *ctx, double alpha, const gnomon_tall *a, const void *m,
                          double beta, const gnomon_tall *out)
{
    blocks b = {.alpha = alpha, .beta = beta, .a = a, .out = out, .m = m, .slice = slice_of(a)};
    gnomon_parallel(ctx, block_count(a), multiply_block, &b);
}

static void multiply_block_f64(void *arg, int64_t task, int worker)
{
    const blocks *b = arg;
    const int64_t row = task * b->slice, rows = gnomon_min(b->slice, b->a->rows - row);
    const int64_t n = b->a->cols, k = b->out->cols;
    double *in = b->scratch + worker * b->slice * (n + k), *out = in + b->slice * n;
    to_f64(b->a->f64, rows * n, gnomon_tall_row(b->a, row), in);
    gnomon_blas_gemm(true, false, false, rows, k, n, 1.0, in, n, b->m, k, 0.0, out, k);
    gnomon_f64_to_type(b->out->f64, rows * k, out, gnomon_tall_row(b->out, row));
}

gnomon_status gnomon_tall_multiply_f64(gnomon_context *ctx, const gnomon_tall *a, const double *m,
                                       const gnomon_tall *out)
{
    blocks b = {.a = a, .out = out, .m = m, .slice = slice_of(a)};
    GNOMON_TRY(gnomon_alloc(
        ctx, gnomon_times(gnomon_context_threads(ctx) * b.slice, gnomon_plus(a->cols, out->cols)),
        sizeof *b.scratch, "blocks of rows", &b.scratch));
    gnomon_parallel(ctx, block_count(a), multiply_block_f64, &b);
    gnomon_free(ctx, b.scratch);
    return GNOMON_OK;
}

gnomon_status gnomon_tall_deflate(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *b)
{
    void *c = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(a->cols, b->cols), gnomon_tall_size(a->f64),
                            "a product", &c));
    gnomon_status status = gnomon_tall_cross(ctx, a, b, c);
    if (status == GNOMON_OK) gnomon_tall_multiply(ctx, -1.0, a, c, 1.0, b);
    gnomon_free(ctx, c);
    return status;
}

/* Columns [from, from + count) of a to those of out from 'to' on. */
typedef struct columns {
    const gnomon_tall *a, *out;
    int64_t from, to, count, slice;
} columns;

static void copy_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const columns *c = arg;
    const size_t size = gnomon_tall_size(c->a->f64);
    const int64_t end = gnomon_min((task + 1) * c->slice, c->a->rows);
    for (int64_t i = task * c->slice; i < end; i++)
        memcpy((char *)gnomon_tall_row(c->out, i) + (size_t)c->to * size,
               (char *)gnomon_tall_row(c->a, i) + (size_t)c->from * size, (size_t)c->count * size);
}

void gnomon_tall_copy(gnomon_context *ctx, const gnomon_tall *a, int64_t from, int64_t count,
                      const gnomon_tall *out, int64_t to)
{
    columns c = {a, out, from, to, count, slice_of(a)};
    gnomon_parallel(ctx, block_count(a), copy_block, &c);
}

static void convert_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const blocks *b = arg;
    const int64_t row = task * b->slice;
    const int64_t count = gnomon_min(b->slice, b->a->rows - row) * b->a->cols;
    const void *from = gnomon_tall_row(b->a, row);
    void *to = gnomon_tall_row(b->out, row);
    if (b->a->f64)
        gnomon_f64_to_type(b->out->f64, count, from, to);
    else
        to_f64(false, count, from, to);
}

void gnomon_tall_convert(gnomon_context *ctx, const gnomon_tall *a, const gnomon_tall *out)
{
    blocks b = {.a = a, .out = out, .slice = slice_of(a)};
    gnomon_parallel(ctx, block_count(a), convert_block, &b);
}

/* Each column's sum runs over the rows in order, of numbers scaled by its largest entry. */
typedef struct lengths {
    const gnomon_tall *t;
    double *norms;
} lengths;

#define DEFINE_LENGTHS(name, type)                                                      \
    static void name##_largest(const type *p, int64_t rows, int64_t ld, int64_t cols,   \
                               double *most)                                            \
    {                                                                                   \
        for (int64_t i = 0; i < rows; i++) {                                            \
            for (int64_t j = 0; j < cols; j++) {                                        \
                const double x = fabs((double)p[i * ld + j]);                           \
                most[j] = x <= most[j] ? most[j] : x;                                   \
            }                                                                           \
        }                                                                               \
    }                                                                                   \
                                                                                        \
    static void name##_squares(const type *p, int64_t rows, int64_t ld, int64_t cols,   \
                               const double *scale, const double *again, double *total) \
    {                                                                                   \
        for (int64_t i = 0; i < rows; i++) {                                            \
            for (int64_t j = 0; j < cols; j++) {                                        \
                const double x = (double)p[i * ld + j] * scale[j] * again[j];           \
                total[j] += x * x;                                                      \
            }                                                                           \
        }                                                                               \
    }

DEFINE_LENGTHS(f32, float)
DEFINE_LENGTHS(f64, double)

static void measure_columns(void *arg, int64_t task, int worker)
{
    (void)worker;
    const lengths *l = arg;
    const gnomon_tall *t = l->t;
    const int64_t col = task * LINE, cols = gnomon_min(LINE, t->cols - col);
    const void *first = (const char *)t->data + (size_t)col * gnomon_tall_size(t->f64);
    double most[LINE] = {0}, scale[LINE], again[LINE], total[LINE] = {0};
    int exponents[LINE] = {0};
    if (t->f64)
        f64_largest(first, t->rows, t->cols, cols, most);
    else
        f32_largest(first, t->rows, t->cols, cols, most);
    for (int64_t j = 0; j < cols; j++) {
        if (most[j] > 0 && isfinite(most[j])) frexp(most[j], &exponents[j]);
        /* 2^1074 alone is too large a number */
        scale[j] = ldexp(1.0, -exponents[j] / 2);
        again[j] = ldexp(1.0, -exponents[j] + exponents[j] / 2);
    }
    if (t->f64)
        f64_squares(first, t->rows, t->cols, cols, scale, again, total);
    else
        f32_squares(first, t->rows, t->cols, cols, scale, again, total);
    for (int64_t j = 0; j < cols; j++)
        l->norms[col + j] = ldexp(sqrt(total[j]), exponents[j]);
}

void gnomon_tall_norms(gnomon_context *ctx, const gnomon_tall *t, double *norms)
{
    lengths l = {t, norms};
    gnomon_parallel(ctx, (t->cols + LINE - 1) / LINE, measure_columns, &l);
}

/* The first of equal entries counts. */
#define DEFINE_EXTREMES(name, type)                                                       \
    static void name(const type *p, int64_t rows, int64_t ld, int64_t cols, double *most) \
    {                                                                                     \
        for (int64_t i = 0; i < rows; i++) {                                              \
            for (int64_t j = 0; j < cols; j++) {                                          \
                const double x = (double)p[i * ld + j];                                   \
                most[j] = fabs(x) > fabs(most[j]) ? x : most[j];                          \
            }                                                                             \
        }                                                                                 \
    }

DEFINE_EXTREMES(extremes_f32, float)
DEFINE_EXTREMES(extremes_f64, double)

typedef struct flip {
    const gnomon_tall *t;
    bool *down;
    int64_t slice;
} flip;

/* Some columns: whether the entry of the largest magnitude is negative. */
static void find_signs(void *arg, int64_t task, int worker)
{
    (void)worker;
    const flip *u = arg;
    const int64_t col = task * LINE, cols = gnomon_min(LINE, u->t->cols - col);
    double most[LINE] = {0};
    if (u->t->f64)
        extremes_f64((const double *)u->t->data + col, u->t->rows, u->t->cols, cols, most);
    else
        extremes_f32((const float *)u->t->data + col, u->t->rows, u->t->cols, cols, most);
    for (int64_t j = 0; j < cols; j++)
        u->down[col + j] = most[j] < 0;
}

static void flip_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const flip *u = arg;
    const int64_t cols = u->t->cols, end = gnomon_min((task + 1) * u->slice, u->t->rows);
    for (int64_t i = task * u->slice; i < end; i++) {
        void *row = gnomon_tall_row(u->t, i);
        for (int64_t j = 0; j < cols; j++) {
            if (u->t->f64)
                ((double *)row)[j] = u->down[j] ? -((double *)row)[j] : ((double *)row)[j];
            else
                ((float *)row)[j] = u->down[j] ? -((float *)row)[j] : ((float *)row)[j];
        }
    }
}

gnomon_status gnomon_tall_fix_signs(gnomon_context *ctx, const gnomon_tall *t, bool *down)
{
    flip u = {t, down, slice_of(t)};
    gnomon_parallel(ctx, (t->cols + LINE - 1) / LINE, find_signs, &u);
    gnomon_parallel(ctx, block_count(t), flip_block, &u);
    return GNOMON_OK;
}
