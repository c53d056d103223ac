/* A product of matrices, wherever they lie: batches of A's rows and ranges of B's columns. Copies
 * in, kernels and copies out overlap, a piece apart. */
#include "base/arithmetic.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/job.h"
#include "cuda/runtime/alloc.h"
#include "cuda/runtime/transfer.h"

extern "C" {
#include "gemm/job.h"
}

enum { BUFFERS = 2 };

static const int64_t piece_bytes = 256 << 20;

struct plan {
    int64_t rows, cols; /* of a piece of C */
    size_t a_bytes, b_bytes, c_bytes, work_bytes, needed;
    int as, cs; /* buffers */
};

struct run {
    gcu_state *s;
    const gnomon_gemm_job *job;
    gcu_transfer transfer;
    gcu_why why;
    cudaStream_t stream;
    gnomon_matrix a, b, c; /* transposed so that A is the larger one of A and B */
    gcu_place a_place, b_place, c_place;
    int64_t whole_m, whole_n; /* of the product that this is a part of */
    plan plan;
    void *a_data[BUFFERS], *b_data, *c_data[BUFFERS], *work;
    cudaEvent_t came[BUFFERS], used[BUFFERS], done[BUFFERS], gone[BUFFERS], ready;
};

struct piece {
    int64_t row, rows, col, cols;
    int which;
};

/* The product of a piece, on views in the GPU's memory. */
static gcu_gemm product_of(const run *r, const gnomon_matrix *a, const gnomon_matrix *b,
                           const gnomon_matrix *c)
{
    gcu_gemm g = {};
    g.form = r->job->form == GNOMON_GEMM_FP16   ? GCU_GEMM_FP16
             : r->job->form == GNOMON_GEMM_TF32 ? GCU_GEMM_TF32
                                                : GCU_GEMM_SCALED;
    g.m = a->rows;
    g.n = b->cols;
    g.k = a->cols;
    g.a = {a->data, a->dtype, a->row_stride, a->col_stride};
    g.b = {b->data, b->dtype, b->row_stride, b->col_stride};
    if (c->dtype == GNOMON_F64)
        g.c64 = static_cast<double *>(c->data);
    else
        g.c = static_cast<float *>(c->data);
    g.c_row_stride = c->row_stride;
    g.c_col_stride = c->col_stride;
    g.alpha = r->job->alpha;
    g.beta = r->job->beta;
    g.gpu = &r->s->gpu;
    g.whole_m = r->whole_m;
    g.whole_n = r->whole_n;
    return g;
}

/* ---- memory ---- */

/* A piece of a matrix that is whole_rows x whole_cols in the whole product. Its lines are aligned
 * where that one's would be, so that the product is computed in the same way. */
static gnomon_matrix held(const gnomon_matrix *m, gcu_place place, int64_t row, int64_t rows,
                          int64_t col, int64_t cols, void *data, int64_t whole_rows,
                          int64_t whole_cols)
{
    if (place == GCU_DEVICE) return gcu_part(m, row, rows, col, cols);
    gnomon_matrix packed = gcu_packed(m, rows, cols);
    const gnomon_matrix whole = gcu_packed(m, whole_rows, whole_cols);
    const bool by_rows = gnomon_abs(m->col_stride) <= gnomon_abs(m->row_stride);
    const int64_t unit = 16 / (int64_t)gnomon_dtype_size(m->dtype);
    int64_t *pitch = by_rows ? &packed.row_stride : &packed.col_stride;
    const bool aligned = (by_rows ? whole.row_stride : whole.col_stride) % unit == 0;
    while ((*pitch % unit == 0) != aligned)
        ++*pitch;
    packed.data = data;
    return packed;
}

static gnomon_matrix held_a(const run *r, int64_t row, int64_t rows, void *data)
{
    return held(&r->a, r->a_place, row, rows, 0, r->a.cols, data, r->whole_m, r->a.cols);
}

static gnomon_matrix held_b(const run *r, int64_t col, int64_t cols, void *data)
{
    return held(&r->b, r->b_place, 0, r->b.rows, col, cols, data, r->b.rows, r->whole_n);
}

static gnomon_matrix held_c(const run *r, int64_t row, int64_t rows, int64_t col, int64_t cols,
                            void *data)
{
    return held(&r->c, r->c_place, row, rows, col, cols, data, r->whole_m, r->whole_n);
}

static void size_up(run *r, plan *p)
{
    const int64_t k = r->a.cols;
    const gnomon_matrix a = held_a(r, 0, p->rows, nullptr);
    const gnomon_matrix b = held_b(r, 0, p->cols, nullptr);
    const gnomon_matrix c = held_c(r, 0, p->rows, 0, p->cols, nullptr);
    const bool read = k > 0 && r->job->alpha != 0.0;
    const bool one = p->rows == r->c.rows && p->cols == r->c.cols;
    const gcu_gemm g = product_of(r, &a, &b, &c);
    p->a_bytes = r->a_place == GCU_DEVICE || !read ? 0 : gcu_packed_bytes(&a);
    p->b_bytes = r->b_place == GCU_DEVICE || !read ? 0 : gcu_packed_bytes(&b);
    p->c_bytes = r->c_place == GCU_DEVICE ? 0 : gcu_packed_bytes(&c);
    p->as = p->a_bytes == 0 ? 0 : p->rows == r->c.rows ? 1 : BUFFERS;
    p->cs = p->c_bytes == 0 ? 0 : one ? 1 : BUFFERS;
    p->work_bytes = gcu_gemm_work(&g);
    p->needed = p->as * p->a_bytes + p->b_bytes + p->cs * p->c_bytes + p->work_bytes;
}

/* Half as many, a multiple of what a block of threads computes: so parts of a view that is aligned
 * are too. */
static int64_t halved(int64_t count, int64_t block)
{
    return ((count + 1) / 2 + block - 1) / block * block;
}

static bool make_plan(run *r, size_t bytes)
{
    plan *p = &r->plan;
    *p = plan{};
    p->rows = r->c.rows;
    p->cols = r->c.cols;
    if (r->a_place != GCU_DEVICE || r->c_place != GCU_DEVICE) {
        const int64_t line = (r->a.cols + r->c.cols) * 4;
        const int64_t rows = piece_bytes / line / 128 * 128;
        p->rows = gnomon_min(p->rows, rows > 0 ? rows : 128);
    }
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        if (p->rows > 1024)
            p->rows = halved(p->rows, 128);
        else if (p->cols > 256)
            p->cols = halved(p->cols, 256);
        else if (p->rows > 128)
            p->rows = halved(p->rows, 128);
        else if (p->cols > 64)
            p->cols = halved(p->cols, 64);
        else
            return false;
    }
    return true;
}

static void free_all(run *r)
{
    gcu_free(r->work, r->stream);
    gcu_free(r->b_data, r->stream);
    r->work = r->b_data = nullptr;
    for (int i = 0; i < BUFFERS; i++) {
        gcu_free(r->a_data[i], r->stream);
        gcu_free(r->c_data[i], r->stream);
        r->a_data[i] = r->c_data[i] = nullptr;
    }
}

static cudaError_t alloc_all(run *r)
{
    const plan *p = &r->plan;
    cudaError_t error = gcu_alloc(r->s, &r->work, p->work_bytes, r->stream);
    if (error == cudaSuccess) error = gcu_alloc(r->s, &r->b_data, p->b_bytes, r->stream);
    for (int i = 0; i < p->as && error == cudaSuccess; i++)
        error = gcu_alloc(r->s, &r->a_data[i], p->a_bytes, r->stream);
    for (int i = 0; i < p->cs && error == cudaSuccess; i++)
        error = gcu_alloc(r->s, &r->c_data[i], p->c_bytes, r->stream);
    return error;
}

/* ---- pieces ---- */

/* Rows of A on the GPU; 'which' of the buffers. Kernels wait for them. */
static gnomon_status bring_a(run *r, int64_t row, int64_t rows, int which, gnomon_matrix *a)
{
    *a = held_a(r, row, rows, r->a_data[which]);
    if (r->plan.as == 0) return GNOMON_OK;
    const gnomon_matrix from = gcu_part(&r->a, row, rows, 0, r->a.cols);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, r->used[which], 0));
    const gnomon_status status =
        gcu_upload(r->s, r->transfer, &from, r->a_place, a, r->s->in, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->came[which], r->s->in));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->came[which], 0));
    return GNOMON_OK;
}

/* Columns of B, in the kernels' stream: the columns before are in use until then. */
static gnomon_status bring_b(run *r, int64_t col, int64_t cols, gnomon_matrix *b)
{
    *b = held_b(r, col, cols, r->b_data);
    if (r->plan.b_bytes == 0) return GNOMON_OK;
    const gnomon_matrix from = gcu_part(&r->b, 0, r->b.rows, col, cols);
    return gcu_upload(r->s, r->transfer, &from, r->b_place, b, r->stream, r->why);
}

static gnomon_status start(run *r, const piece *p, const gnomon_matrix *a, const gnomon_matrix *b)
{
    const gnomon_matrix c = held_c(r, p->row, p->rows, p->col, p->cols, r->c_data[p->which]);
    if (r->plan.cs) GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->gone[p->which], 0));
    if (r->plan.cs && r->job->beta != 0.0) {
        const gnomon_matrix old = gcu_part(&r->c, p->row, p->rows, p->col, p->cols);
        const gnomon_status status =
            gcu_upload(r->s, r->transfer, &old, r->c_place, &c, r->stream, r->why);
        if (status != GNOMON_OK) return status;
    }
    const gcu_gemm g = product_of(r, a, b, &c);
    GCU_TRY(r->why, gcu_gemm_run(&g, r->work, r->plan.work_bytes, r->stream));
    if (r->plan.as) GCU_TRY(r->why, cudaEventRecord(r->used[p->which], r->stream));
    if (r->plan.cs) GCU_TRY(r->why, cudaEventRecord(r->done[p->which], r->stream));
    return GNOMON_OK;
}

static gnomon_status hand_over(run *r, const piece *p)
{
    if (p->rows == 0 || !r->plan.cs) return GNOMON_OK;
    const gnomon_matrix from = held_c(r, p->row, p->rows, p->col, p->cols, r->c_data[p->which]);
    const gnomon_matrix to = gcu_part(&r->c, p->row, p->rows, p->col, p->cols);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->done[p->which], 0));
    const gnomon_status status =
        gcu_download(r->s, r->transfer, &from, &to, r->c_place, r->s->out, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->gone[p->which], r->s->out));
    return GNOMON_OK;
}

static gnomon_status all_pieces(run *r)
{
    const gnomon_device_host *host = r->job->host;
    const plan *plan = &r->plan;
    const int64_t rows = r->c.rows, cols = r->c.cols;
    const int64_t rounds = (cols + plan->cols - 1) / plan->cols;
    piece before = {};
    int which = 0;
    for (int64_t col = 0; col < cols; col += plan->cols) {
        gnomon_matrix a, b;
        gnomon_status status = bring_b(r, col, gnomon_min(plan->cols, cols - col), &b);
        for (int64_t row = 0; row < rows && status == GNOMON_OK; row += plan->rows) {
            const piece p = {row, gnomon_min(plan->rows, rows - row), col,
                             gnomon_min(plan->cols, cols - col), which};
            if (plan->as == 1 && col > 0) /* all there since the first time */
                a = held_a(r, row, p.rows, r->a_data[0]);
            else
                status = bring_a(r, row, p.rows, plan->as == BUFFERS ? which : 0, &a);
            if (status == GNOMON_OK) status = start(r, &p, &a, &b);
            if (status == GNOMON_OK) status = hand_over(r, &before);
            before = p;
            if (plan->cs == BUFFERS || plan->as == BUFFERS) which = 1 - which;
            const int64_t done = col / plan->cols * rows + row + p.rows;
            if (status == GNOMON_OK && done < rounds * rows &&
                host->progress(host->user, done / rounds, rows))
                status = GNOMON_ERROR_CANCELLED;
        }
        if (status != GNOMON_OK) return status;
    }
    return hand_over(r, &before);
}

static gnomon_status work(run *r)
{
    const gnomon_gemm_job *job = r->job;
    gcu_place a, b;
    gnomon_status status = gcu_place_of(r->s, job->a, "a", &a, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, job->b, "b", &b, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, job->c, "c", &r->c_place, r->why);
    if (status != GNOMON_OK || job->c->rows == 0 || job->c->cols == 0) return status;
    /* The larger one passes by in batches of rows, the smaller one stays. */
    const int64_t rows = job->whole_rows ? job->whole_rows : job->c->rows;
    const int64_t cols = job->whole_cols ? job->whole_cols : job->c->cols;
    const bool swapped = rows < cols;
    r->whole_m = swapped ? cols : rows;
    r->whole_n = swapped ? rows : cols;
    r->a = swapped ? gnomon_matrix_transposed(job->b) : *job->a;
    r->b = swapped ? gnomon_matrix_transposed(job->a) : *job->b;
    r->c = swapped ? gnomon_matrix_transposed(job->c) : *job->c;
    r->a_place = swapped ? b : a;
    r->b_place = swapped ? a : b;
    status = gcu_alloc_planned(r, "part of the product", make_plan, alloc_all, free_all);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->ready, r->stream));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, r->ready, 0));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->ready, 0));
    return all_pieces(r);
}

static cudaError_t make_events(run *r)
{
    cudaEvent_t *const events[] = {&r->came[0], &r->came[1], &r->used[0], &r->used[1], &r->done[0],
                                   &r->done[1], &r->gone[0], &r->gone[1], &r->ready};
    for (cudaEvent_t *event : events) {
        const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

gnomon_status gcu_gemm_job(gcu_state *s, const gnomon_gemm_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.transfer = gcu_transfer_of(job);
    r.stream = job->stream ? static_cast<cudaStream_t>(job->stream) : s->stream;
    const cudaError_t made = make_events(&r);
    gnomon_status status = made == cudaSuccess ? work(&r) : gcu_status(why, made, "making events");
    const bool runs_on = status == GNOMON_OK && job->stream && r.a_place == GCU_DEVICE &&
                         r.b_place == GCU_DEVICE && r.c_place == GCU_DEVICE;
    /* Nothing may be on its way from or to the host when its memory is given back. */
    if (!runs_on) {
        const cudaError_t in = cudaStreamSynchronize(s->in), out = cudaStreamSynchronize(s->out);
        if (status == GNOMON_OK && (in != cudaSuccess || out != cudaSuccess))
            status = gcu_status(why, in != cudaSuccess ? in : out, "transfers");
    }
    free_all(&r);
    if (!runs_on) {
        const cudaError_t error = cudaStreamSynchronize(r.stream);
        if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    }
    cudaEvent_t const events[] = {r.came[0], r.came[1], r.used[0], r.used[1], r.done[0],
                                  r.done[1], r.gone[0], r.gone[1], r.ready};
    for (cudaEvent_t event : events)
        if (event) cudaEventDestroy(event);
    return status;
}
