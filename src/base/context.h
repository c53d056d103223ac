/* base/context.h: what a context holds, for src/base and for read-only accessors. */
#ifndef GNOMON_BASE_CONTEXT_H
#define GNOMON_BASE_CONTEXT_H

#include "base/isa.h"
#include "base/plugin.h"
#include "base/pool.h"

#include <gnomon/base.h>

#include <stdbool.h>

enum { GNOMON_ERROR_TEXT = 1024, GNOMON_ERROR_ARGUMENT_TEXT = 512 };

/* A failed call's. */
typedef struct gnomon_error {
    char text[GNOMON_ERROR_TEXT];
    char argument[GNOMON_ERROR_ARGUMENT_TEXT];
    int64_t row, col; /* -1: none */
} gnomon_error;

struct gnomon_context {
    int threads;
    gnomon_isa isa;
    bool custom_allocator;
    gnomon_allocator allocator;
    gnomon_progress_fn progress;
    void *progress_user;
    int64_t progress_last; /* nanoseconds of the monotonic clock; 0: none yet */
    int64_t memory_limit;
    bool memory_limited; /* it was given */
    uint64_t seed;
    gnomon_pool pool;
    gnomon_plugins plugins;
    gnomon_device worked;               /* where the last job ran: AUTO when there was none */
    const gnomon_plugin *worked_plugin; /* of the last one that ran on a device; NULL: none did */
    char declined[256];                 /* why the last one ran on the CPU; "": nothing to tell */
    gnomon_error error;
};

/* What the caller asked for: AUTO, CPU, or PLUGIN where a device was named, which must then do all
 * work or fail. */
gnomon_device gnomon_context_device(const gnomon_context *ctx);
/* Notes that a job runs there; NULL: on the CPU. */
void gnomon_context_set_worked(gnomon_context *ctx, const gnomon_plugin *plugin);
/* Notes why the job that set_worked told of runs on the CPU; NULL: there is nothing to tell. */
void gnomon_context_set_declined(gnomon_context *ctx, const char *why);
/* The seed of samples. */
uint64_t gnomon_context_seed(const gnomon_context *ctx);

#endif
