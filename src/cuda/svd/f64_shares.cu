/* Products in double precision that several GPUs divide. cuBLAS chooses how it sums by a product's
 * shape, so that a part's bits are not those of the whole: a long product is therefore always made
 * of the same few, of its rows, whichever GPU does which.
 *
 * Every other GPU has the matrix in memory that is laid out as the first one's, of which only the
 * rows and columns that it multiplies with are filled: nor do strides and alignment make a
 * difference. */
#include "cuda/svd/shares.h"

enum { SEGMENTS = 8, CUT = 256 /* rows of a segment are a multiple of it */ };

#ifndef GCU_SVD_F64_LEAST
#define GCU_SVD_F64_LEAST 0x1p35 /* multiplications that a product in segments has */
#endif
/* (power + 1) columns below which copying the matrix takes what the products save. */
static const double least_columns = 640;

static int64_t cut(int64_t total, int i)
{
    return i == SEGMENTS ? total : (total * i / SEGMENTS + CUT / 2) / CUT * CUT;
}

/* By the shape alone. */
static int segments_of(int64_t lines, int64_t inner, int64_t columns)
{
    const bool is_long = lines >= SEGMENTS * CUT &&
                         (double)lines * (double)inner * (double)columns >= GCU_SVD_F64_LEAST;
    return is_long ? SEGMENTS : 1;
}

/* Segments of a share, from this one on. */
static int first_segment(const gcu_svd *v, int i)
{
    return SEGMENTS * i / v->shares.count;
}

/* out (a's rows or columns x columns) = op(a) w + beta out. */
static gnomon_status product(gcu_svd *v, bool transposed, const gnomon_matrix *a, const double *w,
                             int64_t columns, double beta, double *out)
{
    const bool across = gcu_svd_is_across(a);
    const int64_t stride = across ? a->col_stride : a->row_stride;
    const int64_t length = across ? a->rows : a->cols, lines = across ? a->cols : a->rows;
    return gcu_gemm64(v->blas, false, across != transposed, columns, transposed ? a->cols : a->rows,
                      transposed ? a->rows : a->cols, 1.0, w, columns,
                      static_cast<const double *>(a->data),
                      lines == 1 && stride < length ? length : stride, beta, out, columns, v->why);
}

/* Segments [first, end) of the product; out: the first one's. */
static gnomon_status run(gcu_svd *v, bool transposed, const gnomon_matrix *a, const double *w,
                         int64_t columns, double beta, int first, int end, double *out)
{
    const int64_t lines = transposed ? a->cols : a->rows, begin = cut(lines, first);
    gnomon_status status = GNOMON_OK;
    for (int i = first; i < end && status == GNOMON_OK; i++) {
        const int64_t from = cut(lines, i), count = cut(lines, i + 1) - from;
        const gnomon_matrix part = transposed ? gcu_part(a, 0, a->rows, from, count)
                                              : gcu_part(a, from, count, 0, a->cols);
        status = product(v, transposed, &part, w, columns, beta, out + (from - begin) * columns);
    }
    return status;
}

/* ---- dividing ---- */

static bool is_worth_it(const gcu_svd *v)
{
    const gnomon_svd_job *job = v->job;
    const int count = job->other_count + 1;
    const bool across = gcu_svd_is_across(&v->a);
    const int64_t pitch = across ? v->a.col_stride : v->a.row_stride;
    return count > 1 && count <= SEGMENTS && job->columns > 0 && !job->options->single_pass &&
           segments_of(v->m, v->n, job->columns) > 1 && segments_of(v->n, v->m, job->columns) > 1 &&
           pitch <= 2 * (across ? v->m : v->n) &&
           (double)(job->options->power + 1) * (double)job->columns >= least_columns &&
           gcu_are_together(v->s, job->others, job->other_count);
}

/* Some lines of the matrix, or some of each line, to where they lie on another GPU. */
static gnomon_status copy(gcu_svd *v, gcu_svd *at, bool lines, int64_t first, int64_t count)
{
    const bool across = gcu_svd_is_across(&v->a);
    const gnomon_matrix from = lines != across ? gcu_part(&v->a, first, count, 0, v->n)
                                               : gcu_part(&v->a, 0, v->m, first, count);
    const gnomon_matrix to = lines != across ? gcu_part(&at->a, first, count, 0, v->n)
                                             : gcu_part(&at->a, 0, v->m, first, count);
    return gcu_upload(at->s, gcu_transfer_of(v->job), &from, GCU_PEER, &to, at->stream, v->why);
}

static gnomon_status fill_one(gcu_svd *v, int i)
{
    gcu_svd_share *h = gcu_svd_share_of(v, i);
    gcu_svd *at = h->at;
    const bool across = gcu_svd_is_across(&v->a);
    const int64_t lines = across ? v->n : v->m, length = across ? v->m : v->n;
    const int64_t pitch = across ? v->a.col_stride : v->a.row_stride;
    const size_t aside = (size_t)(reinterpret_cast<uintptr_t>(v->a.data) % 256);
    const int64_t tall = v->m > v->n ? v->m : v->n;
    const int end = first_segment(v, i + 1);
    void *memory = nullptr;
    /* first, as cuBLAS does not tell of a full GPU in one way */
    gnomon_status status =
        gcu_svd_alloc(at, (size_t)((lines - 1) * pitch + length) * sizeof(double) + aside, &memory);
    if (status == GNOMON_OK) status = gcu_blas_open(at->s, at->stream, &at->blas, v->why);
    if (status != GNOMON_OK) return status;
    const size_t line = (size_t)v->job->columns * sizeof(double);
    GCU_TRY(v->why, gcu_svd_share_room(h, &h->w, &h->w_bytes, (size_t)tall * line));
    GCU_TRY(v->why, gcu_svd_share_room(h, &h->out, &h->out_bytes,
                                       (size_t)(tall / SEGMENTS + CUT) *
                                           (size_t)(end - first_segment(v, i)) * line));
    at->a = v->a;
    at->a.data = static_cast<char *>(memory) + aside;
    for (int side = 0; side < GCU_SVD_SIDES; side++) {
        const int64_t all = side == GCU_SVD_ROWS ? v->m : v->n;
        h->first[side] = cut(all, first_segment(v, i));
        h->count[side] = cut(all, end) - h->first[side];
    }
    GCU_TRY(v->why, cudaStreamWaitEvent(at->stream, v->shares.asked, 0));
    const int way = across ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
    status = copy(v, at, true, h->first[way], h->count[way]);
    return status == GNOMON_OK ? copy(v, at, false, h->first[1 - way], h->count[1 - way]) : status;
}

gnomon_status gcu_svd_f64_share(gcu_svd *v)
{
    if (v->blocks.rows || !is_worth_it(v)) return GNOMON_OK;
    gnomon_status status = gcu_svd_shares_begin(v);
    if (status == GNOMON_OK) status = gcu_svd_shares_aside(v);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaEventRecord(v->shares.asked, v->stream));
    for (int i = 1; i < v->shares.count && status == GNOMON_OK; i++) {
        const gcu_on there(gcu_svd_share_of(v, i)->s);
        status = gcu_name_gpu(v->why, gcu_svd_share_of(v, i)->s, fill_one(v, i));
    }
    return gcu_svd_shares_begun(v, v->bag.count, status);
}

/* ---- products ---- */

/* Another GPU's segments, from the other factor's arrival to their return. */
static gnomon_status run_part(gcu_svd *v, int i, bool transposed, const double *w, int64_t columns,
                              double *out)
{
    gcu_svd_share *h = gcu_svd_share_of(v, i);
    const int side = transposed ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
    const int here = h->s->gpu.device, back = v->s->gpu.device;
    const cudaStream_t stream = h->at->stream;
    const size_t line = (size_t)columns * sizeof(double);
    const size_t factor = (size_t)(transposed ? v->m : v->n) * line;
    const size_t bytes = (size_t)h->count[side] * line;
    const gcu_on there(h->s);
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->w, &h->w_bytes, factor));
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->out, &h->out_bytes, bytes));
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(stream, v->shares.asked, 0));
    GCU_SVD_TRY_ON(v, h, cudaMemcpyPeerAsync(h->w, here, w, back, factor, stream));
    const gnomon_status status =
        run(h->at, transposed, &h->at->a, static_cast<const double *>(h->w), columns, 0.0,
            first_segment(v, i), first_segment(v, i + 1), reinterpret_cast<double *>(h->out));
    if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
    GCU_SVD_TRY_ON(
        v, h,
        cudaMemcpyPeerAsync(out + h->first[side] * columns, back, h->out, here, bytes, stream));
    GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->done, stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_f64_multiply(gcu_svd *v, bool transposed, const gnomon_matrix *a,
                                   const void *factor, int64_t columns, double beta, void *result)
{
    gcu_svd_shares *d = &v->shares;
    const double *w = static_cast<const double *>(factor);
    double *out = static_cast<double *>(result);
    const int64_t lines = transposed ? a->cols : a->rows, inner = transposed ? a->rows : a->cols;
    if (segments_of(lines, inner, columns) == 1)
        return product(v, transposed, a, w, columns, beta, out);
    const bool divided =
        d->count > 0 && beta == 0 && a->data == v->a.data && a->rows == v->m && a->cols == v->n;
    if (!divided) return run(v, transposed, a, w, columns, beta, 0, SEGMENTS, out);
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream));
    gnomon_status status = GNOMON_OK;
    for (int i = 1; i < d->count && status == GNOMON_OK; i++)
        status = run_part(v, i, transposed, w, columns, out);
    if (status == GNOMON_OK)
        status = run(v, transposed, a, w, columns, 0.0, 0, first_segment(v, 1), out);
    if (status != GNOMON_OK) return status;
    for (int i = 1; i < d->count; i++)
        GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, gcu_svd_share_of(v, i)->done, 0));
    return GNOMON_OK;
}
