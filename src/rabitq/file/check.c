/* A file of codes held against everything that docs/reference/formats.md says of it. */
#include "rabitq/file/file.h"

#include "base/memory.h"
#include "base/threads.h"
#include "metric/metric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

gnomon_status gnomon_rabitq_check_bytes(gnomon_context *ctx, const gnomon_rabitq *index)
{
    return gnomon_file_check_bytes(ctx, &gnomon_rabitq_file, index->map, index->map_bytes);
}

/* Each point's code made again. */
static gnomon_status check_codes(gnomon_checker *c, const gnomon_rabitq *index)
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
            gnomon_tell(c, "points", text);
            break;
        }
        gnomon_rabitq_encode(index, k, &index->x, i, rooms, made, floats, made + index->m, factors);
        const bool same = memcmp(made + index->m, index->codes + i * bytes, (size_t)bytes) == 0;
        snprintf(text, sizeof text, "that of point %" PRId64 " is not its own", i);
        if (!same)
            gnomon_tell(c, "codes", text);
        else if (memcmp(factors, index->factors + i * each, sizeof *factors * (size_t)each) != 0)
            gnomon_tell(c, "factors", text);
        if (i % SOME == 0) status = gnomon_progress(c->ctx, "codes", i, index->points + 1);
    }
    gnomon_free(c->ctx, rooms);
    gnomon_free(c->ctx, numbers);
    gnomon_free(c->ctx, made);
    gnomon_free(c->ctx, floats);
    return status;
}

static gnomon_status check(gnomon_checker *c, const gnomon_layout *layout)
{
    gnomon_rabitq *index = NULL;
    gnomon_status status = gnomon_rabitq_load(c->ctx, layout, &index);
    if (status != GNOMON_OK) return gnomon_tell_error(c, status);
    if (index->x.data != NULL) status = check_codes(c, index);
    gnomon_rabitq_destroy(index);
    return status;
}

gnomon_status gnomon_rabitq_check(gnomon_context *ctx, const char *path, gnomon_rabitq_fault_fn fn,
                                  void *user)
{
    return gnomon_file_check(ctx, &gnomon_rabitq_file, path, check, fn, user);
}
