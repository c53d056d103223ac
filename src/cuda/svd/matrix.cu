/* The matrix that is factored: how it comes to the GPU, and its products. */
#include "cuda/project/job.h"
#include "cuda/runtime/others.h"
#include "cuda/svd/f64.h"

#include <math.h>

/* ---- products ---- */

/* Enqueues the product in work space that grows as needed. */
static gnomon_status run(gcu_svd *v, const gcu_gemm *g)
{
    const size_t bytes = gcu_gemm_work(g);
    if (bytes > v->product_bytes) {
        gcu_free(v->product_work, v->stream);
        v->product_bytes = 0;
        GCU_TRY(v->why, gcu_alloc(v->s, &v->product_work, bytes, v->stream));
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

/* A w, or A^T w, where A's columns come in runs. */
static gcu_gemm in_runs(const gcu_svd *v, bool transposed, int64_t columns, gnomon_dtype dtype)
{
    gcu_gemm g = {};
    g.form = dtype == GNOMON_F16 ? GCU_GEMM_SCALED : GCU_GEMM_THREE;
    g.m = transposed ? v->n : v->m;
    g.n = columns;
    g.k = transposed ? v->m : v->n;
    g.a = {v->a.data, GNOMON_F32, transposed ? 1 : v->a.row_stride,
           transposed ? v->a.row_stride : 1};
    g.a_run = v->run;
    g.a_run_stride = v->run_stride;
    g.b = {nullptr, dtype, columns, 1};
    g.c_row_stride = columns;
    g.c_col_stride = 1;
    g.alpha = 1.0;
    g.gpu = &v->s->gpu;
    return g;
}

/* The same of any A that is there as a whole. */
static gcu_gemm of_whole(const gcu_svd *v, bool transposed, int64_t columns, gnomon_dtype dtype)
{
    gcu_gemm g = in_runs(v, transposed, columns, dtype);
    if (!v->run) g.a = gcu_svd_operand(&v->a, transposed);
    return g;
}

gnomon_status gcu_svd_times(gcu_svd *v, int64_t m, int64_t n, int64_t k, double alpha,
                            const void *a, bool a_transposed, const void *b, bool b_transposed,
                            double beta, void *c)
{
    if (v->f64) /* what lies by rows is to cuBLAS the transpose, and so is the product */
        return gcu_gemm64(v->blas, b_transposed, a_transposed, n, m, k, alpha,
                          static_cast<const double *>(b), b_transposed ? k : n,
                          static_cast<const double *>(a), a_transposed ? m : k, beta,
                          static_cast<double *>(c), n, v->why);
    const float *const x = static_cast<const float *>(a), *const y = static_cast<const float *>(b);
    return gcu_svd_product(v, m, n, k, (float)alpha,
                           a_transposed ? gcu_svd_transposed(x, m) : gcu_svd_rows(x, k),
                           b_transposed ? gcu_svd_transposed(y, k) : gcu_svd_rows(y, n),
                           (float)beta, static_cast<float *>(c));
}

gnomon_status gcu_svd_multiply_part(gcu_svd *v, bool transposed, const gnomon_matrix *part,
                                    const void *w, gnomon_dtype dtype, int64_t columns, bool add,
                                    void *out)
{
    const float beta = add ? 1.0f : 0.0f;
    const gcu_gemm_view b = {w, dtype, columns, 1};
    if (v->f64) return gcu_svd_f64_multiply(v, transposed, part, w, columns, (double)beta, out);
    const gcu_gemm_view a = gcu_svd_operand(part, transposed);
    float *const c = static_cast<float *>(out);
    return transposed ? gcu_svd_product(v, v->n, columns, part->rows, 1.0f, a, b, beta, c)
                      : product_of_part(v, v->m, part->rows, columns, v->n, 1.0f, a, b, beta, c);
}

struct multiplication {
    bool transposed;
    const void *w;
    gnomon_dtype dtype;
    int64_t columns;
    void *out;
};

static gnomon_status multiply_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    const multiplication *m = static_cast<multiplication *>(arg);
    const size_t before = (size_t)(row * m->columns);
    if (m->transposed)
        return gcu_svd_multiply_part(
            v, true, block, static_cast<const char *>(m->w) + before * gnomon_dtype_size(m->dtype),
            m->dtype, m->columns, row > 0, m->out);
    return gcu_svd_multiply_part(v, false, block, m->w, m->dtype, m->columns, false,
                                 static_cast<char *>(m->out) + before * gcu_svd_size(v));
}

/* Enqueues the product of all of A, by several GPUs where there are any. */
static gnomon_status run_shared(gcu_svd *v, bool transposed, const gcu_gemm *g)
{
    bool done = false;
    const gnomon_status status = gcu_svd_shares_product(v, transposed, g, &done);
    return status != GNOMON_OK || done ? status : run(v, g);
}

gnomon_status gcu_svd_multiply(gcu_svd *v, bool transposed, const void *w, gnomon_dtype dtype,
                               int64_t columns, void *out)
{
    multiplication m = {transposed, w, dtype, columns, out};
    v->job->passes++;
    if (v->job->csr) return gcu_svd_sparse_multiply(v, transposed, w, dtype, columns, out);
    if (v->f64 || (!v->run && !v->shares.count)) return gcu_svd_each(v, multiply_block, &m);
    gcu_gemm g = of_whole(v, transposed, columns, dtype);
    g.b.data = w;
    g.c = static_cast<float *>(out);
    return run_shared(v, transposed, &g);
}

bool gcu_svd_packing(const gcu_svd *v, bool transposed, int64_t columns, gcu_gemm_packing *packing)
{
    if (v->blocks.rows || v->job->csr) return false;
    const gcu_gemm g = of_whole(v, transposed, columns, GNOMON_F16);
    return gcu_gemm_packing_of(&g, packing);
}

gnomon_status gcu_svd_multiply_packed(gcu_svd *v, bool transposed, const void *w, int64_t columns,
                                      float *out)
{
    gcu_gemm g = of_whole(v, transposed, columns, GNOMON_F16);
    g.b_packed = w;
    g.c = out;
    v->job->passes++;
    return run_shared(v, transposed, &g);
}

/* A times the operator's rows [0, columns), whose entries are made where the product packs them. */
static gcu_gemm with_operator(const gcu_svd *v, int64_t columns)
{
    gcu_gemm g = of_whole(v, false, columns, gcu_svd_start_dtype(v));
    g.b_made = &v->job->op->factor[0];
    return g;
}

bool gcu_svd_sums_squares(const gcu_svd *v, int64_t columns)
{
    if (v->blocks.rows || gcu_svd_entry_dtype(v->job->op) == 0) return false;
    const gcu_gemm g = with_operator(v, columns);
    return gcu_gemm_sums_squares(&g);
}

bool gcu_svd_runs_supported(const gcu_svd *v, bool transposed, int64_t columns, gnomon_dtype dtype)
{
    const gcu_gemm g = in_runs(v, transposed, columns, dtype);
    return gcu_gemm_work(&g) > 0;
}

/* ---- to the GPU ---- */

static bool lies_well(const gcu_svd *v, const gnomon_matrix *a)
{
    return a->dtype == gcu_svd_type(v) && ((a->col_stride == 1 && a->row_stride >= a->cols) ||
                                           (a->row_stride == 1 && a->col_stride >= a->rows));
}

/* A packed matrix of the work's type and the same orientation, in memory of its own; of a HOSVD
 * (no columns), whose steps take X without gaps, without those that packed lines may have. */
static gnomon_status own(gcu_svd *v, const gnomon_matrix *like, gnomon_matrix *to)
{
    gnomon_matrix m = *like;
    m.dtype = gcu_svd_type(v);
    *to = gcu_packed(&m, m.rows, m.cols);
    if (v->job->columns == 0 && to->col_stride == 1) to->row_stride = m.cols;
    return gcu_svd_alloc(v, gcu_packed_bytes(to), &to->data);
}

/* The copy of a matrix in another GPU's memory that one GPU would take as it lies: sums depend on
 * how lines are aligned, and cuBLAS's on strides. Where there are very long gaps these are shorter.
 * Returns by how many bytes its data are to miss a multiple of 256. */
static size_t like_one_gpu(const gnomon_matrix *a, gnomon_matrix *there)
{
    const bool by_rows = a->col_stride == 1;
    const int64_t unit = 256 / (int64_t)gnomon_dtype_size(a->dtype);
    const int64_t length = by_rows ? a->cols : a->rows;
    const int64_t stride = by_rows ? a->row_stride : a->col_stride;
    const int64_t pitch = stride <= 2 * length ? stride : length + (stride - length) % unit;
    there->row_stride = by_rows ? pitch : 1;
    there->col_stride = by_rows ? 1 : pitch;
    return (size_t)(reinterpret_cast<uintptr_t>(a->data) % 256);
}

static gnomon_status fetch(gcu_svd *v)
{
    const gnomon_matrix *a = v->job->a;
    gcu_place place;
    gnomon_status status = gcu_place_of(v->s, a, "a", &place, v->why);
    if (status != GNOMON_OK) return status;
    if (place == GCU_DEVICE) {
        v->a = *a;
        if (lies_well(v, a)) return GNOMON_OK;
        status = own(v, a, &v->a);
        return status == GNOMON_OK ? gcu_svd_scaled_copy(v, a, 0, &v->a) : status;
    }
    gnomon_matrix there = gcu_packed(a, a->rows, a->cols);
    bool done = false;
    const size_t aside = place == GCU_PEER && lies_well(v, a) ? like_one_gpu(a, &there) : 0;
    status = gcu_svd_alloc(v, gcu_packed_bytes(&there) + aside, &there.data);
    if (status != GNOMON_OK) return status;
    there.data = static_cast<char *>(there.data) + aside;
    v->a = there;
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    if (a->dtype == gcu_svd_type(v) && !v->mean) status = gcu_svd_shares_bring(v, place, &done);
    if (status == GNOMON_OK && !done)
        status = gcu_upload_by_all(v->s, v->job->others, v->job->other_count, transfer, a, place,
                                   &there, v->stream, v->why);
    if (status != GNOMON_OK || (a->dtype == gcu_svd_type(v) && !v->mean)) return status;
    if (a->dtype != gcu_svd_type(v)) status = own(v, &there, &v->a);
    return status == GNOMON_OK ? gcu_svd_centered_copy(v, &there, &v->a) : status;
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
    gcu_about(v->job->host, "a", v->bad_row, v->bad_col);
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "a has NaN or infinity in row %llu, column %llu (both counted from 0)",
                    first / (unsigned long long)v->n, first % (unsigned long long)v->n);
}

/* Of any view of so many rows and columns. */
static int64_t units_of(int64_t rows, int64_t cols)
{
    return gcu_svd_units(rows, cols) + gcu_svd_units(cols, rows) + gcu_svd_units(1, rows * cols);
}

static gnomon_status scan_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    gcu_svd_scan_state *l = static_cast<gcu_svd_scan_state *>(arg);
    const gnomon_status status = gcu_svd_add_figures(v, block, l);
    if (status != GNOMON_OK) return status;
    return l->largest < (double)INFINITY ? GNOMON_OK : gcu_svd_name_nonfinite(v, block, row);
}

/* Refuses NaN and infinity; norm and largest magnitude of the matrix as it is now handed out. */
static gnomon_status scan(gcu_svd *v, double *norm, double *largest)
{
    gcu_svd_scan_state l = {};
    const int held = v->bag.count;
    gnomon_status status = gcu_svd_alloc_figures(
        v, units_of(v->blocks.rows ? v->blocks.rows : v->m, v->n), &l.figures);
    if (status == GNOMON_OK) status = gcu_svd_each(v, scan_block, &l);
    if (status == GNOMON_OK) gcu_svd_free(v, held);
    *norm = sqrt(l.squares);
    *largest = l.largest;
    return status;
}

gnomon_status gcu_svd_bring(gcu_svd *v, bool apart)
{
    const bool centered = v->job->options->center;
    const bool found = centered && v->job->has_mean; /* it is subtracted as rows come */
    double norm, largest;
    gnomon_status status = found ? gcu_svd_bring_mean(v) : GNOMON_OK;
    if (status != GNOMON_OK) return status;
    if (v->job->csr) return gcu_svd_sparse_bring(v);
    if (!apart) status = gcu_svd_shares_open(v);
    if (status == GNOMON_OK) status = apart ? gcu_svd_blocks_open(v) : fetch(v);
    if (status != GNOMON_OK || !centered || found) return status;
    status = scan(v, &norm, &largest);
    if (status != GNOMON_OK) return status;
    gcu_svd_set_scale(v, norm, largest);
    return gcu_svd_find_mean(v);
}

/* The matrix, or the room for its blocks, scaled by so much more. */
static gnomon_status scale(gcu_svd *v, int more)
{
    if (v->blocks.rows) return gcu_svd_blocks_converted(v);
    const gnomon_matrix as_it_is = v->a;
    gnomon_status status = GNOMON_OK;
    const gnomon_matrix *a = v->job->a;
    const bool callers = v->a.data == a->data;
    /* like one GPU's, too, a copy that lies like the caller's; a HOSVD's has no gaps anyhow */
    const bool alike = a->memory == GNOMON_DEVICE_MEMORY && lies_well(v, a) && v->job->columns > 0;
    if (callers || alike) status = own(v, &as_it_is, &v->a);
    return status == GNOMON_OK ? gcu_svd_scaled_copy(v, &as_it_is, more, &v->a) : status;
}

gnomon_status gcu_svd_check(gcu_svd *v)
{
    double norm, largest;
    const int before = v->job->exponent;
    if (v->job->csr) return gcu_svd_sparse_check(v);
    gnomon_status status = scan(v, &norm, &largest);
    if (status != GNOMON_OK) return status;
    gcu_svd_set_scale(v, norm, largest);
    const bool scaled = v->job->exponent != before;
    if (scaled) status = scale(v, v->job->exponent - before);
    if (status == GNOMON_OK && scaled && v->f64) status = scan(v, &v->job->norm, &largest);
    if (status != GNOMON_OK) return status;
    return v->f64 ? gcu_svd_f64_share(v) : gcu_svd_shares_fill(v, scaled);
}

gnomon_status gcu_svd_note(gcu_svd *v, gnomon_matrix *block, int64_t row, gcu_svd_scan_state *l)
{
    const bool first = l->largest == 0;
    const int before = v->job->exponent;
    gnomon_status status = GNOMON_OK;
    if (!l->figures) status = gcu_svd_alloc_figures(v, units_of(v->blocks.rows, v->n), &l->figures);
    if (status == GNOMON_OK) status = scan_block(v, block, row, l);
    if (status != GNOMON_OK) return status;
    if (first) gcu_svd_set_scale(v, 0.0, l->largest);
    if (first && v->job->exponent != before) {
        const gnomon_matrix as_it_is = *block;
        status = gcu_svd_blocks_converted(v);
        *block = gcu_svd_converted_block(v, block);
        if (status == GNOMON_OK)
            status = gcu_svd_scaled_copy(v, &as_it_is, v->job->exponent - before, block);
        l->squares = 0;
        if (status == GNOMON_OK) status = scan_block(v, block, row, l);
    }
    v->job->norm = sqrt(l->squares);
    return status;
}

/* ---- the operator ---- */

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
    return op->factor[0].precision == GNOMON_F16 ? GNOMON_F16 : GNOMON_F32;
}

gnomon_dtype gcu_svd_start_dtype(const gcu_svd *v)
{
    const gnomon_dtype dtype = gcu_svd_entry_dtype(v->job->op);
    const bool starts = v->job->options->power > 0 && !v->f64;
    return dtype == GNOMON_F32 && starts ? GNOMON_F16 : dtype;
}

gnomon_status gcu_svd_sketch(gcu_svd *v, const gnomon_matrix *from, void *to, gnomon_dtype dtype,
                             int64_t columns)
{
    gnomon_matrix x = *from;
    gnomon_matrix y = gnomon_matrix_rowmajor(to, dtype, from->rows, columns);
    x.memory = y.memory = GNOMON_DEVICE_MEMORY;
    gnomon_sketch_job job = {};
    job.op = v->job->op;
    job.x = &x;
    job.y = &y;
    job.alpha = 1.0;
    job.rows = columns;
    job.f64 = dtype == GNOMON_F64;
    job.memory_limit = v->job->memory_limit;
    gnomon_device_host host = *v->job->host;
    host.progress = say_nothing;
    job.host = &host;
    job.stream = v->stream;
    return gcu_sketch_job(v->s, &job, v->why);
}

/* S^T is what the adjoint makes of the identity, a point per row. */
gnomon_status gcu_svd_operator_rows(gcu_svd *v, int64_t columns, void *to)
{
    GCU_TRY(v->why,
            cudaMemsetAsync(v->gram, 0, (size_t)(columns * columns) * sizeof *v->gram, v->stream));
    GCU_TRY(v->why, gcu_svd_shift(v->gram, columns, 1.0, v->gram, v->stream));
    gnomon_matrix identity = gnomon_matrix_rowmajor(v->gram, GNOMON_F64, columns, columns);
    gnomon_matrix rows = gnomon_matrix_colmajor(to, gcu_svd_type(v), columns, v->n);
    identity.memory = rows.memory = GNOMON_DEVICE_MEMORY;
    gnomon_device_host host = *v->job->host;
    host.progress = say_nothing;
    gnomon_sketch_job job = {};
    job.op = v->job->op;
    job.y = &identity;
    job.x = &rows;
    job.alpha = 1.0;
    job.rows = columns;
    job.f64 = v->f64;
    job.memory_limit = v->job->memory_limit;
    job.host = &host;
    job.stream = v->stream;
    return gcu_adjoint_job(v->s, &job, v->why);
}

gnomon_status gcu_svd_sketch_block(gcu_svd *v, const gnomon_matrix *block, int64_t row, void *arg)
{
    const gcu_svd_sketching *s = static_cast<gcu_svd_sketching *>(arg);
    char *const to = static_cast<char *>(s->y) + (size_t)(row * s->columns) * gcu_svd_size(v);
    return gcu_svd_sketch(v, block, to, gcu_svd_type(v), s->columns);
}

gnomon_status gcu_svd_project(gcu_svd *v, int64_t columns)
{
    const gnomon_operator *op = v->job->op;
    const gnomon_dtype dtype = gcu_svd_start_dtype(v);
    gcu_svd_sketching sketching = {columns, v->f64 ? (void *)v->tall[0] : (void *)v->y};
    if (dtype != 0 && v->f64) {
        const gnomon_status status = gcu_svd_draw(v, op, 0, columns, 0, v->n, v->z64);
        return status == GNOMON_OK
                   ? gcu_svd_multiply(v, false, v->z64, GNOMON_F64, columns, sketching.y)
                   : status;
    }
    if (dtype != 0 && !v->blocks.rows && !v->job->csr) {
        gcu_gemm g = with_operator(v, columns);
        g.c = v->y;
        g.a_squares = v->squares;
        v->job->passes++;
        return run_shared(v, false, &g);
    }
    if (dtype != 0) {
        /* Made once for all blocks, and for sparse rows, where fp16 holds the entries in fp16;
         * their common factor changes nothing in the columns' span. */
        const bool halves = dtype == GNOMON_F16;
        void *s = halves ? v->half : v->z;
        GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &op->factor[0], 0, columns, 0, v->n, halves, s,
                                        v->stream));
        return gcu_svd_multiply(v, false, s, dtype, columns, v->y);
    }
    if (v->job->csr) {
        void *const s = gcu_svd_right(v);
        const gnomon_status status = gcu_svd_operator_rows(v, columns, s);
        return status == GNOMON_OK
                   ? gcu_svd_multiply(v, false, s, gcu_svd_type(v), columns, sketching.y)
                   : status;
    }
    v->job->passes++;
    return gcu_svd_each(v, gcu_svd_sketch_block, &sketching);
}

gnomon_status gcu_svd_draw(gcu_svd *v, const gnomon_operator *op, int64_t first, int64_t count,
                           int64_t col, int64_t cols, void *to)
{
    float *f32 = static_cast<float *>(to);
    const int held = v->bag.count;
    if (v->f64) {
        const gnomon_status status = gcu_svd_room(v, cols * count, &f32);
        if (status != GNOMON_OK) return status;
    }
    GCU_TRY(v->why, gcu_svd_entries(&v->s->gpu, &op->factor[0], first, count, col, cols, false, f32,
                                    v->stream));
    if (v->f64)
        GCU_TRY(v->why, gcu_svd_to_f64(f32, cols * count, static_cast<double *>(to), v->stream));
    gcu_svd_free(v, held);
    return GNOMON_OK;
}

/* ---- what is left ---- */

struct leftover {
    const void *b, *c;
    bool c_transposed;
    int64_t k, rows; /* of a tile */
    void *tile;
    gcu_svd_scan_state scanning;
};

static gnomon_status measure_block(gcu_svd *v, const gnomon_matrix *block, int64_t first, void *arg)
{
    leftover *r = static_cast<leftover *>(arg);
    for (int64_t row = 0; row < block->rows; row += r->rows) {
        const int64_t count = r->rows < block->rows - row ? r->rows : block->rows - row;
        const gnomon_matrix from = gcu_svd_part(block, row, count);
        const gnomon_matrix to = gnomon_matrix_rowmajor(r->tile, gcu_svd_type(v), count, v->n);
        const char *const b =
            static_cast<const char *>(r->b) + (size_t)((first + row) * r->k) * gcu_svd_size(v);
        GCU_TRY(v->why, gcu_copy(&from, &to, v->stream));
        gnomon_status status = gcu_svd_times(v, count, v->n, r->k, -1.0, b, false, r->c,
                                             r->c_transposed, 1.0, r->tile);
        if (status == GNOMON_OK) status = gcu_svd_add_figures(v, &to, &r->scanning);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

int64_t gcu_svd_tile_rows(const gcu_svd *v, int64_t rows)
{
    const int64_t fit = ((int64_t)1 << 28) / (int64_t)gcu_svd_size(v) / v->n;
    const int64_t wanted = fit < 64 ? 64 : fit;
    return wanted < rows ? wanted : rows;
}

gnomon_status gcu_svd_residual(gcu_svd *v, const void *b, const void *c, bool c_transposed,
                               int64_t k, double *residual)
{
    leftover r = {b, c, c_transposed, k, 0, nullptr, {}};
    r.rows = gcu_svd_tile_rows(v, v->blocks.rows && v->blocks.rows < v->m ? v->blocks.rows : v->m);
    const int held = v->bag.count;
    gnomon_status status = gcu_svd_alloc(v, (size_t)(r.rows * v->n) * gcu_svd_size(v), &r.tile);
    if (status == GNOMON_OK)
        status = gcu_svd_alloc_figures(v, units_of(r.rows, v->n), &r.scanning.figures);
    if (status == GNOMON_OK) status = gcu_svd_each(v, measure_block, &r);
    gcu_svd_free(v, held);
    v->job->passes++;
    *residual = sqrt(r.scanning.squares);
    return status;
}
