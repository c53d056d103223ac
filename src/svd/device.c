/* Handing a factorisation to a device. */
#include "base/device.h"
#include "base/context.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "project/job.h"
#include "svd/center.h"
#include "svd/factor.h"
#include "svd/job.h"

#include <math.h>

/* Multiplications and additions whose gain exceeds the transfer: half a second of two cores. */
static const double worth_it = 5e10;

typedef struct call {
    gnomon_factor *f;
    gnomon_svd_job job;
    gnomon_operator *psi;
    gnomon_device_call *device;
} call;

static int64_t choose_rank(void *user, const double *s, int64_t columns, double rest)
{
    call *c = user;
    gnomon_factor *f = c->f;
    c->device->repeats = false; /* results are there */
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

/* Terms that a device adds up in fp32 before they join a sum in fp64, and parts of the products
 * with the mean there. */
enum { CHAIN = 64, PART = 1024 };

/* What the device's products of sparse rows less their mean are off by, for a test vector's length.
 * All 1000 test vectors of n normal numbers are shorter than sqrt(n) + 7 but once in 10^7 runs. */
static double rounding_of(const gnomon_factor *f)
{
    const gnomon_centering *c = &f->source.center;
    const int64_t rows = f->source.rows, cols = f->source.cols, most = rows > cols ? rows : cols;
    const double parts = (double)(PART + most / PART) * 0x1p-53 * c->magnitude;
    const double terms = f->f64 ? 0 : (CHAIN + 4) * 0x1p-24 * c->magnitude;
    const double all = fmax(c->rounding, c->rounding_adjoint) + parts + terms;
    return f->source.csr != NULL && f->source.centered ? all * (sqrt((double)cols) + 7) : 0;
}

static double bound_of(void *user, const double *lengths, int64_t count)
{
    double estimate, bound;
    gnomon_frobenius_of(lengths, count, rounding_of(((call *)user)->f), &estimate, &bound);
    return bound;
}

static gnomon_status sketch(void *user, const gnomon_matrix *y)
{
    call *c = user;
    gnomon_factor *f = c->f;
    const gnomon_tall out = {y->data, y->rows, y->cols, f->f64};
    f->source.exponent = c->job.exponent;
    return gnomon_row_source_sketch(&f->source, f->op, 0, &out);
}

static void copy_results(gnomon_factor *f, const gnomon_svd_job *job)
{
    gnomon_svd *out = f->out;
    const int64_t test_vectors = f->options.test_vectors;
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
    if (test_vectors == 0) return;
    gnomon_lengths l;
    gnomon_lengths_begin(&l, f->options.single_pass ? 0 : f->options.test_power);
    for (int i = 0; i <= l.power; i++) {
        const double *now = job->lengths + i * test_vectors;
        gnomon_lengths_add(&l, now, i > 0 ? now - test_vectors : NULL, test_vectors);
        if (l.longest == 0) break;
    }
    const double rounding = rounding_of(f);
    gnomon_frobenius_of(job->lengths, test_vectors, rounding, &out->residual_estimate,
                        &out->residual_bound);
    gnomon_bounds_of(out, &l, test_vectors, rounding, gnomon_certain_bound(f));
}

static bool takes(gnomon_device_call *device, void *user)
{
    call *c = user;
    const gnomon_row_source *s = &c->f->source;
    if (device->table->svd == NULL) return gnomon_device_unable(device, "it has no factorisations");
    if (s->standardized)
        return gnomon_device_unable(device, "standardized rows are factored on the CPU");
    if (s->centered && s->sparse && (s->norm == 0 || (!c->f->f64 && gnomon_center_is_far(s))))
        return gnomon_device_unable(device,
                                    "beside their mean little is left of these sparse rows, "
                                    "which takes sums in fp64");
    return device->table->svd_supports(device->state, &c->job, device->why, sizeof device->why);
}

/* Of what lies in host memory, or comes from there, the CPU finds it: the mean has the same bits
 * wherever the work is done. */
static gnomon_status find_mean(call *c)
{
    gnomon_row_source *s = &c->f->source;
    const bool there = s->matrix != NULL && s->matrix->memory != GNOMON_HOST;
    GNOMON_TRY(there ? gnomon_center_open(s) : gnomon_center_find(s));
    GNOMON_TRY(gnomon_row_source_rewind(s));
    c->job.mean = s->center.mean;
    c->job.has_mean = !there;
    c->job.sum_rows = s->center.group;
    c->job.exponent = there || s->csr != NULL ? 0 : s->exponent;
    c->job.centered_norm = s->norm;
    c->job.centered_exponent = s->exponent;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_device_call *device, void *user)
{
    call *c = user;
    gnomon_factor *f = c->f;
    const gnomon_svd_host calls = {c, choose_rank, make_room, bound_of, sketch};
    const int64_t lengths = f->options.test_vectors * (f->options.test_power + 1);
    c->device = device;
    if (f->options.center) GNOMON_TRY(find_mean(c));
    GNOMON_TRY(gnomon_factor_operator(f, c->job.columns, false));
    if (f->options.single_pass) GNOMON_TRY(gnomon_factor_psi(f, &c->psi));
    GNOMON_TRY(gnomon_alloc(f->ctx, c->job.columns, sizeof *f->s, "singular values", &f->s));
    GNOMON_TRY(gnomon_alloc(f->ctx, lengths, sizeof *c->job.lengths, "lengths", &c->job.lengths));
    c->job.op = f->op;
    c->job.psi = c->psi;
    c->job.host = &device->host;
    c->job.calls = &calls;
    c->job.s = f->s;
    const gnomon_status status =
        device->table->svd(device->state, &c->job, device->why, sizeof device->why);
    if (status == GNOMON_OK) copy_results(f, &c->job);
    return status;
}

/* Whether to ask under AUTO, where asking opens the plugin. */
static bool is_worth_it(const gnomon_factor *f)
{
    const gnomon_matrix *a = f->source.matrix;
    const gnomon_csr *csr = f->source.csr;
    const double numbers = csr != NULL ? (double)(csr->offsets[csr->rows] - csr->offsets[0])
                                       : (double)f->source.rows * (double)f->source.cols;
    /* of rows that are read once the second sketch has twice the columns */
    const double products = f->options.single_pass ? 3.0 : 2.0 + 2.0 * f->options.power;
    const double flops = 2.0 * numbers * (double)gnomon_factor_columns(f) * products;
    return (a != NULL && a->memory != GNOMON_HOST) || (!f->f64 && flops >= worth_it);
}

gnomon_status gnomon_factor_on_device(gnomon_factor *f, bool *done)
{
    gnomon_context *ctx = f->ctx;
    const gnomon_svd_rows *rows = f->source.stream;
    /* Of a stream the shape, and the type that it comes in: that of the work, unless a mean would
     * take digits along. */
    const bool f64 =
        f->f64 || (f->options.center && rows != NULL && gnomon_dtype_needs_f64(rows->dtype));
    const gnomon_matrix there =
        gnomon_matrix_rowmajor(NULL, f64 ? GNOMON_F64 : GNOMON_F32, f->source.rows, f->source.cols);
    const gnomon_csr *csr = f->source.csr;
    const gnomon_matrix *a = rows != NULL || f->source.sparse ? &there : f->source.matrix;
    const bool comes = f->source.sparse_stream != NULL;
    if (comes)
        GNOMON_TRY(gnomon_device_refuse(ctx, GNOMON_BY_CONTEXT,
                                        "sparse rows that come piece by piece are factored on the "
                                        "CPU"));
    const bool known =
        rows == NULL || (rows->rows >= 0 && (f->options.single_pass || rows->rewind != NULL));
    if (!known)
        GNOMON_TRY(gnomon_device_refuse(
            ctx, GNOMON_BY_CONTEXT,
            "rows whose number is not known before, or that can be read only once without "
            "single_pass, are factored on the CPU"));
    const bool once = f->options.center && f->options.single_pass && rows != NULL;
    if (once)
        GNOMON_TRY(gnomon_device_refuse(
            ctx, GNOMON_BY_CONTEXT,
            "rows less their mean that are read once are factored on the CPU"));
    if (f->options.center && !f->options.standardize && csr != NULL)
        GNOMON_TRY(gnomon_center_find(&f->source));
    gnomon_svd_options options = f->options;
    options.dtype = f->f64 ? GNOMON_F64 : GNOMON_F32;
    if (options.block == 0) options.block = 128;
    call c = {.f = f,
              .job = {.a = a,
                      .csr = csr,
                      .rows = rows,
                      .options = &options,
                      .columns = gnomon_factor_columns(f),
                      .memory_limit = gnomon_memory_limit(ctx),
                      .test_vectors = f->test_vectors}};
    const gnomon_device_step step = {.phase = "passes",
                                     .takes = takes,
                                     .run = run,
                                     .calls_back = true,
                                     .repeats = rows == NULL && csr == NULL && !options.center,
                                     .not_worth = !known || once || comes || options.standardize ||
                                                  !is_worth_it(f),
                                     .there = a->memory != GNOMON_HOST ? "a" : NULL};
    gnomon_device_call device;
    const gnomon_status status =
        gnomon_device_run(&device, ctx, GNOMON_BY_CONTEXT, &step, &c, done);
    if (status == GNOMON_OK && !*done && c.device != NULL) { /* it has failed */
        gnomon_operator_destroy(f->op);
        gnomon_free(ctx, f->s);
        f->op = NULL;
        f->s = NULL;
    }
    gnomon_operator_destroy(c.psi);
    gnomon_free(ctx, c.job.lengths);
    return status;
}
