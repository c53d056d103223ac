/* Rows less the columns' means, and what is taken off products. */
#include "svd/center/parts.h"

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/rows.h"
#include "project/job.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    READ_NUMBERS = 1 << 17, /* that are read at a time, but at least so many rows: */
    READ_ROWS = 16,
    SUM_ROWS = 256, /* in a part of a sum */
    SUM_COLS = 512,
    PART_COLS = 16384, /* columns of a row that a task subtracts */
    COLS = 8           /* of a tall matrix that a task sums */
};

static int64_t read_rows(const gnomon_row_source *s)
{
    int64_t rows = s->piece_rows;
    while (rows > READ_ROWS && rows > READ_NUMBERS / s->cols)
        rows /= 2;
    return rows;
}

void gnomon_center_close(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    if (c->offset != c->mean) gnomon_free(s->ctx, c->offset);
    gnomon_free(s->ctx, c->mean);
    gnomon_free(s->ctx, c->scale);
    gnomon_free(s->ctx, c->rows);
    gnomon_free(s->ctx, c->sums);
    gnomon_free(s->ctx, c->parts);
    gnomon_free(s->ctx, c->so_far);
    c->offset = c->scale = c->mean = c->rows = c->sums = c->parts = c->so_far = NULL;
}

gnomon_status gnomon_center_open(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    const int64_t cols = s->cols, capacity = read_rows(s);
    if (c->sums != NULL) return GNOMON_OK;
    c->capacity = capacity;
    c->group = gnomon_min(SUM_ROWS, capacity);
    GNOMON_TRY(gnomon_alloc(s->ctx, cols, sizeof *c->mean, "the mean", &c->mean));
    c->offset = c->mean;
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_plus(gnomon_times(2, cols), GNOMON_SUM_FIGURES),
                                 sizeof *c->sums, "sums of the columns", &c->sums));
    const bool elsewhere = s->matrix != NULL && s->matrix->memory != GNOMON_HOST;
    if (s->sparse || elsewhere) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(capacity, cols), sizeof *c->rows,
                            "rows to be centred", &c->rows));
    return gnomon_alloc(s->ctx, gnomon_times(2 * gnomon_ceil_div(capacity, SUM_ROWS), cols),
                        sizeof *c->parts, "sums of the columns", &c->parts);
}

/* ---- sums as pairs of numbers ---- */

typedef struct rows_task {
    gnomon_row_source *s;
    int64_t row, rows, at; /* of the matrix; how many; where in the buffer */
    int64_t cuts;          /* of a row's, or the columns' */
    int64_t each;          /* rows of a task */
    bool reads;
    int shift; /* sums are of the numbers times 2^-shift */
    const double *about;
    double *squares; /* one a task */
} rows_task;

static void sum_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const rows_task *t = arg;
    const gnomon_centering *c = &t->s->center;
    const int64_t cols = t->s->cols, group = task / t->cuts, col = task % t->cuts * SUM_COLS;
    const int64_t end = gnomon_min((group + 1) * SUM_ROWS, t->rows),
                  count = gnomon_min(SUM_COLS, cols - col);
    const double factor = ldexp(1.0, -t->shift);
    double *high = c->parts + 2 * group * cols + col, *low = high + cols;
    memset(high, 0, (size_t)count * sizeof *high);
    memset(low, 0, (size_t)count * sizeof *low);
    for (int64_t i = group * SUM_ROWS; i < end; i++) {
        const double *x = c->rows + i * cols + col;
        for (int64_t j = 0; j < count; j++)
            gnomon_pair_add(factor * x[j], &high[j], &low[j]);
    }
}

/* c->parts: the sums of every SUM_ROWS of the rows at hand. */
void gnomon_center_sum(gnomon_row_source *s, int64_t rows, int shift)
{
    rows_task t = {
        .s = s, .rows = rows, .cuts = gnomon_ceil_div(s->cols, SUM_COLS), .shift = shift};
    gnomon_parallel(s->ctx, gnomon_ceil_div(rows, SUM_ROWS) * t.cuts, sum_part, &t);
}

/* sums (two times cols) += the parts of so many rows. */
void gnomon_center_add(const gnomon_row_source *s, int64_t rows, double *sums)
{
    const int64_t cols = s->cols;
    for (int64_t group = 0; group < gnomon_ceil_div(rows, SUM_ROWS); group++) {
        const double *high = s->center.parts + 2 * group * cols, *low = high + cols;
        for (int64_t j = 0; j < cols; j++) {
            gnomon_pair_add(high[j], &sums[j], &sums[cols + j]);
            sums[cols + j] += low[j];
        }
    }
}

/* ---- dense rows ---- */

static void read_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const rows_task *t = arg;
    const int64_t cols = t->s->cols;
    gnomon_row_as_f64(t->s->matrix, t->row + task, 0, cols, t->s->center.rows + task * cols);
}

/* center.rows = the rows from 'row' on, as many as there are up to 'rows'. */
gnomon_status gnomon_center_read(gnomon_row_source *s, int64_t row, int64_t rows, int64_t *got)
{
    GNOMON_TRY(gnomon_progress(s->ctx, "passes", s->passes, -1));
    if (s->stream != NULL)
        return gnomon_row_source_read(s, row, rows, GNOMON_F64, s->center.rows, got);
    rows_task t = {.s = s, .row = row};
    *got = gnomon_min(rows, s->rows - row);
    gnomon_parallel(s->ctx, *got, read_row, &t);
    return GNOMON_OK;
}

static void check_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const rows_task *t = arg;
    const int64_t cols = t->s->cols;
    const double *x = t->s->center.rows + task * cols;
    double most = 0;
    for (int64_t j = 0; j < cols; j++)
        most = fmax(most, isfinite(x[j]) ? fabs(x[j]) : INFINITY);
    t->squares[task] = most;
}

/* The largest magnitude of the rows at hand. */
gnomon_status gnomon_center_check(gnomon_row_source *s, int64_t row, int64_t rows, double *largest)
{
    rows_task t = {.s = s};
    GNOMON_TRY(gnomon_alloc(s->ctx, rows, sizeof *t.squares, "magnitudes", &t.squares));
    gnomon_parallel(s->ctx, rows, check_row, &t);
    int64_t bad = -1, col = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (isinf(t.squares[i]) && bad < 0) bad = i;
        *largest = fmax(*largest, t.squares[i]);
    }
    gnomon_free(s->ctx, t.squares);
    if (bad < 0) return GNOMON_OK;
    while (isfinite(s->center.rows[bad * s->cols + col]))
        col++;
    return gnomon_row_source_refuse(s, row + bad, col);
}

/* out = (x - mean) * factor, or over the scale unless that is NULL, by one rounding from fp64. */
#define DEFINE_LESS_MEAN(name, from, to)                                                       \
    static void name(const void *x, const double *mean, const double *scale, double factor,    \
                     int64_t count, void *out)                                                 \
    {                                                                                          \
        const from *in = x;                                                                    \
        to *less = out;                                                                        \
        for (int64_t j = 0; scale == NULL && j < count; j++)                                   \
            less[j] = (to)(factor * (double)in[j] - factor * mean[j]);                         \
        for (int64_t j = 0; scale != NULL && j < count; j++)                                   \
            less[j] =                                                                          \
                (to)gnomon_over(factor * (double)in[j] - factor * mean[j], factor * scale[j]); \
    }

DEFINE_LESS_MEAN(f32_from_f32, float, float)
DEFINE_LESS_MEAN(f32_from_f64, double, float)
DEFINE_LESS_MEAN(f64_from_f32, float, double)
DEFINE_LESS_MEAN(f64_from_f64, double, double)

/* Whether rows of the matrix can be read where they lie. */
static bool lies_well(const gnomon_row_source *s)
{
    const gnomon_matrix *m = s->matrix;
    return m != NULL && m->col_stride == 1 && (m->dtype == GNOMON_F32 || m->dtype == GNOMON_F64);
}

static void subtract_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const rows_task *t = arg;
    const gnomon_row_source *s = t->s;
    const gnomon_centering *c = &s->center;
    const int64_t col = task % t->cuts * PART_COLS, count = gnomon_min(PART_COLS, s->cols - col);
    const int64_t first = task / t->cuts * t->each, end = gnomon_min(first + t->each, t->rows);
    const double *const scale = s->standardized ? c->scale + col : NULL;
    const double factor = gnomon_center_factor(s);
    const bool direct = t->reads && lies_well(s);
    const bool f32 = direct && s->matrix->dtype == GNOMON_F32;
    for (int64_t row = first; row < end; row++) {
        const void *x = c->rows + row * s->cols + col;
        char *out =
            (char *)s->buffer + ((t->at + row) * s->cols + col) * (int64_t)gnomon_tall_size(s->f64);
        if (direct)
            x = (const char *)gnomon_row_at(s->matrix, t->row + row) +
                col * (int64_t)gnomon_dtype_size(s->matrix->dtype);
        else if (t->reads)
            gnomon_row_as_f64(s->matrix, t->row + row, col, count, c->rows + row * s->cols + col);
        if (s->f64)
            (f32 ? f64_from_f32 : f64_from_f64)(x, c->mean + col, scale, factor, count, out);
        else
            (f32 ? f32_from_f32 : f32_from_f64)(x, c->mean + col, scale, factor, count, out);
    }
}

/* The buffer's rows from 'at' on = so many rows less the mean, of the matrix ('reads': from 'row'
 * on), or those at hand. */
static void subtract(gnomon_row_source *s, bool reads, int64_t row, int64_t rows, int64_t at)
{
    const int64_t each = s->cols < PART_COLS ? PART_COLS / s->cols : 1;
    rows_task t = {.s = s,
                   .row = row,
                   .rows = rows,
                   .at = at,
                   .each = gnomon_min(each, SUM_ROWS),
                   .reads = reads,
                   .cuts = gnomon_ceil_div(s->cols, PART_COLS)};
    gnomon_parallel(s->ctx, gnomon_ceil_div(rows, t.each) * t.cuts, subtract_part, &t);
}

/* ---- rows that are read once ---- */

static void square_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const rows_task *t = arg;
    const int64_t cols = t->s->cols, group = task / t->cuts, col = task % t->cuts * SUM_COLS;
    const int64_t end = gnomon_min((group + 1) * SUM_ROWS, t->rows),
                  count = gnomon_min(SUM_COLS, cols - col);
    const double factor = ldexp(1.0, -t->s->exponent), *about = t->about + col;
    double sum = 0;
    for (int64_t i = group * SUM_ROWS; i < end; i++) {
        const double *x = t->s->center.rows + i * cols + col;
        for (int64_t j = 0; j < count; j++) {
            const double e = factor * x[j] - factor * about[j];
            sum += e * e;
        }
    }
    t->squares[task] = sum;
}

/* *sum = the squares of the rows at hand less 'about', scaled. */
static gnomon_status squares_about(gnomon_row_source *s, int64_t rows, const double *about,
                                   double *sum)
{
    rows_task t = {
        .s = s, .rows = rows, .cuts = gnomon_ceil_div(s->cols, SUM_COLS), .about = about};
    const int64_t tasks = gnomon_ceil_div(rows, SUM_ROWS) * t.cuts;
    GNOMON_TRY(gnomon_alloc(s->ctx, tasks, sizeof *t.squares, "sums of squares", &t.squares));
    gnomon_parallel(s->ctx, tasks, square_part, &t);
    *sum = 0;
    for (int64_t i = 0; i < tasks; i++)
        *sum += t.squares[i];
    gnomon_free(s->ctx, t.squares);
    return GNOMON_OK;
}

/* The exponent, from the first rows: by what is left of them or, when nothing is, by them. */
static void choose_exponent(gnomon_row_source *s, int64_t rows, double largest)
{
    const gnomon_centering *c = &s->center;
    double left = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < s->cols; j++)
            left = fmax(left, fabs(0.5 * c->rows[i * s->cols + j] - 0.5 * c->mean[j]));
    s->largest = fmin(2 * left, DBL_MAX);
    s->exponent = gnomon_row_source_exponent(s->f64, left > 0 ? s->largest : largest);
}

/* Rows at hand, the first of which is s->row + before: their sums and squares join those of the
 * rows before them (Chan, Golub & LeVeque 1983). */
static gnomon_status note(gnomon_row_source *s, int64_t row, int64_t rows)
{
    gnomon_centering *c = &s->center;
    const int64_t cols = s->cols;
    double largest = 0, own = 0, between = 0, *mean = NULL;
    GNOMON_TRY(gnomon_center_check(s, row, rows, &largest));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_times(2, cols), sizeof *mean, "a mean", &mean));
    if (row == 0) c->shift = gnomon_row_source_exponent(true, largest);
    gnomon_center_sum(s, rows, c->shift);
    gnomon_center_add(s, rows, mean);
    gnomon_center_add(s, rows, c->sums);
    for (int64_t j = 0; j < cols; j++)
        mean[j] = ldexp(gnomon_pair_quotient(mean[j], mean[cols + j], (double)rows), c->shift);
    if (row == 0) {
        memcpy(c->mean, mean, (size_t)cols * sizeof *mean);
        memcpy(c->so_far, mean, (size_t)cols * sizeof *mean);
        choose_exponent(s, rows, largest);
    }
    const double factor = ldexp(1.0, -s->exponent), before = (double)row, now = (double)rows;
    for (int64_t j = 0; j < cols; j++) {
        const double off = factor * mean[j] - factor * c->so_far[j];
        between += off * off;
        c->so_far[j] =
            ldexp(gnomon_pair_quotient(c->sums[j], c->sums[cols + j], before + now), c->shift);
    }
    const gnomon_status status = squares_about(s, rows, mean, &own);
    c->squares += own + between * (before / (before + now)) * now;
    gnomon_free(s->ctx, mean);
    return status;
}

gnomon_status gnomon_center_end(gnomon_row_source *s, double **offset)
{
    gnomon_centering *c = &s->center;
    const double rows = (double)s->rows;
    double squares = 0;
    GNOMON_FAIL_IF(!isfinite(c->squares), s->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("a") " has numbers far beyond those of its first rows, which the "
                                   "scale of rows that are read once is taken from");
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof **offset, "the mean", offset));
    for (int64_t j = 0; j < s->cols; j++) {
        const double first = ldexp(c->mean[j], -c->shift);
        const double rest = fma(-rows, first, c->sums[j]) + c->sums[s->cols + j];
        const double off = ldexp(rest / rows, c->shift - s->exponent);
        (*offset)[j] = off;
        squares += off * off;
        c->mean[j] = c->so_far[j];
    }
    s->norm = sqrt(c->squares);
    /* What the pieces had beside the centred matrix was rounded with it. */
    c->rounding = 4 * sqrt((double)s->cols) * (s->f64 ? 0x1p-53 : 0x1p-24) * sqrt(rows * squares);
    return GNOMON_OK;
}

gnomon_status gnomon_center_next(gnomon_row_source *s, gnomon_piece *piece)
{
    gnomon_centering *c = &s->center;
    const bool reads = s->stream == NULL && !c->once;
    GNOMON_TRY(gnomon_center_open(s));
    const int64_t most = reads && lies_well(s) ? s->piece_rows : c->capacity;
    if (c->once && c->so_far == NULL)
        GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof *c->so_far, "the mean", &c->so_far));
    /* a rank's rows go on elsewhere where a segment ends */
    const int64_t all =
        s->ranks != NULL ? gnomon_min(s->piece_rows, s->rows - s->row) : s->piece_rows;
    piece->rows = 0;
    while (piece->rows < all) {
        const int64_t row = piece->own + piece->rows;
        const int64_t rows = gnomon_min(most, all - piece->rows);
        int64_t got =
            reads ? gnomon_min(rows, (s->ranks != NULL ? s->own_rows : s->rows) - row) : 0;
        if (!reads) GNOMON_TRY(gnomon_center_read(s, row, rows, &got));
        if (got == 0) break;
        if (c->once) GNOMON_TRY(note(s, row, got));
        subtract(s, reads, row, got, piece->rows);
        piece->rows += got;
        if (got < rows) break;
    }
    return GNOMON_OK;
}

double gnomon_center_unit(const gnomon_row_source *s, int64_t j, double x)
{
    return gnomon_over(x, s->center.scale[j]);
}

/* ---- what is taken off products ---- */

typedef struct tall_task {
    const gnomon_tall *t;
    const double *x;
    double *correction;
} tall_task;

static void sum_columns(void *arg, int64_t task, int worker)
{
    (void)worker;
    const tall_task *t = arg;
    const int64_t col = task * COLS, count = gnomon_min(COLS, t->t->cols - col);
    double high[COLS] = {0}, low[COLS] = {0};
    for (int64_t i = 0; i < t->t->rows; i++) {
        const void *row = gnomon_tall_row(t->t, i);
        const double x = t->x != NULL ? t->x[i] : 1;
        for (int64_t j = 0; j < count; j++) {
            const double w =
                t->t->f64 ? ((const double *)row)[col + j] : (double)((const float *)row)[col + j];
            const double product = x * w;
            gnomon_pair_add(product, &high[j], &low[j]);
            low[j] += fma(x, w, -product);
        }
    }
    for (int64_t j = 0; j < count; j++)
        t->correction[col + j] = high[j] + low[j];
}

void gnomon_center_sums(gnomon_context *ctx, const gnomon_tall *w, const double *x,
                        double *correction)
{
    tall_task t = {w, x, correction};
    gnomon_parallel(ctx, gnomon_ceil_div(w->cols, COLS), sum_columns, &t);
}

static void subtract_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const tall_task *t = arg;
    void *row = gnomon_tall_row(t->t, task);
    for (int64_t j = 0; j < t->t->cols; j++) {
        if (t->t->f64)
            ((double *)row)[j] -= t->correction[j];
        else
            ((float *)row)[j] = (float)((double)((float *)row)[j] - t->correction[j]);
    }
}

void gnomon_center_subtract(gnomon_context *ctx, const gnomon_tall *tall, const double *correction)
{
    tall_task t = {.t = tall, .correction = (double *)(uintptr_t)correction};
    gnomon_parallel(ctx, tall->rows, subtract_row, &t);
}

gnomon_status gnomon_center_sketch(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                   const double *x, int64_t count, double *correction)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(op, &d);
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    options.row = row;
    options.rows = count;
    options.allow_nonfinite = 1;
    const gnomon_matrix from = gnomon_matrix_rowmajor((void *)(uintptr_t)x, GNOMON_F64, 1, d.d);
    const gnomon_matrix to = gnomon_matrix_rowmajor(correction, GNOMON_F64, 1, count);
    return gnomon_sketch_at(ctx, GNOMON_ON_CPU, op, &from, &to, &options);
}
