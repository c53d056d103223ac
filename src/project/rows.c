#include "project/rows.h"

#include "base/threads.h"
#include "operator/kinds/kinds.h"

#include <math.h>

typedef struct rows_job {
    const gnomon_sketch_job *job;
    const void *sums;
    const gnomon_matrix *y;
    bool uneven; /* blocks with scales of their own */
    gnomon_overflow *overflow;
} rows_job;

/* As when tiles are stored: +0 gives all zeros one sign. */
static void store(const rows_job *r, int64_t point, int64_t begin, int64_t end, double factor)
{
    const gnomon_matrix *y = r->y;
    const double beta = r->job->beta;
    const int64_t from = point * y->cols;
    double mark = 0; /* 0 times all that was written: 0, or NaN */
    for (int64_t j = begin; j < end; j++) {
        const int64_t at = point * y->row_stride + j * y->col_stride;
        const double sum = r->job->f64 ? ((const double *)r->sums)[from + j]
                                       : (double)((const float *)r->sums)[from + j];
        double value = factor * (sum + 0.0);
        if (y->dtype == GNOMON_F32) {
            float *to = (float *)y->data + at;
            const double before = beta != 0 ? (double)*to : 0;
            if (beta != 0) value += beta * before;
            *to = (float)value;
            mark += isfinite(before) ? 0 * (double)*to : 0;
        } else {
            double *to = (double *)y->data + at;
            const double before = beta != 0 ? *to : 0;
            if (beta != 0) value += beta * before;
            *to = value;
            mark += isfinite(before) ? 0 * value : 0;
        }
    }
    if (mark != 0) gnomon_overflow_note(r->overflow, point);
}

static void store_point(void *arg, int64_t point, int worker)
{
    (void)worker;
    const rows_job *r = arg;
    const gnomon_sketch_job *job = r->job;
    const gnomon_operator *op = job->op;
    if (!r->uneven) {
        store(r, point, 0, r->y->cols, job->alpha * op->scale);
        return;
    }
    for (int64_t j = 0; j < r->y->cols;) {
        const int64_t a = gnomon_block_of_row(op, job->row + j);
        int64_t end = gnomon_block_first_row(op, a + 1) - job->row;
        if (end > r->y->cols) end = r->y->cols;
        store(r, point, j, end, job->alpha * gnomon_operator_row_scale(op, job->row + j));
        j = end;
    }
}

void gnomon_store_rows(gnomon_context *ctx, const gnomon_sketch_job *job, const void *sums,
                       const gnomon_matrix *y, gnomon_overflow *overflow)
{
    const gnomon_operator *op = job->op;
    rows_job r = {job, sums, y, op->blocks > 1 && op->descriptor.k % op->blocks != 0, overflow};
    gnomon_parallel(ctx, y->rows, store_point, &r);
}
