/* One pass over A that multiplies by A and by its transpose: each block of rows is used twice while
 * it lies in the cache. */
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "linalg/gram.h"
#include "lstsq/lstsq.h"
#include "lstsq/skinny.h"

#include <math.h>
#include <string.h>

/* Numbers of A in a block, and the blocks' ranges, each with a sum of its own. Both depend on the
 * shape alone. Within a range so many rows are summed apart: a sum over all rows in one go loses
 * as many units of roundoff as the root of their number, and any rule that says when the gradient
 * is as good as 0 has to stand above that. */
enum {
    SKINNY = 8,
    BLOCK_NUMBERS = 1 << 15,
    MIN_ROWS = 16,
    MAX_ROWS = 256,
    GEMM_ROWS = 128,
    RANGES = 16,
    PART_ROWS = 256
};
enum { SUM_NUMBERS = 1 << 23 };

typedef struct sweep {
    gnomon_solver *s;
    const gnomon_sweep *what;
    gnomon_piece piece;
    int64_t block, ranges, blocks; /* rows of a block; ranges, of sparse rows those of a part;
                                      blocks of the piece */
    int64_t numbers;               /* of a range's sum: d x cols, cols squares, A^T A's sums */
    double *sums;                  /* one a range */
    double *total;                 /* of all segments */
    gnomon_matrix residual, none;  /* where it goes, from first_row on */
    int64_t first_row;
    double *scratch;    /* one a worker: a block of A, one of t, a part's sum, A^T A's room */
    double *transposed; /* of a dense A and few columns: in's transpose; else NULL */
    gnomon_tall left;   /* of sparse rows on a rank that serves: the residual of its own */
    gnomon_skinny_fn skinny;
    int64_t scratch_numbers;
} sweep;

static int64_t block_rows(int64_t d, int64_t cols)
{
    int64_t rows = MAX_ROWS;
    const int64_t low = cols > SKINNY ? GEMM_ROWS : MIN_ROWS;
    while (rows > low && rows > BLOCK_NUMBERS / d)
        rows /= 2;
    return rows;
}

/* The block as double numbers, row after row: where it lies, or in scratch. */
static const double *fetch(const gnomon_matrix *m, int64_t row, int64_t rows, double *scratch,
                           int64_t *leading)
{
    const int64_t d = m->cols;
    if (m->dtype == GNOMON_F64 && m->col_stride == 1) {
        *leading = m->row_stride < d ? d : m->row_stride; /* a single row may have any stride */
        return (const double *)m->data + row * m->row_stride;
    }
    *leading = d;
    if (m->dtype == GNOMON_F64) {
        const double *from = (const double *)m->data + row * m->row_stride;
        for (int64_t j = 0; j < d; j++) {
            for (int64_t i = 0; i < rows; i++)
                scratch[i * d + j] = from[i * m->row_stride + j * m->col_stride];
        }
        return scratch;
    }
    const float *from = (const float *)m->data + row * m->row_stride;
    if (m->col_stride == 1) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < d; j++)
                scratch[i * d + j] = (double)from[i * m->row_stride + j];
        }
    } else {
        for (int64_t j = 0; j < d; j++) {
            for (int64_t i = 0; i < rows; i++)
                scratch[i * d + j] = (double)from[i * m->row_stride + j * m->col_stride];
        }
    }
    return scratch;
}

/* z is d x cols, or its transpose where there are few columns; gram: A^T A's sums. */
static void dense_block(const sweep *w, int64_t row, int64_t rows, double *scratch, double *t,
                        double *z, double *gram)
{
    const int64_t d = w->s->d, cols = w->what->cols;
    gnomon_skinny_job job = {.rows = rows,
                             .d = d,
                             .cols = cols,
                             .w = w->transposed,
                             .sign = w->what->against_b ? -1 : 1,
                             .add = w->what->against_b,
                             .t = t,
                             .z = z};
    job.a = fetch(&w->piece.dense, row, rows, scratch, &job.lda);
    if (w->what->gram != NULL) {
        gnomon_blas_gemm(true, true, false, d, cols, rows, 1.0, job.a, job.lda, t, cols, 1.0, z,
                         cols);
        gnomon_gram_add(w->s->ctx, w->piece.dense.dtype == GNOMON_F32, rows, d, job.a, job.lda,
                        z + (d + 1) * cols, gram);
        return;
    }
    if (w->transposed != NULL) {
        w->skinny(&job);
        return;
    }
    gnomon_blas_gemm(true, false, false, rows, cols, d, job.sign, job.a, job.lda, w->what->in, cols,
                     job.add ? 1.0 : 0.0, t, cols);
    gnomon_blas_gemm(true, true, false, d, cols, rows, 1.0, job.a, job.lda, t, cols, 1.0, z, cols);
}

static double value_at(const gnomon_csr *a, int64_t i)
{
    return a->dtype == GNOMON_F64 ? ((const double *)a->values)[i]
                                  : (double)((const float *)a->values)[i];
}

static void sparse_block(const sweep *w, int64_t row, int64_t rows, double *t, double *z)
{
    const gnomon_csr *a = &w->piece.csr;
    const int64_t cols = w->what->cols;
    const double sign = w->what->against_b ? -1.0 : 1.0;
    for (int64_t i = 0; i < rows; i++) {
        double *line = t + i * cols;
        const int64_t first = a->offsets[row + i] - a->offsets[0];
        const int64_t end = a->offsets[row + i + 1] - a->offsets[0];
        if (!w->what->against_b) memset(line, 0, (size_t)cols * sizeof *line);
        for (int64_t e = first; e < end; e++) {
            const double value = sign * value_at(a, e);
            const double *in = w->what->in + a->indices[e] * cols;
            for (int64_t j = 0; j < cols; j++)
                line[j] += value * in[j];
        }
        for (int64_t e = first; e < end; e++) {
            const double value = value_at(a, e);
            double *out = z + a->indices[e] * cols;
            for (int64_t j = 0; j < cols; j++)
                out[j] += value * line[j];
        }
    }
}

/* Puts a block of t where the caller wants the residual. */
static void store(const sweep *w, int64_t row, int64_t rows, const double *t)
{
    const gnomon_matrix *out = &w->residual;
    const int64_t cols = w->what->cols;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            const double value = ldexp(t[i * cols + j], w->s->exponent[j]);
            const int64_t at = (row - w->first_row + i) * out->row_stride + j;
            if (out->dtype == GNOMON_F64)
                ((double *)out->data)[at] = value;
            else
                ((float *)out->data)[at] = (float)value;
        }
    }
}

/* to += from, which becomes 0. */
static void flush(int64_t count, double *from, double *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] += from[i];
    memset(from, 0, (size_t)count * sizeof *from);
}

static void sweep_range(void *arg, int64_t task, int worker)
{
    const sweep *w = arg;
    const int64_t cols = w->what->cols, d = w->s->d;
    double *scratch = w->scratch + worker * w->scratch_numbers, *t = scratch + w->block * d;
    double *z = t + w->block * cols, *squares = z + d * cols, *sums = w->sums + task * w->numbers;
    const int64_t first = task * w->blocks / w->ranges, end = (task + 1) * w->blocks / w->ranges;
    memset(z, 0, (size_t)((d + 1) * cols) * sizeof *z);
    for (int64_t b = first; b < end; b++) {
        const int64_t row = b * w->block, rows = gnomon_min(w->block, w->piece.rows - row);
        if (w->what->against_b) gnomon_solver_read_b(w->s, w->piece.row + row, rows, t);
        dense_block(w, row, rows, scratch, t, z, sums + (d + 1) * cols);
        for (int64_t i = 0; i < rows && w->what->squares != NULL; i++) {
            for (int64_t j = 0; j < cols; j++)
                squares[j] += t[i * cols + j] * t[i * cols + j];
        }
        if (w->what->residual != NULL) store(w, w->piece.row + row, rows, t);
        if (b + 1 == end || (b + 1 - first) % (PART_ROWS / w->block) == 0)
            flush((d + 1) * cols, z, sums);
    }
}

/* ---- sparse rows: parts have ranges of their own, some rows of every chunk ---- */

/* The sums of a range, and behind those its sums since they were last added to. */
static double *range_sums(const sweep *w, int64_t part, int64_t range)
{
    return w->sums + 2 * (part * w->ranges + range) * w->numbers;
}

/* Rows [from, end) of the piece. */
static void sweep_rows(const sweep *w, int64_t from, int64_t end, double *t, double *z)
{
    const int64_t cols = w->what->cols;
    double *squares = z + w->s->d * cols;
    for (int64_t row = from, rows; row < end; row += rows) {
        const int64_t own = w->piece.own + row, place = gnomon_place_of(&w->s->source, own);
        rows = gnomon_min(w->block, end - row);
        if (w->what->against_b) gnomon_solver_read_b(w->s, place, rows, t);
        sparse_block(w, row, rows, t, z);
        for (int64_t i = 0; i < rows && w->what->squares != NULL; i++) {
            for (int64_t j = 0; j < cols; j++)
                squares[j] += t[i * cols + j] * t[i * cols + j];
        }
        if (w->what->residual != NULL) store(w, gnomon_row_in_tall(&w->s->source, own), rows, t);
    }
}

static void sweep_sparse_range(void *arg, int64_t task, int worker)
{
    const sweep *w = arg;
    const gnomon_row_source *source = &w->s->source;
    const int64_t ranges = w->ranges, part = task / ranges, range = task % ranges;
    const int64_t each = GNOMON_CHUNK / ranges;
    double *t = w->scratch + worker * w->scratch_numbers;
    double *sums = range_sums(w, part, range), *z = sums + w->numbers;
    for (int64_t row = 0, end; row < w->piece.rows; row = end) {
        const int64_t own = w->piece.own + row, start = row - own % GNOMON_CHUNK;
        end = gnomon_min(start + GNOMON_CHUNK, w->piece.rows);
        if (gnomon_part_of(source, own) != part) continue;
        sweep_rows(w, gnomon_max(row, start + range * each),
                   gnomon_min(end, start + (range + 1) * each), t, z);
        const int64_t behind = own / GNOMON_CHUNK / source->parts + 1;
        if (start + GNOMON_CHUNK == end && behind % ranges == 0) flush(w->numbers, z, sums);
    }
}

static gnomon_status sweep_parts(void *user, gnomon_status status)
{
    sweep *w = user;
    gnomon_row_source *source = &w->s->source;
    const int64_t ranges = w->ranges;
    GNOMON_TRY(status);
    memset(w->sums, 0, (size_t)(2 * GNOMON_PARTS * ranges * w->numbers) * sizeof *w->sums);
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &w->piece));
        if (w->piece.rows == 0) break;
        gnomon_parallel(w->s->ctx, source->parts * ranges, sweep_sparse_range, w);
    }
    for (int64_t part = 0; part < source->parts; part++) {
        double *sums = range_sums(w, part, 0);
        for (int64_t range = 0; range < ranges; range++) {
            double *more = range_sums(w, part, range);
            flush(w->numbers, more + w->numbers, more);
            if (range > 0) gnomon_row_pass_sum(w->s->ctx, true, w->numbers, more, sums);
        }
    }
    return GNOMON_OK;
}

static const void *part_sums(void *user, int part)
{
    return range_sums(user, part, 0);
}

static gnomon_status take_part(void *user, int part, const void *result, bool own)
{
    const sweep *w = user;
    (void)part;
    (void)own;
    gnomon_row_pass_sum(w->s->ctx, true, w->numbers, result, w->total);
    return GNOMON_OK;
}

static gnomon_status have_rows(void *user)
{
    (void)user;
    return GNOMON_OK;
}

static gnomon_status run_sparse(sweep *w, gnomon_status status)
{
    gnomon_row_source *source = &w->s->source;
    const gnomon_matrix *out = w->what->residual;
    const gnomon_part_pass pass = {.user = w,
                                   .run = sweep_parts,
                                   .result = part_sums,
                                   .take = take_part,
                                   .bytes = gnomon_times(w->numbers, sizeof(double))};
    w->first_row = 0;
    w->residual = out != NULL ? *out : w->none;
    if (out != NULL && gnomon_row_serves(source)) {
        if (status == GNOMON_OK)
            status = gnomon_tall_make(w->s->ctx, out->dtype == GNOMON_F64, source->own_rows,
                                      out->cols, false, "the residual", &w->left);
        w->residual.data = w->left.data;
    }
    GNOMON_TRY(gnomon_part_pass_run(source, &pass, status));
    if (out == NULL || !gnomon_row_divided(source)) return GNOMON_OK;
    const gnomon_tall all = {w->residual.data, out->rows, out->cols, out->dtype == GNOMON_F64};
    return gnomon_part_rows_run(source, have_rows, w, &all, GNOMON_OK);
}

/* ---- the pass: each segment's ranges are added up, and then the segments ---- */

static gnomon_status add_piece(void *user, const gnomon_piece *piece, int64_t row, bool first,
                               void *result)
{
    sweep *w = user;
    if (first) memset(w->sums, 0, (size_t)(w->ranges * w->numbers) * sizeof *w->sums);
    w->piece = *piece;
    w->blocks = (piece->rows + w->block - 1) / w->block;
    w->first_row = row;
    w->residual = w->what->residual != NULL ? *w->what->residual : w->none;
    if (w->residual.rows > 0 && gnomon_row_serves(&w->s->source)) {
        /* behind the sums */
        w->residual.data = (double *)result + w->numbers;
    } else {
        w->first_row = 0;
    }
    gnomon_parallel(w->s->ctx, w->ranges, sweep_range, w);
    return GNOMON_OK;
}

static void add_ranges(void *user, void *result)
{
    const sweep *w = user;
    double *sum = result;
    memcpy(sum, w->sums, (size_t)w->numbers * sizeof *sum);
    for (int64_t r = 1; r < w->ranges; r++)
        gnomon_row_pass_sum(w->s->ctx, true, w->numbers, w->sums + r * w->numbers, sum);
}

static gnomon_status take_segment(void *user, int64_t row, int64_t rows, const void *result,
                                  bool own)
{
    const sweep *w = user;
    gnomon_row_pass_sum(w->s->ctx, true, w->numbers, result, w->total);
    const gnomon_matrix *out = w->what->residual;
    if (own || out == NULL) return GNOMON_OK;
    const size_t size = gnomon_dtype_size(out->dtype);
    const char *from = (const char *)((const double *)result + w->numbers);
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)out->data + (size_t)((row + i) * out->row_stride) * size,
               from + (size_t)(i * out->cols) * size, (size_t)out->cols * size);
    return GNOMON_OK;
}

static gnomon_status run(sweep *w, gnomon_status status)
{
    const gnomon_matrix *out = w->what->residual;
    if (w->s->source.sparse) return run_sparse(w, status);
    const gnomon_row_pass pass = {
        .user = w,
        .add = add_piece,
        .finish = add_ranges,
        .take = take_segment,
        .bytes = gnomon_times(w->numbers, sizeof(double)),
        .row_bytes = out != NULL ? out->cols * (int64_t)gnomon_dtype_size(out->dtype) : 0,
        .rows_in_place = true};
    return gnomon_row_pass_run(&w->s->source, &pass, status);
}

/* to (cols x rows) = from (rows x cols), transposed. */
static void transpose(int64_t rows, int64_t cols, const double *from, double *to)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++)
            to[j * rows + i] = from[i * cols + j];
    }
}

static gnomon_status allocate(sweep *w)
{
    const int64_t d = w->s->d, cols = w->what->cols;
    int64_t total, scratch;
    w->block = block_rows(d, cols);
    GNOMON_FAIL_IF(
        !gnomon_mul(d + 1, cols, &w->numbers) ||
            (w->what->gram != NULL && !gnomon_add(w->numbers, gnomon_gram_numbers(d), &w->numbers)),
        w->s->ctx, GNOMON_ERROR_OVERFLOW, "d times the columns of b does not fit 63 bits");
    w->ranges = SUM_NUMBERS / (w->numbers > 0 ? w->numbers : 1);
    w->ranges = w->ranges < 2 ? 2 : w->ranges > RANGES ? RANGES : w->ranges;
    w->scratch_numbers = w->block * (d + cols) + (d + 1) * cols;
    if (w->what->gram != NULL) w->scratch_numbers += gnomon_gram_room(d);
    int64_t sums = w->ranges;
    if (w->s->source.sparse) {
        /* a power of two, which divides a chunk's rows */
        const int64_t of_part = w->ranges / GNOMON_PARTS;
        w->ranges = of_part < 2 ? 1 : of_part < RANGES / GNOMON_PARTS ? 2 : RANGES / GNOMON_PARTS;
        sums = 2 * GNOMON_PARTS * w->ranges;
        w->scratch_numbers = w->block * cols;
    }
    GNOMON_FAIL_IF(!gnomon_mul(sums, w->numbers, &total) ||
                       !gnomon_mul(w->scratch_numbers, gnomon_context_threads(w->s->ctx), &scratch),
                   w->s->ctx, GNOMON_ERROR_OVERFLOW,
                   "d times the columns of b does not fit 63 bits");
    if (cols <= SKINNY && w->s->source.csr == NULL && w->what->in != NULL) {
        GNOMON_TRY(gnomon_alloc(w->s->ctx, gnomon_times(d, cols), sizeof(double), "few columns",
                                &w->transposed));
        transpose(d, cols, w->what->in, w->transposed);
        w->skinny = gnomon_skinny_kernel(gnomon_context_isa_level(w->s->ctx));
    }
    GNOMON_TRY(
        gnomon_alloc_zero(w->s->ctx, w->numbers, sizeof(double), "sums over rows", &w->total));
    GNOMON_TRY(gnomon_alloc(w->s->ctx, total, sizeof(double), "sums over rows", &w->sums));
    return gnomon_alloc(w->s->ctx, scratch, sizeof(double), "blocks of rows", &w->scratch);
}

static void drop(sweep *w)
{
    gnomon_tall_drop(w->s->ctx, &w->left);
    gnomon_free(w->s->ctx, w->sums);
    gnomon_free(w->s->ctx, w->total);
    gnomon_free(w->s->ctx, w->scratch);
    gnomon_free(w->s->ctx, w->transposed);
}

enum { AGAINST_B = 1, SQUARES = 2, RESIDUAL = 4, GRAM = 8 };

/* Rank 0 gives the others what the sweep takes; status: whether this rank has room for it. */
static gnomon_status meet(gnomon_solver *s, const gnomon_sweep *what, gnomon_status status)
{
    const gnomon_matrix *out = what->residual;
    const int64_t flags = (what->against_b ? AGAINST_B : 0) |
                          (what->squares != NULL ? SQUARES : 0) | (out != NULL ? RESIDUAL : 0) |
                          (what->gram != NULL ? GRAM : 0);
    const int64_t numbers[6] = {what->cols, flags, out != NULL ? (int64_t)out->dtype : 0};
    GNOMON_TRY(gnomon_row_step_tell(&s->source, GNOMON_STEP_SWEEP, numbers));
    GNOMON_TRY(gnomon_row_step_ready(&s->source, status));
    if (what->in == NULL) return GNOMON_OK;
    return gnomon_row_step_share(&s->source, (void *)(uintptr_t)what->in,
                                 s->d * what->cols * (int64_t)sizeof *what->in);
}

gnomon_status gnomon_sweep_rows(gnomon_solver *s, const gnomon_sweep *what)
{
    sweep w = {.s = s, .what = what};
    const int64_t numbers = s->d * what->cols;
    gnomon_status status = allocate(&w);
    if (status == GNOMON_OK) status = meet(s, what, GNOMON_OK);
    if (status == GNOMON_OK) status = run(&w, GNOMON_OK);
    if (status == GNOMON_OK) {
        if (w.transposed != NULL)
            transpose(what->cols, s->d, w.total, what->z);
        else
            memcpy(what->z, w.total, (size_t)numbers * sizeof *what->z);
        if (what->squares != NULL)
            memcpy(what->squares, w.total + numbers, (size_t)what->cols * sizeof *what->squares);
        for (int64_t i = 0; what->gram != NULL && i < s->d; i++)
            gnomon_gram_row(s->d, w.total + numbers + what->cols, i, what->gram + i * s->d);
    }
    drop(&w);
    return status;
}

gnomon_status gnomon_sweep_serve(gnomon_solver *s, const gnomon_row_step *step)
{
    const int64_t cols = step->numbers[0], flags = step->numbers[1];
    gnomon_matrix residual =
        gnomon_matrix_rowmajor(NULL, (gnomon_dtype)step->numbers[2], s->n, cols);
    double *in = NULL, any = 0;
    gnomon_sweep what = {.cols = cols,
                         .against_b = (flags & AGAINST_B) != 0,
                         .squares = (flags & SQUARES) != 0 ? &any : NULL,
                         .residual = (flags & RESIDUAL) != 0 ? &residual : NULL,
                         .gram = (flags & GRAM) != 0 ? &any : NULL};
    sweep w = {.s = s, .what = &what};
    gnomon_status status = GNOMON_OK;
    if (what.gram == NULL)
        status = gnomon_alloc(s->ctx, gnomon_times(s->d, cols), sizeof *in, "a factor", &in);
    what.in = in;
    status = meet(s, &what, status);
    if (status == GNOMON_OK) status = run(&w, allocate(&w));
    drop(&w);
    gnomon_free(s->ctx, in);
    return status;
}
