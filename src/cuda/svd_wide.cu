/* A factorisation in double precision: the steps of svd.cu with cuBLAS's products, for matrices
 * that fit the GPU's memory.
 *
 * The small problem is not squared here: B^T = P R by reflections, the singular values and vectors
 * of the triangle R by cuSOLVER, multiplied back by P and Q. */
#include "cuda/svd_wide.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* Within these no product of the work overflows or loses more than rounding does. */
static bool is_tame(double largest)
{
    return largest < 0x1p300 && largest > 0x1p-300;
}

static bool is_across(const gnomon_matrix *a)
{
    return a->row_stride == 1 && a->col_stride != 1;
}

/* ---- the matrix ---- */

static gnomon_status convert(gcu_svd_wide *w, const gnomon_matrix *from, int exponent,
                             const gnomon_matrix *to)
{
    const bool across = is_across(to);
    GCU_TRY(w->v.why,
            gcu_svd_wide_convert(from, exponent, across, across ? to->col_stride : to->row_stride,
                                 static_cast<double *>(to->data), w->v.stream));
    return GNOMON_OK;
}

static gnomon_status own(gcu_svd_wide *w, const gnomon_matrix *like, gnomon_matrix *to)
{
    gnomon_matrix m = *like;
    m.dtype = GNOMON_F64;
    *to = gcu_packed(&m, m.rows, m.cols);
    return gcu_svd_take(&w->v, gcu_packed_bytes(to), &to->data);
}

static gnomon_status bring(gcu_svd_wide *w)
{
    gcu_svd *v = &w->v;
    const gnomon_matrix *a = v->job->a;
    gcu_place place;
    gnomon_status status = gcu_place_of(v->s, a, "a", &place, v->why);
    if (status != GNOMON_OK) return status;
    w->a = *a;
    if (place != GCU_DEVICE) {
        w->a = gcu_packed(a, a->rows, a->cols);
        status = gcu_svd_take(v, gcu_packed_bytes(&w->a), &w->a.data);
        if (status != GNOMON_OK) return status;
        gnomon_sketch_job job = {};
        job.memory_limit = v->job->memory_limit;
        job.host = v->job->host;
        status = gcu_upload(v->s, &job, a, place, &w->a, v->stream, v->why);
    }
    const gnomon_matrix there = w->a;
    const bool well =
        there.dtype == GNOMON_F64 && ((there.col_stride == 1 && there.row_stride >= there.cols) ||
                                      (there.row_stride == 1 && there.col_stride >= there.rows));
    if (status != GNOMON_OK || well) return status;
    status = own(w, &there, &w->a);
    return status == GNOMON_OK ? convert(w, &there, 0, &w->a) : status;
}

/* The largest magnitude and the sum of squares of lines on the GPU. */
static gnomon_status figures_of(gcu_svd_wide *w, const gnomon_matrix *a, gcu_svd_wide_figures *seen)
{
    gcu_svd *v = &w->v;
    const bool across = is_across(a);
    GCU_TRY(v->why,
            gcu_svd_wide_scan(static_cast<const double *>(a->data), across ? a->cols : a->rows,
                              across ? a->rows : a->cols, across ? a->col_stride : a->row_stride,
                              w->figures, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(seen, w->figures, sizeof *seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

static gnomon_status look_at(gcu_svd_wide *w)
{
    gcu_svd *v = &w->v;
    gcu_svd_wide_figures seen = {};
    gnomon_status status = gcu_svd_room(v, GCU_SVD_WIDE_PARTS + 1, &w->figures);
    if (status == GNOMON_OK) status = figures_of(w, &w->a, &seen);
    if (status != GNOMON_OK) return status;
    if (!(seen.most < (double)INFINITY)) return gcu_svd_name_nonfinite(v, &w->a, 0);
    if (seen.most > 0 && !is_tame(seen.most)) {
        const gnomon_matrix as_it_is = w->a;
        frexp(seen.most, &v->job->exponent);
        if (v->job->exponent < -1020) v->job->exponent = -1020;
        if (w->a.data == v->job->a->data) status = own(w, &as_it_is, &w->a);
        if (status == GNOMON_OK) status = convert(w, &as_it_is, v->job->exponent, &w->a);
        if (status == GNOMON_OK) status = figures_of(w, &w->a, &seen);
    }
    v->job->norm = sqrt(seen.squares);
    return status;
}

/* ---- products ---- */

/* out (m x columns) = A x, or out (n x columns) = A^T x; row-major. */
static gnomon_status multiply(gcu_svd_wide *w, bool transposed, const double *x, int64_t columns,
                              double *out)
{
    gcu_svd *v = &w->v;
    const bool across = is_across(&w->a);
    const int64_t stride = across ? w->a.col_stride : w->a.row_stride;
    const int64_t length = across ? v->m : v->n, lines = across ? v->n : v->m;
    v->job->passes++;
    return gcu_gemm64(v->blas, false, across != transposed, columns, transposed ? v->n : v->m,
                      transposed ? v->m : v->n, 1.0, x, columns,
                      static_cast<const double *>(w->a.data),
                      lines == 1 && stride < length ? length : stride, 0.0, out, columns, v->why);
}

/* to (cols x count) = the operator's rows [0, count) or, with probes, the probes'. */
static gnomon_status draw(gcu_svd_wide *w, const gnomon_operator *op, int64_t count, double *to)
{
    gcu_svd *v = &w->v;
    float *narrow = nullptr;
    const int held = v->bag.count;
    const gnomon_status status = gcu_svd_room(v, v->n * count, &narrow);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why,
            gcu_svd_entries(&v->s->gpu, &op->factor[0], 0, count, v->n, false, narrow, v->stream));
    GCU_TRY(v->why, gcu_svd_widen(narrow, v->n * count, to, v->stream));
    gcu_svd_give(v, held);
    return GNOMON_OK;
}

static gnomon_status project(gcu_svd_wide *w)
{
    gcu_svd *v = &w->v;
    gnomon_status status = GNOMON_OK;
    if (gcu_svd_entry_dtype(v->job->op) != 0) {
        status = draw(w, v->job->op, v->columns, w->z);
        if (status == GNOMON_OK) status = multiply(w, false, w->z, v->columns, v->tall[0]);
    } else {
        v->job->passes++;
        status = gcu_svd_sketch(v, &w->a, v->tall[0], GNOMON_F64, v->columns);
    }
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_PROJECT) : status;
}

/* The columns of v->tall[0] made orthonormal to the last digits, in w->q: once more after they are
 * so to half of them, or (rough) only fit for a product. */
static gnomon_status orthonormalise(gcu_svd_wide *w, int64_t rows, bool rough, double *to)
{
    gcu_svd *v = &w->v;
    double *tall = v->tall[0];
    gnomon_status status = gcu_svd_orthonormalise(v, &tall, rows, v->columns, rough);
    if (status == GNOMON_OK && !rough) status = gcu_svd_polish(v, &tall, rows, v->columns);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(to, tall, (size_t)(rows * v->columns) * sizeof *to,
                                    cudaMemcpyDeviceToDevice, v->stream));
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}

/* w->q spans nearly A's range; w->z = A^T Q. */
static gnomon_status find_range(gcu_svd_wide *w, int64_t columns)
{
    gcu_svd *v = &w->v;
    const int64_t tall = ((v->m > v->n ? v->m : v->n) + GCU_SVD_CHUNKS) * columns;
    v->columns = columns;
    gnomon_status status = gcu_svd_room(v, v->m * columns, &w->q);
    if (status == GNOMON_OK) status = gcu_svd_room(v, v->n * columns, &w->z);
    for (double *&one : v->tall)
        if (status == GNOMON_OK) status = gcu_svd_room(v, tall, &one);
    if (status == GNOMON_OK) status = gcu_svd_take_small(v, columns);
    if (status == GNOMON_OK) status = project(w);
    for (int i = 0; i < v->job->options->power && status == GNOMON_OK; i++) {
        status = orthonormalise(w, v->m, true, w->q);
        if (status == GNOMON_OK) status = multiply(w, true, w->q, columns, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = orthonormalise(w, v->n, true, w->z);
        if (status == GNOMON_OK) status = multiply(w, false, w->z, columns, v->tall[0]);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
        if (status == GNOMON_OK) status = gcu_svd_tell(v);
    }
    if (status == GNOMON_OK) status = orthonormalise(w, v->m, false, w->q);
    if (status == GNOMON_OK) status = multiply(w, true, w->q, columns, w->z);
    if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_POWER);
    return status == GNOMON_OK ? gcu_svd_tell(v) : status;
}

/* ---- what is left ---- */

/* *residual = |A - b c|_F: b m x k, row-major; c k x n, row-major or (turned) n x k. */
static gnomon_status residual_of(gcu_svd_wide *w, const double *b, const double *c, bool turned,
                                 int64_t k, double *residual)
{
    gcu_svd *v = &w->v;
    const int64_t fit = ((int64_t)1 << 25) / v->n, rows = fit < 64 ? 64 : fit;
    const int64_t most = rows < v->m ? rows : v->m;
    const int held = v->bag.count;
    double *tile = nullptr, squares = 0;
    gnomon_status status = gcu_svd_room(v, most * v->n, &tile);
    for (int64_t row = 0; row < v->m && status == GNOMON_OK; row += most) {
        gnomon_matrix from = w->a;
        from.rows = most < v->m - row ? most : v->m - row;
        from.data = static_cast<double *>(w->a.data) + row * w->a.row_stride;
        const gnomon_matrix to = gnomon_matrix_rowmajor(tile, GNOMON_F64, from.rows, v->n);
        gcu_svd_wide_figures seen = {};
        GCU_TRY(v->why, gcu_copy(&from, &to, v->stream));
        status = gcu_gemm64(v->blas, turned, false, v->n, from.rows, k, -1.0, c, turned ? k : v->n,
                            b + row * k, k, 1.0, tile, v->n, v->why);
        if (status == GNOMON_OK) status = figures_of(w, &to, &seen);
        squares += seen.squares;
    }
    gcu_svd_give(v, held);
    v->job->passes++;
    *residual = sqrt(squares);
    return status;
}

/* As find_range_by_tolerance in svd.cu. */
static gnomon_status find_range_by_tolerance(gcu_svd_wide *w)
{
    gcu_svd *v = &w->v;
    gnomon_svd_job *job = v->job;
    const double u = 0x1p-53, wanted = job->options->tolerance * job->norm;
    int64_t columns = job->options->block;
    double before = INFINITY;
    const int held = v->bag.count;
    for (;;) {
        columns = columns < job->columns ? columns : job->columns;
        gnomon_status status = find_range(w, columns);
        if (status == GNOMON_OK) status = residual_of(w, w->q, w->z, true, columns, &job->rest);
        if (status == GNOMON_OK) status = gcu_svd_lap(v, GCU_CERTIFY);
        if (status != GNOMON_OK) return status;
        const bool floor = job->rest <= 2 * u * job->norm ||
                           (job->rest > 0.7 * before && job->rest < 4096 * u * job->norm);
        if (job->rest <= wanted || floor || columns == job->columns) return GNOMON_OK;
        before = job->rest;
        columns *= 2;
        gcu_svd_give(v, held);
    }
}

/* ---- the small problem ---- */

/* B^T = P R, P in v->tall[0] (column-major), R in v->gram. */
static gnomon_status triangle(gcu_svd_wide *w)
{
    gcu_svd *v = &w->v;
    const int64_t n = v->n, s = v->columns;
    double *turned = v->tall[0], *tau = nullptr, *work = nullptr;
    int64_t count = 0;
    const int held = v->bag.count;
    gnomon_status status = gcu_reflect_work(v->blas, n, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, s, &tau);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_turn(w->z, n, s, turned, v->stream));
    status = gcu_reflect(v->blas, n, s, turned, tau, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_wide_triangle(turned, n, s, v->gram, v->stream));
    status = gcu_reflect_out(v->blas, n, s, turned, tau, work, count, v->info, v->why);
    gcu_svd_give(v, held);
    return status;
}

/* U (m x rank) in w->q's place and Vt (rank x n) in w->z's, with their signs. */
static gnomon_status small(gcu_svd_wide *w, int64_t *rank)
{
    gcu_svd *v = &w->v;
    gnomon_svd_job *job = v->job;
    const int64_t s = v->columns;
    double *left = v->vectors, *right = v->kept; /* of R */
    double *work = nullptr;
    int64_t count = 0;
    int info = 0;
    gnomon_status status = triangle(w);
    if (status == GNOMON_OK) status = gcu_singular_work(v->blas, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status == GNOMON_OK)
        status =
            gcu_singular(v->blas, s, v->gram, v->values, left, right, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(job->s, v->values, (size_t)s * sizeof *job->s,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&info, v->info, sizeof info, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (info != 0)
        return gcu_fail(v->why, GNOMON_ERROR_INTERNAL,
                        "the singular values of the %lld x %lld problem did not converge",
                        (long long)s, (long long)s);
    *rank = job->calls->choose_rank(job->calls->user, job->s, s, job->rest);
    /* B = R^T P^T = right^T diag left^T P^T */
    status = gcu_gemm64(v->blas, false, false, v->n, *rank, s, 1.0, v->tall[0], v->n, left, s, 0.0,
                        w->z, v->n, v->why);
    if (status == GNOMON_OK)
        status = gcu_gemm64(v->blas, false, false, *rank, v->m, s, 1.0, right, s, w->q, s, 0.0,
                            v->tall[1], *rank, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_wide_signs(w->z, *rank, v->n, v->values, v->stream));
    GCU_TRY(v->why, gcu_svd_wide_scale(v->tall[1], v->m, *rank, v->values, false, w->q, v->stream));
    return gcu_svd_lap(v, GCU_SMALL);
}

/* ---- the certificate ---- */

struct probe {
    double *g, *e, *h, *s, *lengths;
    int64_t rank, count;
};

/* e = (A - U S Vt) g and its lengths, or (back) g = (A - U S Vt)^T e. */
static gnomon_status follow(gcu_svd_wide *w, const probe *p, bool back, int step)
{
    gcu_svd *v = &w->v;
    const double *from = back ? p->e : p->g;
    double *to = back ? p->g : p->e;
    const int64_t rows = back ? v->n : v->m, from_rows = back ? v->m : v->n;
    gnomon_status status = multiply(w, back, from, p->count, to);
    /* h (rank x count) = Vt g, or U^T e */
    if (status == GNOMON_OK)
        status = gcu_gemm64(v->blas, false, back, p->count, p->rank, from_rows, 1.0, from, p->count,
                            back ? w->q : w->z, back ? p->rank : v->n, 0.0, p->h, p->count, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_wide_scale(p->h, p->rank, p->count, p->s, true, p->h, v->stream));
    status = gcu_gemm64(v->blas, false, back, p->count, rows, p->rank, -1.0, p->h, p->count,
                        back ? w->z : w->q, back ? v->n : p->rank, 1.0, to, p->count, v->why);
    if (status != GNOMON_OK || back) return status;
    GCU_TRY(v->why,
            gcu_svd_wide_lengths(p->e, v->m, p->count, p->lengths + step * p->count, v->stream));
    return GNOMON_OK;
}

static gnomon_status certify(gcu_svd_wide *w, int64_t rank)
{
    gcu_svd *v = &w->v;
    const gnomon_svd_options *o = v->job->options;
    const int steps = o->probe_power;
    probe p = {};
    p.rank = rank;
    p.count = o->probes;
    gnomon_status status = gcu_svd_room(v, rank, &p.s);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(p.s, v->job->s, (size_t)rank * sizeof *p.s,
                                    cudaMemcpyHostToDevice, v->stream));
    if (p.count > 0) {
        status = gcu_svd_room(v, v->n * p.count, &p.g);
        if (status == GNOMON_OK) status = gcu_svd_room(v, v->m * p.count, &p.e);
        if (status == GNOMON_OK) status = gcu_svd_room(v, rank * p.count, &p.h);
        if (status == GNOMON_OK) status = gcu_svd_room(v, (steps + 1) * p.count, &p.lengths);
        if (status == GNOMON_OK) status = draw(w, v->job->probes, p.count, p.g);
        for (int i = 0; i <= steps && status == GNOMON_OK; i++) {
            if (i > 0) status = follow(w, &p, true, 0);
            if (status == GNOMON_OK) status = follow(w, &p, false, i);
        }
        if (status != GNOMON_OK) return status;
        GCU_TRY(v->why, cudaMemcpyAsync(v->job->lengths, p.lengths,
                                        (size_t)((steps + 1) * p.count) * sizeof *p.lengths,
                                        cudaMemcpyDeviceToHost, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    }
    if (o->measure) {
        GCU_TRY(v->why, gcu_svd_wide_scale(w->q, v->m, rank, p.s, false, v->tall[0], v->stream));
        status = residual_of(w, v->tall[0], w->z, false, rank, &v->job->residual);
    }
    return status == GNOMON_OK ? gcu_svd_lap(v, GCU_CERTIFY) : status;
}

/* ---- all of it ---- */

gnomon_status gcu_svd_wide_work(gcu_svd *of)
{
    gcu_svd_wide wide = {}, *w = &wide;
    wide.v = *of;
    gcu_svd *v = &w->v;
    gnomon_svd_job *job = v->job;
    gnomon_status status = gcu_blas_open(v->s, v->stream, &v->blas, v->why);
    if (status == GNOMON_OK) {
        v->seen = static_cast<gcu_svd_look *>(v->blas->page);
        status = gcu_svd_lap(v, GCU_PROJECT);
    }
    if (status == GNOMON_OK) status = bring(w);
    if (status == GNOMON_OK) status = look_at(w);
    if (status == GNOMON_OK)
        status =
            job->options->tolerance > 0 ? find_range_by_tolerance(w) : find_range(w, job->columns);
    int64_t rank = 0;
    if (status == GNOMON_OK) status = small(w, &rank);
    if (status == GNOMON_OK) status = certify(w, rank);
    gnomon_matrix u, vt;
    job->used_columns = v->columns;
    if (status == GNOMON_OK) status = job->calls->make_room(job->calls->user, rank, &u, &vt);
    if (status == GNOMON_OK) status = gcu_svd_hand_out(v, &u, w->q);
    if (status == GNOMON_OK) status = gcu_svd_hand_out(v, &vt, w->z);
    *of = *v; /* what it has taken */
    return status;
}

double gcu_svd_wide_bytes(const gnomon_svd_job *job, int64_t columns)
{
    const gnomon_matrix *a = job->a;
    const double m = (double)a->rows, n = (double)a->cols, s = (double)columns;
    const bool there = a->memory == GNOMON_CUDA && a->dtype == GNOMON_F64;
    const double raw = a->dtype == GNOMON_F64 ? 0.0 : (double)gnomon_dtype_size(a->dtype);
    const double tall = m > n ? m : n, tile = n * 64 > 0x1p25 ? n * 64 : 0x1p25;
    return (there ? 0.0 : m * n * (8 + raw)) + 8 * ((m + n) * s + 2 * tall * s + tile) +
           12 * n * s + 8.0 * (GCU_SVD_CHUNKS + 16) * s * s;
}

const char *gcu_svd_wide_reason(const gnomon_svd_job *job)
{
    if (job->csr) return "sparse rows are factored on a GPU in single precision";
    if (job->rows) return "rows that come piece by piece are factored on a GPU in single precision";
    return nullptr;
}
