/* Sums over the columns of an unfolding: they are cut into a few ranges, each task sums one into a
 * place of its own, and the places are added in their order. */
#include "hosvd/product.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/alone.h"
#include "linalg/blas.h"
#include "project/blocks.h"

#include <string.h>

enum { WIDTH = 1024, SLICE = 256, RANGES = 32, PLACES = 1 << 22 };

typedef struct sums sums;
/* Adds units [from, end) to the place. */
typedef void (*range_fn)(const sums *s, int64_t from, int64_t end, char *scratch, double *place);

struct sums {
    range_fn range;
    gnomon_strips strips;
    int mode;
    const gnomon_cube *a, *b;
    const gnomon_tall *f;  /* in b's place: b is f^T a, made strip by strip */
    int64_t ranges, units; /* units: strips, or slices of columns */
    int64_t numbers;       /* a place's */
    double *places;
    const gnomon_kernels *kernels;
    char *scratch; /* one a worker: what a product takes, then strips */
    size_t scratch_bytes, a_at, b_at;
};

/* place += the product of two strips: in double precision by BLAS, else summed in it. */
static void add_product(const sums *s, const gnomon_sheet *a, const gnomon_sheet *b, char *scratch,
                        double *place)
{
    if (!s->a->f64) {
        const gnomon_matrix left = gnomon_sheet_view(a), other = gnomon_sheet_view(b);
        const gnomon_matrix right = gnomon_matrix_transposed(&other);
        const gnomon_matrix c = gnomon_matrix_rowmajor(place, GNOMON_F64, a->rows, b->rows);
        const gnomon_gemm_job job = {.a = &left, .b = &right, .c = &c, .alpha = 1, .beta = 1};
        gnomon_gemm_alone(s->kernels, &job, scratch);
        return;
    }
    gnomon_blas_gemm(true, a->column_major, !b->column_major, a->rows, b->rows, a->cols, 1.0,
                     a->data, a->stride, b->data, b->stride, 1.0, place, b->rows);
}

static void cross_range(const sums *s, int64_t from, int64_t end, char *scratch, double *place)
{
    for (int64_t i = from; i < end; i++) {
        const gnomon_sheet a =
            gnomon_strip_open(&s->strips, i, s->a, s->mode, scratch + s->a_at, true);
        const gnomon_sheet b =
            gnomon_strip_open(&s->strips, i, s->b, s->mode, scratch + s->b_at, true);
        add_product(s, &a, &b, scratch, place);
    }
}

/* f^T times a strip. */
static gnomon_sheet shrink(const sums *s, const gnomon_sheet *a, char *scratch)
{
    const gnomon_tall *f = s->f;
    const gnomon_sheet out = {
        .data = scratch + s->b_at, .rows = f->cols, .cols = a->cols, .stride = a->cols};
    if (s->a->f64) {
        gnomon_blas_gemm(true, true, a->column_major, out.rows, out.cols, a->rows, 1.0, f->data,
                         f->cols, a->data, a->stride, 0.0, out.data, out.stride);
        return out;
    }
    const gnomon_matrix basis = gnomon_matrix_rowmajor(f->data, GNOMON_F32, f->rows, f->cols);
    const gnomon_matrix left = gnomon_matrix_transposed(&basis), right = gnomon_sheet_view(a);
    const gnomon_matrix c = gnomon_sheet_view(&out);
    const gnomon_gemm_job job = {.a = &left, .b = &right, .c = &c, .alpha = 1};
    gnomon_gemm_alone(s->kernels, &job, scratch);
    return out;
}

static void shrunk_cross_range(const sums *s, int64_t from, int64_t end, char *scratch,
                               double *place)
{
    for (int64_t i = from; i < end; i++) {
        const gnomon_sheet a =
            gnomon_strip_open(&s->strips, i, s->a, s->mode, scratch + s->a_at, true);
        const gnomon_sheet b = shrink(s, &a, scratch);
        add_product(s, &a, &b, scratch, place);
    }
}

static void gram_range(const sums *s, int64_t from, int64_t end, char *scratch, double *place)
{
    const int64_t length = s->a->size[s->mode];
    for (int64_t i = from; i < end; i++) {
        const int64_t cols = gnomon_min(SLICE, s->strips.columns - i * SLICE);
        gnomon_strip_to_f64(&s->strips, s->a, s->mode, i * SLICE, cols, (double *)(void *)scratch);
        gnomon_blas_gram(length, cols, (const double *)(const void *)scratch, length, place,
                         length);
    }
}

static void sum_range(void *arg, int64_t task, int worker)
{
    const sums *s = arg;
    double *place = s->places + task * s->numbers;
    const int64_t from = task * s->units / s->ranges, end = (task + 1) * s->units / s->ranges;
    memset(place, 0, (size_t)s->numbers * sizeof *place);
    s->range(s, from, end, s->scratch + (size_t)worker * s->scratch_bytes, place);
}

static gnomon_status add_up(gnomon_context *ctx, sums *s, double *sum)
{
    s->kernels = gnomon_context_kernels(ctx);
    s->scratch_bytes = (s->scratch_bytes + GNOMON_ALIGN - 1) / GNOMON_ALIGN * GNOMON_ALIGN;
    s->ranges = PLACES / (s->numbers > 0 ? s->numbers : 1);
    s->ranges = s->ranges < 2 ? 2 : s->ranges > RANGES ? RANGES : s->ranges;
    if (s->ranges > s->units) s->ranges = s->units;
    int64_t total;
    GNOMON_FAIL_IF(!gnomon_mul(s->ranges, s->numbers, &total), ctx, GNOMON_ERROR_OVERFLOW,
                   "sums over columns do not fit 63 bits");
    gnomon_status status =
        gnomon_alloc(ctx, total, sizeof(double), "sums over columns", &s->places);
    if (status == GNOMON_OK)
        status = gnomon_alloc(ctx, gnomon_context_threads(ctx), s->scratch_bytes,
                              "strips of a tensor", &s->scratch);
    if (status == GNOMON_OK) {
        gnomon_parallel(ctx, s->ranges, sum_range, s);
        for (int64_t r = 0; r < s->ranges; r++) {
            const double *place = s->places + r * s->numbers;
            for (int64_t i = 0; i < s->numbers; i++)
                sum[i] += place[i];
        }
    }
    gnomon_free(ctx, s->places);
    gnomon_free(ctx, s->scratch);
    return status;
}

/* Bytes of a product's scratch, a multiple of GNOMON_ALIGN. */
static size_t product_bytes(const gnomon_cube *a)
{
    const size_t bytes = a->f64 ? 0 : (size_t)gnomon_gemm_alone_bytes();
    return (bytes + GNOMON_ALIGN - 1) / GNOMON_ALIGN * GNOMON_ALIGN;
}

gnomon_status gnomon_mode_cross(gnomon_context *ctx, const gnomon_cube *a, const gnomon_cube *b,
                                int mode, double *sum)
{
    const int64_t rows = a->size[mode], cols = b->size[mode];
    const size_t size = gnomon_tall_size(a->f64);
    sums s = {.range = cross_range, .mode = mode, .a = a, .b = b};
    GNOMON_FAIL_IF(!gnomon_mul(rows, cols, &s.numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "a mode's product does not fit 63 bits");
    s.strips = gnomon_strips_cut(a, mode, WIDTH, 0);
    if (s.strips.gathered) s.strips = gnomon_strips_cut(a, mode, WIDTH, rows + cols);
    s.units = s.strips.count;
    s.a_at = s.b_at = product_bytes(a);
    if (s.strips.gathered) s.b_at += (size_t)(rows * s.strips.width) * size;
    s.scratch_bytes = s.b_at + (size_t)(s.strips.gathered ? cols * s.strips.width : 1) * size;
    return add_up(ctx, &s, sum);
}

gnomon_status gnomon_mode_shrunk_cross(gnomon_context *ctx, const gnomon_cube *a, int mode,
                                       const gnomon_tall *f, double *sum)
{
    const int64_t rows = a->size[mode], cols = f->cols;
    const size_t size = gnomon_tall_size(a->f64);
    sums s = {.range = shrunk_cross_range, .mode = mode, .a = a, .f = f};
    GNOMON_FAIL_IF(!gnomon_mul(rows, cols, &s.numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "a mode's product does not fit 63 bits");
    s.strips = gnomon_strips_cut(a, mode, WIDTH, rows + cols);
    s.units = s.strips.count;
    s.a_at = s.b_at = product_bytes(a);
    if (s.strips.gathered) s.b_at += (size_t)(rows * s.strips.width) * size;
    s.scratch_bytes = s.b_at + (size_t)(cols * s.strips.width) * size;
    return add_up(ctx, &s, sum);
}

gnomon_status gnomon_mode_gram(gnomon_context *ctx, const gnomon_cube *a, int mode, double *gram)
{
    const int64_t length = a->size[mode];
    sums s = {.range = gram_range, .mode = mode, .a = a};
    GNOMON_FAIL_IF(!gnomon_mul(length, length, &s.numbers), ctx, GNOMON_ERROR_OVERFLOW,
                   "a mode's Gram matrix does not fit 63 bits");
    s.strips = gnomon_strips_cut(a, mode, WIDTH, 0);
    s.units = (s.strips.columns + SLICE - 1) / SLICE;
    s.scratch_bytes = (size_t)(SLICE * length) * sizeof(double);
    return add_up(ctx, &s, gram);
}
