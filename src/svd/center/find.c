/* The columns' means and standard deviations, by one process or by several ranks. */
#include "svd/center/parts.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "points/rows.h"
#include "svd/row_pass.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    SPREAD_COLS = 64,    /* that a task sums the squares of */
    SQUARED_ROWS = 4096, /* sparse ones, whose squares are summed at a time */
    OVERFLOWING = 64     /* bits that sums beyond the range are taken down by */
};

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
        GNOMON_TRY(gnomon_center_read(p->s, own + *got, most, &some));
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
    GNOMON_TRY(gnomon_center_check(p->s, row, rows, &result[2 * p->s->cols]));
    gnomon_center_sum(p->s, rows, p->shift);
    gnomon_center_add(p->s, rows, result);
    return GNOMON_OK;
}

/* sums (two times cols) += other ones. */
static void join_sums(int64_t cols, const double *from, double *to)
{
    for (int64_t j = 0; j < cols; j++) {
        gnomon_pair_add(from[j], &to[j], &to[cols + j]);
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
                    .numbers = 2 * s->cols + GNOMON_SUM_FIGURES,
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
    memset(total, 0, (size_t)(2 * s->cols + GNOMON_SUM_FIGURES) * sizeof *total);
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
                : ldexp(gnomon_pair_quotient(c->sums[j], c->sums[s->cols + j], (double)s->rows),
                        shift);
    return GNOMON_OK;
}

/* ---- sparse rows ---- */

/* What a task has seen of the entries in its columns. */
typedef struct column_figures {
    double largest;
    int64_t bad, bad_row; /* the first entry that is not finite, or INT64_MAX; its row */
} column_figures;

/* A pass over sparse rows as they are stored: each part has 'numbers' of its own in sums.
 *
 * In a loop over a piece each task has columns of its own: those of every 'tasks'-th group, so that
 * a few heavy columns side by side are shared. A column's numbers meet in the order of the rows,
 * whatever the number of tasks, which is a power of two. */
typedef struct sparse_pass {
    gnomon_row_source *s;
    gnomon_status (*add)(struct sparse_pass *p); /* the piece at hand */
    void (*join)(const struct sparse_pass *p, const double *from, double *to);
    int64_t numbers;
    double factor;
    double *sums;  /* of the parts that are here; zeros at first */
    double *total; /* not on the ranks that serve */
    gnomon_piece piece;
    int64_t tasks;
    column_figures *figures; /* one a task */
    struct cell *cells;      /* one a column */
    double *squares;         /* of some rows */
    int64_t row;             /* the first of those, in the piece */
} sparse_pass;

static inline bool has_column(const sparse_pass *p, int64_t task, int64_t col)
{
    enum { GROUP = 64 };
    return (col / GROUP & (p->tasks - 1)) == task;
}

static int64_t column_tasks(const gnomon_row_source *s)
{
    const int64_t threads = gnomon_context_threads(s->ctx);
    int64_t tasks = 1;
    while (tasks < threads)
        tasks *= 2;
    return tasks;
}

/* The numbers of the part that a row of the piece is of. */
static inline double *part_of(const sparse_pass *p, int64_t row)
{
    return p->sums + gnomon_part_of(p->s, p->piece.own + row) * p->numbers;
}

static gnomon_status run_parts(void *user, gnomon_status status)
{
    sparse_pass *p = user;
    GNOMON_TRY(status);
    GNOMON_TRY(gnomon_row_source_rewind(p->s));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next_stored(p->s, &p->piece));
        if (p->piece.rows == 0) return GNOMON_OK;
        GNOMON_TRY(p->add(p));
    }
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
    p->tasks = column_tasks(p->s);
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
    const sparse_pass *p = arg;
    const gnomon_csr *a = &p->piece.csr;
    column_figures figures = {0, INT64_MAX, 0};
    for (int64_t row = 0; row < a->rows && figures.bad == INT64_MAX; row++) {
        double *high = part_of(p, row), *low = high + p->s->cols;
        for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
             i++) {
            const int64_t j = a->indices[i];
            if (!has_column(p, task, j)) continue;
            const double x = gnomon_value_as_f64(a->values, a->dtype, i);
            if (!isfinite(x)) {
                figures.bad = i;
                figures.bad_row = row;
                break;
            }
            figures.largest = fmax(figures.largest, fabs(x));
            gnomon_pair_add(p->factor * x, &high[j], &low[j]);
        }
    }
    p->figures[task] = figures;
}

static gnomon_status sum_piece(sparse_pass *p)
{
    gnomon_row_source *s = p->s;
    const gnomon_csr *a = &p->piece.csr;
    column_figures first = {0, INT64_MAX, 0};
    double *largest = p->sums + 2 * s->cols;
    gnomon_parallel(s->ctx, p->tasks, sum_columns_of_rows, p);
    for (int64_t task = 0; task < p->tasks; task++) {
        *largest = fmax(*largest, p->figures[task].largest);
        if (p->figures[task].bad < first.bad) first = p->figures[task];
    }
    if (first.bad != INT64_MAX)
        return gnomon_row_source_refuse(s, gnomon_place_of(s, p->piece.own + first.bad_row),
                                        a->indices[first.bad]);
    for (int64_t row = 0; row < a->rows; row++) {
        double *figures = part_of(p, row) + 2 * s->cols;
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
                     .add = sum_piece,
                     .join = join_sparse_sums,
                     .numbers = 2 * s->cols + GNOMON_SUM_FIGURES,
                     .factor = ldexp(1.0, -shift),
                     .total = total};
    if (status == GNOMON_OK)
        status = gnomon_alloc(s->ctx, column_tasks(s), sizeof *p.figures, "figures of columns",
                              &p.figures);
    status = run_sparse(&p, status);
    gnomon_free(s->ctx, p.figures);
    return status;
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
    return s->standardized ? gnomon_over(less, factor * s->center.scale[j]) : less;
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
static inline void add_up(const sparse_pass *p, int64_t row, int64_t entry)
{
    const gnomon_csr *a = &p->piece.csr;
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
    const sparse_pass *p = arg;
    const gnomon_csr *a = &p->piece.csr;
    for (int64_t row = 0; row < a->rows; row++) {
        double *counts = part_of(p, row);
        for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
             i++) {
            const int64_t j = a->indices[i];
            if (!has_column(p, task, j)) continue;
            cell *const at = &p->cells[j];
            if (at->row != p->piece.own + row) counts[j]++;
            at->row = p->piece.own + row;
        }
    }
}

/* The squares of a row whose columns rise; -1 for another row. */
static void square_row(void *arg, int64_t task, int worker)
{
    (void)worker;
    const sparse_pass *p = arg;
    const gnomon_csr *a = &p->piece.csr;
    const int64_t row = p->row + task;
    double sum = 0;
    int64_t last = -1;
    for (int64_t i = a->offsets[row] - a->offsets[0]; i < a->offsets[row + 1] - a->offsets[0];
         i++) {
        const int64_t j = a->indices[i];
        const double x = gnomon_value_as_f64(a->values, a->dtype, i);
        const double less = deviation(p->s, j, p->factor * x, p->factor);
        sum = j > last && sum >= 0 ? sum + less * less : -1;
        last = j;
    }
    p->squares[task] = sum;
}

/* The squares of a row that may have several entries of one column. */
static double square_any_row(const sparse_pass *p, int64_t row)
{
    const gnomon_csr *a = &p->piece.csr;
    const int64_t first = a->offsets[row] - a->offsets[0];
    const int64_t end = a->offsets[row + 1] - a->offsets[0];
    double sum = 0;
    for (int64_t i = first; i < end; i++)
        p->cells[a->indices[i]].row = -1;
    for (int64_t i = first; i < end; i++)
        add_up(p, p->piece.own + row, i);
    for (int64_t i = first; i < end; i++) {
        cell *const at = &p->cells[a->indices[i]];
        if (at->row != p->piece.own + row) continue;
        const double x = deviation(p->s, a->indices[i], at->sum, p->factor);
        sum += x * x;
        at->row = -1; /* once */
    }
    return sum;
}

static gnomon_status square_piece(sparse_pass *p)
{
    gnomon_context *ctx = p->s->ctx;
    gnomon_parallel(ctx, p->tasks, count_rows, p);
    for (p->row = 0; p->row < p->piece.rows; p->row += SQUARED_ROWS) {
        const int64_t rows = gnomon_min(SQUARED_ROWS, p->piece.rows - p->row);
        gnomon_parallel(ctx, rows, square_row, p);
        for (int64_t i = 0; i < rows; i++)
            part_of(p, p->row + i)[p->s->cols] +=
                p->squares[i] >= 0 ? p->squares[i] : square_any_row(p, p->row + i);
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
                     .add = square_piece,
                     .join = join_squares,
                     .numbers = s->cols + 1,
                     .factor = gnomon_center_factor(s),
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
    const double factor = gnomon_center_factor(s);
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
        gnomon_pair_add(times * (x * x), &sum->high, &sum->low);
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
    const double factor = gnomon_center_halving(t->s), *mean = t->s->center.mean;
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
        gnomon_pair_add(x[0], &sum->high, &sum->low);
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
    const sparse_pass *p = arg;
    const gnomon_csr *a = &p->piece.csr;
    for (int64_t row = 0; row < a->rows; row++) {
        const int64_t first = a->offsets[row] - a->offsets[0], id = p->piece.own + row;
        const int64_t end = a->offsets[row + 1] - a->offsets[0];
        double *result = part_of(p, row), *counts = result + SQUARE_SUM * p->s->cols;
        for (int64_t i = first; i < end; i++)
            if (has_column(p, task, a->indices[i])) add_up(p, id, i);
        for (int64_t i = first; i < end; i++) {
            const int64_t j = a->indices[i];
            if (!has_column(p, task, j) || p->cells[j].row != id) continue;
            add_square(&as_squares(result)[j], p->cells[j].sum - p->factor * p->s->center.mean[j],
                       1);
            counts[j]++;
            p->cells[j].row = -1; /* once */
        }
    }
}

static gnomon_status spread_piece(sparse_pass *p)
{
    gnomon_parallel(p->s->ctx, p->tasks, spread_columns, p);
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
                     .add = spread_piece,
                     .join = join_sparse_spreads,
                     .numbers = (SQUARE_SUM + 1) * s->cols,
                     .factor = gnomon_center_halving(s),
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
            add_square(sum, gnomon_center_halving(s) * c->mean[j],
                       (double)s->rows - sums[SQUARE_SUM * s->cols + j]);
        c->scale[j] = root_mean(sum, (double)(s->rows - 1)) / gnomon_center_halving(s);
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
