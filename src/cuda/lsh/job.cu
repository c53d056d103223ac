/* A hashing job, wherever points and values lie: batches of points are brought to the GPU, looked
 * at and hashed there, while the next ones come; then tables are made of their keys, one after the
 * other, each handed over while the next one is sorted. Where keys of all tables are too many, they
 * come in groups of tables, the points once for each. */
#include "base/arithmetic.h"
#include "cuda/lsh/lsh.h"
#include "cuda/project/job.h"
#include "cuda/project/pieces.h"
#include "cuda/runtime/alloc.h"
#include "cuda/runtime/transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 2 };

/* How products come about. */
enum route { FUSED, CHAIN, SKETCH, BITS, SETS };

static const int64_t batch_bytes = 256 << 20;      /* of points on the host */
static const int64_t products_bytes = 1 << 30;     /* of a batch */
static const int64_t directions_bytes = 256 << 20; /* of a panel of columns */

struct plan {
    int64_t batch, tables; /* at a time */
    int64_t panel;         /* columns of directions */
    int slots, outputs, sorters;
    size_t slot_bytes, copy_bytes, direction_bytes, fused_bytes, product_bytes, f64_bytes,
        output_bytes, key_bytes, sorter_bytes;
    size_t needed;
};

struct run {
    gcu_state *s;
    const gnomon_lsh_job *job;
    int64_t function; /* of the hasher's, that tables begin with */
    const gcu_lsh_key_sink *sink;
    const gnomon_hasher *h;
    gcu_why why;
    cudaStream_t stream;
    route way;
    int64_t n;
    gcu_place x_place, v_place;
    bool x_host, v_host, f64, copies;
    int64_t pitch; /* of rows that tensor copies take */
    gcu_lsh_functions f;
    plan plan;
    char *slot[SLOTS], *output[SLOTS], *sorter[SLOTS];
    char *copy, *directions, *fused, *products, *sums, *keys;
    char *small; /* what is made once: */
    unsigned long long *first_bad;
    double *longest;
    uint64_t *multipliers;
    cudaEvent_t full[SLOTS], empty[SLOTS], done[SLOTS], gone[SLOTS], ready;
};

static gnomon_matrix rows_of(const gnomon_matrix *m, int64_t row, int64_t rows)
{
    gnomon_matrix part = *m;
    part.rows = rows;
    if (m->data)
        part.data = static_cast<char *>(m->data) +
                    row * m->row_stride * (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

/* ---- what can be done ---- */

static bool is_gaussian(const gnomon_operator *op)
{
    return op && op->levels == 1 && op->blocks == 1 && op->factor[0].kind == GNOMON_GAUSSIAN;
}

static gnomon_sketch_job sketch_job(const gnomon_hasher *h, const gnomon_matrix *x,
                                    const gnomon_matrix *y)
{
    gnomon_sketch_job job = {};
    job.op = h->op;
    job.x = x;
    job.y = y;
    job.alpha = h->factor;
    job.rows = h->products;
    job.f64 = gnomon_dtype_needs_f64(x->dtype);
    return job;
}

bool gcu_lsh_supported(const gcu_state *s, const gnomon_lsh_job *job, gcu_why why)
{
    const gnomon_hasher *h = job->hasher;
    const char *reason = nullptr;
    if (h->f.family == GNOMON_LSH_MINHASH || h->f.family == GNOMON_LSH_BIT_SAMPLING) return true;
    if (!job->points)
        reason = "of sparse points it hashes sets, by minhash";
    else if (h->f.family == GNOMON_LSH_PSTABLE_L1)
        reason = "it has no Cauchy directions, those of p-stable-l1";
    else if (job->same && !is_gaussian(h->op))
        reason = "with directions of another kind than gaussian values may differ from the CPU's";
    if (reason) {
        snprintf(why.text, why.size, "%s", reason);
        return false;
    }
    if (is_gaussian(h->op)) return true;
    const gnomon_matrix x = gcu_packed(job->points, job->points->rows, job->points->cols);
    const gnomon_matrix y =
        gnomon_matrix_rowmajor(nullptr, GNOMON_F32, job->points->rows, h->products);
    const gnomon_sketch_job sketch = sketch_job(h, &x, &y);
    gcu_pieces pieces;
    return gcu_pieces_open(&pieces, s, &sketch, &x, &y, why);
}

static route route_of(const run *r)
{
    const gnomon_lsh_job *job = r->job;
    if (r->h->f.family == GNOMON_LSH_MINHASH) return SETS;
    if (r->h->f.family == GNOMON_LSH_BIT_SAMPLING) return BITS;
    if (!is_gaussian(r->h->op)) return SKETCH;
    const bool fused = !r->f64 && gcu_lsh_fused_supports(&r->s->gpu, r->h, job->depth, job->coarse);
    return fused ? FUSED : CHAIN;
}

/* Whether tensor copies take the points as they lie on the GPU. */
static bool lies_well(const run *r)
{
    const gnomon_matrix *x = r->job->points;
    if (r->x_host) return false;
    return x->dtype == GNOMON_F32 && x->col_stride == 1 && x->row_stride >= x->cols &&
           x->row_stride % 4 == 0 && (uintptr_t)x->data % 16 == 0;
}

/* ---- memory ---- */

static gnomon_matrix packed_points(const run *r, int64_t rows)
{
    gnomon_matrix x = gcu_packed(r->job->points, rows, r->job->points->cols);
    /* as the copy would have them, when nothing else keeps them from it */
    if (x.col_stride == 1 && !r->copies && r->way == FUSED) x.row_stride = r->pitch;
    return x;
}

static gcu_lsh_fused fused_of(const run *r, int64_t table, int64_t tables)
{
    gcu_lsh_fused c = {};
    c.gpu = &r->s->gpu;
    c.f = r->f;
    c.dim = r->h->f.dim;
    c.directions = reinterpret_cast<const float *>(r->directions) + r->function * c.dim;
    if (r->sink) c.f.count = r->job->tables * r->job->depth;
    if (c.f.offset) c.f.offset += r->function;
    c.most = r->plan.batch;
    c.work = r->fused;
    if (!r->job->values) {
        c.keys.keys = reinterpret_cast<uint64_t *>(r->keys);
        c.keys.stride = r->n;
        c.keys.table = table;
        c.keys.tables = tables;
        c.keys.depth = r->job->depth;
        c.keys.coarse = r->job->coarse;
        c.keys.multipliers = r->multipliers;
    }
    return c;
}

static void size_up(run *r, plan *p)
{
    const gnomon_lsh_job *job = r->job;
    const int64_t products = r->h->products, dim = r->h->f.dim;
    const int64_t batches = (r->n + p->batch - 1) / p->batch;
    plan fresh = {};
    fresh.batch = p->batch;
    fresh.tables = p->tables;
    *p = fresh;
    if (r->x_host && job->points) {
        const gnomon_matrix x = packed_points(r, p->batch);
        p->slots = batches > 1 ? SLOTS : 1;
        p->slot_bytes = gcu_packed_bytes(&x);
    }
    if (r->way == FUSED) {
        p->copy_bytes = (size_t)((p->batch + 3) / 4 * 16);
        if (r->copies) p->copy_bytes += (size_t)(p->batch * r->pitch) * 4;
        p->panel = dim;
        const gcu_lsh_fused c = fused_of(r, 0, p->tables);
        p->fused_bytes = gcu_lsh_fused_work(&c);
    }
    if (r->way == CHAIN) {
        const int64_t panel = directions_bytes / 4 / products / 256 * 256;
        p->panel = gnomon_min(dim, panel > 0 ? panel : 256);
        if (r->f64) p->f64_bytes = (size_t)(p->batch * products) * 8;
    }
    p->direction_bytes = (size_t)(p->panel * products) * 4;
    if (r->way == CHAIN || r->way == SKETCH) p->product_bytes = (size_t)(p->batch * products) * 4;
    if (r->way == SETS) p->product_bytes = (size_t)(p->batch * r->f.count) * 4;
    if (job->values && r->v_host) {
        const gnomon_matrix v = gcu_packed(job->values, p->batch, job->values->cols);
        p->outputs = batches > 1 ? SLOTS : 1;
        p->output_bytes = gcu_packed_bytes(&v);
    }
    if (!job->values) p->key_bytes = (size_t)p->tables * (size_t)r->n * 8;
    if (job->rooms) {
        p->sorters = job->tables > 1 ? SLOTS : 1;
        p->sorter_bytes = gcu_lsh_sorter_bytes(r->n);
    }
    p->needed = p->slots * p->slot_bytes + p->copy_bytes + p->direction_bytes + p->fused_bytes +
                p->product_bytes + p->f64_bytes + p->outputs * p->output_bytes + p->key_bytes +
                p->sorters * p->sorter_bytes;
}

static bool make_plan(run *r, size_t bytes)
{
    plan *p = &r->plan;
    *p = plan{};
    p->batch = r->n;
    p->tables = r->job->values ? 0 : r->job->tables;
    if (r->x_host && r->job->points) {
        const int64_t size = (int64_t)gnomon_dtype_size(r->job->points->dtype);
        const int64_t points = batch_bytes / size / r->job->points->cols;
        p->batch = gnomon_min(p->batch, points > 1024 ? points : 1024);
    }
    if (r->way == FUSED) {
        p->batch = gnomon_min(p->batch, (int64_t)1 << 24);
    } else {
        /* bits and sets have values without products */
        const int64_t points = products_bytes / 4 / gnomon_max(r->h->products, r->f.count);
        p->batch = gnomon_min(p->batch, points > 1024 ? points : 1024);
    }
    if (r->v_host && r->job->values) {
        const int64_t points = batch_bytes / 4 / r->f.count;
        p->batch = gnomon_min(p->batch, points > 1024 ? points : 1024);
    }
    if (r->way == SETS) p->batch = gnomon_min(p->batch, 1 << 16);
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        if (p->batch > 4096)
            p->batch = (p->batch + 1) / 2;
        else if (p->tables > 1)
            p->tables = (p->tables + 1) / 2;
        else if (p->batch > 1)
            p->batch = (p->batch + 1) / 2;
        else
            return false;
    }
    return true;
}

static void free_all(run *r)
{
    char **const all[] = {&r->copy, &r->directions, &r->fused, &r->products, &r->sums, &r->keys};
    for (char **one : all) {
        gcu_free(*one, r->stream);
        *one = nullptr;
    }
    for (int i = 0; i < SLOTS; i++) {
        char **const each[] = {&r->slot[i], &r->output[i], &r->sorter[i]};
        for (char **one : each) {
            gcu_free(*one, r->stream);
            *one = nullptr;
        }
    }
}

static cudaError_t put(run *r, char **to, size_t bytes)
{
    void *data = nullptr;
    const cudaError_t error = gcu_alloc(r->s, &data, bytes, r->stream);
    *to = static_cast<char *>(data);
    return error;
}

static cudaError_t alloc_all(run *r)
{
    const plan *p = &r->plan;
    struct {
        char **to;
        size_t bytes;
    } const wanted[] = {{&r->copy, p->copy_bytes},
                        {&r->directions, p->direction_bytes},
                        {&r->fused, p->fused_bytes},
                        {&r->products, p->product_bytes},
                        {&r->sums, p->f64_bytes},
                        {&r->keys, p->key_bytes},
                        {&r->slot[0], p->slots > 0 ? p->slot_bytes : 0},
                        {&r->slot[1], p->slots > 1 ? p->slot_bytes : 0},
                        {&r->output[0], p->outputs > 0 ? p->output_bytes : 0},
                        {&r->output[1], p->outputs > 1 ? p->output_bytes : 0},
                        {&r->sorter[0], p->sorters > 0 ? p->sorter_bytes : 0},
                        {&r->sorter[1], p->sorters > 1 ? p->sorter_bytes : 0}};
    for (const auto &w : wanted) {
        const cudaError_t error = put(r, w.to, w.bytes);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

/* Offsets, bits and multipliers on the GPU, and room for two numbers. */
static gnomon_status make_small(run *r)
{
    const gnomon_hasher *h = r->h;
    const size_t offset = h->offset ? (size_t)h->f.count * 4 : 0;
    const size_t bit = h->bit ? (size_t)h->f.count * 8 : 0;
    const size_t factors = (size_t)r->job->depth * 8;
    GCU_TRY(r->why, put(r, &r->small, 16 + bit + factors + offset));
    r->first_bad = reinterpret_cast<unsigned long long *>(r->small);
    r->longest = reinterpret_cast<double *>(r->small + 8);
    r->multipliers = reinterpret_cast<uint64_t *>(r->small + 16);
    int64_t *bits = reinterpret_cast<int64_t *>(r->small + 16 + factors);
    float *offsets = reinterpret_cast<float *>(r->small + 16 + factors + bit);
    GCU_TRY(r->why, cudaMemsetAsync(r->first_bad, 0xff, 8, r->stream));
    const cudaMemcpyKind up = cudaMemcpyHostToDevice;
    if (factors)
        GCU_TRY(r->why,
                cudaMemcpyAsync(r->multipliers, r->job->multipliers, factors, up, r->stream));
    if (bit) GCU_TRY(r->why, cudaMemcpyAsync(bits, h->bit, bit, up, r->stream));
    if (offset) GCU_TRY(r->why, cudaMemcpyAsync(offsets, h->offset, offset, up, r->stream));
    r->f = {h->f.family,         h->f.count, h->f.sides,
            h->products,         h->f.width, offset ? offsets : nullptr,
            bit ? bits : nullptr};
    return GNOMON_OK;
}

/* ---- batches ---- */

static gnomon_status tell(run *r, int64_t done)
{
    const gnomon_device_host *host = r->job->host;
    if (done >= r->n) return GNOMON_OK;
    return host->progress(host->user, done, r->n) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

static gnomon_status bring(run *r, int64_t row, int64_t rows, int slot, gnomon_matrix *x)
{
    const gnomon_matrix part = rows_of(r->job->points, row, rows);
    *x = part;
    if (!r->x_host) return GNOMON_OK;
    *x = packed_points(r, rows);
    x->data = r->slot[slot];
    const gcu_transfer transfer = gcu_transfer_of(r->job);
    GCU_TRY(r->why, cudaEventSynchronize(r->empty[slot]));
    const gnomon_status status = gcu_upload(r->s, transfer, &part, r->x_place, x, r->s->in, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->full[slot], r->s->in));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->full[slot], 0));
    return GNOMON_OK;
}

/* Products of the batch, into r->products. */
static gnomon_status chain(run *r, const gnomon_matrix *x)
{
    float *directions = reinterpret_cast<float *>(r->directions);
    const int64_t dim = r->h->f.dim, panel = r->plan.panel, products = r->h->products;
    for (int64_t col = 0; col < dim; col += panel) {
        const int64_t cols = gnomon_min(panel, dim - col);
        gnomon_matrix part = *x;
        part.cols = cols;
        part.data = static_cast<char *>(x->data) +
                    col * x->col_stride * (int64_t)gnomon_dtype_size(x->dtype);
        if (panel < dim)
            GCU_TRY(r->why, gcu_lsh_directions(&r->h->op->factor[0], &r->s->gpu, products, col,
                                               cols, directions, r->stream));
        GCU_TRY(r->why, gcu_lsh_chain(&part, directions, products, r->f64, col == 0,
                                      r->f64 ? r->sums : r->products, r->stream));
    }
    if (r->f64)
        GCU_TRY(r->why, gcu_lsh_to_f32(reinterpret_cast<double *>(r->sums), x->rows * products,
                                       reinterpret_cast<float *>(r->products), r->stream));
    return GNOMON_OK;
}

static gnomon_status sketch(run *r, const gnomon_matrix *x)
{
    gnomon_matrix y = gnomon_matrix_rowmajor(r->products, GNOMON_F32, x->rows, r->h->products);
    gnomon_matrix points = *x;
    y.memory = points.memory = GNOMON_DEVICE_MEMORY;
    gnomon_sketch_job job = sketch_job(r->h, &points, &y);
    job.memory_limit = r->job->memory_limit;
    job.stream = r->stream;
    job.host = r->job->host;
    return gcu_sketch_job(r->s, &job, r->why);
}

static gnomon_status hash_source(run *r, const gcu_lsh_source *source, int64_t row, int64_t table,
                                 int64_t tables, const gnomon_matrix *values)
{
    if (r->job->values) {
        GCU_TRY(r->why, gcu_lsh_store_values(source, values, r->stream));
        return GNOMON_OK;
    }
    gcu_lsh_source from = *source;
    if (from.products) from.products += r->function;
    if (from.least) from.least += r->function;
    if (from.f.offset) from.f.offset += r->function;
    if (from.f.bit) from.f.bit += r->function;
    const gcu_lsh_keys keys = {reinterpret_cast<uint64_t *>(r->keys),
                               r->n,
                               row,
                               table,
                               tables,
                               r->job->depth,
                               r->job->coarse,
                               r->multipliers};
    GCU_TRY(r->why, gcu_lsh_make_keys(&from, &keys, r->stream));
    return GNOMON_OK;
}

static gnomon_status hash_dense(run *r, const gnomon_matrix *x, int64_t row, int64_t table,
                                int64_t tables, const gnomon_matrix *values)
{
    gcu_lsh_source source = {};
    source.f = r->f;
    source.n = x->rows;
    if (r->way == FUSED) {
        float *reach = reinterpret_cast<float *>(r->copy), *copy = nullptr;
        if (r->copies) copy = reach + (r->plan.batch + 3) / 4 * 4;
        GCU_TRY(r->why, gcu_lsh_load_points(x, row, r->longest, reach, copy, r->pitch, r->first_bad,
                                            r->stream));
        gcu_lsh_fused c = fused_of(r, table, tables);
        c.keys.first = row;
        c.x = copy ? copy : static_cast<const float *>(x->data);
        c.x_stride = copy ? r->pitch : x->row_stride;
        c.n = x->rows;
        c.reach = reach;
        if (values) c.values = *values;
        GCU_TRY(r->why, gcu_lsh_fused_run(&c, r->stream));
        return GNOMON_OK;
    }
    if (r->way == BITS) {
        source.bytes = static_cast<const uint8_t *>(x->data);
        source.row_stride = x->row_stride;
        source.col_stride = x->col_stride;
        return hash_source(r, &source, row, table, tables, values);
    }
    if (gcu_may_be_nonfinite(x->dtype))
        GCU_TRY(r->why, gcu_find_nonfinite(x, row, 0, x->cols, r->first_bad, r->stream));
    source.products = reinterpret_cast<const float *>(r->products);
    const gnomon_status status = r->way == CHAIN ? chain(r, x) : sketch(r, x);
    return status == GNOMON_OK ? hash_source(r, &source, row, table, tables, values) : status;
}

/* An array on the host, on the GPU. */
static gnomon_status bring_array(run *r, const void *from, gnomon_dtype dtype, int64_t count,
                                 char *to)
{
    const gcu_transfer transfer = gcu_transfer_of(r->job);
    const gnomon_matrix host = gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count);
    gnomon_matrix there = gcu_packed(&host, 1, count);
    gcu_place place;
    there.data = to;
    if (count == 0) return GNOMON_OK;
    const gnomon_status status = gcu_place_of(r->s, &host, "points", &place, r->why);
    if (status != GNOMON_OK) return status;
    return gcu_upload(r->s, transfer, &host, place, &there, r->stream, r->why);
}

static gnomon_status hash_sets(run *r, int64_t row, int64_t rows, int64_t table, int64_t tables,
                               const gnomon_matrix *values)
{
    const gnomon_csr *m = r->job->sets;
    const int64_t size = (int64_t)gnomon_dtype_size(m->dtype);
    const int64_t before = m->offsets[row] - m->offsets[0];
    const int64_t entries = m->offsets[row + rows] - m->offsets[row];
    const size_t head = (size_t)(rows + 1) * 8, middle = (size_t)entries * 8;
    char *room = nullptr;
    GCU_TRY(r->why, put(r, &room, head + middle + (size_t)(entries * size)));
    gnomon_status status = bring_array(r, m->offsets + row, GNOMON_I64, rows + 1, room);
    if (status == GNOMON_OK)
        status = bring_array(r, m->indices + before, GNOMON_I64, entries, room + head);
    if (status == GNOMON_OK)
        status = bring_array(r, static_cast<const char *>(m->values) + before * size, m->dtype,
                             entries, room + head + middle);
    if (status == GNOMON_OK) {
        gnomon_matrix all = gnomon_matrix_rowmajor(room + head + middle, m->dtype, 1, entries);
        gcu_lsh_source source = {};
        source.f = r->f;
        source.n = rows;
        source.least = reinterpret_cast<const uint32_t *>(r->products);
        cudaError_t error = gcu_find_nonfinite(&all, 0, before, 0, r->first_bad, r->stream);
        if (error == cudaSuccess)
            error = gcu_lsh_least_hashes(reinterpret_cast<const int64_t *>(room),
                                         reinterpret_cast<const int64_t *>(room + head),
                                         room + head + middle, m->dtype, rows, r->f.count,
                                         r->h->key.key0, r->h->key.key1,
                                         reinterpret_cast<uint32_t *>(r->products), r->stream);
        status = error == cudaSuccess ? hash_source(r, &source, row, table, tables, values)
                                      : gcu_status(r->why, error, "least hashes");
    }
    /* pinned arrays are in use until the stream gets there, and so is the room */
    const cudaError_t error = cudaStreamSynchronize(r->stream);
    gcu_free(room, r->stream);
    if (status == GNOMON_OK && error != cudaSuccess)
        status = gcu_status(r->why, error, "least hashes");
    return status;
}

static gnomon_status hand_values_over(run *r, int64_t row, int64_t rows, int which)
{
    gnomon_matrix from = gcu_packed(r->job->values, rows, r->job->values->cols);
    from.data = r->output[which];
    const gnomon_matrix to = rows_of(r->job->values, row, rows);
    const gcu_transfer transfer = gcu_transfer_of(r->job);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->done[which], 0));
    const gnomon_status status =
        gcu_download(r->s, transfer, &from, &to, r->v_place, r->s->out, r->why);
    if (status == GNOMON_OK) GCU_TRY(r->why, cudaEventRecord(r->gone[which], r->s->out));
    return status;
}

/* All points, for values or the keys of these tables. */
static gnomon_status hash_all(run *r, int64_t table, int64_t tables)
{
    int64_t pending = -1, pending_rows = 0;
    int which = 0, pending_which = 0;
    for (int64_t row = 0; row < r->n; row += r->plan.batch) {
        const int64_t rows = gnomon_min(r->plan.batch, r->n - row);
        gnomon_matrix x, values = {};
        if (r->job->values) {
            values = rows_of(r->job->values, row, rows);
            if (r->v_host) {
                values = gcu_packed(r->job->values, rows, r->job->values->cols);
                values.data = r->output[which];
                if (r->plan.outputs == SLOTS)
                    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->gone[which], 0));
            }
        }
        gnomon_status status = GNOMON_OK;
        if (r->way == SETS) {
            status = hash_sets(r, row, rows, table, tables, &values);
        } else {
            status = bring(r, row, rows, which, &x);
            if (status == GNOMON_OK) status = hash_dense(r, &x, row, table, tables, &values);
        }
        if (status != GNOMON_OK) return status;
        GCU_TRY(r->why, cudaEventRecord(r->empty[which], r->stream));
        if (r->job->values && r->v_host) {
            GCU_TRY(r->why, cudaEventRecord(r->done[which], r->stream));
            if (pending >= 0) status = hand_values_over(r, pending, pending_rows, pending_which);
            pending = row;
            pending_rows = rows;
            pending_which = which;
        }
        if (status == GNOMON_OK) status = tell(r, row + rows);
        if (status != GNOMON_OK) return status;
        which = 1 - which;
    }
    return pending >= 0 ? hand_values_over(r, pending, pending_rows, pending_which) : GNOMON_OK;
}

static gnomon_status verdict(run *r)
{
    unsigned long long first = 0;
    GCU_TRY(r->why,
            cudaMemcpyAsync(&first, r->first_bad, sizeof first, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    if (first == ~0ull) return GNOMON_OK;
    gcu_about(r->job->host, "points", -1, -1);
    if (r->way == SETS)
        return gcu_fail(r->why, GNOMON_ERROR_NONFINITE, "points has NaN or infinity in entry %llu",
                        first + (unsigned long long)r->job->first_entry);
    const unsigned long long cols = (unsigned long long)r->job->points->cols;
    first += (unsigned long long)r->job->host->row * cols;
    gcu_about(r->job->host, "points", (int64_t)(first / cols), (int64_t)(first % cols));
    return gcu_fail(r->why, GNOMON_ERROR_NONFINITE,
                    "points has NaN or infinity in row %llu, column %llu", first / cols,
                    first % cols);
}

/* ---- tables ---- */

static gnomon_status hand_array_over(run *r, const void *from, void *to, gnomon_dtype dtype,
                                     int64_t count)
{
    const gcu_transfer transfer = gcu_transfer_of(r->job);
    const gnomon_matrix host = gnomon_matrix_rowmajor(to, dtype, 1, count);
    gnomon_matrix there = gcu_packed(&host, 1, count);
    gcu_place place;
    there.data = const_cast<void *>(from);
    const gnomon_status status = gcu_place_of(r->s, &host, "keys", &place, r->why);
    if (status != GNOMON_OK || count == 0) return status;
    return gcu_download(r->s, transfer, &there, &host, place, r->s->out, r->why);
}

static gnomon_status hand_keys_over(run *r, int64_t table, int64_t tables)
{
    const int64_t stride = r->job->key_stride;
    gnomon_matrix host =
        gnomon_matrix_rowmajor(r->job->keys + table * stride, GNOMON_U64, tables, r->n);
    gnomon_matrix there = host;
    host.row_stride = stride;
    there.data = r->keys;
    there.memory = GNOMON_DEVICE_MEMORY;
    gcu_place place;
    const gnomon_status status = gcu_place_of(r->s, &host, "keys", &place, r->why);
    if (status != GNOMON_OK) return status;
    return gcu_download(r->s, gcu_transfer_of(r->job), &there, &host, place, r->s->out, r->why);
}

static gnomon_status hand_table_over(run *r, const gcu_lsh_sorter *sorter, int64_t table, int which)
{
    const gnomon_lsh_rooms *rooms = r->job->rooms;
    int64_t buckets = 0;
    gnomon_table t = {};
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->done[which], 0));
    GCU_TRY(r->why, cudaMemcpyAsync(&buckets, sorter->buckets, sizeof buckets,
                                    cudaMemcpyDeviceToHost, r->s->out));
    GCU_TRY(r->why, cudaStreamSynchronize(r->s->out));
    gnomon_status status = rooms->make(rooms->user, table, r->n, buckets, &t);
    if (status != GNOMON_OK) {
        r->why.text[0] = 0; /* its text stands in the context */
        return status;
    }
    GCU_TRY(r->why, gcu_lsh_index(sorter, buckets, t.bits, r->s->out));
    status = hand_array_over(r, sorter->unique, t.keys, GNOMON_U64, buckets);
    if (status == GNOMON_OK)
        status = hand_array_over(r, sorter->first, t.first, GNOMON_U32, buckets + 1);
    if (status == GNOMON_OK) status = hand_array_over(r, sorter->ids[1], t.ids, GNOMON_U32, r->n);
    if (status == GNOMON_OK)
        status = hand_array_over(r, sorter->directory, t.directory, GNOMON_U32,
                                 ((int64_t)1 << t.bits) + 1);
    if (status == GNOMON_OK) GCU_TRY(r->why, cudaEventRecord(r->gone[which], r->s->out));
    return status;
}

static gnomon_status make_tables(run *r, int64_t table, int64_t tables)
{
    gcu_lsh_sorter sorter[SLOTS];
    const uint64_t *keys = reinterpret_cast<const uint64_t *>(r->keys);
    for (int i = 0; i < r->plan.sorters; i++)
        gcu_lsh_sorter_place(&sorter[i], r->n, r->job->depth == r->job->coarse, r->sorter[i]);
    gnomon_status status = GNOMON_OK;
    for (int64_t t = 0; t <= tables && status == GNOMON_OK; t++) {
        const int which = (int)(t % r->plan.sorters), before = (int)((t + 1) % r->plan.sorters);
        if (t < tables) {
            GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, r->gone[which], 0));
            GCU_TRY(r->why,
                    gcu_lsh_sort(&sorter[which], keys + t * r->n, r->job->first_id, r->stream));
            GCU_TRY(r->why, cudaEventRecord(r->done[which], r->stream));
        }
        if (t > 0) status = hand_table_over(r, &sorter[before], table + t - 1, before);
    }
    return status;
}

/* ---- the call ---- */

static gnomon_status groups(run *r)
{
    const gnomon_lsh_job *job = r->job;
    const int64_t all = job->values ? 1 : job->tables, each = job->values ? 1 : r->plan.tables;
    for (int64_t table = 0; table < all; table += each) {
        const int64_t tables = job->values ? 0 : gnomon_min(each, all - table);
        if (r->way == FUSED) {
            const gcu_lsh_fused c = fused_of(r, table, tables);
            GCU_TRY(r->why, gcu_lsh_fused_prepare(&c, r->stream));
        }
        gnomon_status status = hash_all(r, table, tables);
        if (status == GNOMON_OK) status = verdict(r);
        if (status != GNOMON_OK) return status;
        if (job->keys) {
            if (table == 0) status = job->host->checked(job->host->user);
            if (status == GNOMON_OK) status = hand_keys_over(r, table, tables);
            if (status != GNOMON_OK) return status;
            GCU_TRY(r->why, cudaStreamSynchronize(r->s->out));
        }
        if (job->rooms) status = make_tables(r, table, tables);
        if (r->sink)
            GCU_TRY(r->why, r->sink->put(r->sink->user, reinterpret_cast<const uint64_t *>(r->keys),
                                         table, tables, r->stream));
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

static gnomon_status make_directions(run *r)
{
    float *directions = reinterpret_cast<float *>(r->directions);
    const int64_t dim = r->h->f.dim;
    if (r->way != FUSED && (r->way != CHAIN || r->plan.panel < dim)) return GNOMON_OK;
    GCU_TRY(r->why, gcu_lsh_directions(&r->h->op->factor[0], &r->s->gpu, r->h->products, 0, dim,
                                       directions, r->stream));
    if (r->way == FUSED)
        GCU_TRY(r->why, gcu_lsh_longest(directions, r->h->products, dim, r->longest, r->stream));
    return GNOMON_OK;
}

static gnomon_status work(run *r)
{
    const gnomon_lsh_job *job = r->job;
    gnomon_status status = GNOMON_OK;
    r->x_host = true;
    if (job->points) {
        status = gcu_place_of(r->s, job->points, "points", &r->x_place, r->why);
        r->x_host = r->x_place != GCU_DEVICE;
        r->f64 = gnomon_dtype_needs_f64(job->points->dtype);
    }
    if (status == GNOMON_OK && job->values) {
        status = gcu_place_of(r->s, job->values, "values", &r->v_place, r->why);
        r->v_host = r->v_place != GCU_DEVICE;
    }
    if (status != GNOMON_OK || r->n == 0) return status;
    r->way = route_of(r);
    status = make_small(r);
    if (status != GNOMON_OK) return status;
    r->pitch = (r->h->f.dim + 3) / 4 * 4;
    if (r->way == FUSED) {
        r->copies = false;
        const gnomon_matrix x = packed_points(r, r->n);
        r->copies = r->x_host ? x.dtype != GNOMON_F32 || x.col_stride != 1 : !lies_well(r);
    }
    status = gcu_alloc_planned(r, "point", make_plan, alloc_all, free_all);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(r->ready, r->stream));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, r->ready, 0));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->ready, 0));
    status = make_directions(r);
    return status == GNOMON_OK ? groups(r) : status;
}

static cudaError_t make_events(run *r)
{
    cudaEvent_t *const events[] = {&r->full[0],  &r->full[1], &r->empty[0],
                                   &r->empty[1], &r->done[0], &r->done[1],
                                   &r->gone[0],  &r->gone[1], &r->ready};
    for (cudaEvent_t *event : events) {
        const cudaError_t error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

static gnomon_status do_job(gcu_state *s, const gnomon_lsh_job *job, int64_t function,
                            const gcu_lsh_key_sink *sink, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.function = function;
    r.sink = sink;
    r.h = job->hasher;
    r.why = why;
    r.stream = s->stream;
    r.n = job->points ? job->points->rows : job->sets->rows;
    const cudaError_t made = make_events(&r);
    gnomon_status status = made == cudaSuccess ? work(&r) : gcu_status(why, made, "making events");
    /* Nothing may be on its way from or to the host when its memory is given back. */
    const cudaError_t in = cudaStreamSynchronize(s->in), out = cudaStreamSynchronize(s->out);
    if (status == GNOMON_OK && (in != cudaSuccess || out != cudaSuccess))
        status = gcu_status(why, in != cudaSuccess ? in : out, "transfers");
    free_all(&r);
    gcu_free(r.small, r.stream);
    const cudaError_t error = cudaStreamSynchronize(r.stream);
    if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    cudaEvent_t const events[] = {r.full[0], r.full[1], r.empty[0], r.empty[1], r.done[0],
                                  r.done[1], r.gone[0], r.gone[1],  r.ready};
    for (cudaEvent_t event : events)
        if (event) cudaEventDestroy(event);
    return status;
}

gnomon_status gcu_lsh_job(gcu_state *s, const gnomon_lsh_job *job, gcu_why why)
{
    return do_job(s, job, 0, nullptr, why);
}

gnomon_status gcu_lsh_hand_keys(gcu_state *s, const gnomon_lsh_job *job, int64_t function,
                                const gcu_lsh_key_sink *sink, gcu_why why)
{
    return do_job(s, job, function, sink, why);
}
