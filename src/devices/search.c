/* Exact search by several devices: each has all queries and a part of every piece of the base, so
 * that a piece crosses the links once, and is packed once. For each query the nearest of what the
 * devices have found are taken, which no cut can change: distances are fp64 numbers of pairs, and
 * ids tell the first of equals. */
#include "devices/devices.h"

#include "base/arithmetic.h"
#include "base/memory.h"
#include "points/view.h"
#include "search/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Multiplications and additions from which on a base on the first device is divided, and rows of a
 * device. */
static const double worth_it = 2e11;
enum { LEAST = 256 };

/* What one device has. */
typedef struct seeker {
    gnomon_search_job job;
    gnomon_search_options options;
    gnomon_search_host calls;
    void *opened;
    gnomon_search_piece piece; /* of the call in progress */
    gnomon_matrix base;
    gnomon_csr base_sets;
    gnomon_hit *hits; /* by radius, of the piece */
    int64_t hit_count, hit_room;
    bool full; /* there was no memory for hits */
} seeker;

typedef struct search {
    gnomon_shares parts;
    const gnomon_search_job *job;
    int64_t queries, k;
    int used; /* the first so many devices have opened the search */
    seeker seeker[GNOMON_DEVICES_MOST];
    gnomon_search_piece *piece; /* of the call in progress, */
    int seekers;                /* which so many devices share */
    /* of the end: */
    int64_t *counts, *ids, *out_counts, *out_ids;
    double *distances, *out_distances;
} search;

static gnomon_status no_memory(char *why, size_t size, const char *what)
{
    snprintf(why, size, "no memory for %s of several devices", what);
    return GNOMON_ERROR_MEMORY;
}

/* Runs the first so many devices' parts. */
static gnomon_status run(search *a, int devices,
                         gnomon_status (*work)(gnomon_share *part, void *search), char *why,
                         size_t why_size)
{
    const int all = a->parts.count;
    a->parts.count = devices;
    const gnomon_status status = gnomon_shares_run(&a->parts, work, a, why, why_size);
    a->parts.count = all;
    for (int i = 0; i < devices && status != GNOMON_OK; i++)
        if (a->seeker[i].full) return no_memory(why, why_size, "hits");
    return status;
}

/* Hits wait here, as the place for them may move while another device asks for more. */
static gnomon_status hits(void *user, int64_t count, gnomon_hit **at)
{
    seeker *s = user;
    if (count > s->hit_room - s->hit_count) {
        const int64_t room = gnomon_plus(s->hit_room, gnomon_plus(s->hit_room / 2, count));
        gnomon_hit *more = realloc(s->hits, (size_t)gnomon_times(room, sizeof *more));
        if (more == NULL) {
            s->full = true;
            return GNOMON_ERROR_MEMORY;
        }
        s->hits = more;
        s->hit_room = room;
    }
    *at = s->hits + s->hit_count;
    s->hit_count += count;
    return GNOMON_OK;
}

static gnomon_status open_part(gnomon_share *part, void *arg)
{
    search *a = arg;
    seeker *s = &a->seeker[part->device];
    s->job = *a->job;
    s->options = *a->job->options;
    s->calls = (gnomon_search_host){s, hits};
    if (part->device > 0) s->options.device_stream = NULL; /* the first device's */
    s->job.options = &s->options;
    s->job.memory_limit /= a->parts.count;
    s->job.host = &part->host;
    s->job.calls = &s->calls;
    return part->devices->of->search_open(part->state, &s->job, &s->opened, part->why,
                                          sizeof part->why);
}

gnomon_status gnomon_devices_search_open(void *state, const gnomon_search_job *job, void **opened,
                                         char *why, size_t why_size)
{
    gnomon_devices *d = state;
    gnomon_status status = GNOMON_OK;
    *opened = NULL;
    search *a = calloc(1, sizeof *a);
    if (a == NULL) return no_memory(why, why_size, "a search");
    a->job = job;
    a->queries = job->sets != NULL ? job->sets->rows : job->queries->rows;
    a->k = job->options->k;
    gnomon_shares_alike(&a->parts, d, job->host, a->queries);
    if (job->queries->memory != GNOMON_HOST)
        status = gnomon_devices_await(d, job->options->device_stream, why, why_size);
    a->used = 1; /* the others open theirs when they are given some of the base */
    if (status == GNOMON_OK) status = run(a, a->used, open_part, why, why_size);
    if (status == GNOMON_OK)
        *opened = a;
    else
        gnomon_devices_search_close(state, a);
    return status;
}

/* ---- the base ---- */

/* How many devices share a piece. */
static int seekers_of(const search *a, const gnomon_search_piece *piece)
{
    const int64_t rows = piece->base != NULL ? piece->base->rows : piece->sets->rows;
    const bool there = piece->base != NULL && piece->base->memory != GNOMON_HOST;
    const double work = there ? (double)rows * (double)a->queries * (double)piece->base->cols : 0;
    if (there && work < worth_it) return 1;
    return (int)gnomon_max(gnomon_min(a->parts.count, rows / LEAST), 1);
}

/* A device's rows of the piece. */
static void cut_piece(search *a, gnomon_share *part, seeker *s)
{
    const gnomon_search_piece *piece = a->piece;
    const int64_t rows = piece->base != NULL ? piece->base->rows : piece->sets->rows;
    const int64_t each = rows / a->seekers;
    const int64_t first = each * part->device;
    const int64_t end = part->device + 1 < a->seekers ? first + each : rows;
    s->piece = (gnomon_search_piece){.first = piece->first + first};
    if (piece->base != NULL) {
        s->base = gnomon_rows(piece->base, first, end - first);
        s->piece.base = &s->base;
    } else {
        s->base_sets = gnomon_share_csr(piece->sets, first, end - first);
        s->piece.sets = &s->base_sets;
    }
    s->hit_count = 0;
}

static gnomon_status add_part(gnomon_share *part, void *arg)
{
    search *a = arg;
    seeker *s = &a->seeker[part->device];
    if (s->opened == NULL) {
        const gnomon_status status = open_part(part, a);
        if (status != GNOMON_OK) return status;
    }
    cut_piece(a, part, s);
    return part->devices->of->search_add(part->state, s->opened, &s->piece, part->why,
                                         sizeof part->why);
}

/* Hits go on, one device's after the other's. */
static gnomon_status hand_hits(search *a)
{
    for (int i = 0; i < a->seekers; i++) {
        const seeker *s = &a->seeker[i];
        gnomon_hit *at;
        if (s->hit_count == 0) continue;
        const gnomon_status status = a->job->calls->hits(a->job->calls->user, s->hit_count, &at);
        if (status != GNOMON_OK) return status;
        memcpy(at, s->hits, (size_t)s->hit_count * sizeof *at);
    }
    return GNOMON_OK;
}

gnomon_status gnomon_devices_search_add(void *state, void *opened, gnomon_search_piece *piece,
                                        char *why, size_t why_size)
{
    search *a = opened;
    const bool there = piece->base != NULL && piece->base->memory != GNOMON_HOST;
    a->piece = piece;
    a->seekers = seekers_of(a, piece);
    a->used = a->seekers > a->used ? a->seekers : a->used;
    if (there && a->seekers > 1) {
        const gnomon_status ready =
            gnomon_devices_await(state, a->job->options->device_stream, why, why_size);
        if (ready != GNOMON_OK) return ready;
    }
    gnomon_status status = run(a, a->seekers, add_part, why, why_size);
    for (int i = 0; i < a->seekers && status == GNOMON_OK; i++) {
        const seeker *s = &a->seeker[i];
        piece->faulty = piece->faulty || s->piece.faulty;
        piece->compared += s->piece.compared;
        piece->verified += s->piece.verified;
    }
    if (status == GNOMON_OK && !piece->faulty) status = hand_hits(a);
    return status;
}

/* ---- the end ---- */

static gnomon_status finish_part(gnomon_share *part, void *arg)
{
    search *a = arg;
    const int64_t first = part->device * a->queries; /* each has a room of its own for them */
    return part->devices->of->search_finish(
        part->state, a->seeker[part->device].opened, a->counts + first, a->ids + first * a->k,
        a->distances + first * a->k, part->why, sizeof part->why);
}

/* The k nearest of what the devices have for a query, which each has in the order of answers. */
static void merge_query(void *arg, int64_t q, int worker)
{
    const search *a = arg;
    int64_t *ids = a->out_ids + q * a->k;
    double *distances = a->out_distances + q * a->k;
    (void)worker;
    const double sign = a->job->options->metric == GNOMON_IP ? -1 : 1;
    int64_t next[GNOMON_DEVICES_MOST] = {0}, count = 0;
    for (; count < a->k; count++) {
        gnomon_ranked best = {0, 0};
        int of = -1;
        for (int i = 0; i < a->used; i++) {
            const int64_t list = i * a->queries + q;
            if (next[i] == a->counts[list]) continue;
            const int64_t at = list * a->k + next[i];
            const gnomon_ranked point = {sign * a->distances[at], a->ids[at]};
            if (of >= 0 && !gnomon_ranked_before(point, best)) continue;
            best = point;
            of = i;
        }
        if (of < 0) break;
        const int64_t at = (of * a->queries + q) * a->k + next[of]++;
        ids[count] = a->ids[at];
        distances[count] = a->distances[at];
    }
    a->out_counts[q] = count;
}

/* Rooms for every device's answers. */
static bool make_rooms(search *a)
{
    const int64_t lists = gnomon_times(a->queries, a->used);
    const int64_t places = gnomon_times(lists, gnomon_max(a->k, 1));
    a->counts = malloc((size_t)gnomon_times(gnomon_max(lists, 1), sizeof *a->counts));
    a->ids = malloc((size_t)gnomon_times(gnomon_max(places, 1), sizeof *a->ids));
    a->distances = malloc((size_t)gnomon_times(gnomon_max(places, 1), sizeof *a->distances));
    return a->counts != NULL && a->ids != NULL && a->distances != NULL;
}

gnomon_status gnomon_devices_search_finish(void *state, void *opened, int64_t *counts, int64_t *ids,
                                           double *distances, char *why, size_t why_size)
{
    (void)state;
    search *a = opened;
    if (a->used == 1) {
        a->counts = counts;
        a->ids = ids;
        a->distances = distances;
        return run(a, a->used, finish_part, why, why_size);
    }
    gnomon_status status = make_rooms(a) ? GNOMON_OK : no_memory(why, why_size, "the answers");
    if (status == GNOMON_OK) status = run(a, a->used, finish_part, why, why_size);
    a->out_counts = counts;
    a->out_ids = ids;
    a->out_distances = distances;
    if (status == GNOMON_OK) a->job->host->parallel(a->job->host->user, a->queries, merge_query, a);
    free(a->counts);
    free(a->ids);
    free(a->distances);
    return status;
}

void gnomon_devices_search_close(void *state, void *opened)
{
    gnomon_devices *d = state;
    search *a = opened;
    for (int i = 0; a != NULL && i < a->parts.count; i++) {
        if (a->seeker[i].opened != NULL) d->of->search_close(d->state[i], a->seeker[i].opened);
        free(a->seeker[i].hits);
    }
    free(a);
}
