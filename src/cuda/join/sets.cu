/* The job: sets are brought, meet, and their pairs go to the core in order.
 *
 * A self-join is tried as one: each set meets those before it in the order of sizes, so that its
 * lists are short and each pair meets once. Where the pairs have no room, and where Q is another
 * side, P's rows meet Q in bands: a band whose pairs don't fit is done again with fewer rows. */
#include "cuda/join/sets.h"

#include "base/arithmetic.h"

#include <math.h>
#include <stdio.h>

static const int64_t most_found = 1 << 24, most_left = 1 << 23, most_askers = 1 << 24;
static const int64_t most_step = 1 << 30, least_room = 1 << 14;
/* Entries and rows: numbers of 32 bits with some to spare. */
static const double most_entries = 0x7ff00000;

/* Pairs that may all be verified. */
static const double most_without = 1 << 26;

struct run {
    gcu_state *s;
    gnomon_join_job *job;
    gcu_why why;
    gcu_set_memory memory;
    gcu_transfer transfer;
    size_t bytes; /* of the GPU's memory that may be taken */
    bool self;
    int64_t p_rows, q_rows;
    gcu_sets sets;
    gcu_set_sides sides;
    int64_t *askers; /* of P's sets: sums */
    gcu_set_run asking;
    int64_t asking_room;
    gcu_set_pair *left;
    int64_t left_room, step; /* pairs that are met at a time */
    uint64_t *keys[2];
    uint32_t *shared[2];
    gnomon_pair *out;
    int64_t found_room, found;
    unsigned long long *numbers; /* left, found; where P's sets are cut */
};

enum { LEFT, FOUND, CUT, NUMBERS = 4 };

static int64_t between(int64_t low, int64_t x, int64_t high)
{
    return x < low ? low : x < high ? x : high;
}

static gnomon_status read_numbers(run *r, unsigned long long *numbers)
{
    GCU_TRY(r->why, cudaMemcpyAsync(numbers, r->numbers, NUMBERS * 8, cudaMemcpyDeviceToHost,
                                    r->memory.stream));
    GCU_TRY(r->why, cudaStreamSynchronize(r->memory.stream));
    return GNOMON_OK;
}

/* ---- making ready ---- */

/* Bounds, askers and lists for a way of meeting; what an earlier one took has been given back. */
static gnomon_status make_sides(run *r, gcu_set_pairing pairing)
{
    gcu_set_memory *m = &r->memory;
    gcu_set_sides *x = &r->sides;
    gcu_set *p = nullptr, *q = nullptr;
    *x = gcu_set_sides{};
    x->pairing = pairing;
    x->limit = r->job->threshold;
    x->all = x->limit >= 1;
    x->members = r->sets.members;
    x->q_count = r->q_rows;
    gnomon_status status = gcu_set_room(m, r->q_rows, &q);
    if (status == GNOMON_OK)
        status = gcu_set_order(m, &r->sets, r->self ? 0 : r->p_rows, r->q_rows, !x->all, q);
    x->p = x->q = q;
    if (pairing != GCU_SETS_PRECEDING) {
        if (status == GNOMON_OK) status = gcu_set_room(m, r->p_rows, &p);
        if (status == GNOMON_OK) status = gcu_set_order(m, &r->sets, 0, r->p_rows, false, p);
        x->p = p;
    }
    if (status == GNOMON_OK) status = gcu_set_room(m, r->p_rows + 1, &r->askers);
    if (status == GNOMON_OK && !x->all) {
        gcu_set_bounds *b = &x->bounds;
        b->most = r->sets.most > 0 ? r->sets.most : 1;
        status = gcu_set_room(m, 2 * b->most + 1, &b->need);
        if (status == GNOMON_OK) status = gcu_set_room(m, b->most + 1, &b->low);
        if (status == GNOMON_OK) status = gcu_set_room(m, b->most + 1, &b->reach);
        if (status == GNOMON_OK) status = gcu_set_room(m, b->most + 2, &b->first);
        if (status == GNOMON_OK) status = gcu_set_make_bounds(m, x->limit, q, r->q_rows, b);
        if (status == GNOMON_OK) status = gcu_set_make_lists(m, x, r->sets.numbers);
    }
    return status == GNOMON_OK ? gcu_set_askers(m, x, r->p_rows, r->askers) : status;
}

/* Room for those who ask, those who are left and those who are found, of what is free. */
static gnomon_status make_room(run *r)
{
    gcu_set_memory *m = &r->memory;
    const double each_asker = 4 + 4 + 4 + 8, each_left = sizeof(gcu_set_pair);
    const double each_found = 2 * (8 + 4) + sizeof(gnomon_pair) + 2;
    const double bytes = r->bytes > m->bytes ? (double)(r->bytes - m->bytes) : 0;
    const double all = (double)r->p_rows * (double)r->q_rows;
    const int64_t askers = r->sets.entries + r->p_rows + 1;
    /* a single set's always fit */
    const int64_t many = r->sets.most > least_room ? r->sets.most : least_room;
    const int64_t most = many > most_askers ? many : most_askers;
    r->asking_room = gnomon_min(askers, between(many, (int64_t)(bytes / 4 / each_asker), most));
    r->left_room = between(least_room, (int64_t)(bytes / 4 / each_left), most_left);
    r->found_room = between(least_room, (int64_t)(bytes / 2.5 / each_found), most_found);
    if (r->found_room < r->q_rows) r->found_room = r->q_rows;
    if ((double)r->found_room > all) r->found_room = (int64_t)all;
    if (!r->job->want_pairs) r->found_room = 0;
    r->step = 8 * r->left_room;
    gcu_set_run *a = &r->asking;
    gnomon_status status = gcu_set_room(m, r->asking_room, &a->set);
    if (status == GNOMON_OK) status = gcu_set_room(m, r->asking_room, &a->place);
    if (status == GNOMON_OK) status = gcu_set_room(m, r->asking_room, &a->begin);
    if (status == GNOMON_OK) status = gcu_set_room(m, r->asking_room + 1, &a->starts);
    if (status == GNOMON_OK) status = gcu_set_room(m, r->left_room, &r->left);
    for (int i = 0; i < 2; i++) {
        if (status == GNOMON_OK) status = gcu_set_room(m, r->found_room, &r->keys[i]);
        if (status == GNOMON_OK) status = gcu_set_room(m, r->found_room, &r->shared[i]);
    }
    if (status == GNOMON_OK) status = gcu_set_room(m, r->found_room, &r->out);
    return status;
}

/* ---- meeting ---- */

/* The runs that are asked for, end to end: r->step of their places at a time. */
static gnomon_status scan_runs(run *r, bool *fits)
{
    const cudaStream_t stream = r->memory.stream;
    const gcu_set_run *a = &r->asking;
    int64_t all = 0;
    GCU_TRY(r->why, cudaMemcpyAsync(&all, a->starts + a->count, 8, cudaMemcpyDeviceToHost, stream));
    GCU_TRY(r->why, cudaStreamSynchronize(stream));
    for (int64_t from = 0; from < all && *fits;) {
        const int64_t some = gnomon_min(all - from, r->step);
        unsigned long long numbers[NUMBERS];
        GCU_TRY(r->why, cudaMemsetAsync(r->numbers + LEFT, 0, 8, stream));
        GCU_TRY(r->why, gcu_set_candidates(&r->sides, a, from, some, r->left, r->left_room,
                                           r->numbers + LEFT, stream));
        gnomon_status status = read_numbers(r, numbers);
        if (status != GNOMON_OK) return status;
        const int64_t left = (int64_t)numbers[LEFT];
        if (left > r->left_room) {
            const double fit = 0.875 * (double)some * (double)r->left_room / (double)left;
            r->step = between(r->left_room, (int64_t)fit, some - 1);
            continue;
        }
        GCU_TRY(r->why, gcu_set_verify(&r->sides, r->left, left,
                                       r->job->want_pairs ? r->keys[0] : nullptr, r->shared[0],
                                       r->found_room, r->numbers + FOUND, r->s->gpu.sms, stream));
        status = read_numbers(r, numbers);
        if (status != GNOMON_OK) return status;
        r->found = (int64_t)numbers[FOUND];
        *fits = !r->job->want_pairs || r->found <= r->found_room;
        from += some;
        r->job->compared += some;
        if (left < r->left_room / 4 && some == r->step && r->step < most_step) r->step *= 2;
    }
    return GNOMON_OK;
}

static gnomon_status tell(const run *r, int64_t row)
{
    const gnomon_device_host *host = r->job->host;
    return row < r->p_rows && host->progress(host->user, row, r->p_rows) ? GNOMON_ERROR_CANCELLED
                                                                         : GNOMON_OK;
}

/* P's sets [first, end) meet; *done: up to which they did before their pairs did not fit. */
static gnomon_status candidates(run *r, int64_t first, int64_t end, int64_t *done, bool *fits)
{
    const cudaStream_t stream = r->memory.stream;
    gcu_set_run *a = &r->asking;
    r->found = 0;
    *fits = true;
    GCU_TRY(r->why, cudaMemsetAsync(r->numbers, 0, NUMBERS * 8, stream));
    for (*done = first; *done < end && *fits; *done = a->end) {
        unsigned long long numbers[NUMBERS];
        GCU_TRY(r->why, gcu_set_cut(r->askers, *done, end, r->asking_room,
                                    reinterpret_cast<int64_t *>(r->numbers + CUT), stream));
        gnomon_status status = read_numbers(r, numbers);
        if (status != GNOMON_OK) return status;
        a->first = *done;
        a->end = (int64_t)numbers[CUT];
        a->count = (int64_t)numbers[CUT + 1];
        GCU_TRY(r->why, gcu_set_ask(&r->sides, r->askers, a, stream));
        status = gcu_set_sum(&r->memory, a->starts, a->count + 1);
        if (status == GNOMON_OK) status = scan_runs(r, fits);
        if (status == GNOMON_OK && a->end < end) status = tell(r, a->end);
        if (status != GNOMON_OK) return status;
    }
    return GNOMON_OK;
}

/* ---- handing over ---- */

struct handing {
    const gnomon_join_host *calls;
    int64_t end; /* rows that are complete after the last pair */
};

static gnomon_status hand_some(void *user, const void *data, int64_t count, bool last)
{
    const handing *h = static_cast<handing *>(user);
    const gnomon_pair *pairs = static_cast<const gnomon_pair *>(data);
    return h->calls->emit(h->calls->user, last ? h->end : pairs[count - 1].i, pairs, count);
}

/* What was found goes out; rows below 'end' are complete with it. */
static gnomon_status hand_over(run *r, int64_t end)
{
    handing h = {r->job->calls, end};
    gnomon_status status = GNOMON_OK;
    if (!r->job->want_pairs) {
        r->job->pairs += r->found;
    } else if (r->found == 0) {
        status = h.calls->emit(h.calls->user, end, nullptr, 0);
    } else {
        status = gcu_set_sort_pairs(&r->memory, r->keys, r->shared, r->found, 0,
                                    32 + gcu_set_bits(r->p_rows));
        if (status != GNOMON_OK) return status;
        GCU_TRY(r->why, gcu_set_pairs(&r->sets, r->self ? 0 : r->p_rows, r->keys[1], r->shared[1],
                                      r->found, r->out, r->memory.stream));
        status = gcu_download_each(r->s, r->transfer, r->out, r->found, sizeof(gnomon_pair),
                                   r->memory.stream, hand_some, &h, r->why);
    }
    return status == GNOMON_OK ? tell(r, end) : status;
}

/* ---- the job ---- */

/* Rows [row, end) in bands of *band rows. */
static gnomon_status in_bands(run *r, int64_t row, int64_t end, int64_t *size)
{
    int64_t band = *size;
    while (row < end) {
        const int64_t rows = gnomon_min(band, end - row);
        int64_t done;
        bool fits;
        gnomon_status status = candidates(r, row, row + rows, &done, &fits);
        if (status != GNOMON_OK) return status;
        if (!fits) {
            band = (rows + 1) / 2;
            continue;
        }
        row += rows;
        status = hand_over(r, row);
        if (status != GNOMON_OK) return status;
        if (r->found < r->found_room / 4 && band < r->p_rows) band *= 2;
    }
    *size = band;
    return GNOMON_OK;
}

/* All pairs of a self-join; when they don't fit, *band: how many rows' pairs may. */
static gnomon_status at_once(run *r, bool *fits, int64_t *band)
{
    int64_t done;
    const gnomon_status status = candidates(r, 0, r->p_rows, &done, fits);
    if (status != GNOMON_OK) return status;
    if (*fits) return hand_over(r, r->p_rows);
    const double share = (double)done / (double)r->p_rows;
    const double rows = share * share * (double)r->found_room / (double)r->found;
    *band = between(1, (int64_t)(0.5 * rows * (double)r->p_rows), r->p_rows);
    return GNOMON_OK;
}

static gnomon_status work(run *r)
{
    const gnomon_join_job *job = r->job;
    gcu_set_memory *m = &r->memory;
    bool faulty = false, fits = false;
    int64_t band = r->p_rows, first, end;
    gnomon_status status = gcu_set_room(m, NUMBERS, &r->numbers);
    if (status == GNOMON_OK)
        status = gcu_sets_bring(m, r->transfer, job->p_sets, job->q_sets, &r->sets, &faulty);
    if (status != GNOMON_OK) return status;
    if (faulty) {
        status = job->calls->check(job->calls->user);
        if (status != GNOMON_OK) return status;
        return gcu_fail(r->why, GNOMON_ERROR_INTERNAL, "sets that the core takes were refused");
    }
    if (r->p_rows == 0 || r->q_rows == 0) return GNOMON_OK;
    const bool all = job->threshold >= 1;
    snprintf(r->job->why, sizeof r->job->why, "%s",
             all ? "all sets meet" : "sets meet in the lists of their rarest members");
    const int held = m->count;
    job->calls->rows(job->calls->user, &first, &end);
    if (r->self && !all && first == 0 && end == r->p_rows) {
        status = make_sides(r, GCU_SETS_PRECEDING);
        if (status == GNOMON_OK) status = make_room(r);
        if (status == GNOMON_OK) status = at_once(r, &fits, &band);
        if (status != GNOMON_OK || fits) return status;
        gcu_set_free(m, held);
    }
    status = make_sides(r, r->self ? GCU_SETS_LATER : GCU_SETS_EACH);
    if (status == GNOMON_OK) status = make_room(r);
    while (status == GNOMON_OK && first < end) {
        status = in_bands(r, first, end, &band);
        job->calls->rows(job->calls->user, &first, &end);
    }
    return status;
}

/* What a join of these takes at least, in bytes: sets as they come, then lists and sizes. */
static double bytes_for(const gnomon_join_job *job)
{
    double entries = 0, rows = 0;
    for (const gnomon_csr *csr : {job->p_sets, job->q_sets}) {
        if (!csr) continue;
        entries += (double)gcu_set_entries(csr);
        rows += (double)csr->rows;
    }
    const double cols = (double)job->p_sets->cols;
    const double numbers = cols < 65536 || cols < 2 * entries ? cols : entries + 1;
    const double brought = gcu_sets_bytes(job->p_sets, job->q_sets) + 4 * entries + 8 * rows;
    const double listed = 44 * (entries + rows) + 40 * rows + 4 * numbers;
    return (brought > listed ? brought : listed) + 40 * (double)least_room;
}

bool gcu_join_sets_supported(gcu_state *s, const gnomon_join_job *job, gcu_why why)
{
    const gnomon_csr *p = job->p_sets, *q = job->q_sets ? job->q_sets : job->p_sets;
    const char *reason = nullptr;
    double all = (double)gcu_set_entries(p) + (double)p->rows;
    if (q != p) all += (double)gcu_set_entries(q) + (double)q->rows;
    if (job->hashing == GNOMON_JOIN_MUST_HASH)
        reason = "an LSH join of sets runs on the CPU; an exact one can be had here";
    else if (!isfinite(job->threshold) && (double)p->rows * (double)q->rows > most_without)
        reason = "the closest of so many pairs without a threshold are found on the CPU";
    else if (all > most_entries)
        reason = "sets of more than 2^31 members in all are joined on the CPU";
    else if (bytes_for(job) > (double)gcu_free_memory(s))
        reason = "the sets don't fit in the GPU's memory";
    if (reason) gcu_fail(why, GNOMON_ERROR_DEVICE, "%s", reason);
    return !reason;
}

gnomon_status gcu_join_sets(gcu_state *s, gnomon_join_job *job, gcu_why why)
{
    run r = {};
    r.s = s;
    r.job = job;
    r.why = why;
    r.memory.s = s;
    r.memory.why = why;
    r.memory.stream = s->stream;
    r.transfer = gcu_transfer_of(job);
    r.bytes = gcu_free_memory(s) / 16 * 15;
    r.self = job->q_sets == nullptr;
    r.p_rows = job->p_sets->rows;
    r.q_rows = r.self ? r.p_rows : job->q_sets->rows;
    const gnomon_status status = work(&r);
    gcu_set_free(&r.memory, 0);
    const cudaError_t error = cudaStreamSynchronize(s->stream);
    return status == GNOMON_OK && error != cudaSuccess ? gcu_status(why, error, "kernels") : status;
}
