/* A factorisation by several GPUs. One has the job and does all but the products with the matrix,
 * of which each computes some rows: of A w those of its rows of A, of A^T w those of its columns.
 * No sum is cut, so the bits are those of one GPU; where a part would be computed in another way
 * than the whole, as its lines are aligned otherwise, the product is not divided. The other factor
 * is copied to each GPU and its rows of the product back, which is little beside the matrix.
 *
 * A matrix on the host comes over all links at once, the rows of each GPU over its own, and from
 * there to the first GPU, which has all of it. One that is spread over the GPUs' memories is read
 * where it lies; the columns are copied. All is enqueued by the thread that made the call. */
#include "cuda/svd/shares.h"

#include <stdlib.h>

enum { CUT = 256 }; /* rows of a share are a multiple of it: of what blocks of threads compute */

/* A product that takes a tenth of a millisecond: multiplications and, as if they were, the reading
 * of the matrix. */
static const double least_work = 0x1p33;
static const double reading = 100;
/* Bytes that come over a link between GPUs take as long as so many multiplications of the matrix
 * units. */
static const double link_flops = 1250;
/* A matrix comes in pieces of about so many bytes, each of which goes on while the next arrives. */
static const double piece_bytes = 0x1p26;

/* ---- dividing ---- */

static int64_t cut(int64_t total, int i, int count)
{
    return i == count ? total : (total * i / count + CUT / 2) / CUT * CUT;
}

/* A share's rows or columns of a view of all. */
static gnomon_matrix part(const gnomon_matrix *a, int side, int64_t first, int64_t count)
{
    return side == GCU_SVD_ROWS ? gcu_part(a, first, count, 0, a->cols)
                                : gcu_part(a, 0, a->rows, first, count);
}

/* Whether both ends lie in the memory of the state's GPU itself. */
static bool lies_on(const gcu_state *s, const gnomon_matrix *a)
{
    const char *const data = static_cast<const char *>(a->data);
    const int64_t last = (a->rows - 1) * a->row_stride + (a->cols - 1) * a->col_stride;
    const char *const ends[] = {data, data + last * (int64_t)gnomon_dtype_size(a->dtype)};
    for (const char *end : ends) {
        cudaPointerAttributes at;
        if (cudaPointerGetAttributes(&at, end) != cudaSuccess) {
            cudaGetLastError();
            return false;
        }
        if (at.type != cudaMemoryTypeDevice || at.device != s->gpu.device) return false;
    }
    return true;
}

static double work_of(const gcu_svd *v, int64_t columns)
{
    return (double)v->m * (double)v->n * ((double)columns + reading);
}

static bool is_worth_it(const gcu_svd *v, bool spread)
{
    const gnomon_svd_job *job = v->job;
    const gnomon_matrix *a = job->a;
    const int64_t least = 2 * CUT * (job->other_count + 1);
    if (v->m < least || v->n < least) return false;
    if (spread) return true; /* most of it is far from any GPU */
    if (work_of(v, job->columns) < least_work) return false;
    if (a->memory == GNOMON_HOST) return true; /* its links gain most */
    return (double)(job->options->power + 1) * (double)job->columns >= link_flops;
}

gnomon_status gcu_svd_shares_begin(gcu_svd *v)
{
    gcu_svd_shares *d = &v->shares;
    GCU_TRY(v->why, cudaEventCreateWithFlags(&d->asked, cudaEventDisableTiming));
    d->count = v->job->other_count + 1;
    for (int i = 0; i < d->count; i++) /* what closes them needs all of these */
        gcu_svd_share_of(v, i)->s = i == 0 ? v->s : static_cast<gcu_state *>(v->job->others[i - 1]);
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        for (cudaEvent_t *event : {&h->came[0], &h->came[1], &h->done})
            GCU_SVD_TRY_ON(v, h, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    return GNOMON_OK;
}

gnomon_status gcu_svd_shares_aside(gcu_svd *v)
{
    for (int i = 1; i < v->shares.count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        h->at = static_cast<gcu_svd *>(calloc(1, sizeof *h->at));
        if (!h->at) return gcu_fail(v->why, GNOMON_ERROR_MEMORY, "no memory for a GPU's share");
        h->at->s = h->s;
        h->at->stream = h->s->stream;
        h->at->job = v->job;
        h->at->why = v->why;
        h->at->f64 = v->f64;
        h->at->m = v->m;
        h->at->n = v->n;
    }
    return GNOMON_OK;
}

gnomon_status gcu_svd_shares_open(gcu_svd *v)
{
    gcu_svd_shares *d = &v->shares;
    const gnomon_svd_job *job = v->job;
    const gnomon_matrix *a = job->a;
    const int count = job->other_count + 1;
    if (count < 2 || count > GCU_SVD_SHARES_MOST || v->f64 || job->csr || job->rows)
        return GNOMON_OK;
    if (job->columns == 0 || job->options->single_pass ||
        !gcu_are_together(v->s, job->others, job->other_count))
        return GNOMON_OK;
    gcu_place place;
    const gnomon_status known = gcu_place_of(v->s, a, "a", &place, v->why);
    if (known != GNOMON_OK) return known;
    d->spread = place == GCU_DEVICE && a->dtype == GNOMON_F32 && !lies_on(v->s, a);
    if (!is_worth_it(v, d->spread)) return GNOMON_OK;
    const gnomon_status begun = gcu_svd_shares_begin(v);
    if (begun != GNOMON_OK) return begun;
    for (int i = 0; i < count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        for (int side = 0; side < GCU_SVD_SIDES; side++) {
            const int64_t all = side == GCU_SVD_ROWS ? v->m : v->n;
            h->first[side] = cut(all, i, count);
            h->count[side] = cut(all, i + 1, count) - h->first[side];
        }
    }
    return GNOMON_OK;
}

void gcu_svd_shares_give_up(gcu_svd *v)
{
    gcu_svd_shares *d = &v->shares;
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        cudaStreamSynchronize(h->s->in);
        cudaStreamSynchronize(h->s->out);
        if (h->at) cudaStreamSynchronize(h->at->stream);
        void *const taken[] = {h->held[0], h->held[1], h->w, h->work, h->out};
        for (void *one : taken)
            gcu_free(one, h->s->stream);
        for (cudaEvent_t event : {h->came[0], h->came[1], h->done})
            if (event) cudaEventDestroy(event);
        if (h->at) {
            gcu_svd_free(h->at, 0);
            cudaStreamSynchronize(h->at->stream);
        }
        free(h->at);
        *h = gcu_svd_share{};
    }
    if (d->asked) cudaEventDestroy(d->asked);
    *d = gcu_svd_shares{};
}

gnomon_status gcu_svd_shares_begun(gcu_svd *v, int held, gnomon_status status)
{
    if (status != GNOMON_ERROR_MEMORY) return status;
    gcu_svd_shares_give_up(v);
    gcu_svd_free(v, held);
    if (v->why.size) v->why.text[0] = 0;
    return GNOMON_OK;
}

/* What is on its way has arrived, or left, when memory is given back. */
gnomon_status gcu_svd_shares_close(gcu_svd *v, gnomon_status status)
{
    gcu_svd_shares *d = &v->shares;
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        const cudaStream_t streams[] = {h->s->in, h->s->out, h->s->stream};
        for (cudaStream_t stream : streams) {
            const cudaError_t error = cudaStreamSynchronize(stream);
            if (status == GNOMON_OK)
                status = gcu_status_on(v->why, h->s, error, "parts of products");
        }
    }
    if (d->count) gcu_svd_shares_give_up(v);
    return status;
}

/* ---- the matrix ---- */

/* Room for a side, which lies as A does and whose lines are aligned as A's are. */
static cudaError_t hold(gcu_svd *v, gcu_svd_share *h, int side)
{
    const bool across = gcu_svd_is_across(&v->a);
    const gnomon_matrix of = part(&v->a, side, h->first[side], h->count[side]);
    const int64_t lines = across ? of.cols : of.rows,
                  whole = across ? v->a.col_stride : v->a.row_stride;
    int64_t pitch = across ? of.rows : of.cols;
    while ((pitch % 4 == 0) != (whole % 4 == 0))
        pitch++;
    gnomon_matrix *m = &h->side[side];
    cudaError_t error = cudaSuccess;
    *m = of;
    m->memory = GNOMON_DEVICE_MEMORY;
    m->row_stride = across ? 1 : pitch;
    m->col_stride = across ? pitch : 1;
    if (!h->held[side])
        error =
            gcu_alloc(h->s, &h->held[side], (size_t)(lines * pitch) * sizeof(float), h->s->stream);
    m->data = h->held[side];
    return error;
}

/* The stream waits until memory that was taken in another one of the same GPU is there. */
static cudaError_t follow(cudaStream_t stream, cudaEvent_t event, cudaStream_t before)
{
    const cudaError_t error = cudaEventRecord(event, before);
    return error == cudaSuccess ? cudaStreamWaitEvent(stream, event, 0) : error;
}

/* A's lines are its rows, or columns: what each GPU brings. */
static int lines_of(const gcu_svd *v)
{
    return gcu_svd_is_across(&v->a) ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
}

/* What a GPU's lines, which came, have of another one's other side. */
static gnomon_status cross(gcu_svd *v, const gcu_svd_share *from, gcu_svd_share *h,
                           const gnomon_matrix *lines, int64_t line, int64_t count,
                           cudaEvent_t came)
{
    const int way = lines_of(v), side = 1 - way;
    const gnomon_matrix source = part(lines, side, h->first[side], h->count[side]);
    const gnomon_matrix to = part(&h->side[side], way, from->first[way] + line, count);
    const gcu_on there(h->s);
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->out, came, 0));
    return gcu_name_gpu(
        v->why, h->s,
        gcu_upload(h->s, gcu_transfer_of(v->job), &source, GCU_PEER, &to, h->s->out, v->why));
}

/* Some lines of the host's over the share's own link; and on to the first GPU. */
static gnomon_status bring_piece(gcu_svd *v, gcu_svd_share *h, gcu_place place, int64_t line,
                                 int64_t count)
{
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    const int way = lines_of(v);
    const gnomon_matrix from = part(v->job->a, way, h->first[way] + line, count);
    const gnomon_matrix to = part(&v->a, way, h->first[way] + line, count);
    gnomon_matrix here = to;
    gnomon_status status;
    {
        const gcu_on there(h->s);
        if (h->s != v->s) here = part(&h->side[way], way, line, count);
        status = gcu_upload(h->s, transfer, &from, place, &here, h->s->in, v->why);
        if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
        GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->came[way], h->s->in));
        if (h->s != v->s) {
            GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->out, h->came[way], 0));
            status = gcu_download(h->s, transfer, &here, &to, GCU_PEER, h->s->out, v->why);
            if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
        }
    }
    for (int i = 1; i < v->shares.count; i++) {
        status = cross(v, h, gcu_svd_share_of(v, i), &here, line, count, h->came[way]);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* Memory for what the others bring. */
static gnomon_status ready_to_bring(gcu_svd *v, bool *full)
{
    gcu_svd_shares *d = &v->shares;
    const int way = lines_of(v);
    GCU_SVD_TRY_ON(v, gcu_svd_share_of(v, 0),
                   follow(v->s->in, d->asked, v->stream)); /* A's memory is there */
    for (int i = 1; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        cudaError_t error = hold(v, h, way);
        if (error == cudaSuccess) error = hold(v, h, 1 - way);
        *full = error == cudaErrorMemoryAllocation;
        if (*full) return GNOMON_OK;
        GCU_SVD_TRY_ON(v, h, error);
        GCU_SVD_TRY_ON(v, h, follow(h->s->in, h->done, h->s->stream));
        GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->out, h->done, 0));
        GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->out, d->asked, 0));
        h->there[way] = h->there[1 - way] = true;
    }
    return GNOMON_OK;
}

gnomon_status gcu_svd_shares_bring(gcu_svd *v, gcu_place place, bool *done)
{
    gcu_svd_shares *d = &v->shares;
    const int way = lines_of(v);
    bool full = false;
    *done = false;
    if (!d->count || (place != GCU_PAGEABLE && place != GCU_PINNED)) return GNOMON_OK;
    gnomon_status status = ready_to_bring(v, &full);
    if (full) gcu_svd_shares_give_up(v);
    if (status != GNOMON_OK || full) return status;
    const double line_bytes = 4.0 * (double)(way == GCU_SVD_ROWS ? v->n : v->m);
    const int64_t fit = (int64_t)(piece_bytes / line_bytes), each = fit < 1 ? 1 : fit;
    bool more = true;
    for (int64_t line = 0; more; line += each) {
        more = false;
        for (int i = 0; i < d->count; i++) {
            gcu_svd_share *h = gcu_svd_share_of(v, i);
            const int64_t left = h->count[way] - line;
            if (left <= 0) continue;
            status = bring_piece(v, h, place, line, each < left ? each : left);
            if (status != GNOMON_OK) return status;
            more = true;
        }
    }
    for (int i = 0; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const gcu_on there(h->s);
        GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->came[way], h->s->in));
        GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->done, i == 0 ? h->s->in : h->s->out));
        if (i > 0) GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->came[1 - way], h->s->out));
    }
    for (int i = 0; i < d->count; i++)
        GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, gcu_svd_share_of(v, i)->done, 0));
    *done = true;
    return GNOMON_OK;
}

/* A side as it lies there, or a copy. */
static gnomon_status fill_side(gcu_svd *v, gcu_svd_share *h, int side, bool *full)
{
    const gcu_transfer transfer = gcu_transfer_of(v->job);
    const gnomon_matrix of = part(&v->a, side, h->first[side], h->count[side]);
    const gcu_on there(h->s);
    if (lies_on(h->s, &of)) {
        h->side[side] = of;
        GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->in, v->shares.asked, 0));
        GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->came[side], h->s->in));
        return GNOMON_OK;
    }
    const cudaError_t error = hold(v, h, side);
    *full = error == cudaErrorMemoryAllocation;
    if (*full) return GNOMON_OK;
    GCU_SVD_TRY_ON(v, h, error);
    GCU_SVD_TRY_ON(v, h, follow(h->s->in, h->done, h->s->stream));
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->in, v->shares.asked, 0));
    const int way = lines_of(v);
    /* What each GPU has of the lines comes from there. */
    for (int i = 0; i < v->shares.count; i++) {
        const gcu_svd_share *from = gcu_svd_share_of(v, i);
        const bool near = side != way && from->there[way];
        if (!near && side == way && i > 0) break; /* all of it in one */
        gnomon_matrix source = of, to = h->side[side];
        if (side != way) {
            const gnomon_matrix *lines = near ? &from->side[way] : &v->a;
            if (near) GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(h->s->in, from->came[way], 0));
            source = near ? *lines : part(&v->a, way, from->first[way], from->count[way]);
            source = part(&source, side, h->first[side], h->count[side]);
            to = part(&to, way, from->first[way], from->count[way]);
        }
        const gnomon_status status =
            gcu_upload(h->s, transfer, &source, GCU_PEER, &to, h->s->in, v->why);
        if (status != GNOMON_OK) return gcu_name_gpu(v->why, h->s, status);
    }
    GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->came[side], h->s->in));
    return GNOMON_OK;
}

gnomon_status gcu_svd_shares_fill(gcu_svd *v, bool scaled)
{
    gcu_svd_shares *d = &v->shares;
    if (!d->count) return GNOMON_OK;
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream)); /* A is as it stays */
    for (int step = 0; step < GCU_SVD_SIDES; step++) {
        const int side =
            step == 0 ? lines_of(v) : 1 - lines_of(v); /* what the others copy comes first */
        for (int i = 0; i < d->count; i++) {
            gcu_svd_share *h = gcu_svd_share_of(v, i);
            bool full = false;
            if (scaled) h->there[side] = false;
            if (h->there[side]) continue;
            const gnomon_status status = fill_side(v, h, side, &full);
            if (status != GNOMON_OK) return status;
            if (full) {
                gcu_svd_shares_give_up(v);
                return GNOMON_OK;
            }
            h->there[side] = true;
        }
    }
    return GNOMON_OK;
}

/* ---- products ---- */

static size_t factor_bytes(const gcu_gemm *g)
{
    gcu_gemm_packing packing;
    if (g->b_made) return 0;
    if (!g->b_packed) return (size_t)g->k * (size_t)g->n * gnomon_dtype_size(g->b.dtype);
    return gcu_gemm_packing_of(g, &packing)
               ? (size_t)(packing.chunks * packing.cols) * GCU_GEMM_PACKED_LINE * 2
               : 0;
}

/* A share's rows of the product. */
static gcu_gemm part_of(const gcu_svd_share *h, int side, const gcu_gemm *whole)
{
    gcu_gemm g = *whole;
    g.m = h->count[side];
    g.whole_m = whole->m;
    g.whole_n = whole->n;
    g.a = gcu_svd_operand(&h->side[side], side == GCU_SVD_COLUMNS);
    g.gpu = &h->s->gpu;
    return g;
}

/* Another GPU's part, from the other factor's arrival to its rows' return. */
static gnomon_status run_part(gcu_svd *v, gcu_svd_share *h, int side, const gcu_gemm *whole)
{
    gcu_gemm g = part_of(h, side, whole);
    const cudaStream_t stream = h->s->stream;
    const int here = h->s->gpu.device, back = v->s->gpu.device;
    const size_t factor = factor_bytes(whole), bytes = gcu_gemm_work(&g);
    const size_t out = (size_t)g.m * (size_t)g.n * sizeof *h->out;
    const gcu_on there(h->s);
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->w, &h->w_bytes, factor));
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->work, &h->work_bytes, bytes));
    GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->out, &h->out_bytes, out));
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(stream, v->shares.asked, 0));
    if (factor)
        GCU_SVD_TRY_ON(v, h,
                       cudaMemcpyPeerAsync(h->w, here,
                                           whole->b_packed ? whole->b_packed : whole->b.data, back,
                                           factor, stream));
    GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(stream, h->came[side], 0));
    g.b.data = g.b_made ? nullptr : h->w;
    g.b_packed = g.b_packed ? h->w : nullptr;
    g.c = h->out;
    GCU_SVD_TRY_ON(v, h, gcu_gemm_run(&g, h->work, h->work_bytes, stream));
    GCU_SVD_TRY_ON(
        v, h,
        cudaMemcpyPeerAsync(whole->c + h->first[side] * whole->n, back, h->out, here, out, stream));
    GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->done, stream));
    return GNOMON_OK;
}

gnomon_status gcu_svd_shares_product(gcu_svd *v, bool transposed, const gcu_gemm *g, bool *done)
{
    gcu_svd_shares *d = &v->shares;
    const int side = transposed ? GCU_SVD_COLUMNS : GCU_SVD_ROWS;
    *done = false;
    if (!d->count || !gcu_svd_share_of(v, 0)->there[side] || g->a_squares || g->a_run)
        return GNOMON_OK;
    if (!d->spread && work_of(v, g->n) < least_work) return GNOMON_OK;
    for (int i = 0; i < d->count; i++) {
        const gcu_gemm part = part_of(gcu_svd_share_of(v, i), side, g);
        if (!gcu_gemm_alike(&part, g)) return GNOMON_OK;
    }
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream));
    for (int i = 1; i < d->count; i++) {
        const gnomon_status status = run_part(v, gcu_svd_share_of(v, i), side, g);
        if (status != GNOMON_OK) return status;
    }
    gcu_svd_share *own = gcu_svd_share_of(v, 0);
    gcu_gemm mine = part_of(own, side, g);
    GCU_SVD_TRY_ON(v, own,
                   gcu_svd_share_room(own, &own->work, &own->work_bytes, gcu_gemm_work(&mine)));
    GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, own->came[side], 0));
    GCU_SVD_TRY_ON(v, own, gcu_gemm_run(&mine, own->work, own->work_bytes, v->stream));
    for (int i = 1; i < d->count; i++)
        GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, gcu_svd_share_of(v, i)->done, 0));
    *done = true;
    return GNOMON_OK;
}

/* ---- the scan ---- */

gnomon_status gcu_svd_shares_scan(gcu_svd *v, int64_t lines, int64_t length, int64_t pitch,
                                  void *figures, bool *done)
{
    gcu_svd_shares *d = &v->shares;
    *done = false;
    if (!d->count || !d->spread || gcu_svd_is_across(&v->a)) return GNOMON_OK;
    const int64_t units = gcu_svd_units(lines, length);
    gcu_svd_figures *const total = static_cast<gcu_svd_figures *>(figures), *partial = total + 1;
    const float *const data = static_cast<const float *>(v->a.data);
    int64_t first[GCU_SVD_SHARES_MOST + 1];
    for (int i = 0; i <= d->count; i++) /* units of the rows, or nearly those */
        first[i] = (int64_t)((double)units * (double)cut(v->m, i, d->count) / (double)v->m);
    first[d->count] = units;
    GCU_TRY(v->why, cudaEventRecord(d->asked, v->stream));
    for (int i = 1; i < d->count; i++) {
        gcu_svd_share *h = gcu_svd_share_of(v, i);
        const cudaStream_t stream = h->s->stream;
        const size_t bytes = (size_t)(first[i + 1] - first[i]) * sizeof *partial;
        const gcu_on there(h->s);
        GCU_SVD_TRY_ON(v, h, gcu_svd_share_room(h, &h->out, &h->out_bytes, bytes));
        GCU_SVD_TRY_ON(v, h, cudaStreamWaitEvent(stream, d->asked, 0));
        gcu_svd_figures *const mine = reinterpret_cast<gcu_svd_figures *>(h->out);
        GCU_SVD_TRY_ON(v, h,
                       gcu_svd_scan_units(data, length, pitch, first[i], first[i + 1],
                                          mine - first[i], stream));
        GCU_SVD_TRY_ON(v, h,
                       cudaMemcpyPeerAsync(partial + first[i], v->s->gpu.device, mine,
                                           h->s->gpu.device, bytes, stream));
        GCU_SVD_TRY_ON(v, h, cudaEventRecord(h->done, stream));
    }
    GCU_TRY(v->why, gcu_svd_scan_units(data, length, pitch, 0, first[1], partial, v->stream));
    for (int i = 1; i < d->count; i++)
        GCU_TRY(v->why, cudaStreamWaitEvent(v->stream, gcu_svd_share_of(v, i)->done, 0));
    GCU_TRY(v->why, gcu_svd_scan_total(partial, units, total, v->stream));
    *done = true;
    return GNOMON_OK;
}
