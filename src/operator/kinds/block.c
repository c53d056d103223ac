/* A dense block of any operator. */
#include "base/arithmetic.h"
#include "base/error.h"
#include "base/threads.h"
#include "operator/kinds/kinds.h"
#include "operator/part.h"
#include "points/view.h"

#include <inttypes.h>

/* Rows and columns of one task at least: a few long rows must be work for all threads. Sparse kinds
 * take whole chunks, since a walk begins at its chunk's start. */
enum { TASK_ROWS = 16, TASK_COLS = 1024, TASK_CHUNKS = 4 };

typedef struct job {
    const gnomon_operator *op;
    const gnomon_matrix *out;
    int64_t row, col;
    int64_t strip, strips; /* columns of a task; tasks side by side */
} job;

static int64_t place(const job *b, int64_t row, int64_t col)
{
    return (row - b->row) * b->out->row_stride + (col - b->col) * b->out->col_stride;
}

static void write_zeros(const job *b, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    for (int64_t i = row; i < row + rows; i++) {
        int64_t at = place(b, i, col);
        for (int64_t j = 0; j < cols; j++, at += b->out->col_stride) {
            if (b->out->dtype == GNOMON_F32)
                ((float *)b->out->data)[at] = 0.0f;
            else
                ((double *)b->out->data)[at] = 0.0;
        }
    }
}

static void write_values(const job *b, int64_t row, int64_t col, int64_t cols, const float *value,
                         double scale)
{
    const int64_t stride = b->out->col_stride;
    if (b->out->dtype == GNOMON_F32) {
        float *out = (float *)b->out->data + place(b, row, col);
        for (int64_t j = 0; j < cols; j++)
            out[j * stride] = (float)(value[j] * scale);
    } else {
        double *out = (double *)b->out->data + place(b, row, col);
        for (int64_t j = 0; j < cols; j++)
            out[j * stride] = value[j] * scale;
    }
}

static void write_dense_part(const job *b, const gnomon_part *p)
{
    const gnomon_simple *a = &b->op->factor[0];
    const int64_t end = p->inner_row + p->rows;
    gnomon_tile tile;
    for (int64_t i = p->inner_row; i < end; i = (i | 3) + 1) {
        for (int64_t c = 0; c < p->cols; c += GNOMON_TILE_COLS) {
            const int64_t width = p->cols - c < GNOMON_TILE_COLS ? p->cols - c : GNOMON_TILE_COLS;
            gnomon_simple_tile(a, (uint32_t)(i >> 2), p->inner_col + c, width, tile);
            for (int64_t r = i; r < end && r <= (i | 3); r++)
                write_values(b, p->row + (r - p->inner_row), p->col + c, width, tile[r & 3],
                             p->scale);
        }
    }
}

typedef struct entry_target {
    const job *b;
    const gnomon_part *p;
} entry_target;

static void write_entry(void *arg, int64_t row, int64_t col, bool negative)
{
    const entry_target *t = arg;
    const float value = negative ? -1.0f : 1.0f;
    write_values(t->b, t->p->row + (row - t->p->inner_row), t->p->col + (col - t->p->inner_col), 1,
                 &value, t->p->scale);
}

static void write_part(const job *b, const gnomon_part *p)
{
    const gnomon_simple *a = &b->op->factor[0];
    if (gnomon_simple_is_sparse(a)) {
        entry_target target = {b, p};
        gnomon_simple_each(a, p->inner_row, p->rows, p->inner_col, p->cols, write_entry, &target);
    } else {
        write_dense_part(b, p);
    }
}

static void write_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const job *b = arg;
    const int64_t row = b->row + task / b->strips * TASK_ROWS;
    const int64_t col = b->col + task % b->strips * b->strip;
    const int64_t rows_left = b->row + b->out->rows - row;
    const int64_t cols_left = b->col + b->out->cols - col;
    const int64_t end = row + (rows_left < TASK_ROWS ? rows_left : TASK_ROWS);
    const int64_t cols = cols_left < b->strip ? cols_left : b->strip;

    if (b->op->descriptor.kind == GNOMON_BLOCK || gnomon_simple_is_sparse(&b->op->factor[0]))
        write_zeros(b, row, end - row, col, cols);
    for (int64_t i = row; i < end;) {
        const gnomon_part p = gnomon_first_part(b->op, i, end - i, col, cols);
        write_part(b, &p);
        i += p.rows;
    }
}

gnomon_status gnomon_operator_block(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                    int64_t col, const gnomon_matrix *out)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(op == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("op") " is NULL");
    GNOMON_TRY(gnomon_check_view(ctx, out, "out"));
    GNOMON_FAIL_IF(out->dtype != GNOMON_F32 && out->dtype != GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("out.dtype") " is %s; it must be f32 or f64",
                   gnomon_dtype_name(out->dtype));
    GNOMON_FAIL_IF(
        (out->rows > 1 && out->row_stride == 0) || (out->cols > 1 && out->col_stride == 0), ctx,
        GNOMON_ERROR_ARGUMENT,
        "out's strides are %" PRId64 " and %" PRId64 "; a stride of an output must not be 0",
        out->row_stride, out->col_stride);
    GNOMON_TRY(gnomon_check_block(ctx, op, row, out->rows, col, out->cols));
    if (out->rows == 0 || out->cols == 0) return GNOMON_OK;
    if (op->descriptor.kind == GNOMON_KRONECKER)
        return gnomon_kronecker_block(ctx, op, row, col, out);

    job b = {op, out, row, col, TASK_COLS, 0};
    if (gnomon_simple_is_sparse(&op->factor[0]))
        b.strip = gnomon_max(TASK_COLS, TASK_CHUNKS * op->factor[0].chunk);
    b.strips = (out->cols - 1) / b.strip + 1;
    gnomon_parallel(ctx, b.strips * ((out->rows - 1) / TASK_ROWS + 1), write_task, &b);
    return GNOMON_OK;
}
