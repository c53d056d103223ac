/* A sketch of sparse rows, wherever rows and output lie. Rows on the host come in batches: copies
 * in, kernels and copies out run on streams of their own, two batches deep. */
#include "base/arithmetic.h"
#include "cuda/project/csr/csr.h"
#include "cuda/project/job.h"
#include "cuda/runtime/transfer.h"

#include <inttypes.h>
#include <stdio.h>

enum { SLOTS = 2, PIECES = 32 /* of device memory */ };

/* More would exceed what a grid has room for. */
static const int64_t most_rows = 1 << 22;
static const int64_t batch_nonzeros = 1 << 24; /* a good quarter of a GiB with their columns */
static const int64_t batch_output = 256 << 20; /* bytes */

struct slot {
    int64_t *offsets, *cols;
    void *values; /* as they come */
    void *y;
    cudaEvent_t came, used; /* the rows are there; may be overwritten */
    cudaEvent_t done, gone; /* y is complete; has been read */
};

struct run {
    gcu_state *s;
    const gnomon_sketch_job *job;
    const gnomon_csr *x;
    gcu_why why;
    cudaStream_t stream;
    gcu_place y_place;
    bool x_host, y_direct, converts, sorts;
    gcu_csr_sketch sketch;
    int64_t points, room; /* rows and nonzeros of a batch, at most */
    slot slots[SLOTS];
    /* of the batch whose kernels run */
    int64_t *sorted_cols;
    void *converted, *sorted_values, *sort_work;
    size_t sort_bytes;
    void *keys; /* work of the table */
    uint32_t *codes, *longs;
    gcu_csr_findings *findings;
    void *piece[PIECES];
    int pieces;
    size_t taken; /* bytes */
    bool piped;   /* something goes over the link: the events are there */
    cudaEvent_t ready;
};

static gnomon_status room(run *r, size_t bytes, void *out)
{
    void *data = nullptr;
    const cudaError_t error = gcu_alloc(r->s, &data, bytes, r->stream);
    if (error != cudaSuccess) return gcu_status(r->why, error, "taking device memory");
    if (data) r->piece[r->pieces++] = data;
    r->taken += bytes;
    *static_cast<void **>(out) = data;
    return GNOMON_OK;
}

/* ---- what can be done ---- */

/* Of S's columns. Not of what is free: asking the driver takes longer than a small sketch. */
static size_t table_bytes(const gcu_state *s)
{
    return (s->memory_most ? s->memory_most : s->memory_total) / 4;
}

/* Whether so much can be had without a doubt. */
static bool is_little(const gcu_state *s, size_t bytes)
{
    return !s->memory_most && (bytes <= 1 << 20 || bytes <= gcu_kept_memory(s));
}

static gcu_csr_sketch sketch_of(const gcu_state *s, const gnomon_sketch_job *job)
{
    gcu_csr_sketch k = {};
    k.a = &job->op->factor[0];
    k.m = gcu_matrix_of(k.a, &s->gpu);
    k.gpu = &s->gpu;
    k.row = job->row;
    k.rows = job->rows;
    k.col = job->col;
    k.f64 = job->f64;
    k.factor = job->alpha * job->op->scale;
    k.beta = job->beta;
    return k;
}

bool gcu_csr_supported(gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    const gnomon_operator *op = job->op;
    if (op->levels > 1 || op->blocks > 1) {
        gcu_fail(why, GNOMON_ERROR_DEVICE,
                 "block and kronecker operators are applied to sparse points on the CPU");
        return false;
    }
    if (!gcu_kind_of(&op->factor[0])) {
        gcu_fail(why, GNOMON_ERROR_DEVICE, "no kernels for this operator");
        return false;
    }
    if (job->rows > most_rows) {
        gcu_fail(why, GNOMON_ERROR_DEVICE,
                 "the operator has %" PRId64 " rows; sparse points are projected to %" PRId64
                 " at most",
                 job->rows, most_rows);
        return false;
    }
    if (job->csr->rows > INT32_MAX) {
        gcu_fail(why, GNOMON_ERROR_DEVICE,
                 "x has %" PRId64 " sparse rows; the GPU takes %d at a time", job->csr->rows,
                 INT32_MAX);
        return false;
    }
    gcu_csr_sketch k = sketch_of(s, job);
    return gcu_csr_plan_table(&k, job->csr->cols, INT64_MAX, table_bytes(s), why.text, why.size);
}

/* ---- memory ---- */

static int64_t value_bytes(const run *r)
{
    return r->job->f64 ? 8 : 4;
}

static size_t bytes_of(const run *r, int64_t points, int64_t nonzeros)
{
    const int64_t raw = (int64_t)gnomon_dtype_size(r->x->dtype), value = value_bytes(r);
    const int slots = points < r->x->rows ? SLOTS : 1;
    size_t bytes = 0;
    if (r->x_host) bytes += (size_t)slots * (size_t)(nonzeros * (8 + raw) + (points + 1) * 8);
    if (!r->y_direct) {
        const gnomon_matrix y = gcu_packed(r->job->y, points, r->job->rows);
        bytes += (size_t)slots * gcu_packed_bytes(&y);
    }
    if (!r->x_host) nonzeros = r->room;
    if (r->converts) bytes += (size_t)(nonzeros * value);
    if (r->sorts) bytes += (size_t)(nonzeros * (8 + value)) + gcu_csr_sort_bytes(nonzeros);
    if (r->sketch.table.way == GCU_CSR_CODES_OF_NONZEROS)
        bytes += (size_t)(nonzeros * r->sketch.table.each * 4);
    return bytes + (size_t)(nonzeros / GCU_CSR_LONG + 2) * 4;
}

/* The most nonzeros that so many rows on end have, and that one has. */
static int64_t most_nonzeros(const gnomon_csr *x, int64_t points)
{
    int64_t most = 0;
    for (int64_t i = 0; i < x->rows; i += points) {
        const int64_t end = gnomon_min(i + points, x->rows);
        most = gnomon_max(most, x->offsets[end] - x->offsets[i]);
    }
    return most;
}

/* Rows are cut where a batch would have too many nonzeros, so only a long row asks for more. */
static gnomon_status plan(run *r)
{
    const gnomon_csr *x = r->x;
    const int64_t each = r->job->rows * (r->job->y->dtype == GNOMON_F64 ? 8 : 4);
    int64_t longest = r->room, total = r->room;
    r->points = r->y_direct ? x->rows : gnomon_max(1, gnomon_min(x->rows, batch_output / each));
    if (r->x_host) {
        longest = most_nonzeros(x, 1);
        r->room = gnomon_min(total, gnomon_max(longest, batch_nonzeros));
        if (r->room < total && r->points == x->rows) r->points = gnomon_max(1, x->rows - 1);
    }
    if (is_little(r->s, bytes_of(r, r->points, r->room))) return GNOMON_OK;
    const size_t all = gcu_free_memory(r->s) / 16 * 15;
    const size_t free = !r->s->memory_most ? all : all > r->taken ? all - r->taken : 0;
    while (bytes_of(r, r->points, r->room) > free) {
        if (r->points > 1 && !r->y_direct)
            r->points = (r->points + 1) / 2;
        else if (r->room > longest && x->rows > 1) {
            r->room = gnomon_max(longest, r->room / 2);
            r->points = gnomon_min(r->points, x->rows - 1); /* batches */
        } else
            return gcu_fail(r->why, GNOMON_ERROR_MEMORY,
                            "%s %" PRId64 " nonzeros need %zu bytes of the GPU's memory, %zu are "
                            "free",
                            r->x_host ? "a row's" : "x's", longest, bytes_of(r, r->points, r->room),
                            free);
    }
    return GNOMON_OK;
}

static gnomon_status take_memory(run *r)
{
    const int64_t raw = (int64_t)gnomon_dtype_size(r->x->dtype), value = value_bytes(r);
    const bool several = r->points < r->x->rows;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < (several ? SLOTS : 1) && status == GNOMON_OK; i++) {
        slot *p = &r->slots[i];
        if (r->x_host) {
            status = room(r, (size_t)(r->points + 1) * 8, &p->offsets);
            if (status == GNOMON_OK) status = room(r, (size_t)r->room * 8, &p->cols);
            if (status == GNOMON_OK) status = room(r, (size_t)(r->room * raw), &p->values);
        }
        if (status == GNOMON_OK && !r->y_direct) {
            const gnomon_matrix y = gcu_packed(r->job->y, r->points, r->job->rows);
            status = room(r, gcu_packed_bytes(&y), &p->y);
        }
    }
    if (status == GNOMON_OK && r->converts)
        status = room(r, (size_t)(r->room * value), &r->converted);
    if (status == GNOMON_OK && r->sorts) {
        r->sort_bytes = gcu_csr_sort_bytes(r->room);
        status = room(r, (size_t)r->room * 8, &r->sorted_cols);
        if (status == GNOMON_OK) status = room(r, (size_t)(r->room * value), &r->sorted_values);
        if (status == GNOMON_OK) status = room(r, r->sort_bytes, &r->sort_work);
    }
    if (status == GNOMON_OK && r->sketch.table.way == GCU_CSR_CODES_OF_NONZEROS)
        status = room(r, (size_t)(r->room * r->sketch.table.each * 4), &r->codes);
    if (status == GNOMON_OK) status = room(r, (size_t)(r->room / GCU_CSR_LONG + 2) * 4, &r->longs);
    return status;
}

/* ---- S ---- */

static gnomon_status make_table(run *r)
{
    gcu_csr_sketch *k = &r->sketch;
    gcu_csr_table *t = &k->table;
    size_t bytes = gcu_csr_table_bytes(t);
    gnomon_status status;
    if (t->way == GCU_CSR_LISTS) {
        uint32_t codes = 0;
        void *work = nullptr;
        const size_t work_bytes = gcu_csr_count_bytes(t);
        status = room(r, (size_t)(t->cols + 1) * 4, &t->start);
        if (status == GNOMON_OK) status = room(r, work_bytes, &work);
        if (status != GNOMON_OK) return status;
        GCU_TRY(r->why, gcu_csr_count_lists(k, work, work_bytes));
        GCU_TRY(r->why, cudaMemcpyAsync(&codes, t->start + t->cols, sizeof codes,
                                        cudaMemcpyDeviceToHost, r->stream));
        GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
        bytes = (size_t)codes * 4;
    }
    status = room(r, bytes, &t->data);
    if (status == GNOMON_OK) status = room(r, gcu_csr_fill_bytes(k), &r->keys);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, gcu_csr_fill_table(k, r->keys));
    return GNOMON_OK;
}

/* ---- x ---- */

static gnomon_status bring(run *r, const void *from, gnomon_dtype dtype, int64_t count, void *to,
                           const char *name)
{
    const gnomon_matrix host = gnomon_matrix_rowmajor(const_cast<void *>(from), dtype, 1, count);
    gnomon_matrix there = gnomon_matrix_rowmajor(to, dtype, 1, count);
    gcu_place place;
    if (count == 0) return GNOMON_OK;
    there.memory = GNOMON_DEVICE_MEMORY;
    const gnomon_status status = gcu_place_of(r->s, &host, name, &place, r->why);
    if (status != GNOMON_OK) return status;
    return gcu_upload(r->s, gcu_transfer_of(r->job), &host, place, &there, r->s->in, r->why);
}

/* Rows [row, row + rows) into a slot. */
static gnomon_status bring_rows(run *r, slot *p, int64_t row, int64_t rows, gcu_csr *to)
{
    const gnomon_csr *x = r->x;
    const int64_t skipped = x->offsets[row] - x->offsets[0];
    const int64_t count = x->offsets[row + rows] - x->offsets[row];
    const char *values = static_cast<const char *>(x->values);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, p->used, 0));
    gnomon_status status =
        bring(r, x->offsets + row, GNOMON_I64, rows + 1, p->offsets, "x.offsets");
    if (status == GNOMON_OK)
        status = bring(r, x->indices + skipped, GNOMON_I64, count, p->cols, "x.indices");
    if (status == GNOMON_OK)
        status = bring(r, values + skipped * (int64_t)gnomon_dtype_size(x->dtype), x->dtype, count,
                       p->values, "x.values");
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(p->came, r->s->in));
    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, p->came, 0));
    *to = {rows, count, p->offsets, p->offsets, p->cols, p->values};
    return GNOMON_OK;
}

/* As the kernels of sums want it. */
static gnomon_status prepare(run *r, gcu_csr *x)
{
    if (x->nonzeros == 0) return GNOMON_OK;
    if (r->converts) {
        GCU_TRY(r->why, gcu_csr_convert(x->values, r->x->dtype, x->nonzeros, r->job->f64,
                                        r->converted, r->stream));
        x->values = r->converted;
    }
    if (r->sorts) {
        GCU_TRY(r->why, gcu_csr_sort(x, r->x->cols, r->job->f64, r->sorted_cols, r->sorted_values,
                                     r->sort_work, r->sort_bytes, r->stream));
        x->cols = r->sorted_cols;
        x->values = r->sorted_values;
    }
    if (r->codes) GCU_TRY(r->why, gcu_csr_code_nonzeros(&r->sketch, x, r->codes, r->keys));
    return GNOMON_OK;
}

/* ---- y ---- */

static gnomon_status sums(run *r, const gcu_csr *x, const gnomon_matrix *y)
{
    const gcu_csr_out out = {y->data,       y->dtype,         y->row_stride,
                             y->col_stride, r->sketch.factor, r->sketch.beta};
    GCU_TRY(r->why, gcu_csr_sums(&r->sketch, x, r->codes, &out, r->longs));
    return GNOMON_OK;
}

/* Rows of y as the kernels write them: there, or in a slot. */
static gnomon_matrix rows_of_y(const run *r, const slot *p, int64_t row, int64_t rows)
{
    if (r->y_direct) return gcu_part(r->job->y, row, rows, 0, r->job->rows);
    gnomon_matrix y = gcu_packed(r->job->y, rows, r->job->rows);
    y.data = p->y;
    return y;
}

static gnomon_status begin_y(run *r, slot *p, int64_t row, int64_t rows, gnomon_matrix *y)
{
    *y = rows_of_y(r, p, row, rows);
    if (r->y_direct) return GNOMON_OK;
    GCU_TRY(r->why, cudaStreamWaitEvent(r->stream, p->gone, 0));
    if (r->job->beta == 0) return GNOMON_OK;
    const gnomon_matrix from = gcu_part(r->job->y, row, rows, 0, r->job->rows);
    return gcu_upload(r->s, gcu_transfer_of(r->job), &from, r->y_place, y, r->stream, r->why);
}

static gnomon_status hand_over(run *r, slot *p, int64_t row, int64_t rows)
{
    if (r->y_direct || rows == 0) return GNOMON_OK;
    const gnomon_matrix from = rows_of_y(r, p, row, rows);
    const gnomon_matrix to = gcu_part(r->job->y, row, rows, 0, r->job->rows);
    GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, p->done, 0));
    const gnomon_status status =
        gcu_download(r->s, gcu_transfer_of(r->job), &from, &to, r->y_place, r->s->out, r->why);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, cudaEventRecord(p->gone, r->s->out));
    return GNOMON_OK;
}

/* How many rows from 'row' on make a batch. */
static int64_t batch_of(const run *r, int64_t row)
{
    int64_t rows = gnomon_min(r->points, r->x->rows - row);
    if (!r->x_host) return rows;
    const int64_t *offsets = r->x->offsets + row;
    int64_t low = 1;
    if (offsets[rows] - offsets[0] <= r->room) return rows;
    while (rows - low > 1) { /* low fit, so many as 'rows' don't */
        const int64_t middle = low + (rows - low) / 2;
        if (offsets[middle] - offsets[0] <= r->room)
            low = middle;
        else
            rows = middle;
    }
    return low;
}

static gnomon_status all_batches(run *r, const gcu_csr *there)
{
    const gnomon_device_host *host = r->job->host;
    const int64_t n = r->x->rows;
    int64_t before = 0, before_rows = 0;
    int which = 0;
    for (int64_t row = 0; row < n; which = 1 - which) {
        const int64_t rows = batch_of(r, row);
        slot *p = &r->slots[which], *other = &r->slots[1 - which];
        gcu_csr x;
        gnomon_matrix y;
        gnomon_status status = GNOMON_OK;
        if (r->x_host) {
            status = bring_rows(r, p, row, rows, &x);
            if (status == GNOMON_OK) status = prepare(r, &x);
        } else {
            x = *there;
            x.offsets += row;
            x.rows = rows;
        }
        if (status == GNOMON_OK) status = begin_y(r, p, row, rows, &y);
        if (status == GNOMON_OK) status = sums(r, &x, &y);
        if (status != GNOMON_OK) return status;
        if (r->piped) {
            GCU_TRY(r->why, cudaEventRecord(p->used, r->stream));
            GCU_TRY(r->why, cudaEventRecord(p->done, r->stream));
        }
        status = hand_over(r, other, before, before_rows);
        if (status != GNOMON_OK) return status;
        before = row;
        before_rows = rows;
        row += rows;
        if (row < n && host->progress(host->user, row, n)) return GNOMON_ERROR_CANCELLED;
    }
    return hand_over(r, &r->slots[1 - which], before, before_rows);
}

/* ---- a view in the GPU's memory ---- */

static gnomon_status bad_rows(run *r, const gcu_csr_findings *f)
{
    const gnomon_csr *x = r->x;
    int64_t value[2] = {0, 0};
    if (f->bad_offset != ~0ull) {
        const int64_t i = (int64_t)f->bad_offset;
        GCU_TRY(r->why, cudaMemcpy(value, x->offsets + (i > 0 ? i - 1 : 0), i > 0 ? 16 : 8,
                                   cudaMemcpyDeviceToHost));
        gcu_about(r->job->host, "x.offsets", -1, -1);
        if (i == 0)
            return gcu_fail(r->why, GNOMON_ERROR_DATA,
                            "x.offsets[0] is %" PRId64 "; it must not be negative", value[0]);
        return gcu_fail(r->why, GNOMON_ERROR_DATA,
                        "x.offsets[%" PRId64 "] is %" PRId64 ", less than the %" PRId64
                        " before it; offsets must not decrease",
                        i, value[1], value[0]);
    }
    if (f->bad_index != ~0ull) {
        const int64_t e = (int64_t)f->bad_index;
        GCU_TRY(r->why, cudaMemcpy(value, x->indices + e, 8, cudaMemcpyDeviceToHost));
        gcu_about(r->job->host, "x.indices", -1, -1);
        return gcu_fail(r->why, GNOMON_ERROR_DATA,
                        "x.indices[%" PRId64 "] is %" PRId64 "; x has %" PRId64 " columns", e,
                        value[0], x->cols);
    }
    const int64_t e = (int64_t)f->nonfinite;
    int64_t low = 0, high = x->rows, col = 0;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        GCU_TRY(r->why, cudaMemcpy(value, x->offsets + middle, 8, cudaMemcpyDeviceToHost));
        if (value[0] - f->first <= e)
            low = middle;
        else
            high = middle;
    }
    GCU_TRY(r->why, cudaMemcpy(&col, x->indices + e, 8, cudaMemcpyDeviceToHost));
    gcu_about(r->job->host, "x", low, col);
    return gcu_fail(r->why, GNOMON_ERROR_NONFINITE,
                    "x: element (%" PRId64 ", %" PRId64 "), x.values[%" PRId64
                    "], is NaN or infinite; options.allow_nonfinite lets such values pass",
                    low, col, e);
}

static gnomon_status place_array(run *r, const void *data, gnomon_dtype dtype, int64_t count,
                                 const char *name)
{
    gnomon_matrix m = gnomon_matrix_rowmajor(const_cast<void *>(data), dtype, 1, count);
    gcu_place place;
    m.memory = GNOMON_DEVICE_MEMORY;
    if (count > 0 && !data)
        return gcu_fail(r->why, GNOMON_ERROR_ARGUMENT, "%s is NULL; %" PRId64 " numbers are due",
                        name, count);
    return gcu_place_of(r->s, &m, name, &place, r->why);
}

/* Checks a caller's rows there. */
static gnomon_status look_at(run *r, gcu_csr *there)
{
    const gnomon_csr *x = r->x;
    gcu_csr_findings f;
    gnomon_status status = place_array(r, x->offsets, GNOMON_I64, x->rows + 1, "x.offsets");
    if (status != GNOMON_OK) return status;
    *there = {x->rows, 0, x->offsets, x->offsets, x->indices, x->values};
    int64_t count = 1; /* as far as is known yet */
    if (!x->indices || !x->values) {
        int64_t ends[2];
        for (int i = 0; i < 2; i++)
            GCU_TRY(r->why, cudaMemcpyAsync(&ends[i], x->offsets + i * x->rows, 8,
                                            cudaMemcpyDeviceToHost, r->stream));
        GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
        count = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    }
    status = place_array(r, x->indices, GNOMON_I64, count, "x.indices");
    if (status == GNOMON_OK) status = place_array(r, x->values, x->dtype, count, "x.values");
    if (status == GNOMON_OK) status = room(r, sizeof f, &r->findings);
    if (status != GNOMON_OK) return status;
    GCU_TRY(r->why, gcu_csr_scan(there, x->cols, x->dtype, r->job->check, r->findings, r->stream));
    GCU_TRY(r->why, cudaMemcpyAsync(&f, r->findings, sizeof f, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    if (f.bad_offset != ~0ull || f.bad_index != ~0ull || f.nonfinite != ~0ull)
        return bad_rows(r, &f);
    there->nonzeros = r->room = f.nonzeros;
    r->sorts = f.descents != f.breaks;
    return GNOMON_OK;
}

/* ---- all ---- */

static cudaError_t make_events(run *r)
{
    cudaError_t error = cudaEventCreateWithFlags(&r->ready, cudaEventDisableTiming);
    for (slot &p : r->slots) {
        cudaEvent_t *const events[] = {&p.came, &p.used, &p.done, &p.gone};
        for (cudaEvent_t *event : events)
            if (error == cudaSuccess)
                error = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
    }
    return error;
}

static gnomon_status work(run *r)
{
    const gnomon_csr *x = r->x;
    const gnomon_dtype own = r->job->f64 ? GNOMON_F64 : GNOMON_F32;
    gcu_csr there = {};
    gnomon_status status = gcu_place_of(r->s, r->job->y, "y", &r->y_place, r->why);
    if (status != GNOMON_OK || x->rows == 0) return status;
    r->x_host = r->job->csr_memory == GNOMON_HOST;
    r->y_direct = r->y_place == GCU_DEVICE;
    r->piped = r->x_host || !r->y_direct;
    r->converts = x->dtype != own;
    if (r->piped) GCU_TRY(r->why, make_events(r));
    if (r->x_host) {
        r->room = x->offsets[x->rows] - x->offsets[0];
        r->sorts = !r->job->sorted;
    } else {
        status = look_at(r, &there);
        if (status != GNOMON_OK) return status;
    }
    r->sketch = sketch_of(r->s, r->job);
    r->sketch.stream = r->stream;
    if (!gcu_csr_plan_table(&r->sketch, x->cols, r->room, table_bytes(r->s), r->why.text,
                            r->why.size))
        return GNOMON_ERROR_MEMORY;
    status = make_table(r);
    if (status == GNOMON_ERROR_MEMORY && r->sketch.table.way != GCU_CSR_LISTS) {
        gcu_csr_plan_table(&r->sketch, x->cols, r->room, 0, r->why.text, r->why.size);
        status = make_table(r); /* of nothing */
    }
    if (status == GNOMON_OK) status = plan(r);
    if (status == GNOMON_OK && r->sorts && r->room > UINT32_MAX)
        return gcu_fail(r->why, GNOMON_ERROR_MEMORY,
                        "x's columns do not ascend within its rows; %" PRId64
                        " nonzeros are more than the GPU sorts at a time",
                        r->room);
    if (status == GNOMON_OK) status = take_memory(r);
    if (status != GNOMON_OK) return status;
    if (r->piped) {
        GCU_TRY(r->why, cudaEventRecord(r->ready, r->stream));
        GCU_TRY(r->why, cudaStreamWaitEvent(r->s->in, r->ready, 0));
        GCU_TRY(r->why, cudaStreamWaitEvent(r->s->out, r->ready, 0));
    }
    if (!r->x_host) status = prepare(r, &there);
    return status == GNOMON_OK ? all_batches(r, &there) : status;
}

static void drop_events(run *r)
{
    if (r->ready) cudaEventDestroy(r->ready);
    for (const slot &p : r->slots) {
        cudaEvent_t const events[] = {p.came, p.used, p.done, p.gone};
        for (cudaEvent_t event : events)
            if (event) cudaEventDestroy(event);
    }
}

gnomon_status gcu_csr_job(gcu_state *s, const gnomon_sketch_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.x = job->csr;
    r.why = why;
    r.stream = job->stream ? static_cast<cudaStream_t>(job->stream) : s->stream;
    gnomon_status status = work(&r);
    const bool runs_on =
        status == GNOMON_OK && job->stream && !job->check && !r.x_host && r.y_direct;
    /* Nothing may be on its way from or to the host when its memory is given back. */
    if (r.piped) {
        const cudaError_t in = cudaStreamSynchronize(s->in), out = cudaStreamSynchronize(s->out);
        if (status == GNOMON_OK && (in != cudaSuccess || out != cudaSuccess))
            status = gcu_status(why, in != cudaSuccess ? in : out, "transfers");
    }
    for (int i = 0; i < r.pieces; i++)
        gcu_free(r.piece[i], r.stream);
    if (!runs_on) {
        const cudaError_t error = cudaStreamSynchronize(r.stream);
        if (status == GNOMON_OK && error != cudaSuccess) status = gcu_status(why, error, "kernels");
    }
    drop_events(&r);
    return status;
}
