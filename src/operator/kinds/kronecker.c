/* A dense block of the cascade (section 5.2; Ahle and Silvestri 2020): the cascade is run for a
 * few neighbouring columns at a time, which share the parts of A_2 ... A_l that they meet. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "operator/kinds/kinds.h"
#include "operator/part.h"

/* Columns that go through the cascade together. */
enum { BATCH = 16 };

typedef double lanes[BATCH];

typedef struct job {
    const gnomon_operator *op;
    const gnomon_matrix *out;
    int64_t row, col;
    int64_t first_batch, group_batches; /* batches are numbered from column 0 on */
    int64_t widest;                     /* the most rows of A_1 ... A_(l-1) */
    lanes *vectors;                     /* each worker's own: two of widest lanes */
    float *values;                      /* each worker's own: 4 x widest */
} job;

/* Columns are cut at the multiples of c_1, where a cascade's path changes, and in batches from
 * there. */
static int64_t batch_of(const job *b, int64_t col)
{
    const int64_t group_cols = b->op->factor[0].cols;
    return col / group_cols * b->group_batches + col % group_cols / BATCH;
}

/* Rows [row, row + rows) of A_1 and width columns from within on; lanes past width are 0. */
static void first_level(const gnomon_simple *a, int64_t row, int64_t rows, int64_t within,
                        int64_t width, lanes *x)
{
    for (int64_t i = row; i < row + rows; i = (i | 3) + 1) {
        float tile[4][BATCH] = {{0}};
        const int64_t count = (i | 3) < row + rows ? (i | 3) + 1 - i : row + rows - i;
        gnomon_simple_values(a, i, count, within, width, tile[0], BATCH, 1);
        for (int64_t r = 0; r < count; r++)
            for (int c = 0; c < BATCH; c++)
                x[i - row + r][c] = tile[r][c];
    }
}

/* One entry of A_t x for each lane: every product rounded, then added, in order. A zero adds
 * nothing, so it may be passed over. */
static void multiply(const float *value, const lanes *x, int64_t count, double *sum)
{
    lanes s = {0};
    for (int64_t j = 0; j < count; j++) {
        const double v = value[j];
        if (v == 0.0) continue;
        for (int c = 0; c < BATCH; c++)
            s[c] += v * x[j][c];
    }
    for (int c = 0; c < BATCH; c++)
        sum[c] = s[c];
}

static void write_lanes(const job *b, int64_t row, int64_t col, int64_t width, const double *x)
{
    const gnomon_matrix *m = b->out;
    const int64_t at = (row - b->row) * m->row_stride + (col - b->col) * m->col_stride;
    for (int64_t c = 0; c < width; c++) {
        const double value = x[c] * b->op->scale;
        if (m->dtype == GNOMON_F32)
            ((float *)m->data)[at + c * m->col_stride] = (float)value;
        else
            ((double *)m->data)[at + c * m->col_stride] = value;
    }
}

static void single_level(const job *b, int64_t col, int64_t width)
{
    for (int64_t i = b->row; i < b->row + b->out->rows; i++) {
        lanes x;
        first_level(&b->op->factor[0], i, 1, col, width, &x);
        write_lanes(b, i, col, width, x);
    }
}

static void run_cascade(const job *b, int64_t col, int64_t width, lanes *x, lanes *y, float *values)
{
    const gnomon_operator *op = b->op;
    const int64_t zeta = op->descriptor.zeta;
    const int last = op->levels - 1;
    int64_t path = col / op->factor[0].cols;
    first_level(&op->factor[0], 0, op->factor[0].rows, col % op->factor[0].cols, width, x);

    for (int t = 1; t <= last; t++) {
        const int64_t inputs = op->factor[t - 1].rows;
        const int64_t offset = path % zeta * inputs;
        path /= zeta;
        const int64_t begin = t == last ? b->row : 0;
        const int64_t end = t == last ? b->row + b->out->rows : op->factor[t].rows;
        for (int64_t i = begin; i < end; i = (i | 3) + 1) {
            const int64_t count = (i | 3) < end ? (i | 3) + 1 - i : end - i;
            gnomon_simple_values(&op->factor[t], i, count, offset, inputs, values, inputs, 1);
            for (int64_t r = 0; r < count; r++) {
                lanes sum;
                multiply(values + r * inputs, x, inputs, sum);
                if (t == last)
                    write_lanes(b, i + r, col, width, sum);
                else
                    for (int c = 0; c < BATCH; c++)
                        y[i + r][c] = sum[c];
            }
        }
        lanes *swap = x;
        x = y;
        y = swap;
    }
}

static void run_task(void *arg, int64_t task, int worker)
{
    const job *b = arg;
    const int64_t batch = b->first_batch + task;
    const int64_t group_cols = b->op->factor[0].cols;
    const int64_t origin = batch / b->group_batches * group_cols;
    const int64_t within = batch % b->group_batches * BATCH;

    int64_t begin = origin + within;
    int64_t end = origin + (group_cols - within < BATCH ? group_cols : within + BATCH);
    if (begin < b->col) begin = b->col;
    if (end > b->col + b->out->cols) end = b->col + b->out->cols;

    if (b->op->levels == 1)
        single_level(b, begin, end - begin);
    else
        run_cascade(b, begin, end - begin, b->vectors + 2 * worker * b->widest,
                    b->vectors + (2 * worker + 1) * b->widest, b->values + 4 * worker * b->widest);
}

gnomon_status gnomon_kronecker_block(gnomon_context *ctx, const gnomon_operator *op, int64_t row,
                                     int64_t col, const gnomon_matrix *out)
{
    job b = {.op = op, .out = out, .row = row, .col = col};
    b.group_batches = (op->factor[0].cols - 1) / BATCH + 1;
    b.first_batch = batch_of(&b, col);
    const int64_t batches = batch_of(&b, col + out->cols - 1) - b.first_batch + 1;
    for (int t = 0; t < op->levels - 1; t++)
        if (op->factor[t].rows > b.widest) b.widest = op->factor[t].rows;

    /* Each worker needs room of its own; where that is too much, one has to do. widest is at
     * most 2^32 and threads at most 2^12, so nothing overflows. */
    int64_t workers = gnomon_context_threads(ctx);
    const int64_t room = b.widest * (int64_t)(2 * sizeof(lanes) + 4 * sizeof(float));
    if (room * workers > gnomon_memory_limit(ctx)) workers = 1;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(gnomon_times(2, workers), b.widest), sizeof(lanes),
                            "vectors of the cascade", &b.vectors));
    const gnomon_status status = gnomon_alloc(ctx, gnomon_times(gnomon_times(4, workers), b.widest),
                                              sizeof(float), "rows of a factor", &b.values);
    if (status == GNOMON_OK) {
        if (workers == 1)
            for (int64_t task = 0; task < batches; task++)
                run_task(&b, task, 0);
        else
            gnomon_parallel(ctx, batches, run_task, &b);
    }
    gnomon_free(ctx, b.values);
    gnomon_free(ctx, b.vectors);
    return status;
}
