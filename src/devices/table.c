/* The table of several devices: jobs that are divided by rows, and those that are not. */
#include "devices/devices.h"

#include "dedup/device/job.h"
#include "gemm/job.h"
#include "hosvd/job.h"
#include "join/job.h"
#include "lsh/job.h"
#include "points/view.h"
#include "project/job.h"
#include "search/job.h"
#include "svd/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Working memory of a part, on the host. */
static int64_t share_of(int64_t memory_limit, const gnomon_shares *parts)
{
    return memory_limit / parts->count;
}

/* ---- sketches ---- */

typedef struct sketching {
    gnomon_shares parts;
    const gnomon_sketch_job *job;
    bool adjoint;
} sketching;

/* A part's job; its views stay where they are. */
static gnomon_sketch_job part_of(const sketching *s, const gnomon_share *part, gnomon_matrix *x,
                                 gnomon_matrix *y, gnomon_csr *csr)
{
    gnomon_sketch_job job = *s->job;
    if (job.x != NULL) {
        *x = gnomon_rows(job.x, part->first, part->count);
        job.x = x;
    }
    if (job.y != NULL) {
        *y = gnomon_rows(job.y, part->first, part->count);
        job.y = y;
    }
    if (job.csr != NULL) {
        *csr = gnomon_share_csr(job.csr, part->first, part->count);
        job.csr = csr;
    }
    if (part->device > 0) job.stream = NULL; /* the first device's */
    job.memory_limit = share_of(job.memory_limit, &s->parts);
    job.host = &part->host;
    return job;
}

static gnomon_status sketch_part(gnomon_share *part, void *arg)
{
    const sketching *s = arg;
    const gnomon_device_table *of = part->devices->of;
    gnomon_matrix x, y;
    gnomon_csr csr;
    const gnomon_sketch_job job = part_of(s, part, &x, &y, &csr);
    if (job.csr != NULL) return of->sparse_sketch(part->state, &job, part->why, sizeof part->why);
    return s->adjoint ? of->adjoint(part->state, &job, part->why, sizeof part->why)
                      : of->sketch(part->state, &job, part->why, sizeof part->why);
}

/* Whether other devices gain from points that lie in the first one's memory, where these must cross
 * a link twice: to be checked, and to be projected. Products of Gaussian entries take long. */
static bool is_heavy(const gnomon_sketch_job *job)
{
    const gnomon_simple *a = &job->op->factor[0];
    const double entry = a->kind == GNOMON_GAUSSIAN ? 8 : 1;
    return job->op->levels == 1 && (double)job->rows * a->fill * entry >= 4096;
}

/* Whether each part's rows lie in its own device's memory, or on the host. */
static bool lie_well(const gnomon_shares *parts, const gnomon_matrix *m)
{
    const gnomon_share *last = &parts->part[parts->count - 1];
    if (m == NULL || m->memory == GNOMON_HOST || last->devices->of->holds == NULL) return true;
    const gnomon_matrix rows = gnomon_rows(m, last->first, last->count);
    return last->devices->of->holds(last->state, &rows);
}

static gnomon_status divide_sketch(gnomon_devices *d, const gnomon_sketch_job *job, bool adjoint,
                                   char *why, size_t why_size)
{
    sketching s = {.job = job, .adjoint = adjoint};
    const gnomon_matrix *x = job->x, *y = job->y;
    const int64_t rows = job->csr != NULL ? job->csr->rows : x->rows;
    gnomon_shares_by_rows(&s.parts, d, job->host, rows);
    const bool there = y->memory != GNOMON_HOST || (x != NULL && x->memory != GNOMON_HOST);
    const bool well = lie_well(&s.parts, x) && lie_well(&s.parts, y);
    if (there && s.parts.count > 1 && !well && !is_heavy(job)) gnomon_shares_first(&s.parts, rows);
    if (s.parts.count > 1 && there) {
        const gnomon_status status = gnomon_devices_await(d, job->stream, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    return gnomon_shares_run(&s.parts, sketch_part, &s, why, why_size);
}

static int supports(void *state, const gnomon_sketch_job *job, int adjoint, char *why,
                    size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->supports(d->state[0], job, adjoint, why, why_size);
}

static gnomon_status sketch(void *state, const gnomon_sketch_job *job, char *why, size_t why_size)
{
    return divide_sketch(state, job, false, why, why_size);
}

static gnomon_status adjoint(void *state, const gnomon_sketch_job *job, char *why, size_t why_size)
{
    return divide_sketch(state, job, true, why, why_size);
}

static int sparse_supports(void *state, const gnomon_sketch_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->sparse_supports(d->state[0], job, why, why_size);
}

/* Rows whose offsets lie in a device's memory are not divided. */
static gnomon_status sparse_sketch(void *state, const gnomon_sketch_job *job, char *why,
                                   size_t why_size)
{
    gnomon_devices *d = state;
    if (job->csr_memory != GNOMON_HOST || job->csr->rows == 0)
        return d->of->sparse_sketch(d->state[0], job, why, why_size);
    return divide_sketch(d, job, false, why, why_size);
}

/* ---- streams ---- */

typedef struct stream {
    sketching s;
    gnomon_sketch_job job[GNOMON_DEVICES_MOST];
    gnomon_matrix x[GNOMON_DEVICES_MOST], y[GNOMON_DEVICES_MOST];
    void *part[GNOMON_DEVICES_MOST];
    const gnomon_matrix *m; /* of the call: a piece, or the output */
} stream;

static void stream_close(void *state, void *opened)
{
    gnomon_devices *d = state;
    stream *t = opened;
    for (int i = 0; t != NULL && i < t->s.parts.count; i++)
        if (t->part[i] != NULL) d->of->stream_close(d->state[i], t->part[i]);
    free(t);
}

static gnomon_status open_part(gnomon_share *part, void *arg)
{
    stream *t = arg;
    const int i = part->device;
    gnomon_csr none;
    t->job[i] = part_of(&t->s, part, &t->x[i], &t->y[i], &none);
    return part->devices->of->stream_open(part->state, &t->job[i], &t->part[i], part->why,
                                          sizeof part->why);
}

static gnomon_status stream_open(void *state, const gnomon_sketch_job *job, void **opened,
                                 char *why, size_t why_size)
{
    stream *t = calloc(1, sizeof *t);
    if (t == NULL) {
        snprintf(why, why_size, "no memory for a stream of several devices");
        return GNOMON_ERROR_MEMORY;
    }
    t->s.job = job;
    gnomon_shares_by_rows(&t->s.parts, state, job->host, job->x->rows);
    const gnomon_status status = gnomon_shares_run(&t->s.parts, open_part, t, why, why_size);
    if (status != GNOMON_OK) {
        stream_close(state, t);
        t = NULL;
    }
    *opened = t;
    return status;
}

static gnomon_status push_part(gnomon_share *part, void *arg)
{
    const stream *t = arg;
    const gnomon_matrix rows = gnomon_rows(t->m, part->first, part->count);
    return part->devices->of->stream_push(part->state, t->part[part->device], &rows, part->why,
                                          sizeof part->why);
}

static gnomon_status stream_push(void *state, void *opened, const gnomon_matrix *piece, char *why,
                                 size_t why_size)
{
    (void)state;
    stream *t = opened;
    t->m = piece;
    return gnomon_shares_run(&t->s.parts, push_part, t, why, why_size);
}

static gnomon_status finish_part(gnomon_share *part, void *arg)
{
    const stream *t = arg;
    const gnomon_matrix rows = gnomon_rows(t->m, part->first, part->count);
    return part->devices->of->stream_finish(part->state, t->part[part->device], &rows, part->why,
                                            sizeof part->why);
}

static gnomon_status stream_finish(void *state, void *opened, const gnomon_matrix *y, char *why,
                                   size_t why_size)
{
    stream *t = opened;
    t->m = y;
    if (y->memory != GNOMON_HOST) {
        const gnomon_status status = gnomon_devices_await(state, t->s.job->stream, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    return gnomon_shares_run(&t->s.parts, finish_part, t, why, why_size);
}

/* ---- products ---- */

typedef struct multiplying {
    gnomon_shares parts;
    const gnomon_gemm_job *job;
    bool by_columns; /* of the product, where it has more of them than rows */
} multiplying;

/* A part of a matrix whose rows, or columns, are divided. */
static gnomon_matrix lines_of(const gnomon_matrix *m, bool columns, const gnomon_share *part)
{
    const gnomon_matrix turned = columns ? gnomon_matrix_transposed(m) : *m;
    const gnomon_matrix rows = gnomon_rows(&turned, part->first, part->count);
    return columns ? gnomon_matrix_transposed(&rows) : rows;
}

static gnomon_status multiply_part(gnomon_share *part, void *arg)
{
    const multiplying *m = arg;
    gnomon_gemm_job job = *m->job;
    const gnomon_matrix of = lines_of(m->by_columns ? job.b : job.a, m->by_columns, part);
    const gnomon_matrix c = lines_of(job.c, m->by_columns, part);
    if (m->by_columns)
        job.b = &of;
    else
        job.a = &of;
    job.whole_rows = job.c->rows;
    job.whole_cols = job.c->cols;
    job.c = &c;
    if (part->device > 0) job.stream = NULL; /* the first device's */
    job.memory_limit = share_of(job.memory_limit, &m->parts);
    job.host = &part->host;
    return part->devices->of->gemm(part->state, &job, part->why, sizeof part->why);
}

/* Whether each device has its part of a matrix where it can use it as it lies: a copy is aligned
 * otherwise, perhaps, and multiplied in another way. */
static bool each_has_its_part(const multiplying *m, const gnomon_matrix *x, bool whole)
{
    for (int i = 0; i < m->parts.count && x->memory != GNOMON_HOST; i++) {
        const gnomon_share *part = &m->parts.part[i];
        const gnomon_matrix own = whole ? *x : lines_of(x, m->by_columns, part);
        if (part->devices->of->holds != NULL && !part->devices->of->holds(part->state, &own))
            return false;
    }
    return true;
}

/* Whether a copy without gaps is aligned as it is. */
static bool is_tight(const gnomon_matrix *m)
{
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const bool by_rows = m->col_stride == 1;
    const int64_t length = by_rows ? m->cols : m->rows;
    return (by_rows ? m->row_stride : m->col_stride) == length && (by_rows || m->row_stride == 1) &&
           length * size % 16 == 0 && (uintptr_t)m->data % 256 == 0;
}

/* Multiplications and additions below which others are no gain, of views in a device's memory and
 * of those on the host. */
static const double worth_there = 4e10, worth_here = 2e9;

static bool is_divided(const multiplying *m)
{
    const gnomon_gemm_job *job = m->job;
    const gnomon_matrix *lines = m->by_columns ? job->b : job->a;
    const gnomon_matrix *other = m->by_columns ? job->a : job->b;
    const bool there = lines->memory != GNOMON_HOST || job->c->memory != GNOMON_HOST;
    const double flops = 2.0 * (double)job->c->rows * (double)job->c->cols * (double)job->a->cols;
    return flops >= (there ? worth_there : worth_here) && each_has_its_part(m, lines, false) &&
           each_has_its_part(m, job->c, false) &&
           (is_tight(other) || each_has_its_part(m, other, true));
}

static int gemm_supports(void *state, const gnomon_gemm_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->gemm_supports(d->state[0], job, why, why_size);
}

/* Divided by the product's rows, or columns: no sum is cut. */
static gnomon_status gemm(void *state, const gnomon_gemm_job *job, char *why, size_t why_size)
{
    gnomon_devices *d = state;
    multiplying m = {.job = job, .by_columns = job->c->cols > job->c->rows};
    const int64_t lines = m.by_columns ? job->c->cols : job->c->rows;
    gnomon_shares_by_rows(&m.parts, d, job->host, lines);
    if (m.parts.count > 1 && !is_divided(&m)) gnomon_shares_first(&m.parts, lines);
    const bool there = job->a->memory != GNOMON_HOST || job->b->memory != GNOMON_HOST ||
                       job->c->memory != GNOMON_HOST;
    if (m.parts.count > 1 && there) {
        const gnomon_status status = gnomon_devices_await(d, job->stream, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    return gnomon_shares_run(&m.parts, multiply_part, &m, why, why_size);
}

/* ---- factorisations ---- */

static int svd_supports(void *state, const gnomon_svd_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->svd_supports(d->state[0], job, why, why_size);
}

/* The first device does it, and gives the others what it divides: products alone, between which
 * all of them meet. */
static gnomon_status svd(void *state, gnomon_svd_job *job, char *why, size_t why_size)
{
    gnomon_devices *d = state;
    const gnomon_matrix *a = job->a;
    if (a->memory != GNOMON_HOST && d->count > 1) {
        const gnomon_status status =
            gnomon_devices_await(d, job->options->device_stream, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    job->others = d->state + 1;
    job->other_count = d->count - 1;
    job->memory_limit /= d->count; /* each brings something through memory of its own */
    return d->of->svd(d->state[0], job, why, why_size);
}

static int hosvd_supports(void *state, const gnomon_hosvd_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->hosvd_supports(d->state[0], job, why, why_size);
}

static gnomon_status hosvd(void *state, gnomon_hosvd_job *job, char *why, size_t why_size)
{
    gnomon_devices *d = state;
    if (job->x.memory != GNOMON_HOST && d->count > 1) {
        const gnomon_status status = gnomon_devices_await(d, NULL, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    job->others = d->state + 1;
    job->other_count = d->count - 1;
    job->memory_limit /= d->count; /* each brings something through memory of its own */
    return d->of->hosvd(d->state[0], job, why, why_size);
}

/* ---- hashing ---- */

static int lsh_supports(void *state, const gnomon_lsh_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->lsh_supports(d->state[0], job, why, why_size);
}

typedef struct hashing {
    gnomon_shares parts;
    const gnomon_lsh_job *job;
} hashing;

static gnomon_status hash_part(gnomon_share *part, void *arg)
{
    const hashing *h = arg;
    gnomon_lsh_job job = *h->job;
    gnomon_matrix points, values;
    gnomon_csr sets;
    if (job.points != NULL) {
        points = gnomon_rows(job.points, part->first, part->count);
        job.points = &points;
    }
    if (job.sets != NULL) {
        sets = gnomon_share_csr(job.sets, part->first, part->count);
        if (part->first > 0)
            job.first_entry += job.sets->offsets[part->first] - job.sets->offsets[0];
        job.sets = &sets;
    }
    if (job.values != NULL) {
        values = gnomon_rows(job.values, part->first, part->count);
        job.values = &values;
    }
    if (job.keys != NULL) job.keys += part->first;
    job.memory_limit = share_of(job.memory_limit, &h->parts);
    job.host = &part->host;
    return part->devices->of->lsh(part->state, &job, part->why, sizeof part->why);
}

/* Values and keys are divided by points; tables, each of all points, are made by the first. */
static gnomon_status lsh(void *state, const gnomon_lsh_job *job, char *why, size_t why_size)
{
    gnomon_devices *d = state;
    hashing h = {.job = job};
    if (job->rooms != NULL) return d->of->lsh(d->state[0], job, why, why_size);
    gnomon_shares_by_rows(&h.parts, d, job->host,
                          job->points ? job->points->rows : job->sets->rows);
    const bool there = (job->points != NULL && job->points->memory != GNOMON_HOST) ||
                       (job->values != NULL && job->values->memory != GNOMON_HOST);
    if (h.parts.count > 1 && there) {
        const gnomon_status status = gnomon_devices_await(d, NULL, why, why_size);
        if (status != GNOMON_OK) return status;
    }
    return gnomon_shares_run(&h.parts, hash_part, &h, why, why_size);
}

/* ---- texts ---- */

/* One after the other goes to the next device, which returns while it is at work. */
typedef struct texts {
    gnomon_dedup_job job;
    void *of[GNOMON_DEVICES_MOST];
    int64_t pushed, taken;
} texts;

static int dedup_supports(void *state, const gnomon_dedup_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    return d->of->dedup_supports(d->state[0], job, why, why_size);
}

static void dedup_close(void *state, void *opened)
{
    const gnomon_devices *d = state;
    texts *t = opened;
    for (int i = 0; t != NULL && i < d->count; i++)
        if (t->of[i] != NULL) d->of->dedup_close(d->state[i], t->of[i]);
    free(t);
}

/* Names the device whose failure it is. */
static gnomon_status name(const gnomon_devices *d, int which, gnomon_status status, char *why,
                          size_t why_size)
{
    char said[256];
    if (status != GNOMON_ERROR_DEVICE && status != GNOMON_ERROR_MEMORY) return status;
    snprintf(said, sizeof said, "%s", why);
    snprintf(why, why_size, "device %d: %.230s", d->index[which], said);
    return status;
}

static gnomon_status dedup_open(void *state, const gnomon_dedup_job *job, void **opened, char *why,
                                size_t why_size)
{
    const gnomon_devices *d = state;
    texts *t = calloc(1, sizeof *t);
    *opened = NULL;
    if (t == NULL) {
        snprintf(why, why_size, "no memory for the texts of several devices");
        return GNOMON_ERROR_MEMORY;
    }
    t->job = *job;
    t->job.memory_limit /= d->count;
    for (int i = 0; i < d->count; i++) {
        const gnomon_status status =
            d->of->dedup_open(d->state[i], &t->job, &t->of[i], why, why_size);
        if (status == GNOMON_OK) continue;
        t->of[i] = NULL;
        dedup_close(state, t);
        return name(d, i, status, why, why_size);
    }
    *opened = t;
    return GNOMON_OK;
}

static void dedup_slot(void *state, void *opened, gnomon_dedup_slot *slot)
{
    const gnomon_devices *d = state;
    const texts *t = opened;
    const int which = (int)(t->pushed % d->count);
    d->of->dedup_slot(d->state[which], t->of[which], slot);
}

static gnomon_status dedup_push(void *state, void *opened, int64_t count, int64_t bytes, char *why,
                                size_t why_size)
{
    const gnomon_devices *d = state;
    texts *t = opened;
    const int which = (int)(t->pushed++ % d->count);
    return name(d, which,
                d->of->dedup_push(d->state[which], t->of[which], count, bytes, why, why_size), why,
                why_size);
}

static gnomon_status dedup_take(void *state, void *opened, gnomon_dedup_sets *sets, char *why,
                                size_t why_size)
{
    const gnomon_devices *d = state;
    texts *t = opened;
    const int which = (int)(t->taken++ % d->count);
    return name(d, which, d->of->dedup_take(d->state[which], t->of[which], sets, why, why_size),
                why, why_size);
}

typedef struct keying {
    gnomon_shares parts;
    const gnomon_keys_job *job;
} keying;

static gnomon_status keys_part(gnomon_share *part, void *arg)
{
    const keying *k = arg;
    gnomon_keys_job job = *k->job;
    job.count = part->count;
    job.begins += part->first;
    job.ends += part->first;
    job.documents += part->first;
    job.keys += part->first;
    job.memory_limit = share_of(job.memory_limit, &k->parts);
    job.host = &part->host;
    return part->devices->of->dedup_keys(part->state, &job, part->why, sizeof part->why);
}

static gnomon_status dedup_keys(void *state, const gnomon_keys_job *job, char *why, size_t why_size)
{
    keying k = {.job = job};
    gnomon_shares_by_rows(&k.parts, state, job->host, job->count);
    return gnomon_shares_run(&k.parts, keys_part, &k, why, why_size);
}

/* ---- searches and joins ---- */

static int search_supports(void *state, const gnomon_search_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    for (int i = 0; i < d->count; i++)
        if (!d->of->search_supports(d->state[i], job, why, why_size)) return 0;
    return 1;
}

static int join_supports(void *state, const gnomon_join_job *job, char *why, size_t why_size)
{
    const gnomon_devices *d = state;
    for (int i = 0; i < d->count; i++)
        if (!d->of->join_supports(d->state[i], job, why, why_size)) return 0;
    return 1;
}

/* ---- the table ---- */

static void close_devices(void *state)
{
    gnomon_devices *d = state;
    for (int i = d->count - 1; i >= 0; i--)
        d->of->close(d->state[i]);
    free(d);
}

/* Entries of what the plugin's table has. */
static gnomon_device_table table_of(const gnomon_device_table *of)
{
    gnomon_device_table t = {.interface_version = GNOMON_DEVICE_INTERFACE,
                             .name = of->name,
                             .close = close_devices,
                             .supports = supports,
                             .sketch = sketch,
                             .adjoint = adjoint,
                             .stream_open = stream_open,
                             .stream_push = stream_push,
                             .stream_finish = stream_finish,
                             .stream_close = stream_close};
    if (of->gemm != NULL) {
        t.gemm_supports = gemm_supports;
        t.gemm = gemm;
    }
    if (of->svd != NULL) {
        t.svd_supports = svd_supports;
        t.svd = svd;
    }
    if (of->hosvd != NULL) {
        t.hosvd_supports = hosvd_supports;
        t.hosvd = hosvd;
    }
    if (of->search_open != NULL) {
        t.search_supports = search_supports;
        t.search_open = gnomon_devices_search_open;
        t.search_add = gnomon_devices_search_add;
        t.search_finish = gnomon_devices_search_finish;
        t.search_close = gnomon_devices_search_close;
    }
    if (of->join != NULL) {
        t.join_supports = join_supports;
        t.join = gnomon_devices_join;
    }
    if (of->lsh != NULL) {
        t.lsh_supports = lsh_supports;
        t.lsh = lsh;
    }
    if (of->sparse_sketch != NULL) {
        t.sparse_supports = sparse_supports;
        t.sparse_sketch = sparse_sketch;
    }
    if (of->dedup_open != NULL) {
        t.dedup_supports = dedup_supports;
        t.dedup_open = dedup_open;
        t.dedup_slot = dedup_slot;
        t.dedup_push = dedup_push;
        t.dedup_take = dedup_take;
        t.dedup_close = dedup_close;
    }
    if (of->dedup_keys != NULL) t.dedup_keys = dedup_keys;
    return t;
}

static bool make(const gnomon_device_table *of, const int *index, void **states, int count,
                 const gnomon_device_table **table, void **state, char *why, size_t why_size)
{
    if (of->together != NULL && of->together(states, count, why, why_size) != GNOMON_OK)
        return false;
    gnomon_devices *d = calloc(1, sizeof *d);
    if (d == NULL) {
        snprintf(why, why_size, "no memory for several devices");
        return false;
    }
    d->of = of;
    d->table = table_of(of);
    d->count = count;
    memcpy(d->index, index, (size_t)count * sizeof *index);
    memcpy(d->state, states, (size_t)count * sizeof *states);
    *table = &d->table;
    *state = d;
    return true;
}

const gnomon_devices_maker gnomon_devices_make = make;
