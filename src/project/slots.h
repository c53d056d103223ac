/* project/slots.h: parallel tasks with no more at once than there is memory for. */
#ifndef GNOMON_PROJECT_SLOTS_H
#define GNOMON_PROJECT_SLOTS_H

#include <gnomon/base.h>

/* As gnomon_task_fn; no two tasks run at once with the same slot. */
typedef void (*gnomon_slot_fn)(void *arg, int64_t task, int64_t slot);

/* Runs tasks 0 .. tasks-1 on the context's threads, at most 'slots' at once. */
void gnomon_in_slots(gnomon_context *ctx, int64_t slots, int64_t tasks, gnomon_slot_fn fn,
                     void *arg);

#endif
