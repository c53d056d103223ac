/* base/pool.h: the worker threads behind gnomon_parallel. */
#ifndef GNOMON_BASE_POOL_H
#define GNOMON_BASE_POOL_H

#include "base/threads.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct gnomon_pool gnomon_pool;

typedef struct gnomon_pool_worker {
    gnomon_pool *pool;
    pthread_t thread;
    int number;
} gnomon_pool_worker;

struct gnomon_pool {
    gnomon_pool_worker *workers; /* threads - 1 places, of the context's allocator */
    int places;
    int started; /* how many of them run; they start with the first loop that needs them */

    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* Changed under the lock only; atomic for those who look before they take it. */
    atomic_uint_least64_t round; /* of loops handed out */
    atomic_int active;           /* workers in the round */
    bool open;                   /* the round still takes workers in */
    bool closing;

    /* the loop of the round */
    gnomon_task_fn fn;
    void *arg;
    int64_t count;
    atomic_int_least64_t next;
    fenv_t arithmetic; /* the caller's rounding and flush modes */
};

/* Prepares a pool for so many threads, the caller among them. Errors: MEMORY. */
gnomon_status gnomon_pool_open(gnomon_context *ctx, gnomon_pool *pool, int threads);

/* Ends the threads. */
void gnomon_pool_close(gnomon_context *ctx, gnomon_pool *pool);

#endif
