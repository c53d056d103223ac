/* Orthonormal columns by Cholesky QR in double precision, repeated until the Gram matrix says so
 * (Yamamoto, Nakatsukasa, Yanagisawa & Fukaya 2015); with a shift where that matrix is not safely
 * positive definite (Fukaya, Kannan, Nakatsukasa, Yamamoto & Yanagisawa 2020), which leaves columns
 * so much better conditioned that the next round can go on; by reflections where that does not help
 * either: dependent columns, zeros. */
#include "cuda/svd/svd.h"

#include <math.h>

enum { CHUNKS = GCU_SVD_CHUNKS, CHUNK_ROWS = 256, ROUNDS = 6 };

static const double near_enough = 0x1p-26; /* |G - I|_F: below the rounding of fp32 */

double *gcu_svd_other(const gcu_svd *v, const double *tall)
{
    return tall == v->tall[0] ? v->tall[1] : v->tall[0];
}

/* Sums of chunks of rows, all at once, then in order: as many chunks as the rows alone ask for. */
gnomon_status gcu_svd_gram(gcu_svd *v, double *tall, int64_t rows, int64_t cols)
{
    const int64_t wanted = rows / CHUNK_ROWS, most = CHUNKS;
    const int64_t count = wanted < 1 ? 1 : wanted < most ? wanted : most;
    const int64_t each = (rows + count - 1) / count;
    GCU_TRY(v->why,
            cudaMemsetAsync(tall + rows * cols, 0,
                            (size_t)((count * each - rows) * cols) * sizeof *tall, v->stream));
    const gnomon_status status =
        gcu_gemm64_batched(v->blas, false, true, cols, cols, each, tall, cols, each * cols, tall,
                           cols, each * cols, v->chunks, cols, cols * cols, (int)count, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_add_chunks(v->chunks, (int)count, cols * cols, v->gram, v->stream));
    return GNOMON_OK;
}

static gnomon_status see(gcu_svd *v)
{
    GCU_TRY(v->why,
            cudaMemcpyAsync(v->seen, v->stats, sizeof *v->seen, cudaMemcpyDeviceToHost, v->stream));
    GCU_TRY(v->why, cudaStreamSynchronize(v->stream));
    return GNOMON_OK;
}

/* |G - I|_F and the trace of v->gram. */
static gnomon_status stats(gcu_svd *v, int64_t cols, double *off, double *trace)
{
    GCU_TRY(v->why, gcu_svd_gram_stats(v->gram, cols, v->stats, v->stream));
    const gnomon_status status = see(v);
    *off = *trace = 0;
    for (int i = 0; i < GCU_SVD_STATS_PARTS; i++) {
        *off += v->seen->off_part[i];
        *trace += v->seen->trace_part[i];
    }
    *off = sqrt(*off);
    return status;
}

/* v->factor = the Cholesky factor of v->gram + shift I, and what its diagonal tells. */
static gnomon_status factor(gcu_svd *v, int64_t cols, double shift)
{
    GCU_TRY(v->why, gcu_svd_shift(v->gram, cols, shift, v->factor, v->stream));
    const gnomon_status status =
        gcu_cholesky(v->blas, cols, v->factor, v->work, v->work_count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_factor_stats(v->factor, cols, v->info, v->stats, v->stream));
    return see(v);
}

/* Whether dividing by the factor loses nothing that matters. */
static bool is_safe(const gcu_svd_stats *stats)
{
    return stats->info == 0 && stats->fewest > 0x1p-20 * stats->most && stats->fewest > 1e-150;
}

/* *tall times the inverse of a triangle, in v->vectors. */
static gnomon_status times_inverse(gcu_svd *v, double **tall, int64_t rows, int64_t cols)
{
    double *to = gcu_svd_other(v, *tall);
    const gnomon_status status = gcu_gemm64(v->blas, false, false, cols, rows, cols, 1.0,
                                            v->vectors, cols, *tall, cols, 0.0, to, cols, v->why);
    *tall = to;
    return status;
}

/* v->vectors = the inverse of v->factor, a lower triangle. */
static gnomon_status invert_factor(gcu_svd *v, int64_t cols)
{
    double *inverse = v->vectors;
    GCU_TRY(v->why,
            cudaMemsetAsync(inverse, 0, (size_t)(cols * cols) * sizeof *inverse, v->stream));
    GCU_TRY(v->why, gcu_svd_shift(inverse, cols, 1.0, inverse, v->stream));
    return gcu_solve_lower(v->blas, cols, cols, v->factor, cols, inverse, cols, v->why);
}

/* *tall = *tall R^-1: the inverse of the small triangle, then one product. */
static gnomon_status divide(gcu_svd *v, double **tall, int64_t rows, int64_t cols)
{
    const gnomon_status status = invert_factor(v, cols);
    return status == GNOMON_OK ? times_inverse(v, tall, rows, cols) : status;
}

gnomon_status gcu_svd_invert_gram(gcu_svd *v, int64_t cols)
{
    gnomon_status status = factor(v, cols, 0.0);
    if (status == GNOMON_OK && !is_safe(v->seen))
        return gcu_fail(v->why, GNOMON_ERROR_INTERNAL,
                        "the Gram matrix of %lld columns is not positive definite",
                        (long long)cols);
    if (status == GNOMON_OK) status = invert_factor(v, cols);
    if (status != GNOMON_OK) return status;
    return gcu_gemm64(v->blas, true, false, cols, cols, cols, 1.0, v->vectors, cols, v->vectors,
                      cols, 0.0, v->kept, cols, v->why);
}

static gnomon_status overflows(gcu_svd *v)
{
    return gcu_fail(v->why, GNOMON_ERROR_NONFINITE,
                    "a product of the matrix overflows its type; compute in double precision, or "
                    "scale the data");
}

/* As many rounds as nearly all matrices need, none of which waits for the host; *done tells whether
 * they were enough. If not, the columns span what they did. */
static gnomon_status by_rounds(gcu_svd *v, double **tall, int64_t rows, int64_t cols,
                               bool single_step, bool *done)
{
    const int divisions = single_step ? 1 : 2;
    gnomon_status status = GNOMON_OK;
    for (int round = 0; round < (single_step ? 1 : 3) && status == GNOMON_OK; round++) {
        status = gcu_svd_gram(v, *tall, rows, cols);
        if (status != GNOMON_OK) return status;
        GCU_TRY(v->why, gcu_svd_round(v->gram, cols, near_enough, v->vectors,
                                      v->stats->found + round, v->stream));
        if (round < divisions) status = times_inverse(v, tall, rows, cols);
    }
    if (status == GNOMON_OK) status = see(v);
    if (status != GNOMON_OK) return status;
    if (v->seen->found[0] == GCU_SVD_OVERFLOW) return overflows(v);
    const int last = v->seen->found[single_step ? 0 : 2];
    *done = last == GCU_SVD_ORTHONORMAL || (single_step && last == GCU_SVD_SAFE);
    if (*done) v->job->cholesky++;
    return GNOMON_OK;
}

static gnomon_status reflect_by(gcu_svd *v, double **tall, int64_t rows, int64_t cols, double *tau,
                                double *work, int64_t count)
{
    double *transposed = gcu_svd_other(v, *tall);
    GCU_TRY(v->why, gcu_svd_transpose(*tall, rows, cols, transposed, v->stream));
    gnomon_status status =
        gcu_reflect(v->blas, rows, cols, transposed, tau, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    /* R's diagonal, which the reflections overwrite next, shows which columns had their sign
     * flipped */
    GCU_TRY(v->why, cudaMemcpy2DAsync(v->factor, sizeof(double), transposed,
                                      (size_t)(rows + 1) * sizeof(double), sizeof(double),
                                      (size_t)cols, cudaMemcpyDeviceToDevice, v->stream));
    status = gcu_reflect_out(v->blas, rows, cols, transposed, tau, work, count, v->info, v->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, gcu_svd_transpose(transposed, cols, rows, *tall, v->stream));
    GCU_TRY(v->why, gcu_svd_sign_columns(*tall, rows, cols, v->factor, v->stream));
    v->job->householder++;
    return GNOMON_OK;
}

static gnomon_status reflect(gcu_svd *v, double **tall, int64_t rows, int64_t cols)
{
    double *tau = nullptr, *work = nullptr;
    int64_t count = 0;
    const int held = v->bag.count;
    gnomon_status status = gcu_reflect_work(v->blas, rows, cols, &count, v->why);
    if (status == GNOMON_OK) status = gcu_svd_room(v, cols, &tau);
    if (status == GNOMON_OK) status = gcu_svd_room(v, count, &work);
    if (status == GNOMON_OK) status = reflect_by(v, tall, rows, cols, tau, work, count);
    gcu_svd_free(v, held);
    return status;
}

gnomon_status gcu_svd_polish(gcu_svd *v, double **tall, int64_t rows, int64_t cols)
{
    gnomon_status status = gcu_svd_gram(v, *tall, rows, cols);
    if (status == GNOMON_OK) status = factor(v, cols, 0.0);
    return status == GNOMON_OK ? divide(v, tall, rows, cols) : status;
}

gnomon_status gcu_svd_orthonormalise(gcu_svd *v, double **tall, int64_t rows, int64_t cols,
                                     bool single_step)
{
    if (cols <= GCU_SVD_ROUND_MOST) {
        bool done = false;
        const gnomon_status status = by_rounds(v, tall, rows, cols, single_step, &done);
        if (status != GNOMON_OK || done) return status;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double off = 0, trace = 0;
        gnomon_status status = gcu_svd_gram(v, *tall, rows, cols);
        if (status == GNOMON_OK) status = stats(v, cols, &off, &trace);
        if (status != GNOMON_OK) return status;
        if (!isfinite(trace)) return overflows(v);
        if (off <= near_enough) {
            v->job->cholesky++;
            return GNOMON_OK;
        }
        status = factor(v, cols, 0.0);
        if (status != GNOMON_OK) return status;
        const bool safe = is_safe(v->seen);
        if (!safe) {
            if (!(trace > 1e-290)) break;
            status = factor(v, cols, 8 * (double)cols * 0x1p-53 * trace);
            if (status != GNOMON_OK) return status;
            if (v->seen->info != 0) break;
        }
        status = divide(v, tall, rows, cols);
        if (status != GNOMON_OK) return status;
        if (single_step && safe) {
            v->job->cholesky++;
            return GNOMON_OK;
        }
    }
    return reflect(v, tall, rows, cols);
}

gnomon_status gcu_svd_orthonormal_range(gcu_svd *v)
{
    double *tall = v->tall[0];
    GCU_TRY(v->why, gcu_svd_to_f64(v->y, v->m * v->columns, tall, v->stream));
    const gnomon_status status = gcu_svd_orthonormalise(v, &tall, v->m, v->columns, false);
    if (status != GNOMON_OK) return status;
    double *&place = v->tall[tall == v->tall[1]];
    place = v->q;
    v->q = tall;
    return gcu_svd_lap(v, GCU_ORTHONORMALISE);
}
