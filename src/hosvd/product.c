#include "hosvd/product.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/alone.h"
#include "linalg/blas.h"
#include "project/blocks.h"

#include <string.h>

/* A task takes strips of about GROUP columns in all. */
enum { WIDTH = 512, GROUP = 1024 };

typedef struct product {
    gnomon_strips strips;
    int64_t group; /* strips a task */
    int mode;
    const gnomon_cube *in, *out; /* of a difference: out is what is subtracted from */
    const gnomon_tall *f;
    bool transposed;
    double beta;
    const gnomon_kernels *kernels;
    char *scratch; /* one a worker: strips, and at gemm_at what a product takes */
    size_t scratch_bytes, out_at, gemm_at;
    double *squares; /* one a task; NULL: a product */
} product;

static int64_t strips_a_task(const gnomon_strips *s)
{
    const int64_t width = s->per_left > 0 ? gnomon_min(s->width, s->right) : s->width;
    return GROUP / width > 0 ? GROUP / width : 1;
}

/* out = alpha op(f) in + beta out, of two strips: BLAS in double precision. In single precision
 * its calls of so few rows and columns cost more than they compute. */
static void multiply(const product *p, double alpha, const gnomon_sheet *in, double beta,
                     const gnomon_sheet *out, char *scratch)
{
    const gnomon_tall *f = p->f;
    if (!f->f64) {
        gnomon_matrix a = gnomon_matrix_rowmajor(f->data, GNOMON_F32, f->rows, f->cols);
        if (p->transposed) a = gnomon_matrix_transposed(&a);
        const gnomon_matrix b = gnomon_sheet_view(in), c = gnomon_sheet_view(out);
        const gnomon_gemm_job job = {.a = &a, .b = &b, .c = &c, .alpha = alpha, .beta = beta};
        gnomon_gemm_alone(p->kernels, &job, scratch + p->gemm_at);
    } else if (out->column_major) {
        gnomon_blas_gemm(true, false, !p->transposed, out->cols, out->rows, in->rows, alpha,
                         in->data, in->stride, f->data, f->cols, beta, out->data, out->stride);
    } else {
        gnomon_blas_gemm(true, p->transposed, false, out->rows, out->cols, in->rows, alpha, f->data,
                         f->cols, in->data, in->stride, beta, out->data, out->stride);
    }
}

static void multiply_strips(void *arg, int64_t task, int worker)
{
    const product *p = arg;
    char *scratch = p->scratch + (size_t)worker * p->scratch_bytes;
    const int64_t end = gnomon_min((task + 1) * p->group, p->strips.count);
    for (int64_t i = task * p->group; i < end; i++) {
        const gnomon_sheet in = gnomon_strip_open(&p->strips, i, p->in, p->mode, scratch, true);
        const gnomon_sheet out =
            gnomon_strip_open(&p->strips, i, p->out, p->mode, scratch + p->out_at, p->beta != 0);
        multiply(p, 1.0, &in, p->beta, &out, scratch);
        gnomon_strip_store(&p->strips, i, p->out, p->mode, &out);
    }
}

/* The strip in place copied to 'tile', without gaps. */
static gnomon_sheet copied(bool f64, const gnomon_sheet *from, void *tile)
{
    gnomon_sheet to = *from;
    const int64_t lines = from->column_major ? from->cols : from->rows;
    const size_t size = gnomon_tall_size(f64);
    to.data = tile;
    to.stride = from->column_major ? from->rows : from->cols;
    for (int64_t i = 0; i < lines; i++)
        memcpy((char *)tile + (size_t)(i * to.stride) * size,
               (const char *)from->data + (size_t)(i * from->stride) * size,
               (size_t)to.stride * size);
    return to;
}

static double sum_of_squares(bool f64, int64_t count, const void *data)
{
    enum { LANES = 8 };
    double lane[LANES] = {0}, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = f64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
        lane[i % LANES] += x * x;
    }
    for (int l = 0; l < LANES; l++)
        sum += lane[l];
    return sum;
}

static void subtract_strips(void *arg, int64_t task, int worker)
{
    const product *p = arg;
    char *scratch = p->scratch + (size_t)worker * p->scratch_bytes, *tile = scratch + p->out_at;
    const int64_t end = gnomon_min((task + 1) * p->group, p->strips.count);
    double sum = 0;
    for (int64_t i = task * p->group; i < end; i++) {
        const gnomon_sheet in = gnomon_strip_open(&p->strips, i, p->in, p->mode, scratch, true);
        gnomon_sheet out = gnomon_strip_open(&p->strips, i, p->out, p->mode, tile, true);
        if (!p->strips.gathered) out = copied(p->in->f64, &out, tile);
        multiply(p, -1.0, &in, 1.0, &out, scratch);
        sum += sum_of_squares(p->in->f64, out.rows * out.cols, out.data);
    }
    p->squares[task] = sum;
}

static gnomon_status run(gnomon_context *ctx, product *p, gnomon_task_fn fn)
{
    const int64_t tasks = (p->strips.count + p->group - 1) / p->group;
    p->kernels = gnomon_context_kernels(ctx);
    p->gemm_at = (p->scratch_bytes + GNOMON_ALIGN - 1) / GNOMON_ALIGN * GNOMON_ALIGN;
    p->scratch_bytes = p->gemm_at + (p->f->f64 ? GNOMON_ALIGN : (size_t)gnomon_gemm_alone_bytes());
    gnomon_status status = gnomon_alloc(ctx, gnomon_context_threads(ctx), p->scratch_bytes,
                                        "strips of a tensor", &p->scratch);
    if (status == GNOMON_OK) gnomon_parallel(ctx, tasks, fn, p);
    gnomon_free(ctx, p->scratch);
    return status;
}

gnomon_status gnomon_mode_product(gnomon_context *ctx, const gnomon_cube *in, int mode,
                                  const gnomon_tall *f, bool transposed, double beta,
                                  const gnomon_cube *out)
{
    const size_t size = gnomon_tall_size(in->f64);
    const int64_t lengths = in->size[mode] + out->size[mode];
    product p = {
        .mode = mode, .in = in, .out = out, .f = f, .transposed = transposed, .beta = beta};
    p.strips = gnomon_strips_cut(in, mode, WIDTH, 0);
    if (p.strips.gathered) {
        p.strips = gnomon_strips_cut(in, mode, WIDTH, lengths);
        p.out_at = (size_t)(p.strips.width * in->size[mode]) * size;
        p.scratch_bytes = (size_t)(p.strips.width * lengths) * size;
    }
    p.group = strips_a_task(&p.strips);
    return run(ctx, &p, multiply_strips);
}

gnomon_status gnomon_mode_difference(gnomon_context *ctx, const gnomon_cube *whole, int mode,
                                     const gnomon_tall *f, const gnomon_cube *in, double *squares)
{
    const size_t size = gnomon_tall_size(in->f64);
    const int64_t lengths = in->size[mode] + whole->size[mode];
    product p = {.mode = mode, .in = in, .out = whole, .f = f};
    p.strips = gnomon_strips_cut(in, mode, WIDTH, lengths);
    p.group = strips_a_task(&p.strips);
    p.out_at = (size_t)(p.strips.width * in->size[mode]) * size;
    p.scratch_bytes = (size_t)(p.strips.width * lengths) * size;
    const int64_t tasks = (p.strips.count + p.group - 1) / p.group;
    GNOMON_TRY(gnomon_alloc(ctx, tasks, sizeof(double), "sums of squares", &p.squares));
    gnomon_status status = run(ctx, &p, subtract_strips);
    for (int64_t i = 0; i < tasks && status == GNOMON_OK; i++)
        *squares += p.squares[i];
    gnomon_free(ctx, p.squares);
    return status;
}
