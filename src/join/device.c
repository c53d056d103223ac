#include "join/device.h"

#include "base/context.h"
#include "base/device.h"
#include "base/error.h"
#include "join/bands.h"
#include "join/job.h"
#include "join/lsh/lsh.h"
#include "join/lsh/plan.h"
#include "join/out.h"
#include "join/sets.h"
#include "join/state.h"
#include "lsh/table.h"

/* What a device hands over, on its way to the sink. */
typedef struct receiver {
    gnomon_join_state *join;
    gnomon_join_job job;
    gnomon_device_call *call;
    bool dealt; /* all rows are */
    /* of a join by hashing */
    gnomon_join_plan plan;
    gnomon_hasher *hasher;
    uint64_t multipliers[GNOMON_JOIN_DEPTHS + 1];
} receiver;

/* All of them at once. */
static void rows(void *user, int64_t *first, int64_t *end)
{
    receiver *t = user;
    *end = t->join->p.rows;
    *first = t->dealt ? *end : t->join->options.first_row;
    t->dealt = true;
}

static gnomon_status check(void *user)
{
    const receiver *t = user;
    return t->join->p.csr != NULL ? gnomon_join_make_sets(t->join) : gnomon_join_check(t->join);
}

static gnomon_status emit(void *user, int64_t end, const gnomon_pair *pairs, int64_t count)
{
    gnomon_join_state *join = ((receiver *)user)->join;
    ((receiver *)user)->call->repeats = false;
    if (join->full) return GNOMON_ERROR_CANCELLED;
    GNOMON_FAIL_IF(end < join->next_row || end > join->p.rows, join->ctx, GNOMON_ERROR_INTERNAL,
                   "the device hands over rows that are not due");
    if (end > join->next_row) join->result->bands++;
    GNOMON_TRY(gnomon_join_hand_ordered(join, pairs, count, end));
    /* enough: the device need not go on */
    return join->full ? GNOMON_ERROR_CANCELLED : GNOMON_OK;
}

static gnomon_status make_plan(void *user, const gnomon_join_sample *sample,
                               gnomon_join_tables *out)
{
    receiver *t = user;
    gnomon_context *ctx = t->join->ctx;
    gnomon_join_plan *plan = &t->plan;
    *out = (gnomon_join_tables){.hasher = NULL};
    GNOMON_TRY(gnomon_join_plan_make(t->join, sample, plan));
    if (gnomon_plan_tables(plan) == 0)
        return gnomon_join_no_hashing(t->join, GNOMON_JOIN_NO_TABLES);
    if (!gnomon_join_plan_pays(t->join, plan)) return GNOMON_OK;
    GNOMON_TRY(gnomon_hasher_create(ctx, &plan->functions, &t->hasher));
    gnomon_key_multipliers(plan->depth + 1, t->multipliers);
    *out = (gnomon_join_tables){t->hasher, t->multipliers, plan->depth, plan->shallow, plan->deep};
    return GNOMON_OK;
}

/* Multiplications and additions whose gain exceeds the transfer: 0.1 s of two cores. */
static const double worth_it = 1e10;
/* Members of sets, likewise. */
static const int64_t worth_it_sets = 1 << 22;

static int64_t entries_of(const gnomon_side *side)
{
    return side->rows > 0 ? side->csr->offsets[side->rows] - side->csr->offsets[0] : 0;
}

/* Whether to ask under AUTO, where asking opens the plugin. */
static bool is_worth_it(const gnomon_join_state *join)
{
    if (join->p.csr != NULL)
        return entries_of(&join->p) + (join->self ? 0 : entries_of(&join->q)) >= worth_it_sets;
    const double flops = 2.0 * (double)join->p.rows * (double)join->q.rows * (double)join->p.cols;
    return flops >= worth_it || join->p.dense->memory != GNOMON_HOST ||
           join->q.dense->memory != GNOMON_HOST;
}

static bool takes(gnomon_device_call *call, void *user)
{
    receiver *t = user;
    if (call->table->join == NULL) return gnomon_device_unable(call, "it has no joins");
    return call->table->join_supports(call->state, &t->job, call->why, sizeof call->why);
}

/* What the device did besides handing over pairs. */
static void copy_results(receiver *t)
{
    gnomon_join_state *join = t->join;
    const gnomon_join_job *job = &t->job;
    join->result->compared += job->compared;
    join->result->verified += job->verified;
    if (job->hashed) {
        join->result->method = GNOMON_JOIN_LSH;
        join->result->recall = join->options.recall;
        gnomon_join_tell_plan(join, &t->plan);
    }
    if (job->why[0] != 0) gnomon_join_say(join, "%s", job->why);
}

static gnomon_status run(gnomon_device_call *call, void *user)
{
    receiver *t = user;
    gnomon_join_state *join = t->join;
    const gnomon_join_host calls = {t, rows, make_plan, check, emit};
    t->call = call;
    t->job.host = &call->host;
    t->job.calls = &calls;
    const gnomon_status status =
        call->table->join(call->state, &t->job, call->why, sizeof call->why);
    gnomon_hasher_destroy(t->hasher);
    if (status == GNOMON_OK || !call->repeats) copy_results(t);
    if (join->full && status == GNOMON_ERROR_CANCELLED) return GNOMON_OK;
    if (status != GNOMON_OK) return status;
    join->result->pairs += t->job.pairs;
    if (join->full || join->next_row == join->p.rows) return GNOMON_OK;
    /* it has counted */
    return gnomon_join_hand_ordered(join, NULL, 0, join->p.rows);
}

/* The view that lies in a device's memory. */
static const char *there(const gnomon_join_state *join)
{
    if (join->p.csr != NULL) return NULL;
    if (!join->self && join->q.dense->memory != GNOMON_HOST) return "q";
    return join->p.dense->memory != GNOMON_HOST ? "p" : NULL;
}

gnomon_status gnomon_join_on_device(gnomon_join_state *join, bool *done)
{
    uint32_t p_some[GNOMON_JOIN_SOME], q_some[GNOMON_JOIN_SOME];
    int hashing;
    const gnomon_join_options *o = &join->options;
    *done = false;
    if (!gnomon_metric_is(o->metric, GNOMON_METRIC_DEVICE))
        return gnomon_device_refuse(join->ctx, GNOMON_BY_CONTEXT,
                                    "joins by this metric run on the CPU");
    if (join->p.csr != NULL && !gnomon_metric_of_sets(o->metric))
        return gnomon_device_refuse(join->ctx, GNOMON_BY_CONTEXT,
                                    "sparse points are joined by this metric on the CPU");
    GNOMON_TRY(gnomon_join_hashing(join, &hashing));
    receiver t = {.join = join,
                  .job = {.p = join->p.dense,
                          .q = join->self ? NULL : join->q.dense,
                          .p_sets = join->p.csr,
                          .q_sets = join->self ? NULL : join->q.csr,
                          .metric = o->metric,
                          .threshold = o->threshold,
                          .device_stream = o->device_stream,
                          .want_pairs = o->sink != NULL || o->top > 0 || o->max_pairs > 0 ||
                                        o->p_counts != NULL || o->q_counts != NULL,
                          .pair_room = join->pair_room,
                          .hashing = hashing,
                          .band_rows = o->band_rows,
                          .memory_limit = gnomon_memory_limit(join->ctx)}};
    if (hashing != GNOMON_JOIN_NO_HASHING && join->p.csr == NULL) {
        t.job.p_some = p_some;
        t.job.q_some = q_some;
        t.job.p_some_count = gnomon_join_some(join->p.rows, false, p_some);
        t.job.q_some_count = gnomon_join_some(join->q.rows, true, q_some);
    }
    const gnomon_device_step step = {.phase = "join",
                                     .takes = takes,
                                     .run = run,
                                     .calls_back = true,
                                     .repeats = hashing == GNOMON_JOIN_NO_HASHING,
                                     .not_worth = !is_worth_it(join),
                                     .there = there(join)};
    gnomon_device_call call;
    return gnomon_device_run(&call, join->ctx, GNOMON_BY_CONTEXT, &step, &t, done);
}

gnomon_status gnomon_join_refuse_device(const gnomon_join_state *join)
{
    const char *view = there(join);
    GNOMON_FAIL_IF(view != NULL, join->ctx, GNOMON_ERROR_DEVICE,
                   GNOMON_ARG("%s") " lies in a device's memory; joins of several ranks run on the "
                                    "CPU",
                   view);
    return gnomon_device_refuse(join->ctx, GNOMON_BY_CONTEXT,
                                "joins of several ranks run on the CPU");
}
