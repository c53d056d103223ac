/* The tensor as far as it has shrunk: products along its first or last mode, and the singular
 * vectors of their unfoldings, by Gram matrices in double precision. */
#include "cuda/hosvd/hosvd.h"

#include <math.h>
#include <stdlib.h>

static const int64_t chunks = GCU_SVD_CHUNKS;
static const int64_t piece_numbers =
    1 << 22; /* numbers of an unfolding that are converted to fp64 at a time */

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
gnomon_status gcu_hosvd_alloc(gcu_hosvd *h, int64_t n)
{
    const int64_t largest = gcu_svd_jacobi_most(&h->e.s->gpu), most = n < largest ? n : largest;
    const int64_t square = most * most, each = 2 * square;
    double *data = nullptr;
    const gnomon_status status = gcu_svd_room(&h->e, h->modes * each, &data);
    for (int mode = 0; mode < h->modes && status == GNOMON_OK; mode++, data += each)
        h->problem[mode] = {0, data, data + square, h->notes->values[mode]};
    return status;
}

/* What a library's solver takes, when one is needed. */
static gnomon_status alloc_large(gcu_hosvd *h)
{
    if (h->piece) return GNOMON_OK;
    const int64_t n = gcu_hosvd_small_most(h->job);
    const int64_t piece = lines_of_piece(n) * n, least = piece_numbers + chunks * n;
    const gnomon_status status = gcu_svd_alloc_small(&h->e, n);
    if (status != GNOMON_OK) return status;
    h->rising = static_cast<double *>(calloc((size_t)n, sizeof *h->rising));
    if (!h->rising) return gcu_fail(h->e.why, GNOMON_ERROR_MEMORY, "no memory for singular values");
    return gcu_svd_room(&h->e, piece > least ? piece : least, &h->piece);
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
    GCU_TRY(h->v.why, gcu_alloc(h->v.s, &data, (size_t)count * sizeof **to, h->v.stream));
    *to = static_cast<float *>(data);
    return GNOMON_OK;
}

static void replace(gcu_hosvd *h, float *by)
{
    if (h->own) gcu_free(h->now, h->v.stream);
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
    const cudaError_t error = gcu_hosvd_transpose(h->now, n, count / n, count / n, to, h->v.stream);
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
            GCU_TRY(e->why, gcu_hosvd_transpose(h->now + at, n, lines, rest, h->piece, e->stream));
        else
            GCU_TRY(e->why, gcu_svd_to_f64(h->now + at * n, lines * n, h->piece, e->stream));
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
    GCU_TRY(e->why, gcu_svd_to_f32(e->kept, n * rank, h->f32, e->stream));
    gnomon_status status = gcu_hosvd_multiply(h, mode, gcu_svd_rows(h->f32, rank), rank);
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

static gnomon_status cut(gcu_hosvd *h, int mode, int64_t rank, double *values)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode];
    gnomon_status status = alloc_large(h);
    if (status == GNOMON_OK) status = gram_of(h, mode, e->gram);
    if (status == GNOMON_OK) status = gcu_svd_eigen(e, n, h->rising);
    if (status != GNOMON_OK) return status;
    if (values) roots_of(h->rising, n, rank, values);
    return change_basis(h, mode, rank, e->vectors, e->values);
}

gnomon_status gcu_hosvd_cut_to_budget(gcu_hosvd *h, int mode, int64_t most, double budget,
                                      double *spent)
{
    gcu_svd *e = &h->e;
    const int64_t n = h->length[mode];
    const double rounding = 0x1p-22 * h->job->norm; /* four roundoffs: below them nothing costs */
    const double limit = fmax(budget, rounding * rounding);
    double tail = 0;
    gnomon_status status = alloc_large(h);
    if (status == GNOMON_OK) status = gram_of(h, mode, e->gram);
    if (status == GNOMON_OK) status = gcu_svd_eigen(e, n, h->rising);
    if (status != GNOMON_OK) return status;
    int64_t rank = n;
    while (rank > 1 && (rank > most || tail + fmax(h->rising[n - rank], 0.0) <= limit))
        tail += fmax(h->rising[n - rank--], 0.0);
    *spent += tail;
    if (rank < n) return change_basis(h, mode, rank, e->vectors, e->values);
    return is_first(h, mode) ? gcu_hosvd_rotate(h) : GNOMON_OK;
}

/* ---- where the problems are small: nothing waits, and no mode changes its place ---- */

/* Whether kernels of one launch do best with the mode. */
static bool is_small(const gcu_hosvd *h, int mode)
{
    const double count = (double)gcu_hosvd_numbers(h), n = (double)h->length[mode];
    return h->length[mode] <= gcu_svd_jacobi_most(&h->e.s->gpu) && count * n < 0x1p33 &&
           count / n < 0x1p31;
}

static gcu_hosvd_unfolding unfolding_of(const gcu_hosvd *h, int mode)
{
    gcu_hosvd_unfolding u = {1, 1, (int)h->length[mode], nullptr, h->problem[mode].gram};
    bool before = true;
    for (int p = 0; p < h->modes; p++) {
        if (h->place[p] == mode)
            before = false;
        else
            (before ? u.left : u.right) *= h->length[h->place[p]];
    }
    return u;
}

/* The eigenvectors of the modes' Gram matrices, squares in the notes. */
static gnomon_status solve(gcu_hosvd *h, const int *modes, int count)
{
    gcu_svd *e = &h->e;
    gcu_hosvd_unfolding u[GNOMON_TENSOR_MODES] = {};
    gcu_svd_problem problem[GNOMON_TENSOR_MODES] = {};
    const int held = e->bag.count;
    int64_t all = 0;
    double *parts = nullptr;
    for (int i = 0; i < count; i++) {
        u[i] = unfolding_of(h, modes[i]);
        all += gcu_hosvd_core_parts(u[i].left * u[i].right, u[i].n);
    }
    const gnomon_status status = gcu_svd_room(e, all, &parts);
    if (status != GNOMON_OK) return status;
    for (int i = 0; i < count; i++) {
        u[i].parts = parts;
        parts += gcu_hosvd_core_parts(u[i].left * u[i].right, u[i].n);
        problem[i] = h->problem[modes[i]];
        problem[i].n = u[i].n;
    }
    GCU_TRY(e->why, gcu_hosvd_core_grams(h->now, u, count, e->stream));
    gcu_svd_free(e, held);
    /* what cosines of 2^-15 leave is below the rounding of the core's numbers, which are fp32 */
    GCU_TRY(e->why, gcu_svd_jacobi(problem, count, e->stream, 0x1p-30));
    return GNOMON_OK;
}

/* The modes times as many of their leading vectors as they have ranks. */
static gnomon_status change_all(gcu_hosvd *h, const int *modes, int count)
{
    gcu_svd *e = &h->e;
    gcu_hosvd_basis basis[GNOMON_TENSOR_MODES] = {};
    for (int i = 0; i < count; i++) {
        const int mode = modes[i];
        basis[i] = {h->job->size[mode],       (int)h->length[mode],
                    (int)h->job->rank[mode],  h->width[mode] > 0 ? h->q[mode] : nullptr,
                    h->problem[mode].vectors, h->other[mode]};
    }
    GCU_TRY(e->why, gcu_hosvd_change_basis(basis, count, e->stream));
    for (int i = 0; i < count; i++) {
        const int mode = modes[i];
        const int64_t rank = h->job->rank[mode];
        const gcu_hosvd_unfolding u = unfolding_of(h, mode);
        float *to = nullptr;
        const gnomon_status status = another(h, u.left * rank * u.right, &to);
        if (status != GNOMON_OK) return status;
        const cudaError_t error =
            gcu_hosvd_core_product(h->now, &u, (int)rank, h->problem[mode].vectors, to, e->stream);
        if (h->now == h->x) h->job->passes++;
        replace(h, to);
        h->length[mode] = rank;
        h->other[mode] = h->q[mode];
        h->q[mode] = basis[i].to;
        h->width[mode] = rank;
        GCU_TRY(e->why, error);
    }
    return GNOMON_OK;
}

gnomon_status gcu_hosvd_cut(gcu_hosvd *h, int mode)
{
    if (is_first(h, mode) || !is_small(h, mode)) return cut(h, mode, h->job->rank[mode], nullptr);
    const gnomon_status status = solve(h, &mode, 1);
    return status == GNOMON_OK ? change_all(h, &mode, 1) : status;
}

static bool all_small(const gcu_hosvd *h)
{
    bool small = h->modes <= GCU_SVD_JACOBI_COUNT;
    for (int n = 0; n < h->modes; n++)
        small = small && is_small(h, n);
    return small;
}

gnomon_status gcu_hosvd_cut_all(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    const bool small = all_small(h);
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[small ? i : 0];
        if (!small)
            status = cut(h, mode, h->job->rank[mode], nullptr);
        else if (h->length[mode] > h->job->rank[mode])
            status = solve(h, &mode, 1);
        if (small && status == GNOMON_OK && h->length[mode] > h->job->rank[mode])
            status = change_all(h, &mode, 1);
    }
    return status;
}

/* Rotating one mode leaves the others' Gram matrices alone, so all of them are found first. */
gnomon_status gcu_hosvd_orthogonalise_core(gcu_hosvd *h)
{
    gnomon_status status = GNOMON_OK;
    h->core_squares = all_small(h);
    if (h->core_squares) {
        status = solve(h, h->place, h->modes);
        return status == GNOMON_OK ? change_all(h, h->place, h->modes) : status;
    }
    for (int i = 0; i < h->modes && status == GNOMON_OK; i++) {
        const int mode = h->place[0];
        status = cut(h, mode, h->length[mode], h->job->values[mode]);
    }
    return status;
}

int64_t gcu_hosvd_width_of(const gnomon_hosvd_job *job, int n)
{
    const int64_t over = job->tolerance > 0 ? job->oversample : 0;
    const int64_t most = over < job->size[n] - job->rank[n] ? job->rank[n] + over : job->size[n];
    return job->columns[n] > most ? job->columns[n] : most;
}

int64_t gcu_hosvd_small_most(const gnomon_hosvd_job *job)
{
    int64_t most = 1;
    for (int n = 0; n < job->modes; n++) {
        const bool whole =
            job->tolerance > 0 ? job->size[n] <= GCU_HOSVD_SMALL_MOST : job->rank[n] < job->size[n];
        const int64_t side = job->columns[n] > 0 ? job->columns[n]
                             : whole             ? job->size[n]
                                                 : gcu_hosvd_width_of(job, n);
        most = side > most ? side : most;
    }
    return most;
}
