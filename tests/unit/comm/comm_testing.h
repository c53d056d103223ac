/* Ranks as threads: a function is run by each, with a context of its own. */
#ifndef COMM_TESTING_H
#define COMM_TESTING_H

#include <gnomon/comm.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct rank_run rank_run;
typedef void (*rank_fn)(rank_run *run);

struct rank_run {
    gnomon_context *ctx;
    gnomon_comm comm;
    void *arg;
    rank_fn fn;
    gnomon_status status; /* for fn to leave */
    char text[512];
};

static void *run_rank(void *arg)
{
    rank_run *r = arg;
    r->fn(r);
    snprintf(r->text, sizeof r->text, "%s", gnomon_last_error(r->ctx));
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

/* Of one thread, so that allocations come in the same order every time. */
static inline gnomon_context *allocating_context(const gnomon_allocator *allocator)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    gnomon_context *ctx = NULL;
    o.threads = 1;
    o.device = "cpu";
    o.allocator = allocator;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

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

#endif
