/* Similarity join, wherever the points lie.
 *
 * Where both sides fit into the GPU's memory, or Q does and P comes in pieces, a band of P's rows
 * meets all of Q: what passes the sieve (sieve.h) is put in order and settled there, and goes to
 * the core as it is. A band whose survivors don't fit is done again with fewer rows. Where Q comes
 * in pieces too, a piece of P meets one after the other, and its pairs wait on the host; should
 * they become too many, the later rows' are dropped, and come again with the next piece of P.
 *
 * A join by hashing has both sides there, and a band of rows meets others in buckets alone
 * (join_hashes.h); all else is the same. */
#include "cuda/join_hashes.h"
#include "cuda/take.h"
#include "cuda/transfer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROOM = 1 << 25, LEAST_ROOM = 1 << 20, START_ROOM = 1 << 23, SMALL = 8192 };

/* Pairs that may all be settled. */
static const double most_without = 1 << 26;

/* A side, and the piece of it that is on the GPU. */
struct side {
    const char *name;
    gnomon_matrix all;
    gcu_place place;
    int64_t rows; /* of a piece, at most */
    void *raw, *memory;
    float *limits;
    /* the piece: */
    int64_t first;
    gnomon_matrix view;
    gcu_sieve_points points;
};

struct plan {
    int64_t p_rows, q_rows, room; /* of pieces; survivors */
    bool one;                     /* a self-join in one piece */
    size_t p_raw, q_raw, p_packed, q_packed, work, needed;
};

struct run {
    gcu_state *s;
    gnomon_join_job *job;
    gnomon_sketch_job transfer; /* what transfers need of a job */
    gcu_why why;
    cudaStream_t stream;
    bool self;
    side p, q;
    plan plan;
    gcu_sieve_ground ground;
    bool settled; /* the ground is */
    gcu_join_hashes hashes;
    void *ground_memory, *limits_work, *settle_work;
    uint64_t *pairs;
    double *distances;
    gnomon_pair *out;
    unsigned long long *numbers; /* survivors, kept, a fault in P, in Q */
    int64_t turn;                /* rows of the next band */
    /* pairs of P's piece while Q's pieces come, of rows below 'end' */
    gnomon_pair *waiting;
    int64_t count, count_room, end;
};

enum { SURVIVORS, KEPT, FAULT, NUMBERS = 4 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t padded(int64_t rows)
{
    return (rows + GCU_SIEVE_PAD - 1) / GCU_SIEVE_PAD * GCU_SIEVE_PAD;
}

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
    return gcu_sieve_pack_bytes(r->job->metric, rows, x->all.cols) + (size_t)padded(rows) * 4;
}

static void size_up(run *r, plan *p)
{
    p->one = r->self && p->p_rows == r->p.all.rows && p->q_rows == r->p.all.rows;
    p->p_raw = raw_bytes(&r->p, p->p_rows);
    p->p_packed = packed_bytes(r, &r->p, p->p_rows);
    p->q_raw = p->one ? 0 : raw_bytes(&r->q, p->q_rows);
    /* a self-join in one piece has Q's limits beside */
    p->q_packed = p->one ? (size_t)padded(p->q_rows) * 4 : packed_bytes(r, &r->q, p->q_rows);
    p->work = gcu_settle_work(p->room);
    p->needed = p->p_raw + p->q_raw + p->p_packed + p->q_packed + p->work +
                (size_t)p->room * (8 + 8 + sizeof(gnomon_pair)) +
                gcu_sieve_ground_bytes(coordinates(r)) + (1 << 20);
}

static bool make_plan(run *r, size_t bytes)
{
    plan *p = &r->plan;
    *p = plan{};
    if (r->job->hashing) bytes = bytes / 4 * 3; /* the rest is for keys */
    p->p_rows = least(r->p.all.rows, GCU_SIEVE_ROWS);
    p->q_rows = least(r->q.all.rows, GCU_SIEVE_ROWS);
    /* as many as there can be, or the usual, or a row's */
    const double all = (double)p->p_rows * (double)p->q_rows;
    const int64_t start = r->job->hashing ? MOST_ROOM : START_ROOM;
    const int64_t usual = all < (double)start ? (int64_t)all : start;
    p->room = usual > p->q_rows ? usual : p->q_rows;
    for (size_up(r, p); p->needed > bytes; size_up(r, p)) {
        if ((p->room > LEAST_ROOM || r->job->hashing) && p->room / 2 >= p->q_rows)
            p->room /= 2;
        else if (p->p_rows > SMALL)
            p->p_rows = padded(p->p_rows / 2);
        else if (p->q_rows > SMALL)
            p->q_rows = padded(p->q_rows / 2);
        else if (p->p_rows > GCU_SIEVE_PAD)
            p->p_rows = padded(p->p_rows / 2);
        else if (p->q_rows > GCU_SIEVE_PAD)
            p->q_rows = padded(p->q_rows / 2);
        else if (p->room > p->q_rows)
            p->room = p->room / 2 > p->q_rows ? p->room / 2 : p->q_rows;
        else
            return false;
    }
    return true;
}

static void give_back(run *r)
{
    void **const memory[] = {&r->p.raw,
                             &r->p.memory,
                             &r->q.raw,
                             &r->q.memory,
                             &r->ground_memory,
                             &r->limits_work,
                             &r->settle_work,
                             reinterpret_cast<void **>(&r->pairs),
                             reinterpret_cast<void **>(&r->distances),
                             reinterpret_cast<void **>(&r->out),
                             reinterpret_cast<void **>(&r->numbers)};
    for (void **data : memory) {
        gcu_give(*data, r->stream);
        *data = nullptr;
    }
}

static cudaError_t take_all(run *r)
{
    const plan *p = &r->plan;
    const struct {
        void **data;
        size_t bytes;
    } all[] = {{&r->p.raw, p->p_raw},
               {&r->p.memory, p->p_packed},
               {&r->q.raw, p->q_raw},
               {&r->q.memory, p->q_packed},
               {&r->ground_memory, gcu_sieve_ground_bytes(coordinates(r))},
               {&r->limits_work, gcu_sieve_limits_work()},
               {&r->settle_work, p->work},
               {reinterpret_cast<void **>(&r->pairs), (size_t)p->room * 8},
               {reinterpret_cast<void **>(&r->distances), (size_t)p->room * 8},
               {reinterpret_cast<void **>(&r->out), (size_t)p->room * sizeof(gnomon_pair)},
               {reinterpret_cast<void **>(&r->numbers), NUMBERS * 8}};
    for (const auto &one : all) {
        const cudaError_t error = gcu_take(r->s, one.data, one.bytes, r->stream);
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
static gnomon_status look_for_fault(run *r, const side *x)
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
            gcu_upload(r->s, &r->transfer, &from, x->place, &x->view, r->stream, r->why);
        if (status != GNOMON_OK) return status;
    }
    if (!r->settled)
        GCU_TRY(r->why, gcu_sieve_settle_ground(r->job->metric, &x->view, r->ground_memory,
                                                &r->ground, &r->s->gpu, r->stream));
    r->settled = true;
    GCU_TRY(r->why, cudaMemsetAsync(r->numbers + FAULT, 0xff, 8, r->stream));
    GCU_TRY(r->why, gcu_sieve_pack(&r->ground, &x->view, x->memory, &x->points, r->numbers + FAULT,
                                   &r->s->gpu, r->stream));
    const size_t bytes = gcu_sieve_pack_bytes(r->job->metric, rows, x->all.cols);
    x->limits = reinterpret_cast<float *>(static_cast<uint8_t *>(x->memory) + bytes);
    return look_for_fault(r, x);
}

static gnomon_status make_limits(run *r)
{
    GCU_TRY(r->why,
            gcu_sieve_limits(&r->ground, &r->p.points, &r->q.points, nullptr, r->job->threshold,
                             r->p.limits, r->q.limits, r->limits_work, r->stream));
    return GNOMON_OK;
}

/* ---- a band ---- */

/* Pairs of P's piece's rows from 'row' on, at most up to 'end', with Q's piece: settled, in order,
 * in r->pairs and r->distances. How many rows, and pairs. */
static gnomon_status do_band(run *r, int64_t row, int64_t end, int64_t *rows, int64_t *kept)
{
    const int64_t room = r->plan.room;
    unsigned long long count = 0;
    for (;;) {
        *rows = least(end - row, r->turn);
        if (r->hashes.count > 0 && r->job->band_rows > 0) *rows = least(*rows, r->job->band_rows);
        GCU_TRY(r->why, cudaMemsetAsync(r->numbers, 0, 8, r->stream));
        const gcu_sieve_call call = {&r->p.points, &r->q.points, r->p.limits, r->q.limits,
                                     row,          *rows,        r->plan.one};
        const gcu_sieve_sink sink = {r->pairs, room, r->numbers + SURVIVORS};
        GCU_TRY(r->why, r->hashes.count > 0
                            ? gcu_join_hashes_band(&r->hashes, &call, sink, &r->s->gpu, r->stream)
                            : gcu_sieve(&call, sink, &r->s->gpu, r->stream));
        GCU_TRY(r->why, cudaMemcpyAsync(&count, r->numbers + SURVIVORS, 8, cudaMemcpyDeviceToHost,
                                        r->stream));
        GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
        if ((int64_t)count <= room) break;
        const double fit = (double)*rows * (double)room / (double)count * 0.875;
        r->turn = fit < 1 ? 1 : least((int64_t)fit, *rows - 1);
    }
    const gcu_settle settle = {
        r->job->metric,      &r->p.view,
        &r->q.view,          r->p.points.inverse,
        r->q.points.inverse, nullptr,
        r->job->threshold,   r->self && !r->plan.one ? r->p.first - r->q.first : INT64_MIN};
    GCU_TRY(r->why,
            gcu_settle_pairs(&settle, r->pairs, (int64_t)count, r->distances, r->numbers + KEPT,
                             r->settle_work, r->plan.work, &r->s->gpu, r->stream));
    unsigned long long left = 0, shared = 0;
    GCU_TRY(r->why,
            cudaMemcpyAsync(&left, r->numbers + KEPT, 8, cudaMemcpyDeviceToHost, r->stream));
    if (r->hashes.count > 0)
        GCU_TRY(r->why,
                cudaMemcpyAsync(&shared, r->hashes.compared, 8, cudaMemcpyDeviceToHost, r->stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->stream));
    *kept = (int64_t)left;
    if ((int64_t)count < room / 4 && r->turn < r->p.all.rows) r->turn *= 2;
    /* pairs that were looked at */
    const double all = (double)*rows * (double)r->q.points.rows;
    double looked = all;
    if (r->hashes.count > 0) {
        looked = (double)shared;
    } else if (r->plan.one) {
        const double before = (double)row, n = (double)r->q.points.rows, m = (double)*rows;
        looked = m * (n - before - 1) - m * (m - 1) / 2;
    }
    r->job->compared += looked < 0 ? 0 : (int64_t)looked;
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
    return calls->take(calls->user, last ? h->end : pairs[count - 1].i, pairs, count,
                       GNOMON_JOIN_IN_ORDER);
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
    if (!r->job->want_pairs && !wait) {
        r->job->pairs += kept;
        return GNOMON_OK;
    }
    if (kept == 0)
        return wait ? GNOMON_OK
                    : r->job->calls->take(r->job->calls->user, end, nullptr, 0,
                                          GNOMON_JOIN_IN_ORDER);
    GCU_TRY(r->why, gcu_join_pairs(r->pairs, r->distances, kept, r->p.first, r->q.first, r->out,
                                   r->stream));
    return gcu_download_each(r->s, &r->transfer, r->out, kept, sizeof(gnomon_pair), r->stream,
                             wait ? keep_waiting : hand_ordered, &h, r->why);
}

static gnomon_status tell(const run *r, int64_t row)
{
    const gnomon_device_host *host = r->job->host;
    const int64_t rows = r->p.all.rows;
    return row < rows && host->progress(host->user, row, rows) ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

/* ---- Q in one piece ---- */

static gnomon_status with_all_of_q(run *r)
{
    const int64_t rows = r->p.all.rows, each = r->plan.p_rows;
    const bool whole = r->plan.one || (r->job->hashing && each >= rows);
    int64_t first = whole ? 0 : r->job->first_row;
    /* all that is wrong is told before the first pair */
    if (each < rows - first) {
        const gnomon_status status = r->job->calls->check(r->job->calls->user);
        if (status != GNOMON_OK) return status;
    }
    if (!r->plan.one) {
        const gnomon_status status = bring(r, &r->q, 0, r->q.all.rows);
        if (status != GNOMON_OK) return status;
    }
    for (; first < rows; first += each) {
        const int64_t some = least(each, rows - first);
        gnomon_status status = bring(r, &r->p, first, some);
        if (r->plan.one) { /* the same points, with limits of their own */
            float *limits = static_cast<float *>(r->q.memory);
            r->q = r->p;
            r->q.raw = nullptr;
            r->q.memory = r->q.limits = limits;
        }
        if (status == GNOMON_OK) status = make_limits(r);
        if (status == GNOMON_OK && whole && r->job->hashing)
            status = gcu_join_hashes_open(r->s, r->job, &r->p.view, r->self ? nullptr : &r->q.view,
                                          &r->hashes, r->stream, r->why);
        for (int64_t row = whole ? r->job->first_row : 0; row < some && status == GNOMON_OK;) {
            int64_t count, kept;
            status = do_band(r, row, some, &count, &kept);
            if (status != GNOMON_OK) break;
            row += count;
            status = hand_band(r, kept, first + row, false);
            if (status == GNOMON_OK) status = tell(r, first + row);
        }
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* ---- Q in pieces ---- */

/* Fewer rows where more pairs wait than may: those of the others are dropped. */
static void drop_rows(run *r, int64_t first)
{
    while (r->count > r->job->pair_room && r->end - first > 1) {
        r->end = first + (r->end - first) / 2;
        int64_t kept = 0;
        for (int64_t at = 0; at < r->count; at++)
            if (r->waiting[at].i < r->end) r->waiting[kept++] = r->waiting[at];
        r->count = kept;
    }
}

/* P's rows [first, r->end) with a piece of Q. */
static gnomon_status with_piece(run *r, int64_t first, int64_t q_first)
{
    gnomon_status status = bring(r, &r->q, q_first, least(r->plan.q_rows, r->q.all.rows - q_first));
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

static gnomon_status with_pieces_of_q(run *r)
{
    const gnomon_join_host *calls = r->job->calls;
    const int64_t rows = r->p.all.rows, each = r->plan.q_rows;
    gnomon_status status = calls->check(calls->user);
    for (int64_t first = r->job->first_row; status == GNOMON_OK && first < rows; first = r->end) {
        r->end = least(first + r->plan.p_rows, rows);
        r->count = 0;
        status = bring(r, &r->p, first, r->end - first);
        int64_t at = r->self ? first / each * each : 0;
        for (; status == GNOMON_OK && at < r->q.all.rows; at += each)
            status = with_piece(r, first, at);
        if (status != GNOMON_OK) break;
        if (r->job->want_pairs)
            status = calls->take(calls->user, r->end, r->waiting, r->count, GNOMON_JOIN_SETTLED);
        else
            r->job->pairs += r->count;
        if (status == GNOMON_OK) status = tell(r, r->end);
    }
    return status;
}

/* ---- the job ---- */

/* Whether both sides fit, with a few hundred bytes of keys a point. */
static bool has_room(gcu_state *s, const gnomon_join_job *job)
{
    const gnomon_matrix *const sides[] = {job->p, job->q};
    double bytes = 0;
    for (const gnomon_matrix *m : sides) {
        if (!m) continue;
        bytes +=
            (double)gcu_sieve_pack_bytes(job->metric, m->rows, m->cols) + 300.0 * (double)m->rows;
        if (m->memory == GNOMON_HOST)
            bytes += (double)m->rows * (double)m->cols * (double)gnomon_dtype_size(m->dtype);
    }
    return bytes < (double)gcu_free_memory(s) * 0.9;
}

bool gcu_join_supported(gcu_state *s, const gnomon_join_job *job, gcu_why why)
{
    const char *reason = nullptr;
    if (job->hashing == GNOMON_JOIN_MUST_HASH && !has_room(s, job))
        reason = "an LSH join there has all points in the GPU's memory, where these don't fit";
    const double pairs = (double)job->p->rows * (double)(job->q ? job->q : job->p)->rows;
    if (!isfinite(job->threshold) && pairs > most_without)
        reason = "the closest of so many pairs without a threshold are found on the CPU";
    if (job->p->cols > 1 << 24)
        reason = "points of more than 2^24 coordinates are joined on the CPU";
    if (reason) gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", reason);
    return !reason;
}

static gnomon_status work(run *r)
{
    gnomon_status status = gcu_place_of(r->s, &r->p.all, "p", &r->p.place, r->why);
    if (status == GNOMON_OK) status = gcu_place_of(r->s, &r->q.all, "q", &r->q.place, r->why);
    if (status != GNOMON_OK || r->p.all.rows == 0 || r->q.all.rows == 0) return status;
    status = gcu_take_planned(r, "tile of the join", make_plan, take_all, give_back);
    if (status != GNOMON_OK) return status;
    r->turn = r->p.all.rows;
    snprintf(r->job->why, sizeof r->job->why, "fp16 products on tensor cores");
    const bool q_whole = r->plan.q_rows >= r->q.all.rows;
    if (r->job->hashing && !(q_whole && r->plan.p_rows >= r->p.all.rows)) {
        const char *reason = "an LSH join needs all points in the GPU's memory";
        if (r->job->hashing == GNOMON_JOIN_MUST_HASH)
            return gcu_fail(r->why, GNOMON_ERROR_MEMORY, "%s", reason);
        const size_t said = strlen(r->job->why);
        snprintf(r->job->why + said, sizeof r->job->why - said, "; %s", reason);
    }
    return q_whole ? with_all_of_q(r) : with_pieces_of_q(r);
}

gnomon_status gcu_join_job(gcu_state *s, gnomon_join_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.transfer.host = job->host;
    r.transfer.memory_limit = job->memory_limit;
    r.stream = s->stream;
    r.self = job->q == nullptr;
    r.p.name = "p";
    r.p.all = *job->p;
    r.q.name = r.self ? "p" : "q";
    r.q.all = r.self ? *job->p : *job->q;
    const gnomon_status status = work(&r);
    gcu_join_hashes_close(&r.hashes, r.stream);
    give_back(&r);
    free(r.waiting);
    const cudaError_t error = cudaStreamSynchronize(r.stream);
    return status == GNOMON_OK && error != cudaSuccess ? gcu_status(why, error, "kernels") : status;
}
