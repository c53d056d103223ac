/* Every row read once: Tropp, Yurtsever, Udell & Cevher 2017, algorithm 7. Beside the range Y = A
 * S^T a second, wider sketch W = Psi A of the rows is kept; what Q = orth(Y) leaves of B is the
 * least-squares solution of (Psi Q) B = W. */
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "linalg/blas.h"
#include "svd/center.h"
#include "svd/factor.h"

#include <inttypes.h>
#include <string.h>

typedef struct sketches {
    gnomon_factor *f;
    int64_t columns, l_columns; /* s and l = 2 s + 1 */
    int64_t capacity;           /* rows of q and seen that there is room for */
    gnomon_operator *psi;
    gnomon_tall w;            /* W^T: n x l */
    gnomon_tall test_vectors; /* n x r */
    double *row_sums; /* of Psi, where the rows are less another vector than their mean; and room
                         for as many */
} sketches;

static gnomon_status grow(sketches *k, int64_t rows)
{
    gnomon_factor *f = k->f;
    const size_t size = gnomon_tall_size(f->f64);
    if (rows <= k->capacity) return GNOMON_OK;
    int64_t capacity = f->source.rows > 0 ? f->source.rows : 2 * rows, numbers;
    GNOMON_FAIL_IF(!gnomon_mul(capacity, k->columns, &numbers), f->ctx, GNOMON_ERROR_OVERFLOW,
                   "the range: a product of sizes does not fit 63 bits");
    GNOMON_TRY(
        gnomon_grow(f->ctx, &f->q.data, k->capacity * k->columns, numbers, size, "the range"));
    if (f->options.test_vectors > 0) {
        GNOMON_FAIL_IF(!gnomon_mul(capacity, f->options.test_vectors, &numbers), f->ctx,
                       GNOMON_ERROR_OVERFLOW,
                       "test vectors: a product of sizes does not fit 63 bits");
        GNOMON_TRY(gnomon_grow(f->ctx, &f->seen.data, k->capacity * f->options.test_vectors,
                               numbers, size, "test vectors"));
    }
    k->capacity = capacity;
    return GNOMON_OK;
}

/* Psi's columns for the rows from 'row' on, transposed: rows x l. */
static gnomon_status draw(sketches *k, int64_t row, int64_t rows, gnomon_tall *out)
{
    gnomon_factor *f = k->f;
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, rows, k->l_columns, false,
                                "a block of the operator", out));
    gnomon_matrix transposed = {
        out->data,   f->f64 ? GNOMON_F64 : GNOMON_F32, GNOMON_HOST, k->l_columns, rows, 1,
        k->l_columns};
    return gnomon_operator_block(f->ctx, k->psi, 0, row, &transposed);
}

static gnomon_status add_piece(sketches *k, const gnomon_piece *piece)
{
    gnomon_factor *f = k->f;
    const int64_t rows = piece->row + piece->rows;
    gnomon_tall block = {0};
    GNOMON_TRY(grow(k, rows));
    f->q.rows = f->seen.rows = rows;
    gnomon_tall out = {gnomon_tall_row(&f->q, piece->row), piece->rows, k->columns, f->f64};
    GNOMON_TRY(gnomon_piece_sketch(&f->source, piece, f->op, 0, &out));
    if (f->options.test_vectors > 0) {
        out = (gnomon_tall){gnomon_tall_row(&f->seen, piece->row), piece->rows,
                            f->options.test_vectors, f->f64};
        GNOMON_TRY(gnomon_piece_apply(&f->source, piece, &k->test_vectors, &out));
    }
    gnomon_status status = draw(k, piece->row, piece->rows, &block);
    if (status == GNOMON_OK) status = gnomon_piece_adjoint(&f->source, piece, &block, &k->w);
    if (status == GNOMON_OK && k->row_sums != NULL) {
        gnomon_center_sums(f->ctx, &block, NULL, k->row_sums + k->l_columns);
        for (int64_t j = 0; j < k->l_columns; j++)
            k->row_sums[j] += k->row_sums[k->l_columns + j];
    }
    gnomon_tall_drop(f->ctx, &block);
    return status;
}

static gnomon_status read_all(sketches *k)
{
    gnomon_factor *f = k->f;
    gnomon_piece piece;
    /* Rows in memory were checked before. */
    const bool in_memory = f->source.stream == NULL && !f->source.center.once;
    GNOMON_TRY(gnomon_row_source_rewind(&f->source));
    for (;;) {
        GNOMON_TRY(gnomon_row_source_next(&f->source, &piece));
        if (piece.rows == 0) return GNOMON_OK;
        if (!in_memory) GNOMON_TRY(gnomon_row_source_note(&f->source, &piece));
        GNOMON_TRY(add_piece(k, &piece));
    }
}

/* c (l x s) += Psi Q, piece by piece. */
static gnomon_status press(sketches *k, const gnomon_tall *c)
{
    gnomon_factor *f = k->f;
    const int64_t numbers = c->rows * c->cols;
    void *part = NULL;
    GNOMON_TRY(gnomon_alloc(f->ctx, numbers, gnomon_tall_size(f->f64), "a product", &part));
    gnomon_status status = GNOMON_OK;
    for (int64_t row = 0; row < f->q.rows && status == GNOMON_OK; row += f->source.piece_rows) {
        const int64_t rest = f->q.rows - row;
        const int64_t rows = rest < f->source.piece_rows ? rest : f->source.piece_rows;
        const gnomon_tall q = {gnomon_tall_row(&f->q, row), rows, f->q.cols, f->f64};
        gnomon_tall block = {0};
        status = draw(k, row, rows, &block);
        if (status == GNOMON_OK) status = gnomon_tall_cross(f->ctx, &block, &q, part);
        gnomon_tall_drop(f->ctx, &block);
        for (int64_t i = 0; status == GNOMON_OK && i < numbers; i++) {
            if (f->f64)
                ((double *)c->data)[i] += ((const double *)part)[i];
            else
                ((float *)c->data)[i] += ((const float *)part)[i];
        }
    }
    gnomon_free(f->ctx, part);
    return status;
}

/* B^T = W^T C (C^T C)^-1 with C = Psi Q = U T: W^T U T^-T. */
static gnomon_status solve(sketches *k, const gnomon_tall *c, double *t, gnomon_tall *inverse)
{
    gnomon_factor *f = k->f;
    const int64_t s = k->columns, l = k->l_columns;
    GNOMON_TRY(press(k, c));
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, c, t, &f->orth));
    for (int64_t i = 0; i < s; i++) {
        if (f->f64)
            ((double *)inverse->data)[i * s + i] = 1;
        else
            ((float *)inverse->data)[i * s + i] = 1;
    }
    /* Psi has enough columns that T is well conditioned, so its inverse is as good as a solution.
     */
    GNOMON_TRY(gnomon_tall_divide(f->ctx, inverse, t));
    gnomon_tall m = {0};
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, l, s, false, "a product", &m));
    gnomon_blas_gemm(f->f64, false, true, l, s, s, 1.0, c->data, s, inverse->data, s, 0.0, m.data,
                     s);
    gnomon_tall_multiply(f->ctx, 1.0, &k->w, m.data, 0.0, &f->bt);
    gnomon_tall_drop(f->ctx, &m);
    return GNOMON_OK;
}

/* What the sketches have of rows less their mean: A - 1 c^T was read, and with o = mean - c A S^T
 * is less 1 (S o)^T, W is less (Psi 1) o^T. */
static gnomon_status center(sketches *k)
{
    gnomon_factor *f = k->f;
    const int64_t test_vectors = f->seen.cols,
                  most = k->columns > test_vectors ? k->columns : test_vectors;
    double *offset = NULL, *correction = NULL;
    gnomon_status status = gnomon_center_end(&f->source, &offset);
    if (status == GNOMON_OK)
        status = gnomon_alloc(f->ctx, most, sizeof *correction, "a correction", &correction);
    if (status == GNOMON_OK)
        status = gnomon_center_sketch(f->ctx, f->op, 0, offset, k->columns, correction);
    if (status == GNOMON_OK) {
        gnomon_center_subtract(f->ctx, &f->q, correction);
        if (test_vectors > 0) {
            gnomon_center_sums(f->ctx, &k->test_vectors, offset, correction);
            gnomon_center_subtract(f->ctx, &f->seen, correction);
        }
        for (int64_t i = 0; i < k->w.rows; i++) {
            void *row = gnomon_tall_row(&k->w, i);
            for (int64_t j = 0; j < k->l_columns; j++) {
                const double x = offset[i] * k->row_sums[j];
                if (f->f64)
                    ((double *)row)[j] -= x;
                else
                    ((float *)row)[j] = (float)((double)((float *)row)[j] - x);
            }
        }
    }
    gnomon_free(f->ctx, offset);
    gnomon_free(f->ctx, correction);
    return status;
}

static gnomon_status finish(sketches *k)
{
    gnomon_factor *f = k->f;
    const int64_t s = k->columns;
    gnomon_tall c = {0}, inverse = {0};
    double *t = NULL;
    GNOMON_FAIL_IF(f->q.rows < f->options.rank, f->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("rank") " is %" PRId64 "; it must be at most %" PRId64
                                      ", the smaller side of the matrix",
                   f->options.rank, f->q.rows);
    GNOMON_FAIL_IF(f->q.rows < s, f->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("oversample") " is %" PRId64 "; beside a rank of %" PRId64
                                            " and %" PRId64 " rows it must be at most %" PRId64,
                   s - f->options.rank, f->options.rank, f->q.rows, f->q.rows - f->options.rank);
    if (k->row_sums != NULL) GNOMON_TRY(center(k));
    f->out->project_seconds += gnomon_lap(&f->clock);
    GNOMON_TRY(gnomon_orthonormalise(f->ctx, &f->q, NULL, &f->orth));
    f->out->orthonormalise_seconds += gnomon_lap(&f->clock);
    gnomon_status status =
        gnomon_tall_make(f->ctx, f->f64, f->source.cols, s, false, "the projected matrix", &f->bt);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(f->ctx, f->f64, k->l_columns, s, true, "a product", &c);
    if (status == GNOMON_OK)
        status = gnomon_tall_make(f->ctx, f->f64, s, s, true, "a product", &inverse);
    if (status == GNOMON_OK)
        status = gnomon_alloc(f->ctx, gnomon_times(s, s), sizeof *t, "a triangle", &t);
    if (status == GNOMON_OK) status = solve(k, &c, t, &inverse);
    gnomon_tall_drop(f->ctx, &c);
    gnomon_tall_drop(f->ctx, &inverse);
    gnomon_free(f->ctx, t);
    f->out->small_seconds += gnomon_lap(&f->clock);
    return status;
}

gnomon_status gnomon_factor_psi(gnomon_factor *f, gnomon_operator **psi)
{
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    gnomon_operator_describe(f->test_vectors, &d);
    d.seed ^= UINT64_C(0x2545f4914f6cdd1d); /* another matrix than the test vectors */
    return gnomon_operator_create(f->ctx, &d, psi);
}

static gnomon_status run(sketches *k)
{
    gnomon_factor *f = k->f;
    GNOMON_TRY(gnomon_factor_operator(f, k->columns, false));
    GNOMON_TRY(gnomon_factor_psi(f, &k->psi));
    GNOMON_TRY(gnomon_tall_make(f->ctx, f->f64, f->source.cols, k->l_columns, true,
                                "the sketch of the rows", &k->w));
    if (f->options.test_vectors > 0)
        GNOMON_TRY(gnomon_test_vectors(f, 0, f->options.test_vectors, &k->test_vectors));
    if (f->source.center.once)
        GNOMON_TRY(gnomon_alloc_zero(f->ctx, gnomon_times(2, k->l_columns), sizeof *k->row_sums,
                                     "sums of rows", &k->row_sums));
    f->q = (gnomon_tall){NULL, 0, k->columns, f->f64};
    f->seen = (gnomon_tall){NULL, 0, f->options.test_vectors, f->f64};
    GNOMON_TRY(read_all(k));
    return finish(k);
}

gnomon_status gnomon_range_single(gnomon_factor *f)
{
    sketches k = {.f = f};
    const int64_t over = f->options.oversample;
    int64_t least = f->source.cols;
    if (f->source.rows >= 0 && f->source.rows < least) least = f->source.rows;
    k.columns = over < least - f->options.rank ? f->options.rank + over : least;
    k.l_columns = 2 * k.columns + 1;
    gnomon_status status = run(&k);
    gnomon_tall_drop(f->ctx, &k.w);
    gnomon_tall_drop(f->ctx, &k.test_vectors);
    gnomon_free(f->ctx, k.row_sums);
    gnomon_operator_destroy(k.psi);
    return status;
}
