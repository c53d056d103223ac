/* The columns' means, and rows less them. */
#include "svd/center.h"

#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/rows.h"
#include "project/job.h"
#include "svd/row_pass.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    READ_NUMBERS = 1 << 17, /* that are read at a time, but at least so many rows: */
    READ_ROWS = 16,
    SUM_ROWS = 256, /* in a part of a sum */
    SUM_COLS = 512,
    PART_COLS = 16384,   /* columns of a row that a task subtracts */
    SPREAD_COLS = 64,    /* that a task sums the squares of */
    SQUARED_ROWS = 4096, /* sparse ones, whose squares are summed at a time */
    COLS = 8,            /* of a tall matrix that a task sums */
    OVERFLOWING = 64,    /* bits that sums beyond the range are taken down by */
    SUM_FIGURES = 3      /* behind the sums of columns */
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
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_plus(gnomon_times(2, cols), SUM_FIGURES),
                                 sizeof *c->sums, "sums of the columns", &c->sums));
    const bool elsewhere = s->matrix != NULL && s->matrix->memory != GNOMON_HOST;
    if (s->sparse || elsewhere) return GNOMON_OK;
    GNOMON_TRY(gnomon_alloc(s->ctx, gnomon_times(capacity, cols), sizeof *c->rows,
                            "rows to be centred", &c->rows));
    return gnomon_alloc(s->ctx, gnomon_times(2 * gnomon_ceil_div(capacity, SUM_ROWS), cols),
                        sizeof *c->parts, "sums of the columns", &c->parts);
}

/* ---- sums as pairs of numbers ---- */

/* (*high, *low) += x */
static inline void add(double x, double *high, double *low)
{
    const double sum = *high + x, rest = sum - *high;
    *low += (*high - (sum - rest)) + (x - rest);
    *high = sum;
}

/* (high + low) / count, rounded once but for ties. */
static double quotient(double high, double low, double count)
{
    const double sum = high + low, rest = low - (sum - high), q = sum / count;
    return q + (fma(-q, count, sum) + rest) / count;
}

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
            add(factor * x[j], &high[j], &low[j]);
    }
}

/* c->parts: the sums of every SUM_ROWS of the rows at hand. */
static void sum_rows(gnomon_row_source *s, int64_t rows, int shift)
{
    rows_task t = {
        .s = s, .rows = rows, .cuts = gnomon_ceil_div(s->cols, SUM_COLS), .shift = shift};
    gnomon_parallel(s->ctx, gnomon_ceil_div(rows, SUM_ROWS) * t.cuts, sum_part, &t);
}

/* sums (two times cols) += the parts of so many rows. */
static void add_parts(const gnomon_row_source *s, int64_t rows, double *sums)
{
    const int64_t cols = s->cols;
    for (int64_t group = 0; group < gnomon_ceil_div(rows, SUM_ROWS); group++) {
        const double *high = s->center.parts + 2 * group * cols, *low = high + cols;
        for (int64_t j = 0; j < cols; j++) {
            add(high[j], &sums[j], &sums[cols + j]);
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
static gnomon_status read_some(gnomon_row_source *s, int64_t row, int64_t rows, int64_t *got)
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
static gnomon_status check_rows(gnomon_row_source *s, int64_t row, int64_t rows, double *largest)
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

/* One piece: what a pass over dense rows finds of it, to a result of its own. Pieces' results are
 * joined in order. */
typedef struct dense_pass {
    gnomon_row_source *s;
    gnomon_status (*add)(const struct dense_pass *p, int64_t row, int64_t rows, double *result);
    void (*join)(const struct dense_pass *p, const double *from, double *to);
    int64_t numbers; /* of a result, which begins as zeros */
    int shift;
    double *total;
} dense_pass;

/* Rows of a piece, some at a time. *got: how many there were. */
static gnomon_status pass_piece(const dense_pass *p, int64_t own, int64_t row, int64_t rows,
                                double *result, int64_t *got)
{
    memset(result, 0, (size_t)p->numbers * sizeof *result);
    for (*got = 0; *got < rows;) {
        const int64_t most = gnomon_min(p->s->center.capacity, rows - *got);
        int64_t some = 0;
        GNOMON_TRY(read_some(p->s, own + *got, most, &some));
        if (some == 0) return GNOMON_OK;
        GNOMON_TRY(p->add(p, row + *got, some, result));
        *got += some;
        if (some < most) return GNOMON_OK;
    }
    return GNOMON_OK;
}

static gnomon_status dense_alone(const dense_pass *p, double *result)
{
    gnomon_row_source *s = p->s;
    GNOMON_TRY(gnomon_row_source_rewind(s));
    for (;;) {
        int64_t got = 0;
        GNOMON_TRY(pass_piece(p, s->row, s->row, s->piece_rows, result, &got));
        if (got > 0) p->join(p, result, p->total);
        s->row += got;
        if (got < s->piece_rows) break;
    }
    return GNOMON_OK;
}

static gnomon_status add_dense(void *user, const gnomon_piece *piece, int64_t row, bool first,
                               void *result)
{
    const dense_pass *p = user;
    const int64_t at = (piece->row - row) / p->s->piece_rows;
    int64_t got;
    (void)first;
    GNOMON_TRY(pass_piece(p, piece->own, piece->row, piece->rows,
                          (double *)result + at * p->numbers, &got));
    GNOMON_FAIL_IF(got < piece->rows, p->s->ctx, GNOMON_ERROR_SHAPE,
                   GNOMON_ARG("rows.next") " gave fewer rows than rows.rows");
    return GNOMON_OK;
}

static gnomon_status take_dense(void *user, int64_t row, int64_t rows, const void *result, bool own)
{
    const dense_pass *p = user;
    (void)row;
    (void)own;
    for (int64_t i = 0; i * p->s->piece_rows < rows; i++)
        p->join(p, (const double *)result + i * p->numbers, p->total);
    return GNOMON_OK;
}

/* The pass; on the ranks that serve without a total. */
static gnomon_status run_dense(dense_pass *p, gnomon_status status)
{
    gnomon_row_source *s = p->s;
    if (gnomon_row_divided(s)) {
        const int64_t pieces = s->segment_rows / s->piece_rows;
        const gnomon_row_pass pass = {
            .user = p,
            .add = add_dense,
            .take = take_dense,
            .bytes = gnomon_times(gnomon_times(pieces, p->numbers), sizeof(double)),
            .unread = true};
        return gnomon_row_pass_run(s, &pass, status);
    }
    double *result = NULL;
    GNOMON_TRY(status);
    GNOMON_TRY(gnomon_alloc(s->ctx, p->numbers, sizeof *result, "sums of a piece", &result));
    status = dense_alone(p, result);
    gnomon_free(s->ctx, result);
    return status;
}

/* Of columns' sums, and behind them the largest magnitude. */
static gnomon_status add_sums(const dense_pass *p, int64_t row, int64_t rows, double *result)
{
    GNOMON_TRY(check_rows(p->s, row, rows, &result[2 * p->s->cols]));
    sum_rows(p->s, rows, p->shift);
    add_parts(p->s, rows, result);
    return GNOMON_OK;
}

/* sums (two times cols) += other ones. */
static void join_sums(int64_t cols, const double *from, double *to)
{
    for (int64_t j = 0; j < cols; j++) {
        add(from[j], &to[j], &to[cols + j]);
        to[cols + j] += from[cols + j];
    }
}

static void join_dense_sums(const dense_pass *p, const double *from, double *to)
{
    const int64_t cols = p->s->cols;
    join_sums(cols, from, to);
    to[2 * cols] = fmax(to[2 * cols], from[2 * cols]);
}

/* The pass, with sums of the numbers times 2^-shift. */
static gnomon_status sum_dense(gnomon_row_source *s, int shift, double *total, gnomon_status status)
{
    dense_pass p = {.s = s,
                    .add = add_sums,
                    .join = join_dense_sums,
                    .numbers = 2 * s->cols + SUM_FIGURES,
                    .shift = shift,
                    .total = total};
    return run_dense(&p, status);
}

static gnomon_status sum_sparse(gnomon_row_source *s, int shift, double *total,
                                gnomon_status status);

/* Behind the sums of columns: the largest magnitude; of sparse rows how many entries, and those of
 * the longest row. */
static gnomon_status sum_all(gnomon_row_source *s, int shift, double *total)
{
    const int64_t numbers[6] = {shift};
    memset(total, 0, (size_t)(2 * s->cols + SUM_FIGURES) * sizeof *total);
    GNOMON_TRY(gnomon_row_step_tell(s, GNOMON_STEP_MEANS, numbers));
    return s->sparse ? sum_sparse(s, shift, total, GNOMON_OK)
                     : sum_dense(s, shift, total, GNOMON_OK);
}

/* center.mean. */
static gnomon_status find(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    bool finite = true;
    int shift = 0;
    GNOMON_TRY(sum_all(s, 0, c->sums));
    for (int64_t j = 0; j < s->cols; j++)
        finite = finite && isfinite(c->sums[j]) && isfinite(c->sums[s->cols + j]);
    if (!finite) {
        shift = OVERFLOWING;
        GNOMON_TRY(sum_all(s, shift, c->sums));
    }
    s->largest = c->sums[2 * s->cols];
    if (s->sparse) {
        s->nonzeros = (int64_t)c->sums[2 * s->cols + 1];
        s->longest = (int64_t)c->sums[2 * s->cols + 2];
    }
    for (int64_t j = 0; j < s->cols; j++)
        c->mean[j] =
            s->rows == 0
                ? 0
                : ldexp(quotient(c->sums[j], c->sums[s->cols + j], (double)s->rows), shift);
    return GNOMON_OK;
}

/* What differences of two finite numbers are taken times so that they are finite. */
static double halving(const gnomon_row_source *s)
{
    return s->center.halved ? 0.5 : 1;
}

static double over(double x, double by)
{
    return by > 0 ? x / by : 0;
}

/* out = (x - mean) * factor, or over the scale unless that is NULL, by one rounding from fp64. */
#define DEFINE_LESS_MEAN(name, from, to)                                                      \
    static void name(const void *x, const double *mean, const double *scale, double factor,   \
                     int64_t count, void *out)                                                \
    {                                                                                         \
        const from *in = x;                                                                   \
        to *less = out;                                                                       \
        for (int64_t j = 0; scale == NULL && j < count; j++)                                  \
            less[j] = (to)(factor * (double)in[j] - factor * mean[j]);                        \
        for (int64_t j = 0; scale != NULL && j < count; j++)                                  \
            less[j] = (to)over(factor * (double)in[j] - factor * mean[j], factor * scale[j]); \
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
    const double factor = s->standardized ? halving(s) : ldexp(1.0, -s->exponent);
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
    GNOMON_TRY(check_rows(s, row, rows, &largest));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_times(2, cols), sizeof *mean, "a mean", &mean));
    if (row == 0) c->shift = gnomon_row_source_exponent(true, largest);
    sum_rows(s, rows, c->shift);
    add_parts(s, rows, mean);
    add_parts(s, rows, c->sums);
    for (int64_t j = 0; j < cols; j++)
        mean[j] = ldexp(quotient(mean[j], mean[cols + j], (double)rows), c->shift);
    if (row == 0) {
        memcpy(c->mean, mean, (size_t)cols * sizeof *mean);
        memcpy(c->so_far, mean, (size_t)cols * sizeof *mean);
        choose_exponent(s, rows, largest);
    }
    const double factor = ldexp(1.0, -s->exponent), before = (double)row, now = (double)rows;
    for (int64_t j = 0; j < cols; j++) {
        const double off = factor * mean[j] - factor * c->so_far[j];
        between += off * off;
        c->so_far[j] = ldexp(quotient(c->sums[j], c->sums[cols + j], before + now), c->shift);
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
        if (!reads) GNOMON_TRY(read_some(s, row, rows, &got));
        if (got == 0) break;
        if (c->once) GNOMON_TRY(note(s, row, got));
        subtract(s, reads, row, got, piece->rows);
        piece->rows += got;
        if (got < rows) break;
    }
    return GNOMON_OK;
}

/* ---- sparse rows ---- */

/* Does something with the rows of a piece. */
typedef gnomon_status (*piece_fn)(gnomon_row_source *s, const gnomon_piece *piece, void *arg);

/* The same with all rows as they are stored, a pass. */
static gnomon_status over_pieces(gnomon_row_source *s, piece_fn fn, void *arg)
{
    gnomon_piece piece;
    GNOMON_TRY(gnomon_row_source_rewind(s));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next_stored(s, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        GNOMON_TRY(fn(s, &piece, arg));
    }
}

/* A loop over a piece in which each task has columns of its own: those of every 'tasks'-th group,
 * so that a few heavy columns side by side are shared. A column's numbers meet in the order of the
 * rows, whatever the number of tasks, which is a power of two. */
typedef struct columns_task {
    gnomon_row_source *s;
    const gnomon_piece *piece;
    int64_t tasks;
    void *arg;
} columns_task;

static inline bool has_column(const columns_task *t, int64_t task, int64_t col)
{
    enum { GROUP = 64 };
    return (col / GROUP & (t->tasks - 1)) == task;
}

static int64_t column_tasks(const gnomon_row_source *s)
{
    const int64_t threads = gnomon_context_threads(s->ctx);
    int64_t tasks = 1;
    while (tasks < threads)
        tasks *= 2;
    return tasks;
}

/* What a task has seen of the entries in its columns. */
typedef struct column_figures {
    double largest;
    int64_t bad, bad_row; /* the first entry that is not finite, or INT64_MAX; its row */
} column_figures;

/* A pass over sparse rows: each part has 'numbers' of its own in sums. */
typedef struct sparse_pass {
    gnomon_row_source *s;
    piece_fn piece;
    void (*join)(const struct sparse_pass *p, const double *from, double *to);
    int64_t numbers;
    double factor;
    double *sums;            /* of the parts that are here; zeros at first */
    double *total;           /* not on the ranks that serve */
    column_figures *figures; /* one a task */
    struct cell *cells;      /* one a column */
    double *squares;         /* of some rows */
    int64_t row;             /* the first of those, in the piece */
} sparse_pass;

/* The numbers of the part that a row of the piece is of. */
static inline double *part_of(const sparse_pass *p, const gnomon_piece *piece, int64_t row)
{
    return p->sums + gnomon_part_of(p->s, piece->own + row) * p->numbers;
}

static gnomon_status run_parts(void *user, gnomon_status status)
{
    sparse_pass *p = user;
    return status == GNOMON_OK ? over_pieces(p->s, p->piece, p) : status;
}

static const void *part_sums(void *user, int part)
{
    const sparse_pass *p = user;
    return p->sums + part * p->numbers;
}

static gnomon_status take_sums(void *user, int part, const void *result, bool own)
{
    const sparse_pass *p = user;
    (void)part;
    (void)own;
    p->join(p, result, p->total);
    return GNOMON_OK;
}

static gnomon_status run_sparse(sparse_pass *p, gnomon_status status)
{
    const gnomon_part_pass pass = {.user = p,
                                   .run = run_parts,
                                   .result = part_sums,
                                   .take = take_sums,
                                   .bytes = gnomon_times(p->numbers, sizeof(double))};
    if (status == GNOMON_OK)
        status = gnomon_alloc_zero(p->s->ctx, gnomon_times(p->numbers, GNOMON_PARTS),
                                   sizeof *p->sums, "sums of the columns", &p->sums);
    status = gnomon_part_pass_run(p->s, &pass, status);
    gnomon_free(p->s->ctx, p->sums);
    p->sums = NULL;
    return status;
}

static void sum_columns_of_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const columns_task *t = arg;
    const gnomon_csr *a = &t->piece->csr;
    const sparse_pass *p = t->arg;
    column_figures figures = {0, INT64_MAX, 0};
    for (int64_t row = 0; row < a->rows && figures.bad == INT64_MAX; row++) {
        double *high = part_of(p, t->piece, row), *low = high + t->s->cols;
        for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
             i++) {
            const int64_t j = a->indices[i];
            if (!has_column(t, task, j)) continue;
            const double x = gnomon_value_as_f64(a->values, a->dtype, i);
            if (!isfinite(x)) {
                figures.bad = i;
                figures.bad_row = row;
                break;
            }
            figures.largest = fmax(figures.largest, fabs(x));
            add(p->factor * x, &high[j], &low[j]);
        }
    }
    p->figures[task] = figures;
}

static gnomon_status sum_piece(gnomon_row_source *s, const gnomon_piece *piece, void *arg)
{
    const gnomon_csr *a = &piece->csr;
    sparse_pass *p = arg;
    columns_task columns = {s, piece, column_tasks(s), p};
    column_figures first = {0, INT64_MAX, 0};
    double *largest = p->sums + 2 * s->cols;
    gnomon_parallel(s->ctx, columns.tasks, sum_columns_of_rows, &columns);
    for (int64_t task = 0; task < columns.tasks; task++) {
        *largest = fmax(*largest, p->figures[task].largest);
        if (p->figures[task].bad < first.bad) first = p->figures[task];
    }
    if (first.bad != INT64_MAX)
        return gnomon_row_source_refuse(s, gnomon_place_of(s, piece->own + first.bad_row),
                                        a->indices[first.bad]);
    for (int64_t row = 0; row < a->rows; row++) {
        double *figures = part_of(p, piece, row) + 2 * s->cols;
        const double count = (double)(a->offsets[row + 1] - a->offsets[row]);
        figures[1] += count;
        figures[2] = fmax(figures[2], count);
    }
    return GNOMON_OK;
}

static void join_sparse_sums(const sparse_pass *p, const double *from, double *to)
{
    const int64_t cols = p->s->cols;
    join_sums(cols, from, to);
    to[2 * cols] = fmax(to[2 * cols], from[2 * cols]);
    to[2 * cols + 1] += from[2 * cols + 1];
    to[2 * cols + 2] = fmax(to[2 * cols + 2], from[2 * cols + 2]);
}

static gnomon_status sum_sparse(gnomon_row_source *s, int shift, double *total,
                                gnomon_status status)
{
    sparse_pass p = {.s = s,
                     .piece = sum_piece,
                     .join = join_sparse_sums,
                     .numbers = 2 * s->cols + SUM_FIGURES,
                     .factor = ldexp(1.0, -shift),
                     .total = total};
    if (status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, column_tasks(s), sizeof *p.figures, "figures of columns",
                              &p.figures);
    status = run_sparse(&p, status);
    gnomon_free(s->ctx, p.figures);
    return status;
}

double gnomon_center_unit(const gnomon_row_source *s, int64_t j, double x)
{
    return over(x, s->center.scale[j]);
}

/* What a row has in a column, several entries that add up as one: row is where it was last seen. */
typedef struct cell {
    int64_t row;
    double sum;
} cell;

/* What is factored of a column's number x, given times 'factor'. */
static double deviation(const gnomon_row_source *s, int64_t j, double x, double factor)
{
    const double less = x - factor * s->center.mean[j];
    return s->standardized ? over(less, factor * s->center.scale[j]) : less;
}

/* Of standardized sparse rows: the mean over the standard deviations. */
static gnomon_status make_offset(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    if (c->offset == c->mean) c->offset = NULL;
    if (c->offset == NULL)
        GNOMON_TRY(
            gnomon_alloc(s->ctx, s->cols, sizeof *c->offset, "means of columns", &c->offset));
    for (int64_t j = 0; j < s->cols; j++)
        c->offset[j] = gnomon_center_unit(s, j, c->mean[j]);
    return GNOMON_OK;
}

/* A step before which the other ranks get what is known of the means; status: whether this rank has
 * room for it. */
static gnomon_status tell_means(gnomon_row_source *s, gnomon_step_kind kind, gnomon_status status)
{
    gnomon_centering *c = &s->center;
    const int64_t bytes = s->cols * (int64_t)sizeof(double);
    const bool scaled = s->standardized && kind != GNOMON_STEP_SPREAD;
    double known[] = {c->halved, s->norm, c->magnitude};
    if (!gnomon_row_divided(s)) return status;
    if (gnomon_row_serves(s) && scaled && c->scale == NULL && status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, s->cols, sizeof *c->scale, "standard deviations", &c->scale);
    GNOMON_TRY(gnomon_row_step_tell(s, kind, NULL));
    GNOMON_TRY(gnomon_row_step_ready(s, status));
    GNOMON_TRY(gnomon_row_step_share(s, known, sizeof known));
    GNOMON_TRY(gnomon_row_step_share(s, c->mean, bytes));
    if (scaled) GNOMON_TRY(gnomon_row_step_share(s, c->scale, bytes));
    c->halved = known[0] != 0;
    s->norm = known[1];
    c->magnitude = known[2];
    status = gnomon_row_serves(s) && scaled && s->sparse ? make_offset(s) : GNOMON_OK;
    return gnomon_row_step_ready(s, status);
}

static gnomon_status make_cells(const gnomon_row_source *s, cell **cells)
{
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof **cells, "columns", cells));
    for (int64_t j = 0; j < s->cols; j++)
        (*cells)[j] = (cell){-1, 0};
    return GNOMON_OK;
}

/* The entry joins those of its row and column. */
static inline void add_up(const sparse_pass *p, const gnomon_csr *a, int64_t row, int64_t entry)
{
    cell *const at = &p->cells[a->indices[entry]];
    if (at->row != row) {
        at->row = row;
        at->sum = 0;
    }
    at->sum += p->factor * gnomon_value_as_f64(a->values, a->dtype, entry);
}

/* How many rows of a part have an entry in a column; behind that the squares of its rows. */
static void count_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const columns_task *t = arg;
    const gnomon_csr *a = &t->piece->csr;
    const sparse_pass *p = t->arg;
    for (int64_t row = 0; row < a->rows; row++) {
        double *counts = part_of(p, t->piece, row);
        for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
             i++) {
            const int64_t j = a->indices[i];
            if (!has_column(t, task, j)) continue;
            cell *const at = &p->cells[j];
            if (at->row != t->piece->own + row) counts[j]++;
            at->row = t->piece->own + row;
        }
    }
}

/* The squares of a row whose columns rise; -1 for another row. */
static void square_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const columns_task *t = arg;
    const gnomon_csr *a = &t->piece->csr;
    const sparse_pass *p = t->arg;
    const int64_t row = p->row + task;
    double sum = 0;
    int64_t last = -1;
    for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
         i++) {
        const int64_t j = a->indices[i];
        const double x = gnomon_value_as_f64(a->values, a->dtype, i);
        const double less = deviation(t->s, j, p->factor * x, p->factor);
        sum = j > last && sum >= 0 ? sum + less * less : -1;
        last = j;
    }
    p->squares[task] = sum;
}

/* The squares of a row that may have several entries of one column. */
static double square_any_row(const sparse_pass *p, const gnomon_piece *piece, int64_t row)
{
    const gnomon_csr *a = &piece->csr;
    const int64_t first = a->offsets[row] - a->offsets[0];
    const int64_t end = a->offsets[row + 1] - a->offsets[0];
    double sum = 0;
    for (int64_t i = first; i < end; i++)
        p->cells[a->indices[i]].row = -1;
    for (int64_t i = first; i < end; i++)
        add_up(p, a, piece->own + row, i);
    for (int64_t i = first; i < end; i++) {
        cell *const at = &p->cells[a->indices[i]];
        if (at->row != piece->own + row) continue;
        const double x = deviation(p->s, a->indices[i], at->sum, p->factor);
        sum += x * x;
        at->row = -1; /* once */
    }
    return sum;
}

static gnomon_status square_piece(gnomon_row_source *s, const gnomon_piece *piece, void *arg)
{
    sparse_pass *p = arg;
    columns_task pass = {s, piece, column_tasks(s), p};
    gnomon_parallel(s->ctx, pass.tasks, count_rows, &pass);
    for (p->row = 0; p->row < piece->rows; p->row += SQUARED_ROWS) {
        const int64_t rows = gnomon_min(SQUARED_ROWS, piece->rows - p->row);
        gnomon_parallel(s->ctx, rows, square_row, &pass);
        for (int64_t i = 0; i < rows; i++)
            part_of(p, piece, p->row + i)[s->cols] +=
                p->squares[i] >= 0 ? p->squares[i] : square_any_row(p, piece, p->row + i);
    }
    return GNOMON_OK;
}

static void join_squares(const sparse_pass *p, const double *from, double *to)
{
    for (int64_t j = 0; j <= p->s->cols; j++)
        to[j] += from[j];
}

/* The pass that counts, for each column, the rows with an entry, and behind that sums the squares
 * of all entries less the mean. */
static gnomon_status square_entries(gnomon_row_source *s, double *total, gnomon_status status)
{
    sparse_pass p = {.s = s,
                     .piece = square_piece,
                     .join = join_squares,
                     .numbers = s->cols + 1,
                     .factor = s->standardized ? halving(s) : ldexp(1.0, -s->exponent),
                     .total = total};
    if (status == GNOMON_OK) status = make_cells(s, &p.cells);
    if (status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, SQUARED_ROWS, sizeof(double), "squares of rows", &p.squares);
    status = run_sparse(&p, status);
    gnomon_free(s->ctx, p.cells);
    gnomon_free(s->ctx, p.squares);
    return status;
}

/* s->squares of what is factored, of which no difference is taken: those of the entries less the
 * mean, and the mean's for each that is not there. counts: room for cols + 1 numbers. */
static gnomon_status sparse_squares(gnomon_row_source *s, double *counts)
{
    const double factor = s->standardized ? halving(s) : ldexp(1.0, -s->exponent);
    GNOMON_TRY(tell_means(s, GNOMON_STEP_SQUARES, GNOMON_OK));
    GNOMON_TRY(square_entries(s, counts, GNOMON_OK));
    s->squares = counts[s->cols];
    for (int64_t j = 0; j < s->cols; j++) {
        const double x = deviation(s, j, 0, factor);
        s->squares += ((double)s->rows - counts[j]) * x * x;
    }
    return GNOMON_OK;
}

static gnomon_status measure_sparse(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    const double factor = ldexp(1.0, -s->exponent);
    double col_terms = 0, means = 0, *counts = NULL;
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_plus(s->cols, 1), sizeof *counts,
                                 "entries of columns", &counts));
    const gnomon_status status = sparse_squares(s, counts);
    for (int64_t j = 0; status == GNOMON_OK && j < s->cols; j++) {
        col_terms = fmax(col_terms, counts[j]);
        means += (factor * c->offset[j]) * (factor * c->offset[j]);
    }
    gnomon_free(s->ctx, counts);
    GNOMON_TRY(status);
    s->norm = sqrt(s->squares);
    GNOMON_FAIL_IF(!isfinite(s->norm), s->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("a") " has entries of one place whose sum is beyond fp64");
    /* Both terms of a product are sums in fp64 of terms no larger than | |A| |W| |; those of
     * standardized rows are quotients, rounded. */
    const double more = s->standardized ? 6 : 4;
    const double all_means = sqrt((double)s->rows * means);
    const double both = sqrt(s->squares + all_means * all_means) + all_means;
    c->magnitude = both;
    c->rounding = s->norm > 0 ? ((double)s->longest + more) * 0x1p-53 * both : 0;
    c->rounding_adjoint = s->norm > 0 ? (col_terms + more) * 0x1p-53 * both : 0;
    return GNOMON_OK;
}

/* ---- standard deviations ---- */

/* A sum of squares without overflow or underflow on the way (Blue 1978): those of numbers beyond
 * 2^480 and below 2^-480 are summed apart, times 2^-1200 and 2^1200; the others in pairs of
 * numbers.
 */
typedef struct square_sum {
    double high, low, small, big;
} square_sum;

static inline void add_square(square_sum *sum, double x, double times)
{
    const double size = fabs(x);
    if (size > 0x1p480)
        sum->big += times * ((size * 0x1p-600) * (size * 0x1p-600));
    else if (size < 0x1p-480)
        sum->small += times * ((size * 0x1p600) * (size * 0x1p600));
    else
        add(times * (x * x), &sum->high, &sum->low);
}

/* sqrt(sum / count); 0 where the sum is. */
static double root_mean(const square_sum *sum, double count)
{
    const double mid = sum->high + sum->low;
    if (sum->big > 0) return sqrt((sum->big + mid * 0x1p-600 * 0x1p-600) / count) * 0x1p600;
    if (mid > 0) return sqrt((mid + sum->small * 0x1p-600 * 0x1p-600) / count);
    return sum->small > 0 ? sqrt(sum->small / count) * 0x1p-600 : 0;
}

typedef struct spread_task {
    const gnomon_row_source *s;
    int64_t rows;
    square_sum *sums;
} spread_task;

static void spread_part(void *arg, int64_t task, int worker)
{
    (void)worker;
    const spread_task *t = arg;
    const int64_t cols = t->s->cols, col = task * SPREAD_COLS;
    const int64_t end = gnomon_min(col + SPREAD_COLS, cols);
    const double factor = halving(t->s), *mean = t->s->center.mean;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = col; j < end; j++)
            add_square(&t->sums[j], factor * t->s->center.rows[i * cols + j] - factor * mean[j], 1);
}

/* A result of these passes has a square_sum a column, and of sparse rows then how many rows have an
 * entry in it. */
enum { SQUARE_SUM = sizeof(square_sum) / sizeof(double) };

static square_sum *as_squares(double *result)
{
    return (square_sum *)(void *)result;
}

static void join_spreads(int64_t cols, const double *from, double *to)
{
    for (int64_t j = 0; j < cols; j++) {
        const double *x = from + j * SQUARE_SUM;
        square_sum *sum = &as_squares(to)[j];
        add(x[0], &sum->high, &sum->low);
        sum->low += x[1];
        sum->small += x[2];
        sum->big += x[3];
    }
}

static gnomon_status add_spread(const dense_pass *p, int64_t row, int64_t rows, double *result)
{
    spread_task t = {p->s, rows, as_squares(result)};
    (void)row;
    gnomon_parallel(p->s->ctx, gnomon_ceil_div(p->s->cols, SPREAD_COLS), spread_part, &t);
    return GNOMON_OK;
}

static void join_dense_spreads(const dense_pass *p, const double *from, double *to)
{
    join_spreads(p->s->cols, from, to);
}

static void spread_columns(void *arg, int64_t task, int worker)
{
    (void)worker;
    const columns_task *t = arg;
    const gnomon_csr *a = &t->piece->csr;
    const sparse_pass *p = t->arg;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = a->offsets[row] - a->offsets[0], id = t->piece->own + row;
        const int64_t end = a->offsets[row + 1] - a->offsets[0];
        double *result = part_of(p, t->piece, row), *counts = result + SQUARE_SUM * t->s->cols;
        for (int64_t i = first; i < end; i++)
            if (has_column(t, task, a->indices[i])) add_up(p, a, id, i);
        for (int64_t i = first; i < end; i++) {
            const int64_t j = a->indices[i];
            if (!has_column(t, task, j) || p->cells[j].row != id) continue;
            add_square(&as_squares(result)[j], p->cells[j].sum - p->factor * t->s->center.mean[j],
                       1);
            counts[j]++;
            p->cells[j].row = -1; /* once */
        }
    }
}

static gnomon_status spread_piece(gnomon_row_source *s, const gnomon_piece *piece, void *arg)
{
    columns_task pass = {s, piece, column_tasks(s), arg};
    gnomon_parallel(s->ctx, pass.tasks, spread_columns, &pass);
    return GNOMON_OK;
}

static void join_sparse_spreads(const sparse_pass *p, const double *from, double *to)
{
    const int64_t cols = p->s->cols;
    join_spreads(cols, from, to);
    for (int64_t j = SQUARE_SUM * cols; j < (SQUARE_SUM + 1) * cols; j++)
        to[j] += from[j];
}

/* The pass; total: zeros, or NULL on the ranks that serve. */
static gnomon_status spread(gnomon_row_source *s, double *total, gnomon_status status)
{
    if (!s->sparse) {
        dense_pass p = {.s = s,
                        .add = add_spread,
                        .join = join_dense_spreads,
                        .numbers = SQUARE_SUM * s->cols,
                        .total = total};
        return run_dense(&p, status);
    }
    sparse_pass p = {.s = s,
                     .piece = spread_piece,
                     .join = join_sparse_spreads,
                     .numbers = (SQUARE_SUM + 1) * s->cols,
                     .factor = halving(s),
                     .total = total};
    if (status == GNOMON_OK) status = make_cells(s, &p.cells);
    status = run_sparse(&p, status);
    gnomon_free(s->ctx, p.cells);
    return status;
}

/* center.scale and, of sparse rows, center.offset. No scaling is needed then: what is left of a
 * column is at most sqrt(rows) in magnitude, and somewhere at least 0.7. */
static gnomon_status find_scale(gnomon_row_source *s)
{
    gnomon_centering *c = &s->center;
    double *sums = NULL;
    int64_t beyond = -1;
    c->halved = s->largest > 0.5 * DBL_MAX;
    s->exponent = 0;
    GNOMON_TRY(gnomon_alloc(s->ctx, s->cols, sizeof *c->scale, "standard deviations", &c->scale));
    GNOMON_TRY(gnomon_alloc_zero(s->ctx, gnomon_times(SQUARE_SUM + 1, s->cols), sizeof *sums,
                                 "sums of squares of columns", &sums));
    gnomon_status status = tell_means(s, GNOMON_STEP_SPREAD, GNOMON_OK);
    if (status == GNOMON_OK) status = spread(s, sums, GNOMON_OK);
    for (int64_t j = 0; status == GNOMON_OK && j < s->cols; j++) {
        square_sum *sum = &as_squares(sums)[j];
        if (s->sparse)
            add_square(sum, halving(s) * c->mean[j],
                       (double)s->rows - sums[SQUARE_SUM * s->cols + j]);
        c->scale[j] = root_mean(sum, (double)(s->rows - 1)) / halving(s);
        if (!isfinite(c->scale[j]) && beyond < 0) beyond = j;
    }
    gnomon_free(s->ctx, sums);
    GNOMON_TRY(status);
    GNOMON_FAIL_IF(beyond >= 0, s->ctx, GNOMON_ERROR_OVERFLOW,
                   GNOMON_ARG("a") " has a standard deviation beyond fp64 in column %" PRId64
                                   " (counted from 0)",
                   beyond);
    return s->sparse ? make_offset(s) : GNOMON_OK;
}

gnomon_status gnomon_center_find(gnomon_row_source *s)
{
    if (s->center.sums != NULL) return GNOMON_OK;
    GNOMON_TRY(gnomon_center_open(s));
    GNOMON_TRY(find(s));
    s->exponent = gnomon_row_source_exponent(s->f64, s->largest);
    if (s->standardized) GNOMON_TRY(find_scale(s));
    if (s->sparse) GNOMON_TRY(measure_sparse(s));
    return tell_means(s, GNOMON_STEP_CENTERED, GNOMON_OK);
}

gnomon_status gnomon_center_serve(gnomon_row_source *s, const gnomon_row_step *told)
{
    gnomon_status status = gnomon_center_open(s);
    if (told->kind == GNOMON_STEP_MEANS) {
        const int shift = (int)told->numbers[0];
        return s->sparse ? sum_sparse(s, shift, NULL, status) : sum_dense(s, shift, NULL, status);
    }
    GNOMON_TRY(tell_means(s, (gnomon_step_kind)told->kind, status));
    if (told->kind == GNOMON_STEP_CENTERED) return GNOMON_OK;
    return told->kind == GNOMON_STEP_SPREAD ? spread(s, NULL, GNOMON_OK)
                                            : square_entries(s, NULL, GNOMON_OK);
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
            add(product, &high[j], &low[j]);
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
