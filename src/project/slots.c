#include "project/slots.h"

#include "base/threads.h"

#include <stdatomic.h>

typedef struct job {
    gnomon_slot_fn fn;
    void *arg;
    int64_t tasks;
    atomic_int_least64_t next;
} job;

static void slot_main(void *arg, int64_t slot, int worker)
{
    (void)worker;
    job *j = arg;
    for (;;) {
        const int64_t task = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (task >= j->tasks) return;
        j->fn(j->arg, task, slot);
    }
}

void gnomon_in_slots(gnomon_context *ctx, int64_t slots, int64_t tasks, gnomon_slot_fn fn,
                     void *arg)
{
    job j = {.fn = fn, .arg = arg, .tasks = tasks};
    atomic_init(&j.next, 0);
    gnomon_parallel(ctx, slots < tasks ? slots : tasks, slot_main, &j);
}
