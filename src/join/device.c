#include "join/device.h"

#include "base/context.h"
#include "base/error.h"
#include "join/job.h"
#include "join/lsh.h"
#include "lsh/table.h"
#include "project/job.h"

/* What a device hands over, on its way to the sink. */
typedef struct taker {
    gnomon_join_state *join;
    /* of a join by hashing */
    gnomon_join_plan plan;
    gnomon_hasher *hasher;
    uint64_t multipliers[GNOMON_JOIN_DEPTHS + 1];
} taker;

static gnomon_status check(void *user)
{
    const taker *t = user;
    return t->join->p.csr != NULL ? gnomon_join_take_sets(t->join) : gnomon_join_check(t->join);
}

static gnomon_status take(void *user, int64_t end, const gnomon_pair *pairs, int64_t count)
{
    gnomon_join_state *join = ((taker *)user)->join;
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
    taker *t = user;
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

/* Multiplications and additions that are worth the way: a tenth of a second or so of two cores. */
static const double worth_it = 1e10;
/* Members of sets, likewise. */
static const int64_t worth_it_sets = 1 << 22;

static int64_t entries_of(const gnomon_side *side)
{
    return side->rows > 0 ? side->csr->offsets[side->rows] - side->csr->offsets[0] : 0;
}

/* Whether to ask under AUTO, where a look costs the opening of the plugin. */
static bool is_worth_it(const gnomon_join_state *join)
{
    if (join->p.csr != NULL)
        return entries_of(&join->p) + (join->self ? 0 : entries_of(&join->q)) >= worth_it_sets;
    const double flops = 2.0 * (double)join->p.rows * (double)join->q.rows * (double)join->p.cols;
    return flops >= worth_it || join->p.dense->memory != GNOMON_HOST ||
           join->q.dense->memory != GNOMON_HOST;
}

static bool must(const gnomon_join_state *join)
{
    return gnomon_context_device(join->ctx) == GNOMON_DEVICE_CUDA;
}

static gnomon_status run(gnomon_join_state *join, const gnomon_device_table *table, void *state,
                         const gnomon_join_job *job, taker *t)
{
    gnomon_context *ctx = join->ctx;
    const gnomon_device_host host = gnomon_job_host(ctx);
    const gnomon_join_host calls = {t, make_plan, check, take};
    char why[256] = "";
    gnomon_join_job call = *job;
    call.host = &host;
    call.calls = &calls;
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CUDA);
    const gnomon_status status = table->join(state, &call, why, sizeof why);
    gnomon_hasher_destroy(t->hasher);
    join->result->compared += call.compared;
    join->result->verified += call.verified;
    if (call.hashed) {
        join->result->method = GNOMON_JOIN_LSH;
        join->result->recall = join->options.recall;
        gnomon_join_tell_plan(join, &t->plan);
    }
    if (call.why[0] != 0) gnomon_join_say(join, "%s", call.why);
    if (join->full && status == GNOMON_ERROR_CANCELLED) return GNOMON_OK;
    /* what 'take' failed with has its text */
    if (status != GNOMON_OK && why[0] == 0) return status;
    GNOMON_TRY(gnomon_job_device_failed(ctx, status, why));
    join->result->pairs += call.pairs;
    if (join->full || join->next_row == join->p.rows) return GNOMON_OK;
    /* it has counted */
    return gnomon_join_hand_ordered(join, NULL, 0, join->p.rows);
}

gnomon_status gnomon_join_on_device(gnomon_join_state *join, bool *done)
{
    gnomon_context *ctx = join->ctx;
    char why[256] = "it has no joins";
    uint32_t p_some[GNOMON_JOIN_SOME], q_some[GNOMON_JOIN_SOME];
    int hashing;
    void *state = NULL;
    *done = false;
    GNOMON_TRY(gnomon_join_hashing(join, &hashing));
    if (!must(join) && !is_worth_it(join)) {
        gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
        return GNOMON_OK;
    }
    const gnomon_device_table *table = gnomon_context_plugin(ctx, &state);
    const gnomon_join_options *o = &join->options;
    gnomon_join_job job = {.p = join->p.dense,
                           .q = join->self ? NULL : join->q.dense,
                           .p_sets = join->p.csr,
                           .q_sets = join->self ? NULL : join->q.csr};
    job.metric = o->metric;
    job.threshold = o->threshold;
    job.first_row = o->first_row;
    job.want_pairs = o->sink != NULL || o->top > 0 || o->max_pairs > 0 || o->p_counts != NULL ||
                     o->q_counts != NULL;
    job.pair_room = join->pair_room;
    job.hashing = hashing;
    job.band_rows = o->band_rows;
    if (hashing != GNOMON_JOIN_NO_HASHING && join->p.csr == NULL) {
        job.p_some = p_some;
        job.q_some = q_some;
        job.p_some_count = gnomon_join_some(join->p.rows, false, p_some);
        job.q_some_count = gnomon_join_some(join->q.rows, true, q_some);
    }
    job.memory_limit = gnomon_memory_limit(ctx);
    taker t = {.join = join};
    if (table && table->join && table->join_supports(state, &job, why, sizeof why)) {
        *done = true;
        return run(join, table, state, &job, &t);
    }
    GNOMON_FAIL_IF(must(join) && table, ctx, GNOMON_ERROR_DEVICE, "%s declined: %s", table->name,
                   why[0] ? why : "it gave no reason");
    GNOMON_FAIL_IF(must(join), ctx, GNOMON_ERROR_DEVICE, "no device: %s",
                   gnomon_context_cuda_reason(ctx));
    const char *part = NULL;
    if (join->p.csr == NULL && join->p.dense->memory != GNOMON_HOST) part = "p";
    if (join->p.csr == NULL && !join->self && join->q.dense->memory != GNOMON_HOST) part = "q";
    GNOMON_FAIL_IF(part, ctx, GNOMON_ERROR_DEVICE,
                   "%s lies in a device's memory, and the device did not take the job: %s", part,
                   table ? why : gnomon_context_cuda_reason(ctx));
    gnomon_context_set_worked(ctx, GNOMON_DEVICE_CPU);
    return GNOMON_OK;
}
