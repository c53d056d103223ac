/* Handing a job to a device. */
#include "base/device.h"
#include "base/context.h"
#include "base/error.h"
#include "project/job.h"
#include "project/overflow.h"

gnomon_status gnomon_job_check_output(gnomon_context *ctx, const gnomon_sketch_job *job,
                                      const gnomon_matrix *out, const char *name)
{
    int64_t row, col;
    gnomon_overflow o;
    gnomon_overflow_none(&o);
    if (!job->check || job->beta != 0 || out->memory != GNOMON_HOST) return GNOMON_OK;
    if (gnomon_matrix_check_finite(ctx, out, &row, &col) == GNOMON_OK) return GNOMON_OK;
    gnomon_overflow_note(&o, row);
    return gnomon_overflow_check(ctx, &o, name, job->f64);
}

static bool takes_sketch(gnomon_device_call *call, void *job)
{
    return call->table->supports(call->state, job, false, call->why, sizeof call->why);
}

static bool takes_adjoint(gnomon_device_call *call, void *job)
{
    return call->table->supports(call->state, job, true, call->why, sizeof call->why);
}

static gnomon_status run_sketch(gnomon_device_call *call, void *job)
{
    gnomon_sketch_job theirs = *(const gnomon_sketch_job *)job;
    theirs.host = &call->host;
    return call->table->sketch(call->state, &theirs, call->why, sizeof call->why);
}

static gnomon_status run_adjoint(gnomon_device_call *call, void *job)
{
    gnomon_sketch_job theirs = *(const gnomon_sketch_job *)job;
    theirs.host = &call->host;
    return call->table->adjoint(call->state, &theirs, call->why, sizeof call->why);
}

gnomon_status gnomon_job_on_device(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job,
                                   bool adjoint, bool *done)
{
    const bool there = job->x->memory != GNOMON_HOST || job->y->memory != GNOMON_HOST;
    const gnomon_device_step step = {.phase = "project",
                                     .takes = adjoint ? takes_adjoint : takes_sketch,
                                     .run = adjoint ? run_adjoint : run_sketch,
                                     .repeats = job->beta == 0,
                                     .there = there ? "x or y" : NULL};
    gnomon_device_call call;
    GNOMON_TRY(gnomon_device_run(&call, ctx, where, &step, job, done));
    if (!*done) return GNOMON_OK;
    return gnomon_job_check_output(ctx, job, adjoint ? job->x : job->y, adjoint ? "x" : "y");
}

/* ---- sparse rows ---- */

static bool takes_csr(gnomon_device_call *call, void *job)
{
    if (!call->table->sparse_supports)
        return gnomon_device_unable(call, "it does not project sparse points");
    return call->table->sparse_supports(call->state, job, call->why, sizeof call->why);
}

static gnomon_status run_csr(gnomon_device_call *call, void *job)
{
    gnomon_sketch_job theirs = *(const gnomon_sketch_job *)job;
    theirs.host = &call->host;
    return call->table->sparse_sketch(call->state, &theirs, call->why, sizeof call->why);
}

/* Of rows and sketch on the host: seconds a byte over the link and a call on a GPU; of the CPU a
 * nonzero and a byte of the sketch, and on one thread a product by dense and by sparse columns.
 * Measured by bench/gpu/csr.py. Where no device has been looked for, that takes longer than most
 * sketches. */
static const double moved_byte = 5e-11, one_call = 2e-3, first_look = 0.25;
static const double one_nonzero = 5e-9, written_byte = 4e-10;
static const double dense_product = 5e-10, sparse_product = 2e-8;

static bool is_worth_it(gnomon_context *ctx, const gnomon_sketch_job *job)
{
    const gnomon_csr *x = job->csr;
    const gnomon_simple *a = &job->op->factor[0];
    const double nonzeros = x->rows ? (double)(x->offsets[x->rows] - x->offsets[0]) : 0;
    const double sketch = (double)x->rows * (double)job->rows * (job->f64 ? 8 : 4);
    const double moved = nonzeros * (8 + (double)gnomon_dtype_size(x->dtype)) + sketch;
    const double products = nonzeros * (double)job->rows * a->fill;
    const double cpu = nonzeros * one_nonzero + sketch * written_byte +
                       products * (a->fill < 0.3 ? sparse_product : dense_product) /
                           (double)gnomon_context_threads(ctx);
    const double start = ctx->plugins.looked_for ? one_call : first_look;
    return cpu > start + moved * moved_byte;
}

gnomon_status gnomon_csr_on_device(gnomon_context *ctx, gnomon_where where, gnomon_sketch_job *job,
                                   bool *done)
{
    const bool x = job->csr_memory != GNOMON_HOST, y = job->y->memory != GNOMON_HOST;
    const gnomon_device_step step = {
        .phase = "project",
        .takes = takes_csr,
        .run = run_csr,
        .repeats = job->beta == 0,
        .not_worth = !x && !y && !is_worth_it(ctx, job),
        .because = "going to a GPU and back takes longer than projecting here",
        .there = x   ? "x"
                 : y ? "y"
                     : NULL};
    gnomon_device_call call;
    GNOMON_TRY(gnomon_device_run(&call, ctx, where, &step, job, done));
    return *done ? gnomon_job_check_output(ctx, job, job->y, "y") : GNOMON_OK;
}
