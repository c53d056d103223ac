/* The nonzeros of a block as CSR: a first pass counts each row's, a second writes them. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "operator/kinds/kinds.h"
#include "operator/part.h"

#include <string.h>

enum { TASK_ROWS = 16 };

typedef struct job {
    const gnomon_operator *op;
    int64_t row, rows, col, cols;
    const gnomon_matrix *dense; /* kronecker: the block, made dense before */
    gnomon_dtype dtype;
    int64_t *offsets; /* while counting, offsets[i + 1] is row i's count */
    int64_t *indices; /* NULL while counting */
    void *values;
} job;

/* Rows of one part: counted, or written from their offsets on. */
typedef struct cursor {
    const job *b;
    gnomon_part part;
    int64_t next[TASK_ROWS]; /* by row of the part */
} cursor;

static void put(cursor *c, int64_t row, int64_t col, double value)
{
    const job *b = c->b;
    const int64_t at = c->next[row - c->part.row]++;
    if (b->indices == NULL) return;
    b->indices[at] = col - b->col;
    if (b->dtype == GNOMON_F32)
        ((float *)b->values)[at] = (float)value;
    else
        ((double *)b->values)[at] = value;
}

static void put_entry(void *arg, int64_t row, int64_t col, bool negative)
{
    cursor *c = arg;
    put(c, c->part.row + (row - c->part.inner_row), c->part.col + (col - c->part.inner_col),
        negative ? -c->part.scale : c->part.scale);
}

static void put_tiles(cursor *c)
{
    const gnomon_part *p = &c->part;
    const gnomon_simple *a = &c->b->op->factor[0];
    const int64_t end = p->inner_row + p->rows;
    gnomon_tile tile;
    for (int64_t i = p->inner_row; i < end; i = (i | 3) + 1) {
        for (int64_t u = 0; u < p->cols; u += GNOMON_TILE_COLS) {
            const int64_t width = p->cols - u < GNOMON_TILE_COLS ? p->cols - u : GNOMON_TILE_COLS;
            gnomon_simple_tile(a, (uint32_t)(i >> 2), p->inner_col + u, width, tile);
            for (int64_t r = i; r < end && r <= (i | 3); r++)
                for (int64_t v = 0; v < width; v++)
                    if (tile[r & 3][v] != 0.0f)
                        put(c, p->row + (r - p->inner_row), p->col + u + v,
                            tile[r & 3][v] * p->scale);
        }
    }
}

static void put_dense(cursor *c)
{
    const gnomon_part *p = &c->part;
    const gnomon_matrix *m = c->b->dense;
    for (int64_t i = p->row; i < p->row + p->rows; i++) {
        for (int64_t j = 0; j < m->cols; j++) {
            const int64_t at = (i - c->b->row) * m->row_stride + j;
            const double value = m->dtype == GNOMON_F32 ? ((const float *)m->data)[at]
                                                        : ((const double *)m->data)[at];
            if (value != 0.0) put(c, i, c->b->col + j, value);
        }
    }
}

static void run_task(void *arg, int64_t task, int worker)
{
    (void)worker;
    const job *b = arg;
    const int64_t row = b->row + task * TASK_ROWS;
    const int64_t left = b->row + b->rows - row;
    const int64_t end = row + (left < TASK_ROWS ? left : TASK_ROWS);
    for (int64_t i = row; i < end;) {
        cursor c = {.b = b};
        c.part = gnomon_first_part(b->op, i, end - i, b->col, b->cols);
        if (b->indices != NULL)
            memcpy(c.next, b->offsets + (i - b->row), (size_t)c.part.rows * sizeof c.next[0]);
        if (b->dense != NULL)
            put_dense(&c);
        else if (gnomon_simple_is_sparse(&b->op->factor[0]))
            gnomon_simple_each(&b->op->factor[0], c.part.inner_row, c.part.rows, c.part.inner_col,
                               c.part.cols, put_entry, &c);
        else
            put_tiles(&c);
        if (b->indices == NULL)
            memcpy(b->offsets + (i - b->row) + 1, c.next, (size_t)c.part.rows * sizeof c.next[0]);
        i += c.part.rows;
    }
}

static gnomon_status fill(gnomon_context *ctx, job *b, gnomon_csr *out)
{
    const int64_t tasks = (b->rows + TASK_ROWS - 1) / TASK_ROWS;
    const int64_t offsets_size = (b->rows + 1) * (int64_t)sizeof(int64_t);
    unsigned char *memory;
    GNOMON_TRY(gnomon_alloc_zero(ctx, offsets_size, 1, "offsets of a sparse block", &memory));
    b->offsets = (int64_t *)(void *)memory;
    gnomon_parallel(ctx, tasks, run_task, b);
    for (int64_t i = 0; i < b->rows; i++)
        b->offsets[i + 1] += b->offsets[i];

    const int64_t nonzeros = b->offsets[b->rows];
    const int64_t entry_size = (int64_t)(sizeof(int64_t) + gnomon_dtype_size(b->dtype));
    int64_t size;
    gnomon_status status = GNOMON_OK;
    if (!gnomon_mul(nonzeros, entry_size, &size) || !gnomon_add(size, offsets_size, &size))
        status = gnomon_fail(ctx, GNOMON_ERROR_OVERFLOW,
                             "a sparse block of %lld nonzeros is more than memory can count",
                             (long long)nonzeros);
    if (status == GNOMON_OK)
        status = gnomon_grow(ctx, &memory, offsets_size, size, 1, "a sparse block");
    if (status != GNOMON_OK) {
        gnomon_free(ctx, memory);
        return status;
    }
    b->offsets = (int64_t *)(void *)memory;
    b->indices = b->offsets + b->rows + 1;
    b->values = b->indices + nonzeros;
    gnomon_parallel(ctx, tasks, run_task, b);
    const gnomon_csr csr = {b->rows, b->cols, b->offsets, b->indices, b->values, b->dtype};
    *out = csr;
    return GNOMON_OK;
}

/* An entry of the cascade is known to be zero only when it has been made. */
static gnomon_status fill_kronecker(gnomon_context *ctx, job *b, gnomon_csr *out)
{
    int64_t count;
    GNOMON_FAIL_IF(!gnomon_mul(b->rows, b->cols, &count), ctx, GNOMON_ERROR_OVERFLOW,
                   "a block of %lld x %lld entries is more than memory can count",
                   (long long)b->rows, (long long)b->cols);
    void *data;
    GNOMON_TRY(gnomon_alloc(ctx, count, gnomon_dtype_size(b->dtype), "a block of entries", &data));
    const gnomon_matrix dense = gnomon_matrix_rowmajor(data, b->dtype, b->rows, b->cols);
    gnomon_status status = gnomon_operator_block(ctx, b->op, b->row, b->col, &dense);
    b->dense = &dense;
    if (status == GNOMON_OK) status = fill(ctx, b, out);
    gnomon_free(ctx, data);
    return status;
}

gnomon_status gnomon_operator_block_csr(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                        int64_t col, int64_t rows, int64_t cols, gnomon_dtype dtype,
                                        gnomon_csr *out)
{
    GNOMON_FAIL_IF(out == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    memset(out, 0, sizeof *out);
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(op == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("op") " is NULL");
    GNOMON_FAIL_IF(dtype != GNOMON_F32 && dtype != GNOMON_F64, ctx, GNOMON_ERROR_DTYPE,
                   GNOMON_ARG("dtype") " is %s; it must be f32 or f64", gnomon_dtype_name(dtype));
    GNOMON_TRY(gnomon_check_block(ctx, op, row, rows, col, cols));
    job b = {.op = op, .row = row, .rows = rows, .col = col, .cols = cols, .dtype = dtype};
    if (op->descriptor.kind == GNOMON_KRONECKER) return fill_kronecker(ctx, &b, out);
    return fill(ctx, &b, out);
}

void gnomon_csr_free(gnomon_context *ctx, gnomon_csr *csr)
{
    if (ctx == NULL || csr == NULL) return;
    /* the offsets begin the one allocation */
    gnomon_free(ctx, (void *)(uintptr_t)csr->offsets);
    memset(csr, 0, sizeof *csr);
}
