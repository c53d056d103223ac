/* The small problem in double precision: singular values and vectors of B, s x n.
 *
 * B B^T = X diag Xt, by a library, is right to the unit roundoff u times |B|^2, so the columns of
 * W = B^T X have something in common, K = W^T W. With their lengths d, F_ij = K_ij / (d_i + d_j) is
 * what the root of K, whose eigenvalues are the singular values, has beside diag(d), to first
 * order: some u |B|^2 / d_i, where u |B| is what a solver that does not square B leaves, in six
 * times the time. X is corrected until |F|_F is that small:
 *
 * - by the angles E_ij = K_ij / (d_j^2 - d_i^2), all at once, X (I + E + E^2 / 2); or
 * - where lengths are too near to each other for that, by the eigenvectors of diag(d) + F. Columns
 *   that are so short that F is no first order of anything have K itself there, over the longest of
 *   their lengths: so each such step reaches some five decades farther down.
 *
 * Few matrices need more than one step. Where some do not suffice, which no spectrum tried brings
 * about, the long way is gone: B^T = P R by reflections, R by the library's rotations. */
#include "cuda/svd/f64.h"

#include <math.h>

enum { STEPS = 9, LARGE_STEPS = 4 };

/* Angles whose fourth powers are nothing, |E|_F: X stays orthogonal. */
static const double small_angle = 0x1p-13;
/* |cosines|_F, whose square is nothing: the columns' triangle is its first order. */
static const double upright = 0x1p-28;

/* v->z64 = Vt, in which it lies already, with its signs; v->q = U = Q X, X by rows or, transposed,
 * by columns. */
static gnomon_status sign(gcu_svd *v, const double *x, bool x_transposed, int64_t rank)
{
    const int64_t s = v->columns;
    const gnomon_status status = gcu_gemm64(v->blas, x_transposed, false, rank, v->m, s, 1.0, x, s,
                                            v->q, s, 0.0, v->tall[1], rank, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_f64_signs(v->z64, rank, v->n, v->values, v->stream));
    GCU_TRY(v->why, gcu_svd_f64_scale(v->tall[1], v->m, rank, v->values, false, v->q, v->stream));
    return GNOMON_OK;
}

/* ---- the long way ---- */

/* B^T = P R, P in v->tall[0] (column-major), R in v->gram. */
static gnomon_status triangle(gcu_svd *v)
{
    const int64_t n = v->n, s = v->columns;
    double *transposed = v->tall[0], *tau = nullptr, *work = nullptr;
    int64_t count = 0;
    const int held = v->bag.count;
    gnomon_status status = gcu_reflect_work(v->blas, n, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, s, &tau);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_transpose(v->z64, n, s, transposed, v->stream));
    status = gcu_reflect(v->blas, n, s, transposed, tau, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_f64_triangle(transposed, n, s, v->gram, v->stream));
    status = gcu_reflect_out(v->blas, n, s, transposed, tau, work, count, v->info, v->why);
    gcu_svd_free(v, held);
    return status;
}

static gnomon_status by_reflections(gcu_svd *v, int64_t *rank)
{
    gnomon_svd_job *job = v->job;
    const int64_t s = v->columns;
    double *left = v->vectors, *right = v->kept; /* of R */
    double *work = nullptr;
    int64_t count = 0;
    gnomon_status status = triangle(v);
    if (status == GNOMON_OK) status = gcu_singular_work(v->blas, s, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status == GNOMON_OK)
        status =
            gcu_singular(v->blas, s, v->gram, v->values, left, right, work, count, v->info, v->why);
    if (status == GNOMON_OK) status = gcu_svd_read_values(v, s, job->s);
    if (status != GNOMON_OK) return status;
    *rank = job->calls->choose_rank(job->calls->user, job->s, s, job->rest);
    /* B = R^T P^T = right diag left^T P^T */
    status = gcu_gemm64(v->blas, false, false, v->n, *rank, s, 1.0, v->tall[0], v->n, left, s, 0.0,
                        v->z64, v->n, v->why);
    return status == GNOMON_OK ? sign(v, right, true, *rank) : status;
}

/* ---- the quick one ---- */

/* X = the eigenvectors of v->gram, those of large values first. */
static gnomon_status eigenvectors(gcu_svd *v, double *x)
{
    const int64_t s = v->columns;
    const gnomon_status status = gcu_svd_eigen(v, s, v->job->s);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_leading(v->vectors, v->values, s, s, false, x, v->stream));
    return GNOMON_OK;
}

/* W = B^T X in v->tall[0], K in v->gram, the lengths in job->s; what they say. */
static gnomon_status overlaps(gcu_svd *v, gcu_svd_f64_overlap *parts, gcu_svd_f64_overlap *seen)
{
    const int64_t s = v->columns;
    double *const w = v->tall[0];
    gcu_svd_f64_overlap *const page = reinterpret_cast<gcu_svd_f64_overlap *>(v->seen);
    gnomon_status status = gcu_svd_times(v, v->n, s, s, 1.0, v->z64, false, v->kept, false, 0.0, w);
    if (status == GNOMON_OK) status = gcu_svd_gram(v, w, v->n, s);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_f64_overlaps(v->gram, s, v->factor, v->vectors, parts, v->stream));
    GCU_TRY(v->why, cudaMemcpyAsync(page, parts, GCU_SVD_F64_OVERLAP_PARTS * sizeof *parts,
                                    cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaMemcpy2DAsync(v->job->s, sizeof *v->job->s, v->gram,
                                      (size_t)(s + 1) * sizeof *v->gram, sizeof *v->job->s,
                                      (size_t)s, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    *seen = page[0];
    for (int i = 1; i < GCU_SVD_F64_OVERLAP_PARTS; i++) {
        seen->off += page[i].off;
        seen->near += page[i].near;
        seen->angles += page[i].angles;
        seen->cosine += page[i].cosine;
        seen->first = seen->first < page[i].first ? seen->first : page[i].first;
    }
    *seen = {sqrt(seen->off), sqrt(seen->near), sqrt(seen->angles), sqrt(seen->cosine),
             seen->first};
    for (int64_t j = 0; j < s; j++) {
        v->job->s[j] = sqrt(v->job->s[j]);
        /* what lies at the level of rounding is in no order */
        if (j > 0 && v->job->s[j] > v->job->s[j - 1]) v->job->s[j] = v->job->s[j - 1];
    }
    return GNOMON_OK;
}

/* X = X Y, Y by rows. */
static gnomon_status rotate(gcu_svd *v, const double *y)
{
    const int64_t s = v->columns;
    double *const to = v->chunks;
    const gnomon_status status = gcu_svd_times(v, s, s, s, 1.0, v->kept, false, y, false, 0.0, to);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyAsync(v->kept, to, (size_t)(s * s) * sizeof *to,
                                    cudaMemcpyDeviceToDevice, v->stream));
    return GNOMON_OK;
}

/* By the angles in v->factor; v->vectors = I + E. */
static gnomon_status rotate_by_series(gcu_svd *v)
{
    const int64_t s = v->columns;
    const gnomon_status status =
        gcu_svd_times(v, s, s, s, 0.5, v->factor, false, v->factor, false, 1.0, v->vectors);
    return status == GNOMON_OK ? rotate(v, v->vectors) : status;
}

static gnomon_status rotate_by_eigenvectors(gcu_svd *v, int64_t first)
{
    const int64_t s = v->columns;
    double *const root = v->factor;
    GCU_TRY(v->why, gcu_svd_f64_root(v->gram, s, first, root, v->stream));
    v->factor = v->gram;
    v->gram = root;
    const gnomon_status status = eigenvectors(v, v->factor);
    return status == GNOMON_OK ? rotate(v, v->factor) : status;
}

/* X in v->kept, and what 'overlaps' leaves, with W's columns orthogonal; *done tells whether. */
static gnomon_status refine(gcu_svd *v, gcu_svd_f64_overlap *seen, bool *done)
{
    const int64_t s = v->columns;
    gcu_svd_f64_overlap *parts = nullptr;
    int large = 0;
    *done = false;
    gnomon_status status = gcu_svd_room(v, GCU_SVD_F64_OVERLAP_PARTS, &parts);
    if (status == GNOMON_OK) status = gcu_svd_gram(v, v->z64, v->n, s);
    if (status == GNOMON_OK) status = eigenvectors(v, v->kept);
    for (int step = 0; status == GNOMON_OK; step++) {
        status = overlaps(v, parts, seen);
        const double enough = (double)s * 0x1p-51 * v->job->s[0];
        *done = seen->off <= enough;
        if (status != GNOMON_OK || *done || step == STEPS) return status;
        if (seen->near <= enough / 2 && seen->angles <= small_angle)
            status = rotate_by_series(v);
        else if (large++ < LARGE_STEPS)
            status = rotate_by_eigenvectors(v, seen->first);
        else
            return GNOMON_OK;
    }
    return status;
}

/* The columns of W made of length 1 and, as far as rounding has left something, orthogonal, each
 * changed by those before it only. */
static gnomon_status multiply_back(gcu_svd *v, const gcu_svd_f64_overlap *seen, int64_t rank)
{
    const int64_t s = v->columns;
    const bool close = seen->cosine <= upright;
    double *right = v->tall[1];
    GCU_TRY(v->why, gcu_svd_f64_normalise(v->gram, s, rank, close, v->factor, v->stream));
    gnomon_status status =
        gcu_svd_times(v, v->n, rank, s, 1.0, v->tall[0], false, v->factor, false, 0.0, right);
    if (status == GNOMON_OK && !close)
        status = gcu_svd_orthonormalise(v, &right, v->n, rank, false);
    if (status == GNOMON_OK && !close) status = gcu_svd_polish(v, &right, v->n, rank);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_transpose(right, v->n, rank, v->z64, v->stream));
    return sign(v, v->kept, false, rank);
}

gnomon_status gcu_svd_f64_small(gcu_svd *v, int64_t *rank)
{
    gnomon_svd_job *const job = v->job;
    gcu_svd_f64_overlap seen = {};
    bool done = false;
    const gnomon_status status = refine(v, &seen, &done);
    if (status != GNOMON_OK) return status;
    if (!done) return by_reflections(v, rank);
    *rank = job->calls->choose_rank(job->calls->user, job->s, v->columns, job->rest);
    return multiply_back(v, &seen, *rank);
}
