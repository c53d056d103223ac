#include "hosvd/slabs.h"

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "linalg/blas.h"
#include "points/rows.h"
#include "points/view.h"
#include "svd/row_pass.h"

#include <inttypes.h>
#include <string.h>

enum { SLAB_NUMBERS = 1 << 23, LINE = 1024, LINES = 64 };

/* Whether mode a lies outside b. */
static bool outside(const gnomon_tensor *x, int a, int b)
{
    if ((x->size[a] == 1) != (x->size[b] == 1)) return x->size[b] == 1;
    if (x->size[a] == 1) return a < b;
    const int64_t p = gnomon_abs(x->stride[a]), q = gnomon_abs(x->stride[b]);
    return p != q ? p > q : a < b;
}

gnomon_status gnomon_tensor_check(gnomon_context *ctx, const gnomon_tensor *x, bool streamed,
                                  int order[GNOMON_TENSOR_MODES])
{
    GNOMON_FAIL_IF(x == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("x") " is NULL");
    GNOMON_FAIL_IF(gnomon_dtype_size(x->dtype) == 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.dtype") " is %d; it must be one of gnomon_dtype", (int)x->dtype);
    GNOMON_FAIL_IF(
        x->memory != GNOMON_HOST && x->memory != GNOMON_DEVICE_MEMORY, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("x.memory") " is %d; it must be GNOMON_HOST (0) or GNOMON_DEVICE_MEMORY (1)",
        (int)x->memory);
    GNOMON_FAIL_IF(x->memory != GNOMON_HOST && streamed, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.memory") " is %d; a stream's pieces come to host memory (0)",
                   (int)x->memory);
    GNOMON_FAIL_IF(x->modes < 1 || x->modes > GNOMON_TENSOR_MODES, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x") " has %d modes; allowed are 1 to %d", x->modes,
                   GNOMON_TENSOR_MODES);
    int64_t count = (int64_t)sizeof(double), extent = 1, reach;
    for (int n = 0; n < x->modes; n++) {
        GNOMON_FAIL_IF(
            x->size[n] < 1, ctx, x->size[n] == 0 ? GNOMON_ERROR_SHAPE : GNOMON_ERROR_ARGUMENT,
            "mode %d of x has size %" PRId64 "; every mode must have at least 1", n, x->size[n]);
        GNOMON_FAIL_IF(x->size[n] > GNOMON_BLAS_MAX, ctx, GNOMON_ERROR_UNSUPPORTED,
                       "mode %d of x has size %" PRId64 "; at most %" PRId64 " are taken", n,
                       x->size[n], GNOMON_BLAS_MAX);
        GNOMON_FAIL_IF(!gnomon_mul(count, x->size[n], &count), ctx, GNOMON_ERROR_OVERFLOW,
                       "the product of x's sizes does not fit memory: mode %d has %" PRId64, n,
                       x->size[n]);
    }
    for (int n = 0; n < x->modes; n++)
        GNOMON_FAIL_IF(x->stride[n] == INT64_MIN ||
                           !gnomon_mul(x->size[n] - 1, gnomon_abs(x->stride[n]), &reach) ||
                           !gnomon_add(extent, reach, &extent) ||
                           !gnomon_mul(extent, (int64_t)gnomon_dtype_size(x->dtype), &reach),
                       ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("x.stride") "[%d] is %" PRId64 ", with %" PRId64
                                              " elements: further than memory can count",
                       n, x->stride[n], x->size[n]);
    GNOMON_FAIL_IF(x->data == NULL && !streamed, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.data") " is NULL");
    if (!streamed)
        GNOMON_TRY(gnomon_check_aligned(ctx, x->data, gnomon_dtype_size(x->dtype), "x", "data"));
    for (int n = 0; n < x->modes; n++) {
        int at = n;
        for (; at > 0 && outside(x, n, order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = n;
    }
    return GNOMON_OK;
}

/* Elements of any strides, line by line of the innermost mode. */
typedef struct gathering {
    const gnomon_scattered *from;
    const gnomon_matrix *to;
    int64_t line, lines; /* elements of a line, lines in all */
} gathering;

static void gather_lines(void *arg, int64_t task, int worker)
{
    (void)worker;
    const gathering *g = arg;
    const gnomon_tensor *t = &g->from->tensor;
    const int last = t->modes - 1;
    double buffer[LINE];
    const int64_t end = (task + 1) * LINES < g->lines ? (task + 1) * LINES : g->lines;
    for (int64_t i = task * LINES; i < end; i++) {
        int64_t rest = i, at = g->from->row * t->stride[0];
        for (int n = last - 1; n >= 0; n--) {
            const int64_t index = n > 0 ? rest % t->size[n] : rest;
            at += index * t->stride[n];
            rest /= t->size[n];
        }
        for (int64_t j = 0; j < g->line; j += LINE) {
            const int64_t count = g->line - j < LINE ? g->line - j : LINE;
            const gnomon_matrix row = {(char *)t->data + (at + j * t->stride[last]) *
                                                             (int64_t)gnomon_dtype_size(t->dtype),
                                       t->dtype,
                                       GNOMON_HOST,
                                       1,
                                       count,
                                       0,
                                       t->stride[last]};
            gnomon_row_as_f64(&row, 0, 0, count, buffer);
            gnomon_f64_to_type(g->to->dtype == GNOMON_F64, count, buffer,
                               (char *)g->to->data +
                                   (i * g->line + j) * (int64_t)gnomon_dtype_size(g->to->dtype));
        }
    }
}

static gnomon_status gather_next(void *user, const gnomon_matrix *dst, int64_t *got)
{
    gnomon_scattered *s = user;
    const gnomon_tensor *t = &s->tensor;
    const int64_t rest = t->size[0] - s->row, rows = dst->rows < rest ? dst->rows : rest;
    gathering g = {s, dst, t->size[t->modes - 1], rows};
    for (int n = 1; n < t->modes - 1; n++)
        g.lines *= t->size[n];
    if (t->modes == 1) { /* the rows themselves are a line */
        g.line = rows;
        g.lines = rows > 0;
    }
    gnomon_parallel(s->ctx, (g.lines + LINES - 1) / LINES, gather_lines, &g);
    s->row += rows;
    *got = rows;
    return GNOMON_OK;
}

static gnomon_status gather_rewind(void *user)
{
    ((gnomon_scattered *)user)->row = 0;
    return GNOMON_OK;
}

/* Whether the modes follow each other without gaps, inside each index of the outermost. */
static bool is_packed(const gnomon_tensor *t)
{
    int64_t step = 1;
    for (int n = t->modes - 1; n > 0; n--) {
        if (t->size[n] > 1 && t->stride[n] != step) return false;
        step *= t->size[n];
    }
    return t->size[0] == 1 || (t->modes == 1 ? t->stride[0] == 1 : t->stride[0] >= step);
}

int64_t gnomon_slab_rows(int64_t rows, int64_t cols)
{
    const int64_t most = SLAB_NUMBERS / cols;
    return most < 1 ? 1 : most < rows ? most : rows;
}

static gnomon_status open_source(gnomon_context *ctx, const gnomon_svd_rows *rows, bool f64,
                                 gnomon_slabs *slabs)
{
    const gnomon_matrix *matrix = rows == NULL ? &slabs->matrix : NULL;
    GNOMON_TRY(gnomon_row_source_open_part(ctx, matrix, NULL, rows, f64, &slabs->source));
    slabs->source.piece_rows = gnomon_slab_rows(slabs->size[0], slabs->source.cols);
    slabs->source.direct = matrix != NULL && matrix->dtype == (f64 ? GNOMON_F64 : GNOMON_F32) &&
                           matrix->row_stride == matrix->cols;
    return GNOMON_OK;
}

gnomon_status gnomon_slabs_open(gnomon_context *ctx, const gnomon_tensor *x,
                                const gnomon_svd_rows *rows, int64_t here, bool f64,
                                gnomon_slabs *slabs)
{
    int64_t cols = 1;
    memset(slabs, 0, sizeof *slabs);
    slabs->modes = x->modes;
    memcpy(slabs->size, x->size, sizeof slabs->size);
    for (int n = 1; n < x->modes; n++)
        cols *= x->size[n];
    slabs->matrix = (gnomon_matrix){x->data, x->dtype, GNOMON_HOST, here, cols, cols, 1};
    if (x->modes > 1 && x->size[0] > 1) slabs->matrix.row_stride = x->stride[0];
    if (rows != NULL) {
        slabs->rows = *rows;
    } else if (is_packed(x)) {
        return open_source(ctx, NULL, f64, slabs);
    } else {
        slabs->scattered = (gnomon_scattered){ctx, *x, 0};
        slabs->scattered.tensor.size[0] = here;
        slabs->rows =
            (gnomon_svd_rows){&slabs->scattered, here, cols, x->dtype, gather_next, gather_rewind};
    }
    return open_source(ctx, &slabs->rows, f64, slabs);
}

gnomon_status gnomon_slabs_of_cube(gnomon_context *ctx, const gnomon_cube *cube,
                                   gnomon_slabs *slabs)
{
    const gnomon_tensor t = gnomon_tensor_packed(cube->data, cube->f64 ? GNOMON_F64 : GNOMON_F32,
                                                 cube->modes, cube->size, 0);
    return gnomon_slabs_open(ctx, &t, NULL, cube->size[0], cube->f64, slabs);
}

/* What all ranks must have alike. */
typedef struct tensor_terms {
    int64_t f64, modes, size[GNOMON_TENSOR_MODES], names[GNOMON_TENSOR_MODES];
} tensor_terms;

gnomon_status gnomon_slabs_begin(gnomon_slabs *slabs, const int *names, gnomon_row_ranks *ranks,
                                 gnomon_status status)
{
    gnomon_row_source *source = &slabs->source;
    tensor_terms own = {.f64 = source->f64, .modes = slabs->modes};
    source->ranks = ranks;
    GNOMON_TRY(gnomon_row_step_ready(source, status));
    for (int i = 0; i < slabs->modes; i++) {
        own.size[i] = slabs->size[i];
        own.names[i] = names[i];
    }
    tensor_terms first = own;
    GNOMON_TRY(gnomon_row_step_share(source, &first, sizeof first));
    if (memcmp(&first, &own, sizeof own) != 0)
        status = gnomon_fail(source->ctx, GNOMON_ERROR_SHAPE,
                             GNOMON_ARG("x") " on rank %d has other sizes, another order of modes "
                                             "or another type than on rank 0",
                             ranks->comm.rank);
    return gnomon_row_ranks_begin(source, ranks, status);
}

int64_t gnomon_slabs_segments(const gnomon_slabs *slabs)
{
    const int64_t rows = slabs->size[0];
    return gnomon_ceil_div(rows, gnomon_row_segment(rows, slabs->source.piece_rows));
}

void gnomon_slabs_close(gnomon_slabs *slabs)
{
    if (slabs->source.ctx != NULL) gnomon_row_source_close(&slabs->source);
}

gnomon_status gnomon_slabs_scan(gnomon_slabs *slabs)
{
    return gnomon_row_source_scan(&slabs->source);
}

gnomon_cube gnomon_slabs_in_place(const gnomon_slabs *slabs)
{
    gnomon_cube cube = {NULL, slabs->source.f64, slabs->modes, {0}};
    memcpy(cube.size, slabs->size, sizeof cube.size);
    cube.size[0] = slabs->matrix.rows;
    if (slabs->source.direct && slabs->source.exponent == 0) cube.data = slabs->matrix.data;
    return cube;
}
