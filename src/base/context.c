#include "base/context.h"

#include "base/cores.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

GNOMON_OPTIONS_INIT(gnomon_context_options, GNOMON_CONTEXT_OPTIONS_INIT)

enum { MAX_THREADS = 4096 };

#define DEFAULT_MEMORY_LIMIT ((int64_t)1 << 30)

/* The options with defaults for what the caller's version of the struct does not have. */
static gnomon_status read_options(const gnomon_context_options *given, gnomon_context_options *o)
{
    *o = (gnomon_context_options)GNOMON_CONTEXT_OPTIONS_INIT;
    if (given) GNOMON_TRY(GNOMON_COPY_OPTIONS(NULL, "options", gnomon_context_options, given, o));
    GNOMON_FAIL_IF(o->threads < 0 || o->threads > MAX_THREADS, NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.threads") " is %d; it must be from 0 (one per core) to %d",
                   o->threads, (int)MAX_THREADS);
    GNOMON_FAIL_IF(o->memory_limit < 0, NULL, GNOMON_ERROR_ARGUMENT,
                   GNOMON_ARG("options.memory_limit") " is %" PRId64
                                                      "; it must be 0 (1 GiB) or a positive "
                                                      "number of bytes",
                   o->memory_limit);
    GNOMON_FAIL_IF(o->allocator && (!o->allocator->allocate || !o->allocator->release), NULL,
                   GNOMON_ERROR_ARGUMENT,
                   "options.allocator: allocate and release must both be given");
    return GNOMON_OK;
}

gnomon_status gnomon_context_create(const gnomon_context_options *options, gnomon_context **out)
{
    GNOMON_FAIL_IF(!out, NULL, GNOMON_ERROR_ARGUMENT, GNOMON_ARG("out") " is NULL");
    *out = NULL;
    gnomon_context_options o;
    GNOMON_TRY(read_options(options, &o));
    gnomon_device_spec spec;
    GNOMON_TRY(gnomon_device_read(o.device, &spec));
    gnomon_isa isa;
    GNOMON_TRY(gnomon_isa_choose(NULL, &isa));

    const size_t align = _Alignof(gnomon_context);
    gnomon_context *ctx = o.allocator ? o.allocator->allocate(o.allocator->user, sizeof *ctx, align)
                                      : malloc(sizeof *ctx);
    GNOMON_FAIL_IF(!ctx, NULL, GNOMON_ERROR_MEMORY, "no memory for a context of %zu bytes",
                   sizeof *ctx);
    memset(ctx, 0, sizeof *ctx);
    ctx->threads = o.threads ? o.threads : gnomon_usable_cores();
    ctx->isa = isa;
    ctx->error.row = ctx->error.col = -1;
    if (o.allocator) {
        ctx->custom_allocator = true;
        ctx->allocator = *o.allocator;
    }
    ctx->progress = o.progress;
    ctx->progress_user = o.progress_user;
    ctx->memory_limit = o.memory_limit ? o.memory_limit : DEFAULT_MEMORY_LIMIT;
    ctx->memory_limited = o.memory_limit != 0;
    ctx->seed = o.seed;
    ctx->plugins.spec = spec;

    gnomon_status status = gnomon_pool_open(ctx, &ctx->pool, ctx->threads);
    if (status == GNOMON_OK && spec.kind == GNOMON_DEVICE_PLUGIN) {
        gnomon_plugins_find(&ctx->plugins);
        if (ctx->plugins.count == 0)
            status = gnomon_fail(ctx, GNOMON_ERROR_DEVICE,
                                 GNOMON_ABOUT("options.device") "no %s device can be had: %s",
                                 spec.name, ctx->plugins.reason);
    }
    if (status != GNOMON_OK) {
        gnomon_fail_without(ctx);
        gnomon_context_destroy(ctx);
        return status;
    }
    *out = ctx;
    return GNOMON_OK;
}

void gnomon_context_destroy(gnomon_context *ctx)
{
    if (!ctx) return;
    gnomon_pool_close(ctx, &ctx->pool);
    gnomon_plugins_close(&ctx->plugins);
    if (ctx->custom_allocator) {
        const gnomon_allocator allocator = ctx->allocator;
        allocator.release(allocator.user, ctx, sizeof *ctx);
    } else {
        free(ctx);
    }
}

int gnomon_context_threads(const gnomon_context *ctx)
{
    if (ctx == NULL) return 0;
    return ctx->threads;
}

const char *gnomon_context_isa(const gnomon_context *ctx)
{
    if (ctx == NULL) return "";
    return gnomon_isa_name(ctx->isa);
}

gnomon_device gnomon_context_device(const gnomon_context *ctx)
{
    return ctx->plugins.spec.kind;
}

void gnomon_context_set_worked(gnomon_context *ctx, const gnomon_plugin *plugin)
{
    ctx->worked = plugin ? GNOMON_DEVICE_PLUGIN : GNOMON_DEVICE_CPU;
    if (plugin) ctx->worked_plugin = plugin;
    ctx->declined[0] = 0;
}

void gnomon_context_set_declined(gnomon_context *ctx, const char *why)
{
    if (why != NULL && ctx->plugins.spec.kind == GNOMON_DEVICE_AUTO)
        snprintf(ctx->declined, sizeof ctx->declined, "%s", why);
}

const char *gnomon_context_declined(const gnomon_context *ctx)
{
    return ctx == NULL ? "" : ctx->declined;
}

gnomon_device gnomon_context_worked_on(const gnomon_context *ctx)
{
    if (ctx == NULL) return GNOMON_DEVICE_AUTO;
    return ctx->worked;
}

uint64_t gnomon_context_seed(const gnomon_context *ctx)
{
    return ctx->seed;
}

int64_t gnomon_memory_limit(const gnomon_context *ctx)
{
    return ctx->memory_limit;
}
