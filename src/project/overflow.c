#include "project/overflow.h"

#include "base/error.h"

#include <inttypes.h>

void gnomon_overflow_note(gnomon_overflow *o, int64_t row)
{
    if (!o) return;
    row += o->base;
    int64_t seen = atomic_load(&o->row);
    while (row < seen && !atomic_compare_exchange_weak(&o->row, &seen, row))
        ;
}

gnomon_status gnomon_overflow_check(gnomon_context *ctx, const gnomon_overflow *o, const char *name,
                                    bool f64)
{
    const int64_t row = atomic_load(&o->row);
    GNOMON_FAIL_IF(row != INT64_MAX, ctx, GNOMON_ERROR_NONFINITE,
                   GNOMON_ARG("%s") ": row %" PRId64
                                    " overflows: the input is finite, but its sums are beyond what "
                                    "%s holds; scale the input down%s, or let "
                                    "options.allow_nonfinite pass what comes",
                   name, row, f64 ? "f64" : "f32", f64 ? "" : ", use an f64 output");
    return GNOMON_OK;
}
