/* From A ~ Q B to singular values and vectors, and what they leave.
 *
 * B B^T = X diag(s^2) X^T in double precision, U = Q X, and V is B^T X with its columns made
 * orthonormal. Squaring B costs digits below sqrt(2^-53) of the largest singular value, which is
 * below the rounding of B's own numbers, single-precision ones. Columns are made orthonormal in the
 * order of falling singular values, so that what rounding left of a large one in a small one is
 * taken out of the small one. */
#include "cuda/svd.h"

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

gnomon_status gcu_svd_eigen(gcu_svd *v, int64_t n, double *rising)
{
    if (n <= gcu_svd_jacobi_most(&v->s->gpu)) {
        const gcu_svd_problem problem = {(int)n, v->gram, v->vectors, v->values};
        GCU_TRY(v->why, gcu_svd_jacobi(&problem, 1, v->stream));
        GCU_TRY(v->why, cudaMemcpyAsync(rising, v->values, (size_t)n * sizeof *rising,
                                        cudaMemcpyDeviceToHost, v->stream));
        GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
        return GNOMON_OK;
    }
    GCU_TRY(v->why, cudaMemcpyAsync(v->vectors, v->gram, (size_t)(n * n) * sizeof *v->gram,
                                    cudaMemcpyDeviceToDevice, v->stream));
    const gnomon_status status =
        gcu_eigen(v->blas, n, v->vectors, v->values, v->eigen_device, v->eigen_device_bytes,
                  v->eigen_host, v->eigen_host_bytes, v->info, v->why);
    if (status != GNOMON_OK) return status;
    int info = 0;
    GCU_TRY(v->why, cudaMemcpyAsync(rising, v->values, (size_t)n * sizeof *rising,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why,
            cudaMemcpyAsync(&info, v->info, sizeof info, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    if (info != 0)
        return gcu_fail(v->why, GNOMON_ERROR_INTERNAL,
                        "the singular values of the %lld x %lld problem did not converge",
                        (long long)n, (long long)n);
    return GNOMON_OK;
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
    double *turned = gcu_svd_other(v, w);
    GCU_TRY(v->why, gcu_svd_turn(w, v->n, rank, turned, v->stream));
    GCU_TRY(v->why, gcu_svd_sign_rows(turned, rank, v->n, v->z, v->sign, v->stream));
    status = times(v, v->q, v->m, n, v->kept, rank, v->tall[0]);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_narrow_signed(v->tall[0], v->m, rank, v->sign, v->y, v->stream));
    return GNOMON_OK;
}

static gnomon_status solve(gcu_svd *v, double *rising, int64_t *rank)
{
    gnomon_svd_job *job = v->job;
    const int64_t n = v->columns;
    double *bt = v->tall[0];
    GCU_TRY(v->why, gcu_svd_widen(v->z, v->n * n, bt, v->stream));
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

struct probe {
    const float *u, *vt; /* m x rank, rank x n */
    double *s;
    float *g, *e, *h; /* n x count, m x count, rank x count */
    double *lengths;  /* count for each step */
    int64_t rank, count;
};

/* to (rows x count) -= b (diag(s) (c from)): b rows x rank, c rank x its columns. */
static gnomon_status subtract(gcu_svd *v, const probe *p, gcu_gemm_view b, gcu_gemm_view c,
                              const float *from, int64_t from_rows, float *to, int64_t rows)
{
    const gnomon_status status = gcu_svd_product(v, p->rank, p->count, from_rows, 1.0f, c,
                                                 gcu_svd_rows(from, p->count), 0.0f, p->h);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_scale(p->h, p->rank, p->count, p->s, true, p->h, v->stream));
    return gcu_svd_product(v, rows, p->count, p->rank, -1.0f, b, gcu_svd_rows(p->h, p->count), 1.0f,
                           to);
}

/* e = (A - U S Vt) g, its lengths, and e divided by the longest. */
static gnomon_status forth(gcu_svd *v, const probe *p, int step)
{
    gnomon_status status = gcu_svd_multiply(v, false, p->g, GNOMON_F32, p->count, p->e);
    if (status == GNOMON_OK)
        status = subtract(v, p, gcu_svd_rows(p->u, p->rank), gcu_svd_rows(p->vt, v->n), p->g, v->n,
                          p->e, v->m);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_lengths(p->e, v->m, p->count, p->lengths + step * p->count, v->stream));
    return GNOMON_OK;
}

static gnomon_status back(gcu_svd *v, const probe *p)
{
    const gnomon_status status = gcu_svd_multiply(v, true, p->e, GNOMON_F32, p->count, p->g);
    if (status != GNOMON_OK) return status;
    return subtract(v, p, gcu_svd_turned(p->vt, v->n), gcu_svd_turned(p->u, p->rank), p->e, v->m,
                    p->g, v->n);
}

static gnomon_status follow(gcu_svd *v, probe *p, int steps)
{
    gnomon_status status = gcu_svd_room(v, v->n * p->count, &p->g);
    if (status == GNOMON_OK) status = gcu_svd_room(v, v->m * p->count, &p->e);
    if (status == GNOMON_OK) status = gcu_svd_room(v, p->rank * p->count, &p->h);
    if (status == GNOMON_OK) status = gcu_svd_room(v, (steps + 1) * p->count, &p->lengths);
    if (status == GNOMON_OK) status = gcu_svd_probes(v, p->count, p->g);
    for (int i = 0; i <= steps && status == GNOMON_OK; i++) {
        if (i > 0) status = back(v, p);
        if (status == GNOMON_OK) status = forth(v, p, i);
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(v->job->lengths, p->lengths,
                                    (size_t)((steps + 1) * p->count) * sizeof *p->lengths,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_certify(gcu_svd *v, int64_t rank)
{
    const gnomon_svd_options *o = v->job->options;
    probe p = {};
    p.u = v->y;
    p.vt = v->z;
    p.rank = rank;
    p.count = o->probes;
    if (o->probes == 0 && !o->measure) return GNOMON_OK;
    gnomon_status status = gcu_svd_room(v, rank, &p.s);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(p.s, v->job->s, (size_t)rank * sizeof *p.s,
                                    cudaMemcpyHostToDevice, v->stream));
    if (o->probes > 0) status = follow(v, &p, o->probe_power);
    if (status != GNOMON_OK || !o->measure) return status;
    float *scaled = nullptr;
    status = gcu_svd_room(v, v->m * rank, &scaled);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_scale(p.u, v->m, rank, p.s, false, scaled, v->stream));
    return gcu_svd_residual(v, scaled, gcu_svd_rows(p.vt, v->n), rank, &v->job->residual);
}
