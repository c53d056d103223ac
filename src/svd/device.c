/* Handing a factorisation to a device. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "project/job.h"
#include "svd/factor.h"
#include "svd/job.h"

#include <math.h>

/* Multiplications and additions that are worth the way: half a second or so of two cores. */
static const double worth_it = 5e10;

typedef struct call {
    gnomon_factor *f;
    gnomon_svd_job job;
    gnomon_operator *psi;
} call;

static int64_t choose_rank(void *user, const double *s, int64_t columns, double rest)
{
    call *c = user;
    gnomon_factor *f = c->f;
    f->rest = rest;
    f->source.norm = c->job.norm;
    (void)s; /* f->s */
    return gnomon_choose_rank(f, columns);
}

static gnomon_status make_room(void *user, int64_t rank, gnomon_matrix *u, gnomon_matrix *vt)
{
    gnomon_factor *f = ((call *)user)->f;
    gnomon_svd *out = f->out;
    out->rank = rank;
    GNOMON_TRY(gnomon_factor_room(f, f->options.u, f->source.rows, rank, "left vectors", &out->u));
    GNOMON_TRY(
        gnomon_factor_room(f, f->options.vt, rank, f->source.cols, "right vectors", &out->vt));
    *u = out->u;
    *vt = out->vt;
    return GNOMON_OK;
}

static double bound_of(void *user, const double *lengths, int64_t count)
{
    double estimate, bound;
    (void)user;
    gnomon_frobenius_of(lengths, count, &estimate, &bound);
    return bound;
}

static gnomon_status sketch(void *user, const gnomon_matrix *y)
{
    call *c = user;
    gnomon_factor *f = c->f;
    const gnomon_tall out = {y->data, y->rows, y->cols, f->wide};
    const gnomon_device device = f->ctx->device;
    f->source.exponent = c->job.exponent;
    f->ctx->device = GNOMON_DEVICE_CPU;
    const gnomon_status status = gnomon_feed_sketch(&f->source, f->op, 0, &out);
    f->ctx->device = device;
    gnomon_context_set_worked(f->ctx, GNOMON_DEVICE_CUDA);
    return status;
}

static int progress(void *user, int64_t done, int64_t total)
{
    return gnomon_progress(user, "passes", done, total) != GNOMON_OK;
}

static void take_over(gnomon_factor *f, const gnomon_svd_job *job)
{
    gnomon_svd *out = f->out;
    const int64_t probes = f->options.probes;
    f->source.exponent = job->exponent;
    f->source.norm = job->norm;
    f->source.passes = job->passes;
    f->orth = (gnomon_orth_count){job->cholesky, job->householder};
    out->columns = job->used_columns;
    if (f->options.measure) out->residual = job->residual;
    out->project_seconds = job->project_seconds;
    out->power_seconds = job->power_seconds;
    out->orthonormalise_seconds = job->orthonormalise_seconds;
    out->small_seconds = job->small_seconds;
    out->certify_seconds = job->certify_seconds;
    if (probes == 0) return;
    gnomon_lengths l;
    gnomon_lengths_begin(&l, f->options.single_pass ? 0 : f->options.probe_power);
    for (int i = 0; i <= l.power; i++) {
        const double *now = job->lengths + i * probes;
        gnomon_lengths_add(&l, now, i > 0 ? now - probes : NULL, probes);
        if (l.longest == 0) break;
    }
    gnomon_frobenius_of(job->lengths, probes, &out->residual_estimate, &out->residual_bound);
    gnomon_bounds_of(out, &l, probes, gnomon_certain_bound(f));
}

static gnomon_status run(gnomon_factor *f, const gnomon_device_table *table, void *state, call *c,
                         char *why, size_t why_size)
{
    gnomon_device_host host = gnomon_job_host(f->ctx);
    const gnomon_svd_host calls = {c, choose_rank, make_room, bound_of, sketch};
    host.progress = progress;
    const int64_t lengths = f->options.probes * (f->options.probe_power + 1);
    GNOMON_TRY(gnomon_alloc(f->ctx, c->job.columns, sizeof *f->s, "singular values", &f->s));
    GNOMON_TRY(gnomon_alloc(f->ctx, lengths, sizeof *c->job.lengths, "lengths", &c->job.lengths));
    c->job.host = &host;
    c->job.calls = &calls;
    c->job.s = f->s;
    gnomon_context_set_worked(f->ctx, GNOMON_DEVICE_CUDA);
    why[0] = 0;
    const gnomon_status status = table->svd(state, &c->job, why, why_size);
    if (status == GNOMON_OK) take_over(f, &c->job);
    /* Without a reason it was a call back that failed and has left its own. */
    return status != GNOMON_OK && why[0] == 0 ? status
                                              : gnomon_job_device_failed(f->ctx, status, why);
}

/* Whether to ask under AUTO, where a look costs the opening of the plugin. */
static bool is_worth_it(const gnomon_factor *f)
{
    const gnomon_matrix *a = f->source.matrix;
    const gnomon_csr *csr = f->source.csr;
    const double numbers = csr != NULL ? (double)(csr->offsets[csr->rows] - csr->offsets[0])
                                       : (double)f->source.rows * (double)f->source.cols;
    /* of rows that are read once the second sketch has twice the columns */
    const double products = f->options.single_pass ? 3.0 : 2.0 + 2.0 * f->options.power;
    const double flops = 2.0 * numbers * (double)gnomon_factor_columns(f) * products;
    return (a != NULL && a->memory != GNOMON_HOST) || (!f->wide && flops >= worth_it);
}

gnomon_status gnomon_factor_on_device(gnomon_factor *f, bool *done)
{
    gnomon_context *ctx = f->ctx;
    const gnomon_svd_rows *rows = f->source.stream;
    const gnomon_matrix there = gnomon_matrix_rowmajor(
        NULL, f->wide ? GNOMON_F64 : GNOMON_F32, f->source.rows, f->source.cols); /* the shape */
    const gnomon_csr *csr = f->source.csr;
    const gnomon_matrix *a = rows != NULL || csr != NULL ? &there : f->source.matrix;
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_CUDA;
    char why[256] = "it has no factorisations";
    void *state = NULL;
    *done = false;
    const bool once = f->options.single_pass;
    const bool known = rows == NULL || (rows->rows >= 0 && (once || rows->rewind != NULL));
    GNOMON_FAIL_IF(must && !known, ctx, GNOMON_ERROR_DEVICE,
                   "rows whose number is not known before, or that can be read only once without "
                   "single_pass, are factored on the CPU; take the device cpu or auto");
    if (!known || !(must || is_worth_it(f))) {
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
        return GNOMON_OK;
    }
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    if (table != NULL && table->svd != NULL) {
        call c = {.f = f};
        gnomon_svd_options options = f->options;
        options.dtype = f->wide ? GNOMON_F64 : GNOMON_F32;
        if (options.block == 0) options.block = 128;
        c.job.a = a;
        c.job.csr = csr;
        c.job.rows = rows;
        c.job.options = &options;
        c.job.columns = gnomon_factor_columns(f);
        c.job.memory_limit = gnomon_memory_limit(ctx);
        c.job.probes = f->probes;
        if (table->svd_supports(state, &c.job, why, sizeof why)) {
            *done = true;
            gnomon_status status = gnomon_factor_operator(f, c.job.columns, false);
            if (status == GNOMON_OK && once) status = gnomon_factor_psi(f, &c.psi);
            c.job.op = f->op;
            c.job.psi = c.psi;
            if (status == GNOMON_OK) status = run(f, table, state, &c, why, sizeof why);
            gnomon_operator_destroy(c.psi);
            gnomon_free(ctx, c.job.lengths);
            return status;
        }
    }
    GNOMON_FAIL_IF(must && table != NULL, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why);
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    GNOMON_FAIL_IF(a->memory != GNOMON_HOST, ctx, GNOMON_ERROR_DEVICE,
                   "a lies in a device's memory, and the device did not take the job: %s",
                   table != NULL ? why : gnomon_context_cuda_reason(ctx));
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
