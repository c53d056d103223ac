/* What comes to one GPU over the links of several. */
#include "cuda/runtime/others.h"

#include <stdio.h>

enum { LINKS_MOST = 16, BUFFERS = 2 };

/* Less takes no longer over one link than it takes to begin with several. */
#ifndef GCU_LINKS_LEAST
#define GCU_LINKS_LEAST 0x1p26
#endif
/* Bytes that one link brings at a time. */
#ifndef GCU_LINKS_PIECE
#define GCU_LINKS_PIECE 0x1p25
#endif

gnomon_status gcu_name_gpu(gcu_why why, const gcu_state *s, gnomon_status status)
{
    char said[200];
    if (status != GNOMON_ERROR_DEVICE && status != GNOMON_ERROR_MEMORY) return status;
    snprintf(said, sizeof said, "%s", why.text);
    return gcu_fail(why, status, "GPU %d: %s", s->gpu.device, said);
}

gnomon_status gcu_status_on(gcu_why why, const gcu_state *s, cudaError_t error, const char *what)
{
    return error == cudaSuccess ? GNOMON_OK : gcu_name_gpu(why, s, gcu_status(why, error, what));
}

static gcu_state *state_of(gcu_state *s, void *const *others, int i)
{
    return i == 0 ? s : static_cast<gcu_state *>(others[i - 1]);
}

bool gcu_are_together(const gcu_state *s, void *const *others, int count)
{
    gcu_state *const first = const_cast<gcu_state *>(s);
    for (int i = 0; i <= count; i++)
        for (int o = 0; o <= count; o++)
            if (o != i &&
                !(state_of(first, others, i)->others >> state_of(first, others, o)->gpu.device & 1))
                return false;
    return true;
}

/* ---- pieces ---- */

struct piece {
    int64_t row, rows, col, cols;
};

/* How a view is cut: some whole lines, or a part of one. */
struct pieces {
    bool across; /* lines are columns */
    int64_t lines, length, each_lines, each_length;
};

static pieces pieces_of(const gnomon_matrix *to)
{
    pieces p;
    const int64_t size = (int64_t)gnomon_dtype_size(to->dtype), most = (int64_t)GCU_LINKS_PIECE;
    p.across = to->col_stride != 1 || (to->row_stride == 1 && to->rows > 1 && to->cols > 1);
    p.lines = p.across ? to->cols : to->rows;
    p.length = p.across ? to->rows : to->cols;
    const int64_t fit = most / (p.length * size);
    p.each_lines = fit < 1 ? 1 : fit < p.lines ? fit : p.lines;
    p.each_length = fit < 1 ? most / size : p.length;
    return p;
}

static int64_t ceil_of(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t count_of(const pieces *p)
{
    return ceil_of(p->lines, p->each_lines) * ceil_of(p->length, p->each_length);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static piece piece_at(const pieces *p, int64_t i)
{
    const int64_t along = ceil_of(p->length, p->each_length);
    const int64_t line = i / along * p->each_lines, at = i % along * p->each_length;
    const int64_t lines = least(p->each_lines, p->lines - line);
    const int64_t length = least(p->each_length, p->length - at);
    return p->across ? piece{at, length, line, lines} : piece{line, lines, at, length};
}

static gnomon_matrix part(const gnomon_matrix *m, const piece *p)
{
    return gcu_part(m, p->row, p->rows, p->col, p->cols);
}

/* ---- links ---- */

struct link_of {
    gcu_state *s;
    void *buffer[BUFFERS];
    cudaEvent_t came, idle[BUFFERS], done;
    int next;
};

static cudaError_t open_link(link_of *l, size_t bytes)
{
    const gcu_on there(l->s);
    cudaError_t error = cudaEventCreateWithFlags(&l->came, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventCreateWithFlags(&l->done, cudaEventDisableTiming);
    for (int b = 0; b < BUFFERS && error == cudaSuccess; b++) {
        error = cudaEventCreateWithFlags(&l->idle[b], cudaEventDisableTiming);
        if (error == cudaSuccess) error = gcu_alloc(l->s, &l->buffer[b], bytes, l->s->in);
    }
    return error;
}

/* Memory is given back behind what has still to be done with it. */
static gnomon_status close_link(link_of *l, gcu_why why, gnomon_status status)
{
    const gcu_on there(l->s);
    cudaError_t error = cudaStreamSynchronize(l->s->out);
    for (int b = 0; b < BUFFERS; b++) {
        if (l->buffer[b]) gcu_free(l->buffer[b], l->s->in);
        if (l->idle[b]) cudaEventDestroy(l->idle[b]);
    }
    const cudaError_t brought = cudaStreamSynchronize(l->s->in);
    if (error == cudaSuccess) error = brought;
    if (status == GNOMON_OK)
        status = gcu_status_on(why, l->s, error, "bringing a part over its link");
    for (cudaEvent_t event : {l->came, l->done})
        if (event) cudaEventDestroy(event);
    return status;
}

/* A piece over another GPU's link, and on to where it belongs. */
static gnomon_status pass_on(link_of *l, gcu_transfer t, const gnomon_matrix *from, gcu_place place,
                             const gnomon_matrix *to, bool across, gcu_why why)
{
    const int b = l->next;
    const gcu_on there(l->s);
    gnomon_matrix here = *to;
    here.data = l->buffer[b];
    here.row_stride = across ? 1 : to->cols;
    here.col_stride = across ? to->rows : 1;
    l->next = (b + 1) % BUFFERS;
    GCU_TRY_ON(why, l->s, cudaStreamWaitEvent(l->s->in, l->idle[b], 0));
    gnomon_status status = gcu_upload(l->s, t, from, place, &here, l->s->in, why);
    if (status != GNOMON_OK) return gcu_name_gpu(why, l->s, status);
    GCU_TRY_ON(why, l->s, cudaEventRecord(l->came, l->s->in));
    GCU_TRY_ON(why, l->s, cudaStreamWaitEvent(l->s->out, l->came, 0));
    status = gcu_download(l->s, t, &here, to, GCU_PEER, l->s->out, why);
    if (status != GNOMON_OK) return gcu_name_gpu(why, l->s, status);
    GCU_TRY_ON(why, l->s, cudaEventRecord(l->idle[b], l->s->out));
    return GNOMON_OK;
}

struct upload {
    gcu_transfer t;
    const gnomon_matrix *from, *to;
    gcu_place place;
    cudaStream_t stream;
    link_of link[LINKS_MOST]; /* the first one is the state's own */
    int links;
};

static gnomon_status run(upload *u, const pieces *p, gcu_why why)
{
    cudaEvent_t begun = u->link[0].done;
    GCU_TRY(why, cudaEventRecord(begun, u->stream)); /* the memory is there */
    for (int i = 1; i < u->links; i++) {
        const gcu_on there(u->link[i].s);
        GCU_TRY_ON(why, u->link[i].s, cudaStreamWaitEvent(u->link[i].s->out, begun, 0));
    }
    const int64_t count = count_of(p);
    for (int64_t i = 0; i < count; i++) {
        link_of *l = &u->link[i % u->links];
        const piece at = piece_at(p, i);
        const gnomon_matrix from = part(u->from, &at), to = part(u->to, &at);
        const gnomon_status status =
            i % u->links == 0 ? gcu_upload(l->s, u->t, &from, u->place, &to, u->stream, why)
                              : pass_on(l, u->t, &from, u->place, &to, p->across, why);
        if (status != GNOMON_OK) return status;
    }
    for (int i = 1; i < u->links; i++) {
        link_of *l = &u->link[i];
        {
            const gcu_on there(l->s);
            GCU_TRY_ON(why, l->s, cudaEventRecord(l->done, l->s->out));
        }
        GCU_TRY(why, cudaStreamWaitEvent(u->stream, l->done, 0));
    }
    return GNOMON_OK;
}

gnomon_status gcu_upload_by_all(gcu_state *s, void *const *others, int count, gcu_transfer t,
                                const gnomon_matrix *from, gcu_place place, const gnomon_matrix *to,
                                cudaStream_t stream, gcu_why why)
{
    const double bytes = (double)to->rows * (double)to->cols * (double)gnomon_dtype_size(to->dtype);
    const bool together = count > 0 && count < LINKS_MOST && bytes >= GCU_LINKS_LEAST &&
                          (place == GCU_PAGEABLE || place == GCU_PINNED) &&
                          gcu_are_together(s, others, count);
    if (!together) return gcu_upload(s, t, from, place, to, stream, why);
    const pieces p = pieces_of(to);
    const size_t most = (size_t)(p.each_lines * p.each_length) * gnomon_dtype_size(to->dtype);
    upload u = {t, from, to, place, stream, {}, 0};
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i <= count && status == GNOMON_OK; i++) {
        link_of *l = &u.link[u.links];
        *l = link_of{};
        l->s = state_of(s, others, i);
        const cudaError_t error = i == 0
                                      ? cudaEventCreateWithFlags(&l->done, cudaEventDisableTiming)
                                      : open_link(l, most);
        if (error == cudaErrorMemoryAllocation)
            status = close_link(l, why, GNOMON_OK); /* the others do without it */
        else
            u.links++;
        if (error != cudaErrorMemoryAllocation) status = gcu_status_on(why, l->s, error, "events");
    }
    if (status == GNOMON_OK) status = run(&u, &p, why);
    for (int i = 1; i < u.links; i++)
        status = close_link(&u.link[i], why, status);
    if (u.link[0].done) cudaEventDestroy(u.link[0].done);
    return status;
}
