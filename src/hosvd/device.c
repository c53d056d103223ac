/* Handing a tensor to a device. */
#include "base/device.h"
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/job.h"
#include "hosvd/work.h"
#include "project/job.h"

#include <math.h>
#include <string.h>

/* Multiplications and additions whose gain exceeds the transfer: half a second of two cores. */
static const double worth_it = 5e10;

/* The tensor as rows, when its elements lie in memory as they do in a matrix. */
static bool as_rows(const gnomon_hosvd_work *w, const gnomon_tensor *x, gnomon_matrix *rows)
{
    int64_t step = 1;
    *rows = (gnomon_matrix){x->data, x->dtype, x->memory, 1, 1, 0, 1};
    for (int i = w->modes - 1; i >= 0; i--) {
        const int n = w->name[i];
        if (i == 0) rows->cols = step;
        if (x->size[n] > 1 && x->stride[n] != step) {
            if (i > 0 || x->stride[n] < step) return false;
            rows->rows = x->size[n];
            rows->row_stride = x->stride[n];
            return true;
        }
        step *= x->size[n];
    }
    rows->cols = rows->row_stride = step;
    return true;
}

/* One job on its way. */
typedef struct task {
    gnomon_hosvd_work *w;
    gnomon_hosvd_job *job;
    bool rows; /* its elements lie as a matrix's */
    gnomon_operator *op[GNOMON_TENSOR_MODES];
} task;

static gnomon_status draw(void *user, int mode, const int64_t *size, int64_t columns)
{
    task *t = user;
    gnomon_slabs there = {.modes = t->w->modes}; /* only its sizes count */
    memcpy(there.size, size, sizeof there.size);
    const int64_t most = gnomon_range_columns(&there, mode);
    gnomon_operator_destroy(t->op[mode]);
    t->job->op[mode] = t->op[mode] = NULL;
    GNOMON_TRY(
        gnomon_range_operator(t->w, &there, mode, columns < most ? columns : most, &t->op[mode]));
    t->job->op[mode] = t->op[mode];
    return GNOMON_OK;
}

/* The operator of each mode that is projected, for what will be there when its turn comes. */
static gnomon_status draw_operators(task *t)
{
    const gnomon_hosvd_work *w = t->w;
    int64_t size[GNOMON_TENSOR_MODES];
    memcpy(size, w->size, sizeof size);
    for (int i = 0; i < w->modes; i++) {
        const int mode = w->order[i];
        if (t->job->columns[mode] > 0) GNOMON_TRY(draw(t, mode, size, t->job->columns[mode]));
        if (w->options.sequential) size[mode] = w->rank[mode];
    }
    return GNOMON_OK;
}

static gnomon_status make_room(void *user, const int64_t *rank)
{
    task *t = user;
    gnomon_hosvd_work *w = t->w;
    gnomon_hosvd_job *job = t->job;
    gnomon_hosvd *out = w->out;
    const gnomon_dtype dtype = job->f64 ? GNOMON_F64 : GNOMON_F32;
    const size_t each = gnomon_dtype_size(dtype);
    int64_t count = 1;
    for (int i = 0; i < w->modes; i++) {
        const int n = w->name[i];
        out->size[n] = w->size[i];
        out->rank[n] = rank[i];
        count *= rank[i];
        GNOMON_TRY(gnomon_alloc(w->ctx, gnomon_times(w->size[i], rank[i]), each, "a factor",
                                &job->factor[i]));
        out->factor[n] = gnomon_matrix_rowmajor(job->factor[i], dtype, w->size[i], rank[i]);
        GNOMON_TRY(gnomon_alloc(w->ctx, rank[i], sizeof(double), "a spectrum", &out->values[n]));
        job->values[i] = out->values[n];
    }
    GNOMON_TRY(gnomon_alloc(w->ctx, count, each, "the core", &job->core));
    out->core = gnomon_tensor_packed(job->core, dtype, w->modes, out->rank, 0);
    for (int i = 0; i < w->modes; i++)
        job->core_step[i] = out->core.stride[w->name[i]];
    return GNOMON_OK;
}

static void copy_results(gnomon_hosvd_work *w, const gnomon_hosvd_job *job)
{
    gnomon_hosvd *out = w->out;
    const double factor = ldexp(1.0, job->exponent);
    for (int i = 0; i < w->modes; i++) {
        const int n = w->name[i];
        out->columns[n] = job->columns[i];
        for (int64_t j = 0; j < out->rank[n]; j++)
            out->values[n][j] *= factor;
    }
    out->norm = job->norm * factor;
    out->residual = job->residual * factor;
    out->residual_by = job->residual_by;
    if (job->tolerance > 0) out->converged = job->residual <= job->tolerance * job->norm;
    out->passes = job->passes;
    out->cholesky = job->cholesky;
    out->householder = job->householder;
    out->check_seconds = job->check_seconds;
    out->project_seconds = job->project_seconds;
    out->power_seconds = job->power_seconds;
    out->orthonormalise_seconds = job->orthonormalise_seconds;
    out->shrink_seconds = job->shrink_seconds;
    out->small_seconds = job->small_seconds;
    out->measure_seconds = job->measure_seconds;
}

static void fill_in(task *t)
{
    gnomon_hosvd_work *w = t->w;
    gnomon_hosvd_job *job = t->job;
    gnomon_hosvd_order_at_ends(w);
    job->modes = w->modes;
    memcpy(job->size, w->size, sizeof job->size);
    memcpy(job->rank, w->rank, sizeof job->rank);
    if (w->options.tolerance == 0) memcpy(job->columns, w->columns, sizeof job->columns);
    memcpy(job->order, w->order, sizeof job->order);
    job->f64 = w->f64;
    job->tolerance = w->options.tolerance;
    job->oversample = w->options.oversample;
    job->sequential = w->options.sequential != 0;
    job->power = w->options.power;
    job->measure = w->options.measure != 0;
    job->memory_limit = gnomon_memory_limit(w->ctx);
    job->bad_row = -1;
}

static bool takes(gnomon_device_call *call, void *user)
{
    task *t = user;
    if (call->table->hosvd == NULL)
        return gnomon_device_unable(call, "it has no factorisations of tensors");
    if (!t->rows)
        return gnomon_device_unable(call,
                                    "the elements lie in memory in no order that a matrix has");
    fill_in(t);
    return call->table->hosvd_supports(call->state, t->job, call->why, sizeof call->why);
}

static gnomon_status run(gnomon_device_call *call, void *user)
{
    task *t = user;
    gnomon_hosvd_job *job = t->job;
    const gnomon_hosvd_calls calls = {draw, make_room, t};
    job->host = &call->host;
    job->calls = &calls;
    GNOMON_TRY(draw_operators(t));
    const gnomon_status status = call->table->hosvd(call->state, job, call->why, sizeof call->why);
    if (status == GNOMON_OK) copy_results(t->w, job);
    if (status != GNOMON_ERROR_NONFINITE || job->bad_row < 0) return status;
    call->why[0] = 0;
    return gnomon_hosvd_name_element(t->w, job->bad_row, job->bad_col, job->x.cols);
}

/* Whether to ask under AUTO, where asking opens the plugin. */
static bool is_worth_it(const gnomon_hosvd_work *w)
{
    double count = 1, columns = 0;
    for (int i = 0; i < w->modes; i++) {
        count *= (double)w->size[i];
        columns += (double)w->columns[i];
    }
    return !w->f64 && 2 * count * columns * (1 + 2.0 * w->options.power) >= worth_it;
}

gnomon_status gnomon_hosvd_on_device(gnomon_hosvd_work *w, const gnomon_tensor *x, bool streamed,
                                     bool *done)
{
    gnomon_context *ctx = w->ctx;
    const bool there = !streamed && x->memory != GNOMON_HOST;
    gnomon_hosvd_job job;
    memset(&job, 0, sizeof job);
    *done = false;
    if (streamed)
        GNOMON_TRY(gnomon_device_refuse(
            ctx, GNOMON_BY_CONTEXT, "tensors that come piece by piece are factored on the CPU"));
    gnomon_hosvd_columns(w);
    task t = {.w = w, .job = &job};
    t.rows = !streamed && as_rows(w, x, &job.x);
    const gnomon_device_step step = {.phase = "passes",
                                     .takes = takes,
                                     .run = run,
                                     .calls_back = true,
                                     .not_worth = streamed || !(there || is_worth_it(w)),
                                     .there = there ? "x" : NULL};
    gnomon_device_call call;
    const gnomon_status status = gnomon_device_run(&call, ctx, GNOMON_BY_CONTEXT, &step, &t, done);
    for (int i = 0; i < w->modes; i++)
        gnomon_operator_destroy(t.op[i]);
    return status;
}
