/* Parts of a job in threads of their own, and the calling thread, which serves them. */
#include "devices/devices.h"

#include "base/arithmetic.h"
#include "points/view.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Points below which a device more is no gain. */
enum { LEAST = 64, EACH = 32 };

typedef struct gnomon_crew {
    gnomon_shares *parts;
    gnomon_status (*work)(gnomon_share *part, void *job);
    void *job;
    pthread_mutex_t lock;
    pthread_cond_t wanted; /* the calling thread: something is asked, or a part has ended */
    pthread_cond_t change; /* the parts: anything else */
    uint64_t moves;
    bool stop;
} gnomon_crew;

/* ---- what a part asks ---- */

void gnomon_share_ask(gnomon_share *part, void (*fn)(void *arg), void *arg)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) {
        fn(arg);
        return;
    }
    pthread_mutex_lock(&crew->lock);
    part->asked_with = arg;
    part->asked = fn;
    pthread_cond_signal(&crew->wanted);
    while (part->asked != NULL)
        pthread_cond_wait(&crew->change, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

uint64_t gnomon_share_moves(gnomon_share *part)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return 0;
    pthread_mutex_lock(&crew->lock);
    const uint64_t moves = crew->moves;
    pthread_mutex_unlock(&crew->lock);
    return moves;
}

void gnomon_share_wait(gnomon_share *part, uint64_t seen)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return;
    pthread_mutex_lock(&crew->lock);
    while (crew->moves == seen && !crew->stop)
        pthread_cond_wait(&crew->change, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

void gnomon_share_moved(gnomon_share *part)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return;
    pthread_mutex_lock(&crew->lock);
    crew->moves++;
    pthread_cond_broadcast(&crew->change);
    pthread_mutex_unlock(&crew->lock);
}

bool gnomon_share_stopped(gnomon_share *part)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return false;
    pthread_mutex_lock(&crew->lock);
    const bool stop = crew->stop;
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

void gnomon_share_stop(gnomon_share *part)
{
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->change);
    pthread_mutex_unlock(&crew->lock);
}

/* ---- a part's host ---- */

typedef struct report {
    gnomon_share *part;
    double done;
    int64_t total;
    int stop;
} report;

/* The whole job is done as far as its parts are on average. */
static void tell(void *arg)
{
    report *r = arg;
    gnomon_share *part = r->part;
    gnomon_crew *crew = part->crew;
    double share = r->done;
    int64_t total = r->total;
    if (crew != NULL) {
        const gnomon_shares *parts = crew->parts;
        int64_t rows = 0;
        double sum = 0;
        pthread_mutex_lock(&crew->lock);
        r->stop = crew->stop;
        part->done = r->done;
        for (int i = 0; i < parts->count; i++) {
            sum += parts->part[i].done;
            rows += parts->part[i].count;
        }
        pthread_mutex_unlock(&crew->lock);
        share = sum / parts->count;
        total = gnomon_max(rows, r->total);
    }
    int64_t done = (int64_t)(share * (double)total);
    if (done >= total) done = total - 1; /* the core tells of the end */
    if (done < 0 || r->stop) return;
    r->stop = part->caller->progress(part->caller->user, done, total);
    if (r->stop) gnomon_share_stop(part);
}

static int progress(void *user, int64_t done, int64_t total)
{
    gnomon_share *part = user;
    report r = {part, total > 0 ? (double)done / (double)total : 0, total, 0};
    if (gnomon_share_stopped(part)) return 1;
    gnomon_share_ask(part, tell, &r);
    return r.stop;
}

typedef struct loop {
    const gnomon_device_host *host;
    int64_t count;
    void (*task)(void *arg, int64_t task, int worker);
    void *arg;
} loop;

static void run_loop(void *arg)
{
    const loop *l = arg;
    l->host->parallel(l->host->user, l->count, l->task, l->arg);
}

static void parallel(void *user, int64_t count, void (*task)(void *arg, int64_t task, int worker),
                     void *arg)
{
    gnomon_share *part = user;
    loop l = {part->caller, count, task, arg};
    gnomon_share_ask(part, run_loop, &l);
}

static void about(void *user, const char *argument, int64_t row, int64_t col)
{
    gnomon_share *part = user;
    snprintf(part->argument, sizeof part->argument, "%s", argument);
    part->row = row;
    part->col = col;
}

/* Waits for all parts' input to be checked. */
static gnomon_status checked(void *user)
{
    gnomon_share *part = user;
    gnomon_crew *crew = part->crew;
    if (crew == NULL) return part->caller->checked(part->caller->user);
    gnomon_status status = GNOMON_OK;
    pthread_mutex_lock(&crew->lock);
    part->checked = true;
    pthread_cond_broadcast(&crew->change);
    for (int i = 0; i < crew->parts->count; i++) {
        const gnomon_share *other = &crew->parts->part[i];
        while (!other->checked && !other->ended)
            pthread_cond_wait(&crew->change, &crew->lock);
        if (other->ended && other->status != GNOMON_OK) status = GNOMON_ERROR_CANCELLED;
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

/* ---- dividing ---- */

static void make_part(gnomon_shares *parts, int i, gnomon_devices *devices,
                      const gnomon_device_host *host, int64_t first, int64_t count)
{
    gnomon_share *part = &parts->part[i];
    *part = (gnomon_share){.devices = devices,
                           .device = i,
                           .state = devices->state[i],
                           .first = first,
                           .count = count,
                           .caller = host};
    part->host = (gnomon_device_host){part, progress, parallel, about, checked, host->row + first};
}

void gnomon_shares_by_rows(gnomon_shares *parts, gnomon_devices *devices,
                           const gnomon_device_host *host, int64_t rows)
{
    const int64_t most = gnomon_max(rows / LEAST, 1);
    parts->count = (int)gnomon_min(devices->count, most);
    int64_t first = 0;
    for (int i = 0; i < parts->count; i++) {
        const int64_t left = parts->count - i;
        int64_t end = left == 1 ? rows : first + (rows - first) / left / EACH * EACH;
        make_part(parts, i, devices, host, first, end - first);
        first = end;
    }
}

void gnomon_shares_first(gnomon_shares *parts, int64_t rows)
{
    parts->count = 1;
    parts->part[0].count = rows;
}

void gnomon_shares_alike(gnomon_shares *parts, gnomon_devices *devices,
                         const gnomon_device_host *host, int64_t rows)
{
    parts->count = devices->count;
    for (int i = 0; i < parts->count; i++) {
        make_part(parts, i, devices, host, 0, rows);
        parts->part[i].host.row = host->row;
    }
}

/* ---- loops of several parts as one, which keeps all threads busy ---- */

typedef struct bundle {
    int count;
    const loop *of[GNOMON_DEVICES_MOST];
    int64_t end[GNOMON_DEVICES_MOST]; /* of its tasks in the bundle's */
} bundle;

static void bundle_task(void *arg, int64_t task, int worker)
{
    const bundle *b = arg;
    int which = 0;
    while (task >= b->end[which])
        which++;
    const loop *l = b->of[which];
    l->task(l->arg, task - b->end[which] + l->count, worker);
}

/* The part's loop, and those that others ask for by now. Called with the lock. */
static void run_loops(gnomon_crew *crew)
{
    gnomon_shares *parts = crew->parts;
    bundle b = {0};
    gnomon_share *taken[GNOMON_DEVICES_MOST];
    int64_t tasks = 0;
    for (int i = 0; i < parts->count; i++) {
        gnomon_share *part = &parts->part[i];
        if (part->asked != run_loop) continue;
        taken[b.count] = part;
        b.of[b.count] = part->asked_with;
        b.end[b.count] = tasks += b.of[b.count]->count;
        b.count++;
    }
    const gnomon_device_host *host = b.of[0]->host;
    pthread_mutex_unlock(&crew->lock);
    host->parallel(host->user, tasks, bundle_task, &b);
    pthread_mutex_lock(&crew->lock);
    for (int i = 0; i < b.count; i++)
        taken[i]->asked = NULL;
    pthread_cond_broadcast(&crew->change);
}

/* ---- running ---- */

/* Failures that are no part's data's. */
static bool is_fatal(gnomon_status status)
{
    return status == GNOMON_ERROR_DEVICE || status == GNOMON_ERROR_MEMORY ||
           status == GNOMON_ERROR_CANCELLED || status == GNOMON_ERROR_INTERNAL;
}

static void end_part(gnomon_share *part, gnomon_status status)
{
    gnomon_crew *crew = part->crew;
    pthread_mutex_lock(&crew->lock);
    part->status = status;
    part->ended = true;
    part->done = 1;
    crew->moves++;
    if (is_fatal(status)) crew->stop = true;
    pthread_cond_signal(&crew->wanted);
    pthread_cond_broadcast(&crew->change);
    pthread_mutex_unlock(&crew->lock);
}

static void *part_main(void *arg)
{
    gnomon_share *part = arg;
    end_part(part, part->crew->work(part, part->crew->job));
    return NULL;
}

/* Does what parts ask until all have ended. Called with the lock. */
static void serve(gnomon_crew *crew)
{
    gnomon_shares *parts = crew->parts;
    for (int next = 0;;) {
        int at = -1, ended = 0;
        for (int i = 0; i < parts->count; i++) {
            const int which = (next + i) % parts->count;
            if (at < 0 && parts->part[which].asked != NULL) at = which;
            ended += parts->part[which].ended;
        }
        if (at < 0 && ended == parts->count) return;
        if (at < 0) {
            pthread_cond_wait(&crew->wanted, &crew->lock);
            continue;
        }
        gnomon_share *part = &parts->part[at];
        next = at + 1;
        if (part->asked == run_loop) {
            run_loops(crew);
            continue;
        }
        pthread_mutex_unlock(&crew->lock);
        part->asked(part->asked_with);
        pthread_mutex_lock(&crew->lock);
        part->asked = NULL;
        pthread_cond_broadcast(&crew->change);
    }
}

static void run_in_threads(gnomon_crew *crew)
{
    gnomon_shares *parts = crew->parts;
    pthread_t thread[GNOMON_DEVICES_MOST];
    bool started[GNOMON_DEVICES_MOST] = {false};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < parts->count; i++) {
        gnomon_share *part = &parts->part[i];
        started[i] = pthread_create(&thread[i], NULL, part_main, part) == 0;
        if (started[i]) continue;
        snprintf(part->why, sizeof part->why, "no thread can be started for it");
        end_part(part, GNOMON_ERROR_MEMORY);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_lock(&crew->lock);
    serve(crew);
    pthread_mutex_unlock(&crew->lock);
    for (int i = 0; i < parts->count; i++)
        if (started[i]) pthread_join(thread[i], NULL);
}

/* The failure that the job's is, NULL if there is none: of the first part that was not merely
 * stopped. */
static gnomon_share *failed(gnomon_shares *parts)
{
    gnomon_share *first = NULL;
    for (int i = parts->count - 1; i >= 0; i--) {
        gnomon_share *part = &parts->part[i];
        if (part->status == GNOMON_OK) continue;
        const bool stopped = part->status == GNOMON_ERROR_CANCELLED;
        if (first == NULL || !stopped) first = part;
    }
    return first;
}

gnomon_status gnomon_shares_run(gnomon_shares *parts,
                                gnomon_status (*work)(gnomon_share *part, void *job), void *job,
                                char *why, size_t why_size)
{
    gnomon_crew crew = {.parts = parts, .work = work, .job = job};
    for (int i = 0; i < parts->count; i++) {
        gnomon_share *part = &parts->part[i];
        part->crew = parts->count > 1 ? &crew : NULL;
        part->why[0] = part->argument[0] = 0;
        part->done = 0;
        part->status = GNOMON_OK;
        part->checked = part->ended = false;
    }
    if (parts->count == 1) {
        parts->part[0].status = work(&parts->part[0], job);
    } else {
        pthread_mutex_init(&crew.lock, NULL);
        pthread_cond_init(&crew.wanted, NULL);
        pthread_cond_init(&crew.change, NULL);
        run_in_threads(&crew);
        pthread_cond_destroy(&crew.change);
        pthread_cond_destroy(&crew.wanted);
        pthread_mutex_destroy(&crew.lock);
    }
    for (int i = 0; i < parts->count; i++)
        parts->part[i].crew = NULL;
    const gnomon_share *bad = failed(parts);
    if (bad == NULL) return GNOMON_OK;
    const bool device = bad->status == GNOMON_ERROR_DEVICE || bad->status == GNOMON_ERROR_MEMORY;
    if (device && bad->why[0] != 0)
        snprintf(why, why_size, "device %d: %s", bad->devices->index[bad->device], bad->why);
    else
        snprintf(why, why_size, "%s", bad->why);
    const gnomon_device_host *host = bad->caller;
    if (bad->argument[0] != 0) host->about(host->user, bad->argument, bad->row, bad->col);
    return bad->status;
}

/* ---- rows ---- */

gnomon_csr gnomon_share_csr(const gnomon_csr *csr, int64_t first, int64_t count)
{
    if (csr->offsets != NULL) return gnomon_csr_rows(csr, first, count);
    gnomon_csr rows = *csr;
    rows.rows = count;
    return rows;
}

gnomon_status gnomon_devices_await(gnomon_devices *d, void *stream, char *why, size_t why_size)
{
    const int count = d->of->await == NULL ? 0 : stream != NULL ? 1 : d->count;
    gnomon_status status = GNOMON_OK;
    for (int i = 0; i < count && status == GNOMON_OK; i++)
        status = d->of->await(d->state[i], stream, why, why_size);
    return status;
}
