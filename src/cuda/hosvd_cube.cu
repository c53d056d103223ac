/* The tensor as far as it has shrunk: products along its first or last mode, and the singular
 * vectors of their unfoldings, by Gram matrices in double precision. */
#include "cuda/hosvd.h"

#include <math.h>

static const int64_t chunks = GCU_SVD_CHUNKS;
static const int64_t piece_numbers = 1
                                     << 22; /* numbers of an unfolding that are widened at a time */

int64_t gcu_hosvd_numbers(const gcu_hosvd *h)
{
    int64_t count = 1;
    for (int n = 0; n < h->modes; n++)
        count *= h->length[n];
    return count;
}

/* Lines of an unfolding that go into a piece, so that chunks of them are alike. */
static int64_t lines_of_piece(int64_t n)
{
    const int64_t lines = piece_numbers / n / chunks * chunks;
    return lines > chunks ? lines : chunks;
}

/* Memory for each mode's problem, as large as any that it will be. */
static gnomon_status take_problems(gcu_hosvd *h, int64_t n)
{
    const int64_t largest = gcu_svd_jacobi_most(&h->e.s->gpu), most = n < largest ? n : largest;
    const int64_t square = most * most, each = 2 * square + most;
    double *data = nullptr;
    const gnomon_status status = gcu_svd_room(&h->e, h->modes * each, &data);
    for (int mode = 0; mode < h->modes && status == GNOMON_OK; mode++, data += each)
        h->problem[mode] = {0, data, data + square, data + 2 * square};
    return status;
}

gnomon_status gcu_hosvd_take(gcu_hosvd *h, int64_t n)
{
    gnomon_status status = gcu_svd_take_small(&h->e, n);
    const int64_t piece = lines_of_piece(n) * n, least = piece_numbers + chunks * n;
    if (status == GNOMON_OK) status = take_problems(h, n);
    return status == GNOMON_OK ? gcu_svd_room(&h->e, piece > least ? piece : least, &h->piece)
                               : status;
}

static bool is_first(const gcu_hosvd *h, int mode)
{
    return h->place[0] == mode;
}

static void first_goes_last(gcu_hosvd *h)
{
    const int mode = h->place[0];
    for (int p = 1; p < h->modes; p++)
        h->place[p - 1] = h->place[p];
    h->place[h->modes - 1] = mode;
}

static gnomon_status another(gcu_hosvd *h, int64_t count, float **to)
{
    void *data = nullptr;
    GCU_TRY(h->v.why, gcu_take(h->v.s, &data, (size_t)count * sizeof **to, h->v.stream));
    *to = static_cast<float *>(data);
    return GNOMON_OK;
}

static void replace(gcu_hosvd *h, float *by)
{
    if (h->own) gcu_give(h->now, h->v.stream);
    h->now = by;
    h->own = true;
}

gnomon_status gcu_hosvd_multiply(gcu_hosvd *h, int mode, gcu_gemm_view f, int64_t columns)
{
    const int64_t n = h->length[mode], rest = gcu_hosvd_numbers(h) / n;
    const bool first = is_first(h, mode);
    const gcu_gemm_view a = {h->now, GNOMON_F32, first ? 1 : n, first ? rest : 1};
    float *to = nullptr;
    gnomon_status status = another(h, rest * columns, &to);
    if (status != GNOMON_OK) return status;
    status = gcu_svd_product(&h->v, rest, columns, n, 1.0f, a, f, 0.0f, to);
    if (h->now == h->x) h->job->passes++;
    replace(h, to);
    h->length[mode] = columns;
    if (first) first_goes_last(h);
    return status;
}

gnomon_status gcu_hosvd_rotate(gcu_hosvd *h)
{
    const int64_t count = gcu_hosvd_numbers(h), n = h->length[h->place[0]];
    float *to = nullptr;
    const gnomon_status status = another(h, count, &to);
    if (status != GNOMON_OK) return status;
    const cudaError_t error = gcu_hosvd_turn(h->now, n, count / n, count / n, to, h->v.stream);
    replace(h, to);
    first_goes_last(h);
    GCU_TRY(h->v.why, error);
    return GNOMON_OK;
}

/* gram = that of the mode's unfolding: pieces in order, each in chunks. */
static gnomon_status gram_of(gcu_hosvd *h, int mode, double *gram)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode], rest = gcu_hosvd_numbers(h) / n, most = lines_of_piece(n);
    GCU_TRY(e->why, cudaMemsetAsync(e->chunks, 0, (size_t)(n * n) * sizeof *e->chunks, e->stream));
    for (int64_t at = 0; at < rest; at += most) {
        const int64_t lines = most < rest - at ? most : rest - at;
        const int64_t each = (lines + chunks - 1) / chunks;
        if (is_first(h, mode))
            GCU_TRY(e->why, gcu_hosvd_turn(h->now + at, n, lines, rest, h->piece, e->stream));
        else
            GCU_TRY(e->why, gcu_svd_widen(h->now + at * n, lines * n, h->piece, e->stream));
        GCU_TRY(e->why, cudaMemsetAsync(h->piece + lines * n, 0,
                                        (size_t)((chunks * each - lines) * n) * sizeof *h->piece,
                                        e->stream));
        const gnomon_status status =
            gcu_gemm64_batched(e->blas, false, true, n, n, each, h->piece, n, each * n, h->piece, n,
                               each * n, e->chunks + n * n, n, n * n, (int)chunks, e->why);
        if (status != GNOMON_OK) return status;
        GCU_TRY(e->why, gcu_svd_add_chunks(e->chunks, (int)chunks + 1, n * n, gram, e->stream));
        GCU_TRY(e->why, cudaMemcpyAsync(e->chunks, gram, (size_t)(n * n) * sizeof *e->chunks,
                                        cudaMemcpyDeviceToDevice, e->stream));
    }
    return GNOMON_OK;
}

static bool is_small(const gcu_hosvd *h, int mode)
{
    return h->length[mode] <= gcu_svd_jacobi_most(&h->e.s->gpu);
}

/* The mode's problem, in the memory that it has. */
static gcu_svd_problem *problem_of(gcu_hosvd *h, int mode)
{
    h->problem[mode].n = (int)h->length[mode];
    return &h->problem[mode];
}

/* values (host) = the roots of the last 'count' of n rising squares, last first. */
static void roots_of(const double *rising, int64_t n, int64_t count, double *values)
{
    for (int64_t j = 0; j < count; j++)
        values[j] = sqrt(rising[n - 1 - j] > 0 ? rising[n - 1 - j] : 0.0);
}

/* The mode times its leading 'rank' vectors. */
static gnomon_status change_basis(gcu_hosvd *h, int mode, int64_t rank, const double *vectors,
                                  const double *squares)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode], size = h->job->size[mode];
    GCU_TRY(e->why, gcu_svd_leading(vectors, squares, n, rank, false, e->kept, e->stream));
    GCU_TRY(e->why, gcu_svd_narrow(e->kept, n * rank, h->narrow, e->stream));
    gnomon_status status = gcu_hosvd_multiply(h, mode, gcu_svd_rows(h->narrow, rank), rank);
    const double *to = e->kept;
    if (status == GNOMON_OK && h->width[mode] > 0) {
        status = gcu_gemm64(e->blas, false, false, rank, size, n, 1.0, e->kept, rank, h->q[mode], n,
                            0.0, h->spare, rank, e->why);
        to = h->spare;
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(e->why, cudaMemcpyAsync(h->q[mode], to, (size_t)(size * rank) * sizeof *to,
                                    cudaMemcpyDeviceToDevice, e->stream));
    h->width[mode] = rank;
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_cut(gcu_hosvd *h, int mode, int64_t rank, double *values)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode];
    gnomon_status status = gram_of(h, mode, e->gram);
    if (status != GNOMON_OK) return status;
    status = gcu_svd_eigen(e, n, h->rising);
    if (status != GNOMON_OK) return status;
    if (values) roots_of(h->rising, n, rank, values);
    return change_basis(h, mode, rank, e->vectors, e->values);
}

/* Turning one mode leaves the others' Gram matrices alone, so all of them are found first. */
static gnomon_status turn_small(gcu_hosvd *h)
{
    gcu_svd *e = &h->e;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[0];
        status = gram_of(h, mode, problem_of(h, mode)->gram);
        if (status == GNOMON_OK) status = gcu_hosvd_rotate(h);
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(e->why, gcu_svd_jacobi(h->problem, h->modes, e->stream));
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[0];
        status = change_basis(h, mode, h->length[mode], h->problem[mode].vectors,
                              h->problem[mode].values);
    }
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++)
        GCU_TRY(e->why, cudaMemcpyAsync(h->rising + n * GCU_SVD_JACOBI_MOST, h->problem[n].values,
                                        (size_t)h->length[n] * sizeof *h->rising,
                                        cudaMemcpyDeviceToHost, e->stream));
    GCU_TRY(e->why, cudaStreamSynchronize(e->stream));
    for (int n = 0; n < h->modes && status == GNOMON_OK; n++)
        roots_of(h->rising + n * GCU_SVD_JACOBI_MOST, h->length[n], h->length[n],
                 h->job->values[n]);
    return status;
}

gnomon_status gcu_hosvd_turn_all(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    bool small = h->modes <= GCU_SVD_JACOBI_COUNT;
    for (int n = 0; n < h->modes; n++)
        small = small && is_small(h, n);
    if (small) return turn_small(h);
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[0];
        status = gcu_hosvd_cut(h, mode, h->length[mode], h->job->values[mode]);
    }
    return status;
}
