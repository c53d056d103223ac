/* The calls: checking what is asked for, the order of the steps, the result. */
#include "base/arithmetic.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/device.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "hosvd/slab_pass.h"
#include "hosvd/work.h"
#include "linalg/blas.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_hosvd_options, GNOMON_HOSVD_OPTIONS_INIT)

static gnomon_status copy_options(gnomon_context *ctx, const gnomon_hosvd_options *given,
                                  gnomon_hosvd_options *o)
{
    *o = (gnomon_hosvd_options)GNOMON_HOSVD_OPTIONS_INIT;
    GNOMON_FAIL_IF(
        given == NULL, ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("options") " is NULL; options.ranks or options.tolerance must be set");
    GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options", gnomon_hosvd_options, given, o));
    GNOMON_FAIL_IF(!(o->tolerance >= 0 && o->tolerance < 1), ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("tolerance") " is %g; it must be 0 (fixed ranks) or in (0, 1)",
                   o->tolerance);
    GNOMON_FAIL_IF(
        o->ranks == NULL && (o->rank_count != 0 || o->tolerance == 0), ctx, GNOMON_ERROR_ARGUMENT,
        GNOMON_ARG("ranks") " is NULL and rank_count %d; one rank a mode is needed, or a tolerance",
        o->rank_count);
    GNOMON_FAIL_IF(o->oversample < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("oversample") " is %" PRId64 "; it must not be negative",
                   o->oversample);
    GNOMON_FAIL_IF(o->power < 0 || o->power > 100, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("power") " is %d; allowed are 0 to 100", o->power);
    GNOMON_FAIL_IF(o->memory < 0, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("memory") " is %" PRId64 "; it must not be negative", o->memory);
    GNOMON_FAIL_IF(o->dtype != 0 && o->dtype != GNOMON_F32 && o->dtype != GNOMON_F64, ctx,
                   GNOMON_ERROR_DTYPE, GNOMON_ARG("dtype") " is %d; allowed are F32, F64 and 0",
                   (int)o->dtype);
    return GNOMON_OK;
}

/* Fills in size and rank, in the inner order. */
static gnomon_status read_ranks(gnomon_hosvd_work *w, const gnomon_tensor *x)
{
    const gnomon_hosvd_options *o = &w->options;
    int64_t count = 1;
    GNOMON_FAIL_IF(o->ranks != NULL && o->rank_count != x->modes, w->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("ranks") " has %d ranks, and the tensor has %d modes", o->rank_count,
                   x->modes);
    for (int n = 0; n < x->modes; n++)
        count *= x->size[n];
    for (int i = 0; i < x->modes; i++) {
        const int n = w->name[i];
        const int64_t others = count / x->size[n];
        const int64_t most = x->size[n] < others ? x->size[n] : others;
        w->size[i] = x->size[n];
        w->rank[i] = o->ranks != NULL ? o->ranks[n] : most;
        GNOMON_FAIL_IF(w->rank[i] < 1, w->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("ranks") ": the rank of mode %d is %" PRId64
                                           "; it must be at least 1",
                       n, w->rank[i]);
        GNOMON_FAIL_IF(w->rank[i] > x->size[n], w->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("ranks") ": the rank of mode %d is %" PRId64
                                           "; the mode has size %" PRId64,
                       n, w->rank[i], x->size[n]);
        GNOMON_FAIL_IF(w->rank[i] > others, w->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG("ranks") ": the rank of mode %d is %" PRId64
                                           "; the other sizes' product is %" PRId64
                                           ", and no unfolding has a rank above that",
                       n, w->rank[i], others);
    }
    return GNOMON_OK;
}

static gnomon_status measure(gnomon_hosvd_work *w)
{
    gnomon_hosvd *out = w->out;
    const double roundoff = w->f64 ? 0x1p-53 : 0x1p-24;
    GNOMON_TRY(gnomon_slabs_scan(&w->shrunk));
    const double core = ldexp(w->shrunk.source.norm, w->shrunk.source.exponent);
    double squares = w->norm * w->norm - core * core;
    out->residual_by = GNOMON_RESIDUAL_NORMS;
    if (w->options.measure || squares < 4096 * roundoff * w->norm * w->norm) {
        out->residual_by = GNOMON_RESIDUAL_MEASURED;
        GNOMON_TRY(gnomon_slabs_residual(&w->x, &w->core, w->factor, &squares));
    }
    out->residual = sqrt(squares);
    if (w->options.tolerance > 0) out->converged = out->residual <= w->options.tolerance * w->norm;
    out->measure_seconds += gnomon_lap(&w->clock);
    return GNOMON_OK;
}

/* The core in the caller's order of modes and scale. */
static gnomon_status hand_out_core(gnomon_hosvd_work *w)
{
    gnomon_hosvd *out = w->out;
    const int64_t count = gnomon_cube_count(&w->core);
    const size_t size = gnomon_tall_size(w->f64);
    const double factor = ldexp(1.0, w->x.source.exponent);
    int64_t step[GNOMON_TENSOR_MODES], index[GNOMON_TENSOR_MODES] = {0};
    void *data = NULL;
    GNOMON_TRY(gnomon_alloc(w->ctx, count, size, "the core", &data));
    out->core =
        gnomon_tensor_packed(data, w->f64 ? GNOMON_F64 : GNOMON_F32, w->modes, out->rank, 0);
    for (int i = 0; i < w->modes; i++)
        step[i] = out->core.stride[w->name[i]];
    int64_t to = 0;
    for (int64_t from = 0; from < count; from++) {
        const double value = w->f64 ? ((const double *)w->core.data)[from]
                                    : (double)((const float *)w->core.data)[from];
        if (w->f64) {
            ((double *)data)[to] = value * factor;
        } else {
            GNOMON_FAIL_IF(fabs(value * factor) > (double)3.4028234e38F, w->ctx, GNOMON_ERROR_DTYPE,
                           "the core has an element of %g, more than single precision holds; take "
                           "dtype F64",
                           value * factor);
            ((float *)data)[to] = (float)(value * factor);
        }
        for (int i = w->modes - 1; i >= 0; i--) {
            to += step[i];
            if (++index[i] < w->core.size[i]) break;
            to -= step[i] * w->core.size[i];
            index[i] = 0;
        }
    }
    return GNOMON_OK;
}

static gnomon_status hand_out(gnomon_hosvd_work *w)
{
    gnomon_hosvd *out = w->out;
    const double factor = ldexp(1.0, w->x.source.exponent);
    for (int i = 0; i < w->modes; i++) {
        const int n = w->name[i];
        out->size[n] = w->size[i];
        out->rank[n] = w->core.size[i];
        out->columns[n] = w->columns[i];
        out->factor[n] = gnomon_matrix_rowmajor(w->factor[i].data, w->f64 ? GNOMON_F64 : GNOMON_F32,
                                                w->size[i], w->core.size[i]);
        w->factor[i].data = NULL; /* the result's now */
        for (int64_t j = 0; j < out->rank[n]; j++)
            out->values[n][j] *= factor;
    }
    GNOMON_TRY(hand_out_core(w));
    out->norm = w->norm * factor;
    out->residual *= factor;
    out->passes = w->x.source.passes;
    out->cholesky = w->orth.cholesky;
    out->householder = w->orth.householder;
    return GNOMON_OK;
}

static gnomon_status run(gnomon_hosvd_work *w)
{
    GNOMON_TRY(gnomon_slabs_scan(&w->x));
    w->norm = w->x.source.norm;
    w->out->check_seconds += gnomon_lap(&w->clock);
    GNOMON_TRY(w->options.tolerance > 0 ? gnomon_hosvd_tolerance(w) : gnomon_hosvd_fixed(w));
    GNOMON_TRY(gnomon_hosvd_orthogonalise_core(w));
    GNOMON_TRY(measure(w));
    return hand_out(w);
}

static void release(gnomon_hosvd_work *w)
{
    for (int n = 0; n < w->modes; n++)
        gnomon_tall_drop(w->ctx, &w->factor[n]);
    gnomon_slabs_close(&w->shrunk);
    gnomon_slabs_close(&w->x);
    if (w->owned) gnomon_cube_drop(w->ctx, &w->core);
}

static gnomon_status refuse(void *user, int64_t row, int64_t col)
{
    gnomon_hosvd_work *w = user;
    return gnomon_hosvd_name_element(w, row, col, w->x.source.cols);
}

/* Indices of the outermost mode that this rank has, all of them where there is one rank. */
static gnomon_status count_own(gnomon_hosvd_work *w, const gnomon_comm *comm, int64_t rows,
                               int64_t cols, int64_t *own)
{
    int64_t first, count = 1;
    *own = 0;
    for (int64_t stretch = 0; count > 0; stretch++) {
        GNOMON_TRY(gnomon_hosvd_rank_rows(w->ctx, comm, rows, cols, stretch, &first, &count));
        *own += count;
    }
    return GNOMON_OK;
}

static gnomon_status start(gnomon_hosvd_work *w, const gnomon_tensor *x,
                           const gnomon_svd_rows *rows, const gnomon_comm *comm)
{
    gnomon_tensor inner = *x;
    int64_t cols = 1, own;
    const bool divided = comm->size > 1;
    GNOMON_FAIL_IF(divided && x->memory == GNOMON_DEVICE_MEMORY, w->ctx, GNOMON_ERROR_UNSUPPORTED,
                   GNOMON_ARG("x.memory") " is a device's; ranks factor on the CPU");
    GNOMON_TRY(gnomon_tensor_check(
        w->ctx, x, rows != NULL || (divided && x->data == NULL) /* with no slices */, w->name));
    w->modes = x->modes;
    GNOMON_TRY(read_ranks(w, x));
    for (int i = 0; i < x->modes; i++) {
        inner.size[i] = x->size[w->name[i]];
        inner.stride[i] = x->stride[w->name[i]];
    }
    for (int i = 1; i < x->modes; i++)
        cols *= inner.size[i];
    GNOMON_TRY(count_own(w, comm, inner.size[0], cols, &own));
    GNOMON_FAIL_IF(rows == NULL && own > 0 && x->data == NULL, w->ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("x.data") " is NULL, and rank %d has %" PRId64 " slices", comm->rank,
                   own);
    if (rows != NULL) {
        GNOMON_FAIL_IF(rows->next == NULL || rows->rewind == NULL, w->ctx, GNOMON_ERROR_ARGUMENT,
                       GNOMON_ARG(GNOMON_ARG("rows") ".next") " or rows.rewind is NULL; a tensor "
                                                              "is gone through more than once");
        GNOMON_FAIL_IF(divided && rows->rows != own, w->ctx, GNOMON_ERROR_SHAPE,
                       GNOMON_ARG("rows") " has %" PRId64 " rows on rank %d; of %" PRId64
                                          " in all it must have %" PRId64
                                          ", those that gnomon_hosvd_rank_rows tells",
                       rows->rows, comm->rank, inner.size[0], own);
        GNOMON_FAIL_IF(rows->rows != own || rows->cols != cols, w->ctx, GNOMON_ERROR_SHAPE,
                       GNOMON_ARG("rows") " is %" PRId64 " x %" PRId64
                                          "; the tensor's outermost mode has size "
                                          "%" PRId64 " and the others %" PRId64 " elements",
                       rows->rows, rows->cols, inner.size[0], cols);
    }
    GNOMON_TRY(gnomon_slabs_open(w->ctx, &inner, rows, own, w->f64, &w->x));
    w->x.source.refuse = refuse;
    w->x.source.refuse_user = w;
    return GNOMON_OK;
}

/* ---- a tensor that is divided among ranks ---- */

static gnomon_status serve(void *user, const gnomon_row_step *told)
{
    gnomon_hosvd_work *w = user;
    return gnomon_slab_pass_serve(&w->x, told);
}

/* Begins on all ranks, and does the part of those that rank 0 tells what to do. */
static gnomon_status begin_divided(gnomon_hosvd_work *w, gnomon_row_ranks *ranks,
                                   gnomon_status status)
{
    if (status == GNOMON_OK)
        status = gnomon_device_refuse(w->ctx, GNOMON_BY_CONTEXT, "ranks factor on the CPU");
    if (status == GNOMON_OK) status = gnomon_blas_prepare(w->ctx);
    gnomon_context_set_worked(w->ctx, NULL);
    w->x.source.ctx = w->ctx;
    GNOMON_TRY(gnomon_slabs_begin(&w->x, w->name, ranks, status));
    return gnomon_row_ranks_serve(&w->x.source, serve, w);
}

gnomon_status gnomon_hosvd_rank_rows(gnomon_context *ctx, const struct gnomon_comm *comm,
                                     int64_t rows, int64_t cols, int64_t stretch, int64_t *first,
                                     int64_t *count)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(cols < 1, ctx, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("cols") " is %" PRId64 "; it must be at least 1", cols);
    return gnomon_row_stretch(ctx, comm, rows, gnomon_slab_rows(gnomon_max(rows, 1), cols), stretch,
                              first, count);
}

/* ---- the calls ---- */

static gnomon_status run_on_cpu(gnomon_hosvd_work *w)
{
    gnomon_context *ctx = w->ctx;
    GNOMON_TRY(gnomon_blas_prepare(ctx));
    gnomon_blas_enter();
    const gnomon_status status = run(w);
    gnomon_blas_leave();
    return status;
}

static gnomon_status factor(gnomon_context *ctx, const gnomon_tensor *x,
                            const gnomon_svd_rows *rows, const gnomon_hosvd_options *given,
                            gnomon_hosvd *out)
{
    gnomon_hosvd_work w;
    memset(&w, 0, sizeof w);
    gnomon_hosvd full = {.struct_size = sizeof full, .converged = 1};
    GNOMON_TRY(GNOMON_OPEN_RESULT(ctx, "out", gnomon_hosvd, out));
    w.ctx = ctx;
    w.out = &full;
    GNOMON_TRY(copy_options(ctx, given, &w.options));
    GNOMON_FAIL_IF(x == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("x") " is NULL");
    w.f64 = gnomon_dtype_needs_f64(w.options.dtype != 0 ? w.options.dtype : x->dtype);
    w.descriptor = (gnomon_descriptor)GNOMON_DESCRIPTOR_INIT;
    w.descriptor.kind = GNOMON_GAUSSIAN;
    w.descriptor.seed = w.options.seed;
    if (w.options.descriptor != NULL)
        GNOMON_TRY(GNOMON_COPY_OPTIONS(ctx, "options.descriptor", gnomon_descriptor,
                                       w.options.descriptor, &w.descriptor));
    gnomon_row_ranks ranks;
    GNOMON_TRY(gnomon_row_ranks_open(ctx, w.options.comm, &ranks));
    (void)gnomon_lap(&w.clock);
    const bool divided = ranks.comm.size > 1;
    bool done = divided && ranks.comm.rank > 0;
    gnomon_status status = start(&w, x, rows, &ranks.comm);
    if (divided)
        status = begin_divided(&w, &ranks, status);
    else if (status == GNOMON_OK)
        status = gnomon_hosvd_on_device(&w, x, rows != NULL, &done);
    if (status == GNOMON_OK && !done) status = run_on_cpu(&w);
    if (ranks.comm.rank == 0) status = gnomon_row_ranks_end(&w.x.source, status);
    full.modes = w.modes;
    full.power = w.options.power;
    full.sequential = w.options.sequential != 0;
    full.descriptor = w.descriptor;
    release(&w);
    if (status == GNOMON_OK && ranks.comm.rank == 0) gnomon_return_result(out, &full, sizeof full);
    gnomon_hosvd_free(ctx, &full);
    return status;
}

gnomon_status gnomon_hosvd_dense(gnomon_context *ctx, const gnomon_tensor *x,
                                 const gnomon_hosvd_options *options, gnomon_hosvd *out)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    return factor(ctx, x, NULL, options, out);
}

gnomon_status gnomon_hosvd_stream(gnomon_context *ctx, const gnomon_tensor *x,
                                  const gnomon_svd_rows *rows, const gnomon_hosvd_options *options,
                                  gnomon_hosvd *out)
{
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_FAIL_IF(rows == NULL, ctx, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("rows") " is NULL");
    return factor(ctx, x, rows, options, out);
}

void gnomon_hosvd_free(gnomon_context *ctx, gnomon_hosvd *hosvd)
{
    gnomon_hosvd full;
    if (ctx == NULL || !gnomon_load_result(hosvd, &full, sizeof full)) return;
    gnomon_free(ctx, full.core.data);
    for (int n = 0; n < GNOMON_TENSOR_MODES; n++) {
        gnomon_free(ctx, full.factor[n].data);
        gnomon_free(ctx, full.values[n]);
    }
    gnomon_clear_result(hosvd);
}
