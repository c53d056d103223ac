/* The worker threads, progress and cancelling. */
#include "base/threads.h"

#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <gnomon.h>

static gnomon_context *context(int threads)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.threads = threads;
    o.device = "cpu";
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

enum { TASKS = 5000, MOST_THREADS = 64 };

typedef struct tally {
    int threads;
    atomic_int ran[TASKS];
    atomic_int in_use[MOST_THREADS];
    atomic_int bad;
    atomic_int_least64_t sum;
} tally;

static void count_task(void *arg, int64_t task, int worker)
{
    tally *t = arg;
    if (worker < 0 || worker >= t->threads) {
        atomic_fetch_add(&t->bad, 1);
        return;
    }
    if (atomic_fetch_add(&t->in_use[worker], 1) != 0) atomic_fetch_add(&t->bad, 1);
    atomic_fetch_add(&t->ran[task], 1);
    atomic_fetch_add(&t->sum, task);
    atomic_fetch_sub(&t->in_use[worker], 1);
}

static void each_task_runs_once(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7, 64};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        gnomon_context *ctx = context(threads[i]);
        tally *t = calloc(1, sizeof *t);
        assert_non_null(t);
        t->threads = threads[i];
        /* many loops in a row, of many lengths: a lost wake-up would hang */
        int rounds = 0;
        for (int64_t count = 0; count < 200; count++) {
            gnomon_parallel(ctx, count, count_task, t);
            rounds++;
        }
        for (int64_t task = 0; task < 200; task++)
            assert_int_equal(t->ran[task], rounds - 1 - task);
        memset(t->ran, 0, sizeof t->ran);
        atomic_store(&t->sum, 0);
        gnomon_parallel(ctx, TASKS, count_task, t);
        for (int64_t task = 0; task < TASKS; task++)
            assert_int_equal(t->ran[task], 1);
        assert_int_equal(t->sum, (int64_t)TASKS * (TASKS - 1) / 2);
        assert_int_equal(t->bad, 0);
        gnomon_parallel(ctx, 0, count_task, t);
        gnomon_parallel(ctx, -3, count_task, t);
        assert_int_equal(t->sum, (int64_t)TASKS * (TASKS - 1) / 2);
        free(t);
        gnomon_context_destroy(ctx);
    }
}

static void many_contexts_at_once(void **state)
{
    (void)state;
    gnomon_context *ctx[10];
    tally *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->threads = 4;
    for (int i = 0; i < 10; i++)
        ctx[i] = context(4);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 10; i++)
            gnomon_parallel(ctx[i], 50, count_task, t);
    for (int i = 0; i < 10; i++)
        gnomon_context_destroy(ctx[i]);
    assert_int_equal(t->sum, 20 * 10 * (50 * 49 / 2));
    assert_int_equal(t->bad, 0);
    free(t);
}

/* What the thread's arithmetic does: its rounding, and whether subnormal results become 0. */
typedef struct arithmetic {
    int rounding;
    bool flushes;
} arithmetic;

static arithmetic arithmetic_here(void)
{
    volatile double least = DBL_MIN;
    return (arithmetic){fegetround(), least / 2 == 0};
}

/* Sets whether they do; false where the test does not know how. */
static bool flush(bool on)
{
#if defined(__x86_64__)
    const unsigned bits = 0x8040; /* FTZ, DAZ */
    const unsigned now = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? now | bits : now & ~bits);
    return true;
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    now = on ? now | (1u << 24) : now & ~(uint64_t)(1u << 24);
    __asm__ volatile("msr fpcr, %0" : : "r"(now));
    return true;
#else
    return !on;
#endif
}

enum { MET = 4 };

typedef struct meeting {
    atomic_int here;
    int worker[MET];
    arithmetic seen[MET];
} meeting;

/* Ends when all of MET tasks have begun, so that each of MET threads runs one of them: who has
 * one can't take another. Gives up after a minute, which the caller sees. */
static void meet(void *arg, int64_t task, int worker)
{
    meeting *m = arg;
    m->worker[task] = worker;
    m->seen[task] = arithmetic_here();
    atomic_fetch_add(&m->here, 1);
    const struct timespec nap = {0, 100000};
    for (int i = 0; i < 600000 && atomic_load(&m->here) < MET; i++)
        nanosleep(&nap, NULL);
}

static void all_threads_see(gnomon_context *ctx, int rounding, bool flushes)
{
    meeting m = {.here = 0};
    bool met[MET] = {false};
    gnomon_parallel(ctx, MET, meet, &m);
    fesetround(FE_TONEAREST);
    flush(false);
    assert_int_equal(m.here, MET);
    for (int i = 0; i < MET; i++) {
        assert_int_equal(m.seen[i].rounding, rounding);
        assert_int_equal(m.seen[i].flushes, flushes);
        assert_in_range(m.worker[i], 0, MET - 1);
        assert_false(met[m.worker[i]]);
        met[m.worker[i]] = true;
    }
}

static void tasks_have_the_callers_arithmetic(void **state)
{
    (void)state;
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    gnomon_context *ctx = context(MET);
    all_threads_see(ctx, FE_TONEAREST, false); /* the threads now run */
    for (int i = 0; i < 8; i++) {
        const bool flushes = i % 2 == 1 && flush(true);
        assert_int_equal(fesetround(roundings[i / 2]), 0);
        all_threads_see(ctx, roundings[i / 2], flushes);
        all_threads_see(ctx, FE_TONEAREST, false);
    }
    gnomon_context_destroy(ctx);
}

static void note_signals(void *arg, int64_t task, int worker)
{
    (void)task;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    if ((worker > 0) != (sigismember(&blocked, SIGINT) == 1))
        atomic_fetch_add((atomic_int *)arg, 1);
}

static void workers_take_no_signals(void **state)
{
    (void)state;
    gnomon_context *ctx = context(4);
    atomic_int bad = 0;
    gnomon_parallel(ctx, 1000, note_signals, &bad);
    assert_int_equal(bad, 0);
    gnomon_context_destroy(ctx);
}

typedef struct listener {
    int calls, stop_at;
    int64_t last_done, last_total;
    char phase[32];
} listener;

static int listen(void *user, const char *phase, int64_t done, int64_t total)
{
    listener *l = user;
    l->calls++;
    l->last_done = done;
    l->last_total = total;
    strncpy(l->phase, phase, sizeof l->phase - 1);
    return l->calls == l->stop_at;
}

static gnomon_context *listened(listener *l)
{
    gnomon_context_options o = GNOMON_CONTEXT_OPTIONS_INIT;
    o.progress = listen;
    o.progress_user = l;
    gnomon_context *ctx;
    assert_int_equal(gnomon_context_create(&o, &ctx), GNOMON_OK);
    return ctx;
}

static void progress_is_rate_limited(void **state)
{
    (void)state;
    listener l = {0};
    gnomon_context *ctx = listened(&l);
    for (int64_t done = 0; done <= 100000; done++)
        assert_int_equal(gnomon_progress(ctx, "sketch", done, 100000), GNOMON_OK);
    /* the first and the last go out whatever the clock says */
    assert_true(l.calls >= 2 && l.calls < 10000);
    assert_int_equal(l.last_done, 100000);
    assert_int_equal(l.last_total, 100000);
    assert_string_equal(l.phase, "sketch");
    gnomon_context_destroy(ctx);

    ctx = context(1); /* without a callback nothing happens */
    assert_int_equal(gnomon_progress(ctx, "sketch", 1, -1), GNOMON_OK);
    gnomon_context_destroy(ctx);
}

static void the_callback_cancels(void **state)
{
    (void)state;
    listener l = {.stop_at = 2};
    gnomon_context *ctx = listened(&l);
    assert_int_equal(gnomon_progress(ctx, "reading", 0, 9), GNOMON_OK);
    assert_int_equal(gnomon_progress(ctx, "reading", 9, 9), GNOMON_ERROR_CANCELLED);
    assert_non_null(strstr(gnomon_last_error(ctx), "reading"));
    assert_int_equal(gnomon_progress(ctx, "reading", 9, 9), GNOMON_OK);
    gnomon_context_destroy(ctx);
}

typedef struct loop {
    gnomon_asking asking;
    pthread_t caller;
    atomic_llong ran, asked_elsewhere;
} loop;

static void ask(void *arg, int64_t task, int worker)
{
    loop *l = arg;
    (void)task;
    if (worker == 0 && !pthread_equal(pthread_self(), l->caller))
        atomic_fetch_add(&l->asked_elsewhere, 1);
    if (!gnomon_asking_stops(&l->asking, worker)) atomic_fetch_add(&l->ran, 1);
}

static void a_loop_asks_the_caller(void **state)
{
    (void)state;
    enum { MANY = 1000000 };
    for (int stop_at = 0; stop_at < 2; stop_at++) {
        listener l = {.stop_at = stop_at};
        gnomon_context *ctx = listened(&l);
        loop x = {.asking = {.ctx = ctx, .phase = "search", .done = 3, .total = 9},
                  .caller = pthread_self()};
        gnomon_parallel(ctx, MANY, ask, &x);
        assert_int_equal(x.asking.status, stop_at ? GNOMON_ERROR_CANCELLED : GNOMON_OK);
        assert_int_equal(x.asked_elsewhere, 0);
        assert_true(stop_at ? x.ran < MANY && l.calls == 1 : x.ran == MANY && l.calls >= 1);
        assert_int_equal(l.last_done, 3);
        assert_int_equal(l.last_total, 9);
        gnomon_context_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_runs_once),
        cmocka_unit_test(many_contexts_at_once),
        cmocka_unit_test(tasks_have_the_callers_arithmetic),
        cmocka_unit_test(workers_take_no_signals),
        cmocka_unit_test(progress_is_rate_limited),
        cmocka_unit_test(the_callback_cancels),
        cmocka_unit_test(a_loop_asks_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
