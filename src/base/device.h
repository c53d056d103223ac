/* base/device.h: how a job is offered to the context's device.
 *
 * There is one way for all jobs: gnomon_device_run asks the device, which takes the job or says why
 * not, runs it there and makes a failure's text; when no device has it, the job is the CPU's,
 * unless the caller named a device or only the device can read the views. */
#ifndef GNOMON_BASE_DEVICE_H
#define GNOMON_BASE_DEVICE_H

#include "backend.h"

#include <stdbool.h>

/* Where a call runs: as the context says, or on the CPU whatever it says. The second is for the
 * steps of a job that runs on the CPU: where they ran would show in the last bits. */
typedef enum gnomon_where { GNOMON_BY_CONTEXT, GNOMON_ON_CPU } gnomon_where;

/* A job on its way to a device and there. host.user is this struct, so it stays where it is until
 * the device has let go of the job. */
typedef struct gnomon_device_call {
    gnomon_context *ctx;
    const struct gnomon_plugin *plugin; /* NULL: there is no device */
    const gnomon_device_table *table;   /* the plugin's */
    void *state;                        /* of the table's functions */
    bool must;                          /* the caller named the device: the CPU is no way out */
    bool calls_back, repeats;           /* as in the step; 'run' may take the second back */
    const char *phase;                  /* of progress */
    gnomon_device_host host;            /* for the job */
    char why[256];                      /* for the table's functions */
    char argument[64];                  /* what host.about has told; "": nothing */
    int64_t row, col;
} gnomon_device_call;

/* What a kind of job has to say. */
typedef struct gnomon_device_step {
    const char *phase; /* of progress */
    /* Asks call->table whether it takes the job; where it has no function for it, returns
     * gnomon_device_unable. */
    bool (*takes)(gnomon_device_call *call, void *job);
    /* Calls the table's function. An empty call->why with a failure: see calls_back. */
    gnomon_status (*run)(gnomon_device_call *call, void *job);
    /* The job has functions of the core's, whose failures have left their text: one without a
     * reason of the device's is theirs. */
    bool calls_back;
    /* What a device has begun can be done anew, as it only writes what is written again: under AUTO
     * a device that fails, or is full, leaves the job to the CPU. */
    bool repeats;
    bool not_worth;      /* what AUTO would gain is less than it costs to look for a device */
    const char *because; /* not_worth's reason, for reports; NULL: none to tell */
    const char *there;   /* names the views in a device's memory; NULL: there are none */
} gnomon_device_step;

/* Offers a job. *done tells whether a device had it, the status how that went; *done false with OK:
 * it is the CPU's, as no device took it or one failed that may. Notes where the job runs, but not
 * that of a step ON_CPU. Errors: DEVICE (the device that the caller named declined; views that only
 * a device can read), and the device's. */
gnomon_status gnomon_device_run(gnomon_device_call *call, gnomon_context *ctx, gnomon_where where,
                                const gnomon_device_step *step, void *job, bool *done);

/* Puts why into call->why; false. */
bool gnomon_device_unable(gnomon_device_call *call, const char *why);

/* Before a later call of the table's, on a job that a device holds; and what that came to. */
void gnomon_device_again(gnomon_device_call *call);
gnomon_status gnomon_device_result(gnomon_device_call *call, gnomon_status status);

/* Fails with DEVICE when the caller named a device, for what only the CPU does: "WHAT run(s) on the
 * CPU; ...". */
gnomon_status gnomon_device_refuse(gnomon_context *ctx, gnomon_where where, const char *what);

#endif
