/* Sparse rows that several GPUs multiply with: each has the lists of some rows, for A w, and of
 * some columns, for A^T w, about as many entries as every other. A line of a product is one GPU's,
 * by its list alone: the bits are those of one GPU, however many there are.
 *
 * The first GPU, to which the arrays come over all links, has made both lists; the others copy what
 * is theirs. Of each product they take the other factor and give back their lines. */
#include "cuda/svd/shares.h"

/* What a part of a product begins to return while the rest is computed has at least so many bytes.
 */
#ifndef GCU_SVD_RETURN_LEAST
#define GCU_SVD_RETURN_LEAST 0x1p24
#endif
enum { RETURNS = 4 };

/* A line of the other factor takes as long over the link as the products of so many entries: so
 * much less others are given, which wait for it. */
static const int64_t line_entries = 8;

static bool is_worth_it(const gcu_svd *v)
{
    const gnomon_svd_job *job = v->job;
    const int count = job->other_count + 1;
    return count > 1 && count <= GCU_SVD_SHARES_MOST && v->m >= count && v->n >= count &&
           gcu_svd_sparse_is_long(v->m + v->n, v->sparse.nonzeros, job->columns) &&
           gcu_are_together(v->s, job->others, job->other_count);
}

static const gcu_svd_lists *whole_of(const gcu_svd *v, int side)
{
    return side == GCU_SVD_ROWS ? &v->sparse.by_row : &v->sparse.by_column;
}

/* Some lines' lists to another GPU, behind 'asked'. */
static gnomon_status copy_lists(gcu_svd *v, gcu_svd_share *h, int side, int64_t entry,
                                int64_t entries)
{
    const gcu_svd_lists *whole = whole_of(v, side);
    gcu_svd_lists *l = &h->lists[side];
    gcu_svd *at = h->at;
    const int64_t first = h->first[side];
    const int here = h->s->gpu.device, back = v->s->gpu.device;
    const size_t size = gcu_svd_size(v);
    l->lines = h->count[side];
    gnomon_status status = gcu_svd_room(at, l->lines + 1, &l->offsets);
    if (status == GNOMON_OK) status = gcu_svd_room(at, entries, &l->other);
    if (status == GNOMON_OK) status = gcu_svd_alloc(at, (size_t)entries * size, &l->value);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaMemcpyPeerAsync(l->offsets, here, whole->offsets + first, back,
                                        (size_t)(l->lines + 1) * sizeof *l->offsets, at->stream));
    if (entries > 0) {
        GCU_TRY(v->why, cudaMemcpyPeerAsync(l->other, here, whole->other + entry, back,
                                            (size_t)entries * sizeof *l->other, at->stream));
        GCU_TRY(v->why,
                cudaMemcpyPeerAsync(l->value, here,
                                    static_cast<const char *>(whole->value) + (size_t)entry * size,
                                    back, (size_t)entries * size, at->stream));
    }
    return gcu_svd_lists_begin_at_zero(at, l, entry);
}

/* The columns' means that another GPU's lines of A^T w are less. */
static gnomon_status copy_mean(gcu_svd *v, gcu_svd_share *h)
{
    const int64_t first = h->first[GCU_SVD_COLUMNS], count = h->count[GCU_SVD_COLUMNS];
    const gnomon_status status = gcu_svd_room(h->at, count, &h->at->mean);
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why,
            cudaMemcpyPeerAsync(h->at->mean, h->s->gpu.device, v->mean + first, v->s->gpu.device,
                                (size_t)count * sizeof *v->mean, h->at->stream));
    return GNOMON_OK;
}

/* Room for the largest product that most factorisations have. */
static gnomon_status reserve(gcu_svd *v, gcu_svd_share *h)
{
    const int64_t tall = v->m > v->n ? v->m : v->n, rows = h->count[GCU_SVD_ROWS];
    const int64_t most = rows > h->count[GCU_SVD_COLUMNS] ? rows : h->count[GCU_SVD_COLUMNS];
    const size_t line = (size_t)v->job->columns * gcu_svd_size(v);
    GCU_TRY(v->why, gcu_svd_share_room(h, &h->w, &h->w_bytes, (size_t)tall * line));
    GCU_TRY(v->why, gcu_svd_share_room(h, &h->out, &h->out_bytes, (size_t)most * line));
    return GNOMON_OK;
}

static gnomon_status fill(gcu_svd *v)
{
    gcu_svd_shares *d = &v->shares;
    int64_t line[GCU_SVD_SIDES][GCU_SVD_SHARES_MOST + 1];
    int64_t entry[GCU_SVD_SIDES][GCU_SVD_SHARES_MOST + 1];
    gnomon_status status = gcu_svd_shares_aside(v);
    for (int side = 0; side < GCU_SVD_SIDES && status == GNOMON_OK; side++) {
        const int64_t others = line_entries * (side == GCU_SVD_ROWS ? v->n : v->m);
        const int64_t most = v->sparse.nonzeros / 2;
        status =
            gcu_svd_lists_cut(v, whole_of(v, side), v->sparse.nonzeros,
                              others < most ? others : most, d->count, line[side], entry[side]);
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream));
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        if (i > 0) GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->at->stream, d->asked, 0));
        for (int side = 0; side < GCU_SVD_SIDES && status == GNOMON_OK; side++) {
            h->first[side] = line[side][i];
            h->count[side] = line[side][i + 1] - line[side][i];
            h->lists[side] = *whole_of(v, side);
            h->lists[side].lines = h->count[side];
            if (i > 0)
                status =
                    copy_lists(v, h, side, entry[side][i], entry[side][i + 1] - entry[side][i]);
        }
        if (i > 0 && v->mean && status == GNOMON_OK) status = copy_mean(v, h);
        if (i > 0 && status == GNOMON_OK) status = reserve(v, h);
        if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
    }
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        for (int side = 0; side < GCU_SVD_SIDES && status == GNOMON_OK; side++)
            status = gcu_svd_lists_find_long(gcu_svd_share_at(v, i), &h->lists[side],
                                             entry[side][i + 1] - entry[side][i]);
        if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
    }
    return GNOMON_OK;
}

gnomon_status gcu_svd_sparse_share(gcu_svd *v)
{
    if (!is_worth_it(v)) return GNOMON_OK;
    const int held = v->bag.count;
    gnomon_status status = gcu_svd_shares_begin(v);
    if (status == GNOMON_OK) status = fill(v);
    return gcu_svd_shares_begun(v, held, status);
}

/* Another GPU's lines: some are returned while the next ones are computed, the long ones, of which
 * any may be among them, first. */
static gnomon_status run_lists(gcu_svd *v, gcu_svd_share *h, int side, gnomon_dtype dtype,
                               int64_t columns, gcu_svd_less less, char *out)
{
    const size_t line = (size_t)columns * gcu_svd_size(v);
    const int here = h->s->gpu.device, back = v->s->gpu.device;
    const int64_t lines = h->count[side];
    const int returns = (double)lines * (double)line >= GCU_SVD_RETURN_LEAST ? RETURNS : 1;
    gcu_svd_lists part = h->lists[side];
    gnomon_status status = GNOMON_OK;
    part.lines = 0;
    if (part.many.lines > 0)
        status = gcu_svd_lists_multiply(h->at, &part, h->w, dtype, columns, less, h->out);
    part.many = gcu_svd_long{};
    for (int i = 0; i < returns && status == GNOMON_OK; i++) {
        const int64_t first = lines * i / returns, count = lines * (i + 1) / returns - first;
        char *const from = reinterpret_cast<char *>(h->out) + (size_t)first * line;
        gcu_svd_less mine = less;
        if (mine.of_line) mine.of_line += first;
        if (count == 0) continue;
        part.lines = count;
        part.offsets = h->lists[side].offsets + first;
        status = gcu_svd_lists_multiply(h->at, &part, h->w, dtype, columns, mine, from);
        if (status != GNOMON_OK) break;
        GCU_TRY(v->why, cudaEventRecord(h->came[side], h->at->stream));
        GCU_TRY(v->why, cudaStreamWaitEvent(h->s->out, h->came[side], 0));
        GCU_TRY(v->why, cudaMemcpyPeerAsync(out + (size_t)(h->first[side] + first) * line, back,
                                            from, here, (size_t)count * line, h->s->out));
    }
    if (status != GNOMON_OK) return status;
    GCU_TRY(v->why, cudaEventRecord(h->done, h->s->out));
    return GNOMON_OK;
}

/* Another GPU's lines, from the other factor's arrival to their return. */
static gnomon_status run_part(gcu_svd *v, gcu_svd_share *h, bool transposed, const void *w,
                              gnomon_dtype dtype, int64_t columns, gcu_svd_less less, void *out)
{
    const int side = transposed ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
    const int here = h->s->gpu.device, back = v->s->gpu.device;
    const cudaStream_t stream = h->at->stream;
    const size_t line = (size_t)columns * gcu_svd_size(v);
    const size_t factor = (size_t)((transposed ? v->m : v->n) * columns) * gnomon_dtype_size(dtype);
    const size_t sums = less.of_column ? (size_t)columns * sizeof(double) : 0;
    const gcu_on there(h->s);
    if (h->count[side] == 0) return GNOMON_OK;
    /* first, as rooms that grow are given back behind it: lines may still be on their way out */
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(stream, v->shares.asked, 0));
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->w, &h->w_bytes, factor));
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->work, &h->work_bytes, sums));
    GCU_SVD_TRY_ON(v, h,
                   gcu_svd_share_room(h, &h->out, &h->out_bytes, (size_t)h->count[side] * line));
    GCU_SVD_TRY_ON(v, h, cudaMemcpyPeerAsync(h->w, here, w, back, factor, stream));
    if (sums) {
        GCU_SVD_TRY_ON(v, h,
                       cudaMemcpyPeerAsync(h->work, here, less.of_column, back, sums, stream));
        less.of_column = static_cast<const double *>(h->work);
        less.of_line = transposed ? h->at->mean : nullptr;
    }
    return gcu_name_gpu(v->why, h->s,
                        run_lists(v, h, side, dtype, columns, less, static_cast<char *>(out)));
}

gnomon_status gcu_svd_sparse_shares_multiply(gcu_svd *v, bool transposed, const void *w,
                                             gnomon_dtype dtype, int64_t columns, gcu_svd_less less,
                                             void *out)
{
    gcu_svd_shares *d = &v->shares;
    const int side = transposed ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream));
    for (int i = 1; i < d->count; i++) {
        const gnomon_status status =
            run_part(v, gcu_svd_share_of(v, i), transposed, w, dtype, columns, less, out);
        if (status != GNOMON_OK) return status;
    }
    const gnomon_status status = gcu_svd_lists_multiply(v, &gcu_svd_share_of(v, 0)->lists[side], w,
                                                        dtype, columns, less, out);
    if (status != GNOMON_OK) return status;
    for (int i = 1; i < d->count; i++)
        if (gcu_svd_share_of(v, i)->count[side] > 0)
            GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, gcu_svd_share_of(v, i)->done, 0));
    return GNOMON_OK;
}
