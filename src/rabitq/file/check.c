/* A file of codes held against everything that docs/reference/formats.md says of it. */
#include "rabitq/file/file.h"

#include "base/memory.h"
#include "base/threads.h"
#include "metric/metric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef struct checker {
    gnomon_context *ctx;
    gnomon_rabitq_fault_fn fn;
    void *user;
    int64_t faults;
    char first[256];
} checker;

static void tell(void *user, const char *section, const char *fault)
{
    checker *c = user;
    if (c->faults++ == 0) snprintf(c->first, sizeof c->first, "%s: %s", section, fault);
    if (c->fn != NULL) c->fn(c->user, section, fault);
}

gnomon_status gnomon_rabitq_check_bytes(gnomon_context *ctx, const gnomon_rabitq *index)
{
    gnomon_layout layout;
    checker c = {ctx, NULL, NULL, 0, ""};
    if (index->map == NULL) return GNOMON_OK;
    GNOMON_TRY(
        gnomon_layout_check(ctx, &gnomon_rabitq_file, index->map, index->map_bytes, &layout));
    GNOMON_TRY(gnomon_layout_sums(ctx, &layout, tell, &c));
    return c.faults == 0 ? GNOMON_OK : gnomon_fail(ctx, GNOMON_ERROR_DATA, "%s", c.first);
}

/* Each point's code made again. */
static gnomon_status check_codes(checker *c, const gnomon_rabitq *index)
{
    enum { SOME = 4096 };
    const int bits = (int)index->options.bits, each = gnomon_rabitq_factors(bits);
    const int64_t bytes = gnomon_rabitq_bytes(index->m, bits);
    const gnomon_kernels *k = gnomon_cpu_kernels(gnomon_context_isa(c->ctx));
    gnomon_rabitq_room *rooms;
    double *numbers;
    uint8_t *made = NULL;
    float *floats = NULL;
    float factors[3];
    char text[128];
    gnomon_status status = gnomon_rabitq_rooms(c->ctx, index->m, &rooms, &numbers);
    if (status == GNOMON_OK)
        status = gnomon_alloc(c->ctx, gnomon_plus(index->m, bytes), 1, "a code", &made);
    if (status == GNOMON_OK)
        status = gnomon_alloc(c->ctx, index->m, sizeof *floats, "a code", &floats);
    for (int64_t i = 0; i < index->points && status == GNOMON_OK && c->faults == 0; i++) {
        int64_t col;
        if (gnomon_row_fault(&index->x, i, &col) != GNOMON_OK) {
            snprintf(text, sizeof text,
                     "row %" PRId64 ", column %" PRId64
                     " has NaN, infinity or a magnitude above 2^500",
                     i, col);
            tell(c, "points", text);
            break;
        }
        gnomon_rabitq_encode(index, k, &index->x, i, rooms, made, floats, made + index->m, factors);
        const bool same = memcmp(made + index->m, index->codes + i * bytes, (size_t)bytes) == 0;
        snprintf(text, sizeof text, "that of point %" PRId64 " is not its own", i);
        if (!same)
            tell(c, "codes", text);
        else if (memcmp(factors, index->factors + i * each, sizeof *factors * (size_t)each) != 0)
            tell(c, "factors", text);
        if (i % SOME == 0) status = gnomon_progress(c->ctx, "codes", i, index->points + 1);
    }
    gnomon_free(c->ctx, rooms);
    gnomon_free(c->ctx, numbers);
    gnomon_free(c->ctx, made);
    gnomon_free(c->ctx, floats);
    return status;
}

static gnomon_status check(checker *c, const char *path)
{
    gnomon_layout layout;
    gnomon_rabitq *index = NULL;
    GNOMON_TRY(gnomon_layout_map(c->ctx, &gnomon_rabitq_file, path, &layout));
    gnomon_status status = gnomon_layout_sums(c->ctx, &layout, tell, c);
    if (status != GNOMON_OK || c->faults > 0) {
        munmap((void *)layout.map, (size_t)layout.bytes);
        return status;
    }
    status = gnomon_rabitq_load(c->ctx, &layout, &index);
    if (status == GNOMON_ERROR_DATA) {
        const char *section = gnomon_last_error_argument(c->ctx);
        tell(c, section[0] != '\0' ? section : "layout", gnomon_last_error(c->ctx));
        return GNOMON_OK;
    }
    if (status == GNOMON_OK && index->x.data != NULL) status = check_codes(c, index);
    gnomon_rabitq_destroy(index);
    return status;
}

gnomon_status gnomon_rabitq_check(gnomon_context *ctx, const char *path, gnomon_rabitq_fault_fn fn,
                                  void *user)
{
    checker c = {ctx, fn, user, 0, ""};
    GNOMON_NEED(NULL, ctx, "ctx");
    GNOMON_TRY(check(&c, path));
    if (c.faults == 0) return GNOMON_OK;
    return gnomon_fail(ctx, GNOMON_ERROR_DATA, GNOMON_ARG("%s") ": %s", path, c.first);
}
