/* Products with a piece of rows, and with all of them. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "gemm/coarse.h"
#include "gemm/job.h"
#include "linalg/blas.h"
#include "project/blocks.h"
#include "project/job.h"
#include "svd/center.h"
#include "svd/normal.h"
#include "svd/panels.h"
#include "svd/row_pass.h"

#include <math.h>
#include <string.h>

enum {
    ROWS = 512, /* of a dense product's task at most, */
    COLS = 512,
    LEAST_ROWS = 128, /* and at least, */
    TASKS = 64,       /* where there are fewer tasks than this */
    SPARSE_ROWS = 64,
    SPARSE_COLS = GNOMON_LANES
};

typedef struct product {
    const gnomon_piece *piece;
    const gnomon_kernels *kernels; /* of sparse rows */
    bool f64;
    const gnomon_tall *in, *out;
    int64_t row_blocks, block; /* rows of the result a task */
    /* Of sparse rows less their mean: what is taken off each row, or mean^T times scale off each
     * column; sums of the result. */
    double *correction, *sums, scale;
    const double *mean;
} product;

static const void *entry(const gnomon_matrix *m, bool f64, int64_t row, int64_t col)
{
    return (const char *)m->data +
           (row * m->row_stride + col * m->col_stride) * (int64_t)gnomon_tall_size(f64);
}

/* Rows that lie with col_stride 1 are what BLAS calls row-major; else it reads the transpose. */
static bool is_transposed(const gnomon_matrix *m)
{
    return m->col_stride != 1;
}

static int64_t leading(const gnomon_matrix *m)
{
    const int64_t stride = is_transposed(m) ? m->col_stride : m->row_stride;
    const int64_t length = is_transposed(m) ? m->rows : m->cols;
    /* A single line may have any stride. */
    return stride < length ? length : stride;
}

static void *offset(const gnomon_tall *t, int64_t row, int64_t col)
{
    return (char *)gnomon_tall_row(t, row) + (size_t)col * gnomon_tall_size(t->f64);
}

/* A dense product's tasks: enough for many threads, and cut as the shape alone tells. */
static int64_t cut_rows(product *p, int64_t rows)
{
    const int64_t columns = (p->in->cols + COLS - 1) / COLS;
    const int64_t block = gnomon_round_up((rows * columns + TASKS - 1) / TASKS, LEAST_ROWS);
    p->block = gnomon_max(gnomon_min(block, ROWS), LEAST_ROWS);
    p->row_blocks = (rows + p->block - 1) / p->block;
    return p->row_blocks * columns;
}

static void apply_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const gnomon_matrix *m = &p->piece->dense;
    const int64_t row = task % p->row_blocks * p->block, col = task / p->row_blocks * COLS;
    const int64_t s = p->in->cols;
    gnomon_blas_gemm(p->f64, is_transposed(m), false, gnomon_min(p->block, m->rows - row),
                     gnomon_min(COLS, s - col), m->cols, 1.0, entry(m, p->f64, row, 0), leading(m),
                     offset(p->in, 0, col), s, 0.0, offset(p->out, row, col), s);
}

static void adjoint_block(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const gnomon_matrix *m = &p->piece->dense;
    const int64_t row = task % p->row_blocks * p->block, col = task / p->row_blocks * COLS;
    const int64_t s = p->in->cols;
    gnomon_blas_gemm(p->f64, !is_transposed(m), false, gnomon_min(p->block, m->cols - row),
                     gnomon_min(COLS, s - col), m->rows, 1.0, entry(m, p->f64, 0, row), leading(m),
                     offset(p->in, 0, col), s, 1.0, offset(p->out, row, col), s);
}

/* ---- dense products with few columns ---- */

enum {
    FEW = 32,     /* columns at most */
    LINES = 64,   /* of A, of a task */
    STEPS = 4096, /* whose numbers of the other factor stay in the second cache */
    TURNED = 1024 /* numbers of a line that a task turns */
};

/* out (lines x in.cols) = a's lines, whose numbers are adjacent, times in, or += with 'onto'. */
typedef struct few {
    const gnomon_kernels *kernels;
    const void *a;
    int64_t lines, steps, ld;
    const gnomon_tall *in, *out;
    bool onto;
    void *turned; /* in's transpose */
} few;

static void turn_some(void *arg, int64_t task, int worker)
{
    (void)worker;
    const few *p = arg;
    const int64_t end = gnomon_min((task + 1) * TURNED, p->steps);
    for (int64_t i = task * TURNED; i < end; i++) {
        const void *row = gnomon_tall_row(p->in, i);
        for (int64_t j = 0; j < p->in->cols; j++) {
            if (p->in->f64)
                ((double *)p->turned)[j * p->steps + i] = ((const double *)row)[j];
            else
                ((float *)p->turned)[j * p->steps + i] = ((const float *)row)[j];
        }
    }
}

static void multiply_lines(void *arg, int64_t task, int worker)
{
    (void)worker;
    const few *p = arg;
    const int64_t line = task * LINES, lines = gnomon_min(LINES, p->lines - line);
    const int64_t cols = p->in->cols;
    void *out = gnomon_tall_row(p->out, line);
    for (int64_t step = 0; step < p->steps; step += STEPS) {
        const int64_t steps = gnomon_min(STEPS, p->steps - step), at = line * p->ld + step;
        const bool onto = p->onto || step > 0;
        if (p->in->f64)
            p->kernels->few_f64(lines, cols, steps, (const double *)p->a + at, p->ld,
                                (const double *)p->turned + step, p->steps, onto, out, cols);
        else
            p->kernels->few_f32(lines, cols, steps, (const float *)p->a + at, p->ld,
                                (const float *)p->turned + step, p->steps, onto, out, cols);
    }
}

static bool is_few(const gnomon_matrix *lines, const gnomon_tall *in)
{
    return lines->col_stride == 1 && in->cols <= FEW;
}

static gnomon_status multiply_few(gnomon_context *ctx, const gnomon_matrix *lines,
                                  const gnomon_tall *in, bool onto, const gnomon_tall *out)
{
    few p = {.kernels = gnomon_context_kernels(ctx),
             .a = lines->data,
             .lines = lines->rows,
             .steps = lines->cols,
             .ld = lines->row_stride,
             .in = in,
             .out = out,
             .onto = onto};
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(in->cols, p.steps), gnomon_tall_size(in->f64),
                            "a factor", &p.turned));
    gnomon_parallel(ctx, gnomon_ceil_div(p.steps, TURNED), turn_some, &p);
    gnomon_parallel(ctx, gnomon_ceil_div(p.lines, LINES), multiply_lines, &p);
    gnomon_free(ctx, p.turned);
    return GNOMON_OK;
}

/* ---- sparse products ---- */

static double value_at(const gnomon_csr *a, int64_t i)
{
    return a->dtype == GNOMON_F64 ? ((const double *)a->values)[i]
                                  : (double)((const float *)a->values)[i];
}

/* out[j] += value * in[j]. */
static void add(bool f64, int64_t count, double value, const void *in, void *out)
{
    if (f64) {
        const double *from = in;
        double *to = out;
        for (int64_t j = 0; j < count; j++)
            to[j] += value * from[j];
    } else {
        const float *from = in;
        const float factor = (float)value;
        float *to = out;
        for (int64_t j = 0; j < count; j++)
            to[j] += factor * from[j];
    }
}

/* sums[j] += value * in[j]. */
static void add_to_f64(bool f64, int64_t count, double value, const void *in, double *sums)
{
    for (int64_t j = 0; f64 && j < count; j++)
        sums[j] += value * ((const double *)in)[j];
    for (int64_t j = 0; !f64 && j < count; j++)
        sums[j] += value * (double)((const float *)in)[j];
}

static const void *values_at(const gnomon_csr *a, int64_t i)
{
    return (const char *)a->values + (size_t)i * gnomon_tall_size(a->dtype == GNOMON_F64);
}

/* sums[l] = the row times columns [col, col + width) of in, in fp64. */
static void gather(const product *p, int64_t row, int64_t col, int64_t width, double *sums)
{
    const gnomon_csr *a = &p->piece->csr;
    const gnomon_tall *in = p->in;
    const int64_t first = a->offsets[row] - a->offsets[0];
    const int64_t count = a->offsets[row + 1] - a->offsets[row];
    const int64_t *indices = a->indices + first;
    const bool f64 = a->dtype == GNOMON_F64;
    if (width == GNOMON_LANES) {
        if (p->f64)
            p->kernels->gather_f64(count, count, indices, values_at(a, first), f64, in->cols,
                                   offset(in, 0, col), sums);
        else
            p->kernels->gather_f32(count, count, indices, values_at(a, first), f64, in->cols,
                                   offset(in, 0, col), sums);
        return;
    }
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t i = 0; i < count; i++)
        add_to_f64(p->f64, width, value_at(a, first + i), offset(in, indices[i], col), sums);
}

/* out = piece * in less the correction, sums in fp64, some columns at a time. */
static void apply_sparse(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const gnomon_csr *a = &p->piece->csr;
    const int64_t end = gnomon_min((task + 1) * SPARSE_ROWS, a->rows), s = p->in->cols;
    for (int64_t col = 0; col < s;) {
        /* The last columns go with some of those before, which get the same numbers again. */
        const int64_t from = s >= SPARSE_COLS ? gnomon_min(col, s - SPARSE_COLS) : col;
        const int64_t width = gnomon_min(SPARSE_COLS, s - from);
        for (int64_t row = task * SPARSE_ROWS; row < end; row++) {
            double sums[SPARSE_COLS];
            gather(p, row, from, width, sums);
            for (int64_t j = 0; p->correction != NULL && j < width; j++)
                sums[j] -= p->correction[from + j];
            gnomon_f64_to_type(p->f64, width, sums, offset(p->out, row, from));
        }
        col = from + width;
    }
}

/* out[:, col ...] += value in, for the nonzeros of a row; in and out of the type f64 tells. */
static void scatter(const product *p, bool f64, int64_t row, int64_t width, const void *in,
                    void *out)
{
    const gnomon_csr *a = &p->piece->csr;
    const int64_t first = a->offsets[row] - a->offsets[0], s = p->in->cols;
    const int64_t count = a->offsets[row + 1] - a->offsets[row];
    const int64_t *indices = a->indices + first;
    const bool of_f64 = a->dtype == GNOMON_F64;
    if (width == GNOMON_LANES) {
        if (f64)
            p->kernels->scatter_f64(count, count, indices, values_at(a, first), of_f64, s, in, out);
        else
            p->kernels->scatter_f32(count, count, indices, values_at(a, first), of_f64, s, in, out);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        add(f64, width, value_at(a, first + i), in,
            (char *)out + (size_t)(indices[i] * s) * gnomon_tall_size(f64));
}

/* Each task has some columns of the result to itself and goes through all entries: z += A^T q -
 * mean correction, by sums in fp64. */
static void adjoint_centered(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const gnomon_csr *a = &p->piece->csr;
    const int64_t col = task * SPARSE_COLS, count = gnomon_min(SPARSE_COLS, p->in->cols - col);
    const int64_t s = p->in->cols;
    for (int64_t j = 0; j < p->out->rows; j++) {
        double *sums = p->sums + j * s + col;
        for (int64_t l = 0; l < count; l++)
            sums[l] = 0;
    }
    for (int64_t row = 0; row < a->rows; row++) {
        const void *from = offset(p->in, row, col);
        double in[SPARSE_COLS];
        for (int64_t l = 0; l < count; l++)
            in[l] = p->f64 ? ((const double *)from)[l] : (double)((const float *)from)[l];
        scatter(p, true, row, count, in, p->sums + col);
    }
    for (int64_t j = 0; j < p->out->rows; j++) {
        const double *sums = p->sums + j * s + col;
        void *out = offset(p->out, j, col);
        for (int64_t l = 0; l < count; l++) {
            const double x = sums[l] - p->scale * p->mean[j] * p->correction[col + l];
            if (p->f64)
                ((double *)out)[l] += x;
            else
                ((float *)out)[l] = (float)((double)((float *)out)[l] + x);
        }
    }
}

/* Each task has some columns of the result to itself and goes through all entries. */
static void adjoint_sparse(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const int64_t col = task * SPARSE_COLS, count = gnomon_min(SPARSE_COLS, p->in->cols - col);
    for (int64_t row = 0; row < p->piece->csr.rows; row++)
        scatter(p, p->f64, row, count, offset(p->in, row, col), offset(p->out, 0, col));
}

static void zero(const gnomon_tall *t)
{
    memset(t->data, 0, (size_t)(t->rows * t->cols) * gnomon_tall_size(t->f64));
}

/* out = (piece - 1 mean^T) w for sparse rows. Of a matrix whose rows are all equal nothing is left,
 * rounding included. */
static gnomon_status apply_centered(gnomon_row_source *source, const gnomon_piece *piece,
                                    const gnomon_tall *w, const gnomon_tall *out)
{
    product p = {.piece = piece,
                 .kernels = gnomon_context_kernels(source->ctx),
                 .f64 = source->f64,
                 .in = w,
                 .out = out};
    if (source->norm == 0) {
        zero(out);
        return GNOMON_OK;
    }
    GNOMON_TRY(gnomon_alloc(source->ctx, w->cols, sizeof *p.correction, "a product with the mean",
                            &p.correction));
    gnomon_center_sums(source->ctx, w, source->center.offset, p.correction);
    for (int64_t j = 0; j < w->cols; j++)
        p.correction[j] = ldexp(p.correction[j], -source->exponent);
    gnomon_parallel(source->ctx, (piece->rows + SPARSE_ROWS - 1) / SPARSE_ROWS, apply_sparse, &p);
    gnomon_free(source->ctx, p.correction);
    return GNOMON_OK;
}

/* From so many columns on slices are faster than BLAS. */
enum { SLICED_COLS = 128 };

static bool is_sliced(const gnomon_row_source *source, const gnomon_tall *in)
{
    return !source->f64 && !source->sparse && in->cols >= SLICED_COLS &&
           gnomon_gemm_has_coarse(source->ctx);
}

/* What products may take of memory, however low its limit: BLAS takes none of it. */
enum { LEAST_BYTES = 1 << 20 };

/* out = a in + beta out, all of them F32. */
static gnomon_status multiply_closely(gnomon_context *ctx, const gnomon_matrix *a,
                                      const gnomon_tall *in, double beta, const gnomon_tall *out)
{
    const gnomon_matrix b = gnomon_matrix_rowmajor(in->data, GNOMON_F32, in->rows, in->cols);
    const gnomon_matrix c = gnomon_matrix_rowmajor(out->data, GNOMON_F32, out->rows, out->cols);
    /* at other levels than those with matrix units the form is the same as the default */
    const gnomon_gemm_job job = {.a = a,
                                 .b = &b,
                                 .c = &c,
                                 .alpha = 1,
                                 .beta = beta,
                                 .form =
                                     in->cols >= SLICED_COLS ? GNOMON_GEMM_BF16 : GNOMON_GEMM_AUTO,
                                 .memory_limit = gnomon_max(gnomon_memory_limit(ctx), LEAST_BYTES)};
    return gnomon_gemm_on_cpu(ctx, &job);
}

/* out = a in, or out += a in, all of them F32, in less than single precision. */
static gnomon_status multiply_coarsely(const gnomon_row_source *source, const gnomon_matrix *a,
                                       const gnomon_tall *in, bool onto, const gnomon_tall *out)
{
    const gnomon_matrix b = gnomon_matrix_rowmajor(in->data, GNOMON_F32, in->rows, in->cols);
    const gnomon_matrix c = gnomon_matrix_rowmajor(out->data, GNOMON_F32, out->rows, out->cols);
    return gnomon_gemm_coarse(source->ctx, a, &b, onto, &c,
                              gnomon_max(gnomon_memory_limit(source->ctx) / 8, LEAST_BYTES));
}

gnomon_status gnomon_piece_apply(gnomon_row_source *source, const gnomon_piece *piece,
                                 const gnomon_tall *w, const gnomon_tall *out)
{
    product p = {.piece = piece,
                 .kernels = gnomon_context_kernels(source->ctx),
                 .f64 = source->f64,
                 .in = w,
                 .out = out};
    if (piece->sparse && source->centered) return apply_centered(source, piece, w, out);
    if (is_sliced(source, w))
        return source->coarse ? multiply_coarsely(source, &piece->dense, w, false, out)
                              : multiply_closely(source->ctx, &piece->dense, w, 0, out);
    if (!piece->sparse && is_few(&piece->dense, w))
        return multiply_few(source->ctx, &piece->dense, w, false, out);
    if (piece->sparse)
        gnomon_parallel(source->ctx, (piece->rows + SPARSE_ROWS - 1) / SPARSE_ROWS, apply_sparse,
                        &p);
    else
        gnomon_parallel(source->ctx, cut_rows(&p, piece->rows), apply_block, &p);
    return GNOMON_OK;
}

/* z += (piece - 1 mean^T)^T q for sparse rows. */
static gnomon_status adjoin_centered(gnomon_row_source *source, const gnomon_piece *piece,
                                     const gnomon_tall *q, const gnomon_tall *z)
{
    product p = {.piece = piece,
                 .kernels = gnomon_context_kernels(source->ctx),
                 .f64 = source->f64,
                 .in = q,
                 .out = z,
                 .mean = source->center.offset,
                 .scale = ldexp(1.0, -source->exponent)};
    if (source->norm == 0) return GNOMON_OK;
    GNOMON_TRY(
        gnomon_alloc(source->ctx, q->cols, sizeof *p.correction, "sums of columns", &p.correction));
    gnomon_status status = gnomon_alloc(source->ctx, gnomon_times(z->rows, z->cols), sizeof *p.sums,
                                        "a product in fp64", &p.sums);
    if (status == GNOMON_OK) {
        gnomon_center_sums(source->ctx, q, NULL, p.correction);
        gnomon_parallel(source->ctx, (q->cols + SPARSE_COLS - 1) / SPARSE_COLS, adjoint_centered,
                        &p);
    }
    gnomon_free(source->ctx, p.correction);
    gnomon_free(source->ctx, p.sums);
    return status;
}

gnomon_status gnomon_piece_adjoint(gnomon_row_source *source, const gnomon_piece *piece,
                                   const gnomon_tall *q, const gnomon_tall *z)
{
    product p = {.piece = piece,
                 .kernels = gnomon_context_kernels(source->ctx),
                 .f64 = source->f64,
                 .in = q,
                 .out = z};
    if (piece->sparse && source->centered) return adjoin_centered(source, piece, q, z);
    const gnomon_matrix transposed = gnomon_matrix_transposed(&piece->dense);
    if (is_sliced(source, q))
        return source->coarse ? multiply_coarsely(source, &transposed, q, true, z)
                              : multiply_closely(source->ctx, &transposed, q, 1, z);
    if (!piece->sparse && is_few(&transposed, q))
        return multiply_few(source->ctx, &transposed, q, true, z);
    if (piece->sparse)
        gnomon_parallel(source->ctx, (q->cols + SPARSE_COLS - 1) / SPARSE_COLS, adjoint_sparse, &p);
    else
        gnomon_parallel(source->ctx, cut_rows(&p, source->cols), adjoint_block, &p);
    return GNOMON_OK;
}

/* out = (piece - 1 mean^T) S^T for sparse rows, some of them at a time: both terms in fp64. */
static gnomon_status sketch_centered(gnomon_row_source *source, const gnomon_piece *piece,
                                     const gnomon_operator *op, int64_t row, const gnomon_tall *out)
{
    enum { MOST_ROWS = 4096 };
    gnomon_context *ctx = source->ctx;
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.row = row;
    options.rows = out->cols;
    options.allow_nonfinite = 1;
    if (source->norm == 0) {
        zero(out);
        return GNOMON_OK;
    }
    gnomon_tall y = {0};
    double *correction = NULL;
    gnomon_status status = gnomon_tall_make(ctx, true, gnomon_min(MOST_ROWS, piece->rows),
                                            out->cols, false, "a projection", &y);
    if (status == GNOMON_OK)
        status =
            gnomon_alloc(ctx, y.cols, sizeof *correction, "the mean's projection", &correction);
    if (status == GNOMON_OK)
        status = gnomon_center_sketch(ctx, op, row, source->center.offset, y.cols, correction);
    for (int64_t j = 0; status == GNOMON_OK && j < y.cols; j++)
        correction[j] = ldexp(correction[j], -source->exponent);
    for (int64_t from = 0; from < piece->rows && status == GNOMON_OK; from += y.rows) {
        y.rows = gnomon_min(y.rows, piece->rows - from);
        const gnomon_csr some = gnomon_csr_rows(&piece->csr, from, y.rows);
        const gnomon_matrix to = gnomon_matrix_rowmajor(y.data, GNOMON_F64, y.rows, y.cols);
        const gnomon_tall part = {gnomon_tall_row(out, from), y.rows, y.cols, out->f64};
        status = gnomon_sketch_csr_at(ctx, GNOMON_ON_CPU, op, &some, &to, &options);
        if (status != GNOMON_OK) break;
        gnomon_center_subtract(ctx, &y, correction);
        gnomon_tall_convert(ctx, &y, &part);
    }
    gnomon_free(ctx, correction);
    gnomon_tall_drop(ctx, &y);
    return status;
}

gnomon_status gnomon_piece_sketch(gnomon_row_source *source, const gnomon_piece *piece,
                                  const gnomon_operator *op, int64_t row, const gnomon_tall *out)
{
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.row = row;
    options.rows = out->cols;
    options.allow_nonfinite = 1; /* it was scanned already */
    if (piece->sparse && source->centered) return sketch_centered(source, piece, op, row, out);
    const gnomon_matrix y = gnomon_matrix_rowmajor(out->data, out->f64 ? GNOMON_F64 : GNOMON_F32,
                                                   piece->rows, out->cols);
    return piece->sparse
               ? gnomon_sketch_csr_at(source->ctx, GNOMON_ON_CPU, op, &piece->csr, &y, &options)
               : gnomon_sketch_at(source->ctx, GNOMON_ON_CPU, op, &piece->dense, &y, &options);
}

/* ---- passes over all rows ---- */

/* A centred matrix whose rows are all equal is 0, rounding included. */
static bool is_zero(const gnomon_row_source *source)
{
    return source->sparse && source->centered && source->norm == 0;
}

/* One pass: rows of the result, or a sum over rows. */
typedef struct step {
    gnomon_row_source *source;
    gnomon_step_kind kind;
    const gnomon_tall *in, *out; /* out: not on the ranks that serve */
    gnomon_operator *op;         /* SKETCH: rows from 'row' on */
    int64_t row, cols;
} step;

static gnomon_tall result_rows(const step *s, const gnomon_piece *piece, int64_t row, void *result)
{
    const gnomon_tall all = {result, piece->row - row + piece->rows, s->cols, s->source->f64};
    return (gnomon_tall){gnomon_tall_row(&all, piece->row - row), piece->rows, s->cols,
                         s->source->f64};
}

static gnomon_status add_rows(void *user, const gnomon_piece *piece, int64_t row, bool first,
                              void *result)
{
    const step *s = user;
    const gnomon_tall out = result_rows(s, piece, row, result);
    (void)first;
    if (s->kind == GNOMON_STEP_SKETCH)
        return gnomon_piece_sketch(s->source, piece, s->op, s->row, &out);
    if (s->kind == GNOMON_STEP_APPLY) return gnomon_piece_apply(s->source, piece, s->in, &out);
    return multiply_closely(s->source->ctx, &piece->dense, s->in, 0, &out);
}

static void *place_rows(void *user, int64_t row)
{
    const step *s = user;
    return gnomon_tall_row(s->out, row);
}

static gnomon_status take_rows(void *user, int64_t row, int64_t rows, const void *result, bool own)
{
    const step *s = user;
    (void)own;
    memcpy(gnomon_tall_row(s->out, row), result,
           (size_t)(rows * s->cols) * gnomon_tall_size(s->source->f64));
    return GNOMON_OK;
}

static gnomon_status add_products(void *user, const gnomon_piece *piece, int64_t row, bool first,
                                  void *result)
{
    const step *s = user;
    const gnomon_tall z = {result, s->source->cols, s->cols, s->source->f64};
    const int64_t from = gnomon_row_serves(s->source) ? piece->own : piece->row;
    const gnomon_tall q = {gnomon_tall_row(s->in, from), piece->rows, s->cols, s->source->f64};
    /* the first segment's goes on from what is in its place */
    const bool fresh = first && (row > 0 || gnomon_row_serves(s->source));
    if (s->kind == GNOMON_STEP_ADJOINT_F64) {
        const gnomon_matrix transposed = gnomon_matrix_transposed(&piece->dense);
        return multiply_closely(s->source->ctx, &transposed, &q, first ? 0 : 1, &z);
    }
    if (fresh) zero(&z);
    return gnomon_piece_adjoint(s->source, piece, &q, &z);
}

static void *place_products(void *user, int64_t row)
{
    const step *s = user;
    return row == 0 ? s->out->data : NULL;
}

static gnomon_status take_products(void *user, int64_t row, int64_t rows, const void *result,
                                   bool own)
{
    const step *s = user;
    (void)row;
    (void)rows;
    (void)own;
    gnomon_row_pass_sum(s->source->ctx, s->source->f64, s->source->cols * s->cols, result,
                        s->out->data);
    return GNOMON_OK;
}

static bool is_adjoint(gnomon_step_kind kind)
{
    return kind == GNOMON_STEP_ADJOINT || kind == GNOMON_STEP_ADJOINT_F64;
}

/* Rank 0 gives the others what the step takes, once they have room for it; status: whether this
 * rank has. */
static gnomon_status meet(step *s, gnomon_status status)
{
    gnomon_row_source *source = s->source;
    const int64_t numbers[6] = {s->cols, s->row, source->coarse};
    GNOMON_TRY(gnomon_row_step_tell(source, s->kind, numbers));
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    if (s->kind == GNOMON_STEP_SKETCH) return gnomon_row_step_operator(source, &s->op);
    if (is_adjoint(s->kind)) return gnomon_row_step_rows(source, s->in);
    const int64_t bytes = source->cols * s->cols * (int64_t)gnomon_tall_size(source->f64);
    return gnomon_row_step_share(source, s->in->data, bytes);
}

/* Projections of the sparse rows that are here. */
static gnomon_status sketch_rows(void *user)
{
    const step *s = user;
    gnomon_row_source *source = s->source;
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(gnomon_row_source_rewind(source));
    while (status == GNOMON_OK) {
        gnomon_piece piece;
        gnomon_tall rows = {0};
        GNOMON_TRY(gnomon_row_source_next(source, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        const bool together =
            gnomon_row_in_tall(source, piece.own + piece.rows) == piece.own + piece.rows;
        if (together) {
            rows =
                (gnomon_tall){gnomon_tall_row(s->out, piece.own), piece.rows, s->cols, source->f64};
            status = gnomon_piece_sketch(source, &piece, s->op, s->row, &rows);
            continue;
        }
        GNOMON_TRY(gnomon_tall_make(source->ctx, source->f64, piece.rows, s->cols, false,
                                    "projected rows", &rows));
        status = gnomon_piece_sketch(source, &piece, s->op, s->row, &rows);
        const size_t line = (size_t)s->cols * gnomon_tall_size(source->f64);
        for (int64_t i = 0; status == GNOMON_OK && i < piece.rows; i++)
            memcpy(gnomon_tall_row(s->out, gnomon_row_in_tall(source, piece.own + i)),
                   gnomon_tall_row(&rows, i), line);
        gnomon_tall_drop(source->ctx, &rows);
    }
    return status;
}

static gnomon_status run_sparse(step *s)
{
    if (s->kind == GNOMON_STEP_SKETCH)
        return gnomon_part_rows_run(s->source, sketch_rows, s, s->out, GNOMON_OK);
    return is_adjoint(s->kind) ? gnomon_panels_adjoint(s->source, s->in,
                                                       gnomon_row_serves(s->source) ? NULL : s->out)
                               : gnomon_panels_apply(s->source, s->in, s->out);
}

static gnomon_status run_step(step *s)
{
    const bool sums = is_adjoint(s->kind);
    if (s->source->sparse) return run_sparse(s);
    const gnomon_row_pass pass = {
        .user = s,
        .add = sums ? add_products : add_rows,
        .place = sums ? place_products : place_rows,
        .take = sums ? take_products : take_rows,
        .bytes = sums ? gnomon_times(gnomon_times(s->source->cols, s->cols),
                                     (int64_t)gnomon_tall_size(s->source->f64))
                      : 0,
        .row_bytes = sums ? 0 : s->cols * (int64_t)gnomon_tall_size(s->source->f64)};
    return gnomon_row_pass_run(s->source, &pass, GNOMON_OK);
}

static gnomon_status lead_step(step *s)
{
    GNOMON_TRY(meet(s, GNOMON_OK));
    return run_step(s);
}

/* The same step on a rank that serves. */
static gnomon_status serve_step(gnomon_row_source *source, const gnomon_row_step *told)
{
    gnomon_tall in = {0}, out = {0};
    step s = {.source = source,
              .kind = (gnomon_step_kind)told->kind,
              .in = &in,
              .out = &out,
              .cols = told->numbers[0],
              .row = told->numbers[1]};
    gnomon_status status = GNOMON_OK;
    source->coarse = told->numbers[2] != 0;
    if (s.kind != GNOMON_STEP_SKETCH)
        status = gnomon_tall_make(source->ctx, source->f64,
                                  is_adjoint(s.kind) ? source->own_rows : source->cols, s.cols,
                                  false, "a factor", &in);
    if (status == GNOMON_OK && source->sparse && !is_adjoint(s.kind))
        status = gnomon_tall_make(source->ctx, source->f64, source->own_rows, s.cols, false,
                                  "rows of a product", &out);
    status = meet(&s, status);
    if (status == GNOMON_OK) status = run_step(&s);
    gnomon_operator_destroy(s.op);
    gnomon_tall_drop(source->ctx, &in);
    gnomon_tall_drop(source->ctx, &out);
    return status;
}

gnomon_status gnomon_row_source_sketch(gnomon_row_source *source, const gnomon_operator *op,
                                       int64_t row, const gnomon_tall *y)
{
    step s = {.source = source,
              .kind = GNOMON_STEP_SKETCH,
              .out = y,
              .op = (gnomon_operator *)(uintptr_t)op,
              .row = row,
              .cols = y->cols};
    return lead_step(&s);
}

static gnomon_status apply(gnomon_row_source *source, gnomon_step_kind kind, const gnomon_tall *w,
                           const gnomon_tall *y)
{
    step s = {.source = source, .kind = kind, .in = w, .out = y, .cols = w->cols};
    return lead_step(&s);
}

gnomon_status gnomon_row_source_apply(gnomon_row_source *source, const gnomon_tall *w,
                                      const gnomon_tall *y)
{
    if (is_zero(source)) {
        zero(y);
        return GNOMON_OK;
    }
    return apply(source, GNOMON_STEP_APPLY, w, y);
}

gnomon_status gnomon_row_source_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                        const gnomon_tall *z)
{
    zero(z);
    return gnomon_row_source_add_adjoint(source, q, z);
}

gnomon_status gnomon_row_source_add_adjoint(gnomon_row_source *source, const gnomon_tall *q,
                                            const gnomon_tall *z)
{
    if (is_zero(source)) return GNOMON_OK;
    return apply(source, GNOMON_STEP_ADJOINT, q, z);
}

/* What a misfit is of. */
typedef struct misfit_of {
    const gnomon_tall *q, *u;
    int64_t first, end; /* of u's columns */
    bool closely;
} misfit_of;

/* As meet, and the pass; out: NULL on the ranks that serve. */
static gnomon_status misfit(gnomon_row_source *source, const misfit_of *of,
                            const gnomon_misfit *out, gnomon_status status)
{
    const int64_t numbers[6] = {of->q->cols, of->u->cols, of->closely, of->first, of->end};
    GNOMON_TRY(gnomon_row_step_tell(source, GNOMON_STEP_MISFIT, numbers));
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    GNOMON_TRY(gnomon_row_step_rows(source, of->q));
    GNOMON_TRY(gnomon_row_step_rows(source, of->u));
    return gnomon_panels_misfit(source, of->q, of->u, of->first, of->end, of->closely, out);
}

gnomon_status gnomon_row_source_misfit(gnomon_row_source *source, const gnomon_tall *q,
                                       const gnomon_tall *u, int64_t first, int64_t end,
                                       const gnomon_misfit *out)
{
    const misfit_of of = {q, u, first, end, gnomon_panels_misfit_is_close(source)};
    return misfit(source, &of, out, GNOMON_OK);
}

static gnomon_status serve_misfit(gnomon_row_source *source, const gnomon_row_step *told)
{
    gnomon_tall q = {0}, u = {0};
    const misfit_of of = {&q, &u, told->numbers[3], told->numbers[4], told->numbers[2] != 0};
    gnomon_status status = gnomon_tall_make(source->ctx, source->f64, source->own_rows,
                                            told->numbers[0], false, "a factor", &q);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(source->ctx, source->f64, source->own_rows, told->numbers[1],
                                  false, "a factor", &u);
    status = misfit(source, &of, NULL, status);
    gnomon_tall_drop(source->ctx, &q);
    gnomon_tall_drop(source->ctx, &u);
    return status;
}

gnomon_status gnomon_row_source_apply_f64(gnomon_row_source *source, const gnomon_tall *w,
                                          const gnomon_tall *y)
{
    return source->f64 || source->sparse ? gnomon_row_source_apply(source, w, y)
                                         : apply(source, GNOMON_STEP_APPLY_F64, w, y);
}

gnomon_status gnomon_row_source_adjoint_f64(gnomon_row_source *source, const gnomon_tall *q,
                                            const gnomon_tall *z)
{
    return source->f64 || source->sparse ? gnomon_row_source_adjoint(source, q, z)
                                         : apply(source, GNOMON_STEP_ADJOINT_F64, q, z);
}

/* Tiles of A - B C^T. */
typedef struct difference {
    gnomon_row_source *source;
    const gnomon_piece *piece;
    const gnomon_tall *b, *c;
    int64_t row_blocks;
    void *tiles;     /* one a worker */
    double *squares; /* one a task */
    double sum;
} difference;

static void subtract_tile(void *arg, int64_t task, int worker)
{
    const difference *d = arg;
    const gnomon_matrix *m = &d->piece->dense;
    const bool f64 = d->b->f64;
    const int64_t row = task % d->row_blocks * ROWS, col = task / d->row_blocks * COLS;
    const int64_t rows = gnomon_min(ROWS, m->rows - row), cols = gnomon_min(COLS, m->cols - col);
    const int64_t before = gnomon_row_serves(d->source) ? d->piece->own : d->piece->row;
    char *tile = (char *)d->tiles + (size_t)worker * ROWS * COLS * gnomon_tall_size(f64);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const void *from = entry(m, f64, row + i, col + j);
            if (f64)
                ((double *)tile)[i * COLS + j] = *(const double *)from;
            else
                ((float *)tile)[i * COLS + j] = *(const float *)from;
        }
    }
    gnomon_blas_gemm(f64, false, true, rows, cols, d->b->cols, -1.0,
                     gnomon_tall_row(d->b, before + row), d->b->cols, gnomon_tall_row(d->c, col),
                     d->c->cols, 1.0, tile, COLS);
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const double x = f64 ? ((const double *)tile)[i * COLS + j]
                                 : (double)((const float *)tile)[i * COLS + j];
            sum += x * x;
        }
    }
    d->squares[task] = sum;
}

static gnomon_status subtract_piece(void *user, const gnomon_piece *piece, int64_t row, bool first,
                                    void *result)
{
    difference *d = user;
    double *squares = result;
    (void)row;
    d->piece = piece;
    d->row_blocks = (piece->rows + ROWS - 1) / ROWS;
    const int64_t tasks = d->row_blocks * ((d->source->cols + COLS - 1) / COLS);
    GNOMON_TRY(gnomon_alloc(d->source->ctx, tasks, sizeof(double), "sums of squares", &d->squares));
    gnomon_parallel(d->source->ctx, tasks, subtract_tile, d);
    if (first) *squares = 0;
    for (int64_t i = 0; i < tasks; i++)
        *squares += d->squares[i];
    gnomon_free(d->source->ctx, d->squares);
    return GNOMON_OK;
}

static gnomon_status take_squares(void *user, int64_t row, int64_t rows, const void *result,
                                  bool own)
{
    difference *d = user;
    double squares;
    (void)row;
    (void)rows;
    (void)own;
    memcpy(&squares, result, sizeof squares);
    d->sum += squares;
    return GNOMON_OK;
}

/* As meet, and the pass. */
static gnomon_status subtract(difference *d, gnomon_status status)
{
    const gnomon_row_pass pass = {
        .user = d, .add = subtract_piece, .take = take_squares, .bytes = sizeof(double)};
    gnomon_row_source *source = d->source;
    const int64_t numbers[6] = {d->b->cols};
    const int64_t bytes = d->c->rows * d->c->cols * (int64_t)gnomon_tall_size(source->f64);
    GNOMON_TRY(gnomon_row_step_tell(source, GNOMON_STEP_RESIDUAL, numbers));
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    GNOMON_TRY(gnomon_row_step_share(source, d->c->data, bytes));
    GNOMON_TRY(gnomon_row_step_rows(source, d->b));
    status = gnomon_alloc(
        source->ctx,
        gnomon_times(gnomon_times((int64_t)ROWS, COLS), gnomon_context_threads(source->ctx)),
        gnomon_tall_size(source->f64), "tiles", &d->tiles);
    status = gnomon_row_pass_run(source, &pass, status);
    gnomon_free(source->ctx, d->tiles);
    return status;
}

gnomon_status gnomon_row_source_residual(gnomon_row_source *source, const gnomon_tall *b,
                                         const gnomon_tall *c, double *residual)
{
    difference d = {.source = source, .b = b, .c = c};
    GNOMON_TRY(subtract(&d, GNOMON_OK));
    *residual = sqrt(d.sum);
    return GNOMON_OK;
}

static gnomon_status serve_residual(gnomon_row_source *source, const gnomon_row_step *told)
{
    gnomon_tall b = {0}, c = {0};
    difference d = {.source = source, .b = &b, .c = &c};
    gnomon_status status = gnomon_tall_make(source->ctx, source->f64, source->own_rows,
                                            told->numbers[0], false, "a factor", &b);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(source->ctx, source->f64, source->cols, told->numbers[0], false,
                                  "a factor", &c);
    status = subtract(&d, status);
    gnomon_tall_drop(source->ctx, &b);
    gnomon_tall_drop(source->ctx, &c);
    return status;
}

gnomon_status gnomon_row_source_serve(void *user, const gnomon_row_step *told)
{
    gnomon_row_source *source = user;
    switch (told->kind) {
    case GNOMON_STEP_SCAN:
        return gnomon_row_source_scan(source);
    case GNOMON_STEP_SKETCH:
    case GNOMON_STEP_APPLY:
    case GNOMON_STEP_APPLY_F64:
    case GNOMON_STEP_ADJOINT:
    case GNOMON_STEP_ADJOINT_F64:
        return serve_step(source, told);
    case GNOMON_STEP_RESIDUAL:
        return serve_residual(source, told);
    case GNOMON_STEP_MISFIT:
        return serve_misfit(source, told);
    case GNOMON_STEP_NORMAL:
        return gnomon_normal_serve(source);
    case GNOMON_STEP_MEANS:
    case GNOMON_STEP_SPREAD:
    case GNOMON_STEP_SQUARES:
    case GNOMON_STEP_CENTERED:
        return gnomon_center_serve(source, told);
    default:
        source->ranks->over = true;
        return gnomon_fail(source->ctx, GNOMON_ERROR_COMM, "rank 0 asks for step %lld",
                           (long long)told->kind);
    }
}
