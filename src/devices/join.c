/* A join by several devices. Rows of P are dealt out in order, some at a time, to whichever device
 * asks, and each meets all of Q. The rows that come first in order are handed on as they are found;
 * pairs of later ones wait here, and a device that has found more than may wait stops until those
 * before are handed on. */
#include "devices/devices.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "join/job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications and additions of the rows that are dealt at a time, at best: milliseconds of a
 * large GPU. A device is dealt rows at least so often, and at most. */
static const double deal_flops = 1e12;
enum { DEALS_LEAST = 3, DEALS_MOST = 16, DEALS = GNOMON_DEVICES_MOST * 4096 };

/* Rows [first, end), dealt to a device. */
typedef struct deal {
    int64_t first, end;
    int64_t done; /* rows below are complete */
    bool busy;    /* its device is putting pairs here */
    gnomon_pair *pairs;
    int64_t count, room;
} deal;

typedef struct joining {
    gnomon_shares parts;
    gnomon_join_job *job;
    gnomon_join_job of[GNOMON_DEVICES_MOST];
    gnomon_join_host calls[GNOMON_DEVICES_MOST];
    struct dealer {
        struct joining *all;
        gnomon_share *part;
        deal *now; /* NULL: none yet */
    } dealer[GNOMON_DEVICES_MOST];

    int64_t p_rows, q_rows;
    bool self;
    int64_t room;      /* pairs that may wait here */
    int64_t next, end; /* rows that are not dealt yet */
    double work;       /* of a deal: pairs of rows */
    int64_t handed;    /* P's rows whose pairs are */
    int64_t found;     /* pairs of complete deals */
    int64_t waiting;   /* pairs that do */
    deal *deals;       /* those dealt, in order; before 'head' all is handed on */
    int64_t count, head;
    bool ended;  /* a call of the core's has failed: no more */
    bool broken; /* a device has failed, and its rows will not come */
    bool full;   /* there was no memory for pairs */
    /* what is asked of the core once */
    bool planned, scanned;
    gnomon_status plan_status, scan_status;
    gnomon_join_tables tables;
} joining;

/* ---- dealing ---- */

/* Where rows from 'first' on have met so many pairs. */
static int64_t end_of(const joining *j, int64_t first, double pairs)
{
    const double n = (double)j->q_rows;
    double rows = pairs / n;
    if (j->self) { /* row i meets n - 1 - i */
        const double left = n - (double)first;
        const double rest = left * left - 2 * pairs;
        rows = rest > 0 ? left - sqrt(rest) : left;
    }
    if (!(rows < (double)(j->end - first))) return j->end;
    const int64_t end = gnomon_round_up(first + gnomon_max((int64_t)rows, 1), 128);
    return gnomon_min(end, j->end);
}

static double work_of(const joining *j)
{
    const double rows = (double)(j->end - j->next), n = (double)j->q_rows;
    if (!j->self) return rows * n;
    return rows * (n - (double)j->next) - rows * rows / 2;
}

typedef struct asking {
    struct dealer *dealer;
    int64_t first, end;
    const gnomon_pair *pairs;
    int64_t count;
    bool wait, keep;
    gnomon_status status;
    const gnomon_join_sample *sample;
    gnomon_join_tables *tables;
} asking;

static void deal_rows(void *arg)
{
    asking *k = arg;
    joining *j = k->dealer->all;
    k->first = k->end = j->end;
    if (j->ended || j->broken || j->next >= j->end || j->count == DEALS) return;
    double pairs = j->work;
    int64_t end = end_of(j, j->next, pairs);
    if (j->count == DEALS - 1) end = j->end;
    /* no more rows than have pairs that may wait */
    const int64_t before = j->next - j->deals[0].first;
    if (j->job->want_pairs && j->found > 0 && before > 0 && j->count < DEALS / 2) {
        const double each = (double)j->found / (double)before;
        const double most = (double)j->room / (double)j->parts.count / each;
        if (most < (double)(end - j->next)) end = j->next + gnomon_max((int64_t)most, 1);
    }
    deal *d = &j->deals[j->count++];
    *d = (deal){.first = j->next, .end = end, .done = j->next};
    j->next = end;
    k->dealer->now = d;
    k->first = d->first;
    k->end = d->end;
}

static void next_rows(void *user, int64_t *first, int64_t *end)
{
    asking k = {.dealer = user};
    k.first = k.end = k.dealer->all->end;
    if (!gnomon_share_stopped(k.dealer->part)) gnomon_share_ask(k.dealer->part, deal_rows, &k);
    *first = k.first;
    *end = k.end;
}

/* ---- taking pairs ---- */

static gnomon_status hand_on(joining *j, int64_t end, const gnomon_pair *pairs, int64_t count)
{
    const gnomon_join_host *calls = j->job->calls;
    if (j->ended) return GNOMON_ERROR_CANCELLED;
    const gnomon_status status = calls->emit(calls->user, end, pairs, count);
    if (status != GNOMON_OK) j->ended = true;
    j->handed = end;
    return status;
}

/* What waits goes on as far as it is the next in order. */
static gnomon_status hand_waiting(joining *j)
{
    for (; j->head < j->count; j->head++) {
        deal *d = &j->deals[j->head];
        gnomon_status status = GNOMON_OK;
        if (d->busy) return GNOMON_OK; /* it comes back */
        if (d->done > j->handed || d->count > 0) status = hand_on(j, d->done, d->pairs, d->count);
        j->waiting -= d->count;
        free(d->pairs);
        d->pairs = NULL;
        d->count = d->room = 0;
        if (status != GNOMON_OK) return status;
        if (d->done < d->end) return GNOMON_OK; /* its device goes on */
    }
    return GNOMON_OK;
}

/* In the part's thread. */
static gnomon_status keep(deal *d, const gnomon_pair *pairs, int64_t count)
{
    if (count > d->room - d->count) {
        const int64_t room = gnomon_plus(d->room, gnomon_plus(d->room / 2, count));
        gnomon_pair *more = realloc(d->pairs, (size_t)gnomon_times(room, sizeof *more));
        if (more == NULL) return GNOMON_ERROR_MEMORY;
        d->pairs = more;
        d->room = room;
    }
    if (count > 0) memcpy(d->pairs + d->count, pairs, (size_t)count * sizeof *pairs);
    d->count += count;
    return GNOMON_OK;
}

/* More pairs of the deal have gone on, or wait. */
static void note(asking *k)
{
    joining *j = k->dealer->all;
    deal *d = k->dealer->now;
    j->found += k->count;
    d->done = k->end;
    k->status = hand_waiting(j);
}

static void take(void *arg)
{
    asking *k = arg;
    joining *j = k->dealer->all;
    deal *d = k->dealer->now;
    k->wait = k->keep = false;
    k->status = GNOMON_ERROR_CANCELLED;
    if (j->ended) return;
    if (d == &j->deals[j->head]) {
        k->status = hand_on(j, k->end, k->pairs, k->count);
        if (k->status == GNOMON_OK) note(k);
    } else if (j->waiting > 0 && j->waiting + k->count > j->room) {
        k->wait = !j->broken;
    } else {
        k->keep = d->busy = true;
        j->waiting += k->count;
    }
}

/* The pairs are kept, or there was no memory. */
static void have_kept(void *arg)
{
    asking *k = arg;
    joining *j = k->dealer->all;
    k->dealer->now->busy = false;
    if (k->status == GNOMON_OK && j->ended) k->status = GNOMON_ERROR_CANCELLED;
    if (k->status == GNOMON_ERROR_MEMORY) j->full = j->ended = true;
    if (k->status == GNOMON_OK) note(k);
}

static gnomon_status emit(void *user, int64_t end, const gnomon_pair *pairs, int64_t count)
{
    struct dealer *dealer = user;
    asking k = {.dealer = dealer, .end = end, .pairs = pairs, .count = count};
    for (;;) {
        const uint64_t seen = gnomon_share_moves(dealer->part);
        if (gnomon_share_stopped(dealer->part)) return GNOMON_ERROR_CANCELLED;
        gnomon_share_ask(dealer->part, take, &k);
        if (!k.wait) break;
        gnomon_share_wait(dealer->part, seen);
    }
    if (k.keep) {
        k.status = keep(dealer->now, pairs, count);
        gnomon_share_ask(dealer->part, have_kept, &k);
    }
    gnomon_share_moved(dealer->part);
    return k.status;
}

/* ---- what is asked once ---- */

static void make_plan(void *arg)
{
    asking *k = arg;
    joining *j = k->dealer->all;
    const gnomon_join_host *calls = j->job->calls;
    if (!j->planned) j->plan_status = calls->plan(calls->user, k->sample, &j->tables);
    j->planned = true;
    *k->tables = j->tables;
    k->status = j->plan_status;
}

static gnomon_status plan(void *user, const gnomon_join_sample *sample, gnomon_join_tables *out)
{
    asking k = {.dealer = user, .sample = sample, .tables = out};
    gnomon_share_ask(k.dealer->part, make_plan, &k);
    return k.status;
}

static void scan(void *arg)
{
    asking *k = arg;
    joining *j = k->dealer->all;
    const gnomon_join_host *calls = j->job->calls;
    if (!j->scanned) j->scan_status = calls->check(calls->user);
    j->scanned = true;
    k->status = j->scan_status;
}

static gnomon_status check(void *user)
{
    asking k = {.dealer = user};
    gnomon_share_ask(k.dealer->part, scan, &k);
    return k.status;
}

/* Rows are told of as they are handed on or, where pairs are counted, dealt. */
static void tell(void *arg)
{
    asking *k = arg;
    const joining *j = k->dealer->all;
    const gnomon_device_host *host = j->job->host;
    const int64_t done = j->job->want_pairs ? j->handed : j->next;
    k->status = GNOMON_OK;
    if (done > 0 && done < j->p_rows && host->progress(host->user, done, j->p_rows))
        k->status = GNOMON_ERROR_CANCELLED;
}

static int progress(void *user, int64_t done, int64_t total)
{
    (void)done;
    (void)total;
    gnomon_share *part = user;
    asking k = {.dealer = part->own};
    if (gnomon_share_stopped(part)) return 1;
    gnomon_share_ask(part, tell, &k);
    if (k.status != GNOMON_OK) gnomon_share_stop(part);
    return k.status != GNOMON_OK;
}

/* ---- the job ---- */

/* What waits for the rows of a device that has failed need wait no longer. */
static void break_off(void *arg)
{
    const asking *k = arg;
    k->dealer->all->broken = true;
}

static gnomon_status join_part(gnomon_share *part, void *arg)
{
    joining *j = arg;
    struct dealer *dealer = &j->dealer[part->device];
    gnomon_join_job *job = &j->of[part->device];
    *dealer = (struct dealer){.all = j, .part = part};
    part->own = dealer;
    part->host.progress = progress;
    j->calls[part->device] = (gnomon_join_host){dealer, next_rows, plan, check, emit};
    *job = *j->job;
    job->host = &part->host;
    job->calls = &j->calls[part->device];
    job->pair_room = gnomon_max(j->room / j->parts.count, 1);
    job->memory_limit /= j->parts.count;
    if (part->device > 0) job->device_stream = NULL; /* the first device's */
    const gnomon_status status =
        part->devices->of->join(part->state, job, part->why, sizeof part->why);
    asking k = {.dealer = dealer};
    if (status != GNOMON_OK) gnomon_share_ask(part, break_off, &k);
    return status;
}

/* What the devices tell of, in one; of a join that has ended early, too. */
static void add_up(joining *j)
{
    gnomon_join_job *job = j->job;
    for (int i = 0; i < j->parts.count; i++) {
        const gnomon_join_job *of = &j->of[i];
        job->pairs += of->pairs;
        job->compared += of->compared;
        job->verified += of->verified;
        job->hashed = job->hashed || of->hashed;
        if (job->why[0] == 0) memcpy(job->why, of->why, sizeof job->why);
    }
}

/* All rows have been joined in the same way. */
static gnomon_status check_methods(const joining *j, char *why, size_t why_size)
{
    for (int i = 1; i < j->parts.count; i++) {
        if (j->of[i].hashed == j->of[0].hashed) continue;
        snprintf(why, why_size,
                 "device %d has memory for the keys of an LSH join, or for none, and device %d has "
                 "not; ask for an exact join, or for one by hashing",
                 j->parts.part[i].devices->index[i], j->parts.part[0].devices->index[0]);
        return GNOMON_ERROR_DEVICE;
    }
    return GNOMON_OK;
}

static double flops_of(const joining *j)
{
    return j->job->p != NULL ? 2.0 * (double)j->job->p->cols : 1;
}

gnomon_status gnomon_devices_join(void *state, gnomon_join_job *job, char *why, size_t why_size)
{
    gnomon_devices *d = state;
    joining *j = calloc(1, sizeof *j);
    deal *deals = calloc(DEALS, sizeof *deals);
    gnomon_status status = GNOMON_OK;
    if (j == NULL || deals == NULL) {
        free(j);
        free(deals);
        snprintf(why, why_size, "no memory for a join by several devices");
        return GNOMON_ERROR_MEMORY;
    }
    j->job = job;
    j->deals = deals;
    j->room = gnomon_max(job->pair_room / 2, 1);
    j->self = job->q == NULL && job->q_sets == NULL;
    j->p_rows = job->p_sets != NULL ? job->p_sets->rows : job->p->rows;
    j->q_rows = j->self ? j->p_rows : job->q_sets != NULL ? job->q_sets->rows : job->q->rows;
    job->calls->rows(job->calls->user, &j->next, &j->end);
    j->handed = j->next;
    gnomon_shares_alike(&j->parts, d, job->host, j->p_rows);
    const double work = work_of(j);
    double deals_each = work * flops_of(j) / deal_flops / j->parts.count;
    if (!(deals_each > DEALS_LEAST)) deals_each = DEALS_LEAST;
    if (deals_each > DEALS_MOST) deals_each = DEALS_MOST;
    j->work = work / deals_each / j->parts.count;
    const bool there = job->p != NULL && (job->p->memory != GNOMON_HOST ||
                                          (job->q != NULL && job->q->memory != GNOMON_HOST));
    if (there) status = gnomon_devices_await(d, job->device_stream, why, why_size);
    if (status == GNOMON_OK) status = gnomon_shares_run(&j->parts, join_part, j, why, why_size);
    if (status == GNOMON_OK) status = check_methods(j, why, why_size);
    add_up(j);
    if (status != GNOMON_OK && j->full) {
        snprintf(why, why_size, "no memory for pairs that wait");
        status = GNOMON_ERROR_MEMORY;
    }
    for (int64_t i = 0; i < j->count; i++)
        free(j->deals[i].pairs);
    free(deals);
    free(j);
    return status;
}
