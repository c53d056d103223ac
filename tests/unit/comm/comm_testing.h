/* Ranks as threads: a function is run by each, with a context of its own. */
#ifndef COMM_TESTING_H
#define COMM_TESTING_H

#include "refusal.h"

#include <gnomon/comm.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rank_run rank_run;
typedef void (*rank_fn)(rank_run *run);

struct rank_run {
    gnomon_context *ctx;
    gnomon_comm comm;
    void *arg;
    rank_fn fn;
    gnomon_status status; /* for fn to leave */
    char text[512];       /* its own, or that of ctx */
};

/* The same numbers in every run. */
static inline uint32_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* From -0.5 to 0.5. */
static inline double uniform(void)
{
    return (double)next_random() * 0x1p-32 - 0.5;
}

/* ---- damage between engine and receiver ---- */

typedef enum damage_way {
    FLIPS, /* a bit of it is another */
    CUT,   /* its second half does not arrive */
    DAMAGE_WAYS
} damage_way;

/* To what a rank receives, by one call of the engine: a header or a body. */
typedef struct damage {
    int rank, at; /* the rank; which of its calls, or -1 */
    damage_way way;
    int64_t byte; /* that has the bit, modulo how many there are */
    int seen;     /* calls so far */
    gnomon_comm under;
} damage;

static damage *damaged; /* of the next runs; or NULL */

static gnomon_status receive_damaged(void *user, int from, void *data, int64_t bytes)
{
    damage *d = user;
    char *const got = data;
    const gnomon_status status = d->under.receive(d->under.user, from, data, bytes);
    if (d->seen++ != d->at || status != GNOMON_OK) return status;
    if (d->way == FLIPS)
        got[d->byte % bytes] ^= (char)(1 << d->byte % 7);
    else
        memset(got + bytes / 2, 0x5a, (size_t)(bytes - bytes / 2));
    return status;
}

static gnomon_status send_under(void *user, int to, const void *data, int64_t bytes)
{
    damage *d = user;
    return d->under.send(d->under.user, to, data, bytes);
}

static const char *reason_under(void *user)
{
    damage *d = user;
    return d->under.reason(d->under.user);
}

static void abort_under(void *user, int code)
{
    damage *d = user;
    d->under.abort(d->under.user, code);
}

static void put_between(damage *d, gnomon_comm *comm)
{
    d->under = *comm;
    comm->user = d;
    comm->send = send_under;
    comm->receive = receive_damaged;
    comm->reason = reason_under;
    comm->abort = abort_under;
}

/* ---- runs ---- */

static void *run_rank(void *arg)
{
    rank_run *r = arg;
    r->fn(r);
    if (r->status == GNOMON_ERROR_COMM) r->comm.abort(r->comm.user, 6); /* others may wait for it */
    if (r->text[0] == '\0') snprintf(r->text, sizeof r->text, "%s", gnomon_last_error(r->ctx));
    return NULL;
}

enum { MOST_RANKS = 9 };

/* Runs fn on so many ranks; runs[] has what they left. */
static void run_ranks(int size, rank_fn fn, void *arg, rank_run runs[MOST_RANKS])
{
    gnomon_comm_group *group = NULL;
    gnomon_context *ctx;
    pthread_t threads[MOST_RANKS];
    assert_int_equal(gnomon_context_create(NULL, &ctx), GNOMON_OK);
    assert_int_equal(gnomon_comm_group_create(ctx, size, &group), GNOMON_OK);
    for (int i = 0; i < size; i++) {
        gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
        o.threads = 1 + i % 2;
        o.device = "cpu";
        runs[i] = (rank_run){.arg = arg, .fn = fn, .comm = GNOMON_COMM_INIT};
        assert_int_equal(gnomon_context_create(&o, &runs[i].ctx), GNOMON_OK);
        assert_int_equal(gnomon_comm_group_rank(group, i, &runs[i].comm), GNOMON_OK);
        if (damaged != NULL && damaged->rank == i) put_between(damaged, &runs[i].comm);
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &runs[i]), 0);
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < size; i++)
        gnomon_context_destroy(runs[i].ctx);
    gnomon_comm_group_destroy(group);
    gnomon_context_destroy(ctx);
}

/* The same where every rank must succeed. */
static inline void all_succeed(int size, rank_fn fn, void *arg)
{
    rank_run runs[MOST_RANKS];
    run_ranks(size, fn, arg, runs);
    for (int rank = 0; rank < size; rank++)
        if (runs[rank].status != GNOMON_OK)
            fail_msg("rank %d of %d: %s", rank, size, runs[rank].text);
}

/* The same where every rank must end with the status of the one that fails, and this in its
 * text. */
static inline void all_fail(int size, rank_fn fn, void *arg, gnomon_status status, const char *text)
{
    rank_run runs[MOST_RANKS];
    run_ranks(size, fn, arg, runs);
    for (int rank = 0; rank < size; rank++)
        if (runs[rank].status != status || strstr(runs[rank].text, text) == NULL)
            fail_msg("rank %d ends with %d: %s", rank, (int)runs[rank].status, runs[rank].text);
}

/* The same where one rank may be refused an allocation. Its status: OK, MEMORY, of which all are
 * told, or COMM, since it ends all. */
static inline gnomon_status run_refused(int size, rank_fn fn, void *arg, int odd)
{
    rank_run runs[MOST_RANKS];
    run_ranks(size, fn, arg, runs);
    const gnomon_status status = runs[odd].status;
    for (int i = 0; i < size && status != GNOMON_ERROR_COMM; i++)
        assert_int_equal(runs[i].status, status);
    assert_true(status == GNOMON_OK || status == GNOMON_ERROR_MEMORY ||
                status == GNOMON_ERROR_COMM);
    return status;
}

/* Of the messages that could be damaged: one in so many where a sanitizer makes each run slow. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW_RUNS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SLOW_RUNS)
enum { RARELY = 4 };
#else
enum { RARELY = 1 };
#endif

/* A message that a rank gets is damaged, about 'most' of them in turn and each in another way: that
 * rank fails by COMM and names the sender, and all others end, with an error too unless it was one
 * of the last two, which tell that all is done and how. */
static inline void all_end_by_damage(int size, rank_fn fn, void *arg, int most)
{
    enum {
        LIMIT = 30,  /* seconds, at which the program ends */
        FAREWELL = 4 /* calls, two a message */
    };
    damage d = {.at = -1};
    rank_run runs[MOST_RANKS];
    damaged = &d;
    for (d.rank = 0; d.rank < size; d.rank++) {
        d.at = -1;
        d.seen = 0;
        all_succeed(size, fn, arg);
        const int calls = d.seen, step = RARELY * (calls / most + 1);
        assert_true(calls > 1);
        for (int at = (int)(next_random() % (unsigned)step); at < calls; at += step) {
            d.at = at;
            d.seen = 0;
            d.way = (damage_way)(at / step % DAMAGE_WAYS);
            d.byte = next_random();
            alarm(LIMIT);
            run_ranks(size, fn, arg, runs);
            alarm(0);
            if (d.seen <= at) continue; /* there were fewer this time */
            for (int rank = 0; rank < size; rank++) {
                const bool victim = rank == d.rank, ok = runs[rank].status == GNOMON_OK;
                if (victim ? runs[rank].status != GNOMON_ERROR_COMM : ok && at < calls - FAREWELL)
                    fail_msg("message %d of %d to rank %d, way %d: rank %d ends with %d: %s", at,
                             calls, d.rank, (int)d.way, rank, (int)runs[rank].status,
                             runs[rank].text);
                if (!ok && strstr(runs[rank].text, "rank ") == NULL)
                    fail_msg("rank %d names no rank: %s", rank, runs[rank].text);
            }
        }
    }
    damaged = NULL;
}

/* A rank's fn with a context that is refused the allocation number 'at' of those that fn makes, or
 * none if that is -1. */
static inline void run_limited(rank_run *r, long at, rank_fn fn)
{
    refusal refused = {.at = -1};
    const gnomon_allocator allocator = {&refused, refusing, releasing};
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *const own = r->ctx;
    o.threads = 1; /* so that allocations come in the same order every time */
    o.device = "cpu";
    o.allocator = &allocator;
    assert_int_equal(gnomon_context_create(&o, &r->ctx), GNOMON_OK);
    refused.calls = 0;
    refused.at = at;
    fn(r);
    gnomon_context_destroy(r->ctx);
    r->ctx = own;
    assert_int_equal(refused.out, 0);
}

#endif
