/* Similarity join, wherever the points lie.
 *
 * Where both sides fit into the GPU's memory, or Q does and P comes in pieces, a band of P's rows
 * meets all of Q: candidates of the filter (filter/filter.h) is put in order and verified there,
 * and goes to the core as it is. A band whose survivors don't fit is done again with fewer rows.
 * Where Q comes in pieces too, a piece of P meets one after the other, and its pairs wait on the
 * host, those of each piece of Q in order, to be merged; should they become too many, the later
 * rows' are dropped, and come again with the next piece of P.
 *
 * In a join by hashing a band of rows meets others in buckets alone (join/hashes.h); all else is
 * the same. A piece is hashed whenever it comes, which costs less than to keep its keys on the host
 * and bring them; and as a pair of points meets in one pair of pieces only, it is their own keys
 * that tell in which table for the first time. To gather the points of buckets from the host
 * instead would move each point once per table, and tables are more than pieces ever are. */
#include "base/arithmetic.h"
#include "cuda/join/hashes.h"
#include "cuda/runtime/alloc.h"
#include "cuda/runtime/transfer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

enum { MOST_ROOM = 1 << 25, LEAST_ROOM = 1 << 20, START_ROOM = 1 << 23, SMALL = 8192 };

/* Pairs that may all be verified. */
static const double most_without = 1 << 26;

/* A side, and the piece of it that is on the GPU. */
struct side {
    const char *name;
    gnomon_matrix all;
    gcu_place place;
    int64_t rows; /* of a piece, at most */
    void *raw, *memory;
    float *limits;
    uint32_t *keys;
    /* the piece: */
    int64_t first;
    gnomon_matrix view;
    gcu_filter_points points;
};

struct plan {
    int64_t p_rows, q_rows, room; /* of pieces; survivors */
    bool one;                     /* a self-join in one piece */
    size_t p_raw, q_raw, p_packed, q_packed, p_keys, q_keys, work, bucket_work, needed;
};

struct run {
    gcu_state *s;
    gnomon_join_job *job;
    gcu_transfer transfer;
    gcu_why why;
    cudaStream_t stream;
    bool self;
    side p, q;
    plan plan;
    gcu_filter_centre centre;
    bool ready; /* the centre is estimated */
    gcu_join_hashes hashes;
    bool planned; /* the hashes are; */
    bool again;   /* but their keys have no room beside all points */
    bool checked; /* points on the host are */
    void *centre_memory, *limits_work, *verify_work, *bucket_work;
    uint64_t *pairs;
    double *distances;
    gnomon_pair *out;
    unsigned long long *numbers; /* survivors, kept, a fault, pairs that share a bucket */
    int64_t next_rows;           /* rows of the next band */
    int64_t fit;                 /* of P's next piece, whose pairs are to wait */
    /* pairs of P's piece while Q's pieces come, of rows below 'end', and where those of each piece
       begin */
    gnomon_pair *waiting;
    int64_t count, count_room, end;
    std::vector<int64_t> starts;
};

enum { SURVIVORS, KEPT, FAULT, SHARED, NUMBERS };

/* ---- memory ---- */

static int64_t coordinates(const run *r)
{
    return r->job->metric == GNOMON_HAMMING ? 8 * r->p.all.cols : r->p.all.cols;
}

static size_t raw_bytes(const side *x, int64_t rows)
{
    if (x->place == GCU_DEVICE) return 0;
    const gnomon_matrix held = gcu_packed(&x->all, rows, x->all.cols);
    return gcu_packed_bytes(&held);
}

static size_t packed_bytes(const run *r, const side *x, int64_t rows)
{
    return gcu_filter_pack_bytes(r->job->metric, rows, x->all.cols) +
           (size_t)gnomon_round_up(rows, GCU_FILTER_PAD) * 4;
}

static void size_up(run *r, plan *p)
{
    p->one = r->self && p->p_rows == r->p.all.rows && p->q_rows == r->p.all.rows;
    p->p_raw = raw_bytes(&r->p, p->p_rows);
    p->p_packed = packed_bytes(r, &r->p, p->p_rows);
    p->q_raw = p->one ? 0 : raw_bytes(&r->q, p->q_rows);
    /* a self-join in one piece has Q's limits beside */
    p->q_packed = p->one ? (size_t)gnomon_round_up(p->q_rows, GCU_FILTER_PAD) * 4
                         : packed_bytes(r, &r->q, p->q_rows);
    p->work = gcu_verify_work(p->room);
    p->p_keys = p->q_keys = p->bucket_work = 0;
    if (r->hashes.count > 0) {
        p->p_keys = gcu_join_hashes_key_bytes(&r->hashes, p->p_rows);
        p->q_keys = p->one ? 0 : gcu_join_hashes_key_bytes(&r->hashes, p->q_rows);
        p->bucket_work = gcu_bucket_work(p->p_rows, p->q_rows, p->one);
    }
    p->needed = p->p_raw + p->q_raw + p->p_packed + p->q_packed + p->p_keys + p->q_keys + p->work +
                p->bucket_work + (size_t)p->room * (8 + 8 + sizeof(gnomon_pair)) +
                gcu_filter_centre_bytes(coordinates(r)) + (1 << 20);
}

/* Rows that need no more than so many bytes: all of Q's and fewer of P's, or of either, the larger
 * side first, as both cross the link and are sorted once for each piece of the other. */
static bool fits(run *r, size_t bytes, bool whole_q)
{
    plan *p = &r->plan;
    *p = plan{};
    p->p_rows = gnomon_min(r->p.all.rows, GCU_FILTER_ROWS);
    p->q_rows = gnomon_min(r->q.all.rows, GCU_FILTER_ROWS);
    /* as many as there can be, or the usual, or a row's */
    const double all = (double)p->p_rows * (double)p->q_rows;
    const int64_t start = r->job->hashing ? MOST_ROOM : START_ROOM;
    const int64_t usual = all < (double)start ? (int64_t)all : start;
    p->room = usual > p->q_rows ? usual : p->q_rows;
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        const int64_t few = whole_q ? (int64_t)SMALL : (int64_t)GCU_FILTER_PAD;
        /* a band of fewer rows has all tables to go through again */
        const int64_t larger = p->p_rows > p->q_rows ? p->p_rows : p->q_rows;
        const int64_t enough = r->job->hashing ? 4 * larger : (int64_t)LEAST_ROOM;
        int64_t *const rows = whole_q || p->p_rows >= p->q_rows ? &p->p_rows : &p->q_rows;
        if (p->room > enough && p->room / 2 >= p->q_rows)
            p->room /= 2;
        else if (*rows > few)
            *rows = gnomon_round_up(*rows / 2, GCU_FILTER_PAD);
        else if (!whole_q && p->room > p->q_rows)
            p->room = p->room / 2 > p->q_rows ? p->room / 2 : p->q_rows;
        else
            return false;
    }
    return true;
}

static bool make_plan(run *r, size_t bytes)
{
    /* the rest is for keys, or for making them */
    if (r->job->hashing) bytes = bytes / 4 * 3;
    /* by hashing few of P's would have all of Q sorted as often */
    return (r->hashes.count == 0 && fits(r, bytes, true)) || fits(r, bytes, false);
}

static void free_all(run *r)
{
    void **const memory[] = {&r->p.raw,
                             &r->p.memory,
                             &r->q.raw,
                             &r->q.memory,
                             reinterpret_cast<void **>(&r->p.keys),
                             reinterpret_cast<void **>(&r->q.keys),
                             &r->centre_memory,
                             &r->limits_work,
                             &r->verify_work,
                             &r->bucket_work,
                             reinterpret_cast<void **>(&r->pairs),
                             reinterpret_cast<void **>(&r->distances),
                             reinterpret_cast<void **>(&r->out),
                             reinterpret_cast<void **>(&r->numbers)};
    for (void **data : memory) {
        gcu_free(*data, r->stream);
        *data = nullptr;
    }
    r->ready = false;
}

static cudaError_t alloc_all(run *r)
{
    const plan *p = &r->plan;
    const struct {
        void **data;
        size_t bytes;
    } all[] = {{&r->p.raw, p->p_raw},
               {&r->p.memory, p->p_packed},
               {&r->q.raw, p->q_raw},
               {&r->q.memory, p->q_packed},
               {reinterpret_cast<void **>(&r->p.keys), p->p_keys},
               {reinterpret_cast<void **>(&r->q.keys), p->q_keys},
               {&r->bucket_work, p->bucket_work},
               {&r->centre_memory, gcu_filter_centre_bytes(coordinates(r))},
               {&r->limits_work, gcu_filter_limits_work()},
               {&r->verify_work, p->work},
               {reinterpret_cast<void **>(&r->pairs), (size_t)p->room * 8},
               {reinterpret_cast<void **>(&r->distances), (size_t)p->room * 8},
               {reinterpret_cast<void **>(&r->out), (size_t)p->room * sizeof(gnomon_pair)},
               {reinterpret_cast<void **>(&r->numbers), NUMBERS * 8}};
    for (const auto &one : all) {
        const cudaError_t error = gcu_alloc(r->s, one.data, one.bytes, r->stream);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}

/* ---- pieces of a side ---- */

static gnomon_matrix rows_of(const gnomon_matrix *m, int64_t first, int64_t rows)
{
    gnomon_matrix part = *m;
    part.rows = rows;
    if (m->data)
        part.data = static_cast<char *>(m->data) +
                    first * m->row_stride * (int64_t)gnomon_dtype_size(m->dtype);
    return part;
}

/* Names the element that no join takes, if there was one. */
static gnomon_status find_fault(run *r, const side *x)
{
    unsigned long long at;
    GCU_TRY(r->why, cudaMemcpyAsync(&at, r->numbers + FAULT, 8, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    if (at == ~0ull) return GNOMON_OK;
    const int64_t row = (int64_t)at / x->all.cols, col = (int64_t)at % x->all.cols;
    unsigned char bytes[8] = {0};
    const int64_t size = (int64_t)gnomon_dtype_size(x->all.dtype);
    GCU_TRY(r->why, cudaMemcpy(bytes,
                               static_cast<const char *>(x->view.data) +
                                   (row * x->view.row_stride + col * x->view.col_stride) * size,
                               (size_t)size, cudaMemcpyDeviceToHost));
    /* of the types only F64 has numbers that are too large */
    double value = (double)NAN;
    if (x->all.dtype == GNOMON_F64) memcpy(&value, bytes, 8);
    gcu_about(r->job->host, x->name, x->first + row, col);
    if (isfinite(value))
        return gcu_fail(r->why, GNOMON_ERROR_UNSUPPORTED,
                        "%s has a magnitude above 2^500 in row %lld, column %lld", x->name,
                        (long long)(x->first + row), (long long)col);
    return gcu_fail(r->why, GNOMON_ERROR_NONFINITE,
                    "%s has NaN or infinity in row %lld, column %lld", x->name,
                    (long long)(x->first + row), (long long)col);
}

/* Rows [first, first + rows) on the GPU and packed. */
static gnomon_status bring(run *r, side *x, int64_t first, int64_t rows)
{
    const gnomon_matrix from = rows_of(&x->all, first, rows);
    x->first = first;
    x->view = from;
    if (x->place != GCU_DEVICE) {
        x->view = gcu_packed(&x->all, rows, x->all.cols);
        x->view.data = x->raw;
        const gnomon_status status =
            gcu_upload(r->s, r->transfer, &from, x->place, &x->view, r->stream, r->why);
        if (status != GNOMON_OK) return status;
    }
    if (!r->ready)
        GCU_TRY(r->why, gcu_filter_estimate_centre(r->job->metric, &x->view, r->centre_memory,
                                                   &r->centre, &r->s->gpu, r->stream));
    r->ready = true;
    GCU_TRY(r->why, cudaMemsetAsync(r->numbers + FAULT, 0xff, 8, r->stream));
    GCU_TRY(r->why, gcu_filter_pack(&r->centre, &x->view, x->memory, &x->points, r->numbers + FAULT,
                                    &r->s->gpu, r->stream));
    const size_t bytes = gcu_filter_pack_bytes(r->job->metric, rows, x->all.cols);
    x->limits = reinterpret_cast<float *>(static_cast<uint8_t *>(x->memory) + bytes);
    const gnomon_status status = find_fault(r, x);
    if (status != GNOMON_OK || r->hashes.count == 0) return status;
    return gcu_join_hashes_keys(r->s, r->job, &r->hashes, &x->view, x->keys, r->why);
}

static gnomon_status make_limits(run *r)
{
    GCU_TRY(r->why,
            gcu_filter_limits(&r->centre, &r->p.points, &r->q.points, nullptr, r->job->threshold,
                              r->p.limits, r->q.limits, r->limits_work, r->stream));
    return GNOMON_OK;
}

/* ---- a band ---- */

/* Pairs of P's piece's rows from 'row' on, at most up to 'end', with Q's piece: verified, in order,
 * in r->pairs and r->distances. How many rows, and pairs. */
static gnomon_status do_band(run *r, int64_t row, int64_t end, int64_t *rows, int64_t *kept)
{
    const int64_t room = r->plan.room;
    const int64_t above = r->self && !r->plan.one ? r->p.first - r->q.first : INT64_MIN;
    uint32_t *const q_keys = r->plan.one ? r->p.keys : r->q.keys;
    unsigned long long count = 0;
    for (;;) {
        *rows = gnomon_min(end - row, r->next_rows);
        if (r->hashes.count > 0 && r->job->band_rows > 0)
            *rows = gnomon_min(*rows, r->job->band_rows);
        GCU_TRY(r->why, cudaMemsetAsync(r->numbers, 0, 8, r->stream));
        const gcu_filter_call call = {&r->p.points, &r->q.points, r->p.limits, r->q.limits,
                                      row,          *rows,        r->plan.one};
        const gcu_filter_sink sink = {r->pairs, room, r->numbers + SURVIVORS};
        GCU_TRY(r->why, r->hashes.count > 0
                            ? gcu_join_hashes_band(&r->hashes, &call, r->p.keys, q_keys, above,
                                                   sink, r->numbers + SHARED, r->bucket_work,
                                                   &r->s->gpu, r->stream)
                            : gcu_filter(&call, sink, &r->s->gpu, r->stream));
        GCU_TRY(r->why, cudaMemcpyAsync(&count, r->numbers + SURVIVORS, 8, cudaMemcpyDeviceToHost,
                                        r->stream));
        GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
        if ((int64_t)count <= room) break;
        const double fit = (double)*rows * (double)room / (double)count * 0.875;
        r->next_rows = fit < 1 ? 1 : gnomon_min((int64_t)fit, *rows - 1);
    }
    const gcu_verify verify = {
        r->job->metric,      &r->p.view, &r->q.view,        r->p.points.inverse,
        r->q.points.inverse, nullptr,    r->job->threshold, above};
    GCU_TRY(r->why,
            gcu_verify_pairs(&verify, r->pairs, (int64_t)count, r->distances, r->numbers + KEPT,
                             r->verify_work, r->plan.work, &r->s->gpu, r->stream));
    unsigned long long left = 0, shared = 0;
    GCU_TRY(r->why,
            cudaMemcpyAsync(&left, r->numbers + KEPT, 8, cudaMemcpyDeviceToHost, r->stream));
    if (r->hashes.count > 0)
        GCU_TRY(r->why, cudaMemcpyAsync(&shared, r->numbers + SHARED, 8, cudaMemcpyDeviceToHost,
                                        r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    *kept = (int64_t)left;
    if ((int64_t)count < room / 4 && r->next_rows < r->p.all.rows) r->next_rows *= 2;
    /* pairs that were compared */
    const double all = (double)*rows * (double)r->q.points.rows;
    double scanned = all;
    if (r->hashes.count > 0) {
        scanned = (double)shared;
    } else if (r->plan.one) {
        const double before = (double)row, n = (double)r->q.points.rows, m = (double)*rows;
        scanned = m * (n - before - 1) - m * (m - 1) / 2;
    }
    r->job->compared += scanned < 0 ? 0 : (int64_t)scanned;
    r->job->verified += (int64_t)count;
    return GNOMON_OK;
}

/* ---- handing over ---- */

struct handing {
    run *r;
    int64_t end; /* rows that are complete after the last pair */
};

static gnomon_status hand_ordered(void *user, const void *data, int64_t count, bool last)
{
    const handing *h = static_cast<handing *>(user);
    const gnomon_join_host *calls = h->r->job->calls;
    const gnomon_pair *pairs = static_cast<const gnomon_pair *>(data);
    return calls->emit(calls->user, last ? h->end : pairs[count - 1].i, pairs, count);
}

/* Appends pairs of rows below r->end to those that wait. */
static gnomon_status keep_waiting(void *user, const void *data, int64_t count, bool)
{
    run *r = static_cast<handing *>(user)->r;
    const gnomon_pair *pairs = static_cast<const gnomon_pair *>(data);
    if (r->count + count > r->count_room) {
        const int64_t room = (r->count + count) / 2 * 3;
        void *more = realloc(r->waiting, (size_t)room * sizeof *pairs);
        if (!more)
            return gcu_fail(r->why, GNOMON_ERROR_MEMORY, "no memory for %lld pairs",
                            (long long)room);
        r->waiting = static_cast<gnomon_pair *>(more);
        r->count_room = room;
    }
    memcpy(r->waiting + r->count, pairs, (size_t)count * sizeof *pairs);
    r->count += count;
    return GNOMON_OK;
}

/* The band's pairs go out, or wait. */
static gnomon_status hand_band(run *r, int64_t kept, int64_t end, bool wait)
{
    handing h = {r, end};
    if (!r->job->want_pairs) {
        r->job->pairs += kept;
        return GNOMON_OK;
    }
    if (kept == 0)
        return wait ? GNOMON_OK : r->job->calls->emit(r->job->calls->user, end, nullptr, 0);
    GCU_TRY(r->why, gcu_join_pairs(r->pairs, r->distances, kept, r->p.first, r->q.first, r->out,
                                   r->stream));
    return gcu_download_each(r->s, r->transfer, r->out, kept, sizeof(gnomon_pair), r->stream,
                             wait ? keep_waiting : hand_ordered, &h, r->why);
}

static gnomon_status tell(const run *r, int64_t row)
{
    const gnomon_device_host *host = r->job->host;
    const int64_t rows = r->p.all.rows;
    return row < rows && host->progress(host->user, row, rows) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

/* All that is wrong is told before the first pair. */
static gnomon_status check(run *r)
{
    if (r->checked) return GNOMON_OK;
    r->checked = true;
    return r->job->calls->check(r->job->calls->user);
}

/* Rows of P that are to be joined here; false: no more. */
static bool next_rows(run *r, int64_t *first, int64_t *end)
{
    r->job->calls->rows(r->job->calls->user, first, end);
    return *first < *end;
}

/* ---- hashes ---- */

/* The plan of a join by hashing, of points where they lie. */
static gnomon_status plan_hashes(run *r, const gnomon_matrix *p, const gnomon_matrix *q)
{
    r->planned = true;
    return gcu_join_hashes_plan(r->s, r->job, p, r->self ? nullptr : q, &r->hashes,
                                r->numbers + SHARED, r->stream, r->why);
}

/* The same with all points on the GPU, and their keys, if there is room for them beside. */
static gnomon_status hash_all(run *r)
{
    plan with = r->plan;
    gnomon_status status = plan_hashes(r, &r->p.view, &r->q.view);
    if (status != GNOMON_OK || r->hashes.count == 0) return status;
    size_up(r, &with);
    const size_t more = with.p_keys + with.q_keys + with.bucket_work;
    const size_t most = r->s->memory_most, free = gcu_free_memory(r->s);
    r->again = most ? with.needed > most / 4 * 3 : more > free / 4 * 3;
    const struct {
        void **data;
        size_t bytes;
    } all[] = {{reinterpret_cast<void **>(&r->p.keys), with.p_keys},
               {reinterpret_cast<void **>(&r->q.keys), with.q_keys},
               {&r->bucket_work, with.bucket_work}};
    for (const auto &one : all) {
        if (r->again) return GNOMON_OK;
        const cudaError_t error = gcu_alloc(r->s, one.data, one.bytes, r->stream);
        r->again = error == cudaErrorMemoryAllocation;
        if (error != cudaSuccess && !r->again)
            return gcu_status(r->why, error, "taking memory for keys");
    }
    if (r->again) return GNOMON_OK;
    r->job->hashed = 1;
    status = gcu_join_hashes_keys(r->s, r->job, &r->hashes, &r->p.view, r->p.keys, r->why);
    if (status != GNOMON_OK || r->self) return status;
    return gcu_join_hashes_keys(r->s, r->job, &r->hashes, &r->q.view, r->q.keys, r->why);
}

/* ---- Q in one piece ---- */

/* Bands of P's rows [row, end), which are there. */
static gnomon_status do_rows(run *r, int64_t row, int64_t end)
{
    while (row < end) {
        int64_t count, kept;
        gnomon_status status = do_band(r, row - r->p.first, end - r->p.first, &count, &kept);
        if (status != GNOMON_OK) return status;
        row += count;
        status = hand_band(r, kept, row, false);
        if (status == GNOMON_OK) status = tell(r, row);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* P on the GPU as a whole, and what the join needs of it beside. */
static gnomon_status bring_all_of_p(run *r)
{
    gnomon_status status = bring(r, &r->p, 0, r->p.all.rows);
    if (r->plan.one) { /* the same points, with limits of their own */
        float *limits = static_cast<float *>(r->q.memory);
        r->q = r->p;
        r->q.raw = nullptr;
        r->q.memory = r->q.limits = limits;
        r->q.keys = nullptr;
    }
    if (status == GNOMON_OK) status = make_limits(r);
    if (status == GNOMON_OK && r->job->hashing && !r->planned) status = hash_all(r);
    return status;
}

static gnomon_status with_all_of_q(run *r)
{
    const int64_t each = r->plan.p_rows;
    const bool whole = each >= r->p.all.rows;
    gnomon_status status = whole ? GNOMON_OK : check(r);
    if (status == GNOMON_OK && !r->plan.one) status = bring(r, &r->q, 0, r->q.all.rows);
    if (status == GNOMON_OK && whole) status = bring_all_of_p(r);
    if (status != GNOMON_OK || r->again) return status;
    for (int64_t first, end; next_rows(r, &first, &end);) {
        if (whole) {
            status = do_rows(r, first, end);
            if (status != GNOMON_OK) return status;
            continue;
        }
        for (; first < end; first += each) {
            const int64_t some = gnomon_min(each, end - first);
            status = bring(r, &r->p, first, some);
            if (status == GNOMON_OK) status = make_limits(r);
            if (status == GNOMON_OK) status = do_rows(r, first, first + some);
            if (status != GNOMON_OK) return status;
        }
    }
    return GNOMON_OK;
}

/* ---- Q in pieces ---- */

static int64_t end_of(const run *r, size_t piece)
{
    return piece + 1 < r->starts.size() ? r->starts[piece + 1] : r->count;
}

/* Fewer rows where more pairs wait than may: those of the others are dropped. */
static void drop_rows(run *r, int64_t first)
{
    while (r->count > r->job->pair_room && r->end - first > 1) {
        r->end = first + (r->end - first) / 2;
        r->fit = r->end - first;
        int64_t kept = 0;
        for (size_t piece = 0; piece < r->starts.size(); piece++) {
            const int64_t end = end_of(r, piece), begin = r->starts[piece];
            r->starts[piece] = kept;
            for (int64_t at = begin; at < end && r->waiting[at].i < r->end; at++)
                r->waiting[kept++] = r->waiting[at];
        }
        r->count = kept;
    }
}

/* The pairs that wait, of rows from 'first' on: a row's of one piece after the other are in the
 * order of j. */
static gnomon_status hand_waiting(run *r, int64_t first)
{
    enum { BATCH = 1 << 16 };
    const gnomon_join_host *calls = r->job->calls;
    std::vector<int64_t> next = r->starts;
    std::vector<gnomon_pair> batch;
    batch.reserve(BATCH);
    for (int64_t row = first; row < r->end; row++)
        for (size_t piece = 0; piece < next.size(); piece++) {
            const int64_t end = end_of(r, piece);
            for (int64_t &at = next[piece]; at < end && r->waiting[at].i == row; at++) {
                if (batch.size() == BATCH) {
                    const gnomon_status status =
                        calls->emit(calls->user, batch.back().i, batch.data(), BATCH);
                    if (status != GNOMON_OK) return status;
                    batch.clear();
                }
                batch.push_back(r->waiting[at]);
            }
        }
    return calls->emit(calls->user, r->end, batch.data(), (int64_t)batch.size());
}

/* P's rows [first, r->end) with a piece of Q. */
static gnomon_status with_piece(run *r, int64_t first, int64_t q_first)
{
    gnomon_status status =
        bring(r, &r->q, q_first, gnomon_min(r->plan.q_rows, r->q.all.rows - q_first));
    r->starts.push_back(r->count);
    if (status == GNOMON_OK) status = make_limits(r);
    for (int64_t row = 0; status == GNOMON_OK && row < r->end - first;) {
        int64_t count, kept;
        status = do_band(r, row, r->end - first, &count, &kept);
        if (status != GNOMON_OK) break;
        row += count;
        status = hand_band(r, kept, 0, true);
        drop_rows(r, first);
    }
    return status;
}

/* P's rows [first, end), some at a time. */
static gnomon_status with_pieces(run *r, int64_t first, int64_t end)
{
    const int64_t band = r->hashes.count > 0 ? r->job->band_rows : 0;
    const int64_t most = band > 0 ? gnomon_min(r->plan.p_rows, band) : r->plan.p_rows;
    const int64_t each = r->plan.q_rows;
    gnomon_status status = GNOMON_OK;
    if (r->fit == 0) r->fit = most;
    for (; status == GNOMON_OK && first < end; first = r->end) {
        r->end = gnomon_min(first + r->fit, end);
        r->count = 0;
        r->starts.clear();
        status = bring(r, &r->p, first, r->end - first);
        int64_t at = r->self ? first / each * each : 0;
        for (; status == GNOMON_OK && at < r->q.all.rows; at += each)
            status = with_piece(r, first, at);
        if (status != GNOMON_OK) break;
        if (r->job->want_pairs) status = hand_waiting(r, first);
        if (r->count < r->job->pair_room / 4) r->fit = gnomon_min(2 * r->fit, most);
        if (status == GNOMON_OK) status = tell(r, r->end);
    }
    return status;
}

static gnomon_status with_pieces_of_q(run *r)
{
    gnomon_status status = check(r);
    r->fit = 0;
    for (int64_t first, end; status == GNOMON_OK && next_rows(r, &first, &end);)
        status = with_pieces(r, first, end);
    return status;
}

/* ---- the job ---- */

bool gcu_join_supported(gcu_state *, const gnomon_join_job *job, gcu_why why)
{
    const char *reason = nullptr;
    const double pairs = (double)job->p->rows * (double)(job->q ? job->q : job->p)->rows;
    if (!isfinite(job->threshold) && pairs > most_without)
        reason = "the closest of so many pairs without a threshold are found on the CPU";
    if (job->p->cols > 1 << 24)
        reason = "points of more than 2^24 coordinates are joined on the CPU";
    if (reason) gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", reason);
    return !reason;
}

static gnomon_status alloc(run *r)
{
    return gcu_alloc_planned(r, "tile of the join", make_plan, alloc_all, free_all);
}

/* Memory for pieces and their keys; where there is none for the least of them, and may be none, the
 * join is exact. */
static gnomon_status alloc_again(run *r)
{
    free_all(r);
    r->again = false;
    gnomon_status status = alloc(r);
    if (status == GNOMON_ERROR_MEMORY && r->job->hashing == GNOMON_JOIN_MAY_HASH) {
        const size_t said = strlen(r->job->why);
        snprintf(r->job->why + said, sizeof r->job->why - said,
                 "; there is no room for the keys of an LSH join");
        r->why.text[0] = 0;
        r->hashes.count = 0;
        status = alloc(r);
    }
    r->job->hashed = r->hashes.count > 0;
    return status;
}

/* The plan of points that are not on the GPU together. */
static gnomon_status plan_pieces(run *r)
{
    gnomon_matrix p = r->p.all, q = r->q.all;
    /* kernels read a sample of a peer's memory, too */
    p.memory = r->p.place >= GCU_PEER ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    q.memory = r->q.place >= GCU_PEER ? GNOMON_DEVICE_MEMORY : GNOMON_HOST;
    gnomon_status status = check(r);
    if (status == GNOMON_OK) status = plan_hashes(r, &p, &q);
    return status == GNOMON_OK && r->hashes.count > 0 ? alloc_again(r) : status;
}

static gnomon_status join_pieces(run *r)
{
    return r->plan.q_rows >= r->q.all.rows ? with_all_of_q(r) : with_pieces_of_q(r);
}

static gnomon_status work(run *r)
{
    gnomon_status status = gcu_place_of(r->s, &r->p.all, "p", &r->p.place, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, &r->q.all, "q", &r->q.place, r->why);
    if (status != GNOMON_OK || r->p.all.rows == 0 || r->q.all.rows == 0) return status;
    status = alloc(r);
    if (status != GNOMON_OK) return status;
    r->next_rows = r->p.all.rows;
    snprintf(r->job->why, sizeof r->job->why, "fp16 products on tensor cores");
    const bool pieces = r->plan.p_rows < r->p.all.rows || r->plan.q_rows < r->q.all.rows;
    if (r->job->hashing && pieces) status = plan_pieces(r);
    if (status == GNOMON_OK) status = join_pieces(r);
    if (status != GNOMON_OK || !r->again) return status;
    status = alloc_again(r);
    return status == GNOMON_OK ? join_pieces(r) : status;
}

gnomon_status gcu_join_job(gcu_state *s, gnomon_join_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.transfer = gcu_transfer_of(job);
    r.stream = s->stream;
    r.self = job->q == nullptr;
    r.p.name = "p";
    r.p.all = *job->p;
    r.q.name = r.self ? "p" : "q";
    r.q.all = r.self ? *job->p : *job->q;
    const gnomon_status status = work(&r);
    free_all(&r);
    free(r.waiting);
    const cudaError_t error = cudaStreamSynchronize(r.stream);
    return status == GNOMON_OK && error != cudaSuccess ? gcu_status(why, error, "kernels") : status;
}
