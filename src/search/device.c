/* Handing a search to a device. */
#include "search/device.h"
#include "base/error.h"
#include "base/memory.h"
#include "search/hits.h"
#include "search/jaccard.h"

#include <math.h>
#include <string.h>

/* Multiplications and additions whose gain exceeds the transfer: a second of two cores. */
static const double worth_it = 1e11;
/* Members of base sets, once for each thousand queries, likewise. */
static const double worth_it_sets = 2e7;

static gnomon_status hits(void *user, int64_t count, gnomon_hit **at)
{
    gnomon_search *s = user;
    GNOMON_TRY(gnomon_hits_reserve(s, count));
    *at = s->hits + s->hit_count;
    s->hit_count += count;
    return GNOMON_OK;
}

/* The queries' sets as a device is given them. */
static gnomon_status make_sets(gnomon_search *s)
{
    gnomon_device_part *d = &s->device;
    const int64_t members = s->sets.offsets[s->count];
    if (d->ones == NULL) {
        GNOMON_TRY(gnomon_alloc(s->ctx, members, 1, "values", &d->ones));
        if (members > 0) memset(d->ones, 1, (size_t)members);
    }
    d->sets = (gnomon_csr){s->count, s->cols, s->sets.offsets, s->sets.members, d->ones, GNOMON_U8};
    d->job.sets = &d->sets;
    return GNOMON_OK;
}

static bool takes(gnomon_device_call *call, void *search)
{
    const gnomon_search *s = search;
    if (call->table->search_open == NULL) return gnomon_device_unable(call, "it has no searches");
    return call->table->search_supports(call->state, &s->device.job, call->why, sizeof call->why);
}

static gnomon_status run(gnomon_device_call *call, void *search)
{
    gnomon_search *s = search;
    gnomon_device_part *d = &s->device;
    GNOMON_TRY(
        call->table->search_open(call->state, &d->job, &d->part, call->why, sizeof call->why));
    gnomon_free(s->ctx, s->heaps);
    gnomon_free(s->ctx, s->nearest);
    s->heaps = NULL;
    s->nearest = NULL;
    return GNOMON_OK;
}

gnomon_status gnomon_search_to_device(gnomon_search *s, const char *name, bool must)
{
    gnomon_device_part *d = &s->device;
    const gnomon_device_step step = {.phase = "search",
                                     .takes = takes,
                                     .run = run,
                                     .calls_back = true,
                                     .there = must ? name : NULL};
    bool done;
    d->calls = (gnomon_search_host){s, hits};
    d->job = (gnomon_search_job){.queries = &s->queries,
                                 .options = &s->options,
                                 .limit = s->limit,
                                 .memory_limit = gnomon_memory_limit(s->ctx),
                                 .host = &d->call.host,
                                 .calls = &d->calls};
    gnomon_status status = GNOMON_OK;
    if (gnomon_metric_of_sets(s->options.metric)) status = make_sets(s);
    if (status == GNOMON_OK)
        status = gnomon_device_run(&d->call, s->ctx, GNOMON_BY_CONTEXT, &step, s, &done);
    return must ? status : GNOMON_OK; /* the CPU has room, perhaps */
}

bool gnomon_search_worth_device(const gnomon_search *s, const gnomon_matrix *base)
{
    const double work = (double)s->count * (double)base->rows * (double)s->cols;
    return gnomon_context_device(s->ctx) == GNOMON_DEVICE_AUTO && s->base == s->first &&
           work >= worth_it;
}

bool gnomon_sets_worth_device(const gnomon_search *s, const gnomon_csr *base)
{
    const int64_t members = base->rows > 0 ? base->offsets[base->rows] - base->offsets[0] : 0;
    const double work = (double)members * ceil((double)s->count / 1024);
    return gnomon_context_device(s->ctx) == GNOMON_DEVICE_AUTO && work >= worth_it_sets;
}

/* Says what is wrong with sets that a device did not take. */
static gnomon_status refuse_sets(gnomon_search *s, const gnomon_csr *base)
{
    gnomon_sets sets = {0};
    GNOMON_TRY(gnomon_sets_make(s->ctx, base, "base", s->base, s->options.metric, &sets));
    gnomon_sets_free(s->ctx, &sets);
    return gnomon_fail(s->ctx, GNOMON_ERROR_INTERNAL, "%s", "a fault that is not found again");
}

gnomon_status gnomon_search_add_on_device(gnomon_search *s, const gnomon_matrix *base,
                                          const gnomon_csr *sets)
{
    gnomon_device_part *d = &s->device;
    gnomon_device_call *call = &d->call;
    gnomon_search_piece piece = {.base = base, .sets = sets, .first = s->base};
    gnomon_context_set_worked(s->ctx, d->call.plugin);
    gnomon_device_again(call);
    GNOMON_TRY(gnomon_device_result(
        call, call->table->search_add(call->state, d->part, &piece, call->why, sizeof call->why)));
    if (piece.faulty) return refuse_sets(s, sets);
    s->compared += piece.compared;
    s->verified += piece.verified;
    return GNOMON_OK;
}

gnomon_status gnomon_search_finish_on_device(gnomon_search *s, int64_t *counts, int64_t *ids,
                                             double *distances)
{
    gnomon_device_part *d = &s->device;
    gnomon_device_call *call = &d->call;
    gnomon_device_again(call);
    return gnomon_device_result(call,
                                call->table->search_finish(call->state, d->part, counts, ids,
                                                           distances, call->why, sizeof call->why));
}

void gnomon_search_close_on_device(gnomon_search *s)
{
    gnomon_device_part *d = &s->device;
    if (d->part != NULL) d->call.table->search_close(d->call.state, d->part);
    d->part = NULL;
    gnomon_free(s->ctx, d->ones);
    d->ones = NULL;
}
