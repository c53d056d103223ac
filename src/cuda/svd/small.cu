/* From A ~ Q B to singular values and vectors, and what they leave.
 *
 * B B^T = X diag(s^2) X^T in double precision, U = Q X, and V is B^T X with its columns made
 * orthonormal. Squaring B costs digits below sqrt(2^-53) of the largest singular value, which is
 * below the rounding of B's own numbers, single-precision ones. Columns are made orthonormal in the
 * order of falling singular values, so that what rounding left of a large one in a small one is
 * taken out of the small one. */
#include "cuda/svd/f64.h"

#include <math.h>
#include <stdlib.h>

/* Below this share of the largest eigenvalue lengths are measured anew. */
static const double well_known = 0x1p-36;

/* out (rows x k) = tall (rows x n) m (n x k). */
static gnomon_status times(gcu_svd *v, const double *tall, int64_t rows, int64_t n, const double *m,
                           int64_t k, double *out)
{
    return gcu_gemm64(v->blas, false, false, k, rows, n, 1.0, m, k, tall, n, 0.0, out, k, v->why);
}

/* s = the lengths of B^T X's columns, falling; v->values = their squares. */
static gnomon_status measure_lengths(gcu_svd *v, const double *bt, double *s, double *rising)
{
    const int64_t n = v->columns;
    double *w = gcu_svd_other(v, bt);
    GCU_TRY(v->why, gcu_svd_leading(v->vectors, v->values, n, n, false, v->factor, v->stream));
    gnomon_status status = times(v, bt, v->n, n, v->factor, n, w);
    if (status == GNOMON_OK) status = gcu_svd_gram(v, w, v->n, n);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpy2DAsync(s, sizeof *s, v->gram, (size_t)(n + 1) * sizeof *v->gram,
                                      sizeof *s, (size_t)n, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    for (int64_t j = 0; j < n; j++) {
        rising[n - 1 - j] = s[j];
        s[j] = sqrt(s[j]);
        /* what lies at the level of rounding is in no order */
        if (j > 0 && s[j] > s[j - 1]) s[j] = s[j - 1];
    }
    GCU_TRY(v->why, cudaMemcpyAsync(v->values, rising, (size_t)n * sizeof *rising,
                                    cudaMemcpyHostToDevice, v->stream));
    return GNOMON_OK;
}

/* U in v->y, Vt in v->z. */
static gnomon_status multiply_back(gcu_svd *v, double *bt, int64_t rank)
{
    const int64_t n = v->columns;
    double *w = gcu_svd_other(v, bt);
    GCU_TRY(v->why, gcu_svd_leading(v->vectors, v->values, n, rank, false, v->kept, v->stream));
    GCU_TRY(v->why, gcu_svd_leading(v->vectors, v->values, n, rank, true, v->factor, v->stream));
    gnomon_status status = times(v, bt, v->n, n, v->factor, rank, w);
    if (status == GNOMON_OK) status = gcu_svd_orthonormalise(v, &w, v->n, rank, false);
    if (status != GNOMON_OK) return status;
    double *transposed = gcu_svd_other(v, w);
    GCU_TRY(v->why, gcu_svd_transpose(w, v->n, rank, transposed, v->stream));
    GCU_TRY(v->why, gcu_svd_sign_rows(transposed, rank, v->n, v->z, v->sign, v->stream));
    status = times(v, v->q, v->m, n, v->kept, rank, v->tall[0]);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_to_f32_signed(v->tall[0], v->m, rank, v->sign, v->y, v->stream));
    return GNOMON_OK;
}

static gnomon_status solve(gcu_svd *v, double *rising, int64_t *rank)
{
    gnomon_svd_job *job = v->job;
    const int64_t n = v->columns;
    double *bt = v->tall[0];
    GCU_TRY(v->why, gcu_svd_to_f64(v->z, v->n * n, bt, v->stream));
    gnomon_status status = gcu_svd_gram(v, bt, v->n, n);
    if (status == GNOMON_OK) status = gcu_svd_eigen(v, n, rising);
    if (status != GNOMON_OK) return status;
    for (int64_t j = 0; j < n; j++)
        job->s[j] = sqrt(rising[n - 1 - j] > 0 ? rising[n - 1 - j] : 0.0);
    const int64_t wanted = job->options->tolerance == 0 ? job->options->rank : n;
    if (rising[wanted < n ? n - wanted : 0] < well_known * rising[n - 1])
        status = measure_lengths(v, bt, job->s, rising);
    if (status != GNOMON_OK) return status;
    *rank = job->calls->choose_rank(job->calls->user, job->s, n, job->rest);
    return multiply_back(v, bt, *rank);
}

gnomon_status gcu_svd_small(gcu_svd *v, int64_t *rank)
{
    double *rising = static_cast<double *>(calloc((size_t)v->columns, sizeof *rising));
    if (!rising) return gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for singular values");
    const gnomon_status status = solve(v, rising, rank);
    free(rising);
    return status;
}

/* ---- the certificate ---- */

/* What left diag(s) right leaves of A, by random vectors. */
struct test_run {
    const void *left, *right; /* m x rank, rank x n or (transposed) n x rank */
    bool transposed;
    double *s;       /* NULL: ones */
    void *g, *e, *h; /* n x count, m x count, rank x count */
    double *lengths; /* count for each step */
    int64_t first, rank, count;
};

static gnomon_status scale(gcu_svd *v, const void *from, int64_t rows, int64_t cols,
                           const double *s, bool by_rows, void *to)
{
    if (v->f64)
        GCU_TRY(v->why, gcu_svd_f64_scale(static_cast<const double *>(from), rows, cols, s, by_rows,
                                          static_cast<double *>(to), v->stream));
    else
        GCU_TRY(v->why, gcu_svd_scale(static_cast<const float *>(from), rows, cols, s, by_rows,
                                      static_cast<float *>(to), v->stream));
    return GNOMON_OK;
}

static gnomon_status measure_columns(gcu_svd *v, void *e, int64_t cols, double *lengths)
{
    if (v->f64)
        GCU_TRY(v->why,
                gcu_svd_f64_lengths(static_cast<double *>(e), v->m, cols, lengths, v->stream));
    else
        GCU_TRY(v->why, gcu_svd_lengths(static_cast<float *>(e), v->m, cols, lengths, v->stream));
    return GNOMON_OK;
}

/* to (rows x count) -= op(b) (diag(s) (op(c) from)). */
static gnomon_status subtract(gcu_svd *v, const test_run *p, const void *b, bool b_transposed,
                              const void *c, bool c_transposed, const void *from, int64_t from_rows,
                              void *to, int64_t rows)
{
    gnomon_status status = gcu_svd_times(v, p->rank, p->count, from_rows, 1.0, c, c_transposed,
                                         from, false, 0.0, p->h);
    if (status == GNOMON_OK && p->s) status = scale(v, p->h, p->rank, p->count, p->s, true, p->h);
    if (status != GNOMON_OK) return status;
    return gcu_svd_times(v, rows, p->count, p->rank, -1.0, b, b_transposed, p->h, false, 1.0, to);
}

/* e = (A - left diag(s) right) g, its lengths, and e divided by the longest. */
static gnomon_status forth(gcu_svd *v, const test_run *p, int step)
{
    gnomon_status status = GNOMON_OK;
    if (!v->tested) status = gcu_svd_multiply(v, false, p->g, gcu_svd_type(v), p->count, p->e);
    if (status == GNOMON_OK)
        status = subtract(v, p, p->left, false, p->right, p->transposed, p->g, v->n, p->e, v->m);
    return status == GNOMON_OK ? measure_columns(v, p->e, p->count, p->lengths + step * p->count)
                               : status;
}

static gnomon_status back(gcu_svd *v, const test_run *p)
{
    const gnomon_status status = gcu_svd_multiply(v, true, p->e, gcu_svd_type(v), p->count, p->g);
    if (status != GNOMON_OK) return status;
    return subtract(v, p, p->right, !p->transposed, p->left, true, p->e, v->m, p->g, v->n);
}

/* lengths (host): those of each step. */
static gnomon_status follow(gcu_svd *v, test_run *p, int steps, double *lengths)
{
    const size_t size = gcu_svd_size(v);
    gnomon_status status = gcu_svd_alloc(v, (size_t)(v->n * p->count) * size, &p->g);
    p->e = v->tested;
    if (status == GNOMON_OK && !p->e)
        status = gcu_svd_alloc(v, (size_t)(v->m * p->count) * size, &p->e);
    if (status == GNOMON_OK) status = gcu_svd_alloc(v, (size_t)(p->rank * p->count) * size, &p->h);
    if (status == GNOMON_OK) status = gcu_svd_room(v, (steps + 1) * p->count, &p->lengths);
    if (status == GNOMON_OK)
        status = gcu_svd_draw(v, v->job->test_vectors, p->first, p->count, 0, v->n, p->g);
    for (int i = 0; i <= steps && status == GNOMON_OK; i++) {
        if (i > 0) status = back(v, p);
        if (status == GNOMON_OK) status = forth(v, p, i);
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(lengths, p->lengths,
                                    (size_t)((steps + 1) * p->count) * sizeof *p->lengths,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_certify(gcu_svd *v, int64_t rank)
{
    const gnomon_svd_options *o = v->job->options;
    test_run p = {};
    p.left = gcu_svd_left(v);
    p.right = gcu_svd_right(v);
    p.rank = rank;
    p.count = o->test_vectors;
    if (o->test_vectors == 0 && !o->measure) return GNOMON_OK;
    gnomon_status status = gcu_svd_room(v, rank, &p.s);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(p.s, v->job->s, (size_t)rank * sizeof *p.s,
                                    cudaMemcpyHostToDevice, v->stream));
    if (o->test_vectors > 0)
        status = follow(v, &p, o->single_pass ? 0 : o->test_power, v->job->lengths);
    if (status != GNOMON_OK || !o->measure) return status;
    void *const scaled = v->tall[0];
    status = scale(v, p.left, v->m, rank, p.s, false, scaled);
    return status == GNOMON_OK
               ? gcu_svd_residual(v, scaled, p.right, false, rank, &v->job->residual)
               : status;
}

/* Fresh vectors for a bound, of which it is about twice the length; far from the certificate's. */
enum { CHECK_PROBES = 40, CHECKS_APART = 1 << 20 };

static gnomon_status bound_rest(gcu_svd *v, double *about)
{
    gnomon_svd_job *job = v->job;
    double lengths[CHECK_PROBES], squares = 0;
    test_run p = {};
    p.left = gcu_svd_left(v);
    p.right = gcu_svd_right(v);
    p.transposed = true;
    p.rank = v->columns;
    p.count = CHECK_PROBES;
    p.first = ++v->checks * CHECKS_APART;
    const int held = v->bag.count;
    const gnomon_status status = follow(v, &p, 0, lengths);
    gcu_svd_free(v, held);
    if (status != GNOMON_OK) return status;
    for (double length : lengths)
        squares += length * length;
    *about = sqrt(squares / CHECK_PROBES);
    job->rest = job->calls->bound_of(job->calls->user, lengths, CHECK_PROBES);
    return GNOMON_OK;
}

gnomon_status gcu_svd_measure_rest(gcu_svd *v, double *about)
{
    if (v->job->csr) return bound_rest(v, about);
    const gnomon_status status =
        gcu_svd_residual(v, gcu_svd_left(v), gcu_svd_right(v), true, v->columns, &v->job->rest);
    *about = v->job->rest;
    return status;
}
