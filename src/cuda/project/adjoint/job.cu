/* An adjoint, wherever its vectors and its output lie: batches of points and, where one point does
 * not fit, ranges of columns. Kernels and copies out overlap, a piece apart. */
#include "base/arithmetic.h"
#include "cuda/project/family.h"
#include "cuda/project/job.h"
#include "cuda/runtime/alloc.h"
#include "cuda/runtime/transfer.h"

enum { OUTPUTS = 2 };

static const int64_t piece_bytes = 64 << 20;

struct plan {
    int64_t batch, width; /* points, columns */
    int outputs;
    size_t in_bytes, out_bytes, work_bytes, needed;
};

struct run {
    gcu_state *s;
    const gnomon_sketch_job *job;
    gcu_why why;
    cudaStream_t stream;
    gcu_place x_place, y_place;
    plan plan;
    void *in, *out[OUTPUTS], *work;
    unsigned long long *first_bad; /* device memory */
    cudaEvent_t done[OUTPUTS], gone[OUTPUTS], ready;
};

/* Rows [row, row + rows) and columns [col, col + cols) of x, to be handed over from out[which]. */
struct piece {
    int64_t row, rows, col, cols;
    int which;
};

static gcu_adjoint_task task_of(const gcu_state *s, const gnomon_sketch_job *job,
                                const gnomon_matrix *y, const gnomon_matrix *x, int64_t col)
{
    gcu_adjoint_task t = {};
    t.op = job->op;
    t.y = *y;
    t.x = *x;
    t.alpha = job->alpha;
    t.beta = job->beta;
    t.row = job->row;
    t.rows = job->rows;
    t.col = job->col + col;
    t.f64 = job->f64;
    t.gpu = &s->gpu;
    return t;
}

bool gcu_adjoint_supported(const gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    const gcu_adjoint_task t = task_of(s, job, job->y, job->x, 0);
    return gcu_adjoint_supports(&t, why.text, why.size);
}

/* ---- memory ---- */

static void size_up(run *r, plan *p)
{
    const gnomon_matrix *x = r->job->x, *y = r->job->y;
    const gnomon_matrix from = gcu_packed(y, p->batch, y->cols);
    const gnomon_matrix to = gcu_packed(x, p->batch, p->width);
    const gcu_adjoint_task t = task_of(r->s, r->job, &from, &to, 0);
    p->in_bytes = r->y_place == GCU_DEVICE ? 0 : gcu_packed_bytes(&from);
    p->out_bytes = r->x_place == GCU_DEVICE ? 0 : gcu_packed_bytes(&to);
    const bool one = p->batch == x->rows && p->width == x->cols;
    p->outputs = p->out_bytes == 0 ? 0 : one ? 1 : OUTPUTS;
    p->work_bytes = gcu_adjoint_best_work(&t);
    p->needed = p->in_bytes + p->outputs * p->out_bytes + gcu_adjoint_least_work(&t);
}

/* What is fast, or the most that needs no more than so many bytes. */
static bool make_plan(run *r, size_t bytes)
{
    plan *p = &r->plan;
    const gnomon_matrix *x = r->job->x;
    *p = plan{};
    p->batch = x->rows;
    p->width = x->cols;
    if (r->x_place != GCU_DEVICE) {
        const int64_t size = (int64_t)gnomon_dtype_size(x->dtype);
        const int64_t room = gnomon_min(piece_bytes, (int64_t)(bytes / 8)) / size;
        const int64_t points = room / (p->width > 0 ? p->width : 1);
        p->batch = gnomon_min(x->rows, points > 0 ? points : 1);
    }
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        if (p->batch > 1)
            p->batch = (p->batch + 1) / 2;
        else if (p->width > 1)
            p->width = (p->width + 1) / 2;
        else
            return false;
    }
    const size_t fixed = p->in_bytes + p->outputs * p->out_bytes;
    if (p->work_bytes > bytes - fixed) p->work_bytes = bytes - fixed;
    return true;
}

static void free_all(run *r)
{
    gcu_free(r->in, r->stream);
    gcu_free(r->work, r->stream);
    r->in = r->work = nullptr;
    for (int i = 0; i < OUTPUTS; i++) {
        gcu_free(r->out[i], r->stream);
        r->out[i] = nullptr;
    }
}

static cudaError_t alloc_all(run *r)
{
    const plan *p = &r->plan;
    cudaError_t error = gcu_alloc(r->s, &r->work, p->work_bytes, r->stream);
    if (error == cudaSuccess) error = gcu_alloc(r->s, &r->in, p->in_bytes, r->stream);
    for (int i = 0; i < p->outputs && error == cudaSuccess; i++)
        error = gcu_alloc(r->s, &r->out[i], p->out_bytes, r->stream);
    return error;
}

/* ---- pieces ---- */

/* The vectors of points [row, row + rows), on the GPU. */
static gnomon_status bring(run *r, int64_t row, int64_t rows, gnomon_matrix *y)
{
    const gnomon_matrix part = gcu_part(r->job->y, row, rows, 0, r->job->y->cols);
    *y = part;
    if (r->y_place == GCU_DEVICE) return GNOMON_OK;
    *y = gcu_packed(r->job->y, rows, part.cols);
    y->data = r->in;
    return gcu_upload(r->s, gcu_transfer_of(r->job), &part, r->y_place, y, r->stream, r->why);
}

/* Fails with NONFINITE if one of the vectors' elements is bad; nothing has been written yet. */
static gnomon_status scan(run *r)
{
    const gnomon_matrix *all = r->job->y;
    GCU_TRY(r->why, cudaMemsetAsync(r->first_bad, 0xff, sizeof *r->first_bad, r->stream));
    for (int64_t row = 0; row < all->rows; row += r->plan.batch) {
        gnomon_matrix y;
        const gnomon_status status = bring(r, row, gnomon_min(r->plan.batch, all->rows - row), &y);
        if (status != GNOMON_OK) return status;
        GCU_TRY(r->why, gcu_find_nonfinite(&y, row, 0, all->cols, r->first_bad, r->stream));
    }
    unsigned long long first = 0;
    GCU_TRY(r->why,
            cudaMemcpyAsync(&first, r->first_bad, sizeof first, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    if (first == ~0ull) return r->job->host->checked(r->job->host->user);
    const unsigned long long cols = (unsigned long long)all->cols;
    first += (unsigned long long)r->job->host->row * cols;
    gcu_about(r->job->host, "y", (int64_t)(first / cols), (int64_t)(first % cols));
    return gcu_fail(r->why, GNOMON_ERROR_NONFINITE,
                    "y: element (%llu, %llu) is NaN or infinite; options.allow_nonfinite lets "
                    "such values pass",
                    first / cols, first % cols);
}

static gnomon_matrix target(const run *r, const piece *p)
{
    if (r->x_place == GCU_DEVICE) return gcu_part(r->job->x, p->row, p->rows, p->col, p->cols);
    gnomon_matrix x = gcu_packed(r->job->x, p->rows, p->cols);
    x.data = r->out[p->which];
    return x;
}

static gnomon_status start(run *r, const piece *p, const gnomon_matrix *y)
{
    const gnomon_matrix x = target(r, p);
    if (r->plan.outputs) GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->gone[p->which], 0));
    if (r->plan.outputs && r->job->beta != 0.0) {
        const gnomon_matrix old = gcu_part(r->job->x, p->row, p->rows, p->col, p->cols);
        const gnomon_status status =
            gcu_upload(r->s, gcu_transfer_of(r->job), &old, r->x_place, &x, r->stream, r->why);
        if (status != GNOMON_OK) return status;
    }
    gcu_adjoint_task t = task_of(r->s, r->job, y, &x, p->col);
    t.stream = r->stream;
    t.work = r->work;
    t.work_bytes = r->plan.work_bytes;
    GCU_TRY(r->why, gcu_adjoint(&t));
    if (r->plan.outputs) GCU_TRY(r->why, cudaEventRecord(r->done[p->which], r->stream));
    return GNOMON_OK;
}

static gnomon_status hand_over(run *r, const piece *p)
{
    if (p->rows == 0 || !r->plan.outputs) return GNOMON_OK;
    const gnomon_matrix from = target(r, p);
    const gnomon_matrix to = gcu_part(r->job->x, p->row, p->rows, p->col, p->cols);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->done[p->which], 0));
    const gnomon_status status =
        gcu_download(r->s, gcu_transfer_of(r->job), &from, &to, r->x_place, r->s->out, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->gone[p->which], r->s->out));
    return GNOMON_OK;
}

static gnomon_status all_pieces(run *r)
{
    const gnomon_matrix *x = r->job->x;
    const gnomon_device_host *host = r->job->host;
    piece before = {};
    int which = 0;
    for (int64_t row = 0; row < x->rows; row += r->plan.batch) {
        const int64_t rows = gnomon_min(r->plan.batch, x->rows - row);
        gnomon_matrix y;
        gnomon_status status = bring(r, row, rows, &y);
        for (int64_t col = 0; col < x->cols && status == GNOMON_OK; col += r->plan.width) {
            const piece p = {row, rows, col, gnomon_min(r->plan.width, x->cols - col), which};
            status = start(r, &p, &y);
            if (status == GNOMON_OK) status = hand_over(r, &before);
            before = p;
            if (r->plan.outputs == OUTPUTS) which = 1 - which;
        }
        if (status != GNOMON_OK) return status;
        if (row + rows < x->rows && host->progress(host->user, row + rows, x->rows))
            return GNOMON_ERROR_CANCELLED;
    }
    return hand_over(r, &before);
}

static gnomon_status work(run *r)
{
    const gnomon_sketch_job *job = r->job;
    gnomon_status status = gcu_place_of(r->s, job->y, "y", &r->y_place, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, job->x, "x", &r->x_place, r->why);
    if (status != GNOMON_OK || job->x->rows == 0) return status;
    const bool check = job->check && gcu_may_be_nonfinite(job->y->dtype);
    if (check) {
        void *first = nullptr;
        GCU_TRY(r->why, gcu_alloc(r->s, &first, sizeof *r->first_bad, r->stream));
        r->first_bad = static_cast<unsigned long long *>(first);
    }
    status = gcu_alloc_planned(r, "coordinate", make_plan, alloc_all, free_all);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->ready, r->stream));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->ready, 0));
    if (check) status = scan(r);
    if (status != GNOMON_OK || job->x->cols == 0) return status;
    return all_pieces(r);
}

static cudaError_t make_events(run *r)
{
    cudaEvent_t *const events[] = {&r->done[0], &r->done[1], &r->gone[0], &r->gone[1], &r->ready};
    for (cudaEvent_t *event : events) {
        const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

gnomon_status gcu_adjoint_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.stream = job->stream ? static_cast<cudaStream_t>(job->stream) : s->stream;
    const cudaError_t made = make_events(&r);
    gnomon_status status = made == cudaSuccess ? work(&r) : gcu_status(why, made, "making events");
    const bool runs_on = status == GNOMON_OK && job->stream && !job->check &&
                         r.x_place == GCU_DEVICE && r.y_place == GCU_DEVICE;
    /* Nothing may be on its way to the host when its memory is given back. */
    if (!runs_on) {
        const cudaError_t error = cudaStreamSynchronize(s->out);
        if (status == GNOMON_OK && error != cudaSuccess)
            status = gcu_status(why, error, "transfers");
    }
    free_all(&r);
    gcu_free(r.first_bad, r.stream);
    if (!runs_on) {
        const cudaError_t error = cudaStreamSynchronize(r.stream);
        if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    }
    cudaEvent_t const events[] = {r.done[0], r.done[1], r.gone[0], r.gone[1], r.ready};
    for (cudaEvent_t event : events)
        if (event) cudaEventDestroy(event);
    return status;
}
