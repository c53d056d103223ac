#include "gemm/tasks.h"

#include "base/arithmetic.h"
#include "base/context.h"
#include "base/error.h"

#include <inttypes.h>

int64_t gnomon_gemm_wave(gnomon_context *ctx, int64_t tasks, int64_t slots, double some,
                         double work)
{
    if (!ctx->progress) return tasks;
    const double wave = some * (double)slots / work;
    return gnomon_min(tasks, gnomon_max(4 * slots, wave > 1e9 ? 1000000000 : (int64_t)wave));
}

gnomon_status gnomon_gemm_no_room(gnomon_context *ctx, int64_t limit, int64_t needed)
{
    return gnomon_fail(ctx, GNOMON_ERROR_MEMORY,
                       GNOMON_ARG("memory_limit") " is too low: %" PRId64
                                                  " bytes are left for a product that needs at "
                                                  "least %" PRId64,
                       limit, needed);
}
