/* The size of the sketch that costs least, and S A and S b by one pass. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lstsq/lstsq.h"
#include "points/view.h"
#include "project/job.h"

#include <math.h>
#include <string.h>

/* Seconds, roughly and up to a factor, as they were measured on two cores: of a flop of a
 * factorisation and of A^T A, of a number of A that a pass takes from memory and of one that goes
 * through a sketch, and of a multiplication with it. */
#define FLOP         3e-11
#define GRAM_FLOP    1.1e-11
#define NUMBER       5e-10
#define SKETCH       4e-9
#define FACTOR_FLOPS 6.0
/* Conjugate gradients gain about sqrt(k / d) a step, and this is what they have to gain in all. */
#define TO_GAIN 32.0

static double passes_cost(const gnomon_solver *s, double passes)
{
    const double cols = (double)(s->m + s->options.test_vectors);
    const double number = fmax(NUMBER, 2 * FLOP * 2 * cols);
    return passes * (double)s->n * (double)s->d * number;
}

/* The rows that cost least, and what they cost. */
static int64_t cheapest(const gnomon_solver *s, double *cost)
{
    enum { DIRECT_NUMBERS = 1 << 22, SKETCH_NUMBERS = 1 << 19, LEAST_WIDTH = 16 };
    static const int64_t times[] = {4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    const double flops = FACTOR_FLOPS * FLOP * (double)s->d * (double)s->d;
    const int64_t width = s->d > LEAST_WIDTH ? s->d : LEAST_WIDTH;
    int64_t best = 0;
    *cost = INFINITY;
    if (s->n <= 4 * width) return 0;
    /* A copy of A is no matter while it is small. */
    if (s->n <= DIRECT_NUMBERS / s->d) *cost = flops * (double)s->n + passes_cost(s, 2);
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        int64_t k;
        if (!gnomon_mul(times[i], width, &k) || k >= s->n) break;
        if (times[i] > 16 && k > SKETCH_NUMBERS / width) break;
        const double steps = TO_GAIN / (0.5 * log((double)times[i]));
        const double c = flops * (double)k + passes_cost(s, 2 + steps);
        if (c >= *cost) continue;
        *cost = c;
        best = k;
    }
    return best;
}

int64_t gnomon_solver_rows(const gnomon_solver *s)
{
    double cost;
    if (s->options.sketch_size > 0)
        return s->options.sketch_size < s->n ? s->options.sketch_size : 0;
    return cheapest(s, &cost);
}

/* A^T A leaves a step or two. */
bool gnomon_solver_gram_is_cheaper(const gnomon_solver *s)
{
    const double d = (double)s->d, numbers = (double)s->n * d;
    double cost;
    if (s->options.sketch_size > 0 || s->options.descriptor != NULL || s->options.rcond > 0 ||
        s->source.csr != NULL || s->underdetermined != NULL || cheapest(s, &cost) == 0)
        return false;
    return numbers * (NUMBER + GRAM_FLOP * (d + 2 * (double)s->m)) + passes_cost(s, 5) <
           cost + SKETCH * numbers;
}

/* A piece as doubles, row-major, into rows of out from 'row' on. */
static void copy_piece(const gnomon_piece *piece, const gnomon_tall *out, int64_t row)
{
    const gnomon_matrix *m = &piece->dense;
    for (int64_t i = 0; i < piece->rows; i++) {
        double *to = gnomon_tall_row(out, row + i);
        if (piece->sparse) {
            const gnomon_csr *a = &piece->csr;
            for (int64_t e = a->offsets[i] - a->offsets[0]; e < a->offsets[i + 1] - a->offsets[0];
                 e++)
                to[a->indices[e]] += a->dtype == GNOMON_F64 ? ((const double *)a->values)[e]
                                                            : (double)((const float *)a->values)[e];
            continue;
        }
        for (int64_t j = 0; j < out->cols; j++) {
            const int64_t at = i * m->row_stride + j * m->col_stride;
            to[j] = m->dtype == GNOMON_F64 ? ((const double *)m->data)[at]
                                           : (double)((const float *)m->data)[at];
        }
    }
}

static gnomon_status add_copy(void *user, const gnomon_piece *piece, int64_t row, bool first,
                              void *result)
{
    const gnomon_solver *s = user;
    const gnomon_tall out = {result, piece->row - row + piece->rows, s->d, true};
    (void)first;
    copy_piece(piece, &out, piece->row - row);
    return GNOMON_OK;
}

static void *place_copy(void *user, int64_t row)
{
    const gnomon_solver *s = user;
    return gnomon_tall_row(&s->sa, row);
}

static gnomon_status take_copy(void *user, int64_t row, int64_t rows, const void *result, bool own)
{
    const gnomon_solver *s = user;
    (void)own;
    memcpy(gnomon_tall_row(&s->sa, row), result, (size_t)(rows * s->d) * sizeof(double));
    return GNOMON_OK;
}

/* Sparse rows, to their places in s->sa, or on the ranks that serve one behind the other. */
static gnomon_status copy_sparse(void *user)
{
    gnomon_solver *s = user;
    gnomon_piece piece;
    GNOMON_TRY(gnomon_row_source_rewind(&s->source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(&s->source, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        for (int64_t row = 0; row < piece.rows; row++) {
            gnomon_piece one = piece;
            one.rows = 1;
            one.csr = gnomon_csr_rows(&piece.csr, row, 1);
            copy_piece(&one, &s->sa, gnomon_row_in_tall(&s->source, piece.own + row));
        }
    }
}

static gnomon_status copy_rows(gnomon_solver *s)
{
    const gnomon_row_pass pass = {.user = s,
                                  .add = add_copy,
                                  .place = place_copy,
                                  .take = take_copy,
                                  .row_bytes = gnomon_times(s->d, sizeof(double))};
    gnomon_status status = GNOMON_OK;
    GNOMON_TRY(gnomon_row_step_tell(&s->source, GNOMON_STEP_COPY, NULL));
    if (s->source.sparse && gnomon_row_serves(&s->source))
        status =
            gnomon_tall_make(s->ctx, true, s->source.own_rows, s->d, true, "rows of a", &s->sa);
    if (s->source.sparse) return gnomon_part_rows_run(&s->source, copy_sparse, s, &s->sa, status);
    return gnomon_row_pass_run(&s->source, &pass, GNOMON_OK);
}

static gnomon_status copy_all(gnomon_solver *s)
{
    GNOMON_TRY(copy_rows(s));
    gnomon_solver_read_b(s, 0, s->n, s->sb.data);
    return GNOMON_OK;
}

/* The columns of a tall matrix as points: what a projection takes and gives. */
static gnomon_matrix transposed(const gnomon_tall *t)
{
    return (gnomon_matrix){t->data, GNOMON_F64, GNOMON_HOST, t->cols, t->rows, 1, t->cols};
}

/* S A is the projection of A's columns, whose coordinates come in pieces; so is S b. A segment's
 * share of both, S b behind S A; the first one's goes straight to s->sa and s->sb. */
typedef struct shares {
    gnomon_solver *s;
    gnomon_operator *op;
    int64_t k;
} shares;

static gnomon_status add_to(const shares *x, const gnomon_matrix *points, int64_t row, double beta,
                            const gnomon_tall *out)
{
    gnomon_sketch_options options = GNOMON_SKETCH_OPTIONS_INIT;
    const gnomon_matrix y = transposed(out);
    options.allow_nonfinite = 1; /* it was scanned already */
    options.col = row;
    options.beta = beta;
    return gnomon_sketch_at(x->s->ctx, GNOMON_ON_CPU, x->op, points, &y, &options);
}

static gnomon_status add_share(void *user, const gnomon_piece *piece, int64_t row, bool first,
                               void *result)
{
    const shares *x = user;
    gnomon_solver *s = x->s;
    const gnomon_tall sa = {result, x->k, s->d, true};
    const gnomon_tall sb = {result == s->sa.data ? s->sb.data : (double *)result + x->k * s->d,
                            x->k, s->m, true};
    const double beta = first ? 0 : 1;
    gnomon_tall lines = {0};
    gnomon_matrix points = gnomon_matrix_transposed(&piece->dense);
    (void)row;
    GNOMON_TRY(add_to(x, &points, piece->row, beta, &sa));
    GNOMON_TRY(gnomon_tall_make(s->ctx, true, piece->rows, s->m, false, "a piece of b", &lines));
    gnomon_solver_read_b(s, piece->row, piece->rows, lines.data);
    points = transposed(&lines);
    const gnomon_status status = add_to(x, &points, piece->row, beta, &sb);
    gnomon_tall_drop(s->ctx, &lines);
    return status;
}

static void *place_share(void *user, int64_t row)
{
    const shares *x = user;
    return row == 0 ? x->s->sa.data : NULL;
}

static gnomon_status take_share(void *user, int64_t row, int64_t rows, const void *result, bool own)
{
    const shares *x = user;
    gnomon_solver *s = x->s;
    (void)row;
    (void)rows;
    (void)own;
    gnomon_row_pass_sum(s->ctx, true, x->k * s->d, result, s->sa.data);
    gnomon_row_pass_sum(s->ctx, true, x->k * s->m, (const double *)result + x->k * s->d,
                        s->sb.data);
    return GNOMON_OK;
}

static gnomon_status add_shares(gnomon_solver *s, gnomon_operator *op, int64_t k)
{
    shares x = {.s = s, .op = op, .k = k};
    const gnomon_row_pass pass = {.user = &x,
                                  .add = add_share,
                                  .place = place_share,
                                  .take = take_share,
                                  .bytes =
                                      gnomon_times(gnomon_times(k, s->d + s->m), sizeof(double))};
    return gnomon_row_pass_run(&s->source, &pass, GNOMON_OK);
}

/* Rows of S A and S b += a block of S's columns times sparse rows of A, and b. Each part of the
 * rows has a sum of its own, S b behind S A. */
enum { SKETCH_ROWS = 16 };
typedef struct product {
    gnomon_solver *s;
    gnomon_operator *op;
    int64_t k;
    double *sums;     /* of each part: k x d, k x m */
    gnomon_csr block; /* k x rows */
    gnomon_csr a;     /* rows x d */
    int64_t own;      /* the first one's number */
    const double *b;  /* rows x m */
} product;

static int64_t numbers_of(const product *p)
{
    return p->k * (p->s->d + p->s->m);
}

static void multiply_rows(void *arg, int64_t task, int worker)
{
    (void)worker;
    const product *p = arg;
    const gnomon_csr *s = &p->block, *a = &p->a;
    const int64_t m = p->s->m, d = p->s->d, end = gnomon_min((task + 1) * SKETCH_ROWS, s->rows);
    for (int64_t i = task * SKETCH_ROWS; i < end; i++) {
        for (int64_t e = s->offsets[i]; e < s->offsets[i + 1]; e++) {
            const double entry = ((const double *)s->values)[e];
            const int64_t row = s->indices[e];
            double *sums = p->sums + gnomon_part_of(&p->s->source, p->own + row) * numbers_of(p);
            double *out = sums + i * d, *right = sums + p->k * d + i * m;
            for (int64_t at = a->offsets[row] - a->offsets[0];
                 at < a->offsets[row + 1] - a->offsets[0]; at++)
                out[a->indices[at]] +=
                    entry * (a->dtype == GNOMON_F64 ? ((const double *)a->values)[at]
                                                    : (double)((const float *)a->values)[at]);
            for (int64_t j = 0; j < m; j++)
                right[j] += entry * p->b[row * m + j];
        }
    }
}

/* Rows of the piece that lie together among all. */
static gnomon_status multiply(product *p, const gnomon_piece *piece, int64_t first, int64_t rows)
{
    gnomon_solver *s = p->s;
    gnomon_tall lines = {0};
    const int64_t own = piece->own + first, place = gnomon_place_of(&s->source, own);
    p->a = gnomon_csr_rows(&piece->csr, first, rows);
    gnomon_status status =
        gnomon_operator_block_csr(s->ctx, p->op, 0, place, p->k, rows, GNOMON_F64, &p->block);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(s->ctx, true, rows, s->m, false, "a piece of b", &lines);
    if (status == GNOMON_OK) {
        gnomon_solver_read_b(s, place, rows, lines.data);
        p->own = own;
        p->b = lines.data;
        gnomon_parallel(s->ctx, (p->k + SKETCH_ROWS - 1) / SKETCH_ROWS, multiply_rows, p);
    }
    gnomon_tall_drop(s->ctx, &lines);
    gnomon_csr_free(s->ctx, &p->block);
    return status;
}

static gnomon_status sketch_parts(void *user, gnomon_status status)
{
    enum { ENTRIES = 1 << 20 };
    product *p = user;
    gnomon_solver *s = p->s;
    gnomon_row_source *source = &s->source;
    gnomon_piece piece;
    const double column = gnomon_operator_fill(p->op) * (double)p->k;
    int64_t step = (int64_t)fmin(ENTRIES / fmax(column, 1), 65536);
    GNOMON_TRY(status);
    step = step > 0 ? step : 1;
    GNOMON_TRY(gnomon_row_source_rewind(source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(source, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        for (int64_t row = 0, rows; row < piece.rows; row += rows) {
            rows = gnomon_min(step, piece.rows - row);
            if (gnomon_row_divided(source)) /* chunks of a rank lie apart */
                rows = gnomon_min(rows, GNOMON_CHUNK - (piece.own + row) % GNOMON_CHUNK);
            GNOMON_TRY(multiply(p, &piece, row, rows));
            GNOMON_TRY(gnomon_progress(s->ctx, "passes", source->passes, -1));
        }
    }
}

static const void *part_sketch(void *user, int part)
{
    const product *p = user;
    return p->sums + part * numbers_of(p);
}

static gnomon_status take_sketch(void *user, int part, const void *result, bool own)
{
    const product *p = user;
    (void)own;
    return take_share(&(shares){.s = p->s, .op = p->op, .k = p->k}, part, 0, result, false);
}

/* s->sa and s->sb begin as zeros, on rank 0. */
static gnomon_status add_parts(gnomon_solver *s, gnomon_operator *op, int64_t k)
{
    product p = {.s = s, .op = op, .k = k};
    const int64_t numbers = gnomon_times(k, s->d + s->m);
    const gnomon_part_pass pass = {.user = &p,
                                   .run = sketch_parts,
                                   .result = part_sketch,
                                   .take = take_sketch,
                                   .bytes = gnomon_times(numbers, sizeof(double))};
    gnomon_status status =
        gnomon_alloc_zero(s->ctx, gnomon_times(numbers, gnomon_parts_here(&s->source)),
                          sizeof *p.sums, "the sketch of a", &p.sums);
    status = gnomon_part_pass_run(&s->source, &pass, status);
    gnomon_free(s->ctx, p.sums);
    return status;
}

static gnomon_status add_all(gnomon_solver *s, gnomon_operator *op, int64_t k)
{
    return s->source.sparse ? add_parts(s, op, k) : add_shares(s, op, k);
}

static gnomon_status sketch_rows(gnomon_solver *s)
{
    const int64_t numbers[6] = {s->sa.rows};
    GNOMON_TRY(gnomon_row_step_tell(&s->source, GNOMON_STEP_SKETCH_COLUMNS, numbers));
    GNOMON_TRY(gnomon_row_step_operator(&s->source, &s->op));
    return add_all(s, s->op, s->sa.rows);
}

gnomon_status gnomon_solver_sketch_serve(gnomon_solver *s, const gnomon_row_step *step)
{
    gnomon_operator *op = NULL;
    if (step->kind == GNOMON_STEP_COPY) {
        const gnomon_status status = copy_rows(s);
        gnomon_tall_drop(s->ctx, &s->sa);
        return status;
    }
    GNOMON_TRY(gnomon_row_step_operator(&s->source, &op));
    const gnomon_status status = add_all(s, op, step->numbers[0]);
    gnomon_operator_destroy(op);
    return status;
}

gnomon_status gnomon_solver_sketch(gnomon_solver *s)
{
    const int64_t k = gnomon_solver_rows(s), rows = k > 0 ? k : s->n;
    s->out->k = rows;
    s->out->sketched = k > 0;
    GNOMON_TRY(gnomon_tall_make(s->ctx, true, rows, s->d, true, "the sketch of a", &s->sa));
    GNOMON_TRY(gnomon_tall_make(s->ctx, true, rows, s->m, true, "the sketch of b", &s->sb));
    if (k == 0) return copy_all(s);
    s->wanted.k = k;
    s->wanted.d = s->n;
    GNOMON_TRY(gnomon_operator_create(s->ctx, &s->wanted, &s->op));
    gnomon_operator_describe(s->op, &s->out->descriptor);
    return sketch_rows(s);
}
