/* The matrix that is factored: how it comes to the GPU, and its products. */
#include "cuda/svd.h"

#include <math.h>

static const int64_t tile_elements = 1 << 26; /* of A at a time, where a residual is measured */

/* Enqueues the product in work space that grows as needed. */
static gnomon_status run(gcu_svd *v, const gcu_gemm *g)
{
    const size_t bytes = gcu_gemm_work(g);
    if (bytes > v->product_bytes) {
        gcu_give(v->product_work, v->stream);
        v->product_bytes = 0;
        GCU_TRY(v->why, gcu_take(v->s, &v->product_work, bytes, v->stream));
        v->product_bytes = bytes;
    }
    GCU_TRY(v->why, gcu_gemm_run(g, v->product_work, v->product_bytes, v->stream));
    return GNOMON_OK;
}

/* whole_m: rows of the product that this is a part of. */
static gnomon_status product_of_part(gcu_svd *v, int64_t whole_m, int64_t m, int64_t n, int64_t k,
                                     float alpha, gcu_gemm_view a, gcu_gemm_view b, float beta,
                                     float *c)
{
    gcu_gemm g = {};
    g.whole_m = whole_m;
    g.whole_n = n;
    g.form = b.dtype == GNOMON_F16 ? GCU_GEMM_SCALED : GCU_GEMM_THREE;
    g.m = m;
    g.n = n;
    g.k = k;
    g.a = a;
    g.b = b;
    g.c = c;
    g.c_row_stride = n;
    g.c_col_stride = 1;
    g.alpha = alpha;
    g.beta = beta;
    g.gpu = &v->s->gpu;
    return run(v, &g);
}

gnomon_status gcu_svd_product(gcu_svd *v, int64_t m, int64_t n, int64_t k, float alpha,
                              gcu_gemm_view a, gcu_gemm_view b, float beta, float *c)
{
    return product_of_part(v, m, m, n, k, alpha, a, b, beta, c);
}

static gcu_gemm_view operand(const gnomon_matrix *a, bool transposed)
{
    return {a->data, GNOMON_F32, transposed ? a->col_stride : a->row_stride,
            transposed ? a->row_stride : a->col_stride};
}

/* A w where A's columns come in runs. */
static gcu_gemm in_runs(const gcu_svd *v, int64_t columns, gnomon_dtype dtype)
{
    gcu_gemm g = {};
    g.form = dtype == GNOMON_F16 ? GCU_GEMM_SCALED : GCU_GEMM_THREE;
    g.m = v->m;
    g.n = columns;
    g.k = v->n;
    g.a = {v->a.data, GNOMON_F32, v->a.row_stride, 1};
    g.a_run = v->run;
    g.a_run_stride = v->run_stride;
    g.b = {nullptr, dtype, columns, 1};
    g.c_row_stride = columns;
    g.c_col_stride = 1;
    g.alpha = 1.0;
    g.gpu = &v->s->gpu;
    return g;
}

struct multiplication {
    bool transposed;
    gcu_gemm_view w;
    int64_t columns;
    float *out;
};

static gnomon_status multiply_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    const multiplication *m = static_cast<multiplication *>(arg);
    const gcu_gemm_view a = operand(block, m->transposed);
    gcu_gemm_view w = m->w;
    if (!m->transposed)
        return product_of_part(v, v->m, block->rows, m->columns, v->n, 1.0f, a, w, 0.0f,
                               m->out + row * m->columns);
    w.data =
        static_cast<const char *>(w.data) + row * m->columns * (int64_t)gnomon_dtype_size(w.dtype);
    return gcu_svd_product(v, v->n, m->columns, block->rows, 1.0f, a, w, row > 0 ? 1.0f : 0.0f,
                           m->out);
}

gnomon_status gcu_svd_multiply(gcu_svd *v, bool transposed, const void *w, gnomon_dtype dtype,
                               int64_t columns, float *out)
{
    multiplication m = {transposed, {w, dtype, columns, 1}, columns, out};
    v->job->passes++;
    if (v->job->csr) return gcu_svd_sparse_multiply(v, transposed, w, dtype, columns, out);
    if (!v->run) return gcu_svd_each(v, multiply_block, &m);
    gcu_gemm g = in_runs(v, columns, dtype);
    g.b = m.w;
    g.c = out;
    return run(v, &g);
}

/* A times the operator's rows [0, columns), whose entries are made where the product packs them. */
static gcu_gemm with_operator(const gcu_svd *v, int64_t columns)
{
    const gnomon_operator *op = v->job->op;
    gcu_gemm g = in_runs(v, columns, gcu_svd_entry_dtype(op));
    g.b_made = &op->factor[0];
    if (v->run) return g;
    g.a = operand(&v->a, false);
    g.a_run = g.a_run_stride = 0;
    return g;
}

bool gcu_svd_looks(const gcu_svd *v, int64_t columns)
{
    if (v->blocks.rows || gcu_svd_entry_dtype(v->job->op) == 0) return false;
    const gcu_gemm g = with_operator(v, columns);
    return gcu_gemm_looks(&g);
}

bool gcu_svd_takes_runs(const gcu_svd *v, int64_t columns, gnomon_dtype dtype)
{
    const gcu_gemm g = in_runs(v, columns, dtype);
    return gcu_gemm_work(&g) > 0;
}

/* ---- to the GPU ---- */

static bool lies_well(const gnomon_matrix *a)
{
    return a->dtype == GNOMON_F32 && ((a->col_stride == 1 && a->row_stride >= a->cols) ||
                                      (a->row_stride == 1 && a->col_stride >= a->rows));
}

static bool is_across(const gnomon_matrix *a)
{
    return a->row_stride == 1 && a->col_stride != 1;
}

/* A packed fp32 matrix of the same orientation, in memory of its own. */
static gnomon_status own(gcu_svd *v, const gnomon_matrix *like, gnomon_matrix *to)
{
    gnomon_matrix m = *like;
    m.dtype = GNOMON_F32;
    *to = gcu_packed(&m, m.rows, m.cols);
    return gcu_svd_take(v, gcu_packed_bytes(to), &to->data);
}

static gnomon_status convert(gcu_svd *v, const gnomon_matrix *from, int exponent,
                             const gnomon_matrix *to)
{
    const bool across = is_across(to);
    GCU_TRY(v->why,
            gcu_svd_convert(from, exponent, across, across ? to->col_stride : to->row_stride,
                            static_cast<float *>(to->data), v->stream));
    return GNOMON_OK;
}

static gnomon_status fetch(gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    gcu_place place;
    gnomon_status status = gcu_place_of(v->s, a, "a", &place, v->why);
    if (status != GNOMON_OK) return status;
    if (place == GCU_DEVICE) {
        v->a = *a;
        if (lies_well(a)) return GNOMON_OK;
        status = own(v, a, &v->a);
        return status == GNOMON_OK ? convert(v, a, 0, &v->a) : status;
    }
    gnomon_matrix there = gcu_packed(a, a->rows, a->cols);
    status = gcu_svd_take(v, gcu_packed_bytes(&there), &there.data);
    if (status != GNOMON_OK) return status;
    gnomon_sketch_job job = {};
    job.memory_limit = v->job->memory_limit;
    job.host = v->job->host;
    status = gcu_upload(v->s, &job, a, place, &there, v->stream, v->why);
    v->a = there;
    if (status != GNOMON_OK || a->dtype == GNOMON_F32) return status;
    status = own(v, &there, &v->a);
    return status == GNOMON_OK ? convert(v, &there, 0, &v->a) : status;
}

gnomon_status gcu_svd_name_nonfinite(gcu_svd *v, const gnomon_matrix *block, int64_t row)
{
    unsigned long long first = ~0ull, *there = nullptr;
    const gnomon_status status = gcu_svd_room(v, 1, &there);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemsetAsync(there, 0xff, sizeof first, v->stream));
    GCU_TRY(v->why, gcu_find_nonfinite(block, row, 0, v->n, there, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&first, there, sizeof first, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    v->bad_row = (int64_t)(first / (unsigned long long)v->n);
    v->bad_col = (int64_t)(first % (unsigned long long)v->n);
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "a has NaN or infinity in row %llu, column %llu (both counted from 0)",
                    first / (unsigned long long)v->n, first % (unsigned long long)v->n);
}

static gnomon_status figures_of(gcu_svd *v, const gnomon_matrix *a, gcu_svd_figures *partial,
                                gcu_svd_figures *total)
{
    const bool across = is_across(a);
    int64_t lines = across ? a->cols : a->rows, length = across ? a->rows : a->cols;
    const int64_t pitch = across ? a->col_stride : a->row_stride;
    if (pitch == length) { /* no gaps: one line */
        length *= lines;
        lines = 1;
    }
    GCU_TRY(v->why, gcu_svd_scan(static_cast<const float *>(a->data), lines, length, pitch, partial,
                                 total, v->stream));
    return GNOMON_OK;
}

/* Places for the figures of any view of so many rows and columns, and one for their total. */
static int64_t figures_most(int64_t rows, int64_t cols)
{
    return gcu_svd_units(rows, cols) + gcu_svd_units(cols, rows) + gcu_svd_units(1, rows * cols) +
           1;
}

struct looking {
    gcu_svd_figures *figures;
    double squares;
    float largest;
};

static gnomon_status look_at_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    looking *l = static_cast<looking *>(arg);
    gcu_svd_figures seen;
    const gnomon_status status = figures_of(v, block, l->figures + 1, l->figures);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why,
            cudaMemcpyAsync(&seen, l->figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (seen.most >= 0x7f800000u) return gcu_svd_name_nonfinite(v, block, row);
    float largest;
    memcpy(&largest, &seen.most, sizeof largest);
    l->largest = largest > l->largest ? largest : l->largest;
    l->squares += seen.squares;
    return GNOMON_OK;
}

gnomon_status gcu_svd_settle_scale(gcu_svd *v, double norm, float largest)
{
    v->job->norm = norm;
    if (largest == 0 || (largest < 0x1p60f && largest > 0x1p-60f)) return GNOMON_OK;
    frexp((double)largest, &v->job->exponent);
    v->job->norm = ldexp(norm, -v->job->exponent);
    return GNOMON_OK;
}

gnomon_status gcu_svd_bring(gcu_svd *v, bool apart)
{
    if (v->job->csr) return gcu_svd_sparse_bring(v);
    return apart ? gcu_svd_blocks_open(v) : fetch(v);
}

gnomon_status gcu_svd_look_at(gcu_svd *v)
{
    looking l = {};
    if (v->job->csr) return gcu_svd_sparse_look_at(v);
    const bool apart = v->blocks.rows > 0;
    const int64_t rows = apart ? v->blocks.rows : v->m;
    gnomon_status status = gcu_svd_room(v, figures_most(rows, v->n), &l.figures);
    if (status == GNOMON_OK) status = gcu_svd_each(v, look_at_block, &l);
    if (status != GNOMON_OK) return status;
    status = gcu_svd_settle_scale(v, sqrt(l.squares), l.largest);
    if (status != GNOMON_OK || v->job->exponent == 0) return status;
    if (apart) return gcu_svd_blocks_settled(v);
    const gnomon_matrix as_it_is = v->a;
    if (v->a.data == v->job->a->data) status = own(v, &as_it_is, &v->a); /* the caller's */
    return status == GNOMON_OK ? convert(v, &as_it_is, v->job->exponent, &v->a) : status;
}

/* ---- products ---- */

/* Points are not what progress is told in here. */
static int say_nothing(void *, int64_t, int64_t)
{
    return 0;
}

gnomon_dtype gcu_svd_entry_dtype(const gnomon_operator *op)
{
    const gnomon_kind kind = op->descriptor.kind;
    if (kind == GNOMON_RADEMACHER || kind == GNOMON_ACHLIOPTAS) return GNOMON_F16;
    if (kind != GNOMON_GAUSSIAN) return (gnomon_dtype)0;
    return op->factor[0].precision == GNOMON_FP16 ? GNOMON_F16 : GNOMON_F32;
}

gnomon_status gcu_svd_sketch(gcu_svd *v, const gnomon_matrix *from, void *to, gnomon_dtype dtype,
                             int64_t columns)
{
    gnomon_matrix x = *from;
    gnomon_matrix y = gnomon_matrix_rowmajor(to, dtype, from->rows, columns);
    x.memory = y.memory = GNOMON_CUDA;
    gnomon_sketch_job job = {};
    job.op = v->job->op;
    job.x = &x;
    job.y = &y;
    job.alpha = 1.0;
    job.rows = columns;
    job.memory_limit = v->job->memory_limit;
    gnomon_device_host host = *v->job->host;
    host.progress = say_nothing;
    job.host = &host;
    job.stream = v->stream;
    return gcu_sketch_job(v->s, &job, v->why);
}

static gnomon_status sketch_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    const int64_t columns = *static_cast<int64_t *>(arg);
    return gcu_svd_sketch(v, block, v->y + row * columns, GNOMON_F32, columns);
}

gnomon_status gcu_svd_project(gcu_svd *v, int64_t columns)
{
    const gnomon_operator *op = v->job->op;
    const gnomon_dtype dtype = gcu_svd_entry_dtype(op);
    if (dtype != 0 && !v->blocks.rows && !v->job->csr) {
        gcu_gemm g = with_operator(v, columns);
        g.c = v->y;
        g.a_squares = v->squares;
        v->job->passes++;
        return run(v, &g);
    }
    if (dtype != 0) {
        /* Made once for all blocks, and for sparse rows, where fp16 holds the entries in fp16;
         * their common factor changes nothing in the columns' span. */
        const bool halves = dtype == GNOMON_F16;
        void *s = halves ? v->half : v->z;
        GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &op->factor[0], 0, columns, v->n, halves, s,
                                        v->stream));
        return gcu_svd_multiply(v, false, s, dtype, columns, v->y);
    }
    v->job->passes++;
    return gcu_svd_each(v, sketch_block, &columns);
}

gnomon_status gcu_svd_probes(gcu_svd *v, int64_t count, float *g)
{
    GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &v->job->probes->factor[0], 0, count, v->n, false,
                                    g, v->stream));
    return GNOMON_OK;
}

/* Rows [row, row + rows) of the matrix. */
static gnomon_matrix rows_of(const gnomon_matrix *a, int64_t row, int64_t rows)
{
    gnomon_matrix part = *a;
    part.data = static_cast<float *>(a->data) + row * a->row_stride;
    part.rows = rows;
    return part;
}

struct leftover {
    const float *b;
    gcu_gemm_view c;
    int64_t k, rows; /* of a tile */
    float *tile;
    gcu_svd_figures *figures;
    double squares;
};

static gnomon_status measure_block(gcu_svd *v, const gnomon_matrix *block, int64_t first, void *arg)
{
    leftover *r = static_cast<leftover *>(arg);
    for (int64_t row = 0; row < block->rows; row += r->rows) {
        const int64_t count = r->rows < block->rows - row ? r->rows : block->rows - row;
        const gnomon_matrix from = rows_of(block, row, count);
        const gnomon_matrix to = gnomon_matrix_rowmajor(r->tile, GNOMON_F32, count, v->n);
        gcu_svd_figures seen;
        GCU_TRY(v->why, gcu_copy(&from, &to, v->stream));
        gnomon_status status =
            gcu_svd_product(v, count, v->n, r->k, -1.0f,
                            gcu_svd_rows(r->b + (first + row) * r->k, r->k), r->c, 1.0f, r->tile);
        if (status == GNOMON_OK) status = figures_of(v, &to, r->figures + 1, r->figures);
        if (status != GNOMON_OK) return status;
        GCU_TRY(v->why,
                cudaMemcpyAsync(&seen, r->figures, sizeof seen, cudaMemcpyDeviceToHost, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
        r->squares += seen.squares;
    }
    return GNOMON_OK;
}

gnomon_status gcu_svd_residual(gcu_svd *v, const float *b, gcu_gemm_view c, int64_t k,
                               double *residual)
{
    leftover r = {b, c, k, tile_elements / v->n, nullptr, nullptr, 0.0};
    r.rows = r.rows < 64 ? 64 : r.rows;
    r.rows = r.rows < v->m ? r.rows : v->m;
    const int held = v->bag.count;
    gnomon_status status = gcu_svd_room(v, r.rows * v->n, &r.tile);
    if (status == GNOMON_OK) status = gcu_svd_room(v, figures_most(r.rows, v->n), &r.figures);
    if (status == GNOMON_OK) status = gcu_svd_each(v, measure_block, &r);
    gcu_svd_give(v, held);
    v->job->passes++;
    *residual = sqrt(r.squares);
    return status;
}
