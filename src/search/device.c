/* Handing a search to a device. */
#include "base/error.h"
#include "base/memory.h"
#include "project/job.h"
#include "search/search.h"

#include <math.h>
#include <string.h>

/* Multiplications and additions that are worth the way: a second or so of two cores. */
static const double worth_it = 1e11;
/* Members of base sets, once for each thousand queries, likewise. */
static const double worth_it_sets = 2e7;

static int progress(void *user, int64_t done, int64_t total)
{
    return gnomon_progress(user, "search", done, total) != GNOMON_OK;
}

static gnomon_status hits(void *user, int64_t count, gnomon_hit **at)
{
    gnomon_search *s = user;
    GNOMON_TRY(gnomon_hits_reserve(s, count));
    *at = s->hits + s->hit_count;
    s->hit_count += count;
    return GNOMON_OK;
}

/* Without a reason it was a call back that failed and has left its own. */
static gnomon_status failed(gnomon_search *s, gnomon_status status, const char *why)
{
    if (status != GNOMON_OK && why[0] == 0) return status;
    return gnomon_job_device_failed(s->ctx, status, why);
}

/* The queries' sets as a device is given them. */
static gnomon_status give_sets(gnomon_search *s)
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

/* The device's part of the search, if the context's device takes it. */
static gnomon_status open_on_device(gnomon_search *s, char *why, size_t why_size)
{
    gnomon_device_part *d = &s->device;
    void *state = NULL;
    const gnomon_device_table *table = gnomon_context_plugin(s->ctx, &state);
    if (table == NULL || table->search_open == NULL) return GNOMON_OK;
    d->host = gnomon_job_host(s->ctx);
    d->host.progress = progress;
    d->calls = (gnomon_search_host){s, hits};
    d->job = (gnomon_search_job){.queries = &s->queries,
                                 .options = &s->options,
                                 .limit = s->limit,
                                 .memory_limit = gnomon_memory_limit(s->ctx),
                                 .host = &d->host,
                                 .calls = &d->calls};
    if (s->options.metric == GNOMON_JACCARD) GNOMON_TRY(give_sets(s));
    if (!table->search_supports(state, &d->job, why, why_size)) return GNOMON_OK;
    why[0] = 0;
    GNOMON_TRY(failed(s, table->search_open(state, &d->job, &d->part, why, why_size), why));
    d->table = table;
    d->state = state;
    gnomon_free(s->ctx, s->heaps);
    gnomon_free(s->ctx, s->nearest);
    s->heaps = NULL;
    s->nearest = NULL;
    gnomon_context_set_worked(s->ctx, GNOMON_DEVICE_CUDA);
    return GNOMON_OK;
}

gnomon_status gnomon_search_to_device(gnomon_search *s, const char *name, bool must)
{
    char why[256] = "it has no searches";
    const gnomon_status status = open_on_device(s, why, sizeof why);
    if (s->device.part != NULL || !must) return GNOMON_OK; /* the CPU has room, perhaps */
    GNOMON_TRY(status);
    void *state = NULL;
    const gnomon_device_table *table = gnomon_context_plugin(s->ctx, &state);
    const char *reason = table != NULL ? why : gnomon_context_cuda_reason(s->ctx);
    GNOMON_FAIL_IF(gnomon_context_device(s->ctx) != GNOMON_DEVICE_CUDA, s->ctx, GNOMON_ERROR_DEVICE,
                   "%s lies in a device's memory, and the device did not take the job: %s", name,
                   reason);
    GNOMON_FAIL_IF(table != NULL, s->ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name, why);
    return gnomon_fail(s->ctx, GNOMON_ERROR_DEVICE, "no device: %s", reason);
}

bool gnomon_search_worth_device(const gnomon_search *s, const gnomon_matrix *base)
{
    const double work = (double)s->count * (double)base->rows * (double)s->cols;
    return gnomon_context_device(s->ctx) == GNOMON_DEVICE_AUTO && s->base == 0 && work >= worth_it;
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
    GNOMON_TRY(gnomon_sets_make(s->ctx, base, "base", s->base, &sets));
    gnomon_sets_free(s->ctx, &sets);
    return gnomon_fail(s->ctx, GNOMON_ERROR_INTERNAL, "%s", "a fault that is not found again");
}

gnomon_status gnomon_search_add_on_device(gnomon_search *s, const gnomon_matrix *base,
                                          const gnomon_csr *sets)
{
    const gnomon_device_part *d = &s->device;
    char why[256] = "";
    gnomon_search_piece piece = {.base = base, .sets = sets, .first = s->base};
    gnomon_context_set_worked(s->ctx, GNOMON_DEVICE_CUDA);
    GNOMON_TRY(failed(s, d->table->search_add(d->state, d->part, &piece, why, sizeof why), why));
    if (piece.faulty) return refuse_sets(s, sets);
    s->compared += piece.compared;
    s->verified += piece.verified;
    return GNOMON_OK;
}

gnomon_status gnomon_search_finish_on_device(gnomon_search *s, int64_t *counts, int64_t *ids,
                                             double *distances)
{
    const gnomon_device_part *d = &s->device;
    char why[256] = "";
    return failed(
        s, d->table->search_finish(d->state, d->part, counts, ids, distances, why, sizeof why),
        why);
}

void gnomon_search_close_on_device(gnomon_search *s)
{
    gnomon_device_part *d = &s->device;
    if (d->part != NULL) d->table->search_close(d->state, d->part);
    d->part = NULL;
    gnomon_free(s->ctx, d->ones);
    d->ones = NULL;
}
