/* base/threads.h: the context's worker threads. */
#ifndef GNOMON_BASE_THREADS_H
#define GNOMON_BASE_THREADS_H

#include <gnomon/base.h>

#include <stdatomic.h>
#include <stdbool.h>

/* One task of a parallel loop. worker is in [0, gnomon_context_threads(ctx)) and no two
 * tasks run at once with the same worker, so it may index per-thread scratch. A task
 * must not touch the context (no allocation, no error text, but see gnomon_asking) and what it
 * computes must depend on task alone, never on worker or on the order of tasks. */
typedef void (*gnomon_task_fn)(void *arg, int64_t task, int worker);

/* Runs tasks 0 .. count-1 on the context's threads (the caller is one of them) and
 * returns when all are done. Tasks are handed out in order, some at once where there are many: a
 * task may be as small as a row. With one thread or one task it is a plain loop. Not reentrant
 * from inside a task. Never fails. */
void gnomon_parallel(gnomon_context *ctx, int64_t count, gnomon_task_fn fn, void *arg);

/* Reports progress (rate-limited to about ten calls a second; the last report, done ==
 * total, always goes out) and returns GNOMON_ERROR_CANCELLED when the callback asks to
 * stop. Call it from the caller's thread only. */
gnomon_status gnomon_progress(gnomon_context *ctx, const char *phase, int64_t done, int64_t total);

/* How a loop whose tasks take seconds in all asks the caller whether to go on: made before the
 * loop, whose tasks call gnomon_asking_stops now and then and return early where it is true. After
 * the loop 'status' is that of the call, and what the tasks left is worth nothing unless it is OK.
 */
typedef struct gnomon_asking {
    gnomon_context *ctx;
    const char *phase;
    int64_t done, total; /* as they were before the loop; not equal */
    gnomon_status status;
    atomic_bool stop;
} gnomon_asking;

/* Worker 0, which is the caller's thread, reports progress; the others see what came of it. */
bool gnomon_asking_stops(gnomon_asking *asking, int worker);

/* Bytes of working memory a call may take (the option, or its default). */
int64_t gnomon_memory_limit(const gnomon_context *ctx);

#endif
