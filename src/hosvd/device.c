/* Handing a tensor to a device. */
#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"
#include "hosvd/job.h"
#include "hosvd/work.h"
#include "project/job.h"

#include <math.h>
#include <string.h>

/* Multiplications and additions that are worth the way: half a second or so of two cores. */
static const double worth_it = 5e10;

static int progress(void *user, int64_t done, int64_t total)
{
    return gnomon_progress(user, "passes", done, total) != GNOMON_OK;
}

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
    const gnomon_dtype dtype = job->wide ? GNOMON_F64 : GNOMON_F32;
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

static void take_over(gnomon_hosvd_work *w, const gnomon_hosvd_job *job)
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
    out->look_seconds = job->look_seconds;
    out->project_seconds = job->project_seconds;
    out->power_seconds = job->power_seconds;
    out->orthonormalise_seconds = job->orthonormalise_seconds;
    out->shrink_seconds = job->shrink_seconds;
    out->small_seconds = job->small_seconds;
    out->measure_seconds = job->measure_seconds;
}

static gnomon_status run(task *t, const gnomon_device_table *table, void *state, char *why,
                         size_t why_size)
{
    gnomon_hosvd_work *w = t->w;
    gnomon_hosvd_job *job = t->job;
    gnomon_context_set_worked(w->ctx, GNOMON_DEVICE_CUDA);
    gnomon_status status = draw_operators(t);
    if (status == GNOMON_OK) {
        why[0] = 0;
        status = table->hosvd(state, job, why, why_size);
        if (status == GNOMON_OK)
            take_over(w, job);
        else if (status == GNOMON_ERROR_NONFINITE && job->bad_row >= 0)
            status = gnomon_hosvd_name_element(w, job->bad_row, job->bad_col, job->x.cols);
        else
            status = gnomon_job_device_failed(w->ctx, status, why);
    }
    for (int i = 0; i < w->modes; i++)
        gnomon_operator_destroy(t->op[i]);
    return status;
}

/* Whether to ask under AUTO, where a look costs the opening of the plugin. */
static bool is_worth_it(const gnomon_hosvd_work *w)
{
    double count = 1, columns = 0;
    for (int i = 0; i < w->modes; i++) {
        count *= (double)w->size[i];
        columns += (double)w->columns[i];
    }
    return !w->wide && 2 * count * columns * (1 + 2.0 * w->options.power) >= worth_it;
}

gnomon_status gnomon_hosvd_on_device(gnomon_hosvd_work *w, const gnomon_tensor *x, bool streamed,
                                     bool *done)
{
    gnomon_context *ctx = w->ctx;
    const bool must = gnomon_context_device(ctx) == GNOMON_DEVICE_CUDA;
    const bool there = !streamed && x->memory != GNOMON_HOST;
    char why[256] = "it has no factorisations of tensors";
    void *state = NULL;
    gnomon_hosvd_job job;
    memset(&job, 0, sizeof job);
    *done = false;
    GNOMON_FAIL_IF(must && streamed, ctx, GNOMON_ERROR_DEVICE,
                   "tensors that come piece by piece are factored on the CPU; take the device cpu "
                   "or auto");
    gnomon_hosvd_columns(w);
    if (streamed || !(must || there || is_worth_it(w))) {
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
        return GNOMON_OK;
    }
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    const bool rows = as_rows(w, x, &job.x);
    if (table != NULL && table->hosvd != NULL && rows) {
        gnomon_hosvd_turns(w);
        job.modes = w->modes;
        memcpy(job.size, w->size, sizeof job.size);
        memcpy(job.rank, w->rank, sizeof job.rank);
        if (w->options.tolerance == 0) memcpy(job.columns, w->columns, sizeof job.columns);
        memcpy(job.order, w->order, sizeof job.order);
        job.wide = w->wide;
        job.tolerance = w->options.tolerance;
        job.oversample = w->options.oversample;
        job.sequential = w->options.sequential != 0;
        job.power = w->options.power;
        job.measure = w->options.measure != 0;
        job.memory_limit = gnomon_memory_limit(ctx);
        job.bad_row = -1;
        if (table->hosvd_supports(state, &job, why, sizeof why)) {
            gnomon_device_host host = gnomon_job_host(ctx);
            host.progress = progress;
            task t = {.w = w, .job = &job};
            const gnomon_hosvd_calls calls = {draw, make_room, &t};
            job.host = &host;
            job.calls = &calls;
            *done = true;
            return run(&t, table, state, why, sizeof why);
        }
    }
    const char *reason = table == NULL ? gnomon_context_cuda_reason(ctx)
                         : rows        ? why
                                       : "the elements lie in memory in no order that a matrix has";
    GNOMON_FAIL_IF(must && table != NULL, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   reason);
    GNOMON_FAIL_IF(must, ctx, GNOMON_ERROR_DEVICE, "no device: %s", reason);
    GNOMON_FAIL_IF(there, ctx, GNOMON_ERROR_DEVICE,
                   "x lies in a device's memory, and the device did not take the job: %s", reason);
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
