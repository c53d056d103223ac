/* Codes: projections in 8 bits, which tell roughly how far points are apart. */
#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "lsh/index.h"
#include "points/view.h"
#include "project/job.h"

#include <math.h>

gnomon_status gnomon_codes_open(gnomon_context *ctx, const gnomon_lsh_options *o, gnomon_codes *c)
{
    *c = (gnomon_codes){.count = o->codes};
    if (c->count == 0) return GNOMON_OK;
    /* srht keeps lengths best for its cost; its seed is not the hash functions' */
    gnomon_descriptor d = GNOMON_DESCRIPTOR_INIT;
    d.kind = GNOMON_SRHT;
    d.seed = o->functions.seed ^ UINT64_C(0x636f646573);
    d.k = c->count;
    d.d = o->functions.dim > d.k ? o->functions.dim : d.k;
    GNOMON_TRY(gnomon_operator_create(ctx, &d, &c->op));
    return gnomon_alloc_zero(ctx, c->count, sizeof *c->centre, "codes' centre", &c->centre);
}

void gnomon_codes_close(gnomon_context *ctx, gnomon_codes *c)
{
    gnomon_operator_destroy(c->op);
    gnomon_free(ctx, c->centre);
    gnomon_free(ctx, c->code);
    *c = (gnomon_codes){0};
}

typedef struct rounding {
    const gnomon_codes *c;
    const gnomon_search_kernels *kernels;
    const gnomon_matrix *points;
    bool divide; /* by the points' norms */
    float *products;
    int8_t *out;
} rounding;

static void divide_point(void *arg, int64_t i, int worker)
{
    (void)worker;
    const rounding *r = arg;
    const double factor = gnomon_inverse_norm(r->kernels, r->points, i);
    for (int64_t j = 0; j < r->c->count; j++) {
        float *x = &r->products[i * r->c->count + j];
        *x = (float)((double)*x * factor);
    }
}

static void round_point(void *arg, int64_t i, int worker)
{
    const rounding *r = arg;
    if (r->divide) divide_point(arg, i, worker);
    const float *x = r->products + i * r->c->count;
    for (int64_t j = 0; j < r->c->count; j++) {
        const float y = rintf((x[j] - r->c->centre[j]) * r->c->factor);
        /* NaN, from products beyond fp32, ends at the lower end too */
        r->out[i * r->c->count + j] = (int8_t)(y > 127 ? 127 : y > -127 ? y : -127);
    }
}

static gnomon_status project(gnomon_context *ctx, const gnomon_codes *c, const gnomon_matrix *x,
                             float *products)
{
    const gnomon_matrix y = gnomon_matrix_rowmajor(products, GNOMON_F32, x->rows, c->count);
    gnomon_sketch_options o = GNOMON_SKETCH_OPTIONS_INIT;
    o.col = 0;
    o.allow_nonfinite = 1;
    return gnomon_sketch_at(ctx, GNOMON_ON_CPU, c->op, x, &y, &o);
}

gnomon_status gnomon_codes_train(gnomon_context *ctx, gnomon_codes *c, gnomon_metric metric,
                                 const gnomon_matrix *points)
{
    enum { SAMPLE = 4096 };
    if (c->count == 0 || c->trained || points->rows == 0) return GNOMON_OK;
    const int64_t step = (points->rows + SAMPLE - 1) / SAMPLE;
    gnomon_matrix some = *points;
    some.rows = (points->rows + step - 1) / step;
    some.row_stride *= step;
    float *products = NULL;
    GNOMON_TRY(gnomon_alloc(ctx, gnomon_times(some.rows, c->count), sizeof *products, "a sample",
                            &products));
    const gnomon_status status = project(ctx, c, &some, products);
    if (status == GNOMON_OK) {
        rounding r = {
            c, gnomon_cpu_kernels(gnomon_context_isa(ctx))->search, &some, true, products, NULL};
        if (metric == GNOMON_COSINE) gnomon_parallel(ctx, some.rows, divide_point, &r);
        double squares = 0;
        for (int64_t j = 0; j < c->count; j++) {
            double sum = 0;
            for (int64_t i = 0; i < some.rows; i++)
                sum += (double)products[i * c->count + j];
            const double mean = sum / (double)some.rows;
            for (int64_t i = 0; i < some.rows; i++) {
                const double d = (double)products[i * c->count + j] - mean;
                squares += d * d;
            }
            c->centre[j] = (float)mean;
        }
        /* Four standard deviations fill the bytes; what lies beyond ends there. */
        const double spread = sqrt(squares / (double)(some.rows * c->count));
        c->factor = spread > 0 && isfinite(spread) ? (float)(127 / (4 * spread)) : 1;
        if (!isfinite(c->factor)) c->factor = 1;
        c->trained = true;
    }
    gnomon_free(ctx, products);
    return status;
}

gnomon_status gnomon_codes_make(gnomon_context *ctx, const gnomon_codes *c, gnomon_metric metric,
                                const gnomon_matrix *points, int64_t first, int64_t n, int8_t *out)
{
    const int64_t batch = gnomon_hasher_batch_points(ctx, c->count * 4, n);
    float *products = NULL;
    GNOMON_TRY(
        gnomon_alloc(ctx, gnomon_times(batch, c->count), sizeof *products, "products", &products));
    gnomon_status status = GNOMON_OK;
    for (int64_t at = 0; at < n && status == GNOMON_OK; at += batch) {
        const int64_t here = n - at < batch ? n - at : batch;
        const gnomon_matrix x = gnomon_rows(points, first + at, here);
        status = project(ctx, c, &x, products);
        if (status != GNOMON_OK) break;
        rounding r = {c,        gnomon_cpu_kernels(gnomon_context_isa(ctx))->search,
                      &x,       metric == GNOMON_COSINE,
                      products, out + at * c->count};
        gnomon_parallel(ctx, x.rows, round_point, &r);
    }
    gnomon_free(ctx, products);
    return status;
}
