#include "base/context.h"
#include "base/error.h"
#include "base/memory.h"

#include <signal.h>
#include <time.h>

/* Takes tasks until there are none: a share of what is left, so that threads seldom meet at the
 * counter or write to the same line of a cache, and one by one towards the end, so that they end
 * together. */
static void work(gnomon_pool *pool, int worker)
{
    enum { MOST = 64, SHARES = 16 };
    const int64_t count = pool->count, shares = SHARES * (int64_t)(pool->started + 1);
    int64_t task = atomic_load_explicit(&pool->next, memory_order_relaxed);
    while (task < count) {
        const int64_t share = (count - task) / shares, some = share < 1 ? 1 : share;
        const int64_t end = task + (some < MOST ? some : MOST);
        if (!atomic_compare_exchange_weak_explicit(&pool->next, &task, end, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        for (; task < end; task++)
            pool->fn(pool->arg, task, worker);
        task = atomic_load_explicit(&pool->next, memory_order_relaxed);
    }
}

/* Loops often follow each other within microseconds, and waking a thread takes longer than
 * that: a thread looks this many times before it sleeps, some ten microseconds. */
enum { POLLS = 1000 };

static void poll_again(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void *worker_main(void *arg)
{
    const gnomon_pool_worker *self = arg;
    gnomon_pool *pool = self->pool;
    uint64_t seen = 0;
    for (;;) {
        for (int i = 0; i < POLLS && atomic_load(&pool->round) == seen; i++)
            poll_again();
        pthread_mutex_lock(&pool->lock);
        /* Who comes when the round is over has missed it: no thread waits for late ones. */
        while ((atomic_load(&pool->round) == seen || !pool->open) && !pool->closing)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->closing) break;
        seen = atomic_load(&pool->round);
        atomic_fetch_add(&pool->active, 1);
        pthread_mutex_unlock(&pool->lock);

        /* A task must come to the same bits on whichever thread it lands. */
        fesetenv(&pool->arithmetic);
        work(pool, self->number);

        pthread_mutex_lock(&pool->lock);
        if (atomic_fetch_sub(&pool->active, 1) == 1) pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Starts the threads that are missing, as many as the system gives. */
static void start(gnomon_pool *pool)
{
    if (pool->started == pool->places) return;
    /* Signals are the program's business: they must reach its own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->places) {
        gnomon_pool_worker *w = &pool->workers[pool->started];
        w->pool = pool;
        w->number = pool->started + 1;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) break;
        pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

gnomon_status gnomon_pool_open(gnomon_context *ctx, gnomon_pool *pool, int threads)
{
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    GNOMON_TRY(gnomon_alloc_zero(ctx, threads - 1, sizeof *pool->workers, "the thread table",
                                 &pool->workers));
    pool->places = threads - 1;
    return GNOMON_OK;
}

void gnomon_pool_close(gnomon_context *ctx, gnomon_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    gnomon_free(ctx, pool->workers);
}

void gnomon_parallel(gnomon_context *ctx, int64_t count, gnomon_task_fn fn, void *arg)
{
    gnomon_pool *pool = &ctx->pool;
    if (count > 1 && pool->places > 0) start(pool);
    if (count <= 1 || pool->started == 0) {
        for (int64_t task = 0; task < count; task++)
            fn(arg, task, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->arg = arg;
    pool->count = count;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    fegetenv(&pool->arithmetic);
    pool->open = true;
    atomic_fetch_add(&pool->round, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);

    work(pool, 0);

    for (int i = 0; i < POLLS && atomic_load(&pool->active) > 0; i++)
        poll_again();
    pthread_mutex_lock(&pool->lock);
    pool->open = false;
    while (atomic_load(&pool->active) > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

gnomon_status gnomon_progress(gnomon_context *ctx, const char *phase, int64_t done, int64_t total)
{
    if (!ctx->progress) return GNOMON_OK;
    const int64_t interval = 100000000; /* nanoseconds */
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (done != total && ctx->progress_last && now - ctx->progress_last < interval)
        return GNOMON_OK;
    ctx->progress_last = now;
    if (ctx->progress(ctx->progress_user, phase, done, total) == 0) return GNOMON_OK;
    return gnomon_fail(ctx, GNOMON_ERROR_CANCELLED, "%s: cancelled by the progress callback",
                       phase);
}

bool gnomon_asking_stops(gnomon_asking *asking, int worker)
{
    if (atomic_load_explicit(&asking->stop, memory_order_relaxed)) return true;
    if (worker != 0) return false;
    asking->status = gnomon_progress(asking->ctx, asking->phase, asking->done, asking->total);
    if (asking->status == GNOMON_OK) return false;
    atomic_store_explicit(&asking->stop, true, memory_order_relaxed);
    return true;
}
