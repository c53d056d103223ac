#include "base/device.h"

#include "base/context.h"
#include "base/error.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

static int progress(void *user, int64_t done, int64_t total)
{
    const gnomon_device_call *call = user;
    return gnomon_progress(call->ctx, call->phase, done, total) != GNOMON_OK;
}

static void parallel(void *user, int64_t count, void (*task)(void *arg, int64_t task, int worker),
                     void *arg)
{
    const gnomon_device_call *call = user;
    gnomon_parallel(call->ctx, count, task, arg);
}

static void about(void *user, const char *argument, int64_t row, int64_t col)
{
    gnomon_device_call *call = user;
    snprintf(call->argument, sizeof call->argument, "%s", argument);
    call->row = row;
    call->col = col;
}

static gnomon_status checked(void *user)
{
    (void)user;
    return GNOMON_OK;
}

void gnomon_device_again(gnomon_device_call *call)
{
    call->why[0] = call->argument[0] = 0;
}

bool gnomon_device_unable(gnomon_device_call *call, const char *why)
{
    snprintf(call->why, sizeof call->why, "%s", why);
    return false;
}

gnomon_status gnomon_device_result(gnomon_device_call *call, gnomon_status status)
{
    if (status == GNOMON_OK || status == GNOMON_ERROR_CANCELLED)
        return status; /* 'progress' has left the text */
    if (call->calls_back && call->why[0] == 0) return status;
    /* Other failures are about the call's arguments or data, and not about the device. */
    if (status == GNOMON_ERROR_DEVICE || status == GNOMON_ERROR_MEMORY)
        return gnomon_fail(call->ctx, status, "%s: %s", call->table->name,
                           call->why[0] ? call->why : "failed");
    gnomon_fail(call->ctx, status, "%s", call->why);
    if (call->argument[0]) gnomon_fail_about(call->ctx, call->argument, call->row, call->col);
    return status;
}

/* No device has the job. */
static gnomon_status decline(const gnomon_device_call *call, gnomon_where where,
                             const gnomon_device_step *step)
{
    const char *reason = where == GNOMON_ON_CPU ? "this step runs on the CPU"
                         : call->table == NULL  ? gnomon_context_device_reason(call->ctx)
                         : call->why[0]         ? call->why
                                                : "it gave no reason";
    GNOMON_FAIL_IF(call->must && call->table, call->ctx, GNOMON_ERROR_DEVICE, "%s declined: %s",
                   call->table->name, reason);
    GNOMON_FAIL_IF(call->must, call->ctx, GNOMON_ERROR_DEVICE, "no device: %s", reason);
    GNOMON_FAIL_IF(
        step->there, call->ctx, GNOMON_ERROR_DEVICE,
        GNOMON_ARG("%s") " lies in a device's memory, and the device did not take the job: %s",
        step->there, reason);
    if (where == GNOMON_BY_CONTEXT) {
        gnomon_context_set_worked(call->ctx, NULL);
        gnomon_context_set_declined(call->ctx, call->table       ? reason
                                               : step->not_worth ? step->because
                                                                 : NULL);
    }
    return GNOMON_OK;
}

/* A device has failed, not the job: the CPU does it, and gnomon_context_declined tells why. */
static bool goes_on(const gnomon_device_call *call, const gnomon_device_step *step,
                    gnomon_status status)
{
    const bool device = status == GNOMON_ERROR_DEVICE || status == GNOMON_ERROR_MEMORY;
    if (call->must || !call->repeats || step->there || !device || call->why[0] == 0) return false;
    char reason[256];
    snprintf(reason, sizeof reason, "%s failed: %.220s", call->table->name, call->why);
    gnomon_context_set_worked(call->ctx, NULL);
    gnomon_context_set_declined(call->ctx, reason);
    return true;
}

gnomon_status gnomon_device_run(gnomon_device_call *call, gnomon_context *ctx, gnomon_where where,
                                const gnomon_device_step *step, void *job, bool *done)
{
    *done = false;
    *call = (gnomon_device_call){.ctx = ctx,
                                 .calls_back = step->calls_back,
                                 .repeats = step->repeats,
                                 .phase = step->phase,
                                 .why = ""};
    call->host = (gnomon_device_host){call, progress, parallel, about, checked, 0};
    call->must = where == GNOMON_BY_CONTEXT && gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN;
    const bool ask = where == GNOMON_BY_CONTEXT && (call->must || !step->not_worth);
    for (int i = 0; ask && !*done; i++) {
        const gnomon_plugin *plugin = gnomon_context_plugin(ctx, i);
        if (plugin == NULL) break;
        call->plugin = plugin;
        call->table = plugin->table;
        call->state = plugin->state;
        gnomon_device_again(call);
        *done = step->takes(call, job);
    }
    if (!*done) return decline(call, where, step);
    gnomon_context_set_worked(ctx, call->plugin);
    gnomon_device_again(call);
    const gnomon_status status = step->run(call, job);
    if (!goes_on(call, step, status)) return gnomon_device_result(call, status);
    *done = false;
    return GNOMON_OK;
}

gnomon_status gnomon_device_refuse(gnomon_context *ctx, gnomon_where where, const char *what)
{
    GNOMON_FAIL_IF(where == GNOMON_BY_CONTEXT && gnomon_context_device(ctx) == GNOMON_DEVICE_PLUGIN,
                   ctx, GNOMON_ERROR_DEVICE, "%s; use the device cpu or auto", what);
    return GNOMON_OK;
}
